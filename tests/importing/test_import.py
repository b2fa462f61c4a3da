"""An import takes the source from before a fix and the tests from after it, and keeps it only if that is so."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jumar.errors import BadInput, Infra
from jumar.importing.from_git import read_git_sides
from jumar.importing.from_pypi import LIMIT_BYTES, Release, fetch_archive, fetch_pypi_sides, make_venv, unpack_archive
from jumar.importing.make_task import (
    Blob,
    TaskDescription,
    TaskSides,
    build_layout,
    find_python_path,
    write_task,
    write_tree,
)
from jumar.importing.validate import ImportResources, import_task, sort_ids
from jumar.task.task import load_task
from support.worlds.fake_releases import NEW, OLD, sdist, tree

ABOUT = TaskDescription(name="thing-1-2", old="thing 1", new="thing 2")


class TestLayout:
    """Which side each file comes from."""

    def test_source_is_old_and_what_judges_is_new(self) -> None:
        made = build_layout(tree(OLD), tree(NEW), ABOUT)

        assert made.start["thing.py"].data == OLD["thing.py"].encode()
        assert made.start["tests/test_thing.py"].data == NEW["tests/test_thing.py"].encode()
        assert made.start["conftest.py"].data == b"new = 1\n"
        assert "tests/test_gone.py" not in made.start
        assert made.reference == tree({"thing.py": NEW["thing.py"]})
        assert made.editable == ("thing.py",)

    def test_a_release_without_tests_is_refused(self) -> None:
        with pytest.raises(BadInput, match="thing 2 has no tests"):
            build_layout(tree(OLD), tree({"thing.py": "", "setup.py": ""}), ABOUT)

    def test_two_equal_sources_are_refused(self) -> None:
        with pytest.raises(BadInput, match="have the same source"):
            build_layout(tree(OLD), tree({**NEW, "thing.py": OLD["thing.py"]}), ABOUT)

    def test_what_is_no_text_is_not_editable(self) -> None:
        made = build_layout(tree(OLD), {**tree(NEW), "thing.mo": Blob(b"\0")}, ABOUT)

        assert (made.editable, "thing.mo" in made.reference) == (("thing.py",), True)

    def test_the_rooms_own_copy_is_imported(self) -> None:
        assert find_python_path(tree({"src/thing/__init__.py": ""})) == "src:."
        assert find_python_path(tree({"thing/src/a.py": ""})) == "."

    @pytest.mark.slow
    @given(st.dictionaries(st.sampled_from(sorted({*OLD, "a.py", "src/b.py", "tests/x.txt"})), st.text(max_size=3)))
    def test_the_fix_is_never_in_the_start(self, texts: dict[str, str]) -> None:
        new = {**NEW, **texts}
        try:
            made = build_layout(tree(OLD), tree(new), ABOUT)
        except BadInput:
            return

        assert all(made.start.get(path) != blob for path, blob in made.reference.items())
        assert all(made.start[p].data == new[p].encode() for p in made.start if p.startswith("tests/"))

    @pytest.mark.parametrize("path", ["../out", "/out", "a/../../out", "./out", "a//out"])
    def test_no_path_leads_outside(self, tmp_path: Path, path: str) -> None:
        with pytest.raises(BadInput, match="leads outside"):
            write_tree({path: Blob(b"")}, tmp_path / "room")
        assert not (tmp_path / "out").exists()

    def test_a_refused_source_leaves_nothing_behind(self, tmp_path: Path) -> None:
        layout = build_layout(tree(OLD), tree(NEW), ABOUT)
        astray = replace(layout, start={**layout.start, "../out": Blob(b"")})

        with pytest.raises(BadInput, match="leads outside"):
            write_task(astray, ABOUT, tmp_path)

        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(("target", "kept"), [("thing.py", True), ("../thing.py", False), ("/etc", False)])
    def test_links_stay_inside(self, tmp_path: Path, target: str, kept: bool) -> None:  # noqa: FBT001  a column of the table
        link = {"link": Blob(target.encode(), link=True)}
        if kept:
            write_tree(link, tmp_path / "room")
            assert os.readlink(tmp_path / "room" / "link") == target  # noqa: PTH115  the text of the link, unresolved
        else:
            with pytest.raises(BadInput, match="leads outside"):
                write_tree(link, tmp_path / "room")

    def test_nothing_is_written_through_a_link(self, tmp_path: Path) -> None:
        here = {"x": Blob(b".", link=True), "x/a/out": Blob(b"../..", link=True), "x/a/out/evil": Blob(b"")}

        with pytest.raises(BadInput, match="leads outside"):
            write_tree(here, tmp_path / "room")
        assert not (tmp_path / "evil").exists()

    def test_a_task_is_written_whole_and_again(self, tmp_path: Path) -> None:
        made = build_layout(tree(OLD), {**tree(NEW), "run.sh": Blob(b"", executable=True)}, ABOUT)
        for _ in range(2):
            folder = write_task(made, ABOUT, tmp_path)
        task = load_task(folder)

        assert [p.name for p in tmp_path.iterdir()] == ["thing-1-2"]
        assert task.reference == folder / "reference"
        assert (folder / "reference/run.sh").stat().st_mode & 0o111
        assert task.editable == ("/run.sh", "/thing.py")

    def test_what_is_no_task_is_not_replaced(self, tmp_path: Path) -> None:
        (tmp_path / ABOUT.name).mkdir()
        (tmp_path / ABOUT.name / "diary.txt").touch()

        with pytest.raises(BadInput, match="is there already and is no task"):
            write_task(build_layout(tree(OLD), tree(NEW), ABOUT), ABOUT, tmp_path)


def test_ids_that_do_not_answer_twice_the_same_are_dropped() -> None:
    fix = [frozenset("abcd"), frozenset("abc")]
    start = [frozenset("b"), frozenset("bc")]

    checks = sort_ids("abcde", fix, start)

    assert (checks.fail_to_pass, checks.pass_to_pass) == (("a",), ("b",))
    assert checks.dropped == {"c": "flaky at the start", "d": "flaky with the reference", "e": "red with the reference"}


class TestArchives:
    """Source distributions are unpacked in memory, and only what they may hold."""

    def test_both_kinds_are_read(self, tmp_path: Path) -> None:
        (archive := tmp_path / "thing-1.zip").touch()
        with zipfile.ZipFile(archive, "w") as made:
            made.writestr("thing-1/thing.py", "x")

        assert unpack_archive(archive) == {"thing.py": Blob(b"x")}
        assert unpack_archive(sdist(tmp_path, "2", {"a/b.py": "y"}))["a/b.py"] == Blob(b"y")

    def test_a_member_outside_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="leads outside"):
            unpack_archive(sdist(tmp_path, "1", {"../../evil.py": ""}))

    def test_a_bomb_is_refused(self, tmp_path: Path) -> None:
        bomb = tarfile.TarInfo("thing-1/zeros")
        bomb.size = LIMIT_BYTES + 1
        (tmp_path / "thing-1.tar.gz").write_bytes(bomb.tobuf())

        with pytest.raises(BadInput, match="is larger than any library"):
            unpack_archive(tmp_path / "thing-1.tar.gz")

    def test_damage_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "thing-1.tar.gz").write_bytes(b"no archive")

        with pytest.raises(BadInput, match=r"thing-1.tar.gz cannot be unpacked"):
            unpack_archive(tmp_path / "thing-1.tar.gz")

    @pytest.mark.parametrize(
        ("name", "version"), [("--index", "1"), ("a b", "1"), ("a", "1 --x"), ("", "1"), ("a", "")]
    )
    def test_an_option_in_disguise_is_refused(self, tmp_path: Path, name: str, version: str) -> None:
        with pytest.raises(BadInput, match="neither a project's name nor a version"):
            anyio.run(fetch_archive, Release(name, version), tmp_path)

    @pytest.mark.parametrize("package", ["-r x", "a @ file:b", "./here", "a==1;b"])
    def test_a_package_is_a_name_and_a_version(self, tmp_path: Path, package: str) -> None:
        with pytest.raises(BadInput, match="is not PKG or PKG==VER"):
            anyio.run(make_venv, tmp_path, (package,))


def git(repo: Path, *args: str) -> str:
    ask = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *args]
    return subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Two commits: a bug, and its fix with a test. Hooks and attributes that would show lie in wait."""
    root = tmp_path / "thing.git"
    root.mkdir()
    git(root, "init", "--quiet")
    for texts in (OLD, {**NEW, ".gitattributes": "tests export-ignore\n"}):
        git(root, "rm", "-rqf", "--ignore-unmatch", ".")
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        git(root, "add", "-A")
        git(root, "commit", "--quiet", "-m", "x")
    hook = root / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    return root


