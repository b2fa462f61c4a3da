"""Schema of the record of one kept edit: every record has all keys, each of one type."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from jumar.errors import BadInput
from jumar.workspace.files import safe_paths, trees
from jumar.workspace.files.trees import EntryKind, Manifest, Node

SCHEMA = "jumar.corpus/2"
"""Stands in every record. Another number is for other fields."""

KINDS = {"100644": EntryKind.FILE, "100755": EntryKind.FILE, "120000": EntryKind.LINK}
"""Modes as git writes them."""


class TextRecord(msgspec.Struct, frozen=True):
    """Bytes in an encoding that JSON can hold."""

    encoding: str
    """`utf-8`, or `base64` for what is no text."""
    texts: tuple[str, ...]

    @classmethod
    def encode(cls, *pieces: bytes) -> TextRecord:
        """Return all *pieces* in one encoding: plain if each of them is text without zeros."""
        try:
            texts = tuple(piece.decode() for piece in pieces)
        except UnicodeDecodeError:
            texts = ("\0",)
        if any("\0" in text for text in texts):
            return cls("base64", tuple(b64encode(piece).decode() for piece in pieces))
        return cls("utf-8", texts)

    @property
    def bytes(self) -> tuple[bytes, ...]:
        """Content of the file, joined from the pieces of the record.

        Raises:
            ValueError: if they are not in that encoding.
        """
        if self.encoding == "base64":
            return tuple(b64decode(text, validate=True) for text in self.texts)
        if self.encoding != "utf-8":
            raise ValueError(f"{self.encoding!r} is no encoding of a corpus")
        return tuple(text.encode() for text in self.texts)


class RedRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The newest red of a test before it was claimed. Numbers are those of the run's journal."""

    seq: int
    """Of the `test_run`."""
    verification: int
    """Of the `tests` event that it belongs to: one of the record's `red`."""
    tree: str
    status: str
    outcome: str
    blame: str
    """`code`, `absent`, or empty where the runner could not tell."""
    absent: str


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The claim of an edit: which test it is for."""

    seq: int
    edit_target: str


class GreenRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a claimed test in the verification that kept the edit."""

    seq: int
    status: str
    outcome: str


class RecordedTest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claimed test and its outcomes before and after the edit."""

    __test__ = False

    id: str
    id_source: str
    """`native` or `annotation`."""
    path: str
    source: str
    """Its lines in its file, as they were before the edit; empty where the syntax tree does not show it."""
    first_line: int
    """Counted from 1; 0 where there is no source."""
    last_line: int
    red: RedRecord
    claim: ClaimRecord
    green: GreenRecord


class RecordedVerification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verification of the run, and the output of it that the model was shown."""

    seq: int
    trigger: str
    tree: str
    passed: int
    failed: int
    errors: int
    total: int
    grade: str
    sandbox: str
    executions: int
    output: str


class File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of an edit. Mode, hash and text are empty for a side where it is absent; a link's text is its target."""

    path: str
    encoding: str
    """Of `before` and `after`: `utf-8` or `base64`."""
    before: str
    after: str
    before_mode: str
    after_mode: str
    before_sha256: str
    after_sha256: str


class EditRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files, trees and patch of the edit."""

    seqs: tuple[int, ...]
    """Of its `write` events."""
    tree_before: str
    tree_after: str
    files: tuple[File, ...]
    patch_encoding: str
    patch: str
    """For `git apply`."""


RED_GREEN, CODEMOD = "red-green", "codemod"
"""The kinds of records."""


class EditOrigin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Origin of a codemod; all fields are empty if the edit is not one."""

    seq: int = 0
    """Of the `codemod` event."""
    tool: str = ""
    command: str = ""
    pattern: str = ""
    replacement: str = ""
    renames: str = ""
    """Renames, where it touched tests: a JSON object, old identifier -> new one."""


class CostRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cost of all calls since the last turn with a kept edit. *shared_by* records of this turn name the same cost."""

    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    usd: float
    shared_by: int


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One record of the corpus: a kept edit with its evidence."""

    schema: str
    kind: str = RED_GREEN
    """`red-green`, or `codemod`: an edit that kept the outcome of every test, and has no claimed ones."""
    codemod: EditOrigin = EditOrigin()
    id: str
    """The run and the number of the edit's first `write`."""
    run: str
    task: str
    instruction: str
    agent: str
    model: str
    gate: str
    runner: str
    suite: str
    """Settings by which the tests are run, as JSON, without the interpreter."""
    seq: int
    start_tree: str
    judged: tuple[str, ...]
    """All ids of the verification that kept the edit."""
    tests: tuple[RecordedTest, ...]
    red: tuple[RecordedVerification, ...]
    """The verifications that those red results are of; of a codemod, the one that its outcomes were compared with."""
    edit: EditRecord
    green: RecordedVerification
    best_seq: int
    cost: CostRecord


class _Schema(msgspec.Struct, frozen=True):
    """Schema name of a record, read before the rest."""

    schema: str


def encode_record(record: Record) -> bytes:
    """Return *record* in its one canonical form: keys sorted, ASCII, a newline at the end."""
    plain = json.dumps(msgspec.to_builtins(record), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return plain.encode() + b"\n"


def parse_records(data: bytes, name: str) -> tuple[Record, ...]:
    """Return the records of the corpus *data*; *name* names it in errors.

    Raises:
        BadInput: if a line is no record; the sentence names the line.
    """
    found: list[Record] = []
    for number, raw in enumerate(data.split(b"\n"), 1):
        if raw.strip():
            try:
                schema = msgspec.json.decode(raw, type=_Schema).schema
                found += [msgspec.json.decode(raw, type=Record)] if schema == SCHEMA else []
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise BadInput(f"line {number} of {name} is no record of a corpus: {error}") from None
            if schema != SCHEMA:
                raise BadInput(f"line {number} of {name} has schema {schema!r}; this jumar reads {SCHEMA}")
    if not found:
        raise BadInput(f"{name} holds no record; write one with `jumar corpus RUNS -o FILE`")
    return tuple(found)


def build_node(mode: str, digest: str) -> Node | None:
    """Return the manifest node of a file mode and a hash; None: there is no file."""
    return Node(KINDS[mode], digest, mode == "100755") if mode in KINDS else None


def apply_edit(base: Manifest, files: Iterable[File]) -> dict[str, Node]:
    """Return *base* after the edit of *files*."""
    there = dict(base)
    for file in files:
        there = trees.put(there, file.path, build_node(file.after_mode, file.after_sha256))
    return there


def collect_contents(files: Iterable[File]) -> dict[str, bytes]:
    """Return the bytes of both sides of *files*, by their hashes.

    Raises:
        ValueError: if a text is not the one that its hash names, or a path or mode could be part of no tree.
    """
    found: dict[str, bytes] = {}
    for file in files:
        safe_paths.split_path(file.path)
        if not {file.before_mode, file.after_mode} <= {"", *KINDS}:
            raise ValueError(f"{file.path} has the mode {file.before_mode!r} or {file.after_mode!r}, which is none")
        try:
            texts = TextRecord(file.encoding, (file.before, file.after)).bytes
        except ValueError as fault:
            raise ValueError(f"the texts of {file.path} cannot be read: {fault}") from None
        for digest, data in zip((file.before_sha256, file.after_sha256), texts, strict=True):
            if digest != (sha256(data).hexdigest() if digest or data else ""):
                raise ValueError(f"a text of {file.path} is not the one that its hash names")
            found[digest] = data
    return found
