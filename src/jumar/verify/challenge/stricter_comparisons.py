"""Makes a comparison stricter: it holds for correct code, and fails for an object that affirms everything.

Nothing is falsified by it, so nothing has to be hidden: in a challenge each comparison with a side that is no single
literal becomes one, wherever it stands and whatever the coins say. Beside what is asked, something is asked that
nothing right affirms; which, and in which order, is drawn. What nobody can foresee of the types that meet there is
found out where they meet, by `appended_code`.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from jumar.verify.challenge.constants import EQUAL, Function, list_parameters, walk_own
from jumar.verify.challenge.literals import LETTERS
from jumar.verify.challenge.source_edits import Edits, ParsedSource, SourceEdit, split_words

OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
"""Operators, and how they are written."""

ASSERTIONS: dict[str, type[ast.cmpop]] = {
    **dict.fromkeys(EQUAL, ast.Eq),
    "assertNotEqual": ast.NotEq,
    "assertIn": ast.In,
    "assertNotIn": ast.NotIn,
    "assertGreater": ast.Gt,
    "assertGreaterEqual": ast.GtE,
    "assertLess": ast.Lt,
    "assertLessEqual": ast.LtE,
}
"""Methods of unittest that stand for an operator."""

NEEDED = frozenset({
    "type", "issubclass", "str", "bytes", "list", "tuple", "set", "frozenset", "dict", "int", "float", "complex",
    "bool", "enumerate", "zip", "any", "all", "hasattr", "id", "abs", "Exception", "AssertionError",
})  # fmt: skip
"""Built-ins that `appended_code` mentions."""

COMPARISONS = frozenset({"__eq__", "__ne__", "__contains__", "__gt__", "__ge__", "__lt__", "__le__"})
"""Methods that operators call."""

OWN_EQUALITY = COMPARISONS | {"startswith", "endswith"}
"""Methods by which the tests' own classes define equality or order, in any way."""

MATCHER_WORDS = frozenset({
    "any", "anything", "anyone", "whatever", "everything", "wildcard", "wild", "ignore", "ignored", "approx",
    "approximate", "approximately", "fuzzy", "like", "match", "matches", "matcher", "matchers", "matching", "mock",
    "mocks", "mocker", "mocked", "magic", "placeholder", "lenient", "inf", "infinity",
})  # fmt: skip
"""In the names of matchers: what may be equal to things of all sorts, or affirm whatever it is asked."""

MATCHERS = frozenset({"hamcrest", "dirty_equals", "testfixtures", "callee", "expects", "sure", "matchlib", "assertpy"})
"""Modules of matchers."""

LONG = 12
"""So many letters by chance are found nowhere."""


class Comparison(NamedTuple):
    """Things that are compared, each with the next one."""

    operands: Sequence[ast.expr]
    operators: Sequence[type[ast.cmpop]]
    build_edits: Callable[[str], Edits]
    """Builds the edits that hand the operands to a given function."""


def get_comparison(source: ParsedSource, test: ast.Compare) -> Comparison | None:
    """Return what *test* compares; None if it cannot be edited."""
    sides = [test.left, *test.comparators]
    found = [_find_operator(source, *pair) for pair in zip(sides, test.ops, sides[1:], strict=False)]
    places = [at for at in found if at]
    if len(places) < len(found) or any(isinstance(n, ast.NamedExpr) for n in ast.walk(test)):
        return None
    start, end = source.get_span(test)

    def build_edits(function: str) -> Edits:
        commas = (SourceEdit(*at, ",") for at in places)
        return (SourceEdit(start, start, f"{function}("), *commas, SourceEdit(end, end, ")"))

    return Comparison(sides, [type(op) for op in test.ops], build_edits)


def _find_operator(
    source: ParsedSource, left: ast.expr, operator: ast.cmpop, right: ast.expr
) -> tuple[int, int] | None:
    """Return the position of an *operator*; None if something else, such as a comment, stands there."""
    start, end = source.get_span(left)[1], source.get_span(right)[0]
    written = OPERATORS[type(operator)].replace(" ", r"\s+")
    found = re.fullmatch(rf"[\s)\\]*({written})[\s(\\]*", source.get_text(start, end))
    return (start + found.start(1), start + found.end(1)) if found else None


