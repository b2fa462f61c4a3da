"""Runs pytest in the confined process. It loads pytest before the room can be seen; only jumar's plug-in reports.

Standard library and pytest only, Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import sys
from inspect import isgeneratorfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child import normalise, program_end, test_timeout
from jumar.child.channel import join
from jumar.child.import_watch import ImportWatch
from jumar.child.pytest import line_recorders, tracebacks
from jumar.child.pytest.asked_names import load_imports
from jumar.child.pytest.blame import BlameFinder
from jumar.child.pytest.challenge_plugin import ChallengePlugin
from jumar.child.pytest.hide_tests import HideTestName, hide_folder_names
from jumar.child.pytest.import_paths import CollectionRoot, add_room_to_path, list_shadowing
from jumar.child.pytest.line_tracer import Tracer
from jumar.child.pytest.missing_supply import MissingSupply
from jumar.child.pytest.reporter import Reporter
from jumar.child.pytest.tamper_check import TamperCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    import pytest

    Send = Callable[[list[object]], None]

CONFIGS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Configuration files of pytest, in the order in which it looks for them."""

FRIENDS = ("assertion.rewrite", "assertion.util", "capture", "fixtures", "main", "mark.structures", "monkeypatch",
           "outcomes", "python", "python_api", "raises", "reports", "runner", "skipping", "terminal", "tmpdir",
           "unittest")  # fmt: skip
"""Parts of pytest that it may load late, and then must not find in the room."""

SWITCHED_OFF = {"numprocesses": 0, "no_cov": True, "stepwise": False, "stepwise_skip": False}
"""Settings of plug-ins that distribute tests, measure coverage or stop at a failure, and what switches them off."""

DISTRIBUTING = ("numprocesses", "distload", "tx")
"""Settings of pytest-xdist that say how tests are distributed, if they are."""

NAMES_FILE = re.compile(r"(?:^|\s)(?:-c|--config-file)")
"""Stands in options of a person that name a file of configuration."""

QUIET = ("--tb=native", "--no-summary", "--show-capture=no")
"""Options for runs where only outcomes count. Of pytest's tracebacks only the native one can be had without frames."""

WRAPPERS = ("pytest_load_initial_conftests", "pytest_cmdline_parse", "pytest_collection", "pytest_make_collect_report",
            "pytest_pycollect_makeitem",
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
    if not config.get("plain"):
        gc.freeze()  # so that no collection goes through the whole of pytest again
    gc.enable()
    sys.argv[:] = [str(Path(f"{pytest.__file__}").with_name("__main__.py")) if config.get("plain") else "pytest", *args]
    send(["hello", describe_versions(pytest.__version__, room, config)])
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
    tracebacks.keep_trees()
    blame, cleaned = BlameFinder(str(room)), normalise.build_normaliser(str(room), str(private))
    limit = test_timeout.NoTimeLimit() if config.get("plain") else test_timeout.TimeLimit(config["limit"])
    plugins: list[object] = [Reporter(config, send, cleaned, blame, limit)]
    if config.get("distributed"):  # then tests and code under test are in processes without these plug-ins
        return plugins
    plugins.append(PluginSwitch(send))
    if not config.get("plain"):
        hide_folder_names()
        (private / "cache").mkdir(exist_ok=True)  # else pytest makes it, with files that explain it
    if "placeholders" in config:
        plugins.append(MissingSupply(config["placeholders"], blame))
    if "trace" in config:
        plugins.append(Tracer(config["trace"], room, line_recorders.build_recorder, send))
    if "challenge" in config:
        told = {**config["challenge"], "bare": "shuffle" in config and __debug__}
        plugins.append(ChallengePlugin(told, room, blame.is_foreign, send))
    if config["mode"] == "run" and "apart" not in config:  # else there is no code under test here to guard against
        plugins += build_guards(room, blame, send, config)
    return plugins


def build_guards(room: Path, blame: BlameFinder, send: Send, config: dict[str, Any]) -> list[object]:
    """Build the plug-ins that watch over the judging. `TamperCheck` remembers what it finds, so it is made last."""
    files = [room / name for name in sorted({one.partition("::")[0] for one in config["ids"]})]
    sources = [file.read_bytes() for file in files if file.is_file()]
    if config.get("plain"):
        return [TamperCheck(blame, send, sources)]
    load_imports(sources, str(room))
    return [HideTestName(str(room), blame.is_test_file), TamperCheck(blame, send, sources)]


class PluginSwitch:
    """Switches plug-ins off that distribute tests or measure coverage, where they are loaded; reports the first."""

    def __init__(self, send: Send) -> None:
        self._send, self._distributes = send, False

    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Iterator[None]:
        """Switch off what is decided before the options of the project are read."""
        self._switch_off(early_config.known_args_namespace)
        yield

    def pytest_cmdline_parse(self) -> Iterator[None]:
        """Switch off what they say."""
        outcome: Any = yield
        if not outcome.excinfo:
            self._switch_off(outcome.get_result().option)

    def close(self) -> None:
        """Report whether the project has its tests distributed."""
        if self._distributes:
            self._send(["distributed"])

    def _switch_off(self, options: object) -> None:
        self._distributes |= any(getattr(options, name, None) for name in DISTRIBUTING)
        for name, value in SWITCHED_OFF.items():
            if hasattr(options, name):
                setattr(options, name, value)


def mark(plugin: object, pytest: ModuleType) -> None:
    """Tell pytest which hooks of *plugin* come first or wrap others; its class was made without pytest."""
    for name, hook in vars(type(plugin)).items():
        if name in WRAPPERS:
            pytest.hookimpl(hookwrapper=isgeneratorfunction(hook), tryfirst=True)(hook)
        elif name.startswith("pytest_"):
            pytest.hookimpl(trylast=True)(hook)


PLUGINS = (Reporter, PluginSwitch, Tracer, ChallengePlugin, MissingSupply, HideTestName, TamperCheck, CollectionRoot)
"""Classes of our plug-ins."""


def describe_versions(pytest: str, room: Path, config: dict[str, Any]) -> dict[str, object]:
    """Return what a hello says: the versions that run, and what of the room stands before something installed."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, "pytest": pytest, "shadows": list_shadowing(room, config["args"], config["paths"])}


def build_arguments(room: Path, private: Path, config: dict[str, Any]) -> list[str]:
    """Return the command line for pytest. Options of the project that would break a verdict are switched off last."""
    there = [arg for arg in config["args"] if (room / arg.partition("::")[0]).exists()]
    options = [f"--rootdir={room}", f"--confcutdir={room}", "--continue-on-collection-errors", "--maxfail=0"]
    found = find_configuration(room, there)
    if not config.get("plain"):
        options += ["-c", found, "-o", f"cache_dir={private / 'cache'}", f"--basetemp={private / 'pytest'}",
                    "--color=no", "--verbosity=-1"]  # fmt: skip
        options += QUIET if config.get("quiet") else ("--tb=short", "--no-summary")
    elif found == os.devnull and not NAMES_FILE.search(os.environ.get("PYTEST_ADDOPTS", "")):
        options += ["-c", found]  # else pytest would look above the room
    if "challenge" in config or "placeholders" in config:
        options.append("--assert=rewrite")
    elif "shuffle" in config and __debug__:  # a confirmation, in which nobody reads what an assertion says
        options.append("--assert=plain")
    if config["mode"] == "collect" and "placeholders" not in config:
        options.append("--collect-only")
    # One absent test file must not keep the others from running; if all are absent, pytest shall say so.
    return [*options, *(there or config["args"])]


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
