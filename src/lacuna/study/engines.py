"""Where the runs of a study are computed: threads here, a Dask cluster, or a SLURM array. The results are the same."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from lacuna.study.runner import Outcome, Progress, execute_portion, run_study
from lacuna.study.spec import RunSpec, Study
from lacuna.study.store import Store


@dataclass(frozen=True)
class Local:
    """Threads of this process; kernels run without Python's global lock."""

    workers: int

    def outcomes(self, portions: Iterator[list[RunSpec]]) -> Iterator[Outcome]:
        """Keep every worker busy, and take a new portion only when one is free."""
        with ThreadPoolExecutor(self.workers) as pool:
            pending: set[Future[Outcome]] = set()
            try:
                for portion in portions:
                    pending.add(pool.submit(execute_portion, portion))
                    # One portion waits beside those at work, so that no worker idles while a file is written.
                    if len(pending) > self.workers:
                        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                        for future in finished:
                            yield future.result()
                while pending:
                    finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                    for future in finished:
                        yield future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Dask:
    """A Dask cluster, by the address of its scheduler; workers need lacuna installed but no shared disk."""

    scheduler: str

    def outcomes(self, portions: Iterator[list[RunSpec]]) -> Iterator[Outcome]:
        """Keep two portions per worker thread under way; a worker that dies has its portions done by others."""
        distributed = _extra("distributed", "dask")
        try:
            client = distributed.Client(self.scheduler, timeout=20)
        except OSError as error:
            raise ValueError(f"no Dask scheduler answers at {self.scheduler}: {error}") from error
        with client:
            ahead = 2 * max(1, sum(client.nthreads().values()))
            first = [_submit(client, portion) for _, portion in zip(range(ahead), portions, strict=False)]
            if not first:
                return
            under_way = distributed.as_completed(first, with_results=True)
            for _, (rows, failures) in under_way:
                yield Outcome(rows, failures)
                for portion in portions:
                    under_way.add(_submit(client, portion))
                    break


def _submit(client: Any, portion: list[RunSpec]) -> Any:
    return client.submit(_on_a_worker, [run.to_json() for run in portion], pure=False, retries=10)


def _on_a_worker(runs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Plain data in and out: what a worker and this process must agree on is the names of the columns only."""
    outcome = execute_portion([RunSpec.from_json(run) for run in runs])
    return outcome.rows, outcome.failures


def run_on_slurm(
    study: Study, store: Store, *, tasks: int, cpus: int, options: dict[str, Any],
    watch: Callable[[Progress], None] = lambda _: None,
) -> Progress:  # fmt: skip
    """Submit arrays whose tasks each fill in a shard of the study, and wait until they are done.

    The tasks write into the store themselves, so it must lie on a disk that all nodes share.
    """
    submitit = _extra("submitit", "slurm")
    store.add_study(study)
    logs = store.path / "slurm"
    executor = submitit.AutoExecutor(folder=logs, cluster="slurm")
    executor.update_parameters(name=f"lacuna-{study.spec.name}", cpus_per_task=cpus, **options)
    limit = array_limit()
    shards = [(i, tasks) for i in range(1, tasks + 1)]
    jobs: list[Any] = []
    for first in range(0, tasks, limit):
        some = shards[first : first + limit]
        data = study.spec.model_dump(exclude_defaults=True)
        jobs += executor.map_array(
            _shard_task, [data] * len(some), [str(store.path)] * len(some), some, [cpus] * len(some)
        )
    progress = Progress(len(study))
    names = {run.id for run in study.runs()}
    at_start = len(names & store.done())
    while True:
        over = all(job.done() for job in jobs)
        progress.done = len(names & store.done())
        progress.steps = (progress.done - at_start) * study.spec.steps
        watch(progress)
        if over:
            break
        time.sleep(2)
    for job in jobs:
        trouble = job.exception()
        if trouble is not None:
            progress.failed += 1
            progress.failures.append(f"task {job.job_id}: {str(trouble).strip().splitlines()[-1]}")
    return progress


def _extra(module: str, extra: str) -> Any:
    """Import what only one engine needs."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ValueError(f"this engine needs an extra: pip install 'lacuna[{extra}]'") from error


def _shard_task(study: dict[str, Any], path: str, shard: tuple[int, int], cpus: int) -> int:
    progress = run_study(Study.from_data(study), Store.existing(path), Local(cpus), shard=shard)
    if progress.failed:
        raise RuntimeError("; ".join(progress.failures))
    return progress.done


def array_limit(default: int = 1000) -> int:
    """The largest array that the site allows, as SLURM itself says."""
    try:
        told = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"SLURM does not answer: {error}") from error
    for line in told.stdout.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "MaxArraySize":
            # The size counts from 0: an array may have one task less.
            return max(1, int(value) - 1)
    return default


def default_workers() -> int:
    """One worker per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
