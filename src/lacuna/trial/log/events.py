"""The one reader of the events in the log of a trial, and their times.

A chain of hashes shows that a log was changed, but whoever changes it can compute a new chain. So nothing is done with
an event before the reader has taken it: its fields must have the types and lie in the ranges that the trial file allows
(`Form`), and what it refers to must be in the log before it (`Reader`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from lacuna.trial.file.event_kinds import COUNT, IF_RESTRICTED, Field, Kind, kinds_of
from lacuna.trial.file.trial_file import TrialFile, TrialFileError
from lacuna.trial.log.chained_log import Entry, LogError, check, checked, describe
from lacuna.validation import shown

NEUTRAL = frozenset({"note", "redact", "snapshot", "source", "upgrade"})
"""The kinds that do not change the state of a trial."""

ANSWERS = ("decision", "given", "fallback")
"""The kinds that answer a decision point; there is one at each."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


def now() -> str:
    """Return the current time as the log writes it: UTC, to the millisecond."""
    seconds, part = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_to_the_second(seconds)}.{part:03d}Z"


@lru_cache(maxsize=1)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


@lru_cache(maxsize=1)
def milliseconds(at: str) -> int:
    """Convert a time of the log to milliseconds since 1970, or raise an error.

    Examples
    --------
    >>> milliseconds("1970-01-02T00:00:00.001Z")
    86400001
    >>> milliseconds("1970-01-02T00:00:00+01:00")
    Traceback (most recent call last):
    ValueError: the time is '1970-01-02T00:00:00+01:00'; it must be like '2026-11-16T18:00:02.113Z', from 1970 on
    """
    found = -1
    if isinstance(at, str) and _TIME.fullmatch(at) is not None:
        try:
            found = round(datetime.fromisoformat(at).timestamp() * 1000)
        except ValueError:  # e.g. the 30th of February
            found = -1
    if found < 0:
        raise ValueError(f"the time is {shown(at)}; it must be like '2026-11-16T18:00:02.113Z', from 1970 on")
    return found


def _is_time(at: object) -> bool:
    try:
        return isinstance(at, str) and milliseconds(at) >= 0
    except ValueError:
        return False


class Form:
    """The form of the events of one trial: which fields each kind has, and which values they can have.

    Parameters
    ----------
    file
        The trial file.
    """

    EVERY: Mapping[str, Field] = {
        "seq": COUNT,
        "kind": Field(lambda kind: isinstance(kind, str), "a text"),
        "at": Field(_is_time, "a time like '2026-11-16T18:00:02.113Z', from 1970 on"),
    }
    """The fields of every event."""

    def __init__(self, file: TrialFile) -> None:
        self.kinds = kinds_of(file)
        restricted = {name: self.kinds["decision"].inputs[name] for name in IF_RESTRICTED}
        self._restricted = self.kinds["fallback"] | restricted
        self._fields = {
            id(kind): {**self.EVERY, **kind.inputs, **kind.outputs} for kind in (*self.kinds.values(), self._restricted)
        }

    def check(self, entry: Entry, content: Mapping[str, Any]) -> Kind:
        """Return the kind of an event, or raise a `LogError` that names the first field that is wrong."""
        kind = self.kinds.get(content["kind"])
        if kind is None:
            raise _wrong(entry, content, f"its kind is {shown(content['kind'])}, which this version does not know")
        if (entry.seq == 0) != (content["kind"] == "begin"):
            raise _wrong(entry, content, "a log has one event of the kind begin, and starts with it")
        if content["kind"] == "fallback" and any(name in content for name in IF_RESTRICTED):
            kind = self._restricted
        fields = self._fields[id(kind)]
        for name, field in fields.items():
            if name not in content:
                raise _wrong(entry, content, f"it lacks {name!r}")
            if not field.fits(content[name]):
                raise _wrong(entry, content, f"{name} is {shown(content[name])}; it must be {field.wanted}")
        if len(content) > len(fields):
            unknown = min(content.keys() - fields.keys())
            raise _wrong(entry, content, f"it holds {shown(unknown)}, which no {content['kind']} has")
        return kind


def _wrong(entry: Entry, content: Mapping[str, Any], what: str) -> LogError:
    return LogError(f"{describe(entry, dict(content))}: {what}", entry.seq)


def begin_file(content: Mapping[str, Any] | None) -> TrialFile:
    """Return the trial file that the first event of a log holds, or raise an error."""
    if content is None or content["kind"] != "begin":
        raise LogError("event 0: it is not the beginning of a trial", 0)
    try:
        file = TrialFile.parse(str(content.get("file")), "the trial file in the log")
    except TrialFileError as error:
        raise LogError(f"event 0: {'; '.join(str(error).splitlines())}", 0) from None
    if content.get("digest") != file.digest:
        raise LogError(f"event 0: digest is {shown(content.get('digest'))} in the log and {file.digest!r} here", 0)
    return file


def file_of(entries: Iterable[Entry]) -> TrialFile:
    """Return the trial file from the first event of a log."""
    first = next(iter(entries), None)
    return begin_file(None if first is None else check(first))


