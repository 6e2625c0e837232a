"""MCAR, MAR or NMAR: the label of a mechanism, computed from its rates and never from its name.

A mask m splits a state s into what it hides and what it leaves visible. For every m and s:

    MCAR    P(m | s) = P(m)
    MAR     P(m | s) = P(m | what m leaves visible of s)
    NMAR    otherwise

Each action and each mode of a mechanism with bursts is classified on its own. The result is the worst label found, in
the order MCAR, MAR, NMAR. If all are MCAR but the rates depend on the action, the label is MAR.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.space import Space

Label = Literal["MCAR", "MAR", "NMAR"]
"""Missing completely at random, missing at random, or not missing at random."""
LABELS: tuple[Label, ...] = get_args(Label)

EXACT_LIMIT = 10**6
"""Patterns times states up to which every single P(m | s) is worked out."""

_ROUNDING = 1e-9
"""Relative difference between two probabilities that is put down to rounding."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Classification(NamedTuple):
    """A label and the reason for it, in words."""

    label: Label
    reason: str


class _Slice(NamedTuple):
    """The rates of one mode and one action: ``rates[row, component]``, and the state that each row shows."""

    space: Space
    shown: Integers
    full: bool
    """Whether the rows are exactly the states of the product space, in order."""
    rates: Floats
    fallback: Floats | None
    driver: int
    whole: bool

    @property
    def values(self) -> Integers:
        """What each row shows, ``[row, component]``."""
        return np.stack(np.unravel_index(self.shown, self.space.sizes), axis=1)

    def ranges(self, table: Floats, hidden: Flags) -> tuple[Floats, Floats, Integers]:
        """Smallest and largest entry among rows that look alike, and how each row looks: as a number, in order."""
        visible: Integers = np.where(hidden, 0, self.values) @ self.space.layout.strides
        order = np.argsort(visible, kind="stable")
        first = np.flatnonzero(np.diff(visible[order], prepend=-1))
        low, high = (extreme.reduceat(table[order], first) for extreme in (np.minimum, np.maximum))
        return low, high, visible


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


def patterns(d: int) -> Flags:
    """All ``2^d`` patterns, True = hidden, in the order of `pattern_probabilities`."""
    bits: Flags = (np.arange(2**d)[:, None] >> np.arange(d - 1, -1, -1)) & 1 == 1
    return bits


def classify(
    space: Space, rates: Floats, fallback: Floats | None, driver: int, whole: bool, shown: Integers | None
) -> Classification:
    """Label of a mechanism with the arrays of `Mechanism`.

    Parameters
    ----------
    space, rates, fallback, driver, whole
        As in `Mechanism`.
    shown
        The shown state that each row of the rates stands for; None if row s is the state s.
    """
    n_modes, n_entries, n_rows, _ = rates.shape
    states = np.arange(n_rows, dtype=np.int64) if shown is None else shown
    found = []
    for z, a in _distinct(rates, fallback):
        below = None if fallback is None else fallback[z, a]
        one = _classify_slice(_Slice(space, states, shown is None, rates[z, a], below, driver, whole))
        if one.label == "NMAR":
            return Classification("NMAR", _when(z, a, n_modes, n_entries) + one.reason)
        found.append(one)
    weakest = max(found, key=lambda one: LABELS.index(one.label))
    if weakest.label == "MCAR" and _action_matters(rates, fallback):
        return Classification("MAR", "the rates look at the action taken, which is known, and at no state")
    return weakest


def _distinct(rates: Floats, fallback: Floats | None) -> Iterator[tuple[int, int]]:
    """One (mode, action) for each different slice."""
    seen: set[bytes] = set()
    for z, a in np.ndindex(rates.shape[:2]):
        key = rates[z, a].tobytes() + (b"" if fallback is None else fallback[z, a].tobytes())
        if key not in seen:
            seen.add(key)
            yield z, a


def _when(z: int, a: int, n_modes: int, n_entries: int) -> str:
    words = [f"in mode {z}"] if n_modes > 1 else []
    if n_entries > 1:
        words.append("before the first action" if a == n_entries - 1 else f"after action {a}")
    return ", ".join(words) + ": " if words else ""


def _action_matters(rates: Floats, fallback: Floats | None) -> bool:
    tables = [rates] if fallback is None else [rates, fallback]
    return any(_differs(table.min(axis=1), table.max(axis=1)).any() for table in tables)


def _differs(low: Floats, high: Floats) -> Flags:
    unequal: Flags = high - low > _ROUNDING * high
    return unequal


def _classify_slice(one: _Slice) -> Classification:
    n_rows, d = one.rates.shape
    if n_rows == 1:
        return Classification("MCAR", "the rates look at nothing")
    if d < 40 and 2**d * n_rows <= EXACT_LIMIT:
        return _by_patterns(one)
    return _by_lines(one) if one.full else _by_visible_components(one)


