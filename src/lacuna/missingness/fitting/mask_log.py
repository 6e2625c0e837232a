"""A log of observations as arrays: what was hidden in each row, what was seen, and which rows follow each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.quantities import counted
from lacuna.validation import nearest, shown

LEAST_ROWS = 30
MOST_VALUES = 100
"""A component with more values cannot be a driver."""

_NOTHING = frozenset({"NAType", "NaTType", "MaskedConstant"})
_REAL = (float, np.floating, Decimal)

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Column:
    """The values of a component or of the action: numbered, or unknown."""

    name: str
    values: Integers
    """Number of each row's value, -1 where it is missing."""
    labels: tuple[Any, ...]
    """What the numbers stand for; empty if the component cannot be a driver."""


@dataclass(frozen=True, eq=False)
class MaskLog:
    """Rows in the order of time within their sequence, and sequences one after another."""

    columns: tuple[Column, ...]
    hidden: Flags
    """``[row, component]``."""
    begins: Flags
    """Whether a row is the first of its sequence."""
    action: Column | None
    blocks: Integers
    """Rows of one block may depend on each other; blocks are taken to be independent."""

    @property
    def names(self) -> tuple[str, ...]:
        """The components."""
        return tuple(column.name for column in self.columns)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.hidden.shape[0])

    @property
    def d(self) -> int:
        """Number of components."""
        return int(self.hidden.shape[1])


def read_log(
    frame: Any, *, components: Sequence[str] | None = None, masked: bool = False, sequence: Any = None,
    order: Any = None, action: Any = None, first_observed: bool = False,
) -> MaskLog:  # fmt: skip
    """Read what `from_masks` takes, or raise an error."""
    table = _columns(frame)
    keys = {"sequence": sequence, "order": order, "action": action}
    named = {what: _found(table, what, given) for what, given in keys.items()}
    taken = {one for found in named.values() for one in found}
    names = [name for name in table if name not in taken] if components is None else _chosen(table, components, taken)
    if not names:
        raise ValueError(f"the frame has no column left for a component; it has {_listed(table)}")
    n = len(next(iter(table.values())))
    rows, begins = _in_order(
        n, _labels(n, table, sequence, named["sequence"]), _labels(n, table, order, named["order"])
    )
    kept = ~begins if first_observed else np.ones(n, dtype=np.bool_)
    begins = _first_kept(begins, kept)
    rows = rows[kept]
    if len(rows) < LEAST_ROWS:
        raise ValueError(f"the log has {counted(len(rows), 'row')}; at least {LEAST_ROWS} are needed")
    read = [_read_mask(name, table[name]) if masked else _read_values(name, table[name]) for name in names]
    hidden = np.stack([flags[rows] for flags, _ in read], axis=1)
    columns = tuple(Column(column.name, column.values[rows], column.labels) for _, column in read)
    acted = None
    if action is not None:
        values = _labels(n, table, action, named["action"])
        _, column = _read_values("action", [value[0] for value in values or ()])
        acted = Column("action", column.values[rows], column.labels)
        if not column.labels:
            raise ValueError(f"the actions must be whole numbers or names, at most {MOST_VALUES} of them")
    return MaskLog(columns, hidden, begins, acted, _blocks(begins))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(str, names)) or "none"


def _columns(frame: Any) -> dict[str, list[Any]]:
    """Columns by name, of a frame, a mapping or an array of two dimensions."""
    if hasattr(frame, "collect") and hasattr(frame, "collect_schema"):
        frame = frame.collect()
    if isinstance(frame, Mapping) or hasattr(frame, "columns"):
        names = list(frame.keys() if isinstance(frame, Mapping) else frame.columns)
        if len(set(map(str, names))) < len(names):
            raise ValueError(f"the columns of the frame must have different names; they are {_listed(names)}")
        table = {str(name): _as_list(frame[name]) for name in names}
    else:
        array = np.ma.asanyarray(frame)
        if array.ndim != 2 or array.dtype.kind not in "iufbO":
            raise TypeError(
                f"a log is a frame of polars or pandas, a mapping of columns, or an array [row, component], "
                f"not {shown(type(frame).__name__)} of shape {array.shape}"
            )
        if array.dtype.kind == "i":  # as `MissingObservation.components` and `Trace.seen` write what is hidden
            array = np.ma.masked_less(array, 0)
        table = {f"x{j}": array[:, j].tolist() for j in range(array.shape[1])}
    lengths = {len(column) for column in table.values()}
    if len(lengths) > 1:
        raise ValueError(f"the columns of the log have different lengths: {', '.join(map(str, sorted(lengths)))}")
    if not table:
        raise ValueError("the log has no columns")
    return table


def _as_list(column: Any) -> list[Any]:
    for method in ("to_list", "tolist"):
        if hasattr(column, method):
            values: list[Any] = getattr(column, method)()
            return values
    return list(column)


