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
        reader.read_text(line, ())
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

    def read_text(self, line: str, parameters: tuple[str, ...]) -> None:
        """Read *line* as a shell given *parameters* would."""
        source = line.replace("\\\r\n", "").replace("\\\n", "").encode("utf-8", "replace")
        self._room -= len(source)
        tree = self._parser.parse(source)
        before = self._values.get("@")
        if parameters:
            self._values["@"] = parameters
        self._read_all([tree.root_node], "")
        if parameters:
            self._restore(before)

    def _read_all(self, nodes: Iterable[Node], fed: str) -> None:
        self._depth += 1
        for node in nodes:
            self._looked += 1
            if self._depth > DEEPEST or self._looked > MOST:
                raise Unreadable("the command is too long or nested too deep to be read: put it plainly, or in parts")
            self._read_node(node, fed)
        self._depth -= 1

    def _read_node(self, node: Node, fed: str) -> None:
        """Read *node*, whose standard input is *fed* as far as that is known."""
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self._read_command(node, fed)
            case "ERROR" if any(c.type == "command_name" for c in node.named_children):
                self._read_command(node, fed)
            case "pipeline":
                self._read_pipeline(node, fed)
            case "redirected_statement":
                self._read_redirected(node, fed)
            case "variable_assignment":
                self._read_assignment(node)
                self._read_all(node.named_children, "")
            case "function_definition":
                name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
                if name is not None and body is not None:
                    self._functions[expand_text(name, {})] = body
                self._read_all(node.named_children, "")
            case "for_statement":
                self._read_loop(node)
            case "file_redirect":
                self._read_redirect(node)
            case _:
                self._read_all(node.named_children, fed)

    def _read_command(self, node: Node, fed: str) -> None:
        words: list[str] = []
        for child in node.children:
            if child.type == "variable_assignment":
                self._read_assignment(child)
            elif child.type in ("file_redirect", "herestring_redirect"):
                words += self._expand_extra(child)
                fed = self._get_input(child) or fed
            elif child.is_named or child.type in ASSIGNS:
                words += expand_fields(child, self._values)
        self._read_all((c for c in node.named_children if c.type != "variable_assignment"), "")
        self._read_words(tuple(words), fed)

    def _read_words(self, words: tuple[str, ...], fed: str) -> None:
        """Record the command *words*, and read the commands that it starts."""
        self._looked += 1
        self._depth += 1
        if self._depth > DEEPEST or self._looked > MOST:
            raise Unreadable("the command starts too many others to be read: put it plainly, or in parts")
        self._room -= sum(map(len, words))
        if self._room < 0:
            raise Unreadable("the command says too much to be read: put it plainly, or in parts")
        if words:
            self.found.append(words)
            self._read_started(words, fed)
        self._depth -= 1

    def _read_started(self, words: tuple[str, ...], fed: str) -> None:
        name, args = words[0], words[1:]
        inner = find_started(words)
        for command in inner.commands:
            # What is fed to xargs is the last of the words of what it starts.
            given = tuple(fed.split()) if name.rpartition("/")[2] == "xargs" and fed else ()
            self._read_words((*command[:-1], *given) if given else command, fed)
        for text, parameters in inner.texts:
            self.read_text(text, parameters)
        if fed and not inner.texts and runs_input(words):
            self.found += [(name, FETCHED)] if fed.strip() == FETCHED else []
            self.read_text(fed if name.rpartition("/")[2] in SHELLS else "", args)
        if name == "alias":
            self._aliases |= dict(word.split("=", 1) for word in args if "=" in word)
        elif name == "set" and "--" in args:
            self._values["@"] = args[args.index("--") + 1 :]
        elif name == "read" and fed and args:
            self._values[args[-1]] = (fed.strip(),)
        elif name in self._aliases:
            alias = self._aliases.pop(name)  # it means nothing within itself
            self.read_text(" ".join((alias, *map(shlex.quote, args))), ())
            self._aliases[name] = alias
        elif name in self._functions:
            self._read_call(name, args, fed)

    def _read_call(self, name: str, args: tuple[str, ...], fed: str) -> None:
        """Read the body of the function *name*, once for this call."""
        before, body = self._values.get("@"), self._functions.pop(name)
        self._values["@"] = args
        self._read_all([body], fed)
        self._restore(before)
        self._functions[name] = body

    def _restore(self, parameters: tuple[str, ...] | None) -> None:
        self._values.pop("@", None)
        if parameters is not None:
            self._values["@"] = parameters

    def _read_pipeline(self, node: Node, fed: str) -> None:
        for child in node.named_children:
            self._read_node(child, fed)
            fed = self._predict_output(child, fed)

    def _read_redirected(self, node: Node, fed: str) -> None:
        body, redirects = node.child_by_field_name("body"), node.children_by_field_name("redirect")
        for redirect in redirects:
            fed = self._get_input(redirect) or fed
        extra = tuple(word for redirect in redirects for word in self._expand_extra(redirect))
        if body is not None:
            self._read_all([body], fed)
            if extra and body.type == "command":
                self._read_words((*self._expand_words(body), *extra), fed)
        said = self._predict_output(body, fed) if body is not None else ""
        for redirect in redirects:
            self._read_redirect(redirect)
            for child in redirect.named_children:
                self._read_all([child], said if child.type == "pipeline" else "")

    def _expand_words(self, command: Node) -> tuple[str, ...]:
        named = (c for c in command.children if c.is_named and not c.type.endswith(("_redirect", "_assignment")))
        return tuple(word for child in named for word in expand_fields(child, self._values))

    def _expand_extra(self, redirect: Node) -> list[str]:
        """Return the words that the grammar counts to a redirection, and the shell to the command."""
        after = redirect.children_by_field_name("destination")[1:]
        return [word for node in after for word in expand_fields(node, self._values)]

    def _read_redirect(self, node: Node) -> None:
        if node.type == "file_redirect" and any(">" in child.type for child in node.children):
            for target in node.children_by_field_name("destination")[:1]:
                self.found += [(">", word) for word in expand_fields(target, self._values)]
        if node.type == "file_redirect":
            self._read_all(node.named_children, "")

    def _get_input(self, redirect: Node) -> str:
        """Return the text that *redirect* puts on the standard input, or empty."""
        wanted = {"heredoc_redirect": ("heredoc_body",), "file_redirect": ("process_substitution",)}
        for child in redirect.named_children:
            if redirect.type == "herestring_redirect" or child.type in wanted.get(redirect.type, ()):
                return expand_text(child, self._values)
        return ""

    def _predict_output(self, node: Node, fed: str) -> str:
        """Return the output of the command at *node*, if its words determine it; else empty."""
        if node.type == "redirected_statement" and (body := node.child_by_field_name("body")) is not None:
            return self._predict_output(body, fed)
        if node.type != "command":
            return FETCHED if is_download(node, self._values) else ""
        for child in node.named_children:
            fed = self._get_input(child) or fed
        words = self._expand_words(node)
        onward = FETCHED in fed or words in (("cat",), ("cat", "-")) or words[:1] == ("tee",)
        return predict_output(words) or (fed if onward else "")

    def _read_assignment(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name":
            return
        if value is not None and value.type == "array":
            elements = tuple(word for child in value.named_children for word in expand_fields(child, self._values))
        else:
            elements = (expand_text(value, self._values) if value is not None else "",)
        self._values[expand_text(name, {})] = elements

    def _read_loop(self, node: Node) -> None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        values = [word for value in node.children_by_field_name("value") for word in expand_fields(value, self._values)]
        self._read_all((child for child in node.named_children if child != body), "")
        for value in values[:20] or [HOLE]:
            if variable is not None:
                self._values[expand_text(variable, {})] = (value,)
            if body is not None:
                self._read_all([body], "")


def main() -> int:
    """Print why the command line on standard input must not be run, and nothing if it may; return 0."""
    ruling = check_command(sys.stdin.buffer.read().decode("utf-8", "replace"))
    sys.stdout.write(f"{ruling.reason}; {FOR_A_PERSON}" if ruling.hit else ruling.reason)
    return 0


if __name__ == "__main__":
    sys.exit(main())
