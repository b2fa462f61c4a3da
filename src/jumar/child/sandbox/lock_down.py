"""Confines the tests' process for good once its files are loaded: no writing elsewhere, no test file, no process.

What a test does with the data of the product is then bounded by the kernel, whatever way it takes.
"""

from __future__ import annotations

import _thread
import contextlib
import linecache
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from importlib.util import decode_source
from typing import Any

try:
    from jumar.child.sandbox import locks
except (ImportError, OSError):  # an interpreter without ctypes, or ctypes without a C library
    locks = None  # type: ignore[assignment]  # asked for below

NULL_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")


def find_test_files(room: str, names: Iterable[object]) -> set[str]:
    """Return the Python files of *room* among *names*, by all the names that they have."""
    inside = (os.path.join(room, ""), os.path.join(os.path.realpath(room), ""))  # noqa: PTH118  names as code has them
    found = {str(name) for name in names if str(name).startswith(inside) and str(name).endswith(".py")}
    return found.union(name for name in map(os.path.realpath, found) if name.startswith(inside[1]))


def confine_tests(files: Iterable[str], folder: str, program: str) -> list[str]:
    """Empty the test *files*, forbid to write outside of *folder* and to start a process; what could not be done.

    *program* is the seccomp filter, in hexadecimal digits; empty if there is none for this machine.
    """
    return [*_empty_files(files), *_lock(folder, program)]


def _empty_files(files: Iterable[str]) -> Iterator[str]:
    """Put empty files in the place of *files*. Tracebacks of failures show their lines, which stay in memory.

    They are not just removed: pytest goes on to look whether a test file and the `__init__.py` beside it are there.
    """
    found: dict[str, bytes] = {}
    for file in files:
        with contextlib.suppress(OSError), open(file, "rb") as stream:  # noqa: PTH123  names as they stand in code
            found[file] = stream.read()
    for file, source in found.items():
        lines: list[str] = []
        with contextlib.suppress(SyntaxError, ValueError):
            lines = decode_source(source).splitlines(keepends=True)
        # Without a time of change, nobody compares it with the file.
        linecache.cache[file] = (len(source), None, lines, file)
        try:
            os.unlink(file)  # noqa: PTH108  as above
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        except OSError as fault:
            yield f"the tests can read {file}: {fault.strerror}"
    for folder in set(map(os.path.dirname, found)):
        shutil.rmtree(os.path.join(folder, "__pycache__"), ignore_errors=True)  # noqa: PTH118  as above


def _lock(folder: str, program: str) -> Iterator[str]:
    if locks is None or sys.platform != "linux":
        yield "the tests can write everywhere and start processes: there is no Landlock and no seccomp"
        return
    threads: Any = getattr(_thread, "_count")()  # noqa: B009  nothing else counts those that `threading` did not make
    if threads:
        yield "threads of the tests' files run unconfined"
    try:
        locks.set_no_new_privileges()
        granted = {folder: locks.EVERYTHING & ~locks.EXECUTE, **dict.fromkeys(NULL_DEVICES, locks.DEVICE)}
        locks.apply_landlock(granted, network=True, reading=False)
    except OSError as fault:
        yield f"the tests can write everywhere: {fault}"
    try:
        if not program:
            raise OSError("the system calls of this machine are not known")  # noqa: TRY301  one sentence for both
        locks.install_filter(bytes.fromhex(program))
    except OSError as fault:
        yield f"the tests can start processes: {fault}"
