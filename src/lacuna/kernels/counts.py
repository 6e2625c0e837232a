"""Transition counts that grow with what was seen: every (state, action) owns a short, contiguous row of successors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import unpack
from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.space import Layout, Space

Whole = TypeVar("Whole", np.int64, np.uint64)

_FIRST_ROOM = 4
_ONE = np.uint64(1)

MAX_COUNT = 2**53
"""Steps and counted units up to this are exact as floats."""


class FirstRoom(NamedTuple):
    """How many rows and entries counts have room for before the first transition; no result depends on it."""

    rows: int
    entries: int


ROOMY = FirstRoom(2048, 1 << 15)
"""Room for a small world from the start: to ask for more later takes longer than a thousand steps."""

TIGHT = FirstRoom(16, 64)
"""For counts of which there are thousands."""


class CountTable(NamedTuple):
    """The counts as kernels see them.

    ``head[s*A + a]`` is the number of the row of ``(s, a)``, 0 if it was never seen. The successors of row `i`, most
    frequent first, are the entries ``start[i] : start[i] + length[i]`` of `code` and `n`; ``total[i]`` is their sum;
    ``room[i]`` entries are reserved. ``used`` holds the rows in use, the entries in use and the longest row. Counts are
    whole *units* (one unit is 1/K for the paper's synthetic model), so that sums are exact in any order. Indices are
    unsigned: none can count from the end, so the compiler drops a test and reads several entries at once.
    """

    head: NDArray[np.uint32]
    start: NDArray[np.uint64]
    length: NDArray[np.uint64]
    room: NDArray[np.uint64]
    total: NDArray[np.int64]
    code: NDArray[np.int64]
    n: NDArray[np.int64]
    used: NDArray[np.uint64]


@kernel
def has_room(K: int, counts: CountTable) -> bool:
    """Whether `K` more transitions fit into the memory reserved."""
    rows, entries, longest = counts.used
    many = np.uint64(K)
    if rows + many + _ONE > counts.start.shape[0]:
        return False
    # A row that grows from L to L + m entries takes at most 4 (L + m) new ones on the way; a new row a few.
    growth = many * (np.uint64(4) * (longest + _ONE) + np.uint64(_FIRST_ROOM))
    return bool(entries + growth <= counts.code.shape[0])


@kernel
def add(key: int, code: int, units: int, entry: np.uint64, counts: CountTable) -> tuple[int, int]:
    """Count `units` transitions from row `key` (``s*A + a``) to the state with this code.

    `entry` is where the code was last seen: usually it is still there. Gives the units that this state, and the whole
    row, had before.
    """
    i = counts.head[key]
    if i == 0:
        i = start_row(key, counts)
    first, end = counts.start[i], counts.start[i] + counts.length[i]
    if entry < first or entry >= end or counts.code[entry] != code:
        entry = end
        for e in range(first, end):
            if counts.code[e] == code:
                entry = np.uint64(e)
                break
    if entry == end:
        if counts.length[i] == counts.room[i]:
            move_to_end(i, counts)
        first, entry = counts.start[i], counts.start[i] + counts.length[i]
        counts.n[entry] = 0
        counts.length[i] += _ONE
        counts.used[2] = max(counts.used[2], counts.length[i])
    before, total = counts.n[entry], counts.total[i]
    # Let it pass those with fewer units: draws then find the frequent ones early.
    now = before + units
    while entry > first and counts.n[entry - _ONE] < now:
        counts.code[entry], counts.n[entry] = counts.code[entry - _ONE], counts.n[entry - _ONE]
        entry -= _ONE
    counts.code[entry], counts.n[entry] = code, now
    counts.total[i] = total + units
    return before, total


@inner
def start_row(key: int, counts: CountTable) -> np.uint32:
    """Open an empty row."""
    counts.used[0] += _ONE
    i = np.uint32(counts.used[0])
    counts.head[key] = i
    counts.start[i] = counts.used[1]
    counts.length[i] = 0
    counts.room[i] = _FIRST_ROOM
    counts.used[1] += np.uint64(_FIRST_ROOM)
    return i


@inner
def move_to_end(i: np.uint32, counts: CountTable) -> None:
    """Move a full row to the end, with twice the room; the space left behind is at most as large."""
    shift = counts.used[1] - counts.start[i]
    for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
        counts.code[np.uint64(entry) + shift] = counts.code[entry]
        counts.n[np.uint64(entry) + shift] = counts.n[entry]
    counts.start[i] += shift
    counts.room[i] += counts.room[i]
    counts.used[1] += counts.room[i]


def count_bytes(n_states: int, n_actions: int) -> int:
    """Memory that empty counts may take: rows, entries, and `head`, whose pages are taken as states are visited."""
    return 4 * n_states * n_actions + 8 * (4 * ROOMY.rows + 2 * ROOMY.entries + 3)


class Counts:
    """Transition counts of a space: the growing memory around a `CountTable`.

    With several `models` there are counts for each: model m has the rows of state ``m * n_states + s``.

    Examples
    --------
    >>> counts = Counts(Space((2, 3)), n_actions=2, unit=0.5)
    >>> counts.need(1)
    >>> before, total = add(key=0 * 2 + 1, code=5, units=2, entry=np.uint64(0), counts=counts.table)
    >>> dict(counts)
    {(0, 1, 4): 1.0}
    """

    def __init__(
        self, space: Space, n_actions: int, unit: float = 1.0, first: FirstRoom | None = None, *, models: int = 1
    ) -> None:
        self.first = first = first or ROOMY
        self.space = space
        self.n_actions = n_actions
        self.unit = unit
        # Zeros from the operating system take no memory until touched, so `head` costs what was visited.
        head = np.zeros(models * space.n_states * n_actions, dtype=np.uint32)
        start, length, room = (np.zeros(first.rows, dtype=np.uint64) for _ in range(3))
        total = np.zeros(first.rows, dtype=np.int64)
        code, n = (np.zeros(first.entries, dtype=np.int64) for _ in range(2))
        self.table = CountTable(head, start, length, room, total, code, n, np.zeros(3, dtype=np.uint64))

    def need(self, K: int) -> None:
        """Make sure that `K` more transitions fit."""
        while not has_room(K, self.table):
            t = self.table
            start, length, room = (_padded(array, 2 * array.shape[0]) for array in (t.start, t.length, t.room))
            total, code, n = (_padded(array, 2 * array.shape[0]) for array in (t.total, t.code, t.n))
            self.table = CountTable(t.head, start, length, room, total, code, n, t.used)

    def __len__(self) -> int:
        return int(self.table.length.sum())

    def __iter__(self) -> Iterator[tuple[tuple[int, int, int], float]]:
        """All ``((state, action, successor), count)`` seen, rows in the order of model, state and action."""
        t, layout = self.table, self.space.layout
        for key in np.flatnonzero(t.head):
            i = t.head[key]
            s, a = divmod(int(key) % (self.space.n_states * self.n_actions), self.n_actions)
            for entry in range(t.start[i], t.start[i] + t.length[i]):
                yield (s, a, int(unpack(t.code[entry], layout))), float(t.n[entry]) * self.unit

    @property
    def nbytes(self) -> int:
        """Memory of the rows and entries in use; `head` is four bytes per state and action on top."""
        rows, entries, _ = (int(x) for x in self.table.used)
        return 8 * (4 * rows + 2 * entries)

    def to_arrays(self, prefix: str = "") -> dict[str, NDArray[np.int64]]:
        """The rows as flat arrays, for a file: keys, lengths, codes and units, their names with this prefix."""
        t = self.table
        keys = np.flatnonzero(t.head)
        rows = t.head[keys]
        lengths = t.length[rows].astype(np.int64)
        ends = np.cumsum(lengths)
        flat = np.arange(lengths.sum()) + np.repeat(t.start[rows].astype(np.int64) - (ends - lengths), lengths)
        arrays = {"keys": keys, "lengths": lengths, "codes": t.code[flat], "units": t.n[flat]}
        return {prefix + name: array for name, array in arrays.items()}

    def from_arrays(
        self, arrays: dict[str, NDArray[np.int64]], *, most_code: int | None = None, most_units: int = MAX_COUNT
    ) -> None:
        """Fill empty counts from what `to_arrays` gave; the order of successors, on which draws depend, is kept.

        Codes are those of states, or whole numbers below `most_code`. Units add up to at most `most_units`.
        """
        keys, lengths, codes, units = (arrays[name] for name in ("keys", "lengths", "codes", "units"))
        _check_rows(keys, lengths, codes, units)
        if (units < 1).any() or units.sum(dtype=np.float64) > most_units:
            raise ValueError(f"the counts hold one below 1, or add up to more than {most_units}")
        if keys.size and not (keys[0] >= 0 and keys[-1] < self.table.head.shape[0]):
            raise ValueError("the counts name a state or action outside the space")
        valid = (
            _codes_valid(codes, self.space.layout) if most_code is None else ((codes >= 0) & (codes < most_code)).all()
        )
        if not valid:
            raise ValueError("the counts name a successor outside the space")
        rows = max(self.first.rows, keys.shape[0] + 1)
        entries = max(self.first.entries, codes.shape[0])
        length = _padded(np.append(0, lengths).astype(np.uint64), rows)
        sums = np.append(0, np.cumsum(units))[np.append(0, np.cumsum(lengths))]
        self.table.head[keys] = np.arange(1, keys.shape[0] + 1)
        self.table = CountTable(
            self.table.head,
            start=np.cumsum(length) - length,
            length=length,
            room=length.copy(),
            total=_padded(np.append(0, np.diff(sums)), rows),
            code=_padded(codes, entries),
            n=_padded(units, entries),
            used=np.array([keys.shape[0], codes.shape[0], lengths.max(initial=0)], dtype=np.uint64),
        )


def _check_rows(
    keys: NDArray[np.int64], lengths: NDArray[np.int64], codes: NDArray[np.int64], units: NDArray[np.int64]
) -> None:
    """Refuse rows that counting could not have left."""
    if keys.shape != lengths.shape or codes.shape != units.shape:
        raise ValueError("the rows of the counts do not fit together")
    # Each length before their sum, which could wrap.
    if ((lengths < 1) | (lengths > codes.shape[0])).any() or lengths.sum() != codes.shape[0]:
        raise ValueError("the lengths of the rows of the counts do not add up to their entries")
    if (keys[1:] <= keys[:-1]).any():
        raise ValueError("the rows of the counts are not in order, or one is there twice")
    row = np.repeat(np.arange(keys.shape[0]), lengths)
    if ((units[1:] > units[:-1]) & (row[1:] == row[:-1])).any():
        raise ValueError("a row of the counts does not begin with its most frequent successor")
    order = np.lexsort((codes, row))
    if ((np.diff(codes[order]) == 0) & (np.diff(row[order]) == 0)).any():
        raise ValueError("a row of the counts names a successor twice")


def _codes_valid(codes: NDArray[np.int64], layout: Layout) -> bool:
    if (codes < 0).any():
        return False
    rebuilt = np.zeros_like(codes)
    for size, mask, shift in zip(layout.sizes, layout.masks, layout.shifts, strict=True):
        if ((codes & mask) >> shift >= size).any():
            return False
        rebuilt |= codes & mask
    return bool((rebuilt == codes).all())


def _padded(array: NDArray[Whole], length: int) -> NDArray[Whole]:
    padded = np.zeros(length, dtype=array.dtype)
    padded[: array.shape[0]] = array
    return padded
