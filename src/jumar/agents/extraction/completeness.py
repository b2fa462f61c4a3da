"""Checks that a text is the whole new file: no part, no patch, no test in its place, nothing elided by a comment."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from typing import NamedTuple

from jumar.languages import syntax
from jumar.languages.outline import Outline

THING = (
    r"(?:code|file|class|module|program|script|functions?|methods?|implementations?|imports?|definitions?|logic|"
    r"content|contents|body|tests?|helpers?|constants?|types?|structs?|stuff|part|section|lines)"
)
REST = r"(?:rest|remainder|remaining|existing|previous|original|unchanged|other|same)"
STAYS = (
    r"(?:unchanged|untouched|intact|omitted|elided|truncated|skipped|snipped|same|here|above|below|before|brevity|"
    r"remains?|stays?|continues?|follows?|go(?:es)?|etc)"
)
FILLER = r"(?:(?:and|the|all|your|my|our|keep|with|of|this|as|is) )*"
TAIL = rf"(?:{STAYS}|the|as|is|are|was|were|been|for|in|from|it|to|of|this|your|has|have|all|exactly)"
WORD = rf"(?>(?:{REST}|{STAYS}|{THING}|{TAIL}|and|my|our|keep|with)\b)"
LEFT_OUT = re.compile(
    r"\.{3}(?: \.{3})*"
    rf"|\.{{3}}.*\b(?:{REST}|{STAYS}|{THING}|your)\b.*\.{{3}}"
    rf"|\.{{3}} {FILLER}(?:rest|remainder|remaining|existing|other|unchanged|omitted|elided|your)\b.*"
    rf"|(?:\.{{3}} )?{FILLER}(?:{REST}|{STAYS}|code|implementations?|logic|your)"
    rf"(?: {WORD})*(?: \.{{3}})+"
    rf"|\.{{3}} {FILLER}(?:{REST}|{STAYS}|{THING})(?: {WORD})*"
    rf"|{FILLER}(?:rest|remainder|remaining|existing|previous) {FILLER}{THING}(?: (?:{THING}|{TAIL}))*"
    rf"|{FILLER}{REST} (?:(?:{THING}|{TAIL}|of|your) )*{STAYS}(?: (?:{THING}|{TAIL}))*"
    rf"|{FILLER}{THING} (?:{TAIL} )*(?:unchanged|untouched|omitted|elided|truncated|skipped|as before|as above|"
    r"the same|goes here|go here)\b.*"
    r"|.*\bfor brevity\b.*"
    rf"|(?:your|my|the) (?:{THING} )+(?:goes )?here"
    r"|(?:no changes?|nothing changed|unchanged|as before|as above|same as (?:before|above|(?:the )?original)|"
    rf"truncated|snip(?:ped)?|continued?|omitted)(?: (?:{TAIL}|needed|required))*"
)
"""Comments that stand for code somebody left out (matched in full, in lower case, without the comment's marks)."""
MARKS = " \t\n#/*-!<>;{}()[]\"'"
PUNCTUATION = MARKS + ".,:*_`~=+"
ENVELOPE = frozenset({"code", "content", "explanation", "file", "filename", "language", "name", "path", "text"})
"""The keys of an object that a model puts around a file."""
CONFLICT = ("<<<<<<< ", ">>>>>>> ", "<<<<<<<", "------- SEARCH", "+++++++ REPLACE")
LINES = 40
"""Characters of a line that a sentence quotes."""


class Draft(NamedTuple):
    """A text that is about to become a file."""

    path: str
    text: str
    prose: str
    """Text of the reply outside of its fences."""
    current: str | None
    """The present text of the file, if known."""


def check_complete(draft: Draft, new: Outline | None) -> str:
    """Return why *draft* is not the whole new file, in one sentence; "" if nothing speaks against it.

    Refused are, in this order: diffs and search/replace blocks; texts that do nothing; tests in place of what they
    test; comments and `...` that stand for code left out (unless the present file has the same ones); and halves.
    """
    old = syntax.parse_file(draft.path, draft.current)[0] if draft.current else None
    if new is None:
        return check_not_patch(draft.path, draft.text)
    if new.patch and not (old and old.patch):
        return f"the text for {draft.path} reads like a diff; give the complete new file"
    if not new.substance:
        return f"the text for {draft.path} holds no code"
    if _is_wrapped(draft.path, new, old):
        return f"the text for {draft.path} is wrapped in JSON; give the file itself"
    return (
        _explain_tests(draft.path, new, old)
        or _explain_gap(draft, new, old)
        or (_explain_half(draft, new, old) if old else "")
    )


def _is_wrapped(path: str, new: Outline, old: Outline | None) -> bool:
    """Check whether a JSON file holds itself: under its path, or as the content of something."""
    keys = new.groups.get("", frozenset())
    if syntax.find_language(path) != "json" or (old and keys & _list_names(old)):
        return False
    return path in keys or (bool(keys & {"content", "code", "text"}) and keys <= ENVELOPE)


def check_not_patch(path: str, text: str) -> str:
    """Return why *text* is an edit of *path* instead of a file, or ""."""
    lines = text.split("\n")
    if any(line.startswith(CONFLICT) for line in lines):
        return f"the text for {path} is a search/replace block; give the complete new file"
    hunk = any(line.startswith("@@") for line in lines)
    header = any(a.startswith("--- ") and b.startswith("+++ ") for a, b in pairwise(lines))
    signed = [line[0] in "+-" for line in lines if line.strip()]
    if path.endswith((".diff", ".patch")) or not (hunk or header or (signed and sum(signed) * 2 > len(signed) > 1)):
        return ""
    if syntax.find_language(path) is None and not (hunk or header):
        return ""
    return f"the text for {path} is a diff; give the complete new file"


def _explain_tests(path: str, new: Outline, old: Outline | None) -> str:
    """Return why *new* is not the implementation: tests in its place, or an example that imports the file itself."""
    stem = path.rpartition("/")[2].partition(".")[0]
    if "test" in path.lower().replace("latest", "") or stem == "conftest" or (old and old.tests):
        return ""
    if syntax.find_language(path) == "python":
        module = f".{path.rpartition('.')[0].replace('/', '.')}"
        named = [source.lstrip(".") for source in new.sources]
        own = stem not in sys.stdlib_module_names and any(name and module.endswith(f".{name}") for name in named)
    else:
        own = any(s.startswith("./") and s[2:].partition(".")[0] == stem for s in new.sources)
    public = {name for name in new.groups.get("", frozenset()) if not name.startswith("Test")} - new.tests
    if new.tests and (own or not public or len(public) < len(new.tests)):
        return f"the text for {path} holds tests, not the implementation"
    if own and not (old and new.sources & old.sources and stem in " ".join(old.sources)):
        return f"the text for {path} imports {stem}, so it is an example of its use and not the file"
    return ""


def _explain_gap(draft: Draft, new: Outline, old: Outline | None) -> str:
    known = {_strip_comment(text) for _, text in old.comments} if old else set()
    for line, text in new.comments:
        if LEFT_OUT.fullmatch(_strip_comment(text)[:200]) and _strip_comment(text) not in known:
            quoted = text.strip()[:LINES]
            return f'line {line} of the text for {draft.path} ("{quoted}") stands for code that is left out'
    if draft.path.endswith(".pyi"):
        return ""
    if new.gaps and len(new.gaps) > (len(old.gaps) if old else 0):
        return f'line {new.gaps[0]} of the text for {draft.path} ("...") stands for code that is left out'
    real = new.stubs & _list_functions(old) - old.stubs if old else frozenset[str]()
    if real:
        return f"the text for {draft.path} has `...` in place of the body of {_join(real)}"
    return ""


def _strip_comment(comment: str) -> str:
    """Return the words of a comment: no marks, no punctuation but an ellipsis."""
    spaced = re.sub(r"(\.{3,}|…)", " ... ", comment.strip(MARKS).lower())
    return " ".join(word if word == "..." else word.strip(PUNCTUATION) for word in spaced.split()).strip()


def _list_functions(outline: Outline) -> frozenset[str]:
    return frozenset(f"{group}.{name}" if group else name for group, names in outline.groups.items() for name in names)


def _explain_half(draft: Draft, new: Outline, old: Outline) -> str:
    """Return why *draft* is only a part of the file.

    A name of the present file that is gone is missed if the new text still uses it and nothing in the new text binds
    it. Names that are gone are missed as well if at most half of the public ones of their group (the top of the file,
    or a class that stays) are left, unless the prose says remove, delete, drop, rename, replace or merge and names
    each of them. A rewrite that keeps most names, or says what it takes away, is nobody's business.
    """
    lost = frozenset[str]() if new.open else (old.bound & new.used) - new.bound - new.local
    if lost:
        return f"the text for {draft.path} uses {_join(lost)}, which it leaves out; give the complete file"
    for group, names in old.groups.items():
        if group and group not in new.groups.get("", frozenset()) and group not in new.groups:
            continue
        kept = new.groups.get(group, frozenset()) | (new.bound if not group else frozenset())
        gone = names - kept
        called = (gone & new.members) - _list_names(new) if group else frozenset[str]()
        if called:
            what = f"{group}.{_join(called)}"
            return f"the text for {draft.path} uses {what}, which it leaves out; give the complete file"
        public = frozenset(name for name in names if not name.startswith("_"))
        missed = frozenset(name for name in gone & public if not _is_said_to_go(name, draft.prose))
        if missed and len(public - gone) * 2 <= len(public):
            where = f"{draft.path} has" if not group else f"{group} in {draft.path} has"
            return (
                f"{where} {_join(missed)}, which the reply leaves out; give the complete file, or say in a sentence "
                "before it what you remove"
            )
    return ""


def _list_names(outline: Outline) -> frozenset[str]:
    return frozenset(name for names in outline.groups.values() for name in names)


def _is_said_to_go(name: str, prose: str) -> bool:
    """Return whether *prose* says that *name* is removed."""
    words = set(re.findall(r"\w+", prose))
    verbs = ("remov", "delet", "drop", "renam", "replac", "merg", "inlin")
    return name in words and any(word.lower().startswith(verbs) for word in words)


def _join(names: frozenset[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")  # noqa: PLR2004  a line's worth
