"""The paper's two drawings: pathways through time, its figure 1, and Lake World, its figure 2.

The pathways are those of a recorded run. The recording is part of the package, because running the agent would compile
all of its kernels for one picture. A test repeats the run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from statistics import fmean
from typing import Any, NamedTuple

import altair as alt
import gymnasium
import numpy as np

from lacuna import Agent, Lake, MissingObservation, Settings, play
from lacuna.report import BLUE, GREY, ORANGE, haloed, print_config
from lacuna.worlds import COLOURS, LAKE_PALETTE, Letter, Rectangle, draw_lake

_SIDE = 300
_LETTERS = {colour: colour[0] for colour in COLOURS}
_NAMES = {colour: f"{colour} ({_LETTERS[colour]})" for colour in COLOURS}
_LEARNED, _SEED, _WINDOW, _APART = 10_000, 0, 10, 4
_TOP, _LANE = 3.2, 1.15
"""Offset of the guesses below the components, and distance between guesses, in rows of components."""


class Drawing(NamedTuple):
    """A drawing: its name, subject and caption, and the function that makes it."""

    id: str
    subject: str
    caption: str
    draw: Callable[[], Any]


def drawings() -> tuple[Drawing, ...]:
    """List the drawings in the order of the paper."""
    run = recorded()
    guesses = (
        f"{run['K']} pathways of MI, synthetic, in a run of this library under {run['missingness']}, after "
        f"{run['learned']:,} steps of learning. Above, what was seen at each step; below, what the pathways took the "
        "state to be: row, column, colour, and how many agree. Each goes on from its own guess. The paper's figure 1."
    )
    maps = (
        "Lake World, dry and flooded: 8 × 8 cells, from the start S to the goal G. The agent sees row, column and "
        "colour; red and orange warn of water here or to the right. The flood comes and goes; the bridge never "
        "floods. Under MFOG more goes missing in the fog. The paper's figure 2."
    )
    return (
        Drawing("pathways", "Pathways through time", guesses, pathways),
        Drawing("worlds", "The world", maps, worlds),
    )


# --- pathways through time ------------------------------------------------------------------------------------------


def record() -> dict[str, Any]:
    """Run the agent and give the part that is drawn, as plain data.

    An agent with five pathways learns for 10,000 steps. Then the first episode is taken whose first ten states begin
    and end fully observed, are fully observed at least once in between, and have at least four different guesses in one
    of them.
    """
    settings = Settings("mi-synthetic", K=5)
    env = MissingObservation(gymnasium.make("lacuna/Lake-v0"), "mcar:0.4", truth=True)
    agent = Agent.for_env(env, settings, seed=_SEED)
    play(env, agent, _LEARNED, seed=_SEED)
    while True:
        observation, info = env.reset()
        agent.begin(observation)
        states, ended = [_state(info, agent)], False
        while not ended:
            observation, reward, terminated, truncated, info = env.step(agent.act())
            agent.learn(float(reward), observation, terminated)
            states.append(_state(info, agent))
            ended = terminated or truncated
        part = states[:_WINDOW]
        seen = [not any(one["hidden"]) for one in part]
        apart = max(len(set(map(tuple, one["guesses"]))) for one in part)
        if len(part) == _WINDOW and seen[0] and seen[-1] and any(seen[1:-1]) and apart >= _APART:
            about = {"world": "lake", "missingness": "mcar:0.4", "seed": _SEED, "learned": _LEARNED}
            return about | {"method": settings.method, "K": settings.K, "states": part}


def _state(info: Mapping[str, Any], agent: Agent) -> dict[str, Any]:
    guesses = [list(guess) for guess in agent.pathways]
    return {"hidden": info["mask"].tolist(), "truth": info["truth"].tolist(), "guesses": guesses}


def recorded() -> dict[str, Any]:
    """Read the recording in the package."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("pathways.json").read_text(encoding="utf-8"))
    return found


