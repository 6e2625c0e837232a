"""One file format for saved agents and runs: a line of JSON, raw arrays, and a checksum over everything.

``lacuna <kind> <version>`` newline, the JSON header in one line, the arrays one after the other (little-endian), and a
last line ``sha256 <hex>``, the seal.

The seal tells a damaged file from a whole one. It is no evidence against tampering: whoever edits a file can seal it
anew. So whoever reads a file checks every number in it, with `fields` and `take`.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lacuna.files import write_whole
from lacuna.kernels.meaning import digest_of
from lacuna.validation import shown, whole_number
from lacuna.version import RESULTS_VERSION, __version__

VERSION = 8
_TAIL = len(b"sha256 ") + 64 + 1
_DTYPES: dict[str, np.dtype[Any]] = {"int64": np.dtype("<i8"), "int32": np.dtype("<i4"), "float64": np.dtype("<f8")}

# An agent may save under a new name after every step: of older files it forgets that they are its own.
_MOST_KNOWN = 64

Arrays = dict[str, NDArray[Any]]

OtherKernels = Literal["warn", "refuse"]
"""What to do with a file that was saved by another version of the kernels."""


class SaveFileError(ValueError):
    """A file cannot be loaded, or must not be replaced; nothing was changed."""


class OtherKernelsWarning(UserWarning):
    """A file was saved by another version of the kernels, so what follows may differ in its bits."""


@dataclass(frozen=True)
class Form:
    """What a file holds, and the kernels that compute with it."""

    kind: str
    kernels: tuple[Callable[..., object], ...]

    @property
    def digest(self) -> str:
        """What the kernels mean."""
        return digest_of(self.kernels)


class KnownFiles:
    """The files that an agent or a run was read from or saved to, and their seals at that time.

    It may replace these as long as nobody else changed them, and any other file only on request. So two processes that
    read one file and save it again cannot both succeed.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self._seals: dict[str, tuple[bytes | None, ...]] = {}

    def read(self, path: str | os.PathLike[str], other_kernels: OtherKernels) -> tuple[dict[str, Any], Arrays]:
        """Read a file back, or say in one sentence why it cannot be trusted."""
        body = _content(path)
        header, arrays = decode(path, body, self.form, other_kernels)
        self._seals[os.path.realpath(path)] = (body[-_TAIL:],)
        return header, arrays

    def write(self, path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays, *, overwrite: bool) -> None:
        """Write a complete file, unless that would replace a file that this agent or run does not know."""
        # The file itself: a link to it stays a link.
        key = os.path.realpath(path)
        content = encode(self.form, header, arrays)
        known = self._seals.pop(key, ())

        def check() -> None:
            there = _seal(Path(key))
            if not overwrite and there not in (None, *known):
                raise SaveFileError(_why_kept(path, self.form.kind, known=bool(known)))
            # Either may be there if this is interrupted just before or just after the renaming.
            self._seals[key] = (there, content[-_TAIL:])

        if known:
            self._seals[key] = known
        write_whole(Path(key), content, check)
        self._seals[key] = (content[-_TAIL:],)
        if len(self._seals) > _MOST_KNOWN:
            del self._seals[next(iter(self._seals))]


def _why_kept(path: str | os.PathLike[str], kind: str, *, known: bool) -> str:
    if known:
        return (
            f"{path} was saved by someone else since this {kind} was loaded from it or saved to it, and that would be "
            "lost; load it again, save under another name, or pass overwrite=True"
        )
    return (
        f"{path} is there already, and this {kind} was neither loaded from it nor saved to it; save under another "
        "name, or pass overwrite=True to replace it"
    )


