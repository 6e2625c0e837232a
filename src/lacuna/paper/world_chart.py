"""Lake World as a chart: its two maps, dry and flooded, in the manner of the paper's figure 2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import altair as alt
import numpy as np

from lacuna.report.panels import print_config
from lacuna.worlds.lake import COLOURS, Lake
from lacuna.worlds.lake_picture import LETTERS, PALETTE, Box, Letter, draw

_SIDE = 300
_NAMES = {colour: f"{colour} ({LETTERS[colour]})" for colour in COLOURS}


def worlds(lake: Lake | None = None) -> alt.ConcatChart:
    """Draw the dry and the flooded map: colours, water, start, goal, bridge and fog.

    Examples
    --------
    >>> [panel["title"]["text"] for panel in worlds().to_dict()["concat"]]
    ['Dry', 'Flooded']
    """
    lake = lake or Lake()
    series = [{"name": name, "colour": PALETTE[colour], "shape": "fill"} for colour, name in _NAMES.items()]
    series.append({"name": "shore of the water (≈)", "colour": PALETTE["water"], "shape": "line"})
    dry, flooded = lake.ground.water.sum(axis=(1, 2))
    legend = alt.LegendConfig(
        orient="top", title=None, symbolType="square", symbolSize=180, symbolStrokeWidth=0, labelFontSize=12
    )
    return alt.concat(
        *(_map(lake, flooded) for flooded in (False, True)),
        columns=2,
        spacing=28,
        usermeta={"columns": 2, "square": True, "series": series},
        description=f"Of {lake.fogged.size} cells, {dry} are water when it is dry and {flooded} when it is flooded.",
        config=alt.Config(**print_config() | {"legend": legend}),
    )


def _map(lake: Lake, flooded: bool) -> alt.LayerChart:
    """The marks of the drawing as they are, and above them an unseen copy of the cells that answers the pointer."""
    drawing = draw(lake, flooded=flooded)
    n_rows, n_columns = lake.shape
    x = alt.X("left:Q", axis=None, scale=alt.Scale(domain=[0, n_columns], nice=False))
    y = alt.Y("top:Q", axis=None, scale=alt.Scale(domain=[n_rows, 0], nice=False))
    area = (x, y, alt.X2("right"), alt.Y2("bottom"))
    colour = alt.Color("colour:N").scale(domain=list(_NAMES.values()), range=[PALETTE[name] for name in _NAMES])
    fill, opacity = alt.Fill("fill:N", scale=None), alt.Opacity("opacity:Q", scale=None)
    ink, size = alt.Color("ink:N", scale=None), alt.Size("pixels:Q", scale=None)
    cells = _rows(_corners(cell) | facts for cell, facts in zip(drawing.cells, _facts(lake, flooded), strict=True))
    boxes = _rows(_corners(box) | {"fill": box.fill, "opacity": box.opacity} for box in drawing.boxes)
    letters = _rows(
        {"text": text, "left": column, "top": row, "pixels": round(size * _SIDE / n_columns), "ink": ink}
        for text, row, column, size, ink in (*drawing.letters, *_captions(lake, flooded))
    )
    layers = [
        cells.mark_rect().encode(*area, colour),
        boxes.mark_rect().encode(*area, fill, opacity),
        letters.mark_text(fontWeight=600).encode(x, y, alt.Text("text:N"), ink, size),
        cells.mark_rect(opacity=0).encode(*area, tooltip=["place:N", "colour:N", "water:N", "fog:N"]),
    ]
    title = alt.TitleParams("Flooded" if flooded else "Dry", offset=8)
    return alt.LayerChart(layer=layers, title=title, width=_SIDE, height=_SIDE)


def _rows(values: Iterable[Mapping[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(values)))


def _corners(box: Box) -> dict[str, Any]:
    return {"left": box.column, "top": box.row, "right": box.column + box.width, "bottom": box.row + box.height}


def _facts(lake: Lake, flooded: bool) -> Iterator[dict[str, str]]:
    """What is said of each cell under the pointer."""
    for row, column in np.ndindex(lake.shape):
        yield {
            "place": f"row {row}, column {column}",
            "colour": _NAMES[COLOURS[int(lake.ground.colour[int(flooded), row, column])]],
            "water": "yes" if lake.ground.water[int(flooded), row, column] else "no",
            "fog": "yes" if lake.fogged[row, column] else "no",
        }


def _captions(lake: Lake, flooded: bool) -> Iterator[Letter]:
    """Words over the map: the bridge, which is land between water above and below, and the fog."""
    water = lake.ground.water[int(flooded)]
    for row in range(1, len(water) - 1):
        columns = np.flatnonzero(water[row - 1] & ~water[row] & water[row + 1])
        if columns.size:
            yield Letter("bridge", row + 0.65, columns.mean() + 0.5, 0.35, PALETTE["ink"])
    rows, columns = np.nonzero(lake.fogged)
    if rows.size:
        yield Letter("fog", rows.mean() + 0.65, columns.mean() + 0.5, 0.35, PALETTE["ink"])
