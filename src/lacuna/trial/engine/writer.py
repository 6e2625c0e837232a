"""The single writer of a trial: it computes events and stores them; its memory is never ahead of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lacuna.trial.engine import snapshot
from lacuna.trial.engine.recovery import recover, secret_path
from lacuna.trial.engine.replay import begin_body, begin_state
from lacuna.trial.engine.sources import Key, Source, learn_from
from lacuna.trial.engine.state import TrialState
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import LogError, check, describe
from lacuna.trial.log.events import ANSWERS, Form, milliseconds
from lacuna.trial.log.keys import DrawsKey, Secret
from lacuna.trial.log.log_store import SNAPSHOTS_KEPT, Body, Store, StoreError, sqlite_path
from lacuna.trial.log.memory_store import MemoryStore
from lacuna.trial.log.sqlite import SqliteStore

SNAPSHOT_EVERY = 1000
"""Events between two snapshots, apart from those at updates."""
SHARE_BETWEEN = 50
"""A snapshot holds every decision, so in a long log two snapshots are this share of the log apart: 1/50."""


class Writer:
    """Computes the events of a trial, and stores them before it answers.

    Parameters
    ----------
    state, store
        The state after the last event, and where the events are.
    draws_key
        Of the trial.
    clock
        Returns the time as the log writes it.

    Attributes
    ----------
    seq
        Number of the last event.
    keep_snapshots
        How many snapshots are kept; None for all.
    """

    def __init__(self, state: TrialState, store: Store, draws_key: DrawsKey, clock: Callable[[], str]) -> None:
        self._state: TrialState | None = state
        self._draws_key, self._form = draws_key, Form(state.file)
        self.store, self.clock = store, clock
        self.seq = store.head.seq
        self.keep_snapshots: int | None = SNAPSHOTS_KEPT
        self._last_snapshot = max(store.snapshots(), default=0)

    @property
    def state(self) -> TrialState:
        """The state after the last event; recovered from the store after a failed write."""
        if self._state is None:
            self._state = recover(self.store, self._draws_key)
            self.seq = self.store.head.seq
        return self._state

    def commit(
        self, events: list[dict[str, Any]], *, key: tuple[str, int] | None = None, at: str | None = None
    ) -> list[dict[str, Any]]:
        """Compute events and store them durably, all or none; returns their bodies.

        If they cannot be stored, the state in memory is ahead of the store. It is dropped, and recovered from the store
        when next needed.
        """
        state, at = self.state, at or self.clock()
        milliseconds(at)  # refuses a time that no reader of the log would take
        bodies, last = list[Body](), self.seq + len(events)
        try:
            for seq, event in enumerate(events, self.seq + 1):
                body = {"seq": seq, "at": at, **event}
                body |= state.apply(body)
                bodies.append(body)
            self.store.append(bodies, [] if key is None else [(*key, last)])
            self.seq = last
        except BaseException:
            self._state = None
            raise
        if last - self._last_snapshot >= max(SNAPSHOT_EVERY, last // SHARE_BETWEEN):
            self.try_snapshot()
        return bodies

    def answer(self, p: str, t: int) -> dict[str, Any] | None:
        """Return the event that answered a decision point, None if there is none; an error if it was erased."""
        if (seq := self.store.find(p, t)) is None:
            return None
        entry = self.store.entry(seq)
        if (body := check(entry)) is None:
            raise StoreError(f"the decision was erased from the log: event {seq}")
        self._form.check(entry, body)
        if body["kind"] not in ANSWERS or (body["p"], body["t"]) != (p, t):
            raise LogError(f"{describe(entry, body)}: it is not the decision of participant {p[:4]}… at t {t}", seq)
        return body

    def try_snapshot(self) -> None:
        """Take a snapshot if possible. The events are stored already, so a failure must not prevent the answer."""
        with suppress(StoreError):
            self.snapshot()

    def snapshot(self) -> None:
        """Store the state now, so that recovery starts here."""
        state, seq = self.state, self.seq
        self._last_snapshot = seq
        content = snapshot.to_bytes(state, seq)
        self.store.put_snapshot(seq, content, self.keep_snapshots)
        self.commit([{"kind": "snapshot", "of": seq, "digest": hashlib.sha256(content).hexdigest()}])


def _write_secret(secret: Secret, path: Path) -> None:
    """Write the secret; one that is there may be left of a beginning that was killed before its first event."""
    try:
        secret.write(path)
    except FileExistsError as error:
        raise FileExistsError(f"{error}; if it is of a trial that never began, move it away") from error


def begin_trial(
    file: TrialFile, store: str | None, secret: Secret, source: Source | None, clock: Callable[[], str]
) -> Writer:
    """Begin a trial, if wanted with a warm start: create the store, the secret beside it, and the first events."""
    url, at = store if store is not None else file.store, clock()
    body = {"seq": 0, "kind": "begin", "at": at} | begin_body(file, secret.fingerprint, secret.draws_key)
    state, bodies, keys = begin_state(body, secret.draws_key), [body], list[Key]()
    if source is not None:
        bodies, keys = learn_from(source, state, body, secret.fingerprint)
    path = None if url == "memory:" else sqlite_path(url)
    opened: Store = MemoryStore(file.name) if path is None else SqliteStore.create(path, file.name)
    try:
        if path is not None:
            _write_secret(secret, secret_path(path))
        try:
            if source is not None:
                opened.put_source(source.content)
            opened.append(bodies, keys)
        except BaseException:
            # Without its first event there is no trial, and its secret would block the next attempt.
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
