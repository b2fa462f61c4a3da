"""A corpus holds one record for each edit that was kept for a red test, and the same journals give the same bytes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.cli.main import call as jumar
from jumar.core.state import events as ev
from jumar.core.state.reply import ToolCall
from jumar.corpus.build_record import PathScrubber
from jumar.corpus.export import Corpus, build_corpus, find_run_directories, keep_bases
from jumar.corpus.schema import Record, encode_record, parse_records
from jumar.errors import BadInput
from jumar.journal.writer import read_journal
from jumar.models.script import ScriptLine
from jumar.workspace.files import trees
from support.worlds.driver_world import swift
from support.worlds.kept_edit_world import (
    FILES,
    FIX_A,
    FIX_B,
    FIX_C,
    IDS,
    A,
    B,
    C,
    claim,
    delete,
    edit,
    ran,
    turn,
    write,
)


def corpus(folder: Path, *lines: ScriptLine, files: Mapping[str, bytes] = FILES) -> Corpus:
    """The corpus of one run with these replies."""
    return build_corpus([ran(folder, *lines, files=files)])


def claims(found: Corpus) -> list[tuple[str, ...]]:
    """The claimed tests of each record."""
    return [tuple(test.id for test in record.tests) for record in found.records]


def changes(record: Record) -> dict[str, tuple[str, str]]:
    """Path -> text before and after."""
    return {file.path: (file.before, file.after) for file in record.edit.files}


class TestAnEdit:
    """What a record says of the edit it is made from."""

    def test_all_of_it_is_in_the_record(self, tmp_path: Path) -> None:
        (record,) = corpus(tmp_path, turn(*FIX_C)).records
        entries = {e.seq: e.event for e in read_journal(tmp_path / "story")}
        (test,) = record.tests
        (red,) = record.red

        assert (record.run, record.task, record.agent, record.instruction) == ("story", "app", "driver", "Do it.")
        assert (record.model, record.gate, record.runner) == ("script:replies.jsonl", "strict", "pytest")
        assert record.judged == IDS
        assert (test.id, test.id_source, test.path) == (C, "native", "test_app.py")
        assert test.source == "def test_c():\n    assert two.C == 1\n"
        assert (test.first_line, test.last_line) == (15, 16)
        assert (test.red.status, test.red.outcome, test.red.tree) == ("fail", "failed", record.edit.tree_before)
        assert (test.green.status, test.green.outcome) == ("pass", "passed")
        assert changes(record) == {"two.py": ("C = 0\n", "C = 1\n")}
        assert record.edit.patch.startswith("diff --git a/two.py b/two.py\n")
        assert (red.trigger, red.seq, red.passed, red.total) == ("baseline", test.red.verification, 1, 4)
        assert f"FAILED {C}" in red.output
        assert (record.green.trigger, record.green.tree, record.green.passed) == ("turn", record.edit.tree_after, 2)
        assert record.id == f"story:{record.seq}"
        for seq, kind in (
            (test.red.seq, ev.TestRun), (red.seq, ev.Tests), (test.claim.seq, ev.EditClaim), (record.seq, ev.Write),
            (test.green.seq, ev.TestRun), (record.green.seq, ev.Tests), (record.best_seq, ev.BestFound),
        ):  # fmt: skip
            assert isinstance(entries[seq], kind)
        order = [test.red.seq, red.seq, test.claim.seq, record.seq, test.green.seq, record.green.seq, record.best_seq]
        assert order == sorted(order)

    def test_one_edit_for_two_tests_is_one_record(self, tmp_path: Path) -> None:
        both = (claim(A, "one.py"), claim(B, "one.py"), write("one.py", "A = 1\nKEPT = 'k'\nB = 1\n"))

        assert claims(corpus(tmp_path, turn(*both))) == [(A, B)]

    def test_several_files_of_one_claim_are_one_record(self, tmp_path: Path) -> None:
        more = (claim(C, "extra/new.py"), claim(C, "gone.py"), write("extra/new.py", "N = 1\n"), delete("gone.py"))
        (record,) = corpus(tmp_path, turn(*FIX_C[:1], *more, *FIX_C[1:])).records

        assert [(f.path, f.before_mode, f.after_mode) for f in record.edit.files] == [
            ("extra/new.py", "", "100644"),
            ("gone.py", "100644", ""),
            ("two.py", "100644", "100644"),
        ]
        assert [(f.before_sha256 == "", f.after_sha256 == "") for f in record.edit.files][:2] == [
            (True, False),
            (False, True),
        ]

    def test_what_is_no_text_is_base64(self, tmp_path: Path) -> None:
        more = (claim(C, "data.bin"), write("data.bin", "text now\n"))
        (record,) = corpus(tmp_path, turn(*FIX_C, *more)).records

        assert [(f.path, f.encoding, f.before, f.after) for f in record.edit.files] == [
            ("data.bin", "base64", "/wBvbGQK", "dGV4dCBub3cK"),
            ("two.py", "utf-8", "C = 0\n", "C = 1\n"),
        ]
        assert "GIT binary patch" in record.edit.patch

    def test_an_edit_that_was_not_claimed_is_none(self, tmp_path: Path) -> None:
        found = corpus(tmp_path, turn(write("two.py", "C = 1\n")))

        assert (found.records, found.left, found.runs) == ((), (), 1)


class TestATurn:
    """Edits of one turn, told apart by their claims."""

    @pytest.mark.slow
    def test_two_claims_are_two_records_one_on_top_of_the_other(self, tmp_path: Path) -> None:
        first, second = corpus(tmp_path, turn(*FIX_A, *FIX_C)).records

        assert changes(first) == {"one.py": (text("one.py"), text("one.py").replace("A = 0", "A = 1"))}
        assert changes(second) == {"two.py": ("C = 0\n", "C = 1\n")}
        assert first.edit.tree_after == second.edit.tree_before
        assert second.edit.tree_after == first.green.tree == second.green.tree
        assert first.best_seq == second.best_seq

    @pytest.mark.slow
    def test_two_claims_on_one_file_are_told_apart(self, tmp_path: Path) -> None:
        first, second = corpus(tmp_path, turn(*FIX_A, *FIX_B)).records
        half = text("one.py").replace("A = 0", "A = 1")

        assert changes(first) == {"one.py": (text("one.py"), half)}
        assert changes(second) == {"one.py": (half, half.replace("B = 0", "B = 1"))}

    def test_claims_that_took_turns_at_one_file_are_one_record(self, tmp_path: Path) -> None:
        again = (claim(A, "one.py"), edit("one.py", "MORE = 'm'\n", ""))
        found = corpus(tmp_path, turn(*FIX_A, *FIX_B, *again))

        assert claims(found) == [(A, B)]
        assert changes(found.records[0])["one.py"][1] == "A = 1\nKEPT = 'k'\nB = 1\n"

    @pytest.mark.slow
    def test_what_went_back_is_in_no_record(self, tmp_path: Path) -> None:
        wrong = (claim(A, "one.py"), edit("one.py", "A = 0", "A = 7"))
        found = corpus(tmp_path, turn(*wrong, *FIX_C))

        assert claims(found) == [(C,)]
        assert found.records[0].edit.tree_after == found.records[0].green.tree

    def test_an_edit_that_stayed_without_an_earlier_one_of_its_file(self, tmp_path: Path) -> None:
        wrong = (claim(A, "one.py"), edit("one.py", "A = 0", "A = 7"))
        (record,) = corpus(tmp_path, turn(*wrong, *FIX_B)).records

        assert changes(record) == {"one.py": (text("one.py"), text("one.py").replace("B = 0", "B = 1"))}
        assert record.edit.tree_after == record.green.tree

    @pytest.mark.slow
    def test_an_edit_that_costs_a_green_is_in_no_record(self, tmp_path: Path) -> None:
        costly = (claim(A, "one.py"), write("one.py", "A = 1\nB = 0\n"))

        assert claims(corpus(tmp_path, turn(*costly, *FIX_C))) == [(C,)]

    @pytest.mark.slow
    def test_a_test_that_was_written_first_is_part_of_the_base(self, tmp_path: Path) -> None:
        new = "import two\n\n\ndef test_new():\n    assert two.NEW == 1\n"
        fix = (claim("test_new.py::test_new", "two.py"), write("two.py", "C = 0\nNEW = 1\n"))
        (record,) = corpus(tmp_path, turn(write("test_new.py", new)), turn(*fix)).records

        assert record.tests[0].source == "def test_new():\n    assert two.NEW == 1\n"
        assert list(changes(record)) == ["two.py"]
        assert record.judged == (*IDS, "test_new.py::test_new")

    @pytest.mark.parametrize("code_first", [False, True])
    def test_a_test_that_was_written_beside_it_is_in_the_base_only_if_it_came_before(
        self, tmp_path: Path, *, code_first: bool
    ) -> None:
        new = (write("test_new.py", "import two\n\n\ndef test_new():\n    assert two.NEW == 1\n"),)
        found = corpus(tmp_path, turn(*FIX_C, *new) if code_first else turn(*new, *FIX_C))

        assert [list(changes(record)) for record in found.records] == [["two.py"]]
        assert (found.records[0].edit.tree_after == found.records[0].green.tree) is not code_first


class TestTheRed:
    """The red that a claim stands on."""

    @pytest.mark.slow
    def test_it_is_that_of_the_tree_the_edit_began_from(self, tmp_path: Path) -> None:
        wrong = (claim(C, "two.py"), edit("two.py", "C = 0", "C = 7"))
        (record,) = corpus(tmp_path, turn(*wrong), turn(*FIX_C)).records

        assert record.tests[0].red.tree == record.edit.tree_before == record.start_tree

    @pytest.mark.slow
    def test_it_is_the_newest_one(self, tmp_path: Path) -> None:
        look = turn(ToolCall("run_tests", {}))
        (record,) = corpus(tmp_path, look, turn(*FIX_C)).records

        assert record.red[0].trigger == "model"
        assert record.tests[0].red.verification == record.red[0].seq

    @pytest.mark.slow
    def test_claims_of_two_verifications_name_both(self, tmp_path: Path) -> None:
        both = (claim(A, "one.py"), ToolCall("run_tests", {}), claim(B, "one.py"))
        (record,) = corpus(tmp_path, turn(*both, write("one.py", "A = 1\nKEPT = 'k'\nB = 1\n"))).records

        assert [seen.trigger for seen in record.red] == ["baseline", "model"]
        assert [t.red.verification for t in record.tests] == [seen.seq for seen in record.red]


class TestTheCost:
    """What a record cost, as far as that can be told."""

    @pytest.mark.slow
    def test_it_is_all_since_the_last_edit_that_was_kept(self, tmp_path: Path) -> None:
        wrong = turn(claim(C, "two.py"), edit("two.py", "C = 0", "C = 7"))
        first, second = (r.cost for r in corpus(tmp_path, turn(*FIX_A), wrong, turn(*FIX_C)).records)

        assert (first.calls, first.usd, first.input_tokens, first.cached_tokens, first.output_tokens) == (
            1, 0.25, 100, 40, 10,
        )  # fmt: skip
        assert (second.calls, second.usd, second.shared_by) == (2, 0.5, 1)

    @pytest.mark.slow
    def test_records_of_one_turn_share_it(self, tmp_path: Path) -> None:
        first, second = (r.cost for r in corpus(tmp_path, turn(*FIX_A, *FIX_C)).records)

        assert first == second
        assert (first.calls, first.usd, first.shared_by) == (1, 0.25, 2)


EDITS = {
    A: [edit("one.py", "A = 0\n", "A = 1\n"), edit("one.py", "A = 0\n", "A = 7\n"), edit("one.py", "A = 1", "A = 2")],
    B: [edit("one.py", "B = 0\n", "B = 1\n"), edit("one.py", "KEPT = 'k'\n", ""), edit("one.py", "MORE", "LESS")],
    C: [edit("two.py", "C = 0\n", "C = 1\n"), edit("two.py", "C = 0\n", "C = 2\n"), edit("two.py", "C = 2", "C = 1")],
}
PAIRS = [(claim(test_id, str(e.arguments["path"])), e) for test_id, some in EDITS.items() for e in some]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=5), min_size=1, max_size=4), st.integers(0, 6))
def test_the_records_are_exactly_the_way_from_the_first_tree_to_the_best(
    turns: list[list[tuple[ToolCall, ToolCall]]], stop: int
) -> None:
    with swift() as folder:
        run = ran(folder, *(turn(*(call for pair in some for call in pair)) for some in turns), stop=stop)
        found = build_corpus([run])
        entries = [e.event for e in read_journal(run)]
    best = [e.tree for e in entries if isinstance(e, ev.BestFound)]

    here = best[0]
    for record in found.records:
        assert record.edit.tree_before == here
        assert all(test.red.status == "fail" and test.green.status == "pass" for test in record.tests)
        here = record.edit.tree_after
    assert here == best[-1]
    assert found.left == ()
    assert sum(r.cost.usd / r.cost.shared_by for r in found.records) <= 0.25 * len(turns) + 1e-9


class TestTheBytes:
    """The same journals give the same corpus, and it says nothing of the machine."""

    @pytest.mark.slow
    def test_neither_place_nor_order_nor_repetition_matter(self, tmp_path: Path) -> None:
        runs = [ran(tmp_path / "runs", turn(*FIX_A, *FIX_C), name=name) for name in ("late", "early", "mid")]
        (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
        moved = [Path(shutil.copytree(run, tmp_path / "elsewhere" / "deep" / f"x{run.name}")) for run in runs]

        once = b"".join(map(encode_record, build_corpus([tmp_path / "runs"]).records))
        again = b"".join(map(encode_record, build_corpus([*reversed(moved), tmp_path / "elsewhere", moved[0]]).records))

        assert once == again
        assert [r.run for r in parse_records(once, "it")] == ["early", "early", "late", "late", "mid", "mid"]
        assert str(tmp_path).encode() not in once

    @pytest.mark.slow
    def test_what_is_written_reads_back(self, tmp_path: Path) -> None:
        found = corpus(tmp_path, turn(*FIX_A, *FIX_C))

        assert parse_records(b"".join(map(encode_record, found.records)), "it") == found.records

    @pytest.mark.slow
    def test_every_record_has_the_same_keys_and_types(self, tmp_path: Path) -> None:
        new = turn(claim(C, "data.bin"), claim(C, "x/new.py"), write("data.bin", "t"), write("x/new.py", ""), *FIX_C)
        found = corpus(tmp_path, turn(*FIX_A), turn(claim(B, "gone.py"), delete("gone.py"), *FIX_B), new)
        shapes = {json.dumps(shape(json.loads(encode_record(record)))) for record in found.records}

        assert len(found.records) == 3
        assert len(shapes) == 1
        assert '"empty"' not in shapes.pop()

    @pytest.mark.slow
    def test_an_export_changes_nothing_in_a_run(self, tmp_path: Path) -> None:
        run = ran(tmp_path, turn(*FIX_A, *FIX_C))
        before = {p: p.stat().st_mtime_ns for p in run.rglob("*")}
        build_corpus([run])

        assert {p: p.stat().st_mtime_ns for p in run.rglob("*")} == before

    @pytest.mark.parametrize(
        ("said", "shown"),
        [
            ("/var/r/rooms/0a1b2c3d/pkg/a.py:3: in f", "pkg/a.py:3: in f"),
            ('File "/x/rooms/0a1b2c3d/a.py"', 'File "a.py"'),
            ("/usr/lib/python3.11/json/decoder.py:1", "json/decoder.py:1"),
            ("/v/lib/python3.12/site-packages/p/q.py:1", "p/q.py:1"),
            ("/home/me/src/jumar/child/pytest/reporter.py:82: in _ring", "jumar/child/pytest/reporter.py:82: in _ring"),
            ("src/jumar/child/pytest/reporter.py:82", "src/jumar/child/pytest/reporter.py:82"),
            ("tests/rooms/0a1b2c3d/a.py and http/rooms", "tests/rooms/0a1b2c3d/a.py and http/rooms"),
            ("/the/task/app.py /py/bin/x", "./app.py PYTHON/bin/x"),
            ("\ud800 stays readable", "\\ud800 stays readable"),
        ],
    )
    def test_folders_of_the_machine_are_taken_out_of_what_was_shown(self, said: str, shown: str) -> None:
        assert PathScrubber(((("/the/task", ".")), ("/py", "PYTHON"))).scrub(said) == shown


class TestThePatch:
    """The patch of a record is one for git."""

    @pytest.mark.slow
    def test_git_applies_all_of_them_in_order(self, tmp_path: Path) -> None:
        new = turn(claim(C, "data.bin"), claim(C, "x/new.py"), write("data.bin", "t"), write("x/new.py", ""), *FIX_C)
        found = corpus(tmp_path, turn(*FIX_A, claim(B, "gone.py"), delete("gone.py"), *FIX_B), new)
        there = tmp_path / "there"
        there.mkdir()
        for path, data in FILES.items():
            (there / path).write_bytes(data)
        for record in found.records:
            subprocess.run(["git", "apply", "-"], input=record.edit.patch.encode(), cwd=there, check=True)
        wanted = {f.path: f for record in found.records for f in record.edit.files}

        assert len(found.records) == 3
        for path, file in wanted.items():
            assert (there / path).exists() is bool(file.after_mode)
        assert (there / "one.py").read_text() == "A = 1\nKEPT = 'k'\nMORE = 'm'\nB = 1\n"
        assert (there / "data.bin").read_bytes() == b"t"


class TestWhatIsRead:
    """Only runs are read, and only whole ones are believed."""

    def test_a_workspace_cannot_plant_a_run(self, tmp_path: Path) -> None:
        run = ran(tmp_path, turn(*FIX_C))
        shutil.copytree(run, tmp_path / "copy")
        shutil.move(tmp_path / "copy", run / "workspace" / "planted")

        assert find_run_directories([tmp_path]) == (run,)

    def test_a_folder_without_a_run_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="is no run and holds none"):
            build_corpus([tmp_path])

    def test_a_damaged_journal_is_refused_by_its_name(self, tmp_path: Path) -> None:
        run = ran(tmp_path, turn(*FIX_C))
        journal = run / "events.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b'"usd":0.25', b'"usd":9.25'))

        with pytest.raises(BadInput, match=f"^{run}: line .* leave this run out"):
            build_corpus([tmp_path])

    def test_a_changed_last_line_is_refused(self, tmp_path: Path) -> None:
        run = ran(tmp_path, turn(*FIX_C))
        *most, last = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
        (run / "events.jsonl").write_bytes(b"".join(most) + last.replace(b'"stop":"', b'"why":"x","stop":"', 1))

        with pytest.raises(BadInput, match=f"^{run}"):
            build_corpus([run])

    def test_two_runs_of_one_name_are_refused(self, tmp_path: Path) -> None:
        runs = [ran(tmp_path / "x", turn(*FIX_C)), ran(tmp_path / "y", turn(*FIX_A))]

        with pytest.raises(BadInput, match="two different runs of the name story"):
            build_corpus(runs)

    @pytest.mark.slow
    def test_a_run_that_goes_on_counts_as_far_as_it_has_come(self, tmp_path: Path) -> None:
        run = ran(tmp_path, turn(*FIX_A), turn(*FIX_C))
        whole = build_corpus([run]).records
        lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
        (run / "events.jsonl").write_bytes(b"".join(lines[: whole[0].best_seq + 1]))
        (run / "head").unlink()

        assert build_corpus([run]).records == whole[:1]


@pytest.mark.slow
def test_the_bases_can_be_kept_apart_from_the_runs(tmp_path: Path) -> None:
    found = corpus(tmp_path, turn(*FIX_A, *FIX_C))
    keep_bases(found, tmp_path / "kept")
    shutil.rmtree(tmp_path / "story")
    kept = {p.parent.name + p.name for p in (tmp_path / "kept").rglob("*") if p.is_file()}

    for record in found.records:
        assert record.edit.tree_before in kept
        manifest = trees.decode(
            (tmp_path / "kept" / record.edit.tree_before[:2] / record.edit.tree_before[2:]).read_bytes()
        )
        assert {node.sha256 for node in manifest.values()} <= kept


class TestTheCommand:
    """`jumar corpus` as a person calls it."""

    @pytest.mark.slow
    def test_records_are_written_and_told(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        ran(tmp_path / "runs", turn(*FIX_A, *FIX_C))

        assert jumar(["corpus", str(tmp_path / "runs"), "-o", str(tmp_path / "c.jsonl"), "--json", "-q"]) == 0
        said = json.loads(capfd.readouterr().out.splitlines()[-1])
        assert (said["records"], said["runs"], said["left"]) == (2, 1, [])
        assert len(parse_records((tmp_path / "c.jsonl").read_bytes(), "it")) == 2

    def test_options_may_come_first_and_a_dash_is_standard_output(
        self, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        ran(tmp_path / "runs", turn(*FIX_C))

        assert jumar(["corpus", "-o", "-", str(tmp_path / "runs")]) == 0
        out = capfdbinary.readouterr()
        assert len(parse_records(out.out, "it")) == 1
        assert out.out.endswith(b"}\n"), "the same bytes as in a file"
        assert out.err == b"1 records of 1 runs\n"

    @pytest.mark.slow
    def test_nothing_is_written_onto_a_run(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        run = ran(tmp_path / "runs", turn(*FIX_C))
        journal = (run / "events.jsonl").read_bytes()
        (tmp_path / "link").symlink_to(run / "events.jsonl")
        elsewhere = ["-o", str(tmp_path / "c.jsonl"), "--objects", str(run / "objects")]
        for where in (["-o", str(run / "events.jsonl")], ["-o", str(tmp_path / "link")], elsewhere):
            assert jumar(["corpus", str(run), *where]) == 2
            assert "name another place" in capfd.readouterr().err
        assert (run / "events.jsonl").read_bytes() == journal

    def test_no_record_is_told_by_the_exit_code(self, tmp_path: Path) -> None:
        ran(tmp_path / "runs")

        assert jumar(["corpus", str(tmp_path / "runs"), "-o", str(tmp_path / "c.jsonl"), "-q"]) == 1
        assert (tmp_path / "c.jsonl").read_bytes() == b""

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            (["nowhere", "-o", "c"], "there is no nowhere"),
            (["RUNS", "-o", "-", "--json"], "name a file"),
            (["RUNS", "-o", "."], "is a folder"),
            (["RUNS", "-o", "no/such/c.jsonl"], "cannot write"),
            (["RUNS"], "Missing option"),
            (["replay", "nowhere.jsonl", "--runs", "RUNS"], "cannot read the corpus"),
            (["replay", "bad.jsonl", "--runs", "RUNS"], "line 1 of bad.jsonl is no record"),
            (["replay", "bad.jsonl"], "--runs"),
        ],
    )
    def test_what_cannot_be_done_is_one_sentence(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
        arguments: list[str],
        why: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        ran(tmp_path / "RUNS", turn(*FIX_C))
        (tmp_path / "bad.jsonl").write_text('{"schema": 3}\n')

        assert jumar(["corpus", *arguments]) == 2
        assert why in capfd.readouterr().err
        assert not list(tmp_path.glob("*.tmp"))


def text(path: str) -> str:
    """What a file of the world begins as."""
    return FILES[path].decode()


def shape(value: Any) -> object:
    """The keys and types of *value*; of a list, those that all its items have."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in sorted(value.items())}
    if isinstance(value, list):
        found = sorted({json.dumps(shape(inner)) for inner in value})
        return found or "empty"
    return type(value).__name__
