"""Code that looks at the frames of a test, at all objects or at test files is seen; code that logs is not."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from jumar.process.room import LaidFiles
from jumar.process.warm.pool import WarmPool
from jumar.process.warm.starts import WARM, WarmStarts
from jumar.verify.rounds import begin_rounds
from support.judging.real_verifier import Court

LOOKING = {
    "its caller": "import sys\n\n\ndef f():\n    return sys._getframe(1).f_code.co_consts\n",
    "by another name": "import sys\n\n\ndef f():\n    return getattr(sys, '_get' + 'frame')(1)\n",
    "by a traceback": """\
        def f():
            try:
                raise ValueError
            except ValueError as error:
                return error.__traceback__.tb_frame.f_back
        """,
    "by inspect": "import inspect\n\n\ndef f():\n    return inspect.stack()\n",
    "by the exception of inspect": """\
        import inspect


        def f():
            try:
                raise ValueError
            except ValueError:
                return inspect.trace()[0].frame.f_back
        """,
    "by a helper of logging": "import logging\n\n\ndef f():\n    return logging.currentframe()\n",
    "all objects": "import gc\n\n\ndef f():\n    return len(gc.get_objects())\n",
    "lines of the test": """\
        import glob
        import linecache


        def f():
            return linecache.getlines(glob.glob("test_*.py")[0])
        """,
    "in the text of a log": """\
        import logging


        def f():
            logging.getLogger().error("f", stack_info=True)
        """,
}
LOOKING.update(
    {
        "code of a function of the tests, by a helper of two modules": """\
        import sys


        def f():
            return 1


        def given(callback):
            return sys.modules["_pytest._code"].Code.from_function(callback).raw
        """,
        "locals of all callers": """\
        import traceback


        def f():
            walk = traceback.walk_stack(None)
            return traceback.StackSummary.extract(walk, lookup_lines=False, capture_locals=True)
        """,
        "names of all callers": """\
        import faulthandler
        import tempfile


        def f():
            with tempfile.TemporaryFile() as file:
                faulthandler.dump_traceback(file)
        """,
        "code in another's name": """\
        import _imp


        def f():
            _imp._fix_co_filename(compile("1", "ask", "eval"), "/usr/lib/python3/ask.py")
        """,
        "memory": "def f():\n    open('/proc/self/mem', 'rb').close()\n",
        "memory in the folder of the process": """\
        import os


        def f():
            os.close(os.open("mem", os.O_RDONLY, dir_fd=os.open("/proc/self", os.O_RDONLY)))
        """,
        "a module of the tests": "import sys\n\n\ndef f():\n    return vars(sys.modules['test_app'])\n",
        "a module of the tests by a helper": """\
        import pkgutil


        def f():
            return pkgutil.resolve_name("test_app:test_f")
        """,
        "a name in a module of the tests": """\
        import sys


        def f():
            sys.modules["test_app"].more = 1
        """,
    }
)
EARLY = "\n\ndef f():\n    return SEEN\n"
LOOKING.update({
    "a file by bytes": "def f():\n    return open(b'test_app.py').read()\n",
    "a file by a class of its own": """\
        class Name(str):
            pass


        def f():
            return open(Name("test_app.py")).read()
        """,
    "a file by a link": """\
        import os


        def f():
            if not os.path.exists("x.txt"):
                os.symlink("test_app.py", "x.txt")
            return open("x.txt").read()
        """,
    "a file by another name": """\
        import os


        def f():
            os.rename("test_app.py", "x.txt")
            with open("x.txt") as file:
                file.read()
            os.rename("x.txt", "test_app.py")
        """,
    "a file at import": "SEEN = open('test_app.py').read()\n" + EARLY,
    "a frame at import": "import sys\n\nSEEN = sys._getframe(1)\n" + EARLY,
    "frames at import": "import inspect\n\nSEEN = inspect.stack()\n" + EARLY,
    "a frame that asks for a name": """\
        import sys


        def __getattr__(name):
            sys._getframe(1)
            return print
        """,
    "a fork": """\
        import os


        def f():
            if not (child := os.fork()):
                os._exit(0)
            os.waitpid(child, 0)
        """,
    "a program": "import subprocess\n\n\ndef f():\n    subprocess.run(['true'], check=True)\n",
    "a program behind the scenes": """\
        import multiprocessing as several


        def f():
            child = several.get_context("spawn").Process(target=print)
            child.start()
            child.join()
        """,
    "its caller, while it silences who knows its files": """\
        import sys


        def f():
            finder = next(kind for kind in object.__subclasses__() if kind.__name__ == "BlameFinder")
            kept, finder._get_room_path = finder._get_room_path, lambda self, path: ""
            sys._getframe(1)
            finder._get_room_path = kept
        """,
    "its caller, by code made of texts": """\
        import sys

        spaces = {"sys": sys}
        exec(compile("def g():\\n    return sys._getframe(3)", "<one>", "exec"), spaces)
        exec(compile("def h():\\n    return g()", "<other>", "exec"), spaces)


        def f():
            return spaces["h"]()
        """,
    "its caller, under names of the library": """\
        import enum
        import sys
        import typing

        spaces = {"sys": sys}
        exec(compile("def g():\\n    return sys._getframe(3)", typing.__file__, "exec"), spaces)
        exec(compile("def h():\\n    return g()", enum.__file__, "exec"), spaces)


        def f():
            return spaces["h"]()
        """,
    "another interpreter": """\
        try:
            import _interpreters as several
        except ImportError:
            import _xxsubinterpreters as several


        def f():
            several.destroy(several.create())
        """,
})  # fmt: skip
LOOKING.update({
    "the frame of a signal": """\
        import signal

        SEEN = []
        signal.signal(signal.SIGUSR1, lambda _, frame: SEEN.append(frame))


        def f():
            signal.raise_signal(signal.SIGUSR1)
            return SEEN[0].f_back
        """,
    "the frame of a signal, by what is below": """\
        import _signal
        import sys

        SEEN = []


        def f():
            del sys.modules["_signal"]
            import _signal as anew
            sys.modules["_signal"] = _signal
            before = anew.signal(anew.SIGUSR1, lambda _, frame: SEEN.append(frame))
            anew.raise_signal(anew.SIGUSR1)
            anew.signal(anew.SIGUSR1, before)
            return SEEN[0].f_back
        """,
    "a frame by a call of a library": """\
        import logging
        import weakref


        def f():
            return weakref.finalize(f, logging.currentframe)().f_back
        """,
    "frames that a library steps through": """\
        import collections
        import traceback


        def f():
            return collections.Counter(traceback.walk_stack(None))
        """,
    "frames in another thread": """\
        import sys
        from concurrent.futures import ThreadPoolExecutor


        def f():
            with ThreadPoolExecutor() as pool:
                return pool.submit(sys._current_frames).result()
        """,
    "frames of a traceback in two iterators": """\
        import itertools
        import traceback


        def f():
            try:
                raise ValueError
            except ValueError as error:
                shown, kept = itertools.tee(traceback.walk_tb(error.__traceback__))
                traceback.StackSummary.extract(shown, lookup_lines=False)
                return next(kept)[0].f_back
        """,
    "the traceback of a function of the tests": """\
        import traceback


        def f():
            return 1


        def fails(callback):
            try:
                callback()
            except ZeroDivisionError as error:
                steps = traceback.walk_tb(error.__traceback__)
                return traceback.StackSummary.extract(steps, lookup_lines=False, capture_locals=True)
        """,
    "the origin of a coroutine": """\
        import sys


        async def nothing():
            pass


        def f():
            sys.set_coroutine_origin_tracking_depth(9)
            made = nothing()
            sys.set_coroutine_origin_tracking_depth(0)
            made.close()
            return made.cr_origin
        """,
    "the name of its caller in a log": """\
        import logging


        def f():
            logging.getLogger().error("f", stacklevel=2)
        """,
    "the name of its caller in a log of another file": """\
        import functools
        import logging
        import pathlib
        import sys

        pathlib.Path("importlib_bootstrap.py").write_text("def run(log):\\n    log('f')\\n")
        sys.path.insert(0, str(pathlib.Path.cwd()))
        import importlib_bootstrap

        f = functools.partial(importlib_bootstrap.run, logging.getLogger().error)
        """,
    "code in another's name, by its bytes": """\
        import marshal
        import sys

        spaces = {"sys": sys}
        for text, name in ("def g():\\n    return sys._getframe(3)", "g"), ("def h():\\n    return g()", "h"):
            made = marshal.dumps(compile(text, f"xxxxxxxxxxxxxxxxxx{name}.py", "exec"))
            exec(marshal.loads(made.replace(b"x" * 18, b"/usr/lib/python3/x")), spaces)


        def f():
            return spaces["h"]()
        """,
    "code in another's name, by a file of its bytes": """\
        import importlib.util
        import marshal
        import pathlib

        head = importlib.util.MAGIC_NUMBER + bytes(12)
        for text, name in ("import sys\\ndef g():\\n    return sys._getframe(3)", "one"), (
            "import one\\ndef h():\\n    return one.g()",
            "two",
        ):
            made = marshal.dumps(compile(text, f"xxxxxxxxxxxxxxxxxx{name}.py", "exec"))
            pathlib.Path(name + ".pyc").write_bytes(head + made.replace(b"x" * 18, b"/usr/lib/python3/x"))
        import two


        def f():
            return two.h()
        """,
})  # fmt: skip
HONEST = {
    "handles signals": """\
        import signal


        class Late(Exception):
            pass


        def late(number, frame):
            raise Late(number)


        def f():
            before = signal.signal(signal.SIGUSR1, late)
            assert signal.getsignal(signal.SIGUSR1) is late
            try:
                signal.raise_signal(signal.SIGUSR1)
            except Late as error:
                assert error.args == (signal.SIGUSR1,)
            assert signal.signal(signal.SIGUSR1, before) is late
            assert signal.signal(signal.SIGUSR1, before) is before is signal.SIG_DFL
        """,
    "makes classes and functions": """\
        import abc
        import collections
        import contextlib
        import dataclasses
        import enum
        import functools
        import inspect
        import typing
        import warnings


        def f():
            @dataclasses.dataclass
            class Point:
                x: int = 0

            class Base(abc.ABC):
                pass

            class Shape(typing.Protocol):
                x: int

            @contextlib.contextmanager
            def managed():
                yield Point(2)

            @functools.singledispatch
            def shown(one):
                return str(one)

            shown.register(int, hex)
            with managed() as point, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.warn("said", stacklevel=2)
                functools.wraps(managed)(lambda: point)
            inspect.signature(f), inspect.signature(managed), inspect.signature(dataclasses.field)
            enum.Enum("Kind", "ONE TWO"), collections.namedtuple("P", "a"), typing.NamedTuple("Q", [("a", int)])
            return typing.TypeVar("T"), typing.NewType("N", int), dataclasses.make_dataclass("Made", ["x"]), Base, Shape
        """,
    "tells of its own exceptions": """\
        import logging
        import traceback


        def f():
            try:
                {}["no"]
            except KeyError as error:
                traceback.format_exc(), traceback.format_tb(error.__traceback__)
                traceback.TracebackException.from_exception(error, capture_locals=True)
                logging.getLogger("app").warning("failed", exc_info=True)
        """,
    "runs coroutines and threads": """\
        import asyncio
        import logging
        from concurrent.futures import ThreadPoolExecutor


        async def work():
            logging.getLogger("app").warning("in a task")
            await asyncio.gather(asyncio.sleep(0), asyncio.to_thread(logging.getLogger("app").warning, "in a thread"))


        def f():
            asyncio.run(work())
            with ThreadPoolExecutor() as pool:
                pool.submit(logging.getLogger("app").warning, "in a pool").result()
        """,
    "logs for its own callers": """\
        import logging


        def say(text):
            logging.getLogger("app").warning(text, stacklevel=2)


        def f():
            say("by f")
        """,
    "asks what a function takes": """\
        import inspect


        def f():
            return 1


        def given(callback):
            return inspect.signature(callback), inspect.iscoroutinefunction(callback)
        """,
    "logs": "import logging\n\n\ndef f():\n    logging.getLogger().error('said by %s', f)\n",
    "logs an exception": """\
        import logging


        def f():
            try:
                raise ValueError("no")
            except ValueError:
                logging.getLogger().exception("caught")
        """,
    "opens files of its own": """\
        import pathlib
        import tempfile

        OWN = pathlib.Path(__file__).read_text()


        def f():
            with tempfile.TemporaryFile() as file:
                file.write(OWN.encode())
        """,
    "asks for names of its callers at import": """\
        import collections
        import dataclasses
        import enum
        import functools
        import inspect
        import typing

        T = typing.TypeVar("T")
        Pair = typing.NamedTuple("Pair", [("a", int)])
        Kind = enum.Enum("Kind", "ONE TWO")
        Made = dataclasses.make_dataclass("Made", ["x"])


        @functools.lru_cache
        def f():
            return 1


        def g(x=1):
            return x


        inspect.signature(g), g.__code__, g.__defaults__
        """,
    "loads modules and texts": """\
        import fractions
        import pathlib


        def f():
            import colorsys, wave
            pathlib.Path("late.py").write_text("A = 1")
            import late
            exec("x = 1")
            exec(compile("y = 2", "app.py", "exec"))
            exec(compile("y = 2", str(pathlib.Path("page.html").absolute()), "exec"))
        """,
    "computes": "import collections\n\nP = collections.namedtuple('P', 'a b')\n\n\ndef f():\n    return P(1, 2)\n",
}
SAMPLE = ("its caller", "by a traceback", "in the text of a log", "a file at import", "a file by a link", "a fork")
"""Tried each time; all of them are a proof."""

TESTS = """
import app


