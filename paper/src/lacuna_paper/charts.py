"""The paper's figures, each a function from runs to a chart; and the figure of short horizons.

Each takes `Evidence`, the runs of the paper's world, and returns an `altair` chart; None if there is nothing to show.
Lines are means over trials, bands 95 % intervals; each method is shown at its best hyper-parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import altair as alt
import numpy as np
import polars as pl

from lacuna import Lake, Settings, solve
from lacuna.report import BLACK, BLUE, DASHED, INK, ORANGE, SOLID, Lead, Panel, Style, chart_of, count_leads, on_lead
from lacuna.run import EARLY_STEPS
from lacuna.study import MEASURES, mean_interval
from lacuna_paper.comparison import KNOWING, OURS, REACHABLE
from lacuna_paper.evidence import (
    ALL_METHODS,
    BASELINES,
    EARLY,
    MI,
    MI_SYNTHETIC,
    MODELS,
    PATH,
    REWARD,
    STAY_THETAS,
    STAYED,
    WATER,
    Evidence,
    Rates,
    Shown,
    Where,
    theta_of,
)
from lacuna_paper.frontier.deep_learners import LAKE_FLOOR
from lacuna_paper.horizons import BEST, PLANNED, Cell
from lacuna_paper.points import OF_PATHWAYS, Drawn, Wanted, by_rate, drawn_by_rate, drawn_over_time, style_of
from lacuna_paper.verdicts import Sample

_SHOWN: dict[str, tuple[str, Literal["linear", "log", "share"]]] = {
    REWARD: ("Total reward", "linear"), WATER: ("Steps in water (log)", "log"), PATH: ("Path length (log)", "log"),
    STAYED: ("Stay actions", "share"),
}  # fmt: skip
MCOLOR = {
    "mcolor-xy:0.1,0.2,0.3": "(.1, .2, .3), colour seen", "mcolor:0.1,0.2,0.3": "(.1, .2, .3), colour too",
    "mcolor-xy:0.2,0.4,0.6": "(.2, .4, .6), colour seen", "mcolor:0.2,0.4,0.6": "(.2, .4, .6), colour too",
}  # fmt: skip
MFOG = {"mfog:0.5,0.0": "fog .5, elsewhere 0", "mfog:0.25,0.1": "fog .25, elsewhere .1"}
EVERY = Wanted.plain(*ALL_METHODS)
OUR_DEFAULT = Style("Our default, untuned", BLACK, SOLID, "circle")
THETAS = {name: f"θ = {name.partition(':')[2]}" for name in STAY_THETAS}


@cache
def optimum() -> float:
    """Mean reward per episode of the best policy that sees everything, the flood included.

    The flood carries on across episodes and is as often on as off, so it is the mean over both starts.

    Examples
    --------
    >>> round(optimum(), 2)
    90.99
    """
    world = Lake().mdp()
    values = solve(world, gamma=1.0).values
    starts = [sum(p * float(values[s]) for s, p in start.items()) for start in world.starts]
    return sum(starts) / len(starts)


def mcar_theta(seen: Evidence) -> alt.ConcatChart | None:
    """Performance over whole runs against the rate of MCAR missingness."""
    return _chart([drawn_by_rate(seen, EVERY)], _rate_panels(), EVERY)


def mcar_time(seen: Evidence) -> alt.ConcatChart | None:
    """Performance over time at three rates of MCAR missingness."""
    return _chart([drawn_over_time(seen, EVERY, THETAS)], _time_panels(THETAS), EVERY)


def mcolor(seen: Evidence) -> alt.ConcatChart | None:
    """Performance over time where the colour of a cell drives missingness."""
    return _chart([drawn_over_time(seen, EVERY, MCOLOR)], _time_panels(MCOLOR), EVERY)


def mfog(seen: Evidence) -> alt.ConcatChart | None:
    """Performance over time where missingness is more frequent in the fog."""
    return _chart([drawn_over_time(seen, EVERY, MFOG)], _time_panels(MFOG), EVERY)


def reward_against_theta(seen: Evidence, cells: Sequence[Cell] = ()) -> alt.ConcatChart | None:
    """Total reward against the rate of MCAR missingness, in one panel that stands by itself.

    The library's default is among the methods if it was run as long as they were, in the problems of short horizons.
    """
    points = by_rate(seen, EVERY)
    if points.is_empty():
        return None
    ours = default_by_rate(cells, int(seen.runs["steps"][0]))
    more = "" if ours is None else f", ours {ours.row(0, named=True)['n']}"
    return headline(points, ours, f"{seen.basis.in_words}{more}")


def default_by_rate(cells: Sequence[Cell], steps: int) -> pl.DataFrame | None:
    """Return what the default earns per episode in Lake World at each rate of MCAR; None if it was not run so long."""
    rows = [
        (REWARD, OUR_DEFAULT.name, theta_of(cell.missingness), *mean_interval(cell.per_episode[PLANNED]))
        for cell in cells
        if (cell.world, cell.steps) == ("lake", steps) and cell.missingness.startswith("mcar:")
    ]
    names = ("measure", "series", "x", "mean", "low", "high", "n")
    return pl.DataFrame(rows, names, orient="row") if rows else None


def headline(points: pl.DataFrame, ours: pl.DataFrame | None, trials: str) -> alt.ConcatChart:
    """Draw the points of the paper's methods, and those of the default."""
    title = f"Total reward per episode (means over {trials}; 95 % intervals); dotted: the optimum"
    panel = replace(_panel(REWARD, REWARD, against="rate"), title=title)
    names = ("series", "x", "mean", "low", "high")
    parts = [rows.filter(measure=REWARD).select(names) for rows in (points, ours) if rows is not None]
    whole = pl.concat(parts).with_columns(panel=pl.lit(REWARD))
    styles = [OUR_DEFAULT, *(one.style for one in EVERY)]
    chart = chart_of(whole, [panel], styles, columns=1)
    chart.concat[0].width, chart.concat[0].height = 560, 300
    chart.config.legend = alt.LegendConfig(
        orient="right", title=None, labelFontSize=12, labelLimit=260, labelColor=INK, rowPadding=7,
        symbolType="stroke", symbolSize=500, symbolStrokeWidth=2.5, symbolOpacity=1,
    )  # fmt: skip
    return chart


