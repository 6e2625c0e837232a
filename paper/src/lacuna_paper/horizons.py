"""What a run of a few hundred or a few thousand decisions earns: our default with planning, against ours without it.

A *cell* is a world under one kind of missingness. Its figures are of the trials that every method of the cell has, so
all differences are paired. The differences that are judged, those of all cells at the horizons in `JUDGED`, are one
family of tests, corrected by Holm's method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lacuna import DEFAULT, UNPLANNED
from lacuna.run import standard_error
from lacuna.study import (
    LEVEL,
    Interval,
    holm,
    mean_interval,
    paired_difference,
    paired_p_value,
    paired_ratio,
    with_open_episode,
)
from lacuna_paper.comparison import REACHABLE, in_order
from lacuna_paper.evidence import REWARD

PLANNED, WITHOUT = DEFAULT.method, UNPLANNED.method
BEST = "optimum"
HORIZONS = (200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
JUDGED = (2_000, 10_000, 50_000)
"""Where planning is judged against not planning."""

Outcome = Literal["clearly ahead", "level", "clearly behind"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

_Floats: TypeAlias = NDArray[np.float64]


class Cell(NamedTuple):
    """The runs of one world under one kind of missingness: a number per trial, in the order of `trials`."""

    world: str
    missingness: str
    steps: int
    trials: tuple[int, ...]
    per_step: Mapping[str, Mapping[int, _Floats]]
    """Reward per step up to each horizon, by method."""
    per_episode: Mapping[str, _Floats]
    """Reward per episode of the whole run, the open episode counted."""
    without_episode: Mapping[str, int]
    """In how many trials a method completed no episode at all. Reward per step may not show that."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were run."""
        return tuple(self.per_step)

    @property
    def horizons(self) -> tuple[int, ...]:
        """The horizons that were noted."""
        return tuple(next(iter(self.per_step.values())))

    def regret(self, method: str, against: str, horizon: int) -> _Floats:
        """By how much a method earns less per step than another."""
        return self.per_step[against][horizon] - self.per_step[method][horizon]


class Judged(NamedTuple):
    """Ours with planning minus ours without it, in reward per step up to a horizon."""

    ahead: Interval
    p: float
    p_holm: float

    @property
    def outcome(self) -> Outcome:
        """What the corrected p value says."""
        if self.p_holm > 1 - LEVEL:
            return "level"
        return "clearly ahead" if self.ahead.estimate > 0 else "clearly behind"


Verdicts: TypeAlias = Mapping[tuple[str, str, int], Judged]
"""By world, missingness and horizon."""


def cells_of(runs: pl.DataFrame) -> list[Cell]:
    """Sort runs into cells.

    Parameters
    ----------
    runs
        A row per run, with curves. All have the same length, and every method one setting.
    """
    if runs["steps"].n_unique() > 1:
        raise ValueError("the table holds runs of different lengths; they cannot be compared")
    if runs.select("world", "missingness", "method", "trial").is_duplicated().any():
        raise ValueError("the table holds a method at two settings; a horizon is shown for one")
    places = sorted(
        runs.select("world", "missingness").unique().iter_rows(),
        key=lambda place: (place[0] != "lake", place[0], in_order(place[1])),
    )
    cells = [
        _cell(world, missingness, with_open_episode(runs.filter(world=world, missingness=missingness)))
        for world, missingness in places
    ]
    return [cell for cell in cells if cell.trials]


def _cell(world: str, missingness: str, runs: pl.DataFrame) -> Cell:
    n, steps = runs["method"].n_unique(), int(runs["steps"][0])
    whole = runs.group_by("trial").len().filter(len=n)["trial"].sort()
    runs = runs.filter(pl.col("trial").is_in(whole.implode())).sort("trial")
    at = [step for step in runs["curve_step"].explode().unique().sort() if step in HORIZONS]
    per_step: dict[str, dict[int, _Floats]] = {}
    per_episode: dict[str, _Floats] = {}
    without_episode: dict[str, int] = {}
    for method in sorted(runs["method"].unique(), key=_place):
        mine = runs.filter(method=method)
        curve = mine.select("trial", "curve_step", "curve_total").explode("curve_step", "curve_total")
        per_step[method] = {h: curve.filter(curve_step=h)["curve_total"].to_numpy() / h for h in at}
        per_episode[method] = mine[f"{REWARD}_with_open"].to_numpy()
        without_episode[method] = mine.filter(episodes=0).height
    return Cell(world, missingness, steps, tuple(whole), per_step, per_episode, without_episode)


def _place(method: str) -> tuple[int, str]:
    """Ours first, what could be reached last."""
    first, last = (PLANNED, WITHOUT), (REACHABLE, BEST)
    return (first.index(method) if method in first else 5 + last.index(method) if method in last else 4), method


