"""The world as plain data for a page: components, actions, map, and a haze where more goes missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.methods import NO_GUESS, method_named
from lacuna.agent.picture import ARROWS
from lacuna.agent.settings import Settings
from lacuna.kernels.space import Space
from lacuna.missingness.mechanism import Mechanism, RateBy
from lacuna.report.encoding import pack
from lacuna.run.problems import Problem
from lacuna.worlds.mdp.drawing import Drawing, drawing_of
from lacuna.worlds.mdp.tabular import TabularMDP

MOST_STATES = 200_000
"""Most true states of a world that can be watched: the page holds the components of each."""

WAYS = {
    "↑": (-1, 0), "↓": (1, 0), "←": (0, -1), "→": (0, 1), "↖": (-1, -1), "↗": (-1, 1), "↙": (1, -1), "↘": (1, 1),
    "•": (0, 0),
}  # fmt: skip


def world_data(problem: Problem) -> dict[str, Any]:
    """Return everything about a world that a page needs to draw it."""
    mdp = problem.mdp
    if mdp.n_states > MOST_STATES:
        raise ValueError(f"{problem.world} has {mdp.n_states:,} true states; a replay can show at most {MOST_STATES:,}")
    drawing = drawing_of(mdp)
    scene = np.zeros(mdp.n_states, dtype=np.int64) if drawing.scene is None else np.asarray(drawing.scene)
    return {
        "name": mdp.name,
        "components": _components(mdp.space, drawing),
        "actions": [_action(name) for name in mdp.action_names],
        "shows": pack(mdp.shows),
        "scene": pack(scene),
        "bad": pack(mdp.bad.astype(np.int64)),
        "haze": pack(np.rint(255 * haze(mdp, problem.mechanism)).astype(np.int64)),
        "map": _map(mdp, drawing),
    }


def method_data(settings: Settings) -> dict[str, Any]:
    """Return what a page says about a method."""
    method = method_named(settings.method)
    chosen = {name: value for name, value in settings.unusual().items() if value is not None}
    title = method.title if not method.multiple or settings.pathways > 1 else f"{method.title}, one pathway"
    # Without imputation the rows of Q are not guesses of the state.
    guesses = method.impute not in NO_GUESS
    return {"name": method.name, "title": title, "K": settings.pathways, "guesses": guesses, "settings": chosen,
            "plans": method.plans}  # fmt: skip


def haze(mdp: TabularMDP, mechanism: Mechanism) -> NDArray[np.float64]:
    """Return the mean rate of each true state minus the lowest such rate, from 0 to 1.

    Examples
    --------
    >>> found = Problem.named("lake", "mfog:0.5,0")
    >>> sorted(set(haze(found.mdp, found.mechanism).tolist()))
    [0.0, 0.5]
    """
    if mechanism.by == RateBy.CONSTANT:
        return np.zeros(mdp.n_states)
    mean = mechanism.rates.mean(axis=(0, 1, 3))
    mean = mean if mechanism.by == RateBy.TRUE else mean[mdp.shows]
    found: NDArray[np.float64] = mean - mean.min()
    return found


def _components(space: Space, drawing: Drawing) -> list[dict[str, Any]]:
    found = []
    for name, size in zip(space.names, space.sizes, strict=True):
        words = drawing.labels.get(name)
        found.append({"name": name, "size": size} | ({"labels": list(words)} if words else {}))
    return found


def _action(name: str) -> dict[str, Any]:
    sign = ARROWS.get(name.lower().replace(" ", "-"), "")
    return {"name": name} | ({"sign": sign, "way": list(WAYS[sign])} if sign else {})


def _map(mdp: TabularMDP, drawing: Drawing) -> dict[str, Any] | None:
    if not drawing.column:
        return None
    rows, columns = drawing.shape
    return {
        "rows": rows,
        "columns": columns,
        "row": mdp.space.component(drawing.row) if drawing.row else -1,
        "column": mdp.space.component(drawing.column),
        "grounds": {sign: ground._asdict() for sign, ground in drawing.grounds.items()},
        "scenes": [
            {
                "name": scene.name,
                "ground": "".join(scene.rows),
                "marks": [[row * columns + column, text] for (row, column), text in scene.marks.items()],
            }
            for scene in drawing.scenes
        ],
        "walls": [[a[0] * columns + a[1], b[0] * columns + b[1]] for a, b in drawing.walls],
    }
