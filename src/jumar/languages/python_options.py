"""Translates variables that an interpreter of Python reads into its options: an isolated one (`-I`) reads none."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping


def list_python_options(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options that say what the PYTHON variables of *env* say.

    `PYTHONHASHSEED` has no option, and a value that makes an interpreter refuse to start is left out.
    """
    given = {name: value for name, value in env.items() if value}
    options = [f"-W{one}" for one in given.get("PYTHONWARNINGS", "").split(",") if one]
    options += ["-Xdev"] if "PYTHONDEVMODE" in given else []
    options += ["-Xwarn_default_encoding"] if "PYTHONWARNDEFAULTENCODING" in given else []
    if given.get("PYTHONUTF8") in {"0", "1"}:
        options.append(f"-Xutf8={given['PYTHONUTF8']}")
    if _may_limit(digits := given.get("PYTHONINTMAXSTRDIGITS", "")):
        options.append(f"-Xint_max_str_digits={digits}")
    return (*options, *_list_optimisations(given.get("PYTHONOPTIMIZE", "0")))


def _list_optimisations(level: str) -> tuple[str, ...]:
    """Return an option for each level, of which there are two. Words mean the first."""
    number = int(level) if re.fullmatch("[0-9]{1,9}", level) else 1
    return ("-O",) * min(number, 2)


def _may_limit(digits: str) -> bool:
    """Return whether an interpreter takes *digits* for the length of a number."""
    number = int(digits) if re.fullmatch("[0-9]{1,9}", digits) else -1
    return number == 0 or number >= sys.int_info.str_digits_check_threshold
