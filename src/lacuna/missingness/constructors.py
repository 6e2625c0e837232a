"""Mechanisms by name: constructors with checked arguments, each giving a `Mechanism`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacuna.kernels.space import Space
from lacuna.mdp.tabular import TabularMDP
from lacuna.missingness.label import Label
from lacuna.missingness.mechanism import Mechanism, RateBy

Where = Space | TabularMDP | int
"""What a mechanism is for: a space, a world, or just a number of components whose sizes do not matter (`Box`)."""

MAX_ENTRIES = 10**8
"""Rates that a table by state may hold; beyond, it would not fit in memory."""

MAX_BURST_COMPONENTS = 8


MAX_COMPONENTS = 1_000_000


def space_of(where: Where) -> Space:
    """Space of what a mechanism is for."""
    if isinstance(where, Space):
        return where
    if isinstance(where, TabularMDP):
        return where.space
    if isinstance(where, bool) or not isinstance(where, int | np.integer) or not 1 <= where <= MAX_COMPONENTS:
        raise ValueError(
            f"a mechanism is for a Space, a TabularMDP or a number of components from 1 to {MAX_COMPONENTS}, "
            f"not {where!r}"
        )
    return Space((1,) * int(where))


def none(where: Where) -> Mechanism:
    """Nothing is ever hidden.

    Examples
    --------
    >>> none(3).label
    'MCAR'
    """
    space = space_of(where)
    return Mechanism(space, np.zeros((1, 1, 1, space.d)), name="none")


def mcar(where: Where, theta: float | Sequence[float]) -> Mechanism:
    """Each component is hidden at a constant rate, the same for all or one per component.

    Examples
    --------
    >>> mcar(Space((8, 8, 3)), 0.4).name, mcar(Space((8, 8, 3)), (0.1, 0.2, 0.3)).name
    ('mcar:0.4', 'mcar:0.1,0.2,0.3')
    """
    space = space_of(where)
    thetas = _rates("mcar", theta, "theta")
    if thetas.size not in {1, space.d}:
        raise ValueError(f"mcar has {thetas.size} rates for {space.d} components {space.names}; give 1 or {space.d}")
    return Mechanism(space, np.broadcast_to(thetas, (1, 1, 1, space.d)), name=_name("mcar", thetas))


def whole(where: Where, theta: float) -> Mechanism:
    """All components are hidden together, at a constant rate.

    Examples
    --------
    >>> whole(3, 0.3).n_draws
    1
    """
    space = space_of(where)
    theta = rate("whole", theta, "theta")
    return Mechanism(space, np.full((1, 1, 1, space.d), theta), whole=True, name=_name("whole", [theta]))


def mcolor(where: Where, rates: Sequence[float], hide_colour: bool = True) -> Mechanism:
    """Rates by the true value of the component called ``colour``: the paper's MCOLOR.

    Parameters
    ----------
    where
        A space (or world) with a component called ``colour``.
    rates
        One rate per colour: green, orange, red.
    hide_colour
        True: the colour goes missing at that rate too (NMAR). False: it is always seen (MAR).

    Examples
    --------
    >>> lake = Space((8, 8, 3), ("row", "column", "colour"))
    >>> mcolor(lake, (0.2, 0.4, 0.6)).label, mcolor(lake, (0.2, 0.4, 0.6), hide_colour=False).label
    ('NMAR', 'MAR')
    """
    space = space_of(where)
    name = "mcolor" if hide_colour else "mcolor-xy"
    if "colour" not in space.names:
        raise ValueError(f"{name} needs a component called 'colour'; there are {', '.join(space.names)}")
    affects = [j for j in space.names if hide_colour or j != "colour"]
    return by_component(space, "colour", rates, affects=affects, name=_name(name, np.ravel(rates), squeeze=False))


def by_component(
    where: Where,
    driver: int | str,
    rates: Sequence[float],
    *,
    affects: Iterable[int | str] | None = None,
    hide_driver: float = 0.0,
    only_when_seen: bool = False,
    otherwise: float | None = None,
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
        The components hidden at that rate; all by default. The others are never hidden.
    hide_driver
        Constant rate at which the driver is hidden, if it is not among those in `affects`.
    only_when_seen
        True: the driver acts only when it is seen itself, which keeps the mechanism MAR; when it is hidden, the
        affected components are hidden at the rate `otherwise`. The driver then cannot be among the affected.
    otherwise
        See `only_when_seen`.
    name
        For people.

    Examples
    --------
    >>> space = Space((4, 2), ("dose", "mood"))
    >>> by_component(space, "mood", (0.1, 0.5), affects=["dose"], hide_driver=0.3).label
    'NMAR'
    >>> by_component(space, "mood", (0.1, 0.5), hide_driver=0.3, only_when_seen=True, otherwise=0.2).label
    'MAR'
    """
    space = space_of(where)
    i = space.component(driver)
    name = name or f"by-{space.names[i]}"
    chosen = {space.component(j) for j in (range(space.d) if affects is None else affects)}
    if only_when_seen and affects is None:
        chosen.discard(i)
    _check_driver_choice(name, space.names[i], i in chosen, hide_driver, only_when_seen, otherwise)
    values = _rates(name, rates, "the rates")
    if values.size != space.sizes[i]:
        raise ValueError(f"{name} has {values.size} rates; {space.names[i]} has {space.sizes[i]} values")
    table = _empty(space, space.n_states)
    table[:, sorted(chosen)] = values[_values_of(space, i)][:, None]
    if i not in chosen:
        table[:, i] = rate(name, hide_driver, "hide_driver")
    if otherwise is None:
        return Mechanism(space, table[None, None], RateBy.SHOWN, name=name)
    fallback = np.zeros_like(table)
    fallback[:, sorted(chosen)] = rate(name, otherwise, "otherwise")
    return Mechanism(space, table[None, None], RateBy.SHOWN, driver=i, fallback=fallback[None, None], name=name)


