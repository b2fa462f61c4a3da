"""Bridge to a runner that is no Python program: it alone holds the channel, and reports what the runner said.

What the runner reports can be written by the code it runs, so evidence that comes this way has grade X.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.child.channel import join
from jumar.child.normalise import build_normaliser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Send = Callable[..., None]
    """See `jumar.child.channel`."""
    Job = Callable[[dict[str, Any], Send], int]
    """Performs the config, sends the records of `jumar.process.records` and returns the status to leave with."""
    RequestJob = Callable[[dict[str, Any], Send, Iterator[object]], int]
    """The same for a process that is sent requests."""

PR_SET_DUMPABLE = 4

BATCH = 500
"""Ids in one record: a record has a size that it may not pass."""

BLAMES = ("code", "test", "absent", "")
"""Blames for a build that fails, the deciding one first: nothing else shows before a fault of the code is mended, no
code can answer a fault of a test, and then comes what is absent."""


def serve(job: Job) -> None:
    """Join the channel, do *job*, say goodbye and leave."""
    serve_requests(lambda config, send, _: job(config, send))


def serve_requests(job: RequestJob) -> None:
    """Join the channel, do *job*, which also takes requests, say goodbye and leave."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415  absent in some builds

        # What it starts runs as the same user, and shall not find the key in this memory.
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    config, send, requests = join()
    status = job(config, send, requests)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    send(["end", status])
    os._exit(status)


def build_shell_status(code: int) -> int:
    """Return the status *code* of a process as shells report it: a death by signal n as 128 and n."""
    return code if code >= 0 else 128 - code


def collect(send: Send, ids: Sequence[str]) -> None:
    """Report the collected test *ids* in batches."""
    for start in range(0, len(ids), BATCH):
        send(["collected", list(ids[start : start + BATCH])])


def choose_blame(found: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the one of *found*, blames with what is absent, that decides; the unknown one if there is none."""
    return min(found, key=lambda blamed: BLAMES.index(blamed[0]), default=("", ""))


def build_plain_sender(send: Send) -> Send:
    """Return a sender that removes from the excerpts of results what differs from room to room."""

    def send_plain(record: list[Any]) -> None:
        result = record[0] == "result"
        send([*record[:4], normalise_text(str(record[4])), *record[5:]] if result else record)

    return send_plain


def run_program(
    argv: Sequence[str],
    hear: Callable[[str], None],
    *,
    stderr: int | None = None,
    cwd: str | None = None,
    kept: Callable[[str], str] = str,
) -> int:
    """Run *argv* in the room (or *cwd*) and hand each line of its standard output to *hear*; its exit status.

    All it prints goes to our own output too, so that the full text is kept; *kept* says what of a line that is
    (JSON is no text for people). No shell, no standard input.

    Raises:
        FileNotFoundError: if there is no such program.
    """
    with subprocess.Popen(  # noqa: S603  an adapter's argv, without a shell
        list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, cwd=cwd
    ) as process:
        if process.stdout is None:
            raise FileNotFoundError(argv[0])
        for raw in process.stdout:
            line = raw.decode("utf-8", "replace")
            sys.stdout.write(kept(line))
            hear(line)
    return process.returncode


def normalise_text(text: str) -> str:
    """Cut *text* to size, and remove what differs from run to run: the room, scratch paths, addresses."""
    return build_normaliser(str(Path.cwd()), os.environ.get("TMPDIR", ""))(text)
