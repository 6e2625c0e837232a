"""Statements on learning a transition probability from tuples filled in by an oracle, or by estimates."""

from __future__ import annotations

from math import inf

import numpy as np

from lacuna.theory.chance import error_of_mean, ratio_of_means
from lacuna.theory.statement import Case, Evidence, Formula, Measurement, Statement
from lacuna.theory.transitions import (
    ESTIMATED,
    INFINITE,
    ORACLE,
    Tuples,
    averaged_ratio,
    averages,
    estimates,
    tuples,
)

P = 0.3
SETTING = (
    "the next state c follows (s, a) with probability p; tuples are independent",
    "a tuple's next state is observed with probability p_o, whatever it is (MAR given (s, a))",
    "an incomplete tuple misses its whole next state",
)


def name_of(K: float) -> str:
    """Write K, of which 0 stands for infinity."""
    return "∞" if K == INFINITE else f"{K:.0f}"


def share_of_draw(case: Case) -> float:
    """1/K, which is 0 for infinitely many draws."""
    return 0.0 if case["K"] == INFINITE else 1 / case["K"]


def _mean(what: str, rule: Tuples, case: Case, paths: int, seed: int, tuples_seen: int = 400) -> Measurement:
    found = estimates(rule, [tuples_seen], paths, seed, "mean")[:, 0, 0]
    return Measurement(what, case, float(found.mean()), error_of_mean(found))


def variance_ratio(what: str, rule: Tuples, case: Case, paths: int, seed: int, tuples_seen: int) -> Measurement:
    """Mean squared error of the imputing estimate over that of the complete-case one, on the same paths."""
    found = estimates(rule, [tuples_seen], paths, seed, "ratio")[:, 0]
    ratio, error = ratio_of_means((found[:, 0] - rule.p) ** 2, (found[:, 1] - rule.p) ** 2)
    return Measurement(what, case, ratio, error)


def _oracle(effort: float, seed: int) -> Evidence:
    paths = int(20_000 * effort)
    kept = [
        _mean(f"mean estimate, p_o = {p_o}, K = {K}", tuples(ORACLE, P, p_o, K), {"p": P}, paths, seed)
        for p_o in (0.2, 0.5, 0.8) for K in (1, 10)
    ]  # fmt: skip
    rule = tuples(ORACLE, P, 0.2, 10, seen_other=0.8)
    broken = _mean("mean estimate, c observed with probability 0.2, other states with 0.8", rule, {"p": P}, paths, seed)
    return Evidence(tuple(kept), (broken,))


ORACLE_CONSISTENT = Statement(
    id="oracle-consistent",
    title="Imputing from the truth: consistent",
    place="A.1.1",
    claim="Fill incomplete tuples with K draws from the true distribution, each counting 1/K: the share of c among all "
    "tuples converges to p.",
    assumptions=SETTING,
    printed=Formula("p̂^{(1)} → p", lambda case: case["p"]),
    right=None,
    proof=(
        "Each tuple adds a number in [0, 1] with mean p, whether it is observed (an indicator) or not (a mean of K "
        "draws). The estimate is the mean of n such independent numbers: unbiased for every n, and consistent by the "
        "law of large numbers.",
    ),
    broken="MAR: c itself is observed less often than other states. Observed tuples then show too little of it, and "
    "the oracle's draws, right as they are, do not make up for that.",
    simulate=_oracle,
)


def _without_fraction(effort: float, seed: int) -> Evidence:
    paths = int(20_000 * effort)
    kept = []
    for p_o, K in ((0.5, 2), (0.5, 10), (0.8, 10)):
        case = {"p": P, "p_o": p_o, "K": K}
        alone, both = tuples(ORACLE, P, p_o, K, weight=1.0, whole=1.0), tuples(ORACLE, P, p_o, K, weight=1.0)
        at = f"p_o = {p_o}, K = {K}"
        kept.append(_mean(f"mean estimate, 1/K dropped above only, {at}", alone, {**case, "both": 0}, paths, seed))
        kept.append(_mean(f"mean estimate, 1/K dropped above and below, {at}", both, {**case, "both": 1}, paths, seed))
    rule = tuples(ORACLE, P, 0.2, 10, seen_other=0.8, weight=1.0)
    case = {"p": P, "p_o": 0.62, "K": 10, "both": 1}
    broken = _mean("mean estimate, c observed with probability 0.2, other states with 0.8", rule, case, paths, seed)
    return Evidence(tuple(kept), (broken,))


