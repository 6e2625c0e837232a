"""The picture of the idea: pathways that split where components are missing and join where all are seen."""

from __future__ import annotations

from itertools import pairwise

SEEN = ("111", "111", "110", "010", "011", "111", "111", "101", "111")
"""For each step, which of the three components are seen."""

OFFSETS = ((0, 0, -20, -52, -30, 0, 0, -18, 0), (0, 0, -8, -24, -12, 0, 0, -18, 0), (0, 0, 8, 4, 14, 0, 0, 6, 0),
           (0, 0, 8, 30, 14, 0, 0, 20, 0), (0, 0, 20, 54, 34, 0, 0, 6, 0))  # fmt: skip
"""Where each of five pathways is, beside the middle."""

# In the middle between black and white, so that both a light and a dark page can be behind.
GREY, BLUE, ORANGE = "#808080", "#2f8fc9", "#d97b1f"
LEFT, STEP, TOP, MIDDLE, WIDTH, HEIGHT = 120, 76, 34, 185, 800, 300
NAMES = ("row", "column", "colour")


def idea_picture() -> str:
    """Give the picture as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="14" fill="{GREY}">',
        "<title>Five pathways split while components are missing, and join when all are seen</title>",
    ]
    for j, name in enumerate(NAMES):
        parts.append(f'<text x="{LEFT - 26}" y="{TOP + 15 + 22 * j}" text-anchor="end">{name}</text>')
    for t, seen in enumerate(SEEN):
        parts += [square(LEFT + t * STEP, TOP + 22 * j, seen=flag == "1") for j, flag in enumerate(seen)]
    parts.append(f'<text x="{LEFT - 26}" y="{MIDDLE + 5}" text-anchor="end">5 pathways</text>')
    parts += [
        f'<path d="{curve(offsets)}" fill="none" stroke="{BLUE}" stroke-width="2" stroke-opacity=".75"/>'
        for offsets in OFFSETS
    ]
    for t, seen in enumerate(SEEN):
        colour = BLUE if "0" not in seen else ORANGE
        parts += [
            f'<circle cx="{LEFT + t * STEP}" cy="{MIDDLE + y}" r="4.5" fill="{colour}"/>'
            for y in sorted({offsets[t] for offsets in OFFSETS})
        ]
    for at, words in ((0.5, "all seen: one state"), (3, "missing: several guesses"), (5.5, "seen again: they join")):
        parts.append(f'<text x="{LEFT + at * STEP:g}" y="{HEIGHT - 34}" text-anchor="middle">{words}</text>')
    parts.append(f'<text x="{LEFT + 8 * STEP}" y="{HEIGHT - 8}" text-anchor="end">time →</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def square(x: float, y: float, *, seen: bool) -> str:
    """Give a component at one step: filled if it was seen, a question mark if not."""
    if seen:
        return f'<rect x="{x - 9}" y="{y}" width="18" height="18" rx="3" fill="{BLUE}"/>'
    return (
        f'<rect x="{x - 9}" y="{y}" width="18" height="18" rx="3" fill="none" stroke="{ORANGE}" '
        f'stroke-dasharray="3 2"/>'
        f'<text x="{x}" y="{y + 14}" text-anchor="middle" fill="{ORANGE}">?</text>'
    )


def curve(offsets: tuple[int, ...]) -> str:
    """Give the path of one pathway, smooth between steps."""
    points = [(LEFT + t * STEP, MIDDLE + y) for t, y in enumerate(offsets)]
    pieces = [f"M{points[0][0]},{points[0][1]}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (x0 + x1) / 2
        pieces.append(f"C{middle:g},{y0} {middle:g},{y1} {x1},{y1}")
    return "".join(pieces)
