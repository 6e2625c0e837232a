"""`probabilities()` is exactly the law of `act()`: frequencies, sums, possible and impossible actions, rare events."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from lacuna.agent.agent import Agent
from lacuna.agent.learner import act
from lacuna.agent.methods import METHODS
from lacuna.agent.settings import VOTES, Settings
from lacuna.kernels.space import Space

FALSE_ALARM = 1e-9
N = 20_000
Floats = NDArray[np.float64]

TABLES: dict[str, list[list[float]]] = {
    "all tied": [[0, 0, 0, 0]] * 4,
    "different winners": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]],
    "ties inside and between": [[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 2, 2], [-1, -1, -1, -1]],
    "average differs from votes": [[3, 2, 0, 0], [0, 2, 3, 0], [3, 2, 0, 0], [0, 2, 3, -9]],
    "one sure": [[5, 1, 2, 3], [9, 8, 7, 6], [1, 0, 0, 0], [4, 3, 2, 1]],
}


def standing_in(states: list[int], table: list[list[float]], **rest: Any) -> Agent:
    """An agent whose pathways are these states of a table."""
    agent = Agent(Space((len(table),)), len(table[0]), Settings("mi-synthetic", len(states), **rest), seed=3)
    agent.begin([0])
    agent.memory.Q[:] = table
    agent.memory.S[:] = states
    return agent


def frequencies(agent: Agent, n: int) -> NDArray[np.int64]:
    """How often each action is taken from where the agent stands: `act` changes nothing but its stream."""
    numbers = agent.exploration.need(2 * n)
    taken = [act(agent.rules, agent.memory, agent.plan_table, numbers) for _ in range(n)]
    return np.bincount(taken, minlength=agent.n_actions)


def assert_drawn_from(counts: NDArray[np.int64], p: Floats) -> None:
    """Exact binomial tails, corrected for looking at all actions; what has probability 0 never happens."""
    total = int(counts.sum())
    assert (counts[p == 0] == 0).all()
    tails = np.minimum(binom.cdf(counts, total, p), binom.sf(counts - 1, total, p))
    assert tails.min() > FALSE_ALARM / (2 * p.size), f"{counts} of {total} for {p}"


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("vote", VOTES)
@pytest.mark.parametrize("name", TABLES)
def test_actions_are_drawn_from_the_probabilities(name: str, vote: str, epsilon: float) -> None:
    for states in ([0, 1, 2, 3], [2, 2, 1], [3]):
        agent = standing_in(states, TABLES[name], vote=vote, epsilon=epsilon)
        p = agent.probabilities()
        assert p.sum() == pytest.approx(1.0, abs=1e-14)
        counts = frequencies(agent, N)
        assert_drawn_from(counts, p)
        # N draws miss an action of probability 1 % with probability 1e-87.
        assert (counts[p > 0.01] > 0).all()


def test_the_probabilities_of_each_vote_are_those_worked_out_by_hand() -> None:
    table = TABLES["ties inside and between"]
    votes = np.array([1 / 2 + 1 / 3, 1 / 2 + 1 / 3, 1 / 3 + 1 / 2, 1 / 2])
    by_hand = {
        "sampled": votes / 3,
        "majority": np.array([1, 1, 1, 0]) / 3,
        "softmax": np.exp(votes) / np.exp(votes).sum(),
        "average": np.array([0, 0, 1, 0]),
    }
    for vote, p in by_hand.items():
        agent = standing_in([0, 1, 2], table, vote=vote)
        assert agent.probabilities() == pytest.approx(p, abs=1e-15)
        explores = standing_in([0, 1, 2], table, vote=vote, epsilon=0.2)
        assert explores.probabilities() == pytest.approx(0.8 * p + 0.05, abs=1e-15)
    # Softmax is over the actions that got a vote only.
    one_sided = standing_in([0, 0], TABLES["different winners"], vote="softmax")
    assert one_sided.probabilities().tolist() == [1, 0, 0, 0]
    lopsided = standing_in([0, 0, 1], TABLES["different winners"], vote="softmax")
    assert lopsided.probabilities() == pytest.approx([1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 0, 0], abs=1e-15)


@given(
    table=st.integers(1, 5).flatmap(
        lambda A: st.lists(
            st.lists(st.sampled_from([-1.0, 0.0, 0.1, 0.3, 1e-9, 7.0]), min_size=A, max_size=A), min_size=3, max_size=3
        )
    ),
    states=st.lists(st.integers(0, 2), min_size=1, max_size=6),
    vote=st.sampled_from(VOTES),
    epsilon=st.sampled_from([0.0, 0.3]),
)
@effort(max_examples=200)
def test_what_is_possible_is_what_has_positive_probability(
    table: list[list[float]], states: list[int], vote: str, epsilon: float
) -> None:
    agent = standing_in(states, table, vote=vote, epsilon=epsilon)
    p = agent.probabilities()
    assert p.sum() == pytest.approx(1.0, abs=1e-14)
    # A fine grid over the numbers that a decision takes (a coin only if it may explore) reaches every action that can
    # be taken, and measures it.
    first, second = np.array([0.0, 0.999]), (np.arange(600) + 0.5) / 600
    share = np.zeros(agent.n_actions)
    if not epsilon:
        first = first[1:]
    weights = [epsilon, 1 - epsilon] if epsilon else [1.0]
    for (u, v), weight in zip(product(first, second), np.repeat(weights, second.size), strict=True):
        block = np.array([u, v] if epsilon else [v])
        numbers = agent.exploration.need(1)._replace(block=block, cursor=np.zeros(1, dtype=np.int64))
        action = act(agent.rules, agent.memory, agent.plan_table, numbers)
        share[action] += weight / second.size
        assert p[action] > 0
    # An interval of the second number is off by at most one grid point at each end, and there are K of them.
    np.testing.assert_allclose(share, p, rtol=0, atol=2 * max(len(states), agent.n_actions) / 600)
    assert (share[p > 0.05] > 0).all()


@pytest.mark.parametrize("epsilon", [1e-300, 1e-15, 1e-6])
@pytest.mark.parametrize("vote", VOTES)
def test_rare_events_are_included_exactly(vote: str, epsilon: float) -> None:
    agent = standing_in([0, 1, 2, 3], TABLES["one sure"], vote=vote, epsilon=epsilon)
    p = agent.probabilities()
    assert p[1:].tolist() == [epsilon / 4] * 3
    assert p[0] == pytest.approx(1 - 0.75 * epsilon, abs=1e-16)
    # The first number decides: just below epsilon it explores, at epsilon it does not.
    for u, explores in ((0.0, True), (np.nextafter(epsilon, 0), True), (epsilon, False)):
        numbers = agent.exploration.need(2)._replace(block=np.array([u, 0.99]), cursor=np.zeros(1, dtype=np.int64))
        action = act(agent.rules, agent.memory, agent.plan_table, numbers)
        assert action == (3 if explores else 0)


def test_the_largest_and_smallest_numbers_stay_inside() -> None:
    below_one = np.nextafter(1.0, 0.0)
    for vote, name, states in product(VOTES, TABLES, ([0], [1, 1, 1], [0, 1, 2, 3, 0, 1, 2])):
        agent = standing_in(list(states), TABLES[name], vote=vote, epsilon=0.5)
        p = agent.probabilities()
        for u, v in product((0.0, below_one), repeat=2):
            numbers = agent.exploration.need(2)._replace(block=np.array([u, v]), cursor=np.zeros(1, dtype=np.int64))
            action = act(agent.rules, agent.memory, agent.plan_table, numbers)
            assert 0 <= action < 4
            assert p[action] > 0


@pytest.mark.parametrize("method", METHODS)
def test_what_was_said_beforehand_is_what_happens_along_a_stream(method: str) -> None:
    """Over a run, the actions taken are as surprising as the probabilities logged before them say."""
    rest: dict[str, Any] = {"alpha": 0.5} if METHODS[method].steps_in_q else {}
    case = Settings(method, epsilon=0.1, gamma=0.9, **rest)
    agent = Agent(Space((2, 3)), 3, case, seed=1)
    rng = np.random.default_rng(1)
    agent.begin([0, 0])
    surplus, variance = np.zeros(3), np.zeros(3)
    for _ in range(4000):
        p = agent.probabilities()
        assert p.sum() == pytest.approx(1.0, abs=1e-14)
        action = agent.act()
        assert np.array_equal(agent.probabilities(), p)
        surplus += (np.arange(3) == action) - p
        variance += p * (1 - p)
        values, hidden = rng.integers((2, 3)), rng.random(2) < 0.4
        observation = [None if h else int(v) for v, h in zip(values, hidden, strict=True)]
        agent.learn(float(rng.normal() + action * values[0]), observation, terminated=False)
    # A sum of bounded martingale differences: six standard errors.
    assert (np.abs(surplus) < 6 * np.sqrt(variance)).all()


def test_random_action_is_uniform_where_the_state_is_incomplete() -> None:
    agent = Agent(Space((2, 2)), 4, Settings("random-action", epsilon=0.1), seed=7)
    agent.memory.Q[:] = [[9, 0, 0, 0]] * 4
    agent.begin([1, 1])
    assert agent.probabilities() == pytest.approx([0.925, 0.025, 0.025, 0.025], abs=1e-15)
    for observation in ([None, 1], [0, None], [None, None]):
        agent.begin(observation)
        assert agent.probabilities().tolist() == [0.25] * 4
        assert_drawn_from(frequencies(agent, N), agent.probabilities())


# --- rounding --------------------------------------------------------------------------------------------------------

ULP = 2.0**-52


def exact_shares(table: list[list[int]], states: list[int], vote: str) -> list[Fraction]:
    """Probability of each action when pathways in these states choose, from the documentation, in exact arithmetic.

    For softmax to 60 digits, which is as good as exact here.
    """
    rows = [table[s] for s in states]
    best = [[a for a, value in enumerate(row) if value == max(row)] for row in rows]
    actions = range(len(table[0]))
    votes = [sum((Fraction(1, len(winners)) for winners in best if a in winners), Fraction(0)) for a in actions]
    weights = votes
    if vote == "majority":
        weights = [Fraction(votes[a] == max(votes)) for a in actions]
    elif vote == "average":
        sums = [sum(row[a] for row in rows) for a in actions]
        weights = [Fraction(sums[a] == max(sums)) for a in actions]
    elif vote == "softmax":
        with localcontext(prec=60):
            ratios = [Decimal(v.numerator) / Decimal(v.denominator) for v in votes]
            weights = [Fraction(x.exp()) if x else Fraction(0) for x in ratios]
    return [w / sum(weights) for w in weights]


epsilons = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 5e-324, 1e-17, 1 - 2.0**-53]))


@given(
    table=st.integers(1, 12).flatmap(
        lambda A: st.lists(st.lists(st.integers(-1, 1), min_size=A, max_size=A), min_size=1, max_size=4)
    ),
    data=st.data(),
    K=st.integers(1, 30),
    vote=st.sampled_from(VOTES),
    epsilon=epsilons,
)
@effort(max_examples=1500)
def test_every_probability_is_its_exact_value_rounded_once(
    table: list[list[int]], data: st.DataObject, K: int, vote: str, epsilon: float
) -> None:
    states = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=K, max_size=K))
    p = standing_in(states, table, vote=vote, epsilon=epsilon).probabilities().tolist()  # type: ignore[arg-type]
    e, A = Fraction(epsilon), len(table[0])
    for got, share in zip(p, exact_shares(table, states, vote), strict=True):
        wanted = (1 - e) * share + e / A
        # The float nearest to it; but softmax takes sums of votes, of size K, and their exponentials as rounded.
        nearest = Fraction(math.ulp(got)) / 2 * (1 + Fraction(1, 10**9))
        softer = (K + 4) * Fraction(ULP) * wanted if vote == "softmax" else Fraction(0)
        assert abs(Fraction(got) - wanted) <= max(nearest, softer)
        assert float(e / A) <= got <= float(1 - e + e / A) <= 1.0
    assert abs(math.fsum(p) - 1.0) <= ULP / 2
    if A <= 4:
        assert abs(sum(p) - 1.0) <= ULP


def test_two_actions_and_a_tenth_of_exploration_are_95_and_5_hundredths() -> None:
    p = standing_in([0], [[1, 0]], epsilon=0.1).probabilities()
    assert p.tolist() == [0.95, 0.05]


def test_equal_averages_are_ties_whatever_the_order_of_the_pathways() -> None:
    # 0.25 + 0.5 + 1 in any order: exact in binary, so the two actions tie.
    agent = standing_in([0, 1, 2], [[0.25, 1.0], [0.5, 0.25], [1.0, 0.5]], vote="average")
    assert agent.probabilities().tolist() == [0.5, 0.5]


def test_a_thousand_votes_do_not_overflow() -> None:
    agent = standing_in([0] * 1000 + [1] * 998, TABLES["different winners"], vote="softmax")
    assert agent.probabilities() == pytest.approx([1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2)), 0, 0], abs=1e-15)


def test_asking_changes_nothing() -> None:
    for method, vote in product(METHODS, VOTES):
        if vote != "sampled" and not METHODS[method].votes:
            continue
        agent = Agent(Space((2, 3)), 3, Settings(method, vote=vote, epsilon=0.2), seed=4)
        agent.begin([1, None])
        header, arrays = agent.to_parts()
        for _ in range(3):
            agent.probabilities()
        again, same = agent.to_parts()
        assert header == again
        assert all(np.array_equal(arrays[name], same[name]) for name in arrays)
