"""The charts of any study: rewards, learning curves, paired differences, and scores over all tasks.

Each is a function from `Outcomes` to an `altair` chart, which a notebook shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import altair as alt
import polars as pl

from lacuna.report.axes import Panel
from lacuna.report.panels import LABELS, chart_of
from lacuna.report.styles import Style, styles_of
from lacuna.study.outcomes import Measure, Outcomes, rate_of
from lacuna.study.summaries import Scores, curves, differences, means, trial_curves

MOST_CURVES = 24
"""Tasks whose curves are drawn."""

_TRIALS, _ROWS = 10, 20_000
_ROUND = pl.col("mean", "low", "high").round_sig_figs(5)


def styles(outcomes: Outcomes) -> list[Style]:
    """Return the style of each series, the same in all charts."""
    return styles_of(outcomes.methods, [one.name for one in outcomes.series if one.yardstick])


def rewards(outcomes: Outcomes, measure: Measure | None = None) -> alt.ConcatChart:
    """Draw the reward of whole runs against missingness, a panel for each place."""
    measure = measure or outcomes.measures[0]
    return _against_missingness(means(outcomes, measure), outcomes, measure.name)


def paired_differences(outcomes: Outcomes, measure: Measure, against: str) -> alt.ConcatChart | None:
    """Draw by how much each series earns more than one of them, a panel for each place; None without a pair."""
    found = differences(outcomes, measure, against)
    what = f"difference in {measure.name}"
    return None if found.is_empty() else _against_missingness(found, outcomes, what, line=0.0)


def learning_curves(outcomes: Outcomes, measure: Measure | None = None) -> alt.ConcatChart | None:
    """Draw the measure over all steps so far, a panel for each task; None if no curve was noted."""
    measure = measure or outcomes.measures[0]
    drawn = tasks_with_curves(outcomes)
    trials = trial_curves(outcomes, measure).filter(pl.col("task").is_in(drawn)).rename({"task": "panel"})
    if trials.is_empty():
        return None
    found = curves(trials.rename({"panel": "task"})).rename({"task": "panel"}).with_columns(_ROUND)
    shown = sorted(set(trials["trial"]))[:_TRIALS]
    lines = trials.filter(pl.col("trial").is_in(shown)).with_columns(pl.col("value").round_sig_figs(4))
    places = dict(outcomes.runs.select("task", "place").iter_rows())
    by_place = found.with_columns(place=pl.col("panel").replace_strict(places))
    ends = {place: _close_up(by_place.filter(place=place), outcomes.methods) for place in set(by_place["place"])}
    # The tasks of a place are drawn on the same scale.
    panels = [Panel(task, task, close_up=ends[places[task]], shares=places[task]) for task in drawn]
    few = lines if lines.height <= _ROWS else None
    return chart_of(found, panels, styles(outcomes), trials=few)


def tasks_with_curves(outcomes: Outcomes) -> list[str]:
    """Name the tasks whose curves are drawn: all, or some spread over all if there are many."""
    noted = outcomes.runs.filter(pl.col("curve_step").list.len() > 0)["task"].unique(maintain_order=True).to_list()
    if len(noted) <= MOST_CURVES:
        return noted
    return [noted[round(i * (len(noted) - 1) / (MOST_CURVES - 1))] for i in range(MOST_CURVES)]


def interquartile_means(scores: Scores, outcomes: Outcomes) -> alt.ConcatChart:
    """Draw the interquartile mean over tasks of each series, the highest first."""
    found = scores.interquartile_means().sort("mean", descending=True).with_columns(_ROUND)
    points = found.with_columns(panel=pl.lit("scores"), category=pl.col("series"), x=0.0)
    panel = Panel("scores", "Interquartile mean of scores", against="category", axis="score", whole=True)
    return _drawn(points, [panel], outcomes)


def profile(scores: Scores, outcomes: Outcomes) -> alt.ConcatChart:
    """Draw the share of runs that reach each score."""
    points = scores.profile().with_columns(_ROUND).with_columns(panel=pl.lit("profile"))
    panel = Panel("profile", "Share of runs that score at least this", "share", "score", axis="score")
    return chart_of(points, [panel], styles(outcomes), columns=1)


def _against_missingness(
    found: pl.DataFrame, outcomes: Outcomes, what: str, line: float | None = None
) -> alt.ConcatChart:  # fmt: skip
    """Rates along an axis where the mechanisms of a place differ in nothing else, categories elsewhere."""
    points = found.with_columns(_ROUND).with_columns(
        panel=pl.col("place"), x=pl.col("rate").fill_null(0.0), category=pl.col("missingness")
    )
    panels = []
    for place in outcomes.places:
        here = points.filter(panel=place)
        if not here.is_empty():
            panels.append(_panel(here, what, line, outcomes.methods))
    return _drawn(points, panels, outcomes)


def _panel(here: pl.DataFrame, what: str, line: float | None, methods: Sequence[str]) -> Panel:
    key = here["place"][0]
    close_up = None if line is not None else _close_up(here, methods)
    whole = line is not None
    if here["rate"].has_nulls():
        return Panel(key, key, against="category", line=line, close_up=close_up, axis=what, whole=True)
    kinds = {found[0] for name in here["missingness"] if (found := rate_of(name)) and found[0]}
    rates = sorted(set(here["rate"]))
    room = min((b - a for a, b in pairwise(rates)), default=0.1) / 4
    span = (rates[0] - room, rates[-1] + room)
    axis = f"rate of {', '.join(sorted(kinds))}"
    return Panel(key, f"{key}: {what}", "linear", "rate", line, close_up=close_up, axis=axis, span=span, whole=whole)


def _close_up(rows: pl.DataFrame, methods: Sequence[str]) -> float | None:
    """Where an axis may begin so that a few means far below do not squash all others; yardsticks do not count.

    A mean lies far below if its whole interval does.
    """
    counted = rows.filter(pl.col("series").is_in(methods)).sort("mean")
    if counted.is_empty():
        return None
    top, middle = counted["mean"][-1], counted["mean"][counted.height // 2]
    bottom = top - 2.5 * (top - middle)
    lowest = counted.select(pl.col("high").fill_null(pl.col("mean")).min()).item()
    return bottom if top > middle and lowest < bottom - (top - bottom) else None


def _drawn(points: pl.DataFrame, panels: Sequence[Panel], outcomes: Outcomes) -> alt.ConcatChart:
    """Draw panels, and tell a page how much room the names of categories need."""
    chart = chart_of(points, panels, styles(outcomes), columns=min(3, len(panels)))
    if any(panel.against == "category" for panel in panels):
        chart.usermeta |= {"left": min(LABELS, 7 * max(map(len, points["category"]))) + 12}
    return chart
