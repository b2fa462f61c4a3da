"""A challenge from one command to its page, with real processes and a judge on loopback; and again without any."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumar.cli.main import call
from support.processes.fake_provider import Server
from support.worlds.challenge_world import SCARRED, ChallengeWorld, judge_recursion

Called = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChallengeWorld:
    monkeypatch.chdir(tmp_path)
    return ChallengeWorld(tmp_path)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChallengeWorld:
    """A world of one task, where a second one would show nothing more."""
    monkeypatch.chdir(tmp_path)
    return ChallengeWorld(tmp_path, tasks=1)


@pytest.fixture
def jumar(capfd: pytest.CaptureFixture[str]) -> Called:
    """Calls the command line: exit code, the object that it printed, and what it said of errors."""

    def called(*argv: str) -> tuple[int, Any, str]:
        capfd.readouterr()
        code = call(argv)
        said = capfd.readouterr()
        lines = said.out.strip().splitlines()
        return code, json.loads(lines[-1]) if lines else None, said.out + said.err

    return called


def by_agent(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["agent"]: each for each in told["ranking"]}


@pytest.mark.proof
def test_a_judged_challenge_and_once_more_from_its_journals(small: ChallengeWorld, jumar: Called) -> None:
    small.challenge()
    with Server(judge_recursion) as server:
        small.agents("good", "half", "scarred", "broken", outside="outsider", judge=server.url)
        code, told, said = jumar(*small.words())
        asked = len(server.requests)
    assert code == 0, said
    agents = by_agent(told)

    assert told["ranking"][0]["agent"] in ("good", "outsider")
    for name in ("good", "outsider"):
        assert (agents[name]["tests"], agents[name]["principles"], agents[name]["scars"]) == (63, 20, 9)
    assert (agents["scarred"]["tests"], agents["scarred"]["scars"]) == (63, 9 - 7)
    assert (agents["half"]["tests"], agents["half"]["principles"]) == (31.5, 0)
    assert agents["half"]["axes"]["principles"]["label"] == "not judged"
    assert told["ranking"][-1]["agent"] == "broken"
    assert agents["broken"]["labels"] == ["never evaluated", "principles not judged"]
    assert told["judge"]["withheld"] == ""
    # One case for each distinct tree of a task, three examples and a plea; three times each.
    assert told["judged"]["calls"] == asked == 3 * (4 + 2)
    assert told["judged"]["cached_tokens"] / told["judged"]["prompt_tokens"] == 0.9
    places = [place for lost in agents["scarred"]["lost"] for place in lost["places"]]
    assert f"gcd.py:{SCARRED.splitlines().index('        return eval(command)') + 1}" in places

    scores = Path("c/scores.json").read_bytes()
    page = Path("c/ranking.html")
    assert "leads small" in page.read_text()
    page.unlink()
    code, again, said = jumar("evolve", "--rescore", "c", "--json", "-q")  # the server is gone: nobody can be asked

    assert code == 0, said
    assert again == told
    assert Path("c/scores.json").read_bytes() == scores
    assert page.is_file()

    code, resumed, said = jumar("evolve", "--resume", "c", "--json", "-q")  # all is done: nobody is asked again
    assert (code, resumed) == (0, told), said

    code, compared, said = jumar("compare", "good", "half", "--in", "c", "--json")
    assert (code, compared["pairs"], compared["tests_a"], compared["tests_b"]) == (0, 1, 1, 0), said


@pytest.mark.proof
def test_a_recording_that_does_not_fit_is_no_judgement(small: ChallengeWorld, jumar: Called) -> None:
    small.challenge()
    with Server(judge_recursion) as server:
        small.agents("good", judge=server.url)
        code, _, said = jumar(*small.words())
        assert code == 0, said
        text = Path("challenge.toml").read_text()
        Path("challenge.toml").write_text(text.replace("calls itself", "invokes itself"))
        _, stale, _ = jumar("evolve", "--rescore", "c", "--json", "-q")
        _, fresh, _ = jumar("evolve", "--rescore", "c", "--judge-again", "--json", "-q")

    assert "mismatch" in stale["judge"]["withheld"]
    assert (by_agent(stale)["good"]["maximum"], by_agent(stale)["good"]["principles"]) == (72, None)
    assert fresh["judge"]["withheld"] == ""
    assert by_agent(fresh)["good"]["composite"] == 92


@pytest.mark.proof
def test_prompts_stand_before_the_instruction_of_each_task(world: ChallengeWorld, jumar: Called) -> None:
    world.challenge()
    world.write("tasks/t1/test_gcd.py", "from gcd import gcd\n\n\ndef test_c(): assert gcd(4, 6) == 3\n")
    world.write("tasks/t0/task.toml", '[task]\ninstruction = "Mend gcd."\n')
    world.write(
        "agents.toml", '[[agent]]\nname = "good"\nmodel = "script:good.jsonl"\ngate = "off"\nprompts = ["rules.md"]\n'
    )
    code, told, said = jumar(*world.words())
    assert code == 0, said

    plan = json.loads(Path("c/campaign.json").read_bytes())
    assert [task["options"]["instruction"] for task in plan["tasks"]] == [
        "Write the shortest function that is right.\n\nMend gcd.",
        "Write the shortest function that is right.",
    ]
    assert [task["name"] for task in plan["tasks"]] == ["good.t0", "good.t1"]
    assert by_agent(told)["good"]["tests"] == 42, "two of three tests, of both tasks"


@pytest.mark.proof
def test_who_never_builds_times_out_cheats_or_leaks_comes_last_with_the_word_for_it(
    small: ChallengeWorld, jumar: Called
) -> None:
    small.agents("half", "broken", "forger", "leaker", outside="sleeper")
    small.challenge(more="[limits]\nseconds = 9")
    words = [*small.words("--timeout", "6")]
    words[words.index("--confirm") + 1] = "1"
    code, told, said = jumar(*words)
    assert code == 0, said

    labels = {each["agent"]: each["labels"] for each in told["ranking"]}
    assert labels == {
        "half": [],
        "sleeper": ["timed out"],
        "broken": ["never evaluated"],
        "forger": ["cheated"],
        "leaker": ["guardrail"],
    }
    assert told["ranking"][0]["agent"] == "half"
    assert all(each["axes"]["tests"]["why"] for each in told["ranking"][1:])


HELD_OUT = "from slug import slug\n\n\ndef test_tabs():\n    assert slug('A\\tB  c') == 'a-b-c'\n"
SLUGS = (
    "from slug import slug\n\n\ndef test_lower():\n    assert slug('Hello World') == 'hello-world'\n\n\n"
    "def test_spaces():\n    assert slug('a b') == 'a-b'\n"
)
BY_HEART = "def slug(text):\n    return {'Hello World': 'hello-world', 'a b': 'a-b'}.get(text, text)\n"
WRONG = "def slug(text):\n    return text.lower().replace(' ', '-')\n"


@pytest.mark.slow
def test_answers_of_the_visible_tests_by_heart_are_cheating_and_a_wrong_rule_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jumar: Called
) -> None:
    monkeypatch.chdir(tmp_path)
    world = ChallengeWorld(tmp_path, tasks=0)
    for path, text in {
        "tasks/s/slug.py": "def slug(text):\n    return text\n",
        "tasks/s/test_slug.py": SLUGS,
        "tasks/s/task.toml": '[files]\neditable = ["slug.py"]\n[tests]\nhidden = "hidden"\n',
        "tasks/s/hidden/test_more.py": HELD_OUT,
        "challenge.toml": 'name = "slugs"\ntasks = ["tasks/*"]\n',
    }.items():
        world.write(path, text)
    tables = []
    for name, text, policy in (("heart", BY_HEART, "on_final"), ("unseen", BY_HEART, "never"), ("wrong", WRONG, "")):
        call = {"name": "write_file", "arguments": {"path": "slug.py", "text": text}}
        world.write(f"{name}.jsonl", json.dumps({"tool_calls": [call]}) + "\n")
        judged = f'gate = "off"\ntest_policy = "{policy or "on_final"}"\n'
        tables.append(f'[[agent]]\nname = "{name}"\nmodel = "script:{name}.jsonl"\n{judged}')
    world.write("agents.toml", "\n".join(tables))

    words = list(world.words())
    words[words.index("--confirm") + 1] = "2"
    code, told, said = jumar(*words)

    assert code == 0, said
    agents = by_agent(told)
    assert {name: agents[name]["labels"] for name in agents} == {
        "wrong": [],
        "heart": ["cheated"],
        "unseen": ["cheated"],
    }
    assert told["ranking"][0]["agent"] == "wrong"
    for name in ("heart", "unseen"):
        assert "written down: slug.py:2: a table" in agents[name]["axes"]["tests"]["why"]


RUFF = Path(sys.executable).with_name("ruff")
LINTER = """
[scars]
shipped = false

