"""From K pathways and Q to the probability of each action, in units of 2**-32: four rules, each within bounds.

A rule sees only the allowed actions: votes go to the best of them, and a softmax is over them. `share_out` then rounds
the probabilities to units within the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.learner import add_optimism, exploration
from lacuna.agent.memory import NO_STATE, Memory, PlanTable
from lacuna.agent.models.looking import unknown_after
from lacuna.agent.settings import Rules
from lacuna.agent.voting import SOFTMAX as SOFTMAX_OF_VOTES
from lacuna.agent.voting import action_probabilities, cast_votes, keep_least_regrets, mix_with_uniform
from lacuna.kernels.compiled import kernel
from lacuna.kernels.exponential import exact_exp
from lacuna.trial.engine.units import UNITS, exact_probability, nearest_units, share_out, within
from lacuna.validation import nearest, one_of, shown, whole_number

PARAMETERS: dict[str, tuple[str, ...]] = {
    "votes": (), "softmax": ("temperature",), "logistic": ("b", "log_c"), "fixed": ("p",),
}  # fmt: skip
"""The rules by name, with the parameters of each."""

VOTES, SOFTMAX, LOGISTIC, FIXED = range(4)


class Allocation(NamedTuple):
    """A rule with its bounds as kernels see them, for K pathways and A actions.

    `lo` and `hi` are the bounds of action 1, between which the logistic rule lies; `least` and `most` are the bounds of
    all actions in units. `rows` and all after it are scratch; ``own_row`` is 0 … K - 1.
    """

    rule: int
    temperature: float
    b: float
    log_c: float
    lo: float
    hi: float
    fixed: NDArray[np.float64]
    least: NDArray[np.int64]
    most: NDArray[np.int64]
    rows: NDArray[np.float64]
    p: NDArray[np.float64]
    low: NDArray[np.float64]
    own_row: NDArray[np.int64]
    wanted: NDArray[np.int64]


# --- the rules -------------------------------------------------------------------------------------------------------


@kernel
def copy_rows(rules: Rules, memory: Memory, allowed: NDArray[np.int64], rows: NDArray[np.float64]) -> None:
    """Copy the values of the allowed actions in the state of each pathway, with optimism.

    A pathway without a state gets zeros: all actions tie, so its vote and its softmax are uniform.
    """
    for k in range(rules.K):
        s = memory.S[k]
        if s != NO_STATE and rules.optimism > 0:
            add_optimism(k, rules, memory)
        for i in range(allowed.shape[0]):
            if s == NO_STATE:
                rows[k, i] = 0.0
            elif rules.optimism > 0:
                rows[k, i] = memory.optimistic[k, allowed[i]]
            else:
                rows[k, i] = memory.Q[s, allowed[i]]


@kernel
def vote_shares(
    rows: NDArray[np.float64], own_row: NDArray[np.int64], vote: int, epsilon: float, p: NDArray[np.float64],
    low: NDArray[np.float64],
) -> None:  # fmt: skip
    """As `action_probabilities`, but softmax does not depend on the C library."""
    if vote != SOFTMAX_OF_VOTES:
        action_probabilities(rows, own_row, vote, epsilon, p, low)
        return
    cast_votes(rows, own_row, p)
    most = 0.0
    for i in range(p.shape[0]):
        most = max(most, p[i])
    for i in range(p.shape[0]):
        p[i] = exact_exp(p[i] - most) if p[i] > 0 else 0.0
    low[:] = 0.0
    mix_with_uniform(epsilon, p, low)


@kernel
def look_shares(
    rows: NDArray[np.float64], own_row: NDArray[np.int64], allowed: NDArray[np.int64], rules: Rules,
    planner: PlanTable, p: NDArray[np.float64], low: NDArray[np.float64],
) -> None:  # fmt: skip
    """As `probabilities` of a planner that looks, over the allowed actions."""
    for i in range(allowed.shape[0]):
        low[i] = unknown_after(allowed[i], rules, planner)
    keep_least_regrets(rows, own_row, low, p)
    low[:] = 0.0
    mix_with_uniform(exploration(rules, planner), p, low)


@kernel
def softmax_shares(
    rows: NDArray[np.float64], temperature: float, p: NDArray[np.float64], low: NDArray[np.float64]
) -> None:
    """Mean over pathways of softmax(Q(S_k, ·) / temperature); `low` is scratch."""
    K, n = rows.shape
    p[:] = 0.0
    for k in range(K):
        best = rows[k, 0]
        for i in range(1, n):
            best = max(best, rows[k, i])
        total = 0.0
        for i in range(n):
            # As a number of Python, which outside the compiler overflows without a warning.
            low[i] = exact_exp(float(rows[k, i] - best) / temperature)
            total += low[i]
        for i in range(n):
            p[i] += low[i] / total
    for i in range(n):
        p[i] /= K


@kernel
def expit(x: float) -> float:
    """1 / (1 + e**-x), without overflow."""
    if x >= 0:
        return 1.0 / (1.0 + exact_exp(-x))
    power = exact_exp(x)
    return power / (1.0 + power)


@kernel
def logistic_shares(
    rows: NDArray[np.float64], S: NDArray[np.int64], allocation: Allocation, p: NDArray[np.float64]
) -> None:
    """Give action 1 the mean over pathways of ``lo + (hi - lo) expit(b (Q(S_k, 1) - Q(S_k, 0)) - log c)``."""
    lo, hi, K = allocation.lo, allocation.hi, rows.shape[0]
    total = 0.0
    for k in range(K):
        if S[k] == NO_STATE:
            total += 0.5
        else:
            advantage = float(rows[k, 1] - rows[k, 0])
            total += lo + (hi - lo) * expit(allocation.b * advantage - allocation.log_c)
    p[1] = total / K
    p[0] = 1.0 - p[1]


@kernel
def fixed_shares(fixed: NDArray[np.float64], allowed: NDArray[np.int64], p: NDArray[np.float64]) -> None:
    """The fixed probabilities of the allowed actions, scaled up to 1; uniform if all of them are 0."""
    total = 0.0
    for i in range(p.shape[0]):
        total += fixed[allowed[i]]
    for i in range(p.shape[0]):
        p[i] = fixed[allowed[i]] / total if total > 0 else 1.0 / p.shape[0]


@kernel
def allocate(
    allocation: Allocation, rules: Rules, memory: Memory, planner: PlanTable | None, allowed: NDArray[np.int64],
    units: NDArray[np.int64],
) -> None:  # fmt: skip
    """Fill `units` with those of every action: the rule applied to the allowed ones, within bounds; 0 for the others.

    `allowed` are numbers of actions as `action_set` gives them. A single one gets all units, whatever its bounds.
    """
    units[:] = 0
    n = allowed.shape[0]
    if n == 1:
        units[allowed[0]] = UNITS
        return
    rows, p, low = allocation.rows[:, :n], allocation.p[:n], allocation.low[:n]
    if allocation.rule == FIXED:
        fixed_shares(allocation.fixed, allowed, p)
    else:
        copy_rows(rules, memory, allowed, rows)
        if allocation.rule == VOTES and planner is not None and rules.look > 0:
            look_shares(rows, allocation.own_row, allowed, rules, planner, p, low)
        elif allocation.rule == VOTES:
            vote_shares(rows, allocation.own_row, rules.vote, exploration(rules, planner), p, low)
        elif allocation.rule == SOFTMAX:
            softmax_shares(rows, allocation.temperature, p, low)
        else:
            logistic_shares(rows, memory.S, allocation, p)
    for i in range(n):
        allocation.wanted[i] = nearest_units(p[i])
    share_out(allocation.wanted, allocation.least, allocation.most, allowed, units)


# --- from outside ----------------------------------------------------------------------------------------------------


def allocation_of(
    rule: str, parameters: Mapping[str, Any], bounds: Sequence[Sequence[Any]], K: int, n_actions: int
) -> Allocation:
    """Return a rule and its bounds as kernels see them, or raise an error.

    Parameters
    ----------
    rule
        ``"votes"``, ``"softmax"``, ``"logistic"`` or ``"fixed"``.
    parameters
        Those of the rule: temperature; b and log_c; p, a probability for each action; votes has none.
    bounds
        The least and the largest probability of each action, as floats, decimals or fractions. They are taken exactly
        as given: the float 0.1 is a little more than a tenth.
    K, n_actions
        Number of pathways and of actions.

    Examples
    --------
    >>> allocation = allocation_of("softmax", {"temperature": 0.5}, [(0.1, 0.9), (0.1, 0.9)], K=10, n_actions=2)
    >>> allocation.least.tolist(), allocation.most.tolist()
    ([429496730, 429496730], [3865470566, 3865470566])
    >>> allocation_of("votes", {}, [(0.6, 1), (0.6, 1)], K=10, n_actions=2)
    Traceback (most recent call last):
    ValueError: the lower bounds of actions 0 and 1, each rounded up to a multiple of 2**-32, add up to
    1.20000000019; they may add up to 1 at most
    """
    one_of("rule", rule, PARAMETERS)
    K, A = whole_number("K", K, 1), whole_number("n_actions", n_actions, 1)
    if rule == "logistic" and A != 2:
        raise ValueError(f"n_actions is {A}; the rule logistic is for 2 actions")
    _check_names(rule, parameters)
    neutral = {"temperature": 1.0, "b": 0.0, "log_c": 0.0}
    temperature, b, log_c = (_finite(name, parameters.get(name, unused)) for name, unused in neutral.items())
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature:g}; it must be above 0")
    fixed = _read_fixed(parameters["p"], A) if rule == "fixed" else np.zeros(A)
    pairs = _read_bounds(bounds, A)
    least, most = np.array([within(lo, hi) for lo, hi in pairs], dtype=np.int64).T.copy()
    lo, hi = map(float, pairs[1] if rule == "logistic" else (0, 1))
    scratch = np.zeros((K, A)), np.zeros(A), np.zeros(A), np.arange(K, dtype=np.int64), np.zeros(A, dtype=np.int64)
    code = list(PARAMETERS).index(rule)
    allocation = Allocation(code, temperature, b, log_c, lo, hi, fixed, least, most, *scratch)
    action_set(range(A), allocation)
    return allocation


def action_set(allowed: Sequence[int], allocation: Allocation) -> NDArray[np.int64]:
    """Return the allowed actions as kernels take them, or raise an error if the bounds cannot be met.

    Examples
    --------
    >>> allocation = allocation_of("votes", {}, [(0.1, 0.4)] * 3, K=10, n_actions=3)
    >>> action_set([1], allocation)
    array([1])
    >>> action_set([0, 2], allocation)
    Traceback (most recent call last):
    ValueError: the upper bounds of actions 0 and 2, each rounded down to a multiple of 2**-32, add up to
    0.799999999814; they must add up to 1 at least
    """
    A = allocation.least.shape[0]
    actions = [whole_number("an allowed action", a, 0, A - 1) for a in allowed]
    if not actions or actions != sorted(set(actions)):
        raise ValueError(f"the allowed actions are {shown(actions)}; they must be one or more, each once, in order")
    chosen = np.array(actions, dtype=np.int64)
    if len(actions) == 1:
        return chosen
    names = f"{', '.join(map(str, actions[:-1]))} and {actions[-1]}"
    least, most = int(allocation.least[chosen].sum()), int(allocation.most[chosen].sum())
    if least > UNITS:
        raise ValueError(
            f"the lower bounds of actions {names}, each rounded up to a multiple of 2**-32, add up to "
            f"{least / UNITS:.12g}; they may add up to 1 at most"
        )
    if most < UNITS:
        raise ValueError(
            f"the upper bounds of actions {names}, each rounded down to a multiple of 2**-32, add up to "
            f"{most / UNITS:.12g}; they must add up to 1 at least"
        )
    return chosen


def _check_names(rule: str, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that the rule does not have, or lacks."""
    known = PARAMETERS[rule]
    for name in parameters:
        if name not in known:
            meant = f"its parameters are {' and '.join(known)}" if known else "it has none"
            raise ValueError(f"{shown(name)}{nearest(name, known)} is no parameter of the rule {rule}; {meant}")
    for name in known:
        if name not in parameters:
            raise ValueError(f"the rule {rule} lacks its parameter {name}")