@pytest.mark.slow
class TestGit:
    """Reading two commits."""

    @pytest.mark.parametrize("revisions", ["HEAD~1..HEAD", "HEAD", "HEAD~1.."])
    def test_a_fix_is_its_parent_and_itself(self, repo: Path, tmp_path: Path, revisions: str) -> None:
        sides = anyio.run(read_git_sides, str(repo), revisions)

        assert (sides.old, {**sides.new, ".gitattributes": None}) == (tree(OLD), {**tree(NEW), ".gitattributes": None})
        assert sides.about.name.startswith("thing-")
        assert not (tmp_path / "hooked").exists()

    def test_a_url_is_cloned(self, repo: Path, tmp_path: Path) -> None:
        assert anyio.run(read_git_sides, f"file://{repo}", "HEAD").old == tree(OLD)
        assert not (tmp_path / "hooked").exists()

    @pytest.mark.parametrize(
        ("where", "revisions", "said"),
        [
            ("nowhere", "HEAD", "there is no repository at"),
            ("thing.git", "v9..HEAD", "there is no commit 'v9'"),
            ("thing.git", "--all", "there is no commit"),
            ("thing.git", "HEAD..HEAD", "names one commit twice"),
            ("thing.git", "HEAD~1", "the commit 'HEAD~1' in .* has none before it, .*; give OLD..NEW"),
        ],
    )
    def test_what_is_not_there_is_named(self, repo: Path, where: str, revisions: str, said: str) -> None:
        with pytest.raises(BadInput, match=said):
            anyio.run(read_git_sides, str(repo.parent / where), revisions)

    def test_a_url_that_runs_a_program_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput):
            anyio.run(read_git_sides, f"ext::sh -c touch% {tmp_path}/run://x", "HEAD")
        assert not (tmp_path / "run:").exists()
        assert not (tmp_path / "run").exists()

    def test_links_and_modes_are_kept(self, repo: Path) -> None:
        (repo / "link.py").symlink_to("thing.py")
        (repo / "thing.py").chmod(0o755)
        git(repo, "add", "-A")
        git(repo, "commit", "--quiet", "-m", "y")
        new = anyio.run(read_git_sides, str(repo), "HEAD").new

        assert new["link.py"] == Blob(b"thing.py", link=True)
        assert new["thing.py"].executable


