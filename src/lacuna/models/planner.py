"""The memory of a learner that plans: tables that grow, and how they are saved and read back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.counts import MAX_COUNT, Counts, count_bytes
from lacuna.kernels.space import Space
from lacuna.methods.memory import (
    AGREEMENT,
    CREDITED,
    CURSOR,
    ENDINGS,
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
from lacuna.methods.qlearning import MAX_REWARD
from lacuna.methods.savefile import Arrays, take, take_counts
from lacuna.models.factored_model import FactoredModel

_MOST_VALUE = 1000 * MAX_REWARD
"""A value is at most a reward over 1 - γ', with γ' at most .99; optimism may add as much again."""

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


class Planner:
    """What a planner remembers: the growing memory around a `PlanTable`.

    Parameters
    ----------
    space, n_actions
        What it plans in.
    K
        Number of pathways.
    """

    def __init__(self, space: Space, n_actions: int, K: int) -> None:
        n = space.n_states
        self.space, self.n_actions = space, n_actions
        self.model = FactoredModel(space, n_actions, K)
        self.leads = Counts(Space((n,)), 1)
        # Zeros from the operating system take no memory until touched, so tables cost what was visited.
        levels = np.zeros(7)
        levels[AGREEMENT] = 1.0
        at = np.zeros(10, dtype=np.int64)
        at[OPEN] = -1
        visited, queue, place, tally = (np.zeros(n, dtype=np.int64) for _ in range(4))
        self._blank = PlanTable(
            self.model.table, self.leads.table, np.zeros((n, n_actions)), np.zeros((n, n_actions, 3)), np.zeros((n, 3)),
            np.zeros((n, 4)), np.zeros((MOST_OUTCOMES, 3)), np.zeros((n, MOST_OUTCOMES)),
            np.zeros(n, dtype=np.bool_), visited, queue, place, np.zeros(n), levels, at, tally,
            np.zeros(K, dtype=np.int64),
        )  # fmt: skip

    @staticmethod
    def nbytes(space: Space, n_actions: int) -> int:
        """Memory that the tables of a planner may take, if every state is visited."""
        each = 4 * n_actions + 3 + 4 + MOST_OUTCOMES + 5 + 1
        return 8 * each * space.n_states + count_bytes(space.n_states, 1) + FactoredModel.nbytes(space, n_actions)

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
            flat = getattr(table, name).reshape(-1)
            arrays[f"plan_{name}_entries"] = np.flatnonzero(flat)
            arrays[f"plan_{name}"] = flat[arrays[f"plan_{name}_entries"]]
        queue = table.queue[: table.at[QUEUED]]
        arrays |= {"plan_outcomes": table.outcomes, "plan_levels": table.levels}
        arrays |= {"plan_visited": table.visited[: table.at[VISITED]], "plan_queue": queue, "plan_at": table.at}
        arrays |= {"plan_priority": table.priority[queue]}
        leads = {f"leads_{name}": array for name, array in self.leads.to_arrays().items()}
        return arrays | leads | self.model.to_arrays()

    def from_arrays(self, arrays: Arrays, Q: NDArray[np.float64]) -> None:
        """Fill a blank memory from what `to_arrays` gave and from the values Q, whatever the file says."""
        table, n, A = self.table, self.space.n_states, self.n_actions
        most = MAX_COUNT * MAX_REWARD
        for name, low, high in (
            ("tried", 0, MAX_COUNT), ("taken", -most, most), ("arrived", -most, most), ("told", 0, most),
        ):  # fmt: skip
            flat = getattr(table, name).reshape(-1)
            entries = take_entries(arrays, f"plan_{name}_entries", flat.size)
            flat[entries] = take(arrays, f"plan_{name}", "float64", entries.shape, low, high)
        for name in ("taken", "arrived"):
            weight, endings = getattr(table, name)[..., 1], getattr(table, name)[..., 2]
            if (weight < 0).any() or (endings < 0).any() or (endings > weight * 1.000001 + 1e-9).any():
                raise ValueError(f"plan_{name} holds weights or endings that no steps could have left")
        table.outcomes[:] = take(arrays, "plan_outcomes", "float64", table.outcomes.shape, -MAX_REWARD, MAX_REWARD)
        self._fill_places(arrays)
        self.leads.from_arrays(take_counts(arrays, "leads_"), most_code=n * A)
        self.model.from_arrays(arrays)
        table.ahead[table.visited[: table.at[VISITED]], 0] = Q[table.visited[: table.at[VISITED]]].max(axis=1)
        reached = np.flatnonzero(table.arrived[:, 1] > 0)
        table.ahead[reached, 1] = 1.0
        table.ahead[reached, 2] = table.arrived[reached, 0] / table.arrived[reached, 1]
        table.ahead[reached, 3] = table.arrived[reached, 2] / table.arrived[reached, 1]

    def _fill_places(self, arrays: Arrays) -> None:
        """Read the single numbers, the visited states and the queue."""
        table, n, A = self.table, self.space.n_states, self.n_actions
        low, high = np.zeros(7), np.full(7, _MOST_VALUE)
        high[[AGREEMENT, IMPATIENCE]], high[[HIGHEST, LARGEST]] = 1.0, MAX_REWARD
        table.levels[:] = take(arrays, "plan_levels", "float64", (7,), low, high)
        least, most = np.zeros(10, dtype=np.int64), np.full(10, MAX_COUNT, dtype=np.int64)
        least[OPEN], most[OPEN], most[OUTCOMES] = -1, n - 1, MOST_OUTCOMES
        most[QUEUED] = most[VISITED] = n
        table.at[:] = take(arrays, "plan_at", "int64", (10,), least, most)
        visited = take(arrays, "plan_visited", "int64", (int(table.at[VISITED]),), 0, n - 1)
        queue = take(arrays, "plan_queue", "int64", (int(table.at[QUEUED]),), 0, n - 1)
        if np.unique(visited).size != visited.size or np.unique(queue).size != queue.size:
            raise ValueError("the planner's list of visited states, or its queue, names a state twice")
        if table.at[CURSOR] > visited.size * A or (table.at[STEPS] > 0 and not visited.size):
            raise ValueError("the planner stands beyond the states it has visited")
        if table.at[ENDINGS] + table.at[WAIT] > table.at[CREDITED]:
            raise ValueError("the planner counts more endings, or waits longer, than it has steps")
        known = table.outcomes[: table.at[OUTCOMES]]
        if (known[:, 2] < 1).any() or known[:, 2].sum() > table.at[CREDITED] or table.outcomes[len(known) :].any():
            raise ValueError("the planner's outcomes are none that its steps could have left")
        table.visited[: visited.size] = visited
        table.left[visited] = True
        table.queue[: queue.size] = queue
        table.place[queue] = np.arange(1, queue.size + 1)
        priority = take(arrays, "plan_priority", "float64", queue.shape, 0, 2 * _MOST_VALUE)
        table.priority[queue] = priority
        above = (np.arange(1, queue.size) - 1) // 2
        if (priority[above] < priority[1:]).any():
            raise ValueError("the planner's queue is not in order")


def take_entries(arrays: Arrays, name: str, size: int) -> NDArray[np.int64]:
    """Places in a table of this size, each at most once."""
    entries = take(arrays, name, "int64", (None,), 0, size - 1)
    if (entries[1:] <= entries[:-1]).any():
        raise ValueError(f"{name} is not in order, or names a place twice")
    return entries
