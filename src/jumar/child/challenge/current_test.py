"""Findings about the test that runs, and what it has entered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from jumar.child.challenge.compared_data import DataSum
from jumar.child.challenge.deciding import TOO_MUCH, find_deciding, measure_plain

MOST_LOOKED_AT = 5_000_000
"""Things in what a test compares that are looked at, which takes half a second: of more, nothing is known."""

SEARCHED = 2_000
"""Things that are looked at in the time in which one is found that has a say."""

MOST_SUMMED_UP = 300_000
"""Parts of data of one test that are summed up, which takes half a second: the same ones in each process."""


class CurrentTest:
    """Findings about the test that runs."""

    def __init__(self, *, falsified: bool, summed: bool = False) -> None:
        self.falsified, self.summed = falsified, summed
        self.asserted = False
        """True if something was asserted that was false, and could have been right."""
        self.compared = False
        """True if it came to an assertion that compares something."""
        self.came = False
        """True if it came to an assertion."""
        self.assertions: Counter[tuple[str, int]] = Counter()
        """File and line of each assertion that it came to, as often as it did."""
        self.comparisons: Counter[tuple[str, int]] = Counter()
        """The same of operands of comparisons."""
        self.calls: Counter[tuple[str, int]] = Counter()
        """File and number of each call of the code under test by the tests, if that is *summed* up."""
        self.sums: dict[tuple[str, int], DataSum] = {}
        """Sums of what was compared there, if it is *summed* up."""
        self.speaks = False
        """True if it came to its end, and has assertions of its own."""
        self.finished = False
        """True if it came to its end."""
        self.passed = False
        """True if it was reported so."""
        self.empty = False
        """True if it came to its end, and has a literal that was changed."""
        self.failed = False  # an assertion did: if the test comes to its end all the same, something swallowed that
        self.partial = False
        """True if an object with a say was compared, or something in a way that nobody sees."""
        self.kinds: dict[int, type] = {}
        """Classes of objects with a say that it compared, by their numbers."""
        self.doubtful = False
        """True if the comparison that is made just now is such a one."""
        self.answered = False
        """True if an object of the code under test has a say in it."""
        self.affirming = False
        """True if such an object affirmed something wrong."""
        self.lying = False
        """True if something wrong was affirmed."""
        self._looked_at = self._summed_up = 0
        self._blocks: list[tuple[int, bool]] = []
        """Contexts that were entered and not left by the end of their block, and whether they are foreign."""

    @property
    def swayed(self) -> bool:
        """Return whether it compared an object with a say."""
        return bool(self.kinds)

    def add_data(self, place: tuple[str, int], value: Any) -> None:
        """Add *value* to what is compared at *place*, if that is to be summed up."""
        if self.summed and self._summed_up < MOST_SUMMED_UP:
            before = self.sums.get(place, DataSum())
            self.sums[place] = before.add(value)
            self._summed_up += self.sums[place].parts - before.parts

    def find_deciding(
        self, value: Any, decides: Callable[[type], bool], is_strange: Callable[[type], bool] = lambda _: False
    ) -> list[Any]:
        """Return what `deciding.find_deciding` does, if there is time to look into *value*."""
        if self._looked_at > MOST_LOOKED_AT:
            return [value if decides(type(value)) else TOO_MUCH]
        count = measure_plain(value)
        self._looked_at += count if count > 0 else SEARCHED - count
        return [] if count > 0 else find_deciding(value, decides, is_strange)

    def note_deciding(self, kinds: Iterable[type]) -> None:
        """Note that objects of *kinds*, of the code under test, have a say in what the test compares."""
        self.kinds.update((id(kind), kind) for kind in kinds)
        self.partial |= self.swayed

    def enter(self, number: int, *, foreign: bool) -> None:
        """Note that a context begins; a *foreign* one should let all exceptions pass."""
        self.leave(number)
        self._blocks.append((number, foreign))

    def leave(self, number: int) -> None:
        """Forget the context *number*, and those in it."""
        for place, (known, _) in enumerate(self._blocks):
            if known == number:
                del self._blocks[place:]
                break

    def resume(self, numbers: range) -> None:
        """Go on after contexts: a foreign one that was not left by its end has swallowed what came after."""
        self.partial = self.partial or any(foreign and number in numbers for number, foreign in self._blocks)
        self.leave(numbers[0])


class ExpectedException:
    """Context that expects an exception, as *made* does, and tells what came, and whether that was right.

    *has_failed* tells whether an assertion failed before.
    """

    def __init__(self, made: Any, tell: Callable[..., None], has_failed: Callable[[], bool]) -> None:
        self._made, self._tell, self._has_failed, self._failed = made, tell, has_failed, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def __enter__(self) -> Any:
        self._failed = self._has_failed()
        return self._made.__enter__()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> Any:
        try:
            answer = self._made.__exit__(kind, *rest)
        except BaseException:
            self._tell(kind, held=False, failed=self._failed)
            raise
        self._tell(kind, held=bool(answer), failed=self._failed)
        return answer
