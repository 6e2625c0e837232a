"""`replay`: record methods in a world and watch them on a page."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from lacuna.agent.own_method import OwnMethod, find_method
from lacuna.agent.settings import DEFAULT, Settings
from lacuna.files import write_whole
from lacuna.missingness import Mechanism, parse
from lacuna.report.player import replay_page
from lacuna.report.recording import Recording, Stage, record
from lacuna.run.problems import Problem, find_problem
from lacuna.terminal import progress
from lacuna.validation import shown, whole_number
from lacuna.worlds.mdp.tabular import TabularMDP

STAGES = (0, 1_000, 5_000, 20_000, 50_000)
"""The stages of learning that are recorded by default."""

MOST_BYTES = 5_000_000
"""The default limit of the size of a page."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(kB|MB|GB)?")
_UNITS = {None: 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


@dataclass(frozen=True)
class Replay:
    """A recording to watch, in a notebook or as a page.

    Parameters
    ----------
    recording
        What was recorded.
    """

    recording: Recording

    @cached_property
    def html(self) -> str:
        """The page, complete without a network."""
        return replay_page(self.recording)

    def save(
        self, path: str | os.PathLike[str], *, max_size: int | str = MOST_BYTES, overwrite: bool = False
    ) -> int:  # fmt: skip
        """Write the page and give its size in bytes; refuse a page larger than `max_size`.

        A size is a number of bytes or a text, ``"5MB"``. An existing file is replaced only with `overwrite`.
        """
        most, target, content = bytes_of(max_size), Path(path), self.html.encode()
        if len(content) > most:
            raise ValueError(
                f"the page would have {len(content):,} bytes, more than the {most:,} it may have; "
                f"{_that_fit(self.recording, most)}"
            )
        if target.exists() and not overwrite:
            raise FileExistsError(f"{target} exists already; choose another name, or set overwrite=True")
        write_whole(target, content)
        return len(content)

    def __repr__(self) -> str:
        kept = self.recording
        names = ", ".join(settings.method for settings in kept.methods)
        at = ", ".join(str(stage.at) for stage in kept.stages[0])
        where = f"{kept.problem.world}, {kept.problem.missingness}"
        return f"Replay({names} in {where}; {kept.stages[0][0].steps} steps at {at})"

    def _repr_html_(self) -> str:
        # The player needs its script; in a sandbox it cannot reach the notebook around it.
        frame = '<iframe sandbox="allow-scripts" style="width:100%;height:56rem;border:0"'
        return f'{frame} srcdoc="{escape(self.html, quote=True)}"></iframe>'


def replay(
    world: str | TabularMDP = "lake", missingness: str | Mechanism = "mcar:0.4",
    methods: str | Settings | Sequence[str | Settings] = (), *, at: Sequence[int] = STAGES, steps: int = 300,
    seed: int = 0, first_observed: bool = True,
) -> Replay:  # fmt: skip
    """Record methods in a world at several stages of learning, to watch them.

    All methods get the same random streams of the world and of the masks.

    Parameters
    ----------
    world
        A world's name (``"lake,stay=true"``), a reference to one of your own (``"mine.worlds:maze"``), or a
        `TabularMDP`.
    missingness
        A mechanism as text (``"mcar:0.4"``), or a `Mechanism`.
    methods
        One method or several, as texts (``"mi-synthetic,K=5"``) or `Settings`; lacuna's default if none is given.
    at
        The steps of the run from which to record.
    steps
        How many steps to record at each stage.
    seed
        Seed of all random streams.
    first_observed
        Whether the first state of every episode is fully observed.

    Examples
    --------
    >>> found = replay("corridor", "mcar:0.4", "mi-synthetic,K=3", at=[0, 100], steps=20)
    >>> found
    Replay(mi-synthetic in corridor, mcar:0.4; 20 steps at 0, 100)
    >>> 20_000 < found.save("corridor.html") < 100_000
    True
    """
    problem = _problem(world, missingness, first_observed=first_observed)
    whole_number("seed", seed, 0)
    chosen = [_settings(one) for one in ([methods] if isinstance(methods, str | Settings) else methods)] or [DEFAULT]
    total = len(chosen) * (max([*at, 0]) + steps) if isinstance(steps, int) else 0
    with progress(f"recording {problem.world}", "steps") as show:
        show(total=total)
        return Replay(record(problem, chosen, at=at, steps=steps, seed=seed, progress=lambda n: show(advance=n)))


def bytes_of(size: int | str) -> int:
    """Read a size: a number of bytes, or a text such as 500kB or 5MB.

    Examples
    --------
    >>> bytes_of("2.5MB")
    2500000
    """
    if isinstance(size, str):
        found = _SIZE.fullmatch(size.strip())
        if found is None:
            raise ValueError(f"max_size is {shown(size)}; write it as bytes, kB, MB or GB, e.g. 5MB")
        return int(float(found[1]) * _UNITS[found[2]])
    return whole_number("max_size", size, 1)


def _that_fit(recording: Recording, most: int) -> str:
    """Say how many steps fit into a page of `most` bytes."""
    steps, low = recording.stages[0][0].steps, 0
    high = steps
    while low + 1 < high:
        middle = (low + high) // 2
        if len(replay_page(_shortened(recording, middle)).encode()) <= most:
            low = middle
        else:
            high = middle
    return f"{low:,} of {steps:,} steps fit" if low else "not one step fits"


def _shortened(recording: Recording, steps: int) -> Recording:
    """The first steps of every stage."""
    stages = tuple(tuple(_first(stage, steps) for stage in track) for track in recording.stages)
    return Recording(recording.problem, recording.seed, recording.methods, stages)


def _first(stage: Stage, n: int) -> Stage:
    stops, changes = stage.stopped < n, stage.changes[:, 0] <= n
    return Stage(
        stage.at, type(stage.before)(*(column[: n + 1] for column in stage.before)), stage.votes[:n],
        stage.probability[:n], stage.action[:n], stage.reward[:n], stage.ended[:n], stage.truncated[:n],
        stage.stopped[stops], type(stage.stops)(*(column[stops] for column in stage.stops)), stage.best,
        stage.changes[changes], stage.changed[changes],
    )  # fmt: skip


def _problem(world: str | TabularMDP, missingness: str | Mechanism, *, first_observed: bool) -> Problem:
    if isinstance(world, TabularMDP):
        mechanism = parse(missingness, world) if isinstance(missingness, str) else missingness
        return Problem(world.name, world, mechanism, first_observed)
    found = find_problem(world, missingness if isinstance(missingness, str) else "none", first_observed=first_observed)
    if not isinstance(found, Problem):
        raise TypeError(
            f"{world!r} is a Gymnasium environment, whose true state is unknown; a replay needs a world given as "
            f"arrays, e.g. frozen-lake or taxi"
        )
    return found if isinstance(missingness, str) else Problem(found.world, found.mdp, missingness, first_observed)


def _settings(method: Any) -> Settings:
    found = find_method(method) if isinstance(method, str) else method
    if isinstance(found, OwnMethod):
        raise TypeError(f"{found.method} is a method of your own, which has no pathways to show; name one of lacuna's")
    if not isinstance(found, Settings):
        raise TypeError(f"a method is {shown(method)}; it must be a name or Settings")
    return found
