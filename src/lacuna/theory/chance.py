"""Random numbers for the simulations, in blocks filled by NumPy; and standard errors of what they give."""

from __future__ import annotations

from math import sqrt
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BLOCK = 1 << 18


def generator(seed: int, *names: str | float) -> np.random.Generator:
    """Give the generator of a named simulation: another name, another independent stream.

    Examples
    --------
    >>> first, again, other = generator(7, "a", 1), generator(7, "a", 1), generator(7, "a", 2)
    >>> x = first.random()
    >>> x == again.random(), x == other.random()
    (True, False)
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(crc32(str(n).encode()) for n in names)))


def paths_at_once(numbers: int, paths: int) -> int:
    """How many paths, each using so many numbers, fill a block that stays in the processor's cache."""
    return max(1, min(paths, _BLOCK // max(1, numbers)))


def error_of_mean(values: Floats) -> float:
    """Standard error of a mean."""
    return float(values.std(ddof=1) / sqrt(values.size))


def error_of_variance(values: Floats) -> float:
    """Standard error of a variance, from the spread of the squared deviations."""
    return error_of_mean((values - values.mean()) ** 2)


def ratio_of_means(above: Floats, below: Floats) -> tuple[float, float]:
    """Give the ratio of two means over the same paths, and its standard error by the delta method.

    Examples
    --------
    >>> ratio, error = ratio_of_means(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    >>> ratio, error
    (2.0, 0.0)
    """
    ratio = float(above.mean() / below.mean())
    return ratio, error_of_mean(above - ratio * below) / abs(float(below.mean()))


def slope_of_means(early: Floats, late: Floats, factor: float) -> tuple[float, float]:
    """Exponent e such that the mean falls like time to the power -e between two times, and its standard error."""
    ratio, error = ratio_of_means(late, early)
    return float(-np.log(ratio) / np.log(factor)), float(error / ratio / np.log(factor))
