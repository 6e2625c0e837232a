"""Trials from start to end: a problem and settings in, a row of figures per trial out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.counts import MAX_COUNT
from lacuna.learning.methods import YARDSTICKS, Settings
from lacuna.mdp.tabular import TabularMDP
from lacuna.missingness import Mechanism, parse
from lacuna.running.measures import SUMS
from lacuna.running.run import Run
from lacuna.running.yardstick import YardstickRun
from lacuna.worlds.registry import make_world

EARLY = 10_000
"""Learning speed is the reward per step over this many first steps."""

MOST_TRIALS = 100_000
"""Trials at once: all their figures are kept in memory."""

_MOST_WORKERS = 1024
_STEPS, _REWARD = SUMS.index("steps"), SUMS.index("reward")

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Problem:
    """A world and what hides it, with their names."""

    world: str
    missingness: str
    mdp: TabularMDP
    mechanism: Mechanism

    @classmethod
    def named(cls, world: str, missingness: str, parameters: Mapping[str, Any] | None = None) -> Problem:
        """Make a problem from the words of the command line.

        Examples
        --------
        >>> Problem.named("lake", "mfog:0.5,0", {"stay": True}).mechanism.label
        'NMAR'
        """
        return cls.on(make_world(world, **(parameters or {})), world, missingness)

    @classmethod
    def on(cls, mdp: TabularMDP, world: str, missingness: str) -> Problem:
        """Hide parts of a world that is at hand, called `world`."""
        mechanism = parse(missingness, mdp)
        return cls(world, mechanism.name, mdp, mechanism)


def run_trial(
    problem: Problem, settings: Settings, *, steps: int, seed: int = 0, times: Sequence[int] = (),
    first_observed: bool = True, driver: str = "compiled", progress: Progress | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run one trial and give its figures.

    Parameters
    ----------
    problem, settings
        The world, what hides it, and how the agent copes; or a yardstick, see `YARDSTICKS`.
    steps, seed
        How long, and which random streams: the same seed means the same world and mask streams for every method.
    times
        Steps at which to note the running sums, given back under ``curve``: a row per step noted, in order; its columns
        are `measures.SUMS`, then idle actions.
    first_observed, driver, progress
        As for `Run`.

    Returns
    -------
    dict
        Figures per completed episode, per step, early and late, of the open episode, of what was hidden and of how good
        the imputations were; and ``seed`` and ``seconds`` (compilation excluded).

    Examples
    --------
    >>> problem = Problem.named("corridor", "mcar:0.2", {"length": 4, "slip": 0.0})
    >>> figures = run_trial(problem, Settings("last-observed", gamma=0.9), steps=500)
    >>> figures["mean_path_length"] >= 3
    True
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem is {problem!r}; it must be a Problem, e.g. Problem.named('lake', 'mcar:0.4')")
    if not isinstance(settings, Settings):
        raise TypeError(f"settings is {settings!r}; it must be Settings, e.g. Settings('mi-synthetic', K=5)")
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_COUNT:
        raise ValueError(f"steps is {steps!r}; it must be a whole number between 1 and {MAX_COUNT}")
    for t in times:
        if isinstance(t, bool) or not isinstance(t, int) or not 1 <= t <= steps:
            raise ValueError(f"curve time {t!r} lies outside the run; it must be a whole number from 1 to {steps}")
    if not isinstance(first_observed, bool):
        raise ValueError(f"first_observed is {first_observed!r}; it must be True or False")
    run = _start(problem, settings, seed, first_observed, driver)
    early, late = min(EARLY, steps), steps - max(1, steps // 5)
    wanted = {early, late, *times} - {0, steps}
    run.advance(steps, times=wanted, progress=progress)
    end = run.snapshot()
    noted = dict(zip(sorted(wanted), run.curve, strict=True)) | {steps: end}
    nothing = np.zeros(len(SUMS) + 1)
    figures = run.figures() | {
        "reward_per_step_early": _per_step(noted[early], nothing),
        "reward_per_step_late": _per_step(end, noted.get(late, nothing)),
        "seed": seed,
        "seconds": run.seconds,
    }
    if times:
        figures["curve"] = np.array([noted[t] for t in sorted(set(times))])
    return figures


def _start(problem: Problem, settings: Settings, seed: int, first_observed: bool, driver: str) -> Run | YardstickRun:
    """A run of a method, or of a yardstick."""
    if settings.method not in YARDSTICKS:
        return Run(problem.mdp, problem.mechanism, settings, seed=seed, first_observed=first_observed, driver=driver)
    if driver != "compiled":
        raise ValueError(
            f"driver is {driver!r}, but {settings.method} is a yardstick: it knows what no environment shows, so it is "
            f"compiled only"
        )
    return YardstickRun(problem.mdp, problem.mechanism, settings, seed=seed, first_observed=first_observed)


def threads(workers: int | None) -> int:
    """How many workers: as many as said, else one per core that this process may use."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 <= workers <= _MOST_WORKERS:
        raise ValueError(f"workers is {workers}; it must be between 1 and {_MOST_WORKERS}")
    return workers


def run_trials(
    problem: Problem, settings: Settings, *, steps: int, seeds: Sequence[int], workers: int | None = None,
    driver: str = "compiled", **rest: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """Run a trial per seed, several at a time; the figures do not depend on how many."""
    if len(seeds[: MOST_TRIALS + 1]) > MOST_TRIALS:
        raise ValueError(f"there are more than {MOST_TRIALS} seeds; make a study of them, which keeps what is done")
    # Compile (or read the cache) before any clock runs.
    _start(problem, settings, 0, first_observed=True, driver=driver).advance(1)
    stop = Event()
    progress = rest.pop("progress", None)

    def report(n: int) -> None:
        if stop.is_set():
            raise InterruptedError("another trial failed, or the user stopped them all")
        if progress is not None:
            progress(n)

    with ThreadPoolExecutor(threads(workers)) as pool:
        jobs = [
            pool.submit(run_trial, problem, settings, steps=steps, seed=seed, driver=driver, progress=report, **rest)
            for seed in seeds
        ]
        try:
            return [job.result() for job in jobs]
        except BaseException:
            # Trials look at the flag between chunks, some milliseconds apart.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _per_step(later: NDArray[np.float64], earlier: NDArray[np.float64]) -> float:
    return float((later[_REWARD] - earlier[_REWARD]) / (later[_STEPS] - earlier[_STEPS]))
