"""The learned tables: Q, counts and a planner, for one learner or for many that share them; saved and loaded."""

from __future__ import annotations

import numpy as np

from lacuna.agent import savefile
from lacuna.agent.memory import Evidence, Learner, Memory, PlanTable, blank_memory, count_finished, memory_bytes
from lacuna.agent.methods import METHODS, EvidenceSource, Teach, method_named
from lacuna.agent.models import arrivals, planner
from lacuna.agent.models.arrivals import Arrivals, kept_of
from lacuna.agent.models.component_counts import ComponentCounts
from lacuna.agent.models.history import blank_history
from lacuna.agent.models.planner import Planner
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.savefile import Arrays
from lacuna.agent.settings import Settings
from lacuna.kernels.counts import Counts, FirstRoom, count_bytes
from lacuna.kernels.memory_limit import ask_for
from lacuna.kernels.space import Space

ARRAYS = (
    "q_entries", "q_values", "highest_reward", "tried_entries", "tried",
    "keys", "lengths", "codes", "units", "parent_weight", "parent_due",
    "component_keys", "component_lengths", "component_codes", "component_units",
)  # fmt: skip
"""The names of the arrays that `Tables.to_arrays` gives for every method."""


class Tables:
    """What a learner has learned, without its current state.

    Parameters
    ----------
    space, n_actions, settings
        Of the learner.
    max_memory
        The memory limit; see `Agent`.
    first
        Initial room of the counts. They grow automatically, and no result depends on it.
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
            self.model = Counts(space, n_actions, settings.unit, first, models=settings.models)
            self.components = ComponentCounts(space, n_actions, parents=settings.parents > 0, first=first)
            K, kept, outcomes = settings.pathways, kept_of(settings), EvidenceSource.OUTCOMES in settings.sources
            self.planner = Planner(space, n_actions, K, first, outcomes=outcomes) if self.method.plans else None
            self.arrivals = Arrivals(space, K, kept, first) if kept else None
            self.memory = blank_memory(space, n_actions, settings)
            self.history = blank_history(space, settings)
        except (MemoryError, ValueError, OverflowError) as error:
            raise ValueError(f"{name} do not fit into memory: {error}") from error

    @property
    def plan_table(self) -> PlanTable | None:
        """The planner as kernels see it, if there is one."""
        return self.planner.table if self.planner is not None else None

    @property
    def evidence(self) -> Evidence | None:
        """The tables of evidence as kernels see them; None if there are none besides those of a planner."""
        return self.arrivals.table if self.arrivals is not None else None

    @property
    def learner(self) -> Learner:
        """The learner as kernels see it."""
        return self.learner_at(self.memory)

    def learner_at(self, memory: Memory) -> Learner:
        """The learner as kernels see it, with another memory."""
        tables = self.model.table, self.components.table, self.plan_table, self.evidence, self.history
        return Learner(self.rules, self.space.layout, memory, *tables)

    def make_room(self) -> None:
        """Make room in the counts for one more step."""
        self.model.need(self.rules.K)
        if self.planner is not None:
            self.planner.make_room()
        else:
            self.components.make_room()
        if self.arrivals is not None:
            self.arrivals.make_room()

    def to_arrays(self) -> Arrays:
        """The tables as arrays, for a file."""
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
        for kept in (self.planner, self.arrivals):
            arrays |= kept.to_arrays() if kept is not None else {}
        if self.planner is not None and self.rules.look > 0:
            arrays[planner.UNSURE] = self.planner.table.unsure
        return arrays

    def from_arrays(self, arrays: Arrays, taught: int, credited: int) -> None:
        """Fill blank tables from the arrays of an untrusted file, after so many steps.

        Every number that a kernel uses as an index or a bound is checked, and every value that could make others
        infinite or NaN: an edited file can carry a valid checksum.
        """
        memory, K = self.memory, self.rules.K
        sharing = K // self.settings.tables
        # A value moves by at most one reward an update, and a step has K of them.
        most = MAX_REWARD * K * (credited + 1) if self.planner is None else planner.MOST_VALUE
        entries = savefile.take_entries(arrays, "q_entries", memory.Q.size)
        memory.Q.reshape(-1)[entries] = savefile.take(arrays, "q_values", "float64", entries.shape, -most, most)
        entries = savefile.take_entries(arrays, "tried_entries", memory.tried.size)
        tried = savefile.take(arrays, "tried", "int64", entries.shape, 1, sharing)
        memory.tried.reshape(-1)[entries] = tried
        count_finished(entries, tried, sharing, memory)
        memory.highest_reward[:] = savefile.take(arrays, "highest_reward", "float64", (1,), 0, MAX_REWARD)
        self.model.from_arrays(savefile.take_counts(arrays))
        self.components.from_arrays(arrays)
        if self.planner is not None:
            self.planner.from_arrays(arrays, memory.Q, taught, credited)
            if self.rules.look > 0:
                self.planner.fill_unsure(arrays, taught)
        if self.arrivals is not None:
            self.arrivals.from_arrays(arrays, taught, credited)
        if (self.method.teach == Teach.NOTHING and len(self.model)) or (
            not self.method.counts_components and len(self.components.counts)
        ):
            raise ValueError(f"it holds counts that {self.method.name} does not keep")


def array_names(settings: Settings) -> tuple[str, ...]:
    """The names of the arrays of tables with these settings."""
    planned = planner.ARRAYS if method_named(settings.method).plans else ()
    looking = (planner.UNSURE,) if settings.look > 0 else ()
    return (*ARRAYS, *planned, *looking, *(arrivals.ARRAYS if kept_of(settings) else ()))


def table_bytes(space: Space, n_actions: int, settings: Settings) -> int:
    """Memory that tables may take, if every state is visited, computed from sizes alone."""
    components = ComponentCounts.nbytes(space, n_actions, parents=settings.parents > 0)
    counts = count_bytes(settings.models * space.n_states, n_actions)
    tables = memory_bytes(space, n_actions, settings) + counts + components
    tables += 8 * (settings.lag + 2) * (settings.pathways + space.d + 2) if settings.lag > 0 else 0
    plans, kept = method_named(settings.method).plans, kept_of(settings)
    if plans:
        tables += Planner.nbytes(
            space, n_actions, settings.pathways, outcomes=EvidenceSource.OUTCOMES in settings.sources
        )
    return tables + (Arrivals.nbytes(space, settings.pathways, kept) if kept else 0)
