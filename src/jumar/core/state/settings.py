"""Settings of a run. They are in the journal's first line, so that a run directory is enough to resume."""

from __future__ import annotations

import msgspec

from jumar.core.state.external_agent import ExternalAgentSettings
from jumar.core.state.ratchet import Rule


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Test suite settings of a task: everything a runner adapter may depend on."""

    runner: str = "pytest"
    python: str = ""
    """The interpreter that runs the tests; empty is jumar's own."""
    select: tuple[str, ...] = ()
    """Files, folders or ids given to the runner; empty is the runner's own discovery."""
    command: str = ""
    """For the runner `junit`: what runs the tests and writes a report, split as a shell splits words, run without one.
    `{ids}` stands for the names of the asked tests, one word each, and `{report}` for the path of the report. For the
    runner `command`: the one test, whose outcome is its exit status."""
    report: str = ""
    """Path of the report that the command writes, relative to the tree."""
    command_for: str = ""
    """Command that runs one test, whose id is put for `{test_id}`; its exit status decides. It overrides the runner's
    way."""
    env: dict[str, str] = {}
    timeout_seconds: float = 120.0
    """For one whole verification."""
    test_timeout_seconds: float = 30.0
    """For one test."""
    confirm: int = 0
    """Fresh runs that must agree before a tree is called green; 0: the first one is believed, at grade D."""

    @property
    def single(self) -> bool:
        """Return whether one test stands for the whole suite: no result shows which test of which file failed."""
        return self.runner == "command"


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Price of a model in usd per million tokens. `cached` absent means that cached input costs the full price."""

    input: float
    output: float
    cached: float | None = None


class Route(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Model, price and server for the calls of one tier."""

    model: str
    """`PROVIDER:NAME`, as `--model` takes it."""
    max_output_tokens: int
    price: Price | None = None
    """Price that was given explicitly; None is the table's."""
    foreign_price: bool = False
    """True if the price is from a file that came with the task: then it counts only where it is higher than the
    table's."""
    base_url: str = ""
    """Of a compatible server; empty is the provider's own. It never holds a key."""
    temperature: float | None = None
    """Temperature of the sampling; None is the provider's default."""


class Context(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Context in the write and review prompts beside the code: (name, text) pairs; plain texts have an empty name."""

    reference: tuple[tuple[str, str], ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    signatures: tuple[tuple[str, str], ...] = ()
    review_rules: tuple[tuple[str, str], ...] = ()


class Switches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Permissions of an agent, beyond the policy and the gate."""

    review: bool = True
    """True if the pipeline has its first draft reviewed."""
    text_actions: bool = False
    """True if the driver uses the plain-text action protocol, for models without tools."""
    model_may_run_tests: bool = False
    model_may_run_commands: bool = False
    allow_refactor: bool = False
    """True if the model may enter refactor mode."""
    allow_codemod: bool = False
    """True if the model may enter codemod mode."""
    codemod_renames: tuple[str, ...] = ()
    """Globs of the test files in which a codemod may rename an identifier; without them it touches no test."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings needed to resume a run, beyond the named fields of `run_start`."""

    instruction: str = ""
    editable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    rule: Rule = Rule()
    suite: Suite = Suite()
    seed: int = 0
    origin: str = ""
    """The folder the task was copied from; only `--apply` writes there."""
    routes: dict[str, Route] = {}
    """Tier -> route, for agents that ask a provider's model."""
    context: Context = Context()
    switches: Switches = Switches()
    outside: ExternalAgentSettings = ExternalAgentSettings()
    """Of an external agent: its command."""
    in_place: bool = False
    """True if the workspace is that folder itself."""
    skip: tuple[str, ...] = ()
    """Lines with gitignore semantics: what git ignores there is a person's own, and in no tree."""
    tracked: tuple[str, ...] = ()
    """Files that git knows there, whatever the lines say."""
    include: tuple[str, ...] = ()
    """Globs of what belongs to the tree there all the same."""
    tree_bytes: int = 0
    """Size of the files of the first tree in bytes; 0: not known."""
    verify: str = ""
    """`[gate] verify`: the command that must be green before refactor mode is left; empty is all expected ids."""
    verify_seconds: float = 120.0
    judging: tuple[str, ...] = ()
    """Files that the commands of the task run, and that those run in turn: they judge."""
    sandbox: str = "S0"
    """The tier that the processes of this run are confined by."""
    min_grade: str = ""
    """Weakest grade of a green (`jumar.core.gate.grades.WANTED`); empty: any."""
    hidden: str = ""
    """The tree of the held-out tests; empty: there are none."""
    reserved: tuple[str, ...] = ()
    """Paths of the held-out tests and of the reference solution: no sandbox shows them."""
    held_out: tuple[str, ...] = ()
    """Their ids."""
    flaky: tuple[str, ...] = ()
    """Ids of the task whose outcome changed on its untouched tree: they judge nothing."""
    needed: tuple[str, ...] = ()
    """Files that git ignores and that the red tests of the untouched tree name: they may be red for want of them."""
    ledger: str = ""
    """Path of the ledger this run draws on; empty is none."""
    notes: tuple[str, ...] = ()
    """One line each: settings that were asked for and are not in force, and caps that nobody set."""
