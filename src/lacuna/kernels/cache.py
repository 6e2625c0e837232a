"""Where compiled kernels are stored, and the message while they are compiled.

In this order: the folder that ``LACUNA_CACHE_DIR`` (or else ``NUMBA_CACHE_DIR``) names, the user's cache
(``$XDG_CACHE_HOME/lacuna``, by default ``~/.cache/lacuna``), a private temporary folder (``lacuna-`` and the user's
number). Kernels are saved in the first of them that can be written to, and also read from those before it, so that a
filled folder serves where it is read-only. If none can be written to, kernels are compiled at every start.

A file holds one compiled form of one kernel. Its name is a digest of what the kernel means (`kernels.meaning`), of the
types of its arguments, the compiler and the processor. So an edit recompiles the kernels whose meaning it changes, and
no others; and two processes that write a file at once write the same.

Compiled code runs as it is loaded. So a folder that nobody named is used only if it belongs to the user or to root, and
nobody else can write to it; and a file is read only if the same holds for it.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import os
import pickle
import platform
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import get_ident
from typing import Any

import llvmlite
import numba
from numba import types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.serialize import NumbaPickler

from lacuna.kernels.meaning import meaning, spelled_fields

# Files that nobody read for so long are removed.
_STALE_DAYS = 30
_DAY = 24 * 3600

_SEAL = 32
"""Bytes at the beginning of a file: the SHA-256 of its name and of what follows."""

_OPTIONS = ("BOUNDSCHECK", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")
"""Options of Numba that change the code it makes."""

# What a file that is whole can still raise, if something that Numba refers to is no longer there.
_UNREADABLE = (ArithmeticError, AttributeError, ImportError, LookupError, RuntimeError, TypeError, ValueError, OSError,
               pickle.UnpicklingError)  # fmt: skip


class KernelCache(NullCache):
    """What Numba asks for the compiled forms of `function`; `options` are those that it is compiled with."""

    def __init__(self, function: Callable[..., object], options: dict[str, Any]) -> None:
        self.function = function
        self.options = options

    @property
    def cache_path(self) -> str | None:
        """The folder that is written to, if there is one."""
        folders = cache_folders()
        return str(folders[-1] / "kernels") if folders else None

    def load_overload(self, signature: tuple[types.Type, ...], context: Any) -> Any:
        """The compiled form of the function for `signature`; if none is kept, Numba goes on to compile it."""
        context.refresh()
        name = self._name(signature, context)
        for folder in cache_folders():
            path = folder / "kernels" / name
            content = _read(path)
            if content is None:
                continue
            try:
                parts = _Unpickler(content, _tuples(signature) | meaning(self.function).tuples).load()
                return CompileResult._rebuild(context, *parts)
            except _UNREADABLE as error:
                _set_aside(path, f"cannot be read ({type(error).__name__})")
        _tell_that_kernels_are_compiled()
        return None

    def save_overload(self, signature: tuple[types.Type, ...], compiled: Any) -> None:
        """Store a compiled form if there is space on the disk; failing to do so is harmless."""
        for folder in cache_folders()[-1:]:
            if not compiled.library.has_dynamic_globals:
                with suppress(OSError):
                    _write(folder / "kernels" / self._name(signature, compiled.target_context), _pickled(compiled))

    def _name(self, arguments: tuple[types.Type, ...], context: Any) -> str:
        on = (numba.__version__, llvmlite.__version__, platform.python_version(), context.codegen().magic_tuple())
        how = [self.options, *(getattr(numba.config, option) for option in _OPTIONS)]
        code = [meaning(self.function).digest, *map(_spelled, arguments)]
        whole = "\n".join(map(str, (*on, *how, *code)))
        return f"{self.function.__name__}-{hashlib.sha256(whole.encode()).hexdigest()[:32]}"


def _spelled(kind: types.Type) -> str:
    """A type as text, with the fields of NamedTuples, which Numba leaves out."""
    if isinstance(kind, types.BaseNamedTuple):
        return f"{spelled_fields(kind.instance_class)}[{', '.join(map(_spelled, kind))}]"
    return f"({', '.join(map(_spelled, kind))})" if isinstance(kind, types.BaseTuple) else str(kind)


def _tuples(kinds: Iterable[types.Type]) -> dict[str, type[Any]]:
    """The NamedTuples among some types, and within them."""
    found: dict[str, type[Any]] = {}
    for kind in kinds:
        if isinstance(kind, types.BaseNamedTuple):
            found[spelled_fields(kind.instance_class)] = kind.instance_class
        if isinstance(kind, types.BaseTuple):
            found |= _tuples(kind)
    return found


class _Pickler(NumbaPickler):
    """Numba's pickler, except that NamedTuples and environments are named without the module they come from."""

    def persistent_id(self, found: Any) -> tuple[Any, ...] | None:
        if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
            return ("tuple", spelled_fields(found))
        return ("environment", found.env_name, list(found.consts)) if isinstance(found, Environment) else None


