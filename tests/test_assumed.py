"""The rules that trials use today: the whole context at its first values, assumed values, and both with carrying on."""

from __future__ import annotations

import numpy as np
import pytest

from lacuna.agent.agent import Agent
from lacuna.agent.settings import Settings
from lacuna.kernels.space import Space
from lacuna.missingness import mcar
from lacuna.run.run import Run
from problems import READINGS, digest, lake, mechanisms

SIZES = (4, 3, 2)
Seen = tuple[int | None, ...]


def states(case: Settings, *seen: Seen) -> list[Seen]:
    """The state after each observation of one episode."""
    agent = Agent(Space(SIZES), 2, case)
    agent.begin(seen[0])
    found = [agent.pathways[0]]
    for observation in seen[1:]:
        agent.act()
        agent.learn(1.0, observation, terminated=False)
        found += agent.pathways
    assert agent.imputation.position == 0
    return found


def test_anything_missing_makes_the_whole_context_zero() -> None:
    seen: tuple[Seen, ...] = ((3, 2, None), (3, 2, 1), (None, 2, 1), (1, 1, 0))
    assert states(Settings("zero-context"), *seen) == [(0, 0, 0), (3, 2, 1), (0, 0, 0), (1, 1, 0)]


def test_a_hidden_value_is_the_one_that_is_assumed() -> None:
    seen: tuple[Seen, ...] = ((3, 2, None), (3, 2, 1), (None, 2, None), (None, None, None))
    assert states(Settings("assumed-value", assumed=0), *seen) == [(3, 2, 0), (3, 2, 1), (0, 2, 0), (0, 0, 0)]
    assert states(Settings("assumed-value"), *seen) == [(3, 2, 1), (3, 2, 1), (2, 2, 1), (2, 1, 1)]
    assert states(Settings("assumed-value", assumed=1), *seen) == [(3, 2, 1), (3, 2, 1), (3, 2, 1), (3, 2, 1)]


@pytest.mark.parametrize(
    ("assumed", "values"),
    [(0, (0, 0, 0)), (0.16, (0, 0, 0)), (0.2, (1, 0, 0)), (0.25, (1, 1, 0)), (0.5, (2, 1, 1)), (1, (3, 2, 1))],
)
def test_the_assumed_value_is_a_share_of_the_range_with_halves_rounded_up(assumed: float, values: Seen) -> None:
    assert states(Settings("assumed-value", assumed=assumed), (None, None, None)) == [values]


def test_what_was_seen_is_carried_on_and_the_rest_is_assumed() -> None:
    seen: tuple[Seen, ...] = ((3, None, None), (None, 0, None), (1, None, None), (None, None, 0), (None, None, None))
    found = [(3, 1, 1), (3, 0, 1), (1, 0, 1), (1, 0, 0), (1, 0, 0)]
    assert states(Settings("carry-default"), *seen) == found


def test_nothing_is_carried_on_into_the_next_episode() -> None:
    agent = Agent(Space(SIZES), 2, Settings("carry-default", assumed=1))
    agent.begin([0, 0, 0])
    agent.act()
    agent.learn(1.0, [1, 1, None], terminated=True)
    assert agent.pathways == ((1, 1, 0),)
    agent.begin([None, 0, None])
    assert agent.pathways == ((3, 0, 1),)


@pytest.mark.parametrize("reading", READINGS)
def test_where_the_first_state_is_seen_carrying_on_is_last_observed_to_the_bit(reading: str) -> None:
    mdp = lake(reading)
    for mechanism in mechanisms(mdp).values():
        runs = [
            Run(mdp, mechanism, Settings(method, alpha=0.3, gamma=0.9, epsilon=0.1, optimism=0.2), seed=4)
            for method in ("carry-default", "last-observed")
        ]
        assert len({digest(run, run.record(400)) for run in runs}) == 1


def test_the_middle_of_one_value_is_that_value_and_the_first_of_all_is_zero_context() -> None:
    mdp = lake("episodic")
    whole, each = (
        Run(mdp, mcar(mdp.space, (0, 0, 0.4)), Settings(method, gamma=0.9, assumed=0 if each else None), seed=4)
        for method, each in (("zero-context", False), ("assumed-value", True))
    )
    left, right = whole.record(500), each.record(500)
    hidden = right.seen[:, 2] < 0
    assert (left.pathways[left.seen[:, 2] < 0] == 0).all()
    assert (right.pathways[hidden, 0] % 3 == 0).all()
    assert np.array_equal(right.pathways[~hidden, 0], mdp.shows[right.arrival[~hidden]])
