"""The context that an app reports about a participant, read as an observation: categories and binned numbers.

A number x is in bin ``number of edges <= x``. An invalid value counts as missing, and is reported as invalid.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from sys import float_info
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.space import MISSING, Space
from lacuna.validation import shown

MAX_TEXT = 64
"""Most characters of a name or a text in a context, to keep free text out of the log."""
MAX_EXACT = 2**53
"""Integers up to this size are exact in every reader of JSON."""

_MOST_DIGITS = 10**MAX_TEXT
_NUMPY = (np.bool_, np.integer, np.floating)

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Categories:
    """A component that takes one of the values listed; true is not 1, but 1.0 is.

    Examples
    --------
    >>> mood = Categories("mood", (1, 2, 3, "no answer"))
    >>> mood.read(2.0), mood.read("no answer"), mood.read(True)
    ((1, 2), (3, 'no answer'), None)
    """

    name: str
    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        _raise_first([*wrong_name("a component's name", self.name), *wrong_values(self.name, self.values)])
        object.__setattr__(self, "values", tuple(_canonical(value) for value in self.values))

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    @cached_property
    def _codes(self) -> dict[Any, int]:
        return {_apart(value): code for code, value in enumerate(self.values)}

    def read(self, value: Scalar) -> tuple[int, Scalar] | None:
        """Return the code of a value and the value as declared, or None if it is none of the values."""
        code = self._codes.get(_apart(value))
        return None if code is None else (code, self.values[code])

    def described(self) -> dict[str, Any]:
        """The component as a row of a codebook."""
        return {"name": self.name, "type": "categories", "values": list(self.values)}


@dataclass(frozen=True)
class Bins:
    """A component that is a number, cut into bins at the edges; an edge belongs to the bin above it.

    Examples
    --------
    >>> steps = Bins("steps", (500, 2000), (0, 100000))
    >>> steps.read(499.5), steps.read(500), steps.read(-1)
    ((0, 499.5), (1, 500.0), None)
    >>> steps.described()["bins"]
    ['0 ≤ x < 500', '500 ≤ x < 2000', '2000 ≤ x ≤ 100000']
    """

    name: str
    edges: tuple[float, ...]
    range: tuple[float, float]

    def __post_init__(self) -> None:
        _raise_first([*wrong_name("a component's name", self.name), *wrong_bins(self.name, self.edges, self.range)])
        object.__setattr__(self, "edges", tuple(float(edge) + 0.0 for edge in self.edges))
        object.__setattr__(self, "range", tuple(float(end) + 0.0 for end in self.range))

    @property
    def size(self) -> int:
        """Number of bins."""
        return len(self.edges) + 1

    def read(self, value: Scalar) -> tuple[int, Scalar] | None:
        """Return the bin of a number and the number as a float, or None if it is no number in the range."""
        if isinstance(value, bool | str):
            return None
        low, high = self.range
        # Compared as what it is: a whole number of Python may be too large for a float.
        if not low <= value <= high:
            return None
        # Adding 0 makes the two zeros one.
        x = float(value) + 0.0
        return bisect_right(self.edges, x), x

    def described(self) -> dict[str, Any]:
        """The component as a row of a codebook."""
        ends = [number_text(end) for end in (self.range[0], *self.edges, self.range[1])]
        bins = [f"{low} ≤ x < {high}" for low, high in pairwise(ends)]
        bins[-1] = f"{ends[-2]} ≤ x ≤ {ends[-1]}"
        return {"name": self.name, "type": "number", "range": list(self.range), "bins": bins}


Component = Categories | Bins


class Reading(NamedTuple):
    """A context after reading."""

    coded: NDArray[np.int64]
    """The observation: a code for each component, or `MISSING`."""
    raw: dict[str, Scalar | None]
    """The values of all components in order, fit for JSON; None where no value was reported."""
    invalid: tuple[str, ...]
    """Names of the components with invalid values, then unknown names in alphabetical order."""


class ContextSchema:
    """The components of a context in order.

    Parameters
    ----------
    components
        At least one; the names differ.

    Examples
    --------
    >>> schema = ContextSchema([Bins("steps", (500, 2000), (0, 100000)), Categories("mood", (1, 2, 3))])
    >>> schema.read({"steps": 1203, "mood": None})
    Reading(coded=array([ 1, -1]), raw={'steps': 1203.0, 'mood': None}, invalid=())
    >>> schema.read({"steps": -5, "mood": 3, "weather": "fine"})
    Reading(coded=array([-1,  2]), raw={'steps': -5, 'mood': 3}, invalid=('steps', 'weather'))
    """

    def __init__(self, components: Iterable[Component]) -> None:
        self.components: tuple[Component, ...] = tuple(components)
        self.space = Space(
            tuple(component.size for component in self.components),
            tuple(component.name for component in self.components),
        )
        self._last = Reading(np.zeros(0, dtype=np.int64), {}, ())

    def __repr__(self) -> str:
        return f"ContextSchema({', '.join(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the components in order."""
        return self.space.names

    def read(self, context: Mapping[Any, Any] | None) -> Reading:
        """Read a context; None is an empty one.

        A component that is not in it, or is None, is missing. One that cannot be read is missing and named as invalid;
        its value stays in `raw` if it is a text of at most 64 characters, a finite number or a truth value.
        """
        if context is self._last.raw and not self._last.invalid:
            # A trial reads each context twice: from the request, and from its event.
            return self._last
        if context is None:
            context = {}
        elif not isinstance(context, Mapping):
            raise ValueError(f"the context is {shown(context)}; it must be a table of components and values, or None")
        codes: list[int] = []
        raw: dict[str, Scalar | None] = {}
        invalid: list[str] = []
        known = 0
        for component in self.components:
            name = component.name
            given = context.get(name, _ABSENT)
            known += given is not _ABSENT
            if given is None or given is _ABSENT:
                codes.append(MISSING)
                raw[name] = None
                continue
            value = _plain(given)
            found = None if value is None else component.read(value)
            if found is None:
                codes.append(MISSING)
                raw[name] = _kept(value)
                invalid.append(name)
            else:
                code, raw[name] = found
                codes.append(code)
        if known < len(context):
            invalid += sorted({_key_text(key) for key in context if key not in raw})
        self._last = Reading(np.array(codes, dtype=np.int64), raw, tuple(invalid))
        return self._last

    def described(self) -> list[dict[str, Any]]:
        """The components as rows of a codebook: name, type, and values or bins."""
        return [component.described() for component in self.components]


