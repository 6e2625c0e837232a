"""A whole trial: 60 people, 90 days, 2 decisions a day, a quarter of the context missing, a third of the rewards late.

    python examples/trial.py --folder out/trial

Stop it at any moment and start it again: it continues where it was. The people are simulated, and so is the time;
everything else is what a trial needs. `docs/how-to/trial.md` explains it and audits it.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from lacuna import Trial

FILE = Path(__file__).with_name("walk.toml")
BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)


class Clock:
    """The time of the simulation, as the log writes it."""

    def __init__(self) -> None:
        self.time = BEGIN

    def __call__(self) -> str:
        """Tell the time."""
        return f"{self.time:%Y-%m-%dT%H:%M:%S}.000Z"

    def set(self, day: int, hour: int) -> None:
        """Move on to an hour of a day."""
        self.time = BEGIN + timedelta(days=day, hours=hour - BEGIN.hour)


def look(person: int, t: int) -> dict[str, Any]:
    """What the phone knows at a decision; a quarter of it is missing, but the time of day never is."""
    chance = np.random.default_rng([1, person, t])
    measured = {
        "steps": int(chance.integers(0, 5000)),
        "mood": int(chance.integers(1, 6)),
        "at home": bool(chance.random() < 0.6),
    }
    seen = {name: value for name, value in measured.items() if chance.random() >= 0.25}
    return {"time of day": ("morning", "evening")[t % 2], **seen}


def respond(person: int, t: int, action: str) -> float | None:
    """Whether somebody walks. Prompts help in the evening and annoy in the morning. One answer in twenty is lost."""
    chance = np.random.default_rng([2, person, t])
    walks = chance.random() < {"nothing": 0.35, "prompt": (0.25, 0.6)[t % 2]}[action]
    return None if chance.random() < 0.05 else float(walks)


def delay(person: int, t: int) -> int:
    """After how many further decisions the reward is known: for a third of them, one to five."""
    chance = np.random.default_rng([3, person, t])
    return int(chance.integers(1, 6)) if chance.random() < 1 / 3 else 0


def visit(trial: Trial, person: int, t: int) -> None:
    """Make one decision, and report every reward that is known by now."""
    name = f"person {person}"
    if trial.answered(name, t) is None:
        trial.decide(name, t, look(person, t))
    for before in range(max(0, t - 5), t + 1):
        decision = trial.answered(name, before)
        if decision is not None and before + delay(person, before) == t:
            reward = respond(person, before, decision.action)
            if reward is not None:
                trial.outcome(name, before, reward)


def main() -> None:
    parser = argparse.ArgumentParser(description="A whole trial, with simulated people.")
    parser.add_argument("--folder", type=Path, default=Path("out/trial"))
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--seed", type=int, help="take the secret from a seed, to get the same trial again")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    store, clock = options.folder / "walk.db", Clock()
    if store.exists():
        trial = Trial.open(store, clock=clock)
    else:
        trial = Trial.create(FILE, store=f"sqlite:{store}", seed=options.seed, clock=clock)
    with trial:
        for person in range(options.people):
            trial.enrol(f"person {person}")
        for day in range(options.days):
            for moment, hour in enumerate((9, 19)):
                clock.set(day, hour)
                for person in range(options.people):
                    visit(trial, person, 2 * day + moment)
            clock.set(day, 27)
            trial.update(f"night {day}")
        print(f"{trial.head.seq + 1} events; the chain of the log ends with {trial.head.chain.hex()}")


if __name__ == "__main__":
    main()
