"""Colours, dashes and markers of series.

The colours are those of Okabe and Ito, which readers with any kind of colour vision can tell apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

BLUE, SKY, VERMILION, ORANGE = "#0072b2", "#56b4e9", "#d55e00", "#e69f00"
GREEN, PURPLE, GREY, BLACK = "#009e73", "#cc79a7", "#7a7a7a", "#000000"
BROWN = "#8c6d1f"

DARK = {
    BLUE: "#4aa8e8", SKY: "#a5dcfb", VERMILION: "#ff7f2a", ORANGE: "#f2b632", GREEN: "#2ec79a", PURPLE: "#e6a0c6",
    GREY: "#a6a6a6", BLACK: "#f4f4f0", BROWN: "#cfae5e",
}  # fmt: skip
"""What stands for each colour on a dark page."""

SOLID: tuple[int, ...] = (1, 0)
DASHED, DOTTED = (6, 3), (2, 2)


class Style(NamedTuple):
    """The style of one series: its name, colour, dash and marker."""

    name: str
    colour: str
    dash: tuple[int, ...] = SOLID
    shape: str = "circle"

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for the legend of a page."""
        return self._asdict() | {"dash": list(self.dash)}
