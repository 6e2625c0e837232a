"""The chart of the last scene: what the study found, by the share of missing components."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

SERIES = {
    "qmdp-rewards": "QMDP, knows the true model", "mi-planned": "MI, planned (our default)",
    "mi-synthetic": "MI, synthetic", "last-observed": "Last observed",
}  # fmt: skip
"""What is drawn, and what it is called."""

_COLOURS = {"qmdp-rewards": "soft", "mi-planned": "guess-deep", "mi-synthetic": "guess", "last-observed": "ink"}
_DASHES = {"qmdp-rewards": "2 4", "mi-planned": "", "mi-synthetic": "", "last-observed": "7 4"}
_LEFT, _TOP, _WIDE, _HIGH, _RIGHT = 44, 34, 520, 300, 190


def extract(horizons: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the chart needs of the measured horizons (``docs/results/horizons.json``)."""
    cells = [cell for cell in horizons["cells"] if cell["world"] == "lake" and cell["missingness"].startswith("mcar:")]
    return {
        "theta": [float(cell["missingness"].partition(":")[2]) for cell in cells],
        "steps": horizons["steps"],
        "trials": cells[0]["trials"],
        "mean": {name: [cell["reward_per_episode"][name]["mean"] for cell in cells] for name in SERIES},
        "error": {name: [cell["reward_per_episode"][name]["standard_error"] for cell in cells] for name in SERIES},
    }


def results() -> dict[str, Any]:
    """Return the results that come with the package."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("results.json").read_text(encoding="utf-8"))
    return found


def chart(found: Mapping[str, Any], theta: float) -> str:
    """Draw reward per episode against the share that is missing as SVG, with a line at one share."""
    parts = [
        f'<line x1="{_LEFT}" x2="{_LEFT + _WIDE}" y1="{_y(reward):.1f}" y2="{_y(reward):.1f}" class="grid"/>'
        f'<text x="{_LEFT - 8}" y="{_y(reward) + 4:.1f}" text-anchor="end">{reward}</text>'
        for reward in range(0, 101, 20)
    ]
    parts += [_below(_x(share), 20, f"{100 * share:g} %") for share in (0, 0.2, 0.4, 0.6, 0.8, 0.95)]
    parts += [
        _below(_LEFT + _WIDE / 2, 42, "share θ of cards that are lost"),
        f'<text x="{_LEFT - 36}" y="{_TOP - 18}">reward per episode</text>',
        f'<line id="theta-line" x1="{_x(theta):.1f}" x2="{_x(theta):.1f}" y1="{_TOP}" y2="{_TOP + _HIGH}" '
        f'class="mark"/>',
    ]
    taken: list[float] = []
    for name, title in SERIES.items():
        points = list(zip(found["theta"], found["mean"][name], strict=True))
        path = "M" + "L".join(f"{_x(x):.1f} {_y(y):.1f}" for x, y in points)
        colour = f"var(--{_COLOURS[name]})"
        parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{_DASHES[name]}"/>'
        )
        parts += [f'<circle cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        end = max([_y(points[-1][1]) + 4, *(other + 18 for other in taken)])
        taken.append(end)
        label = f'style="fill:{colour}" class="whose">{escape(short(title))}'
        parts.append(f'<text x="{_LEFT + _WIDE + 8}" y="{end:.1f}" {label}</text>')
    width, height = _LEFT + _WIDE + _RIGHT, _TOP + _HIGH + 50
    return (
        f'<svg class="study" viewBox="0 0 {width} {height}" role="img" aria-label="Reward per episode against '
        f'the share of lost cards" data-left="{_LEFT}" data-wide="{_WIDE}">{"".join(parts)}</svg>'
    )


def short(title: str) -> str:
    """Return a title without its explanation.

    Examples
    --------
    >>> short("MI, planned (our default)")
    'MI, planned'
    """
    return title.partition(" (")[0].partition(", knows")[0]


def _below(x: float, down: int, words: str) -> str:
    return f'<text x="{x:.1f}" y="{_TOP + _HIGH + down}" text-anchor="middle">{words}</text>'


def _x(theta: float) -> float:
    return _LEFT + _WIDE * theta


def _y(reward: float) -> float:
    return _TOP + _HIGH * (1 - reward / 100)
