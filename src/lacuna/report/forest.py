"""Small pictures in a line of text or a table: an estimate with its interval, and counts as parts of a bar.

They are plain SVG and HTML without scripts, in the colours of the page, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import NamedTuple

from markupsafe import Markup

from lacuna.quantities import number_text
from lacuna.report.html_tables import Text, joined

_WIDTH, _HEIGHT, _MIDDLE = 190, 30, 9


class Estimate(NamedTuple):
    """An estimate with the bounds of its interval, and the region in which the whole interval is wanted."""

    value: float
    low: float | None
    high: float | None
    wanted: tuple[float, float]

    @property
    def numbers(self) -> list[float]:
        """The finite numbers that its picture must show."""
        found = [self.value, self.low, self.high, *self.wanted]
        return [number for number in found if number is not None and isfinite(number)]


def reach(estimates: Iterable[Estimate]) -> tuple[float, float]:
    """Return a scale that holds some estimates, their intervals and the borders of their regions, with some room.

    Examples
    --------
    >>> reach([Estimate(2.0, 1.0, 4.0, (0.0, float("inf")))])
    (-0.48, 4.48)
    """
    found = [number for one in estimates for number in one.numbers]
    room = 0.12 * (max(found) - min(found)) or 1.0
    return min(found) - room, max(found) + room


def forest_plot(one: Estimate, kind: str, words: str, scale: tuple[float, float] | None = None) -> Markup:
    """Draw an estimate as a dot, its interval as a line, and the region where it is wanted as a shade.

    The numbers below are the borders of the region. An arrow marks an end without a border.

    Parameters
    ----------
    one
        What to draw.
    kind
        The verdict, as a class of the style sheet.
    words
        The same in words, for screen readers and as a tooltip.
    scale
        First and last value of the axis; by default they fit this estimate.

    Examples
    --------
    >>> picture = forest_plot(Estimate(2.0, 1.0, 4.0, (0.0, float("inf"))), "supported", "2 [1, 4], wanted above 0")
    >>> picture.count("<circle"), "wanted above 0" in picture
    (1, True)
    """
    first, last = scale or reach([one])

    def at(value: float) -> float:
        return round(min(max((value - first) / (last - first), 0.0), 1.0) * (_WIDTH - 16) + 8, 1)

    low, high = (at(border) if isfinite(border) else 0.0 if border == -inf else _WIDTH for border in one.wanted)
    parts = [Markup('<rect class="wanted" x="{}" y="0" width="{}" height="18" rx="3"/>').format(low, high - low)]
    for border, tip in zip(one.wanted, (2, _WIDTH - 2), strict=True):
        parts.append(_border(at(border), border) if isfinite(border) else _arrow(tip))
    if one.low is not None and one.high is not None:
        ends = at(one.low), at(one.high)
        parts.append(Markup('<path class="reach" d="M{0},{2}H{1}M{0},{3}v6M{1},{3}v6"/>').format(*ends, _MIDDLE, 6))
    parts.append(Markup('<circle cx="{}" cy="{}" r="3.6"/>').format(at(one.value), _MIDDLE))
    return Markup(
        '<svg class="forest {}" viewBox="0 0 {} {}" width="{}" height="{}" role="img"><title>{}</title>{}</svg>'
    ).format(kind, _WIDTH, _HEIGHT, _WIDTH, _HEIGHT, words, joined(parts, ""))


def _border(x: float, border: float) -> Markup:
    line = Markup('<path class="border" d="M{},0v18"/>').format(x)
    # Near either end, centred text would stick out of the picture.
    anchor = "start" if x < 20 else "end" if x > _WIDTH - 20 else "middle"
    number = number_text(border, "g")
    return line + Markup('<text x="{}" y="28" text-anchor="{}">{}</text>').format(x, anchor, number)


def _arrow(tip: float) -> Markup:
    """An arrow at the end where the region has no border."""
    back = 5 if tip < _WIDTH / 2 else -5
    return Markup('<path class="border" d="M{0},{2}l{1},-4M{0},{2}l{1},4"/>').format(tip, back, _MIDDLE)


class Part(NamedTuple):
    """A part of a bar: how many, what they are, the sign for that, and a class of the style sheet."""

    number: int
    name: str
    sign: str
    kind: str


def bar(parts: Sequence[Part], words: Text = "") -> Markup:
    """Draw counts as parts of a bar, each with its sign and number, after `words`.

    Examples
    --------
    >>> made = bar([Part(7, "supported", "✓", "yes"), Part(0, "left open", "?", "open")], "This run")
    >>> 'aria-label="7 supported, 0 left open"' in made, made.count("<span class")
    (True, 2)
    """
    told = ", ".join(f"{part.number} {part.name}" for part in parts)
    pieces = joined(
        (
            Markup('<span class="{}" style="flex-grow: {}" title="{}">{} {}</span>').format(
                part.kind, part.number, f"{part.number} {part.name}", part.sign, part.number
            )
            for part in parts
            if part.number
        ),
        "",
    )
    return Markup(
        '<div class="split"><span class="words">{}</span><div role="img" aria-label="{}">{}</div></div>'
    ).format(words, told, pieces)
