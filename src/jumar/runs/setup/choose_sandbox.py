"""Chooses the sandbox of a run: the strongest that withstands the probes here, the requested one, or none.

Nothing is believed that was not tried: a sandbox is let loose on decoys where runs lie, and its tier is what that
showed. Where it was tried before, in the same circumstances, that result counts.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from jumar.core.prompts.suggestion import build_suggestion
from jumar.errors import BadInput
from jumar.ports import Sandbox
from jumar.process.progress import Tell, Work, ignore_progress
from jumar.process.script import ScriptStart
from jumar.runs.setup.selftest_cache import PassedSelftest, SelftestCache
from jumar.sandbox import landlock, other_user, seccomp
from jumar.sandbox.bwrap import Bubblewrap, find_programs
from jumar.sandbox.landlock import Landlocked
from jumar.sandbox.other_user import AnotherUser
from jumar.sandbox.probes import catalogue
from jumar.sandbox.probes.channels import ProbedSandbox
from jumar.sandbox.probes.circumstances import hash_circumstances
from jumar.sandbox.request import AUTO, TIERS
from jumar.sandbox.unconfined import Unconfined
from jumar.workspace.files.disk_faults import explain_disk_faults

CANDIDATES = ("S3", "S2", "S1")
"""Tiers to try, the strongest first."""

NAMED = 3
"""Most probes that are named in one sentence."""

MEND: Mapping[str, str] = {
    "S3": "install bubblewrap (apt install bubblewrap, or pip install 'jumar[sandbox]') and allow user namespaces",
    "S2": "use Linux 5.13 or newer with Landlock; best 6.12, which keeps signals in as well",
    "S1": "run jumar as root, with CAP_SYS_ADMIN where it is in a container",
    "S0": "",
}
"""Advice on how to get a tier that is missing."""

SWITCHES = (
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "give bwrap an AppArmor profile that allows userns, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
"""A file in /proc/sys, what in it forbids user namespaces, and what to do about it."""


class CandidateFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Result of testing one candidate sandbox."""

    candidate: str
    """The tier it was made for."""
    tier: str = ""
    """The tier that its probes showed; empty: it does not start here."""
    possible: tuple[str, ...] = ()
    """Names of `jumar.sandbox.probes.catalogue.PROBES`."""
    evidence: Mapping[str, str] = {}
    """Name of what was possible -> how it was seen."""
    tried: int = 0
    """Number of probes tried."""
    why: str = ""
    """Reason that it is not what it was made for, and what would mend it, in one sentence; empty: it is."""
    seconds: float = 0.0
    remembered: float = 0.0
    """Time of its probes, in seconds since 1970, if they ran at another start; 0: just now."""


class SandboxSurroundings(msgspec.Struct, frozen=True):
    """Folders and environment in which a sandbox is chosen."""

    place: Path
    """An existing folder of ours, an absolute path, on the file system where rooms will lie."""
    environ: Mapping[str, str]
    """The person's environment; its PATH finds bubblewrap."""
    apart: tuple[Path, ...] = ()
    """Folders that the tree under test comes from: nothing that lies there is believed of a sandbox."""
    anew: bool = False
    """True if the self-test runs whatever is remembered."""
    tell: Tell = ignore_progress
    """Is told when a self-test begins: where its result is remembered, none does."""