class _Unpickler(pickle.Unpickler):
    """The reverse, given the NamedTuples that a kernel takes and reads."""

    def __init__(self, content: bytes, tuples: dict[str, type[Any]]) -> None:
        super().__init__(io.BytesIO(content))
        self.tuples = tuples

    def persistent_load(self, held: tuple[Any, ...]) -> Any:
        if held[0] == "tuple":
            return self.tuples[held[1]]
        _, name, constants = held
        environment = lookup_environment(name)
        if environment is None:
            environment = Environment(vars(builtins))
            environment.consts[:] = constants
            environment.env_name = name
            Environment._memo[name] = environment
        return environment


def _pickled(compiled: CompileResult) -> bytes:
    content = io.BytesIO()
    _Pickler(content, protocol=5).dump(compiled._reduce())
    return content.getvalue()


def _read(path: Path) -> bytes | None:
    """The content of a file that nobody else could have written; None if there is no such file, or it is damaged."""
    with suppress(OSError), os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if stat.S_ISREG(found.st_mode) and _is_ours(found):
            content = file.read()
            if found.st_mtime < time.time() - _DAY:
                os.utime(path)  # for `_remove_stale`
            seal, body = content[:_SEAL], content[_SEAL:]
            if hashlib.sha256(path.name.encode() + body).digest() == seal:
                return body
            _set_aside(path, "is damaged")
    return None


def _write(path: Path, body: bytes) -> None:
    """Write a file under another name, then rename it."""
    _remove_stale(path.parent)
    path.parent.mkdir(mode=0o755, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}")
    try:
        # Whatever the umask: a file that a group can write to is not read.
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(hashlib.sha256(path.name.encode() + body).digest() + body)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _set_aside(path: Path, why: str) -> None:
    """Rename a file that cannot be used, if that is allowed, and say so in a line."""
    aside = path.with_name(f"{path.name}.damaged")
    try:
        path.replace(aside)
        how = f"set aside as {aside.name}"
    except OSError:
        how = "left as it is"
    _say(f"the compiled kernel {path} {why}: it is {how}, and compiled anew")


@cache
def _remove_stale(folder: Path) -> None:
    """Remove files that nobody read for long, once in a process."""
    with suppress(OSError):
        for old in list(folder.iterdir()):
            if old.stat().st_mtime < time.time() - _STALE_DAYS * _DAY:
                old.unlink()


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
    return stat.S_ISDIR(found.st_mode) and _is_ours(found)


def _is_ours(found: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user or root, and nobody else can write to it."""
    return found.st_uid in {os.geteuid(), 0} and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@cache
def _tell_that_kernels_are_compiled() -> None:
    """Say once, in a terminal or notebook, that kernels are being compiled."""
    with suppress(AttributeError, ValueError):  # there is no stderr, or it was closed
        if sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel."):
            _say(f"compiling the kernels: half a minute, {_how_often()}")


def _say(text: str) -> None:
    out = sys.stderr
    with suppress(AttributeError, OSError, ValueError):
        print(text, file=out, flush=True)


def _how_often() -> str:
    folders = cache_folders()
    if folders and os.access(folders[-1], os.W_OK):
        return "once"
    return "at every start, unless LACUNA_CACHE_DIR names a folder to keep them in"
