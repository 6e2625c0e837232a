"""Laws that hold whatever the numbers: plain Q-learning without missingness, symmetry, no leak, exact counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS, Impute, Teach
from lacuna.agent.settings import UPDATES, VOTES, Settings
from lacuna.kernels.space import Space
from lacuna.missingness import mcar, none
from lacuna.run.loop import Trace
from lacuna.run.run import Run
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.mdp.tabular_env import TabularEnv
from problems import READINGS, lake, mechanisms

VOTING = [method.name for method in METHODS.values() if method.votes]
Q_LEARNING = [method.name for method in METHODS.values() if method.steps_in_q]
STEPS = 1500
Table = NDArray[np.float64]


def recorded(reading: str, case: Settings, theta: float = 0.0, steps: int = STEPS, seed: int = 2) -> tuple[Run, Trace]:
    mdp = lake(reading)
    run = Run(mdp, mcar(mdp.space, theta), case, seed=seed)
    return run, run.record(steps)


def plain_q_learning(mdp: TabularMDP, trace: Trace, rate: float, gamma: float, loops: int = 1) -> Table:
    """The textbook's table from a fully observed record: no bootstrap at an end, as usual where it was cut off.

    Where a state is followed by itself and goes on, `loops` updates at ``1 - (1 - rate)**(1/loops)`` each.
    """
    Q = np.zeros((mdp.space.n_states, mdp.n_actions))
    step = 1 - (1 - rate) ** (1 / loops)
    for t, a in enumerate(trace.action.tolist()):
        s, s_next = int(mdp.shows[trace.state[t]]), int(mdp.space.encode(trace.seen[t].tolist()))
        ends = bool(trace.ended[t]) and mdp.terminates
        if s == s_next and not ends and loops > 1:
            for _ in range(loops):
                Q[s, a] += step * (trace.reward[t] + gamma * Q[s].max() - Q[s, a])
        else:
            target = trace.reward[t] if ends else trace.reward[t] + gamma * Q[s_next].max()
            Q[s, a] += rate * (target - Q[s, a])
    return Q


def complete_rows(agent: Agent) -> Table:
    """Q of the complete states: where "missing" is a value, the rows without it."""
    if agent.settings.method != "missing-as-state":
        return np.array(agent.Q)
    grown = tuple(size + 1 for size in agent.space.sizes)
    rows = [np.ravel_multi_index(agent.space.decode(s), grown) for s in range(agent.space.n_states)]
    return np.array(agent.Q[rows])


# --- nothing hidden ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("method", Q_LEARNING)
def test_one_pathway_and_nothing_hidden_is_plain_q_learning_to_the_bit(method: str, reading: str) -> None:
    for alpha, gamma in ((0.1, 1.0), (0.3, 0.9), (1.0, 0.5), (0.7, 0.0)):
        case = Settings(method, 1 if method in VOTING else None, alpha, gamma, epsilon=0.2)
        run, trace = recorded(reading, case)
        assert trace.ended.any()
        assert np.array_equal(complete_rows(run.agent), plain_q_learning(run.mdp, trace, alpha, gamma))


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("method", VOTING)
def test_k_pathways_and_nothing_hidden_is_q_learning_at_the_effective_rate(method: str, reading: str) -> None:
    for K, alpha, gamma in ((2, 1.0, 0.9), (10, 0.1, 1.0), (5, 0.6, 0.5)):
        run, trace = recorded(reading, Settings(method, K, alpha, gamma, epsilon=0.2))
        effective = 1 - (1 - alpha / K) ** K
        expected = plain_q_learning(run.mdp, trace, effective, gamma, loops=K)
        np.testing.assert_allclose(run.agent.Q, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", VOTING)
def test_the_exact_alternatives_learn_at_exactly_alpha(method: str) -> None:
    for alpha in (0.1, 0.6, 1.0):
        run, trace = recorded("episodic", Settings(method, 7, alpha, 0.9, 0.2, update="simultaneous"))
        assert np.array_equal(run.agent.Q, plain_q_learning(run.mdp, trace, alpha, 0.9))
        run, trace = recorded("episodic", Settings(method, 7, alpha, 0.9, 0.2, update="exact-rate"))
        expected = plain_q_learning(run.mdp, trace, alpha, 0.9, loops=7)
        np.testing.assert_allclose(run.agent.Q, expected, rtol=0, atol=1e-9)


def one_step(case: Settings, reward: float, arrival: int, *, terminated: bool = False, Q: float = 0.0) -> float:
    """Q(0, 0) after one step from state 0; the other values of state 1 are `Q`."""
    agent = Agent(Space((2,)), 1, case)
    agent.memory.Q[1] = Q
    agent.begin([0])
    agent.act()
    agent.learn(reward, [arrival], terminated)
    return float(agent.Q[0, 0])


@pytest.mark.parametrize("method", VOTING)
@pytest.mark.parametrize(
    ("K", "alpha", "rate"),
    [(2, 1.0, 0.75), (10, 1.0, 0.6513215599), (10, 0.1, 0.0956), (1000, 1.0, 1 - np.exp(-1)), (1, 0.3, 0.3)],
)
def test_the_effective_rate_is_that_of_the_specification(method: str, K: int, alpha: float, rate: float) -> None:
    case = Settings(method, K, alpha, gamma=0.5)
    tolerance = {1000: 2e-4, 10: 1e-4}.get(K, 1e-15)
    assert one_step(case, 1.0, 1) == pytest.approx(rate, abs=tolerance)
    assert one_step(case, 1.0, 1, Q=8.0) == pytest.approx(5 * rate, abs=5 * tolerance)
    assert one_step(case, 1.0, 0, terminated=True) == pytest.approx(rate, abs=tolerance)
    assert one_step(case, 1.0, 1, terminated=True, Q=8.0) == pytest.approx(rate, abs=tolerance)


@pytest.mark.parametrize("method", VOTING)
def test_a_state_that_follows_itself_is_looped(method: str) -> None:
    # While the action is the argmax, each update is q + r (1 + gamma q - q), which contracts by 1 - r (1 - gamma)
    # towards 1/(1 - gamma): with alpha = 1, K = 10, gamma = 0.5 that is 2 (1 - 0.95**10) = 0.803, not 0.651.
    looped = one_step(Settings(method, 10, 1.0, 0.5), 1.0, 0)
    assert looped == pytest.approx(2 * (1 - 0.95**10), abs=1e-12)
    assert looped == pytest.approx(0.803, abs=5e-4)
    rate = 1 - (1 - 0.4) ** (1 / 6)
    fixed = 1 / (1 - 0.5)
    exact = one_step(Settings(method, 6, 0.4, 0.5, update="exact-rate"), 1.0, 0)
    assert exact == pytest.approx(fixed * (1 - (1 - rate * 0.5) ** 6), abs=1e-12)
    assert one_step(Settings(method, 6, 0.4, 0.5, update="simultaneous"), 1.0, 0) == 0.4
    # A punished action does not become the argmax of a state that has a better one: then nothing is different.
    agent = Agent(Space((2,)), 2, Settings(method, 10, 1.0, 0.5, update="sequential"), seed=1)
    agent.begin([0])
    action = agent.act()
    agent.learn(-1.0, [0], terminated=False)
    assert agent.Q[0, action] == pytest.approx(-0.6513215599, abs=1e-10)


@pytest.mark.parametrize("method", VOTING)
@pytest.mark.parametrize("update", UPDATES)
def test_pathways_that_coincide_by_chance_are_updated_as_those_that_must(method: str, update: str) -> None:
    # The second component has one value, so a hidden one is always guessed right: all pathways coincide, one by one.
    case = Settings(method, 8, 0.6, 0.9, update=update)  # type: ignore[arg-type]
    seen, hidden = (Agent(Space((3, 1)), 2, case, seed=4) for _ in range(2))
    seen.begin([0, 0])
    hidden.begin([0, None])
    rng = np.random.default_rng(0)
    for _ in range(200):
        value, reward = int(rng.integers(3)), float(rng.normal())
        assert seen.act() == hidden.act()
        seen.learn(reward, [value, 0], terminated=False)
        hidden.learn(reward, [value, None], terminated=False)
        np.testing.assert_allclose(seen.Q, hidden.Q, rtol=0, atol=1e-12)
    every = METHODS[method].teach in (Teach.EVERY_PATHWAY, Teach.OWN_PATHWAY)
    assert len(hidden.counts) == (len(seen.counts) if every else 0)


# --- symmetry and streams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_relabelling_a_component_that_is_never_hidden_permutes_q(method: str) -> None:
    mdp = lake("episodic")
    order = np.random.default_rng(3).permutation(8)
    if METHODS[method].impute == Impute.ASSUMED_STATE:
        # The first value means something, even if it is never hidden.
        order = np.append(0, 1 + np.random.default_rng(3).permutation(7))
    values = np.stack(np.unravel_index(mdp.shows, mdp.space.sizes))
    values[0] = order[values[0]]
    relabelled = replace(mdp, shows=np.ravel_multi_index(tuple(values), mdp.space.sizes).astype(np.int64))
    theta = (0.0, 0.5, 0.5)
    one, two = (
        Run(world, mcar(world.space, theta), Settings(method, gamma=0.9, epsilon=0.1), seed=8)
        for world in (mdp, relabelled)
    )
    left, right = one.record(STEPS), two.record(STEPS)
    assert np.array_equal(left.action, right.action)
    assert np.array_equal(left.arrival, right.arrival)
    grown = tuple(size + (method == "missing-as-state") for size in mdp.space.sizes)
    grown_order = np.append(order, 8) if method == "missing-as-state" else order
    tables = [run.agent.Q.reshape(*grown, -1) for run in (one, two)]
    assert np.array_equal(tables[0], tables[1][grown_order])
    assert not np.array_equal(tables[0], tables[1])


@pytest.mark.parametrize("method", VOTING)
@pytest.mark.parametrize("vote", VOTES)
def test_mixing_one_pathway_changes_nothing_and_draws_no_coin(method: str, vote: str) -> None:
    base = Settings(method, 1, 0.3, 0.9, 0.1, vote)  # type: ignore[arg-type]
    (plain, left), (mixed, right) = (
        recorded("episodic", case, theta=0.4) for case in (base, replace(base, p_shuffle=0.7))
    )
    assert all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))
    assert np.array_equal(plain.agent.Q, mixed.agent.Q)
    assert plain.agent.imputation.position == mixed.agent.imputation.position


@pytest.mark.parametrize("method", VOTING)
def test_mixing_more_pathways_breaks_the_pairs_but_loses_none(method: str) -> None:
    base = Settings(method, 6, 0.3, 0.9)
    (plain, _), (mixed, right) = (recorded("episodic", case, 0.5) for case in (base, replace(base, p_shuffle=1.0)))
    assert not np.array_equal(plain.agent.Q, mixed.agent.Q)
    complete = (right.seen >= 0).all(axis=1)
    # A full permutation of 6 next states takes a coin and 5 numbers a step, and 6 where they must be guessed; a chain
    # of 5 cycles through h > 1 hidden components, of which the first needs no start, takes 6 h - 1 for each.
    hidden = (right.seen < 0).sum(axis=1)[~complete]
    each = np.where(hidden > 1, 6 * hidden - 1, 1) if METHODS[method].chains else np.ones_like(hidden)
    assert mixed.agent.imputation.position == 6 * STEPS + 6 * int(each.sum())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("vote", VOTES)
def test_a_hidden_value_changes_nothing(method: str, vote: str) -> None:
    case = Settings(method, epsilon=0.2, gamma=0.9, vote=vote if method in VOTING else "sampled")  # type: ignore[arg-type]
    rng = np.random.default_rng(6)
    agents = [Agent(Space((3, 4)), 3, case, seed=2) for _ in range(2)]
    for _ in range(300):
        values, mask = rng.integers((3, 4)), rng.integers(2, size=2)
        lies = np.where(mask == 1, rng.integers((3, 4)), values)
        ended, reward = bool(rng.random() < 0.1), float(rng.normal())
        for agent, shown in zip(agents, (values, lies), strict=True):
            if not agent.ready:
                agent.begin({"values": shown, "mask": mask})
            agent.act()
            agent.learn(reward, {"values": shown, "mask": mask}, ended)
        assert agents[0].pathways == agents[1].pathways
    (left, arrays), (right, same) = (agent.to_parts() for agent in agents)
    assert left == right
    assert all(arrays[name].tobytes() == same[name].tobytes() for name in arrays)


@pytest.mark.parametrize("reading", READINGS)
def test_missingness_leaves_the_world_path_of_fixed_actions_unchanged(reading: str) -> None:
    mdp = lake(reading)
    uniform = Settings("last-observed", epsilon=1.0)
    paths = []
    for mechanism in (none(mdp.space), *mechanisms(mdp).values()):
        # With epsilon = 1 the actions come from the exploration stream alone, whatever is hidden.
        trace = Run(mdp, mechanism, uniform, seed=3).record(400)
        paths.append((trace.action.tolist(), trace.state.tolist(), trace.arrival.tolist(), trace.reward.tolist()))
    assert all(path == paths[0] for path in paths)
    env = TabularEnv(mdp)
    env.reset(seed=3)
    states = []
    for action in paths[0][0][:50]:
        env.step(action)
        states.append(env.true_state)
    assert states == paths[0][2][:50]


# --- what is counted, and when --------------------------------------------------------------------------------------


def complete_pairs(mdp: TabularMDP, trace: Trace) -> dict[tuple[int, int, int], float]:
    """Transitions whose two states were fully observed, from a record; a first state always is."""
    pairs: dict[tuple[int, int, int], float] = {}
    before = True
    for t in range(trace.action.size):
        complete = bool((trace.seen[t] >= 0).all())
        if before and complete:
            key = (int(mdp.shows[trace.state[t]]), int(trace.action[t]), int(mdp.shows[trace.arrival[t]]))
            pairs[key] = pairs.get(key, 0.0) + 1.0
        before = complete or (bool(trace.ended[t]) and mdp.terminates) or bool(trace.truncated[t])
    return pairs


@pytest.mark.parametrize("theta", [0.0, 0.3, 0.9, 1.0])
def test_conservative_counts_are_those_of_complete_pairs(theta: float) -> None:
    run, trace = recorded("episodic", Settings("mi-conservative", 4, epsilon=0.3), theta)
    assert dict(run.agent.counts) == complete_pairs(run.mdp, trace)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("K", [1, 3, 10])
def test_synthetic_counts_sum_to_the_steps(K: int, reading: str) -> None:
    run, _ = recorded(reading, Settings("mi-synthetic", K, p_shuffle=0.5, gamma=0.9), 0.5)
    assert sum(run.agent.counts.values()) == pytest.approx(STEPS, abs=1e-9)


@pytest.mark.parametrize("method", [*VOTING, "mi-planned"])
def test_all_pathways_equal_a_fully_observed_state(method: str) -> None:
    p_shuffle = 0.3 if method in VOTING else 0.0
    run, trace = recorded("episodic", Settings(method, 5, p_shuffle=p_shuffle, epsilon=0.2), 0.4)
    complete = (trace.seen >= 0).all(axis=1)
    truth = run.mdp.shows[trace.arrival]
    assert (trace.pathways[complete] == truth[complete][:, None]).all()
    assert (trace.pathways[~complete] != truth[~complete][:, None]).any()
    # What was seen of an incomplete state is kept by every pathway.
    for seen, states in zip(trace.seen, trace.pathways, strict=True):
        values = np.stack(np.unravel_index(states, run.mdp.space.sizes))
        assert (values[seen >= 0] == seen[seen >= 0][:, None]).all()


@pytest.mark.parametrize("method", Q_LEARNING)
def test_an_end_is_never_used_to_guess(method: str) -> None:
    base = Settings(method, gamma=0.9)
    one, two = (Agent(Space((4, 4)), 2, base, seed=5) for _ in range(2))
    for agent in (one, two):
        agent.begin([0, 0])
        for reward in (1.0, -1.0, 2.0):
            agent.act()
            agent.learn(reward, [1, None], terminated=False)
        agent.act()
    one.learn(1.0, [None, 2], terminated=True)
    two.learn(1.0, [None, 2], terminated=False)
    assert one.pathways == two.pathways
    assert one.imputation.position == two.imputation.position
    assert dict(one.counts) == dict(two.counts)


@pytest.mark.parametrize("method", Q_LEARNING)
def test_an_episode_that_was_cut_off_bootstraps_and_then_begins_anew(method: str) -> None:
    # One action, three states in a row, cut off after two steps: 0 -> 1 -> 2, never an end.
    mdp = TabularMDP.build(
        lambda s, _: [(1.0, min(s + 1, 2), float(s), False)], space=Space((3,)), shows=range(3), n_actions=1,
        starts=[{0: 1.0}], max_steps=2,
    )  # fmt: skip
    case = Settings(method, 1 if method in VOTING else None, alpha=1.0, gamma=0.5)
    run = Run(mdp, none(mdp.space), case)
    run.agent.memory.Q[2] = 64.0
    trace = run.record(4)
    assert trace.state.tolist() == [0, 1, 0, 1]
    assert trace.truncated.tolist() == [0, 1, 0, 1]
    assert complete_rows(run.agent)[:, 0].tolist() == [16.5, 33.0, 64.0]
    assert list(run.agent.counts) == ([(0, 0, 1), (1, 0, 2)] if method in VOTING else [])
