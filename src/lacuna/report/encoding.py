"""Recordings as plain data for a page, and back: arrays as base64 of the smallest little-endian type that fits."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.report.recording import Moments, Recording, Stage

_KINDS: dict[str, Any] = {
    "u1": np.uint8,
    "u2": np.uint16,
    "u4": np.uint32,
    "i2": np.int16,
    "i4": np.int32,
    "f8": np.float64,
}
_WHOLE = ("u1", "i2", "u2", "i4", "u4")

Packed = dict[str, str]
"""An array: the kind of its numbers under ``k``, its bytes under ``d``."""


def pack(array: NDArray[Any]) -> Packed:
    """Return an array of whole numbers, or of floats, as text.

    Examples
    --------
    >>> pack(np.array([1, 2, 300]))
    {'k': 'i2', 'd': 'AQACACwB'}
    """
    flat = np.ascontiguousarray(array).ravel()
    if flat.dtype == np.float64:
        kind = "f8"
    else:
        low, high = (int(flat.min()), int(flat.max())) if flat.size else (0, 0)
        kind = next(k for k in _WHOLE if np.iinfo(_KINDS[k]).min <= low and high <= np.iinfo(_KINDS[k]).max)
    return {"k": kind, "d": b64encode(flat.astype(np.dtype(_KINDS[kind]).newbyteorder("<")).tobytes()).decode()}


def unpack(packed: Mapping[str, str], shape: tuple[int, ...] = (-1,)) -> NDArray[Any]:
    """Read an array back; the inverse of `pack`.

    Examples
    --------
    >>> unpack(pack(np.array([[1, -2], [3, 4]])), (2, 2)).tolist()
    [[1, -2], [3, 4]]
    """
    kind = packed["k"]
    found = np.frombuffer(b64decode(packed["d"], validate=True), dtype=np.dtype(_KINDS[kind]).newbyteorder("<"))
    return found.astype(np.float64 if kind == "f8" else np.int64).reshape(shape)


def pack_bits(flags: NDArray[np.bool_]) -> Packed:
    """Pack each row of flags into whole bytes; the first flag is the lowest bit.

    Examples
    --------
    >>> pack_bits(np.array([[True, False, True]]))
    {'k': 'u1', 'd': 'BQ=='}
    """
    return pack(np.packbits(flags, axis=-1, bitorder="little"))


def unpack_bits(packed: Mapping[str, str], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Read flags back; the inverse of `pack_bits`."""
    octets = unpack(packed, (*shape[:-1], -(-shape[-1] // 8))).astype(np.uint8)
    return np.unpackbits(octets, axis=-1, count=shape[-1], bitorder="little").astype(np.bool_)


def pack_rows(rows: NDArray[np.float64]) -> dict[str, Any]:
    """Return rows of floats, many of them equal, as the distinct rows and the index of each."""
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    return {"of": pack(distinct), "at": pack(which.ravel())}


def unpack_rows(packed: Mapping[str, Any], width: int) -> NDArray[np.float64]:
    """Read rows back; the inverse of `pack_rows`."""
    found: NDArray[np.float64] = unpack(packed["of"], (-1, width))[unpack(packed["at"])]
    return found


def recording_data(recording: Recording) -> list[list[dict[str, Any]]]:
    """Return the stages of every method as plain data."""
    return [[_stage_data(stage) for stage in stages] for stages in recording.stages]


def _stage_data(stage: Stage) -> dict[str, Any]:
    return {
        "at": stage.at,
        "before": _moments_data(stage.before),
        "votes": pack_bits(stage.votes),
        "p": pack_rows(stage.probability),
        "action": pack(stage.action),
        "reward": pack_rows(stage.reward[:, None]),
        "ended": pack(stage.ended),
        "truncated": pack(stage.truncated),
        "stopped": pack(stage.stopped),
        "stops": _moments_data(stage.stops),
        "best": pack_bits(stage.best),
        "changes": pack(stage.changes.T),
        "changed": pack_bits(stage.changed),
    }


def _moments_data(moments: Moments) -> dict[str, Any]:
    # Observed values equal the true ones, so the flags are enough.
    hidden = pack_bits(moments.seen < 0)
    return {"state": pack(moments.state), "hidden": hidden, "pathways": pack(moments.pathways)}


def stage_from(data: Mapping[str, Any], K: int, n_actions: int, shown: NDArray[np.int64]) -> Stage:
    """Read a stage back from plain data; `shown` holds the components of every true state."""
    action = unpack(data["action"])
    changes = unpack(data["changes"], (2, -1)).T
    return Stage(
        int(data["at"]),
        _moments_from(data["before"], K, shown),
        unpack_bits(data["votes"], (action.size, K, n_actions)),
        unpack_rows(data["p"], n_actions),
        action,
        unpack_rows(data["reward"], 1)[:, 0],
        unpack(data["ended"]),
        unpack(data["truncated"]),
        unpack(data["stopped"]),
        _moments_from(data["stops"], K, shown),
        unpack_bits(data["best"], (-1, n_actions)),
        changes,
        unpack_bits(data["changed"], (len(changes), n_actions)),
    )


def _moments_from(data: Mapping[str, Any], K: int, shown: NDArray[np.int64]) -> Moments:
    state = unpack(data["state"])
    hidden = unpack_bits(data["hidden"], (state.size, shown.shape[1]))
    return Moments(state, np.where(hidden, -1, shown[state]), unpack(data["pathways"], (state.size, K)))
