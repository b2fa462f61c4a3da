"""What doctor says of sandboxes: what can be had by which name, how strong it is, and when that was tested."""

from __future__ import annotations

import pytest

from jumar.cli.doctor.sandbox import check_rounds, describe_sandbox
from jumar.runs.setup.choose_sandbox import CandidateFindings

ROOM, MORE = ("write_room",), ("write_room", "see_processes")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (CandidateFindings(candidate="S2", why="no Landlock"), "cannot be had here"),
        (
            CandidateFindings(candidate="S2", tier="S2", possible=MORE, tried=65),
            (
                "can be had with --sandbox S2; of 65 things tried in it, 2 possible: writing to its room, as it must, "
                "and seeing which other processes run (see_processes) (tested just now)"
            ),
        ),
        (
            CandidateFindings(candidate="S1", tier="S2", possible=ROOM, tried=65),
            (
                "can be had with --sandbox S1, which is as strong as S2 here; of 65 things tried in it, 1 possible: "
                "writing to its room, as it must (tested just now)"
            ),
        ),
        (
            CandidateFindings(candidate="S2", tier="S0", possible=ROOM, tried=65, why="it is weak"),
            (
                "is no stronger than S0 here; of 65 things tried in it, 1 possible: writing to its room, as it must "
                "(tested just now)"
            ),
        ),
    ],
)
def test_a_candidate_is_told_by_name_and_strength(found: CandidateFindings, said: str) -> None:
    assert describe_sandbox(found) == said


def test_what_is_remembered_is_told_with_its_time() -> None:
    said = describe_sandbox(CandidateFindings(candidate="S3", tier="S3", possible=ROOM, tried=65, remembered=1.0))
    assert "(tested on 19" in said
    assert "--probe tests again" in said


def test_what_a_run_can_leave_for_a_later_one_is_told_where_it_can() -> None:
    assert list(check_rounds("S3", ROOM)) == []
    (told,) = check_rounds("S3", (*ROOM, "leave_pages", "leave_names"))
    assert told.found.startswith("a run can leave a word for a later one here")
    assert "leaving pages of a file in memory for a later run" in told.found
    assert "graded C at best" in told.found
    assert "systemd-run --user --scope -p Delegate=yes" in told.mend
    assert all(list(check_rounds(tier, ROOM)) for tier in ("S1", "S0"))
