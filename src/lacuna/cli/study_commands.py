"""The `lacuna study` commands. Heavy imports happen inside the commands that need them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuna.quantities import counted, duration
from lacuna.validation import printable, whole_number

if TYPE_CHECKING:
    from lacuna.study.runner import Progress
    from lacuna.study.runs import RunSpec
    from lacuna.study.spec import Study
    from lacuna.study.store import Store

Watch = Callable[["Progress"], None]
Fill = Callable[["Store", Watch], "Progress"]
"""Computes the runs of a study that a store lacks."""

app = typer.Typer(help="Thousands of runs from one file: plan, run, resume, inspect, export.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The study, a TOML file.", show_default=False)]
Folder = Annotated[Path, typer.Argument(help="The folder of results.", show_default=False)]


@app.command()
def plan(
    file: File,
    workers: Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one per core")] = None,
    out: Annotated[Path | None, typer.Option(help="A folder of results; its runs are left out.")] = None,
) -> None:
    """Count the runs and steps of a study, and estimate the time on this machine by trying some."""
    from lacuna.run.repetitions import threads
    from lacuna.study.spec import Study
    from lacuna.study.store import Store

    study = Study.read(file)
    workers = threads(workers)
    store = Store.existing(out) if out else None
    done = store.done() if store else frozenset()
    left = sum(run.id not in done for run in study.runs()) if done else len(study)
    typer.echo(f"{study.spec.name}: {counted(len(study.problems), 'problem')} x "
               f"{counted(len(study.settings), 'setting')} x {counted(study.spec.trials, 'trial')} = "
               f"{counted(len(study), 'run')} of {counted(study.spec.steps, 'step')}, "
               f"{counted(len(study) * study.spec.steps, 'step')} in all")  # fmt: skip
    if store:
        tell_of_damage(store)
        typer.echo(f"in {out} already: {counted(len(study) - left, 'run')}; left: {left:,}")
    if not left:
        return
    seconds, tried = seconds_a_run(study, done)
    typer.echo(f"about {duration(left * seconds / workers)} on {counted(workers, 'worker')} of this machine "
               f"({seconds * 1000:.1f} ms a run, from {counted(tried, 'run')} tried just now)")  # fmt: skip


def seconds_a_run(study: Study, done: AbstractSet[str], budget: float = 4.0) -> tuple[float, int]:
    """Mean time of a run that is left, from runs picked at random, for about `budget` seconds.

    Runs longer than 50,000 steps are tried for that many and scaled up.
    """
    chosen = set(random.Random(0).sample(range(len(study)), min(len(study), 2000)))  # noqa: S311  not for secrets
    runs = [run for index, run in enumerate(study.runs()) if index in chosen and run.id not in done][:400]
    runs = runs or [next(run for run in study.runs() if run.id not in done)]
    steps = min(study.spec.steps, 50_000)
    runs = [replace(run, steps=steps, curve=tuple(t for t in run.curve if t <= steps)) for run in runs]
    random.Random(1).shuffle(runs)  # noqa: S311
    total, tried = 0.0, 0
    while tried < len(runs) and (total < budget or tried < 3):
        took, compiled = _timed(runs[tried])
        total += _timed(runs[tried])[0] if compiled else took
        tried += 1
    return total / tried * study.spec.steps / steps, tried


def _timed(run: RunSpec) -> tuple[float, bool]:
    """Seconds that a run took, and whether kernels were compiled or read from the cache meanwhile."""
    from numba.core.event import install_recorder

    from lacuna.study.runner import execute

    # The compiler takes its lock for both.
    with install_recorder("numba:compiler_lock") as locked:
        began = time.perf_counter()
        execute(run)
        return time.perf_counter() - began, bool(locked.buffer)


@app.command()
def run(
    file: File,
    out: Annotated[Path, typer.Option(help="The folder of results; stored runs are not repeated.")],
    workers: Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one per core")] = None,
    engine: Annotated[str, typer.Option(help="local, dask or slurm.")] = "local",
    scheduler: Annotated[str | None, typer.Option(help="Dask: the scheduler, e.g. tcp://host:8786.")] = None,
    shard: Annotated[str, typer.Option(help="Only part i of n, e.g. 2/3: for machines that share nothing.")] = "1/1",
    tasks: Annotated[int, typer.Option(help="SLURM: how many tasks to split the study into.")] = 100,
    partition: Annotated[str | None, typer.Option(help="SLURM: the partition.")] = None,
    minutes: Annotated[int, typer.Option(help="SLURM: time limit of a task.")] = 60,
    memory: Annotated[int, typer.Option(help="SLURM: memory of a task, in GB.")] = 2,
) -> None:
    """Run a study, or what is left of it. Stop it at any time; the same command continues it."""
    from lacuna.run.repetitions import threads
    from lacuna.study.runner import EngineError
    from lacuna.study.spec import Study
    from lacuna.study.store import Store
    from lacuna.study.watching import shown_on_terminal

    study = Study.read(file)
    cores = threads(workers)
    for name, value, owner in (("scheduler", scheduler, "dask"), ("partition", partition, "slurm")):
        if value is not None and engine != owner:
            raise ValueError(f"{name} is {value!r}, but the engine is {engine}; it belongs to --engine {owner}")
    if engine == "slurm" and shard != "1/1":
        raise ValueError(f"shard is {shard!r}, but the SLURM engine makes its own shards; say how many with --tasks")
    where: AbstractContextManager[Fill]
    if engine == "local":
        where = _locally(study, _shard(shard), cores)
    elif engine == "dask":
        where = _on_dask(study, _shard(shard), scheduler)
    elif engine == "slurm":
        options = {
            "timeout_min": whole_number("minutes", minutes, 1, 10**6),
            "mem_gb": whole_number("memory", memory, 1, 10**6),
        } | ({"slurm_partition": partition} if partition else {})  # fmt: skip
        # A task gets the cores it asks for, not those of the machine that submits it.
        where = _on_slurm(study, whole_number("tasks", tasks, 1, 100_000), workers or 1, options)
    else:
        raise ValueError(f"engine is {engine!r}; it must be local, dask or slurm")
    try:
        # The engine first: nothing is left behind if there is none.
        with where as fill:
            store = Store(out)
            with shown_on_terminal(study.spec.name) as watch:
                reached = fill(store, watch)
    except EngineError as error:
        typer.echo(f"lacuna: {error}, and the same command goes on", err=True)
        raise typer.Exit(1) from error
    tell_of_damage(store)
    for failure in reached.failures:
        typer.echo(f"failed: {failure}", err=True)
    typer.echo(f"{out} holds {reached.done:,} of {counted(reached.total, 'run')}"
               + (f"; {reached.failed:,} failed" if reached.failed else ""))  # fmt: skip
    if reached.done < reached.total:
        missing = counted(reached.total - reached.done, "run")
        typer.echo(f"lacuna: {missing} missing from {out}; the same command makes what is missing", err=True)
        raise typer.Exit(1)


@contextmanager
def _locally(study: Study, part: tuple[int, int], workers: int) -> Iterator[Fill]:
    from lacuna.study.engines import Local
    from lacuna.study.runner import run_study

    yield lambda store, watch: run_study(study, store, Local(workers), shard=part, watch=watch)


@contextmanager
def _on_dask(study: Study, part: tuple[int, int], scheduler: str | None) -> Iterator[Fill]:
    from lacuna.study.engines import Dask
    from lacuna.study.runner import run_study

    if not scheduler:
        raise ValueError("the Dask engine needs --scheduler ADDRESS")
    with Dask.connected(scheduler) as engine:
        yield lambda store, watch: run_study(study, store, engine, shard=part, watch=watch)


@contextmanager
def _on_slurm(study: Study, tasks: int, cpus: int, options: dict[str, Any]) -> Iterator[Fill]:
    from lacuna.study.engines import find_slurm, run_on_slurm

    limit = find_slurm()
    yield lambda store, watch: run_on_slurm(
        study, store, tasks=tasks, limit=limit, cpus=cpus, options=options, watch=watch
    )


@app.command()
def status(folder: Folder) -> None:
    """Show the progress of the studies in a folder; works while they run, and on any machine that sees the folder."""
    from lacuna.study.outcomes import runs_of
    from lacuna.study.store import SCHEMA, Store

    store = Store.existing(folder)
    runs = store.table(without=[name for name in SCHEMA if name.startswith("curve_") and name != "curve_step"])
    typer.echo(printable(f"{folder}: {counted(runs.height, 'run')}"))
    for study in store.studies():
        here, n = runs_of(study, runs).height, len(study)
        typer.echo(f"  {study.spec.name}: {here:,} of {counted(n, 'run')}" + (f" ({here / n:.0%})" if n else ""))
    for process, beat in store.at_work().items():
        speed = f"{beat.steps_per_second / 1e6:.2f} million steps a second"
        far = f"{beat.done:,} of {counted(beat.total, 'run')}, {speed}, {beat.failed:,} failed"
        typer.echo(f"  running: {process}, {beat.study}, {far}")
    for damaged in store.damaged:
        typer.echo(f"  damaged and set aside: {damaged}")
    for sentence in store.left_alone():
        typer.echo(printable(f"  {sentence}"))


@app.command("export")
def export_command(
    folder: Folder,
    to: Annotated[Path, typer.Argument(help="The file to write: .csv or .parquet.", show_default=False)],
    study: Annotated[Path | None, typer.Option(help="Only the runs of this study, a TOML file.")] = None,
) -> None:
    """Write all results to one sorted file; the same results give the same bytes."""
    import polars as pl

    from lacuna.study.spec import Study
    from lacuna.study.store import Store, export

    store = Store.existing(folder)
    table = store.table()
    if study is not None:
        table = table.filter(pl.col("id").is_in([run.id for run in Study.read(study).runs()]))
    export(table, to)
    typer.echo(f"{counted(table.height, 'run')} written to {to}")
    if store.damaged:
        tell_of_damage(store)
        typer.echo("lacuna: runs are missing; run their study again", err=True)
        raise typer.Exit(1)


def tell_of_damage(store: Store) -> None:
    """Say which files of a store were set aside, and why."""
    for damaged in store.damaged:
        typer.echo(f"a damaged file was set aside as {damaged}", err=True)


def _shard(text: str) -> tuple[int, int]:
    i, slash, n = text.partition("/")
    if not (slash and len(text) < 40 and i.isdecimal() and n.isdecimal() and 1 <= int(i) <= int(n)):
        raise ValueError(f"shard is {text!r}; it must be i/n with i from 1 to n, e.g. 2/3")
    return int(i), int(n)
