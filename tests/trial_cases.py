"""Trials for tests: files, clocks, contexts, and what their logs hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lacuna.agent.settings import Settings
from lacuna.kernels.space import Space
from lacuna.trial.engine import snapshot
from lacuna.trial.engine.state import TrialState
from lacuna.trial.engine.trial import Trial
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import check
from lacuna.trial.log.log_store import Store

ACTIONS = ("nothing", "prompt", "call")
SPACE = Space((3, 2, 4), ("time", "home", "mood"))
START = np.datetime64("2026-11-16T18:00:00.000")


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else f'"{value}"'


def trial_file(
    settings: Settings | None = None, *, trial: str = "", allocation: str = "", reward: str = "", n_actions: int = 3
) -> TrialFile:
    """A file with three components; the texts are lines of its tables."""
    chosen = {} if settings is None else settings.as_dict()
    lines = "\n".join(f"{name} = {toml(value)}" for name, value in chosen.items() if value is not None)
    context = "\n".join(
        f"{name} = {{ values = {list(range(size))} }}" for name, size in zip(SPACE.names, SPACE.sizes, strict=True)
    )
    names = ", ".join(map(toml, ACTIONS[:n_actions]))
    return TrialFile.parse(
        f'[trial]\nname = "walk"\nactions = [{names}]\nabsent = "nothing"\n{trial}\n[settings]\n{lines}\n'
        f"[allocation]\n{allocation}\n[reward]\n{reward}\n[context]\n{context}\n"
    )


def ticking(step: int = 1000) -> Callable[[], str]:
    """A clock that goes on by so many milliseconds at every look."""
    looks = iter(range(0, 1 << 62, step))
    return lambda: f"{START + np.timedelta64(next(looks), 'ms')}Z"


def begun(file: TrialFile, *, store: str = "memory:", seed: int = 1) -> Trial:
    """A trial in memory, with a clock of its own."""
    return Trial.create(file, store=store, seed=seed, clock=ticking())


def contexts(n: int, hidden: float, seed: int) -> Iterator[dict[str, int | None]]:
    """Contexts in which `home` follows the action of the mood before it, and the rest is noise."""
    rng = np.random.default_rng(seed)
    mood = 0
    for _ in range(n):
        home, mood = int(mood >= 2), int(rng.integers(4))
        values = (int(rng.integers(3)), home, mood)
        lost = rng.random(3) < hidden
        yield {name: None if lost[j] else values[j] for j, name in enumerate(SPACE.names)}


def bodies(store: Store) -> list[dict[str, Any]]:
    """What the events of a log hold."""
    return [check(entry) or {} for entry in store.read()]


def state_bytes(state: TrialState) -> bytes:
    """All of a state, to the bit."""
    return snapshot.to_bytes(state, 0)
