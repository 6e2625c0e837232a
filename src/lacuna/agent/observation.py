"""Observations as users pass them, checked and converted to what kernels take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.space import MISSING, Space
from lacuna.validation import shown


class Series(Protocol):
    """A column or row of pandas or polars."""

    def to_list(self) -> list[Any]:
        """Its entries."""
        ...


Observation = Sequence[int | None] | NDArray[Any] | Series | Mapping[str, Any] | int | np.integer[Any]
"""Component values, with one value past the last, or None, for missing; or ``{"values": …, "mask": …}``."""


def read_observation(observation: Observation, space: Space) -> NDArray[np.int64]:
    """Return the value of each component, `MISSING` (-1) where it is hidden.

    Examples
    --------
    >>> space = Space((3, 2), ("room", "door"))
    >>> read_observation([2, None], space), read_observation({"values": [2, 1], "mask": [1, 0]}, space)
    (array([ 2, -1]), array([-1,  1]))
    >>> read_observation([2.0, float("nan")], space)
    Traceback (most recent call last):
    ValueError: component door is NaN; a missing value is given as None or as 2, the others as whole numbers
    """
    hidden: list[Any] = []
    values: Any = observation
    if isinstance(observation, Mapping):
        if set(observation) != {"values", "mask"}:
            raise ValueError(f"an observation given as a mapping needs values and mask, got {shown(list(observation))}")
        values, hidden = observation["values"], _flat(observation["mask"])
        if not all(isinstance(part, int | float | np.generic) and part in (0, 1) for part in hidden):
            raise ValueError(f"the mask is {shown(observation['mask'])}; it must be 1 where missing and 0 elsewhere")
        if len(hidden) != space.d:
            raise ValueError(f"the mask {shown(hidden)} needs {space.d} components: {', '.join(space.names)}")
    parts = _flat(values)
    if len(parts) != space.d:
        raise ValueError(f"the observation {shown(parts)} needs {space.d} components: {', '.join(space.names)}")
    seen = np.empty(space.d, dtype=np.int64)
    for j, (value, size) in enumerate(zip(parts, space.sizes, strict=True)):
        if value is None or (hidden and hidden[j]):
            seen[j] = MISSING
        elif isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= size:
            raise _refusal(j, parts, hidden, space)
        else:
            seen[j] = value if value < size else MISSING
    return seen


def _flat(values: Any) -> list[Any]:
    """Entries of an array (None where a masked array hides them), of a sequence or a Series, or a single number."""
    if isinstance(values, np.ndarray):
        return list(values.ravel().tolist())
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        return list(values)
    return list(values.to_list()) if hasattr(values, "to_list") else [values]


def _refusal(j: int, parts: list[Any], hidden: list[Any], space: Space) -> ValueError:
    """The error for component `j`; or for the one that is NaN, because a NaN turns its neighbours into floats."""
    for i, value in enumerate(parts):
        if isinstance(value, float | np.floating) and np.isnan(value) and not (hidden and hidden[i]):
            return ValueError(
                f"component {space.names[i]} is NaN; a missing value is given as None or as {space.sizes[i]}, the "
                "others as whole numbers"
            )
    last = space.sizes[j] - 1
    return ValueError(
        f"component {space.names[j]} is {shown(parts[j])}; it must be a whole number between 0 and {last}, or "
        f"{last + 1} or None for missing"
    )
