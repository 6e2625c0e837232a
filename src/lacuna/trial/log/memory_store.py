"""A store in memory, for simulations and tests: nothing survives the process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from lacuna.trial.log.chained_log import START, Entry, Head, seal
from lacuna.trial.log.log_store import SNAPSHOTS_KEPT, Body, StoreConflictError, StoreError


class MemoryStore:
    """A `Store` without a file.

    Parameters
    ----------
    trial
        Name of the trial.
    """

    def __init__(self, trial: str) -> None:
        self.trial = trial
        self._entries: list[Entry] = []
        self._keys: dict[tuple[str, int], int] = {}
        self._snapshots: dict[int, bytes] = {}
        self._sources: dict[str, bytes] = {}

    @property
    def head(self) -> Head:
        """The end of the log."""
        return self._entries[-1].head if self._entries else START

    def append(self, bodies: Sequence[Body], keys: Sequence[tuple[str, int, int]] = ()) -> None:
        """Store events that continue the log, with their decision keys (p, t, seq)."""
        for p, t, _ in keys:
            if (p, t) in self._keys:
                raise StoreConflictError(f"decision {t} of participant {p[:4]}… is stored already")
        self._entries += seal(self.head, bodies)
        self._keys |= {(p, t): seq for p, t, seq in keys}

    def read(self, first: int = 0) -> Iterator[Entry]:
        """Return the events from number `first` on."""
        return iter(self._entries[first:])

    def entry(self, seq: int) -> Entry:
        """Return one event."""
        if not 0 <= seq < len(self._entries):
            raise StoreError(f"there is no event {seq}")
        return self._entries[seq]

    def find(self, p: str, t: int) -> int | None:
        """Return the number of the event that is decision (p, t); None if there is none."""
        return self._keys.get((p, t))

    def put_snapshot(self, seq: int, content: bytes, keep: int | None = SNAPSHOTS_KEPT) -> None:
        """Store the state after event `seq`, and delete all snapshots but the last `keep`; None keeps all."""
        self._snapshots[seq] = content
        if keep is not None:
            for old in sorted(self._snapshots)[:-keep]:
                del self._snapshots[old]

    def get_snapshot(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the last snapshot of event `at_most` or before; None if there is none."""
        there = [seq for seq in self._snapshots if at_most is None or seq <= at_most]
        return (max(there), self._snapshots[max(there)]) if there else None

    def snapshots(self) -> list[int]:
        """Return the events with a snapshot, in order."""
        return sorted(self._snapshots)

    def put_source(self, content: bytes) -> str:
        """Store the content of a source, and return its SHA-256 as hexadecimal digits."""
        digest = hashlib.sha256(content).hexdigest()
        self._sources[digest] = content
        return digest

    def source(self, digest: str) -> bytes:
        """Return the content of a source by its SHA-256."""
        if digest not in self._sources:
            raise StoreError(f"there is no source {digest[:16]}…")
        return self._sources[digest]

    def redact(self, seqs: Iterable[int], sources: Iterable[str] = ()) -> None:
        """Erase the bodies of these events but not their hashes; and erase these sources."""
        for digest in sources:
            self._sources.pop(digest, None)
        for seq in seqs:
            self._entries[seq] = self.entry(seq)._replace(body=None)

    def close(self) -> None:
        """Nothing to release."""
