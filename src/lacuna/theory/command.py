"""The `lacuna theory` command."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from lacuna.quantities import counted, duration
from lacuna.theory.appendix import STATEMENTS, check_effort, examine
from lacuna.theory.curves import all_curves
from lacuna.theory.page import write_page
from lacuna.theory.record import as_data
from lacuna.theory.statement import Judgement


def run_theory(out: Path, *, workers: int, effort: float, seed: int) -> list[Judgement]:
    """Examine every statement, write page, data and figures to a folder, and print the verdicts."""
    started = time.monotonic()
    check_effort(effort)
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must be a whole number, 0 or larger")
    out.mkdir(parents=True, exist_ok=True)
    with _progress(len(STATEMENTS) + 1) as tell:
        judgements = examine(
            STATEMENTS, workers=workers, effort=effort, seed=seed, tell=lambda one: tell(one.statement.title)
        )
        tell("charts and page")
        curves = all_curves(judgements, effort, seed, workers)
        data = as_data(judgements, curves, effort=effort, seed=seed)
        (out / "theory.json").write_text(
            json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False), encoding="utf-8"
        )
        page = write_page(judgements, curves, out)
    _show(judgements)
    took = duration(time.monotonic() - started)
    typer.echo(f"{counted(len(judgements), 'statement')} in {took}; open {page}")
    return judgements


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on a terminal, silence elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda what: bar.update(task, advance=1, description=what)


_COLOURS = {"refuted as printed, corrected": "red", "fails": "bold red", "undecided": "yellow"}


def _show(judgements: list[Judgement]) -> None:
    """Verdicts as a table."""
    from rich.console import Console
    from rich.table import Table

    listed = Table()
    for column in ("statement", "in the paper", "verdict", "assumption broken"):
        listed.add_column(column)
    for one in judgements:
        colour = _COLOURS.get(one.verdict, "green")
        seen = "noticed" if one.breaks else "not noticed"
        listed.add_row(one.statement.title, one.statement.place, f"[{colour}]{one.verdict}[/]", seen)
    Console(width=None if sys.stdout.isatty() else 130).print(listed)
