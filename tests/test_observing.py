"""Bins, factored observations, delays and noise: what is shown follows from what was told, and from nothing else."""

from __future__ import annotations

import json
import warnings
from bisect import bisect_right
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lacuna
from edits import File
from lacuna import (
    Agent,
    BinnedObservation,
    Binning,
    DelayedObservation,
    FactoredObservation,
    MissingObservation,
    NoisyObservation,
    Settings,
    Space,
)
from lacuna.agent.methods import METHODS
from lacuna.agent.savefile import SaveFileError
from lacuna.missingness import mcar
from lacuna.worlds.mdp.tabular_env import TabularEnv
from test_wrapper import ALWAYS, LAKE, Show, plain

CART = Binning([[-0.8, 0.8], [-0.5, 0.5], [-0.1, -0.02, 0.02, 0.1], [-0.5, 0.5]], ("x", "v", "angle", "spin"))
BINS: dict[str, Any] = {"CartPole-v1": CART, "MountainCar-v0": (8, 6), "Acrobot-v1": (4, 4, 4, 4, 5, 5)}


class Script(gym.Env[Any, Any]):
    """Shows one row after the other of a table."""

    def __init__(self, rows: NDArray[Any], space: spaces.Space[Any]) -> None:
        self.rows, self.observation_space, self.action_space = rows, space, spaces.Discrete(2)
        self.t = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.t = 0
        return self.rows[0], {"own": 7}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        del action
        self.t += 1
        return self.rows[self.t], 0.0, False, False, {"own": 7}


def watch(env: gym.Env[Any, Any], n: int, seed: int = 0) -> list[Any]:
    """Observations and infos of an episode of `n` steps, as something that can be compared."""
    seen = [plain_pair(env.reset(seed=seed))]
    for _ in range(n):
        observation, *_, info = env.step(0)
        seen.append(plain_pair((observation, info)))
    return seen


def plain_pair(pair: tuple[Any, dict[str, Any]]) -> Any:
    return plain(pair[0]), plain(pair[1])


# --- binning -----------------------------------------------------------------------------------------------------

EDGES = st.lists(st.floats(-100, 100), max_size=6, unique=True).map(sorted)


@given(edges=st.lists(EDGES, min_size=1, max_size=4), data=st.data())
@settings(max_examples=100)
def test_a_value_lies_between_the_edges_of_its_bin_and_a_hidden_one_is_not_looked_at(
    edges: list[list[float]], data: st.DataObject
) -> None:
    edges = [sorted({edge + 0.0 for edge in row}) for row in edges]
    binning = Binning(edges)
    near = [st.sampled_from(row) | st.floats(-200, 200) if row else st.floats(-200, 200) for row in edges]
    values = data.draw(st.tuples(*near))
    mask = data.draw(st.lists(st.integers(0, 1), min_size=len(edges), max_size=len(edges)))
    bins = binning.cut(values)
    assert bins.tolist() == [bisect_right(row, value) for row, value in zip(edges, values, strict=True)]
    hidden = np.where(mask, np.nan, values)
    assert binning.cut(hidden, mask).tolist() == np.where(mask, binning.space.sizes, bins).tolist()
    again = Binning.from_dict(json.loads(json.dumps(binning.as_dict())))
    assert again == binning
    assert hash(again) == hash(binning)


def test_uniform_bins_have_equal_widths_and_quantiles_equal_shares() -> None:
    assert Binning.uniform((2, 4), 0, (1, 8), ("a", "b")).edges == ((0.5,), (2.0, 4.0, 6.0))
    sample = np.random.default_rng(0).exponential(size=(10_000, 1))
    cut = [int(Binning.quantiles(5, sample).cut(row)[0]) for row in sample]
    assert np.bincount(cut).tolist() == [2000] * 5
    ties = Binning.quantiles(4, [[0.0]] * 6 + [[1.0]] * 2)
    assert ties.edges == ((0.25,),)


