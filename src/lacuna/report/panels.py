"""Panels of a chart: means as lines, intervals as bands or trials as thin lines, values under the pointer.

Series differ by colour, dash and marker. A mean below the end of a cut axis is an arrow with its value.

A chart of panels is an `altair.ConcatChart` whose rows lie beside it as plain data, so it can be shown in a notebook,
saved, or put on a page (`lacuna.report.page`), where its series can be switched off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json import dumps
from typing import Any, NamedTuple

import altair as alt
import polars as pl

from lacuna.quantities import number_text
from lacuna.report.axes import NAMES_OF_X, Panel, extent, horizontal, limits, linear_scale, vertical
from lacuna.report.styles import BLACK, HALO, INK, LINE, SOFT, WHITE, Style

LABELS = 170
"""Pixels for the names of categories."""
FEW_TRIALS = 5
"""With so few trials an interval says little, as its own width is chance: the trials themselves are drawn instead."""
_MARKERS = 4
"""On a curve, which has too many points to mark them all."""


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
        Rows with ``panel``, ``series``, ``trial``, ``x`` and ``value``: a thin line for each trial. If there are at
        most `FEW_TRIALS`, intervals are shown on request only.

    Examples
    --------
    >>> row = {"panel": "reward", "series": "MI", "low": 79.0, "high": 81.0, "mean": 80.0}
    >>> points = pl.DataFrame([row | {"x": 0.2}, row | {"x": 0.4}])
    >>> chart = chart_of(points, [Panel("reward", "Reward", against="rate")], [Style("MI", BLACK)])
    >>> len(chart.concat)
    1
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
    enough = trials is None or trials["trial"].n_unique() > FEW_TRIALS
    choices: dict[str, Any] = {"intervals": enough} if any(panel.against != "category" for panel in drawn) else {}
    choices |= {} if trials is None else {"trials": True}
    choices |= {"closer": True} if any(panel.close_up is not None for panel in drawn) else {}
    for lowest, close_up in {panel.floor for panel in drawn if panel.floor}:
        meta |= {"close_up": close_up}
        choices |= {"lowest": lowest}
    chart = laid_out(
        [
            (_panel_of_categories if panel.against == "category" else _panel)(
                panel, rows.filter(panel=panel.key), seen, _Place(i, trials is not None, _sharing(panel, drawn, rows))
            )
            for i, panel in enumerate(drawn)
        ],
        rows.to_dicts(), seen, columns, **choices,
    )  # fmt: skip
    if trials is not None:
        on_axis = (pl.col("value") > 0) | ~pl.col("panel").is_in(logarithmic)
        lines = trials.filter(on_axis & wanted).select("panel", "series", "trial", "x", "value")
        chart.datasets |= {"trials": lines.to_dicts()}
    chart.description = " ".join(_finding(panel, rows.filter(panel=panel.key)) for panel in drawn)
    chart.usermeta |= meta
    return chart


def laid_out(
    panels: Sequence[alt.LayerChart], rows: list[dict[str, Any]], styles: Sequence[Style], columns: int, **choices: Any
) -> alt.ConcatChart:
    """Lay drawn panels out in columns, over the same rows; `choices` are parameters that readers may set.

    Examples
    --------
    >>> dots = framed("Dots", [shown_rows("dots").mark_point().encode(x="x:Q")])
    >>> rows = [{"panel": "dots", "series": "MI", "x": 1}]
    >>> len(laid_out([dots], rows, [Style("MI", BLACK)], columns=1).concat)
    1
    """
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
    """Put layers over each other, under a title.

    Examples
    --------
    >>> dots = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    >>> framed("Dots", [dots], width=100).width
    100
    """
    # Apart from the legend of colours and dashes, which would otherwise go the way of the one for markers.
    apart = alt.Resolve(
        scale=alt.ScaleResolveMap(shape="independent"), legend=alt.LegendResolveMap(shape="independent")
    )
    heading = alt.TitleParams(title, offset=8, frame="group")
    return alt.LayerChart(layer=list(layers), title=heading, width=width, height=height, resolve=apart)


def encodings(styles: Sequence[Style]) -> tuple[alt.Color, alt.StrokeDash, alt.Shape]:
    """Return the colour, dash and marker of each series.

    Examples
    --------
    >>> colour, dash, marker = encodings([Style("MI", BLACK), Style("SI", INK)])
    >>> colour.to_dict()["scale"]["domain"]
    ['MI', 'SI']
    """
    names = [style.name for style in styles]
    colour = alt.Color("series:N").scale(domain=names, range=[style.colour for style in styles])
    dash = alt.StrokeDash("series:N").scale(domain=names, range=[list(style.dash) for style in styles])
    shape = alt.Shape("series:N", legend=None).scale(domain=names, range=[style.shape for style in styles])
    return colour, dash, shape


def shown_rows(panel: str) -> alt.Chart:
    """The rows of a panel, without series that are switched off.

    Examples
    --------
    >>> shown_rows("dots").mark_point().to_dict(validate=False)["transform"][0]["filter"]
    'datum.panel === "dots" && indexof(hidden, datum.series) < 0'
    """
    named = dumps(panel, ensure_ascii=False)
    return alt.Chart().transform_filter(f"datum.panel === {named} && indexof(hidden, datum.series) < 0")


def print_config() -> dict[str, Any]:
    """Return the looks of a chart on paper; a page brings its own.

    Examples
    --------
    >>> print_config()["background"]
    '#ffffff'
    """
    return {
        "font": "Helvetica, Arial, sans-serif",
        "background": WHITE,
        # Room for a reader's font, which may be wider than the one by which texts are measured here.
        "padding": {"left": 5, "top": 5, "right": 45, "bottom": 5},
        "view": alt.ViewConfig(stroke=None),
        "axis": alt.AxisConfig(
            labelColor=SOFT, titleColor=SOFT, gridColor=LINE, domainColor=LINE, tickColor=LINE,
            titleFontWeight="normal", labelFontSize=11, titleFontSize=11,
        ),
        "title": alt.TitleConfig(color=INK, fontSize=12, fontWeight=600, anchor="start"),
        "legend": alt.LegendConfig(
            orient="top", columns=4, labelFontSize=12, labelColor=INK,
            labelLimit=260, offset=16, columnPadding=16, title=None,
            symbolType="stroke", symbolSize=500, symbolStrokeWidth=2.5, symbolOpacity=1,
        ),
    }  # fmt: skip


class _Place(NamedTuple):
    """Where a panel stands, whether it has lines for trials, and the rows of all panels that share its axis."""

    number: int
    has_trials: bool
    sharing: pl.DataFrame


def _sharing(panel: Panel, panels: Sequence[Panel], rows: pl.DataFrame) -> pl.DataFrame:
    keys = [other.key for other in panels if panel.shares and other.shares == panel.shares]
    return rows.filter(pl.col("panel").is_in(keys or [panel.key]))


def _finding(panel: Panel, rows: pl.DataFrame) -> str:
    """What a panel shows, for those who hear it: who ends highest, and who lowest, where most series still go on."""
    if rows.is_empty():
        return f"{panel.title}: nothing above 0."
    if panel.against == "category":
        found = [_extremes(panel, rows.filter(category=name)) for name in rows["category"].unique(maintain_order=True)]
        return f"{panel.title}: {'; '.join(found)}."
    at = rows.group_by("x").len().sort("len", "x")["x"][-1]
    places = {"rate": f"at θ = {at:g}", "score": f"at a score of {at:g}", "log seconds": f"after {at:g} seconds"}
    place = places.get(panel.against, f"after {at:,.0f} steps")
    return f"{panel.title}, {place}: {_extremes(panel, rows.filter(x=at))}."


def _extremes(panel: Panel, rows: pl.DataFrame) -> str:
    form = ".1%" if panel.scale == "share" else ".4g"
    words = [f"{row['series']} {number_text(row['mean'], form)}" for row in rows.sort("mean").iter_rows(named=True)]
    where = f"{rows['category'][0]}: " if panel.against == "category" else ""
    return f"{where}highest {words[-1]}, lowest {words[0]}"


def _panel_of_categories(
    panel: Panel, rows: pl.DataFrame, styles: Sequence[Style], place: _Place
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
    begins, _ = limits(panel, place.sharing)
    across = alt.Axis(title=panel.axis or None, tickCount=5)
    scale = linear_scale(panel, place.sharing)
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
    if panel.is_cut:
        # Here what lies beyond the end of the axis lies to the left.
        beyond = shown.transform_filter(f"datum.mean < {begins}").transform_calculate(
            edge=begins, label=_WHOLE.format("mean")
        )
        at = (alt.X("edge:Q", axis=across, scale=scale), y, *offset)
        arrow = beyond.mark_point(filled=True, size=60, opacity=1, shape="triangle-left")
        layers.append(arrow.encode(*at, colour, tooltip=told))
        layers += haloed(beyond, at, align="left", dx=8)
    return framed(panel.title, layers, height=max(60, len(names) * (9 * len(here) + 12 if apart else 24)))


def _panel(panel: Panel, rows: pl.DataFrame, styles: Sequence[Style], place: _Place) -> alt.LayerChart:
    colour, dash, shape = encodings(styles)
    x = horizontal(panel, rows, "x")
    axis, scale = vertical(panel, place.sharing)
    mean, low = (alt.Y(f"{name}:Q", axis=axis, scale=scale) for name in ("mean", "low"))
    clip = panel.is_cut  # no other axis ends before its values do
    shown = shown_rows(panel.key)
    bounds = _bounded(panel, place.sharing)
    bounded = shown.transform_calculate(**bounds) if bounds else shown
    dense = panel.is_dense(place.sharing)
    band = bounded.mark_area(fillOpacity=alt.ExprRef("intervals ? 0.12 : 0"), clip=not dense)
    layers = [
        *_trial_lines(panel, (x, axis, scale, colour), place),
        *([band.encode(x, low, alt.Y2("high"), colour)] * _has_bounds(rows)),
        *_level(panel),
        shown.mark_line(strokeWidth=2, clip=clip).encode(x, mean, colour, dash),
        _under_pointer(shown, panel, horizontal(panel, rows, NAMES_OF_X[panel.against]), place.number),
    ]
    marked = _some_points(shown, rows, styles) if dense else shown
    layers.append(marked.mark_point(filled=True, size=42, opacity=1, clip=clip).encode(x, mean, colour, shape))
    if panel.is_cut:
        layers += _off_scale(panel, shown, place, (x, axis, scale, colour))
    return framed(panel.title, layers)


def _some_points(shown: alt.Chart, rows: pl.DataFrame, styles: Sequence[Style]) -> alt.Chart:
    """A few points of every series, each at steps of its own, so that markers do not hide each other."""
    names = [style.name for style in styles]
    every = max(1, int(rows.group_by("series").len()["len"].to_numpy().max()) // _MARKERS)
    turn = f"floor(indexof({dumps(names, ensure_ascii=False)}, datum.series) * {every} / {len(names)})"
    last_first = alt.SortField("x", order="descending")
    marked: alt.Chart = shown.transform_window(
        place="row_number()", groupby=["series"], sort=[last_first]
    ).transform_filter(f"(datum.place - 1 - {turn}) % {every} === 0")
    return marked


_WHOLE = "format(datum.{}, abs(datum.mean) < 10 ? '.2~f' : ',.0f')"


def _off_scale(panel: Panel, shown: alt.Chart, place: _Place, drawn: tuple[Any, ...]) -> Iterator[alt.Chart]:
    """Arrows where means lie below the end of the axis: a row of them for each series, with its lowest value.

    A curve gets one if it ends there.
    """
    x, axis, scale, colour = drawn
    begins, stops = limits(panel, place.sharing)
    dense = panel.is_dense(place.sharing)
    here = shown.transform_joinaggregate(last="max(x)", groupby=["series"]) if dense else shown
    ended = " && datum.x === datum.last" if dense else ""
    below = (
        here.transform_filter(f"datum.mean < {begins}{ended}")
        .transform_joinaggregate(worst="min(mean)", first="min(x)", groupby=["series"])
        .transform_window(row="dense_rank()", sort=[alt.SortField("series", order="ascending")])
        .transform_calculate(
            edge=f"{begins} + (datum.row - 0.4) * 0.075 * ({stops} - {begins})",
            label=f"datum.series + '  ' + {_WHOLE.format('worst')}",
        )
    )
    at = (x, alt.Y("edge:Q", axis=axis, scale=scale))
    yield below.mark_point(filled=True, size=46, opacity=1, shape="triangle-down").encode(*at, colour)
    # Words stand left of the first arrow, where there is room for them; more arrows may follow on its right.
    room = f"datum.first > {_at(0.5 if dense else 0.3, panel, place.sharing):.4g}"
    first = below.transform_filter("datum.x === datum.first")
    yield from haloed(first.transform_filter(room), at, align="right", dx=-7)
    yield from haloed(first.transform_filter(f"!({room})"), at, align="left", dx=7)


def _at(share: float, panel: Panel, rows: pl.DataFrame) -> float:
    """The value at a share of the horizontal axis."""
    last = float(rows.select(pl.col("x").max()).item())
    if panel.against in ("log steps", "log seconds"):
        first = float(rows.select(pl.col("x").min()).item())
        return float(first * (last / first) ** share)
    left, right = panel.span if panel.against == "rate" else (0.0, last)
    return left + share * (right - left)


def haloed(rows: alt.Chart, at: Sequence[Any], **mark: Any) -> Iterator[alt.Chart]:
    """Write the column ``label`` over lines, so that it can be read.

    Examples
    --------
    >>> rows = alt.Chart(alt.InlineData(values=[{"x": 1, "label": "one"}]))
    >>> len(list(haloed(rows, [alt.X("x:Q")])))
    2
    """
    for colour in ({"stroke": HALO, "strokeWidth": 5}, {"color": SOFT}):
        yield rows.mark_text(fontSize=10, limit=170, **colour, **mark).encode(*at, text="label:N")


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


def _bounded(panel: Panel, rows: pl.DataFrame) -> dict[str, str]:
    """The bounds of bands as drawn.

    Against steps they are kept within the axis: clipping would look the same at many times the cost. Where points lie
    so far apart that it would bend the band away from its line, it is clipped, and only what a logarithm cannot take is
    kept off.
    """
    first, last = limits(panel, rows)
    if not panel.is_dense(rows):
        if panel.scale != "log":
            return {}
        lowest, highest = extent(panel, rows)
        first, last = f"{lowest / 1000:.4g}", f"{highest * 1000:.4g}"
    return {name: f"isValid(datum.{name}) ? clamp(datum.{name}, {first}, {last}) : null" for name in ("low", "high")}


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
    name = NAMES_OF_X[panel.against]
    nearest = alt.selection_point(
        name=f"nearest_{place}", nearest=True, on="pointermove", clear="pointerout", fields=[name], empty=False
    )
    rule: alt.Chart = (
        shown.transform_calculate(**{name: "datum.x", "label": _label(panel)})
        .transform_pivot("series", value="label", groupby=[name], op="max")
        .mark_rule(color=SOFT, tooltip=alt.TooltipContent("data"))
        .encode(x, opacity=alt.when(nearest).then(alt.value(0.5)).otherwise(alt.value(0)))
        .add_params(nearest)
    )
    return rule
