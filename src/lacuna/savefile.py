"""One file format for saved agents and runs: a line of JSON, raw arrays, and a checksum over everything.

``lacuna <kind> <version>`` newline, the JSON header in one line, the arrays one after the other (little-endian), and a
last line ``sha256 <hex>``. Written to a temporary file and renamed, so that a file is whole or not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from itertools import zip_longest
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 4
_TAIL = len(b"sha256 ") + 64 + 1
_DTYPES = {"int64": np.dtype("<i8"), "float64": np.dtype("<f8")}

Arrays = dict[str, NDArray[Any]]


class SaveFileError(ValueError):
    """A file that cannot be read as what it should be; the message says why, and nothing was changed."""


def write(path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: Arrays) -> None:
    """Write a file whole: under another name first, then renamed over `path`."""
    path = Path(path)
    # The header lists its keys in order, so the arrays follow it in that order.
    arrays = dict(sorted(arrays.items()))
    index = {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}
    body = bytearray(f"lacuna {kind} {VERSION}\n".encode())
    body += json.dumps({"header": header, "arrays": index}, sort_keys=True).encode() + b"\n"
    for array in arrays.values():
        body += np.ascontiguousarray(array, dtype=_DTYPES[str(array.dtype)]).tobytes()
    body += b"sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"
    write_whole(path, bytes(body))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, then rename it: it is whole or not there."""
    part = path.with_name(f".{path.name}.{socket.gethostname()}-{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], Arrays]:
    """Read a file back, or say in one sentence why it cannot be trusted."""
    try:
        body = Path(path).read_bytes()
    except OSError as error:
        raise SaveFileError(f"{path} cannot be read: {error.strerror}") from error
    first, _, rest = body.partition(b"\n")
    words = first.decode("ascii", "replace").split(" ")
    if len(words) != 3 or words[0] != "lacuna" or not words[2].isdecimal():
        raise SaveFileError(f"{path} is not a file saved by lacuna")
    if words[1] != kind:
        raise SaveFileError(f"{path} holds a saved {words[1][:40]}, not a saved {kind}")
    if words[2] != str(VERSION):
        raise SaveFileError(f"{path} was saved in format {words[2][:40]}; this version reads format {VERSION} only")
    content, tail = body[:-_TAIL], body[-_TAIL:]
    if not tail.startswith(b"sha256 ") or not tail.endswith(b"\n"):
        raise SaveFileError(f"{path} is incomplete: it was cut off after {len(body)} bytes")
    if hashlib.sha256(content).hexdigest().encode() != tail[7:-1]:
        raise SaveFileError(f"{path} was changed after it was saved: its checksum does not match")
    line, _, raw = rest[:-_TAIL].partition(b"\n")
    try:
        described = json.loads(line)
        return dict(described["header"]), _unpack_arrays(raw, described["arrays"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise SaveFileError(f"{path} does not hold what its first line says: {error!r}") from error


def _unpack_arrays(raw: bytes, index: dict[str, tuple[str, list[int]]]) -> Arrays:
    arrays: Arrays = {}
    offset = 0
    for name, (dtype, shape) in index.items():
        count = prod(whole(f"a length of {name}", length, 0) for length in shape)
        array = np.frombuffer(raw, dtype=_DTYPES[dtype], count=count, offset=offset) if count else np.empty(0, dtype)
        arrays[name] = array.reshape(shape).astype(dtype)
        offset += count * 8
    if offset != len(raw):
        raise ValueError(f"the arrays need {offset} bytes, there are {len(raw)}")
    return arrays


def whole(what: str, value: Any, low: int, high: int | None = None) -> int:
    """Give back a whole number from a file if it lies in its range, or say what is wrong."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        rule = f"{low} or larger" if high is None else f"between {low} and {high}"
        raise ValueError(f"{what} is {value!r}; it must be a whole number, {rule}")
    return value


def take(
    arrays: Arrays, name: str, dtype: str, shape: tuple[int | None, ...], low: Any = -np.inf, high: Any = np.inf
) -> NDArray[Any]:
    """Give an array from a file if it has this type, shape (None for any length) and range, or say what is wrong."""
    array = arrays[name]
    wanted = tuple(own if length is None else length for own, length in zip_longest(array.shape, shape))
    if str(array.dtype) != dtype or array.shape != wanted or array.ndim != len(shape):
        raise ValueError(f"{name} holds {array.dtype} in shape {array.shape}; it must be {dtype} in shape {shape}")
    wrong = array[(array < low) | (array > high)]
    if wrong.size:
        raise ValueError(f"{name} holds {wrong[0]}; it must be between {low} and {high}")
    return array