# --- every pattern -----------------------------------------------------------------------------------------------


def _by_patterns(one: _Slice) -> Classification:
    """Exact: compare P(m | s) over all states that look alike under m, for every m."""
    table, masks = pattern_probabilities(one.rates, one.fallback, one.driver, one.whole), patterns(one.space.d)
    lowest, highest = table.min(axis=1), table.max(axis=1)
    varies = _differs(lowest, highest)
    for m in np.flatnonzero(varies).tolist():
        low, high, visible = one.ranges(table[m], masks[m])
        if _differs(low, high).any():
            alike = np.flatnonzero(visible == np.unique(visible)[np.argmax(high - low)])
            return Classification("NMAR", _difference(one, masks[m], table[m], alike))
    if not varies.any():
        return Classification("MCAR", "no pattern's probability depends on the state")
    m = int(np.argmax(highest - lowest))
    why = _difference(one, masks[m], table[m], np.arange(table.shape[1]))
    return Classification("MAR", f"every pattern's probability depends only on what it leaves visible: {why}")


def _difference(one: _Slice, hidden: Flags, probabilities: Floats, rows: Integers) -> str:
    low, high = (int(rows[pick]) for pick in (np.argmin(probabilities[rows]), np.argmax(probabilities[rows])))
    names = ", ".join(name for name, lost in zip(one.space.names, hidden, strict=True) if lost) or "nothing"
    first, second = (one.space.decode(int(one.shown[row])) for row in (high, low))
    latent = "" if first != second else f" (true states {high} and {low}, which show the same: a latent driver)"
    return (
        f"the pattern that hides {names} has probability {probabilities[high]:.6g} in state {first} "
        f"but {probabilities[low]:.6g} in state {second}{latent}"
    )


# --- too many patterns -------------------------------------------------------------------------------------------


def _by_lines(one: _Slice) -> Classification:
    """Exact without patterns: move along one component at a time, which is enough in a full product space.

    Whether component i is hidden and the driver is seen (or hidden) has a probability, its weight. It must not change
    with i, and where it is above 0 no other rate may change with i either.
    """
    names, shape = one.space.names, (*one.space.sizes, -1)
    for i in range(one.space.d):
        for weight, others, columns in _branches(one, i):
            along = weight.reshape(one.space.sizes)
            varies = _differs(along.min(axis=i), along.max(axis=i))
            table = others.reshape(shape)
            moved = _differs(table.min(axis=i), table.max(axis=i)) & (along.max(axis=i) > 0)[..., None]
            if varies.any() or moved.any():
                lost = i if varies.any() else columns[int(np.argmax(moved.reshape(-1, moved.shape[-1]).any(axis=0)))]
                return Classification(
                    "NMAR", f"the loss of {names[lost]} depends on the value of {names[i]}, which can itself be hidden"
                )
    if _same_everywhere(one):
        return Classification("MCAR", "no rate depends on the state")
    return Classification("MAR", "no rate depends on a component while that component is hidden")


def _branches(one: _Slice, i: int) -> Iterator[tuple[Floats, Floats, list[int]]]:
    """For each way that component i is hidden: its probability, and the other rates that then act."""
    rates, fallback, driver = one.rates, one.fallback, one.driver
    columns = [j for j in range(one.space.d) if j not in {i, driver}]
    if one.whole:
        yield rates[:, 0], rates[:, :0], []
    elif fallback is None:
        yield rates[:, i], rates[:, columns], columns
    elif i == driver:
        yield rates[:, i], fallback[:, columns], columns
    else:
        yield (1 - rates[:, driver]) * rates[:, i], rates[:, columns], columns
        yield rates[:, driver] * fallback[:, i], fallback[:, columns], columns


def _same_everywhere(one: _Slice) -> bool:
    if one.fallback is None:
        return not _differs(one.rates.min(axis=0), one.rates.max(axis=0)).any()
    own = one.rates[:, one.driver]
    tables = [table for table, acts in ((one.rates, own.min() < 1), (one.fallback, own.max() > 0)) if acts]
    others = [np.delete(table, one.driver, axis=1) for table in tables]
    return not any(_differs(table.min(axis=0), table.max(axis=0)).any() for table in [own[:, None], *others])


def _by_visible_components(one: _Slice) -> Classification:
    """Beyond the limit, for true states: MAR only if the rates are a function of what is never hidden."""
    table = one.rates if one.fallback is None else np.concatenate([one.rates, one.fallback], axis=1)
    if not _differs(table.min(axis=0), table.max(axis=0)).any():
        return Classification("MCAR", "no rate depends on the state")
    can_hide = table.reshape(-1, one.space.d).max(axis=0) > 0
    low, high, _ = one.ranges(table, can_hide)
    if not _differs(low, high).any():
        return Classification("MAR", "the rates depend only on components that are never hidden")
    return Classification(
        "NMAR", "the rates depend on more than the components that are never hidden, so MAR is not proven"
    )
