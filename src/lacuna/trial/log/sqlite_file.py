"""The file of a SQLite store: its tables, the check that a file is a store, and the lock beside it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from lacuna.files import sync_folder
from lacuna.trial.log.log_store import StoreBusyError, StoreError

FORMAT = 2
_APPLICATION = 0x6C616375  # "lacu"
_PATIENCE = 5.0  # seconds until a transaction of another program counts as stuck

FAILURES = (sqlite3.Error, OverflowError)
"""The exceptions of SQLite."""

SEQS = 1 << 40
"""Event `seq` of trial number `n` has the id ``n * SEQS + seq``."""

# Decisions made at about the same time lie together, so few pages change between two checkpoints.
# Events have a single integer key, so SQLite fills one page after the other. With a key of two columns it moves rows
# between neighbouring pages, and a commit writes half as many pages again.
SCHEMA = (
    "CREATE TABLE decision_key (trial INTEGER NOT NULL, p TEXT NOT NULL, t INTEGER NOT NULL, seq INTEGER NOT NULL, "
    "PRIMARY KEY (trial, t, p)) WITHOUT ROWID",
    "CREATE TABLE event (id INTEGER PRIMARY KEY, body BLOB, body_hash BLOB NOT NULL, chain BLOB NOT NULL, "
    f"trial INTEGER AS (id / {SEQS}) VIRTUAL, seq INTEGER AS (id % {SEQS}) VIRTUAL)",
    "CREATE TABLE snapshot (trial INTEGER NOT NULL, seq INTEGER NOT NULL, content BLOB NOT NULL, "
    "digest BLOB NOT NULL, PRIMARY KEY (trial, seq))",
    "CREATE TABLE source (trial INTEGER NOT NULL, digest TEXT NOT NULL, content BLOB NOT NULL, "
    "PRIMARY KEY (trial, digest))",
    "CREATE TABLE trial (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
)


@contextmanager
def told(path: Path, done: str) -> Iterator[None]:
    """Turn an exception of SQLite into a `StoreError` of one sentence."""
    try:
        yield
    except FAILURES as error:
        raise failed(path, done, error) from error


def failed(path: Path, done: str, error: Exception) -> StoreError:
    """An exception of SQLite as a `StoreError` of one sentence."""
    return StoreError(f"{path} cannot be {done}: {' '.join(str(error).split())}")


def real_path(path: str | os.PathLike[str]) -> Path:
    """The file itself, so that all links to it share one lock."""
    return Path(os.path.realpath(path))


class OpenFiles:
    """The files of a store that is open for writing: the store, its -wal and its -shm.

    SQLite keeps them open and does not look at their names again. It goes on writing to a -wal that was removed, and
    whoever opens the store next does not find what is in there.
    """

    def __init__(self, path: Path) -> None:
        self._names = (os.fspath(path), f"{path}-wal", f"{path}-shm")
        self._known = [_look(name) for name in self._names]

    def harm(self) -> tuple[str, str] | None:
        """Which file is no longer the one that is open, or lost its end, and what happened to it; None if none is.

        While a store is open its files only grow; `redact` rewrites them, and then says so (`rewritten`).
        """
        found = [_look(name) for name in self._names]
        for name, now, then in zip(self._names, found, self._known, strict=True):
            if now[:2] != then[:2]:
                return name, "removed or replaced"
            if now[2] < then[2]:
                return name, "cut"
        self._known = found
        return None

    def rewritten(self) -> None:
        """Note that the files may be smaller now."""
        self._known = [(*then[:2], _look(name)[2]) for name, then in zip(self._names, self._known, strict=True)]


def _look(name: str) -> tuple[int, int, int]:
    """Device, inode and size of the file with this name; zeros if there is none."""
    try:
        found = os.stat(name)
    except OSError:
        return 0, 0, 0
    return found.st_dev, found.st_ino, found.st_size


def connect(path: Path, options: str) -> sqlite3.Connection:
    """Open an existing file; `options` are those of a SQLite URI, starting with its mode."""
    with told(path, "opened"):
        return sqlite3.connect(
            f"file:{quote(os.fsencode(path))}?mode={options}",
            uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False,
        )  # fmt: skip


def check_header(path: Path) -> None:
    """Refuse a file that is no store, without changing it or its folder.

    SQLite itself reads the header: closing a file that this process has open elsewhere would drop the locks there. An
    immutable file is read without locks and without the files that SQLite creates beside it.
    """
    if not path.is_file():
        raise StoreError(f"{path} cannot be opened: {'it is not a file' if path.exists() else 'there is no such file'}")
    try:
        application, version = _numbers(path, "ro&immutable=1")
    except StoreError:
        # A program that was killed during a checkpoint leaves a file that is intact only together with its -wal file:
        # then SQLite must read both.
        if not path.with_name(f"{path.name}-wal").exists():
            raise
        application, version = _numbers(path, "ro")
    if application != _APPLICATION:
        raise StoreError(f"{path} cannot be opened: it is a database, but not a store of lacuna")
    if version != FORMAT:
        raise StoreError(f"{path} is a store of format {version}; this version reads format {FORMAT} only")


def _numbers(path: Path, options: str) -> tuple[int, int]:
    """The application ID and the format in the header of a file."""
    connection = connect(path, options)
    try:
        with told(path, "opened"):
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    finally:
        connection.close()
    return application, version


def make_durable(connection: sqlite3.Connection) -> None:
    """Make a commit return only when its bytes are on the disk."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise sqlite3.OperationalError("this file system has no shared memory, and a store needs a local disk")
    connection.execute("PRAGMA synchronous = FULL")
    # On macOS a plain fsync leaves the bytes in the cache of the disk.
    connection.execute("PRAGMA fullfsync = ON")


def make_file(path: Path) -> None:
    """Make an empty store under another name, then rename it: so it is either complete or absent."""
    for end in ("-wal", "-journal"):
        # SQLite would apply its content to the new file.
        if path.with_name(path.name + end).exists():
            raise StoreError(f"{path}{end} is left of a file that was removed; put that back, or remove the rest too")
    part = path.with_name(f".{path.name}.part")
    try:
        for end in ("", "-wal", "-journal"):
            part.with_name(part.name + end).unlink(missing_ok=True)
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = connect(part, "rw")
        try:
            with told(path, "made"):
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                for table in SCHEMA:
                    connection.execute(table)
                connection.execute("COMMIT")
                make_durable(connection)
        finally:
            connection.close()
        part.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}") from error


def take_lock(path: Path) -> int:
    """Lock the file beside a store; the system releases the lock when the process ends, even if it is killed."""
    try:
        lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(f"{path} cannot be locked: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise StoreBusyError(f"{path} is open for writing already; a store has one writer at a time") from None
    except OSError as error:
        os.close(lock)
        raise StoreError(f"{path} cannot be locked: {error.strerror}") from error
    return lock


def release(lock: int | None) -> None:
    """Release a lock, if there is one."""
    if lock is not None:
        # Closing is not enough: a forked child process would still hold the lock.
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)
