"""What participants share, and what each has alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.counts import TIGHT
from lacuna.kernels.space import MISSING, Space
from lacuna.learning.tables import Tables
from lacuna.live.ledger import Ledger
from lacuna.live.steps import credit_rows, learn_row, plan_rows, teach_rows
from lacuna.methods.memory import (
    CREDITED,
    ENDINGS,
    HIGHEST,
    IMPATIENCE,
    LARGEST,
    NO_STATE,
    OUTCOMES,
    WAIT,
    Learner,
)
from lacuna.methods.savefile import Arrays
from lacuna.methods.settings import Settings
from lacuna.record.keys import words


class Pool:
    """What is learned from the participants of one pool.

    Parameters
    ----------
    space, n_actions, settings
        Of the learner.
    many
        Whether there will be many pools, so that each should begin small.
    """

    def __init__(self, space: Space, n_actions: int, settings: Settings, *, many: bool) -> None:
        self.tables = Tables(space, n_actions, settings, first=TIGHT if many else None)
        self.taught = self.credited = 0
        self.stale = False
        """Whether a reward that was taken in has been corrected since."""

    def learn(self, row: int, ledger: Ledger, *, to_credit: bool, to_teach: bool) -> None:
        """Take in the reward of a decision, count its transition, or both."""
        if to_teach:
            self.tables.make_room()
        learn_row(row, to_credit, to_teach, ledger.steps, self.tables.learner)
        self.credited += to_credit
        self.taught += to_teach

    def teach(self, rows: NDArray[np.int64], ledger: Ledger) -> None:
        """Count the transitions of decisions."""
        done = 0
        while done < rows.shape[0]:
            self.tables.make_room()
            done = int(teach_rows(rows, done, ledger.steps, self.tables.learner))
        self.taught += rows.shape[0]

    def credit(self, rows: NDArray[np.int64], ledger: Ledger) -> None:
        """Take in the rewards of decisions."""
        credit_rows(rows, ledger.steps, self.tables.learner)
        self.credited += rows.shape[0]

    def plan(self, rows: NDArray[np.int64], ledger: Ledger) -> None:
        """Plan once for each of these decisions, if the method plans."""
        if self.tables.planner is not None:
            plan_rows(rows, ledger.steps, self.tables.learner)

    def rebuild(self, rows: NDArray[np.int64], ledger: Ledger) -> None:
        """Add up all rewards of a planner anew, for some were corrected; `rows` are those that were taken in."""
        plan = self.tables.plan_table
        if plan is not None:
            for array in (plan.taken, plan.arrived, plan.tried, plan.told, plan.outcomes, plan.ahead[:, 1:]):
                array[:] = 0
            plan.levels[[HIGHEST, LARGEST]] = 0
            plan.at[[CREDITED, ENDINGS, WAIT, OUTCOMES]] = 0
            credit_rows(rows, ledger.steps, self.tables.learner)
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
        """What is not in the arrays, as plain data."""
        return {"taught": self.taught, "credited": self.credited, "stale": self.stale}


def basis_of(learner: Learner) -> str:
    """First 8 bytes of SHA-256 of all that a decision reads."""
    memory, planner = learner.memory, learner.planner
    total = hashlib.sha256(memory.S.tobytes())
    if memory.S[0] >= 0:
        total.update(memory.Q[memory.S].tobytes())
        if memory.tried.size:
            total.update(memory.tried[memory.S].tobytes())
    total.update(memory.highest_reward.tobytes())
    if planner is not None:
        total.update(planner.levels[IMPATIENCE : IMPATIENCE + 1].tobytes())
    return total.hexdigest()[:16]


@dataclass
class Person:
    """Where one participant stands."""

    p: str
    number: int
    pool: str
    group: str | None = None
    ghost: bool = False
    """Whether it comes from the log of an earlier trial."""
    last_t: int = -1
    last_row: int = -1
    """The decision whose next context is awaited; -1 if there is none."""
    asked: int = 0
    """Decisions asked for so far."""
    ended: str | None = None
    rows: dict[int, int] = field(default_factory=dict)
    """The row in the ledger of each decision point."""
    waiting: dict[int, int] = field(default_factory=dict)
    """The rows of decisions that have no reward yet, oldest first."""
    words: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        self.words = words(self.p)


class Places:
    """Pathways and what is carried forward, a row for each participant."""

    def __init__(self, K: int, d: int) -> None:
        self.n = 0
        self.S, self.C = (np.full((16, K), NO_STATE, dtype=np.int64) for _ in range(2))
        self.previous, self.held = (np.full((16, d), MISSING, dtype=np.int64) for _ in range(2))

    def add(self) -> int:
        """Make room for one more; gives its row."""
        if self.n == self.S.shape[0]:
            for name in ("S", "C", "previous", "held"):
                own = getattr(self, name)
                setattr(self, name, np.concatenate([own, np.full_like(own, -1)]))
        self.n += 1
        return self.n - 1

    def learner(self, row: int, tables: Tables) -> Learner:
        """The learner of a pool, standing where this participant does."""
        memory = tables.memory._replace(S=self.S[row], C=self.C[row], previous=self.previous[row], held=self.held[row])
        return tables.learner_at(memory)

    def to_arrays(self) -> Arrays:
        """All of it as arrays, for a file; codes follow from states."""
        return {f"place_{name}": getattr(self, name)[: self.n] for name in ("S", "previous", "held")}
