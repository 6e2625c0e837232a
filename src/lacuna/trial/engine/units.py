"""Probabilities in whole units of 2**-32: exact as floats, adding up to exactly 1, never outside their bounds.

With the wanted units m_a of each of n actions and the bounds lo_a and hi_a of its probability,

    n_a = clip(m_a + τ, least_a, most_a)      least_a = ⌈lo_a · 2^32⌉      most_a = ⌊hi_a · 2^32⌋      Σ n_a = 2^32

This is the projection onto the bounds: τ is the largest integer for which the sum does not exceed 2^32. The units then
left, fewer than n, go to one action each.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, fsum
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import kernel
from lacuna.validation import shown

UNITS = 2**32
"""The units of probability 1."""


@kernel
def nearest_units(p: float) -> int:
    """``p · 2^32`` rounded to the nearest whole number, halves up."""
    x = p * UNITS  # exact
    whole = int(x)
    # Not int(x + 0.5), a sum that may be rounded.
    return whole + 1 if x - whole >= 0.5 else whole


@kernel
def clipped(x: int, least: int, most: int) -> int:
    """The number between `least` and `most` that is nearest to `x`."""
    return max(least, min(most, x))


@kernel
def share_out(
    wanted: NDArray[np.int64], least: NDArray[np.int64], most: NDArray[np.int64], allowed: NDArray[np.int64],
    units: NDArray[np.int64],
) -> None:  # fmt: skip
    """Fill the units of the allowed actions: nearest to those wanted, within bounds, adding up to 2**32.

    ``wanted[i]`` belongs to the action ``allowed[i]``. The caller has made sure that the bounds can be met.
    """
    n = allowed.shape[0]
    # The largest shift whose sum fits: at -2^32 all are at their least, and beyond 2^32 nothing grows any more.
    fits, too_large = -UNITS, UNITS + 1
    while too_large - fits > 1:
        shift = (fits + too_large) // 2
        total = 0
        for i in range(n):
            total += clipped(wanted[i] + shift, least[allowed[i]], most[allowed[i]])
        if total <= UNITS:
            fits = shift
        else:
            too_large = shift
    left = UNITS
    for i in range(n):
        a = allowed[i]
        units[a] = clipped(wanted[i] + fits, least[a], most[a])
        left -= units[a]
    # One more unit would have raised more than `left` actions, so as many have room.
    for i in range(n):
        a = allowed[i]
        if left > 0 and 0 < units[a] < most[a]:
            units[a] += 1
            left -= 1
    # Probability 0 stays 0, unless no other action has room.
    for i in range(n):
        a = allowed[i]
        if left > 0 and units[a] == 0 and most[a] > 0:
            units[a] = 1
            left -= 1


@kernel
def fill_probabilities(units: NDArray[np.int64], p: NDArray[np.float64]) -> None:
    """Fill `p` with the exact probabilities of these units."""
    for a in range(units.shape[0]):
        p[a] = units[a] * 2.0**-32


def decision_probabilities(units: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the exact probabilities of these units; `sample_action` draws an action by them.

    Examples
    --------
    >>> decision_probabilities(np.array([2**30, 3 * 2**30]))
    array([0.25, 0.75])
    """
    p = np.empty(units.shape[0])
    fill_probabilities(units, p)
    return p


def fixed_probabilities(p: Sequence[float], allowed: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Return fixed probabilities as multiples of 2**-32 that add up to 1 exactly.

    If only some actions are allowed, their probabilities are scaled to add up to 1; uniform if all of them are 0.

    Examples
    --------
    >>> fixed_probabilities([1 / 3, 1 / 3, 1 / 3]).sum()
    np.float64(1.0)
    >>> fixed_probabilities([0.2, 0.2, 0.6], np.array([0, 2]))
    array([0.25, 0.  , 0.75])
    """
    n = len(p)
    chosen = np.arange(n) if allowed is None else allowed
    left = [float(p[a]) for a in chosen]
    if len(left) < n:
        total = fsum(left)
        left = [x / total if total > 0 else 1 / len(left) for x in left]
    wanted, units = np.array([nearest_units(x) for x in left], dtype=np.int64), np.zeros(n, dtype=np.int64)
    share_out(wanted, np.zeros_like(units), np.full(n, UNITS), chosen, units)
    return decision_probabilities(units)


def exact_probability(what: str, value: Any) -> Fraction:
    """Return a probability exactly as it is written, or raise an error.

    Examples
    --------
    >>> exact_probability("p", 0.5), exact_probability("p", Decimal("0.1"))
    (Fraction(1, 2), Fraction(1, 10))
    >>> exact_probability("p", 1.5)
    Traceback (most recent call last):
    ValueError: p is 1.5; it must be a number between 0 and 1
    """
    real = not isinstance(value, bool) and isinstance(value, Real)
    if (real or (isinstance(value, Decimal) and value.is_finite())) and 0 <= value <= 1:
        return Fraction(value if isinstance(value, Decimal | Fraction) else float(value))
    raise ValueError(f"{what} is {shown(value)}; it must be a number between 0 and 1")


def within(lo: Fraction, hi: Fraction) -> tuple[int, int]:
    """Return the least and the most units between two bounds; the least is larger if there are none.

    Examples
    --------
    >>> within(Fraction(1, 3), Fraction(1, 2))
    (1431655766, 2147483648)
    """
    return ceil(lo * UNITS), floor(hi * UNITS)