def _check_driver_choice(
    name: str, driver: str, affected: bool, hide_driver: float, only_when_seen: bool, otherwise: float | None
) -> None:
    if affected and hide_driver:
        raise ValueError(f"{name} hides {driver} by its own value already; hide_driver={hide_driver} has no place")
    if affected and only_when_seen:
        raise ValueError(f"{name} acts only when {driver} is seen, so {driver} cannot be among the affected components")
    if only_when_seen != (otherwise is not None):
        raise ValueError(f"{name} needs only_when_seen and otherwise (the rate when {driver} is hidden), or neither")


def by_state(where: Where, table: ArrayLike, *, name: str = "by-state", claims: Label | None = None) -> Mechanism:
    """Any table of rates by shown state: one rate per state, or one per state and component.

    Examples
    --------
    >>> by_state(Space((2, 2)), [0.0, 0.0, 0.5, 0.5]).label
    'NMAR'
    """
    space = space_of(where)
    rates = _table(name, table, space, space.n_states, "states of the space")
    return Mechanism(space, rates[None, None], RateBy.SHOWN, name=name, claims=claims)


def by_true_state(
    mdp: TabularMDP, table: ArrayLike, *, name: str = "by-true-state", claims: Label | None = None
) -> Mechanism:
    """Any table of rates by true state, which may know more than it shows: one rate per state, or per component too."""
    if not isinstance(mdp, TabularMDP):
        raise ValueError(f"{name} goes by the true states of a world, so it needs a TabularMDP, not {mdp!r}")
    rates = _table(name, table, mdp.space, mdp.n_states, f"true states of {mdp.name}")
    return Mechanism(mdp.space, rates[None, None], RateBy.TRUE, name=name, shows=mdp.shows, claims=claims)


