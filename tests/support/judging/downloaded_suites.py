"""Full suites of third-party releases: pinned source distributions, fetched by pip when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jumar.core.state.settings import Suite
from jumar.importing.from_pypi import Release, fetch_archive, unpack_archive
from jumar.importing.make_task import Tree, find_python_path, write_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """One release whose suite passes as it is shipped, but for what it says itself."""

    name: str
    version: str
    select: tuple[str, ...] = ("tests",)
    """Where its tests are."""
    drop: tuple[str, ...] = ()
    """Paths that are left out: configuration that asks for plug-ins, tests of what its own build would have made."""
    seconds: float = 30.0
    """What one test may take."""

    @property
    def called(self) -> str:
        """The release in words."""
        return f"{self.name} {self.version}"

    async def tree(self, cache: Path) -> Tree:
        """Its files, from *cache* or the index."""
        whole = unpack_archive(await fetch_archive(Release(self.name, self.version), cache))
        return {path: blob for path, blob in whole.items() if not path.startswith(self.drop or ("\0",))}

    async def laid_out(self, cache: Path, folder: Path) -> Suite:
        """Its files in *folder*, which is made; how its tests are run there."""
        tree = await self.tree(cache)
        write_tree(tree, folder)
        paths = find_python_path(tree)
        return Suite(
            select=self.select,
            env={"PYTHONPATH": paths} if paths else {},
            timeout_seconds=600.0,
            test_timeout_seconds=self.seconds,
        )


UPSTREAM = (
    Upstream(name="boltons", version="26.2.0"),
    Upstream(name="more-itertools", version="11.2.1"),
    Upstream(name="toolz", version="1.0.0", select=("toolz",)),
    Upstream(name="cachetools", version="8.0.1"),
    Upstream(name="semver", version="3.1.1", drop=(".pytest.ini", "setup.cfg")),
    Upstream(name="sqlparse", version="0.6.1"),
    Upstream(name="marshmallow", version="4.4.0"),
    Upstream(name="tabulate", version="0.10.0", select=("test",)),
    Upstream(name="xmltodict", version="1.0.4"),
    Upstream(name="parso", version="0.8.7", select=("test",)),
    Upstream(name="tinydb", version="4.9.0"),
    Upstream(name="click", version="8.5.1"),
    Upstream(name="itsdangerous", version="2.2.0"),
    Upstream(name="wcwidth", version="0.9.4", drop=("tox.ini",)),
    Upstream(name="idna", version="3.20"),
)
"""What the rules of `verify/falsify*.py` were made on, and may be made on again."""


def upstream(*names: str) -> Iterator[Upstream]:
    """Those of `UPSTREAM` that are named, or all."""
    yield from (one for one in UPSTREAM if not names or one.name in names)
