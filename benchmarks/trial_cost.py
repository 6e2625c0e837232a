"""What a trial costs, as ratios to what it is made of, measured in turns on one machine.

``python benchmarks/trial_cost.py`` takes about two minutes and prints Markdown. Times are medians over turns, each of
which measures everything once, so that whatever else keeps the machine busy slows all of it. What waits for the disk is
measured commit by commit in turns. A decision comes with the reward of the one before. ``--people 10000`` measures
memory instead, with one pool for all and a pool for each.
"""

from __future__ import annotations

import argparse
import hmac
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from lacuna.agent.agent import Agent
from lacuna.agent.settings import DEFAULT, Settings
from lacuna.trial.engine import snapshot
from lacuna.trial.engine.recovery import recover
from lacuna.trial.engine.replay import replay
from lacuna.trial.engine.trial import Trial
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import check, encode, link
from lacuna.trial.log.events import now
from lacuna.trial.log.sqlite_file import SEQS, make_durable

TURNS, STEPS, PEOPLE, BATCH = 15, 200, 20, 100_000
TIMES = ("morning", "noon", "evening")


def trial_file(method: str, every: str, pool: str = "all") -> TrialFile:
    return TrialFile.parse(
        f'[trial]\nname = "walk"\nactions = ["nothing", "prompt"]\nabsent = "nothing"\npool = "{pool}"\n'
        f'update = "{every}"\n[settings]\nmethod = "{method}"\n[allocation]\nbounds = [0.1, 0.9]\n[context]\n'
        "time = { values = ['morning', 'noon', 'evening'] }\nsteps = { edges = [500, 2000], range = [0, 100000] }\n"
        "mood = { values = [1, 2, 3, 4] }\n'at home' = { values = [false, true] }\n"
    )


def contexts(n: int, seed: int) -> list[dict[str, Any]]:
    """Contexts of which three in ten values are missing."""
    rng = np.random.default_rng(seed)
    numbers, hidden = rng.random((n, 4)), rng.random((n, 4)) < 0.3
    found = []
    for (a, b, c, d), lost in zip(numbers.tolist(), hidden.tolist(), strict=True):
        values = {"time": TIMES[int(3 * a)], "steps": round(5000 * b), "mood": 1 + int(4 * c), "at home": d < 0.5}
        found.append({name: None if gone else x for (name, x), gone in zip(values.items(), lost, strict=True)})
    return found


class Stream:
    """A trial whose participants decide in turn, and get a reward each time."""

    def __init__(self, trial: Trial, people: int = PEOPLE) -> None:
        self.trial, self.people, self.n = trial, people, 0
        for i in range(people):
            trial.enrol(f"person {i}")

    def go_on(self, seen: list[dict[str, Any]]) -> None:
        """Decide in these contexts."""
        for n, context in enumerate(seen, self.n):
            t = n // self.people
            previous = {"t": t - 1, "reward": float(n % 3)} if t else None
            self.trial.decide(f"person {n % self.people}", t, context, previous=previous)
        self.n += len(seen)


def agent_steps(agent: Agent, seen: list[list[int | None]]) -> None:
    for n, observation in enumerate(seen):
        agent.probabilities()
        agent.act()
        agent.learn(float(n % 3), observation, terminated=False)


def timed(act: Callable[..., object], *given: Any) -> float:
    """Microseconds."""
    start = time.perf_counter()
    act(*given)
    return (time.perf_counter() - start) * 1e6


class Floor:
    """The least that a logged decision takes: what the log asks for, in a straight line, and the kernel; no more.

    That is a pseudonym, the digest of the request, two events as canonical JSON with their hashes and chain, their rows
    and the key of the decision, in one durable commit. Nothing is read, checked or kept.
    """

    def __init__(self, trial: Trial) -> None:
        Stream(trial).go_on(contexts(2 * PEOPLE, 0))
        state = trial.state
        step, calls = state._step, list[tuple[Any, ...]]()
        assert step is not None
        state._step = lambda *given: calls.append(given) or step(*given)  # type: ignore[func-returns-value]
        trial.decide("person 0", 2, {}, previous={"t": 1, "reward": 1.0})
        state._step = step
        self.events = [check(trial.store.entry(trial.head.seq - back)) or {} for back in (1, 0)]
        asked = ("context", "invalid", "available", "allowed", "app_at", "extra")
        self.request = {name: self.events[-1][name] for name in asked}
        self.connection: sqlite3.Connection = trial.store._connection  # type: ignore[attr-defined]
        self.step, self.arguments, self.head, self.trial = step, calls[-1], trial.head, trial

    def decide(self, t: int) -> None:
        """Log a decision."""
        seq, chain = self.head
        hmac.digest(bytes(32), b"person 0", "sha256").hex()
        sha256(encode(self.request)).hexdigest()
        self.step(*self.arguments)
        rows, at = [], now()
        for event in self.events:
            seq += 1
            content = encode(event | {"seq": seq, "at": at})
            body_hash = sha256(content).digest()
            chain = link(chain, body_hash)
            rows.append((SEQS + seq, content, body_hash, chain))
        self.head = self.head._replace(seq=seq, chain=chain)
        run = self.connection
        run.execute("BEGIN IMMEDIATE")
        run.executemany("INSERT INTO event (id, body, body_hash, chain) VALUES (?, ?, ?, ?)", rows)
        run.execute("INSERT INTO decision_key (trial, p, t, seq) VALUES (1, ?, ?, ?)", (self.events[-1]["p"], t, seq))
        run.execute("COMMIT")


