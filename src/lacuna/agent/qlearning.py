"""Q-learning updates of K pathways on one table.

With the discount γ, which is 0 at the end of an episode,

    δ_k = R + γ max_a Q(S'_k, a) - Q(S_k, A)        Q(S_k, A) += rate · δ_k        k = 1 … K

The paper's are sequential: each δ_k sees the Q that the one before left. Simultaneous ones all see the same Q.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import Memory
from lacuna.agent.settings import UPDATES, Rules
from lacuna.kernels.compiled import kernel

SIMULTANEOUS = UPDATES.index("simultaneous")

MAX_REWARD = 1e100
"""Values stay finite for ever below this: they grow by at most one reward an update."""


@kernel
def best_value(Q: NDArray[np.float64], s: int) -> float:
    """Return max over a of Q(s, a)."""
    A = Q.shape[1]
    half = A // 2
    # max(Q[s, a] for a in range(A)), as two running maxima, one for each half: neither waits for the other.
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
def update_together(a: int, r: float, discount: float, rules: Rules, memory: Memory) -> None:
    """K pathways that coincide.

    If the target cannot move under the update (s' ≠ s, or the end), K sequential updates at `rate` are exactly one at
    ``1 - (1 - rate)**K``; otherwise they are taken one by one. Simultaneous updates always add up to one.

    Examples
    --------
    >>> from lacuna import Settings, Space
    >>> from lacuna.agent import blank_memory
    >>> settings = Settings("mi-synthetic", K=2, alpha=1.0)
    >>> memory = blank_memory(Space((3,)), 2, settings)
    >>> memory.S[:], memory.S_next[:] = 0, 1
    >>> update_together(1, 4.0, 0.9, settings.rules, memory)
    >>> float(memory.Q[0, 1])
    3.0
    """
    Q, s, s_next = memory.Q, memory.S[0], memory.S_next[0]
    if s != s_next or discount == 0 or rules.update == SIMULTANEOUS or rules.K == 1:
        Q[s, a] += rules.full_rate * td_error(Q, s, a, r, discount, s_next)
    else:
        for _ in range(rules.K):
            Q[s, a] += rules.rate * td_error(Q, s, a, r, discount, s_next)


@kernel
def update_apart(a: int, r: float, discount: float, rules: Rules, memory: Memory) -> None:
    """K pathways in the order k = 1 … K, each using the Q the previous one left (or, simultaneous, the same Q).

    Examples
    --------
    >>> from lacuna import Settings, Space
    >>> from lacuna.agent import blank_memory
    >>> settings = Settings("mi-synthetic", K=2, alpha=1.0)
    >>> memory = blank_memory(Space((3,)), 2, settings)
    >>> memory.S[:], memory.S_next[:] = [0, 2], 1
    >>> update_apart(1, 4.0, 0.9, settings.rules, memory)
    >>> memory.Q[:, 1].tolist()
    [2.0, 0.0, 2.0]
    """
    Q, S, S_next, errors = memory.Q, memory.S, memory.S_next, memory.errors
    K = S.shape[0]
    if rules.update == SIMULTANEOUS:
        for k in range(K):
            errors[k] = td_error(Q, S[k], a, r, discount, S_next[k])
        for k in range(K):
            Q[S[k], a] += rules.rate * errors[k]
    else:
        for k in range(K):
            Q[S[k], a] += rules.rate * td_error(Q, S[k], a, r, discount, S_next[k])
