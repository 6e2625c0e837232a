"""Q-learning updates of K pathways on one table: the paper's sequential ones and two exact alternatives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import kernel
from lacuna.learning.methods import UPDATES

SIMULTANEOUS = UPDATES.index("simultaneous")

MAX_REWARD = 1e100
"""Values stay finite for ever below this: they grow by at most one reward an update."""


@kernel
def best_value(Q: NDArray[np.float64], s: int) -> float:
    """Give max over a of Q(s, a)."""
    A = Q.shape[1]
    half = A // 2
    # Two running maxima, one for each half of the actions: neither waits for the other.
    best, other = Q[s, 0], Q[s, half]
    for a in range(1, half):
        best = max(best, Q[s, a])
        other = max(other, Q[s, half + a])
    return float(max(best, other, Q[s, A - 1]))


@kernel
def td_error(Q: NDArray[np.float64], s: int, a: int, r: float, discount: float, s_next: int) -> float:
    """R + γ max Q(s', ·) - Q(s, a); at the end of an episode the discount is 0."""
    target = r
    if discount > 0:
        target += discount * best_value(Q, s_next)
    return float(target - Q[s, a])


@kernel
def update_together(
    Q: NDArray[np.float64], s: int, a: int, r: float, discount: float, s_next: int, update: int, K: int,
    rate: float, full_rate: float,
) -> None:  # fmt: skip
    """K pathways that coincide.

    If the target cannot move under the update (s' ≠ s, or the end), K sequential updates at `rate` are exactly one at
    ``1 - (1 - rate)**K``; otherwise they are taken one by one. Simultaneous updates always add up to one.
    """
    if s != s_next or discount == 0 or update == SIMULTANEOUS or K == 1:
        Q[s, a] += full_rate * td_error(Q, s, a, r, discount, s_next)
    else:
        for _ in range(K):
            Q[s, a] += rate * td_error(Q, s, a, r, discount, s_next)


@kernel
def update_apart(
    Q: NDArray[np.float64], S: NDArray[np.int64], a: int, r: float, discount: float, S_next: NDArray[np.int64],
    update: int, rate: float, errors: NDArray[np.float64],
) -> None:  # fmt: skip
    """K pathways in the order k = 1 … K, each using the Q the previous one left (or, simultaneous, the same Q)."""
    K = S.shape[0]
    if update == SIMULTANEOUS:
        for k in range(K):
            errors[k] = td_error(Q, S[k], a, r, discount, S_next[k])
        for k in range(K):
            Q[S[k], a] += rate * errors[k]
    else:
        for k in range(K):
            Q[S[k], a] += rate * td_error(Q, S[k], a, r, discount, S_next[k])
