"""Where the runs of a study are computed: threads here, a Dask cluster, or a SLURM array. The results are the same."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

from lacuna.study.runner import EngineError, Outcome, Progress, execute_portion, run_study
from lacuna.study.runs import RunSpec
from lacuna.study.spec import Study
from lacuna.study.store import Store
from lacuna.validation import whole_number

_PATIENCE = 20.0
"""Seconds to wait for a scheduler to answer."""


@dataclass(frozen=True)
class Local:
    """Threads of this process; kernels run without Python's global lock."""

    workers: int

    def __post_init__(self) -> None:
        whole_number("workers", self.workers, 1)

    def outcomes(self, portions: Iterator[list[RunSpec]]) -> Generator[Outcome]:
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
    """A Dask cluster, connected to its scheduler; workers need lacuna installed but no shared disk."""

    scheduler: str
    client: Any

    @classmethod
    @contextmanager
    def connected(cls, scheduler: str) -> Iterator[Dask]:
        """Connect to the scheduler at an address, until the end of a block."""
        distributed = _extra("distributed", "dask")
        # It logs tracebacks when the connection is lost; we report one sentence. Any of its modules may be the first to
        # notice. These two loggers have their own levels; the others inherit that of the first.
        for logger in ("distributed", "distributed.client"):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        try:
            # Before there is a client, which would leave a thread behind if there is no answer; in another thread,
            # because a notebook has a running event loop in this one.
            with ThreadPoolExecutor(1) as other:
                other.submit(lambda: asyncio.run(_knock(distributed, scheduler))).result()
            client = distributed.Client(scheduler, timeout=_PATIENCE, set_as_default=False)
        except Exception as error:
            raise ValueError(f"no Dask scheduler answers at {scheduler!r}: {error}") from error
        with client:
            yield cls(scheduler, client)

    def outcomes(self, portions: Iterator[list[RunSpec]]) -> Generator[Outcome]:
        """Keep two portions per worker thread under way; if a worker dies, others redo its portions."""
        finished: SimpleQueue[Any] = SimpleQueue()
        with self._or_gone():
            ahead = 2 * max(1, sum(self.client.nthreads().values()))
        under_way = 0
        while True:
            for portion in islice(portions, ahead - under_way):
                self._submit(portion, finished)
                under_way += 1
            if not under_way:
                return
            yield self._next_of(finished)
            under_way -= 1

    def _submit(self, portion: list[RunSpec], finished: SimpleQueue[Any]) -> None:
        with self._or_gone():
            data = [run.to_json() for run in portion]
            self.client.submit(_on_a_worker, data, pure=False, retries=10).add_done_callback(finished.put)

    def _next_of(self, finished: SimpleQueue[Any]) -> Outcome:
        """The result of a worker; a failure if one worker after another died on the portion."""
        future = None
        while future is None:
            with suppress(Empty):
                future = finished.get(timeout=1)
            # A scheduler that was lost or restarted does not know the submitted portions.
            if self.client.status != "running" or (future is not None and future.cancelled()):
                raise self._gone()
        try:
            rows, failures = future.result()
        except Exception as error:
            # Whatever the error, the other portions continue, and the error is reported.
            if self.client.status != "running":
                raise self._gone() from error
            return Outcome([], [f"a portion was given up by Dask: {error!r}"])
        return Outcome(rows, failures)

    @contextmanager
    def _or_gone(self) -> Iterator[None]:
        """Report a lost scheduler if a call to it fails."""
        try:
            yield
        except Exception as error:
            raise self._gone() from error

    def _gone(self) -> EngineError:
        return EngineError(f"the Dask scheduler at {self.scheduler} is gone; what came back before is stored")


async def _knock(distributed: Any, scheduler: str) -> None:
    comm = await distributed.comm.connect(scheduler, timeout=_PATIENCE)
    comm.abort()


