"""Choosing actions for what they reveal: how long not knowing lasts after each action, and what that costs.

The value of a state assumes that it is known. Averaged over pathways, it assumes that after one step it will be known,
whatever the action: that is QMDP. Here an action may leave the state unknown. With pathways S_k,

    r_a = mean_k (max_b Q(S_k, b) - Q(S_k, a))        what a costs now, beside what one would do knowing S_k
    u_a = D'_a / (1 + D_a), 1 at most                 share of the disagreement that remains after a
    q   = D'_0 / (1 + n_0)                            disagreement that comes up where there was none

Disagreement is the probability that two pathways drawn at random hold different states; after the end of an episode it
is 0. D_a and D'_a are its sums before and after the steps with action a that began with some; D'_0 is the sum after the
n_0 steps that began with none. Until steps say otherwise u_a = 0: QMDP's assumption.

Suppose that one either knows the state, or does not and stands as now. By a one goes on not knowing with probability
u_a; one who knows ceases to with probability q. If a is what one does when one does not know, then U, the cost to come,
and V, that of one who knows, satisfy

    U = r_a + γ' (u_a U + (1 - u_a) V)        V = γ' (q U + (1 - q) V)        γ' = min(γ, .99)

so that U - V = r_a / (1 - γ' (u_a - q)). The action to choose is that of the least

    r_a / (1 - x_a)        with    x_a = look · γ' · max(u_a - q, 0)

If one action is best for all pathways, r_a = 0 and it is chosen whatever it reveals. Where all x_a are equal, as with
look = 0, the best average value decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import inner
from lacuna.methods.memory import Experience, Learner, Memory, PlanTable
from lacuna.methods.settings import Rules

MOST_GAMMA = 0.99
"""γ' is at most this: what happens in a hundred steps is worth little."""


@inner
def pairs_together(S: NDArray[np.int64], tally: NDArray[np.int64]) -> int:
    """Σ over states of (number of pathways in it)², K² if all agree; `tally`, a zero for every state, is scratch."""
    pairs = 0
    for k in range(S.shape[0]):
        tally[S[k]] += 1
    for k in range(S.shape[0]):
        pairs += tally[S[k]] ** 2
        tally[S[k]] = 0
    return pairs


@inner
def pairs_before(learner: Learner, planner: PlanTable | None) -> int:
    """The same of the pathways before a step; 0 where nobody asks."""
    if planner is not None and learner.rules.look > 0:
        return pairs_together(learner.memory.S, planner.tally)
    return 0


@inner
def note_unsure(experience: Experience, pairs: int, memory: Memory, planner: PlanTable) -> None:
    """Take in how far the pathways agreed before a step and, by `pairs`, after it."""
    all_pairs, unsure, sure = memory.S.shape[0] ** 2, planner.unsure, planner.unsure.shape[0] - 1
    after = 0.0 if experience.terminated else 1.0 - pairs / all_pairs
    if experience.pairs < all_pairs:
        unsure[experience.action, 0] += 1.0 - experience.pairs / all_pairs
        unsure[experience.action, 1] += after
    else:
        unsure[sure, 0] += 1.0
        unsure[sure, 1] += after


@inner
def unknown_after(a: int, rules: Rules, planner: PlanTable) -> float:
    """x_a."""
    unsure, sure = planner.unsure, planner.unsure.shape[0] - 1
    u = min(unsure[a, 1] / (1.0 + unsure[a, 0]), 1.0)
    q = unsure[sure, 1] / (1.0 + unsure[sure, 0])
    return float(rules.look * min(rules.gamma, MOST_GAMMA) * max(u - q, 0.0))


@inner
def fill_unknown(rules: Rules, planner: PlanTable, x: NDArray[np.float64]) -> None:
    """Fill `x` with that of every action."""
    for a in range(x.shape[0]):
        x[a] = unknown_after(a, rules, planner)
