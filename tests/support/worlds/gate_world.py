"""A small world for stories about the gate: real Python in a few files, imported and judged test by test."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType, ModuleType

import msgspec
from msgspec.structs import replace

from jumar.agents.driver import Driver
from jumar.core.gate.write_rules import WriteRules
from jumar.core.run.reducers.transitions import replay
from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.ratchet import Rule
from jumar.core.state.settings import Route, Settings, Suite, Switches
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.core.state.verdict import Blame, Cause, Outcome, TestResult, Void
from jumar.journal.writer import Journal
from jumar.kernel import Kernel
from jumar.languages.gitignore_globs import compile_patterns
from jumar.models.script import ScriptLine
from jumar.ports import Answer, Ask, Ran, Site, Verifier
from jumar.runners.pytest import plugin
from jumar.runtime.dependencies import RunDependencies, skip_pause
from jumar.runtime.effect_runner import EffectRunner
from jumar.testing import FakeClock, FakeVerifier, Judge
from jumar.workspace.store.object_store import Store
from jumar.workspace.workspace import Workspace
from support.worlds.driver_world import Heard, Turns, call
from support.worlds.run_world import World

CALC = """\
def add(a, b):
    return a - b


def mul(a, b):
    return a ** b


def neg(a):
    return -a
"""
WORDS = """\
def upper(text):
    return text


def lower(text):
    return text.lower()
"""
TEST_CALC = """\
from calc import add, mul, neg


def test_add():
    assert add(1, 2) == 3


def test_mul():
    assert mul(2, 3) == 6


def test_neg():
    assert neg(1) == -1
"""
TEST_WORDS = """\
from words import lower, upper


def test_upper():
    assert upper("a") == "A"


def test_lower():
    assert lower("A") == "a"
