"""A panel of a chart: what it shows, and the axes that fit its values."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any, Literal, NamedTuple

import altair as alt
import polars as pl

Against = Literal["rate", "steps", "log steps", "log seconds", "score", "category"]
NAMES_OF_X: dict[Against, str] = {
    "rate": "θ", "steps": "steps", "log steps": "steps", "log seconds": "seconds", "score": "score",
}  # fmt: skip
_DENSE = ("steps", "score")
_MANY = 24
"""With more points than this, a curve has no room for a marker at each."""
_ROOM = 0.03
"""Share of an axis kept free beyond the first and the last mean."""


class Floor(NamedTuple):
    """Lower ends of a linear axis, normally and in the close-up. They cut off values that would squash the others."""

    lowest: float
    close_up: float


@dataclass(frozen=True)
class Panel:
    """One panel: the rows whose ``panel`` is `key`, under a title, on a scale that fits what they measure."""

    key: str
    title: str
    scale: Literal["linear", "log", "share"] = "linear"
    against: Against = "steps"
    """The horizontal axis: steps and scores usually have many points, rates a few.

    Categories are on the vertical axis, which has room for their names, and the measure is on the horizontal one.
    """
    line: float | None = None
    """A level to mark, such as the optimum."""
    floor: Floor | None = None
    """For a linear scale; the panels of a chart share one."""
    close_up: float | None = None
    """For a linear scale: where it begins if the reader chooses ``closer``."""
    axis: str = "missing rate θ"
    """Title of the horizontal axis, unless it shows steps."""
    span: tuple[float, float] = (0, 1)
    """First and last rate of the axis."""
    whole: bool = False
    """Whether the axis covers all intervals, not only all means."""
    shares: str = ""
    """Panels with the same word here have the same vertical range; it is for those of one scale, level and floor."""

    @property
    def is_cut(self) -> bool:
        """Whether the axis of the measure may end above some means."""
        return self.floor is not None or self.close_up is not None

    def is_dense(self, rows: pl.DataFrame) -> bool:
        """Whether its rows are too many to mark them all."""
        return self.against in _DENSE or rows["x"].n_unique() > _MANY


def horizontal(panel: Panel, rows: pl.DataFrame, name: str) -> alt.X:
    """Return the horizontal axis of a panel, for the column of that name."""
    last = float(rows.select(pl.col("x").max()).item())
    if panel.against == "rate":
        ticks: dict[str, Any] = {"values": [0, 0.2, 0.4, 0.6, 0.8, 1]} if panel.span == (0, 1) else {"tickCount": 5}
        axis = alt.Axis(title=panel.axis, format="~g", grid=False, **ticks)
        return alt.X(f"{name}:Q", axis=axis, scale=alt.Scale(domain=list(panel.span), nice=False))
    if panel.against == "score":
        axis = alt.Axis(title=panel.axis, tickCount=5, format="~g", grid=False)
        return alt.X(f"{name}:Q", axis=axis, scale=alt.Scale(domain=[0, 1], nice=False))
    if panel.against in ("log steps", "log seconds"):
        first = float(rows.select(pl.col("x").min()).item())
        words, title = "datum.value < 1000 ? datum.value : datum.value / 1000 + 'k'", NAMES_OF_X[panel.against]
        axis = alt.Axis(title=f"{title} (log)", labelExpr=words, values=_ticks(first, 1.2 * last), grid=False)
        return alt.X(f"{name}:Q", axis=axis, scale=alt.Scale(type="log", domain=[first, last], nice=False))
    thousands = "datum.value ? format(datum.value / 1000, ',') + 'k' : '0'"
    axis = alt.Axis(title="steps", labelExpr=thousands, tickCount=4, grid=False)
    return alt.X(f"{name}:Q", axis=axis, scale=alt.Scale(domain=[0, last], nice=False))


def vertical(panel: Panel, rows: pl.DataFrame) -> tuple[alt.Axis, alt.Scale]:
    """Return the vertical axis of a panel and its scale; `rows` are those of all panels that share it."""
    lowest, highest = extent(panel, rows)
    if panel.scale == "log":
        axis = alt.Axis(title=None, format="~g", values=_ticks(lowest, highest), minExtent=36)
        return axis, alt.Scale(type="log", domain=[lowest, highest], nice=False)
    if panel.scale == "linear":
        return alt.Axis(title=None, tickCount=5, minExtent=36), linear_scale(panel, rows)
    axis = alt.Axis(title=None, format="~%", values=_even_ticks(highest), minExtent=36)
    return axis, alt.Scale(domain=[0, highest], nice=False)


def linear_scale(panel: Panel, rows: pl.DataFrame) -> alt.Scale:
    """Return the scale of a linear axis."""
    return alt.Scale(domain=[alt.ExprRef(end) for end in limits(panel, rows)], nice=False, zero=False)


def limits(panel: Panel, rows: pl.DataFrame) -> tuple[str, str]:
    """Return Vega expressions for both ends of a linear axis, which depend on what the reader chose."""
    lowest, highest = extent(panel, rows)
    first, last = f"{lowest:.8g}", f"{highest:.8g}"
    if panel.close_up is not None:
        best = max(float(value) for value in rows["mean"])
        above = best + _ROOM * (best - panel.close_up)
        return f"(closer ? {panel.close_up:.8g} : {first})", f"(closer ? {above:.8g} : {last})"
    return (first if panel.floor is None else f"max(lowest, {first})"), last


def extent(panel: Panel, rows: pl.DataFrame) -> tuple[float, float]:
    """First and last value of an axis: it covers all means, with a little room; bands may leave it."""
    values = [float(value) for value in rows["mean"]] or [1.0]
    if panel.whole:
        values += [float(value) for name in ("low", "high") for value in rows[name].drop_nulls()]
    lowest, highest = min(values), max(values)
    if panel.scale == "log":
        return lowest / 1.25, highest * 1.25
    if panel.scale == "share":
        return 0.0, max(highest * 1.08, 0.0105)
    if panel.line is not None:
        lowest, highest = min(lowest, panel.line), max(highest, panel.line)
    shown = lowest if panel.floor is None else max(lowest, panel.floor.lowest)
    room = _ROOM * abs(highest - shown) or 1.0
    return lowest - room, highest + room


def _ticks(lowest: float, highest: float) -> list[float]:
    """At least three round numbers, none at the very top: powers of ten, 2 and 5 between them, or evenly spaced."""
    top = highest / 1.2
    powers = range(floor(log10(lowest)), floor(log10(top)) + 1)
    for steps in ((1,), (1, 2, 5)):
        ticks = [step * 10.0**power for power in powers for step in steps if lowest <= step * 10.0**power <= top]
        if len(ticks) >= 3:
            return ticks
    sizes = (size * 10.0**power for power in range(powers[-1], powers[-1] - 3, -1) for size in (5, 2, 1))
    counted = ((size, range(ceil(lowest / size), floor(top / size) + 1)) for size in sizes)
    return next([i * size for i in places] for size, places in counted if len(places) >= 3)


def _even_ticks(highest: float) -> list[float]:
    """Three to six round numbers from 0 on, none at the very top."""
    power = 10.0 ** floor(log10(highest))
    step = next(size * power for size in (0.2, 0.5, 1.0, 2.0) if highest / (size * power) <= 6)
    return [round(i * step, 6) for i in range(7) if i * step < highest * 0.95]
