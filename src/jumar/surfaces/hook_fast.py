"""Starts the hook in a few milliseconds: run by path with `-I -S`, standard library only, its rule compiled once.

Called as `python -I -S hook_fast.py EVENT [SECONDS]`: a host's event is on standard input, the answer on the output.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Answer one event of a host; whatever goes wrong before there is a rule blocks (exit status 2)."""
    try:
        from importlib.machinery import SourceFileLoader  # noqa: PLC0415  a fault here must block, too
        from types import ModuleType  # noqa: PLC0415  as above

        here = __file__.rpartition("/")[0] or "."
        rule = ModuleType("hook_rule")
        rule.__file__ = f"{here}/hook_rule.py"
        # The loader keeps compiled code beside the source; a script that is run by path would be compiled each time.
        SourceFileLoader("hook_rule", rule.__file__).exec_module(rule)
        code = rule.main(sys.argv[1:])
    except BaseException as fault:  # noqa: BLE001  a hook that fails in any other way lets the edit through
        sys.stderr.write(f"jumar: the hook failed, so nothing is let through: {type(fault).__name__}: {fault}\n")
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
