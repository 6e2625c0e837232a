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

LEARNERS: dict[str, dict[str, Any]] = {
    "lacuna": {},
    "ppo": {},
    "dqn": {"buffer_size": 50_000},
    "recurrent-ppo": {"policy_kwargs": {"lstm_hidden_size": 64}},
}
"""Every learner with the settings that differ from its own defaults."""


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
        content = json.dumps([*self, LEARNERS[self.learner], bins], sort_keys=True)
        return sha256(content.encode()).hexdigest()[:16]


def cells() -> Iterator[Cell]:
    """Every run: those of the first seed before those of the second, the long ones last."""
    for steps, learners in ((STEPS, tuple(LEARNERS)), (LONG, ("ppo",))):
        for seed in range(SEEDS):
            for learner in learners:
                for view in (OWN,) if learner == "lacuna" else VIEWS:
                    for world in WORLDS:
                        for theta in THETAS:
                            yield Cell(world, theta, learner, view, steps, seed)
