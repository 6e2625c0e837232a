"""Deep learners beside our default, on the same masks: curves, a finding and a table.

The runs take hours. They were made by ``make deep``; their summary comes with the package.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import altair as alt
import numpy as np
import polars as pl
from markupsafe import Markup

from lacuna.report import (
    BLACK,
    BLUE,
    DASHED,
    DOTTED,
    GREEN,
    SOLID,
    VERMILION,
    Cell,
    Figure,
    Floor,
    Panel,
    Section,
    Style,
    Text,
    cards,
    chart_of,
    counted,
    details,
    interval_cell,
    joined,
    paragraphs,
    spec_of,
    table,
)
from lacuna.study import LEVEL, holm, mean_interval, paired_difference, paired_p_value

Against = Literal["steps", "seconds"]

Run = Mapping[str, Any]
"""A run of ``docs/results/deep.json``: its cell, its seed, and sums over windows of `WINDOW` steps."""

Row = Mapping[str, Any]
"""The runs of one cell: a number per seed for each of `PARTS`, the seconds of a run, and a curve by column."""

WORLDS = {"lake": "Lake World", "cartpole": "CartPole"}
LEARNERS = {"lacuna": "our default", "ppo": "PPO", "recurrent-ppo": "RecurrentPPO", "dqn": "DQN"}
VIEWS = {"agent": "", "plain": "missing shown", "carried": "carried forward", "imputed": "our imputer"}
"""What a learner sees of hidden values; our agent has pathways of its own."""

CHOSEN_ON = (0,)
"""Seeds on which settings of deep learners were chosen. No row has them: the best of several runs flatters."""

CHOSEN_WITH = {"ppo": "imputed", "recurrent-ppo": "plain"}
"""The view with which settings were chosen, and which they favour. Those of DQN come from elsewhere."""

PARTS = ("first fifth", "last fifth", "all steps")
WINDOW, SHORT = 2_000, 50_000
LAKE_FLOOR = Floor(lowest=-100.0, close_up=60.0)
"""Where the axis of rewards in Lake World ends: methods that fail earn minus a thousand."""
_CELL = ("world", "theta", "learner", "view", "steps")
_POINT = ("steps", "seconds", "mean", "low", "high")
_AXES: dict[Against, Literal["log steps", "log seconds"]] = {"steps": "log steps", "seconds": "log seconds"}
_COLOURS = {"lacuna": BLACK, "ppo": BLUE, "recurrent-ppo": GREEN, "dqn": VERMILION}
_DASHES = {"agent": SOLID, "plain": DOTTED, "carried": DASHED, "imputed": SOLID}
_SHAPES = {"agent": "circle", "plain": "triangle-down", "carried": "square", "imputed": "diamond"}
_CLOCK = np.array([float(f"{10 ** (i / 20):.3g}") for i in range(-20, 50)])
"""Seconds at which curves are drawn, 20 for each power of ten."""


# --- from runs to rows -----------------------------------------------------------------------------------------------


def per_episode(run: Run, first: int, end: int) -> float | None:
    """Return the reward per episode that ended in windows `first` to `end` of a run; None if none ended.

    In Lake World all rewards count, also those of episodes that go on: an episode may never end. In CartPole only
    episodes that ended count: eight long ones that are cut in the middle would raise the mean above its limit.
    """
    earned = run["rewards" if run["world"] == "lake" else "returns"][first:end]
    episodes = sum(run["episodes"][first:end])
    return sum(earned) / episodes if episodes else None


def parts(run: Run) -> dict[str, float | None]:
    """Return the reward per episode in each of `PARTS`."""
    windows = len(run["rewards"])
    bounds = (0, windows // 5), (windows - windows // 5, windows), (0, windows)
    return {name: per_episode(run, *bound) for name, bound in zip(PARTS, bounds, strict=True)}


def reported(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that had no part in choosing settings."""
    return [run for run in runs if run["seed"] not in CHOSEN_ON]


