"""How often an interval lies wholly on one side of the mean it is for, where some trials get stuck.

Run ``python benchmarks/stuck.py``; it takes about a minute. A trial gets stuck with a small probability, far below all
others: its value is a normal one minus `DEPTH` standard deviations. The true mean includes these trials. An interval of
95 % should lie wholly above it in 2.5 % of studies. The seed is fixed, so the table is always the same.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from lacuna.study.statistics import mean_interval, outliers

DEPTH = 70.0
"""Standard deviations of a usual trial: on the lake a stuck run loses thousands, and others differ by tens."""

SHARES = (0.0, 0.003, 0.01, 0.03, 0.1)
STUDIES = ((5, 0), (10, 0), (24, 0), (160, 0), (160, 8))
"""Trials, and the draws that they are averaged in, if any. The last is how claims of the paper are judged."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=4_000, help="simulated studies per row")
    options = parser.parse_args()
    table = Table(title=f"Stuck trials lie {DEPTH:g} standard deviations below; {options.studies:,} studies per row")
    for head in ("trials", "draws", "stuck", "too high", "too low", "none in sample", "… then too high",
                 "some in sample", "… then too high", "… then named"):  # fmt: skip
        table.add_column(head, justify="right")
    rng = np.random.default_rng(0)
    for n, draws in STUDIES:
        for share in SHARES:
            table.add_row(str(n), str(draws or "–"), f"{share:.1%}", *row(rng, n, draws, share, options.studies))
    Console(width=140).print(table)


def row(rng: np.random.Generator, n: int, draws: int, share: float, studies: int) -> list[str]:
    """Simulate studies, and return shares of them."""
    stuck = rng.random((studies, n)) < share
    values = rng.normal(size=(studies, n)) - DEPTH * stuck
    averaged = values.reshape(studies, draws, -1).mean(axis=2) if draws else values
    bounds = np.array([mean_interval(sample)[1:3] for sample in averaged], dtype=np.float64)
    named = np.array([bool(outliers(sample).positions) for sample in values])
    high, low = bounds[:, 0] > -DEPTH * share, bounds[:, 1] < -DEPTH * share
    some: NDArray[np.bool_] = np.asarray(stuck.any(axis=1))
    return [
        percent(high), percent(low), percent(~some), percent(high[~some]), percent(some), percent(high[some]),
        percent(named[some]),
    ]  # fmt: skip


def percent(of: NDArray[np.bool_]) -> str:
    return f"{of.mean():.1%}" if of.size else "–"


if __name__ == "__main__":
    main()
