"""Finds the values that a test expects, and values that it could expect instead and never get."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from random import Random

from jumar.verify.challenge import literals
from jumar.verify.challenge.constants import Binding, NameBindings
from jumar.verify.challenge.source_edits import DrawEdits, Edits, ParsedSource, get_dotted_name, split_words

EXCEPTIONS = (
    "ZeroDivisionError", "OverflowError", "RecursionError", "EOFError", "StopIteration", "PermissionError",
    "FileNotFoundError",
)  # fmt: skip
"""Exceptions expected instead: tests do expect them, and next to no other exception is an instance of one."""

WARNINGS = ("ImportWarning", "BytesWarning", "UnicodeWarning")

BROAD = ("BaseException", "Exception", "KeyboardInterrupt", "SystemExit", "GeneratorExit", "Warning")
CONTROL = ("skip", "fail", "exit", "interrupt", "cancel", "outcome", "xfail", "abort", "base", "group")
"""In the name of what must not fly freely, or is more than one class."""

SOLID = ("int", "str", "list", "dict", "tuple", "bytes", "float", "set", "complex", "bytearray", "frozenset")
"""Built-in types of which an object can have only one."""

TEXTUAL = ("out", "err", "output", "stdout", "stderr", "text", "message", "msg", "str", "repr", "getvalue", "read_text")
"""The last part of the names of what certainly is a text."""

WORD = re.compile(r"[a-zA-Z]{4,}")
FAR = 1e-3
"""Relative distance beyond which a value is no approximation."""
MOST = 100
"""So many literals are changed at most."""
CALLED = ("call_args", "call_args_list", "mock_calls", "method_calls")
"""Attributes of mocks: a call is equal to some of its parts, and takes a text for a name."""

DECIMALS = 7
"""Decimal places that `assertAlmostEqual` compares."""


def change_literals(source: ParsedSource, *nodes: ast.expr) -> DrawEdits:
    """Change the literals in one of *nodes*, which is drawn.

    All that it is made of changes: who is compared with it may have an equality of its own, that heeds a part.
    """
    places = [list(literals.find_scalars(node)) for node in nodes]
    taken = literals.list_values(nodes)
    ordered = not any(isinstance(n, ast.Set | ast.Call) for node in nodes for n in ast.walk(node))

    def is_fresh(value: object) -> bool:
        return (ordered and isinstance(value, bool)) or all(value != other for other in taken)

    def choose(random: Random) -> Edits:
        changed = (_change_all(source, some, random, is_fresh) for some in places)
        found = [edits or literals.fill_empty(source, node, random) for node, edits in zip(nodes, changed, strict=True)]
        some = [edits for edits in found if edits]
        return random.choice(some) if some else ()

    return choose


def change_bound_value(source: ParsedSource, bound: Binding) -> DrawEdits:
    """Change the value of a name, as `change_literals` does. Each cell of a column is compared with one value."""
    if not bound.every:
        return change_literals(source, *bound.literals)
    each = [change_literals(source, literal) for literal in bound.literals]

    def choose(random: Random) -> Edits:
        found = [some(random) for some in each]
        return tuple(e for edits in found for e in edits) if all(found) else ()

    return choose


def _change_all(
    source: ParsedSource, places: Sequence[literals.Scalar], random: Random, accepts: literals.Accepts
) -> Edits:
    chosen = random.sample(places, min(len(places), MOST))
    return tuple(edit for place in chosen if (edit := literals.make_another(source, place, random, accepts)))


def is_approximate(node: ast.expr) -> bool:
    """Return whether it is pytest's `approx`."""
    return isinstance(node, ast.Call) and get_dotted_name(node.func) in ("approx", "pytest.approx")


def change_number(source: ParsedSource, node: ast.expr, margins: Mapping[str, ast.expr]) -> DrawEdits:
    """Change the numbers in *node* to others, not near them for any of *margins*: `rel`, `abs`, `places`, `delta`."""
    numbers = [s for s in literals.find_scalars(node) if type(literals.get_value(s)) in (int, float)]
    known = {word: literals.get_value(given) for word, given in margins.items() if literals.is_scalar(given)}
    allowed = {word: value for word, value in known.items() if isinstance(value, int | float)}

    def choose(random: Random) -> Edits:
        if len(allowed) < len(margins):
            return ()
        tests = ((number, partial(_is_apart, literals.get_value(number), allowed)) for number in numbers)
        return tuple(e for number, test in tests if (e := literals.make_another(source, number, random, test)))

    return choose