def test_f():
    app.f()


def test_again():
    app.f()


def test_given():
    getattr(app, "given", id)(test_f)


def test_fails():
    getattr(app, "fails", id)(lambda: 1 / 0)
"""


def looked(tmp_path: Path, product: str, tests: Mapping[str, str] | None = None, warm: WarmStarts | None = None) -> str:
    court = Court(tmp_path)
    court.verifier.warm = warm or court.verifier.warm
    tree = court.tree({"app.py": dedent(product), **(tests or {"test_app.py": TESTS})})
    ids = court.collect(tree)

    async def run() -> str:
        begin_rounds(court.verifier)
        report = await court.verifier.run_fresh(tree, ids, LaidFiles(), 1 if tests else None)
        assert {str(r.outcome) for r in report.results} == {"passed"}
        return report.looked

    return anyio.run(run)


@pytest.mark.parametrize(
    "product",
    [
        pytest.param(text, id=what, marks=pytest.mark.slow if what in SAMPLE else pytest.mark.proof)
        for what, text in LOOKING.items()
    ],
)
def test_who_looks_is_seen(tmp_path: Path, product: str) -> None:
    assert looked(tmp_path, product)


@pytest.mark.slow
@pytest.mark.parametrize("product", HONEST.values(), ids=HONEST)
def test_who_logs_is_not(tmp_path: Path, product: str) -> None:
    assert looked(tmp_path, product) == ""


REACHING = """
import collections
import gc
import sys
import types

