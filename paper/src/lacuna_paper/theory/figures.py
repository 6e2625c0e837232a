"""The figures: formulas as lines, simulations as dots with intervals of two standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import altair as alt
import numpy as np

from lacuna.report import (
    BLACK,
    BLUE,
    DASHED,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    SOLID,
    VERMILION,
    Style,
    encodings,
    framed,
    laid_out,
    shown_rows,
)
from lacuna_paper.theory.bandit import IMPUTED_MEANS, MISSING_AS_STATE, RULE_NAMES, make_rule, run_bandit
from lacuna_paper.theory.measuring import standard_error
from lacuna_paper.theory.on_acting import (
    EPSILON,
    RULES,
    SCENARIOS,
    STEPS,
    K,
    limit_loss,
    predictive,
    price_of_not_knowing,
    regret,
)
from lacuna_paper.theory.on_imputing import estimated_ratio, name_of, recursive_ratio
from lacuna_paper.theory.on_means import (
    MEAN_IF_HIDDEN,
    MEANS,
    crossing,
    mse_gap,
    simulated_gap,
    truncated_inverse,
)
from lacuna_paper.theory.on_updates import effective_rate, printed_rate, same_state_rate
from lacuna_paper.theory.statement import Check, Conclusion, Measurement
from lacuna_paper.theory.transitions import INFINITE, recursive_moments

Row = dict[str, str | float]
Conclusions = Mapping[str, Conclusion]

_STYLES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "first": (BLUE, SOLID, "circle"),
    "second": (ORANGE, SOLID, "square"),
    "third": (VERMILION, SOLID, "diamond"),
    "fourth": (GREEN, SOLID, "triangle-up"),
    "fifth": (SKY, SOLID, "triangle-down"),
    "printed": (VERMILION, DASHED, "circle"),
    "observed": (ORANGE, SOLID, "triangle-up"),
    "missing": (PURPLE, SOLID, "diamond"),
    "imputed": (BLUE, SOLID, "circle"),
    "plain": (BLACK, SOLID, "circle"),
}
"""Methods look as on the paper's page: missing as a state is purple, imputing blue; what is printed is dashed."""

_NUMBERED = ("first", "second", "third", "fourth")
_OF_RULES = dict(zip((RULE_NAMES[kind] for kind in RULES), ("observed", "missing", "imputed"), strict=True))
_HIDDEN_SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)


@dataclass(frozen=True)
class Panel:
    """One panel: its title and axes; `level` and `mark` are a value and a place to mark."""

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
class Curves:
    """A figure before it is drawn: panels by their key, and a style for the name of each series.

    A row has ``panel``, ``series``, ``x``, ``mean`` and a ``kind``: a ``line`` is a formula, a ``dot`` a measurement, a
    ``path`` one of several that are joined; the latter two have an interval from ``low`` to ``high``.
    """

    id: str
    panels: Mapping[str, Panel]
    series: Mapping[str, str]
    rows: tuple[Row, ...]
    columns: int = 2


def _line(panel: str, series: str, xs: Iterable[float], ys: Iterable[float]) -> Iterator[Row]:
    for x, y in zip(xs, ys, strict=True):
        yield {"panel": panel, "series": series, "kind": "line", "x": float(x), "mean": float(y)}


def _dot(panel: str, series: str, x: float | str, y: float, error: float, kind: str = "dot") -> Row:
    bounds = {"low": y - 2 * error, "high": y + 2 * error}
    return {"panel": panel, "series": series, "kind": kind, "x": x, "mean": y, **bounds}


def _measured(checks: Iterable[Check]) -> list[Measurement]:
    return [check.measurement for check in checks]


