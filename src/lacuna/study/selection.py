"""The choice of a setting for each method: the best on some trials, among all that were run.

The tables have a row per run, as in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from lacuna.agent.settings import SETTINGS

METHOD = ("method", *(name for name, setting in SETTINGS.items() if not setting.tuned))
"""Settings that make a method as it is shown."""

HYPER_PARAMETERS = tuple(name for name, setting in SETTINGS.items() if setting.tuned)
"""Settings that are chosen."""

MEASURES = ("mean_total_reward", "mean_bad_steps", "mean_path_length")
"""Means over completed episodes."""

MEASURES_WITH_OPEN = tuple(f"{measure}_with_open" for measure in MEASURES)
"""The same, the open episode counted as one that ended at the horizon."""

_OPEN = ("open_reward", "open_bad_steps", "open_steps")
_CUT = ("cut_reward", "cut_bad_steps", "cut_steps")
FIGURES = ("episodes", *MEASURES, *_OPEN, "cut_episodes", *_CUT)
"""The columns that the measures come from."""


class Columns(NamedTuple):
    """The columns that define a problem, those that define a method, and those that are tuned."""

    problem: tuple[str, ...] = ("world", "parameters", "missingness", "first_observed", "steps")
    method: tuple[str, ...] = METHOD
    tuned: tuple[str, ...] = HYPER_PARAMETERS

    @property
    def setting(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.problem, *self.method, *self.tuned)


COLUMNS = Columns()
"""The columns of a study's runs."""


class Draw(NamedTuple):
    """Trials on which settings are chosen, and fresh trials on which what was chosen is reported."""

    tuning: tuple[int, ...]
    fresh: tuple[int, ...]


def with_open_episode(table: pl.DataFrame) -> pl.DataFrame:
    """Add the three measures with the open episode counted as one that ended at the horizon.

    Episodes that were cut off count as ended at the cut. The measures are defined for every run, so one that got stuck
    shows it.

    Examples
    --------
    >>> run = {"episodes": 3, "mean_total_reward": 90.0, "mean_bad_steps": 0.0, "mean_path_length": 10.0}
    >>> stuck = run | {"open_reward": -970.0, "open_bad_steps": 4, "open_steps": 970}
    >>> stuck |= {"cut_episodes": 0, "cut_reward": 0.0, "cut_bad_steps": 0, "cut_steps": 0}
    >>> with_open_episode(pl.DataFrame([stuck])).select(MEASURES_WITH_OPEN).row(0)
    (-175.0, 1.0, 250.0)
    """
    _need(table, FIGURES)
    for measure in MEASURES:
        none = table["episodes"] == 0
        # An environment flags no bad steps: there they are null, also those of the open episode.
        unknown = table["open_bad_steps"].is_null() if measure == "mean_bad_steps" else none
        if table[measure].is_null().ne_missing(none | unknown).any():
            raise ValueError(f"{measure} must be null where no episode was completed, and only there")
    episodes = pl.col("episodes")
    counted = episodes + (pl.col("open_steps") > 0).cast(pl.Int64) + pl.col("cut_episodes")
    # A column that is null throughout may have come without a type.
    return table.with_columns(pl.col(MEASURES).cast(pl.Float64)).with_columns(
        pl.when(counted > episodes)
        .then((pl.col(measure).fill_null(0.0) * episodes + pl.col(of_open) + pl.col(of_cut)) / counted)
        .otherwise(pl.col(measure))
        .alias(f"{measure}_with_open")
        for measure, of_open, of_cut in zip(MEASURES, _OPEN, _CUT, strict=True)
    )


