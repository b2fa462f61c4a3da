"""Assigns the blame for a failed JavaScript test from its error: the code, its absence, or the test itself.

The room is the working directory.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

CODE, ABSENT, TEST = "code", "absent", "test"
"""See `jumar.core.state.verdict.Blame`."""

TIMED_OUT = re.compile(r"\b(?:(?:Test|Hook) timed out in \d+\s?ms|Exceeded timeout of \d+ ms for a (?:test|hook))")
"""Messages of vitest and jest for a test or hook that took too long."""

FRAME = re.compile(r"^\s*at .*(?::\d+:\d+\)?|\(<anonymous>\)|\(index \d+\))\s*$", re.MULTILINE)
_PLACE = re.compile(r"(?:file://)?(/[^\s()]+?|[\w.@-][^\s()]*?)(?:\?[^\s():]*)?:(\d+):\d+\)?\s*$")

_ABSENT = (
    re.compile(r"""Failed to resolve import ["']([^"']+)["'] from ["']([^"']+)["']"""),
    re.compile(r"""Cannot find (?:module|package) ['"]([^'"]+)['"](?: imported)? from ['"]?([^\s'"]+)"""),
    re.compile(r"""Failed to load url (\S+)(?: \(resolved id: [^)]*\))? in ([^\s]+?)\. Does the file exist"""),
    re.compile(r"""Cannot find module ['"]([^'"]+)['"]"""),
    re.compile(r"""ENOENT: no such file or directory, open '([^']+\.[cm]?[jt]sx?)'"""),
)
"""Messages of vite, vite-node, jest and node for a missing module; the second group is the importing file."""

_NO_NAME = re.compile(
    r"""requested module ['"]([^'"]+)['"] (?:does not provide an export named|is a CommonJS module)"""
)
_NOT_CALLABLE = re.compile(
    r"(?:\(0 ?, ?)?([\w$.]+)\)? is not a (?:function|constructor)|Class extends value (undefined)"
)
_UNPARSED = re.compile(
    r"invalid JS syntax|Parse failure|PARSE_ERROR|Transform failed|Unexpected token|Unterminated|Jest failed to parse"
    r"|\(\d+:\d+\)\s|SyntaxError", re.IGNORECASE
)  # fmt: skip
_NO_TESTS = re.compile(r"No test suite found|must contain at least one test|No test found in suite")
_SUPPORT = re.compile(r"(^|/)(__tests__|__mocks__|tests?|spec|fixtures)/|\.(test|spec)\.[cm]?[jt]sx?$|(jest|vitest)\.")
_IMPORTS = (
    re.compile(r"""\bimport\s+(?:type\s+)?([\w$*{][^;'"]*?)\s*from\s*['"]([^'"]+)['"]"""),
    re.compile(
        r"""\b(?:const|let|var)\s+([\w$]+|\{[^}]*\})\s*=\s*(?:await\s+import|require)\s*\(\s*['"]([^'"]+)['"]"""
    ),
)


class JavaScriptError(NamedTuple):
    """One error of one test or file."""

    name: str
    message: str
    stack: str
    file: str
    """The file that it is about, where the runner says so; absolute."""
    assertion: bool

    @classmethod
    def parse(cls, said: dict[str, Any]) -> JavaScriptError:
        """Parse the error that the runner's end sent. A lost name or message is read from the top of the stack."""
        name, message, stack = said["name"], said["message"], said["stack"]
        head = FRAME.split(stack, maxsplit=1)[0].strip()
        if shown := re.match(r"(?:● .*\n\s*)?(\w*(?:Error|Exception))\b(?: \[\w+\])?: ([\s\S]*)", head):
            # Jest's worker calls every error by the name of its carrier.
            name = shown[1] if name in ("", "Error") else name
            message = message or shown[2].strip()
        assertion = said["assertion"] or name == "AssertionError" or "expect(" in head
        return cls(name, message or head, stack, said["file"], assertion)

    def list_places(self) -> list[tuple[str, int]]:
        """Return its stack frames in the room, innermost first, as path and line. Packages are not part of the room."""
        found = []
        for line in FRAME.findall(self.stack):
            if place := _PLACE.search(line):
                path = get_path_in_room(place[1])
                if path and Path(path).is_file():
                    found.append((path, int(place[2])))
        return found


def get_path_in_room(path: str) -> str:
    """Return *path* relative to the room, or empty if it is outside or in a package."""
    room = os.path.realpath(".")
    within = os.path.relpath(os.path.realpath(path.removeprefix("file://")), room)
    return "" if within.startswith("..") or "node_modules" in within.split("/") else within


