"""Complete observations for other people's learners: no leak, one seed one path, and the imputer is an `Agent`."""

from __future__ import annotations

import warnings
from typing import Any, get_args

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray

import lacuna
from lacuna.agent.agent import Agent
from lacuna.agent.settings import UNPLANNED, Settings
from lacuna.kernels.space import Space
from lacuna.wrappers import CarriedObservation, MissingObservation
from lacuna.wrappers.imputed import ImputedObservation, Show
from sentences import one_sentence
from test_wrapper import ALWAYS

SHOWS: tuple[Show, ...] = get_args(Show)
OF_VALUES: tuple[Show, ...] = ("shares", "mode", "pathway")
EDGES = [np.linspace(-limit, limit, 5) for limit in (2.4, 3.0, 0.2095, 3.0)]
SIZES = (3, 2, 4)


class Script(gym.Env[Any, Any]):
    """Shows a list of values, one after the other, whatever is done; rewards and ends come with them."""

    def __init__(self, space: spaces.Space[Any], values: NDArray[Any], first_action: int = 0) -> None:
        self.observation_space, self.values, self.t = space, values, 0
        self.action_space = spaces.Discrete(2, start=first_action)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.t = 0 if seed is not None else self.t + 1
        return self.values[self.t].copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        del action
        self.t += 1
        return self.values[self.t].copy(), float(self.t % 3), self.t % 11 == 10, False, {}


def lake(theta: float = 0.5, **options: Any) -> MissingObservation:
    return MissingObservation(gym.make("lacuna/Lake-v0"), f"mcar:{theta}", **options)


def cart(theta: float = 0.5, **options: Any) -> MissingObservation:
    return MissingObservation(gym.make("CartPole-v1"), f"mcar:{theta}", **options)


def every_way(**options: Any) -> dict[str, gym.Env[Any, Any]]:
    found: dict[str, gym.Env[Any, Any]] = {
        f"lake {show}": ImputedObservation(lake(**options), show=show) for show in OF_VALUES
    }
    found |= {f"cart {show}": ImputedObservation(cart(**options), show=show, bins=EDGES) for show in SHOWS}
    found["one number"] = ImputedObservation(MissingObservation(gym.make("FrozenLake-v1"), "mcar:0.5", **options))
    found["dict"] = ImputedObservation(lake(encoding="dict", **options))
    return found | {"lake carried": CarriedObservation(lake(**options)), "cart carried": CarriedObservation(cart())}


WAYS = tuple(every_way())


def walk(env: gym.Env[Any, Any], n: int, seed: int | None) -> list[NDArray[Any]]:
    """Every observation of `n` steps of one sequence of actions; the first reset is seeded."""
    rng = np.random.default_rng(5)
    actions = env.action_space
    assert isinstance(actions, spaces.Discrete)
    seen = [env.reset(seed=seed)[0]]
    for action in rng.integers(actions.n, size=n) + actions.start:
        observation, _, terminated, truncated, _ = env.step(action)
        seen.append(observation)
        if terminated or truncated:
            seen.append(env.reset()[0])
    return seen


# --- no leak, spaces and seeds -----------------------------------------------------------------------------------