def choosing_k(seen: Evidence) -> alt.ConcatChart | None:
    """One, five and ten pathways: over time at three rates, and against the rate."""
    wanted = Wanted.plain(*(Shown(model, K) for model in MODELS for K in OF_PATHWAYS))
    parts = [drawn_over_time(seen, wanted, THETAS), drawn_by_rate(seen, wanted)]
    return _chart(parts, [*_time_panels(THETAS), *_rate_panels()], wanted)


def mixing(seen: Evidence, missingness: str = "mcar:0.4") -> alt.ConcatChart | None:
    """With mixing of pathways and without, for both models."""
    parts, panels = [], []
    styles = {
        (K, p): Style(f"K = {K}, mixing" if p else f"K = {K}", colour, DASHED if p else SOLID, shape)
        for K, (colour, shape) in OF_PATHWAYS.items()
        for p in ((0.0, 0.1) if K > 1 else (0.0,))
    }
    for model in MODELS:
        wanted = [Wanted(Shown(model, K, p), style) for (K, p), style in styles.items()]
        found = drawn_over_time(seen, wanted, [missingness])
        here = pl.concat_str(pl.lit(f"{model} "), "panel").alias("panel")
        parts.append(Drawn(*(rows if rows.is_empty() else rows.with_columns(here) for rows in found)))
        name = str(Shown(model, 10)).partition(", ")[2]
        panels += [_panel(f"{model} {missingness} {measure}", measure, name) for measure in MEASURES]
    return _chart(parts, panels, [Wanted(MI_SYNTHETIC, style) for style in styles.values()])


def stay(seen: Evidence) -> alt.ConcatChart | None:
    """With and without a stay action, greedy and not, and how often it is used."""
    wanted = [
        Wanted(
            MI_SYNTHETIC,
            Style(
                f"ε = {epsilon:g}, {'may stay' if may else 'may not stay'}",
                ORANGE if epsilon else BLUE, DASHED if may else SOLID, "square" if epsilon else "circle",
            ),
            (("epsilon", epsilon), ("stay", may)),
        )
        for epsilon in (0.0, 0.05)
        for may in (False, True)
    ]  # fmt: skip
    panels = _time_panels(THETAS, (*MEASURES, STAYED))
    return _chart([drawn_over_time(seen, wanted, THETAS)], panels, wanted, columns=4)


def beyond(seen: Evidence) -> alt.ConcatChart | None:
    """Ours at its one setting, the paper's MI and what could be reached: against the rate, and over time."""
    wanted = Wanted.plain(OURS, *MI, *(KNOWING[name] for name in ("fully-observed", "mi-true-model", REACHABLE)))
    parts = [drawn_by_rate(seen, wanted), drawn_over_time(seen, wanted, THETAS)]
    if not any(str(OURS) in part.points["series"] for part in parts if not part.points.is_empty()):
        return None
    # The first row is against rates, the second against steps: panels in a column measure different things.
    times = [replace(panel, shares="over time") for panel in _time_panels(THETAS, (REWARD,))]
    return _chart(parts, [*_rate_panels(), *times], wanted)


