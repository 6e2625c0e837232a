"""Estimators of one transition probability from tuples of which a share is incomplete: paths, and exact moments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels import kernel
from lacuna_paper.theory.measuring import Floats, blocks, generator

ORACLE, ESTIMATED, RECURSIVE = range(3)
INFINITE = 0
"""The K that stands for infinitely many draws: a tuple's imputation is then its own expectation."""


class Tuples(NamedTuple):
    """How tuples (s, a, s') arrive, and how incomplete ones are filled in.

    `p` is the probability of the next state in question, `seen` and `seen_other` those of observing s' when it is that
    state and when it is another one (equal under MAR). An incomplete tuple counts `weight` for each of its K draws, and
    adds `whole` to the denominator.
    """

    kind: int
    p: float
    seen: float
    seen_other: float
    K: int
    weight: float
    whole: float


def tuples(
    kind: int, p: float, p_o: float, K: int, *, seen_other: float | None = None, weight: float | None = None,
    whole: float = 0.0,
) -> Tuples:  # fmt: skip
    """Describe tuples that are complete with probability `p_o`; K = 0 stands for infinitely many draws.

    `weight` is that of one draw, 1/K unless said otherwise; `whole` is what an incomplete tuple adds to the
    denominator, the weight of all its draws unless said otherwise.
    """
    one = (1.0 if K == INFINITE else 1 / K) if weight is None else weight
    return Tuples(kind, p, p_o, p_o if seen_other is None else seen_other, K, one, whole or one * max(K, 1))


@kernel
def binomial(u: float, K: int, p: float) -> int:
    """Turn a uniform number into a number of successes among K, by adding up the probabilities from 0 on."""
    if p <= 0.0:
        return 0
    if p >= 1.0:
        return K
    mass = 1.0
    for _ in range(K):
        mass *= 1.0 - p
    odds = p / (1.0 - p)
    successes = 0
    while u >= mass and successes < K:
        u -= mass
        mass *= odds * (K - successes) / (successes + 1)
        successes += 1
    return successes


@kernel
def follow_tuples(numbers: Floats, rule: Tuples, marks: NDArray[np.int64], out: Floats) -> None:
    """Follow one path per row of `numbers`, noting at each mark the imputing and the complete-case estimates.

    The first tuple is complete, so that there is always an estimate to impute with; an oracle needs none. Two numbers
    are used per tuple: one decides the next state and whether it is observed, one fills it in.
    """
    hit_seen = rule.p * rule.seen
    other_seen = rule.p + (1.0 - rule.p) * rule.seen_other
    for path in range(numbers.shape[0]):
        hits, n_seen, mass_hits, mass = 0.0, 0.0, 0.0, 0.0
        mark = 0
        for t in range(marks[-1]):
            u, v = numbers[path, 2 * t], numbers[path, 2 * t + 1]
            if t == 0 and rule.kind != ORACLE:
                u = hit_seen * 0.5 if u < rule.p else rule.p
            if u < hit_seen or rule.p <= u < other_seen:
                hit = 1.0 if u < hit_seen else 0.0
                hits, n_seen = hits + hit, n_seen + 1.0
                mass_hits, mass = mass_hits + hit, mass + 1.0
            else:
                guess = rule.p
                if rule.kind == ESTIMATED:
                    guess = hits / n_seen
                elif rule.kind == RECURSIVE:
                    guess = mass_hits / mass
                if rule.K == INFINITE:
                    mass_hits += rule.weight * guess
                else:
                    mass_hits += rule.weight * binomial(v, rule.K, guess)
                mass += rule.whole
            if t + 1 == marks[mark]:
                out[path, mark, 0] = mass_hits / mass
                out[path, mark, 1] = hits / n_seen if n_seen > 0.0 else np.nan
                mark += 1


def estimates(rule: Tuples, marks: list[int], paths: int, seed: int, name: str) -> Floats:
    """Estimates of many independent paths: an array (path, mark, imputing or complete-case)."""
    rng = generator(seed, name, *(float(part) for part in rule))
    out = np.empty((paths, len(marks), 2))
    for some, numbers, _ in blocks(rng, paths, 2 * marks[-1]):
        follow_tuples(numbers, rule, np.array(marks, dtype=np.int64), out[some])
    return out


