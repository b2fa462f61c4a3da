"""Plug-in of a challenge round: rewrites the files of the tests as they are imported, and reports what was asked."""

from __future__ import annotations

import ast
import hashlib
import importlib
import re
import sys
import types
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from jumar.child.challenge import rewritten_comparisons, syntax
from jumar.child.challenge.asserting_functions import has_assertion
from jumar.child.challenge.compared_data import KIND, WHOLE
from jumar.child.challenge.current_test import CurrentTest
from jumar.child.challenge.deciding import (
    get_bases,
    get_names,
    is_class,
    is_made_in_python,
    is_where_it_says,
    list_deciding,
    may_decide,
)
from jumar.child.challenge.genuine_classes import GenuineClasses
from jumar.child.challenge.own_assertions import OwnAssertion, list_missed, list_written
from jumar.child.challenge.questions import STANDING, Questions
from jumar.child.pytest import code_identity
from jumar.child.pytest.loaded_code import list_classes

if TYPE_CHECKING:
    import pytest

    Send = Callable[..., None]
    Wrapper = Generator[None, Any, None]

EXCUSING = ("skip", "fail", "flaky", "rerun", "retry", "forked")
"""In the name of a mark under which a failure does not count, or is tried again."""

MATCHERS = frozenset({
    "any", "anything", "anyone", "whatever", "everything", "wildcard", "wild", "ignore", "ignored", "approx",
    "approximate", "approximately", "fuzzy", "like", "match", "matches", "matcher", "matchers", "matching",
    "placeholder", "lenient", "infinity",
})  # fmt: skip
"""In the names of classes of the code under test whose objects are meant to be equal to much."""

IDLE, EMPTY, NOTHING, AFFIRMING, ANSWERED, SWAYED, PARTIAL = -2, -1, 0, 1, 2, 3, 4
"""Strengths of a test, as `core.gate.challenge_rounds.Strength` has them."""


