"""The `lacuna study` commands. Heavy imports happen inside the commands that need them."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lacuna.study.runner import Progress
    from lacuna.study.spec import Study

app = typer.Typer(help="Thousands of runs from one file: plan, run, resume, look at, export.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The study, a TOML file.", show_default=False)]
Folder = Annotated[Path, typer.Argument(help="The folder of results.", show_default=False)]


@app.command()
def plan(
    file: File,
    workers: Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one per core")] = None,
    out: Annotated[Path | None, typer.Option(help="A folder of results: leave out what it holds already.")] = None,
) -> None:
    """Say how many runs and steps a study has, and how long it will take here, by trying some."""
    from lacuna.study.spec import Study
    from lacuna.study.store import Store

    study = Study.read(file)
    workers = checked_workers(workers)
    done = Store.existing(out).done() if out else frozenset()
    left = sum(run.id not in done for run in study.runs()) if done else len(study)
    typer.echo(f"{study.spec.name}: {len(study.problems)} problems x {len(study.settings)} settings x "
               f"{study.spec.trials} trials = {len(study):,} runs of {study.spec.steps:,} steps, "
               f"{len(study) * study.spec.steps:,} steps in all")  # fmt: skip
    if done:
        typer.echo(f"{len(study) - left:,} runs are in {out} already; {left:,} are left")
    if not left:
        return
    seconds, tried = seconds_a_run(study, done)
    typer.echo(f"about {_duration(left * seconds / workers)} on {workers} workers of this machine "
               f"({seconds * 1000:.1f} ms a run, from {tried} runs tried just now)")  # fmt: skip


def seconds_a_run(study: Study, done: AbstractSet[str], budget: float = 4.0) -> tuple[float, int]:
    """Mean time of a run that is left, from runs picked at random, for about `budget` seconds.

    Runs longer than 50,000 steps are tried for that many and scaled up.
    """
    from lacuna.study.runner import execute

    chosen = set(random.Random(0).sample(range(len(study)), min(len(study), 2000)))  # noqa: S311  not for secrets
    runs = [run for index, run in enumerate(study.runs()) if index in chosen and run.id not in done][:400]
    runs = runs or [next(run for run in study.runs() if run.id not in done)]
    steps = min(study.spec.steps, 50_000)
    runs = [replace(run, steps=steps, curve=tuple(t for t in run.curve if t <= steps)) for run in runs]
    random.Random(1).shuffle(runs)  # noqa: S311
    execute(replace(runs[0], steps=1, curve=()))  # compiles, or reads the cache
    began = time.perf_counter()
    tried = 0
    while tried < len(runs) and (time.perf_counter() - began < budget or tried < 3):
        execute(runs[tried])
        tried += 1
    return (time.perf_counter() - began) / tried * study.spec.steps / steps, tried


@app.command()
def run(
    file: File,
    out: Annotated[Path, typer.Option(help="The folder of results; what it holds is not computed again.")],
    workers: Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one per core")] = None,
    engine: Annotated[str, typer.Option(help="local, dask or slurm.")] = "local",
    scheduler: Annotated[str | None, typer.Option(help="Dask: the scheduler, e.g. tcp://host:8786.")] = None,
    shard: Annotated[str, typer.Option(help="Only part i of n, e.g. 2/3: for machines that share nothing.")] = "1/1",
    tasks: Annotated[int, typer.Option(help="SLURM: how many tasks to split the study into.")] = 100,
    partition: Annotated[str | None, typer.Option(help="SLURM: the partition.")] = None,
    minutes: Annotated[int, typer.Option(help="SLURM: time limit of a task.")] = 60,
    memory: Annotated[int, typer.Option(help="SLURM: memory of a task, in GB.")] = 2,
) -> None:
    """Run a study, or what is left of it. Stop it at any time; the same command goes on."""
    from lacuna.study.engines import Dask, Local, run_on_slurm
    from lacuna.study.runner import run_study
    from lacuna.study.spec import Study
    from lacuna.study.store import Store

    study = Study.read(file)
    part = _shard(shard)
    # A task of SLURM's gets the cores it asks for, not those of the machine that submits it.
    cpus = workers or 1
    workers = checked_workers(workers)
    if engine not in ("local", "dask", "slurm"):
        raise ValueError(f"engine is {engine!r}; it must be local, dask or slurm")
    if engine == "slurm" and part != (1, 1):
        raise ValueError(f"shard is {shard!r}, but the SLURM engine makes its own shards; say how many with --tasks")
    if scheduler and engine != "dask":
        raise ValueError(
            f"scheduler is {scheduler!r}, but the engine is {engine}; a scheduler belongs to --engine dask"
        )
    if engine == "dask" and not scheduler:
        raise ValueError("the Dask engine needs --scheduler ADDRESS")
    store = Store(out)
    with display(study.spec.name) as watch:
        if engine == "slurm":
            if tasks < 1:
                raise ValueError(f"tasks is {tasks}; it must be 1 or larger")
            options: dict[str, Any] = {"timeout_min": minutes, "mem_gb": memory}
            if partition:
                options["slurm_partition"] = partition
            progress = run_on_slurm(study, store, tasks=tasks, cpus=cpus, options=options, watch=watch)
        else:
            where = Dask(scheduler) if scheduler and engine == "dask" else Local(workers)
            progress = run_study(study, store, where, shard=part, watch=watch)
    for path in store.damaged:
        typer.echo(f"a damaged file was set aside as {path}; its runs were computed again", err=True)
    for failure in progress.failures:
        typer.echo(f"failed: {failure}", err=True)
    typer.echo(f"{progress.done:,} of {progress.total:,} runs are in {out}"
               + (f"; {progress.failed:,} failed" if progress.failed else ""))  # fmt: skip
    if progress.failed or progress.done < progress.total:
        raise typer.Exit(1)


@app.command()
def status(folder: Folder) -> None:
    """Say how far the studies in a folder are; works while they run, and from any machine that sees the folder."""
    from lacuna.study.store import Store

    store = Store.existing(folder)
    done = store.done()
    typer.echo(f"{folder}: {len(done):,} runs")
    for study in store.studies():
        here = sum(run.id in done for run in study.runs())
        typer.echo(f"  {study.spec.name}: {here:,} of {len(study):,} runs ({here / len(study):.0%})")
    for note in store.running():
        speed = f"{note['steps_per_second'] / 1e6:.2f} million steps a second"
        far = f"{note['done']:,} of {note['total']:,} runs, {speed}, {note['failed']:,} failed"
        typer.echo(f"  running: {note['process']}, {note['study']}, {far}")
    for path in store.damaged:
        typer.echo(f"  damaged and set aside: {path}")


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
    typer.echo(f"{table.height:,} runs written to {to}")
    if store.damaged:
        for path in store.damaged:
            typer.echo(f"a damaged file was set aside as {path}; run its study again", err=True)
        raise typer.Exit(1)


def checked_workers(workers: int | None) -> int:
    """How many runs at a time: as many as said, else one per core."""
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}; it must be 1 or larger")
    from lacuna.trials import default_workers

    return workers or default_workers()


def _shard(text: str) -> tuple[int, int]:
    i, slash, n = text.partition("/")
    if not (slash and i.isdecimal() and n.isdecimal() and 1 <= int(i) <= int(n)):
        raise ValueError(f"shard is {text!r}; it must be i/n with i from 1 to n, e.g. 2/3")
    return int(i), int(n)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


@contextmanager
def display(name: str) -> Iterator[Callable[[Progress], None]]:
    """Show progress live on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeRemainingColumn(),
        TextColumn("{task.fields[speed]}"), TextColumn("[red]{task.fields[failed]}"),
    )  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, speed="", failed="")

        def watch(progress: Progress) -> None:
            failed = f"{progress.failed} failed" if progress.failed else ""
            speed = f"{progress.steps_per_second / 1e6:.2f} M steps/s"
            bar.update(task, total=progress.total, completed=progress.done, speed=speed, failed=failed)

        yield watch
