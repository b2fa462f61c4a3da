"""Model without a provider: searches for a small change that turns the red tests green. It knows only the tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Mapping

from jumar.core.failure_text import find_import_error
from jumar.core.gate.admission import Action
from jumar.core.state.budget import Cost
from jumar.core.state.reply import Reply, ToolCall
from jumar.core.state.settings import Suite
from jumar.errors import Infra, find_cause
from jumar.ports import Answer, Ask, Runner
from jumar.process.progress import ProgressPart, Tell, ignore_progress
from jumar.process.room import TreeStore
from jumar.repair.candidates import Candidate
from jumar.repair.readable_sources import Sources, split_sources
from jumar.repair.schedule import TrialSchedule
from jumar.repair.screening_client import ScreeningConfinement, ScreeningTree
from jumar.repair.search import Bounds, MutationSearch
from jumar.repair.suspicion import SuspectTree
from jumar.verify.localisation.coverage_spectrum import NOTHING_RAN

CAVEAT = "A patch that passes is only as right as the tests."

SPARE_SECONDS = 2.0
"""Left of an answer's time for the end of the screening processes."""


PYTEST = "pytest"
"""Runner of the tests that can screen candidates."""


class RepairModel:
    """Proposes the next candidate for the best tree, or reports that it found none."""

    name = "repair"

    tell: Tell = staticmethod(ignore_progress)
    """Is told how many candidates were screened."""

    def __init__(
        self, store: TreeStore, suite: Suite, runner: Runner, fence: ScreeningConfinement, bounds: Bounds
    ) -> None:
        """Build the model: *fence* is where and in what candidates are screened, *bounds* limit one answer."""
        self._store, self._suite, self._runner, self._fence = store, suite, runner, fence
        self._bounds = bounds
        self._tree = ""
        self._search: MutationSearch | None = None

    def worst(self, ask: Ask) -> Cost:  # noqa: ARG002  the port's signature
        """Return no cost: it calls no provider."""
        return Cost()

    async def complete(self, ask: Ask) -> Answer:
        """Return the next proposal as a `write_files` call, or `final`."""
        if self._suite.runner != PYTEST:
            why = f"Repair changes Python that pytest tests, and these tests are run by {self._suite.runner}"
            return _build_end("final", why, ask.position)
        sources = split_sources(ask.files)
        if broken := sources.list_culprits(ask.output):
            return _build_end("final", f"{'; '.join(broken)}. Repair changes only files that parse", ask.position)
        if why := _explain_unreachable(ask):
            return _build_end("final", why, ask.position)
        if self._search is None or self._tree != ask.tree:
            strategy = TrialSchedule(_build_suspects(ask, sources.texts), ask.red, ask.seed)
            self._tree, self._search = ask.tree, MutationSearch(strategy)
        search, before = self._search, self._search.tried
        search.heard = lambda tried: self.tell(ProgressPart.CANDIDATES, tried, 0)

        def refused(found: Candidate) -> bool:
            return compute_fingerprint(found.path, sources.get_written(found.path, found.text)) in ask.refused

        found = await _unwrap(search.run(*self._build_place(ask, sources), refused))
        now = search.tried - before
        counters: dict[str, object] = {"tried": now, "survivors": search.survivors}
        if found is None:
            name, text = _describe_ending(ask.tried + now, sources, finished=search.finished)
            return _build_end(name, text, ask.position, counters)
        text = f"{found.what} ({ask.tried + now} candidates tried). {CAVEAT}"
        files = {found.path: sources.get_written(found.path, found.text)}
        call = ToolCall("write_files", {"files": files}, f"repair_{ask.position}")
        return Answer(reply=Reply(text, (call,), counters))

    def _build_place(self, ask: Ask, sources: Sources) -> tuple[ScreeningTree, Bounds]:
        """Return the tree on which the candidates for *ask* are screened, and the limits of the search."""
        bounds = self._bounds
        if ask.seconds is not None:
            bounds = Bounds(max(min(bounds.seconds, ask.seconds - SPARE_SECONDS), 0.0), bounds.attempts, bounds.workers)
        ground = ScreeningTree(
            self._store, self._runner, self._suite, self._fence, ask.tree, ask.red, ask.green, tuple(sources.texts),
            bounds.seconds + SPARE_SECONDS,
        )  # fmt: skip
        return ground, bounds


def _build_end(name: str, text: str, position: int, counters: dict[str, object] | None = None) -> Answer:
    """Return the answer that ends the search by the tool *name*, with *text* for the person."""
    return Answer(reply=Reply(text, (ToolCall(name, {"message": text}, f"repair_{position}"),), counters or {}))


def _explain_unreachable(ask: Ask) -> str:
    """Return why no change of an editable file can reach the red tests; empty: one may."""
    if ask.localisation is None or ask.localisation.problem != NOTHING_RAN:
        return ""
    why = find_import_error(ask.output, ask.red)
    return f"No red test gets as far as a line that may be edited: {why}. Mend that first" if why else ""


def _describe_ending(tried: int, sources: Sources, *, finished: bool) -> tuple[str, str]:
    """Return the tool and the sentence that end a search without a find; *tried* counts the whole run."""
    left = f". Not searched: {sources.unsearched}" if sources.unsearched else ""
    if finished and sources.unsearched:
        rest = f"Of the rest, {tried} small changes were tried, and none makes the red tests pass"
        return "final", f"Not searched: {sources.unsearched}. {rest}"
    if finished:
        return "final", f"No small change makes the red tests pass; {tried} were tried"
    return "out_of_time", f"The time ended after {tried} candidates; more seconds may find one{left}"


def compute_fingerprint(path: str, text: str) -> str:
    """Return the name by which a run knows the proposal to write *text* to *path*."""
    return Action("write_files", {path: text}).digest


def _build_suspects(ask: Ask, files: Mapping[str, str]) -> SuspectTree:
    suspects: dict[str, dict[int, float]] = defaultdict(dict)
    for path, line, score in ask.localisation.suspects if ask.localisation else ():
        suspects[path][line] = score
    return SuspectTree(files, suspects)


async def _unwrap(work: Awaitable[Candidate | None]) -> Candidate | None:
    """Return the result of *work*; raise a broken machine as a plain `Infra`, not as a group of errors."""
    try:
        return await work
    except ExceptionGroup as several:
        broken = several.subgroup(Infra)
        if broken is None:
            raise
        raise find_cause(broken) from None
