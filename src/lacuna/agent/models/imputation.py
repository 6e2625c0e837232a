"""Draw a complete next state from the model, given what was seen of it.

For a pathway in state s, let J be the total joint count of (s, a) → s' over the states s' that agree with the
observation o. Let f be the probability of o under the component counts n_j:

    f = ∏_{j observed} P_j(o_j | s, a)        P_j(v | s, a) = (n_j(s_j, a, v) + λ) / (Σ_v n_j(s_j, a, v) + λ size_j)

With probability J/(J + κf), s' is drawn from the joint counts that agree, in proportion to them. Otherwise each hidden
component j is drawn from P_j. Without component counts, κ = 0. If J = 0 and the component counts cannot be used (κ = 0
or f = 0), s' is uniform over the states that agree.

A component j with a parent p counts n_jp(s_j, s_p, a, v) as well, and P_j is (n_jp + m P_j) / (Σ n_jp + m), m being
the setting ``parents``.
"""

from __future__ import annotations

import numpy as np

from lacuna.agent.memory import Learner
from lacuna.agent.models.carry import guess_uniformly
from lacuna.agent.models.component_counts import NO_PARENT, component_row, pair_row, smoothed, units_of
from lacuna.kernels.codes import Observed, unpack, value_in
from lacuna.kernels.compiled import inner
from lacuna.kernels.counts import CountTable
from lacuna.kernels.streams import Uniforms, draw_many

BELOW_ONE = 1.0 - 2.0**-53
"""The largest number below 1."""
_UNKNOWN = -1.0


@inner
def agreeing_mass(first: np.uint64, end: np.uint64, observed: Observed, counts: CountTable) -> int:
    """Units on the entries ``first : end`` that agree with what was seen."""
    total = 0
    for entry in range(first, end):
        total += counts.n[entry] if counts.code[entry] & observed.bits == observed.seen else 0
    return total


@inner
def pick_agreeing(first: np.uint64, end: np.uint64, observed: Observed, rank: int, counts: CountTable) -> np.uint64:
    """Entry that holds unit number `rank` of the agreeing ones."""
    for entry in range(first, end):
        # if agrees: rank -= n. Without the branch, which no processor can predict; only the last step surprises it.
        rank -= counts.n[entry] if counts.code[entry] & observed.bits == observed.seen else 0
        if rank < 0:
            return np.uint64(entry)
    return first  # never reached: rank is below the mass


@inner
def draw_successors(action: int, observed: Observed, learner: Learner, uniforms: Uniforms) -> None:
    """Draw a next state for each pathway: its row of Q, its code, and its place in the counts.

    As f is at most 1, at least J/(J + κ) of the draws come from the joint counts; f is worked out for the others only.
    """
    rules, layout, memory, counts = learner.rules, learner.layout, learner.memory, learner.counts
    S, C, firsts, ends = memory.S, memory.C, memory.firsts, memory.ends
    K, A, kappa = S.shape[0], memory.Q.shape[1], rules.kappa
    # All rows are looked up before any is read: in a large world they come from far memory, and then arrive together.
    for k in range(K):
        i = counts.head[(S[k] + memory.to_counts[k]) * A + action]
        firsts[k] = counts.start[i]
        ends[k] = counts.start[i] + counts.length[i]
    J, f = 0, _UNKNOWN
    at = np.uint64(draw_many(K, uniforms))
    for k in range(K):
        # Neighbours often share a state, and a model: then they share the masses as well.
        if k == 0 or S[k] + memory.to_counts[k] != S[k - 1] + memory.to_counts[k - 1]:
            J, f = agreeing_mass(firsts[k], ends[k], observed, counts), _UNKNOWN
        u = uniforms.block[at + np.uint64(k)]
        rank = u * (J + kappa)
        back, rest = 0.0, 0.0
        if rank >= J and kappa > 0:
            if f == _UNKNOWN:
                # Where J is 0, any f > 0 gives the same draw, and with smoothing f is above 0.
                f = 1.0
                if J > 0 or rules.smoothing == 0:
                    f = likelihood(C[k], action, observed, learner)
            rest = min((rank - J) / kappa, BELOW_ONE)
            if J > 0:
                # The joint counts get back as many of these draws as bring them to J/(J + κf).
                back = J * (1.0 - f) / (J + kappa * f)
                rank = min(rest / back * J, J - 1) if rest < back else rank
        if rank < J:
            entry = pick_agreeing(firsts[k], ends[k], observed, int(rank), counts)
            memory.entries[k] = entry
            code = counts.code[entry]
        elif kappa > 0 and f > 0:
            rest = (rest - back) / (1.0 - back)
            code = draw_components(C[k], action, observed, rest, learner)
        else:
            code = guess_uniformly(observed, layout, u)
        memory.C_next[k] = code
        memory.S_next[k] = memory.first[k] + unpack(code, layout)


@inner
def likelihood(code: int, action: int, observed: Observed, learner: Learner) -> float:
    """∏ over the observed j of P_j(o_j | s, a), for a pathway in the state with this code."""
    f = 1.0
    for j in range(observed.values.shape[0]):
        if observed.values[j] >= 0:
            f *= component_probability(j, code, action, observed.values[j], learner)
    return f


@inner
def component_probability(j: int, code: int, action: int, value: int, learner: Learner) -> float:
    """P_j(value | s, a), with the parent of j if it has one."""
    rules, layout, components = learner.rules, learner.layout, learner.components
    before = value_in(code, j, layout)
    n, total = units_of(component_row(j, before, action, learner), value, components.counts)
    P = smoothed(n, total, layout.sizes[j], rules.smoothing)
    if rules.parents > 0 and components.search.parent[j] != NO_PARENT:
        p = components.search.parent[j]
        row = pair_row(j, p, before, value_in(code, p, layout), action, learner)
        n, total = units_of(row, value, components.counts)
        P = (n + rules.parents * P) / (total + rules.parents)
    return P


@inner
def draw_counted(row: int, more: float, u: float, counts: CountTable) -> tuple[int, float]:
    """A value in proportion to its units, or -1 in proportion to `more`; and what is left of the number `u`.

    What is left is uniform again, given the value.
    """
    i = counts.head[row]
    x = u * (counts.total[i] + more)
    for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
        n = counts.n[entry]
        if x < n:
            return counts.code[entry], x / n
        x -= n
    return -1, min(x / more, BELOW_ONE) if more > 0 else u


@inner
def draw_components(code: int, action: int, observed: Observed, u: float, learner: Learner) -> int:
    """Code of a next state whose hidden components are drawn one by one, given the code of the state left.

    A single number serves them all: it is the place in [0, 1) of one draw from their product.
    """
    rules, layout, components = learner.rules, learner.layout, learner.components
    drawn = observed.seen
    rest = min(u, BELOW_ONE)
    for j in range(observed.values.shape[0]):
        if observed.values[j] < 0:
            before, value, size = value_in(code, j, layout), -1, layout.sizes[j]
            if rules.parents > 0 and components.search.parent[j] != NO_PARENT:
                p = components.search.parent[j]
                row = pair_row(j, p, before, value_in(code, p, layout), action, learner)
                value, rest = draw_counted(row, rules.parents, rest, components.counts)
            if value < 0:
                row = component_row(j, before, action, learner)
                value, rest = draw_counted(row, rules.smoothing * size, rest, components.counts)
            if value < 0:
                value = min(int(rest * size), size - 1)
                rest = min(rest * size - value, BELOW_ONE)
            drawn |= value << layout.shifts[j]
    return drawn
