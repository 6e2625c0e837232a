"""The exponential function by sums, products and powers of two only: its bits do not depend on a C library.

    x = k ln 2 + r,  |r| <= ln 2 / 2        e^x = 2^k (1 + r + r²/2 + r³ (1/3! + r/4! + … + r^10/13!))

The first three terms are added up without loss, so the result is the float nearest to e^x, or rarely the next.
"""

from __future__ import annotations

from math import factorial, inf, isnan

from lacuna.kernels.compiled import kernel
from lacuna.kernels.double_double import exact_sum

# ln 2 in two parts: 11 bits of k times the 32 bits of the first are exact.
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")

# 1/13!, …, 1/4!, 1/3!: the first term left out is below 2^-57.
_COEFFICIENTS = tuple(1 / factorial(n) for n in range(13, 2, -1))

# Beyond these, e^x is more than the largest float, or less than half the smallest.
_HIGHEST, _LOWEST = 710.0, -746.0


@kernel
def power_of_two(k: int) -> float:
    """2**k for k between -1022 and 1023, exactly."""
    power, square, n = 1.0, 2.0 if k >= 0 else 0.5, abs(k)
    while n > 0:
        if n % 2 == 1:
            power *= square
        n //= 2
        if n > 0:
            square *= square
    return power


@kernel
def exact_exp(x: float) -> float:
    """e**x, at most 1 unit in the last place off; the same bits on every machine.

    Examples
    --------
    >>> exact_exp(0.0), exact_exp(1.0), exact_exp(-1e300), exact_exp(1e300)
    (1.0, 2.718281828459045, 0.0, inf)
    """
    x = float(x)  # outside the compiler a number of NumPy warns when it overflows, one of Python does not
    if isnan(x):
        return x
    if x > _HIGHEST:
        return inf
    if x < _LOWEST:
        return 0.0
    k = int(x * _PER_LN2 + (0.5 if x >= 0 else -0.5))
    r = exact_sum(x - k * _LN2_HIGH, -(k * _LN2_LOW))
    z = r.high
    series = 0.0
    for coefficient in _COEFFICIENTS:
        series = coefficient + z * series
    square = z * z
    head = exact_sum(1.0, z)
    total = exact_sum(head.high, 0.5 * square)
    # What is left over, the smallest first; e^(z + r.low) is e^z (1 + r.low) in these digits.
    rest = r.low * (1.0 + z) + z * square * series + (head.low + total.low)
    y = total.high + rest
    # Twice, so that 2^k may lie outside what a float holds; the first product is exact, the second rounds once.
    part = max(min(k, 1000), -1000)
    return y * power_of_two(part) * power_of_two(k - part)
