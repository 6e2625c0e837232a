"""Statements on the fractional Q update, checked by driving the kernels that agents learn with."""

from __future__ import annotations

from math import comb
from typing import get_args

import numpy as np

from lacuna.learning.qlearning import update_apart, update_together
from lacuna.learning.settings import Settings, Update
from lacuna.theory.chance import Floats, generator
from lacuna.theory.statement import Case, Evidence, Formula, Measurement, Statement

_ROUNDING = 1e-12
_S, _A = 4, 3
_UPDATES: tuple[Update, ...] = get_args(Update)
SEQUENTIAL, SIMULTANEOUS, EXACT_RATE = range(3)


def effective_rate(alpha: float, K: float) -> float:
    """The one rate that K sequential updates at rate α/K amount to.

    Examples
    --------
    >>> [round(effective_rate(1.0, K), 4) for K in (1, 2, 10, 1_000_000)]
    [1.0, 0.75, 0.6513, 0.6321]
    """
    return float(1 - (1 - alpha / K) ** K)


def printed_coefficients(K: int) -> list[float]:
    """c_{2,K} … c_{K,K} as printed: the last is 1, c_2 is 3 (from k = 3 on), and c_{j,k+1} = c_{j,k} + c_{j-1,k}.

    Examples
    --------
    >>> printed_coefficients(3), printed_coefficients(5)
    ([3.0, 1.0], [3.0, 7.0, 5.0, 1.0])
    """
    row = [1.0]
    for k in range(3, K + 1):
        inner = [row[j - 2] + row[j - 3] for j in range(3, k)]
        row = [3.0, *inner, 1.0]
    return row[: max(0, K - 1)]


def add_on(coefficients: list[float], r: float) -> float:
    """Give Σ_j (-1)^(j-1) c_j r^j over j = 2, 3, …."""
    return float(sum((-1) ** (j - 1) * c * r**j for j, c in enumerate(coefficients, start=2)))


def printed_rate(alpha: float, K: int) -> float:
    """The effective rate by the printed coefficients."""
    return alpha + add_on(printed_coefficients(K), alpha / K)


def right_add_on(alpha: float, K: int) -> float:
    """The add-on with binomial coefficients: what the effective rate has beyond α; negative."""
    return effective_rate(alpha, K) - alpha


class _Drive:
    """Updates of a random table by the kernels, as an agent with these settings would make them."""

    def __init__(self, alpha: float, K: int, gamma: float, update: int, seed: int) -> None:
        self.rules = Settings("mi-synthetic", K, alpha, gamma, 0.0, update=_UPDATES[update]).rules
        self.rng = generator(seed, "update", alpha, K, gamma, update)
        self.update = update
        self.K, self.gamma = K, gamma

    def rates(self, *, stay: bool = False, greedy: bool = True, end: bool = False, together: bool = False) -> Floats:
        """Change of Q(s, a) per temporal-difference error, for a hundred random tables."""
        return np.array([self._rate(stay, greedy, end, together) for _ in range(100)])

    def _rate(self, stay: bool, greedy: bool, end: bool, together: bool) -> float:
        Q = self.rng.normal(size=(_S, _A))
        s, a = 0, int(self.rng.integers(_A))
        s_next = s if stay else 1
        # A greedy action stays the best one whatever the update, an idle one never becomes it.
        Q[s, a] = Q[s].max() + 10 if greedy else Q[s].min() - 10
        before, discount = Q[s, a], 0.0 if end else self.gamma
        r = float(self.rng.normal()) + (before * (1 - discount) if stay and greedy else before)
        error = r + discount * Q[s_next].max() - before
        if together:
            update_together(Q, s, a, r, discount, s_next, self.update, self.K, self.rules.rate, self.rules.full_rate)
        else:
            states, following = np.full(self.K, s), np.full(self.K, s_next)
            update_apart(Q, states, a, r, discount, following, self.update, self.rules.rate, np.empty(self.K))
        return float((Q[s, a] - before) / error)


def _worst(what: str, rates: Floats, case: Case) -> Measurement:
    """The mean rate; as nothing here is random, any spread between tables counts as an error."""
    return Measurement(what, case, float(rates.mean()), float(rates.max() - rates.min()) + _ROUNDING)


_RATES = ((1.0, 2), (1.0, 3), (1.0, 10), (1.0, 100), (0.1, 10), (0.5, 5))


def _rate(effort: float, seed: int) -> Evidence:
    del effort  # the kernels answer at once
    kept = []
    for alpha, K in _RATES:
        drive = _Drive(alpha, K, 0.9, SEQUENTIAL, seed)
        case = {"alpha": alpha, "K": K}
        kept.append(_worst(f"rate of K updates one by one, α = {alpha}, K = {K}", drive.rates(), case))
        kept.append(_worst(f"rate of K updates at once, α = {alpha}, K = {K}", drive.rates(together=True), case))
        kept.append(
            _worst(
                f"rate at the end of an episode, s' = s, α = {alpha}, K = {K}", drive.rates(stay=True, end=True), case
            )
        )
    stay = _Drive(1.0, 10, 0.5, SEQUENTIAL, seed).rates(stay=True)
    broken = _worst("rate with s' = s and the greedy action, α = 1, K = 10, γ = 0.5", stay, {"alpha": 1.0, "K": 10})
    return Evidence(tuple(kept), (broken,))