@kernel
def follow_averages(numbers: Floats, p: float, p_o: float, out: Floats) -> None:
    """The theorem's estimators, from complete data: p̂_t, p_o p̂_t + (1-p_o) Σ_j<t p̂_j / t, and p̂_t inside the sum."""
    t = numbers.shape[1]
    for path in range(numbers.shape[0]):
        hits, total = 0.0, 0.0
        for j in range(t):
            if j > 0:
                total += hits / j
            hits += 1.0 if numbers[path, j] < p else 0.0
        mean = hits / t
        out[path, 0] = mean
        out[path, 1] = p_o * mean + (1.0 - p_o) * total / t
        out[path, 2] = p_o * mean + (1.0 - p_o) * (t - 1) * mean / t


def averages(p: float, p_o: float, t: int, paths: int, seed: int) -> Floats:
    """Estimates of many paths: an array (path, which of the three)."""
    out = np.empty((paths, 3))
    for some, numbers, _ in blocks(generator(seed, "averages", p, p_o, t), paths, t):
        follow_averages(numbers, p, p_o, out[some])
    return out


def averaged_ratio(p_o: float, t: int) -> float:
    """Variance of p_o p̂_t + (1-p_o) Σ_{j<t} p̂_j / t relative to that of p̂_t, exactly.

    X_i enters the sum with weight p_o/t + (1-p_o)(H_{t-1} - H_{i-1})/t, where H is the harmonic number.

    Examples
    --------
    >>> [round(averaged_ratio(p_o, 1_000_000), 3) for p_o in (0.2, 0.5, 0.8)]
    [1.64, 1.25, 1.04]
    """
    tails = np.zeros(t)
    tails[:-1] = np.cumsum(1 / np.arange(t - 1, 0, -1.0))[::-1]
    return float(np.sum((p_o + (1 - p_o) * tails) ** 2) / t)


@kernel
def follow_moments(p_o: float, K: int, marks: NDArray[np.int64], out: Floats) -> None:
    """Mean squared error of the recursive estimate divided by p(1-p), exactly, from a complete first tuple on."""
    draws = 0.0 if K == INFINITE else 1.0 / K
    v, mark = 1.0, 0
    for t in range(1, marks[-1] + 1):
        if t > 1:
            fill = (1.0 - p_o) * draws
            v += (-2.0 * p_o / t + (p_o - fill) / (t * t)) * v + (p_o + fill) / (t * t)
        if t == marks[mark]:
            out[mark] = v
            mark += 1


def recursive_moments(p_o: float, K: int, marks: list[int]) -> Floats:
    """Exact mean squared errors of the recursive estimate after so many tuples, in units of p(1-p).

    Examples
    --------
    >>> [round(float(v), 4) for v in recursive_moments(1.0, 1, [1, 10, 100])]
    [1.0, 0.1, 0.01]
    """
    out = np.empty(len(marks))
    follow_moments(p_o, K, np.array(marks, dtype=np.int64), out)
    return out


def recursive_limits(p_o: float, K: int, first: int = 1 << 18) -> tuple[float, float, float]:
    """Exponent, limit of t·v_t and a bound on its remainder, from the exact moments at three times.

    For large t, t·v_t = D + C·t^(1-e). Taking differences over equal ratios of time removes D, then the exponent e is
    read off, and D follows. This also works near e = 1, where the plain slope drifts for ever.
    """
    ratio = 8
    marks = [first, ratio * first, ratio * ratio * first]
    scaled = recursive_moments(p_o, K, marks) * marks
    early, late = scaled[1] - scaled[0], scaled[2] - scaled[1]
    growth = late / early
    limit = scaled[2] + late * growth / (1 - growth)
    return float(1 - np.log(growth) / np.log(ratio)), float(limit), float(abs(limit - scaled[2]) * 0.05 + 1e-6)
