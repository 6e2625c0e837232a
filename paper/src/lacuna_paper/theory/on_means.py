"""Statements on the three estimators of a mean reward in one context: observed, missing-as-`?`, and imputed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from lacuna_paper.theory.bandit import (
    FIXED,
    GIVEN_REWARD,
    MISSING_AS_STATE,
    SEEN_SHARES,
    TRUE_SHARES,
    Tables,
    World,
    make_rule,
    make_world,
    run_bandit,
)
from lacuna_paper.theory.measuring import Floats, mean_of, standard_error, variance_of
from lacuna_paper.theory.statement import Case, Formula, Measurement, statement

STEPS, P_M = 40, 0.4
SHARES = np.array([0.7, 0.3])
MEANS = np.array([[1.0, 0.0], [0.0, 0.5]])
SPREADS = np.array([[1.0, 0.5], [0.7, 1.2]])
TABLE = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
"""Shares of the two actions when the state is x, is y, is hidden: they depend on the state, but on no reward."""

MEAN_IF_HIDDEN = SHARES @ MEANS
VARIANCE_IF_HIDDEN = SHARES @ (SPREADS**2 + MEANS**2) - MEAN_IF_HIDDEN**2

_CELLS = [(s, a) for s in (0, 1) for a in (0, 1)]
_SKEWED = (0.2, 0.8)
_SKEWED_NAME = "x hidden with 0.2 and y with 0.8"
_LEARNERS = ((0.0, "greedy"), (0.1, "ε-greedy, ε = 0.1"))


def _cell(s: int, a: int) -> str:
    return f"state {'xy'[s]}, action {a}"


def truncated_inverse(n: int, share: float) -> float:
    """𝔼[1/N | N ≥ 1] for a binomial N.

    Examples
    --------
    >>> truncated_inverse(2, 0.5)  # N is 1 twice as often as it is 2
    0.8333333333333334
    """
    N = np.arange(1, n + 1)
    mass = np.asarray(binom.pmf(N, n, share))
    return float((mass / N).sum() / mass.sum())


def _conditioned(case: Case) -> float:
    """σ² 𝔼[1/n | n ≥ 1] of a mean that takes up each of t rewards with probability `share`."""
    return float(case["sigma"] ** 2 * truncated_inverse(int(case["t"]), case["share"]))


def _world(hide: ArrayLike = P_M) -> World:
    return make_world([1.0], SHARES, hide, MEANS[None], SPREADS[None])


def _fixed(effort: float, seed: int, hide: ArrayLike = P_M, steps: int = STEPS) -> Tables:
    """Tables after steps whose actions follow the fixed table."""
    world = _world(hide)
    rule = make_rule(FIXED, world, table=TABLE, guess_from=TRUE_SHARES)
    return run_bandit(world, rule, steps, int(100_000 * effort), seed, "fixed", str(hide), steps)[0]


def _learned(epsilon: float, effort: float, seed: int) -> Tables:
    """Tables after as many steps of a learner that treats missing as a state."""
    world = _world()
    rule = make_rule(MISSING_AS_STATE, world, epsilon=epsilon)
    return run_bandit(world, rule, STEPS, int(50_000 * effort), seed, "adaptive", epsilon)[0]


# Each path gives a mean; paths without a reward in it are left out.


def observed(tables: Tables, s: int, a: int) -> Floats:
    """Means of rewards where s was seen and a taken."""
    total, n = tables.sums[:, 0, s, a], tables.n[:, 0, s, a]
    return np.asarray(total[n > 0] / n[n > 0])


def hidden(tables: Tables, a: int) -> Floats:
    """Means of rewards where the state was hidden and a taken."""
    return observed(tables, -1, a)


def imputed(tables: Tables, s: int, a: int) -> Floats:
    """Means of rewards where s was seen or guessed and a taken."""
    total = tables.sums[:, 0, s, a] + tables.fill_sums[:, 0, s, a]
    n = tables.n[:, 0, s, a] + tables.fill_n[:, 0, s, a]
    return np.asarray(total[n > 0] / n[n > 0])


# --- observed, and missing as a state --------------------------------------------------------------------------------


@statement("observed-mean", printed=Formula('𝔼[μ̂_{s,a}^{"obs"}] = μ_{s,a}', lambda case: case["mu"]))
def observed_mean(effort: float, seed: int) -> Iterator[Measurement]:
    """Means with actions that do not learn, then under learners."""
    tables = _fixed(effort, seed)
    for s, a in _CELLS:
        yield mean_of(f"mean estimate, {_cell(s, a)}", {"mu": MEANS[s, a]}, observed(tables, s, a), scale=1.0)
    for epsilon, name in _LEARNERS:
        learned = _learned(epsilon, effort, seed)
        for s, a in _CELLS:
            what, case = f"mean estimate, {name}, {_cell(s, a)}", {"mu": MEANS[s, a]}
            yield mean_of(what, case, observed(learned, s, a), scale=1.0, broken=True)


@statement(
    "observed-variance",
    printed=Formula(r'𝕍(μ̂_{s,a}^{"obs"}) = σ_{s,a}^2 𝔼[\frac{1}{n}]', lambda _: inf),
    right=Formula(r'𝕍(μ̂_{s,a}^{"obs"} | n ≥ 1) = σ_{s,a}^2 𝔼[\frac{1}{n} | n ≥ 1]', _conditioned),
)
def observed_variance(effort: float, seed: int) -> Iterator[Measurement]:
    """Variances at two times, then under a greedy learner."""

    def case(s: int, a: int, t: int) -> Case:
        return {"t": t, "share": SHARES[s] * (1 - P_M) * TABLE[s, a], "sigma": SPREADS[s, a]}

    for t in (10, STEPS):
        tables = _fixed(effort, seed, steps=t)
        for s, a in _CELLS:
            what = f"variance of the estimate after {t} steps, {_cell(s, a)}"
            yield variance_of(what, case(s, a, t), observed(tables, s, a))
    found = observed(_learned(0.0, effort, seed), 0, 0)
    yield variance_of("variance of the estimate, greedy, state x, action 0", case(0, 0, STEPS), found, broken=True)


@statement(
    "missing-mean",
    printed=Formula(r'𝔼[μ̂_{?,a}^{"obs"}] = μ_a = \sum_s p_s μ_{s,a}', lambda case: case["mu"]),
)
def hidden_mean(effort: float, seed: int) -> Iterator[Measurement]:
    """Means with actions that do not learn; then with states hidden unequally often, and under learners."""

    def means(how: str, tables: Tables, *, broken: bool = True) -> Iterator[Measurement]:
        for a in (0, 1):
            what, case = f"mean estimate{how}, action {a}", {"mu": MEAN_IF_HIDDEN[a]}
            yield mean_of(what, case, hidden(tables, a), scale=1.0, broken=broken)

    yield from means("", _fixed(effort, seed), broken=False)
    yield from means(f", {_SKEWED_NAME}", _fixed(effort, seed, hide=_SKEWED))
    for epsilon, name in _LEARNERS:
        yield from means(f", {name}", _learned(epsilon, effort, seed))


@statement(
    "missing-variance",
    printed=Formula(r'𝕍(μ̂_{?,a}^{"obs"}) = σ_a^2 𝔼[\frac{1}{n_{a,m}}]', lambda _: inf),
    right=Formula(r'𝕍(μ̂_{?,a}^{"obs"} | n_{a,m} ≥ 1) = σ_a^2 𝔼[\frac{1}{n_{a,m}} | n_{a,m} ≥ 1]', _conditioned),
)
def hidden_variance(effort: float, seed: int) -> Iterator[Measurement]:
    """Variances at two times, then under a greedy learner."""

    def case(a: int, t: int) -> Case:
        return {"t": t, "share": P_M * TABLE[2, a], "sigma": float(np.sqrt(VARIANCE_IF_HIDDEN[a]))}

    for t in (10, STEPS):
        tables = _fixed(effort, seed, steps=t)
        for a in (0, 1):
            yield variance_of(f"variance of the estimate after {t} steps, action {a}", case(a, t), hidden(tables, a))
    found = hidden(_learned(0.0, effort, seed), 0)
    yield variance_of("variance of the estimate, greedy, action 0", case(0, STEPS), found, broken=True)


# --- imputed ---------------------------------------------------------------------------------------------------------

_WAYS = ((1, TRUE_SHARES, "K = 1, guesses from p"), (5, SEEN_SHARES, "K = 5, guesses from what was seen so far"))
_LOOKING = "guesses that look at the reward"


def _guessed(effort: float, seed: int, K: int, guess_from: int, hide: ArrayLike = P_M) -> Tables:
    """Tables after steps whose actions follow the fixed table, also on a guess."""
    world = _world(hide)
    rule = make_rule(FIXED, world, table=TABLE, guess_from=guess_from, K=K, on_guess=guess_from != GIVEN_REWARD)
    return run_bandit(world, rule, STEPS, int(100_000 * effort), seed, "imputed", K, guess_from, str(hide))[0]


def _expectations(tables: Tables, s: int, a: int) -> Case:
    """What the formulas need: expectations of counts alone, taken from the simulation."""
    n, filled = tables.n[:, 0, s, a], tables.fill_n[:, 0, s, a]
    some = n + filled > 0
    n, filled, squares = n[some], filled[some], tables.fill_squares[some, 0, s, a]
    total = n + filled
    return {
        "mu": MEANS[s, a], "mu_a": MEAN_IF_HIDDEN[a], "sigma": SPREADS[s, a], "variance_a": VARIANCE_IF_HIDDEN[a],
        "share": float((filled / total).mean()), "seen": float((n / total**2).mean()),
        "filled": float((squares / total**2).mean()), "spread": float((n / total).var()),
    }  # fmt: skip


@statement(
    "imputed-mean",
    printed=Formula(
        r'𝔼[μ̂_{s,a}^{"imp"}] = μ_{s,a} + (μ_a − μ_{s,a}) 𝔼[\frac{n̂_{s,a,m}}{n_{s,a,o} + n̂_{s,a,m}}]',
        lambda case: case["mu"] + (case["mu_a"] - case["mu"]) * case["share"],
    ),
)
def imputed_mean(effort: float, seed: int) -> Iterator[Measurement]:
    """Means for two ways to guess; then with guesses that look at the reward, and states hidden unequally often."""

    def mean(way: str, tables: Tables, s: int, a: int) -> Measurement:
        what, case = f"mean estimate, {way}, {_cell(s, a)}", _expectations(tables, s, a)
        return mean_of(what, case, imputed(tables, s, a), scale=1.0)

    for K, guess_from, way in _WAYS:
        tables = _guessed(effort, seed, K, guess_from)
        for s, a in _CELLS:
            yield mean(way, tables, s, a)
    for guess_from, hide, way in ((GIVEN_REWARD, P_M, _LOOKING), (TRUE_SHARES, _SKEWED, _SKEWED_NAME)):
        tables = _guessed(effort, seed, 1, guess_from, hide)
        for s in (0, 1):
            yield replace(mean(way, tables, s, s), broken=True)


def _variance_of_imputed(case: Case) -> float:
    within = case["sigma"] ** 2 * case["seen"] + case["variance_a"] * case["filled"]
    return float(within + (case["mu"] - case["mu_a"]) ** 2 * case["spread"])


@statement(
    "imputed-variance",
    printed=Formula(
        r"σ_{s,a}^2 𝔼[\frac{n_o}{(n_o + n̂_m)^2}] + σ_a^2 𝔼[\frac{\sum_j p̂_{js}^2}{(n_o + n̂_m)^2}] + "
        r"(μ_{s,a} − μ_a)^2 𝕍(\frac{n_o}{n_o + n̂_m})",
        _variance_of_imputed,
    ),
)
def imputed_variance(effort: float, seed: int) -> Iterator[Measurement]:
    """Variances for two ways to guess, then with guesses that look at the reward."""
    for K, guess_from, way in _WAYS:
        tables = _guessed(effort, seed, K, guess_from)
        for s, a in _CELLS:
            what = f"variance of the estimate, {way}, {_cell(s, a)}"
            yield variance_of(what, _expectations(tables, s, a), imputed(tables, s, a))
    tables = _guessed(effort, seed, 1, GIVEN_REWARD)
    what = f"variance of the estimate, {_LOOKING}, state y, action 1"
    yield variance_of(what, _expectations(tables, 1, 1), imputed(tables, 1, 1), broken=True)


@statement(
    "deterministic",
    printed=Formula(
        r'𝕍 = σ^2 𝔼[\frac{1}{n_{s*,a,o}}] "(observed)", '
        r'σ^2 𝔼[\frac{1}{n_{a,m}}] "(?)", σ^2 𝔼[\frac{1}{n_a}] "(imputed)"',
        _conditioned,
    ),
)
def deterministic(effort: float, seed: int) -> Iterator[Measurement]:
    """Variances of the three means where there is one state, then where there are two."""

    def case(which: int, share: float, p_m: float) -> Case:
        return {"which": which, "share": share, "p_m": p_m, "t": STEPS, "sigma": SPREADS[0, 0]}

    for p_m in (0.1, 0.5, 0.9):
        world = make_world([1.0], [[1.0]], p_m, MEANS[None, :1], SPREADS[None, :1])
        rule, paths = make_rule(FIXED, world), int(60_000 * effort)
        tables, _ = run_bandit(world, rule, STEPS, paths, seed, "deterministic", p_m)
        means = (
            ("observed", 0.5 * (1 - p_m), observed(tables, 0, 0)),
            ("?", 0.5 * p_m, hidden(tables, 0)),
            ("imputed", 0.5, imputed(tables, 0, 0)),
        )
        for which, (name, share, found) in enumerate(means):
            yield variance_of(f"variance of the {name} mean, p_m = {p_m}", case(which, share, p_m), found)
    found = imputed(_guessed(effort, seed, 1, TRUE_SHARES), 0, 0)
    what = "variance of the imputed mean, p_x = 0.7"
    yield variance_of(what, case(2, float(SHARES @ [0.6, 0.3]), P_M), found, broken=True)


# --- bias against variance -------------------------------------------------------------------------------------------


def mse_gap(q: float, t: int, p_m: float = 0.5, delta: float = 1.0, sigma: float = 1.0) -> float:
    """Mean squared error of the imputed mean less that of the observed one, averaged over states; exactly.

    Two states with probabilities q and 1 - q whose mean rewards differ by `delta`; K = 1, guesses from p, two actions
    at random.

    Examples
    --------
    >>> mse_gap(1.0, 100) < 0 < mse_gap(0.9, 1000)
    True
    """
    gap = 0.0
    for p in (q, 1 - q):
        if p > 0:
            variance_a = sigma**2 + delta**2 * q * (1 - q)
            one = truncated_inverse(t, 0.5 * p)
            away = (delta * (1 - p)) ** 2
            both = (sigma**2 * (1 - p_m) + variance_a * p_m + away * p_m * (1 - p_m)) * one + away * p_m**2
            gap += p * (both - sigma**2 * truncated_inverse(t, 0.5 * p * (1 - p_m)))
    return gap


def crossing(t: int) -> float:
    """The predictiveness q above which imputing has the smaller error after t steps, by bisection.

    Examples
    --------
    >>> round(crossing(100), 2) < round(crossing(1000), 2)
    True
    """
    low, high = 0.5, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if mse_gap(middle, t) > 0 else (low, middle)
    return high


@lru_cache(maxsize=64)
def simulated_gap(q: float, t: int, paths: int, seed: int, guess_from: int = TRUE_SHARES) -> tuple[float, float]:
    """The same difference from a simulation, and its standard error."""
    world = make_world([1.0], [[q, 1 - q]], 0.5, [[[1.0, 0.5], [0.0, 0.5]]])
    rule = make_rule(FIXED, world, guess_from=guess_from)
    tables, _ = run_bandit(world, rule, t, paths, seed, "gap", q, t, guess_from)
    gap, square = 0.0, 0.0
    for s, p in ((0, q), (1, 1 - q)):
        for estimates, sign in ((imputed(tables, s, 0), 1), (observed(tables, s, 0), -1)):
            values = (estimates - world.means[0, s, 0]) ** 2
            if values.size:
                gap += sign * p * float(values.mean())
                square += (p * standard_error(values)) ** 2
    return gap, float(np.sqrt(square))


@statement(
    "trade-off",
    printed=Formula('"MSE"_{"imp"} − "MSE"_{"obs"} "falls as" q "grows"', lambda _: 0.0, "<"),
    right=Formula(
        r"\sum_s p_s ((σ^2 (1 − p_m) + σ_a^2 p_m + δ_s^2 p_m (1 − p_m)) 𝔼[\frac{1}{N_s}] "
        r"+ δ_s^2 p_m^2 − σ^2 𝔼[\frac{1}{n_s}])",
        lambda case: mse_gap(case["high"], int(case["t"])) - mse_gap(case["low"], int(case["t"])),
    ),
)
def trade_off(effort: float, seed: int) -> Iterator[Measurement]:
    """How the difference of errors changes from q = 0.5 to larger q; then with guesses that look at the reward."""
    paths = {100: int(100_000 * effort), 400: int(24_000 * effort)}

    def change(high: float, t: int, guess_from: int = TRUE_SHARES) -> Measurement:
        (before, error), (after, other) = (simulated_gap(q, t, paths[t], seed, guess_from) for q in (0.5, high))
        what = f"change of MSE(imputed) − MSE(observed) from q = 0.5 to {high} after {t} steps"
        case = {"low": 0.5, "high": high, "t": t}
        return Measurement(what, case, after - before, float(np.hypot(error, other)), scale=0.06)

    for t in paths:
        for q in (0.9, 0.98, 1.0):
            yield change(q, t)
    looking = change(0.9, 400, GIVEN_REWARD)
    yield replace(looking, what=f"{looking.what}, {_LOOKING}", broken=True)
