"""Mechanisms as short texts, for the command line and study files: ``mcar:0.4``, ``mfog:0.5,0.0``."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import NoReturn

from lacuna.mdp.tabular import TabularMDP
from lacuna.missingness.constructors import Where, after_actions, bursts, mcar, mcolor, mfog, none, space_of, whole
from lacuna.missingness.mechanism import Mechanism

MECHANISMS: dict[str, str] = {
    "none": "none: nothing is hidden",
    "mcar": "mcar:THETA or mcar:T0,T1,…: constant rates, one for all components or one for each",
    "mcolor": "mcolor:GREEN,ORANGE,RED: rates by the true colour, the colour itself included",
    "mcolor-xy": "mcolor-xy:GREEN,ORANGE,RED: rates by the true colour, which is never hidden itself",
    "mfog": "mfog:INSIDE,OUTSIDE: one rate in the world's fog, another outside",
    "whole": "whole:THETA: the whole vector or nothing",
    "bursts": "bursts:ENTER,LEAVE[,INSIDE[,OUTSIDE]]: once lost, tends to stay lost",
    "bursts-each": "bursts-each:ENTER,LEAVE[,INSIDE[,OUTSIDE]]: bursts of each component by itself",
    "after": "after:ACTION=RATE,…[,else=RATE]: rates by the action just taken",
}
"""Every mechanism that `parse` knows, with how it is written."""


def parse(text: str, where: Where, n_actions: int | None = None) -> Mechanism:
    """Mechanism from its short text.

    Parameters
    ----------
    text
        As listed in `MECHANISMS`.
    where
        The world (needed for ``mfog``), its space, or a number of components.
    n_actions
        Number of actions, for ``after`` if `where` is not a world.

    Examples
    --------
    >>> parse("mcar:.4", 3).name
    'mcar:0.4'
    >>> parse("mcra:0.4", 3)
    Traceback (most recent call last):
    ValueError: no mechanism is called 'mcra'; did you mean 'mcar'? There are none, mcar, mcolor, mcolor-xy, mfog,
    whole, bursts, bursts-each, after
    """
    if not isinstance(text, str):
        raise TypeError(f"a mechanism is written as text, e.g. 'mcar:0.4', not {text!r}")
    kind, colon, rest = text.strip().partition(":")
    if kind not in MECHANISMS:
        close = get_close_matches(kind, MECHANISMS, n=1)
        hint = f"; did you mean {close[0]!r}? There are" if close else "; there are"
        raise ValueError(f"no mechanism is called {kind!r}{hint} {', '.join(MECHANISMS)}")
    parts = [part.strip() for part in rest.split(",")] if colon else []
    if kind == "after":
        return _after(text, parts, where, n_actions)
    least, most = _COUNTS[kind]
    # As many rates as components for mcar; the constructor says how many those are.
    if not least <= len(parts) <= (max(space_of(where).d, len(parts)) if most is None else most):
        _refuse(text, kind, f"it has {len(parts)} values")
    if kind == "mfog":
        if not isinstance(where, TabularMDP):
            _refuse(text, kind, "it needs a world with a region called 'fog'")
        return mfog(where, *_numbers(text, kind, parts))
    return _MAKERS[kind](where, _numbers(text, kind, parts))


_COUNTS: dict[str, tuple[int, int | None]] = {
    "none": (0, 0), "mcar": (1, None), "mcolor": (1, None), "mcolor-xy": (1, None), "mfog": (2, 2), "whole": (1, 1),
    "bursts": (2, 4), "bursts-each": (2, 4),
}  # fmt: skip

_MAKERS: dict[str, Callable[[Where, list[float]], Mechanism]] = {
    "none": lambda where, _: none(where),
    "mcar": mcar,
    "mcolor": mcolor,
    "mcolor-xy": lambda where, values: mcolor(where, values, hide_colour=False),
    "whole": lambda where, values: whole(where, *values),
    "bursts": lambda where, values: bursts(where, *values),
    "bursts-each": lambda where, values: bursts(where, *values, per_component=True),
}


def _refuse(text: str, kind: str, what: str) -> NoReturn:
    raise ValueError(f"{text!r} is not a mechanism: {what}. Write {MECHANISMS[kind]}")


def _numbers(text: str, kind: str, parts: list[str]) -> list[float]:
    return [_number(text, kind, part) for part in parts]


def _number(text: str, kind: str, part: str) -> float:
    try:
        return float(part)
    except ValueError:
        _refuse(text, kind, f"{part!r} is not a number")


def _after(text: str, parts: list[str], where: Where, n_actions: int | None) -> Mechanism:
    names = where.action_names if isinstance(where, TabularMDP) else ()
    n_actions = where.n_actions if isinstance(where, TabularMDP) else n_actions
    if n_actions is None:
        _refuse(text, "after", "it needs to know how many actions there are")
    rates: dict[int, float] = {}
    otherwise = 0.0
    if not parts:
        _refuse(text, "after", "it names no action")
    for part in parts:
        action, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            _refuse(text, "after", f"{part!r} has no rate")
        if action == "else":
            otherwise = _number(text, "after", value)
        else:
            rates[_action(text, action, names)] = _number(text, "after", value)
    return after_actions(where, n_actions, rates, otherwise)


def _action(text: str, action: str, names: tuple[str, ...]) -> int:
    if action in names:
        return names.index(action)
    if action.isdecimal():
        return int(action)
    known = f"; there are {', '.join(names)}" if names else ", which must be given by number"
    _refuse(text, "after", f"no action is called {action!r}{known}")
