"""The history of every decision point, reconstructed from the log alone.

The log holds the decisions and the reported rewards. The later events determine when a decision was credited: with
``update = "batch"`` at the first update after its reward and its next context, or end, are known; with ``"each"`` at
once. So neither the secret nor a learner is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import START, Entry, Head
from lacuna.trial.log.events import Reader, milliseconds


@dataclass
class Point:
    """A decision point of one participant: the decision, and what followed."""

    p: str
    t: int
    seq: int
    policy: str
    action: int
    prob: list[float] | None
    at: int | None = None
    """Milliseconds since 1970; None if there was no request."""
    app_at: str | None = None
    available: bool = True
    randomised: bool = False
    version: int | None = None
    reason: str | None = None
    in_study: bool = True
    context: Mapping[str, Any] = field(default_factory=dict)
    invalid: frozenset[str] = frozenset()
    reward: float | None = None
    """The last reported reward, used or not."""
    revisions: int = 0
    delivered: bool | None = None
    closed: str | None = None
    ended: str | None = None
    used: float | None = None
    """The reward that is, or will be, learned from."""
    learned: float | None = None
    by_default: bool = False
    has_next: bool = False
    """Whether the next context has arrived, or this is the last decision of the participant."""
    is_credited: bool = False
    never: bool = False
    """Whether its reward can no longer be learned from, unless it already was."""

    @property
    def is_due(self) -> bool:
        """Whether its reward can be credited now."""
        return not self.is_credited and not self.never and self.has_next and self.used is not None


@dataclass
class Participant:
    """A participant in the log."""

    group: str | None = None
    pool: str | None = None
    is_enrolled: bool = False
    is_ghost: bool = False
    last_t: int = -1
    last: Point | None = None
    """The decision whose next context is awaited."""
    ended: str | None = None


class History:
    """All decision points of a log, its participants, and the numbers of events.

    Parameters
    ----------
    entries
        The log from event 0 on; the chain is verified on the way.
    file
        The trial file.

    Attributes
    ----------
    points
        By participant and number of the decision point, in the order of the log.
    participants
        By pseudonym.
    kinds
        The number of events of each kind.
    redacted
        How many events were redacted. They are skipped, so their effects are missing.
    """

    def __init__(self, entries: Iterable[Entry], file: TrialFile) -> None:
        self.file = file
        self.points: dict[tuple[str, int], Point] = {}
        self.participants: dict[str, Participant] = {}
        self.kinds: dict[str, int] = {}
        self.redacted = 0
        self.head: Head = START
        self.version = 0
        self.updated: str | None = None
        """The time of the last update."""
        self._waiting: list[Point] = []
        """Decisions that the next update may credit."""
        self._corrected: list[Point] = []
        """Decisions whose reward was corrected after a planner took it in; a rebuild replaces it."""
        self._take: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "enrol": self._enrol, "decision": self._decision, "given": self._given, "fallback": self._fallback,
            "outcome": self._outcome, "close": self._close, "end": self._end, "rebuild": self._rebuild,
            "update": self._update,
        }  # fmt: skip
        for entry, body in Reader(file).read(entries):
            self.head = entry.head
            if body is None:
                self.redacted += 1
                continue
            kind = body["kind"]
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            self._take.get(kind, _pass)(body)
        self._note_ends()

    def in_order(self, *, ghosts: bool = False) -> list[Point]:
        """The decision points by participant and number, without those of ghosts by default."""
        return [
            point
            for (p, _), point in sorted(self.points.items())
            if ghosts or not (p in self.participants and self.participants[p].is_ghost)
        ]

    # --- decisions ---------------------------------------------------------------------------------------------------

    def _enrol(self, body: Mapping[str, Any]) -> None:
        who = self._participant(body["p"])
        who.group, who.pool = body["group"], body["pool"]
        who.is_enrolled, who.is_ghost = True, body["ghost"]

    def _participant(self, p: str) -> Participant:
        return self.participants.setdefault(p, Participant())

    def _decision(self, body: Mapping[str, Any]) -> None:
        point = self._point(body, prob=body["prob"], randomised=body["randomised"])
        point.available, point.version = body["available"], body["version"]
        self._arrive(body, point)

    def _given(self, body: Mapping[str, Any]) -> None:
        prob, action = body["prob"], body["action"]
        # Drawn elsewhere, but randomised if another action was possible.
        point = self._point(body, prob=prob, randomised=prob is not None and 0 < prob[action] < 1)
        point.version, point.reason = body["version"], "fallback" if body["fallback"] else None
        self._arrive(body, point)

    def _fallback(self, body: Mapping[str, Any]) -> None:
        p, t = body["p"], body["t"]
        known = self.points.get((p, t))
        if known is not None and known.policy != "absent":
            return
        who = self.participants.get(p)
        point = self._point(body, prob=body["prob"], randomised=body["randomised"])
        point.available = known is None and body.get("available", True)
        point.reason, point.never = body["reason"], True
        enrolled = who is not None and who.is_enrolled
        point.in_study = enrolled and who is not None and (who.ended is None or t <= who.last_t)
        if known is not None:
            point.reward, point.revisions, point.delivered = known.reward, known.revisions, known.delivered
        self.points[p, t] = point

    def _point(self, body: Mapping[str, Any], *, prob: list[float] | None, randomised: bool) -> Point:
        return Point(
            body["p"], body["t"], body["seq"], body["policy"], body["action"], prob,
            at=milliseconds(body["at"]), app_at=body["app_at"], randomised=randomised,
            context=body["context"], invalid=frozenset(body["invalid"]),
        )  # fmt: skip

    def _arrive(self, body: Mapping[str, Any], point: Point) -> None:
        """Take in a context: the decision before it gets its next context, and the missed ones count as absent."""
        who, absent = self._participant(point.p), self.file.absent
        # The enrolment may have been redacted.
        who.is_enrolled, who.pool = True, body["pool"]
        if who.last is not None and point.t - who.last_t - 1 <= self.file.max_gap:
            self._follow(who.last)
        prob = [float(action == absent) for action in range(len(self.file.actions))]
        for t in range(point.t - body["gap"], point.t):
            missed = Point(point.p, t, point.seq, "absent", absent, prob, available=False, never=True)
            self.points.setdefault((point.p, t), missed)
        self.points[point.p, point.t] = who.last = point
        who.last_t = point.t
        if self.file.horizon is not None and point.t >= self.file.horizon - 1:
            self._terminate(who)

    def _terminate(self, who: Participant) -> None:
        who.ended = "terminated"
        if who.last is not None:
            self._follow(who.last)
            who.last = None

    def _follow(self, point: Point) -> None:
        point.has_next = True
        self._offer(point)

    # --- what happens later ------------------------------------------------------------------------------------------

    def _offer(self, point: Point) -> None:
        """Credit a decision if it is due: at once, or with the next update."""
        if self.file.update_every == "batch":
            self._waiting.append(point)
        elif point.is_due:
            _credit(point)

    def _outcome(self, body: Mapping[str, Any]) -> None:
        point, reward = self.points.get((body["p"], body["t"])), body["reward"]
        if point is None:
            return
        if body["delivered"] is not None:
            point.delivered = body["delivered"]
        if reward is None:
            return
        point.revisions += reward != point.reward
        point.reward = reward
        if body["used"]:
            point.used = reward
            if point.is_credited:
                self._corrected.append(point)
            point.by_default = False
            self._offer(point)

    def _close(self, body: Mapping[str, Any]) -> None:
        point = self.points.get((body["p"], body["t"]))
        if point is not None:
            self._shut(point, body["why"], body["default"])

    def _shut(self, point: Point, why: str, default: float | None) -> None:
        point.closed = why
        if default is None:
            point.never = True
        else:
            point.used, point.by_default = default, True
            self._offer(point)

    def _end(self, body: Mapping[str, Any]) -> None:
        who = self._participant(body["p"])
        if body["how"] == "terminated":
            self._terminate(who)
        elif who.last is not None:
            self._shut(who.last, "withdrawn", None)
        who.ended = body["how"]

    def _rebuild(self, _: Mapping[str, Any]) -> None:
        for point in self._corrected:
            point.learned = point.used
        self._corrected.clear()

    def _update(self, body: Mapping[str, Any]) -> None:
        for point in self._waiting:
            if point.is_due:
                _credit(point)
        self._waiting.clear()
        self.version, self.updated = body["version"], body["at"]

    def _note_ends(self) -> None:
        """Record how each participant ended, at the last decision point in the trial."""
        last = {p: point for (p, _), point in sorted(self.points.items()) if point.in_study}
        for p, point in last.items():
            if p in self.participants:
                point.ended = self.participants[p].ended


def _pass(_: Mapping[str, Any]) -> None:
    """Ignore an event: most kinds change no decision."""


def _credit(point: Point) -> None:
    point.is_credited, point.learned = True, point.used
