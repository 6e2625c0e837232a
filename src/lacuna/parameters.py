"""Parameters as users write them, ``NAME,PARAMETER=VALUE,…``, and as functions declare them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import reduce
from inspect import Parameter, isclass, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ForwardRef, Union, get_args, get_origin, get_type_hints

from lacuna.toml import parse_toml
from lacuna.trust import check_trusted
from lacuna.validation import nearest, of_kind, shown

Frozen = tuple[tuple[str, Any], ...]
"""Parameters sorted by name, with tuples for lists."""

_MAX_WHOLE = 10**12
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_ANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_POINT_FIRST = re.compile(r"[-+]?\.\d+")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_BARE = re.compile(r"(?!(?:true|false|inf|nan)$)[A-Za-z_][\w.-]*")


def parse_call(text: str, what: str = "text") -> tuple[str, dict[str, Any]]:
    """Read ``NAME[,PARAMETER=VALUE,…]``.

    Values are written as in TOML, texts without quotes if they are plain; ``@FILE`` stands for the text of a file. A
    comma inside brackets or quotes belongs to its value.

    Examples
    --------
    >>> parse_call("mine.worlds:maze,size=5,walls=[1, 2],kind=open")
    ('mine.worlds:maze', {'size': 5, 'walls': (1, 2), 'kind': 'open'})
    """
    of_kind(f"the {what}", text, str, "a text, NAME[,PARAMETER=VALUE,…]")
    name, *given = _split(text)
    parameters: dict[str, Any] = {}
    for part in given:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise ValueError(f"{part!r} in the {what} {text!r} is no parameter; write NAME,PARAMETER=VALUE,…")
        if key in parameters:
            raise ValueError(f"the {what} {text!r} says {key} twice")
        parameters[key] = _value(value)
    return name.strip(), parameters


def write_call(name: str, parameters: Mapping[str, Any]) -> str:
    """Write a name and its parameters, sorted, in the form that `parse_call` reads.

    Examples
    --------
    >>> write_call("mine.worlds:maze", {"size": 5, "kind": "half open", "walls": (1, 2)})
    'mine.worlds:maze,kind="half open",size=5,walls=[1, 2]'
    """
    return ",".join([name, *(f"{key}={_written(key, value)}" for key, value in sorted(parameters.items()))])


def typed(
    what: str, build: Callable[..., Any], given: Mapping[str, Any], provided: Collection[str] = ()
) -> dict[str, Any]:
    """Return parameters as the types that a function or class declares, so that 1 and 1.0 are the same number.

    A parameter that it does not have, or of another type, is refused; so is one that is `provided` by lacuna. A
    parameter without a type is taken as it is.
    """
    known = parameters_of(build)
    free = any(one.kind == Parameter.VAR_KEYWORD for one in known.values())
    choices = [name for name, one in known.items() if one.kind not in _ANY and name not in provided]
    types = _types(build)
    found = {}
    for name, value in given.items():
        if name not in choices and (not free or name in provided):
            there = f"there are {', '.join(choices)}" if choices else "it has none"
            raise ValueError(f"{what} has no parameter {name!r}{nearest(name, choices)}; {there}")
        found[name] = _checked(f"{name} of {what} is {shown(value)}", as_tuples(value), types.get(name, Any))
    needed = [name for name in choices if known[name].default is Parameter.empty and name not in given]
    if needed:
        raise ValueError(f"{what} needs a value for {', '.join(needed)}, which has no default")
    return found


def unusual(build: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that differ from their default."""
    known = parameters_of(build)
    return {name: value for name, value in given.items() if name not in known or value != known[name].default}


