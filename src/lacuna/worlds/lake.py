"""Lake World: a grid with a lake that floods, wind, and a colour that warns of water."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.space import Space
from lacuna.validation import number, whole_number
from lacuna.worlds.mdp.tabular import MAX_STEPS, TabularMDP
from lacuna.worlds.registry import world

PAPER_MAP = """
........
........
..wwww..
..wWWw..
..wWWw..
..wWWw..
.......G
S.wWWw..
"""
"""The lake of the paper: `.` land, `W` water, `w` water when flooded, `S` start, `G` goal."""

MOVES = {
    "up": (-1, 0), "up-right": (-1, 1), "right": (0, 1), "down-right": (1, 1),
    "down": (1, 0), "down-left": (1, -1), "left": (0, -1), "up-left": (-1, -1), "stay": (0, 0),
}  # fmt: skip
"""The actions in their order, as steps in rows and columns; the last one only with ``stay=True``."""

COLOURS = ("green", "orange", "red")
"""The colours in the order of their numbers: none, one or both of a cell and its right neighbour are water."""

_SIGNS = {".": "land", "W": "water", "w": "water when flooded", "S": "start", "G": "goal"}
_FOG_SIGNS = {".": "clear", "#": "fog"}


class Rewards(NamedTuple):
    """What an arrival pays, by what is there under the map in force."""

    land: float = -1.0
    water: float = -10.0
    goal: float = 100.0


_PAPER_REWARDS = Rewards()


class Ground(NamedTuple):
    """A map as arrays: which cells are water, and where episodes start and end."""

    water: NDArray[np.bool_]
    """Shape ``[2, rows, columns]``: the dry map, then the flooded one."""
    start: tuple[int, int]
    goal: tuple[int, int]

    @property
    def colour(self) -> NDArray[np.int64]:
        """Shape ``[2, rows, columns]``: how many of a cell and its right neighbour are water (the last is its own)."""
        right = np.concatenate([self.water[:, :, 1:], self.water[:, :, -1:]], axis=2)
        count: NDArray[np.int64] = self.water.astype(np.int64) + right
        return count


@world("lake", "lacuna/Lake-v0", "the paper's grid with a lake that floods, wind, and a colour that warns of water")
@dataclass(frozen=True)
class Lake:
    """Lake World with all its parameters; the defaults are the paper's.

    The true state ``(row*n_columns + column)*2 + flooded`` shows ``(row, column, colour)``. In a step the flood may
    come or go, then the agent moves, then the wind blows. The reward depends on the cell reached, as the flood has left
    it. The flood carries on across episodes; a fresh world is flooded.

    Parameters
    ----------
    map
        The map as text, a line per row: ``.`` land, ``W`` water, ``w`` water when flooded, ``S`` start, ``G`` goal.
    fog
        Where the fog is: text of the same shape (``#`` fog, ``.`` clear), or ``(first row, last row, first column,
        last column)``; by default the three by three cells of the top right corner.
    wind
        Probability that the wind blows, for rows and for columns.
    flood
        Probability that the flood comes or goes in a step.
    stay
        Whether staying in place is a ninth action.
    continuing
        False: the goal ends the episode. True: it is only counted, and the next step is taken from the start.
    rewards
        What an arrival pays: on land, in water, at the goal.
    max_steps
        Episodes longer than this are truncated; 0 for never.

    Examples
    --------
    >>> lake = Lake(wind=0.0, flood=0.0)
    >>> world = lake.mdp()
    >>> world.n_states, world.n_actions, world.space.sizes
    (128, 8, (8, 8, 3))
    >>> start = lake.state(7, 0, flooded=True)
    >>> world.outcomes(start, world.action_names.index("right"))
    [(1.0, 115, -1.0, False)]
    >>> lake.place(115)
    (7, 1, True)
    """

    map: str = PAPER_MAP
    fog: str | tuple[int, int, int, int] | None = None
    wind: float = 0.1
    flood: float = 0.1
    stay: bool = False
    continuing: bool = False
    rewards: tuple[float, float, float] = _PAPER_REWARDS
    max_steps: int = 0

    def __post_init__(self) -> None:
        for what in ("wind", "flood"):
            number(what, getattr(self, what), 0, 1)
        if len(self.rewards) != 3:
            raise ValueError(f"rewards are {self.rewards}; there must be 3: land, water, goal")
        object.__setattr__(self, "rewards", Rewards(*map(float, self.rewards)))
        for what, value in Rewards(*self.rewards)._asdict().items():
            if not isfinite(value):
                raise ValueError(f"the reward for {what} is {value}; it must be a finite number")
        whole_number("max_steps", self.max_steps, 0, MAX_STEPS)
        if not isinstance(self.fog, str | None):
            object.__setattr__(self, "fog", tuple(self.fog))
        _ = self.ground, self.fogged

    @cached_property
    def ground(self) -> Ground:
        """The map as arrays."""
        return _parse(self.map)

    @cached_property
    def fogged(self) -> NDArray[np.bool_]:
        """Which cells lie in the fog."""
        n_rows, n_columns = self.shape
        if isinstance(self.fog, str):
            return _parse_fog(self.fog, self.shape)
        box = (0, min(2, n_rows - 1), max(0, n_columns - 3), n_columns - 1) if self.fog is None else self.fog
        if len(box) != 4:
            raise ValueError(f"fog is {box}; it must be (first row, last row, first column, last column)")
        first_row, last_row, first_column, last_column = box
        if not (0 <= first_row <= last_row < n_rows and 0 <= first_column <= last_column < n_columns):
            raise ValueError(
                f"fog is rows {first_row} to {last_row}, columns {first_column} to {last_column}; "
                f"the map has rows 0 to {n_rows - 1} and columns 0 to {n_columns - 1}"
            )
        cells = np.zeros(self.shape, dtype=np.bool_)
        cells[first_row : last_row + 1, first_column : last_column + 1] = True
        return cells

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        _, n_rows, n_columns = self.ground.water.shape
        return n_rows, n_columns

    def state(self, row: int, column: int, *, flooded: bool) -> int:
        """Index of a true state."""
        n_rows, n_columns = self.shape
        if not (0 <= row < n_rows and 0 <= column < n_columns):
            raise ValueError(
                f"there is no row {row}, column {column}; the map has rows 0 to {n_rows - 1} "
                f"and columns 0 to {n_columns - 1}"
            )
        return (row * n_columns + column) * 2 + int(flooded)

    def place(self, state: int) -> tuple[int, int, bool]:
        """Row, column and flood of a true state."""
        n_rows, n_columns = self.shape
        if not 0 <= state < 2 * n_rows * n_columns:
            raise ValueError(f"state {state} does not exist; there are 0 to {2 * n_rows * n_columns - 1}")
        cell, flooded = divmod(int(state), 2)
        return cell // n_columns, cell % n_columns, bool(flooded)

    def mdp(self) -> TabularMDP:
        """The world as a `TabularMDP`, built once."""
        return self._mdp

    @cached_property
    def _mdp(self) -> TabularMDP:
        from lacuna.worlds.lake_picture import LakePainter, lake_drawing  # noqa: PLC0415  it imports this module

        n_rows, n_columns = self.shape
        ptr, next_state, probability = _table(self)
        cells = np.arange(n_rows * n_columns)
        colour = self.ground.colour.reshape(2, -1).T
        water = np.ascontiguousarray(self.ground.water.reshape(2, -1).T).ravel()
        rewards = Rewards(*self.rewards)
        pays = np.where(water, rewards.water, rewards.land)
        goal = np.repeat(cells == np.ravel_multi_index(self.ground.goal, self.shape), 2)
        pays[goal] = rewards.goal
        start = self.state(*self.ground.start, flooded=False)
        return TabularMDP(
            space=Space((n_rows, n_columns, 3), ("row", "column", "colour")),
            n_actions=len(self._moves),
            ptr=ptr,
            next_state=next_state,
            probability=probability,
            reward=pays[next_state],
            ends=goal[next_state],
            shows=(cells[:, None] * 3 + colour).ravel(),
            starts=({start + 1: 1.0}, {start: 1.0}),
            restart=np.tile(np.array([1, 0]), cells.shape[0]),
            bad=water,
            terminates=not self.continuing,
            max_steps=self.max_steps,
            idle=len(MOVES) - 1 if self.stay else None,
            action_names=tuple(self._moves),
            regions={"fog": np.repeat(self.fogged.ravel(), 2)},
            name="lake",
            painter=LakePainter(self),
            drawing=lake_drawing(self),
        )

    @property
    def _moves(self) -> dict[str, tuple[int, int]]:
        return {name: step for name, step in MOVES.items() if self.stay or name != "stay"}


def _table(lake: Lake) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Sparse transitions ``(ptr, next_state, probability)``, likeliest first, then by next state.

    Cells away from the edge are all alike, so outcomes are computed once per kind of cell and copied to all its cells.
    The rows of the goal are those of the start: the step after the goal is taken from there.
    """
    n_rows, n_columns = lake.shape
    steps = list(lake._moves.values())
    down, kind_of_row = _along(n_rows, lake.wind)
    across, kind_of_column = _along(n_columns, lake.wind)
    kind = kind_of_row[:, None] * len(across) + kind_of_column
    origin = np.arange(n_rows * n_columns)
    origin[np.ravel_multi_index(lake.ground.goal, lake.shape)] = np.ravel_multi_index(lake.ground.start, lake.shape)
    kind_of_cell = kind.ravel()[origin]

    stamps = {}
    lengths = np.zeros((len(down) * len(across), 2, len(steps)), dtype=np.int64)
    for (i, rows), (j, columns), flooded, (a, (dr, dc)) in product(
        enumerate(down), enumerate(across), (0, 1), enumerate(steps)
    ):
        stamp = _stamp(rows[dr + 1], columns[dc + 1], lake.flood, flooded, n_columns)
        stamps[i * len(across) + j, flooded, a] = stamp
        lengths[i * len(across) + j, flooded, a] = stamp[0].shape[0]
    ptr = np.concatenate([[0], np.cumsum(lengths[kind_of_cell])]).astype(np.int64)
    next_state = np.empty(ptr[-1], dtype=np.int64)
    probability = np.empty(ptr[-1], dtype=np.float64)
    for k in range(lengths.shape[0]):
        cells = np.flatnonzero(kind_of_cell == k)
        for flooded, a in product((0, 1), range(len(steps))):
            p, shift = stamps[k, flooded, a]
            entries = ptr[(cells * 2 + flooded) * len(steps) + a][:, None] + np.arange(p.shape[0])
            next_state[entries] = origin[cells][:, None] * 2 + shift
            probability[entries] = p
    return ptr, next_state, probability


