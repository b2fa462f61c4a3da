"""From prose to files. A reply is taken only if it can be nothing else: never a guess that parses by luck."""

from __future__ import annotations

import ast

from markdown_it import MarkdownIt

from jumar.agents.tools import encodable


def extract(content: str, targets: tuple[str, ...]) -> dict[str, str | None] | str:
    """The whole new text of each file in *content*, or one sentence on why there is none.

    One target takes the only fenced block, or the whole reply where there is no fence. With several targets each block
    is preceded by a line that holds the path.
    """
    if not encodable(content):
        return "the reply holds characters that are not valid Unicode"
    blocks = _blocks(content)
    if len(targets) == 1:
        found = _single(content, blocks, targets[0])
    else:
        found = {path: text for path, text in blocks if path in targets} or (
            f"no fenced block is preceded by the path of one of {', '.join(targets)}"
        )
    if isinstance(found, str):
        return found
    for path, text in found.items():
        if why := _broken(path, text):
            return why
    return dict(found)


def _single(content: str, blocks: list[tuple[str, str]], target: str) -> dict[str, str] | str:
    named = [text for path, text in blocks if path == target]
    texts = named or [text for _, text in blocks]
    if len(texts) > 1:
        return f"there are {len(texts)} fenced blocks; give the complete file {target} in one"
    return {target: texts[0] if texts else content}


def _blocks(content: str) -> list[tuple[str, str]]:
    """Every closed fence with the last line of the paragraph before it, which may name a path."""
    blocks: list[tuple[str, str]] = []
    before = ""
    lines = content.splitlines()
    for token in MarkdownIt("commonmark").parse(content):
        if token.type == "inline":
            before = token.content.splitlines()[-1].strip(" `*:#") if token.content else ""
        elif token.type == "fence" and token.map and lines[token.map[1] - 1].strip().startswith(token.markup):
            blocks.append((before, token.content))
            before = ""
    return blocks


def _broken(path: str, text: str) -> str | None:
    """Why *text* cannot be the file *path*, or None."""
    if not text.strip():
        return f"the text of {path} is empty"
    if path.endswith((".py", ".pyi")):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as error:
            return f"the text of {path} is not Python: {error}"
    return None