async def choose_sandbox(wanted: str, around: SandboxSurroundings, *, unattended: bool) -> Sandbox:
    """Return the sandbox of a run.

    Args:
        wanted: `auto` for the strongest there is, or a tier for exactly that one.
        around: what it is chosen in.
        unattended: nobody watches: `auto` is then S3 or nothing.

    Raises:
        BadInput: if there is no such sandbox here; the sentence says why, and what would mend it.
    """
    if wanted not in (AUTO, *TIERS):
        raise BadInput(f"unknown sandbox {wanted!r}; {build_suggestion(wanted, (AUTO, *TIERS))}")
    if wanted == "S0":
        return Unconfined()
    best: Sandbox = Unconfined()
    reasons = []
    async for found, sandbox in _try_candidates(around, CANDIDATES if wanted == AUTO else (wanted,)):
        reasons += [found.why] if found.why else []
        if sandbox is not None and _rank_tier(found.tier) < _rank_tier(best.tier):
            best = sandbox if found.tier == sandbox.tier else ProbedSandbox(sandbox, found.tier)
        if _rank_tier(best.tier) <= _rank_tier(found.candidate):
            break
    least = "S3" if wanted == AUTO and unattended else "S0" if wanted == AUTO else wanted
    if _rank_tier(best.tier) > _rank_tier(least):
        raise BadInput(_build_refusal(wanted, best.tier, reasons))
    return best


async def try_sandbox(wanted: str, around: SandboxSurroundings, *, unattended: bool) -> None:
    """Test the sandbox that later runs in the folder of *around* will choose, so that they can begin at once.

    Raises:
        BadInput: as `choose_sandbox`.
        Infra: if nothing can be written there.
    """
    place = around.place / f".sandbox-{secrets.token_hex(3)}"  # as deep as a run lies, and on the same file system
    with explain_disk_faults(f"cannot write to {around.place}"):
        place.mkdir()
    try:
        await choose_sandbox(wanted, msgspec.structs.replace(around, place=place), unattended=unattended)
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def survey_sandboxes(place: Path, environ: Mapping[str, str], anew: bool = True) -> tuple[CandidateFindings, ...]:  # noqa: FBT001, FBT002  anyio.run takes no keywords
    """Test every candidate here, the strongest first; without *anew*, use remembered findings."""
    return tuple(
        [found async for found, _ in _try_candidates(SandboxSurroundings(place, environ, anew=anew), CANDIDATES)]
    )


async def find_weakening(
    sandbox: Sandbox, place: Path, environ: Mapping[str, str], way: ScriptStart | None = None
) -> str:
    """Return in one sentence why *sandbox* has become weaker; empty if it has not. Takes 0.1 s.

    It is entered in the *way* of the rounds that confirm a green: by our own interpreter where none is given.
    """
    if sandbox.tier == "S0":
        return ""
    from jumar.process.sandbox_probe import OURS, reprobe_sandbox  # noqa: PLC0415  as in `_probe`

    again = await reprobe_sandbox(sandbox, place, environ, way or OURS)
    worse = catalogue.find_excess_probes(sandbox.tier, again.possible)
    if again.why or worse:
        SelftestCache(environ).forget()
    if again.why:
        return f"sandbox {sandbox.tier} does not start any more: {again.why}"
    return f"sandbox {sandbox.tier} does not hold any more: {_describe_probes(worse)}" if worse else ""


def find_namespace_limits() -> tuple[str, ...]:
    """Return the settings of this machine that forbid users user namespaces, and how to change them."""
    found = []
    for name, value, mend in SWITCHES:
        with suppress(OSError):
            found += [mend] if Path("/proc/sys", name).read_text("ascii").strip() == value else []
    return tuple(found)


async def _try_candidates(
    around: SandboxSurroundings, candidates: Iterable[str]
) -> AsyncIterator[tuple[CandidateFindings, Sandbox | None]]:
    """Yield the findings on each candidate, and the sandbox if there is one; a candidate is tried on demand."""
    memory = SelftestCache(around.environ, (*around.apart, around.place))
    for candidate in candidates:
        key = _build_cache_key(candidate, around)
        if not around.anew and (passed := memory.recall(key)) is not None and (known := _restore(candidate, passed)):
            yield known
            continue
        around.tell(Work.PROBING, 0, 0)
        found, sandbox = await _probe(candidate, around)
        if sandbox is not None and not found.why:
            memory.keep(key, _build_record(found, sandbox))
        yield found, sandbox


