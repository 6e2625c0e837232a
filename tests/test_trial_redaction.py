"""What the log says about a participant is erased; the trial goes on, recovers and replays."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from lacuna.trial.audits import redaction
from lacuna.trial.audits.redaction import redact
from lacuna.trial.audits.replays import audit
from lacuna.trial.engine.replay import RedactedError, replay
from lacuna.trial.engine.snapshot import to_bytes
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.chained_log import verify
from lacuna.trial.log.log_store import StoreError
from lacuna.trial.log.sqlite import SqliteStore
from live_trials import bodies, content, kinds, log_of, made, play, write_file
from sentences import one_sentence


def test_every_body_of_a_participant_is_gone_and_the_chain_holds(tmp_path: Path) -> None:
    store = made(tmp_path)
    with Trial.open(store) as trial:
        p = trial.secret.pseudonym("person 2")
        trial.decide("person 2", 12, {"mood": 1}, extra={"shirt": "chequered"})
        trial.decide("person 2", 12, {"mood": 2})
        trial.end("person 2", "withdrawn")
        state = to_bytes(trial.state, 0)
    before = bodies(store)
    own = {body["seq"] for body in before if body is not None and body.get("p") == p}
    assert {before[seq]["kind"] for seq in own} >= {"enrol", "decision", "outcome", "note", "end"}
    assert b"chequered" in content(store)
    found = redact(store, participant="person 2", reason="request of 3 May")
    assert found.seqs == tuple(sorted(own))
    after = bodies(store)
    assert {seq for seq, body in enumerate(after) if body is None} == own
    assert [body for seq, body in enumerate(after[: len(before)]) if seq not in own] == [
        body for seq, body in enumerate(before) if seq not in own
    ]
    event = after[len(before)]
    assert event is not None
    assert (event["kind"], event["of"], event["reason"]) == ("redact", sorted(own), "request of 3 May")
    assert b"chequered" not in content(store)
    with SqliteStore.open(store, write=False) as opened:
        assert len(list(verify(opened.read(), head=opened.head))) == len(after)
    with Trial.open(store) as trial:
        assert to_bytes(trial.state, 0) == state


def test_a_redacted_trial_goes_on_recovers_and_replays_from_there(tmp_path: Path) -> None:
    store = made(tmp_path)
    end = len(bodies(store))
    redact(store, participant="person 1", reason="a request")
    assert redact(store, participant="person 1", reason="a request").seqs == ()
    with pytest.raises(ValueError, match="there is nothing of this participant in the log"):
        redact(store, participant="stranger", reason="a request")
    with Trial.open(store) as trial:
        play(trial, first=12, seed=4)
        for _ in range(5):
            trial.update()
        state = to_bytes(trial.state, 0)
    # Neither the snapshots of that time nor any other one are needed.
    found = audit(store, from_snapshots=True)
    assert (found.first, found.snapshots) == (end + 1, 3)
    assert f"from event {end + 1} on, as bodies of events before event {end} were erased" in str(found)
    with SqliteStore.open(store) as opened:
        for seq in opened.snapshots():
            opened.put_snapshot(seq, b"damaged", keep=None)
    with Trial.open(store) as trial:
        assert to_bytes(trial.state, 0) == state
        with pytest.raises(RedactedError, match="was redacted, so what follows cannot be computed from here"):
            replay(trial.store.read(), trial.secret.draws_key)
        with pytest.raises(StoreError, match="the decision was erased from the log"):
            trial.decide("person 1", 0, {})
        trial.secret.draws_key.write(tmp_path / "key")
    with pytest.raises(RedactedError, match=r"was erased from .*; only the store can be replayed"):
        audit(log_of(store, tmp_path / "log.jsonl"), tmp_path / "key")


def test_single_events_are_erased_and_again_is_harmless(tmp_path: Path) -> None:
    store = made(tmp_path)
    chosen = [seq for seq, kind in enumerate(kinds(store)) if kind == "decision"][4:7]
    assert redact(store, chosen, reason="typed a name").seqs == tuple(chosen)
    n = len(bodies(store))
    assert redact(store, chosen, reason="typed a name").seqs == ()
    assert len(bodies(store)) == n
    more = [seq for seq, kind in enumerate(kinds(store)) if kind == "outcome"][:2]
    assert redact(store, [*chosen, *more], reason="again").seqs == tuple(more)
    assert audit(store).first == n + 1


@pytest.mark.parametrize("kind", ["begin", "update", "snapshot", "redact"])
def test_what_is_about_nobody_cannot_be_erased(tmp_path: Path, kind: str) -> None:
    store = made(tmp_path)
    redact(store, [2], reason="a request")
    before = bodies(store)
    seq = kinds(store).index(kind)
    with pytest.raises(ValueError, match=f"event {seq} .* holds nothing about a participant; it cannot be") as error:
        redact(store, [3, seq], reason="a request")
    one_sentence(error.value)
    assert bodies(store) == before


def test_wrong_requests_are_refused_and_change_nothing(tmp_path: Path) -> None:
    store = made(tmp_path)
    before = store.read_bytes()
    for words, said in (
        ({"reason": "x"}, "nothing is named that should be erased"),
        ({"seqs": [999], "reason": "x"}, "an event is 999; it must be a whole number between 0 and"),
        ({"seqs": [-1], "reason": "x"}, "an event is -1"),
        ({"participant": "stranger", "reason": "x"}, "there is nothing of this participant in the log"),
        ({"seqs": [3], "reason": ""}, "the reason is ''"),
    ):
        with pytest.raises(ValueError, match=said) as error:
            redact(store, **words)
        one_sentence(error.value)
    assert store.read_bytes() == before


def test_what_an_interrupted_attempt_has_named_is_erased_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made(tmp_path)

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "redact", cut)
        with pytest.raises(KeyboardInterrupt):
            redact(store, [3, 4], reason="a request")
    assert kinds(store)[-1] == "redact"
    assert "erased" not in kinds(store)
    # The trial is whole in between.
    audit(store)
    with Trial.open(store) as trial:
        play(trial, first=12, seed=4)
    redact(store, [5], reason="another")
    assert [seq for seq, kind in enumerate(kinds(store)) if kind == "erased"] == [3, 4, 5]
    audit(store)
    with Trial.open(store):
        pass


def test_a_participant_of_an_earlier_trial_is_erased_with_the_copy_of_its_log(tmp_path: Path) -> None:
    log = log_of(made(tmp_path / "old"), tmp_path / "old.jsonl")
    with Trial.create(write_file(tmp_path / "new"), source=log) as trial:
        ghost = next(iter(trial.state.people))
        play(trial)
    store = tmp_path / "new" / "walk.db"
    source = next(body["digest"] for body in bodies(store) if body is not None and body["kind"] == "source")
    assert redact(store, participant="person 0", reason="a request").sources == 0
    with SqliteStore.open(store, write=False) as opened:
        assert opened.source(source) == log.read_bytes()
    assert redact(store, pseudonym=ghost, reason="a request").sources == 1
    with SqliteStore.open(store, write=False) as opened, pytest.raises(StoreError, match="holds no source"):
        opened.source(source)
    audit(store)


def test_a_fall_back_within_a_gap_does_not_spoil_snapshots(tmp_path: Path) -> None:
    """An invalid context is answered with a fall-back, and its point is filled in as absent by the next decision."""
    file = write_file(tmp_path, max_gap='on_invalid = "fallback"')
    with Trial.create(file, seed=1) as trial:
        trial.enrol("maria")
        trial.decide("maria", 0, {"mood": 1})
        assert trial.decide("maria", 1, {"mood": "bad"}).reason == "invalid"
        trial.decide("maria", 2, {"mood": 2})
        trial.update()
    found = audit(tmp_path / "walk.db", from_snapshots=True)
    assert found.snapshots == 1
    redact(tmp_path / "walk.db", participant="maria", reason="a request")
    with Trial.open(tmp_path / "walk.db") as trial:
        trial.decide("maria", 3, {"mood": 2})
    audit(tmp_path / "walk.db")


def test_the_state_is_kept_before_anything_is_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path)
    order: list[str] = []
    for verb in ("put_source", "append", "redact"):
        genuine = getattr(SqliteStore, verb)

        def noted(self: SqliteStore, *words: object, _verb: str = verb, _genuine: object = genuine) -> object:
            order.append(_verb)
            return _genuine(self, *words)  # type: ignore[operator]

        monkeypatch.setattr(SqliteStore, verb, noted)
    redaction.redact(store, [3], reason="a request")
    assert order[:3] == ["put_source", "append", "redact"]


def test_other_trials_in_the_file_are_left_alone(tmp_path: Path) -> None:
    store = made(tmp_path)
    with SqliteStore.create(store, "other") as opened:
        from trial_events import bodies, events

        opened.append(bodies(events(5)))
    redact(tmp_path / "walk.toml", [3], reason="a request")
    with sqlite3.connect(store) as connection:
        found = connection.execute(
            "SELECT name, seq FROM event JOIN trial ON number = trial WHERE body IS NULL"
        ).fetchall()
    connection.close()
    assert found == [("walk", 3)]


def test_a_snapshot_from_before_is_not_used_where_bodies_after_it_are_gone(tmp_path: Path) -> None:
    store = made(tmp_path)
    with SqliteStore.open(store, write=False) as opened:
        (before,) = opened.snapshots()
    redact(store, [before + 4], reason="a request")
    with SqliteStore.open(store) as opened:
        for seq in opened.snapshots():
            if seq > before:
                opened.put_snapshot(seq, b"damaged", keep=None)
        assert before in opened.snapshots()
    with Trial.open(store) as trial:
        assert trial.state.updates == 1
    audit(store, from_snapshots=True)
