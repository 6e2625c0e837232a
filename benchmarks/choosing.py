"""Our default against the paper's methods, as Markdown tables for docs/choosing.md.

Run ``lacuna paper --full --honest --out out/paper`` first, then the two studies of ``studies/beyond`` into
``out/beyond``, then ``python benchmarks/choosing.py out/paper/results.parquet out/beyond``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from lacuna.study.evidence import FRESH_TRIALS, TUNING_TRIALS
from lacuna.study.selection import MEASURES_WITH_OPEN, best_held_out, chosen_runs, with_open_episode
from lacuna.study.statistics import mean_interval, paired_difference
from lacuna.study.store import Store

REWARD = MEASURES_WITH_OPEN[0]


def values(runs: pl.DataFrame) -> list[float]:
    """One figure per trial, in the order of trials."""
    return runs.sort("trial")[REWARD].to_list()


def show(name: str, best: str, theirs: list[float], ours: list[float]) -> str:
    """A line of a table: the best of theirs, ours, and the paired difference with its interval."""
    gap, own, other = paired_difference(ours, theirs), mean_interval(ours), mean_interval(theirs)
    low, high = (f"{bound:.2f}" for bound in (gap.low or 0.0, gap.high or 0.0))
    line = f"| `{name}` | {best} {other.estimate:.2f} | {own.estimate:.2f} | {gap.estimate:.2f} [{low}, {high}] |"
    return line.replace("-", "−") if "−" in line else line


def on_lake(paper: pl.DataFrame, ours: pl.DataFrame, trials: list[int]) -> list[str]:
    """The paper's methods, each tuned for each kind of missingness; the best of them on the fresh trials."""
    best = best_held_out(paper, TUNING_TRIALS, trials, measures=[REWARD], kind="t")
    lines = []
    for name in best["missingness"].unique(maintain_order=True):
        top = best.filter(missingness=name).sort("estimate", descending=True, nulls_last=True).head(1)
        label = f"`{top['method'][0]}`" + (f", K = {top['K'][0]}," if top["K"][0] else "")
        theirs = values(chosen_runs(paper, top, trials))
        lines.append(show(name, label, theirs, values(ours.filter(world="lake", missingness=name, optimism=0.05))))
    return lines


def elsewhere(runs: pl.DataFrame) -> list[str]:
    """Every method at one fixed setting; the best of the paper's."""
    lines = []
    for (world, name), group in runs.group_by("world", "missingness", maintain_order=True):
        mine = (pl.col("method") == "mi-available") & (pl.col("optimism") == 0.05)
        theirs = group.filter(pl.col("method") != "mi-available")
        means = theirs.group_by("method").agg(pl.col(REWARD).mean()).sort(REWARD, descending=True)
        top = means["method"][0]
        lines.append(show(f"{world} {name}", f"`{top}`", values(theirs.filter(method=top)), values(group.filter(mine))))
    return lines


def main(results: Path, store: Path) -> None:
    paper = pl.read_parquet(results).filter(~pl.col("continuing"))
    runs = with_open_episode(Store.existing(store).table())
    head = "| missingness | best of the paper's methods | ours | difference |\n|---|---|---|---|"
    print(head, *on_lake(paper, runs, list(FRESH_TRIALS)), sep="\n")
    print()
    print(head, *elsewhere(runs.filter(pl.col("world") != "lake")), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
