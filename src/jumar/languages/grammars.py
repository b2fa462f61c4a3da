"""Outlines of files by tree-sitter: parsed by a grammar, never matched by a pattern."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jumar.languages.outline import Outline, can_be_comment

if TYPE_CHECKING:
    from tree_sitter import Language, Node

SCRIPT_DEFINITIONS = frozenset({
    "function_declaration", "generator_function_declaration", "class_declaration", "abstract_class_declaration",
    "interface_declaration", "type_alias_declaration", "enum_declaration", "internal_module", "module",
    "variable_declarator", "function_signature",
})  # fmt: skip
GO_DEFINITIONS = frozenset(["function_declaration", "type_spec", "type_alias", "const_spec", "var_spec"])
RUST_DEFINITIONS = frozenset({
    "function_item", "struct_item", "enum_item", "union_item", "trait_item", "const_item", "static_item",
    "type_item", "mod_item", "macro_definition",
})  # fmt: skip
DEFINITIONS = SCRIPT_DEFINITIONS | GO_DEFINITIONS | RUST_DEFINITIONS
WRAPPERS = frozenset({
    "export_statement", "lexical_declaration", "variable_declaration", "ambient_declaration", "type_declaration",
    "const_declaration", "var_declaration", "var_spec_list", "expression_statement",
})  # fmt: skip
"""Node types allowed between the top of a file and a definition."""
PROSE = frozenset(["labeled_statement", "empty_statement"])
WORDS = frozenset({
    "identifier", "sequence_expression", "binary_expression", "ternary_expression", "number", "string",
    "member_expression", "template_string", "type_identifier",
})  # fmt: skip
"""Expressions that say something and do nothing."""
NAMES = frozenset(["identifier", "type_identifier", "property_identifier", "field_identifier"])
BINDERS = frozenset({
    "variable_declarator", "formal_parameters", "required_parameter", "optional_parameter", "parameter_declaration",
    "parameter", "variadic_parameter_declaration", "expression_list", "let_declaration", "import_specifier",
    "import_clause", "namespace_import", "use_list", "use_declaration", "scoped_identifier", "scoped_use_list",
    "use_as_clause", "array_pattern", "object_pattern", "arrow_function", "closure_parameters", "catch_clause",
    "tuple_pattern", "tuple_struct_pattern", "rest_pattern", "assignment_pattern", "for_in_statement",
    "for_expression", "match_pattern",
})  # fmt: skip
"""Node types in which an identifier is a new name rather than the use of one."""
NEAR = 200
"""Bytes beside a comment that tell whether it stands in the place of code."""
CALLERS = frozenset(["binary_expression", "call_expression", "new_expression", "macro_invocation", "composite_literal"])


def load_language(name: str) -> Language:
    """Return the grammar *name*: python, javascript, typescript, tsx, go or rust."""
    from tree_sitter import Language  # noqa: PLC0415  a run in Python alone does not load the grammars

    if name == "javascript":
        import tree_sitter_javascript  # noqa: PLC0415  as above

        return Language(tree_sitter_javascript.language())
    if name == "python":
        import tree_sitter_python  # noqa: PLC0415  as above

        return Language(tree_sitter_python.language())
    if name == "go":
        import tree_sitter_go  # noqa: PLC0415  as above

        return Language(tree_sitter_go.language())
    if name == "rust":
        import tree_sitter_rust  # noqa: PLC0415  as above

        return Language(tree_sitter_rust.language())
    import tree_sitter_typescript  # noqa: PLC0415  as above

    tsx = name == "tsx"
    return Language(tree_sitter_typescript.language_tsx() if tsx else tree_sitter_typescript.language_typescript())


def parse_outline(name: str, text: str) -> tuple[Outline, int]:
    """Return the outline of *text* in the grammar *name*, and the first line that is wrong (0 if all is right).

    The outline is also right as far as it goes where the text is wrong.
    """
    from tree_sitter import Parser  # noqa: PLC0415  as above

    root = Parser(load_language(name)).parse(text.encode("utf-8", "replace")).root_node
    top = [node for node in root.named_children if node.type not in ("comment", "line_comment", "block_comment")]
    groups = _group_names(top)
    seen = _Seen(root)
    outline = Outline(
        groups=groups,
        bound=groups[""] | seen.imported,
        local=seen.bound,
        used=seen.used,
        members=seen.members,
        sources=seen.sources,
        tests=frozenset(_list_tests(name, top)),
        comments=tuple(seen.comments),
        substance=any(not _is_prose(node) for node in top),
        prose=next((node.start_point[0] + 1 for node in top if _is_prose(node)), 0),
        patch=any(_is_signed(node) for node in top),
    )
    return outline, _find_error_line(root) or _find_stray_line(name, top)


class _Seen:
    """Collects names in one walk over all nodes, without recursion."""

    def __init__(self, root: Node) -> None:
        found: dict[str, set[str]] = {key: set() for key in ("bound", "used", "members", "sources", "imported")}
        self.comments: list[tuple[int, str]] = []
        self._text = root.text or b""
        cursor = root.walk()
        path: list[str] = []
        while True:
            node = cursor.node
            assert node is not None  # noqa: S101  a cursor that moved stands on a node
            self._add_name(node, path, found)
            path.append(node.type)
            if cursor.goto_first_child():
                continue
            path.pop()
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    self.bound, self.used, self.members, self.sources, self.imported = map(frozenset, found.values())
                    return
                path.pop()

    def _add_name(self, node: Node, path: list[str], found: dict[str, set[str]]) -> None:
        kind, parent = node.type, path[-1] if path else ""
        if "comment" in kind and parent not in ("line_comment", "block_comment") and kind.endswith("comment"):
            if self._replaces_code(node):
                self.comments.append((node.start_point[0] + 1, _get_text(node)))
        elif kind in NAMES:
            name = _get_text(node)
            if kind in {"property_identifier", "field_identifier"}:
                found["members"].add(name)
            elif parent in CALLERS:
                found["used"].add(name)
            elif parent in BINDERS or parent in DEFINITIONS:
                found["bound"].add(name)
            if any(step in ("import_statement", "use_declaration", "import_clause") for step in path[-4:]):
                found["imported"].add(name)
        elif kind in ("string_fragment", "interpreted_string_literal_content"):
            near = path[-4:]
            if "import_statement" in near or "import_spec" in near or "arguments" in near or "export_statement" in near:
                found["sources"].add(_get_text(node))

    def _replaces_code(self, comment: Node) -> bool:
        """Check whether a comment may replace code; one of several lines always may, as fences lie in one."""
        row, column = comment.start_point
        start, end = comment.start_byte, comment.end_byte
        before, after = self._text[max(start - column, start - NEAR) : start], self._text[end : end + NEAR]
        beside = (side.decode("utf-8", "replace") for side in (before, after))
        return comment.end_point[0] > row or can_be_comment(*beside)


def _get_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _get_name(node: Node) -> str:
    name = node.child_by_field_name("name")
    return _get_text(name) if name else ""


def _unwrap(node: Node) -> Iterator[Node]:
    """Yield the definitions in a statement at the top."""
    stack = [node]
    while stack:
        node = stack.pop()
        if node.type in WRAPPERS:
            stack += node.named_children
        else:
            yield node


def _group_names(top: list[Node]) -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = {"": set()}
    for node in (inner for outer in top for inner in _unwrap(outer)):
        name = _get_name(node)
        if node.type == "method_declaration":
            groups.setdefault(_get_receiver(node), set()).add(name)
        elif node.type == "impl_item":
            of = node.child_by_field_name("type")
            groups.setdefault(_get_text(of).partition("<")[0] if of else "", set()).update(_list_methods(node))
        elif node.type in DEFINITIONS and name and name[0] not in "{[":
            groups[""].add(name)
            if node.type in ("class_declaration", "abstract_class_declaration"):
                groups.setdefault(name, set()).update(_list_methods(node))
        elif node.type == "assignment_expression" and (left := node.child_by_field_name("left")):
            groups[""].add(_get_text(left))
    return {group: frozenset(names) for group, names in groups.items()}


def _list_methods(node: Node) -> Iterator[str]:
    body = node.child_by_field_name("body")
    for child in body.named_children if body else []:
        if child.type in ("method_definition", "function_item", "const_item"):
            yield _get_name(child)


def _get_receiver(node: Node) -> str:
    receiver = node.child_by_field_name("receiver")
    return _get_text(receiver).strip("()").split()[-1].lstrip("*").partition("[")[0] if receiver else ""


def _list_tests(name: str, top: list[Node]) -> Iterator[str]:
    """Yield the tests: calls of `describe`, `test` and `it`; `func TestX`; `#[test]` outside of a module."""
    for at, node in enumerate(top):
        if name == "go" and node.type == "function_declaration" and _get_name(node).startswith("Test"):
            yield _get_name(node)
        elif name == "rust" and node.type == "attribute_item" and _get_text(node) == "#[test]":
            yield _get_name(top[at + 1]) if at + 1 < len(top) else "test"
        elif node.type == "expression_statement" and node.named_children:
            called = node.named_children[0].child_by_field_name("function")
            if called and _get_text(called).partition(".")[0] in ("describe", "test", "it", "suite"):
                yield _get_text(called)


def _get_inner(node: Node) -> Node | None:
    return node.named_children[0] if node.type == "expression_statement" and node.named_children else None


def _is_prose(node: Node) -> bool:
    inner = _get_inner(node)
    return node.type in PROSE or (inner is not None and inner.type in WORDS and not _is_directive(inner))


def _is_directive(node: Node) -> bool:
    return node.type == "string" and _get_text(node).strip("'\"").startswith("use ")


def _is_signed(node: Node) -> bool:
    inner = _get_inner(node)
    return inner is not None and inner.type == "unary_expression" and _get_text(inner)[:1] in ("+", "-")


def _find_error_line(root: Node) -> int:
    """Return the line of the first error, or 0."""
    if not root.has_error:
        return 0
    node = root
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error), None)
        if inner is None:
            break
        node = inner
    return node.start_point[0] + 1


def _find_stray_line(name: str, top: list[Node]) -> int:
    """Return the line of the first statement that the grammar accepts and the language does not, or 0.

    A Go file begins with its package clause, a Rust file holds items alone.
    """
    if name == "go":
        right = bool(top) and top[0].type == "package_clause"
        kinds = ("package_clause", "import_declaration", "method_declaration", "type_declaration", "const_declaration")
        wrong = [n for n in top if n.type not in (*kinds, "var_declaration", "function_declaration")]
        return 0 if right and not wrong else (wrong or top)[0].start_point[0] + 1 if top else 1
    if name == "rust":
        for node in top:
            inner = _get_inner(node)
            macro = inner is not None and inner.type == "macro_invocation"
            if not (macro or node.type.endswith(("_item", "_declaration", "_definition")) or "macro" in node.type):
                return node.start_point[0] + 1
            if node.type == "let_declaration":
                return node.start_point[0] + 1
    return 0
