"""Count the calls per second that the tests' process gets answered by the product's, and what shared containers cost.

Run as `python bench/wire_calls.py`: a pair of processes, calls of a method with small arguments.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest  # noqa: F401  the tests' side looks for its outcomes

from jumar.child.two_process import codec, object_tables
from jumar.child.two_process.environment.changes import ProductEnvironment
from jumar.child.two_process.product_process import main as product_main
from jumar.child.two_process.test_process import side as tests_side
from jumar.child.two_process.wire import frames, rpc

SECONDS = 2.0

PRODUCT = """
def echo(value):
    return value

class Thing:
    def __init__(self, kept):
        self.kept = kept

    def size(self):
        return len(self.kept)
"""


def serve(wire: frames.FrameConnection) -> None:
    """Be the product's process, until the other one is gone."""
    side: Any = product_main.ProductSide([""])
    values = codec.Codec(1)
    peer = rpc.RpcPeer(wire, values, object_tables.ObjectTables(values, side), side)
    try:
        peer.serve_all()
    finally:
        os._exit(0)


def connect(room: str) -> Any:
    """Return the tests' side of a new pair of processes."""
    (asked, asks), (answers, answered) = os.pipe(), os.pipe()
    if not os.fork():
        os.chdir(room)
        os.close(asks)
        os.close(answers)
        serve(frames.FrameConnection(asked, answered))
    os.close(asked)
    os.close(answered)
    side = tests_side.TestsSide(ProductEnvironment(room), (frames.ConnectionLost,))
    values = codec.Codec(0)
    return rpc.RpcPeer(frames.FrameConnection(answers, asks), values, object_tables.ObjectTables(values, side), side)


def count(call: Callable[[], object]) -> float:
    """Return how often *call* is done per second."""
    done, began = 0, time.perf_counter()
    while time.perf_counter() < began + SECONDS:
        for _ in range(20):
            call()
        done += 20
    return done / (time.perf_counter() - began)


def main() -> None:
    """Measure, and print a table."""
    with TemporaryDirectory() as room:
        Path(room, "product.py").write_text(PRODUCT)
        peer = connect(room)
        module = peer.side.resolve(["M", peer.ask("import", "product", [""], False), "product"])  # noqa: FBT003  as the import hook asks
        echo, thing = module.echo, module.Thing
        print(f"{count(lambda: echo(1)):8.0f} calls/s with a number")
        print(f"{count(lambda: echo([1, [2, 3], {'a': 4}])):8.0f} calls/s with three new containers")
        one = thing([1, 2, 3])
        print(f"{count(one.size):8.0f} calls/s of a method")
        for many in (100, 1000, 10_000):
            kept = [[number, str(number)] for number in range(many)]
            one = thing(kept)
            print(f"{count(one.size):8.0f} calls/s of a method while {many} lists are shared")
        large = thing(list(range(100_000)))
        print(f"{count(large.size):8.0f} calls/s of a method while a list of 100000 numbers is shared")


if __name__ == "__main__":
    main()
