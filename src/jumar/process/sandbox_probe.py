"""Runs the prober in a sandbox, with a decoy beside it, and reports the probes that succeeded."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec

from jumar.child import programs, start
from jumar.core.state.verdict import Ended
from jumar.errors import Infra
from jumar.ports import Sandbox
from jumar.process.child_process import Child, run_confined
from jumar.process.launch import Confinement
from jumar.process.output import read_output
from jumar.process.script import ScriptStart
from jumar.sandbox.probes import catalogue
from jumar.sandbox.probes.decoys import Decoys, create_decoys, read_environment
from jumar.sandbox.request import Reach

SECONDS = 20.0
"""A prober that takes longer has not answered."""

OURS = ScriptStart()
"""Start of a prober by our own interpreter."""


class ProbeFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of a prober in one sandbox."""

    possible: tuple[str, ...] = ()
    """Names of `jumar.sandbox.probes.catalogue.PROBES`, in their order; what could not be tried is among them."""
    evidence: Mapping[str, str] = {}
    """Name of what was possible -> how it was seen."""
    tried: int = 0
    why: str = ""
    """Reason for having no answer: the sandbox does not start here. Empty: there is one."""
    seconds: float = 0.0


async def probe_sandbox(
    sandbox: Sandbox, place: Path, environ: Mapping[str, str], way: ScriptStart = OURS
) -> ProbeFindings:
    """Try all probes in *sandbox*, in rooms below the folder *place*; *way* is how the prober is started."""
    started = time.monotonic()
    with create_decoys(place) as traps:
        lure = OURS._replace(env={"JUMAR_DECOY": traps.token}).build_invocation(programs.DECOY, dict(traps.lure))
        outside = Confinement(room=traps.folder, seconds=SECONDS)
        aims = {**traps.build_aims(read_environment()), "later": False, "only": []}
        async with run_confined(lure, outside) as decoy, _start_prober((sandbox, way), traps, environ) as prober:
            ready = await _read_decoy(decoy, "ready")
            answers = await _read_answers(prober, {**aims, **ready})
            await decoy.send({})
            seen = {**(await _read_decoy(decoy, "seen")), **traps.find_harm()}
        found = _judge(answers, seen, prober, traps, catalogue.PROBES)
        if not found.why:  # all of the first process is gone: what a later one can tell of it
            async with _start_prober((sandbox, way), traps, environ, later=True) as reader:
                read = await _read_answers(reader, {**aims, "later": True, "only": catalogue.LEFT})
            found = _judge({**answers, **read}, seen, reader, traps, catalogue.PROBES)
    return msgspec.structs.replace(found, seconds=time.monotonic() - started)


async def reprobe_sandbox(
    sandbox: Sandbox, place: Path, environ: Mapping[str, str], way: ScriptStart = OURS
) -> ProbeFindings:
    """Try the quick probes again."""
    started = time.monotonic()
    with create_decoys(place) as traps:
        async with _start_prober((sandbox, way), traps, environ) as prober:
            aims = {**traps.build_aims(read_environment()), "later": False, "only": catalogue.QUICK}
            answers = await _read_answers(prober, aims)
        quick = {name: told for name, told in traps.find_harm().items() if name in catalogue.QUICK}
        found = _judge(answers, quick, prober, traps, catalogue.QUICK)
    return msgspec.structs.replace(found, seconds=time.monotonic() - started)


def _start_prober(
    within: tuple[Sandbox, ScriptStart], traps: Decoys, environ: Mapping[str, str], *, later: bool = False
) -> AbstractAsyncContextManager[Child]:
    """Start the prober in *sandbox*, and return it. Its environment contains a key that it must not get."""
    scripts = Path(start.FOLDER)
    sandbox, way = within
    confinement = Confinement(
        room=traps.later if later else traps.room,
        output=traps.output,
        seconds=SECONDS,
        environ={**environ, "JUMAR_DECOY_API_KEY": traps.key},
        sandbox=sandbox,
        reach=Reach(readable=(scripts, traps.repository), own=(scripts, traps.repository)),
        fds=(traps.terminal[1],),
    )
    return run_confined(way.build_invocation(programs.PROBE, {}), way.confine(confinement))


async def _read_answers(prober: Child, aims: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """Return the outcome of each probe, and the evidence."""
    await prober.send(aims)
    answers: dict[str, tuple[str, str]] = {}
    while (record := await prober.receive()) is not None:
        match record:
            case ["tried", str(name), str(how), str(evidence)]:
                answers[name] = how, evidence
    return answers


async def _read_decoy(decoy: Child, kind: str) -> Mapping[str, Any]:
    while (record := await decoy.receive()) is not None:
        match record:
            case [str(said), dict(facts)] if said == kind:
                return facts
    raise Infra(f"the self-test of the sandbox cannot start its decoy: {decoy.detail}")


def refuse_full_disk(prober: Child) -> None:
    """Refuse to judge a sandbox whose *prober* was killed as a disk was nearly full: the sandbox has no part in it.

    Raises:
        Infra: if that is so.
    """
    if prober.is_disk_full:
        raise Infra(f"the self-test of the sandbox was {prober.detail}: free some space")


def _judge(
    answers: Mapping[str, tuple[str, str]],
    seen: Mapping[str, bool],
    prober: Child,
    traps: Decoys,
    expected: Collection[str],
) -> ProbeFindings:
    """Return the prober's answers, corrected by what its victims saw. Untried probes count as possible."""
    refuse_full_disk(prober)
    if prober.ended is not Ended.NORMAL or prober.anomalies:
        said = read_output(traps.output).strip().splitlines()
        return ProbeFindings(
            why=said[-1].removeprefix("jumar: ") if said else "; ".join((prober.detail, *prober.anomalies))
        )
    evidence = {}
    for name in (name for name in catalogue.PROBES if name in expected):
        how, how_seen = answers.get(name, ("untried", "no answer"))
        if seen.get(name, how != "impossible"):
            evidence[name] = how_seen or "its victim says so"
    return ProbeFindings(possible=tuple(evidence), evidence=evidence, tried=len(expected))
