"""The paper's figures, each a function from runs to a chart; and the figure of short horizons.

It takes `Evidence`, the runs of the paper's world, and gives an `altair` chart; None if there is nothing to show. Lines
are means over trials, bands 95 % intervals; each method is shown at its best hyper-parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import altair as alt
import polars as pl

from lacuna.mdp.solve import solve
from lacuna.methods.settings import Settings
from lacuna.paper.comparison import KNOWING, OURS, REACHABLE
from lacuna.paper.evidence import (
    ALL_METHODS,
    MI,
    MI_SYNTHETIC,
    MODELS,
    PATH,
    REWARD,
    STAY_THETAS,
    STAYED,
    WATER,
    Evidence,
    Shown,
)
from lacuna.paper.horizons import BEST, Cell
from lacuna.paper.points import OF_PATHWAYS, Wanted, by_rate, over_time, style_of
from lacuna.report.panels import Floor, Panel, chart_of
from lacuna.report.styles import BLUE, DASHED, ORANGE, SOLID, Style
from lacuna.study.selection import MEASURES
from lacuna.study.statistics import mean_interval
from lacuna.worlds.lake import Lake

FLOOR = Floor(lowest=-100.0, close_up=60.0)
"""Where the axis of rewards ends: methods that fail earn minus a thousand."""

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
    return _chart(by_rate(seen, EVERY), _rate_panels(), EVERY)


def mcar_time(seen: Evidence) -> alt.ConcatChart | None:
    """Performance over time at three rates of MCAR missingness."""
    return _chart(over_time(seen, EVERY, THETAS), _time_panels(THETAS), EVERY)


def mcolor(seen: Evidence) -> alt.ConcatChart | None:
    """Performance over time where the colour of a cell drives missingness."""
    return _chart(over_time(seen, EVERY, MCOLOR), _time_panels(MCOLOR), EVERY)


def mfog(seen: Evidence) -> alt.ConcatChart | None:
    """Performance over time where missingness is more frequent in the fog."""
    return _chart(over_time(seen, EVERY, MFOG), _time_panels(MFOG), EVERY)


def reward_against_theta(seen: Evidence) -> alt.ConcatChart | None:
    """Total reward against the rate of MCAR missingness, in one panel that stands by itself."""
    how = f"means over {seen.basis.in_words}, 95 % intervals"
    title = f"Total reward per episode ({how}); dotted: the optimum"
    panel = replace(_panel(REWARD, REWARD, against="rate"), title=title)
    chart = _chart(by_rate(seen, EVERY), [panel], EVERY, columns=1)
    if chart is not None:
        chart.concat[0].width, chart.concat[0].height = 560, 300
        chart.config.legend = alt.LegendConfig(
            orient="right", title=None, labelFontSize=12, labelLimit=260, rowPadding=7,
            symbolType="stroke", symbolSize=500, symbolStrokeWidth=2.5, symbolOpacity=1,
        )  # fmt: skip
    return chart


def choosing_k(seen: Evidence) -> alt.ConcatChart | None:
    """One, five and ten pathways: over time at three rates, and against the rate."""
    wanted = Wanted.plain(*(Shown(model, K) for model in MODELS for K in OF_PATHWAYS))
    points = _stack(over_time(seen, wanted, THETAS), by_rate(seen, wanted))
    return _chart(points, [*_time_panels(THETAS), *_rate_panels()], wanted)


def mixing(seen: Evidence, missingness: str = "mcar:0.4") -> alt.ConcatChart | None:
    """With mixing of pathways and without, for both models."""
    rows, panels = [], []
    styles = {
        (K, p): Style(f"K = {K}, mixing" if p else f"K = {K}", colour, DASHED if p else SOLID, shape)
        for K, (colour, shape) in OF_PATHWAYS.items()
        for p in ((0.0, 0.1) if K > 1 else (0.0,))
    }
    for model in MODELS:
        wanted = [Wanted(Shown(model, K, p), style) for (K, p), style in styles.items()]
        found = over_time(seen, wanted, [missingness])
        if not found.is_empty():
            rows.append(found.with_columns(panel=pl.concat_str(pl.lit(f"{model} "), "panel")))
        name = str(Shown(model, 10)).partition(", ")[2]
        panels += [_panel(f"{model} {missingness} {measure}", measure, name) for measure in MEASURES]
    return chart_of(pl.concat(rows), panels, list(styles.values())) if rows else None


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
    return _chart(over_time(seen, wanted, THETAS), _time_panels(THETAS, (*MEASURES, STAYED)), wanted, columns=4)


def beyond(seen: Evidence) -> alt.ConcatChart | None:
    """Ours at its one setting, the paper's MI and what could be reached: against the rate, and over time."""
    wanted = Wanted.plain(OURS, *MI, *(KNOWING[name] for name in ("fully-observed", "mi-true-model", REACHABLE)))
    points = _stack(by_rate(seen, wanted), over_time(seen, wanted, THETAS))
    if points.is_empty() or str(OURS) not in points["series"]:
        return None
    return _chart(points, [*_rate_panels(), *_time_panels(THETAS, (REWARD,))], wanted)


