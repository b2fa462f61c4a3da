"""`jumar claim`: to a run that works an agent over loopback, or to the session of the hooks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import anyio
import pytest

from jumar.cli.main import call
from jumar.errors import BadInput, Infra
from jumar.hooks.claim_command import ClaimOutcome, claim_in_session, request_claim
from support.processes.fake_claude_code import RED, Host, repository


@contextmanager
def run(answer: bytes, status: int = 200) -> Iterator[tuple[str, list[tuple[str, object]]]]:
    """A run that listens on loopback: its address, and what it was asked."""
    heard: list[tuple[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/token", heard
        finally:
            server.shutdown()
            thread.join()


def test_a_run_is_asked_at_its_address() -> None:
    with run(b'{"admitted": true, "text": "claimed"}') as (address, heard):
        assert request_claim(address, "t.py::a", "a.py") == ClaimOutcome(admitted=True, text="claimed")
    assert heard == [("/token/claim", {"test_id": "t.py::a", "edit_target": "a.py"})]


@pytest.mark.parametrize(
    ("answer", "status"), [(b"", 200), (b"{}", 200), (b"[]", 200), (b'{"admitted": 1, "text": ""}', 200), (b"", 403)]
)
def test_an_answer_that_is_none_claims_nothing(answer: bytes, status: int) -> None:
    with run(answer, status) as (address, _), pytest.raises(Infra, match="did not take the claim"):
        request_claim(address, "t.py::a", "a.py")


def test_nobody_there_claims_nothing() -> None:
    with run(b"") as (address, _):
        pass
    with pytest.raises(Infra, match="did not take the claim"):
        request_claim(address, "t.py::a", "a.py")


@pytest.mark.parametrize(
    "address", ["http://example.com/x", "https://127.0.0.1/x", "file:///etc/passwd", "x", "http://"]
)
def test_only_this_machine_is_asked(address: str) -> None:
    with pytest.raises(BadInput, match="on this machine"):
        request_claim(address, "t.py::a", "a.py")


@pytest.mark.parametrize(("admitted", "status"), [(True, 0), (False, 1)])
def test_the_command_says_one_line_and_its_exit_status_tells(
    admitted: bool,  # noqa: FBT001  a parameter of the test
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with run(json.dumps({"admitted": admitted, "text": "it is said"}).encode()) as (address, _):
        monkeypatch.setenv("JUMAR_HOST", address)
        assert call(["claim", "t.py::a", "a.py"]) == status
        assert capsys.readouterr().out == "it is said\n"
        assert call(["claim", "t.py::a", "a.py", "--json"]) == status
        assert json.loads(capsys.readouterr().out) == {"admitted": admitted, "text": "it is said"}


def test_in_a_run_files_are_named_from_where_the_agent_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "t.py").touch()
    monkeypatch.chdir(tmp_path / "src")
    monkeypatch.setenv("JUMAR_WORKSPACE", str(tmp_path))
    with run(b'{"admitted": true, "text": "claimed"}') as (address, heard):
        monkeypatch.setenv("JUMAR_HOST", address)
        for test, target in (("t.py::a", "a.py"), ("../t.py::a", "./a.py"), ("t.py::a", f"{tmp_path}/src/a.py")):
            assert call(["claim", test, target]) == 0
        assert call(["escalate", "../t.py::a", "x"]) == 0
        assert call(["claim", "t.py::a", "../../a.py"]) == 2, "a slip of the path ends no run"
    assert heard[:3] == [("/token/claim", {"test_id": "t.py::a", "edit_target": "src/a.py"})] * 3
    assert heard[3:] == [("/token/escalate", {"test_id": "t.py::a", "reason": "x"})]


def test_a_run_that_has_ended_says_so() -> None:
    said = b'{"error": {"type": "run_ended", "message": "jumar: the run has ended (budget)"}}'
    with run(said, 402) as (address, _):
        told = request_claim(address, "t.py::a", "a.py")
    assert told == ClaimOutcome(admitted=False, text="refused: the run has ended (budget)")


def test_without_a_session_there_is_nobody_to_claim_from(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no session here"):
        anyio.run(claim_in_session, tmp_path, "t.py::a", "a.py", {})


@pytest.mark.slow
def test_the_session_of_the_hooks_takes_claims(tmp_path: Path) -> None:
    host = Host(repository(tmp_path / "repo"))
    (host.root / "sub").mkdir()
    (host.root / "link.py").symlink_to("calc.py")
    (host.root / "twin.py").hardlink_to(host.root / "run.sh")
    host.prompt()

    def said(test: str, target: str, here: Path = host.root) -> str:
        return anyio.run(claim_in_session, here, test, target, host.environ).text

    assert "read-only" in said(RED, "test_calc.py")
    assert said("test_calc.py::test_mul", "calc.py").startswith("refused: test_calc.py::test_mul is green")
    assert said("test_calc.py::test_no", "calc.py").startswith("refused: ")
    for ignored in (".env", "build/new.py", "a.log", ".git/hooks/x", "node_modules/x.js"):
        assert "part of no tree" in said(RED, ignored)
        assert said(RED, ignored) != (why := host.write(ignored, "KEY=2\n"))
        assert "part of no tree" in why or "is closed to edits" in why, "no claim is advised that would be refused"
    assert said(RED, "link.py") == f"refused: {host.root}/link.py is a link; name the file itself"
    assert "has a second name" in said(RED, "twin.py")
    assert host.stop().said == {}, "no claim is left open that nothing could close"
    with pytest.raises(BadInput, match="is not in"):
        said(RED, "../other.py")
    assert said("../test_calc.py::test_add", "../calc.py", host.root / "sub").startswith("claimed: calc.py")
    assert host.edit("calc.py", "a - b", "a + b") == ""
