"""Requests of an app: checked, and converted to the form in which the log stores them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from lacuna.agent.qlearning import MAX_REWARD
from lacuna.trial.engine.ledger import MAX_T
from lacuna.trial.file.context import MAX_TEXT, Reading
from lacuna.trial.file.event_kinds import IF_RESTRICTED
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import canonical, encode, parse
from lacuna.validation import nearest, shown, whole_number

MAX_EXTRA = 4096
"""The largest `extra` of a request, in bytes."""


@dataclass(frozen=True)
class Decision:
    """The answer to a request for a decision.

    Attributes
    ----------
    action
        What to do.
    prob
        The probability with which each action was drawn: exact, and adding up to 1.
    policy
        ``"learned"``, ``"burn-in"``, ``"given"``, or ``"fallback"`` if the learned policy could not be used.
    randomised
        Whether the action was drawn at random.
    version
        Number of the update on which it is based; None for a fall-back.
    seq
        Number of its event in the log.
    reason
        Why it is a fall-back.
    repeated, differs
        Whether the request is a repetition, and whether it differs from the first one: the first answer is repeated.
    """

    action: str
    prob: Mapping[str, float]
    policy: str
    randomised: bool
    version: int | None
    seq: int
    reason: str | None
    repeated: bool = False
    differs: bool = False

    @classmethod
    def of(cls, body: Mapping[str, Any], file: TrialFile, *, repeated: bool = False, differs: bool = False) -> Decision:
        """Read an answer from the body of its event."""
        prob = body["prob"]
        return cls(
            file.actions[body["action"]], {} if prob is None else dict(zip(file.actions, prob, strict=True)),
            body["policy"], bool(body.get("randomised", False)), body.get("version"), body["seq"],
            body.get("reason"), repeated, differs,
        )  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The answer to a reward that was reported.

    Attributes
    ----------
    used
        Whether it is learned from; a reward for a closed decision is only logged.
    revision
        How often this reward has been reported.
    repeated
        Whether it equals the last report, so nothing was logged.
    """

    used: bool
    revision: int
    repeated: bool = False


