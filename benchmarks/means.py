"""Means over trials with standard errors, a line per world, missingness and setting, from a folder of results.

``python benchmarks/means.py out/ablation``; a second word names another column, such as ``reward_per_step``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lacuna.study.selection import MEASURES_WITH_OPEN, METHOD, with_open_episode
from lacuna.study.store import Store

PROBLEM = ("world", "parameters", "steps", "missingness")


def main(folder: Path, column: str = MEASURES_WITH_OPEN[0]) -> None:
    runs = with_open_episode(Store.existing(folder).table())
    settings = [name for name in (*METHOD, "optimism") if runs[name].n_unique() > 1]
    for keys, group in runs.group_by(*PROBLEM, *settings, maintain_order=True):
        values = group[column].to_numpy()
        error = values.std(ddof=1) / len(values) ** 0.5
        print(*(key for key in keys if key is not None), f"{values.mean():.3f} ({error:.3f}), {len(values)} trials")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
