"""Mechanisms by name: constructors with checked arguments, each declared with the text that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacuna.kernels.space import Space
from lacuna.missingness.mechanism import MAX_DELAY, Mechanism
from lacuna.missingness.rates import (
    Rates,
    Where,
    by_component,
    by_state,
    by_true_state,
    checked_rates,
    empty_table,
    rate_of_each,
    space_of,
    written,
)
from lacuna.missingness.texts import as_numbers, mechanism, parse
from lacuna.validation import number, shown, whole_number
from lacuna.worlds.mdp.tabular import TabularMDP

MAX_BURST_COMPONENTS = 8


@mechanism("none", "none", "nothing is hidden")
def none(where: Where) -> Mechanism:
    """Nothing is ever hidden.

    Examples
    --------
    >>> none(3).label
    'MCAR'
    """
    space = space_of(where)
    return Mechanism(space, np.zeros((1, 1, 1, space.d)), name="none")


@mechanism("mcar", "mcar:THETA or mcar:T0,T1,…", "constant rates, one for all components or one for each")
def mcar(where: Where, theta: Rates) -> Mechanism:
    """Each component is hidden at a constant rate, the same for all or one per component.

    Examples
    --------
    >>> mcar(Space((8, 8, 3)), 0.4).name, mcar(Space((8, 8, 3)), (0.1, 0.2, 0.3)).name
    ('mcar:0.4', 'mcar:0.1,0.2,0.3')
    """
    space = space_of(where)
    thetas = rate_of_each("theta of mcar", theta, space)
    return Mechanism(space, thetas[None, None, None], name=f"mcar:{written(thetas, ',')}")


@mechanism("whole", "whole:THETA", "the whole vector or nothing")
def whole(where: Where, theta: float) -> Mechanism:
    """All components are hidden together, at a constant rate.

    Examples
    --------
    >>> whole(3, 0.3).n_draws
    1
    """
    space = space_of(where)
    theta = number("theta of whole", theta, 0, 1)
    return Mechanism(space, np.full((1, 1, 1, space.d), theta), whole=True, name=_name("whole", [theta]))


@mechanism(
    "mcolor-xy", "mcolor-xy:GREEN,ORANGE,RED", "rates by the true colour, which is never hidden itself",
    hide_colour=False,
)  # fmt: skip
@mechanism("mcolor", "mcolor:GREEN,ORANGE,RED", "rates by the true colour, the colour itself included")
def mcolor(where: Where, rates: Sequence[float], *, hide_colour: bool = True) -> Mechanism:
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
    kind = "mcolor" if hide_colour else "mcolor-xy"
    if "colour" not in space.names:
        raise ValueError(f"{kind} needs a component called 'colour'; there are {', '.join(space.names)}")
    affects = [j for j in space.names if hide_colour or j != "colour"]
    name = _name(kind, checked_rates(f"the rates of {kind}", rates))
    return by_component(space, "colour", rates, affects=affects, name=name)


@mechanism("mfog", "mfog:INSIDE,OUTSIDE", "one rate in the world's fog, another outside")
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
    rates = np.array([number("outside of mfog", outside, 0, 1), number("inside of mfog", inside, 0, 1)])
    name = _name("mfog", rates[::-1])
    space, region, latent = _region(where)
    columns = [space.component(j) for j in (range(space.d) if affects is None else affects)]
    table = empty_table(space, region.size)
    table[:, columns] = rates[region.astype(np.int64)][:, None]
    return by_state(space, table, name=name) if latent is None else by_true_state(latent, table, name=name)


def _region(
    where: TabularMDP | tuple[Space, ArrayLike],
) -> tuple[Space, NDArray[np.bool_], TabularMDP | None]:
    """Space and region of a fog; by true state, with the world, if what is shown does not tell it."""
    if isinstance(where, TabularMDP):
        if "fog" not in where.regions:
            raise ValueError(f"mfog needs a region called 'fog'; {where.name} has {', '.join(where.regions) or 'none'}")
        region = where.regions["fog"]
        seen = _shown_region(where, region)
        return (where.space, region, where) if seen is None else (where.space, seen, None)
    if not isinstance(where, tuple):
        raise ValueError(f"mfog needs a world with a region called 'fog', not {shown(where)}")
    space, given = where
    region = np.asarray(given, dtype=np.bool_)
    if region.shape != (space.n_states,):
        raise ValueError(f"the region of mfog has shape {region.shape}; it needs one entry for {space.n_states} states")
    return space, region, None


def _shown_region(mdp: TabularMDP, region: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """The region over the states of the space, or None if it is not a function of what is shown."""
    values = mdp.dynamics.shown
    # Beyond a dozen components the search for the fewest would cost more than it tells.
    counts = range(mdp.space.d + 1) if mdp.space.d <= 12 else (mdp.space.d,)
    for chosen in (list(columns) for n in counts for columns in combinations(range(mdp.space.d), n)):
        sizes = [mdp.space.sizes[j] for j in chosen]
        index = np.ravel_multi_index(tuple(values[:, chosen].T), sizes) if chosen else np.zeros(len(region), np.int64)
        if set(index[region].tolist()).isdisjoint(index[~region].tolist()):
            inside = np.zeros([size if j in chosen else 1 for j, size in enumerate(mdp.space.sizes)], dtype=np.bool_)
            inside.ravel()[index[region]] = True
            return np.broadcast_to(inside, mdp.space.sizes).ravel()
    return None


@mechanism(
    "bursts-each", "bursts-each:ENTER,LEAVE[,INSIDE[,OUTSIDE]]", "bursts of each component by itself",
    per_component=True,
)  # fmt: skip
@mechanism("bursts", "bursts:ENTER,LEAVE[,INSIDE[,OUTSIDE]]", "once lost, tends to stay lost")
def bursts(
    where: Where, enter: Rates, leave: Rates, inside: Rates = 1.0, outside: Rates = 0.0, *, per_component: bool = False
) -> Mechanism:
    """Loss in bursts: a hidden on/off chain, moved before every mask; once lost, tends to stay lost.

    Parameters
    ----------
    where
        A space, a world or a number of components.
    enter, leave
        Probability that a burst begins, and that it ends, at each step. The chain starts outside. With `per_component`,
        one for all or one for each.
    inside, outside
        Rate of every component during a burst and between bursts; one for all, or one for each.
    per_component
        False: one chain for the whole vector. True: a chain of its own for each component (at most 8).

    Examples
    --------
    >>> bursts(3, 0.1, 0.5).label, bursts(3, 0.1, 0.5, per_component=True).rates.shape[0]
    ('MCAR', 8)
    >>> bursts(2, 0.1, 0.5, (0.9, 1.0)).name
    'bursts:0.1,0.5,0.9/1.0'
    """
    space = space_of(where)
    kind = "bursts-each" if per_component else "bursts"
    given = {"enter": enter, "leave": leave, "inside": inside, "outside": outside}
    values = {what: rate_of_each(f"{what} of {kind}", value, space) for what, value in given.items()}
    enters, leaves, insides, outsides = values.values()
    for what in ("enter", "leave"):
        if not per_component and np.ptp(values[what]):
            raise ValueError(f"{what} of {kind} is {shown(given[what])}; one chain needs one number")
    if per_component and space.d > MAX_BURST_COMPONENTS:
        raise ValueError(
            f"{kind} has {space.d} components; a chain for each needs 2^d modes, so at most {MAX_BURST_COMPONENTS}"
        )
    chain = np.ones((1, 1))
    for begin, end in zip(enters, leaves, strict=True) if per_component else [(enters[0], leaves[0])]:
        chain = np.kron(chain, np.array([[1 - begin, begin], [end, 1 - end]]))
    modes = np.arange(chain.shape[0])[:, None]
    burst = (modes >> np.arange(space.d - 1, -1, -1)) & 1 if per_component else np.repeat(modes, space.d, axis=1)
    rates = np.where(burst == 1, insides, outsides)
    kept = 4 if outsides.any() else 3 if (insides != 1).any() else 2
    text = ",".join(written(value) for value in list(values.values())[:kept])
    return Mechanism(space, rates[:, None, None, :], chain=chain, name=f"{kind}:{text}")


def _read_rates_by_action(values: list[str], where: Where, n_actions: int | None) -> tuple[Any, ...]:
    """Arguments of `after_actions` from ``ACTION=RATE,…[,else=RATE]``."""
    names = where.action_names if isinstance(where, TabularMDP) else ()
    n_actions = where.n_actions if isinstance(where, TabularMDP) else n_actions
    if n_actions is None:
        raise ValueError("it needs to know how many actions there are")
    if not values:
        raise ValueError("it names no action")
    rates: dict[int, Rates] = {}
    otherwise: Rates = 0.0
    for value in values:
        action, equals, rate = (piece.strip() for piece in value.partition("="))
        if not equals:
            raise ValueError(f"{shown(value)} has no rate")
        if action == "else":
            otherwise = as_numbers(rate)
        elif action in names or action.isdecimal():
            rates[names.index(action) if action in names else int(action)] = as_numbers(rate)
        else:
            known = f"; there are {', '.join(names)}" if names else ", which must be given by number"
            raise ValueError(f"no action is called {shown(action)}{known}")
    return n_actions, rates, otherwise


@mechanism("after", "after:ACTION=RATE,…[,else=RATE]", "rates by the action just taken", read=_read_rates_by_action)
def after_actions(where: Where, n_actions: int, rates: Mapping[int, Rates], otherwise: Rates = 0.0) -> Mechanism:
    """Components are hidden more (or less) often right after given actions.

    Parameters
    ----------
    where
        A space, a world or a number of components.
    n_actions
        Number of actions of the world.
    rates
        Rate after each of the actions named; one for all components, or one for each.
    otherwise
        Rate after any other action, and before the first.

    Examples
    --------
    >>> after = after_actions(2, 3, {1: 0.5}, 0.1)
    >>> after.name, after.label
    ('after:1=0.5,else=0.1', 'MAR')
    """
    space = space_of(where)
    rest = rate_of_each("else of after", otherwise, space)
    table = np.tile(rest, (1, n_actions + 1, 1, 1))
    for action, theta in rates.items():
        if not 0 <= action < n_actions:
            raise ValueError(f"after has a rate for action {action}; there are actions 0 to {n_actions - 1}")
        table[0, action] = rate_of_each(f"action {action} of after", theta, space)
    text = [f"{action}={written(table[0, action, 0])}" for action in sorted(rates)]
    return Mechanism(space, table, name=f"after:{','.join([*text, f'else={written(rest)}'])}")


def _read_late(values: list[str], where: Where, n_actions: int | None) -> tuple[Any, ...]:
    """Arguments of `late` from ``STEPS[/SHARE],MECHANISM``."""
    if len(values) < 2:
        raise ValueError("it names no mechanism whose values are late")
    steps, *share = as_numbers(values[0])
    if steps % 1 or len(share) > 1:
        raise ValueError(f"{shown(values[0])} is neither a number of steps nor one with a share")
    return (parse(",".join(values[1:]), where, n_actions), int(steps), *share)


@mechanism(
    "late", "late:STEPS[/SHARE],MECHANISM", "what another mechanism hides arrives later, or a share of it",
    read=_read_late,
)  # fmt: skip
def late(where: Where, hidden: Mechanism, steps: int, share: float = 1.0) -> Mechanism:
    """What another mechanism hides arrives `steps` steps later, each value with the same probability.

    Parameters
    ----------
    where
        A space, a world or a number of components.
    hidden
        The mechanism.
    steps
        Delay in steps, at least 1.
    share
        Probability that a hidden value arrives at all.

    Examples
    --------
    >>> parse("late:3/0.5,bursts:0.1,0.5", 3).name
    'late:3/0.5,bursts:0.1,0.5'
    """
    if hidden.space.d != space_of(where).d:
        raise ValueError(f"{hidden.name} has {hidden.space.d} components; late is for {space_of(where).d}")
    if hidden.delay:
        raise ValueError(f"the values of {hidden.name} are late already")
    whole_number("steps of late", steps, 1, MAX_DELAY)
    text = str(steps) if share == 1 else f"{steps}/{float(share)!r}"
    return replace(hidden, delay=steps, arrives=share, name=f"late:{text},{hidden.name}")


def _name(kind: str, values: Iterable[float]) -> str:
    """The text that makes a mechanism."""
    return f"{kind}:{','.join(repr(float(value)) for value in values)}"
