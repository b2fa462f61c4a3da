"""What `jumar doctor` says of sandboxes: which there are, what was possible in each, and how to get a stronger one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio

from jumar.confinement import TIERS
from jumar.errors import JumarError
from jumar.harness.confinement import Findings, forbidden, surveyed
from jumar.sandbox.probes import LACKS, PROBES, beyond
from jumar.surfaces.doctor_gate import Check


def sandboxes(runs: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    """The strongest tier that was shown below *runs*, which need not exist, and each other candidate."""
    try:
        found = survey(runs, environ)
    except (JumarError, OSError) as fault:
        yield Check("sandbox", ok=False, needed=False, found=f"could not be tried: {fault}", mend="see the lines above")
        return
    best = min((f.tier for f in found if f.tier), key=TIERS.index, default="S0")
    said = next((_said(f) for f in found if f.tier == best), "no other sandbox works here")
    strong = best == "S3"
    yield Check(
        "sandbox", ok=strong, needed=False, found=f"{best} ({said}); not covered: {LACKS[best]}",
        mend="" if strong else "; ".join(_stronger(found, best)), facts={"tier": best, "candidates": list(found)},
    )  # fmt: skip
    for each in found:
        if each.tier != best or each.candidate != best:
            state = f"{each.tier} here: {_said(each)}" if each.tier else "not here"
            yield Check(f"sandbox {each.candidate}", ok=not each.why, needed=False, found=state, mend=each.why)


def survey(runs: Path, environ: Mapping[str, str]) -> Sequence[Findings]:
    """The findings on all candidates, tried in a folder that is gone afterwards.

    Raises:
        JumarError: if a process of the self-test cannot be started.
        OSError: if there is no place for its folder.
    """
    place = next(folder for folder in (runs.absolute(), *runs.absolute().parents) if folder.is_dir())
    with tempfile.TemporaryDirectory(prefix=".jumar-doctor-", dir=place) as folder:
        Path(folder).chmod(0o755)
        return anyio.run(surveyed, Path(folder), environ)


def _said(found: Findings) -> str:
    """How many probes succeeded; those that were not meant to by what they are, and their names."""
    odd = beyond("S3", found.possible)
    said = f"{len(found.possible)} of {found.tried} probes possible"
    named = ", ".join(f"{PROBES[name]} ({name})" for name in odd)
    return f"{said}: the room, {named}" if odd else f"{said}: writing to the room, as it must be"


def _stronger(found: Sequence[Findings], best: str) -> Iterator[str]:
    """How to get what is stronger than *best*, the strongest first."""
    yield from (each.why for each in found if TIERS.index(each.candidate) < TIERS.index(best) and each.why)
    yield from forbidden()
