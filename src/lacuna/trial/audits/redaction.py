"""Erase a participant from the log of a trial, and continue the trial.

An erased event keeps its number, its hash and its place in the chain, so the rest of the log still verifies. A trial
cannot unlearn. Before anything is erased, the state is saved in the store, and the `redact` event names it; recovery
and replay start there.

What remains of an erased participant: the pseudonym with the numbers of its decision points, and in the state the coded
observations, imputations, actions and rewards. Raw contexts, times and extras are erased. A participant of an earlier
trial is also in the copy of that trial's log, so the whole copy is erased from the store. Exported files and backups
are not changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from lacuna.trial.audits.upgrade import read_reason
from lacuna.trial.engine import snapshot
from lacuna.trial.engine.recovery import landmarks
from lacuna.trial.engine.trial import Trial
from lacuna.trial.engine.writer import Writer
from lacuna.trial.log.events import Reader
from lacuna.trial.log.keys import words
from lacuna.validation import shown, whole_number


@dataclass(frozen=True)
class Redacted:
    """What was erased.

    Attributes
    ----------
    seqs
        The events whose bodies were erased now.
    sources
        How many copies of earlier trials' logs were erased.
    """

    seqs: tuple[int, ...]
    sources: int = 0


def redact(
    where: str | os.PathLike[str],
    seqs: Iterable[int] = (),
    *,
    participant: str | None = None,
    pseudonym: str | None = None,
    reason: str,
) -> Redacted:
    """Erase the bodies of events.

    If it is interrupted, repeat it: that also erases what the earlier attempt named.

    Parameters
    ----------
    where
        The store of the trial, or its trial file.
    seqs
        Numbers of events. Only events about a participant can be erased.
    participant
        Erase every event of this participant, by its identifier.
    pseudonym
        The same by its pseudonym, as for a participant of an earlier trial.
    reason
        Why; it is logged.
    """
    why = read_reason(reason)
    if pseudonym is not None:
        words(pseudonym)  # refuses what is none
    with Trial.open(where) as trial:
        chosen = {whole_number("an event", seq, 0, trial.head.seq) for seq in seqs}
        people = {trial.secret.pseudonym(participant)} if participant is not None else set()
        people |= {pseudonym} if pseudonym is not None else set()
        if not chosen and not people:
            raise ValueError("nothing is named that should be erased; name events or a participant")
        store, (found, sources) = trial.store, _find(trial, chosen, people)
        before = [body for body in landmarks(store) if body["kind"] == "redact"]
        named = {seq for body in before for seq in body["of"]}
        if not found and not chosen and people.isdisjoint(trial.state.people):
            raise ValueError("there is nothing of this participant in the log")
        if found:
            digest = store.put_source(snapshot.to_bytes(trial.state, store.head.seq + 1))
            event = {"kind": "redact", "of": found, "reason": why, "sources": sources, "state": digest}
            store.append([{"seq": store.head.seq + 1, "at": trial.writer.clock()} | event])
        # This includes what an interrupted attempt named.
        store.redact({*found, *named}, {*sources, *(digest for body in before for digest in body["sources"])})
        if found:
            Writer(trial.state, store, trial.secret.draws_key, trial.writer.clock).snapshot()
        return Redacted(tuple(found), len(sources))


def _find(trial: Trial, chosen: set[int], people: set[str]) -> tuple[list[int], list[str]]:
    """The events to erase that still have bodies; and copies of earlier logs, if a ghost is among the participants."""
    found, sources, ghosts = list[int](), list[str](), False
    for entry, body in Reader(trial.file).read(trial.store.read()):
        if body is None:
            continue
        if body["kind"] == "source":
            sources.append(body["digest"])
        p = body.get("p")
        if entry.seq in chosen and not isinstance(p, str):
            what = "begins the trial" if entry.seq == 0 else f"is of the kind {shown(body['kind'])}"
            raise ValueError(f"event {entry.seq} {what} and holds nothing about a participant; it cannot be erased")
        if p is not None and (entry.seq in chosen or p in people):
            found.append(entry.seq)
            ghosts |= p in trial.state.people and trial.state.people[p].ghost
    return found, sources if ghosts else []
