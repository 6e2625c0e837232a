"""Draw a complete next state from the transition counts, given what was seen of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.compiled import kernel
from lacuna.counts import CountTable
from lacuna.imputation.carry import count_agreeing, guess_uniformly
from lacuna.space import Layout
from lacuna.streams import Uniforms, draw_many


@kernel
def agreeing_mass(first: np.uint64, end: np.uint64, seen_bits: int, seen: int, counts: CountTable) -> int:
    """Units on the entries ``first : end`` that agree with the seen bits."""
    total = 0
    for entry in range(first, end):
        total += counts.n[entry] if counts.code[entry] & seen_bits == seen else 0
    return total


@kernel
def pick_agreeing(
    first: np.uint64, end: np.uint64, seen_bits: int, seen: int, rank: int, counts: CountTable
) -> np.uint64:
    """Entry that holds unit number `rank` of the agreeing ones."""
    for entry in range(first, end):
        # Without a branch on agreement, which no processor can foresee; only the last step surprises it.
        rank -= counts.n[entry] if counts.code[entry] & seen_bits == seen else 0
        if rank < 0:
            return np.uint64(entry)
    return first  # never reached: rank is below the mass


@kernel
def draw_successors(
    S: NDArray[np.int64], action: int, observation: NDArray[np.int64], seen_bits: int, seen: int, A: int,
    layout: Layout, counts: CountTable, uniforms: Uniforms,
    C_next: NDArray[np.int64], entries: NDArray[np.uint64], ends: NDArray[np.uint64], masses: NDArray[np.int64],
) -> None:  # fmt: skip
    """For each pathway a next state: in proportion to the agreeing counts, or uniform if they are all zero.

    Codes go to `C_next`, and where in the counts they stand to `entries`; `ends` and `masses` are scratch. All rows are
    looked up before any is read: in a large world they come from far memory, and then arrive together.
    """
    K = S.shape[0]
    for k in range(K):
        i = counts.head[S[k] * A + action]
        entries[k] = counts.start[i]
        ends[k] = counts.start[i] + counts.length[i]
    for k in range(K):
        # Pathways often share a state: then they share the mass as well.
        twin = 0
        while S[twin] != S[k]:
            twin += 1
        masses[k] = masses[twin] if twin < k else agreeing_mass(entries[k], ends[k], seen_bits, seen, counts)
    n_agreeing = count_agreeing(observation, layout)
    at = np.uint64(draw_many(K, uniforms))
    for k in range(K):
        u = uniforms.block[at + np.uint64(k)]
        if masses[k] > 0:
            entries[k] = pick_agreeing(entries[k], ends[k], seen_bits, seen, int(u * masses[k]), counts)
            C_next[k] = counts.code[entries[k]]
        else:
            C_next[k] = guess_uniformly(observation, seen, n_agreeing, layout, u)
