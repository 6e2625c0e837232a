import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lacuna.kernels.space import Space
from lacuna.worlds.lake import Lake
from lacuna.worlds.mdp.solve import Solution, evaluate, expected_steps, solve
from lacuna.worlds.mdp.tabular import Outcome, TabularMDP
from lacuna.worlds.toy_text import cliff_walking_mdp, from_toy_text, taxi_mdp
from lacuna.worlds.toys import bandit, corridor, field, loop

GAMMAS = st.one_of(st.just(1.0), st.floats(0.0, 0.99))


def world_of(table: dict[int, dict[int, list[Outcome]]], start: int = 0, **rest: Any) -> TabularMDP:
    n = len(table)
    return TabularMDP.build(
        table, space=Space((n,)), shows=range(n), n_actions=len(table[0]), starts=[{start: 1.0}], **rest
    )


def naive_values(P: Any, gamma: float, sweeps: int) -> NDArray[np.float64]:
    """Plain value iteration over a table like Gymnasium's, ending at `done`."""
    values = np.zeros(len(P))
    for _ in range(sweeps):
        values = np.array(
            [max(sum(p * (r + gamma * values[t] * (not end)) for p, t, r, end in P[s][a]) for a in P[s]) for s in P]
        )
    return values


def is_a_fixed_point(mdp: TabularMDP, solution: Solution, gamma: float) -> bool:
    """Bellman's equation, outcome by outcome, wherever a value is given."""
    for s in np.flatnonzero(~np.isnan(solution.values)):
        q = [
            sum(
                p * (r + (0.0 if end and mdp.terminates else gamma * solution.values[t]))
                for p, t, r, end in mdp.outcomes(int(s), a)
            )
            for a in range(mdp.n_actions)
        ]
        if not (np.allclose(q, solution.q[s], atol=1e-9) and np.isclose(max(q), solution.values[s], atol=1e-9)):
            return False
        if q[int(solution.policy[s])] < max(q) - 1e-9:
            return False
    return True


def cost_of(distance: NDArray[np.int64], slip: float, gamma: float) -> NDArray[np.float64]:
    """What it costs to go so far, if each cell takes a geometric number of tries."""
    if gamma == 1.0:
        return -distance / (1.0 - slip)
    arrives = np.float64(gamma * (1.0 - slip) / (1.0 - gamma * slip)) ** distance.astype(np.float64)
    return -(1.0 - arrives) / (1.0 - gamma)


@settings(max_examples=25)
@given(length=st.integers(2, 12), slip=st.floats(0.0, 0.9), gamma=GAMMAS)
def test_the_corridor_has_its_closed_form(length: int, slip: float, gamma: float) -> None:
    solution = solve(corridor(length, slip), gamma)
    truth = cost_of(np.arange(length - 1, 0, -1), slip, gamma)
    np.testing.assert_allclose(solution.values[:-1], truth, rtol=1e-9, atol=1e-12)
    assert solution.start_value == pytest.approx(truth[0], rel=1e-9)
    if gamma == 1.0:  # with a strong discount far cells see no difference beyond rounding
        assert (solution.policy[:-1] == 1).all()


@settings(max_examples=15)
@given(n_rows=st.integers(2, 5), n_columns=st.integers(2, 5), slip=st.floats(0.0, 0.9), gamma=GAMMAS)
def test_the_field_has_its_closed_form(n_rows: int, n_columns: int, slip: float, gamma: float) -> None:
    values = solve(field(n_rows, n_columns, slip), gamma).values
    row, column = np.indices((n_rows, n_columns))
    truth = cost_of(n_rows - 1 - row + n_columns - 1 - column, slip, gamma).ravel()
    np.testing.assert_allclose(values[:-1], truth[:-1], rtol=1e-9, atol=1e-12)


@given(pays=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=4, max_size=4), gamma=GAMMAS)
@settings(max_examples=15)
def test_the_bandit_is_worth_its_better_arm(pays: list[tuple[float, float]], gamma: float) -> None:
    solution = solve(bandit(pays), gamma)
    np.testing.assert_allclose(solution.values, [max(row) for row in pays], atol=1e-12)
    assert solution.start_value == pytest.approx(np.mean([max(row) for row in pays]))


