"""An observation space seen as a vector of components, and what the wrappers of an environment know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from lacuna.kernels.space import Space
from lacuna.validation import of_kind, shown

Env: TypeAlias = gym.Env[Any, Any]

REVEALING = frozenset({"episode_ended"})
"""Info of our own environments that tells a hidden state: in a continuing world, that the goal was reached."""


class Components(NamedTuple):
    """An observation space seen as a vector of components."""

    shape: tuple[int, ...]
    """Shape of the mask: that of the observation, or (1,) for a single number."""
    fill: NDArray[Any]
    """A constant inside the space, which stands where a value was hidden (`dict`)."""
    sizes: tuple[int, ...] | None
    """Number of values of each component; None for real numbers."""
    start: NDArray[np.int64]
    """Smallest value of each component; zeros for real numbers."""

    @property
    def d(self) -> int:
        """Number of components."""
        return int(np.prod(self.shape, dtype=np.int64))

    def vector(self, values: Any) -> NDArray[np.int64]:
        """Discrete values in a row, each counted from 0."""
        return np.asarray(values, dtype=np.int64).ravel() - self.start


def components_of(space: spaces.Space[Any]) -> Components:
    """Return the components of an observation space, or raise an error that says which spaces have some."""
    if isinstance(space, spaces.Discrete):
        start = np.array([space.start], dtype=np.int64)
        return Components((1,), start, (int(space.n),), start)
    if isinstance(space, spaces.MultiDiscrete):
        start = np.asarray(space.start, dtype=np.int64)
        return Components(space.shape, start, tuple(int(n) for n in space.nvec.ravel()), start.ravel())
    if isinstance(space, spaces.Box):
        fill = np.clip(np.zeros(space.shape, dtype=space.dtype), space.low, space.high)
        return Components(space.shape, fill, None, np.zeros(fill.size, dtype=np.int64))
    raise TypeError(
        f"the observation space is {type(space).__name__}; components are found in Box, Discrete, MultiDiscrete, "
        "MultiBinary, and in a Tuple or Dict of discrete parts"
    )


def as_sample(values: NDArray[Any], space: spaces.Space[Any]) -> Any:
    """Values in the form that the space's own samples have; always a copy."""
    if isinstance(space, spaces.Discrete):
        return np.int64(values.ravel()[0])
    return values.reshape(space.shape).astype(space.dtype)


def check_env(env: Any) -> None:
    """Refuse what is no environment."""
    hint = "; put VectorMissingObservation around a vector environment" if isinstance(env, gym.vector.VectorEnv) else ""
    of_kind("env", env, gym.Env, f"a Gymnasium environment, e.g. gymnasium.make('FrozenLake-v1'){hint}")


def layers(env: Env) -> Iterator[Env]:
    """The environment and what it wraps, from the outermost to the innermost."""
    yield env
    while isinstance(env, gym.Wrapper):
        env = env.env
        yield env


def known_space(env: Env, *choices: tuple[int, ...]) -> Space:
    """The space of the outermost wrapper or world whose components have one of these sizes.

    Where there is none, the first choice without names.
    """
    for layer in layers(env):
        try:
            found = getattr(layer, "space", None)
        except TypeError:  # a wrapper whose observation is real numbers
            continue
        if isinstance(found, Space) and found.sizes in choices:
            return found
    return Space(choices[0])


def known_names(env: Env, components: Components) -> tuple[str, ...]:
    """The names of the components, from the outermost wrapper or world that has as many values of each."""
    return known_space(env, components.sizes or (1,) * components.d).names


def per_component(what: str, given: Any, env: Env, components: Components) -> list[tuple[str, Any]]:
    """A number for each component, with a name for messages.

    Numbers are given as one for all, as a list, or by the names of components, with 0 for those not named.
    """
    names = known_names(env, components)
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise ValueError(f"{what} names {shown(name)}; the components are {', '.join(names)}")
        row = [given.get(name, 0) for name in names]
    else:
        row = list(np.asarray(given, dtype=np.object_).ravel()) if np.ndim(given) else [given] * components.d
    if len(row) != components.d:
        raise ValueError(f"{what} has {len(row)} numbers; the observation has {components.d} components")
    return [(f"{what} of {name}", value) for name, value in zip(names, row, strict=True)]
