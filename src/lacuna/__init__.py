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
    from lacuna.fitting.fitted import FittedMissingness, from_masks
    from lacuna.kernels.space import Space
    from lacuna.learning.agent import Agent
    from lacuna.live.trial import Trial
    from lacuna.mdp.environment import TabularEnv
    from lacuna.mdp.solve import evaluate, solve
    from lacuna.mdp.tabular import TabularMDP
    from lacuna.methods.settings import DEFAULT, UNPLANNED, Settings
    from lacuna.methods.table import METHODS, YARDSTICKS
    from lacuna.missingness import Mechanism, MissingObservation
    from lacuna.protocol.file import TrialFile
    from lacuna.running.play import play
    from lacuna.running.run import Run
    from lacuna.running.trials import Problem, run_trial, run_trials
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
    "FittedMissingness",
    "Lake",
    "Local",
    "Mechanism",
    "MissingObservation",
    "Problem",
    "Run",
    "Settings",
    "Space",
    "Store",
    "Study",
    "TabularEnv",
    "TabularMDP",
    "Trial",
    "TrialFile",
    "__version__",
    "check_agent",
    "check_mechanism",
    "check_world",
    "evaluate",
    "from_masks",
    "make_world",
    "play",
    "run_study",
    "run_trial",
    "run_trials",
    "solve",
]

_HOME = {
    "Agent": "learning.agent",
    "DEFAULT": "methods.settings",
    "FittedMissingness": "fitting.fitted",
    "Lake": "worlds.lake",
    "Local": "study.engines",
    "METHODS": "methods.table",
    "Mechanism": "missingness",
    "MissingObservation": "missingness",
    "Problem": "running.trials",
    "Run": "running.run",
    "Settings": "methods.settings",
    "UNPLANNED": "methods.settings",
    "Space": "kernels.space",
    "Store": "study.store",
    "Study": "study.spec",
    "TabularEnv": "mdp.environment",
    "TabularMDP": "mdp.tabular",
    "Trial": "live.trial",
    "TrialFile": "protocol.file",
    "YARDSTICKS": "methods.table",
    "check_agent": "checks",
    "check_mechanism": "checks",
    "check_world": "checks",
    "evaluate": "mdp.solve",
    "from_masks": "fitting.fitted",
    "play": "running.play",
    "run_study": "study.runner",
    "run_trial": "running.trials",
    "run_trials": "running.trials",
    "solve": "mdp.solve",
}
"""Where each public name is defined; it is imported from there when it is first used."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lacuna' has no attribute {name!r}")
    with extras_named():
        return getattr(import_module(f"lacuna.{_HOME[name]}"), name)
