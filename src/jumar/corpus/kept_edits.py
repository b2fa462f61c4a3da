"""Finds the edits of a run that were kept because a red test turned green, from its journal alone. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from jumar.core.state import events as ev
from jumar.workspace.files import trees
from jumar.workspace.files.trees import EntryKind, Manifest, Node

Trees = Callable[[str], Manifest]
"""Function from the hash of a tree to its manifest, the node at each path."""


class VerifiedTurn(msgspec.Struct, frozen=True):
    """One verification, read from its group of events."""

    seq: int
    """Of its `tests` event."""
    tests: ev.Tests
    runs: Mapping[str, tuple[int, ev.TestRun]]
    """Test id -> its result and the number of that event."""
    output: str = ""
    """Output of the verification that the model was shown."""


class ClaimedTest(msgspec.Struct, frozen=True):
    """A test that an edit was claimed for, and the newest red it had before the claim."""

    test_id: str
    seq: int
    """Of the `edit_claim`."""
    target: str
    red: VerifiedTurn


class CallSpend(msgspec.Struct, frozen=True):
    """Calls, tokens and money spent between two turns whose edits were kept."""

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0

    def add_call(self, call: ev.ModelCall) -> CallSpend:
        """Return this sum with one more call."""
        return CallSpend(
            self.calls + 1,
            self.input_tokens + call.input_tokens,
            self.cached_tokens + call.cached_tokens,
            self.output_tokens + call.output_tokens,
            self.usd + call.usd,
        )


class KeptTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The edits of one turn that belong to the same claims and were kept."""

    claims: tuple[ClaimedTest, ...]
    seqs: tuple[int, ...]
    """Of its `write` events."""
    before: Manifest
    """The tree without it, but with what was kept before it in the same turn."""
    after: Manifest
    green: VerifiedTurn
    before_it: VerifiedTurn
    """The newest verification of the tree that the turn began from: what a codemod is compared with."""
    codemod: tuple[int, ev.Codemod] | None = None
    """Codemod that made the edit, and the number of that event; None: it was claimed for red tests."""
    best: int
    """Number of the `best` event that kept it."""
    spent: CallSpend
    """Of the whole turn, and of the turns before it that came to nothing."""
    shared_by: int
    """Number of records that the spending paid for."""


class LeftOut(msgspec.Struct, frozen=True):
    """A kept edit that is not a triple, and the reason."""

    seq: int
    why: str


def find_accepted_edits(entries: Iterable[ev.Entry], manifest: Trees) -> Iterator[KeptTurn | LeftOut]:
    """Yield the edits of a run that were kept for a claimed test, in their order."""
    reader = _Reader(manifest)
    for entry in entries:
        yield from reader.read(entry)


