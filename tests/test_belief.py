"""The belief of the yardsticks is exact: Bayes' rule, with rewards counted as evidence or ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray

import naive
from lacuna.agent.settings import Settings
from lacuna.kernels.space import Space
from lacuna.missingness import Mechanism, mcar, parse
from lacuna.missingness.label import pattern_probabilities, patterns
from lacuna.missingness.mechanism import mask_probability
from lacuna.run.belief import expect_move, expect_start, take_evidence
from lacuna.run.knowledge import knowledge_of
from lacuna.run.problems import Problem
from lacuna.run.run import Run
from lacuna.run.scene import FRESH_PLACE, Scene, Step
from lacuna.run.yardstick import Yardstick
from lacuna.worlds.lake import Lake
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.mdp.tabular_env import TabularEnv
from lacuna.wrappers import MissingObservation
from naive_belief import NaiveBelief, State
from problems import READINGS, lake, mechanisms

KINDS = tuple(mechanisms(lake("episodic")))
QMDP = {False: "qmdp", True: "qmdp-rewards"}
"""By whether rewards count."""


def with_none(observation: NDArray[np.int64]) -> State:
    return tuple(None if value < 0 else int(value) for value in observation)


def agrees(observation: State, shown: tuple[int, ...]) -> bool:
    return all(seen in (None, value) for seen, value in zip(observation, shown, strict=True))


# --- what is seen --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_probability_of_a_mask(kind: str) -> None:
    mdp = lake("episodic")
    mechanism = mechanisms(mdp)[kind]
    how = mechanism.hiding
    for z in range(how.rates.shape[0]):
        for a in range(-1, mdp.n_actions):
            entry = a if how.rates.shape[1] > 1 else 0
            below = None if mechanism.fallback is None else mechanism.fallback[z, entry]
            table = pattern_probabilities(mechanism.rates[z, entry], below, mechanism.driver, mechanism.whole)
            for s in range(0, mdp.n_states, 7):
                row = (0, int(mdp.shows[s]), s)[how.by]
                for m, hidden in enumerate(patterns(3)):
                    observation = np.where(hidden, -1, mdp.dynamics.shown[s])
                    if not mechanism.whole or len(set(hidden.tolist())) == 1:
                        p = mask_probability(observation, int(mdp.shows[s]), s, a, z, how)
                        assert p == pytest.approx(table[m, row], abs=1e-12)


# --- the twin ------------------------------------------------------------------------------------------------------


def twin_of(mdp: TabularMDP, mechanism: Mechanism, *, first_observed: bool, uses_rewards: bool) -> NaiveBelief:
    """The twin in a world and with a mechanism of ours, of which it is told the tables."""
    chain = np.ones((1, 1)) if mechanism.chain is None else mechanism.chain

    def starts(state: int | None) -> Mapping[int, float]:
        return mdp.starts[0 if state is None else mdp.restart[state]]

    def outcomes(state: int, action: int) -> list[tuple[float, int, float, bool]]:
        return [(p, after, r, ends and mdp.terminates) for p, after, r, ends in mdp.outcomes(state, action)]

    def sees(mode: int, state: int, action: int | None, observation: State) -> dict[int, float]:
        if not agrees(observation, mdp.space.decode(int(mdp.shows[state]))):
            return {}
        if action is None and first_observed:
            return {mode: 1.0}
        hidden = int("".join("1" if value is None else "0" for value in observation), 2)
        entry = (-1 if action is None else action) if mechanism.rates.shape[1] > 1 else 0
        row = (0, int(mdp.shows[state]), state)[mechanism.by]
        found = {}
        for now in range(chain.shape[0]):
            rates = mechanism.rates[now, entry, row : row + 1]
            low = None if mechanism.fallback is None else mechanism.fallback[now, entry, row : row + 1]
            mask = pattern_probabilities(rates, low, mechanism.driver, mechanism.whole)[hidden, 0]
            found[now] = float(chain[mode, now] * mask)
        return found

    return NaiveBelief(outcomes, starts, sees, uses_rewards=uses_rewards)


def as_array(twin: NaiveBelief, like: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.zeros_like(like)
    for place, p in twin.weights.items():
        weights[place] = p
    return weights


class Kernels:
    """The belief of the kernels, fed by hand."""

    def __init__(self, mdp: TabularMDP, mechanism: Mechanism, *, first_observed: bool, uses_rewards: bool) -> None:
        self.mdp, self.mechanism, self.first_observed = mdp, mechanism, first_observed
        self.fresh = True
        self.knowledge = knowledge_of(mdp, mechanism, Settings(QMDP[uses_rewards], gamma=0.9))
        self.belief = self.knowledge.belief
        self.observation = np.zeros(mdp.space.d, dtype=np.int64)
        mask, place = np.zeros(mdp.space.d, dtype=np.bool_), np.array(FRESH_PLACE)
        self.scene = Scene(mdp.dynamics, mechanism.hiding, first_observed, place, self.observation, mask, None)

    def begin(self, seen: NDArray[np.int64]) -> None:
        expect_start(self.fresh, self.mdp.dynamics, self.knowledge)
        self.fresh = False
        self._condition(-1, seen, masked=not self.first_observed)

    def learn(self, action: int, reward: float, seen: NDArray[np.int64], terminated: bool) -> None:
        step = Step(0, 0, reward, terminated, terminated, terminated)
        expect_move(action, step, self.mdp.dynamics, self.knowledge)
        self._condition(action, seen, masked=True)

    def _condition(self, action: int, seen: NDArray[np.int64], *, masked: bool) -> None:
        self.observation[:] = seen
        take_evidence(action, masked, self.scene, self.mdp.space.layout, self.knowledge)


@pytest.mark.parametrize("uses_rewards", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", READINGS)
def test_the_belief_is_exact(reading: str, kind: str, uses_rewards: bool) -> None:
    mdp = lake(reading)
    mechanism = mechanisms(mdp)[kind]
    first_observed = kind not in {"whole:0.3", "bursts-each:0.2,0.4", "driver"}
    kernels = Kernels(mdp, mechanism, first_observed=first_observed, uses_rewards=uses_rewards)
    twin = twin_of(mdp, mechanism, first_observed=first_observed, uses_rewards=uses_rewards)
    base = TabularEnv(mdp)
    env = MissingObservation(base, mechanism, first_observed=first_observed)
    chance = np.random.default_rng([ord(letter) for letter in reading + kind])
    surprises = []
    stopped = True
    for t in range(400):
        if stopped:
            seen = env.components(env.reset(seed=1 if t == 0 else None)[0])
            kernels.begin(seen)
            twin.begin(with_none(seen))
        # Now and then an optimal step, so that episodes come to an end.
        optimal = kernels.knowledge.policy[base.true_state]
        action = int(optimal if chance.random() < 0.5 else chance.integers(mdp.n_actions))
        observation, reward, terminated, truncated, _ = env.step(action)
        seen = env.components(observation)
        kernels.learn(action, float(reward), seen, terminated)
        twin.learn(action, float(reward), with_none(seen), terminated)
        assert np.allclose(kernels.belief, as_array(twin, kernels.belief), rtol=1e-9, atol=1e-12)
        states = kernels.belief.sum(axis=0)
        surprises.append(states[base.true_state] - (states**2).sum())
        stopped = terminated or truncated
    # An exact belief gives the truth, on average, the weight that it gives to itself.
    found = np.array(surprises)
    assert abs(found.mean()) <= 4 * found.std(ddof=1) / np.sqrt(found.size) + 1e-12


def belief_of(run: Run) -> NDArray[np.float64]:
    assert isinstance(run.player, Yardstick)
    return run.player.knowledge.belief


def follow(run: Run, twin: NaiveBelief, steps: int, names: list[Any]) -> None:
    """Step a run and tell the twin what it was told; after every step their beliefs must be the same.

    The environment draws from the same streams as the run. `names` has what the twin calls each true state.
    """
    env = MissingObservation(TabularEnv(run.mdp), run.mechanism, first_observed=run.first_observed)
    twin.begin(with_none(env.components(env.reset(seed=run.streams[0].seed)[0])))
    for t in range(steps):
        before = run.tally.actions.copy()
        run.advance(1)
        action = int(np.argmax(run.tally.actions - before))
        observation, reward, terminated, truncated, _ = env.step(action)
        twin.learn(action, float(reward), with_none(env.components(observation)), terminated)
        if terminated or truncated:
            twin.begin(with_none(env.components(env.reset()[0])))
        belief = belief_of(run)
        found = {(z, names[s]): float(belief[z, s]) for z, s in np.argwhere(belief > 0).tolist()}
        assert found == pytest.approx(twin.weights, rel=1e-9, abs=1e-12), f"step {t}"


@pytest.mark.parametrize("uses_rewards", [False, True])
@pytest.mark.parametrize("theta", [0.4, 0.95])
def test_a_run_in_lake_world_has_the_belief_that_the_rules_of_the_world_give(theta: float, uses_rewards: bool) -> None:
    mdp = Lake().mdp()
    names = [(*divmod(s // 2, 8), s % 2 == 1) for s in range(mdp.n_states)]

    def outcomes(state: tuple[int, int, bool], action: int) -> list[tuple[float, Any, float, bool]]:
        table = naive.lake_outcomes(*state, action, wind=0.1, flood=0.1)
        return [(p, key[:3], key[3], key[4]) for key, p in table.items()]

    def sees(mode: int, state: tuple[int, int, bool], action: int | None, observation: State) -> dict[int, float]:
        row, column, flooded = state
        if not agrees(observation, (row, column, naive.colour(row, column, flooded))):
            return {}
        hidden = observation.count(None)
        return {mode: 1.0 if action is None else theta**hidden * (1 - theta) ** (3 - hidden)}

    # A new episode starts with the flood as it was, the first one flooded.
    twin = NaiveBelief(
        outcomes, lambda last: {(*naive.START, last is None or last[2]): 1.0}, sees, uses_rewards=uses_rewards
    )
    run = Run(mdp, mcar(mdp.space, theta), Settings(QMDP[uses_rewards]), seed=4)
    follow(run, twin, 300, names)
    assert run.figures()["episodes"] > 10


@st.composite
def worlds(draw: st.DrawFn) -> TabularMDP:
    """Few true states, some of which show the same, and outcomes that often differ in what they pay only."""
    n_states, n_actions = draw(st.integers(2, 4)), 2
    outcome = st.tuples(
        st.integers(1, 4), st.integers(0, n_states - 1), st.sampled_from([-1.0, 0.1, 0.3]), st.booleans()
    )
    pairs = product(range(n_states), range(n_actions))
    rows = {pair: draw(st.lists(outcome, min_size=1, max_size=5)) for pair in pairs}
    start = {0: 0.5, n_states - 1: 0.5}
    return TabularMDP.build(
        lambda s, a: [(w / sum(row[0] for row in rows[s, a]), *rest) for w, *rest in rows[s, a]],  # type: ignore[misc]
        space=Space((2, 2)), shows=draw(st.lists(st.integers(0, 3), min_size=n_states, max_size=n_states)),
        n_actions=n_actions, starts=[start, {1: 1.0}], restart=np.arange(n_states) % 2,
        terminates=draw(st.booleans()), max_steps=draw(st.integers(0, 5)),
    )  # fmt: skip


@given(worlds(), st.sampled_from(["mcar:0.3", "mcar:0.9", "bursts:0.3,0.4"]), st.booleans(), st.booleans())
@effort(max_examples=60)
def test_a_run_in_any_small_world_has_the_belief_of_the_twin(
    mdp: TabularMDP, missingness: str, first_observed: bool, uses_rewards: bool
) -> None:
    mechanism = parse(missingness, mdp)
    settings = Settings(QMDP[uses_rewards], gamma=0.9)
    run = Run(mdp, mechanism, settings, seed=3, first_observed=first_observed)
    twin = twin_of(mdp, mechanism, first_observed=first_observed, uses_rewards=uses_rewards)
    follow(run, twin, 40, list(range(mdp.n_states)))


# --- what rewards add ----------------------------------------------------------------------------------------------


def bits_of(mdp: TabularMDP, mechanism: Mechanism, settings: Settings) -> list[bytes]:
    run = Run(mdp, mechanism, settings, seed=6)
    run.advance(3000)
    return [part.tobytes() for part in (*run.tally, belief_of(run))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", READINGS)
def test_rewards_that_are_always_the_same_change_no_bit(reading: str, kind: str) -> None:
    paying = lake(reading)
    mdp = replace(paying, reward=np.full_like(paying.reward, -1.0))
    bits = partial(bits_of, mdp, mechanisms(mdp)[kind])
    assert bits(Settings("qmdp", gamma=0.9)) == bits(Settings("qmdp-rewards", gamma=0.9))


@pytest.mark.parametrize("world", ["lake", "corridor", "frozen-lake", "cliff-walking", "taxi"])
def test_rewards_change_no_bit_where_all_is_seen(world: str) -> None:
    # In Lake World the flood stays unseen, but what is paid depends on what is shown only.
    problem = Problem.named(world, "none")
    bits = partial(bits_of, problem.mdp, problem.mechanism)
    assert bits(Settings("qmdp", gamma=0.95)) == bits(Settings("qmdp-rewards", gamma=0.95))


def test_rewards_tell_what_is_never_shown() -> None:
    # A coin is thrown once and lies hidden; to name its side pays 1, to name the other costs 1.
    coin = TabularMDP.build(
        lambda s, a: [(1.0, s, 1.0 if a == s else -1.0, False)],
        space=Space((2,)), shows=[0, 1], n_actions=2, starts=[{0: 0.5, 1: 0.5}], terminates=False,
    )  # fmt: skip
    hidden = mcar(coin.space, 1.0)
    earned: dict[str, set[float]] = {name: set() for name in QMDP.values()}
    for name, seed in product(earned, range(12)):
        run = Run(coin, hidden, Settings(name, gamma=0.9), seed=seed, first_observed=False)
        run.advance(100)
        earned[name].add(100 * run.figures()["reward_per_step"])
    # It takes one step to know; who ignores what was paid names the same side for ever.
    assert earned == {"qmdp": {-100.0, 100.0}, "qmdp-rewards": {98.0, 100.0}}
