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
CELLS: Any = benchmark.chosen(["0.6", "seed 0"], 200)

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
    assert len(found["rewards"]) == len(found["episodes"]) == len(found["seconds"]) == training.WINDOWS
    assert found["seconds"] == sorted(found["seconds"])
    # CartPole pays 1 a step; a step of Lake World costs 1 or 10, and an arrival pays 100.
    assert cell.world == "lake" or sum(found["rewards"]) == 200
    assert cell.world == "cartpole" or -2000 <= sum(found["rewards"]) - 100 * sum(found["episodes"]) <= 0
    assert cell.world == "lake" or sum(found["episodes"]) > 2


def test_every_run_has_a_name_of_its_own_and_first_seeds_come_first() -> None:
    cells = benchmark.chosen([], None)
    assert len({cell.key for cell in cells}) == len(cells) == 260
    short = [cell.seed for cell in cells if cell.steps == 50_000]
    assert short == sorted(short)
    assert [cell.steps for cell in cells] == sorted(cell.steps for cell in cells)


def test_all_views_of_a_world_have_the_same_masks() -> None:
    def masks(cell: Any) -> list[list[int]]:
        recorder, env = training.environment(cell)
        env.reset(seed=cell.seed)
        found = []
        for _ in range(50):
            *_, terminated, truncated, info = env.step(0)
            found.append(info["mask"].tolist())
            if terminated or truncated:
                env.reset()
        assert recorder.taken == 50
        return found

    for world in ("lake", "cartpole"):
        first, *others = [masks(cell) for cell in CELLS if cell.world == world]
        assert all(other == first for other in others)


def test_a_run_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    command = [sys.executable, str(RUN), "--out", str(tmp_path), "--steps", "200", "--only", "lake 0.6 dqn", "seed 0"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    assert said.startswith("3 runs, 3 left")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {json.loads(content)["key"] + ".json" for content in files.values()} == set(files)
    again = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    assert again == "3 runs, 0 left\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
