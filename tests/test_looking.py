"""Actions chosen for what they reveal: the laws of `look`, the world where looking has a price, and standing still."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.memory import PlanTable
from lacuna.agent.settings import Settings
from lacuna.agent.voting import keep_largest_sums, keep_least_regrets
from lacuna.kernels.space import Space
from lacuna.missingness import parse
from lacuna.run.run import Run
from lacuna.trial.engine.allocation import allocate, allocation_of
from lacuna.trial.engine.units import UNITS
from lacuna.worlds.lake import Lake
from lacuna.worlds.lookout import lookout
from lacuna.worlds.mdp.solve import solve
from lacuna.worlds.mdp.tabular import TabularMDP

Floats = NDArray[np.float64]
LOOKING = "after:look=0,else=0/0.8"

tables = st.integers(1, 5).flatmap(
    lambda A: st.lists(st.lists(st.integers(-3, 3), min_size=A, max_size=A), min_size=4, max_size=4)
)
places = st.lists(st.integers(0, 3), min_size=1, max_size=6)


def chosen(Q: Floats, S: list[int], x: Floats) -> Floats:
    p = np.empty(Q.shape[1])
    keep_least_regrets(Q, np.array(S), x, p)
    return p


def on_average(Q: Floats, S: list[int]) -> Floats:
    p = np.empty(Q.shape[1])
    keep_largest_sums(Q, np.array(S), p)
    return p


def plan_of(agent: Agent) -> PlanTable:
    assert agent.plan_table is not None
    return agent.plan_table


# --- the choice ------------------------------------------------------------------------------------------------------


@given(table=tables, S=places, x=st.floats(0, 0.99))
@effort(max_examples=300)
def test_if_every_action_reveals_alike_the_best_average_decides(table: list[list[int]], S: list[int], x: float) -> None:
    Q = np.array(table, dtype=np.float64)
    assert chosen(Q, S, np.full(Q.shape[1], x)).tolist() == on_average(Q, S).tolist()


@given(table=tables, S=places, data=st.data())
@effort(max_examples=300)
def test_an_action_that_is_best_for_all_pathways_is_chosen_whatever_it_reveals(
    table: list[list[int]], S: list[int], data: st.DataObject
) -> None:
    Q = np.array(table, dtype=np.float64)
    A = Q.shape[1]
    Q[S, data.draw(st.integers(0, A - 1))] = 4.0
    x = np.array(data.draw(st.lists(st.floats(0, 0.99), min_size=A, max_size=A)))
    assert chosen(Q, S, x).tolist() == on_average(Q, S).tolist()
    # All pathways in one state: there is such an action.
    together = [S[0]] * len(S)
    assert chosen(Q, together, x).tolist() == on_average(Q, together).tolist()


@given(table=tables, S=places, data=st.data())
@effort(max_examples=300)
def test_the_choice_is_that_of_the_least_cost_until_one_knows(
    table: list[list[int]], S: list[int], data: st.DataObject
) -> None:
    Q = np.array(table, dtype=np.float64)
    # Sixteenths: the costs are compared as whole numbers, and what ties here ties there.
    x = np.array(data.draw(st.lists(st.integers(0, 15), min_size=Q.shape[1], max_size=Q.shape[1]))) / 16
    costs = [sum(Q[s].max() - Q[s, a] for s in S) / (1 - x[a]) for a in range(Q.shape[1])]
    least = [float(abs(cost - min(costs)) < 1e-12) for cost in costs]
    assert chosen(Q, S, x).tolist() == (on_average(Q, S).tolist() if min(costs) == 0 else least)


def test_by_hand() -> None:
    # Left and right lack 2 on average, as each is wrong half of the time and then by 4; looking lacks 3.
    Q = np.array([[0.0, -4.0, -3.0], [-4.0, 0.0, -3.0]])
    assert chosen(Q, [0, 1], np.zeros(3)).tolist() == [1, 1, 0]
    # If the first two leave half of the doubt, they cost 4 until one knows.
    assert chosen(Q, [0, 1], np.array([0.5, 0.5, 0.0])).tolist() == [0, 0, 1]
    assert chosen(Q, [0, 1], np.array([0.5, 0.25, 0.0])).tolist() == [0, 1, 0]
    assert chosen(Q, [0, 0], np.array([0.5, 0.25, 0.0])).tolist() == [1, 0, 0]


# --- what is learned of it -------------------------------------------------------------------------------------------


def test_without_look_nothing_is_noted_and_with_complete_states_look_changes_nothing() -> None:
    mdp = Lake(stay=True).mdp()
    runs = [Run(mdp, parse("none", mdp), Settings("mi-planned", look=look), seed=3) for look in (0.0, 1.0)]
    traces = [run.record(3000) for run in runs]
    assert all(np.array_equal(*columns) for columns in zip(*traces, strict=True))
    assert runs[0].agent.Q.tobytes() == runs[1].agent.Q.tobytes()
    assert not plan_of(runs[0].agent).unsure.any()
    *by_action, sure = plan_of(runs[1].agent).unsure.tolist()
    assert not np.any(by_action)
    assert sure == [3000.0, 0.0]


def test_a_single_pathway_has_no_use_for_looking() -> None:
    mdp = Lake(stay=True).mdp()
    runs = [Run(mdp, parse("mcar:0.6", mdp), Settings("mi-planned", 1, look=look), seed=3) for look in (0.0, 1.0)]
    traces = [run.record(2000) for run in runs]
    assert all(np.array_equal(*columns) for columns in zip(*traces, strict=True))


def test_disagreement_is_noted_before_and_after() -> None:
    agent = Agent(Space((2,)), 2, Settings("mi-planned", 4, look=1.0), seed=0)
    agent.begin([0])
    agent.learn(0.0, [1], terminated=False, action=1)
    assert plan_of(agent).unsure.tolist() == [[0, 0], [0, 0], [1, 0]]
    agent.memory.S[:], agent.memory.C[:] = [0, 0, 0, 1], [0, 0, 0, 1]
    agent.learn(0.0, [1], terminated=False, action=1)
    # Of 16 ordered pairs 6 differ.
    assert plan_of(agent).unsure.tolist() == [[0, 0], [6 / 16, 0], [1, 0]]
    agent.learn(0.0, [None], terminated=False, action=0)
    after = 1 - sum(agent.pathways.count(path) for path in agent.pathways) / 16
    assert plan_of(agent).unsure.tolist() == [[0, 0], [6 / 16, 0], [2, after]]


def test_after_the_end_nothing_is_unknown() -> None:
    agent = Agent(Space((4,)), 2, Settings("mi-planned", 4, look=1.0), seed=1)
    agent.begin([None])
    before = 1 - sum(agent.pathways.count(path) for path in agent.pathways) / 16
    assert before > 0
    agent.learn(0.0, [None], terminated=True, action=1)
    assert plan_of(agent).unsure.tolist() == [[0, 0], [before, 0], [0, 0]]


def test_the_votes_of_a_trial_look_as_the_agent_does() -> None:
    mdp = Lake(stay=True).mdp()
    A, K = mdp.n_actions, 10
    run = Run(mdp, parse("mcar:0.8", mdp), Settings("mi-planned", K, look=1.0), seed=2)
    allocation = allocation_of("votes", {}, [(0, 1)] * A, K, A)
    differs = 0
    for _ in range(300):
        run.advance(1)
        agent, units = run.agent, np.zeros(A, dtype=np.int64)
        allocate(allocation, agent.rules, agent.memory, agent.plan_table, np.arange(A), units)
        assert (units / UNITS).tolist() == pytest.approx(agent.probabilities().tolist(), abs=1e-9)
        plain = replace(agent.settings, look=0.0).rules
        before = units.copy()
        allocate(allocation, plain, agent.memory, agent.plan_table, np.arange(A), units)
        differs += before.tolist() != units.tolist()
    assert differs > 0


# --- the world -------------------------------------------------------------------------------------------------------


def episodes_of(mdp: TabularMDP, policy: str, n: int, seed: int) -> Floats:
    """Rewards of episodes under a simple policy that remembers what it saw."""
    rng, found = np.random.default_rng(seed), np.zeros(n)
    end = mdp.space.sizes[0] - 1
    for i in range(n):
        state, side, total, done = next(iter(mdp.starts[0])), 0, 0.0, False
        goal = int(rng.integers(2)) * end
        while not done:
            place, true_side = mdp.space.decode(state)
            side = true_side if policy == "all seen" else side
            if policy == "blind" and place == goal:
                goal = end - goal
            if side:
                goal = 0 if side == 1 else end
            looks = policy == "look first" and not side
            action = 2 if looks else int(place < goal)
            outcomes = mdp.outcomes(state, action)
            _, state, reward, done = outcomes[int(rng.choice(len(outcomes), p=[p for p, *_ in outcomes]))]
            total += reward
            side = mdp.space.decode(state)[1] if looks else side
        found[i] = total
    return found


@pytest.mark.parametrize(("reach", "price", "slip"), [(5, 2.0, 0.1), (3, 1.5, 0.0), (2, 4.0, 0.4)])
def test_the_values_of_the_world_are_those_in_closed_form(reach: int, price: float, slip: float) -> None:
    mdp = lookout(reach, price, slip=slip)
    best = solve(mdp, gamma=1.0)
    start = next(iter(mdp.starts[0]))
    by_hand = {
        "all seen": 10 - 1 - reach / (1 - slip),
        "look first": 10 - price - reach / (1 - slip),
        "blind": 10 - 2 * reach / (1 - slip),
    }
    assert best.start_value == pytest.approx(by_hand["all seen"], abs=1e-6)
    # With everything seen, nobody looks before the end.
    ends = {(0, 1), (2 * reach, 2)}
    between = {*product(range(2 * reach + 1), (1, 2))} - ends
    for state in (start, *map(mdp.space.encode, between)):
        assert best.q[state, 2] < best.q[state, :2].max() - 0.4
    for policy, value in by_hand.items():
        found = episodes_of(mdp, policy, 2000, seed=1)
        assert abs(found.mean() - value) < 5 * found.std() / np.sqrt(len(found)) + 1e-9, policy


def test_qmdp_never_looks_and_loses_to_one_who_looks() -> None:
    mdp = lookout()
    mechanism = parse(LOOKING, mdp)
    figures = {}
    for name in ("optimum", "qmdp", "qmdp-rewards"):
        run = Run(mdp, mechanism, Settings(name), seed=4)
        run.advance(20_000)
        figures[name] = run.figures()
        assert figures[name]["idle_share"] == 0
    looks_first = 10 - 2 - 5 / 0.9
    assert figures["qmdp"]["mean_total_reward"] < looks_first - 1 < figures["optimum"]["mean_total_reward"]


def test_a_planner_that_looks_earns_more_there() -> None:
    mdp = lookout()
    rewards, looked = np.zeros((2, 8)), np.zeros((2, 8))
    for i, look in enumerate((0.0, 1.0)):
        for seed in range(8):
            run = Run(mdp, parse(LOOKING, mdp), Settings("mi-planned", look=look), seed=seed)
            run.advance(10_000)
            rewards[i, seed], looked[i, seed] = (run.figures()[name] for name in ("reward_per_step", "idle_share"))
    gain = rewards[1] - rewards[0]
    assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(8) > 0
    assert looked[1].mean() > 2 * looked[0].mean()


# --- standing still --------------------------------------------------------------------------------------------------


def test_standing_still_gathers_what_is_seen() -> None:
    """Pathways come to agree while the agent stays: no look is needed for it, as each sight of a part is kept."""
    mdp = Lake(stay=True).mdp()
    idle, agreement = mdp.idle, np.zeros((200, 7))
    assert idle is not None
    run = Run(mdp, parse("mcar:0.8", mdp), Settings("mi-planned", epsilon=0.1), seed=0)
    run.advance(20_000)
    agent, rng = run.agent, np.random.default_rng(1)
    for one in agreement:
        state = int(rng.choice(mdp.n_states))
        agent.begin([None, None, None])
        for t in range(len(one)):
            one[t] = sum(agent.pathways.count(path) for path in agent.pathways) / 100
            outcomes = mdp.outcomes(state, idle)
            _, state, reward, _ = outcomes[int(rng.choice(len(outcomes), p=[p for p, *_ in outcomes]))]
            seen = [value if rng.random() > 0.8 else None for value in mdp.space.decode(int(mdp.shows[state]))]
            agent.learn(reward, seen, terminated=False, action=idle)
    mean, error = agreement.mean(axis=0), agreement.std(axis=0) / np.sqrt(len(agreement))
    # Wind and flood go on while it stays, so it never knows for sure.
    assert mean[0] < 0.2 < mean[1] - 3 * error[1]
    assert mean[3:].mean() > mean[1] + 3 * error[1]
