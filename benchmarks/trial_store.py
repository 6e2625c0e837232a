"""What a durable event costs: `SqliteStore.append` next to a bare INSERT of the same bytes, both with a commit each.

``python benchmarks/trial_store.py`` takes a few seconds and prints Markdown. Both write to files in one folder with the
same pragmas, commit by commit in turns, so that whatever else keeps the disk busy slows both; the median counts. The
bare table holds nothing but a number and a body. The ratio should be 1.5 or less.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from lacuna.trial.log.chained_log import Head, canonical, verify
from lacuna.trial.log.sqlite import SqliteStore
from lacuna.trial.log.sqlite_file import make_durable

TURNS, GROUP, PARTICIPANTS = 3000, 8, 500


def events(head: Head, n: int) -> list[dict[str, Any]]:
    """Decisions as large as those of a trial with four components and two actions."""
    found = []
    for seq in range(head.seq + 1, head.seq + 1 + n):
        body = {
            "action": 1, "allowed": [0, 1], "app_at": None, "at": "2026-11-16T18:00:02.113Z", "available": True,
            "basis": "5c1e9a0b77d2f413", "coded": [2, 1, -1, 1], "extra": {}, "gap": 0, "invalid": [],
            "context": {"at home": True, "mood": None, "steps": 1203.0, "time of day": "evening"},
            "kind": "decision", "p": participant(seq), "policy": "learned", "pool": "all", "prob": [0.75, 0.25],
            "randomised": True, "reason": None, "request": "b2d07c41e09a3f58", "seq": seq, "t": seq // PARTICIPANTS,
            "u": 0.9013671875, "version": 12,
        }  # fmt: skip
        found.append(body)
    return found


def participant(seq: int) -> str:
    return f"{(seq % PARTICIPANTS + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128):032x}"


def keys(bodies: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [(participant(one["seq"]), one["seq"] // PARTICIPANTS, one["seq"]) for one in bodies]


def measure(folder: Path, turns: int) -> dict[str, float]:
    """The median time of each commit in microseconds: a bare insert, an append, an append of a group."""
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    make_durable(bare)
    bare.execute("CREATE TABLE bare (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    times: dict[str, list[float]] = {"bare INSERT": [], "append": [], f"append of {GROUP}": []}
    with closing(bare), SqliteStore.create(folder / "store.db", "walk") as store:

        def insert(group: list[dict[str, Any]]) -> None:
            bare.execute("INSERT INTO bare (seq, body) VALUES (?, ?)", (group[0]["seq"], canonical(group[0])))

        def append(group: list[dict[str, Any]]) -> None:
            store.append(group, keys(group))

        for _ in range(turns):
            one, many = events(store.head, 1), events(store.head, GROUP + 1)[1:]
            for name, act, group in zip(times, (insert, append, append), (one, one, many), strict=True):
                start = time.perf_counter()
                act(group)
                times[name].append((time.perf_counter() - start) * 1e6)
        n = sum(1 for _ in verify(store.read(), head=store.head))
        assert n == turns * (GROUP + 1)
    return {name: median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="on the disk to measure; by default where temporary files go")
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        times = measure(Path(folder), given.turns)
    print("| one commit | µs | events per second | ratio to a bare INSERT |\n|---|---|---|---|")
    for name, found in times.items():
        rate = 1e6 / found * (GROUP if "of" in name else 1)
        print(f"| {name} | {found:.0f} | {rate:,.0f} | {found / times['bare INSERT']:.2f} |")


if __name__ == "__main__":
    main()