@given(near=st.floats(-5, 5), far=st.floats(-5, 5), gamma=st.floats(0.0, 0.99))
@settings(max_examples=25)
def test_the_loop_has_its_closed_form(near: float, far: float, gamma: float) -> None:
    stay = np.array([near, far]) / (1.0 - gamma)
    truth = np.maximum(np.maximum(stay, gamma * stay[::-1]), 0.0)
    np.testing.assert_allclose(solve(loop(near, far), gamma).values, truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("is_slippery", [False, True])
@pytest.mark.parametrize("gamma", [0.5, 0.95, 1.0])
@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "FrozenLake8x8-v1"])
def test_frozen_lake_agrees_with_an_independent_solve_of_its_table(
    env_id: str, gamma: float, is_slippery: bool
) -> None:
    env = gymnasium.make(env_id, is_slippery=is_slippery)
    toy: Any = env.unwrapped
    truth = naive_values(toy.P, gamma, sweeps=2500 if gamma == 1.0 and is_slippery else 400)
    solution = solve(from_toy_text(env), gamma)
    np.testing.assert_allclose(solution.values, truth, atol=1e-8)
    assert solution.start_value == pytest.approx(truth[0], abs=1e-8)


def test_cliff_walking_and_taxi_have_their_textbook_optima() -> None:
    assert solve(cliff_walking_mdp(), 1.0).start_value == pytest.approx(-13.0)
    slippery = cliff_walking_mdp(is_slippery=True)
    assert is_a_fixed_point(slippery, solve(slippery, 1.0), 1.0)
    toy: Any = gymnasium.make("Taxi-v4").unwrapped
    truth = naive_values(toy.P, 1.0, sweeps=40)
    assert solve(taxi_mdp(), 1.0).start_value == pytest.approx(float(truth @ toy.initial_state_distrib))


def lake_per_episode(lake: Lake) -> float:
    """Long-run mean reward per episode of the best policy, the flood at the start being where the last one left it."""
    world = lake.mdp()
    solution = solve(world, 1.0)
    starts = [lake.state(7, 0, flooded=flooded) for flooded in (False, True)]
    going = np.zeros((128, 128))
    arriving = np.zeros((128, 2))
    for s in range(128):
        for p, t, _, end in world.outcomes(s, int(solution.policy[s])):
            if end:
                arriving[s, t % 2] += p
            else:
                going[s, t] += p
    flood_after = np.linalg.solve(np.eye(128) - going, arriving)[starts]
    share_flooded = flood_after[0, 1] / (flood_after[0, 1] + flood_after[1, 0])
    return float((1 - share_flooded) * solution.values[starts[0]] + share_flooded * solution.values[starts[1]])


@pytest.mark.parametrize("stay", [False, True])
def test_the_optimum_of_lake_world_is_that_of_the_specification(stay: bool) -> None:
    # 90.99 is the long-run figure; a fresh world starts flooded and is worth less.
    assert lake_per_episode(Lake(stay=stay)) == pytest.approx(90.99, abs=0.005)
    assert solve(Lake(stay=stay).mdp(), 1.0).start_value == pytest.approx(90.6825236, abs=1e-6)


@pytest.mark.parametrize(
    ("lake", "gamma"), [(Lake(), 1.0), (Lake(stay=True), 0.9), (Lake(continuing=True), 0.95), (Lake(), 0.0)]
)
def test_lake_world_solves_bellmans_equation(lake: Lake, gamma: float) -> None:
    solution = solve(lake.mdp(), gamma)
    assert not np.isnan(solution.values).any()
    assert is_a_fixed_point(lake.mdp(), solution, gamma)


def test_the_optimal_policy_evaluates_to_the_optimal_values_and_no_other_does_better() -> None:
    world = Lake().mdp()
    solution = solve(world, 1.0)
    np.testing.assert_allclose(evaluate(world, solution.policy, 1.0), solution.values, rtol=1e-12)
    uniform = evaluate(world, np.full((128, 8), 1 / 8), 1.0)
    assert (uniform < solution.values).all()
    one_hot = np.eye(8)[solution.policy]
    np.testing.assert_allclose(evaluate(world, one_hot, 1.0), solution.values, rtol=1e-12)


