"""The settings of a run, one row each: key of `[run]`, flag, values, default, and the rule by which two values compare.

The command line, the files, `jumar.Options`, `jumar doctor` and the order of precedence read this table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from jumar.core.gate.grades import WANTED
from jumar.core.prompts.suggestion import build_suggestion
from jumar.core.run.strategy import DRIVER, PIPELINE, REPAIR
from jumar.core.state.ratchet import Ratchet, Ties
from jumar.core.state.run_state import EXTERNAL
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput
from jumar.models.wire.providers import PROVIDERS
from jumar.plugins import Kind, list_names
from jumar.sandbox.request import AUTO

Value = str | int | float

OFFLINE = ("script", "replay")
"""Models that answer from a file; only a person names one."""

MOST_CONFIRMATIONS = 100

LARGEST = 2**53
"""Beyond it a float skips whole numbers, and JSON readers part ways."""

LONGEST_SECONDS = 1_000_000
"""Eleven days: what is longer is a slip, and some clocks cannot count it."""


class Stricter(StrEnum):
    """Rule by which two values of a setting compare.

    A file that came with a task may only make a person's value stricter.
    """

    LATER = "later"
    """The value that stands later in `Setting.values` is stricter."""
    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"
    """The values are preferences: what a person set stays."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: a field of `jumar.Options`, a flag of `jumar run`, and a key of `[run]`."""

    name: str
    """Of the field and of the key."""
    flag: str
    help: str
    """A line for `--help`."""
    kind: type[Value] = str
    values: tuple[str, ...] = ()
    """The known values, from the loosest to the strictest where that is the rule; empty: any."""
    least: float = 0
    most: float = LARGEST
    stricter: Stricter = Stricter.NEITHER
    instead: Mapping[str, str] = {}
    """Values that one might expect here -> what to do to have them."""
    plugins: Kind | None = None
    """Extensions whose names are values too."""
    barred: tuple[str, ...] = ()
    """Values that a file which came with a task may not ask for."""

    @property
    def variable(self) -> str:
        """The environment variable of `jumar run`."""
        return "JUMAR_RUN_" + self.flag.removeprefix("--").replace("-", "_").upper()

    def tightens(self, wish: Value, own: Value) -> bool:
        """Return whether *wish* is at least as strict as *own*."""
        match self.stricter:
            case Stricter.LATER:
                return self.values.index(str(wish)) >= self.values.index(str(own))
            case Stricter.LOWER:
                return float(wish) <= float(own)
            case Stricter.HIGHER:
                return float(wish) >= float(own)
            case _:
                return wish == own

    def check(self, value: Value, label: str) -> None:
        """Refuse a *value* that this setting cannot have; *label* is the person's spelling of the setting.

        Raises:
            BadInput: naming the setting, the value and what would do.
        """
        if self.name == "model":
            check_model(str(value), label)
        elif self.values and value not in self.values and not self._is_extension(str(value)):
            known = (*self.values, *(set(list_names(self.plugins)) - set(self.values) if self.plugins else ()))
            hint = self.instead.get(str(value)) or build_suggestion(str(value), known)
            raise BadInput(f"unknown value {value!r} of {label}; {hint}")
        elif isinstance(value, int) and value > LARGEST:  # too long to be shown
            raise BadInput(f"{label} must be at most {self.most:.0f}")
        elif not isinstance(value, str) and not self.least <= value <= self.most:
            limit = f" and at most {self.most:.0f}" if self.most < LARGEST or value > self.most else ""
            limit = limit if math.isfinite(value) else " and finite"
            raise BadInput(f"{label} must be {self.least:g} or more{limit}, not {value}")

    def _is_extension(self, value: str) -> bool:
        return self.plugins is not None and value in list_names(self.plugins)


