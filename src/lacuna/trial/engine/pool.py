"""Pools, which share what they learn, and the state of each participant."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.learned import Tables
from lacuna.agent.memory import (
    CREDITED,
    ENDINGS,
    HIGHEST,
    LARGEST,
    NO_STATE,
    OUTCOMES,
    WAIT,
    Learner,
)
from lacuna.agent.savefile import Arrays
from lacuna.agent.settings import Settings
from lacuna.kernels.counts import TIGHT
from lacuna.kernels.space import MISSING, Space
from lacuna.trial.engine.ledger import Ledger
from lacuna.trial.engine.steps import Standing, credit_rows, learn_row, plan_rows, teach_rows
from lacuna.trial.log.keys import words


class Pool:
    """What is learned from the participants of one pool.

    Parameters
    ----------
    space, n_actions, settings
        Of the learner.
    many
        Whether there will be many pools; each then starts small.
    """

    def __init__(self, space: Space, n_actions: int, settings: Settings, *, many: bool) -> None:
        self.tables = Tables(space, n_actions, settings, first=TIGHT if many else None)
        self.taught = self.credited = 0
        self._learner: Learner | None = None
        self.stale = False
        """Whether a reward that was taken in has been corrected since."""

    @property
    def learner(self) -> Learner:
        """The learner as kernels see it, rebuilt only after the tables moved."""
        if self._learner is None:
            self._learner = self.tables.learner
        return self._learner

    def make_room(self) -> None:
        """Make sure that what one step may teach fits into the counts; this may move them."""
        self.tables.make_room()
        self._learner = None

    def learn(self, row: int, ledger: Ledger, *, to_credit: bool, to_teach: bool) -> None:
        """Take in the reward of a decision, count its transition, or both."""
        if to_teach:
            self.make_room()
        learn_row(row, to_credit, to_teach, ledger.steps, self.learner)
        self.has_learned(to_credit=to_credit, to_teach=to_teach)

    def has_learned(self, *, to_credit: bool, to_teach: bool) -> None:
        """Count what was learned from a decision."""
        self.credited += to_credit
        self.taught += to_teach

    def teach(self, rows: NDArray[np.int64], ledger: Ledger) -> None:
        """Count the transitions of decisions."""
        done = 0
        while done < rows.shape[0]:
            self.make_room()
            done = int(teach_rows(rows, done, ledger.steps, self.learner))
        self.taught += rows.shape[0]

    def credit(self, rows: NDArray[np.int64], ledger: Ledger) -> None:
        """Take in the rewards of decisions."""
        credit_rows(rows, ledger.steps, self.learner)
        self.credited += rows.shape[0]

    def plan(self, rows: NDArray[np.int64], ledger: Ledger) -> None:
        """Plan once for each of these decisions, if the method plans."""
        if self.tables.planner is not None:
            plan_rows(rows, ledger.steps, self.learner)

    def rebuild(self, rows: NDArray[np.int64], ledger: Ledger) -> None:
        """Recompute a planner's sums of rewards after corrections; `rows` are the credited decisions."""
        plan = self.tables.plan_table
        if plan is not None:
            for array in (plan.taken, plan.arrived, plan.tried, plan.told, plan.outcomes, plan.ahead[:, 1:]):
                array[:] = 0
            plan.levels[[HIGHEST, LARGEST]] = 0
            plan.at[[CREDITED, ENDINGS, WAIT, OUTCOMES]] = 0
            credit_rows(rows, ledger.steps, self.learner)
        self.stale = False

    @property
    def digest(self) -> str:
        """First 8 bytes of SHA-256 of all that was learned."""
        total = hashlib.sha256()
        for name, array in sorted(self.tables.to_arrays().items()):
            total.update(name.encode())
            total.update(np.ascontiguousarray(array).tobytes())
        return total.hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """The state that is not in the arrays, as plain data."""
        return {"taught": self.taught, "credited": self.credited, "stale": self.stale}


@dataclass
class Person:
    """The state of one participant."""

    p: str
    number: int
    pool: str
    group: str | None = None
    ghost: bool = False
    """Whether the participant comes from the log of an earlier trial."""
    last_t: int = -1
    last_row: int = -1
    """The decision whose next context is awaited; -1 if there is none."""
    asked: int = 0
    """Number of decisions requested so far."""
    ended: str | None = None
    rows: dict[int, int] = field(default_factory=dict)
    """The row in the ledger of each decision point."""
    waiting: dict[int, int] = field(default_factory=dict)
    """The rows of decisions that have no reward yet, oldest first."""
    words: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        self.words = words(self.p)


class Places:
    """The pathways and last contexts of all participants, a row for each."""

    def __init__(self, K: int, d: int) -> None:
        self.n = 0
        S, C = (np.full((16, K), NO_STATE, dtype=np.int64) for _ in range(2))
        previous, held = (np.full((16, d), MISSING, dtype=np.int64) for _ in range(2))
        self.standing = Standing(S, C, previous, held)

    def add(self) -> int:
        """Add a participant; returns its row."""
        if self.n == self.standing.S.shape[0]:
            self.standing = Standing(*(np.concatenate([own, np.full_like(own, -1)]) for own in self.standing))
        self.n += 1
        return self.n - 1

    def to_arrays(self) -> Arrays:
        """All of it as arrays, for a file; codes follow from states."""
        return {f"place_{name}": getattr(self.standing, name)[: self.n] for name in ("S", "previous", "held")}
