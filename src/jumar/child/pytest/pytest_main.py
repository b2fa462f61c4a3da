"""Runs pytest in the confined process. It loads pytest before the room can be seen; only jumar's plug-in reports.

Standard library and pytest only, Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from inspect import isgeneratorfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child import normalise, program_end, test_timeout
from jumar.child.channel import join
from jumar.child.import_watch import ImportWatch
from jumar.child.pytest import line_recorders, tracebacks
from jumar.child.pytest.blame import BlameFinder
from jumar.child.pytest.challenge_plugin import ChallengePlugin
from jumar.child.pytest.hide_tests import HideTestName, hide_folder_names
from jumar.child.pytest.line_tracer import Tracer
from jumar.child.pytest.placeholders import MissingSupply
from jumar.child.pytest.reporter import Reporter
from jumar.child.pytest.tamper_check import TamperCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    import pytest

CONFIGS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Configuration files of pytest, in the order in which it looks for them."""

FRIENDS = ("assertion.rewrite", "assertion.util", "capture", "fixtures", "main", "mark.structures", "monkeypatch",
           "outcomes", "python", "python_api", "raises", "reports", "runner", "skipping", "terminal", "tmpdir",
           "unittest")  # fmt: skip
"""Parts of pytest that it may load late, and then must not find in the room."""

TESTS_OF_PYTHON = "test"
"""A package that Python brings for itself, and many projects for their own tests."""

QUIET = ("--tb=native", "--no-summary", "--show-capture=no")
"""Options for runs where only outcomes count. Of pytest's tracebacks only the native one can be had without frames."""

WRAPPERS = ("pytest_load_initial_conftests", "pytest_cmdline_parse", "pytest_collection", "pytest_make_collect_report",
            "pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown", "pytest_pyfunc_call",
            "pytest_runtest_protocol", "pytest_runtest_makereport", "pytest_fixture_setup",
            "pytest_sessionfinish")  # fmt: skip
"""The hooks of our plug-ins that come before all others; those that are generators are around them."""


def main(joined: Callable[..., object] | None = None) -> None:
    """Read the config, run pytest once, report, and leave without asking anybody.

    *joined* makes the plug-in for tests whose product is in another process.
    """
    gc.disable()  # what is loaded now stays
    config, send, _ = join()
    room, private = Path.cwd(), Path(os.environ["TMPDIR"])
    try:
        pytest = importlib.import_module("pytest")
    except ImportError as error:
        why = "no pytest" if error.name == "pytest" else f"a pytest that does not import ({error})"
        send(["unusable", f"{sys.executable} has {why}; install it there or pass --python"])
        os._exit(3)
    import_friends()
    plugins = [*build_plugins(config, room, private, send), add_room_to_path(room, config["paths"])]
    if joined:
        plugins.append(joined(config["apart"], str(room), (test_timeout.TestTimeLimit,), send))
    for plugin in plugins:
        mark(plugin, pytest)
    args = build_arguments(room, private, config)
    gc.freeze()  # so that no collection goes through the whole of pytest again
    gc.enable()
    sys.argv[:] = ["pytest", *args]
    send(["hello", describe_versions(pytest.__version__, room, config["args"])])
    status, imports = 3, ImportWatch() if config.get("learn") else None
    try:
        status = int(pytest.main(args, plugins=plugins))
    except BaseException as error:  # noqa: BLE001  # whatever the code under test let fly, it is a record
        send(["stopped", repr(error)[:1000]])
    for plugin in plugins:
        getattr(plugin, "close", int)()
    if isinstance(plugins[0], Reporter):
        plugins[0].check_status(status, room)
    if imports:
        send(["imported", imports.list_installed()])
    send(["end", status])
    judges = config["mode"] == "run" and not (joined or config.get("quiet"))
    program_end.leave(status, config["limit"] if judges else 0)


