"""lacuna: online reinforcement learning when parts of the state go missing.

Importing registers the worlds with Gymnasium as ``lacuna/Lake-v0`` and so on; everything heavier is imported when it
is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lacuna.version import __version__
from lacuna.worlds.registry import make_world

if TYPE_CHECKING:
    from lacuna.kernels.space import Space
    from lacuna.learning.agent import Agent
    from lacuna.learning.methods import METHODS
    from lacuna.learning.settings import DEFAULT, Settings
    from lacuna.mdp.environment import TabularEnv
    from lacuna.mdp.tabular import TabularMDP
    from lacuna.missingness import Mechanism, MissingObservation
    from lacuna.running.play import play
    from lacuna.running.run import Run
    from lacuna.running.trials import run_trial
    from lacuna.worlds.lake import Lake

__all__ = [
    "DEFAULT",
    "METHODS",
    "Agent",
    "Lake",
    "Mechanism",
    "MissingObservation",
    "Run",
    "Settings",
    "Space",
    "TabularEnv",
    "TabularMDP",
    "__version__",
    "make_world",
    "play",
    "run_trial",
]

_HOME = {
    "Agent": "learning.agent",
    "DEFAULT": "learning.settings",
    "Lake": "worlds.lake",
    "METHODS": "learning.methods",
    "Mechanism": "missingness",
    "MissingObservation": "missingness",
    "Run": "running.run",
    "Settings": "learning.settings",
    "Space": "kernels.space",
    "TabularEnv": "mdp.environment",
    "TabularMDP": "mdp.tabular",
    "play": "running.play",
    "run_trial": "running.trials",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lacuna' has no attribute {name!r}")
    return getattr(import_module(f"lacuna.{_HOME[name]}"), name)
