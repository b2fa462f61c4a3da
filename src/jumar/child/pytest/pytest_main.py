"""Runs pytest in the confined process. It loads pytest before the room can be seen; only jumar's plug-in reports.

Standard library and pytest only, Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child import normalise, program_end, test_timeout
from jumar.child.channel import join
from jumar.child.import_watch import ImportWatch
from jumar.child.pytest import tracebacks
from jumar.child.pytest.asked_names import load_imports
from jumar.child.pytest.blame import BlameFinder
from jumar.child.pytest.challenge_plugin import ChallengePlugin
from jumar.child.pytest.hide_tests import HideTestName, hide_folder_names
from jumar.child.pytest.import_paths import CollectionRoot, add_room_to_path, list_shadowing
from jumar.child.pytest.line_tracer import Tracer
from jumar.child.pytest.missing_supply import MissingSupply
from jumar.child.pytest.preparation import PluginSwitch, build_arguments, mark
from jumar.child.pytest.reporter import Reporter
from jumar.child.pytest.tamper_check import TamperCheck

if TYPE_CHECKING:
    from collections.abc import Callable

    Send = Callable[[list[object]], None]

FRIENDS = ("assertion.rewrite", "assertion.util", "capture", "fixtures", "main", "mark.structures", "monkeypatch",
           "outcomes", "python", "python_api", "raises", "reports", "runner", "skipping", "terminal", "tmpdir",
           "unittest")  # fmt: skip
"""Parts of pytest that it may load late, and then must not find in the room."""


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
    args = build_arguments_or_leave(pytest, room, private, config, send)
    gc.freeze()  # so that no collection goes through the whole of pytest again
    gc.enable()
    sys.argv[:] = ["pytest", *args]
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


def build_arguments_or_leave(pytest: Any, room: Path, private: Path, config: dict[str, Any], send: Send) -> list[str]:
    """Return the command line for *pytest*; where it cannot read its configuration, report that and leave."""
    try:
        return build_arguments(room, private, config)
    except pytest.UsageError as error:
        send(["usage", f"pytest refuses its configuration: {str(error).replace(f'{room}/', '')}"])
        os._exit(3)


def import_friends() -> None:
    """Import the parts of pytest that `FRIENDS` names, as far as it has them."""
    for friend in FRIENDS:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"_pytest.{friend}")


def build_plugins(config: dict[str, Any], room: Path, private: Path, send: Any) -> list[object]:
    """Return the plug-ins that report and judge."""
    tracebacks.keep_trees()
    blame, cleaned = BlameFinder(str(room)), normalise.build_normaliser(str(room), str(private))
    limit = test_timeout.TimeLimit(config["limit"])
    plugins: list[object] = [Reporter(config, send, cleaned, blame, limit), PluginSwitch(send)]
    hide_folder_names()
    (private / "cache").mkdir(exist_ok=True)  # else pytest makes it, with files that explain it
    if "placeholders" in config:
        plugins.append(MissingSupply(config["placeholders"], blame))
    if "trace" in config:
        plugins.append(Tracer(config["trace"], room, send))
    if "challenge" in config:
        told = {**config["challenge"], "bare": config.get("bare", False) and __debug__}
        plugins.append(ChallengePlugin(told, room, blame.is_foreign, send))
    if config["mode"] == "run" and "apart" not in config:  # else there is no code under test here to guard against
        plugins += build_guards(room, blame, send, config)
    return plugins


def build_guards(room: Path, blame: BlameFinder, send: Send, config: dict[str, Any]) -> list[object]:
    """Build the plug-ins that watch over the judging. `TamperCheck` remembers what it finds, so it is made last."""
    hidden = HideTestName(str(room), blame.is_test_file)
    if "refutes" in config:
        return [hidden]
    files = [room / name for name in sorted({one.partition("::")[0] for one in config["ids"]})]
    sources = [file.read_bytes() for file in files if file.is_file()]
    load_imports(sources, str(room))
    return [hidden, TamperCheck(blame, send, sources)]


PLUGINS = (Reporter, PluginSwitch, Tracer, ChallengePlugin, MissingSupply, HideTestName, TamperCheck, CollectionRoot)
"""Classes of our plug-ins."""


def describe_versions(pytest: str, room: Path, config: dict[str, Any]) -> dict[str, object]:
    """Return what a hello says: the versions that run, and what of the room stands before something installed."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, "pytest": pytest, "shadows": list_shadowing(room, config["args"], config["paths"])}
