"""From runs to the points of a chart: each series at its chosen setting, means over trials with intervals.

A row of what the functions here give: ``panel``, ``measure``, ``series``, ``x``, ``mean``, ``low``, ``high`` and ``n``
(the number of trials as published, of draws held out). Intervals are Student's t at 95 %, as in the claims: held out,
over the means of the draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from lacuna.report import BLACK, BLUE, BROWN, DASHED, DOTTED, GREEN, GREY, ORANGE, PURPLE, SKY, SOLID, VERMILION, Style
from lacuna.study import MEASURES, thinned, with_intervals, with_open_episode
from lacuna_paper.evidence import COLUMNS, PATH, REWARD, STAYED, WATER, Evidence, Shown, theta_of

_CURVES = {REWARD: "curve_reward", WATER: "curve_bad", PATH: "curve_path"}
_COLUMNS = ("curve_step", "curve_episodes", "curve_idle", *_CURVES.values())
_KEYS = ("missingness", "series")
_ROW = (*_KEYS, "draw", "trial")

# As in the paper, multiple imputation is blue, single imputation red, and the conservative model dashed. Ours is black.
OF_PATHWAYS = {1: (VERMILION, "square"), 5: (SKY, "triangle-right"), 10: (BLUE, "circle")}
_STYLES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "random-action": (GREY, DOTTED, "cross"), "last-fully-observed": (ORANGE, SOLID, "triangle-down"),
    "last-observed": (GREEN, SOLID, "triangle-up"), "missing-as-state": (PURPLE, SOLID, "diamond"),
    "mi-available": (BLACK, SOLID, "circle"), "mi-planned": (VERMILION, SOLID, "diamond"),
    "planned-observed": (VERMILION, DASHED, "diamond"),
    "fully-observed": (GREEN, DASHED, "triangle-up"), "mi-true-model": (SKY, DASHED, "square"),
    "qmdp": (BROWN, DASHED, "triangle-down"), "qmdp-rewards": (PURPLE, DASHED, "diamond"),
    "optimum": (GREY, DOTTED, "cross"),
}  # fmt: skip
_EVERY = 3
"""The curve of a single trial shows every third of its points."""
_DASHES = {"mi-synthetic": SOLID, "mi-conservative": DASHED}


def style_of(shown: Shown) -> Style:
    """Return the style of a method, the same in every chart."""
    if shown.method in _STYLES:
        return Style(str(shown), *_STYLES[shown.method])
    colour, shape = OF_PATHWAYS[shown.K or 1]
    return Style(str(shown), colour, _DASHES[shown.method], shape)


@dataclass(frozen=True)
class Wanted:
    """One series of a chart: a method, and hyper-parameters that are held fixed rather than chosen."""

    shown: Shown
    style: Style
    fixed: tuple[tuple[str, bool | float], ...] = ()

    @classmethod
    def plain(cls, *methods: Shown) -> tuple[Wanted, ...]:
        """Methods as they look in every chart, all hyper-parameters chosen."""
        return tuple(cls(shown, style_of(shown)) for shown in methods)


class Drawn(NamedTuple):
    """What a chart is drawn from: means with their intervals, and the trials behind them where these are few.

    A row of ``trials``: ``panel``, ``series``, ``trial``, ``x`` and ``value``. It is empty held out, where an interval
    is over the draws.
    """

    points: pl.DataFrame
    trials: pl.DataFrame


def by_rate(seen: Evidence, wanted: Sequence[Wanted]) -> pl.DataFrame:
    """Return the three measures of whole runs against the rate of MCAR missingness.

    Held out, the episode that a run did not complete counts as one that ended at the horizon; as published it is left
    out.
    """
    return drawn_by_rate(seen, wanted).points


def drawn_by_rate(seen: Evidence, wanted: Sequence[Wanted]) -> Drawn:
    """Return the same with the trials behind it."""
    runs = _chosen(seen, wanted)
    if runs.is_empty():
        return Drawn(runs, runs)
    suffix = "_with_open" if seen.held_out else ""
    rates = {name: theta_of(name) for name in runs["missingness"].unique() if name.startswith("mcar:")}
    long = (
        with_open_episode(runs.filter(pl.col("missingness").is_in(list(rates))))
        .with_columns(x=pl.col("missingness").replace_strict(rates, return_dtype=pl.Float64))
        .filter(pl.col("x").is_not_nan())
        .select(*_ROW, "x", *(pl.col(measure + suffix).alias(measure) for measure in MEASURES))
        .unpivot(MEASURES, index=[*_ROW, "x"], variable_name="measure")
    )
    return _drawn(long, seen, pl.col("measure"))


def over_time(seen: Evidence, wanted: Sequence[Wanted], missingness: Iterable[str]) -> pl.DataFrame:
    """Return the measures as running means over the episodes completed by each step, and the share of stay actions.

    A point is there only if every trial had completed an episode by then.
    """
    return drawn_over_time(seen, wanted, missingness).points


def drawn_over_time(seen: Evidence, wanted: Sequence[Wanted], missingness: Iterable[str]) -> Drawn:
    """Return the same with the trials behind it, at fewer steps."""
    runs = _chosen(seen, wanted, list(missingness))
    if runs.is_empty():
        return Drawn(runs, runs)
    curves = seen.table.select(_COLUMNS)[runs["row"]]
    runs = pl.concat([runs.select(_ROW), curves], how="horizontal")
    steps = thinned(runs.select(pl.col("curve_step").explode().unique().sort()).to_series())
    long = (
        runs.explode(_COLUMNS)
        .filter(pl.col("curve_step").is_in(steps.implode()))
        .with_columns(
            *((pl.col(column) / _if_any("curve_episodes")).alias(measure) for measure, column in _CURVES.items()),
            (pl.col("curve_idle") / pl.col("curve_step")).alias(STAYED),
        )
        .rename({"curve_step": "x"})
        .unpivot([*MEASURES, STAYED], index=[*_ROW, "x"], variable_name="measure")
    )
    few = steps.reverse().gather_every(_EVERY)
    return _drawn(long, seen, pl.concat_str("missingness", "measure", separator=" "), pl.col("x").is_in(few.implode()))


def _if_any(column: str) -> pl.Expr:
    return pl.when(pl.col(column) > 0).then(pl.col(column))


def _chosen(seen: Evidence, wanted: Sequence[Wanted], missingness: Sequence[str] | None = None) -> pl.DataFrame:
    """The runs of every wanted series at its chosen setting, on the trials reported by the draw that chose it."""
    choice = pl.concat([_choice(seen, fixed, wanted) for fixed in dict.fromkeys(one.fixed for one in wanted)])
    if missingness is not None:
        choice = choice.filter(pl.col("missingness").is_in(list(missingness)))
    if choice.is_empty():
        return pl.DataFrame()
    reported = pl.DataFrame(
        [(i, trial) for i, draw in enumerate(seen.draws) for trial in draw.fresh],
        schema={"draw": pl.Int64, "trial": pl.Int64}, orient="row",
    )  # fmt: skip
    runs = seen.runs.join(choice, on=COLUMNS.setting, nulls_equal=True).join(reported, on=["draw", "trial"], how="semi")
    # The same run may have been noted twice, with a curve and without; the one with a curve is kept.
    return (
        runs.with_columns(points=seen.table["curve_step"][runs["row"]].list.len())
        .sort("points", descending=True, maintain_order=True)
        .unique([*COLUMNS.setting, "series", "trial"], keep="first", maintain_order=True)
    )


def _choice(seen: Evidence, fixed: tuple[tuple[str, bool | float], ...], wanted: Sequence[Wanted]) -> pl.DataFrame:
    """The chosen settings of the series with these hyper-parameters fixed; one that lacks a tuning trial has none."""
    names = [(*one.shown, one.style.name) for one in wanted if one.fixed == fixed]
    schema = {"method": pl.String, "K": pl.Int64, "p_shuffle": pl.Float64, "series": pl.String}
    named = pl.DataFrame(names, schema=schema, orient="row")
    chosen = (seen.only(**dict(fixed)) if fixed else seen).chosen
    return chosen.join(named, on=Shown._fields, nulls_equal=True).select(*COLUMNS.setting, "series", "draw")


def _drawn(long: pl.DataFrame, seen: Evidence, panel: pl.Expr, lines_at: pl.Expr | None = None) -> Drawn:
    """Put values of single trials together: means with intervals, and the trials where they are drawn."""
    points = _points(long, seen).with_columns(panel=panel)
    if seen.held_out:
        return Drawn(points, pl.DataFrame())
    there = points.select(*_KEYS, "measure").unique()
    kept = long.drop_nulls("value").join(there, on=(*_KEYS, "measure"), how="semi", maintain_order="left")
    lines = kept.filter(lines_at) if lines_at is not None else kept
    return Drawn(
        points,
        lines.select(panel.alias("panel"), "series", "trial", "x", pl.col("value").round_sig_figs(3))
        .sort("panel", "series", "trial", "x"),
    )  # fmt: skip


def _points(long: pl.DataFrame, seen: Evidence) -> pl.DataFrame:
    """Means with intervals, where every trial has a value."""
    at = (*_KEYS, "measure", "x")
    whole = long.group_by(at, maintain_order=True).agg(defined=pl.col("value").count())
    whole = whole.filter(defined=len(seen.trials))
    kept = (
        long.join(whole, on=at, how="semi", maintain_order="left")
        .group_by(*at, "draw" if seen.held_out else "trial", maintain_order=True)
        .agg(pl.col("value").mean())
    )
    found = with_intervals(kept, at).with_columns(pl.col("mean", "low", "high").round_sig_figs(4))
    return found.sort("missingness", "measure", "series", "x")
