"""Missingness for any Gymnasium environment with a Discrete, MultiDiscrete or Box observation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from lacuna.kernels.space import MISSING, Space
from lacuna.kernels.streams import Stream
from lacuna.mdp.environment import TabularEnv
from lacuna.mdp.painter import NOTHING_HIDDEN, Hidden
from lacuna.mdp.tabular import TabularMDP
from lacuna.missingness.mechanism import Mechanism, RateBy, hide
from lacuna.missingness.registry import parse
from lacuna.missingness.tables import Where

Encoding = Literal["token", "dict"]

_REVEALING = frozenset({"episode_ended"})
"""Info of our own environments that tells a hidden state: in a continuing world, that the goal was reached."""

Env = gym.Env[Any, Any]


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


def components_of(space: spaces.Space[Any]) -> Components:
    """Components of an observation space, or a sentence that says which spaces have some."""
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
        f"the observation space is {type(space).__name__}; parts can go missing from Discrete, MultiDiscrete and Box. "
        "Flatten it first, e.g. with gymnasium.wrappers.FlattenObservation"
    )


class MissingObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Hide components of the observation, as a mechanism says, without touching the environment's own randomness.

    Parameters
    ----------
    env
        Any environment with a `Discrete`, `MultiDiscrete` or `Box` observation.
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
        Keys of the environment's own info to leave out, e.g. Taxi's ``action_mask``, which tells the hidden state. The
        ``episode_ended`` of lacuna's own worlds is left out unless `truth` is asked for.

    Attributes
    ----------
    mode : NDArray
        Mode of the mechanism's hidden chain, in an array of one.
    stream : Stream
        The random numbers of the mechanism.

    Notes
    -----
    ``info["mask"]`` is always there: an int8 array, 1 = missing. The rest of the environment's info passes through
    unchanged, even if it reveals something hidden. The mechanism draws from its own stream,
    ``Stream(seed, "missingness")``. ``reset(seed=s)`` starts it anew and puts the hidden chain in mode 0; a plain
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

    def __init__(
        self,
        env: Env,
        mechanism: Mechanism | str,
        *,
        encoding: Encoding | None = None,
        first_observed: bool = True,
        truth: bool = False,
        drop_info: Sequence[str] = (),
    ) -> None:
        RecordConstructorArgs.__init__(
            self,
            mechanism=mechanism,
            encoding=encoding,
            first_observed=first_observed,
            truth=truth,
            drop_info=drop_info,
        )
        gym.Wrapper.__init__(self, env)
        self._components = components_of(env.observation_space)
        self.mechanism = _build(mechanism, env, self._components) if isinstance(mechanism, str) else mechanism
        _check_fit(self.mechanism, env, self._components)
        self.encoding: Encoding = encoding or ("dict" if self._components.sizes is None else "token")
        self.observation_space = _encoded_space(env.observation_space, self._components, self.encoding)
        self._first_observed, self._truth = first_observed, truth
        self._drop_info = frozenset(drop_info) | (frozenset() if truth else _REVEALING)
        self._first_action = int(getattr(env.action_space, "start", 0)) if self.mechanism.n_actions else 0
        self.mode = np.zeros(1, dtype=np.int64)
        self._mask = np.zeros(self._components.d, dtype=np.bool_)
        # Without a seed a run is not meant to be repeated: start anywhere.
        self.stream = Stream(int(np.random.SeedSequence().generate_state(1)[0]), "missingness")

    @cached_property
    def space(self) -> Space:
        """The space of complete states, for an `Agent`; a `Box` has none, and is refused."""
        sizes = self._components.sizes
        if sizes is None:
            raise TypeError(
                "the observation is a Box of real numbers, and an Agent needs components with finitely many values; "
                "make it discrete before wrapping it, e.g. with numpy.digitize in gymnasium's TransformObservation"
            )
        return self.mechanism.space if sizes == self.mechanism.space.sizes else Space(sizes)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; a seed also starts the missingness anew."""
        if seed is not None:
            self.stream = Stream(seed, "missingness")
            self.mode[0] = 0
        observation, info = self.env.reset(seed=seed, options=options)
        if self._first_observed:
            return self._covered(observation, np.zeros(self._components.d, dtype=np.bool_), info)
        return self._covered(observation, self._draw_mask(observation, -1), info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Let the environment move, then hide."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        taken = int(action) - self._first_action if self.mechanism.n_actions else -1
        observation, info = self._covered(observation, self._draw_mask(observation, taken), info)
        return observation, reward, terminated, truncated, info

    def render(self) -> Any:
        """Draw the environment; one of lacuna's own worlds with what is hidden at this moment, and with its fog."""
        world = self.env.unwrapped
        if not isinstance(world, TabularEnv) or world.mdp.space.sizes != self._components.sizes:
            return self.env.render()
        names = (name for name, lost in zip(world.mdp.space.names, self._mask, strict=True) if lost)
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
        if self._components.sizes is None:
            raise TypeError("the components of a Box are real numbers; only discrete values can be numbered")
        values = observation if self.encoding == "token" else observation["values"]
        vector = self._vector(values)
        hidden = vector == self.space.sizes if self.encoding == "token" else np.ravel(observation["mask"]) == 1
        vector[hidden] = MISSING
        return vector

    def _vector(self, values: Any) -> NDArray[np.int64]:
        return np.asarray(values, dtype=np.int64).ravel() - self._components.start

    def _draw_mask(self, observation: Any, action: int) -> NDArray[np.bool_]:
        mechanism = self.mechanism
        shown = self._shown(observation) if mechanism.by == RateBy.SHOWN else 0
        true = self._true_state() if mechanism.by == RateBy.TRUE else 0
        mask = np.empty(self._components.d, dtype=np.bool_)
        hide(shown, true, action, self.mode, mechanism.hiding, self.stream.need(mechanism.n_draws), mask)
        return mask

    def _shown(self, observation: Any) -> int:
        vector = self._vector(observation)
        if ((vector < 0) | (vector >= self.space.sizes)).any():
            raise ValueError(f"the environment showed {observation}, outside its space {self.env.observation_space}")
        return int(vector @ self.space.layout.strides)

    def _true_state(self) -> int:
        state = int(cast("Any", self.env.unwrapped).true_state)
        if not 0 <= state < self.mechanism.n_rows:
            last = self.mechanism.n_rows - 1
            raise ValueError(f"the true state is {state}; {self.mechanism.name} has rates for 0 to {last}")
        return state

    def _covered(self, observation: Any, mask: NDArray[np.bool_], info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self._mask = mask
        shaped = mask.reshape(self._components.shape)
        kept = {key: value for key, value in info.items() if key not in self._drop_info}
        taken = {"mask", "truth"} & set(kept)
        if taken:
            raise ValueError(
                f"the environment's own info already holds {', '.join(sorted(taken))}, which would be overwritten; "
                f"leave it out with drop_info={tuple(sorted(taken))}"
            )
        kept["mask"] = shaped.astype(np.int8)
        if self._truth:
            kept["truth"] = np.array(observation)
        return self._encode(observation, shaped), kept

    def _encode(self, observation: Any, mask: NDArray[np.bool_]) -> Any:
        values = np.asarray(observation).reshape(self._components.shape)
        if self.encoding == "token":
            top = self._components.start + np.asarray(self._components.sizes, dtype=np.int64)
            return _as_sample(np.where(mask, top.reshape(mask.shape), values), self.observation_space)
        inner = cast("spaces.Dict", self.observation_space)["values"]
        return {
            "values": _as_sample(np.where(mask, self._components.fill, values), inner),
            "mask": mask.astype(np.int8),
        }


def _as_sample(values: NDArray[Any], space: spaces.Space[Any]) -> Any:
    """Values in the form that the space's own samples have."""
    if isinstance(space, spaces.Discrete):
        return np.int64(values[0])
    return values.astype(space.dtype)


def _encoded_space(space: spaces.Space[Any], components: Components, encoding: Encoding) -> spaces.Space[Any]:
    if encoding == "dict":
        return spaces.Dict({"values": space, "mask": spaces.MultiBinary(list(components.shape))})
    if encoding != "token":
        raise ValueError(f"encoding is {encoding!r}; it must be 'token' or 'dict'")
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n) + 1, start=int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        nvec, start = space.nvec.astype(np.int64) + 1, space.start.astype(np.int64)
        # The extra value must fit the type too.
        fits = (start + nvec - 1 <= np.iinfo(space.dtype).max).all()
        kind = cast("type[np.integer[Any]]", space.dtype) if fits else np.int64
        return spaces.MultiDiscrete(nvec, dtype=kind, start=start)
    raise ValueError("a Box has no value to spare for 'missing'; use encoding='dict'")


def _build(text: str, env: Env, components: Components) -> Mechanism:
    """Mechanism from its text, with the names and regions of the world if the environment shows one as it is."""
    mdp = getattr(env.unwrapped, "mdp", None)
    where: Where = components.d if components.sizes is None else Space(components.sizes)
    if isinstance(mdp, TabularMDP) and mdp.space.sizes == components.sizes:
        where = mdp
    return parse(text, where, _n_actions(env))


def _n_actions(env: Env) -> int | None:
    return int(env.action_space.n) if isinstance(env.action_space, spaces.Discrete) else None


def _check_fit(mechanism: Mechanism, env: Env, components: Components) -> None:
    """Refuse, with a sentence, a mechanism that is not for this environment."""
    if mechanism.space.d != components.d:
        raise ValueError(f"{mechanism.name} has {mechanism.space.d} components; the observation has {components.d}")
    if mechanism.by == RateBy.SHOWN and components.sizes != mechanism.space.sizes:
        seen = "a Box" if components.sizes is None else f"components of sizes {components.sizes}"
        raise ValueError(
            f"the rates of {mechanism.name} go by states of sizes {mechanism.space.sizes}; the observation is {seen}"
        )
    if mechanism.by == RateBy.TRUE and not hasattr(env.unwrapped, "true_state"):
        raise ValueError(
            f"the rates of {mechanism.name} go by the true state; {env.unwrapped} has no attribute `true_state`"
        )
    if mechanism.n_actions not in (None, _n_actions(env)):
        raise ValueError(
            f"the rates of {mechanism.name} go by {mechanism.n_actions} actions; "
            f"the environment has {_n_actions(env) or env.action_space}"
        )
