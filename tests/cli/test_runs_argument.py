"""Every command that reads runs takes the same words for them: folders, names of campaigns, and `last`."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.cli.main import call
from support.worlds.rollout_world import work, write_passing
from support.worlds.run_world import TOTAL

READERS = (
    ["report"],
    ["prefs", "-o", "out.jsonl", "--min-grade", "D"],
    ["export", "-o", "out.xml", "--format", "junit"],
    ["corpus", "export", "-o", "corpus.jsonl"],
    ["rescore", "--sandbox", "S0"],
)


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_a_place_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert call([*words, "nowhere"]) == 2
    assert "there is no nowhere; name the folder of a campaign or of runs, or `last`" in capsys.readouterr().err
    assert call([*words, "last"]) == 2
    assert "there is no campaign in .jumar/campaigns; `jumar batch TASKS` begins one" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["last", "20261124-b", ".jumar/campaigns/20261124-b", ".jumar/campaigns"])
@pytest.mark.parametrize("words", READERS[:4], ids=lambda words: words[0])
def test_a_campaign_is_found_by_each_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("20261123-a", "20261124-b"):
        work(tmp_path / ".jumar" / "campaigns" / name / "runs" / "r", (write_passing(TOTAL),))

    assert call([*words, place]) != 2, "the exit code of bad input"
