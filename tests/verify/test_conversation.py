"""Two processes: tests that ask and get data back are at `A`, all others at `B`, and it is said why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from jumar.child.two_process.wire.conversation import Conversation
from jumar.core.state.verdict import Outcome, Report
from support.judging.samples import sampled
from support.judging.two_process_verifier import confirm, outcomes, reported

PRODUCT = """
import json
import logging
import warnings


class Money:
    def __init__(self, n): self.n = n
    def __add__(self, other): return Money(self.n + getattr(other, "n", other))
    def __eq__(self, other): return Money(0)
    def __hash__(self): return 0
    def is_about(self, n): return abs(self.n - n) < 2


class Visitor:
    def walk(self, items): return [self.visit(item) for item in items]
    def visit(self, item): return item


class Text:
    def __get__(self, thing, kind=None): return "x"


class Kind(type):
    def __instancecheck__(cls, thing): return True


class Any(metaclass=Kind):
    pass


class Table:
    def __init__(self, made=None): self.rows = []
    def add(self, row): self.rows.append(row)


_seen = []
limit = 3
def double(n): return 2 * n
def give(thing): return thing
def apply(function, *items): return [function(item) for item in items]
def tell_type(thing): return type(thing)
def keep(thing): return _seen.append(thing)
def total(order): return sum(order.prices)
def load(stream): return json.load(stream)
def collect(items, found): found.extend(items)
def grow(items): items.append(1)
def sort(items): items.sort()
def rename(thing, name): thing.name = name
def write(path, text): path.write_text(text)
def read(path): return path.read_text()
def show(text): print(text)
def log(text, name="shop"): logging.getLogger(name).warning(text)
def warn(text): warnings.warn(text)
def fail(): raise KeyError("a")
def count(items): return sum(1 for _ in items)
async def wait(n): return n
def apply_late(function): return keep(function) or function
"""

HEAD = """
import asyncio, collections, contextlib, dataclasses, enum, fractions, io, logging, operator, random, sys, types
import unittest, warnings
from array import array
from logging import handlers
from unittest import mock
import pytest
import product
from product import *

@dataclasses.dataclass
class Order:
    prices: list
    name: str = ""

@dataclasses.dataclass(frozen=True)
class Fixed:
    name: str

Pair = collections.namedtuple("Pair", "a b")

class AnyText(str):
    def __eq__(self, other): return True
    __hash__ = str.__hash__

class User:
    name = Text()

class Screen:
    def write(self, text): return 0
    def flush(self): pass

class Tap(logging.Filter):
    def filter(self, record): return True

class Shape(logging.Formatter):
    def format(self, record): return ""

class Size(enum.Enum):
    SMALL = 1

class Failed(Exception): pass

class Late(Visitor):
    def tell(self): return 1

class Near:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return abs(self.n - other) < 2

class Fake:
    def send(self, n): return n

@pytest.fixture
def patched(monkeypatch): return monkeypatch

