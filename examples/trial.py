"""An online trial with incomplete context: act, log the probability of every action, save, and resume after a stop.

    python examples/trial.py --folder out/trial --decisions 60

Run it again with more decisions, or stop it at any moment and start it again: it goes on where it was, and the log is,
byte for byte, the one that a run without a stop would have left. The person is simulated; everything else is what a
trial needs.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path

import numpy as np

from lacuna import Agent, Settings, Space

CONTEXT = Space((3, 3, 2), ("time of day", "activity", "at home"))
ACTIONS = ("nothing", "prompt")
# Fixed before the trial begins. With exploration no action is ever impossible, as weighting by probability needs.
SETTINGS = Settings("mi-synthetic", K=10, alpha=0.1, gamma=0.5, epsilon=0.2)
HEADER = ["decision", *CONTEXT.names, *(f"p({action})" for action in ACTIONS), "action", "reward"]

Context = list[int | None]


def look(decision: int) -> Context:
    """What the phone knows at a decision: `None` where a sensor or an answer is missing."""
    random = np.random.default_rng([2024, decision])
    values = [decision % 3, int(random.integers(3)), int(random.integers(2))]
    missing = random.random(3) < (0.0, 0.4, 0.3)
    return [None if lost else value for value, lost in zip(values, missing, strict=True)]


def respond(decision: int, action: int) -> float:
    """How the person responds: a simulation, seeded by the decision. Evenings are the time for a prompt."""
    random = np.random.default_rng([2025, decision])
    chance = (0.3, 0.2, 0.7)[decision % 3] if action else 0.35
    return float(random.random() < chance)


def resume(folder: Path) -> Agent:
    """Give the agent as it was saved, and cut the log to what that agent knows; or start both anew."""
    saved, log = folder / "agent.lacuna", folder / "log.csv"
    if saved.exists():
        agent = Agent.load(saved)
        if (agent.space, agent.settings) != (CONTEXT, SETTINGS):
            raise SystemExit(f"{saved} belongs to a trial with other settings; nothing was changed")
        # A stop between writing a row and saving the agent leaves one row too many: the same decision comes again.
        rows = log.read_text().splitlines(keepends=True)
        if len(rows) - 1 < agent.steps:
            raise SystemExit(f"{log} has {len(rows) - 1} decisions but the agent made {agent.steps}; restore the log")
        if len(rows) - 1 > agent.steps:
            part = log.with_suffix(".part")
            part.write_text("".join(rows[: 1 + agent.steps]))
            part.replace(log)
        return agent
    folder.mkdir(parents=True, exist_ok=True)
    with log.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(HEADER)
    agent = Agent(CONTEXT, len(ACTIONS), SETTINGS, seed=7)
    agent.begin(look(0))
    agent.save(saved)
    return agent


def decide(agent: Agent, folder: Path) -> None:
    """Make one decision: choose, log, learn from what it led to, save."""
    decision = agent.steps
    context = look(decision)
    probabilities = agent.probabilities()
    action = agent.act()
    reward = respond(decision, action)
    agent.learn(reward, look(decision + 1), terminated=False)
    seen = ["" if value is None else value for value in context]
    with (folder / "log.csv").open("a", newline="") as file:
        row = [decision, *seen, *(repr(float(p)) for p in probabilities), ACTIONS[action], reward]
        csv.writer(file, lineterminator="\n").writerow(row)
        # On the disk before the agent is: the log may be one row ahead of the agent, never behind it.
        file.flush()
        os.fsync(file.fileno())
    agent.save(folder / "agent.lacuna")


def main() -> None:
    parser = argparse.ArgumentParser(description="An online trial with incomplete context.")
    parser.add_argument("--folder", type=Path, default=Path("out/trial"))
    parser.add_argument("--decisions", type=int, default=60, help="go on until this many were made")
    options = parser.parse_args()

    agent = resume(options.folder)
    print(f"{agent.steps} decisions were made before")
    while agent.steps < options.decisions:
        decide(agent, options.folder)
    print(f"{agent.steps} decisions in {options.folder / 'log.csv'}; the next one would be drawn with")
    for action, p in zip(ACTIONS, agent.probabilities(), strict=True):
        print(f"  {action:8} {p:.3f}")


if __name__ == "__main__":
    main()
