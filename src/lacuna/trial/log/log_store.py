"""The interface of a store, which holds the log of a trial; its errors, and its address.

A store holds events, which decision is which event, snapshots, and the content of sources. It computes nothing. Only
one process writes to it: it holds a lock, and every `append` names the end of the log that it continues. So a second
writer that gets past the lock changes nothing and gets an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from lacuna.trial.log.chained_log import Entry, Head
from lacuna.validation import shown

SNAPSHOTS_KEPT = 3

Body = dict[str, Any]
"""The content of an event."""


class StoreError(ValueError):
    """The store cannot be opened, read or written; nothing was changed."""


class StoreBusyError(StoreError):
    """Another process has the store open for writing."""


class StoreConflictError(StoreError):
    """Another writer wrote to the store, or one of the decisions is stored already; nothing was changed."""


class Store(Protocol):
    """A store of one trial, opened; `SqliteStore.open` and `SqliteStore.create` give one.

    Every method raises `StoreError` if the store fails. The state in the writer's memory may then be ahead of the
    store, and must be recovered from it.
    """

    @property
    def trial(self) -> str:
        """Name of the trial."""
        ...

    @property
    def head(self) -> Head:
        """The end of the log: for a writer as it saw it last, for a reader as it is now."""
        ...

    def append(self, bodies: Sequence[Body], keys: Sequence[tuple[str, int, int]] = ()) -> None:
        """Store events that continue the log, with their decision keys (p, t, seq), durably and all at once.

        Each body holds its number, kind and time. `StoreConflictError` if the log does not end where this writer saw it
        end, or if one of the decisions is stored already.
        """
        ...

    def read(self, first: int = 0) -> Iterator[Entry]:
        """Return the events from number `first` on, as stored: `lacuna.trial.log.chained_log.verify` checks them."""
        ...

    def entry(self, seq: int) -> Entry:
        """Return one event."""
        ...

    def find(self, p: str, t: int) -> int | None:
        """Return the number of the event that is decision (p, t); None if there is none."""
        ...

    def put_snapshot(self, seq: int, content: bytes, keep: int | None = SNAPSHOTS_KEPT) -> None:
        """Store the state after event `seq`, and delete all snapshots but the last `keep`; None keeps all."""
        ...

    def get_snapshot(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the last undamaged snapshot, of event `at_most` or before; None if there is none."""
        ...

    def snapshots(self) -> list[int]:
        """Return the events with a snapshot, in order."""
        ...

    def put_source(self, content: bytes) -> str:
        """Store the content of a source, and return its SHA-256 as hexadecimal digits."""
        ...

    def source(self, digest: str) -> bytes:
        """Return the content of a source by its SHA-256."""
        ...

    def redact(self, seqs: Iterable[int], sources: Iterable[str] = ()) -> None:
        """Erase the bodies of these events but not their hashes; and erase these sources. Repeating it is harmless."""
        ...

    def close(self) -> None:
        """Release the store and its lock. Closing twice is harmless."""
        ...


def sqlite_path(url: str, folder: str | os.PathLike[str] = ".") -> Path:
    """Return the file that an address names, or raise an error.

    Parameters
    ----------
    url : str
        ``sqlite:`` and a path.
    folder : path
        The folder that a relative path starts from.

    Examples
    --------
    >>> sqlite_path("sqlite:walk.db", "/srv/trials"), sqlite_path("sqlite:/var/walk.db", "/srv/trials")
    (PosixPath('/srv/trials/walk.db'), PosixPath('/var/walk.db'))
    >>> sqlite_path("mysql:walk")
    Traceback (most recent call last):
    ValueError: the address of a store begins with 'mysql:'; it must be sqlite: and a path
    """
    # An address may hold a password: no message shows more of it than what comes before the first colon.
    scheme, colon, path = url.partition(":") if isinstance(url, str) else ("", "", "")
    if not colon:
        raise ValueError("the address of a store has no colon; it must be sqlite: and a path")
    if scheme != "sqlite":
        raise ValueError(f"the address of a store begins with {shown(scheme + colon)}; it must be sqlite: and a path")
    if path.startswith("//"):
        raise ValueError(f"the address of a store is {shown(url)}; write the path itself after sqlite:, without //")
    if not path or path.startswith(":") or path.endswith("/") or "\0" in path:
        raise ValueError(f"the address of a store is {shown(url)}; it must be sqlite: and the path of a file")
    return Path(folder) / path
