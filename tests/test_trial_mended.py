"""What once went wrong in a trial, each as small as it can be."""

from __future__ import annotations

import pytest

from lacuna.live import snapshot
from lacuna.live.ledger import BY_DEFAULT, OUTSIDE
from lacuna.live.replay import begin_state
from lacuna.live.trial import Trial
from lacuna.methods.settings import Settings
from lacuna.methods.table import METHODS
from lacuna.record.log import check
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
