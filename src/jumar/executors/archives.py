"""Packs a run directory with the objects it needs into one archive, and unpacks one beside other runs, whole.

Left out is what is of one machine, or follows from the rest: locks, the mark, rooms, the files of the best tree.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from jumar.errors import Infra
from jumar.journal.lock import LOCK
from jumar.runs.setup.marks import MARK
from jumar.workspace.files.disk_faults import explain_disk_faults
from jumar.workspace.files.safe_paths import sync
from jumar.workspace.store.deltas import SUFFIX
from jumar.workspace.store.lease import SHARED, Lease
from jumar.workspace.store.shared import OBJECTS, RECORD, find_objects_folder, share
from jumar.workspace.store.sweep import find_needed_objects

LEFT_OUT = frozenset({LOCK, MARK, OBJECTS, RECORD, "rooms", "workspace"})

PART, COLLECTED = ".part-", ".collected-"
"""Beginnings of names in a folder of runs: what is unpacked, and what is whole and takes the place of the run."""

_OBJECT = re.compile(rf"{re.escape(SHARED)}/[0-9a-f]{{2}}/[0-9a-f]{{62}}(?:{re.escape(SUFFIX)})?")


def pack_run(run: Path) -> bytes:
    """Return the archive of the run directory *run*.

    Raises:
        Infra: if it cannot be read.
    """
    out = io.BytesIO()
    with explain_disk_faults(f"cannot read {run}"), tarfile.open(fileobj=out, mode="w:gz", compresslevel=4) as archive:
        for path in _list_files(run):
            archive.add(path, f"{run.name}/{path.relative_to(run)}", recursive=False)
        root = find_objects_folder(run)
        for digest in sorted(find_needed_objects(root, [run])):
            for name in (digest, digest + SUFFIX):
                if (path := root / name[:2] / name[2:]).is_file():
                    archive.add(path, f"{SHARED}/{name[:2]}/{name[2:]}", recursive=False)
    return out.getvalue()


def _list_files(run: Path) -> Iterator[Path]:
    for path in sorted(run.rglob("*")):
        if path.relative_to(run).parts[0] not in LEFT_OUT and path.is_file() and not path.is_symlink():
            yield path


def unpack_run(archive: bytes, runs: Path, name: str) -> Path:
    """Unpack the run called *name* from *archive* into the folder *runs*, over an older state of it.

    Whoever is killed meanwhile leaves the older state, or one that `finish_unpacking` completes.

    Raises:
        Infra: if the archive holds anything else, or the disk refuses.
    """
    part, lease = runs / f"{PART}{secrets.token_hex(4)}", Lease(runs / SHARED)
    with explain_disk_faults(f"cannot write to {runs}"):
        (runs / SHARED).mkdir(exist_ok=True)
        part.mkdir()
        lease.take()  # until a journal names them, the objects are nobody's
        try:
            _extract(archive, part, name)
            _move_objects(part / SHARED, runs / SHARED, lease)
            for path in (path for path in (part / name).rglob("*") if path.is_file()):
                _sync_file(path)
            (part / name).rename(runs / f"{COLLECTED}{name}")
            sync(runs)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        folder = _settle(runs / f"{COLLECTED}{name}")
        lease.end()
    return folder


def finish_unpacking(runs: Path) -> None:
    """Complete in *runs* the unpacked runs of a killed process, and remove the incomplete ones.

    Raises:
        Infra: if the disk refuses.
    """
    with explain_disk_faults(f"cannot write to {runs}"):
        for path in sorted(runs.glob(f"{COLLECTED}*")):
            _settle(path)
        for path in runs.glob(f"{PART}*"):
            shutil.rmtree(path, ignore_errors=True)


def _settle(whole: Path) -> Path:
    folder = whole.with_name(whole.name.removeprefix(COLLECTED))
    shutil.rmtree(folder, ignore_errors=True)
    whole.rename(folder)
    if not (folder / RECORD).exists():
        share(folder)
    sync(folder.parent)
    return folder


def _extract(archive: bytes, part: Path, name: str) -> None:
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as members:
            for member in members:
                own = member.name.startswith(f"{name}/") or _OBJECT.fullmatch(member.name)
                if not (own and member.isreg()):
                    raise Infra(f"the archive of {name} holds {member.name}, which is no file of that run")
                members.extract(member, part, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise Infra(f"the archive of {name} is damaged: {error}") from None


def _move_objects(come: Path, root: Path, lease: Lease) -> None:
    """Move the objects in the folder *come* to the store *root*; those already there are renewed."""
    with lease.hold_off_sweep():
        for path in sorted(come.glob("*/*")):
            known = root / path.parent.name / path.name
            if known.exists():
                found = known.stat()
                os.utime(known, ns=(found.st_atime_ns, found.st_mtime_ns))  # its ctime is renewed
                continue
            known.parent.mkdir(exist_ok=True)
            _sync_file(path)
            path.rename(known)
            sync(known.parent)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
