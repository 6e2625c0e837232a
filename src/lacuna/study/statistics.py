"""Means over trials, paired differences and ratios, and interquartile means, with intervals by Student's t.

Many differences at once are judged by their p values, corrected by Holm's method.

An interval knows only the kinds of trials that are in its sample. If no trial of the sample got stuck, its interval is
around the mean of those that go well; `unseen_share` says how many may get stuck all the same. `outliers` finds trials
that got stuck, if there are some in the sample.

How often the intervals hold the truth, on normal data and on figures of real runs, is printed by
``python benchmarks/coverage.py``; how often where some trials get stuck, by ``python benchmarks/stuck.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lacuna.quantities import counted, number_text
from lacuna.run.measures import standard_error

LEVEL = 0.95
"""The confidence level of intervals."""

ROUNDING = 1e-9
"""Numbers that differ by less than this share of their size are taken for equal: sums of many rewards round."""

FAR, FEWEST = 10.0, 6
"""An outlier lies this many interquartile ranges beyond the quartiles; fewer trials than this do not tell.

Of samples of 10 normal values 3 in 10,000 have one.
"""

Values: TypeAlias = Sequence[float] | NDArray[Any]
_Floats: TypeAlias = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate, the bounds of its interval, and the number of values behind it.

    The bounds are None where the values say nothing about their spread: a single value, or values that are all equal.
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
        Without bounds for a single value, and where all values are equal: their spread is unknown. It holds the truth
        less often than `level` says for few and skewed values, and far less often where a method gets stuck so rarely
        that no trial shows it.

    Examples
    --------
    >>> found = mean_interval([84.0, 86.0, 88.0])
    >>> f"{found.estimate}, between {found.low:.2f} and {found.high:.2f}"
    '86.0, between 81.03 and 90.97'
    >>> mean_interval([84.0])
    Interval(estimate=84.0, low=None, high=None, n=1)
    """
    x = _finite(values, "values")
    return _mean_interval(x, level, float(np.abs(x).max()))


def _mean_interval(x: _Floats, level: float, size: float) -> Interval:
    """The interval of a mean of numbers that were computed from numbers of some size."""
    _check(level)
    if _equal(x, size):
        # A sum of equal numbers may round away from them.
        return Interval(float(x[0]), None, None, x.size)
    return _student(float(x.mean()), standard_error(x), x.size - 1, level, x.size)


def paired_difference(a: Values, b: Values, level: float = LEVEL) -> Interval:
    """Estimate by how much the mean of `a` exceeds that of `b`, trial by trial.

    Both hold one value per trial, in the same order of trials: what a trial's streams do to both methods cancels out.

    Examples
    --------
    >>> paired_difference([84.0, 86.0, 90.0], [80.0, 83.0, 85.0]).estimate
    4.0
    """
    x, y = _pairs(a, b)
    return _mean_interval(x - y, level, _size(x, y))


