"""Builds the parts of a run that work on the task: its agent, and the executor of the model's commands."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from jumar import plugins
from jumar.core.run.strategy import AgentFacts, BuildAgent, Strategy
from jumar.core.state.events import RunStart
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput
from jumar.ports import Commands
from jumar.process.model_command import build_confined_commands
from jumar.runs.setup.assembly import RunPlace, build_guard, find_files_of_tests, find_targets, load_runner
from jumar.workspace.files.trees import EntryKind


def build_agent(run: RunStart, place: RunPlace) -> Strategy:
    """Return the agent of *run*. It knows only the files of the run's first tree, so a resumed run has the same.

    Raises:
        BadInput: if there are too many files for an agent that writes them whole.
    """
    store, manifest = place.store, place.store.manifest(run.tree)
    runner = load_runner(run.settings.suite.runner)
    guard = build_guard(run.settings, runner, manifest)
    files = tuple(path for path, node in sorted(manifest.items()) if node.kind is EntryKind.FILE)
    refactoring = run.gate is Gate.REFACTOR
    build = cast("BuildAgent", plugins.load("agents", run.agent))
    return build(
        AgentFacts(
            settings=run.settings,
            gate=run.gate,
            files=files,
            closed=tuple(p for p in files if guard.protected(p) and not (refactoring and guard.refactorable(p))),
            targets=find_targets(run.settings, files),
            tests=tuple(p for p in find_files_of_tests(run.expected, place, run.tree, runner) if p in manifest),
            read=lambda path: store.get(manifest[path].sha256) if path in manifest else None,
        )
    )


async def build_commands(run: RunStart, place: RunPlace) -> Commands | None:
    """Return the executor of the model's commands, if it may run any.

    Raises:
        BadInput: if nothing on this machine can confine them.
    """
    settings = run.settings
    switches = settings.switches
    if not (switches.model_may_run_commands or switches.allow_codemod):
        return None
    box = place.sandbox if place.sandbox.tier == "S3" else None  # whatever the tests run in, commands get the strongest
    try:
        return await build_confined_commands(place.store, place.folder, Path(settings.suite.python), place.environ, box)
    except BadInput:
        if switches.model_may_run_commands:
            raise
        return None  # a codemod can still replace
