"""The Gymnasium wrapper: spaces, streams, no leak, and every kind of environment."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, get_args

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lacuna.kernels.space import Space
from lacuna.kernels.streams import Stream
from lacuna.missingness import Mechanism, RateBy, mcar, mcolor, mfog, parse
from lacuna.missingness.mechanism import hide
from lacuna.worlds.mdp.tabular_env import TabularEnv
from lacuna.worlds.registry import WORLDS, make_world
from lacuna.wrappers import MissingObservation
from lacuna.wrappers.cover import Encoding
from test_missingness import SPACE, every_mechanism

IDS = [world.env_id for world in WORLDS.values()]

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
LAKE = make_world("lake")


class Show(gym.Env[Any, Any]):
    """Shows what it is told to; its info is its own."""

    def __init__(
        self, space: spaces.Space[Any], value: Any, n_actions: int = 3, info: dict[str, Any] | None = None
    ) -> None:
        self.observation_space = space
        self.action_space = spaces.Discrete(n_actions)
        self.value, self.info, self.true_state = value, info or {}, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        return self.value, dict(self.info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        del action
        return self.value, 0.0, False, False, dict(self.info)


def plain(value: Any) -> Any:
    """Observations and infos as something that can be compared, types and all."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return (type(value).__name__, str(getattr(value, "dtype", "")), np.asarray(value).tolist())


# --- no leak -----------------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(
    kind=st.sampled_from(sorted(every_mechanism())),
    encoding=st.sampled_from(ENCODINGS),
    first_observed=st.booleans(),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_given_the_mask_a_hidden_value_changes_neither_observation_nor_info(
    kind: str, encoding: Encoding, first_observed: bool, seed: int, data: st.DataObject
) -> None:
    mechanism = every_mechanism()[kind]
    sizes, shows = mechanism.space.sizes, mechanism.shows
    env = Show(spaces.MultiDiscrete(np.array(sizes)), None, mechanism.n_actions or 1, {"own": 7})
    wrapped = MissingObservation(env, mechanism, encoding=encoding, first_observed=first_observed)
    rows = range(mechanism.space.n_states) if shows is None else range(shows.size)
    values = [mechanism.space.decode(row if shows is None else int(shows[row])) for row in rows]

    def look(row: int) -> tuple[Any, dict[str, Any]]:
        env.value, env.true_state = np.array(values[row]), row
        observation, info = wrapped.reset(seed=seed)
        if first_observed:
            observation, *_, info = wrapped.step(0)
        return observation, info

    row = data.draw(st.sampled_from(rows))
    observation, info = look(row)
    visible = info["mask"] == 0
    alike = [k for k in rows if (np.array(values[k]) == values[row])[visible].all()]
    other, same = look(data.draw(st.sampled_from(alike)))
    assert set(info) == {"own", "mask"}
    if (same["mask"] == info["mask"]).all():
        assert plain((observation, info)[0]) == plain(other)
        assert plain(info) == plain(same)
    expected = np.where(visible, values[row], -1)
    assert wrapped.components(observation).tolist() == expected.tolist()


@given(seed=st.integers(0, 2**32), value=st.floats(-1, 1), dtype=st.sampled_from([np.float32, np.float64]))
@settings(max_examples=50)
def test_a_box_does_not_leak_either(seed: int, value: float, dtype: Any) -> None:
    box = spaces.Box(-1, 1, (2, 2), dtype)
    env = Show(box, np.zeros((2, 2), dtype))
    wrapped = MissingObservation(env, "mcar:0.5", first_observed=False)
    observation, info = wrapped.reset(seed=seed)
    env.value = np.where(info["mask"] == 1, dtype(value), env.value)
    other, same = wrapped.reset(seed=seed)
    assert plain(observation) == plain(other)
    assert plain(info) == plain(same)
    assert wrapped.observation_space.contains(observation)


def test_a_mask_that_hides_everything_shows_nothing_of_the_truth() -> None:
    env = MissingObservation(TabularEnv(LAKE), "mcar:1.0")
    env.reset(seed=0)
    seen = [env.step(action) for action in (0, 3, 7, 2)]
    assert len({str(plain(observation)) for observation, *_ in seen}) == 1
    assert all("truth" not in info for *_, info in seen)


def test_the_truth_is_there_on_request_and_is_a_copy() -> None:
    value = np.array([1, 1, 2])
    env = MissingObservation(Show(spaces.MultiDiscrete([3, 2, 3]), value), "mcar:1.0", truth=True)
    _, info = env.reset(seed=0)
    *_, info = env.step(0)
    assert info["truth"].tolist() == [1, 1, 2]
    assert not np.shares_memory(info["truth"], value)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_observations_never_share_memory_with_the_environment(encoding: Encoding) -> None:
    value = np.array([1, 1, 2])
    env = MissingObservation(Show(spaces.MultiDiscrete([3, 2, 3]), value), "none", encoding=encoding)
    observation, _ = env.reset(seed=0)
    assert not np.shares_memory(observation["values"] if encoding == "dict" else observation, value)


