"""From a table of runs to the data of a report: tasks, series, and one number per trial.

A *task* is a kind of missingness in a *place*: a world with its parameters, run for a number of steps. A *series* is a
method, with those of its settings that differ between its runs. The functions of `lacuna.study.summaries` take it from
there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from lacuna.agent.methods import NAMED, YARDSTICKS, Knows
from lacuna.agent.settings import SETTINGS
from lacuna.quantities import counted
from lacuna.study.parts import no_runs
from lacuna.study.runs import written_parameters, written_sources
from lacuna.study.selection import COLUMNS, HYPER_PARAMETERS, METHOD, choose, chosen_runs, with_open_episode
from lacuna.study.spec import Study

MOST_SHOWN = 8
"""Up to so many settings are shown one by one; of more, each method is shown at its best."""

_MOST_TRIALS = 50
"""So many trials are named one by one."""

_PLACE = ("world", "parameters", "first_observed", "steps")
_RUN = (*COLUMNS.setting, "trial")
_RATE = re.compile(r"^([\w-]+):(\d*\.?\d+)$")


class Measure(NamedTuple):
    """What is measured: its name, the column of a run, and the running sums whose ratio is its curve."""

    name: str
    column: str
    summed: str
    over: str


PER_EPISODE = Measure("reward per episode", "mean_total_reward_with_open", "curve_reward", "curve_episodes")
"""Over whole runs, episodes that are open or were cut off count as ended there; curves are of completed episodes."""

PER_STEP = Measure("reward per step", "reward_per_step", "curve_total", "curve_step")
"""Over all steps."""

MEASURES = (PER_EPISODE, PER_STEP)


class Series(NamedTuple):
    """What a line of a chart stands for."""

    name: str
    method: str
    yardstick: bool
    """Whether it knows what no agent can."""
    best: bool
    """Whether it is the upper bound: it knows the true state and the optimum."""


@dataclass(frozen=True)
class Outcomes:
    """Runs by task and series.

    Parameters
    ----------
    runs
        A row per task, series and trial, with the columns of the store, ``place``, ``task``, ``series``, and ``rate``:
        what is hidden as a number, where the mechanisms of a place differ in nothing else, null otherwise.
    series
        In the order of their names, yardsticks last.
    measures
        The first is the one to look at first.
    chosen
        The settings that were chosen, a row per task and series; none if all are shown.
    tuning
        The trials that chose them.
    """

    runs: pl.DataFrame
    series: tuple[Series, ...]
    measures: tuple[Measure, ...]
    chosen: pl.DataFrame | None = None
    tuning: tuple[int, ...] = ()

    @classmethod
    def of(cls, table: pl.DataFrame) -> Outcomes:
        """Sort a table of runs, with the columns of a store, into tasks and series.

        If more than `MOST_SHOWN` settings were run, each method is shown at the best of its tuned settings: chosen for
        each task on the first half of the trials, and shown on the others.
        """
        if table.is_empty():
            raise ValueError("the table has no runs; a report needs at least one")
        runs = _each_once(table)
        measure = _first_measure(runs)
        measures = (measure, *(one for one in MEASURES if one != measure))
        shown, chosen, tuning = _shown(runs, measure)
        named, series = _with_series(_with_tasks(shown), METHOD if tuning else (*METHOD, *HYPER_PARAMETERS))
        return cls(named, series, measures, chosen, tuning)

    @property
    def tasks(self) -> list[str]:
        """The tasks in their order."""
        return self.runs["task"].unique(maintain_order=True).to_list()

    @property
    def places(self) -> list[str]:
        """The places in their order."""
        return self.runs["place"].unique(maintain_order=True).to_list()

    @property
    def methods(self) -> list[str]:
        """The names of series that are no yardsticks."""
        return [one.name for one in self.series if not one.yardstick]

    def values(self, measure: Measure) -> pl.DataFrame:
        """Return a number per run: ``place``, ``missingness``, ``task``, ``rate``, ``series``, ``trial``, ``value``."""
        keys = ("place", "missingness", "task", "rate", "series", "trial")
        return self.runs.select(*keys, value=pl.col(measure.column)).drop_nulls("value")

    def how_chosen(self) -> str:
        """Say at which settings methods are shown."""
        if not self.tuning:
            return "Every setting that was run is shown." if self._many_settings() else ""
        shown = self.runs["trial"].unique().sort().to_list()
        best = f"chosen for each task by {self.measures[0].name} on {trials_text(self.tuning)}"
        if set(shown) <= set(self.tuning):
            return f"Each method is shown at its best settings, {best}, the very trials shown: this flatters it."
        return f"Each method is shown at its best settings, {best}, and shown on {trials_text(shown)}."

    def _many_settings(self) -> bool:
        return len({one.method for one in self.series}) < len(self.series)


def side_by_side(tables: Mapping[str, pl.DataFrame]) -> tuple[Measure, pl.DataFrame]:
    """Name tasks and series over several tables of runs; ``side`` says which table a run is from."""
    parts = [_each_once(table).with_columns(side=pl.lit(side)) for side, table in tables.items() if table.height]
    if not parts:
        raise ValueError("the tables have no runs; there is nothing to compare")
    runs, _ = _with_series(_with_tasks(pl.concat(parts)), (*METHOD, *HYPER_PARAMETERS))
    return _first_measure(runs), runs


def runs_of(study: Study, runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that a study asks for, among those of a table with the columns of a store.

    The study is not run through: this takes as long as the table is large, however many runs the study has.
    """
    spec = study.spec
    problems = [(world, written_parameters(given), missingness) for world, given, missingness in study.problems]
    settings = [tuple(method.as_dict().values()) for method in study.settings]
    keys, method = ("world", "parameters", "missingness"), ("method", *SETTINGS)
    kinds = no_runs().schema
    mine = runs.filter(
        pl.col("trial").is_between(spec.first_trial, spec.first_trial + spec.trials - 1),
        steps=spec.steps, first_observed=spec.first_observed,
        curve_step=pl.lit(list(study.curve), kinds["curve_step"]),
    )  # fmt: skip
    mine = _among(mine, pl.DataFrame(problems, {name: kinds[name] for name in keys}, orient="row"))
    mine = _among(mine, pl.DataFrame(settings, {name: kinds[name] for name in method}, orient="row"))
    named = mine.select("world", "missingness", "method").unique()
    sources = [written_sources(study.sources_of(*row)) for row in named.iter_rows()]
    return _among(mine, named.with_columns(source=pl.Series(sources, dtype=pl.String)))


