"""Draw a complete next state from the transition counts, given what was seen of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import Sight, unpack
from lacuna.kernels.compiled import kernel
from lacuna.kernels.counts import CountTable
from lacuna.kernels.space import Layout
from lacuna.kernels.streams import Uniforms, draw_many
from lacuna.learning.carry import guess_uniformly
from lacuna.learning.component_counts import BELOW_ONE, Parts, draw_parts, likelihood

_UNKNOWN = -1.0


@kernel
def agreeing_mass(first: np.uint64, end: np.uint64, sight: Sight, counts: CountTable) -> int:
    """Units on the entries ``first : end`` that agree with what was seen."""
    total = 0
    for entry in range(first, end):
        total += counts.n[entry] if counts.code[entry] & sight.bits == sight.seen else 0
    return total


@kernel
def pick_agreeing(first: np.uint64, end: np.uint64, sight: Sight, rank: int, counts: CountTable) -> np.uint64:
    """Entry that holds unit number `rank` of the agreeing ones."""
    for entry in range(first, end):
        # Without a branch on agreement, which no processor can foresee; only the last step surprises it.
        rank -= counts.n[entry] if counts.code[entry] & sight.bits == sight.seen else 0
        if rank < 0:
            return np.uint64(entry)
    return first  # never reached: rank is below the mass


@kernel
def draw_successors(
    S: NDArray[np.int64], C: NDArray[np.int64], action: int, observation: NDArray[np.int64], sight: Sight, A: int,
    kappa: float, smoothing: float, backoff: float, layout: Layout, counts: CountTable, parts: Parts,
    uniforms: Uniforms, S_next: NDArray[np.int64], C_next: NDArray[np.int64], entries: NDArray[np.uint64],
    firsts: NDArray[np.uint64], ends: NDArray[np.uint64],
) -> None:  # fmt: skip
    """For each pathway a next state: in proportion to the agreeing counts, or uniform if they are all zero.

    With κ > 0 the component counts join in: J/(J + F) of the draws come from the joint counts, whose agreeing mass is
    J, and the others component by component, where F is κ times the `likelihood` f of what was seen. As f is at most 1,
    J/(J + κ) of the draws come from the joint counts in any case, and f is worked out for the others only.

    Rows of Q go to `S_next`, codes to `C_next`, places in the counts to `entries`; `firsts` and `ends` are scratch.
    All rows are looked up before any is read: in a large world they come from far memory, and then arrive together.
    """
    K = S.shape[0]
    for k in range(K):
        i = counts.head[S[k] * A + action]
        firsts[k] = counts.start[i]
        ends[k] = counts.start[i] + counts.length[i]
    J, f = 0, _UNKNOWN
    at = np.uint64(draw_many(K, uniforms))
    for k in range(K):
        # Neighbours often share a state: then they share the masses as well.
        if k == 0 or S[k] != S[k - 1]:
            J, f = agreeing_mass(firsts[k], ends[k], sight, counts), _UNKNOWN
        u = uniforms.block[at + np.uint64(k)]
        rank = u * (J + kappa)
        back, rest = 0.0, 0.0
        if rank >= J and kappa > 0:
            if f == _UNKNOWN:
                # Against nothing any mass wins, and with smoothing there is some: no need to know how much.
                f = 1.0
                if J > 0 or smoothing == 0:
                    f = likelihood(C[k], action, observation, A, smoothing, backoff, layout, parts)
            rest = min((rank - J) / kappa, BELOW_ONE)
            if J > 0:
                # The joint counts get back as many of these draws as bring them to J/(J + κf).
                back = J * (1.0 - f) / (J + kappa * f)
                rank = min(rest / back * J, J - 1) if rest < back else rank
        if rank < J:
            entry = pick_agreeing(firsts[k], ends[k], sight, int(rank), counts)
            entries[k] = entry
            code = counts.code[entry]
        elif kappa > 0 and f > 0:
            rest = (rest - back) / (1.0 - back)
            code = draw_parts(C[k], action, observation, sight.seen, A, smoothing, backoff, rest, layout, parts)
        else:
            code = guess_uniformly(observation, sight, layout, u)
        C_next[k] = code
        S_next[k] = unpack(code, layout)
