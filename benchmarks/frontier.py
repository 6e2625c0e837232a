"""Every method in every world: run by itself, and as the Markdown tables of docs/evidence/frontier.md.

``python benchmarks/frontier.py run out/frontier docs/results/frontier.json`` runs what the store in the first folder
lacks, and writes the second, as ``lacuna paper --full --frontier`` does after the paper.
``python benchmarks/frontier.py tables docs/results/frontier.json docs/evidence/frontier.md`` puts its tables into the
page, each between its two marks.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lacuna.quantities import number_text
from lacuna.study.engines import Local
from lacuna.study.runner import run_studies
from lacuna.study.spec import Study
from lacuna.study.store import Store
from lacuna_paper.frontier.section import place_of, series_of
from lacuna_paper.frontier.studies import gather, write
from lacuna_paper.reproduce import FOLDER

COLUMNS = 6
MARKS = {"ahead": " ▲", "behind": " ▼", "level": ""}


def digits(value: float) -> str:
    """One digit after the point for large rewards, three where they lie between 0 and 1."""
    return ".1f" if abs(value) >= 10 else ".2f" if abs(value) >= 1 else ".3f"


def mean(told: Sequence[float | None]) -> str:
    """A mean and half the width of its interval."""
    estimate, low, high = told
    if estimate is None:
        return "–"
    shown = number_text(estimate, digits(estimate))
    return shown if low is None or high is None else f"{shown} ± {number_text((high - low) / 2, digits(estimate))}"


def ranking(found: Mapping[str, Any]) -> str:
    """The ranking, a row for each method."""
    rows = ["| method | mean rank | ahead of the default | level | behind |", "|---" * 5 + "|"]
    for one in found["ranking"]:
        cells = [f"`{one['series']}`", mean(one["rank"]), *(str(one[word]) for word in ("ahead", "level", "behind"))]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def earned(cells: Sequence[Mapping[str, Any]], yardsticks: Sequence[str]) -> str:
    """What each method earns: a row for each, a column for each problem, six problems a table."""
    tables = []
    names = series_of(cells, yardsticks)
    for first in range(0, len(cells), COLUMNS):
        part = cells[first : first + COLUMNS]
        worlds = len({place_of(cell) for cell in cells}) > 1
        heads = [
            f"{place_of(cell)}, `{cell['missingness']}`" if worlds else f"`{cell['missingness']}`" for cell in part
        ]
        rows = [f"| | {' | '.join(heads)} |", "|---" * (len(part) + 1) + "|"]
        rows += [f"| `{name}` | {' | '.join(_earned(cell, name) for cell in part)} |" for name in names]
        tables.append("\n".join(rows))
    return "\n\n".join(tables)


def _earned(cell: Mapping[str, Any], name: str) -> str:
    if name not in cell["means"]:
        return "–"
    standing = cell["against_default"].get(name, {"standing": "level"})["standing"]
    return mean(cell["means"][name]) + MARKS[standing]


def tables(data: Mapping[str, Any]) -> dict[str, str]:
    """All tables by their titles."""
    found = {}
    for way in ("fixed", "tuned"):
        cells = data[way]["cells"]
        if cells:
            found[f"{way}: ranking"] = ranking(data[way])
        for group in dict.fromkeys(cell["group"] for cell in cells):
            found[f"{way}: {group}"] = earned([cell for cell in cells if cell["group"] == group], data["yardsticks"])
    return found


def filled(page: str, data: Mapping[str, Any]) -> str:
    """The page with its tables replaced; a table without a mark is refused, a mark without a table says so."""
    wanted = tables(data)
    marks = re.findall(r"<!-- table: (.*) -->", page)
    if set(wanted) - set(marks):
        raise ValueError(f"the page has no mark for {', '.join(sorted(set(wanted) - set(marks)))}")
    for title in marks:
        mark, made = f"<!-- table: {title} -->", wanted.get(title, "Not run yet.")
        page = re.sub(f"{re.escape(mark)}.*?<!-- end -->", f"{mark}\n\n{made}\n\n<!-- end -->", page, flags=re.DOTALL)
    return page


def run(folder: Path, target: Path) -> None:
    """Run the frontier on all cores, and write its data."""
    store, engine = Store(folder), Local(os.cpu_count() or 1)

    def make(what: str, wanted: Sequence[Study]) -> None:
        began = time.monotonic()
        progress = run_studies(wanted, store, engine)
        if progress.done < progress.total:
            raise RuntimeError(f"{what}: {progress.done} of {progress.total} runs were made; the same command goes on")
        print(f"{what}: {progress.total:,} runs, {time.monotonic() - began:.0f} seconds", flush=True)

    write(gather(make, store.table, FOLDER / "frontier"), target)


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    first, second = map(Path, paths)
    if what == "run":
        run(first, second)
    else:
        second.write_text(filled(second.read_text(), json.loads(first.read_text())))
