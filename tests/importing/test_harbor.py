"""A Harbor task that needs no container becomes a task; of any other one it is said what needs it."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from jumar.cli.main import call
from jumar.importing.dockerfile import read_dockerfile
from jumar.importing.harbor_format import read_harbor_task
from jumar.task.task import list_targets, load_task
from support.interop.harbor_tasks import ADDER, TASK_TOML, TEST_SH, write_task


def test_a_clean_task_becomes_one_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_task(tmp_path / "source")

    assert call(["import", "harbor", str(source), "-o", str(tmp_path / "tasks"), "--json"]) == 0

    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    folder = tmp_path / "tasks" / "adder"
    assert (told["folder"], told["files"], told["tests"], told["packages"]) == (str(folder), 1, 1, [])
    assert any("agent can read them" in note for note in told["notes"])
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert names == {"adder.py", "task.toml", "tests/test_adder.py"}, "no solution, no test.sh"
    task = load_task(folder)
    assert (task.name, task.suite.timeout_seconds, task.budget.seconds) == ("adder", 60.0, 300.0)
    assert task.instruction == "`add` in adder.py must add.\n\n(/app is the folder that you work in.)"
    assert list_targets(task) == ("adder.py",)
    assert tomllib.loads((folder / "task.toml").read_text())["files"]["protected"] == ["/tests/"]
    assert call(["import", "harbor", str(source), "-o", str(tmp_path / "tasks")]) == 2
    assert "is there already" in capsys.readouterr().err


def test_the_command_to_try_a_task_in_a_folder_with_a_space_can_be_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["import", "harbor", str(write_task(tmp_path / "source")), "-o", str(tmp_path / "o 2")]) == 0

    (line,) = (line for line in capsys.readouterr().out.splitlines() if "try it: " in line)
    assert shlex.split(line.partition("try it: ")[2]) == ["jumar", "check", str(tmp_path / "o 2" / "adder")]


@pytest.mark.slow
def test_the_task_is_judged_by_its_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_task(tmp_path / "source")
    assert call(["import", "harbor", str(source), "-o", str(tmp_path), "-q"]) == 0
    folder = tmp_path / "adder"
    capsys.readouterr()

    assert call(["score", str(folder), str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["passed"] == 0
    (folder / "adder.py").write_text("def add(a, b):\n    return a + b\n")
    assert call(["score", str(folder), str(folder), "--json"]) == 0


@pytest.mark.proof
def test_a_campaign_and_a_check_take_harbor_tasks_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, campaign = write_task(tmp_path / "tasks" / "hello"), tmp_path / "night"
    nginx = write_task(tmp_path / "nginx", environment__Dockerfile=DOCKER + "RUN apt-get install -y nginx\n")
    words = ["batch", f"{tmp_path}/tasks/*", "--model", "repair", "--campaign", str(campaign), "--json"]

    assert call([*words, str(nginx)]) == 2
    assert "nginx: " in (said := capsys.readouterr().err)
    assert "does not run without a container" in said
    assert not campaign.exists(), "nothing is left of what was refused"
    assert call(words) == 0
    told = capsys.readouterr()
    assert "hello: made of a Harbor task; its tests lie in the tree, read-only" in told.err
    assert json.loads(told.out.splitlines()[-1])["by_stop"] == {"green": 1}
    assert (campaign / "tasks" / "hello" / "task.toml").exists()

    assert call(["check", str(source), str(nginx), "--json"]) == 1
    found = {each["task"]: each for each in json.loads(capsys.readouterr().out.splitlines()[-1])["tasks"]}
    assert (found["hello"]["valid"], found["hello"]["reference"]) == (True, "none")
    assert "does not run without a container" in found["nginx"]["problems"][0]


DOCKER = ADDER["environment/Dockerfile"]

OBSTACLES: dict[str, tuple[dict[str, str | None], str]] = {
    "apt": ({"environment__Dockerfile": DOCKER + "RUN apt-get install -y nginx\n"}, "'RUN apt-get install -y nginx'"),
    "image": ({"environment__Dockerfile": DOCKER.replace("python:3.12-slim", "ubuntu:24.04")}, "'FROM ubuntu:24.04'"),
    "stages": ({"environment__Dockerfile": DOCKER + "FROM python:3.12\n"}, "has 'FROM python:3.12'"),
    "escape": ({"environment__Dockerfile": DOCKER + "COPY ../../tests .\n"}, "has 'COPY ../../tests .'"),
    "outside": ({"environment__Dockerfile": DOCKER + "COPY adder.py /etc/x\n"}, "COPY puts /etc/x outside"),
    "no Dockerfile": ({"environment__Dockerfile": None}, "has no Dockerfile"),
    "compose": ({"environment__docker-compose.yaml": "services: {}\n"}, "starts several containers"),
    "gpus": ({"task.toml": TASK_TOML + "gpus = 1\n"}, "[environment] gpus asks for GPUs"),
    "prebuilt": ({"task.toml": TASK_TOML + 'docker_image = "x"\n'}, "asks for a prebuilt image"),
    "steps": ({"task.toml": TASK_TOML + '[[steps]]\nname = "one"\n'}, "it has several steps"),
    "shell": ({"tests__test_adder.py": None}, "judges by commands in the container"),
    "paths": ({"tests__test_adder.py": "open('/app/out.txt')\n"}, "names '/app/out.txt'"),
    "reward": ({"tests__test.sh": TEST_SH + "./judge --strict\n"}, "tests/test.sh runs './judge --strict'"),
    "no pytest": ({"tests__test.sh": "echo 1 > /logs/verifier/reward.txt\n"}, "does not run pytest"),
}


@pytest.mark.parametrize("kind", OBSTACLES)
def test_what_needs_a_container_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    changed, words = OBSTACLES[kind]
    source = write_task(tmp_path / "source", **changed)

    assert call(["import", "harbor", str(source), "-o", str(tmp_path / "tasks")]) == 2

    told = capsys.readouterr().err
    assert "does not run without a container" in told
    assert words in told
    assert len(told.splitlines()) == 1
    assert not (tmp_path / "tasks").exists()


def test_a_link_among_the_tests_is_never_followed(tmp_path: Path) -> None:
    source = write_task(tmp_path / "source")
    (source / "tests" / "secret.txt").symlink_to("/etc/passwd")

    assert read_harbor_task(source).obstacles == ("tests/secret.txt is a link",)


def test_the_test_scripts_of_harbors_own_template_are_understood(tmp_path: Path) -> None:
    shell = (
        "#!/bin/bash\n"
        "apt-get update\napt-get install -y curl\n"
        "curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh\nsource $HOME/.local/bin/env\n"
        'if [ "$PWD" = "/" ]; then\n  echo "Set a WORKDIR"\n  exit 1\nfi\n'
        "if uvx \\\n  -p 3.13 \\\n  -w pytest==8.4.1 \\\n  -w numpy==2.1.0 \\\n"
        "  pytest /tests/test_adder.py -rA; then\n"
        "  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\nfi\n"
    )
    task = read_harbor_task(write_task(tmp_path / "source", tests__test__sh=None, **{"tests/test.sh": shell}))

    assert (task.obstacles, task.packages) == ((), ("numpy==2.1.0",))


def test_files_lie_where_the_image_has_them(tmp_path: Path) -> None:
    (tmp_path / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "src" / "pkg" / "a.py").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "Dockerfile").write_text(
        "# a comment\nFROM python:3.13\nWORKDIR /srv\nWORKDIR app\nCOPY src/ ./lib/\nCOPY b.txt \\\n  c.txt\n"
        "RUN mkdir -p data && pip install --no-cache-dir attrs==25.1.0 'six>=1.16'\nCMD [\"bash\"]\n"
    )

    image = read_dockerfile(tmp_path)

    assert (image.workdir, image.python, image.obstacles) == ("/srv/app", "3.13", ())
    assert set(image.files) == {"lib/pkg/a.py", "c.txt"}
    assert image.packages == ("attrs==25.1.0", "six>=1.16")


def test_other_commands_say_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_task(tmp_path / "source")

    assert call(["run", str(source), "--model", "repair"]) == 2
    assert "is that of a Harbor task; make one of jumar's: jumar import harbor" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "task.toml").write_text("[tests]\n")
    assert call(["import", "harbor", str(tmp_path / "other")]) == 2
    assert "is no Harbor task" in capsys.readouterr().err
