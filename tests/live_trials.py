"""Trials in real SQLite files, with participants who answer in part, late or never."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from lacuna.trial.engine.trial import Trial
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import check, write_log
from lacuna.trial.log.sqlite import SqliteStore

FILE = """
[trial]
name = "walk"
actions = ["nothing", "prompt"]
absent = "nothing"
max_gap = 3
[settings]
K = 3
[allocation]
rule = { softmax = { temperature = 0.5 } }
bounds = [0.1, 0.9]
sets = { driving = ["nothing"] }
[reward]
range = [0.0, 1.0]
[context]
mood = { values = [1, 2, 3] }
steps = { edges = [500], range = [0, 10000] }
"""


def write_file(folder: Path, name: str = "walk", **changes: str) -> Path:
    """Write a trial file, with some lines changed: each key is the beginning of the line."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = FILE.replace('name = "walk"', f'name = "{name}"').splitlines()
    for key, line in changes.items():
        lines = [line if old.startswith(f"{key} = ") else old for old in lines]
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def play(trial: Trial, *, people: int = 4, points: int = 6, first: int = 0, seed: int = 0) -> None:
    """Let participants decide and answer; one point in six is missed, one reward in five never comes."""
    chance = random.Random(seed)
    for i in range(people):
        trial.enrol(f"person {i}")
    for t in range(first, first + points):
        for i in range(people):
            if chance.random() < 1 / 6:
                continue
            context = {"mood": chance.choice([1, 2, 3, None]), "steps": chance.choice([100, 900, None])}
            trial.decide(f"person {i}", t, context)
            if chance.random() < 0.8:
                trial.outcome(f"person {i}", t, chance.choice([0.0, 0.5, 1.0]))


def made(folder: Path, name: str = "walk", *, seed: int = 1, **changes: str) -> Path:
    """Play a trial with an update in its middle; gives its store."""
    with Trial.create(write_file(folder, name, **changes), seed=seed) as trial:
        play(trial)
        trial.update()
        play(trial, first=6, seed=1)
    return folder / f"{name}.db"


def log_of(store: Path, path: Path) -> Path:
    """Export the log of a store."""
    with SqliteStore.open(store, write=False) as opened:
        write_log(path, opened.read())
    return path


def bodies(store: Path) -> list[dict[str, Any] | None]:
    """All events of a store; None where one was erased."""
    with SqliteStore.open(store, write=False) as opened:
        return [check(entry) for entry in opened.read()]


def kinds(store: Path) -> list[str]:
    return ["erased" if body is None else body["kind"] for body in bodies(store)]


def content(store: Path) -> bytes:
    """All bytes of a store, with those that are only in its write-ahead log yet."""
    parts = (store, store.with_name(f"{store.name}-wal"))
    return b"".join(part.read_bytes() for part in parts if part.exists())


def parsed(path: Path) -> TrialFile:
    return TrialFile.read(path)