def check_model(model: str, label: str = "--model") -> None:
    """Refuse a *model* that is neither `repair` nor a file nor a provider's.

    Raises:
        BadInput: listing the forms.
    """
    kind, _, rest = model.partition(":")
    kinds = (*OFFLINE, *(p.name for p in PROVIDERS))
    if model == REPAIR or (kind in kinds and rest.strip()):
        return
    forms = (REPAIR, *(f"{k}:{'FILE' if k in OFFLINE else 'NAME'}" for k in kinds))
    by_kind = dict(zip((REPAIR, *kinds), forms, strict=True))
    near = build_suggestion(kind, by_kind).partition("? (")[0] if kind not in kinds else ""
    hint = f"{near}? (known are {', '.join(forms)})" if near.startswith("did") else f"known are {', '.join(forms)}"
    where = "" if label == "--model" else f" of {label}"
    raise BadInput(f"unknown model {model!r}{where}; {hint}")


def _build_cap(name: str, flag: str, about: str, kind: type[Value] = int, least: float = 1) -> Setting:
    return Setting(name=name, flag=flag, help=about, kind=kind, least=least, stricter=Stricter.LOWER)


ROWS = (
    Setting(
        name="agent", flag="--agent", values=(DRIVER, PIPELINE, REPAIR, EXTERNAL), plugins="agents", barred=(EXTERNAL,),
        help="driver (default: turn by turn, under the gate), pipeline (whole files), repair or external.",
    ),
    Setting(name="model", flag="--model", help="PROVIDER:NAME, repair (offline search), script:FILE or replay:FILE."),
    Setting(
        name="test_policy", flag="--test-policy", values=tuple(TestPolicy),
        help="on_write (default), on_final or never.",
    ),
    Setting(
        name="gate", flag="--gate", values=(Gate.OFF, Gate.REFACTOR, Gate.STRICT), stricter=Stricter.LATER,
        instead={Gate.CODEMOD: "codemod mode is for one edit: pass --gate strict --allow-codemod"},
        help="strict: no edit without a red test (the driver's default); refactor; off: the ratchet alone.",
    ),
    Setting(
        name="ratchet", flag="--ratchet", values=(Ratchet.COUNT, Ratchet.IDENTITY), stricter=Stricter.LATER,
        help="count (default) or identity: never lose a green test.",
    ),
    Setting(
        name="ties", flag="--ties", values=(Ties.KEEP, Ties.REVERT), stricter=Stricter.LATER,
        help="keep (default) the newer tree at a tie, or revert it.",
    ),
    _build_cap("attempts", "--attempts", "Cap on verified candidates."),
    _build_cap("turns", "--turns", "Cap on replies of the model (driver: 40)."),
    _build_cap("test_runs", "--test-runs", "Cap on verifications."),
    _build_cap("usd", "--budget-usd", "Cap on money (a model that costs money: 10 where nobody set one).", float, 0),
    _build_cap("tokens", "--budget-tokens", "Cap on tokens.", int, 0),
    _build_cap("seconds", "--seconds", "Cap on the time of the whole run.", float, 0),
    Setting(
        name="confirm", flag="--confirm", kind=int, most=MOST_CONFIRMATIONS, stricter=Stricter.HIGHER,
        help="Fresh runs that must agree before a tree is green (default 3).",
    ),
    Setting(
        name="sandbox", flag="--sandbox", values=("S0", "S1", "S2", AUTO, "S3"), stricter=Stricter.LATER,
        help="auto (default): the strongest tier here; or S3, S2, S1, S0.",
    ),
    Setting(
        name="min_grade", flag="--min-grade", values=WANTED, stricter=Stricter.LATER,
        help="Weakest grade of a green: A, B, C, D, X (default), or reachable, the best that each test can have "
        "(default unattended and with held-out tests).",
    ),
)  # fmt: skip

SETTINGS: Mapping[str, Setting] = {row.name: row for row in ROWS}

CAPS = ("attempts", "turns", "test_runs", "usd", "tokens", "seconds")
"""Settings that `[budget]` may hold, too."""

TYPED_ONLY = (
    "agent_command", "agent_env", "allow_codemod", "allow_refactor", "allow_unmetered", "base_url", "codemod_renames",
    "ledger", "ledger_usd", "model_may_run_commands", "model_may_run_tests", "price", "profile", "record",
    "text_actions",
)  # fmt: skip
"""Options that no file may hold: a foreign file must not start a program, open the run or send a key elsewhere."""
