"""The component model of a planner: each component has its own transition model, with a chain of backoffs.

Counts of component j, its values u before and v after an action a, and the value w of its parent before:

    n_jp(u, w, a, v)    C_j(u, a, v)    C_j(u, v)    C_j(v)

Each level is smoothed towards the next:

    M_j(v)         = (C_j(v) + .001) / (Σ_v C_j(v) + .001 size_j)
    B_j(v | u)     = (C_j(u, v) + ρ₂ M_j(v)) / (Σ_v C_j(u, v) + ρ₂)
    P_j(v | u, a)  = (C_j(u, a, v) + ρ B_j(v | u)) / (Σ_v C_j(u, a, v) + ρ)
    P_j(v | s, a)  = (n_jp(u, w, a, v) + m P_j(v | u, a)) / (Σ_v n_jp(u, w, a, v) + m)        if j has the parent p

**Available cases.** A transition counts 1 if both values were observed. If only v was, it counts for each u that
pathways hold, by the square of their share. C_j(v) counts every value observed.

**Parents.** Every observed transition is predicted with each candidate parent and without, then counted. The parent of
j is the p of the largest likelihood ratio, if that exceeds e^10; a ratio never falls below e^-50.

Counts are whole units of 1/K², so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import ANYWHERE, MOST_SUCCESSORS, FactoredTable, Memory, ParentSearch
from lacuna.agent.models.component_counts import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    NO_PARENT,
    choose_parent,
    counts_by_name,
    parents_by_name,
    units_of,
)
from lacuna.agent.models.imputation import BELOW_ONE, draw_counted
from lacuna.agent.savefile import Arrays, take, take_counts
from lacuna.kernels.codes import Observed, value_in
from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.counts import Counts, FirstRoom, add, count_bytes
from lacuna.kernels.space import Layout, Space

RHO, RHO_2, FLOOR, M = 0.1, 1.0, 0.001, 0.3
_CLEARLY, _LEAST_RATIO = exp(10.0), exp(-50.0)
_MOST_UNITS = 2**62


class FactoredModel:
    """The growing memory around a `FactoredTable`.

    Parameters
    ----------
    space, n_actions
        Whose components.
    K
        Number of pathways.
    first
        Room of the counts before the first transition.
    """

    def __init__(self, space: Space, n_actions: int, K: int, first: FirstRoom | None = None) -> None:
        self.space, self.K = space, K
        d, values = space.d, sum(space.sizes)
        self.counts = Counts(Space((_rows(space),)), n_actions, 1 / K**2, first)
        sizes = np.array(space.sizes, dtype=np.int64)
        pairs = np.outer(sizes, sizes)
        np.fill_diagonal(pairs, 0)
        start = 2 * values + d + np.cumsum(pairs).reshape(d, d) - pairs
        ratio = np.ones((d, d))
        np.fill_diagonal(ratio, _CLEARLY)
        self.search = ParentSearch(start, ratio, np.full(d, NO_PARENT, dtype=np.int64), np.zeros(0, dtype=np.int64))
        self._scratch = (
            np.zeros((d, MOST_SUCCESSORS), dtype=np.int64), np.zeros((d, MOST_SUCCESSORS)),
            np.zeros(d, dtype=np.int64), np.zeros(MOST_SUCCESSORS, dtype=np.int64), np.zeros(MOST_SUCCESSORS),
            np.zeros(max(space.sizes)),
        )  # fmt: skip

    @staticmethod
    def nbytes(space: Space, n_actions: int) -> int:
        """Memory that an empty model may take."""
        scratch = 2 * MOST_SUCCESSORS * (space.d + 1) + space.d + max(space.sizes)
        return count_bytes(_rows(space), n_actions) + 8 * (2 * space.d**2 + space.d + scratch)

    @property
    def table(self) -> FactoredTable:
        """The model as kernels see it."""
        values = sum(self.space.sizes)
        return FactoredTable(
            self.counts.table, self.search, values, 2 * values, self.K**2, self.counts.n_actions, *self._scratch
        )

    def make_room(self) -> None:
        """Make sure that what one step may count fits."""
        self.counts.need(most_counts(self.space.d, self.K))

    def parent_of(self) -> Mapping[str, str | None]:
        """The parent of each component by name; None where there is none."""
        return parents_by_name(self.space, self.search)

    def of_components(self) -> dict[tuple[str, int, int, int], float]:
        """The counts ``(component, value, action, next value) -> count``."""
        return counts_by_name(self.space, self.counts)

    def to_arrays(self) -> Arrays:
        """The complete state as arrays, for a file."""
        return self.counts.to_arrays("factored_") | {"parent_ratio": self.search.weight}

    def from_arrays(self, arrays: Arrays) -> None:
        """Fill an empty model from the arrays of an untrusted file."""
        rows, search = take_counts(arrays, "factored_"), self.search
        self.counts.from_arrays(rows, most_units=_MOST_UNITS)
        if (rows["codes"] >= self._sizes_of_rows(rows)).any():
            raise ValueError("the component counts name a value outside its component")
        row, action = np.divmod(rows["keys"], self.counts.n_actions)
        values = sum(self.space.sizes)
        if ((action > 0) & (row >= values) & (row < 2 * values + self.space.d)).any():
            raise ValueError("the component counts name an action where they are about all of them")
        search.weight[:] = take(arrays, "parent_ratio", "float64", search.weight.shape, LEAST_WEIGHT, MOST_WEIGHT)
        for j in range(self.space.d):
            choose_parent(j, search)

    def _sizes_of_rows(self, rows: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """For each entry of the counts, how many values its component has."""
        layout, d, values = self.space.layout, self.space.d, sum(self.space.sizes)
        row = np.repeat(rows["keys"], rows["lengths"]) // self.counts.n_actions
        of_value = np.searchsorted(layout.offsets, row % values, side="right") - 1
        of_pair = (np.searchsorted(self.search.first.ravel(), row, side="right") - 1) // d
        j = np.where(row < 2 * values, of_value, np.where(row < 2 * values + d, row - 2 * values, of_pair))
        return layout.sizes[j]


def _rows(space: Space) -> int:
    """How many rows there are for each action."""
    values = sum(space.sizes)
    return 2 * values + space.d + values**2 - sum(size**2 for size in space.sizes)


@kernel
def most_counts(d: int, K: int) -> int:
    """The most transitions that one step can add to the component counts."""
    return d * (max(2 * K, d + 1) + 1)


@inner
def plain_row(j: int, value: int, model: FactoredTable, layout: Layout) -> int:
    """Row of the counts for component `j` at `value`, over all actions."""
    return int((model.first_plain + layout.offsets[j] + value) * model.n_actions)


@inner
def seen_row(j: int, model: FactoredTable) -> int:
    """Row of the counts for the values of component `j` on arrival."""
    return int((model.first_seen + j) * model.n_actions)


@inner
def value_row(j: int, value: int, action: int, model: FactoredTable, layout: Layout) -> int:
    """Row of the counts for component `j` at `value` under an action."""
    return int((layout.offsets[j] + value) * model.n_actions + action)


@inner
def parent_row(j: int, code: int, action: int, model: FactoredTable, layout: Layout) -> int:
    """Row of the counts for component `j` and its parent as in the state with this code, under an action."""
    p = model.search.parent[j]
    pair = model.search.first[j, p] + value_in(code, j, layout) * layout.sizes[p] + value_in(code, p, layout)
    return int(pair * model.n_actions + action)


@inner
def value_probability(j: int, before: int, action: int, value: int, model: FactoredTable, layout: Layout) -> float:
    """P_j(value | before, action), without a parent."""
    unit, size = model.unit, layout.sizes[j]
    n, total = units_of(seen_row(j, model), value, model.counts)
    P = (n + FLOOR * unit) / (total + FLOOR * unit * size)
    n, total = units_of(plain_row(j, before, model, layout), value, model.counts)
    P = (n + RHO_2 * unit * P) / (total + RHO_2 * unit)
    n, total = units_of(value_row(j, before, action, model, layout), value, model.counts)
    return float((n + RHO * unit * P) / (total + RHO * unit))


@inner
def likelihood(code: int, action: int, observed: Observed, model: FactoredTable, layout: Layout) -> float:
    """∏ over the observed j of P_j(o_j | s, a), for a pathway in the state with this code."""
    f = 1.0
    for j in range(observed.values.shape[0]):
        value = observed.values[j]
        if value >= 0:
            P = value_probability(j, value_in(code, j, layout), action, value, model, layout)
            if model.search.parent[j] != NO_PARENT:
                n, total = units_of(parent_row(j, code, action, model, layout), value, model.counts)
                P = (n + M * model.unit * P) / (total + M * model.unit)
            f *= P
    return f


@inner
def draw_hidden(code: int, action: int, observed: Observed, u: float, model: FactoredTable, layout: Layout) -> int:
    """Code of a next state whose hidden components are drawn from P_j, given the code of the state left.

    A single number serves them all: it is the place in [0, 1) of one draw from their product.
    """
    drawn, rest, unit = observed.seen, min(u, BELOW_ONE), model.unit
    for j in range(observed.values.shape[0]):
        if observed.values[j] < 0:
            before, value, size = value_in(code, j, layout), -1, layout.sizes[j]
            if model.search.parent[j] != NO_PARENT:
                row = parent_row(j, code, action, model, layout)
                value, rest = draw_counted(row, M * unit, rest, model.counts)
            if value < 0:
                row = value_row(j, before, action, model, layout)
                value, rest = draw_counted(row, RHO * unit, rest, model.counts)
            if value < 0:
                value, rest = draw_counted(plain_row(j, before, model, layout), RHO_2 * unit, rest, model.counts)
            if value < 0:
                value, rest = draw_counted(seen_row(j, model), FLOOR * unit * size, rest, model.counts)
            if value < 0:
                value = min(int(rest * size), size - 1)
                rest = min(rest * size - value, BELOW_ONE)
            drawn |= value << layout.shifts[j]
    return drawn


@inner
def count_values(action: int, observed: Observed, memory: Memory, model: FactoredTable, layout: Layout) -> None:
    """Count the observed values after those observed before, or else after those that the pathways hold."""
    previous, unit = memory.previous, model.unit
    for j in range(observed.values.shape[0]):
        value = observed.values[j]
        if value < 0:
            continue
        if previous[j] >= 0:
            weigh_parents(j, action, value, previous, model, layout)
            add(value_row(j, previous[j], action, model, layout), value, unit, ANYWHERE, model.counts)
            add(plain_row(j, previous[j], model, layout), value, unit, ANYWHERE, model.counts)
        else:
            count_guesses(j, action, value, memory, model, layout)
        add(seen_row(j, model), value, unit, ANYWHERE, model.counts)


@inner
def weigh_parents(
    j: int, action: int, value: int, previous: NDArray[np.int64], model: FactoredTable, layout: Layout
) -> None:
    """Predict a value of component `j` with every other one that was seen before, then count it with each."""
    search, unit = model.search, model.unit
    P = value_probability(j, previous[j], action, value, model, layout)
    for p in range(previous.shape[0]):
        if p != j and previous[p] >= 0:
            pair = search.first[j, p] + previous[j] * layout.sizes[p] + previous[p]
            n, total = add(pair * model.n_actions + action, value, unit, ANYWHERE, model.counts)
            gain = (n / P + M * unit) / (total + M * unit)
            search.weight[j, p] = max(search.weight[j, p] * gain, _LEAST_RATIO)
    choose_parent(j, search)


@inner
def count_guesses(j: int, action: int, value: int, memory: Memory, model: FactoredTable, layout: Layout) -> None:
    """Count a value seen after each value that pathways hold, by the square of the share of those that do."""
    C, sums = memory.C, model.sums
    for k in range(C.shape[0]):
        sums[value_in(C[k], j, layout)] += 1.0
    for k in range(C.shape[0]):
        before = value_in(C[k], j, layout)
        units = int(sums[before]) ** 2
        if units > 0:
            add(value_row(j, before, action, model, layout), value, units, ANYWHERE, model.counts)
            add(plain_row(j, before, model, layout), value, units, ANYWHERE, model.counts)
            sums[before] = 0.0
