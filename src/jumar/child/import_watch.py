"""Notes which installed modules a process imports, for the zygotes that import them ahead of the next ones."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any


class ImportWatch:
    """Notes which installed modules are imported from here on, as long as the environment is as it was.

    A module may read the environment when it is imported. What the code of a room has set there before, a process that
    imports the module ahead of it does not have.
    """

    def __init__(self) -> None:
        self._before = set(sys.modules)
        self._found: list[str] | None = None
        sys.addaudithook(self._watch_environment)

    def list_installed(self) -> list[str]:
        """Return the modules as they are installed; those that pytest rewrote are not."""
        return self._read() if self._found is None else self._found

    def _watch_environment(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("os.putenv", "os.unsetenv") or self._found is not None:
            return
        if not os.fsencode(arguments[0]).startswith(b"PYTEST"):  # pytest says which test runs
            self._found = self._read()

    def _read(self) -> list[str]:
        found = []
        for name in set(sys.modules) - self._before:
            with contextlib.suppress(Exception):
                spec = vars(sys.modules[name])["__spec__"]
                installed = not {"site-packages", "dist-packages"}.isdisjoint(Path(spec.origin).parts)
                whole = not getattr(spec, "_initializing", False)  # else it may be what sets the environment
                if installed and whole and type(spec.loader).__module__.startswith(("importlib.", "_frozen")):
                    found.append(name)
        return found
