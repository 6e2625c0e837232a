"""MCAR, MAR or NMAR: the label of a mechanism, worked out from its rates and never from its name.

A mechanism is MAR if, for every pattern m, the probability P(m | s) is constant in the part of s that m hides, and
MCAR if it is constant in all of s. Every mode of a hidden chain and every action is judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.space import Space

Label = Literal["MCAR", "MAR", "NMAR"]
LABELS: tuple[Label, ...] = get_args(Label)

EXACT_LIMIT = 10**6
"""Patterns times states up to which every single P(m | s) is worked out."""

_ROUNDING = 1e-9
"""Relative difference between two probabilities that is put down to rounding."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Verdict(NamedTuple):
    """A label and the reason for it, in words."""

    label: Label
    reason: str


class Slice(NamedTuple):
    """The rates of one mode and one action: ``rates[row, component]``, and the state that each row shows."""

    space: Space
    shown: Integers
    full: bool
    """Whether the rows are exactly the states of the product space, in order."""
    rates: Floats
    fallback: Floats | None
    driver: int
    whole: bool


def pattern_probabilities(rates: Floats, fallback: Floats | None, driver: int, whole: bool) -> Floats:
    """P(m | row) of all ``2^d`` patterns; component 0 is the highest bit of a pattern's number.

    Examples
    --------
    >>> pattern_probabilities(np.array([[0.25, 0.5]]), None, -1, False).ravel()
    array([0.375, 0.375, 0.125, 0.125])
    >>> pattern_probabilities(np.array([[0.25, 0.25]]), None, -1, True).ravel()
    array([0.75, 0. , 0. , 0.25])
    """
    n, d = rates.shape
    if whole:
        table = np.zeros((2**d, n))
        table[0], table[-1] = 1 - rates[:, 0], rates[:, 0]
        return table
    if driver < 0 or fallback is None:
        return _products(1 - rates, rates)
    # A driver that is seen has no share in the patterns that hide it, and the other way round.
    share = rates[:, driver]
    return _products(_with(1 - rates, driver, 1 - share), _with(rates, driver, 0 * share)) + _products(
        _with(1 - fallback, driver, 0 * share), _with(fallback, driver, share)
    )


def _with(table: Floats, column: int, values: Floats) -> Floats:
    changed = table.copy()
    changed[:, column] = values
    return changed


def _products(shown: Floats, hidden: Floats) -> Floats:
    table = np.ones((1, shown.shape[0]))
    for j in range(shown.shape[1]):
        table = np.stack([table * shown[:, j], table * hidden[:, j]], axis=1).reshape(-1, shown.shape[0])
    return table


def patterns(d: int) -> NDArray[np.bool_]:
    """All ``2^d`` patterns, True = hidden, in the order of `pattern_probabilities`."""
    bits: NDArray[np.bool_] = (np.arange(2**d)[:, None] >> np.arange(d - 1, -1, -1)) & 1 == 1
    return bits


def judge(
    space: Space, rates: Floats, fallback: Floats | None, driver: int, whole: bool, shown: Integers | None
) -> Verdict:
    """Label of a mechanism with the arrays of `Mechanism`.

    Parameters
    ----------
    space, rates, fallback, driver, whole
        As in `Mechanism`.
    shown
        The shown state that each row of the rates stands for; None if row s is the state s.
    """
    n_modes, n_entries, n_rows, _ = rates.shape
    full = shown is None
    states = np.arange(n_rows, dtype=np.int64) if shown is None else shown
    found = []
    for z, a in _distinct(rates, fallback):
        below = None if fallback is None else fallback[z, a]
        verdict = _judge_slice(Slice(space, states, full, rates[z, a], below, driver, whole))
        if verdict.label == "NMAR":
            return Verdict("NMAR", _where(z, a, n_modes, n_entries) + verdict.reason)
        found.append(verdict)
    worst = max(found, key=lambda verdict: LABELS.index(verdict.label))
    if worst.label == "MCAR" and _action_matters(rates, fallback):
        return Verdict("MAR", "the rates look at the action taken, which is known, and at no state")
    return worst


def _distinct(rates: Floats, fallback: Floats | None) -> Iterator[tuple[int, int]]:
    """One (mode, action) for each different slice."""
    seen: set[bytes] = set()
    for z, a in np.ndindex(rates.shape[:2]):
        key = rates[z, a].tobytes() + (b"" if fallback is None else fallback[z, a].tobytes())
        if key not in seen:
            seen.add(key)
            yield z, a


def _where(z: int, a: int, n_modes: int, n_entries: int) -> str:
    parts = [f"in mode {z}"] if n_modes > 1 else []
    if n_entries > 1:
        parts.append("before the first action" if a == n_entries - 1 else f"after action {a}")
    return ", ".join(parts) + ": " if parts else ""


def _action_matters(rates: Floats, fallback: Floats | None) -> bool:
    tables = [rates] if fallback is None else [rates, fallback]
    return any(_differs(table.min(axis=1), table.max(axis=1)).any() for table in tables)


def _differs(low: Floats, high: Floats) -> NDArray[np.bool_]:
    unequal: NDArray[np.bool_] = high - low > _ROUNDING * high
    return unequal


def _judge_slice(part: Slice) -> Verdict:
    n_rows, d = part.rates.shape
    if n_rows == 1:
        return Verdict("MCAR", "the rates look at nothing")
    if d < 40 and 2**d * n_rows <= EXACT_LIMIT:
        return _judge_patterns(part)
    if part.full:
        return _judge_lines(part)
    return _judge_visible(part)


# --- every pattern -----------------------------------------------------------------------------------------------


