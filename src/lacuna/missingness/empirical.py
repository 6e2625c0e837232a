"""Mechanisms that a log of masks can identify: rates by a component while it is seen, and shares of patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from lacuna.kernels.space import Space
from lacuna.missingness.mechanism import Mechanism, RateBy
from lacuna.missingness.rates import Rates, Where, empty_table, rate_of_each, space_of, written
from lacuna.missingness.texts import as_number, as_numbers, mechanism
from lacuna.validation import number, shown

MAX_PATTERNS = 1024


def _pair(value: str) -> tuple[str, str]:
    name, equals, rest = (piece.strip() for piece in value.partition("="))
    if not equals:
        raise ValueError(f"{shown(value)} has no =")
    return name, rest


def _pairs(values: Iterable[str]) -> dict[str, str]:
    """Texts by name, from values such as ``NAME=TEXT``."""
    found: dict[str, str] = {}
    for name, text in map(_pair, values):
        if name in found:
            raise ValueError(f"{shown(name)} is given twice")
        found[name] = text
    return found


def _read_by(values: list[str], where: Where, _: int | None) -> tuple[Any, ...]:
    """Arguments of `by_seen` from ``COMPONENT=RATE,VALUE=RATE,…[,else=RATE]``."""
    if not values:
        raise ValueError("it names no component")
    driver, own = _pair(values[0])
    texts = _pairs(values[1:])
    space, name = space_of(where), unquote(driver)
    which = int(name) if name not in space.names and name.isdecimal() else name
    otherwise = texts.pop("else", "0")
    for value in texts:
        if not value.isdecimal():
            raise ValueError(f"{shown(value)} is not a value of {name}; values are whole numbers from 0 on")
    return which, as_number(own), {int(v): as_numbers(text) for v, text in texts.items()}, as_numbers(otherwise)


@mechanism(
    "by", "by:COMPONENT=RATE,VALUE=RATE,…[,else=RATE]",
    "rates by the value of a component while it is seen; its own rate comes first", read=_read_by,
)  # fmt: skip
def by_seen(
    where: Where, driver: int | str, own: float, rates: Mapping[int, Rates], otherwise: Rates = 0.0
) -> Mechanism:
    """Rates by the value of one component, the driver, which acts only while it is seen: always MAR, or MCAR.

    Parameters
    ----------
    where
        A space or a world.
    driver
        The component whose value sets the rates of the others, by name or number.
    own
        Constant rate at which the driver itself is hidden.
    rates
        For each value of the driver, the rate of the other components; one for all, or one for each of them in order.
    otherwise
        Their rate when the driver is hidden, and for values that `rates` leaves out.

    Examples
    --------
    >>> space = Space((3, 2, 2), ("mood", "sleep", "steps"))
    >>> made = by_seen(space, "mood", 0.1, {0: 0.6, 1: (0.2, 0.3)}, 0.4)
    >>> made.name, made.label
    ('by:mood=0.1,0=0.6,1=0.2/0.3,else=0.4', 'MAR')
    """
    space = space_of(where)
    i = space.component(driver)
    who, others = space.names[i], [j for j in range(space.d) if j != i]
    if not others:
        raise ValueError(f"by {who} needs another component to hide")
    rest = Space(tuple(space.sizes[j] for j in others), tuple(space.names[j] for j in others))
    fallback = rate_of_each(f"else of by {who}", otherwise, rest)
    by_value = np.tile(fallback, (space.sizes[i], 1))
    for value, theta in rates.items():
        if not 0 <= value < space.sizes[i]:
            raise ValueError(f"by {who} has a rate for the value {value}; it has values 0 to {space.sizes[i] - 1}")
        by_value[value] = rate_of_each(f"the rate of by {who} for the value {value}", theta, rest)
    share = number(f"the rate of {who} itself", own, 0, 1)
    table = empty_table(space, space.n_states)
    table[:, others] = by_value[np.arange(space.n_states) // space.layout.strides[i] % space.sizes[i]]
    table[:, i] = share
    below = np.zeros_like(table)
    below[:, others] = fallback
    texts = [f"{value}={written(by_value[value])}" for value in sorted(rates)]
    text = ",".join([f"{_quoted(who)}={share!r}", *texts, f"else={written(fallback)}"])
    return Mechanism(space, table[None, None], RateBy.SHOWN, driver=i, fallback=below[None, None], name=f"by:{text}")


def _quoted(name: str) -> str:
    """A component's name without what separates the parts of a text."""
    return quote(name, safe=" " if name == name.strip() else "")


def _read_patterns(values: list[str], _where: Where, _n_actions: int | None) -> tuple[Any, ...]:
    if not values:
        raise ValueError("it names no pattern")
    return ({pattern: as_number(text) for pattern, text in _pairs(values).items()},)


@mechanism(
    "patterns", "patterns:PATTERN=SHARE,…",
    "whole patterns at given shares that add up to 1; in 011 the first component is seen, the others are hidden",
    read=_read_patterns,
)  # fmt: skip
def pattern_shares(where: Where, shares: Mapping[str, float]) -> Mechanism:
    """Patterns of hidden components that come at given shares, independent of the state and of the past.

    Parameters
    ----------
    where
        A space, a world or a number of components.
    shares
        How often each pattern comes. A pattern has a digit per component: 1 for hidden, 0 for seen.

    Examples
    --------
    >>> made = pattern_shares(2, {"00": 0.7, "11": 0.2, "01": 0.1})
    >>> made.name, made.label
    ('patterns:00=0.7,01=0.1,11=0.2', 'MCAR')
    """
    space = space_of(where)
    if not 0 < len(shares) <= MAX_PATTERNS:
        raise ValueError(f"patterns has {len(shares)} patterns; there must be 1 to {MAX_PATTERNS}")
    for pattern in shares:
        if len(pattern) != space.d or set(pattern) - {"0", "1"}:
            raise ValueError(f"the pattern {shown(pattern)} must have {space.d} digits, 1 for hidden and 0 for seen")
    ordered = {pattern: number(f"the share of {pattern}", shares[pattern], 0, 1) for pattern in sorted(shares)}
    total = fsum(ordered.values())
    if abs(total - 1) > 1e-9:
        raise ValueError(f"the shares of the patterns add up to {total:.12g}, not 1")
    # A mode per pattern, drawn anew before every mask, whatever the mode was.
    hidden = np.array([[digit == "1" for digit in pattern] for pattern in ordered], dtype=np.float64)
    chain = np.tile(np.array(list(ordered.values())) / total, (len(ordered), 1))
    text = ",".join(f"{pattern}={share!r}" for pattern, share in ordered.items())
    return Mechanism(space, hidden[:, None, None, :], chain=chain, name=f"patterns:{text}")
