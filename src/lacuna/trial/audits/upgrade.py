"""Continue a trial with another version of lacuna.

A store that another version wrote is read-only. `upgrade` replays its whole log. If everything is equal, the trial
continues. If not, the user must accept the difference and give a reason. Then the arrays of the state are carried over
as the older version left them. From there on the new version computes; only the older one can replay what came before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from lacuna.trial.engine import snapshot
from lacuna.trial.engine.recovery import is_computed_here, landmarks, open_store, read_secret, start_of
from lacuna.trial.engine.replay import ReplayError, begin_state, provenance, replay
from lacuna.trial.engine.state import TrialState
from lacuna.trial.engine.writer import Writer
from lacuna.trial.file.event_kinds import MAX_REASON
from lacuna.trial.log.chained_log import Entry, check, verify
from lacuna.trial.log.events import NEUTRAL, now
from lacuna.trial.log.keys import DrawsKey
from lacuna.trial.log.log_store import Store, StoreError
from lacuna.validation import shown

Watch = Callable[[int, int], None]
"""Called with the number of events, and how many are done."""


@dataclass(frozen=True)
class Upgraded:
    """What an upgrade found.

    Attributes
    ----------
    replayed
        How many events were replayed and are equal.
    seq
        Number of the `upgrade` event; None if there was nothing to do.
    difference
        The first difference, if the state was carried over.
    """

    replayed: int
    seq: int | None
    difference: str | None = None


def read_reason(reason: object) -> str:
    """Return the reason for a change to a trial, or raise an error."""
    if not isinstance(reason, str) or not 1 <= len(reason.strip()) <= MAX_REASON or not reason.isprintable():
        raise ValueError(f"the reason is {shown(reason)}; it must be one line of 1 to {MAX_REASON} characters")
    return reason.strip()


def watched(entries: Iterable[Entry], total: int, watch: Watch | None) -> Iterator[Entry]:
    """Yield the same events, and report the progress."""
    for done, entry in enumerate(entries):
        if watch is not None and done % 256 == 0:
            watch(total, done)
        yield entry


def upgrade(
    where: str | os.PathLike[str], *, accept: bool = False, reason: str | None = None, watch: Watch | None = None
) -> Upgraded:
    """Continue a trial of another version with this one.

    Parameters
    ----------
    where
        Its store, or its trial file.
    accept
        Whether to continue even if this version computes something else than the log says. The state is then carried
        over from the last snapshot, which must be the last thing that happened: let the older version make one, with
        ``lacuna trial update``.
    reason
        Why; it is logged, and needed to accept a difference.
    watch
        Called with the progress.

    Raises
    ------
    ReplayError
        The replay differs, and the difference was not accepted; nothing was changed.
    """
    why = read_reason(reason) if reason is not None or accept else None
    store, path, _ = open_store(where)
    try:
        secret = read_secret(path, store)
        marks = landmarks(store)
        if is_computed_here(marks):
            return Upgraded(0, None)
        difference, digest, first = None, None, 0
        try:
            start = start_of(store, secret.draws_key, marks)
            first = start.seq + 1
            entries = watched(store.read(first), store.head.seq - start.seq, watch)
            state, _ = replay(entries, secret.draws_key, start.state, start.head)
            done = store.head.seq - start.seq
        except ReplayError as error:
            difference, done = str(error), max(error.seq - first, 0)
            if not accept:
                message = f"this version computes something else, so the trial stays as it is: {error}"
                raise ReplayError(f"{message}; --accept with a --reason carries the state over", error.seq) from error
            state = _left(store, secret.draws_key)
            content = snapshot.to_bytes(state, store.head.seq + 1)
            digest = store.put_source(content)
        seq = store.head.seq + 1
        event: dict[str, Any] = {"kind": "upgrade", "provenance": provenance(), "reason": why, "state": digest}
        store.append([{"seq": seq, "at": now()} | event])
        Writer(state, store, secret.draws_key, now).snapshot()
        return Upgraded(done, seq, difference)
    finally:
        store.close()


def _left(store: Store, draws_key: DrawsKey) -> TrialState:
    """The last state of the older version, from a snapshot that the log names and that nothing followed."""
    for _ in verify(store.read(), head=store.head):
        pass
    found = store.get_snapshot()
    advice = "let the older version make one at the end, with lacuna trial update"
    if found is None:
        raise StoreError(f"there is no snapshot from which the state could be carried over; {advice}")
    seq, content = found
    for entry in store.read(seq + 1):
        body = check(entry) or {"kind": None}
        if entry.seq == seq + 1 and (body["kind"] != "snapshot" or body["digest"] != sha256(content).hexdigest()):
            raise StoreError(f"the log does not name the last snapshot, that of event {seq}; {advice}")
        if body["kind"] not in NEUTRAL:
            raise StoreError(f"the last snapshot is of event {seq}, and event {entry.seq} changed the state; {advice}")
    if store.head.seq == seq:
        raise StoreError(f"the log does not name the last snapshot, that of event {seq}; {advice}")
    state = begin_state(check(store.entry(0)), draws_key)
    if snapshot.from_bytes(content, f"the snapshot of event {seq}", state, carried=True) != seq:
        raise StoreError(f"the snapshot of event {seq} is that of another event; {advice}")
    return state