def measure(folder: Path, turns: int) -> dict[str, float]:
    """Microseconds per decision."""
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    make_durable(bare)
    bare.execute("CREATE TABLE bare (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    cases = {"default": DEFAULT, "mi-available": Settings("mi-available")}
    agents, streams = {}, {}
    for name, case in cases.items():
        for every in ("each", "batch"):
            trial = Trial.create(trial_file(case.method, every), store="memory:", seed=1)
            streams[f"decide, {name}, {every}"] = Stream(trial)
        agents[f"agent, {name}"] = Agent(trial.state.space, 2, trial.file.settings, seed=1)
        agents[f"agent, {name}"].begin([None] * 4)
    stored, lowest = (
        Trial.create(trial_file(DEFAULT.method, "batch"), store=f"sqlite:{folder / name}.db", seed=1)
        for name in ("walk", "floor")
    )
    durable, floor = Stream(stored), Floor(lowest)
    times: dict[str, list[float]] = {}
    for turn in range(turns + 1):
        seen = contexts(STEPS, turn)
        coded = [[None if x < 0 else int(x) for x in stored.file.context.read(one).coded] for one in seen]
        found = {name: timed(agent_steps, agent, coded) for name, agent in agents.items()}
        found |= {name: timed(stream.go_on, seen) for name, stream in streams.items()}
        found |= dict.fromkeys(("durable decide", "floor", "bare INSERT"), 0.0)
        for n, context in enumerate(seen, turn * STEPS + 3):
            first = stored.head.seq + 1
            found["durable decide"] += timed(durable.go_on, [context])
            found["bare INSERT"] += timed(insert, bare, [(one.seq, one.body) for one in stored.store.read(first)])
            found["floor"] += timed(floor.decide, n)
        found["replay"] = timed(replay, stored.store.read(), stored.secret.draws_key) / (turn + 1)
        if turn:  # the first one compiles
            for name, own in found.items():
                times.setdefault(name, []).append(own / STEPS)
    for opened in (bare, stored, lowest):
        opened.close()
    return {name: median(own) for name, own in times.items()}


def insert(bare: sqlite3.Connection, bodies: list[tuple[int, bytes | None]]) -> None:
    """The bytes of the same events, in one commit."""
    bare.execute("BEGIN IMMEDIATE")
    bare.executemany("INSERT INTO bare (seq, body) VALUES (?, ?)", bodies)
    bare.execute("COMMIT")


def large_batch(folder: Path) -> dict[str, float]:
    """Seconds for an update, a snapshot and a recovery after many decisions."""
    trial = Trial.create(trial_file("mi-available", "batch"), store=f"sqlite:{folder / 'large.db'}", seed=1)
    trial.store._connection.execute("PRAGMA synchronous = OFF")  # type: ignore[attr-defined]
    stream = Stream(trial, 500)
    stream.go_on(contexts(1000, 0))
    trial.update()  # the first one compiles
    stream.go_on(contexts(BATCH, 1))
    found = {f"update of {BATCH:,} decisions": timed(trial.update) / 1e6}
    found["snapshot"] = timed(trial.snapshot) / 1e6
    stream.go_on(contexts(1000, 2))
    found["recovery, 2,000 events after a snapshot"] = timed(recover, trial.store, trial.secret.draws_key) / 1e6
    trial.close()
    return found


def resident() -> float:
    """Memory of this process in KB."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE") / 1e3


def memory(people: int, pool: str, method: str) -> None:
    """Print what participants take, each of whom decided three times."""
    trial = Trial.create(trial_file(method, "batch", pool), store="memory:", seed=1)
    warm = Stream(trial, 1)
    warm.go_on(contexts(3, 1))
    trial.update()
    before, stream = resident(), Stream(trial, people)
    stream.go_on(contexts(3 * people, 1))
    seconds = [timed(trial.update) / 1e6]
    each = (resident() - before) / people
    seconds.append(timed(snapshot.to_bytes, trial.state, 0) / 1e6)
    seconds.append(timed(recover, trial.store, trial.secret.draws_key) / 1e6)
    print(f"| {pool} | {method} | {each:.1f} | " + " | ".join(f"{one:.2f}" for one in seconds) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--people", type=int, default=0)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        memory(given.people, *given.child)
        return
    if given.people:
        print("| pool | method | KB per participant | update s | snapshot s | recovery s |\n|---|---|---|---|---|---|")
        for pool in ("all", "each"):
            for method in ("mi-available", DEFAULT.method):
                command = [sys.executable, __file__, "--people", str(given.people), "--child", pool, method]
                subprocess.run(command, check=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        times = measure(Path(folder), given.turns)
        seconds = large_batch(Path(folder))
    print("| | µs per decision | ratio | at most |\n|---|---|---|---|")
    for name, own in times.items():
        base, most = name, ""
        if name.startswith("decide"):
            base, most = f"agent, {name.split(', ')[1]}", "3"
        elif name in ("durable decide", "floor"):
            base, most = "bare INSERT", "1.5"
        elif name == "replay":
            base, most = "durable decide", "0.2"
        ratio = f"{own / times[base]:.2f} x {base}" if base != name else ""
        print(f"| {name} | {own:.0f} | {ratio} | {most} |")
    print("\n| | seconds |\n|---|---|")
    for name, own in seconds.items():
        print(f"| {name} | {own:.2f} |")


if __name__ == "__main__":
    main()