class ChallengePlugin:
    """Shows what the tests of one round compare to `Questions`.

    Args:
        config: hashes of the `files` to rewrite, `falsified` functions, places of comparisons that are `false`, and a
            `seed`; in two processes, the functions that are `comparing` something with a literal; `bare`, if no words
            of a failed assertion are wanted: to prepare them takes half of the loading.
        room: folder of the files.
        is_foreign: tells whether a file is of the code under test.
        send: sends a record.
    """

    def __init__(self, config: dict[str, Any], room: Path, is_foreign: Callable[[str], bool], send: Send) -> None:
        self._falsified, self._bare, self._send = frozenset(config["falsified"]), config["bare"], send
        self._files = {str(room / path): known for path, known in config["files"].items()}
        self._names = {name for path in config["files"] for name in _name_modules(path)}
        self._is_foreign, self._judged = is_foreign, False
        self._sources: list[str] = []
        self._rewritten: set[str] = set()
        self._assertions: dict[str, dict[int, list[OwnAssertion]]] = {}
        """File -> what `own_assertions.list_assertions` returns for it."""
        self._able: set[str] = set()
        """Ids of tests that can be falsified."""
        self._summed = frozenset(config["summed"])
        self._false = {str(room / path): places for path, places in config["false"].items()}
        self._apart, self._comparing = "comparing" in config, frozenset(config.get("comparing", ()))
        self._known: dict[int, tuple[type, list[Any], bool]] = {}
        """Number of a class -> the class, methods by which it may decide, and whether its objects do decide."""
        self.questions = Questions(
            Random(config["seed"]),  # noqa: S311  drawn from secrets
            self._is_product,
            self._decides,
            self._is_of_tests,
            self._is_strange,
        )
        self._rewrite: Any = importlib.import_module("_pytest.assertion.rewrite")
        # Where the tests have a process of their own, no class in it is of the code under test.
        before = {} if self._apart else list_classes()
        self._genuine = GenuineClasses(
            lambda kind: code_identity.get_address(kind) in before, {sys.prefix, sys.base_prefix}
        )
        self._install()

    def _install(self) -> None:
        """Let pytest rewrite comparisons before assertions, and hand the questions to the files."""
        module, bare = self._rewrite, self._bare
        usual, run = module.rewrite_asserts, module.AssertionRewritingHook.exec_module
        compile_file = module._rewrite_test  # noqa: SLF001  nobody else has the code

        def rewrite_file(tree: ast.Module, source: bytes, path: Any = None, config: Any = None) -> None:
            if path in self._files:
                self._rewritten.add(path)
                if hashlib.sha256(source).hexdigest() != self._files[path]:
                    self._send(["tampered", f"the file {Path(path).name} of the tests"])
                    raise ImportError("it is another file")
                made = rewritten_comparisons.rewrite(tree, self._false.get(path, ()), calls=bool(self._summed))
                self._judged, self._assertions[path] = self._judged or made.judged, made.assertions
                self._sources.append(source.decode("latin-1"))
                if bare:
                    return
            usual(tree, source, path, config)

        def run_file(hook: Any, loaded: types.ModuleType) -> None:
            vars(loaded)[syntax.NAME] = self.questions
            run(hook, loaded)

        def compile_test(path: Any, config: Any) -> Any:
            made = compile_file(path, config)
            self._genuine.add_file(str(path), made[1])
            return made

        module.rewrite_asserts, module.AssertionRewritingHook.exec_module = rewrite_file, run_file
        module._rewrite_test = compile_test  # noqa: SLF001  as above

    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Wrapper:
        """Have all files of the tests rewritten, helpers too."""
        hook: Any = early_config.pluginmanager.rewrite_hook
        if hasattr(hook, "_must_rewrite"):
            hook._must_rewrite.update(self._names)  # noqa: SLF001  its method would warn of what is imported
        yield

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Find out which tests can be falsified, before one runs."""
        self._able = {item.nodeid for item in session.items if not self._judged and self._can_be_falsified(item)}

    def _can_be_falsified(self, item: Any) -> bool:
        """Return whether the end of the test *item* is handed on, and a failure of it counts.

        It is said to be of what is there in the place of a file of the tests, so that nobody gets out of it.
        """
        if any(word in mark.name.lower() for mark in item.iter_markers() for word in EXCUSING if mark.name != "skipif"):
            return False
        function, file = getattr(item, "obj", None), get_file(item)
        if getattr(function, "__unittest_expecting_failure__", False):
            return False
        replaced = file in self._files and file not in self._rewritten
        return replaced or any("finish" in one.__code__.co_names for one in list_written(item))

    def pytest_runtest_protocol(self, item: pytest.Item) -> Wrapper:
        """See the course of a test, and report what was learnt of it."""
        able, name = item.nodeid in self._able, item.nodeid.partition("[")[0]
        summed = name in self._summed - self._falsified
        test = CurrentTest(falsified=able and name in self._falsified, summed=summed)
        self.questions.test = test
        yield
        self.questions.test = None
        whole = test.passed and not test.falsified
        idle = not test.came and (test.speaks or (whole and has_assertion(list_written(item))))
        # One that passes and did not come to its end was not run: it is forged.
        if idle and self._apart and not able:
            self._send(["strength", item.nodeid, IDLE])
        elif not able or (test.falsified and (test.finished or not test.passed) and not (test.asserted or test.lying)):
            self._send(["strength", item.nodeid, EMPTY if test.empty else NOTHING])
        elif test.finished and not (test.falsified or test.compared or test.asserted) and name in self._comparing:
            self._send(["strength", item.nodeid, EMPTY])
        elif idle:
            self._send(["strength", item.nodeid, IDLE])
        elif test.partial:
            self._send(["strength", item.nodeid, self._judge_partial(test)])
        self._send_reached(item, test)

    def _judge_partial(self, test: CurrentTest) -> int:
        """Return how *test* is falsified, in which something has a say, or something is compared unseen."""
        if test.affirming or not test.swayed:
            return AFFIRMING if test.affirming else PARTIAL
        return ANSWERED if any(map(self._is_unnamed, test.kinds.values())) else SWAYED

    def _is_unnamed(self, kind: type) -> bool:
        """Return whether objects of *kind* are the code's, and the tests do not name it: they seem to await data."""
        bases = [base for base in get_bases(kind) if is_made_in_python(base) and self._is_strange(base)]
        if not bases:  # of a library: either it decides by itself, or something of the code stands in it
            return is_made_in_python(kind) and not self._decides(kind)
        names = {one.__name__ for one in bases if self._is_made_by_product(one) and is_where_it_says(one)}
        capitals = [rf"\b{name}\b" for name in names if name[:1].isupper()]
        named = any(re.search(word, source) for word in capitals for source in self._sources)
        return self._is_product(kind) and not named

    def _send_reached(self, item: pytest.Item, test: CurrentTest) -> None:
        """Report to which assertions and comparisons a test came, and to which of its own it did not."""
        # The folder of the tests is another one in each round.
        reached = {f"{Path(file).name}:{line}": count for (file, line), count in test.assertions.items()}
        compared = {f"{Path(file).name}:{line} compares": count for (file, line), count in test.comparisons.items()}
        found = {**reached, **compared}
        for (file, line), one in () if is_drawn(item) else test.sums.items():
            place = f"{Path(file).name}:{line}"
            found.update({f"{place}{WHOLE}{one.whole:x}": 1, **{f"{place}{KIND}{kind}": 1 for kind in one.kinds}})
        for (file, number), count in test.calls.items():
            place = f"{Path(file).name} calls {number}"
            found.update({place: 1} if is_drawn(item) else {place: 1, f"{place}{WHOLE}{count}": 1})
        # How many examples hypothesis tries differs from run to run.
        self._send(["reached", item.nodeid, dict.fromkeys(found, 1) if is_drawn(item) else found])
        missed: list[int] = []
        for code in (function.__code__ for function in list_written(item)):
            own = self._assertions.get(code.co_filename, {}).get(code.co_firstlineno, [])
            places = (test.assertions, test.comparisons)
            missed += list_missed(own, *([n for file, n in one if file == code.co_filename] for one in places))
        if missed:
            self._send(["missed", item.nodeid, missed])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that the running test passed."""
        if self.questions.test is not None and report.when == "call":
            self.questions.test.passed = report.outcome == "passed"

    def _is_product(self, thing: Any) -> bool:
        """Return whether *thing* is of the code under test, and no matcher that the tests name."""
        if type(thing) is types.FunctionType:
            return self._is_foreign(_find_file(thing))
        kind = thing if is_class(thing) else type(thing)
        module = str(get_names(kind).get("__module__") or "builtins").rpartition(".")[2].strip("_").lower()
        if any(map(self._is_made_by_product, get_bases(kind))):
            return not (_is_matcher(kind.__name__) and any(kind.__name__ in source for source in self._sources))
        if any(map(self._is_of_tests, get_names(kind).values())):
            return False
        if not (is_where_it_says(kind) and self._is_genuine(kind)):
            return True
        named = module == "builtins" or any(module in source.lower() for source in self._sources)
        if (module, kind.__name__) == ("mock", "_ANY"):  # equal to everything: who mocks does not ask for it by that
            named = any("ANY" in source for source in self._sources)
        return not named and self._files.keys().isdisjoint(code_identity.find_places(kind))

    def _decides(self, kind: type) -> bool:
        """Return whether objects of *kind* say themselves what they are, by more than a class of Python has."""
        bases = list_deciding(kind)
        now = [value for base in bases for name, value in get_names(base).items() if may_decide(name)]
        _, before, decides = self._known.get(id(kind), (kind, None, False))
        if before is None or list(map(id, before)) != list(map(id, now)):
            decides = any(map(self._may_lie, bases))
            self._known[id(kind)] = kind, now, decides
        return decides

    def _may_lie(self, kind: type) -> bool:
        package = str(get_names(kind).get("__module__")).partition(".")[0]
        known = package in getattr(sys, "stdlib_module_names", ()) and package != "unittest" and is_where_it_says(kind)
        known = known and self._is_genuine(kind)
        return self._is_made_by_product(kind) or (not known and self._is_product(kind))

    def _is_strange(self, kind: type) -> bool:
        """Return whether the class *kind* is neither the tests' own nor one of a library."""
        if any(map(self._is_of_tests, get_names(kind).values())):
            return False
        return self._is_made_by_product(kind) or not (is_where_it_says(kind) and self._is_genuine(kind))

    def _is_genuine(self, kind: type) -> bool:
        return self._apart or self._genuine.is_genuine(kind)

    def _is_of_tests(self, function: Any) -> bool:
        """Return whether *function* stands in a file of the tests: its code itself, whatever that says of itself."""
        below = code_identity.unwrap_function(function)
        file = "" if below is None else below.__code__.co_filename
        return file in self._files and self._genuine.is_written(below, file)

    def _is_made_by_product(self, kind: Any) -> bool:
        names = get_names(kind)
        if str(names.get("__module__")).startswith(STANDING):
            return True
        made = [code_identity.unwrap_function(value) for value in names.values()]
        files = [file for one in made if one is not None for file in [one.__code__.co_filename] if file[:1] != "<"]
        return any(map(self._is_foreign, [*files, *code_identity.find_places(kind)]))


def is_drawn(item: Any) -> bool:
    """Return whether hypothesis draws what the test *item* is given."""
    return hasattr(getattr(item, "obj", None), "hypothesis")


def _is_matcher(name: str) -> bool:
    return not MATCHERS.isdisjoint(word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", name))


def _name_modules(path: str) -> Iterator[str]:
    """Yield the names by which the file at *path* may be imported."""
    parts = path[: -len(".py")].split("/")
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    yield from (".".join(parts[place:]) for place in range(len(parts)))


def _find_file(function: Any) -> str:
    below = code_identity.unwrap_function(function)
    return "" if below is None else below.__code__.co_filename


def get_file(item: Any) -> str:
    """Return the file of a test, whatever the version of pytest."""
    return str(getattr(item, "path", None) or item.fspath)
