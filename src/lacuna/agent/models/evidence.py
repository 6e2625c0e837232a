"""Evidence: rewards, endings and the pattern of hidden components weigh the pathways.

After each pathway has drawn its next state s', the pairs of state and next state are resampled in proportion to

    L(s') = P(c | s') · P(m | s')

c is the outcome: the reward, and whether the episode ended. m is the pattern: which components are hidden. The setting
``evidence`` says which of the two count. If L is the same for all pathways, nothing is drawn and nothing changes.

**Outcomes.** n(s', c) counts arrivals of pathways in s' with outcome c, by 1/K each, and P(c) is the frequency of c:

    P(c | s') = (n(s', c) + P(c)) / (n(s') + 1)

Only the first eight distinct outcomes count; others are ignored.

**Patterns.** n(s', m) counts how often pattern m came when the model predicted s', and P(m) is the frequency of m:

    P(m | s') = (n(s', m) + 10 P(m)) / (n(s') + 10)

The predicted state is one draw per step from T(s' | s, a), made without the observation. Counting imputed states
instead would be biased: complete states are known exactly and guesses are spread, so rarely visited states would seem
to be hidden more often than others.

**Only where it helps.** The weight is the likelihood ratio of the patterns with s' to those without s'. It is a product
over steps, and each pattern is predicted before it is counted:

    weight *= P(m | s') / P(m)

Patterns are evidence while the weight exceeds e^10. So where patterns do not depend on the state, nothing changes.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import ANYWHERE, Evidence, Experience, Learner, Memory, PlanTable
from lacuna.agent.models.carry import guess_uniformly
from lacuna.agent.models.component_counts import is_waiting, units_of
from lacuna.agent.models.factored_model import draw_hidden
from lacuna.agent.models.imputation import draw_components, pick_agreeing
from lacuna.kernels.codes import Observed, unpack
from lacuna.kernels.compiled import inner
from lacuna.kernels.counts import add, has_room
from lacuna.kernels.space import Layout
from lacuna.kernels.streams import Uniforms, draw

_CLEARLY = exp(10.0)
"""Patterns are evidence while the weight exceeds this."""

_PRIOR = 10.0
"""Weight, in arrivals, of the overall frequency of a pattern."""

LEAST_WEIGHT, MOST_WEIGHT = 2.0**-20, 2.0**100
"""Bounds on the weight of patterns, so that later steps can still reverse it."""

_LATTICE, _STEP = 987, 610
"""Consecutive Fibonacci numbers: any run of multiples of 610/987, modulo 1, is spread evenly over [0, 1)."""


@inner
def share_of(n: float, total: float, base: float, weight: float) -> float:
    """Frequency of `n` in `total`, shrunk towards `base` with the weight of `weight` arrivals."""
    return (n + weight * base) / (total + weight)


@inner
def outcome_of(experience: Experience, outcomes: NDArray[np.float64], known: int) -> int:
    """Number of the outcome of a step among those known, -1 if it is none of them."""
    found = -1
    for c in range(known):
        reward, ended, _ = outcomes[c]
        if reward == experience.reward and (ended > 0) == experience.terminated:
            found = c
    return found


@inner
def note_outcome(experience: Experience, outcomes: NDArray[np.float64], known: int) -> int:
    """Count an outcome; returns its number, `known` if it is new, -1 if it is new and there is no room for another."""
    c = outcome_of(experience, outcomes, known)
    if c < 0 and known < outcomes.shape[0]:
        c = known
        outcomes[c, 0], outcomes[c, 1] = experience.reward, 1.0 if experience.terminated else 0.0
    if c >= 0:
        outcomes[c, 2] += 1.0
    return int(c)


@inner
def weigh_pathways(experience: Experience, learner: Learner, evidence: Evidence | None, uniforms: Uniforms) -> None:
    """Resample pairs of state and next state by the evidence, unless the next state is complete."""
    if evidence is None:
        return
    memory, observed = learner.memory, experience.observed
    if observed.complete:
        return
    weights, K = memory.errors, memory.S.shape[0]
    for k in range(K):
        weights[k] = 1.0
    c = outcome_of(experience, evidence.outcomes, evidence.known[0])
    if c >= 0:
        base = evidence.outcomes[c, 2] / evidence.known[1]
        for k in range(K):
            s = unpack(memory.C_next[k], learner.layout)
            weights[k] *= share_of(evidence.told[s, c], evidence.arrived[s], base, 1.0)
    weigh_patterns(observed, learner.layout, memory, evidence)
    alike = True
    for k in range(1, K):
        alike = alike and weights[k] == weights[0]
    if not alike:
        resample(draw(uniforms), memory, evidence.offspring)


@inner
def weigh_patterns(observed: Observed, layout: Layout, memory: Memory, evidence: Evidence | None) -> bool:
    """Multiply the weights of the pathways by P(m | s'); returns whether patterns were used."""
    if evidence is None:
        return False
    patterns, last = evidence.patterns, evidence.patterns.head.shape[0] - 1
    if observed.complete or evidence.weight[0] <= _CLEARLY:
        return False
    n, total = units_of(last, observed.bits, patterns)
    if n == 0:
        return False
    base = n / total
    for k in range(memory.S.shape[0]):
        n, total = units_of(unpack(memory.C_next[k], layout), observed.bits, patterns)
        memory.errors[k] *= share_of(n, total, base, _PRIOR)
    return True


@inner
def credit_arrivals(experience: Experience, memory: Memory, evidence: Evidence | None) -> None:
    """Count the outcome of a step in the states that the pathways arrived in."""
    if evidence is None:
        return
    if evidence.outcomes.shape[0] > 0:
        known, K = evidence.known, memory.S.shape[0]
        known[1] += 1
        c = note_outcome(experience, evidence.outcomes, known[0])
        known[0] += 1 if c == known[0] else 0
        for k in range(K):
            s = memory.S_next[k] - memory.first[k]
            evidence.arrived[s] += 1.0 / K
            if c >= 0:
                evidence.told[s, c] += 1.0 / K


@inner
def count_pattern(
    experience: Experience, learner: Learner, planner: PlanTable | None, evidence: Evidence | None
) -> None:
    """Predict the pattern from the state that the model predicts, then count it there."""
    if evidence is None:
        return
    patterns, last, m = evidence.patterns, evidence.patterns.head.shape[0] - 1, experience.observed.bits
    if last > 0:
        n, t = units_of(last, m, patterns)
        s = predict_state(t, experience.action, learner, planner, evidence)
        if n > 0:
            base = n / t
            n, total = units_of(s, m, patterns)
            weight = evidence.weight[0] * (share_of(n, total, base, _PRIOR) / base)
            evidence.weight[0] = min(max(weight, LEAST_WEIGHT), MOST_WEIGHT)
        add(s, m, 1, ANYWHERE, patterns)
        add(last, m, 1, ANYWHERE, patterns)


@inner
def predict_state(t: int, action: int, learner: Learner, planner: PlanTable | None, evidence: Evidence) -> int:
    """A next state drawn from the model alone in step `t`. Pathways take turns.

    The draw uses the lattice instead of a random stream, so a trial can learn from steps in any order.
    """
    memory, counts, layout = learner.memory, learner.counts, learner.layout
    k, u = t % memory.S.shape[0], (t % _LATTICE * _STEP % _LATTICE + 0.5) / _LATTICE
    i = counts.head[(memory.S[k] + memory.to_counts[k]) * memory.Q.shape[1] + action]
    complete, seen, bits = False, 0, 0
    nothing = Observed(evidence.nothing, complete, seen, bits, evidence.patterns.head.shape[0] - 1)
    n, kappa = counts.total[i], learner.rules.kappa
    if planner is None and is_waiting(learner.components):
        kappa = 0.0
    rank = u * (n + kappa)
    if rank < n:
        first, end = counts.start[i], counts.start[i] + counts.length[i]
        code = counts.code[pick_agreeing(first, end, nothing, int(rank), counts)]
    elif kappa == 0:
        code = guess_uniformly(nothing, layout, u)
    elif planner is not None:
        code = draw_hidden(memory.C[k], action, nothing, (rank - n) / kappa, planner.model, layout)
    else:
        code = draw_components(memory.C[k], action, nothing, (rank - n) / kappa, learner)
    return unpack(code, layout)


@inner
def has_room_for_patterns(evidence: Evidence | None) -> bool:
    """Whether the pattern of one more step fits."""
    if evidence is None:
        return True
    return has_room(2, evidence.patterns)


@inner
def resample(u: float, memory: Memory, offspring: NDArray[np.int64]) -> None:
    """Systematic resampling: pathway k survives once for each of u, u + 1, u + 2, … that falls into its share of K.

    Survivors keep their places. Copies take the places of the others.
    """
    K, weights = memory.S.shape[0], memory.errors
    total = 0.0
    for k in range(K):
        total += weights[k]
    if total == 0.0:
        return
    taken, reached = 0, 0.0
    for k in range(K):
        reached += weights[k] / total * K
        offspring[k] = 0
        while taken < K and taken + u < reached:
            offspring[k] += 1
            taken += 1
    # Rounding may leave a little at the end. The last pathway gets it.
    offspring[K - 1] += K - taken
    free = 0
    for k in range(K):
        while offspring[k] > 1:
            while offspring[free] > 0:
                free += 1
            shift = memory.first[free] - memory.first[k]
            memory.S[free], memory.C[free] = memory.S[k] + shift, memory.C[k]
            memory.S_next[free], memory.C_next[free] = memory.S_next[k] + shift, memory.C_next[k]
            offspring[free] = 1
            offspring[k] -= 1
