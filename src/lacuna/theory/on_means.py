"""Statements on the three estimators of a mean reward in one context: observed, missing-as-`?`, and imputed."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from scipy.stats import binom

from lacuna.theory.bandit import (
    FIXED,
    MISSING_AS_STATE,
    TRUE_SHARES,
    Tables,
    World,
    make_rule,
    make_world,
    run_bandit,
)
from lacuna.theory.chance import Floats, error_of_mean, error_of_variance
from lacuna.theory.statement import Case, Evidence, Formula, Measurement, Statement

STEPS, P_M = 40, 0.4
SHARES = np.array([0.7, 0.3])
MEANS = np.array([[1.0, 0.0], [0.0, 0.5]])
SPREADS = np.array([[1.0, 0.5], [0.7, 1.2]])
TABLE = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
"""Shares of the two actions when the state is x, is y, is hidden: they depend on the state, but on no reward."""

_NAMES = ("x", "y")
_SETTING = (
    "one context c; states are independent with p_s; here p = (0.7, 0.3), two actions, 40 steps",
    "the state is hidden with probability p_m = 0.4, whatever it is (MAR given c)",
    "actions may depend on the state where it is seen, but on no reward of any time (assumption 4)",
)
_ADAPTIVE = (
    "Assumption 4, which says that actions of any time do not depend on rewards given the state. Every learner breaks "
    "it: an action is dropped after an unlucky reward and its mean is never corrected, whereas a lucky mean is. "
)

mean_if_hidden = SHARES @ MEANS
variance_if_hidden = SHARES @ (SPREADS**2 + MEANS**2) - mean_if_hidden**2


def world_with(hidden: object = P_M) -> World:
    """The bandit of these statements."""
    return make_world([1.0], SHARES, hidden, MEANS[None], SPREADS[None])


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


Estimator = Callable[[Tables], Floats]


def observed(s: int, a: int) -> Estimator:
    """Mean of rewards where s was seen and a taken; paths without any are left out."""

    def of(tables: Tables) -> Floats:
        n = tables.seen_n[:, 0, s, a]
        return np.asarray(tables.seen_sum[n > 0, 0, s, a] / n[n > 0])

    return of


def hidden(a: int) -> Estimator:
    """Mean of rewards where the state was hidden and a taken."""

    def of(tables: Tables) -> Floats:
        n = tables.lost_n[:, 0, a]
        return np.asarray(tables.lost_sum[n > 0, 0, a] / n[n > 0])

    return of


def imputed(s: int, a: int) -> Estimator:
    """Mean of rewards where s was seen or guessed and a taken."""

    def of(tables: Tables) -> Floats:
        n = tables.seen_n[:, 0, s, a] + tables.fill_n[:, 0, s, a]
        total = tables.seen_sum[:, 0, s, a] + tables.fill_sum[:, 0, s, a]
        return total[n > 0] / n[n > 0]

    return of


def _mean(what: str, values: Floats, case: Case) -> Measurement:
    return Measurement(what, case, float(values.mean()), error_of_mean(values), scale=1.0)


def _variance(what: str, values: Floats, case: Case) -> Measurement:
    return Measurement(what, case, float(values.var(ddof=1)), error_of_variance(values))


def fixed_tables(effort: float, seed: int, hide: object = P_M, steps: int = STEPS) -> Tables:
    """Tables after steps whose actions follow the fixed table."""
    world = world_with(hide)
    rule = make_rule(FIXED, world, table=TABLE, guesses=TRUE_SHARES)
    return run_bandit(world, rule, steps, int(100_000 * effort), seed, "fixed", str(hide), steps).tables


def adaptive_tables(epsilon: float, effort: float, seed: int) -> Tables:
    """Tables after as many steps of a learner that treats missing as a state."""
    world = world_with()
    rule = make_rule(MISSING_AS_STATE, world, epsilon=epsilon)
    return run_bandit(world, rule, STEPS, int(50_000 * effort), seed, "adaptive", epsilon).tables


_LEARNERS = ((0.0, "greedy"), (0.1, "ε-greedy, ε = 0.1"))


def _observed_mean(effort: float, seed: int) -> Evidence:
    tables = fixed_tables(effort, seed)
    cells = [(s, a) for s in (0, 1) for a in (0, 1)]
    kept = [
        _mean(f"mean estimate, state {_NAMES[s]}, action {a}", observed(s, a)(tables), {"mu": MEANS[s, a]})
        for s, a in cells
    ]
    broken = []
    for epsilon, name in _LEARNERS:
        learned = adaptive_tables(epsilon, effort, seed)
        broken += [
            _mean(f"mean estimate, {name}, state {_NAMES[s]}, action {a}", observed(s, a)(learned), {"mu": MEANS[s, a]})
            for s, a in cells
        ]
    return Evidence(tuple(kept), tuple(broken))


OBSERVED_MEAN = Statement(
    id="observed-mean",
    title="The observed mean is unbiased, for actions that do not learn",
    place="A.2.5, theorem A.2",
    claim="The mean of the rewards seen in state s under action a has the right expectation, for actions of a "
    "learning algorithm.",
    assumptions=(*_SETTING, "given at least one such reward: otherwise there is no mean"),
    printed=Formula('𝔼[μ̂_{s,a}^{"obs"}] = μ_{s,a}', lambda case: case["mu"]),
    right=None,
    proof=(
        "Given all states, masks and actions, the rewards in the mean are independent with expectation μ_{s,a} each, "
        "so the mean has that expectation, whatever n ≥ 1 is. The step uses that knowing all actions, later ones "
        "included, says nothing on a reward.",
        "For a learner the step is wrong: that a was taken again tells that the earlier rewards were good. The section "
        "allows learners in its first paragraph and excludes them by assumption 4.",
    ),
    broken=_ADAPTIVE + "The observed mean is then biased downwards, more so without exploration, and most where an "
    "action is rarely taken.",
    simulate=_observed_mean,
    quoted="some learning algorithm which may in general depend on the entire state-action-reward history",
)


def _observed_variance(effort: float, seed: int) -> Evidence:
    kept = []
    for steps in (10, STEPS):
        tables = fixed_tables(effort, seed, steps=steps)
        for s, a in ((0, 0), (0, 1), (1, 0), (1, 1)):
            share = SHARES[s] * (1 - P_M) * TABLE[s, a]
            case = {"t": steps, "share": share, "sigma": SPREADS[s, a]}
            what = f"variance of the estimate after {steps} steps, state {_NAMES[s]}, action {a}"
            kept.append(_variance(what, observed(s, a)(tables), case))
    learned = adaptive_tables(0.0, effort, seed)
    case = {"t": STEPS, "share": SHARES[0] * (1 - P_M) * TABLE[0, 0], "sigma": SPREADS[0, 0]}
    broken = _variance("variance of the estimate, greedy, state x, action 0", observed(0, 0)(learned), case)
    return Evidence(tuple(kept), (broken,))


def _conditioned(case: Case) -> float:
    return float(case["sigma"] ** 2 * truncated_inverse(int(case["t"]), case["share"]))


OBSERVED_VARIANCE = Statement(
    id="observed-variance",
    title="The variance of the observed mean",
    place="A.2.5, theorem A.3",
    claim="The variance of the observed mean is the variance of a reward times the expectation of 1/n.",
    assumptions=_SETTING,
    printed=Formula(r'𝕍(μ̂_{s,a}^{"obs"}) = σ_{s,a}^2 𝔼[\frac{1}{n}]', lambda _: inf),
    right=Formula(r'𝕍(μ̂_{s,a}^{"obs"} | n ≥ 1) = σ_{s,a}^2 𝔼[\frac{1}{n} | n ≥ 1]', _conditioned),
    proof=(
        "With probability (1 − π)^t > 0 there is no such reward, π being the probability of state, action and mask "
        "together; then 1/n is infinite, and so is its expectation. Condition on n ≥ 1.",
        "Given states, masks and actions the mean has variance σ²/n and a constant expectation. The law of total "
        "variance gives the formula; n is binomial, so it can be computed exactly.",
    ),
    broken=_ADAPTIVE + "The variance is then not that of a mean of n rewards either.",
    simulate=_observed_variance,
)


def _hidden_mean(effort: float, seed: int) -> Evidence:
    tables = fixed_tables(effort, seed)
    kept = [_mean(f"mean estimate, action {a}", hidden(a)(tables), {"mu": mean_if_hidden[a]}) for a in (0, 1)]
    skewed = fixed_tables(effort, seed, hide=(0.2, 0.8))
    broken = [
        _mean(
            f"mean estimate, x hidden with 0.2 and y with 0.8, action {a}", hidden(a)(skewed), {"mu": mean_if_hidden[a]}
        )
        for a in (0, 1)
    ]
    for epsilon, name in _LEARNERS:
        learned = adaptive_tables(epsilon, effort, seed)
        broken += [
            _mean(f"mean estimate, {name}, action {a}", hidden(a)(learned), {"mu": mean_if_hidden[a]}) for a in (0, 1)
        ]
    return Evidence(tuple(kept), tuple(broken))


HIDDEN_MEAN = Statement(
    id="missing-mean",
    title="The mean of `?` is the average over states",
    place="A.2.5, theorem A.4",
    claim="The mean of the rewards under a hidden state and action a has the expectation μ_a, the average of μ_{s,a} "
    "over states.",
    assumptions=(*_SETTING, "where the state is hidden, no action of any time depends on it (assumption 7)"),
    printed=Formula(r'𝔼[μ̂_{?,a}^{"obs"}] = μ_a = \sum_s p_s μ_{s,a}', lambda case: case["mu"]),
    right=None,
    proof=(
        "A hidden state has the distribution p whatever the actions, because nothing depends on it (assumption 7) and "
        "hiding does not either (MAR). So each reward in the mean has expectation μ_a given actions and masks.",
    ),
    broken="MAR: if y is hidden four times as often as x, the mean of `?` is that of the states that do get hidden, "
    "which is what a decision under `?` needs, but not μ_a. And assumption 4: learners make this mean too small as "
    "well.",
    simulate=_hidden_mean,
)


def _hidden_variance(effort: float, seed: int) -> Evidence:
    kept = []
    for steps in (10, STEPS):
        tables = fixed_tables(effort, seed, steps=steps)
        for a in (0, 1):
            case = {"t": steps, "share": P_M * TABLE[2, a], "sigma": float(np.sqrt(variance_if_hidden[a]))}
            kept.append(_variance(f"variance of the estimate after {steps} steps, action {a}", hidden(a)(tables), case))
    learned = adaptive_tables(0.0, effort, seed)
    case = {"t": STEPS, "share": P_M * TABLE[2, 0], "sigma": float(np.sqrt(variance_if_hidden[0]))}
    return Evidence(tuple(kept), (_variance("variance of the estimate, greedy, action 0", hidden(0)(learned), case),))


HIDDEN_VARIANCE = Statement(
    id="missing-variance",
    title="The variance of the mean of `?`",
    place="A.2.5, theorem A.5",
    claim="The variance of the mean under `?` is that of a reward over all states, times the expectation of 1/n.",
    assumptions=(*_SETTING, "where the state is hidden, no action of any time depends on it (assumption 7)"),
    printed=Formula(r'𝕍(μ̂_{?,a}^{"obs"}) = σ_a^2 𝔼[\frac{1}{n_{a,m}}]', lambda _: inf),
    right=Formula(r'𝕍(μ̂_{?,a}^{"obs"} | n_{a,m} ≥ 1) = σ_a^2 𝔼[\frac{1}{n_{a,m}} | n_{a,m} ≥ 1]', _conditioned),
    proof=(
        "As for the observed mean, with σ_a² = Σ p_s σ_{s,a}² + Σ p_s μ_{s,a}² − μ_a²: the spread within states plus "
        "the spread between them. Again 𝔼[1/n] is infinite unless n ≥ 1 is given.",
    ),
    broken=_ADAPTIVE + "The variance formula goes with the mean.",
    simulate=_hidden_variance,
)

STATEMENTS = (OBSERVED_MEAN, OBSERVED_VARIANCE, HIDDEN_MEAN, HIDDEN_VARIANCE)
