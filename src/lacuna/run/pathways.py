"""Pathways through true states, drawn from the true transitions given what was seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import Observed
from lacuna.kernels.compiled import inner
from lacuna.run.knowledge import Knowledge
from lacuna.worlds.mdp.tabular import Dynamics


@inner
def draw_agreeing(
    first: int, end: int, states: NDArray[np.int64], probability: NDArray[np.float64], observed: Observed,
    codes: NDArray[np.int64], u: float,
) -> int:  # fmt: skip
    """One of ``states[first:end]`` that agree with what was seen, by their probability; if none does, any that agrees.

    "Any" is uniform over all true states that agree; there is one at least, the true one.
    """
    mass = 0.0
    last = -1
    for entry in range(first, end):
        if codes[states[entry]] & observed.bits == observed.seen:
            mass += probability[entry]
            last = entry
    rank = u * mass
    for entry in range(first, end):
        if codes[states[entry]] & observed.bits == observed.seen:
            rank -= probability[entry]
            # Rounding may leave a little at the end: it belongs to the last one.
            if rank < 0 or entry == last:
                return int(states[entry])
    agreeing = 0
    for s in range(codes.shape[0]):
        agreeing += 1 if codes[s] & observed.bits == observed.seen else 0
    left = int(u * agreeing)
    for s in range(codes.shape[0]):
        left -= 1 if codes[s] & observed.bits == observed.seen else 0
        if left < 0:
            return s
    return 0  # never reached: left < agreeing


@inner
def draw_start(before: int, world: Dynamics, knowledge: Knowledge, observed: Observed, u: float) -> int:
    """A true state to start in, after an episode that a pathway takes to have stopped in `before`; -1 if none did."""
    way = 0 if before < 0 else world.restart[before]
    first, end = world.start_ptr[way], world.start_ptr[way + 1]
    return draw_agreeing(first, end, world.start_state, knowledge.start_probability, observed, world.codes, u)


@inner
def draw_next(before: int, action: int, world: Dynamics, knowledge: Knowledge, observed: Observed, u: float) -> int:
    """A true state that `action` may have led to."""
    row = before * world.n_actions + action
    first, end = world.ptr[row], world.ptr[row + 1]
    return draw_agreeing(first, end, world.next_state, knowledge.probability, observed, world.codes, u)
