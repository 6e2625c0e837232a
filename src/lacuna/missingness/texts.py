"""Mechanisms by name: a decorator declares one, and texts such as ``mcar:0.4``, lists and messages follow from that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from lacuna.missingness.mechanism import Mechanism
from lacuna.missingness.rates import Where
from lacuna.parameters import parameters_of, parse_call, typed, unusual, write_call
from lacuna.quantities import counted
from lacuna.references import MECHANISM_GROUP, check_makes, entry_point_names, load, resolve, told
from lacuna.validation import nearest, parameter_types, shown

Reader = Callable[[list[str], Where, int | None], tuple[Any, ...]]
"""Reads the values of a text, for a space or world and a number of actions, into the constructor's arguments."""


@dataclass(frozen=True)
class MechanismKind:
    """A declared kind of mechanism: its name, how it is written, a line about it, and the constructor."""

    name: str
    written: str
    about: str
    build: Callable[..., Mechanism]
    read: Reader | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments that the name stands for."""

    def arguments(self, values: list[str], where: Where, n_actions: int | None) -> tuple[Any, ...]:
        """Return the constructor's arguments from the values of a text."""
        if self.read is not None:
            return self.read(values, where, n_actions)
        _, *taken = _positional(self.build)
        types = parameter_types(f"the mechanism {self.name!r}", self.build)
        lists = [_is_sequence(types[one.name]) for one in taken]
        least = sum(one.default is Parameter.empty for one in taken)
        if len(values) < least or (len(values) > len(taken) and lists != [True]):
            raise ValueError(f"it has {counted(len(values), 'value')}")
        if lists == [True]:
            return (tuple(as_number(value) for value in values),)
        readers: list[Callable[[str], Any]] = [as_numbers if a_list else as_number for a_list in lists]
        return tuple(read(value) for read, value in zip(readers, values, strict=False))


MECHANISMS: dict[str, MechanismKind] = {}
"""Every declared kind of mechanism by its name."""

Builder = TypeVar("Builder", bound=Callable[..., Mechanism])


def mechanism(
    name: str, written: str, about: str, *, read: Reader | None = None, **options: Any
) -> Callable[[Builder], Builder]:
    """Declare a mechanism: the constructor it decorates makes one from a space or world, and from numbers.

    How many numbers its text takes follows from the constructor: one for each positional parameter after the first,
    fewer if some have defaults, or any number if the only parameter is a sequence. A sequence beside others is written
    with slashes: ``0.1/0.2/0.3``.

    Parameters
    ----------
    name
        What its texts begin with.
    written
        How it is written, for people.
    about
        What it hides, in a line.
    read
        For texts that are no list of numbers: makes the constructor's arguments (after the first) from the values of
        the text, what the mechanism is for, and the number of actions; what is wrong it says in a `ValueError`.
    options
        Keyword arguments for the constructor that this name stands for.

    Examples
    --------
    >>> from lacuna.missingness import mcar
    >>> @mechanism("half", "half:THETA", "half the rate for all components")
    ... def half(where: Where, theta: float) -> Mechanism:
    ...     return mcar(where, theta / 2)
    >>> parse("half:0.8", 3).name
    'mcar:0.4'
    >>> del MECHANISMS["half"]
    """

    def declare(build: Builder) -> Builder:
        what, known = f"the mechanism {name!r}", MECHANISMS.get(name)
        types = list(parameter_types(what, build).values())
        if not types or set(name) & set(":, "):
            raise ValueError(f"{what} cannot be declared: it needs a name without : or comma, and a first parameter")
        if known is not None and known.build.__module__ != build.__module__:
            raise ValueError(f"{what} is declared by {known.build.__module__} already")
        MECHANISMS[name] = MechanismKind(name, written, about, build, read, options)
        return build

    return declare


