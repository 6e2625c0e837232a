"""Add the runs of ``run.py`` to docs/results/deep.json; make the tables and charts of docs/evidence/deep.md from it.

``python benchmarks/deep/collect.py`` in the environment of ``make test``. It can be called while runs are being made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

sys.path.insert(0, str(Path(__file__).parent))

from cells import LONG, OWN, STEPS, THETAS, VIEWS, WORLDS, Cell, cells

from lacuna.files import write_whole
from lacuna.quantities import number_text
from lacuna.report.files import spec_of
from lacuna.report.panels import print_config
from lacuna.report.styles import BLACK, BLUE, DASHED, DOTTED, GREEN, SOLID, VERMILION
from lacuna.study.statistics import mean_interval

ROOT = Path(__file__).parents[2]
OUT, KEPT = ROOT / "out" / "deep", ROOT / "docs" / "results" / "deep.json"
PAGE, PICTURES = ROOT / "docs" / "evidence" / "deep.md", ROOT / "docs" / "pictures"
BEGIN, END = "<!-- tables by benchmarks/deep/collect.py -->", "<!-- end of tables -->"

NAMES = {"lacuna": "lacuna, default", "ppo": "PPO", "dqn": "DQN", "recurrent-ppo": "RecurrentPPO"}
SEEN_AS = {OWN: "", "plain": "missing shown", "carried": "carried forward", "imputed": "our imputer"}
COLOURS = {"lacuna": BLACK, "ppo": BLUE, "dqn": VERMILION, "recurrent-ppo": GREEN}
DASHES = {"plain": DOTTED, "carried": DASHED, "imputed": SOLID, OWN: SOLID}
TITLES = {"lake": "Lake World", "cartpole": "CartPole"}
LOWEST = {"lake": -200.0, "cartpole": 0.0}
"""Where the charts end below."""

Run = dict[str, Any]


def merged(kept: Sequence[Run], new: Sequence[Run]) -> list[Run]:
    """All runs of the comparison, in its order; each once."""
    found = {run["key"]: run for run in [*new, *kept]}
    return [found[cell.key] for cell in cells() if cell.key in found]


def per_episode(run: Run, first: int, end: int) -> float | None:
    """Reward per finished episode in some windows of a run; None if no episode ended."""
    episodes = sum(run["episodes"][first:end])
    return sum(run["rewards"][first:end]) / episodes if episodes else None


def grouped(runs: Sequence[Run]) -> Iterator[tuple[Cell, list[Run]]]:
    """The runs of every cell of the comparison, one for each seed made so far; none for a cell without any."""
    for cell in cells():
        if cell.seed == 0:
            like = [run for run in runs if all(run[name] == getattr(cell, name) for name in Cell._fields[:5])]
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


def line(cell: Cell, runs: Sequence[Run]) -> str:
    """A row of a table."""
    name = " | ".join([NAMES[cell.learner], SEEN_AS[cell.view] or "its own pathways"])
    windows = len(runs[0]["rewards"]) if runs else 0
    fifth = windows // 5
    parts = [spread([per_episode(run, *at) for run in runs], ",.1f" if cell.world == "lake" else ",.0f")
             for at in ((0, fifth), (windows - fifth, windows), (0, windows))]  # fmt: skip
    seconds = spread([run["seconds"][-1] for run in runs], ",.0f").split(" [")[0]
    return f"| {name} | {len(runs)} | {' | '.join(parts)} | {seconds} |"


def tables(runs: Sequence[Run]) -> str:
    """All tables of the page: one for each world and share missing, then the long runs."""
    found = []
    rows = list(grouped(runs))
    for steps in (STEPS, LONG):
        for world in WORLDS:
            for theta in THETAS:
                chosen = [row for row in rows if row[0][:2] == (world, theta) and row[0].steps == steps]
                heading = f"{TITLES[world]}, θ = {theta}, {steps:,} steps"
                head = f"**{heading}**\n\n| learner | sees | seeds | first fifth | last fifth | all steps | seconds |"
                found.append("\n".join([head, "|---" * 7 + "|", *(line(*row) for row in chosen)]))
    return "\n\n".join(found)


def points(runs: Sequence[Run], steps: int) -> list[dict[str, Any]]:
    """The points of the curves: means over seeds; a gap where a seed finished no episode."""
    found = []
    for cell, like in grouped(runs):
        if cell.steps == steps and like:
            for w in range(len(like[0]["rewards"])):
                values = [per_episode(run, w, w + 1) for run in like]
                there = [value for value in values if value is not None]
                mean = sum(there) / len(there) if len(there) == len(values) else None
                found.append({
                    "panel": f"{TITLES[cell.world]}, θ = {cell.theta}",
                    "learner": NAMES[cell.learner], "sees": SEEN_AS[cell.view] or SEEN_AS["imputed"],
                    "reward": None if mean is None else max(mean, LOWEST[cell.world]),
                    "steps": (w + 1) * steps // len(like[0]["rewards"]),
                    "seconds": sum(run["seconds"][w] for run in like) / len(like),
                })  # fmt: skip
    return found


def chart(runs: Sequence[Run], against: str) -> Any:
    """Curves of all learners, a panel for each world and share missing."""
    x = {
        "steps": alt.X("steps:Q", title="steps", axis=alt.Axis(tickCount=3, format="~s")),
        "seconds": alt.X("seconds:Q", title="seconds of one core", scale=alt.Scale(type="log")),
    }[against]
    learners = {NAMES[name]: COLOURS[name] for name in NAMES}
    dashes = {SEEN_AS[view]: list(DASHES[view]) for view in VIEWS}
    panels = []
    for panel, rows in groupby(
        sorted(points(runs, STEPS), key=lambda row: str(row["panel"])), lambda row: row["panel"]
    ):
        data = alt.InlineData(values=list(rows))
        lines = alt.Chart(data).mark_line(strokeWidth=2, clip=True).encode(
            x=x, y=alt.Y("reward:Q", title="reward per episode"),
            color=alt.Color("learner:N", scale=alt.Scale(domain=list(learners), range=list(learners.values()))),
            strokeDash=alt.StrokeDash("sees:N", scale=alt.Scale(domain=list(dashes), range=list(dashes.values()))),
        )  # fmt: skip
        panels.append(lines.properties(title=panel, width=320, height=210))
    return alt.concat(*panels, columns=2).configure(**print_config())


def write(runs: Sequence[Run]) -> None:
    """Write the results, the tables of the page and the pictures."""
    body = ",\n".join(json.dumps(run) for run in runs)
    write_whole(KEPT, f'{{"runs": [\n{body}\n]}}\n'.encode())
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    write_whole(PAGE, f"{before}{BEGIN}\n\n{tables(runs)}\n\n{END}{after}".encode())
    version = ".".join(alt.VEGALITE_VERSION.split(".")[:2])
    for against in ("steps", "seconds"):
        svg = vl_convert.vegalite_to_svg(spec_of(chart(runs, against)), vl_version=version)
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
