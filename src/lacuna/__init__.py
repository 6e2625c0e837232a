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
    from lacuna.checks import check_agent, check_mechanism, check_world
    from lacuna.comparing.compare import compare
    from lacuna.comparing.comparison import Comparison
    from lacuna.fitting.fitted import FittedMissingness, from_masks
    from lacuna.kernels.space import Space
    from lacuna.learning.agent import Agent
    from lacuna.learning.own_method import AgentLike, OwnMethod
    from lacuna.live.trial import Trial
    from lacuna.mdp.environment import TabularEnv
    from lacuna.mdp.solve import evaluate, solve
    from lacuna.mdp.tabular import TabularMDP
    from lacuna.methods.settings import DEFAULT, UNPLANNED, Settings
    from lacuna.methods.table import METHODS, YARDSTICKS
    from lacuna.missingness import CarriedObservation, Mechanism, MissingObservation, VectorMissingObservation
    from lacuna.observing import (
        BinnedObservation,
        Binning,
        DelayedObservation,
        FactoredObservation,
        NoisyObservation,
    )
    from lacuna.protocol.file import TrialFile
    from lacuna.replaying.replay import Replay, replay
    from lacuna.running.imputed import ImputedObservation
    from lacuna.running.play import play
    from lacuna.running.problems import Problem
    from lacuna.running.run import Run
    from lacuna.running.trials import run_trial, run_trials
    from lacuna.study.engines import Local
    from lacuna.study.runner import run_study
    from lacuna.study.spec import Study
    from lacuna.study.store import Store
    from lacuna.worlds.lake import Lake

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
    "Agent": "learning.agent",
    "AgentLike": "learning.own_method",
    "BinnedObservation": "observing",
    "Binning": "observing",
    "CarriedObservation": "missingness",
    "check_agent": "checks",
    "check_mechanism": "checks",
    "check_world": "checks",
    "compare": "comparing.compare",
    "Comparison": "comparing.comparison",
    "DEFAULT": "methods.settings",
    "DelayedObservation": "observing",
    "evaluate": "mdp.solve",
    "FactoredObservation": "observing",
    "FittedMissingness": "fitting.fitted",
    "from_masks": "fitting.fitted",
    "ImputedObservation": "running.imputed",
    "Lake": "worlds.lake",
    "Local": "study.engines",
    "Mechanism": "missingness",
    "METHODS": "methods.table",
    "MissingObservation": "missingness",
    "NoisyObservation": "observing",
    "OwnMethod": "learning.own_method",
    "play": "running.play",
    "Problem": "running.problems",
    "Replay": "replaying.replay",
    "replay": "replaying.replay",
    "Run": "running.run",
    "run_study": "study.runner",
    "run_trial": "running.trials",
    "run_trials": "running.trials",
    "Settings": "methods.settings",
    "solve": "mdp.solve",
    "Space": "kernels.space",
    "Store": "study.store",
    "Study": "study.spec",
    "TabularEnv": "mdp.environment",
    "TabularMDP": "mdp.tabular",
    "Trial": "live.trial",
    "TrialFile": "protocol.file",
    "UNPLANNED": "methods.settings",
    "VectorMissingObservation": "missingness",
    "YARDSTICKS": "methods.table",
}
"""Where each public name is defined; it is imported from there when it is first used."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lacuna' has no attribute {name!r}")
    with extras_named():
        return getattr(import_module(f"lacuna.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
