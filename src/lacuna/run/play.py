"""The plain loop for deployment: an agent in any Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium

from lacuna.agent.agent import Agent
from lacuna.agent.env_space import binning_of
from lacuna.validation import whole_number


def play(
    env: gymnasium.Env[Any, Any], agent: Agent, steps: int, *, seed: int | None = None, resume: bool = False
) -> float:
    """Let an agent act and learn in a Gymnasium environment; returns the total reward.

    This is the whole loop: any environment whose observations are the agent's components, counted from 0, will do.

    Parameters
    ----------
    env, agent, steps
        The environment, the agent that plays in it, and the number of steps.
    seed
        For the first reset of the environment.
    resume
        False: reset the environment, and begin an episode. True: continue the episode in which the last `play` of this
        environment and agent stopped. Playing 1000 steps and then 1000 more equals playing 2000.

    Examples
    --------
    >>> import lacuna
    >>> env = gymnasium.make("lacuna/Corridor-v0")
    >>> agent = Agent(lacuna.Space((5,)), n_actions=2)
    >>> first, more = play(env, agent, 10, seed=0), play(env, agent, 10, resume=True)
    >>> agent.steps
    20
    """
    if isinstance(env.action_space, gymnasium.spaces.Discrete) and env.action_space.n != agent.n_actions:
        raise ValueError(f"the agent has {agent.n_actions} actions, the environment {env.action_space.n}")
    bins = binning_of(env)
    if None not in (bins, agent.binning) and bins != agent.binning:
        raise ValueError(
            "the environment cuts its observation at other edges than those the agent learned with; "
            "wrap it in BinnedObservation(env, agent.binning)"
        )
    whole_number("steps", steps, 0)
    total = 0.0
    if not resume:
        observation, _ = env.reset(seed=seed)
        agent.begin(observation)
    elif seed is not None:
        raise ValueError(f"seed is {seed}, but nothing is reset with resume=True; leave one of them out")
    elif not agent.ready:
        raise ValueError("there is no episode to go on with; resume=True needs one that an earlier play left open")
    for _ in range(steps):
        action = agent.act()
        observation, reward, terminated, truncated, info = env.step(action)
        agent.take_late(info)
        agent.learn(float(reward), observation, terminated)
        total += float(reward)
        if terminated or truncated:
            observation, _ = env.reset()
            agent.begin(observation)
    return total