def pathways(run: Mapping[str, Any] | None = None) -> alt.LayerChart:
    """Draw the pathways of a recorded run: what was seen at each step, and what each pathway took the state to be.

    Examples
    --------
    >>> pathways().usermeta["heading"]
    '5 pathways split into up to 4 guesses while parts are hidden, and meet when all is seen'
    """
    run = run or recorded()
    states, K = run["states"], run["K"]
    lanes = _lanes(states)
    lowest = max(y for at in lanes for y in at.values()) + 1
    x = alt.X("step:Q", axis=alt.Axis(title="step of the episode", values=list(range(len(states))), grid=False),
              scale=alt.Scale(domain=[-0.5, len(states) - 0.5], nice=False))  # fmt: skip
    middle = lanes[0][tuple(states[0]["guesses"][0])]
    words = f"{json.dumps(['row', 'column', 'colour'])}[datum.value - 0.5] || '{K} pathways'"
    axis = alt.Axis(title=None, values=[0.5, 1.5, 2.5, middle], labelExpr=words, grid=False, ticks=False, domain=False)

    def y(name: str) -> alt.Y:
        return alt.Y(f"{name}:Q", axis=axis, scale=alt.Scale(domain=[lowest, 0], nice=False))

    guess = alt.Color("is:N", title=None).scale(domain=list(_GUESSES), range=[c for c, _ in _GUESSES.values()])
    shape = alt.Shape("is:N", title=None).scale(domain=list(_GUESSES), range=[s for _, s in _GUESSES.values()])
    told = [alt.Tooltip(f"{name}:N") for name in ("step", "guess", "pathways", "truth", "hidden")]
    wide, beside = alt.ExprRef("width < 480 ? 0 : 1"), alt.ExprRef(f"datum.lane > {middle} + 0.1 ? 16 : -14")
    parts, nodes = alt.Chart(alt.NamedData("parts")), alt.Chart(alt.NamedData("nodes"))
    hidden = parts.transform_filter("datum.text === '?'")
    layers = [
        alt.Chart().mark_line(strokeWidth=1.4, opacity=0.8, color=GREY).encode(x, y("lane"), detail="pathway:N"),
        parts.transform_filter("datum.text !== '?'").mark_square(size=330, color=BLUE, opacity=0.25).encode(x, y("at")),
        hidden.mark_square(size=330, filled=False, color=ORANGE, strokeDash=[3, 2]).encode(x, y("at")),
        parts.mark_text(fontSize=12).encode(x, y("at"), text="text:N"),
        nodes.mark_point(filled=True, opacity=1).encode(
            x, y("lane"), guess, shape, alt.Size("pathways:Q", legend=None).scale(domain=[1, K], range=[60, 220]),
            tooltip=told,
        ),
        *haloed(nodes, (x, y("lane")), dy=beside, opacity=wide),
    ]  # fmt: skip
    most = max(len(at) for at in lanes)
    heading = f"{K} pathways split into up to {most} guesses while parts are hidden, and meet when all is seen"
    series = [{"name": name, "colour": colour, "shape": shape} for name, (colour, shape) in _GUESSES.items()]
    chart = alt.LayerChart(
        layer=layers, width=640, height=round(30 * lowest), description=_on_states(states),
        usermeta={"left": 84, "series": series, "heading": heading},
        config=alt.Config(**print_config() | {"legend": alt.LegendConfig(orient="top", labelFontSize=12)}),
    )  # fmt: skip
    chart.data = alt.NamedData("points")
    chart.datasets = {
        "points": list(_guess_rows(states, lanes)), "nodes": list(_node_rows(states, lanes)),
        "parts": list(_part_rows(states)),
    }  # fmt: skip
    return chart


_GUESSES = {"the true state": (BLUE, "circle"), "a wrong guess": (ORANGE, "diamond")}