def test_bins_from_a_random_policy_depend_on_the_seed_only_and_leave_hidden_values_out() -> None:
    one, two, other = (
        Binning.sampled(gym.make("CartPole-v1"), 4, steps=500, seed=seed, names=CART.names) for seed in (1, 1, 2)
    )
    assert one == two != other
    assert one.space.sizes == (4, 4, 4, 4)
    half = Binning.sampled(MissingObservation(gym.make("CartPole-v1"), mcar(4, (0, 0, 0.9, 0))), 4, steps=500, seed=1)
    # A hidden value is shown as 0; many zeros would pull the edges together.
    assert half.edges[0] == one.edges[0]
    assert half.edges[2] != one.edges[2]
    assert max(abs(edge) for edge in half.edges[2]) > 0.02


@pytest.mark.parametrize(("make", "sentence"), [
    (lambda: Binning([[1.0, 1.0]]), r"edges\[0\] is \[1.0, 1.0\]; edges must be finite and increasing"),
    (lambda: Binning([[0.0], [np.nan]]), r"edges\[1\] is \[nan\]; edges must be finite"),
    (lambda: Binning([[10**400]]), r"edges\[0\] is .* must be finite"),
    (lambda: Binning(cast("Any", [["a"]])), r"edges\[0\] holds 'a'; an edge is a number"),
    (lambda: Binning([[True]]), r"edges\[0\] holds True; an edge is a number"),
    (lambda: Binning(cast("Any", "ab")), "edges is 'ab'; it must be a list with an entry per component"),
    (lambda: Binning([]), "at least one component"),
    (lambda: Binning([[0.0]], ("a", "b")), "2 names"),
    (lambda: Binning.uniform(0, 0, 1), "the number of bins of component 0 is 0; it must be a whole number between 1"),
    (lambda: Binning.uniform(3, 0, np.inf), "component 0 lies between 0.0 and inf; uniform bins need finite bounds"),
    (lambda: Binning.uniform((3, 3), (0, 0, 0), 1), "low has 3 numbers and high has 1; there are 3 components|n has 2"),
    (lambda: Binning.quantiles(3, [[1.0], [1.0]]), "component 0 of the sample has fewer than two different values"),
    (lambda: Binning.quantiles(3, [1.0, 2.0]), r"the sample has shape \(2,\); it must be \[row, component\]"),
    (lambda: Binning.from_dict({"edges": [[0.0]]}), "a binning is .*; it must hold edges and names"),
    (lambda: CART.cut([0.0, 0.0]), "there are 2 values and 2 entries of the mask; bins are for 4"),
    (lambda: CART.cut([0.0, np.nan, 0.0, 0.0]), "component v is NaN; a missing value is told by the mask"),
    (lambda: BinnedObservation(gym.make("CartPole-v1"), 5), "component 1 of the observation lies between -inf and inf"),
    (lambda: BinnedObservation(gym.make("MountainCar-v0"), CART), "the binning is for 4 components; the observation"),
    (lambda: BinnedObservation(gym.make("Taxi-v4"), 5), "the observation space is Discrete; only the real numbers"),
])  # fmt: skip
def test_what_cannot_be_cut_is_refused_with_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()


@pytest.mark.parametrize("name", sorted(BINS))
def test_hiding_before_the_cut_shows_what_hiding_after_it_shows(name: str) -> None:
    before = BinnedObservation(MissingObservation(gym.make(name), "bursts:0.3,0.3"), BINS[name])
    after = MissingObservation(BinnedObservation(gym.make(name), BINS[name]), "bursts:0.3,0.3")
    bare = gym.make(name)
    assert before.observation_space == after.observation_space
    assert before.space == after.space == before.binning.space
    one, two, three = before.reset(seed=4)[0], after.reset(seed=4)[0], bare.reset(seed=4)[0]
    hidden = 0
    for action in np.random.default_rng(0).integers(2, size=200):
        assert one.tolist() == two.tolist()
        seen = one < before.space.sizes
        hidden += int((~seen).sum())
        assert one[seen].tolist() == before.binning.cut(three)[seen].tolist()
        one, _, ended, cut_off, _ = before.step(action)
        two, three = after.step(action)[0], bare.step(action)[0]
        if ended or cut_off:
            one, two, three = before.reset()[0], after.reset()[0], bare.reset()[0]
    assert hidden > 50


