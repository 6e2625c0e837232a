"""What a yardstick knows and no agent can: the world's probabilities, its optimum, and how its hiding moves."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.learning.methods import Knows, Settings, find_method
from lacuna.mdp.solve import Solution, expected_steps, solve
from lacuna.mdp.tabular import TabularMDP
from lacuna.missingness.mechanism import Mechanism


class Truth(NamedTuple):
    """The truth as arrays for kernels.

    Probabilities of the outcomes and of the starts of a world, in the order of its `Dynamics`; the transition matrix of
    the mechanism's hidden chain; and over true states the optimal values, the steps to the end (without discount only)
    and the optimal actions, all empty for who does without.
    """

    probability: NDArray[np.float64]
    start_probability: NDArray[np.float64]
    chain: NDArray[np.float64]
    q: NDArray[np.float64]
    steps: NDArray[np.float64]
    policy: NDArray[np.int64]


def truth_of(mdp: TabularMDP, mechanism: Mechanism, settings: Settings) -> Truth:
    """Give a yardstick what it knows, or a sentence if that cannot be known."""
    q, steps, policy = np.zeros((0, mdp.n_actions)), np.zeros((0, mdp.n_actions)), np.zeros(0, dtype=np.int64)
    knows = find_method(settings.method).knows
    if knows in (Knows.STATE, Knows.BELIEF):
        check_horizon(mdp, settings)
        solution = _solved(mdp, settings.gamma)
        q, policy = solution.q.copy(), solution.policy.copy()
        if settings.gamma == 1.0:
            steps = expected_steps(mdp, policy)
    if knows == Knows.BELIEF and np.isnan(q).any():
        s, a = (int(place) for place in np.argwhere(np.isnan(q))[0])
        raise ValueError(
            f"with gamma = 1 action {a} in true state {s} of {mdp.name} may lead to where nothing is sure to end, so "
            f"{settings.method} has no value for it; take gamma below 1"
        )
    start_probability = np.array([p for start in mdp.starts for p in start.values()], dtype=np.float64)
    chain = np.ones((1, 1)) if mechanism.chain is None else mechanism.chain.copy()
    return Truth(mdp.probability, start_probability, chain, q, steps, policy)


def check_horizon(mdp: TabularMDP, settings: Settings) -> None:
    """Refuse a yardstick that needs optimal values where there are none: a continuing task with γ = 1."""
    plans = find_method(settings.method).knows in (Knows.STATE, Knows.BELIEF)
    if plans and settings.gamma == 1.0 and not mdp.terminates:
        raise ValueError(
            f"{settings.method} needs optimal values, which have no bound in a continuing task ({mdp.name}) with "
            f"gamma = 1; take gamma below 1"
        )


@lru_cache(maxsize=16)
def _solved(mdp: TabularMDP, gamma: float) -> Solution:
    """All trials of a study share one solution."""
    return solve(mdp, gamma)
