"""Tables as CSV in which a spreadsheet sees texts as texts: none is taken for a formula and run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_FORMULA = r"^[=+\-@\t\r]"
"""How a cell begins that a spreadsheet would compute."""


def as_csv(table: pl.DataFrame, *, time_format: str | None = None) -> bytes:
    """Write a table as CSV. The items of a list are separated by ``;``.

    A text, or a name of a column, that begins like a formula (``= + - @``, a tab or a carriage return) gets an
    apostrophe before it. Numbers and lists of numbers stay as they are.

    Parameters
    ----------
    table
        The table.
    time_format
        How times are written, as for `strftime`.

    Examples
    --------
    >>> import polars as pl
    >>> print(as_csv(pl.DataFrame({"who": ["=1+1", "maria"], "reward": [-1.0, 2.0]})).decode(), end="")
    who,reward
    '=1+1,-1.0
    maria,2.0
    """
    import polars as pl  # noqa: PLC0415  an agent that is deployed has none

    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    lists = [name for name, kind in table.schema.items() if kind == pl.List]
    safe = table.with_columns(
        *(pl.col(name).str.replace(_FORMULA, "'$0") for name in texts),
        *(pl.col(name).cast(pl.List(pl.String)).list.join(";") for name in lists),
    )
    heads = pl.Series(table.columns, dtype=pl.String).str.replace(_FORMULA, "'$0").to_list()
    return safe.rename(dict(zip(table.columns, heads, strict=True))).write_csv(datetime_format=time_format).encode()
