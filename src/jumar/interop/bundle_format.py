"""Format of a bundle: a plain tar archive in one canonical form, so that each of its bytes has one right value.

Only regular files, in a fixed order, with fixed owners, times and modes, not compressed. It is read by this module
alone and never unpacked: any byte of a header or of the padding that is not the canonical one is found.
"""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from typing import IO, NamedTuple

from jumar.errors import BadInput

INDEX, JOURNAL, RESULT, SUMS = "bundle.json", "events.jsonl", "result.json", "SHA256SUMS"
"""Names of the members that are no objects."""

OBJECTS = "objects/"
BLOCK = 512
ZEROS = b"\0" * BLOCK
LIMIT_BYTES = 4 << 30
"""Most bytes of a bundle: more would keep an auditor busy for minutes, and 8 GiB are the end of the format."""

MEMBERS = 1_000_000
"""Most members of a bundle."""

IN_MEMORY_BYTES = 512 << 20
"""Most bytes of a member that has to be read as a whole: the journal, a list of files."""

CHUNK = 1 << 20
_NAME = re.compile(r"bundle\.json|events\.jsonl|result\.json|SHA256SUMS|objects/[0-9a-f]{64}")


class Member(NamedTuple):
    """One file in a bundle."""

    name: str
    start: int
    """Offset of its bytes."""
    size: int
    sha256: str


def build_header(name: str, size: int) -> bytes:
    """Return the only header that a member of this name and size may have."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


def pad(size: int) -> bytes:
    """Return the zeros after *size* bytes, up to the next block."""
    return b"\0" * (-size % BLOCK)


def read_members(file: IO[bytes], where: str) -> tuple[Member, ...]:
    """Return the members of the bundle in *file*, whose bytes are all canonical; nothing is unpacked.

    Raises:
        BadInput: naming the first thing that is not as it must be.
    """
    size = os.fstat(file.fileno()).st_size
    if size > LIMIT_BYTES:
        raise BadInput(f"{where} has {size} bytes; a bundle has at most {LIMIT_BYTES}, so this is none of jumar's")
    members: dict[str, Member] = {}
    for member in _read_each(file, where, size):
        if member.name in members:
            raise BadInput(f"{where} holds {member.name} twice, so it was changed; ask for a new bundle")
        members[member.name] = member
        if len(members) > MEMBERS:
            raise BadInput(f"{where} has more than {MEMBERS} members; it is no bundle of jumar's")
    return tuple(members.values())


def _read_each(file: IO[bytes], where: str, size: int) -> Iterator[Member]:
    file.seek(0)
    while (header := file.read(BLOCK)) != ZEROS:
        start = file.tell()
        name, length = _read_header(header, where, start - len(header))
        if start + length + 2 * BLOCK > size:
            raise BadInput(f"{where} ends inside {name}: bytes are missing; copy it again")
        digest = _hash_bytes(file, length)
        if (padding := file.read(-length % BLOCK)).strip(b"\0") or len(padding) != -length % BLOCK:
            raise BadInput(f"{where} has bytes after {name} that do not belong there: it was changed")
        yield Member(name, start, length, digest)
    if file.read(BLOCK + 1) != ZEROS:
        raise BadInput(f"{where} does not end where a bundle ends: bytes were added, or are missing")


def _read_header(header: bytes, where: str, offset: int) -> tuple[str, int]:
    """Return name and size of a member, if its *header* is the canonical one."""
    name = header[:100].rstrip(b"\0").decode("ascii", "replace")
    digits = header[124:135]
    if not _NAME.fullmatch(name) or not re.fullmatch(rb"[0-7]{11}", digits):
        shown = ascii(name[:80])
        raise BadInput(f"{where} has no header of a bundle's member at byte {offset} (its name would be {shown})")
    length = int(digits, 8)
    if header != build_header(name, length):
        raise BadInput(f"{where}: the header of {name} at byte {offset} was changed")
    return name, length


def _hash_bytes(file: IO[bytes], length: int) -> str:
    digest = sha256()
    while length and (chunk := file.read(min(CHUNK, length))):
        digest.update(chunk)
        length -= len(chunk)
    return digest.hexdigest()


def hash_whole(file: IO[bytes]) -> str:
    """Return the sha256 of all of *file*, for a signature."""
    file.seek(0)
    return _hash_bytes(file, LIMIT_BYTES + 1)


def read_member(file: IO[bytes], member: Member) -> bytes:
    """Return the bytes of *member*.

    Raises:
        BadInput: if there are too many to be read at once.
    """
    if member.size > IN_MEMORY_BYTES:
        raise BadInput(f"{member.name} has {member.size} bytes, more than the {IN_MEMORY_BYTES} that are read at once")
    file.seek(member.start)
    return file.read(member.size)
