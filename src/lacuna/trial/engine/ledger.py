"""Every decision of a trial in arrays, a row for each: its participant, its transition, and what was learned."""

from __future__ import annotations

from math import isnan

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import NO_STATE
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.savefile import Arrays, take
from lacuna.kernels.space import MISSING
from lacuna.trial.engine.steps import Steps

HAS_NEXT, ENDS, TAUGHT, CREDITED, CLOSED, ABSENT, OUTSIDE, BY_DEFAULT, SHOWN, NOT_SHOWN = (1 << i for i in range(10))
"""Flags of a decision: its next context has arrived; it is the last of its participant; its transition was counted;
its reward was taken in; its reward will never be taken in; no request came; it is excluded from learning, as a
fall-back is; its reward is the default; it was delivered; it was not delivered."""

_NOT_OPEN = CREDITED | CLOSED | ABSENT | OUTSIDE

_FIRST_ROWS = 64
MAX_T = 2**53
"""The largest decision point, and the largest time in milliseconds: exact in every reader of JSON."""


class Ledger:
    """The decisions of a trial, in the order in which they were made.

    Parameters
    ----------
    K, d
        Number of pathways and of components.
    """

    def __init__(self, K: int, d: int) -> None:
        self.n = 0
        self._K, self._d = K, d
        self.steps: Steps
        self.reported: NDArray[np.float64]
        self._allot(_FIRST_ROWS)

    def _allot(self, rows: int) -> None:
        """Allocate arrays for so many rows, and copy the rows in use."""
        K, d = self._K, self._d
        S, S_next = (np.full((rows, K), NO_STATE, dtype=np.int32) for _ in range(2))
        previous, seen = (np.full((rows, d), MISSING, dtype=np.int32) for _ in range(2))
        action, ends = np.zeros(rows, dtype=np.int32), np.zeros(rows, dtype=np.bool_)
        pairs = np.zeros(rows, dtype=np.int32)
        fresh = Steps(S, S_next, previous, seen, action, np.full(rows, np.nan), ends, pairs)
        person, t, at, revision, flags = (np.zeros(rows, dtype=np.int64) for _ in range(5))
        reported = np.full(rows, np.nan)
        if self.n:
            for name in Steps._fields:
                getattr(fresh, name)[: self.n] = getattr(self.steps, name)[: self.n]
            for new, old in zip((person, t, at, revision, flags), self._about, strict=True):
                new[: self.n] = old[: self.n]
            reported[: self.n] = self.reported[: self.n]
        self.steps, self.reported = fresh, reported
        self.person, self.t, self.at, self.revision, self.flags = person, t, at, revision, flags

    @property
    def _about(self) -> tuple[NDArray[np.int64], ...]:
        return self.person, self.t, self.at, self.revision, self.flags

    def add(self, person: int, t: int, at: int, action: int, flags: int = 0) -> int:
        """Add a decision; returns its row."""
        if self.n == self.t.shape[0]:
            self._allot(2 * self.n)
        row, self.n = self.n, self.n + 1
        self.person[row], self.t[row], self.at[row], self.flags[row] = person, t, at, flags
        self.steps.action[row] = action
        return row

    def has(self, row: int, flag: int) -> bool:
        """Whether a decision has one of these flags."""
        return bool(self.flags[row] & flag)

    def mark(self, rows: int | NDArray[np.int64], flag: int) -> None:
        """Set a flag of decisions."""
        self.flags[rows] |= flag

    def end(self, row: int) -> None:
        """Mark the last decision of a participant."""
        self.mark(row, ENDS)
        self.steps.terminated[row] = True

    def reward(self, row: int) -> float | None:
        """The reward of a decision, None if it is not known."""
        reward = float(self.steps.reward[row])
        return None if isnan(reward) else reward

    def report(self, row: int, reward: float | None, delivered: bool | None) -> None:
        """Record a reported reward or delivery, whether or not it is learned from."""
        if reward is not None:
            self.reported[row] = reward
            self.revision[row] += 1
        if delivered is not None:
            self.flags[row] = self.flags[row] & ~(SHOWN | NOT_SHOWN) | (SHOWN if delivered else NOT_SHOWN)

    def knows(self, row: int, reward: float | None, delivered: bool | None) -> bool:
        """Whether the last report said the same."""
        same = delivered is None or self.has(row, SHOWN if delivered else NOT_SHOWN)
        return same and (reward is None or bool(self.reported[row] == reward))

    def uses(self, row: int) -> bool:
        """Whether the last reported reward is learned from, now or later."""
        return self.reward(row) == self.reported[row] and not self.has(row, CLOSED | ABSENT | OUTSIDE | BY_DEFAULT)

    def is_open(self, row: int) -> bool:
        """Whether its reward may still be learned from."""
        return not self.has(row, _NOT_OPEN)

    def is_due(self, row: int) -> tuple[bool, bool]:
        """Whether its reward can be taken in now, and whether its transition can be counted now."""
        flags = int(self.flags[row])
        to_credit = not flags & _NOT_OPEN and bool(flags & (HAS_NEXT | ENDS)) and self.reward(row) is not None
        return to_credit, flags & (HAS_NEXT | TAUGHT) == HAS_NEXT

    def to_teach(self) -> NDArray[np.int64]:
        """Rows whose transition is due to be counted."""
        flags = self.flags[: self.n]
        return np.flatnonzero((flags & HAS_NEXT > 0) & (flags & TAUGHT == 0))

    def to_credit(self) -> NDArray[np.int64]:
        """Rows whose reward is due to be taken in."""
        flags, reward = self.flags[: self.n], self.steps.reward[: self.n]
        open_ = flags & _NOT_OPEN == 0
        return np.flatnonzero(open_ & (flags & (HAS_NEXT | ENDS) > 0) & ~np.isnan(reward))

    @property
    def waits(self) -> NDArray[np.bool_]:
        """Whether each row is open and has no reward."""
        open_: NDArray[np.bool_] = self.flags[: self.n] & _NOT_OPEN == 0
        return open_ & np.isnan(self.steps.reward[: self.n])

    def without_reward(self, before: int) -> NDArray[np.int64]:
        """Open rows of decisions made before a time that have no reward."""
        return np.flatnonzero(self.waits & (self.at[: self.n] < before))

    def credited(self) -> NDArray[np.int64]:
        """Rows whose reward was taken in."""
        return np.flatnonzero(self.flags[: self.n] & CREDITED)

    def to_arrays(self) -> Arrays:
        """All of it as arrays, for a file."""
        n, known = self.n, ~np.isnan(self.steps.reward[: self.n])
        names = ("person", "t", "at", "revision", "flags")
        arrays: Arrays = {f"ledger_{name}": own[:n] for name, own in zip(names, self._about, strict=True)}
        arrays |= {
            f"ledger_{name}": getattr(self.steps, name)[:n]
            for name in ("S", "S_next", "previous", "seen", "action", "pairs")
        }
        arrays |= {"ledger_rewarded": np.flatnonzero(known), "ledger_reward": self.steps.reward[:n][known]}
        return arrays | {"ledger_reported": self.reported[:n][self.revision[:n] > 0]}

    def from_arrays(self, arrays: Arrays, people: int, rows: int, n_actions: int, sizes: tuple[int, ...]) -> None:
        """Fill an empty ledger from the arrays of an untrusted file; `rows` is the number of rows of Q."""
        n = arrays["ledger_t"].shape[0]
        self._allot(max(_FIRST_ROWS, n))
        self.n = n
        last = np.array(sizes) - 1
        limits = {"person": (0, people - 1), "t": (0, MAX_T), "at": (0, MAX_T), "revision": (0, MAX_T)}
        for name, (low, high) in (limits | {"flags": (0, 2 * NOT_SHOWN - 1)}).items():
            getattr(self, name)[:n] = take(arrays, f"ledger_{name}", "int64", (n,), low, high)
        steps, K, d = self.steps, self._K, self._d
        steps.S[:n] = take(arrays, "ledger_S", "int32", (n, K), NO_STATE, rows - 1)
        steps.S_next[:n] = take(arrays, "ledger_S_next", "int32", (n, K), NO_STATE, rows - 1)
        steps.previous[:n] = take(arrays, "ledger_previous", "int32", (n, d), MISSING, last)
        steps.seen[:n] = take(arrays, "ledger_seen", "int32", (n, d), MISSING, last)
        steps.action[:n] = take(arrays, "ledger_action", "int32", (n,), 0, n_actions - 1)
        steps.pairs[:n] = take(arrays, "ledger_pairs", "int32", (n,), 0, K * K)
        steps.terminated[:n] = self.flags[:n] & ENDS > 0
        rewarded = take(arrays, "ledger_rewarded", "int64", (None,), 0, n - 1)
        steps.reward[rewarded] = take(arrays, "ledger_reward", "float64", rewarded.shape, -MAX_REWARD, MAX_REWARD)
        told = np.flatnonzero(self.revision[:n])
        self.reported[told] = take(arrays, "ledger_reported", "float64", told.shape, -MAX_REWARD, MAX_REWARD)
