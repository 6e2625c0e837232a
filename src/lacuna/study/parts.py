"""A part of a store: a Parquet file with a row per run. Its columns are declared here, and checked when it is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from io import BytesIO
from math import inf
from typing import Any, NamedTuple

import polars as pl

from lacuna.agent.methods import NAMED
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.settings import SETTINGS, Settings
from lacuna.kernels.counts import MAX_COUNT
from lacuna.missingness.label import LABELS
from lacuna.references import is_reference
from lacuna.validation import MAX_NAME, is_plain, shown
from lacuna.version import RESULTS_VERSION

_WORDS = {pl.Int64: "a whole number", pl.Float64: "a number", pl.Boolean: "true or false", pl.String: "a text"}


class PartError(ValueError):
    """A file is no part of a store."""


class Empty(NamedTuple):
    """Where the values of a column are null: in these rows, and only there."""

    where: pl.Expr
    words: str


class Column(NamedTuple):
    """A column: the type of its values, their range, and where they are null."""

    kind: Any
    least: float = -inf
    most: float = inf
    empty: Empty | None = Empty(pl.lit(value=False), "")
    """None where a null is always allowed."""

    @property
    def wanted(self) -> str:
        """What a value must be, in words."""
        kind = _WORDS.get(self.kind, "a list of numbers")
        words = kind if self.most == inf else f"{kind} between {_bound(self.least)} and {_bound(self.most)}"
        return f"{words}, and null {self.empty.words}" if self.empty and self.empty.words else words

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.kind in (pl.Int64, pl.Float64)


def _bound(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3g}"


_MOST = 1.000001 * MAX_REWARD * MAX_COUNT
_NO_EPISODE = Empty(pl.col("episodes") == 0, "where no episode was completed, and only there")
_NO_FLAGS = Empty(pl.col("open_bad_steps").is_null(), "where open_bad_steps is, and only there")
_NO_BAD = Empty(
    _NO_EPISODE.where | _NO_FLAGS.where, "where no episode was completed or open_bad_steps is, and only there"
)

_TEXT, _COUNT, _REWARD = Column(pl.String), Column(pl.Int64, 0, MAX_COUNT), Column(pl.Float64, -_MOST, _MOST)
_PART = Column(pl.Float64, 0, MAX_COUNT)
_GUESS = Column(pl.Float64, 0, 1, None)
_COUNTS, _REWARDS = Column(pl.List(pl.Float64), 0, MAX_COUNT), Column(pl.List(pl.Float64), -_MOST, _MOST)
_KINDS = {int: pl.Int64, float: pl.Float64, str: pl.String}

COLUMNS: dict[str, Column] = {
    "id": _TEXT, "results": _COUNT,
    "world": _TEXT, "parameters": _TEXT, "missingness": _TEXT, "label": _TEXT, "method": _TEXT,
    # What a setting may be depends on the method: `Settings` says it.
    **{name: Column(_KINDS[setting.kind], empty=None) for name, setting in SETTINGS.items()},
    "first_observed": Column(pl.Boolean), "source": _TEXT, "steps": Column(pl.Int64, 1, MAX_COUNT), "trial": _COUNT,
    "mean_total_reward": _REWARD._replace(empty=_NO_EPISODE), "mean_bad_steps": _PART._replace(empty=_NO_BAD),
    "mean_path_length": _PART._replace(empty=_NO_EPISODE),
    "episodes": _COUNT, "reward_per_step": _REWARD, "reward_per_step_early": _REWARD, "reward_per_step_late": _REWARD,
    "idle_share": Column(pl.Float64, 0, 1, _NO_FLAGS), "hidden_shares": Column(pl.List(pl.Float64), 0, 1),
    "open_steps": _COUNT, "open_reward": _REWARD, "open_bad_steps": _COUNT._replace(empty=None),
    "cut_episodes": _COUNT, "cut_steps": _COUNT, "cut_reward": _REWARD,
    "cut_bad_steps": _COUNT._replace(empty=_NO_FLAGS),
    "guessed_right": _GUESS, "weight_on_truth": _GUESS, "calibration_error": _GUESS,
    "curve_step": Column(pl.List(pl.Int64), 1, MAX_COUNT), "curve_episodes": _COUNTS, "curve_reward": _REWARDS,
    "curve_bad": _COUNTS._replace(empty=_NO_FLAGS), "curve_path": _COUNTS,
    "curve_idle": _COUNTS._replace(empty=_NO_FLAGS), "curve_total": _REWARDS,
    "seconds": Column(pl.Float64, 0, MAX_COUNT), "host": _TEXT, "lacuna": _TEXT,
}  # fmt: skip
"""Every column of a store by its name."""

_LATER: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items()} | {"source": ""}
"""The values of a run in columns that were declared after its file was written."""

_ID = re.compile("[0-9a-f]{24}")
_OF_CURVES = {name: ", as many as curve_step has" for name in COLUMNS if name.startswith("curve_")} | {
    "curve_step": ", each larger than the one before, none larger than steps"
}

# What polars raises for files that are not Parquet, truncated or inconsistent.
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)


def no_runs() -> pl.DataFrame:
    """Return a table without rows that has all columns of a store."""
    return pl.DataFrame(schema={name: column.kind for name, column in COLUMNS.items()})


def read_part(content: bytes) -> pl.DataFrame:
    """Read the runs of the current results version from a Parquet file.

    Raises
    ------
    PartError
        If a value is none that a run could have left; it names the column and the row.
    """
    try:
        there = pl.read_parquet(BytesIO(content))
    except _UNREADABLE as error:
        raise PartError("it cannot be read as Parquet") from error
    kinds = dict(there.schema)
    _check_kinds(kinds, ("id", "results"))
    ids, versions = there["id"].to_list(), there["results"].to_list()
    _refuse("id", ids, [not (one and _ID.fullmatch(one)) for one in ids], "24 hexadecimal digits")
    _refuse("id", ids, there["id"].is_duplicated().to_list(), "there once")
    _refuse("results", versions, [one is None for one in versions], COLUMNS["results"].wanted)
    if RESULTS_VERSION not in versions:
        return no_runs()
    # A column may have been declared since: the runs in the file have its default.
    later = [name for name in _LATER if name not in kinds]
    _check_kinds(kinds, [name for name in COLUMNS if name not in later])
    whole = there.with_columns(pl.lit(_LATER[name], COLUMNS[name].kind).alias(name) for name in later)
    current = [one == RESULTS_VERSION for one in versions]
    _check_numbers(whole, current)
    _check_texts(whole, current)
    _check_settings(whole, current, tuple(name for name in SETTINGS if name in kinds))
    return (whole if all(current) else whole.filter(current)).select(*COLUMNS)


def _check_kinds(kinds: Mapping[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if name not in kinds:
            raise PartError(f"it has no column {name}")
        if kinds[name] != COLUMNS[name].kind:
            raise PartError(f"its column {name} is of the type {kinds[name]}; it must be {COLUMNS[name].kind}")


def _refuse(name: str, values: Sequence[Any], wrong: Sequence[bool], wanted: str) -> None:
    """Raise an error for the first row in which a column is wrong."""
    if any(wrong):
        row = wrong.index(True)
        found = "null" if values[row] is None else shown(values[row])
        raise PartError(f"{name} is {found} in row {row + 1}; it must be {wanted}")


@cache
def _wrong_numbers() -> dict[str, pl.Expr]:
    """Where the value of each column of numbers is none that a run could have left."""
    return {name: _wrong(name, column).fill_null(value=False) for name, column in COLUMNS.items()}


def _wrong(name: str, column: Column) -> pl.Expr:
    here = pl.col(name)
    wrong = pl.lit(value=False) if column.empty is None else here.is_null() != column.empty.where
    if column.is_number and name not in SETTINGS:
        return wrong | ~here.is_between(column.least, column.most).fill_null(value=True)
    if not isinstance(column.kind, pl.List):
        return wrong
    # The sum is finite only if every item is, and a minimum passes over what is not a number.
    items = (here.list.min() < column.least) | (here.list.max() > column.most)
    items |= here.list.len() != here.list.drop_nulls().list.len()
    if column.kind == pl.List(pl.Float64):
        items |= ~here.list.sum().is_finite()
    if name == "curve_step":
        items |= (here.list.diff(null_behavior="drop").list.min() <= 0) | (here.list.max() > pl.col("steps"))
    elif name.startswith("curve_"):
        items |= here.list.len() != pl.col("curve_step").list.len()
    return wrong | items.fill_null(value=False)


def _check_numbers(table: pl.DataFrame, current: list[bool]) -> None:
    wrong = table.select(**_wrong_numbers())
    for name, some in zip(wrong.columns, wrong.select(pl.all().any()).row(0), strict=True):
        if some:
            flags = [flag and mine for flag, mine in zip(wrong[name].to_list(), current, strict=True)]
            _refuse(name, table[name].to_list(), flags, COLUMNS[name].wanted + _OF_CURVES.get(name, ""))


def _check_texts(table: pl.DataFrame, current: list[bool]) -> None:
    for name, column in COLUMNS.items():
        if column.kind == pl.String and name not in ("id", *SETTINGS):
            texts = table[name].to_list()
            plain = {text: text is not None and is_plain(text) for text in set(texts)}
            wanted = f"a text of at most {MAX_NAME} printable characters"
            _refuse(name, texts, [mine and not plain[text] for text, mine in zip(texts, current, strict=True)], wanted)
    labels, methods = table["label"].to_list(), table["method"].to_list()
    wrong = [mine and label not in LABELS for label, mine in zip(labels, current, strict=True)]
    _refuse("label", labels, wrong, f"one of {', '.join(LABELS)}")
    known = {method: method is not None and _is_method(method) for method in set(methods)}
    wrong = [mine and not known[method] for method, mine in zip(methods, current, strict=True)]
    _refuse("method", methods, wrong, "the name of a method, or a reference to one")


def _is_method(text: str) -> bool:
    """Whether a text names a method of lacuna, or refers to one of your own, with parameters."""
    place, _, rest = text.partition(":")
    return text in NAMED or is_reference(f"{place}:{rest.partition(',')[0]}")


def _check_settings(table: pl.DataFrame, current: list[bool], names: tuple[str, ...]) -> None:
    rows = table.select("method", *names).rows()
    faults = {row: _settings_fault(names, *row) for row, mine in zip(rows, current, strict=True) if mine}
    for number, (row, mine) in enumerate(zip(rows, current, strict=True), 1):
        if mine and faults[row]:
            raise PartError(f"in row {number}, {faults[row]}")


@lru_cache(maxsize=10_000)
def _settings_fault(names: tuple[str, ...], method: str, *values: Any) -> str | None:
    """Say why a method cannot have these settings."""
    given = dict(zip(names, values, strict=True))
    if method not in NAMED:
        strange = [name for name, value in given.items() if value is not None]
        return f"{strange[0]} is {shown(given[strange[0]])}, but {shown(method)} has no settings" if strange else None
    try:
        made = Settings(method, **given)
    except ValueError as error:
        return str(error)
    lacking = [name for name, value in given.items() if value is None and getattr(made, name) is not None]
    return f"{lacking[0]} is null, but {method} has a value for it" if lacking else None
