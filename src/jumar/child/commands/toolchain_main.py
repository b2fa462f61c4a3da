"""Tells a toolchain that does not work in its sandbox from tests that do not build, with a control build.

A control is run only after a build failed in a way that a toolchain could be the cause of.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

CONTROL_SECONDS = 60.0

LINES = 2
"""Most lines shown of a control build that failed: those that mention an error, else the last ones."""

GO_MODULE = "module control\n\ngo 1.18\n"
GO_TEST = 'package control\n\nimport (\n\t"fmt"\n\t"testing"\n)\n\nfunc TestIt(t *testing.T) { fmt.Sprint(t.Name()) }\n'
RUST_TEST = "#[test]\nfn control() {\n    assert_eq!(1 + 1, 2);\n}\n"

GO_POSITION = re.compile(r"(?:vet: )?(?!\.\./)\S[^:\n]*\.go:\d+(?::\d+)?: (?!package \S+ is not in |could not import )")
"""A fault of a file of the project's, which no toolchain is the cause of."""

ABORTING = "aborting due to"
"""The last of rustc's messages, which has neither a code nor a place."""

NO_CRATE = "E0463"


def prepare_go_cache() -> None:
    """Let go work with a build cache that it cannot write: its index of packages would be missed for ever."""
    cache = os.environ.get("GOCACHE", "")
    if not cache or os.access(cache, os.W_OK):
        return
    if not os.access(Path(cache, "00"), os.R_OK | os.X_OK):
        os.environ["GOCACHE"] = str(Path(os.environ["TMPDIR"], "go-build"))
        return
    before = os.environ.get("GODEBUG", "")
    if "goindex" not in before:  # the task may have set others
        os.environ["GODEBUG"] = f"{before},goindex=0".lstrip(",")


def check_go(go: str, said: str) -> str:
    """Return why go builds nothing here, if that can explain what it *said* of a failed build; empty if it builds."""
    if any(GO_POSITION.match(line) for line in said.splitlines()):
        return ""
    folder = _make_control({"go.mod": GO_MODULE, "control_test.go": GO_TEST})
    return check_command([go, "test", "-c", "-vet=off", "-o", str(folder / "built"), "."], folder, {"GOWORK": "off"})


def check_rust(cargo: str, messages: Iterable[Mapping[str, Any]]) -> str:
    """Return why rustc builds nothing here, if the compiler's *messages* can have that reason; empty if it builds."""
    told = [m["message"] for m in messages if not str(m["message"].get("message", "")).startswith(ABORTING)]
    if told and all(m.get("spans") and (m.get("code") or {}).get("code") != NO_CRATE for m in told):
        return ""
    folder = _make_control({"control.rs": RUST_TEST})
    rustc = os.environ.get("RUSTC") or "rustc"
    why = check_command([rustc, "--test", "-o", str(folder / "built"), str(folder / "control.rs")], folder)
    return why or check_command([cargo, "--version"], folder)


def check_node(node: str) -> str:
    """Return why node does not start here; empty if it does."""
    return check_command([node, "-e", "0"], Path(os.environ["TMPDIR"]))


def check_command(argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Return why *argv* does not work here, in one sentence; empty if it does."""
    try:
        done = subprocess.run(  # noqa: S603  a toolchain of the person's, without a shell
            list(argv), cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=CONTROL_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"the toolchain does not work in the sandbox: `{argv[0]}` hangs; run `jumar doctor`"
    except OSError as error:
        return f"the toolchain does not work in the sandbox: {argv[0]}: {error.strerror}; run `jumar doctor`"
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line and ABORTING not in line and "more information" not in line]
    said = " ".join(errors[:LINES] or lines[-LINES:]) or f"status {done.returncode}"
    return f"the toolchain does not work in the sandbox: {argv[0]}: {said}; run `jumar doctor`"


def _make_control(files: Mapping[str, str]) -> Path:
    """Return a folder of its own with *files*."""
    folder = Path(os.environ["TMPDIR"], "control")
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder
