"""Parses a shell line without running it: every simple command in its text, also inside commands that hide one.

A grammar (tree-sitter's for bash) finds the commands, `words` what their words become. What a script, an interpreter
or an encoded text does is not seen: what a command cannot reach is the guarantee, this is for a clear early stop.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jumar.commands.downloads import FETCHED, SHELLS, runs_input
from jumar.commands.expansion import expand_fields, expand_text, is_download, predict_output
from jumar.commands.git_and_files import HOLE, find_broken_rule, has_moved
from jumar.commands.wrappers import find_started
from jumar.core.gate.admission import Ruling
from jumar.core.gate.write_rules import Hit

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 60
"""Commands within commands, and texts within texts."""

MOST = 20_000
"""Parts of one line that are looked at."""

MOST_CHARACTERS = 4_000_000
"""Of all its commands and texts together."""

ASSIGNS = frozenset({"export", "declare", "local", "readonly", "typeset"})

FOR_A_PERSON = "the person does that, not an agent"

_SHOWN = 200
"""Characters of a command that a hit quotes."""


class Unreadable(Exception):  # noqa: N818  an answer, not an error
    """Raised for a line that is nested too deep, or too long, to be read."""


def find_hit(line: str) -> Hit | None:
    """Return the hard rule that the shell command *line* breaks, or None.

    Raises:
        Unreadable: if it cannot be told, in one sentence.
    """
    moved = False
    for words in list_commands(line):
        if broken := find_broken_rule(words, moved=moved):
            said = " ".join(words).replace(HOLE, "...").replace(FETCHED, "(a download)")
            return Hit(broken.rule, f"{broken.why}: {said[:_SHOWN]}")
        moved = has_moved(words, moved=moved)
    return None


def check_command(line: str) -> Ruling:
    """Return whether the shell command *line* may be run; an unreadable line is refused without a hit."""
    try:
        found = find_hit(line)
    except Unreadable as why:
        return Ruling(admitted=False, reason=str(why))
    return Ruling(admitted=found is None, reason=found.what if found else "", hit=found)


def list_commands(line: str) -> list[tuple[str, ...]]:
    """Return the words of every simple command in *line*, those that other commands start among them.

    A redirection to a file is `(">", path)`.

    Raises:
        Unreadable: as above.
    """
    reader = _Reader()
    try:
        reader.text(line, ())
    except RecursionError:
        raise Unreadable("the command is nested too deep to be read: put it plainly, or in parts") from None
    return reader.found


class _Reader:
    """One pass over a line and the texts in it; records the assignments made so far."""

    def __init__(self) -> None:
        from tree_sitter import Language, Parser  # noqa: PLC0415  a run without commands loads no grammar
        from tree_sitter_bash import language  # noqa: PLC0415  as above

        self.found: list[tuple[str, ...]] = []
        self._parser = Parser(Language(language()))
        self._values: dict[str, tuple[str, ...]] = {"IFS": (" ",), "HOME": ("~",), "PWD": (".",)}
        self._functions: dict[str, Node] = {}
        self._aliases: dict[str, str] = {}
        self._depth = self._looked = 0
        self._room = MOST_CHARACTERS

    def text(self, line: str, parameters: tuple[str, ...]) -> None:
        """Read *line* as a shell given *parameters* would."""
        source = line.replace("\\\r\n", "").replace("\\\n", "").encode("utf-8", "replace")
        self._room -= len(source)
        tree = self._parser.parse(source)
        before = self._values.get("@")
        if parameters:
            self._values["@"] = parameters
        self._all([tree.root_node], "")
        if parameters:
            self._restore(before)

    def _all(self, nodes: Iterable[Node], fed: str) -> None:
        self._depth += 1
        for node in nodes:
            self._looked += 1
            if self._depth > DEEPEST or self._looked > MOST:
                raise Unreadable("the command is too long or nested too deep to be read: put it plainly, or in parts")
            self._one(node, fed)
        self._depth -= 1

    def _one(self, node: Node, fed: str) -> None:
        """Look at *node*, whose standard input is *fed* as far as that is known."""
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self._command(node, fed)
            case "ERROR" if any(c.type == "command_name" for c in node.named_children):
                self._command(node, fed)
            case "pipeline":
                self._pipeline(node, fed)
            case "redirected_statement":
                self._redirected(node, fed)
            case "variable_assignment":
                self._assign(node)
                self._all(node.named_children, "")
            case "function_definition":
                name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
                if name is not None and body is not None:
                    self._functions[expand_text(name, {})] = body
                self._all(node.named_children, "")
            case "for_statement":
                self._loop(node)
            case "file_redirect":
                self._redirect(node)
            case _:
                self._all(node.named_children, fed)

    def _command(self, node: Node, fed: str) -> None:
        words: list[str] = []
        for child in node.children:
            if child.type == "variable_assignment":
                self._assign(child)
            elif child.type in ("file_redirect", "herestring_redirect"):
                words += self._extra(child)
                fed = self._fed(child) or fed
            elif child.is_named or child.type in ASSIGNS:
                words += expand_fields(child, self._values)
        self._all((c for c in node.named_children if c.type != "variable_assignment"), "")
        self._run(tuple(words), fed)

    def _run(self, words: tuple[str, ...], fed: str) -> None:
        """Note the command *words*, and go on with what it starts."""
        self._looked += 1
        self._depth += 1
        if self._depth > DEEPEST or self._looked > MOST:
            raise Unreadable("the command starts too many others to be read: put it plainly, or in parts")
        self._room -= sum(map(len, words))
        if self._room < 0:
            raise Unreadable("the command says too much to be read: put it plainly, or in parts")
        if words:
            self.found.append(words)
            self._named(words, fed)
        self._depth -= 1

    def _named(self, words: tuple[str, ...], fed: str) -> None:
        name, args = words[0], words[1:]
        inner = find_started(words)
        for command in inner.commands:
            # What is fed to xargs is the last of the words of what it starts.
            given = tuple(fed.split()) if name.rpartition("/")[2] == "xargs" and fed else ()
            self._run((*command[:-1], *given) if given else command, fed)
        for text, parameters in inner.texts:
            self.text(text, parameters)
        if fed and not inner.texts and runs_input(words):
            self.found += [(name, FETCHED)] if fed.strip() == FETCHED else []
            self.text(fed if name.rpartition("/")[2] in SHELLS else "", args)
        if name == "alias":
            self._aliases |= dict(word.split("=", 1) for word in args if "=" in word)
        elif name == "set" and "--" in args:
            self._values["@"] = args[args.index("--") + 1 :]
        elif name == "read" and fed and args:
            self._values[args[-1]] = (fed.strip(),)
        elif name in self._aliases:
            alias = self._aliases.pop(name)  # it means nothing within itself
            self.text(" ".join((alias, *map(shlex.quote, args))), ())
            self._aliases[name] = alias
        elif name in self._functions:
            self._call(name, args, fed)

    def _call(self, name: str, args: tuple[str, ...], fed: str) -> None:
        """Read the body of the function *name*, once for this call."""
        before, body = self._values.get("@"), self._functions.pop(name)
        self._values["@"] = args
        self._all([body], fed)
        self._restore(before)
        self._functions[name] = body

    def _restore(self, parameters: tuple[str, ...] | None) -> None:
        self._values.pop("@", None)
        if parameters is not None:
            self._values["@"] = parameters

    def _pipeline(self, node: Node, fed: str) -> None:
        for child in node.named_children:
            self._one(child, fed)
            fed = self._says(child, fed)

    def _redirected(self, node: Node, fed: str) -> None:
        body, redirects = node.child_by_field_name("body"), node.children_by_field_name("redirect")
        for redirect in redirects:
            fed = self._fed(redirect) or fed
        extra = tuple(word for redirect in redirects for word in self._extra(redirect))
        if body is not None:
            self._all([body], fed)
            if extra and body.type == "command":
                self._run((*self._words(body), *extra), fed)
        said = self._says(body, fed) if body is not None else ""
        for redirect in redirects:
            self._redirect(redirect)
            for child in redirect.named_children:
                self._all([child], said if child.type == "pipeline" else "")

    def _words(self, command: Node) -> tuple[str, ...]:
        named = (c for c in command.children if c.is_named and not c.type.endswith(("_redirect", "_assignment")))
        return tuple(word for child in named for word in expand_fields(child, self._values))

    def _extra(self, redirect: Node) -> list[str]:
        """Words that the grammar counts to a redirection, and the shell to the command."""
        after = redirect.children_by_field_name("destination")[1:]
        return [word for node in after for word in expand_fields(node, self._values)]

    def _redirect(self, node: Node) -> None:
        if node.type == "file_redirect" and any(">" in child.type for child in node.children):
            for target in node.children_by_field_name("destination")[:1]:
                self.found += [(">", word) for word in expand_fields(target, self._values)]
        if node.type == "file_redirect":
            self._all(node.named_children, "")

    def _fed(self, redirect: Node) -> str:
        """Return what *redirect* puts on the standard input, or empty."""
        wanted = {"heredoc_redirect": ("heredoc_body",), "file_redirect": ("process_substitution",)}
        for child in redirect.named_children:
            if redirect.type == "herestring_redirect" or child.type in wanted.get(redirect.type, ()):
                return expand_text(child, self._values)
        return ""

    def _says(self, node: Node, fed: str) -> str:
        """Return what the command at *node* prints, as far as its words tell; empty: they do not."""
        if node.type == "redirected_statement" and (body := node.child_by_field_name("body")) is not None:
            return self._says(body, fed)
        if node.type != "command":
            return FETCHED if is_download(node, self._values) else ""
        for child in node.named_children:
            fed = self._fed(child) or fed
        words = self._words(node)
        onward = FETCHED in fed or words in (("cat",), ("cat", "-")) or words[:1] == ("tee",)
        return predict_output(words) or (fed if onward else "")

    def _assign(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name":
            return
        if value is not None and value.type == "array":
            elements = tuple(word for child in value.named_children for word in expand_fields(child, self._values))
        else:
            elements = (expand_text(value, self._values) if value is not None else "",)
        self._values[expand_text(name, {})] = elements

    def _loop(self, node: Node) -> None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        values = [word for value in node.children_by_field_name("value") for word in expand_fields(value, self._values)]
        self._all((child for child in node.named_children if child != body), "")
        for value in values[:20] or [HOLE]:
            if variable is not None:
                self._values[expand_text(variable, {})] = (value,)
            if body is not None:
                self._all([body], "")


def main() -> int:
    """Print why the command line on standard input must not be run, and nothing if it may; 0."""
    ruling = check_command(sys.stdin.buffer.read().decode("utf-8", "replace"))
    sys.stdout.write(f"{ruling.reason}; {FOR_A_PERSON}" if ruling.hit else ruling.reason)
    return 0


if __name__ == "__main__":
    sys.exit(main())
