"""What each kind of event in the log of a trial holds: fields, with the types and ranges that a trial file allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lacuna.agent.qlearning import MAX_REWARD
from lacuna.trial.file.context import MAX_EXACT, MAX_TEXT
from lacuna.trial.file.trial_file import TrialFile
from lacuna.validation import shown

IF_RESTRICTED = ("available", "allowed")
"""What comes from outside, and is in a `fallback` only if not every action could be chosen."""

MAX_REASON = 500
"""Most characters of a reason in the log."""

_SMALL, _LONG = 64, 200
_KEY_TEXT = MAX_TEXT + len("group:")
_MOST_DIGITS = 10**_SMALL
_SUM = 1e-9


@dataclass(frozen=True, slots=True)
class Field:
    """The values that a field can have.

    Attributes
    ----------
    fits
        Whether it can have a value. Types count: true is not 1, 1 is not 1.0, and "1" is neither.
    wanted
        The same in words.
    """

    fits: Callable[[Any], bool]
    wanted: str

    @property
    def or_null(self) -> Field:
        """The same, or null."""
        fits = self.fits
        return Field(lambda value: value is None or fits(value), f"{self.wanted}, or null")


def _whole(low: int, high: int) -> Field:
    return Field(lambda x: type(x) is int and low <= x <= high, f"a whole number between {low} and {high}")


def _real(low: float, high: float) -> Field:
    return Field(
        lambda x: type(x) is float and low <= x <= high, f"a number between {low:g} and {high:g}, with a point"
    )


def _text(most: int, least: int = 0) -> Field:
    return Field(lambda x: type(x) is str and least <= len(x) <= most, f"a text of {least} to {most} characters")


def _line(most: int) -> Field:
    return Field(
        lambda x: type(x) is str and 1 <= len(x) <= most and x.isprintable(),
        f"a text of 1 to {most} printable characters",
    )


def _digits(n: int) -> Field:
    matches = re.compile(f"[0-9a-f]{{{n}}}").fullmatch
    return Field(lambda x: type(x) is str and matches(x) is not None, f"{n} hexadecimal digits, in small letters")


def _word(*words: str) -> Field:
    return Field(lambda x: type(x) is str and x in words, f"{'one of ' if len(words) > 1 else ''}{', '.join(words)}")


def _listed(part: Field, of: str, n: int | None = None) -> Field:
    fits, wanted = part.fits, f"a list of {of if n is None else f'{n} {of}'}, each {part.wanted}"
    return Field(lambda x: type(x) is list and (n is None or len(x) == n) and all(map(fits, x)), wanted)


def _ascending(part: Field, of: str) -> Field:
    fits = _listed(part, of).fits
    return Field(
        lambda x: fits(x) and len(x) > 0 and all(a < b for a, b in pairwise(x)),
        f"an ascending list of {of}, each {part.wanted}",
    )


def _table(part: Field, of: str) -> Field:
    fits = part.fits
    return Field(lambda x: type(x) is dict and all(map(fits, x.values())), f"a table of {of}, each {part.wanted}")


def _is_scalar(value: Any) -> bool:
    """Whether a context can hold a value; floats are finite, as the log has no others."""
    if type(value) is str:
        return len(value) <= MAX_TEXT
    return type(value) in (bool, float) or (type(value) is int and -_MOST_DIGITS < value < _MOST_DIGITS)


_SCALAR = Field(_is_scalar, f"a text of at most {MAX_TEXT} characters, true, false or a number").or_null
_TRUTH = Field(lambda x: type(x) is bool, "true or false")
_NULL = Field(lambda x: x is None, "null")
_ANY_TABLE = Field(lambda x: type(x) is dict, "a table")
COUNT, _DIGEST, _SHORT_DIGEST, _PSEUDONYM = _whole(0, MAX_EXACT), _digits(64), _digits(16), _digits(32)
_VERSION = Field(
    lambda x: (type(x) is str and len(x) <= _LONG and x.isprintable()) or COUNT.fits(x),
    f"a whole number or a text of at most {_LONG} printable characters",
)
_PROVENANCE = Field(
    lambda x: _table(_VERSION, "versions").fits(x) and type(x.get("kernels")) is str,
    "a table of versions, that of the kernels among them",
)
_POOLS = _table(_SHORT_DIGEST, "digests")
_MAPPING = Field(
    lambda x: type(x) is dict and all(type(names) is dict and all(type(n) is str for n in names.values())
                                      for names in x.values()),
    "tables of old and new names",
).or_null  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """The fields of one kind of event, besides its number, kind and time.

    Attributes
    ----------
    inputs, outputs
        What comes from outside, and what is computed from it.
    """

    inputs: Mapping[str, Field]
    outputs: Mapping[str, Field]

    def __or__(self, more: Mapping[str, Field]) -> Kind:
        return Kind({**self.inputs, **more}, self.outputs)


def kinds_of(file: TrialFile) -> dict[str, Kind]:
    """Return every kind of event, as a trial file bounds it."""
    A, components, reward = len(file.actions), file.context.components, file.reward
    sizes, names = [component.size for component in components], set(file.context.names)
    low, high = reward.range or (-MAX_REWARD, MAX_REWARD)
    action, value, share = _whole(0, A - 1), _real(low, high), _real(0.0, 1.0)
    shares = _listed(share, "probabilities", A)
    # What was computed is for a replay to compare; what came from outside must make sense by itself.
    told = Field(lambda x: shares.fits(x) and abs(sum(x) - 1) <= _SUM, f"{shares.wanted}, adding up to 1")
    context = Field(
        lambda x: type(x) is dict and x.keys() == names and all(map(_SCALAR.fits, x.values())),
        f"a table of {', '.join(map(shown, file.context.names))}, each {_SCALAR.wanted}",
    )
    coded = Field(
        lambda x: type(x) is list and len(x) == len(sizes)
        and all(type(one) is int and -1 <= one < size for one, size in zip(x, sizes, strict=True)),
        f"a list of {len(sizes)} codes, each from -1 to the last of its component",
    )  # fmt: skip
    allowed, small, pool = _ascending(action, "actions"), _text(_SMALL), _text(_KEY_TEXT)
    group = _line(MAX_TEXT) if file.pool == "group" else _line(MAX_TEXT).or_null
    default = Field(lambda x: x is None or (type(x) is float and x == reward.default), f"null or {reward.default}")
    reason, gap = _line(MAX_REASON), _whole(0, file.max_gap)
    who, when = {"p": _PSEUDONYM}, {"p": _PSEUDONYM, "t": COUNT}
    asked = when | {
        "context": context, "invalid": _listed(small, "names"), "app_at": small.or_null, "extra": _ANY_TABLE,
        "request": _SHORT_DIGEST,
    }  # fmt: skip
    read = {"coded": coded, "gap": gap, "pool": pool, "version": COUNT, "basis": _SHORT_DIGEST}
    drawn = {"action": action, "prob": shares, "u": share.or_null, "randomised": _TRUTH}
    return {
        "begin": Kind(
            {"file": _text(MAX_EXACT), "digest": _DIGEST, "secret": _DIGEST, "draws": _DIGEST,
             "provenance": _PROVENANCE, "numbers": _ANY_TABLE}, {}),
        "enrol": Kind(who | {"group": group, "ghost": _TRUTH}, {"pool": pool}),
        "decision": Kind(
            asked | {"available": _TRUTH, "allowed": allowed},
            read | drawn | {"policy": _word("learned", "burn-in"), "reason": _NULL}),
        "given": Kind(
            asked | {"action": action, "prob": told.or_null, "fallback": _TRUTH}, read | {"policy": _word("given")}),
        "fallback": Kind(
            asked | {"reason": _word("unknown", "ended", "past", "invalid")},
            drawn | {"policy": _word("fallback")}),
        "outcome": Kind(
            when | {"reward": value.or_null, "delivered": _TRUTH.or_null, "app_at": small.or_null},
            {"used": _TRUTH, "revision": COUNT}),
        "close": Kind(when | {"why": _word("wait", "max_open", "gap")}, {"default": default}),
        "end": Kind(who | {"how": _word("terminated", "withdrawn")}, {"last": _whole(-1, MAX_EXACT)}),
        "rebuild": Kind({}, {"pools": _POOLS}),
        "update": Kind(
            {"key": _line(_SMALL).or_null}, {"version": COUNT, "taught": COUNT, "credited": COUNT, "pools": _POOLS}),
        "snapshot": Kind({"of": COUNT, "digest": _DIGEST}, {}),
        "note": Kind(when | {"text": small, "request": _SHORT_DIGEST}, {}),
        "source": Kind({"digest": _DIGEST, "name": _text(_LONG), "mapping": _MAPPING}, {}),
        "upgrade": Kind({"provenance": _PROVENANCE, "reason": reason.or_null, "state": _DIGEST.or_null}, {}),
        "redact": Kind(
            {"of": _ascending(_whole(1, MAX_EXACT), "events"), "reason": reason,
             "sources": _listed(_DIGEST, "digests"), "state": _DIGEST}, {}),
    }  # fmt: skip
