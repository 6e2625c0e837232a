"""The studies of the frontier: read, run, and turned into plain data."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from lacuna import Study
from lacuna.report import write_whole
from lacuna.study import LEVEL
from lacuna_paper.frontier.cells import DEFAULT_NAME, KNOWING, as_data, cells_of
from lacuna_paper.frontier.tuning import choices, confirming_studies, draws_of, listed, tuned_cells

Form = Literal["full", "reduced"]
FIXED = ("lake", "stochasticity", "gymnasium", "endless", "mobile-health", "relay")
TUNING = "tuning"

DRAWS: dict[Form, tuple[int, int]] = {"full": (10, 5), "reduced": (2, 1)}
"""The number of draws, and of fresh trials in each."""

_REDUCED = {"trials": 2, "steps": 2_000}

Make = Callable[[str, Sequence[Study]], None]
"""Runs what is missing of some studies; the text is their title in progress messages."""


def fixed_studies(folder: Path, form: Form = "full") -> list[Study]:
    """Read the studies in which every method has one setting; reduced, they have fewer trials and steps."""
    return [_read(folder / f"{name}.toml", form) for name in FIXED]


def tuning_study(folder: Path, form: Form = "full") -> Study:
    """Read the study on which settings are chosen."""
    return _read(folder / f"{TUNING}.toml", form)


def _read(path: Path, form: Form) -> Study:
    study = Study.read(path)
    if form == "full":
        return study
    data = study.spec.model_dump(exclude_defaults=True) | _REDUCED
    return Study.from_data(data, data["name"])


def gather(make: Make, table: Callable[[], pl.DataFrame], folder: Path, form: Form = "full") -> dict[str, Any]:
    """Run the frontier, and give its results as plain data.

    Parameters
    ----------
    make
        Runs what is missing of some studies.
    table
        Gives the runs made so far, a row each.
    folder
        Where the study files are.
    form
        All runs, or the reduced form.
    """
    fixed = fixed_studies(folder, form)
    make("the frontier, one setting", fixed)
    tuning = tuning_study(folder, form)
    draws = draws_of(tuning, *DRAWS[form])
    make("the frontier, tuning", [tuning])
    chosen = choices(tuning, table(), draws)
    confirming = confirming_studies(tuning, chosen, draws)
    make("the frontier, tuned, on fresh trials", confirming)
    runs = table()
    tuned = as_data(tuned_cells(tuning, chosen, confirming, runs, draws))
    return {
        "form": form, "default": DEFAULT_NAME, "yardsticks": list(KNOWING), "level": LEVEL,
        "fixed": as_data(cells_of(fixed, runs)),
        "tuned": {"draws": len(draws), "fresh": len(draws[0].fresh)} | tuned,
        "choices": listed(chosen),
    }  # fmt: skip


def write(data: dict[str, Any], path: Path) -> None:
    """Write the data as JSON, a line for each cell and for each choice."""
    write_whole(path, f"{_lines(data, 0)}\n".encode())


def _lines(value: Any, depth: int) -> str:
    """Write JSON with one line per cell, rank or choice."""
    if not isinstance(value, dict):
        rows = isinstance(value, list) and value and isinstance(value[0], dict | list)
        if not rows:
            return json.dumps(value, ensure_ascii=False)
        pad = " " * (depth + 1)
        return "[\n" + ",\n".join(f"{pad}{json.dumps(row, ensure_ascii=False)}" for row in value) + "\n" + pad[1:] + "]"
    pad = " " * (depth + 1)
    parts = (f"{pad}{json.dumps(key)}: {_lines(part, depth + 1)}" for key, part in value.items())
    return "{\n" + ",\n".join(parts) + "\n" + pad[1:] + "}"