def test_a_mixed_policy_has_its_closed_form() -> None:
    # A fair coin: v0 = -1 + v0/2 + v1/2 (the wall holds it) and v1 = -1 + v0/2.
    world = corridor(length=3, slip=0.0)
    values = evaluate(world, np.full((3, 2), 0.5), 1.0)
    np.testing.assert_allclose(values[:2], [-6.0, -4.0], atol=1e-12)


def test_a_simulation_agrees_with_evaluate() -> None:
    world = corridor(length=4, slip=0.3)
    policy = np.tile([0.3, 0.7], (4, 1))
    exact = evaluate(world, policy, 0.9)[0]
    generator = np.random.default_rng(1)
    totals = np.zeros(4000)
    for i in range(totals.shape[0]):
        s, discount, end = 0, 1.0, False
        while not end:
            outcomes = world.outcomes(s, int(generator.random() < 0.7))
            chosen = outcomes[generator.choice(len(outcomes), p=[o[0] for o in outcomes])]
            s, end = chosen[1], chosen[3]
            totals[i] += discount * chosen[2]
            discount *= 0.9
    assert abs(totals.mean() - exact) < 4 * totals.std() / np.sqrt(totals.shape[0])


def test_an_unreachable_state_that_never_ends_spoils_nothing() -> None:
    world = world_of({0: {0: [(1.0, 0, 5.0, True)]}, 1: {0: [(1.0, 1, 1.0, False)]}})
    solution = solve(world, 1.0)
    assert solution.start_value == 5.0
    assert np.isnan(solution.values[1])
    assert np.isnan(solution.q[1]).all()
    assert solution.policy.tolist() == [0, 0]
    values = evaluate(world, np.array([0, 0]), 1.0)
    assert values[0] == 5.0
    assert np.isnan(values[1])
    np.testing.assert_allclose(solve(world, 0.5).values, [5.0, 2.0])


def test_a_policy_that_only_may_end_is_not_one_that_does() -> None:
    table: dict[int, dict[int, list[Outcome]]] = {
        0: {0: [(1.0, 0, 5.0, True)]},
        1: {0: [(0.5, 0, 1.0, True), (0.5, 2, 1.0, False)]},
        2: {0: [(1.0, 2, 0.0, False)]},
    }
    policy = np.zeros(3, dtype=int)
    assert np.isnan(evaluate(world_of(table), policy, 1.0)).tolist() == [False, True, True]
    refused(lambda: evaluate(world_of(table, start=1), policy, 1.0), "episodes reach state 1 (x0 1), from where")
    refused(lambda: solve(world_of(table, start=1), 1.0), "from start state 1 (x0 1) no policy is sure to")
    np.testing.assert_allclose(evaluate(world_of(table, start=1), policy, 0.5), [5.0, 1.0, 0.0])


def test_actions_that_may_lead_into_a_trap_are_not_compared_without_discount() -> None:
    world = world_of(
        {
            0: {0: [(0.5, 1, 9.0, False), (0.5, 0, 9.0, True)], 1: [(1.0, 0, 1.0, True)]},
            1: {0: [(1.0, 1, 0.0, False)], 1: [(1.0, 1, 0.0, False)]},
        }
    )
    solution = solve(world, 1.0)
    assert (solution.start_value, solution.policy[0]) == (1.0, 1)
    assert np.isnan(solution.q[0, 0])


def test_loops_that_cost_nothing_do_not_tempt() -> None:
    world = world_of({0: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 0, 0.0, True)]}})
    solution = solve(world, 1.0)
    assert solution.values.tolist() == [0.0]
    np.testing.assert_array_equal(solution.q, [[0.0, 0.0]])
    assert solution.policy.tolist() == [1]


