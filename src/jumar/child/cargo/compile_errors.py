"""Attributes build failures of a Rust target to code or tests, by the compiler's positions and error codes.

Codes are those of the compiler's error index.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child.runner_bridge import choose_blame

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    Blamed = tuple[str, str]
    """A `core.verdict.Blame` (or empty), and for an absence what is absent."""

CODE, TEST, ABSENT = ("code", ""), ("test", ""), ("absent", "")

OWN = frozenset({
    "E0106", "E0124", "E0261", "E0428", "E0429", "E0430", "E0431", "E0434", "E0435", "E0449", "E0463", "E0583", "E0586",
    "E0601", "E0635", "E0658", "E0728", "E0748", "E0753", "E0758", "E0762", "E0763", "E0765", "E0766",
})  # fmt: skip
"""Errors that no code under test can cause in a test: definitions, literals, files. Without a code it is the syntax."""

UNRESOLVED = ("E0432", "E0433", "E0463")
CRATE = re.compile(
    r"(?:unlinked crate|undeclared (?:crate or module|type)|crate or module|can't find crate for) `(\w+)`"
)
IN_SCOPE = re.compile(r"cannot find (?:\w+ )+`?\S+`? in this scope")
GLOB = re.compile(r"^\s*(?:pub )?use [\w:{}, ]*\*", re.MULTILINE)


def attribute_errors(
    messages: Iterable[Mapping[str, Any]], crates: Mapping[str, str], product: Collection[str]
) -> Blamed:
    """Attribute the errors among the compiler's *messages* to code or tests.

    Args:
        messages: of cargo (`reason` is `compiler-message`).
        crates: name of each crate of the project -> the folder of its package.
        product: targets, by their root files, that were built without their unit tests: what then is wrong in them
            with their tests is in the tests.
    """
    found: list[Blamed] = []
    for message in messages:
        said = message["message"]
        if said.get("level") == "error" and not str(said.get("message", "")).startswith("aborting due to"):
            unit = message["target"]["src_path"] in product
            found += [_attribute_error(said, file, crates, unit=unit) for file in _list_places(said)]
    return choose_blame(found)


def is_test_file(path: str) -> bool:
    """Return whether *path*, relative to the room, lies below a folder of tests."""
    return "tests" in Path(path).parts[:-1]


def _list_places(said: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files of the room that an error points to: what a macro was expanded to is where it was called."""
    for span in said.get("spans", ()):
        inner = span
        while inner and inner["file_name"].startswith(("/rustc/", "<")) and inner.get("expansion"):
            inner = inner["expansion"]["span"]
        if span.get("is_primary"):
            yield inner["file_name"]


def _attribute_error(said: Mapping[str, Any], file: str, crates: Mapping[str, str], *, unit: bool) -> Blamed:
    path = os.path.relpath(file)
    if path.startswith(".."):
        return TEST  # a crate of somebody else does not build here
    code, text = (said.get("code") or {}).get("code", ""), _get_text(said)
    strange = [name for name in CRATE.findall(text) if code in UNRESOLVED and name not in ("crate", "self", "super")]
    if strange and strange[0] not in crates:
        known = strange[0][0].isupper()  # a type, and no crate
        return (ABSENT if known else TEST) if is_test_file(path) or unit else CODE
    if not (is_test_file(path) or unit):
        return CODE
    if strange:
        return ("absent", os.path.normpath(os.path.join(".", crates[strange[0]], "src/lib.rs")))  # noqa: PTH118
    if not code or code in OWN:
        return TEST
    return TEST if IN_SCOPE.search(said.get("message", "")) and not _has_glob_import(file) else ABSENT


def _get_text(said: Mapping[str, Any]) -> str:
    labels = [span.get("label") or "" for span in said.get("spans", ()) if span.get("is_primary")]
    return "\n".join([str(said.get("message", "")), *labels])


def _has_glob_import(file: str) -> bool:
    """Return whether a file imports all names of something: a name it misses may be one of those."""
    with contextlib.suppress(OSError):
        return bool(GLOB.search(Path(file).read_text("utf-8", "replace")))
    return False
