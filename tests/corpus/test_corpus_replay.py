"""A replay believes nothing that a record says: it lays the trees out and runs the tests."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from jumar.cli.main import call as jumar
from jumar.corpus.export import build_corpus, keep_bases
from jumar.corpus.replay import Replayed, ReplayResources, ReplayStatus, build_source_lookup, replay_record
from jumar.corpus.schema import Record, encode_record, parse_records
from jumar.errors import BadInput, Infra
from jumar.runs.setup.marks import Trust
from support.processes.interpreters import PLAIN_PYTHON
from support.worlds import real_task_scripts as red_green
from support.worlds.kept_edit_world import FIX_A, FIX_B, FIX_C, OLD, A, C, claim, edit, ran, turn, write

SAMPLE = ("quixbugs-flatten", "exercism-python-hamming")


ANYBODY = Trust({}, anyone=True)


def again(record: Record, run: Path, room: Path, confirm: int = 1) -> Replayed:
    """*record*, executed again with the trees of *run*."""
    return anyio.run(
        replay_record,
        record,
        ReplayResources(
            sources=build_source_lookup([run], None, ANYBODY), python=PLAIN_PYTHON, room=room, confirm=confirm
        ),
    )


def file(record: Record, **changed: str) -> Record:
    """*record* with its only file changed."""
    (one,) = record.edit.files
    return edited(record, files=(replace(one, **changed),))


def edited(record: Record, **changed: object) -> Record:
    """*record* with another edit."""
    return replace(record, edit=replace(record.edit, **changed))


class TestARecordThatWasChanged:
    """What does not hold together is told, and nothing of it is run."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("tampered", "why"),
        [
            (lambda r: file(r, after="C = 1 \n"), "a text of two.py is not the one that its hash names"),
            (lambda r: file(r, before=""), "a text of two.py is not the one that its hash names"),
            (lambda r: file(r, encoding="base64"), "cannot be read"),
            (lambda r: file(r, encoding="rot13"), "'rot13' is no encoding"),
            (lambda r: file(r, path="../two.py"), "is not a path beneath the workspace"),
            (lambda r: file(r, path="one.py"), "one.py is another file in the tree that the edit begins from"),
            (lambda r: file(r, after_mode="160000"), "'160000', which is none"),
            (lambda r: file(r, after_mode="100755"), "do not lead to the tree after it"),
            (lambda r: edited(r, tree_after="0" * 64), "do not lead to the tree after it"),
            (lambda r: edited(r, patch=""), "git apply failed"),
            (lambda r: edited(r, patch=r.edit.patch.replace("+C = 1", "+C = 2")), "the patch leads to other files"),
            (lambda r: edited(r, patch=r.edit.patch.replace("two.py", "too.py")), "git apply failed"),
            (lambda r: edited(r, patch_encoding="base64"), "the patch cannot be read"),
        ],
    )
    def test_it_is_unstable(self, tmp_path: Path, tampered: Callable[[Record], Record], why: str) -> None:
        run = ran(tmp_path, turn(*FIX_C))
        (record,) = build_corpus([run]).records
        told = again(tampered(record), run, tmp_path / "room")

        assert (told.status, told.verifications) == (ReplayStatus.UNSTABLE, 0)
        assert why in told.differs[0]

    @pytest.mark.slow
    def test_what_cannot_be_found_is_refused(self, tmp_path: Path) -> None:
        run = ran(tmp_path, turn(*FIX_C))
        (record,) = build_corpus([run]).records

        with pytest.raises(BadInput, match="the run other is not here"):
            again(replace(record, run="other"), run, tmp_path / "room")
        with pytest.raises(BadInput, match="unknown runner 'none'"):
            again(replace(record, runner="none"), run, tmp_path / "room")
        with pytest.raises(BadInput, match=r"the suite of story:\d+ is none"):
            again(replace(record, suite='{"runner": 3}'), run, tmp_path / "room")
        with pytest.raises(Infra, match="cannot be read"):
            again(edited(record, tree_before="0" * 64), run, tmp_path / "room")

    def test_another_schema_is_refused(self, tmp_path: Path) -> None:
        (record,) = build_corpus([ran(tmp_path, turn(*FIX_C))]).records

        with pytest.raises(BadInput, match=r"line 2 of it has schema 'jumar\.corpus/9'"):
            parse_records(encode_record(record) + encode_record(replace(record, schema="jumar.corpus/9")), "it")


