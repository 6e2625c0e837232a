"""How a contract fails, and when a frequency cannot be chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

FALSE_ALARM = 1e-6
"""Probability that a check of frequencies, all its comparisons together, fails although nothing is wrong."""

DRAWS = 2_000_000
"""How many draws one check of frequencies makes, about."""

_MAX_ROWS = 1000

Integers = NDArray[np.int64]


class CheckFailedError(AssertionError):
    """A contract does not hold; the message names the likely cause."""


def sample_of(n: int) -> Integers:
    """All of 0 … n-1, or as many as can be checked, evenly spread."""
    return np.arange(n) if n <= _MAX_ROWS else np.linspace(0, n - 1, _MAX_ROWS).astype(np.int64)


def improbable(counts: Integers, totals: Integers, probability: NDArray[np.float64]) -> int:
    """Position of a count that cannot be chance, by the exact binomial tails and Bonferroni; -1 if there is none."""
    tails = np.minimum(binom.cdf(counts, totals, probability), binom.sf(counts - 1, totals, probability))
    worst = int(np.argmin(tails))
    return worst if tails[worst] < FALSE_ALARM / (2 * tails.size) else -1
