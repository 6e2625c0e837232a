import re
import subprocess
import sys
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from lacuna.kernels.compiled import kernel
from lacuna.kernels.space import Space
from lacuna.kernels.streams import Stream, Uniforms
from lacuna.worlds.lake import Lake
from lacuna.worlds.lake_picture import LakePainter
from lacuna.worlds.mdp.dynamics import move, start_state
from lacuna.worlds.mdp.painter import PicturePainter
from lacuna.worlds.mdp.tabular import Dynamics, Outcome, TabularMDP
from lacuna.worlds.mdp.tabular_env import PlainPainter, TabularEnv
from lacuna.worlds.registry import WORLDS, make_world, world_env
from lacuna.worlds.toy_text import cliff_walking_mdp, from_toy_text, frozen_lake_mdp, taxi_mdp
from lacuna.worlds.toys import bandit, corridor, loop

IDS = [world.env_id for world in WORLDS.values()]


Entries = dict[tuple[int, float, bool], float]


def merged(outcomes: list[Outcome], twin: tuple[int, int] | None = None) -> Entries:
    table: Entries = {}
    for p, t, r, end in outcomes:
        state = twin[1] if twin is not None and t == twin[0] else int(t)
        key = (state, float(r), bool(end))
        table[key] = table.get(key, 0.0) + float(p)
    return {key: p for key, p in table.items() if p > 0}


def assert_same_table(env: gymnasium.Env[Any, Any], world: TabularMDP, twin: tuple[int, int] | None = None) -> None:
    toy: Any = env.unwrapped
    for s, by_action in toy.P.items():
        for a, outcomes in by_action.items():
            ours, theirs = merged(world.outcomes(s, a), twin), merged(outcomes)
            assert ours.keys() == theirs.keys(), (s, a)
            assert all(abs(ours[key] - p) < 1e-15 for key, p in theirs.items()), (s, a)
    starts = np.zeros(world.n_states)
    starts[list(world.starts[0])] = list(world.starts[0].values())
    assert np.array_equal(starts[: len(toy.P)], toy.initial_state_distrib)
    assert world.n_actions == toy.action_space.n


def actions_of(seed: int, n: int, n_actions: int) -> list[int]:
    return [int(a) for a in np.random.default_rng(seed).integers(n_actions, size=n)]


def walk(env: gymnasium.Env[Any, Any], seed: int, actions: list[int]) -> list[Any]:
    shown, _ = env.reset(seed=seed)
    path: list[Any] = [np.asarray(shown).tolist()]
    for action in actions:
        shown, reward, terminated, truncated, info = env.step(action)
        path.append((np.asarray(shown).tolist(), reward, terminated, truncated, info))
        if terminated or truncated:
            path.append(np.asarray(env.reset()[0]).tolist())
    return path


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasiums_checker_passes_without_a_warning(env_id: str) -> None:
    env = gymnasium.make(env_id)
    check_env(env.unwrapped)
    env.close()


def test_every_world_has_an_id_a_line_and_a_table() -> None:
    assert len(IDS) == 13
    assert all(isinstance(make_world(name), TabularMDP) for name in WORLDS)
    assert {env_id for env_id in gymnasium.registry if env_id.startswith("lacuna/")} >= set(IDS)


def test_registering_imports_nothing_heavy() -> None:
    code = "import sys, lacuna.worlds; print([m for m in ('numba', 'scipy', 'pygame') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


MAPS = [["SFH", "FFF", "HFG"], ["SFFS", "FHFG"]]


@pytest.mark.parametrize("is_slippery", [False, True])
@pytest.mark.parametrize("kwargs", [{"map_name": "4x4"}, {"map_name": "8x8"}, *({"desc": desc} for desc in MAPS)])
def test_frozen_lakes_table_is_the_original(kwargs: dict[str, Any], is_slippery: bool) -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=is_slippery, **kwargs)
    toy: Any = env.unwrapped
    world = frozen_lake_mdp(is_slippery=is_slippery, **kwargs)
    assert_same_table(env, world)
    assert world.space == Space((toy.nrow, toy.ncol), ("row", "column"))
    assert world.shows.tolist() == list(range(toy.nrow * toy.ncol))
    assert world.bad.tolist() == [sign == b"H" for sign in toy.desc.ravel()]
    assert world.max_steps == (200 if kwargs.get("map_name") == "8x8" else 100)