def _among(runs: pl.DataFrame, allowed: pl.DataFrame) -> pl.DataFrame:
    return runs.join(allowed, on=allowed.columns, how="semi", nulls_equal=True, maintain_order="left")


def of_latest_source(runs: pl.DataFrame, studies: Iterable[Study]) -> pl.DataFrame:
    """Return the runs without those of own code as it was before it was edited.

    A run of own code stays if one of the studies has it. Where studies have the same setting with several states of
    the code, the runs of the last study stay.

    Parameters
    ----------
    runs
        A table with the columns of a store.
    studies
        Studies, the last one recorded at the end.
    """
    if not (runs["source"] != "").any():
        return runs
    last = {run: i for i, study in enumerate(studies) if study.sources for run in runs_of(study, runs)["id"]}
    study = pl.col("id").replace_strict(last, default=-1, return_dtype=pl.Int64)
    latest = pl.col("source").sort_by(study).last().over(COLUMNS.setting)
    own = pl.col("source") != ""
    return runs.filter(~own | ((study >= 0) & (pl.col("source") == latest)))


def left_out(n: int) -> list[str]:
    """Say how many runs of own code `of_latest_source` left out."""
    return [f"left out: {counted(n, 'run')} of own code as it was before an edit"] if n else []


def trials_text(trials: Sequence[int]) -> str:
    """Name some trials.

    Examples
    --------
    >>> trials_text([0, 1, 2]), trials_text([4]), trials_text([1, 3])
    ('trials 0 to 2', 'trial 4', 'trials 1, 3')
    >>> trials_text(range(0, 200, 2))
    '100 trials between 0 and 198'
    """
    if len(trials) > 2 and trials[-1] - trials[0] == len(trials) - 1:
        return f"trials {trials[0]} to {trials[-1]}"
    if len(trials) > _MOST_TRIALS:
        return f"{counted(len(trials), 'trial')} between {trials[0]} and {trials[-1]}"
    return ("trial " if len(trials) == 1 else "trials ") + ", ".join(map(str, trials))


def rate_of(missingness: str) -> tuple[str, float] | None:
    """Return the kind of a mechanism and its rate, if a single rate is its only parameter.

    Examples
    --------
    >>> rate_of("mcar:0.4"), rate_of("none"), rate_of("bursts:0.1,0.3")
    (('mcar', 0.4), ('', 0.0), None)
    """
    if missingness == "none":
        return "", 0.0
    found = _RATE.match(missingness)
    return (found[1], float(found[2])) if found else None


def _first_measure(runs: pl.DataFrame) -> Measure:
    """Reward per episode, unless some run completed none."""
    return PER_STEP if (runs["episodes"] == 0).any() else PER_EPISODE


def _each_once(table: pl.DataFrame) -> pl.DataFrame:
    """The runs, each once; of two records of one run, the one with the longer curve."""
    points = pl.col("curve_step").list.len()
    once = table.sort(points, descending=True, maintain_order=True).unique(_RUN, keep="first", maintain_order=True)
    return with_open_episode(once.sort(_RUN, nulls_last=False))