@pytest.fixture
def get(request): return request.getfixturevalue
"""

CALLED, HANDED, CHANGED, HEARD = (
    "the code calls into the tests",
    "the test hands the code",
    "the code changes what the test holds",
    "__",
)

BODIES = {
    # The tests ask, and data comes back.
    "assert double(2) == 4": "",
    "assert [double(n) for n in (1, 2)] == [2, 4]": "",
    "assert total(Order([1, 2])) == 3": "",
    "assert (Money(1) + Money(2)).n == 3": "",
    "assert Money(1).is_about(2)": "",
    "assert load(io.StringIO('[1]')) == [1]": "",
    "found = sorted({'b': 1, 'a': 2}); assert apply.__name__ == 'apply' and found": "",
    "table = Table(); table.add('a'); assert table.rows == ['a']": "",
    "keep(Size.SMALL); keep(Failed('a')); keep(object()); keep(types.SimpleNamespace(a=1)); assert double(1) == 2": "",
    "error = pytest.raises(KeyError, fail); assert error.value.args == ('a',)": "",
    "assert asyncio.run(wait(3)) == 3": "",
    "keep(Fixed('a')); show('a'); log('a'); assert double(1) == 2": "",
    "assert random.Random(3).random() < 1 and double(1) == 2": "",
    "assert Visitor().walk([1]) == [1]": "",
    "path = tmp_path / 'a'; path.write_text('b'); assert read(path) == 'b'": "",
    "with pytest.warns(UserWarning): warn('a')": "",
    "caplog = get('caplog'); log('a'); assert caplog.messages == ['a']": "",
    "capsys = get('capsys'); show('a'); assert capsys.readouterr().out == 'a\\n'": "",
    "with unittest.TestCase().assertLogs('shop') as heard: log('a')\n    assert heard.output": "",
    "logging.getLogger('over').addHandler(logging.StreamHandler(sys.__stderr__)); log('a', 'over')": "",
    "patched.setattr(product, 'limit', 2); assert product.limit == 2": "",
    "class Own(Visitor): limit = 3\n    assert Own().walk([1]) == [1]": "",
    # Code of the tests may run where the code under test asks it, or did.
    "assert apply(lambda n: n + 1, 1) == [2]": HANDED,
    "keep(lambda n: n); assert double(1) == 2": HANDED,
    "keep(Fake()); assert double(1) == 2": HANDED,
    "keep(Fake); assert double(1) == 2": HANDED,
    "keep([Fake()]); assert double(1) == 2": HANDED,
    "keep(mock.Mock()); assert double(1) == 2": HANDED,
    "assert Late().walk([1]) == [1]": HANDED,
    "keep(Late); assert double(1) == 2": HANDED,
    "found = []; keep(found.append); assert double(1) == 2": HANDED,
    "assert count(n for n in (1, 2)) == 2": HANDED,
    "assert count(iter((1, 2))) == 2": HANDED,
    "patched.setattr(product, 'double', lambda n: 3); assert double(1) == 2": HANDED,
    "class Own(Visitor):\n        def visit(self, item): return 0\n    assert Own().walk([1]) == [0]": HANDED,
    "assert Order([1]) == Order([1]) and total(Order([Order])) if 0 else apply(Order, 1)": CALLED,
    "patched.setattr(sys, 'stdout', Screen()); show('a'); assert double(1) == 2": "the code writes into a Screen",
    "with contextlib.redirect_stdout(io.StringIO()): show('a')": "the code writes into a StringIO",
    "with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())): show('a')": "the code writes into a Text",
    "with contextlib.redirect_stdout(open(tmp_path / 'a', 'w')): show('a')": "the code writes into a TextIOWrapper",
    "with contextlib.redirect_stderr(mock.Mock()): show('a'); log('a')": "",
    "with contextlib.redirect_stdout(mock.Mock()): show('a')": "the code writes into a Mock",
    "logging.getLogger('kept').addHandler(handlers.MemoryHandler(9)); log('a', 'kept')": "the code writes into a",
    "made = logging.StreamHandler(); made.setFormatter(Shape()); logging.getLogger('made').addHandler(made); "
    "log('a', 'made')": "the code writes into a Shape",
    "logging.setLogRecordFactory(lambda *args: logging.LogRecord(*args)); log('a'); "
    "logging.setLogRecordFactory(logging.LogRecord)": "the code writes into a function",
    "patched.setattr(warnings, 'showwarning', print); warn('a')": "the code writes into a builtin",
    "logging.getLogger('late').addFilter(Tap()); log('a', 'late'); assert double(1) == 2": "the code writes into a Tap",
    # It gives back what compares as the tests say.
    "keep(Near(1)); assert double(1) == 2": "",
    "assert give(Fixed('a')) == Fixed('a') and give(Size.SMALL) is Size.SMALL": "",
    "assert give(Near(1)) == 2": "the code gives back a Near of the test, which compares by its own __eq__",
    "assert give([{'a': Near(1)}]) == [{'a': 2}]": "the code gives back a Near",
    "assert give([{'a': Fixed('a')}]) == [{'a': Fixed('a')}]": "",
    "assert give(Fixed(Near(1))) == Fixed(2)": "the code gives back a Near",
    "assert give(types.SimpleNamespace(_a=Near(1)))._a == 2": "the code gives back a Near",
    "assert give(Pair(1, Near(1))) == (1, 2)": "the code gives back a Near",
    "assert give(collections.defaultdict(int, a=Near(1))) == {'a': 2}": "the code gives back a Near",
    "assert give(collections.Counter(a=Near(1)))['a'] == 2": "the code gives back a Near",
    "assert give(Order([Near(1)])).prices == [2]": "the code gives back a Near",
    "assert tell_type(Near(1))(2) == 3": "the code gives back a Near",
    "assert collections.defaultdict(tell_type(Near(1)), b=2) != {}": "the code gives back a Near",
    "assert tell_type(Fixed('a')) is Fixed and tell_type(Money(1)) is Money": "",
    "assert give(Pair(1, 2)) == (1, 2)": "",
    "assert give(AnyText('a')) == 2": "the code gives back a AnyText",
    # What the test holds is not what it was.
    "found = []; collect([1], found); assert found": CHANGED,
    "order = Order([1]); rename(order, 'a'); assert order.name": CHANGED,
    "table = Table(); rows = table.rows; grow(rows); assert rows": CHANGED,
    "items = [2, 1]; text = repr(items); sort(items); assert repr(items) == text": "",
    # An object of the code hears what is compared.
    "assert (Money(1) + 2).n == 3": HEARD,
    "assert isinstance(3, Any)": "Any says itself",
    "assert User().name == 'x'": HEARD,
    "random.seed(3); assert double(1) == 2": "the code has the generator that the test seeds",
    "with contextlib.ExitStack() as stack: stack.callback(random.seed, 7)": "the code has the generator",
    "keep(random.Random(7)); assert double(1) == 2": "the code has a copy of a Random of the test",
    "keep(operator.itemgetter(1)); keep(fractions.Fraction(1, 2)); keep(types.GenericAlias(list, int))": "",
    "query = Money(1) == 2; keep(query); assert double(1) == 2": HEARD,
}

IDLE = """
def check(n): assert n == 1

