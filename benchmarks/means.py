"""Means over trials with standard errors, a line per world, missingness and setting, from a folder of results.

``python benchmarks/means.py out/ablation``; a second word names another column, such as ``reward_per_step``. Each
line ends with the paired difference to the first setting of its problem.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lacuna.study.selection import MEASURES_WITH_OPEN, METHOD, with_open_episode
from lacuna.study.store import Store

PROBLEM = ("world", "parameters", "steps", "missingness")


def main(folder: Path, column: str = MEASURES_WITH_OPEN[0]) -> None:
    runs = with_open_episode(Store.existing(folder).table())
    settings = [name for name in (*METHOD, "optimism") if runs[name].n_unique() > 1]
    for problem, all_of_it in runs.sort("trial").group_by(*PROBLEM, maintain_order=True):
        first = None
        for keys, group in all_of_it.sort(*settings, "trial").group_by(*settings, maintain_order=True):
            values = group[column].to_numpy()
            first = values if first is None else first
            told = " ".join(str(key) for key in (*problem, *keys) if key is not None)
            print(f"{told}: {mean(values)}, {len(values)} trials; minus the first {mean(values - first)}")


def mean(values: NDArray[np.float64]) -> str:
    """Mean, and its standard error in brackets."""
    return f"{values.mean():.3f} ({values.std(ddof=1) / len(values) ** 0.5:.3f})"


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