def parse(text: str, where: Where, n_actions: int | None = None) -> Mechanism:
    """Mechanism from its short text.

    Parameters
    ----------
    text
        As the entries of `MECHANISMS` say; or, if the part before the first colon is none of their names, a reference
        with parameters, e.g. ``mine.mechanisms:by_mood,rate=0.3``, or an entry point of an installed package in the
        group ``lacuna.mechanisms``: a `Mechanism`, or a function whose return type says that it makes one.
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
    ValueError: no mechanism is called 'mcra' (did you mean 'mcar'?); there are none, mcar, whole, mcolor, mcolor-xy,
    mfog, bursts, bursts-each, after, late, by, patterns, self-report
    """
    if not isinstance(text, str):
        raise TypeError(f"a mechanism is written as text, e.g. 'mcar:0.4', not {shown(text)}")
    name, colon, rest = text.strip().partition(":")
    if name not in MECHANISMS:
        return _of_your_own(text.strip(), where)
    kind = MECHANISMS[name]
    values = [value.strip() for value in rest.split(",")] if colon else []
    try:
        arguments = kind.arguments(values, where, n_actions)
    except ValueError as error:
        raise ValueError(f"{shown(text)} is not a mechanism: {error}. Write {kind.written}: {kind.about}") from None
    made = kind.build(where, *arguments, **kind.options)
    if not isinstance(made, Mechanism):
        raise TypeError(f"{shown(text)} made {shown(made)}; the constructor of {name} must give a Mechanism")
    return made


def source_of(text: str) -> str | None:
    """Return the reference that the text of a mechanism names; None if the mechanism comes with lacuna."""
    if text.strip().partition(":")[0] in MECHANISMS:
        return None
    return resolve(MECHANISM_GROUP, parse_call(text, "mechanism")[0])


def _of_your_own(text: str, where: Where) -> Mechanism:
    """Make a mechanism that a reference or an entry point names; the text, sorted and resolved, is its name."""
    said, given = parse_call(text, "mechanism")
    reference = resolve(MECHANISM_GROUP, said)
    if reference is None:
        name, choices = said.partition(":")[0], [*MECHANISMS, *entry_point_names(MECHANISM_GROUP)]
        raise ValueError(
            f"no mechanism is called {shown(name)}{nearest(name, choices)}; there are {', '.join(choices)}"
        )
    found = load(reference)
    if isinstance(found, Mechanism):
        typed(f"the mechanism {reference!r}", lambda: found, given)
        return replace(found, name=reference)
    if not callable(found) or not parameters_of(found):
        raise TypeError(
            f"{reference!r} is {shown(found)}; it must be a Mechanism, or a function that makes one from a space or "
            f"world"
        )
    check_makes(
        reference, found, "a mechanism", lambda kind: issubclass(kind, Mechanism), ("Mechanism",),
        "name a function from a space or world to a Mechanism",
    )  # fmt: skip
    first = next(iter(parameters_of(found)))
    parameters = typed(f"the mechanism {reference!r}", found, given, (first,))
    name = write_call(reference, unusual(found, parameters))
    try:
        made = found(where, **parameters)
    except Exception as error:
        raise ValueError(f"the mechanism {name!r} could not be made: {told(error)}") from error
    if not isinstance(made, Mechanism):
        raise TypeError(f"the mechanism {name!r} made {shown(made)}; it must make a Mechanism")
    return replace(made, name=name)


def _positional(build: Callable[..., Any]) -> list[Parameter]:
    return [one for one in signature(build).parameters.values() if one.kind != Parameter.KEYWORD_ONLY]


def as_number(value: str) -> float:
    """Read one value of a text."""
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{shown(value)} is not a number") from None


def as_numbers(value: str) -> tuple[float, ...]:
    """Read one number, or several with slashes between them."""
    return tuple(as_number(one) for one in value.split("/"))


def _is_sequence(wanted: Any) -> bool:
    choices = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)
    origins = [get_origin(choice) for choice in choices]
    return any(isinstance(origin, type) and issubclass(origin, Sequence) for origin in origins)
