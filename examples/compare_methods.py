"""Compare the methods in Lake World under one kind of missingness, at one setting.

    python examples/compare_methods.py --missingness mcar:0.4 --steps 50000 --trials 5

All methods see the same seeds, so they meet the same world and the same kind of loss. This is one setting; the paper's
study chooses among many.
"""

from __future__ import annotations

import argparse
from statistics import fmean
from typing import Any

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import Settings
from lacuna.run.measures import standard_error
from lacuna.run.problems import Problem
from lacuna.run.repetitions import run_trials

CHOICES = [Settings(method.name) for method in METHODS.values()] + [
    Settings(method.name, K=1) for method in METHODS.values() if method.multiple
]
COLUMNS = {
    "mean_total_reward": "reward",
    "mean_bad_steps": "water",
    "mean_path_length": "path",
    "episodes": "episodes",
}
NOTE = (
    "One setting only: alpha 0.1, gamma 1, epsilon 0, for every method that has them. For the paper's study, in which "
    "every method is shown at its best of many settings: lacuna paper"
)


def name(settings: Settings) -> str:
    return f"{settings.method}, K = {settings.K}" if settings.K else settings.method


def cell(rows: list[dict[str, Any]], figure: str) -> str:
    """Mean and standard error over the trials that have the figure."""
    values = [row[figure] for row in rows if row[figure] is not None]
    if not values:
        return "–"
    mean, error = fmean(values), standard_error(values)
    text = f"{mean:.1f}" if error is None else f"{mean:.1f} ± {error:.1f}"
    return text if len(values) == len(rows) else f"{text} ({len(values)} of {len(rows)} trials)"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the methods in Lake World.")
    parser.add_argument("--missingness", default="mcar:0.4", help="as listed by `lacuna worlds`")
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args()

    problem = Problem.named("lake", options.missingness)
    about = (
        f"{options.trials} trials of {options.steps:,} steps, seeds 0 to {options.trials - 1}; "
        f"missingness {problem.mechanism.name} ({problem.mechanism.label})."
    )
    print(about, NOTE, sep="\n", end="\n\n")
    print(f"{'per episode':24}" + "".join(f"{column:>18}" for column in COLUMNS.values()))
    for settings in CHOICES:
        rows = run_trials(problem, settings, steps=options.steps, seeds=range(options.trials))
        print(f"{name(settings):24}" + "".join(f"{cell(rows, figure):>18}" for figure in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
