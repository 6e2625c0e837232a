"""Stand-ins that need no model: uniform guesses, values carried forward, and "missing" as a value of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.compiled import kernel
from lacuna.space import Layout, copy_into


@kernel
def is_complete(observation: NDArray[np.int64]) -> bool:
    """Whether every component was seen."""
    complete = True
    for j in range(observation.shape[0]):
        complete = complete and observation[j] >= 0
    return bool(complete)


@kernel
def index_of(values: NDArray[np.int64], layout: Layout) -> int:
    """Index of a complete state."""
    index = 0
    for j in range(values.shape[0]):
        index += values[j] * layout.strides[j]
    return index


@kernel
def code_of(values: NDArray[np.int64], layout: Layout) -> int:
    """Code of the seen components; hidden ones leave their bits empty."""
    code = 0
    for j in range(values.shape[0]):
        code |= max(values[j], 0) << layout.shifts[j]
    return code


class Sight(NamedTuple):
    """An observation at one glance: whether all was seen, and how many states of the product space agree with it.

    A state agrees if its code has the bits `seen` where `bits` are set.
    """

    complete: bool
    seen: int
    bits: int
    n_agreeing: int


@kernel
def glance(observation: NDArray[np.int64], layout: Layout) -> Sight:
    """Look through the components once."""
    complete, seen, bits, n = True, 0, 0, 1
    for j in range(observation.shape[0]):
        if observation[j] >= 0:
            seen |= observation[j] << layout.shifts[j]
            bits |= layout.masks[j]
        else:
            complete = False
            n *= layout.sizes[j]
    return Sight(complete, seen, bits, n)


@kernel
def guess_uniformly(observation: NDArray[np.int64], sight: Sight, layout: Layout, u: float) -> int:
    """Code of a state drawn uniformly from those that agree with the observation."""
    rest = int(u * sight.n_agreeing)
    code = sight.seen
    for j in range(observation.shape[0]):
        if observation[j] < 0:
            others = rest // layout.sizes[j]
            code |= (rest - others * layout.sizes[j]) << layout.shifts[j]
            rest = others
    return code


@kernel
def token_row(observation: NDArray[np.int64], layout: Layout) -> int:
    """Row of Q in the space where every component has one more value, its last, for "missing"."""
    row = 0
    for j in range(observation.shape[0]):
        value = observation[j] if observation[j] >= 0 else layout.sizes[j]
        row = row * (layout.sizes[j] + 1) + value
    return row


@kernel
def hold_last_complete(observation: NDArray[np.int64], held: NDArray[np.int64]) -> None:
    """Replace the held state if, and only if, a complete one was seen (the paper's V1)."""
    if is_complete(observation):
        copy_into(held, observation)


@kernel
def hold_last_values(observation: NDArray[np.int64], held: NDArray[np.int64]) -> None:
    """Replace every component that was seen (the paper's V2)."""
    for j in range(observation.shape[0]):
        held[j] = observation[j] if observation[j] >= 0 else held[j]
