"""`mi-planned` where nothing is missing, beside textbook learners that know a model is worth learning.

``python benchmarks/model_based.py`` prints the mean reward per step over the first 1,000, 2,000 and 10,000 steps, with
standard errors, of 10 trials on each world, discount .95 for all. Each textbook learner has the best of its settings in
each world, chosen by three trials that are not among the ten:

- **Q-learning** (α = .1 or .5, ε = .1) and **Dyna-Q** (the same, with 20 updates from remembered steps after each step;
  transitions drawn from the counts).
- **R-max**: an action that was tried fewer than m times leads to the best possible, for ever; solved to the end
  whenever one becomes known; m = 1 or 5. It is told the highest reward.
- **PSRL**: at each start of an episode, and every so many steps of one, a world is drawn from the posterior and solved.
  Next states have a Dirichlet prior over all states, which counts for so many tries. Rewards are drawn from a normal
  distribution around their mean, with a standard deviation of a share of the largest reward, over 1 + tries. It is told
  the largest reward. Not in Taxi, where it takes too long.
- **mi-planned** with its defaults, budget 20: it is told nothing.
"""

# ruff: noqa: NPY002  compiled code has NumPy's old generator only
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lacuna.agent.settings import Settings
from lacuna.kernels.streams import Stream, Uniforms
from lacuna.run.measures import SUMS
from lacuna.run.problems import Problem
from lacuna.run.repetitions import run_trial, threads
from lacuna.worlds.mdp.dynamics import move, start_state
from lacuna.worlds.mdp.tabular import Dynamics

