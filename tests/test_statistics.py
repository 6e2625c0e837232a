"""Intervals: how often they hold the truth, closed forms, other people's implementations, and the edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lacuna.study.statistics import (
    FEWEST,
    ROUNDING,
    Interval,
    holm,
    interquartile_mean,
    mean_interval,
    outliers,
    paired_difference,
    paired_p_value,
    paired_ratio,
    tasks_interquartile_difference,
)

STUDIES = 2_000
FLOATS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


def coverage(intervals: list[Interval], truth: float) -> float:
    return float(np.mean([i.low is not None and i.high is not None and i.low <= truth <= i.high for i in intervals]))


def margin(share: float = 0.95, studies: int = STUDIES) -> float:
    """Four standard errors of a share found in that many simulated studies: 2 points for 95 % of 2,000."""
    return 4 * math.sqrt(share * (1 - share) / studies)


def reach(interval: Interval) -> float:
    assert interval.low is not None
    assert interval.high is not None
    return interval.high - interval.low


# How often the truth is inside


@pytest.mark.parametrize("n", [5, 30])
def test_95_percent_intervals_for_a_normal_mean_hold_it_in_93_to_97_percent_of_studies(n: int) -> None:
    values = np.random.default_rng(n).normal(70.0, 12.0, size=(STUDIES, n))
    found = coverage([mean_interval(x) for x in values], 70.0)
    assert margin() < 0.0196
    assert abs(found - 0.95) <= margin()


@pytest.mark.parametrize("n", [5, 30])
def test_95_percent_intervals_for_paired_differences_hold_them_in_93_to_97_percent_of_studies(n: int) -> None:
    rng = np.random.default_rng(100 + n)
    trial = rng.normal(0.0, 20.0, size=(STUDIES, n))
    a, b = trial + rng.normal(75.0, 5.0, size=trial.shape), trial + rng.normal(72.0, 9.0, size=trial.shape)
    intervals = [paired_difference(x, y) for x, y in zip(a, b, strict=True)]
    assert abs(coverage(intervals, 3.0) - 0.95) <= margin()
    # Pairing takes out what a trial does to both, sd 20: what is left has sd 10, while each alone has more than 20.
    assert np.median([reach(i) for i in intervals]) < 0.8 * np.median([reach(mean_interval(x)) for x in a])


def test_the_level_is_the_share_of_studies() -> None:
    values = np.random.default_rng(1).normal(size=(STUDIES, 8))
    for level in (0.5, 0.8, 0.99):
        found = coverage([mean_interval(x, level) for x in values], 0.0)
        assert abs(found - level) <= margin(level)


def test_on_skewed_values_the_interval_holds_too_rarely_as_its_docstring_says() -> None:
    values = np.random.default_rng(3).lognormal(0.0, 1.0, size=(STUDIES, 30))
    found = coverage([mean_interval(x) for x in values], math.exp(0.5))
    assert 0.85 < found < 0.95 - margin()


@pytest.mark.parametrize(("n", "known"), [(5, 0.927), (30, 0.944)])
def test_intervals_of_the_interquartile_mean_hold_the_centre_of_normal_values_a_little_too_rarely(
    n: int, known: float
) -> None:
    values = np.random.default_rng(10 + n).normal(3.0, 2.0, size=(STUDIES, n))
    found = coverage([interquartile_mean(x) for x in values], 3.0)
    assert abs(found - known) <= margin(known)


# Closed forms and other implementations


@given(FLOATS, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_t_interval_is_that_of_scipy(values: list[float], level: float) -> None:
    found = mean_interval(values, level)
    if max(values) - min(values) > ROUNDING * max(map(abs, values)):
        expected = stats.ttest_1samp(values, 0.0).confidence_interval(level)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-6)
    assert found.estimate == pytest.approx(np.mean(values), rel=1e-12, abs=1e-9)
    assert found.n == len(values)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=20))
def test_a_paired_difference_is_that_of_scipys_paired_test(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    if np.ptp(a - b) > 1e-6:
        expected = stats.ttest_rel(a, b).confidence_interval(0.9)
        found = paired_difference(a, b, 0.9)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-6)


@given(FLOATS)
def test_the_interquartile_mean_is_scipys_trimmed_mean(values: list[float]) -> None:
    found = interquartile_mean(values)
    assert found.estimate == pytest.approx(stats.trim_mean(values, 0.25), rel=1e-9, abs=1e-9)
    assert found.n == len(values)


def test_the_interval_of_the_interquartile_mean_follows_tukey_and_mclaughlin() -> None:
    x = np.random.default_rng(6).normal(size=23)
    winsorised = np.asarray(stats.mstats.winsorize(x, limits=(0.25, 0.25)))
    # Of 23 values 5 are cut at each end: the standard error is s_w / ((1 - 2·5/23) √23), with 23 - 10 - 1 degrees.
    error = winsorised.std(ddof=1) / ((1 - 10 / 23) * math.sqrt(23))
    far = stats.t.ppf(0.975, 12) * error
    centre = stats.trim_mean(x, 0.25)
    found = interquartile_mean(x)
    assert (found.low, found.high) == pytest.approx((centre - far, centre + far))


def test_an_outlier_moves_the_interquartile_mean_by_nothing() -> None:
    calm, wild = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5e9]
    assert interquartile_mean(calm) == interquartile_mean(wild)


# Symmetries, edges


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(-50, 50), min_size=5, max_size=12, unique=True),
    st.integers(-100, 100),
    st.sampled_from([0.25, 4.0]),
    st.sampled_from([mean_interval, interquartile_mean]),
)
def test_shifting_and_scaling_the_values_shifts_and_scales_the_interval(
    values: list[int], shift: int, scale: float, summary: Callable[..., Interval]
) -> None:
    plain = summary(np.array(values, dtype=float))
    moved = summary(np.array(values) * scale + shift)
    assert moved[:3] == pytest.approx([None if x is None else x * scale + shift for x in plain[:3]], abs=1e-6)


def test_swapping_the_methods_turns_the_interval_over() -> None:
    a, b = np.random.default_rng(9).normal(size=(2, 15))
    there, back = paired_difference(a, b), paired_difference(b, a)
    assert back.estimate == -there.estimate
    assert there.low is not None
    assert back.high == -there.low


@pytest.mark.parametrize("summary", [mean_interval, interquartile_mean])
def test_equal_values_say_nothing_about_their_spread(summary: Callable[..., Interval]) -> None:
    for n in (1, 2, 3, 10):
        assert summary([0.1] * n) == Interval(0.1, None, None, n)


@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_equal_differences_say_nothing_about_their_spread(n: int) -> None:
    b = [0.1 * i for i in range(n)]
    # Equal but for rounding: 0.1 i + 0.2 − 0.1 i is not always 0.2.
    found = paired_difference([value + 0.2 for value in b], b)
    assert found.estimate == pytest.approx(0.2)
    assert found[1:] == (None, None, n)
    assert paired_difference(b, b) == Interval(0.0, None, None, n)


def test_equal_differences_over_tasks_say_nothing_about_their_spread() -> None:
    scores = np.random.default_rng(4).normal(size=(6, 5))
    found = tasks_interquartile_difference(scores + 0.5, scores)
    assert found.estimate == pytest.approx(0.5)
    assert found[1:] == (None, None, 6)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 30, 5000])
def test_equal_differences_are_judged_by_their_signs(n: int) -> None:
    b = [0.1 * i for i in range(n)]
    for a in ([value + 0.2 for value in b], [value - 7.0 for value in b]):
        assert paired_p_value(a, b) == pytest.approx(stats.binomtest(n, n, 0.5).pvalue)
        assert paired_p_value(a, b) > 0
        assert (paired_p_value(a, b) <= 0.05) == (n >= 6)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_equal_methods_do_not_differ(n: int) -> None:
    a = np.random.default_rng(n).normal(1e6, size=n)
    assert paired_p_value(a, a) == 1.0
    assert paired_p_value(a + 1e-9, a) == 1.0  # a difference by rounding alone
    assert holm([paired_p_value(a, a)] * 3) == [1.0] * 3


def test_two_values() -> None:
    t = mean_interval([1.0, 3.0])
    # The 97.5 % quantile of t with one degree of freedom is tan(0.475 π), and the standard error is 1.
    assert t.high == pytest.approx(2 + math.tan(0.475 * math.pi))
    assert interquartile_mean([1.0, 3.0]) == t


def test_a_middle_without_spread_gives_no_interval_rather_than_a_certain_one() -> None:
    values = [1.0, 2.0, 2.0, 2.0, 9.0]
    assert interquartile_mean(values) == Interval(2.0, None, None, 5)


ESTIMATES: list[Callable[[Any], Interval]] = [
    mean_interval,
    interquartile_mean,
    lambda x: paired_difference(x, x),
    lambda x: paired_ratio([1.0], x),
]


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([], "is empty; an estimate needs at least one trial"),
        ([1.0, math.nan], r"\[1\] is nan; every value must be a finite number"),
        ([1.0, None, 2.0], r"\[1\] is nan; .*a run without a completed episode"),
        ([-math.inf], r"\[0\] is -inf; every value"),
        ([[1.0, 2.0]], "has 2 dimensions; it must be a list of numbers"),
        (["many"], "must hold one number per trial"),
    ],
)
def test_values_that_cannot_be_averaged_are_refused(
    estimate: Callable[[Any], Interval], values: Any, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        estimate(values)


def test_pairs_of_unequal_length_are_refused() -> None:
    for pair in (paired_difference, paired_ratio):
        with pytest.raises(ValueError, match="a has 2 values and b has 1; pairs need one of each per trial"):
            pair([1.0, 2.0], [1.0])


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_that_is_no_share_is_refused(level: float) -> None:
    for estimate in (mean_interval, interquartile_mean):
        with pytest.raises(ValueError, match=r"level is .*; it must be above 0 and below 1"):
            estimate([1.0, 2.0], level)
    for pair in (paired_difference, paired_ratio):
        with pytest.raises(ValueError, match=r"level is .*; it must be above 0 and below 1"):
            pair([1.0, 2.0], [2.0, 3.0], level)


@pytest.mark.parametrize(("n", "ratio"), [(5, 0.5), (30, -0.2)])
def test_intervals_of_a_paired_ratio_hold_it(n: int, ratio: float) -> None:
    rng = np.random.default_rng(9)
    studies, held = 4000, 0
    for _ in range(studies):
        both, a, b = rng.normal(size=(3, n))
        found = paired_ratio(10 * ratio + both + a, 10 + both + b)
        held += found.low is not None and found.high is not None and found.low <= ratio <= found.high
    assert held / studies == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / studies))


def test_a_ratio_to_what_may_be_nothing_has_no_bounds() -> None:
    a = [1.0, 2.0, 3.0]
    assert paired_ratio(a, [-1.0, 0.5, 1.5])[1:] == (None, None, 3)
    assert math.isnan(paired_ratio(a, [-1.0, 0.0, 1.0]).estimate)
    assert paired_ratio([1.0], [2.0]) == (0.5, None, None, 1)
    assert paired_ratio(a, [4.0, 8.0, 12.0], level=0.5) == (0.25, None, None, 3)


# Many differences at once


def test_holm_by_hand() -> None:
    # Four tests, smallest first: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, and none below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.4, 0.6]) == pytest.approx([0.8, 0.8])
    assert holm([0.9, 0.8, 0.7]) == [1.0, 1.0, 1.0]
    assert holm([0.3]) == [0.3]
    assert holm([0.02, 0.02]) == pytest.approx([0.04, 0.04])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_lies_between_no_correction_and_bonferroni_and_keeps_the_order(p_values: list[float]) -> None:
    found = holm(p_values)
    for p, corrected in zip(p_values, found, strict=True):
        assert p <= corrected <= min(len(p_values) * p, 1.0)
    order = np.argsort(p_values, kind="stable")
    assert list(np.array(found)[order]) == sorted(found)
    # Rejecting step by step, as Holm wrote it: stop at the first p above 5 % over the number of tests left.
    rejected: set[int] = set()
    for left, i in zip(range(len(p_values), 0, -1), order, strict=True):
        if p_values[i] * left > 0.05:
            break
        rejected.add(int(i))
    assert {i for i, corrected in enumerate(found) if corrected <= 0.05} == rejected


def test_holm_rarely_calls_anything_clear_where_nothing_is() -> None:
    p_values = np.random.default_rng(5).uniform(size=(STUDIES, 20))
    found = float(np.mean([min(holm(p)) <= 0.05 for p in p_values]))
    assert found <= 0.05 + margin(0.05)
    assert np.mean(p_values.min(axis=1) <= 0.05) > 0.5


def test_the_p_value_of_paired_differences_is_that_of_scipy() -> None:
    rng = np.random.default_rng(6)
    for n in (2, 5, 50):
        a, b = rng.normal(size=n), rng.normal(0.3, size=n)
        assert paired_p_value(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue)
        assert paired_p_value(b, a) == paired_p_value(a, b)


def test_the_p_value_goes_with_the_interval() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        a, b = rng.normal(0.7, size=10), rng.normal(size=10)
        found = paired_difference(a, b)
        assert found.low is not None
        assert found.high is not None
        assert (paired_p_value(a, b) < 0.05) == (found.low > 0 or found.high < 0)


def test_the_edges_of_p_values() -> None:
    assert paired_p_value([3.0], [1.0]) == 1.0
    assert paired_p_value([3.0, 4.0], [3.0, 4.0]) == 1.0
    assert paired_p_value([3.0, 4.0], [2.0, 3.0]) == 0.5
    with pytest.raises(ValueError, match="a has 2 values and b has 1"):
        paired_p_value([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match=r"lie between -0\.1 and 0\.5; they must lie between 0 and 1"):
        holm([-0.1, 0.5])
    with pytest.raises(ValueError, match="p_values is empty"):
        holm([])


# Trials that got stuck


def stuck(rng: np.random.Generator, n: int, share: float, depth: float) -> Any:
    """Normal values, of which some lie far below."""
    return rng.normal(size=n) - depth * (rng.random(n) < share)


def test_an_interval_holds_the_mean_too_rarely_where_no_trial_shows_that_some_get_stuck() -> None:
    rng = np.random.default_rng(8)
    samples = [stuck(rng, 24, 0.01, 70.0) for _ in range(STUDIES)]
    truth = -0.7
    too_high = np.array([(mean_interval(x).low or 0.0) > truth for x in samples])
    shown = np.array([bool(outliers(x).positions) for x in samples])
    # 0.99 to the power of 24: three studies of four have no stuck trial.
    assert abs(float(np.mean(~shown)) - 0.99**24) <= margin(0.99**24)
    assert float(np.mean(too_high)) > 0.5
    # Where one is in the sample, it is found, and the interval is wide enough.
    assert not (too_high & shown).any()


@pytest.mark.parametrize("n", [FEWEST, 10, 24, 160])
def test_normal_values_have_hardly_ever_outliers(n: int) -> None:
    rng = np.random.default_rng(n)
    found = [bool(outliers(x).positions) for x in rng.normal(size=(STUDIES, n))]
    assert float(np.mean(found)) <= 0.01


@given(st.lists(st.floats(-1.0, 1.0), min_size=7, max_size=40), st.sampled_from([-1e4, 1e4]), st.integers(0, 40))
def test_a_trial_far_from_all_others_is_found_where_it_stands(values: list[float], far: float, at: int) -> None:
    place = at % (len(values) + 1)
    found = outliers([*values[:place], far, *values[place:]])
    assert place in found.positions
    assert found.median == pytest.approx(np.median([*values, far]))
    assert found.below == (sum(1 for i in found.positions if i != place and values[i - (i > place)] < found.median)
                           + (far < 0))  # fmt: skip


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1.0] * 9 + [-50.0], "1 of 10 trials lies far below the others; the median is 1"),
        ([1.0, 1.1, 0.9] * 4 + [90.0, 80.0], "2 of 14 trials lie far above the others; the median is 1"),
        ([1.0, 1.1, 0.9] * 4 + [90.0, -80.0], "2 of 14 trials lie far from the others; the median is 1"),
        ([-2.5] * 9 + [-50.0], "1 of 10 trials lies far below the others; the median is −2.5"),
        ([1.0] * 10, ""),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ""),
        ([1.0, 1.0, 1.0, 1.0, -50.0], ""),
        ([3.0], ""),
        ([0.3 - 0.1 * 3 + 1e-17 * i for i in range(9)] + [0.0], ""),
    ],
)
def test_what_is_said_of_outliers(values: list[float], sentence: str) -> None:
    assert outliers(values).sentence == sentence
