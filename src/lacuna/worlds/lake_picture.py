"""Lake World for the eye: as text, and as a picture in the manner of the paper's figure 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True)
class LakePainter:
    """Draws true states of a `Lake`.

    Parameters
    ----------
    lake
        The world.
    fog
        Whether to draw the fog: white cells in a picture, ``?`` in text.
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
    """

    lake: Lake
    fog: bool = False
    cell: int = 48

    def __post_init__(self) -> None:
        if self.cell < 8:
            raise ValueError(f"cell is {self.cell} pixels; it must be at least 8")

    def text(self, state: int) -> str:
        """The map in force, the agent as ``@``, water as ``~``, under a line that says the rest."""
        row, column, flooded = self.lake.place(state)
        ground = self.lake.ground
        signs = np.where(ground.water[int(flooded)], "~", ".")
        signs[ground.start] = "S"
        signs[ground.goal] = "G"
        if self.fog:
            signs[self.lake.fogged] = "?"
        signs[row, column] = "@"
        colour = COLOURS[int(ground.colour[int(flooded), row, column])]
        heading = f"{'flooded' if flooded else 'dry'}; row {row}, column {column}, {colour}"
        return "\n".join([heading, *("".join(line) for line in signs)])

    def picture(self, state: int) -> Pixels:
        """The world in a true state, agent included, as pixels ``[height, width, 3]``."""
        row, column, flooded = self.lake.place(state)
        pixels = self.scene(flooded=flooded)
        self._disc(pixels, row, column)
        return pixels

    def scene(self, *, flooded: bool) -> Pixels:
        """The world without the agent: one of the panels of figure 2."""
        n_rows, n_columns = self.lake.shape
        ground = self.lake.ground
        fill = np.array([_FILL[k] for k in range(3)], dtype=np.uint8)[ground.colour[int(flooded)]]
        if self.fog:
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


def _strip(side: int, bold: int, size: int) -> slice:
    """The part of a cell's width that touches the neighbour before (0), beside (1) or after (2) it."""
    return (slice(0, bold), slice(None), slice(size - bold, None))[side]
