"""What a yardstick knows and no agent can: the world's probabilities, its optimum, and the mechanism's hidden chain."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.methods import YARDSTICKS, Knows, method_named
from lacuna.agent.settings import Settings
from lacuna.missingness.mechanism import Mechanism
from lacuna.validation import extras_named
from lacuna.worlds.mdp.tabular import TabularMDP

if TYPE_CHECKING:
    from lacuna.worlds.mdp.solve import Solution

NOWHERE = -1
"""Where the pathways of a yardstick are before its first episode."""


class Knowledge(NamedTuple):
    """A yardstick's knowledge as arrays for kernels, and where it takes the world to be.

    Probabilities of the outcomes and of the starts of a world, in the order of its `Dynamics`; the transition matrix of
    the mechanism's hidden chain; and over true states the optimal values, the steps to the end (without discount only)
    and the optimal actions, all empty where they are not needed. `here` are the true states of its pathways (the one
    true state, if it is seen), `belief` the probability of each mode of the chain and true state. `here_next` and
    `ahead` are scratch.
    """

    knows: int
    uses_rewards: bool
    probability: NDArray[np.float64]
    start_probability: NDArray[np.float64]
    chain: NDArray[np.float64]
    q: NDArray[np.float64]
    steps: NDArray[np.float64]
    policy: NDArray[np.int64]
    here: NDArray[np.int64]
    here_next: NDArray[np.int64]
    belief: NDArray[np.float64]
    ahead: NDArray[np.float64]


def belief_shape(mdp: TabularMDP, mechanism: Mechanism, settings: Settings) -> tuple[int, int]:
    """Shape of the belief: modes of the chain by true states; empty for a yardstick without one."""
    keeps = method_named(settings.method).knows == Knows.BELIEF
    return (mechanism.rates.shape[0], mdp.n_states) if keeps else (0, 0)


def knowledge_of(mdp: TabularMDP, mechanism: Mechanism, settings: Settings) -> Knowledge:
    """Compute what a yardstick knows, or raise an error if that cannot be known."""
    method = YARDSTICKS[settings.method]
    q, steps, policy = np.zeros((0, mdp.n_actions)), np.zeros((0, mdp.n_actions)), np.zeros(0, dtype=np.int64)
    if not method.learns:
        check_horizon(mdp, settings)
        solution = _solved(mdp, settings.gamma)
        q, policy = solution.q.copy(), solution.policy.copy()
        if settings.gamma == 1.0:
            steps = _expected_steps(mdp, policy)
    if method.knows == Knows.BELIEF and np.isnan(q).any():
        s, a = (int(place) for place in np.argwhere(np.isnan(q))[0])
        raise ValueError(
            f"with gamma = 1 action {a} in true state {s} of {mdp.name} may lead to where nothing is sure to end, so "
            f"{settings.method} has no value for it; take gamma below 1"
        )
    start_probability = np.array([p for start in mdp.starts for p in start.values()], dtype=np.float64)
    chain = np.ones((1, 1)) if mechanism.chain is None else mechanism.chain.copy()
    here, here_next = (np.full(settings.pathways, NOWHERE, dtype=np.int64) for _ in range(2))
    belief, ahead = (np.zeros(belief_shape(mdp, mechanism, settings)) for _ in range(2))
    return Knowledge(
        int(method.knows), method.uses_rewards, mdp.probability, start_probability, chain, q, steps, policy, here,
        here_next, belief, ahead,
    )  # fmt: skip


def check_horizon(mdp: TabularMDP, settings: Settings) -> None:
    """Refuse a yardstick that needs optimal values where there are none: a continuing task with γ = 1."""
    if not method_named(settings.method).learns and settings.gamma == 1.0 and not mdp.terminates:
        raise ValueError(
            f"{settings.method} needs optimal values, which have no bound in a continuing task ({mdp.name}) with "
            f"gamma = 1; take gamma below 1"
        )


@lru_cache(maxsize=16)
def _solved(mdp: TabularMDP, gamma: float) -> Solution:
    """All trials of a study share one solution."""
    with extras_named():
        from lacuna.worlds.mdp.solve import solve  # noqa: PLC0415  agents need no scipy
    return solve(mdp, gamma)


def _expected_steps(mdp: TabularMDP, policy: NDArray[np.int64]) -> NDArray[np.float64]:
    from lacuna.worlds.mdp.solve import expected_steps  # noqa: PLC0415  agents need no scipy

    return expected_steps(mdp, policy)