def _on_a_worker(runs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Plain data in and out: a worker and this process only need to agree on the names of the columns."""
    outcome = execute_portion([RunSpec.from_json(run) for run in runs])
    return outcome.rows, outcome.failures


def run_on_slurm(
    study: Study, store: Store, *, tasks: int, limit: int, cpus: int, options: dict[str, Any],
    watch: Callable[[Progress], None] = lambda _: None,
) -> Progress:  # fmt: skip
    """Submit arrays of up to `limit` tasks, each filling in a shard, and wait until none is left in the queue.

    The tasks write to the store themselves, so it must be on a disk that all nodes share. Ctrl-C cancels them; if this
    process is killed, they continue.
    """
    submitit = _extra("submitit", "slurm")
    store.add_study(study)
    names = {run.id for run in study.runs()}
    progress = Progress(len(names), len(names & store.done()))
    at_start = progress.done
    if at_start == len(names):
        return progress
    executor = submitit.AutoExecutor(folder=store.path.resolve() / "slurm", cluster="slurm")
    # No signal before the time limit: finished portions are stored, and a short task would get the signal at its start.
    executor.update_parameters(
        name=f"lacuna-{study.spec.name}", cpus_per_task=cpus, slurm_array_parallelism=tasks, slurm_signal_delay_s=0,
        **options,
    )  # fmt: skip
    data, place = study.to_note(), str(store.path.resolve())
    jobs: list[Any] = []
    try:
        for first in range(1, tasks + 1, limit):
            shards = [(i, tasks) for i in range(first, min(first + limit, tasks + 1))]
            n = len(shards)
            jobs += executor.map_array(_shard_task, [data] * n, [place] * n, shards, [cpus] * n)
        while True:
            queue = _slurm_queue()
            progress.done = len(names & store.done())
            progress.steps = (progress.done - at_start) * study.spec.steps
            watch(progress)
            # If SLURM does not answer, only a full store shows that all tasks are done.
            if progress.done == len(names) if queue is None else not any(job.job_id in queue for job in jobs):
                break
            time.sleep(2)
    except RuntimeError as error:
        _cancel(jobs)
        raise ValueError(f"SLURM refused the tasks: {_last_line(str(error))}") from error
    except KeyboardInterrupt:
        _cancel(jobs)
        raise
    # A network disk may show a result some seconds after its task left the queue.
    deadline = time.monotonic() + 15
    for job in jobs:
        failures = _failures_of(job, deadline)
        progress.failed += len(failures)
        told = [f"task {job.job_id}: {failure}; its log is {job.paths.stderr}" for failure in failures]
        progress.failures += told[: 20 - len(progress.failures)]
    progress.done = len(names & store.done(afresh=True))
    return progress


def _slurm_queue() -> set[str] | None:
    """The waiting and running tasks of this user; None if SLURM does not answer.

    It asks the queue. submitit asks the accounting, which many sites do not have, and would wait for ever for a task
    that died without a result.
    """
    words = ["squeue", "--noheader", "--array", "--format=%i", f"--user={os.getuid()}"]
    told = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    return set(told.stdout.split()) if told.returncode == 0 else None


def _failures_of(job: Any, deadline: float) -> list[str]:
    """The failures of a task that left the queue."""
    while not job.paths.result_pickle.exists():
        if time.monotonic() > deadline:
            return ["it ended without a result: it was cancelled or killed, or ran out of time or memory"]
        time.sleep(0.5)
    trouble = job.exception()
    if trouble:
        # submitit puts the traceback between two lines of dashes.
        return [_last_line(str(trouble).split("\n-----")[1])]
    failures: list[str] = job.result()
    return failures


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it does not say why"])[-1]


def _cancel(jobs: list[Any]) -> None:
    for job in jobs:
        job.cancel(check=False)


def _extra(module: str, extra: str) -> Any:
    """Import a package that only one engine needs."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ValueError(f"this engine needs an extra: pip install 'lacuna[{extra}]'") from error


def _shard_task(note: dict[str, Any], path: str, shard: tuple[int, int], cpus: int) -> list[str]:
    return run_study(Study.from_note(note, "study"), Store.existing(path), Local(cpus), shard=shard).failures


def find_slurm(default: int = 1000) -> int:
    """Check that SLURM is available; returns the largest job array that the site allows."""
    _extra("submitit", "slurm")
    try:
        told = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"SLURM does not answer: {error}") from error
    for line in told.stdout.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "MaxArraySize":
            # An array counts from 0, and its last number must be below the size.
            return max(1, int(value))
    return default
