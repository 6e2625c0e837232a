"""A missingness mechanism as arrays, so that one kernel and one wrapper serve them all.

The mask m of a newly entered state s, after action a and in mode z of a hidden chain, has the probability

    P(m | s, a, z) = ∏_j θ_j^m_j (1 − θ_j)^(1 − m_j)    with    θ_j = rates[z, a, s, j],    m_j = 1: hidden

The mode moves before every mask: z' ~ chain[z, ·]. If the mechanism has a driver component i, m_i is drawn first. If
m_i = 1, the others use θ_j = fallback[z, a, s, j]. A mechanism that hides all components or none makes one draw, with
rate θ_0.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna import display
from lacuna.kernels.compiled import kernel
from lacuna.kernels.space import Space
from lacuna.kernels.streams import Uniforms, draw
from lacuna.missingness.label import LABELS, Classification, Label, classify
from lacuna.validation import number, shown, whole_number
from lacuna.worlds.mdp.tabular import first_of, frozen_copy

MAX_DELAY = 1000


class RateBy(IntEnum):
    """What the rows of a rate table stand for."""

    CONSTANT = 0
    """One row: the rates do not look at the state."""
    SHOWN = 1
    """One row per state of the agent's space (`Space.n_states`)."""
    TRUE = 2
    """One row per true state of the world, which may know more than it shows (a latent driver)."""


