"""Missingness for any Gymnasium environment whose observation has components."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from lacuna.agent.components import Components, Env, check_env, components_of, known_space
from lacuna.kernels.space import Space
from lacuna.kernels.streams import Stream
from lacuna.missingness.mechanism import Mechanism, RateBy
from lacuna.missingness.rates import Where
from lacuna.missingness.texts import parse
from lacuna.validation import of_kind
from lacuna.worlds.mdp.painter import NOTHING_HIDDEN, Hidden
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.mdp.tabular_env import TabularEnv
from lacuna.wrappers.cover import Cover, Display, Encoding
from lacuna.wrappers.factored import factored
from lacuna.wrappers.incoming import Incoming, Outside, bounds_of


class MissingObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Hide components of the observation by a mechanism, without touching the environment's own randomness.

    Parameters
    ----------
    env
        Any environment with a `Discrete`, `MultiDiscrete` or `Box` observation, or one of discrete parts (`Tuple`,
        `Dict`, `MultiBinary`), which is shown as `FactoredObservation` shows it.
    mechanism
        What hides them: a `Mechanism`, or its short text (``"mcar:0.4"``).
    encoding
        ``"token"``: every component gets one more value, the last, which means missing (the default where values are
        discrete). ``"dict"``: ``{"values": …, "mask": …}`` with 1 = missing, where a hidden value is a constant inside
        the space (for `Box` the default and the only choice).
    first_observed
        Whether the first observation of an episode is complete. It then draws no numbers and moves no chain.
    truth
        Whether ``info["truth"]`` holds the complete observation.
    drop_info
        Keys of the environment's own info to leave out, e.g. Taxi's ``action_mask``, which reveals hidden values. The
        ``episode_ended`` of lacuna's own worlds is left out unless `truth` is asked for.
    outside
        What to do with a real number outside the bounds of its `Box`: ``"warn"`` once for each component and pass it
        on, or raise an ``"error"``. NaN is always an error.

    Attributes
    ----------
    mechanism : Mechanism
        What hides them.

    Notes
    -----
    ``info["mask"]`` is always there: an int8 array, 1 = missing. The rest of the environment's info passes through
    unchanged, even if it reveals something hidden. The mechanism draws from its own stream,
    ``Stream(seed, "missingness")``. ``reset(seed=s)`` restarts it and puts the hidden chain in mode 0; a plain
    ``reset()`` carries on.

    Stable-Baselines3 trains on tokens as they are. Its ``MultiInputPolicy`` cannot take a key called ``values`` (torch
    uses that name itself), so flatten the ``"dict"`` encoding with ``gymnasium.wrappers.FlattenObservation``.

    Examples
    --------
    >>> env = MissingObservation(gym.make("FrozenLake-v1"), "mcar:1.0")
    >>> env.observation_space
    Discrete(17)
    >>> observation, info = env.reset(seed=0)
    >>> int(observation), info["mask"]
    (0, array([0], dtype=int8))
    >>> observation, *_, info = env.step(1)
    >>> int(observation), info["mask"], env.components(observation)
    (16, array([1], dtype=int8), array([-1]))
    """

    hides = True

    def __init__(
        self,
        env: Env,
        mechanism: Mechanism | str,
        *,
        encoding: Encoding | None = None,
        first_observed: bool = True,
        truth: bool = False,
        drop_info: Sequence[str] = (),
        outside: Outside = "warn",
    ) -> None:
        RecordConstructorArgs.__init__(
            self,
            mechanism=mechanism,
            encoding=encoding,
            first_observed=first_observed,
            truth=truth,
            drop_info=drop_info,
            outside=outside,
        )
        check_env(env)
        of_kind("mechanism", mechanism, (Mechanism, str), "a Mechanism, or a text such as 'mcar:0.3'")
        env = factored(env)
        gym.Wrapper.__init__(self, env)
        components = components_of(env.observation_space)
        if isinstance(mechanism, str):
            mechanism = parse(mechanism, where_of(env, components), n_actions_of(env.action_space))
        self.mechanism = mechanism
        check_fit(mechanism, components, env.action_space)
        if mechanism.by == RateBy.TRUE and not hasattr(env.unwrapped, "true_state"):
            raise ValueError(
                f"the rates of {mechanism.name} go by the true state; {env.unwrapped} has no attribute `true_state`"
            )
        display = Display.of(components, encoding, (first_observed, truth, drop_info))
        incoming = Incoming("MissingObservation", bounds_of(env.observation_space), mechanism.space.names, outside)
        self._cover = Cover(
            mechanism, env.observation_space, display, first_action=first_action(env.action_space), incoming=incoming
        )
        self.encoding: Encoding = display.encoding
        self.observation_space = self._cover.outer

    @property
    def mode(self) -> NDArray[np.int64]:
        """Mode of the mechanism's hidden chain, in an array of one."""
        return self._cover.mode

    @property
    def stream(self) -> Stream:
        """The random numbers of the mechanism."""
        return self._cover.stream

    @cached_property
    def space(self) -> Space:
        """The space of complete states, for an `Agent`; a `Box` has none, and is refused."""
        sizes = self._cover.components.sizes
        if sizes is None:
            raise TypeError(
                "the observation is a Box of real numbers, and an Agent needs components with finitely many values; "
                "wrap it in lacuna.BinnedObservation"
            )
        return self.mechanism.space if sizes == self.mechanism.space.sizes else known_space(self.env, sizes)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; a seed also restarts the missingness."""
        if seed is not None:
            self._cover.restart(seed)
        observation, info = self.env.reset(seed=seed, options=options)
        return self._cover.first(observation, info, self._true_state())

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Let the environment move, then hide."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, info = self._cover.later(observation, info, self._true_state(), action)
        return observation, reward, terminated, truncated, info

    def render(self) -> Any:
        """Draw the environment; one of lacuna's own worlds with what is hidden at this moment, and with its fog."""
        world = self.env.unwrapped
        if not isinstance(world, TabularEnv) or world.mdp.space.sizes != self._cover.components.sizes:
            return self.env.render()
        names = (name for name, lost in zip(world.mdp.space.names, self._cover.mask, strict=True) if lost)
        world.hidden = Hidden(frozenset(names), fog=self._is_fog)
        try:
            return self.env.render()
        finally:
            world.hidden = NOTHING_HIDDEN

    @cached_property
    def _is_fog(self) -> bool:
        """Whether the rates are one inside the world's fog and another outside: by the rates, not by the name."""
        mdp: TabularMDP = cast("TabularEnv", self.env.unwrapped).mdp
        fog = mdp.regions.get("fog", np.zeros(mdp.n_states, dtype=np.bool_))
        if self.mechanism.by == RateBy.CONSTANT or not fog.any() or fog.all():
            return False
        rates = self.mechanism.rates
        rates = rates if self.mechanism.by == RateBy.TRUE else rates[:, :, mdp.shows]
        inside, outside = rates[:, :, fog], rates[:, :, ~fog]
        constant = (inside == inside[:, :, :1]).all() and (outside == outside[:, :, :1]).all()
        return bool(constant and (inside[:, :, 0] != outside[:, :, 0]).any())

    def components(self, observation: Any) -> NDArray[np.int64]:
        """An encoded observation as the vector that kernels take: values from 0 on, -1 for missing."""
        if self._cover.components.sizes is None:
            raise TypeError("the components of a Box are real numbers; only discrete values can be numbered")
        return self._cover.vector(observation, self.space)

    def _true_state(self) -> int:
        return int(cast("Any", self.env.unwrapped).true_state) if self.mechanism.by == RateBy.TRUE else 0