def variances(conclusions: Conclusions) -> Curves:
    """What imputing does to the variance of an estimate, relative to complete tuples."""
    rows: list[Row] = []
    shares, above = np.linspace(0.02, 1, 50), np.linspace(0.52, 1, 49)
    names = {k: f"K = {name_of(k)}" for k in (INFINITE, 10, 1)}
    for k, name in names.items():
        cases = [{"p_o": p, "K": k, "t": np.inf, "literal": 0} for p in shares]
        rows += _line("estimated", name, shares, map(estimated_ratio, cases))
        rows += _line("recursive", name, above, (recursive_ratio({"p_o": p, "K": k}) for p in above))
    for panel, statement in (("estimated", "estimate-based"), ("recursive", "recursive-variance")):
        for one in _measured(conclusions[statement].valid):
            if not one.case.get("literal") and "exact at" not in one.what:
                rows.append(_dot(panel, names[int(one.case["K"])], one.case["p_o"], one.value, one.error))
    panels = {
        "estimated": Panel("Drawn from complete tuples", "p_o", "variance ratio", level=1.0, zero=False),
        "recursive": Panel(
            "Drawn from its own imputations", "p_o", "variance ratio", y_log=True, level=1.0,
            ticks=(1, 1.5, 2, 3, 5, 10),
        ),
    }  # fmt: skip
    return Curves("variances", panels, dict(zip(names.values(), _NUMBERED, strict=False)), tuple(rows))


def decay(conclusions: Conclusions) -> Curves:
    """How fast the recursive estimate learns."""
    rows: list[Row] = []
    times, shares = [1 << power for power in range(21)], (0.1, 0.25, 0.5, 0.75, 1.0)
    for k in (10, 1):
        for p_o in shares:
            rows += _line(f"K = {k}", f"p_o = {p_o:g}", times, np.sqrt(recursive_moments(p_o, k, times)))
    for one in _measured(conclusions["recursive-moments"].valid):
        if one.case["K"] != INFINITE:
            panel, series, y = f"K = {one.case['K']:.0f}", f"p_o = {one.case['p_o']:g}", float(np.sqrt(one.value))
            rows.append(_dot(panel, series, one.case["t"], y, one.error / (2 * y)))
    axes: dict[str, Any] = {"x_log": True, "y_log": True, "ticks": (1, 0.1, 0.01, 0.001)}
    panels = {f"K = {k}": Panel(f"K = {k}", "tuples", "error", **axes) for k in (10, 1)}
    styles = dict(zip((f"p_o = {p_o:g}" for p_o in shares), (*_NUMBERED, "plain"), strict=True))
    return Curves("decay", panels, styles, tuple(rows))


_LEARNERS = {"actions that do not learn": "first", "ε-greedy": "second", "greedy": "third"}


def _learner_and_cell(what: str) -> tuple[str, str]:
    """Who acted, and in which state and action, from the words of a measurement."""
    words = what.removeprefix("mean estimate, ").split(", ")
    who = next((name for name in _LEARNERS if name in words), "actions that do not learn")
    state = next((word.removeprefix("state ") for word in words if word.startswith("state ")), "?")
    return who, f"{state}, {words[-1]}"


def adaptive_bias(conclusions: Conclusions) -> Curves:
    """Bias of sample means under learners."""
    both = (conclusions["observed-mean"], conclusions["missing-mean"])
    rows = [
        _dot("bias", *_learner_and_cell(one.what), one.value - one.case["mu"], one.error)
        for conclusion in both for one in _measured((*conclusion.valid, *conclusion.broken))
        if "hidden" not in one.what
    ]  # fmt: skip
    panel = Panel("Bias of the mean reward", "state and action", "bias", names=True, level=0.0)
    return Curves("adaptive-bias", {"bias": panel}, _LEARNERS, tuple(rows), columns=1)


