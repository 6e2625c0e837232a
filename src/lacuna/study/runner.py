"""From a study to a full store: which runs are left, in which portions, and the row of one run."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol

import numpy as np

from lacuna.parameters import Frozen
from lacuna.references import Sources, check_sources
from lacuna.run.measures import SUMS
from lacuna.run.problems import AnyProblem, find_problem
from lacuna.run.repetitions import run_trial
from lacuna.study.runs import RunSpec
from lacuna.study.spec import Study
from lacuna.study.store import Store
from lacuna.validation import of_kind
from lacuna.version import RESULTS_VERSION, __version__

# A portion is what a worker does at a time: at most some seconds of work, and a small part of a small study.
_STEPS_A_PORTION, _RUNS_A_PORTION, _PORTIONS = 4_000_000, 250, 64

# Seconds between two files of results, which is what a killed process loses besides the portions under way: a share of
# the time so far, so that little is lost early, within bounds.
_SAVE_SHARE, _SAVE_SOONEST, _SAVE_LATEST = 0.1, 0.1, 1.0

_CURVES = {
    "curve_episodes": "episodes", "curve_reward": "episode_reward", "curve_bad": "episode_bad",
    "curve_path": "episode_steps", "curve_total": "reward",
}  # fmt: skip
_NO_CURVE = np.zeros((0, len(SUMS) + 1))


@dataclass
class Outcome:
    """The result of a portion of runs: rows for the store, and a sentence for each run that failed."""

    rows: list[dict[str, Any]]
    failures: list[str] = field(default_factory=list)


@dataclass
class Progress:
    """The progress of a study."""

    total: int
    done: int = 0
    failed: int = 0
    steps: int = 0
    began: float = field(default_factory=time.monotonic)
    failures: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count the result of a portion."""
        self.done += len(outcome.rows)
        self.failed += len(outcome.failures)
        self.failures += outcome.failures[: 20 - len(self.failures)]
        self.steps += sum(row["steps"] for row in outcome.rows)

    def figures(self) -> dict[str, float]:
        """The progress as plain data."""
        return {
            "done": self.done, "total": self.total, "failed": self.failed, "steps_per_second": self.steps_per_second,
        }  # fmt: skip

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    @property
    def steps_per_second(self) -> float:
        """Steps a second, of this process and its workers."""
        return self.steps / self.seconds if self.seconds > 0 else 0.0


class EngineError(RuntimeError):
    """The engine that computes the runs is lost; results received before are stored."""


class Engine(Protocol):
    """Computes portions of runs and returns their results, in any order."""

    def outcomes(self, portions: Iterator[list[RunSpec]]) -> Generator[Outcome]:
        """Take portions as workers become free; yield results as they arrive."""
        ...


@lru_cache(maxsize=64)
def problem_of(
    world: str, parameters: Frozen, missingness: str, *, first_observed: bool, sources: Sources = ()
) -> AnyProblem:
    """Build a world and its mechanism, or return cached ones; refuse sources that differ from the given ones."""
    check_sources(sources)
    return find_problem(world, missingness, dict(parameters), first_observed=first_observed)


def execute(run: RunSpec) -> dict[str, Any]:
    """Execute a run; returns its row for the store."""
    problem = problem_of(
        run.world, run.parameters, run.missingness, first_observed=run.first_observed, sources=run.sources
    )
    figures = run_trial(problem, run.settings, steps=run.steps, seed=run.trial, times=run.curve)
    # A line per sum, each in one piece: a table takes arrays as they are, and lists number by number.
    curve = np.ascontiguousarray(figures.pop("curve", _NO_CURVE).T)
    figures.pop("seed")
    row: dict[str, Any] = {
        "id": run.id,
        "results": RESULTS_VERSION,
        **run.as_columns(),
        "label": problem.mechanism.label,
        **figures,
        "curve_step": curve[SUMS.index("steps")].astype(np.int64),
        "curve_idle": curve[-1],
        "host": socket.gethostname(),
        "lacuna": __version__,
    }
    row |= {column: curve[SUMS.index(name)] for column, name in _CURVES.items()}
    return row | dict.fromkeys(("curve_bad", "curve_idle") if row["open_bad_steps"] is None else ())


