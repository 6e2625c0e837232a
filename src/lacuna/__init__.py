"""lacuna: online reinforcement learning when parts of the state go missing.

Importing registers the worlds with Gymnasium as ``lacuna/Lake-v0`` and so on; everything heavier is imported when it
is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lacuna.version import __version__
from lacuna.worlds.registry import make_world, register_envs

if TYPE_CHECKING:
    from lacuna.agent import Agent
    from lacuna.mdp import TabularMDP
    from lacuna.methods import DEFAULT, METHODS, Settings
    from lacuna.missingness import Mechanism, MissingObservation
    from lacuna.rollout import Run, play
    from lacuna.space import Space
    from lacuna.trials import run_trial
    from lacuna.worlds.gym import TabularEnv
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
    "register_envs",
    "run_trial",
]

_HOME = {
    "Agent": "agent",
    "DEFAULT": "methods",
    "Lake": "worlds.lake",
    "METHODS": "methods",
    "Mechanism": "missingness",
    "MissingObservation": "missingness",
    "Run": "rollout",
    "Settings": "methods",
    "Space": "space",
    "TabularEnv": "worlds.gym",
    "TabularMDP": "mdp",
    "play": "rollout",
    "run_trial": "trials",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lacuna' has no attribute {name!r}")
    return getattr(import_module(f"lacuna.{_HOME[name]}"), name)


register_envs()
