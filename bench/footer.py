"""How many tokens the strict gate costs: the footer under each test result, and a claim with its answer.

    python bench/footer.py

Tokens are counted by the tokenizer of the packaged small model (extra `local-llm`) and, where `bpe-openai` is
installed, by `o200k_base`. A claim is the JSON of the call and the answer beside it. It has to name a test and a file:
what that takes by itself is shown apart.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from jumar.core.prompts import conversation
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.test_policy import Gate, TestPolicy

FOOTER, CLAIM = 80, 30
"""The most tokens that each may cost; a claim without the names that it is about."""

NAMES = (
    ("test_gcd.py::test_gcd", "gcd.py"),
    ("tests/test_app.py::test_sum", "src/app.py"),
    ("sample.test.js::adds > two numbers", "sample.js"),
    ("tests/unit/test_session_store.py::TestStore::test_expires", "src/session/store.py"),
    ("internal/ledger/ledger_test.go::TestReserveRefusesWhatWouldPassTheCap", "internal/ledger/ledger.go"),
)
"""Tests and files as projects name them, the long ones last."""

Count = Callable[[str], int]


class Cost(NamedTuple):
    """Tokens of one thing."""

    what: str
    tokens: int
    names: int = 0
    """How many of them name the test and the file."""

    @property
    def own(self) -> int:
        """What it costs beyond the names."""
        return self.tokens - self.names


def footers(count: Count) -> list[Cost]:
    """What the gate adds to a test result that is red, and to one that is green."""
    found = []
    for ok in (False, True):
        shown = ev.Observation(name="driver.run_tests", content={"ok": ok, "output": "2 of 3 passed"})
        off, strict = (count(conversation.describe_events([shown], _start(gate))) for gate in (Gate.OFF, Gate.STRICT))
        found.append(Cost(f"footer of a {'green' if ok else 'red'} result", strict - off))
    return found


def claims(count: Count) -> list[Cost]:
    """What a claim adds to a conversation."""
    found = []
    for test_id, path in NAMES:
        arguments: dict[str, object] = {"test_id": test_id, "edit_target": path}
        called = json.dumps({"name": "edit_claim", "arguments": arguments}, separators=(",", ":"))
        taken = ev.ActionTaken(name="edit_claim", args=arguments, admitted=True, last=True)
        answer = conversation.describe_events(
            [taken, ev.EditClaim(test_id=test_id, edit_target=path)], _start(Gate.STRICT)
        )
        names = count(test_id) + count(path)
        found.append(Cost(f"claim of {test_id} for {path}", count(called) + count(answer), names))
    return found


def _start(gate: Gate) -> ev.RunStart:
    return ev.RunStart(
        run="r", task="t", agent="driver", model="m", test_policy=TestPolicy.ON_WRITE, gate=gate, budget=Budget(),
        expected=(), tree="",
    )  # fmt: skip


@contextmanager
def small() -> Iterator[Count]:
    """The tokenizer of the packaged model, behind its server."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from support.processes.local_llm import serving  # noqa: PLC0415  it lies beside the tests that need it

    with serving() as server:
        yield lambda text: _asked(server.url, text)


def _asked(url: str, text: str) -> int:
    body = json.dumps({"content": text}).encode()
    request = urllib.request.Request(f"{url}/tokenize", body, {"Content-Type": "application/json"})  # noqa: S310  loopback
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  as above
        return len(json.load(answer)["tokens"])


def large() -> Count | None:
    """The tokenizer of larger models, where it is installed."""
    if find_spec("bpe_openai") is None:
        return None
    encoding: Any = import_module("bpe_openai").get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text))


def main() -> None:
    """Print what everything costs."""
    other = large()
    with small() as count:
        for name, counted in (("SmolLM2", count), *((("o200k_base", other),) if other else ())):
            print(f"{name}\n{'tokens':>8} {'names':>6} {'own':>5}")
            for cost in (*footers(counted), *claims(counted)):
                print(f"{cost.tokens:8} {cost.names:6} {cost.own:5}  {cost.what}")


if __name__ == "__main__":
    main()
