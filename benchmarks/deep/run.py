"""Deep learners and lacuna's agent under the same masks: make the runs that are missing.

``python benchmarks/deep/run.py`` in the environment of ``make deep``. Each run is one file in ``--out``, written whole
and named after its content. A run whose file is there, or that is in ``docs/results/deep.json``, is not made again: the
command can be stopped at any time and goes on where it was. ``python benchmarks/deep/collect.py`` then adds the
files to ``docs/results/deep.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cells import Cell, cells
from training import train

from lacuna.files import write_whole

ROOT = Path(__file__).parents[2]
OUT, KEPT = ROOT / "out" / "deep", ROOT / "docs" / "results" / "deep.json"


def chosen(only: list[str], steps: int | None) -> list[Cell]:
    """The runs whose labels hold every one of the texts, or all; with another number of steps, each once."""
    found = [cell for cell in cells() if all(text in f" {cell.label} " for text in only)]
    return found if steps is None else list(dict.fromkeys(cell._replace(steps=steps) for cell in found))


def kept(path: Path = KEPT) -> set[str]:
    """Names of the runs that are committed."""
    return {run["key"] for run in json.loads(path.read_text())["runs"]} if path.exists() else set()


def make(cell: Cell, out: Path) -> float:
    """Make a run and write its file; gives its seconds."""
    began = time.perf_counter()
    result = train(cell)
    write_whole(out / f"{cell.key}.json", json.dumps(result).encode())
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    parser.add_argument("--workers", type=int, default=1, help="processes; each takes one core")
    parser.add_argument("--only", nargs="+", default=[], help="texts in the label of a run: lake 0.2 'ppo plain'")
    parser.add_argument("--steps", type=int, help="another number of steps")
    parser.add_argument("--list", action="store_true", help="say what is left, and stop")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = chosen(options.only, options.steps)
    there = kept() | {path.stem for path in options.out.glob("*.json")}
    left = [cell for cell in wanted if cell.key not in there]
    print(f"{len(wanted)} runs, {len(left)} left", flush=True)
    if options.list:
        print("\n".join(cell.label for cell in left))
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    # Not forked: torch has threads by then. In order: see `cells`.
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(make, cell, options.out): cell for cell in left}
        for n, job in enumerate(as_completed(jobs), start=1):
            print(f"{time.strftime('%H:%M:%S')} {n}/{len(left)} {jobs[job].label}: {job.result():.0f} s", flush=True)


if __name__ == "__main__":
    main()
