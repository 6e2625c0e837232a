"""Counts of single components, learned from every pair of values that was observed (available cases).

    n_j(u, a, v)        transitions of component j from u to v under action a, both values observed
    n_jp(u, w, a, v)    the same, with component p at w before

Where complete states are rare, the joint counts hold little data. Single components are then known much better, because
n_j counts even if other components were hidden.

**Parents.** A component may depend on another one: in Taxi, walls make the next column depend on the row. For every
pair (j, p), the likelihood ratio of the transitions of j, with p to without p, is kept as a product over tested
transitions:

    weight_jp *= ((n_jp / P_j) + m) / (Σ n_jp + m)        m: the setting ``parents``

each transition being predicted before it is counted. Component p becomes the parent of j when weight_jp exceeds e^10
and is the largest.

**Which transitions test parents.** There are d(d - 1) pairs, and most are never parents, so tests are rationed. For
every four hidden values of a component, one observed value tests its candidate parents. Which transitions are tested is
fixed before their outcome is seen; otherwise the test is biased.

**Late counting.** Until a value is first hidden, the joint counts contain all the information. So in a small space,
component counting starts at the first hidden value. With parents, repeats of one complete transition are added in
batches, when its count reaches a power of two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import exp
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import ANYWHERE, ComponentTable, Learner, ParentSearch
from lacuna.agent.savefile import Arrays, take, take_counts
from lacuna.kernels.codes import Observed, pack, value_in
from lacuna.kernels.compiled import inner, kernel, rare
from lacuna.kernels.counts import MAX_COUNT, Counts, CountTable, FirstRoom, add, count_bytes
from lacuna.kernels.space import Layout, Space

NO_PARENT = -1

_CLEARLY = exp(10.0)
"""How many times likelier a parent must have made what was seen."""

_PRICE = 4
"""Hidden values of a component for each observed one that tests its candidate parents."""

_MOST_WAITING = 2000
"""Spaces whose components could need more counts than this count them from the start: catching up needs room."""

# Weights are products over all tests, kept within bounds by powers of two, which round nothing.
LEAST_WEIGHT, MOST_WEIGHT = 2.0**-1000, 2.0**600


class ComponentCounts:
    """The component counts of an agent and its search for parents: the growing memory around a `ComponentTable`.

    Parameters
    ----------
    space, n_actions
        Whose components.
    parents
        Whether components may have parents.
    first
        Room of the counts before the first transition.
    """

    def __init__(self, space: Space, n_actions: int, *, parents: bool, first: FirstRoom | None = None) -> None:
        self.space = space
        # The values of all components in one line, as if they were states; then the rows of the search.
        self.counts = Counts(Space((_rows(space, parents=parents),)), n_actions, first=first)
        self.search = _blank_search(space.sizes if parents else (), sum(space.sizes))
        entries = n_actions * sum(size**2 for size in space.sizes)
        self.backlog = entries if entries <= _MOST_WAITING else 0

    @staticmethod
    def nbytes(space: Space, n_actions: int, *, parents: bool) -> int:
        """Memory that empty component counts may take."""
        search = 16 * space.d * (space.d + 1) if parents else 0
        return count_bytes(_rows(space, parents=parents), n_actions) + search

    @property
    def table(self) -> ComponentTable:
        """The counts as kernels see them."""
        return ComponentTable(self.counts.table, self.search, self.backlog)

    @property
    def has_parents(self) -> bool:
        """Whether components may have parents."""
        return self.search.parent.size > 0

    def make_room(self) -> None:
        """Make sure that what one step may count fits."""
        self.counts.need(most_adds(self.space.d, self.table))

    def parent_of(self) -> Mapping[str, str | None]:
        """The parent of each component by name; None where there is none."""
        return parents_by_name(self.space, self.search)

    def of_components(self) -> dict[tuple[str, int, int, int], float]:
        """The counts ``(component, value, action, next value) -> count``, without transitions that still wait."""
        return counts_by_name(self.space, self.counts)

    def waiting(self, n: int) -> int:
        """How many of `n` equal complete transitions have not been passed on to the component counts yet."""
        if is_waiting(self.table):
            return n
        return not_passed_on(n) if self.has_parents else 0

    def to_arrays(self) -> Arrays:
        """The complete state as arrays, for a file."""
        rows = self.counts.to_arrays("component_")
        return rows | {"parent_weight": self.search.weight, "parent_due": self.search.due}

    def from_arrays(self, arrays: Arrays) -> None:
        """Fill empty counts from the arrays of an untrusted file."""
        rows, search = take_counts(arrays, "component_"), self.search
        self.counts.from_arrays(rows)
        self._check(rows)
        search.weight[:] = take(arrays, "parent_weight", "float64", search.weight.shape, LEAST_WEIGHT, MOST_WEIGHT)
        search.due[:] = take(arrays, "parent_due", "int64", search.due.shape, 0, MAX_COUNT)
        for j in range(search.parent.size):
            choose_parent(j, search)

    def _check(self, rows: dict[str, NDArray[np.int64]]) -> None:
        """Refuse counts of values that do not exist, or that disagree with each other."""
        layout, first, A, d = self.space.layout, self.search.first, self.counts.n_actions, self.space.d
        row, action = np.divmod(np.repeat(rows["keys"], rows["lengths"]), A)
        codes, units = rows["codes"], rows["units"]
        tested = row >= sum(self.space.sizes)
        j, p = np.divmod(np.searchsorted(first.ravel(), row, side="right") - 1, d)
        j = np.where(tested, j, np.searchsorted(layout.offsets, row, side="right") - 1)
        if (codes >= layout.sizes[j]).any():
            raise ValueError("the component counts name a value outside its component")
        j, p, row, action, codes, units = (array[tested] for array in (j, p, row, action, codes, units))
        value = (row - first[j, p]) // np.where(p == j, 1, layout.sizes[p])
        alone = (first[j, j] + value) * A + action
        # What happened to j on its own happened as often or less often with each p.
        cells, cell = np.unique(np.stack([alone, codes]), axis=1, return_inverse=True)
        times = np.zeros((cells.shape[1], d), dtype=np.int64)
        np.add.at(times, (cell.reshape(-1), p), units)
        most = np.zeros(cells.shape[1], dtype=np.int64)
        most[cell.reshape(-1)[p == j]] = units[p == j]
        if (times > most[:, None]).any():
            raise ValueError("the component counts name a pair of values more often than one of them")


def parents_by_name(space: Space, search: ParentSearch) -> Mapping[str, str | None]:
    """Return the parent of each component; None where there is none."""
    found = search.parent.tolist() or [NO_PARENT] * space.d
    names = space.names
    return MappingProxyType({name: None if p == NO_PARENT else names[p] for name, p in zip(names, found, strict=True)})


def counts_by_name(space: Space, counts: Counts) -> defaultdict[tuple[str, int, int, int], float]:
    """Return the counts ``(component, value, action, next value) -> count``, from the first rows of `counts`."""
    offsets, found = space.layout.offsets, defaultdict[tuple[str, int, int, int], float](float)
    for (row, action, value), count in counts:
        if row < sum(space.sizes):
            j = int(np.searchsorted(offsets, row, side="right")) - 1
            found[space.names[j], row - int(offsets[j]), action, value] = count
    return found


def _rows(space: Space, *, parents: bool) -> int:
    """How many rows there are for each action: values, and with parents every pair of values, and values again."""
    alone = sum(space.sizes)
    return alone if not parents else 2 * alone + alone**2 - sum(size**2 for size in space.sizes)


def _blank_search(sizes: tuple[int, ...], first_row: int) -> ParentSearch:
    n = np.array(sizes, dtype=np.int64)
    d = n.shape[0]
    rows = np.outer(n, n)
    np.fill_diagonal(rows, n)
    ends = first_row + np.cumsum(rows).reshape(d, d)
    weight = np.ones((d, d))
    np.fill_diagonal(weight, _CLEARLY)
    return ParentSearch(ends - rows, weight, np.full(d, NO_PARENT, dtype=np.int64), np.zeros(d, dtype=np.int64))


@kernel
def choose_parent(j: int, search: ParentSearch) -> None:
    """Let the component of the largest weight be the parent of `j`: the first of equals, none unless it is enough."""
    best = search.weight[j, j]
    search.parent[j] = NO_PARENT
    for p in range(search.parent.shape[0]):
        if search.weight[j, p] > best:
            best = search.weight[j, p]
            search.parent[j] = p
    if best > MOST_WEIGHT:
        for p in range(search.parent.shape[0]):
            search.weight[j, p] = max(search.weight[j, p] / MOST_WEIGHT, LEAST_WEIGHT)


@kernel
def most_adds(d: int, components: ComponentTable) -> int:
    """The most transitions that one step can add to the counts, those that wait included."""
    return int(d * (1 + components.search.parent.shape[0])) + (components.backlog if is_waiting(components) else 0)


@kernel
def is_waiting(components: ComponentTable) -> bool:
    """Whether components are not counted yet, because the joint counts hold all that was seen."""
    return bool(components.backlog > 0 and components.counts.used[0] == 0)


@inner
def component_row(j: int, value: int, action: int, learner: Learner) -> int:
    """Row of the counts for component `j` at `value` under an action."""
    return int((learner.layout.offsets[j] + value) * learner.memory.Q.shape[1] + action)


@inner
def pair_row(j: int, p: int, value: int, other: int, action: int, learner: Learner) -> int:
    """Row of the counts for component `j` at `value` with component `p` at `other`, under an action."""
    pair = learner.components.search.first[j, p] + value * learner.layout.sizes[p] + other
    return int(pair * learner.memory.Q.shape[1] + action)


@kernel
def bundle(n: int) -> int:
    """How many equal transitions to pass on to the component counts with the n-th one.

    All that wait if n is a power of two, else none. So more than half of them have been passed on at any time.
    """
    return max(n // 2, 1) if n & (n - 1) == 0 else 0


@kernel
def not_passed_on(n: int) -> int:
    """How many of `n` equal transitions still wait for their bundle."""
    size = 1
    while 2 * size <= n:
        size *= 2
    return n - size


@inner
def count_components(action: int, observed: Observed, units: int, learner: Learner) -> None:
    """Count every component that was seen before and after the action."""
    previous, values = learner.memory.previous, observed.values
    for j in range(values.shape[0]):
        if previous[j] >= 0 and values[j] >= 0:
            row = component_row(j, previous[j], action, learner)
            add(row, values[j], units, ANYWHERE, learner.components.counts)


@rare
def catch_up(A: int, m: float, layout: Layout, counts: CountTable, components: ComponentTable) -> None:
    """Count the components of all that is in the joint counts, as far as they would have been passed on."""
    if counts.used[0] == 0:
        return
    for key in range(counts.head.shape[0]):
        i = counts.head[key]
        if i == 0:
            continue
        code = pack(key // A, layout)
        for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
            units = counts.n[entry] - (not_passed_on(counts.n[entry]) if m > 0 else 0)
            for j in range(layout.sizes.shape[0]):
                row = (layout.offsets[j] + value_in(code, j, layout)) * A + key % A
                add(row, value_in(counts.code[entry], j, layout), units, ANYWHERE, components.counts)


@inner
def seek_parents(action: int, observed: Observed, learner: Learner) -> None:
    """Test candidate parents of each observed component that has been hidden often enough."""
    due, previous, values = learner.components.search.due, learner.memory.previous, observed.values
    for j in range(values.shape[0]):
        if values[j] < 0:
            due[j] += 1
        elif due[j] >= _PRICE and previous[j] >= 0 and sees_another(j, previous):
            due[j] -= _PRICE
            weigh_parents(j, action, values[j], learner)


@kernel
def sees_another(j: int, observation: NDArray[np.int64]) -> bool:
    """Whether a component other than `j` was seen."""
    found = False
    for p in range(observation.shape[0]):
        found |= p != j and observation[p] >= 0
    return bool(found)


@inner
def weigh_parents(j: int, action: int, value: int, learner: Learner) -> None:
    """Predict a value of component `j` with every other one that was seen before, then count it with each."""
    previous, m, counts = learner.memory.previous, learner.rules.parents, learner.components.counts
    search = learner.components.search
    row = int((search.first[j, j] + previous[j]) * learner.memory.Q.shape[1] + action)
    n, total = add(row, value, 1, ANYWHERE, counts)
    P = smoothed(n, total, learner.layout.sizes[j], learner.rules.smoothing)
    for p in range(previous.shape[0]):
        if p != j and previous[p] >= 0:
            row = pair_row(j, p, previous[j], previous[p], action, learner)
            n, total = add(row, value, 1, ANYWHERE, counts)
            # With the parent (n + m P) / (total + m), without it P; where P is 0, so is n.
            gain = ((n / P if P > 0 else 0.0) + m) / (total + m)
            search.weight[j, p] = max(search.weight[j, p] * gain, LEAST_WEIGHT)
    choose_parent(j, search)


@kernel
def smoothed(n: int, total: int, size: int, smoothing: float) -> float:
    """P_j(v | u, a) = (n + λ) / (Σn + λ·size); uniform where nothing was counted and nothing is added."""
    weight = total + smoothing * size
    return float((n + smoothing) / weight) if weight > 0 else 1.0 / size


@inner
def units_of(row: int, value: int, counts: CountTable) -> tuple[int, int]:
    """Units of a value in a row, and of the whole row."""
    i = counts.head[row]
    for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
        if counts.code[entry] == value:
            return counts.n[entry], counts.total[i]
    return 0, counts.total[i]
