"""Sandboxes for tests: of this machine, where it has them; else their tests are skipped so that nobody overlooks it."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import pytest

from jumar.errors import BadInput
from jumar.process.sandbox_check import find_bubblewrap
from jumar.sandbox.bwrap import Bubblewrap, find_programs

ENVIRON = {"PATH": os.environ["PATH"]}

BARE = ("--unshare-user", "--unshare-all", "--ro-bind", "/", "/", "true")
"""What a bubblewrap must be able to do for ours to have to work."""


@functools.cache
def _s3() -> Bubblewrap | str:
    try:
        found = find_programs(ENVIRON)
    except BadInput as none:
        return str(none)
    tried = [subprocess.run([p, *BARE], capture_output=True, text=True, check=False) for p in found]
    if all(done.returncode for done in tried):
        return tried[-1].stderr.strip()
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(find_bubblewrap, Path(folder), ENVIRON)


def s3() -> Bubblewrap:
    """The tier S3 of this machine. Where no bubblewrap may make namespaces this skips; elsewhere ours must work."""
    found = _s3()
    if isinstance(found, str):
        pytest.skip(f"S3 IS NOT TESTED HERE: {found}")
    return found


def environment_of(folder: Path) -> Path:
    """A virtual environment in *folder*, as far as its shape tells; its interpreter."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    base = Path(sys.base_prefix) / "bin"
    (folder / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3\n", "utf-8")
    (folder / "bin" / "python").symlink_to(sys.executable)
    return folder / "bin" / "python"
