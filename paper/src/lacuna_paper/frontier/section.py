"""The frontier as a section of a page: ranks, and what each method earns in each problem."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lacuna.agent import NAMED
from lacuna.report import Cell, Section, Text, details, interval_cell, paragraphs, table
from lacuna.study import Interval

FILE = "frontier.json"
_MARKS = {"ahead": " ▲", "behind": " ▼", "level": ""}

Data = Mapping[str, Any]


def frontier_sections(folder: Path) -> list[Section]:
    """Make the section from the file beside the page, if the frontier was run."""
    path = folder / FILE
    if not path.exists():
        return []
    try:
        return [
            Section("frontier", "Every method, every world", frontier_section(json.loads(path.read_text())), "Frontier")
        ]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"{path} is damaged ({error!r}); remove it, and run with --frontier to make it again"
        ) from error


def frontier_section(data: Data) -> Markup:
    """Make the section: one fixed setting in all worlds, then tuned in the paper's problems."""
    return _fixed(data) + _tuned(data)


def _fixed(data: Data) -> Markup:
    fixed = data["fixed"]
    problems, trials = len(fixed["cells"]), sorted({cell["n"] for cell in fixed["cells"]})
    intro = Markup(
        "Every method at fixed settings, nothing tuned: α = 0.1, K = 10, γ = 1 where episodes end and 0.95 where they "
        "do not; the paper's methods with ε = 0 and with 0.05; ours with their defaults. {} problems, {} trials each. "
        "The measure is reward per episode, with open and cut episodes counted, or reward per step in worlds without "
        "episodes. "
    ).format(problems, " or ".join(map(str, trials)))
    if data["form"] == "reduced":
        intro += Markup("This is the reduced form: <code>--full</code> runs more trials and steps. ")
    judged = (
        f"▲ and ▼ mark results clearly ahead of and behind our default, {data['default']}: paired by trials, Student's "
        f"t, corrected by Holm's method for all {fixed['tests']:,} comparisons. The 95 % intervals are not corrected."
    )
    return paragraphs(intro + ranking_text(fixed), judged) + _ranking(fixed) + _groups(data, fixed["cells"])


def _tuned(data: Data) -> Markup:
    tuned = data["tuned"]
    if not tuned["cells"]:
        return Markup("")
    text = (
        f"The paper's 18 kinds of missingness again, each method tuned for each of them: α, γ and ε (ours without "
        f"planning: γ, ε and optimism) are chosen on tuning trials and reported on {tuned['fresh']} fresh ones, in "
        f"{tuned['draws']} independent draws. Intervals are over draws, so they cover the choice. "
    )
    title = Markup("<h3>Tuned, on fresh trials</h3>")
    return title + paragraphs(text + ranking_text(tuned)) + _ranking(tuned) + _groups(data, tuned["cells"])


def ranking_text(found: Data) -> str:
    """Say which method ranks first, and which are clearly ahead of the default in some problem."""
    ranking = found["ranking"]
    if not ranking:
        return ""
    first = ranking[0]
    text = f"{first['series']} has the best mean rank, {first['rank'][0]:.1f} of {len(ranking)}. "
    ahead = [f"{one['series']} in {one['ahead']}" for one in ranking if one["ahead"]]
    n = len(found["cells"])
    who = f"Clearly ahead of the default, of {n} problems: {', '.join(ahead)}."
    return text + (who if ahead else f"No method is clearly ahead of the default in any of {n} problems.")


def _ranking(found: Data) -> Markup:
    heads = ["Method", "Mean rank", "Ahead of the default", "Level", "Behind"]
    rows = [
        [_title(one["series"]), _interval(one["rank"]), one["ahead"], one["level"], one["behind"]]
        for one in found["ranking"]
    ]
    return table(heads, rows)


def _groups(data: Data, cells: Sequence[Data]) -> Markup:
    """Make a collapsed table for each group of cells."""
    parts = []
    for group in dict.fromkeys(cell["group"] for cell in cells):
        mine = [cell for cell in cells if cell["group"] == group]
        heads: list[Text] = ["World", "Missingness", *map(_title, series_of(mine, data["yardsticks"]))]
        rows = [
            [place_of(cell), cell["missingness"], *_row(cell, series_of(mine, data["yardsticks"]))] for cell in mine
        ]
        made = Markup('<div class="many-columns">{}</div>').format(table(heads, rows))
        parts.append(details(f"{group}: what each method earns", made))
    return Markup("\n").join(parts)


def _row(cell: Data, series: Iterable[str]) -> list[Cell]:
    found = []
    for name in series:
        mean = cell["means"].get(name)
        if mean is None:
            found.append(Cell("–", None))
            continue
        mark = _MARKS[cell["against_default"].get(name, {"standing": "level"})["standing"]]
        shown = _interval(mean)
        found.append(Cell(Markup("{}{}").format(shown.text, mark), shown.sort))
    return found


def series_of(cells: Sequence[Data], yardsticks: Sequence[str]) -> list[str]:
    """Name the series of some cells, yardsticks last."""
    names = dict.fromkeys(name for cell in cells for name in cell["means"])
    return [name for name in names if name not in yardsticks] + [name for name in yardsticks if name in names]


def place_of(cell: Data) -> str:
    """Name the world of a cell, with its parameters."""
    return f"{cell['world']} ({cell['parameters']})" if cell["parameters"] else str(cell["world"])


def _interval(data: Sequence[float | None]) -> Cell:
    estimate, low, high = data
    return interval_cell(None if estimate is None else Interval(estimate, low, high, 0))


def _title(series: str) -> str:
    method, comma, rest = series.partition(",")
    return f"{NAMED[method].title}{comma}{rest}" if method in NAMED else series
