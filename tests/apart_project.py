"""A small honest project that does what real ones do: the code under test, and its tests. Data, never imported."""

PRODUCT = r"""
import abc, collections, contextlib, dataclasses, enum, functools, json, os, sys, time
import datetime, typing, warnings

LIMIT = 10


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Size(str, enum.Enum):
    S = "s"


Point = collections.namedtuple("Point", "x y")


class Pair(typing.NamedTuple):
    a: int
    b: str = "q"


@dataclasses.dataclass
class Item:
    name: str
    tags: list = dataclasses.field(default_factory=list)


class Bad(ValueError):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code

    def __str__(self):
        return "bad %s" % self.code


class Worse(Bad, KeyError):
    pass


class Stack:
    size = 3

    def __init__(self, items=()):
        self._items = list(items)
        self.log = []

    def push(self, x):
        self._items.append(x)
        return self

    def pop(self):
        return self._items.pop()

    def __len__(self):
        return len(self._items)

    def __iter__(self):
        return iter(self._items)

    def __getitem__(self, i):
        return self._items[i]

    def __setitem__(self, i, v):
        self._items[i] = v

    def __delitem__(self, i):
        del self._items[i]

    def __contains__(self, x):
        return x in self._items

    def __bool__(self):
        return bool(self._items)

    def __call__(self, n):
        return n + len(self)

    def __add__(self, o):
        return Stack(self._items + list(o))

    def __repr__(self):
        return "Stack(%r)" % self._items

    @property
    def top(self):
        return self._items[-1]

    @top.setter
    def top(self, v):
        self._items[-1] = v

    @classmethod
    def of(cls, *a):
        return cls(a)

    @staticmethod
    def double(x):
        return 2 * x

    def internal(self):
        return self._items

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, *e):
        self.log.append(e[0] and e[0].__name__)
        return False


class Dict(dict):
    def __missing__(self, k):
        self[k] = k * 2
        return self[k]


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
    def describe(self):
        return "area %s" % self.area()


class Base:
    def __init__(self, n):
        self.n = n
        self.setup()

    def setup(self):
        self.ready = False

    def run(self):
        return [self.step(i) for i in range(self.n)]

    def step(self, i):
        return i


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n + 1


def gen(n):
    for i in range(n):
        yield i * i


def echo():
    got = yield 1
    while True:
        got = yield got


def apply(f, *a, **k):
    return f(*a, **k)


def sort_in_place(xs):
    xs.sort()


def merge(a, b):
    a.update(b)
    return a


def fail(code):
    raise Bad(code, "x")


def chain():
    try:
        {}["k"]
    except KeyError as e:
        raise Bad(1, "c") from e


def leave(n):
    sys.exit(n)


def shout(x):
    print(x)
    print("err", file=sys.stderr)


def ask():
    return input("name? ").upper()


def read():
    return sys.stdin.read()


def env():
    return os.environ.get("THING"), sys.argv[1:]


def parse(text):
    return json.loads(text)


def missing():
    open("/nonexistent/file")


def warn():
    warnings.warn("old", DeprecationWarning)
    return 1


def deco(f):
    @functools.wraps(f)
    def w(*a):
        return f(*a) + 1

    return w


@contextlib.contextmanager
def ctx(log):
    log.append("a")
    try:
        yield 5
    finally:
        log.append("b")


def kinds():
    return [
        int,
        dict,
        None,
        ...,
        1j,
        range(3),
        slice(1, 2),
        b"x",
        bytearray(b"y"),
        frozenset([1]),
        2**100,
        float("inf"),
        datetime.date(2020, 1, 2),
    ]


def counter(ws):
    return collections.Counter(ws)


def ordered():
    return collections.OrderedDict(a=1, b=2)


def dd():
    return collections.defaultdict(list, a=[1])


def nap():
    time.sleep(1)
    return 1


def identity(x):
    return x


def uses_limit():
    return LIMIT * 2


def now():
    return time.time()


def visit(tree, f):
    f(tree.value)
    for c in tree.children:
        visit(c, f)


def total(it):
    return sum(it)


def cb_error(f):
    try:
        f()
    except ValueError as e:
        return "caught %s" % e


def keyed(xs):
    return sorted(xs, key=lambda x: x.rank)


def tz():
    return datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
"""

