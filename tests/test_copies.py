"""A copy of a world, an environment or a wrapper goes on as the original does, and neither moves the other."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv, VectorWrapper

import lacuna
from lacuna import (
    Agent,
    BinnedObservation,
    CarriedObservation,
    DelayedObservation,
    FactoredObservation,
    ImputedObservation,
    MissingObservation,
    NoisyObservation,
    VectorMissingObservation,
)
from lacuna.worlds.lake import Lake
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import WORLDS, make_world
from test_wrapper import plain


def pickled(what: Any) -> Any:
    return pickle.loads(pickle.dumps(what))  # noqa: S301  what was pickled here


COPIES: dict[str, Callable[[Any], Any]] = {"deep": copy.deepcopy, "pickled": pickled}


def lake() -> Any:
    return gym.make("lacuna/Lake-v0")


def cart() -> Any:
    return gym.make("CartPole-v1")


def missing(env: Any) -> Any:
    return MissingObservation(
        env, "mcar:0.4,late=3" if env.unwrapped.spec.id.startswith("lacuna") else "bursts:0.3,0.3"
    )


def imputed() -> Any:
    env = MissingObservation(lake(), "mcar:0.4")
    return ImputedObservation(env, Agent.for_env(env, seed=3))


WRAPPED: dict[str, Callable[[], Any]] = {
    "BinnedObservation": lambda: BinnedObservation(missing(cart()), lacuna.Binning([[0.0], [-0.5, 0.5], [0.0], [0.0]])),
    "CarriedObservation": lambda: CarriedObservation(MissingObservation(lake(), "mcar:0.4")),
    "DelayedObservation": lambda: DelayedObservation(lake(), {"row": 2, "colour": 1}),
    "FactoredObservation": lambda: FactoredObservation(gym.make("Blackjack-v1"), ("sum", "dealer", "ace")),
    "ImputedObservation": imputed,
    "MissingObservation": lambda: MissingObservation(lake(), "mfog:0.5,0.1", truth=True),
    "NoisyObservation": lambda: NoisyObservation(cart(), 0.5, scale=0.1),
    "VectorMissingObservation": lambda: VectorMissingObservation(SyncVectorEnv([lake, lake]), "mcar:0.4"),
}
WORLD_ENVS = {world.env_id: partial(gym.make, world.env_id) for world in WORLDS.values()}


def go_on(env: Any, seed: int, n: int = 40) -> list[Any]:
    """Take n steps, reset where an episode ends, and return all that is shown."""
    rng = np.random.default_rng(seed)
    n_actions = int(getattr(env, "single_action_space", env.action_space).n)
    seen = []
    for _ in range(n):
        if isinstance(env, gym.vector.VectorEnv):
            seen.append(plain_step(env.step(rng.integers(n_actions, size=env.num_envs))))
            continue
        found = env.step(int(rng.integers(n_actions)))
        seen.append(plain_step(found))
        if found[2] or found[3]:
            seen.append(plain_step(env.reset()))
    return seen


def kind(value: Any) -> Any:
    return (value.dtype, value.flags.writeable) if isinstance(value, np.ndarray) else type(value)


def plain_step(found: tuple[Any, ...]) -> Any:
    return [plain(part) if isinstance(part, dict | np.ndarray) else np.asarray(part).tolist() for part in found]


def lacunas(kind: type[Any]) -> Iterator[str]:
    """The names of all wrappers of lacuna, found by what they derive from."""
    for one in kind.__subclasses__():
        if one.__module__.startswith("lacuna."):
            yield one.__name__
        yield from lacunas(one)


def test_every_wrapper_is_copied_here() -> None:
    assert len(WORLD_ENVS) == len(WORLDS) == 13
    assert {*lacunas(gym.Wrapper), *lacunas(VectorWrapper)} == set(WRAPPED)
    assert len(WRAPPED) == 8


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", [*WORLD_ENVS, *WRAPPED])
def test_a_copy_in_the_middle_of_an_episode_goes_on_as_the_original_does(name: str, how: str) -> None:
    env = (WORLD_ENVS | WRAPPED)[name]()
    env.reset(seed=5)
    go_on(env, seed=0, n=3)
    first, second = COPIES[how](env), COPIES[how](env)
    # One after the other: the copy would go on elsewhere if both used the same random numbers or the same arrays.
    expected = go_on(first, seed=1)
    assert go_on(env, seed=1) == expected
    assert go_on(second, seed=1) == expected


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", WORLDS)
def test_a_copy_of_a_world_has_the_same_arrays_and_nobody_can_write_to_them(name: str, how: str) -> None:
    mdp = make_world(name)
    assert mdp.dynamics  # derived, and so not copied
    twin = COPIES[how](mdp)
    assert isinstance(twin, TabularMDP)
    pairs: list[tuple[Any, Any]] = list(zip(mdp.dynamics, twin.dynamics, strict=True))
    for one, other in pairs:
        assert np.array_equal(one, other)
        # Kernels are compiled once for all worlds, so the kind of every array counts too.
        assert kind(one) == kind(other)
    assert not any(array.flags.writeable for array in (twin.ptr, twin.reward, *twin.regions.values()))
    with pytest.raises(TypeError):
        twin.regions["new"] = twin.bad  # type: ignore[index]
    state = int(next(iter(mdp.starts[0])))
    assert twin.describe(state) == mdp.describe(state)
    assert (twin.painter is None) == (mdp.painter is None)
    if mdp.painter is not None and twin.painter is not None:
        assert twin.painter.text(state) == mdp.painter.text(state)


@pytest.mark.parametrize("how", COPIES)
def test_a_lake_that_has_built_its_world_is_copied_with_it(how: str) -> None:
    # The world's painter holds the lake, and the lake its world.
    original = Lake(wind=0.2)
    mdp = original.mdp()
    twin = COPIES[how](original)
    assert twin == original
    assert twin.mdp().painter.lake is twin
    assert np.array_equal(twin.mdp().probability, mdp.probability)


def test_what_was_edited_on_its_way_is_checked_as_a_new_world_is() -> None:
    mdp = make_world("corridor")
    state = mdp.__getstate__() | {"next_state": mdp.next_state + 10**6}
    with pytest.raises(ValueError, match=r"leads to state .*, which does not exist"):
        TabularMDP.__new__(TabularMDP).__setstate__(state)
