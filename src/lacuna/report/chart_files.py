"""Charts as files: SVG, PDF and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from lacuna.files import write_whole
from lacuna.report.page import Spec

FORMATS = ("svg", "pdf", "png")
"""The kinds of files that a chart is written as."""
_SCALE = 1.5
_VERSION = ".".join(alt.VEGALITE_VERSION.split(".")[:2])


def spec_of(chart: Any) -> Spec:
    """Return the specification of a chart as plain data.

    Altair's check against the schema is left out: it takes long for many rows, and parts were checked when made. Rows
    that lie beside the chart are handed over as they are; altair would copy them one by one.

    Examples
    --------
    >>> dots = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    >>> spec_of(dots)["mark"]
    {'type': 'point'}
    """
    bare = chart.copy(deep=False)
    beside = {} if bare.datasets is alt.Undefined else bare.datasets
    bare.datasets = alt.Undefined
    spec: Spec = bare.to_dict(validate=False)
    return spec | {"datasets": spec.get("datasets", {}) | beside}


def write_files(spec: Spec, folder: Path, name: str) -> dict[str, Path]:
    """Write a chart as ``NAME.svg``, ``NAME.pdf`` and ``NAME.png``; give the paths by format.

    Examples
    --------
    >>> dots = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    >>> sorted(path.name for path in write_files(spec_of(dots), Path("figures"), "dots").values())
    ['dots.pdf', 'dots.png', 'dots.svg']
    """
    folder.mkdir(parents=True, exist_ok=True)
    svg = vl_convert.vegalite_to_svg(spec, vl_version=_VERSION)
    content = {
        "svg": svg.encode(),
        "pdf": vl_convert.svg_to_pdf(svg),
        "png": vl_convert.svg_to_png(svg, scale=_SCALE),
    }
    paths = {}
    for kind, data in content.items():
        paths[kind] = folder / f"{name}.{kind}"
        write_whole(paths[kind], data)
    return paths