TESTS = r"""
from product import *
import collections, datetime, dataclasses, enum, io, json, sys, time, os
import pytest, unittest.mock
import product
from product import Stack, Bad, Worse


class Node:
    def __init__(self, value, *children):
        self.value, self.children = value, children


def test_enum():
    assert product.Color.RED is product.Color["RED"] is product.Color(1)
    assert [c.name for c in product.Color] == ["RED", "BLUE"] and len(product.Color) == 2
    assert isinstance(product.Color.RED, product.Color) and product.Color.RED.value == 1
    assert product.Level.HIGH == 2 and product.Level.LOW < 2 and product.Size.S == "s"
    assert product.Level.HIGH is product.Level(2)


def test_tuple():
    p = product.Point(1, 2)
    assert p == (1, 2) and p.x == 1 and p[1] == 2 and len(p) == 2 and p._replace(x=5) == (5, 2)
    a, b = product.Pair(1)
    assert (a, b) == (1, "q") and isinstance(p, tuple) and type(p) is product.Point
    assert {p: 1}[product.Point(1, 2)] == 1


def test_item():
    i = product.Item("a")
    i.tags.append("t")
    assert i.tags == ["t"] and i.name == "a"
    i.name = "b"
    assert i.name == "b"
    assert "Item(name='b'" in repr(i)
    assert i.__dict__ == {"name": "b", "tags": ["t"]}


def test_stack():
    s = Stack([1, 2])
    assert s.push(3) is s
    assert len(s) == 3 and list(s) == [1, 2, 3] and s[0] == 1 and s[-1] == 3 and 2 in s and 9 not in s
    s[0] = 5
    del s[1]
    assert list(s) == [5, 3] and s.top == 3
    s.top = 4
    assert s.pop() == 4 and s(1) == 2 and bool(s) and not Stack()
    assert list(s + [1]) == [5, 1] and Stack.double(2) == 4 and list(Stack.of(1, 2)) == [1, 2]
    assert Stack.size == 3 and s.size == 3 and repr(s) == "Stack([5])" and str(s) == "Stack([5])"
    assert s[0:1] == [5] and list(reversed(Stack([1, 2]))) == [2, 1] and callable(s)


def test_alias():
    s = Stack([1])
    inner = s.internal()
    inner.append(2)
    assert len(s) == 2
    s.push(3)
    assert inner == [1, 2, 3] and s.internal() is inner


def test_with():
    s = Stack()
    with s as t:
        assert t is s
    with pytest.raises(ZeroDivisionError):
        with s:
            1 / 0
    assert s.log == ["in", None, "in", "ZeroDivisionError"]


def test_ctx():
    log = []
    with product.ctx(log) as n:
        assert n == 5
    with pytest.raises(KeyError):
        with product.ctx(log):
            raise KeyError("x")
    assert log == ["a", "b", "a", "b"]


def test_dict():
    d = product.Dict(a=1)
    assert d["b"] == "bb" and d == {"a": 1, "b": "bb"} and isinstance(d, dict) and sorted(d) == ["a", "b"]
    d["c"] = 3
    assert len(d) == 3 and json.loads(json.dumps(d)) == {"a": 1, "b": "bb", "c": 3}
    assert product.identity(d) is d and d["cc"] == "cccc" and "c" in d


def test_errors():
    with pytest.raises(Bad, match="bad 3") as e:
        product.fail(3)
    assert (
        e.value.code == 3
        and e.value.args == ("x",)
        and type(e.value) is Bad
        and isinstance(e.value, ValueError)
    )
    with pytest.raises(ValueError):
        product.fail(3)
    with pytest.raises(json.JSONDecodeError) as e:
        product.parse("{")
    assert e.value.pos == 1
    with pytest.raises(FileNotFoundError) as e:
        product.missing()
    assert e.value.filename == "/nonexistent/file" and e.value.errno == 2
    assert issubclass(Worse, KeyError) and issubclass(Worse, Bad)
    with pytest.raises(Bad) as e:
        product.chain()
    assert isinstance(e.value.__cause__, KeyError)


def test_exit():
    with pytest.raises(SystemExit) as e:
        product.leave(3)
    assert e.value.code == 3


def test_gen():
    assert list(product.gen(4)) == [0, 1, 4, 9]
    g = product.echo()
    assert next(g) == 1 and g.send(5) == 5
    g.close()
    assert next(product.gen(0), None) is None and list(product.Countdown(2)) == [2, 1]
    assert isinstance(product.gen(1), collections.abc.Iterator)


def test_callbacks():
    seen = []
    assert product.apply(lambda a, b=1: a + b, 1, b=2) == 3
    product.visit(Node(1, Node(2), Node(3, Node(4))), seen.append)
    assert seen == [1, 2, 3, 4]
    assert product.total(x for x in range(4)) == 6

    def boom():
        raise ValueError("v")

    assert product.cb_error(boom) == "caught v"
    with pytest.raises(ValueError, match="v"):
        product.apply(boom)

    class Mine(Exception):
        pass

    def mine():
        raise Mine("m")

    with pytest.raises(Mine):
        product.apply(mine)
    f = lambda: 0
    assert product.identity(f) is f
    assert product.deco(lambda x: x)(1) == 2


def test_mutation():
    xs = [3, 1, 2]
    product.sort_in_place(xs)
    assert xs == [1, 2, 3]
    d = {"a": 1}
    assert product.merge(d, {"b": [1]}) is d and d == {"a": 1, "b": [1]}


def test_io(capsys):
    product.shout("hi")
    out = capsys.readouterr()
    assert out.out == "hi\n" and out.err == "err\n"


def test_input(monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda p="": "bob")
    assert product.ask() == "BOB"
    monkeypatch.undo()
    monkeypatch.setattr("sys.stdin", io.StringIO("eve\nrest"))
    assert product.ask() == "EVE" and product.read() == "rest"


def test_env(monkeypatch):
    monkeypatch.setenv("THING", "x")
    monkeypatch.setattr(sys, "argv", ["p", "-v"])
    assert product.env() == ("x", ["-v"])
    monkeypatch.undo()
    assert product.env()[0] is None


def test_monkeypatch(monkeypatch):
    monkeypatch.setattr(product, "LIMIT", 4)
    assert product.uses_limit() == 8 and product.LIMIT == 4
    monkeypatch.undo()
    assert product.uses_limit() == 20
    with unittest.mock.patch("product.time.sleep") as m:
        assert product.nap() == 1
    m.assert_called_once_with(1)
    monkeypatch.setattr(Stack, "pop", lambda self: "patched")
    assert Stack([1]).pop() == "patched"
    monkeypatch.undo()
    assert Stack([1]).pop() == 1
    with unittest.mock.patch.object(product, "now", return_value=5):
        assert product.now() == 5


def test_kinds():
    assert product.kinds() == [
        int,
        dict,
        None,
        ...,
        1j,
        range(3),
        slice(1, 2),
        b"x",
        bytearray(b"y"),
        frozenset([1]),
        2**100,
        float("inf"),
        datetime.date(2020, 1, 2),
    ]
    assert product.counter("aab") == {"a": 2, "b": 1} and product.counter("aab").most_common(1) == [("a", 2)]
    assert product.ordered() == collections.OrderedDict(a=1, b=2)
    d = product.dd()
    d["z"].append(1)
    assert d == {"a": [1], "z": [1]}
    assert product.tz() == datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)


def test_warn():
    with pytest.warns(DeprecationWarning, match="old"):
        assert product.warn() == 1


def test_subclass():
    class Square(product.Shape):
        def __init__(self, s):
            self.s = s

        def area(self):
            return self.s**2

    q = Square(3)
    assert q.describe() == "area 9" and isinstance(q, product.Shape) and q.s == 3 and q.area() == 9
    with pytest.raises(TypeError):
        product.Shape()

    class Doubler(product.Base):
        factor = 2

        def __init__(self, n):
            super().__init__(n)
            self.mine = "m"

        def setup(self):
            super().setup()
            assert self.ready is False
            self.ready = True

        def step(self, i):
            return super().step(i) * self.factor

    d = Doubler(3)
    assert d.run() == [0, 2, 4] and d.ready is True and d.mine == "m" and d.n == 3 and type(d) is Doubler
    assert product.identity(d) is d

    class Rank:
        def __init__(s, r):
            s.rank = r

    a, b = Rank(2), Rank(1)
    assert product.keyed([a, b]) == [b, a]

    class MyBad(Bad):
        def __init__(self):
            super().__init__(9, "nine")

    def boom():
        raise MyBad()

    with pytest.raises(MyBad):
        product.apply(boom)
    with pytest.raises(Bad, match="bad 9"):
        product.apply(boom)


def test_copy():
    import copy

    s = Stack([[1]])
    t = copy.deepcopy(s)
    t[0].append(2)
    assert list(s) == [[1]] and list(t) == [[1, 2]]


def test_reload():
    import importlib

    product.LIMIT = 99
    importlib.reload(product)
    assert product.LIMIT == 10


def test_none():
    s = Stack()
    assert s != None and s == s and s is not None and not (s == 5) and s != [1]


@pytest.mark.parametrize("n", range(3))
def test_param(n):
    assert product.identity(n) == n


class TestX(unittest.TestCase):
    def setUp(self):
        self.s = Stack([1])

    def test_a(self):
        self.assertEqual(len(self.s), 1)
        self.assertIsInstance(self.s, Stack)
        with self.assertRaises(IndexError):
            self.s[5]
        self.assertIn(1, self.s)
"""