FRACTIONAL_RATE = Statement(
    id="fractional-rate",
    title="K fractional updates are one update at another rate",
    place="A.3, theorem A.8",
    claim="For a fully observed step, K updates at rate r = α/K are one update at rate α plus an add-on that is "
    "orders of magnitude smaller than α.",
    assumptions=("s and s' are fully observed", "s' ≠ s, or s' ends the episode"),
    printed=Formula(
        r"α + \sum_{j=2}^{K} (−1)^{j−1} c_{j,K} r^j, c_{2,K} = 3, c_{K,K} = 1",
        lambda case: printed_rate(case["alpha"], int(case["K"])),
    ),
    right=Formula(r"1 − (1 − \frac{α}{K})^K → 1 − e^{−α}", lambda case: effective_rate(case["alpha"], case["K"])),
    proof=(
        "The target M = R + γ max Q(s', ·) does not move, so each update multiplies the distance M − Q(s, a) by 1 − r. "
        "After K of them it is (1 − r)^K of what it was: one update at rate 1 − (1 − α/K)^K. Expanded, this is Σ_j "
        "(−1)^(j−1) C(K, j) r^j.",
        "At α = 1 the rate is 0.75 for K = 2, 0.6513 for K = 10, and 1 − 1/e in the limit; at α = 0.1 and K = 10 it is "
        "0.0956. An agent with K = 10 learns like one with a smaller α, which matters when methods are compared at "
        "the same α.",
    ),
    broken="s' ≠ s: if a step returns to its own state and the action is the best there, the target moves along.",
    simulate=_rate,
    quoted="even for small K, this is orders of magnitude smaller than α",
)


def _addon(effort: float, seed: int) -> Evidence:
    del effort
    kept = []
    for K in (2, 3, 4, 5, 10, 30):
        rates = _Drive(1.0, K, 0.9, SEQUENTIAL, seed).rates() - 1.0
        kept.append(_worst(f"add-on to the rate at α = 1, K = {K}", rates, {"alpha": 1.0, "K": K}))
    exact = _Drive(1.0, 10, 0.9, SIMULTANEOUS, seed).rates() - 1.0
    broken = _worst("add-on to the rate at α = 1, K = 10, simultaneous updates", exact, {"alpha": 1.0, "K": 10})
    return Evidence(tuple(kept), (broken,))


FRACTIONAL_ADD_ON = Statement(
    id="fractional-add-on",
    title="The coefficients are binomial, so the add-on is large",
    place="A.3, theorem A.8 and figure 5",
    claim="The coefficients of the add-on are c_{2,k} = 3 and grow like Fibonacci numbers; the figure shows an add-on "
    "close to 0 at α = 1.",
    assumptions=("as before; α = 1, so r = 1/K",),
    printed=Formula(
        r"\sum_{j=2}^{K} (−1)^{j−1} c_{j,K} r^j, c_{2,K} = 3, c_{j,k+1} = c_{j,k} + c_{j−1,k}",
        lambda case: printed_rate(case["alpha"], int(case["K"])) - case["alpha"],
    ),
    right=Formula(
        r"\sum_{j=2}^{K} (−1)^{j−1} C(K, j) r^j = 1 − (1 − \frac{1}{K})^K − 1 → −\frac{1}{e}",
        lambda case: add_on([comb(int(case["K"]), j) for j in range(2, int(case["K"]) + 1)], case["alpha"] / case["K"]),
    ),
    proof=(
        "The print's own recursion c_{j,k+1} = c_{j,k} + c_{j−1,k} with c_{1,k} = k is Pascal's triangle: c_{j,k} = "
        "C(k, j). Its start c_{2,k} = 3 for all k is right for k = 3 only, and contradicts c_{k,k} = 1 at k = 2 and "
        "the recursion at k = 4, where C(4, 2) = 6.",
        "The terms are not smaller than r²: the first is −C(K, 2)/K² = −(1 − 1/K)/2. With 3 in its place the sum is of "
        "order 1/K², which explains a figure that shows nothing.",
    ),
    broken="Updates one after the other: with simultaneous updates there is no add-on at all.",
    simulate=_addon,
    quoted="also grow exponentially because of their recursive Fibonacci-sequence-like form",
)


def _same_state(effort: float, seed: int) -> Evidence:
    del effort
    kept = []
    for alpha, K, gamma in ((1.0, 10, 0.5), (1.0, 10, 0.9), (1.0, 2, 0.5), (0.1, 10, 0.5), (1.0, 10, 1.0)):
        drive = _Drive(alpha, K, gamma, SEQUENTIAL, seed)
        case = {"alpha": alpha, "K": K, "gamma": gamma}
        at = f"α = {alpha}, K = {K}, γ = {gamma}"
        kept.append(_worst(f"rate, the action is the best, {at}", drive.rates(stay=True), {**case, "greedy": 1}))
        kept.append(
            _worst(
                f"rate, the action is not the best, {at}", drive.rates(stay=True, greedy=False), {**case, "greedy": 0}
            )
        )
    end = _Drive(1.0, 10, 0.5, SEQUENTIAL, seed).rates(stay=True, end=True)
    case = {"alpha": 1.0, "K": 10, "gamma": 0.5, "greedy": 1}
    return Evidence(tuple(kept), (_worst("rate, the step ends the episode, α = 1, K = 10, γ = 0.5", end, case),))