@given(seed=st.integers(0, 2**32), value=st.floats(-1, 1))
@settings(max_examples=50)
def test_a_hidden_real_number_changes_no_bin(seed: int, value: float) -> None:
    env = Show(spaces.Box(-1, 1, (3,), np.float64), np.zeros(3))
    wrapped = BinnedObservation(MissingObservation(env, "mcar:0.5", first_observed=False), 5)
    first = wrapped.reset(seed=seed)
    env.value = np.where(first[1]["mask"] == 1, value, env.value)
    assert plain_pair(wrapped.reset(seed=seed)) == plain_pair(first)


# --- factored ----------------------------------------------------------------------------------------------------

NESTED = spaces.Dict({
    "room": spaces.Discrete(4, start=-1),
    "doors": spaces.MultiBinary(2),
    "me": spaces.Dict({"hand": spaces.MultiDiscrete([3, 2], start=[1, 0]), "bag": spaces.Tuple([spaces.Discrete(5)])}),
})  # fmt: skip


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50)
def test_parts_of_parts_become_components_that_tell_the_same(seed: int) -> None:
    NESTED.seed(seed % 2**31)
    value = NESTED.sample()
    env = FactoredObservation(Show(NESTED, value))
    assert env.space == Space((2, 2, 5, 3, 2, 4), ("doors.0", "doors.1", "me.bag.0", "me.hand.0", "me.hand.1", "room"))
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    inner = value["me"]
    told = [*value["doors"], inner["bag"][0], *(inner["hand"] - [1, 0]), value["room"] + 1]
    assert observation.tolist() == [int(part) for part in told]


def test_names_are_kept_given_or_made() -> None:
    blackjack = gym.make("Blackjack-v1")
    assert FactoredObservation(blackjack).space == Space((32, 11, 2), ("x0", "x1", "x2"))
    named = FactoredObservation(blackjack, ("sum", "dealer", "ace"))
    assert MissingObservation(named, "mcar:0.2").space.names == ("sum", "dealer", "ace")
    assert MissingObservation(blackjack, "mcar:0.2").space.names == ("x0", "x1", "x2")
    assert FactoredObservation(TabularEnv(LAKE)).space == LAKE.space
    assert FactoredObservation(Show(spaces.Discrete(4, start=3), 5)).reset(seed=0)[0].tolist() == [2]
    with pytest.raises(TypeError, match="the part far of the observation is Box; components with finitely many"):
        FactoredObservation(Show(spaces.Dict({"far": spaces.Box(0, 1)}), None))
    with pytest.raises(ValueError, match="it has no components"):
        FactoredObservation(Show(spaces.Tuple([]), ()))


# --- delays ------------------------------------------------------------------------------------------------------

DELAYS = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
BOX, GRID = spaces.Box(-1, 1, (3,), np.float64), spaces.MultiDiscrete([5, 5, 5])


def table(seed: int, real: bool, n: int = 12) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, 3)) if real else rng.integers(5, size=(n, 3))


@given(delays=DELAYS, seed=st.integers(0, 2**32), real=st.booleans())
@settings(max_examples=50)
def test_what_is_shown_is_what_was_there_so_many_steps_ago(delays: Any, seed: int, real: bool) -> None:
    rows = table(seed, real)
    env = DelayedObservation(Script(rows, BOX if real else GRID), delays)
    seen = [env.reset(seed=0)[0], *(env.step(0)[0] for _ in rows[1:])]
    for t, shown in enumerate(seen):
        assert shown.tolist() == [rows[max(t - k, 0)][j] for j, k in enumerate(delays)]
        assert env.observation_space.contains(shown)
        assert not np.shares_memory(shown, rows)
    assert env.reset()[0].tolist() == rows[0].tolist()


@given(delays=DELAYS, seed=st.integers(0, 2**32), now=st.integers(1, 11), lost=st.sampled_from([0.0, 0.4]))
@settings(max_examples=100)
def test_what_has_not_arrived_changes_nothing_that_is_shown(delays: Any, seed: int, now: int, lost: float) -> None:
    """Neither with loss around the delay, nor without."""
    rows = table(seed, real=False)
    others = rows.copy()
    for j, k in enumerate(delays):
        # The first value arrives at once; later ones after k steps.
        others[max(now - k + 1, 1) :, j] = table(seed + 1, real=False)[max(now - k + 1, 1) :, j]
    one, two = (
        watch(MissingObservation(DelayedObservation(Script(table, GRID), delays), mcar(3, lost)), now, seed)
        for table in (rows, others)
    )
    assert one == two


