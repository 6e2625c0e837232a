"""Statements on the fractional Q update, checked by driving the kernels that agents learn with."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import Literal

import numpy as np

from lacuna import Settings, Space
from lacuna.agent import blank_memory, update_apart, update_together
from lacuna_paper.theory.measuring import Floats, generator
from lacuna_paper.theory.statement import Case, Formula, Measurement, statement

_ROUNDING = 1e-12
_S, _A = 4, 3
_UPDATES: tuple[Literal["sequential", "simultaneous", "exact-rate"], ...] = ("sequential", "simultaneous", "exact-rate")
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
    """Return Σ_j (-1)^(j-1) c_j r^j over j = 2, 3, …."""
    return float(sum((-1) ** (j - 1) * c * r**j for j, c in enumerate(coefficients, start=2)))


def printed_rate(alpha: float, K: int) -> float:
    """The effective rate by the printed coefficients."""
    return alpha + add_on(printed_coefficients(K), alpha / K)


class _Drive:
    """Updates of a random table by the kernels, as an agent with these settings would make them."""

    def __init__(self, alpha: float, K: int, gamma: float, update: int, seed: int) -> None:
        settings = Settings("mi-synthetic", K, alpha, gamma, 0.0, update=_UPDATES[update])
        self.rules, self.memory, self.gamma = settings.rules, blank_memory(Space((_S,)), _A, settings), gamma
        self.rng = generator(seed, "update", alpha, K, gamma, update)

    def rates(self, *, stay: bool = False, greedy: bool = True, end: bool = False, together: bool = False) -> Floats:
        """Change of Q(s, a) per temporal-difference error, for a hundred random tables."""
        return np.array([self._rate(stay, greedy, end, together) for _ in range(100)])

    def _rate(self, stay: bool, greedy: bool, end: bool, together: bool) -> float:
        Q = self.memory.Q
        Q[:] = self.rng.normal(size=(_S, _A))
        s, a = 0, int(self.rng.integers(_A))
        s_next = s if stay else 1
        self.memory.S[:], self.memory.S_next[:] = s, s_next
        # A greedy action stays the best one whatever the update, an idle one never becomes it.
        Q[s, a] = Q[s].max() + 10 if greedy else Q[s].min() - 10
        before, discount = Q[s, a], 0.0 if end else self.gamma
        r = float(self.rng.normal()) + (before * (1 - discount) if stay and greedy else before)
        error = r + discount * Q[s_next].max() - before
        update = update_together if together else update_apart
        update(a, r, discount, self.rules, self.memory)
        return float((Q[s, a] - before) / error)


def _rate(what: str, case: Case, rates: Floats, *, broken: bool = False) -> Measurement:
    """The mean rate; as nothing here is random, any spread between tables counts as an error."""
    return Measurement(what, case, float(rates.mean()), float(rates.max() - rates.min()) + _ROUNDING, broken=broken)


_PRINTED_RATE = Formula(
    r"α + \sum_{j=2}^{K} (−1)^{j−1} c_{j,K} r^j, c_{2,K} = 3, c_{K,K} = 1",
    lambda case: printed_rate(case["alpha"], int(case["K"])),
)


@statement(
    "fractional-rate",
    printed=_PRINTED_RATE,
    right=Formula(r"1 − (1 − \frac{α}{K})^K → 1 − e^{−α}", lambda case: effective_rate(case["alpha"], case["K"])),
)
def fractional_rate(_: float, seed: int) -> Iterator[Measurement]:
    """Rates one by one, at once, and at the end of an episode; then of a step that returns to its own state."""
    for alpha, K in ((1.0, 2), (1.0, 3), (1.0, 10), (1.0, 100), (0.1, 10), (0.5, 5)):
        drive = _Drive(alpha, K, 0.9, SEQUENTIAL, seed)
        case, at = {"alpha": alpha, "K": K}, f"α = {alpha}, K = {K}"
        yield _rate(f"rate of K updates one by one, {at}", case, drive.rates())
        yield _rate(f"rate of K updates at once, {at}", case, drive.rates(together=True))
        yield _rate(f"rate at the end of an episode, s' = s, {at}", case, drive.rates(stay=True, end=True))
    stay = _Drive(1.0, 10, 0.5, SEQUENTIAL, seed).rates(stay=True)
    what = "rate with s' = s and the greedy action, α = 1, K = 10, γ = 0.5"
    yield _rate(what, {"alpha": 1.0, "K": 10}, stay, broken=True)


@statement(
    "fractional-add-on",
    printed=Formula(
        r"\sum_{j=2}^{K} (−1)^{j−1} c_{j,K} r^j, c_{2,K} = 3, c_{j,k+1} = c_{j,k} + c_{j−1,k}",
        lambda case: printed_rate(case["alpha"], int(case["K"])) - case["alpha"],
    ),
    right=Formula(
        r"\sum_{j=2}^{K} (−1)^{j−1} C(K, j) r^j = 1 − (1 − \frac{1}{K})^K − 1 → −\frac{1}{e}",
        lambda case: add_on([comb(int(case["K"]), j) for j in range(2, int(case["K"]) + 1)], case["alpha"] / case["K"]),
    ),
)
def fractional_add_on(_: float, seed: int) -> Iterator[Measurement]:
    """What the rate has beyond α = 1; then with simultaneous updates."""
    for K in (2, 3, 4, 5, 10, 30):
        rates = _Drive(1.0, K, 0.9, SEQUENTIAL, seed).rates() - 1.0
        yield _rate(f"add-on to the rate at α = 1, K = {K}", {"alpha": 1.0, "K": K}, rates)
    exact = _Drive(1.0, 10, 0.9, SIMULTANEOUS, seed).rates() - 1.0
    what = "add-on to the rate at α = 1, K = 10, simultaneous updates"
    yield _rate(what, {"alpha": 1.0, "K": 10}, exact, broken=True)


def same_state_rate(case: Case) -> float:
    """Rate of K sequential updates of a step that returns to its own state."""
    alpha, K, gamma = case["alpha"], case["K"], case["gamma"]
    if not case["greedy"]:
        return effective_rate(alpha, K)
    return alpha if gamma == 1 else float((1 - (1 - alpha * (1 - gamma) / K) ** K) / (1 - gamma))


@statement(
    "fractional-same-state",
    printed=_PRINTED_RATE,
    right=Formula(
        r'\frac{1 − (1 − (1 − γ) α/K)^K}{1 − γ} "if" a "stays best"; α "if also" γ = 1; '
        r'1 − (1 − \frac{α}{K})^K "otherwise"',
        same_state_rate,
    ),
)
def same_state(_: float, seed: int) -> Iterator[Measurement]:
    """Rates of a step with s' = s, for the best action and another; then at the end of an episode."""
    for alpha, K, gamma in ((1.0, 10, 0.5), (1.0, 10, 0.9), (1.0, 2, 0.5), (0.1, 10, 0.5), (1.0, 10, 1.0)):
        drive = _Drive(alpha, K, gamma, SEQUENTIAL, seed)
        for greedy, name in ((1, "the best"), (0, "not the best")):
            what = f"rate, the action is {name}, α = {alpha}, K = {K}, γ = {gamma}"
            case = {"alpha": alpha, "K": K, "gamma": gamma, "greedy": greedy}
            yield _rate(what, case, drive.rates(stay=True, greedy=bool(greedy)))
    end = _Drive(1.0, 10, 0.5, SEQUENTIAL, seed).rates(stay=True, end=True)
    case = {"alpha": 1.0, "K": 10, "gamma": 0.5, "greedy": 1}
    yield _rate("rate, the step ends the episode, α = 1, K = 10, γ = 0.5", case, end, broken=True)


