"""A module outside the package: a world, a mechanism, an environment and an agent, as a user would write them."""

from __future__ import annotations

import itertools
from pathlib import Path

PARTS = '''
"""Parts of one's own."""

import gymnasium
import numpy as np
from gymnasium import spaces

from lacuna import Space, TabularMDP
from lacuna.missingness import Mechanism, mcar


def maze(size: int = 4, slip: float = 0.1) -> TabularMDP:
    def outcomes(state, action):
        target = min(max(state + (1 if action else -1), 0), size - 1)
        return [(1 - slip, target, -1.0, target == size - 1), (slip, state, -1.0, False)]

    return TabularMDP.build(
        outcomes, space=Space((size,)), shows=list(range(size)), n_actions=2, starts=[{0: 1.0}], max_steps=50)


small = maze(3)


def by_mood(where, rate: float = 0.3) -> Mechanism:
    return mcar(where, rate)


steady = mcar(1, 0.25)


class Walk(gymnasium.Env):
    """Pays for saying the second component; two components, episodes of five steps."""

    def __init__(self, pay: float = 1.0, sides: int = 3):
        self.pay, self.sizes = pay, [sides, 2]
        self.observation_space = spaces.MultiDiscrete(self.sizes)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.s = 0, self.np_random.integers(self.sizes)
        return self.s.copy(), {}

    def step(self, action):
        reward = self.pay * float(action == self.s[1])
        self.s = self.np_random.integers(self.sizes)
        self.t += 1
        return self.s.copy(), reward, self.t == 5, False, {}


class Mine:
    """Says what it saw last of the last component, and now and then anything."""

    def __init__(self, space, n_actions, *, seed, explore: float = 0.1):
        self.rng, self.n, self.explore = np.random.default_rng(seed), n_actions, explore
        self.last = 0

    def begin(self, observation):
        self.look(observation)

    def act(self):
        return int(self.rng.integers(self.n)) if self.rng.random() < self.explore else self.last

    def learn(self, reward, observation, terminated):
        self.look(observation)

    def look(self, observation):
        if not observation["mask"][-1]:
            self.last = int(observation["values"][-1]) % self.n
'''

_fresh = itertools.count()


def write_parts(folder: Path, text: str = PARTS) -> str:
    """Write the parts as a package of its own, which no other test has imported; gives its name."""
    name = f"own_{next(_fresh)}_{folder.name.replace('-', '_')}"
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("")
    (folder / name / "parts.py").write_text(text)
    return f"{name}.parts"


def study_of(parts: str, steps: int = 200, trials: int = 3) -> str:
    """All four in one study, beside ours."""
    return f"""
name = "own"
steps = {steps}
trials = {trials}
missingness = ["mcar:0.2", {{use = "{parts}:by_mood", rate = 0.5}}]
worlds = [
  {{name = "corridor"}}, {{use = "{parts}:maze", size = 5}}, {{use = "{parts}:Walk", pay = 2}},
  {{env = "FrozenLake-v1", is_slippery = false}},
]
methods = [{{name = "last-observed"}}, {{use = "{parts}:Mine", explore = [0.1, 0.5]}}]
curve_points = 4
"""
