"""Stable-Baselines3 accepts every environment, bare and wrapped, and trains on a wrapped Lake World."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import gymnasium as gym
import pytest

from lacuna import BinnedObservation, DelayedObservation, MissingObservation, NoisyObservation
from lacuna.worlds.registry import WORLDS

IDS = [world.env_id for world in WORLDS.values()]


# Imported by name: type checking must work where Stable-Baselines3 and torch are not installed.
baselines: Any = import_module("stable_baselines3")
check_env: Any = import_module("stable_baselines3.common.env_checker").check_env

WAYS: dict[str, dict[str, Any] | None] = {
    "bare": None,
    "token": {"encoding": "token"},
    "dict": {"encoding": "dict"},
    "first observation masked": {"first_observed": False},
}


def make(name: str, options: dict[str, Any] | None) -> gym.Env[Any, Any]:
    env: gym.Env[Any, Any] = gym.make(name)
    return env if options is None else MissingObservation(env, "mcar:0.4", **options)


def test_all_environments_are_there() -> None:
    assert len(IDS) == 13


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", IDS)
def test_the_checker_accepts(name: str, way: str) -> None:
    check_env(make(name, WAYS[way]), warn=True)


OTHERS: dict[str, Any] = {
    "binned": lambda: BinnedObservation(MissingObservation(gym.make("MountainCar-v0"), "mcar:0.4"), (8, 6)),
    "hidden real numbers": lambda: MissingObservation(gym.make("Acrobot-v1"), "mcar:0.4"),
    "factored": lambda: MissingObservation(gym.make("Blackjack-v1"), "mcar:0.4"),
    "late and wrong": lambda: MissingObservation(
        DelayedObservation(NoisyObservation(gym.make("lacuna/Lake-v0"), 0.2), 2), "mcar:0.4"
    ),
}


@pytest.mark.parametrize("kind", sorted(OTHERS))
def test_the_checker_accepts_what_other_wrappers_show(kind: str) -> None:
    check_env(OTHERS[kind](), warn=True)


@pytest.mark.parametrize("encoding", ["token", "dict"])
@pytest.mark.parametrize("algorithm", ["PPO", "DQN"])
def test_training_on_a_wrapped_lake_world(algorithm: str, encoding: str) -> None:
    env = make("lacuna/Lake-v0", {"encoding": encoding})
    # Flat, because of what the next test shows.
    env = env if encoding == "token" else gym.wrappers.FlattenObservation(env)
    options: dict[str, Any] = {"n_steps": 512} if algorithm == "PPO" else {"learning_starts": 200, "buffer_size": 5000}
    model = getattr(baselines, algorithm)("MlpPolicy", env, seed=0, device="cpu", **options)
    before = [weights.detach().clone() for weights in model.policy.parameters()]
    model.learn(total_timesteps=3000)
    assert model.num_timesteps >= 3000
    after = list(model.policy.parameters())
    assert all(weights.isfinite().all() for weights in after)
    assert any((old != new).any() for old, new in zip(before, after, strict=True))


def test_the_policy_for_dicts_cannot_take_a_key_called_values() -> None:
    """A limitation of torch's ModuleDict, whose own method has that name; the wrapper's documentation says so."""
    with pytest.raises(KeyError, match="attribute 'values' already exists"):
        baselines.PPO("MultiInputPolicy", make("lacuna/Lake-v0", {"encoding": "dict"}), device="cpu")