def extract(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Return the rows of a page: the reported runs of each cell, summed up."""
    cells: dict[tuple[Any, ...], list[Run]] = {}
    for run in sorted(reported(runs), key=lambda run: int(run["seed"])):
        cells.setdefault(tuple(run[name] for name in _CELL), []).append(run)
    rows = []
    for cell, seeds in cells.items():
        points = list(_curve(seeds))
        rows.append(
            dict(zip(_CELL, cell, strict=True))
            | {name: [_rounded(parts(run)[name], 6) for run in seeds] for name in PARTS}
            | {"seconds": _rounded(min(run["seconds"][-1] for run in seeds), 3)}
            | {"curve": {name: [_rounded(point[i], 4) for point in points] for i, name in enumerate(_POINT)}}
        )
    return rows


def _curve(runs: Sequence[Run]) -> Iterator[tuple[float | None, ...]]:
    """Points where every seed finished an episode; of long runs those after the short ones, which are the same before.

    Seconds are the least of all seeds: what else the machine does can only add to them.
    """
    windows = len(runs[0]["rewards"])
    long = windows * WINDOW > SHORT
    width = 10 if long else 1
    for end in range(width, windows + 1, width):
        values = [value for run in runs if (value := per_episode(run, end - width, end)) is not None]
        if len(values) == len(runs) and not (long and end * WINDOW <= SHORT):
            seconds = min(run["seconds"][end - 1] for run in runs)
            yield (end * WINDOW, seconds, *mean_interval(values)[:3])


def _rounded(value: float | None, figures: int) -> float | None:
    return None if value is None else float(f"{value:.{figures}g}")


@cache
def kept_rows() -> Sequence[Row]:
    """Return the rows that come with the package."""
    found: Sequence[Row] = json.loads(files(__package__).joinpath("deep_learners.json").read_text(encoding="utf-8"))
    return found


# --- from rows to a chart and a finding ------------------------------------------------------------------------------


def chart(rows: Sequence[Row], against: Against) -> alt.ConcatChart:
    """Draw the curves of all learners against steps or seconds, a panel for each problem."""
    found = []
    for row in rows:
        curve = pl.DataFrame(row["curve"], dict.fromkeys(_POINT, pl.Float64))
        points = curve.rename({"steps": "x"}) if against == "steps" else _by_the_clock(curve)
        names = pl.lit(problem_of(row)).alias("panel"), pl.lit(series_of(row)).alias("series")
        found.append(points.select(*names, "x", "mean", "low", "high"))
    panels = [
        Panel(
            problem, problem, against=_AXES[against], floor=LAKE_FLOOR if problem.startswith(WORLDS["lake"]) else None
        )
        for problem in problems(rows)
    ]
    return chart_of(pl.concat(found), panels, _styles(rows), columns=2)


def _by_the_clock(curve: pl.DataFrame) -> pl.DataFrame:
    """Give the last point reached by each of the seconds in `_CLOCK`, so that learners can be read off together."""
    reached = np.searchsorted(curve["seconds"].to_numpy(), _CLOCK, side="right")
    ticks = np.flatnonzero((reached > 0) & (np.append(0, reached[:-1]) < curve.height))
    return curve[reached[ticks] - 1].with_columns(x=pl.lit(pl.Series(_CLOCK[ticks])))


def problem_of(row: Row) -> str:
    """Name the problem of a row."""
    return f"{WORLDS[row['world']]}, θ = {row['theta']:g}"


def series_of(row: Row) -> str:
    """Name the learner of a row and what it sees."""
    return ", ".join(filter(None, (LEARNERS[row["learner"]], VIEWS[row["view"]])))


def problems(rows: Iterable[Row]) -> list[str]:
    """Name the problems of some rows."""
    return list(dict.fromkeys(map(problem_of, rows)))


def _styles(rows: Iterable[Row]) -> list[Style]:
    found = {
        series_of(row): Style(
            series_of(row), _COLOURS[row["learner"]], _DASHES[row["view"]], _SHAPES[row["view"]]
        )
        for row in rows
    }  # fmt: skip
    return list(found.values())


class Standing(NamedTuple):
    """Our default beside deep learners in one part of the runs, over all problems."""

    ahead: int
    behind: int
    judged: int
    unfinished: int
    """Learners that finished no episode in some seed, so that there is nothing to compare."""


def standing(rows: Sequence[Row], part: str) -> Standing:
    """Compare our default with every deep learner of equally many steps, paired by seed, corrected by Holm's method."""
    ours = {problem_of(row): row[part] for row in rows if row["learner"] == "lacuna"}
    pairs = [(ours[problem_of(row)], row[part]) for row in rows if row["learner"] != "lacuna" and row["steps"] == SHORT]
    whole = [(mine, theirs) for mine, theirs in pairs if None not in theirs]
    corrected = holm([paired_p_value(mine, theirs) for mine, theirs in whole])
    clear = [paired_difference(*pair).estimate for pair, p in zip(whole, corrected, strict=True) if p <= 1 - LEVEL]
    ahead = sum(difference > 0 for difference in clear)
    return Standing(ahead, len(clear) - ahead, len(whole), len(pairs) - len(whole))


def finding(rows: Sequence[Row]) -> str:
    """Say how our default stands over all steps."""
    found = standing(rows, "all steps")
    return (
        f"Over {SHORT:,} steps our default is clearly ahead in {found.ahead} of {found.judged} comparisons with deep "
        f"learners, and clearly behind in {found.behind or 'none'}"
    )


def on_seconds(rows: Sequence[Row]) -> str:
    """Say how long runs of `SHORT` steps take."""
    seconds = {
        name: [row["seconds"] for row in rows if (row["learner"], row["steps"]) == (name, SHORT)] for name in LEARNERS
    }
    words = [
        f"{LEARNERS[name]} {'takes ' if name == 'lacuna' else ''}{min(found):.0f} to {max(found):.0f}"
        for name, found in seconds.items()
    ]
    return f"For {SHORT:,} steps {', '.join(words)} seconds"


# --- the section -----------------------------------------------------------------------------------------------------


def deep_section() -> Section:
    """Make the section from the rows that come with the package."""
    rows = kept_rows()
    return Section("deep", "Deep learners", _intro(rows) + _figures(rows) + _table(rows))


def _intro(rows: Sequence[Row]) -> Markup:
    runs, seeds = sum(len(row["all steps"]) for row in rows), max(len(row["all steps"]) for row in rows)
    late = standing(rows, "last fifth")
    what = Markup(
        "PPO, RecurrentPPO and DQN with three views of what is hidden: as missing, as the last value seen, and as "
        "guessed by our imputer. {} on the same masks, PPO also ten times as long. These {} runs take hours, so they "
        "were made before: <code>make deep</code> repeats them, and docs/evidence/deep.md says how the learners were "
        "set up."
    ).format(counted(seeds, "seed"), runs)
    views = " and ".join(f"{LEARNERS[name]} with “{VIEWS[view]}”" for name, view in CHOSEN_WITH.items())
    chosen = (
        f"Settings were chosen for {views}, which favours these views; the seed of those runs is left out. With them "
        "RecurrentPPO does not work in Lake World: in some runs, from some step on, no episode ends."
    )
    judged = (
        "“Clearly” means: paired by seed, Student's t, corrected by Holm's method for all comparisons of a part, at "
        f"5 %. In the last fifth of the {SHORT:,} steps our default is clearly ahead in {late.ahead} of {late.judged} "
        f"comparisons and clearly behind in {late.behind or 'none'}; in {late.unfinished or 'no'} more, some seed "
        "finished no episode."
    )
    return paragraphs(what, chosen, judged)


def _figures(rows: Sequence[Row]) -> Markup:
    caption = (
        "Reward per episode while learning, in windows of 2,000 steps, and of 20,000 after the first 50,000; means "
        "over seeds with 95 % intervals (Student's t). A window has a point if every seed finished an episode in it. "
        "Lines skip other windows, and end where only such windows follow."
    )
    seconds = (
        " Seconds of one core, the environment included: the least of all seeds. At each second, the last window that "
        "was finished by then."
    )
    shown: tuple[tuple[Against, str, str], ...] = (
        ("steps", finding(rows), caption),
        ("seconds", on_seconds(rows), caption + seconds),
    )
    return joined(
        Figure(f"deep-{x}", title, told, {(): spec_of(chart(rows, x))}, kicker=f"Reward against {x}").html()
        for x, title, told in shown
    )


def _table(rows: Sequence[Row]) -> Markup:
    heads = ["Problem", "Steps", "Learner", "First fifth", "Last fifth", "All steps", "Seeds", "Seconds"]
    lines: list[list[Text | float | Cell]] = []
    for row in rows:
        means = [_mean(row[part]) for part in PARTS]
        lines.append(
            [problem_of(row), row["steps"], series_of(row), *means, len(row["all steps"]), row["seconds"]]
        )  # fmt: skip
    return details("Reward per episode in parts of the runs, and seconds", cards(table(heads, lines)))


def _mean(values: Sequence[float | None]) -> Cell:
    """The mean over seeds; none if a seed has no value, because leaving it out would favour the learner."""
    there = [value for value in values if value is not None]
    return interval_cell(mean_interval(there) if len(there) == len(values) else None)
