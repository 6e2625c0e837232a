"""The on/off chain behind bursts, by maximum likelihood.

The mode z_t is 1 in a burst. It moves before every row, and component j is then hidden at the rate of its mode:

    P(z_t = 1 | z_{t−1} = 0) = enter,    P(z_t = 0 | z_{t−1} = 1) = leave,    P(m_tj = 1 | z_t) = rates[z_t, j]

A sequence begins in the stationary distribution. The gradient of the log-likelihood is the mean of the complete-data
gradient given the masks (Fisher's identity). Standard errors come from the derivative of that gradient.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import kernel
from lacuna.missingness.fitting.estimates import boundary_se
from lacuna.missingness.fitting.mask_log import Flags, Floats

_EDGE = 14.0
"""Largest log-odds; rates beyond are as good as 0 or 1."""
_INNER = 6.0
"""Log-odds within which a parameter has a standard error from the likelihood."""


class ChainFit(NamedTuple):
    """Estimates in the order enter, leave, inside of each component, outside of each; their standard errors."""

    values: Floats
    se: Floats
    """NaN where the masks do not identify the parameter."""
    log_likelihood: float


class _Masks(NamedTuple):
    """Masks as the numbers of their patterns."""

    patterns: Flags
    which: NDArray[np.int64]
    begins: Flags


class _Passes(NamedTuple):
    """Where the two passes keep what they find."""

    modes_at: Floats
    """For every row: the probability of each mode before its mask, and after it."""
    moves: Floats
    begun: Floats
    modes: Floats
    """``[pattern, mode]``."""


class _Counts(NamedTuple):
    """Expected counts of the complete data, given the masks."""

    log_likelihood: float
    moves: Floats
    """``[from, to]``."""
    begun: Floats
    """Sequences by the mode of their first row."""
    hidden: Floats
    """``[mode, component]``."""
    seen: Floats


def fit_chain(hidden: Flags, begins: Flags) -> ChainFit:
    """Fit one chain to the masks ``[row, component]``."""
    from scipy.optimize import minimize  # noqa: PLC0415  heavy

    patterns, which = np.unique(hidden, axis=0, return_inverse=True)
    masks = _Masks(patterns, which.ravel(), begins)

    def descent(x: Floats) -> tuple[float, Floats]:
        value, gradient = _gradient(x, masks)
        return -value / begins.size, -gradient / begins.size

    def climbed(x: Floats, most: int) -> Any:
        options: Any = {"maxiter": most, "ftol": 1e-12, "gtol": 1e-7}
        return minimize(descent, x, jac=True, method="L-BFGS-B", bounds=[(-_EDGE, _EDGE)] * x.size, options=options)

    # A few steps from each start, then all the way from the best.
    tried = [climbed(start, 8) for start in _starts(hidden, begins)]
    best = climbed(min(tried, key=lambda found: float(found.fun)).x, 200)
    x = _burst_last(best.x)
    value, _ = _gradient(x, masks)
    p = _odds(x)
    return ChainFit(np.where(np.abs(x) > _EDGE - 4, np.round(p), p), _errors(x, masks), value)


def predicted(values: Floats, hidden: Flags, begins: Flags) -> Floats:
    """Probability of a burst in every row, given the masks before it and the parameters of the chain."""
    patterns, which = np.unique(hidden, axis=0, return_inverse=True)
    masks = _Masks(patterns, which.ravel(), begins)
    on: Floats = _passed(values, masks)[1].modes_at[:, 1]
    return on


def _odds(x: Floats) -> Floats:
    p: Floats = 1 / (1 + np.exp(-x))
    return p


def _starts(hidden: Flags, begins: Flags) -> list[Floats]:
    """Starting points: nearly pure modes that last as long as masks do, and blurred ones."""
    any_lost: Flags = hidden.max(axis=1)
    now, before = any_lost[1:][~begins[1:]], any_lost[:-1][~begins[1:]]
    enter = (now & ~before).sum() / max(1, (~before).sum())
    leave = (~now & before).sum() / max(1, before.sum())
    rate = hidden.mean(axis=0)
    chosen = []
    for speed, blur in ((1.0, 0.02), (0.5, 0.2), (0.15, 0.5)):
        low, high = blur * rate, 1 - blur * (1 - rate)
        p = np.concatenate([[enter * speed, leave * speed], high, low])
        p = np.clip(p, 1e-3, 1 - 1e-3)
        chosen.append(np.log(p / (1 - p)))
    return chosen


def _burst_last(x: Floats) -> Floats:
    """The same chain with the mode that hides more called the burst."""
    d = (x.size - 2) // 2
    inside, outside = x[2 : 2 + d], x[2 + d :]
    if _odds(inside).sum() >= _odds(outside).sum():
        return x
    return np.concatenate([x[1::-1], outside, inside])


def _gradient(x: Floats, masks: _Masks) -> tuple[float, Floats]:
    """Log-likelihood and its gradient in log-odds."""
    counts, p = _expected(x, masks), _odds(x)
    wins = np.concatenate([[counts.moves[0, 1], counts.moves[1, 0]], counts.hidden[1], counts.hidden[0]])
    losses = np.concatenate([[counts.moves[0, 0], counts.moves[1, 1]], counts.seen[1], counts.seen[0]])
    gradient = wins * (1 - p) - losses * p
    # The stationary distribution is (leave, enter) / (enter + leave).
    enter, leave, n = p[0], p[1], counts.begun.sum()
    gradient[0] += (counts.begun[1] - n * enter / (enter + leave)) * (1 - enter)
    gradient[1] += (counts.begun[0] - n * leave / (enter + leave)) * (1 - leave)
    return counts.log_likelihood, gradient


def _errors(x: Floats, masks: _Masks) -> Floats:
    """Standard errors; of a rate that is nearly 0 or 1, that of its share with two hits and two misses added."""
    p, free = _odds(x), np.flatnonzero(np.abs(x) < _INNER)
    counts = _expected(x, masks)
    d, modes = masks.patterns.shape[1], counts.moves.sum(axis=1)
    n = np.concatenate([modes, np.full(d, counts.hidden[1, 0] + counts.seen[1, 0]),
                        np.full(d, counts.hidden[0, 0] + counts.seen[0, 0])])  # fmt: skip
    errors = np.array([boundary_se(share * rows, rows) for share, rows in zip(p, n, strict=True)])
    information = np.empty((free.size, free.size))
    for row, i in enumerate(free):
        ahead, behind = x.copy(), x.copy()
        ahead[i] += 1e-3
        behind[i] -= 1e-3
        up, down = _gradient(ahead, masks)[1], _gradient(behind, masks)[1]
        information[row] = -(up - down)[free] / 2e-3
    if free.size:
        values, vectors = np.linalg.eigh((information + information.T) / 2)
        # The masks do not identify a direction along which the likelihood is flat.
        with np.errstate(divide="ignore"):
            variance = np.where(values > 1e-3, 1 / np.maximum(values, 1e-3), np.inf)
        spread = np.array([np.nansum(np.where(v**2 > 1e-6, v**2 * variance, 0.0)) for v in vectors])
        found = np.sqrt(spread) * (p * (1 - p))[free]
        errors[free] = np.where(np.isfinite(found), found, np.nan)
    return errors


def _expected(x: Floats, masks: _Masks) -> _Counts:
    """Expected counts by a forward and a backward pass."""
    value, room = _passed(_odds(x), masks)
    modes, patterns = room.modes.T, masks.patterns
    return _Counts(value, room.moves, room.begun, modes @ patterns, modes @ ~patterns)


def _passed(p: Floats, masks: _Masks) -> tuple[float, _Passes]:
    patterns, which, begins = masks
    d, n_patterns = patterns.shape[1], len(patterns)
    rates = np.clip(np.stack([p[2 + d :], p[2 : 2 + d]]), 1e-9, 1 - 1e-9)
    weight = np.exp(patterns @ np.log(rates).T + (~patterns) @ np.log1p(-rates).T)
    enter, leave = p[0], p[1]
    moving = np.array([[1 - enter, enter], [leave, 1 - leave]])
    first = np.array([leave, enter]) / (enter + leave)
    room = _Passes(np.empty((which.size, 4)), np.zeros((2, 2)), np.zeros(2), np.zeros((n_patterns, 2)))
    return pass_through(which, begins, weight, moving, first, room), room


@kernel
def pass_through(
    which: NDArray[np.int64], begins: Flags, weight: Floats, moving: Floats, first: Floats, room: _Passes
) -> float:
    """Run the chain forward and backward over the masks; give the log-likelihood, and expected counts in `room`."""
    n, total = which.shape[0], 0.0
    for t in range(n):
        if begins[t]:
            off, on = first[0], first[1]
        else:
            was_off, was_on = room.modes_at[t - 1, 2], room.modes_at[t - 1, 3]
            off = was_off * moving[0, 0] + was_on * moving[1, 0]
            on = was_off * moving[0, 1] + was_on * moving[1, 1]
        room.modes_at[t, 0], room.modes_at[t, 1] = off, on
        off *= weight[which[t], 0]
        on *= weight[which[t], 1]
        total += math.log(off + on)
        room.modes_at[t, 2], room.modes_at[t, 3] = off / (off + on), on / (off + on)
    for back in range(n):
        t = n - 1 - back
        # What the later masks make of the mode, in the place where the forward pass kept it.
        for z in range(2):
            room.modes[which[t], z] += room.modes_at[t, 2 + z]
        if begins[t]:
            for z in range(2):
                room.begun[z] += room.modes_at[t, 2 + z]
            continue
        ratio_off = room.modes_at[t, 2] / room.modes_at[t, 0] if room.modes_at[t, 0] > 0 else 0.0
        ratio_on = room.modes_at[t, 3] / room.modes_at[t, 1] if room.modes_at[t, 1] > 0 else 0.0
        for z in range(2):
            to_off = room.modes_at[t - 1, 2 + z] * moving[z, 0] * ratio_off
            to_on = room.modes_at[t - 1, 2 + z] * moving[z, 1] * ratio_on
            room.moves[z, 0] += to_off
            room.moves[z, 1] += to_on
            room.modes_at[t - 1, 2 + z] = to_off + to_on
    return total
