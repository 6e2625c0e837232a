"""A store in one SQLite file on a local disk: intact after every crash, one writer, any number of readers.

Write-ahead log, ``synchronous=FULL``: once `SqliteStore.append` returns, the events survive a power cut. The file may
hold several trials. Copy it together with its ``-wal`` file, or while no process has it open.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Self

from lacuna.trial.log.chained_log import START, Entry, Head, seal
from lacuna.trial.log.log_store import SNAPSHOTS_KEPT, Body, StoreConflictError, StoreError
from lacuna.trial.log.sqlite_file import (
    FAILURES,
    SCHEMA,
    SEQS,
    OpenFiles,
    check_header,
    connect,
    failed,
    make_durable,
    make_file,
    real_path,
    release,
    take_lock,
    told,
)
from lacuna.validation import shown, whole_number

_PAGE = 256  # events read at once: a reader that stops between pages holds nothing up

_TRIALS = (
    "SELECT name FROM trial WHERE EXISTS "
    "(SELECT * FROM event WHERE id >= trial.number * :seqs AND id < (trial.number + 1) * :seqs) ORDER BY name"
)
_NAME = "INSERT OR IGNORE INTO trial (name) VALUES (?)"
_NUMBER = "SELECT number FROM trial WHERE name = ?"
_LAST = "SELECT id, chain FROM event WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1"
_FROM = "SELECT seq, body, body_hash, chain FROM event WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
_INSERT = "INSERT INTO event (id, body, body_hash, chain) VALUES (?, ?, ?, ?)"
_INSERT_KEY = "INSERT INTO decision_key (trial, p, t, seq) VALUES (?, ?, ?, ?)"
_FIND = "SELECT seq FROM decision_key WHERE trial = ? AND p = ? AND t = ?"
_REDACT = "UPDATE event SET body = NULL WHERE id = ?"
_PUT_SNAPSHOT = "INSERT OR REPLACE INTO snapshot (trial, seq, content, digest) VALUES (?, ?, ?, ?)"
_FORGET = (
    "DELETE FROM snapshot WHERE trial = ? AND seq NOT IN "
    "(SELECT seq FROM snapshot WHERE trial = ? ORDER BY seq DESC LIMIT ?)"
)
_SNAPSHOTS = "SELECT seq FROM snapshot WHERE trial = ? ORDER BY seq"
_SNAPSHOT = "SELECT content, digest FROM snapshot WHERE trial = ? AND seq = ?"
_PUT_SOURCE = "INSERT OR REPLACE INTO source (trial, digest, content) VALUES (?, ?, ?)"
_SOURCE = "SELECT content FROM source WHERE trial = ? AND digest = ?"
_FORGET_SOURCE = "DELETE FROM source WHERE trial = ? AND digest = ?"


class SqliteStore:
    """A store of one trial in a SQLite file; `create` and `open` give one. One thread uses it at a time.

    A trial exists in the file from its first event on.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, trial: str, lock: int | None) -> None:
        self._path = path
        self._connection = connection
        self._trial = trial
        self._lock = lock
        self._only_reads = lock is None
        with told(path, "read"):
            (self._number,) = connection.execute(_NUMBER, (trial,)).fetchone()
            self._first, self._last = self._number * SEQS, (self._number + 1) * SEQS - 1
            self._head = self._stored_head()
        # The first look into the store has opened all of them.
        self._files = OpenFiles(path)

    @classmethod
    def create(cls, path: str | os.PathLike[str], trial: str) -> Self:
        """Open a file for a new trial; create it if it does not exist.

        Parameters
        ----------
        path : path
            The file. If it exists, it must be a store.
        trial : str
            Name of the trial; the file must not hold a trial of that name.
        """
        real = real_path(path)
        if not isinstance(trial, str) or not trial:
            raise ValueError(f"the name of the trial is {shown(trial)}; it must be a text")
        if real.exists():
            check_header(real)
        lock = take_lock(real)
        try:
            if real.exists():
                check_header(real)
            else:
                make_file(real)
            return cls._opened(real, lock, lambda connection: _new(real, trial, connection))
        except BaseException:
            release(lock)
            raise

    @classmethod
    def open(cls, path: str | os.PathLike[str], trial: str | None = None, *, write: bool = True) -> Self:
        """Open a file that holds a trial.

        Parameters
        ----------
        path : path
            The file.
        trial : str, optional
            Name of the trial; by default the only one in the file.
        write : bool
            To write, this must be the only writer: a second one gets `StoreBusyError`. Readers need no lock.
        """
        real = real_path(path)
        check_header(real)
        lock = take_lock(real) if write else None
        try:
            return cls._opened(real, lock, lambda connection: _chosen(real, trial, connection))
        except BaseException:
            release(lock)
            raise

    @classmethod
    def _opened(cls, path: Path, lock: int | None, choose: Callable[[sqlite3.Connection], str]) -> Self:
        connection = connect(path, "ro" if lock is None else "rw")
        try:
            with told(path, "opened"):
                if lock is not None:
                    make_durable(connection)
                found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
                if tuple(sql for (sql,) in found) != SCHEMA:
                    raise StoreError(f"{path} cannot be opened: its tables are not those of a store of lacuna")
                trial = choose(connection)
            return cls(path, connection, trial, lock)
        except BaseException:
            connection.close()
            raise

    @property
    def trial(self) -> str:
        """Name of the trial."""
        return self._trial

    @property
    def head(self) -> Head:
        """The end of the log: for a writer as it saw it last, for a reader as it is now."""
        if not self._only_reads:
            return self._head
        with told(self._path, "read"):
            return self._stored_head()

    def append(self, bodies: Sequence[Body], keys: Sequence[tuple[str, int, int]] = ()) -> None:
        """Store events that continue the log, with their decision keys (p, t, seq), durably and all at once.

        Each body holds its number, kind and time. `StoreConflictError` if the log does not end where this writer saw it
        end, or if one of the decisions is stored already.
        """
        first, number, entries = self._first, self._number, list[Entry]()
        try:
            with self._transaction() as connection:
                entries = seal(self._head, bodies)
                if self._stored_head() != self._head:
                    raise StoreConflictError(
                        f"{self._path} does not end with event {self._head.seq} as this writer left it: another one "
                        "wrote to it, so this one must stop"
                    )
                connection.executemany(_INSERT, [(first + seq, *hashed) for seq, *hashed in entries])
                try:
                    connection.executemany(_INSERT_KEY, [(number, *key) for key in keys])
                except sqlite3.IntegrityError as error:
                    raise StoreConflictError(f"{self._path} {self._which_is_there(keys)}") from error
            if entries:
                self._head = entries[-1].head
        except BaseException:
            self._look_whether_stored(entries)
            raise

    def _look_whether_stored(self, entries: Sequence[Entry]) -> None:
        """Move the head on if the events of an `append` that failed are stored: an interrupt can follow the commit."""
        with suppress(*FAILURES, StoreError):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if entries and self._stored_head() == entries[-1].head:
                self._head = entries[-1].head

    def _which_is_there(self, keys: Sequence[tuple[str, int, int]]) -> str:
        """Say which key is stored already; called within the transaction, so the new ones count as well."""
        for p, t, seq in keys:
            (found,) = self._connection.execute(_FIND, (self._number, p, t)).fetchone() or (seq,)
            if found != seq:
                return f"holds the decision of participant {p[:4]}… at t {t} already, as event {found}"
        return "was given the same decision twice"

    def read(self, first: int = 0) -> Iterator[Entry]:
        """Return the events from number `first` on, as stored: `lacuna.trial.log.chained_log.verify` checks them."""
        first = max(0, first)
        while True:
            with told(self._path, "read"):
                place = self._first + first, self._last
                rows = self._connection.execute(_FROM, (*place, _PAGE)).fetchall()
            for row in rows:
                yield Entry(*row)
            if len(rows) < _PAGE:
                return
            first = rows[-1][0] + 1

    def entry(self, seq: int) -> Entry:
        """Return one event."""
        with told(self._path, "read"):
            place = self._first + max(0, seq), self._last
            row = self._connection.execute(_FROM, (*place, 1)).fetchone()
        if row is None or row[0] != seq:
            raise StoreError(f"{self._path} holds no event {seq} of the trial {self._trial!r}")
        return Entry(*row)

    def find(self, p: str, t: int) -> int | None:
        """Return the number of the event that is decision (p, t); None if there is none."""
        try:
            row = self._connection.execute(_FIND, (self._number, p, t)).fetchone()
        except FAILURES as error:
            raise failed(self._path, "read", error) from error
        return None if row is None else int(row[0])

    def put_snapshot(self, seq: int, content: bytes, keep: int | None = SNAPSHOTS_KEPT) -> None:
        """Store the state after event `seq`, and delete all snapshots but the last `keep`; None keeps all."""
        self._check_writable()
        if not 0 <= seq <= self._head.seq:
            raise ValueError(f"a snapshot is of event {seq}; the log goes from event 0 to event {self._head.seq}")
        most = -1 if keep is None else whole_number("the number of snapshots to keep", keep, 1)
        with self._transaction() as connection:
            connection.execute(_PUT_SNAPSHOT, (self._number, seq, content, sha256(content).digest()))
            connection.execute(_FORGET, (self._number, self._number, most))

    def get_snapshot(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the last undamaged snapshot, of event `at_most` or before; None if there is none."""
        for seq in reversed(self.snapshots()):
            if at_most is not None and seq > at_most:
                continue
            # A page that SQLite cannot read damages one snapshot only; an earlier one may be intact.
            with suppress(sqlite3.DatabaseError):
                content, digest = self._connection.execute(_SNAPSHOT, (self._number, seq)).fetchone()
                if isinstance(content, bytes) and sha256(content).digest() == digest:
                    return seq, content
        return None

    def snapshots(self) -> list[int]:
        """Return the events with a snapshot, in order."""
        with told(self._path, "read"):
            return [seq for (seq,) in self._connection.execute(_SNAPSHOTS, (self._number,))]

    def put_source(self, content: bytes) -> str:
        """Store the content of a source, and return its SHA-256 as hexadecimal digits."""
        digest = sha256(content).hexdigest()
        with self._transaction() as connection:
            connection.execute(_PUT_SOURCE, (self._number, digest, content))
        return digest

    def source(self, digest: str) -> bytes:
        """Return the content of a source by its SHA-256."""
        with told(self._path, "read"):
            row = self._connection.execute(_SOURCE, (self._number, digest)).fetchone()
        if row is None:
            raise StoreError(f"{self._path} holds no source {shown(digest)}")
        content = row[0]
        if not isinstance(content, bytes) or sha256(content).hexdigest() != digest:
            raise StoreError(f"{self._path} holds the source {shown(digest)}, but its content does not match its hash")
        return content

    def redact(self, seqs: Iterable[int], sources: Iterable[str] = ()) -> None:
        """Erase the bodies of these events but not their hashes; and erase these sources. Repeating it is harmless.

        The file is rewritten, because SQLite leaves old bytes in the free parts of pages. If a reader blocks that, the
        bodies are NULL already, but their bytes may still be in the file: repeat it.
        """
        with self._transaction() as connection:
            for seq in seqs:
                is_ours = 0 <= seq < SEQS
                if not is_ours or connection.execute(_REDACT, (self._first + seq,)).rowcount != 1:
                    raise StoreError(f"{self._path} holds no event {shown(seq)} of the trial {self._trial!r}")
            connection.executemany(_FORGET_SOURCE, [(self._number, digest) for digest in sources])
        with told(self._path, "written anew"):
            self._connection.execute("VACUUM")
            busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._files.rewritten()
        if busy:
            raise StoreError(
                f"{self._path} is being read, so erased bodies remain in its -wal file; redact again later"
            )

    def close(self) -> None:
        """Release the store and its lock. Closing twice is harmless."""
        with told(self._path, "closed"):
            self._connection.close()
        release(self._lock)
        self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stored_head(self) -> Head:
        row = self._connection.execute(_LAST, (self._first, self._last)).fetchone()
        if row is None:
            return START
        if not isinstance(row[1], bytes):
            raise StoreError(f"{self._path} cannot be read: its last event is damaged")
        return Head(row[0] - self._first, row[1])

    def _check_writable(self) -> None:
        if self._lock is None:
            raise StoreError(f"{self._path} is open for reading only, or closed")
        self._check_files()

    def _check_files(self) -> None:
        """Refuse to go on if a file of the store is no longer in its place, or no longer whole."""
        if (harm := self._files.harm()) is None:
            return
        (name, what), lost = harm, "what is written would be lost"
        if name == f"{self._path}-wal" and what != "cut":
            # Only this connection can still read that file. Copied into the store, its events outlive the process.
            with suppress(*FAILURES):
                (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
                lost = lost if busy else f"{lost}; what was stored before is safe, so open it again"
        raise StoreError(f"{name} was {what} while it was open: {lost}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit all or nothing. Nobody else can write in between."""
        self._check_writable()
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
            # What went to a file that nobody finds again is not stored.
            self._check_files()
        except BaseException as error:
            # SQLite undoes some failed transactions by itself.
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            if isinstance(error, FAILURES):
                raise failed(self._path, "written", error) from error
            raise


def _known(connection: sqlite3.Connection) -> list[str]:
    """The trials in a file, those that have an event."""
    return [name for (name,) in connection.execute(_TRIALS, {"seqs": SEQS})]


def _new(path: Path, trial: str, connection: sqlite3.Connection) -> str:
    if trial in _known(connection):
        raise StoreError(f"{path} holds the trial {trial!r} already")
    connection.execute(_NAME, (trial,))
    return trial


def _chosen(path: Path, trial: str | None, connection: sqlite3.Connection) -> str:
    known = _known(connection)
    if trial is None and len(known) == 1:
        return known[0]
    there = f"it holds {', '.join(map(shown, known))}" if known else "it holds none"
    if trial is None and known:
        raise StoreError(f"{path} holds several trials, so name one: {there}")
    if trial not in known:
        raise StoreError(f"{path} holds no trial{'' if trial is None else f' {trial!r}'}: {there}")
    return trial