_ABSENT = object()


def wrong_name(what: str, name: object) -> list[str]:
    """List what is wrong with a name.

    Examples
    --------
    >>> wrong_name("an action's name", "")
    ["an action's name is ''; it must be a text of 1 to 64 printable characters"]
    """
    if isinstance(name, str) and 1 <= len(name) <= MAX_TEXT and name.isprintable():
        return []
    return [f"{what} is {shown(name)}; it must be a text of 1 to {MAX_TEXT} printable characters"]


def wrong_values(what: str, values: Sequence[Any]) -> list[str]:
    """List everything that is wrong with the values of a component."""
    if not values:
        return [f"{what} has no values; it must have at least one"]
    wrong = [
        f"{what} has the value {shown(value)}; it must be a text of at most {MAX_TEXT} printable characters, "
        "true, false or a finite number, whole numbers up to 2^53"
        for value in values
        if not _is_category(value)
    ]
    if wrong:
        return wrong
    seen = [_apart(value) for value in values]
    twice = dict.fromkeys(key for key in seen if seen.count(key) > 1) if len(set(seen)) < len(seen) else ()
    return [f"{what} has the value {shown(values[seen.index(key)])} twice; values must differ" for key in twice]


def wrong_bins(what: str, edges: Sequence[Any], limits: Sequence[Any]) -> list[str]:
    """List everything that is wrong with the edges and the range of a component."""
    wrong = wrong_range(f"{what}: range", limits)
    if not edges or not all(_is_finite(edge) for edge in edges):
        return [*wrong, f"{what}: edges is {shown(list(edges))}; it must be at least one number, all finite"]
    if any(a >= b for a, b in pairwise(edges)):
        return [*wrong, f"{what}: edges is {shown(list(edges))}; it must ascend"]
    if not wrong and not limits[0] < edges[0] <= edges[-1] <= limits[1]:
        wrong.append(
            f"{what}: edges is {shown(list(edges))}; edges must lie above {number_text(limits[0])} and at most at "
            f"{number_text(limits[1])}, or a bin of range {shown(list(limits))} would be empty"
        )
    return wrong


def wrong_range(what: str, limits: Sequence[Any]) -> list[str]:
    """List what is wrong with a range, which must be two finite numbers, the smaller one first."""
    if len(limits) == 2 and all(map(_is_finite, limits)) and limits[0] < limits[1]:
        return []
    return [f"{what} is {shown(list(limits))}; it must be two finite numbers, the smaller one first"]


def number_text(value: float) -> str:
    """Write a number with as few digits as possible, whole numbers without a point.

    Examples
    --------
    >>> number_text(2000.0), number_text(0.1), number_text(1e300)
    ('2000', '0.1', '1e+300')
    """
    return re.sub(r"\.0$", "", repr(float(value)))


def _raise_first(wrong: list[str]) -> None:
    if wrong:
        raise ValueError(wrong[0])


def _is_finite(value: Any) -> bool:
    """Whether a value is a number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -float_info.max <= value <= float_info.max


def _is_category(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_TEXT and (not value or value.isprintable())
    if isinstance(value, int):
        return -MAX_EXACT <= value <= MAX_EXACT
    return isinstance(value, float) and isfinite(value)


def _canonical(value: Scalar) -> Scalar:
    """A category as the log writes it: 1.0 is 1."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_EXACT else value


def _apart(value: Scalar) -> Any:
    """A value as a dictionary key that distinguishes true from 1."""
    return (value,) if isinstance(value, bool) else value


def _plain(value: Any) -> Scalar | None:
    """A scalar as a plain Python value, or None; no code of the value's own class runs."""
    kind = type(value)
    plain: Scalar | None = None
    if kind is str or kind is float or kind is int or kind is bool:
        plain = value
    elif issubclass(kind, str):
        plain = str.__str__(value)
    elif issubclass(kind, int):
        plain = int.__int__(value)
    elif issubclass(kind, float):
        plain = float.__float__(value)
    elif issubclass(kind, np.longdouble):
        plain = np.longdouble.__float__(value)
    elif issubclass(kind, np.timedelta64):
        # NumPy counts time spans among its integers.
        plain = None
    elif issubclass(kind, _NUMPY):
        plain = np.generic.item(value)
    return plain


def _kept(value: Scalar | None) -> Scalar | None:
    """An invalid value for the log: short and fit for JSON, or None."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT and _is_unicode(value) else None
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is not None and -_MOST_DIGITS < value < _MOST_DIGITS else None


def _is_unicode(text: str) -> bool:
    """Whether a text is valid Unicode; half of a surrogate pair is not."""
    return re.search("[\ud800-\udfff]", text) is None


def _key_text(key: Any) -> str:
    """The name of an unknown component, for the log."""
    plain = _plain(key)
    if isinstance(plain, str):
        return re.sub("[\ud800-\udfff]", "?", plain[:MAX_TEXT])
    # A name that is no text is logged by its type, because its own text could be anything.
    return f"a key of the type {type(key).__name__}"[:MAX_TEXT]
