"""Statements on the three action rules: what each of them does in the end, and what that costs."""

from __future__ import annotations

import numpy as np

from lacuna.theory.bandit import (
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
from lacuna.theory.chance import Floats, error_of_mean
from lacuna.theory.statement import Case, Evidence, Formula, Measurement, Statement

SHARES = np.array([0.7, 0.3])
MEANS = np.array([[1.0, 0.0], [0.0, 0.5]])
_HIDDEN = SHARES @ MEANS
_STEPS = 16_000
_ROUNDING = 1e-12

flip = float((MEANS[1, 1] - MEANS[1, 0]) / (MEANS[1, 1] - MEANS[1, 0] + _HIDDEN[0] - _HIDDEN[1]))
"""The share hidden above which imputed means rank the actions of y wrongly: 0.5/1.05."""


def _values(tables: Tables, kind: int) -> tuple[Floats, Floats]:
    """The means a rule looks at: by (path, state, action) where the state is seen, and where it is hidden."""
    total, n = tables.seen_sum[:, 0], tables.seen_n[:, 0]
    if kind == IMPUTED_MEANS:
        total, n = total + tables.fill_sum[:, 0], n + tables.fill_n[:, 0]
    seen = total / n
    if kind == MISSING_AS_STATE:
        return seen, np.repeat((tables.lost_sum[:, 0] / tables.lost_n[:, 0])[:, None], len(SHARES), axis=1)
    return seen, seen


def _loss(seen: Floats, guessed: Floats, world: World) -> Floats:
    """What greedy choices lose per step against the best choice given what is seen; guesses are drawn from p."""
    loss = np.zeros(seen.shape[0])
    rate = world.hidden[0]
    for s, p in enumerate(SHARES):
        loss += p * (1 - rate[s]) * world.loss[0, s, seen[:, s].argmax(axis=1)]
        loss += (SHARES @ rate) * p * world.loss[0, -1, guessed[:, s].argmax(axis=1)]
    return loss


def _measured(p_m: float, kinds: tuple[int, ...], paths: int, seed: int, *, skewed: bool = False) -> list[Measurement]:
    """Loss of each rule, from means learned with actions at random."""
    hide: object = [p_m / 2, p_m * 13 / 6] if skewed else p_m
    world = make_world([1.0], SHARES, hide, MEANS[None])
    rule = make_rule(FIXED, world, guesses=TRUE_SHARES)
    tables = run_bandit(world, rule, _STEPS, paths, seed, "rules", p_m, float(skewed)).tables
    how = ", y hidden more often than x" if skewed else ""
    found = []
    for kind in kinds:
        losses = _loss(*_values(tables, kind), world)
        what = f"loss per step, rule {kind + 1} ({RULE_NAMES[kind]}), p_m = {p_m}{how}"
        case = {"rule": kind, "p_m": p_m}
        found.append(Measurement(what, case, float(losses.mean()), error_of_mean(losses) + _ROUNDING, 0.05))
    return found


def limit_loss(case: Case) -> float:
    """Loss per step of a rule that has learned all it will."""
    kind, p_m = int(case["rule"]), case["p_m"]
    world = make_world([1.0], SHARES, p_m, MEANS[None])
    seen = MEANS + (p_m * (_HIDDEN - MEANS) if kind == IMPUTED_MEANS else 0)
    guessed = np.repeat(_HIDDEN[None], len(SHARES), axis=0) if kind == MISSING_AS_STATE else seen
    return float(_loss(seen[None], guessed[None], world)[0])


def _as_in_the_text(case: Case) -> float:
    """The text under the equations calls the second rule the third and the third the second."""
    swapped = {OBSERVED_MEANS: OBSERVED_MEANS, MISSING_AS_STATE: IMPUTED_MEANS, IMPUTED_MEANS: MISSING_AS_STATE}
    return limit_loss({**case, "rule": swapped[int(case["rule"])]})


def _rules(effort: float, seed: int) -> Evidence:
    paths, every = max(25, int(100 * effort)), (OBSERVED_MEANS, MISSING_AS_STATE, IMPUTED_MEANS)
    kept = [one for p_m in (0.2, 0.3, 0.6, 0.8) for one in _measured(p_m, every, paths, seed)]
    broken = _measured(0.4, (OBSERVED_MEANS, IMPUTED_MEANS), paths, seed, skewed=True)
    return Evidence(tuple(kept), tuple(broken))


ACTION_RULES = Statement(
    id="action-rules",
    title="The three action rules, and what they lose in the end",
    place="A.2.3",
    claim="Three greedy rules: act on a guess by observed means, act on `?` by its own mean, act on a guess by imputed "
    "means. The print says what each uses, not what it does in the end.",
    assumptions=(
        "means have been learned from actions at random, 16,000 of them; p = (0.7, 0.3), μ_x = (1, 0), μ_y = (0, 0.5), "
        "MAR",
        "the loss of a choice is measured against the best choice given what is seen, so that none is lost by not "
        "knowing s",
    ),
    printed=Formula('"second: imputed means; third: the mean of ?  (the text)"', _as_in_the_text),
    right=Formula(
        r'"second:" "argmax"_a μ_{?,a}; "third:" "argmax"_a ((1 − p_m) μ_{s,a} + p_m μ_a)  "(the equations)"',
        limit_loss,
    ),
    proof=(
        "The sentence below the three equations describes the second and third in the other order, and M_i in them "
        "should be M_{t+1}.",
        "Rule 1 plays the best action of a guess s with probability p_s (probability matching): it loses p_m·Σ "
        "p_s(max_a μ_a − μ_{a*(s)}), for ever. Rule 2 converges to argmax μ_a, the best one can do without the state, "
        "and loses nothing. Rule 3 sees (1 − p_m)μ_{s,a} + p_m·μ_a, so its means shrink towards the average by the "
        "share hidden. Where that changes the order of actions it is wrong even when the state is seen: in state y as "
        "soon as p_m > Δ_y/(Δ_y + Δ̄) = 0.5/1.05 ≈ 0.476.",
        "So with a context that does not determine the state, rules 1 and 3 lose in proportion to time. What speaks "
        "for them is speed, not the limit.",
    ),
    broken="MAR: y is hidden more often than x. Rule 2 still loses nothing; rules 1 and 3 guess from the wrong "
    "distribution and lose something else.",
    simulate=_rules,
)

STATEMENTS = (ACTION_RULES,)
