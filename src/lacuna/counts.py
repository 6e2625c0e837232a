"""Transition counts that grow with what was seen: every (state, action) owns a short, contiguous row of successors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.compiled import kernel
from lacuna.space import Layout, Space, unpack

_FIRST_ROWS, _FIRST_ENTRIES, _FIRST_ROOM = 64, 1024, 4


class CountTable(NamedTuple):
    """The counts as kernels see them.

    ``head[s*A + a]`` is one more than the number of the row of ``(s, a)``, 0 if it was never seen. The successors of
    row `i`, most frequent first, are the entries ``start[i] : start[i] + length[i]`` of `code` and `n`; ``room[i]``
    entries are reserved. ``used`` holds the rows in use, the entries in use and the longest row.
    Counts are whole *units* (one unit is 1/K for the paper's synthetic model), so that sums are exact in any order.
    """

    head: NDArray[np.int32]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    room: NDArray[np.int64]
    code: NDArray[np.int64]
    n: NDArray[np.int64]
    used: NDArray[np.int64]


@kernel
def has_room(K: int, counts: CountTable) -> bool:
    """Whether `K` more transitions fit into the memory reserved."""
    rows, entries, longest = counts.used
    if rows + K > counts.start.shape[0]:
        return False
    return bool(entries + K * (2 * (longest + K) + _FIRST_ROOM) <= counts.code.shape[0])


@kernel
def add(key: int, code: int, units: int, slot: int, counts: CountTable) -> None:
    """Count `units` transitions from row `key` (``s*A + a``) to the state with this code.

    `slot` is the place in the row where the code was last seen: usually it is still there.
    """
    i = counts.head[key] - 1
    if i < 0:
        i = counts.used[0]
        counts.used[0] += 1
        counts.head[key] = i + 1
        counts.start[i] = counts.used[1]
        counts.length[i] = 0
        counts.room[i] = _FIRST_ROOM
        counts.used[1] += _FIRST_ROOM
    first, length = counts.start[i], counts.length[i]
    known = counts.code[first : first + length]
    place = slot
    if place >= length or known[place] != code:
        place = 0
        while place < length and known[place] != code:
            place += 1
    if place == length:
        if length == counts.room[i]:
            move_to_end(i, counts)
        first = counts.start[i]
        counts.n[first + length] = 0
        counts.length[i] = length + 1
        counts.used[2] = max(counts.used[2], length + 1)
    put_in_order(first, place, code, units, counts)


@kernel
def move_to_end(i: int, counts: CountTable) -> None:
    """Give a full row twice the room, at the end; what it leaves behind is at most as much as it takes."""
    first, length, end = counts.start[i], counts.length[i], counts.used[1]
    for place in range(length):
        counts.code[end + place] = counts.code[first + place]
        counts.n[end + place] = counts.n[first + place]
    counts.start[i] = end
    counts.room[i] = 2 * length
    counts.used[1] += 2 * length


@kernel
def put_in_order(first: int, place: int, code: int, units: int, counts: CountTable) -> None:
    """Add to the successor at `place`, then let it pass those with fewer units: draws find the frequent ones early."""
    codes, n = counts.code[first : first + place + 1], counts.n[first : first + place + 1]
    total = n[place] + units
    while place > 0 and n[place - 1] < total:
        codes[place], n[place] = codes[place - 1], n[place - 1]
        place -= 1
    codes[place], n[place] = code, total


class Counts:
    """Transition counts of a space: the growing memory around a `CountTable`.

    Examples
    --------
    >>> counts = Counts(Space((2, 3)), n_actions=2, unit=0.5)
    >>> counts.add(state=0, action=1, successor=5)
    >>> counts.add(state=0, action=1, successor=5)
    >>> dict(counts)
    {(0, 1, 5): 1.0}
    """

    def __init__(self, space: Space, n_actions: int, unit: float = 1.0) -> None:
        self.space = space
        self.n_actions = n_actions
        self.unit = unit
        # Zeros from the operating system take no memory until touched, so `head` costs what was visited.
        head = np.zeros(space.n_states * n_actions, dtype=np.int32)
        start, length, room = (np.zeros(_FIRST_ROWS, dtype=np.int64) for _ in range(3))
        code, n = (np.zeros(_FIRST_ENTRIES, dtype=np.int64) for _ in range(2))
        self.table = CountTable(head, start, length, room, code, n, np.zeros(3, dtype=np.int64))

    def need(self, K: int) -> None:
        """Make sure that `K` more transitions fit."""
        while not has_room(K, self.table):
            t = self.table
            old = (t.start, t.length, t.room, t.code, t.n)
            start, length, room, code, n = (_padded(array, 2 * array.shape[0]) for array in old)
            self.table = CountTable(t.head, start, length, room, code, n, t.used)

    def add(self, state: int, action: int, successor: int, units: int = 1) -> None:
        """Count one transition (`units` times the unit)."""
        self.need(1)
        add(state * self.n_actions + action, _code(successor, self.space), units, 0, self.table)

    def __len__(self) -> int:
        return int(self.table.length[: self.table.used[0]].sum())

    def __iter__(self) -> Iterator[tuple[tuple[int, int, int], float]]:
        """All ``((state, action, successor), count)`` seen, rows in the order of state and action."""
        t, layout = self.table, self.space.layout
        for key in np.flatnonzero(t.head):
            i = t.head[key] - 1
            s, a = divmod(int(key), self.n_actions)
            for entry in range(t.start[i], t.start[i] + t.length[i]):
                yield (s, a, int(unpack(t.code[entry], layout))), float(t.n[entry]) * self.unit

    @property
    def nbytes(self) -> int:
        """Memory of the rows and entries in use; `head` is four bytes per state and action on top."""
        rows, entries, _ = (int(x) for x in self.table.used)
        return 8 * (3 * rows + 2 * entries)

    def to_arrays(self) -> dict[str, NDArray[np.int64]]:
        """The rows as flat arrays, for a file: keys, lengths, codes and units."""
        t = self.table
        keys = np.flatnonzero(t.head)
        rows = t.head[keys] - 1
        entries = [np.arange(t.start[i], t.start[i] + t.length[i]) for i in rows]
        flat = np.concatenate(entries) if entries else np.zeros(0, dtype=np.int64)
        return {"keys": keys, "lengths": t.length[rows], "codes": t.code[flat], "units": t.n[flat]}

    def from_arrays(self, arrays: dict[str, NDArray[np.int64]]) -> None:
        """Fill empty counts from what `to_arrays` gave; the order of successors, on which draws depend, is kept."""
        keys, lengths, codes, units = (arrays[name] for name in ("keys", "lengths", "codes", "units"))
        if codes.shape != units.shape or keys.shape != lengths.shape or lengths.sum() != codes.shape[0]:
            raise ValueError("the rows of the counts do not fit together")
        if keys.size and not (keys.min() >= 0 and keys.max() < self.table.head.shape[0]):
            raise ValueError("the counts name a state or action outside the space")
        if codes.size and not _codes_valid(codes, self.space.layout):
            raise ValueError("the counts name a successor outside the space")
        if (lengths < 1).any() or (units < 1).any():
            raise ValueError("the counts hold an empty row or a count below 1")
        rows = max(_FIRST_ROWS, keys.shape[0])
        entries = max(_FIRST_ENTRIES, codes.shape[0])
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.table.head[keys] = np.arange(1, keys.shape[0] + 1)
        self.table = CountTable(
            self.table.head,
            start=_padded(start[:-1], rows),
            length=_padded(lengths, rows),
            room=_padded(lengths, rows),
            code=_padded(codes, entries),
            n=_padded(units, entries),
            used=np.array([keys.shape[0], codes.shape[0], lengths.max(initial=0)], dtype=np.int64),
        )


def _code(index: int, space: Space) -> int:
    values = space.decode(index)
    return sum(value << int(shift) for value, shift in zip(values, space.layout.shifts, strict=True))


def _codes_valid(codes: NDArray[np.int64], layout: Layout) -> bool:
    values = (codes[:, None] & layout.masks) >> layout.shifts
    rebuilt = (values << layout.shifts).sum(axis=1)
    return bool((codes >= 0).all() and (rebuilt == codes).all() and (values < layout.sizes).all())


def _padded(array: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    padded = np.zeros(length, dtype=np.int64)
    padded[: array.shape[0]] = array
    return padded