class Reader:
    """The reader of a log: refuses the first event that this trial cannot have written there.

    Every field has its type and its range. An event refers only to participants, decisions and events before it. If
    bodies were erased, it may refer to them. Only a replay can tell whether the values are those that were computed.

    Parameters
    ----------
    file
        The trial file.

    Attributes
    ----------
    erased
        The events without a body that no `redact` event has named so far.
    """

    def __init__(self, file: TrialFile) -> None:
        self.form, self.erased = Form(file), set[int]()
        self._file = file
        self._complete = True
        """Whether every event so far has its body."""
        self._last: dict[str, int] = {}
        """The last decision point of every participant who is enrolled; -1 before the first."""
        self._ended: set[str] = set()
        self._points: dict[tuple[str, int], bool] = {}
        """The decision points of every participant, and whether there was a request."""
        self._about_nobody: set[int] = set()
        """Events that hold nothing of a participant, so that they cannot be erased."""
        self._updates, self._kernels = 0, ""
        self._order: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
            "begin": self._begin, "enrol": self._enrol, "decision": self._decision, "given": self._decision,
            "fallback": self._answer, "outcome": self._later, "close": self._later, "note": self._later,
            "end": self._end, "update": self._update, "snapshot": self._snapshot, "source": self._source,
            "upgrade": self._upgrade, "redact": self._redact,
        }  # fmt: skip

    def read(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, dict[str, Any] | None]]:
        """Yield the events from event 0 on with their bodies, None for an erased one; the chain is verified."""
        for entry, content in checked(entries):
            self.take(entry, content)
            yield entry, content

    def take(self, entry: Entry, content: Mapping[str, Any] | None) -> None:
        """Take the next event, or raise a `LogError` that says why it cannot be there."""
        if content is None:
            self._complete = False
            self.erased.add(entry.seq)
            return
        self.form.check(entry, content)
        if "p" not in content:
            self._about_nobody.add(entry.seq)
        order = self._order.get(content["kind"])
        if order is not None and (reason := order(content)) is not None:
            raise _wrong(entry, content, reason)

    def _begin(self, body: Mapping[str, Any]) -> None:
        self._kernels = body["provenance"]["kernels"]

    def _enrol(self, body: Mapping[str, Any]) -> str | None:
        if body["p"] in self._last:
            return "this participant is enrolled already"
        self._last[body["p"]] = -1
        return None

    def _answer(self, body: Mapping[str, Any]) -> str | None:
        key = body["p"], body["t"]
        if self._points.get(key):
            return "it is decided already"
        self._points[key] = True
        return None

    def _decision(self, body: Mapping[str, Any]) -> str | None:
        p, t, gap = body["p"], body["t"], body["gap"]
        last = self._last.get(p)
        if gap > t:
            return f"gap is {gap}; there are {t} decision points before it"
        if self._complete:
            if last is None:
                return "this participant is not enrolled"
            if p in self._ended:
                return "this participant has ended"
            if gap != 0 and (last < 0 or gap != t - last - 1):
                return f"gap is {gap}; the last decision was at t {last}"
            if self._file.update_every == "batch" and body["version"] != self._updates:
                return f"version is {body['version']}; there were {self._updates} updates before it"
        if last is not None and t <= last:
            return f"t is {t}; t {last} was decided before"
        for missed in range(t - gap, t):
            self._points.setdefault((p, missed), False)
        self._last[p] = t
        if self._file.horizon is not None and t >= self._file.horizon - 1:
            self._ended.add(p)
        return self._answer(body)

    def _later(self, body: Mapping[str, Any]) -> str | None:
        known = (body["p"], body["t"]) in self._points
        return None if known or not self._complete else f"there is no decision at t {body['t']} before it"

    def _end(self, body: Mapping[str, Any]) -> str | None:
        p = body["p"]
        if self._complete and (p not in self._last or p in self._ended):
            return "this participant has ended" if p in self._ended else "this participant is not enrolled"
        self._ended.add(p)
        return None

    def _update(self, body: Mapping[str, Any]) -> str | None:
        before, self._updates = self._updates, body["version"]
        if self._complete and self._updates != before + 1:
            return f"version is {body['version']}; the last update was {before}"
        return None

    def _snapshot(self, body: Mapping[str, Any]) -> str | None:
        return None if body["of"] == body["seq"] - 1 else f"of is {body['of']}; it must be the event before it"

    def _source(self, body: Mapping[str, Any]) -> str | None:
        return None if body["seq"] == 1 else "an earlier trial is learned from at event 1 only"

    def _upgrade(self, body: Mapping[str, Any]) -> str | None:
        before, self._kernels = self._kernels, body["provenance"]["kernels"]
        if self._kernels == before:
            return f"it comes from the kernels {before} and leads to the same ones, so nothing was upgraded"
        if body["state"] is not None and body["reason"] is None:
            return "it carries the state over and gives no reason"
        return None

    def _redact(self, body: Mapping[str, Any]) -> str | None:
        named: Collection[int] = body["of"]
        if (last := body["of"][-1]) >= body["seq"]:
            return f"of names event {last}, which is not before it"
        if wrong := self._about_nobody.intersection(named):
            return f"of names event {min(wrong)}, which holds nothing of a participant"
        self.erased.difference_update(named)
        return None
