"""Whose word a text is: a study file is the user's; results and pages must not choose what is imported or read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lacuna.validation import shown

_looking: ContextVar[bool] = ContextVar("looking", default=False)


class ForeignError(ValueError):
    """A text names code or a file, and is nobody's word."""


@contextmanager
def only_looking() -> Iterator[None]:
    """Refuse until the end of a block to import or read what a text names: only names of lacuna's own are known.

    Examples
    --------
    >>> from lacuna import make_world
    >>> with only_looking():
    ...     make_world("down/maze.py:maze")
    Traceback (most recent call last):
    lacuna.trust.ForeignError: 'down/maze.py:maze' names code to import; it is refused while results are only looked at
    """
    before = _looking.set(True)
    try:
        yield
    finally:
        _looking.reset(before)


def check_trusted(text: str, names: str) -> None:
    """Refuse a text that names something outside lacuna while results are only looked at."""
    if _looking.get():
        raise ForeignError(f"{shown(text)} names {names}; it is refused while results are only looked at")
