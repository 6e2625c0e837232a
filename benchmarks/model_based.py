"""`mi-planned` where nothing is missing, beside textbook learners that know a model is worth learning.

``python benchmarks/model_based.py`` prints the mean reward per step over the first 1,000, 2,000 and 10,000 steps, with
standard errors, of 10 trials on each world, discount .95 for all:

- **Q-learning** (α = .1 or .5, ε = .1) and **Dyna-Q** (the same, with 20 updates from remembered steps after each step;
  transitions drawn from the counts). Of each, the better α in each world, which favours them.
- **R-max**: an action that was tried fewer than m times leads to the best possible, for ever; solved to the end
  whenever one becomes known. The better of m = 1 and m = 5 in each world. It is told the highest reward.
- **PSRL**: at each start of an episode, and every 100 steps where there is none, a world is drawn from the posterior
  (Dirichlet(1/n) on next states, a normal around the mean reward with the largest reward over 1 + tries as its standard
  deviation) and solved. It is told the largest reward. Not in Taxi, where one such world is 1.5 million numbers.
- **mi-planned** with its defaults, budget 20: it is told nothing.
"""

# ruff: noqa: NPY002  compiled code has NumPy's old generator only
from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lacuna.kernels.streams import Stream, Uniforms
from lacuna.mdp.dynamics import move, start_state
from lacuna.mdp.tabular import Dynamics
from lacuna.methods.settings import Settings
from lacuna.running.measures import SUMS
from lacuna.running.problems import Problem
from lacuna.running.trials import run_trial, threads

TIMES = (1_000, 2_000, 10_000)
FIRST_SEED = 6000
GAMMA, EPSILON, BACKUPS, LONGEST = 0.95, 0.1, 20, 100
WORLDS = {
    "Lake World": "lake",
    "Taxi": "taxi",
    "FrozenLake": "frozen-lake",
    "CliffWalking": "cliff-walking",
    "random, 64 states": "random,components=3,size=4",
    "random, factored, 64 states": "random,components=3,size=4,factored=true",
}

Floats = NDArray[np.float64]


class Tables(NamedTuple):
    """What a model-based learner keeps: values, and for each state and action the steps, rewards and next states.

    ``next[s, a, x]`` counts the steps to x that went on; an ending is a step to no state.
    """

    Q: Floats
    tries: Floats
    rewards: Floats
    next: Floats


@njit(nogil=True)
def sweep_to_the_end(Q: Floats, r: Floats, T: Floats, most: int) -> None:
    """Value iteration on expected rewards and (defective) transition probabilities, from the values as they are."""
    n, A = Q.shape
    V = np.empty(n)
    for _ in range(most):
        for s in range(n):
            V[s] = Q[s].max()
        change = 0.0
        for s in range(n):
            for a in range(A):
                q = r[s, a]
                for x in range(n):
                    if T[s, a, x] > 0:
                        q += GAMMA * T[s, a, x] * V[x]
                change = max(change, abs(q - Q[s, a]))
                Q[s, a] = q
        if change < 1e-4:
            return


@njit(nogil=True)
def solve_optimistic(tables: Tables, known: int, best: float) -> None:
    """Solve the world of R-max."""
    Q, tries, rewards, arrivals = tables
    n, A = Q.shape
    r, T = np.zeros((n, A)), np.zeros((n, A, n))
    for s in range(n):
        for a in range(A):
            if tries[s, a] < known:
                r[s, a] = best / (1 - GAMMA)
            else:
                r[s, a] = rewards[s, a] / tries[s, a]
                T[s, a] = arrivals[s, a] / tries[s, a]
    sweep_to_the_end(Q, r, T, 200)


@njit(nogil=True)
def solve_sampled(tables: Tables, largest: float) -> None:
    """Draw a world from the posterior, and solve it."""
    Q, tries, rewards, arrivals = tables
    n, A = Q.shape
    r, T = np.zeros((n, A)), np.zeros((n, A, n))
    for s in range(n):
        for a in range(A):
            r[s, a] = (rewards[s, a] + largest * np.random.normal()) / (1 + tries[s, a])
            # One more place, for endings.
            ended = tries[s, a] - arrivals[s, a].sum()
            total = np.random.gamma(ended + 1 / n, 1.0)
            for x in range(n):
                T[s, a, x] = np.random.gamma(arrivals[s, a, x] + 1 / n, 1.0)
                total += T[s, a, x]
            for x in range(n):
                T[s, a, x] = T[s, a, x] / total if T[s, a, x] > 1e-4 * total else 0.0
    sweep_to_the_end(Q, r, T, 200)


