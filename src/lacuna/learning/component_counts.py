"""Counts of single components, learned from every pair of values that really was observed (available cases).

Where complete tuples are rare, the joint counts know little of the row a pathway is in. What each component does on its
own is then known far better: ``(s_j, a) -> s'_j`` is counted whenever both values were seen, whatever else was hidden.

A component may depend on another one: which column a taxi comes to depends on the row, for there are walls. So
``(s_j, s_p, a) -> s'_j`` is counted as well, and p becomes the *parent* of j once it has foretold j clearly better than
j alone did, both judged on each transition before it was learned from.

There are many pairs, and most will never be parents. So the parent of a component is looked for only as much as that
component is hidden: after every fourth hidden value of it, one that is seen is judged by. This is settled before it is
known which value it will be, or frequent values would look rarer than they are.

As long as nothing was ever hidden the joint counts hold everything, and in a small space components are not counted at
all. With parents, what is often seen complete comes in bundles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import pack
from lacuna.kernels.compiled import kernel, rare
from lacuna.kernels.counts import CountTable, add
from lacuna.kernels.space import Layout

NO_PARENT = -1

_ANYWHERE = np.uint64(0)
BELOW_ONE = 1.0 - 2.0**-53

_CLEARLY = exp(10.0)
"""How many times likelier a parent must have made what was seen, before it is taken for one."""

_PRICE = 4
"""How many values of a component must have been hidden for one that is seen to be judged by."""

_MOST_WAITING = 2000
"""Where components could need more counts than this, they are counted from the start: room to catch up costs memory."""

# Weights are products over all that was seen, so they are kept within bounds, by powers of two, which round nothing.
LEAST_WEIGHT, MOST_WEIGHT = 2.0**-1000, 2.0**600


class Kin(NamedTuple):
    """Which component depends on which; all empty if there are to be no parents.

    From ``base[j, p]`` on, the rows of the counts are the pairs of values of j and p, from ``base[j, j]`` on the values
    of j alone; all count only what is judged by. ``weight[j, p]`` is the likelihood of what j did, given p, relative to
    that without; on the diagonal what it has to exceed. ``parent[j]`` is the p of the largest weight, if it does.
    ``due[j]`` is the number of values of j that steps led to and that were hidden, less what was spent on judging.
    """

    base: NDArray[np.int64]
    weight: NDArray[np.float64]
    parent: NDArray[np.int64]
    due: NDArray[np.int64]


class Parts(NamedTuple):
    """Component counts: a row for every value of every component (as in ``Layout.offsets``), then those of `Kin`.

    `backlog` is the most entries that single components can have, 0 if they are counted from the start.
    """

    counts: CountTable
    kin: Kin
    backlog: int


def most_waiting(sizes: Sequence[int], n_actions: int) -> int:
    """Give the `backlog` of a space."""
    entries = n_actions * sum(size**2 for size in sizes)
    return entries if entries <= _MOST_WAITING else 0


def blank_kin(sizes: Sequence[int], *, parents: bool) -> tuple[Kin, int]:
    """Give kin that nothing is known of yet, and the number of rows that the counts need for each action."""
    n = np.array(sizes if parents else (), dtype=np.int64)
    d = n.shape[0]
    rows = np.outer(n, n)
    np.fill_diagonal(rows, n)
    ends = sum(sizes) + np.cumsum(rows).reshape(d, d)
    weight = np.ones((d, d))
    np.fill_diagonal(weight, _CLEARLY)
    kin = Kin(ends - rows, weight, np.full(d, NO_PARENT, dtype=np.int64), np.zeros(d, dtype=np.int64))
    return kin, part_rows(sizes, parents=parents)


def part_rows(sizes: Sequence[int], *, parents: bool) -> int:
    """How many rows the component counts have for each action: values, and with parents every pair of values."""
    alone = sum(sizes)
    return alone if not parents else 2 * alone + alone**2 - sum(size**2 for size in sizes)


def kin_bytes(d: int, *, parents: bool) -> int:
    """Memory of the kin of `d` components."""
    return 16 * d * (d + 1) if parents else 0


@kernel
def choose_parent(j: int, kin: Kin) -> None:
    """Let the component of the largest weight be the parent of `j`: the first of equals, none unless it is enough."""
    best = kin.weight[j, j]
    kin.parent[j] = NO_PARENT
    for p in range(kin.parent.shape[0]):
        if kin.weight[j, p] > best:
            best = kin.weight[j, p]
            kin.parent[j] = p
    if best > MOST_WEIGHT:
        for p in range(kin.parent.shape[0]):
            kin.weight[j, p] = max(kin.weight[j, p] / MOST_WEIGHT, LEAST_WEIGHT)


@kernel
def most_adds(d: int, parts: Parts) -> int:
    """The most transitions that one step can add to the counts, what was waited for included."""
    return int(d * (1 + parts.kin.parent.shape[0])) + (parts.backlog if is_waiting(parts) else 0)


@kernel
def is_waiting(parts: Parts) -> bool:
    """Whether components are not counted yet, because the joint counts hold all that was seen."""
    return bool(parts.backlog > 0 and parts.counts.used[0] == 0)


@kernel
def value_in(code: int, j: int, layout: Layout) -> int:
    """Value of component `j` in the state with this code."""
    return int((code & layout.masks[j]) >> layout.shifts[j])


@kernel
def part_key(j: int, value: int, action: int, A: int, layout: Layout) -> int:
    """Row of the component counts for component `j` at `value` under an action."""
    return int((layout.offsets[j] + value) * A + action)


@kernel
def pair_key(j: int, p: int, value: int, other: int, action: int, A: int, layout: Layout, kin: Kin) -> int:
    """Row of the counts for component `j` at `value` with component `p` at `other`, under an action."""
    return int((kin.base[j, p] + value * layout.sizes[p] + other) * A + action)


@kernel
def bundle(n: int) -> int:
    """How many equal transitions to pass on to the component counts with the n-th one.

    All that wait, whenever n is a power of two: more than half of them have then been passed on at any time.
    """
    return max(n // 2, 1) if n & (n - 1) == 0 else 0


@kernel
def not_passed_on(n: int) -> int:
    """How many of `n` equal transitions still wait for their bundle."""
    size = 1
    while 2 * size <= n:
        size *= 2
    return n - size


@kernel
def count_parts(
    previous: NDArray[np.int64], action: int, observation: NDArray[np.int64], units: int, A: int, layout: Layout,
    parts: Parts,
) -> None:  # fmt: skip
    """Count every component that was seen before and after the action."""
    for j in range(observation.shape[0]):
        if previous[j] >= 0 and observation[j] >= 0:
            add(part_key(j, previous[j], action, A, layout), observation[j], units, _ANYWHERE, parts.counts)


@rare
def catch_up(A: int, backoff: float, layout: Layout, counts: CountTable, parts: Parts) -> None:
    """Count the components of all that is in the joint counts, as far as they would have been passed on."""
    if counts.used[0] == 0:
        return
    for key in range(counts.head.shape[0]):
        i = counts.head[key]
        if i == 0:
            continue
        code = pack(key // A, layout)
        for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
            units = counts.n[entry] - (not_passed_on(counts.n[entry]) if backoff > 0 else 0)
            for j in range(layout.sizes.shape[0]):
                place = part_key(j, value_in(code, j, layout), key % A, A, layout)
                add(place, value_in(counts.code[entry], j, layout), units, _ANYWHERE, parts.counts)


@kernel
def seek_parents(
    previous: NDArray[np.int64], action: int, observation: NDArray[np.int64], A: int, smoothing: float, backoff: float,
    layout: Layout, parts: Parts,
) -> None:  # fmt: skip
    """For each component of which enough was hidden before, judge who foretold best what is seen of it now."""
    due = parts.kin.due
    for j in range(observation.shape[0]):
        if observation[j] < 0:
            due[j] += 1
        elif due[j] >= _PRICE and previous[j] >= 0 and sees_another(j, previous):
            due[j] -= _PRICE
            weigh_parents(j, previous, action, observation[j], A, smoothing, backoff, layout, parts)


@kernel
def sees_another(j: int, observation: NDArray[np.int64]) -> bool:
    """Whether a component other than `j` was seen."""
    found = False
    for p in range(observation.shape[0]):
        found |= p != j and observation[p] >= 0
    return bool(found)


@kernel
def weigh_parents(
    j: int, previous: NDArray[np.int64], action: int, value: int, A: int, smoothing: float, backoff: float,
    layout: Layout, parts: Parts,
) -> None:  # fmt: skip
    """Count a value of component `j` with every other one that was seen before, and weigh these as its parents."""
    weight = parts.kin.weight
    key = int((parts.kin.base[j, j] + previous[j]) * A + action)
    n, total = add(key, value, 1, _ANYWHERE, parts.counts)
    P = smoothed(n, total, layout.sizes[j], smoothing)
    for p in range(previous.shape[0]):
        if p != j and previous[p] >= 0:
            key = pair_key(j, p, previous[j], previous[p], action, A, layout, parts.kin)
            n, total = add(key, value, 1, _ANYWHERE, parts.counts)
            # With the parent (n + m P) / (total + m), without it P; where P is 0, so is n.
            gain = ((n / P if P > 0 else 0.0) + backoff) / (total + backoff)
            weight[j, p] = max(weight[j, p] * gain, LEAST_WEIGHT)
    choose_parent(j, parts.kin)


@kernel
def smoothed(n: int, total: int, size: int, smoothing: float) -> float:
    """P_j(v | u, a) = (n + λ) / (Σn + λ·size); uniform where nothing was counted and nothing is added."""
    weight = total + smoothing * size
    return float((n + smoothing) / weight) if weight > 0 else 1.0 / size


@kernel
def units_of(key: int, value: int, counts: CountTable) -> tuple[int, int]:
    """Units of a value in a row, and of the whole row."""
    i = counts.head[key]
    for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
        if counts.code[entry] == value:
            return counts.n[entry], counts.total[i]
    return 0, counts.total[i]


@kernel
def part_probability(
    j: int, code: int, action: int, value: int, A: int, smoothing: float, backoff: float, layout: Layout, parts: Parts
) -> float:
    """Probability that component `j` takes a value after an action in the state with this code.

    With a parent (n + m P_j) / (Σn + m), where n counts with the parent, P_j is the probability without, and m its
    weight, the `backoff`.
    """
    before = value_in(code, j, layout)
    n, total = units_of(part_key(j, before, action, A, layout), value, parts.counts)
    P = smoothed(n, total, layout.sizes[j], smoothing)
    if backoff > 0 and parts.kin.parent[j] != NO_PARENT:
        p = parts.kin.parent[j]
        n, total = units_of(
            pair_key(j, p, before, value_in(code, p, layout), action, A, layout, parts.kin), value, parts.counts
        )
        P = (n + backoff * P) / (total + backoff)
    return P


@kernel
def likelihood(
    code: int, action: int, observation: NDArray[np.int64], A: int, smoothing: float, backoff: float, layout: Layout,
    parts: Parts,
) -> float:  # fmt: skip
    """∏ over the observed j of P_j(o_j | s, a), for a pathway in the state with this code."""
    f = 1.0
    for j in range(observation.shape[0]):
        if observation[j] >= 0:
            f *= part_probability(j, code, action, observation[j], A, smoothing, backoff, layout, parts)
    return f


@kernel
def draw_counted(key: int, more: float, u: float, counts: CountTable) -> tuple[int, float]:
    """A value in proportion to its units, or -1 in proportion to `more`; and what is left of the number `u`.

    What is left is uniform again, given the value.
    """
    i = counts.head[key]
    x = u * (counts.total[i] + more)
    for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
        n = counts.n[entry]
        if x < n:
            return counts.code[entry], x / n
        x -= n
    return -1, min(x / more, BELOW_ONE) if more > 0 else u


@kernel
def draw_parts(
    code: int, action: int, observation: NDArray[np.int64], seen: int, A: int, smoothing: float, backoff: float,
    u: float, layout: Layout, parts: Parts,
) -> int:  # fmt: skip
    """Code of a next state whose hidden components are drawn one by one, given the code of the state left.

    A single number serves them all: it is the place in [0, 1) of one draw from their product.
    """
    rest = min(u, BELOW_ONE)
    for j in range(observation.shape[0]):
        if observation[j] < 0:
            before, value, size = value_in(code, j, layout), -1, layout.sizes[j]
            if backoff > 0 and parts.kin.parent[j] != NO_PARENT:
                p = parts.kin.parent[j]
                key = pair_key(j, p, before, value_in(code, p, layout), action, A, layout, parts.kin)
                value, rest = draw_counted(key, backoff, rest, parts.counts)
            if value < 0:
                key = part_key(j, before, action, A, layout)
                value, rest = draw_counted(key, smoothing * size, rest, parts.counts)
            if value < 0:
                value = min(int(rest * size), size - 1)
                rest = min(rest * size - value, BELOW_ONE)
            seen |= value << layout.shifts[j]
    return seen
