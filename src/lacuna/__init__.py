"""lacuna: online reinforcement learning when parts of the state go missing.

Importing lacuna registers its worlds with Gymnasium (``lacuna/Lake-v0`` and so on). Everything heavier is imported when
it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lacuna.validation import extras_named
from lacuna.version import __version__
from lacuna.worlds.registry import make_world

if TYPE_CHECKING:
    from lacuna.agent.agent import Agent
    from lacuna.agent.binning import Binning
    from lacuna.agent.methods import METHODS, YARDSTICKS
    from lacuna.agent.own_method import AgentLike, OwnMethod
    from lacuna.agent.settings import DEFAULT, UNPLANNED, Settings
    from lacuna.checks import check_agent, check_mechanism, check_world
    from lacuna.kernels.space import Space
    from lacuna.missingness import Mechanism
    from lacuna.missingness.fitting.fitted import FittedMissingness, from_masks
    from lacuna.report.compare import compare
    from lacuna.report.comparison import Comparison
    from lacuna.report.replay import Replay, replay
    from lacuna.run.play import play
    from lacuna.run.problems import Problem
    from lacuna.run.repetitions import run_trial, run_trials
    from lacuna.run.run import Run
    from lacuna.study.engines import Local
    from lacuna.study.runner import run_study
    from lacuna.study.spec import Study
    from lacuna.study.store import Store
    from lacuna.trial.engine.trial import Trial
    from lacuna.trial.file.trial_file import TrialFile
    from lacuna.worlds.lake import Lake
    from lacuna.worlds.mdp.solve import evaluate, solve
    from lacuna.worlds.mdp.tabular import TabularMDP
    from lacuna.worlds.mdp.tabular_env import TabularEnv
    from lacuna.wrappers import (
        BinnedObservation,
        CarriedObservation,
        DelayedObservation,
        FactoredObservation,
        MissingObservation,
        NoisyObservation,
        VectorMissingObservation,
    )
    from lacuna.wrappers.imputed import ImputedObservation

__all__ = [
    "DEFAULT",
    "METHODS",
    "UNPLANNED",
    "YARDSTICKS",
    "Agent",
    "AgentLike",
    "BinnedObservation",
    "Binning",
    "CarriedObservation",
    "Comparison",
    "DelayedObservation",
    "FactoredObservation",
    "FittedMissingness",
    "ImputedObservation",
    "Lake",
    "Local",
    "Mechanism",
    "MissingObservation",
    "NoisyObservation",
    "OwnMethod",
    "Problem",
    "Replay",
    "Run",
    "Settings",
    "Space",
    "Store",
    "Study",
    "TabularEnv",
    "TabularMDP",
    "Trial",
    "TrialFile",
    "VectorMissingObservation",
    "__version__",
    "check_agent",
    "check_mechanism",
    "check_world",
    "compare",
    "evaluate",
    "from_masks",
    "make_world",
    "play",
    "replay",
    "run_study",
    "run_trial",
    "run_trials",
    "solve",
]

_HOME = {
    "Agent": "agent.agent",
    "AgentLike": "agent.own_method",
    "BinnedObservation": "wrappers",
    "Binning": "agent.binning",
    "CarriedObservation": "wrappers",
    "check_agent": "checks",
    "check_mechanism": "checks",
    "check_world": "checks",
    "compare": "report.compare",
    "Comparison": "report.comparison",
    "DEFAULT": "agent.settings",
    "DelayedObservation": "wrappers",
    "evaluate": "worlds.mdp.solve",
    "FactoredObservation": "wrappers",
    "FittedMissingness": "missingness.fitting.fitted",
    "from_masks": "missingness.fitting.fitted",
    "ImputedObservation": "wrappers",
    "Lake": "worlds.lake",
    "Local": "study.engines",
    "Mechanism": "missingness",
    "METHODS": "agent.methods",
    "MissingObservation": "wrappers",
    "NoisyObservation": "wrappers",
    "OwnMethod": "agent.own_method",
    "play": "run.play",
    "Problem": "run.problems",
    "Replay": "report.replay",
    "replay": "report.replay",
    "Run": "run.run",
    "run_study": "study.runner",
    "run_trial": "run.repetitions",
    "run_trials": "run.repetitions",
    "Settings": "agent.settings",
    "solve": "worlds.mdp.solve",
    "Space": "kernels.space",
    "Store": "study.store",
    "Study": "study.spec",
    "TabularEnv": "worlds.mdp.tabular_env",
    "TabularMDP": "worlds.mdp.tabular",
    "Trial": "trial.engine.trial",
    "TrialFile": "trial.file.trial_file",
    "UNPLANNED": "agent.settings",
    "VectorMissingObservation": "wrappers",
    "YARDSTICKS": "agent.methods",
}
"""Where each public name is defined; it is imported from there when it is first used."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lacuna' has no attribute {name!r}")
    with extras_named():
        return getattr(import_module(f"lacuna.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
