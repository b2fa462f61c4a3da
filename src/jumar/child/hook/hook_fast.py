"""Starts the hook in a few milliseconds: run by path with `-I -S`, standard library only, its rule compiled once.

Called as `python -I -S hook_fast.py EVENT [SECONDS [GATE]]`: a host's event is on standard input, the answer on the
output.
"""

from __future__ import annotations

import sys


def answer(arguments: list[str]) -> int:
    """Answer the event of a host that *arguments* name; whatever goes wrong blocks. The exit status, 0 or 2."""
    try:
        if "jumar" not in sys.modules:
            _add_packages()
        from jumar.child.hook import ruling as rule  # noqa: PLC0415  a fault here must block, too

        status: int = rule.main(arguments)
    except BaseException as fault:  # noqa: BLE001  a hook that fails in any other way lets the edit through
        sys.stderr.write(f"jumar: the hook failed, so nothing is let through: {type(fault).__name__}: {fault}\n")
        return 2
    return status


def _add_packages() -> None:
    """Make `jumar.child` importable; see `jumar.child.start`."""
    from importlib.machinery import SourceFileLoader  # noqa: PLC0415  as above
    from types import ModuleType  # noqa: PLC0415  as above

    start = ModuleType("start")
    start.__file__ = f"{__file__.rpartition('/')[0] or '.'}/../start.py"
    # The loader keeps compiled code beside the source; a script that is run by path would be compiled each time.
    SourceFileLoader("start", start.__file__).exec_module(start)
    start.add_packages()


if __name__ == "__main__":
    sys.exit(answer(sys.argv[1:]))
