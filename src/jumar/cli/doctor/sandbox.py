"""Sandbox checks of `jumar doctor`: the tiers, the probes that succeeded, and how to get a stronger one."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio

from jumar.cli.doctor.gate import GateCheck
from jumar.errors import JumarError
from jumar.runs.setup.choose_sandbox import CandidateFindings, find_namespace_limits, survey_sandboxes
from jumar.sandbox.probes.catalogue import LACKS, PROBES, find_excess_probes
from jumar.sandbox.probes.channels import describe_channels, find_channels
from jumar.sandbox.request import TIERS

FORGET = (
    "take sandbox S3, and let jumar make control groups that count memory: as an ordinary user, "
    "`systemd-run --user --scope -p Delegate=yes jumar ...`"
)
"""Advice on how to close the channels between rounds."""


def check_sandboxes(runs: Path, environ: Mapping[str, str], *, anew: bool) -> Iterator[GateCheck]:
    """Yield the strongest tier that was shown below *runs*, which need not exist, and each other candidate.

    With *anew* all of them are tried now, and that is what is remembered.
    """
    try:
        found = survey_candidates(runs, environ, anew=anew)
    except (JumarError, OSError) as fault:
        yield GateCheck(
            "sandbox", ok=False, needed=False, found=f"could not be tried: {fault}", mend="see the lines above"
        )
        return
    best = min((f.tier for f in found if f.tier), key=TIERS.index, default="S0")
    said = next((_describe(f) for f in found if f.tier == best), "no other sandbox works here")
    strong = best == "S3"
    yield from check_rounds(best, next((f.possible for f in found if f.tier == best), ()))
    yield GateCheck(
        "sandbox", ok=strong, needed=False, found=f"{best} is the strongest here; {said}; not covered: {LACKS[best]}",
        mend="" if strong else "; ".join(_list_stronger(found, best)), facts={"tier": best, "candidates": list(found)},
    )  # fmt: skip
    for each in found:
        if each.tier != best or each.candidate != best:
            yield GateCheck(
                f"sandbox {each.candidate}", ok=not each.why, needed=False, found=describe_sandbox(each), mend=each.why
            )


def check_rounds(tier: str, possible: Sequence[str]) -> Iterator[GateCheck]:
    """Yield what a run in *tier* can leave for a later one, if that is known."""
    if channels := describe_channels(tier, possible):
        yield GateCheck(
            "rounds", ok=False, needed=False, mend=FORGET, facts={"channels": list(find_channels(possible))},
            found=f"{channels}; a green whose tests cannot run in a process of their own is graded C at best",
        )  # fmt: skip


def survey_candidates(runs: Path, environ: Mapping[str, str], *, anew: bool = True) -> Sequence[CandidateFindings]:
    """Return the findings on all candidates, tested in a folder that is removed afterwards.

    Raises:
        JumarError: if a process of the self-test cannot be started.
        OSError: if there is no place for its folder.
    """
    place = next(folder for folder in (runs.absolute(), *runs.absolute().parents) if folder.is_dir())
    with tempfile.TemporaryDirectory(prefix=".jumar-doctor-", dir=place) as folder:
        Path(folder).chmod(0o755)
        return anyio.run(survey_sandboxes, Path(folder), environ, anew)


def describe_sandbox(found: CandidateFindings) -> str:
    """Describe whether a sandbox is available, by its name, and how strong it is."""
    if not found.tier:
        return "cannot be had here"
    if found.tier == found.candidate:
        return f"can be had with --sandbox {found.candidate}; {_describe(found)}"
    if TIERS.index(found.tier) < TIERS.index(found.candidate):
        return (
            f"can be had with --sandbox {found.candidate}, which is as strong as {found.tier} here; {_describe(found)}"
        )
    return f"is no stronger than {found.tier} here; {_describe(found)}"


def _describe(found: CandidateFindings) -> str:
    """Describe which probes succeeded in it, of all that were tried, and the time of the test."""
    named = ", ".join(f"{PROBES[name]} ({name})" for name in find_excess_probes("S3", found.possible))
    said = f"of {found.tried} things tried in it, {len(found.possible)} possible: writing to its room, as it must"
    said += f", and {named}" if named else ""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.remembered)) if found.remembered else ""
    return f"{said} (tested on {when}; --probe tests again)" if when else f"{said} (tested just now)"


def _list_stronger(found: Sequence[CandidateFindings], best: str) -> Iterator[str]:
    """Yield how to get a sandbox stronger than *best*, the strongest first."""
    yield from (each.why for each in found if TIERS.index(each.candidate) < TIERS.index(best) and each.why)
    yield from find_namespace_limits()
