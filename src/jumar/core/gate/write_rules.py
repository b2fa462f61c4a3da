"""Write rules of a task. A refusal is a sentence for the model; a guardrail hit ends the run."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable

import msgspec

Matches = Callable[[str], bool]
"""Predicate that tells whether a path (relative, with forward slashes) is one of a set of globs."""

CONFIGURATION = (
    "conftest.py", "conftest/", "conftest.*", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml",
    "pyproject.toml", "tox.ini", "setup.cfg", "setup.py", "sitecustomize.py", "usercustomize.py", "*.pth",
    "*.egg-info/", "*.dist-info/",
    "package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", ".npmrc", ".yarnrc*", "node_modules/",
    "vitest.config.*", "vitest.workspace.*", "vitest.setup.*", "vite.config.*", "jest.config.*", "jest.setup.*",
    "babel.config.*", "postcss.config.*", "__snapshots__/", ".babelrc*", ".swcrc", "tsconfig*.json", "jsconfig.json",
    "go.mod", "go.sum", "vendor/modules.txt", "go.work", "go.work.sum",
    "Cargo.toml", "Cargo.lock", "build.rs", ".cargo/", ".config/nextest.toml", "rust-toolchain*",
    "__pycache__/", "*.pyc", ".git/", ".jumar/",
)  # fmt: skip
"""Files that steer the runner or the interpreter: always the task's, whatever `editable` says."""


OUTSIDE = "write-outside-workspace"
"""The rule that a write which would leave the workspace breaks."""

NAME_BYTES, PATH_BYTES, DEEPEST = 255, 2048, 50
"""Most bytes of a name on file systems, of a path that surely fits below a run's folder, and most nested folders."""


def matches_nothing(_path: str) -> bool:
    """Return False: the rule matches no path."""
    return False


class WriteRules(msgspec.Struct, frozen=True):
    """The write rules of one task."""

    editable: Matches
    protected: Matches
    authorable: Matches = matches_nothing
    """Files that may be written as new tests: test files by their names that did not come with the task."""
    refactorable: Matches = matches_nothing
    """Files that refactor mode may edit: all but tests and jumar's own files."""
    renamable: Matches = matches_nothing
    """Tests in which a codemod may rename identifiers: those the person named."""
    steering: Matches = matches_nothing
    """Files that steer the runner: a verdict uses those that the run began with."""


def find_absent(editable: Iterable[str], files: Collection[str]) -> tuple[str, ...]:
    """Return the files that the globs in *editable* name plainly and that are not among *files*: they may be made.

    A plain name matches in every folder: it is a file to be made where none of that name is there.
    """
    plain = (line.lstrip("/") for line in editable if not set(line) & set("*?[]!#\\") and line[-1:] != "/")
    return tuple(n for n in plain if not any(p == n or p.endswith(f"/{n}") or p.startswith(f"{n}/") for p in files))


class Hit(msgspec.Struct, frozen=True):
    """Guardrail hit, which ends the run."""

    rule: str
    what: str


def find_escape(path: str) -> Hit | None:
    """Return a hit if *path* would leave the workspace by its very name."""
    parts = path.replace("\\", "/").split("/")
    drive = parts[0][1:] == ":" and parts[0][:1].isalpha()
    if path.startswith(("/", "~", "\\")) or drive or ".." in parts or "\0" in path:
        return Hit(OUTSIDE, path)
    return None


def find_alike(path: str, files: Iterable[str]) -> str:
    """Return the one of *files* (or a folder of one) that *path* could be taken for: case or width apart. Empty: none.

    Disks that do not tell cases apart would write the one for the other, and people would read it so.
    """
    mine = [(part, _fold_case(part)) for part in (path, *_list_parents(path))]
    for other in files:
        theirs = _fold_case(other)
        for part, folded in mine:
            near = theirs == folded or theirs.startswith(f"{folded}/")
            if near and other != part and not other.startswith(f"{part}/"):
                return other
    return ""


def _list_parents(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def _fold_case(path: str) -> str:
    return path.lower() if path.isascii() else unicodedata.normalize("NFKC", path).casefold()


def explain_misnamed(path: str) -> str | None:  # noqa: PLR0911  one line per reason
    """Return why *path* cannot name a file, or None."""
    if not path or path.endswith("/") or any(part in ("", ".") for part in path.split("/")):
        return f"{path!r} is not the path of a file; give it relative to the workspace, without ./"
    if "\\" in path:
        return f"{path!r} holds a backslash: paths have forward slashes"
    if any(part != part.strip() or part.endswith(".") for part in path.split("/")):
        return f"{path!r} begins or ends a name with a space, or ends it with a dot: some disks leave that out"
    if unicodedata.normalize("NFC", path) != path:
        return f"{path!r} is spelt with loose accents: use composed characters (NFC)"
    if not path.isprintable():  # bytes that are no UTF-8 stand as lone surrogates, which are not either
        return f"{path[:60]!r} holds characters that nobody can read: use plain ones"
    if len(path.encode()) > PATH_BYTES or any(len(part.encode()) > NAME_BYTES for part in path.split("/")):
        return f"{path[:60]}... is too long for the name of a file"
    if path.count("/") >= DEEPEST:
        return f"{path[:60]}... is nested too deep"
    return None


def explain_refusal(path: str, guard: WriteRules) -> str | None:
    """Return why a write to *path* is refused, or None. The run continues; the model gets the sentence."""
    if why := explain_misnamed(path):
        return why
    if guard.protected(path):
        return f"{path} is read-only: the task's tests and configuration are its own"
    if not guard.editable(path):
        return f"{path} is not among the editable files of this task ([files] editable names them)"
    return None