@njit(nogil=True)
def dream(tables: Tables, alpha: float, seen: NDArray[np.int64], n_seen: int) -> None:
    """Update one remembered pair by a next state drawn from its counts."""
    Q, tries, rewards, arrivals = tables
    s, a = seen[int(np.random.random() * n_seen)]
    u, target = np.random.random() * tries[s, a], rewards[s, a] / tries[s, a]
    for x in range(Q.shape[0]):
        u -= arrivals[s, a, x]
        if u < 0:
            target += GAMMA * Q[x].max()
            break
    Q[s, a] += alpha * (target - Q[s, a])


@njit(nogil=True)
def play(kind: int, setting: float, world: Dynamics, uniforms: Uniforms, steps: int, seed: int) -> Floats:
    """Rewards step by step of learner 0 (Q-learning), 1 (Dyna-Q), 2 (R-max) or 3 (PSRL)."""
    np.random.seed(seed)
    n, A = world.shows.shape[0], world.n_actions
    tables = Tables(np.zeros((n, A)), np.zeros((n, A)), np.zeros((n, A)), np.zeros((n, A, n)))
    Q, tries, rewards, arrivals = tables
    seen, n_seen = np.zeros((n * A, 2), dtype=np.int64), 0
    best, largest = world.reward.max(), np.abs(world.reward).max()
    got, state, length = np.zeros(steps), start_state(0, world, uniforms), 0
    if kind == 2:
        solve_optimistic(tables, int(setting), best)
    for t in range(steps):
        if kind == 3 and length % LONGEST == 0:
            solve_sampled(tables, largest)
        if kind < 2 and np.random.random() < EPSILON:
            a = int(np.random.random() * A)
        else:
            ties = np.flatnonzero(Q[state] == Q[state].max())
            a = ties[int(np.random.random() * ties.shape[0])]
        outcome = move(state, a, world, uniforms)
        x, reward, ends = world.next_state[outcome], world.reward[outcome], world.ends[outcome] and world.terminates
        got[t] = reward
        if tries[state, a] == 0:
            seen[n_seen, 0], seen[n_seen, 1] = state, a
            n_seen += 1
        tries[state, a] += 1
        rewards[state, a] += reward
        if not ends:
            arrivals[state, a, x] += 1
        if kind < 2:
            Q[state, a] += setting * (reward + (0.0 if ends else GAMMA * Q[x].max()) - Q[state, a])
        if kind == 1:
            for _ in range(BACKUPS):
                dream(tables, setting, seen, n_seen)
        if kind == 2 and tries[state, a] == setting:
            solve_optimistic(tables, int(setting), best)
        length += 1
        if ends or length == world.max_steps:
            x, length = start_state(world.restart[x], world, uniforms), 0
        state = x
    return got


def means_of(run: Callable[[int], list[float]], trials: int) -> Floats:
    """Mean rewards per step at each time, of every trial."""
    with ThreadPoolExecutor(threads(None)) as pool:
        return np.array(list(pool.map(run, range(FIRST_SEED, FIRST_SEED + trials))))


def textbook(problem: Problem, kind: int, settings: tuple[float, ...], trials: int) -> Floats:
    """Means of a textbook learner, with the better of its settings by the mean of the longest time."""
    world = problem.mdp.dynamics

    def one(setting: float) -> Floats:
        def run(seed: int) -> list[float]:
            uniforms = Stream(seed, "world").need(3 * TIMES[-1])
            got = play(kind, setting, world, uniforms, TIMES[-1], seed)
            return [float(got[:t].mean()) for t in TIMES]

        return means_of(run, trials)

    return max(map(one, settings), key=lambda found: found[:, -1].mean())


def planned(problem: Problem, trials: int) -> Floats:
    """Means of `mi-planned`."""

    def run(seed: int) -> list[float]:
        curve = run_trial(problem, Settings("mi-planned", gamma=GAMMA), steps=TIMES[-1], seed=seed, times=TIMES)[
            "curve"
        ]
        return [float(row[SUMS.index("reward")] / row[SUMS.index("steps")]) for row in curve]

    return means_of(run, trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    options = parser.parse_args()
    print(
        f"| world | learner | {' | '.join(f'{t:,} steps' for t in TIMES)} |\n|---|---|{'---|' * len(TIMES)}", flush=True
    )
    for title in options.worlds:
        problem = Problem.named(WORLDS[title], "none")
        for learner, kind, settings in (
            ("Q-learning", 0, (0.1, 0.5)),
            ("Dyna-Q", 1, (0.1, 0.5)),
            ("R-max", 2, (1.0, 5.0)),
            ("PSRL", 3, (0.0,)),
            ("mi-planned", -1, ()),
        ):
            if kind == 3 and problem.mdp.n_states**2 * problem.mdp.n_actions > 1_000_000:
                continue
            found = planned(problem, options.trials) if kind < 0 else textbook(problem, kind, settings, options.trials)
            error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
            cells = [f"{m:.3f} ({e:.3f})" for m, e in zip(found.mean(axis=0), error, strict=True)]
            print(f"| {title} | {learner} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
