"""Imports pytest, its plug-ins and third-party modules in the zygote, and looks whether that left anything behind.

A module that starts a thread, opens a file or changes a signal when it is imported cannot be shared by forks: what is
found is reported, and jumar then starts every process anew.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import random
import signal
import sys
import tempfile
import threading
import warnings
from typing import TYPE_CHECKING, Any

from jumar.child import program_end
from jumar.child.pytest import loaded_code, pytest_main
from jumar.child.sandbox import locks
from jumar.child.warm import ready_distributions, ready_pytest, rewritten_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SITE = ("site-packages", "dist-packages")

REHEARSAL = """import pytest


@pytest.fixture
def one():
    yield 1


@pytest.mark.parametrize("n", [1])
def test_passes(one, n):
    assert one == n


def test_fails(one):
    assert [one] == [2]
"""
"""Tests that make pytest load what it loads late."""

LOOP_PLUGINS = ("pytest_asyncio", "pytest_trio", "pytest_twisted", "pytest_tornasync", "pytest_aiohttp")
"""Plug-ins that own an event loop: a fork of one is not what the first process had."""

LOOP_LIBRARIES = ("gevent", "eventlet")
"""Libraries that do."""

SPARING = ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_ADDOPTS")
"""Variables by which pytest may load no plug-in, or not each one."""

OWN_LOOP = "%s has an event loop of its own"


def open_null_devices() -> None:
    """Read and write nothing from here on."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def preload(modules: Sequence[str], socket: int, *, plugins: bool) -> tuple[dict[str, Any], list[random.Random]]:
    """Import *modules*, and with *plugins* pytest and all that is a plug-in of it.

    Returns a report, and the generators of random numbers that chance has seeded, which every fork seeds anew.
    """
    unseeded: list[random.Random] = []
    before = set(sys.modules)
    room = os.path.join(os.path.dirname(os.environ["HOME"]), "room")  # noqa: PTH118, PTH120
    os.mkdir(room)  # noqa: PTH102
    os.chdir(room)
    with _watch_generators(unseeded), _keep_state(), _hide_ctypes():
        refused = _import_plugins() if plugins else ""
        own = set(sys.modules)
        for name in modules:
            if name not in sys.modules:
                with contextlib.suppress(BaseException):
                    importlib.import_module(name)
    os.chdir("/")
    gc.collect()
    gc.freeze()  # so that no collection goes through all this again
    refused = refused or find_leftovers(socket)
    if plugins and not refused:
        ready_pytest.prepare(pytest_main.PLUGINS)
        ready_distributions.prepare(list_site_folders())
        rewritten_tests.install()
        loaded_code.remember()
    more = {name.partition(".")[0] for name in set(sys.modules) - own}
    report = {"refused": refused, "modules": len(set(sys.modules) - before), "names": sorted(more)}
    return {**report, "files": list_installed_files()}, unseeded


def list_installed_files() -> list[str]:
    """Return the files of installed modules that are loaded, and the folders in which a package would be installed."""
    folders = list_site_folders()
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    inside = tuple(os.path.join(folder, "") for folder in folders)  # noqa: PTH118
    return [sys.executable, *folders, *(file for file in files if isinstance(file, str) and file.startswith(inside))]


def list_site_folders() -> list[str]:
    """Return the folders on sys.path in which packages are installed."""
    return [path for path in sys.path if os.path.basename(path) in SITE]  # noqa: PTH119


def _import_plugins() -> str:
    """Import pytest and run it once; why that cannot be, or empty."""
    # Whoever waits for this process is told at once, unless a variable may keep the plug-in from being loaded.
    name = next(filter(importlib.util.find_spec, LOOP_PLUGINS), "")
    if name and os.environ.keys().isdisjoint(SPARING):
        return OWN_LOOP % name
    try:
        pytest = importlib.import_module("pytest")
    except ImportError as error:
        return f"pytest does not import: {error}"
    pytest_main.import_friends()
    folder = os.getcwd()  # noqa: PTH109
    try:
        with open("test_jumar_rehearsal.py", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(REHEARSAL)
        options = ["-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider", "--basetemp=tmp", "--tb=short"]
        pytest.main([*options, "test_jumar_rehearsal.py"])
        program_end.flush_output()  # else each fork would print it
    except BaseException as error:  # noqa: BLE001  whatever a plug-in lets fly
        return f"pytest does not run: {error!r}"
    finally:
        sys.modules.pop("test_jumar_rehearsal", None)
        for place in [place for place in sys.path_importer_cache if place.startswith(folder)]:
            del sys.path_importer_cache[place]
    return next((OWN_LOOP % name for name in (*LOOP_PLUGINS, *LOOP_LIBRARIES) if name in sys.modules), "")


@contextlib.contextmanager
def _keep_state() -> Iterator[None]:
    """Put back what the import of a module or a run of pytest may change for the whole process."""
    path, meta, hooks, filters = list(sys.path), list(sys.meta_path), list(sys.path_hooks), list(warnings.filters)
    environ, bytecode, mask = dict(os.environ), sys.dont_write_bytecode, os.umask(0o022)
    os.umask(mask)
    try:
        yield
    finally:
        sys.path[:], sys.meta_path[:], sys.path_hooks[:] = path, meta, hooks
        warnings.filters[:] = filters  # type: ignore[index]
        sys.dont_write_bytecode, tempfile.tempdir = bytecode, None
        os.umask(mask)
        os.environ.clear()
        os.environ.update(environ)
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            vars(sys).pop(name, None)


@contextlib.contextmanager
def _hide_ctypes() -> Iterator[None]:
    """Have modules import a `ctypes` of their own: a fork whose modules have none loses ours."""
    own = locks.lose_ctypes()
    try:
        yield
    finally:
        if "ctypes" not in sys.modules:
            sys.modules.update(own)


@contextlib.contextmanager
def _watch_generators(unseeded: list[random.Random]) -> Iterator[None]:
    """Add every generator of random numbers that is made in the body and that nobody gives a seed to *unseeded*."""
    seed = random.Random.seed

    def watch_seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        unseeded[:] = [one for one in unseeded if one is not self] + ([self] if a is None else [])
        seed(self, a, version)

    random.Random.seed = watch_seed  # type: ignore[method-assign]
    try:
        yield
    finally:
        random.Random.seed = seed  # type: ignore[method-assign]


def find_leftovers(socket: int) -> str:
    """Return what the imports left that forks cannot share, in one sentence; empty if nothing."""
    if threading.active_count() > 1 or _keeps_threads():
        return "a module starts a thread when it is imported"
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return "a module traces the interpreter"
    extra = [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and fd != socket and _is_open(fd)]  # noqa: PTH208, PLR2004
    if extra:
        return f"a module keeps {os.readlink(f'/proc/self/fd/{extra[0]}')} open"  # noqa: PTH115
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
        return "a module starts a process when it is imported"
    caught = [one for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGALRM)
              if signal.getsignal(one) is not signal.SIG_DFL]  # fmt: skip
    return f"a module handles {caught[0].name}" if caught else ""


def _keeps_threads() -> bool:
    """Return whether there are threads that a fork does not end.

    A library whose threads cannot be copied ends them before a fork and starts them again where they are wanted, as
    OpenBLAS does, and so numpy (pthread_atfork(3)).
    """
    if len(os.listdir("/proc/self/task")) == 1:  # noqa: PTH208
        return False
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return len(os.listdir("/proc/self/task")) > 1  # noqa: PTH208


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
