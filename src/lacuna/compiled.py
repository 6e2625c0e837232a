"""How a small function over arrays becomes machine code: a decorator for every kernel, another for the rare one."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable
from functools import cache
from os import environ
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit

F = TypeVar("F", bound=Callable[..., object])


@cache
def kernels_digest() -> str:
    """Digest of the source of all kernels and of the tuples they take: what fixes the bits they give."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        if b"kernel" in source or b"NamedTuple" in source:
            digest.update(source)
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> str:
    """Folder for compiled kernels, named after the source of all of them.

    Numba notices a change in the file of the outermost compiled function only; a kernel edited in another
    file would silently run in its old form. A folder per state of the source makes that impossible.
    """
    return str(Path(__file__).parent / "__pycache__" / f"kernels-{kernels_digest()}")


def kernel(function: F, *, inline: bool = True) -> F:
    """Compile `function` on its first call, cached on disk, running without Python's global lock.

    With ``NUMBA_DISABLE_JIT=1`` the function runs as plain Python and must give the same bits. Kernels never allocate
    (the compiler refuses if one tries), so no time goes into counting references, and they are inlined, so a tuple of
    arrays costs nothing to pass on: together this makes a step ten times faster.
    """
    before = config.CACHE_DIR
    if "NUMBA_CACHE_DIR" not in environ:
        config.CACHE_DIR = cache_folder()
    try:
        # "numpy" semantics: no kernel divides by zero, so the check for it would only cost time.
        compiled = njit(nogil=True, cache=True, error_model="numpy", forceinline=inline, _nrt=False)(function)
    finally:
        config.CACHE_DIR = before
    if not config.DISABLE_JIT:
        _save_one_at_a_time(compiled)
    return compiled


def rare(function: F) -> F:
    """Compile a kernel that is called, not inlined: what seldom happens would only crowd the code of every step."""
    return kernel(function, inline=False)


def _save_one_at_a_time(compiled: Any) -> None:
    """Let only one process at a time add to the cache of a kernel.

    Numba reads the index, adds an entry and writes it back: two processes that start cold together could give two
    compiled versions the same file, and one would later run the other's code.
    """
    file = compiled._cache._cache_file
    save = file.save

    def save_alone(key: object, data: object) -> None:
        folder = Path(compiled._cache.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            save(key, data)

    file.save = save_alone
