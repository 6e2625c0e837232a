"""Our default against carry-forward where real numbers go missing: the tables of docs/evidence/continuous.md.

``python benchmarks/continuous.py CartPole-v1 MountainCar-v0 --seeds 20``. Seeds are paired: with a seed every method
has the same starts and the same stream of masks. Carry-forward (`last-observed`) has several settings, and is compared
at the one with the best mean on the same seeds, which favours it.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import NamedTuple

import gymnasium
import numpy as np

import lacuna
from lacuna.quantities import number_text
from lacuna.study.statistics import Interval, mean_interval, paired_difference

GAMMA = 0.99
FIRST_SEED = 1000


class Task(NamedTuple):
    """An environment, how its observation is cut, and how long an agent has."""

    binning: lacuna.Binning
    steps: int


TASKS = {
    "CartPole-v1": Task(
        lacuna.Binning(
            [
                (-0.8, 0.8),
                (-0.5, 0.5),
                (-0.1, -0.05, -0.02, 0, 0.02, 0.05, 0.1),
                (-0.8, -0.3, 0, 0.3, 0.8),
            ],
            ("position", "velocity", "angle", "spin"),
        ),
        20_000,
    ),
    "MountainCar-v0": Task(
        lacuna.Binning.uniform((20, 16), (-1.2, -0.07), (0.6, 0.07), ("position", "velocity")), 50_000
    ),
    "Acrobot-v1": Task(
        lacuna.Binning.uniform((4, 4, 4, 4, 4, 4), (-1, -1, -1, -1, -6, -9), (1, 1, 1, 1, 6, 9)), 20_000
    ),
}  # fmt: skip

METHODS = {
    "default": replace(lacuna.DEFAULT, gamma=GAMMA),
    "without planning": replace(lacuna.UNPLANNED, gamma=GAMMA),
    **{
        f"carry-forward, α = {alpha:g}, ε = {epsilon:g}": lacuna.Settings(
            "last-observed", gamma=GAMMA, alpha=alpha, epsilon=epsilon
        )
        for alpha, epsilon in ((0.1, 0.0), (0.1, 0.1), (0.5, 0.1))
    },
}


def mean_returns(name: str, theta: float, settings: lacuna.Settings, seed: int) -> tuple[float, float]:
    """Mean return of the finished episodes of a run, and of the last quarter of them."""
    task = TASKS[name]
    hidden = lacuna.MissingObservation(gymnasium.make(name), f"mcar:{theta}")
    env = gymnasium.wrappers.RecordEpisodeStatistics(
        lacuna.BinnedObservation(hidden, task.binning), buffer_length=task.steps
    )
    lacuna.play(env, lacuna.Agent.for_env(env, settings, seed=seed), task.steps, seed=seed)
    returns = np.array(env.return_queue, dtype=np.float64)
    return float(returns.mean()), float(returns[-max(len(returns) // 4, 1) :].mean())


def shown(found: Interval) -> str:
    """An estimate and its interval."""
    ends = "" if found.low is None or found.high is None else f" [{found.low:.1f}, {found.high:.1f}]"
    return number_text(found.estimate, ".1f") + ends.replace("-", "−")


def report(name: str, theta: float, seeds: int) -> None:
    print(f"\n{name}, {theta:.0%} missing, {TASKS[name].steps:,} steps, {seeds} seeds\n", flush=True)
    print(
        "| method | mean return | in the last quarter | minus the best carry-forward |\n|---|---|---|---|", flush=True
    )
    runs = {}
    started = time.perf_counter()
    for label, settings in METHODS.items():
        pairs = [mean_returns(name, theta, settings, FIRST_SEED + k) for k in range(seeds)]
        runs[label] = np.array(pairs).T
    best = max((label for label in runs if label.startswith("carry")), key=lambda label: float(runs[label][0].mean()))
    for label, (whole, late) in runs.items():
        difference = "the best" if label == best else shown(paired_difference(whole, runs[best][0]))
        print(f"| {label} | {shown(mean_interval(whole))} | {shown(mean_interval(late))} | {difference} |")
    print(f"\n{time.perf_counter() - started:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="+", choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--theta", type=float, nargs="+", default=[0.3])
    given = parser.parse_args()
    for name in given.names:
        for theta in given.theta:
            report(name, theta, given.seeds)


if __name__ == "__main__":
    main()
