"""Trials in memory in which everything happens that can, and what a notebook beside them would say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from lacuna.trial.engine.trial import Trial
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import check

TEXT = """
[trial]
name = "walk"
actions = {actions}
absent = "nothing"
pool = "{pool}"
update = "{update}"
max_gap = 3
unknown = "fallback"
on_invalid = "{on_invalid}"
{horizon}
[settings]
method = "{method}"
{pathways}
[allocation]
bounds = [0.1, 0.9]
burn_in = {{ decisions = 2, prob = {burn_in} }}
sets = {{ driving = ["nothing"] }}
[reward]
range = [-5.0, 5.0]
{reward}
[context]
"time of day" = {{ values = ["morning", "noon", "evening"] }}
steps = {{ edges = [500, 2000], range = [0, 100000] }}
mood = {{ values = [1, 2, 3, "no answer"] }}
"at home" = {{ values = [false, true] }}
"""
TWO, THREE = ("nothing", "prompt"), ("nothing", "prompt", "call")


def trial_file(*, actions: tuple[str, ...] = TWO, horizon: int | None = None, **given: str) -> TrialFile:
    """A trial file; `given` are method, update, pool, on_invalid, and lines for the reward."""
    method = given.get("method", "mi-planned")
    words = {
        "update": "batch", "pool": "all", "on_invalid": "missing", "reward": "", "method": method,
        "pathways": "K = 3" if method.startswith("mi-") else "",
        "actions": "[" + ", ".join(f'"{action}"' for action in actions) + "]",
        "burn_in": [0.5, 0.5] if len(actions) == 2 else [0.5, 0.25, 0.25],
        "horizon": "" if horizon is None else f"horizon = {horizon}",
    }  # fmt: skip
    return TrialFile.parse(TEXT.format(**(words | given)))


def clock(minutes: float = 1) -> Callable[[], str]:
    """A clock that goes on by some minutes whenever it is looked at."""
    now = [datetime(2026, 11, 16, 8, tzinfo=UTC)]

    def tick() -> str:
        now[0] += timedelta(minutes=minutes)
        return f"{now[0]:%Y-%m-%dT%H:%M:%S}.000Z"

    return tick


@dataclass
class Noted:
    """What the one who ran the trial knows of a decision point."""

    action: str
    policy: str
    seq: int
    prob: dict[str, float]
    context: dict[str, Any]
    available: bool = True
    randomised: bool = False
    reason: str | None = None
    reports: list[float] = field(default_factory=list)
    used: list[bool] = field(default_factory=list)
    delivered: bool | None = None


Notes = dict[tuple[str, int], Noted]


class Runner:
    """Runs a trial at random and takes notes."""

    def __init__(self, file: TrialFile, seed: int, minutes: float = 1) -> None:
        self.trial = Trial.create(file, store="memory:", seed=seed, clock=clock(minutes))
        self.random = np.random.default_rng(seed)
        self.notes: Notes = {}

    def chance(self, p: float) -> bool:
        return bool(self.random.random() < p)

    def context(self) -> dict[str, Any]:
        random = self.random
        found: dict[str, Any] = {
            "time of day": ("morning", "noon", "evening")[random.integers(3)],
            "steps": float(random.integers(4000)),
            "mood": (1, 2, 3, "no answer")[random.integers(4)],
            "at home": bool(random.integers(2)),
        }
        for name in found:
            if self.chance(0.25):
                found[name] = None
        if self.chance(0.1):
            found["steps"] = -7
        if self.chance(0.05):
            found["time of day"] = "=HYPERLINK(1)"
        return found

    def decide(self, who: str, t: int) -> None:
        context, available = self.context(), not self.chance(0.1)
        allowed = "driving" if self.chance(0.1) else None
        extra = {"app_at": f"2026-11-16T{t % 24:02}:00:00+01:00"}
        answer = self.trial.decide(who, t, context, available=available, allowed=allowed, extra=extra)
        fallback = answer.policy == "fallback"
        self.notes[who, t] = Noted(
            answer.action, answer.policy, answer.seq, dict(answer.prob), context, available or fallback,
            answer.randomised, answer.reason,
        )  # fmt: skip

    def given(self, who: str, t: int) -> None:
        context, kind = self.context(), int(self.random.integers(3))
        actions = self.trial.file.actions
        if kind == 0:
            action = self.trial.fallbacks(who, t)[0]
            answer = self.trial.given(who, t, context, action, fallback=True)
        else:
            action = actions[self.random.integers(len(actions))]
            prob = [1 / len(actions)] * len(actions) if kind == 1 else None
            answer = self.trial.given(who, t, context, action, prob=prob)
        self.notes[who, t] = Noted(
            action, "given", answer.seq, dict(answer.prob), context, randomised=kind < 2,
            reason="fallback" if kind == 0 else None,
        )  # fmt: skip

    def report(self, who: str, t: int) -> None:
        reward, noted = float(self.random.integers(-8, 9)) / 2, self.notes[who, t]
        reward = min(5.0, max(-5.0, reward))
        delivered = bool(self.random.integers(2)) if self.chance(0.3) else None
        answer = self.trial.outcome(who, t, None if self.chance(0.1) else reward, delivered=delivered)
        if delivered is not None:
            noted.delivered = delivered
        body = self.last("outcome")
        if body is not None and body["t"] == t and not answer.repeated and body["reward"] is not None:
            noted.reports.append(body["reward"])
            noted.used.append(answer.used)

    def last(self, kind: str) -> dict[str, Any] | None:
        """The last event of a kind."""
        for entry in reversed(list(self.trial.store.read())):
            body = check(entry)
            if body is not None and body["kind"] == kind:
                return body
        return None

    def end(self, who: str, how: str) -> None:
        if self.trial._person(who).ended is None:
            self.trial.end(who, how)

    def run(self, people: int = 5, points: int = 24, every: int = 6) -> Runner:
        """Let some participants decide, skip, report late and never, and end."""
        names = [f"person {i}" for i in range(people)]
        for i, who in enumerate(names):
            self.trial.enrol(who, ("town", "country")[i % 2] if self.trial.file.pool == "group" else None)
        self.trial.enrol("nobody", "town" if self.trial.file.pool == "group" else None)
        resting = dict.fromkeys(names, 0)
        for t in range(points):
            for i, who in enumerate(names):
                if resting[who] > 0 or self.chance(0.12):
                    resting[who] = int(self.random.integers(4, 6)) if self.chance(0.1) else resting[who] - 1
                    continue
                if self.trial._person(who).ended is None and self.chance(0.12):
                    self.given(who, t)
                else:
                    self.decide(who, t)
                if t == points - 6 and i == 0:
                    self.end(who, "withdrawn")
                if t == points - 4 and i == 1:
                    self.end(who, "terminated")
                for old in [old for one, old in self.notes if one == who and self.chance(0.25)]:
                    self.report(who, old)
                old = int(self.random.integers(t + 1))
                if (who, old) not in self.notes and self.chance(0.3):
                    self.decide(who, old)
            if self.chance(0.2):
                self.decide("stranger", t)
            if t % every == every - 1:
                self.trial.update()
        return self
