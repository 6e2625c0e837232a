"""Means over trials, paired differences and ratios, and interquartile means, with intervals by Student's t.

Many differences at once are judged by their p values, corrected by Holm's method.

How often the intervals hold the truth, on normal data and on figures of real runs, is printed by
``python benchmarks/coverage.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lacuna.running.measures import standard_error

LEVEL = 0.95

Values: TypeAlias = Sequence[float] | NDArray[Any]
_Floats: TypeAlias = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate, the bounds of its interval, and the number of values behind it.

    The bounds are None where the values cannot give any, for example from a single value.
    """

    estimate: float
    low: float | None
    high: float | None
    n: int


def mean_interval(values: Values, level: float = LEVEL) -> Interval:
    """Estimate a mean over trials, with Student's t interval: exact for normal values.

    Parameters
    ----------
    values
        One finite number per trial.
    level
        Share of studies in which the interval should hold the true mean.

    Returns
    -------
    Interval
        Without bounds for a single value; of width zero if all values are equal. It holds the truth less often than
        `level` says for few and skewed values, and where a method fails so rarely that no trial shows it.

    Examples
    --------
    >>> found = mean_interval([84.0, 86.0, 88.0])
    >>> f"{found.estimate}, between {found.low:.2f} and {found.high:.2f}"
    '86.0, between 81.03 and 90.97'
    >>> mean_interval([84.0])
    Interval(estimate=84.0, low=None, high=None, n=1)
    """
    x = _finite(values, "values")
    _check(level)
    mean, error = float(x.mean()), standard_error(x)
    # A sum of equal numbers may round away from them, and would leave them a tiny spread.
    if x.min() == x.max():
        mean, error = float(x[0]), None if x.size == 1 else 0.0
    return _student(mean, error, x.size - 1, level, x.size)


def paired_difference(a: Values, b: Values, level: float = LEVEL) -> Interval:
    """Estimate by how much the mean of `a` exceeds that of `b`, trial by trial.

    Both hold one value per trial, in the same order of trials: what a trial's streams do to both methods cancels out.

    Examples
    --------
    >>> paired_difference([84.0, 86.0, 90.0], [80.0, 83.0, 85.0]).estimate
    4.0
    """
    x, y = _pairs(a, b)
    return mean_interval(x - y, level)


def paired_ratio(a: Values, b: Values, level: float = LEVEL) -> Interval:
    """Estimate the ratio of the mean of `a` to that of `b`, trial by trial, with Fieller's interval.

    It holds every ratio r for which the mean of ``a - r b`` may be 0 by Student's t, so it is exact for normal values.
    There are no bounds where the mean of `b` may be 0 itself.

    Examples
    --------
    >>> found = paired_ratio([1.0, 2.0, 3.0, 2.0], [4.0, 4.5, 5.0, 4.5])
    >>> f"{found.estimate:.3f}, between {found.low:.3f} and {found.high:.3f}"
    '0.444, between 0.182 and 0.641'
    """
    x, y = _pairs(a, b)
    _check(level)
    n, over, under = x.size, float(x.mean()), float(y.mean())
    estimate = over / under if under != 0 else float("nan")
    if n == 1 or under == 0:
        return Interval(estimate, None, None, n)
    t2 = t_quantile(level, n - 1) ** 2 / n
    (xx, xy), (_, yy) = np.cov(x, y)
    # The mean of a - r b is t standard errors from 0 at the roots of this parabola in r.
    square, half, rest = under**2 - t2 * yy, over * under - t2 * xy, over**2 - t2 * xx
    if square <= 0:
        return Interval(estimate, None, None, n)
    reach = np.sqrt(max(half**2 - square * rest, 0.0))
    return Interval(estimate, float((half - reach) / square), float((half + reach) / square), n)


def paired_p_value(a: Values, b: Values) -> float:
    """Return the p value of Student's paired t test, on both sides, of no difference between the means of `a` and `b`.

    It is 1 for a single trial, which says nothing, and for differences that are all 0; it is 0 for differences that are
    all the same otherwise.

    Examples
    --------
    >>> round(paired_p_value([84.0, 86.0, 90.0], [80.0, 83.0, 85.0]), 4)
    0.0202
    """
    x, y = _pairs(a, b)
    apart = x - y
    if apart.min() == apart.max():
        return 1.0 if apart.size == 1 or apart[0] == 0 else 0.0
    error = apart.std(ddof=1) / np.sqrt(apart.size)
    return float(2 * stats.t.sf(abs(apart.mean()) / error, apart.size - 1))


