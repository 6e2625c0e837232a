"""`Trial`: one algorithm, many participants, one log."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from lacuna.kernels.exclusive import Entry as Door
from lacuna.kernels.exclusive import exclusive
from lacuna.quantities import counted
from lacuna.trial.engine.pool import Person
from lacuna.trial.engine.recovery import open_store, read_secret, recover
from lacuna.trial.engine.requests import (
    Decision,
    Outcome,
    read_action,
    read_allowed,
    read_group,
    read_more,
    read_point,
    read_prob,
    read_reward,
    read_truth,
    request_digest,
    restrictions,
)
from lacuna.trial.engine.sources import Source, read_source
from lacuna.trial.engine.state import TrialState
from lacuna.trial.engine.writer import Writer, begin_trial
from lacuna.trial.file.context import Reading
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import Head
from lacuna.trial.log.events import now
from lacuna.trial.log.keys import Secret, words
from lacuna.trial.log.log_store import Store
from lacuna.validation import extras_named, one_of, shown, whole_number

if TYPE_CHECKING:
    import polars as pl

Context = Mapping[str, Any] | None
MAX_FALLBACKS = 100_000


class Trial:
    """A running trial: it decides, learns, and writes a log from which everything can be replayed.

    Make one with `Trial.create` or `Trial.open`.

    Examples
    --------
    >>> trial = Trial.create(TrialFile.parse('''
    ... [trial]
    ... name = "walk"
    ... actions = ["nothing", "prompt"]
    ... absent = "nothing"
    ... [allocation]
    ... bounds = [0.2, 0.8]
    ... [context]
    ... "at home" = { values = [false, true] }
    ... '''), store="memory:", seed=1)
    >>> trial.enrol("maria")
    >>> decision = trial.decide("maria", 0, {"at home": None})
    >>> decision.action in ("nothing", "prompt"), sum(decision.prob.values())
    (True, 1.0)
    >>> trial.decide("maria", 0, {"at home": None}).action == decision.action
    True
    >>> trial.outcome("maria", 0, 1.0).used
    True
    """

    def __init__(self, writer: Writer, secret: Secret) -> None:
        self.writer, self.secret = writer, secret
        self.file = writer.state.file
        self.entry = Door()

    @property
    def state(self) -> TrialState:
        """The state after the last event."""
        return self.writer.state

    @property
    def store(self) -> Store:
        """Where the log is kept."""
        return self.writer.store

    # --- begin, open, close ------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls, file: str | os.PathLike[str] | TrialFile, *, store: str | None = None, seed: int | None = None,
        source: str | os.PathLike[str] | Source | None = None, clock: Callable[[], str] = now,
    ) -> Trial:  # fmt: skip
        """Begin a trial.

        Parameters
        ----------
        file
            The trial file.
        store
            Where to keep the log, if not where the file says: ``"sqlite:walk.db"``, or ``"memory:"`` for a simulation.
        seed
            Derive the secret from a seed, for tests and simulations. Otherwise it is random, and stored in a file
            beside the store. Back that file up.
        source
            The exported log of an earlier trial, to learn from before anybody is enrolled. If components or actions
            have new names, the result of `lacuna.trial.engine.sources.read_source`.
        clock
            Returns the time as the log writes it.
        """
        found = file if isinstance(file, TrialFile) else TrialFile.read(os.fspath(file))
        secret = Secret.create() if seed is None else Secret.from_seed(seed)
        earlier = source if isinstance(source, Source | None) else read_source(source, found)
        return cls(begin_trial(found, store, secret, earlier, clock), secret)

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, clock: Callable[[], str] = now) -> Trial:
        """Open a trial to continue it: `where` is its trial file, its store, or the address of the store.

        A trial file that changed since the trial began is refused, apart from ``[store]`` and ``[service]``.
        """
        store, path, file = open_store(where)
        try:
            secret = read_secret(path, store)
            state = recover(store, secret.draws_key)
            if file is not None and (difference := state.file.first_difference(file)) is not None:
                raise ValueError(f"the trial file was changed after the trial began: {difference}")
            return cls(Writer(state, store, secret.draws_key, clock), secret)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Release the store. Closing twice is harmless."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Trial({self.file.name!r}, {counted(len(self.state.people), 'participant')})"

    # --- participants ------------------------------------------------------------------------------------------------

    @exclusive
    def enrol(self, participant: str, group: str | None = None) -> None:
        """Enrol a participant; with pools by group, give the group now: it never changes."""
        p = self.secret.pseudonym(participant)
        read_group(group, self.file)
        if p in self.state.people:
            there = self.state.people[p].group
            if there != group:
                raise ValueError(f"this participant is enrolled in the group {shown(there)}, not {shown(group)}")
            return
        self.writer.commit([{"kind": "enrol", "p": p, "group": group, "ghost": False}])

    @exclusive
    def end(self, participant: str, how: str) -> None:
        """End a participant's trial: ``"terminated"`` if it is over, ``"withdrawn"`` if what follows is unknown."""
        one_of("how", how, ("terminated", "withdrawn"))
        person = self._person(participant)
        if person.ended is not None:
            if person.ended != how:
                raise ValueError(f"this participant is {person.ended} already, so it cannot be {how}")
            return
        self.writer.commit([{"kind": "end", "p": person.p, "how": how}])

    def _person(self, participant: str) -> Person:
        person = self.state.people.get(self.secret.pseudonym(participant))
        if person is None:
            raise ValueError("this participant is not enrolled")
        return person

    # --- decisions ---------------------------------------------------------------------------------------------------

    @exclusive
    def decide(
        self, participant: str, t: int, context: Context, *, available: bool = True,
        allowed: str | Sequence[str] | None = None, previous: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Decision:  # fmt: skip
        """Decide for a participant at decision point `t`; a repeated request gets the first answer.

        Parameters
        ----------
        participant, t
            Who, and the decision point, which the app counts from 0.
        context
            A value for each component of the trial file. Values that are left out, None or invalid are missing.
        available
            Whether the participant is available for treatment; if not, the action is the one for absence.
        allowed
            The allowed actions: a list, or the name of a set of the trial file.
        previous
            ``{"t": …, "reward": …}``: the reward of an earlier decision, reported with this request.
        extra
            Anything else for the log: short texts and numbers, up to 4 KB.
        """
        p, t = self.secret.pseudonym(participant), read_point(t)
        asked: dict[str, Any] = {
            "available": read_truth("available", available),
            "allowed": read_allowed(allowed, self.file),
        }
        self.state.action_set(asked["allowed"])
        return self._answer(p, t, self.file.context.read(context), asked | read_more(extra), previous)

    def _answer(
        self, p: str, t: int, reading: Reading, asked: dict[str, Any], previous: Mapping[str, Any] | None
    ) -> Decision:
        request, person = request_digest(reading, asked), self.state.people.get(p)
        events = [] if previous is None else self._reported(p, previous)
        if (before := self.writer.answer(p, t)) is not None:
            return self._repeat(before, request, events)
        if person is None and self.file.unknown == "enrol":
            events.append({"kind": "enrol", "p": p, "group": None, "ghost": False})
        if reading.invalid and self.file.on_invalid == "refuse":
            raise ValueError(f"the context cannot be read: {', '.join(map(shown, reading.invalid))}")
        common = {
            "p": p, "t": t, "context": reading.raw, "invalid": list(reading.invalid), "request": request,
            "app_at": asked["app_at"], "extra": asked["extra"],
        }  # fmt: skip
        reason = self._why_fallback(person, t, reading)
        if reason is not None:
            events.append({"kind": "fallback", "reason": reason} | restrictions(asked, self.file) | common)
        else:
            if person is not None:
                told = events[0]["t"] if events and events[0]["reward"] is not None else None
                events += self._closings(person, t, told)
            events.append({"kind": "decision", "available": asked["available"], "allowed": asked["allowed"], **common})
        return Decision.of(self.writer.commit(events, key=(p, t))[-1], self.file)

    def _reported(self, p: str, previous: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The event of a reward that was reported with a request."""
        if not isinstance(previous, Mapping) or set(previous) != {"t", "reward"}:
            raise ValueError(f"previous is {shown(previous)}; it must be a table with t and reward")
        found = self._outcome_event(p, read_point(previous["t"]), previous["reward"], None)
        return [] if found is None else [found]

    def _why_fallback(self, person: Person | None, t: int, reading: Reading) -> str | None:
        """The reason for a fall-back; None if the learned policy can decide."""
        if person is None:
            if self.file.unknown == "refuse":
                raise ValueError("this participant is not enrolled")
            if self.file.unknown == "fallback":
                return "unknown"
        elif person.ended is not None:
            return "ended"
        elif t <= person.last_t:
            return "past"
        return "invalid" if reading.invalid and self.file.on_invalid == "fallback" else None

    def _closings(self, person: Person, t: int, told: int | None = None) -> list[dict[str, Any]]:
        found = self.state.closings(person, t, told)
        return [{"kind": "close", "p": person.p, "t": old, "why": why} for old, why in found]

    def _repeat(self, body: dict[str, Any], request: str, reported: list[dict[str, Any]]) -> Decision:
        """Repeat an earlier answer; the reward that came with the request may be new."""
        text = "asked again, with another request" if (differs := body["request"] != request) else "asked again"
        note = {"kind": "note", "p": body["p"], "t": body["t"], "text": text, "request": request}
        self.writer.commit([*reported, note])
        return Decision.of(body, self.file, repeated=True, differs=differs)

    @exclusive
    def answered(self, participant: str, t: int) -> Decision | None:
        """Look up the decision at a decision point; None if there is none. Nothing is logged."""
        body = self.writer.answer(self.secret.pseudonym(participant), read_point(t))
        return None if body is None else Decision.of(body, self.file, repeated=True)

    @exclusive
    def given(
        self, participant: str, t: int, context: Context, action: str, *, prob: Any = None, fallback: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> Decision:  # fmt: skip
        """Take in a decision that was made elsewhere, and learn from it.

        Parameters
        ----------
        participant, t, context, extra
            As in `decide`.
        action
            The action taken.
        prob
            The probability with which each action was drawn; None if unknown.
        fallback
            Whether the action is the fall-back handed out for this decision point; this is checked.
        """
        person, t = self._person(participant), read_point(t)
        number, reading = read_action("the action", action, self.file), self.file.context.read(context)
        chances = read_prob(prob, self.file)
        if read_truth("fallback", fallback):
            drawn, chances, _ = self.state.fallback(person.words, t)
            if number != drawn:
                raise ValueError(f"the fall-back at t {t} was {self.file.actions[drawn]!r}, not {action!r}")
        if chances is not None and chances[number] == 0:
            raise ValueError(f"prob says that {action!r} could not be drawn; it must be above 0 for what was done")
        asked = {"action": number, "prob": chances, "fallback": fallback} | read_more(extra)
        request = request_digest(reading, asked)
        if (body := self.writer.answer(person.p, t)) is not None:
            if body["request"] != request:
                raise ValueError(f"there is another decision of this participant at t {t} already")
            return Decision.of(body, self.file, repeated=True)
        if person.ended is not None or t <= person.last_t:
            why = f"this participant is {person.ended}" if person.ended else f"t {person.last_t} was decided before"
            raise ValueError(f"a decision at t {t} comes too late: {why}")
        event = {
            "kind": "given", "p": person.p, "t": t, "context": reading.raw, "invalid": list(reading.invalid),
            "request": request, **asked,
        }  # fmt: skip
        return Decision.of(self.writer.commit([*self._closings(person, t), event], key=(person.p, t))[-1], self.file)

    @exclusive
    def fallbacks(self, participant: str, t: int, n: int = 1) -> list[str]:
        """Return the fall-backs for decision points `t` … `t + n - 1`, for an app without a network; logs nothing."""
        p = words(self.secret.pseudonym(participant))
        first, last = read_point(t), read_point(t + whole_number("n", n, 1, MAX_FALLBACKS) - 1)
        return [self.file.actions[self.state.fallback(p, point)[0]] for point in range(first, last + 1)]

    @exclusive
    def probabilities(self, participant: str) -> dict[str, float]:
        """The probabilities of the next action in the last known context; nothing changes."""
        person = self._person(participant)
        if person.last_t < 0:
            raise ValueError("this participant has no context yet")
        return dict(zip(self.file.actions, self.state.probabilities(person).tolist(), strict=True))

    # --- rewards and updates ------------------------------------------------------------------------------------------

    @exclusive
    def outcome(self, participant: str, t: int, reward: float | None, *, delivered: bool | None = None) -> Outcome:
        """Report the reward of a decision, at any time; a second report corrects the first."""
        person, t = self._person(participant), read_point(t)
        event = self._outcome_event(person.p, t, reward, delivered)
        if event is not None and (body := self.writer.commit([event])[-1])["reward"] is not None:
            return Outcome(body["used"], body["revision"])
        ledger, row = self.state.ledger, person.rows[t]
        return Outcome(ledger.uses(row), int(ledger.revision[row]), repeated=event is None)

    def _outcome_event(self, p: str, t: int, reward: Any, delivered: bool | None) -> dict[str, Any] | None:
        """The event of a reward; None if it equals the last report."""
        person, value = self.state.people.get(p), read_reward(reward, self.file)
        if person is None or t not in person.rows:
            raise ValueError(f"there is no decision at t {t} of this participant")
        if delivered is not None:
            delivered = read_truth("delivered", delivered)
        ledger, row = self.state.ledger, person.rows[t]
        if ledger.knows(row, value, delivered):
            return None
        # If only `delivered` is new, no reward is corrected.
        value = None if ledger.knows(row, value, None) else value
        return {"kind": "outcome", "p": p, "t": t, "reward": value, "delivered": delivered, "app_at": None}

    @exclusive
    def update(self, key: str | None = None) -> dict[str, Any]:
        """Learn from everything that is due; returns the new version, and how many decisions were taught and credited.

        A key that was used before repeats the answer of that update.
        """
        if key is not None and not (isinstance(key, str) and key.isprintable() and 1 <= len(key) <= 64):
            raise ValueError(f"key is {shown(key)}; it must be a text of 1 to 64 printable characters")
        if key is not None and key in self.state.update_keys:
            return dict(self.state.update_keys[key])
        at = self.writer.clock()
        events: list[dict[str, Any]] = [
            {"kind": "close", "p": p, "t": t, "why": "wait"} for p, t in self.state.overdue(at)
        ]
        if self.state.stale:
            events.append({"kind": "rebuild"})
        body = self.writer.commit([*events, {"kind": "update", "key": key}], at=at)[-1]
        self.writer.try_snapshot()
        return {name: body[name] for name in ("version", "taught", "credited")}

    # --- the log -----------------------------------------------------------------------------------------------------

    @exclusive
    def snapshot(self) -> None:
        """Store the state now, so that recovery starts here."""
        self.writer.snapshot()

    @exclusive
    def decisions(self) -> pl.DataFrame:
        """The table of `lacuna.trial.log.decision_table.decision_table`: all decision points so far, a row for each."""
        with extras_named():
            from lacuna.trial.log.decision_table import decision_table  # noqa: PLC0415  an app that only decides needs no tables
        return decision_table(self.store.read(), self.file)

    @property
    def head(self) -> Head:
        """The end of the log. Write it down elsewhere to prove later that nothing before it was rewritten."""
        return self.store.head