def same_state_rate(case: Case) -> float:
    """Rate of K sequential updates of a step that returns to its own state."""
    alpha, K, gamma = case["alpha"], case["K"], case["gamma"]
    if not case["greedy"]:
        return effective_rate(alpha, K)
    return alpha if gamma == 1 else float((1 - (1 - alpha * (1 - gamma) / K) ** K) / (1 - gamma))


SAME_STATE = Statement(
    id="fractional-same-state",
    title="A step that returns to its own state",
    place="A.3",
    claim="With s' = s the theorem is said to apply still if the largest value at s does not change, which is said to "
    "become likelier as learning converges.",
    assumptions=(
        "s and s' = s are fully observed, and the step does not end the episode",
        "the action stays the best at s, or stays not the best",
    ),
    printed=Formula(
        r"α + \sum_{j=2}^{K} (−1)^{j−1} c_{j,K} r^j, c_{2,K} = 3, c_{K,K} = 1",
        lambda case: printed_rate(case["alpha"], int(case["K"])),
    ),
    right=Formula(
        r'\frac{1 − (1 − (1 − γ) α/K)^K}{1 − γ} "if" a "stays best"; α "if also" γ = 1; '
        r'1 − (1 − \frac{α}{K})^K "otherwise"',
        same_state_rate,
    ),
    proof=(
        "If a is not the best at s, the target does not move and the theorem, its coefficients corrected, applies: "
        "that much of the print is right. If a stays the best, which for a greedy agent is the rule, the target R + "
        "γQ(s, a) moves along: each update multiplies R − (1 − γ)Q(s, a) by 1 − (1 − γ)α/K. Adding up the K steps "
        "gives the formula; 0.803 at α = 1, K = 10, γ = ½. At γ = 1 the error never shrinks and K updates are exactly "
        "one at rate α.",
        "Convergence does not help: any error that is not 0 moves the largest value. An action that becomes the best "
        "half-way lies between the two.",
    ),
    broken="Not ending the episode: at the end nothing is bootstrapped, the target stays, and the rate is the "
    "theorem's again.",
    simulate=_same_state,
    quoted="more likely as the Q-Learning converges so that small updates do not change the maximum",
)


def _alternatives(effort: float, seed: int) -> Evidence:
    del effort
    kept = []
    for alpha, K in ((1.0, 10), (0.5, 5), (0.1, 10)):
        for update, name in ((SIMULTANEOUS, "simultaneous"), (EXACT_RATE, "exact rate")):
            drive = _Drive(alpha, K, 0.9, update, seed)
            what = f"rate, {name}, α = {alpha}, K = {K}"
            kept.append(_worst(what, drive.rates(), {"alpha": alpha}))
            kept.append(_worst(what + ", at once", drive.rates(together=True), {"alpha": alpha}))
        stay = _Drive(alpha, K, 0.9, SIMULTANEOUS, seed).rates(stay=True)
        kept.append(_worst(f"rate, simultaneous, s' = s, α = {alpha}, K = {K}", stay, {"alpha": alpha}))
    drive = _Drive(0.5, 5, 0.9, EXACT_RATE, seed)
    broken = _worst(
        "rate, exact rate, s' = s and the greedy action, α = 0.5, K = 5", drive.rates(stay=True), {"alpha": 0.5}
    )
    return Evidence(tuple(kept), (broken,))


ALTERNATIVES = Statement(
    id="fractional-alternatives",
    title="Two updates that do recover the usual one",
    place="not in print",
    claim="The print says that fractional updates come very close to one update at rate α. Two variants equal it: all "
    "errors taken from the same Q, or a rate per pathway of 1 − (1 − α)^(1/K).",
    assumptions=("s and s' are fully observed", "s' ≠ s for the second; any s' for the first"),
    printed=None,
    right=Formula(r"\sum_k \frac{α}{K} = α, 1 − (1 − (1 − (1 − α)^{1/K}))^K = α", lambda case: case["alpha"]),
    proof=(
        "Simultaneous: K equal errors, each with weight α/K, add up to one with weight α, wherever s' is. Exact rate: "
        "K sequential updates at rate ρ are one at 1 − (1 − ρ)^K, which is α for "
        'ρ = 1 − (1 − α)^(1/K). Agents offer both, as `update="simultaneous"` and `update="exact-rate"`.',
    ),
    broken="s' ≠ s for the exact rate: the target moves along.",
    simulate=_alternatives,
    quoted="it does not exactly but comes very close",
)

STATEMENTS = (FRACTIONAL_RATE, FRACTIONAL_ADD_ON, SAME_STATE, ALTERNATIVES)