def _found(table: Mapping[str, list[Any]], what: str, given: Any) -> list[str]:
    """Names of columns that an argument gives; none if it is None or holds the values themselves."""
    names = [given] if isinstance(given, str) else given
    values = names is given and isinstance(names, list | tuple) and len(names) == len(next(iter(table.values())))
    if values or not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return []
    if missing := [name for name in names if name not in table]:
        raise ValueError(f"{what} is {shown(missing[0])}{nearest(missing[0], table)}; the columns are {_listed(table)}")
    return list(names)


def _chosen(table: Mapping[str, list[Any]], components: Sequence[str], taken: set[str]) -> list[str]:
    names = [components] if isinstance(components, str) else [str(name) for name in components]
    for name in names:
        if name not in table:
            raise ValueError(f"components names {shown(name)}{nearest(name, table)}; the columns are {_listed(table)}")
        if name in taken or names.count(name) > 1:
            raise ValueError(f"components names {shown(name)}, which is named already; a column has one meaning")
    return names


def _labels(n: int, table: Mapping[str, list[Any]], given: Any, named: list[str]) -> list[tuple[Any, ...]] | None:
    """What each row has in the columns named, or in the values given."""
    if given is None:
        return None
    columns = [table[name] for name in named] if named else [_as_list(given)]
    if len(columns[0]) != n:
        raise ValueError(f"a column of {len(columns[0])} values was given for {counted(n, 'row')}")
    return list(zip(*columns, strict=True))


def _in_order(
    n: int, sequence: list[tuple[Any, ...]] | None, order: list[tuple[Any, ...]] | None
) -> tuple[Integers, Flags]:
    """Rows with those of one sequence beside each other, in their order; and which of them begin one."""
    if sequence is not None and any(_is_missing(value) for row in sequence for value in row):
        raise ValueError("the column of sequences has missing values; every row needs one")
    first_seen: dict[tuple[Any, ...], int] = {}
    which = np.array([first_seen.setdefault(label, len(first_seen)) for label in sequence or ()], dtype=np.int64)
    which = which if sequence is not None else np.zeros(n, dtype=np.int64)
    if order is not None and any(_is_missing(value) for row in order for value in row):
        raise ValueError("the column of the order has missing values; every row needs one")
    times = range(n) if order is None else order
    try:
        rows = np.array(sorted(range(n), key=lambda row: (which[row], times[row])), dtype=np.int64)
    except TypeError:
        raise ValueError("the column of the order has values that cannot be compared") from None
    begins = np.diff(which[rows], prepend=-1) != 0
    return rows, begins


def _first_kept(begins: Flags, kept: Flags) -> Flags:
    """Which of the kept rows begin a sequence."""
    which = np.cumsum(begins)[kept]
    first: Flags = np.diff(which, prepend=0) != 0
    return first


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in _NOTHING or (isinstance(value, _REAL) and isnan(value))


def _read_mask(name: str, values: list[Any]) -> tuple[Flags, Column]:
    """What is hidden, from a column of 0 and 1."""
    for value in values:
        if _is_missing(value) or value not in (0, 1):
            raise ValueError(f"column {name} of the masks has {shown(value)}; a mask is 1 for missing and 0 for seen")
    return np.array(values, dtype=np.bool_), Column(name, np.full(len(values), -1, dtype=np.int64), ())


def _read_values(name: str, values: list[Any]) -> tuple[Flags, Column]:
    """What is hidden, and the values that were seen, numbered if they are whole numbers or texts and not too many."""
    hidden = np.array([_is_missing(value) for value in values], dtype=np.bool_)
    seen = [value for value, lost in zip(values, hidden, strict=True) if not lost]
    try:
        labels = sorted({_whole(value) for value in seen})
    except (TypeError, ValueError):
        labels = []
    if not labels or len(labels) > MOST_VALUES:
        return hidden, Column(name, np.full(len(values), -1, dtype=np.int64), ())
    number = {label: i for i, label in enumerate(labels)}
    numbered = np.full(len(values), -1, dtype=np.int64)
    numbered[~hidden] = [number[_whole(value)] for value in seen]
    return hidden, Column(name, numbered, tuple(labels))


def _whole(value: Any) -> Any:
    """A value that can be numbered; a real number cannot."""
    if isinstance(value, bool | int | np.integer | np.bool_):
        return int(value)
    if isinstance(value, float | np.floating) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return value
    raise ValueError("a real number")


def _blocks(begins: Flags) -> Integers:
    """Number the blocks of rows: about ¾ √n blocks for n rows, between 20 and 200; each lies in one sequence."""
    n = begins.size
    length = max(1, round(n / min(200, max(20, round(0.75 * n**0.5)))))
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.append(starts, n))
    pieces = np.maximum(1, np.round(sizes / length)).astype(np.int64)
    within = np.arange(n) - np.repeat(starts, sizes)
    piece = within * np.repeat(pieces, sizes) // np.repeat(sizes, sizes)
    first = np.cumsum(pieces) - pieces
    blocks: Integers = piece + np.repeat(first, sizes)
    return blocks