def _judge_patterns(part: Slice) -> Verdict:
    """Exact: compare P(m | s) over all states that look the same under m, for every m."""
    table = pattern_probabilities(part.rates, part.fallback, part.driver, part.whole)
    values = np.stack(np.unravel_index(part.shown, part.space.sizes), axis=1)
    for probabilities, hidden in zip(table, patterns(part.space.d), strict=True):
        if not _differs(probabilities.min(), probabilities.max()):
            continue
        looks = np.where(hidden, 0, values) @ part.space.layout.strides
        order = np.argsort(looks, kind="stable")
        first = np.flatnonzero(np.diff(looks[order], prepend=-1))
        low = np.minimum.reduceat(probabilities[order], first)
        high = np.maximum.reduceat(probabilities[order], first)
        if _differs(low, high).any():
            group = order[looks[order] == looks[order][first[np.argmax(high - low)]]]
            return Verdict("NMAR", _difference(part, hidden, probabilities, values, group))
    spread = table.max(axis=1) - table.min(axis=1)
    m = int(np.argmax(spread))
    if not _differs(table.min(axis=1), table.max(axis=1)).any():
        return Verdict("MCAR", "no pattern's probability depends on the state")
    everything = np.arange(values.shape[0])
    why = _difference(part, patterns(part.space.d)[m], table[m], values, everything)
    return Verdict("MAR", f"every pattern's probability depends only on what it leaves visible: {why}")


def _difference(
    part: Slice, hidden: NDArray[np.bool_], probabilities: Floats, values: Integers, group: Integers
) -> str:
    low, high = (int(group[pick]) for pick in (np.argmin(probabilities[group]), np.argmax(probabilities[group])))
    names = ", ".join(name for name, lost in zip(part.space.names, hidden, strict=True) if lost) or "nothing"
    one, other = (tuple(values[row].tolist()) for row in (high, low))
    latent = "" if one != other else f" (true states {high} and {low}, which show the same: a latent driver)"
    return (
        f"the pattern that hides {names} has probability {probabilities[high]:.6g} in state {one} "
        f"but {probabilities[low]:.6g} in state {other}{latent}"
    )


# --- too many patterns -------------------------------------------------------------------------------------------


def _judge_lines(part: Slice) -> Verdict:
    """Exact without patterns: move along one component at a time, which is enough in a full product space.

    Whether component i is hidden and the driver is seen (or hidden) has a probability, its weight. It must not change
    with i, and where it is above 0 no other rate may change with i either.
    """
    shape = (*part.space.sizes, -1)
    for i in range(part.space.d):
        for weight, others, columns in _branches(part, i):
            along = weight.reshape(part.space.sizes)
            varies = _differs(along.min(axis=i), along.max(axis=i))
            table = others.reshape(shape)
            moved = _differs(table.min(axis=i), table.max(axis=i)) & (along.max(axis=i) > 0)[..., None]
            if varies.any() or moved.any():
                lost = i if varies.any() else columns[int(np.argmax(moved.reshape(-1, moved.shape[-1]).any(axis=0)))]
                names = part.space.names
                return Verdict(
                    "NMAR", f"the loss of {names[lost]} depends on the value of {names[i]}, which can itself be hidden"
                )
    if _same_everywhere(part):
        return Verdict("MCAR", "no rate depends on the state")
    return Verdict("MAR", "no rate depends on a component while that component is hidden")


def _branches(part: Slice, i: int) -> Iterator[tuple[Floats, Floats, list[int]]]:
    """For each way that component i is hidden: its probability, and the other rates that then act."""
    rates, fallback, driver = part.rates, part.fallback, part.driver
    columns = [j for j in range(part.space.d) if j not in {i, driver}]
    if part.whole:
        yield rates[:, 0], rates[:, :0], []
    elif fallback is None:
        yield rates[:, i], rates[:, columns], columns
    elif i == driver:
        yield rates[:, i], fallback[:, columns], columns
    else:
        yield (1 - rates[:, driver]) * rates[:, i], rates[:, columns], columns
        yield rates[:, driver] * fallback[:, i], fallback[:, columns], columns


def _same_everywhere(part: Slice) -> bool:
    if part.fallback is None:
        return not _differs(part.rates.min(axis=0), part.rates.max(axis=0)).any()
    own = part.rates[:, part.driver]
    tables = [table for table, acts in ((part.rates, own.min() < 1), (part.fallback, own.max() > 0)) if acts]
    others = [np.delete(table, part.driver, axis=1) for table in tables]
    return not any(_differs(table.min(axis=0), table.max(axis=0)).any() for table in [own[:, None], *others])


def _judge_visible(part: Slice) -> Verdict:
    """Beyond the limit, for true states: MAR only if the rates are a function of what is never hidden."""
    table = part.rates if part.fallback is None else np.concatenate([part.rates, part.fallback], axis=1)
    if not _differs(table.min(axis=0), table.max(axis=0)).any():
        return Verdict("MCAR", "no rate depends on the state")
    can_hide = (table > 0).any(axis=0).reshape(-1, part.space.d).any(axis=0)
    values = np.stack(np.unravel_index(part.shown, part.space.sizes), axis=1)
    looks = np.where(can_hide, 0, values) @ part.space.layout.strides
    order = np.argsort(looks, kind="stable")
    first = np.flatnonzero(np.diff(looks[order], prepend=-1))
    low, high = (extreme.reduceat(table[order], first, axis=0) for extreme in (np.minimum, np.maximum))
    if not _differs(low, high).any():
        return Verdict("MAR", "the rates depend only on components that are never hidden")
    return Verdict("NMAR", "the rates depend on more than the components that are never hidden, so MAR is not proven")
