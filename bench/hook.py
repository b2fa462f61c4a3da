"""What the hooks cost: the quick look against `python -c pass`, and comparing trees in a repository of 5,000 files.

Run as `make bench ONLY=hook`. The first part is given as a ratio, since it is mostly the start of an interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import jumar.child.hook.hook_fast
from frame import Figure, Way, interleave, median_of, milliseconds, ratio_of
from jumar.child.hook.ruling import PRE
from jumar.workspace.git_ignored import read_ignored
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace

FAST = Path(jumar.child.hook.hook_fast.__file__)
FILES = 5_000
FOLDER_SIZE = 50


def repository(root: Path, files: int) -> Path:
    """A repository of so many small files."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)  # noqa: S603, S607  git itself
    (root / ".gitignore").write_text("*.log\n__pycache__/\nbuild/\n")
    for number in range(files):
        path = root / f"src/p{number // FOLDER_SIZE}/m{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def f{number}(a, b):\n    return a + b + {number}\n" * 20)
    return root


def session(root: Path, tests: int) -> None:
    """What a session publishes for the quick look, in a repository with so many test files."""
    folder = root / ".jumar" / "hook"
    run = folder / "runs" / "one"
    run.mkdir(parents=True)
    (run / "events.jsonl").touch()
    (folder / "lock").touch()
    state = {
        "version": 1, "root": str(root.resolve()), "run": "one", "bytes": 0, "mode": "strict", "fault": "",
        "claims": {"src/p0/m0.py": ["test_a.py::test_a"]}, "tests": [f"tests/test_{n}.py" for n in range(tests)],
        "authored": [],
    }  # fmt: skip
    (folder / "state.json").write_text(json.dumps(state))


def event(root: Path, tool: str, **given: object) -> bytes:
    """An event of a host, before *tool* is used."""
    common = {"session_id": "s", "transcript_path": "/t", "cwd": str(root), "hook_event_name": PRE}
    return json.dumps({**common, "tool_name": tool, "tool_input": given}).encode()


def measure(rounds: int) -> Iterator[Figure]:
    """Yield what a host waits for, as times of `python -c pass`, and what reading the repository takes."""
    with tempfile.TemporaryDirectory() as folder:
        root = repository(Path(folder).resolve() / "repo", FILES)
        session(root, FILES // 5)
        environ = {**os.environ, "CLAUDE_PROJECT_DIR": str(root)}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        file, other = str(root / "src/p0/m0.py"), str(root / "tests/test_0.py")
        asked = {
            "a reading tool": event(root, "Read", file_path=file),
            "an edit, let through": event(root, "Edit", file_path=file, old_string="a", new_string="b"),
            "an edit, refused": event(root, "Edit", file_path=other, old_string="a", new_string="b"),
            "a shell command": event(root, "Bash", command="cd src && grep -rn 'x' . | head -3"),
        }
        hook = [sys.executable, "-I", "-S", str(FAST), PRE, "10"]
        ways: dict[str, Way] = {name: partial(run, hook, sent, environ) for name, sent in asked.items()}
        ways["nothing"] = partial(run, [sys.executable, "-c", "pass"], b"", environ)
        taken = interleave(ways, 4 * rounds)
        for name in asked:
            yield ratio_of(f"{name}, against python -c pass", taken[name], taken["nothing"])
        rule = read_ignored(root, os.environ)

        def read_anew() -> None:
            Workspace(root, Store(root.parent / "objects"), rule.build_skip()).capture()

        taken = interleave({"tree": read_anew, "rules": lambda: read_ignored(root, os.environ)}, rounds)
        yield median_of(f"the tree of {FILES} files, in a new process", milliseconds(taken["tree"]), "ms")
        yield median_of("what git ignores there", milliseconds(taken["rules"]), "ms")


def run(argv: list[str], sent: bytes, environ: Mapping[str, str]) -> None:
    """Run *argv* as a host runs a hook."""
    subprocess.run(argv, input=sent, capture_output=True, check=True, env=environ)  # noqa: S603  ours