def assign_blame(fault: JavaScriptError, test: str, place: str) -> tuple[str, str]:
    """Return the blame for *fault*, and the missing module if it is absent.

    Args:
        fault: what was thrown.
        test: path of the test file, relative to the room.
        place: `test`, `hook`, or `file` for what keeps the file from being loaded.
    """
    text = f"{fault.name}: {fault.message}\n{fault.stack if place == 'file' else ''}"
    if fault.assertion and place == "test":
        return CODE, ""
    if (missing := _blame_missing(text, test)) is not None:
        return missing
    innermost = next((path for path, _ in fault.list_places()), get_path_in_room(fault.file) if fault.file else "")
    if place == "file" and _UNPARSED.search(text):
        where = get_path_in_room(fault.file) if fault.file else _find_named(text) or innermost or test
        return (TEST if _is_support(where, test) else CODE), ""
    if innermost in ("", test) and (name := _find_unbound(fault, test)):
        return ABSENT, name
    ours = not innermost or _is_support(innermost, test)
    broken = place != "test" or fault.name == "ReferenceError" or bool(_NO_TESTS.search(text))
    return (TEST if ours and broken else CODE), ""


def _is_support(path: str, test: str) -> bool:
    """Return whether *path* belongs to the tests rather than to the code under test."""
    return path == test or bool(_SUPPORT.search(path))


def _find_named(text: str) -> str:
    """Return the first file of the room that *text* names by its absolute path."""
    paths = (get_path_in_room(path) for path in re.findall(r"(/[^\s:()'\"]+\.[cm]?[jt]sx?)\b", text))
    return next((path for path in paths if path and Path(path).is_file()), "")


def _blame_missing(text: str, test: str) -> tuple[str, str] | None:
    """Return the blame of a module or name that *text* says is not there, named as *test* would; None: of none."""
    if match := _NO_NAME.search(text):
        return (ABSENT, match[1]) if _is_of_project(match[1]) else (TEST, "")
    for pattern in _ABSENT:
        if match := pattern.search(text):
            wanted = match[1]
            importer = (match[2] if pattern.groups > 1 else "") or test
            importer = get_path_in_room(importer) if Path(importer).is_file() else test
            if wanted.startswith("/"):
                within = get_path_in_room(wanted) or get_path_in_room(f".{wanted}")  # vite counts from its root
                wanted = _make_relative(within, test) if within else wanted
            elif wanted.startswith(".") and importer != test:
                wanted = _make_relative(os.path.normpath(str(Path(importer).parent / wanted)), test)
            if _is_of_project(wanted):
                return ABSENT, wanted
            return (TEST if _is_support(importer, test) else CODE), ""
    return None


def _make_relative(path: str, test: str) -> str:
    said = os.path.relpath(path, Path(test).parent)
    return said if said.startswith(".") else f"./{said}"


def _is_of_project(wanted: str) -> bool:
    """Return whether a specifier means a file of the project: a path, an alias, or the project's own name."""
    if wanted.startswith((".", "/", "@/", "~", "#", "$")):
        return True
    try:
        package = json.loads(Path("package.json").read_text("utf-8"))
    except (OSError, ValueError):
        package = {}
    own = package.get("name") if isinstance(package, dict) else None
    first = wanted.partition("/")[0]
    return wanted == own or (bool(own) and wanted.startswith(f"{own}/")) or (first != wanted and Path(first).is_dir())


def _find_unbound(fault: JavaScriptError, test: str) -> str:
    """Return the module of the project that lacks what *fault* says is no function, as *test* imports it."""
    match = _NOT_CALLABLE.search(fault.message)
    if not match or not Path(test).is_file():
        return ""
    source = Path(test).read_text("utf-8", "replace")
    bound = {name: module for name, module in read_bindings(source).items() if _is_of_project(module)}
    parts = (match[1] or "").split(".")
    names = [parts[0], parts[-1]]
    for where, number in fault.list_places()[:1]:
        # Vitest leaves away of which module it is a member.
        line = "".join(source.splitlines()[number - 1 : number]) if where == test else ""
        names += re.findall(rf"([\w$]+)\s*\.\s*{re.escape(parts[-1])}\b", line) if parts[-1] else []
    if parts[-1] in ("default", ""):
        # A transpiler's name of the module: _calc.default
        names += [n for n, m in bound.items() if Path(m).stem in parts[0] or len(set(bound.values())) == 1]
    return next((bound[name] for name in names if name in bound), "")


def read_bindings(source: str) -> dict[str, str]:
    """Return the names that *source* imports or requires, each with its module."""
    found: dict[str, str] = {}
    for pattern in _IMPORTS:
        for clause, module in pattern.findall(source):
            names = re.sub(r"\*\s+as\s+", "", clause)
            for part in re.split(r"[{},]", names):
                words = re.split(r"\s+as\s+|\s*:\s*", part.strip().removeprefix("type "))
                found.update((word, module) for word in words if re.fullmatch(r"[\w$]+", word))
    return found