def holm(p_values: Values) -> list[float]:
    """Correct the p values of several tests by Holm's method, in their order.

    Call a difference clear if its corrected value is at most 5 %. Then the probability of any false call is at most
    5 %, even if the tests are dependent.

    Examples
    --------
    >>> holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    p = _finite(p_values, "p_values")
    if (p < 0).any() or (p > 1).any():
        raise ValueError(f"p_values lie between {p.min()} and {p.max()}; they must lie between 0 and 1")
    order = np.argsort(p, kind="stable")
    corrected = np.empty(p.size)
    # The smallest is multiplied by the number of tests, the next by one less, and so on; never below an earlier one.
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return [float(value) for value in corrected]


def interquartile_mean(values: Values, level: float = LEVEL) -> Interval:
    """Estimate the mean of the middle half of the values, with Tukey and McLaughlin's interval.

    The ``n // 4`` smallest and as many of the largest values are left out, as rliable and ``scipy.stats.trim_mean`` do.
    The interval is from the winsorised variance. There are no bounds if the middle values are all equal while others
    differ: they then say nothing about the spread.

    Examples
    --------
    >>> interquartile_mean([1.0, 2.0, 3.0, 4.0, 100.0]).estimate
    3.0
    """
    x = np.sort(_finite(values, "values"))
    _check(level)
    n, cut = x.size, x.size // 4
    if x[0] == x[-1]:
        return mean_interval(x, level)
    middle = x[cut : n - cut]
    if middle[0] == middle[-1]:
        return Interval(float(middle[0]), None, None, n)
    error = standard_error(np.clip(x, middle[0], middle[-1]) * (n / middle.size))
    return _student(float(middle.mean()), error, middle.size - 1, level, n)


def tasks_interquartile_mean(scores: NDArray[Any], level: float = LEVEL) -> Interval:
    """Estimate the mean of the middle half of all scores, in all tasks together.

    Parameters
    ----------
    scores
        A row per trial, a column per task. What a trial's streams do to all its tasks is one chance event.
    level
        Share of studies in which the interval should hold the truth.

    Returns
    -------
    Interval
        By Student's t and the jackknife over trials: the tasks count as given.

    Examples
    --------
    >>> tasks_interquartile_mean(np.array([[0.0, 0.5, 0.9], [0.1, 0.6, 0.8]])).estimate
    0.5
    """
    return tasks_interquartile_difference(scores, np.zeros_like(scores), level)


def tasks_interquartile_difference(a: NDArray[Any], b: NDArray[Any], level: float = LEVEL) -> Interval:
    """Estimate by how much the interquartile mean over tasks of `a` exceeds that of `b`, on the same trials.

    Examples
    --------
    >>> found = tasks_interquartile_difference(np.array([[0.5, 0.9], [0.6, 1.0]]), np.array([[0.1, 0.3], [0.2, 0.4]]))
    >>> round(found.estimate, 3)
    0.5
    """
    _check(level)
    x, y = (np.asarray(scores, dtype=np.float64) for scores in (a, b))
    if x.ndim != 2 or x.shape != y.shape or not x.size or not np.isfinite([x, y]).all():
        raise ValueError(
            f"scores have the shapes {x.shape} and {y.shape}; they must be two tables of finite numbers of one shape, "
            "a row per trial"
        )
    n = x.shape[0]
    estimate = float(_middle(x) - _middle(y))
    if n == 1:
        return Interval(estimate, None, None, 1)
    without = np.array([_middle(np.delete(x, i, 0)) - _middle(np.delete(y, i, 0)) for i in range(n)])
    error = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
    return _student(estimate, error, n - 1, level, n)


def _middle(values: _Floats) -> float:
    """The mean of the middle half of all values."""
    return float(stats.trim_mean(values, 0.25, axis=None))


def t_quantile(level: float, freedom: int) -> float:
    """Return the number of standard errors that an interval reaches to either side of a mean."""
    return float(stats.t.ppf((1 + level) / 2, freedom))


def _student(estimate: float, error: float | None, freedom: int, level: float, n: int) -> Interval:
    if error is None:
        return Interval(estimate, None, None, n)
    reach = t_quantile(level, freedom) * error
    return Interval(estimate, estimate - reach, estimate + reach, n)


def _finite(values: Values, name: str) -> _Floats:
    try:
        x = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold one number per trial: {error}") from error
    if x.ndim != 1:
        raise ValueError(f"{name} has {x.ndim} dimensions; it must be a list of numbers, one per trial")
    if x.size == 0:
        raise ValueError(f"{name} is empty; an estimate needs at least one trial")
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size:
        raise ValueError(
            f"{name}[{bad[0]}] is {x[bad[0]]}; every value must be a finite number"
            " (a run without a completed episode has no figure per episode)"
        )
    return x


def _pairs(a: Values, b: Values) -> tuple[_Floats, _Floats]:
    x, y = _finite(a, "a"), _finite(b, "b")
    if x.size != y.size:
        raise ValueError(f"a has {x.size} values and b has {y.size}; pairs need one of each per trial")
    return x, y


def _check(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level is {level!r}; it must be above 0 and below 1, e.g. 0.95")
