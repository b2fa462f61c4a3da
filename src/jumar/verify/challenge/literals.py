"""Replaces a literal by another of its type and shape, never equal and without a telling difference."""

from __future__ import annotations

import ast
import io
import re
import string
import tokenize
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, combinations
from random import Random
from typing import TypeGuard

from jumar.verify.challenge.source_edits import ParsedSource, SourceEdit, get_constant, get_dotted_name

Accepts = Callable[[object], bool]
"""Predicate: whether a value will do in the place of the old one."""

Scalar = ast.Constant | ast.UnaryOp
"""A constant, or a number with its sign."""

LETTERS = "aeiorstnlcdmpu"
"""Most frequent letters of words: a letter of these is inconspicuous."""

MARKS = "-+*/=_.,:;!?#~@&|<>^"
"""Marks used where a text has neither letters nor digits."""

TRIES = 40
"""So many texts are made up, of which one must do."""

ESCAPE = re.compile(r"\\(?:N\{[^}]*\}|x..|u.{4}|U.{8}|[0-7]{1,3}|.)", re.DOTALL)
LITERAL = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>'''|\"\"\"|'|\")", re.DOTALL)

SEQUENCES = frozenset({"list", "tuple"})
UNORDERED = frozenset({"set", "frozenset", "sorted", "collections.deque", "deque"})
MAPPINGS = frozenset({"dict", "OrderedDict", "collections.OrderedDict"})
NUMERIC = frozenset({"Decimal", "decimal.Decimal", "Fraction", "fractions.Fraction", "int", "float"})
PATHS = frozenset({"Path", "pathlib.Path", "PurePath", "PurePosixPath", "pathlib.PurePath", "pathlib.PurePosixPath"})
LAID_OUT = frozenset({"dedent", "textwrap.dedent", "cleandoc", "inspect.cleandoc"})
KEEPING = frozenset({"strip", "lstrip", "rstrip", "encode", "splitlines", "split"})
"""Methods of a text that let every visible character through."""
SPANS = frozenset({"timedelta", "datetime.timedelta", "dt.timedelta"})
DATES = frozenset({"date", "datetime", "datetime.date", "datetime.datetime", "dt.date", "dt.datetime"})


def find_scalars(node: ast.expr) -> Iterator[Scalar]:
    """Yield the constants in *node* of which each, changed alone, certainly changes the value of *node*."""
    if is_scalar(node):
        yield node
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        for part in node.elts:
            yield from find_scalars(part)
    elif isinstance(node, ast.Dict):
        values = list(chain.from_iterable(find_scalars(v) for k, v in zip(node.keys, node.values, strict=True) if k))
        yield from values or chain.from_iterable(find_scalars(key) for key in node.keys if key)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        # What is small may vanish in a sum of floats, and two numbers that change may come to the same sum.
        parts = [s for side in (node.left, node.right) for s in find_scalars(side)]
        parts = [s for s in parts if not isinstance(get_value(s), float | complex)]
        yield from parts[:1] if any(isinstance(get_value(s), int) for s in parts) else parts
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for side, times in ((node.left, node.right), (node.right, node.left)):
            often = isinstance(times, ast.Constant) and type(times.value) is int and times.value > 0
            text = isinstance(side, ast.Constant) and isinstance(side.value, str | bytes)
            yield from find_scalars(side) if often and (text or isinstance(side, ast.List | ast.Tuple)) else ()
    elif isinstance(node, ast.Call):
        yield from _find_kept(node)


def is_scalar(node: ast.expr) -> TypeGuard[Scalar]:
    """Return whether *node* is a constant or a signed number."""
    if isinstance(node, ast.UnaryOp):
        signed = isinstance(node.op, ast.USub | ast.UAdd)
        return signed and isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int | float)
    return isinstance(node, ast.Constant) and node.value is not ...


def get_value(node: ast.expr) -> object:
    """Return the value of a constant or a signed number."""
    return ast.literal_eval(node)


def list_values(nodes: Iterable[ast.AST]) -> list[object]:
    """Return all constants in *nodes*."""
    return [n.value for node in nodes for n in ast.walk(node) if isinstance(n, ast.Constant)]


def _find_kept(call: ast.Call) -> Iterator[Scalar]:
    """Yield the constants of which each changes the value of *call*, a call of the standard library's."""
    name, args = get_dotted_name(call.func), call.args
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant | ast.Call):
        kept = call.func.attr in KEEPING and (not args or call.func.attr == "encode") and not call.keywords
        yield from _find_visible(call.func.value) if kept else ()
        if call.func.attr == "join" and len(args) == 1 and isinstance(args[0], ast.List | ast.Tuple):
            yield from chain.from_iterable(map(_find_visible, args[0].elts))
    elif name in MAPPINGS and not args:
        yield from chain.from_iterable(find_scalars(word.value) for word in call.keywords if word.arg)
    elif name in SPANS:
        numbers = (*args, *(word.value for word in call.keywords))
        yield from [n for n in numbers if is_scalar(n) and isinstance(get_value(n), int)][:1]
    elif len(args) > 1 and name in DATES:
        # Another year, and never the 29th of a February that it has not.
        days = [a.value for a in args[1:3] if isinstance(a, ast.Constant)]
        if is_scalar(args[0]) and len(days) == len(args[1:3]) and days != [2, 29]:
            yield from find_scalars(args[0])
    elif len(args) == 1 and not call.keywords:
        yield from _find_converted(name, args[0])


def _find_converted(name: str, arg: ast.expr) -> Iterator[Scalar]:
    held = name in SEQUENCES and not isinstance(arg, ast.Dict)
    held = held or (name in UNORDERED and isinstance(arg, ast.List | ast.Tuple | ast.Set))
    if held or (name in MAPPINGS and isinstance(arg, ast.Dict)):
        yield from find_scalars(arg)
    elif name in NUMERIC and isinstance(arg, ast.Constant):
        plain = isinstance(arg.value, str) and re.fullmatch(r"-?\d+(\.\d+)?", arg.value)
        yield from [arg] if plain or (type(arg.value) is int and name not in ("int", "float")) else ()
    elif name in PATHS and isinstance(arg, ast.Constant) and isinstance(arg.value, str):
        yield arg
    elif name in LAID_OUT:
        yield from _find_visible(arg)


def _find_visible(node: ast.expr) -> Iterator[Scalar]:
    """Yield *node*, if it is a text with characters that no layout takes away."""
    if isinstance(node, ast.Call):
        yield from _find_kept(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and any(map(str.isalnum, node.value)):
        yield node


def fill_empty(source: ParsedSource, node: ast.expr, random: Random) -> tuple[SourceEdit, ...]:
    """Return the edit that puts an item into an empty display, or a call of a class that makes an empty container."""
    item = random.choice([repr(random.choice(LETTERS)), str(random.randint(1, 9))])
    match node:
        case ast.List(elts=[]):
            text = f"[{item}]"
        case ast.Tuple(elts=[]):
            text = f"({item},)"
        case ast.Dict(keys=[]):
            text = f"{{{item}: {random.randint(1, 9)}}}"
        case ast.Call(func=ast.Name(id="set"), args=[], keywords=[]):
            text = f"{{{item}}}"
        case _:
            return ()
    return (source.replace_node(node, text),)


def make_another(source: ParsedSource, node: Scalar, random: Random, accepts: Accepts) -> SourceEdit | None:
    """Return *node* as another constant that is *accept*ed; None: there is none."""
    if isinstance(node, ast.UnaryOp):
        sign = -1 if isinstance(node.op, ast.USub) else 1
        operand = node.operand
        assert isinstance(operand, ast.Constant)  # noqa: S101  `is_scalar` let nothing else through
        return make_another(source, operand, random, lambda new: isinstance(new, int | float) and accepts(sign * new))
    text, value = source.get_segment(node), node.value
    match value:
        case bool():
            candidates: Iterable[str] = [str(not value)]
        case None:
            candidates = random.sample(["False", "True", "0", "1"], 4)
        case int() | float() | complex():
            candidates = _vary_number(text, value, random)
        case str() | bytes():
            candidates = _vary_text(text, value, random)
        case _:
            candidates = ()
    for candidate in candidates:
        with suppress(ValueError, SyntaxError):
            new = get_constant(candidate)
            if (value is None or type(new) is type(value)) and new != value and accepts(new):
                return source.replace_node(node, candidate)
    return None


def _vary_number(text: str, value: complex, random: Random) -> Iterator[str]:
    """Yield numbers with another digit: one of the leading digits of a fraction, one of the last of an integer."""
    hexadecimal = text.lower().startswith("0x")
    body = range(2 if text[:1] == "0" and text[1:2].isalpha() else 0, len(text))
    exponent = len(text) if hexadecimal else (re.search("[eEjJ]|$", text) or re.search("$", text)).start()  # type: ignore[union-attr]  # one of them is found
    places = [i for i in body if i < exponent and text[i] in (string.hexdigits if hexadecimal else string.digits)]
    if type(value) is int:
        places = places[-2:]
    else:
        significant = next((n for n, i in enumerate(places) if text[i] != "0"), 0)
        places = places[significant : significant + 3]
    for place in random.sample(places, len(places)):
        for digit in random.sample(string.digits, 10):
            new = text[:place] + digit + text[place + 1 :]
            if not (re.match(r"0\d", new) and not re.match(r"0\d", text)):
                yield new
    if type(value) is int:
        yield from (str(value + step) for step in random.sample(range(11, 60), 20))


def _vary_text(text: str, value: str | bytes, random: Random) -> Iterator[str]:
    """Yield texts of the same length that differ in each word: two characters are swapped, or one is replaced.

    In each, as there are objects that are equal to texts of which they heed a part: versions, names, paths. Swapped, as
    code may know what its answer is made of without knowing the answer. Only what was empty grows by one.
    """
    if not value:
        found = LITERAL.match(text)
        quotes = (found.end(), found["quote"]) if found else (0, "")
        if found and text[quotes[0] :] == quotes[1]:
            yield from (text[: quotes[0]] + letter + quotes[1] for letter in random.sample(LETTERS, 5))
        return
    places = find_own_characters(text)
    marks = [[i] for i in places if text[i] in MARKS]
    words = _group_adjacent([i for i in places if text[i].isalnum()]) or ([random.choice(marks)] if marks else [])
    for _ in range(TRIES if words else 0):
        new, swapped = list(text), random.random() < 1 / 2
        for word in words:
            pairs = [(a, b) for a, b in combinations(word, 2) if _may_swap(text[a], text[b])] if swapped else []
            if pairs:
                first, second = random.choice(pairs)
                new[first], new[second] = text[second], text[first]
            else:
                place = random.choice(word)
                new[place] = random.choice(_list_substitutes(text[place], random) or [text[place]])
        yield "".join(new)


def _may_swap(one: str, other: str) -> bool:
    """Return whether two characters are of one kind, and not equal to who folds case or form."""
    return unicodedata.category(one) == unicodedata.category(other) and _fold(one) != _fold(other)


def _group_adjacent(places: Iterable[int]) -> list[list[int]]:
    """Return *places*, in the groups that have no gap."""
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _list_substitutes(old: str, random: Random) -> list[str]:
    """Return characters of the same kind as *old* that no folding of case or form makes equal to it."""
    if old in string.digits:
        pool = string.digits
    elif old in string.ascii_letters:
        pool = LETTERS.upper() if old.isupper() else LETTERS
    elif old in MARKS:
        pool = MARKS
    else:
        near = [chr(ord(old) + step) for step in range(-9, 10) if 0 < ord(old) + step < 0x110000]  # noqa: PLR2004  Unicode ends there
        pool = "".join(c for c in near if unicodedata.category(c) == unicodedata.category(old))
    others = [c for c in pool if _fold(c) != _fold(old) and len(c.encode()) == len(old.encode())]
    return random.sample(others, len(others))


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKD", text).casefold()


def find_own_characters(text: str) -> list[int]:
    """Return the characters in the one or more string literals of *text* that stand for themselves."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    places: list[int] = []
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(f"({text}\n)").readline):
            found = LITERAL.match(token.string) if token.type == tokenize.STRING else None
            if found:
                row, column = token.start
                at = starts[row - 1] + column - (1 if row == 1 else 0)
                places += _find_literal_characters(token.string, at, found)
    return places


def _find_literal_characters(literal: str, at: int, found: re.Match[str]) -> list[int]:
    ends = len(literal) - len(found["quote"])
    escaped: set[int] = set()
    if "r" not in found["prefix"].lower():
        for escape in ESCAPE.finditer(literal, found.end(), ends):
            escaped.update(range(*escape.span()))
    return [at + i for i in range(found.end(), ends) if i not in escaped]