# --- what a figure shows, in a sentence ---------------------------------------------------------------------------


def _lead(seen: Evidence, one: Shown, others: Sequence[Shown], among: Where, measure: str = REWARD) -> Lead:
    """How often a method is ahead, under those kinds of missingness under which all were run on all trials."""
    found = []
    for name in seen.where(one, *others, among=among):
        samples = [seen.sample(shown, name, measure) for shown in (one, *others)]
        if all(np.isfinite(sample.values).all() for sample in samples):
            first, *rest = (sample.values for sample in samples)
            found.append((first, rest))
    return count_leads(found)


def _against_baselines(among: Where, where: str) -> Callable[[Evidence], str]:
    def told(seen: Evidence) -> str:
        return on_lead(str(MI_SYNTHETIC), "every baseline", _lead(seen, MI_SYNTHETIC, BASELINES, among), where)

    return told


def _early_and_whole(seen: Evidence) -> str:
    early, whole = (_lead(seen, MI_SYNTHETIC, BASELINES, list(THETAS), measure) for measure in (EARLY, REWARD))
    return (
        f"{MI_SYNTHETIC} is clearly ahead of every baseline at {early.ahead or 'none'} of {early.cases} rates over the "
        f"first {EARLY_STEPS:,} steps, at {whole.ahead or 'none'} over all"
    )


def _on_pathways(seen: Evidence) -> str:
    won = {
        K: [_lead(seen, Shown(model, 10), [Shown(model, K)], Rates(0)) for model in MODELS]
        for K in OF_PATHWAYS
        if K < 10
    }
    words = [
        f"than {'one' if K == 1 else 'five'} in {sum(one.ahead for one in found) or 'none'} of "
        f"{sum(one.cases for one in found)}"
        for K, found in won.items()
    ]
    return f"Ten pathways earn clearly more {' and '.join(words)} cases"


def _on_pairs(what: str, pairs: Sequence[tuple[Sample, Sample]]) -> str:
    """Say in how many pairs a change makes a difference."""
    whole = [(a.values, [b.values]) for a, b in pairs if np.isfinite(a.values + b.values).all()]
    found = count_leads(whole)
    most = max((abs(float(np.mean(a - b[0]))) for a, b in whole), default=0.0)
    clear = found.ahead + found.behind
    told = f"{what} makes a clear difference in {clear or 'none'} of {found.cases} comparisons"
    return f"{told}; the largest is {most:.2g} per episode" if whole else told


def _on_mixing(seen: Evidence) -> str:
    pairs = [
        (seen.sample(Shown(model, K, 0.1), "mcar:0.4"), seen.sample(Shown(model, K), "mcar:0.4"))
        for model in MODELS
        for K in (5, 10)
    ]
    return _on_pairs("Mixing", pairs)


def _on_staying(seen: Evidence) -> str:
    cuts = [(seen.only(stay=True, epsilon=epsilon), seen.only(stay=False, epsilon=epsilon)) for epsilon in (0.0, 0.05)]
    pairs = [
        (free.sample(MI_SYNTHETIC, name), bound.sample(MI_SYNTHETIC, name)) for free, bound in cuts for name in THETAS
    ]
    return _on_pairs("A stay action", pairs)


def _on_ours(seen: Evidence) -> str:
    return on_lead("Ours without planning", "both MI of the paper", _lead(seen, OURS, MI, Rates()), "rates")


@dataclass(frozen=True)
class FigureOfPaper:
    """A figure: its name here, its subject, what it shows, and functions that draw it and say what came out."""

    id: str
    title: str
    caption: str
    draw: Callable[[Evidence], alt.ConcatChart | None]
    told: Callable[[Evidence], str]


