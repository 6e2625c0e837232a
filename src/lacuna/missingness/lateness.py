"""Hidden values that arrive late: each with a given probability, all after the same number of steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import kernel
from lacuna.kernels.space import MISSING
from lacuna.kernels.streams import Uniforms, draw
from lacuna.missingness.mechanism import Mechanism


class Lateness(NamedTuple):
    """Pending late values, as kernels see them.

    `waiting` is a ring of the last `delay` states: the values that will arrive, -1 for the others. `at` counts the
    states of the episode. `arrived` holds what has just arrived: values of the state `delay` steps ago.
    """

    delay: int
    arrives: float
    waiting: NDArray[np.int64]
    at: NDArray[np.int64]
    arrived: NDArray[np.int64]


def blank_lateness(mechanism: Mechanism) -> Lateness | None:
    """Return an empty `Lateness`, or None if nothing arrives late."""
    if mechanism.delay == 0:
        return None
    d = mechanism.space.d
    waiting = np.full((mechanism.delay, d), MISSING)
    return Lateness(mechanism.delay, mechanism.arrives, waiting, np.zeros(1, dtype=np.int64), np.full(d, MISSING))


@kernel
def begin_lateness(lateness: Lateness, first_observed: bool) -> None:
    """Drop pending values: none arrives in the next episode. A first state that is observed adds none."""
    lateness.at[0] = 1 if first_observed else 0
    lateness.waiting[:] = MISSING
    lateness.arrived[:] = MISSING


@kernel
def put_off(values: NDArray[np.int64], mask: NDArray[np.bool_], lateness: Lateness, uniforms: Uniforms) -> None:
    """Deliver the values of `delay` steps ago, and queue the hidden values of this state."""
    row = lateness.at[0] % lateness.delay
    for j in range(mask.shape[0]):
        comes = draw(uniforms) < lateness.arrives
        lateness.arrived[j] = lateness.waiting[row, j]
        lateness.waiting[row, j] = values[j] if mask[j] and comes else MISSING
    lateness.at[0] += 1
