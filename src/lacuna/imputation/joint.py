"""Draw a complete next state from the transition counts, given what was seen of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.compiled import kernel
from lacuna.counts import CountTable
from lacuna.imputation.carry import guess_uniformly
from lacuna.space import Layout
from lacuna.streams import Uniforms, draw_many


@kernel
def agreeing_mass(code: NDArray[np.int64], n: NDArray[np.int64], seen_bits: int, seen: int) -> int:
    """Units of a row of counts that lie on successors agreeing with the seen bits."""
    total = 0
    for place in range(code.shape[0]):
        total += n[place] if code[place] & seen_bits == seen else 0
    return total


@kernel
def pick_agreeing(code: NDArray[np.int64], n: NDArray[np.int64], seen_bits: int, seen: int, rank: int) -> int:
    """Place in its row of the successor that holds unit number `rank` of the agreeing ones."""
    place = 0
    for place in range(code.shape[0]):
        # Without a branch on agreement, which no processor can foresee; only the last step surprises it.
        rank -= n[place] if code[place] & seen_bits == seen else 0
        if rank < 0:
            break
    return place


@kernel
def draw_successors(
    S: NDArray[np.int64], action: int, observation: NDArray[np.int64], seen_bits: int, seen: int, A: int,
    layout: Layout, counts: CountTable, uniforms: Uniforms,
    C_next: NDArray[np.int64], slots: NDArray[np.int64], masses: NDArray[np.int64],
) -> None:  # fmt: skip
    """For each pathway a next state: in proportion to the agreeing counts, or uniform if they are all zero.

    Codes go to `C_next`, their places in the row to `slots`; `masses` is scratch.
    """
    at = draw_many(uniforms, S.shape[0])
    numbers = uniforms.block[at : at + S.shape[0]]
    for k in range(S.shape[0]):
        i = counts.head[S[k] * A + action] - 1
        masses[k] = 0
        if i >= 0:
            # Slices are counted from 0: the compiler then knows that no index is negative, and looks at many at once.
            first, last = counts.start[i], counts.start[i] + counts.length[i]
            code, n = counts.code[first:last], counts.n[first:last]
            # Pathways often share a state: then they share the mass as well.
            twin = 0
            while S[twin] != S[k]:
                twin += 1
            masses[k] = masses[twin] if twin < k else agreeing_mass(code, n, seen_bits, seen)
            if masses[k] > 0:
                slots[k] = pick_agreeing(code, n, seen_bits, seen, int(numbers[k] * masses[k]))
                C_next[k] = code[slots[k]]
        if masses[k] == 0:
            slots[k] = 0
            C_next[k] = guess_uniformly(observation, layout, numbers[k])