def parameters_of(build: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the parameters of a function or class; any at all, if it does not say."""
    try:
        return signature(build).parameters
    except ValueError:
        return {"parameters": Parameter("parameters", Parameter.VAR_KEYWORD)}


def returned(build: Any) -> list[type | str]:
    """Return what the return type of a function names: classes, and the names of those that it does not know itself.

    A type that is written as text is not evaluated.

    Examples
    --------
    >>> def maze(size: int = 4) -> "TabularMDP | None": ...
    >>> returned(maze), returned(len)
    (['TabularMDP', 'None'], [])
    """
    said = getattr(build, "__annotations__", {}).get("return")
    return list(_named_in(said, getattr(build, "__globals__", {})))


def frozen(parameters: Mapping[str, Any]) -> Frozen:
    """Return parameters in a form that can be compared and hashed."""
    return tuple(sorted((key, as_tuples(value)) for key, value in parameters.items()))


def as_tuples(value: Any) -> Any:
    """Return a value of TOML or JSON with its lists as tuples, and 0.0 for -0.0, which is the same number."""
    if isinstance(value, list | tuple):
        return tuple(as_tuples(item) for item in value)
    return value + 0.0 if isinstance(value, float) else value


def _named_in(said: Any, known: Mapping[str, Any]) -> Iterator[type | str]:
    if isinstance(said, str):
        for word in _DOTTED.findall(said):
            first, *rest = word.split(".")
            found = reduce(lambda one, name: getattr(one, name, None), rest, known.get(first))
            yield from [(rest or [first])[-1]] if found is None or isinstance(found, str) else _named_in(found, known)
    elif isinstance(said, ForwardRef):
        yield from _named_in(said.__forward_arg__, known)
    elif isclass(said) and not get_args(said):
        yield said
    elif get_origin(said) is not None:
        for part in (get_origin(said), *get_args(said)):
            yield from _named_in(part, known)


def _types(build: Callable[..., Any]) -> dict[str, Any]:
    function: Any = build.__init__ if isclass(build) else build
    said = {name: kind for name, kind in getattr(function, "__annotations__", {}).items() if name != "return"}
    try:
        # The return type is often imported for type checkers only.
        return get_type_hints(type("Parameters", (), {"__annotations__": said}), getattr(function, "__globals__", {}))
    except NameError:
        return {}


def _checked(what: str, value: Any, wanted: Any) -> Any:
    from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError  # noqa: PLC0415  only needed here

    try:
        value = TypeAdapter(wanted).validate_python(value, strict=True)
    except ValidationError:
        raise ValueError(f"{what}; it must be {_in_words(wanted)}") from None
    except PydanticSchemaGenerationError:
        pass
    if isinstance(value, Mapping):
        raise ValueError(f"{what}; a parameter is a number, a text, true or false, or a list of these")
    if isinstance(value, int) and abs(value) > _MAX_WHOLE:
        raise ValueError(f"{what}; it must be at most {_MAX_WHOLE}")
    return value


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
    parts, depth, quote, escaped = [""], 0, "", False
    for letter in text:
        if letter == "," and not depth and not quote:
            parts.append("")
            continue
        parts[-1] += letter
        if quote:
            quote = "" if letter == quote and not escaped else quote
            escaped = letter == "\\" and quote == '"' and not escaped
        elif letter in "\"'":
            quote = letter
        else:
            depth = max(depth + (letter in "[{") - (letter in "]}"), 0)
    return parts


def _value(text: str) -> Any:
    if text.startswith("@"):
        check_trusted(text, "a file to read")
        return Path(text[1:].strip("\"'")).read_text(encoding="utf-8-sig")
    # What follows in a comment or on another line would be dropped.
    if "\n" in text or ("#" in text and text[0] not in "\"'"):
        return text
    if _POINT_FIRST.fullmatch(text):
        return float(text)
    try:
        return as_tuples(parse_toml(f"value = {text}")["value"])
    except ValueError:
        return text


def _written(key: str, value: Any, *, bare: bool = True) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(_written(key, item, bare=False) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML has no DEL in a text, and what looks like a comment would not be read.
        quoted = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f").replace("#", "\\u0023")
        return value if bare and _BARE.fullmatch(value) else quoted
    if isinstance(value, int | float):
        return repr(value)
    raise ValueError(f"{key} is {shown(value)}; a parameter is a number, a text, true or false, or a list of these")
