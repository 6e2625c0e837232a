"""Deep learners behind our imputer, and the comparison of them with lacuna's agent: every cell runs, once."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from lacuna import CarriedObservation, ImputedObservation, MissingObservation

ROOT = Path(__file__).parents[2]
RUN = ROOT / "benchmarks" / "deep" / "run.py"

sys.path.insert(0, str(RUN.parent))

# Imported by name: type checking must work where Stable-Baselines3 and torch are not installed.
check_env: Any = import_module("stable_baselines3.common.env_checker").check_env
contrib: Any = import_module("sb3_contrib")
benchmark: Any = import_module("run")
training: Any = import_module("training")
CELLS: Any = benchmark.chosen(["0.6", "seed 0"], 2_200)

# Small networks are faster on one thread than on several, most of all on a busy machine.
import_module("torch").set_num_threads(1)

BINS = [np.linspace(-limit, limit, 5) for limit in (2.4, 3.0, 0.21, 3.0)]


def lake() -> MissingObservation:
    return MissingObservation(gym.make("lacuna/Lake-v0"), "mcar:0.4")


@pytest.mark.parametrize("show", ["shares", "mode", "pathway", "mean", "spread", "carried"])
@pytest.mark.parametrize("numbers", [False, True])
def test_the_checker_accepts_imputed_observations(show: Any, numbers: bool) -> None:
    if not numbers and show in ("mean", "spread"):
        return
    missing = MissingObservation(gym.make("CartPole-v1"), "mcar:0.4") if numbers else lake()
    bins = BINS if numbers else None
    env = CarriedObservation(missing) if show == "carried" else ImputedObservation(missing, show=show, bins=bins)
    check_env(env, warn=True)


def test_the_recurrent_policy_takes_one_hot_vectors_but_not_multidiscrete() -> None:
    with pytest.raises(TypeError, match="input_size should be of type int"):
        contrib.RecurrentPPO("MlpLstmPolicy", lake(), device="cpu")
    for env in (gym.wrappers.FlattenObservation(lake()), ImputedObservation(lake())):
        contrib.RecurrentPPO("MlpLstmPolicy", env, n_steps=32, batch_size=32, device="cpu").learn(64)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.label)
def test_every_cell_of_the_comparison_runs(cell: Any) -> None:
    found = training.train(cell)
    assert found["key"] == cell.key
    assert [len(found[name]) for name in ("rewards", "episodes", "returns", "seconds")] == [2, 2, 2, 2]
    assert 0 < found["seconds"][0] <= found["seconds"][1]
    episodes, earned = sum(found["episodes"]), sum(found["returns"])
    if cell.world == "cartpole":
        # It pays 1 a step, and an episode has at most 500; the last ones are not over.
        assert found["rewards"] == [2000, 200]
        assert episodes > 10
        assert 0 <= 2_200 - earned <= 500 * training.LEARNERS[cell.learner].environments
    else:
        # A step costs 1 or 10, and an arrival pays 100.
        assert -22_000 <= sum(found["rewards"]) - 100 * episodes <= -2_200
        assert earned <= 100 * episodes


def test_a_long_run_of_ppo_begins_as_the_short_one() -> None:
    cell = next(cell for cell in CELLS if (cell.world, cell.learner, cell.view) == ("lake", "ppo", "imputed"))
    short, long = (training.train(cell._replace(steps=steps)) for steps in (4_000, 8_000))
    for name in ("rewards", "episodes", "returns"):
        assert short[name] == long[name][:2]
    assert len(long["rewards"]) == 4


def test_every_run_has_a_name_of_its_own_and_the_first_seeds_of_a_learner_come_first() -> None:
    cells = benchmark.chosen([], None)
    assert len({cell.key for cell in cells}) == len(cells) == 260
    for learner in training.LEARNERS:
        seeds = [cell.seed for cell in cells if cell.steps == 50_000 and cell.learner == learner]
        assert seeds == sorted(seeds)
        assert set(seeds) == set(range(5))
    assert [cell.steps for cell in cells] == sorted(cell.steps for cell in cells)


def test_all_views_of_a_world_have_the_same_masks_in_the_same_environment() -> None:
    def masks(cell: Any, number: int) -> list[list[int]]:
        record = training.Record(50)
        env = training.environment(cell, record)
        env.reset(seed=training.first_seed(cell) + number)
        found = []
        for _ in range(50):
            *_, terminated, truncated, info = env.step(0)
            found.append(info["mask"].tolist())
            if terminated or truncated:
                env.reset()
        assert record.taken == 50
        return found

    for world in ("lake", "cartpole"):
        first, *others = [cell for cell in CELLS if cell.world == world]
        for number in (0, 7):
            assert all(masks(other, number) == masks(first, number) for other in others)
        assert masks(first, 0) != masks(first, 7)
        assert masks(first, 7) != masks(first._replace(seed=1), 0)


def test_a_learner_starts_each_of_its_environments_with_a_seed_of_its_own() -> None:
    cell = next(cell for cell in CELLS if (cell.world, cell.learner, cell.view) == ("lake", "ppo", "plain"))
    cell = cell._replace(seed=3)
    envs = [training.environment(cell, training.Record(50)) for _ in range(8)]
    training.deep_model(cell, envs).env.reset()
    fresh = training.environment(cell, training.Record(50))
    for number, env in enumerate(envs):
        fresh.reset(seed=300 + number)
        for _ in range(20):
            *_, here = env.step(0)
            *_, there = fresh.step(0)
            assert here["mask"].tolist() == there["mask"].tolist()


def test_a_run_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    command = [sys.executable, str(RUN), "--out", str(tmp_path), "--steps", "1500", "--only", "lake 0.6 dqn", "seed 0"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    assert said.startswith("3 runs, 3 left")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {json.loads(content)["key"] + ".json" for content in files.values()} == set(files)
    again = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    assert again == "3 runs, 0 left\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
