"""What a study costs on top of its runs: workers, overhead, memory. Run with ``python benchmarks/throughput.py``."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lacuna.agent.settings import Settings
from lacuna.run.problems import Problem
from lacuna.run.run import Run
from lacuna.study.engines import Local
from lacuna.study.runner import execute, problem_of, run_study
from lacuna.study.runs import RunSpec
from lacuna.study.spec import Study
from lacuna.study.store import Store

STUDY = """
name = "throughput"
steps = {steps}
trials = {trials}
missingness = ["mcar:0.2", "mcar:0.4"]
curve_points = {points}
worlds = [{{name = "lake"}}]
grid = {{alpha = [0.1, 1], gamma = [0.5, 1]}}
methods = [{{name = "last-observed"}}, {{name = "mi-synthetic", K = [1, 10]}}, {{name = "mi-conservative", K = 10}}]
"""


def study_of(steps: int, trials: int, points: int = 20) -> Study:
    return Study.parse(STUDY.format(steps=steps, trials=trials, points=points))


def with_workers(study: Study, workers: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run_study(study, Store(Path(folder) / "store"), Local(workers))
        return time.perf_counter() - began


def bare(run: RunSpec) -> None:
    """The compiled loop and nothing else: no measures, no curve, no store."""
    problem = problem_of(run.world, run.parameters, run.missingness, first_observed=run.first_observed)
    assert isinstance(problem, Problem)
    assert isinstance(run.settings, Settings)
    Run(problem.mdp, problem.mechanism, run.settings, seed=run.trial).advance(run.steps)


def bare_with(study: Study, workers: int) -> float:
    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(bare, study.runs()))
    return time.perf_counter() - began


def peak_megabytes(runs: int) -> float:
    """Peak memory of a process that runs a study of so many short runs."""
    words = [sys.executable, __file__, "memory", str(runs)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    study = study_of(steps=50_000, trials=15)
    execute(next(study.runs()))
    one = two = loop = float("inf")
    for _ in range(4):
        one, two = min(one, with_workers(study, 1)), min(two, with_workers(study, 2))
        loop = min(loop, bare_with(study, 2))
    total = len(study) * study.spec.steps / 1e6
    print(f"{len(study)} runs of {study.spec.steps:,} steps, best of 4, in turns (million steps a second):")
    print(f"  1 worker {total / one:.2f}, 2 workers {total / two:.2f}, ratio {one / two:.2f}")
    print(f"  bare compiled loop on 2 threads {total / loop:.2f}; the study reaches {loop / two:.0%} of it")
    short = study_of(steps=1, trials=50, points=0)
    print(f"overhead of a run: {with_workers(short, 1) / len(short) * 1000:.2f} ms ({len(short)} runs of one step)")
    for runs in (100, 1_000, 10_000):
        print(f"peak memory with {runs:6,} runs: {peak_megabytes(runs):.0f} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        with_workers(study_of(steps=200, trials=-(-int(sys.argv[2]) // 32)), 2)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    else:
        main()
