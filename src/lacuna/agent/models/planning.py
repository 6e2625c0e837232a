"""Planning on the learned model by expected backups, the most urgent first, within a budget per step.

**Model.** With the joint counts N(s, a, s') of row total n, and the components' product (`successors`),

    T(s' | s, a) = (N(s, a, s') + κ ∏_j P_j(s'_j | s, a)) / (n + κ)

Where κ/(n + κ) < .003 the product is left out, and T = N/n.

**Backup of (s, a).** R, n_R, E are the sums of rewards, weights and endings from (s, a); r̄ and ē the mean reward and
the mean number of endings of arrivals in s', and k the mass of T on states where pathways have arrived. Then, with
γ' = min(γ, .99),

    r = (R + Σ T r̄) / (n_R + k)        t = (E + Σ T ē) / (n_R + k)
    q = r + γ' (1 - t) Σ T (1 - ē) V / Σ T (1 - ē)
    Q(s, a) = (1 - ω) q + ω max(O, q)        V(s) = max_a Q(s, a)

Where every next state ends the episode, q = r. Where n_R + k = 0, nothing is known and Q = O.

**Optimism.** ω is the doubt about (s, a). It falls with tries, and faster where each component was seen to leave s_j
under a, n_c times at least: an action is known where its components are. A little doubt lasts, because a try may have
been somewhere else than the pathways took it to be:

    ω = max(min(1 - tried, 1/(n_c + 1)), .1/(1 + tried))

Where ω = 1, Q = O. States that no pathway has left have the value O:

    O = (.1 + .9 c²) · max(highest reward so far, highest value)

c is the mean agreement: the probability that two pathways drawn at random hold the same state, averaged over about 1000
steps, beginning with a step of full agreement. Where pathways disagree, trying things teaches little.

**Impatience.** If no episode has ended for three times as long as it takes on average, actions are uniform with
probability .1. Before the first ending, after t steps, it is 1/√t, .1 at most: the task may be one that never ends. If
no reward was above 0 either, it rises again, to .1 at step 10,000, and then falls as 10/√t.

**Order.** First the rows that the pathways have just taken. Then, as long as there are any, rows that lead to states
whose value moved, those that moved the most first: half as many as the budget at most. Where there are none, the next
row of a round over all actions of visited states. Rows made urgent after the budget is spent are still backed up, as
far as that half goes.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from lacuna.agent.memory import (
    AGREEMENT,
    ANYWHERE,
    CREDITED,
    CURSOR,
    ENDINGS,
    ENTRY,
    HIGHEST,
    IMPATIENCE,
    LARGEST,
    OPEN,
    OPTIMISTIC,
    OUTCOMES,
    PEAK,
    QUEUED,
    RISING,
    STEPS,
    VISITED,
    WAIT,
    Experience,
    Learner,
    Memory,
    PlanTable,
)
from lacuna.agent.models.evidence import note_outcome
from lacuna.agent.models.factored_model import value_row
from lacuna.agent.models.looking import MOST_GAMMA, note_unsure, pairs_together
from lacuna.agent.models.successors import expand
from lacuna.agent.qlearning import best_value
from lacuna.kernels.codes import pack, unpack, value_in
from lacuna.kernels.compiled import inner
from lacuna.kernels.counts import add
from lacuna.kernels.space import Layout

_LEAST_PRODUCT = 0.003
_PATIENCE, _IMPATIENCE = 3, 0.1
_LASTING_DOUBT = 0.1
_CALM = 1e-5
"""A value is queued if it moved by more than this times the largest reward."""


@inner
def credit(experience: Experience, memory: Memory, planner: PlanTable) -> None:
    """Take in a reward: sums for every pathway's step, what was tried, the highest reward."""
    action, reward, K = experience.action, experience.reward, memory.S.shape[0]
    levels, taken, arrived, ahead = planner.levels, planner.taken, planner.arrived, planner.ahead
    planner.at[ENDINGS] += 1 if experience.terminated else 0
    planner.at[WAIT] = 0 if experience.terminated else planner.at[WAIT] + 1
    levels[HIGHEST] = max(levels[HIGHEST], reward)
    levels[LARGEST] = max(levels[LARGEST], abs(reward))
    planner.at[CREDITED] += 1
    ending, c = 1.0 if experience.terminated else 0.0, note_outcome(experience, planner.outcomes, planner.at[OUTCOMES])
    planner.at[OUTCOMES] += 1 if c == planner.at[OUTCOMES] else 0
    visit_all(memory, planner)
    for k in range(K):
        s, x = memory.S[k], memory.S_next[k]
        taken[s, action, 0] += reward / K
        taken[s, action, 1] += 1.0 / K
        taken[s, action, 2] += ending / K
        arrived[x, 0] += reward / K
        arrived[x, 1] += 1.0 / K
        arrived[x, 2] += ending / K
        if c >= 0:
            planner.told[x, c] += 1.0 / K
        planner.tally[s] += 1
    for k in range(K):
        s, x = memory.S[k], memory.S_next[k]
        ahead[x, 1], ahead[x, 2], ahead[x, 3] = 1.0, arrived[x, 0] / arrived[x, 1], arrived[x, 2] / arrived[x, 1]
        # Once for each state: the others find a tally of 0.
        share = planner.tally[s] / K
        planner.tried[s, action] += share * share
        planner.tally[s] = 0


