"""Whatever a trial is asked, it answers, or it says in one sentence why not and is left as it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from edits import edited
from lacuna.agent.savefile import SaveFileError
from lacuna.agent.settings import Settings
from lacuna.trial.engine import recovery, snapshot
from lacuna.trial.engine.recovery import recover
from lacuna.trial.engine.replay import begin_state, replay
from lacuna.trial.engine.trial import Trial
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log import sqlite
from lacuna.trial.log.chained_log import Entry, check
from lacuna.trial.log.log_store import StoreConflictError, StoreError
from lacuna.trial.log.memory_store import MemoryStore
from sentences import one_sentence
from test_trial_order import CASES, lived
from trial_cases import begun, bodies, contexts, state_bytes, trial_file


class Odd:
    """A value of a type that nobody expects."""


def trial_in_use(more: str = "") -> Trial:
    trial = begun(trial_file(Settings("mi-available", 4), trial=more, allocation="sets = { driving = ['nothing'] }",
                             reward="range = [0.0, 1.0]"))  # fmt: skip
    trial.enrol("ada")
    trial.enrol("ben")
    for t, context in enumerate(contexts(5, 0.3, 1)):
        trial.decide("ada", t, context)
    trial.outcome("ada", 3, 1.0)
    trial.end("ben", "withdrawn")
    return trial


Attempt = Callable[[Trial, Any], object]

DEEP: Any = 1
for _ in range(20):
    DEEP = [DEEP]

VALUES: list[tuple[str, Attempt, tuple[Any, ...]]] = [
    ("enrol", lambda trial, x: trial.enrol(x), ("", 3, None, "x" * 201, "\ud800", b"ada", Odd())),
    ("group", lambda trial, x: trial.enrol("new", x), ("", 3, "x" * 65, "\ud800", Odd())),
    ("other group", lambda trial, x: trial.enrol("ada", x), ("left",)),
    ("t", lambda trial, x: trial.decide("ada", x, None),
     (-1, 1.5, "1", None, True, 2**53 + 1, 10**400, float("nan"), Odd(), [1])),
    ("who", lambda trial, x: trial.decide(x, 0, None), ("", 3, None, "\ud800")),
    ("context", lambda trial, x: trial.decide("ada", 9, x), (3, "mood", [1], {1, 2}, Odd(), True)),
    ("available", lambda trial, x: trial.decide("ada", 9, None, available=x), (1, None, "yes", Odd())),
    ("allowed", lambda trial, x: trial.decide("ada", 9, None, allowed=x),
     ("drive", "", [], ["walk"], [0], 3, [None], {"prompt"}, Odd(), ["prompt", Odd()], [["prompt"]])),
    ("previous", lambda trial, x: trial.decide("ada", 9, None, previous=x),
     (3, {}, {"t": 0}, {"t": 0, "reward": 2.0}, {"t": -1, "reward": 1.0}, {"t": 99, "reward": 1.0},
      {"t": 0, "reward": "1"}, {"t": 0, "reward": 1.0, "more": 1}, {"t": Odd(), "reward": 1.0}, [0, 1.0])),
    ("extra", lambda trial, x: trial.decide("ada", 9, None, extra=x),
     (3, "x", [1], {1: 2}, {"a": float("nan")}, {"a": "x" * 65}, {"a": Odd()}, {"a": {"b": {3: 4}}}, {"a": "\ud800"},
      {"app_at": 3}, {"app_at": "x" * 65}, {"app_at": "\ud800"}, {"a": 10**5000}, {"a": DEEP}, {"a": b"b"},
      {f"k{i}": "y" * 60 for i in range(99)})),
    ("reward", lambda trial, x: trial.outcome("ada", 0, x),
     (-0.1, 1.1, float("nan"), float("inf"), "1", True, Odd(), [1.0], 10**400)),
    ("reward of nothing", lambda trial, x: trial.outcome("ada", x, 1.0), (17, -1, None)),
    ("reward of a stranger", lambda trial, x: trial.outcome(x, 0, 1.0), ("eve", "", 3)),
    ("delivered", lambda trial, x: trial.outcome("ada", 0, 1.0, delivered=x), (1, "no", Odd())),
    ("given", lambda trial, x: trial.given("ada", 9, None, x), ("walk", 0, None, "", Odd(), ["prompt"])),
    ("given to", lambda trial, x: trial.given(x, 0, None, "prompt"), ("eve", "ben", "")),
    ("given at", lambda trial, x: trial.given("ada", x, None, "prompt"), (2, -1, None)),
    ("prob", lambda trial, x: trial.given("ada", 9, None, "prompt", prob=x),
     (0.5, [0.5, 0.5], [0.5, 0.5, 0.5], [-1, 1, 1], ["a", "b", "c"], [float("nan"), 0, 1], Odd())),
    ("no such fall-back", lambda trial, x: trial.given("ada", x, None, other_fallback(trial), fallback=True), (9,)),
    ("fallback", lambda trial, x: trial.given("ada", 9, None, "prompt", fallback=x), ("maybe", 1, None)),
    ("end", lambda trial, x: trial.end("ada", x), ("", "dead", None, 3, Odd())),
    ("other end", lambda trial, x: trial.end("ben", x), ("terminated",)),
    ("end of", lambda trial, x: trial.end(x, "withdrawn"), ("eve", "", 3)),
    ("key", lambda trial, x: trial.update(x), ("", 3, "x" * 65, "\ud800", Odd())),
    ("n", lambda trial, x: trial.fallbacks("ada", 0, x), (0, -1, 1.5, "2", None, 10**9, Odd())),
    ("from", lambda trial, x: trial.fallbacks("ada", x, 2), (-1, 2**53, "0", None, Odd())),
    ("fallbacks of", lambda trial, x: trial.fallbacks(x, 0), ("", 3)),
    ("probabilities of", lambda trial, x: trial.probabilities(x), ("eve", "ben", "", 3)),
    ("answered at", lambda trial, x: trial.answered("ada", x), (-1, None)),
    ("answered to", lambda trial, x: trial.answered(x, 0), ("", 3)),
]  # fmt: skip
BAD = {f"{name} {i}": (attempt, x) for name, attempt, values in VALUES for i, x in enumerate(values)}


def other_fallback(trial: Trial) -> str:
    (drawn,) = trial.fallbacks("ada", 9)
    return next(action for action in trial.file.actions if action != drawn)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_argument_is_one_sentence_and_changes_nothing(name: str) -> None:
    trial = trial_in_use()
    before, head = state_bytes(trial.state), trial.head
    attempt, value = BAD[name]
    with pytest.raises(ValueError) as told:  # noqa: PT011  the sentence is looked at
        attempt(trial, value)
    one_sentence(told.value)
    assert state_bytes(trial.state) == before
    assert trial.head == head == trial.store.head
    assert trial.decide("ada", 5, None).reason is None


WEIRD: tuple[Any, ...] = (
    {}, {"mood": Odd()}, {"mood": float("inf")}, {"mood": 10**400}, {"mood": "x" * 10_000}, {"mood": [1]}, {3: 4},
    {"mood": {"a": 1}}, {"mood": True}, {"mood": b"1"}, {"mood": np.float32(1)}, {"mood": np.array([1, 2])},
    {"\ud800": 1}, {"mood": "\ud800"}, {None: None}, {"mood": -0.0}, {"mood": 1 + 0j}, {Odd(): Odd()},
    {"x" * 1000: 1}, dict.fromkeys(map(str, range(500))), {"mood": np.datetime64("now")}, {"mood": np.nan},
)  # fmt: skip


@pytest.mark.parametrize("on_invalid", ["missing", "fallback", "refuse"])
def test_every_context_gets_an_answer(on_invalid: str) -> None:
    trial = trial_in_use(f'on_invalid = "{on_invalid}"')
    for t, context in enumerate(WEIRD, 5):
        before, head = state_bytes(trial.state), trial.head
        try:
            decision = trial.decide("ada", t, context)
        except ValueError as error:
            assert on_invalid == "refuse"
            one_sentence(error)
            assert (state_bytes(trial.state), trial.head) == (before, head)
            continue
        body = check(trial.store.entry(decision.seq)) or {}
        assert decision.policy == ("fallback" if on_invalid == "fallback" and body["invalid"] else "learned")
        assert sum(decision.prob.values()) == 1
        assert trial.decide("ada", t, context).repeated
    state, _ = replay(trial.store.read(), trial.secret.draws_key)
    assert state_bytes(state) == state_bytes(trial.state)


# --- stores that fail ------------------------------------------------------------------------------------------------


class Failing(MemoryStore):
    """A store that fails when told to."""

    def __init__(self, trial: str) -> None:
        super().__init__(trial)
        self.fails: set[str] = set()

    def append(self, *args: Any) -> None:
        if "append" in self.fails:
            raise StoreError("the disk is full")
        super().append(*args)

    def read(self, first: int = 0) -> Iterator[Any]:
        if "read" in self.fails:
            raise StoreError("the disk is gone")
        return super().read(first)

    def put_snapshot(self, *args: Any) -> None:
        if "snapshot" in self.fails:
            raise StoreError("the snapshot is too large")
        super().put_snapshot(*args)


def on_failing_store() -> tuple[Trial, Failing]:
    trial, store = trial_in_use(), Failing("walk")
    store.__dict__ |= {name: value for name, value in trial.store.__dict__.items() if name != "fails"}
    trial.writer.store = store
    return trial, store


@pytest.mark.parametrize("fails", [{"append"}, {"append", "read"}])
def test_what_was_not_stored_has_not_happened(fails: set[str]) -> None:
    trial, store = on_failing_store()
    before, head = state_bytes(trial.state), trial.head
    store.fails = fails
    for attempt in (lambda: trial.decide("ada", 5, {"mood": 1}), trial.update, lambda: trial.outcome("ada", 0, 0.5),
                    lambda: trial.enrol("new"), lambda: trial.end("ada", "terminated"),
                    lambda: trial.given("ada", 7, None, "prompt")):  # fmt: skip
        with pytest.raises(StoreError):
            attempt()
    store.fails = set()
    assert (state_bytes(trial.state), trial.head) == (before, head)
    trial.decide("ada", 5, {"mood": 1})
    trial.update()
    state, _ = replay(trial.store.read(), trial.secret.draws_key)
    assert state_bytes(state) == state_bytes(trial.state)


def test_a_snapshot_that_cannot_be_stored_keeps_nobody_from_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lacuna.trial.engine.writer.SNAPSHOT_EVERY", 3)
    trial, store = on_failing_store()
    there, store.fails = store.snapshots(), {"snapshot"}
    seen = [trial.decide("ada", t, None) for t in range(5, 15)]
    assert trial.update()["version"] == 1
    assert store.snapshots() == there
    store.fails = set()
    trial.decide("ada", 20, None)
    trial.decide("ada", 21, None)
    trial.decide("ada", 22, None)
    assert store.snapshots()[-1] > there[-1]
    assert trial.decide("ada", 6, None).action == seen[1].action
    assert state_bytes(recover(store, trial.secret.draws_key)) == state_bytes(trial.state)


def test_two_writers_that_got_past_the_lock_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "walk.db"
    Trial.create(trial_file(Settings("mi-available", 4)), store=f"sqlite:{path}").close()
    locks = iter(range(1000, 2000))
    monkeypatch.setattr(sqlite, "take_lock", lambda _: next(locks))
    monkeypatch.setattr(sqlite, "release", lambda _: None)
    with Trial.open(path) as one, Trial.open(path) as other:
        one.enrol("ada")
        answer = one.decide("ada", 0, {"mood": 1})
        for attempt in (lambda: other.enrol("ada"), lambda: other.decide("ada", 0, None), other.update):
            with pytest.raises(StoreConflictError) as told:
                attempt()
            one_sentence(told.value)
        # What the second one has in memory is what the first one wrote.
        assert state_bytes(other.state) == state_bytes(one.state)
        assert one.decide("ada", 0, {"mood": 1}).action == answer.action
        n = len(bodies(one.store))
    with Trial.open(path) as again:
        assert len(bodies(again.store)) == n
        assert sum(body["kind"] == "decision" for body in bodies(again.store)) == 1


# --- snapshots -------------------------------------------------------------------------------------------------------


@cache
def snapshots() -> list[tuple[Trial, bytes, TrialFile]]:
    """Trials of every kind, and a snapshot of each."""
    found = []
    for case in CASES:
        trial = lived(case, np.random.default_rng(2), 3)
        found.append((trial, snapshot.to_bytes(trial.state, trial.head.seq), trial.file))
    return found


def blank(trial: Trial) -> Any:
    return begin_state(check(trial.store.entry(0)), trial.secret.draws_key)


def test_a_snapshot_is_read_back_as_it_was() -> None:
    for trial, content, _ in snapshots():
        state = blank(trial)
        assert snapshot.from_bytes(content, "it", state) == trial.head.seq
        assert snapshot.to_bytes(state, trial.head.seq) == content


def test_an_edited_snapshot_is_refused_with_a_sentence_or_makes_a_state_that_lives() -> None:
    rng, refused = Random(7), 0
    for i in range(600):
        trial, content, _ = snapshots()[i % len(CASES)]
        state = blank(trial)
        try:
            snapshot.from_bytes(edited(content, rng), "it", state)
        except SaveFileError as error:
            one_sentence(error)
            refused += 1
            continue
        live_on(state)
    assert refused > 300


def live_on(state: Any) -> None:
    """Let the participants of a state whose snapshot was edited go on; it must stay within its arrays."""
    at = "2026-11-17T18:00:00.000Z"
    for person in list(state.people.values()):
        if person.ended is None and person.last_t < 2**50:
            t = person.last_t + 1
            request = {"p": person.p, "t": t, "at": at, "context": {"mood": 1}, "allowed": [0, 1, 2], "available": True}
            for old, why in state.closings(person, t, None):
                state.apply({"kind": "close", "p": person.p, "t": old, "why": why})
            gave = state.apply({"kind": "decision", **request})
            assert sum(gave["prob"]) == 1
            state.apply({"kind": "outcome", "p": person.p, "t": t, "reward": 1.0, "delivered": None})
    state.apply({"kind": "update", "key": None, "at": at})
    assert all(np.isfinite(pool.tables.memory.Q).all() for pool in state.pools.values())


def test_recovery_never_trusts_a_snapshot_that_the_log_does_not_name() -> None:
    rng = Random(3)
    for i in range(60):
        trial = lived(CASES[i % len(CASES)], np.random.default_rng(2), 2)
        store, real = trial.store, state_bytes(trial.state)
        assert isinstance(store, MemoryStore)
        seqs = store.snapshots()
        content = store._snapshots[seqs[-1]]
        if i % 3 == 0:
            store._snapshots[seqs[-1]] = edited(content, rng)
        elif i % 3 == 1:
            store._snapshots[store.head.seq] = edited(content, rng)
        else:
            # Whole, sealed and of this trial, but of another moment.
            store._snapshots[store.head.seq] = snapshot.to_bytes(blank(trial), store.head.seq)
        assert state_bytes(recover(store, trial.secret.draws_key)) == real


def test_a_snapshot_that_the_log_names_is_what_recovery_begins_with(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = lived(CASES[0], np.random.default_rng(2), 3)
    trial.decide("ada", 500, None)
    asked: list[list[Entry]] = []

    def counted(entries: Iterable[Entry], *rest: Any) -> Any:
        asked.append(list(entries))
        return replay(asked[-1], *rest)

    monkeypatch.setattr(recovery, "replay", counted)
    assert state_bytes(recover(trial.store, trial.secret.draws_key)) == state_bytes(trial.state)
    assert 1 <= len(asked[0]) <= 8


def test_a_damaged_snapshot_in_a_file_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "walk.db"
    with Trial.create(trial_file(Settings("mi-available", 4)), store=f"sqlite:{path}") as trial:
        trial.enrol("ada")
        for t, context in enumerate(contexts(20, 0.3, 1)):
            trial.decide("ada", t, context, previous={"t": t - 1, "reward": 1.0} if t else None)
            if t % 5 == 4:
                trial.update()
        real = state_bytes(trial.state)
    for damage in ("UPDATE snapshot SET content = x'00'", "UPDATE snapshot SET digest = x'00'",
                   "UPDATE snapshot SET content = NULL || 'x'", "DELETE FROM snapshot"):  # fmt: skip
        connection = sqlite3.connect(path)
        try:
            connection.execute(damage)
            connection.commit()
        except sqlite3.IntegrityError:
            pass
        connection.close()
        with Trial.open(path) as trial:
            assert state_bytes(trial.state) == real
