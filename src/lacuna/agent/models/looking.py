"""Choosing actions for what they reveal: how long the state stays unknown after each action, and what that costs.

The mean of Q over pathways assumes that the state will be known after one step, whatever the action (QMDP). Here an
action may leave it unknown. With pathways S_k,

    r_a = mean_k (max_b Q(S_k, b) - Q(S_k, a))        cost of a now, compared with knowing S_k
    u_a = min(D'_a / (1 + D_a), 1)                    share of the disagreement that remains after a
    q   = D'_0 / (1 + n_0)                            new disagreement after steps that began with none

Disagreement is the probability that two pathways drawn at random hold different states; after the end of an episode it
is 0. D_a and D'_a sum the disagreement before and after steps with action a, over steps that began with some. D'_0 sums
it after the n_0 steps that began with none. With no data u_a = 0, as QMDP assumes.

A model with two situations gives the rule. The agent either knows the state, or does not and has the current pathways.
If it does not know the state, it takes a and still does not know it afterwards with probability u_a. If it knows the
state, it loses track with probability q. The expected costs U of not knowing and V of knowing satisfy

    U = r_a + γ' (u_a U + (1 - u_a) V)        V = γ' (q U + (1 - q) V)        γ' = min(γ, .99)

so U - V = r_a / (1 - γ' (u_a - q)). The chosen action minimises

    r_a / (1 - x_a)        with    x_a = look · γ' · max(u_a - q, 0)

If one action is best for all pathways, r_a = 0 and it is chosen, whatever it reveals. If all x_a are equal, as with
look = 0, the action with the best mean of Q is chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import Experience, Learner, Memory, PlanTable
from lacuna.agent.settings import Rules
from lacuna.kernels.compiled import inner

MOST_GAMMA = 0.99
"""Upper bound of γ': an estimate of what happens in a hundred steps is worth little."""


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
    """`pairs_together` of the pathways before a step; 0 if looking is off."""
    if planner is not None and learner.rules.look > 0:
        return pairs_together(learner.memory.S, planner.tally)
    return 0


@inner
def note_unsure(experience: Experience, pairs: int, memory: Memory, planner: PlanTable) -> None:
    """Add a step to D and D', or to n_0 and D'_0; `pairs` is `pairs_together` after the step."""
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
    """x_a: the discounted share of disagreement that outlasts action `a`."""
    unsure, sure = planner.unsure, planner.unsure.shape[0] - 1
    u = min(unsure[a, 1] / (1.0 + unsure[a, 0]), 1.0)
    q = unsure[sure, 1] / (1.0 + unsure[sure, 0])
    return float(rules.look * min(rules.gamma, MOST_GAMMA) * max(u - q, 0.0))


@inner
def fill_unknown(rules: Rules, planner: PlanTable, x: NDArray[np.float64]) -> None:
    """Fill `x` with x_a for every action."""
    for a in range(x.shape[0]):
        x[a] = unknown_after(a, rules, planner)
