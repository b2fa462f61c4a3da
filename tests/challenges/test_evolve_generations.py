"""A search from one command, on a model whose skill depends on a word in its prompt; stopped, and gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from jumar.cli.main import call
from support.processes.fake_provider import Received, Server, Step, reply
from support.worlds.challenge_world import ChallengeWorld, work_by_a_word

LINES = '[generations]\nvariants = 2\nlines = ["Use recursion.", "Be brief."]\n'
ONE = "[generations]\nvariants = 1\n"


def write_world(root: Path, url: str, generations: str, *, proposes: bool = False) -> ChallengeWorld:
    world = ChallengeWorld(root)
    world.challenge(rollouts=3, more=generations)
    agent = f'model = "openai:worker"\nbase_url = "{url}"\nprice = "free"\nprompts = ["rules.md"]\ngate = "off"\n'
    meta = f'[proposer]\nmodel = "openai:meta"\nbase_url = "{url}"\nprice = "free"\n' if proposes else ""
    world.write("agents.toml", f'{meta}[[agent]]\nname = "worker"\n{agent}')
    return world


def answer(received: Received) -> Step:
    """Work, or propose what makes the work better, as the request is for the one or the other."""
    if received.body["model"] == "meta":
        return reply(json.dumps({"variants": [{"change": "says how", "prompt": "Use recursion."}]}))
    return work_by_a_word(received)


@pytest.mark.proof
@pytest.mark.parametrize("generations", [LINES, ONE], ids=["mutation", "model"])
def test_the_word_is_found_and_a_search_goes_on_where_it_was(
    generations: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Server(answer) as server:
        world = write_world(tmp_path, server.url, generations, proposes=generations == ONE)
        assert call(world.words("--generations", "2")) == 0, capfd.readouterr()
        told = json.loads(capfd.readouterr().out.splitlines()[-1])
        asked = len(server.requests)
        lineage, genome = Path("c/lineage.jsonl").read_bytes(), Path("c/genome.md").read_text()
        trials = [json.loads(line) for line in lineage.splitlines()]

        assert told["lineage"] == trials
        assert "Use recursion." in genome
        assert any(trial["kept"] and "recursion" in trial["genome"] for trial in trials)
        assert all(trial["difference"] > 0 for trial in trials if trial["kept"])
        assert "recursion" in Path("c/ranking.html").read_text()

        options = json.loads(Path("c/generations/g1-confirm/campaign.json").read_bytes())["options"]
        shutil.rmtree("c/generations/g1-confirm")  # as if it had been stopped there
        Path("c/generations/g1-confirm/runs").mkdir(parents=True)  # and killed while it was being made
        assert call(("evolve", "--resume", "c", "--json", "-q")) == 0, capfd.readouterr()
        again = json.loads(Path("c/generations/g1-confirm/campaign.json").read_bytes())["options"]
        assert again == options, "judged as the search began, whatever --resume was typed with"
        assert Path("c/lineage.jsonl").read_bytes() == lineage
        assert Path("c/genome.md").read_text() == genome
        assert asked < len(server.requests) <= 2 * asked


@pytest.mark.slow
def test_a_search_that_can_show_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    world = write_world(tmp_path, "http://127.0.0.1:9/v1", LINES)

    assert call(world.words("--generations", "9")) == 2
    assert "tasks times rollouts must be 8 or more" in capfd.readouterr().out
    assert not Path("c").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agents", "sentence"),
    [
        ('[[agent]]\nname = "a"\nmodel = "repair"\n', "no agent reads any"),
        ('[[agent]]\nname = "a"\nmodel = "script:good.jsonl"\n[proposer]\nmodel = "nobody:x"\n', "nobody"),
    ],
)
def test_what_cannot_be_varied_is_refused_before_anything_runs(
    agents: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    world = ChallengeWorld(tmp_path)
    world.challenge(rollouts=3)
    world.write("agents.toml", agents)

    assert call(world.words("--generations", "1")) == 2
    assert sentence in capfd.readouterr().out
    assert not Path("c").exists()
