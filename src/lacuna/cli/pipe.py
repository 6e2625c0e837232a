"""JSON Lines in, JSON Lines out, for an app that keeps one process open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, BinaryIO

from lacuna.trial.engine.trial import Trial
from lacuna.validation import nearest, read_json, shown

LONGEST = 65_536
"""Most bytes of a request."""

_NEEDED = ("participant", "t", "context")
_KNOWN = (*_NEEDED, "available", "allowed", "previous", "extra")


def answers(trial: Trial, requests: BinaryIO) -> Iterator[str]:
    """Answer requests one by one; a request that fails gets ``{"error": …}``, and the next one follows.

    Parameters
    ----------
    trial
        The trial that decides.
    requests
        Lines with the parameters of `Trial.decide` as a JSON object; blank lines are skipped.
    """
    while line := requests.readline(LONGEST + 1):
        too_long = len(line) > LONGEST
        while len(line) > LONGEST and not line.endswith(b"\n"):
            line = requests.readline(LONGEST + 1)
        if too_long:
            yield json.dumps({"error": f"a request has more than {LONGEST} bytes"})
        elif line.strip():
            yield json.dumps(_answer(trial, line))


def _answer(trial: Trial, line: bytes) -> dict[str, Any]:
    try:
        return asdict(trial.decide(**read_request(line)))
    except (ValueError, TypeError, OSError) as error:
        return {"error": " ".join(str(error).split())}


def read_request(line: bytes | str) -> dict[str, Any]:
    """Read the parameters of `Trial.decide`, or raise an error that does not repeat their values."""
    found = read_json("the request", line)
    if not isinstance(found, dict):
        raise ValueError(f"the request is no JSON object; it must have {', '.join(_NEEDED)}")
    for key in found:
        if key not in _KNOWN:
            raise ValueError(f"the request has {shown(key)}{nearest(key, _KNOWN)}; it may have {', '.join(_KNOWN)}")
    for key in _NEEDED:
        if key not in found:
            raise ValueError(f"the request lacks {key!r}; it must have {', '.join(_NEEDED)}")
    return found
