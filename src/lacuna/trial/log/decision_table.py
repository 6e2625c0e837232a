"""The decision points of a trial as a table, a row for each, from its log alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from lacuna.trial.file.context import MAX_EXACT, Bins, Component
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import Entry
from lacuna.trial.log.decisions import History, Point

TIME = pl.Datetime("ms", "UTC")

BEFORE: dict[str, tuple[Any, str]] = {
    "participant": (pl.String, "pseudonym"),
    "group": (pl.String, "group named at enrolment"),
    "t": (pl.Int64, "number of the decision point, counted by the app from 0"),
    "at": (TIME, "when the request was answered, in UTC; null if there was no request"),
    "app_at": (pl.String, "time that the app reported, unchanged; null if it does not begin with a digit"),
    "available": (pl.Boolean, "whether the participant was available; false if there was no request"),
    "action": (pl.String, "the action taken"),
}
AFTER: dict[str, tuple[Any, str]] = {
    "randomised": (pl.Boolean, "whether the action was drawn with known probabilities"),
    "policy": (
        pl.String,
        "learned, burn-in, given (made elsewhere), fallback (learned policy not usable) or absent (no request)",
    ),
    "version": (pl.Int64, "number of the update that the decision is based on; null for fallback and absent"),
    "pool": (pl.String, "pool of the participant, which shares what it learns"),
    "reason": (pl.String, "why it is a fall-back; for given: fallback if the app used one that was handed out"),
    "reward": (pl.Float64, "the last reported reward, used or not; null if none"),
    "reward_used": (pl.Float64, "the reward that is learned from, or will be once it is due; null if none"),
    "reward_learned": (pl.Float64, "the reward that had been learned from when the log ended; null if none"),
    "reward_by_default": (pl.Boolean, "whether reward_used is the default of the trial file, as none came in time"),
    "reward_revisions": (pl.Int64, "how often a reward was reported that differs from the previous report; 1: once"),
    "delivered": (pl.Boolean, "whether the action reached the participant; null if it was not reported"),
    "closed": (
        pl.String,
        "why the reward is no longer awaited: wait, max_open, gap (too long a gap followed) or withdrawn",
    ),
    "ended": (pl.String, "how the participant ended, at the last decision point in the trial: terminated, withdrawn"),
    "in_study": (pl.Boolean, "whether the participant was enrolled, and had not ended before"),
    "seq": (pl.Int64, "number of the event in the log; if there was no request, of the next decision"),
}


def decision_table(entries: Iterable[Entry], file: TrialFile, *, ghosts: bool = False) -> pl.DataFrame:
    """Return the decision points of a trial, a row for each, ordered by participant and number.

    They include absent ones: points without a request between two others. Redacted events are skipped. `columns` says
    what each column means.

    Parameters
    ----------
    entries
        The log from event 0 on; the chain is verified on the way.
    file
        The trial file.
    ghosts
        Whether to include ghosts: participants from the log of an earlier trial.

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
    >>> for t in (0, 2):
    ...     _ = trial.decide("maria", t, {"mood": 3})
    >>> table = decision_table(trial.store.read(), trial.file)
    >>> table["t"].to_list(), table["policy"].to_list(), table["coded_mood"].to_list()
    ([0, 1, 2], ['learned', 'absent', 'learned'], [2, None, 2])
    """
    return table_of(History(entries, file), ghosts=ghosts)


def table_of(history: History, *, ghosts: bool = False) -> pl.DataFrame:
    """Return the decision points of a history as `decision_table` does."""
    file, points = history.file, history.in_order(ghosts=ghosts)
    people = [history.participants.get(point.p) for point in points]
    data: dict[str, list[Any]] = {
        "participant": [point.p for point in points],
        "group": [None if who is None else who.group for who in people],
        "app_at": [_time_text(point.app_at) for point in points],
        "action": [file.actions[point.action] for point in points],
        "pool": [None if who is None else who.pool for who in people],
        "reward_used": [None if point.never and not point.is_credited else point.used for point in points],
        "reward_learned": [point.learned for point in points],
        "reward_by_default": [point.by_default and not point.never for point in points],
        "reward_revisions": [point.revisions for point in points],
    }
    for number, action in enumerate(file.actions):
        data[f"prob_{action}"] = [None if point.prob is None else point.prob[number] for point in points]
    data |= _components(points, file)
    schema = {name: kind for name, (kind, _) in columns(file).items()}
    for name in schema:
        if name not in data:
            data[name] = [getattr(point, name) for point in points]
    return pl.DataFrame({name: data[name] for name in schema}, schema=schema)


def columns(file: TrialFile) -> dict[str, tuple[Any, str]]:
    """Return the columns of the table in order: the type and the meaning of each.

    Every name from the trial file gets a prefix, so no component can take the name of another column.
    """
    found = dict(BEFORE)
    for action in file.actions:
        found[f"prob_{action}"] = (pl.Float64, f"probability of {action!r}; null if it is not known")
    found |= AFTER
    for component in file.context.components:
        found |= component_columns(component)
    return found


def component_columns(component: Component) -> dict[str, tuple[Any, str]]:
    """Return the columns of one component: the type and the meaning of each."""
    name, what = component.name, "bin" if isinstance(component, Bins) else "value"
    return {
        f"raw_{name}": (_raw_type(component), "the reported value; null also if it has another type"),
        f"coded_{name}": (pl.Int64, f"number of its {what}, from 0; null if missing"),
        f"missing_{name}": (pl.Boolean, "whether it is missing: not reported, or invalid"),
        f"invalid_{name}": (pl.Boolean, "whether it was reported and could not be read"),
    }


def _components(points: list[Point], file: TrialFile) -> dict[str, list[Any]]:
    """The columns of all components."""
    readings = [file.context.read(point.context) for point in points]
    data: dict[str, list[Any]] = {}
    for number, component in enumerate(file.context.components):
        name = component.name
        codes = [int(reading.coded[number]) for reading in readings]
        data[f"raw_{name}"] = [_raw(point.context.get(name), component) for point in points]
        data[f"coded_{name}"] = [None if code < 0 else code for code in codes]
        data[f"missing_{name}"] = [code < 0 for code in codes]
        data[f"invalid_{name}"] = [name in point.invalid for point in points]
    return data


def _raw_type(component: Component) -> Any:
    """The type that all declared values have; text if they are mixed."""
    if isinstance(component, Bins):
        return pl.Float64
    kinds = {type(value) for value in component.values}
    if kinds == {bool}:
        return pl.Boolean
    if kinds == {int}:
        return pl.Int64
    return pl.Float64 if kinds <= {int, float} else pl.String


def _raw(value: Any, component: Component) -> Any:
    """A value in the type of its column; None if its type differs.

    Only declared texts are exported; any other text that an app sends stays in the log.
    """
    kind = _raw_type(component)
    if value is None or kind == pl.String:
        found = None if value is None or isinstance(component, Bins) else component.read(value)
        return None if found is None else _text(found[1])
    if isinstance(value, str) or isinstance(value, bool) != (kind == pl.Boolean):
        return None
    if kind == pl.Int64:
        return value if isinstance(value, int) and abs(value) <= MAX_EXACT else None
    return float(value) if kind == pl.Float64 else value


def _text(value: Any) -> str:
    """A value as the text that a trial file would show."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _time_text(app_at: str | None) -> str | None:
    """The time of an app; a text that is not a time could be anything, and stays in the log."""
    return app_at if app_at is not None and app_at[:1].isdigit() else None