def test_frozen_lakes_other_parameters_reach_the_table() -> None:
    env = gymnasium.make("FrozenLake-v1", success_rate=0.8, reward_schedule=(5, -2, -1))
    assert_same_table(env, frozen_lake_mdp(success_rate=0.8, reward_schedule=(5, -2, -1)))
    assert frozen_lake_mdp(success_rate=1.0).outcomes(0, 2) == [(1.0, 1, 0.0, False)]


@pytest.mark.parametrize("is_slippery", [False, True])
def test_cliff_walkings_table_is_the_original_but_for_the_twin_of_the_start(is_slippery: bool) -> None:
    env = gymnasium.make("CliffWalking-v1", is_slippery=is_slippery)
    world = cliff_walking_mdp(is_slippery)
    assert_same_table(env, world, twin=(48, 36))
    assert world.space.sizes == (4, 12)
    assert [world.outcomes(48, a) for a in range(4)] == [world.outcomes(36, a) for a in range(4)]
    assert world.shows[48] == world.shows[36] == 36
    assert np.flatnonzero(world.bad).tolist() == [48]
    for s in range(48):
        for a in range(4):
            assert all((t == 48) == (r == -100) for _, t, r, _ in world.outcomes(s, a))


@pytest.mark.parametrize("kwargs", [{}, {"is_rainy": True}, {"is_rainy": True, "rainy_probability": 0.6}])
def test_taxis_table_is_the_original(kwargs: dict[str, Any]) -> None:
    env = gymnasium.make("Taxi-v4", **kwargs)
    toy: Any = env.unwrapped
    world = taxi_mdp(**kwargs)
    assert_same_table(env, world)
    assert world.space.names == ("taxi row", "taxi column", "passenger", "destination")
    assert all(world.space.decode(s) == toy.decode(s) for s in range(500))
    assert world.max_steps == 200
    assert not world.bad.any()


class Own(gymnasium.Env[int, int]):
    """Somebody's own environment with a table."""

    def __init__(self) -> None:
        self.P = {0: {0: [(1.0, 1, 2.0, False)]}, 1: {0: [(1.0, 0, 3.0, True)]}}
        self.initial_state_distrib = np.array([1.0, 0.0])
        self.action_space = gymnasium.spaces.Discrete(1)  # type: ignore[assignment]


