"""Panels of a chart: means as lines, intervals as bands, and the values of all series under the pointer.

A chart of panels is an `altair.ConcatChart` whose rows lie beside it as plain data, so it can be shown in a notebook,
saved, or put on a page (`lacuna.report.page`), where its series can be switched off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any, Literal, NamedTuple

import altair as alt
import polars as pl

from lacuna.quantities import number_text
from lacuna.report.styles import BLACK, Style

Against = Literal["rate", "steps", "log steps", "score", "category"]
_NAMES_OF_X: dict[Against, str] = {"rate": "θ", "steps": "steps", "log steps": "steps", "score": "score"}
_DENSE = ("steps", "score")
LABELS = 170
"""Pixels for the names of categories."""
_INK, _SOFT, _LINE = "#1d1d1b", "#5d5b55", "#dcd9cf"


class Floor(NamedTuple):
    """Where a linear axis ends though values lie below, which would squash all others; and where in the close-up."""

    lowest: float
    close_up: float


@dataclass(frozen=True)
class Panel:
    """One panel: the rows whose ``panel`` is `key`, under a title, on a scale that fits what they measure."""

    key: str
    title: str
    scale: Literal["linear", "log", "share"] = "linear"
    against: Against = "steps"
    """What lies along the horizontal axis: against steps or a score there are many points, against a rate a few.

    Categories lie along the vertical axis instead, where there is room for their names, and the measure along the
    horizontal one.
    """
    line: float | None = None
    """A level to mark, such as the optimum."""
    floor: Floor | None = None
    """For a linear scale; the panels of a chart share one."""
    close_up: float | None = None
    """For a linear scale: where it may begin instead of at the lowest mean, if the chart has a choice ``closer``."""
    axis: str = "missing rate θ"
    """What lies along the horizontal axis, if that is not steps."""
    span: tuple[float, float] = (0, 1)
    """From where to where rates go."""
    whole: bool = False
    """Whether the axis goes far enough for all intervals, not only for all means."""


def chart_of(
    points: pl.DataFrame, panels: Sequence[Panel], styles: Sequence[Style], columns: int = 3,
    trials: pl.DataFrame | None = None,
) -> alt.ConcatChart:  # fmt: skip
    """Lay panels out in columns; they share colours, and a legend of the series that have points.

    Parameters
    ----------
    points
        Rows with ``panel``, ``series``, ``x``, ``mean`` and the bounds of its interval, ``low`` and ``high``; and
        ``category``, if a panel has categories.
    panels
        In reading order; those without a row are left out.
    styles
        Of the series, in the order of the legend.
    columns
        How many panels side by side.
    trials
        Rows with ``panel``, ``series``, ``trial``, ``x`` and ``value``: a thin line for each trial.
    """
    present = set(points["series"])
    seen = [style for style in styles if style.name in present]
    drawn = [panel for panel in panels if (points["panel"] == panel.key).any()]
    logarithmic = [panel.key for panel in drawn if panel.scale == "log"]
    on_axis = (pl.col("mean") > 0) | ~pl.col("panel").is_in(logarithmic)
    wanted = pl.col("panel").is_in([panel.key for panel in drawn])
    categories = ["category"] if "category" in points.columns else []
    rows = points.filter(on_axis & wanted).select("panel", "series", *categories, "x", "mean", "low", "high")
    meta: dict[str, Any] = {}
    choices: dict[str, Any] = {"intervals": True} if any(panel.against != "category" for panel in drawn) else {}
    choices |= {} if trials is None else {"trials": True}
    choices |= {"closer": True} if any(panel.close_up is not None for panel in drawn) else {}
    for lowest, close_up in {panel.floor for panel in drawn if panel.floor}:
        meta |= {"close_up": close_up}
        choices |= {"lowest": lowest}
    chart = laid_out(
        [
            (_panel_of_categories if panel.against == "category" else _panel)(
                panel, rows.filter(panel=panel.key), seen, _Place(i, trials is not None)
            )
            for i, panel in enumerate(drawn)
        ],
        rows.to_dicts(), seen, columns, **choices,
    )  # fmt: skip
    if trials is not None:
        chart.datasets |= {"trials": trials.select("panel", "series", "trial", "x", "value").to_dicts()}
    chart.description = " ".join(_finding(panel, rows.filter(panel=panel.key)) for panel in drawn)
    chart.usermeta |= meta
    return chart


def laid_out(
    panels: Sequence[alt.LayerChart], rows: list[dict[str, Any]], styles: Sequence[Style], columns: int, **choices: Any
) -> alt.ConcatChart:
    """Lay drawn panels out in columns, over the same rows; `choices` are parameters that readers may set."""
    chart = alt.concat(
        *panels,
        params=[alt.VariableParameter(name=name, value=value) for name, value in ({"hidden": []} | choices).items()],
        columns=columns,
        bounds="flush",
        spacing={"column": 52, "row": 78},
        usermeta={"columns": columns, "series": [style.as_dict() for style in styles]},
        config=alt.Config(**print_config()),
    )
    # Last, and set rather than passed: altair copies what it is given, and there are thousands of rows.
    chart.data = alt.NamedData("points")
    chart.datasets = {"points": rows}
    return chart


def framed(title: str, layers: Sequence[alt.Chart], width: int = 230, height: int = 190) -> alt.LayerChart:
    """Put layers over each other, under a title."""
    # Apart from the legend of colours and dashes, which would otherwise go the way of the one for markers.
    apart = alt.Resolve(
        scale=alt.ScaleResolveMap(shape="independent"), legend=alt.LegendResolveMap(shape="independent")
    )
    heading = alt.TitleParams(title, offset=8, frame="group")
    return alt.LayerChart(layer=list(layers), title=heading, width=width, height=height, resolve=apart)


def encodings(styles: Sequence[Style]) -> tuple[alt.Color, alt.StrokeDash, alt.Shape]:
    """Give the colour, dash and marker of each series."""
    names = [style.name for style in styles]
    colour = alt.Color("series:N").scale(domain=names, range=[style.colour for style in styles])
    dash = alt.StrokeDash("series:N").scale(domain=names, range=[list(style.dash) for style in styles])
    shape = alt.Shape("series:N", legend=None).scale(domain=names, range=[style.shape for style in styles])
    return colour, dash, shape


def shown_rows(panel: str) -> alt.Chart:
    """The rows of a panel, without series that are switched off."""
    return alt.Chart().transform_filter(f"datum.panel === '{panel}' && indexof(hidden, datum.series) < 0")


def print_config() -> dict[str, Any]:
    """Give the looks of a chart on paper; a page brings its own."""
    return {
        "font": "Helvetica, Arial, sans-serif",
        "background": "#ffffff",
        "view": alt.ViewConfig(stroke=None),
        "axis": alt.AxisConfig(
            labelColor=_SOFT, titleColor=_SOFT, gridColor=_LINE, domainColor=_LINE, tickColor=_LINE,
            titleFontWeight="normal", labelFontSize=11, titleFontSize=11,
        ),
        "title": alt.TitleConfig(color=_INK, fontSize=12, fontWeight=600, anchor="start"),
        "legend": alt.LegendConfig(
            orient="top", columns=4, labelFontSize=12, labelLimit=260, offset=16, columnPadding=16, title=None,
            symbolType="stroke", symbolSize=500, symbolStrokeWidth=2.5, symbolOpacity=1,
        ),
    }  # fmt: skip


class _Place(NamedTuple):
    """Where a panel stands, and whether it has lines for trials."""

    number: int
    has_trials: bool


def _finding(panel: Panel, rows: pl.DataFrame) -> str:
    """What a panel shows, for those who hear it: who ends highest, and who lowest, where most series still go on."""
    if rows.is_empty():
        return f"{panel.title}: nothing above 0."
    if panel.against == "category":
        found = [_extremes(panel, rows.filter(category=name)) for name in rows["category"].unique(maintain_order=True)]
        return f"{panel.title}: {'; '.join(found)}."
    at = rows.group_by("x").len().sort("len", "x")["x"][-1]
    places = {"rate": f"at θ = {at:g}", "score": f"at a score of {at:g}"}
    place = places.get(panel.against, f"after {at:,.0f} steps")
    return f"{panel.title}, {place}: {_extremes(panel, rows.filter(x=at))}."


def _extremes(panel: Panel, rows: pl.DataFrame) -> str:
    form = ".1%" if panel.scale == "share" else ".4g"
    words = [f"{row['series']} {number_text(row['mean'], form)}" for row in rows.sort("mean").iter_rows(named=True)]
    where = f"{rows['category'][0]}: " if panel.against == "category" else ""
    return f"{where}highest {words[-1]}, lowest {words[0]}"


def _panel_of_categories(
    panel: Panel, rows: pl.DataFrame, styles: Sequence[Style], _: _Place
) -> alt.LayerChart:  # fmt: skip
    """A dot and its interval for each series, category below category."""
    names = rows["category"].unique(maintain_order=True).to_list()
    here = [style for style in styles if style.name in set(rows["series"])]
    colour, _dash, shape = encodings(styles)
    axis = alt.Axis(title=None, labelLimit=LABELS, domain=False, ticks=False, labelPadding=8)
    y = alt.Y("category:N", axis=axis, scale=alt.Scale(type="band", domain=names, paddingInner=0.25, paddingOuter=0.1))
    # Where each category is a series of its own, nothing has to be kept apart.
    apart = (rows["category"] != rows["series"]).any()
    offset = [alt.YOffset("series:N", scale=alt.Scale(domain=[style.name for style in here]))] if apart else []
    lowest, highest = _extent(panel, rows)
    across = alt.Axis(title=panel.axis or None, tickCount=5)
    scale = alt.Scale(domainMin=alt.ExprRef(_bottom(panel, lowest)), domainMax=highest, nice=False, zero=False)
    shown = shown_rows(panel.key).transform_calculate(told=_label(panel))
    told = [alt.Tooltip("category:N", title=" "), alt.Tooltip("series:N"), alt.Tooltip("told:N", title="mean")]
    mean = alt.X("mean:Q", axis=across, scale=scale)
    bars = shown.mark_rule(strokeWidth=2, clip=True)
    layers = [
        *_level(panel),
        *([bars.encode(alt.X("low:Q"), alt.X2("high"), y, *offset, colour, tooltip=told)] * _has_bounds(rows)),
        shown.mark_point(filled=True, size=52, opacity=1, clip=True).encode(
            mean, y, *offset, colour, shape, tooltip=told
        ),
    ]
    return framed(panel.title, layers, height=max(60, len(names) * (9 * len(here) + 12 if apart else 24)))


def _panel(panel: Panel, rows: pl.DataFrame, styles: Sequence[Style], place: _Place) -> alt.LayerChart:
    colour, dash, shape = encodings(styles)
    x = _horizontal(panel, rows, "x")
    axis, scale = _vertical(panel, rows)
    mean, low = (alt.Y(f"{name}:Q", axis=axis, scale=scale) for name in ("mean", "low"))
    clip = panel.floor is not None or panel.close_up is not None  # no other axis ends before its values do
    shown = shown_rows(panel.key)
    bounds = _bounded(panel, rows)
    bounded = shown.transform_calculate(**bounds) if bounds else shown
    band = bounded.mark_area(fillOpacity=alt.ExprRef("intervals ? 0.12 : 0"), clip=panel.against not in _DENSE)
    layers = [
        *_trial_lines(panel, (x, axis, scale, colour), place),
        *([band.encode(x, low, alt.Y2("high"), colour)] * _has_bounds(rows)),
        *_level(panel),
        shown.mark_line(strokeWidth=2, clip=clip).encode(x, mean, colour, dash),
        _under_pointer(shown, panel, _horizontal(panel, rows, _NAMES_OF_X[panel.against]), place.number),
    ]
    if panel.against not in _DENSE:  # a curve has too many points to mark
        layers.append(shown.mark_point(filled=True, size=42, opacity=1, clip=clip).encode(x, mean, colour, shape))
    return framed(panel.title, layers)


def _has_bounds(rows: pl.DataFrame) -> bool:
    """Whether there is an interval to draw: one trial gives none."""
    return rows["low"].null_count() < rows.height


def _trial_lines(panel: Panel, drawn: tuple[Any, ...], place: _Place) -> Iterator[alt.Chart]:
    if place.has_trials:
        x, axis, scale, colour = drawn
        lines = shown_rows(panel.key).mark_line(
            strokeWidth=0.8, clip=True, strokeOpacity=alt.ExprRef("trials ? 0.35 : 0"), tooltip=None
        )
        lines.data = alt.NamedData("trials")
        yield lines.encode(x, alt.Y("value:Q", axis=axis, scale=scale), colour, detail="trial:N")


def _horizontal(panel: Panel, rows: pl.DataFrame, name: str) -> alt.X:
    last = float(rows.select(pl.col("x").max()).item())
    if panel.against == "rate":
        ticks: dict[str, Any] = {"values": [0, 0.2, 0.4, 0.6, 0.8, 1]} if panel.span == (0, 1) else {"tickCount": 5}
        axis = alt.Axis(title=panel.axis, format="~g", grid=False, **ticks)
        return alt.X(f"{name}:Q", axis=axis, scale=alt.Scale(domain=list(panel.span), nice=False))
    if panel.against == "score":
        axis = alt.Axis(title=panel.axis, tickCount=5, format="~g", grid=False)
        return alt.X(f"{name}:Q", axis=axis, scale=alt.Scale(domain=[0, 1], nice=False))
    if panel.against == "log steps":
        first = float(rows.select(pl.col("x").min()).item())
        words = "datum.value < 1000 ? datum.value : datum.value / 1000 + 'k'"
        axis = alt.Axis(title="steps (log)", labelExpr=words, values=_ticks(first, 1.2 * last), grid=False)
        return alt.X(f"{name}:Q", axis=axis, scale=alt.Scale(type="log", domain=[first, last], nice=False))
    thousands = "datum.value ? format(datum.value / 1000, ',') + 'k' : '0'"
    axis = alt.Axis(title="steps", labelExpr=thousands, tickCount=4, grid=False)
    return alt.X(f"{name}:Q", axis=axis, scale=alt.Scale(domain=[0, last], nice=False))


def _vertical(panel: Panel, rows: pl.DataFrame) -> tuple[alt.Axis, alt.Scale]:
    lowest, highest = _extent(panel, rows)
    if panel.scale == "log":
        axis = alt.Axis(title=None, format="~g", values=_ticks(lowest, highest), minExtent=36)
        return axis, alt.Scale(type="log", domain=[lowest, highest], nice=False)
    if panel.scale == "linear":
        axis = alt.Axis(title=None, tickCount=5, minExtent=36)
        return axis, alt.Scale(domainMin=alt.ExprRef(_bottom(panel, lowest)), domainMax=highest, nice=False, zero=False)
    axis = alt.Axis(title=None, format="~%", values=_even_ticks(highest), minExtent=36)
    return axis, alt.Scale(domain=[0, highest], nice=False)


def _bottom(panel: Panel, lowest: float) -> str:
    if panel.close_up is not None:
        return f"closer ? {panel.close_up:.4g} : {lowest:.4g}"
    return f"{lowest:.4g}" if panel.floor is None else f"max(lowest, {lowest:.4g})"


def _extent(panel: Panel, rows: pl.DataFrame) -> tuple[float, float]:
    """From what to what an axis goes: over all means, with a little room; bands may leave it."""
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
    room = 0.03 * abs(highest - shown) or 1.0
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


def _bounded(panel: Panel, rows: pl.DataFrame) -> dict[str, str]:
    """The bounds of bands as drawn.

    Against steps they are kept within the axis: clipping would look the same at many times the cost. Where points lie
    so far apart that it would bend the band away from its line, it is clipped, and only what a logarithm cannot take is
    kept off.
    """
    lowest, highest = _extent(panel, rows)
    bottom = _bottom(panel, lowest)
    if panel.against not in _DENSE:
        if panel.scale != "log":
            return {}
        bottom, highest = f"{lowest / 1000:.4g}", highest * 1000
    return {
        name: f"isValid(datum.{name}) ? clamp(datum.{name}, {bottom}, {highest:.4g}) : null" for name in ("low", "high")
    }


def _level(panel: Panel) -> Iterator[alt.Chart]:
    if panel.line is None:
        return
    rule = alt.Chart(alt.InlineData(values=[{"level": panel.line}]))
    along = alt.X("level:Q") if panel.against == "category" else alt.Y("level:Q")
    yield rule.mark_rule(color=BLACK, strokeDash=[1, 3], strokeWidth=1.5, clip=True).encode(along)


def _label(panel: Panel) -> str:
    """An expression that writes a mean and its interval."""
    number = "'.3%'" if panel.scale == "share" else "'.4~g'"
    mean, low, high = (f"format(datum.{name}, {number})" for name in ("mean", "low", "high"))
    return f"isValid(datum.low) ? {mean} + '  [' + {low} + ', ' + {high} + ']' : {mean}"


def _under_pointer(shown: alt.Chart, panel: Panel, x: alt.X, place: int) -> alt.Chart:
    """A line at the nearest place, with the values of all series there."""
    name = _NAMES_OF_X[panel.against]
    nearest = alt.selection_point(
        name=f"nearest_{place}", nearest=True, on="pointermove", clear="pointerout", fields=[name], empty=False
    )
    rule: alt.Chart = (
        shown.transform_calculate(**{name: "datum.x", "label": _label(panel)})
        .transform_pivot("series", value="label", groupby=[name], op="max")
        .mark_rule(color=_SOFT, tooltip=alt.TooltipContent("data"))
        .encode(x, opacity=alt.when(nearest).then(alt.value(0.5)).otherwise(alt.value(0)))
        .add_params(nearest)
    )
    return rule