def choose(
    table: pl.DataFrame, trials: Iterable[int], by: str = MEASURES[0], columns: Columns = COLUMNS
) -> pl.DataFrame:
    """Choose a setting per problem and method: the one with the largest mean of `by` over the given trials.

    Settings that lack some of the trials rank below all that lack none. Settings with a run that completed no episode
    rank below all without such a run, whatever the mean. Ties are broken by the smallest value of the first column of
    `columns.tuned`, then of the next.

    Parameters
    ----------
    table
        A row per run.
    trials
        The trials that decide.
    by
        A measure, with the open episode counted or not.
    columns
        The columns that define a problem and a method, and those that are tuned.

    Returns
    -------
    DataFrame
        A row per problem and method: the chosen settings; ``settings``, how many there were, and
        ``settings_left_out``, how many of them lack a trial; ``selection_mean`` (null if undefined in a trial);
        ``without_episode``, how many of its runs completed none; ``missing``, the trials it lacks, which is empty
        unless every setting lacks some.

    Examples
    --------
    >>> from lacuna import Local, Store, Study, run_study
    >>> study = Study.from_data({
    ...     "name": "rates", "steps": 50, "trials": 2, "missingness": ["mcar:0.2"], "worlds": [{"name": "corridor"}],
    ...     "methods": [{"name": "last-observed", "alpha": [0.1, 0.5]}],
    ... })
    >>> run_study(study, store := Store("results"), Local(1)).done
    4
    >>> choose(store.table(), trials=range(2)).select("method", "settings").rows()
    [('last-observed', 2)]
    """
    wanted = _trials(trials)
    runs = _runs(table, columns)
    _need(runs, (by,))
    among = pl.col("trial").is_in(wanted)
    per_setting = runs.group_by(columns.setting, maintain_order=True).agg(
        pl.col(by).filter(among).mean().alias("_mean"),
        pl.col(by).filter(among).null_count().alias("_undefined"),
        ((pl.col("episodes") == 0) & among).sum().cast(pl.Int64).alias("without_episode"),
        pl.lit(pl.Series([wanted])).first().list.set_difference(pl.col("trial").implode()).list.sort().alias("missing"),
    )
    order = (*columns.problem, *columns.method, "_lacking", "without_episode", "_mean", *columns.tuned)
    largest_first = [name == "_mean" for name in order]
    ranked = per_setting.with_columns(_lacking=pl.col("missing").list.len()).sort(
        order, descending=largest_first, nulls_last=largest_first
    )
    return ranked.group_by(*columns.problem, *columns.method, maintain_order=True).agg(
        *(pl.col(name).first() for name in columns.tuned),
        pl.len().cast(pl.Int64).alias("settings"),
        (pl.col("_lacking") > 0).sum().cast(pl.Int64).alias("settings_left_out"),
        pl.when(pl.col("_undefined").first() == 0).then(pl.col("_mean").first()).alias("selection_mean"),
        pl.col("without_episode", "missing").first(),
    )


def chosen_runs(
    table: pl.DataFrame, choice: pl.DataFrame, trials: Iterable[int], columns: Columns = COLUMNS
) -> pl.DataFrame:
    """Return the runs of the chosen settings on the given trials, sorted, with the open episode counted as well.

    Examples
    --------
    >>> from lacuna import Local, Store, Study, run_study
    >>> study = Study.from_data({
    ...     "name": "rates", "steps": 50, "trials": 2, "missingness": ["mcar:0.2"], "worlds": [{"name": "corridor"}],
    ...     "methods": [{"name": "last-observed", "alpha": [0.1, 0.5]}],
    ... })
    >>> run_study(study, store := Store("results"), Local(1)).done
    4
    >>> runs = store.table()
    >>> chosen_runs(runs, choose(runs, trials=[0]), trials=[1])["trial"].to_list()
    [1]
    """
    wanted = _trials(trials)
    keys = choice.select(columns.setting).unique()
    runs = _runs(table, columns).filter(pl.col("trial").is_in(wanted))
    return runs.join(keys, on=columns.setting, how="semi", nulls_equal=True)


def _need(table: pl.DataFrame, columns: Sequence[str]) -> None:
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise ValueError(f"the table of runs has no column {', '.join(absent)}")


def _trials(trials: Iterable[int]) -> list[int]:
    wanted = sorted({int(trial) for trial in trials})
    if not wanted:
        raise ValueError("trials is empty; a choice or a report needs at least one trial")
    return wanted


def _runs(table: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """Check a table of runs and sort it, so that nothing depends on the order of its rows."""
    run = (*columns.setting, "trial")
    _need(table, (*run, *FIGURES))
    for column, kind in table.schema.items():
        if kind.is_float() and table[column].is_nan().any():
            raise ValueError(f"{column} is NaN in some run; an undefined figure must be null")
    # The same run may have been noted twice, with curves and without.
    runs = table.unique((*run, *FIGURES), keep="first").sort(run, nulls_last=False)
    twice = runs.filter(runs.select(run).is_duplicated())
    if twice.height:
        row = twice.select(run).row(0, named=True)
        raise ValueError(f"two runs differ in their figures but not in what they are: {row}")
    return with_open_episode(runs)