def mfog(
    where: TabularMDP | tuple[Space, ArrayLike],
    inside: float,
    outside: float,
    *,
    affects: Iterable[int | str] | None = None,
) -> Mechanism:
    """One rate inside a region, another outside: the paper's MFOG.

    Parameters
    ----------
    where
        A world with a region called ``fog``, or ``(space, region)`` with a truth value per state of the space.
    inside, outside
        The two rates.
    affects
        The components that can be hidden; all by default.

    Notes
    -----
    If the world's region is a function of what is shown, the rates go by the shown state, as a function of the fewest
    components that tell inside from outside (the earliest, on a tie); a combination of their values that the world
    never shows counts as outside. Otherwise the rates go by the true state: a latent driver.

    Examples
    --------
    >>> corner = np.arange(9) < 2
    >>> mfog((Space((3, 3)), corner), 0.5, 0.0).label
    'NMAR'
    """
    rates = np.array([rate("mfog", outside, "outside"), rate("mfog", inside, "inside")])
    name = _name("mfog", rates[::-1], squeeze=False)
    space = where.space if isinstance(where, TabularMDP) else where[0]
    columns = [space.component(j) for j in (range(space.d) if affects is None else affects)]
    region = _region(where)
    shown = _shown_region(where, region) if isinstance(where, TabularMDP) else region
    rows = region if shown is None else shown
    table = _empty(space, rows.size)
    table[:, columns] = rates[rows.astype(np.int64)][:, None]
    if shown is None and isinstance(where, TabularMDP):
        return Mechanism(space, table[None, None], RateBy.TRUE, name=name, shows=where.shows)
    return Mechanism(space, table[None, None], RateBy.SHOWN, name=name)


def _region(where: TabularMDP | tuple[Space, ArrayLike]) -> NDArray[np.bool_]:
    if isinstance(where, TabularMDP):
        if "fog" not in where.regions:
            raise ValueError(f"mfog needs a region called 'fog'; {where.name} has {', '.join(where.regions) or 'none'}")
        return where.regions["fog"]
    space, region = where[0], np.asarray(where[1], dtype=np.bool_)
    if region.shape != (space.n_states,):
        raise ValueError(f"the region of mfog has shape {region.shape}; it needs one entry for {space.n_states} states")
    return region


