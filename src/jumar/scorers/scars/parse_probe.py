"""Parses files in a process of its own, within limits: a few kilobytes can make a parser take gigabytes."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence

import msgspec

from jumar.errors import Infra
from jumar.languages.grammars import load_language

SMALL_BYTES = 2_000
"""A smaller file is parsed in less than a second, whatever it holds."""

SECONDS = 5
"""Time of a processor for one file; an honest one of 1 MB takes less than one."""

MEMORY_BYTES = 2 << 30
"""Address space of the process."""

PROBE = [sys.executable, "-I", "-m", "jumar.scorers.scars.parse_probe"]


class Source(msgspec.Struct, frozen=True):
    """A file to parse."""

    language: str
    data: bytes


def find_unparsable(sources: Sequence[Source]) -> frozenset[int]:
    """Return the places of those of *sources* that cannot be parsed with the time and memory that one has.

    Raises:
        Infra: if no process can be started for it.
    """
    left = [place for place, source in enumerate(sources) if len(source.data) > SMALL_BYTES]
    found = set[int]()
    while left:
        asked = msgspec.msgpack.encode([sources[place] for place in left])
        said = subprocess.run(PROBE, input=asked, capture_output=True, check=False).stdout  # noqa: S603  it is jumar's own
        if not said:
            raise Infra("the process that parses source files cannot be started: is jumar installed in this Python?")
        done = len(said) - 1
        found.update(left[done : done + 1])  # it ended at this one
        left = left[done + 1 :]
    return frozenset(found)


def main() -> int:
    """Parse the files on standard input, and write a byte first, and one for each that is done; return 0."""
    from tree_sitter import Parser  # noqa: PLC0415  only the probe itself parses

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    sources = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[Source])
    _tell()
    for source in sources:
        used = resource.getrusage(resource.RUSAGE_SELF)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + SECONDS + 1, hard))
        Parser(load_language(source.language)).parse(source.data)
        _tell()
    return 0


def _tell() -> None:
    sys.stdout.write(".")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
