"""Decides which tests may be falsified: those that run once, as written, and that nothing else uses."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from jumar.verify.challenge.constants import Function, list_parameters, walk_own
from jumar.verify.challenge.source_edits import get_dotted_name

EXCUSING = ("skip", "fail", "flaky", "rerun", "retry", "forked")
"""In the name of a mark under which a failure does not count, or is tried again."""

OPEN = {
    "mock": "unittest", "patch": "unittest", "unittest": "unittest", "given": "hypothesis", "settings": "hypothesis",
    "example": "hypothesis", "seed": "hypothesis", "hypothesis": "hypothesis", "freeze_time": "freezegun",
    "freezegun": "freezegun", "staticmethod": "",
}  # fmt: skip
"""Prefixes of decorators that run a test as it is written, by the package that they come from."""

JUDGING = frozenset({"outcome", "wasxfail"})
"""Attributes of a report that files of the tests may set: then what fails is theirs to say."""


class FalsifiableTest(NamedTuple):
    """A test function where it stands."""

    name: str
    """`Class::function`."""
    function: Function
    classes: tuple[ast.ClassDef, ...]
    """Around it, outermost first."""
    alone: bool
    """True if its tests run there only, and unchanged."""


@dataclass(frozen=True, slots=True)
class Uses:
    """Names that all test files mention: a test that others use is not falsified."""

    names: Counter[str]
    """Names that are read, attributes that are asked for, and what is imported by name."""
    texts: AbstractSet[str]
    """Parts of texts that may name a test."""
    inherited: AbstractSet[str]
    """Classes that are mentioned as such: what is in them may run as a part of others too."""
    starred: AbstractSet[str]
    """Modules of which everything is imported."""
    fixtures: AbstractSet[str]
    """Names that fixtures take, and their own."""
    defined: AbstractSet[str]
    """Functions."""
    judged: bool
    """True if some file changes what counts as a failure."""


def collect_uses(trees: Iterable[ast.Module]) -> Uses:
    """Collect the names that *trees* mention."""
    names, texts, inherited, starred = Counter[str](), set[str](), set[str](), set[str]()
    fixtures, defined, judged = set[str](), set[str](), False
    for tree in trees:
        inherited |= set(_list_mentioned(tree))
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                    names[name] += 1
                    judged = judged or (name in JUDGING and isinstance(node.ctx, ast.Store))
                case ast.ImportFrom(module=module, names=imported):
                    names.update(alias.name for alias in imported)
                    inherited.update(alias.name for alias in imported)
                    starred |= {(module or "").rpartition(".")[2]} if any(a.name == "*" for a in imported) else set()
                case ast.Constant(value=str(text)) if "test" in text.lower():
                    texts |= set(text.replace("::", ".").replace("[", ".").split("."))
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not _is_stub(node):
                    defined.add(name)
                    if any("fixture" in get_dotted_name(d) for d in node.decorator_list):
                        fixtures |= {name, *list_parameters(node)}
    return Uses(names, texts, inherited, starred, fixtures, defined, judged)


def _is_stub(function: Function) -> bool:
    """Return whether it is a stub that only declares the type of an attribute."""
    last = function.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def _list_mentioned(tree: ast.Module) -> Iterator[str]:
    """Yield names that are read as they are, but for a class's own in its body and before a dot."""
    todo: list[tuple[ast.AST, frozenset[str], bool]] = [(tree, frozenset(), False)]
    while todo:
        node, inside, before_dot = todo.pop()
        parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from () if before_dot or node.id in inside else (node.id,)
        elif isinstance(node, ast.Attribute):
            yield from () if before_dot else (node.attr,)
        elif isinstance(node, ast.ClassDef):
            todo += [(part, inside | {node.name}, False) for part in node.body]
            parts = (*node.bases, *node.keywords, *node.decorator_list)
        todo += [(part, inside, isinstance(node, ast.Attribute)) for part in parts]


def find_tests(
    node: ast.AST, used: Uses, classes: tuple[ast.ClassDef, ...] = (), *, alone: bool = True
) -> Iterator[FalsifiableTest]:
    """Yield all test functions in *node*, a module or what stands in *classes*, those under a condition included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            if child.name.startswith("test"):
                yield FalsifiableTest("::".join((*(c.name for c in classes), child.name)), child, classes, alone)
        elif isinstance(child, ast.ClassDef):
            yield from find_tests(child, used, (*classes, child), alone=alone and _is_alone(child, used))
        elif isinstance(child, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from find_tests(child, used, classes, alone=alone)


def read_imported_modules(tree: ast.Module) -> Mapping[str, str]:
    """Return for each imported name the module that it is, or that it was imported from."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: "." * node.level + (node.module or "") for alias in node.names}
    return found


def find_excusing_marks(tree: ast.Module) -> frozenset[str]:
    """Return the names of marks, and tables with marks, under which a failure may be none: `pytestmark` is for all."""
    bound = [node for node in tree.body if isinstance(node, ast.Assign) and _has_excuse(node.value)]
    return frozenset(t.id for node in bound for t in node.targets if isinstance(t, ast.Name))


def can_be_falsified(
    test: FalsifiableTest, used: Uses, imported: Mapping[str, str], excusing: AbstractSet[str]
) -> bool:
    """Return whether *test* may be falsified, given its file's imports and its marks that excuse failures."""
    name = test.function.name
    alone = test.alone and not (used.judged or used.names[name] or name in used.texts or "pytestmark" in excusing)
    decorators = [d for around in (test.function, *test.classes) for d in around.decorator_list]
    excused = {n.id for d in decorators for n in ast.walk(d) if isinstance(n, ast.Name)} & excusing
    return (
        alone
        and not excused
        and all(_is_plain(d, imported) for d in decorators)
        and _is_run(test)
        and _is_awaited(test)
    )


def _is_plain(decorator: ast.expr, imported: Mapping[str, str]) -> bool:
    """Return whether *decorator* lets a test run as it is written, and fail."""
    name = get_dotted_name(decorator)
    root = name.partition(".")[0]
    if name.startswith(("pytest.mark.", "mark.")):
        return not _has_excuse(decorator)
    return root in OPEN and imported.get(root, "").partition(".")[0] in (OPEN[root], root)


def _is_run(test: FalsifiableTest) -> bool:
    """Return whether a call of its function runs it, and it expects no failure of its own."""
    return not any(
        isinstance(node, ast.Yield | ast.YieldFrom) or (isinstance(node, ast.Attribute) and node.attr == "xfail")
        for node in walk_own(test.function.body)
    )


def _is_alone(around: ast.ClassDef, used: Uses) -> bool:
    """Return whether the tests of a class belong to it alone, and run unchanged."""
    marked = [node for node in around.body if isinstance(node, ast.Assign) and _has_excuse(node.value)]
    return not (around.name in used.inherited or around.keywords or marked)


def _is_awaited(test: FalsifiableTest) -> bool:
    """Return whether it is awaited, if it is a coroutine: a plain `TestCase` does not."""
    if not isinstance(test.function, ast.AsyncFunctionDef) or not test.classes or not test.classes[-1].bases:
        return True
    return any("Async" in get_dotted_name(base) for base in test.classes[-1].bases)


def _has_excuse(node: ast.expr) -> bool:
    """Return whether a mark, or one in it, excuses a failure."""
    said = [get_dotted_name(n).lower() for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    return any(word in name for name in said if "mark." in name for word in EXCUSING)