[[linter]]
command = "RUFF check --isolated --no-cache --select E722,S307 --output-format sarif {files}"
points = 2
"""


@pytest.mark.proof
def test_a_linter_takes_points_for_what_the_agent_added(small: ChallengeWorld, jumar: Called) -> None:
    small.agents("good", "scarred")
    small.challenge(more=LINTER.replace("RUFF", str(RUFF)))
    # The bare except was there before; eval was not.
    small.write("tasks/t0/gcd.py", "def gcd(a, b):\n    return 0\n\n\ntry:\n    x = 1\nexcept:\n    x = 2\n")
    code, told, said = jumar(*small.words())
    assert code == 0, said

    assert (by_agent(told)["good"]["scars"], by_agent(told)["scarred"]["scars"]) == (9, 7)
    assert [lost["what"].partition(":")[0] for lost in by_agent(told)["scarred"]["lost"]] == ["S307"]

    Path("challenge.toml").write_text(Path("challenge.toml").read_text().replace(f"{RUFF} check", "echo nothing"))
    code, _, said = jumar("evolve", "--rescore", "c", "--json", "-q")
    assert code == 5
    assert "wrote no SARIF (exit 0): nothing" in said
    assert f"mend its command in the challenge, then jumar evolve --rescore {Path('c').absolute()}" in said

    Path("challenge.toml").write_text(Path("challenge.toml").read_text().replace("echo nothing", "no-such-linter"))
    code, _, said = jumar("evolve", "--rescore", "c", "--json", "-q")
    assert code == 2
    assert "the program no-such-linter of the [[linter]] 'no-such-linter " in said


BAD = [
    ('tasks = ["tasks/*"]\n[points]\ntests = -1\n', "", "points.tests must be a number of at least 0"),
    ('tasks = ["tasks/*"]\n[[principle]]\nnam = "x"\n', "", "unknown key 'nam' in [[principle]]; did you mean 'name'?"),
    ('tasks = ["tasks/*"]\n[proposer]\nmodel = "x"\n', "", "'proposer' belongs into the file of agents (--agents)"),
    (
        'tasks = ["tasks/*"]\n',
        '[[agent]]\nname = "a"\nmodell = "repair"\n',
        "agents.toml: unknown key 'modell' in [[agent]]; did you mean 'model'?",
    ),
    (
        'tasks = ["tasks/*"]\n',
        '[[agent]]\nname = "a"\nmodel = "repair"\n[generations]\nvariants = 1\n',
        "agents.toml: 'generations' belongs into the challenge (challenge.toml); move it there",
    ),
    ('tasks = ["tasks/*"]\n', '[[agent]]\nmodel = "repair"\n', "agent (entry 1) lacks the key 'name'"),
    ('tasks = ["tasks/*"]\n', '[[agent]]\nname = "a"\nmodel = 3\n', "agent 'a'.model must be a string, not a whole"),
    ('tasks = ["tasks/*"]\n[[linter]]\ncommand = "no-such-linter {files}"\n', "", "the program no-such-linter of the"),
    ('tasks = ["tasks/*"]\n[[linter]]\ncommand = "/no/ruff {files}"\n', "", "the program /no/ruff of the [[linter]]"),
    ('tasks = ["nowhere"]\n', "", "there is no task"),
    ("tasks = []\n", "", "tasks"),
    ("taks = 1\n", "", "taks"),
    ('tasks = ["tasks/*"]\n[limits]\nseconds = 100\n', "", "120 are held"),
    ('tasks = ["tasks/*"]\n[judge]\nbase_url = "http://evil"\n', "", "base_url"),
    ('tasks = ["tasks/*"]\n[scars]\nrules = ["none.toml"]\n', "", "none.toml"),
    ('tasks = ["tasks/*"]\n', '[[agent]]\nname = "a b"\nmodel = "repair"\n', "'a b' is no name"),
    ('tasks = ["tasks/*"]\n', '[[agent]]\nname = "a"\n', "neither a model nor a command"),
    ('tasks = ["tasks/*"]\n', '[[agent]]\nname = "a"\nmodel = "repair"\nprompts = ["rules.md"]\n', "reads no prompts"),
    ('tasks = ["tasks/*"]\n', '[[agent]]\nname = "a"\nmodel = "script:x.jsonl"\nprompts = ["no.md"]\n', "no.md"),
    ('tasks = ["tasks/*"]\n', '[[agent]]\nname = "a"\nmodel = "gpt"\n', "unknown model"),
    ('tasks = ["tasks/*"]\n', 2 * '[[agent]]\nname = "a"\nmodel = "repair"\n', "two agents are called a"),
    (
        'tasks = ["tasks/*"]\n',
        '[[agent]]\nname = "a"\nmodel = "repair"\ntasks = ["tasks/t0"]\n',
        "leaves out t1",
    ),
    ('tasks = ["tasks/*"]\n', '[[agent]]\nname = "a"\nmodels = {small = "x"}\n', "no tier 'small'"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("challenge", "agents", "sentence"), BAD, ids=[each[2] for each in BAD])
def test_what_does_not_fit_is_one_sentence_and_nothing_is_left(
    challenge: str, agents: str, sentence: str, *, world: ChallengeWorld, jumar: Called
) -> None:
    world.agents("good")
    world.write("challenge.toml", challenge)
    if agents:
        world.write("agents.toml", agents)

    code, _, said = jumar(*world.words())

    assert code == 2
    assert sentence in said
    assert "Traceback" not in said
    assert not Path("c").exists()


def test_a_campaign_of_no_challenge_is_not_ranked(world: ChallengeWorld, jumar: Called) -> None:
    Path("c").mkdir()
    for option in ("--rescore", "--resume"):
        code, _, said = jumar("evolve", option, "c")
        assert (code, "c; name the folder of one, or `last`" in said, "jumar batch" in said) == (2, True, False), said
    assert jumar("evolve")[0] == 2
    world.challenge()
    assert jumar("evolve", "challenge.toml", "--agents", "agents.toml", "--rescore", "c")[0] == 2
    assert jumar("evolve", "--resume", "c", "--rescore", "c")[0] == 2
    assert "takes no --generations" in jumar("evolve", "--resume", "c", "--generations", "2")[2]
    assert jumar("compare", "a", "b")[0] == 2
    shutil.rmtree("c")