def import_friends() -> None:
    """Import the parts of pytest that `FRIENDS` names, as far as it has them."""
    for friend in FRIENDS:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"_pytest.{friend}")


def build_plugins(config: dict[str, Any], room: Path, private: Path, send: Any) -> list[object]:
    """Return the plug-ins that report and judge."""
    hide_folder_names()
    tracebacks.keep_trees()
    (private / "cache").mkdir(exist_ok=True)  # else pytest makes it, with files that explain it
    blame, cleaned = BlameFinder(str(room)), normalise.build_normaliser(str(room), str(private))
    plugins: list[object] = [Reporter(config, send, cleaned, blame, test_timeout.TimeLimit(config["limit"]))]
    if "placeholders" in config:
        plugins.append(MissingSupply(config["placeholders"], blame))
    if "trace" in config:
        plugins.append(Tracer(config["trace"], room, line_recorders.build_recorder, send))
    if "challenge" in config:
        told = {**config["challenge"], "bare": "shuffle" in config and __debug__}
        plugins.append(ChallengePlugin(told, room, blame.is_foreign, send))
    if config["mode"] == "run" and "apart" not in config:  # else there is no code under test here to guard against
        plugins += build_guards(room, blame, send, config["ids"])
    return plugins


def build_guards(
    room: Path, blame: BlameFinder, send: Callable[[list[object]], None], ids: Sequence[str]
) -> list[object]:
    """Build the plug-ins that watch over the judging. `TamperCheck` remembers what it finds, so it is made last."""
    files = [room / name for name in sorted({one.partition("::")[0] for one in ids})]
    sources = [file.read_bytes() for file in files if file.is_file()]
    return [HideTestName(str(room), blame.is_test_file), TamperCheck(blame, send, sources)]


def mark(plugin: object, pytest: ModuleType) -> None:
    """Tell pytest which hooks of *plugin* come first or wrap others; its class was made without pytest."""
    for name, hook in vars(type(plugin)).items():
        if name in WRAPPERS:
            pytest.hookimpl(hookwrapper=isgeneratorfunction(hook), tryfirst=True)(hook)
        elif name.startswith("pytest_"):
            pytest.hookimpl(trylast=True)(hook)


class CollectionRoot:
    """Puts the room before the installed packages on sys.path, once those that are plug-ins of pytest are loaded."""

    def __init__(self, folders: Sequence[str], place: int) -> None:
        self._folders, self._place = list(folders), place

    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Iterator[None]:
        """Prepare before the first line of the room runs. A plug-in named in the project's options comes last.

        Folders that the project's `pythonpath` puts first stay there; older versions of pytest put them there later.
        """
        named: list[object] = []
        with contextlib.suppress(ValueError, KeyError):  # pytest 6 does not know of it
            named = [str(path) for path in early_config.getini("pythonpath")]
        ahead = [path for path in sys.path[: len(named)] if path in named]
        others = [path for path in sys.path[len(ahead) :] if path not in self._folders]
        others[self._place : self._place] = [path for path in self._folders if path not in ahead]
        sys.path[:] = [*ahead, *others]
        yield


PLUGINS = (Reporter, Tracer, ChallengePlugin, MissingSupply, HideTestName, TamperCheck, CollectionRoot)
"""Classes of our plug-ins."""


def add_room_to_path(room: Path, extra: Sequence[str]) -> CollectionRoot:
    """Put the tested tree on sys.path, after the standard library and before installed packages.

    Source folders come along: *extra* (the task's PYTHONPATH), `src`, and what an editable installation of the
    original points to; else that original would be judged. The room stands last until the plug-in that comes back,
    once marked and registered, lets it in.
    """
    site = [i for i, path in enumerate(sys.path) if Path(path).name in ("site-packages", "dist-packages")]
    place = site[0] if site else len(sys.path)
    prefixes = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
    linked = [Path(path).name for path in sys.path[place:] if not prefixes.intersection(Path(path).resolve().parents)]
    folders = dict.fromkeys(room / folder for folder in (*extra, ".", "src", *linked))
    there = [
        str(folder)
        for folder in folders
        if folder.is_dir() and (folder == room or not (folder / "__init__.py").exists())
    ]
    sys.path.extend(there)
    return CollectionRoot(there, place)


