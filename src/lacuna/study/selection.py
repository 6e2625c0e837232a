"""Which hyper-parameters each method is shown at: chosen as published, or on trials held out from the report.

The tables have a row per run, as in the store. What is chosen, per problem and method as shown, are the
`HYPER_PARAMETERS`; whether staying is allowed is one of them, so it is no part of the problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from lacuna.study.statistics import Kind, mean_interval

PROBLEM = ("world", "parameters", "continuing", "missingness", "first_observed", "steps")
METHOD = ("method", "K", "p_shuffle", "vote", "update", "kappa", "smoothing", "parents")
HYPER_PARAMETERS = ("alpha", "gamma", "epsilon", "optimism", "stay")
SETTING = (*PROBLEM, *METHOD, *HYPER_PARAMETERS)

MEASURES = ("mean_total_reward", "mean_bad_steps", "mean_path_length")
"""Means over completed episodes."""

MEASURES_WITH_OPEN = tuple(f"{measure}_with_open" for measure in MEASURES)
"""The same, the open episode counted as one that ended at the horizon."""

_OPEN = ("open_reward", "open_bad_steps", "open_steps")
_CUT = ("cut_reward", "cut_bad_steps", "cut_steps")
_OPTIONAL = {"kappa": None, "smoothing": None, "parents": 0.0, "optimism": 0.0}
_NEEDED = (*SETTING, "trial", "episodes", *MEASURES, *_OPEN)


def with_every_setting(table: pl.DataFrame) -> pl.DataFrame:
    """Add the settings that only some methods have, at their defaults, where a table does without them."""
    return table.with_columns(
        pl.lit(usual, pl.Float64).alias(name) for name, usual in _OPTIONAL.items() if name not in table.columns
    )


def with_open_episode(table: pl.DataFrame) -> pl.DataFrame:
    """Add the three measures with the open episode counted as one that ended at the horizon.

    Episodes that were cut off (columns ``cut_…``, if the table has them) count as ended at the cut. The measures are
    defined for every run, so one that got stuck shows it.

    Examples
    --------
    >>> run = {"episodes": 3, "mean_total_reward": 90.0, "mean_bad_steps": 0.0, "mean_path_length": 10.0}
    >>> stuck = run | {"open_reward": -970.0, "open_bad_steps": 4, "open_steps": 970}
    >>> with_open_episode(pl.DataFrame([stuck])).select(MEASURES_WITH_OPEN).row(0)
    (-175.0, 1.0, 250.0)
    """
    _need(table, ("episodes", *MEASURES, *_OPEN))
    for measure in MEASURES:
        if table[measure].is_null().ne_missing(table["episodes"] == 0).any():
            raise ValueError(f"{measure} must be null where no episode was completed, and only there")
    cut = [pl.col(name) if name in table.columns else pl.lit(0) for name in ("cut_episodes", *_CUT)]
    episodes, is_open = pl.col("episodes"), pl.col("open_steps") > 0
    counted = episodes + is_open.cast(pl.Int64) + cut[0]
    # A column that is null throughout may have come without a type.
    return table.with_columns(pl.col(MEASURES).cast(pl.Float64)).with_columns(
        pl.when(counted > episodes)
        .then((pl.col(measure).fill_null(0.0) * episodes + pl.col(of_open) + of_cut) / counted)
        .otherwise(pl.col(measure))
        .alias(f"{measure}_with_open")
        for measure, of_open, of_cut in zip(MEASURES, _OPEN, cut[1:], strict=True)
    )


def choose(table: pl.DataFrame, trials: Iterable[int], by: str = MEASURES[0]) -> pl.DataFrame:
    """Choose a setting per problem and method: the one with the largest mean of `by` over the given trials.

    A setting that lacks some of the trials comes after all that lack none, and a setting with a run that completed no
    episode comes after all without such a run, whatever its mean. Settings that tie go by the smaller alpha, then
    gamma, then epsilon, then by not staying.

    Returns
    -------
    DataFrame
        A row per problem and method: the chosen hyper-parameters; ``settings``, how many there were, and
        ``settings_left_out``, how many of them lack a trial; ``selection_mean`` (null if undefined in a trial);
        ``without_episode``, how many of its runs completed none; ``missing``, the trials it lacks, which is empty
        unless every setting lacks some.
    """
    return _choose(_runs(table), _trials(trials, "trials"), by)


def chosen_runs(table: pl.DataFrame, choice: pl.DataFrame, trials: Iterable[int]) -> pl.DataFrame:
    """Give the runs of the chosen settings on the given trials, sorted, with the open episode counted as well."""
    wanted = _trials(trials, "trials")
    keys = choice.select(SETTING).unique()
    return _runs(table).filter(pl.col("trial").is_in(wanted)).join(keys, on=SETTING, how="semi", nulls_equal=True)


def best_as_published(
    table: pl.DataFrame, trials: Iterable[int] | None = None, measures: Sequence[str] = MEASURES, level: float = 0.95,
    kind: Kind = "studentised",
) -> pl.DataFrame:  # fmt: skip
    """Show every method at its best setting, found on the very trials that are reported: flattering, as published.

    Best by mean total reward over completed episodes; that setting is then used for all measures.

    Parameters
    ----------
    table
        A row per run.
    trials
        The trials to report; all in the table unless given.
    measures
        Columns to report, also those that `with_open_episode` adds.
    level, kind
        As for `mean_interval`.

    Returns
    -------
    DataFrame
        A row per problem, method and measure: the columns of `choose`, then ``measure``, ``estimate``, ``low``,
        ``high`` and ``n``. The estimate is null where a trial is missing or the measure is undefined in one.
    """
    runs = _runs(table)
    wanted = _trials(runs["trial"] if trials is None else trials, "trials")
    choice = _choose(runs, wanted, MEASURES[0])
    return _report(runs, choice, wanted, measures, level, kind)


def best_held_out(
    table: pl.DataFrame, tuning_trials: Iterable[int], fresh_trials: Iterable[int],
    measures: Sequence[str] = MEASURES_WITH_OPEN, level: float = 0.95, kind: Kind = "studentised",
) -> pl.DataFrame:  # fmt: skip
    """Show every method at the setting that was best on tuning trials, as it does on fresh ones.

    Best by mean total reward, the open episode counted as one that ended at the horizon. Only the chosen settings need
    runs on the fresh trials.

    Returns
    -------
    DataFrame
        As from `best_as_published`, but ``selection_mean`` is of the tuning trials, ``without_episode`` and
        ``missing`` are of the fresh ones, and ``tuning_missing`` says which tuning trials the choice had to do
        without. The estimate is null if either list holds a trial.

    Examples
    --------
    >>> problem = {"world": "lake", "parameters": "", "continuing": False, "missingness": "mcar:0.4", "steps": 100}
    >>> problem |= {"first_observed": True}
    >>> shown = {"method": "last-observed", "K": None, "p_shuffle": 0.0, "vote": "sampled", "update": "sequential"}
    >>> tried = {"gamma": 1.0, "epsilon": 0.0, "stay": False}
    >>> figures = {"episodes": 10, "mean_bad_steps": 1.0, "mean_path_length": 10.0}
    >>> figures |= {"open_reward": 0.0, "open_bad_steps": 0, "open_steps": 0}
    >>> runs = [
    ...     problem | shown | tried | figures | {"alpha": alpha, "trial": trial, "mean_total_reward": reward}
    ...     for alpha, rewards in ((0.1, (70.0, 74.0, 71.0, 73.0)), (1.0, (60.0, 62.0, 90.0, 95.0)))
    ...     for trial, reward in enumerate(rewards)
    ... ]
    >>> best = best_held_out(pl.DataFrame(runs), tuning_trials=[0, 1], fresh_trials=[2, 3])
    >>> best.select("alpha", "selection_mean", "estimate", "missing").row(0)
    (0.1, 72.0, 72.0, [])
    """
    tuning, fresh = _trials(tuning_trials, "tuning_trials"), _trials(fresh_trials, "fresh_trials")
    both = sorted(set(tuning) & set(fresh))
    if both:
        raise ValueError(
            f"trial {both[0]} is both for tuning and fresh; a fresh trial must have had no part in the choice"
        )
    runs = _runs(table)
    choice = _choose(runs, tuning, MEASURES_WITH_OPEN[0]).rename({"missing": "tuning_missing"})
    return _report(runs, choice.drop("without_episode"), fresh, measures, level, kind)


def _need(table: pl.DataFrame, columns: Sequence[str]) -> None:
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise ValueError(f"the table of runs has no column {', '.join(absent)}")


def _trials(trials: Iterable[int], name: str) -> list[int]:
    wanted = sorted({int(trial) for trial in trials})
    if not wanted:
        raise ValueError(f"{name} is empty; a choice or a report needs at least one trial")
    return wanted


def _runs(table: pl.DataFrame) -> pl.DataFrame:
    """Check a table of runs and sort it, so that nothing depends on the order of its rows."""
    table = with_every_setting(table)
    _need(table, _NEEDED)
    for column, kind in table.schema.items():
        if kind.is_float() and table[column].is_nan().any():
            raise ValueError(f"{column} is NaN in some run; an undefined figure must be null")
    # The same run may have been noted twice, with curves and without.
    runs = table.unique(_NEEDED, keep="first").sort(*SETTING, "trial", nulls_last=False)
    twice = runs.filter(runs.select(*SETTING, "trial").is_duplicated())
    if twice.height:
        row = twice.select(*SETTING, "trial").row(0, named=True)
        raise ValueError(f"two runs differ in their figures but not in what they are: {row}")
    return with_open_episode(runs)


def _choose(runs: pl.DataFrame, trials: list[int], by: str) -> pl.DataFrame:
    _need(runs, (by,))
    among = pl.col("trial").is_in(trials)
    per_setting = runs.group_by(SETTING, maintain_order=True).agg(
        pl.col(by).filter(among).mean().alias("_mean"),
        pl.col(by).filter(among).null_count().alias("_undefined"),
        ((pl.col("episodes") == 0) & among).sum().cast(pl.Int64).alias("without_episode"),
        pl.lit(pl.Series([trials])).first().list.set_difference(pl.col("trial").implode()).list.sort().alias("missing"),
    )
    ranked = per_setting.with_columns(_lacking=pl.col("missing").list.len()).sort(
        *PROBLEM, *METHOD, "_lacking", "without_episode", "_mean", *HYPER_PARAMETERS,
        descending=[False] * (len(PROBLEM) + len(METHOD) + 2) + [True] + [False] * len(HYPER_PARAMETERS),
        nulls_last=[False] * (len(PROBLEM) + len(METHOD) + 2) + [True] + [False] * len(HYPER_PARAMETERS),
    )  # fmt: skip
    return ranked.group_by(*PROBLEM, *METHOD, maintain_order=True).agg(
        *(pl.col(name).first() for name in HYPER_PARAMETERS),
        pl.len().cast(pl.Int64).alias("settings"),
        (pl.col("_lacking") > 0).sum().cast(pl.Int64).alias("settings_left_out"),
        pl.when(pl.col("_undefined").first() == 0).then(pl.col("_mean").first()).alias("selection_mean"),
        pl.col("without_episode", "missing").first(),
    )


def _report(
    runs: pl.DataFrame, choice: pl.DataFrame, trials: list[int], measures: Sequence[str], level: float, kind: Kind
) -> pl.DataFrame:
    _need(runs, measures)
    values = (
        runs.filter(pl.col("trial").is_in(trials))
        .group_by(SETTING, maintain_order=True)
        .agg("trial", *measures, (pl.col("episodes") == 0).sum().cast(pl.Int64).alias("without_episode"))
    )
    found = choice.drop("without_episode", "missing", strict=False).join(
        values, on=SETTING, how="left", nulls_equal=True, maintain_order="left"
    )
    rows = [row for chosen in found.iter_rows(named=True) for row in _estimates(chosen, trials, measures, level, kind)]
    kept = [name for name in found.columns if name not in {"trial", *measures}]
    schema: dict[str, Any] = {name: found.schema[name] for name in kept} | {
        "missing": pl.List(pl.Int64), "measure": pl.String, "estimate": pl.Float64, "low": pl.Float64,
        "high": pl.Float64, "n": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def _estimates(
    chosen: dict[str, Any], trials: list[int], measures: Sequence[str], level: float, kind: Kind
) -> Iterator[dict[str, Any]]:
    present = chosen["trial"] or []
    missing = sorted(set(trials) - set(present))
    kept = {name: value for name, value in chosen.items() if name not in {"trial", *measures}}
    for measure in measures:
        values = chosen[measure] or []
        usable = not missing and not chosen.get("tuning_missing") and None not in values
        unknown = {"estimate": None, "low": None, "high": None, "n": len(values)}
        figures = mean_interval(values, level, kind)._asdict() if usable else unknown
        yield kept | {"missing": missing, "measure": measure} | figures
