"""An object of the wrong kind, wherever one is taken, gets a sentence that says what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import lacuna
from lacuna import MissingObservation, Settings, VectorMissingObservation
from lacuna.agent.own_method import find_method
from lacuna.run.problems import Problem
from sentences import one_sentence


def frozen_lake() -> Any:
    return gymnasium.make("FrozenLake-v1")


def vector() -> Any:
    return gymnasium.make_vec("FrozenLake-v1", num_envs=2)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a number as mechanism": (lambda: MissingObservation(frozen_lake(), 0.3), "mechanism is 0.3; it must be a Mech"),  # type: ignore[arg-type]
    "the same of many": (lambda: VectorMissingObservation(vector(), 0.3), "mechanism is 0.3; it must be a Mech"),  # type: ignore[arg-type]
    "an id to wrap": (lambda: MissingObservation("FrozenLake-v1", "none"), "env is 'FrozenLake-v1'; it must be a Gym"),  # type: ignore[arg-type]
    "an id to delay": (lambda: lacuna.DelayedObservation("Taxi-v3", 1), "env is 'Taxi-v3'; it must be a Gymnasium"),  # type: ignore[arg-type]
    "an id for an agent": (lambda: lacuna.Agent.for_env("FrozenLake-v1"), "env is 'FrozenLake-v1'; it must be a Gym"),  # type: ignore[arg-type]
    "many at once": (
        lambda: lacuna.Agent.for_env(vector()),
        "put VectorMissingObservation around a vector environment",
    ),
    "a name to check": (lambda: lacuna.check_world("lake"), "mdp is 'lake'; it must be a TabularMDP"),  # type: ignore[arg-type]
    "an env to check": (lambda: lacuna.check_world(frozen_lake()), "it must be a TabularMDP; lacuna.make_world makes"),
    "a text to check": (lambda: lacuna.check_mechanism("mcar:0.2"), "mechanism is 'mcar:0.2'; it must be a Mechanism"),  # type: ignore[arg-type]
    "a name to solve": (lambda: lacuna.solve("lake", 0.9), "mdp is 'lake'; it must be a TabularMDP"),  # type: ignore[arg-type]
    "a number to make": (lambda: lacuna.make_world(5), "the world is 5; it must be a text"),  # type: ignore[arg-type]
    "no workers": (lambda: lacuna.Local(0), "workers is 0; it must be a whole number, 1 or larger"),
    "workers in words": (lambda: lacuna.Local("2"), "workers is '2'; it must be a whole number"),  # type: ignore[arg-type]
    "a number of seeds": (
        lambda: lacuna.run_trials(
            Problem.named("corridor", "none"),
            Settings("last-observed"),
            steps=10,
            seeds=2,  # type: ignore[arg-type]
        ),
        "seeds is 2; it must be a list of whole numbers, e.g. range(10)",
    ),
    "a setting that is none": (lambda: find_method("mi-planned,gama=2"), "is 'gama' (did you mean 'gamma'?)"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_object_gets_a_sentence(what: str) -> None:
    attempt, sentence = WRONG[what]
    with pytest.raises((TypeError, ValueError)) as told:
        attempt()
    assert sentence in str(told.value)
    assert one_sentence(told.value)


def test_a_file_for_a_study_and_a_page_without_a_folder(tmp_path: Path) -> None:
    store = lacuna.Store(tmp_path / "results")
    with pytest.raises(TypeError, match=r"study is 'farm\.toml'; it must be a Study; Study\.read reads a file"):
        lacuna.run_study("farm.toml", store, lacuna.Local(1))  # type: ignore[arg-type]
    agent = lacuna.Agent.for_env(frozen_lake())
    for path, why in ((tmp_path / "no/agent", "there is no folder"), (tmp_path, "it is a folder")):
        with pytest.raises(OSError, match=why):
            agent.save(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results"]


def test_the_public_names_are_listed_for_completion() -> None:
    assert {"Agent", "Study", "compare", "from_masks"} <= set(dir(lacuna))
