"""Two stores compared: which runs are in both and equal to the bit, and how means differ, paired by trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lacuna.quantities import counted
from lacuna.study.outcomes import Measure, side_by_side, trials_text
from lacuna.study.statistics import Interval
from lacuna.study.store import SCHEMA, UNREPEATABLE
from lacuna.study.summaries import on_shared_trials, paired

SUMMED = ("mean", "low", "high", "n", "p", "note", "clear")
"""What is said of differences."""

_KEPT = [name for name in SCHEMA if name not in UNREPEATABLE and name != "id"]


@dataclass(frozen=True)
class StoreComparison:
    """What two stores have in common.

    Parameters
    ----------
    equal
        How many runs are in both, and equal to the bit.
    differing
        The runs that are in both and differ, with ``columns``, the names of the columns in which they do.
    only
        The runs that are in the first store only, and in the second only.
    measure
        What is compared.
    differences
        Second minus first, paired by trial: ``place``, ``missingness``, ``task``, ``method`` with the settings that
        differ, the means ``first`` and ``second`` of the trials in both, ``apart``, whether any trial differs, and
        ``mean``, ``low``, ``high``, ``n``, ``p``, ``note`` and ``clear`` of the differences as in
        `lacuna.study.summaries.paired`.
    """

    equal: int
    differing: pl.DataFrame
    only: tuple[pl.DataFrame, pl.DataFrame]
    measure: Measure
    differences: pl.DataFrame

    def sentences(self, names: tuple[str, str]) -> list[str]:
        """Say which runs two stores share, and which they do not."""
        both = self.equal + self.differing.height
        told = [f"in both: {counted(both, 'run')}, {self.equal:,} of them equal to the bit"]
        if self.differing.height:
            columns = sorted({name for text in self.differing["columns"] for name in text.split(", ")})
            told.append(f"differing: {counted(self.differing.height, 'run')}, in {', '.join(columns)}")
        for name, runs in zip(names, self.only, strict=True):
            which = ""
            if runs.height:
                trials = trials_text(runs["trial"].unique().sort().to_list())
                which = f" ({', '.join(sorted(set(runs['method'])))}; {trials})"
            told.append(f"only in {name}: {counted(runs.height, 'run')}{which}")
        return told

    def compared(self) -> list[Compared]:
        """Return the rows of the table of differences."""
        return [
            Compared(
                place=row["place"],
                missingness=row["missingness"],
                method=row["method"],
                first=row["first"],
                second=row["second"],
                apart=Interval(row["mean"], row["low"], row["high"], row["n"]),
                finding=_finding(row),
            )
            for row in self.differences.iter_rows(named=True)
        ]


HEADS = ("World", "Missingness", "Method", "First", "Second", "Second minus first", "Trials", "Finding")
"""The columns of the table of differences."""


class Compared(NamedTuple):
    """A method in a task of both stores."""

    place: str
    missingness: str
    method: str
    first: float
    second: float
    apart: Interval
    finding: str


def _finding(row: Mapping[str, Any]) -> str:
    if not row["apart"]:
        return "equal"
    word = "no clear difference" if not row["clear"] else "clearly higher" if row["mean"] > 0 else "clearly lower"
    return f"{word}; {row['note']}" if row["note"] else word


def compare_stores(first: pl.DataFrame, second: pl.DataFrame) -> StoreComparison:
    """Compare two tables of runs.

    Runs are paired by trial where world, missingness, method and all settings agree. A method that has a single
    setting in each table is paired also if the two differ.
    """
    both = first.join(second.select("id"), on="id", how="semi").sort("id")
    there = second.join(first.select("id"), on="id", how="semi").sort("id")
    unequal = {name: ~_equal(both[name], there[name]) for name in _KEPT}
    flags = pl.DataFrame(unequal) if both.height else pl.DataFrame(schema=dict.fromkeys(_KEPT, pl.Boolean))
    columns = [", ".join(name for name in _KEPT if row[name]) for row in flags.iter_rows(named=True)]
    differing = both.with_columns(columns=pl.Series(columns, dtype=pl.String)).filter(pl.col("columns") != "")
    only = first.join(second, on="id", how="anti"), second.join(first, on="id", how="anti")
    measure, differences = _differences(first, second)
    return StoreComparison(both.height - differing.height, differing, only, measure, differences)


def _equal(a: pl.Series, b: pl.Series) -> pl.Series:
    """Where two columns are equal to the bit."""
    if isinstance(a.dtype, pl.List):
        lengths = (a.list.len().eq_missing(b.list.len())).to_list()
        parts = [same and _bits(x) == _bits(y) for same, x, y in zip(lengths, a, b, strict=True)]
        return pl.Series(parts, dtype=pl.Boolean)
    if a.dtype == pl.Float64:
        x, y = (column.fill_null(0.0).to_numpy().view(np.int64) for column in (a, b))
        return pl.Series(x == y) & (a.is_null() == b.is_null())
    return a.eq_missing(b)


def _bits(values: pl.Series | None) -> bytes:
    return b"" if values is None else values.to_numpy().tobytes()


def _differences(first: pl.DataFrame, second: pl.DataFrame) -> tuple[Measure, pl.DataFrame]:
    """Paired differences of what both tables hold, second minus first."""
    measure, runs = side_by_side({"first": first, "second": second})
    names = runs.select("method", "series", "side").unique(maintain_order=True)
    pairs = []
    for of in names.partition_by("method", maintain_order=True):
        here, there = (of.filter(side=side)["series"].to_list() for side in ("first", "second"))
        alone = len(here) == len(there) == 1
        pairs += [(a, b) for a in here for b in there if a == b or alone]
    marked = pl.concat_str("side", "series", separator=" ")
    values = runs.select("task", "trial", series=marked, value=pl.col(measure.column)).drop_nulls("value")
    found = paired(values, [(f"second {b}", f"first {a}") for a, b in pairs])
    words = {f"second {b}": a if a == b else f"{a} → {b}" for a, b in pairs}
    where = runs.select("task", "place", "missingness").unique(maintain_order=True)
    # Of the trials that are paired, so that they differ by what is said.
    shared = [
        on_shared_trials(values.filter(task=row["task"]), row["other"], row["series"])
        for row in found.iter_rows(named=True)
    ]
    means = {side: [float(np.mean(of[i])) for of in shared] for i, side in enumerate(("first", "second"))}
    apart = pl.Series("apart", [a != b for a, b in shared], dtype=pl.Boolean)
    found = found.with_columns(*(pl.Series(side, of, dtype=pl.Float64) for side, of in means.items()), apart)
    method = pl.col("series").replace_strict(words, default="", return_dtype=pl.String)
    told = found.join(where, on="task", maintain_order="left").with_columns(method=method)
    columns = ("place", "missingness", "task", "method", "first", "second", "apart", *SUMMED)
    return measure, told.select(columns)
