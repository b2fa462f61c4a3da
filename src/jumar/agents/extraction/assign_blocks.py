"""Assigns the blocks of a reply to files: by name, or because no other block fits; an ambiguous block gets none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jumar.agents.extraction import completeness, infer_path
from jumar.agents.extraction.fences import Fence
from jumar.languages import syntax

UNCLOSED = "a fenced block is never closed: the reply was cut off, or the file holds fences (use a longer one)"


def assign_blocks(
    plain: str,
    blocks: list[Fence],
    targets: tuple[str, ...],
    current: Mapping[str, str],
    imported: Mapping[str, frozenset[str]],
) -> dict[str, str] | str:
    """Return the text that the blocks give for each target, or why that is ambiguous.

    *imported*: for each target, the names that the tests import from it.
    """
    if len(targets) == 1 and (text := _join_span(plain, blocks, targets[0])):
        return {targets[0]: text}
    if not blocks or not all(block.closed for block in blocks):
        return _explain_no_fence(plain, targets) if not blocks else UNCLOSED
    owners = [_find_owner(block, targets, current) for block in blocks]
    if clash := next((owner for owner in owners if isinstance(owner, list)), None):
        return f"a block is named {' and '.join(clash)} at once; name each block once"
    by: dict[str, list[Fence]] = {}
    for block, owner in zip(blocks, owners, strict=True):
        by.setdefault(owner if isinstance(owner, str) else "", []).append(block)
    return _select_texts(by, _Asked(targets, current, imported))


class _Asked(NamedTuple):
    """The files that a reply may hold, and the texts they have now."""

    targets: tuple[str, ...]
    current: Mapping[str, str]
    imported: Mapping[str, frozenset[str]]


def _select_texts(by: dict[str, list[Fence]], asked: _Asked) -> dict[str, str] | str:
    """Return the texts that the blocks *by* owners give; those without an owner are under ""."""
    targets = asked.targets
    free = by.pop("", [])
    owned = {path: by.pop(path) for path in targets if path in by}
    if not owned and len(targets) > 1:
        return _assign_unnamed(free, by, asked)
    if not owned and not free:
        return _explain_strange(next(iter(by)), targets)
    found = _assign_named(owned, free) if owned else _find_only(free, targets[0], asked.current)
    return found if isinstance(found, str) else _explain_half(found, free, by, asked) or found


def _assign_unnamed(free: Sequence[Fence], strange: Mapping[str, list[Fence]], asked: _Asked) -> dict[str, str] | str:
    """Return the text of the one block without a path for the one file that it can be, or why it is ambiguous."""
    paths = ", ".join(asked.targets)
    blocks = [b for b in free if b.text.strip() and any(syntax.is_label_of(b.label, path) for path in asked.targets)]
    found: tuple[str, ...] = ()
    if len(blocks) == 1 and not strange:
        present = {path: _list_top_names(path, asked.current.get(path)) for path in asked.targets}
        found = infer_path.find_candidate_paths(blocks[0], present, asked.imported)
    if len(found) == 1:
        return _explain_unfit(blocks[0], found[0]) or {found[0]: blocks[0].text}
    some = f"; the block could be {' or '.join(found)}" if found else ""
    return (
        f"no fenced block is preceded by the path of one of {paths}{some}: write the path of the file on the line "
        "before its fence"
    )


def _explain_half(
    found: Mapping[str, str], free: Sequence[Fence], strange: Mapping[str, list[Fence]], asked: _Asked
) -> str:
    """Return why *found* is only a part of what the reply means to write; "" if it is not.

    A block that could be a target which no block is named for is no decoration, and a file that the others have come
    to import has to be written with them. Other blocks for paths that are not asked for (the tests, say) are quoted.
    """
    missing = [path for path in asked.targets if path not in found]
    names = {path: _list_top_names(path, asked.current.get(path)) for path in missing} if free or strange else {}
    for block in free:
        path = next((path for path in names if _can_be(block, path, names[path])), "")
        if path and not _is_quoted(block.text, found.values()):
            return f"a block without a name could be {path}; write the path of each file on the line before its fence"
    new = _find_new_sources(found, asked.current) if strange else frozenset[str]()
    for other, blocks in strange.items():
        misplaced = any(_get_name(path) == _get_name(other) for path in missing)
        meant = any(names[path] and _can_be(block, path, names[path]) for path in missing for block in blocks)
        if misplaced or meant or _get_name(other).partition(".")[0] in new:
            return _explain_strange(other, asked.targets)
    return ""


def _explain_strange(path: str, targets: tuple[str, ...]) -> str:
    return (
        f"{path[:200]} is not among the files to be written ({', '.join(targets)}): put all that is needed into those"
    )


def _get_name(path: str) -> str:
    return path.rpartition("/")[2]


def _list_top_names(path: str, text: str | None) -> frozenset[str]:
    """Return the names that the file *path* defines at its top."""
    outline = syntax.parse_file(path, text)[0] if text else None
    return outline.groups.get("", frozenset()) if outline else frozenset()


def _can_be(block: Fence, path: str, names: frozenset[str]) -> bool:
    """Return whether *block* looks like the file *path*: it defines one of its *names*, or anything if it has none."""
    if not block.text.strip() or not syntax.is_label_of(block.label, path):
        return False
    if syntax.find_language(path) is None:
        return block.label not in syntax.NEUTRAL
    return _defines(path, block.text, names) if names else bool(_list_top_names(path, block.text))


def _find_new_sources(found: Mapping[str, str], current: Mapping[str, str]) -> frozenset[str]:
    """Return the modules, by their own names, that the files *found* import newly."""
    sources: set[str] = set()
    for path, text in found.items():
        new, old = syntax.parse_file(path, text)[0], syntax.parse_file(path, current.get(path, ""))[0]
        sources |= (new.sources if new else frozenset()) - (old.sources if old else frozenset())
    parts = [part for source in sources for part in source.split("/")]
    return frozenset(word for part in parts for word in (part.partition(".")[0], part.rpartition(".")[2]))


def _is_quoted(text: str, files: Iterable[str]) -> bool:
    """Return whether *text* occurs line by line in one of *files*: then it explains, and corrects nothing."""
    lines = text.strip("\n").rstrip()
    return any(f"\n{lines}\n" in f"\n{file}\n" for file in files)


def _assign_named(owned: Mapping[str, list[Fence]], free: list[Fence]) -> dict[str, str] | str:
    """Return the text of each path that blocks are named for."""
    found: dict[str, str] = {}
    for path, candidates in owned.items():
        texts = {block.text for block in candidates}
        if len(texts) > 1:
            return f"there are {len(texts)} different blocks for {path}; give the complete file once"
        if why := _explain_unfit(candidates[0], path) or _explain_rivals(path, candidates[0].text, free):
            return why
        found[path] = candidates[0].text
    return found


def _find_owner(block: Fence, targets: tuple[str, ...], current: Mapping[str, str]) -> str | list[str] | None:
    """Return the target of *block*, another path, None without a name, or the names that contradict each other."""
    owners: list[str] = []
    for name in block.names:
        path = name.path.replace("\\", "/").removeprefix("./").strip("/")
        known = [t for t in targets if t == path] or [
            t for t in targets if path not in current and t.endswith("/" + path)
        ]
        if len(known) == 1:
            owners.append(known[0])
        elif name.sure:
            owners.append(path)
    unique = list(dict.fromkeys(owners))
    return unique if len(unique) > 1 else unique[0] if unique else None


def _find_only(free: list[Fence], target: str, current: Mapping[str, str]) -> dict[str, str] | str:
    """Return the one block without a name that can be *target*.

    Of several, those that define none of the names of the present file are examples, commands and outputs.
    """
    fitting = [block for block in free if syntax.is_label_of(block.label, target)]
    if not fitting:
        why = _explain_unfit(free[0], target) if free else ""
        return why or f"no fenced block is for {target}; put its complete new text in one"
    texts = {block.text: block for block in fitting if block.text.strip()}
    if not texts:
        return f"the fenced block for {target} is empty"
    if len(texts) > 1 and target in current:
        old = syntax.parse_file(target, current[target])[0]
        names = old.groups[""] if old else frozenset[str]()
        texts = {text: block for text, block in texts.items() if not names or _defines(target, text, names)}
        texts = _find_whole(texts, target, names)
    elif len(texts) > 1:
        texts = _find_whole(texts, target, frozenset())
    if len(texts) != 1:
        return f"there are {len(fitting)} fenced blocks that could be {target}; give the complete file in one alone"
    ((text, block),) = texts.items()
    return _explain_unfit(block, target) or {target: text}


def _find_whole(texts: dict[str, Fence], path: str, names: frozenset[str]) -> dict[str, Fence]:
    """Return the one of *texts* that all others are quoted from, if those are plainly no files themselves.

    A shorter text may be the file, corrected: if it has all *names* of the present one, or, where that has none, if
    it begins as the longer one does.
    """
    longest = max(texts, key=len)
    for text in texts.keys() - {longest}:
        outline = syntax.parse_file(path, text)[0]
        complete = (
            outline is not None and names <= outline.groups.get("", frozenset()) if names else longest.startswith(text)
        )
        if complete or not _is_quoted(text, (longest,)):
            return texts
    return {longest: texts[longest]} if texts else texts


def _defines(path: str, text: str, names: frozenset[str]) -> bool:
    """Return whether *text*, even if it does not parse, defines one of *names*."""
    outline, _ = syntax.parse_file(path, text)
    if outline is not None:
        return bool(outline.groups.get("", frozenset()) & names)
    lines = [line.lstrip("+ ") for line in text.split("\n")]
    heads = tuple(f"{word}{name}" for name in names for word in ("def ", "class ", "async def "))
    return any(line.startswith(heads) or line.partition(" ")[0].rstrip(":=") in names for line in lines)


def _explain_rivals(path: str, text: str, free: list[Fence]) -> str:
    """Explain that blocks without a name define names of the file *path* again, maybe to correct it."""
    outline, _ = syntax.parse_file(path, text)
    names = outline.groups.get("", frozenset()) if outline else frozenset[str]()
    for block in free:
        if (
            not _is_quoted(block.text, (text,))
            and syntax.is_label_of(block.label, path)
            and _defines(path, block.text, names)
        ):
            return f"a second block defines names of {path} again; give the complete file once"
    return ""


def _explain_unfit(block: Fence, path: str) -> str:
    """Return why *block* cannot be *path*, the file that it is meant to be."""
    if not block.text.strip():
        return f"the fenced block for {path} is empty"
    if block.excerpt:
        return f"the fenced block for {path} quotes a range of its lines; give the complete file"
    if block.label in ("diff", "patch") and not syntax.is_label_of(block.label, path):
        return f"the fenced block for {path} is a diff; give the complete new file"
    if not syntax.is_label_of(block.label, path) and (syntax.find_language(path) or not block.names):
        return f"the fenced block for {path} is labelled {block.label}"
    if block.holds_fence and syntax.find_language(path) is None:
        return f"it cannot be told where the block for {path} ends; use a fence longer than those in the file"
    return ""


def _join_span(plain: str, blocks: list[Fence], target: str) -> str:
    """Return the text from the first fence to the last, if it is one Python file that holds those between; else "".

    A model that fences a file with fences in its docstrings writes the same three backticks for both. In Python what
    compiles across a fence has it in a string, so that there is no second way to read it.
    """
    if not blocks or syntax.find_language(target) != "python" or blocks[0].nested:
        return ""
    first = blocks[0]
    if not syntax.is_label_of(first.label, target) or any(name.path != target for name in first.names):
        return ""
    if len(blocks) == 1 and first.closed:
        return ""
    lines = plain.split("\n")
    ends = [n for n, line in enumerate(lines) if n > first.start and _is_closing(line, first.markup)]
    text = "\n".join(lines[first.start + 1 : ends[-1]]) + "\n" if ends else ""
    if not text or ends[-1] < blocks[-1].start:
        return ""
    outline, why = syntax.parse_file(target, text)
    return "" if why or outline is None or outline.prose else text


def _is_closing(line: str, markup: str) -> bool:
    bare = line.rstrip()
    return len(bare) >= len(markup) and bare == markup[0] * len(bare)


def _explain_no_fence(plain: str, targets: tuple[str, ...]) -> str:
    """Return why a reply without a fence is not a file."""
    path = targets[0] if len(targets) == 1 else ""
    if not plain.strip():
        return "the reply is empty"
    if path and (why := completeness.check_not_patch(path, plain)):
        return why
    if path and syntax.find_language(path) and (why := syntax.parse_file(path, plain)[1]):
        return f"there is no fenced block, and {why}"
    several = f" after its path ({', '.join(targets)})" if not path else f" with the complete file {path}"
    return f"there is no fenced block in the reply; give one{several}"
