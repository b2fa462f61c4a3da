"""Chooses the model that a run asks: mutation search, a script or recording, or a provider's; refuses it early."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jumar.agents.extraction.extract import extract
from jumar.core.run.strategy import DRIVER, PIPELINE, REPAIR
from jumar.core.state import events as ev
from jumar.core.state.run_state import HOST, RunState
from jumar.core.state.settings import Settings
from jumar.errors import BadInput
from jumar.models.recording import resume_recording, start_recording
from jumar.models.replay import parse_cassette, read_cassette
from jumar.models.router import ByTier, build_routes, collect_keys
from jumar.models.script import ScriptModel, parse_script, read_script
from jumar.runs.setup.assembly import RunPlace, load_runner
from jumar.task.model_routes import list_tiers
from jumar.task.resolve import asks_provider
from jumar.task.task import Task, list_targets

SCRIPT, CASSETTE, RECORD = "script.jsonl", "cassette.jsonl", "record"
"""Files of the model in a run directory. They hold the replies of a script or of a recording as they were when the run
began, or the path of the recording it makes."""

SEARCH_SECONDS = 600.0
"""For one proposal of `repair`, where the run has no cap on its time; a run's cap cuts it shorter."""

CANDIDATES = 100_000
"""Screened for one tree at most: far more than the seconds allow, a backstop."""


class PreparedModel(msgspec.Struct, frozen=True):
    """A task whose model is resolved, and the files of that model that its run directory keeps."""

    task: Task
    kept: Mapping[str, bytes] = {}


def prepare_model(task: Task, environ: Mapping[str, str]) -> PreparedModel:
    """Return *task* with its model looked up: the journal calls it by its own name, a recording by the recorded one's.

    Raises:
        BadInput: if a file cannot be read or used, a key, a price or the `llm` extra is missing, or the file of a new
            recording is there already.
    """
    kind, _, path = task.model.partition(":")
    if kind == "script":
        data = read_script(Path(path))
        script = parse_script(data, task.model)
        return PreparedModel(_note_unread_script(_drop_review(task, script), script), {SCRIPT: data})
    if kind == "replay":
        data = read_cassette(Path(path))
        cassette = parse_cassette(data, task.model)
        return PreparedModel(replace(task, model=cassette.model, chosen_routes=cassette.routes), {CASSETTE: data})
    if not asks_provider(task.model):
        return PreparedModel(task)
    review = task.switches.review
    by_tier = build_routes(Settings(routes=dict(task.chosen_routes)), environ)
    _check_tiers(by_tier, list_tiers(task.agent, task.gate, task.chosen_routes, review=review))
    if task.record is None:
        return PreparedModel(task)
    if task.record.is_dir():
        raise BadInput(f"--record {task.record} is a folder; name a file that is not there yet")
    if task.record.exists():
        raise BadInput(
            f"--record {task.record} is there already; name a new file, or pass --model replay:{task.record}"
        )
    if not os.access(task.record.parent, os.W_OK):
        raise BadInput(f"--record {task.record} cannot be made in that folder; name another place")
    return PreparedModel(task, {RECORD: str(task.record).encode()})


def _check_tiers(by_tier: ByTier, tiers: tuple[str, ...]) -> ByTier:
    """Return *by_tier*, after a check that the *tiers* which an agent asks are usable."""
    for tier in tiers:
        by_tier(tier)
    return by_tier


def load_models(state: RunState, place: RunPlace) -> ByTier:
    """Return the models that answer the run of *state* in *place*, by tier, as its directory says.

    Raises:
        BadInput: as `prepare_model`; or if the recording that a run makes is gone.
    """
    run = state.run
    if run.agent == REPAIR:
        return _build_repair_models(run, place)
    if run.agent == HOST:
        return build_routes(run.settings, place.environ)  # of no tier: its model is its own business
    if (script := place.folder / SCRIPT).is_file():
        model = parse_script(script.read_bytes(), run.model)
        return lambda _tier: model
    if (cassette := place.folder / CASSETTE).is_file():
        return parse_cassette(cassette.read_bytes(), str(cassette)).get_model
    tiers = list_tiers(run.agent, run.gate, run.settings.routes, review=run.settings.switches.review)
    by_tier = _check_tiers(build_routes(run.settings, place.environ), tiers)
    if (record := place.folder / RECORD).is_file():
        path, secrets = Path(record.read_text()), collect_keys(run.settings, place.environ)
        there = path.exists()
        if state.replies and not there:
            raise BadInput(f"the recording {path} is gone: put it back, or delete {record} to go on without one")
        recorder = (
            resume_recording(path, secrets) if there else start_recording(path, run.model, run.settings.routes, secrets)
        )
        return recorder.record_models(by_tier)
    return by_tier


def is_offline(place: RunPlace) -> bool:
    """Return whether a file answers the run in *place*: there is nothing to wait for then."""
    return any((place.folder / name).is_file() for name in (SCRIPT, CASSETTE))


def _build_repair_models(run: ev.RunStart, place: RunPlace) -> ByTier:
    from jumar.models.repair import RepairModel  # noqa: PLC0415  libcst is slow to import, and only repair needs it
    from jumar.repair.screening_client import ScreeningConfinement  # noqa: PLC0415  as above
    from jumar.repair.search import Bounds  # noqa: PLC0415  as above

    suite = run.settings.suite
    bounds = Bounds(SEARCH_SECONDS, CANDIDATES)
    fence = ScreeningConfinement(place.folder / "rooms", place.sandbox)
    model = RepairModel(place.store, suite, load_runner(suite.runner), fence, bounds)
    model.tell = place.tell
    return lambda _tier: model


def _note_unread_script(task: Task, script: ScriptModel) -> Task:
    """Return *task* with a note if its driver reads nothing of the content of *script*."""
    first = script.get_line(0)
    if task.agent != DRIVER or task.switches.text_actions or first is None or first.tool_calls or not first.content:
        return task
    said = f"{task.model} begins with content, and the driver reads tool_calls; --agent pipeline reads content"
    return replace(task, notes=(*task.notes, said))


def _drop_review(task: Task, script: ScriptModel) -> Task:
    """Return *task* without a review, if nobody asked for one and the script's second reply is a file."""
    if task.pipeline.review is not None or task.agent != PIPELINE:
        return task
    second = script.get_line(1)
    holds_file = second is not None and not isinstance(extract(second.content, list_targets(task)), str)
    reviewed = second is not None and not (second.tool_calls or second.error or holds_file)
    return replace(task, switches=replace(task.switches, review=reviewed))
