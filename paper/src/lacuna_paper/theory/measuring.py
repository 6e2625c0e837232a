"""What simulations are made with: random numbers in blocks, and measurements with their standard errors."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from lacuna.run import standard_error as error_of_mean
from lacuna_paper.theory.statement import Case, Measurement

Floats = NDArray[np.float64]

_BLOCK = 1 << 18


def generator(seed: int, *names: str | float) -> np.random.Generator:
    """Return the generator of a named simulation: another name, another independent stream.

    Examples
    --------
    >>> first, again, other = generator(7, "a", 1), generator(7, "a", 1), generator(7, "a", 2)
    >>> x = first.random()
    >>> x == again.random(), x == other.random()
    (True, False)
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(crc32(str(n).encode()) for n in names)))


def blocks(
    rng: np.random.Generator, paths: int, uniform: int, normal: int = 0
) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield random numbers for paths, in blocks that fit into the processor's cache.

    Parameters
    ----------
    rng
        Where they come from.
    paths
        How many paths there are.
    uniform, normal
        How many uniform and how many standard normal numbers each path needs.

    Yields
    ------
    slice, array, array
        Some paths, and their uniform and normal numbers, a row per path. The next block overwrites the arrays.

    Examples
    --------
    >>> [(some, numbers.shape) for some, numbers, _ in blocks(generator(0), 3, 1 << 17)]
    [(slice(0, 2, None), (2, 131072)), (slice(2, 3, None), (1, 131072))]
    """
    at_once = max(1, min(paths, _BLOCK // max(1, uniform)))
    numbers, noise = np.empty((at_once, uniform)), np.empty((at_once, normal))
    for first in range(0, paths, at_once):
        last = min(first + at_once, paths)
        rng.random(out=numbers)
        rng.standard_normal(out=noise)
        yield slice(first, last), numbers[: last - first], noise[: last - first]


def standard_error(values: Floats) -> float:
    """Return the standard error of a mean; a single value says nothing of it."""
    error = error_of_mean(values)
    return inf if error is None else error


def mean_of(what: str, case: Case, values: Floats, *, scale: float = 0.0, broken: bool = False) -> Measurement:
    """Measure a mean."""
    return Measurement(what, case, float(values.mean()), standard_error(values), scale, broken)


def variance_of(what: str, case: Case, values: Floats, *, broken: bool = False) -> Measurement:
    """Measure a variance; its standard error comes from the spread of the squared deviations."""
    error = standard_error((values - values.mean()) ** 2)
    return Measurement(what, case, float(values.var(ddof=1)), error, broken=broken)


def ratio_of_means(above: Floats, below: Floats) -> tuple[float, float]:
    """Return the ratio of two means over the same paths, and its standard error by the delta method.

    Examples
    --------
    >>> ratio, error = ratio_of_means(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    >>> ratio, error
    (2.0, 0.0)
    """
    ratio = float(above.mean() / below.mean())
    return ratio, standard_error(above - ratio * below) / abs(float(below.mean()))


def slope_of_means(values: Floats, factor: float) -> tuple[float, float]:
    """Return the exponent e such that the mean falls like time to the power -e, and its standard error.

    The columns of `values` are two times, the second `factor` times the first.
    """
    ratio, error = ratio_of_means(values[:, 1], values[:, 0])
    return float(-np.log(ratio) / np.log(factor)), float(error / ratio / np.log(factor))