def _lanes(states: Sequence[Mapping[str, Any]]) -> list[dict[tuple[int, ...], float]]:
    """Return the vertical place of each guess: around the middle, ordered by where its pathways come from."""
    most = max(len(set(map(tuple, one["guesses"]))) for one in states)
    middle = _TOP + _LANE * (most + 1) / 2
    found: list[dict[tuple[int, ...], float]] = []
    before = [middle] * len(states[0]["guesses"])
    for one in states:
        guesses = [tuple(guess) for guess in one["guesses"]]
        come_from = {
            guess: fmean(y for y, other in zip(before, guesses, strict=True) if other == guess) for guess in guesses
        }
        ordered = sorted(come_from, key=lambda guess: (come_from[guess], guess))
        found.append({guess: middle + _LANE * (i - (len(ordered) - 1) / 2) for i, guess in enumerate(ordered)})
        before = [found[-1][guess] for guess in guesses]
    return found


def _label(state: Sequence[int]) -> str:
    row, column, colour = state
    return f"{row},{column} {_LETTERS[COLOURS[colour]]}"


def _guess_rows(states: Sequence[Mapping[str, Any]], lanes: Sequence[Mapping[Any, float]]) -> Iterator[dict[str, Any]]:
    """A row for each pathway and step. Pathways with the same guess are drawn beside each other, so all are visible."""
    for t, one in enumerate(states):
        for k, guess in enumerate(one["guesses"]):
            same = [i for i, other in enumerate(one["guesses"]) if other == guess]
            beside = 0.07 * (same.index(k) - (len(same) - 1) / 2)
            row, column, colour = guess
            yield {
                "step": t, "pathway": k + 1, "row": row, "column": column, "colour": COLOURS[colour],
                "right": guess == one["truth"], "lane": round(lanes[t][tuple(guess)] + beside, 3),
            }  # fmt: skip


def _node_rows(states: Sequence[Mapping[str, Any]], lanes: Sequence[Mapping[Any, float]]) -> Iterator[dict[str, Any]]:
    for t, one in enumerate(states):
        hidden = [name for name, lost in zip(("row", "column", "colour"), one["hidden"], strict=True) if lost]
        for guess, n in Counter(map(tuple, one["guesses"])).items():
            yield {
                "step": t, "guess": _label(guess), "truth": _label(one["truth"]), "pathways": n,
                "is": "the true state" if list(guess) == one["truth"] else "a wrong guess",
                "label": f"{_label(guess)} ×{n}", "lane": lanes[t][guess], "hidden": ", ".join(hidden) or "nothing",
            }  # fmt: skip


