"""Runs and scores campaigns of a challenge in front of a person: the first one, and those of its generations."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from msgspec.structs import replace

from jumar.cli.campaign_session import run_session
from jumar.cli.console.output import Console
from jumar.cli.console.signals import SignalWatcher
from jumar.cli.parameters.command_options import read_options
from jumar.core.run.strategy import FRONTIER
from jumar.runs.setup.marks import Trust
from jumar.task.option_values import OptionValues

if TYPE_CHECKING:
    from jumar.challenges.agents_file import ChallengeAgent
    from jumar.challenges.order import ChallengeOrigin
    from jumar.challenges.scores_file import ChallengeScores


class ChallengeSession:
    """Session of a person who chose *chosen* on the command line; the `deadline` in it is a time."""

    def __init__(self, voice: Console, trust: Trust, chosen: dict[str, Any]) -> None:
        self.voice, self.trust = voice, trust
        self._chosen = chosen

    def begin(self, folder: Path, origin: ChallengeOrigin, spent: float = 0.0, proposed: float = 0.0) -> None:
        """Create a new campaign in *folder*, in which nothing is begun.

        *spent* and *proposed* are the money for campaigns and for variants so far.

        Raises:
            BadInput: if a file cannot be read, or an agent cannot work on a task.
        """
        from jumar.campaigns.create import (  # noqa: PLC0415  it is slow to import
            create_campaign,
            make_campaign_folder,
            try_machine,
        )
        from jumar.challenges.challenge_file import load_challenge  # noqa: PLC0415  as above
        from jumar.challenges.choose_model import choose_model  # noqa: PLC0415  as above
        from jumar.challenges.linters import refuse_missing_linters  # noqa: PLC0415  as above
        from jumar.challenges.money import compute_agents_usd  # noqa: PLC0415  as above
        from jumar.challenges.order import order_campaign  # noqa: PLC0415  as above

        environ = self.trust.environ
        challenge = load_challenge(Path(origin.challenge))
        judges = bool(challenge.tables.principle and origin.judge.model)
        usd = compute_agents_usd(origin, judges=judges, spent=spent, proposed=proposed)
        if judges:
            choose_model(origin.judge, challenge.tables.judge.tier, environ)  # refused here, before anything runs
        elif challenge.tables.principle:
            self.voice.note("principles are not judged: the file of agents names no model in [judge]")
        if origin.generations and origin.proposer.model:
            choose_model(origin.proposer, FRONTIER, environ)
        anyio.run(refuse_missing_linters, challenge.tables.linter, environ, origin.options.python)
        with make_campaign_folder(folder):
            plan = create_campaign(folder, order_campaign(challenge, origin, folder, usd), environ)
            anyio.run(try_machine, folder, plan, environ, self.voice.note)

    def check_linters(self, folder: Path) -> None:
        """Refuse the stored campaign in *folder* if a linter of its challenge cannot run here any more.

        Raises:
            BadInput: naming it; or if it is the campaign of no challenge.
        """
        from jumar.campaigns.plan import load_plan  # noqa: PLC0415  it is slow to import
        from jumar.challenges.challenge_file import load_challenge  # noqa: PLC0415  as above
        from jumar.challenges.linters import refuse_missing_linters  # noqa: PLC0415  as above
        from jumar.challenges.order import load_origin  # noqa: PLC0415  as above

        plan = load_plan(folder, self.trust)
        tables = load_challenge(Path(load_origin(plan, folder).challenge)).tables
        python = self._chosen["python"] or plan.options.python
        anyio.run(refuse_missing_linters, tables.linter, self.trust.environ, python)

    def run(self, folder: Path) -> str:
        """Run the campaign in *folder*, and return why it was stopped before its end; empty: it was not."""
        from jumar.campaigns.campaign import lock_campaign  # noqa: PLC0415  it is slow to import
        from jumar.executors.choose import Executor, ExecutorChoice  # noqa: PLC0415  as above

        where = ExecutorChoice(Executor.LOCAL)
        with lock_campaign(folder, self.voice.note) as lock:
            limits = {**self._chosen, "where": where, "processes": None}
            return run_session(self.voice, folder, self.trust, lock, limits).stopped

    def score(self, folder: Path, *, again: bool) -> ChallengeScores | None:
        """Return the scores of the campaign in *folder*; None: a signal came. With *again* its judge is asked anew."""
        from jumar.challenges.score_challenge import ScoringChoices, score_challenge  # noqa: PLC0415  slow to import

        cores = self._chosen["cores"] or len(os.sched_getaffinity(0))
        order = ScoringChoices(self.read_values(), cores, again=again, say=self.voice.note)
        watcher = SignalWatcher(self.voice.note, quiet=self._chosen["quiet"])
        return watcher.run(lambda: score_challenge(folder, order, self.trust))

    def measure(
        self, folder: Path, origin: ChallengeOrigin, agents: Sequence[ChallengeAgent], money: tuple[float, float]
    ) -> ChallengeScores:
        """Return the scores of fresh runs of *agents* in *folder*; runs done before are not repeated.

        *money* is what campaigns and variants cost so far.

        Raises:
            KeyboardInterrupt: if a signal or the deadline ended it.
        """
        from jumar.campaigns.plan import PLAN  # noqa: PLC0415  it is slow to import
        from jumar.challenges.scores_file import SCORES, load_scores  # noqa: PLC0415  as above

        if (folder / SCORES).is_file():
            return load_scores(folder)
        if not (folder / PLAN).is_file():
            shutil.rmtree(folder, ignore_errors=True)  # it was being made when something killed this process
            self.begin(folder, replace(origin, agents=tuple(agents)), *money)
        self.voice.say(f"{folder.name}: {' against '.join(agent.name for agent in agents)}")
        scores = None if self.run(folder) else self.score(folder, again=True)
        if scores is None:
            raise KeyboardInterrupt
        return scores

    def read_values(self) -> OptionValues:
        """Return the options that all agents share: how trees are judged."""
        names = ("timeout", "test_timeout", "confirm", "sandbox", "include", "python")
        options = read_options({name: self._chosen[name] for name in names})
        return OptionValues(**{name: getattr(options, name) for name in OptionValues.__struct_fields__})
