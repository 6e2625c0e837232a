"""The kinds of events in the log of a trial, what of each comes from outside, and its time."""

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
"""What comes from outside, besides the number, the kind and the time that every event has; the rest is computed."""

NEUTRAL = frozenset({"note", "redact", "snapshot", "source", "upgrade"})
"""The kinds after which the state of a trial is the same as before."""


def now() -> str:
    """Give the time as the log writes it: UTC, to the millisecond."""
    seconds, part = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_to_the_second(seconds)}.{part:03d}Z"


@lru_cache(maxsize=1)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


@lru_cache(maxsize=1)
def milliseconds(at: str) -> int:
    """Give a time of the log as a number.

    Examples
    --------
    >>> milliseconds("1970-01-02T00:00:00.001Z")
    86400001
    """
    return round(datetime.fromisoformat(at).timestamp() * 1000)
