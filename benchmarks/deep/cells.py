"""What is compared: every run as plain data, named after its content, in the order in which runs are made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

WORLDS = ("lake", "cartpole")
THETAS = (0.2, 0.6)
SEEDS = 5
STEPS, LONG = 50_000, 500_000

BINS = (4, 4, 8, 8)
"""CartPole in bins, as the imputer and lacuna's own agent see it: position, speed, angle, angular speed."""

LIMITS = (2.4, 3.0, 0.2095, 3.0)
"""The bins are equally wide between plus and minus this."""

VIEWS = ("plain", "carried", "imputed")
"""How a deep learner sees what is hidden: as missing, as the last seen value, or by lacuna's pathways."""

OWN = "agent"
"""The view of lacuna's own agent."""


class Learner(NamedTuple):
    """Who learns: how many environments it has at a time, and the settings that differ from its own defaults."""

    environments: int
    settings: dict[str, Any]


LEARNERS = {
    "lacuna": Learner(1, {}),
    # As many steps between updates as by default. The batch is four times the default, for speed; the rate follows it.
    "ppo": Learner(8, {"n_steps": 256, "batch_size": 256, "learning_rate": 1e-3}),
    # Short sequences, one small LSTM, half the epochs: with more of each a run takes two to four times as long.
    "recurrent-ppo": Learner(
        8,
        {
            "n_steps": 32,
            "batch_size": 256,
            "n_epochs": 5,
            "learning_rate": 1e-3,
            "policy_kwargs": {"lstm_hidden_size": 64, "shared_lstm": True, "enable_critic_lstm": False},
        },
    ),
    # Those of RL Baselines3 Zoo for CartPole-v1: with its own defaults DQN learned nothing in so few steps.
    "dqn": Learner(
        1,
        {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
    ),
}
"""Every learner of the comparison, the quick ones first."""


class Cell(NamedTuple):
    """One run."""

    world: str
    theta: float
    learner: str
    view: str
    steps: int
    seed: int

    @property
    def label(self) -> str:
        """What `--only` looks into, e.g. ``lake 0.2 ppo imputed 50000 seed 0``."""
        return f"{self.world} {self.theta} {self.learner} {self.view} {self.steps} seed {self.seed}"

    @property
    def key(self) -> str:
        """The name of its result, which follows from all that it is."""
        bins = [BINS, LIMITS] if self.world == "cartpole" else []
        content = json.dumps([*self, *LEARNERS[self.learner], bins], sort_keys=True)
        return sha256(content.encode()).hexdigest()[:16]


def cells() -> Iterator[Cell]:
    """Every run: one learner after the other, and of each the first seed before the second; the long ones last."""
    for steps, learners in ((STEPS, tuple(LEARNERS)), (LONG, ("ppo",))):
        for learner in learners:
            for seed in range(SEEDS):
                for view in (OWN,) if learner == "lacuna" else VIEWS:
                    for world in WORLDS:
                        for theta in THETAS:
                            yield Cell(world, theta, learner, view, steps, seed)
