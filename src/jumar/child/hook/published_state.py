"""Reads for the hook where a path leads, and what the session last published. No link is followed."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import stat
import time

CLOSED = (".git", ".jumar", ".claude")
"""Folders in the root that no edit tool may touch: history, sessions, and the hooks themselves."""

FOLDER, STATE, LOCK, VERSION = ".jumar/hook", "state.json", "lock", 1
"""Files of a session's state for the hook, relative to the root; see `jumar.hooks.repository_session`."""

STATE_FIELDS = {
    "version": int, "root": str, "run": str, "bytes": int, "mode": str, "fault": str, "claims": dict, "tests": list,
    "authored": list,
}  # fmt: skip

LOCK_SECONDS = 5.0


class HookRefusal(Exception):  # noqa: N818  it is an answer, not an error
    """Raised when a request is not let through; says why."""


class Stale(HookRefusal):
    """Raised when the published state is older than the journal: a hook was cut off in between."""


def check_fields(given: object, fields: dict[str, type], whose: str) -> None:
    """Refuse *given*, named by *whose*, unless it is an object whose *fields* are of the kinds they must be."""
    if not isinstance(given, dict):
        raise HookRefusal(f"{whose} is no object")
    for name, kind in fields.items():
        value = given.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise HookRefusal(f"{whose} has no {name} that is a {kind.__name__}")


def find_root(folder: str) -> str:
    """Return the root of the repository that *folder* lies in, resolved.

    Raises:
        HookRefusal: if *folder* is no folder's absolute path.
    """
    if not folder.startswith("/") or "\0" in folder or not os.path.isdir(folder):  # noqa: PTH112  pathlib takes as long to import as all of this
        raise HookRefusal(f"the folder of the session is not known: {folder!r} is no absolute path of a folder")
    folder = real = os.path.realpath(folder)
    while folder != "/":
        if os.path.lexists(folder + "/.git"):
            return folder
        folder = folder.rpartition("/")[0] or "/"
    return real


def find_session_root(folder: str) -> str:
    """Return the root around *folder* as `find_root` does, or of the repository above a submodule with no session.

    A host that begins at the top may work in a submodule's folder: that one's files are judged with the whole.

    Raises:
        HookRefusal: as `find_root`.
    """
    root = nearest = find_root(folder)
    while not os.path.lexists(f"{root}/{FOLDER}/{STATE}"):
        above = root.rpartition("/")[0]
        if not above or not _is_submodule(root):
            return nearest
        root = find_root(above)
    return root


def _is_submodule(root: str) -> bool:
    """Return whether the history of *root* is kept in that of a repository above, as a submodule's is."""
    try:
        with open(f"{root}/.git", "rb") as file:  # noqa: PTH123  as above
            named = file.read(4096)
    except OSError:  # a folder: it is a repository of its own
        return False
    return named.startswith(b"gitdir:") and b"/modules/" in named


def resolve_inside(path: str, root: str) -> str:
    """Return the absolute *path* relative to *root*, if it names a file or a free place and no link is on the way.

    Raises:
        HookRefusal: if it is anything else.
    """
    if not path.startswith("/"):
        raise HookRefusal(f"{path!r} is not absolute; give the whole path")
    parts = path[1:].split("/")
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise HookRefusal(f"{path!r} is not a plain path; give it without . and .. and empty parts")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise HookRefusal(f"{path!r} is not a name that a disk can hold") from None
    # The person may know the repository by a link; below its root none is followed.
    head = next((i for i in range(len(parts)) if os.path.realpath("/" + "/".join(parts[:i])) == root), None)
    if head is None or not parts[head:]:
        raise HookRefusal(f"{path} lies outside {root}: nothing is written there")
    way = root
    for number, part in enumerate(parts[head:], head + 1):
        way = f"{way}/{part}"
        _check_step(way, last=number == len(parts))
    relative = way[len(root.rstrip("/")) + 1 :]
    if parts[head] in CLOSED:
        raise HookRefusal(f"{relative} is closed to edits: {', '.join(CLOSED)} are the person's")
    return relative


