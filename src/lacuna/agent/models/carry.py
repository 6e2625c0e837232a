"""Imputation without a model: uniform guesses, values carried forward or assumed, "missing" as a value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import Observed, copy_into
from lacuna.kernels.compiled import inner
from lacuna.kernels.space import Layout


@inner
def guess_uniformly(observed: Observed, layout: Layout, u: float) -> int:
    """Code of a state drawn uniformly from those that agree with the observation."""
    rest = int(u * observed.n_agreeing)
    code = observed.seen
    for j in range(observed.values.shape[0]):
        if observed.values[j] < 0:
            others = rest // layout.sizes[j]
            code |= (rest - others * layout.sizes[j]) << layout.shifts[j]
            rest = others
    return code


@inner
def token_row(observation: NDArray[np.int64], layout: Layout) -> int:
    """Row of Q in the space where every component has one more value, its last, for "missing"."""
    row = 0
    for j in range(observation.shape[0]):
        value = observation[j] if observation[j] >= 0 else layout.sizes[j]
        row = row * (layout.sizes[j] + 1) + value
    return row


@inner
def hold_last_complete(observed: Observed, held: NDArray[np.int64]) -> None:
    """Replace the held state if, and only if, a complete one was seen (the paper's V1)."""
    if observed.complete:
        copy_into(held, observed.values)


@inner
def hold_last_values(observed: Observed, held: NDArray[np.int64]) -> None:
    """Replace every component that was seen (the paper's V2)."""
    for j in range(held.shape[0]):
        held[j] = observed.values[j] if observed.values[j] >= 0 else held[j]


@inner
def hold_assumed_state(observed: Observed, assumed: NDArray[np.int64], held: NDArray[np.int64]) -> None:
    """Hold the observed state if it is complete, else the assumed state."""
    copy_into(held, observed.values if observed.complete else assumed)


@inner
def hold_assumed_values(observed: Observed, assumed: NDArray[np.int64], held: NDArray[np.int64]) -> None:
    """Hold the observed values, and the assumed value of every hidden component."""
    for j in range(held.shape[0]):
        held[j] = observed.values[j] if observed.values[j] >= 0 else assumed[j]
