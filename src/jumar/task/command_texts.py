"""Extracts the commands that a build file, a package's scripts, a configuration file or a script holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from posixpath import basename

LARGEST = 200_000
"""Characters of a file that are searched."""

LONGEST_VALUE = 200
"""Characters of the value of a name: a file that doubles its names again and again has no end."""

SPLIT = re.compile(r"&&|\|\||[;&|(){}`\n]|\$\(")
"""Stands between two commands of one line."""

SPACE = re.compile(r"[\s'\"\\]+")
"""Stands between two words of a command."""

_CALL = re.compile(
    r"\b(?:run|call|check_call|check_output|Popen|popen|system|run_path|exec\w*|spawn\w*|fork)\s*\(([^()]{0,2000})"
)
_VALUE = re.compile(r"^[ \t]*(?:export[ \t]+|override[ \t]+)?(\w+)[ \t]*(:{0,3}|\?|\+)=[ \t]*(.*)$", re.MULTILINE)
_USED = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")
_GIVEN = re.compile(r"\$[<^+?]")
_RULE = re.compile(r"^([^\s#:=][^#:=]*)::?(?!=)(.*)$")
_GOAL = re.compile(r"^\.DEFAULT_GOAL[ \t]*:{0,3}=[ \t]*(\S+)", re.MULTILINE)
_KEY = re.compile(r"^\s*(?:- )?([\w.{}-]+)\s*[=:](?:\s+|$)|^\s*- ")
_HOLDS = re.compile(r"cmd|command|script|run|sh$")
_CODE = (".py", ".js", ".ts", ".mjs", ".cjs", ".rb", ".pl", ".php")


def extract_commands(path: str, body: str, asked: frozenset[str]) -> str:
    """Return the commands in the file *path*, for the targets *asked*."""
    name = basename(path)
    if name in ("package.json", "composer.json"):
        return _extract_scripts(body, asked)
    if name.endswith(_CODE):
        return "\n".join(re.sub(r"[\[\],'\"]+", " ", call) for call in _CALL.findall(body))
    if name.lower() in ("makefile", "gnumakefile") or name.endswith((".mk", ".make")):
        return _extract_recipes(_resolve(re.sub(r"\\\n", " ", body)), asked)
    if name.endswith((".ini", ".cfg", ".yml", ".yaml", ".toml")):
        return "\n".join(_list_config_commands(body))
    return _resolve(body)


def _list_config_commands(body: str) -> Iterator[str]:
    """Yield the lines of an INI or YAML file that hold commands.

    Those of keys that are called so, and what follows them.
    """
    holds = False
    for line in body.split("\n"):
        if key := _KEY.match(line):
            holds = bool(_HOLDS.search(key[1])) if key[1] else holds
        if holds:
            yield _KEY.sub("", line)


def _resolve(body: str) -> str:
    """Return *body* with the simple values of its names filled in; `$(MAKE)` is make."""
    values = {"MAKE": "make", "SHELL": "sh"}
    for name, how, text in _VALUE.findall(body):
        values[name] = f"{values.get(name, '')} {text}" if how == "+" else text

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        return str(values.get(name, match[0] if match[1] else ""))[:LONGEST_VALUE]

    for _ in range(3):  # of values in values, as deep as people write them
        body = _USED.sub(value, body)[:LARGEST]
    return body


def _extract_recipes(body: str, asked: frozenset[str]) -> str:
    """Return the recipes of the targets among *asked*, else of the first one, and of their prerequisites."""
    rules: dict[str, list[str]] = {}
    needs: dict[str, set[str]] = {}
    outside: list[str] = []
    current: list[str] = []
    given = ""
    for line in body.split("\n"):
        if line.startswith("\t"):
            for target in current:
                rules[target].append(_GIVEN.sub(given, line))
        elif rule := _RULE.match(line):
            before, _, recipe = rule[2].partition(";")
            current, given = rule[1].split(), before.strip().replace("\\", "")
            for target in current:
                rules.setdefault(target, []).append(_GIVEN.sub(given, recipe))
                needs.setdefault(target, set()).update(before.split())
        elif not _VALUE.match(line):
            outside.append(line)
    goal = _GOAL.search(body)
    first = [goal[1]] if goal else [name for name in rules if not name.startswith(".")][:1]
    wanted = {target for target in (asked if asked & rules.keys() else first) if target in rules}
    while more := {need for target in wanted for need in needs[target] if need in rules} - wanted:
        wanted |= more
    patterns = {target for target in rules if "%" in target}
    return "\n".join([*outside, *(line for target in sorted({*wanted, *patterns}) for line in rules[target])])


def _extract_scripts(body: str, asked: frozenset[str]) -> str:
    """Return the scripts of a package that *asked* starts, those that they start, and their pre and post scripts."""
    try:
        scripts = dict(json.loads(body).get("scripts", {}))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return ""
    taken: dict[str, str] = {}
    wanted = {"test" if word in ("t", "tst") else word for word in asked}
    while more := {
        name
        for name in scripts
        if name not in taken and _is_asked(name.removeprefix("pre").removeprefix("post"), wanted)
    }:
        taken.update((name, str(scripts[name])) for name in more)
        wanted |= {word for name in more for word in SPACE.split(SPLIT.sub(" ", taken[name]))}
    return "\n".join(taken.values())


def _is_asked(name: str, wanted: set[str]) -> bool:
    """Return whether the script *name* is among *wanted*, which may be `npm:NAME` or a pattern (`check:*`)."""
    return name in wanted or any(
        fnmatch(name, word.removeprefix("npm:")) for word in wanted if "*" in word or ":" in word
    )
