"""Runs Rust tests by cargo and libtest: one cargo builds the requested packages, then each test binary is run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from jumar.child import start
from jumar.child.cargo import cargo_main
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended, Report
from jumar.ports import Collected, Invocation, Record, Site, Surroundings
from jumar.process import records as decode
from jumar.process import toolchain
from jumar.process.launch import PATH
from jumar.sandbox.program_files import find_installation

if TYPE_CHECKING:
    from tree_sitter import Node

MISSING = "the runner cargo needs cargo, which is not on PATH: install it (https://rustup.rs, or apt install cargo)"


SURE = ("test", "unix", "not(windows)", 'target_os="linux"', 'target_family="unix"', "debug_assertions", "not(miri)")
"""Conditions that hold where jumar runs; of any other (a feature, mostly) a syntax tree does not tell."""


class CargoRunner:
    """The adapter of cargo and libtest.

    An id is the root file of a test target and libtest's name in it: `tests/gcd.rs::works`, and for a module
    `tests/gcd.rs::large::works` wherever that module's file lies. Tests marked `#[ignore]` are run like any other;
    documentation tests are not.

    Unit tests lie in product files (`src/lib.rs::tests::works`, `src/lib.rs::deep::tests::works` for one in
    `src/deep.rs`). Such a file is both product and test: it is no test file, and its tests are ids only where they are
    named by `select` or expected explicitly. A file of `src` in `select` counts as one of tests from then on, which
    protects it.

    libtest has no timeout for a test and one process for all tests of a target. The tests of a target that crashed,
    hung, or printed what reads like results are run once more, each in a process of its own. That is what cargo-nextest
    adds, so it is not asked, even where it is installed; its configuration has no say.

    What is built lies beside the room and goes with it: a shared folder would take a file of another room, which has
    the same name and may be older, for one it has compiled already. Crates from elsewhere are copied in, see
    `child/cargo/build_cache.py`.
    """

    name = "cargo"
    grade = "X"

    def surroundings(self, origin: Path, environ: Mapping[str, str]) -> Surroundings:
        """Find the folders of the toolchains and the registry's crates; nothing is ever fetched."""
        home = environ.get("HOME", "")
        env = {name: environ[name] for name in ("RUSTUP_TOOLCHAIN",) if environ.get(name)}
        for name, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
            if environ.get(name) or home:
                env[name] = environ.get(name) or f"{home}/{folder}"
        if home:
            env["JUMAR_CARGO_SEEDS"] = f"{environ.get('XDG_CACHE_HOME') or home + '/.cache'}/jumar/cargo"
        env |= {"CARGO_NET_OFFLINE": "true", "RUSTUP_AUTO_INSTALL": "0", "CARGO_INCREMENTAL": "0"}
        path = environ.get("PATH") or PATH
        found = shutil.which("cargo", path=path)
        if found is None:
            return Surroundings(env=env, missing=MISSING)
        root, why = _find_root(Path(found), origin, environ)
        if why:
            return Surroundings(env=env, missing=toolchain.explain_unusable(Path(found), "rustc --print sysroot", why))
        own = Path(sys.executable).parent
        env["PATH"] = toolchain.build_search_path((root / "bin",) if root else (), path, own)
        readable = (*_list_readable(env, Path(found), root), *toolchain.find_compilers(path))
        return Surroundings(env=env, readable=readable, probe=("rustc", "-vV"))

    def collection(self, suite: Suite, room: Path) -> Invocation:
        """Return the invocation that lists all integration tests below *room*, and the selected tests."""
        files = self.test_files((p.relative_to(room).as_posix() for p in sorted(room.rglob("*.rs"))), suite.select)
        return _build_invocation(suite, "collect", suite.select, files)

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:  # noqa: ARG002  # the port's
        """Return the invocation that judges *ids*: their packages are built, and those tests run."""
        return _build_invocation(suite, "run", ids, list(dict.fromkeys(i.partition("::")[0] for i in ids)))

    def collected(self, records: Iterable[Record], ended: Ended, detail: str) -> Collected:
        """Return the ids in the records of a collection."""
        return decode.parse_collection(records, ended, detail)

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """Return the results in the records of a verification."""
        return decode.build_report(records, ended, detail)

    def test_files(self, paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
        """Return the test files among *paths*.

        Rust below a folder `tests`, within *select*, or named there themselves.
        """
        chosen = [PurePosixPath(s.partition("::")[0]) for s in select]

        def holds_tests(path: PurePosixPath) -> bool:
            named = "tests" in path.parts[:-1] and "target" not in path.parts
            below = not chosen or any(folder in path.parents for folder in chosen)
            return path.suffix == ".rs" and (path in chosen or (named and below))

        return tuple(p for p in paths if holds_tests(PurePosixPath(p)))

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:
        """Return the tests in *source*, as far as it can be parsed; none in a file that is a module of another one.

        What is compiled under a condition that may not hold is left out: it could stay red for ever.
        """
        if not cargo_main.is_root(path):
            return ()
        from tree_sitter import Parser  # noqa: PLC0415  a run in Python alone does not load the grammars

        from jumar.languages.grammars import load_language  # noqa: PLC0415  as above

        root = Parser(load_language("rust")).parse(source).root_node
        return tuple(Site(f"{path}::{name}", start, end) for name, start, end in _list_tests(root, ""))


def _find_root(cargo: Path, origin: Path, environ: Mapping[str, str]) -> tuple[Path | None, str]:
    """Return the folder of the toolchain of *cargo*, or why it is unknown; None: rustup chooses in the sandbox."""
    real = cargo.resolve()
    if real.name == "rustup" or _is_same_file(real, real.with_name("rustup")):
        return None, ""
    root = real.parent.parent
    if toolchain.find_binary(cargo, ("cargo",)) and (root / "lib" / "rustlib").is_dir():
        return root, ""
    rustc = shutil.which("rustc", path=environ.get("PATH") or PATH)
    if rustc is None:
        return None, "there is no rustc on PATH"
    asked = toolchain.ask_folder((rustc, "--print", "sysroot"), origin, environ)
    root = Path(asked.said)
    lacks = "" if asked.why or (root / "bin" / "cargo").exists() else f"there is no cargo in {root / 'bin'}"
    return root, asked.why or lacks


def _is_same_file(one: Path, other: Path) -> bool:
    """Return whether two names are of one file: rustup's proxies are links of either kind."""
    return other.exists() and one.samefile(other)


def _list_readable(env: Mapping[str, str], cargo: Path, root: Path | None) -> tuple[Path, ...]:
    """Return the toolchain, the fetched crates, and the seeds. Not the rest of cargo's home.

    It may hold a token.

    Where rustup chooses (*root* is None), that is all of its toolchains, linked ones too.
    """
    home, rustup = env.get("CARGO_HOME", ""), env.get("RUSTUP_HOME", "")
    parts = ("registry", "git", "config.toml", "config", *(() if root else ("bin",)))
    chosen = (
        find_installation(root / "bin" / "cargo") if root else (*find_installation(cargo), *_list_toolchains(rustup))
    )
    named = (*(f"{home}/{part}" for part in parts if home), env.get("JUMAR_CARGO_SEEDS", ""))
    return (*chosen, *(Path(name) for name in named if name))


def _list_toolchains(rustup: str) -> tuple[Path, ...]:
    """Return the folder *rustup* of toolchains, and the linked ones (`rustup toolchain link`)."""
    return (Path(rustup), *toolchain.find_outside_links(Path(rustup, "toolchains"))) if rustup else ()


def _build_invocation(suite: Suite, mode: str, ids: Sequence[str], files: Sequence[str]) -> Invocation:
    return Invocation(
        argv=(sys.executable, "-I", "-S", "-B", *start.build_command(cargo_main)),
        config={"mode": mode, "ids": list(ids), "files": list(files), "limit": suite.test_timeout_seconds},
        env=suite.env,
    )


def _list_tests(node: Node, prefix: str) -> Iterator[tuple[str, int, int]]:
    """Yield the tests in *node* and its modules: name, first line (of the attributes), last line."""
    attributes: list[Node] = []
    for child in node.named_children:
        if child.type == "inner_attribute_item" and _is_unsure(child):
            return
        if child.type == "attribute_item":
            attributes.append(child)
        elif child.type not in ("line_comment", "block_comment"):
            if not any(map(_is_unsure, attributes)):
                yield from _list_tests_in(child, prefix, attributes)
            attributes = []


def _list_tests_in(item: Node, prefix: str, attributes: Sequence[Node]) -> Iterator[tuple[str, int, int]]:
    named, body = item.child_by_field_name("name"), item.child_by_field_name("body")
    name = prefix + (named.text or b"").decode("utf-8", "replace") if named else ""
    if item.type == "mod_item" and body is not None:
        yield from _list_tests(body, f"{name}::")
    elif item.type == "function_item" and any(_split_attribute(a)[0].rpartition("::")[2] == "test" for a in attributes):
        yield name, attributes[0].start_point[0] + 1, item.end_point[0] + 1


def _split_attribute(attribute: Node) -> tuple[str, str]:
    """Return the path of an attribute and its arguments, without white space.

    `tokio::test` marks a test as `test` does.
    """
    text = "".join((attribute.text or b"").decode("utf-8", "replace").split()).lstrip("#!")
    path, _, arguments = text.removeprefix("[").removesuffix("]").partition("(")
    return path, arguments.removesuffix(")")


def _is_unsure(attribute: Node) -> bool:
    path, condition = _split_attribute(attribute)
    return path == "cfg" and condition not in SURE


_MANIFEST = '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2021"\n'
_PROJECT = {"Cargo.toml": _MANIFEST, "src/lib.rs": "pub fn two() -> i32 {\n    2\n}\n"}
_TEST = "#[test]\nfn one() {\n    assert_eq!(sample::two(), 2);\n}\n"
_SETUP = (
    "\n// The only code of a test target that runs before its tests: what the crate ctor makes.\n"
    'extern "C" fn set_up() {\n    std::process::exit(3);\n}\n\n'
    '#[used]\n#[link_section = ".init_array"]\nstatic SET_UP: extern "C" fn() = set_up;\n'
)

SAMPLES: dict[str, dict[str, str]] = {
    "passing": {**_PROJECT, "tests/sample.rs": _TEST},
    "failing": {**_PROJECT, "tests/sample.rs": _TEST.replace("(), 2", "(), 3")},
    "broken_import": {**_PROJECT, "tests/sample.rs": f"use sample::not_there;\n\n{_TEST}"},
    "broken_fixture": {**_PROJECT, "tests/sample.rs": _TEST + _SETUP},
    "several": {
        **_PROJECT,
        "tests/sample.rs": _TEST
        + '\n#[test]\nfn two() {\n    panic!("two");\n}\n\n#[test]\n#[ignore]\nfn zero() {\n    loop {}\n}\n',
    },
}
"""One tiny project for each way a test can come out; see `jumar.runner_contract.check_runner`."""

plugin = CargoRunner()
