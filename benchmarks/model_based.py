"""With nothing missing, `mi-planned` is a tabular model-based learner: here beside the textbook ones.

``python benchmarks/model_based.py [--steps 10000] [--trials 10]``. Reward per step on four worlds, all observed:

- Q-learning: `fully-observed` with optimism 0.2 and step size 0.1, as the yardstick has it;
- Dyna-Q: Q-learning, and 20 sampled updates from the model a step; ε = 0.1;
- R-max: an action that was tried fewer than `m` times is worth the most that can be earned; value iteration every 50
  steps, if an action became known; m = 1 and 5;
- PSRL: at every episode a model drawn from the posterior (Dirichlet of weight 1/|S|, known mean rewards), solved.

All with a discount of 0.99. They are given what an agent does not know: the number of states, and the highest reward.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lacuna import Problem, Settings, run_trial
from lacuna.mdp.tabular import TabularMDP

WORLDS = ("lake", "taxi", "frozen-lake", "cliff-walking")
GAMMA = 0.99
Values = NDArray[np.float64]


def value_iteration(T: Values, r: Values, Q: Values) -> Values:
    """Solve a model of continuing probabilities T(s, a, s') and mean rewards r(s, a), beginning from Q."""
    for _ in range(200):
        improved = r + GAMMA * T @ Q.max(axis=1)
        moved = np.abs(improved - Q).max()
        Q = improved
        if moved < 1e-3:
            break
    return Q


class Model:
    """Counts of what an action led to; the row for the end of an episode stays empty."""

    def __init__(self, n: int, A: int, highest: float, generator: np.random.Generator) -> None:
        self.n, self.A, self.highest, self.generator = n, A, highest, generator
        self.to = np.zeros((n, A, n))
        self.ended, self.paid = np.zeros((n, A)), np.zeros((n, A))
        self.Q = np.zeros((n, A))

    @property
    def tries(self) -> Values:
        """How often each action was tried."""
        return np.asarray(self.to.sum(axis=2) + self.ended)

    def begin(self) -> None:
        """An episode begins."""

    def act(self, s: int) -> int:
        """The best action, any of equals."""
        best = np.flatnonzero(self.Q[s] == self.Q[s].max())
        return int(self.generator.choice(best))

    def learn(self, s: int, a: int, r: float, s_next: int, ended: bool) -> None:
        """Count a step."""
        self.paid[s, a] += r
        if ended:
            self.ended[s, a] += 1
        else:
            self.to[s, a, s_next] += 1


class RMax(Model):
    """Optimism for every action tried fewer than m times."""

    m = 1

    def __init__(self, n: int, A: int, highest: float, generator: np.random.Generator) -> None:
        super().__init__(n, A, highest, generator)
        self.Q[:] = highest
        self.steps, self.news = 0, False

    def learn(self, s: int, a: int, r: float, s_next: int, ended: bool) -> None:
        """Count a step, and now and then solve the model anew."""
        super().learn(s, a, r, s_next, ended)
        self.steps += 1
        self.news |= self.to[s, a].sum() + self.ended[s, a] == self.m
        if self.news and self.steps % 50 == 0:
            self.news = False
            tries = self.tries
            known, n = tries >= self.m, np.maximum(tries, 1)
            T, reward = self.to / n[:, :, None], self.paid / n
            T[~known] = 0.0
            self.Q = value_iteration(T, np.where(known, reward, self.highest), self.Q)


class RMax5(RMax):
    """The same, more careful."""

    m = 5


class Psrl(Model):
    """Posterior sampling."""

    def begin(self) -> None:
        """Draw a model and solve it."""
        weights = np.concatenate([self.to, self.ended[:, :, None]], axis=2) + 1.0 / self.n
        drawn = self.generator.standard_gamma(weights)
        T = drawn[:, :, :-1] / drawn.sum(axis=2, keepdims=True)
        tries = self.tries
        # Of a reward that was never seen, the prior is the highest.
        self.Q = value_iteration(T, (self.paid + self.highest) / (tries + 1.0), self.Q)


class DynaQ(Model):
    """Q-learning on real steps and on 20 from memory."""

    def __init__(self, n: int, A: int, highest: float, generator: np.random.Generator) -> None:
        super().__init__(n, A, highest, generator)
        self.seen: list[tuple[int, int, float, int, bool]] = []

    def act(self, s: int) -> int:
        """ε-greedy."""
        return int(self.generator.integers(self.A)) if self.generator.random() < 0.1 else super().act(s)

    def learn(self, s: int, a: int, r: float, s_next: int, ended: bool) -> None:
        """Update by this step, and by some of those before."""
        self.seen.append((s, a, r, s_next, ended))
        for i in (-1, *self.generator.integers(len(self.seen), size=20)):
            s, a, r, s_next, ended = self.seen[i]
            target = r + (0.0 if ended else GAMMA * self.Q[s_next].max())
            self.Q[s, a] += 0.1 * (target - self.Q[s, a])


def run(make: Callable[..., Model], mdp: TabularMDP, steps: int, seed: int) -> float:
    """Reward per step of one learner that sees everything the world shows."""
    generator = np.random.default_rng(seed)
    learner = make(mdp.space.n_states, mdp.n_actions, max(float(mdp.reward.max()), 0.0), generator)
    starts = [(np.array(list(start)), np.array(list(start.values()))) for start in mdp.starts]
    cumulative, total, state, length = mdp.dynamics.cumulative, 0.0, -1, 0
    for _ in range(steps):
        if state < 0 or length == 0:
            states, p = starts[0 if state < 0 else mdp.restart[state]]
            state = int(generator.choice(states, p=p))
            learner.begin()
        s = int(mdp.shows[state])
        a = learner.act(s)
        first, end = mdp.ptr[state * mdp.n_actions + a : state * mdp.n_actions + a + 2]
        entry = first + int(np.searchsorted(cumulative[first:end], generator.random(), side="right"))
        state, r = int(mdp.next_state[entry]), float(mdp.reward[entry])
        ended = bool(mdp.ends[entry] and mdp.terminates)
        learner.learn(s, a, r, int(mdp.shows[state]), ended)
        total += r
        length = 0 if ended or length + 1 == mdp.max_steps else length + 1
    return total / steps


def ours(settings: Settings, world: str, steps: int, seed: int) -> float:
    """Reward per step of a method of lacuna with nothing missing."""
    return float(run_trial(Problem.named(world, "none"), settings, steps=steps, seed=seed)["reward_per_step"])


def theirs(make: Callable[..., Model], world: str, steps: int, seed: int) -> float:
    """Reward per step of a textbook learner."""
    return run(make, Problem.named(world, "none").mdp, steps, seed)


LEARNERS: dict[str, Callable[[str, int, int], float]] = {
    "mi-planned": partial(ours, Settings("mi-planned")),
    "Q-learning": partial(ours, Settings("fully-observed", optimism=0.2)),
    "Dyna-Q": partial(theirs, DynaQ),
    "R-max, m = 1": partial(theirs, RMax),
    "R-max, m = 5": partial(theirs, RMax5),
    "PSRL": partial(theirs, Psrl),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=10)
    asked = parser.parse_args()
    print(f"| reward per step, {asked.steps} steps | {' | '.join(LEARNERS)} |\n" + "|---" * (len(LEARNERS) + 1) + "|")
    seeds = range(6000, 6000 + asked.trials)
    with ProcessPoolExecutor(2) as pool:
        for world in WORLDS:
            cells = []
            for learner in LEARNERS.values():
                x = np.array(list(pool.map(partial(learner, world, asked.steps), seeds)))
                cells.append(f"{x.mean():.3f} ({x.std(ddof=1) / len(x) ** 0.5:.3f})")
            print(f"| {world} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
