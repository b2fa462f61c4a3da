"""Process of the product: it imports the code under test and does what the tests' process asks for. It judges nothing.

Nothing of the tests is in its room, and the channel for records is closed before the first line of the product runs.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import os
import sys
import types
import warnings
from typing import Any

from jumar.child.channel import join
from jumar.child.two_process import codec, object_data, object_tables, proxies
from jumar.child.two_process.environment.arithmetic import FollowedArithmetic
from jumar.child.two_process.environment.clocks import FollowedClock
from jumar.child.two_process.environment.levels import FollowedLevels
from jumar.child.two_process.environment.module_names import WatchedNames
from jumar.child.two_process.environment.seeds import FollowedSeeds
from jumar.child.two_process.product_process import operations
from jumar.child.two_process.product_process.tests_things import TestsThings, build_members
from jumar.child.two_process.wire import endings, event_loop, frames, library_values, notices, rpc
from jumar.child.two_process.wire.containers.shared_container import CopiedFields
from jumar.child.two_process.wire.files import shared_files

KEPT_BYTES = 1 << 20
"""Most printed output that is buffered, in bytes; it is sent with the next message, or at this size."""


def main() -> None:
    """Serve until nobody asks any more."""
    config, send, _ = join()
    pipes = frames.FrameConnection(*config["pipes"])
    send(["hello", {}])
    os.closerange(200, frames.HIGH_FD)
    del send, config["pipes"]
    side = ProductSide(config["paths"])
    pipes.send(["said", "folder", side.files.top])
    known = codec.Codec(1)
    tables = object_tables.ObjectTables(known, side)
    peer = rpc.RpcPeer(pipes, known, tables, side)
    sys.argv[:] = [""]
    sys.stdout, sys.stderr = (operations.RemoteOutput(side, number) for number in (1, 2))
    sys.stdin = operations.NoInput()
    warnings.simplefilter("always")
    warnings.showwarning = side.warn  # type: ignore[assignment]  # it takes what it is called with
    notices.send_records(side.print)
    try:
        peer.serve_all()
    except frames.ConnectionLost as end:
        os.write(2, f"{end}\n".encode())
        os._exit(0)


class ProductSide(TestsThings):
    """Rights of the tests in the product's process: they may do everything."""

    def __init__(self, paths: list[str]) -> None:
        self.fatal = self.unanswered = (frames.ConnectionLost,)
        self.interrupts = self.limits = self.silent = ()
        self._paths = paths
        self._room = os.getcwd()  # noqa: PTH109  the room
        self._environ = dict(os.environ)
        self._printed: list[tuple[int | str, Any]] = []
        self._levels, self._seeds, self._clock = (
            FollowedLevels(),
            FollowedSeeds(),
            FollowedClock(library_values.MADE_NAMES),
        )
        self._arithmetic = FollowedArithmetic()
        self._names = WatchedNames()
        self._loop = event_loop.ProductLoop()
        self.heard_ends = endings.HeardEnds()
        self.files = shared_files.SharedFiles(None)
        self._size = 0
        self._input, self._stdin = builtins.input, operations.NoInput()
        self._inserted: list[str] = []
        self._replaced: dict[tuple[type, str], Any] = {}
        self._operations: dict[str, Any] = {
            **operations.OPERATIONS,
            "import": self._import, "set": self._set, "restore": self._set, "extend": self._extend,
            "member": self._get_member, "method": self._call_method, "get": self._get,
            "reserve": lambda: self.peer.values.number(),  # noqa: PLW0108  the peer comes later
        }  # fmt: skip

    def warn(self, message: Any, category: type[Warning], *_: Any) -> None:
        """Hand a warning over soon, with the kind that Python itself knows, and the name of another one."""
        kind = next(base for base in category.__mro__ if base.__module__ == "builtins")
        self.print(kind.__name__, ["t", [str(message), str(category.__module__), category.__qualname__]])

    def print(self, stream: int | str, text: Any) -> None:
        """Hand *text*, or a record of a log, over with the next message."""
        self._printed.append((stream, text))
        self._size += len(str(text))
        if self._size > KEPT_BYTES:
            self.report_state()

    def report_state(self) -> Any:
        """Hand over what was printed; return which names of modules are watched, and how often one has changed."""
        printed, self._printed, self._size = self._printed, [], 0
        for stream, text in printed:
            self.peer.wire.send(["said", stream, text])
        return self._names.report()

    def follow(self, state: Any) -> None:
        """Follow the tests' process to its place, environment and arguments."""
        if state is None:
            return
        inside, changed, argv, levels, loop, *reading = state
        self._levels.follow(levels)
        self._loop.follow(loop)
        if inside is not None:
            place = os.path.join(self._room, inside)  # noqa: PTH118  asked with each call
            os.chdir(place if os.path.isdir(place) else self._room)  # noqa: PTH112  as above
        os.environ.clear()
        os.environ.update({k: v for k, v in {**self._environ, **changed}.items() if v is not None})
        sys.argv[1:] = argv
        answers, text, seeds, clock, arithmetic = (self.peer.values.decode(form) for form in reading)
        self._seeds.follow(seeds)
        self._clock.follow(clock)
        self._arithmetic.follow(arithmetic)
        builtins.input = answers or self._input
        sys.stdin = self._stdin if text is None else text

    def raise_lost(self, why: str) -> None:
        """Raise an error in the code under test: it cannot ask the tests."""
        raise RuntimeError(why)

    tie = give_up = raise_lost

    tells_defaults = may_thread = True

    protocol_error = frames.ConnectionLost
    """Exception for tests that do not keep to the rules."""

    def refuse_value(self, why: str) -> Exception:
        """Return a result that cannot cross."""
        return TypeError(f"what came out cannot cross: {why}")

    def encode_special(self, value: Any, depth: int) -> Any:
        """Return the form of a module, of a copy of a test's data, or of a coroutine, which runs in a loop here."""
        if type(value) is CopiedFields:
            return self.peer.values.encode(dict(value), depth)
        if type(value) is types.CoroutineType:
            return self.peer.tables.encode(self._loop.drive(value), depth)
        if isinstance(value, types.ModuleType):
            return ["M", self.peer.tables.keep(value), value.__name__]
        return None

    def allow(self, *_: Any) -> None:
        """Do nothing: the tests may ask for everything, every value may leave, and nothing is known beforehand.

        Data of the product's things is asked for, and what the tests' comparisons come to is theirs.
        """

    hand_out = hand_back = take_back = admit = admit_error = refuse_told = note_known = allow
    note_broken = receive_output = check_answer = check_lent = allow
    note_kind = note_class = list_choices = list_members = own_class = has_fields = check_use = allow

    def belongs(self, kind: Any, thing: Any, known: bool, op: str = "") -> bool:  # noqa: ARG002, FBT001  as above
        """Return *known*: nothing belongs to a class of the tests that does not extend it."""
        return known

    def tells_errors(self, kind: type) -> bool:
        """Return whether the plain data of an exception of *kind* crosses."""
        return proxies.is_library(kind.__module__)

    def offers(self, kind: type, name: str) -> bool:  # noqa: ARG002  the tests' side needs it
        """Return whether an attribute of a product's class is sent to the tests' process."""
        return name.isidentifier()

    def name_class(self, kind: type) -> list[str]:
        """Return the name, module and qualified name of a class."""
        return [kind.__name__, str(kind.__module__), kind.__qualname__]

    def build_extras(self, name: str, module: str, members: Any) -> dict[str, Any]:
        """Return the attributes that the tests told; a function becomes a method where it is put into a class."""
        bound = {"__get__": operations.bind_function} if (name, module) == ("function", "builtins") else {}
        return {**build_members(members or {}), **bound}

    def resolve(self, form: list[Any]) -> Any:
        """Import an object that has a name on both sides, or make a method of a value, or a partial function."""
        decode = self.peer.values.decode
        if form[0] == "w":
            return getattr(decode(form[1]), form[2])
        if form[0] == "d":
            copied = object_data.rebuild(*(decode(part) for part in form[2:]))
            self.peer.tables.copies[id(copied)] = (form[1], copied)
            return copied
        if form[0] == "p":
            function, args, keywords = (decode(part) for part in form[1:])
            return functools.partial(function, *args, **keywords)
        if form[0] != "q":
            raise ValueError("no such form")
        thing: Any = importlib.import_module(form[1])
        for part in form[2].split(".") if form[2] else ():
            thing = getattr(thing, part)
        return thing

    def accept_raised(self, what: Any) -> Any:
        """Return the exception that the tests raised, or the reason why a message cannot be decoded, as it is."""
        return what

    refuse_message = accept_raised

    def check_raised(self, _op: str, _arguments: tuple[Any, ...], error: BaseException) -> BaseException:
        """Return the exception that a function of the tests raised."""
        return error

    def perform(self, op: str, values: list[Any], _: Any) -> Any:
        """Perform an operation that the tests ask for."""
        with self._loop.enter():
            return self._operations[op](*values)

    def _get(self, thing: Any, name: str) -> Any:
        found = getattr(thing, name)
        self._names.note(thing, self.peer.values.numbers.get(id(thing)), name, found)
        return found

    def _get_member(self, thing: Any, owner: int, name: str) -> Any:
        return operations.get_member(thing, self.peer.tables.own.get(owner), name)

    def _call_method(self, thing: Any, owner: int, name: str, args: Any, keywords: Any) -> Any:
        if name == "__await__":
            return self._loop.drive(thing)
        return operations.get_method(thing, self.peer.tables.own.get(owner), name)(*args, **(keywords or {}))

    def _set(self, thing: Any, name: str, *value: Any) -> None:
        """Set an attribute, or, without a value, put back what a class had before it was first set."""
        if isinstance(thing, type):
            self._replaced.setdefault((thing, name), vars(thing).get(name))
        before = self._replaced.get((thing, name)) if not value else None
        if value or before is not None:
            setattr(thing, name, value[0] if value else before)
        else:
            delattr(thing, name)

    def _import(self, name: str, roots: list[str], again: bool) -> int:  # noqa: FBT001  as it came
        """Import a module of the room: installed packages, which the code under test may be too, come after it."""
        sys.path[:] = [path for path in sys.path if path not in self._inserted]
        folders = (os.path.join(self._room, root) if root else self._room for root in (*roots, *self._paths))  # noqa: PTH118  as above
        self._inserted = list(dict.fromkeys(folders))
        site = [i for i, path in enumerate(sys.path) if path.rpartition("/")[2] in ("site-packages", "dist-packages")]
        place = site[0] if site else len(sys.path)
        sys.path[place:place] = self._inserted
        if again:
            sys.modules.pop(name, None)
        module = importlib.import_module(name)
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        if not any(str(place).startswith(self._room + os.sep) for place in places if place):
            raise ImportError(f"{name} is found outside of the room", name=name)
        return int(self.peer.tables.keep(module))

    def _extend(
        self, name: str, bases: tuple[type, ...], body: dict[str, Any], keywords: dict[str, Any], number: int
    ) -> int:
        """Make a class that has methods of the tests; return *number*, or another one if it crossed already."""
        made: dict[str, Any] = {}
        for key, (how, *given) in body.items():
            if how == "property":
                made[key] = property(*(each and operations.wrap_function(each) for each in given))
            elif how == "value":
                made[key] = given[0]
            else:
                wrap: Any = {"staticmethod": staticmethod, "classmethod": classmethod}.get(how, lambda f: f)
                made[key] = wrap(operations.wrap_function(given[0]))
        kind = types.new_class(name, bases, keywords, lambda namespace: namespace.update(made))
        return int(self.peer.tables.keep(kind, number))
