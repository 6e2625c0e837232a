"""`BinnedObservation`: real numbers cut into bins, after hiding or before it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from lacuna.agent.binning import Binning, Counts
from lacuna.agent.components import Env
from lacuna.kernels.space import Space
from lacuna.parameters import Frozen
from lacuna.validation import of_kind
from lacuna.wrappers.incoming import Incoming, Outside, bounds_of, kept_info


class BinnedObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Show real numbers as bins, so that every agent can learn from them.

    Parameters
    ----------
    env
        Its observation is a `Box`, or what `MissingObservation` makes of one. Values are then hidden before they are
        cut, and one more bin, the last of each component, means missing.
    bins
        A `Binning`; or a number of bins, or one per component, of equal width between the bounds of the space.
    outside
        What to do with a real number outside the bounds of its `Box`: ``"warn"`` once for each component and pass it
        on, or raise an ``"error"``. NaN is always an error.

    Attributes
    ----------
    binning : Binning
        The edges. They never change; `Agent.for_env` saves them with the agent.

    Examples
    --------
    >>> from lacuna.wrappers import MissingObservation
    >>> env = BinnedObservation(MissingObservation(gym.make("MountainCar-v0"), "mcar:1.0"), (8, 6))
    >>> env.observation_space, env.space.sizes
    (MultiDiscrete([9 7]), (8, 6))
    >>> env.reset(seed=0)[0], env.step(1)[0]
    (array([3, 3]), array([8, 6]))
    """

    def __init__(self, env: Env, bins: Binning | Counts, *, outside: Outside = "warn") -> None:
        RecordConstructorArgs.__init__(self, bins=bins, outside=outside)
        gym.Wrapper.__init__(self, env)
        box, self._masked = _box_of(env.observation_space)
        self.binning = bins if isinstance(bins, Binning) else _uniform(bins, box)
        d = int(np.prod(box.shape))
        if self.binning.d != d:
            raise ValueError(f"the binning is for {self.binning.d} components; the observation has {d}")
        self._incoming = Incoming("BinnedObservation", bounds_of(box), self.binning.names, outside)
        self.observation_space = spaces.MultiDiscrete(np.array(self.space.sizes) + int(self._masked))

    @property
    def space(self) -> Space:
        """The space of complete states, for an `Agent`."""
        return self.binning.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._cut(observation), kept_info(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Let the environment move."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._cut(observation), reward, terminated, truncated, kept_info(info)

    def _cut(self, observation: Any) -> NDArray[np.int64]:
        if not self._masked:
            return self.binning.cut(self._incoming.values(observation))
        of_kind("what the environment showed", observation, Mapping, "a dict of values and a mask")
        mask = observation["mask"]
        return self.binning.cut(self._incoming.values(observation["values"], mask), mask)


def _box_of(space: spaces.Space[Any]) -> tuple[spaces.Box, bool]:
    """The box of an observation, and whether a mask comes with it."""
    masked = isinstance(space, spaces.Dict) and set(space.spaces) == {"values", "mask"}
    inner = space["values"] if isinstance(space, spaces.Dict) and masked else space
    if not isinstance(inner, spaces.Box):
        raise TypeError(
            f"the observation space is {type(inner).__name__}; only the real numbers of a Box are cut into bins"
        )
    return inner, masked


def _uniform(n: Counts, box: spaces.Box) -> Binning:
    low, high = (np.asarray(bound, dtype=np.float64).ravel() for bound in (box.low, box.high))
    # CartPole's velocities are bounded by the largest number of their type.
    endless = np.flatnonzero(~(high - low < 1e30))
    if endless.size:
        j = int(endless[0])
        raise ValueError(
            f"component {j} of the observation lies between {low[j]:g} and {high[j]:g}, too far apart for bins of "
            "equal width; give bounds, Binning.uniform(n, low, high), or take Binning.sampled(env, n)"
        )
    return Binning.uniform(n, low, high)


def cut_by_sampling(
    env: Env, env_id: str, bins: int | tuple[int, ...], parameters: Frozen, registered: str
) -> BinnedObservation:
    """Cut the real numbers of an environment into bins, at quantiles of what a random policy sees."""
    return BinnedObservation(env, _sampled_bins(env_id, bins, parameters, registered))


@lru_cache(maxsize=64)
def _sampled_bins(env_id: str, bins: int | tuple[int, ...], parameters: Frozen, _registered: str) -> Binning:
    with closing(gym.make(env_id, disable_env_checker=True, **dict(parameters))) as env:
        return Binning.sampled(env, bins)
