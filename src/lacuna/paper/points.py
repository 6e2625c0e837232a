"""From a table of runs to the points of a chart: each series at its chosen setting, means over trials with intervals.

A row of what the functions here give: ``panel``, ``measure``, ``series``, ``x``, ``mean``, ``low``, ``high``, ``n``
(the number of trials as published, of draws held out) and ``setting`` (the hyper-parameters, in words). Intervals are
Student's t at 95 %, as in the claims: held out, over the means of the draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from scipy import stats

from lacuna.paper.evidence import DRAWS, Draw, Evidence, Reading, Selection, Shown, theta_of
from lacuna.report.styles import Look, look_of
from lacuna.study.selection import MEASURES, SETTING, with_open_episode

FIRST_FRESH = 1000
"""Trials from this number on are fresh, unless draws say which are: they had no part in the choice of settings."""

POINTS = 40
"""Points of a curve that are drawn: the early ones, where most happens, lie closer together."""

LEVEL = 0.95

REWARD, WATER, PATH = MEASURES
STAY = "idle_share"

_CURVES = {REWARD: "curve_reward", WATER: "curve_bad", PATH: "curve_path"}
_COLUMNS = ("curve_step", "curve_episodes", "curve_idle", *_CURVES.values())
_KEYS = ("missingness", "series")
_ROW = (*_KEYS, "setting", "draw", "trial")


@dataclass(frozen=True)
class Source:
    """Runs of one reading of the paper's world, and how settings are chosen among them.

    Parameters
    ----------
    table
        A row per run, as in a store.
    reading
        Which end of an episode: ``"episodic"`` or ``"continuing"``.
    selection, draws
        How settings are chosen, and on which trials: as for `Evidence`. Without draws, settings are chosen on all
        trials of the table numbered below 1000, and held out shown on the others.
    """

    table: pl.DataFrame = field(repr=False)
    reading: Reading = "episodic"
    selection: Selection = "as-published"
    draws: Sequence[Draw] | None = None

    @cached_property
    def evidence(self) -> Evidence:
        """The same as the claims see it."""
        return Evidence(self.table, self.reading, self.selection, self.draws or [self._one_draw()])

    def _one_draw(self) -> Draw:
        trials = self.table.filter(continuing=self.reading == "continuing")["trial"].unique().sort()
        tuning, fresh = tuple(trials.filter(trials < FIRST_FRESH)), tuple(trials.filter(trials >= FIRST_FRESH))
        return Draw(tuning or DRAWS[0].tuning, fresh or DRAWS[0].fresh)


@dataclass(frozen=True)
class Wanted:
    """One series of a chart: a method, and hyper-parameters that are held fixed rather than chosen."""

    shown: Shown
    look: Look
    fixed: tuple[tuple[str, bool | float], ...] = ()

    @classmethod
    def plain(cls, *methods: Shown) -> tuple[Wanted, ...]:
        """Methods as they look in every chart, all hyper-parameters chosen."""
        return tuple(cls(shown, look_of(shown)) for shown in methods)


def by_rate(source: Source, wanted: Sequence[Wanted]) -> pl.DataFrame:
    """Give the three measures of whole runs against the rate of MCAR missingness.

    Held out, the episode that a run did not complete counts as one that ended at the horizon; as published it is left
    out.
    """
    runs = _chosen(source, wanted)
    if runs.is_empty():
        return runs
    suffix = "_with_open" if source.selection == "held-out" else ""
    rates = {name: theta_of(name) for name in runs["missingness"].unique() if name.startswith("mcar:")}
    long = (
        runs.filter(pl.col("missingness").is_in(list(rates)))
        .with_columns(x=pl.col("missingness").replace_strict(rates, return_dtype=pl.Float64))
        .filter(pl.col("x").is_not_nan())
        .select(*_ROW, "x", *(pl.col(measure + suffix).alias(measure) for measure in MEASURES))
        .unpivot(MEASURES, index=[*_ROW, "x"], variable_name="measure")
    )
    return _points(long, source.evidence).with_columns(panel=pl.col("measure"))


def over_time(source: Source, wanted: Sequence[Wanted], missingness: Iterable[str]) -> pl.DataFrame:
    """Give the measures as running means over the episodes completed by each step, and the share of stay actions.

    A point is there only if every trial had completed an episode by then.
    """
    runs = _chosen(source, wanted, list(missingness))
    if runs.is_empty():
        return runs
    steps = runs.select(pl.col("curve_step").explode().unique().sort()).to_series()
    long = (
        runs.select(*_ROW, *_COLUMNS)
        .explode(_COLUMNS)
        .filter(pl.col("curve_step").is_in(_thinned(steps).implode()))
        .with_columns(
            *((pl.col(column) / _if_any("curve_episodes")).alias(measure) for measure, column in _CURVES.items()),
            (pl.col("curve_idle") / pl.col("curve_step")).alias(STAY),
        )
        .rename({"curve_step": "x"})
        .unpivot([*MEASURES, STAY], index=[*_ROW, "x"], variable_name="measure")
    )
    return _points(long, source.evidence).with_columns(panel=pl.concat_str("missingness", "measure", separator=" "))


def _if_any(column: str) -> pl.Expr:
    return pl.when(pl.col(column) > 0).then(pl.col(column))


def _thinned(steps: pl.Series) -> pl.Series:
    last = len(steps) - 1
    places = np.unique(np.rint(last * np.linspace(0, 1, POINTS) ** 1.5).astype(np.int64))
    return steps.gather(places)


def _chosen(source: Source, wanted: Sequence[Wanted], missingness: Sequence[str] | None = None) -> pl.DataFrame:
    """The runs of every wanted series at its chosen setting."""
    choice = pl.concat([_choice(source, fixed, wanted) for fixed in dict.fromkeys(one.fixed for one in wanted)])
    if missingness is not None:
        choice = choice.filter(pl.col("missingness").is_in(list(missingness)))
    if choice.is_empty():
        return pl.DataFrame()
    return with_open_episode(_runs_of(source, choice)).with_columns(_setting_in_words())


def _choice(source: Source, fixed: tuple[tuple[str, bool | float], ...], wanted: Sequence[Wanted]) -> pl.DataFrame:
    """The chosen settings of the series with these hyper-parameters fixed; one that lacks a tuning trial has none."""
    seen = source.evidence.only(**dict(fixed)) if fixed else source.evidence
    names = [(*one.shown, one.look.name) for one in wanted if one.fixed == fixed]
    schema = {"method": pl.String, "K": pl.Int64, "p_shuffle": pl.Float64, "series": pl.String}
    named = pl.DataFrame(names, schema=schema, orient="row")
    return seen.chosen.join(named, on=["method", "K", "p_shuffle"], nulls_equal=True).select(*SETTING, "series", "draw")


def _runs_of(source: Source, choice: pl.DataFrame) -> pl.DataFrame:
    """The runs of chosen settings on the trials that are reported, each in the draw that chose it."""
    draws = source.evidence.draws
    reported = pl.DataFrame(
        [(i, trial) for i, draw in enumerate(draws) for trial in draw.fresh],
        schema={"draw": pl.Int64, "trial": pl.Int64}, orient="row",
    )  # fmt: skip
    # The same run may have been noted twice, with a curve and without; the one with a curve is kept.
    return (
        source.table.join(choice, on=SETTING, nulls_equal=True)
        .join(reported, on=["draw", "trial"], how="semi")
        .sort(pl.col("curve_step").list.len(), descending=True, maintain_order=True)
        .unique([*SETTING, "series", "trial"], keep="first", maintain_order=True)
    )


def _setting_in_words() -> pl.Expr:
    numbers = (
        pl.format(f"{sign} {{}}", pl.col(name)) for sign, name in (("α", "alpha"), ("γ", "gamma"), ("ε", "epsilon"))
    )
    stay = pl.when(pl.col("stay")).then(pl.lit("may stay")).otherwise(pl.lit("may not stay"))
    return pl.concat_str(*numbers, stay, separator=", ").alias("setting")


def _points(long: pl.DataFrame, seen: Evidence) -> pl.DataFrame:
    """Means with intervals, where every trial has a value."""
    n = seen.size
    reach = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) / np.sqrt(n) if n > 1 else None
    at = (*_KEYS, "measure", "x")
    whole = long.group_by(at, maintain_order=True).agg(defined=pl.col("value").count())
    whole = whole.filter(defined=len(seen.trials))
    each = "draw" if seen.selection == "held-out" else "trial"
    return (
        long.join(whole, on=at, how="semi", maintain_order="left")
        .group_by(*at, each, maintain_order=True)
        .agg(pl.col("value").mean(), pl.col("setting").first())
        .group_by(at, maintain_order=True)
        .agg(mean=pl.col("value").mean(), spread=pl.col("value").std(), n=pl.len(), setting=_in_short("setting"))
        .with_columns(low=pl.col("mean") - pl.col("spread") * reach, high=pl.col("mean") + pl.col("spread") * reach)
        .with_columns(pl.col("mean", "low", "high").round_sig_figs(4))
        .drop("spread")
        .sort("missingness", "measure", "series", "x")
    )


def _in_short(column: str) -> pl.Expr:
    """The most frequent text, and in how many of all draws it is that, if not in all."""
    most = pl.col(column).sort().mode(maintain_order=True).first()
    times = (pl.col(column) == most).sum()
    return pl.when(times == pl.len()).then(most).otherwise(pl.format("{} in {} of {}", most, times, pl.len()))
