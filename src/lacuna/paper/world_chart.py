"""Lake World as a chart: its two maps, dry and flooded, in the manner of the paper's figure 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np

from lacuna.report.panels import print_config
from lacuna.worlds.lake import COLOURS, Lake

FILLS = {"green": "#a9d6a0", "orange": "#f5b95a", "red": "#d9604c"}
"""Colours of the cells: apart in lightness too."""

# Not the colours of methods: a dark page leaves these as they are.
_SHORE, _INK, _HOME, _WHITE = "#1456b0", "#111111", "#1e703a", "#ffffff"
_SIDE = 300


def worlds(lake: Lake | None = None) -> alt.ConcatChart:
    """Draw the dry and the flooded map: colours, water, start, goal, bridge and fog.

    Examples
    --------
    >>> [panel["title"]["text"] for panel in worlds().to_dict()["concat"]]
    ['Dry', 'Flooded']
    """
    lake = lake or Lake()
    series = [{"name": name, "colour": fill, "shape": "fill"} for name, fill in FILLS.items()]
    series.append({"name": "shore of the water (≈)", "colour": _SHORE, "shape": "line"})
    meta = {"columns": 2, "square": True, "series": series}
    panels = (_map(lake, flooded) for flooded in (False, True))
    legend = alt.LegendConfig(
        orient="top", title=None, symbolType="square", symbolSize=180, symbolStrokeWidth=0, labelFontSize=12
    )
    config = alt.Config(**print_config() | {"legend": legend})
    return alt.concat(*panels, columns=2, spacing=28, usermeta=meta, config=config)


def _map(lake: Lake, flooded: bool) -> alt.LayerChart:
    n_rows, n_columns = lake.shape
    x = alt.X("column:Q", axis=None, scale=alt.Scale(domain=[-0.06, n_columns + 0.06], nice=False))
    y = alt.Y("row:Q", axis=None, scale=alt.Scale(domain=[n_rows + 0.06, -0.06], nice=False))
    area = (x, y, alt.X2("right"), alt.Y2("below"))
    colour = alt.Color("colour:N").scale(domain=list(FILLS), range=list(FILLS.values()))
    tooltip = [alt.Tooltip(name, type="nominal", title=name) for name in ("place", "colour", "water", "fog")]
    cells, marks = list(_cells(lake, flooded)), list(_marks(lake, flooded))
    layers = [
        _rows(cells).mark_rect(stroke=_WHITE, strokeWidth=1).encode(*area, colour, tooltip=tooltip),
        _rows([cell for cell in cells if cell["fog"] == "yes"])
        .mark_rect(fill=_WHITE, fillOpacity=0.62, tooltip=None)
        .encode(*area),
        _rows(list(_shore(lake.ground.water[int(flooded)])))
        .mark_rule(color=_SHORE, strokeWidth=4, strokeCap="round")
        .encode(*area),
        _rows(_homes(lake)).mark_rect(fill=_HOME, stroke=_INK, strokeWidth=2).encode(*area),
        _rows(marks)
        .mark_text(fontSize=13, fontWeight=600)
        .encode(x, y, alt.Text("text:N"), color=alt.Color("ink:N", scale=None)),
    ]
    title = alt.TitleParams("Flooded" if flooded else "Dry", offset=8)
    return alt.LayerChart(layer=layers, title=title, width=_SIDE, height=_SIDE)


def _rows(values: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=values))


def _cells(lake: Lake, flooded: bool) -> Iterator[dict[str, Any]]:
    ground = lake.ground
    for row, column in np.ndindex(lake.shape):
        yield _box(row, column) | {
            "place": f"row {row}, column {column}",
            "colour": COLOURS[int(ground.colour[int(flooded), row, column])],
            "water": "yes" if ground.water[int(flooded), row, column] else "no",
            "fog": "yes" if lake.fogged[row, column] else "no",
        }


def _box(row: int, column: int) -> dict[str, Any]:
    return {"row": row, "column": column, "below": row + 1, "right": column + 1}


def _homes(lake: Lake) -> list[dict[str, Any]]:
    return [_box(*lake.ground.start), _box(*lake.ground.goal)]


def _marks(lake: Lake, flooded: bool) -> Iterator[dict[str, Any]]:
    """Words in cells: start, goal, waves, the bridge, the fog."""
    ground = lake.ground
    yield _word("S", *ground.start, _WHITE)
    yield _word("G", *ground.goal, _WHITE)
    for row, column in np.argwhere(ground.water[int(flooded)]).tolist():
        yield _word("≈", row, column, _SHORE if ground.colour[int(flooded), row, column] < 2 else _WHITE)
    for row, columns in _bridges(ground.water[int(flooded)]):
        yield _word("bridge", row, float(columns.mean()), _INK)
    rows, columns = np.nonzero(lake.fogged)
    if rows.size:
        yield _word("fog", float(rows.mean()), float(columns.mean()), _INK)


def _word(text: str, row: float, column: float, ink: str) -> dict[str, Any]:
    return {"text": text, "row": row + 0.5, "column": column + 0.5, "ink": ink}


def _bridges(water: Any) -> Iterator[tuple[int, Any]]:
    """Rows of land between water above and below, with the columns where that is so."""
    for row in range(1, water.shape[0] - 1):
        columns = np.flatnonzero(water[row - 1] & ~water[row] & water[row + 1])
        if columns.size:
            yield row, columns


def _shore(water: Any) -> Iterator[dict[str, Any]]:
    """Every edge between water and what is not, the edge of the map included."""
    wet = np.pad(water, 1)
    for row, column in np.argwhere(water).tolist():
        for down, across in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            if not wet[row + 1 + down, column + 1 + across]:
                top, left = row + max(down, 0), column + max(across, 0)
                yield {"row": top, "column": left, "below": top + abs(across), "right": left + abs(down)}
