"""Means over trials with intervals, paired differences, interquartile means, and how often one method beats another.

How often the intervals hold the truth, on normal data and on figures of real runs, is printed by
``python benchmarks/coverage.py``; the defaults are what held best there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

Kind = Literal["t", "studentised", "bootstrap"]
KINDS: tuple[Kind, ...] = get_args(Kind)

RESAMPLES = 9_999

Values: TypeAlias = Sequence[float] | NDArray[Any]
_Floats: TypeAlias = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate, the bounds of its interval, and the number of values behind it.

    The bounds are None where the values cannot give any: from one value, or where a resampling interval is unbounded.
    """

    estimate: float
    low: float | None
    high: float | None
    n: int


def mean_interval(
    values: Values, level: float = 0.95, kind: Kind = "studentised", seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """Estimate a mean over trials, with an interval.

    Parameters
    ----------
    values
        One finite number per trial.
    level
        Share of studies in which the interval should hold the true mean.
    kind
        ``"studentised"``: bootstrap-t. It holds as well as t for normal values and better for skewed ones, at the price
        of width (a third more at 5 trials, hardly any at 30); below 4 trials, or with many ties, it has no bounds.
        ``"t"``: Student's t, exact for normal values, from 2 trials on. ``"bootstrap"``: BCa of scipy, far too narrow
        for few trials.
    seed, resamples
        Random numbers and how many resamples, for the two bootstraps. The same seed gives the same interval.

    Returns
    -------
    Interval
        Without bounds for a single value; of width zero if all values are equal. Where a method fails only now and
        then, no kind holds its level from trials among which there was no failure.

    Examples
    --------
    >>> found = mean_interval([84.0, 86.0, 88.0], kind="t")
    >>> f"{found.estimate}, between {found.low:.2f} and {found.high:.2f}"
    '86.0, between 81.03 and 90.97'
    >>> mean_interval([84.0])
    Interval(estimate=84.0, low=None, high=None, n=1)
    """
    x = _finite(values, "values")
    _check(level, kind, KINDS, resamples)
    estimate = _mean(x)
    if x.size == 1:
        return Interval(estimate, None, None, 1)
    if x.min() == x.max():
        return Interval(estimate, estimate, estimate, x.size)
    if kind == "t":
        return _student(estimate, _standard_error(x), x.size - 1, level, x.size)
    if kind == "studentised":
        return _studentised(x, level, seed, resamples)
    return _bca(x, np.mean, estimate, level, seed, resamples)


def paired_difference(
    a: Values, b: Values, level: float = 0.95, kind: Kind = "studentised", seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """Estimate by how much the mean of `a` exceeds that of `b`, trial by trial.

    Both hold one value per trial, in the same order of trials: what a trial's streams do to both methods cancels out.
    The other parameters are those of `mean_interval`.

    Examples
    --------
    >>> paired_difference([84.0, 86.0, 90.0], [80.0, 83.0, 85.0]).estimate
    4.0
    """
    x, y = _finite(a, "a"), _finite(b, "b")
    _same_length(x, y)
    return mean_interval(x - y, level, kind, seed, resamples)


def paired_ratio(a: Values, b: Values, level: float = 0.95) -> Interval:
    """Estimate the ratio of the mean of `a` to that of `b`, trial by trial, with Fieller's interval.

    It holds every ratio r for which the mean of ``a - r b`` may be 0 by Student's t, so it is exact for normal values.
    There are no bounds where the mean of `b` may be 0 itself.

    Examples
    --------
    >>> found = paired_ratio([1.0, 2.0, 3.0, 2.0], [4.0, 4.5, 5.0, 4.5])
    >>> f"{found.estimate:.3f}, between {found.low:.3f} and {found.high:.3f}"
    '0.444, between 0.182 and 0.641'
    """
    x, y = _finite(a, "a"), _finite(b, "b")
    _same_length(x, y)
    _check(level, "t", KINDS, RESAMPLES)
    n, over, under = x.size, _mean(x), _mean(y)
    estimate = over / under if under != 0 else float("nan")
    if n == 1 or under == 0:
        return Interval(estimate, None, None, n)
    t2 = float(stats.t.ppf((1 + level) / 2, n - 1)) ** 2 / n
    (xx, xy), (_, yy) = np.cov(x, y)
    # The mean of a - r b is t standard errors from 0 at the roots of this parabola in r.
    square, half, rest = under**2 - t2 * yy, over * under - t2 * xy, over**2 - t2 * xx
    if square <= 0:
        return Interval(estimate, None, None, n)
    reach = np.sqrt(max(half**2 - square * rest, 0.0))
    return Interval(estimate, float((half - reach) / square), float((half + reach) / square), n)


def interquartile_mean(
    values: Values, level: float = 0.95, kind: Literal["t", "bootstrap"] = "t", seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:  # fmt: skip
    """Estimate the mean of the middle half of the values, with an interval.

    The ``n // 4`` smallest and as many of the largest values are left out, as rliable and ``scipy.stats.trim_mean`` do.
    With ``kind="t"`` the interval is Tukey and McLaughlin's, from the winsorised variance; with ``"bootstrap"`` BCa.
    There are no bounds if the middle values are all equal while others differ: they then say nothing about the spread.

    Examples
    --------
    >>> interquartile_mean([1.0, 2.0, 3.0, 4.0, 100.0]).estimate
    3.0
    """
    x = np.sort(_finite(values, "values"))
    _check(level, kind, ("t", "bootstrap"), resamples)
    estimate, n, cut = float(_middle_mean(x)), x.size, x.size // 4
    if n == 1:
        return Interval(estimate, None, None, 1)
    if x[0] == x[-1]:
        return Interval(estimate, estimate, estimate, n)
    if kind == "bootstrap":
        return _bca(x, _middle_mean, estimate, level, seed, resamples)
    middle = n - 2 * cut
    winsorised = np.clip(x, x[cut], x[n - 1 - cut])
    if winsorised[0] == winsorised[-1]:
        return Interval(estimate, None, None, n)
    return _student(estimate, _standard_error(winsorised) * n / middle, middle - 1, level, n)


def probability_of_improvement(a: Values, b: Values, level: float = 0.95, *, paired: bool = False) -> Interval:
    """Estimate how probable it is that a trial of `a` gives more than one of `b`; a tie counts one half.

    Parameters
    ----------
    a, b
        One value per trial of each method; if `paired`, in the same order of trials.
    level
        Share of studies in which the interval should hold the true probability.
    paired
        Compare within trials: both methods on the same streams. Otherwise every trial of `a` is compared with every
        trial of `b`, which asks about trials made independently (Mann and Whitney's U over the number of pairs).

    Returns
    -------
    Interval
        Newcombe's method 5 (2006) for independent trials, Wilson's score interval for paired ones. Neither shrinks to
        a point when one method wins every time; both take no account of how often there are ties, and are then too
        wide. `n` counts the trials: of both methods if independent, pairs if paired.

    Examples
    --------
    >>> probability_of_improvement([3.0, 5.0], [4.0, 1.0]).estimate
    0.75
    >>> probability_of_improvement([3.0, 5.0], [4.0, 1.0], paired=True).estimate
    0.5
    """
    x, y = _finite(a, "a"), _finite(b, "b")
    _check(level, "t", KINDS, RESAMPLES)
    if paired:
        _same_length(x, y)
        estimate = float(np.mean((np.sign(x - y) + 1) / 2))
        return Interval(estimate, *_wilson(estimate, x.size, level), x.size)
    others = np.sort(y)
    below = np.searchsorted(others, x, side="left")
    below_or_equal = np.searchsorted(others, x, side="right")
    estimate = float((below + below_or_equal).sum() / (2 * x.size * y.size))
    return Interval(estimate, *_newcombe(estimate, x.size, y.size, level), x.size + y.size)


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


def _same_length(x: _Floats, y: _Floats) -> None:
    if x.size != y.size:
        raise ValueError(f"a has {x.size} values and b has {y.size}; pairs need one of each per trial")


def _check(level: float, kind: str, kinds: Sequence[str], resamples: int) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level is {level!r}; it must be above 0 and below 1, e.g. 0.95")
    if kind not in kinds:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(kinds)}")
    if resamples < 2 / (1 - level):
        raise ValueError(f"resamples is {resamples}; an interval at level {level} needs at least {2 / (1 - level):.0f}")


def _mean(x: _Floats) -> float:
    # A sum of equal numbers may round away from them; no mean lies outside the values.
    return float(np.clip(x.mean(), x.min(), x.max()))


def _standard_error(x: _Floats) -> float:
    return float(x.std(ddof=1) / np.sqrt(x.size))


def _student(estimate: float, error: float, freedom: int, level: float, n: int) -> Interval:
    reach = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    return Interval(estimate, estimate - reach, estimate + reach, n)


def _studentised(x: _Floats, level: float, seed: int, resamples: int) -> Interval:
    n, estimate = x.size, _mean(x)
    sample = x[np.random.default_rng(seed).integers(0, n, size=(resamples, n))]
    error = sample.std(axis=1, ddof=1) / np.sqrt(n)
    # Rounding can leave equal values a tiny spread. A resample without any lies infinitely many errors away.
    error[sample.min(axis=1) == sample.max(axis=1)] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num((sample.mean(axis=1) - estimate) / error, nan=0.0, posinf=np.inf, neginf=-np.inf)
    t.sort()
    # Order statistics rather than interpolated quantiles: infinite ones must stay infinite.
    rank = int((resamples + 1) * (1 - level) / 2 + 1e-9)
    far_low, far_high = float(t[rank - 1]), float(t[resamples - rank])
    scale = _standard_error(x)
    low, high = estimate - far_high * scale, estimate - far_low * scale
    bounded = np.isfinite(low) and np.isfinite(high)
    return Interval(estimate, low, high, n) if bounded else Interval(estimate, None, None, n)


def _bca(
    x: _Floats, statistic: Callable[..., Any], estimate: float, level: float, seed: int, resamples: int
) -> Interval:
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        found = stats.bootstrap(
            (x,), statistic, n_resamples=resamples, vectorized=True, axis=-1, confidence_level=level, method="BCa",
            rng=np.random.default_rng(seed),
        )  # fmt: skip
    low, high = (float(bound) for bound in found.confidence_interval)
    bounded = np.isfinite(low) and np.isfinite(high)
    return Interval(estimate, low, high, x.size) if bounded else Interval(estimate, None, None, x.size)


def _middle_mean(x: _Floats, axis: int = -1) -> Any:
    n = x.shape[axis]
    middle = np.take(np.sort(x, axis=axis), np.arange(n // 4, n - n // 4), axis=axis)
    # As in `_mean`: rounding must not carry it outside.
    return np.clip(middle.mean(axis=axis), middle.min(axis=axis), middle.max(axis=axis))


def _normal(level: float) -> float:
    return float(stats.norm.ppf((1 + level) / 2))


def _wilson(share: float, n: int, level: float) -> tuple[float | None, float | None]:
    if n < 2:
        return None, None
    z2 = _normal(level) ** 2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(0.0, float(centre - reach)), min(1.0, float(centre + reach))


def _newcombe(share: float, m: int, n: int, level: float) -> tuple[float | None, float | None]:
    """Bounds where the distance to the estimate is z standard errors, these taken at the bound (Newcombe 2006)."""
    if min(m, n) < 2:
        return None, None
    z, spare = _normal(level), (m + n) / 2 - 1

    def excess(p: float, estimate: float) -> float:
        variance = p * (1 - p) / (m * n) * (1 + spare * ((1 - p) / (2 - p) + p / (1 + p)))
        return estimate - p - z * float(np.sqrt(variance))

    def lower(estimate: float) -> float:
        # At 1 the standard error vanishes, which makes 1 a root; the one wanted lies below.
        return 0.0 if estimate == 0 else float(optimize.brentq(excess, 0.0, min(estimate, 1 - 1e-12), (estimate,)))

    return lower(share), 1 - lower(1 - share)