def _shown(
    runs: pl.DataFrame, measure: Measure
) -> tuple[pl.DataFrame, pl.DataFrame | None, tuple[int, ...]]:  # fmt: skip
    """The runs to show, and if settings were chosen, which ones and on which trials."""
    settings = runs.select("method", *SETTINGS).unique()
    if settings.height <= MOST_SHOWN or settings.height == settings.select(METHOD).unique().height:
        return runs, None, ()
    trials = runs["trial"].unique().sort().to_list()
    tuning = trials[: max(1, len(trials) // 2)]
    choice = choose(runs, tuning, measure.column)
    kept = chosen_runs(runs, choice, trials[len(tuning) :] or tuning)
    varied = [name for name in HYPER_PARAMETERS if runs[name].n_unique() > 1]
    listed = _with_tasks(choice).select("task", *METHOD, *varied, "settings")
    return kept, listed, tuple(tuning)


def _with_tasks(runs: pl.DataFrame) -> pl.DataFrame:
    """Name places and tasks, and put them in order."""
    places = runs.select(_PLACE).unique(maintain_order=True).sort(_PLACE)
    several = {name: places[name].n_unique() > 1 for name in _PLACE}
    names = [_place_name(row, several) for row in places.iter_rows(named=True)]
    runs = runs.join(
        places.with_columns(place=pl.Series(names, dtype=pl.String)), on=_PLACE, nulls_equal=True, maintain_order="left"
    )
    tasks = runs.select("place", "missingness").unique()
    rates = {place: _rates(tasks.filter(place=place)["missingness"].to_list()) for place in names}
    order = sorted(
        tasks.iter_rows(), key=lambda task: (names.index(task[0]), rates[task[0]].get(task[1], 0.0), _natural(task[1]))
    )
    rows = [
        (place, name, i, name if len(names) == 1 else f"{place}, {name}", rates[place].get(name))
        for i, (place, name) in enumerate(order)
    ]
    schema = {"place": pl.String, "missingness": pl.String, "at": pl.Int64, "task": pl.String, "rate": pl.Float64}
    listed = pl.DataFrame(rows, schema, orient="row")
    return (
        runs.join(listed, on=["place", "missingness"], maintain_order="left").sort("at", maintain_order=True).drop("at")
    )


def _place_name(row: Mapping[str, Any], several: Mapping[str, bool]) -> str:
    parts = [f"{row['world']} ({row['parameters']})" if row["parameters"] else row["world"]]
    if several["first_observed"]:
        parts.append("first state seen" if row["first_observed"] else "first state hidden too")
    if several["steps"]:
        parts.append(counted(row["steps"], "step"))
    return ", ".join(parts)


def _natural(text: str) -> list[tuple[bool, float, str]]:
    """A key by which numbers in texts sort as numbers."""
    parts = re.split(r"(\d+\.?\d*)", text)
    return [(i % 2 == 1, float(part) if i % 2 else 0.0, part) for i, part in enumerate(parts)]


def _rates(mechanisms: Sequence[str]) -> dict[str, float]:
    """The rates of mechanisms that differ in nothing else; none if they do, or if there is a single one."""
    found = {name: rate_of(name) for name in mechanisms}
    kinds = {rate[0] for rate in found.values() if rate is not None} - {""}
    if None in found.values() or len(kinds) != 1 or len(found) < 2:
        return {}
    return {name: rate[1] for name, rate in found.items() if rate is not None}


def _with_series(runs: pl.DataFrame, settings: Iterable[str]) -> tuple[pl.DataFrame, tuple[Series, ...]]:
    """Name each series after its method and what differs between the runs of this method."""
    keys = tuple(dict.fromkeys(settings))
    kinds = runs.select(keys).unique(maintain_order=True).sort(keys, nulls_last=False)
    names = []
    for row in kinds.iter_rows(named=True):
        alike = kinds.filter(method=row["method"])
        differ = [name for name in keys if name != "method" and alike[name].n_unique() > 1]
        words = ", ".join(f"{name} = {row[name]}" for name in differ if row[name] is not None)
        names.append(f"{row['method']}, {words}" if words else row["method"])
    found = [
        Series(name, method, method in YARDSTICKS, method in NAMED and NAMED[method].knows == Knows.STATE)
        for name, method in zip(names, kinds["method"], strict=True)
    ]
    with_names = kinds.with_columns(series=pl.Series(names, dtype=pl.String))
    named = runs.join(with_names, on=keys, nulls_equal=True, maintain_order="left")
    ordered = sorted(found, key=lambda one: (one.yardstick, one.best))
    return named, tuple(dict.fromkeys(ordered))