def get_assertion_operands(source: ParsedSource, call: ast.Call) -> Comparison | None:
    """Return the two things that an assertion of unittest's compares."""
    _, end = source.get_span(call)
    _, named = source.get_span(call.func)
    opened = re.match(r"[\s\\]*\(", source.get_text(named, end))
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ASSERTIONS or not opened:
        return None
    start, name = named + opened.end(), call.func.attr

    def build_edits(function: str) -> Edits:
        renamed = SourceEdit(named - len(name.encode()), named, "assertTrue")
        return (renamed, SourceEdit(start, start, f"{function}("), SourceEdit(end - 1, end - 1, ")"))

    return Comparison(call.args[:2], [ASSERTIONS[name]], build_edits)


def allows_stricter(tree: ast.Module, modules: Mapping[str, str]) -> bool:
    """Return whether a file can have stricter comparisons: built-ins keep their meaning, no matchers are imported."""
    taken = {node.name for node in tree.body if isinstance(node, Function | ast.ClassDef)} | set(modules)
    taken |= {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    alien = any(module.partition(".")[0] in MATCHERS for module in modules.values())
    return not (alien or NEEDED & (taken | _list_stored(walk_own(tree.body))))


def has_own_equality(tree: ast.Module) -> bool:
    """Return whether classes in a file define equality or containment, or what helps its tests is equal to much."""
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if getattr(node, "id", getattr(node, "attr", "")) in ("ANY", "approx"):
            return True
        is_test = isinstance(node, Function) and node.name.startswith("test")
        todo += [] if is_test else ast.iter_child_nodes(node)
    return not OWN_EQUALITY.isdisjoint(defined | _list_stored(ast.walk(tree)))


def _list_stored(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


def names_no_matcher(function: Function, bound: frozenset[str]) -> bool:
    """Return whether no name in a function suggests a matcher: an object that is equal to everything."""
    mentioned = {function.name, *list_parameters(function)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not (node.id == "any" and "any" not in bound):
            mentioned.add(node.id)
        elif isinstance(node, ast.Attribute):
            mentioned.add(node.attr)
    return MATCHER_WORDS.isdisjoint(word.lower() for name in mentioned for word in split_words(name))


def make_stricter(pair: Comparison, random: Random, *, truth: bool) -> Edits:
    """Return the edits that also ask of *pair* what no correct value affirms.

    Args:
        pair: what is compared.
        random: draws what is asked beside.
        truth: whether the result is asked for its truth, whatever it is; else an object is no answer but a query.
    """
    # Never a number that may be congruent. A text has more letters and more digits than the other, at both ends, as
    # some may heed only a part of it.
    coins = [int(random.random() < chance) for chance in (1 / 2, 1 / 5)]
    number = f"{random.randint(10, 99)}e{random.randint(100, 200)}j"
    values = [_draw_mixed(random) + _draw_letters(random, 6), _draw_mixed(random), random.randint(3, 99)]
    needle = pair.operands[0].value if isinstance(pair.operands[0], ast.Constant) else None
    alike = _draw_alike(needle, random) if isinstance(needle, str | bytes) and needle else None
    written = tuple(OPERATORS[operator] for operator in pair.operators)
    given = ", ".join(map(ascii, (written, truth, *coins, *values[:2])))
    return pair.build_edits(f"_asks_strictly({given}, {number}, {values[2]}, {alike!a})")


def _draw_letters(random: Random, count: int) -> str:
    return "".join(random.choices(LETTERS, k=count))


def _draw_mixed(random: Random) -> str:
    return f"{_draw_letters(random, 3)}{random.randint(10, 999)}{_draw_letters(random, 2)}"


def _draw_alike(text: str | bytes, random: Random) -> str | bytes:
    """Return a text by chance that looks like *text*: letters where it has any, digits where it has any."""
    if isinstance(text, bytes):
        return str(_draw_alike(text.decode("latin-1"), random)).encode("latin-1")
    new = [_draw_like(character, random) for character in text]
    changed = sum(character in string.ascii_letters for character in text)
    return "".join(new) + _draw_letters(random, max(0, LONG - changed))


def _draw_like(character: str, random: Random) -> str:
    if character in string.digits:
        return random.choice(string.digits)
    if character in string.ascii_letters:
        letter = random.choice(LETTERS)
        return letter.upper() if character.isupper() else letter
    return character