# --- streams -----------------------------------------------------------------------------------------------------


def walk(mechanism: str | None, seed: int = 3, n: int = 400) -> list[tuple[Any, ...]]:
    """Where the world really goes, under fixed actions."""
    bare = TabularEnv(LAKE)
    env: gym.Env[Any, Any] = bare if mechanism is None else MissingObservation(bare, mechanism)
    env.reset(seed=seed)
    path: list[tuple[Any, ...]] = []
    for action in np.random.default_rng(0).integers(LAKE.n_actions, size=n):
        _, reward, terminated, *_ = env.step(action)
        path.append((bare.true_state, reward, terminated))
        if terminated:
            env.reset()
    return path


@pytest.mark.parametrize("mechanism", ["none", "mcar:0.4", "mcar:0.95", "mcolor:0.2,0.4,0.6", "bursts:0.1,0.2"])
def test_missingness_leaves_the_path_of_the_world_alone(mechanism: str) -> None:
    assert walk(mechanism) == walk(None)
    assert walk(None) != walk(None, seed=4)


@pytest.mark.parametrize("first_observed", [True, False])
@pytest.mark.parametrize("text", ["mcar:0.4", "bursts:0.2,0.3,0.8,0.1", "whole:0.5", "mcolor:0.2,0.4,0.6", "after:0=1"])
def test_the_masks_are_those_of_the_kernel_on_the_same_stream(text: str, first_observed: bool) -> None:
    bare = TabularEnv(LAKE)
    env = MissingObservation(bare, text, first_observed=first_observed)
    stream, mode, mask = Stream(5, "missingness"), np.zeros(1, dtype=np.int64), np.empty(3, dtype=np.bool_)

    def expected(action: int) -> list[int]:
        how, n = env.mechanism.hiding, env.mechanism.n_draws
        hide(int(LAKE.shows[bare.true_state]), bare.true_state, action, mode, how, stream.need(n), mask)
        return [int(lost) for lost in mask]

    _, info = env.reset(seed=5)
    assert info["mask"].tolist() == ([0, 0, 0] if first_observed else expected(-1))
    for t, action in enumerate(np.random.default_rng(1).integers(LAKE.n_actions, size=200)):
        *_, info = env.step(action)
        assert info["mask"].tolist() == expected(int(action))
        assert env.mode[0] == mode[0]
        if t % 50 == 49:
            _, info = env.reset()
            assert info["mask"].tolist() == ([0, 0, 0] if first_observed else expected(-1))
    assert env.stream.position == stream.position


def test_a_seed_starts_anew_and_a_plain_reset_carries_on() -> None:
    env = MissingObservation(TabularEnv(LAKE), "bursts:1.0,0.0")

    def masks() -> list[list[int]]:
        return [env.step(0)[-1]["mask"].tolist() for _ in range(5)]

    env.reset(seed=1)
    assert env.mode[0] == 0
    first = masks()
    assert env.mode[0] == 1
    env.reset()
    assert env.mode[0] == 1
    assert env.stream.position == 5 * env.mechanism.n_draws
    env.reset(seed=1)
    assert env.mode[0] == 0
    assert env.stream.position == 0
    assert masks() == first


def test_without_a_seed_two_runs_differ() -> None:
    one, two = (MissingObservation(TabularEnv(LAKE), "mcar:0.5") for _ in range(2))
    assert one.stream.seed != two.stream.seed


# --- spaces ------------------------------------------------------------------------------------------------------


def test_the_token_is_the_last_value_of_each_component() -> None:
    odd = spaces.MultiDiscrete([3, 2], start=[5, -2])
    env = MissingObservation(Show(odd, np.array([6, -1])), mcar(2, (1.0, 0.0)))
    env.reset(seed=0)
    observation, *_ = env.step(0)
    assert observation.tolist() == [8, -1]
    assert env.components(observation).tolist() == [-1, 1]
    assert env.observation_space == spaces.MultiDiscrete([4, 3], start=[5, -2])


def test_a_discrete_keeps_its_start() -> None:
    env = MissingObservation(Show(spaces.Discrete(4, start=10), 12), "mcar:1.0")
    first, _ = env.reset(seed=0)
    observation, *_, info = env.step(0)
    assert (int(first), int(observation), info["mask"].tolist()) == (12, 14, [1])
    assert env.observation_space == spaces.Discrete(5, start=10)
    assert env.components(first).tolist() == [2]


