"""How a world looks, as plain data: a map with its grounds and scenes, and words for the values of components.

This module draws nothing. Replays read the data, and so can any other viewer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lacuna.worlds.mdp.tabular import TabularMDP

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_MOST_CELLS = 10_000

Cell = tuple[int, int]
"""A row and a column, counted from 0."""


class Ground(NamedTuple):
    """What a cell of the map may be: its name, its colours on a light and on a dark page, and a sign drawn in it."""

    name: str
    light: str = "#f1ecdf"
    dark: str = "#2a2e35"
    sign: str = ""


PLAIN, BAD, END = Ground("ground"), Ground("bad", "#b9b3a6", "#14161a", "×"), Ground("end", "#2f6b4f", "#3d8a66")
"""Grounds of a map that a world does not declare: plain cells, bad steps, and ends of episodes."""


@dataclass(frozen=True)
class Scene:
    """The map under one condition, e.g. a flood.

    Parameters
    ----------
    rows
        A text per row; each of its characters is the sign of a ground.
    name
        The condition, in words; empty if there is only one scene.
    marks
        Short texts over cells: a start, a goal, a passenger.
    """

    rows: Sequence[str]
    name: str = ""
    marks: Mapping[Cell, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Drawing:
    """How a world is to be drawn.

    Parameters
    ----------
    row, column
        The components that are the row and the column of the map. Without a `row` the map has one row. Without a
        `column` there is no map, and components are shown as strips of their values.
    grounds
        The grounds by their signs.
    scenes
        The map, once for each condition.
    scene
        For each true state, the index of its scene; by default always the first.
    walls
        Pairs of neighbouring cells with a wall between them.
    labels
        Words for the values of components, by the component's name.

    Examples
    --------
    >>> drawing = Drawing("y", "x", {".": Ground("grass"), "#": Ground("rock", "#888888", "#555555")},
    ...                   [Scene(["..#", "..."], marks={(1, 2): "G"})])
    >>> drawing.shape
    (2, 3)
    """

    row: str = ""
    column: str = ""
    grounds: Mapping[str, Ground] = field(default_factory=dict)
    scenes: Sequence[Scene] = ()
    scene: NDArray[np.int64] | Sequence[int] | None = None
    walls: Sequence[tuple[Cell, Cell]] = ()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns of the map; zeros if there is none."""
        return (len(self.scenes[0].rows), len(self.scenes[0].rows[0])) if self.column and self.scenes else (0, 0)

    def check(self, mdp: TabularMDP) -> None:
        """Refuse a drawing that does not fit this world."""
        space = mdp.space
        for name, words in self.labels.items():
            size = space.sizes[space.component(name)]
            if len(words) != size:
                raise ValueError(f"the drawing has {len(words)} words for {name}, which has {size} values")
        for sign, ground in self.grounds.items():
            for colour in (ground.light, ground.dark):
                if not _COLOUR.fullmatch(colour):
                    raise ValueError(f"the ground {sign!r} has the colour {colour!r}; write it as #rrggbb")
        if self.column:
            self._check_map(mdp)

    def _check_map(self, mdp: TabularMDP) -> None:
        space = mdp.space
        height = space.sizes[space.component(self.row)] if self.row else 1
        width = space.sizes[space.component(self.column)]
        if not self.scenes:
            raise ValueError("the drawing has a column but no scene; give the map as a Scene")
        for scene in self.scenes:
            if len(scene.rows) != height or any(len(line) != width for line in scene.rows):
                raise ValueError(f"a scene of the drawing must have {height} rows of {width} cells")
            unknown = {sign for line in scene.rows for sign in line} - set(self.grounds)
            if unknown:
                raise ValueError(f"the drawing has no ground for {sorted(unknown)[0]!r}")
        cells = [cell for scene in self.scenes for cell in scene.marks]
        cells += [cell for pair in self.walls for cell in pair]
        for row, column in cells:
            if not (0 <= row < height and 0 <= column < width):
                raise ValueError(f"the drawing marks row {row}, column {column}; the map is {height} x {width}")
        if self.scene is not None:
            chosen = np.asarray(self.scene)
            if chosen.shape != (mdp.n_states,) or chosen.min() < 0 or chosen.max() >= len(self.scenes):
                raise ValueError(f"scene must say, for each of {mdp.n_states} true states, one of {len(self.scenes)}")


def drawing_of(mdp: TabularMDP) -> Drawing:
    """Return the drawing that a world declares; else a map if it has a row and a column, else strips.

    A map of more than 10,000 cells is not drawn.

    Examples
    --------
    >>> from lacuna.worlds.toys import field
    >>> drawing_of(field(2, 3)).scenes[0].rows
    ['...', '..E']
    """
    if mdp.drawing is not None:
        height, width = mdp.drawing.shape
        return mdp.drawing if height * width <= _MOST_CELLS else Drawing(labels=mdp.drawing.labels)
    space = mdp.space
    if not {"row", "column"} <= set(space.names):
        return Drawing()
    height, width = (space.sizes[space.component(name)] for name in ("row", "column"))
    if height * width > _MOST_CELLS:
        return Drawing()
    shown = mdp.dynamics.shown
    cell = shown[:, space.component("row")] * width + shown[:, space.component("column")]
    signs = np.full(height * width, ".")
    signs[cell[np.unique(mdp.next_state[mdp.ends])]] = "E"
    signs[cell[mdp.bad]] = "x"
    marks = {divmod(int(cell[s]), width): "S" for start in mdp.starts for s in start} if len(mdp.starts[0]) == 1 else {}
    rows = ["".join(line) for line in signs.reshape(height, width)]
    return Drawing("row", "column", {".": PLAIN, "x": BAD, "E": END}, [Scene(rows, marks=marks)])