def _build_cache_key(candidate: str, around: SandboxSurroundings) -> str:
    """Return the cache key of the findings on *candidate*: it changes with anything that they depend on."""
    found: tuple[Path, ...] = ()
    with suppress(BadInput):
        found = find_programs(around.environ) if candidate == "S3" else ()
    return f"{candidate}-{hash_circumstances(around.place, found)}"


def _build_record(found: CandidateFindings, sandbox: Sandbox) -> PassedSelftest:
    box = sandbox if isinstance(sandbox, Bubblewrap) else None
    return PassedSelftest(
        candidate=found.candidate, possible=found.possible, evidence=dict(found.evidence), tried=found.tried,
        program=str(box.program) if box else "", layered=box is not None and box.layered, at=time.time(),
    )  # fmt: skip


def _restore(candidate: str, passed: PassedSelftest) -> tuple[CandidateFindings, Sandbox] | None:
    """Return the findings and the sandbox that *passed* describes; None if it cannot be *candidate*."""
    tier = catalogue.find_tier(passed.possible)
    if passed.candidate != candidate or _rank_tier(tier) > _rank_tier(candidate):
        return None
    sandbox: Sandbox = Landlocked() if candidate == "S2" else AnotherUser()
    if candidate == "S3":
        known = seccomp.build_filter()
        if known is None:
            return None
        sandbox = Bubblewrap(Path(passed.program), known, layered=passed.layered)
    found = CandidateFindings(
        candidate=candidate, tier=tier, possible=passed.possible, evidence=passed.evidence, tried=passed.tried,
        remembered=passed.at,
    )  # fmt: skip
    return found, sandbox


async def _probe(candidate: str, around: SandboxSurroundings) -> tuple[CandidateFindings, Sandbox | None]:
    """Return the findings on *candidate* as its probes show them now, and the sandbox if there is one."""
    from jumar.process.sandbox_probe import probe_sandbox  # noqa: PLC0415  a start that remembers needs none of it

    try:
        sandbox = await _make_sandbox(candidate, around.place, around.environ)
    except BadInput as reason:
        return CandidateFindings(candidate=candidate, why=str(reason)), None
    result = await probe_sandbox(sandbox, around.place, around.environ)
    tier = "" if result.why else catalogue.find_tier(result.possible)
    worse = catalogue.find_excess_probes(candidate, result.possible)
    why = result.why or (_describe_probes(worse) if worse else "")
    found = CandidateFindings(
        candidate=candidate,
        tier=tier,
        possible=result.possible,
        evidence=result.evidence,
        tried=result.tried,
        why=f"{candidate} does not hold here, {why}: {MEND[candidate]}" if why else "",
        seconds=result.seconds,
    )
    return found, sandbox if tier else None


async def _make_sandbox(candidate: str, place: Path, environ: Mapping[str, str]) -> Sandbox:
    """Return the sandbox of the tier *candidate*.

    Raises:
        BadInput: if this machine has none.
    """
    if candidate == "S3":
        from jumar.process.sandbox_check import find_bubblewrap  # noqa: PLC0415  as in `_probe`

        return await find_bubblewrap(place, environ)
    module, sandbox = (landlock, Landlocked()) if candidate == "S2" else (other_user, AnotherUser())
    if why := module.explain_missing():
        raise BadInput(why)
    return sandbox


def _build_refusal(wanted: str, best: str, reasons: Sequence[str]) -> str:
    if wanted != AUTO:
        return f"there is no sandbox {wanted} here: {'; '.join(reasons)}"
    return (
        f"nobody watches this run, and no sandbox here is stronger than {best}: {reasons[0]}; "
        f"or say --sandbox {best} to run in that one"
    )


def _describe_probes(names: Sequence[str]) -> str:
    """Describe the first few possible probes in words."""
    said = [catalogue.PROBES[name] for name in names[:NAMED]]
    return " and ".join(said) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "") + " is possible"


def _rank_tier(tier: str) -> int:
    return TIERS.index(tier)
