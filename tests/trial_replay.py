"""A long trial with late, lost and corrected rewards, computed again in every way: all must agree to the bit.

    python tests/trial_replay.py 100000

The trial has a participant for every 200 decisions, and every snapshot is kept. It is replayed in another process from
its beginning, and from every snapshot to the next: what comes out must be that one, byte for byte. Its first 2,000
decisions are replayed without the compiler and as compiled for a generic processor. A batch has 2,000 decisions.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from lacuna.trial.engine import snapshot
from lacuna.trial.engine.recovery import open_store, recover, secret_path
from lacuna.trial.engine.replay import begin_state, replay
from lacuna.trial.engine.state import TrialState
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.chained_log import Entry, check
from lacuna.trial.log.keys import DrawsKey, Secret
from lacuna.trial.log.log_store import Store
from trial_cases import contexts, ticking, trial_file

DECISIONS, FIRST, BATCH = 100_000, 2000, 2000
LINES = 'update = "batch"\nmax_gap = 4'
ALLOCATION = "rule = { softmax = { temperature = 0.3 } }\nbounds = [0.1, 0.8]"
REWARD = "wait = { decisions = 8 }\nmax_open = 20"


def run(path: Path, decisions: int) -> Trial:
    """Make a trial: rewards come up to ten decisions late, a tenth never, and some are corrected."""
    rng, people = np.random.default_rng(1), max(1, decisions // 200)
    trial = Trial.create(trial_file(None, trial=LINES, allocation=ALLOCATION, reward=REWARD), store=f"sqlite:{path}",
                         seed=7, clock=ticking(37))  # fmt: skip
    trial.writer.keep_snapshots = None
    # Durability has tests of its own.
    trial.store._connection.execute("PRAGMA synchronous = OFF")  # type: ignore[attr-defined]
    for i in range(people):
        trial.enrol(f"person {i}")
    t = np.full(people, -1)
    for n, context in enumerate(contexts(decisions, 0.3, 2)):
        i = int(rng.integers(people))
        gap = 0 if rng.random() < 0.97 else int(rng.choice([1, 2, 9]))
        t[i] += 1 + gap
        trial.decide(f"person {i}", int(t[i]), context, available=bool(rng.random() < 0.95))
        old = int(t[i]) - int(rng.choice([0, 1, 1, 1, 2, 3, 5, 10]))
        person = trial.state.people[trial.secret.pseudonym(f"person {i}")]
        if rng.random() < 0.9 and old in person.rows:
            trial.outcome(f"person {i}", old, float(rng.choice([0.0, 0.5, 1.0])))
        if n % BATCH == BATCH - 1:
            trial.update()
    return trial


def digest(state: TrialState) -> str:
    return hashlib.sha256(snapshot.to_bytes(state, 0)).hexdigest()


def from_every_snapshot(store: Store, key: DrawsKey) -> Iterator[tuple[int, bool, str]]:
    """For every snapshot: its event, whether a replay leads from it to the next one, and the digest of what it gave."""
    seqs = store.snapshots()
    for seq, end in zip(seqs, [*seqs[1:], store.head.seq], strict=True):
        state, found, then = begin_state(check(store.entry(0)), key), store.get_snapshot(seq), store.get_snapshot(end)
        assert found is not None
        assert then is not None
        assert found[0] == seq
        assert snapshot.from_bytes(found[1], f"the snapshot of event {seq}", state) == seq
        state, _ = replay(islice(store.read(seq + 1), end - seq), key, state, store.entry(seq).head)
        yield seq, end == store.head.seq or snapshot.to_bytes(state, end) == then[1], digest(state)


def first_decisions(store: Store) -> Iterator[Entry]:
    """The events up to decision number `FIRST`."""
    seen = 0
    for entry in store.read():
        seen += b'"kind":"decision"' in (entry.body or b"")
        if seen > FIRST:
            return
        yield entry


def child(path: Path, what: str) -> None:
    """Compute something again, in this process."""
    key, began = Secret.read(secret_path(path)).draws_key, time.perf_counter()
    with open_store(path, write=False)[0] as store:
        if what == "first":
            print(digest(replay(first_decisions(store), key)[0]))
        elif what == "begin":
            print(digest(replay(store.read(), key)[0]), time.perf_counter() - began)
        else:
            for found in from_every_snapshot(store, key):
                print(*found)


def ask(path: Path, what: str, **more: str) -> list[list[str]]:
    done = subprocess.run([sys.executable, __file__, "--child", str(path), what], env=os.environ | more, check=True,
                          capture_output=True, text=True)  # fmt: skip
    return [line.split() for line in done.stdout.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compute a long trial again, in every way.")
    parser.add_argument("decisions", type=int, nargs="?", default=DECISIONS)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(Path(given.child[0]), given.child[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        path, began = Path(folder) / "walk.db", time.perf_counter()
        with run(path, given.decisions) as trial:
            real, ledger = digest(trial.state), trial.state.ledger
            print(f"{given.decisions:,} decisions of {len(trial.state.people)} participants, {ledger.n:,} points, "
                  f"{trial.head.seq + 1:,} events: {time.perf_counter() - began:.0f} s")  # fmt: skip
        ((again, seconds),) = ask(path, "begin")
        assert again == real, "a replay from the beginning gives another state"
        print(f"replayed from the beginning in {float(seconds):.1f} s: equal")
        found = ask(path, "snapshots")
        different = [seq for seq, equal, _ in found if equal != "True"]
        assert not different, f"replays from these snapshots give something else: {different}"
        assert found[-1][2] == real
        print(f"replayed from {len(found)} snapshots: equal")
        began = time.perf_counter()
        with open_store(path, write=False)[0] as store:
            state = recover(store, Secret.read(secret_path(path)).draws_key)
        print(f"recovered in {time.perf_counter() - began:.2f} s")
        assert digest(state) == real
        ways = {"here": {}, "without the compiler": {"NUMBA_DISABLE_JIT": "1"},
                "for a generic processor": {"NUMBA_CPU_NAME": "generic", "LACUNA_CACHE_DIR": folder}}  # fmt: skip
        digests = {way: ask(path, "first", **more) for way, more in ways.items()}
        assert len({str(found) for found in digests.values()}) == 1, f"ways of computing differ: {digests}"
        print(f"the first {FIRST:,} decisions {', '.join(ways)}: equal")


if __name__ == "__main__":
    main()