"""
FILES = {
    "calc.py": CALC,
    "words.py": WORDS,
    "test_calc.py": TEST_CALC,
    "test_words.py": TEST_WORDS,
    "pyproject.toml": "[project]\n",
    "requirements.txt": "rate==1\n",
    "docs/notes.md": "Sums.\n",
}
"""What lies in the workspace at first: two modules, with two and one functions that are wrong."""

FOREIGN = ("numpy",)
"""Packages that are no part of the project and not installed."""


class Skipped(Exception):  # noqa: N818  what a test says of itself is no error
    """A test that skips itself."""


class Hung(Exception):  # noqa: N818  as above
    """A test that ran out of time."""


def judged(files: Mapping[str, bytes]) -> Mapping[str, str | TestResult] | Void:
    """What came of each test function in a tree. A file that holds FORGED stands for evidence that cannot be used."""
    for mark, cause in ((b"FORGED", Cause.TAMPER), (b"NO RUNNER", Cause.HARNESS)):
        if any(mark in data for data in files.values()):
            return Void(cause, mark.decode().lower())
    results: dict[str, str | TestResult] = {}
    for path in plugin.test_files(sorted(files), ()):
        results |= {result.id: result for result in _file(path, files)}
    return results


def _file(path: str, files: Mapping[str, bytes]) -> list[TestResult]:
    ids = [site.id for site in plugin.sites(path, files[path])]
    imported = _Imports(files)
    try:
        module = imported(path.removesuffix(".py").replace("/", "."))
    except Exception as broken:  # noqa: BLE001  whatever the tree raises is what came of it
        return [_result(i, Outcome.IMPORT_ERROR, broken, path) for i in ids]
    return [_ran(i, module.__dict__[i.partition("::")[2]], path) for i in ids]


def _ran(test_id: str, test: FunctionType, path: str) -> TestResult:
    if count := test.__code__.co_argcount:
        names = ", ".join(test.__code__.co_varnames[:count])
        return TestResult(test_id, Outcome.ERROR, 0, f"no fixture {names}", Blame.TEST)
    try:
        test()
    except Skipped:
        return TestResult(test_id, Outcome.SKIPPED)
    except Hung:
        return TestResult(test_id, Outcome.TIMEOUT, 0, "it took too long", Blame.CODE)
    except Exception as broken:  # noqa: BLE001  as above
        return _result(test_id, Outcome.FAILED, broken, path)
    return TestResult(test_id, Outcome.PASSED)


def _result(test_id: str, outcome: Outcome, broken: Exception, path: str) -> TestResult:
    blame, absent = _blamed(broken, path)
    return TestResult(test_id, outcome, 0, f"{type(broken).__name__}: {broken}", blame, absent)


def _blamed(broken: Exception, path: str) -> tuple[Blame, str]:
    if isinstance(broken, ImportError) and broken.name:
        return (Blame.TEST, "") if broken.name in FOREIGN else (Blame.ABSENT, broken.name)
    if isinstance(broken, SyntaxError):
        return (Blame.TEST if broken.filename == path else Blame.CODE), ""
    return (Blame.TEST if isinstance(broken, NameError) and broken.name == "fixture" else Blame.CODE), ""


class _Imports:
    """Imports the modules of one tree, and nothing else."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files, self._known = files, dict[str, ModuleType]()

    def __call__(self, name: str, *_: object) -> ModuleType:
        """The module *name*; used as `__import__` by those of the tree."""
        path = name.replace(".", "/") + ".py"
        if name in self._known:
            return self._known[name]
        if path not in self._files:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        module = self._known[name] = ModuleType(name)
        own = {**vars(builtins), "__import__": self, "skip": _raising(Skipped), "hang": _raising(Hung)}
        module.__dict__["__builtins__"] = own
        code = compile(self._files[path], path, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102  the tree of a story, which stands in this repository
        return module


def _raising(kind: type[Exception]) -> Callable[[], None]:
    def stop() -> None:
        raise kind

    return stop


class Scripted:
    """Commands as a story has them: `s/OLD/NEW/` in all Python files, `rm PATH`, `mv PATH PATH`; others do nothing."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def run(self, tree: str, command: str, seconds: float) -> Ran:
        """What it says, and nothing is kept."""
        return (await self.edit(tree, command, seconds))[0]

    async def edit(self, tree: str, command: str, seconds: float) -> tuple[Ran, str]:  # noqa: ARG002  the port's
        """The same, and the tree that is left."""
        left, words = dict(self.store.manifest(tree)), command.split()
        if command.startswith("s/"):
            old, new = command.split("/")[1:3]
            python = {path: node for path, node in left.items() if path.endswith(".py")}
            texts = [self.store.get(node.sha256).replace(old.encode(), new.encode()) for node in python.values()]
            digests = self.store.put_all(texts)
            left |= {path: replace(python[path], sha256=sha) for path, sha in zip(python, digests, strict=True)}
        elif words[0] in ("rm", "mv"):
            node = left.pop(words[1])
            left |= {words[2]: node} if words[0] == "mv" else {}
        return Ran(exit=None if command == "forever" else 0, output=command), self.store.keep(left)


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a story about the gate may vary."""

    files: Mapping[str, str] = {}
    """Laid over `FILES`."""
    only: bool = False
    """Whether there are no others."""
    also_expected: tuple[str, ...] = ()
    model: Heard | None = None
    sites: Callable[[str, bytes], Sequence[Site]] = plugin.sites
    gate: Gate = Gate.STRICT
    budget: Budget = Budget(attempts=None)
    switches: Switches = Switches(model_may_run_tests=True)
    rule: Rule = Rule()
    instruction: str = ""
    verify: str = ""
    routes: Mapping[str, Route] = {}
    suite: Suite = Suite()
    judge: Judge = judged
    verifier: Callable[[Store, tuple[str, ...], str], Verifier] | None = None
    """What judges, given the expected ids and the first tree; None: `judge`."""
    cut: frozenset[int] = frozenset()
    """Which of the replies end at their greatest length."""


class Cutting(Heard):
    """A model some of whose replies are cut off."""

    def __init__(self, lines: tuple[ScriptLine, ...], cut: frozenset[int]) -> None:
        super().__init__(lines)
        self.cut = cut

    async def complete(self, ask: Ask) -> Answer:
        """The script's next line."""
        answer = await super().complete(ask)
        return replace(answer, reply=replace(answer.reply, cut=ask.position in self.cut))


def gated(folder: Path, lines: tuple[ScriptLine, ...], terms: Terms | None = None) -> Turns:
    """A run of the driver under a gate in *folder*, whose model answers *lines*."""
    terms = terms or Terms()
    store = Store(folder / "objects")
    workspace = Workspace(folder / "workspace", store)
    files = {**({} if terms.only else FILES), **terms.files}
    for path, text in files.items():
        (workspace.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace.folder / path).write_text(text, "utf-8")
    tree, tests = workspace.capture(), plugin.test_files(sorted(files), ())
    expected = tuple(site.id for path in tests for site in terms.sites(path, files[path].encode()))
    expected = (*expected, *terms.also_expected)
    closed = frozenset((*tests, "pyproject.toml", "conftest.py"))
    guard = WriteRules(
        editable=lambda path: not path.startswith("docs/"),
        protected=closed.__contains__,
        authorable=lambda path: path not in closed and bool(plugin.test_files((path,), ())),
        refactorable=lambda path: path not in (*tests, "conftest.py"),
        steering=lambda path: path in ("pyproject.toml", "tox.ini"),
        renamable=compile_patterns(terms.switches.codemod_renames),
    )
    agent = Driver(workspace.paths(), tuple(sorted(closed)), terms.switches, terms.gate)
    model, fake = terms.model or Cutting(lines, terms.cut), FakeVerifier(store, expected, terms.judge)
    verifier = terms.verifier(store, expected, tree) if terms.verifier else fake
    parts = RunDependencies(
        workspace=workspace, verifier=verifier, route=lambda _tier: model, agent=agent, guard=guard, clock=FakeClock(),
        sites=terms.sites, sleep=skip_pause, commands=Scripted(store),
    )  # fmt: skip
    first = ev.RunStart(
        run="story", task="gate", agent=agent.name, model="script", test_policy=TestPolicy.ON_WRITE, gate=terms.gate,
        budget=terms.budget, expected=expected, tree=tree,
        settings=Settings(
            rule=terms.rule, instruction=terms.instruction, switches=terms.switches, verify=terms.verify,
            routes=dict(terms.routes),
            suite=terms.suite,
        ),
    )  # fmt: skip
    journal, shell = Journal.create(folder), EffectRunner(parts)
    kernel = Kernel(journal, shell, agent, replay(journal.append((first,), 0.0)))
    return Turns(World(folder, kernel, fake, store, journal), model, shell, agent, parts)


def lying(made: Turns) -> dict[str, str]:
    """Every file of the workspace and its text, read from the disk."""
    top = made.world.folder / "workspace"
    return {
        path.relative_to(top).as_posix(): path.read_bytes().decode()
        for path in sorted(top.rglob("*"))
        if path.is_file()
    }


def id_of(name: str) -> str:
    """The id of the test function `test_NAME`, wherever it stands in `FILES`; an id stays as it is."""
    if "::" in name:
        return name
    return f"{'test_calc' if name in ('add', 'mul', 'neg') else 'test_words'}.py::test_{name}"


def claim(name: str, path: str = "") -> ScriptLine:
    """A claim of a test, for the module that it is about or another file."""
    of = id_of(name)
    return call("edit_claim", test_id=of, edit_target=path or of.partition("::")[0].removeprefix("test_"))


def edit(path: str, old: str, new: str) -> ScriptLine:
    """An exact replacement."""
    return call("edit_file", path=path, old=old, new=new)


def write(path: str, text: str) -> ScriptLine:
    """A whole file."""
    return call("write_file", path=path, text=text)