def _shown_region(mdp: TabularMDP, region: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """The region over the states of the space, or None if it is not a function of what is shown."""
    values = mdp.dynamics.shown
    # Beyond a dozen components the search for the fewest would cost more than it tells.
    counts = range(mdp.space.d + 1) if mdp.space.d <= 12 else (mdp.space.d,)
    for chosen in (list(columns) for n in counts for columns in combinations(range(mdp.space.d), n)):
        sizes = [mdp.space.sizes[j] for j in chosen]
        looks = np.ravel_multi_index(tuple(values[:, chosen].T), sizes) if chosen else np.zeros(len(region), np.int64)
        if set(looks[region].tolist()).isdisjoint(looks[~region].tolist()):
            inside = np.zeros([size if j in chosen else 1 for j, size in enumerate(mdp.space.sizes)], dtype=np.bool_)
            inside.ravel()[looks[region]] = True
            return np.broadcast_to(inside, mdp.space.sizes).ravel()
    return None


def bursts(
    where: Where, enter: float, leave: float, inside: float = 1.0, outside: float = 0.0, *, per_component: bool = False
) -> Mechanism:
    """Loss in bursts: a hidden on/off chain, moved before every mask; once lost, tends to stay lost.

    Parameters
    ----------
    where
        A space, a world or a number of components.
    enter, leave
        Probability that a burst begins, and that it ends, at each step. The chain starts outside.
    inside, outside
        Rate of every component during a burst and between bursts.
    per_component
        False: one chain for the whole vector. True: a chain of its own for each component (at most 8).

    Examples
    --------
    >>> bursts(3, 0.1, 0.5).label, bursts(3, 0.1, 0.5, per_component=True).rates.shape[0]
    ('MCAR', 8)
    """
    space = space_of(where)
    kind = "bursts-each" if per_component else "bursts"
    enter, leave, inside, outside = (
        rate(kind, value, what)
        for value, what in ((enter, "enter"), (leave, "leave"), (inside, "inside"), (outside, "outside"))
    )
    if per_component and space.d > MAX_BURST_COMPONENTS:
        raise ValueError(
            f"{kind} has {space.d} components; a chain for each needs 2^d modes, so at most {MAX_BURST_COMPONENTS}"
        )
    one = np.array([[1 - enter, enter], [leave, 1 - leave]])
    chain = np.ones((1, 1))
    for _ in range(space.d if per_component else 1):
        chain = np.kron(chain, one)
    modes = np.arange(chain.shape[0])[:, None]
    burst = (modes >> np.arange(space.d - 1, -1, -1)) & 1 if per_component else np.repeat(modes, space.d, axis=1)
    rates = np.where(burst == 1, inside, outside)
    extras = [inside, outside] if outside else [inside] if inside != 1 else []
    name = _name(kind, [enter, leave, *extras], squeeze=False)
    return Mechanism(space, rates[:, None, None, :], chain=chain, name=name)


def after_actions(where: Where, n_actions: int, rates: Mapping[int, float], otherwise: float = 0.0) -> Mechanism:
    """Every component is hidden more (or less) often right after given actions.

    Parameters
    ----------
    where
        A space, a world or a number of components.
    n_actions
        Number of actions of the world.
    rates
        Rate after each of the actions named.
    otherwise
        Rate after any other action, and before the first.

    Examples
    --------
    >>> mechanism = after_actions(2, 3, {1: 0.5}, 0.1)
    >>> mechanism.name, mechanism.label
    ('after:1=0.5,else=0.1', 'MAR')
    """
    space = space_of(where)
    table = np.full((1, n_actions + 1, 1, space.d), rate("after", otherwise, "else"))
    for action, theta in rates.items():
        if not 0 <= action < n_actions:
            raise ValueError(f"after has a rate for action {action}; there are actions 0 to {n_actions - 1}")
        table[0, action] = rate("after", theta, f"action {action}")
    text = [f"{action}={_number(theta)}" for action, theta in sorted(rates.items())]
    return Mechanism(space, table, name="after:" + ",".join([*text, f"else={_number(otherwise)}"]))


def rate(mechanism: str, value: float, place: str) -> float:
    """A probability, or a sentence that says what is wrong with it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{place} of {mechanism} is {value!r}; it must be a number between 0 and 1") from None
    if not 0 <= number <= 1:
        raise ValueError(f"{place} of {mechanism} is {value}; it must be between 0 and 1")
    return number


def _rates(mechanism: str, values: ArrayLike, place: str) -> NDArray[np.float64]:
    flat = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if flat.ndim != 1 or not flat.size:
        raise ValueError(f"{place} of {mechanism} must be a number or a list of numbers, not {values!r}")
    return np.array([rate(mechanism, value, place) for value in flat.tolist()])


def _empty(space: Space, n_rows: int) -> NDArray[np.float64]:
    if n_rows * space.d > MAX_ENTRIES:
        raise ValueError(f"a table of {n_rows} states by {space.d} components is over {MAX_ENTRIES} rates")
    return np.zeros((n_rows, space.d))


def _table(name: str, table: ArrayLike, space: Space, n_rows: int, rows: str) -> NDArray[np.float64]:
    given = np.asarray(table, dtype=np.float64)
    if given.shape not in {(n_rows,), (n_rows, space.d)}:
        raise ValueError(
            f"the table of {name} has shape {given.shape}; it must be ({n_rows},) or ({n_rows}, {space.d}): "
            f"the {rows}, and the components"
        )
    full = _empty(space, n_rows)
    full[:] = given if given.ndim == 2 else given[:, None]
    return full


def _values_of(space: Space, component: int) -> NDArray[np.int64]:
    """Value of one component in every state of the space."""
    column: NDArray[np.int64] = np.arange(space.n_states) // space.layout.strides[component] % space.sizes[component]
    return column


def _number(value: float) -> str:
    return repr(float(value))


def _name(kind: str, values: Iterable[float], squeeze: bool = True) -> str:
    text = [_number(value) for value in values]
    return f"{kind}:{','.join(text[:1] if squeeze and len(set(text)) == 1 else text)}"
