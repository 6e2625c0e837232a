"""The method that plans: the same as its twin, and the laws that hold whatever the numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.learner import act
from lacuna.agent.memory import (
    AGREEMENT,
    CREDITED,
    CURSOR,
    ENTRY,
    IMPATIENCE,
    OPEN,
    OPTIMISTIC,
    OUTCOMES,
    PEAK,
    QUEUED,
    RISING,
    VISITED,
    PlanTable,
)
from lacuna.agent.models.successors import expand
from lacuna.agent.settings import Settings
from lacuna.kernels.codes import pack
from lacuna.kernels.counts import CountTable
from lacuna.kernels.space import Space
from lacuna.missingness import mcar, none, parse
from lacuna.run.run import Run
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import make_world
from naive import State
from naive_planned import NaivePlanner
from problems import Numbers, follower, lake, with_none

SEED = 5
Floats = NDArray[np.float64]

WORLDS: dict[str, dict[str, Any]] = {
    "lake": {"stay": True, "max_steps": 60},
    "taxi": {},
    "field": {},
    "random": {"components": 3, "size": 3, "noise": 0.2},
    "random factored": {"components": 3, "size": 3, "factored": True, "seed": 1},
}
MASKS = ("mcar:0.2", "mcar:0.6", "bursts:0.1,0.3")
CASES = list(product((1, 3, 10), (0, 3, 20), (0.0, 0.2), (1.0, 0.5)))
PAIRS = list(product(WORLDS, MASKS))


def a_world(name: str) -> TabularMDP:
    return make_world(name.partition(" ")[0], **WORLDS[name])


def planned(
    K: int, budget: int = 20, epsilon: float = 0.0, kappa: float = 1.0, gamma: float = 0.95, look: float = 0.0
) -> Settings:
    return Settings("mi-planned", K, gamma=gamma, epsilon=epsilon, kappa=kappa, budget=budget, look=look)


def plan_of(agent: Agent) -> PlanTable:
    assert agent.plan_table is not None
    return agent.plan_table


# --- the twin --------------------------------------------------------------------------------------------------------


def twin_of(agent: Agent) -> tuple[NaivePlanner, Numbers, Numbers]:
    case = agent.settings
    assert case.kappa is not None
    assert case.budget is not None
    imputation, exploration = Numbers(agent.seed, "imputation"), Numbers(agent.seed, "exploration")
    twin = NaivePlanner(
        agent.space.sizes, agent.n_actions, K=case.pathways, gamma=case.gamma, epsilon=case.epsilon, kappa=case.kappa,
        budget=case.budget, evidence=str(case.sources.name).lower(), look=case.look,
        imputation=imputation, exploration=exploration,
    )  # fmt: skip
    return twin, imputation, exploration


def followed(run: Run, steps: int) -> NaivePlanner:
    """The twin after the same steps; at each of them it does and believes what the run does."""
    mdp, agent = run.mdp, run.agent
    twin, imputation, exploration = twin_of(agent)
    for t in range(steps):
        if t > 0:
            np.testing.assert_allclose(agent.probabilities(), twin.probabilities(), rtol=0, atol=1e-12)
        trace = run.record(1)
        if t == 0:
            twin.begin(mdp.space.decode(int(mdp.shows[trace.state[0]])))
        assert twin.act() == trace.action[0], f"step {t}"
        terminated = bool(trace.ended[0]) and mdp.terminates
        twin.learn(int(trace.action[0]), float(trace.reward[0]), with_none(trace.seen[0]), terminated)
        assert [rows(agent.space, path) for path in twin.paths] == trace.pathways[0].tolist(), f"step {t}"
        if terminated or trace.truncated[0]:
            twin.begin(with_none(agent.memory.previous))
    assert imputation.used == agent.imputation.position
    assert exploration.used == agent.exploration.position
    return twin


def rows(space: Space, state: State) -> int:
    return space.encode([value for value in state if value is not None])


def rows_of(counts: CountTable, n_actions: int) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The entries of every row in their order, on which draws depend: codes and units."""
    found = {}
    for key in np.flatnonzero(counts.head):
        i = counts.head[key]
        entries = range(int(counts.start[i]), int(counts.start[i] + counts.length[i]))
        row, action = divmod(int(key), n_actions)
        found[row, action] = [(int(counts.code[e]), int(counts.n[e])) for e in entries]
    return found