@statement(
    "fractional-alternatives",
    right=Formula(r"\sum_k \frac{α}{K} = α, 1 − (1 − (1 − (1 − α)^{1/K}))^K = α", lambda case: case["alpha"]),
)
def alternatives(_: float, seed: int) -> Iterator[Measurement]:
    """Rates of both alternatives; then of the exact rate for a step that returns to its own state."""
    for alpha, K in ((1.0, 10), (0.5, 5), (0.1, 10)):
        case, at = {"alpha": alpha}, f"α = {alpha}, K = {K}"
        for update, name in ((SIMULTANEOUS, "simultaneous"), (EXACT_RATE, "exact rate")):
            drive = _Drive(alpha, K, 0.9, update, seed)
            yield _rate(f"rate, {name}, {at}", case, drive.rates())
            yield _rate(f"rate, {name}, {at}, at once", case, drive.rates(together=True))
        stay = _Drive(alpha, K, 0.9, SIMULTANEOUS, seed).rates(stay=True)
        yield _rate(f"rate, simultaneous, s' = s, {at}", case, stay)
    stay = _Drive(0.5, 5, 0.9, EXACT_RATE, seed).rates(stay=True)
    what = "rate, exact rate, s' = s and the greedy action, α = 0.5, K = 5"
    yield _rate(what, {"alpha": 0.5}, stay, broken=True)
