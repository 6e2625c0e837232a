"""What an environment with hidden parts shows, as a vector; and its simplest completion: values carried forward."""

from __future__ import annotations

from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from lacuna.agent.components import components_of
from lacuna.kernels.space import Space

Env = gym.Env[Any, Any]


class Source:
    """The observations of an environment with hidden parts: values, and which of them are hidden.

    Parameters
    ----------
    env
        A `MissingObservation`, or a wrapper around one that tells missing in the same way.

    Attributes
    ----------
    space : Space or None
        The space of complete states, if the values are discrete; None for real numbers.
    complete : MultiDiscrete or Box
        The space of complete observations: a vector. Discrete values are counted from 0.
    """

    def __init__(self, env: Env) -> None:
        shown = env.observation_space
        self._masked = isinstance(shown, spaces.Dict) and set(shown) == {"values", "mask"}
        values = cast("spaces.Dict", shown)["values"] if self._masked else shown
        components = components_of(values)
        self.space: Space | None = None
        self.complete: spaces.MultiDiscrete | spaces.Box
        if self._masked and isinstance(values, spaces.Box):
            self.complete = spaces.Box(values.low.ravel(), values.high.ravel(), dtype=cast("Any", values.dtype))
            return
        space = env.get_wrapper_attr("space") if env.has_wrapper_attr("space") else None
        token = 0 if self._masked else 1
        if not isinstance(space, Space) or components.sizes != tuple(size + token for size in space.sizes):
            raise TypeError(
                f"the environment shows {shown}, and nothing says what is missing; wrap it in MissingObservation first"
            )
        self.space, self._start, self._sizes = space, components.start, space.layout.sizes
        self.complete = spaces.MultiDiscrete(np.array(space.sizes))

    def read(self, observation: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Values as a vector, and which of them are hidden. A value that is hidden means nothing."""
        values = np.array(observation["values"] if self._masked else observation).ravel()
        if self.space is not None:
            values = values.astype(np.int64) - self._start
        return values, np.ravel(observation["mask"]) == 1 if self._masked else values == self._sizes


class CarriedObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Show each component's last seen value: a complete observation for any learner, without a model.

    A component that was not seen yet in this episode is shown as 0, or as the nearest number in its range. The
    observation is a vector: `MultiDiscrete` if values are discrete (counted from 0), else `Box`.

    Parameters
    ----------
    env
        A `MissingObservation`.

    Examples
    --------
    >>> import lacuna
    >>> env = CarriedObservation(lacuna.MissingObservation(gym.make("lacuna/Lake-v0"), "mcar:1.0"))
    >>> first, _ = env.reset(seed=0)
    >>> later, *_ = env.step(3)
    >>> env.observation_space, bool((later == first).all())
    (MultiDiscrete([8 8 3]), True)
    """

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._source = Source(env)
        self.observation_space = self._source.complete
        self._held = self._blank()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, with nothing to carry forward."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._held = self._blank()
        return self._carried(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Let the environment move, and replace what is seen."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._carried(observation), reward, terminated, truncated, info

    def _carried(self, observation: Any) -> NDArray[Any]:
        values, hidden = self._source.read(observation)
        self._held = np.where(hidden, self._held, values)
        return self._held.copy()

    def _blank(self) -> NDArray[Any]:
        space = self._source.complete
        blank = np.zeros(space.shape, dtype=space.dtype)
        return np.clip(blank, space.low, space.high) if isinstance(space, spaces.Box) else blank