@dataclass(slots=True)
class _Reader:
    """State of the reading of a journal."""

    manifest: Trees
    base: str = ""
    """The tree that the writes of this turn began from."""
    writes: list[tuple[int, ev.Write]] = field(default_factory=list)
    left: tuple[int, ...] | None = None
    """Indices of the writes that lie in the workspace; None: all."""
    put_off: tuple[int, ...] | None = None
    """Indices of the writes that lay there when all were reverted."""
    claims: list[tuple[int, ev.EditClaim]] = field(default_factory=list)
    runs: dict[str, tuple[int, ev.TestRun]] = field(default_factory=dict)
    verified: list[VerifiedTurn] = field(default_factory=list)
    spent: CallSpend = field(default_factory=CallSpend)
    codemod: tuple[int, ev.Codemod] | None = None
    """A codemod of which the edits are."""

    def read(self, entry: ev.Entry) -> Iterator[KeptTurn | LeftOut]:  # noqa: C901  one case per event reads best
        """Read one more event; yield the edits that it accepted."""
        seq, event = entry.seq, entry.event
        match event:
            case ev.RunStart():
                self._begin(event.tree)
            case ev.ModelCall():
                self.spent = self.spent.add_call(event)
            case ev.Codemod():
                self._begin(self.base)
                self.codemod = (seq, event)
            case ev.EditClaim():
                self.claims.append((seq, event))
            case ev.Write():
                if self.left == ():
                    self._begin(self.base)
                self.writes.append((seq, event))
            case ev.TestRun():
                self.runs[event.test_id] = (seq, event)
            case ev.Tests():
                self.verified.append(VerifiedTurn(seq, event, self.runs))
                self.runs = {}
            case ev.Observation(name="driver.run_tests") if self.verified and not self.verified[-1].output:
                shown = msgspec.structs.replace(self.verified[-1], output=str(event.content.get("output", "")))
                self.verified[-1] = shown
            case ev.Revert(found=False):
                self._revert(event)
            case ev.BestFound():
                yield from self._list_kept(seq, event.tree)
                self._begin(event.tree)

    def _begin(self, tree: str) -> None:
        """A new turn's edits begin from *tree*."""
        self.base, self.writes, self.left, self.put_off, self.codemod = tree, [], None, None, None

    def _revert(self, revert: ev.Revert) -> None:
        """Revert some edits of the turn, or all: for good, or until a stopped run is resumed."""
        if revert.left:
            self.left = revert.left
        elif revert.to != self.base:
            self.left = self.put_off
        elif self.left != ():
            self.left, self.put_off = (), self.left

    def _list_kept(self, seq: int, tree: str) -> Iterator[KeptTurn | LeftOut]:
        old, new = self.manifest(self.base), self.manifest(tree)
        green = next((v for v in reversed(self.verified) if v.tests.tree == tree), None)
        stay = range(len(self.writes)) if self.left is None else self.left
        groups = [
            g for g in _group_writes(self.writes, frozenset(stay)) if any(old.get(p) != new.get(p) for p in g.paths)
        ]
        if green is not None and self.codemod is not None and self.writes and self.left != ():
            yield self._build_codemod(old, new, green, seq)
        if green is None or not any(g.claimed for g in groups):
            return
        found: list[KeptTurn | LeftOut] = []
        here = _merge_unexplained(old, new, groups)
        for number, group in enumerate(groups):
            later = {path for other in groups[number + 1 :] for path in other.paths}
            there = here
            for path in group.paths:
                there = trees.put(there, path, group.get_node(path, new) if path in later else new.get(path))
            if group.claimed:
                found.append(self._record(group, (here, there), green, seq))
            here = there
        records = sum(isinstance(one, KeptTurn) for one in found)
        for one in found:
            paid = isinstance(one, KeptTurn)
            yield msgspec.structs.replace(one, shared_by=records, spent=self.spent) if paid else one
        if records:
            self.spent = CallSpend()

    def _build_codemod(self, old: Manifest, new: Manifest, green: VerifiedTurn, best: int) -> KeptTurn:
        """Return the record of a codemod: all its writes are one edit."""
        spent, self.spent = self.spent, CallSpend()
        return KeptTurn(
            claims=(),
            seqs=tuple(seq for seq, _ in self.writes),
            before=old,
            after=new,
            green=green,
            before_it=self._find_newest(),
            codemod=self.codemod,
            best=best,
            spent=spent,
            shared_by=1,
        )

    def _find_newest(self) -> VerifiedTurn:
        """Return the newest verification of the tree that the turn began from, else of any tree."""
        own = [v for v in self.verified if v.tests.tree == self.base]
        return (own or self.verified)[-1]

    def _record(
        self, group: _Group, sides: tuple[Manifest, Manifest], green: VerifiedTurn, best: int
    ) -> KeptTurn | LeftOut:
        first = group.writes[0][0]
        turned = tuple(i for i in group.claimed if i in green.runs and green.runs[i][1].status == "pass")
        if not turned:
            return LeftOut(first, f"{group.claimed[0]} was not seen green after the edit")
        # Of edits that were claimed together some may have gone back, with the tests that they were for.
        claims = [self._find_claim(test_id, group) for test_id in turned]
        for test_id, claim in zip(turned, claims, strict=True):
            if claim is None:
                return LeftOut(first, f"{test_id} was not seen red and claimed before the edit")
        return KeptTurn(
            claims=tuple(c for c in claims if c is not None),
            seqs=tuple(seq for seq, _ in group.writes),
            before=sides[0],
            after=sides[1],
            green=green,
            before_it=self._find_newest(),
            best=best,
            spent=CallSpend(),
            shared_by=0,
        )

    def _find_claim(self, test_id: str, group: _Group) -> ClaimedTest | None:
        """Return the newest claim of *test_id* before the edit, with the red that supports it.

        That is the newest red of the tree that the edit began from; another tree's only where that one has none.
        """
        until = next(seq for seq, write in group.writes if test_id in write.claimed)
        mine = [(seq, c) for seq, c in self.claims if c.test_id == test_id and seq < until]
        if not mine:
            return None
        seq, claim = ([one for one in mine if one[1].edit_target in group.paths] or mine)[-1]
        reds = [v for v in self.verified if v.seq < seq and test_id in v.runs and v.runs[test_id][1].status == "fail"]
        own = [v for v in reds if v.tests.tree == self.base]
        return ClaimedTest(test_id, seq, claim.edit_target, (own or reds)[-1]) if reds else None