def _printed_without_fraction(case: Case) -> float:
    return case["p"] * case["p_o"] + case["K"] * case["p"] * (1 - case["p_o"])


ORACLE_WITHOUT_FRACTION = Statement(
    id="oracle-without-fraction",
    title="Imputing from the truth, without the 1/K",
    place="A.1.1",
    claim="Without the 1/K the estimate converges to something else than p, so that fractional counts are a necessary "
    "normalisation.",
    assumptions=SETTING,
    printed=Formula("p̂ → p p_o + K p (1 − p_o)", _printed_without_fraction),
    right=Formula(
        'p̂ → p p_o + K p (1 − p_o) "above only",    p̂ → p "above and below"',
        lambda case: case["p"] if case["both"] else _printed_without_fraction(case),
    ),
    proof=(
        "The printed limit, which may exceed 1, belongs to a numerator that counts K draws per incomplete tuple over a "
        "denominator that counts one. Count them in both: numerator and denominator divided by n converge to p·p_o + "
        "K·p·(1 − p_o) and to p_o + K·(1 − p_o), whose ratio is p.",
        "So 1/K is a matter of weighting, not of normalisation. For an oracle it even wastes information: without it "
        "the variance is p(1 − p)/(n(p_o + K(1 − p_o))), with it p(1 − p)(p_o + (1 − p_o)/K)/n. What the fraction is "
        "good for shows when imputations are not an oracle's: see the rate of the recursive estimate.",
    ),
    broken="MAR: c itself is observed less often than other states. Then neither weighting is consistent.",
    simulate=_without_fraction,
    quoted="fractional K updates are necessary normalization",
)


def _oracle_efficiency(effort: float, seed: int) -> Evidence:
    paths = int(60_000 * effort)
    kept = []
    for p_o, K in ((0.2, 1), (0.2, 10), (0.5, 1), (0.5, 10), (0.8, 1), (0.8, 10)):
        # 1/n_obs is on average a little more than 1/(n p_o); of order 1/n.
        rule, case = tuples(ORACLE, P, p_o, K), {"p_o": p_o, "K": K}
        kept.append(variance_ratio(f"variance ratio, p_o = {p_o}, K = {K}", rule, case, paths, seed, 500))
    rule = tuples(ESTIMATED, P, 0.5, 10)
    case = {"p_o": 0.5, "K": 10}
    broken = variance_ratio(
        "variance ratio, draws from the estimate, p_o = 0.5, K = 10", rule, case, paths // 4, seed, 500
    )
    return Evidence(tuple(kept), (broken,))


ORACLE_EFFICIENT = Statement(
    id="oracle-efficient",
    title="Imputing from the truth: more efficient",
    place="A.1.1",
    claim="With an oracle's draws the estimate has a smaller variance than the one from complete tuples alone.",
    assumptions=SETTING,
    printed=Formula(r"\frac{𝕍(p̂^{(1)})}{𝕍(p̂^{(2)})} < 1", lambda _: 1.0, "<"),
    right=Formula(
        r"\frac{𝕍(p̂^{(1)})}{𝕍(p̂^{(2)})} → p_o (p_o + \frac{1 − p_o}{K})",
        lambda case: case["p_o"] * (case["p_o"] + (1 - case["p_o"]) * share_of_draw(case)),
    ),
    proof=(
        "A complete tuple adds variance p(1 − p), an incomplete one p(1 − p)/K, so 𝕍(p̂⁽¹⁾) = p(1 − p)(p_o + (1 − "
        "p_o)/K)/n. Complete tuples alone give p(1 − p)·𝔼[1/n_obs], and n_obs/n → p_o.",
    ),
    broken="The oracle: draws come from the estimate p̂⁽²⁾ instead. The gain turns into a loss (next statement).",
    simulate=_oracle_efficiency,
)