def _finite(what: str, value: Any) -> float:
    """Return a finite number, or raise an error."""
    try:
        if not isinstance(value, bool) and isinstance(value, Real) and isfinite(value):
            return float(value)
    except OverflowError:  # a whole number of Python, too large for a float
        pass
    raise ValueError(f"{what} is {shown(value)}; it must be a finite number")


def _read_bounds(bounds: Sequence[Sequence[Any]], n_actions: int) -> list[tuple[Fraction, Fraction]]:
    """Return the bounds of every action exactly, or raise an error."""
    if len(bounds) != n_actions:
        raise ValueError(f"there are bounds for {len(bounds)} actions; it must be a pair for each of {n_actions}")
    pairs = []
    for a, pair in enumerate(bounds):
        if len(pair) != 2:
            raise ValueError(f"the bounds of action {a} are {shown(pair)}; they must be a pair, the lower one first")
        lo = exact_probability(f"the lower bound of action {a}", pair[0])
        hi = exact_probability(f"the upper bound of action {a}", pair[1])
        least, most = within(lo, hi)
        if least > most:
            raise ValueError(
                f"the bounds of action {a} are {pair[0]} and {pair[1]}; a multiple of 2**-32 must lie between them, "
                "the lower one first"
            )
        pairs.append((lo, hi))
    return pairs


def _read_fixed(p: Sequence[Any], n_actions: int) -> NDArray[np.float64]:
    """Return fixed probabilities as an array, or raise an error."""
    if len(p) != n_actions:
        raise ValueError(f"p has {len(p)} entries; it must have one for each of {n_actions} actions")
    found = [float(exact_probability(f"p of action {a}", x)) for a, x in enumerate(p)]
    # In units, as the entries of a file are rounded: thirds add up to 1.
    if abs(sum(map(nearest_units, found)) - UNITS) > n_actions:
        raise ValueError(f"p is {shown(list(p))} and adds up to {sum(found):.12g}; it must add up to 1")
    return np.array(found)
