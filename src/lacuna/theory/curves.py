"""What the charts show, as plain rows: formulas as lines, simulations as dots with intervals of two standard errors."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lacuna.theory.bandit import IMPUTED_MEANS, MISSING_AS_STATE, OBSERVED_MEANS, RULE_NAMES, make_rule, run_bandit
from lacuna.theory.chance import error_of_mean
from lacuna.theory.on_imputed_means import crossing, mse_gap, simulated_gap
from lacuna.theory.on_imputing import estimated_ratio, name_of
from lacuna.theory.on_means import truncated_inverse
from lacuna.theory.on_recursion import recursive_ratio
from lacuna.theory.on_rules import MEANS, SHARES, limit_loss
from lacuna.theory.on_updates import effective_rate, printed_rate, same_state_rate
from lacuna.theory.scenarios import EPSILON, SCENARIOS, K, Regret, predictive, regret
from lacuna.theory.scenarios import SHARES as HIDDEN_SHARES
from lacuna.theory.statement import Judgement, Measurement
from lacuna.theory.transitions import INFINITE, recursive_moments

Role = Literal[
    "first", "second", "third", "fourth", "fifth", "printed", "right", "observed", "missing", "imputed", "plain"
]
Row = dict[str, str | float]


@dataclass(frozen=True)
class Panel:
    """One panel: the rows it shows, its title and axes; `level` is a value to mark."""

    key: str
    title: str
    x: str
    y: str
    x_log: bool = False
    y_log: bool = False
    names: bool = False
    level: float | None = None
    mark: float | None = None
    zero: bool = True
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Series:
    """A name in the legend, and the part it plays, which decides its colour."""

    name: str
    role: Role


@dataclass(frozen=True)
class Curves:
    """A figure before it is drawn."""

    id: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    series: tuple[Series, ...]
    rows: tuple[Row, ...]
    columns: int = 2


def _line(panel: str, series: str, xs: Iterable[float], ys: Iterable[float]) -> list[Row]:
    return [
        {"panel": panel, "series": series, "kind": "line", "x": float(x), "y": float(y)}
        for x, y in zip(xs, ys, strict=True)
    ]


def _dot(panel: str, series: str, x: float | str, y: float, error: float, kind: str = "dot") -> Row:
    return {"panel": panel, "series": series, "kind": kind, "x": x, "y": y, "low": y - 2 * error, "high": y + 2 * error}


def _found(judgements: dict[str, Judgement], name: str, *, broken: bool = False) -> list[Measurement]:
    judgement = judgements[name]
    comparisons = judgement.broken if broken else judgement.right or judgement.printed
    return [comparison.measurement for comparison in comparisons]


def updates(judgements: dict[str, Judgement]) -> Curves:
    """The add-on figure with the printed and the right curve, and the rate of a step that stays."""
    rows: list[Row] = []
    pathways = [*range(1, 21), *range(22, 61, 2)]
    for panel, less in (("rate", 0.0), ("add-on", 1.0)):
        rows += _line(panel, "as printed", pathways, (printed_rate(1.0, k) - less for k in pathways))
        rows += _line(panel, "binomial coefficients", pathways, (effective_rate(1.0, k) - less for k in pathways))
        rows += [
            _dot(panel, "the kernels", one.case["K"], one.value + 1 - less, 0.0)
            for one in _found(judgements, "fractional-add-on")
        ]
    gammas = np.linspace(0, 1, 41)
    cases = [{"alpha": 1.0, "K": 10, "gamma": gamma, "greedy": 1} for gamma in gammas]
    rows += _line("stay", "binomial coefficients", gammas, [effective_rate(1.0, 10)] * len(cases))
    rows += _line("stay", "s' = s, the best action", gammas, (same_state_rate(case) for case in cases))
    rows += [
        _dot("stay", "the kernels", one.case["gamma"], one.value, 0.0)
        for one in _found(judgements, "fractional-same-state")
        if one.case["greedy"] and one.case["alpha"] == 1 and one.case["K"] == 10
    ]
    return Curves(
        "updates", "K updates at rate α/K, at α = 1",
        "Left: the rate of the one update that K updates make. Middle: the add-on of the paper's figure 5, with its "
        "coefficients and with the right ones. Right: K = 10, for a step that returns to its own state with the best "
        "action. Dots are measured on the kernels that agents learn with.",
        (
            Panel("rate", "Effective rate", "K", "rate"), Panel("add-on", "The add-on", "K", "add-on"),
            Panel("stay", "A step with s' = s, K = 10", "γ", "rate", zero=False),
        ),
        (
            Series("as printed", "printed"), Series("binomial coefficients", "right"),
            Series("s' = s, the best action", "third"), Series("the kernels", "plain"),
        ),
        tuple(rows), columns=3,
    )  # fmt: skip


_OF_K: tuple[tuple[int, Role], ...] = ((INFINITE, "first"), (10, "second"), (1, "third"))


def variances(judgements: dict[str, Judgement]) -> Curves:
    """What imputing does to the variance of an estimate, relative to complete tuples."""
    rows: list[Row] = []
    shares, above = np.linspace(0.02, 1, 50), np.linspace(0.52, 1, 49)
    for k, _ in _OF_K:
        name = f"K = {name_of(k)}"
        rows += _line(
            "estimated", name, shares, (estimated_ratio({"p_o": p, "K": k, "t": np.inf, "literal": 0}) for p in shares)
        )
        rows += _line("recursive", name, above, (recursive_ratio({"p_o": p, "K": k}) for p in above))
    for one in _found(judgements, "estimate-based"):
        if not one.case["literal"] and "exact" not in one.what:
            rows.append(_dot("estimated", f"K = {name_of(one.case['K'])}", one.case["p_o"], one.value, one.error))
    for one in _found(judgements, "recursive-variance"):
        rows.append(_dot("recursive", f"K = {name_of(one.case['K'])}", one.case["p_o"], one.value, one.error))
    return Curves(
        "variances", "The price of counting imputations",
        "Variance of the estimated transition probability relative to complete tuples alone, against the share p_o of "
        "complete tuples. The print says that the left ratio diverges; it never exceeds 2. The right one does "
        "diverge, at p_o = ½. Lines are the formulas, dots the simulations (right: and the exact recursion).",
        (
            Panel("estimated", "Drawn from complete tuples", "p_o", "variance ratio", level=1.0, zero=False),
            Panel(
                "recursive", "Drawn from its own imputations", "p_o", "variance ratio", y_log=True, level=1.0,
                ticks=(1, 1.5, 2, 3, 5, 10),
            ),
        ),
        tuple(Series(f"K = {name_of(k)}", role) for k, role in _OF_K), tuple(rows),
    )  # fmt: skip


_OF_SHARE: tuple[tuple[float, Role], ...] = (
    (0.1, "first"),
    (0.25, "second"),
    (0.5, "third"),
    (0.75, "fourth"),
    (1.0, "plain"),
)


def decay(judgements: dict[str, Judgement]) -> Curves:
    """How fast the recursive estimate learns."""
    rows: list[Row] = []
    times = [1 << power for power in range(21)]
    for k, _ in _OF_K[1:]:
        for p_o, _ in _OF_SHARE:
            rows += _line(f"K = {k}", f"p_o = {p_o:g}", times, np.sqrt(recursive_moments(p_o, k, times)))
    for one in _found(judgements, "recursive-moments"):
        if one.case["K"] != INFINITE:
            y = float(np.sqrt(one.value))
            rows.append(
                _dot(f"K = {one.case['K']:.0f}", f"p_o = {one.case['p_o']:g}", one.case["t"], y, one.error / (2 * y))
            )
    return Curves(
        "decay", "The synthetic model slows down without bound",
        "Root mean squared error of an estimate that learns from its own imputations, in units of √(p(1 − p)), by the "
        "share p_o of complete tuples. For p_o > ½ it falls like t^(−1/2), below like t^(−p_o). Lines are the exact "
        "recursion, dots the simulation.",
        tuple(
            Panel(f"K = {k}", f"K = {k}", "tuples", "error", x_log=True, y_log=True, ticks=(1, 0.1, 0.01, 0.001))
            for k, _ in _OF_K[1:]
        ),
        tuple(Series(f"p_o = {p_o:g}", role) for p_o, role in _OF_SHARE), tuple(rows),
    )  # fmt: skip


_LEARNERS = ("ε-greedy", "greedy", "actions that do not learn")


def _learner_and_cell(what: str) -> tuple[str, str]:
    """Who acted, and in which state and action, from the words of a measurement."""
    words = what.removeprefix("mean estimate, ").split(", ")
    who = next((name for name in _LEARNERS[:2] if name in words), _LEARNERS[2])
    state = next((word.removeprefix("state ") for word in words if word.startswith("state ")), "?")
    return who, f"{state}, {words[-1]}"


def adaptive_bias(judgements: dict[str, Judgement]) -> Curves:
    """Bias of sample means under learners."""
    rows: list[Row] = []
    for name in ("observed-mean", "missing-mean"):
        for broken in (False, True):
            for one in _found(judgements, name, broken=broken):
                if "hidden" not in one.what:
                    who, where = _learner_and_cell(one.what)
                    rows.append(_dot("bias", who, where, one.value - one.case["mu"], one.error))
    return Curves(
        "adaptive-bias", "Learners bias the means they learn from",
        "Bias of the mean reward after 40 steps, by state (? is a hidden one) and action. With actions that do not "
        "depend on rewards there is none, as the theorem says; greedy and ε-greedy learners make every mean too small.",
        (Panel("bias", "Bias of the mean reward", "state and action", "bias", names=True, level=0.0),),
        (Series("actions that do not learn", "right"), Series("ε-greedy", "second"), Series("greedy", "third")),
        tuple(rows), columns=1,
    )  # fmt: skip


def plateau(_: dict[str, Judgement]) -> Curves:
    """The variance of the two means of missing-as-state, weighted by use, in the deterministic case."""
    rows: list[Row] = []
    shares = np.concatenate([np.linspace(0.001, 0.1, 25), np.linspace(0.12, 0.88, 39), np.linspace(0.9, 0.999, 25)])
    for t in (20, 100, 1000):
        pooled = truncated_inverse(t, 0.5)
        ys = [
            ((1 - p) * truncated_inverse(t, 0.5 * (1 - p)) + p * truncated_inverse(t, 0.5 * p)) / pooled for p in shares
        ]
        rows += _line("plateau", f"{t} steps", shares, ys)
        rows += _line("plateau", "imputed: one bucket", shares, [1.0] * len(shares)) if t == 20 else []
    return Curves(
        "plateau", "Two buckets instead of one",
        "A context that determines the state, exactly: the variance of the mean that a decision uses, averaged over "
        "decisions, relative to the imputed mean, which pools all rewards. Missing as a state pays twice over a wide "
        "plateau; the sides become steeper as runs become longer.",
        (Panel("plateau", "Variance relative to pooling", "share hidden p_m", "ratio", zero=False),),
        (
            Series("20 steps", "second"), Series("100 steps", "third"), Series("1000 steps", "missing"),
            Series("imputed: one bucket", "imputed"),
        ),
        tuple(rows), columns=1,
    )  # fmt: skip


_OF_RULE: tuple[tuple[int, Role], ...] = (
    (OBSERVED_MEANS, "observed"), (MISSING_AS_STATE, "missing"), (IMPUTED_MEANS, "imputed"),
)  # fmt: skip


def rules(judgements: dict[str, Judgement]) -> Curves:
    """What the three rules lose in the end, and the means that the third one sees."""
    rows: list[Row] = []
    shares, hidden = np.linspace(0, 1, 101), SHARES @ MEANS
    for a in (0, 1):
        rows += _line("means", f"action {a}", shares, (1 - shares) * MEANS[1, a] + shares * hidden[a])
    for kind, _ in _OF_RULE:
        rows += _line("loss", RULE_NAMES[kind], shares, (limit_loss({"rule": kind, "p_m": p}) for p in shares))
    for one in _found(judgements, "action-rules"):
        rows.append(_dot("loss", RULE_NAMES[int(one.case["rule"])], one.case["p_m"], one.value, one.error))
    return Curves(
        "rules", "What the three rules lose in the end",
        "Left: the imputed means of state y in the limit; from a share hidden of 0.476 on they rank the wrong action "
        "first, although y is seen. Right: loss per step against the best choice given what is seen.",
        (
            Panel("means", "Imputed means in state y", "share hidden p_m", "mean reward", mark=0.5 / 1.05),
            Panel("loss", "Loss per step", "share hidden p_m", "loss"),
        ),
        (
            Series("action 0", "fourth"), Series("action 1", "fifth"),
            *(Series(RULE_NAMES[kind], role) for kind, role in _OF_RULE),
        ),
        tuple(rows),
    )  # fmt: skip


_OF_TIME: tuple[tuple[int, Role], ...] = ((100, "first"), (400, "second"), (1600, "third"))


def trade_off(paths: int, seed: int) -> Curves:
    """When imputing has the smaller error."""
    rows: list[Row] = []
    qs = np.concatenate([np.linspace(0.5, 0.9, 21), np.linspace(0.91, 1, 19)])
    for t, _ in _OF_TIME:
        rows += _line("gap", f"{t} steps", qs, (mse_gap(q, t) for q in qs))
        for q in (0.5, 0.6, 0.7, 0.8, 0.9, 0.96, 1.0):
            rows.append(_dot("gap", f"{t} steps", q, *simulated_gap(q, t, max(100, paths * 40 // t), seed)))
    times = [100, 200, 400, 800, 1600, 3200, 6400]
    rows += _line("crossing", "1 − q*", times, (1 - crossing(t) for t in times))
    return Curves(
        "trade-off", "Imputing pays early, or with a very predictive context",
        "Left: mean squared error of the imputed mean less that of the observed one, against the probability q of the "
        "likelier of two states; below 0, imputing is better. Right: how far from certain the context may be for "
        "imputing to be better; it falls like 1/t. Half of the states are hidden.",
        (
            Panel("gap", "Error, imputed less observed", "predictiveness q", "difference", level=0.0),
            Panel(
                "crossing", "Where the two are equal", "steps", "1 − q*", x_log=True, y_log=True,
                ticks=(0.003, 0.01, 0.03, 0.1, 0.3),
            ),
        ),
        (*(Series(f"{t} steps", role) for t, role in _OF_TIME), Series("1 − q*", "plain")),
        tuple(rows),
    )  # fmt: skip


def regrets(found: dict[str, Regret]) -> Curves:
    """Regret of the three rules in all scenarios."""
    rows: list[Row] = []
    for scenario, one in found.items():
        for kind, _ in _OF_RULE:
            rows += [
                _dot(scenario, RULE_NAMES[kind], share, float(one.mean[i, kind]), float(one.error[i, kind]), "path")
                for i, share in enumerate(HIDDEN_SHARES)
            ]
    return Curves(
        "regret", "Four scenarios, three rules",
        "Regret over 500 steps of the greedy choices against the best choice given what is seen, by the share of "
        "states hidden. Imputing wins where the context predicts the state or all states want the same action; "
        "missing as a state wins everywhere else.",
        tuple(Panel(key, title, "share hidden", "regret") for key, (title, _) in SCENARIOS.items()),
        tuple(Series(RULE_NAMES[kind], role) for kind, role in _OF_RULE), tuple(rows), columns=3,
    )  # fmt: skip


def u_shapes(found: dict[str, Regret]) -> Curves:
    """Missing as a state against two yardsticks."""
    rows: list[Row] = []
    blind, knowing = "against the best choice given what is seen", "against knowing every hidden state"
    for scenario, one in found.items():
        for i, share in enumerate(HIDDEN_SHARES):
            y, error = float(one.mean[i, MISSING_AS_STATE]), float(one.error[i, MISSING_AS_STATE])
            rows.append(_dot(scenario, blind, share, y, error, "path"))
            rows.append(_dot(scenario, knowing, share, y + float(one.unknown[i]), error, "path"))
    return Curves(
        "u-shape", "Does missing-as-state show a U?",
        "Regret of missing as a state, an arch being a U of performance. Against what could be done with what is seen, "
        "there is one: with everything hidden there is little to learn. Against knowing the hidden states there is "
        "one only where the context, or being hidden, gives them away.",
        tuple(Panel(key, title, "share hidden", "regret") for key, (title, _) in SCENARIOS.items()),
        (Series(blind, "missing"), Series(knowing, "plain")), tuple(rows), columns=3,
    )  # fmt: skip


_OF_SURENESS: tuple[tuple[float, Role], ...] = ((0.9, "first"), (0.95, "second"), (0.99, "third"))


def early(paths: int, seed: int) -> Curves:
    """The advantage of imputing against the length of a run, with a predictive context."""
    rows: list[Row] = []
    for sure, _ in _OF_SURENESS:
        world = predictive(0.5, sure)
        for steps in (125, 250, 500, 1000, 2000, 4000):
            mean, square = 0.0, 0.0
            for kind, sign in ((MISSING_AS_STATE, 1), (IMPUTED_MEANS, -1)):
                rule = make_rule(kind, world, epsilon=EPSILON, K=K)
                found = run_bandit(world, rule, steps, paths, seed, "early", sure, steps, kind).regret / steps
                mean, square = mean + sign * float(found.mean()), square + error_of_mean(found) ** 2
            rows.append(_dot("early", f"predicts with {sure:g}", steps, mean, float(np.sqrt(square)), "path"))
    return Curves(
        "early", "How long does imputing pay?",
        "Regret per step of missing as a state less that of imputed means, in scenario 1 with half of the states "
        "hidden; above 0, imputing is better. The advantage is one of speed: it shrinks as runs get longer, and turns "
        "where the context is not predictive enough.",
        (Panel("early", "Advantage of imputing per step", "steps", "difference", x_log=True, level=0.0),),
        tuple(Series(f"predicts with {sure:g}", role) for sure, role in _OF_SURENESS), tuple(rows), columns=1,
    )  # fmt: skip


def all_curves(judgements: Iterable[Judgement], effort: float, seed: int, workers: int = 1) -> tuple[Curves, ...]:
    """Every figure, in the order of the appendix."""
    by_id = {judgement.statement.id: judgement for judgement in judgements}
    with ThreadPoolExecutor(workers) as pool:
        late = pool.submit(early, max(2, int(400 * effort)), seed)
        found = dict(
            zip(SCENARIOS, pool.map(lambda name: regret(name, int(600 * effort), seed), SCENARIOS), strict=True)
        )
        gaps = trade_off(int(3000 * effort), seed)
    return (
        variances(by_id), decay(by_id), adaptive_bias(by_id), plateau(by_id), gaps, rules(by_id), regrets(found),
        u_shapes(found), late.result(), updates(by_id),
    )  # fmt: skip
