"""Runs `go test` once for all requested tests, and sends its events as records."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child import runner_bridge
from jumar.child.commands import toolchain_main
from jumar.child.go import compile_errors
from jumar.child.go.package_results import PackageResults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Record = list[object]
    Send = Callable[[Record], None]

ARGUMENT_BYTES = 100_000
"""A longer argument is not made: no kernel takes one of 128 KiB."""

LOOK_SECONDS = 0.05
"""Interval for checking whether a test runs longer than it may."""

KILL_SECONDS = 1.0
"""A test binary has as long to print its stacks before it is killed."""

MODULE = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
GO = re.compile(r"^go\s+(\d+(?:\.\d+)*)", re.MULTILINE)
FAILED = re.compile(r"^FAIL\s+(\S+) \[(?:build|setup) failed\]", re.MULTILINE)
"""Output of go for a package that does not build where it has no event for that, before 1.24."""


def run_job(config: dict[str, Any], send: Send) -> int:
    """Collect or run, as the config says."""
    go = shutil.which("go")
    if go is None:
        send(["unusable", f"there is no go on the PATH of the sandbox: {os.environ.get('PATH')}"])
        return 3
    send(["hello", {"go": go}])
    toolchain_main.prepare_go_cache()
    workplace = GoWorkspace(config["homes"])
    if workplace.why:
        send(["usage", workplace.why])
        return 3
    session = (GoListing if config["mode"] == "collect" else GoTestRun)(config, send, workplace, go)
    if config["homes"]:
        argv = [go, "test", "-json", "-vet=off", *session.build_options(), *workplace.list_packages()]
        with session.watch():
            status = runner_bridge.run_program(
                argv, session.hear, stderr=subprocess.STDOUT, cwd=workplace.base, kept=_get_text
            )
        session.close(status)
    return 0


class GoWorkspace:
    """Folder to start go in, so that it finds the modules of the room, and none above it."""

    def __init__(self, homes: Iterable[str]) -> None:
        self.homes = list(homes)
        owners = {
            folder: next((up for up in _list_upwards(folder) if Path(up, "go.mod").is_file()), "")
            for folder in self.homes
        }
        lost = [folder for folder, owner in owners.items() if not owner]
        self.why = f"no go.mod stands in {lost[0]} or above it in the task; make one with `go mod init`" if lost else ""
        texts = {owner: Path(owner, "go.mod").read_text("utf-8", "replace") for owner in owners.values() if owner}
        self.modules = {found[1]: owner for owner, text in texts.items() if (found := MODULE.search(text))}
        whole = Path("go.work").is_file()
        self.base = next(iter(texts)) if len(texts) == 1 and not whole else "."
        if len(texts) > 1 and not whole:
            os.environ["GOWORK"] = self._make_workspace(texts)
        elif not whole:
            os.environ["GOWORK"] = "off"

    def list_packages(self) -> list[str]:
        """Return the packages as arguments of `go test`."""
        return [f"./{os.path.relpath(folder, self.base)}" for folder in self.homes]

    def list_names(self, folder: str) -> tuple[str, ...]:
        """Return the names that go uses for the package in *folder*."""
        found = [f"./{os.path.relpath(folder, self.base)}"]
        for module, owner in self.modules.items():
            inner = os.path.relpath(folder, owner)
            if not inner.startswith(".."):
                found.append(module if inner == "." else f"{module}/{inner}")
        return tuple(found)

    def _make_workspace(self, texts: dict[str, str]) -> str:
        """Return a workspace of the modules, outside of the room: one go command can then test them all."""
        versions = ["1.18", *(found[1] for text in texts.values() if (found := GO.search(text)))]
        newest = max(versions, key=lambda version: [int(part) for part in version.split(".")])
        lines = [f"go {newest}", *(f"use {json.dumps(str(Path(owner).resolve()))}" for owner in texts)]
        path = Path(os.environ["TMPDIR"], "go.work")
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return str(path)


class GoTestStream(ABC):
    """Reads the output of one `go test`: a line of JSON is an event, any other line comes from go itself."""

    def __init__(self, config: dict[str, Any], send: Send, workplace: GoWorkspace, go: str) -> None:
        self._go = go
        self._send, self._workplace, self._ids = runner_bridge.build_plain_sender(send), workplace, config["ids"]
        self._project = compile_errors.GoPackages(workplace.modules)
        self._packages: dict[str, PackageResults] = {}
        self._builds: dict[str, str] = {}
        self._listed: dict[str, set[str]] = {}
        self._unplaced, self._heard = "", False
        for folder, homes in config["homes"].items():
            own = PackageResults(folder, homes, self._ids, config["limit"])
            self._packages.update(dict.fromkeys(workplace.list_names(folder), own))

    def watch(self) -> contextlib.AbstractContextManager[None]:
        """Run the body: not every session is watched."""
        return contextlib.nullcontext()

    def hear(self, line: str) -> None:
        """Decode one line that `go test -json` printed."""
        event = _parse_event(line)
        if event is None:
            self._unplaced += line
            return
        self._heard = True
        if event.get("Action") == "build-output":
            self._builds[event["ImportPath"]] = self._builds.get(event["ImportPath"], "") + event["Output"]
        package = self._packages.get(event.get("Package", ""))
        if package is None or package.ended:
            return
        for record in self.build_records(package, event):
            self._send(record)

    def build_records(self, package: Any, event: dict[str, Any]) -> list[Record]:
        """Return the records that *event* makes."""
        over = event.get("Action") in ("pass", "fail", "skip") and not event.get("Test")
        if over and (event.get("FailedBuild") or FAILED.search(package.get_output(""))):
            package.ended = True
            return self._report_unbuilt(package, self._builds.get(event.get("FailedBuild", ""), self._unplaced))
        return (
            self.build_end_records(package, failed=event["Action"] == "fail")
            if over
            else package.hear(event, time.monotonic())
        )

    @abstractmethod
    def build_end_records(self, package: Any, *, failed: bool) -> list[Record]:
        """Return the records that the end of *package* makes."""

    def close(self, status: int) -> None:
        """Report the packages that go sent no event of."""
        if status and not self._heard and not FAILED.search(self._unplaced):
            why = toolchain_main.check_go(self._go, self._unplaced) or runner_bridge.normalise_text(self._unplaced)
            self._send(["usage", why or f"go test left with status {status}"])
            return
        for name in FAILED.findall(self._unplaced):
            package = self._packages.get(name)
            if package is not None and not package.ended:
                package.ended = True
                for record in self._report_unbuilt(package, self._unplaced):
                    self._send(record)

    def _report_unbuilt(self, package: Any, said: str) -> list[Record]:
        if why := toolchain_main.check_go(self._go, said):
            return [["unusable", why]]
        blame = compile_errors.attribute_errors(said, package.folder, self._workplace.base, self._project)
        return [["broken", path, runner_bridge.normalise_text(said), *blame] for path in package.files]


class GoListing(GoTestStream):
    """Lists the tests of the packages, which compiles them."""

    def build_options(self) -> tuple[str, ...]:
        """Return the options that list all tests."""
        return ("-list", ".")

    def build_records(self, package: Any, event: dict[str, Any]) -> list[Record]:
        """Record the lines that a package prints as the names of its tests."""
        if event.get("Action") == "output":
            self._listed.setdefault(package.folder, set()).add(str(event.get("Output", "")).strip())
        return super().build_records(package, event)

    def build_end_records(self, package: Any, *, failed: bool) -> list[Record]:
        """Return the ids of *package*; without any, its files are broken if it failed."""
        listed = self._listed.get(package.folder, set())
        ids = [f"{path}::{name}" for name, paths in package.homes.items() if name and name in listed for path in paths]
        runner_bridge.collect(self._send, [chosen for test_id in ids for chosen in self._list_chosen(test_id)])
        if ids or not failed:
            return []
        why = runner_bridge.normalise_text(package.get_output(""))
        return [["broken", path, why, package.find_blame(str(Path.cwd())), ""] for path in package.files]

    def _list_chosen(self, test_id: str) -> list[str]:
        """Return *test_id*, or those of its subtests that were selected, or nothing."""
        here = [i for i in self._ids if i.startswith(test_id.partition("::")[0] + "::")]
        return [i for i in here if i == test_id or i.startswith(test_id + "/")] if here else [test_id]


class GoTestRun(GoTestStream):
    """Runs the requested tests, and stops a package in which a test runs longer than it may."""

    def build_options(self) -> tuple[str, ...]:
        """Return the flags of `go test`.

        No cached results, no timeout of its own, and a selection of tests per package.
        """
        path = Path(os.environ["TMPDIR"], "go-exec")
        lines = ["case $PWD in"]
        for package in dict.fromkeys(self._packages.values()):
            selected = f"-test.run={package.build_pattern()}"
            if len(selected.encode()) < ARGUMENT_BYTES:
                place = shlex.quote(str(Path(package.folder).resolve()))
                lines.append(f'{place}) exec "$@" {shlex.quote(selected)} ;;')
        path.write_text("\n".join([*lines, "esac", 'exec "$@"', ""]), "utf-8")
        return ("-count=1", "-timeout=0", f"-exec=/bin/sh '{path}'")

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Watch while the body runs."""
        over = threading.Event()
        looking = threading.Thread(target=self._look, args=(over,), daemon=True)
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()

    def build_end_records(self, package: Any, *, failed: bool) -> list[Record]:
        """Return the results of *package* that were not sent yet."""
        records: list[Record] = package.settle(failed=failed)
        blame = package.find_blame(str(Path.cwd()))
        return [[*r[:5], blame, ""] if failed and not package.began and r[0] == "result" else r for r in records]

    def _look(self, over: threading.Event) -> None:
        while not over.wait(LOOK_SECONDS):
            for package in tuple(self._packages.values()):
                if not package.late and not package.ended and (late := package.find_overdue(time.monotonic())):
                    package.late = late
                    place = str(Path(package.folder).resolve())
                    for number in (signal.SIGQUIT, signal.SIGKILL):
                        _signal(place, number)
                        over.wait(KILL_SECONDS)


def _signal(place: str, number: int) -> None:
    """Send *number* to the test binary that go started in the folder *place*."""
    mark = f"PWD={place}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = str((process / "exe").readlink()).removesuffix(" (deleted)")
            if name.endswith(".test") and mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), number)


def _list_upwards(folder: str) -> list[str]:
    """Return *folder*, and all above it up to the room."""
    path = Path(folder)
    return [str(up) for up in (path, *path.parents)]


def _parse_event(line: str) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError):
        event = json.loads(line) if line.startswith("{") else None
        return event if isinstance(event, dict) and "Action" in event else None
    return None


def _get_text(line: str) -> str:
    """Return the human-readable text of a line of the stream."""
    event = _parse_event(line)
    return line if event is None else str(event.get("Output", ""))


def main() -> None:
    """Run the Go tests that one order on standard input asks for."""
    runner_bridge.serve(run_job)
