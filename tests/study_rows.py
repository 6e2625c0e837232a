"""Tables of runs as a store has them, made up, so that what a report must say is known beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from lacuna.agent.settings import SETTINGS
from lacuna.study.store import SCHEMA

STEPS = 1000
"""Of each run."""


def row(method: str, value: float, trial: int, **more: Any) -> dict[str, Any]:
    """A run of ten episodes, each with a reward of `value`."""
    at = [250, 500, STEPS]
    figures: dict[str, Any] = {
        "id": hashlib.sha256(repr((method, trial, sorted(more.items()))).encode()).hexdigest()[:24], "results": 5,
        "world": "a world", "parameters": "", "missingness": "mcar:0.2", "label": "MCAR", "method": method,
        "first_observed": True, "steps": STEPS, "trial": trial, "mean_total_reward": value, "mean_bad_steps": 0.0,
        "mean_path_length": 100.0, "episodes": 10, "reward_per_step": value / 100, "reward_per_step_early": value / 100,
        "reward_per_step_late": value / 100, "idle_share": 0.0, "hidden_shares": [0.5, 0.5], "open_steps": 0,
        "open_reward": 0.0, "open_bad_steps": 0, "cut_episodes": 0, "cut_steps": 0, "cut_reward": 0.0, "cut_bad_steps":
        0, "curve_step": at, "curve_episodes": [2.0, 5.0, 10.0], "curve_reward": [2.0 * value, 5.0 * value, 10.0 *
        value], "curve_bad": [0.0] * 3, "curve_path": at, "curve_idle": [0.0] * 3, "curve_total": [2.5 * value, 5.0 *
        value, 10.0 * value], "seconds": 0.1, "host": "here", "lacuna": "0",
    }  # fmt: skip
    # What is nobody's of ours has no settings.
    return dict.fromkeys(SETTINGS) | figures | more


def table(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Runs in the columns of a store."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA}
    for one in rows:
        for name in SCHEMA:
            columns[name].append(one.get(name))
    return pl.DataFrame(columns, schema=SCHEMA)


def study(
    levels: Mapping[str, float], tasks: Sequence[Mapping[str, Any]] = ({},), trials: int = 6, spread: float = 1.0
) -> pl.DataFrame:
    """Methods with their mean rewards, each with some spread, in some tasks."""
    rng = np.random.default_rng(11)
    return table(
        row(method, float(level + spread * rng.normal()), trial, **task)
        for task in tasks
        for method, level in levels.items()
        for trial in range(trials)
    )