def test_delays_go_by_name_and_leave_out_what_tells_the_end() -> None:
    env = DelayedObservation(TabularEnv(LAKE), {"colour": 3})
    assert env.delays == (0, 0, 3)
    assert env.reset(seed=0)[1] == {}
    with pytest.raises(ValueError, match="the delay names 'smell'; the components are row, column, colour"):
        DelayedObservation(TabularEnv(LAKE), {"smell": 3})
    with pytest.raises(ValueError, match="the delay of row is -1; it must be a whole number between 0 and 10000"):
        DelayedObservation(TabularEnv(LAKE), -1)
    with pytest.raises(ValueError, match="the delay has 2 numbers; the observation has 3 components"):
        DelayedObservation(TabularEnv(LAKE), (1, 2))


@pytest.mark.parametrize(
    "wrap", [lambda env: DelayedObservation(env, 1), lambda env: NoisyObservation(env, 0.1), FactoredObservation]
)
def test_what_is_hidden_cannot_be_delayed_noisy_or_taken_for_a_value(wrap: Any) -> None:
    with pytest.raises(ValueError, match=r"put around MissingObservation, .* put MissingObservation around"):
        wrap(MissingObservation(TabularEnv(LAKE), "mcar:0.4"))


# --- noise -------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), data=st.data())
@settings(max_examples=100)
def test_a_replaced_value_tells_nothing_of_the_truth(seed: int, data: st.DataObject) -> None:
    rows = table(seed, real=False)
    rates = data.draw(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 3))
    space = spaces.MultiDiscrete([5, 5, 5], start=[0, 2, -1])
    shift = np.array([0, 2, -1])
    noise = NoisyObservation(Script(rows + shift, space), rates)
    draws = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(4,)))).random((12, 3, 3))
    wrong = draws[:, :, 0] < rates
    others = np.where(wrong, table(seed + 1, real=False), rows)
    one, two = (watch(NoisyObservation(Script(r + shift, space), rates), 11, seed) for r in (rows, others))
    assert one == two
    shown = np.array([noise.reset(seed=seed)[0], *(noise.step(0)[0] for _ in rows[1:])])
    assert (shown == rows + shift)[~wrong].all()
    assert all(space.contains(row) for row in shown)


def test_values_are_replaced_as_often_as_the_rate_says_and_uniformly() -> None:
    n = 20_000
    env = NoisyObservation(Show(spaces.Discrete(4, start=1), 3), 0.6)
    env.reset(seed=1)
    counts = np.bincount([int(env.step(0)[0]) for _ in range(n)], minlength=5)
    p = np.array([0, 0.15, 0.15, 0.55, 0.15])
    assert (np.abs(counts / n - p) <= 4.5 * np.sqrt(p * (1 - p) / n)).all()


def test_errors_of_real_numbers_are_normal_and_stay_inside_the_space() -> None:
    n = 20_000
    env = NoisyObservation(Show(spaces.Box(-np.inf, np.inf, (2,), np.float64), np.zeros(2)), (0.5, 1), scale=(2.0, 3.0))
    env.reset(seed=1)
    shown = np.array([env.step(0)[0] for _ in range(n)])
    wrong = shown[shown[:, 0] != 0, 0]
    assert abs(wrong.size / n - 0.5) < 4.5 * 0.5 / n**0.5
    for errors, scale in ((wrong, 2.0), (shown[:, 1], 3.0)):
        assert abs(errors.mean()) < 4.5 * scale / errors.size**0.5
        assert abs(errors.std() / scale - 1) < 4.5 / (2 * errors.size) ** 0.5
        assert abs((errors < scale).mean() - 0.8413) < 4.5 * (0.8413 * 0.1587 / errors.size) ** 0.5
    tight = NoisyObservation(Show(spaces.Box(0, 255, (2,), np.uint8), np.array([250, 3], np.uint8)), 1, scale=9)
    tight.reset(seed=1)
    seen = [tight.step(0)[0] for _ in range(200)]
    assert all(tight.observation_space.contains(one) for one in seen)
    assert len({int(one[0]) for one in seen}) > 10