def component_rows(twin: NaivePlanner, agent: Agent) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The twin's counts of single components under the numbers of the product's rows."""
    assert agent.planner is not None
    model, sizes, offsets = agent.planner.model.table, agent.space.sizes, agent.space.layout.offsets
    found = {(int(offsets[j]) + u, a): row for (j, u, a), row in twin.given_action.items()}
    found |= {(int(model.first_plain + offsets[j]) + u, 0): row for (j, u), row in twin.given_value.items()}
    found |= {(model.first_seen + j, 0): row for j, row in twin.seen.items()}
    for (j, p, u, w, a), row in twin.given_parent.items():
        found[int(model.search.first[j, p]) + u * sizes[p] + w, a] = row
    return {key: list(row.items()) for key, row in found.items() if row}


def table(entries: dict[Any, Any], space: Space, *shape: int) -> Floats:
    """What the twin keeps for states, and for more, as an array."""
    found = np.zeros((space.n_states, *shape))
    for key, value in entries.items():
        state, *more = key if isinstance(key[0], tuple) else (key,)
        found[(rows(space, state), *more)] = value
    return found


def compare(twin: NaivePlanner, agent: Agent) -> None:
    assert agent.planner is not None
    plan, space, A = plan_of(agent), agent.space, agent.n_actions
    np.testing.assert_allclose(agent.Q, table(twin.Q, space, A), rtol=1e-12, atol=1e-12)
    joint = {
        (rows(space, s), a): [(pack(rows(space, x), space.layout), n) for x, n in row.items()]
        for (s, a), row in twin.joint.items()
        if row
    }
    assert rows_of(agent.model.table, A) == joint
    assert rows_of(plan.model.counts, A) == component_rows(twin, agent)
    parents = [twin.parent(j) for j in range(space.d)]
    assert list(agent.parent_of.values()) == [None if p is None else space.names[p] for p in parents]
    for (j, p), ratio in twin.likelier.items():
        assert plan.model.search.weight[j, p] == pytest.approx(ratio, rel=1e-9)
    leads = {(rows(space, x), 0): [(rows(space, s) * A + a, 1) for s, a in back] for x, back in twin.leads.items()}
    assert rows_of(plan.leads, 1) == {key: row for key, row in leads.items() if row}
    for name, shape in (("tried", (A,)), ("taken", (A, 3)), ("arrived", (3,))):
        np.testing.assert_allclose(getattr(plan, name), table(getattr(twin, name), space, *shape), rtol=1e-12)
    outcomes = [[reward, ended, n] for (reward, ended), n in twin.outcomes.items()]
    assert plan.outcomes[: plan.at[OUTCOMES]].tolist() == outcomes
    told = {(s, list(twin.outcomes).index(outcome)): n for (s, outcome), n in twin.told.items()}
    np.testing.assert_allclose(plan.told, table(told, space, 8), rtol=1e-12)
    assert plan.visited[: plan.at[VISITED]].tolist() == [rows(space, s) for s in twin.visited]
    assert plan.queue[: plan.at[QUEUED]].tolist() == [rows(space, s) for s in twin.queue.states]
    looked_at = -1 if twin.looked_at is None else rows(space, twin.looked_at)
    assert (plan.at[OPEN], plan.at[CURSOR]) == (looked_at, twin.cursor)
    assert looked_at < 0 or plan.at[ENTRY] == twin.looked_up
    levels = plan.levels[[AGREEMENT, OPTIMISTIC, PEAK, RISING, IMPATIENCE]]
    expected = [twin.agreement, twin.optimistic, twin.peak, twin.rising, twin.impatience]
    np.testing.assert_allclose(levels, expected, rtol=1e-12)
    unsure = [*twin.unsure, twin.sure] if agent.settings.look > 0 else np.zeros((A + 1, 2))
    np.testing.assert_allclose(plan.unsure, unsure, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "mask"), PAIRS)
def test_a_run_is_the_twin_step_by_step(name: str, mask: str) -> None:
    mdp = a_world(name)
    # Three cases each: together every one of them.
    first = 3 * PAIRS.index((name, mask))
    for i in range(first, first + 3):
        K, budget, epsilon, kappa = CASES[i % len(CASES)]
        run = Run(mdp, parse(mask, mdp), planned(K, budget, epsilon, kappa), seed=SEED + i)
        compare(followed(run, 200), run.agent)


@pytest.mark.parametrize("look", [0.4, 1.0])
@pytest.mark.parametrize(("name", "mask"), PAIRS)
def test_a_run_that_looks_is_the_twin_step_by_step(name: str, mask: str, look: float) -> None:
    mdp = a_world(name)
    run = Run(mdp, parse(mask, mdp), planned(4, 4, 0.1, look=look), seed=SEED + PAIRS.index((name, mask)))
    compare(followed(run, 200), run.agent)


def test_the_cases_of_the_twin_are_crossed() -> None:
    assert len(CASES) == 36 <= 3 * len(PAIRS)


@pytest.mark.parametrize("K", [1, 4])
def test_parents_are_found_and_used_as_the_twin_does(K: int) -> None:
    mdp = follower()
    run = Run(mdp, mcar(mdp.space, 0.3), planned(K, 4, 0.3), seed=SEED)
    twin = followed(run, 600)
    assert dict(run.agent.parent_of) == {"signal": None, "echo": "signal", "noise": None}
    compare(twin, run.agent)


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    case=st.tuples(st.sampled_from((1, 2, 5)), st.integers(0, 9), st.sampled_from((0.0, 0.3)), st.floats(0.01, 9)),
    hidden=st.floats(0, 1),
    seed=st.integers(0, 10**6),
)
@effort(max_examples=40)
def test_whatever_is_shown_and_paid_the_twin_agrees(
    sizes: list[int], case: tuple[int, int, float, float], hidden: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    agent = Agent(Space(tuple(sizes)), 3, planned(*case), seed=seed)
    twin, imputation, exploration = twin_of(agent)
    # More rewards than outcomes are told apart, and some of them below 0 or equal to others.
    rewards = rng.normal(size=12).round(1)
    for ended in rng.random(40) < 0.1:
        if not agent.ready:
            first = seen_of(rng, sizes, hidden)
            agent.begin(first)
            twin.begin(first)
        assert agent.act() == twin.act()
        assert agent.action is not None
        action, reward, shown = agent.action, float(rng.choice(rewards)), seen_of(rng, sizes, hidden)
        agent.learn(reward, shown, bool(ended))
        twin.learn(action, reward, shown, bool(ended))
        assert agent.pathways == tuple(twin.paths)
    assert (imputation.used, exploration.used) == (agent.imputation.position, agent.exploration.position)
    compare(twin, agent)


def seen_of(rng: np.random.Generator, sizes: list[int], hidden: float) -> State:
    return tuple(None if rng.random() < hidden else int(rng.integers(size)) for size in sizes)


# --- the plan --------------------------------------------------------------------------------------------------------


def without_doubt(run: Run) -> Agent:
    """The agent of a run, certain of all it tried, after a last step that swept to the end."""
    agent = run.agent
    plan_of(agent).tried[:] = 1e15
    agent.rules = agent.tables.rules = agent.rules._replace(budget=200_000)
    run.advance(1)
    return agent


def iterate_values(model: Floats, agent: Agent) -> Floats:
    """Value iteration on a model of transitions T[s, a, s'], with rewards and endings as the planner mixes them."""
    plan = plan_of(agent)
    weight = plan.arrived[:, 1]
    reached = weight > 0
    pays, ends = (np.where(reached, plan.arrived[:, i] / np.maximum(weight, 1e-300), 0.0) for i in (0, 2))
    mass = plan.taken[..., 1] + model @ reached
    left = mass > 0
    mass = np.where(left, mass, 1.0)
    r, t = ((plan.taken[..., i] + model @ mean) / mass for i, mean in ((0, pays), (2, ends)))
    on = model * (1 - ends)
    total = on.sum(axis=2)
    Q = np.zeros(plan.tried.shape)
    for _ in range(1000):
        # States that were never left are worth O.
        V = np.where(plan.left, Q.max(axis=1), plan.levels[OPTIMISTIC])
        Q = r + agent.rules.gamma * (1 - t) * (on @ V) / np.where(total > 0, total, 1.0)
    Q[~plan.left] = 0.0
    return Q


def joint_model(agent: Agent) -> Floats:
    """N/n, from the counts alone; 0 where nothing was counted."""
    model = np.zeros((agent.space.n_states, agent.n_actions, agent.space.n_states))
    for (s, a, x), n in agent.counts.items():
        model[s, a, x] = n
    total = model.sum(axis=2, keepdims=True)
    return np.asarray(model / np.where(total > 0, total, 1.0))


@pytest.mark.parametrize("name", ["field", "random"])
def test_nothing_hidden_and_nothing_in_doubt_is_value_iteration_on_the_counts(name: str) -> None:
    mdp = make_world("field", n_rows=2, n_columns=3) if name == "field" else make_world("random", components=2, size=2)
    run = Run(mdp, none(mdp.space), planned(2, 0, 1.0, gamma=0.9), seed=2)
    run.advance(60_000)
    agent = without_doubt(run)
    plan = plan_of(agent)
    # So often that the product of the components is left out everywhere.
    assert plan.taken[plan.left][..., 1].min() > 350
    np.testing.assert_allclose(agent.Q, iterate_values(joint_model(agent), agent), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["field", "random", "random factored"])
def test_nothing_in_doubt_is_value_iteration_on_the_counts_and_the_components(name: str) -> None:
    mdp = a_world(name)
    run = Run(mdp, mcar(mdp.space, 0.3), planned(3, 0, 1.0, gamma=0.9), seed=2)
    twin = followed(run, 600)
    agent, space = run.agent, mdp.space
    # No time between the sweep and the model: what the last step counts, the twin counts as well.
    plan_of(agent).tried[:] = 1e15
    agent.rules = agent.tables.rules = agent.rules._replace(budget=200_000)
    trace = run.record(1)
    terminated = bool(trace.ended[0]) and mdp.terminates
    twin.act()
    twin.learn(int(trace.action[0]), float(trace.reward[0]), with_none(trace.seen[0]), terminated)
    model = np.zeros((space.n_states, mdp.n_actions, space.n_states))
    for s, a in product(range(space.n_states), range(mdp.n_actions)):
        for x, T in twin.transitions(space.decode(s), a):
            model[s, a, rows(space, x)] += T
    np.testing.assert_allclose(model.sum(axis=2), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(agent.Q, iterate_values(model, agent), rtol=1e-9, atol=1e-9)


def test_where_components_depend_on_all_others_the_joint_counts_take_over() -> None:
    mdp = make_world("random", components=2, size=3, noise=0.3, seed=4)
    gaps = []
    for steps in (500, 2_000, 8_000, 32_000):
        run = Run(mdp, mcar(mdp.space, 0.1), planned(3, 0, 1.0, gamma=0.9), seed=2)
        run.advance(steps)
        agent = without_doubt(run)
        exact = iterate_values(joint_model(agent), agent)
        total = np.zeros((9, 3))
        for (s, a, _), n in agent.counts.items():
            total[s, a] += n
        # Of T only κ/(n + κ) is not N/n. That moves one backup by at most twice as much of the largest value and
        # reward, hence all of them together by 1/(1 - γ) times that.
        plan = plan_of(agent)
        most = float(abs(exact).max() + abs(mdp.reward).max())
        gaps.append(float(abs(agent.Q - exact).max()))
        assert plan.left.all()
        assert gaps[-1] <= 2 * most / (total.min() + 1) / (1 - 0.9)
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[3] < 1e-9


def test_where_components_depend_on_all_others_it_earns_as_much_as_without_them() -> None:
    mdp = make_world("random", components=3, size=3, noise=0.1, seed=3)
    gain = []
    for seed in range(12):
        earned = []
        for kappa in (1.0, 1e-9):
            run = Run(mdp, mcar(mdp.space, 0.2), planned(10, 20, 0.05, kappa), seed=seed)
            run.advance(4000)
            earned.append(float(run.record(4000).reward.mean()))
        gain.append(earned[0] - earned[1])
    error = np.std(gain, ddof=1) / np.sqrt(len(gain))
    assert np.mean(gain) > -3 * error


# --- symmetry --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("power", [-30, 3, 40])
def test_rewards_in_another_unit_give_values_in_that_unit_and_the_same_actions(power: int, mask: str) -> None:
    for name in ("lake", "random"):
        mdp, scale = a_world(name), 2.0**power
        scaled = replace(mdp, reward=mdp.reward * scale)
        one, two = (Run(world, parse(mask, mdp), planned(4), seed=3) for world in (mdp, scaled))
        left, right = one.record(800), two.record(800)
        assert np.array_equal(left.action, right.action)
        assert np.array_equal(left.pathways, right.pathways)
        assert one.agent.Q.any()
        assert np.array_equal(one.agent.Q * scale, two.agent.Q)
        assert dict(one.agent.counts) == dict(two.agent.counts)


def test_relabelling_a_component_that_is_never_hidden_permutes_everything() -> None:
    mdp = lake("episodic")
    order = np.random.default_rng(3).permutation(8)
    values = np.stack(np.unravel_index(mdp.shows, mdp.space.sizes))
    values[0] = order[values[0]]
    relabelled = replace(mdp, shows=np.ravel_multi_index(tuple(values), mdp.space.sizes).astype(np.int64))
    one, two = (Run(world, mcar(world.space, (0.0, 0.5, 0.5)), planned(5), seed=8) for world in (mdp, relabelled))
    left, right = one.record(1500), two.record(1500)
    assert np.array_equal(left.action, right.action)
    state = np.arange(mdp.space.n_states).reshape(mdp.space.sizes)
    to = np.empty(state.size, dtype=np.int64)
    to[state.ravel()] = state[order].ravel()
    assert np.array_equal(to[left.pathways], right.pathways)
    assert not np.array_equal(one.agent.Q, two.agent.Q)
    assert np.array_equal(one.agent.Q, two.agent.Q[to])
    assert {(int(to[s]), a, int(to[x])): n for (s, a, x), n in one.agent.counts.items()} == dict(two.agent.counts)
    first = mdp.space.names[0]
    relabel = {
        (name, int(order[u]) if name == first else u, a, int(order[v]) if name == first else v): n
        for (name, u, a, v), n in one.agent.component_counts.items()
    }
    assert relabel == dict(two.agent.component_counts)
    plan, other = plan_of(one.agent), plan_of(two.agent)
    for name in ("tried", "taken", "arrived", "ahead", "told", "left", "place", "priority"):
        assert np.array_equal(getattr(plan, name), getattr(other, name)[to]), name
    for name in ("visited", "queue"):
        n = plan.at[VISITED if name == "visited" else QUEUED]
        assert np.array_equal(to[getattr(plan, name)[:n]], getattr(other, name)[:n])
    assert np.array_equal(plan.levels, other.levels)


# --- the tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "mask"), PAIRS)
def test_after_any_run_the_tables_are_in_order(name: str, mask: str) -> None:
    mdp = a_world(name)
    for K, budget, epsilon, kappa in CASES[::5]:
        run = Run(mdp, parse(mask, mdp), planned(K, budget, epsilon, kappa), seed=K)
        for steps in (1, 10, 700):
            run.advance(steps)
            assert_in_order(run.agent)


def assert_in_order(agent: Agent) -> None:
    plan, memory = plan_of(agent), agent.memory
    n = int(plan.at[QUEUED])
    queue, priority = plan.queue[:n], plan.priority[plan.queue[:n]]
    assert (priority[(np.arange(1, n) - 1) // 2] >= priority[1:]).all()
    assert (priority > 0).all()
    assert plan.place[queue].tolist() == list(range(1, n + 1))
    assert np.count_nonzero(plan.place) == n
    assert not plan.tally.any()
    assert not plan.model.sums.any()
    visited = plan.visited[: plan.at[VISITED]]
    assert sorted(visited.tolist()) == np.flatnonzero(plan.left).tolist()
    assert np.array_equal(plan.left, plan.taken[..., 1].sum(axis=1) > 0)
    assert np.array_equal(plan.ahead[plan.left, 0], memory.Q[plan.left].max(axis=1))
    assert not memory.Q[~plan.left].any()
    for name in ("tried", "taken", "arrived", "ahead", "outcomes", "told", "priority", "levels"):
        assert np.isfinite(getattr(plan, name)).all(), name
    assert np.isfinite(memory.Q).all()
    for sums in (plan.taken, plan.arrived):
        assert sums[..., 1].sum() == pytest.approx(plan.at[CREDITED])
        assert (sums[..., 2] <= sums[..., 1]).all()
    assert plan.at[CREDITED] == agent.steps


# --- acting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("impatience", [0.0, 0.1])
def test_probabilities_are_those_of_act_impatience_included(impatience: float, epsilon: float) -> None:
    agent = Agent(Space((4,)), 4, planned(3, epsilon=epsilon), seed=3)
    agent.begin([0])
    agent.memory.Q[:] = [[3, 2, 0, 0], [0, 2, 3, 0], [3, 2, 0, 0], [0, 0, 0, 0]]
    plan_of(agent).levels[IMPATIENCE] = impatience
    chance = max(epsilon, impatience)
    second = (np.arange(1200) + 0.5) / 1200
    for states in ([0, 1, 2], [0, 0, 1], [3, 3, 3], [0, 1, 3]):
        agent.memory.S[:] = states
        p = agent.probabilities()
        sums = agent.memory.Q[states].sum(axis=0)
        best = sums == sums.max()
        np.testing.assert_allclose(p, (1 - chance) * best / best.sum() + chance / 4, rtol=0, atol=1e-15)
        share = np.zeros(4)
        # Just below the chance of exploring it explores, at it it does not.
        for u, weight in ((np.nextafter(chance, 0), chance), (chance, 1 - chance)):
            for v in second:
                numbers = agent.exploration.need(2)._replace(block=np.array([u, v]), cursor=np.zeros(1, dtype=np.int64))
                share[act(agent.rules, agent.memory, agent.plan_table, numbers)] += weight / second.size
                assert numbers.cursor[0] == 2
        # The grid is a multiple of all numbers of ties: not a point is on the wrong side.
        np.testing.assert_allclose(share, p, rtol=0, atol=1e-12)


def test_impatience_comes_when_an_end_is_late_and_goes_with_it() -> None:
    agent = Agent(Space((2,)), 2, planned(1), seed=1)

    def step(*, ended: bool = False) -> float:
        if not agent.ready:
            agent.begin([0])
        agent.act()
        agent.learn(1.0, [0], ended)
        return float(plan_of(agent).levels[IMPATIENCE])

    # The task may be one that never ends: 1/√t, .1 at most.
    before = [step() for _ in range(399)]
    assert before == [min(0.1, 1 / np.sqrt(t + 1)) for t in range(1, 400)]
    assert step(ended=True) == 0.0
    # 400 steps to an end: after more than 1200 without one it is late.
    assert [step() for _ in range(1201)] == [0.0] * 1200 + [0.1]
    assert step(ended=True) == 0.0
    # Two ends in 1602 steps: after more than 3 * 801.
    assert [step() for _ in range(2404)] == [0.0] * 2403 + [0.1]


# --- the product of components ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "steps"), [((4,) * 8, 150), ((100, 3), 500), ((90,), 300), ((2,) * 6, 60), ((1,), 3)]
)
def test_the_product_of_components_has_64_states_at_most_and_adds_up_to_1(sizes: tuple[int, ...], steps: int) -> None:
    space, rng = Space(sizes), np.random.default_rng(1)
    agent = Agent(space, 2, planned(2, 1), seed=1)
    twin, _, _ = twin_of(agent)
    # The largest values first: the product lists them by how often they came, not by their size.
    values = [int(size - 1 - rng.integers(size)) for size in sizes]
    agent.begin(values)
    twin.begin(tuple(values))
    for _ in range(steps):
        action = agent.act()
        shown = tuple(None if rng.random() < 0.2 else int(rng.integers(size)) for size in sizes)
        agent.learn(0.0, shown, terminated=False)
        twin.act()
        twin.learn(action, 0.0, shown, terminated=False)
    model, lengths = plan_of(agent).model, set()
    for _ in range(40):
        state = tuple(int(rng.integers(size)) for size in sizes)
        action = int(rng.integers(2))
        n = expand(pack(space.encode(state), space.layout), action, model, space.layout)
        lengths.add(n)
        assert 1 <= n <= 64
        assert model.weight[:n].sum() == pytest.approx(1.0, abs=1e-12)
        assert not model.sums.any()
        found = dict(zip(model.successor[:n].tolist(), model.weight[:n].tolist(), strict=True))
        assert len(found) == n
        expected = {rows(space, x): P for x, P in twin.successors(state, action).items()}
        assert found == pytest.approx(expected, rel=1e-12)
    assert (max(lengths) > 30) == (np.prod(sizes) >= 64)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lake", "random"])
def test_an_agent_that_was_saved_halfway_ends_as_one_that_was_not(name: str, tmp_path: Path) -> None:
    mdp = a_world(name)
    for i, (K, budget, epsilon, kappa) in enumerate(CASES[::4]):
        case = planned(K, budget, epsilon, kappa)
        whole, half = (Run(mdp, parse("mcar:0.4", mdp), case, seed=i) for _ in range(2))
        whole.advance(800)
        half.advance(350)
        half.save(tmp_path / f"{i}")
        half = Run.load(tmp_path / f"{i}", mdp, parse("mcar:0.4", mdp))
        half.advance(450)
        (header, arrays), (again, same) = whole.agent.to_parts(), half.agent.to_parts()
        assert header == again
        assert all(arrays[part].tobytes() == same[part].tobytes() for part in arrays)
        assert_in_order(half.agent)