def judge_cells(cells: Sequence[Cell]) -> Verdicts:
    """Judge planning against not planning in every cell, at the horizons in `JUDGED` that were noted."""
    where = [
        (cell, horizon)
        for cell in cells
        if {PLANNED, WITHOUT} <= cell.per_step.keys()
        for horizon in JUDGED
        if horizon in cell.horizons
    ]
    pairs = [(cell.per_step[PLANNED][horizon], cell.per_step[WITHOUT][horizon]) for cell, horizon in where]
    if not pairs:
        return {}
    p_values = [paired_p_value(*pair) for pair in pairs]
    return {
        (cell.world, cell.missingness, horizon): Judged(paired_difference(*pair), p, p_holm)
        for (cell, horizon), pair, p, p_holm in zip(where, pairs, p_values, holm(p_values), strict=True)
    }


def judged_apart(verdicts: Verdicts) -> Verdicts:
    """Correct for the cells of each horizon only, as if it were the only one: less strict, for comparison."""
    found: dict[tuple[str, str, int], Judged] = {}
    for horizon in dict.fromkeys(key[2] for key in verdicts):
        here = {key: judged for key, judged in verdicts.items() if key[2] == horizon}
        corrected = holm([judged.p for judged in here.values()])
        found |= {key: one._replace(p_holm=p) for (key, one), p in zip(here.items(), corrected, strict=True)}
    return found


def counts(verdicts: Verdicts) -> dict[int, Counter[str]]:
    """Count the cells that are ahead, level and behind at each horizon."""
    found: dict[int, Counter[str]] = {}
    for (_, _, horizon), judged in verdicts.items():
        found.setdefault(horizon, Counter(dict.fromkeys(OUTCOMES, 0)))[judged.outcome] += 1
    return found


def gap_closed(cell: Cell) -> Interval | None:
    """Return the share of the gap from ours without planning to `REACHABLE` that planning closes.

    It is counted in reward per episode. None if one of the three was not run, or if there is no gap.
    """
    if not {PLANNED, WITHOUT, REACHABLE} <= cell.per_episode.keys():
        return None
    planned, without, reachable = (cell.per_episode[name] for name in (PLANNED, WITHOUT, REACHABLE))
    if reachable.mean() <= without.mean():
        return None
    return paired_ratio(planned - without, reachable - without)


def as_data(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return everything that is said of short horizons as plain data.

    Each cell has, by method, the reward per step up to each horizon, the regret per step against the best possible and
    against what could be reached, and the reward per episode of the whole run; at the horizons that are judged, ours
    with planning minus ours without it; and the share of the gap that planning closes.
    """
    verdicts = judge_cells(cells)
    return {
        "planned": PLANNED, "unplanned": WITHOUT, "best": BEST, "reachable": REACHABLE, "level": LEVEL,
        "steps": max((cell.steps for cell in cells), default=0),
        "tests": len(verdicts),
        "counts": {str(horizon): dict(found) for horizon, found in counts(verdicts).items()},
        "counts_apart": {str(horizon): dict(found) for horizon, found in counts(judged_apart(verdicts)).items()},
        "cells": [_data(cell, verdicts) for cell in cells],
    }  # fmt: skip


def _data(cell: Cell, verdicts: Verdicts) -> dict[str, Any]:
    gap = gap_closed(cell)
    return {
        "world": cell.world, "missingness": cell.missingness, "trials": len(cell.trials),
        "horizons": [_at(cell, horizon, verdicts) for horizon in cell.horizons],
        "reward_per_episode": {name: _mean(values) for name, values in cell.per_episode.items()},
        "trials_without_episode": dict(cell.without_episode),
        "gap_closed": None if gap is None else gap._asdict(),
    }  # fmt: skip


def _at(cell: Cell, horizon: int, verdicts: Verdicts) -> dict[str, Any]:
    found: dict[str, Any] = {
        "horizon": horizon,
        "reward_per_step": {name: _mean(cell.per_step[name][horizon]) for name in cell.methods},
    }
    for key, against in (("regret_to_best", BEST), ("regret_to_reachable", REACHABLE)):
        found[key] = dict(_regrets(cell, against, horizon))
    judged = verdicts.get((cell.world, cell.missingness, horizon))
    if judged is not None:
        found["ahead"] = judged.ahead._asdict() | {
            "p": judged.p, "p_holm": judged.p_holm, "outcome": judged.outcome,
        }  # fmt: skip
    return found


def _regrets(cell: Cell, against: str, horizon: int) -> Iterator[tuple[str, dict[str, float | None]]]:
    for method in cell.methods if against in cell.methods else ():
        if method != against:
            yield method, _mean(cell.regret(method, against, horizon))


def _mean(values: _Floats) -> dict[str, float | None]:
    return {"mean": mean_interval(values).estimate, "standard_error": standard_error(values)}