def plateau() -> Curves:
    """The variance of the two means of missing-as-state, weighted by use, in the deterministic case."""
    shares = np.concatenate([np.linspace(0.001, 0.1, 25), np.linspace(0.12, 0.88, 39), np.linspace(0.9, 0.999, 25)])
    rows = list(_line("plateau", "imputed: one bucket", shares, np.ones(shares.size)))
    for t in (20, 100, 1000):
        both = [(1 - p) * truncated_inverse(t, 0.5 * (1 - p)) + p * truncated_inverse(t, 0.5 * p) for p in shares]
        rows += _line("plateau", f"{t} steps", shares, np.array(both) / truncated_inverse(t, 0.5))
    panel = Panel("Variance relative to pooling", "share hidden p_m", "ratio", zero=False)
    styles = {
        "20 steps": "second", "100 steps": "third", "1000 steps": "missing", "imputed: one bucket": "imputed",
    }  # fmt: skip
    return Curves("plateau", {"plateau": panel}, styles, tuple(rows), columns=1)


def trade_off(paths: int, seed: int) -> Curves:
    """When imputing has the smaller error."""
    rows: list[Row] = []
    qs = np.concatenate([np.linspace(0.5, 0.9, 21), np.linspace(0.91, 1, 19)])
    for t in (100, 400, 1600):
        rows += _line("gap", f"{t} steps", qs, (mse_gap(q, t) for q in qs))
        for q in (0.5, 0.6, 0.7, 0.8, 0.9, 0.96, 1.0):
            rows.append(_dot("gap", f"{t} steps", q, *simulated_gap(q, t, max(100, paths * 40 // t), seed)))
    times = [100, 200, 400, 800, 1600, 3200, 6400]
    rows += _line("crossing", "1 − q*", times, (1 - crossing(t) for t in times))
    panels = {
        "gap": Panel("Error, imputed less observed", "predictiveness q", "difference", level=0.0),
        "crossing": Panel(
            "Where the two are equal", "steps", "1 − q*", x_log=True, y_log=True, ticks=(0.003, 0.01, 0.03, 0.1, 0.3)
        ),
    }
    styles = {"100 steps": "first", "400 steps": "second", "1600 steps": "third", "1 − q*": "plain"}
    return Curves("trade-off", panels, styles, tuple(rows))


def rules(conclusions: Conclusions) -> Curves:
    """What the three rules lose in the end, and the means that the third one sees."""
    rows: list[Row] = []
    shares = np.linspace(0, 1, 101)
    for a in (0, 1):
        rows += _line("means", f"action {a}", shares, (1 - shares) * MEANS[1, a] + shares * MEAN_IF_HIDDEN[a])
    for kind in RULES:
        rows += _line("loss", RULE_NAMES[kind], shares, (limit_loss({"rule": kind, "p_m": p}) for p in shares))
    for one in _measured(conclusions["action-rules"].valid):
        rows.append(_dot("loss", RULE_NAMES[int(one.case["rule"])], one.case["p_m"], one.value, one.error))
    panels = {
        "means": Panel("Imputed means in state y", "share hidden p_m", "mean reward", mark=0.5 / 1.05),
        "loss": Panel("Loss per step", "share hidden p_m", "loss"),
    }
    return Curves("rules", panels, {"action 0": "fourth", "action 1": "fifth", **_OF_RULES}, tuple(rows))


_OF_SCENARIOS = {key: Panel(title, "share hidden", "regret") for key, (title, _) in SCENARIOS.items()}


def regrets(paths: int, seed: int) -> Curves:
    """Regret of the three rules in all scenarios."""
    rows = (
        _dot(scenario, RULE_NAMES[kind], share, *regret(scenario, share, kind, paths, seed), "path")
        for scenario, share, kind in product(SCENARIOS, _HIDDEN_SHARES, RULES)
    )
    return Curves("regret", _OF_SCENARIOS, _OF_RULES, tuple(rows), columns=3)


def u_shapes(paths: int, seed: int) -> Curves:
    """Missing as a state against two yardsticks."""
    rows: list[Row] = []
    blind, knowing = "against the best choice given what is seen", "against knowing every hidden state"
    for scenario, (_, world_with) in SCENARIOS.items():
        for share in _HIDDEN_SHARES:
            y, error = regret(scenario, share, MISSING_AS_STATE, paths, seed)
            unknown = STEPS * price_of_not_knowing(world_with(share))
            rows.append(_dot(scenario, blind, share, y, error, "path"))
            rows.append(_dot(scenario, knowing, share, y + unknown, error, "path"))
    return Curves("u-shape", _OF_SCENARIOS, {blind: "missing", knowing: "plain"}, tuple(rows), columns=3)


def early(paths: int, seed: int) -> Curves:
    """The advantage of imputing against the length of a run, with a predictive context."""
    rows: list[Row] = []
    names = {sure: f"predicts with {sure:g}" for sure in (0.9, 0.95, 0.99)}
    for sure, name in names.items():
        world = predictive(0.5, sure)
        for steps in (125, 250, 500, 1000, 2000, 4000):
            mean, square = 0.0, 0.0
            for kind, sign in ((MISSING_AS_STATE, 1), (IMPUTED_MEANS, -1)):
                rule = make_rule(kind, world, epsilon=EPSILON, K=K)
                found = run_bandit(world, rule, steps, paths, seed, "early", sure, steps, kind)[1] / steps
                mean, square = mean + sign * float(found.mean()), square + standard_error(found) ** 2
            rows.append(_dot("early", name, steps, mean, float(np.sqrt(square)), "path"))
    panel = Panel("Advantage of imputing per step", "steps", "difference", x_log=True, level=0.0)
    styles = dict(zip(names.values(), _NUMBERED, strict=False))
    return Curves("early", {"early": panel}, styles, tuple(rows), columns=1)


def updates(conclusions: Conclusions) -> Curves:
    """The add-on figure with the printed and the right curve, and the rate of a step that stays."""
    rows: list[Row] = []
    pathways = [*range(1, 21), *range(22, 61, 2)]
    for panel, less in (("rate", 0.0), ("add-on", 1.0)):
        rows += _line(panel, "as printed", pathways, (printed_rate(1.0, k) - less for k in pathways))
        rows += _line(panel, "binomial coefficients", pathways, (effective_rate(1.0, k) - less for k in pathways))
        for one in _measured(conclusions["fractional-add-on"].valid):
            rows.append(_dot(panel, "the kernels", one.case["K"], one.value + 1 - less, 0.0))
    gammas = np.linspace(0, 1, 41)
    cases = [{"alpha": 1.0, "K": 10, "gamma": gamma, "greedy": 1} for gamma in gammas]
    rows += _line("stay", "binomial coefficients", gammas, [effective_rate(1.0, 10)] * len(cases))
    rows += _line("stay", "s' = s, the best action", gammas, map(same_state_rate, cases))
    for one in _measured(conclusions["fractional-same-state"].valid):
        if one.case["greedy"] and one.case["alpha"] == 1 and one.case["K"] == 10:
            rows.append(_dot("stay", "the kernels", one.case["gamma"], one.value, 0.0))
    panels = {
        "rate": Panel("Effective rate", "K", "rate"),
        "add-on": Panel("The add-on", "K", "add-on"),
        "stay": Panel("A step with s' = s, K = 10", "γ", "rate", zero=False),
    }
    styles = {
        "as printed": "printed", "binomial coefficients": "first", "s' = s, the best action": "third",
        "the kernels": "plain",
    }  # fmt: skip
    return Curves("updates", panels, styles, tuple(rows), columns=3)


def all_curves(conclusions: Iterable[Conclusion], effort: float, seed: int, workers: int = 1) -> tuple[Curves, ...]:
    """Every figure, in the order of the appendix."""
    by_id = {conclusion.statement.id: conclusion for conclusion in conclusions}
    paths = int(600 * effort)
    with ThreadPoolExecutor(workers) as pool:
        late = pool.submit(early, max(2, int(400 * effort)), seed)
        for key in product(SCENARIOS, _HIDDEN_SHARES, RULES):
            pool.submit(regret, *key, paths, seed)  # kept there until it is drawn
        gaps = trade_off(int(3000 * effort), seed)
    return (
        variances(by_id), decay(by_id), adaptive_bias(by_id), plateau(), gaps, rules(by_id), regrets(paths, seed),
        u_shapes(paths, seed), late.result(), updates(by_id),
    )  # fmt: skip


def draw(curves: Curves) -> alt.ConcatChart:
    """Draw a figure: panels side by side that share colours, a legend, and a switch for every series."""
    styles = [Style(name, *_STYLES[style]) for name, style in curves.series.items()]
    panels = [_panel(key, panel, curves, styles) for key, panel in curves.panels.items()]
    return laid_out(panels, list(curves.rows), styles, curves.columns)


def _panel(key: str, panel: Panel, curves: Curves, styles: list[Style]) -> alt.LayerChart:
    colour, dash, shape = encodings(styles)
    x, y, shown = _horizontal(panel), _vertical(panel), shown_rows(key)
    beside = {"xOffset": alt.XOffset("series:N").scale(domain=[style.name for style in styles])} if panel.names else {}
    kinds = {row["kind"] for row in curves.rows if row["panel"] == key}
    layers: list[alt.Chart] = list(_levels(panel))
    if kinds & {"line", "path"}:
        lines = shown.transform_filter("datum.kind !== 'dot'")
        layers.append(lines.mark_line(strokeWidth=2).encode(x, y, colour, dash))
    if kinds & {"dot", "path"}:
        dots = shown.transform_filter("datum.kind !== 'line'")
        layers.append(dots.mark_rule(strokeWidth=1.5).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, **beside))
        tooltip = [
            alt.Tooltip("series:N", title=" "), alt.Tooltip("x:N" if panel.names else "x:Q", title=panel.x),
            alt.Tooltip("mean:Q", format=".4~g", title=panel.y), alt.Tooltip("low:Q", format=".4~g", title="− 2 s.e."),
            alt.Tooltip("high:Q", format=".4~g", title="+ 2 s.e."),
        ]  # fmt: skip
        marks = dots.mark_point(filled=True, size=48, opacity=1)
        layers.append(marks.encode(x, y, colour, shape, tooltip=tooltip, **beside))
    return framed(panel.title, layers, width=300, height=220)


def _horizontal(panel: Panel) -> alt.X:
    if panel.names:
        axis = alt.Axis(title=None, labelAngle=0, labelExpr="split(datum.label, ', ')", labelLimit=90)
        return alt.X("x:N", axis=axis, sort=None)
    axis = alt.Axis(title=panel.x, grid=False, tickCount=6, format="~s" if panel.x_log else ".4~r")
    return alt.X("x:Q", axis=axis, scale=alt.Scale(type="log" if panel.x_log else "linear", nice=False))


def _vertical(panel: Panel) -> alt.Y:
    values: dict[str, Any] = {"values": list(panel.ticks)} if panel.ticks else {"tickCount": 5}
    axis = alt.Axis(title=None, minExtent=36, format=".4~r", **values)
    scale: dict[str, Any] = {"type": "log", "nice": False} if panel.y_log else {"zero": panel.zero, "nice": True}
    return alt.Y("mean:Q", axis=axis, scale=alt.Scale(**scale))


def _levels(panel: Panel) -> Iterator[alt.Chart]:
    """A level or a place worth marking."""
    for at, channel in ((panel.level, alt.Y("at:Q")), (panel.mark, alt.X("at:Q"))):
        if at is not None:
            marked = alt.Chart(alt.InlineData(values=[{"at": at}]))
            yield marked.mark_rule(color=GREY, strokeDash=[1, 3], strokeWidth=1.5).encode(channel)
