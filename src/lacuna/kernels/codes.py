"""Conversions between the forms of a state: component values, index and code; and observations decoded for kernels.

    index = Σ_j value_j · stride_j        (mixed radix: the row of Q)
    code  = Σ_j value_j · 2^shift_j       (every component in its own bits)

A state agrees with an observation if ``code & bits == seen``, where `bits` are those of the observed components.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.space import Layout


@kernel
def copy_into(target: NDArray[np.int64], source: NDArray[np.int64]) -> None:
    """Copy one array over another, entry by entry: a slice assignment would allocate in case they overlap."""
    for j in range(source.shape[0]):
        target[j] = source[j]


@kernel
def pack(index: int, layout: Layout) -> int:
    """Code of the state with this index."""
    code = 0
    for j in range(layout.sizes.shape[0]):
        value = index // layout.strides[j]
        index -= value * layout.strides[j]
        code |= value << layout.shifts[j]
    return code


@kernel
def unpack(code: int, layout: Layout) -> int:
    """Index of the state with this code."""
    if layout.rows.shape[0] > 0:
        return int(layout.rows[code])
    index = 0
    for j in range(layout.sizes.shape[0]):
        index += ((code & layout.masks[j]) >> layout.shifts[j]) * layout.strides[j]
    return index


@kernel
def is_complete(observation: NDArray[np.int64]) -> bool:
    """Whether every component was seen."""
    complete = True
    for j in range(observation.shape[0]):
        complete = complete and observation[j] >= 0
    return bool(complete)


@inner
def index_of(values: NDArray[np.int64], layout: Layout) -> int:
    """Index of a complete state."""
    index = 0
    for j in range(values.shape[0]):
        index += values[j] * layout.strides[j]
    return index


@inner
def code_of(values: NDArray[np.int64], layout: Layout) -> int:
    """Code of the seen components; hidden ones leave their bits empty."""
    code = 0
    for j in range(values.shape[0]):
        code |= max(values[j], 0) << layout.shifts[j]
    return code


class Observed(NamedTuple):
    """An observation, decoded: `values` (-1 where hidden), and whether all was seen.

    A state agrees with it if its code has the bits `seen` where `bits` are set; `n_agreeing` states of the space do.
    """

    values: NDArray[np.int64]
    complete: bool
    seen: int
    bits: int
    n_agreeing: int


@kernel
def decode(values: NDArray[np.int64], layout: Layout) -> Observed:
    """Look through the components of an observation once."""
    complete, seen, bits, n = True, 0, 0, 1
    for j in range(values.shape[0]):
        if values[j] >= 0:
            seen |= values[j] << layout.shifts[j]
            bits |= layout.masks[j]
        else:
            complete = False
            n *= layout.sizes[j]
    return Observed(values, complete, seen, bits, n)


@inner
def value_in(code: int, j: int, layout: Layout) -> int:
    """Value of component `j` in the state with this code."""
    return int((code & layout.masks[j]) >> layout.shifts[j])
