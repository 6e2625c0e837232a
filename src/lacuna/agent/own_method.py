"""A method of your own: the methods that its agents need, and how studies and the command name it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS, NAMED, YARDSTICKS
from lacuna.agent.settings import SETTINGS, Settings
from lacuna.kernels.space import MISSING, Space
from lacuna.parameters import Frozen, frozen, parameters_of, parse_call, typed, unusual, write_call
from lacuna.references import METHOD_GROUP, check_makes, entry_point_names, load, resolve, told
from lacuna.validation import nearest, one_of, shown

_VERBS = ("begin", "act", "learn")


class AgentLike(Protocol):
    """The methods that an agent needs to be measured like ours.

    An observation is ``{"values": …, "mask": …}``: two arrays with an entry per component, mask 1 = hidden. Where the
    mask is 1, the value says nothing. `probabilities` is needed for `check_agent` only, which also tries
    ``save(path)`` and ``load(path)`` if they are there.
    """

    def begin(self, observation: Any) -> None:
        """Start an episode."""

    def act(self) -> int:
        """Choose an action: a whole number from 0 on."""

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Take in what the action led to."""

    def probabilities(self) -> NDArray[np.float64]:
        """Probability of each action."""


@dataclass(frozen=True)
class OwnMethod:
    """A method that does not come with lacuna: a reference to what makes its agents, and parameters.

    What it refers to is called as ``make(space, n_actions, seed=…, **parameters)`` and gives an `AgentLike`: a class
    with its methods, or a function whose return type names such a class.

    Examples
    --------
    >>> method = OwnMethod.named("lacuna.agent.agent:Agent")
    >>> method.make(Space((3, 2)), 4, seed=1)
    Agent('mi-planned', K=10, 0 steps, seed=1)
    """

    use: str
    parameters: Frozen = ()

    @classmethod
    def named(cls, use: str, parameters: Mapping[str, Any] | None = None) -> OwnMethod:
        """Find what a reference, or an entry point in the group ``lacuna.methods``, names, and check the parameters."""
        reference = resolve(METHOD_GROUP, use)
        if reference is None:
            choices = [*METHODS, *entry_point_names(METHOD_GROUP)]
            raise ValueError(
                f"no method is called {shown(use)}{nearest(use, [*choices, *YARDSTICKS])}; it must be one of "
                f"{', '.join(choices)}, or a yardstick: {', '.join(YARDSTICKS)}"
            )
        build = _builder(reference)
        # The first two are passed by position, so their names do not matter.
        provided = [*list(parameters_of(build))[:2], "seed"]
        given = typed(f"the method {reference!r}", build, parameters or {}, provided)
        return cls(reference, frozen(unusual(build, given)))

    @property
    def method(self) -> str:
        """The reference and the parameters, as the command line takes them."""
        return write_call(self.use, dict(self.parameters))

    def make(self, space: Space, n_actions: int, *, seed: int) -> AgentLike:
        """Make an agent."""
        try:
            agent: AgentLike = _builder(self.use)(space, n_actions, seed=seed, **dict(self.parameters))
        except Exception as error:
            raise ValueError(f"the method {self.method!r} made no agent: {told(error)}") from error
        missing = [verb for verb in _VERBS if not callable(getattr(agent, verb, None))]
        if missing:
            raise TypeError(f"the method {self.method!r} made {shown(agent)}, which has no {missing[0]}()")
        return agent

    def unusual(self) -> dict[str, Any]:
        """The settings besides the method: none, since its parameters are part of its name."""
        return {}

    def as_dict(self) -> dict[str, Any]:
        """The method as plain data: it has none of the settings of lacuna's methods."""
        return {"method": self.method, **dict.fromkeys(SETTINGS)}


AnyMethod = Settings | OwnMethod
"""A method with its settings: one of lacuna's, or one of your own."""


def find_method(text: str) -> AnyMethod:
    """Read a method as the command line names it: ``NAME[,PARAMETER=VALUE,…]``.

    Examples
    --------
    >>> find_method("mi-synthetic,K=5").pathways
    5
    """
    name, given = parse_call(text, "method")
    if name not in NAMED:
        return OwnMethod.named(name, given)
    for key in given:
        one_of(f"a setting of the method {text!r}", key, SETTINGS)
    return Settings(name, **given)


def make_agent(method: AnyMethod, space: Space, n_actions: int, *, seed: int) -> AgentLike:
    """Make an agent of any method."""
    if isinstance(method, OwnMethod):
        return method.make(space, n_actions, seed=seed)
    return Agent(space, n_actions, method, seed=seed)


def as_observation(seen: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Convert an observation from kernels to the form for agents: new arrays, with 0 for a hidden value."""
    hidden = seen == MISSING
    return {"values": np.where(hidden, 0, seen), "mask": hidden.astype(np.int64)}


def _builder(reference: str) -> Callable[..., Any]:
    found: Any = load(reference)
    if not callable(found):
        raise TypeError(
            f"{reference!r} is {shown(found)}; it must be a class or function that makes an agent from "
            f"(space, n_actions, *, seed)"
        )
    advice = f"a class of agents has {', '.join(f'{verb}()' for verb in _VERBS)}"
    check_makes(reference, found, "an agent", _acts, ("AgentLike", "Agent"), advice)
    return found  # type: ignore[no-any-return]


def _acts(kind: type) -> bool:
    return all(callable(getattr(kind, verb, None)) for verb in _VERBS)
