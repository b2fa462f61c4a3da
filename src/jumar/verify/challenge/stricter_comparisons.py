"""Makes a comparison stricter: it holds for correct code, and fails for an object that affirms everything.

Nothing is falsified by it, so nothing has to be hidden: in a challenge each comparison that has no literal becomes one,
whatever the coins say. Beside what is asked, something is asked that nothing right affirms; which, and in which order,
is drawn. What nobody can foresee of the types that meet there is found out where they meet.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from jumar.verify.challenge.constants import EQUAL, NameBindings, list_parameters
from jumar.verify.challenge.literals import LETTERS
from jumar.verify.challenge.source_edits import Edits, ParsedSource, SourceEdit, split_words

OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.In: "in", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
"""Operators, and how they are written."""

HELPER = """
def _affirms_also(ask):
    try:
        return bool(ask())
    except Exception:
        return False
"""
"""Function at the end of each test file of a challenge: who cannot be compared affirms nothing."""

ASSERTIONS: dict[str, type[ast.cmpop]] = {
    **dict.fromkeys(EQUAL, ast.Eq),
    "assertIn": ast.In,
    "assertGreater": ast.Gt,
    "assertGreaterEqual": ast.GtE,
    "assertLess": ast.Lt,
    "assertLessEqual": ast.LtE,
}
"""Methods of unittest that stand for an operator."""

NEEDED = frozenset({"type", "issubclass", "object", "str", "bytes", "list", "tuple", "set", "dict", "int", "float"})
"""Built-ins that a stricter comparison mentions."""

ODD = frozenset({"__eq__", "__ne__", "__contains__", "__gt__", "__ge__", "__lt__", "__le__", "startswith", "endswith"})
"""Methods by which the tests' own classes define equality or order, in any way."""

LENIENT = frozenset({
    "any", "anything", "anyone", "whatever", "everything", "wildcard", "wild", "ignore", "ignored", "approx",
    "approximate", "approximately", "fuzzy", "like", "match", "matches", "matcher", "matchers", "matching", "mock",
    "mocks", "mocker", "mocked", "magic", "placeholder", "lenient", "inf", "infinity",
})  # fmt: skip
"""In the names of what may be equal to things of all sorts, or affirm whatever it is asked."""

MATCHERS = frozenset({"hamcrest", "dirty_equals", "testfixtures", "callee", "expects", "sure", "matchlib", "assertpy"})
"""Modules of such things."""

LONG = 12
"""So many letters by chance are found nowhere."""


class Comparison(NamedTuple):
    """Two things that an assertion compares."""

    left: ast.expr
    right: ast.expr
    operator: type[ast.cmpop]
    build_edits: Callable[[str], Edits]
    """Builds the edits that turn the assertion into a given expression of its operands, named `a` and `b`."""


def has_comparison(test: ast.expr) -> bool:
    """Return whether *test*, somewhere in it, asks whether things are equal, contained or in order."""
    return any(type(op) in OPERATORS for node in ast.walk(test) if isinstance(node, ast.Compare) for op in node.ops)


def get_comparison(source: ParsedSource, test: ast.expr) -> Comparison | None:
    """Return the two sides of *test*, if it is a plain comparison."""
    at = _find_operator(source, test) if isinstance(test, ast.Compare) and len(test.ops) == 1 else None
    if not isinstance(test, ast.Compare) or at is None or any(isinstance(n, ast.NamedExpr) for n in ast.walk(test)):
        return None
    start, end = source.get_span(test)

    def build_edits(body: str) -> Edits:
        return (SourceEdit(start, start, f"(lambda a, b: {body})("), SourceEdit(*at, ","), SourceEdit(end, end, ")"))

    return Comparison(test.left, test.comparators[0], type(test.ops[0]), build_edits)


def _find_operator(source: ParsedSource, test: ast.Compare) -> tuple[int, int] | None:
    """Return the position of the only operator of *test*; None if something else, such as a comment, stands there."""
    start, end = source.get_span(test.left)[1], source.get_span(test.comparators[0])[0]
    written = OPERATORS.get(type(test.ops[0]))
    found = re.fullmatch(rf"[\s)\\]*({written})[\s(\\]*", source.get_text(start, end)) if written else None
    return (start + found.start(1), start + found.end(1)) if found else None


def get_assertion_operands(source: ParsedSource, call: ast.Call) -> Comparison | None:
    """Return the two things that an assertion of unittest's compares."""
    _, end = source.get_span(call)
    _, named = source.get_span(call.func)
    opened = re.match(r"[\s\\]*\(", source.get_text(named, end))
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ASSERTIONS or not opened:
        return None
    start, name = named + opened.end(), call.func.attr

    def build_edits(body: str) -> Edits:
        renamed = SourceEdit(named - len(name.encode()), named, "assertTrue")
        opening = SourceEdit(start, start, f"(lambda a, b, *_, **__: {body})(")
        return (renamed, opening, SourceEdit(end - 1, end - 1, ")"))

    return Comparison(call.args[0], call.args[1], ASSERTIONS[name], build_edits)


