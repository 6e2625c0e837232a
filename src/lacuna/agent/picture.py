"""What an agent has learned, to look at: the best action and its value by state, on a grid if the space has one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lacuna import display
from lacuna.kernels.space import Space

_SIDES = range(3, 33)
_MOST_STATES = 100_000

ARROWS = {
    "up": "↑", "down": "↓", "left": "←", "right": "→", "north": "↑", "south": "↓", "west": "←", "east": "→",
    "up-left": "↖", "up-right": "↗", "down-left": "↙", "down-right": "↘", "stay": "•",
}  # fmt: skip
"""Signs of actions that have these names; others are shown by number."""


def signs_of(action_names: Sequence[str], n_actions: int) -> list[str]:
    """Return a sign for every action: an arrow if its name says where it leads, else its number."""
    names = list(action_names) or [str(a) for a in range(n_actions)]
    return [ARROWS.get(name.lower().replace(" ", "-"), str(a)) for a, name in enumerate(names)]


def policy_html(space: Space, Q: NDArray[np.float64], signs: Sequence[str]) -> str:
    """Return the best action in every state with a learned value.

    On a grid, the values of the other components are averaged.
    """
    if Q.shape != (space.n_states, len(signs)) or space.n_states > _MOST_STATES:
        return ""
    learned = (Q != 0).any(axis=1)
    if not learned.any():
        return display.paragraph("Nothing was learned yet.")
    wide = [j for j, size in enumerate(space.sizes) if size in _SIDES]
    if len(wide) >= 2:
        return _grid(space, Q, learned, signs, (wide[0], wide[1]))
    rows = []
    for s in np.flatnonzero(learned):
        best = int(np.argmax(Q[s]))
        rows.append((*space.decode(int(s)), signs[best], float(Q[s, best])))
    return display.table([*space.names, "best action", "its value"], rows)


def _grid(
    space: Space, Q: NDArray[np.float64], learned: NDArray[np.bool_], signs: Sequence[str], sides: tuple[int, int]
) -> str:
    others = tuple(j for j in range(space.d) if j not in sides)
    values = np.where(learned[:, None], Q, np.nan).reshape(*space.sizes, len(signs))
    known = learned.reshape(space.sizes)
    count = known.sum(axis=others)
    mean = np.nansum(values, axis=others) / np.maximum(count, 1)[..., None]
    top = np.where(count > 0, mean.max(axis=-1), np.nan)
    low, high = float(np.nanmin(top)), float(np.nanmax(top))
    cells = [
        [
            ("", 0.0) if n == 0 else (signs[int(np.argmax(q))], (float(v) - low) / ((high - low) or 1.0))
            for q, v, n in zip(mean[i], top[i], count[i], strict=True)
        ]
        for i in range(count.shape[0])
    ]
    averaged = f", averaged over {', '.join(space.names[j] for j in others)}" if others else ""
    note = f"Best action by learned value{averaged}; the more blue, the better, from {low:.3g} to {high:.3g}."
    return display.grid(cells, across=space.names[sides[1]], down=space.names[sides[0]]) + display.paragraph(note)
