"""From K states and one Q table to an action: four votes, and the exact probability of every action."""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import NO_STATE
from lacuna.agent.qlearning import best_value
from lacuna.agent.settings import VOTES
from lacuna.kernels.compiled import kernel
from lacuna.kernels.double_double import Double, exact_sum, over, plus, times

SAMPLED, MAJORITY, SOFTMAX, AVERAGE = map(VOTES.index, ("sampled", "majority", "softmax", "average"))

# Votes are sums of fractions 1/m; sums that differ by less are the same votes added in another order.
_SAME_VOTES = 1e-9

_ROUNDING = 2.0**-52


@kernel
def count_ties(Q: NDArray[np.float64], s: int, best: float) -> int:
    """How many actions have the best value in state `s`."""
    ties = 0
    for a in range(Q.shape[1]):
        if Q[s, a] == best:
            ties += 1
    return ties


@kernel
def sample_best(Q: NDArray[np.float64], s: int, u: float) -> int:
    """One of the maximisers of Q(s, ·), each equally likely."""
    best = best_value(Q, s)
    rank = int(u * count_ties(Q, s, best))
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
        ties = count_ties(Q, S[k], best)
        for a in range(Q.shape[1]):
            if Q[S[k], a] == best:
                votes[a] += 1.0 / ties


@kernel
def cast_exact_votes(
    Q: NDArray[np.float64], S: NDArray[np.int64], votes: NDArray[np.float64], low: NDArray[np.float64]
) -> None:
    """As `cast_votes`, with twice the digits: ``votes + low``."""
    votes[:] = 0.0
    low[:] = 0.0
    for k in range(S.shape[0]):
        best = best_value(Q, S[k])
        share = over(Double(1.0, 0.0), Double(float(count_ties(Q, S[k], best)), 0.0))
        for a in range(Q.shape[1]):
            if Q[S[k], a] == best:
                votes[a], low[a] = plus(Double(votes[a], low[a]), share)


@kernel
def keep_most_voted(p: NDArray[np.float64]) -> None:
    """Replace votes by 1 for the most voted and 0 for the others."""
    best = p[0]
    for a in range(1, p.shape[0]):
        best = max(best, p[a])
    for a in range(p.shape[0]):
        p[a] = 1.0 if p[a] >= best - _SAME_VOTES else 0.0


@kernel
def sum_error(Q: NDArray[np.float64], S: NDArray[np.int64], a: int) -> float:
    """How much the sum of an action's values over the pathways may be off by rounding; one value is exact."""
    size = 0.0
    for k in range(S.shape[0]):
        size += abs(Q[S[k], a])
    return float((S.shape[0] - 1) * _ROUNDING * size)


@kernel
def keep_largest_sums(Q: NDArray[np.float64], S: NDArray[np.int64], p: NDArray[np.float64]) -> None:
    """Set 1 for the actions whose values over the pathways add up to the most, and 0 for the others.

    Sums that differ by no more than rounding are the same numbers added in another order, and tie.
    """
    best = 0
    for a in range(p.shape[0]):
        p[a] = 0.0
        for k in range(S.shape[0]):
            p[a] += Q[S[k], a]
        if p[a] > p[best]:
            best = a
    most, slack = p[best], sum_error(Q, S, best)
    for a in range(p.shape[0]):
        p[a] = 1.0 if p[a] >= most - slack - sum_error(Q, S, a) else 0.0


