"""Chained equations: hidden components of the next state drawn one at a time, each given all the others.

For a pathway in state s after action a, n(s') are the joint counts of (s, a). Each hidden component j starts from its
marginal, and is then redrawn `cycles` times, in the order of components:

    start:       P(s'_j = v) = (Σ n(s') over the s' with s'_j = v) / Σ n(s')
    each cycle:  P(s'_j = v | s'_-j) = n(s'_-j, v) / Σ_v n(s'_-j, v)

where s'_-j are all components but j: the observed values, and the current draws of the hidden ones. The counts of j
given the others are the entries of the row (s, a) that agree with s'_-j, so they need no table of their own. Where
nothing was counted, the draw is uniform over the values of j.

The first hidden component needs no start: the first cycle redraws it before anything reads it. With one hidden
component every cycle draws from the same distribution as `draw_successors`, which is called instead.
"""

from __future__ import annotations

import numpy as np

from lacuna.agent.memory import ANYWHERE, Learner, Memory
from lacuna.agent.models.imputation import pick_agreeing
from lacuna.kernels.codes import Observed, unpack, value_in
from lacuna.kernels.compiled import inner, rare
from lacuna.kernels.counts import CountTable
from lacuna.kernels.streams import Uniforms, draw


def most_chained(cycles: int, d: int) -> int:
    """The most random numbers that one pathway takes in a step."""
    return d - 1 + cycles * d if d > 1 else 1


@inner
def hides_several(observed: Observed) -> bool:
    """Whether more than one component is hidden."""
    hidden = 0
    for j in range(observed.values.shape[0]):
        hidden += 1 if observed.values[j] < 0 else 0
    return hidden > 1


@rare
def draw_chained(action: int, observed: Observed, learner: Learner, uniforms: Uniforms) -> None:
    """Draw a next state for each pathway: its row of Q and its code."""
    memory, counts = learner.memory, learner.counts
    i = np.uint32(0)
    for k in range(memory.S.shape[0]):
        before, i = i, counts.head[(memory.S[k] + memory.to_counts[k]) * memory.Q.shape[1] + action]
        # Neighbours often share a state, and so a row.
        if i != before:
            spread(before, 0, memory, counts)
            spread(i, 1, memory, counts)
        code = start_chain(i, observed, learner, uniforms)
        for _ in range(learner.rules.cycles):
            for j in range(observed.values.shape[0]):
                if observed.values[j] < 0:
                    code = draw_given_others(i, j, code, learner, draw(uniforms))
        memory.C_next[k], memory.entries[k] = code, ANYWHERE
        memory.S_next[k] = memory.first[k] + unpack(code, learner.layout)
    spread(i, 0, memory, counts)


@inner
def spread(i: np.uint32, times: int, memory: Memory, counts: CountTable) -> None:
    """In a small space, copy row `i` into an array indexed by code, for fast lookup; `times = 0` clears it."""
    if memory.of_code.shape[0] > 0:
        for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
            memory.of_code[counts.code[entry]] = times * counts.n[entry]


@inner
def start_chain(i: np.uint32, observed: Observed, learner: Learner, uniforms: Uniforms) -> int:
    """Code of what was seen, with every hidden component but the first drawn from its marginal in row `i`."""
    counts, layout = learner.counts, learner.layout
    first, end = counts.start[i], counts.start[i] + counts.length[i]
    everything = Observed(observed.values, observed.complete, 0, 0, 0)
    code, is_first = observed.seen, True
    for j in range(observed.values.shape[0]):
        if observed.values[j] < 0 and is_first:
            is_first = False
        elif observed.values[j] < 0:
            u = draw(uniforms)
            if counts.total[i] > 0:
                entry = pick_agreeing(first, end, everything, int(u * counts.total[i]), counts)
                code |= counts.code[entry] & layout.masks[j]
            else:
                code |= int(u * layout.sizes[j]) << layout.shifts[j]
    return code


@inner
def draw_given_others(i: np.uint32, j: int, code: int, learner: Learner, u: float) -> int:
    """Redraw component `j` of a state from row `i`, given all others."""
    layout, of_value = learner.layout, learner.memory.of_value
    others, size = code & ~layout.masks[j], layout.sizes[j]
    mass = count_given_others(i, j, others, learner)
    value = int(u * size)
    if mass > 0:
        value, rank = -1, int(u * mass)
        while rank >= 0:
            value += 1
            rank -= of_value[value]
    return int(others | value << layout.shifts[j])


@inner
def count_given_others(i: np.uint32, j: int, others: int, learner: Learner) -> int:
    """Fill ``of_value`` with the counts in row `i` of each value of component `j` together with `others`; their sum."""
    layout, memory, counts = learner.layout, learner.memory, learner.counts
    of_value, mass = memory.of_value, 0
    if memory.of_code.shape[0] > 0:
        for value in range(layout.sizes[j]):
            of_value[value] = memory.of_code[others | value << layout.shifts[j]]
            mass += of_value[value]
        return mass
    for value in range(layout.sizes[j]):
        of_value[value] = 0
    for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
        if counts.code[entry] & ~layout.masks[j] == others:
            of_value[value_in(counts.code[entry], j, layout)] = counts.n[entry]
            mass += counts.n[entry]
    return mass
