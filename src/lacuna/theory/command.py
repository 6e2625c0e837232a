"""The `lacuna theory` command."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from lacuna.files import write_whole
from lacuna.quantities import counted, duration
from lacuna.theory.appendix import STATEMENTS, as_data, check_effort, examine
from lacuna.theory.figures import all_curves
from lacuna.theory.page import write_page
from lacuna.theory.statement import Conclusion


def run_theory(out: Path, *, workers: int, effort: float, seed: int) -> list[Conclusion]:
    """Examine every statement, write page, data and figures to a folder, and print what was concluded."""
    started = time.monotonic()
    check_effort(effort)
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must be a whole number, 0 or larger")
    out.mkdir(parents=True, exist_ok=True)
    with _progress(len(STATEMENTS) + 1) as tell:
        conclusions = examine(
            STATEMENTS, workers=workers, effort=effort, seed=seed, tell=lambda one: tell(one.statement.title)
        )
        tell("charts and page")
        curves = all_curves(conclusions, effort, seed, workers)
        data = as_data(conclusions, curves, effort=effort, seed=seed)
        write_whole(out / "theory.json", json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False).encode())
        page = write_page(conclusions, curves, out)
    _show(conclusions)
    took = duration(time.monotonic() - started)
    typer.echo(f"{counted(len(conclusions), 'statement')} in {took}; open {page}")
    return conclusions


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


def _show(conclusions: list[Conclusion]) -> None:
    """Every statement with its status, as a table."""
    from rich.console import Console
    from rich.table import Table

    listed = Table("statement", "in the paper", "status", "assumption broken")
    for one in conclusions:
        colour = _COLOURS.get(one.status, "green")
        seen = "noticed" if one.noticed else "not noticed"
        listed.add_row(one.statement.title, one.statement.place, f"[{colour}]{one.status}[/]", seen)
    Console(width=None if sys.stdout.isatty() else 130).print(listed)
