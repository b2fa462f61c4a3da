"""What `[context]` may name: texts, and files of the task that give nothing away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jumar.core.state.settings import Context
from jumar.errors import BadInput
from jumar.task.prompt_context import LIMIT, read_context
from jumar.task.task import load_task


def task_with(folder: Path, context: str, more: str = "") -> Context:
    """The context of a task in *folder* whose `[context]` table is *context*."""
    root = folder / "task"
    for inner in ("docs", "hidden", "solution", "notes"):
        (root / inner).mkdir(parents=True, exist_ok=True)
    (root / "app.py").write_text("x = 1\n")
    (root / "docs" / "api v1.md").write_text("\ufeff# API\n")
    (root / "hidden" / "test_app.py").write_text("assert answer == 42\n")
    (root / "solution" / "app.py").write_text("x = 42\n")
    (root / "bad.txt").write_bytes(b"ok \xff")
    (root / "link.txt").unlink(missing_ok=True)
    (root / "link.txt").symlink_to(folder / "outside.txt")
    (folder / "outside.txt").write_text("secret\n")
    (root / "door").unlink(missing_ok=True)
    (root / "door").symlink_to(root / "hidden")
    (root / "task.toml").write_text(
        f'[task]\nreference = "solution"\n{more}[tests]\nhidden = "hidden"\n[context]\n{context}\n'
    )
    return read_context(load_task(root))


def test_entries_are_files_where_there_are_such_and_texts_else(tmp_path: Path) -> None:
    context = task_with(
        tmp_path,
        'reference = ["app.py", "docs/api v1.md"]\nexamples = "for n in range(3): ..."\n'
        'signatures = ["def gcd(a: int, b: int) -> int", "os.getcwd()", "json.dumps"]\n'
        'review_rules = ["""\nNo prints.\nsee app.py\n""", "Do not import app.py", "  "]',
    )

    assert context.reference == (("app.py", "x = 1\n"), ("docs/api v1.md", "# API\n"))
    assert context.examples == (("", "for n in range(3): ..."),)
    assert [text for _, text in context.signatures] == ["def gcd(a: int, b: int) -> int", "os.getcwd()", "json.dumps"]
    assert context.review_rules == (("", "No prints.\nsee app.py\n"), ("", "Do not import app.py"))


def test_no_context_is_none(tmp_path: Path) -> None:
    assert task_with(tmp_path, "") == Context()


def test_a_text_too_long_for_a_name_is_a_text(tmp_path: Path) -> None:
    text = "a rule of many words " * 200

    assert task_with(tmp_path, f'review_rules = "{text}"').review_rules == (("", text),)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("nothing.py", "is not in the task's folder"),
        ("docs/nothing", "is not in the task's folder"),
        ("../outside.txt", "is not in the task's folder"),
        ("/etc/passwd", "is not in the task's folder"),
        ("~/notes.md", "is not in the task's folder"),
        ("docs/../app.py", "is not in the task's folder"),
        ("link.txt", "leads out of the task's folder"),
        ("hidden/test_app.py", "belongs to the hidden tests"),
        ("./hidden/test_app.py", "belongs to the hidden tests"),
        ("door/test_app.py", "belongs to the hidden tests"),
        ("hidden", "belongs to the hidden tests"),
        ("solution/app.py", "belongs to the reference solution"),
        ("docs", "is no file"),
        ("bad.txt", "is not UTF-8 (byte 3)"),
    ],
)
def test_what_may_not_be_named(tmp_path: Path, entry: str, why: str) -> None:
    with pytest.raises(BadInput) as refused:
        task_with(tmp_path, f'examples = "{entry}"')

    assert str(refused.value).startswith(f"[context] examples names {entry!r}")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_too_long_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "task"
    root.mkdir()
    (root / "long.txt").write_text("x" * (LIMIT // 2 + 1))
    (root / "huge.txt").write_text("x" * (4 * LIMIT + 1))

    with pytest.raises(BadInput, match="name a shorter file"):
        task_with(tmp_path, 'reference = "huge.txt"')
    with pytest.raises(BadInput, match="name fewer or shorter files"):
        task_with(tmp_path, 'reference = ["long.txt", "long.txt"]')


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    os.mkfifo(tmp_path / "task" / "pipe.txt")

    with pytest.raises(BadInput, match="is no file"):
        task_with(tmp_path, 'reference = "pipe.txt"')
