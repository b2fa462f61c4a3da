"""Command of an external agent: words that no shell reads, and the variables that it gets."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.commands.wrappers import find_started
from jumar.core.state.external_agent import ExternalAgentSettings
from jumar.core.state.run_state import EXTERNAL
from jumar.errors import BadInput
from jumar.models.wire.providers import PROVIDERS

if TYPE_CHECKING:
    from jumar.task.option_values import OptionValues

PLACES = re.compile(r"\{(prompt|prompt_file|model)\}")

CODE_OPTIONS = {
    **dict.fromkeys(("python", "pypy"), ("-c",)),
    **dict.fromkeys(("node", "nodejs", "bun"), ("-e", "-p", "-pe", "--eval", "--print")),
    **dict.fromkeys(("perl", "ruby"), ("-e", "-E")),
}
"""Programs besides the shells that run a word as code, and the options that it follows."""

SHELLS = ("sh", "bash", "dash", "ksh", "zsh")

WORD_BYTES = 120_000
"""A longer word is no argument of a program on Linux."""

OWN = frozenset({
    "PATH", "HOME", "TMPDIR", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_KEY", "JUMAR_HOST", "JUMAR_ROOM", "NO_PROXY", "no_proxy", "GIT_CEILING_DIRECTORIES",
})  # fmt: skip
"""Variables that the agent is given by us, with values of ours."""


def read_agent_settings(options: OptionValues, agent: str, environ: Mapping[str, str]) -> ExternalAgentSettings:
    """Return the settings of the external agent in *options*, if *agent* is one.

    Raises:
        BadInput: if there is no command or no such program, or an option has no effect or cannot work.
    """
    refuse_idle(options, agent)
    if agent != EXTERNAL or options.agent_command is None:
        return ExternalAgentSettings()
    return ExternalAgentSettings(
        argv=split_command(options.agent_command, environ),
        turn_seconds=options.turn_seconds,
        metered=not options.allow_unmetered,
        variables=_list_passed(options, environ),
    )


def refuse_idle(options: OptionValues, agent: str) -> None:
    """Refuse options for an external agent with another *agent*, and options that it lacks or cannot have.

    Raises:
        BadInput: naming the first of them.
    """
    if agent == EXTERNAL and options.agent_command is None:
        raise BadInput("--agent external needs a command: --agent-command 'mini -t {prompt} -y'")
    if agent == EXTERNAL and options.record is not None:
        raise BadInput("--record keeps replies for agents of ours; the journal has what an external agent was answered")
    chosen = {
        "--agent-command": options.agent_command is not None,
        "--agent-env": bool(options.agent_env),
        "--turn-seconds": options.turn_seconds is not None,
        "--allow-unmetered": options.allow_unmetered,
    }
    if agent != EXTERNAL and (idle := [flag for flag, given in chosen.items() if given]):
        raise BadInput(f"{idle[0]} is for --agent {EXTERNAL}, and the agent is {agent}; leave it out")


def check_command(options: OptionValues) -> None:
    """Refuse a command that cannot be split into words, and variables that no external agent may get.

    Raises:
        BadInput: as it says.
    """
    if options.agent_command is not None:
        split(options.agent_command)
    keys = {key for provider in PROVIDERS for key in provider.keys}
    for name in options.agent_env:
        if name in OWN:
            raise BadInput(f"--agent-env {name}: the agent is given a {name} of its own; leave it out")
        if name in keys and not options.allow_unmetered:
            raise BadInput(f"--agent-env {name}: a key would go around the budget; let the agent use the proxy")


def _list_passed(options: OptionValues, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that are passed to the agent unchanged."""
    for name in options.agent_env:
        if name not in environ:
            raise BadInput(f"--agent-env {name}: it is not set; set it, or leave it out")
    return tuple(dict.fromkeys(options.agent_env))


def split_command(command: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words of *command*; a program given by its path is named by its absolute one.

    Raises:
        BadInput: if there are none, a quote is open, or there is no such program on the PATH of *environ*.
    """
    found = split(command)
    program = shutil.which(found[0], path=environ.get("PATH"))
    if program is None:
        raise BadInput(f"--agent-command: there is no program {found[0]!r}; install it, or give its path")
    return (str(Path(program).absolute()) if os.sep in found[0] else found[0], *found[1:])


def refuse_relative_script(argv: tuple[str, ...], root: Path) -> None:
    """Refuse a script that an interpreter in *argv* would not find: it lies here, and not in the task at *root*.

    Raises:
        BadInput: naming it, and its absolute path.
    """
    interpreters = {*SHELLS, *CODE_OPTIONS}
    at = next((n for n, word in enumerate(argv) if Path(word).name.rstrip(".0123456789") in interpreters), None)
    script = argv[at + 1] if at is not None and at + 1 < len(argv) else ""
    if not script or Path(script).is_absolute() or not Path(script).is_file() or (root / script).exists():
        return
    raise BadInput(
        f"--agent-command: the agent starts in a copy of {root}, where there is no {script}; give its absolute path, "
        f"{Path(script).absolute()}"
    )


def split(command: str) -> list[str]:
    """Return the words of *command*, as a shell splits them.

    Raises:
        BadInput: if there are none, a quote is open, or one of them makes code of the prompt.
    """
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise BadInput(f"--agent-command {command!r} cannot be read: {str(error).lower()}") from None
    if not found:
        raise BadInput("--agent-command is empty; give one such as 'mini -t {prompt} -y'")
    if (program := _find_code_with_prompt(tuple(found))) is not None:
        raise BadInput(
            f"--agent-command: {program} would run the words of {{prompt}} as code; give it {{prompt_file}}, "
            "or leave both out, for its standard input"
        )
    return found


def _find_code_with_prompt(words: tuple[str, ...]) -> str | None:
    """Return the program in *words* that would take the prompt for code, a shell's `-c` most of all; None: none would.

    What is filled in is data: a model, and whoever wrote the task, choose what stands in it.
    """
    if not words:
        return None
    program = Path(words[0]).name
    code = CODE_OPTIONS.get(program.rstrip(".0123456789"), ())
    options = takewhile(lambda pair: pair[0][:1] == "-", pairwise(words[1:]))  # what follows a script is the script's
    started = find_started(words)
    given = (text for text, _ in started.texts)
    asked = (after for option, after in options if option in code)
    if any(has_placeholder((text,), "prompt") for text in (*given, *asked)):
        return program
    return next((found for inner in started.commands if (found := _find_code_with_prompt(inner))), None)


def has_placeholder(argv: tuple[str, ...], place: str) -> bool:
    """Return whether *argv* has the placeholder *place*."""
    return any(match[1] == place for word in argv for match in PLACES.finditer(word))


def fill_placeholders(argv: tuple[str, ...], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return *argv* with its placeholders filled from *texts*, which are not expanded again.

    Raises:
        BadInput: if a word gets longer than a program can be given.
    """
    done = tuple(PLACES.sub(lambda match: texts[match[1]].replace("\0", ""), word) for word in argv)
    if any(len(word.encode("utf-8", "replace")) > WORD_BYTES for word in done):
        raise BadInput(
            f"the prompt has more than {WORD_BYTES:,} bytes, which no program can be given as a word; "
            "put {prompt_file} into --agent-command, or neither, for its standard input"
        )
    return done
