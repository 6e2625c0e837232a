"""Observations made of discrete parts (`Tuple`, `Dict`, `MultiBinary`) as one vector of components with names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from lacuna.agent.components import Env, check_env, known_space, layers
from lacuna.kernels.space import Space
from lacuna.validation import shown
from lacuna.wrappers.incoming import Bounds, Incoming, bounds_of, kept_info

Path = tuple[str | int, ...]
"""Where a part is found: keys of a `Dict` and positions in a `Tuple`."""


class Part(NamedTuple):
    """A discrete part of an observation: where it is, and the smallest and largest value of its components."""

    path: Path
    bounds: Bounds

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of values of each component."""
        found: NDArray[np.int64] = (self.bounds.high - self.bounds.low + 1).ravel()
        return found


def parts_of(space: spaces.Space[Any], path: Path = ()) -> Iterator[Part]:
    """Yield the discrete parts of a space in order, or raise an error that names one that is not discrete."""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        yield Part(path, bounds_of(space))
    elif isinstance(space, spaces.Tuple | spaces.Dict):
        inner = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, part in inner:
            yield from parts_of(part, (*path, key))
    else:
        where = f"the part {'.'.join(map(str, path))} of the observation" if path else "the observation"
        raise TypeError(
            f"{where} is {type(space).__name__}; components with finitely many values are found in Discrete, "
            "MultiDiscrete, MultiBinary, and in a Tuple or Dict of these"
        )


def names_of(part: Part) -> list[str]:
    """Names of the components of a part: its path, and a number if there are several."""
    words = [str(word) for word in part.path]
    if part.path and isinstance(part.path[0], int):
        words[0] = f"x{words[0]}"
    stem = ".".join(words)
    if part.sizes.size == 1 and stem:
        return [stem]
    return [f"{stem}.{i}" if stem else f"x{i}" for i in range(part.sizes.size)]


class FactoredObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Show an observation of discrete parts as one vector of components, each counted from 0.

    `MissingObservation`, `DelayedObservation` and `NoisyObservation` do this themselves where it is needed; use it
    for names of your own, or to give an agent complete observations.

    Parameters
    ----------
    env
        Its observation is `Discrete`, `MultiDiscrete`, `MultiBinary`, or a `Tuple` or `Dict` of these, nested or not.
    names
        A name per component. By default the keys of a `Dict`, joined by dots; ``x0, x1, …`` where there are none.

    Attributes
    ----------
    space : Space
        The components: how many values each has, and their names.

    Examples
    --------
    >>> env = FactoredObservation(gym.make("Blackjack-v1"), ("sum", "dealer", "ace"))
    >>> env.observation_space, env.space.names
    (MultiDiscrete([32 11  2]), ('sum', 'dealer', 'ace'))
    >>> env.reset(seed=0)[0]
    array([11, 10,  0])
    """

    def __init__(self, env: Env, names: Sequence[str] = ()) -> None:
        RecordConstructorArgs.__init__(self, names=names)
        refuse_hidden(env, "FactoredObservation")
        gym.Wrapper.__init__(self, env)
        self._parts = list(parts_of(env.observation_space))
        if not self._parts:
            raise ValueError(f"the observation space is {env.observation_space}; it has no components")
        sizes = tuple(int(size) for part in self._parts for size in part.sizes)
        if isinstance(env.observation_space, spaces.Tuple | spaces.Dict) or names:
            found = tuple(names) or tuple(name for part in self._parts for name in names_of(part))
            self.space = Space(sizes, found)
        else:
            self.space = known_space(env, sizes)
        self.observation_space = spaces.MultiDiscrete(np.array(sizes))
        ends = np.cumsum([part.sizes.size for part in self._parts])
        self._incoming = [
            Incoming("FactoredObservation", part.bounds, self.space.names[end - part.sizes.size : end])
            for part, end in zip(self._parts, ends, strict=True)
        ]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._vector(observation), kept_info(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Let the environment move."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._vector(observation), reward, terminated, truncated, kept_info(info)

    def _vector(self, observation: Any) -> NDArray[np.int64]:
        found = []
        for part, incoming in zip(self._parts, self._incoming, strict=True):
            value = observation
            try:
                for key in part.path:
                    value = value[key]
            except (LookupError, TypeError) as error:
                where = ".".join(map(str, part.path))
                raise ValueError(f"the environment showed {shown(observation)}, without the part {where}") from error
            found.append((incoming.values(value).astype(np.int64) - part.bounds.low).ravel())
        return np.concatenate(found)


def factored(env: Env) -> Env:
    """The environment itself, or as a vector of components if its observation is made of several discrete parts."""
    if isinstance(env.observation_space, spaces.Tuple | spaces.Dict | spaces.MultiBinary):
        return FactoredObservation(env)
    return env


def before_hiding(env: Env, wrapper: str) -> Env:
    """Return the environment as a vector of components, or raise an error if some of them are hidden already."""
    refuse_hidden(env, wrapper)
    return factored(env)


def refuse_hidden(env: Env, wrapper: str) -> None:
    """Raise an error if a wrapper would be put around one that hides components."""
    check_env(env)
    for layer in layers(env):
        if getattr(layer, "hides", False):
            raise ValueError(
                f"{wrapper} was put around {type(layer).__name__}, and would change what stands for a missing value; "
                f"put {type(layer).__name__} around {wrapper}"
            )
