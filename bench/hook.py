"""What the hooks cost: the quick look against `python -c pass`, and comparing trees in a repository of 5,000 files.

Run as `python bench/hook.py`. The first part is given as a ratio, since it is mostly the start of an interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

import jumar.child.hook.hook_fast
from jumar.child.hook.ruling import PRE
from jumar.workspace.git_ignored import read_ignored
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace

FAST = Path(jumar.child.hook.hook_fast.__file__)
ROUNDS = 40
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


def timed(argvs: Mapping[str, tuple[list[str], bytes]], environ: Mapping[str, str]) -> dict[str, float]:
    """Name -> median milliseconds; the programs take turns, so that all see the same machine."""
    took: dict[str, list[float]] = {name: [] for name in argvs}
    for _ in range(ROUNDS):
        for name, (argv, sent) in argvs.items():
            start = perf_counter()
            subprocess.run(argv, input=sent, capture_output=True, check=True, env=environ)  # noqa: S603  ours
            took[name].append((perf_counter() - start) * 1000)
    return {name: median(times) for name, times in took.items()}


def seconds(work: Callable[[], object]) -> float:
    """How long *work* takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def main() -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory() as folder:
        root = repository(Path(folder).resolve() / "repo", FILES)
        session(root, FILES // 5)
        hook = [sys.executable, "-I", "-S", str(FAST), PRE, "10"]
        file, other = str(root / "src/p0/m0.py"), str(root / "src/p0/m1.py")
        environ = {**os.environ, "CLAUDE_PROJECT_DIR": str(root)}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        took = timed(
            {
                "python -c pass": ([sys.executable, "-c", "pass"], b""),
                "a reading tool": (hook, event(root, "Read", file_path=file)),
                "an edit, let through": (hook, event(root, "Edit", file_path=file, old_string="a", new_string="b")),
                "an edit, refused": (hook, event(root, "Edit", file_path=other, old_string="a", new_string="b")),
                "a shell command": (hook, event(root, "Bash", command="cd src && grep -rn 'x' . | head -3")),
            },
            environ,
        )
        for name, milliseconds in took.items():
            print(f"{name:<22}{milliseconds:6.1f} ms  {milliseconds / took['python -c pass']:.2f}")
        rule = read_ignored(root, os.environ)
        workspace = Workspace(root, Store(root.parent / "objects"), rule.skip())
        first, again = seconds(workspace.capture), seconds(workspace.capture)
        later = Workspace(root, Store(root.parent / "objects"), rule.skip())
        new = seconds(later.capture)
        print(f"{FILES} files: first tree {first:.2f} s, again {again:.2f} s, in a new process {new:.2f} s")
        print(f"what git ignores: {seconds(lambda: read_ignored(root, os.environ)):.3f} s")


if __name__ == "__main__":
    main()