@pytest.mark.slow
class TestPypi:
    """Fetching two releases; the index here is a folder."""

    def test_the_cache_makes_the_index_needless(self, tmp_path: Path) -> None:
        (shelf := tmp_path / "index").mkdir()
        for version, texts in (("1", OLD), ("2", NEW)):
            sdist(shelf, version, texts)
        local = ("--no-index", "--find-links", str(shelf))

        async def both(index: tuple[str, ...]) -> TaskSides:
            return await fetch_pypi_sides(Release("thing", "1"), Release("thing", "2"), tmp_path / "cache", index)

        first, second = anyio.run(both, local), anyio.run(both, ("--no-index",))

        assert first == second
        assert first.old["thing.py"].data == OLD["thing.py"].encode()

    def test_a_wrong_hash_is_never_unpacked(self, tmp_path: Path) -> None:
        archive = sdist(tmp_path, "1", OLD)
        local = ("--no-index", "--find-links", str(archive.parent))

        with pytest.raises(Infra, match="pip could not fetch thing 1"):
            anyio.run(fetch_archive, Release("thing", "1", "0" * 64), tmp_path / "cache", local)

    def test_a_release_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        local = ("--no-index", "--find-links", str(sdist(tmp_path, "1", OLD).parent))

        with pytest.raises(BadInput, match="there is no source distribution of thing 3"):
            anyio.run(fetch_archive, Release("thing", "3"), tmp_path / "cache", local)


@pytest.mark.slow
class TestChecking:
    """A task is kept only if it is red without the fix and green with it."""

    def test_what_holds_is_written_down(self, tmp_path: Path) -> None:
        sides = TaskSides(ABOUT, tree(OLD), tree(NEW))
        made = anyio.run(import_task, sides, tmp_path, ImportResources(environ=os.environ))

        assert made.checks.fail_to_pass == ("tests/test_thing.py::test_half",)
        assert made.checks.pass_to_pass == ("tests/test_thing.py::test_zero",)
        assert made.checks.dropped == {"tests/test_thing.py::test_broken": "red with the reference"}
        assert tomllib.loads((made.folder / "task.toml").read_text())["tests"]["expected"] == list(made.checks.expected)
        assert json.loads((made.folder / "task.checks.json").read_text())["fail_to_pass"] == list(
            made.checks.fail_to_pass
        )
        assert load_task(made.folder).expected == made.checks.expected

    def test_a_fix_that_no_test_sees_is_refused(self, tmp_path: Path) -> None:
        blind = {**NEW, "tests/test_thing.py": "def test_nothing(): pass\n"}

        with pytest.raises(BadInput, match="nothing in thing-1-2 turns from red to green"):
            anyio.run(
                import_task, TaskSides(ABOUT, tree(OLD), tree(blind)), tmp_path, ImportResources(environ=os.environ)
            )
        assert not list(tmp_path.iterdir())