@given(
    way=st.sampled_from([*SHOWS, "carried"]),
    numbers=st.booleans(),
    token=st.booleans(),
    first_observed=st.booleans(),
    uncovered=st.booleans(),
    seed=st.integers(0, 2**32),
)
@effort(max_examples=60, deadline=None)
def test_a_hidden_value_changes_nothing_that_is_shown_now_or_later(
    way: Any, numbers: bool, token: bool, first_observed: bool, uncovered: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    encoding: Any = "token" if token and not numbers else "dict"
    space: spaces.Space[Any] = (
        spaces.Box(-3, 3, (3,), np.float32) if numbers else spaces.MultiDiscrete(np.array(SIZES), start=[0, 2, 0])
    )

    def draw() -> NDArray[Any]:
        uniform = rng.random((40, 3))
        return (uniform * 6 - 3).astype(np.float32) if numbers else (uniform * SIZES + (0, 2, 0)).astype(np.int64)

    def look(values: NDArray[Any]) -> tuple[list[NDArray[Any]], list[Any]]:
        script = Script(space, values)
        options: Any = {"encoding": encoding, "first_observed": first_observed}
        missing = Uncovered(script, seed) if uncovered else MissingObservation(script, "mcar:0.5", **options)
        masks: list[Any] = []
        noted = Noted(missing, masks)
        if way == "carried":
            return walk(CarriedObservation(noted), 30, seed), masks
        bins = [[-1.0, 0.0, 1.0]] * 3 if numbers else None
        show: Show = way if numbers or way in OF_VALUES else "shares"
        return walk(ImputedObservation(noted, show=show, bins=bins), 30, seed), masks

    values, others = draw(), draw()
    shown, masks = look(values)
    hidden = np.array(masks, dtype=np.bool_)
    mixed = values.copy()
    mixed[: len(hidden)] = np.where(hidden, others[: len(hidden)], values[: len(hidden)])
    again, same = look(mixed)
    assert np.array_equal(np.array(same), np.array(masks))
    assert hidden.any()
    assert all(np.array_equal(one, other) for one, other in zip(shown, again, strict=True))


class Uncovered(gym.Wrapper[Any, Any, Any, Any]):
    """Says what is hidden, and shows it all the same: nobody may look."""

    def __init__(self, env: gym.Env[Any, Any], seed: int) -> None:
        super().__init__(env)
        self.space, self.rng = Space(SIZES), np.random.default_rng(seed)
        self.observation_space = spaces.Dict({"values": env.observation_space, "mask": spaces.MultiBinary(3)})

    def covered(self, values: Any) -> tuple[Any, dict[str, Any]]:
        mask = self.rng.integers(2, size=3).astype(np.int8)
        return {"values": values, "mask": mask}, {"mask": mask}

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        return self.covered(self.env.reset(**options)[0])

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        values, reward, terminated, truncated, _ = self.env.step(action)
        observation, info = self.covered(values)
        return observation, reward, terminated, truncated, info


class Noted(gym.Wrapper[Any, Any, Any, Any]):
    """Notes every mask."""

    def __init__(self, env: gym.Env[Any, Any], masks: list[Any]) -> None:
        super().__init__(env)
        self.masks = masks

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**options)
        self.masks.append(info["mask"])
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        found = self.env.step(action)
        self.masks.append(found[4]["mask"])
        return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first_observed", [True, False])
def test_gymnasiums_checker_accepts(way: str, first_observed: bool) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ALWAYS)
        # CartPole's own speeds have no bounds.
        warnings.filterwarnings("ignore", ".*Box observation space (min|max)imum value is -?infinity")
        check_env(every_way(first_observed=first_observed)[way], skip_render_check=True)


