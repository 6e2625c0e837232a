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

WINDOW = 2_000
"""Over how many steps a run is summed up at a time."""

Env = gym.Env[Any, Any]


class Record:
    """Rewards, episodes and processor time of the first so many steps of a run, window by window.

    All environments of a learner note their steps here, in the order in which they take them.
    """

    def __init__(self, steps: int) -> None:
        self.steps, self.taken, self.began = steps, 0, time.process_time()
        windows = -(-steps // WINDOW)
        self.rewards, self.episodes, self.returns, self.seconds = ([0.0] * windows for _ in range(4))

    def note(self, reward: float, earned: float | None) -> None:
        """One step, and what the episode earned in all if it ended."""
        if self.taken == self.steps:
            return
        window = self.taken // WINDOW
        self.taken += 1
        self.rewards[window] += reward
        if earned is not None:
            self.episodes[window] += 1
            self.returns[window] += earned
        if self.taken % WINDOW == 0 or self.taken == self.steps:
            self.seconds[window] = round(time.process_time() - self.began, 2)

    def curve(self) -> dict[str, list[float]]:
        """For each window: all rewards, how many episodes ended and what those earned; the seconds until its end."""
        return {name: getattr(self, name) for name in ("rewards", "episodes", "returns", "seconds")}


class Recorder(gym.Wrapper[Any, Any, Any, Any]):
    """Notes each step of an environment in a record."""

    def __init__(self, env: Env, record: Record) -> None:
        super().__init__(env)
        self.record, self.earned = record, 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode that has earned nothing."""
        self.earned = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and note it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.earned += float(reward)
        self.record.note(float(reward), self.earned if terminated or truncated else None)
        return observation, reward, terminated, truncated, info


EDGES = [np.linspace(-limit, limit, n + 1)[1:-1] for limit, n in zip(LIMITS, BINS, strict=True)]
"""Where CartPole is cut."""


def cut(observation: Any) -> np.ndarray[Any, Any]:
    """CartPole's observation as bins."""
    return np.array([np.searchsorted(cuts, x, side="right") for cuts, x in zip(EDGES, observation, strict=True)])


def environment(cell: Cell, record: Record) -> Env:
    """The environment as the learner sees it. The masks depend on θ and on the seed of its reset alone."""
    name = {"lake": "lacuna/Lake-v0", "cartpole": "CartPole-v1"}[cell.world]
    env: Env = Recorder(gym.make(name, disable_env_checker=True), record)
    numbers = cell.world == "cartpole"
    if numbers and cell.learner == "lacuna":
        env = gym.wrappers.TransformObservation(env, cut, gym.spaces.MultiDiscrete(np.array(BINS)))
    env = lacuna.MissingObservation(env, f"mcar:{cell.theta}")
    if cell.view == "imputed":
        show: Any = "spread" if numbers else "shares"
        return lacuna.ImputedObservation(env, show=show, bins=EDGES if numbers else None)
    if cell.view == "carried":
        env = lacuna.CarriedObservation(env)
    # One-hot, which every learner of both packages takes; a Box stays as it is, with its mask in the plain view.
    return env if cell.learner == "lacuna" else gym.wrappers.FlattenObservation(env)


def first_seed(cell: Cell) -> int:
    """The seed of the learner's first environment; the others count on from it, and no two runs share one."""
    return 100 * cell.seed


def train(cell: Cell) -> dict[str, Any]:
    """Make a run."""
    record = Record(cell.steps)
    if cell.learner == "lacuna":
        env = environment(cell, record)
        space, n_actions = env.get_wrapper_attr("space"), n_actions_of(env)
        warm_up(space, n_actions)
        agent = lacuna.Agent(space, n_actions, seed=cell.seed)
        record.began = time.process_time()
        lacuna.play(env, agent, cell.steps, seed=first_seed(cell))
    else:
        import_module("torch").set_num_threads(1)
        envs = [environment(cell, record) for _ in range(LEARNERS[cell.learner].environments)]
        model = deep_model(cell, envs)
        if cell.view == "imputed":
            warm_up(envs[0].get_wrapper_attr("agent").space, n_actions_of(envs[0]))
        record.began = time.process_time()
        model.learn(total_timesteps=cell.steps)
    return cell._asdict() | {"key": cell.key} | record.curve()


def n_actions_of(env: Env) -> int:
    """How many actions there are."""
    return int(env.action_space.n)  # type: ignore[attr-defined]


def deep_model(cell: Cell, envs: list[Env]) -> Any:
    """A learner of Stable-Baselines3 or of sb3-contrib, with its own defaults but for what `LEARNERS` says."""
    home, name, policy = {
        "ppo": ("stable_baselines3", "PPO", "MlpPolicy"),
        "dqn": ("stable_baselines3", "DQN", "MlpPolicy"),
        "recurrent-ppo": ("sb3_contrib", "RecurrentPPO", "MlpLstmPolicy"),
    }[cell.learner]
    algorithm = getattr(import_module(home), name)
    vector = import_module("stable_baselines3.common.vec_env").DummyVecEnv([lambda env=env: env for env in envs])
    model = algorithm(policy, vector, seed=cell.seed, device="cpu", **LEARNERS[cell.learner].settings)
    # The learner has seeded the environments with its own seed and the numbers after it.
    vector.seed(first_seed(cell))
    return model


def warm_up(space: lacuna.Space, n_actions: int) -> None:
    """Compile what an agent needs, which is no part of a run's time."""
    agent = lacuna.Agent(space, n_actions)
    agent.begin([None] * space.d)
    agent.act()
    agent.learn(0.0, [None] * space.d, terminated=False)
