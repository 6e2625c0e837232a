"""What an agent must know of an environment: its components, its number of actions, and how real numbers are cut."""

from __future__ import annotations

import math

from gymnasium import spaces

from lacuna.agent.binning import Binning
from lacuna.agent.components import Env, check_env, components_of, known_space, layers
from lacuna.kernels.space import Space
from lacuna.quantities import counted


def binning_of(env: Env) -> Binning | None:
    """Return the edges at which the wrappers of an environment cut its observation, if they do."""
    found = (getattr(layer, "binning", None) for layer in layers(env))
    return next((binning for binning in found if isinstance(binning, Binning)), None)


def actions_of(env: Env) -> int:
    """Return the number of actions, or raise an error if an agent cannot take them."""
    check_env(env)
    space = env.action_space
    if not isinstance(space, spaces.Discrete):
        raise TypeError(
            f"the action space is {space}; an Agent chooses among finitely many actions, so it must be Discrete"
        )
    if space.start != 0:
        raise ValueError(f"the actions count from {space.start}; an Agent counts them from 0")
    return int(space.n)


def space_of(env: Env) -> Space:
    """Return the space of complete states of an environment, hidden parts or not, or raise an error without one."""
    outer = env.observation_space
    masked = isinstance(outer, spaces.Dict) and set(outer.spaces) == {"values", "mask"}
    inner = outer["values"] if isinstance(outer, spaces.Dict) and masked else outer
    if isinstance(inner, spaces.Box):
        raise TypeError(_refusal(inner))
    if isinstance(inner, spaces.Tuple | spaces.Dict | spaces.MultiBinary):
        raise TypeError(
            f"the observation space is {type(inner).__name__}; an Agent takes one vector of components: wrap the "
            "environment in lacuna.FactoredObservation, or in lacuna.MissingObservation"
        )
    components = components_of(inner)
    if components.start.any():
        raise ValueError(
            f"the components count from {components.start.tolist()}; an Agent counts them from 0: wrap the environment "
            "in lacuna.FactoredObservation"
        )
    sizes = components.sizes or ()
    if not masked and any(getattr(layer, "hides", False) for layer in layers(env)):
        # The last value of every component means missing, unless a wrapper has filled in what was hidden.
        return known_space(env, sizes, tuple(size - 1 for size in sizes))
    return known_space(env, sizes)


def _refusal(box: spaces.Box) -> str:
    if len(box.shape) > 1:
        return (
            f"the observation is a Box of shape {box.shape}, such as an image; an Agent keeps a table by state: "
            "reduce it to a few numbers first"
        )
    return (
        f"the observation is a Box of {counted(math.prod(box.shape), 'real number')}, and an Agent needs components "
        "with finitely many values; wrap it in lacuna.BinnedObservation"
    )