def test_noise_needs_a_scale_for_real_numbers_only() -> None:
    with pytest.raises(ValueError, match="the noise of a Box observation needs a scale"):
        NoisyObservation(gym.make("CartPole-v1"), 0.1)
    with pytest.raises(ValueError, match="the noise of a MultiDiscrete observation has no scale: values are replaced"):
        NoisyObservation(gym.make("lacuna/Lake-v0"), 0.1, scale=1)
    with pytest.raises(ValueError, match=r"the rate of row is 1\.5; it must be a number between 0 and 1"):
        NoisyObservation(gym.make("lacuna/Lake-v0"), {"row": 1.5})


def path(wrap: Any, seed: int = 3) -> list[Any]:
    """Where the world really goes, under fixed actions."""
    bare = TabularEnv(LAKE)
    env = wrap(bare)
    env.reset(seed=seed)
    found = []
    for action in np.random.default_rng(0).integers(LAKE.n_actions, size=300):
        _, reward, terminated, *_ = env.step(action)
        found.append((bare.true_state, reward, terminated))
        if terminated:
            env.reset()
    return found


def test_delay_and_noise_leave_the_path_of_the_world_and_the_masks_alone() -> None:
    plainly = path(lambda env: env)
    assert path(lambda env: DelayedObservation(env, 2)) == plainly
    assert path(lambda env: NoisyObservation(env, 0.5)) == plainly
    assert (
        path(lambda env: MissingObservation(DelayedObservation(NoisyObservation(env, 0.5), 2), "mcar:0.3")) == plainly
    )
    masks = []
    for wrap in (lambda env: env, lambda env: NoisyObservation(env, 0.9), lambda env: DelayedObservation(env, 4)):
        env = MissingObservation(wrap(TabularEnv(LAKE)), "mcar:0.4")
        env.reset(seed=5)
        masks.append([env.step(1)[-1]["mask"].tolist() for _ in range(5)])
    assert masks[0] == masks[1] == masks[2]


# --- agents ------------------------------------------------------------------------------------------------------

WRAPPED: dict[str, Any] = {
    "CartPole-v1": lambda: BinnedObservation(MissingObservation(gym.make("CartPole-v1"), "mcar:0.3"), CART),
    "MountainCar-v0": lambda: MissingObservation(BinnedObservation(gym.make("MountainCar-v0"), (8, 6)), "mcar:0.3"),
    "Acrobot-v1": lambda: BinnedObservation(
        MissingObservation(DelayedObservation(gym.make("Acrobot-v1"), 2), "mcar:0.3"), BINS["Acrobot-v1"]
    ),
    "Blackjack-v1": lambda: MissingObservation(gym.make("Blackjack-v1"), "mcar:0.3"),
    "FrozenLake-v1": lambda: MissingObservation(NoisyObservation(gym.make("FrozenLake-v1"), 0.1), "mcar:0.3"),
    "Taxi-v4": lambda: MissingObservation(gym.make("Taxi-v4"), "mcar:0.3", drop_info=["action_mask"]),
    "lacuna/Lake-v0": lambda: MissingObservation(gym.make("lacuna/Lake-v0"), "mcar:0.3", encoding="dict"),
    "filled in": lambda: gym.wrappers.TransformObservation(
        MissingObservation(gym.make("lacuna/Lake-v0"), "mcar:0.3"),
        lambda seen: np.minimum(seen, np.array(LAKE.space.sizes) - 1),
        spaces.MultiDiscrete(np.array(LAKE.space.sizes)),
    ),
}
SIZES = {
    "CartPole-v1": (3, 3, 5, 3), "MountainCar-v0": (8, 6), "Acrobot-v1": (4, 4, 4, 4, 5, 5),
    "Blackjack-v1": (32, 11, 2), "FrozenLake-v1": (16,), "Taxi-v4": (500,), "lacuna/Lake-v0": (8, 8, 3),
    "filled in": (8, 8, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WRAPPED))
def test_gymnasium_accepts_every_wrapped_environment(name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ALWAYS)
        check_env(WRAPPED[name](), skip_render_check=True)


@pytest.mark.parametrize("name", sorted(WRAPPED))
def test_every_agent_runs_in_every_wrapped_environment(name: str) -> None:
    assert len(METHODS) >= 8
    for method in METHODS:
        env = WRAPPED[name]()
        agent = Agent.for_env(env, Settings(method, gamma=0.9, epsilon=0.1), seed=1)
        assert agent.space.sizes == SIZES[name]
        assert np.isfinite(lacuna.play(env, agent, 40, seed=1))
        assert agent.steps == 40