def is_open(tree: ast.Module, modules: Mapping[str, str]) -> bool:
    """Return whether built-ins keep their meaning in a file, and its *modules* bring nothing lenient."""
    taken = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)} | set(modules)
    alien = any(module.partition(".")[0] in MATCHERS for module in modules.values())
    return not (alien or NEEDED & (taken | _list_stored(tree)))


def is_odd(tree: ast.Module) -> bool:
    """Return whether classes in a file define equality or containment."""
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return not ODD.isdisjoint(defined | _list_stored(tree))


def _list_stored(tree: ast.Module) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


def is_candid(names: NameBindings, bound: frozenset[str]) -> bool:
    """Return whether nothing in a test suggests objects that are equal to everything."""
    if NEEDED & set(list_parameters(names.function)):
        return False
    mentioned = {names.function.name}
    for node in ast.walk(names.function):
        if isinstance(node, ast.Name) and not (node.id == "any" and "any" not in bound):
            mentioned.add(node.id)
        elif isinstance(node, ast.Attribute):
            mentioned.add(node.attr)
    mentioned.update(list_parameters(names.function))
    return LENIENT.isdisjoint(word.lower() for name in mentioned for word in split_words(name))


def make_stricter(pair: Comparison, random: Random) -> Edits:
    """Return the edits that also ask of *pair* what no correct value affirms."""
    written = OPERATORS[pair.operator]
    if pair.operator is ast.Eq:
        # Each side with what the other one is not. If a subclass defines `==` of its own, `!=` may hold too.
        more = [f"a == ({_format_another('b', random)})", f"({_format_another('a', random)}) == b"]
    elif pair.operator is ast.In:
        more = [_ask_for_nothing(pair.left, random)]
    else:
        more = _ask_for_order(written, random)
    asked = [f"a {written} b", *(f"not _affirms_also(lambda: {one})" for one in more)]
    return pair.build_edits(" and ".join(random.sample(asked, len(asked))))


def _ask_for_nothing(needle: ast.expr, random: Random) -> str:
    """Return an expression that looks for a text that is nowhere, in a text or a sequence."""
    letters = _draw_letters(random, LONG)
    kind, text = "str", f"a + {letters!a}"
    if isinstance(needle, ast.Constant) and isinstance(needle.value, str | bytes):
        old = needle.value if isinstance(needle.value, str) else needle.value.decode("latin-1")
        kind = type(needle.value).__name__
        text = ("" if kind == "str" else "b") + f"{_draw_alike(old, random)!a}"
    return f"type(a) is {kind} and issubclass(type(b), ({kind}, list, tuple)) and {text} in b"


def _ask_for_order(written: str, random: Random) -> list[str]:
    """Return expressions: the reverse order, and each number beyond a larger one and below a smaller one."""
    kinds = "(int, float)" if written in "<>" else "int"
    step, signs = random.randint(1000, 1000000), random.sample("+-", 2)
    turned = [f"b {written} a"] if written in "<>" else []
    return [
        *turned,
        " and ".join(
            (f"issubclass(type(a), {kinds})", *(f"a {written} {_format_beyond('a', s, step)}" for s in signs))
        ),
        " and ".join(
            (f"issubclass(type(b), {kinds})", *(f"{_format_beyond('b', s, step)} {written} b" for s in signs))
        ),
    ]


def _format_beyond(name: str, sign: str, step: int) -> str:
    """Return a number of the kind of *name* that is larger, or smaller."""
    return f"(int.__index__({name}) {sign} {step} if issubclass(type({name}), int) else {sign}1e999)"


def _format_another(name: str, random: Random) -> str:
    """Return an expression of what is not equal to whatever equals *name*: of its type, or a complex number.

    It is data, so that another process can be asked too. It is never a number that may be congruent, nor what an empty
    sequence may be the beginning of; and a text has more letters and more digits than the other, at both ends, as some
    may heed only a part of it.
    """
    new = f"{random.randint(10, 99)}e{random.randint(100, 200)}j"
    if random.random() < 1 / 5:
        return new
    kinds = {
        "str": f"{_draw_mixed(random)!r} + {name} + {_draw_mixed(random)!r}",
        "bytes": f"b{_draw_mixed(random)!r} + {name} + b{_draw_mixed(random)!r}",
        "list": f"[{_draw_mixed(random)!r}, *{name}]",
        "tuple": f"({_draw_mixed(random)!r}, *{name})",
        "dict": f"{{{_draw_mixed(random)!r}: {name}}}",
        "set": f"{{{_draw_mixed(random)!r}}}",
    }
    typed = "".join(f"{made} if type({name}) is {kind} and {name} else " for kind, made in kinds.items())
    return f"{typed}{new}"


def _draw_letters(random: Random, count: int) -> str:
    return "".join(random.choices(LETTERS, k=count))


def _draw_mixed(random: Random) -> str:
    return f"{_draw_letters(random, 3)}{random.randint(10, 999)}{_draw_letters(random, 2)}"


def _draw_alike(text: str, random: Random) -> str:
    """Return a text by chance that looks like *text*: letters where it has any, digits where it has any."""
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