def test_a_grid_of_components_keeps_its_shape() -> None:
    grid = spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]))
    for encoding in ENCODINGS:
        env = MissingObservation(Show(grid, np.array([[1, 2], [3, 4]])), mcar(4, (0, 1, 0, 1)), encoding=encoding)
        env.reset(seed=0)
        observation, *_, info = env.step(0)
        assert info["mask"].tolist() == [[0, 1], [0, 1]]
        assert env.components(observation).tolist() == [1, -1, 3, -1]
        assert env.observation_space.contains(observation)


def test_a_type_without_room_for_the_token_is_widened() -> None:
    tight = spaces.MultiDiscrete(np.array([127]), dtype=np.int8, start=np.array([1], dtype=np.int8))
    env = MissingObservation(Show(tight, np.array([127], dtype=np.int8)), "mcar:1.0")
    env.reset(seed=0)
    observation, *_ = env.step(0)
    assert observation.tolist() == [128]
    assert env.observation_space.contains(observation)


def test_a_hidden_real_number_is_a_constant_inside_the_space() -> None:
    box = spaces.Box(np.array([2.0, -np.inf], np.float32), np.array([3.0, np.inf], np.float32))
    env = MissingObservation(Show(box, np.array([2.5, 7.0], np.float32)), "whole:1.0")
    env.reset(seed=0)
    observation, *_ = env.step(0)
    assert observation["values"].tolist() == [2.0, 0.0]
    assert observation["mask"].tolist() == [1, 1]
    assert env.observation_space.contains(observation)


