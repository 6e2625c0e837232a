"""Compile the loop of runs for every kind of arguments, once, before several workers would each do it: N at a time."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from lacuna.agent.methods import YARDSTICKS
from lacuna.agent.settings import Settings
from lacuna.run.problems import Problem
from lacuna.run.repetitions import run_trials

NOW, LATE = "mcar:0.4", "late:1,mcar:0.4"
LEARNERS = (
    Settings("mi-synthetic", 2),
    Settings("mi-synthetic", 2, evidence="outcomes"),
    Settings("mi-planned", 2),
    Settings("mi-planned", 2, evidence="all"),
)
"""Without and with tables of evidence, without and with a planner: each is a type of its own."""
WITH_HISTORY = tuple(replace(case, lag=1) for case in LEARNERS[:3])  # patterns are no evidence where values are late
KINDS = [
    *((case, NOW) for case in LEARNERS),
    *((Settings(name), NOW) for name in YARDSTICKS),
    *((case, LATE) for case in (*WITH_HISTORY, *LEARNERS[::2])),
]


def compile_kind(kind: tuple[Settings, str]) -> None:
    settings, mechanism = kind
    run_trials(Problem.named("lake", mechanism), settings, steps=2, seeds=[0])


if __name__ == "__main__":
    with ProcessPoolExecutor(int(sys.argv[1]), get_context("spawn")) as pool:
        list(pool.map(compile_kind, KINDS))