def _part_rows(states: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for t, one in enumerate(states):
        row, column, colour = one["truth"]
        for j, value in enumerate((str(row), str(column), _LETTERS[COLOURS[colour]])):
            yield {"step": t, "at": j + 0.5, "text": "?" if one["hidden"][j] else value}


def _on_states(states: Sequence[Mapping[str, Any]]) -> str:
    guesses = [len(set(map(tuple, one["guesses"]))) for one in states]
    return f"Different guesses at each step: {', '.join(map(str, guesses))}; one wherever nothing is hidden."


# --- the world ------------------------------------------------------------------------------------------------------


def worlds(lake: Lake | None = None) -> alt.ConcatChart:
    """Draw the dry and the flooded map: colours, water, start, goal, bridge and fog.

    Examples
    --------
    >>> [panel["title"]["text"] for panel in worlds().to_dict()["concat"]]
    ['Dry', 'Flooded']
    """
    lake = lake or Lake()
    series = [{"name": name, "colour": LAKE_PALETTE[colour], "shape": "fill"} for colour, name in _NAMES.items()]
    series.append({"name": "shore of the water (≈)", "colour": LAKE_PALETTE["water"], "shape": "line"})
    dry, flooded = lake.ground.water.sum(axis=(1, 2))
    legend = alt.LegendConfig(
        orient="top", title=None, symbolType="square", symbolSize=180, symbolStrokeWidth=0, labelFontSize=12
    )
    chart = alt.concat(
        *(_map(lake, flooded) for flooded in (False, True)),
        columns=2,
        spacing=28,
        usermeta={"columns": 2, "square": True, "series": series, "heading": _on_maps(lake)},
        description=f"Of {lake.fogged.size} cells, {dry} are water when it is dry and {flooded} when it is flooded.",
        config=alt.Config(**print_config() | {"legend": legend}),
    )
    chart.datasets = {
        "points": [{"map": name} | facts for i, name in enumerate(_MAPS) for facts in _facts(lake, bool(i))]
    }
    return chart


_MAPS = ("Dry", "Flooded")


def _on_maps(lake: Lake) -> str:
    dry, flooded = lake.ground.water.sum(axis=(1, 2))
    return f"The lake covers {dry} of {lake.fogged.size} cells when it is dry, and {flooded} when it is flooded"


def _map(lake: Lake, flooded: bool) -> alt.LayerChart:
    """The marks of the drawing, and above them a transparent copy of the cells that carries the tooltips."""
    drawing = draw_lake(lake, flooded=flooded)
    n_rows, n_columns = lake.shape
    x = alt.X("left:Q", axis=None, scale=alt.Scale(domain=[0, n_columns], nice=False))
    y = alt.Y("top:Q", axis=None, scale=alt.Scale(domain=[n_rows, 0], nice=False))
    area = (x, y, alt.X2("right"), alt.Y2("bottom"))
    colour = alt.Color("colour:N").scale(domain=list(_NAMES.values()), range=[LAKE_PALETTE[name] for name in _NAMES])
    fill, opacity = alt.Fill("fill:N", scale=None), alt.Opacity("opacity:Q", scale=None)
    ink, size = alt.Color("ink:N", scale=None), alt.Size("pixels:Q", scale=None)
    cells = _rows(_corners(cell) | facts for cell, facts in zip(drawing.cells, _facts(lake, flooded), strict=True))
    boxes = _rows(_corners(box) | {"fill": box.fill, "opacity": box.opacity} for box in drawing.boxes)
    letters = _rows(
        {"text": text, "left": column, "top": row, "pixels": round(size * _SIDE / n_columns), "ink": ink}
        for text, row, column, size, ink in (*drawing.letters, *_captions(lake, flooded))
    )
    layers = [
        cells.mark_rect().encode(*area, colour),
        boxes.mark_rect().encode(*area, fill, opacity),
        letters.mark_text(fontWeight=600).encode(x, y, alt.Text("text:N"), ink, size),
        cells.mark_rect(opacity=0).encode(*area, tooltip=["place:N", "colour:N", "water:N", "fog:N"]),
    ]
    title = alt.TitleParams(_MAPS[int(flooded)], offset=8)
    return alt.LayerChart(layer=layers, title=title, width=_SIDE, height=_SIDE)


def _rows(values: Iterable[Mapping[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(values)))


def _corners(box: Rectangle) -> dict[str, Any]:
    return {"left": box.column, "top": box.row, "right": box.column + box.width, "bottom": box.row + box.height}


def _facts(lake: Lake, flooded: bool) -> Iterator[dict[str, str]]:
    """The tooltip of each cell."""
    for row, column in np.ndindex(lake.shape):
        yield {
            "place": f"row {row}, column {column}",
            "colour": _NAMES[COLOURS[int(lake.ground.colour[int(flooded), row, column])]],
            "water": "yes" if lake.ground.water[int(flooded), row, column] else "no",
            "fog": "yes" if lake.fogged[row, column] else "no",
        }


def _captions(lake: Lake, flooded: bool) -> Iterator[Letter]:
    """Words over the map: the bridge, which is land between water above and below, and the fog."""
    water = lake.ground.water[int(flooded)]
    for row in range(1, len(water) - 1):
        columns = np.flatnonzero(water[row - 1] & ~water[row] & water[row + 1])
        if columns.size:
            yield Letter("bridge", row + 0.65, columns.mean() + 0.5, 0.35, LAKE_PALETTE["ink"])
    rows, columns = np.nonzero(lake.fogged)
    if rows.size:
        yield Letter("fog", rows.mean() + 0.65, columns.mean() + 0.5, 0.35, LAKE_PALETTE["ink"])