TIMES = (1_000, 2_000, 10_000)
FIRST_SEED = 6000
CHOOSING_SEEDS = range(5900, 5903)
"""Settings are chosen on these, which are not reported."""
GAMMA, EPSILON, BACKUPS = 0.95, 0.1, 20
WORLDS = {
    "Lake World": "lake",
    "Taxi": "taxi",
    "FrozenLake": "frozen-lake",
    "CliffWalking": "cliff-walking",
    "random, 64 states": "random,components=3,size=4",
    "random, factored, 64 states": "random,components=3,size=4,factored=true",
}

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Setting(NamedTuple):
    """What a textbook learner may choose; each uses its own part."""

    alpha: float = 0.0
    """The step size of Q-learning and Dyna-Q."""
    known: int = 0
    """How often R-max tries an action before it believes what it saw."""
    sd: float = 0.0
    """The standard deviation of a reward before any try in PSRL, as a share of the largest reward."""
    mass: float = 0.0
    """How many tries the prior of PSRL on next states counts for."""
    longest: int = 0
    """After how many steps of an episode PSRL draws another world."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in self._asdict().items() if value)


class Textbook(NamedTuple):
    """A learner of `play`, and the settings of which it gets the best."""

    kind: int
    settings: list[Setting]


TEXTBOOK = {
    "Q-learning": Textbook(0, [Setting(alpha=alpha) for alpha in (0.1, 0.5)]),
    "Dyna-Q": Textbook(1, [Setting(alpha=alpha) for alpha in (0.1, 0.5)]),
    "R-max": Textbook(2, [Setting(known=known) for known in (1, 5)]),
    "PSRL": Textbook(
        3,
        [
            Setting(sd=sd, mass=mass, longest=longest)
            for sd, mass, longest in (
                (1.0, 1.0, 100),
                (0.01, 1.0, 100),
                (0.01, 1.0, 10),
                (0.01, 0.01, 10),
                (0.01, 0.01, 1),
            )
        ],
    ),
}
OURS = "mi-planned"


class Tables(NamedTuple):
    """What a model-based learner keeps: values, and for each state and action the steps, rewards and next states.

    ``next[s, a, x]`` counts the steps to x that went on; an ending is a step to no state.
    """

    Q: Floats
    tries: Floats
    rewards: Floats
    next: Floats


class Rows(NamedTuple):
    """A world to solve: expected rewards, and for each pair the next states that are possible, with their chances.

    Pair ``i = s * n_actions + a`` has the entries from ``ptr[i]`` to ``ptr[i + 1]``. What is left to 1 is an ending.
    """

    r: Floats
    ptr: Ints
    next: Ints
    chance: Floats


@njit(nogil=True)
def no_rows(n: int, A: int) -> Rows:
    """A world in which nothing pays and everything ends, with room for all next states of every pair."""
    pairs = n * A
    return Rows(
        np.zeros((n, A)), np.zeros(pairs + 1, dtype=np.int64), np.empty(pairs * n, dtype=np.int64), np.empty(pairs * n)
    )


@njit(nogil=True)
def sweep_to_the_end(Q: Floats, rows: Rows, most: int) -> None:
    """Value iteration, from the values as they are."""
    n, A = Q.shape
    V = np.empty(n)
    for _ in range(most):
        for s in range(n):
            V[s] = Q[s].max()
        change = 0.0
        for s in range(n):
            for a in range(A):
                q = rows.r[s, a]
                for i in range(rows.ptr[s * A + a], rows.ptr[s * A + a + 1]):
                    q += GAMMA * rows.chance[i] * V[rows.next[i]]
                change = max(change, abs(q - Q[s, a]))
                Q[s, a] = q
        if change < 1e-4:
            return


@njit(nogil=True)
def solve_optimistic(tables: Tables, known: int, best: float) -> None:
    """Solve the world of R-max."""
    Q, tries, rewards, arrivals = tables
    n, A = Q.shape
    rows, end = no_rows(n, A), 0
    for s in range(n):
        for a in range(A):
            if tries[s, a] < known:
                rows.r[s, a] = best / (1 - GAMMA)
            else:
                rows.r[s, a] = rewards[s, a] / tries[s, a]
                for x in np.flatnonzero(arrivals[s, a]):
                    rows.next[end], rows.chance[end] = x, arrivals[s, a, x] / tries[s, a]
                    end += 1
            rows.ptr[s * A + a + 1] = end
    sweep_to_the_end(Q, rows, 200)


@njit(nogil=True)
def draw_chances(counts: Floats, each: float, chances: Floats) -> None:
    """Draw from Dirichlet(counts + each); what is left when less than 1e-4 is left goes nowhere.

    The places without a count get one draw together. They divide it in size-biased order: a place at random gets a
    share of Beta(1 + each, each * (places left - 1)) of what is left, so a few draws give away all but nothing.
    """
    chances[:] = 0.0
    total, left = 0.0, 0
    for x in range(counts.shape[0]):
        if counts[x] > 0:
            chances[x] = np.random.gamma(counts[x] + each, 1.0)
            total += chances[x]
        else:
            left += 1
    rest = 1.0 if total == 0 else np.random.gamma(left * each, 1.0) if left else 0.0
    total += rest
    while left and rest > 1e-4 * total:
        x = int(np.random.random() * counts.shape[0])
        if counts[x] == 0 and chances[x] == 0:
            left -= 1
            chances[x] = rest * np.random.beta(1 + each, each * left) if left else rest
            rest -= chances[x]
    chances /= total


@njit(nogil=True)
def solve_sampled(tables: Tables, sd: float, mass: float) -> None:
    """Draw a world from the posterior, and solve it."""
    Q, tries, rewards, arrivals = tables
    n, A = Q.shape
    rows, end = no_rows(n, A), 0
    # One more place, for endings.
    counts, chances = np.empty(n + 1), np.empty(n + 1)
    for s in range(n):
        for a in range(A):
            rows.r[s, a] = (rewards[s, a] + sd * np.random.normal()) / (1 + tries[s, a])
            counts[:n], counts[n] = arrivals[s, a], tries[s, a] - arrivals[s, a].sum()
            draw_chances(counts, mass / n, chances)
            for x in np.flatnonzero(chances[:n]):
                rows.next[end], rows.chance[end] = x, chances[x]
                end += 1
            rows.ptr[s * A + a + 1] = end
    sweep_to_the_end(Q, rows, 200)


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
def play(kind: int, setting: Setting, world: Dynamics, uniforms: Uniforms, steps: int, seed: int) -> Floats:
    """Rewards step by step of learner 0 (Q-learning), 1 (Dyna-Q), 2 (R-max) or 3 (PSRL)."""
    np.random.seed(seed)
    n, A = world.shows.shape[0], world.n_actions
    tables = Tables(np.zeros((n, A)), np.zeros((n, A)), np.zeros((n, A)), np.zeros((n, A, n)))
    Q, tries, rewards, arrivals = tables
    seen, n_seen = np.zeros((n * A, 2), dtype=np.int64), 0
    best, largest = world.reward.max(), np.abs(world.reward).max()
    got, state, length = np.zeros(steps), start_state(0, world, uniforms), 0
    if kind == 2:
        solve_optimistic(tables, setting.known, best)
    for t in range(steps):
        if kind == 3 and length % setting.longest == 0:
            solve_sampled(tables, setting.sd * largest, setting.mass)
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
            Q[state, a] += setting.alpha * (reward + (0.0 if ends else GAMMA * Q[x].max()) - Q[state, a])
        if kind == 1:
            for _ in range(BACKUPS):
                dream(tables, setting.alpha, seen, n_seen)
        if kind == 2 and tries[state, a] == setting.known:
            solve_optimistic(tables, setting.known, best)
        length += 1
        if ends or length == world.max_steps:
            x, length = start_state(world.restart[x], world, uniforms), 0
        state = x
    return got


def means_of(run: Callable[[int], list[float]], seeds: Sequence[int]) -> Floats:
    """Mean rewards per step at each time, of every trial."""
    with ThreadPoolExecutor(threads(None)) as pool:
        return np.array(list(pool.map(run, seeds)))


def textbook(problem: Problem, kind: int, setting: Setting, seeds: Sequence[int]) -> Floats:
    """Means of a textbook learner."""
    world = problem.mdp.dynamics

    def run(seed: int) -> list[float]:
        uniforms = Stream(seed, "world").need(3 * TIMES[-1])
        got = play(kind, setting, world, uniforms, TIMES[-1], seed)
        return [float(got[:t].mean()) for t in TIMES]

    return means_of(run, seeds)


def best_setting(problem: Problem, learner: Textbook) -> Setting:
    """The setting that earns most over the longest time on the seeds that choose; what each earns goes to stderr."""
    earned = []
    for setting in learner.settings:
        means = textbook(problem, learner.kind, setting, CHOOSING_SEEDS).mean(axis=0)
        print(f"{setting}: {', '.join(f'{m:.3f}' for m in means)}", file=sys.stderr, flush=True)
        earned.append(means[-1])
    return learner.settings[int(np.argmax(earned))]


def planned(problem: Problem, seeds: Sequence[int]) -> Floats:
    """Means of `mi-planned`."""

    def run(seed: int) -> list[float]:
        curve = run_trial(problem, Settings(OURS, gamma=GAMMA), steps=TIMES[-1], seed=seed, times=TIMES)["curve"]
        return [float(row[SUMS.index("reward")] / row[SUMS.index("steps")]) for row in curve]

    return means_of(run, seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--learners", nargs="+", choices=[*TEXTBOOK, OURS], default=[*TEXTBOOK, OURS])
    options = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + options.trials)
    times = " | ".join(f"{t:,} steps" for t in TIMES)
    print(f"| world | learner | {times} | setting |\n|---|---|{'---|' * len(TIMES)}---|", flush=True)
    for title in options.worlds:
        problem = Problem.named(WORLDS[title], "none")
        for name in options.learners:
            if name == "PSRL" and problem.mdp.n_states**2 * problem.mdp.n_actions > 1_000_000:
                continue
            setting = best_setting(problem, TEXTBOOK[name]) if name in TEXTBOOK else ""
            found = (
                textbook(problem, TEXTBOOK[name].kind, setting, seeds)
                if isinstance(setting, Setting)
                else planned(problem, seeds)
            )
            error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
            cells = [f"{m:.3f} ({e:.3f})" for m, e in zip(found.mean(axis=0), error, strict=True)]
            print(f"| {title} | {name} | {' | '.join(cells)} | {setting} |", flush=True)


if __name__ == "__main__":
    main()
