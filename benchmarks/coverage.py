"""How often intervals hold the truth, and how far choosing on the reported trials flatters.

Run ``python benchmarks/coverage.py``. Figures of real runs are skewed, so coverage is also measured on studies drawn
from a pool of them, whose own mean is then the truth. Takes a few minutes; ``--studies 500`` is a quick look.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import stats

from lacuna.agent.settings import Settings
from lacuna.run.problems import Problem
from lacuna.run.repetitions import run_trials
from lacuna.study.selection import (
    FIGURES,
    HYPER_PARAMETERS,
    MEASURES,
    MEASURES_WITH_OPEN,
    Columns,
    choose,
    chosen_runs,
    with_open_episode,
)
from lacuna.study.statistics import Interval, interquartile_mean, mean_interval, paired_difference

STEPS = 20_000
TRIALS = (5, 30)
MISSINGNESS = "mcar:0.4"
# Whether staying is allowed is chosen too, as the paper does.
COLUMNS = Columns(
    problem=("world", "missingness", "first_observed", "steps"), tuned=(*HYPER_PARAMETERS, "parameters")
)  # fmt: skip
SHOWN = {
    "last observed": Settings("last-observed"),
    "MI K=1": Settings("mi-synthetic", K=1),
    "MI K=10": Settings("mi-synthetic", K=10),
}

Floats = NDArray[np.float64]
Estimate = Callable[[Floats], Interval]

console = Console(width=140)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2_000, help="simulated studies per figure")
    parser.add_argument("--runs", type=int, default=200, help="real runs per method in the pool")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    on_normal_values(options.studies, rng)
    pool = {name: real_runs(settings, range(options.runs)) for name, settings in SHOWN.items()}
    on_real_runs(pool, options.studies, rng)
    flattery_on_real_runs(options.studies // 4, rng)


def on_normal_values(studies: int, rng: np.random.Generator) -> None:
    table = new_table("Normal values: share of studies whose 95 % interval holds the truth", "skew", "truth")
    for n in TRIALS:
        values = rng.normal(size=(studies, n))
        add_row(table, ("mean", "0", "0"), values, 0.0, mean_interval)
        add_row(table, ("interquartile mean", "0", "0"), values, 0.0, interquartile_mean)
    console.print(table)


def on_real_runs(pool: dict[str, pl.DataFrame], studies: int, rng: np.random.Generator) -> None:
    table = new_table(f"Studies drawn from real runs of {STEPS:,} steps, lake, {MISSINGNESS}", "skew", "truth")
    for n in TRIALS:
        for name, measure in product(pool, (MEASURES_WITH_OPEN[0], MEASURES_WITH_OPEN[1])):
            x = pool[name][measure].to_numpy()
            drawn = rng.choice(x, size=(studies, n))
            label = (f"{name}: {' '.join(measure.split('_')[1:3])}", f"{stats.skew(x):.1f}", f"{x.mean():.2f}")
            add_row(table, label, drawn, float(x.mean()), mean_interval)
        for one, other in (("MI K=1", "last observed"), ("MI K=10", "last observed"), ("MI K=10", "MI K=1")):
            a, b = (pool[name][MEASURES_WITH_OPEN[0]].to_numpy() for name in (one, other))
            drawn = rng.integers(0, a.size, size=(studies, n))
            label = (f"{one} − {other}: total", f"{stats.skew(a - b):.1f}", f"{(a - b).mean():.2f}")
            pairs = np.stack([a[drawn], b[drawn]], axis=2)
            add_row(table, label, pairs, float((a - b).mean()), lambda x: paired_difference(x[:, 0], x[:, 1]))
    console.print(table)


def flattery_on_real_runs(studies: int, rng: np.random.Generator, n: int = 5, trials: int = 60) -> None:
    """Choose the best of 24 settings on 5 trials; compare what is then reported with its mean over all other trials."""
    table = Table(
        title=f"Best of 24 settings on {n} real trials: what is reported, minus the mean over {trials - n} others"
    )
    for column in ("method", "way", "bias", "standard error", "sd of a trial"):
        table.add_column(column)
    for name, shown in SHOWN.items():
        runs = pl.concat([
            real_runs(replace(shown, alpha=alpha, gamma=gamma, epsilon=epsilon), range(trials), stay=stay)
            for alpha, gamma, epsilon, stay in product((0.1, 1.0), (0.0, 0.5, 1.0), (0.0, 0.05), (False, True))
        ])  # fmt: skip
        errors: dict[str, list[float]] = {"as published": [], "held out": []}
        spread = []
        for _ in range(studies):
            drawn = rng.permutation(trials)
            for way, by in (("as published", MEASURES[0]), ("held out", MEASURES_WITH_OPEN[0])):
                choice = choose(runs, drawn[:n].tolist(), by, COLUMNS)
                values = chosen_runs(runs, choice, range(trials), COLUMNS)[by].to_numpy()
                reported = drawn[:n] if way == "as published" else drawn[n : 2 * n]
                errors[way].append(float(values[reported].mean() - values[drawn[n:]].mean()))
                spread.append(values.std(ddof=1))
        for way, found in errors.items():
            error = np.std(found) / np.sqrt(len(found))
            table.add_row(name, way, f"{np.mean(found):+.2f}", f"{error:.2f}", f"{np.mean(spread):.1f}")
    console.print(table)


def real_runs(settings: Settings, seeds: Iterable[int], *, stay: bool = False) -> pl.DataFrame:
    problem = Problem.named("lake", MISSINGNESS, {"stay": stay})
    rows = run_trials(problem, settings, steps=STEPS, seeds=list(seeds), workers=2)
    fixed = {"world": "lake", "parameters": "stay=True" if stay else "", "missingness": MISSINGNESS}
    fixed |= {"first_observed": True} | settings.as_dict()
    kept = [fixed | {"trial": row["seed"]} | {name: row[name] for name in ("steps", *FIGURES)} for row in rows]
    return with_open_episode(pl.DataFrame(kept, infer_schema_length=None))


def new_table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for column in ("what", *columns, "n", "holds", "too low", "too high", "median width", "no bounds"):
        table.add_column(column)
    return table


def add_row(table: Table, label: Sequence[str], values: Floats, truth: float, estimate: Estimate) -> None:
    found = [estimate(x) for x in values]
    bounded: list[Any] = [i for i in found if i.low is not None]
    low = sum(i.high < truth for i in bounded) / len(bounded)
    high = sum(i.low > truth for i in bounded) / len(bounded)
    width = np.median([i.high - i.low for i in bounded])
    table.add_row(
        *label, str(values.shape[1]), f"{1 - low - high:.1%}", f"{low:.1%}", f"{high:.1%}", f"{width:.3g}",
        f"{1 - len(bounded) / len(found):.1%}",
    )  # fmt: skip


if __name__ == "__main__":
    main()
