"""Extracts files from a reply. Accepts only an unambiguous reply, not one that parses by a lucky guess."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jumar.agents.extraction import completeness
from jumar.agents.extraction.assign_blocks import assign_blocks
from jumar.agents.extraction.fences import Fence, parse_fences
from jumar.agents.tools.tool_calls import is_encodable
from jumar.languages import syntax
from jumar.languages.outline import Outline

THOUGHTS = ("think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "analysis")
"""The tags models put around what they think before they answer."""
CLOSING = tuple(f"</{tag}>" for tag in THOUGHTS)
ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&#x27;", "'"), ("&amp;", "&"))
"""HTML entities and the characters they stand for; the ampersand is last, or `&amp;lt;` is undone twice."""
LUCKY = frozenset({"lt", "gt", "amp", "quot"})
"""Names of entities that also parse as code: names between `&` and `;`."""


def extract(
    content: str,
    targets: tuple[str, ...],
    current: Mapping[str, str] | None = None,
    imported: Mapping[str, frozenset[str]] | None = None,
) -> dict[str, str | None] | str:
    """Return the whole new text of each file in *content*, or one sentence for the model on why there is none.

    *targets* are the paths that may be written, relative and with `/`. *current* holds their present texts, as far as
    known: then a half of a file can be told from a rewrite, and line ends and a byte order mark follow the file.
    *imported* holds the names that the tests import from each target (`meant.imports`).

    What is read, in this order: reasoning before the answer is dropped; the whole reply, if it is code of the one
    target and nothing else; the fenced blocks. A block belongs to the path that its info string, the line or heading
    before it, or its first comment names; with one target a block without a name may be that file if its label fits,
    with several the only block may if its names show which one it is (`meant`).
    A block whose text stands in a chosen file is a quotation. A reply is refused if a fence is never closed, if two
    different blocks could be the same file, if a block that nobody took could be a target that no other block is, if
    names contradict each other, and if a text is not the whole file in the language of its path (`whole.missing`).
    Blocks for other paths (tests, say) are passed over, unless a file has come to import one of them.

    Nothing is raised for any text; time is linear in its length.
    """
    if "\0" in content or not is_encodable(content):
        return "the reply holds a NUL character" if "\0" in content else "the reply is not valid Unicode"
    plain = content.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff\u200b")
    answer = strip_reasoning(plain, targets)
    if isinstance(answer, str):
        return answer
    (plain, blocks), current = answer, current or {}
    prose = extract_prose(plain, blocks)
    if len(targets) == 1 and (text := _take_raw(plain, blocks, targets[0])):
        found: dict[str, str] | str = {targets[0]: text}
        prose = ""
    else:
        found = assign_blocks(plain, blocks, targets, current, imported or {})
    return found if isinstance(found, str) else _settle_texts(found, prose, current)


def _settle_texts(found: Mapping[str, str], prose: str, current: Mapping[str, str]) -> dict[str, str | None] | str:
    """Return the texts *found* as they will be written, or why one of them cannot be."""
    files: dict[str, str | None] = {}
    for path, text in found.items():
        draft = completeness.Draft(path, text.removeprefix("\ufeff"), prose, current.get(path))
        files[path], why = _settle(draft)
        if why:
            return why
    return files


def strip_reasoning(plain: str, targets: tuple[str, ...]) -> tuple[str, list[Fence]] | str:
    """Return the reply without the reasoning before it, and its blocks; or why they are ambiguous."""
    start = plain.lstrip()
    opened = next((tag for tag in THOUGHTS if start[:20].lower().startswith(f"<{tag}>")), "")
    if opened:
        _, closing, plain = _split_at_tag(start, f"</{opened}>")
        if not closing:
            return "the reply ends inside its reasoning; give the complete file after it"
    blocks = parse_fences(plain, targets)
    ends = [line for line in extract_prose(plain, blocks).lower().split("\n") if line.rstrip().endswith(CLOSING)]
    if not ends:
        return plain, blocks
    tag = "</" + ends[0].rstrip().rpartition("</")[2]
    if opened or len(ends) > 1 or plain.lower().count(tag) > 1:
        return f"it cannot be told where the reasoning ends ({tag}); give the complete file after it"
    plain = _split_at_tag(plain, tag)[2]
    return plain, parse_fences(plain, targets)


def _split_at_tag(text: str, tag: str) -> tuple[str, str, str]:
    """Return *text* before, at and after the first *tag*, in any case; only the text if there is none."""
    found = re.search(re.escape(tag), text, re.IGNORECASE)
    return (text[: found.start()], found[0], text[found.end() :].lstrip("\n")) if found else (text, "", "")


def extract_prose(plain: str, blocks: list[Fence]) -> str:
    """Return the text outside of the blocks."""
    lines = plain.split("\n")
    kept: list[str] = []
    at = 0
    for block in blocks:
        kept += lines[at : block.start]
        at = block.end
    return "\n".join(kept + lines[at:])


def _take_raw(plain: str, blocks: list[Fence], target: str) -> str:
    """Return the reply itself, if it is nothing but the file *target*; else "".

    Fences do not speak against it where they can only be part of the code: in Python no backtick and no tilde run
    stands outside of strings and comments, so a text with fences that compiles holds them there; in other languages
    they have to lie in comments. Every statement has to be code: `Done` and `Note: fixed` are prose that parses.
    """
    if syntax.find_language(target) is None or (blocks and not plain.strip()):
        return ""
    outline, why = syntax.parse_file(target, plain)
    if why or outline is None or outline.prose or not outline.substance:
        return ""
    if blocks and syntax.find_language(target) != "python":
        covered = {line + n for line, text in outline.comments for n in range(text.count("\n") + 1)}
        if not all(block.start + 1 in covered for block in blocks):
            return ""
    return plain if plain.endswith("\n") else plain + "\n"


def _settle(draft: completeness.Draft) -> tuple[str, str]:
    """Return the text to write for *draft*, and why it cannot be written ("" if it can)."""
    outline, why = syntax.parse_file(draft.path, draft.text)
    outline, draft, why = _unescape(draft, outline, why)
    if why:
        return "", completeness.check_not_patch(draft.path, draft.text) or why
    if why := completeness.check_complete(draft, outline):
        return "", why
    text, now = draft.text, draft.current or ""
    if now.count("\r\n") * 2 > now.count("\n"):
        text = text.replace("\n", "\r\n")
    return ("\ufeff" + text if now.startswith("\ufeff") else text), ""


def _unescape(
    draft: completeness.Draft, outline: Outline | None, why: str
) -> tuple[Outline | None, completeness.Draft, str]:
    """Return *draft* with its HTML entities decoded, if that can be the only reading.

    That is so if every special character is escaped, the text is no code as it stands (`a &lt; b` parses by luck, as
    two statements), and is without the entities. A text that is code both ways is refused, unless the present file
    holds entities as well.
    """
    text = bare = draft.text
    for entity, char in ENTITIES:
        text, bare = text.replace(entity, char), bare.replace(entity, "")
    if text == draft.text:
        return outline, draft, why
    if outline and not why and outline.used & LUCKY - outline.local - outline.bound:
        why = f"the text for {draft.path} has HTML entities (&lt;) in its code; write the characters themselves"
    if any(char in bare for char in "<>&"):
        return outline, draft, why
    if not why and any(entity in (draft.current or "") for entity, _ in ENTITIES):
        return outline, draft, why
    undone, fault = syntax.parse_file(draft.path, text)
    if fault or (undone and undone.used & LUCKY - undone.local - undone.bound):
        return outline, draft, why
    if why:
        return undone, draft._replace(text=text), ""
    return outline, draft, f"the text for {draft.path} has HTML entities (&lt;) that may stand for themselves or not"