def test_the_optimal_policy_ends_where_steps_cost_nothing() -> None:
    # A prize at the end of a corridor, at any time: every action is as good as any other, but not as a policy.
    steps = {s: {0: [(1.0, max(s - 1, 0), 0.0, False)], 1: [(1.0, s + 1, 0.0, False)]} for s in range(3)}
    world = world_of(steps | {3: {0: [(1.0, 3, 1.0, True)], 1: [(1.0, 2, 0.0, False)]}})
    solution = solve(world, 1.0)
    np.testing.assert_allclose(solution.q, 1.0)
    assert solution.policy.tolist() == [1, 1, 1, 0]
    np.testing.assert_allclose(evaluate(world, solution.policy, 1.0), 1.0)
    np.testing.assert_allclose(expected_steps(world, solution.policy), [[5, 4], [5, 3], [4, 2], [1, 3]])


TWO_WAYS = {0: {0: [(1.0, 0, 1.0, False)], 1: [(1.0, 0, 0.0, True)]}}
TRAPPED = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 1, 0.0, False)]}}


def refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_what_has_no_answer_is_refused_with_a_sentence() -> None:
    lake = Lake(continuing=True).mdp()
    refused(lambda: solve(lake, 1.0), "lake is a continuing task: with gamma = 1 its values have no bound")
    refused(lambda: evaluate(lake, np.zeros(128, dtype=int), 1.0), "lake is a continuing task")
    refused(lambda: solve(lake, 1.5), "gamma is 1.5; it must be a number between 0 and 1")
    refused(lambda: solve(lake, float("nan")), "gamma is nan; it must be a number between 0 and 1")
    refused(lambda: solve(world_of(TWO_WAYS), 1.0), "has no bound: a loop through state 0 pays for ever")
    refused(lambda: solve(world_of(TRAPPED), 1.0), "from start state 0 (x0 0) no policy is sure to")
    world = corridor(length=3)
    refused(
        lambda: evaluate(world, np.array([0, 1, 1]), 1.0),
        "the policy must end for sure, but episodes reach state 0 (position 0), from where it may go on for ever",
    )
    refused(lambda: evaluate(world, np.array([0, 2, 1]), 0.5), "takes action 2 in state 1; there are 0 to 1")
    refused(lambda: evaluate(world, np.array([0, 1]), 0.5), "the policy has shape (2,)")
    refused(lambda: evaluate(world, np.array([0.0, 1.0, 1.0]), 0.5), "type float64; it needs a whole number")
    bad = np.array([[1.0, 0.0], [0.5, 0.6], [1.0, 0.0]])
    refused(lambda: evaluate(world, bad, 0.5), "probabilities in state 1 are [0.5, 0.6]; they must add up to 1")
    negative = np.array([[1.0, 0.0], [1.5, -0.5], [1.0, 0.0]])
    refused(lambda: evaluate(world, negative, 0.5), "probabilities in state 1 are [1.5, -0.5]")


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 8), A=st.integers(1, 3), gamma=GAMMAS)
def test_random_worlds_solve_bellmans_equation(seed: int, n: int, A: int, gamma: float) -> None:
    generator = np.random.default_rng(seed)

    def outcomes(s: int, a: int) -> list[Outcome]:
        weights = generator.dirichlet(np.ones(3))
        return [
            (float(p), int(generator.integers(n)), float(generator.normal() - 1.5), bool(k == 0))
            for k, p in enumerate(weights)
        ]

    table = {s: {a: outcomes(s, a) for a in range(A)} for s in range(n)}
    world = world_of(table)
    assert is_a_fixed_point(world, solve(world, gamma), gamma)


def test_toys_refuse_wrong_parameters() -> None:
    refused(lambda: corridor(length=1), "length is 1; it must be a whole number between 2 and 1000000")
    refused(lambda: corridor(slip=1.0), "slip is 1.0; it must be at least 0 and below 1")
    refused(lambda: field(n_columns=0), "n_columns is 0; it must be a whole number between 2 and")
    refused(lambda: bandit([(0.1, 1.2)] * 4), "it must be 4 rows (contexts) of 2 probabilities between 0 and 1")
