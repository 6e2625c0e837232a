"""Statements on acting: what the three action rules lose in the end, and what they lose in the four scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from lacuna_paper.theory.bandit import (
    FIXED,
    IMPUTED_MEANS,
    MISSING_AS_STATE,
    OBSERVED_MEANS,
    RULE_NAMES,
    TRUE_SHARES,
    Tables,
    World,
    make_rule,
    make_world,
    run_bandit,
)
from lacuna_paper.theory.measuring import Floats, mean_of, standard_error
from lacuna_paper.theory.on_means import MEAN_IF_HIDDEN, MEANS, SHARES
from lacuna_paper.theory.statement import Case, Formula, Measurement, Relation, statement

RULES = (OBSERVED_MEANS, MISSING_AS_STATE, IMPUTED_MEANS)

# --- the three rules in the end --------------------------------------------------------------------------------------

_ROUNDING = 1e-12


def _world(hide: ArrayLike) -> World:
    return make_world([1.0], SHARES, hide, MEANS[None])


def _values(tables: Tables, kind: int) -> tuple[Floats, Floats]:
    """The means a rule looks at: by (path, state, action) where the state is seen, and by guess where it is hidden."""
    total, n = tables.sums[:, 0, :-1], tables.n[:, 0, :-1]
    if kind == IMPUTED_MEANS:
        total, n = total + tables.fill_sums[:, 0], n + tables.fill_n[:, 0]
    seen = total / n
    if kind == MISSING_AS_STATE:
        return seen, np.broadcast_to(tables.sums[:, 0, -1:] / tables.n[:, 0, -1:], seen.shape)
    return seen, seen


def _loss(seen: Floats, guessed: Floats, world: World) -> Floats:
    """What greedy choices lose per step against the best choice given what is seen; guesses are drawn from p."""
    loss = np.zeros(seen.shape[0])
    rate = world.hidden[0]
    for s, p in enumerate(SHARES):
        loss += p * (1 - rate[s]) * world.loss[0, s, seen[:, s].argmax(axis=1)]
        loss += (SHARES @ rate) * p * world.loss[0, -1, guessed[:, s].argmax(axis=1)]
    return loss


def limit_loss(case: Case) -> float:
    """Loss per step of a rule that has learned all it will."""
    kind, p_m = int(case["rule"]), case["p_m"]
    seen = MEANS + (p_m * (MEAN_IF_HIDDEN - MEANS) if kind == IMPUTED_MEANS else 0)
    guessed = np.broadcast_to(MEAN_IF_HIDDEN, MEANS.shape) if kind == MISSING_AS_STATE else seen
    return float(_loss(seen[None], guessed[None], _world(p_m))[0])


def _as_in_the_text(case: Case) -> float:
    """The same with the second and the third rule swapped, as in the text under the equations."""
    swapped = {OBSERVED_MEANS: OBSERVED_MEANS, MISSING_AS_STATE: IMPUTED_MEANS, IMPUTED_MEANS: MISSING_AS_STATE}
    return limit_loss({**case, "rule": swapped[int(case["rule"])]})


@statement(
    "action-rules",
    printed=Formula('"second: imputed means; third: the mean of ?  (the text)"', _as_in_the_text),
    right=Formula(
        r'"second:" "argmax"_a μ_{?,a}; "third:" "argmax"_a ((1 − p_m) μ_{s,a} + p_m μ_a)  "(the equations)"',
        limit_loss,
    ),
)
def action_rules(effort: float, seed: int) -> Iterator[Measurement]:
    """Loss of each rule, from means learned with actions at random; then with y hidden more often than x."""
    paths = max(25, int(100 * effort))

    def losses(p_m: float, hide: ArrayLike, kinds: tuple[int, ...], skewed: float) -> Iterator[Measurement]:
        world = _world(hide)
        rule = make_rule(FIXED, world, guess_from=TRUE_SHARES)
        tables, _ = run_bandit(world, rule, 16_000, paths, seed, "rules", p_m, skewed)
        for kind in kinds:
            what = f"loss per step, rule {kind + 1} ({RULE_NAMES[kind]}), p_m = {p_m}"
            found = mean_of(what, {"rule": kind, "p_m": p_m}, _loss(*_values(tables, kind), world), scale=0.05)
            yield replace(found, error=found.error + _ROUNDING)

    for p_m in (0.2, 0.3, 0.6, 0.8):
        yield from losses(p_m, p_m, RULES, 0.0)
    for found in losses(0.4, [0.4 / 2, 0.4 * 13 / 6], (OBSERVED_MEANS, IMPUTED_MEANS), 1.0):
        yield replace(found, what=f"{found.what}, y hidden more often than x", broken=True)


# --- the four scenarios ----------------------------------------------------------------------------------------------

STEPS, EPSILON, K = 500, 0.05, 5
_C = _S = _A = 3
_EVEN = np.full(_C, 1 / _C)

_c, _s, _a = np.ogrid[:_C, :_S, :_A]
_MATCHING = np.where((_c + _s) % _A == _a, 1.0, 0.0)
"""In context c and state s, action (c + s) mod 3 pays 1 on average, the others 0."""


def predictive(share: float, sure: float = 0.95) -> World:
    """MAR; the context tells the state with probability `sure`."""
    states = np.full((_C, _S), (1 - sure) / (_S - 1))
    np.fill_diagonal(states, sure)
    return make_world(_EVEN, states, share, _MATCHING)


def unpredictive(share: float) -> World:
    """MAR; the state does not depend on the context."""
    return make_world(_EVEN, [0.5, 0.3, 0.2], share, _MATCHING)


def signal(share: float) -> World:
    """NMAR; the third state is always hidden and nothing else is, so being hidden says all."""
    return make_world(_EVEN, [0.6 * (1 - share), 0.4 * (1 - share), share], [0.0, 0.0, 1.0], _MATCHING)


def _skewed(share: float, means: list[list[float]]) -> World:
    """General NMAR: two states, equally likely; the second is hidden four times as often, or whenever it occurs."""
    second = min(1.0, 1.6 * share)
    by_context = np.stack([np.roll(means, c, axis=1) for c in range(_C)])
    return make_world(_EVEN, [0.5, 0.5], [2 * share - second, second], by_context)


def skewed_alike(share: float) -> World:
    """General NMAR; the two states pay differently, but rank the actions alike."""
    return _skewed(share, [[1.0, 0.0, 0.0], [0.5, 0.0, 0.0]])


def skewed_opposed(share: float) -> World:
    """General NMAR; the two states want different actions."""
    return _skewed(share, [[1.0, 0.0, 0.4], [0.0, 1.0, 0.4]])


SCENARIOS: dict[str, tuple[str, Callable[[float], World]]] = {
    "predictive": ("1. predictive, MAR", predictive),
    "unpredictive": ("2. not predictive, MAR", unpredictive),
    "signal": ("3. missing is a signal, NMAR", signal),
    "alike": ("4a. NMAR, actions ranked alike", skewed_alike),
    "opposed": ("4b. NMAR, actions ranked apart", skewed_opposed),
}


def price_of_not_knowing(world: World) -> float:
    """What a step loses on average if hidden states are unknown, against knowing them, both with the best choice.

    Examples
    --------
    >>> round(price_of_not_knowing(unpredictive(0.5)), 3)  # half of the time, 0.5 instead of 1
    0.25
    """
    p_c, p_s = np.diff(world.contexts, prepend=0), np.diff(world.states, axis=1, prepend=0)
    joint = p_c[:, None] * p_s * world.hidden
    known = (joint * world.means.max(axis=2)).sum()
    blind = np.einsum("cs,csa->ca", joint, world.means).max(axis=1).sum()
    return float(known - blind)


@lru_cache(maxsize=1024)
def regret(scenario: str, share: float, kind: int, paths: int, seed: int) -> tuple[float, float]:
    """What a rule's greedy choices lose over a run with a share of states hidden, and its standard error.

    The loss is against the best choice given what is seen.
    """
    world = SCENARIOS[scenario][1](share)
    rule = make_rule(kind, world, epsilon=EPSILON, K=K)
    _, losses = run_bandit(world, rule, STEPS, paths, seed, "scenario", scenario, share, kind)
    return float(losses.mean()), standard_error(losses)


_Where = tuple[str, tuple[float, ...]]
"""A scenario and shares of states hidden."""


def _advantages(where: _Where, effort: float, seed: int) -> Iterator[Measurement]:
    """How much less imputed means lose than missing as a state."""
    scenario, shares = where
    for share in shares:
        (missing, error), (imputed, other) = (
            regret(scenario, share, kind, int(2400 * effort), seed) for kind in (MISSING_AS_STATE, IMPUTED_MEANS)
        )
        what = f"regret(missing as a state) − regret(imputed means), {SCENARIOS[scenario][0]}, share hidden {share}"
        yield Measurement(what, {}, missing - imputed, float(np.hypot(error, other)))


def _preference(name: str, relation: Relation, kept: _Where, broken: _Where) -> None:
    """Declare which of two rules loses less; where the assumption is broken, the sign turns."""
    formula = Formula(f'"regret"_? − "regret"_{{"imp"}} {relation} 0', lambda _: 0.0, relation)

    @statement(name, printed=formula)
    def _(effort: float, seed: int) -> Iterator[Measurement]:
        yield from _advantages(kept, effort, seed)
        for found in _advantages(broken, effort, seed):
            yield replace(found, broken=True)


_preference(
    "scenario-predictive", ">",
    ("predictive", (0.3, 0.5, 0.7, 0.9)), broken=("unpredictive", (0.4, 0.5, 0.6, 0.7)),
)  # fmt: skip
_preference(
    "scenario-unpredictive", "<",
    ("unpredictive", (0.3, 0.4, 0.5, 0.6, 0.7)), broken=("predictive", (0.5, 0.7, 0.9)),
)  # fmt: skip
_preference(
    "scenario-signal", "<",
    ("signal", (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)), broken=("predictive", (0.5, 0.7, 0.9)),
)  # fmt: skip
_preference(
    "scenario-general", ">",
    ("alike", (0.2, 0.3, 0.4, 0.5, 0.6)), broken=("opposed", (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)),
)  # fmt: skip


def arch(scenario: str, paths: int, seed: int, *, knowing: bool = False) -> tuple[float, float]:
    """Regret of missing as a state at half hidden above the larger of those at 2 % and 98 %, and its standard error.

    With `knowing`, regret is against a choice that knows every hidden state.
    """

    def total(share: float) -> tuple[float, float]:
        mean, error = regret(scenario, share, MISSING_AS_STATE, paths, seed)
        return mean + (STEPS * price_of_not_knowing(SCENARIOS[scenario][1](share)) if knowing else 0), error

    (middle, error), (end, other) = total(0.5), max(total(0.02), total(0.98))
    return middle - end, float(np.hypot(error, other))


@statement(
    "u-shape",
    printed=Formula('"regret"_?(1/2) > "max"("regret"_?(0.02), "regret"_?(0.98))', lambda _: 0.0, ">"),
)
def u_shape(effort: float, seed: int) -> Iterator[Measurement]:
    """The arch in every scenario; then against knowing every hidden state."""
    paths = int(6000 * effort)
    for scenario, (name, _) in SCENARIOS.items():
        what = f"regret of missing as a state with half hidden, less the larger of those with 2 % and 98 %, {name}"
        yield Measurement(what, {}, *arch(scenario, paths, seed))
    for scenario in ("unpredictive", "opposed"):
        what = f"the same, against knowing every hidden state, {SCENARIOS[scenario][0]}"
        yield Measurement(what, {}, *arch(scenario, paths, seed, knowing=True), broken=True)
