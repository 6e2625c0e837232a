"""Lake World for the eye: as text, and as a picture in the manner of the paper's figure 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacuna.mdp.painter import NOTHING_HIDDEN, Hidden
from lacuna.worlds.lake import COLOURS, Lake

Pixels = NDArray[np.uint8]

_FILL = {0: (154, 205, 110), 1: (247, 179, 84), 2: (228, 96, 82)}
_FOG = (255, 255, 255)
_HOME = (30, 112, 58)
_GRID = (120, 128, 120)
_WATER = (24, 74, 190)
_BLACK = (0, 0, 0)
_AGENT = (44, 44, 52)
_HALO = (255, 255, 255)
_HIDDEN = (112, 72, 160)
_NO_COLOUR = (205, 205, 205)

_QUESTION = np.array(
    [list(line) for line in (".###.", "#...#", "....#", "..##.", "..#..", ".....", "..#..")]
) == "#"  # fmt: skip
"""A question mark, 5 x 7."""


@dataclass(frozen=True)
class LakePainter:
    """Draws true states of a `Lake`.

    Parameters
    ----------
    lake
        The world.
    fog
        Whether to draw the fog even where no hidden has any: white cells in a picture, ``?`` in text.
    cell
        Width of a cell in pixels, at least 8.

    Examples
    --------
    >>> lake = Lake()
    >>> print(LakePainter(lake, fog=True).text(lake.state(6, 1, flooded=True)))
    flooded; row 6, column 1, green
    .....???
    .....???
    ..~~~???
    ..~~~~..
    ..~~~~..
    ..~~~~..
    .@.....G
    S.~~~~..
    >>> LakePainter(lake).picture(0).shape
    (384, 384, 3)

    Notes
    -----
    The agent stands where it truly is. What is hidden from it is marked: in the first line of a text by ``?``; in a
    picture a hidden row by a dark band along the column, a hidden column by one along the row (where the agent might be
    as far as that component tells), a hidden colour by a grey cell and a question mark on the agent.
    """

    lake: Lake
    fog: bool = False
    cell: int = 48

    def __post_init__(self) -> None:
        if self.cell < 8:
            raise ValueError(f"cell is {self.cell} pixels; it must be at least 8")

    def text(self, state: int, hidden: Hidden = NOTHING_HIDDEN) -> str:
        """The map in force, the agent as ``@``, water as ``~``, under a line that says the rest."""
        row, column, flooded = self.lake.place(state)
        ground = self.lake.ground
        signs = np.where(ground.water[int(flooded)], "~", ".")
        signs[ground.start] = "S"
        signs[ground.goal] = "G"
        if self.fog or hidden.fog:
            signs[self.lake.fogged] = "?"
        signs[row, column] = "@"
        shown = {"row": f"row {row}", "column": f"column {column}"}
        shown["colour"] = COLOURS[int(ground.colour[int(flooded), row, column])]
        words = [f"{name} ?" if name in hidden.components else word for name, word in shown.items()]
        heading = f"{'flooded' if flooded else 'dry'}; {', '.join(words)}"
        return "\n".join([heading, *("".join(line) for line in signs)])

    def picture(self, state: int, hidden: Hidden = NOTHING_HIDDEN) -> Pixels:
        """The world in a true state, agent included, as pixels ``[height, width, 3]``."""
        row, column, flooded = self.lake.place(state)
        pixels, size = self.scene(flooded=flooded, fog=hidden.fog), self.cell
        if "colour" in hidden.components:
            inner = pixels[row * size + 1 : (row + 1) * size - 1, column * size + 1 : (column + 1) * size - 1]
            inner[:] = _NO_COLOUR
        if "row" in hidden.components:
            _tint(pixels[:, column * size : (column + 1) * size])
        if "column" in hidden.components:
            _tint(pixels[row * size : (row + 1) * size])
        self._disc(pixels, row, column)
        if "colour" in hidden.components:
            self._question(pixels, row, column)
        return pixels

    def scene(self, *, flooded: bool, fog: bool = False) -> Pixels:
        """The world without the agent: one of the panels of figure 2."""
        n_rows, n_columns = self.lake.shape
        ground = self.lake.ground
        fill = np.array([_FILL[k] for k in range(3)], dtype=np.uint8)[ground.colour[int(flooded)]]
        if self.fog or fog:
            fill[self.lake.fogged] = _FOG
        fill[ground.start] = fill[ground.goal] = _HOME
        pixels = np.repeat(np.repeat(fill, self.cell, axis=0), self.cell, axis=1)
        for row in range(n_rows):
            pixels[row * self.cell] = _GRID
        for column in range(n_columns):
            pixels[:, column * self.cell] = _GRID
        pixels[-1], pixels[:, -1] = _GRID, _GRID
        self._shore(pixels, ground.water[int(flooded)])
        for row, column in (ground.start, ground.goal):
            self._frame(pixels, row, column)
        return pixels

    @property
    def _bold(self) -> int:
        return max(2, self.cell // 10)

    def _shore(self, pixels: Pixels, water: NDArray[np.bool_]) -> None:
        """A bold line along every edge between water and what is not, corners included."""
        bold, size = self._bold, self.cell
        dry = ~np.pad(water, 1)
        for row, column in np.argwhere(water):
            tile = pixels[row * size : (row + 1) * size, column * size : (column + 1) * size]
            around = dry[row : row + 3, column : column + 3]
            for i, j in np.argwhere(around):
                tile[_strip(i, bold, size), _strip(j, bold, size)] = _WATER

    def _frame(self, pixels: Pixels, row: int, column: int) -> None:
        size, thick = self.cell, max(1, self._bold * 3 // 4)
        tile = pixels[row * size : (row + 1) * size, column * size : (column + 1) * size]
        tile[:thick], tile[-thick:], tile[:, :thick], tile[:, -thick:] = _BLACK, _BLACK, _BLACK, _BLACK

    def _disc(self, pixels: Pixels, row: int, column: int) -> None:
        """The agent, with a light rim and edges smoothed by how much of a pixel is covered."""
        size = self.cell
        tile = pixels[row * size : (row + 1) * size, column * size : (column + 1) * size]
        y, x = np.indices((size, size)) - (size - 1) / 2
        distance = np.hypot(x, y)
        for radius, colour in ((0.34 * size, _HALO), (0.28 * size, _AGENT)):
            covered = np.clip(radius + 0.5 - distance, 0.0, 1.0)[:, :, None]
            tile[:] = np.rint(covered * np.array(colour) + (1.0 - covered) * tile)

    def _question(self, pixels: Pixels, row: int, column: int) -> None:
        """A question mark on the agent."""
        dot = max(1, self.cell // 16)
        mark = np.repeat(np.repeat(_QUESTION, dot, axis=0), dot, axis=1)
        top = row * self.cell + (self.cell - mark.shape[0]) // 2
        left = column * self.cell + (self.cell - mark.shape[1]) // 2
        pixels[top : top + mark.shape[0], left : left + mark.shape[1]][mark] = _HALO


def _tint(pixels: Pixels) -> None:
    """Darken a band of cells, so that what is below can still be told."""
    pixels[:] = np.rint(0.55 * pixels + 0.45 * np.array(_HIDDEN))


def _strip(side: int, bold: int, size: int) -> slice:
    """The part of a cell's width that touches the neighbour before (0), beside (1) or after (2) it."""
    return (slice(0, bold), slice(None), slice(size - bold, None))[side]