def _estimated(effort: float, seed: int) -> Evidence:
    paths, t = int(30_000 * effort), 2000
    kept = []
    for p_o in (0.2, 0.5, 0.8):
        found = (averages(P, p_o, t, paths, seed) - P) ** 2
        for column, form in ((1, "averages p̂_j"), (2, "p̂_t taken literally")):
            ratio, error = ratio_of_means(found[:, column], found[:, 0])
            case = {"p_o": p_o, "t": t, "K": INFINITE, "literal": column - 1}
            kept.append(Measurement(f"variance ratio at t = {t}, {form}, p_o = {p_o}", case, ratio, error))
        case = {"p_o": p_o, "t": inf, "K": INFINITE, "literal": 0}
        # (ln t)²/t is the order of what is left of the sum at t.
        exact = Measurement(f"variance ratio, exact at t = 10⁶, p_o = {p_o}", case, averaged_ratio(p_o, 10**6), 2e-4)
        kept.append(exact)
    for p_o, K in ((0.5, INFINITE), (0.5, 10), (0.5, 1), (0.8, 1)):
        case = {"p_o": p_o, "t": inf, "K": K, "literal": 0}
        what = f"variance ratio with tuples missing at random, p_o = {p_o}, K = {name_of(K)}"
        kept.append(variance_ratio(what, tuples(ESTIMATED, P, p_o, K), case, paths // 3, seed, 4000))
    return Evidence(tuple(kept), (_gaps_come_early(paths, seed),))


def _gaps_come_early(paths: int, seed: int) -> Measurement:
    """The same share of gaps, all of them when only 20 tuples are complete."""
    early, late = 20, 980
    hits = np.random.default_rng(seed).binomial([early, late], P, size=(paths, 2))
    complete = hits.sum(axis=1) / (early + late)
    filled = 0.5 * complete + 0.5 * hits[:, 0] / early
    ratio, error = ratio_of_means((filled - P) ** 2, (complete - P) ** 2)
    case = {"p_o": 0.5, "t": inf, "K": INFINITE, "literal": 0}
    return Measurement("variance ratio, all gaps after 20 of 1000 complete tuples, p_o = 0.5", case, ratio, error)


def estimated_ratio(case: Case) -> float:
    """Variance of the estimate-based estimator relative to complete tuples."""
    p_o, t = case["p_o"], case["t"]
    if case["literal"]:
        return 1.0 if t == inf else float((1 - (1 - p_o) / t) ** 2)
    if t != inf:
        return averaged_ratio(p_o, int(t))
    return float(1 + (1 - p_o) ** 2 + p_o * (1 - p_o) * share_of_draw(case))


ESTIMATE_BASED = Statement(
    id="estimate-based",
    title="Imputing from estimates: the variance ratio",
    place="A.1.2, theorem A.1",
    claim="Fill gaps with draws from the estimate that complete tuples give at that moment, and count them: "
    "consistent, but the variance relative to complete tuples alone is said to grow without bound.",
    assumptions=(*SETTING, "p_o is known, or estimated: asymptotically this changes nothing"),
    printed=Formula(r"\frac{𝕍(p̃_t)}{𝕍(p̂_t)} → ∞", lambda _: inf),
    right=Formula(r"\frac{𝕍(p̃_t)}{𝕍(p̂_t)} → 1 + (1 − p_o)^2 + \frac{p_o (1 − p_o)}{K}", estimated_ratio),
    proof=(
        "Let K = ∞. The observation X_i enters every later average p̂_j with weight 1/j, so p̃_t = Σ_i w_i X_i with "
        "w_i = (p_o + (1 − p_o)(H_{t−1} − H_{i−1}))/t, H being harmonic numbers. With u = i/t, H_{t−1} − H_{i−1} → "
        "−ln u, hence t·Σ w_i² → ∫₀¹ (p_o − (1 − p_o) ln u)² du = p_o² + 2p_o(1 − p_o) + 2(1 − p_o)² = 1 + (1 − "
        "p_o)², using ∫ −ln u du = 1 and ∫ ln² u du = 2.",
        "With K draws per gap, their noise adds (1 − p_o)·n·p(1 − p)/K to the variance of the sum of n tuples; divided "
        "by n² and by p(1 − p)/(n p_o), this is p_o(1 − p_o)/K.",
        "The printed proof says that p̂_t is the unbiased estimator of least variance. That shows a ratio of at least "
        "1, not one that diverges. Taken literally, with p̂_t inside the sum, p̃_t = (1 − (1 − p_o)/t)·p̂_t and the "
        "ratio tends to 1.",
    ),
    broken="A constant share of gaps: here all gaps come early, while the estimate is poor, and the ratio is as large "
    "as one likes. The printed divergence is possible, but not under the printed assumptions.",
    simulate=_estimated,
)


STATEMENTS = (ORACLE_CONSISTENT, ORACLE_WITHOUT_FRACTION, ORACLE_EFFICIENT, ESTIMATE_BASED)
