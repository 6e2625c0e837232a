"""From K states and one Q table to an action: four votes, and the exact probability of every action."""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from lacuna.compiled import kernel
from lacuna.methods import VOTES
from lacuna.qlearning import best_value

SAMPLED, MAJORITY, SOFTMAX, AVERAGE = map(VOTES.index, ("sampled", "majority", "softmax", "average"))

# Votes are sums of fractions 1/m; sums that differ by less are the same votes added in another order.
_SAME_VOTES = 1e-9

_ROUNDING = 2.0**-52

NO_STATE = -1
"""A pathway with nothing to act on: the action is uniform."""


@kernel
def sample_best(Q: NDArray[np.float64], s: int, u: float) -> int:
    """One of the maximisers of Q(s, ·), each equally likely."""
    best = best_value(Q, s)
    ties = 0
    for a in range(Q.shape[1]):
        if Q[s, a] == best:
            ties += 1
    rank = int(u * ties)
    for a in range(Q.shape[1]):
        if Q[s, a] == best:
            if rank == 0:
                return a
            rank -= 1
    return 0  # never reached: rank < ties


@kernel
def cast_votes(Q: NDArray[np.float64], S: NDArray[np.int64], votes: NDArray[np.float64]) -> None:
    """Each pathway gives 1/m of a vote to each of its m maximisers."""
    votes[:] = 0.0
    for k in range(S.shape[0]):
        best = best_value(Q, S[k])
        ties = 0
        for a in range(Q.shape[1]):
            if Q[S[k], a] == best:
                ties += 1
        for a in range(Q.shape[1]):
            if Q[S[k], a] == best:
                votes[a] += 1.0 / ties


@kernel
def share_among_most_voted(p: NDArray[np.float64]) -> None:
    """Replace votes by a uniform distribution over the most voted."""
    best = p[0]
    for a in range(1, p.shape[0]):
        best = max(best, p[a])
    ties = 0
    for a in range(p.shape[0]):
        if p[a] >= best - _SAME_VOTES:
            ties += 1
    for a in range(p.shape[0]):
        p[a] = 1.0 / ties if p[a] >= best - _SAME_VOTES else 0.0


@kernel
def sum_error(Q: NDArray[np.float64], S: NDArray[np.int64], a: int) -> float:
    """How much the sum of an action's values over the pathways may be off by rounding; one value is exact."""
    size = 0.0
    for k in range(S.shape[0]):
        size += abs(Q[S[k], a])
    return float((S.shape[0] - 1) * _ROUNDING * size)


@kernel
def share_among_equals(Q: NDArray[np.float64], S: NDArray[np.int64], best: int, p: NDArray[np.float64]) -> None:
    """Replace sums over pathways by a uniform distribution over the largest.

    Sums that differ by no more than rounding are the same numbers added in another order, and tie.
    """
    top, slack = p[best], sum_error(Q, S, best)
    ties = 0
    for a in range(p.shape[0]):
        p[a] = 1.0 if p[a] >= top - slack - sum_error(Q, S, a) else 0.0
        ties += int(p[a])
    for a in range(p.shape[0]):
        p[a] /= ties


@kernel
def vote_probabilities(Q: NDArray[np.float64], S: NDArray[np.int64], vote: int, p: NDArray[np.float64]) -> None:
    """Probability of each action when the pathways choose."""
    A = Q.shape[1]
    if S[0] == NO_STATE:
        p[:] = 1.0 / A
    elif vote == AVERAGE:
        best = 0
        for a in range(A):
            p[a] = 0.0
            for k in range(S.shape[0]):
                p[a] += Q[S[k], a]
            if p[a] > p[best]:
                best = a
        share_among_equals(Q, S, best, p)
    else:
        cast_votes(Q, S, p)
        if vote == MAJORITY:
            share_among_most_voted(p)
        elif vote == SOFTMAX:
            most = p[0]
            for a in range(1, A):
                most = max(most, p[a])
            total = 0.0
            for a in range(A):
                p[a] = exp(p[a] - most) if p[a] > 0 else 0.0
                total += p[a]
            for a in range(A):
                p[a] /= total
        else:
            for a in range(A):
                p[a] /= S.shape[0]


@kernel
def action_probabilities(
    Q: NDArray[np.float64], S: NDArray[np.int64], vote: int, epsilon: float, p: NDArray[np.float64]
) -> None:
    """Probability of each action, ε-greedy included."""
    vote_probabilities(Q, S, vote, p)
    A = Q.shape[1]
    for a in range(A):
        p[a] = (1.0 - epsilon) * p[a] + epsilon / A


@kernel
def sample_action(p: NDArray[np.float64], u: float) -> int:
    """An action by its probability; if rounding leaves `u` above all of them, the last one that has any."""
    last = 0
    total = 0.0
    for a in range(p.shape[0]):
        if p[a] > 0:
            last = a
            total += p[a]
            if u < total:
                break
    return last
