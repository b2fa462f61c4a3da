"""A tier is what its probes showed: 73 bad things are tried on decoys, and the decoys say what happened to them."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.child.sandbox import probe_channels, probe_main, probe_processes
from jumar.child.sandbox.probe_main import run_probe_forked
from jumar.child.supervisor.cgroup import EMPTYING, Cgroup
from jumar.errors import BadInput, Infra
from jumar.ports import Checked, Sandbox
from jumar.process.child_process import Child
from jumar.process.launch import Confinement
from jumar.process.sandbox_probe import ProbeFindings, probe_sandbox, refuse_full_disk
from jumar.runs.judging.byte_locks import hold_byte
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox, find_weakening
from jumar.sandbox.landlock import Landlocked
from jumar.sandbox.probes import catalogue
from jumar.sandbox.probes.channels import describe_channels, find_channels
from jumar.sandbox.probes.decoys import create_decoys
from jumar.sandbox.quiet_proc import list_hidden
from jumar.sandbox.request import TIERS, Reach, Wrapped
from jumar.sandbox.unconfined import Unconfined
from support.judging.real_verifier import Court
from support.judging.samples import sampled
from support.processes import other_users as strangers

DOCS = Path(__file__).parents[2] / "docs" / "sandbox.md"

ANYBODY = {
    "write_room", "write_home", "write_run", "write_tests", "write_git", "truncate_outside", "remove_outside",
    "change_modes", "see_files", "read_home", "list_home", "read_run", "read_shared_memory", "signal_jumar",
    "signal_process", "signal_group", "signal_everything", "limit_process", "attach_memory", "connect_abstract",
    "connect_path", "connect_home", "connect_tcp", "send_udp", "see_processes", "read_environ",
}  # fmt: skip
"""What anybody can do to what is theirs, on any Linux: where these are not possible unconfined, a probe is blind."""

MANNERS = {
    "user": strangers.ORDINARY,
    "user without namespaces": strangers.SECLUDED,
    "contained root": strangers.CONTAINED,
}

PROBE = """
import anyio, json, os, sys
from contextlib import ExitStack
from pathlib import Path
from jumar.runs.setup.choose_sandbox import survey_sandboxes
found = anyio.run(survey_sandboxes, Path(sys.argv[1]), dict(os.environ))
print(json.dumps([[f.candidate, f.tier, f.possible, f.why] for f in found]))
"""

CHOOSE = """
import anyio, os, sys
from functools import partial
from contextlib import ExitStack
from pathlib import Path
from jumar.errors import BadInput
from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox
for wanted, unattended in (("auto", False), ("auto", True), ("S2", True), ("S1", False)):
    around = SandboxSurroundings(Path(sys.argv[1]), dict(os.environ))
    try:
        print(anyio.run(partial(choose_sandbox, wanted, around, unattended=unattended)).tier)
    except BadInput as reason:
        print(reason)