@inner
def visit_all(memory: Memory, planner: PlanTable) -> None:
    """Enter the states that pathways have left for the first time."""
    for k in range(memory.S.shape[0]):
        if not planner.left[memory.S[k]]:
            visit(memory.S[k], memory, planner)


@inner
def visit(s: int, memory: Memory, planner: PlanTable) -> None:
    """Enter a state that a pathway has left for the first time: everything in it may still be as good as O."""
    planner.left[s] = True
    planner.visited[planner.at[VISITED]] = s
    planner.at[VISITED] += 1
    memory.Q[s, :] = planner.levels[OPTIMISTIC]
    planner.ahead[s, 0] = planner.levels[OPTIMISTIC]


@inner
def count_agreed(experience: Experience, learner: Learner, planner: PlanTable) -> None:
    """Count the transition if both states were complete or all pathways agree on them; update the agreement.

    A step may be taught before its reward is known, so it enters the states that were left as well.
    """
    visit_all(learner.memory, planner)
    memory, A = learner.memory, learner.memory.Q.shape[1]
    agreed = True
    for k in range(1, memory.S.shape[0]):
        agreed = agreed and memory.S[k] == memory.S[0] and memory.S_next[k] == memory.S_next[0]
    # At complete states all pathways agree.
    if agreed:
        row = memory.S[0] * A + experience.action
        before, _ = add(row, memory.C_next[0], 1, ANYWHERE, learner.counts)
        if before == 0:
            add(memory.S_next[0], row, 1, ANYWHERE, planner.leads)
    pairs = pairs_together(memory.S_next, planner.tally)
    note_agreement(pairs, memory, planner)
    if learner.rules.look > 0:
        note_unsure(experience, pairs, memory, planner)


@inner
def note_agreement(pairs: int, memory: Memory, planner: PlanTable) -> None:
    """Move the mean agreement on by that of the next states: Σ over states of (share of the pathways in it)²."""
    K = memory.S_next.shape[0]
    planner.at[STEPS] += 1
    agreement = pairs / (K * K)
    planner.levels[AGREEMENT] += (agreement - planner.levels[AGREEMENT]) / min(planner.at[STEPS] + 1, 1000)


