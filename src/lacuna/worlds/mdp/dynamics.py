"""How a world moves: one random number picks a start, one picks the outcome of a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import kernel
from lacuna.kernels.streams import Uniforms, draw
from lacuna.worlds.mdp.tabular import Dynamics


@kernel
def pick(first: int, cumulative: NDArray[np.float64], u: float) -> int:
    """Entry of a row of running sums, starting at `first`, into which `u` falls."""
    entry = first
    while u >= cumulative[entry]:
        entry += 1
    return entry


@kernel
def start_state(way: int, world: Dynamics, uniforms: Uniforms) -> int:
    """True state in which an episode starts."""
    state: int = world.start_state[pick(world.start_ptr[way], world.start_cumulative, draw(uniforms))]
    return state


@kernel
def move(state: int, action: int, world: Dynamics, uniforms: Uniforms) -> int:
    """Which outcome happens: an entry of ``world.next_state``, ``world.reward`` and ``world.ends``."""
    return pick(world.ptr[state * world.n_actions + action], world.cumulative, draw(uniforms))
