"""Checks of values from outside; the error messages name the value, the range and the place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from inspect import Parameter, isclass, signature
from math import nan
from numbers import Real
from typing import Any, get_type_hints

import numpy as np

_LONGEST = 200

MAX_NAME = 100_000
"""Most characters of what names a world, a mechanism or a method with all its parameters."""

EXTRA_OF = {"polars": "study", "scipy": "study", "altair": "report", "markupsafe": "report", "vl_convert": "report"}
"""What is installed only with an extra, and with which one: an agent that is deployed needs none of it."""


class MissingExtraError(ImportError, ValueError):
    """Something that comes with an extra is not installed."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the sentence that says what to install; None if what is missing is not part of an extra.

    Examples
    --------
    >>> str(missing_extra(ModuleNotFoundError(name="polars.series")))
    "this needs polars, which comes with an extra: pip install 'lacuna[study]'"
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRA_OF:
        return None
    return MissingExtraError(
        f"this needs {module}, which comes with an extra: pip install 'lacuna[{EXTRA_OF[module]}]'"
    )


@contextmanager
def extras_named() -> Iterator[None]:
    """Turn a failed import of what comes with an extra into the sentence that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        sentence = missing_extra(error)
        if sentence is None:
            raise
        raise sentence from error


def shown(value: object) -> str:
    """Write a value as one line of a message, cut if it is long.

    Examples
    --------
    >>> shown("a text"), shown(10**5000)
    ("'a text'", 'a number of thousands of digits')
    """
    try:
        line = " ".join(repr(value).split())
    except ValueError:  # Python does not write whole numbers of thousands of digits
        return "a number of thousands of digits"
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def is_plain(text: str) -> bool:
    r"""Whether a text can be a name: not too long, and without signs that steer a terminal or cannot be seen.

    Examples
    --------
    >>> is_plain("mcar:0.4"), is_plain("a\x1b[31m"), is_plain("x" * (MAX_NAME + 1))
    (True, False, False)
    """
    return len(text) <= MAX_NAME and text.isprintable()


def printable(text: object) -> str:
    r"""Write a text, such as the name of a file, so that it steers no terminal and every encoding can write it.

    Examples
    --------
    >>> printable("results of é"), printable("a\x1b[31m"), printable(b"caf\xe9".decode(errors="surrogateescape"))
    ('results of é', 'a\\x1b[31m', 'caf\\udce9')
    """
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in str(text))


def nearest(word: object, choices: Iterable[object]) -> str:
    """Return " (did you mean …?)" if one of the choices is spelled alike, else nothing.

    Examples
    --------
    >>> nearest("lack", ["lake", "taxi"]), nearest("moon", ["lake", "taxi"])
    (" (did you mean 'lake'?)", '')
    """
    close = get_close_matches(str(word), [str(choice) for choice in choices], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def whole_number(what: str, value: Any, low: int, high: int | None = None) -> int:
    """Return a whole number that lies in its range, or raise an error.

    Examples
    --------
    >>> whole_number("trials", 3.5, 1, 10)
    Traceback (most recent call last):
    ValueError: trials is 3.5; it must be a whole number between 1 and 10
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        allowed = f", {low} or larger" if high is None else f" between {low} and {high}"
        raise ValueError(f"{what} is {shown(value)}; it must be a whole number{allowed}")
    return int(value)


def number(what: str, value: Any, low: float, high: float) -> float:
    """Return a number that lies in its range, or raise an error."""
    # Compared as what it is: a whole number of Python may be too large for a float.
    given: Any = nan if isinstance(value, bool) or not isinstance(value, Real) else value
    if not low <= given <= high:
        raise ValueError(f"{what} is {shown(value)}; it must be a number between {low:g} and {high:g}")
    return float(given)


def one_of(what: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the choices."""
    names = list(choices)
    if value not in names:
        raise ValueError(f"{what} is {shown(value)}{nearest(value, names)}; it must be one of {', '.join(names)}")


def of_kind(what: str, value: object, kind: Any, wanted: str) -> None:
    """Refuse a value of another kind.

    Examples
    --------
    >>> of_kind("world", "lake", dict, "a dict")
    Traceback (most recent call last):
    TypeError: world is 'lake'; it must be a dict
    """
    if not isinstance(value, kind):
        raise TypeError(f"{what} is {shown(value)}; it must be {wanted}")


def parameter_types(what: str, build: Callable[..., Any]) -> dict[str, Any]:
    """Return the type of every parameter of a function or class, or raise an error if one cannot be declared.

    Examples
    --------
    >>> parameter_types("the world 'maze'", lambda size: None)
    Traceback (most recent call last):
    TypeError: the world 'maze' cannot be declared: its parameter size has no type
    """
    function: Any = build.__init__ if isclass(build) else build
    for name, parameter in signature(build).parameters.items():
        if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            raise TypeError(f"{what} cannot be declared: *{name} stands for any number of parameters; name each")
        if name not in function.__annotations__:
            raise TypeError(f"{what} cannot be declared: its parameter {name} has no type")
    # The return type is often imported for type checkers only.
    taken = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
    return get_type_hints(type("Parameters", (), {"__annotations__": taken}), function.__globals__)


class _TwiceError(ValueError):
    """JSON with the same key twice, of which most decoders keep the last."""


def _no_key_twice(what: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise _TwiceError(f"{what} has the key {shown(key)} twice")
            found[key] = value
        return found

    return made


def read_json(what: str, text: bytes | str) -> Any:
    """Read JSON from outside, or raise an error; a key that is there twice is one.

    Examples
    --------
    >>> read_json("the request", '{"t": 1, "t": 2}')
    Traceback (most recent call last):
    ValueError: the request has the key 't' twice
    """
    try:
        return json.loads(text, object_pairs_hook=_no_key_twice(what))
    except RecursionError:
        raise ValueError(f"{what} is nested too deep") from None
    except _TwiceError as error:
        raise ValueError(str(error)) from None
    except ValueError as error:
        raise ValueError(f"{what} is not JSON: {error}") from None
