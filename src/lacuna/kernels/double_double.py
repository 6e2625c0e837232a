"""Numbers as unevaluated sums ``high + low`` of two floats: 106 bits, so that a result is rounded once, at the end.

The classical error-free transformations (Dekker 1971, Knuth). They need every operation rounded by itself, which holds
compiled or not: kernels are compiled without ``fastmath``.
"""

from __future__ import annotations

from typing import NamedTuple

from lacuna.kernels.compiled import kernel

_SPLIT = 2.0**27 + 1.0


class Double(NamedTuple):
    """A number: `high` is the float nearest to it, `low` is what that leaves."""

    high: float
    low: float


@kernel
def exact_sum(a: float, b: float) -> Double:
    """The sum of two floats, nothing lost."""
    high = a + b
    part = high - a
    return Double(high, (a - (high - part)) + (b - part))


@kernel
def exact_product(a: float, b: float) -> Double:
    """The product of two floats, nothing lost."""
    high = a * b
    x, y = _SPLIT * a, _SPLIT * b
    a_head, b_head = x - (x - a), y - (y - b)
    a_tail, b_tail = a - a_head, b - b_head
    return Double(high, ((a_head * b_head - high) + a_head * b_tail + a_tail * b_head) + a_tail * b_tail)


@kernel
def plus(a: Double, b: Double) -> Double:
    """The sum of two numbers that are not negative."""
    total = exact_sum(a.high, b.high)
    return exact_sum(total.high, total.low + (a.low + b.low))


@kernel
def times(a: Double, b: Double) -> Double:
    """The product of two numbers."""
    product = exact_product(a.high, b.high)
    return exact_sum(product.high, product.low + (a.high * b.low + a.low * b.high))


@kernel
def over(a: Double, b: Double) -> Double:
    """The ratio of two numbers."""
    ratio = a.high / b.high
    back = exact_product(ratio, b.high)
    rest = ((a.high - back.high) - back.low) + (a.low - ratio * b.low)
    return exact_sum(ratio, rest / b.high)
