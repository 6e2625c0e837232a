"""Warm start: what a new trial learns from the log of an earlier one, before anybody is enrolled.

Every decision that the earlier trial learned from becomes a `given` event of a *ghost*: a participant under the old
pseudonym, who makes no requests. Fall-backs and absent points are skipped and leave the same gaps. A reward is the last
one that was reported.

Components and actions must be the same in both trials, or a mapping says what they are called now::

    [components]
    stress = "mood"
    [actions]
    message = "prompt"

Names that the mapping omits stay the same. A component without a counterpart, and a value that does not exist in the
new trial, count as missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from lacuna.files import read_text
from lacuna.quantities import counted
from lacuna.toml import parse_toml
from lacuna.trial.engine.requests import read_prob, read_reward, request_digest
from lacuna.trial.engine.state import TrialState
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import Entry, LogError, describe, open_log, read_lines
from lacuna.trial.log.chained_log import parse as parse_body
from lacuna.trial.log.events import Reader
from lacuna.trial.log.log_store import Body
from lacuna.validation import nearest, read_json, shown

MOST_IN_SOURCE = 10**9 - 1
"""The largest log to learn from, in bytes: a copy of it must fit into a field of SQLite."""
_MOST_OF_MAPPING = 1 << 20

Key = tuple[str, int, int]
"""A decision in a store: pseudonym, decision point, and number of its event."""


@dataclass(frozen=True)
class Translation:
    """The names of an earlier trial's components and actions in a new one.

    Parameters
    ----------
    old, new
        The trial files.
    components, actions
        New names by old ones, where they differ.
    """

    old: TrialFile
    new: TrialFile
    components: Mapping[str, str] = field(default_factory=dict)
    actions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, table, mine, its in (
            ("component", self.components, self.old.context.names, self.new.context.names),
            ("action", self.actions, self.old.actions, self.new.actions),
        ):
            for name, now in table.items():
                for one, known, whose in ((name, mine, "earlier"), (now, its, "new")):
                    if one not in known:
                        raise ValueError(
                            f"the mapping names the {what} {shown(one)}{nearest(one, known)}; the {whose} trial has "
                            f"{', '.join(map(shown, known))}"
                        )
        named = [name for name in map(self.component, self.old.context.names) if name in self.new.context.names]
        if twice := sorted({name for name in named if named.count(name) > 1}):
            raise ValueError(f"two components of the earlier trial would both be {shown(twice[0])} in the new one")
        for action in self.old.actions:
            if self.action(action) not in self.new.actions:
                raise ValueError(
                    f"the action {shown(action)} of the earlier trial is none of the new one; say in [actions] of a "
                    f"mapping which of {', '.join(map(shown, self.new.actions))} it is"
                )

    def component(self, name: str) -> str:
        """The new name of a component."""
        return self.components.get(name, name)

    def action(self, name: str) -> str:
        """The new name of an action."""
        return self.actions.get(name, name)

    @property
    def dropped(self) -> list[str]:
        """The components of the earlier trial that the new one does not have."""
        return [name for name in self.old.context.names if self.component(name) not in self.new.context.names]

    def context(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """A context with the new names."""
        known = self.new.context.names
        return {self.component(name): value for name, value in context.items() if self.component(name) in known}

    def number(self, action: int) -> int:
        """The new number of an action."""
        return self.new.actions.index(self.action(self.old.actions[action]))

    def prob(self, prob: Any) -> list[float] | None:
        """The probabilities of the new actions; those of merged actions add up."""
        if prob is None:
            return None
        found = [0.0] * len(self.new.actions)
        for action, p in enumerate(prob):
            found[self.number(action)] += p
        return read_prob(found, self.new)


@dataclass
class Source:
    """The events that a new trial learns from the log of an earlier one.

    Attributes
    ----------
    content, name
        The bytes of the log, and the name of its file.
    secret
        Fingerprint of the earlier trial's secret.
    mapping
        The mapping as plain data; None if there was none.
    events
        The inputs of the events, in order.
    people, decisions, rewards
        The numbers of participants, of their decisions, and of decisions with a reward.
    unread
        How many values and rewards are invalid in the new trial, and so count as missing.
    late, erased
        How many decisions lie beyond the new horizon, and how many events were erased from the log.
    dropped
        Components that the new trial does not have.
    """

    content: bytes
    name: str
    secret: str
    mapping: dict[str, Any] | None
    dropped: list[str]
    events: list[dict[str, Any]] = field(default_factory=list)
    people: int = 0
    decisions: int = 0
    rewards: int = 0
    unread: int = 0
    late: int = 0
    erased: int = 0

    @property
    def about(self) -> str:
        """A summary in one sentence: what was learned and what was not."""
        parts = [
            f"learned from {counted(self.decisions, 'decision')} of {counted(self.people, 'earlier participant')}, "
            f"{self.rewards:,} with a reward"
        ]
        if self.dropped:
            parts.append(f"the new trial does not have {', '.join(map(shown, self.dropped))}")
        for n, noun, what in (
            (self.unread, "value", "not valid in the new trial, so missing"),
            (self.late, "decision", "beyond its horizon, so left out"),
            (self.erased, "event", "erased from the log, so left out"),
        ):
            if n:
                parts.append(f"{counted(n, noun)} {'is' if n == 1 else 'are'} {what}")
        return "; ".join(parts)


def read_mapping(path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Read a mapping, a file of TOML or JSON with the tables ``components`` and ``actions``, both optional."""
    try:
        text = read_text(path, _MOST_OF_MAPPING)
        data = read_json("it", text) if Path(path).suffix == ".json" else parse_toml(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as a mapping: {' '.join(str(error).split())}") from error
    known = ("components", "actions")
    for table, names in data.items() if isinstance(data, dict) else [(data, None)]:
        if table not in known:
            raise ValueError(
                f"{path} holds {shown(table)}{nearest(table, known)}; a mapping has the tables components and actions"
            )
        if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
            raise ValueError(f"{path}: {table} is {shown(names)}; it must be a table of old and new names")
    return {table: dict(data.get(table, {})) for table in known}


def read_source(path: str | os.PathLike[str], file: TrialFile, mapping: str | os.PathLike[str] | None = None) -> Source:
    """Read the exported log of an earlier trial for a new one to learn from.

    Parameters
    ----------
    path
        The log, as ``lacuna trial export --log`` writes it.
    file
        The trial file of the new trial.
    mapping
        A file with the new names of components and actions; not needed if they are the same.
    """
    if file.pool == "each":
        raise ValueError("[trial] pool is 'each', so what earlier participants did would teach nobody; choose another")
    named = None if mapping is None else read_mapping(mapping)
    with open_log(path, MOST_IN_SOURCE) as log:
        content = log.read(MOST_IN_SOURCE)
    entries = list(read_lines(BytesIO(content), path))
    begin = {} if entries[0].body is None else parse_body(entries[0].body)
    if begin.get("kind") != "begin" or not isinstance(begin.get("secret"), str):
        raise LogError(f"{path}, line 1: it is not the beginning of a trial", 0)
    old = TrialFile.parse(str(begin.get("file")), f"the trial file in {path}")
    if named is None:
        _check_same(old, file)
    translation = Translation(old, file, **(named or {}))
    source = Source(content, Path(path).name, begin["secret"], named, translation.dropped)
    _Learner(translation, source, os.fspath(path)).read(entries)
    return source


def _check_same(old: TrialFile, new: TrialFile) -> None:
    """Refuse an earlier trial that has other components or actions, and name the first difference."""
    theirs, ours = (
        {f"the component {shown(name)}": value for name, value in file.content["context"].items()}
        | {"the order of the components": file.context.names, "the list of actions": file.actions}
        for file in (old, new)
    )
    for what in {**theirs, **ours}:
        its, mine = (json.dumps(part[what]) if what in part else "not there" for part in (theirs, ours))
        if its != mine:
            raise ValueError(
                f"{what} is {its[:200]} in {old.where} and {mine[:200]} in {new.where}; a mapping can say what is what"
            )


class _Learner:
    """Converts the events of an earlier log to events of the new one."""

    def __init__(self, translation: Translation, source: Source, path: str) -> None:
        self.translation, self.source, self.path = translation, source, path
        self.old, self.new = translation.old, translation.new
        self.groups: dict[str, str | None] = {}
        self.last: dict[str, int] = {}
        self.ended: set[str] = set()
        self.reward: dict[tuple[str, int], float] = {}
        self.delivered: dict[tuple[str, int], bool] = {}

    def read(self, entries: Iterable[Entry]) -> None:
        """Read all rewards first, because they may come long after their decisions."""
        reader, found = Reader(self.old), list[tuple[Entry, dict[str, Any]]]()
        for entry in entries:
            body = None if entry.body is None else parse_body(entry.body)
            try:
                reader.take(entry, body)
            except LogError as error:
                raise self._refused(entry, body, str(error).partition(": ")[2]) from None
            if body is not None:
                found.append((entry, body))
            else:
                self.source.erased += 1
        for step in (self._note, self._take):
            for entry, body in found:
                try:
                    step(body)
                except ValueError as error:
                    raise self._refused(entry, body, " ".join(str(error).split())) from error
        for p in sorted(set(self.last) - self.ended):
            self._end(p, "withdrawn")

    def _refused(self, entry: Entry, body: dict[str, Any] | None, reason: str) -> LogError:
        where = f"{self.path}, line {entry.seq + 1}: {describe(entry, body)}"
        return LogError(f"{where} cannot be learned from: {reason}", entry.seq)

    def _note(self, body: Mapping[str, Any]) -> None:
        """Collect what the decisions need: groups and rewards."""
        if body["kind"] == "enrol":
            self.groups[body["p"]] = body["group"]
        elif body["kind"] == "outcome":
            key = body["p"], body["t"]
            if body["reward"] is not None:
                self.reward[key] = body["reward"]
            if body["delivered"] is not None:
                self.delivered[key] = body["delivered"]

    def _take(self, body: Mapping[str, Any]) -> None:
        if body["kind"] == "end" and body["p"] in self.last:
            self._end(body["p"], body["how"])
        elif body["kind"] in ("decision", "given"):
            self._decision(body)

    def _decision(self, body: Mapping[str, Any]) -> None:
        p, t, source = body["p"], body["t"], self.source
        if p not in self.last:
            self._enrol(p)
        if p in self.ended:
            source.late += 1
            return
        reading = self.new.context.read(self.translation.context(body["context"]))
        source.unread += len(reading.invalid)
        asked = {
            "action": self.translation.number(body["action"]), "prob": self.translation.prob(body["prob"]),
            "fallback": False, "app_at": body["at"], "extra": {},
        }  # fmt: skip
        source.events.append({
            "kind": "given", "p": p, "t": t, "context": reading.raw, "invalid": list(reading.invalid),
            "request": request_digest(reading, asked), **asked,
        })  # fmt: skip
        self.last[p] = t
        source.decisions += 1
        self._outcome(p, t)
        if self.new.horizon is not None and t >= self.new.horizon - 1:
            self.ended.add(p)
        elif self.old.horizon is not None and t >= self.old.horizon - 1:
            self._end(p, "terminated")

    def _enrol(self, p: str) -> None:
        group = self.groups.get(p)
        if self.new.pool == "group" and group is None:
            raise ValueError("this participant had no group, and [trial] pool of the new trial is 'group'")
        self.source.events.append({"kind": "enrol", "p": p, "group": group, "ghost": True})
        self.source.people += 1
        self.last[p] = -1

    def _outcome(self, p: str, t: int) -> None:
        """Add the last reported reward; close a decision without one, because none will come."""
        reward, delivered = self.reward.get((p, t)), self.delivered.get((p, t))
        try:
            reward = read_reward(reward, self.new)
        except ValueError:
            self.source.unread += 1
            reward = None
        if reward is not None or delivered is not None:
            self.source.events.append(
                {"kind": "outcome", "p": p, "t": t, "reward": reward, "delivered": delivered, "app_at": None}
            )
        if reward is None:
            self.source.events.append({"kind": "close", "p": p, "t": t, "why": "wait"})
        else:
            self.source.rewards += 1

    def _end(self, p: str, how: str) -> None:
        if p not in self.ended:
            self.ended.add(p)
            self.source.events.append({"kind": "end", "p": p, "how": how})


def learn_from(source: Source, state: TrialState, begin: Body, secret: str) -> tuple[list[Body], list[Key]]:
    """Learn from a source when a trial begins; returns the events so far, and the keys of the decisions.

    Parameters
    ----------
    source
        What `read_source` gave.
    state
        Of the new trial; it is modified.
    begin
        The first event; all others get its time.
    secret
        Fingerprint of the new trial's secret.
    """
    if source.secret == secret:
        # A participant would get the pseudonym and the draws of its own ghost.
        raise ValueError("the earlier trial has the same secret as this one; begin this one with another seed")
    bodies, keys = [begin], list[Key]()

    def add(event: dict[str, Any]) -> None:
        body: Body = {"seq": len(bodies), "at": begin["at"]} | event
        bodies.append(body | state.apply(body))

    add(
        {
            "kind": "source",
            "digest": sha256(source.content).hexdigest(),
            "name": source.name[:200],
            "mapping": source.mapping,
        }
    )
    for event in source.events:
        if event["kind"] == "given":
            p, t = event["p"], event["t"]
            for old, why in state.closings(state.people[p], t, None):
                add({"kind": "close", "p": p, "t": old, "why": why})
            keys.append((p, t, len(bodies)))
        add(event)
    add({"kind": "update", "key": None})
    return bodies, keys