@pytest.mark.slow
class TestAReplay:
    """What comes out of real tests."""

    def test_every_kind_of_record_is_reproduced_without_its_run(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        wrong = (claim(A, "one.py"), edit("one.py", "A = 0", "A = 7"))
        more = (claim(C, "data.bin"), claim(C, "x/new.py"), write("data.bin", "t"), write("x/new.py", ""))
        ran(tmp_path / "runs", turn(*wrong, *FIX_B), turn(*FIX_A, *FIX_C, *more))
        where = ["-o", str(tmp_path / "c.jsonl"), "--objects", str(tmp_path / "kept"), "-q"]
        assert jumar(["corpus", str(tmp_path / "runs"), *where]) == 0
        shutil.rmtree(tmp_path / "runs")
        capfd.readouterr()

        assert (
            jumar(["corpus", "replay", str(tmp_path / "c.jsonl"), "--objects", str(tmp_path / "kept"), "--json"]) == 0
        )
        said = capfd.readouterr()
        told = json.loads(said.out.splitlines()[-1])
        assert (told["records"], told["reproduced"], told["verifications"]) == (3, 3, 9)
        assert [row.split()[1] for row in said.err.splitlines()] == ["reproduced"] * 3

    def test_what_differs_is_told(self, tmp_path: Path) -> None:
        bad = "A = 1\nKEPT = 'k'\nB = 0\nA = 2\nKEPT = 'z'\n"  # the journal's judge believes it, the tests do not
        run = ran(tmp_path, turn(claim(A, "one.py"), write("one.py", bad)))
        (record,) = build_corpus([run]).records
        told = again(replace(record, tests=(*record.tests, replace(record.tests[0], id=OLD))), run, tmp_path / "room")

        assert told.status is ReplayStatus.UNSTABLE
        assert told.differs == (
            f"without the edit: {OLD} is green; claim a test that is red",
            f"with the edit taken back: {OLD} is green; claim a test that is red",
            f"with the edit: {A} is failed, not green",
            f"with the edit: {OLD} is failed, not green",
            f"the edit costs {OLD}",
        )

    @pytest.mark.proof
    def test_it_may_be_confirmed_and_unstable_is_told_by_the_exit_code(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        run = ran(tmp_path, turn(claim(A, "one.py"), write("one.py", "A = 1\nKEPT = 'k'\nA = 2\n")))
        (tmp_path / "c.jsonl").write_bytes(b"".join(map(encode_record, build_corpus([run]).records)))
        arguments = [
            "corpus",
            "replay",
            str(tmp_path / "c.jsonl"),
            "--runs",
            str(run),
            "--trust",
            "--confirm",
            "2",
            "--json",
            "-q",
        ]

        assert jumar(arguments) == 1
        told = json.loads(capfd.readouterr().out.splitlines()[-1])
        assert (told["unstable"], told["confirm"], told["verifications"], told["executions"]) == (1, 2, 6, 6)
        assert told["results"][0]["differs"] == [f"with the edit: {A} is failed, not green"]

    @pytest.mark.parametrize(
        ("changed", "why"),
        [({"run": "gone"}, "the run gone is not here"), ({"runner": "none"}, "unknown runner 'none'")],
    )
    def test_what_is_missing_for_a_later_record_is_told_before_the_first_is_replayed(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str], changed: Mapping[str, str], why: str
    ) -> None:
        (record,) = build_corpus([ran(tmp_path, turn(*FIX_C))]).records
        both = (record, replace(record, **changed))
        (tmp_path / "c.jsonl").write_bytes(b"".join(map(encode_record, both)))
        capfd.readouterr()

        assert jumar(["corpus", "replay", str(tmp_path / "c.jsonl"), "--runs", str(tmp_path), "--trust", "--json"]) == 2
        said = capfd.readouterr()
        assert why in said.err
        assert "reproduced" not in said.err

    def test_no_evidence_says_nothing_of_a_record(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        run = ran(tmp_path, turn(*FIX_C))
        silent = tmp_path / "python"
        silent.write_text('#!/bin/sh\ncase "$*" in *sys.executable*) echo "$0";; esac\nexit 0\n')
        silent.chmod(0o755)
        (tmp_path / "c.jsonl").write_bytes(b"".join(map(encode_record, build_corpus([run]).records)))
        arguments = ["corpus", "replay", str(tmp_path / "c.jsonl"), "--runs", str(run), "--trust", "--json", "--python"]

        assert jumar([*arguments, str(silent)]) == 5
        told = json.loads(capfd.readouterr().out.splitlines()[-1])
        assert (told["void"], told["results"][0]["status"]) == (1, "void")
        assert "no usable evidence without the edit" in told["results"][0]["differs"][0]
        assert jumar([*arguments, "no-such-python"]) == 2


@pytest.mark.proof
def test_a_test_that_has_a_name_of_its_own_is_found_and_reproduced(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "app.py").write_text("ONE = 0\n")
    body = "def test_it():\n    import app\n\n    assert app.ONE == 1\n"
    (tmp_path / "work" / "test_app.py").write_text(f"# jumar: test-id=one-is-one\n{body}")
    calls = [{"name": "edit_claim", "arguments": {"test_id": "one-is-one", "edit_target": "app.py"}}]
    calls += [{"name": "write_file", "arguments": {"path": "app.py", "text": "ONE = 1\n"}}]
    (tmp_path / "s.jsonl").write_text(json.dumps({"tool_calls": calls}) + "\n")
    chosen = ["--agent", "driver", "--gate", "strict", "--model", f"script:{tmp_path / 's.jsonl'}"]

    assert jumar(["run", str(tmp_path / "work"), *chosen, "--runs", str(tmp_path / "runs"), "-q"]) == 0
    (record,) = build_corpus([tmp_path / "runs"]).records
    (test,) = record.tests
    (tmp_path / "c.jsonl").write_bytes(encode_record(record))
    assert (test.id, test.id_source, test.path, test.source) == ("one-is-one", "annotation", "test_app.py", body)
    assert counted(tmp_path / "c.jsonl", tmp_path / "runs", capfd)["reproduced"] == 1
    assert jumar(["corpus", "replay", str(tmp_path / "c.jsonl"), "--runs", str(tmp_path / "runs")]) == 0
    assert "\ngrade D, sandbox S0\n" in capfd.readouterr().out


def strict_runs(data: Path, tasks: Sequence[red_green.Entry], into: Path) -> list[Path]:
    """A run under the gate of each of *tasks*, by a script that claims and solves."""
    for task in tasks:
        folder = red_green.laid_out(data, task, into / "tasks")
        script = into / f"{task['id']}.jsonl"
        script.write_text(red_green.script_for(task, data / "solutions" / task["id"]), "utf-8")
        chosen = ["--agent", "driver", "--gate", "strict", "--model", f"script:{script}", "--runs", str(into / "runs")]
        assert jumar(["run", str(folder), *chosen, "-q"]) == 0, task["id"]
    return sorted(path.parent for path in (into / "runs").glob("*/events.jsonl"))


def exported(runs: Sequence[Path], into: Path) -> bytes:
    """The corpus of *runs*, the same twice: as they lie, and moved and in another order."""
    moved = [Path(shutil.copytree(run, into / "moved" / run.name)) for run in reversed(runs)]
    shutil.copytree(runs[0].parent / ".objects", into / "moved" / ".objects")  # which the runs share
    first, second = into / "first.jsonl", into / "second.jsonl"
    assert jumar(["corpus", str(runs[0].parent), "-o", str(first), "-q"]) == 0
    assert jumar(["corpus", *map(str, moved), "-o", str(second), "-q"]) == 0
    assert first.read_bytes() == second.read_bytes()
    return first.read_bytes()


def counted(corpus: Path, runs: Path, capfd: pytest.CaptureFixture[str]) -> Mapping[str, int]:
    """What a replay of *corpus* says of its records."""
    capfd.readouterr()
    code = jumar(["corpus", "replay", str(corpus), "--runs", str(runs), "--json", "-q"])
    told: Mapping[str, int] = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert code == (5 if told["void"] else int(bool(told["unstable"])))
    return told


@pytest.mark.slow
def test_a_sample_of_real_tasks_is_reproduced(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tasks = [task for task in red_green.tasks(data) if task["id"] in SAMPLE]
    assert len(tasks) == len(SAMPLE)
    written = exported(strict_runs(data, tasks, tmp_path), tmp_path)
    told = counted(tmp_path / "first.jsonl", tmp_path / "runs", capfd)

    assert (told["records"], told["reproduced"]) == (2, 2)
    for place in (tmp_path, Path(sys.prefix), data, Path(__file__).parent):
        assert str(place).encode() not in written


@pytest.mark.proof
def test_every_triple_of_the_real_tasks_is_reproduced(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], figure: Callable[[str, str], None]
) -> None:
    tasks = list(red_green.tasks(data))
    written = exported(strict_runs(data, tasks, tmp_path), tmp_path)
    told = counted(tmp_path / "first.jsonl", tmp_path / "runs", capfd)

    assert len(tasks) >= 20
    assert told["records"] >= len(tasks)
    assert told["reproduced"] + told["unstable"] == told["records"]
    assert told["reproduced"] >= 0.95 * told["records"]
    figure(
        "corpus",
        f"{told['records']} records of {len(tasks)} real tasks under the gate ({len(written)} bytes, two exports "
        f"byte-identical): {told['reproduced']} reproduced, {told['unstable']} flagged as unstable",
    )


@pytest.mark.slow
def test_it_loads_with_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    datasets = pytest.importorskip("datasets", reason="pip install datasets (about 400 MB) to load a corpus with it")
    new = turn(claim(C, "data.bin"), claim(C, "x/new.py"), write("data.bin", "t"), write("x/new.py", ""), *FIX_C)
    found = build_corpus([ran(tmp_path, turn(*FIX_A), turn(*FIX_B), new)])
    data = b"".join(map(encode_record, found.records))
    (tmp_path / "c.jsonl").write_bytes(data)
    rows = datasets.load_dataset("json", data_files=str(tmp_path / "c.jsonl"), split="train")

    assert list(rows) == [json.loads(one) for one in data.splitlines()]


@pytest.mark.slow
def test_kept_bases_are_all_a_replay_needs_of_a_run(tmp_path: Path) -> None:
    run = ran(tmp_path, turn(*FIX_A, *FIX_C))
    found = build_corpus([run])
    keep_bases(found, tmp_path / "kept")
    source = build_source_lookup((), tmp_path / "kept", ANYBODY)("story")

    assert [source.trees.manifest(r.edit.tree_before) for r in found.records]
    with pytest.raises(BadInput, match="there is no folder"):
        build_source_lookup((), tmp_path / "nowhere", ANYBODY)
