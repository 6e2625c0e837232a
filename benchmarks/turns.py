"""Nanoseconds per step of our default and of mi-synthetic, on the paper's 18 kinds of missingness, timed in turns.

``python benchmarks/turns.py`` takes two minutes. For each kind: a mean over seeds of the best of several turns, over a
whole run of 50,000 steps and, in brackets, after its first 20,000. mi-synthetic is run as the paper has it and with the
default's optimism, mi-available without it and without parents; the ratios are of the default to the first two, over
whole runs. The last column says how far the best of the even turns is from the best of the odd ones, which differ in
nothing.
"""

from __future__ import annotations

from lacuna.agent.settings import UNPLANNED, Settings
from lacuna.run.problems import Problem
from lacuna.run.run import Run
from lacuna_paper.reproduce import beyond_studies

CASES = (
    Settings("mi-synthetic"),
    Settings("mi-synthetic", optimism=UNPLANNED.optimism),
    Settings("mi-available"),
    UNPLANNED,
)
WARM, STEPS, SEEDS, TURNS = 20_000, 30_000, 6, 10


def seconds(problem: Problem, settings: Settings, seed: int) -> tuple[float, float]:
    """Time of the later steps of a run, and of all."""
    run = Run(problem.mdp, problem.mechanism, settings, seed=seed)
    run.advance(WARM)
    before = run.seconds
    run.advance(STEPS)
    return run.seconds - before, run.seconds


def main() -> None:
    print("ns per step           mi-synthetic  with optimism   mi-available    the default         ratios  same code")
    for missingness in beyond_studies(range(1))[0].spec.missingness:
        problem = Problem.named("lake", missingness)
        late, whole, even, odd = ([0.0] * len(CASES) for _ in range(4))
        for seed in range(SEEDS):
            turns = [[seconds(problem, case, seed) for case in CASES] for _ in range(TURNS)]
            for i in range(len(CASES)):
                late[i] += min(turn[i][0] for turn in turns) / SEEDS / STEPS * 1e9
                whole[i] += min(turn[i][1] for turn in turns) / SEEDS / (WARM + STEPS) * 1e9
                even[i] += min(turn[i][1] for turn in turns[::2])
                odd[i] += min(turn[i][1] for turn in turns[1::2])
        times = "".join(f"{a:7.0f} ({b:5.0f})" for a, b in zip(whole, late, strict=True))
        noise = max(abs(a / b - 1) for a, b in zip(even, odd, strict=True))
        print(f"{missingness:22}{times}{whole[-1] / whole[0]:8.2f}{whole[-1] / whole[1]:7.2f}{noise:10.1%}", flush=True)


if __name__ == "__main__":
    main()