def read_truth(what: str, value: object) -> bool:
    """Return a bool, or raise an error."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{what} is {shown(value)}; it must be true or false")
    return bool(value)


def read_group(group: Any, file: TrialFile) -> str | None:
    """Return the group of a participant, or raise an error; only pools by group require one."""
    if (group is None and file.pool != "group") or (
        isinstance(group, str) and group.isprintable() and 1 <= len(group) <= MAX_TEXT
    ):
        return group
    more = "" if file.pool == "group" else ", or None"
    raise ValueError(f"the group is {shown(group)}; it must be a text of 1 to {MAX_TEXT} printable characters{more}")


def read_point(t: Any) -> int:
    """Return the number of a decision point, or raise an error."""
    return whole_number("t", t, 0, MAX_T)


def read_allowed(allowed: Any, file: TrialFile) -> list[int]:
    """Return the numbers of the allowed actions: all, those of a set of the trial file, or those listed."""
    if allowed is None:
        return list(range(len(file.actions)))
    if isinstance(allowed, str):
        if allowed not in file.sets:
            known = ", ".join(map(shown, file.sets)) or "none"
            raise ValueError(
                f"allowed is {shown(allowed)}{nearest(allowed, file.sets)}; it must be a set of the trial file: {known}"
            )
        return sorted(file.sets[allowed])
    if not isinstance(allowed, Sequence) or not allowed:
        raise ValueError(f"allowed is {shown(allowed)}; it must be a list of actions, or the name of a set")
    return sorted({read_action("an allowed action", action, file) for action in allowed})


def read_action(what: str, action: Any, file: TrialFile) -> int:
    """Return the number of an action, or raise an error."""
    if not isinstance(action, str) or action not in file.actions:
        known = ", ".join(map(shown, file.actions))
        raise ValueError(f"{what} is {shown(action)}{nearest(action, file.actions)}; it must be one of {known}")
    return file.actions.index(action)


def read_reward(reward: Any, file: TrialFile) -> float | None:
    """Return a reward, or raise an error; None is one that was not observed."""
    if reward is None:
        return None
    low, high = file.reward.range or (-MAX_REWARD, MAX_REWARD)
    # A number of NumPy as one of Python, for nothing else is compared without a warning.
    reward = reward.item() if isinstance(reward, np.number) else reward
    real = not isinstance(reward, bool) and isinstance(reward, int | float)
    if not real or not low <= reward <= high or not isfinite(reward):
        raise ValueError(f"the reward is {shown(reward)}; it must be a number between {low:g} and {high:g}")
    return float(reward)


def read_prob(prob: Any, file: TrialFile) -> list[float] | None:
    """Return the probabilities with which an action was drawn elsewhere, or raise an error; None if unknown."""
    if prob is None:
        return None
    if isinstance(prob, Mapping):
        prob = [prob.get(action) for action in file.actions]
    valid = isinstance(prob, Sequence) and len(prob) == len(file.actions)
    if not valid or not all(isinstance(x, int | float) and not isinstance(x, bool) and 0 <= x <= 1 for x in prob):
        raise ValueError(f"prob is {shown(prob)}; it must be a probability for each of {len(file.actions)} actions")
    if abs(sum(prob) - 1) > 1e-9:
        raise ValueError(f"prob is {shown(prob)} and adds up to {sum(prob):.12g}; it must add up to 1")
    return [float(x) for x in prob]


def read_extra(extra: Any, what: str = "extra") -> dict[str, Any]:
    """Return the `extra` of a request, or raise an error; long texts are refused, to keep free text out of the log."""
    if extra is None:
        return {}
    if not isinstance(extra, Mapping) or not all(isinstance(key, str) for key in extra):
        raise ValueError(f"{what} is {shown(extra)}; it must be a table of names and values")
    for value in _texts(dict(extra)):
        if len(value) > MAX_TEXT:
            raise ValueError(f"{what} holds a text of {len(value)} characters; {MAX_TEXT} are allowed")
    content = canonical(dict(extra))
    if len(content) > MAX_EXTRA:
        raise ValueError(f"{what} has {len(content)} bytes; {MAX_EXTRA} are allowed")
    # A copy, for the app may change what it holds before it is written.
    return parse(content)


def _texts(value: Any, depth: int = 0) -> list[str]:
    """All texts in a value, keys included; the log refuses deeper nesting."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping) and depth < 8:
        return [text for pair in value.items() for part in pair for text in _texts(part, depth + 1)]
    if isinstance(value, list | tuple) and depth < 8:
        return [text for part in value for text in _texts(part, depth + 1)]
    return []


def read_app_time(app_at: Any) -> str | None:
    """Return the time that an app reports, as a short text; it is logged and never used."""
    if app_at is None:
        return None
    if not isinstance(app_at, str) or len(app_at) > MAX_TEXT:
        raise ValueError(f"app_at is {shown(app_at)}; it must be a text of at most {MAX_TEXT} characters")
    return app_at


def read_more(extra: Any) -> dict[str, Any]:
    """Return the `extra` of a request, with the app's own time taken out of it."""
    found = read_extra(extra)
    return {"app_at": read_app_time(found.pop("app_at", None)), "extra": found}


def restrictions(asked: Mapping[str, Any], file: TrialFile) -> dict[str, Any]:
    """The part of a request that restricts the actions; empty if it allows all of them."""
    whole = {"available": True, "allowed": read_allowed(None, file)}
    found = {name: asked[name] for name in IF_RESTRICTED}
    return {} if found == whole else found


def request_digest(reading: Reading, asked: Mapping[str, Any]) -> str:
    """First 8 bytes of SHA-256 of a request, which show whether a repeated request differs."""
    whole = {"context": reading.raw, "invalid": list(reading.invalid), **asked}
    return hashlib.sha256(encode(whole)).hexdigest()[:16]
