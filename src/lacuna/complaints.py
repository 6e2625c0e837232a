"""Pydantic errors in our own words: the place, what was found, and what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from lacuna.validation import nearest, shown

Place = tuple[int | str, ...]
"""Keys and numbers that lead to a value."""

_WANTED = {
    "int_type": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "string_type": "a text in quotes", "bool_type": "true or false", "list_type": "a list",
    "string_pattern_mismatch": "made of letters, digits, spaces inside, and any of . , + - _ ( )",
    "too_short": "a list of at least one value",
    "model_type": "a table of keys and values", "dict_type": "a table of keys and values",
}  # fmt: skip


def path_of(parts: Iterable[int | str]) -> str:
    """Return a place as people write it.

    Examples
    --------
    >>> path_of(("worlds", 0, "name")), path_of(("at home", "values"))
    ('worlds[0].name', "'at home'.values")
    """
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += ("." if path else "") + (part if part.isidentifier() and len(part) < 60 else shown(part))
    return path


def sentences(
    error: ValidationError, place_of: Callable[[Place], str], keys_at: Callable[[Place], list[str]],
    own: Callable[[str, Place], str | None] = lambda _kind, _place: None,
) -> list[str]:  # fmt: skip
    """Return every complaint of pydantic as a sentence.

    Parameters
    ----------
    error
        What pydantic raised.
    place_of
        Writes a place.
    keys_at
        Gives the keys of the table at a place.
    own
        What is expected for a kind of complaint at a place, where that differs from the usual words.
    """
    lines: dict[str, None] = {}
    for item in error.errors():
        parts, kind = item["loc"], item["type"]
        place = place_of(parts)
        if kind == "extra_forbidden":
            known = keys_at(parts[:-1])
            line = f"{place} is not a key{nearest(str(parts[-1]), known)}; there are {', '.join(known)}"
        elif kind == "missing":
            line = f"{place} is missing; it is needed"
        else:
            words = own(kind, parts)
            wanted = f"; it must be {words}" if words else _wanted(kind, item.get("ctx", {}), item["input"])
            line = f"{place} is {shown(item['input'])}{wanted}"
        lines[line] = None
    return list(lines)


def _number(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:.12g}"


def _wanted(kind: str, bound: Mapping[str, Any], found: Any) -> str:
    """What pydantic expected, in our words."""
    if kind == "literal_error":
        # Pydantic lists the choices in quotes, the last one after "or".
        choices = [choice.strip("' ") for choice in bound["expected"].replace(" or ", ",").split(",")]
        return f"{nearest(found, choices)}; it must be one of {', '.join(choices)}"
    if kind == "wanted":
        wanted = bound["wanted"]
    elif kind == "greater_than_equal":
        wanted = f"{_number(bound['ge'])} or larger"
    elif kind == "greater_than":
        wanted = f"above {_number(bound['gt'])}"
    elif kind == "less_than_equal":
        wanted = f"at most {_number(bound['le'])}"
    elif kind == "string_too_long":
        wanted = f"shorter: at most {bound['max_length']} characters"
    else:
        wanted = _WANTED[kind]
    return f"; it must be {wanted}"
