"""The self-test of the sandbox is remembered per machine, kernel, tier and version, where nobody can forge it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from jumar.process.progress import ProgressPart, Work
from jumar.runs.setup import choose_sandbox
from jumar.runs.setup.selftest_cache import NAME, PassedSelftest, SelftestCache
from jumar.sandbox.probes.catalogue import PROBES
from jumar.sandbox.probes.circumstances import hash_circumstances
from sandbox.test_probes import Broken
from support.processes import other_users as strangers

PASSED = PassedSelftest(candidate="S3", possible=("write_room",), tried=len(PROBES), program="/usr/bin/bwrap", at=1.0)


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


def file_in(home: Path) -> Path:
    """Where the results lie."""
    return home / ".cache" / "jumar" / NAME


def kept(home: Path) -> SelftestCache:
    """A memory that holds one result."""
    memory = SelftestCache({"HOME": str(home)})
    memory.keep("key", PASSED)
    return memory


def test_a_result_is_remembered_for_its_circumstances_and_no_others(home: Path) -> None:
    memory = kept(home)

    assert memory.recall("key") == PASSED
    assert memory.recall("other") is None
    assert SelftestCache({"HOME": str(home)}).recall("key") == PASSED
    assert file_in(home).stat().st_mode & 0o777 == 0o600
    memory.forget()
    assert memory.recall("key") is None


def _link(file: Path) -> None:
    file.rename(file.with_name("other"))
    file.symlink_to("other")


FORGERIES: dict[str, Callable[[Path], object]] = {
    "others may write the file": lambda file: file.chmod(0o606),
    "the group may write the file": lambda file: file.chmod(0o660),
    "others may write the folder": lambda file: file.parent.chmod(0o707),
    "others may replace a folder above": lambda file: file.parent.parent.chmod(0o777),
    "the file is a link": _link,
    "the file has a second name": lambda file: os.link(file, file.with_name("other")),
    "it is no JSON": lambda file: file.write_text("{"),
    "it holds more than it should": lambda file: file.write_text(file.read_text().replace("tried", "tired")),
    "fewer probes were tried": lambda file: file.write_text(file.read_text().replace(str(len(PROBES)), "3")),
    "it knows a probe that there is not": lambda file: file.write_text(file.read_text().replace("write_room", "x")),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_what_somebody_else_may_have_written_is_not_believed(home: Path, what: str) -> None:
    memory = kept(home)

    FORGERIES[what](file_in(home))

    assert memory.recall("key") is None


def test_a_file_of_another_user_is_not_believed(home: Path) -> None:
    memory = kept(home)
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")

    os.chown(file_in(home), 12345, -1)

    assert memory.recall("key") is None


def test_nothing_is_read_or_written_in_a_folder_that_holds_the_tree_under_test(home: Path) -> None:
    kept(home)
    within = SelftestCache({"HOME": str(home)}, (home,))

    assert within.recall("key") is None
    within.keep("another", PASSED)
    assert SelftestCache({"HOME": str(home)}).recall("another") is None
    assert SelftestCache({}).recall("key") is None


def test_where_the_home_takes_nothing_it_is_probed_each_time_and_nothing_breaks(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    memory = SelftestCache({"HOME": str(tmp_path / "home")})

    memory.keep("key", PASSED)

    assert memory.recall("key") is None


def test_results_of_many_circumstances_do_not_pile_up(home: Path) -> None:
    memory = kept(home)
    for number in range(100):
        memory.keep(f"key {number}", PASSED)

    assert memory.recall("key 99") == PASSED
    assert memory.recall("key 1") is None


def test_circumstances_change_with_the_program_the_place_and_who_may_pass(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("one")
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir(mode=0o755)
    two.mkdir(mode=0o755)
    first = hash_circumstances(one, [program])

    assert hash_circumstances(one, [program]) == first
    assert hash_circumstances(two, [program]) == first, "the name of a run or of a temporary folder is chance"
    assert hash_circumstances(one, []) != first
    two.chmod(0o777)
    assert hash_circumstances(two, [program]) != first
    assert hash_circumstances(Path("/"), [program]) != first
    program.write_text("other")
    assert hash_circumstances(one, [program]) != first


@pytest.mark.slow
def test_a_start_does_not_probe_again_and_doctor_can_and_a_sandbox_that_became_weaker_is_forgotten(
    home: Path, tmp_path: Path
) -> None:
    strangers.sandbox("S2")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    place = tmp_path / "runs"
    place.mkdir()
    told: list[Work | ProgressPart] = []
    around = partial(
        choose_sandbox.SandboxSurroundings, place, environ, tell=lambda what, _done, _total: told.append(what)
    )

    async def tried(*, anew: bool = False) -> choose_sandbox.CandidateFindings:
        async for found, sandbox in choose_sandbox._try_candidates(around(anew=anew), ["S2"]):  # noqa: SLF001  what both ways share
            assert sandbox is not None
            return found
        raise AssertionError

    first = anyio.run(tried)
    again = anyio.run(tried)
    assert (first.remembered, again.possible, again.tier) == (0.0, first.possible, first.tier)
    assert again.remembered > 0
    assert told == [Work.PROBING], "it is not said to be tested where its result is remembered"
    assert anyio.run(partial(tried, anew=True)).remembered == 0
    assert anyio.run(choose_sandbox.find_weakening, Broken(), place, environ)
    assert anyio.run(tried).remembered == 0
