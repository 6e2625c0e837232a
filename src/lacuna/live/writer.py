"""The one writer of a trial: it computes events and stores them, and its memory is never ahead of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lacuna.live import snapshot
from lacuna.live.recovery import recover, secret_path
from lacuna.live.replay import begin_body, begin_state
from lacuna.live.sources import Key, Source, learn_from
from lacuna.live.state import TrialState
from lacuna.protocol.file import TrialFile
from lacuna.record.keys import DrawsKey, Secret
from lacuna.record.memory_store import MemoryStore
from lacuna.record.sqlite import SqliteStore
from lacuna.record.store import SNAPSHOTS_KEPT, Body, Store, StoreError, sqlite_path

SNAPSHOT_EVERY = 1000
"""Events between two snapshots, apart from those at updates."""
SHARE_BETWEEN = 50
"""A snapshot holds every decision, so in a long log there are more events between two: this part of it."""


class Writer:
    """Computes the events of a trial, and stores them before anything is answered.

    Parameters
    ----------
    state, store
        The state after the last event, and where the events are.
    draws_key
        Of the trial.
    clock
        Gives the time as the log writes it.

    Attributes
    ----------
    seq
        Number of the last event.
    keep_snapshots
        How many snapshots are kept; None for all.
    """

    def __init__(self, state: TrialState, store: Store, draws_key: DrawsKey, clock: Callable[[], str]) -> None:
        self._state: TrialState | None = state
        self._draws_key = draws_key
        self.store, self.clock = store, clock
        self.seq = store.head.seq
        self.keep_snapshots: int | None = SNAPSHOTS_KEPT
        self._last_snapshot = max(store.snapshots(), default=0)

    @property
    def state(self) -> TrialState:
        """The state after the last event; computed from the store again if it had to be thrown away."""
        if self._state is None:
            self._state = recover(self.store, self._draws_key)
            self.seq = self.store.head.seq
        return self._state

    def commit(
        self, events: list[dict[str, Any]], *, key: tuple[str, int] | None = None, at: str | None = None
    ) -> list[dict[str, Any]]:
        """Compute events and store them durably, all or none; gives their bodies.

        If they cannot be stored, memory is ahead of the store: it is thrown away, and computed from the store again
        when it is needed.
        """
        state, at = self.state, at or self.clock()
        bodies, last = list[Body](), self.seq + len(events)
        try:
            for seq, event in enumerate(events, self.seq + 1):
                body = {"seq": seq, "at": at, **event}
                body |= state.apply(body)
                bodies.append(body)
            self.store.append(bodies, [] if key is None else [(*key, last)])
        except BaseException:
            self._state = None
            raise
        self.seq = last
        if last - self._last_snapshot >= max(SNAPSHOT_EVERY, last // SHARE_BETWEEN):
            self.try_snapshot()
        return bodies

    def try_snapshot(self) -> None:
        """Take a snapshot if that is possible. What was asked for is stored, so it is answered in any case."""
        with suppress(StoreError):
            self.snapshot()

    def snapshot(self) -> None:
        """Keep the state as it is, so that recovery begins here."""
        state, seq = self.state, self.seq
        self._last_snapshot = seq
        content = snapshot.to_bytes(state, seq)
        self.store.put_snapshot(seq, content, self.keep_snapshots)
        self.commit([{"kind": "snapshot", "of": seq, "digest": hashlib.sha256(content).hexdigest()}])


def begin_trial(
    file: TrialFile, store: str | None, secret: Secret, source: Source | None, clock: Callable[[], str]
) -> Writer:
    """Begin a trial, if need be with what an earlier one learned: the store, the secret beside it, the first events."""
    url, at = store if store is not None else file.store, clock()
    body = {"seq": 0, "kind": "begin", "at": at} | begin_body(file, secret.fingerprint, secret.draws_key)
    state, bodies, keys = begin_state(body, secret.draws_key), [body], list[Key]()
    if source is not None:
        bodies, keys = learn_from(source, state, body, secret.fingerprint)
    path = None if url == "memory:" else sqlite_path(url)
    opened: Store = MemoryStore(file.name) if path is None else SqliteStore.create(path, file.name)
    try:
        if path is not None:
            secret.write(secret_path(path))
        try:
            if source is not None:
                opened.put_source(source.content)
            opened.append(bodies, keys)
        except BaseException:
            # Without its first event there is no trial: its secret would only be in the way of the next attempt.
            if path is not None:
                secret_path(path).unlink()
            raise
    except BaseException:
        opened.close()
        raise
    writer = Writer(state, opened, secret.draws_key, clock)
    if source is not None:
        writer.snapshot()
    return writer