@pytest.mark.parametrize("way", WAYS)
def test_one_seed_one_path_and_everything_lies_in_the_space(way: str) -> None:
    env = every_way()[way]
    first, other = walk(env, 120, seed=3), walk(env, 120, seed=4)
    assert all(env.observation_space.contains(observation) for observation in first)
    again = walk(env, 120, seed=3)
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert len(other) != len(first) or not all(np.array_equal(*pair) for pair in zip(first, other, strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_it_can_be_made_again_from_its_spec(way: str) -> None:
    env = every_way()[way]
    assert env.spec is not None
    twin = gym.make(env.spec)
    assert twin.observation_space == env.observation_space
    assert all(np.array_equal(*pair) for pair in zip(walk(env, 60, 1), walk(twin, 60, 1), strict=True))


# --- the imputer is an agent -------------------------------------------------------------------------------------

IMPUTERS = (Settings("mi-planned"), UNPLANNED, Settings("mi-synthetic", K=3, p_shuffle=0.5), Settings("last-observed"))


def state_of(agent: Agent) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    header, arrays = agent.to_parts()
    return header, {name: array.tolist() for name, array in arrays.items()}


@pytest.mark.parametrize("settings", IMPUTERS, ids=lambda settings: settings.method)
@pytest.mark.parametrize("first_action", [0, 3])
def test_its_imputer_is_an_agent_that_was_fed_the_same_stream(settings: Settings, first_action: int) -> None:
    values = np.random.default_rng(1).integers(SIZES, size=(400, 3))

    def missing() -> MissingObservation:
        return MissingObservation(Script(spaces.MultiDiscrete(np.array(SIZES)), values, first_action), "mcar:0.4")

    env = ImputedObservation(missing(), settings)
    walk(env, 300, seed=7)
    agent, bare = Agent(Space(SIZES), 2, settings, seed=7), missing()
    observation, _ = bare.reset(seed=7)
    agent.begin(observation)
    for action in np.random.default_rng(5).integers(2, size=300):
        observation, reward, terminated, *_ = bare.step(action + first_action)
        agent.learn(float(reward), observation, terminated, action=int(action))
        if terminated:
            observation, _ = bare.reset()
            agent.begin(observation)
    assert state_of(env.agent) == state_of(agent)


@pytest.mark.parametrize("settings", IMPUTERS, ids=lambda settings: settings.method)
def test_told_what_another_agent_did_an_agent_learns_the_same(settings: Settings) -> None:
    env = lake(0.4)
    actor, told = (Agent(env.space, 8, settings, seed=2) for _ in range(2))
    observation, _ = env.reset(seed=1)
    for agent in (actor, told):
        agent.begin(observation)
    for _ in range(400):
        action = actor.act()
        observation, reward, terminated, truncated, _ = env.step(action)
        actor.learn(float(reward), observation, terminated)
        told.learn(float(reward), observation, terminated, action=action)
        if terminated or truncated:
            observation, _ = env.reset()
            for agent in (actor, told):
                agent.begin(observation)
    (one, arrays), (other, others) = state_of(actor), state_of(told)
    assert arrays == others
    assert one["positions"]["imputation"] == other["positions"]["imputation"]
    assert (actor.decisions, told.decisions) == (400, 0)


def test_an_action_told_takes_the_place_of_the_agents_own() -> None:
    agents = [Agent(Space((3, 2)), 4, Settings("mi-synthetic"), seed=0) for _ in range(2)]
    for agent in agents:
        agent.begin([0, 0])
        own = agent.act()
    done = (own + 1) % 4
    agents[0].learn(1.0, [1, 1], terminated=False, action=done)
    assert {action for _, action, _ in agents[0].counts} == {done}
    agents[1].learn(1.0, [1, 1], terminated=False)
    assert {action for _, action, _ in agents[1].counts} == {own}


def test_a_wrong_action_or_one_before_an_episode_is_refused_and_changes_nothing() -> None:
    agent = Agent(Space((3, 2)), 4, seed=0)
    with pytest.raises(RuntimeError, match=r"learn\(\) was called before begin\(observation\)"):
        agent.learn(0.0, [0, 0], terminated=False, action=1)
    agent.begin([0, 0])
    before = state_of(agent)
    for wrong in (-1, 4, 1.0, True, "1"):
        with pytest.raises(ValueError, match="the action is ") as caught:
            agent.learn(0.0, [0, 0], terminated=False, action=wrong)  # type: ignore[arg-type]
        assert "between 0 and 3" in one_sentence(caught.value)
    assert state_of(agent) == before


def test_a_seed_starts_a_new_imputer_unless_an_agent_was_given(tmp_path: Any) -> None:
    env = ImputedObservation(lake())
    walk(env, 50, seed=1)
    assert env.agent.steps == 50
    env.reset()
    assert env.agent.steps == 50
    env.agent.save(tmp_path / "imputer.lacuna")
    env.reset(seed=1)
    assert env.agent.steps == 0
    loaded = ImputedObservation(lake(), Agent.load(tmp_path / "imputer.lacuna"))
    walk(loaded, 50, seed=1)
    assert loaded.agent.steps == 100


# --- what is shown -----------------------------------------------------------------------------------------------


def test_what_is_shown_is_what_the_pathways_say() -> None:
    envs = {show: ImputedObservation(lake(), show=show) for show in OF_VALUES}
    seen = {show: walk(env, 200, seed=9) for show, env in envs.items()}
    plain = walk(lake(), 200, seed=9)
    uncertain = 0
    for shares, mode, pathway, observation in zip(*seen.values(), plain, strict=True):
        visible = observation < (8, 8, 3)
        parts = np.split(shares, [8, 16])
        for part, certain, value, *states in zip(parts, visible, observation, mode, pathway, strict=True):
            assert part.sum() == pytest.approx(1.0)
            assert all(part[state] > 0 for state in states)
            assert not certain or (part[value] == 1 and states == [value, value])
            uncertain += part.max() < 1
    assert uncertain > 50
    pathways = np.array(envs["mode"].agent.pathways)
    distinct, counts = np.unique(pathways, axis=0, return_counts=True)
    assert counts[(distinct == seen["mode"][-1]).all(axis=1)] == counts.max()


def test_real_numbers_are_shown_as_they_were_and_guesses_as_middles_of_bins() -> None:
    shown = {show: walk(ImputedObservation(cart(), show=show, bins=EDGES), 200, seed=2) for show in SHOWS}
    plain = walk(cart(), 200, seed=2)
    middles = [np.append(edges, 2 * edges[-1] - edges[-2]) - (edges[1] - edges[0]) / 2 for edges in EDGES]
    between = 0
    for t, observation in enumerate(plain):
        hidden = observation["mask"] == 1
        spread = shown["spread"][t]
        assert np.array_equal(spread[:4], shown["mean"][t])
        assert (spread[4:][~hidden] == 0).all()
        shares = np.split(shown["shares"][t], [6, 12, 18])
        for j in range(4):
            for show in ("mode", "pathway", "mean"):
                value = shown[show][t][j]
                if not hidden[j]:
                    assert value == observation["values"][j]
                elif show != "mean":
                    assert np.abs(middles[j] - value).min() < 1e-6
            if hidden[j]:
                mean = shares[j] @ middles[j]
                assert shown["mean"][t][j] == pytest.approx(mean, abs=1e-5)
                assert spread[4 + j] == pytest.approx(np.sqrt(shares[j] @ (middles[j] - mean) ** 2), abs=1e-5)
                between += spread[4 + j] > 0
            else:
                assert shares[j][np.searchsorted(EDGES[j], observation["values"][j], side="right")] == 1
    assert between > 50


def test_an_imputer_that_learned_guesses_better_than_the_last_value() -> None:
    """In a world that always moves on, the last seen value is always wrong."""
    values = np.stack([np.arange(2000) % 5, np.arange(2000) % 3], axis=1)
    missing = MissingObservation(Script(spaces.MultiDiscrete([5, 3]), values), "mcar:0.5", truth=True)
    right = {}
    for env in (ImputedObservation(missing, show="mode"), CarriedObservation(missing)):
        env.reset(seed=0)
        found = []
        for _ in range(1000):
            observation, _, terminated, _, info = env.step(0)
            found += [(observation == info["truth"])[info["mask"] == 1]]
            if terminated:
                env.reset()
        right[type(env).__name__] = float(np.concatenate(found[500:]).mean())
    assert right["ImputedObservation"] > 0.9
    assert right["CarriedObservation"] < 0.4


def test_carrying_forward_is_the_method_last_observed() -> None:
    carried = walk(CarriedObservation(lake()), 300, seed=6)
    method = walk(ImputedObservation(lake(), Settings("last-observed"), show="mode"), 300, seed=6)
    assert all(np.array_equal(*pair) for pair in zip(carried, method, strict=True))


def test_before_a_number_was_seen_the_nearest_to_zero_in_its_range_is_shown() -> None:
    box = spaces.Box(np.array([1, -5, -5], np.float32), np.array([5, -2, 5], np.float32))
    script = Script(box, np.full((3, 3), (3, -4, 2), dtype=np.float32))
    env = CarriedObservation(MissingObservation(script, "mcar:1.0", first_observed=False))
    assert env.reset(seed=0)[0].tolist() == [1, -2, 0]


def test_shown_arrays_are_the_callers() -> None:
    for env in (CarriedObservation(lake(1.0)), CarriedObservation(cart(1.0))):
        first, _ = env.reset(seed=0)
        kept = first.copy()
        first[:] = 0
        assert np.array_equal(env.step(0)[0], kept)


# --- bad input ---------------------------------------------------------------------------------------------------


def wrong(make: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert words in one_sentence(caught.value)


def test_what_does_not_fit_is_refused_with_a_sentence() -> None:
    bare = gym.make("lacuna/Lake-v0")
    for wrapper in (CarriedObservation, ImputedObservation):
        wrong(lambda wrapper=wrapper: wrapper(bare), TypeError, "wrap it in MissingObservation first")
        wrong(
            lambda wrapper=wrapper: wrapper(gym.make("CartPole-v1")), TypeError, "wrap it in MissingObservation first"
        )
    anything: Any = "median"
    wrong(lambda: ImputedObservation(lake(), show=anything), ValueError, "it must be one of shares, mode")
    wrong(lambda: ImputedObservation(lake(), show="mean"), ValueError, "'shares' is the closest")
    wrong(lambda: ImputedObservation(lake(), bins=EDGES), ValueError, "leave them out")
    wrong(lambda: ImputedObservation(cart()), ValueError, "the imputer needs bins")
    wrong(
        lambda: ImputedObservation(cart(), bins=EDGES[:3]), ValueError, "bins for 3 components; the observation has 4"
    )
    for edges in ([0.0], [1.0, 1.0], [0.0, np.nan], [[0.0, 1.0]], [2.0, 1.0]):
        wrong(lambda edges=edges: ImputedObservation(cart(), bins=[*EDGES[:3], edges]), ValueError, "bins[3] is ")
    wrong(lambda: ImputedObservation(lake(), Settings("missing-as-state")), ValueError, "which guesses nothing")
    wrong(
        lambda: ImputedObservation(lake(), Agent(Space((2, 2)), 8)), ValueError, "the environment has (8, 8, 3) and 8"
    )
    wrong(lambda: ImputedObservation(lake(), anything), TypeError, "the imputer is 'median'")
    torque = MissingObservation(gym.make("Pendulum-v1"), "mcar:0.5")
    wrong(lambda: ImputedObservation(torque, bins=EDGES[:3]), TypeError, "needs Discrete ones")


def test_they_are_public() -> None:
    assert lacuna.ImputedObservation is ImputedObservation
    assert lacuna.CarriedObservation is CarriedObservation
