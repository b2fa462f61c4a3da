"""A bundle is the same bytes for the same run, and whatever was changed in one is found with nothing but the file."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from jumar.cli.main import call
from jumar.core.run.effects import Halt
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import TestPolicy
from jumar.errors import BadInput
from jumar.interop import bundle_format as form
from jumar.interop.audit_bundle import audit_bundle
from jumar.interop.bundle import format_sums, write_bundle
from support.worlds.run_world import TOTAL
from support.worlds.stored_runs import USUAL, work, write

Members = dict[str, bytes]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a best tree, a worse one that was put back, and a green one."""
    terms = replace(USUAL, policy=TestPolicy.ON_WRITE)
    return work(tmp_path_factory.mktemp("runs") / "r", write(12), write(3), write(TOTAL), terms=terms)


@pytest.fixture(scope="module")
def bundle(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "run.tar"
    write_bundle(run, out)
    return out


def test_the_same_run_is_the_same_bytes_wherever_it_lies(run: Path, bundle: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(run, tmp_path / "elsewhere" / "renamed", symlinks=True)

    written = write_bundle(moved, tmp_path / "again.tar")

    assert (tmp_path / "again.tar").read_bytes() == bundle.read_bytes()
    assert written.sha256 == sha256(bundle.read_bytes()).hexdigest() == audit_bundle(bundle).sha256


def test_it_is_whole_alone_and_any_tar_reads_it(bundle: Path, tmp_path: Path) -> None:
    alone = shutil.copy(bundle, tmp_path / "b.tar")

    found = audit_bundle(Path(alone))

    assert (found.ok, found.stop, found.run, found.findings) == (True, "green", "story", ())
    with tarfile.open(alone) as archive:
        members = {m.name: m for m in archive}
        assert len(members) == found.objects + 4
        assert {(m.mtime, m.uid, m.type) for m in members.values()} == {(0, 0, tarfile.REGTYPE)}
        sums = archive.extractfile("SHA256SUMS")
        assert sums is not None
        for line in sums.read().decode().splitlines():
            digest, name = line.split("  ")
            held = archive.extractfile(name)
            assert held is not None
            assert sha256(held.read()).hexdigest() == digest


@pytest.mark.slow
def test_a_changed_bit_anywhere_is_found(bundle: Path, tmp_path: Path) -> None:
    data, changed, step = bundle.read_bytes(), tmp_path / "b.tar", 199
    for place in range(0, len(data), step):  # a step without a factor of 512: all columns of headers come up
        changed.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 7]) + data[place + 1 :])
        try:
            assert not audit_bundle(changed).ok, place
        except BadInput as refused:
            assert str(changed) in str(refused)  # noqa: PT017  either way of finding it is right


def unpacked(bundle: Path) -> Members:
    with bundle.open("rb") as file:
        return {m.name: form.read_member(file, m) for m in form.read_members(file, "it")}


def packed(members: Members, out: Path) -> Path:
    """A bundle of *members* in canonical form, with sums that fit: as a careful forger would write it."""
    members = {name: data for name, data in members.items() if name != form.SUMS}
    sums = format_sums([(name, sha256(data).hexdigest()) for name, data in members.items()])
    whole = [
        form.build_header(name, len(data)) + data + form.pad(len(data))
        for name, data in {**members, form.SUMS: sums}.items()
    ]
    out.write_bytes(b"".join(whole) + form.ZEROS * 2)
    return out


def an_object(members: Members) -> str:
    return max(name for name in members if name.startswith(form.OBJECTS))


def edit(name: str, old: bytes, new: bytes) -> Callable[[Members], Members]:
    return lambda members: {**members, name: members[name].replace(old, new, 1)}


