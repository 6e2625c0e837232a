"""Statements on the imputed mean reward: its bias, its variance, and the case where the context says everything."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lacuna.theory.bandit import (
    FIXED,
    GIVEN_REWARD,
    SEEN_SHARES,
    TRUE_SHARES,
    Tables,
    make_rule,
    make_world,
    run_bandit,
)
from lacuna.theory.chance import error_of_mean, error_of_variance
from lacuna.theory.on_means import (
    MEANS,
    P_M,
    SHARES,
    SPREADS,
    STEPS,
    TABLE,
    hidden,
    imputed,
    mean_if_hidden,
    observed,
    truncated_inverse,
    variance_if_hidden,
    world_with,
)
from lacuna.theory.statement import Case, Evidence, Formula, Measurement, Statement

_NAMES = ("x", "y")
_CELLS = ((0, 0), (0, 1), (1, 0), (1, 1))
_SETTING = (
    "one context c; states are independent with p_s; here p = (0.7, 0.3), two actions, 40 steps",
    "the state is hidden with probability p_m = 0.4, whatever it is (MAR given c)",
    "actions may depend on the state or on its guess, but on no reward of any time (assumption 4)",
    "guesses are drawn from any probabilities, learned ones included, without looking at rewards (assumption 6)",
)


def _tables(effort: float, seed: int, K: int, guesses: int, hide: object = P_M) -> Tables:
    world = world_with(hide)
    rule = make_rule(FIXED, world, table=TABLE, guesses=guesses, K=K, on_guess=guesses != GIVEN_REWARD)
    return run_bandit(world, rule, STEPS, int(100_000 * effort), seed, "imputed", K, guesses, str(hide)).tables


def _case(tables: Tables, s: int, a: int) -> dict[str, float]:
    """The expectations that the formulas need; they concern counts alone and are taken from the simulation."""
    n, filled = tables.seen_n[:, 0, s, a], tables.fill_n[:, 0, s, a]
    some = n + filled > 0
    n, filled, squares = n[some], filled[some], tables.fill_squares[some, 0, s, a]
    total = n + filled
    return {
        "mu": MEANS[s, a], "mu_a": mean_if_hidden[a], "sigma": SPREADS[s, a], "variance_a": variance_if_hidden[a],
        "share": float((filled / total).mean()), "seen": float((n / total**2).mean()),
        "filled": float((squares / total**2).mean()), "spread": float((n / total).var()),
    }  # fmt: skip


_WAYS = ((1, TRUE_SHARES, "K = 1, guesses from p"), (5, SEEN_SHARES, "K = 5, guesses from what was seen so far"))


def _imputed_mean(effort: float, seed: int) -> Evidence:
    kept = []
    for K, guesses, way in _WAYS:
        tables = _tables(effort, seed, K, guesses)
        for s, a in _CELLS:
            values = imputed(s, a)(tables)
            what = f"mean estimate, {way}, state {_NAMES[s]}, action {a}"
            kept.append(Measurement(what, _case(tables, s, a), float(values.mean()), error_of_mean(values), scale=1.0))
    broken = []
    looking = _tables(effort, seed, 1, GIVEN_REWARD)
    skewed = _tables(effort, seed, 1, TRUE_SHARES, hide=(0.2, 0.8))
    for tables, way in ((looking, "guesses that look at the reward"), (skewed, "x hidden with 0.2 and y with 0.8")):
        for s, a in ((0, 0), (1, 1)):
            values = imputed(s, a)(tables)
            what = f"mean estimate, {way}, state {_NAMES[s]}, action {a}"
            broken.append(
                Measurement(what, _case(tables, s, a), float(values.mean()), error_of_mean(values), scale=1.0)
            )
    return Evidence(tuple(kept), tuple(broken))


IMPUTED_MEAN = Statement(
    id="imputed-mean",
    title="The imputed mean is biased towards the average",
    place="A.2.5, theorem A.6",
    claim="Crediting rewards to guessed states pulls the mean of s towards μ_a, by the share of imputed rewards in it.",
    assumptions=_SETTING,
    printed=Formula(
        r'𝔼[μ̂_{s,a}^{"imp"}] = μ_{s,a} + (μ_a − μ_{s,a}) 𝔼[\frac{n̂_{s,a,m}}{n_{s,a,o} + n̂_{s,a,m}}]',
        lambda case: case["mu"] + (case["mu_a"] - case["mu"]) * case["share"],
    ),
    right=None,
    proof=(
        "Given states seen, masks, actions and guesses, an observed reward in the mean has expectation μ_{s,a}; an "
        "imputed one μ_a, as its true state has the distribution p whatever was guessed. The footnote's doubt is "
        "unfounded: learned guesses change nothing, so long as neither guesses nor actions look at rewards.",
        "With K = 1, guesses from p, and guesses acted on like states, the expected share is exactly p_m. The bias "
        "does not fade with time: it is the price of leaving the reward out of the imputation, as any textbook on "
        "multiple imputation would warn.",
    ),
    broken="Assumption 6: guesses drawn from p(s | c, a, r), which looks at the reward, remove nearly all of the bias. "
    "And MAR: hidden rewards then come from other states than p says.",
    simulate=_imputed_mean,
)


def _imputed_variance(effort: float, seed: int) -> Evidence:
    kept = []
    for K, guesses, way in _WAYS:
        tables = _tables(effort, seed, K, guesses)
        for s, a in _CELLS:
            values = imputed(s, a)(tables)
            what = f"variance of the estimate, {way}, state {_NAMES[s]}, action {a}"
            kept.append(Measurement(what, _case(tables, s, a), float(values.var(ddof=1)), error_of_variance(values)))
    looking = _tables(effort, seed, 1, GIVEN_REWARD)
    values = imputed(1, 1)(looking)
    what = "variance of the estimate, guesses that look at the reward, state y, action 1"
    broken = Measurement(what, _case(looking, 1, 1), float(values.var(ddof=1)), error_of_variance(values))
    return Evidence(tuple(kept), (broken,))


def _variance_of_imputed(case: Case) -> float:
    within = case["sigma"] ** 2 * case["seen"] + case["variance_a"] * case["filled"]
    return float(within + (case["mu"] - case["mu_a"]) ** 2 * case["spread"])


IMPUTED_VARIANCE = Statement(
    id="imputed-variance",
    title="The variance of the imputed mean",
    place="A.2.5, theorem A.7",
    claim="The variance has three parts: noise of observed rewards, noise of imputed rewards, and the changing share "
    "of the two.",
    assumptions=_SETTING,
    printed=Formula(
        r"σ_{s,a}^2 𝔼[\frac{n_o}{(n_o + n̂_m)^2}] + σ_a^2 𝔼[\frac{\sum_j p̂_{js}^2}{(n_o + n̂_m)^2}] + "
        r"(μ_{s,a} − μ_a)^2 𝕍(\frac{n_o}{n_o + n̂_m})",
        _variance_of_imputed,
    ),
    right=None,
    proof=(
        "Given states seen, masks, actions and guesses, rewards are independent: an observed one has weight 1/(n_o + "
        "n̂_m) and variance σ_{s,a}², an imputed one weight p̂_{js}/(n_o + n̂_m), p̂_{js} being the share of its K "
        "guesses that say s, and variance σ_a². The conditional mean is μ_a + (μ_{s,a} − μ_a)·n_o/(n_o + n̂_m). The "
        "law of total variance adds the three parts.",
    ),
    broken="Assumption 6: guesses that look at the reward sort rewards by size, and the variance is no longer that of "
    "rewards at random.",
    simulate=_imputed_variance,
)


def _deterministic(effort: float, seed: int) -> Evidence:
    kept, paths = [], int(60_000 * effort)
    for p_m in (0.1, 0.5, 0.9):
        world = make_world([1.0], [[1.0]], p_m, MEANS[None, :1], SPREADS[None, :1])
        tables = run_bandit(world, make_rule(FIXED, world), STEPS, paths, seed, "deterministic", p_m).tables
        for which, estimator, share in (
            (0, observed(0, 0), 0.5 * (1 - p_m)), (1, hidden(0), 0.5 * p_m), (2, imputed(0, 0), 0.5),
        ):  # fmt: skip
            values = estimator(tables)
            case = {"which": which, "share": share, "p_m": p_m, "t": STEPS, "sigma": SPREADS[0, 0]}
            what = f"variance of the {('observed', '?', 'imputed')[which]} mean, p_m = {p_m}"
            kept.append(Measurement(what, case, float(values.var(ddof=1)), error_of_variance(values)))
    tables = _tables(effort, seed, 1, TRUE_SHARES)
    values = imputed(0, 0)(tables)
    case = {"which": 2, "share": float(SHARES @ [0.6, 0.3]), "p_m": P_M, "t": STEPS, "sigma": SPREADS[0, 0]}
    broken = Measurement(
        "variance of the imputed mean, p_x = 0.7", case, float(values.var(ddof=1)), error_of_variance(values)
    )
    return Evidence(tuple(kept), (broken,))


DETERMINISTIC = Statement(
    id="deterministic",
    title="A context that says everything: imputing pools the data",
    place="A.2.4",
    claim="If the context determines the state, the observed mean, the mean of `?` and the imputed mean are all "
    "unbiased, and the imputed one, which uses all rewards, has the least variance.",
    assumptions=(
        "p_{s*} = 1: the context determines the state",
        "hidden with probability p_m; actions at random",
        "each count at least 1",
    ),
    printed=Formula(
        r'𝕍 = σ^2 𝔼[\frac{1}{n_{s*,a,o}}] "(observed)", '
        r'σ^2 𝔼[\frac{1}{n_{a,m}}] "(?)", σ^2 𝔼[\frac{1}{n_a}] "(imputed)"',
        lambda case: float(case["sigma"] ** 2 * truncated_inverse(int(case["t"]), case["share"])),
    ),
    right=None,
    proof=(
        "Every guess is right, so the imputed mean is the mean of all n_a = n_{s*,a,o} + n_{a,m} rewards. A binomial "
        "count given that it is at least 1 grows stochastically with its probability, so its 𝔼[1/n] falls: the "
        "imputed mean has the least variance.",
        "Weighted by how often each is used, the two means of the missing-as-state approach have variance (1 − "
        "p_m)·σ²/(n(1 − p_m)) + p_m·σ²/(n p_m) = 2σ²/n whatever p_m is: twice that of pooling, on a plateau. It falls "
        "to 1 only where one of the two is hardly ever used. Hence the U of the text, with steep sides and a flat "
        "bottom.",
    ),
    broken="p_{s*} = 1: with p_x = 0.7 guesses are wrong three times in ten, and the imputed mean has another variance "
    "(and a bias).",
    simulate=_deterministic,
)


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
def simulated_gap(q: float, t: int, paths: int, seed: int, guesses: int = TRUE_SHARES) -> tuple[float, float]:
    """The same difference from a simulation, and its standard error."""
    world = make_world([1.0], [[q, 1 - q]], 0.5, [[[1.0, 0.5], [0.0, 0.5]]])
    rule = make_rule(FIXED, world, guesses=guesses)
    tables = run_bandit(world, rule, t, paths, seed, "gap", q, t, guesses).tables
    gap, square = 0.0, 0.0
    for s, p in ((0, q), (1, 1 - q)):
        for estimator, sign in ((imputed(s, 0), 1), (observed(s, 0), -1)):
            values = (estimator(tables) - world.means[0, s, 0]) ** 2
            if values.size:
                gap += sign * p * float(values.mean())
                square += (p * error_of_mean(values)) ** 2
    return gap, float(np.sqrt(square))


def _change(low: float, high: float, t: int, paths: int, seed: int, guesses: int = TRUE_SHARES) -> Measurement:
    """How the difference changes between two values of q."""
    (before, error), (after, other) = (simulated_gap(q, t, paths, seed, guesses) for q in (low, high))
    how = ", guesses that look at the reward" if guesses == GIVEN_REWARD else ""
    what = f"change of MSE(imputed) − MSE(observed) from q = {low} to {high} after {t} steps{how}"
    case = {"low": low, "high": high, "t": t}
    return Measurement(what, case, after - before, float(np.hypot(error, other)), scale=0.06)


def _tradeoff(effort: float, seed: int) -> Evidence:
    paths = {100: int(100_000 * effort), 400: int(24_000 * effort)}
    kept = [_change(0.5, q, t, paths[t], seed) for t in paths for q in (0.9, 0.98, 1.0)]
    return Evidence(tuple(kept), (_change(0.5, 0.9, 400, paths[400], seed, GIVEN_REWARD),))


TRADE_OFF = Statement(
    id="trade-off",
    title="Bias against variance: how predictive must the context be?",
    place="A.2.4",
    claim="Imputing trades bias for variance, and pays more the better the context predicts the state.",
    assumptions=(
        "two states with probabilities q ≥ ½ and 1 − q and means δ = 1 apart; rewards with variance 1",
        "hidden with p_m = ½; K = 1, guesses from p; two actions at random",
        "error of a mean: squared, weighted by how likely its state is",
    ),
    printed=Formula('"MSE"_{"imp"} − "MSE"_{"obs"} "falls as" q "grows"', lambda _: 0.0, "<"),
    right=Formula(
        r"\sum_s p_s ((σ^2 (1 − p_m) + σ_a^2 p_m + δ_s^2 p_m (1 − p_m)) 𝔼[\frac{1}{N_s}] "
        r"+ δ_s^2 p_m^2 − σ^2 𝔼[\frac{1}{n_s}])",
        lambda case: mse_gap(case["high"], int(case["t"])) - mse_gap(case["low"], int(case["t"])),
    ),
    proof=(
        "With K = 1 and guesses from p, N_s = n_s + n̂_s is binomial with probability p_s/2 and, given N_s, n̂_s is "
        "binomial with probability p_m. The error of the imputed mean is therefore 𝔼[σ²n_s/N_s² + σ_a²n̂_s/N_s² + "
        "δ_s²(n̂_s/N_s)²] with δ_s = μ_a − μ_s, which gives the first two terms; all expectations given at least one "
        "reward.",
        "The squared bias adds up to δ²p_m²·q(1 − q) and stays for ever, while all else falls like 1/t. So imputing "
        "wins while q(1 − q) < const/t: for every q < 1 the missing-as-state approach has the smaller error in the "
        "end, and the predictiveness q* at which the two cross moves to 1 like 1 − q* ≈ const/t. The print does not "
        "say that imputing pays only early.",
    ),
    broken="Guesses that look at the reward (assumption 6) have next to no bias; the trade-off all but disappears.",
    simulate=_tradeoff,
)

STATEMENTS = (IMPUTED_MEAN, IMPUTED_VARIANCE, DETERMINISTIC, TRADE_OFF)
