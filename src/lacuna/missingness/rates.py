"""Mechanisms from tables of rates: by the value of one component, by the shown state, or by the true state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacuna.kernels.space import Space
from lacuna.missingness.label import Label
from lacuna.missingness.mechanism import Mechanism, RateBy
from lacuna.validation import number, shown
from lacuna.worlds.mdp.tabular import TabularMDP

Where = Space | TabularMDP | int
"""What a mechanism is for: a space, a world, or just a number of components whose sizes do not matter (`Box`)."""

Rates = float | Sequence[float] | NDArray[np.float64]
"""One rate for all components, or one for each."""

MAX_COMPONENTS = 1_000_000

MAX_ENTRIES = 10**8
"""Rates that a table by state may hold; beyond, it would not fit in memory."""


def space_of(where: Where) -> Space:
    """Space of what a mechanism is for."""
    if isinstance(where, Space):
        return where
    if isinstance(where, TabularMDP):
        return where.space
    if isinstance(where, bool) or not isinstance(where, int | np.integer) or not 1 <= where <= MAX_COMPONENTS:
        raise ValueError(
            f"a mechanism is for a Space, a TabularMDP or a number of components from 1 to {MAX_COMPONENTS}, "
            f"not {shown(where)}"
        )
    return Space((1,) * int(where))


def by_component(
    where: Where,
    driver: int | str,
    rates: Sequence[float],
    *,
    affects: Iterable[int | str] | None = None,
    hide_driver: float = 0.0,
    when_hidden: float | None = None,
    name: str = "",
) -> Mechanism:
    """Rates by the true value of one component, the driver.

    Parameters
    ----------
    where
        A space or a world.
    driver
        The component whose value sets the rates, by name or number.
    rates
        One rate per value of the driver.
    affects
        The components hidden at that rate; by default all, or with `when_hidden` all but the driver. The others are
        never hidden.
    hide_driver
        Constant rate at which the driver is hidden, if it is not among those in `affects`.
    when_hidden
        Rate of the affected components when the driver is hidden. If it is given, the driver acts only when it is
        seen, which keeps the mechanism MAR; the driver then cannot be among the affected.
    name
        For people.

    Examples
    --------
    >>> space = Space((4, 2), ("dose", "mood"))
    >>> by_component(space, "mood", (0.1, 0.5), affects=["dose"], hide_driver=0.3).label
    'NMAR'
    >>> by_component(space, "mood", (0.1, 0.5), hide_driver=0.3, when_hidden=0.2).label
    'MAR'
    """
    space = space_of(where)
    i = space.component(driver)
    who, name = space.names[i], name or f"by-{space.names[i]}"
    affected = {space.component(j) for j in (range(space.d) if affects is None else affects)}
    if when_hidden is not None and affects is None:
        affected.discard(i)
    if i in affected and hide_driver:
        raise ValueError(f"{name} hides {who} by its own value already; hide_driver={hide_driver} has no place")
    if i in affected and when_hidden is not None:
        raise ValueError(f"{name} acts only when {who} is seen, so {who} cannot be among the affected components")
    values = checked_rates(f"the rates of {name}", rates)
    if values.size != space.sizes[i]:
        raise ValueError(f"{name} has {values.size} rates; {who} has {space.sizes[i]} values")
    columns = sorted(affected)
    table = empty_table(space, space.n_states)
    value_of_driver = np.arange(space.n_states) // space.layout.strides[i] % space.sizes[i]
    table[:, columns] = values[value_of_driver][:, None]
    if i not in affected:
        table[:, i] = number(f"hide_driver of {name}", hide_driver, 0, 1)
    if when_hidden is None:
        return Mechanism(space, table[None, None], RateBy.SHOWN, name=name)
    fallback = np.zeros_like(table)
    fallback[:, columns] = number(f"when_hidden of {name}", when_hidden, 0, 1)
    return Mechanism(space, table[None, None], RateBy.SHOWN, driver=i, fallback=fallback[None, None], name=name)


def by_state(where: Where, table: ArrayLike, *, name: str = "by-state", claims: Label | None = None) -> Mechanism:
    """Any table of rates by shown state: one rate per state, or one per state and component.

    Examples
    --------
    >>> by_state(Space((2, 2)), [0.0, 0.0, 0.5, 0.5]).label
    'NMAR'
    """
    space = space_of(where)
    rates = _full_table(name, table, space, space.n_states, "states of the space")
    return Mechanism(space, rates[None, None], RateBy.SHOWN, name=name, claims=claims)


def by_true_state(
    mdp: TabularMDP, table: ArrayLike, *, name: str = "by-true-state", claims: Label | None = None
) -> Mechanism:
    """Any table of rates by true state, which may know more than it shows: one rate per state, or per component too.

    Examples
    --------
    >>> from lacuna import Lake, make_world
    >>> mdp, lake = make_world("lake"), Lake()
    >>> flooded = [lake.place(state)[2] for state in range(mdp.n_states)]
    >>> by_true_state(mdp, [0.5 * now for now in flooded]).label
    'NMAR'
    """
    if not isinstance(mdp, TabularMDP):
        raise ValueError(f"{name} goes by the true states of a world, so it needs a TabularMDP, not {shown(mdp)}")
    rates = _full_table(name, table, mdp.space, mdp.n_states, f"true states of {mdp.name}")
    return Mechanism(mdp.space, rates[None, None], RateBy.TRUE, name=name, shows=mdp.shows, claims=claims)


def checked_rates(what: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return one rate or several as an array, or raise an error."""
    flat = np.atleast_1d(np.asarray(values, dtype=np.object_))
    if flat.ndim != 1 or not flat.size:
        raise ValueError(f"{what} must be a number or a list of numbers, not {shown(values)}")
    return np.array([number(what, value, 0, 1) for value in flat.tolist()])


def rate_of_each(what: str, values: Rates, space: Space) -> NDArray[np.float64]:
    """Return the rate of every component, from one for all or one for each."""
    rates = checked_rates(what, values)
    if rates.size not in {1, space.d}:
        raise ValueError(f"{what} has {rates.size} rates for {space.d} components {space.names}; give 1 or {space.d}")
    return np.broadcast_to(rates, space.d).copy()


def written(rates: NDArray[np.float64], between: str = "/") -> str:
    """Return rates as text: one number if they are all the same."""
    texts = [repr(float(rate)) for rate in rates]
    return texts[0] if len(set(texts)) == 1 else between.join(texts)


def empty_table(space: Space, n_rows: int) -> NDArray[np.float64]:
    """Zeros for each row and component, unless they are too many."""
    if n_rows * space.d > MAX_ENTRIES:
        raise ValueError(f"a table of {n_rows} states by {space.d} components is over {MAX_ENTRIES} rates")
    return np.zeros((n_rows, space.d))


def _full_table(name: str, table: ArrayLike, space: Space, n_rows: int, rows: str) -> NDArray[np.float64]:
    given = np.asarray(table, dtype=np.float64)
    if given.shape not in {(n_rows,), (n_rows, space.d)}:
        raise ValueError(
            f"the table of {name} has shape {given.shape}; it must be ({n_rows},) or ({n_rows}, {space.d}): "
            f"the {rows}, and the components"
        )
    full = empty_table(space, n_rows)
    full[:] = given if given.ndim == 2 else given[:, None]
    return full
