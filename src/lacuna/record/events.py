"""The kinds of events in the log of a trial, their inputs, and their times."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache

INPUTS: dict[str, tuple[str, ...]] = {
    "begin": ("file", "digest", "secret", "draws", "provenance", "numbers"),
    "enrol": ("p", "group", "ghost"),
    "decision": ("p", "t", "context", "invalid", "available", "allowed", "app_at", "extra", "request"),
    "given": ("p", "t", "context", "invalid", "action", "prob", "fallback", "app_at", "extra", "request"),
    "fallback": ("p", "t", "reason", "context", "invalid", "app_at", "extra", "request"),
    "outcome": ("p", "t", "reward", "delivered", "app_at"),
    "close": ("p", "t", "why"),
    "end": ("p", "how"),
    "rebuild": (),
    "update": ("key",),
    "snapshot": ("of", "digest"),
    "note": ("p", "t", "text", "request"),
    "source": ("digest", "name", "mapping"),
    "upgrade": ("provenance", "reason", "state"),
    "redact": ("of", "reason", "sources", "state"),
}
"""The inputs of each kind, besides the number, kind and time of every event; all other keys are computed."""

IF_RESTRICTED: dict[str, tuple[str, ...]] = {"fallback": ("available", "allowed")}
"""More of what comes from outside, which an event has only if not every action could be chosen."""

NEUTRAL = frozenset({"note", "redact", "snapshot", "source", "upgrade"})
"""The kinds that do not change the state of a trial."""


def now() -> str:
    """Return the current time as the log writes it: UTC, to the millisecond."""
    seconds, part = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_to_the_second(seconds)}.{part:03d}Z"


@lru_cache(maxsize=1)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


@lru_cache(maxsize=1)
def milliseconds(at: str) -> int:
    """Convert a time of the log to milliseconds since 1970.

    Examples
    --------
    >>> milliseconds("1970-01-02T00:00:00.001Z")
    86400001
    """
    return round(datetime.fromisoformat(at).timestamp() * 1000)
