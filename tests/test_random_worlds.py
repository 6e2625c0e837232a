"""Worlds drawn at random: what noise does, what depends on what, and the sentences with which they are refused."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.random_worlds import random_world
from lacuna.worlds.registry import WORLDS, make_world

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3))


def target(mdp: TabularMDP, s: int, a: int) -> tuple[int, ...]:
    """Where an action leads without noise: the likeliest outcome."""
    return mdp.space.decode(max(mdp.outcomes(s, a))[1])


def reward_of(mdp: TabularMDP) -> dict[int, float]:
    """The reward of arriving in each state that can be reached."""
    return dict(zip(mdp.next_state.tolist(), mdp.reward.tolist(), strict=True))


@given(shape=SHAPES, factored=st.booleans(), noise=st.floats(0.001, 0.5), seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_noise_moves_one_component_to_any_of_its_values(
    shape: tuple[int, int, int], factored: bool, noise: float, seed: int
) -> None:
    components, size, actions = shape
    mdp = random_world(components, size, actions, factored=factored, noise=noise, seed=seed)
    assert (mdp.n_states, mdp.n_actions) == (size**components, actions)
    for s, a in product(range(mdp.n_states), range(actions)):
        outcomes = mdp.outcomes(s, a)
        assert sum(p for p, *_ in outcomes) == pytest.approx(1.0, abs=1e-12)
        assert len({x for _, x, *_ in outcomes}) == len(outcomes) == 1 + components * (size - 1)
        # A component that takes a random value keeps the one it has with probability 1/size.
        centre, expected = target(mdp, s, a), noise / components / size
        for p, x, _, ends in outcomes:
            moved = sum(u != v for u, v in zip(mdp.space.decode(x), centre, strict=True))
            assert moved <= 1
            assert p == pytest.approx(expected if moved else 1 - noise * (1 - 1 / size), abs=1e-12)
            assert not ends


@given(shape=SHAPES, factored=st.booleans(), seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_without_noise_an_action_leads_to_one_state(shape: tuple[int, int, int], factored: bool, seed: int) -> None:
    components, size, actions = shape
    quiet, noisy = (random_world(components, size, actions, factored, noise, seed) for noise in (0.0, 0.3))
    for s, a in product(range(quiet.n_states), range(actions)):
        (outcome,) = quiet.outcomes(s, a)
        assert outcome[0] == 1.0
        # Noise is all that differs between worlds of one seed.
        assert target(noisy, s, a) == quiet.space.decode(outcome[1])
        assert reward_of(noisy)[outcome[1]] == outcome[2]


def fewest_others(mdp: TabularMDP, j: int) -> int:
    """On how many other components the next value of component `j` depends, besides itself."""
    d = mdp.space.d
    states = [mdp.space.decode(s) for s in range(mdp.n_states)]
    depends = set()
    for (s, values), p, a in product(enumerate(states), range(d), range(mdp.n_actions)):
        for v in range(mdp.space.sizes[p]):
            other = mdp.space.encode((*values[:p], v, *values[p + 1 :]))
            if p != j and target(mdp, s, a)[j] != target(mdp, other, a)[j]:
                depends.add(p)
    return len(depends)


@pytest.mark.parametrize("seed", range(5))
def test_factored_components_depend_on_one_or_two_others_and_unfactored_ones_on_all(seed: int) -> None:
    factored, whole = (random_world(4, 3, 2, factored=kind, noise=0.0, seed=seed) for kind in (True, False))
    assert [fewest_others(factored, j) for j in range(4)] == [1, 2, 1, 2]
    assert [fewest_others(whole, j) for j in range(4)] == [3] * 4


@pytest.mark.parametrize("seed", range(5))
def test_factored_rewards_depend_on_the_first_two_components_and_others_on_the_state(seed: int) -> None:
    factored, whole = (random_world(3, 4, 4, factored=kind, noise=0.5, seed=seed) for kind in (True, False))
    pays: dict[tuple[int, ...], set[float]] = {}
    for s, reward in reward_of(factored).items():
        pays.setdefault(factored.space.decode(s)[:2], set()).add(reward)
    assert all(len(rewards) == 1 for rewards in pays.values())
    assert len({reward for rewards in pays.values() for reward in rewards}) > 5
    by_two: dict[tuple[int, ...], set[float]] = {}
    for s, reward in reward_of(whole).items():
        by_two.setdefault(whole.space.decode(s)[:2], set()).add(reward)
    assert sum(len(rewards) > 1 for rewards in by_two.values()) > 10
    for mdp in (factored, whole):
        assert np.array_equal(mdp.reward, mdp.reward.round(1))
        # One reward a state, whatever led there.
        assert len({*zip(mdp.next_state.tolist(), mdp.reward.tolist(), strict=True)}) == len(reward_of(mdp))


def test_rewards_are_standard_normal_and_next_states_uniform() -> None:
    mdp = random_world(6, 4, 4, noise=0.0, seed=1)
    n = mdp.n_states
    reward = np.array(list(reward_of(mdp).values()))
    error = 1 / np.sqrt(reward.size)
    assert abs(reward.mean()) < 5 * error
    # The variance of a squared standard normal number is 2; rounding to tenths adds .1²/12.
    assert abs((reward**2).mean() - 1 - 0.01 / 12) < 5 * np.sqrt(2) * error
    values = np.stack(np.unravel_index(mdp.next_state, mdp.space.sizes))
    share = np.array([(values == v).mean(axis=1) for v in range(4)])
    assert (abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / (n * 4))).all()


def test_the_seed_fixes_the_world_and_another_one_makes_another() -> None:
    worlds = [make_world("random", factored=kind, seed=seed) for kind in (True, False) for seed in (3, 3, 4)]
    same = [np.array_equal(worlds[i].next_state, worlds[k].next_state) for i, k in ((0, 1), (1, 2), (3, 4), (4, 5))]
    assert same == [True, False, True, False]
    assert np.array_equal(worlds[0].reward, worlds[1].reward)
    assert not worlds[0].terminates
    assert worlds[0].starts == ({0: 1.0},)
    assert WORLDS["random"].env_id == "lacuna/Random-v0"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"components": 0}, "components is 0; it must be a whole number between 1 and 40"),
        ({"components": 41}, "components is 41; it must be a whole number between 1 and 40"),
        ({"size": 0}, "size is 0; it must be a whole number between 1 and 1000"),
        ({"actions": 0}, "actions is 0; it must be a whole number between 1 and 1000"),
        ({"noise": -0.1}, "noise is -0.1; it must be a number between 0 and 1"),
        ({"noise": 1.5}, "noise is 1.5; it must be a number between 0 and 1"),
        ({"noise": float("nan")}, "noise is nan; it must be a number between 0 and 1"),
        ({"seed": -1}, "seed is -1; it must be a whole number"),
        ({"components": 12, "size": 4}, "12 components of 4 values make more than 20000000 outcomes"),
        ({"components": 2, "size": 1000}, "2 components of 1000 values make more than 20000000 outcomes"),
    ],
)
def test_wrong_parameters_are_refused_with_a_sentence(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        random_world(**wrong)


def test_a_space_too_large_to_count_is_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"states|outcomes"):
        random_world(components=40, size=1000)
