"""Nanoseconds per step of every method, next to mi-synthetic, timed in turns.

``python benchmarks/methods.py`` takes about two minutes and prints the Markdown table of docs/evidence/speed.md. Lake
World, K = 10, whole runs of 50,000 steps, planners 10,000. Every turn runs each case once; the best turn counts.
The ratio is to mi-synthetic at the same rate of missingness.
"""

from __future__ import annotations

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import DEFAULT, UNPLANNED, Settings
from lacuna.run.problems import Problem
from lacuna.run.run import Run

MISSINGNESS = ("mcar:0.2", "mcar:0.4", "mcar:0.8")
BASE = "mi-synthetic"
VARIANTS = {
    "`mi-chained`, `cycles = 1`": Settings("mi-chained", cycles=1),
    "`mi-synthetic`, `q_table = own`": Settings("mi-synthetic", q_table="own"),
    "`mi-synthetic`, `evidence = all`": Settings("mi-synthetic", evidence="all"),
    "`mi-synthetic`, `lag = 3`": Settings("mi-synthetic", lag=3),
    "`UNPLANNED`": UNPLANNED,
    "`mi-planned`, `look = 1`": Settings("mi-planned", look=1.0),
}
STEPS, PLANNED_STEPS, TURNS = 50_000, 10_000, 8


def nanoseconds(problem: Problem, settings: Settings) -> float:
    """Time of a step, over a whole run."""
    steps = PLANNED_STEPS if settings.method == DEFAULT.method else STEPS
    run = Run(problem.mdp, problem.mechanism, settings, seed=1)
    run.advance(steps)
    return run.seconds / steps * 1e9


def main() -> None:
    cases = {f"`{name}`": Settings(name) for name in METHODS} | VARIANTS
    best: dict[tuple[str, str], float] = {}
    for missingness in MISSINGNESS:
        problem = Problem.named("lake", missingness)
        for _ in range(TURNS):
            for name, settings in cases.items():
                taken = nanoseconds(problem, settings)
                best[name, missingness] = min(taken, best.get((name, missingness), taken))
    rates = [f"{float(text.removeprefix('mcar:')):.0%}".replace("%", " %") for text in MISSINGNESS]
    print(f"| method | {' | '.join(f'{rate} missing' for rate in rates)} |\n|---|{'---|' * len(rates)}")
    for name in cases:
        told = [f"{best[name, m]:,.0f} ({best[name, m] / best[f'`{BASE}`', m]:.2f})" for m in MISSINGNESS]
        print(f"| {name} | {' | '.join(told)} |")


if __name__ == "__main__":
    main()
