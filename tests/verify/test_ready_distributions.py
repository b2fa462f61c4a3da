"""Forks of a zygote find the plug-ins of pytest that a started process finds, and read no distribution twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from jumar.child.warm import ready_distributions
from jumar.process.warm.pool import WarmPool
from jumar.process.warm.starts import WARM, WarmStarts
from support.judging.real_verifier import Court

SITES = [path for path in sys.path if Path(path).name == "site-packages"]

PROJECT = {
    "mine.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: mine\nVersion: 1\n",
    "mine.egg-info/entry_points.txt": "[pytest11]\nmine = my_plugin\n",
    "my_plugin.py": "import pytest\n\n\n@pytest.fixture\ndef mine():\n    return 4\n",
    "app.py": "def double(n):\n    return 2 * n\n",
    "test_app.py": "from app import double\n\n\ndef test_double(mine):\n    assert double(2) == mine\n",
}
"""A project that is itself a plug-in of pytest."""


class Asking:
    """Lists distributions as pytest does."""

    def names(self) -> list[tuple[str, int]]:
        """Return the name of each, and how many entry points it has."""
        return [(one.metadata["Name"], len(one.entry_points)) for one in metadata.distributions()]


@pytest.fixture
def read() -> Iterator[None]:
    """All that is installed here is read."""
    ready_distributions.prepare(SITES)
    yield
    ready_distributions.prepare(())


@pytest.mark.usefixtures("read")
def test_the_next_call_alone_finds_what_was_read_and_finds_the_same() -> None:
    usual, asking = metadata.distributions, Asking()
    found = asking.names()

    ready_distributions.use_in(asking, "names")

    assert found
    assert asking.names() == found
    assert metadata.distributions is usual
    assert "names" not in vars(asking)
    ready_distributions.use_in(asking, "no_such_method")


@pytest.mark.usefixtures("read")
def test_what_was_read_is_read_once_and_what_is_elsewhere_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in PROJECT.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    first, second = (list(ready_distributions.list_distributions()) for _ in range(2))

    read = [one for one in first if type(one) is ready_distributions.ReadDistribution]
    assert read
    assert all(one.entry_points is again.entry_points for one, again in zip(first, second, strict=True) if one in read)
    assert [point.value for one in first for point in one.entry_points if point.name == "mine"] == ["my_plugin"]


@pytest.mark.slow
def test_a_plug_in_of_the_room_is_found_by_a_fork(tmp_path: Path) -> None:
    court, pool = Court(tmp_path, started=True), WarmPool(unpaid=0)
    tree = court.tree(PROJECT)
    court.collect(tree)
    results = []
    for starts in (None, WarmStarts(pool)):
        court.verifier.warm = starts
        results.append(court.judge(tree, {}))
    pool.close()

    cold, warm = ({i: r.outcome for i, r in done.verdict.results.items()} for done in results)
    assert results[1].starts == {WARM: 1}
    assert cold == warm
    assert [str(outcome) for outcome in warm.values()] == ["passed"]
