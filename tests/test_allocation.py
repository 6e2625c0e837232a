"""How actions get their probabilities: each rule against its naive twin, bounds and sums exact, draws by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from math import ceil, floor, inf, log, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

import naive_allocation as naive
from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS
from lacuna.agent.settings import VOTES, Settings
from lacuna.agent.voting import sample_action
from lacuna.kernels.philox import CHOICE, fill_numbers
from lacuna.kernels.space import Space
from lacuna.trial.engine.allocation import PARAMETERS, Allocation, action_set, allocate, allocation_of
from lacuna.trial.engine.units import UNITS, decision_probabilities, nearest_units
from sentences import one_sentence

FREE = (0, 1)
Table = list[list[float]]


def standing_in(states: list[int], table: Table, **rest: Any) -> Agent:
    """An agent whose pathways are these states of a table."""
    agent = Agent(Space((len(table),)), len(table[0]), Settings("mi-synthetic", len(states), **rest), seed=3)
    agent.begin([0])
    agent.memory.Q[:] = table
    agent.memory.S[:] = states
    return agent


def units_of(allocation: Allocation, agent: Agent, allowed: list[int] | None = None) -> list[int]:
    actions = action_set(range(agent.n_actions) if allowed is None else allowed, allocation)
    units = np.full(agent.n_actions, -1, dtype=np.int64)
    allocate(allocation, agent.rules, agent.memory, agent.plan_table, actions, units)
    return [int(n) for n in units]


def rule_of(rule: str, agent: Agent, bounds: Any = None, **parameters: Any) -> Allocation:
    A = agent.n_actions
    return allocation_of(rule, parameters, [FREE] * A if bounds is None else bounds, agent.rules.K, A)


# --- the rules -------------------------------------------------------------------------------------------------------

few = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 3.0])


@st.composite
def cases(draw: st.DrawFn, A: int = 0) -> tuple[Table, list[int], list[int]]:
    """A table of values, the states of the pathways and the actions allowed, two at least."""
    A = A or draw(st.integers(2, 6))
    table = draw(st.lists(st.lists(few, min_size=A, max_size=A), min_size=1, max_size=4))
    states = draw(st.lists(st.integers(0, len(table) - 1), min_size=1, max_size=9))
    allowed = draw(st.sets(st.integers(0, A - 1), min_size=2))
    return table, states, sorted(allowed)


def rows_of(case: tuple[Table, list[int], list[int]]) -> naive.Rows:
    table, states, allowed = case
    return [[Fraction(table[s][a]) for a in allowed] for s in states]


def assert_units(found: list[int], p: list[Fraction], allowed: list[int], bounds: list[tuple[Any, Any]]) -> None:
    """The units are those of these probabilities, unless one lies half-way between two units."""
    assert sum(found) == UNITS
    assert [n for a, n in enumerate(found) if a not in allowed] == [0] * (len(found) - len(allowed))
    for a in allowed:
        assert Fraction(bounds[a][0]) <= Fraction(found[a], UNITS) <= Fraction(bounds[a][1])
    if all(abs(x * UNITS % 1 - Fraction(1, 2)) > Fraction(1, 10**4) for x in p):
        least = [ceil(Fraction(bounds[a][0]) * UNITS) for a in allowed]
        most = [floor(Fraction(bounds[a][1]) * UNITS) for a in allowed]
        assert [found[a] for a in allowed] == naive.projected([naive.nearest(x) for x in p], least, most)


def bounds_for(allowed: list[int], A: int, tight: bool) -> list[tuple[float, float]]:
    """Bounds that any two or more of the allowed actions can meet, or none."""
    return [(0.1 / (a + 1), 1 - 0.3 / (a + 1)) if tight and a in allowed else FREE for a in range(A)]


@given(cases(), st.sampled_from(VOTES), st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.booleans())
@effort(max_examples=500)
def test_votes_are_the_twins(case: tuple[Table, list[int], list[int]], vote: str, epsilon: float, tight: bool) -> None:
    table, states, allowed = case
    agent, bounds = standing_in(states, table, vote=vote, epsilon=epsilon), bounds_for(allowed, len(table[0]), tight)
    p = naive.votes(rows_of(case), vote, Fraction(epsilon))
    assert_units(units_of(rule_of("votes", agent, bounds), agent, allowed), p, allowed, bounds)


@given(cases(), st.sampled_from([0.01, 0.5, 1.0, 30.0]), st.booleans())
@effort(max_examples=300)
def test_softmax_is_the_twins(case: tuple[Table, list[int], list[int]], temperature: float, tight: bool) -> None:
    table, states, allowed = case
    agent, bounds = standing_in(states, table), bounds_for(allowed, len(table[0]), tight)
    p = naive.softmax(rows_of(case), Fraction(temperature))
    found = units_of(rule_of("softmax", agent, bounds, temperature=temperature), agent, allowed)
    assert_units(found, p, allowed, bounds)


@given(cases(2), st.sampled_from([0.0, 0.7, 2.0, 50.0]), st.sampled_from([0.5, 1.0, 4.0]), st.booleans())
@effort(max_examples=300)
def test_logistic_is_the_twins(case: tuple[Table, list[int], list[int]], b: float, c: float, tight: bool) -> None:
    table, states, allowed = case
    agent, bounds = standing_in(states, table), bounds_for(allowed, 2, tight)
    p = naive.logistic(rows_of(case), Fraction(b), Fraction(log(c)), *map(Fraction, bounds[1]))
    found = units_of(rule_of("logistic", agent, bounds, b=b, log_c=log(c)), agent, allowed)
    assert_units(found, p, allowed, bounds)


@given(cases(), st.data(), st.booleans())
def test_fixed_is_the_twins(case: tuple[Table, list[int], list[int]], data: st.DataObject, tight: bool) -> None:
    table, states, allowed = case
    A = len(table[0])
    weights = data.draw(st.lists(st.integers(0, 5), min_size=A, max_size=A).filter(any))
    p = [w / sum(weights) for w in weights]
    agent, bounds = standing_in(states, table), bounds_for(allowed, A, tight)
    wanted = naive.normalised([Fraction(weights[a]) for a in allowed])
    assert_units(units_of(rule_of("fixed", agent, bounds, p=p), agent, allowed), wanted, allowed, bounds)


def learned(agent: Agent, steps: int) -> Iterator[Agent]:
    """The agent in a stream of observations with gaps, before each action."""
    rng = np.random.default_rng(5)
    agent.begin([0, None])
    for _ in range(steps):
        yield agent
        action = agent.act()
        values, hidden = rng.integers((2, 3)), rng.random(2) < 0.4
        observation = [None if h else int(v) for v, h in zip(values, hidden, strict=True)]
        agent.learn(float(rng.normal() + action * values[0]), observation, terminated=False)


def every_setting() -> Iterator[Settings]:
    for method, vote in product(METHODS.values(), VOTES):
        if vote != "sampled" and not method.votes:
            continue
        yield Settings(method.name, vote=vote, epsilon=0.1, gamma=0.9)
        if method.steps_in_q:
            yield Settings(method.name, vote=vote, gamma=0.9, optimism=0.5)
        if method.looks:
            yield Settings(method.name, gamma=0.9, look=1.0)


def test_votes_are_the_probabilities_of_the_agent_for_every_method_and_vote() -> None:
    n_settings = uniform = 0
    for case in every_setting():
        n_settings += 1
        agent = Agent(Space((2, 3)), 3, case, seed=1)
        allocation = rule_of("votes", agent)
        for now in learned(agent, 120):
            p = now.probabilities()
            wanted = [nearest_units(x) for x in p]
            assert units_of(allocation, now) == naive.projected(wanted, [0] * 3, [UNITS] * 3)
            uniform += bool((p == 1 / 3).all())
    assert n_settings == 2 * (7 + 6 * 4) + 2
    assert uniform > 50


def test_a_planner_that_is_impatient_explores() -> None:
    agent = Agent(Space((2, 3)), 3, Settings("mi-planned"), seed=1)
    levels = set()
    for now in learned(agent, 60):
        assert now.plan_table is not None
        now.plan_table.levels[6] = 0.3
        assert min(units_of(rule_of("votes", now), now)) >= nearest_units(0.1) - 1
        levels.add(min(units_of(rule_of("votes", now), now)))
    assert nearest_units(0.1) in levels


def test_a_vote_is_for_the_best_action_that_is_allowed() -> None:
    agent = standing_in([0, 0, 1], [[9, 1, 2, 0], [9, 5, 4, 0]])
    assert units_of(rule_of("votes", agent), agent) == [UNITS, 0, 0, 0]
    two_thirds = nearest_units(2 / 3)
    assert units_of(rule_of("votes", agent), agent, [1, 2, 3]) == [0, UNITS - two_thirds, two_thirds, 0]
    assert units_of(rule_of("votes", agent), agent, [3]) == [0, 0, 0, UNITS]


def test_a_single_action_gets_everything_whatever_its_bounds() -> None:
    agent = standing_in([0], [[1, 0, 0]])
    for rule, parameters in (("votes", {}), ("softmax", {"temperature": 1}), ("fixed", {"p": [1, 0, 0]})):
        allocation = rule_of(rule, agent, [(0.1, 0.5)] * 3, **parameters)
        assert units_of(allocation, agent, [1]) == [0, UNITS, 0]


def test_without_a_state_every_rule_but_fixed_is_uniform() -> None:
    agent = Agent(Space((2, 2)), 2, Settings("random-action", epsilon=0.1), seed=7)
    agent.memory.Q[:] = [[9, 0]] * 4
    agent.begin([None, 1])
    for rule, parameters in (("votes", {}), ("softmax", {"temperature": 1}), ("logistic", {"b": 1, "log_c": 2})):
        assert units_of(rule_of(rule, agent, **parameters), agent) == [UNITS // 2, UNITS // 2]
    assert units_of(rule_of("fixed", agent, p=[0.25, 0.75]), agent) == [UNITS // 4, 3 * UNITS // 4]


def test_huge_values_and_tiny_temperatures_neither_overflow_nor_warn() -> None:
    agent = standing_in([0, 1], [[-1e200, 1e200], [0.0, 5e-324]])
    assert units_of(rule_of("softmax", agent, temperature=5e-324), agent)[1] > nearest_units(0.86)
    assert units_of(rule_of("softmax", agent, temperature=1e300), agent) == [UNITS // 2, UNITS // 2]
    assert units_of(rule_of("logistic", agent, b=1e300, log_c=0.0), agent) == [UNITS // 4, 3 * UNITS // 4]
    assert units_of(rule_of("logistic", agent, b=-1e300, log_c=0.0), agent) == [3 * UNITS // 4, UNITS // 4]


# --- what is drawn ---------------------------------------------------------------------------------------------------


@given(cases(), st.sampled_from([0.2, 1.0]))
@effort(max_examples=100)
def test_probabilities_add_up_to_one_in_every_order(case: tuple[Table, list[int], list[int]], heat: float) -> None:
    table, states, allowed = case
    agent = standing_in(states, table)
    units = np.array(units_of(rule_of("softmax", agent, temperature=heat), agent, allowed))
    p = decision_probabilities(units).tolist()
    assert all(Fraction(x) == Fraction(int(n), UNITS) for x, n in zip(p, units, strict=True))
    assert all(Fraction(1 - x) == 1 - Fraction(x) for x in p)
    for order in permutations(p[:6]):
        total = 0.0
        for x in order:
            total += x
        assert total == 1.0


def test_every_threshold_of_a_draw_is_exact() -> None:
    agent = standing_in([0, 1, 2], [[0.1, 0.2, 0.7], [0.3, 0.3, 0.1], [0.9, 0.5, 0.2]])
    p = decision_probabilities(np.array(units_of(rule_of("softmax", agent, temperature=0.3), agent)))
    assert len(set(p)) == 3
    total = 0.0
    for a in range(3):
        assert sample_action(p, total) == a
        total += p[a]
        assert sample_action(p, np.nextafter(total, 0)) == a


def test_a_million_draws_follow_the_probabilities() -> None:
    agent = standing_in([0, 1, 2], [[0.1, 0.2, 0.7, 0.0], [0.3, 0.3, 0.1, 0.2], [0.9, 0.5, 0.2, -9.0]])
    allocation = rule_of("softmax", agent, [(0.1, 0.6)] * 4, temperature=0.3)
    p = decision_probabilities(np.array(units_of(allocation, agent)))
    assert p.min() >= 0.1
    u = np.empty(10**6)
    fill_numbers(np.array([1, 2], dtype=np.uint64), np.array([3, 4], dtype=np.uint64), 7, CHOICE, u)
    counts = np.bincount([sample_action(p, x) for x in u], minlength=4)
    statistic = ((counts - u.size * p) ** 2 / (u.size * p)).sum()
    assert chi2.sf(statistic, 3) > 1e-6


# --- from outside ----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=5))
def test_bounds_are_exact_or_refused(edges: list[tuple[float, float]]) -> None:
    bounds = [tuple(sorted(pair)) for pair in edges]
    least = [ceil(Fraction(lo) * UNITS) for lo, _ in bounds]
    most = [floor(Fraction(hi) * UNITS) for _, hi in bounds]
    if sum(least) > UNITS or sum(most) < UNITS or any(a > b for a, b in zip(least, most, strict=True)):
        with pytest.raises(ValueError, match="bounds") as caught:
            allocation_of("votes", {}, bounds, 3, len(bounds))
        one_sentence(caught.value)
    else:
        allocation = allocation_of("votes", {}, bounds, 3, len(bounds))
        assert (allocation.least.tolist(), allocation.most.tolist()) == (least, most)


def test_decimals_and_fractions_are_bounds_as_well() -> None:
    bounds = [(Decimal("0.5"), Fraction(1, 2)), (np.float32(0.25), np.int64(1)), (0, 1)]
    allocation = allocation_of("votes", {}, bounds, 3, 3)
    assert allocation.least.tolist() == [UNITS // 2, UNITS // 4, 0]
    assert allocation.most.tolist() == [UNITS // 2, UNITS, UNITS]
    # The float 0.1 is more than a tenth, the decimal is not; both are rounded inwards.
    assert allocation_of("votes", {}, [(0.1, 0.9), (0.1, 0.9)], 3, 2).least[0] == UNITS // 10 + 1


TWO = [(0.1, 0.9), (0.1, 0.9)]
WRONG: list[tuple[str, dict[str, Any], list[Any], int, str]] = [
    ("vote", {}, TWO, 2, "rule is 'vote' .did you mean 'votes'"),
    ("votes", {}, [(0.6, 1), (0.6, 1)], 2, "lower bounds of actions 0 and 1, .* add up to 1.2"),
    ("votes", {}, [(0, 0.3), (0, 0.3)], 2, "upper bounds of actions 0 and 1, .* add up to 0.5999"),
    ("votes", {}, [(0.1, 1)] * 10, 10, "lower bounds of actions 0, 1, .* and 9, .* add up to 1.00000000093"),
    ("votes", {}, [(0.6, 0.4), (0, 1)], 2, "bounds of action 0 are 0.6 and 0.4"),
    ("votes", {}, [(0.3, 0.3), (0.7, 0.7)], 2, "a multiple of 2..-32 must lie between them"),
    ("votes", {}, [(0, 1), (0, 1.5)], 2, "the upper bound of action 1 is 1.5; it must be a number between 0 and 1"),
    ("votes", {}, [(nan, 1), (0, 1)], 2, "the lower bound of action 0 is nan"),
    ("votes", {}, [(Decimal("NaN"), 1), (0, 1)], 2, "the lower bound of action 0 is Decimal"),
    ("votes", {}, [(True, 1), (0, 1)], 2, "the lower bound of action 0 is True"),
    ("votes", {}, [("0", 1), (0, 1)], 2, "the lower bound of action 0 is '0'"),
    ("votes", {}, [(0, 10**400), (0, 1)], 2, "the upper bound of action 0 is 1000"),
    ("votes", {}, TWO, 3, "there are bounds for 2 actions; it must be a pair for each of 3"),
    ("votes", {}, [(0, 1, 1), (0, 1)], 2, "must be a pair"),
    ("votes", {"temperature": 1}, TWO, 2, "'temperature' is no parameter of the rule votes; it has none"),
    ("softmax", {"temprature": 1}, TWO, 2, "did you mean 'temperature'"),
    ("softmax", {}, TWO, 2, "the rule softmax lacks its parameter temperature"),
    ("softmax", {"temperature": 0}, TWO, 2, "temperature is 0; it must be above 0"),
    ("softmax", {"temperature": -1.0}, TWO, 2, "temperature is -1; it must be above 0"),
    ("softmax", {"temperature": inf}, TWO, 2, "temperature is inf; it must be a finite number"),
    ("logistic", {"b": 1, "log_c": 10**400}, TWO, 2, "log_c is .*; it must be a finite number"),
    ("logistic", {"b": None, "log_c": 0}, TWO, 2, "b is None; it must be a finite number"),
    ("logistic", {"b": 1, "log_c": 0}, [FREE] * 3, 3, "n_actions is 3; the rule logistic is for 2 actions"),
    ("fixed", {"p": [0.5, 0.4]}, TWO, 2, "p is .0.5, 0.4. and adds up to 0.9; it must add up to 1"),
    ("fixed", {"p": [0.5, 0.5 + 2.0**-30]}, TWO, 2, "it must add up to 1"),
    ("fixed", {"p": [1.0]}, TWO, 2, "p has 1 entries; it must have one for each of 2 actions"),
    ("fixed", {"p": [1.5, -0.5]}, TWO, 2, "p of action 0 is 1.5; it must be a number between 0 and 1"),
    ("votes", {}, [], 0, "n_actions is 0"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "parameters", "bounds", "n_actions", "message"), WRONG)
def test_what_cannot_be_is_refused_in_one_sentence(
    rule: str, parameters: dict[str, Any], bounds: list[Any], n_actions: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        allocation_of(rule, parameters, bounds, 4, n_actions)
    assert len(one_sentence(caught.value)) < 400


def test_thirds_add_up_to_one() -> None:
    assert allocation_of("fixed", {"p": [1 / 3] * 3}, [FREE] * 3, 1, 3).fixed.tolist() == [1 / 3] * 3
    assert allocation_of("fixed", {"p": [0.1] * 10}, [FREE] * 10, 1, 10).fixed.tolist() == [0.1] * 10


def test_action_sets_that_cannot_be_are_refused() -> None:
    allocation = allocation_of("votes", {}, [(0.1, 0.4)] * 3, 1, 3)
    for allowed, message in (
        ([0, 1], "upper bounds of actions 0 and 1"), ([], "one or more"), ([1, 0, 2], "in order"),
        ([0, 0, 1], "each once"), ([3], "an allowed action is 3"), ([-1], "an allowed action is -1"),
        ([0.0], "an allowed action is 0.0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message) as caught:
            action_set(allowed, allocation)  # type: ignore[arg-type]
        one_sentence(caught.value)
    assert action_set([0, 1, 2], allocation).tolist() == [0, 1, 2]


# --- without the compiler --------------------------------------------------------------------------------------------

RULES: dict[str, dict[str, Any]] = {
    "votes": {}, "softmax": {"temperature": 0.01}, "logistic": {"b": 1e3, "log_c": log(2)}, "fixed": {"p": [0.3, 0.7]},
}  # fmt: skip


def some_units() -> list[list[int]]:
    """Units of every rule, for every method and vote, along a stream."""
    found = []
    for case in every_setting():
        for rule, parameters in RULES.items():
            agent = Agent(Space((2, 3)), 2, case, seed=2)
            free, bound = (rule_of(rule, agent, bounds, **parameters) for bounds in (None, [(0.2, 0.75)] * 2))
            for now in learned(agent, 15):
                found += [units_of(free, now), units_of(bound, now), units_of(bound, now, [1])]
    return found


def test_equal_without_the_compiler_and_without_a_warning() -> None:
    assert list(RULES) == list(PARAMETERS)
    program = "import json; from test_allocation import some_units; print(json.dumps(some_units()))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=Path(__file__).parent,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    units: NDArray[np.int64] = np.array(some_units())
    assert json.loads(done.stdout) == units.tolist()
    assert len(np.unique(units)) > 100
