"""Trials from start to end: a problem and a method in, a row of figures per trial out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.own_method import AnyMethod, OwnMethod
from lacuna.kernels.counts import MAX_COUNT
from lacuna.run.env_run import EnvRun
from lacuna.run.measures import SUMS
from lacuna.run.problems import AnyProblem, EnvProblem
from lacuna.run.run import DRIVERS, Run
from lacuna.validation import of_kind, one_of, shown, whole_number

EARLY_STEPS = 10_000
"""Learning speed is the reward per step over this many first steps."""

MOST_TRIALS = 100_000
"""Trials at once: all their figures are kept in memory."""

_MOST_WORKERS = 1024
_STEPS, _REWARD = SUMS.index("steps"), SUMS.index("reward")

Progress = Callable[[int], None]


def run_trial(
    problem: AnyProblem, settings: AnyMethod, *, steps: int, seed: int = 0, times: Iterable[int] = (),
    driver: str = "compiled", progress: Progress | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run one trial and return its figures.

    Parameters
    ----------
    problem
        A world or an environment, and what hides parts of it.
    settings
        A method with its settings, lacuna's or your own; or a yardstick. An environment, and a method of your own, are
        run step by step.
    steps
        Length of the trial.
    seed
        Seed of all random streams. The same seed gives every method the same world stream and the same mask stream.
    times
        Steps at which to note the running sums.
    driver
        ``"compiled"`` or ``"stepwise"``, as for `Run`.
    progress
        Called now and then with the number of steps done since the last call.

    Figures
    -------
    mean_total_reward
        Mean total reward of the completed episodes; None if there are none.
    mean_bad_steps
        Mean number of bad steps, as the world flags them, of the completed episodes.
    mean_path_length
        Mean number of steps of the completed episodes.
    episodes
        Number of completed episodes.
    steps
        Number of steps.
    reward_per_step
        Mean reward over all steps.
    reward_per_step_early
        Mean reward over the first 10,000 steps.
    reward_per_step_late
        Mean reward over the last fifth of the steps.
    idle_share
        Share of steps in which the idle action was taken.
    hidden_shares
        Shares of steps in which 0, 1, 2, … components were hidden.
    open_steps
        Steps of the open episode.
    open_reward
        Reward of the open episode.
    open_bad_steps
        Bad steps of the open episode.
    cut_episodes
        Number of episodes that were cut off.
    cut_steps
        Steps of the episodes that were cut off.
    cut_reward
        Reward of the episodes that were cut off.
    cut_bad_steps
        Bad steps of the episodes that were cut off.
    guessed_right
        Share of hidden components that the pathways guessed right; None for methods that do not guess.
    weight_on_truth
        Share of pathways in the true state, where something was hidden.
    calibration_error
        Mean distance between the share of pathways that agree on a state and how often such a state is the true one.
    seed
        The seed.
    seconds
        Time of the steps, without compiling.
    curve
        Only with `times`: the running sums `SUMS` and the number of idle actions, a row per time.

    Examples
    --------
    >>> from lacuna import Problem, Settings
    >>> problem = Problem.named("corridor,length=4,slip=0.0", "mcar:0.2")
    >>> figures = run_trial(problem, Settings("last-observed", gamma=0.9), steps=500)
    >>> figures["mean_path_length"] >= 3
    True
    """
    steps = whole_number("steps", steps, 1, MAX_COUNT)
    times = [whole_number("a curve time", t, 1, steps) for t in times]
    with closing(_start(problem, settings, seed, driver)) as run:
        return _measured(run, steps, times, progress) | {"seed": int(seed)}


def _measured(run: Run | EnvRun, steps: int, times: list[int], progress: Progress | None) -> dict[str, Any]:
    early, late = min(EARLY_STEPS, steps), steps - max(1, steps // 5)
    wanted = {early, late, *times} - {0, steps}
    run.advance(steps, times=wanted, progress=progress)
    end = run.snapshot()
    noted = dict(zip(sorted(wanted), run.curve, strict=True)) | {steps: end}
    nothing = np.zeros(len(SUMS) + 1)
    figures = run.figures() | {
        "reward_per_step_early": _per_step(noted[early], nothing),
        "reward_per_step_late": _per_step(end, noted.get(late, nothing)),
        "seconds": run.seconds,
    }
    if times:
        figures["curve"] = np.array([noted[t] for t in sorted(set(times))])
    return figures


def _start(problem: AnyProblem, settings: AnyMethod, seed: int, driver: str) -> Run | EnvRun:
    if not isinstance(problem, AnyProblem):
        raise TypeError(f"problem is {shown(problem)}; it must be a Problem, e.g. Problem.named('taxi', 'mcar:0.4')")
    if isinstance(problem, EnvProblem) or isinstance(settings, OwnMethod):
        one_of("driver", driver, DRIVERS)
        return EnvRun(problem, settings, seed=seed)
    first_observed = problem.first_observed
    return Run(problem.mdp, problem.mechanism, settings, seed=seed, first_observed=first_observed, driver=driver)


def threads(workers: int | None) -> int:
    """Number of workers: as given, else one per core that this process may use.

    Examples
    --------
    >>> threads(3), threads(None) >= 1
    (3, True)
    """
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return whole_number("workers", workers, 1, _MOST_WORKERS)


def run_trials(
    problem: AnyProblem, settings: AnyMethod, *, steps: int, seeds: Iterable[int], workers: int | None = None,
    driver: str = "compiled", progress: Progress | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Run one trial per seed, on several threads; the figures do not depend on how many.

    Examples
    --------
    >>> from lacuna import Problem, Settings
    >>> problem = Problem.named("corridor", "mcar:0.2")
    >>> rows = run_trials(problem, Settings("last-observed"), steps=500, seeds=range(3))
    >>> [row["seed"] for row in rows]
    [0, 1, 2]
    """
    return run_seeds(SeedlessTrial(problem, settings, steps, driver), seeds, workers, progress)


class SeedlessTrial(NamedTuple):
    """The arguments of `run_trial` except the seed."""

    problem: AnyProblem
    settings: AnyMethod
    steps: int
    driver: str = "compiled"
    times: Sequence[int] = ()
    """Read once for every seed, so it must not be an iterator."""


def run_seeds(
    trial: SeedlessTrial, seeds: Iterable[int], workers: int | None = None, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Run a trial once per seed, on several threads."""
    problem, settings, steps, driver, times = trial
    of_kind("seeds", seeds, Iterable, "a list of whole numbers, e.g. range(10)")
    seeds = tuple(islice(seeds, MOST_TRIALS + 1))
    if len(seeds) > MOST_TRIALS:
        raise ValueError(f"there are more than {MOST_TRIALS} seeds; make a study of them, which keeps what is done")
    # Compile (or read the cache) before any clock runs.
    with closing(_start(problem, settings, 0, driver)) as first:
        first.advance(1)
    stop = Event()

    def report(n: int) -> None:
        if stop.is_set():
            raise InterruptedError("another trial failed, or the user stopped them all")
        if progress is not None:
            progress(n)

    with ThreadPoolExecutor(threads(workers)) as pool:
        jobs = [
            pool.submit(
                run_trial, problem, settings, steps=steps, seed=seed, times=times, driver=driver, progress=report
            )
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
