"""The file of a SQLite store: its tables, how it is told from other files, and the lock beside it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from lacuna.files import sync_folder
from lacuna.record.store import StoreBusyError, StoreError

FORMAT = 2
_APPLICATION = 0x6C616375  # "lacu"
_PATIENCE = 5.0  # seconds until a transaction of another program counts as stuck

FAILURES = (sqlite3.Error, OverflowError)
"""Whatever SQLite raises."""

SEQS = 1 << 40
"""Event `seq` of trial number `n` has the id ``n * SEQS + seq``."""

# Decisions of about the same time lie together, whoever they are of: few pages change between two checkpoints.
# Events have a single number as their key: then SQLite fills one page after the other. With a key of two columns it
# moves the rows of neighbouring pages about, and a commit writes half as many pages again.
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
    """Turn whatever SQLite raises into one sentence."""
    try:
        yield
    except FAILURES as error:
        raise failed(path, done, error) from error


def failed(path: Path, done: str, error: Exception) -> StoreError:
    """What SQLite raised, as one sentence."""
    return StoreError(f"{path} cannot be {done}: {' '.join(str(error).split())}")


def real_path(path: str | os.PathLike[str]) -> Path:
    """The file itself: whoever comes by a link meets the same lock."""
    return Path(os.path.realpath(path))


def identity(path: Path) -> tuple[int, int] | None:
    """Which file has this name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect(path: Path, options: str) -> sqlite3.Connection:
    """Open a file that is there; `options` are those of an address of SQLite, from its mode on."""
    with told(path, "opened"):
        return sqlite3.connect(
            f"file:{quote(os.fsencode(path))}?mode={options}",
            uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False,
        )  # fmt: skip


def check_header(path: Path) -> None:
    """Refuse what is no store, without changing anything in it or beside it.

    SQLite itself looks: to close a file that this process opened elsewhere would drop the locks on it there. An
    immutable file is read without locks and without the files that SQLite puts beside it.
    """
    if not path.is_file():
        raise StoreError(f"{path} cannot be opened: {'it is not a file' if path.exists() else 'there is no such file'}")
    try:
        application, version = _numbers(path, "ro&immutable=1")
    except StoreError:
        # A program that was killed while SQLite moved changes into the file left it half-way, and whole only together
        # with its -wal file: then SQLite must look at both.
        if not path.with_name(f"{path.name}-wal").exists():
            raise
        application, version = _numbers(path, "ro")
    if application != _APPLICATION:
        raise StoreError(f"{path} cannot be opened: it is a database, but not a store of lacuna")
    if version != FORMAT:
        raise StoreError(f"{path} is a store of format {version}; this version reads format {FORMAT} only")


def _numbers(path: Path, options: str) -> tuple[int, int]:
    """The numbers in the head of a file that tell what it is, and its format."""
    connection = connect(path, options)
    try:
        with told(path, "opened"):
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    finally:
        connection.close()
    return application, version


def make_durable(connection: sqlite3.Connection) -> None:
    """Let a commit return when its bytes are on the disk."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise sqlite3.OperationalError("this file system has no shared memory, and a store needs a local disk")
    connection.execute("PRAGMA synchronous = FULL")
    # On macOS a plain fsync leaves the bytes in the cache of the disk.
    connection.execute("PRAGMA fullfsync = ON")


def make_file(path: Path) -> None:
    """Make an empty store under another name, then rename it: it is whole or not there."""
    for end in ("-wal", "-journal"):
        # SQLite would take its content for the latest changes of the new file.
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
    """Lock the file beside a store; the system frees it when the process ends, however it ends."""
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
    """Give back a lock, if there is one."""
    if lock is not None:
        # Closing is not enough if a child process was forked meanwhile: it has the lock as well.
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)