def paired_ratio(a: Values, b: Values, level: float = LEVEL) -> Interval:
    """Estimate the ratio of the mean of `a` to that of `b`, trial by trial, with Fieller's interval.

    It holds every ratio r for which the mean of ``a - r b`` may be 0 by Student's t, so it is exact for normal values.
    There are no bounds where the mean of `b` may be 0 itself, and where the ratio is the same in every trial.

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
    if n == 1 or under == 0 or _equal(x - estimate * y, _size(x, y)):
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

    Differences that are all the same say nothing about their spread, so t does not apply. If they are 0 the p value is
    1. Otherwise it is that of the sign test: n differences have one sign by chance with probability ``2**(1 - n)``,
    which is 1 for a single trial, ½ for two, and at most 5 % from six on.

    Examples
    --------
    >>> round(paired_p_value([84.0, 86.0, 90.0], [80.0, 83.0, 85.0]), 4)
    0.0202
    >>> paired_p_value([5.0, 6.0], [3.0, 4.0])
    0.5
    """
    x, y = _pairs(a, b)
    apart, size = x - y, _size(x, y)
    if _equal(apart, size):
        nothing = abs(apart[0]) <= ROUNDING * size
        # Never 0, however many trials there are.
        return 1.0 if nothing else float(2.0 ** max(1 - apart.size, -1000))
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
    The interval is from the winsorised variance. There are no bounds if the middle values are all equal: they then say
    nothing about the spread.

    Examples
    --------
    >>> interquartile_mean([1.0, 2.0, 3.0, 4.0, 100.0]).estimate
    3.0
    """
    x = np.sort(_finite(values, "values"))
    _check(level)
    n, cut = x.size, x.size // 4
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
    if _equal(without, _size(x, y)):
        return Interval(estimate, None, None, n)
    error = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
    return _student(estimate, error, n - 1, level, n)


class Outliers(NamedTuple):
    """The trials that lie far from all others, and the median, which they do not move."""

    positions: tuple[int, ...]
    below: int
    """How many of them lie below the others."""
    median: float
    n: int

    @property
    def sentence(self) -> str:
        """What to know of a mean over these trials; empty if there are no outliers.

        Examples
        --------
        >>> outliers([84.0, 86.0, 85.0, 87.0, 86.0, -4900.0]).sentence
        '1 of 6 trials lies far below the others; the median is 85.5'
        """
        k = len(self.positions)
        if not k:
            return ""
        side = {k: "below", 0: "above"}.get(self.below, "from")
        median = number_text(self.median, ".4g")
        return f"{k} of {self.n} trials {'lies' if k == 1 else 'lie'} far {side} the others; the median is {median}"


def outliers(values: Values) -> Outliers:
    """Find the trials that lie far from the others, such as one in which a method got stuck.

    They lie more than `FAR` interquartile ranges below the first or above the third quartile. A mean with such a trial
    says little of a usual trial, and its interval is wide. Fewer than `FEWEST` trials have none.

    Parameters
    ----------
    values
        One finite number per trial.

    Examples
    --------
    >>> outliers([84.0, 86.0, 85.0, 87.0, 86.0, -4900.0])
    Outliers(positions=(5,), below=1, median=85.5, n=6)
    """
    x = _finite(values, "values")
    first, median, third = (float(q) for q in np.quantile(x, [0.25, 0.5, 0.75]))
    reach = FAR * max(third - first, ROUNDING * float(np.abs(x).max()))
    far = ((x < first - reach) | (x > third + reach)) & (x.size >= FEWEST)
    found = np.flatnonzero(far)
    return Outliers(tuple(found.tolist()), int((x[found] < first).sum()), median, x.size)


def remark(values: Values) -> str:
    """Say what a mean with its interval does not show: equal values, or trials far from the others; else nothing.

    Examples
    --------
    >>> remark([2.0, 2.0, 2.0]), remark([1.0, 2.0, 3.0])
    ('the same in all 3 trials, so of unknown spread', '')
    """
    x = _finite(values, "values")
    if x.size > 1 and _equal(x, float(np.abs(x).max())):
        return f"the same in all {x.size} trials, so of unknown spread"
    return outliers(x).sentence


def unseen_share(n: int) -> float:
    """Return the largest share of trials that may get stuck if `n` trials show none, with a confidence of 95 %.

    It is about 3/n.

    Examples
    --------
    >>> round(unseen_share(10), 3), round(unseen_share(160), 3)
    (0.259, 0.019)
    """
    return float(1 - (1 - LEVEL) ** (1 / n))


def on_unseen(n: int) -> str:
    """Say what `n` trials do not show.

    Examples
    --------
    >>> on_unseen(24)
    'Intervals and p values hold for trials like these: a method that gets stuck in up to 12 % of runs may not do so in
    any of 24 trials.'
    """
    return (
        f"Intervals and p values hold for trials like these: a method that gets stuck in up to "
        f"{100 * unseen_share(n):.2g} % of runs may not do so in any of {counted(n, 'trial')}."
    )


def _equal(x: _Floats, size: float) -> bool:
    """Whether numbers are equal but for rounding, if they were computed from numbers of some size."""
    return float(x.max() - x.min()) <= ROUNDING * size


def _size(x: _Floats, y: _Floats) -> float:
    """The largest absolute value of two tables of numbers."""
    return float(max(np.abs(x).max(), np.abs(y).max()))


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
