"""Decorators that compile a small function over arrays: `kernel`, `inner`, which Python cannot call, and `rare`.

`typed` gives a kernel that is called often a faster door.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from numba import config, njit, typeof
from numba.core.registry import CPUDispatcher

from lacuna.kernels.cache import KernelCache
from lacuna.kernels.meaning import remember_source

F = TypeVar("F", bound=Callable[..., object])

# "numpy" semantics: no kernel divides by zero, so the check for it would only cost time.
_FOR_ALL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


class Inner(CPUDispatcher):
    """A compiled function without an entry point for Python."""

    def __call__(self, *_: object) -> NoReturn:
        """Refuse: the processor would jump to nowhere."""
        raise TypeError(f"{self.py_func.__name__} is called by kernels only; make it a @kernel to call it from Python")


def kernel(function: F) -> F:
    """Compile `function` on its first call, cached on disk, running without Python's global lock.

    With ``NUMBA_DISABLE_JIT=1`` the function runs as plain Python and must give the same bits. Kernels never allocate
    (the compiler refuses if one tries), so no time goes into counting references, and they are inlined, so a tuple of
    arrays costs nothing to pass on: together this makes a step ten times faster.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def add_to(total: np.ndarray, value: float) -> None:
    ...     total[0] += value
    >>> total = np.zeros(1)
    >>> add_to(total, 2.5)
    >>> total.tolist()
    [2.5]
    """
    return _compiled(function, forceinline=True)


def inner(function: F) -> F:
    """Compile a kernel that only kernels call.

    An entry point for Python has to unpack tuples of arrays. For a small kernel that is most of the code, and takes
    twice as long to compile as the rest.
    """
    return _without_door(_compiled(function, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True))


def called(function: F) -> F:
    """Compile a kernel that both Python and kernels call. It is called, not inlined, so it is compiled once."""
    return _compiled(function, forceinline=False)


def typed(function: F, *arguments: object) -> F:
    """Return the compiled form of a kernel for arguments of these types; it does not check types again.

    A call of a kernel determines the type of each array in its tuples; for a small kernel that takes longer than the
    rest. This form skips it: an array of another type would be misread. So use it only if the caller makes all
    arguments itself, always in the same way.
    """
    if config.DISABLE_JIT:
        return function
    return cast("F", cast("Any", function).compile(tuple(map(typeof, arguments))))


def rare(function: F) -> F:
    """Compile an inner kernel that runs rarely: it is called, not inlined, to keep the hot loop small."""
    return _without_door(_compiled(function, forceinline=False, no_cpython_wrapper=True, no_cfunc_wrapper=True))


def _compiled(function: F, **options: Any) -> F:
    remember_source(function)
    options = _FOR_ALL | options
    compiled: Any = njit(**options)(function)
    if not config.DISABLE_JIT:
        compiled._cache = KernelCache(function, options)
    return cast("F", compiled)


def _without_door(compiled: F) -> F:
    if not config.DISABLE_JIT:
        cast("Any", compiled).__class__ = Inner
    return compiled
