"""Add the runs of ``run.py`` to docs/results/deep.json; make the tables and charts of docs/evidence/deep.md from it.

Runs of the seeds on which settings were chosen are kept there, and not in the tables and charts.

``python benchmarks/deep/collect.py`` in the environment of ``make test``. It can be called while runs are being made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

sys.path.insert(0, str(Path(__file__).parent))

from cells import LONG, SEEDS, STEPS, THETAS, VIEWS, Cell, cells

from lacuna.files import write_whole
from lacuna.quantities import number_text
from lacuna.report.chart_files import spec_of
from lacuna.study.statistics import mean_interval
from lacuna_paper.frontier.deep_learners import CHOSEN_ON, LEARNERS, PARTS, WORLDS, chart, extract, parts, reported
from lacuna_paper.frontier.deep_learners import VIEWS as SEEN_AS

ROOT = Path(__file__).parents[2]
OUT, KEPT = ROOT / "out" / "deep", ROOT / "docs" / "results" / "deep.json"
PAGE, PICTURES = ROOT / "docs" / "evidence" / "deep.md", ROOT / "docs" / "pictures"
BEGIN, END = "<!-- tables by benchmarks/deep/collect.py -->", "<!-- end of tables -->"

REPORTED = [seed for seed in range(SEEDS) if seed not in CHOSEN_ON]

Run = dict[str, Any]


def merged(kept: Sequence[Run], new: Sequence[Run]) -> list[Run]:
    """All runs of the comparison, in its order; each once."""
    found = {run["key"]: run for run in [*new, *kept]}
    return [found[cell.key] for cell in cells() if cell.key in found]


def grouped(runs: Sequence[Run]) -> Iterator[tuple[Cell, list[Run]]]:
    """The runs of every cell of the comparison, one for each reported seed made so far; none for a cell without any."""
    shown = reported(runs)
    for cell in cells():
        if cell.seed == REPORTED[0]:
            like = [dict(run) for run in shown if all(run[name] == getattr(cell, name) for name in Cell._fields[:5])]
            yield cell, like


def spread(values: Sequence[float | None], form: str = ",.0f") -> str:
    """A mean over seeds with its interval; none if a seed has no value, for leaving it out would favour the learner."""
    there = [value for value in values if value is not None]
    if not values:
        return ""
    if len(there) < len(values):
        return "–"
    found = mean_interval(there)
    text = number_text(found.estimate, form)
    if found.low is not None and found.high is not None:
        text += f" [{number_text(found.low, form)}, {number_text(found.high, form)}]"
    return text


def form_of(world: str) -> str:
    """How rewards of a world are written."""
    return ",.1f" if world == "lake" else ",.0f"


def line(cell: Cell, runs: Sequence[Run]) -> str:
    """A row of a table. Seconds are the least of all seeds: what else the machine does can only add to them."""
    found = [parts(run) for run in runs]
    rewards = [spread([part[name] for part in found], form_of(cell.world)) for name in PARTS]
    seconds = f"{min(run['seconds'][-1] for run in runs):,.0f}" if runs else ""
    sees = SEEN_AS[cell.view] or "its own pathways"
    return "| " + " | ".join([LEARNERS[cell.learner], sees, str(len(runs)), *rewards, seconds]) + " |"


def tables(runs: Sequence[Run]) -> str:
    """All tables of the page: one for each world and share missing, then the long runs, then paired differences."""
    found = []
    rows = list(grouped(runs))
    for steps in (STEPS, LONG):
        for world in WORLDS:
            for theta in THETAS:
                chosen = [row for row in rows if row[0][:2] == (world, theta) and row[0].steps == steps]
                heading = f"{WORLDS[world]}, θ = {theta}, {steps:,} steps"
                head = f"**{heading}**\n\n| learner | sees | seeds | {' | '.join(PARTS)} | seconds |"
                found.append("\n".join([head, "|---" * 7 + "|", *(line(*row) for row in chosen)]))
    return "\n\n".join([state(rows), *found, differences(rows)])


def state(rows: Sequence[tuple[Cell, list[Run]]]) -> str:
    """How much of the comparison is there."""
    seeds, made = len(REPORTED), sum(len(like) for _, like in rows)
    whole = sum(len(like) == seeds for _, like in rows)
    return (
        f"{made} of {seeds * len(rows)} reported runs are made; {whole} of {len(rows)} rows have all {seeds} seeds. "
        f"Settings were chosen on seed {', '.join(map(str, CHOSEN_ON))}, which is left out."
    )


def differences(rows: Sequence[tuple[Cell, list[Run]]]) -> str:
    """What our imputer adds to each learner: the mean difference of runs with the same masks."""
    names = [f"{part}, against {SEEN_AS[view]}" for view in VIEWS[:2] for part in PARTS[1:]]
    lines = [
        "**Our imputer against the other views, paired by seed**",
        "",
        f"| world | θ | learner | steps | pairs | {' | '.join(names)} |",
        "|---" * (5 + len(names)) + "|",
    ]
    found = {cell[:5]: like for cell, like in rows}
    for cell, ours in rows:
        if cell.view == "imputed":
            others = [found[(*cell[:3], view, cell.steps)] for view in VIEWS[:2]]
            values = [paired(ours, other, part, form_of(cell.world)) for other in others for part in PARTS[1:]]
            pairs = len({run["seed"] for run in ours}.intersection(*({run["seed"] for run in like} for like in others)))
            first = [WORLDS[cell.world], str(cell.theta), LEARNERS[cell.learner], f"{cell.steps:,}", str(pairs)]
            lines.append("| " + " | ".join([*first, *values]) + " |")
    return "\n".join(lines)


def paired(ours: Sequence[Run], others: Sequence[Run], part: str, form: str) -> str:
    """The mean difference over the seeds that both have, with its interval."""
    theirs = {run["seed"]: parts(run)[part] for run in others}
    values: list[float | None] = []
    for run in ours:
        if run["seed"] in theirs:
            a, b = parts(run)[part], theirs[run["seed"]]
            values.append(None if a is None or b is None else a - b)
    return spread(values, "+" + form)


def write(runs: Sequence[Run]) -> None:
    """Write the results, the tables of the page and the pictures."""
    body = ",\n".join(json.dumps(run) for run in runs)
    write_whole(KEPT, f'{{"runs": [\n{body}\n]}}\n'.encode())
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    write_whole(PAGE, f"{before}{BEGIN}\n\n{tables(runs)}\n\n{END}{after}".encode())
    rows = extract(runs)
    version = ".".join(alt.VEGALITE_VERSION.split(".")[:2])
    for against in ("steps", "seconds"):
        svg = vl_convert.vegalite_to_svg(spec_of(chart(rows, against)), vl_version=version)
        write_whole(PICTURES / f"deep-{against}.svg", svg.encode())


def main() -> None:
    parser = argparse.ArgumentParser(description="Collect the runs of run.py.")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results of run.py")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text())["runs"] if KEPT.exists() else []
    runs = merged(kept, [json.loads(path.read_text()) for path in sorted(options.out.glob("*.json"))])
    write(runs)
    print(f"{len(runs)} of {len(list(cells()))} runs in {KEPT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
