"""What `lacuna theory` does."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from lacuna.cli import progress
from lacuna.report import counted, duration, write_whole
from lacuna_paper.theory.appendix import STATEMENTS, as_data, check_effort, examine
from lacuna_paper.theory.figures import all_curves
from lacuna_paper.theory.page import write_page
from lacuna_paper.theory.statement import Conclusion


def run_theory(out: Path, *, workers: int, effort: float, seed: int) -> list[Conclusion]:
    """Examine every statement, write page, data and figures to a folder, and print what was concluded."""
    started = time.monotonic()
    check_effort(effort)
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must be a whole number, 0 or larger")
    out.mkdir(parents=True, exist_ok=True)
    with progress("the appendix", "statements") as show:
        show(total=len(STATEMENTS))
        conclusions = examine(
            STATEMENTS, workers=workers, effort=effort, seed=seed,
            tell=lambda one: show(advance=1, note=one.statement.title),
        )  # fmt: skip
        show(note="charts and page")
        curves = all_curves(conclusions, effort, seed, workers)
        data = as_data(conclusions, curves, effort=effort, seed=seed)
        write_whole(out / "theory.json", json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False).encode())
        page = write_page(conclusions, curves, out)
    _show(conclusions)
    took = duration(time.monotonic() - started)
    typer.echo(f"{counted(len(conclusions), 'statement')} in {took}; open {page}")
    return conclusions


_COLOURS = {"refuted as printed, corrected": "red", "fails": "bold red", "undecided": "yellow"}


def _show(conclusions: list[Conclusion]) -> None:
    """Every statement with its status, as a table."""
    listed = Table("statement", "in the paper", "status", "assumption broken")
    for one in conclusions:
        colour = _COLOURS.get(one.status, "green")
        seen = "noticed" if one.noticed else "not noticed"
        listed.add_row(one.statement.title, one.statement.place, f"[{colour}]{one.status}[/]", seen)
    Console(width=None if sys.stdout.isatty() else 130).print(listed)
