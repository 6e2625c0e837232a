"""Objects as HTML for notebooks: small tables and pictures without scripts, readable on light and dark pages.

Every text is escaped. Colours are the page's own (`currentColor`), with backgrounds that only tint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from math import isnan
from typing import Any

_BOX = "border:1px solid rgba(128,128,128,.4);border-radius:6px;padding:.6em .9em;margin:.2em 0;max-width:60em"
_CELL = "padding:.1em .7em;text-align:left;border:none;background:transparent;color:inherit"
_MOST_ROWS = 12


def shown_number(value: Any) -> str:
    """Return a value as text: numbers with four digits that count, nothing for None.

    Examples
    --------
    >>> shown_number(0.123456), shown_number(50_000), shown_number(None), shown_number(float("nan"))
    ('0.1235', '50,000', '', '–')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return "–" if isnan(value) else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def script_json(data: Any) -> str:
    r"""Return data as JSON for a script element. It holds no ``<``, so nothing in it can end the element.

    Examples
    --------
    >>> print(script_json({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def card(title: str, *parts: str) -> str:
    """Return a box with a title around parts that are HTML already.

    Examples
    --------
    >>> "<script>" in card("<script>alert(1)</script>")
    False
    """
    return f'<div style="{_BOX}"><div style="font-weight:600">{escape(title)}</div>{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f'<div style="margin:.3em 0">{escape(text)}</div>'


def facts(pairs: Iterable[tuple[str, Any]]) -> str:
    """Return names and values side by side; what is None is left out."""
    words = [f"{escape(name)}&nbsp;<b>{escape(shown_number(value))}</b>" for name, value in pairs if value is not None]
    return f'<div style="margin:.3em 0">{" · ".join(words)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, most: int = _MOST_ROWS) -> str:
    """Return a table; beyond `most` rows it ends with how many are left out."""
    every = [list(row) for row in rows]
    lines = [_row("th", head), *(_row("td", map(shown_number, row)) for row in every[:most])]
    left = len(every) - most
    more = paragraph(f"… and {left:,} more rows") if left > 0 else ""
    return f'<table style="border-collapse:collapse;margin:.3em 0;color:inherit">{"".join(lines)}</table>{more}'


def _row(kind: str, cells: Iterable[str]) -> str:
    inner = "".join(f'<{kind} style="{_CELL}">{escape(cell)}</{kind}>' for cell in cells)
    return f'<tr style="background:transparent">{inner}</tr>'


def grid(cells: Sequence[Sequence[tuple[str, float]]], *, across: str, down: str) -> str:
    """Return a picture of a grid: in each cell a sign and how strongly it is tinted, from 0 to 1.

    Parameters
    ----------
    cells
        Rows of pairs: a sign of one or two characters, and a strength.
    across, down
        What the columns and the rows are.
    """
    side = 22
    width, height = side * len(cells[0]), side * len(cells)
    parts = []
    for i, row in enumerate(cells):
        for j, (sign, strength) in enumerate(row):
            x, y = j * side, i * side
            parts.append(
                f'<rect x="{x}" y="{y}" width="{side - 1}" height="{side - 1}" fill="#0072b2" '
                f'fill-opacity="{0.06 + 0.5 * min(1.0, max(0.0, strength)):.2f}"/>'
                f'<text x="{x + side / 2}" y="{y + side * 0.7}" font-size="13" text-anchor="middle" '
                f'fill="currentColor">{escape(sign[:2])}</text>'
            )
    label = escape(f"grid: {down} down, {across} across")
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'xmlns="http://www.w3.org/2000/svg" style="max-width:100%">{"".join(parts)}</svg>'
        f'<div style="opacity:.7">{label}</div>'
    )
