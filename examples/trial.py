"""An online trial with incomplete context: act, log the probability of every action, save, and resume after a stop.

    python examples/trial.py --folder out/trial --decisions 60

Run it again with more decisions, or stop it at any moment and start it again: it goes on where it was, and the log is,
byte for byte, the one that a run without a stop would have left. Nothing is ever taken out of the log. The person is
simulated; everything else is what a trial needs.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lacuna import Agent, Space
from lacuna.methods.settings import Settings

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


class Log:
    """The rows of a trial in a file to which something is only ever added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_bytes().decode() if path.exists() else ""
        *self.lines, self.torn = text.split("\n")

    def reward(self, decision: int) -> float | None:
        """The reward of a decision that is in the log."""
        if 1 + decision >= len(self.lines):
            return None
        last = self.lines[1 + decision].rpartition(",")[2]
        try:
            return float(last)
        except ValueError:
            raise SystemExit(f"{self.path}, line {2 + decision}: the reward is {last!r}; it must be a number") from None

    def write(self, number: int, row: Sequence[object]) -> None:
        """Make sure that this is line `number`: add it, or what a stop in the middle of writing it left out."""
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(row)
        line = text.getvalue()
        old = self.lines[number] if number < len(self.lines) else self.torn
        if old != line and (number < len(self.lines) or not line.startswith(old)):
            raise SystemExit(f"{self.path}, line {number + 1}, is of another trial: it is {old!r}, not {line!r}")
        if number == len(self.lines):
            with self.path.open("ab") as file:
                file.write(f"{line[len(old) :]}\n".encode())
                # On the disk before the agent is: the log may be ahead of the agent, never behind it.
                file.flush()
                os.fsync(file.fileno())
            self.lines.append(line)
            self.torn = ""


def resume(folder: Path, seed: int) -> tuple[Agent, Log]:
    """Give the agent and the log as they were left, or new ones; refuse those of another trial."""
    saved = folder / "agent.lacuna"
    folder.mkdir(parents=True, exist_ok=True)
    log = Log(folder / "log.csv")
    if saved.exists():
        agent = Agent.load(saved)
        for what, own, wanted in (
            ("context", agent.space, CONTEXT),
            ("number of actions", agent.n_actions, len(ACTIONS)),
            ("settings", agent.settings, SETTINGS),
            ("seed", agent.seed, seed),
        ):
            if own != wanted:
                raise SystemExit(f"{saved} is of another trial: its {what} is {own}, not {wanted}; nothing was changed")
        logged = max(len(log.lines) - 1, 0)
        if logged < agent.decisions:
            raise SystemExit(f"{log.path} has {logged} decisions but the agent made {agent.decisions}; restore the log")
    else:
        agent = Agent(CONTEXT, len(ACTIONS), SETTINGS, seed=seed)
        agent.begin(look(0))
    log.write(0, HEADER)
    # Decisions that are in the log but not yet in the agent: the agent makes them again, which moves nothing else.
    while log.reward(agent.decisions) is not None:
        decide(agent, log)
    agent.save(saved)
    return agent, log


def decide(agent: Agent, log: Log) -> None:
    """Make one decision: choose, log, and learn from what it led to."""
    decision = agent.decisions
    context = look(decision)
    probabilities = agent.probabilities()
    action = agent.act()
    reward = log.reward(decision)
    if reward is None:
        reward = respond(decision, action)
    seen = ["" if value is None else value for value in context]
    log.write(1 + decision, [decision, *seen, *(repr(float(p)) for p in probabilities), ACTIONS[action], reward])
    agent.learn(reward, look(decision + 1), terminated=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="An online trial with incomplete context.")
    parser.add_argument("--folder", type=Path, default=Path("out/trial"))
    parser.add_argument("--decisions", type=int, default=60, help="go on until this many were made")
    parser.add_argument("--seed", type=int, default=7, help="fixed for the whole trial")
    options = parser.parse_args()

    agent, log = resume(options.folder, options.seed)
    print(f"{agent.decisions} decisions were made before")
    while agent.decisions < options.decisions:
        decide(agent, log)
        agent.save(options.folder / "agent.lacuna")
    print(f"{agent.decisions} decisions in {log.path}; the next one would be drawn with")
    for action, p in zip(ACTIONS, agent.probabilities(), strict=True):
        print(f"  {action:8} {p:.3f}")


if __name__ == "__main__":
    main()
