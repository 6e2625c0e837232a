"""Methods tuned for each problem without bias: settings are chosen on some trials and reported on others.

Each *draw* chooses a setting for every method and problem on its tuning trials, and reports it on its fresh trials. A
draw gives one number, the mean of its fresh trials. Draws are independent, so intervals over draws include the
variation of the choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from lacuna import Study
from lacuna.agent import SETTINGS
from lacuna.study import COLUMNS, HYPER_PARAMETERS, METHOD, Draw, choose, with_open_episode
from lacuna_paper.frontier.cells import KNOWING, PER_EPISODE, Cell, with_series

FRESH_FROM = 1000
"""Number of the first fresh trial, counted from the first tuning trial."""

_BY = "mean_total_reward_with_open"


def draws_of(tuning: Study, draws: int, fresh: int) -> list[Draw]:
    """Divide the trials of a tuning study among draws, each with `fresh` fresh trials.

    Examples
    --------
    >>> from lacuna import Study
    >>> study = Study.from_data({"name": "t", "steps": 10, "trials": 4, "first_trial": 6000, "missingness": ["none"],
    ...     "worlds": [{"name": "lake"}], "methods": [{"name": "last-observed"}]}, "t")
    >>> draws_of(study, 2, 3)
    [Draw(tuning=(6000, 6001), fresh=(7000, 7001, 7002)), Draw(tuning=(6002, 6003), fresh=(7003, 7004, 7005))]
    """
    first, each = tuning.spec.first_trial, tuning.spec.trials // draws
    if not each:
        raise ValueError(f"{tuning.spec.trials} tuning trials are too few for {draws} draws")
    if tuning.spec.trials > FRESH_FROM:
        raise ValueError(
            f"there are {tuning.spec.trials} tuning trials; at most {FRESH_FROM}, or fresh ones are among them"
        )
    return [
        Draw(
            tuple(range(first + i * each, first + (i + 1) * each)),
            tuple(range(first + FRESH_FROM + i * fresh, first + FRESH_FROM + (i + 1) * fresh)),
        )
        for i in range(draws)
    ]


def choices(tuning: Study, table: pl.DataFrame, draws: Sequence[Draw]) -> pl.DataFrame:
    """Choose a setting for every method and kind of missingness in each draw; ``draw`` counts from 0."""
    ids = pl.DataFrame({"id": [run.id for run in tuning.runs()]})
    runs = table.join(ids, on="id", how="semi", maintain_order="left")
    parts = []
    for i, draw in enumerate(draws):
        mine = with_open_episode(runs.filter(pl.col("trial").is_in(draw.tuning)))
        parts.append(choose(mine, draw.tuning, _BY).with_columns(draw=pl.lit(i, pl.Int64)))
    return pl.concat(parts)


def confirming_studies(tuning: Study, chosen: pl.DataFrame, draws: Sequence[Draw]) -> list[Study]:
    """Make studies that run what each draw chose on its fresh trials, and the yardsticks beside it."""
    groups = chosen.partition_by("draw", "missingness", maintain_order=True)
    return [_confirming(tuning, group, draws[group["draw"][0]]) for group in groups]


def _confirming(tuning: Study, chosen: pl.DataFrame, draw: Draw) -> Study:
    missingness = chosen["missingness"][0]
    name = f"frontier {missingness.replace(':', ' ')} from {draw.fresh[0]}"
    methods = [_as_method(row) for row in chosen.iter_rows(named=True)] + [{"name": known} for known in KNOWING]
    data: dict[str, Any] = {
        "name": name, "steps": tuning.spec.steps, "missingness": [missingness], "methods": methods,
        "worlds": tuning.spec.model_dump(exclude_defaults=True)["worlds"],
        "first_trial": draw.fresh[0], "trials": len(draw.fresh), "first_observed": tuning.spec.first_observed,
    }  # fmt: skip
    return Study.from_data(data, name)


def _as_method(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a choice as an entry of `methods` in a study file."""
    given = {name: row[name] for name in SETTINGS if row[name] is not None and row[name] != SETTINGS[name].default}
    return {"name": row["method"]} | given


def tuned_cells(
    tuning: Study, chosen: pl.DataFrame, confirming: Sequence[Study], table: pl.DataFrame, draws: Sequence[Draw]
) -> list[Cell]:
    """Return a cell for each kind of missingness, with a number per draw; `confirming` are the studies of fresh trials.

    A series is a method with those of its settings that were not tuned.
    """
    ids = pl.DataFrame({"id": [run.id for study in confirming for run in study.runs()]}).unique(maintain_order=True)
    runs = with_open_episode(ids.join(table, on="id", how="inner", maintain_order="left"))
    number = {trial: i for i, draw in enumerate(draws) for trial in draw.fresh}
    runs = runs.with_columns(draw=pl.col("trial").replace_strict(number, return_dtype=pl.Int64))
    named = with_series(_untuned(runs))
    return list(_cells(tuning, named, chosen["missingness"].unique(maintain_order=True), len(draws)))


def _untuned(runs: pl.DataFrame) -> pl.DataFrame:
    """Reset tuned settings, so that one method is one series, whatever was chosen."""
    return runs.with_columns(pl.lit(SETTINGS[name].default).alias(name) for name in HYPER_PARAMETERS)


def _cells(tuning: Study, runs: pl.DataFrame, missingness: pl.Series, n: int) -> Iterator[Cell]:
    means = runs.group_by("missingness", "series", "draw", maintain_order=True).agg(pl.col(_BY).mean())
    for name in missingness:
        mine = means.filter(missingness=name).sort("draw", maintain_order=True)
        values = {
            series: mine.filter(series=series)[_BY].to_numpy() for series in mine["series"].unique(maintain_order=True)
        }
        whole = {series: found for series, found in values.items() if found.size == n}
        if whole:
            world = tuning.problems[0][0]
            yield Cell("tuned", world, "", name, tuning.spec.steps, PER_EPISODE, tuple(range(n)), whole)


def listed(chosen: pl.DataFrame) -> dict[str, Any]:
    """Return what was chosen as plain data: a table, a row for each draw, method and kind of missingness."""
    columns = ["draw", "missingness", *METHOD, *(name for name in COLUMNS.tuned), "settings"]
    kept = [name for name in columns if chosen[name].null_count() < chosen.height]
    table = chosen.select(kept)
    return {"columns": table.columns, "rows": [list(row) for row in table.iter_rows()]}
