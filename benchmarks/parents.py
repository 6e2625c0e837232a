"""Which parents our default finds in 50,000 steps, by world and missingness: how many of 20 runs found each.

``python benchmarks/parents.py`` takes half a minute.
"""

from __future__ import annotations

from collections import Counter

from lacuna.agent.settings import UNPLANNED
from lacuna.run.problems import Problem
from lacuna.run.run import Run

CASES = (("lake", "colour", (0.2, 0.4, 0.6, 0.8)), ("taxi", "taxi column", (0.2, 0.5, 0.7)))


def main() -> None:
    for world, component, rates in CASES:
        for theta in rates:
            problem = Problem.named(world, f"mcar:{theta}")
            found: Counter[str] = Counter()
            for seed in range(20):
                run = Run(problem.mdp, problem.mechanism, UNPLANNED, seed=seed)
                run.advance(50_000)
                found[run.agent.parent_of[component] or "none"] += 1
            print(f"{component} in {world}, mcar:{theta}:", ", ".join(f"{p} {n}" for p, n in found.most_common()))


if __name__ == "__main__":
    main()
