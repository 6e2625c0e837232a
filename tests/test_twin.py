"""The product equals the dictionary-and-loops twin of `naive.py`, which was written from the specification alone."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS
from lacuna.agent.settings import VOTES, Settings
from lacuna.agent.voting import action_probabilities
from lacuna.kernels.codes import unpack
from lacuna.kernels.space import Space
from lacuna.missingness import mcar
from lacuna.run.loop import Trace
from lacuna.run.run import Run
from lacuna.worlds.mdp.tabular import TabularMDP
from naive import SAMPLE, NaiveLearner, Path, State
from problems import LEARNERS, READINGS, Numbers, follower, lake, masks_for, mechanisms, with_none

SEED, STEPS = 5, 120

# The planner has a twin of its own, in `test_planning.py`.
FOLLOWED = [method.name for method in METHODS.values() if not method.plans]


def twin_of(run: Run) -> tuple[NaiveLearner, Numbers, Numbers]:
    case = run.agent.settings
    imputation, exploration = Numbers(run.agent.seed, "imputation"), Numbers(run.agent.seed, "exploration")
    twin = NaiveLearner(
        run.mdp.space.sizes, run.mdp.n_actions, method=case.method, K=case.pathways, alpha=case.alpha,
        gamma=case.gamma, epsilon=case.epsilon, vote=case.vote, update=case.update, p_shuffle=case.p_shuffle,
        kappa=case.rules.kappa, smoothing=case.rules.smoothing, parents=case.parents, optimism=case.optimism,
        cycles=case.rules.cycles, q_table=case.q_table, assumed=case.rules.assumed,
        evidence=str(case.sources.name).lower(), imputation=imputation, exploration=exploration,
    )  # fmt: skip
    return twin, imputation, exploration


def first_seen(mdp: TabularMDP, way: int) -> State:
    """What the only state of a start shows: all of it."""
    (state,) = mdp.starts[way]
    return mdp.space.decode(int(mdp.shows[state]))


def row_of(path: Path, space: Space, method: str) -> int:
    """Row of Q that a pathway of the twin stands for; -1 for none."""
    if path is None:
        return -1
    grown = method == "missing-as-state"
    row = 0
    for value, size in zip(path, space.sizes, strict=True):
        row = row * (size + grown) + (size if value is None else value)
    return row


def follow(twin: NaiveLearner, run: Run, trace: Trace) -> None:
    """Feed the twin what the run saw, did and got; after every step the pathways must be the same."""
    mdp, method = run.mdp, run.agent.settings.method
    twin.begin(first_seen(mdp, 0))
    for t, action in enumerate(trace.action.tolist()):
        terminated = bool(trace.ended[t]) and mdp.terminates
        twin.learn(action, float(trace.reward[t]), with_none(trace.seen[t]), terminated)
        assert [row_of(path, mdp.space, method) for path in twin.paths] == trace.pathways[t].tolist(), f"step {t}"
        if terminated or trace.truncated[t]:
            twin.begin(first_seen(mdp, int(mdp.restart[trace.arrival[t]])))


def q_tables(twin: NaiveLearner, space: Space, n_actions: int) -> NDArray[np.float64]:
    """The values of all pathways, one table after the other; one table if they share it."""
    grown = [size + (twin.method == "missing-as-state") for size in space.sizes]
    tables = np.zeros((len(twin.Qs) if twin.own else 1, int(np.prod(grown)), n_actions))
    for table, Q in zip(tables, twin.Qs, strict=False):
        for (path, action), value in Q.items():
            if path is not None:
                table[row_of(path, space, twin.method), action] = value
    return tables


Rows = dict[tuple[int, int, int], list[tuple[int, int]]]


def rows_of(twin: NaiveLearner, space: Space) -> Rows:
    """The counts by model, state and action: next states in the order of their row, on which draws depend."""
    models = twin.models if twin.method == "mi-separate" else twin.models[:1]
    return {
        (m, row_of(s, space, ""), a): [(row_of(s_next, space, ""), n) for s_next, n in row.items()]
        for m, model in enumerate(models)
        for (s, a), row in model.items()
        if row
    }


def counted_rows(agent: Agent) -> Rows:
    """The same of an agent."""
    found, arrays = Rows(), agent.model.to_arrays()
    ends = np.cumsum(arrays["lengths"])
    for key, length, end in zip(arrays["keys"].tolist(), arrays["lengths"].tolist(), ends.tolist(), strict=True):
        m, rest = divmod(key, agent.space.n_states * agent.n_actions)
        codes, units = (arrays[name][end - length : end].tolist() for name in ("codes", "units"))
        states = [int(unpack(code, agent.space.layout)) for code in codes]
        found[m, *divmod(rest, agent.n_actions)] = list(zip(states, units, strict=True))
    return found


def mean_counts(rows: Rows, unit: float) -> dict[tuple[int, int, int], float]:
    found: dict[tuple[int, int, int], float] = {}
    for (_, s, a), row in rows.items():
        for s_next, n in row:
            found[s, a, s_next] = found.get((s, a, s_next), 0.0) + n * unit
    return found


def component_rows(agent: Agent) -> dict[tuple[int, int, int, int, int], list[tuple[int, float]]]:
    """The component counts by component, the one it is counted with (itself if none), their values and the action."""
    sizes, base = agent.space.sizes, agent.components.search.first
    places = {
        (int(agent.space.layout.offsets[j]) + u): (j, j, u, u) for j, size in enumerate(sizes) for u in range(size)
    }
    for j, p in np.ndindex(base.shape):
        both = np.ndindex(sizes[j], sizes[p]) if j != p else ((u, u) for u in range(sizes[j]))
        places |= {int(base[j, p]) + i: (j, p if j != p else SAMPLE, *pair) for i, pair in enumerate(both)}
    rows: dict[tuple[int, int, int, int, int], list[tuple[int, float]]] = {}
    for (place, a, v), n in agent.components.counts:
        rows.setdefault((*places[place], a), []).append((v, n))
    return rows


def compare(twin: NaiveLearner, run: Run) -> None:
    agent, space = run.agent, run.mdp.space
    rows = rows_of(twin, space)
    assert counted_rows(agent) == rows
    assert dict(agent.counts) == pytest.approx(mean_counts(rows, agent.settings.unit), rel=1e-12, abs=0)
    twins = {key: list(row.items()) for key, row in twin.parts.items() if row}
    assert component_rows(agent) == twins
    parents = [twin.parent(j) for j in range(space.d)]
    assert list(agent.parent_of.values()) == [None if p is None else space.names[p] for p in parents]
    for (j, p), weight in twin.likelier.items():
        if agent.settings.parents > 0 and p != j:
            assert agent.components.search.weight[j, p] == weight
    tables = q_tables(twin, space, agent.n_actions)
    np.testing.assert_allclose(agent.memory.Q, np.concatenate(tables), rtol=0, atol=1e-9)
    np.testing.assert_allclose(agent.Q, tables.mean(axis=0), rtol=0, atol=1e-9)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("case", [case for case in LEARNERS if case.method in FOLLOWED], ids=str)
def test_a_run_is_what_the_twin_makes_of_its_record(case: Settings, reading: str) -> None:
    mdp = lake(reading)
    mechanism_of = mechanisms(mdp)
    for name in masks_for(case, reading):
        run = Run(mdp, mechanism_of[name], case, seed=SEED)
        trace = run.record(STEPS)
        twin, imputation, _ = twin_of(run)
        follow(twin, run, trace)
        compare(twin, run)
        assert imputation.used == run.agent.imputation.position, name
        assert run.agent.exploration.position == (1 + (case.epsilon > 0)) * STEPS


@pytest.mark.parametrize("K", [1, 5])
@pytest.mark.parametrize(("theta", "steps"), [(0.4, 1200), (0.1, 4000)])
def test_parents_are_found_and_used_as_the_twin_does(theta: float, steps: int, K: int) -> None:
    mdp = follower()
    run = Run(mdp, mcar(mdp.space, theta), Settings("mi-available", K, gamma=0.9, epsilon=0.3, parents=0.5), seed=SEED)
    trace = run.record(steps)
    # Where little is hidden, complete transitions are seen often enough to come in bundles.
    assert (max(run.agent.counts.values()) > 16) == (theta == 0.1)
    assert dict(run.agent.parent_of) == {"signal": None, "echo": "signal", "noise": None}
    twin, imputation, _ = twin_of(run)
    follow(twin, run, trace)
    compare(twin, run)
    assert imputation.used == run.agent.imputation.position


@pytest.mark.parametrize("reading", READINGS)
def test_the_twin_is_followed_through_ends(reading: str) -> None:
    mdp = lake(reading)
    for method in FOLLOWED:
        run = Run(mdp, mcar(mdp.space, 0.3), Settings(method, epsilon=0.5, gamma=0.9), seed=1)
        trace = run.record(1500)
        assert trace.ended.any()
        assert trace.truncated.any() == (reading == "episodic")
        twin, imputation, _ = twin_of(run)
        follow(twin, run, trace)
        compare(twin, run)
        assert imputation.used == run.agent.imputation.position


def test_incomplete_first_states_are_guessed_as_the_twin_guesses_them() -> None:
    space = Space((3, 2, 4))
    for method in FOLLOWED:
        agent = Agent(space, 3, Settings(method, gamma=0.5, epsilon=0.3), seed=9)
        imputation, exploration = Numbers(9, "imputation"), Numbers(9, "exploration")
        twin = NaiveLearner(
            space.sizes, 3, method=method, K=agent.settings.pathways, alpha=0.1, gamma=0.5, epsilon=0.3,
            kappa=agent.rules.kappa, smoothing=agent.rules.smoothing, evidence=str(agent.settings.sources.name).lower(),
            cycles=agent.rules.cycles, assumed=agent.rules.assumed, imputation=imputation, exploration=exploration,
        )  # fmt: skip
        for first in product((None, 2), (None, 0), (None, 3)):
            agent.begin(first)
            twin.begin(first)
            assert agent.act() == twin.act()
            assert imputation.used == agent.imputation.position
            assert exploration.used == agent.exploration.position
            np.testing.assert_allclose(agent.probabilities(), twin.probabilities(), rtol=0, atol=1e-12)
            agent.learn(1.0, [None, 1, None], terminated=False)
            twin.learn(agent._action, 1.0, (None, 1, None), terminated=False)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("method", FOLLOWED)
def test_the_twin_makes_the_same_decisions_where_arithmetic_is_exact(method: str, reading: str) -> None:
    mdp = lake(reading)
    single = Settings(method, 1 if METHODS[method].multiple else None, alpha=1.0, gamma=1.0, epsilon=0.1)
    for mechanism in mechanisms(mdp).values():
        run = Run(mdp, mechanism, single, seed=SEED)
        trace = run.record(300)
        twin, imputation, exploration = twin_of(run)
        twin.begin(first_seen(mdp, 0))
        for t, action in enumerate(trace.action.tolist()):
            assert twin.act() == action, f"step {t}"
            terminated = bool(trace.ended[t]) and mdp.terminates
            twin.learn(action, float(trace.reward[t]), with_none(trace.seen[t]), terminated)
            if terminated or trace.truncated[t]:
                twin.begin(first_seen(mdp, int(mdp.restart[trace.arrival[t]])))
        # Whole rewards, rate 1 and no discount: not a bit is lost, so the tables are the same and not only close.
        assert np.array_equal(run.agent.Q, q_tables(twin, mdp.space, mdp.n_actions)[0])
        assert (imputation.used, exploration.used) == (
            run.agent.imputation.position,
            run.agent.exploration.position,
        )


@given(
    table=st.integers(1, 6).flatmap(
        lambda A: st.lists(st.lists(st.integers(-1, 1), min_size=A, max_size=A), min_size=4, max_size=4)
    ),
    pathways=st.lists(st.integers(0, 3), min_size=1, max_size=9),
    vote=st.sampled_from(VOTES),
    epsilon=st.sampled_from([0.0, 1e-12, 0.05, 0.5, 1.0]),
)
@effort(max_examples=300)
def test_probabilities_are_those_of_the_twin(
    table: list[list[int]], pathways: list[int], vote: str, epsilon: float
) -> None:
    Q = np.array(table, dtype=np.float64)
    A = Q.shape[1]
    twin = NaiveLearner((4,), A, method="mi-synthetic", K=len(pathways), alpha=1.0, gamma=1.0, epsilon=epsilon,
                        vote=vote, imputation=[], exploration=[])  # fmt: skip
    twin.Q.update({((s,), a): Q[s, a] for s in range(4) for a in range(A)})
    twin.paths = [(s,) for s in pathways]
    p = np.empty(A)
    action_probabilities(Q, np.array(pathways), VOTES.index(vote), epsilon, p, np.empty(A))
    np.testing.assert_allclose(p, twin.probabilities(), rtol=0, atol=1e-12)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
