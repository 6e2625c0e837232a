"""Statements on the four scenarios, and on the U shape, from the regret of the three action rules."""

from __future__ import annotations

from functools import lru_cache

from lacuna.theory.bandit import IMPUTED_MEANS, MISSING_AS_STATE
from lacuna.theory.scenarios import SCENARIOS, regret
from lacuna.theory.statement import Evidence, Formula, Measurement, Relation, Statement

_SETTING = (
    "three contexts, three states (two in scenario 4), three actions; the right action depends on context and state; "
    "rewards with variance 1",
    "500 steps, ε = 0.05, K = 5 guesses from the shares seen so far; what was never tried is tried first",
    "regret of the greedy choices against the best choice given what is seen",
)
_PAIR = (MISSING_AS_STATE, IMPUTED_MEANS)


@lru_cache(maxsize=256)
def _advantage(scenario: str, share: float, paths: int, seed: int) -> tuple[float, float]:
    """How much less imputed means lose than missing as a state, and its standard error."""
    return regret(scenario, paths, seed, (share,), _PAIR).advantage(share)


def _advantages(scenario: str, shares: tuple[float, ...], effort: float, seed: int) -> list[Measurement]:
    what = f"regret(missing as a state) − regret(imputed means), {SCENARIOS[scenario][0]}, share hidden"
    paths = int(2400 * effort)
    return [Measurement(f"{what} {share}", {}, *_advantage(scenario, share, paths, seed)) for share in shares]


def _preference(
    kept: tuple[str, tuple[float, ...]], broken: tuple[str, tuple[float, ...]], effort: float, seed: int
) -> Evidence:
    return Evidence(tuple(_advantages(*kept, effort, seed)), tuple(_advantages(*broken, effort, seed)))


def _formula(relation: Relation) -> Formula:
    return Formula(f'"regret"_? − "regret"_{{"imp"}} {relation} 0', lambda _: 0.0, relation)


PREDICTIVE = Statement(
    id="scenario-predictive",
    title="Scenario 1: a predictive context, MAR: impute",
    place="A.2.1, scenario 1",
    claim="If the context predicts the state well, imputing learns faster than missing as a state.",
    assumptions=(*_SETTING, "the context tells the state with probability 0.95; hidden whatever it is"),
    printed=_formula(">"),
    right=None,
    proof=(
        "Imputing pools what missing as a state splits into two buckets (see the case of a context that says "
        "everything). With 5 % of wrong guesses the bias is too small to change an order of actions.",
    ),
    broken="Predictiveness: in scenario 2 the sign turns.",
    simulate=lambda effort, seed: _preference(
        ("predictive", (0.3, 0.5, 0.7, 0.9)), ("unpredictive", (0.4, 0.5, 0.6, 0.7)), effort, seed
    ),
)

UNPREDICTIVE = Statement(
    id="scenario-unpredictive",
    title="Scenario 2: no predictive value, MAR: keep `?` apart",
    place="A.2.1, scenario 2",
    claim="If context and state are independent, imputing only adds noise to the estimates for states that are seen; "
    "missing as a state is better.",
    assumptions=(*_SETTING, "p = (0.5, 0.3, 0.2) whatever the context; hidden whatever the state"),
    printed=_formula("<"),
    right=None,
    proof=(
        "It adds more than noise. The imputed means tend to (1 − p_m)μ_{s,a} + p_m·μ_a, which for a large share hidden "
        "ranks the actions like μ_a, wrongly for two states of three; this loss grows in proportion to time. Near a "
        "share of 1 hardly any state is seen, and imputing, which pools, is no worse: the statement holds in the "
        "middle, not at the end.",
    ),
    broken="No predictive value: in scenario 1 the sign turns.",
    simulate=lambda effort, seed: _preference(
        ("unpredictive", (0.3, 0.4, 0.5, 0.6, 0.7)), ("predictive", (0.5, 0.7, 0.9)), effort, seed
    ),
)

