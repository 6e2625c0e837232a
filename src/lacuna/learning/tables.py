"""What is learned: values, counts and a planner, for one learner or for many that share them; saved and read back."""

from __future__ import annotations

import numpy as np

from lacuna.kernels.counts import Counts, FirstRoom, count_bytes
from lacuna.kernels.memory_limit import ask_for
from lacuna.kernels.space import Space
from lacuna.methods import savefile
from lacuna.methods.memory import Learner, Memory, PlanTable, blank_memory, count_finished, memory_bytes
from lacuna.methods.qlearning import MAX_REWARD
from lacuna.methods.savefile import Arrays
from lacuna.methods.settings import Settings
from lacuna.methods.table import METHODS, Teach, find_method
from lacuna.models import planner
from lacuna.models.component_counts import ComponentCounts
from lacuna.models.planner import Planner, take_entries

ARRAYS = (
    "q_entries", "q_values", "highest_reward", "tried_entries", "tried",
    "keys", "lengths", "codes", "units", "parent_weight", "parent_due",
    "component_keys", "component_lengths", "component_codes", "component_units",
)  # fmt: skip
"""The names of the arrays that `Tables.to_arrays` gives for every method."""


class Tables:
    """What a learner has learned, without where it stands.

    Parameters
    ----------
    space, n_actions, settings
        Of the learner.
    max_memory
        Most memory that they may take; see `Agent`.
    first
        Room of the counts before the first transition. They grow by themselves, and no result depends on it.
    """

    def __init__(
        self, space: Space, n_actions: int, settings: Settings, *, max_memory: float | str | None = None,
        first: FirstRoom | None = None,
    ) -> None:  # fmt: skip
        self.space, self.n_actions, self.settings = space, n_actions, settings
        self.method, self.rules = METHODS[settings.method], settings.rules
        size = f"{space.n_states} states of {space.d} components and {n_actions} actions"
        name = f"the tables of {settings.method} for {size}"
        ask_for(table_bytes(space, n_actions, settings), name, max_memory)
        try:
            self.model = Counts(space, n_actions, settings.unit, first)
            self.components = ComponentCounts(space, n_actions, parents=settings.parents > 0, first=first)
            self.planner = Planner(space, n_actions, settings.pathways, first) if self.method.plans else None
            self.memory = blank_memory(space, n_actions, settings)
        except (MemoryError, ValueError, OverflowError) as error:
            raise ValueError(f"{name} do not fit into memory: {error}") from error

    @property
    def plan_table(self) -> PlanTable | None:
        """The planner as kernels see it, if there is one."""
        return self.planner.table if self.planner is not None else None

    @property
    def learner(self) -> Learner:
        """All of it as kernels see it."""
        return self.learner_at(self.memory)

    def learner_at(self, memory: Memory) -> Learner:
        """All of it as kernels see it, standing elsewhere."""
        tables = self.model.table, self.components.table, self.plan_table
        return Learner(self.rules, self.space.layout, memory, *tables)

    def make_room(self) -> None:
        """Make sure that what one step may teach fits into the counts."""
        self.model.need(self.rules.K)
        if self.planner is not None:
            self.planner.make_room()
        else:
            self.components.make_room()

    def to_arrays(self) -> Arrays:
        """All of it as arrays, for a file."""
        # By bits, not by value: a negative zero is kept too.
        flat = self.memory.Q.reshape(-1)
        entries = np.flatnonzero(flat.view(np.int64))
        tried = self.memory.tried.reshape(-1)
        tried_entries = np.flatnonzero(tried)
        arrays: Arrays = {
            "q_entries": entries,
            "q_values": flat[entries],
            "highest_reward": self.memory.highest_reward,
            "tried_entries": tried_entries,
            "tried": tried[tried_entries].astype(np.int64),
        }
        arrays |= self.model.to_arrays() | self.components.to_arrays()
        return arrays | (self.planner.to_arrays() if self.planner is not None else {})

    def from_arrays(self, arrays: Arrays, taught: int, credited: int) -> None:
        """Fill blank tables from what `to_arrays` gave after so many steps.

        Every number that a kernel takes for a place or a bound is checked, and every value that could make others not
        finite: whoever edits a file can seal it anew.
        """
        memory, K = self.memory, self.rules.K
        # A value moves by at most one reward an update, and a step has K of them.
        most = MAX_REWARD * K * (credited + 1) if self.planner is None else planner.MOST_VALUE
        entries = take_entries(arrays, "q_entries", memory.Q.size)
        memory.Q.reshape(-1)[entries] = savefile.take(arrays, "q_values", "float64", entries.shape, -most, most)
        entries = take_entries(arrays, "tried_entries", memory.tried.size)
        tried = savefile.take(arrays, "tried", "int64", entries.shape, 1, K)
        memory.tried.reshape(-1)[entries] = tried
        count_finished(entries, tried, K, memory)
        memory.highest_reward[:] = savefile.take(arrays, "highest_reward", "float64", (1,), 0, MAX_REWARD)
        self.model.from_arrays(savefile.take_counts(arrays))
        self.components.from_arrays(arrays)
        if self.planner is not None:
            self.planner.from_arrays(arrays, memory.Q, taught, credited)
        if (self.method.teach == Teach.NOTHING and len(self.model)) or (
            not self.method.counts_components and len(self.components.counts)
        ):
            raise ValueError(f"it holds counts that {self.method.name} does not keep")


def array_names(settings: Settings) -> tuple[str, ...]:
    """The names of the arrays of tables with these settings."""
    return (*ARRAYS, *(planner.ARRAYS if find_method(settings.method).plans else ()))


def table_bytes(space: Space, n_actions: int, settings: Settings) -> int:
    """Memory that tables may take, if every state is visited, worked out from sizes alone."""
    components = ComponentCounts.nbytes(space, n_actions, parents=settings.parents > 0)
    tables = memory_bytes(space, n_actions, settings) + count_bytes(space.n_states, n_actions) + components
    plans = find_method(settings.method).plans
    return tables + (Planner.nbytes(space, n_actions, settings.pathways) if plans else 0)
