"""Every command that reads runs takes the same words for them: folders, names of campaigns, and `last`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from jumar.campaigns.plan import CampaignPlan, CampaignTask
from jumar.cli.main import call
from jumar.task.option_values import OptionValues
from jumar.task.task import load_task
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
    assert "there is no nowhere; name a campaign, a run, or a folder of runs, or `last`" in capsys.readouterr().err
    assert call([*words, "last"]) == 2
    assert (
        "there is no campaign in .jumar/campaigns; `jumar batch` or `jumar evolve` begins one"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("place", ["last", "20261124-b", ".jumar/campaigns/20261124-b", ".jumar/campaigns"])
@pytest.mark.parametrize("words", READERS[:4], ids=lambda words: words[0])
def test_a_campaign_is_found_by_each_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("20261123-a", "20261124-b"):
        work(tmp_path / ".jumar" / "campaigns" / name / "runs" / "r", (write_passing(TOTAL),))

    assert call([*words, place]) != 2, "the exit code of bad input"


@pytest.mark.parametrize("words", READERS[:4], ids=lambda words: words[0])
def test_a_run_is_found_by_its_name_and_a_file_that_cannot_be_there_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    work(tmp_path / ".jumar" / "runs" / "20261124-r", (write_passing(TOTAL),))
    wanted = "no/such/place.jsonl" if words[0] != "report" else "no/such/place.html"
    elsewhere = [*words[: words.index("-o")], *words[words.index("-o") + 2 :]] if "-o" in words else words

    assert call([*words, "20261124-r"]) != 2
    assert call([*elsewhere, "20261124-r", "-o", wanted.replace("jsonl", "xml" if "junit" in words else "jsonl")]) == 2
    assert "; name another place with -o" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["check {}", "run {} --model repair", "score {} .", "batch {} --model repair"])
@pytest.mark.parametrize("kind", ["run", "campaign"])
def test_no_folder_of_results_is_taken_for_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    task = work(tmp_path / "run", (write_passing(TOTAL),))
    plan = CampaignPlan(began="20261124-101500", tasks=(CampaignTask("r", str(task)),), options=OptionValues())
    (tmp_path / "campaign" / "runs").mkdir(parents=True)
    (tmp_path / "campaign" / "campaign.json").write_bytes(msgspec.json.encode(plan))

    assert call(words.format(kind).split()) == (1 if "check" in words else 2), "one of many tasks may be invalid"
    said = f"is the folder of a {kind}, and no task; name its task, or use `jumar report` to read the {kind} and `jumar"
    assert said in "".join(capsys.readouterr())


def test_a_repository_with_files_of_those_names_is_a_task(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"seq":0,"type":"click"}\n')
    (tmp_path / "campaign.json").write_text('{"version": 1}')
    (tmp_path / "runs").mkdir()

    assert load_task(tmp_path).root == tmp_path
