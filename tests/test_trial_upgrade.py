"""A trial that goes on with another version: equal, refused, or carried over."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lacuna.agent import savefile
from lacuna.kernels.meaning import digest_of
from lacuna.trial.audits.replays import audit
from lacuna.trial.audits.upgrade import upgrade
from lacuna.trial.engine.recovery import OtherKernelsError, read_secret
from lacuna.trial.engine.replay import ReplayError
from lacuna.trial.engine.snapshot import FORM, to_bytes
from lacuna.trial.engine.state import TrialState
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.log_store import StoreBusyError, StoreError
from lacuna.trial.log.sqlite import SqliteStore
from live_trials import bodies, kinds, log_of, made, play
from sentences import one_sentence


@contextmanager
def version(patch: pytest.MonkeyPatch, name: str, *, shift: float | None = None) -> Iterator[None]:
    """Run as another version of lacuna, with `shift` one that computes something else."""
    with patch.context() as patched:
        patched.setattr(savefile, "digest_of", lambda _: name)
        if shift is not None:
            genuine = TrialState._decision

            def other(self: TrialState, body: Any) -> dict[str, Any]:
                found = genuine(self, body)
                return found | {"prob": [found["prob"][0] + shift, found["prob"][1]]}

            # The table of what applies is filled when a state is made.
            patched.setattr(TrialState, "_decision", other)
        yield


def state_of(store: Path) -> bytes:
    """All that the trial is, apart from who saved it and when."""
    with Trial.open(store) as trial:
        return to_bytes(trial.state, 0)


def test_a_store_of_another_version_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path)
    before = store.read_bytes()
    with version(monkeypatch, "newer"):
        with pytest.raises(OtherKernelsError, match="read-only; lacuna trial upgrade") as error:
            Trial.open(store)
        one_sentence(error.value)
        # To look is allowed.
        assert audit(store).why is None
    assert store.read_bytes() == before


def test_an_equal_version_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path)
    n = len(bodies(store))
    with version(monkeypatch, "newer"):
        found = upgrade(store, reason="a new machine")
        assert (found.replayed, found.seq, found.difference) == (n - 1, n, None)
        event = bodies(store)[n]
        assert event is not None
        assert (event["kind"], event["state"], event["reason"]) == ("upgrade", None, "a new machine")
        assert event["provenance"]["kernels"] == "newer"
        assert kinds(store)[n + 1 :] == ["snapshot"]
        assert upgrade(store).seq is None
        with Trial.open(store) as trial:
            play(trial, first=12, seed=5)
        assert audit(store, from_snapshots=True).first == 0
    with pytest.raises(OtherKernelsError, match="was last run by other kernels"):
        Trial.open(store)
    upgrade(store)
    assert audit(store).first == 0


def test_a_version_that_computes_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path)
    before = bodies(store)
    with version(monkeypatch, "newer", shift=0.25):
        with pytest.raises(ReplayError, match=r"stays as it is: event \d+ \(participant .*\): prob\[0\] is") as error:
            upgrade(store)
        one_sentence(error.value)
        with pytest.raises(ValueError, match="the reason is None; it must be one line"):
            upgrade(store, accept=True)
        for reason in ("", "  ", "two\nlines", "x" * 501):
            with pytest.raises(ValueError, match="the reason is"):
                upgrade(store, accept=True, reason=reason)
    assert bodies(store) == before
    with Trial.open(store):
        pass


def test_a_state_is_carried_over_only_from_a_snapshot_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made(tmp_path)
    before = bodies(store)
    with version(monkeypatch, "newer", shift=0.25):
        with pytest.raises(StoreError, match=r"the last snapshot is of event \d+, and event \d+ changed the") as error:
            upgrade(store, accept=True, reason="a mended bug")
        one_sentence(error.value)
    assert bodies(store) == before
    fresh = tmp_path / "fresh.db"
    with Trial.create(tmp_path / "walk.toml", store=f"sqlite:{fresh}", seed=2) as trial:
        play(trial, points=2)
    with version(monkeypatch, "newer", shift=0.25), pytest.raises(StoreError, match="there is no snapshot from which"):
        upgrade(fresh, accept=True, reason="a mended bug")


def test_a_snapshot_that_the_log_does_not_name_is_not_carried_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made(tmp_path)
    with Trial.open(store) as trial:
        content = to_bytes(trial.state, trial.head.seq)
        trial.store.put_snapshot(trial.head.seq, content)
    with version(monkeypatch, "newer", shift=0.25), pytest.raises(StoreError, match="the log does not name the last"):
        upgrade(store, accept=True, reason="a mended bug")
    with Trial.open(store) as trial:
        trial.update()
        seq = max(trial.store.snapshots())
        trial.state.updates = 99
        trial.store.put_snapshot(seq, to_bytes(trial.state, seq))
    with version(monkeypatch, "newer", shift=0.25), pytest.raises(StoreError, match="the log does not name the last"):
        upgrade(store, accept=True, reason="a mended bug")


def test_a_carried_over_state_is_the_one_that_was_left_and_replays_start_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made(tmp_path)
    with Trial.open(store) as trial:
        trial.update()
        # A request that is repeated changes nothing.
        trial.decide("person 0", 1, {})
    left = state_of(store)
    end = len(bodies(store))
    with version(monkeypatch, "newer", shift=0.25):
        found = upgrade(store, accept=True, reason="a mended bug")
        assert found.seq == end
        assert "prob[0]" in str(found.difference)
        event = bodies(store)[end]
        assert event is not None
        with SqliteStore.open(store, write=False) as opened:
            assert opened.source(event["state"])
        with Trial.open(store) as trial, monkeypatch.context() as patched:
            patched.setattr(savefile, "digest_of", digest_of)
            assert to_bytes(trial.state, 0) == left
        with Trial.open(store) as trial:
            play(trial, first=12, seed=5)
            for _ in range(5):
                trial.update()
        # The snapshot of that time is long forgotten; the state is not.
        audited = audit(store, from_snapshots=True)
        assert audited.first == end + 1
        assert audited.snapshots == 3
        assert f"event {end} carried the state over, and what is before it is replayed by lacuna" in str(audited)
        assert f"kernels {digest_of(FORM.kernels)}" in str(audited)
        with SqliteStore.open(store) as opened:
            for seq in opened.snapshots():
                opened.put_snapshot(seq, b"damaged", keep=None)
        with Trial.open(store) as trial:
            assert trial.state.updates == 7
        log = log_of(store, tmp_path / "log.jsonl")
        with SqliteStore.open(store, write=False) as opened:
            key = read_secret(store, opened).draws_key
        key.write(tmp_path / "key")
        with pytest.raises(ValueError, match="carried the state over; only the store can be replayed"):
            audit(log, tmp_path / "key")
    # A third version, equal to the second, goes on from there too; its state was saved by the second.
    with version(monkeypatch, "third", shift=0.25):
        assert upgrade(store).difference is None
        with Trial.open(store) as trial:
            play(trial, first=18, seed=6)
        assert audit(store).first == end + 1


def test_what_came_after_a_carried_over_state_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path)
    with Trial.open(store) as trial:
        trial.update()
    with version(monkeypatch, "newer", shift=0.25):
        upgrade(store, accept=True, reason="a mended bug")
        with Trial.open(store) as trial:
            play(trial, first=12, seed=5)
    with version(monkeypatch, "newer"), pytest.raises(ReplayError, match=r"prob\[0\] is"):
        audit(store)


def test_a_damaged_log_is_never_carried_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path)
    with Trial.open(store) as trial:
        trial.update()
    n = len(bodies(store))
    with sqlite3.connect(store) as connection:
        connection.execute(
            "UPDATE event SET body = replace(body, '\"available\":true', '\"available\":trve') WHERE seq = 40"
        )
    connection.close()
    with version(monkeypatch, "newer", shift=0.25), pytest.raises(ValueError, match="event 40"):
        upgrade(store, accept=True, reason="a mended bug")
    with SqliteStore.open(store, write=False) as opened:
        assert opened.head.seq == n - 1


def test_a_trial_that_is_open_elsewhere_is_not_upgraded(tmp_path: Path) -> None:
    store = made(tmp_path)
    with Trial.open(store), pytest.raises(StoreBusyError):
        upgrade(store)
