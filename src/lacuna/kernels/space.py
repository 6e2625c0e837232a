"""A factored, finite state space: component sizes, a number for every state, states that agree with an observation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSING = -1
"""A hidden component, inside kernels and the agent's observations only."""

# Bits of a code up to which its index is looked up: a table that stays in the nearest cache.
_SMALL = 11

MAX_STATES = 2**40
"""At this size a code, which spends whole bits on every component, still fits easily into 63 bits."""


class Layout(NamedTuple):
    """The arrays of a space as kernels see them.

    A state has an *index* (mixed radix; its row of Q) and a *code* (every component in its own bits). On codes, "does
    this state agree with that observation?" is one AND and one comparison.
    """

    sizes: NDArray[np.int64]
    strides: NDArray[np.int64]
    shifts: NDArray[np.int64]
    masks: NDArray[np.int64]
    offsets: NDArray[np.int64]
    """Number of the first value of each component, if the values of all components are numbered consecutively."""
    rows: NDArray[np.int64]
    """Index by code, for spaces small enough to keep it in the nearest cache; else empty."""


@dataclass(frozen=True)
class Space:
    """All vectors of `d` discrete components, component `j` taking the values ``0 … sizes[j]-1``.

    Parameters
    ----------
    sizes
        Number of values of each component.
    names
        A name per component; ``x0, x1, …`` if not given.

    Examples
    --------
    >>> space = Space((8, 8, 3), ("row", "column", "colour"))
    >>> space.n_states, space.encode((7, 0, 2))
    (192, 170)
    >>> space.decode(170)
    (7, 0, 2)
    """

    sizes: tuple[int, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, Sequence | np.ndarray):
            raise TypeError(f"sizes is {self.sizes!r}; it must have a number per component, e.g. (8, 8, 3)")
        if len(self.sizes) == 0:
            raise ValueError("a space needs at least one component, got none")
        for j, size in enumerate(self.sizes):
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                raise ValueError(f"component {j} has size {size!r}; sizes must be at least 1, in whole numbers")
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        object.__setattr__(self, "names", tuple(self.names))
        n_states = 1
        for j, size in enumerate(self.sizes):
            n_states *= size
            if n_states > MAX_STATES:
                # A number of thousands of digits cannot be shown.
                shown = f"{size} values" if size <= MAX_STATES else "its values"
                raise ValueError(
                    f"component {j} with {shown} makes more than {MAX_STATES} states, too many for a table"
                )
        if not self.names:
            object.__setattr__(self, "names", tuple(f"x{j}" for j in range(len(self.sizes))))
        if len(self.names) != len(self.sizes):
            raise ValueError(f"{len(self.names)} names {self.names} for {len(self.sizes)} components")
        if not all(isinstance(name, str) for name in self.names):
            raise TypeError(f"component names must be texts, got {self.names}")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"component names must differ, got {self.names}")

    @property
    def d(self) -> int:
        """Number of components."""
        return len(self.sizes)

    @property
    def n_states(self) -> int:
        """Number of states of the product space."""
        return prod(self.sizes)

    @cached_property
    def layout(self) -> Layout:
        """The space as arrays for kernels."""
        widths = [(size - 1).bit_length() for size in self.sizes]
        # What the components after each one make together.
        strides = list(accumulate(reversed(self.sizes[1:]), mul, initial=1))[::-1]
        shifts = list(accumulate(reversed(widths[1:]), initial=0))[::-1]
        masks = [((1 << width) - 1) << shift for width, shift in zip(widths, shifts, strict=True)]
        codes = np.arange(1 << sum(widths) if sum(widths) <= _SMALL else 0)
        rows = np.zeros_like(codes)
        for mask, shift, stride in zip(masks, shifts, strides, strict=True):
            if mask:
                rows += ((codes & mask) >> shift) * stride
        offsets = list(accumulate(self.sizes[:-1], initial=0))
        arrays = (self.sizes, strides, shifts, masks, offsets, rows)
        return Layout(*(np.array(array, dtype=np.int64) for array in arrays))

    def component(self, which: int | str) -> int:
        """Position of a component given by name or number."""
        if isinstance(which, str):
            if which not in self.names:
                raise ValueError(f"no component is called {which!r}; there are {', '.join(self.names)}")
            return self.names.index(which)
        if not 0 <= which < self.d:
            raise ValueError(f"component {which} does not exist; there are 0 to {self.d - 1}")
        return which

    def encode(self, values: Sequence[int]) -> int:
        """Index of the state with these component values."""
        if len(values) != self.d:
            raise ValueError(f"{len(values)} values {tuple(values)} for {self.d} components {self.names}")
        index = 0
        for value, size, name in zip(values, self.sizes, self.names, strict=True):
            if not 0 <= value < size:
                raise ValueError(f"component {name} is {value}; it must be between 0 and {size - 1}")
            index = index * size + int(value)
        return index

    def decode(self, index: int) -> tuple[int, ...]:
        """Component values of the state with this index."""
        if not 0 <= index < self.n_states:
            raise ValueError(f"state {index} does not exist; there are 0 to {self.n_states - 1}")
        values = []
        for size in reversed(self.sizes):
            index, value = divmod(int(index), size)
            values.append(value)
        return tuple(reversed(values))
