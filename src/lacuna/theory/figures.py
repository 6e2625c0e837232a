"""Charts of the appendix: curves drawn with altair, in the style of the paper's page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from lacuna.report.panels import print_config
from lacuna.report.styles import BLACK, BLUE, DASHED, GREEN, GREY, ORANGE, PURPLE, SKY, SOLID, VERMILION, Style
from lacuna.theory.curves import Curves, Panel, Role, Series

_SOFT = "#5d5b55"
_WIDTH, _HEIGHT = 300, 220

_LOOKS: dict[Role, tuple[str, tuple[int, ...], str]] = {
    "first": (BLUE, SOLID, "circle"),
    "second": (ORANGE, SOLID, "square"),
    "third": (VERMILION, SOLID, "diamond"),
    "fourth": (GREEN, SOLID, "triangle-up"),
    "fifth": (SKY, SOLID, "triangle-down"),
    "printed": (VERMILION, DASHED, "circle"),
    "right": (BLUE, SOLID, "circle"),
    "observed": (ORANGE, SOLID, "triangle-up"),
    "missing": (PURPLE, SOLID, "diamond"),
    "imputed": (BLUE, SOLID, "circle"),
    "plain": (BLACK, SOLID, "circle"),
}
"""Methods look as on the paper's page: missing as a state is purple, imputing blue; what is printed is dashed."""


def look_of(series: Series) -> Style:
    """Give the look of a series."""
    return Style(series.name, *_LOOKS[series.role])


def draw(curves: Curves) -> alt.ConcatChart:
    """Draw a figure: panels side by side that share colours, a legend, and a switch for every series."""
    looks = [look_of(series) for series in curves.series]
    chart: alt.ConcatChart = alt.concat(
        *(_panel(panel, curves, looks) for panel in curves.panels),
        columns=curves.columns,
        bounds="flush",
        spacing={"column": 70, "row": 78},
        usermeta={"columns": curves.columns, "series": [look.as_dict() for look in looks]},
    )
    chart = chart.add_params(alt.param(name="hidden", value=[])).configure(**print_config())
    chart.data = alt.NamedData("rows")
    chart.datasets = {"rows": list(curves.rows)}
    return chart


def _panel(panel: Panel, curves: Curves, looks: list[Style]) -> alt.LayerChart | alt.FacetChart:
    names = [look.name for look in looks]
    colour = alt.Color("series:N").scale(domain=names, range=[look.colour for look in looks])
    dash = alt.StrokeDash("series:N", legend=None).scale(domain=names, range=[list(look.dash) for look in looks])
    shape = alt.Shape("series:N", legend=None).scale(domain=names, range=[look.shape for look in looks])
    x, y = _horizontal(panel), _vertical(panel)
    shown = alt.Chart().transform_filter(f"datum.panel === '{panel.key}' && indexof(hidden, datum.series) < 0")
    dots = shown.transform_filter("datum.kind !== 'line'")
    beside = {"xOffset": alt.XOffset("series:N").scale(domain=names)} if panel.names else {}
    kinds = {str(row["kind"]) for row in curves.rows if row["panel"] == panel.key}
    layers: list[alt.Chart] = list(_levels(panel))
    if kinds & {"line", "path"}:
        lines = shown.transform_filter("datum.kind !== 'dot'")
        layers.append(lines.mark_line(strokeWidth=2).encode(x, y, colour, dash))
    if kinds & {"dot", "path"}:
        layers.append(dots.mark_rule(strokeWidth=1.5).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, **beside))
        tooltip = [
            alt.Tooltip("series:N", title=" "), alt.Tooltip("x:N" if panel.names else "x:Q", title=panel.x),
            alt.Tooltip("y:Q", format=".4~g", title=panel.y), alt.Tooltip("low:Q", format=".4~g", title="− 2 s.e."),
            alt.Tooltip("high:Q", format=".4~g", title="+ 2 s.e."),
        ]  # fmt: skip
        marks = dots.mark_point(filled=True, size=48, opacity=1)
        layers.append(marks.encode(x, y, colour, shape, tooltip=tooltip, **beside))
    title = alt.TitleParams(panel.title, offset=8, frame="group")
    # Apart from the legend of colours and dashes, which would otherwise go the way of the one for markers.
    apart = alt.Resolve(
        scale=alt.ScaleResolveMap(shape="independent"), legend=alt.LegendResolveMap(shape="independent")
    )
    return alt.layer(*layers, title=title, width=_WIDTH, height=_HEIGHT, resolve=apart)


def _horizontal(panel: Panel) -> alt.X:
    if panel.names:
        return alt.X(
            "x:N",
            axis=alt.Axis(title=None, labelAngle=0, labelExpr="split(datum.label, ', ')", labelLimit=90),
            sort=None,
        )
    axis = alt.Axis(title=panel.x, grid=False, tickCount=6, format="~s" if panel.x_log else ".4~r")
    return alt.X("x:Q", axis=axis, scale=alt.Scale(type="log" if panel.x_log else "linear", nice=False))


def _vertical(panel: Panel) -> alt.Y:
    values: dict[str, Any] = {"values": list(panel.ticks)} if panel.ticks else {"tickCount": 5}
    axis = alt.Axis(title=None, minExtent=36, format=".4~r", **values)
    scale: dict[str, Any] = {"type": "log", "nice": False} if panel.y_log else {"zero": panel.zero, "nice": True}
    return alt.Y("y:Q", axis=axis, scale=alt.Scale(**scale))


def _levels(panel: Panel) -> Iterator[alt.Chart]:
    """A level or a place worth marking."""
    look: dict[str, Any] = {"color": GREY, "strokeDash": [1, 3], "strokeWidth": 1.5}
    if panel.level is not None:
        yield alt.Chart(alt.InlineData(values=[{"at": panel.level}])).mark_rule(**look).encode(alt.Y("at:Q"))
    if panel.mark is not None:
        yield alt.Chart(alt.InlineData(values=[{"at": panel.mark}])).mark_rule(**look).encode(alt.X("at:Q"))
