"""The command line: finds the command, and turns every failure into one sentence and its exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from jumar.cli.console.output import fail, get_exit_code
from jumar.cli.parameters.environment import explain_unknown_variable, find_variable
from jumar.core.prompts.suggestion import build_suggestion
from jumar.core.state.stop import EXIT_CODES, USAGE_EXIT, StopReason
from jumar.errors import JumarError
from jumar.workspace.files.disk_faults import MEND

COMMANDS = {
    "demo": ("jumar.cli.demo:demo", "repair real bugs of third-party libraries, offline"),
    "run": ("jumar.cli.run:run", "work on a task until its tests pass or a cap is reached"),
    "batch": ("jumar.cli.batch:batch", "work on many tasks, several times each, unattended"),
    "resume": ("jumar.cli.run:resume", "go on with a run after a crash, an interrupt or a cap"),
    "score": ("jumar.cli.verdicts.score:score", "judge a tree by the task's own tests alone"),
    "rescore": ("jumar.cli.verdicts.rescore:rescore", "judge stored runs again: other tests, a newer judge"),
    "check": ("jumar.cli.verdicts.check:check", "check that tasks are red untouched, green when solved, and stable"),
    "runs": ("jumar.cli.archive.list_runs:runs", "list runs: how they ended, what they cost"),
    "report": ("jumar.cli.report:report", "show what runs and campaigns came to, as text and as one page"),
    "diff": ("jumar.cli.archive.diff:diff", "show what a run changed"),
    "apply": ("jumar.cli.archive.apply:apply", "write the best tree of a run onto the original"),
    "clean": ("jumar.cli.archive.clean:clean", "remove runs by age, size or reason to stop"),
    "import": ("jumar.cli.import_task:import_", "make a task from a real past bug (git, pypi) or a Harbor task"),
    "prefs": ("jumar.cli.prefs:prefs", "export preference pairs from rollouts"),
    "export": ("jumar.cli.export:export", "write runs for other tools (ATIF, SWE-bench, OpenTelemetry, JUnit)"),
    "corpus": ("jumar.cli.corpus:corpus", "export kept edits as (red, edit, green) records, and replay them"),
    "evolve": ("jumar.cli.challenges.evolve:evolve", "rank several agents on one challenge: tests, principles, scars"),
    "compare": ("jumar.cli.challenges.compare:compare", "compare two agents or campaigns, run by run"),
    "scars": ("jumar.cli.challenges.scars:scars", "find known faults in source files: a linter by syntax trees"),
    "log": ("jumar.cli.archive.log:log", "read the journal of a run (show, verify, stats)"),
    "mcp": ("jumar.mcp_server.command:mcp", "serve the gate to other agents as an MCP server"),
    "hook": ("jumar.hooks.install:hook", "install the gate as hooks of Claude Code"),
    "claim": ("jumar.hooks.claim_command:claim", "say which red test an edit is for, in the shell of a gated agent"),
    "escalate": ("jumar.hooks.escalate_command:escalate", "end the run of a gated agent: a test contradicts something"),
    "doctor": ("jumar.cli.doctor.command:doctor", "check what works here, and say how to mend what does not"),
}
"""Name -> where it lives, and its line of help. Each is imported only when it is called, so that help is quick."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Return the names, in the order in which a new user needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        """Return the command called *cmd_name*."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that *args* begin with; an unknown one is refused with the nearest known one."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"unknown command {args[0]!r}; {build_suggestion(args[0], COMMANDS)}")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            why = explain_unknown_variable(f"JUMAR_{str(name).upper()}_", [str(p.name).upper() for p in command.params])
            if why:
                ctx.fail(why)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        """Print the table of commands, without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    epilog="Example: jumar run . --model repair (work on this repository until its tests pass)",
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "JUMAR"},
)
@click.version_option(package_name="jumar", prog_name="jumar")
def jumar() -> None:
    """Tests decide when a coding agent may edit, what of its work is kept, and when it stops."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with the documented code."""
    open_streams()
    gc.disable()  # while modules are loaded, which all stay; `attend` switches it on again
    raise SystemExit(call(sys.argv[1:] if argv is None else argv))


def open_streams() -> None:
    """Open the null device for each closed standard stream, as of daemons: else a file would get its number.

    Raises:
        OSError: if there is no null device.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is *fd*
            os.set_inheritable(opened, True)  # noqa: FBT003  it takes no keyword
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, "w" if fd else "r", encoding="utf-8", closefd=False))  # noqa: SIM115  it stays open


def call(argv: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    as_json = "--json" in argv
    try:
        code = jumar.main(list(argv), prog_name="jumar", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return USAGE_EXIT
    except click.ClickException as error:
        if isinstance(error, click.BadParameter) and error.ctx and error.param:
            error.param_hint = find_variable(error.ctx, str(error.param.name)) or error.param_hint
        said = error.format_message().replace(" is not a valid integer range", " is not a valid integer")
        return fail(said.replace(" is not a valid float range", " is not a valid number"), USAGE_EXIT, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return EXIT_CODES[StopReason.INTERRUPTED]
    except JumarError as error:
        return fail(str(error), get_exit_code(error), as_json=as_json)
    except OSError as error:
        mend = MEND.get(error.errno or 0, "")
        sentence = f"{error.strerror or error}: {error.filename or 'the operating system refused'}{mend}"
        return fail(sentence, EXIT_CODES[StopReason.INFRA], as_json=as_json)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
