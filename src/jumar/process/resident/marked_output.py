"""Cuts the output of one process into the parts of its orders, at marks that the process prints after each."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
from anyio import to_thread

from jumar.process.launch import OUTPUT_BYTES
from jumar.workspace.files.disk_faults import explain_disk_faults

MARK_SECONDS, LOOK_SECONDS = 1.0, 0.002
"""The supervisor writes what was printed to a file: how late that may be, and how often it is looked for."""


class MarkedOutput:
    """Output of a process in the file *source*, or nowhere."""

    def __init__(self, source: Path | None) -> None:
        self._source = source
        self._read = 0
        """Bytes that belong to the orders before."""

    async def copy(self, mark: str, output: Path) -> bool:
        """Copy the text since the last order, up to *mark*, to *output*; return whether more may follow."""
        if self._source is None:
            return True
        until, whole = time.monotonic() + MARK_SECONDS, f"\n{mark}\n".encode()
        with explain_disk_faults(f"cannot copy {self._source} to {output}"):
            while True:
                said = await to_thread.run_sync(_read_from, self._source, self._read)
                text, found, _ = said.partition(whole)
                if found or time.monotonic() > until:
                    break
                await anyio.sleep(LOOK_SECONDS)
            await to_thread.run_sync(output.write_bytes, text)
        self._read += len(text) + len(found)
        # Beyond its cap only the end of the output is kept, and that comes when the process is gone.
        return bool(found) and self._read < OUTPUT_BYTES // 2


def _read_from(path: Path, start: int) -> bytes:
    with path.open("rb") as stream:
        stream.seek(start)
        return stream.read()
