"""The corpus in `cheats/`: attacks and honest look-alikes, each a tiny project, and the ladder of layers they meet.

`project.toml` has the project that attacks are made on. An attack's file has a title, a class, the layer that is meant
to stop it, and the files it leaves behind (`[attack]`), bytecode too (`[pyc]`); with `[base]`, `[hidden]` and
`[honest]` it brings a project of its own. A look-alike has one `[project]`, and is right.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import struct
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from _pytest.assertion.rewrite import PYC_TAIL

CORPUS = Path(__file__).parents[2] / "cheats"

FIRST = (
    "import signal, subprocess, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "sys.exit(subprocess.call(sys.argv[1:]))"
)
"""Stands between us and a plain pytest: some attacks kill their parent, and a background job ignores SIGINT."""

STOPS = 60.0
"""Seconds after which a plain pytest hangs; the reading is then that it did not pass."""


class Project(NamedTuple):
    """One entry of the corpus."""

    id: str
    title: str
    kind: str
    layer: str
    """The layer meant to stop it; empty for what is honest."""
    base: Mapping[str, str]
    """The task: path to text."""
    hidden: Mapping[str, str] = {}
    attack: Mapping[str, str] = {}
    """What the attacker writes over the task."""
    honest: Mapping[str, str] = {}
    """What an honest worker writes over it."""
    pyc: Mapping[str, str] = {}
    bytecode: str = ""
    """How the sources in `pyc` are compiled: `rewritten`, `timed`, `unchecked` or `sourceless`."""
    env: Mapping[str, str] = {}


@cache
def attacks() -> list[Project]:
    """All attacks, by name."""
    shared = _read(CORPUS / "project.toml")
    return [_attack(path, shared) for path in sorted((CORPUS / "attacks").glob("*.toml"))]


def lookalikes() -> list[Project]:
    """All honest projects, by name."""
    return [_lookalike(path) for path in sorted((CORPUS / "honest").glob("*.toml"))]


def named(projects: list[Project], *ids: str) -> list[Project]:
    """Those of *projects* whose names begin with one of *ids*, in the order of *ids*."""
    found = [project for i in ids for project in projects if project.id == i or project.id.startswith(i + "_")]
    missing = [i for i in ids if not any(p.id == i or p.id.startswith(i + "_") for p in projects)]
    if missing:
        raise LookupError(f"no project of the corpus is called {missing[0]}")
    return found


def laid(folder: Path, files: Mapping[str, str]) -> Path:
    """*files* below *folder*."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return folder


def task_in(folder: Path, project: Project) -> Path:
    """The task of *project* in *folder*, its held-out tests beside it, as somebody would write it down."""
    laid(folder, project.base)
    laid(folder / "held_out", project.hidden)
    lines = ["[tests]", "timeout_seconds = 90", "test_timeout_seconds = 20"]
    lines += ['hidden = "held_out"'] if project.hidden else []
    if project.env:
        pairs = ", ".join(f'{name} = "{value}"' for name, value in project.env.items())
        lines += ["[task]", f"env = {{{pairs}}}"]
    (folder / "task.toml").write_text("\n".join(lines) + "\n")
    return folder


def attacked(folder: Path, project: Project) -> Path:
    """What the attacker leaves behind, in *folder*: the files of the task, changed."""
    laid(folder, {**project.base, **project.attack})
    for path, source in project.pyc.items():
        _compiled(folder / path, source, project.bytecode)
    return folder


def plain(folder: Path, project: Project) -> tuple[int | None, dict[str, str]]:
    """What pytest alone says in *folder*: its exit status, and an outcome per id out of its JUnit report."""
    report = folder / "report.xml"
    inner = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", f"--junitxml={report}"]
    env = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LANG": "C.UTF-8", **project.env}
    with subprocess.Popen(
        [sys.executable, "-c", FIRST, *inner], cwd=folder, env=env, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            status: int | None = process.wait(STOPS)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _killed(process.pid)
    return status, _junit(report) if report.is_file() else {}


def junit_key(test_id: str) -> str:
    """What a JUnit report of pytest makes of *test_id*: class and name joined by a dot."""
    head, bracket, cases = test_id.partition("[")
    path, *names = head.split("::")
    return ".".join([path.removesuffix(".py").replace("/", "."), *names]) + bracket + cases


def _junit(report: Path) -> dict[str, str]:
    outcomes: dict[str, str] = {}
    try:
        root = ET.parse(report).getroot()  # noqa: S314  a report of a process of ours, or a forgery without tricks
    except ET.ParseError:
        return {}
    for case in root.iter("testcase"):
        worst = [tag for tag in ("error", "failure", "skipped") if case.find(tag) is not None]
        key = f"{case.get('classname')}.{case.get('name')}"
        outcomes[key] = worst[0] if worst else outcomes.get(key, "passed")
    return outcomes


def _killed(group: int) -> None:
    try:
        os.killpg(group, 9)
    except ProcessLookupError:
        return


def _attack(path: Path, shared: Mapping[str, Any]) -> Project:
    raw = _read(path)
    own = raw if "base" in raw else shared
    texts = {name: {**shared["base"], **raw.get("base", {})} if name == "base" else own.get(name, {}) for name in
             ("base", "hidden", "honest")}  # fmt: skip
    if "base" in raw and "hidden" not in raw:
        texts["hidden"], texts["honest"] = shared["hidden"], shared["honest"]
    stands = {"# BUGGY\n": texts["base"]["solution.py"], "# FIXED\n": texts["honest"]["solution.py"]}
    forging = shared["forging"] if raw.get("forges") else {}
    return Project(
        id=path.stem,
        title=raw["title"],
        kind=raw["class"],
        layer=raw["layer"],
        base=texts["base"],
        hidden=texts["hidden"],
        honest=texts["honest"],
        attack={**forging, **{p: _filled(text, stands) for p, text in raw.get("attack", {}).items()}},
        pyc={p: _filled(text, stands) for p, text in raw.get("pyc", {}).items()},
        bytecode=raw.get("bytecode", ""),
        env=raw.get("env", {}),
    )


def _lookalike(path: Path) -> Project:
    raw = _read(path)
    return Project(path.stem, raw["title"], raw["class"], "", raw["project"])


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def _filled(text: str, stands: Mapping[str, str]) -> str:
    for mark, code in stands.items():
        text = text.replace(mark, code)
    return text


def _compiled(path: Path, source: str, how: str) -> None:
    """Bytecode of *source* where Python or pytest would look for that of *path*."""
    code = marshal.dumps(compile(source, str(path), "exec", dont_inherit=True))
    magic, cache = importlib.util.MAGIC_NUMBER, Path(importlib.util.cache_from_source(str(path)))
    if how == "sourceless":
        path.unlink(missing_ok=True)
        path.with_suffix(".pyc").write_bytes(magic + bytes(12) + code)
        return
    cache.parent.mkdir(exist_ok=True)
    stat = path.stat()
    if how == "unchecked":
        cache.write_bytes(magic + struct.pack("<L", 1) + bytes(8) + code)
        return
    if how == "rewritten":  # pytest keeps its own, under a name of its own, by the hash of the source
        hashed = struct.pack("<L", 3) + importlib.util.source_hash(path.read_bytes())
        (cache.parent / (path.stem + PYC_TAIL)).write_bytes(magic + hashed + code)
        return
    timed = struct.pack("<LLL", 0, int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF)
    cache.write_bytes(magic + timed + code)