SIGNAL = Statement(
    id="scenario-signal",
    title="Scenario 3: missing is a signal, NMAR: keep `?` apart",
    place="A.2.1, scenario 3",
    claim="If a state is hidden exactly when it has a value that is never seen, `?` is that value, and imputing from "
    "what was seen is far off.",
    assumptions=(*_SETTING, "the third state is always hidden, and nothing else is"),
    printed=_formula("<"),
    right=None,
    proof=(
        "Guesses are always wrong, and every hidden reward is credited to a wrong state; the mean of `?` is exactly "
        "that of the hidden state.",
    ),
    broken="The signal: in scenario 1 a hidden state says nothing that the context does not, and the sign turns.",
    simulate=lambda effort, seed: _preference(
        ("signal", (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)), ("predictive", (0.5, 0.7, 0.9)), effort, seed
    ),
)

GENERAL = Statement(
    id="scenario-general",
    title="Scenario 4: general NMAR: it depends on whether states rank actions alike",
    place="A.2.1, scenario 4",
    claim="Skewed guesses do harm only if the states want different actions; if they rank the actions alike, imputing "
    "is still better.",
    assumptions=(
        *_SETTING,
        "two states, the second hidden four times as often as the first (or whenever it occurs)",
        "both states rank the actions alike",
    ),
    printed=_formula(">"),
    right=None,
    proof=(
        "If all states rank the actions alike, so does every mixture of their means: no bias of the kind imputing "
        "makes can change the order, and pooling is a pure gain. If they do not, the mixture can.",
    ),
    broken="Alike ranking: when the two states want different actions the sign turns.",
    simulate=lambda effort, seed: _preference(
        ("alike", (0.2, 0.3, 0.4, 0.5, 0.6)), ("opposed", (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)), effort, seed
    ),
)


_ENDS_AND_MIDDLE = (0.02, 0.5, 0.98)


def _u_shape(effort: float, seed: int) -> Evidence:
    kept, broken = [], []
    for scenario, (name, _) in SCENARIOS.items():
        found = regret(scenario, int(6000 * effort), seed, _ENDS_AND_MIDDLE, (MISSING_AS_STATE,))
        what = f"regret of missing as a state with half hidden, less the larger of those with 2 % and 98 %, {name}"
        kept.append(Measurement(what, {}, *found.arch(MISSING_AS_STATE)))
        if scenario in ("unpredictive", "opposed"):
            what = f"the same, against knowing every hidden state, {name}"
            broken.append(Measurement(what, {}, *found.arch(MISSING_AS_STATE, knowing=True)))
    return Evidence(tuple(kept), tuple(broken))


U_SHAPE = Statement(
    id="u-shape",
    title="Missing as a state: the U shape",
    place="A.2.4 and the main text",
    claim="Missing as a state does well when little is hidden and when nearly everything is, and worse in between.",
    assumptions=(*_SETTING, "judged against the best choice given what is seen"),
    printed=Formula('"regret"_?(1/2) > "max"("regret"_?(0.02), "regret"_?(0.98))', lambda _: 0.0, ">"),
    right=None,
    proof=(
        "The number of things to learn is what makes it. With nothing hidden there is one bucket for each context and "
        "state; with everything hidden one for each context; in between there are both, each filled at its own speed. "
        "A bucket costs at most what it takes to sort its actions out, so a bucket that is hardly ever met costs "
        "little: the sides of the U are about as wide as that cost over the length of the run, and they get steeper "
        "as runs get longer.",
        "It is a U of performance against what could be done. Against knowing the hidden states, performance falls "
        "with the share hidden, and the right side of the U is gone, except where the context or the fact of hiding "
        "tells the state.",
    ),
    broken="The yardstick: against knowing every hidden state, the loss that no method can avoid is added, and regret "
    "at 98 % is the largest.",
    simulate=_u_shape,
)

STATEMENTS = (PREDICTIVE, UNPREDICTIVE, SIGNAL, GENERAL, U_SHAPE)
