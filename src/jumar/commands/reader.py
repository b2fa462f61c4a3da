"""Reads a shell line without running it: the words of every simple command in it.

A grammar (tree-sitter's for bash) finds the commands, `expansion` what their words become.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jumar.commands.downloads import FETCHED, SHELLS, runs_input
from jumar.commands.expansion import expand_fields, expand_text, is_download, predict_output
from jumar.commands.git_and_files import HOLE
from jumar.commands.shell_state import ShellState
from jumar.commands.unknown_programs import list_named_commands
from jumar.commands.unparsed import list_unparsed
from jumar.commands.wrappers import find_started

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 60
"""Commands within commands, and texts within texts."""

MOST = 20_000
"""Parts of one line that are looked at."""

MOST_CHARACTERS = 4_000_000
"""Of all its commands and texts together."""

ASSIGNS = frozenset({"export", "declare", "local", "readonly", "typeset"})


_SUBSHELLS = frozenset({"command_substitution", "process_substitution", "subshell", "function_definition"})
"""Nodes in which nothing is set for what comes after them (the body of a function runs where it is called)."""


class Unreadable(Exception):  # noqa: N818  an answer, not an error
    """Raised for a line that is nested too deep, or too long, to be read."""


def list_commands(line: str) -> list[tuple[str, ...]]:
    """Return the words of every simple command in *line*, those that other commands start among them.

    A redirection to a file is `(">", path)`.

    Raises:
        Unreadable: if it cannot be told, in one sentence.
    """
    reader = _Reader()
    try:
        reader.read_text(line, ())
    except RecursionError:
        raise Unreadable("the command is nested too deep to be read: put it plainly, or in parts") from None
    return reader.found


class _Reader:
    """One pass over a line and the texts in it; records the assignments made so far.

    One method visits the nodes of a tree, each with every node below it. A kind of node says what its parts read on
    their standard input (`_begin`) and what comes of it (`_end`), and cannot leave a part out.
    """

    def __init__(self) -> None:
        from tree_sitter import Language, Parser  # noqa: PLC0415  a run without commands loads no grammar
        from tree_sitter_bash import language  # noqa: PLC0415  as above

        self.found: list[tuple[str, ...]] = []
        self._parser = Parser(Language(language()))
        self._shell = ShellState()
        self._depth = self._looked = 0
        self._room = MOST_CHARACTERS

    def read_text(self, line: str, parameters: tuple[str, ...]) -> None:
        """Read *line* as a shell given *parameters* would."""
        source = line.replace("\\\r\n", "").replace("\\\n", "").encode("utf-8", "replace")
        self._room -= len(source)
        tree = self._parser.parse(source)
        before = self._shell.values.get("@")
        if parameters:
            self._shell.values["@"] = parameters
        self._read_node(tree.root_node, "")
        if parameters:
            self._restore(before)

    def _read_node(self, node: Node, fed: str) -> None:
        """Read *node*, whose standard input is *fed* as far as that is known, and every node below it."""
        self._go_down()
        outer = self._shell
        if node.type in _SUBSHELLS:
            self._shell = outer.copy()
        for child, given in zip(node.named_children, self._begin(node, fed), strict=True):
            self._read_node(child, given)
        for text in list_unparsed(node):
            self.read_text(text, ())
        self._shell = outer
        self._end(node, fed)
        self._depth -= 1

    def _go_down(self) -> None:
        self._looked += 1
        self._depth += 1
        if self._depth > DEEPEST or self._looked > MOST:
            raise Unreadable("the command is too long or nested too deep to be read: put it plainly, or in parts")

    def _begin(self, node: Node, fed: str) -> list[str]:
        """Note what *node* does before its parts run; return the standard input of each of them, in order."""
        children = node.named_children
        match node.type:
            case "pipeline":
                return self._feed_onward(children, fed)
            case "redirected_statement":
                body, given = node.child_by_field_name("body"), self._get_fed(node, fed)
                said = self._predict_output(body, given) if body is not None else ""
                return [given if child == body else said for child in children]
            case "heredoc_redirect":
                return [fed if child.type == "pipeline" else "" for child in children]
            case "file_redirect":
                self._read_redirect(node)
            case "variable_assignment":
                self._read_assignment(node)
            case "for_statement":
                self._bind(node, self._list_loop_values(node)[0])
            case kind if kind not in ("herestring_redirect", "function_definition") and not _is_command(node):
                return [fed] * len(children)
        return [""] * len(children)

    def _end(self, node: Node, fed: str) -> None:
        """Read what comes of *node* when its parts have been read: its words, the other turns of a loop."""
        body = node.child_by_field_name("body")
        if _is_command(node):
            self._read_words(self._expand_command(node), self._get_fed(node, fed))
        elif body is None:
            return
        elif node.type == "redirected_statement" and body.type == "command":
            if extra := [word for redirect in _list_redirects(node) for word in self._expand_extra(redirect)]:
                self._read_words((*self._expand_words(body), *extra), self._get_fed(node, fed))
        elif node.type == "function_definition" and (name := node.child_by_field_name("name")) is not None:
            self._shell.functions[expand_text(name, {})] = body
        elif node.type == "for_statement":
            for value in self._list_loop_values(node)[1:]:
                self._bind(node, value)
                self._read_node(body, "")

    def _expand_command(self, node: Node) -> tuple[str, ...]:
        words: list[str] = []
        for child in node.children:
            if child.type in ("file_redirect", "herestring_redirect"):
                words += self._expand_extra(child)
            elif child.type != "variable_assignment" and (child.is_named or child.type in ASSIGNS):
                words += expand_fields(child, self._shell.values)
        return tuple(words)

    def _get_fed(self, node: Node, fed: str) -> str:
        """Return the standard input of the command or statement *node*, which is *fed* but for its redirections."""
        for redirect in _list_redirects(node):
            fed = self._get_input(redirect) or fed
        return fed

    def _feed_onward(self, children: Iterable[Node], fed: str) -> list[str]:
        """Return the standard input of each of a pipeline's *children*."""
        given = []
        for child in children:
            given.append(fed)
            fed = self._predict_output(child, fed)
        return given

    def _read_words(self, words: tuple[str, ...], fed: str) -> None:
        """Record the command *words*, and read the commands that it starts."""
        self._go_down()
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
            self._shell.aliases |= dict(word.split("=", 1) for word in args if "=" in word)
        elif name == "set" and "--" in args:
            self._shell.values["@"] = args[args.index("--") + 1 :]
        elif name == "read" and fed and args:
            self._shell.values[args[-1]] = (fed.strip(),)
        elif name in self._shell.aliases:
            alias = self._shell.aliases.pop(name)  # it means nothing within itself
            self.read_text(" ".join((alias, *map(shlex.quote, args))), ())
            self._shell.aliases[name] = alias
        elif name in self._shell.functions:
            self._read_call(name, args, fed)
        else:
            for command in list_named_commands(words):
                self._read_words(command, "")

    def _read_call(self, name: str, args: tuple[str, ...], fed: str) -> None:
        """Read the body of the function *name*, once for this call."""
        before, body = self._shell.values.get("@"), self._shell.functions.pop(name)
        self._shell.values["@"] = args
        self._read_node(body, fed)
        self._restore(before)
        self._shell.functions[name] = body

    def _restore(self, parameters: tuple[str, ...] | None) -> None:
        self._shell.values.pop("@", None)
        if parameters is not None:
            self._shell.values["@"] = parameters

    def _expand_words(self, command: Node) -> tuple[str, ...]:
        named = (c for c in command.children if c.is_named and not c.type.endswith(("_redirect", "_assignment")))
        return tuple(word for child in named for word in expand_fields(child, self._shell.values))

    def _expand_extra(self, redirect: Node) -> list[str]:
        """Return the words that the grammar counts to a redirection, and the shell to the command."""
        after = redirect.children_by_field_name("destination")[1:]
        return [word for node in after for word in expand_fields(node, self._shell.values)]

    def _read_redirect(self, node: Node) -> None:
        if any(">" in child.type for child in node.children):
            for target in node.children_by_field_name("destination")[:1]:
                self.found += [(">", word) for word in expand_fields(target, self._shell.values)]

    def _get_input(self, redirect: Node) -> str:
        """Return the text that *redirect* puts on the standard input, or empty."""
        wanted = {"heredoc_redirect": ("heredoc_body",), "file_redirect": ("process_substitution",)}
        for child in redirect.named_children:
            if redirect.type == "herestring_redirect" or child.type in wanted.get(redirect.type, ()):
                return expand_text(child, self._shell.values)
        return ""

    def _predict_output(self, node: Node, fed: str) -> str:
        """Return the output of the command at *node*, if its words determine it; else empty."""
        if node.type == "redirected_statement" and (body := node.child_by_field_name("body")) is not None:
            return self._predict_output(body, fed)
        if node.type != "command":
            return FETCHED if is_download(node, self._shell.values) else ""
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
            elements = tuple(
                word for child in value.named_children for word in expand_fields(child, self._shell.values)
            )
        else:
            elements = (expand_text(value, self._shell.values) if value is not None else "",)
        self._shell.values[expand_text(name, {})] = elements

    def _list_loop_values(self, node: Node) -> list[str]:
        """Return the first values that the variable of the loop *node* has, one after the other."""
        given = node.children_by_field_name("value")
        return [word for value in given for word in expand_fields(value, self._shell.values)][:20] or [HOLE]

    def _bind(self, loop: Node, value: str) -> None:
        if (variable := loop.child_by_field_name("variable")) is not None:
            self._shell.values[expand_text(variable, {})] = (value,)


def _is_command(node: Node) -> bool:
    """Check whether the parts of *node* are the words of a command."""
    if node.type == "ERROR":
        return any(child.type == "command_name" for child in node.named_children)
    return node.type in ("command", "declaration_command", "unset_command")


def _list_redirects(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type.endswith("_redirect")]
