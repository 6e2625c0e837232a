"""Events such as a trial logs."""

from __future__ import annotations

import hashlib
from typing import Any

from lacuna.trial.log.chained_log import START, Entry, Head, make_entry, parse


def pseudonym(i: int) -> str:
    return hashlib.sha256(f"participant {i}".encode()).hexdigest()[:32]


def body(seq: int, **more: Any) -> dict[str, Any]:
    """A decision, as large as real ones."""
    if seq == 0:
        return {"at": "2026-11-16T18:00:00.000Z", "kind": "begin", "seq": 0, "toml": '[trial]\nname = "walk"\n', **more}
    return {
        "action": seq % 2, "allowed": [0, 1], "app_at": None, "at": f"2026-11-16T18:00:{seq % 60:02}.113Z",
        "available": True, "basis": "5c1e9a0b77d2f413", "coded": [2, 1, -1, 1],
        "context": {"at home": True, "mood": None, "steps": 1203.5 + seq, "time of day": "früh"},
        "extra": {}, "gap": 0, "invalid": [], "kind": "decision", "p": pseudonym(seq % 7), "policy": "learned",
        "pool": "all", "prob": [0.75, 0.25], "randomised": True, "reason": None, "request": "b2d07c41e09a3f58",
        "seq": seq, "t": seq // 7, "u": 0.9013671875, "version": seq // 50, **more,
    }  # fmt: skip


def events(n: int, head: Head = START) -> list[Entry]:
    """The next n events of a log."""
    found = []
    for seq in range(head.seq + 1, head.seq + 1 + n):
        found.append(make_entry(head, body(seq)))
        head = found[-1].head
    return found


def bodies(entries: list[Entry]) -> list[dict[str, Any]]:
    """What the events hold."""
    return [parse(one.body) for one in entries if one.body is not None]


def keys(entries: list[Entry]) -> list[tuple[str, int, int]]:
    """The decision keys of events."""
    return [(pseudonym(one.seq % 7), one.seq // 7, one.seq) for one in entries if one.seq]
