"""The states that an action may lead to by the component model alone, with their probabilities: ∏_j P_j(v_j | s, a).

For each component the values that matter are listed, 64 at most: of every level of the backoff (`factored_model`) the
64 most frequent, as far as their share of P_j exceeds .02 / size_j. What is left is scaled to 1. The product of the
lists has at most 64 states: while it has more, the longest list loses its least likely value.
"""

from __future__ import annotations

import numpy as np

from lacuna.agent.memory import MOST_SUCCESSORS, FactoredTable
from lacuna.agent.models.component_counts import NO_PARENT
from lacuna.agent.models.factored_model import FLOOR, RHO, RHO_2, M, parent_row, plain_row, seen_row, value_row
from lacuna.kernels.codes import value_in
from lacuna.kernels.compiled import inner, kernel, rare
from lacuna.kernels.space import Layout

_CUT = 0.02


@inner
def add_level(j: int, i: int, factor: float, least: float, model: FactoredTable) -> None:
    """Add ``factor · n`` to the sum of each value in row `i`, and list the values that are new, while there is room.

    Rows are sorted, so that after the first share below `least` there are only smaller ones.
    """
    counts, sums = model.counts, model.sums
    length = min(counts.length[i], np.uint64(MOST_SUCCESSORS))
    for entry in range(counts.start[i], counts.start[i] + length):
        v, share = counts.code[entry], factor * counts.n[entry]
        if share <= least:
            break
        if sums[v] == 0.0:
            if model.length[j] == MOST_SUCCESSORS:
                continue
            model.value[j, model.length[j]] = v
            model.length[j] += 1
        sums[v] += share


@inner
def add_backoffs(j: int, before: int, factor: float, least: float, model: FactoredTable, layout: Layout) -> None:
    """Add the levels below C_j(u, a, v), of which one transition would weigh `factor`, as long as they can matter."""
    counts, unit = model.counts, model.unit
    i = counts.head[plain_row(j, before, model, layout)]
    factor *= RHO * unit / (counts.total[i] + RHO_2 * unit)
    add_level(j, i, factor, least, model)
    if factor * (RHO_2 * unit) > least:
        i = counts.head[seen_row(j, model)]
        factor *= RHO_2 * unit / (counts.total[i] + FLOOR * unit * layout.sizes[j])
        add_level(j, i, factor, least, model)


@inner
def list_values(j: int, code: int, action: int, model: FactoredTable, layout: Layout) -> None:
    """List the values that component `j` may take after the state with this code, with their probabilities.

    P_j, written as one sum over the levels of the backoff. Shares of no more than `_CUT` / size_j are left out, and so
    are levels that have no more than that to share out.
    """
    counts, unit, before = model.counts, model.unit, value_in(code, j, layout)
    least, factor = _CUT / layout.sizes[j], 1.0
    model.length[j] = 0
    if model.search.parent[j] != NO_PARENT:
        i = counts.head[parent_row(j, code, action, model, layout)]
        factor /= counts.total[i] + M * unit
        add_level(j, i, factor, least, model)
        factor *= M * unit
    if factor > least:
        i = counts.head[value_row(j, before, action, model, layout)]
        factor /= counts.total[i] + RHO * unit
        add_level(j, i, factor, least, model)
        if factor * (RHO * unit) > least:
            add_backoffs(j, before, factor, least, model, layout)
    total_chance = 0.0
    for e in range(model.length[j]):
        v = model.value[j, e]
        model.chance[j, e] = model.sums[v]
        total_chance += model.sums[v]
        model.sums[v] = 0.0
    for e in range(model.length[j]):
        model.chance[j, e] /= total_chance


@inner
def n_products(model: FactoredTable) -> float:
    """How many states the product of the lists has."""
    states = 1.0
    for j in range(model.length.shape[0]):
        states *= model.length[j]
    return states


@rare
def shorten(model: FactoredTable) -> None:
    """Drop the least likely value of the longest list until the product has room."""
    length, chance = model.length, model.chance
    while n_products(model) > MOST_SUCCESSORS:
        longest = 0
        for j in range(1, length.shape[0]):
            longest = j if length[j] > length[longest] else longest
        last, least = length[longest] - 1, 0
        for i in range(1, last + 1):
            least = i if chance[longest, i] < chance[longest, least] else least
        rest = 1.0 - chance[longest, least]
        chance[longest, least] = chance[longest, last]
        model.value[longest, least] = model.value[longest, last]
        for i in range(last):
            chance[longest, i] /= rest
        length[longest] = last


@kernel
def expand(code: int, action: int, model: FactoredTable, layout: Layout) -> int:
    """Fill `successor` and `weight` with the product of the components; returns how many states it has.

    None, as long as there is a component of which nothing was seen.
    """
    for j in range(layout.sizes.shape[0]):
        list_values(j, code, action, model, layout)
    n_states = n_products(model)
    # On the way to no state at all, there may be more than there is room for.
    if n_states == 0:
        return 0
    if n_states > MOST_SUCCESSORS:
        shorten(model)
    successor, weight = model.successor, model.weight
    successor[0], weight[0], n = 0, 1.0, 1
    for j in range(layout.sizes.shape[0]):
        for i in range(model.length[j] - 1, -1, -1):
            step, P = model.value[j, i] * layout.strides[j], model.chance[j, i]
            for e in range(n):
                successor[i * n + e], weight[i * n + e] = successor[e] + step, weight[e] * P
        n *= model.length[j]
    return n
