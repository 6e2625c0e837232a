"""`NoisyObservation`: components that are sometimes wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from lacuna.agent.components import REVEALING, Env, as_sample, components_of, known_names, per_component
from lacuna.kernels.streams import Stream
from lacuna.validation import number
from lacuna.wrappers.factored import before_hiding
from lacuna.wrappers.incoming import Incoming, Outside, bounds_of, kept_info

Numbers = float | Sequence[float] | Mapping[str, float]
"""A number for all components, a list of one for each, or a mapping from names of components, 0 for the others."""


class NoisyObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Show components wrong with some probability, without touching the environment's own randomness.

    A wrong discrete value is one drawn uniformly from all values of its component, so it says nothing about the truth.
    A wrong real number is the truth plus a normal error, kept inside the bounds of the space. Nothing tells the agent
    which values are wrong. To lose values as well, put `MissingObservation` around this wrapper.

    Parameters
    ----------
    env
        Any environment with a `Discrete`, `MultiDiscrete` or `Box` observation, or one of discrete parts, which is
        shown as `FactoredObservation` shows it.
    rate
        Probability that a component is wrong.
    scale
        Standard deviation of the errors of real numbers; needed for a `Box`, and for nothing else.
    drop_info
        Keys of the environment's own info to leave out, because they tell the truth. The ``episode_ended`` of lacuna's
        own worlds is always left out.
    outside
        What to do with a real number outside the bounds of its `Box`: ``"warn"`` once for each component and pass it
        on, or raise an ``"error"``. NaN is always an error.

    Attributes
    ----------
    stream : Stream
        The random numbers of the noise: ``Stream(seed, "noise")``. ``reset(seed=s)`` starts it anew.

    Examples
    --------
    >>> env = NoisyObservation(gym.make("CartPole-v1"), 0.5, scale=[0.1, 0, 0.02, 0])
    >>> env.reset(seed=0)[0].dtype, env.stream
    (dtype('float32'), Stream(seed=0, name='noise', position=12))
    """

    def __init__(
        self, env: Env, rate: Numbers, *, scale: Numbers | None = None, drop_info: Sequence[str] = (),
        outside: Outside = "warn",
    ) -> None:  # fmt: skip
        RecordConstructorArgs.__init__(self, rate=rate, scale=scale, drop_info=drop_info, outside=outside)
        env = before_hiding(env, "NoisyObservation")
        gym.Wrapper.__init__(self, env)
        self._components = components_of(env.observation_space)
        self._rates = self._numbers("the rate", rate, 1)
        self._scales = np.zeros(self._components.d)
        real = self._components.sizes is None
        if real != (scale is not None):
            why = "needs a scale: the standard deviation of its errors" if real else "has no scale: values are replaced"
            raise ValueError(f"the noise of a {type(env.observation_space).__name__} observation {why}")
        if scale is not None:
            self._scales = self._numbers("the scale", scale, 1e30)
        names = known_names(env, self._components)
        self._incoming = Incoming("NoisyObservation", bounds_of(env.observation_space), names, outside)
        self._drop_info = frozenset(drop_info) | REVEALING
        # Without a seed a run is not meant to be repeated: start anywhere.
        self.stream = Stream(int(np.random.SeedSequence().generate_state(1)[0]), "noise")

    def _numbers(self, what: str, given: Numbers, high: float) -> NDArray[np.float64]:
        named = per_component(what, given, self.env, self._components)
        return np.array([number(place, value, 0, high) for place, value in named])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; a seed also starts the noise anew."""
        if seed is not None:
            self.stream = Stream(seed, "noise")
        observation, info = self.env.reset(seed=seed, options=options)
        return self._noisy(observation), kept_info(info, self._drop_info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Let the environment move, then add noise."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._noisy(observation), reward, terminated, truncated, kept_info(info, self._drop_info)

    def _noisy(self, observation: Any) -> Any:
        values = self._incoming.values(observation).ravel()
        # As many numbers in every step, wrong or not: the noise of paired runs stays aligned.
        u = np.array([[self.stream.next() for _ in range(3)] for _ in values])
        wrong = u[:, 0] < self._rates
        return as_sample(np.where(wrong, self._wrong(values, u[:, 1], u[:, 2]), values), self.observation_space)

    def _wrong(self, values: NDArray[Any], u: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[Any]:
        if self._components.sizes is not None:
            return self._components.start + (u * self._components.sizes).astype(np.int64)
        box = cast("spaces.Box", self.observation_space)
        # Box and Muller: a normal number from two uniform ones.
        error = np.sqrt(-2 * np.log1p(-u)) * np.cos(2 * np.pi * w)
        noisy: NDArray[Any] = np.clip(values + self._scales * error, box.low.ravel(), box.high.ravel())
        return noisy.round() if np.issubdtype(box.dtype, np.integer) else noisy
