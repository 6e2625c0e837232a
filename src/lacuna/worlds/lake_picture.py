"""Pictures of Lake World: as text, as pixels, and as the drawing that charts share; all in one palette."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.worlds.lake import COLOURS, Lake
from lacuna.worlds.mdp.drawing import Drawing as MapDrawing
from lacuna.worlds.mdp.drawing import Ground, Scene
from lacuna.worlds.mdp.painter import NOTHING_HIDDEN, Hidden

Pixels = NDArray[np.uint8]

LAKE_PALETTE = {
    "green": "#a9d6a0", "orange": "#f5b95a", "red": "#d9604c", "water": "#1456b0", "home": "#1e703a", "ink": "#111111",
    "white": "#ffffff", "grid": "#8a918a", "agent": "#2c2c34", "hidden": "#7048a0", "unknown": "#cdcdcd",
}  # fmt: skip
"""Every colour of the drawing; those of the cells differ in lightness too."""

LETTERS = {colour: colour[0] for colour in COLOURS}
"""The letter of each colour, for readers who cannot tell colours apart; lower case, because G is the goal."""

_GLYPHS = {
    "g": "..... ..... .#### #...# .#### ....# .###.",
    "o": "..... ..... .###. #...# #...# #...# .###.",
    "r": "..... ..... #.##. ##..# #.... #.... #....",
    "S": ".#### #.... #.... .###. ....# ....# ####.",
    "G": ".###. #...# #.... #.### #...# #...# .###.",
    "?": ".###. #...# ....# ..##. ..#.. ..... ..#..",
    "≈": ".#... #.#.# ...#. ..... .#... #.#.# ...#.",
}
"""The letters that occur, as seven rows of five dots."""

_SHORE, _FRAME, _LINE = 0.1, 0.08, 0.02
_FOG, _BAND = 0.62, 0.45


class Rectangle(NamedTuple):
    """A filled rectangle, measured in cells from the top left corner of the map."""

    row: float
    column: float
    height: float
    width: float
    fill: str
    opacity: float = 1.0


class Letter(NamedTuple):
    """A letter by its middle and its height, measured in cells."""

    text: str
    row: float
    column: float
    size: float
    ink: str


class Drawing(NamedTuple):
    """A map as marks: its cells in reading order, then what lies over them, then letters."""

    cells: list[Rectangle]
    boxes: list[Rectangle]
    letters: list[Letter]


def draw_lake(lake: Lake, *, flooded: bool, fog: bool = True) -> Drawing:
    """Draw a map without the agent: a panel of the paper's figure 2.

    Examples
    --------
    >>> drawing = draw_lake(Lake(), flooded=True)
    >>> len(drawing.cells), drawing.letters[0]
    (64, Letter(text='g', row=0.25, column=0.76, size=0.3, ink='#111111'))
    """
    water, colours = lake.ground.water[int(flooded)], lake.ground.colour[int(flooded)]
    homes = {lake.ground.start: "S", lake.ground.goal: "G"}
    white, ink = LAKE_PALETTE["white"], LAKE_PALETTE["ink"]
    cells, letters = [], []
    for row, column in np.ndindex(lake.shape):
        colour = COLOURS[int(colours[row, column])]
        cells.append(Rectangle(row, column, 1, 1, LAKE_PALETTE[colour]))
        home = (row, column) in homes
        letters.append(Letter(LETTERS[colour], row + 0.25, column + 0.76, 0.3, white if home else ink))
        if water[row, column]:
            letters.append(
                Letter("≈", row + 0.6, column + 0.45, 0.45, white if colour == "red" else LAKE_PALETTE["water"])
            )
    fogged = zip(cells, lake.fogged.flat, strict=True)
    boxes = [Rectangle(*cell[:4], white, _FOG) for cell, lies in fogged if fog and lies]
    boxes += [*_grid(*lake.shape), *_shore(water)]
    for (row, column), text in homes.items():
        inner = 1 - 2 * _FRAME
        boxes += [
            Rectangle(row, column, 1, 1, ink),
            Rectangle(row + _FRAME, column + _FRAME, inner, inner, LAKE_PALETTE["home"]),
        ]
        letters.append(Letter(text, row + 0.6, column + 0.45, 0.45, white))
    return Drawing(cells, boxes, letters)


def _grid(n_rows: int, n_columns: int) -> Iterator[Rectangle]:
    for row in range(n_rows + 1):
        yield Rectangle(max(row - _LINE / 2, 0), 0, _LINE, n_columns, LAKE_PALETTE["grid"])
    for column in range(n_columns + 1):
        yield Rectangle(0, max(column - _LINE / 2, 0), n_rows, _LINE, LAKE_PALETTE["grid"])


def _shore(water: NDArray[np.bool_]) -> Iterator[Rectangle]:
    """A strip in each water cell along every neighbour that is not water, corners and the edge of the map included."""
    dry = ~np.pad(water, 1)
    strips = ((0.0, _SHORE), (0.0, 1.0), (1 - _SHORE, _SHORE))
    for row, column in np.argwhere(water).tolist():
        for down, across in product(range(3), range(3)):
            if dry[row + down, column + across]:
                (top, height), (left, width) = strips[down], strips[across]
                yield Rectangle(row + top, column + left, height, width, LAKE_PALETTE["water"])


_GROUNDS = {
    ".": Ground("land"), "~": Ground("water", "#8fbfe6", "#1f4f7a", "≈"),
    "S": Ground("start", "#ddd5c2", "#3a3f48"), "G": Ground("goal", "#2f6b4f", "#3d8a66"),
}  # fmt: skip


def lake_drawing(lake: Lake) -> MapDrawing:
    """Return the lake as replays draw it: a scene for the dry map, and one for the flooded.

    Examples
    --------
    >>> lake_drawing(Lake()).scenes[0].rows[6:]
    ['.......G', 'S..~~...']
    """
    scenes = []
    for flooded, name in enumerate(("dry", "flooded")):
        signs = np.where(lake.ground.water[flooded], "~", ".")
        homes = {lake.ground.start: "S", lake.ground.goal: "G"}
        for cell, sign in homes.items():
            signs[cell] = sign
        scenes.append(Scene(["".join(line) for line in signs], name, homes))
    states = np.arange(2 * signs.size)
    return MapDrawing("row", "column", _GROUNDS, scenes, states % 2, labels={"colour": COLOURS})


@dataclass(frozen=True)
class LakePainter:
    """Draws true states of a `Lake`.

    Parameters
    ----------
    lake
        The world.
    cell
        Width of a cell in pixels, at least 8; letters need 24.

    Examples
    --------
    >>> lake = Lake()
    >>> print(LakePainter(lake).text(lake.state(6, 1, flooded=True), Hidden(fog=True)))
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
    The agent stands where it truly is. In a text, ``?`` marks hidden components in the first line, and fog. In a
    picture, a dark band covers the cells where the agent might be: a column if the row is hidden, a row if the column
    is. A hidden colour is a grey cell with a question mark on the agent. Fog is a white haze.
    """

    lake: Lake
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
        if hidden.fog:
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
        n_rows, n_columns = self.lake.shape
        drawing = draw_lake(self.lake, flooded=flooded, fog=hidden.fog)
        marks = {
            "colour": Rectangle(row, column, 1, 1, LAKE_PALETTE["unknown"]),
            "row": Rectangle(0, column, n_rows, 1, LAKE_PALETTE["hidden"], _BAND),
            "column": Rectangle(row, 0, 1, n_columns, LAKE_PALETTE["hidden"], _BAND),
        }
        pixels = np.zeros((n_rows * self.cell, n_columns * self.cell, 3), dtype=np.uint8)
        for box in (*drawing.cells, *drawing.boxes):
            self._fill(pixels, box)
        for letter in drawing.letters:
            self._write(pixels, letter)
        for name, box in marks.items():
            if name in hidden.components:
                self._fill(pixels, box)
        self._disc(pixels, row, column)
        if "colour" in hidden.components:
            self._write(pixels, Letter("?", row + 0.5, column + 0.5, 0.45, LAKE_PALETTE["white"]))
        return pixels

    def _fill(self, pixels: Pixels, box: Rectangle) -> None:
        (top, bottom), (left, right) = (
            (round(at * self.cell), max(round((at + length) * self.cell), round(at * self.cell) + 1))
            for at, length in ((box.row, box.height), (box.column, box.width))
        )
        area = pixels[top:bottom, left:right]
        area[:] = np.rint(box.opacity * _rgb(box.fill) + (1 - box.opacity) * area)

    def _write(self, pixels: Pixels, letter: Letter) -> None:
        dot = int(letter.size * self.cell / 7)
        if not dot:
            return
        glyph = np.array([list(line) for line in _GLYPHS[letter.text].split()]) == "#"
        glyph = np.repeat(np.repeat(glyph, dot, axis=0), dot, axis=1)
        top = round(letter.row * self.cell - glyph.shape[0] / 2)
        left = round(letter.column * self.cell - glyph.shape[1] / 2)
        pixels[top : top + glyph.shape[0], left : left + glyph.shape[1]][glyph] = _rgb(letter.ink)

    def _disc(self, pixels: Pixels, row: int, column: int) -> None:
        """The agent, with a light rim and edges smoothed by how much of a pixel is covered."""
        size = self.cell
        tile = pixels[row * size : (row + 1) * size, column * size : (column + 1) * size]
        y, x = np.indices((size, size)) - (size - 1) / 2
        distance = np.hypot(x, y)
        for radius, colour in ((0.34 * size, "white"), (0.28 * size, "agent")):
            covered = np.clip(radius + 0.5 - distance, 0.0, 1.0)[:, :, None]
            tile[:] = np.rint(covered * _rgb(LAKE_PALETTE[colour]) + (1.0 - covered) * tile)


def _rgb(colour: str) -> NDArray[np.float64]:
    return np.frombuffer(bytes.fromhex(colour[1:]), dtype=np.uint8).astype(np.float64)
