"""A trial at a glance, from its log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import Entry
from lacuna.trial.log.decision_table import table_of
from lacuna.trial.log.decisions import History, Point


def summary(entries: Iterable[Entry], file: TrialFile) -> dict[str, Any]:
    """Return the state of a trial as plain data, fit for JSON; ghosts do not count.

    Parameters
    ----------
    entries
        The log from event 0 on; the chain is verified on the way.
    file
        The trial file.

    Examples
    --------
    >>> from lacuna.trial.engine.trial import Trial
    >>> trial = Trial.create(TrialFile.parse('''
    ... [trial]
    ... name = "walk"
    ... actions = ["nothing", "prompt"]
    ... absent = "nothing"
    ... [context]
    ... mood = { values = [1, 2, 3] }
    ... '''), store="memory:", seed=1)
    >>> trial.enrol("maria")
    >>> for t, mood in enumerate((3, None)):
    ...     _ = trial.decide("maria", t, {"mood": mood})
    >>> found = summary(trial.store.read(), trial.file)
    >>> found["decisions"], found["missing"], found["rewards"]["open"]
    ({'learned': 2}, {'mood': 0.5}, 2)
    """
    history = History(entries, file)
    points = history.in_order()
    people = [who for who in history.participants.values() if who.is_enrolled and not who.is_ghost]
    asked = table_of(history).filter(pl.col("policy") != "absent")
    names = file.context.names
    return {
        "name": file.name,
        "events": history.head.seq + 1,
        "head": history.head.chain.hex(),
        "version": history.version,
        "updated": history.updated,
        "enrolled": len(people),
        "ended": _counts(who.ended for who in people),
        "decisions": _counts(point.policy for point in points),
        "missing": {name: _share(int(asked[f"missing_{name}"].sum()), asked.height) for name in names},
        "invalid": {name: int(asked[f"invalid_{name}"].sum()) for name in names},
        "unknown": _counts(name for point in points for name in point.invalid if name not in names),
        "rewards": _rewards(points),
        "fallbacks": _counts(point.reason for point in points if point.policy == "fallback"),
        "notes": history.kinds.get("note", 0),
        "conflicts": history.kinds.get("conflict", 0),
        "redacted": history.redacted,
    }


def _counts(values: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(value for value in values if value is not None).items()))


def _share(n: int, of: int) -> float | None:
    return n / of if of else None


def _rewards(points: Iterable[Point]) -> dict[str, int]:
    """Counts of rewards: reported, reported but unused, still awaited, and given up."""
    found = {"reported": 0, "unused": 0, "open": 0, "missing": 0}
    for point in points:
        if point.policy in {"fallback", "absent"}:
            continue
        if point.reward is not None:
            found["reported"] += 1
            found["unused"] += point.used is None or (point.never and not point.is_credited) or point.by_default
        else:
            found["open" if point.closed is None else "missing"] += 1
    return found


def summary_text(found: Mapping[str, Any]) -> str:
    """Write a summary as text."""
    rewards, missing = found["rewards"], found["missing"]
    shares = (f"{name} {'-' if share is None else f'{share:.1%}'}" for name, share in missing.items())
    lines = {
        "trial": found["name"],
        "events": f"{found['events']}, of which {found['redacted']} redacted" if found["redacted"] else found["events"],
        "head": found["head"],
        "version": f"{found['version']}, last update {found['updated'] or 'never'}",
        "participants": f"{found['enrolled']} enrolled{_listed(found['ended'], ', ')}",
        "decision points": f"{sum(found['decisions'].values())}{_listed(found['decisions'], ': ')}",
        "fall-backs": f"{sum(found['fallbacks'].values())}{_listed(found['fallbacks'], ': ')}",
        "missing": ", ".join(shares),
        "invalid": _named(found["invalid"]) or "none",
        "rewards": f"{rewards['reported']} reported ({rewards['unused']} of them not learned from), "
        f"{rewards['open']} awaited, {rewards['missing']} missing",
        "notes, conflicts": f"{found['notes']}, {found['conflicts']}",
    }
    if found["unknown"]:
        lines["not components"] = f"{_named(found['unknown'])}; the trial file does not declare them"
    width = max(map(len, lines))
    return "\n".join(f"{name:{width}}  {line}" for name, line in lines.items())


def _named(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items() if n)


def _listed(counts: Mapping[str, int], before: str) -> str:
    return before + ", ".join(f"{n} {name}" for name, n in counts.items()) if counts else ""