SKIPPED = (types.FrameType, types.TracebackType, types.CodeType, types.CellType, types.GeneratorType)


def is_of_tests(thing):
    named = str(thing.__globals__.get("__file__")) if type(thing) is types.FunctionType else ""
    return named.endswith("test_app.py") or any(kind.__name__ in ("Node", "Config") for kind in type(thing).__mro__)


def f():
    '''Go everywhere but to frames and to what functions hold: a look there raises an event.'''
    todo = collections.deque([("sys.modules", sys.modules), ("sys", vars(sys))])
    seen, found = {id(one) for _, one in todo}, []
    own = {id(todo), id(seen), id(found), id(globals())}
    while todo:
        path, thing = todo.popleft()
        if id(thing) in own or isinstance(thing, SKIPPED):
            continue
        if is_of_tests(thing):
            found.append(path)
            continue
        function = type(thing) is types.FunctionType
        for one in [thing.__dict__, thing.__globals__] if function else gc.get_referents(thing):
            if id(one) not in seen and not isinstance(one, (str, bytes, int, float)):
                seen.add(id(one))
                todo.append((f"{path} > {getattr(one, '__name__', type(one).__name__)}", one))
    assert not found, found
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["started", "forked"])
def test_nothing_of_the_tests_is_reached_by_what_is_loaded(tmp_path: Path, how: str) -> None:
    """Frames, closures and code are left out, as they are watched, and so is what a test hands out."""
    with closing(WarmPool(unpaid=0 if how == "forked" else 99)) as pool:
        starts = WarmStarts(pool)
        assert looked(tmp_path, REACHING, warm=starts)
    assert starts.counts[WARM] == (2 if how == "forked" else 0), "the collection, and the run"


