"""Which block is which file: by its name, or because no other block can be it; two answers are none."""

from __future__ import annotations

from collections.abc import Mapping

from jumar.agents import syntax, whole
from jumar.agents.fences import Fence

UNCLOSED = "a fenced block is never closed: the reply was cut off, or the file holds fences (use a longer one)"


def chosen(
    plain: str, blocks: list[Fence], targets: tuple[str, ...], current: Mapping[str, str]
) -> dict[str, str] | str:
    """The text for each target that the blocks give, or why that cannot be told."""
    if len(targets) == 1 and (text := _spanning(plain, blocks, targets[0])):
        return {targets[0]: text}
    if not blocks or not all(block.closed for block in blocks):
        return _without(plain, targets) if not blocks else UNCLOSED
    owners = [_owner(block, targets, current) for block in blocks]
    if clash := next((owner for owner in owners if isinstance(owner, list)), None):
        return f"a block is named {' and '.join(clash)} at once; name each block once"
    free = [block for block, owner in zip(blocks, owners, strict=True) if owner is None]
    owned = {path: [b for b, owner in zip(blocks, owners, strict=True) if owner == path] for path in targets}
    if any(owned.values()):
        return _named({path: candidates for path, candidates in owned.items() if candidates}, free)
    if len(targets) > 1:
        return f"no fenced block is preceded by the path of one of {', '.join(targets)}"
    return _only(free, targets[0], current)


def _named(owned: Mapping[str, list[Fence]], free: list[Fence]) -> dict[str, str] | str:
    """The text of each path that blocks are named for."""
    found: dict[str, str] = {}
    for path, candidates in owned.items():
        texts = {block.text for block in candidates}
        if len(texts) > 1:
            return f"there are {len(texts)} different blocks for {path}; give the complete file once"
        if why := _unfit(candidates[0], path) or _rivals(path, candidates[0].text, free):
            return why
        found[path] = candidates[0].text
    return found


def _owner(block: Fence, targets: tuple[str, ...], current: Mapping[str, str]) -> str | list[str] | None:
    """The target *block* belongs to, another path, None if it has no name, or the names that contradict each other."""
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


def _only(free: list[Fence], target: str, current: Mapping[str, str]) -> dict[str, str] | str:
    """The one block without a name that can be *target*.

    Of several, those that define none of the names of the present file are examples, commands and outputs.
    """
    fitting = [block for block in free if syntax.fits(block.label, target)]
    if not fitting:
        why = _unfit(free[0], target) if free else ""
        return why or f"no fenced block is for {target}; put its complete new text in one"
    texts = {block.text: block for block in fitting if block.text.strip()}
    if not texts:
        return f"the fenced block for {target} is empty"
    if len(texts) > 1 and target in current:
        old = syntax.parsed(target, current[target])[0]
        names = old.groups[""] if old else frozenset[str]()
        texts = {text: block for text, block in texts.items() if not names or _defines(target, text, names)}
    if len(texts) != 1:
        return f"there are {len(fitting)} fenced blocks that could be {target}; give the complete file in one alone"
    ((text, block),) = texts.items()
    return _unfit(block, target) or {target: text}


def _defines(path: str, text: str, names: frozenset[str]) -> bool:
    """Whether *text*, even if it does not parse, gives one of *names* a meaning."""
    outline, _ = syntax.parsed(path, text)
    if outline is not None:
        return bool(outline.groups.get("", frozenset()) & names)
    lines = [line.lstrip("+ ") for line in text.split("\n")]
    heads = tuple(f"{word}{name}" for name in names for word in ("def ", "class ", "async def "))
    return any(line.startswith(heads) or line.partition(" ")[0].rstrip(":=") in names for line in lines)


def _rivals(path: str, text: str, free: list[Fence]) -> str:
    """Blocks without a name that define again what the file *path* defines may be meant to correct it."""
    outline, _ = syntax.parsed(path, text)
    names = outline.groups.get("", frozenset()) if outline else frozenset[str]()
    for block in free:
        if block.text != text and syntax.fits(block.label, path) and _defines(path, block.text, names):
            return f"a second block defines names of {path} again; give the complete file once"
    return ""


def _unfit(block: Fence, path: str) -> str:
    """Why *block*, which is meant to be *path*, cannot be."""
    if not block.text.strip():
        return f"the fenced block for {path} is empty"
    if block.excerpt:
        return f"the fenced block for {path} quotes a range of its lines; give the complete file"
    if block.label in ("diff", "patch") and not syntax.fits(block.label, path):
        return f"the fenced block for {path} is a diff; give the complete new file"
    if not syntax.fits(block.label, path) and (syntax.language(path) or not block.names):
        return f"the fenced block for {path} is labelled {block.label}"
    if block.holds_fence and syntax.language(path) is None:
        return f"it cannot be told where the block for {path} ends; use a fence longer than those in the file"
    return ""


def _spanning(plain: str, blocks: list[Fence], target: str) -> str:
    """From the first fence to the last, if all of that is one Python file that holds the fences between; else "".

    A model that fences a file with fences in its docstrings writes the same three backticks for both. In Python what
    compiles across a fence has it in a string, so that there is no second way to read it.
    """
    if not blocks or syntax.language(target) != "python" or blocks[0].nested:
        return ""
    first = blocks[0]
    if not syntax.fits(first.label, target) or any(name.path != target for name in first.names):
        return ""
    if len(blocks) == 1 and first.closed:
        return ""
    lines = plain.split("\n")
    ends = [n for n, line in enumerate(lines) if n > first.start and _closes(line, first.markup)]
    text = "\n".join(lines[first.start + 1 : ends[-1]]) + "\n" if ends else ""
    if not text or ends[-1] < blocks[-1].start:
        return ""
    outline, why = syntax.parsed(target, text)
    return "" if why or outline is None or outline.prose else text


def _closes(line: str, markup: str) -> bool:
    bare = line.rstrip()
    return len(bare) >= len(markup) and bare == markup[0] * len(bare)


def _without(plain: str, targets: tuple[str, ...]) -> str:
    """Why a reply without a fence is no file."""
    path = targets[0] if len(targets) == 1 else ""
    if not plain.strip():
        return "the reply is empty"
    if path and (why := whole.patch(path, plain)):
        return why
    if path and syntax.language(path) and (why := syntax.parsed(path, plain)[1]):
        return f"there is no fenced block, and {why}"
    several = f" after its path ({', '.join(targets)})" if not path else f" with the complete file {path}"
    return f"there is no fenced block in the reply; give one{several}"
