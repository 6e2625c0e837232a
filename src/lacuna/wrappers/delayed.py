"""`DelayedObservation`: components that arrive late."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from lacuna.agent.components import REVEALING, Env, as_sample, components_of, known_names, per_component
from lacuna.validation import whole_number
from lacuna.wrappers.factored import before_hiding
from lacuna.wrappers.incoming import Incoming, Outside, bounds_of, kept_info

MAX_DELAY = 10_000


class DelayedObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Show components some steps late: at step t the value of step t − k, and in the first k steps the first value.

    The first observation of an episode arrives at once. Rewards and the end of an episode are never late. To lose
    values as well, put `MissingObservation` around this wrapper.

    Parameters
    ----------
    env
        Any environment with a `Discrete`, `MultiDiscrete` or `Box` observation, or one of discrete parts, which is
        shown as `FactoredObservation` shows it.
    steps
        How late: a number for all components, a list, or a mapping from names of components, 0 for the others.
    drop_info
        Keys of the environment's own info to leave out, because they tell what has not arrived. The ``episode_ended``
        of lacuna's own worlds is always left out.
    outside
        What to do with a real number outside the bounds of its `Box`: ``"warn"`` once for each component and pass it
        on, or raise an ``"error"``. NaN is always an error.

    Attributes
    ----------
    delays : tuple of int
        How late each component is.

    Examples
    --------
    >>> env = DelayedObservation(gym.make("lacuna/Lake-v0"), {"row": 2})
    >>> start, _ = env.reset(seed=0)
    >>> env.delays
    (2, 0, 0)
    >>> bool(env.step(0)[0][0] == start[0])
    True
    """

    def __init__(
        self, env: Env, steps: int | Sequence[int] | Mapping[str, int], *, drop_info: Sequence[str] = (),
        outside: Outside = "warn",
    ) -> None:  # fmt: skip
        RecordConstructorArgs.__init__(self, steps=steps, drop_info=drop_info, outside=outside)
        env = before_hiding(env, "DelayedObservation")
        gym.Wrapper.__init__(self, env)
        components = components_of(env.observation_space)
        given = per_component("the delay", steps, env, components)
        self.delays = tuple(whole_number(what, value, 0, MAX_DELAY) for what, value in given)
        names = known_names(env, components)
        self._incoming = Incoming("DelayedObservation", bounds_of(env.observation_space), names, outside)
        self._drop_info = frozenset(drop_info) | REVEALING
        # How far back each component is: in a full queue the oldest value stands first.
        self._back = -1 - np.array(self.delays)
        self._column = np.arange(components.d)
        self._past: deque[NDArray[Any]] = deque(maxlen=max(self.delays) + 1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode with a complete observation."""
        observation, info = self.env.reset(seed=seed, options=options)
        first = self._row(observation)
        self._past.extend([first] * (max(self.delays) + 1))
        return self._late(first), kept_info(info, self._drop_info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Let the environment move, and show what has arrived by now."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._late(self._row(observation)), reward, terminated, truncated, kept_info(info, self._drop_info)

    def _row(self, observation: Any) -> NDArray[Any]:
        return np.array(self._incoming.values(observation)).ravel()

    def _late(self, newest: NDArray[Any]) -> Any:
        self._past.append(newest)
        shown = np.stack(self._past)[self._back, self._column]
        return as_sample(shown, self.observation_space)