def describe_versions(pytest: str, room: Path, args: Sequence[str]) -> dict[str, object]:
    """Return what a hello says: the versions that run, and what of the room stands before something installed."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, "pytest": pytest, "shadows": list_shadowing(room, args)}


def list_shadowing(room: Path, args: Sequence[str]) -> list[str]:
    """Return top-level modules of *room*, by their paths, that an installed module of the same name stands behind.

    One of Python's own would come before the room here, and behind it in a project's shell. Where a test file among
    *args*, or a conftest file, lies in the room itself, pytest puts the room first: there is no difference then.
    """
    first = (room / "conftest.py").is_file() or any(
        "/" not in file and file.endswith(".py") for file in (arg.partition("::")[0] for arg in args)
    )
    pythons = () if first else getattr(sys, "stdlib_module_names", ())  # Python 3.10 or newer
    site = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    modules = {path.stem: path.name for path in room.glob("*.py")}
    modules.update({path.parent.name: f"{path.parent.name}/__init__.py" for path in room.glob("*/__init__.py")})
    return [
        path
        for name, path in sorted(modules.items())
        if (name in pythons and name != TESTS_OF_PYTHON) or PathFinder.find_spec(name, site)
    ]


def build_arguments(room: Path, private: Path, config: dict[str, Any]) -> list[str]:
    """Return the command line for pytest. Options of the project that would break a verdict are switched off last."""
    there = [arg for arg in config["args"] if (room / arg.partition("::")[0]).exists()]
    options = ["-c", find_configuration(room, there), f"--rootdir={room}", f"--confcutdir={room}",
               "-o", f"cache_dir={private / 'cache'}", f"--basetemp={private / 'pytest'}",
               "--continue-on-collection-errors", "--maxfail=0", "--color=no", "--verbosity=-1"]  # fmt: skip
    options += QUIET if config.get("quiet") else ("--tb=short", "--no-summary")
    options += list_switches()
    if "challenge" in config or "placeholders" in config:
        options.append("--assert=rewrite")
    elif "shuffle" in config and __debug__:  # a confirmation, in which nobody reads what an assertion says
        options.append("--assert=plain")
    if config["mode"] == "collect" and "placeholders" not in config:
        options.append("--collect-only")
    # One absent test file must not keep the others from running; if all are absent, pytest shall say so.
    return [*options, *(there or config["args"])]


def list_switches() -> list[str]:
    """Return the options that switch plug-ins off which distribute tests or measure coverage, where they are there."""
    # An uninstalled package may leave a folder of its name behind, which is no plug-in; it must not be imported to see
    # that, or pytest could not rewrite it any more and would warn, which a project may have made an error.
    xdist = importlib.util.find_spec("xdist")
    there = xdist and any(Path(folder, "plugin.py").is_file() for folder in xdist.submodule_search_locations or ())
    return [*(["-n0"] if there else ()), *(["--no-cov"] if importlib.util.find_spec("pytest_cov") else ())]


def find_configuration(room: Path, args: Sequence[str]) -> str:
    """Return the configuration file that pytest would choose, looked for no higher than the room.

    The null device if none.
    """
    readable = importlib.import_module("_pytest.config.findpaths").load_config_dict_from_file
    starts = [room / arg.partition("::")[0] for arg in args] or [room]
    common = Path(os.path.commonpath([start if start.is_dir() else start.parent for start in starts]))
    for folder in (common, *common.parents):
        for path in (folder / name for name in CONFIGS):
            if path.is_file() and readable(path) is not None:
                return str(path)
        if folder == room:
            break
    return os.devnull
