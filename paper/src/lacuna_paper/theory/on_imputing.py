"""Statements on learning a transition probability from tuples that an oracle, an estimate or the model fills in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

import numpy as np

from lacuna_paper.theory.measuring import Floats, mean_of, ratio_of_means, slope_of_means
from lacuna_paper.theory.statement import Case, Formula, Measurement, statement
from lacuna_paper.theory.transitions import (
    ESTIMATED,
    INFINITE,
    ORACLE,
    RECURSIVE,
    Tuples,
    averaged_ratio,
    averages,
    estimates,
    recursive_limits,
    recursive_moments,
    tuples,
)

P = 0.3
_SKEWED = "c observed with probability 0.2, other states with 0.8"


def name_of(K: float) -> str:
    """Write K, of which 0 stands for infinity."""
    return "∞" if K == INFINITE else f"{K:.0f}"


def _at(p_o: float, K: int) -> str:
    return f"p_o = {p_o}, K = {name_of(K)}"


def _share_of_draw(case: Case) -> float:
    """1/K, which is 0 for infinitely many draws."""
    return 0.0 if case["K"] == INFINITE else 1 / case["K"]


def _squared_errors(rule: Tuples, marks: list[int], paths: int, seed: int, name: str) -> Floats:
    """Of the imputing estimate, by (path, mark)."""
    return np.asarray((estimates(rule, marks, paths, seed, name)[:, :, 0] - P) ** 2)


def _variance_ratio(what: str, case: Case, rule: Tuples, t: int, paths: int, seed: int) -> Measurement:
    """Mean squared error of the imputing estimate over that of the complete-case one, on the same paths."""
    squares = (estimates(rule, [t], paths, seed, "ratio")[:, 0] - P) ** 2
    return Measurement(what, case, *ratio_of_means(squares[:, 0], squares[:, 1]))


# --- from the truth --------------------------------------------------------------------------------------------------


def _mean_estimate(rule: Tuples, paths: int, seed: int) -> Floats:
    return estimates(rule, [400], paths, seed, "mean")[:, 0, 0]


@statement("oracle-consistent", printed=Formula("p̂^{(1)} → p", lambda case: case["p"]))
def oracle_consistent(effort: float, seed: int) -> Iterator[Measurement]:
    """Means of the estimate; then with c observed less often than other states."""
    paths, case = int(20_000 * effort), {"p": P}
    for p_o in (0.2, 0.5, 0.8):
        for K in (1, 10):
            yield mean_of(f"mean estimate, {_at(p_o, K)}", case, _mean_estimate(tuples(ORACLE, P, p_o, K), paths, seed))
    skewed = _mean_estimate(tuples(ORACLE, P, 0.2, 10, seen_other=0.8), paths, seed)
    yield mean_of(f"mean estimate, {_SKEWED}", case, skewed, broken=True)


def _k_fold_above(case: Case) -> float:
    return case["p"] * case["p_o"] + case["K"] * case["p"] * (1 - case["p_o"])


@statement(
    "oracle-without-fraction",
    printed=Formula("p̂ → p p_o + K p (1 − p_o)", _k_fold_above),
    right=Formula(
        'p̂ → p p_o + K p (1 − p_o) "above only",    p̂ → p "above and below"',
        lambda case: case["p"] if case["both"] else _k_fold_above(case),
    ),
)
def oracle_without_fraction(effort: float, seed: int) -> Iterator[Measurement]:
    """Means of the estimate with every draw counting 1, in the numerator alone or in both."""
    paths = int(20_000 * effort)
    for p_o, K in ((0.5, 2), (0.5, 10), (0.8, 10)):
        for both, where, whole in ((0, "above only", 1.0), (1, "above and below", 0.0)):
            case = {"p": P, "p_o": p_o, "K": K, "both": both}
            found = _mean_estimate(tuples(ORACLE, P, p_o, K, weight=1.0, whole=whole), paths, seed)
            yield mean_of(f"mean estimate, 1/K dropped {where}, {_at(p_o, K)}", case, found)
    skewed = _mean_estimate(tuples(ORACLE, P, 0.2, 10, seen_other=0.8, weight=1.0), paths, seed)
    case = {"p": P, "p_o": 0.62, "K": 10, "both": 1}
    yield mean_of(f"mean estimate, {_SKEWED}", case, skewed, broken=True)


@statement(
    "oracle-efficient",
    printed=Formula(r"\frac{𝕍(p̂^{(1)})}{𝕍(p̂^{(2)})} < 1", lambda _: 1.0, "<"),
    right=Formula(
        r"\frac{𝕍(p̂^{(1)})}{𝕍(p̂^{(2)})} → p_o (p_o + \frac{1 − p_o}{K})",
        lambda case: case["p_o"] * (case["p_o"] + (1 - case["p_o"]) * _share_of_draw(case)),
    ),
)
def oracle_efficient(effort: float, seed: int) -> Iterator[Measurement]:
    """Variance ratios after 500 tuples; then with draws from the estimate."""
    paths = int(60_000 * effort)
    for p_o, K in ((0.2, 1), (0.2, 10), (0.5, 1), (0.5, 10), (0.8, 1), (0.8, 10)):
        # 1/n_obs is on average a little more than 1/(n p_o); of order 1/n.
        rule, case = tuples(ORACLE, P, p_o, K), {"p_o": p_o, "K": K}
        yield _variance_ratio(f"variance ratio, {_at(p_o, K)}", case, rule, 500, paths, seed)
    rule, case = tuples(ESTIMATED, P, 0.5, 10), {"p_o": 0.5, "K": 10}
    what = "variance ratio, draws from the estimate, p_o = 0.5, K = 10"
    yield replace(_variance_ratio(what, case, rule, 500, paths // 4, seed), broken=True)


# --- from estimates --------------------------------------------------------------------------------------------------


def estimated_ratio(case: Case) -> float:
    """Variance of the estimate-based estimator relative to complete tuples."""
    p_o, t = case["p_o"], case["t"]
    if case["literal"]:
        return 1.0 if t == inf else float((1 - (1 - p_o) / t) ** 2)
    if t != inf:
        return averaged_ratio(p_o, int(t))
    return float(1 + (1 - p_o) ** 2 + p_o * (1 - p_o) * _share_of_draw(case))


def _of_estimates(p_o: float, K: int = INFINITE, t: float = inf, literal: int = 0) -> Case:
    return {"p_o": p_o, "t": t, "K": K, "literal": literal}


@statement(
    "estimate-based",
    printed=Formula(r"\frac{𝕍(p̃_t)}{𝕍(p̂_t)} → ∞", lambda _: inf),
    right=Formula(r"\frac{𝕍(p̃_t)}{𝕍(p̂_t)} → 1 + (1 − p_o)^2 + \frac{p_o (1 − p_o)}{K}", estimated_ratio),
)
def estimate_based(effort: float, seed: int) -> Iterator[Measurement]:
    """The theorem's estimators, exactly and simulated; tuples missing at random; then gaps that all come early."""
    paths, t = int(30_000 * effort), 2000
    for p_o in (0.2, 0.5, 0.8):
        found = (averages(P, p_o, t, paths, seed) - P) ** 2
        for column, form in ((1, "averages p̂_j"), (2, "p̂_t taken literally")):
            case = _of_estimates(p_o, t=t, literal=column - 1)
            ratio = ratio_of_means(found[:, column], found[:, 0])
            yield Measurement(f"variance ratio at t = {t}, {form}, p_o = {p_o}", case, *ratio)
        # (ln t)²/t is the order of what is left of the sum at t.
        exact = averaged_ratio(p_o, 10**6), 2e-4
        yield Measurement(f"variance ratio, exact at t = 10⁶, p_o = {p_o}", _of_estimates(p_o), *exact)
    for p_o, K in ((0.5, INFINITE), (0.5, 10), (0.5, 1), (0.8, 1)):
        what = f"variance ratio with tuples missing at random, {_at(p_o, K)}"
        yield _variance_ratio(what, _of_estimates(p_o, K), tuples(ESTIMATED, P, p_o, K), 4000, paths // 3, seed)
    early, late = 20, 980
    hits = np.random.default_rng(seed).binomial([early, late], P, size=(paths, 2))
    complete = hits.sum(axis=1) / (early + late)
    filled = 0.5 * complete + 0.5 * hits[:, 0] / early
    ratio = ratio_of_means((filled - P) ** 2, (complete - P) ** 2)
    what = "variance ratio, all gaps after 20 of 1000 complete tuples, p_o = 0.5"
    yield Measurement(what, _of_estimates(0.5), *ratio, broken=True)


# --- from its own imputations ----------------------------------------------------------------------------------------


@statement(
    "recursive-moments",
    right=Formula(
        r"v_{n+1} = v_n (1 − \frac{2p_o}{n+1} + \frac{p_o − (1 − p_o)/K}{(n+1)^2}) + "
        r"σ^2 \frac{p_o + (1 − p_o)/K}{(n+1)^2}, v_1 = σ^2",
        lambda case: float(recursive_moments(case["p_o"], int(case["K"]), [int(case["t"])])[0]),
    ),
)
def recursive_error(effort: float, seed: int) -> Iterator[Measurement]:
    """Mean squared errors at three times; then with c observed less often than other states."""
    paths, marks, variance = int(48_000 * effort), [8, 64, 512], P * (1 - P)
    for p_o in (0.25, 0.5, 0.75):
        for K in (INFINITE, 10, 1):
            squares = _squared_errors(tuples(RECURSIVE, P, p_o, K), marks, paths, seed, "moments") / variance
            for t, found in zip(marks, squares.T, strict=True):
                what = f"𝔼[e²]/σ² after {t} tuples, {_at(p_o, K)}"
                yield mean_of(what, {"p_o": p_o, "K": K, "t": t}, found)
    rule = tuples(RECURSIVE, P, 0.3, 10, seen_other=0.7)
    found = _squared_errors(rule, [256], paths, seed, "moments")[:, 0] / variance
    what = "𝔼[e²]/σ² after 256 tuples, c observed with probability 0.3, other states with 0.7"
    yield mean_of(what, {"p_o": 0.58, "K": 10, "t": 256}, found, broken=True)


def recursive_ratio(case: Case) -> float:
    """Limit of the variance of the recursive estimate relative to complete tuples; infinite up to one half."""
    p_o = case["p_o"]
    return float(p_o * (p_o + (1 - p_o) * _share_of_draw(case)) / (2 * p_o - 1)) if p_o > 0.5 else inf


@statement(
    "recursive-variance",
    printed=Formula(
        r"\frac{𝕍(p̂^{(4)})}{𝕍(p̂^{(2)})} > 1 + (1 − p_o)^2 + \frac{p_o (1 − p_o)}{K}",
        lambda case: estimated_ratio(_of_estimates(case["p_o"], int(case["K"]))),
        ">",
    ),
    right=Formula(
        r"\frac{𝕍(p̂^{(4)})}{𝕍(p̂^{(2)})} → \frac{p_o (p_o + (1 − p_o)/K)}{2p_o − 1} = "
        r"1 + \frac{(1 − p_o)^2 + p_o (1 − p_o)/K}{2p_o − 1}",
        recursive_ratio,
    ),
)
def recursive_variance(effort: float, seed: int) -> Iterator[Measurement]:
    """Variance ratios, simulated and from the exact recursion; then with every draw counting as a tuple."""
    paths, t = int(16_000 * effort), 4096
    for K in (INFINITE, 10, 1):
        case, rule = {"p_o": 0.75, "K": K}, tuples(RECURSIVE, P, 0.75, K)
        found = _variance_ratio(f"variance ratio, simulated, {_at(0.75, K)}", case, rule, t, paths, seed)
        # What the exact recursion says is still missing after t tuples may be missing here as well.
        remainder = float(abs(recursive_moments(0.75, K, [t])[0] * t * 0.75 - recursive_ratio(case)))
        yield replace(found, error=float(np.hypot(found.error, remainder / 4)))
    for p_o in (0.6, 0.75, 0.9):
        for K in (INFINITE, 10, 1):
            _, limit, rest = recursive_limits(p_o, K)
            what = f"variance ratio, exact recursion, {_at(p_o, K)}"
            yield Measurement(what, {"p_o": p_o, "K": K}, limit * p_o, rest)
    rule, case = tuples(RECURSIVE, P, 0.75, 10, weight=1.0), {"p_o": 0.75, "K": 10}
    what = "variance ratio without the 1/K, p_o = 0.75, K = 10"
    yield replace(_variance_ratio(what, case, rule, t, paths // 4, seed), broken=True)


@statement(
    "recursive-rate",
    right=Formula(
        '𝔼[e_t^2] ∝ t^{−2p_o} "if" p_o < 1/2,  𝔼[e_t^2] ≈ σ^2 (1 + \\frac{1}{K}) \\frac{"ln" t}{2t} "if" p_o = 1/2',
        lambda case: 0.5 * (1 + _share_of_draw(case)) if "half" in case else 2 * case["p_o"],
    ),
)
def recursive_rate(effort: float, seed: int) -> Iterator[Measurement]:
    """Exponents, simulated and from the exact recursion; then with every draw counting as a tuple."""
    paths, times = int(2000 * effort), [1 << 9, 1 << 15]
    for K in (INFINITE, 10, 1):
        late = [1 << 20, 1 << 24]
        growth = np.diff(recursive_moments(0.5, K, late) * late)[0] / np.log(16)
        what = f"growth of t·𝔼[e²]/σ² per unit of ln t, exact recursion, {_at(0.5, K)}"
        yield Measurement(what, {"p_o": 0.5, "K": K, "half": 1}, float(growth), 1e-5)
        for p_o in (0.1, 0.25):
            found = _squared_errors(tuples(RECURSIVE, P, p_o, K), times, paths, seed, "slope")
            slope, error = slope_of_means(found, 64)
            # How far the exact slope between the same two times still is from its limit.
            before, after = recursive_moments(p_o, K, times)
            drift = float(abs(np.log(before / after) / np.log(64) - 2 * p_o))
            what = f"exponent, simulated from 512 to 32,768 tuples, {_at(p_o, K)}"
            yield Measurement(what, {"p_o": p_o}, slope, float(np.hypot(error, drift / 4)))
    for p_o in (0.1, 0.25, 0.4, 0.45, 0.5):
        for K in (INFINITE, 1):
            what = f"exponent, exact recursion up to 2²⁴ tuples, {_at(p_o, K)}"
            yield Measurement(what, {"p_o": p_o}, recursive_limits(p_o, K)[0], 1e-5)
    rule = tuples(RECURSIVE, P, 0.4, 10, weight=1.0)
    slope, error = slope_of_means(_squared_errors(rule, [1 << 9, 1 << 13], paths, seed, "slope"), 16)
    what = "exponent without the 1/K, p_o = 0.4, K = 10"
    yield Measurement(what, {"p_o": 0.4}, slope, error, broken=True)