def give(n): return n
"""


@pytest.mark.slow
def test_a_test_that_asks_and_gets_data_back_is_one_way(tmp_path: Path) -> None:
    tests = "".join(f"def test_{n}(tmp_path, patched, get):\n    {body}\n" for n, body in enumerate(BODIES))
    said = confirm(tmp_path, {"product.py": PRODUCT, "test_product.py": f"{HEAD}\n\n{tests}"})

    reasons = {body: said.conversed.get(f"test_product.py::test_{n}", "") for n, body in enumerate(BODIES)}
    wrong = {b: why for b, why in reasons.items() if not (why.startswith(BODIES[b]) and (BODIES[b] or not why))}
    assert wrong == {}


LENT = """
import pytest
from product import give, lend

class Row: pass

ALL = Row()

@pytest.fixture(scope="module", autouse=True)
def lent(): lend("all", ALL)

def test_lends(): assert lend("one", Row()) == 1
def test_gets_its_own():
    row = Row()
    assert lend("own", row) == 1 and give("own") is row
def test_gets_what_all_have(): assert give("all") is ALL
def test_gets_what_another_one_lent(): assert give("one")
"""
LENDING = """
KEPT = {}
def lend(name, thing):
    KEPT[name] = thing
    return 1
def give(name): return KEPT[name]
"""


@pytest.mark.slow
def test_what_one_test_lent_is_no_evidence_in_another(tmp_path: Path) -> None:
    report = confirm(tmp_path, {"product.py": LENDING, "test_product.py": LENT})

    why = "the code gives back a Row that another test has handed out"
    assert report.doubted == {"test_product.py::test_gets_what_another_one_lent": why}


DOUBLED = "def test_double(): assert double(2) == 4\n"


def load_two(folder: Path, head: str, loaded: str, others: Mapping[str, str]) -> Report:
    """A confirmation of two files with *head*, of which the first one runs *loaded* at its top."""
    start = f"from product import *\n{head}"
    files = {"test_one.py": f"{start}{loaded}\n{DOUBLED}", "test_two.py": f"{start}{DOUBLED}"}
    return confirm(folder, {"product.py": PRODUCT, **files, **others})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asserting", "silent"),
    [("keep(check)", {"test_one.py"}), ("keep(give)", set()), ("from helper import *", {"test_one.py", "test_two.py"}),
     ("@apply_late\ndef same(n): equal(n)\n\ndef equal(n): return other(n).check()\n\ndef other(n): assert n == 1",
      {"test_one.py"}),
     ("class Own(Visitor):\n    def visit(self, n): assert n == 1", {"test_one.py"})],
)  # fmt: skip
def test_what_a_file_hands_out_while_it_is_loaded_has_to_assert_in_its_tests(
    tmp_path: Path, asserting: str, silent: set[str]
) -> None:
    report = load_two(tmp_path, IDLE, asserting, {"helper.py": f"from product import *\n{IDLE}keep(check)\n"})

    failed = {result.id.partition("::")[0] for result in report.results if result.outcome is not Outcome.PASSED}
    assert failed == silent


LIKEWISE: tuple[tuple[str, set[str]], ...] = (
    ("keep(Fake)", {"test_one.py"}),
    ("class Own(Visitor):\n    def visit(self, item): return item", set()),
    ("keep({'call': lambda n: n})", set()),
    ("keep(thing=lambda n: n)", set()),
    ("Money(1) + 2", {"test_one.py"}),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loaded", "conversing"),
    [("keep(Fake())", {"test_one.py"}), ("keep(double)", set()), ("apply(lambda n: n, 1)", {"test_one.py"}),
     ("class Own(Visitor):\n    def visit(self, item): return item\nkeep(Own)", set()),
     ("found = []\ncollect([1], found)", {"test_one.py"}),
     *(pytest.param(*case, marks=pytest.mark.proof) for case in LIKEWISE),
     ("from other import *", {"test_one.py", "test_two.py"}),
     ("from test_zero import (\n    Fake as Other)", {"test_one.py"}),
     ("import importlib\nimportlib.import_module('test_zero')", {"test_one.py"}), ("def test_zero(): pass", set()),
     ("def pytest_generate_tests(metafunc): keep(double)", set()),
     ("def pytest_generate_tests(metafunc): keep(lambda n: n)", {"test_one.py"})],
)  # fmt: skip
def test_what_crosses_while_a_file_is_loaded_counts_for_its_tests(
    tmp_path: Path, loaded: str, conversing: set[str]
) -> None:
    """And what a file without tests hands out, for all, or one with tests, for those that import it."""
    fake = "class Fake:\n    def send(self, n): return n\n"
    other = f"from product import *\n{fake}keep(Fake())\n"

    report = load_two(tmp_path, fake, loaded, {"other.py": other, "test_zero.py": f"{other}{DOUBLED}"})

    assert set(outcomes(report).values()) == {"passed"}
    assert {name.partition("::")[0] for name in report.conversed} == {*conversing, "test_zero.py"}


KEPT = "from product import *\nclass Fake:\n    def send(self, n): return n\nkeep(Fake())\n"
BROKEN = f"{KEPT}raise ValueError\ndef test_zero(): pass\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "counts"),
    [({"tests/test_zero.py": BROKEN}, False), ({"tests/conftest.py": KEPT}, True), ({"tests/__init__.py": KEPT}, True),
     ({"conftest.py": "pytest_plugins = ['test_zero']", "test_zero.py": f"{KEPT}def test_zero(): pass"}, True)],
)  # fmt: skip
def test_what_crosses_while_a_file_is_loaded_counts_for_tests_that_it_is_loaded_for(
    tmp_path: Path, files: dict[str, str], *, counts: bool
) -> None:
    """A test file that does not load in two processes is loaded for its own; a conftest.py for all."""
    tests = {"pytest.ini": "[pytest]\npython_files = *.py\n", "tests/test_two.py": f"from product import *\n{DOUBLED}"}

    report = confirm(tmp_path, {"product.py": PRODUCT, **tests, **files})

    assert outcomes(report)["test_double"] == "passed"
    assert ("tests/test_two.py::test_double" in report.conversed) == counts


@pytest.mark.parametrize(
    ("name", "relies"),
    [("test_one.py", True), ("test_two.py", False), ("helper.py", True), ("named.py", True),
     ("a/conftest.py", True), ("a/__init__.py", True)],
)  # fmt: skip
def test_tests_rely_on_files_that_are_loaded_for_them(name: str, *, relies: bool) -> None:
    """Also on a conftest.py or a package that has tests of its own."""
    conversation = Conversation(bool, bool, bool)
    conversation.files.update(("test_one.py", "test_two.py", "named.py", "a/conftest.py", "a/__init__.py"))
    conversation.note_text("test_one.py", "import product, named")

    assert conversation.relies_on("test_one.py", name) is relies


LOOKS = (
    "os.getcwd()", "dict(os.environ)", "'json' in sys.modules", "(lambda: os.getcwd())()", "here()", "look()",
    "helpers.look()", "list(sys.path)", "threading.enumerate()", "sys.setrecursionlimit(900)",
    "setattr(socket, 'a', 1) or give(3)", "double(array('i', [1])) is None",
)  # fmt: skip


@pytest.mark.parametrize("looked", sampled(LOOKS, "os.getcwd()", "here()", "helpers.look()", *LOOKS[-2:]))
def test_a_test_that_looks_at_its_own_process_is_judged_there(tmp_path: Path, looked: str) -> None:
    """By a helper at any depth, too, and not where another thing has such a name."""
    head = "import contextlib, os, socket, sys, threading\nimport helpers\nfrom os import getcwd as here\n"
    head += "from array import array\nfrom product import double\n\n"
    head += "def look(): return [*helpers.tell(), *enumerate(os.path.basename('a'))]\n"
    head += "def give(n):\n    socket.b = n\n    return n\n"
    helpers = "import contextlib, os\n@contextlib.contextmanager\ndef unchanged():\n    here = os.getcwd()\n"
    helpers += "    yield here\ndef tell():\n    with unchanged() as here: return here\ndef look(): return tell()\n"
    body = "    before = {0}\n    assert double(2) == 4 and {0} == before\n"
    tests = f"{head}def test_double():\n{body.format(looked)}\ndef test_name():\n"
    tests += body.format("[*enumerate(os.path.basename(helpers.__name__))]")

    report = confirm(tmp_path, {"product.py": PRODUCT, "helpers.py": helpers, "test_product.py": tests})

    assert outcomes(report) == {"test_double": "failed", "test_name": "passed"}
    assert report.tied == ("test_product.py::test_double",)


@pytest.mark.slow
def test_a_file_that_a_test_loads_after_it_has_called_back_counts_for_the_others(tmp_path: Path) -> None:
    other = "from product import *\nclass Fake:\n    def send(self, n): return n\nkeep(Fake())\n"
    loading = "def test_load():\n    assert apply(lambda n: n, 1) == [1]\n    import other\n"
    tests = f"from product import *\n{loading}def test_double(): assert double(2) == 4\n"

    report = reported(tmp_path, {"product.py": PRODUCT, "other.py": other, "test_product.py": tests})

    assert set(outcomes(report).values()) == {"passed"}
    assert sorted(report.conversed) == ["test_product.py::test_double", "test_product.py::test_load"]


@pytest.mark.slow
def test_what_a_seeded_test_has_drawn_is_not_drawn_again_by_the_code(tmp_path: Path) -> None:
    product = "import random\ndef draw(): return random.random()\n"
    tests = """
import random
from product import draw

def test_draw():
    random.seed(7)
    first, found = random.random(), draw()
    assert first != found == random.random()
"""
    report = confirm(tmp_path, {"product.py": product, "test_product.py": tests})

    assert outcomes(report) == {"test_draw": "passed"}


@pytest.mark.slow
def test_what_a_fixture_of_several_tests_has_of_the_code_counts_for_those_after_it(tmp_path: Path) -> None:
    tests = """
import pytest
from product import *

def test_before(): assert double(1) == 2

@pytest.fixture(scope="module")
def found():
    found = []
    collect([1], found)
    return found

def test_one(found): assert found == [1]
def test_two(found): assert found == [1]
"""
    report = reported(tmp_path, {"product.py": PRODUCT, "test_product.py": tests})

    assert set(outcomes(report).values()) == {"passed"}
    assert sorted(report.conversed) == ["test_product.py::test_one", "test_product.py::test_two"]
