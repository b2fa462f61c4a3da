"""The patch: git accepts it on the original, and nothing of the task takes part in making it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jumar.workspace.patch import format_diff, make_best_patch
from jumar.workspace.store.object_store import Store

ODD = [
    "plain.py",
    "with space.txt",
    "ünï.txt",
    'quo"te',
    "tab\there",
    "new\nline",
    "\udcff\udcfe",
    "-dash",
    "deep/er/x",
]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "objects")


def tree(store: Store, folder: Path, files: dict[str, bytes]) -> str:
    """The tree of *files*, also left in *folder*."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return store.capture(folder)


@pytest.mark.slow
@pytest.mark.parametrize("in_repository", [True, False])
def test_git_applies_it_to_the_original(store: Store, tmp_path: Path, in_repository: bool) -> None:  # noqa: FBT001  a parameter of a test
    old, new = tmp_path / "old", tmp_path / "new"
    kept = {"same.py": b"same\n", "mode.sh": b"#!\n", "gone.bin": b"\0\1\2" * 99, "gone": b"", "crlf": b"a\r\nb\r\n"}
    tree(store, old, kept | {name: b"old " + name.encode(errors="surrogateescape") + b"\n" for name in ODD})
    (old / "link").symlink_to("same.py")
    (old / "swap").write_bytes(b"a file\n")
    base = store.capture(old)
    tree(
        store, new, {name: b"new\xff\0" + bytes(range(256)) for name in ODD[1:]} | {"same.py": b"same\n", "empty": b""}
    )
    (new / "crlf").write_bytes(b"a\r\nc")
    (new / "mode.sh").write_bytes(b"#!\n")
    (new / "mode.sh").chmod(0o755)
    (new / "link").symlink_to("elsewhere")
    tree(store, new, {"swap/inner": b"a folder\n", ".gitattributes": b"* text eol=crlf diff=evil filter=evil\n"})
    best = store.capture(new)
    patch = make_best_patch(store, base, best)
    environment = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    if in_repository:
        subprocess.run(["git", "init", "--quiet", old], check=True, env=environment)
    subprocess.run(["git", "apply", "--binary", "-"], input=patch, cwd=old, check=True, env=environment)
    assert store.capture(old) == best


@pytest.mark.slow
def test_nothing_of_the_task_runs(store: Store, tmp_path: Path) -> None:
    work = tmp_path / "work"
    base = tree(store, work, {"a.txt": b"1\n"})
    evil = f"touch {tmp_path / 'ran'}".encode()
    files = {
        ".gitattributes": b"* diff=x filter=x merge=x\n*.txt -diff\n",
        ".gitconfig": b'[diff "x"]\n\ttextconv = ' + evil + b'\n[filter "x"]\n\tclean = ' + evil + b"\n",
    }
    best = tree(store, work, {"a.txt": b"2\n", **files})
    patch = make_best_patch(store, base, best)
    assert b"-1\n+2\n" in patch
    assert not (tmp_path / "ran").exists()
    assert make_best_patch(store, base, base) == b""
    assert not (work / ".git").exists()


def test_people_can_read_the_difference(store: Store, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    base = tree(
        store, old, {"a.py": b"x = 1\ny = 1", "b": b"\0", "gone.py": b"z\n", "run": b"r\n", "f\x0c.py": b"1\x0c2\n"}
    )
    shutil.copytree(old, new)
    (new / "gone.py").unlink()
    (new / "run").chmod(0o755)
    tree(store, new, {"a.py": b"x = 2\ny = 1", "b": b"\1\0", "empty": b"", "\udcff": b"t\n", "f\x0c.py": b"1\x0c3\n"})
    shown = format_diff(store, base, store.capture(new))
    assert "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 2\n y = 1\n\\ No newline at end of file\n" in shown
    assert "b: binary, changed\n" in shown
    assert "empty: empty, new\n" in shown
    assert "--- a/gone.py\n+++ /dev/null\n" in shown
    assert "run: mode 100644 -> 100755\n" in shown
    assert "+++ b/\\xff\n" in shown
    assert "-1\x0c2\n+1\x0c3\n" in shown
