"""Runs a test binary that libtest made, and believes it only where its lines, its sum and its status agree."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Send = Callable[[list[object]], None]

LINE = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, .*)?$", re.MULTILINE)
SUM = re.compile(r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; .*$", re.MULTILINE)
BEGUN = re.compile(r"^running \d+ tests?$", re.MULTILINE)
SECTION = re.compile(r"^---- (\S+) stdout ----$", re.MULTILINE)
LISTED = re.compile(r"^(\S+): test$", re.MULTILINE)
THREAD = re.compile(r"^(thread '.*?') \(\d+\)", re.MULTILINE)
"""The number of a thread differs from run to run."""

OUTCOMES = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}

LOOK_SECONDS = 0.05
OUTPUT_BYTES = 32 << 20
"""A binary that prints more is stopped."""
NAMES_BYTES = 500_000
"""Names that go on one command line."""
FAILED_STATUS = 101
"""libtest's own exit status where a test failed."""


class BinaryRun(NamedTuple):
    """One process of a compiled test binary."""

    out: str
    err: str
    status: int | None
    """Exit status; None if it was stopped."""
    ms: int

    def is_complete(self, names: Sequence[str]) -> bool:
        """Return whether libtest finished, and its lines for *names*, its sum and its exit status agree."""
        lines = [outcome for name, outcome in LINE.findall(self.out) if name in names]
        said = [tuple(map(int, found)) for found in SUM.findall(self.out)]
        counted = tuple(lines.count(word) for word in OUTCOMES)
        return said == [counted] and self.status == (FAILED_STATUS if counted[1] else 0)

    @property
    def why(self) -> str:
        """Return its output, and how it ended."""
        how = "was stopped" if self.status is None else f"ended with status {self.status}"
        how = f"was killed by {signal.Signals(-self.status).name}" if self.status and self.status < 0 else how
        return f"the process of the test {how}\n{self.err or _get_output_after_start(self.out)}"


class LibtestBinary:
    """One test binary that cargo compiled."""

    def __init__(self, path: str, root: str, cwd: str, env: Mapping[str, str], limit: float) -> None:
        self.root = root
        self._path, self._cwd, self._env, self._limit = path, cwd, env, limit

    def list_tests(self) -> tuple[str, ...]:
        """Return the names of its tests."""
        return tuple(LISTED.findall(self._run(["--list", "--format", "terse"]).out))

    def judge(self, names: Sequence[str], send: Send) -> None:
        """Run *names*, all at once, and send a result for each that is there."""
        for batch in _split_batches(names):
            ran = self._run(["--exact", "--include-ignored", *self._choose_threads(), *batch])
            if ran.is_complete(batch):
                self._tell(ran, batch, send)
                continue
            if not BEGUN.search(ran.out) and ran.status is not None:
                for name in batch:
                    send(self._build_result(name, "error", ran.why, "test"))
                continue
            reported = {name for name, _ in LINE.findall(ran.out)}
            lost = [name for name in batch if name not in reported]
            for name in batch:
                if ran.status is None and lost == [name]:
                    send(self._build_timeout(name, ran))
                else:
                    self._run_alone(name, send)

    def _run_alone(self, name: str, send: Send) -> None:
        """Run one test in a process of its own."""
        send(["start", f"{self.root}::{name}"])
        ran = self._run(["--exact", "--include-ignored", "--test-threads=2", name])
        if ran.is_complete([name]) or [n for n, _ in LINE.findall(ran.out)].count(name) > 1:
            self._tell(ran, [name], send)
        elif ran.status is None:
            send(self._build_timeout(name, ran))
        else:
            send(self._build_result(name, "error", ran.why, "code", ran.ms))

    def _tell(self, ran: BinaryRun, names: Sequence[str], send: Send) -> None:
        sections = _split_sections(ran.out)
        for name, word in LINE.findall(ran.out):
            if name in names:
                said = sections.get(name) or f"{name} failed and printed nothing"
                failed = word == "FAILED"
                ms = ran.ms if len(names) == 1 else 0
                send(self._build_result(name, OUTCOMES[word], said if failed else "", "code" if failed else "", ms))

    def _build_timeout(self, name: str, ran: BinaryRun) -> list[object]:
        return self._build_result(name, "timeout", f"ran longer than {self._limit:g} s\n{ran.err}", "code", ran.ms)

    def _build_result(self, name: str, outcome: str, said: str, blame: str, ms: int = 0) -> list[object]:
        return ["result", f"{self.root}::{name}", outcome, ms, THREAD.sub(r"\1", said), blame, ""]

    def _choose_threads(self) -> tuple[str, ...]:
        """Return the option for two threads at least: with one, libtest puts half a line before a test's output."""
        threads = os.cpu_count() or 2
        return () if "RUST_TEST_THREADS" in self._env else (f"--test-threads={max(2, threads)}",)

    def _run(self, arguments: Sequence[str]) -> BinaryRun:
        started = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(  # noqa: S603  what cargo has built
                [self._path, *arguments, "--color=never"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self._cwd, env=self._env, start_new_session=True,
            )  # fmt: skip
            status = self._wait_for_end(process, out.fileno(), err.fileno())
            printed, complained = _read(out.fileno()), _read(err.fileno())
        sys.stdout.write(printed + complained)
        return BinaryRun(printed, complained, status, int(1000 * (time.monotonic() - started)))

    def _wait_for_end(self, process: subprocess.Popen[bytes], out: int, err: int) -> int | None:
        """Return the exit status; None if no test ended for too long, or too much was printed, and it was killed."""
        seen, size, since = 0, 0, time.monotonic()
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK_SECONDS)
            if os.fstat(out).st_size != size:
                size = os.fstat(out).st_size
                lines = len(LINE.findall(_read(out)))
                seen, since = (lines, time.monotonic()) if lines > seen else (seen, since)
            if time.monotonic() - since > self._limit or size + os.fstat(err).st_size > OUTPUT_BYTES:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None


def _read(fd: int) -> str:
    return os.pread(fd, OUTPUT_BYTES, 0).decode("utf-8", "replace")


def _split_batches(names: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for name in names:
        if sum(map(len, batch)) + len(name) > NAMES_BYTES:
            yield batch
            batch = []
        batch.append(name)
    if batch:
        yield batch


def _split_sections(out: str) -> dict[str, str]:
    """Return the output of each failed test."""
    pieces = SECTION.split(out.rpartition("\nfailures:\n")[0])
    return {name: text.strip("\n") for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def _get_output_after_start(out: str) -> str:
    """Return the output printed after the tests had begun."""
    begun = BEGUN.search(out)
    return out[begun.end() :].strip() if begun else out
