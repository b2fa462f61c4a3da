"""Observes whether code under test opens a data file of the tests that may be a result, as one beside its source."""

from __future__ import annotations

import builtins
import os
from typing import TYPE_CHECKING, Any

from jumar.child.pytest.frames.handed_texts import build_lister

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Of our own, whatever becomes of the others.
__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # a module or its names

STATES = 64
"""The most paths that the texts of one call are put together to."""

# What the hook needs it has in its closure: names of a module are anybody's to exchange.


def list_data(room: str, is_test: Callable[[str], bool]) -> Iterator[str]:
    """Yield the files in *room* that may be data of the tests.

    Of others, what lies at the top, or below a folder with code, belongs to the program.
    """
    room = os.path.realpath(room)
    programs = {room}
    for folder, folders, names in os.walk(room):
        paths = [os.path.join(folder, name) for name in names]  # noqa: PTH118  many of them
        others = [path for path in paths if not is_test(path)]
        if folder in programs or any(path.endswith(".py") for path in others):
            programs.update(() if folder == room else (os.path.join(folder, name) for name in folders))  # noqa: PTH118
            others = []
        yield from {*others, *filter(is_test, paths)}


def build_data_watch(data: Iterable[str], tests: frozenset[str], foreign: Callable[[str], bool]) -> tuple[Any, Any]:
    """Build what finds files of *data* by a path, and what says whether a foreign reader of them may know a result.

    The tests open it as well, and the call that they make did not hand its path: so are results copied that lie beside
    their sources. What a library opens for nobody, as in a thread, may be for the code under test.
    """
    find_data, is_only = _build_finder(data)
    list_texts, leads = build_lister(), _build_leads()
    by_tests: set[str] = set()
    by_product: set[str] = set()

    def reads_data(files: tuple[str, ...], frame: Any, main: Any) -> bool:
        """Return whether both know *files* when a *frame* reads them; *main* is that of the main thread."""
        product = False
        while frame is not None and frame.f_code.co_filename not in tests:
            product, frame = product or foreign(frame.f_code.co_filename), frame.f_back
        test = frame if frame is not None else main
        while test is not None and test.f_code.co_filename not in tests:
            test = test.f_back
        if frame is not None and not product:
            by_tests.update(files)
        elif test is None:
            by_product.update(files)
        else:
            texts = list_texts(test)
            by_product.update(file for file in files if not leads(texts, file, is_only(file)))
        return any(file in by_tests and file in by_product for file in files)

    return find_data, reads_data


def _build_finder(data: Iterable[str]) -> tuple[Callable[[Any, bool], tuple[str, ...]], Callable[[str], bool]]:
    """Build what finds files of *data*, and what says whether one is the only one of its stem in its folder.

    A relative name may be one below the descriptor of a folder: it is all files of that name.
    """
    stat, resolve, split, decode, cut = os.stat, os.path.realpath, os.path.split, os.fsdecode, os.path.splitext
    paths = [resolve(one) if os.path.islink(one) else one for one in data if os.path.isfile(one)]  # noqa: PTH113, PTH114
    inodes = {(one.st_dev, one.st_ino): path for one, path in zip(map(stat, paths), paths)}  # noqa: B905  as it is
    named: dict[str, tuple[str, ...]] = {}
    stems: dict[str, int] = {}
    for path in paths:
        name, stem = split(path)[1], cut(path)[0]
        named[name] = (*named.get(name, ()), path)
        stems[stem] = stems.get(stem, 0) + 1

    def find_data(path: Any, below: bool) -> tuple[str, ...]:  # noqa: FBT001  the hook is called with each event
        if not paths or type(path) not in (str, bytes):
            return ()
        name = split(decode(path))[1]
        try:
            found = stat(path)
        except (OSError, ValueError):
            found = None
        if found is not None and (file := inodes.get((found.st_dev, found.st_ino))):
            return (file,)
        if name not in named:
            return ()
        if below and decode(path)[:1] != os.sep:
            return named[name]
        return tuple({resolve(decode(path))}.intersection(named[name]))

    return find_data, lambda file: stems[cut(file)[0]] == 1


def _build_leads() -> Callable[[list[str], str, bool], bool]:
    """Build the predicate for texts, in the order in which a test names them, that are put together to a file.

    They are joined as paths or as texts; a folder and a stem are enough where there is one such file.
    """
    resolve, join, is_absolute, cut, most = os.path.realpath, os.path.join, os.path.isabs, os.path.splitext, STATES

    def leads(texts: list[str], file: str, only: bool) -> bool:  # noqa: FBT001  as above
        wanted = {file, cut(file)[0]} if only else {file}
        folder, states = "", [""]
        for text in texts:
            if is_absolute(text):
                folder, states = text, [text]
            else:
                states = [*(made for one in states for made in (join(one, text), one + text)), join(folder, text)][
                    :most
                ]
            if not wanted.isdisjoint(map(resolve, states)):
                return True
        return False

    return leads
