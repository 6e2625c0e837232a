"""The tables of outcomes and patterns that `evidence` reads, and how they are saved and loaded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import MOST_OUTCOMES, Evidence
from lacuna.agent.methods import EvidenceSource, method_named
from lacuna.agent.models.evidence import LEAST_WEIGHT, MOST_WEIGHT
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.savefile import Arrays, rows_of, sparse, take, take_counts, take_sparse
from lacuna.agent.settings import Settings
from lacuna.kernels.counts import MAX_COUNT, Counts, FirstRoom, count_bytes
from lacuna.kernels.space import MISSING, Layout, Space

ROUNDED = 1.001
"""Sums of the same numbers in another order differ by less than this factor."""

ARRAYS = (
    "evidence_outcomes",
    *(f"evidence_{name}{kind}" for name in ("told", "arrived") for kind in ("_entries", "")),
    "evidence_known",
    "evidence_weight",
    *(f"pattern_{name}" for name in ("keys", "lengths", "codes", "units")),
)
"""The names of the arrays that `Arrivals.to_arrays` gives."""


def kept_of(settings: Settings) -> EvidenceSource:
    """What a learner keeps in `Arrivals`. A planner keeps outcomes in its own tables."""
    return settings.sources & (EvidenceSource.PATTERNS if method_named(settings.method).plans else EvidenceSource.ALL)


class Arrivals:
    """Counts of outcomes and patterns: an `Evidence` whose tables can grow.

    Parameters
    ----------
    space, K
        Space and number of pathways of the learner.
    kept
        Which evidence to count.
    first
        Initial room of the counts.
    """

    def __init__(self, space: Space, K: int, kept: EvidenceSource, first: FirstRoom | None = None) -> None:
        self.space, self.kept = space, kept
        n, n_outcomes, rows = _shape(space, kept)
        self.patterns = Counts(Space((rows,)), 1, first=first)
        self._blank = Evidence(
            np.zeros((n_outcomes, 3)), np.zeros((n, n_outcomes)), np.zeros(n), np.zeros(2, dtype=np.int64),
            self.patterns.table, np.ones(1), np.full(space.d, MISSING, dtype=np.int64), np.zeros(K, dtype=np.int64),
        )  # fmt: skip

    @staticmethod
    def nbytes(space: Space, K: int, kept: EvidenceSource) -> int:
        """Bytes that the tables take if every state is visited."""
        n, n_outcomes, rows = _shape(space, kept)
        return 8 * (3 * n_outcomes + n * (n_outcomes + 1) + 3 + space.d + K) + count_bytes(rows, 1)

    @property
    def table(self) -> Evidence:
        """The memory as kernels see it."""
        return self._blank._replace(patterns=self.patterns.table)

    def make_room(self) -> None:
        """Make room for the counts of one step."""
        self.patterns.need(2)

    def to_arrays(self) -> Arrays:
        """The complete state as arrays, for a file."""
        table = self._blank
        arrays: Arrays = {"evidence_outcomes": table.outcomes}
        arrays |= sparse(table.told, "evidence_told") | sparse(table.arrived, "evidence_arrived")
        arrays |= {"evidence_known": table.known, "evidence_weight": table.weight}
        return arrays | self.patterns.to_arrays("pattern_")

    def from_arrays(self, arrays: Arrays, taught: int, credited: int) -> None:
        """Load what `to_arrays` gave after `taught` and `credited` steps; refuse values that no run could leave."""
        table = self._blank
        most = np.array([table.outcomes.shape[0], MAX_COUNT])
        table.known[:] = take(arrays, "evidence_known", "int64", (2,), 0, most)
        if table.known[1] != (credited if EvidenceSource.OUTCOMES in self.kept else 0):
            raise ValueError(f"the evidence counts {table.known[1]} steps credited; there were {credited}")
        take_sparse(table.arrived, arrays, "evidence_arrived", 0, MAX_COUNT)
        fill_outcomes("evidence", arrays, table.outcomes, table.told, table.arrived, table.known)
        table.weight[:] = take(arrays, "evidence_weight", "float64", (1,), LEAST_WEIGHT, MOST_WEIGHT)
        self._fill_patterns(arrays, taught if EvidenceSource.PATTERNS in self.kept else 0)

    def _fill_patterns(self, arrays: Arrays, steps: int) -> None:
        """Load the patterns. Every step counted its pattern twice: for one state, and for all of them."""
        rows, last = take_counts(arrays, "pattern_"), self.patterns.table.head.shape[0] - 1
        self.patterns.from_arrays(rows, most_code=np.iinfo(np.int64).max)
        if not _are_patterns(rows["codes"], self.space.layout):
            raise ValueError("the pattern counts name a pattern that hides only some bits of a component")
        of_all = np.repeat(rows["keys"], rows["lengths"]) == last
        codes, units = rows["codes"], rows["units"]
        found, places = np.unique(codes, return_inverse=True)
        sums = np.zeros((2, found.size), dtype=np.int64)
        np.add.at(sums, (of_all.astype(np.int64), places.reshape(-1)), units)
        if sums[1].sum() != steps or (sums[0] != sums[1]).any():
            raise ValueError(f"the pattern counts are not those of {steps} steps")


def _shape(space: Space, kept: EvidenceSource) -> tuple[int, int, int]:
    """Rows and columns of the table of outcomes, and rows of patterns: one for every state and one for all of them."""
    n, n_outcomes = (space.n_states, MOST_OUTCOMES) if EvidenceSource.OUTCOMES in kept else (0, 0)
    return n, n_outcomes, 1 + space.n_states if EvidenceSource.PATTERNS in kept else 1


def _are_patterns(codes: NDArray[np.int64], layout: Layout) -> bool:
    """Whether each code is all the bits of some components."""
    rebuilt = np.zeros_like(codes)
    for mask in layout.masks:
        rebuilt |= np.where(codes & mask == mask, mask, 0)
    return bool((rebuilt == codes).all())


def fill_outcomes(
    name: str, arrays: Arrays, outcomes: NDArray[np.float64], told: NDArray[np.float64],
    arrived: NDArray[np.float64], counted: NDArray[np.int64],
) -> None:  # fmt: skip
    """Load outcomes and where they came; refuse impossible ones. `counted` holds the numbers of outcomes and steps."""
    known, credited = counted
    outcomes[:] = take(arrays, f"{name}_outcomes", "float64", outcomes.shape, -MAX_REWARD, MAX_REWARD)
    reward, ended, times = outcomes[:known].T
    distinct = len({*zip(reward, ended, strict=True)}) == known and np.isin(ended, (0, 1)).all()
    possible = (times >= 1).all() and (times % 1 == 0).all() and times.sum() <= credited
    if not (distinct and possible) or outcomes[known:].any():
        raise ValueError(f"{name}_outcomes holds outcomes that {credited} steps cannot give")
    entries = take_sparse(told, arrays, f"{name}_told", 0, MAX_COUNT)
    rows = rows_of(entries, MOST_OUTCOMES)
    if (entries % MOST_OUTCOMES >= known).any() or (told[rows].sum(axis=1) > ROUNDED * arrived[rows]).any():
        raise ValueError(f"{name}_told counts more outcomes than arrivals")
