"""How each method looks in every chart: its name, and a colour, dash and marker of its own.

The colours are those of Okabe and Ito, which readers with any kind of colour vision can tell apart. As in the paper,
multiple imputation is blue, single imputation red, and the conservative model dashed. Ours is black.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lacuna.learning.methods import find_method
from lacuna.paper.evidence import Shown

BLUE, SKY, VERMILION, ORANGE = "#0072b2", "#56b4e9", "#d55e00", "#e69f00"
GREEN, PURPLE, GREY, BLACK = "#009e73", "#cc79a7", "#7a7a7a", "#000000"
OTHER = "#8c6d1f"

DARK = {
    BLUE: "#4aa8e8", SKY: "#a5dcfb", VERMILION: "#ff7f2a", ORANGE: "#f2b632", GREEN: "#2ec79a", PURPLE: "#e6a0c6",
    GREY: "#a6a6a6", BLACK: "#f4f4f0", OTHER: "#cfae5e",
}  # fmt: skip
"""What stands for each colour on a dark page."""

SOLID: tuple[int, ...] = (1, 0)
DASHED, DOTTED = (6, 3), (2, 2)


class Look(NamedTuple):
    """The look of one series: its name, colour, dash and marker."""

    name: str
    colour: str
    dash: tuple[int, ...] = SOLID
    shape: str = "circle"

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for the legend of a page."""
        return {"name": self.name, "colour": self.colour, "dash": list(self.dash), "shape": self.shape}


_BASELINES = {
    "random-action": (GREY, DOTTED, "cross"),
    "last-fully-observed": (ORANGE, SOLID, "triangle-down"),
    "last-observed": (GREEN, SOLID, "triangle-up"),
    "missing-as-state": (PURPLE, SOLID, "diamond"),
}
_BY_PATHWAYS = {1: (VERMILION, "square"), 5: (SKY, "triangle-right"), 10: (BLUE, "circle")}
_DASHES = {"mi-synthetic": SOLID, "mi-conservative": DASHED}
_KNOWING = {
    "fully-observed": (GREEN, DASHED, "triangle-up"), "mi-true-model": (SKY, DASHED, "square"),
    "qmdp": (OTHER, DASHED, "triangle-down"), "qmdp-rewards": (PURPLE, DASHED, "diamond"),
    "optimum": (GREY, DOTTED, "cross"),
}  # fmt: skip


def name_of(shown: Shown) -> str:
    """Name a method as charts do.

    Examples
    --------
    >>> name_of(Shown("mi-synthetic", 10)), name_of(Shown("mi-conservative", 1)), name_of(Shown("last-observed"))
    ('MI K=10, synthetic', 'SI, conservative', 'Last observed (V2)')
    """
    title = find_method(shown.method).title
    if shown.K is not None:
        title = title.replace("MI", "SI" if shown.K == 1 else f"MI K={shown.K}", 1)
    return f"{title}, mixing" if shown.p_shuffle else title


def look_of(shown: Shown) -> Look:
    """Give the look of a method, the same in every chart."""
    name = name_of(shown)
    if shown.method in _KNOWING:
        return Look(name, *_KNOWING[shown.method])
    if shown.K is None:
        return Look(name, *_BASELINES.get(shown.method, (OTHER, SOLID, "diamond")))
    colour, shape = _BY_PATHWAYS.get(shown.K, (OTHER, "diamond"))
    if shown.method not in _DASHES:
        colour = BLACK
    return Look(name, colour, _DASHES.get(shown.method, SOLID), shape)
