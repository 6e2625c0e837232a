"""Nanoseconds per step of our default and of mi-synthetic, on the paper's 18 kinds of missingness, timed in turns.

``python benchmarks/turns.py`` takes a few minutes. For each kind: a mean over seeds of the best of several turns, after
the first 20,000 steps and, in brackets, over a whole run of 50,000. The last column says how far the best of the even
turns is from the best of the odd ones, which differ in nothing.
"""

from __future__ import annotations

from lacuna.methods import DEFAULT, Settings
from lacuna.paper.plan import beyond_studies
from lacuna.rollout import Run
from lacuna.trials import Problem

CASES = (Settings("mi-synthetic"), DEFAULT)
WARM, STEPS, SEEDS, TURNS = 20_000, 30_000, 6, 10


def seconds(problem: Problem, settings: Settings, seed: int) -> tuple[float, float]:
    """Time of the later steps of a run, and of all."""
    run = Run(problem.mdp, problem.mechanism, settings, seed=seed)
    run.advance(WARM)
    before = run.seconds
    run.advance(STEPS)
    return run.seconds - before, run.seconds


def main() -> None:
    print("ns per step     mi-synthetic   the default   ratio        same code")
    for missingness in beyond_studies(range(1))[0].spec.missingness:
        problem = Problem.named("lake", missingness)
        late, whole, even, odd = ([0.0] * len(CASES) for _ in range(4))
        for seed in range(SEEDS):
            turns = [[seconds(problem, case, seed) for case in CASES] for _ in range(TURNS)]
            for i in range(len(CASES)):
                late[i] += min(turn[i][0] for turn in turns) / SEEDS / STEPS * 1e9
                whole[i] += min(turn[i][1] for turn in turns) / SEEDS / (WARM + STEPS) * 1e9
                even[i] += min(turn[i][0] for turn in turns[::2])
                odd[i] += min(turn[i][0] for turn in turns[1::2])
        times = "".join(f"{a:8.0f} ({b:4.0f})" for a, b in zip(late, whole, strict=True))
        noise = max(abs(a / b - 1) for a, b in zip(even, odd, strict=True))
        ratios = f"{late[1] / late[0]:7.2f} ({whole[1] / whole[0]:.2f})"
        print(f"{missingness:22}{times}{ratios}{noise:10.1%}", flush=True)


if __name__ == "__main__":
    main()
