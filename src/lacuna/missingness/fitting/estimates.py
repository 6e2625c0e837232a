"""Shares with standard errors, and a test of independence, both from sums over blocks of rows.

Rows of a log follow each other, so neither masks nor values are independent. Sums over long blocks nearly are. With G
blocks and the residuals r_t of a share p̂ over n rows,

    se(p̂)² = G/(G − 1) · Σ_g (Σ_{t in g} r_t)² / n²

The test asks whether the value of a component i that is seen is related to whether another, j, is hidden. Over the rows
where i is seen, and for every value v of it but the last,

    u_tv = (m_tj − m̂_tj) (1[x_ti = v] − x̂_tv)

has mean 0 if the missingness of j does not depend on the value of i. Hotelling's T² of the sums of u over blocks tests
that: it is Little's idea (observed values must be alike whatever is missing) for discrete values, one pair of
components at a time, with errors that allow for dependence in time.

m̂ and x̂ are least-squares fits on the past masks. Without them the test is wrong where masks last: an agent acts on what
it sees, so what was hidden a moment ago is related both to the state it is in now and to what is hidden now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.missingness.fitting.mask_log import Flags, Floats, Integers

_LEAST_ROWS, _LEAST_EVENTS = 20, 10
"""What a value needs to be a group of its own in a test: rows, and rows expected to be hidden and to be seen."""


class Estimate(NamedTuple):
    """A share, its standard error, and the number of rows it is a share of."""

    share: float
    se: float
    rows: int


class Score(NamedTuple):
    """An F statistic, its degrees of freedom and its p-value."""

    statistic: float
    df: tuple[int, int]
    p: float


def share_of(hit: Flags, among: Flags, blocks: Integers) -> Estimate | None:
    """Share of the rows `among` that are a `hit`, with a standard error over blocks; None if there are no rows."""
    n = int(among.sum())
    if n == 0:
        return None
    p = float(hit[among].mean())
    where, together = np.unique(blocks[among], return_inverse=True)
    G = where.size
    if p in (0.0, 1.0) or G < 2:
        return Estimate(p, boundary_se(p * n, n), n)
    sums = np.bincount(together, hit[among] - p)
    return Estimate(p, float(np.sqrt(G / (G - 1) * (sums**2).sum()) / n), n)


def boundary_se(hits: float, n: float) -> float:
    """Standard error of a share with two hits and two misses added (Agresti and Coull), so that none is 0."""
    p = (hits + 2) / (n + 4)
    return float(np.sqrt(p * (1 - p) / (n + 4)))


def independence(y: Flags, values: Integers, given: Floats, blocks: Integers) -> Score | None:
    """Test whether `y` is related to `values`, given the columns of `given`; None if nothing can be compared."""
    together = np.unique(blocks, return_inverse=True)[1]
    G = int(together.max(initial=-1)) + 1
    rarest = min(float(y.mean()), 1 - float(y.mean())) if y.size else 0.0
    if rarest == 0 or G < 10:
        return None
    group = _common(values, max(_LEAST_ROWS, _LEAST_EVENTS / rarest), most=1 + G // 5)
    q = int(group.max(initial=0))
    if q == 0:
        return None
    basis = np.column_stack([np.ones(y.size), given])
    targets = np.column_stack([y, *(group == v for v in range(q))]).astype(np.float64)
    # By normal equations, many times faster for thousands of rows and a few columns between 0 and 1.
    left = targets - basis @ (np.linalg.pinv(basis.T @ basis, hermitian=True) @ (basis.T @ targets))
    products = left[:, :1] * left[:, 1:]
    sums: Floats = np.stack([np.bincount(together, products[:, v], minlength=G) for v in range(q)], axis=1, dtype=float)
    return _hotelling(sums)


def _hotelling(sums: Floats) -> Score | None:
    from scipy.stats import f  # noqa: PLC0415  heavy

    G, q = sums.shape
    centred = sums - sums.mean(axis=0)
    spread = centred.T @ centred * G / (G - 1)
    total = sums.sum(axis=0)
    q = int(np.linalg.matrix_rank(spread))
    if q == 0:
        return None
    t2 = float(total @ np.linalg.pinv(spread) @ total)
    statistic = t2 * (G - q) / ((G - 1) * q)
    return Score(statistic, (q, G - q), float(f.sf(statistic, q, G - q)))


def _common(values: Integers, least: float, most: int) -> Integers:
    """Number the values by frequency; those that are rare, or beyond the `most` frequent, are the last together."""
    found, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    kept = order[counts[order] >= least]
    kept = kept if len(kept) == found.size <= most else kept[: most - 1]
    number = np.full(found.size, len(kept), dtype=np.int64)
    number[kept] = np.arange(len(kept))
    # The rare ones together may still be too few; then they join the last of the others.
    if 0 < counts[number == len(kept)].sum() < least:
        number = np.minimum(number, max(len(kept) - 1, 0))
    groups: NDArray[np.int64] = number[inverse]
    return groups


def log_likelihood(hits: float, n: float) -> float:
    """Log-likelihood of a share at its estimate."""
    return float(sum(k * np.log(k / n) for k in (hits, n - hits) if k > 0))
