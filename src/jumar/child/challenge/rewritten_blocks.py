"""Rewrites the blocks of contexts (`with`): a context that swallows an exception skips what stands after it."""

from __future__ import annotations

import ast
from typing import Any

from jumar.child.challenge.syntax import build_call, get_dotted_name


class BlockMarker(ast.NodeTransformer):
    """Hands on, in place, each context of one file by a number, the end of its block, and what comes after it."""

    def __init__(self) -> None:
        self._count = 0

    def visit_With(self, node: Any) -> Any:
        """Mark a block, and those in it."""
        first = self._count
        for number, item in enumerate(node.items, first):
            known = get_dotted_name(item.context_expr).rpartition(".")[2] == "suppress"
            given = [ast.Constant(number), item.context_expr, ast.Constant(known)]
            item.context_expr = ast.copy_location(build_call("hold", given), item.context_expr)
        self._count += len(node.items)
        self.generic_visit(node)
        end = node.body[-1]
        node.body.append(ast.copy_location(ast.Expr(build_call("leave", [ast.Constant(first)])), end))
        last = [ast.Constant(first), ast.Constant(len(node.items))]
        return [node, ast.copy_location(ast.Expr(build_call("resume", last)), end)]

    visit_AsyncWith = visit_With  # noqa: N815  as `ast` calls it
