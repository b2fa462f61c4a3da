"""Compares the Python and the jumar of a node with those of the campaign: other code would judge by other rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class NodeBuild(NamedTuple):
    """Python and jumar of a node."""

    host: str
    python: str
    """Version, such as `3.11`."""
    version: str
    """Of jumar; empty: it is not installed."""
    sources: str
    """Hash of jumar's source files."""
    sees: bool = False
    """True if the node sees the folder of the campaign."""


def make_describe() -> Callable[[str, str], tuple[str, str, str, str, bool]]:
    """Return a function that describes the machine it runs on, as the fields of a `NodeBuild`.

    It is told the path of a file and the hash of what is in it. A function made here is sent as code: the node may have
    another jumar, or none.
    """

    def describe(path: str, expected: str) -> tuple[str, str, str, str, bool]:
        import platform  # noqa: PLC0415  it runs on another machine
        from hashlib import sha256  # noqa: PLC0415  as above
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  as above
        from importlib.util import find_spec  # noqa: PLC0415  as above
        from pathlib import Path  # noqa: PLC0415  as above

        spec, sources = find_spec("jumar"), sha256()
        for root in map(Path, spec.submodule_search_locations or () if spec else ()):
            for file in sorted(root.rglob("*.py")):
                sources.update(str(file.relative_to(root)).encode() + b"\0" + sha256(file.read_bytes()).digest())
        try:
            known = version("jumar") if spec else ""
        except PackageNotFoundError:
            known = "of unknown version"
        try:
            sees = sha256(Path(path).read_bytes()).hexdigest() == expected
        except OSError:
            sees = False
        return platform.node(), ".".join(platform.python_version_tuple()[:2]), known, sources.hexdigest(), sees

    return describe


def describe_build() -> NodeBuild:
    """Return the Python and the jumar of this process."""
    return NodeBuild(*make_describe()("", ""))


def explain_skew(ours: NodeBuild, theirs: NodeBuild) -> str:
    """Return one sentence on how *theirs*, of a node, differs from *ours*; empty: it is the same code."""
    node = f"the Ray node {theirs.host}"
    if theirs.python != ours.python:
        return f"{node} runs Python {theirs.python} and this campaign {ours.python}; use the same one on all nodes"
    if not theirs.version:
        return f"{node} has no jumar; install jumar {ours.version} with its extra `ray` there"
    if theirs.version != ours.version:
        return f"{node} has jumar {theirs.version} and this campaign {ours.version}; install the same one on all nodes"
    if theirs.sources != ours.sources:
        return (
            f"{node} has another build of jumar {ours.version} than this campaign (their source files differ); "
            "install the same one on all nodes"
        )
    return ""
