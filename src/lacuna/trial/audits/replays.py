"""Replay a store or an exported log, and report from which event on, how many events, and the end of the log."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lacuna.quantities import counted
from lacuna.trial.audits.upgrade import Watch, watched
from lacuna.trial.engine import snapshot
from lacuna.trial.engine.recovery import computed_by, find_store, landmarks, open_store, read_secret, start_of, state_at
from lacuna.trial.engine.replay import RedactedError, ReplayError, replay
from lacuna.trial.log.chained_log import Head, LogError, check, open_log, read_log
from lacuna.trial.log.events import Reader, file_of
from lacuna.trial.log.keys import DrawsKey
from lacuna.trial.log.log_store import Store, StoreError

_SQLITE, _LOG = b"SQLite format 3\0", b'{"body":'


@dataclass(frozen=True)
class Audit:
    """A successful replay: the log is equal to what is computed from it.

    Attributes
    ----------
    head
        The end of the log.
    first
        The first event that was replayed; for earlier ones only the chain was verified.
    why
        Why the replay did not start at the beginning; None if it did.
    snapshots
        How many snapshots lead to the same state.
    """

    head: Head
    first: int = 0
    why: str | None = None
    snapshots: int = 0

    def __str__(self) -> str:
        end = f"the log ends with event {self.head.seq}, chain {self.head.chain.hex()}"
        since = "" if self.why is None else f" from event {self.first} on, as {self.why}"
        also = f", also from {counted(self.snapshots, 'snapshot')}" if self.snapshots else ""
        return f"equal: {counted(self.head.seq + 1 - self.first, 'event')} computed again{since}{also}; {end}"


def is_log(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an exported log; an error if it is neither a log nor a store."""
    with open_log(path) as file:
        first = file.read(len(_SQLITE))
    if not first.startswith((_SQLITE, _LOG)):
        raise StoreError(f"{path} is neither the store of a trial nor an exported log")
    return first.startswith(_LOG)


def audit(
    where: str | os.PathLike[str],
    draws_key: str | os.PathLike[str] | None = None,
    *,
    from_snapshots: bool = False,
    watch: Watch | None = None,
) -> Audit:
    """Replay a trial; `ReplayError` or `LogError` names the first event that differs.

    Parameters
    ----------
    where
        The store, the trial file that names it, or an exported log.
    draws_key
        A file with the draws key. A log needs one; beside a store lies its secret.
    from_snapshots
        Also replay from every snapshot that this version made: all must lead to the same state.
    watch
        Called with the progress.
    """
    path, _ = find_store(where)
    if not is_log(path):
        store, path, _ = open_store(where, write=False)
        try:
            key = read_secret(path, store).draws_key if draws_key is None else DrawsKey.read(os.fspath(draws_key))
            return _audit_store(store, key, from_snapshots, watch)
        finally:
            store.close()
    if draws_key is None:
        raise ValueError(f"{path} is an exported log: it needs the draws key of the trial, which is no part of it")
    if from_snapshots:
        raise ValueError(f"{path} is an exported log, which has no snapshots")
    return _audit_log(path, DrawsKey.read(os.fspath(draws_key)), watch)


def _audit_store(store: Store, key: DrawsKey, from_snapshots: bool, watch: Watch | None) -> Audit:
    _check_key(store.trial, (check(store.entry(0)) or {}).get("draws"), key)
    marks, head = landmarks(store), store.head
    start = start_of(store, key, marks)
    why = None
    if start.why == "redact":
        why = f"bodies of events before event {start.seq} were erased"
    elif start.why == "upgrade":
        older = computed_by([body for body in marks if body["seq"] < start.seq])
        made = f"lacuna {older.pop('lacuna', '')} ({', '.join(f'{name} {which}' for name, which in older.items())})"
        why = f"event {start.seq} carried the state over, and what is before it is replayed by {made}"
    # A replay sees neither the events before its start, nor what an event without effect refers to.
    reader = Reader(start.state.file)
    before = [entry for entry, _ in reader.read(store.read()) if entry.seq == start.seq]
    if reader.erased:
        seq = min(reader.erased)
        raise LogError(f"event {seq}: its body was erased, and no event of the kind redact names it", seq)
    if before[0].head != start.head:
        raise LogError(f"event {start.seq}: the chain there is not the one that was read first", start.seq)
    total = head.seq - start.seq
    end, reached = replay(watched(store.read(start.seq + 1), total, watch), key, start.state, start.head)
    if reached.seq < head.seq:
        raise LogError(f"event {reached.seq + 1} is missing: the log ends before it", reached.seq + 1)
    n = _audit_snapshots(store, key, start.seq, snapshot.to_bytes(end, reached.seq), reached) if from_snapshots else 0
    return Audit(reached, 0 if why is None else start.seq + 1, why, n)


def _audit_snapshots(store: Store, key: DrawsKey, first: int, end: bytes, head: Head) -> int:
    """Replay from every snapshot; returns how many were usable."""
    done = 0
    for seq in store.snapshots():
        found = store.get_snapshot(seq)
        # A trial that goes on meanwhile forgets snapshots, and makes some after the end that was reached.
        if not first <= seq <= head.seq or found is None or found[0] != seq:
            continue
        if (state := state_at(store, key, *found)) is None:
            continue
        entries = (entry for entry in store.read(seq + 1) if entry.seq <= head.seq)
        state, _ = replay(entries, key, state, store.entry(seq).head)
        if snapshot.to_bytes(state, head.seq) != end:
            raise ReplayError(f"event {seq}: its snapshot leads to another state than the events before it", seq)
        done += 1
    return done


def _audit_log(path: Path, key: DrawsKey, watch: Watch | None) -> Audit:
    head, reader = None, Reader(file_of(read_log(path)))
    for entry, body in reader.read(read_log(path)):
        head = entry.head
        if entry.seq == 0:
            _check_key(os.fspath(path), (body or {}).get("draws"), key)
        if body is None:
            raise RedactedError(f"event {entry.seq} was erased from {path}; only the store can be replayed, from later")
        if body["kind"] == "upgrade" and body["state"] is not None:
            raise RedactedError(f"event {entry.seq} carried the state over; only the store can be replayed, from there")
    if head is None:
        raise LogError(f"{path} is empty")
    return Audit(replay(watched(read_log(path), head.seq + 1, watch), key)[1])


def _check_key(what: str, fingerprint: object, key: DrawsKey) -> None:
    """Refuse a wrong key, which would look like a difference in the log."""
    if fingerprint is not None and fingerprint != key.fingerprint:
        raise ValueError(f"{what} was made with another draws key than this one")
