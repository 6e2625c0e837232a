"""What `lacuna run` prints: figures with intervals, and on a terminal a learning curve and the yardsticks.

Student's t is computed here, so that the command needs no extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import atan, cos, inf, pi, sin, sqrt
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from lacuna.agent.methods import YARDSTICKS
from lacuna.agent.own_method import AnyMethod
from lacuna.agent.settings import Settings
from lacuna.run.measures import SUMS, standard_error
from lacuna.run.problems import AnyProblem, Problem
from lacuna.run.repetitions import EARLY_STEPS, run_trial

POINTS = 24
"""Number of bars of a sparkline."""

MOST_STATES = 2_000
"""In a larger world yardsticks take too long to compute while a user waits."""

_BARS = "▁▂▃▄▅▆▇█"
_BESIDE = ("optimum", "qmdp-rewards")
_SECONDS, _STEPS, _TRIALS = 1.0, 10_000, 5
_LEVEL = 0.95
_WIDE = 100

_FIGURES = {
    "mean_total_reward": "total reward per episode",
    "mean_bad_steps": "bad steps per episode",
    "mean_path_length": "path length",
    "episodes": "episodes completed",
    "open_steps": "steps in the open episode",
    "reward_per_step": "reward per step",
    "reward_per_step_early": "… over the first {early:,} steps",
    "reward_per_step_late": "… over the last fifth",
    "idle_share": "share of idle actions",
    "guessed_right": "hidden components guessed right",
    "weight_on_truth": "pathways on the true state",
    "calibration_error": "calibration error of pathway shares",
    "seconds": "seconds",
}


def heading(problem: AnyProblem, settings: AnyMethod, rows: Sequence[dict[str, Any]]) -> str:
    """Say in one line what was run."""
    chosen = ", ".join(f"{name} = {value}" for name, value in settings.unusual().items())
    return (
        f"{settings.method}{f' ({chosen})' if chosen else ''} in {problem.world}, {problem.missingness} "
        f"({problem.mechanism.label}); trials: {len(rows)} of {rows[0]['steps']:,} steps"
    )


def figures_table(problem: AnyProblem, rows: Sequence[dict[str, Any]], width: int) -> Table:
    """Return means over trials, with 95 % intervals, and with standard errors where there is room for them."""
    wide = width >= _WIDE
    table = Table()
    for column in ("", "mean", "95 % interval", *["standard error"] * wide, "trials"):
        table.add_column(column, justify="left" if not column else "right")
    unused = {"idle_share"} if isinstance(problem, Problem) and problem.mdp.idle is None else set()
    for key, label in _FIGURES.items():
        values = [row[key] for row in rows if row[key] is not None and key not in unused]
        if values:
            error = standard_error(values)
            spread = ["" if error is None else f"{error:.3g}"] * wide
            name = label.format(early=min(EARLY_STEPS, rows[0]["steps"]))
            table.add_row(name, f"{fmean(values):.5g}", interval(values), *spread, f"{len(values)} of {len(rows)}")
    return table


def interval(values: Sequence[float]) -> str:
    """Write the 95 % interval of a mean, by Student's t; nothing for a single value, or if all values are equal.

    Examples
    --------
    >>> interval([84.0, 86.0, 88.0])
    '[81.03, 90.97]'
    """
    error = standard_error(values)
    if error is None or min(values) == max(values):
        return ""
    mean, reach = fmean(values), error * t_quantile(len(values) - 1)
    return f"[{mean - reach:.4g}, {mean + reach:.4g}]"


def t_quantile(freedom: int) -> float:
    """Return the t with 95 % of Student's t between -t and t, exact to rounding up to 1000 degrees of freedom.

    Examples
    --------
    >>> [round(t_quantile(n), 4) for n in (1, 4, 29)]
    [12.7062, 2.7764, 2.0452]
    """
    if freedom > 1000:
        return NormalDist().inv_cdf((1 + _LEVEL) / 2)
    low, high = 0.0, 100.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _share_within(middle, freedom) < _LEVEL else (low, middle)
    return low


def _share_within(t: float, freedom: int) -> float:
    """The share of Student's t between -t and t, by its finite sum in the angle atan(t/√n)."""
    angle = atan(t / sqrt(freedom))
    square = cos(angle) ** 2
    odd = freedom % 2
    term, total = (cos(angle), 0.0) if odd else (1.0, 0.0)
    for i in range(freedom // 2):
        total += term
        # Over odd n the factors are 2/3, 4/5, …; over even n 1/2, 3/4, ….
        term *= square * (2 * i + 1 + odd) / (2 * i + 2 + odd)
    return (2 / pi) * (angle + sin(angle) * total) if odd else sin(angle) * total


# --- on a terminal ------------------------------------------------------------------------------------------------


def curve_times(steps: int) -> list[int]:
    """List the steps at which a run records its sums for a sparkline: the ends of `POINTS` equal parts."""
    return sorted({max(1, round(steps * (i + 1) / POINTS)) for i in range(POINTS)})


def sparkline(values: Sequence[float]) -> str:
    """Draw numbers as bars, from the lowest to the highest.

    Examples
    --------
    >>> sparkline([-5.0, 0.0, 4.0, 9.0])
    '▁▃▅█'
    >>> sparkline([2.0, 2.0])
    '▁▁'
    """
    low, high = min(values), max(values)
    room = high - low or inf
    return "".join(_BARS[round((value - low) / room * (len(_BARS) - 1))] for value in values)


def on_learning(rows: Sequence[dict[str, Any]]) -> str:
    """Say how reward per step changed over the run, as a sparkline of means over trials."""
    at = [SUMS.index(name) for name in ("steps", "reward")]
    sums = np.array([row["curve"][:, at] for row in rows])
    parts = np.diff(sums, axis=1, prepend=0.0)
    pace = (parts[..., 1] / parts[..., 0]).mean(axis=0).tolist()
    return f"learning: {sparkline(pace)}  reward per step, {pace[0]:.3g} at first, {pace[-1]:.3g} at the end"


class Reached(NamedTuple):
    """The reward per episode of a yardstick: a number for each trial that completed an episode."""

    title: str
    values: list[float]


def reached(problem: AnyProblem, settings: AnyMethod, seeds: Sequence[int]) -> Iterator[Reached | str]:
    """Run yardsticks for about a second, on the same seeds; if one cannot be run, say why.

    A yardstick does not learn, so a short run is enough.
    """
    if not isinstance(problem, Problem):
        yield "What could be reached is unknown: this environment does not give its transition probabilities."
        return
    if problem.mdp.n_states > MOST_STATES:
        yield f"What could be reached is not computed here: the world has {problem.mdp.n_states:,} states."
        return
    gamma = getattr(settings, "gamma", 1.0)
    for name in _BESIDE:
        found: list[float] = []
        spent = 0.0
        try:
            for seed in seeds[:_TRIALS]:
                row = run_trial(problem, Settings(name, gamma=gamma), steps=_STEPS, seed=seed)
                found += [row["mean_total_reward"]] if row["mean_total_reward"] is not None else []
                spent += row["seconds"]
                if spent > _SECONDS / len(_BESIDE):
                    break
        except (ValueError, MemoryError, ModuleNotFoundError) as error:
            yield f"How far “{YARDSTICKS[name].title}” would come is not known: {error}."
            continue
        yield Reached(YARDSTICKS[name].title, found) if found else f"{YARDSTICKS[name].title} completed no episode."


def beside_table(settings: AnyMethod, rows: Sequence[dict[str, Any]], found: Sequence[Reached]) -> Table:
    """Put the reward per episode of a method beside that of yardsticks."""
    table = Table()
    for column in ("total reward per episode", "mean", "95 % interval", "trials"):
        table.add_column(column, justify="left" if column.startswith("total") else "right")
    mine = [row["mean_total_reward"] for row in rows if row["mean_total_reward"] is not None]
    for title, values in (*found, (settings.method, mine)):
        if values:
            table.add_row(title, f"{fmean(values):.5g}", interval(values), str(len(values)))
    return table