@inner
def plan_ahead(action: int, learner: Learner, planner: PlanTable) -> None:
    """Back up what the step has changed, then as many rows as the budget has."""
    memory, at, levels, A = learner.memory, planner.at, planner.levels, learner.memory.Q.shape[1]
    c, leads = levels[AGREEMENT], planner.leads
    levels[OPTIMISTIC] = (0.1 + 0.9 * c * c) * max(levels[HIGHEST], levels[PEAK])
    levels[IMPATIENCE] = impatience(planner)
    own, urgent, left = 0, learner.rules.budget // 2, learner.rules.budget
    while True:
        if own < memory.S.shape[0]:
            s, a = memory.S[own], action
            own += 1
            if is_repeated(own - 1, memory):
                continue
        elif urgent > 0 and at[OPEN] >= 0:
            i = leads.head[at[OPEN]]
            if at[ENTRY] >= leads.length[i]:
                at[OPEN] = -1
                continue
            key = leads.code[leads.start[i] + np.uint64(at[ENTRY])]
            s, a = key // A, key % A
            at[ENTRY] += 1
            urgent -= 1
            left -= 1
        elif urgent > 0 and at[QUEUED] > 0:
            at[OPEN], at[ENTRY] = take_most_urgent(planner), 0
            continue
        elif left > 0:
            if at[CURSOR] >= at[VISITED] * A:
                at[CURSOR] = 0
                levels[PEAK], levels[RISING] = levels[RISING], 0.0
            s, a = planner.visited[at[CURSOR] // A], at[CURSOR] % A
            levels[RISING] = max(levels[RISING], planner.ahead[s, 0])
            at[CURSOR] += 1
            left -= 1
        else:
            break
        memory.Q[s, a] = backed_up(s, a, learner, planner)
        value = best_value(memory.Q, s)
        moved = abs(value - planner.ahead[s, 0])
        planner.ahead[s, 0] = value
        if moved > _CALM * levels[LARGEST]:
            queue_up(s, moved, planner)


@inner
def impatience(planner: PlanTable) -> float:
    """Probability of a uniform action: above 0 before the first ending, and if an episode takes unusually long."""
    wait, endings = planner.at[WAIT], planner.at[ENDINGS]
    if endings == 0:
        t = wait + 1.0
        hopeless = min(t / 1e5, 10.0 / sqrt(t)) if planner.levels[HIGHEST] == 0 else 0.0
        return min(_IMPATIENCE, max(1.0 / sqrt(t), hopeless))
    return _IMPATIENCE if wait * endings > _PATIENCE * (planner.at[CREDITED] - wait) else 0.0


@inner
def is_repeated(k: int, memory: Memory) -> bool:
    """Whether a pathway before number `k` was in the same state."""
    found = False
    for i in range(k):
        found |= memory.S[i] == memory.S[k]
    return bool(found)


@inner
def backed_up(s: int, a: int, learner: Learner, planner: PlanTable) -> float:
    """Q(s, a) by an expected backup on the model."""
    rules, layout, counts, model = learner.rules, learner.layout, learner.counts, planner.model
    ahead, optimistic = planner.ahead, planner.levels[OPTIMISTIC]
    i = counts.head[s * learner.memory.Q.shape[1] + a]
    n = counts.total[i]
    code = pack(s, layout)
    # V and goes_on are Σ T (1 - ē) V and Σ T (1 - ē); r, t and k as above.
    V, goes_on, r, t, k = 0.0, 0.0, planner.taken[s, a, 0], planner.taken[s, a, 2], 0.0
    product = rules.kappa / (n + rules.kappa)
    each = 1.0 / (n + rules.kappa)
    if product < _LEAST_PRODUCT:
        each = 1.0 / n
    else:
        for e in range(expand(code, a, model, layout)):
            x, T = model.successor[e], product * model.weight[e]
            on = T * (1.0 - ahead[x, 3])
            goes_on += on
            V += on * (ahead[x, 0] if planner.left[x] else optimistic)
            k += T * ahead[x, 1]
            r += T * ahead[x, 2]
            t += T * ahead[x, 3]
    for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
        x, T = unpack(counts.code[entry], layout), each * counts.n[entry]
        on = T * (1.0 - ahead[x, 3])
        goes_on += on
        V += on * (ahead[x, 0] if planner.left[x] else optimistic)
        k += T * ahead[x, 1]
        r += T * ahead[x, 2]
        t += T * ahead[x, 3]
    weight = planner.taken[s, a, 1] + k
    doubt = doubt_about(s, a, code, layout, planner)
    if doubt == 1.0 or weight == 0.0:
        return float(optimistic)
    q = r / weight
    if goes_on > 0:
        q += min(rules.gamma, MOST_GAMMA) * (1.0 - t / weight) * (V / goes_on)
    return float((1.0 - doubt) * q + doubt * max(optimistic, q))


@inner
def doubt_about(s: int, a: int, code: int, layout: Layout, planner: PlanTable) -> float:
    """ω: how little is known about taking `a` in `s`."""
    tried = planner.tried[s, a]
    rest = _LASTING_DOUBT / (1.0 + tried)
    if tried >= 1.0:
        return float(rest)
    doubt = 1.0 - tried
    counts = planner.model.counts
    fewest = -1
    for j in range(layout.sizes.shape[0]):
        n = counts.total[counts.head[value_row(j, value_in(code, j, layout), a, planner.model, layout)]]
        fewest = n if fewest < 0 else min(fewest, n)
    known = fewest / planner.model.unit
    return float(max(min(doubt, 1.0 / (known + 1.0)), rest))


@inner
def queue_up(s: int, moved: float, planner: PlanTable) -> None:
    """Put a state into the heap, or move it up if its value moved by more than before."""
    queue, place, priority = planner.queue, planner.place, planner.priority
    i = place[s] - 1
    if i < 0:
        i = planner.at[QUEUED]
        planner.at[QUEUED] += 1
        priority[s] = moved
    else:
        priority[s] = max(priority[s], moved)
    while i > 0:
        above = queue[(i - 1) // 2]
        if priority[above] >= priority[s]:
            break
        queue[i], place[above] = above, i + 1
        i = (i - 1) // 2
    queue[i], place[s] = s, i + 1


@inner
def take_most_urgent(planner: PlanTable) -> int:
    """Take the state whose value moved the most out of the heap."""
    queue, place, priority = planner.queue, planner.place, planner.priority
    s = queue[0]
    place[s] = 0
    planner.at[QUEUED] -= 1
    n = planner.at[QUEUED]
    if n > 0:
        last, i = queue[n], 0
        while 2 * i + 1 < n:
            child = 2 * i + 1
            if child + 1 < n and priority[queue[child + 1]] > priority[queue[child]]:
                child += 1
            if priority[queue[child]] <= priority[last]:
                break
            queue[i], place[queue[child]] = queue[child], i + 1
            i = child
        queue[i], place[last] = last, i + 1
    return int(s)