def _check_step(way: str, *, last: bool) -> None:
    try:
        found = os.lstat(way)
    except FileNotFoundError:
        return
    except OSError as fault:
        raise HookRefusal(f"{way} cannot be looked at: {fault.strerror}") from None
    if stat.S_ISLNK(found.st_mode):
        raise HookRefusal(f"{way} is a link; name the file itself")
    if not last and not stat.S_ISDIR(found.st_mode):
        raise HookRefusal(f"{way} is no folder")
    if last and not stat.S_ISREG(found.st_mode):
        raise HookRefusal(f"{way} is no regular file")
    if last and found.st_nlink > 1:
        raise HookRefusal(f"{way} has a second name (a hard link): an edit would change both")


def read_state(root: str, seconds: float = LOCK_SECONDS) -> dict[str, object]:
    """Read what the session of *root* last published, if whole and as new as the journal; wait so many *seconds*.

    Raises:
        HookRefusal: if there is no session, it is damaged, or it is busy for too long.
        Stale: if it has to be published anew.
    """
    folder = f"{root}/{FOLDER}"
    try:
        lock = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise HookRefusal(_explain_no_session("no prompt was sent since the hooks were installed")) from None
    try:
        if not take_lock(lock, fcntl.LOCK_SH, min(seconds, LOCK_SECONDS)):
            raise HookRefusal("jumar is still judging the last step here; try this again in a moment")
        state, size = _read_published(folder)
    finally:
        os.close(lock)
    if state["fault"]:
        raise HookRefusal(_explain_no_session(str(state["fault"])))
    if state["version"] != VERSION or state["root"] != root:
        raise HookRefusal(_explain_no_session("it is of another version or another folder"))
    if size != state["bytes"]:
        raise Stale(_explain_no_session("it was cut off"))
    return state


def read_mode(root: str) -> str:
    """Return the mode of the gate that the session of *root* published last; empty: there is none, or it is damaged."""
    try:
        return str(_read_published(f"{root}/{FOLDER}")[0]["mode"])
    except HookRefusal:
        return ""


def _read_published(folder: str) -> tuple[dict[str, object], int]:
    """Return the state in *folder*, and how long the journal that it speaks of is now."""
    try:
        with open(f"{folder}/{STATE}", "rb") as file:  # noqa: PTH123  as above
            state = json.loads(file.read())
        check_fields(state, STATE_FIELDS, "the session")
        journal = f"{folder}/runs/{state['run'].replace('/', '')}/events.jsonl"
        size = 0 if state["fault"] else os.stat(journal, follow_symlinks=False).st_size  # noqa: PTH116  as above
    except (OSError, ValueError, RecursionError, HookRefusal) as fault:
        absent = isinstance(fault, FileNotFoundError) and str(fault.filename).endswith(f"/{STATE}")
        raise HookRefusal(_explain_no_session("none has begun" if absent else f"it is damaged ({fault})")) from None
    return dict(state), size


def _explain_no_session(why: str) -> str:
    return f"jumar has no session to judge this by: {why}. The person's next prompt begins a new one."


def take_lock(fd: int, kind: int, seconds: float) -> bool:
    """Wait for a lock of *kind* on the open file *fd*; return whether it was to be had in so many *seconds*."""
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        else:
            return True


def run(program: list[str], sent: bytes, seconds: float) -> tuple[bytes, int]:
    """Run *program* with the input *sent*, for *seconds* at most; its output and status."""
    given = os.memfd_create("jumar-event")
    with os.fdopen(given, "wb", closefd=False) as file:
        file.write(sent)
    os.lseek(given, 0, os.SEEK_SET)
    ours, theirs = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_DUP2, theirs, 1)]
    child = os.posix_spawn(program[0], program, os.environ, file_actions=actions, setpgroup=0)
    os.close(theirs)
    said, until = b"", time.monotonic() + seconds
    while select.select([ours], [], [], max(0.0, until - time.monotonic()))[0]:
        piece = os.read(ours, 65536)
        if not piece:
            return said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said += piece
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise HookRefusal(f"jumar took longer than {seconds:g} seconds to judge this, and was ended")
