"""Keeps the zygotes of this process, and finds the one that a process of a verification can be forked from.

What is decided here is about time alone: a process that is forked and one that is started do the same.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from jumar.child import programs, start
from jumar.child.sandbox import bubble
from jumar.ports import Invocation
from jumar.process.launch import Confinement, Role, scrub, wrap_invocation
from jumar.process.limits import compute_default_ceiling
from jumar.process.warm.zygote import Expected, Zygote, ZygoteStart
from jumar.sandbox.request import Wrapped

PROGRAMS: Mapping[str, bool] = {
    programs.PYTEST: True,
    programs.PLAIN: True,
    programs.TESTS: True,
    programs.PRODUCT: False,
    programs.PROBE: False,
    programs.WARNINGS: False,
}
"""Programs that can be forked, and whether pytest and its plug-ins belong into their zygote."""

FORKS = 500
"""A zygote is replaced after so many forks."""

FIRST_OF_ROOM = "--overlay-src"
"""Argument of bubblewrap before which nothing depends on the room."""

LEARNED = 3
"""Times that the zygotes of a family are replaced because their processes imported more."""

UNPAID = 2
"""Processes of a kind that are started before there is a zygote for them, whose start costs as much."""

ROUNDS = 2
"""Processes of a kind that confirm a green, at least."""

FAILURES = 2
"""Zygotes of a family that may fail to get ready, before no more are tried."""

KEPT = 8
"""Most zygotes that are kept at a time; the one that was used the longest time ago goes."""

ROOMLY = ("HOME", "TMPDIR", "PYTHONPATH")
"""Variables that differ from room to room, or name what lies in one: an isolated interpreter reads no PYTHONPATH."""


@dataclass(slots=True, eq=False)
class Family:
    """Zygotes that differ in nothing but the hashes of strings."""

    python: tuple[str, ...]
    """The interpreter and its options."""
    env: dict[str, str]
    plugins: bool
    modules: tuple[str, ...] = ()
    """Installed modules that the processes were seen to import."""
    zygotes: dict[bool, Zygote] = field(default_factory=dict)
    learned: int = 0
    requests: Counter[bool] = field(default_factory=Counter)
    failures: int = 0

    expected: Expected | None = None
    """The last request."""

    def takes_another(self, role: Role, unpaid: int) -> bool:
        """Return whether a process of *role* is forked from the zygote for other runs than first ones.

        The first run of a tree that is expected to be green is, until first runs have paid for a zygote of their own.
        """
        borrows = False not in self.zygotes and self.requests[False] <= unpaid
        return role is Role.CONFIRMING or (role is Role.EXPECTED and borrows)

    def start(self, *, another: bool) -> Zygote:
        """Start the zygote for first runs or for others, in the place of one that is gone."""
        self.drop(another=another)
        limits = compute_default_ceiling()
        likely = self.expected or Expected("", limits.memory_bytes, limits.processes)
        # The runs that confirm a green come one right after another; first ones wait for a new edit.
        given = ZygoteStart(self.python, self.env, self.modules, self.plugins, likely.renew(), unhurried=not another)
        self.zygotes[another] = Zygote(given)
        return self.zygotes[another]

    def start_without_modules(self, *, another: bool) -> Zygote:
        """Start the zygote once more, with none of the modules: one of them cannot be shared by forks."""
        self.modules, self.learned = (), LEARNED
        return self.start(another=another)

    def drop(self, *, another: bool) -> None:
        """End a zygote, if there is one."""
        if old := self.zygotes.pop(another, None):
            self.failures += old.has_failed
            old.close()

    def close(self) -> None:
        """End the zygotes."""
        while self.zygotes:
            self.zygotes.popitem()[1].close()


class WarmPool:
    """The zygotes of this process, for all runs in it. Those in use outlive their replacement until they are done."""

    def __init__(self, unpaid: int = UNPAID) -> None:
        self._unpaid = unpaid
        self._families: dict[tuple[object, ...], Family] = {}

    @property
    def families(self) -> Sequence[Family]:
        """Return the families that have zygotes."""
        return tuple(self._families.values())

    def begin(self, wanted: Sequence[tuple[Invocation, Confinement]], *, ahead: bool = False) -> None:
        """Start zygotes for all that is about to confirm a green, or none: its probe enters the sandbox as its rounds.

        *ahead*: they get ready beside other work, which pays for the first green already.
        """
        families = [family for one in wanted if not isinstance(family := self.find_family(*one), str)]
        if len(families) < len(wanted):
            return
        for family in families:
            family.requests[True] += 0 if ahead else ROUNDS
        if ahead or all(family.requests[True] > self._unpaid for family in families):
            for family in families:
                if True not in family.zygotes and family.failures < FAILURES:
                    family.start(another=True)

    def expect(self, invocation: Invocation, confinement: Confinement) -> None:
        """Have the zygote of *invocation*, if there is one, make a process ready for its sandbox."""
        family = self.find_family(invocation, confinement)
        if not isinstance(family, str) and (zygote := family.zygotes.get(confinement.role is Role.CONFIRMING)):
            zygote.expect(_expect(confinement, wrap_invocation(invocation, confinement)))

    async def prepare(self, invocation: Invocation, confinement: Confinement) -> None:
        """Wait for a zygote of *invocation*, if it can have one. Those of confirmations are begun by `begin` alone."""
        family = self.find_family(invocation, confinement)
        if isinstance(family, str):
            return
        family.requests[False] += confinement.role is not Role.CONFIRMING
        another = family.takes_another(confinement.role, self._unpaid)
        zygote = family.zygotes.get(another)
        if zygote is None and (another or family.requests[False] <= self._unpaid):
            return
        if zygote is None or zygote.is_dead or zygote.forks >= FORKS or _would_repeat(zygote, invocation, confinement):
            family.drop(another=another)
            if family.failures >= FAILURES:
                return
            zygote = family.start(another=another)
        await zygote.settle()
        if zygote.report.refused and zygote.modules:
            await family.start_without_modules(another=another).settle()

    def find(self, invocation: Invocation, confinement: Confinement, wrapped: Wrapped) -> tuple[Zygote, Expected] | str:
        """Return the zygote for *invocation* and what is asked of it, or why the process has to be started."""
        family = self.find_family(invocation, confinement)
        if isinstance(family, str):
            return family
        zygote = family.zygotes.get(family.takes_another(confinement.role, self._unpaid))
        if zygote is None:
            return "one of the first of its kind"
        if not zygote.is_ready:
            return "the zygote did not get ready"
        hidden = set(zygote.report.names) & list_room_names(confinement.room, _list_paths(invocation))
        shadow = f"the tree has a module of its own called {min(hidden)}" if hidden else ""
        if reason := zygote.report.refused or shadow or _look_at_sandbox(invocation, wrapped):
            return reason
        zygote.was_first |= confinement.role is Role.EXPECTED
        family.expected = zygote.claim(_expect(confinement, wrapped))
        return zygote, family.expected

    def learn(self, invocation: Invocation, confinement: Confinement, modules: Sequence[str]) -> None:
        """Record the modules that a process imported: the next zygotes import them, too."""
        family = self.find_family(invocation, confinement)
        if isinstance(family, str):
            return
        new = [name for name in modules if name not in family.modules and all(map(str.isidentifier, name.split(".")))]
        if new and family.learned < LEARNED:
            family.learned += 1
            family.modules += tuple(new)
            for another in list(family.zygotes):
                if family.requests[another] > self._unpaid:  # one that was begun ahead is about to be asked
                    family.start(another=another)

    def close(self) -> None:
        """End all zygotes."""
        while self._families:
            self._families.popitem()[1].close()

    def find_family(self, invocation: Invocation, confinement: Confinement) -> Family | str:
        """Return the family of *invocation*, or why it has none."""
        *python, script, program = invocation.argv
        if script != start.__file__ or program not in PROGRAMS:
            return "another program than pytest"
        if "trace" in invocation.config:
            return "lines are traced"
        if any(word.startswith("-W") for word in python):  # a warning could end a zygote, or the supervisor in a fork
            return "the task has rules for warnings"
        env = {name: value for name, value in scrub(invocation, confinement).items() if name not in ROOMLY}
        key = (*python, *sorted(env.items()), PROGRAMS[program])
        family = self._families.pop(key, None) or Family(tuple(python), env, PROGRAMS[program])
        while len(self._families) >= KEPT:
            self._families.pop(next(iter(self._families))).close()
        self._families[key] = family  # the newest last
        return family


def _would_repeat(zygote: Zygote, invocation: Invocation, confinement: Confinement) -> bool:
    """Return whether the code under test would run once more with the hashes of strings that its first run had."""
    with_code = invocation.argv[-1] == programs.PYTEST
    return with_code and zygote.was_first and confinement.role is Role.CONFIRMING


def _list_paths(invocation: Invocation) -> Sequence[str]:
    paths = invocation.config.get("paths", ())
    return [path for path in paths if type(path) is str] if isinstance(paths, list | tuple) else ()


def list_room_names(room: Path, paths: Sequence[str]) -> set[str]:
    """Return the top-level modules that the files of *room* define, in any folder that may be on its path."""
    names: set[str] = set()
    for folder in {"", "src", *paths}:
        with contextlib.suppress(OSError):
            names.update(name.partition(".")[0] for name in os.listdir(room / folder))  # noqa: PTH208
    return names


def _expect(confinement: Confinement, wrapped: Wrapped) -> Expected:
    """Return the request of a process in the sandbox that *wrapped* describes."""
    steps: list[tuple[str, list[str]]] = []
    words = list(wrapped.argv)
    while "--" in words:
        steps, words = bubble.read_steps(words)
    common = list(takewhile(lambda step: step[0] != FIRST_OF_ROOM, steps))
    common = common if len(common) < len(steps) else []
    files = tuple(content.hex() for content in wrapped.files) if common else ()
    limits = confinement.ceiling
    return Expected("", limits.memory_bytes, limits.processes, bool(steps), tuple(common), files)


def _look_at_sandbox(invocation: Invocation, wrapped: Wrapped) -> str:
    """Return why the sandbox of *wrapped* cannot be entered by a fork, or empty."""
    before = wrapped.argv[: -len(invocation.argv)]
    if Path(wrapped.argv[-len(invocation.argv)]).name != Path(invocation.argv[0]).name:
        return "the interpreter cannot be started"
    if not before or programs.ENTER in before:
        return ""
    words = list(before)
    while words and words[-1] == "--":
        try:
            _, words = bubble.read_steps(words)
        except OSError as unknown:
            return f"the sandbox cannot be entered: {unknown.strerror}"
    return "the sandbox starts a shell first" if words else ""
