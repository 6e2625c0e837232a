"""Tables that sort, and estimates with their intervals as cells of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from lacuna.quantities import number_text
from lacuna.study.statistics import Interval

Text = str | Markup
"""Plain text, which is escaped, or HTML."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table that sorts by something else than its text."""

    text: Text
    sort: float | str | None


@dataclass(frozen=True)
class Row:
    """A row of a table; `more`, if given, opens below it. `id` lets links lead to it and open it."""

    cells: Sequence[Text | float | Cell]
    more: Text = ""
    id: str = ""


def table(columns: Sequence[Text], rows: Iterable[Row | Sequence[Text | float | Cell]], caption: Text = "") -> Markup:
    """Make a table that sorts by a click on a column; numbers sort as numbers.

    Examples
    --------
    >>> "<th" in table(["method", "reward"], [["SI", 85.2], Row(["MI", 88.1], more="The details.")])
    True
    """
    whole = [row if isinstance(row, Row) else Row(row) for row in rows]
    heads = joined(_head(text, all(_is_number(row.cells[i]) for row in whole)) for i, text in enumerate(columns))
    bodies = joined(_body(row, len(columns), i) for i, row in enumerate(whole))
    return Markup('<div class="scroll"><table class="sortable">{}<thead><tr>{}</tr></thead>{}</table></div>').format(
        Markup("<caption>{}</caption>").format(caption) if caption else "", heads, bodies
    )


def cards(made: Markup) -> Markup:
    """Let the rows of a table with many columns stand one below the other on a phone.

    Examples
    --------
    >>> print(cards(Markup("<p>SI</p>")))
    <div class="cards many-columns"><p>SI</p></div>
    """
    return Markup('<div class="cards many-columns">{}</div>').format(made)


def interval_cell(found: Interval | None, below: Text | None = None, note: Text = "") -> Cell:
    """Make a cell of an estimate, with its bounds below it, or something else, and a note below that.

    Examples
    --------
    >>> print(interval_cell(Interval(2.0, 1.5, 2.5, 10)).text)
    2.00<br><span class="quiet">1.50 to 2.50</span>
    """
    if found is None:
        return Cell("–", None)
    told = bounds_text(found) if below is None else below
    quiet = Markup('<br><span class="quiet">{}</span>')
    more = joined([quiet.format(text) for text in (told, note) if text], "")
    return Cell(Markup("{}{}").format(short_number(found.estimate), more), found.estimate)


def bounds_text(found: Interval, scale: float = 1.0, digits: int | None = None) -> str:
    """Write the bounds of an interval; nothing if it has none.

    Examples
    --------
    >>> bounds_text(Interval(2.0, 1.5, 2.5, 10))
    '1.50 to 2.50'
    """
    if found.low is None or found.high is None:
        return ""
    return f"{short_number(scale * found.low, digits)} to {short_number(scale * found.high, digits)}"


def short_number(value: float, digits: int | None = None) -> str:
    """Write a number with a few digits after the point.

    Examples
    --------
    >>> short_number(-12.345), short_number(0.01234)
    ('−12.35', '0.012')
    """
    # Rewards of some worlds lie between 0 and 1.
    shown = (2 if abs(value) >= 1 else 3) if digits is None else digits
    return number_text(value, f".{shown}f")


def joined(parts: Iterable[Text], between: str = "\n") -> Markup:
    """Put pieces of HTML one after the other; plain texts are escaped.

    Examples
    --------
    >>> print(joined([Markup("<b>a</b>"), "b < c"], ", "))
    <b>a</b>, b &lt; c
    """
    return Markup(between).join(parts)  # noqa: S704


def _head(text: Text, of_numbers: bool) -> Markup:
    return Markup('<th scope="col" aria-sort="none"{}><button type="button">{}</button></th>').format(
        Markup(' class="number"') if of_numbers else "", text
    )


def _body(row: Row, width: int, position: int) -> Markup:
    cells = [_cell(cell) for cell in row.cells]
    name = Markup(' id="{}"').format(row.id) if row.id else ""
    if not row.more:
        return Markup("<tbody{}><tr>{}</tr></tbody>").format(name, joined(cells))
    target = f"more-{row.id or position}"
    opener = Markup('<button type="button" class="opener" aria-expanded="false" aria-controls="{}">{}</button>').format(
        target, _text(row.cells[0])
    )
    cells[0] = _cell(Cell(opener, _sort(row.cells[0])))
    more = Markup('<tr class="more" id="{}" hidden><td colspan="{}">{}</td></tr>').format(target, width, row.more)
    return Markup("<tbody{}><tr>{}</tr>{}</tbody>").format(name, joined(cells), more)


def _cell(cell: Text | float | Cell) -> Markup:
    key, kind = _sort(cell), Markup(' class="number"') if _is_number(cell) else ""
    return Markup('<td data-sort="{}"{}>{}</td>').format("" if key is None else key, kind, _text(cell))


def _is_number(cell: Text | float | Cell) -> bool:
    return isinstance(cell.sort if isinstance(cell, Cell) else cell, int | float)


def _text(cell: Text | float | Cell) -> Text:
    text = cell.text if isinstance(cell, Cell) else cell
    return text if isinstance(text, str) else f"{text:.4g}"


def _sort(cell: Text | float | Cell) -> float | str | None:
    if isinstance(cell, Cell):
        return cell.sort
    return Markup(cell).striptags() if isinstance(cell, Markup) else cell  # noqa: S704