_SHOWN, _TRUE = int(RateBy.SHOWN), int(RateBy.TRUE)


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
    shows
        For each true state, the index in `space` of what it shows; needed if the rows are true states.
    claims
        ``"MCAR"``, ``"MAR"`` or ``"NMAR"``: refused if the rates contradict it.
    delay, arrives
        A hidden value arrives `delay` steps later with probability `arrives`, if the episode still goes on. With
        a delay of 0 none arrives.

    Examples
    --------
    >>> space = Space((2, 3), ("door", "colour"))
    >>> by_door = np.array([0.1, 0.1, 0.1, 0.4, 0.4, 0.4])[:, None] * [0, 1]
    >>> Mechanism(space, by_door[None, None], RateBy.SHOWN).label
    'MAR'
    >>> Mechanism(space, by_door[None, None, :, ::-1], RateBy.SHOWN, name="odd", claims="MAR")
    Traceback (most recent call last):
    ValueError: odd claims MAR, but its rates make it NMAR: the pattern that hides door has probability 0.4 in state
    (1, 0) but 0.1 in state (0, 0)
    """

    space: Space
    rates: NDArray[np.float64]
    by: RateBy = RateBy.CONSTANT
    chain: NDArray[np.float64] | None = None
    driver: int = -1
    fallback: NDArray[np.float64] | None = None
    whole: bool = False
    name: str = "mechanism"
    shows: NDArray[np.int64] | None = None
    claims: Label | None = None
    delay: int = 0
    arrives: float = 1.0

    def __post_init__(self) -> None:
        for what in ("rates", "chain", "fallback", "shows"):
            if getattr(self, what) is not None:
                frozen = frozen_copy(getattr(self, what), np.int64 if what == "shows" else np.float64)
                object.__setattr__(self, what, frozen)
        self._check_shows()
        self._check_table("rates", self.rates)
        self._check_chain()
        self._check_driver()
        if self.whole and (self.rates != self.rates[..., :1]).any():
            raise ValueError(f"{self.name} hides all or nothing, so every component must have the same rate")
        self._check_claim()
        object.__setattr__(self, "delay", whole_number(f"delay of {self.name}", self.delay, 0, MAX_DELAY))
        object.__setattr__(self, "arrives", number(f"arrives of {self.name}", self.arrives, 0, 1))

    def _check_shows(self) -> None:
        if (self.by == RateBy.TRUE) != (self.shows is not None):
            rule = "need `shows`, what each true state shows" if self.shows is None else "have no use for `shows`"
            raise ValueError(f"the rates of {self.name} go by {self.by.name} state and {rule}")
        if self.shows is None:
            return
        if self.shows.ndim != 1 or not self.shows.size:
            raise ValueError(f"shows of {self.name} has shape {self.shows.shape}; it needs one entry per true state")
        if (s := first_of((self.shows < 0) | (self.shows >= self.space.n_states))) is not None:
            raise ValueError(
                f"true state {s} of {self.name} shows {self.shows[s]}; "
                f"the space has states 0 to {self.space.n_states - 1}"
            )

    @property
    def n_rows(self) -> int:
        """How many rows the rates have: one, the shown states, or the true states."""
        if self.shows is not None:
            return int(self.shows.shape[0])
        return self.space.n_states if self.by == RateBy.SHOWN else 1

    def _check_table(self, what: str, table: NDArray[np.float64]) -> None:
        if table.ndim != 4 or table.shape[2:] != (self.n_rows, self.space.d) or 0 in table.shape:
            raise ValueError(
                f"{what} of {self.name} has shape {table.shape}; it must be [modes, actions, rows, components] "
                f"with {self.n_rows} rows (by {self.by.name} state) and {self.space.d} components"
            )
        wrong = np.argwhere(~((table >= 0) & (table <= 1)))
        if wrong.size:
            place = tuple(wrong[0].tolist())
            raise ValueError(
                f"{what}[{', '.join(map(str, place))}] of {self.name} is {table[place]}; a rate must be between 0 and 1"
            )

    def _check_chain(self) -> None:
        n_modes = self.rates.shape[0]
        if self.chain is None:
            if n_modes > 1:
                raise ValueError(f"{self.name} has rates for {n_modes} modes but no chain that moves between them")
            return
        if self.chain.shape != (n_modes, n_modes):
            raise ValueError(f"chain of {self.name} has shape {self.chain.shape}; it must be ({n_modes}, {n_modes})")
        z = first_of(~((self.chain >= 0).all(axis=1) & (np.abs(self.chain.sum(axis=1) - 1) < 1e-9)))
        if z is not None:
            row = self.chain[z].tolist()
            raise ValueError(f"row {z} of the chain of {self.name} is {row}; it must be at least 0 and add to 1")

    def _check_driver(self) -> None:
        if not -1 <= self.driver < self.space.d:
            raise ValueError(f"driver of {self.name} is {self.driver}; it must be -1 (none) to {self.space.d - 1}")
        if (self.driver >= 0) != (self.fallback is not None):
            raise ValueError(f"{self.name} needs a driver and a fallback, or neither")
        if self.fallback is None:
            return
        if self.whole:
            raise ValueError(f"{self.name} hides all or nothing, so it cannot have a driver")
        if self.fallback.shape != self.rates.shape:
            raise ValueError(f"fallback of {self.name} has shape {self.fallback.shape}, its rates {self.rates.shape}")
        self._check_table("fallback", self.fallback)

    def _check_claim(self) -> None:
        if self.claims is None:
            return
        if self.claims not in LABELS:
            raise ValueError(f"{self.name} claims {self.claims!r}; a claim is one of {', '.join(LABELS)}")
        # MCAR is a special case of MAR, so a claim may be weaker than what holds; NMAR means "not MAR".
        holds = {"MCAR": {"MCAR"}, "MAR": {"MCAR", "MAR"}, "NMAR": {"NMAR"}}[self.claims]
        if self.label not in holds:
            raise ValueError(f"{self.name} claims {self.claims}, but its rates make it {self.label}: {self.reason}")

    @cached_property
    def classification(self) -> Classification:
        """The label computed from the rates, and the reason."""
        return classify(self.space, self.rates, self.fallback, self.driver, self.whole, self.shows)

    @property
    def label(self) -> Label:
        """MCAR, MAR or NMAR, computed from the rates."""
        return self.classification.label

    @property
    def reason(self) -> str:
        """Why the label is what it is."""
        return self.classification.reason

    @property
    def n_actions(self) -> int | None:
        """How many actions the rates tell apart; None if the action does not matter."""
        entries = self.rates.shape[1]
        return entries - 1 if entries > 1 else None

    @cached_property
    def hiding(self) -> Hiding:
        """The mechanism as arrays for kernels."""
        chain = np.ones((1, 1)) if self.chain is None else np.cumsum(self.chain, axis=1)
        chain[:, -1] = 1.0
        fallback = np.zeros((0, 0, 0, 0)) if self.fallback is None else self.fallback
        # All read-only, whatever the mechanism: kernels are compiled once for all of them.
        chain, fallback = frozen_copy(chain, np.float64), frozen_copy(fallback, np.float64)
        return Hiding(int(self.by), self.driver, self.whole, chain, self.rates, fallback)

    @property
    def n_draws(self) -> int:
        """How many uniform numbers one mask uses: always the same, so masks of paired runs stay aligned."""
        return int(self.rates.shape[0] > 1) + (1 if self.whole else self.space.d)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy (or one sent to a worker process) is built anew, so that its arrays are checked and read-only too.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def __repr__(self) -> str:
        return f"Mechanism({self.name!r}, components={', '.join(self.space.names)})"

    def _repr_html_(self) -> str:
        tables = [self.rates] if self.fallback is None else [self.rates, self.fallback]
        low, high = (
            extreme([extreme(table, axis=(0, 1, 2)) for table in tables], axis=0) for extreme in (np.min, np.max)
        )
        rows = [(name, float(a), float(b)) for name, a, b in zip(self.space.names, low, high, strict=True)]
        about = [("label", self.label), ("modes", self.rates.shape[0]), ("rates by", self._rates_by)]
        return display.card(
            shown(self.name), display.facts(about), display.paragraph(f"{self.label}: {self.reason}."),
            display.table(["component", "lowest rate", "highest rate"], rows),
        )  # fmt: skip

    @property
    def _rates_by(self) -> str:
        words = {RateBy.CONSTANT: [], RateBy.SHOWN: ["state"], RateBy.TRUE: ["true state"]}[self.by]
        words = [*words, *(["action"] if self.n_actions else []), *(["mode"] if self.rates.shape[0] > 1 else [])]
        return " and ".join(words) or "nothing"


@kernel
def place_of(shown: int, true: int, action: int, how: Hiding) -> tuple[int, int]:
    """Where the rates of a state that an action led to stand, on the axis of actions and on that of states."""
    # The last entry of the action axis is "none yet", and also the only one if the action does not matter.
    a = action if 0 <= action < how.rates.shape[1] - 1 else how.rates.shape[1] - 1
    if how.by == _SHOWN:
        return a, shown
    return a, true if how.by == _TRUE else 0


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
    a, row = place_of(shown, true, action, how)
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


@kernel
def mask_probability(
    observation: NDArray[np.int64], shown: int, true: int, action: int, mode: int, how: Hiding
) -> float:
    """P(what is hidden in `observation` | state, action, mode): the probability of the mask that `hide` drew."""
    a, row = place_of(shown, true, action, how)
    if how.whole:
        rate = how.rates[mode, a, row, 0]
        return float(rate if observation[0] < 0 else 1.0 - rate)
    driver_hidden = how.driver >= 0 and observation[how.driver] < 0
    p = 1.0
    for j in range(observation.shape[0]):
        other = driver_hidden and j != how.driver
        rate = how.fallback[mode, a, row, j] if other else how.rates[mode, a, row, j]
        p *= rate if observation[j] < 0 else 1.0 - rate
    return p
