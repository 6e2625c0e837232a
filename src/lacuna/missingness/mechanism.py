"""A missingness mechanism as arrays, so that one kernel and one wrapper serve them all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.compiled import kernel
from lacuna.space import Space
from lacuna.streams import Uniforms, draw


class RateBy(IntEnum):
    """What the rows of a rate table stand for."""

    CONSTANT = 0
    """One row: the rates do not look at the state."""
    SHOWN = 1
    """One row per state of the agent's space (`Space.n_states`)."""
    TRUE = 2
    """One row per true state of the world, which may know more than it shows (a latent driver)."""


class Hiding(NamedTuple):
    """The arrays of a mechanism as kernels see them; see `Mechanism` for their meaning."""

    by: int
    driver: int
    whole: bool
    chain: NDArray[np.float64]
    rates: NDArray[np.float64]
    fallback: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Probability that each component of a newly entered state is hidden.

    Parameters
    ----------
    space
        The space whose components may be hidden.
    rates
        Array ``[mode, action, row, component]``. `mode` is that of a hidden chain (bursts; one mode if there is none).
        `action` is the one just taken, with one more entry, the last, for "none yet"; or a single entry if the action
        does not matter. `row` is as `by` says.
    by
        What the rows stand for.
    chain
        Transition matrix of the hidden chain, moved before every mask; it starts in mode 0 and carries on across
        episodes.
    driver
        A component drawn first. If it is itself hidden, the others use `fallback` instead of `rates`: a rate that acts
        only when its driver was seen. -1 for none.
    fallback
        Same shape as `rates`; needed with a `driver` only.
    whole
        All or nothing: one draw, at the rate of component 0, hides the whole vector.
    name
        For people, e.g. ``mcar:0.4``.
    """

    space: Space
    rates: NDArray[np.float64]
    by: RateBy = RateBy.CONSTANT
    chain: NDArray[np.float64] | None = None
    driver: int = -1
    fallback: NDArray[np.float64] | None = None
    whole: bool = False
    name: str = "mechanism"

    @cached_property
    def hiding(self) -> Hiding:
        """The mechanism as arrays for kernels."""
        n_modes = self.rates.shape[0]
        chain = np.ones((1, 1)) if self.chain is None else np.cumsum(self.chain, axis=1)
        chain[:, n_modes - 1] = 1.0
        fallback = np.zeros((0, 0, 0, 0)) if self.fallback is None else self.fallback
        return Hiding(int(self.by), self.driver, self.whole, chain, self.rates, fallback)

    @property
    def n_draws(self) -> int:
        """How many uniform numbers one mask uses: always the same, so masks of paired runs stay aligned."""
        return int(self.rates.shape[0] > 1) + (1 if self.whole else self.space.d)


@kernel
def hide(
    shown: int, true: int, action: int, mode: NDArray[np.int64], how: Hiding, uniforms: Uniforms,
    mask: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Draw the mask of a newly entered state into `mask` (True = hidden); ``action`` is -1 if none was taken yet."""
    if how.chain.shape[0] > 1:
        u = draw(uniforms)
        now = 0
        while u >= how.chain[mode[0], now]:
            now += 1
        mode[0] = now
    z = mode[0]
    # The last entry of the action axis is "none yet", and also the only one if the action does not matter.
    a = action if 0 <= action < how.rates.shape[1] - 1 else how.rates.shape[1] - 1
    row = 0
    if how.by == 1:
        row = shown
    elif how.by == 2:
        row = true
    d = mask.shape[0]
    if how.whole:
        lost = draw(uniforms) < how.rates[z, a, row, 0]
        for j in range(d):
            mask[j] = lost
        return
    driver_hidden = False
    if how.driver >= 0:
        driver_hidden = draw(uniforms) < how.rates[z, a, row, how.driver]
        mask[how.driver] = driver_hidden
    for j in range(d):
        if j != how.driver:
            rate = how.fallback[z, a, row, j] if driver_hidden else how.rates[z, a, row, j]
            mask[j] = draw(uniforms) < rate
