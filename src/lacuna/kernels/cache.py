"""Where compiled kernels are stored, and the message while they are compiled.

In this order: the folder that ``LACUNA_CACHE_DIR`` (or else ``NUMBA_CACHE_DIR``) names, the user's cache
(``$XDG_CACHE_HOME/lacuna``, by default ``~/.cache/lacuna``), a private temporary folder (``lacuna-`` and the user's
number). Kernels are saved in the first of them that can be written to, and also read from those before it, so that a
filled folder serves where it is read-only. If none can be written to, kernels are compiled at every start.

Compiled code runs as it is loaded. So a folder that nobody named is used only if it belongs to the user or to root, and
nobody else can write to it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache

# Folders of other states of the source that nothing was added to for so long are removed.
_STALE_DAYS = 30


class KernelCache(NullCache):
    """What Numba asks for the compiled forms of `function`, in folders named after `digest`."""

    def __init__(self, function: Callable[..., object], digest: str) -> None:
        self.function = function
        self.digest = digest
        # Read with the function, not with its first call: the file may be edited in between.
        self.source = _digest_of_file(function.__code__.co_filename)

    @cached_property
    def _folders(self) -> list[_Folder]:
        return [_Folder(self, folder / f"kernels-{self.digest}") for folder in cache_folders()]

    @property
    def cache_path(self) -> str | None:
        """The folder that is written to, if there is one."""
        return self._folders[-1].cache_path if self._folders else None

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled form of the function for `signature`; if None is kept, Numba goes on to compile it."""
        for folder in self._folders:
            with suppress(OSError):
                compiled = folder.load_overload(signature, context)
                if compiled is not None:
                    return compiled
        _tell_that_kernels_are_compiled()
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Store a compiled form if there is space on the disk; failing to do so is harmless."""
        if self._folders:
            with suppress(OSError):
                self._folders[-1].save_overload(signature, compiled)


class _Folder(FunctionCache):
    """The compiled forms of one function in one folder."""

    def __init__(self, of: KernelCache, path: Path) -> None:
        self._impl_class = lambda function: _Files(function, _Place(path, of.source))
        super().__init__(of.function)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save, one process at a time.

        Numba reads the index, adds an entry and writes it back: two processes that start cold together could give two
        compiled versions the same file, and one would later run the other's code.
        """
        with _locked(Path(self.cache_path)):
            super().save_overload(signature, compiled)


class _Files(CompileResultCacheImpl):
    """Numba's file format, in a place given beforehand."""

    def __init__(self, function: Callable[..., object], place: _Place) -> None:
        self._locator_classes = [place]
        super().__init__(function)


class _Place:
    """What Numba calls a locator, for one folder that need not exist and may be read-only."""

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.source = source

    def from_function(self, function: Callable[..., object], file: str) -> _Place:
        self._py_file = file
        self._line = function.__code__.co_firstlineno
        return self

    def get_cache_path(self) -> str:
        return str(self.path)

    def get_source_stamp(self) -> str:
        return self.source

    def get_disambiguator(self) -> str:
        return f"{self._line}-{self.source[:12]}"

    def ensure_cache_path(self) -> None:
        """Nothing to do: the folder is made under the lock."""


@cache
def cache_folders() -> tuple[Path, ...]:
    """Folders to read compiled kernels from, in order; only the last may be one that can be written to."""
    folders = []
    for folder in _candidates():
        if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK):
            folders.append(folder)
            if os.access(folder, os.W_OK):
                break
    return tuple(folders)


def _candidates() -> Iterator[Path]:
    """The folders of the docstring above, made where they are missing."""
    named = os.environ.get("LACUNA_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    if named:
        folder = Path(named).absolute()
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        yield folder
    # expanduser leaves the tilde where a user has no home, as in many containers
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if home.is_absolute() and _is_private(home / "lacuna"):
        yield home / "lacuna"
    with suppress(OSError):  # there may be no temporary folder either
        folder = Path(tempfile.gettempdir()) / f"lacuna-{os.geteuid()}"
        if _is_private(folder):
            yield folder


def _is_private(folder: Path) -> bool:
    """Whether only this user and root can put files there; the folder is made if it is missing."""
    with suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    try:
        found = folder.lstat()  # of a link itself: in a temporary folder, anybody may have put it there
    except OSError:
        return False
    others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid in {os.geteuid(), 0} and not others_write


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if not folder.exists():
        _remove_stale(folder.parent)
        folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove_stale(folder: Path) -> None:
    """Remove the kernels of other states of the source that nobody added to lately."""
    for old in folder.glob("kernels-" + 16 * "[0-9a-f]"):
        with suppress(OSError):
            if old.stat().st_mtime < time.time() - _STALE_DAYS * 24 * 3600:
                shutil.rmtree(old)


@cache
def _digest_of_file(path: str) -> str:
    """Digest of a source file; of what was typed at a prompt, its made-up name."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return hashlib.sha256(path.encode()).hexdigest()


@cache
def _tell_that_kernels_are_compiled() -> None:
    """Say once, in a terminal or notebook, that kernels are being compiled."""
    out = sys.stderr
    with suppress(AttributeError, OSError, ValueError):  # there is no stderr, or it was closed
        if out.isatty() or type(out).__module__.startswith("ipykernel."):
            print(f"compiling the kernels: half a minute, {_how_often()}", file=out, flush=True)


def _how_often() -> str:
    folders = cache_folders()
    if folders and os.access(folders[-1], os.W_OK):
        return "once"
    return "at every start, unless LACUNA_CACHE_DIR names a folder to keep them in"