class _Group(msgspec.Struct, frozen=True):
    """Writes of one turn that belong together: of the same claims, or of none."""

    claimed: tuple[str, ...]
    writes: tuple[tuple[int, ev.Write], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths it wrote, each once."""
        return tuple(dict.fromkeys(write.path for _, write in self.writes))

    def get_node(self, path: str, final: Manifest) -> Node | None:
        """Return the node at *path* after the writes of this group, even if others wrote there later."""
        digest = next(write.after for _, write in reversed(self.writes) if write.path == path)
        mode = final.get(path)
        return Node(EntryKind.FILE, digest, bool(mode and mode.executable)) if digest else None


def _group_writes(writes: list[tuple[int, ev.Write]], stay: frozenset[int]) -> list[_Group]:
    """Group the *writes* that *stay* by their claims, in order of the first of each.

    Claims that took turns at one file are one group: what one of them did there cannot be told from the other's. The
    same goes for a file where a write went back from under later ones: what lies there now was never written as such.
    """
    keys = [write.claimed for _, write in writes]
    for path in dict.fromkeys(write.path for _, write in writes):
        mine = [n for n, (_, write) in enumerate(writes) if write.path == path]
        staying = [n for n in mine if n in stay]
        order = [keys[n] for i, n in enumerate(staying) if i == 0 or keys[n] != keys[staying[i - 1]]]
        gone = min((n for n in mine if n not in stay), default=len(writes))
        moved = {keys[n] for n in staying if n > gone}
        entwined = set(order) if len(set(order)) < len(order) else moved if len(moved) > 1 else set()
        both = tuple(dict.fromkeys(test_id for key in order if key in entwined for test_id in key))
        keys = [both if n in stay and key in entwined else key for n, key in enumerate(keys)]
    found: dict[tuple[str, ...], list[tuple[int, ev.Write]]] = {}
    for n in sorted(stay):
        found.setdefault(keys[n], []).append(writes[n])
    return [_Group(key, tuple(held)) for key, held in found.items()]


def _merge_unexplained(old: Manifest, new: Manifest, groups: list[_Group]) -> Manifest:
    """Return *old* with the changes in *new* that none of *groups* wrote: part of the base of all of them."""
    written = {path for group in groups for path in group.paths}
    here = dict(old)
    for path in trees.find_differences(old, new):
        if path not in written:
            here = trees.put(here, path, new.get(path))
    return here
