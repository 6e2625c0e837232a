"""Statements on a model that learns from its own imputations: its error, its variance and its rate."""

from __future__ import annotations

from functools import cache
from math import inf

import numpy as np

from lacuna.theory.chance import error_of_mean, slope_of_means
from lacuna.theory.on_imputing import SETTING, P, estimated_ratio, name_of, share_of_draw, variance_ratio
from lacuna.theory.statement import Case, Evidence, Formula, Measurement, Statement
from lacuna.theory.transitions import INFINITE, RECURSIVE, estimates, recursive_limits, recursive_moments, tuples


def _recursive(effort: float, seed: int) -> Evidence:
    paths, t = int(16_000 * effort), 4096
    kept = []
    for K in (INFINITE, 10, 1):
        case = {"p_o": 0.75, "K": K}
        what = f"variance ratio, simulated, p_o = 0.75, K = {name_of(K)}"
        found = variance_ratio(what, tuples(RECURSIVE, P, 0.75, K), case, paths, seed, t)
        # What the exact recursion says is still missing after t tuples may be missing here as well.
        remainder = float(abs(recursive_moments(0.75, K, [t])[0] * t * 0.75 - recursive_ratio(case)))
        kept.append(Measurement(what, case, found.value, float(np.hypot(found.error, remainder / 4))))
    for p_o in (0.6, 0.75, 0.9):
        for K in (INFINITE, 10, 1):
            _, limit, rest = recursive_limits(p_o, K)
            what = f"variance ratio, exact recursion, p_o = {p_o}, K = {name_of(K)}"
            kept.append(Measurement(what, {"p_o": p_o, "K": K}, limit * p_o, rest))
    case = {"p_o": 0.75, "K": 10}
    rule = tuples(RECURSIVE, P, 0.75, 10, weight=1.0)
    broken = variance_ratio("variance ratio without the 1/K, p_o = 0.75, K = 10", rule, case, paths // 4, seed, t)
    return Evidence(tuple(kept), (broken,))


def recursive_ratio(case: Case) -> float:
    """Limit of the variance of the recursive estimate relative to complete tuples; infinite up to one half."""
    p_o = case["p_o"]
    return float(p_o * (p_o + (1 - p_o) * share_of_draw(case)) / (2 * p_o - 1)) if p_o > 0.5 else inf


RECURSIVE_VARIANCE = Statement(
    id="recursive-variance",
    title="Imputing from its own imputations: the variance",
    place="A.1.3",
    claim="If imputations are drawn from an estimate that counts earlier imputations (the synthetic model), the "
    "variance is said to be even higher than with the estimate from complete tuples.",
    assumptions=(*SETTING, "p_o > ½", "the first tuple is complete"),
    printed=Formula(
        r"\frac{𝕍(p̂^{(4)})}{𝕍(p̂^{(2)})} > 1 + (1 − p_o)^2 + \frac{p_o (1 − p_o)}{K}",
        lambda case: estimated_ratio({**case, "t": inf, "literal": 0}),
        ">",
    ),
    right=Formula(
        r"\frac{𝕍(p̂^{(4)})}{𝕍(p̂^{(2)})} → \frac{p_o (p_o + (1 − p_o)/K)}{2p_o − 1} = "
        r"1 + \frac{(1 − p_o)^2 + p_o (1 − p_o)/K}{2p_o − 1}",
        recursive_ratio,
    ),
    proof=(
        "Write e_n for the error after n tuples and Y for what the next one adds: an indicator with mean p, or a mean "
        "of K draws with mean p + e_n. Then e_{n+1} = e_n + (Y − p − e_n)/(n + 1) and 𝔼[Y − p − e_n | past] = "
        "−p_o·e_n: stochastic approximation with gain p_o.",
        "With v_n = 𝔼[e_n²], σ² = p(1 − p) and 𝔼[e_n] = 0, exactly: v_{n+1} = v_n·(1 − 2p_o/(n + 1) + (p_o − (1 − "
        "p_o)/K)/(n + 1)²) + σ²(p_o + (1 − p_o)/K)/(n + 1)².",
        "Put v_n = D/n: the terms of order 1/n² give D(2p_o − 1) = σ²(p_o + (1 − p_o)/K). The homogeneous part decays "
        "like n^(−2p_o), faster than 1/n if p_o > ½. Divide by the σ²/(n p_o) of complete tuples. Compared with "
        "drawing from complete tuples, the excess over 1 is divided by 2p_o − 1.",
    ),
    broken="The 1/K: every draw counts as a tuple. The gain falls from p_o to p_o/(p_o + K(1 − p_o)), here from 0.75 "
    "to 0.23, and the ratio no longer has a limit.",
    simulate=_recursive,
    quoted="should have even higher variance",
)


def _moments(effort: float, seed: int) -> Evidence:
    paths, marks = int(48_000 * effort), [8, 64, 512]
    kept = []
    for p_o in (0.25, 0.5, 0.75):
        for K in (INFINITE, 10, 1):
            squares = (estimates(tuples(RECURSIVE, P, p_o, K), marks, paths, seed, "moments")[:, :, 0] - P) ** 2
            for i, t in enumerate(marks):
                found = squares[:, i] / (P * (1 - P))
                what = f"𝔼[e²]/σ² after {t} tuples, p_o = {p_o}, K = {name_of(K)}"
                kept.append(Measurement(what, {"p_o": p_o, "K": K, "t": t}, float(found.mean()), error_of_mean(found)))
    rule = tuples(RECURSIVE, P, 0.3, 10, seen_other=0.7)
    found = (estimates(rule, [256], paths, seed, "moments")[:, 0, 0] - P) ** 2 / (P * (1 - P))
    what = "𝔼[e²]/σ² after 256 tuples, c observed with probability 0.3, other states with 0.7"
    case = {"p_o": 0.58, "K": 10, "t": 256}
    return Evidence(tuple(kept), (Measurement(what, case, float(found.mean()), error_of_mean(found)),))


RECURSIVE_MOMENTS = Statement(
    id="recursive-moments",
    title="Imputing from its own imputations: the error, exactly",
    place="A.1.3, left open",
    claim="The mean squared error of the recursive estimate, whose dependencies the print calls complicated, obeys a "
    "recursion in one number.",
    assumptions=(*SETTING, "the first tuple is complete"),
    printed=None,
    right=Formula(
        r"v_{n+1} = v_n (1 − \frac{2p_o}{n+1} + \frac{p_o − (1 − p_o)/K}{(n+1)^2}) + "
        r"σ^2 \frac{p_o + (1 − p_o)/K}{(n+1)^2}, v_1 = σ^2",
        lambda case: float(recursive_moments(case["p_o"], int(case["K"]), [int(case["t"])])[0]),
    ),
    proof=(
        "Write e_n for the error after n tuples. A complete tuple gives e_{n+1} = e_n·n/(n + 1) + (X − p)/(n + 1), an "
        "incomplete one e_{n+1} = e_n + ξ/(n + 1), where ξ, the noise of K draws, has mean 0 and variance (p + e_n)(1 "
        "− p − e_n)/K given the past.",
        "Square, take means, and use 𝔼[(p + e_n)(1 − p − e_n)] = σ² − v_n, since 𝔼[e_n] = 0 from a complete first "
        "tuple on.",
    ),
    broken="MAR: c itself is observed less often than other states, so the error has a part that stays.",
    simulate=_moments,
    quoted="a recursive relationship with complicated dependencies",
)


@cache
def _slopes(K: int, paths: int, seed: int) -> tuple[tuple[float, float, float], ...]:
    """(p_o, exponent, standard error), simulated between 2⁹ and 2¹⁵ tuples."""
    found = []
    for p_o in (0.1, 0.25):
        errors = (estimates(tuples(RECURSIVE, P, p_o, K), [1 << 9, 1 << 15], paths, seed, "slope")[:, :, 0] - P) ** 2
        found.append((p_o, *slope_of_means(errors[:, 0], errors[:, 1], 64)))
    return tuple(found)


def _rate(effort: float, seed: int) -> Evidence:
    paths = int(2000 * effort)
    kept = []
    for K in (INFINITE, 10, 1):
        scaled = recursive_moments(0.5, K, [1 << 20, 1 << 24]) * [1 << 20, 1 << 24]
        what = f"growth of t·𝔼[e²]/σ² per unit of ln t, exact recursion, p_o = 0.5, K = {name_of(K)}"
        kept.append(Measurement(what, {"p_o": 0.5, "K": K, "half": 1}, float(np.diff(scaled)[0] / np.log(16)), 1e-5))
        for p_o, slope, error in _slopes(K, paths, seed):
            drift = _drift(p_o, K)
            what = f"exponent, simulated from 512 to 32,768 tuples, p_o = {p_o}, K = {name_of(K)}"
            kept.append(Measurement(what, {"p_o": p_o}, slope, float(np.hypot(error, drift / 4))))
    for p_o in (0.1, 0.25, 0.4, 0.45, 0.5):
        for K in (INFINITE, 1):
            what = f"exponent, exact recursion up to 2²⁴ tuples, p_o = {p_o}, K = {name_of(K)}"
            kept.append(Measurement(what, {"p_o": p_o}, recursive_limits(p_o, K)[0], 1e-5))
    rule = tuples(RECURSIVE, P, 0.4, 10, weight=1.0)
    errors = (estimates(rule, [1 << 9, 1 << 13], paths, seed, "slope")[:, :, 0] - P) ** 2
    slope, error = slope_of_means(errors[:, 0], errors[:, 1], 16)
    return Evidence(
        tuple(kept), (Measurement("exponent without the 1/K, p_o = 0.4, K = 10", {"p_o": 0.4}, slope, error),)
    )


def _drift(p_o: float, K: int) -> float:
    """How far the exact slope between the same two times still is from its limit."""
    early, late = recursive_moments(p_o, K, [1 << 9, 1 << 15])
    return float(abs(np.log(early / late) / np.log(64) - 2 * p_o))


RECURSIVE_RATE = Statement(
    id="recursive-rate",
    title="Imputing from its own imputations: the rate",
    place="A.1.3, left open",
    claim="How fast the synthetic model learns when half the tuples or more are incomplete; the print gives no rate.",
    assumptions=(*SETTING, "p_o ≤ ½", "the first tuple is complete"),
    printed=None,
    right=Formula(
        '𝔼[e_t^2] ∝ t^{−2p_o} "if" p_o < 1/2,  𝔼[e_t^2] ≈ σ^2 (1 + \\frac{1}{K}) \\frac{"ln" t}{2t} "if" p_o = 1/2',
        lambda case: 0.5 * (1 + share_of_draw(case)) if "half" in case else 2 * case["p_o"],
    ),
    proof=(
        "In the recursion for v_n the homogeneous part decays like ∏(1 − 2p_o/j) ~ n^(−2p_o). For p_o < ½ this is "
        "slower than the 1/n of the forced part and decides. At p_o = ½ both have the same order and v_n ~ σ²(p_o + "
        "(1 − p_o)/K)·ln n / n.",
        "So with half the tuples or more incomplete, teaching the model its own imputations slows it without bound: "
        "the root mean squared error falls like t^(−min(p_o, ½)) and the variance relative to complete tuples "
        "diverges. It remains consistent.",
        "Without the 1/K the same argument gives the gain q = p_o/(p_o + K(1 − p_o)) in place of p_o, and t^(−2q). "
        "This, not normalisation, is the case for fractional counts.",
    ),
    broken="The 1/K: every draw counts as a tuple, and the exponent falls from 2p_o to 2p_o/(p_o + K(1 − p_o)).",
    simulate=_rate,
)

STATEMENTS = (RECURSIVE_MOMENTS, RECURSIVE_VARIANCE, RECURSIVE_RATE)