def _is_apart(old: object, allowed: Mapping[str, float], new: object) -> bool:
    """Return whether *new* differs from *old* by ten times the allowed tolerance."""
    if not isinstance(new, int | float) or not isinstance(old, int | float):
        return False
    size, nearest = max(abs(old), abs(new)), 10.0 ** -allowed.get("places", DECIMALS)
    least = max(nearest, allowed.get("abs", 0), allowed.get("delta", 0), max(FAR, 10 * allowed.get("rel", 0)) * size)
    return bool(abs(new - old) > least + 9 * max(allowed.get("abs", 0), allowed.get("delta", 0), nearest))


def is_lenient(other: ast.expr, side: ast.expr, names: NameBindings) -> bool:
    """Return whether *other* may have an equality of its own, so that more than one literal *side* equals it."""
    if is_approximate(other) or any(isinstance(n, ast.Attribute) and n.attr in CALLED for n in ast.walk(other)):
        return True
    if not literals.is_scalar(side) and not isinstance(side, ast.Name):
        return False
    if isinstance(other, ast.Name) and not is_made_of_class(other):
        assigned = [(target, n.value) for n in names.body if isinstance(n, ast.Assign) for target in n.targets]
        return any(is_made_of_class(v) for t, v in assigned if isinstance(t, ast.Name) and t.id == other.id)
    return is_made_of_class(other)


def is_made_of_class(node: ast.expr) -> bool:
    """Return whether it is a class, an instance made there, or a constant: all begin with a capital letter."""
    last = get_dotted_name(node).rpartition(".")[2].lstrip("_")
    return last[:1].isupper()


def is_text(node: ast.expr) -> bool:
    """Return whether it certainly is a text, in which another text would have to be found unchanged."""
    if isinstance(node, ast.Subscript):
        return False
    return isinstance(node, ast.JoinedStr) or get_dotted_name(node).rpartition(".")[2] in TEXTUAL


def is_affix(call: ast.Call) -> bool:
    """Return whether it checks how a text starts or ends: for each length only one answer is right."""
    kept = isinstance(call.func, ast.Attribute) and call.func.attr in ("startswith", "endswith") and not call.keywords
    given = call.args[0] if call.args else None
    return kept and isinstance(given, ast.Constant) and isinstance(given.value, str | bytes) and bool(given.value)


def change_word(source: ParsedSource, node: ast.Constant, text: str) -> DrawEdits:
    """Change a letter in a word of *text*, so that the new word is found nowhere, by chance or in a list of words."""

    def is_rare(new: object) -> bool:
        if not isinstance(new, str) or new in source.full_text:
            return False
        at = next(n for n, (a, b) in enumerate(zip(text, new, strict=True)) if a != b)
        return any(found.start() <= at < found.end() for found in WORD.finditer(text))

    def choose(random: Random) -> Edits:
        edit = literals.make_another(source, node, random, is_rare)
        return (edit,) if edit else ()

    return choose


def change_type(source: ParsedSource, node: ast.expr, bound: frozenset[str]) -> DrawEdits:
    """Change a built-in type to another one that shares no instance with it."""
    name = node.id if isinstance(node, ast.Name) else ""
    kin = {"set": "frozenset", "frozenset": "set"}.get(name)
    others = [t for t in SOLID if t not in (name, kin) and t not in bound]
    if name not in SOLID or name in bound or not others:
        return lambda _: ()
    return lambda random: (source.replace_node(node, random.choice(others)),)


def change_classes(source: ParsedSource, single: Sequence[ast.expr], pool: Iterable[str]) -> DrawEdits:
    """Change each of the exceptions *single* to one of *pool* that is not related to it."""
    pools = [_find_unrelated(node, pool) for node in single]
    if not single or not all(pools):
        return lambda _: ()

    def choose(random: Random) -> Edits:
        return tuple(source.replace_node(n, random.choice(some)) for n, some in zip(single, pools, strict=True))

    return choose


def _find_unrelated(node: ast.expr, pool: Iterable[str]) -> list[str]:
    """Return the classes in *pool* that no exception of the class *node* is one of; none if that cannot be told."""
    name = get_dotted_name(node)
    last = name.rpartition(".")[2]
    if not name or isinstance(node, ast.Call) or not last[:1].isupper() or last in BROAD:
        return []
    if any(word in name.lower() for word in CONTROL):
        return []
    known = getattr(builtins, name, None)
    free = []
    for other in pool:
        kind = getattr(builtins, other)
        kin = isinstance(known, type) and (issubclass(known, kind) or issubclass(kind, known))
        alike = set(split_words(last)) & set(split_words(other)) - {"Error", "Warning"}
        free += [] if kin or alike else [other]
    return free


def can_differ(node: ast.expr) -> bool:
    """Return whether the value of *node* depends on the code under test, so that it could differ."""
    return any(isinstance(n, ast.Name | ast.Call | ast.Attribute) for n in ast.walk(node))