def test_any_environment_with_a_table_will_do() -> None:
    world = from_toy_text(Own())
    assert_same_table(Own(), world)
    assert (world.space.names, world.max_steps) == (("state",), 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: taxi_mdp(fickle_passenger=True), "fickle_passenger is True; a passenger who changes destination"),
        (lambda: from_toy_text("Taxi-v4", fickle_passenger=True), "fickle_passenger is True"),
        (lambda: from_toy_text("CartPole-v1"), "CartPoleEnv has no table P"),
        (lambda: from_toy_text(Own(), is_rainy=True), "is_rainy can be given with an id only"),
        (lambda: frozen_lake_mdp("5x5"), "map_name is '5x5'; there are 4x4 and 8x8"),
        (lambda: frozen_lake_mdp(desc=["SF", "FX"]), "desc, row 1, column 1: 'X' is unknown"),
        (lambda: frozen_lake_mdp(desc=["SF", "F"]), "desc, row 1: the row has 1 cells, the first has 2"),
        (lambda: frozen_lake_mdp(desc=["S" * 1000] * 101), "the number of cells of desc is 101000; it must be"),
        (lambda: frozen_lake_mdp(desc=["FF", "FG"]), "desc has no start 'S'"),
        (lambda: make_world("tax"), "no world is called 'tax' (did you mean 'taxi'?); there are lake, lookout"),
        (lambda: make_world("qqq"), "no world is called 'qqq'; there are lake"),
        (lambda: make_world("lake", wnd=1), "the world 'lake' has no parameter 'wnd' (did you mean 'wind'?)"),
        (lambda: make_world("loop", zzz=1), "the world 'loop' has no parameter 'zzz'; there are near, far"),
        (lambda: make_world("lake", wind=2), "wind is 2.0; it must be a number between 0 and 1"),
        (lambda: gymnasium.make("lacuna/Lake-v0", colour=1), "the world 'lake' has no parameter 'colour'"),
        (lambda: TabularEnv(corridor(), "rgb_array"), "render_mode is 'rgb_array'; corridor can be drawn as ansi"),
        (lambda: TabularEnv(corridor()).reset(options={"x": 1}), "the options ['x']; corridor takes none"),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused_with_a_sentence(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_parameters_reach_the_world() -> None:
    env: Any = gymnasium.make("lacuna/Lake-v0", wind=0.0, stay=True, max_steps=3).unwrapped
    assert env.mdp.n_actions == 9
    assert env.mdp.max_steps == 3
    assert make_world("lake", wind=0.0).outcomes(0, 2)[0][0] == pytest.approx(0.9)


@pytest.mark.parametrize("env_id", IDS)
def test_the_same_seed_gives_the_same_path_and_another_seed_another(env_id: str) -> None:
    env: Any = gymnasium.make(env_id).unwrapped
    actions = actions_of(3, 60, env.mdp.n_actions)
    first = walk(env, 5, actions)
    assert walk(env, 5, actions) == first, "seeding makes a fresh world"
    assert walk(gymnasium.make(env_id).unwrapped, 5, actions) == first
    if env_id in ("lacuna/Lake-v0", "lacuna/FrozenLake-v0", "lacuna/Taxi-v0", "lacuna/Bandit-v0"):
        assert walk(env, 6, actions) != first


@kernel
def compiled_walk(actions: Any, world: Dynamics, uniforms: Uniforms, states: Any, rewards: Any) -> None:
    state = start_state(0, world, uniforms)
    states[0] = state
    steps = 0
    for i in range(actions.shape[0]):
        entry = move(state, actions[i], world, uniforms)
        state = world.next_state[entry]
        rewards[i] = world.reward[entry]
        states[i + 1] = state
        steps += 1
        if (world.ends[entry] and world.terminates) or steps == world.max_steps:
            state = start_state(world.restart[state], world, uniforms)
            steps = 0


@pytest.mark.parametrize(
    "mdp", [Lake().mdp(), Lake(max_steps=7).mdp(), Lake(continuing=True).mdp(), taxi_mdp(is_rainy=True), bandit()]
)
def test_the_path_is_that_of_a_compiled_loop_on_the_same_stream(mdp: TabularMDP) -> None:
    n = 3000
    actions = actions_of(8, n, mdp.n_actions)
    states, rewards = np.zeros(n + 1, dtype=np.int64), np.zeros(n)
    stream = Stream(42, "world")
    compiled_walk(np.array(actions), mdp.dynamics, stream.need(2 * n + 1), states, rewards)
    env = TabularEnv(mdp)
    env.reset(seed=42)
    assert env.true_state == states[0]
    for i, action in enumerate(actions):
        shown, reward, terminated, truncated, _ = env.step(action)
        assert (env.true_state, reward) == (states[i + 1], rewards[i])
        assert mdp.space.encode(np.atleast_1d(shown).tolist()) == mdp.shows[env.true_state]
        if terminated or truncated:
            env.reset()
    assert env.stream is not None
    assert env.stream.position == stream.position


def test_a_plain_reset_carries_the_flood_on_and_a_seed_starts_flooded() -> None:
    env = TabularEnv(Lake(flood=0.3).mdp())
    seen = set()
    env.reset(seed=1)
    assert env.true_state == 113
    for action in actions_of(0, 200, 8):
        env.step(action)
        flooded = env.true_state % 2
        seen.add(flooded)
        env.reset()
        assert env.true_state == 112 + flooded, "back at the start cell, and no extra flip"
    assert seen == {0, 1}
    env.reset(seed=2)
    assert env.true_state == 113


def test_a_first_plain_reset_takes_a_seed_of_its_own() -> None:
    streams = []
    for _ in range(3):
        env = TabularEnv(Lake().mdp())
        env.reset()
        assert env.true_state == 113
        assert env.stream is not None
        streams.append(env.stream.seed)
    assert len(set(streams)) == 3


def test_truncation_by_max_steps() -> None:
    env = TabularEnv(Lake(max_steps=4).mdp())
    for _ in range(2):
        env.reset(seed=0)
        flags = [env.step(0)[2:4] for _ in range(4)]
        assert flags == [(False, False)] * 3 + [(False, True)]
        with pytest.raises(RuntimeError, match="step was called after the episode ended; call reset first"):
            env.step(0)


def test_arriving_at_the_last_permitted_step_terminates_and_does_not_truncate() -> None:
    env = TabularEnv(Lake(map="SG", wind=0.0, max_steps=1).mdp())
    env.reset(seed=0)
    assert env.step(2)[2:] == (True, False, {"episode_ended": True})


def test_a_continuing_world_never_terminates_and_counts_its_episodes() -> None:
    env = TabularEnv(Lake(map="S..G", wind=0.0, continuing=True).mdp())
    env.reset(seed=0)
    steps = [env.step(2) for _ in range(9)]
    assert not any(terminated or truncated for _, _, terminated, truncated, _ in steps)
    assert [info["episode_ended"] for *_, info in steps] == [False, False, True] * 3
    assert [step[0][1] for step in steps] == [1, 2, 3] * 3  # type: ignore[index]


def test_info_says_nothing_of_the_truth() -> None:
    env = TabularEnv(Lake().mdp())
    assert env.reset(seed=0)[1] == {"episode_ended": False}
    for action in actions_of(1, 50, 8):
        *_, info = env.step(action)
        assert info.keys() == {"episode_ended"}
        assert type(info["episode_ended"]) is bool


def test_observations_are_copies() -> None:
    env = TabularEnv(Lake().mdp())
    shown, _ = env.reset(seed=0)
    assert isinstance(shown, np.ndarray)
    shown[:] = 99
    assert np.asarray(env.reset(seed=0)[0]).tolist() == [7, 0, 0]


@pytest.mark.parametrize("action", [-1, 8, 1.5, "up", None])
def test_an_action_out_of_range_is_refused_and_moves_nothing(action: Any) -> None:
    env = TabularEnv(Lake().mdp())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=re.escape(f"action is {action!r}; it must be a whole number from 0 to 7")):
        env.step(action)
    assert env.stream is not None
    assert env.stream.position == 1