def _seal(path: Path) -> bytes | None:
    """The last line of the file that is there; None if there is no file, or nothing in it."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL, 0))
            return file.read() or None
    except FileNotFoundError:
        return None


def encode(form: Form, header: dict[str, Any], arrays: Arrays) -> bytes:
    """Return the content of a file, with its checksum."""
    # The index lists its keys in order, so the arrays follow it in that order.
    arrays = dict(sorted(arrays.items()))
    index = {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}
    saved_by = {"lacuna": __version__, "results": RESULTS_VERSION, "kernels": form.digest}
    described = {"header": header, "arrays": index, "saved_by": saved_by}
    body = bytearray(f"lacuna {form.kind} {VERSION}\n".encode())
    body += json.dumps(described, sort_keys=True).encode() + b"\n"
    for array in arrays.values():
        body += np.ascontiguousarray(array, dtype=_DTYPES[str(array.dtype)]).tobytes()
    return bytes(body) + b"sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SaveFileError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SaveFileError(f"{str(path)!r} cannot be read: {error}") from error


def decode(
    path: str | os.PathLike[str], body: bytes, form: Form, other_kernels: OtherKernels
) -> tuple[dict[str, Any], Arrays]:
    """Return the content of a file, or say in one sentence why it cannot be trusted; messages call it `path`."""
    first, _, rest = body.partition(b"\n")
    words = first.decode("ascii", "replace").split(" ")
    if len(words) != 3 or words[0] != "lacuna" or not words[2].isdecimal():
        raise SaveFileError(f"{path} is not a file saved by lacuna")
    if words[1] != form.kind:
        raise SaveFileError(f"{path} holds a saved {words[1][:40]}, not a saved {form.kind}")
    if words[2] != str(VERSION):
        raise SaveFileError(f"{path} was saved in format {words[2][:40]}; this version reads format {VERSION} only")
    content, tail = body[:-_TAIL], body[-_TAIL:]
    if not tail.startswith(b"sha256 ") or not tail.endswith(b"\n"):
        raise SaveFileError(f"{path} is incomplete: it was cut off after {len(body)} bytes")
    if hashlib.sha256(content).hexdigest().encode() != tail[7:-1]:
        raise SaveFileError(f"{path} was changed after it was saved: its checksum does not match")
    line, _, raw = rest[:-_TAIL].partition(b"\n")
    with refusing(path, "does not hold what its first line says"):
        described = fields("the file", json.loads(line), ("header", "arrays", "saved_by"))
        saved_by = fields("saved_by", described["saved_by"], ("lacuna", "results", "kernels"))
        arrays = _unpack_arrays(raw, described["arrays"])
    _compare_kernels(path, saved_by, form, other_kernels)
    return described["header"], arrays


def _compare_kernels(
    path: str | os.PathLike[str], saved_by: dict[str, Any], form: Form, other_kernels: OtherKernels
) -> None:
    if other_kernels not in get_args(OtherKernels):
        raise ValueError(f"other_kernels is {other_kernels!r}; it must be one of {', '.join(get_args(OtherKernels))}")
    if (saved_by["results"], saved_by["kernels"]) == (RESULTS_VERSION, form.digest):
        return
    message = (
        f"{path} was saved by other kernels ({shown(saved_by['kernels'])} of lacuna {shown(saved_by['lacuna'])}; these "
        f"are {form.digest!r} of {__version__!r}), so what follows may differ in its bits"
    )
    if other_kernels == "refuse":
        raise SaveFileError(message)
    # At the line that called `load`, through `KnownFiles.read` and `decode`.
    warnings.warn(message, OtherKernelsWarning, stacklevel=5)


def _unpack_arrays(raw: bytes, index: dict[str, tuple[str, list[int]]]) -> Arrays:
    arrays: Arrays = {}
    offset = 0
    for name, (dtype, shape) in index.items():
        count = prod(whole_number(f"a length of {name}", length, 0) for length in shape)
        kind = _DTYPES[dtype]
        array = np.frombuffer(raw, dtype=kind, count=count, offset=offset) if count else np.empty(0, kind)
        arrays[name] = array.reshape(shape).astype(dtype)
        offset += count * kind.itemsize
    if offset != len(raw):
        raise ValueError(f"the arrays need {offset} bytes, there are {len(raw)}")
    return arrays


@contextmanager
def refusing(path: str | os.PathLike[str], why: str) -> Iterator[None]:
    """Turn any exception from the content of a file into one sentence."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SaveFileError(f"{path} {why}: {reason}") from error


def fields(what: str, value: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return a mapping from a file if it holds exactly these names, or raise an error."""
    if not isinstance(value, dict):
        raise TypeError(f"{what} is {shown(value)}; it must hold {', '.join(names)}")
    for name in sorted(set(names) ^ set(value)):
        raise ValueError(f"{what} {'has an unknown' if name in value else 'lacks'} {shown(name)}")
    return value


def take(
    arrays: Arrays, name: str, dtype: str, shape: tuple[int | None, ...], low: Any = -np.inf, high: Any = np.inf
) -> NDArray[Any]:
    """Return an array from a file if it has this type, shape (None for any length) and range, or raise an error.

    Numbers that are not finite are in no range.
    """
    array = arrays[name]
    wanted = tuple(own if length is None else length for own, length in zip_longest(array.shape, shape))
    if str(array.dtype) != dtype or array.shape != wanted or array.ndim != len(shape):
        raise ValueError(f"{name} holds {array.dtype} in shape {array.shape}; it must be {dtype} in shape {shape}")
    wrong = array[~(np.isfinite(array) & (array >= low) & (array <= high))]
    if wrong.size:
        raise ValueError(f"{name} holds {wrong[0]}; it must be between {low} and {high}")
    return array


def take_counts(arrays: Arrays, prefix: str = "") -> dict[str, NDArray[np.int64]]:
    """Return the rows that `Counts.to_arrays` gave, saved under names with this prefix."""
    names = ("keys", "lengths", "codes", "units")
    return {name: take(arrays, prefix + name, "int64", (None,)) for name in names}


def take_entries(arrays: Arrays, name: str, size: int) -> NDArray[np.int64]:
    """Places in a table of this size, each at most once."""
    entries = take(arrays, name, "int64", (None,), 0, size - 1)
    if (entries[1:] <= entries[:-1]).any():
        raise ValueError(f"{name} is not in order, or names a place twice")
    return entries


def sparse(table: NDArray[np.float64], name: str) -> Arrays:
    """Return those entries of a table that are not 0, and their places, as `take_sparse` reads them."""
    flat = table.reshape(-1)
    entries = np.flatnonzero(flat)
    return {f"{name}_entries": entries, name: flat[entries]}


def take_sparse(
    table: NDArray[np.float64], arrays: Arrays, name: str, low: float, high: float
) -> NDArray[np.int64]:  # fmt: skip
    """Fill those entries of a table that are not 0; returns their places."""
    flat = table.reshape(-1)
    entries = take_entries(arrays, f"{name}_entries", flat.size)
    flat[entries] = take(arrays, name, "float64", entries.shape, low, high)
    return entries


def rows_of(entries: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """The rows of a table of this width that have any of these places."""
    return np.unique(entries // width)