@kernel
def keep_least_regrets(
    Q: NDArray[np.float64], S: NDArray[np.int64], x: NDArray[np.float64], p: NDArray[np.float64]
) -> None:
    """Set 1 for the actions with the least r_a / (1 - x_a), where r_a = Σ_k (max_b Q(S_k, b) - Q(S_k, a)); else 0.

    If an action is best for all pathways (r_a = 0), the largest sums of Q decide. Differences within rounding are ties.
    """
    K, best = S.shape[0], 0
    p[:] = 0.0
    for k in range(K):
        most = best_value(Q, S[k])
        for a in range(p.shape[0]):
            p[a] += most - Q[S[k], a]
    sure = False
    for a in range(p.shape[0]):
        sure |= p[a] == 0.0
        p[a] /= 1.0 - x[a]
        if p[a] < p[best]:
            best = a
    if sure:
        keep_largest_sums(Q, S, p)
        return
    size = 0.0
    for k in range(K):
        size += abs(best_value(Q, S[k]))
    least, slack = p[best], regret_error(Q, S, best, size) / (1.0 - x[best])
    for a in range(p.shape[0]):
        p[a] = 1.0 if p[a] <= least + slack + regret_error(Q, S, a, size) / (1.0 - x[a]) else 0.0


@kernel
def regret_error(Q: NDArray[np.float64], S: NDArray[np.int64], a: int, best: float) -> float:
    """Bound on the rounding error of r_a; `best` is the sum of the absolute best values."""
    for k in range(S.shape[0]):
        best += abs(Q[S[k], a])
    return float((S.shape[0] + 2) * _ROUNDING * best)


@kernel
def weigh_actions(Q: NDArray[np.float64], S: NDArray[np.int64], vote: int, p: NDArray[np.float64]) -> None:
    """Weigh every action: actions are drawn in proportion to their weights; for all votes but `SAMPLED`."""
    if S[0] == NO_STATE:
        p[:] = 1.0
    elif vote == AVERAGE:
        keep_largest_sums(Q, S, p)
    else:
        cast_votes(Q, S, p)
        if vote == MAJORITY:
            keep_most_voted(p)
        elif vote == SOFTMAX:
            most = p[0]
            for a in range(1, p.shape[0]):
                most = max(most, p[a])
            for a in range(p.shape[0]):
                p[a] = exp(p[a] - most) if p[a] > 0 else 0.0


@kernel
def vote_probabilities(Q: NDArray[np.float64], S: NDArray[np.int64], vote: int, p: NDArray[np.float64]) -> None:
    """Probability of each action when the pathways choose, to a few digits less than `action_probabilities`."""
    weigh_actions(Q, S, vote, p)
    normalise(p)


@kernel
def normalise(p: NDArray[np.float64]) -> None:
    """Divide weights by their sum."""
    total = 0.0
    for a in range(p.shape[0]):
        total += p[a]
    for a in range(p.shape[0]):
        p[a] /= total


@kernel
def mix_with_uniform(epsilon: float, p: NDArray[np.float64], low: NDArray[np.float64]) -> None:
    """Turn weights w, given as ``p + low``, into probabilities ``(1 - ε) w/W + ε/A``, rounded once."""
    W = Double(0.0, 0.0)
    for a in range(p.shape[0]):
        W = plus(W, Double(p[a], low[a]))
    uniform = over(Double(epsilon, 0.0), Double(float(p.shape[0]), 0.0))
    for a in range(p.shape[0]):
        chosen = times(exact_sum(1.0, -epsilon), over(Double(p[a], low[a]), W))
        p[a] = plus(chosen, uniform).high


@kernel
def action_probabilities(
    Q: NDArray[np.float64], S: NDArray[np.int64], vote: int, epsilon: float, p: NDArray[np.float64],
    low: NDArray[np.float64],
) -> None:  # fmt: skip
    """Probability of each action: ``(1 - ε) w/W + ε/A``, W the sum of all weights w, rounded once; `low` is scratch.

    So it is never outside ε/A and 1 - ε + ε/A, and the probabilities add up to 1 within half a unit in the last place.
    """
    if vote == SAMPLED and S[0] != NO_STATE:
        cast_exact_votes(Q, S, p, low)
    else:
        weigh_actions(Q, S, vote, p)
        low[:] = 0.0
    mix_with_uniform(epsilon, p, low)


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
