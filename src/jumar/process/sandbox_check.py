"""Checks that a sandbox confines: tries what a process can reach in it, in the folder of real runs."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

from jumar.core.state.verdict import Ended
from jumar.errors import BadInput
from jumar.ports import Sandbox
from jumar.process.child_process import run_confined
from jumar.process.launch import Confinement
from jumar.process.output import read_output
from jumar.process.room import lay_out
from jumar.process.shell_check import build_shell_invocation
from jumar.sandbox import seccomp
from jumar.sandbox.bwrap import Bubblewrap, find_programs
from jumar.workspace.files.disk_faults import explain_disk_faults

PROBE_SECONDS = 20.0

_PROBE = """
refuse() { echo "$1"; exit 1; }
outside=$1 inside=$2; shift 2
for namespace; do
    name=${namespace%%:*}
    [ "$(readlink "/proc/self/ns/$name")" != "$namespace" ] || refuse "it shares the $name namespace of jumar"
done
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || refuse 'it leaves capabilities'
grep -q '^NoNewPrivs:[[:space:]]*1$' /proc/self/status || refuse 'privileges can be gained in it'
grep -q '^Seccomp:[[:space:]]*2$' /proc/self/status || refuse 'it filters no system calls'
[ ! -e "$outside" ] || refuse "$outside can be seen in it"
[ ! -w /usr/bin ] || refuse '/usr/bin can be written in it'
! (: >> /proc/self/oom_score_adj) 2>/dev/null || refuse '/proc can be written in it'
[ "$(cat kept)" = "$inside" ] || refuse 'it does not show the room'
echo changed > kept && echo new > written || refuse 'the room cannot be written in it'
echo "$inside"
"""


async def find_bubblewrap(folder: Path, environ: Mapping[str, str]) -> Bubblewrap:
    """Return the first bubblewrap of this machine that confines, with an overlay if it can make one.

    Args:
        folder: where rooms will lie, an absolute path: not every file system can lie below an overlay.
        environ: its PATH finds the program.

    Raises:
        BadInput: if none confines.
    """
    known = seccomp.build_filter()
    if known is None:
        raise BadInput("bubblewrap alone does not confine, and the system calls of this kind of machine are not known")
    reasons = []
    for program in find_programs(environ):
        for layered in (True, False):
            box = Bubblewrap(program, known, layered=layered)
            reason = await check_sandbox(box, folder)
            if not reason:
                return box
        reasons.append(f"{program} does not confine: {reason}")
    raise BadInput(f"{'; '.join(reasons)}: allow user namespaces to it, or take a weaker sandbox (--sandbox)")


async def check_sandbox(sandbox: Sandbox, folder: Path) -> str:
    """Return why *sandbox* does not confine a process in a room in *folder*, in one sentence; empty if it does."""
    decoy = _Decoy(secrets.token_hex(8))
    async with lay_out(decoy, "", folder) as room:
        with explain_disk_faults(f"cannot write to {folder}"), tempfile.NamedTemporaryFile(dir=folder) as output:
            confinement = Confinement(room=room, output=Path(output.name), seconds=PROBE_SECONDS, sandbox=sandbox)
            async with run_confined(
                build_shell_invocation(_PROBE, output.name, decoy.word, *_list_namespaces()), confinement
            ) as child:
                while await child.receive() is not None:
                    pass
            lines = read_output(Path(output.name)).strip().splitlines()
            if child.ended is not Ended.NORMAL or lines != [decoy.word]:
                return lines[-1] if lines and child.ended is not Ended.TIMEOUT else child.detail
            return "" if decoy.is_untouched(room) else "what is written in it comes out"


class _Decoy:
    """A store whose only tree is one file that contains *word*."""

    def __init__(self, word: str) -> None:
        self.word = word

    def materialise(self, tree: str, dest: Path) -> None:  # noqa: ARG002  # the protocol's name for it
        """Lay out *tree* in *dest*; see `room.TreeStore`."""
        dest.mkdir(parents=True)
        (dest / "kept").write_text(self.word, "ascii")

    def is_untouched(self, room: Path) -> bool:
        """Return whether *room* is as it was laid out."""
        return (room / "kept").read_text("ascii") == self.word and not (room / "written").exists()


def _list_namespaces() -> tuple[str, ...]:
    """Return the names of this process's own namespaces, such as `net:[4026531840]`."""
    return tuple(str(Path("/proc/self/ns", name).readlink()) for name in ("user", "mnt", "pid", "net", "ipc", "uts"))
