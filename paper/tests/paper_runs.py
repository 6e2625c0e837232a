"""A small table of real runs that holds something for every figure of the paper."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl

from lacuna.study.runner import execute
from lacuna.study.selection import Draw
from lacuna.study.spec import Study
from lacuna.study.store import SCHEMA
from lacuna_paper.evidence import Evidence, Reading, Selection

STEPS = 3000
TUNING, FRESH = (0, 1, 2), (1000, 1001, 1002)
DRAWS = tuple(Draw(TUNING, (trial,)) for trial in FRESH)
"""Three draws that report a trial each. They share their tuning trials, to save runs."""

_ALL = [{"name": name} for name in ("random-action", "last-fully-observed", "last-observed", "missing-as-state")] + [
    {"name": name, "K": [1, 5, 10], "p_shuffle": [0.0, 0.1]} for name in ("mi-synthetic", "mi-conservative")
]
_MCAR = ["mcar:0.0", "mcar:0.2", "mcar:0.4", "mcar:0.8"]
_OTHERS = [
    "mcolor-xy:0.1,0.2,0.3", "mcolor:0.1,0.2,0.3", "mcolor-xy:0.2,0.4,0.6", "mcolor:0.2,0.4,0.6",
    "mfog:0.5,0.0", "mfog:0.25,0.1",
]  # fmt: skip
_STAY = [{"name": "mi-synthetic", "K": 10}]
_OURS: list[dict[str, Any]] = [{"name": name} for name in ("qmdp", "qmdp-rewards", "optimum")]
_OURS += [{"name": name, "optimism": 0.2} for name in ("mi-true-model", "fully-observed")]
_OURS += [{"name": "mi-available", "smoothing": 0.001, "parents": 0.3, "optimism": 0.2}]
_GREEDY_OR_NOT = {"alpha": 0.5, "epsilon": [0.0, 0.05]}


@cache
def table() -> pl.DataFrame:
    """Runs of the episodic reading on tuning and fresh trials, and a few of the continuing one."""
    rows = [
        row
        for first in (TUNING, FRESH)
        for row in (
            *_runs(_MCAR + _OTHERS, _ALL, {}, {"alpha": 0.5, "epsilon": 0.05}, first),
            *_runs(_MCAR[1:], _STAY, {}, {"alpha": 0.5, "epsilon": 0.0}, first),
            *_runs(_MCAR[1:], _STAY, {"stay": True}, _GREEDY_OR_NOT, first),
        )
    ]
    for first in (TUNING, FRESH):
        rows += _runs(_MCAR, _OURS, {}, {}, first)
    rows += _runs(_MCAR, _ALL, {"continuing": True}, {"alpha": 0.5, "gamma": 0.5, "epsilon": 0.05}, TUNING)
    return pl.DataFrame(rows, schema=SCHEMA).unique("id", maintain_order=True)


def evidence(runs: pl.DataFrame, reading: Reading = "episodic", selection: Selection = "as-published") -> Evidence:
    """What charts are drawn from."""
    return Evidence.of(runs, reading, selection, DRAWS)


def _runs(
    missingness: list[str], methods: list[dict[str, Any]], world: dict[str, Any], grid: dict[str, Any],
    trials: tuple[int, ...],
) -> list[dict[str, Any]]:  # fmt: skip
    study = Study.from_data(
        {
            "name": "small", "steps": STEPS, "trials": len(trials), "first_trial": trials[0], "curve_points": 60,
            "missingness": missingness, "worlds": [{"name": "lake"} | world], "methods": methods, "grid": grid,
        }
    )  # fmt: skip
    return [execute(run) for run in study.runs()]