def execute_portion(runs: list[RunSpec]) -> Outcome:
    """Execute several runs; a failure does not stop the others."""
    outcome = Outcome([])
    for run in runs:
        try:
            outcome.rows.append(execute(run))
        except Exception as error:  # noqa: BLE001  the other runs continue, and the error is reported
            outcome.failures.append(
                f"{run.id} ({run.settings.method}, {run.missingness}, trial {run.trial}): {error!r}"
            )
    return outcome


def in_shard(run: RunSpec, shard: tuple[int, int]) -> bool:
    """Whether a run belongs to shard i of n; its name decides, so machines need not communicate."""
    i, n = shard
    return int(run.id, 16) % n == i - 1


def wanted_runs(studies: Sequence[Study], shard: tuple[int, int]) -> Iterator[RunSpec]:
    """The runs of some studies that belong to a shard; a run that several studies share comes once."""
    mine = (run for study in studies for run in study.runs() if in_shard(run, shard))
    if len(studies) == 1:
        yield from mine
        return
    seen: set[str] = set()
    for run in mine:
        if run.id not in seen:
            seen.add(run.id)
            yield run


def portions_left(studies: Sequence[Study], store: Store, shard: tuple[int, int]) -> Iterator[list[RunSpec]]:
    """Unfinished runs, in portions; the store is checked again before each portion."""
    steps, n = max(study.spec.steps for study in studies), sum(map(len, studies))
    size = max(1, min(_RUNS_A_PORTION, _STEPS_A_PORTION // steps, n // _PORTIONS))
    mine = wanted_runs(studies, shard)
    while portion := list(islice(mine, size)):
        done = store.done()
        left = [run for run in portion if run.id not in done]
        if left:
            yield left


def run_study(
    study: Study, store: Store, engine: Engine, *, shard: tuple[int, int] = (1, 1),
    watch: Callable[[Progress], None] = lambda _: None,
) -> Progress:  # fmt: skip
    """Compute the runs of a study that the store lacks."""
    return run_studies([study], store, engine, shard=shard, watch=watch)


def run_studies(
    studies: Sequence[Study], store: Store, engine: Engine, *, shard: tuple[int, int] = (1, 1),
    watch: Callable[[Progress], None] = lambda _: None,
) -> Progress:  # fmt: skip
    """Compute the runs of several studies that the store lacks, as if they were one study.

    Examples
    --------
    >>> from lacuna import Local, Store, Study
    >>> short = {
    ...     "steps": 50, "trials": 2, "missingness": ["mcar:0.2"], "worlds": [{"name": "corridor"}],
    ...     "methods": [{"name": "last-observed"}],
    ... }
    >>> named = ({"name": "short"} | short, {"name": "again", "first_trial": 2} | short)
    >>> studies = [Study.from_data(data) for data in named]
    >>> run_studies(studies, Store("results"), Local(1)).done
    4
    """
    for study in studies:
        of_kind("study", study, Study, "a Study; Study.read reads a file")
        store.add_study(study)
    name = studies[0].spec.name if len(studies) == 1 else f"{len(studies)} studies"
    done = store.done()
    names = [run.id for run in wanted_runs(studies, shard)]
    progress = Progress(len(names), sum(known in done for known in names))
    del names, done
    watch(progress)
    unsaved: list[dict[str, Any]] = []
    saved_at = time.monotonic()
    with store.reporting() as report:
        try:
            # Closed here rather than by the garbage collector, which would swallow an interrupt.
            with closing(engine.outcomes(portions_left(studies, store, shard))) as outcomes:
                for outcome in outcomes:
                    unsaved += outcome.rows
                    progress.add(outcome)
                    watch(progress)
                    # Not after every portion: writing a file may take longer than computing it.
                    pause = min(max(_SAVE_SHARE * progress.seconds, _SAVE_SOONEST), _SAVE_LATEST)
                    if time.monotonic() - saved_at >= pause:
                        store.write(unsaved)
                        report({"study": name} | progress.figures())
                        unsaved, saved_at = [], time.monotonic()
        finally:
            store.write(unsaved)
    # Runs that other processes stored meanwhile count too; runs that were lost do not.
    done = store.done(afresh=True)
    progress.done = sum(run.id in done for run in wanted_runs(studies, shard))
    watch(progress)
    return progress
