"""Starts a program of `jumar.child` where jumar itself is not installed: `python -I start.py PROGRAM [ARGUMENT...]`.

There `jumar` is an empty package, so that the programs import each other by their usual names. Before a program runs,
nothing of it is left in `sys.modules`: code under test cannot find our modules by name, and may have a jumar of its
own. Programs therefore import what they need at their top. Standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

# pathlib and importlib would triple what the supervisor imports, and it starts once per verification.
# ruff: noqa: PTH100, PTH120
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

FOLDER = os.path.dirname(os.path.abspath(__file__))


def build_command(program: ModuleType | str) -> tuple[str, str]:
    """Return the arguments with which an interpreter runs *program*, after its own flags.

    A program of another package is named by the path of its file. It may import `jumar.child` as ours do.
    """
    return __file__, program if isinstance(program, str) else program.__name__


def add_packages() -> None:
    """Make `jumar.child` importable, and nothing else of jumar."""
    for name, places in (("jumar", []), ("jumar.child", [FOLDER])):
        package = type(sys)(name)
        package.__path__ = places
        sys.modules[name] = package


def remove_packages() -> None:
    """Take everything of jumar out of the interpreter's tables; what was imported stays alive by its references."""
    for name in [name for name in sys.modules if name == "jumar" or name.startswith("jumar.")]:
        del sys.modules[name]
    for place in [place for place in sys.path_importer_cache if place.startswith(FOLDER)]:
        del sys.path_importer_cache[place]


def load(program: str) -> ModuleType:
    """Import the module *program*, or the file of that path, and leave no trace of it.

    Raises:
        ImportError: if there is no such program.
        OSError: if there is no such file.
    """
    add_packages()
    try:
        if os.sep in program:
            from importlib.machinery import SourceFileLoader  # noqa: PLC0415  seldom needed, and not cheap

            module = type(sys)("program")
            SourceFileLoader("program", program).exec_module(module)
            return module
        __import__(program)
        return sys.modules[program]
    finally:
        remove_packages()


if __name__ == "__main__":
    del sys.argv[0]
    sys.path[:] = [place for place in sys.path if place != FOLDER]  # an interpreter that is not isolated puts it there
    load(sys.argv[0]).main()