def test_names_and_regions_of_the_world_are_known_to_the_text() -> None:
    env = MissingObservation(gym.make("lacuna/Lake-v0"), "mfog:0.5,0.0")
    assert env.space.names == ("row", "column", "colour")
    assert env.mechanism.label == "NMAR"
    assert MissingObservation(gym.make("FrozenLake-v1"), mcar(1, 0.5)).space.sizes == (16,)


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("env", "mechanism", "options", "sentence"), [
    (Show(spaces.Tuple([spaces.Box(0, 1)]), (0,)), "none", {}, "the part 0 of the observation is Box; components with"),
    (Show(spaces.Text(5), "a"), "none", {}, "the observation space is Text; components are found in"),
    (Show(spaces.Box(0, 1), 0), "none", {"encoding": "token"}, "a Box has no value to spare"),
    (Show(spaces.Discrete(3), 0), "none", {"encoding": "nan"}, "encoding is 'nan'; it must be 'token' or 'dict'"),
    (Show(spaces.Discrete(3), 0), mcar(2, 0.1), {}, "mcar:0.1 has 2 components; the observation has 1"),
    (Show(spaces.Box(0, 1, (3,)), 0), mcolor(SPACE, (0.1, 0.2, 0.3)), {}, "go by states of sizes .* is a Box"),
    (Show(spaces.MultiDiscrete([3, 2, 4]), 0), mcolor(SPACE, (0.1, 0.2, 0.3)), {}, r"components of sizes \(3, 2, 4\)"),
    (Show(spaces.Discrete(3), 0, n_actions=2), parse("after:1=0.5", 1, 3), {}, "by 3 actions; the environment has 2"),
    (gym.make("Pendulum-v1"), parse("after:1=0.5", 3, 3), {}, r"go by 3 actions; the environment has Box"),
    (Show(spaces.Discrete(3), 0), "mcra:0.1", {}, "did you mean 'mcar'"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_with_a_sentence(env: Any, mechanism: Any, options: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        MissingObservation(env, mechanism, **options)


def test_rates_by_true_state_need_an_environment_that_tells_it() -> None:
    latent = Mechanism(Space((16,)), np.zeros((1, 1, 2, 1)), RateBy.TRUE, shows=np.array([0, 1]), name="latent")
    with pytest.raises(ValueError, match=r"latent go by the true state; .* has no attribute `true_state`"):
        MissingObservation(gym.make("FrozenLake-v1"), latent)
    env = Show(spaces.Discrete(16), 0)
    wrapped = MissingObservation(env, latent, first_observed=False)
    env.true_state = 2
    with pytest.raises(ValueError, match="the true state is 2; latent has rates for 0 to 1"):
        wrapped.reset(seed=0)


def test_an_observation_outside_its_space_is_refused() -> None:
    show = Show(spaces.MultiDiscrete([3, 2, 3]), np.array([3, 0, 0]))
    env = MissingObservation(show, mfog((SPACE, np.ones(18)), 1, 0), first_observed=False)
    with pytest.raises(ValueError, match="outside its space"):
        env.reset(seed=0)


@pytest.mark.parametrize("encoding", get_args(Encoding))
@pytest.mark.parametrize("shown", [3, -1, 1.5, float("nan")])
def test_a_value_outside_the_space_is_not_taken_for_a_missing_one(encoding: Encoding, shown: float) -> None:
    env = MissingObservation(Show(spaces.MultiDiscrete([3, 2]), np.array([shown, 0])), "mcar:0.0", encoding=encoding)
    with pytest.raises(ValueError, match="outside its space"):
        env.reset(seed=0)


def test_a_box_has_no_numbered_values() -> None:
    env = MissingObservation(gym.make("CartPole-v1"), "mcar:0.5")
    observation, _ = env.reset(seed=0)
    with pytest.raises(TypeError, match="real numbers"):
        env.components(observation)


@pytest.mark.parametrize("key", ["mask", "truth"])
def test_an_info_that_is_taken_is_refused_or_left_out(key: str) -> None:
    env = Show(spaces.Discrete(3), 0, info={key: 1, "other": 2})
    with pytest.raises(ValueError, match=f"info already holds {key}, which would be overwritten"):
        MissingObservation(env, "none").reset(seed=0)
    _, info = MissingObservation(env, "none", drop_info=[key]).reset(seed=0)
    assert set(info) == {"mask", "other"}


def test_what_tells_the_state_can_be_left_out_of_the_info() -> None:
    _, info = MissingObservation(gym.make("Taxi-v4"), "mcar:0.5", drop_info=["action_mask"]).reset(seed=0)
    assert set(info) == {"prob", "mask"}


# --- Gymnasium's own machinery -----------------------------------------------------------------------------------

WRAPPED = [
    *((name, options) for name in IDS for options in ({}, {"encoding": "dict"}, {"first_observed": False})),
    *((name, {}) for name in ("FrozenLake-v1", "CliffWalking-v1", "Taxi-v4", "Acrobot-v1", "MountainCar-v0")),
    *((name, {"encoding": "dict"}) for name in ("FrozenLake-v1", "CliffWalking-v1", "Taxi-v4")),
]
ALWAYS = r"\x1b\[33mWARN: The environment \(.*\) is different from the unwrapped version"
"""The one warning that Gymnasium's checker gives for any wrapped environment."""


def test_all_environments_are_there() -> None:
    assert len(IDS) == 13


@pytest.mark.parametrize(("name", "options"), WRAPPED)
def test_gymnasium_accepts_every_wrapped_environment(name: str, options: dict[str, Any]) -> None:
    env = MissingObservation(gym.make(name), "mcar:0.4", **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ALWAYS)
        check_env(env, skip_render_check=name not in IDS)
    env.close()


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_wrapping_adds_no_warning_to_those_of_the_environment_itself(name: str) -> None:
    def warned(env: gym.Env[Any, Any]) -> set[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", ALWAYS)
            check_env(env, skip_render_check=True)
        return {str(warning.message) for warning in caught}

    assert warned(MissingObservation(gym.make(name), "mcar:0.4")) <= warned(gym.make(name).unwrapped)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("mechanism", ["mcar:0.4", parse("bursts:0.2,0.5", LAKE)], ids=["text", "object"])
def test_vector_environments_give_the_masks_of_single_ones(mode: str, mechanism: str | Mechanism) -> None:
    wrapper = partial(MissingObservation, mechanism=mechanism)
    envs = gym.make_vec("lacuna/Lake-v0", num_envs=2, vectorization_mode=mode, wrappers=[wrapper])
    singles = [wrapper(gym.make("lacuna/Lake-v0")) for _ in range(2)]
    try:
        observations, infos = envs.reset(seed=7)
        firsts = [env.reset(seed=7 + k) for k, env in enumerate(singles)]
        assert observations.tolist() == [first.tolist() for first, _ in firsts]
        for action in range(8):
            observations, *_, infos = envs.step(np.array([action, action]))
            steps = [env.step(action) for env in singles]
            assert observations.tolist() == [step[0].tolist() for step in steps]
            assert infos["mask"].tolist() == [step[-1]["mask"].tolist() for step in steps]
    finally:
        envs.close()


def test_the_wrapper_is_part_of_the_spec() -> None:
    env = MissingObservation(gym.make("lacuna/Lake-v0"), "mcar:0.4", encoding="dict", truth=True)
    assert env.spec is not None
    again = env.spec.make()
    assert isinstance(again, MissingObservation)
    assert again.encoding == "dict"
    assert masks_of(again) == masks_of(env)


def masks_of(env: MissingObservation) -> list[NDArray[np.int8]]:
    env.reset(seed=0)
    return [env.step(0)[-1]["mask"].tolist() for _ in range(20)]