def where_of(env: Env | None, components: Components) -> Where:
    """What a mechanism's text is for: the world, if the environment shows one as it is; else the components."""
    mdp = getattr(env.unwrapped, "mdp", None) if env is not None else None
    if isinstance(mdp, TabularMDP) and mdp.space.sizes == components.sizes:
        return mdp
    if components.sizes is None:
        return components.d
    return Space(components.sizes) if env is None else known_space(env, components.sizes)


def n_actions_of(space: spaces.Space[Any]) -> int | None:
    """Number of actions, if they can be counted."""
    return int(space.n) if isinstance(space, spaces.Discrete) else None


def first_action(space: spaces.Space[Any]) -> int:
    """The smallest action, if they can be counted."""
    return int(space.start) if isinstance(space, spaces.Discrete) else 0


def check_fit(mechanism: Mechanism, components: Components, actions: spaces.Space[Any]) -> None:
    """Refuse a mechanism that does not fit these components and actions."""
    if mechanism.space.d != components.d:
        raise ValueError(f"{mechanism.name} has {mechanism.space.d} components; the observation has {components.d}")
    if mechanism.by == RateBy.SHOWN and components.sizes != mechanism.space.sizes:
        seen = "a Box" if components.sizes is None else f"components of sizes {components.sizes}"
        raise ValueError(
            f"the rates of {mechanism.name} go by states of sizes {mechanism.space.sizes}; the observation is {seen}"
        )
    if mechanism.n_actions not in (None, n_actions_of(actions)):
        raise ValueError(
            f"the rates of {mechanism.name} go by {mechanism.n_actions} actions; "
            f"the environment has {n_actions_of(actions) or actions}"
        )