@pytest.mark.parametrize(("env", "sentence"), [
    (gym.make("Pendulum-v1"), r"the action space is Box\(.*; an Agent chooses among finitely many actions"),
    (gym.make("CartPole-v1"), "the observation is a Box of 4 real numbers, .*; wrap it in lacuna.BinnedObservation"),
    (MissingObservation(gym.make("CartPole-v1"), "mcar:0.1"), "a Box of 4 real numbers"),
    (Show(spaces.Box(0, 1, ()), None), "a Box of 1 real number, .*; wrap it in lacuna.BinnedObservation"),
    (Show(spaces.Box(0, 255, (64, 64, 3), np.uint8), None), r"a Box of shape \(64, 64, 3\), such as an image"),
    (gym.make("Blackjack-v1"), "the observation space is Tuple; .* wrap the environment in lacuna.FactoredObservation"),
    (Show(spaces.Text(4), None), "the observation space is Text; components are found in"),
    (Show(spaces.Discrete(4, start=2), None), r"the components count from \[2\]; an Agent counts them from 0"),
])  # fmt: skip
def test_an_environment_that_no_agent_can_take_is_refused_with_a_sentence(env: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence) as refused:
        Agent.for_env(env)
    assert "\n" not in str(refused.value)


def test_actions_that_do_not_count_from_0_are_refused() -> None:
    env = Show(spaces.Discrete(4), 0)
    env.action_space = spaces.Discrete(2, start=1)
    with pytest.raises(ValueError, match="the actions count from 1; an Agent counts them from 0"):
        Agent.for_env(env)


def test_bins_are_saved_with_the_agent_and_other_bins_are_refused(tmp_path: Path) -> None:
    env = WRAPPED["CartPole-v1"]()
    agent = Agent.for_env(env, Settings("mi-synthetic", K=2, gamma=0.9), seed=1)
    lacuna.play(env, agent, 100, seed=1)
    agent.save(tmp_path / "cart")
    loaded = Agent.load(tmp_path / "cart")
    assert loaded.binning == CART
    again = BinnedObservation(MissingObservation(gym.make("CartPole-v1"), "mcar:0.3"), loaded.binning)
    assert lacuna.play(again, loaded, 50, seed=2) == lacuna.play(env, agent, 50, seed=2)
    assert (loaded.Q == agent.Q).all()
    moved = BinnedObservation(gym.make("CartPole-v1"), Binning([[0.1, 0.2], *CART.edges[1:]], CART.names))
    with pytest.raises(ValueError, match="cuts its observation at other edges than those the agent learned with"):
        lacuna.play(moved, loaded, 5, seed=0)
    with pytest.raises(ValueError, match=r"binning has \(3, 3, 5, 3\) bins; the components of the space have \(3, 2\)"):
        Agent(Space((3, 2)), 2, binning=CART)


@pytest.mark.parametrize(("edit", "sentence"), [
    (lambda bins: bins["edges"][0].reverse(), r"edges\[0\] is \[0.8, -0.8\]; edges must be finite and increasing"),
    (lambda bins: bins["edges"].pop(), "4 names"),
    (lambda bins: bins["edges"][0].append(2.0), "binning has"),
    (lambda bins: bins.pop("names"), "it must hold edges and names"),
    (lambda bins: bins.update(names="wxyz"), "names is 'wxyz'; it must be a list"),
])  # fmt: skip
def test_bins_in_a_file_are_not_trusted(edit: Any, sentence: str, tmp_path: Path) -> None:
    Agent(CART.space, 2, Settings("last-observed"), binning=CART).save(tmp_path / "cart")
    file = File.of((tmp_path / "cart").read_bytes())
    edit(file.header["binning"])
    (tmp_path / "cart").write_bytes(file.body())
    with pytest.raises(SaveFileError, match=sentence):
        Agent.load(tmp_path / "cart")


def test_an_agent_without_bins_is_saved_as_before(tmp_path: Path) -> None:
    Agent(Space((3,)), 2, Settings("last-observed")).save(tmp_path / "one")
    assert b"binning" not in (tmp_path / "one").read_bytes()
    assert Agent.load(tmp_path / "one").binning is None
