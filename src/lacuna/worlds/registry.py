"""The worlds by name: a list for people, a maker for programs, and their Gymnasium ids. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import gymnasium

if TYPE_CHECKING:
    from lacuna.mdp import TabularMDP

WORLDS: Mapping[str, str] = {
    "lake": "the paper's grid with a lake that floods, wind, and a colour that warns of water",
    "frozen-lake": "Gymnasium's FrozenLake as (row, column); holes are bad",
    "cliff-walking": "Gymnasium's CliffWalking as (row, column); falling off is bad",
    "taxi": "Gymnasium's Taxi as (taxi row, taxi column, passenger, destination)",
    "corridor": "a corridor with slippery steps, solved in closed form",
    "field": "an open field crossed corner to corner, solved in closed form",
    "bandit": "a two-armed bandit with a context of two coins, solved in closed form",
    "loop": "two states for ever, solved in closed form",
}
"""Name of each world, and a line about it."""

_BUILDERS = {
    "lake": "lacuna.worlds.lake:Lake",
    "frozen-lake": "lacuna.worlds.toy_text:frozen_lake_mdp",
    "cliff-walking": "lacuna.worlds.toy_text:cliff_walking_mdp",
    "taxi": "lacuna.worlds.toy_text:taxi_mdp",
    "corridor": "lacuna.worlds.toys:corridor",
    "field": "lacuna.worlds.toys:field",
    "bandit": "lacuna.worlds.toys:bandit",
    "loop": "lacuna.worlds.toys:loop",
}

IDS: Mapping[str, str] = {
    "lacuna/Lake-v0": "lake",
    "lacuna/FrozenLake-v0": "frozen-lake",
    "lacuna/CliffWalking-v0": "cliff-walking",
    "lacuna/Taxi-v0": "taxi",
    "lacuna/Corridor-v0": "corridor",
    "lacuna/Field-v0": "field",
    "lacuna/Bandit-v0": "bandit",
    "lacuna/Loop-v0": "loop",
}
"""Gymnasium id of each world."""


def register_envs() -> None:
    """Make every world known to Gymnasium as ``lacuna/…-v0``; doing so again changes nothing.

    Examples
    --------
    >>> register_envs()
    >>> gymnasium.make("lacuna/Lake-v0", wind=0.2).observation_space
    MultiDiscrete([8 8 3])
    """
    for env_id, world in IDS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(id=env_id, entry_point="lacuna.worlds.gym:world_env", kwargs={"world": world})


def make_world(name: str, **parameters: Any) -> TabularMDP:
    """Make a world from its name and parameters.

    Examples
    --------
    >>> make_world("corridor", length=3).n_states
    3
    >>> make_world("lack")
    Traceback (most recent call last):
    ValueError: no world is called 'lack' (did you mean 'lake'?); there are lake, frozen-lake, cliff-walking, taxi,
    corridor, field, bandit, loop
    """
    world: Any = find_builder(name, parameters)(**parameters)
    mdp: TabularMDP = world.mdp() if name == "lake" else world
    return mdp


def find_builder(name: str, parameters: Mapping[str, Any]) -> Callable[..., object]:
    """Find what makes a world, after checking that world and parameters have known names."""
    if name not in WORLDS:
        raise ValueError(f"no world is called {name!r}{_nearest(name, WORLDS)}; there are {', '.join(WORLDS)}")
    module, attribute = _BUILDERS[name].split(":")
    builder: Callable[..., object] = getattr(import_module(module), attribute)
    known = signature(builder).parameters
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(
                f"the world {name!r} has no parameter {parameter!r}{_nearest(parameter, known)}; "
                f"there are {', '.join(known)}"
            )
    _typed(name, builder, parameters)
    return builder


def typed_parameters(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as the types that their world declares, so that 1 and 1.0 are the same number.

    Examples
    --------
    >>> typed_parameters("lake", {"wind": 0, "stay": True})
    {'wind': 0.0, 'stay': True}
    """
    return _typed(name, find_builder(name, parameters), parameters)


def _typed(name: str, builder: Callable[..., object], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse a value of the wrong type, e.g. a text for a number, before the world trips over it."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  only needed to make a world

    types = get_type_hints(builder)
    typed = {}
    for parameter, value in parameters.items():
        try:
            typed[parameter] = TypeAdapter(types[parameter]).validate_python(value, strict=True)
        except ValidationError:
            wanted = _in_words(types[parameter])
            raise ValueError(f"{parameter} of the world {name!r} is {shown(value)}; it must be {wanted}") from None
        if isinstance(value, int) and abs(value) > _MAX_WHOLE:
            raise ValueError(f"{parameter} of the world {name!r} is {shown(value)}; it must be at most {_MAX_WHOLE}")
    return typed


_MAX_WHOLE = 10**12
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _in_words(wanted: Any) -> str:
    """A type as people say it."""
    inner = [item for item in get_args(wanted) if item is not NoneType]
    origin = get_origin(wanted)
    if origin in (Union, UnionType):
        # A named tuple stands beside the plain one that people write.
        return " or ".join(_in_words(item) for item in inner if not hasattr(item, "_fields"))
    if origin is tuple:
        return f"a list of {len(inner)} values, each {_in_words(inner[0])}"
    if inner:
        return f"a list of values, each {_in_words(inner[0])}"
    return _WORDS.get(wanted, str(wanted))


def shown(value: object) -> str:
    """A value in a message, cut if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write whole numbers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 200 else f"{text[:200]}…"


def _nearest(name: str, choices: Mapping[str, object]) -> str:
    close = get_close_matches(name, list(choices), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