CONVERTS = """
import pathlib

import app

DATA = pathlib.Path(__file__).parent / "data"


def test_f(tmp_path):
    app.convert(str(DATA / "a.md"), tmp_path / "out")
    assert (tmp_path / "out").read_text() == (DATA / "a.html").read_text()
    assert app.count(DATA / "a.html") == len((DATA / "a.html").read_bytes())
    kept = getattr(app, "Kept", pathlib.Path)(DATA / "a.html")
    assert not hasattr(kept, "count") or kept.count() == 4
"""

CONVERTERS = {
    "def read(path):\n    return ''\n\n\ndef convert(source, into):\n"
    "    import os\n    os.link(source.replace('.md', '.html'), into)\n": True,
    "def read(path):\n    return ''\n\n\ndef convert(source, into):\n    import shutil, threading\n"
    "    copy = threading.Thread(target=shutil.copy, args=(source.replace('.md', '.html'), into))\n"
    "    copy.start()\n    copy.join()\n": True,
    "import pathlib\n\n\ndef read(path):\n    return pathlib.Path(path).with_suffix('.html').read_text()\n": True,
    "from concurrent.futures import ThreadPoolExecutor\n\n\ndef result(path):\n    return open(path).read()\n\n\n"
    "def read(path):\n    with ThreadPoolExecutor() as pool:\n"
    "        return pool.submit(result, path.replace('.md', '.html')).result()\n": True,
    "def read(path):\n    path = path.replace('.md', '.html')\n    return open(path).read()\n": True,
    "import os\n\n\ndef read(path):\n    folder = os.open(os.path.dirname(path), os.O_RDONLY)\n"
    "    name = os.path.basename(path).replace('.md', '.html')\n"
    "    return open(os.open(name, os.O_RDONLY, dir_fd=folder)).read()\n": True,
    "import pathlib\n\n\ndef read(path):\n    return pathlib.Path(path).read_text().upper()\n": False,
    "import pathlib\n\n\ndef read(path):\n    path = pathlib.Path(path)\n    with path.open() as file:\n"
    "        return file.read().upper()\n\n\n"
    "class Kept:\n    def __init__(self, path):\n        self.path = path\n\n"
    "    def count(self):\n        return len(self.path.read_bytes())\n": False,
}


@pytest.mark.slow
@pytest.mark.parametrize("read", CONVERTERS)
def test_who_reads_a_result_that_lies_beside_the_source_is_seen(tmp_path: Path, read: str) -> None:
    more = """

def convert(source, into):
    into.write_text(read(source))


def count(path):
    return len(path.read_bytes())
"""
    files = {"tests/test_app.py": CONVERTS, "tests/data/a.md": "text", "tests/data/a.html": "TEXT"}

    assert bool(looked(tmp_path, f"{more}\n\n{read}", files)) is CONVERTERS[read]
