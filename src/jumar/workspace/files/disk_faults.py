"""Faults of a disk in one sentence: what failed, why, and how to mend it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from jumar.errors import BadInput, Infra

MEND = {
    errno.ENOSPC: "; free some space, and what is kept so far can be gone on with",
    errno.EDQUOT: "; free some space, and what is kept so far can be gone on with",
    errno.EROFS: "; name a place that can be written",
}
"""Advice for some faults of a disk."""

READ_ONLY = frozenset((errno.EROFS, errno.EACCES, errno.EPERM))
"""Faults of a place that is there, and not to be written."""

FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
"""Faults of a disk that has no space left."""

WRONG_PLACE = frozenset((
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP,
))  # fmt: skip
"""Faults of a place where somebody wants a file: another place would do."""


@contextmanager
def explain_disk_faults(what: str) -> Iterator[None]:
    """Turn a fault of the disk into one sentence that begins with *what*, the failed action.

    Raises:
        Infra: instead of OSError.
    """
    try:
        yield
    except OSError as fault:
        mend = MEND.get(fault.errno or 0, "")
        raise Infra(f"{what}: {fault.strerror or fault}{mend}") from fault


@contextmanager
def name_path(path: PurePath) -> Iterator[None]:
    """Let a fault of the disk say *path* where the system names none, as for what is written to an open file.

    Raises:
        OSError: as it came, with a name.
    """
    try:
        yield
    except OSError as fault:
        fault.filename = fault.filename or str(path)
        raise


class Unwritable(BadInput):
    """Raised where nothing can be written at a place that a person named, or works in."""


@contextmanager
def refuse_unwritable(what: str, mend: str, faults: frozenset[int] = READ_ONLY) -> Iterator[None]:
    """Turn one of the *faults* of a place into one sentence: *what* failed, why, and how to *mend* it.

    Raises:
        Unwritable: if the place is read-only, or not theirs.
        OSError: as it came, if it is another fault.
    """
    try:
        yield
    except OSError as fault:
        if fault.errno not in faults:
            raise
        raise Unwritable(f"{what}: {fault.strerror}{f'; {mend}' if mend else ''}") from fault


@contextmanager
def explain_output_faults(out: PurePath, flag: str = "-o") -> Iterator[None]:
    """Turn a fault in writing *out*, which a person named with *flag*, into one sentence.

    Raises:
        Unwritable: if nothing can be written there: there is no such folder, or it is not theirs.
        Infra: if the disk is full, or broken.
    """
    what = f"cannot write {out}"
    with explain_disk_faults(what), refuse_unwritable(what, f"name another place with {flag}", WRONG_PLACE):
        yield