FORGERIES: dict[str, tuple[Callable[[Members], Members], str]] = {
    "result": (
        edit(form.RESULT, b'"passed": 17', b'"passed": 16'),
        "result.json was changed: 'passed' does not follow",
    ),
    "environment": (edit(form.INDEX, b'"runner": "pytest"', b'"runner": "cargo!"'), "'environment' does not follow"),
    "head": (edit(form.INDEX, b'"seq": ', b'"seq": 1'), "deleted here, at the end"),
    "journal": (edit(form.JOURNAL, b'"passed":12', b'"passed":13'), "was changed: line"),
    "missing": (lambda m: {k: v for k, v in m.items() if k != an_object(m)}, "is missing"),
    "more": (lambda m: {**m, form.OBJECTS + "f" * 64: b"x"}, "its bytes have another hash"),
    "foreign": (lambda m: {**m, form.OBJECTS + sha256(b"x").hexdigest(): b"x"}, "belongs to no tree"),
    "order": (lambda m: dict([*m.items()][::-1]), "not in the order"),
    "deep": (lambda m: {**m, form.RESULT: b"[" * 100_000}, "result.json was changed: it is no JSON object"),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forgery_whose_sums_fit_is_named(bundle: Path, tmp_path: Path, kind: str) -> None:
    forge, words = FORGERIES[kind]

    found = audit_bundle(packed(forge(unpacked(bundle)), tmp_path / "f.tar"))

    assert not found.ok
    assert any(words in finding for finding in found.findings), found.findings


def test_packing_alone_is_no_forgery(bundle: Path, tmp_path: Path) -> None:
    assert packed(unpacked(bundle), tmp_path / "f.tar").read_bytes() == bundle.read_bytes()


def hostile(entry: tarfile.TarInfo, data: bytes = b"") -> bytes:
    entry.size = len(data)
    return entry.tobuf(tarfile.USTAR_FORMAT) + data + form.pad(len(data)) + form.ZEROS * 2


def link(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return entry


def big(name: str, size: int) -> bytes:
    return form.build_header(name, size) + form.ZEROS * 2


HOSTILE = {
    "path": (hostile(tarfile.TarInfo("../../etc/cron.d/x"), b"x"), "no header of a bundle's member"),
    "absolute": (hostile(tarfile.TarInfo("/etc/passwd"), b"x"), "no header of a bundle's member"),
    "link": (hostile(link(form.RESULT)), "header of result.json at byte 0 was changed"),
    "size": (big(form.JOURNAL, 8_000_000_000), "ends inside events.jsonl"),
    "twice": (hostile(tarfile.TarInfo(form.INDEX))[:512] * 2 + form.ZEROS * 2, "holds bundle.json twice"),
    "empty": (form.ZEROS * 2, "holds no bundle.json"),
    "nothing": (b"", "no header of a bundle's member"),
    "text": (b"hello" * 500, "no header of a bundle's member"),
    "gzip": (b"\x1f\x8b\x08" + b"\0" * 600, "no header of a bundle's member"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    data, words = HOSTILE[kind]
    file = tmp_path / "b.tar"
    file.write_bytes(data)

    assert call(["log", "audit", str(file)]) == 2

    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["b.tar"], "nothing is unpacked"


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    with file.open("wb") as sparse:
        sparse.truncate(form.LIMIT_BYTES + 1)

    with pytest.raises(BadInput, match="at most 4294967296"):
        audit_bundle(file)


def test_a_large_journal_is_not_read_at_once() -> None:
    with pytest.raises(BadInput, match="more than the"):
        form.read_member(io.BytesIO(), form.Member(form.JOURNAL, 0, form.IN_MEMORY_BYTES + 1, ""))


def test_the_commands(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.tar"
    assert call(["log", "bundle", str(run), "-o", str(out), "--json"]) == 0
    written = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert call(["log", "audit", str(out), "--json"]) == 0
    audited = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (audited["ok"], audited["sha256"]) == (True, written["sha256"])
    out.write_bytes(out.read_bytes().replace(b"PASSING = 12", b"PASSING = 17"))

    assert call(["log", "audit", str(out)]) == 1

    said = capsys.readouterr().out
    assert "was changed: its bytes have another hash" in said
    assert call(["log", "bundle", str(run), "-o", str(run / "b.tar")]) == 2
    assert call(["log", "audit", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_run_that_has_not_ended_or_is_damaged_is_refused(tmp_path: Path) -> None:
    stopped = work(tmp_path / "stopped", write(9), halt=Halt(StopReason.INTERRUPTED))
    assert audit_bundle(Path(write_bundle(stopped, tmp_path / "b.tar").file)).stop == "interrupted"
    journal = stopped / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    (stopped / "head").unlink()
    journal.write_bytes(b"".join(lines[:1]))
    with pytest.raises(BadInput, match="has not ended"):
        write_bundle(stopped, tmp_path / "c.tar")
    journal.write_bytes(b"".join(lines[:1]) + b"torn")
    with pytest.raises(BadInput, match="cannot be believed"):
        write_bundle(stopped, tmp_path / "c.tar")
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["b.tar"]