def _along(n: int, wind: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Where a step leads along one axis of `n` cells.

    Returns the kinds of cells there are, ``[kind, intended step + 1, real step + 1]``, and the kind of each cell.
    """
    chances = np.zeros((n, 3, 3))
    for x, step in product(range(n), (-1, 0, 1)):
        target = min(max(x + step, 0), n - 1)
        for gust, p in ((0, 1.0 - wind), (-1, wind / 2), (1, wind / 2)):
            blown = min(max(target + gust, 0), n - 1)
            real = min(max(blown, x - 1), x + 1) - x
            chances[x, step + 1, real + 1] += p
    kinds, kind_of_cell = np.unique(chances, axis=0, return_inverse=True)
    return kinds, kind_of_cell.ravel()


def _stamp(
    rows: NDArray[np.float64], columns: NDArray[np.float64], flood: float, flooded: int, n_columns: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Probabilities of one action's outcomes, and how far each next state lies from the dry state of the origin."""
    floods = np.array([flood, 1.0 - flood]) if flooded else np.array([1.0 - flood, flood])
    p = (rows[:, None, None] * columns[None, :, None] * floods).ravel()
    step = np.array([-1, 0, 1])
    shift = ((step[:, None, None] * n_columns + step[None, :, None]) * 2 + np.array([0, 1])).ravel()
    order = np.argsort(-p, kind="stable")
    order = order[p[order] > 0]
    return p[order], shift[order]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def _check_lines(what: str, lines: list[str], n_columns: int, signs: dict[str, str]) -> None:
    """Refuse a ragged row or an unknown sign, naming row and column."""
    legend = ", ".join(f"{sign!r} {meaning}" for sign, meaning in signs.items())
    for row, line in enumerate(lines):
        for column, sign in enumerate(line):
            if sign not in signs:
                raise ValueError(f"{what}, row {row}, column {column}: {sign!r} is unknown; there are {legend}")
        if len(line) != n_columns:
            raise ValueError(
                f"{what}, row {row}, column {min(len(line), n_columns)}: the row has {len(line)} cells "
                f"where {n_columns} are needed"
            )


def _parse(text: str) -> Ground:
    lines = _lines(text)
    if not lines:
        raise ValueError("the map is empty; it needs at least a start 'S' and a goal 'G'")
    _check_lines("map", lines, len(lines[0]), _SIGNS)
    signs = np.array([list(line) for line in lines])
    always = signs == "W"
    water = np.stack([always, always | (signs == "w")])
    return Ground(water, _only(signs, "S"), _only(signs, "G"))


def _only(signs: NDArray[np.str_], sign: str) -> tuple[int, int]:
    """The one cell that holds `sign`."""
    cells = np.argwhere(signs == sign).tolist()
    if len(cells) != 1:
        places = "; ".join(f"row {row}, column {column}" for row, column in cells[:2]) or "none"
        raise ValueError(f"the map needs exactly one {_SIGNS[sign]} {sign!r} and has {len(cells)}: {places}")
    row, column = cells[0]
    return row, column


def _parse_fog(text: str, shape: tuple[int, int]) -> NDArray[np.bool_]:
    lines = _lines(text)
    if len(lines) != shape[0]:
        raise ValueError(f"fog map, row {min(len(lines), shape[0])}: it has {len(lines)} rows, the map has {shape[0]}")
    _check_lines("fog map", lines, shape[1], _FOG_SIGNS)
    cells: NDArray[np.bool_] = np.array([list(line) for line in lines]) == "#"
    return cells
