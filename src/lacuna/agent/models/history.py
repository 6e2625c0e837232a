"""The last steps of a learner, kept so that late values can correct the states they belong to.

A row holds the pathways and the observation after a step, the action that led there and its reward. The rows form a
ring. The first row of an episode has no action. A new episode drops all earlier rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.agent import savefile
from lacuna.agent.memory import NO_STATE, Experience, History, Memory
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.savefile import Arrays
from lacuna.agent.settings import Settings
from lacuna.kernels.codes import copy_into
from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.space import MISSING, Space
from lacuna.worlds.mdp.tabular import first_of

NOW, KEPT = range(2)
"""Places in ``History.at``: the current row, and how many rows before it are kept."""

ARRAYS = tuple(f"history_{name}" for name in History._fields)
"""The names of the arrays of a history in a file."""


class Limits(NamedTuple):
    """Bounds on the states, component values and actions in a saved history."""

    least_state: int
    n_states: int
    sizes: tuple[int, ...]
    n_actions: int


def blank_history(space: Space, settings: Settings) -> History | None:
    """Return an empty history, or None if none is kept."""
    if settings.lag == 0:
        return None
    # The current state, `lag` states before it, and one more, from which the oldest of them is redrawn.
    rows = settings.lag + 2
    S, seen = np.full((rows, settings.pathways), NO_STATE), np.full((rows, space.d), MISSING)
    at = np.zeros(2, dtype=np.int64)
    return History(S, seen, np.zeros(rows, dtype=np.int64), np.zeros(rows), at)


@inner
def row_of(steps_ago: int, history: History) -> int:
    """Row of the state `steps_ago` steps before the current one."""
    n = history.S.shape[0]
    return int((history.at[NOW] + n - steps_ago) % n)


@inner
def keep_states(memory: Memory, S: NDArray[np.int64]) -> None:
    """Store the pathways as states, without the offsets of separate Q tables."""
    for k in range(S.shape[0]):
        S[k] = memory.S[k] - memory.first[k]


@kernel
def begin_history(memory: Memory, history: History | None) -> None:
    """Store the first state of an episode and drop all earlier ones."""
    if history is not None:
        history.at[KEPT] = 0
        keep_states(memory, history.S[history.at[NOW]])
        copy_into(history.seen[history.at[NOW]], memory.previous)


@inner
def remember(experience: Experience, memory: Memory, history: History | None) -> None:
    """Store a step that was just learned from."""
    if history is not None:
        n, at = history.S.shape[0], history.at
        at[NOW] = (at[NOW] + 1) % n
        at[KEPT] = min(at[KEPT] + 1, n - 1)
        keep_states(memory, history.S[at[NOW]])
        copy_into(history.seen[at[NOW]], memory.previous)
        history.action[at[NOW]], history.reward[at[NOW]] = experience.action, experience.reward


def check_late(late: NDArray[np.int64], steps_ago: int, history: History) -> None:
    """Refuse late values that contradict what was seen in time."""
    if steps_ago <= history.at[KEPT]:
        seen = history.seen[(history.at[NOW] - steps_ago) % len(history.seen)]
        j = first_of((late >= 0) & (seen >= 0) & (late != seen))
        if j is not None:
            raise ValueError(
                f"component {j} is {late[j]} by the late values; {steps_ago} steps ago it was seen as {seen[j]}"
            )


def fill_history(history: History, arrays: Arrays, limits: Limits) -> None:
    """Load a history from a file; refuse values out of bounds."""
    n, last = history.S.shape[0], np.array(limits.sizes) - 1
    bounds = {
        "S": (limits.least_state, limits.n_states - 1),
        "seen": (MISSING, last),
        "action": (0, limits.n_actions - 1),
        "reward": (-MAX_REWARD, MAX_REWARD),
        "at": (0, n - 1),
    }
    for name, (low, high) in bounds.items():
        own = getattr(history, name)
        own[...] = savefile.take(arrays, f"history_{name}", str(own.dtype), own.shape, low, high)