"""


BY_DISK = ("leave_pages", "leave_names", "leave_access_time", "evict_pages")
"""Channels that a file system in memory, or one that keeps no times of access, does not have."""


def forgets() -> bool:
    """True if the kernel can be made to give up what it keeps for a run."""
    group = Cgroup("forgets")
    group.make(1 << 30, 1000)
    found = any(Path(folder, name).exists() for folder in group.groups for name, _ in EMPTYING)
    group.leave()
    return found


class Open:
    """Calls itself S2, and confines nothing."""

    tier = "S2"

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:  # noqa: ARG002
        return Wrapped(argv=tuple(argv))


class Broken:
    """Does not start."""

    tier = "S2"

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:  # noqa: ARG002
        return Wrapped(argv=("/bin/sh", "-c", "echo 'there is no lock' >&2; exit 126"))


class Leaky:
    """Confines nothing, and hands a descriptor on that nobody needs."""

    tier = "S2"

    def wrap(self, argv: Sequence[str], room: Path, private: Path, reach: Reach) -> Wrapped:  # noqa: ARG002
        return Wrapped(argv=tuple(argv), files=(b"left open",))


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of ours that nothing covers: not in /tmp, where the probes would find nothing to harm."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".place-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def tried(sandbox: Sandbox, place: Path) -> ProbeFindings:
    return anyio.run(probe_sandbox, sandbox, place, dict(os.environ))


def test_the_table_names_every_probe_there_is() -> None:
    assert set(probe_main.PROBES) == set(catalogue.PROBES)
    assert all(catalogue.PROBES.values())
    assert len(catalogue.PROBES) >= 29
    assert set(catalogue.QUICK) <= set(catalogue.PROBES)


def test_the_documentation_names_every_probe() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", DOCS.read_text("utf-8"), re.MULTILINE)
    assert [row for row in rows if row not in ("go", "node")] == list(catalogue.PROBES)  # those are of another table


def test_a_stronger_tier_allows_less() -> None:
    assert catalogue.FLOORS["S3"] == {"write_room"}
    assert catalogue.FLOORS["S3"] < catalogue.FLOORS["S2"] < catalogue.FLOORS["S0"]
    assert catalogue.FLOORS["S3"] < catalogue.FLOORS["S1"] < catalogue.FLOORS["S0"]


@pytest.mark.slow
@given(st.frozensets(st.sampled_from(sorted(catalogue.PROBES))))
def test_a_tier_is_the_strongest_whose_floor_is_reached(possible: frozenset[str]) -> None:
    tier = catalogue.find_tier(possible)

    assert catalogue.find_excess_probes(tier, possible) == ()
    assert all(catalogue.find_excess_probes(stronger, possible) for stronger in TIERS[: TIERS.index(tier)])


@pytest.mark.slow
def test_unconfined_every_decoy_can_be_harmed(place: Path) -> None:
    found = tried(Unconfined(), place)

    assert found.why == ""
    assert set(found.possible) >= ANYBODY
    assert "keep_secrets" not in found.possible, "the environment is scrubbed in every tier"
    assert "find_descriptors" not in found.possible, "no descriptor is handed on by accident"
    assert not list(place.iterdir()), "all decoys are gone"


@pytest.mark.slow
def test_decoys_outside_the_place_are_gone_too(place: Path) -> None:
    with create_decoys(place) as decoys:
        settings = Path("/etc", f"jumar-probe-{decoys.token[:16]}")
        if os.access("/etc", os.W_OK):
            settings.touch()  # as the probe does
        there = decoys.find_harm()["write_settings"]
        made = [decoys.world, decoys.shared]
        assert all(path.exists() for path in made)

    assert there == os.access("/etc", os.W_OK)
    assert not [path for path in (*made, settings) if path.exists()]


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["S3", "S2", "S1"])
def test_a_tier_reaches_its_floor(tier: str, place: Path) -> None:
    found = tried(strangers.sandbox(tier), place)

    assert found.why == ""
    assert found.tried == len(catalogue.PROBES)
    assert catalogue.find_excess_probes(tier, found.possible) == (), found.evidence
    assert "write_room" in found.possible


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["S3", "S2"])
def test_no_run_leaves_a_word_for_a_later_one(tier: str, place: Path) -> None:
    if not forgets():
        pytest.skip("NO CONTROL GROUP OF OURS COUNTS MEMORY HERE: what rounds leave in caches is not tested")
    assert find_channels(tried(strangers.sandbox(tier), place).possible) == ()


@pytest.mark.skipif(not Path("/proc/keys").exists(), reason="this kernel keeps no keys")
def test_keys_that_others_make_are_not_seen() -> None:
    """They are counted for each user, and are moved by whoever runs as the same one."""
    assert {"/proc/keys", "/proc/key-users"} <= {path for path, _ in list_hidden()}


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["S3", "S2"])
def test_locks_that_others_hold_are_not_seen(tier: str, tmp_path: Path) -> None:
    """Those of open file descriptions, as jumar's own, are listed in every namespace of processes."""
    court = Court(tmp_path, started=True)
    court.verifier.sandbox = strangers.sandbox(tier)
    tree = court.tree({"app.py": ""})

    async def look() -> Checked:
        async with hold_byte(tmp_path / "slots", [0]):
            assert "OFDLCK" in Path("/proc/locks").read_text("ascii")  # noqa: ASYNC240  one look
            return await court.verifier.check(tree, "test -e /proc/locks && cat /proc/locks", 20.0)

    found = anyio.run(look)

    assert (found.ok, found.output) == (True, "")


