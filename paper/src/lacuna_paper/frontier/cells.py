"""What each method earns in each problem, ranked over all problems and compared with our default.

A *cell* is a world under one mechanism. It holds a number for each series and trial: the reward per episode, with open
and cut episodes counted, or the reward per step if the world has no episodes. A *series* is a method at one setting. γ
belongs to the world, not to the series. All differences are paired by trials. The differences between every series and
our default, in all cells, form one family of tests, corrected by Holm's method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import rankdata

from lacuna import DEFAULT, YARDSTICKS, Study
from lacuna.agent import SETTINGS
from lacuna.study import LEVEL, Interval, holm, mean_interval, paired_difference, paired_p_value, with_open_episode

DEFAULT_NAME = DEFAULT.method
KNOWING = ("qmdp", "qmdp-rewards", "optimum")
"""The yardsticks, from the one that knows least to the one that knows most."""

PER_EPISODE, PER_STEP = "reward per episode", "reward per step"

Standing = Literal["ahead", "level", "behind"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)

_PROBLEM = ("world", "parameters", "missingness", "steps")
_SERIES = ("method", *(name for name in SETTINGS if name != "gamma"))

_Floats: TypeAlias = NDArray[np.float64]


class Cell(NamedTuple):
    """The runs of one problem: a number per series and trial, in the order of `trials`."""

    group: str
    """The study that it is from."""
    world: str
    parameters: str
    missingness: str
    steps: int
    measure: str
    trials: tuple[int, ...]
    values: Mapping[str, _Floats]

    @property
    def methods(self) -> tuple[str, ...]:
        """The series that are not yardsticks."""
        return tuple(name for name in self.values if name not in YARDSTICKS)


class Against(NamedTuple):
    """A series minus our default in one cell."""

    ahead: Interval
    p: float
    p_holm: float

    @property
    def standing(self) -> Standing:
        """The verdict of the corrected p value."""
        if self.p_holm > 1 - LEVEL:
            return "level"
        return "ahead" if self.ahead.estimate > 0 else "behind"


Judged: TypeAlias = Mapping[tuple[int, str], Against]
"""By the index of the cell and the name of the series."""


class Rank(NamedTuple):
    """The rank of a series over all cells."""

    series: str
    mean: Interval
    """Its rank among the methods, 1 for the best: averaged over cells trial by trial, with an interval over trials."""
    counts: Mapping[Standing, int]
    """In how many cells it is clearly ahead of our default, level with it, or clearly behind."""


def cells_of(studies: Sequence[Study], table: pl.DataFrame) -> list[Cell]:
    """Sort the runs of some studies into cells, in the order of the studies.

    Parameters
    ----------
    studies
        What was asked for. A method may have several settings.
    table
        A row per run. Runs of other studies are ignored.
    """
    found: list[Cell] = []
    for study in studies:
        ids = pl.DataFrame({"id": [run.id for run in study.runs()]})
        runs = ids.join(table, on="id", how="inner", maintain_order="left")
        found += _cells(study.spec.name, with_series(with_open_episode(runs)))
    return found


def _cells(group: str, runs: pl.DataFrame) -> Iterator[Cell]:
    for place, mine in runs.group_by(_PROBLEM, maintain_order=True):
        n = mine["series"].n_unique()
        common = mine.group_by("trial").len().filter(len=n)["trial"].sort()
        if common.is_empty():
            continue
        kept = mine.filter(pl.col("trial").is_in(common.implode())).sort("trial", maintain_order=True)
        measure = PER_EPISODE if kept["episodes"].max() else PER_STEP
        column = "mean_total_reward_with_open" if measure == PER_EPISODE else "reward_per_step"
        values = {
            name: kept.filter(series=name)[column].to_numpy() for name in mine["series"].unique(maintain_order=True)
        }
        world, parameters, missingness, steps = place
        yield Cell(group, world, parameters, missingness, int(steps), measure, tuple(common), values)


def with_series(runs: pl.DataFrame) -> pl.DataFrame:
    """Name the series of each run: the method, and every setting that varies within it and is not at its default."""
    kinds = runs.select(_SERIES).unique(maintain_order=True)
    names = []
    for row in kinds.iter_rows(named=True):
        alike = kinds.filter(method=row["method"])
        differ = [
            name for name in _SERIES[1:] if alike[name].n_unique() > 1 and row[name] != SETTINGS[name].effective_default
        ]
        names.append(", ".join([row["method"], *(f"{name} = {row[name]}" for name in differ)]))
    named = kinds.with_columns(series=pl.Series(names, dtype=pl.String))
    return runs.join(named, on=_SERIES, nulls_equal=True, maintain_order="left")


def judge(cells: Sequence[Cell]) -> Judged:
    """Compare every other method with our default in every cell that has it."""
    where = [
        (i, name)
        for i, cell in enumerate(cells)
        if DEFAULT_NAME in cell.values
        for name in cell.methods
        if name != DEFAULT_NAME
    ]
    pairs = [(cells[i].values[name], cells[i].values[DEFAULT_NAME]) for i, name in where]
    p_values = [paired_p_value(*pair) for pair in pairs]
    corrected = holm(p_values) if p_values else []
    return {
        place: Against(paired_difference(*pair), p, p_holm)
        for place, pair, p, p_holm in zip(where, pairs, p_values, corrected, strict=True)
    }


def rank(cells: Sequence[Cell], judged: Judged) -> list[Rank]:
    """Rank the methods that are in all cells, on the trials that are in all cells; the best first."""
    if not cells:
        return []
    names = [name for name in cells[0].methods if all(name in cell.values for cell in cells)]
    trials = sorted(set.intersection(*(set(cell.trials) for cell in cells)))
    if not names or not trials:
        return []
    by_trial = np.zeros((len(trials), len(names)))
    for cell in cells:
        rows = [cell.trials.index(trial) for trial in trials]
        earned = np.stack([cell.values[name][rows] for name in names], axis=1)
        by_trial += rankdata(-earned, axis=1)
    found = []
    for name, ranks in zip(names, by_trial.T / len(cells), strict=True):
        mine = [against.standing for (_, series), against in judged.items() if series == name]
        found.append(Rank(name, mean_interval(ranks), {word: mine.count(word) for word in STANDINGS}))
    return sorted(found, key=lambda one: one.mean.estimate)


def as_data(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return means, differences, verdicts and ranks of some cells as plain data.

    Intervals are lists ``[estimate, low, high]``, rounded to six digits.
    """
    judged = judge(cells)
    return {
        "tests": len(judged),
        "ranking": [
            {"series": one.series, "rank": _rounded(one.mean), **one.counts} for one in rank(cells, judged)
        ],
        "cells": [_data(i, cell, judged) for i, cell in enumerate(cells)],
    }  # fmt: skip


def _data(i: int, cell: Cell, judged: Judged) -> dict[str, Any]:
    return {
        "group": cell.group, "world": cell.world, "parameters": cell.parameters, "missingness": cell.missingness,
        "steps": cell.steps, "measure": cell.measure, "n": len(cell.trials),
        "means": {name: _rounded(mean_interval(values)) for name, values in cell.values.items()},
        "below": {
            known: {name: _rounded(paired_difference(cell.values[known], cell.values[name])) for name in cell.methods}
            for known in KNOWING
            if known in cell.values
        },
        "against_default": {
            name: {"ahead": _rounded(one.ahead), "p_holm": float(f"{one.p_holm:.3g}"), "standing": one.standing}
            for (place, name), one in judged.items()
            if place == i
        },
    }  # fmt: skip


def _rounded(found: Interval) -> list[float | None]:
    return [None if value is None else float(f"{value:.6g}") for value in found[:3]]
