"""The summaries in a report: means, curves, paired differences, and scores over all tasks, each with its interval.

Each function takes `Outcomes` and gives a table. Intervals are Student's t at 95 %, over trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lacuna.study.outcomes import Measure, Outcomes
from lacuna.study.statistics import (
    LEVEL,
    ROUNDING,
    holm,
    mean_interval,
    paired_difference,
    paired_p_value,
    remark,
    t_quantile,
    tasks_interquartile_difference,
    tasks_interquartile_mean,
)

POINTS = 40
"""Points of a curve that are drawn: the early ones, where most happens, lie closer together."""

_AT = ("place", "missingness", "task", "rate", "series")
_CURVES = ("curve_step", "curve_episodes", "curve_reward", "curve_total")
_NUMBERS: dict[str, Any] = {"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64, "p": pl.Float64}


def with_intervals(values: pl.DataFrame, by: Sequence[str], value: str = "value") -> pl.DataFrame:
    """Return ``mean``, ``low``, ``high`` and ``n`` of a column in each group, in the order of the groups.

    Examples
    --------
    >>> values = pl.DataFrame({"method": ["MI", "MI"], "value": [1.0, 3.0]})
    >>> with_intervals(values, ["method"]).select("method", "mean", "n").rows()
    [('MI', 2.0, 2)]
    """
    found = values.group_by(by, maintain_order=True).agg(
        mean=pl.col(value).mean(), _spread=pl.col(value).std(), _range=pl.col(value).max() - pl.col(value).min(),
        _size=pl.col(value).abs().max(), n=pl.len().cast(pl.Int64),
    )  # fmt: skip
    sizes = [int(n) for n in found["n"].unique() if n > 1]
    reach = {n: t_quantile(LEVEL, n - 1) / np.sqrt(n) for n in sizes}
    # As in `mean_interval`: values that are equal but for rounding say nothing about their spread.
    spread = pl.when(pl.col("_range") > ROUNDING * pl.col("_size")).then(pl.col("_spread"))
    half = spread * pl.col("n").replace_strict(reach, default=None, return_dtype=pl.Float64)
    return found.with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half).select(
        *by, "mean", "low", "high", "n"
    )


def means(outcomes: Outcomes, measure: Measure) -> pl.DataFrame:
    """Return means over whole runs, a row for each task and series.

    ``note`` says if trials lie far from the others, and gives the median; or that all are equal. Else it is empty.
    """
    values = outcomes.values(measure)
    notes = {
        at: remark(rows["value"].to_numpy()) for at, rows in values.partition_by("task", "series", as_dict=True).items()
    }
    found = with_intervals(values, _AT)
    return found.with_columns(note=pl.Series([notes[at] for at in found.select("task", "series").iter_rows()]))


def trial_curves(outcomes: Outcomes, measure: Measure) -> pl.DataFrame:
    """Return the measure over all steps so far, for each trial: ``value`` at step ``x``, where it is defined.

    A curve that was noted at many steps is thinned to `POINTS` of them.
    """
    runs = outcomes.runs.filter(pl.col("curve_step").list.len() > 0)
    long = runs.select("task", "series", "trial", *_CURVES).explode(_CURVES)
    parts = [
        found.filter(pl.col("curve_step").is_in(thinned(found["curve_step"].unique().sort()).implode()))
        for _, found in _parts(long, "task")
    ]
    long = pl.concat(parts) if parts else long
    ratio = pl.when(pl.col(measure.over) > 0).then(pl.col(measure.summed) / pl.col(measure.over))
    return long.select("task", "series", "trial", x=pl.col("curve_step"), value=ratio).drop_nulls("value")


def curves(trials: pl.DataFrame) -> pl.DataFrame:
    """Return the means of what `trial_curves` gave, at the steps where all trials of a series have a value."""
    at = ("task", "series")
    wanted = pl.col("trial").n_unique().over(at)
    return with_intervals(trials.filter(pl.len().over(*at, "x") == wanted), (*at, "x")).sort(*at, "x")


def thinned(steps: pl.Series) -> pl.Series:
    """Return at most `POINTS` of some steps, the first and the last among them.

    Examples
    --------
    >>> thinned(pl.Series(range(3))).to_list(), len(thinned(pl.Series(range(10_000)))) <= POINTS
    ([0, 1, 2], True)
    """
    last = len(steps) - 1
    places = np.unique(np.rint(last * np.linspace(0, 1, POINTS) ** 1.5).astype(np.int64))
    return steps.gather(places)


def paired(values: pl.DataFrame, pairs: Iterable[tuple[str, str]]) -> pl.DataFrame:
    """Compare series trial by trial, in each task in which both have trials in common.

    Parameters
    ----------
    values
        ``task``, ``series``, ``trial``, ``value``.
    pairs
        Pairs of a series and the one to subtract from it.

    Returns
    -------
    DataFrame
        ``task``, ``series``, ``other``; ``mean`` of the differences, ``low``, ``high``, ``n``; ``p`` by Student's t,
        corrected by Holm's method for all rows of this table; ``note``, which says if differences lie far from the
        others, or are all equal; ``clear``, whether ``p`` is at most 5 %: then the interval leaves 0 out,
        too, if there is one.
    """
    tables = {
        task: {series: dict(rows.select("trial", "value").iter_rows()) for (series,), rows in _parts(found, "series")}
        for (task,), found in _parts(values, "task")
    }
    rows = []
    for task, of in tables.items():
        for series, other in pairs:
            trials = sorted(of.get(series, {}).keys() & of.get(other, {}).keys())
            if trials:
                a, b = ([of[name][trial] for trial in trials] for name in (series, other))
                note = remark(np.subtract(a, b))
                rows.append((task, series, other, *paired_difference(a, b), paired_p_value(a, b), note))
    texts: dict[str, Any] = dict.fromkeys(("task", "series", "other"), pl.String)
    found = pl.DataFrame(rows, texts | _NUMBERS | {"note": pl.String}, orient="row")
    corrected = holm(found["p"].to_list()) if rows else []
    return found.with_columns(p=pl.Series(corrected, dtype=pl.Float64)).with_columns(clear=pl.col("p") <= 1 - LEVEL)


def differences(outcomes: Outcomes, measure: Measure, against: str) -> pl.DataFrame:
    """Return paired differences of every series to one of them, in each task; see `paired`."""
    others = [one.name for one in outcomes.series if one.name != against]
    found = paired(outcomes.values(measure), [(name, against) for name in others])
    places = outcomes.runs.select("place", "missingness", "task", "rate").unique(maintain_order=True)
    return found.join(places, on="task", maintain_order="left")


def leaders(values: pl.DataFrame, names: Sequence[str]) -> dict[str, str | None]:
    """Say which of some series is clearly ahead of each of the others, by task; None where none is.

    The one with the highest mean is compared with each of the m others, paired by trial, and the largest of these p
    values counts for the task. It is multiplied by m/2, as any of the m might have come out highest by chance, on that
    one side; and corrected by Holm's method for the number of tasks.
    """
    best: dict[str, str | None] = {}
    p_values: dict[str, float] = {}
    for (task,), rows in _parts(values.filter(pl.col("series").is_in(names)), "task"):
        averages = dict(rows.group_by("series").agg(pl.col("value").mean()).iter_rows())
        first = max(averages, key=lambda name: averages[name])
        others = [name for name in averages if name != first]
        found = [on_shared_trials(rows, first, other) for other in others]
        ahead = all(a and np.mean(a) > np.mean(b) for a, b in found)
        p = max((paired_p_value(a, b) for a, b in found), default=1.0) if ahead else 1.0
        p_values[task] = min(1.0, max(1.0, len(others) / 2) * p)
        best[task] = first
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True)) if p_values else {}
    return {task: name if corrected[task] <= 1 - LEVEL else None for task, name in best.items()}


def on_shared_trials(rows: pl.DataFrame, first: str, second: str) -> tuple[list[float], list[float]]:
    """Return the values of two series of one task on the trials that they share."""
    a, b = (rows.filter(series=name).select("trial", "value") for name in (first, second))
    both = a.join(b, on="trial").sort("trial")
    return both["value"].to_list(), both["value_right"].to_list()


# --- over all tasks -----------------------------------------------------------------------------------------------


class Scores:
    """Rewards on one scale, in the tasks and trials that all series share.

    In each task 0 is the lowest mean of a method, and 1 the mean of the yardstick that nothing can beat if it was run
    in every task, else the highest mean of any series. Tasks in which all means are equal are left out.

    Attributes
    ----------
    tasks, trials
        Those that count.
    left_out
        How many tasks do not.
    to_best
        Whether 1 is that yardstick.
    of
        For each series the scores, a row per trial and a column per task.
    """

    def __init__(self, outcomes: Outcomes, measure: Measure) -> None:
        values = outcomes.values(measure)
        names = [one.name for one in outcomes.series]
        ranked = values.filter(pl.len().over("task", "trial") == len(names))
        trials_of = {task: set(rows["trial"]) for (task,), rows in _parts(ranked, "task")}
        tasks = [task for task in outcomes.tasks if task in trials_of]
        self.trials = sorted(set.intersection(*trials_of.values())) if trials_of else []
        wide = ranked.filter(pl.col("trial").is_in(self.trials)).sort("trial")
        best = [one.name for one in outcomes.series if one.best]
        self.to_best = bool(best)
        of: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
        self.tasks: list[str] = []
        for task in tasks if self.trials else ():
            found = {name: wide.filter(task=task, series=name)["value"].to_numpy() for name in names}
            averages = {name: float(found[name].mean()) for name in names}
            low = min(averages[name] for name in outcomes.methods or names)
            high = averages[best[0]] if best else max(averages.values())
            if high > low:
                self.tasks.append(task)
                for name in names:
                    of[name].append((found[name] - low) / (high - low))
        self.of: Mapping[str, NDArray[np.float64]] = {name: np.array(rows).T for name, rows in of.items() if rows}
        self.left_out = len(outcomes.tasks) - len(self.tasks)

    def interquartile_means(self) -> pl.DataFrame:
        """Return the interquartile mean over tasks and trials: ``series``, ``mean``, ``low``, ``high``, ``n``."""
        rows = [(name, *tasks_interquartile_mean(scores)) for name, scores in self.of.items()]
        schema = {"series": pl.String, **{name: _NUMBERS[name] for name in ("mean", "low", "high", "n")}}
        return pl.DataFrame(rows, schema, orient="row")

    def profile(self, points: int = 51) -> pl.DataFrame:
        """Return the share of tasks and trials with a score of at least ``x``, from 0 to 1."""
        rows: list[tuple[Any, ...]] = []
        for name in self.of:
            for x in np.linspace(0, 1, points):
                mean, low, high, n = mean_interval(self.reached(name, float(x)))
                bounds = (low, high) if low is None or high is None else (max(low, 0.0), min(high, 1.0))
                rows.append((name, round(float(x), 6), mean, *bounds, n))
        schema = {"series": pl.String, "x": pl.Float64, **{k: _NUMBERS[k] for k in ("mean", "low", "high", "n")}}
        return pl.DataFrame(rows, schema, orient="row")

    def reached(self, series: str, x: float) -> NDArray[np.float64]:
        """Return the share of tasks with a score of at least `x`, for each trial."""
        # Scores at the ends of the scale may round to just below them.
        return np.asarray((self.of[series] >= x - 1e-9).mean(axis=1), dtype=np.float64)

    def leader(self, names: Sequence[str]) -> str | None:
        """Name the series whose interquartile mean is clearly above that of each other one; None if none is."""
        names = [name for name in names if name in self.of]
        level = 1 - (1 - LEVEL) / max(1, len(names) * (len(names) - 1) // 2)
        for name in names:
            others = [other for other in names if other != name]
            found = [tasks_interquartile_difference(self.of[name], self.of[other], level) for other in others]
            if found and all(one.low is not None and one.low > 0 for one in found):
                return name
        return None


def _parts(table: pl.DataFrame, by: str) -> Iterable[tuple[tuple[Any, ...], pl.DataFrame]]:
    return table.partition_by(by, as_dict=True, maintain_order=True).items()
