"""What planning buys: the reward of `mi-planned` against its budget, with the time of a step beside it.

``python benchmarks/budget.py`` takes some ten minutes on two cores and prints a Markdown table: reward per step, mean
and standard error over trials. The last budget backs up every action of every state at each step. ``--long`` adds
50,000 steps for the others. Times are those of the processor, on one core, over the shorter trials.
"""

from __future__ import annotations

import argparse
import time

from lacuna import Problem, Settings, run_trials
from lacuna.run.measures import standard_error
from lacuna.run.run import Run

WORLDS, MISSINGNESS = ("lake", "taxi"), "mcar:0.4"
BUDGETS = (0, 2, 5, 10, 20, 50)
SHORT, LONG = (2_000, 10_000), 50_000
FIRST_SEED, TURNS = 4000, 5


def reward(problem: Problem, settings: Settings, steps: int, trials: int) -> str:
    """Reward per step, with its standard error."""
    rows = run_trials(problem, settings, steps=steps, seeds=range(FIRST_SEED, FIRST_SEED + trials))
    rewards = [row["reward_per_step"] for row in rows]
    return f"{sum(rewards) / trials:.3f} ± {standard_error(rewards) or 0.0:.3f}"


def microseconds(problem: Problem, settings: Settings) -> float:
    """Processor time of a step, the best of several runs."""
    best = float("inf")
    for seed in range(FIRST_SEED, FIRST_SEED + TURNS):
        run = Run(problem.mdp, problem.mechanism, settings, seed=seed)
        run.advance(1)
        before = time.process_time()
        run.advance(SHORT[0])
        best = min(best, (time.process_time() - before) / SHORT[0])
    return 1e6 * best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--long", action="store_true", help=f"also {LONG:,} steps, for budgets up to {BUDGETS[-1]}")
    options = parser.parse_args()
    lengths = (*SHORT, LONG) if options.long else SHORT
    print(f"| world | budget | {' | '.join(f'{steps:,} steps' for steps in lengths)} | µs per step |")
    print("|---|---|" + "---|" * (len(lengths) + 1))
    for world in WORLDS:
        problem = Problem.named(world, MISSINGNESS)
        everything = problem.mdp.space.n_states * problem.mdp.n_actions
        for budget in (*BUDGETS, everything):
            settings = Settings("mi-planned", budget=budget)
            cells = [
                "–" if steps == LONG and budget == everything else reward(problem, settings, steps, options.trials)
                for steps in lengths
            ]
            print(f"| {world} | {budget} | {' | '.join(cells)} | {microseconds(problem, settings):.1f} |", flush=True)


if __name__ == "__main__":
    main()
