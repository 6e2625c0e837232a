"""One run: an environment with missing parts, a learner in it, and what it earned window by window."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from cells import BINS, LEARNERS, LIMITS, Cell

import lacuna

WINDOWS = 25
"""In how many equal parts the steps of a run are summed up."""

Env = gym.Env[Any, Any]


class Recorder(gym.Wrapper[Any, Any, Any, Any]):
    """Notes rewards, ends of episodes and processor time of the first so many steps."""

    def __init__(self, env: Env, steps: int) -> None:
        super().__init__(env)
        self.rewards, self.ends = np.zeros(steps), np.zeros(steps, dtype=np.bool_)
        self.seconds = np.zeros(WINDOWS)
        self.taken, self.began = 0, time.process_time()

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and note it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        steps = len(self.rewards)
        if self.taken < steps:
            self.rewards[self.taken], self.ends[self.taken] = reward, terminated or truncated
            self.seconds[self.taken * WINDOWS // steps] = time.process_time() - self.began
            self.taken += 1
        return observation, reward, terminated, truncated, info

    def curve(self) -> dict[str, list[float]]:
        """Sums over each window: rewards and ends; and the seconds until its end."""
        windows = np.arange(len(self.rewards)) * WINDOWS // len(self.rewards)
        rewards = np.bincount(windows, self.rewards, WINDOWS)
        ends = np.bincount(windows, self.ends, WINDOWS)
        return {
            "rewards": rewards.tolist(),
            "episodes": ends.tolist(),
            "seconds": [round(float(second), 2) for second in self.seconds],
        }


EDGES = [np.linspace(-limit, limit, n + 1)[1:-1] for limit, n in zip(LIMITS, BINS, strict=True)]
"""Where CartPole is cut."""


def cut(observation: Any) -> np.ndarray[Any, Any]:
    """CartPole's observation as bins."""
    return np.array([np.searchsorted(cuts, x, side="right") for cuts, x in zip(EDGES, observation, strict=True)])


def environment(cell: Cell) -> tuple[Recorder, Env]:
    """What records a run, and the environment as the learner sees it. The masks depend on θ and the seed alone."""
    name = {"lake": "lacuna/Lake-v0", "cartpole": "CartPole-v1"}[cell.world]
    recorder = Recorder(gym.make(name), cell.steps)
    env: Env = recorder
    numbers = cell.world == "cartpole"
    if numbers and cell.learner == "lacuna":
        env = gym.wrappers.TransformObservation(env, cut, gym.spaces.MultiDiscrete(np.array(BINS)))
    env = lacuna.MissingObservation(env, f"mcar:{cell.theta}")
    if cell.view == "imputed":
        show: Any = "spread" if numbers else "shares"
        return recorder, lacuna.ImputedObservation(env, show=show, bins=EDGES if numbers else None)
    if cell.view == "carried":
        env = lacuna.CarriedObservation(env)
    # One-hot, which every learner of both packages takes; a Box stays as it is, with its mask in the plain view.
    return recorder, env if cell.learner == "lacuna" else gym.wrappers.FlattenObservation(env)


def train(cell: Cell) -> dict[str, Any]:
    """Make a run."""
    recorder, env = environment(cell)
    if cell.learner == "lacuna":
        space = env.get_wrapper_attr("space")
        n_actions = int(env.action_space.n)  # type: ignore[attr-defined]
        warm_up(space, n_actions)
        agent = lacuna.Agent(space, n_actions, seed=cell.seed)
        recorder.began = time.process_time()
        lacuna.play(env, agent, cell.steps, seed=cell.seed)
    else:
        import_module("torch").set_num_threads(1)
        model = deep_model(cell, env)
        if cell.view == "imputed":
            warm_up(env.get_wrapper_attr("agent").space, int(env.action_space.n))  # type: ignore[attr-defined]
        recorder.began = time.process_time()
        model.learn(total_timesteps=cell.steps)
    return cell._asdict() | {"key": cell.key} | recorder.curve()


def deep_model(cell: Cell, env: Env) -> Any:
    """A learner of Stable-Baselines3 or of sb3-contrib, with its own defaults but for what `LEARNERS` says."""
    home, name, policy = {
        "ppo": ("stable_baselines3", "PPO", "MlpPolicy"),
        "dqn": ("stable_baselines3", "DQN", "MlpPolicy"),
        "recurrent-ppo": ("sb3_contrib", "RecurrentPPO", "MlpLstmPolicy"),
    }[cell.learner]
    algorithm = getattr(import_module(home), name)
    return algorithm(policy, env, seed=cell.seed, device="cpu", **LEARNERS[cell.learner])


def warm_up(space: lacuna.Space, n_actions: int) -> None:
    """Compile what an agent needs, which is no part of a run's time."""
    agent = lacuna.Agent(space, n_actions)
    agent.begin([None] * space.d)
    agent.act()
    agent.learn(0.0, [None] * space.d, terminated=False)
