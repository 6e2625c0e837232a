"""Worlds by name: a decorator declares one, and lists, environments, studies and the command follow from that."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

import gymnasium

from lacuna.mdp.tabular import TabularMDP
from lacuna.validation import nearest, parameter_types, shown

if TYPE_CHECKING:
    from lacuna.mdp.environment import TabularEnv

_MAX_WHOLE = 10**12
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


@dataclass(frozen=True)
class World:
    """A declared world: its name, its Gymnasium id, a line about it, and what makes it.

    Its parameters are those of `build`, with their types and defaults. What `build` gives is a `TabularMDP`, or has a
    method ``mdp()`` that does.
    """

    name: str
    env_id: str
    about: str
    build: Callable[..., Any]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters and their defaults."""
        return {name: found.default for name, found in signature(self.build).parameters.items()}

    def typed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Give parameters as the types that the world declares, so that 1 and 1.0 are the same number.

        Examples
        --------
        >>> WORLDS["lake"].typed({"wind": 0, "stay": True})
        {'wind': 0.0, 'stay': True}
        """
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  only needed to make a world

        types = parameter_types(f"the world {self.name!r}", self.build)
        typed = {}
        for parameter, value in given.items():
            if parameter not in self.parameters:
                raise ValueError(
                    f"the world {self.name!r} has no parameter {parameter!r}{nearest(parameter, self.parameters)}; "
                    f"there are {', '.join(self.parameters)}"
                )
            what = f"{parameter} of the world {self.name!r} is {shown(value)}"
            try:
                typed[parameter] = TypeAdapter(types[parameter]).validate_python(as_tuples(value), strict=True)
            except ValidationError:
                raise ValueError(f"{what}; it must be {_in_words(types[parameter])}") from None
            if isinstance(value, int) and abs(value) > _MAX_WHOLE:
                raise ValueError(f"{what}; it must be at most {_MAX_WHOLE}")
        return typed

    def make(self, /, **given: Any) -> TabularMDP:
        """Make the world; a parameter that it does not have, or of the wrong type, is refused."""
        built = self.build(**self.typed(given))
        mdp = built.mdp() if hasattr(built, "mdp") else built
        if not isinstance(mdp, TabularMDP):
            raise TypeError(f"the world {self.name!r} made {shown(built)}; it must make a TabularMDP")
        return mdp


WORLDS: dict[str, World] = {}
"""Every declared world by its name."""

Builder = TypeVar("Builder", bound=Callable[..., Any])


def world(name: str, env_id: str, about: str) -> Callable[[Builder], Builder]:
    """Declare a world: the function or class it decorates makes one, and Gymnasium knows it from then on.

    Parameters
    ----------
    name
        What `make_world`, study files and the command call it.
    env_id
        What Gymnasium calls it.
    about
        What it is, in a line.

    Examples
    --------
    All parameters of what makes the world have a type and a default:

    >>> from lacuna.worlds.toys import corridor
    >>> @world("tunnel", "mine/Tunnel-v0", "a long corridor")
    ... def tunnel(length: int = 50) -> TabularMDP:
    ...     return corridor(length, slip=0.0)
    >>> make_world("tunnel", length=20).n_states, gymnasium.make("mine/Tunnel-v0").observation_space
    (20, Discrete(50))
    >>> del WORLDS["tunnel"], gymnasium.registry["mine/Tunnel-v0"]
    """

    def declare(build: Builder) -> Builder:
        what, known = f"the world {name!r}", WORLDS.get(name)
        parameter_types(what, build)
        for parameter in signature(build).parameters.values():
            if parameter.default is Parameter.empty:
                raise TypeError(f"{what} cannot be declared: its parameter {parameter.name} has no default")
        # A module that is loaded again declares its worlds again.
        again = known is not None and (known.env_id, known.build.__module__) == (env_id, build.__module__)
        if known is not None and not again:
            raise ValueError(f"{what} is declared by {known.build.__module__} already")
        if env_id in gymnasium.registry and not again:
            raise ValueError(f"{what} cannot be called {env_id!r}: Gymnasium knows another environment of that name")
        if not again:
            gymnasium.register(id=env_id, entry_point=f"{__name__}:world_env", kwargs={"world": name})
        WORLDS[name] = World(name, env_id, about, build)
        return build

    return declare


def find_world(name: str) -> World:
    """Give the world called `name`, or a sentence with the choices."""
    if name not in WORLDS:
        raise ValueError(f"no world is called {name!r}{nearest(name, WORLDS)}; there are {', '.join(WORLDS)}")
    return WORLDS[name]


def make_world(name: str, /, **parameters: Any) -> TabularMDP:
    """Make a world from its name and parameters.

    Examples
    --------
    >>> make_world("corridor", length=3).n_states
    3
    >>> make_world("lack")
    Traceback (most recent call last):
    ValueError: no world is called 'lack' (did you mean 'lake'?); there are lake, random, frozen-lake, cliff-walking,
    taxi, corridor, field, bandit, loop
    """
    return find_world(name).make(**parameters)


def parse_world(text: str) -> tuple[str, dict[str, Any]]:
    """Read a world as the command line names it: ``NAME[,PARAMETER=VALUE,…]``.

    Values are written as in TOML, texts without quotes if they are plain; ``@FILE`` stands for the text of a file. A
    comma inside brackets or quotes belongs to its value.

    Examples
    --------
    >>> parse_world("lake,wind=0.2,stay=true,rewards=[-1.0, -20.0, 100.0]")
    ('lake', {'wind': 0.2, 'stay': True, 'rewards': (-1.0, -20.0, 100.0)})
    """
    name, *given = _split(text)
    parameters: dict[str, Any] = {}
    for part in given:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise ValueError(f"{part!r} in the world {text!r} is no parameter; write NAME,PARAMETER=VALUE,…")
        if key in parameters:
            raise ValueError(f"the world {text!r} says {key} twice")
        parameters[key] = _value(value)
    return name.strip(), parameters


def world_env(world: str, render_mode: str | None = None, **parameters: Any) -> TabularEnv:
    """Make the environment of a world known by name; what the worlds' ids of Gymnasium call.

    Examples
    --------
    >>> world_env("taxi").observation_space
    MultiDiscrete([5 5 5 4])
    """
    from lacuna.mdp.environment import TabularEnv  # noqa: PLC0415  brings the compiler, which a list of names does not need

    return TabularEnv(make_world(world, **parameters), render_mode)


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


def _split(text: str) -> list[str]:
    """Cut at the commas that stand outside brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if letter == "," and not depth and not quote:
            parts.append("")
            continue
        parts[-1] += letter
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth = max(depth + (letter in "[{") - (letter in "]}"), 0)
    return parts


def _value(text: str) -> Any:
    if text.startswith("@"):
        return Path(text[1:].strip("\"'")).read_text(encoding="utf-8-sig")
    # What follows in a comment or on another line would be dropped.
    if "\n" in text or ("#" in text and text[0] not in "\"'"):
        return text
    try:
        return as_tuples(tomllib.loads(f"value = {text}")["value"])
    except (ValueError, RecursionError):
        return text


def as_tuples(value: Any) -> Any:
    """Give a value of TOML or JSON with its lists as tuples, and 0.0 for -0.0, which is the same number."""
    if isinstance(value, list | tuple):
        return tuple(as_tuples(item) for item in value)
    return value + 0.0 if isinstance(value, float) else value
