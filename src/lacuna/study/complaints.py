"""What pydantic finds wrong with a study file, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from lacuna.validation import nearest, shown

_TABLES = ("grid", "methods", "worlds")


def sentences(error: ValidationError, known: list[str]) -> list[str]:
    """Give every complaint as: where, what was found, what was expected; `known` are the keys of a study."""
    lines: dict[str, None] = {}
    for item in error.errors():
        parts = item["loc"]
        place = place_of(parts)
        if item["type"] == "extra_forbidden":
            line = f"{place} is not a key{nearest(str(parts[-1]), known)}; there are {', '.join(known)}"
        elif item["type"] == "missing":
            line = f"{place} is missing; it is needed"
        else:
            line = f"{place} is {shown(item['input'])}; it must be {_wanted(item['type'], item.get('ctx', {}), place)}"
        lines[line] = None
    return list(lines)


_WANTED = {
    "int_type": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "string_type": "a text in quotes", "bool_type": "true or false",
    "string_pattern_mismatch": "made of letters, digits, spaces inside, and any of . , + - _ ( )",
    "too_short": "a list of at least one value", "string_too_long": "shorter: at most 100 characters",
    "model_type": "a table of keys and values, e.g. {name = …}", "dict_type": "a table of keys and values",
}  # fmt: skip


def _wanted(kind: str, bound: Mapping[str, Any], place: str) -> str:
    """What pydantic expected, in our words."""
    if kind == "greater_than_equal":
        return f"{bound['ge']} or larger"
    if kind == "less_than_equal":
        return f"at most {bound['le']}"
    if kind == "list_type":
        return f"a list: [[{place}]], or {place} = [{{name = …}}, …]" if place in _TABLES else "a list"
    return _WANTED[kind]


def place_of(parts: tuple[int | str, ...]) -> str:
    """Give a place in a study as people write it, e.g. ``worlds[0].name``."""
    place = ""
    for part in parts:
        if isinstance(part, int):
            place += f"[{part}]"
        else:
            place += ("." if place else "") + (part if part.isidentifier() and len(part) < 60 else shown(part))
    return place or "the study"
