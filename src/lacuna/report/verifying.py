"""Checks the page of a replay: runs its header again, also in the compiled loop, and compares every bit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.settings import SETTINGS, Settings
from lacuna.missingness import Mechanism, parse
from lacuna.quantities import counted
from lacuna.report.encoding import stage_from
from lacuna.report.recording import MOST_STEPS, Moments, Stage, record
from lacuna.run.problems import Problem
from lacuna.run.run import Run, fingerprint
from lacuna.trust import ForeignError, only_looking
from lacuna.validation import shown, whole_number
from lacuna.version import RESULTS_VERSION
from lacuna.worlds.mdp.tabular import TabularMDP

_RECORDING = re.compile(r'<script type="application/json" id="([\w-]+)">(\{"header".*?)</script>', re.DOTALL)

Part = TypeVar("Part", TabularMDP, Mechanism)

_WORDS = {"before": "moments", "stops": "last moments of episodes", "best": "best actions", "changes": "best actions",
          "changed": "best actions", "at": "steps"}  # fmt: skip


def recordings_in(path: str | os.PathLike[str]) -> dict[str, Mapping[str, Any]]:
    """Read the recordings of a page as plain data, by their names."""
    try:
        text = Path(path).read_bytes().decode(errors="replace")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    try:
        found = {name: json.loads(data) for name, data in _RECORDING.findall(text)}
    except ValueError as error:
        raise ValueError(f"{path} holds a damaged recording: {error}") from error
    if not found:
        raise ValueError(f"{path} is not the page of a replay: it holds no recording")
    return found


def check_page(
    path: str | os.PathLike[str], world: TabularMDP | str | None = None, missingness: Mechanism | str | None = None
) -> str:
    """Run every recording of a page again from its header and compare every bit; returns a sentence.

    True states, observations, pathways, actions, rewards and ends must also equal those of one uninterrupted run of the
    compiled loop.

    Parameters
    ----------
    path
        The page.
    world, missingness
        Your own parts, if the page was recorded with any: objects, or texts that name them. A page is not your word:
        only worlds and mechanisms that come with lacuna are looked up for it.

    Examples
    --------
    >>> from lacuna.report.replay import replay
    >>> _ = replay("corridor", "mcar:0.4", "mi-synthetic,K=3", at=[0, 100], steps=20).save("corridor.html")
    >>> check_page("corridor.html")
    'corridor.html: 1 recording, 40 steps, equal to the bit when run again'
    """
    found, steps = recordings_in(path), 0
    for name, data in found.items():
        try:
            steps += _check(data, world, missingness)
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{path}: the recording {name!r} is damaged ({error!r})") from error
        except ValueError as error:
            raise ValueError(f"{path}: the recording {name!r} cannot be repeated: {error}") from error
    recordings = counted(len(found), "recording")
    return f"{path}: {recordings}, {counted(steps, 'step')}, equal to the bit when run again"


def _check(data: Mapping[str, Any], world: TabularMDP | str | None, missingness: Mechanism | str | None) -> int:
    header = data["header"]
    if header["results"] != RESULTS_VERSION:
        raise ValueError(f"its results have version {header['results']}; this lacuna gives version {RESULTS_VERSION}")
    problem = _problem(header, world, missingness)
    mdp, steps = problem.mdp, whole_number("steps", header["steps"], 1, MOST_STEPS)
    methods = [
        Settings(described["method"], **{name: described[name] for name in SETTINGS if name in described})
        for described in header["methods"]
    ]
    at = [whole_number("at", t, 0) for t in header["at"]]
    again = record(problem, methods, at=at, steps=steps, seed=header["seed"])
    for settings, track, stages in zip(methods, data["tracks"], again.stages, strict=True):
        for kept, stage in zip(track, stages, strict=True):
            found = stage_from(kept, settings.pathways, mdp.n_actions, mdp.dynamics.shown)
            _compare(found, stage)
            _compare_trace(found, problem, settings, header["seed"])
    return steps * len(at) * len(methods)


def _problem(
    header: Mapping[str, Any], world: TabularMDP | str | None, missingness: Mechanism | str | None
) -> Problem:  # fmt: skip
    mdp = world if isinstance(world, TabularMDP) else _named(world, header["world"], _arrays)
    mechanism = (
        missingness
        if isinstance(missingness, Mechanism)
        else _named(missingness, header["missingness"], lambda text: parse(text, mdp))
    )
    if fingerprint(mdp, mechanism) != header["problem"]:
        raise ValueError(f"{header['world']}, {header['missingness']} is not the problem that was recorded")
    return Problem(header["world"], mdp, mechanism, bool(header["first_observed"]))


def _arrays(world: str) -> TabularMDP:
    return Problem.named(world, "none").mdp


def _named(said: str | None, recorded: str, make: Callable[[str], Part]) -> Part:
    """Make what the caller named; if nothing, what the page names, which must come with lacuna."""
    if said is not None:
        return make(said)
    try:
        with only_looking():
            return make(recorded)
    except ForeignError as error:
        raise ValueError(f"{error}; if it is yours, name it: --world or --missingness {shown(recorded)}") from error


def _compare(found: Stage, again: Stage) -> None:
    """Refuse a recording that differs from a new one."""
    for name in Stage._fields:
        kept, new = getattr(found, name), getattr(again, name)
        for one, other in zip(kept, new, strict=True) if isinstance(kept, Moments) else [(kept, new)]:
            _same(_WORDS.get(name, name), one, other, again.at)


def _compare_trace(stage: Stage, problem: Problem, settings: Settings, seed: int) -> None:
    """Refuse a recording that differs from the trace of a compiled run."""
    run = Run(problem.mdp, problem.mechanism, settings, seed=seed, first_observed=problem.first_observed)
    run.advance(stage.at)
    trace = run.record(stage.steps)
    arrivals = _arrivals(stage)
    for what, kept, again in (
        ("true states", stage.before.state[:-1], trace.state), ("actions", stage.action, trace.action),
        ("rewards", stage.reward, trace.reward), ("arrivals", arrivals.state, trace.arrival),
        ("observations", arrivals.seen, trace.seen), ("pathways", arrivals.pathways, trace.pathways),
        ("ends", stage.ended, trace.ended), ("truncations", stage.truncated, trace.truncated),
    ):  # fmt: skip
        _same(what, kept, again, stage.at)


def _arrivals(stage: Stage) -> Moments:
    """The moment after every step: the one before the next step, or the end of the episode."""
    columns = [column[1:].copy() for column in stage.before]
    for column, stops in zip(columns, stage.stops, strict=True):
        column[stage.stopped] = stops
    return Moments(*columns)


def _same(what: str, kept: NDArray[Any] | int, again: NDArray[Any] | int, at: int) -> None:
    if not np.array_equal(kept, again):
        raise ValueError(f"the {what} from step {at:,} on differ when it is run again")