@dataclass(frozen=True)
class FigureOfPaper:
    """A figure: its name here, its title, what it shows, and the function that draws it."""

    id: str
    title: str
    caption: str
    draw: Callable[[Evidence], alt.ConcatChart | None]


FIGURES: tuple[FigureOfPaper, ...] = (
    FigureOfPaper(
        "mcar-theta", "More and more goes missing: MCAR",
        "Mean performance over whole runs against θ, the probability that a component of the state is hidden. The "
        "paper's figure 3, top.",
        mcar_theta,
    ),
    FigureOfPaper(
        "mcar-time", "Learning over time: MCAR at θ = 0.2, 0.4 and 0.8",
        "Running mean over the episodes completed by each step. The paper's figure 3, bottom, and figure 6.",
        mcar_time,
    ),
    FigureOfPaper(
        "mcolor", "When danger hides itself: MCOLOR",
        "Rates of missingness in green, orange and red cells, for the position only or for the colour too. The paper's "
        "figure 4, top, and figure 7.",
        mcolor,
    ),
    FigureOfPaper(
        "mfog", "When missing means somewhere: MFOG",
        "Missingness inside the fog region and elsewhere. The paper's figure 4, bottom, and figure 8.",
        mfog,
    ),
    FigureOfPaper(
        "choosing-k", "How many pathways: K = 1, 5, 10",
        "Over time at three rates, and against the rate. K = 1 is single imputation. The paper's figure 9.",
        choosing_k,
    ),
    FigureOfPaper(
        "mixing", "Mixing pathways",
        "MCAR at θ = 0.4; with mixing, imputed next states change places among pathways with probability 0.1; a "
        "single pathway has nothing to mix. The paper's figure 10.",
        mixing,
    ),
    FigureOfPaper(
        "stay", "Staying in place",
        "MI K=10, synthetic, with and without a ninth action, staying, and with and without random actions. The "
        "paper's figure 11.",
        stay,
    ),
)  # fmt: skip


BEYOND = FigureOfPaper(
    "beyond", "Ours, and what could be reached",
    "Ours without planning, at its one setting, against multiple imputation as in the paper at settings tuned for each "
    "rate, and against yardsticks, dashed, that know what no agent can: Q-learning that sees everything; MI that draws "
    "from the true transitions; QMDP, which has the true model and the exact belief given what was observed and paid. "
    "The dotted line is the optimum.",
    beyond,
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
    points: pl.DataFrame, panels: Sequence[Panel], wanted: Sequence[Wanted], columns: int = 3
) -> alt.ConcatChart | None:
    return None if points.is_empty() else chart_of(points, panels, [one.style for one in wanted], columns)


def _stack(*parts: pl.DataFrame) -> pl.DataFrame:
    found = [part.with_columns(pl.col("x").cast(pl.Float64)) for part in parts if not part.is_empty()]
    return pl.concat(found, how="diagonal") if found else pl.DataFrame()


def _panel(key: str, measure: str, more: str = "", against: Literal["rate", "steps"] = "steps") -> Panel:
    title, scale = _SHOWN[measure]
    line, floor = (optimum(), FLOOR) if measure == REWARD else (None, None)
    return Panel(key, f"{title}, {more}" if more else title, scale, against, line, floor)


def _rate_panels() -> list[Panel]:
    return [_panel(measure, measure, against="rate") for measure in MEASURES]


def _time_panels(settings: dict[str, str], measures: Sequence[str] = MEASURES) -> list[Panel]:
    return [_panel(f"{name} {measure}", measure, words) for name, words in settings.items() for measure in measures]
