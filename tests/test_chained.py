"""mi-chained: its draws against their exact distribution, and what it shares with mi-synthetic."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from lacuna.agent.agent import Agent
from lacuna.agent.learner import draws_per_step
from lacuna.agent.settings import VOTES, Settings
from lacuna.kernels.space import Space
from lacuna.missingness import mcar
from lacuna.run.run import Run
from problems import READINGS, digest, lake

State = tuple[int, ...]
Counted = dict[State, int]

K = 10_000
FULL: Counted = {s: 1 + 3 * i for i, s in enumerate(product(range(3), range(2), range(2)))}
# Some pairs of values were never counted: from there a component is drawn from all of its values.
SPARSE: Counted = {(0, 0, 0): 6, (1, 1, 0): 3, (2, 1, 1): 4}
DEPENDENT: Counted = {(0, 0, 0): 40, (0, 0, 1): 1, (0, 1, 1): 1, (1, 1, 1): 40}


def taught(counted: Counted, case: Settings, sizes: State = (3, 2, 2)) -> Agent:
    """An agent that stands in the first state, from which these transitions were counted."""
    agent = Agent(Space(sizes), 1, case, seed=3)
    first = [0] * len(sizes)
    for state, times in counted.items():
        for _ in range(times):
            agent.begin(first)
            agent.act()
            agent.learn(0.0, list(state), terminated=True)
    agent.begin(first)
    agent.act()
    return agent


def exact(counted: Counted, seen: tuple[int | None, ...], cycles: int, sizes: State = (3, 2, 2)) -> dict[State, float]:
    """Distribution of a chained draw: the product of the starts, moved on by the conditional of each component."""
    hidden = [j for j, value in enumerate(seen) if value is None]
    total = sum(counted.values())
    p: dict[State, float] = {}
    for values in product(*(range(sizes[j]) for j in hidden)):
        state = list(seen)
        chance = 1.0
        for j, v in zip(hidden, values, strict=True):
            state[j] = v
            marginal = sum(n for s, n in counted.items() if s[j] == v)
            chance *= marginal / total if total else 1 / sizes[j]
        p[tuple(int(v or 0) for v in state)] = chance
    for j in hidden * cycles:
        moved = dict.fromkeys(p, 0.0)
        for now, chance in p.items():
            others = [(*now[:j], v, *now[j + 1 :]) for v in range(sizes[j])]
            mass = sum(counted.get(s, 0) for s in others)
            for s in others:
                moved[s] += chance * (counted.get(s, 0) / mass if mass else 1 / sizes[j])
        p = moved
    return p


def frequencies(agent: Agent, states: list[State]) -> NDArray[np.int64]:
    found = [agent.pathways.count(state) for state in states]
    assert sum(found) == agent.settings.pathways
    return np.array(found)


def is_drawn_from(p: dict[State, float], agent: Agent) -> bool:
    states = [state for state, chance in p.items() if chance > 0]
    if len(states) == 1:
        return bool(frequencies(agent, states).all())
    return bool(chisquare(frequencies(agent, states), [p[s] * agent.settings.pathways for s in states]).pvalue > 1e-3)


@pytest.mark.parametrize("cycles", [1, 2, 5])
@pytest.mark.parametrize("seen", [(None, None, 1), (None, 0, None), (None, None, None)], ids=str)
@pytest.mark.parametrize("counted", [FULL, SPARSE, {}], ids=["full", "sparse", "nothing"])
def test_a_draw_has_the_distribution_of_its_chain(counted: Counted, seen: tuple[int | None, ...], cycles: int) -> None:
    agent = taught(counted, Settings("mi-chained", K, cycles=cycles))
    agent.learn(0.0, list(seen), terminated=False)
    assert is_drawn_from(exact(counted, seen, cycles), agent)


def test_cycles_matter_where_components_depend_on_each_other() -> None:
    agent = taught(DEPENDENT, Settings("mi-chained", K, cycles=1))
    agent.learn(0.0, [None, None, None], terminated=False)
    assert is_drawn_from(exact(DEPENDENT, (None, None, None), 1), agent)
    assert not is_drawn_from(exact(DEPENDENT, (None, None, None), 5), agent)


def test_many_cycles_lead_to_the_joint_counts() -> None:
    agent = taught(FULL, Settings("mi-chained", K, cycles=60))
    agent.learn(0.0, [None, None, 1], terminated=False)
    agreeing = {s: n for s, n in FULL.items() if s[2] == 1}
    assert is_drawn_from({s: n / sum(agreeing.values()) for s, n in agreeing.items()}, agent)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("vote", VOTES)
def test_with_one_component_that_can_be_hidden_it_is_mi_synthetic_to_the_bit(vote: str, reading: str) -> None:
    mdp = lake(reading)
    ours = Settings("mi-chained", 4, 0.3, 0.9, 0.1, vote, p_shuffle=0.2)  # type: ignore[arg-type]
    theirs = replace(ours, method="mi-synthetic", cycles=None)
    for theta in ((0.6, 0, 0), (0, 0, 0.9), (0, 0.3, 0)):
        runs = [Run(mdp, mcar(mdp.space, theta), case, seed=2) for case in (ours, theirs)]
        assert len({digest(run, run.record(1500)) for run in runs}) == 1
    runs = [Run(mdp, mcar(mdp.space, (0.6, 0.3, 0)), case, seed=2) for case in (ours, theirs)]
    assert len({digest(run, run.record(1500)) for run in runs}) == 2


@pytest.mark.parametrize("counted", [FULL, SPARSE, {}], ids=["full", "sparse", "nothing"])
def test_with_one_hidden_component_every_cycle_draws_from_the_same_distribution(counted: Counted) -> None:
    agent = taught(counted, Settings("mi-chained", K, cycles=4))
    agent.learn(0.0, [None, 1, 0], terminated=False)
    p = exact(counted, (None, 1, 0), 4)
    assert p == pytest.approx(exact(counted, (None, 1, 0), 1))
    assert is_drawn_from(p, agent)


def test_a_space_too_large_for_a_table_of_codes_draws_the_same() -> None:
    mdp = lake("episodic")
    small, large = (Run(mdp, mcar(mdp.space, 0.6), Settings("mi-chained", 4, gamma=0.9), seed=1) for _ in range(2))
    assert small.agent.memory.of_code.size > 0
    large.agent.tables.memory = large.agent.memory._replace(of_code=np.zeros(0, dtype=np.int64))
    left, right = small.record(2000), large.record(2000)
    assert all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))
    assert small.agent.Q.tobytes() == large.agent.Q.tobytes()
    assert not small.agent.memory.of_code.any()


def test_a_step_never_takes_more_numbers_than_were_asked_for() -> None:
    for d, cycles in product((1, 2, 3), (1, 5)):
        agent = Agent(Space((2, 3, 2)[:d]), 2, Settings("mi-chained", 3, cycles=cycles, p_shuffle=1.0), seed=1)
        agent.begin([0] * d)
        most = 0
        for _ in range(50):
            before = agent.imputation.position
            agent.act()
            agent.learn(1.0, [None] * d, terminated=False)
            most = max(most, agent.imputation.position - before)
        # All are hidden, so all are taken but one, which a shuffle of three does not need.
        assert most == draws_per_step(agent.rules, d) - 1
