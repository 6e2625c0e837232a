"""Nanoseconds per step of our default and of mi-synthetic, timed in turns on one core, best of several.

``python benchmarks/turns.py`` takes a minute.
"""

from __future__ import annotations

from lacuna.methods import DEFAULT, Settings
from lacuna.rollout import Run
from lacuna.trials import Problem

CASES = {"mi-synthetic": Settings("mi-synthetic"), "mi-available": Settings("mi-available"), "the default": DEFAULT}
STEPS, WARM, TURNS = 40_000, 20_000, 15


def nanoseconds(problem: Problem, settings: Settings, seed: int) -> float:
    """Time of a step after the first ones."""
    run = Run(problem.mdp, problem.mechanism, settings, seed=seed)
    run.advance(WARM)
    before = run.seconds
    run.advance(STEPS)
    return (run.seconds - before) / STEPS * 1e9


def main() -> None:
    for theta in (0.0, 0.2, 0.4, 0.6, 0.8):
        problem = Problem.named("lake", f"mcar:{theta}")
        times = [[nanoseconds(problem, case, turn % 5) for case in CASES.values()] for turn in range(TURNS)]
        best = (min(column) for column in zip(*times, strict=True))
        print(f"theta {theta}:", ", ".join(f"{name} {ns:.0f}" for name, ns in zip(CASES, best, strict=True)))


if __name__ == "__main__":
    main()
