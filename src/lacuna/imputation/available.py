"""Counts of single components, learned from every pair of values that really was observed (available cases).

Where complete tuples are rare, the joint counts know little of the row a pathway is in. What each component does on its
own is then known far better: ``(s_j, a) -> s'_j`` is counted whenever both values were seen, whatever else was hidden.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.compiled import kernel
from lacuna.counts import CountTable, add
from lacuna.space import Layout

_ANYWHERE = np.uint64(0)
_BELOW_ONE = 1.0 - 2.0**-53


@kernel
def part_key(j: int, value: int, action: int, A: int, layout: Layout) -> int:
    """Row of the component counts for component `j` at `value` under an action."""
    return int((layout.offsets[j] + value) * A + action)


@kernel
def count_parts(
    previous: NDArray[np.int64], action: int, observation: NDArray[np.int64], A: int, layout: Layout, parts: CountTable
) -> None:
    """Count every component that was seen before and after the action."""
    for j in range(observation.shape[0]):
        if previous[j] >= 0 and observation[j] >= 0:
            add(part_key(j, previous[j], action, A, layout), observation[j], 1, _ANYWHERE, parts)


@kernel
def part_probability(key: int, value: int, size: int, smoothing: float, parts: CountTable) -> float:
    """P_j(v | u, a) = (n + λ) / (Σn + λ·size); uniform where nothing was counted and nothing is added."""
    i = parts.head[key]
    n, total = 0, 0
    for entry in range(parts.start[i], parts.start[i] + parts.length[i]):
        total += parts.n[entry]
        n += parts.n[entry] if parts.code[entry] == value else 0
    weight = total + smoothing * size
    return float((n + smoothing) / weight) if weight > 0 else 1.0 / size


@kernel
def parts_mass(
    code: int, action: int, observation: NDArray[np.int64], A: int, kappa: float, smoothing: float, layout: Layout,
    parts: CountTable,
) -> float:  # fmt: skip
    """F = κ · ∏ over the observed j of P_j(o_j | s_j, a), for a pathway in the state with this code."""
    F = kappa
    for j in range(observation.shape[0]):
        if observation[j] >= 0:
            key = part_key(j, (code & layout.masks[j]) >> layout.shifts[j], action, A, layout)
            F *= part_probability(key, observation[j], layout.sizes[j], smoothing, parts)
    return F


@kernel
def draw_part(key: int, size: int, smoothing: float, u: float, parts: CountTable) -> tuple[int, float]:
    """A value in proportion to P_j, and what is left of the number `u`: uniform again, given the value."""
    i = parts.head[key]
    first, end = parts.start[i], parts.start[i] + parts.length[i]
    total = 0
    for entry in range(first, end):
        total += parts.n[entry]
    x = u * (total + smoothing * size)
    for entry in range(first, end):
        n = parts.n[entry]
        if x < n:
            return parts.code[entry], x / n
        x -= n
    place = x / smoothing if smoothing > 0 else u * size
    value = min(int(place), size - 1)
    return value, min(place - value, _BELOW_ONE)


@kernel
def draw_parts(
    code: int, action: int, observation: NDArray[np.int64], seen: int, A: int, smoothing: float, u: float,
    layout: Layout, parts: CountTable,
) -> int:  # fmt: skip
    """Code of a next state whose hidden components are drawn one by one, given the code of the state left.

    A single number serves them all: it is the place in [0, 1) of one draw from their product.
    """
    rest = min(u, _BELOW_ONE)
    for j in range(observation.shape[0]):
        if observation[j] < 0:
            key = part_key(j, (code & layout.masks[j]) >> layout.shifts[j], action, A, layout)
            value, rest = draw_part(key, layout.sizes[j], smoothing, rest, parts)
            seen |= value << layout.shifts[j]
    return seen
