"""Two releases of a project that is only a bug, its fix and its tests; and how an index would serve them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from jumar.importing.make_task import Blob

OLD = {
    "thing.py": "def half(n):\n    return n // 3\n",
    "README.md": "one",
    "tests/test_thing.py": "def test_none(): pass\n",
    "tests/test_gone.py": "",
    "conftest.py": "old = 1\n",
    "setup.py": "from setuptools import setup\nsetup(name='thing', version='1', py_modules=['thing'])\n",
}
NEW = {
    "thing.py": "def half(n):\n    return n // 2\n",
    "README.md": "two",
    "tests/test_thing.py": (
        "import thing\ndef test_half(): assert thing.half(6) == 3\ndef test_zero(): assert thing.half(0) == 0\n"
        "def test_broken(): assert False\n"
    ),
    "conftest.py": "new = 1\n",
    "setup.py": "from setuptools import setup\nsetup(name='thing', version='2', py_modules=['thing'])\n",
}


def tree(texts: Mapping[str, str]) -> dict[str, Blob]:
    return {path: Blob(text.encode()) for path, text in texts.items()}


def sdist(folder: Path, version: str, texts: Mapping[str, str]) -> Path:
    """A source distribution of the project *thing*, as an index would serve it."""
    path = folder / f"thing-{version}.tar.gz"
    metadata = {"PKG-INFO": f"Metadata-Version: 2.1\nName: thing\nVersion: {version}\n"}
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {**metadata, **texts}.items():
            member = tarfile.TarInfo(f"thing-{version}/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path
