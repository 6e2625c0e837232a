"""Vector environments wrapped as a whole: as single ones with the same seeds, in every autoreset mode, no leak."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna import BinnedObservation, FactoredObservation, MissingObservation, VectorMissingObservation
from lacuna.missingness import Mechanism, RateBy, mcar
from lacuna.worlds.mdp.tabular_env import TabularEnv
from lacuna.worlds.registry import make_world
from lacuna.wrappers.cover import Encoding
from test_wrapper import Show, plain

LAKE = make_world("lake")
LATENT = Mechanism(
    LAKE.space, np.random.default_rng(0).random((1, 1, LAKE.n_states, 3)), RateBy.TRUE, shows=LAKE.shows, name="latent"
)
N = 3


class Short(gym.Wrapper[Any, Any, Any, Any]):
    """Episodes of a few steps, now ended and now cut off, so that resets are frequent and not simultaneous."""

    def __init__(self, env: Any, length: int) -> None:
        super().__init__(env)
        self.length, self.t = length, 0

    def reset(self, **options: Any) -> Any:
        self.t = 0
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        observation, reward, terminated, _, info = super().step(action)
        self.t += 1
        return observation, reward, terminated or self.t % 2 * self.t >= self.length, self.t >= self.length, info


BASES: dict[str, Any] = {
    "lake": partial(TabularEnv, LAKE),
    "FrozenLake-v1": partial(gym.make, "FrozenLake-v1"),
    "CartPole-v1": partial(gym.make, "CartPole-v1"),
    "binned": lambda: BinnedObservation(gym.make("MountainCar-v0"), (8, 6)),
    "Blackjack-v1": lambda: FactoredObservation(gym.make("Blackjack-v1")),
}


def make(base: str, k: int, wrap: Any = None) -> gym.Env[Any, Any]:
    env = Short(BASES[base](), 3 + k)
    return env if wrap is None else wrap(env)


def same(one: Any, two: Any) -> None:
    """Observations or infos are equal, types and all."""
    if isinstance(one, dict):
        assert set(one) == set(two)
        for key in one:
            same(one[key], two[key])
    elif isinstance(one, np.ndarray) and one.dtype == object:
        assert [plain(part) for part in one] == [plain(part) for part in two]
    else:
        assert plain(one) == plain(two)


def actions_of(envs: VectorEnv[Any, Any, Any], n: int) -> list[Any]:
    return list(np.random.default_rng(1).integers(envs.single_action_space.n, size=(n, N)))  # type: ignore[attr-defined]


def compare(
    whole: VectorEnv[Any, Any, Any], parts: VectorEnv[Any, Any, Any], mode: AutoresetMode, seed: Any = 7
) -> int:
    """Both go the same way; gives how many episodes ended."""
    assert whole.observation_space == parts.observation_space
    assert whole.single_observation_space == parts.single_observation_space
    over, ended = np.zeros(N, dtype=np.bool_), 0
    for one, two in zip(whole.reset(seed=seed), parts.reset(seed=seed), strict=True):
        same(one, two)
    for actions in actions_of(whole, 40):
        if mode == AutoresetMode.DISABLED and over.any():
            options = [{"reset_mask": over.copy()} for _ in range(2)]
            for one, two in zip(whole.reset(options=options[0]), parts.reset(options=options[1]), strict=True):
                same(one, two)
        found, wanted = whole.step(actions), parts.step(actions)
        for one, two in zip(found, wanted, strict=True):
            same(one, two)
        assert whole.observation_space.contains(found[0])
        over = np.logical_or(found[2], found[3])
        ended += int(over.sum())
    whole.close()
    parts.close()
    return ended


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("first_observed", [True, False])
@pytest.mark.parametrize("base", sorted(BASES))
def test_a_vector_environment_shows_what_single_ones_show(base: str, first_observed: bool, mode: AutoresetMode) -> None:
    wrap = partial(MissingObservation, mechanism="bursts:0.3,0.4", first_observed=first_observed, drop_info=["prob"])
    whole = VectorMissingObservation(
        SyncVectorEnv([partial(make, base, k) for k in range(N)], autoreset_mode=mode),
        "bursts:0.3,0.4", first_observed=first_observed, drop_info=["prob"],
    )  # fmt: skip
    parts: Any = SyncVectorEnv([partial(make, base, k, wrap) for k in range(N)], autoreset_mode=mode)
    assert compare(whole, parts, mode) > 10


@pytest.mark.parametrize("encoding", get_args(Encoding))
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("mechanism", ["mcolor:0.1,0.5,0.9", "mfog:0.9,0.1", "after:1=0.9", LATENT], ids=str)
def test_so_it_does_with_rates_by_state_by_action_and_by_true_state(
    mechanism: Any, mode: AutoresetMode, encoding: Encoding
) -> None:
    single: Any = SyncVectorEnv([partial(make, "lake", k) for k in range(N)], autoreset_mode=mode)
    if mechanism is LATENT and mode == AutoresetMode.SAME_STEP:
        with pytest.raises(
            ValueError, match=r"latent go by the true state, and a vector environment that resets in the"
        ):
            VectorMissingObservation(single, mechanism)
        return
    wrap = partial(MissingObservation, mechanism=mechanism, encoding=encoding, truth=True)
    parts: Any = SyncVectorEnv([partial(make, "lake", k, wrap) for k in range(N)], autoreset_mode=mode)
    whole = VectorMissingObservation(single, mechanism, encoding=encoding, truth=True)
    assert compare(whole, parts, mode, [3, 9, 4]) > 10


def test_so_it_does_with_processes() -> None:
    whole = VectorMissingObservation(AsyncVectorEnv([partial(make, "lake", k) for k in range(N)]), "mfog:0.9,0.1")
    wrap = partial(MissingObservation, mechanism="mfog:0.9,0.1")
    parts: Any = SyncVectorEnv([partial(make, "lake", k, wrap) for k in range(N)])
    assert compare(whole, parts, AutoresetMode.NEXT_STEP) > 10


def test_a_vector_environment_without_sub_environments_is_covered_too() -> None:
    envs = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    covered = VectorMissingObservation(envs, "whole:1.0")
    first, _ = covered.reset(seed=0)
    assert (first["values"] != 0).all()
    for _ in range(60):
        observations, *_, infos = covered.step(np.array([1, 1]))
        hidden = infos["mask"] == 1
        assert (observations["values"][hidden] == 0).all()
        assert (observations["mask"] == infos["mask"]).all()
    assert covered.observation_space.contains(observations)
    with pytest.raises(ValueError, match=r"latent go by the true state; the sub-environments of .* do not tell it"):
        VectorMissingObservation(
            envs,
            Mechanism(
                mcar(4, 0).space, np.zeros((1, 1, 1, 4)), RateBy.TRUE, shows=np.zeros(1, dtype=np.int64), name="latent"
            ),
        )


# --- no leak -----------------------------------------------------------------------------------------------------


class Told(gym.Env[Any, Any]):
    """Shows one row after the other of a table, in episodes of three steps."""

    observation_space = spaces.MultiDiscrete([5, 5, 5])
    action_space = spaces.Discrete(2)

    def __init__(self, rows: Any) -> None:
        self.rows, self.t, self.n = rows, 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.t, self.n = 0, 0 if seed is not None else self.n + 1
        return self.rows[self.n], {}

    def step(self, action: Any) -> Any:
        del action
        self.t, self.n = self.t + 1, self.n + 1
        return self.rows[self.n], 0.0, self.t == 3, False, {}


def watch(rows: Any, mode: AutoresetMode, seed: int) -> tuple[list[Any], Any]:
    """What is shown and told, and the mask of every row that was shown, for each sub-environment."""
    envs: Any = SyncVectorEnv([partial(Told, table) for table in rows], autoreset_mode=mode)
    covered = VectorMissingObservation(envs, "mcar:0.5", first_observed=False)
    observations, infos = covered.reset(seed=seed)
    seen, masks = [(observations, infos)], [[mask] for mask in infos["mask"]]
    for _ in range(9):
        observations, _, terminated, _, infos = covered.step(np.zeros(2, dtype=np.int64))
        seen.append((observations, infos))
        for k in range(2):
            if "final_info" in infos:
                masks[k].append(infos["final_info"]["mask"][k])
            masks[k].append(infos["mask"][k])
        if mode == AutoresetMode.DISABLED and terminated.any():
            seen.append(covered.reset(options={"reset_mask": terminated}))
            for k in range(2):
                masks[k].append(seen[-1][1]["mask"][k])
    return seen, np.array(masks)


@given(seed=st.integers(0, 2**31), mode=st.sampled_from(list(AutoresetMode)))
@settings(max_examples=60)
def test_a_hidden_value_changes_neither_observations_nor_infos(seed: int, mode: AutoresetMode) -> None:
    """Nor what is told of the last observation of an episode."""
    rng = np.random.default_rng(seed)
    rows, others = rng.integers(5, size=(2, 2, 30, 3))
    first, masks = watch(rows, mode, seed)
    n = masks.shape[1]
    assert n == (10 if mode == AutoresetMode.NEXT_STEP else 13)
    changed = rows.copy()
    changed[:, :n] = np.where(masks == 1, others[:, :n], rows[:, :n])
    second, again = watch(changed, mode, seed)
    assert (again == masks).all()
    for one, two in zip(first, second, strict=True):
        same(one[0], two[0])
        same(one[1], two[1])


def test_what_stands_for_the_end_of_an_episode_is_covered() -> None:
    truth = np.full((30, 3), 4)
    envs: Any = SyncVectorEnv([partial(Told, truth) for _ in range(2)], autoreset_mode=AutoresetMode.SAME_STEP)
    covered = VectorMissingObservation(envs, "mcar:1.0", first_observed=False)
    covered.reset(seed=0)
    ends = 0
    for _ in range(7):
        observations, *_, infos = covered.step(np.zeros(2, dtype=np.int64))
        assert (observations == 5).all()
        if "final_obs" in infos:
            ends += 1
            assert all((last == 5).all() for last in infos["final_obs"])
            assert (infos["final_info"]["mask"] == 1).all()
    assert ends == 2


class Talkative(gym.vector.VectorWrapper[Any, Any, Any, Any, Any]):
    """Tells the last observation in every mode."""

    def step(self, actions: Any) -> Any:
        observations, *rest, infos = self.env.step(actions)
        return observations, *rest, {**infos, "final_obs": observations, "_final_obs": np.ones(2, dtype=np.bool_)}


def test_a_last_observation_that_nobody_expected_is_left_out() -> None:
    envs: Any = SyncVectorEnv([partial(Told, np.full((30, 3), 4)) for _ in range(2)])
    covered = VectorMissingObservation(Talkative(envs), "mcar:0.5")
    covered.reset(seed=0)
    assert set(covered.step(np.zeros(2, dtype=np.int64))[-1]) == {"mask", "_mask"}


def test_what_cannot_be_covered_is_refused_with_a_sentence() -> None:
    with pytest.raises(TypeError, match="the single observation is Tuple; wrap each sub-environment in Factored"):
        VectorMissingObservation(gym.make_vec("Blackjack-v1", num_envs=2), "mcar:0.1")
    own: Any = SyncVectorEnv([partial(Show, spaces.Discrete(3), 0, 2, {"mask": 1})])
    with pytest.raises(ValueError, match="info already holds mask, which would be overwritten"):
        VectorMissingObservation(own, "none").reset(seed=0)
    assert set(VectorMissingObservation(own, "none", drop_info=["mask"]).reset(seed=0)[1]) == {"mask", "_mask"}
    with pytest.raises(ValueError, match=r"mcar:0\.1 has 2 components; the observation has 1"):
        VectorMissingObservation(gym.make_vec("FrozenLake-v1", num_envs=2), mcar(2, 0.1))
