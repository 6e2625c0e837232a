"""Decorators that compile a small function over arrays: `kernel`, which is inlined, and `rare`, which is called."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit

from lacuna.kernels.cache import KernelCache

F = TypeVar("F", bound=Callable[..., object])


@cache
def kernels_digest() -> str:
    """Digest of the source of all kernels and of the tuples they take: what fixes the bits they give.

    Kernels are kept in a folder of this name. Numba notices a change in the file of the outermost compiled function
    only; a kernel edited in another file would silently run in its old form.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source = path.read_bytes()
        if b"kernel" in source or b"NamedTuple" in source:
            digest.update(source)
    return digest.hexdigest()[:16]


def kernel(function: F, *, inline: bool = True) -> F:
    """Compile `function` on its first call, cached on disk, running without Python's global lock.

    With ``NUMBA_DISABLE_JIT=1`` the function runs as plain Python and must give the same bits. Kernels never allocate
    (the compiler refuses if one tries), so no time goes into counting references, and they are inlined, so a tuple of
    arrays costs nothing to pass on: together this makes a step ten times faster.
    """
    # "numpy" semantics: no kernel divides by zero, so the check for it would only cost time.
    compiled: Any = njit(nogil=True, error_model="numpy", forceinline=inline, _nrt=False)(function)
    if not config.DISABLE_JIT:
        compiled._cache = KernelCache(function, kernels_digest())
    return cast("F", compiled)


def rare(function: F) -> F:
    """Compile a kernel that is called, not inlined: code that runs rarely would only make the hot loop larger."""
    return kernel(function, inline=False)
