"""Options of a run as data: what the command line, the environment or a program passed. Resolved in `resolve`."""

from __future__ import annotations

import msgspec


class OptionValues(msgspec.Struct, frozen=True, kw_only=True):
    """Options as they were passed, unchecked; None or empty means not chosen."""

    instruction: str | None = None
    tests: tuple[str, ...] = ()
    test_command: str | None = None
    """Command that runs all tests: exit status 0 is a pass. It replaces the task's own runner."""
    timeout_seconds: float | None = None
    test_timeout_seconds: float | None = None
    attempts: int | None = None
    usd: float | None = None
    seconds: float | None = None
    tokens: int | None = None
    seed: int | None = None
    confirm: int | None = None
    """Fresh runs that must agree before a tree is called green; 0: the first one is believed."""
    sandbox: str | None = None
    min_grade: str | None = None
    """A tier, or `auto`: the strongest that this machine has."""
    probe: bool = False
    """True: mutate the lines that a green changed, to see whether the tests notice."""
    include: tuple[str, ...] = ()
    """Globs of files that git ignores and that belong to the tree all the same."""
    python: str | None = None
    ratchet: str | None = None
    ties: str | None = None
    gate: str | None = None
    verify: str | None = None
    """A command that must stay green in refactor mode; else `[gate] verify`."""
    test_policy: str | None = None
    agent: str | None = None
    model: str | None = None
    base_url: str | None = None
    """Of a server that is compatible with the model's provider; never read from a file that comes with a task."""
    price: str | None = None
    """`INPUT,OUTPUT` or `INPUT,OUTPUT,CACHED` in usd per million tokens, or `free`."""
    temperature: float | None = None
    """Of every call; else that of its route, else the provider's default."""
    turns: int | None = None
    test_runs: int | None = None
    profile: str | None = None
    ledger: str | None = None
    ledger_usd: float | None = None
    record: str | None = None
    text_actions: bool = False
    model_may_run_tests: bool = False
    model_may_run_commands: bool = False
    allow_refactor: bool = False
    allow_codemod: bool = False
    codemod_renames: tuple[str, ...] = ()
    """Globs of the test files in which a codemod may rename identifiers."""
    agent_command: str | None = None
    """Of an external agent: words, as a shell splits them; no shell runs them. Never read from a file."""
    agent_env: tuple[str, ...] = ()
    """Names of variables that it is given as they are."""
    turn_seconds: float | None = None
    """For one of its turns."""
    allow_unmetered: bool = False
    """True: it may bypass the proxy. Its spending is then not known."""
