"""Draw a complete next state from the transition counts, given what was seen of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.compiled import kernel
from lacuna.counts import CountTable
from lacuna.imputation.carry import guess_uniformly
from lacuna.space import Layout
from lacuna.streams import Uniforms, draw


@kernel
def agreeing_mass(key: int, seen_bits: int, seen: int, counts: CountTable) -> int:
    """Units counted from row `key` to successors that agree with the seen bits."""
    i = counts.head[key] - 1
    if i < 0:
        return 0
    total = 0
    for entry in range(counts.start[i], counts.start[i] + counts.length[i]):
        if counts.code[entry] & seen_bits == seen:
            total += counts.n[entry]
    return total


@kernel
def pick_agreeing(key: int, seen_bits: int, seen: int, rank: int, counts: CountTable) -> int:
    """Place in its row of the successor that holds unit number `rank` of the agreeing ones."""
    first = counts.start[counts.head[key] - 1]
    entry = first
    while True:
        if counts.code[entry] & seen_bits == seen:
            rank -= counts.n[entry]
            if rank < 0:
                return int(entry - first)
        entry += 1


@kernel
def draw_successors(
    S: NDArray[np.int64], action: int, observation: NDArray[np.int64], seen_bits: int, seen: int, A: int,
    layout: Layout, counts: CountTable, uniforms: Uniforms,
    C_next: NDArray[np.int64], slots: NDArray[np.int64], masses: NDArray[np.int64],
) -> None:  # fmt: skip
    """For each pathway a next state: in proportion to the agreeing counts, or uniform if they are all zero.

    Codes go to `C_next`, places in the row to `slots` (-1 for a uniform guess); `masses` is scratch.
    """
    for k in range(S.shape[0]):
        key = S[k] * A + action
        # Pathways often share a state: then they share the mass as well.
        twin = 0
        while S[twin] != S[k]:
            twin += 1
        masses[k] = masses[twin] if twin < k else agreeing_mass(key, seen_bits, seen, counts)
        u = draw(uniforms)
        if masses[k] == 0:
            slots[k] = -1
            C_next[k] = guess_uniformly(observation, layout, u)
        else:
            slots[k] = pick_agreeing(key, seen_bits, seen, int(u * masses[k]), counts)
            C_next[k] = counts.code[counts.start[counts.head[key] - 1] + slots[k]]