FIGURES: tuple[FigureOfPaper, ...] = (
    FigureOfPaper(
        "mcar-theta", "More and more goes missing: MCAR",
        "Mean performance over whole runs against θ, the probability that a component of the state is hidden. The "
        "paper's figure 3, top.",
        mcar_theta, _against_baselines(Rates(0), "rates above 0"),
    ),
    FigureOfPaper(
        "mcar-time", "Learning over time: MCAR at θ = 0.2, 0.4 and 0.8",
        "Running mean over the episodes completed by each step. The paper's figure 3, bottom, and figure 6.",
        mcar_time, _early_and_whole,
    ),
    FigureOfPaper(
        "mcolor", "When danger hides itself: MCOLOR",
        "Rates of missingness in green, orange and red cells, for the position only or for the colour too. The paper's "
        "figure 4, top, and figure 7.",
        mcolor, _against_baselines(list(MCOLOR), "settings"),
    ),
    FigureOfPaper(
        "mfog", "When missing means somewhere: MFOG",
        "Missingness inside the fog region and elsewhere. The paper's figure 4, bottom, and figure 8.",
        mfog, _against_baselines(list(MFOG), "settings"),
    ),
    FigureOfPaper(
        "choosing-k", "How many pathways: K = 1, 5, 10",
        "Over time at three rates, and against the rate. K = 1 is single imputation. The paper's figure 9.",
        choosing_k, _on_pathways,
    ),
    FigureOfPaper(
        "mixing", "Mixing pathways",
        "MCAR at θ = 0.4; with mixing, imputed next states change places among pathways with probability 0.1; a "
        "single pathway has nothing to mix. The paper's figure 10.",
        mixing, _on_mixing,
    ),
    FigureOfPaper(
        "stay", "Staying in place",
        "MI K=10, synthetic, with and without a ninth action, staying, and with and without random actions. The "
        "paper's figure 11.",
        stay, _on_staying,
    ),
)  # fmt: skip


BEYOND = FigureOfPaper(
    "beyond", "Ours, and what could be reached",
    "Ours without planning, at its one setting, against multiple imputation as in the paper at settings tuned for each "
    "rate, and against yardsticks, dashed, that know what no agent can: Q-learning that sees everything; MI that draws "
    "from the true transitions; QMDP, which has the true model and the exact belief given what was observed and paid. "
    "The dotted line is the optimum.",
    beyond, _on_ours,
)  # fmt: skip


HORIZONS_DRAWN = {
    "lake": ("mcar:0.2", "mcar:0.6", "mcar:0.95", "mcolor:0.2,0.4,0.6", "mfog:0.5,0.0", "bursts:0.1,0.3"),
    "cliff-walking": ("mcar:0.2",), "frozen-lake": ("mcar:0.2",), "taxi": ("mcar:0.2",),
}  # fmt: skip
"""The kinds of missingness under which short horizons are drawn, by world."""


def short_horizons(cells: Sequence[Cell]) -> alt.ConcatChart | None:
    """Regret per step against the best possible, up to each horizon."""
    drawn = [cell for cell in cells if cell.missingness in HORIZONS_DRAWN.get(cell.world, ()) and BEST in cell.methods]
    shown = {name: Shown(name, Settings(name).K) for cell in drawn for name in cell.methods if name != BEST}
    rows = []
    for cell in drawn:
        for name in (name for name in cell.methods if name != BEST):
            for horizon in cell.horizons:
                mean, low, high, _ = mean_interval(cell.regret(name, BEST, horizon))
                rows.append((_place(cell), str(shown[name]), float(horizon), mean, low, high))
    if not rows:
        return None
    numbers = dict.fromkeys(("x", "mean", "low", "high"), pl.Float64)
    points = pl.DataFrame(rows, {"panel": pl.String, "series": pl.String, **numbers}, orient="row")
    points = points.with_columns(pl.col("mean", "low", "high").round_sig_figs(4))
    panels = [Panel(_place(cell), _place(cell), against="log steps", line=0.0) for cell in drawn]
    return chart_of(points, panels, [style_of(one) for one in shown.values()])


def _place(cell: Cell) -> str:
    return f"{cell.world}, {cell.missingness}"


def _chart(
    parts: Sequence[Drawn], panels: Sequence[Panel], wanted: Sequence[Wanted], columns: int = 3
) -> alt.ConcatChart | None:
    points, trials = (_stack([getattr(part, name) for part in parts]) for name in Drawn._fields)
    if points.is_empty():
        return None
    return chart_of(points, panels, [one.style for one in wanted], columns, None if trials.is_empty() else trials)


def _stack(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    found = [part.with_columns(pl.col("x").cast(pl.Float64)) for part in parts if not part.is_empty()]
    return pl.concat(found, how="diagonal") if found else pl.DataFrame()


def _panel(key: str, measure: str, more: str = "", against: Literal["rate", "steps"] = "steps") -> Panel:
    title, scale = _SHOWN[measure]
    line, floor = (optimum(), LAKE_FLOOR) if measure == REWARD else (None, None)
    return Panel(key, f"{title}, {more}" if more else title, scale, against, line, floor, shares=measure)


def _rate_panels() -> list[Panel]:
    return [_panel(measure, measure, against="rate") for measure in MEASURES]


def _time_panels(settings: dict[str, str], measures: Sequence[str] = MEASURES) -> list[Panel]:
    return [_panel(f"{name} {measure}", measure, words) for name, words in settings.items() for measure in measures]
