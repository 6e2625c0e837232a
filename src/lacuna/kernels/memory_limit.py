"""The memory limit: tables that would exceed it are refused, with their size, before any memory is taken."""

from __future__ import annotations

import re
from os import environ

VARIABLE = "LACUNA_MAX_MEMORY"
DEFAULT_LIMIT = 2 * 10**9
"""The same on every machine, so that what runs on one is not refused on another."""

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?) *([kmgt]?)(i?)b?", re.IGNORECASE | re.ASCII)


def memory_limit(given: float | str | None = None) -> int:
    """How many bytes may be taken: as `given`, else as the variable ``LACUNA_MAX_MEMORY`` says, else 2 GB.

    Examples
    --------
    >>> memory_limit("8GB"), memory_limit("1.5 GiB"), memory_limit(1000)
    (8000000000, 1610612736, 1000)
    >>> memory_limit("lots")
    Traceback (most recent call last):
    ValueError: max_memory is 'lots'; it must be a number of bytes, 1 or more, or a text such as 8GB, 500MB or 2GiB
    """
    where, value = ("max_memory", given) if given is not None else (VARIABLE, environ.get(VARIABLE, DEFAULT_LIMIT))
    size = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(value, str) and (found := _SIZE.fullmatch(value.strip())):
        number, unit, binary = found.groups()
        size = int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()])
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(
            f"{where} is {value!r}; it must be a number of bytes, 1 or more, or a text such as 8GB, 500MB or 2GiB"
        )
    return size


def ask_for(n_bytes: int, what: str, given: float | str | None = None) -> None:
    """Refuse `what`, a plural, if it takes more than the limit.

    Examples
    --------
    >>> ask_for(5 * 10**10, "tables", 2 * 10**9)
    Traceback (most recent call last):
    ValueError: tables do not fit into memory: they take up to 50 GB, and the limit is 2 GB; raise it with max_memory
    or the variable LACUNA_MAX_MEMORY
    """
    limit = memory_limit(given)
    if n_bytes > limit:
        raise ValueError(
            f"{what} do not fit into memory: they take up to {in_words(n_bytes)}, and the limit is {in_words(limit)}; "
            f"raise it with max_memory or the variable {VARIABLE}"
        )


def in_words(n_bytes: int) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> in_words(999), in_words(2_500_000), in_words(10**400)
    ('999 B', '2.5 MB', 'more than 1000 TB')
    """
    if n_bytes >= 10**15:
        return "more than 1000 TB"
    power = max(p for p in range(5) if n_bytes >= 1000**p or p == 0)
    return f"{n_bytes / 1000**power:.3g} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"
