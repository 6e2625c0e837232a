"""Missingness in an environment of your own: wrap it, give the agent its components, and play.

The environment here is a room to be kept comfortable. Nothing in it knows of lacuna: any Gymnasium environment with a
`Discrete` or `MultiDiscrete` observation and a `Discrete` action will do.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import lacuna
from lacuna.missingness import Mechanism, by_component, mcar

STEPS = 4000


class Room(gymnasium.Env[Any, Any]):
    """Five temperatures, somebody in or out, and a heater that can be off, low or high; a day has 48 half hours."""

    observation_space = spaces.MultiDiscrete([5, 2])
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a day."""
        super().reset(seed=seed, options=options)
        self.temperature, self.somebody, self.time = 2, 1, 0
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let half an hour pass."""
        drift = int(action) - 1 - int(self.np_random.random() < 0.3)
        self.temperature = min(max(self.temperature + drift, 0), 4)
        if self.np_random.random() < 0.2:
            self.somebody = 1 - self.somebody
        self.time += 1
        discomfort = abs(self.temperature - 3) if self.somebody else 0
        return self._look(), -discomfort - 0.3 * float(action), False, self.time == 48, {}

    def _look(self) -> Any:
        return np.array([self.temperature, self.somebody])


def reward_per_step(mechanism: Mechanism, method: str) -> float:
    env = lacuna.MissingObservation(Room(), mechanism)
    agent = lacuna.Agent(env.space, n_actions=3, settings=lacuna.Settings(method, gamma=0.9, epsilon=0.1), seed=1)
    return lacuna.play(env, agent, STEPS, seed=1) / STEPS


def main() -> None:
    space = lacuna.Space((5, 2), ("temperature", "somebody"))
    mechanisms = [
        mcar(space, 0.0),
        mcar(space, 0.5),
        # The sensor fails when the room is cold, and so tells something by failing.
        by_component(space, "temperature", (0.9, 0.6, 0.2, 0.1, 0.1), affects=["temperature"], name="cold-sensor"),
    ]
    for mechanism in mechanisms:
        print(f"{mechanism.name} is {mechanism.label}: {mechanism.reason}")
        for method in ("random-action", "last-observed", "missing-as-state", "mi-synthetic", "mi-available"):
            print(f"  {method:18} reward per step {reward_per_step(mechanism, method):6.2f}")


if __name__ == "__main__":
    main()
