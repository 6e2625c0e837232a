"""One thread at a time: a call is refused while another thread is inside.

Kernels release Python's global interpreter lock (GIL) and assume that no other thread uses their block of random
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Entry:
    """Admits the calls of one thread at a time, nested ones too; a copy starts free."""

    __slots__ = ("leave", "try_enter")

    def __init__(self) -> None:
        lock = RLock()
        self.try_enter, self.leave = lock.acquire, lock.release

    def __reduce__(self) -> tuple[type[Entry], tuple[()]]:
        return Entry, ()


class HasEntry(Protocol):
    """What only one thread at a time may use."""

    @property
    def entry(self) -> Entry:
        """The entry that all its guarded calls share."""
        ...


Owner = TypeVar("Owner", bound=HasEntry)


def exclusive(method: Callable[Concatenate[Owner, P], T]) -> Callable[Concatenate[Owner, P], T]:
    """Guard a method: while a thread is inside, the guarded methods of that object refuse all others."""

    @wraps(method)
    def guarded(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        entry = self.entry
        if not entry.try_enter(blocking=False):
            what = type(self).__name__.lower()
            raise RuntimeError(
                f"{method.__name__}() was called while another thread uses this {what}; one thread at a time may"
            )
        try:
            return method(self, *args, **kwargs)
        finally:
            entry.leave()

    return guarded
