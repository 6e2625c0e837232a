"""Our imputer in front of another learner: a Gymnasium wrapper that shows an agent's pathways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast, get_args

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike, NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.methods import NO_GUESS
from lacuna.agent.settings import DEFAULT, Settings
from lacuna.kernels.space import Space
from lacuna.validation import one_of, shown
from lacuna.wrappers.carried import Source

Show = Literal["shares", "mode", "pathway", "mean", "spread"]
"""What an `ImputedObservation` shows of the pathways."""

_OF_NUMBERS = ("mean", "spread")

Env = gym.Env[Any, Any]


class ImputedObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Show a learner a complete observation, imputed online by an `Agent` that learns from the learner's actions.

    The agent inside learns its model from what was observed, what was done and what was paid, and keeps K guesses of
    the state: its *pathways*. It never sees what is hidden, and its own actions are never asked for.

    Parameters
    ----------
    env
        A `MissingObservation` with `Discrete` actions.
    imputer
        Settings of the agent inside; `DEFAULT` if not given. ``reset(seed=s)`` then starts a new one with seed `s`, and
        what the old one learned is gone. Or an `Agent`, e.g. a loaded one: it is used as it is, and stays.
    show
        What the learner sees:

        - ``"shares"``: for every value of every component, the share of pathways that have it, in a `Box` of numbers
          between 0 and 1. A component that was seen is one-hot; one that is hidden shows how uncertain it is.
        - ``"mode"``: the state that most pathways are in.
        - ``"pathway"``: the state of one pathway, a random draw.
        - ``"mean"``, for real numbers only: the mean over pathways.
        - ``"spread"``, for real numbers only: the mean, then the standard deviation over pathways.

        A state is `MultiDiscrete`, with values counted from 0; or, for real numbers, a `Box`.
    bins
        For an environment that shows real numbers: for each component, in increasing order, the edges at which it is
        cut. n edges make n + 1 bins, of which the first and the last are open. The agent learns from bins. What was
        seen is shown as it was; what is hidden is shown as the middle of a bin. An open bin counts as being as wide as
        its neighbour.

    Attributes
    ----------
    agent : Agent
        The agent inside. ``env.agent.save(path)`` keeps what it learned.

    Examples
    --------
    >>> import lacuna
    >>> env = ImputedObservation(lacuna.MissingObservation(gym.make("lacuna/Lake-v0"), "mcar:0.4"), show="mode")
    >>> observation, _ = env.reset(seed=0)
    >>> observation, *_ = env.step(3)
    >>> env.observation_space, env.agent.steps
    (MultiDiscrete([8 8 3]), 1)

    Real numbers need bins:

    >>> cart = lacuna.MissingObservation(gym.make("CartPole-v1"), "mcar:0.4")
    >>> bins = [np.linspace(-limit, limit, 7) for limit in (2.4, 3, 0.21, 3)]
    >>> env = ImputedObservation(cart, show="mean", bins=bins)
    >>> env.observation_space.shape, env.agent.space.sizes
    ((4,), (8, 8, 8, 8))
    """

    def __init__(
        self,
        env: Env,
        imputer: Settings | Agent | None = None,
        *,
        show: Show = "shares",
        bins: Sequence[ArrayLike] | None = None,
    ) -> None:
        if not isinstance(imputer, Settings | Agent | None):
            raise TypeError(f"the imputer is {shown(imputer)}; it must be Settings or an Agent")
        given = imputer if isinstance(imputer, Agent) else None
        # An agent that was given is used, not copied.
        RecordConstructorArgs.__init__(
            self, _disable_deepcopy=given is not None, imputer=imputer, show=show, bins=bins
        )  # fmt: skip
        gym.Wrapper.__init__(self, env)
        one_of("show", show, get_args(Show))
        if not isinstance(env.action_space, spaces.Discrete):
            raise TypeError(f"the actions are {env.action_space}; the imputer's model needs Discrete ones")
        self._source = Source(env)
        box = self._source.complete if isinstance(self._source.complete, spaces.Box) else None
        if (box is None) != (bins is None):
            raise ValueError(
                "the environment shows real numbers: the imputer needs bins" if bins is None else
                "the environment shows discrete values: bins are for real numbers; leave them out"
            )  # fmt: skip
        if show in _OF_NUMBERS and box is None:
            raise ValueError(f"show is {show!r}, but discrete values have no mean; 'shares' is the closest")
        self._edges = () if box is None or bins is None else _checked_edges(bins, box)
        self._space = self._source.space or Space(tuple(len(edges) + 1 for edges in self._edges))
        self._first_action, self._n_actions = int(env.action_space.start), int(env.action_space.n)
        self._show: Show = show
        self._settings = imputer if isinstance(imputer, Settings) else DEFAULT
        self._keeps = given is not None
        # Without a seed a run is not meant to be repeated: start anywhere.
        self.agent = given or self._new_agent(int(np.random.SeedSequence().generate_state(1)[0]))
        self._check_agent()
        self._middles = np.empty(0) if box is None else _middles(self._edges, box)
        self.observation_space = self._shown_space()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; a seed also starts a new imputer, unless an agent was given."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None and not self._keeps:
            self.agent = self._new_agent(seed)
        values, hidden = self._source.read(observation)
        self.agent.begin(self._numbered(values, hidden))
        return self._imputed(values, hidden), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, let the imputer learn from it, and show its pathways."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        values, hidden = self._source.read(observation)
        self.agent.take_late(info)
        self.agent.learn(
            float(reward),
            self._numbered(values, hidden),
            bool(terminated),
            action=int(action) - self._first_action,
        )
        return self._imputed(values, hidden), reward, terminated, truncated, info

    def _new_agent(self, seed: int) -> Agent:
        return Agent(self._space, self._n_actions, self._settings, seed=seed)

    def _check_agent(self) -> None:
        agent = self.agent
        if agent.method.impute in NO_GUESS:
            raise ValueError(f"the imputer is {agent.method.name}, which guesses nothing; take a method that imputes")
        if agent.space.sizes != self._space.sizes or agent.n_actions != self._n_actions:
            raise ValueError(
                f"the agent has components of sizes {agent.space.sizes} and {agent.n_actions} actions; the environment "
                f"has {self._space.sizes} and {self._n_actions}"
            )

    def _shown_space(self) -> spaces.Space[Any]:
        complete = self._source.complete
        if self._show == "shares":
            return spaces.Box(0, 1, (sum(self._space.sizes),), np.float32)
        if self._show == "spread" and isinstance(complete, spaces.Box):
            ranges = [np.ptp(part) for part in np.split(self._middles, self._space.layout.offsets[1:])]
            low, high = np.append(complete.low, np.zeros(len(ranges))), np.append(complete.high, ranges)
            return spaces.Box(
                low.astype(complete.dtype), high.astype(complete.dtype), dtype=cast("Any", complete.dtype)
            )
        return complete

    def _numbered(self, values: NDArray[Any], hidden: NDArray[np.bool_]) -> NDArray[np.int64]:
        """An observation as the agent takes it: the number of each value or bin, one past the last for missing."""
        if self._edges:
            bins = [np.searchsorted(edges, x, side="right") for edges, x in zip(self._edges, values, strict=True)]
            values = np.array(bins, dtype=np.int64)
        return np.where(hidden, self._space.layout.sizes, values)

    def _imputed(self, values: NDArray[Any], hidden: NDArray[np.bool_]) -> NDArray[Any]:
        agent = self.agent
        layout = self._space.layout
        # `agent.pathways`, for all at once.
        pathways = agent.memory.S[:, None] // layout.strides % layout.sizes
        # The values of all components numbered through.
        places = pathways + layout.offsets
        if self._show == "shares":
            found = np.bincount(places.ravel(), minlength=sum(self._space.sizes)) / len(pathways)
            return found.astype(np.float32)
        chosen = places if self._show in _OF_NUMBERS else places[self._one_of(agent.memory.C)][None]
        if not self._edges:
            return np.asarray(chosen[0] - layout.offsets)
        guesses = self._middles[chosen]
        shown = np.where(hidden, guesses.mean(axis=0), values)
        if self._show == "spread":
            shown = np.append(shown, np.where(hidden, guesses.std(axis=0), 0.0))
        return shown.astype(self.observation_space.dtype)

    def _one_of(self, C: NDArray[np.int64]) -> int:
        """Which pathway is shown: the first, or the first of those in the state that most are in."""
        return 0 if self._show == "pathway" else int((C[:, None] == C).sum(axis=1).argmax())


def _checked_edges(bins: Sequence[ArrayLike], box: spaces.Box) -> tuple[NDArray[np.float64], ...]:
    if len(bins) != box.low.size:
        raise ValueError(f"there are bins for {len(bins)} components; the observation has {box.low.size}")
    for j, given in enumerate(bins):
        edges = np.asarray(given, dtype=np.float64)
        if edges.ndim != 1 or edges.size < 2 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise ValueError(f"bins[{j}] is {shown(given)}; it must be two or more finite numbers in increasing order")
    return tuple(np.array(edges, dtype=np.float64) for edges in bins)


def _middles(edges: Sequence[NDArray[np.float64]], box: spaces.Box) -> NDArray[np.float64]:
    """What each bin stands for, all components one after the other."""
    parts = []
    for cuts, low, high in zip(edges, box.low, box.high, strict=True):
        ends = np.concatenate([[2 * cuts[0] - cuts[1]], cuts, [2 * cuts[-1] - cuts[-2]]])
        parts.append(np.clip((ends[1:] + ends[:-1]) / 2, low, high))
    return np.concatenate(parts)
