"""What once went wrong in a trial, each as small as it can be."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import Settings
from lacuna.trial.audits import replays
from lacuna.trial.engine import snapshot
from lacuna.trial.engine.ledger import BY_DEFAULT, OUTSIDE
from lacuna.trial.engine.recovery import secret_path
from lacuna.trial.engine.replay import begin_state, replay
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.chained_log import check
from lacuna.trial.log.keys import Secret
from lacuna.trial.log.sqlite import SqliteStore
from trial_cases import begun, bodies, state_bytes, trial_file

FULL = {"time": 1, "home": 0, "mood": 2}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("every", ["batch", "each"])
def test_every_method_learns_from_one_visit_each(method: str, every: str) -> None:
    """No context follows the last decision; a method that waits for a complete one would never learn."""
    trial = begun(trial_file(Settings(method, alpha=0.5 if METHODS[method].steps_in_q else 0.1),
                             trial=f'update = "{every}"\nhorizon = 1'))  # fmt: skip
    for who in ("ada", "ben"):
        trial.enrol(who)
        trial.decide(who, 0, FULL)
        assert trial.outcome(who, 0, 1.0).used
    assert trial.update()["credited"] == (2 if every == "batch" else 0)
    (pool,) = trial.state.pools.values()
    assert (pool.taught, pool.credited) == (0, 2)
    assert (pool.tables.memory.Q > 0).any()


def waiting(reward: str, update: str = "batch") -> Trial:
    trial = begun(trial_file(Settings("mi-available", 4), trial=f'update = "{update}"', reward=reward))
    trial.enrol("ada")
    for t in range(3):
        trial.decide("ada", t, FULL)
    return trial


def test_a_reward_that_comes_with_the_request_is_in_time() -> None:
    trial = waiting("wait = { decisions = 3 }")
    trial.decide("ada", 3, FULL, previous={"t": 0, "reward": 1.0})
    assert "close" not in {body["kind"] for body in bodies(trial.store)}
    assert trial.update()["credited"] == 1
    trial = waiting("max_open = 3")
    trial.decide("ada", 3, FULL, previous={"t": 0, "reward": None})
    assert [body["t"] for body in bodies(trial.store) if body["kind"] == "close"] == [0]


def test_a_reward_after_the_default_is_logged_only() -> None:
    trial = waiting("wait = { decisions = 2 }\ndefault = 0.25")
    assert not trial.outcome("ada", 0, 1.0).used
    assert trial.state.ledger.reward(0) == 0.25
    assert trial.state.ledger.has(0, BY_DEFAULT)
    assert trial.update()["credited"] == 1
    assert not trial.outcome("ada", 0, 0.5).used


def test_a_fall_back_for_an_invalid_context_is_what_was_done_at_its_point() -> None:
    trial = begun(trial_file(Settings("mi-available", 4), trial='on_invalid = "fallback"\nupdate = "each"'))
    trial.enrol("ada")
    trial.decide("ada", 0, FULL)
    answer = trial.decide("ada", 1, FULL | {"mood": 77})
    trial.decide("ada", 2, FULL)
    ledger = trial.state.ledger
    assert ledger.n == 3
    assert ledger.has(1, OUTSIDE)
    assert trial.file.actions[ledger.steps.action[1]] == answer.action
    again = begin_state(check(trial.store.entry(0)), trial.secret.draws_key)
    snapshot.from_bytes(snapshot.to_bytes(trial.state, trial.head.seq), "it", again)
    assert state_bytes(again) == state_bytes(trial.state)


@pytest.mark.parametrize("delivered", [None, True, False])
def test_what_is_reported_twice_is_logged_once(delivered: bool | None) -> None:
    trial = waiting("wait = { decisions = 2 }", "each")
    for t, used in ((0, False), (2, True)):
        first = trial.outcome("ada", t, 1.0, delivered=delivered)
        head = trial.head
        again = trial.outcome("ada", t, 1.0, delivered=delivered)
        assert (first.used, first.revision, first.repeated) == (used, 1, False)
        assert (again.used, again.revision, again.repeated) == (used, 1, True)
        assert trial.head == head
    assert trial.outcome("ada", 2, 0.5).revision == 2
    assert not trial.outcome("ada", 2, 0.5, delivered=not delivered).repeated


def test_who_is_enrolled_by_a_context_that_cannot_be_read_gets_the_fall_back_too() -> None:
    trial = begun(trial_file(Settings("mi-available", 4), trial='unknown = "enrol"\non_invalid = "fallback"'))
    decision = trial.decide("eve", 0, FULL | {"mood": 77})
    assert (decision.policy, decision.reason) == ("fallback", "invalid")
    assert trial.decide("eve", 1, FULL).policy == "learned"


def test_a_planner_has_left_the_states_of_steps_whose_reward_is_still_awaited() -> None:
    """Otherwise its counts would name states that it does not know, and no snapshot of it could be read back."""
    trial = begun(trial_file(Settings("mi-planned", 4)))
    trial.enrol("ada")
    for t in range(3):
        trial.decide("ada", t, FULL)
    assert trial.update() == {"version": 1, "taught": 2, "credited": 0}
    again = begin_state(check(trial.store.entry(0)), trial.secret.draws_key)
    assert snapshot.from_bytes(state_bytes(trial.state), "the snapshot", again) == 0
    assert state_bytes(again) == state_bytes(trial.state)
    (pool,) = trial.state.pools.values()
    assert pool.tables.planner is not None
    assert pool.tables.planner.table.left.sum() == 1


LIMITS = "bounds = [[0.1, 0.9], [0.0, 0.9], [0.0, 0.9]]\nfallback = [0.25, 0.25, 0.5]"


@pytest.mark.parametrize("reason", ["unknown", "past", "invalid"])
def test_a_fall_back_keeps_to_the_actions_that_a_request_leaves(reason: str) -> None:
    """Whoever drives gets no prompt, whatever the reason for the fall-back."""
    trial = begun(trial_file(Settings("mi-available", 4), trial='on_invalid = "fallback"', allocation=LIMITS))
    trial.enrol("ada")
    trial.decide("ada", 0 if reason == "invalid" else 99, FULL)
    who, context = "eve" if reason == "unknown" else "ada", FULL | ({"mood": 77} if reason == "invalid" else {})
    for t in range(1, 13):
        away = trial.decide(who, t, context, available=False)
        assert (away.reason, away.action, away.randomised) == (reason, "nothing", False)
        assert away.prob == {"nothing": 1.0, "prompt": 0.0, "call": 0.0}
    for t in range(13, 25):
        one = trial.decide(who, t, context, allowed=["call"])
        assert (one.reason, one.action, one.randomised) == (reason, "call", False)
    seen = set()
    for t in range(25, 50):
        two = trial.decide(who, t, context, allowed=["prompt", "call"])
        assert (two.reason, two.randomised, two.prob["nothing"]) == (reason, True, 0.0)
        assert [two.prob["prompt"], two.prob["call"]] == pytest.approx([1 / 3, 2 / 3], abs=2**-32)
        assert sum(two.prob.values()) == 1
        seen.add(two.action)
    assert seen == {"prompt", "call"}
    whole = trial.decide(who, 50, context)
    assert whole.action == trial.fallbacks(who, 50)[0]
    assert bodies(trial.store)[whole.seq].keys().isdisjoint({"available", "allowed"})
    rows = trial.decisions().filter(pl.col("policy") == "fallback")
    assert rows["available"].to_list() == [not 1 <= t <= 12 for t in rows["t"]]
    state, _ = replay(trial.store.read(), trial.secret.draws_key)
    assert state_bytes(state) == state_bytes(trial.state)


def test_a_reward_that_comes_with_a_repeated_request_is_not_lost() -> None:
    trial = waiting("wait = { decisions = 3 }")
    first = trial.decide("ada", 2, FULL, previous={"t": 1, "reward": 1.0})
    assert first.repeated
    assert trial.outcome("ada", 1, 1.0).repeated
    head = trial.head
    with pytest.raises(ValueError, match="there is no decision at t 9"):
        trial.decide("ada", 2, FULL, previous={"t": 9, "reward": 1.0})
    assert trial.head == head
    assert trial.update()["credited"] == 1


@pytest.mark.parametrize("method", ["mi-available", "mi-planned"])
def test_whether_it_was_delivered_corrects_no_reward(method: str) -> None:
    trial = begun(trial_file(Settings(method, 4)))
    trial.enrol("ada")
    for t in range(2):
        trial.decide("ada", t, FULL)
    trial.outcome("ada", 0, 1.0)
    trial.update()
    for reward, delivered in ((1.0, True), (None, False)):
        for repeated in (False, True):
            found = trial.outcome("ada", 0, reward, delivered=delivered)
            assert (found.used, found.revision, found.repeated) == (True, 1, repeated)
    assert not trial.state.stale
    row = trial.decisions().row(0, named=True)
    assert (row["reward"], row["reward_revisions"], row["delivered"]) == (1.0, 1, False)


def test_rewards_and_truths_of_numpy_are_taken() -> None:
    trial = waiting("range = [0.0, 1.0]")
    taken: list[Any] = [np.int64(1), np.float32(0.5), np.float64(0.25)]
    refused: list[Any] = [np.float32("nan"), np.int64(2), np.True_, np.longdouble("1e4000")]
    for t, reward in enumerate(taken):
        assert trial.outcome("ada", t, reward, delivered=bool(t)).used
        assert trial.outcome("ada", t, float(reward), delivered=bool(t)).repeated
    for reward in refused:
        with pytest.raises(ValueError, match="the reward is"):
            trial.outcome("ada", 0, reward)
    no: Any = np.False_
    assert not trial.decide("ada", 3, FULL, available=no).randomised
    assert trial.outcome("ada", 3, None, delivered=no).revision == 0


def test_snapshots_that_a_running_trial_makes_meanwhile_are_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "walk.db"
    with Trial.create(trial_file(Settings("mi-available", 4)), store=f"sqlite:{path}", seed=1) as trial:
        trial.enrol("ada")
        trial.decide("ada", 0, FULL)
        trial.snapshot()

        def replay_and_go_on(*arguments: Any) -> Any:
            found = replay(*arguments)
            monkeypatch.undo()
            trial.decide("ada", 1, FULL)
            trial.snapshot()
            return found

        monkeypatch.setattr(replays, "replay", replay_and_go_on)
        assert replays.audit(path, from_snapshots=True).snapshots == 1
        assert replays.audit(path, from_snapshots=True).snapshots == 2


def test_after_a_beginning_that_was_killed_it_says_what_to_do(tmp_path: Path) -> None:
    file, store, path = trial_file(Settings("mi-available", 4)), f"sqlite:{tmp_path}/walk.db", tmp_path / "walk.db"
    SqliteStore.create(path, "walk").close()
    left = secret_path(path)
    Secret.create().write(left)
    with pytest.raises(FileExistsError, match="never overwritten; if it is of a trial that never began, move it away"):
        Trial.create(file, store=store)
    left.unlink()
    Trial.create(file, store=store).close()
    assert replays.audit(path).head.seq == 0


class Interrupted:
    """A connection after whose next commit somebody presses Ctrl-C."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def execute(self, statement: str, *values: Any) -> Any:
        found = self.connection.execute(statement, *values)
        if statement == "COMMIT":
            self.commits += 1
            if self.commits == 1:
                raise KeyboardInterrupt
        return found


def test_an_interrupt_after_a_commit_stops_no_trial(tmp_path: Path) -> None:
    """The commit takes most of the time of a decision, so that is where an interrupt comes."""
    path = tmp_path / "walk.db"
    with Trial.create(trial_file(Settings("mi-available", 4)), store=f"sqlite:{path}", seed=1) as trial:
        trial.enrol("ada")
        store = cast("Any", trial.store)
        store._connection = Interrupted(store._connection)
        with pytest.raises(KeyboardInterrupt):
            trial.decide("ada", 0, FULL)
        assert trial.decide("ada", 0, FULL).repeated
        assert trial.decide("ada", 1, FULL).policy == "learned"
    assert replays.audit(path).head.seq == 4