def test_acting_or_drawing_before_the_first_reset_is_refused() -> None:
    env = TabularEnv(Lake().mdp(), "ansi", LakePainter(Lake()))
    with pytest.raises(RuntimeError, match="step was called before the first reset"):
        env.step(0)
    with pytest.raises(RuntimeError, match="render was called before the first reset"):
        env.render()


def test_each_world_advertises_the_pictures_it_has() -> None:
    assert world_env("lake").metadata["render_modes"] == ["ansi", "rgb_array"]
    for name in WORLDS:
        if name != "lake":
            assert world_env(name).metadata["render_modes"] == ["ansi"]
    assert isinstance(LakePainter(Lake()), PicturePainter)
    assert not isinstance(PlainPainter(loop()), PicturePainter)


def test_rendering_in_every_mode() -> None:
    lake = Lake()
    env = TabularEnv(lake.mdp(), "rgb_array", LakePainter(lake, cell=16))
    env.reset(seed=0)
    assert np.array_equal(env.render(), LakePainter(lake, cell=16).picture(113))
    text = world_env("lake", render_mode="ansi")
    text.reset(seed=0)
    assert text.render().startswith("flooded; row 7, column 0, green\n........\n")
    silent = world_env("lake")
    silent.reset(seed=0)
    assert silent.render() is None
    plain = world_env("taxi", render_mode="ansi")
    shown, _ = plain.reset(seed=0)
    row, column, passenger, destination = np.asarray(shown).tolist()
    assert plain.render() == f"taxi row {row}, taxi column {column}, passenger {passenger}, destination {destination}"


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments_walk_the_paths_of_single_ones(mode: Any) -> None:
    vector = gymnasium.make_vec("lacuna/Lake-v0", num_envs=2, vectorization_mode=mode, max_steps=6)
    actions = [actions_of(k, 20, 8) for k in (10, 11)]
    shown = [vector.reset(seed=3)[0]]
    shown += [vector.step(np.array(pair))[0] for pair in zip(*actions, strict=True)]
    vector.close()
    for k, seed in enumerate((3, 4)):
        env = TabularEnv(Lake(max_steps=6).mdp())
        path, over = [env.reset(seed=seed)[0]], False
        for action in actions[k]:
            if over:
                path.append(env.reset()[0])
                over = False
            else:
                now, _, terminated, truncated, _ = env.step(action)
                path.append(now)
                over = terminated or truncated
        assert all(np.array_equal(batch[k], single) for batch, single in zip(shown, path, strict=True))


def test_long_run_shares_match_the_table() -> None:
    env = TabularEnv(corridor(length=2, slip=0.3))
    env.reset(seed=7)
    n, moved = 4000, 0
    for _ in range(n):
        _, _, terminated, _, _ = env.step(1)
        if terminated:
            moved += 1
            env.reset()
    assert abs(moved / n - 0.7) < 4 * np.sqrt(0.3 * 0.7 / n)


def test_paths_step_to_neighbours_only() -> None:
    env = TabularEnv(Lake(continuing=True, stay=True).mdp())
    path = [np.asarray(env.reset(seed=0)[0])] + [np.asarray(env.step(a)[0]) for a in actions_of(2, 500, 9)]
    for before, after in pairwise(path):
        if tuple(before[:2]) == (6, 7):
            before = np.array([7, 0, 0])  # noqa: PLW2901
        assert np.abs(before[:2] - after[:2]).max() <= 1