@pytest.mark.slow
def test_unconfined_a_run_can_leave_many_a_word(place: Path) -> None:
    found = tried(Unconfined(), place)

    assert set(find_channels(found.possible)) >= {
        "evict_pages", "leave_files", "leave_objects", "read_counters", "read_numbers",
    }, found.evidence  # fmt: skip
    assert not list(Path("/tmp").glob("jumar-probe-*-left"))  # noqa: S108


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue.LEFT)
def test_a_word_that_nobody_takes_away_is_found(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both processes are ours, in no control group: what they leave, they find."""
    monkeypatch.chdir(place)
    for variable in ("HOME", "TMPDIR"):
        monkeypatch.setenv(variable, str(place))
    probe = getattr(probe_channels, name)
    with create_decoys(place) as decoys:
        aims = decoys.build_aims(b"")
        first, second = (run_probe_forked(probe, {**aims, "later": later}) for later in (False, True))
    assert first == ("impossible", "")
    if name in BY_DISK and second == ("impossible", ""):
        pytest.skip(f"THIS FILE SYSTEM CANNOT SHOW {name}")
    assert second[0] == "possible"


def test_a_sandbox_with_channels_is_named_so() -> None:
    assert describe_channels("S3", ["write_room"]) == ""
    assert "names that were looked up" in describe_channels("S3", ["write_room", "leave_names"])
    assert "whatever it likes" in describe_channels("S0", [])


@pytest.mark.parametrize("manner", sampled(MANNERS, "user without namespaces"))
def test_the_tiers_of_other_users_reach_their_floors(manner: str) -> None:
    expected = {"user": {"S3", "S2"}, "user without namespaces": {"S2"}, "contained root": {"S3", "S2"}}[manner]
    strangers.sandbox("S2")
    with strangers.stranger() as stranger:
        found = json.loads(stranger.run(MANNERS[manner], PROBE))

    shown = {candidate: tier for candidate, tier, _, _ in found}
    assert {name for name in shown if shown[name] and TIERS.index(shown[name]) <= TIERS.index(name)} == expected, found
    assert all(why for _, tier, _, why in found if not tier), "what is missing has a reason"


@pytest.mark.slow
def test_nobody_gets_less_than_they_asked_for() -> None:
    strangers.sandbox("S2")
    with strangers.stranger() as stranger:
        auto, unattended, typed, impossible = stranger.run(strangers.SECLUDED, CHOOSE).splitlines()

    assert auto == "S2"
    assert unattended.startswith("nobody watches this run, and no sandbox here is stronger than S2")
    assert unattended.endswith("or say --sandbox S2 to run in that one")
    assert typed == "S2"
    assert impossible == (
        "there is no sandbox S1 here: only root can become another user: run jumar as root, or install bubblewrap, "
        "which needs none"
    )


@pytest.mark.slow
def test_a_sandbox_that_confines_nothing_is_no_tier(place: Path) -> None:
    found = tried(Open(), place)

    assert catalogue.find_tier(found.possible) == "S0"
    assert anyio.run(find_weakening, Open(), place, {}).startswith(
        "sandbox S2 does not hold any more: writing to the home"
    )


@pytest.mark.slow
def test_a_descriptor_that_was_left_open_is_found(place: Path) -> None:
    assert "find_descriptors" in tried(Leaky(), place).possible


@pytest.mark.slow
@pytest.mark.parametrize("most", [pytest.param(185, marks=pytest.mark.proof), 195])
def test_who_is_at_much_at_once_hands_on_the_numbers_of_the_channel_and_no_more(place: Path, most: int) -> None:
    with ExitStack() as held:
        while held.enter_context(tempfile.TemporaryFile()).fileno() < most:
            pass
        assert "find_descriptors" not in tried(Unconfined(), place).possible
        assert "find_descriptors" in tried(Leaky(), place).possible


def test_a_key_in_the_environment_is_found() -> None:
    assert probe_processes.keep_secrets({"key": os.environ["PATH"]}) == "its environment"
    assert probe_processes.keep_secrets({"key": "a key that nobody has"}) == ""


@pytest.mark.slow
def test_a_sandbox_that_does_not_start_says_why(place: Path) -> None:
    found = tried(Broken(), place)

    assert (found.why, found.possible, found.tried) == ("there is no lock", (), 0)
    assert anyio.run(find_weakening, Broken(), place, {}) == "sandbox S2 does not start any more: there is no lock"


class FullDisk(Child):
    """A prober that was killed, as its disk was nearly full."""

    def __init__(self) -> None:
        self._greeted, self._forked, self._signalled, self._faults = True, False, 0, []
        self.is_failed_fork = False
        self._confinement = Confinement(room=Path(), seconds=1.0)
        self._conclude({"how": "space", "why": "less than 300 KiB was left on its disk"})


def test_a_full_disk_says_nothing_of_the_sandbox() -> None:
    with pytest.raises(
        Infra, match="self-test of the sandbox was killed: less than 300 KiB was left on its disk: free"
    ):
        refuse_full_disk(FullDisk())


@pytest.mark.slow
def test_a_sandbox_that_still_confines_is_not_weakened(place: Path) -> None:
    strangers.sandbox("S2")
    assert anyio.run(find_weakening, Landlocked(), place, dict(os.environ)) == ""


def test_without_a_sandbox_nothing_is_tried(tmp_path: Path) -> None:
    async def choose() -> tuple[str, str]:
        sandbox = await choose_sandbox("S0", SandboxSurroundings(tmp_path / "nowhere", {}), unattended=True)
        return sandbox.tier, await find_weakening(sandbox, tmp_path / "nowhere", {})

    assert anyio.run(choose) == ("S0", "")


def test_a_sandbox_that_there_is_not_is_named_with_those_there_are(tmp_path: Path) -> None:
    async def choose() -> None:
        await choose_sandbox("bwrap", SandboxSurroundings(tmp_path, {}), unattended=False)

    with pytest.raises(BadInput, match="unknown sandbox 'bwrap'; known are auto, S3, S2, S1, S0"):
        anyio.run(choose)
