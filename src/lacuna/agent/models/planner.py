"""The memory of a learner that plans: tables that grow, and how they are saved and read back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import (
    AGREEMENT,
    CREDITED,
    CURSOR,
    ENDINGS,
    ENTRY,
    HIGHEST,
    IMPATIENCE,
    LARGEST,
    MOST_OUTCOMES,
    OPEN,
    OUTCOMES,
    QUEUED,
    STEPS,
    VISITED,
    WAIT,
    PlanTable,
)
from lacuna.agent.models.arrivals import ROUNDED, fill_outcomes
from lacuna.agent.models.factored_model import FactoredModel
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.savefile import Arrays, rows_of, sparse, take, take_counts, take_sparse
from lacuna.kernels.counts import MAX_COUNT, Counts, FirstRoom, count_bytes
from lacuna.kernels.space import Space

MOST_VALUE = 1000 * MAX_REWARD
"""Bound on values: a reward over 1 - γ', with γ' at most .99. Optimism adds nothing, as it uses values seen."""

_SPARSE = ("tried", "taken", "arrived", "told")
"""Tables with a row for every state, of which only the entries that are not 0 are saved."""

ARRAYS = (
    *(f"plan_{name}{kind}" for name in _SPARSE for kind in ("_entries", "")),
    "plan_outcomes",
    "plan_visited",
    "plan_queue",
    "plan_priority",
    "plan_levels",
    "plan_at",
    "parent_ratio",
    *(f"{table}_{name}" for table in ("factored", "leads") for name in ("keys", "lengths", "codes", "units")),
)
"""The names of the arrays that `Planner.to_arrays` gives."""

UNSURE = "plan_unsure"
"""The name of an array that only a planner which looks saves."""


class Planner:
    """What a planner remembers: the growing memory around a `PlanTable`.

    Parameters
    ----------
    space, n_actions
        What it plans in.
    K
        Number of pathways.
    first
        Room of the counts before the first transition.
    outcomes
        Whether outcomes weigh the pathways.
    """

    def __init__(
        self, space: Space, n_actions: int, K: int, first: FirstRoom | None = None, *, outcomes: bool = True
    ) -> None:
        n, n_outcomes = space.n_states, MOST_OUTCOMES if outcomes else 0
        self.space, self.n_actions = space, n_actions
        self.model = FactoredModel(space, n_actions, K, first)
        self.leads = Counts(Space((n,)), 1, first=first)
        # Zeros from the operating system take no memory until touched, so tables cost what was visited.
        levels = np.zeros(7)
        levels[AGREEMENT] = 1.0
        at = np.zeros(10, dtype=np.int64)
        at[OPEN] = -1
        visited, queue, place, tally = (np.zeros(n, dtype=np.int64) for _ in range(4))
        self._blank = PlanTable(
            self.model.table, self.leads.table, np.zeros((n, n_actions)), np.zeros((n, n_actions, 3)), np.zeros((n, 3)),
            np.zeros((n, 4)), np.zeros((n_outcomes, 3)), np.zeros((n, n_outcomes)),
            np.zeros(n, dtype=np.bool_), visited, queue, place, np.zeros(n), levels, at, tally,
            np.zeros(K, dtype=np.int64), np.zeros((n_actions + 1, 2)),
        )  # fmt: skip

    @staticmethod
    def nbytes(space: Space, n_actions: int, K: int, *, outcomes: bool = True) -> int:
        """Memory that the tables of a planner may take, if every state is visited."""
        n_outcomes = MOST_OUTCOMES if outcomes else 0
        # Numbers for each action of a state, for each state, and for all; and a truth value for each state.
        each, rest = 4 * n_actions + 3 + 4 + n_outcomes + 5, 3 * n_outcomes + 7 + 10 + K + 2 * (n_actions + 1)
        tables = 8 * (each * space.n_states + rest) + space.n_states
        return tables + count_bytes(space.n_states, 1) + FactoredModel.nbytes(space, n_actions)

    @property
    def table(self) -> PlanTable:
        """The memory as kernels see it."""
        return self._blank._replace(model=self.model.table, leads=self.leads.table)

    def make_room(self) -> None:
        """Make sure that what one step may count fits."""
        self.model.make_room()
        self.leads.need(1)

    def to_arrays(self) -> Arrays:
        """The complete state as arrays, for a file."""
        table, arrays = self.table, Arrays()
        for name in _SPARSE:
            arrays |= sparse(getattr(table, name), f"plan_{name}")
        queue = table.queue[: table.at[QUEUED]]
        arrays |= {"plan_outcomes": table.outcomes, "plan_levels": table.levels}
        arrays |= {"plan_visited": table.visited[: table.at[VISITED]], "plan_queue": queue, "plan_at": table.at}
        arrays |= {"plan_priority": table.priority[queue]}
        return arrays | self.leads.to_arrays("leads_") | self.model.to_arrays()

    def fill_unsure(self, arrays: Arrays, taught: int) -> None:
        """Load the sums of `looking`."""
        unsure = self.table.unsure
        unsure[:] = take(arrays, UNSURE, "float64", unsure.shape, 0, taught)

    def from_arrays(self, arrays: Arrays, Q: NDArray[np.float64], taught: int, credited: int) -> None:
        """Fill a blank memory from the arrays of an untrusted file, its joint counts and Q."""
        table, A = self.table, self.n_actions
        self._fill_levels(arrays, taught, credited)
        states, reached = self._fill_sums(arrays)
        self._fill_outcomes(arrays)
        self._fill_visited(arrays, states)
        self._fill_leads(arrays)
        self._fill_queue(arrays)
        self.model.from_arrays(arrays)
        if not table.left[arrays["q_entries"] // A].all():
            raise ValueError("q_entries names a state that the planner has not visited")
        visited = arrays["plan_visited"]
        table.ahead[visited, 0] = Q[visited].max(axis=1)
        table.ahead[reached, 1] = 1.0
        table.ahead[reached, 2] = table.arrived[reached, 0] / table.arrived[reached, 1]
        table.ahead[reached, 3] = table.arrived[reached, 2] / table.arrived[reached, 1]

    def _fill_levels(self, arrays: Arrays, taught: int, credited: int) -> None:
        """Read the single numbers."""
        table, n = self.table, self.space.n_states
        low, high = np.zeros(7), np.full(7, MOST_VALUE)
        high[[AGREEMENT, IMPATIENCE]], high[[HIGHEST, LARGEST]] = 1.0, MAX_REWARD
        table.levels[:] = take(arrays, "plan_levels", "float64", (7,), low, high)
        least, most = np.zeros(10, dtype=np.int64), np.full(10, MAX_COUNT, dtype=np.int64)
        least[OPEN], most[OPEN], most[OUTCOMES] = -1, n - 1, table.outcomes.shape[0]
        most[QUEUED] = most[VISITED] = n
        table.at[:] = take(arrays, "plan_at", "int64", (10,), least, most)
        if (table.at[[STEPS, CREDITED]] != (taught, credited)).any():
            counted = f"{table.at[STEPS]} steps taught and {table.at[CREDITED]} credited"
            raise ValueError(f"the planner counts {counted}; there were {taught} and {credited}")
        if table.at[ENDINGS] + table.at[WAIT] > credited:
            raise ValueError("the planner counts more endings, or waits longer, than it has steps")

    def _fill_sums(self, arrays: Arrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Read the sums over steps; returns the states that were left, and those that were reached."""
        table, most = self.table, MAX_COUNT * MAX_REWARD
        taken = rows_of(take_sparse(table.taken, arrays, "plan_taken", -most, most), 3)
        reached = rows_of(take_sparse(table.arrived, arrays, "plan_arrived", -most, most), 3)
        for name, sums in (("taken", table.taken.reshape(-1, 3)[taken]), ("arrived", table.arrived[reached])):
            reward, weight, endings = sums.T
            possible = (weight > 0) & (abs(reward) <= ROUNDED * MAX_REWARD * weight)
            if not (possible & (endings >= 0) & (endings <= weight)).all():
                raise ValueError(f"plan_{name} holds sums that no steps could have left")
        tried = take_sparse(table.tried, arrays, "plan_tried", 0, MAX_COUNT)
        if (table.tried.reshape(-1)[tried] > ROUNDED * table.taken.reshape(-1, 3)[tried, 1]).any():
            raise ValueError("plan_tried counts more tries than there were steps")
        return np.unique(taken // self.n_actions), reached

    def _fill_outcomes(self, arrays: Arrays) -> None:
        """Read the outcomes, and in which states they came."""
        table = self.table
        arrived = table.arrived[:, 1]
        fill_outcomes("plan", arrays, table.outcomes, table.told, arrived, table.at[[OUTCOMES, CREDITED]])

    def _fill_visited(self, arrays: Arrays, states: NDArray[np.int64]) -> None:
        """Read the visited states: those that were left, by steps whose reward is known or not."""
        table = self.table
        visited = take(arrays, "plan_visited", "int64", (int(table.at[VISITED]),), 0, self.space.n_states - 1)
        if np.unique(visited).size != visited.size or not np.isin(states, visited).all():
            raise ValueError("the planner's list of visited states lacks one that it has left, or names one twice")
        if table.at[CURSOR] > visited.size * self.n_actions:
            raise ValueError("the planner stands beyond the states it has visited")
        table.visited[: visited.size] = visited
        table.left[visited] = True

    def _fill_leads(self, arrays: Arrays) -> None:
        """Read the predecessors of each state, and compare them with the joint counts."""
        joint, leads, layout = take_counts(arrays), take_counts(arrays, "leads_"), self.space.layout
        self.leads.from_arrays(leads, most_code=self.space.n_states * self.n_actions)
        values = (joint["codes"][:, None] & layout.masks) >> layout.shifts
        there = np.stack([values @ layout.strides, np.repeat(joint["keys"], joint["lengths"])])
        back = np.stack([np.repeat(leads["keys"], leads["lengths"]), leads["codes"]])
        if not np.array_equal(there[:, np.lexsort(there)], back[:, np.lexsort(back)]) or (leads["units"] != 1).any():
            raise ValueError("the planner's ways back are not those of the counts")
        if not self.table.left[joint["keys"] // self.n_actions].all():
            raise ValueError("the counts name a state that the planner has not visited")

    def _fill_queue(self, arrays: Arrays) -> None:
        """Read the queue, and the planner's position in it."""
        table = self.table
        queue = take(arrays, "plan_queue", "int64", (int(table.at[QUEUED]),), 0, self.space.n_states - 1)
        if np.unique(queue).size != queue.size or not table.left[queue].all():
            raise ValueError("the planner's queue names a state twice, or one that it has not visited")
        table.queue[: queue.size] = queue
        table.place[queue] = np.arange(1, queue.size + 1)
        priority = take(arrays, "plan_priority", "float64", queue.shape, 0, 2 * MOST_VALUE)
        table.priority[queue] = priority
        above = (np.arange(1, queue.size) - 1) // 2
        if (priority[above] < priority[1:]).any():
            raise ValueError("the planner's queue is not in order")
        now, leads = table.at[OPEN], table.leads
        if now >= 0 and not (table.left[now] and table.at[ENTRY] <= leads.length[leads.head[now]]):
            raise ValueError("the planner stands beyond the ways back to a state")
