"""Colours, dashes and markers of series.

The colours are those of Okabe and Ito, which readers with any kind of colour vision can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

BLUE = "#0072b2"
"""The blue of Okabe and Ito."""
SKY = "#56b4e9"
"""Their sky blue."""
VERMILION = "#d55e00"
"""Their vermilion."""
ORANGE = "#e69f00"
"""Their orange."""
GREEN = "#009e73"
"""Their bluish green."""
PURPLE = "#cc79a7"
"""Their reddish purple."""
GREY = "#7a7a7a"
"""For what is not compared, such as a yardstick."""
BLACK = "#000000"
"""Their black."""
BROWN = "#8c6d1f"
"""In place of their yellow, which is too light for a line on white."""
INK = "#1d1d1b"
"""The colour of words."""
SOFT, LINE = "#5d5b55", "#dcd9cf"
WHITE, HALO = "#ffffff", "#fefefe"
"""The paper behind a chart; and around words that lie over lines, so that they can be read."""

DARK = {
    BLUE: "#4aa8e8", SKY: "#a5dcfb", VERMILION: "#ff7f2a", ORANGE: "#f2b632", GREEN: "#2ec79a", PURPLE: "#e6a0c6",
    GREY: "#a6a6a6", BLACK: "#f4f4f0", BROWN: "#cfae5e", INK: "#e9e7e1", SOFT: "#a9a79f", LINE: "#363b44",
    HALO: "#16181c",
}  # fmt: skip
"""What stands for each colour on a dark page."""


def in_dark(data: Any) -> Any:
    """Return plain data, such as a chart, with the colours of a dark page.

    Examples
    --------
    >>> in_dark({"color": BLUE, "x": [1, BLACK]})
    {'color': '#4aa8e8', 'x': [1, '#f4f4f0']}
    """
    if isinstance(data, dict):
        return {name: in_dark(value) for name, value in data.items()}
    if isinstance(data, list):
        return [in_dark(value) for value in data]
    return ({WHITE: DARK[HALO]} | DARK).get(data, data) if isinstance(data, str) else data


SOLID: tuple[int, ...] = (1, 0)
"""A line without gaps, as lengths of dash and gap."""
DASHED = (6, 3)
"""A dashed line."""
DOTTED = (2, 2)
"""A dotted line."""


class Style(NamedTuple):
    """The style of one series: its name, colour, dash and marker."""

    name: str
    colour: str
    dash: tuple[int, ...] = SOLID
    shape: str = "circle"

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for the legend of a page."""
        return self._asdict() | {"dash": list(self.dash)}


_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BROWN)
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
_OF_YARDSTICKS = (GREY, BLACK, BROWN, SKY, GREEN, PURPLE)


def styles_of(methods: Sequence[str], yardsticks: Sequence[str] = ()) -> list[Style]:
    """Assign a style to each of any series; yardsticks are dotted.

    Examples
    --------
    >>> [style.dash for style in styles_of(["mine", "theirs"], ["optimum"])]
    [(1, 0), (1, 0), (2, 2)]
    """
    n, m = len(_COLOURS), len(_OF_YARDSTICKS)
    found = [
        Style(name, _COLOURS[i % n], DASHED if i // n % 2 else SOLID, _SHAPES[(i + i // n) % n])
        for i, name in enumerate(methods)
    ]
    return found + [
        Style(name, _OF_YARDSTICKS[i % m], DOTTED, _SHAPES[-1 - i % n]) for i, name in enumerate(yardsticks)
    ]
