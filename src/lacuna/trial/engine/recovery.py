"""Where a trial is found, and its state computed from the last snapshot and what the log says since."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lacuna.agent.savefile import SaveFileError
from lacuna.trial.engine import snapshot
from lacuna.trial.engine.replay import begin_state, replay
from lacuna.trial.engine.state import TrialState
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import Head, LogError, check
from lacuna.trial.log.events import Reader, file_of
from lacuna.trial.log.keys import DrawsKey, Secret
from lacuna.trial.log.log_store import Store, StoreError, sqlite_path
from lacuna.trial.log.sqlite import SqliteStore


class OtherKernelsError(StoreError):
    """The store was written by other kernels, so it is read-only until it is upgraded."""


def secret_path(store: Path) -> Path:
    """The file with the secret of a trial, beside its store."""
    return store.with_name(f"{store.name}.secret")


def find_store(where: str | os.PathLike[str]) -> tuple[Path, TrialFile | None]:
    """Return the file of a store, given its path, its address or a trial file; and the trial file, if one was given."""
    text = os.fspath(where)
    if text.startswith("sqlite:") or "://" in text:
        return sqlite_path(text), None
    path = Path(text)
    if path.suffix == ".toml":
        file = TrialFile.read(path)
        return sqlite_path(file.store), file
    return path, None


def open_store(where: str | os.PathLike[str], *, write: bool = True) -> tuple[SqliteStore, Path, TrialFile | None]:
    """Open the store of a trial."""
    path, file = find_store(where)
    if not path.exists():
        raise StoreError(f"{path} is not there; begin the trial with: lacuna trial init FILE")
    return SqliteStore.open(path, file.name if file is not None else None, write=write), path, file


def read_secret(path: Path, store: Store) -> Secret:
    """Read the secret of the trial in a store, which lies beside it."""
    found = Secret.read(secret_path(path))
    if (check(store.entry(0)) or {}).get("secret") != found.fingerprint:
        raise ValueError(f"{secret_path(path)} is not the secret of the trial {store.trial!r}")
    return found


def landmarks(store: Store) -> list[dict[str, Any]]:
    """The beginning of a log, its upgrades and its erasures, in order."""
    kinds = ("begin", "upgrade", "redact")
    words = tuple(f'"kind":"{kind}"'.encode() for kind in kinds)
    reader, found = Reader(file_of([store.entry(0)])), list[dict[str, Any]]()
    for entry in store.read():
        if isinstance(entry.body, bytes) and any(word in entry.body for word in words):
            content = check(entry)
            if content is not None and content["kind"] in kinds:
                reader.take(entry, content)
                found.append(content)
    return found


def computed_by(marks: list[dict[str, Any]]) -> dict[str, Any]:
    """Which versions computed the last events of a log: those of the last upgrade, or of the beginning."""
    return dict([body for body in marks if "provenance" in body][-1]["provenance"])


def is_computed_here(marks: list[dict[str, Any]]) -> bool:
    """Whether these kernels computed the last events of a log."""
    return bool(computed_by(marks)["kernels"] == snapshot.FORM.digest)


@dataclass(frozen=True)
class Start:
    """The event from which a log can be replayed, and the state after it.

    Attributes
    ----------
    why
        ``"begin"``; ``"upgrade"`` if an upgrade carried the state over; ``"redact"`` if bodies before it were erased.
    """

    head: Head
    state: TrialState
    why: str

    @property
    def seq(self) -> int:
        """Number of the event."""
        return self.head.seq


def start_of(store: Store, draws_key: DrawsKey, marks: list[dict[str, Any]]) -> Start:
    """Return where a replay can start: at the beginning, or at the last state that the log names.

    An upgrade that carries a state over, and an erasure, both name the state from which the trial continued. The store
    keeps it permanently, as a source under its SHA-256.
    """
    state, kept = begin_state(check(store.entry(0)), draws_key), _kept(marks)
    if kept is None:
        return Start(store.entry(0).head, state, "begin")
    seq, kind, digest = (kept[key] for key in ("seq", "kind", "state"))
    if snapshot.from_bytes(store.source(digest), f"the state kept at event {seq}", state, carried=True) != seq:
        raise LogError(f"event {seq}: the state kept there is that of another event", seq)
    return Start(store.entry(seq).head, state, kind)


def _kept(marks: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The last landmark that names a state."""
    return next((body for body in reversed(marks) if body.get("state") is not None), None)


def recover(store: Store, draws_key: DrawsKey, *, at_most: int | None = None) -> TrialState:
    """Return the state after the last event, starting from the last snapshot.

    Everything after the snapshot is replayed and compared with the log. A snapshot is skipped if it cannot be read, if
    the log does not name it, or if it is older than the last state that the log names (`start_of`): the events between
    them were computed by other kernels, or erased.
    """
    marks = landmarks(store)
    if not is_computed_here(marks):
        last, here = computed_by(marks)["kernels"], snapshot.FORM.digest
        raise OtherKernelsError(
            f"the trial {store.trial!r} was last run by other kernels ({last}; these are {here}), so it is "
            "read-only; lacuna trial upgrade replays it and lets it go on"
        )
    first = (_kept(marks) or {"seq": 0})["seq"]
    while (found := store.get_snapshot(at_most)) is not None and found[0] >= first:
        state = state_at(store, draws_key, *found)
        if state is not None:
            return replay(store.read(found[0] + 1), draws_key, state, store.entry(found[0]).head)[0]
        at_most = found[0] - 1
    start = start_of(store, draws_key, marks)
    return replay(store.read(start.seq + 1), draws_key, start.state, start.head)[0]


def state_at(store: Store, draws_key: DrawsKey, seq: int, content: bytes) -> TrialState | None:
    """Return the state that a snapshot holds; None if it cannot be read, or the log names another one."""
    state = begin_state(check(store.entry(0)), draws_key)
    try:
        of = snapshot.from_bytes(content, f"the snapshot of event {seq}", state)
    except SaveFileError:
        return None
    return state if of == seq and _is_named(store, seq, content) else None


def _is_named(store: Store, seq: int, content: bytes) -> bool:
    """Whether the log names this snapshot; one that it does not name is not trusted."""
    body = (check(store.entry(seq + 1)) if store.head.seq > seq else None) or {}
    return body.get("kind") == "snapshot" and body.get("digest") == hashlib.sha256(content).hexdigest()
