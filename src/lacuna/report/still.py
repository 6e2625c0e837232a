"""One moment as a picture that needs no script: SVG, for pages without JavaScript and for documents."""

from __future__ import annotations

from collections import Counter
from html import escape
from math import cos, hypot, pi, sin

from lacuna.agent.picture import signs_of
from lacuna.report.recording import Recording
from lacuna.report.scenery import WAYS, haze, method_data
from lacuna.worlds.mdp.drawing import Cell, drawing_of

_SIDE, _WIDE, _GAP = 48, 300, 28

_STYLE = """
.st text { font-family: system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
.st .ink { fill: #1d1d1b; } .st .soft { fill: #5d5b55; } .st .line { stroke: #dcd9cf; } .st .edge { stroke: #1d1d1b; }
.st .page { fill: #fdfcf9; } .st .back { fill: #1d1d1b; } .st .on { fill: #fdfcf9; } .st .empty { fill: #f3f1ea; }
.st .deep { fill: #a34a00; stroke: #a34a00; }
"""
_DARK = """
@media (prefers-color-scheme: dark) {
.st .ink { fill: #e9e7e1; } .st .soft { fill: #a9a79f; } .st .line { stroke: #3a404a; } .st .edge { stroke: #e9e7e1; }
.st .page { fill: #16181c; } .st .back { fill: #e9e7e1; } .st .on { fill: #16181c; } .st .empty { fill: #23272e; }
.st .deep { fill: #ffc27a; stroke: #ffc27a; }
}
"""


def still_picture(recording: Recording, stage: int, step: int, *, dark: bool = False) -> str:
    """Return the moment before a step of a stage of the first method as SVG; `dark` adapts it to dark pages.

    Examples
    --------
    >>> from lacuna import Problem, Settings
    >>> from lacuna.report import record
    >>> found = record(Problem.named("corridor", "mcar:0.4"), [Settings("mi-synthetic", K=3)], at=[0], steps=10)
    >>> still_picture(found, stage=0, step=2).startswith("<svg")
    True
    """
    kept = recording.stages[0][stage]
    drawing, mdp = drawing_of(recording.problem.mdp), recording.problem.mdp
    parts: list[str] = []
    rows, columns = drawing.shape
    if drawing.column:
        parts += _map(recording, stage, step)
    left = columns * _SIDE + (_GAP if drawing.column else 0)
    parts += _cards(recording, stage, step, left)
    parts += _bars(recording, stage, step, left)
    height = max(rows * _SIDE, 150 + 24 * min(mdp.n_actions, 12)) + 60
    told, when = _told(recording, stage, step), f"{recording.methods[0].method}, step {kept.at + step:,}"
    parts += [
        _text(told, 0, height - 32, 14, "", "soft", "start"),
        _text(when, 0, height - 12, 12, "", "soft", "start"),
    ]
    title = escape(f"{told} {when}.")
    width = left + _WIDE
    return (
        f'<svg class="st" xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {width + 16} {height + 8}" role="img" '
        f'width="100%" aria-label="{title}"><style>{_STYLE}{_DARK if dark else ""}</style>'
        f'<rect class="page" x="-8" y="-8" width="{width + 16}" height="{height + 8}"/>{"".join(parts)}</svg>'
    )


def _told(recording: Recording, stage: int, step: int) -> str:
    kept, space = recording.stages[0][stage], recording.problem.space
    lost = [name for name, value in zip(space.names, kept.before.seen[step], strict=True) if value < 0]
    if not lost:
        return "Everything is seen."
    kind = method_data(recording.methods[0])
    state = int(recording.problem.mdp.shows[kept.before.state[step]])
    right = int((kept.before.pathways[step] == state).sum())
    told = f" {right} of {kind['K']} guesses {'is' if right == 1 else 'are'} right." if kind["guesses"] else ""
    return f"Hidden: {' and '.join(filter(None, [', '.join(lost[:-1]), lost[-1]]))}.{told}"


def _place(recording: Recording, shown: int) -> tuple[int, int]:
    drawing, space = drawing_of(recording.problem.mdp), recording.problem.space
    values = space.decode(shown)
    return (values[space.component(drawing.row)] if drawing.row else 0), values[space.component(drawing.column)]


def _map(recording: Recording, stage: int, step: int) -> list[str]:
    mdp, kept = recording.problem.mdp, recording.stages[0][stage]
    drawing, state = drawing_of(mdp), int(kept.before.state[step])
    number = 0 if drawing.scene is None else int(drawing.scene[state])
    scene, parts, marks = drawing.scenes[number], [], []
    much = haze(mdp, recording.problem.mechanism)
    fog = {_place(recording, int(mdp.shows[s])): float(much[s]) for s in range(mdp.n_states) if much[s] > 0}
    for row, line in enumerate(scene.rows):
        for column, sign in enumerate(line):
            ground, x, y = drawing.grounds[sign], column * _SIDE, row * _SIDE
            box = f'x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}"'
            parts.append(f'<rect {box} fill="{ground.light}" class="line"/>')
            if (row, column) in fog:
                parts.append(f'<rect {box} fill="#fff" fill-opacity="{min(0.8, 0.3 + fog[row, column]):.2f}"/>')
            if ground.sign:
                parts.append(_text(ground.sign, x + 12, y + 17, 16, "#3d6a94"))
            if (row, column) in scene.marks:
                fill = "#1d1d1b" if sum(bytes.fromhex(ground.light[1:])) > 380 else "#ffffff"
                marks.append(_text(scene.marks[row, column], x + 44, y + 13, 12, fill, anchor="end"))
    parts += [_wall(*pair) for pair in drawing.walls]
    parts.append(_open(recording, stage, step))
    return parts + _ghosts(recording, stage, step) + _truth(recording, stage, step) + marks


def _wall(one: Cell, other: Cell) -> str:
    """A wall on the upper or the left side of the other cell."""
    y, x = other[0] * _SIDE, other[1] * _SIDE
    x2, y2 = (x, y + _SIDE) if one[0] == other[0] else (x + _SIDE, y)
    return f'<line x1="{x}" y1="{y}" x2="{x2}" y2="{y2}" stroke="#1d1d1b" stroke-width="4" stroke-linecap="round"/>'


def _open(recording: Recording, stage: int, step: int) -> str:
    """A dashed line around the cells that agree with what is seen."""
    drawing, space = drawing_of(recording.problem.mdp), recording.problem.space
    kept, (rows, columns) = recording.stages[0][stage], drawing.shape
    row, column = _place(recording, int(recording.problem.mdp.shows[kept.before.state[step]]))
    seen = kept.before.seen[step]
    high = wide = 1
    if drawing.row and seen[space.component(drawing.row)] < 0:
        row, high = 0, rows
    if seen[space.component(drawing.column)] < 0:
        column, wide = 0, columns
    box = f'x="{column * _SIDE + 2}" y="{row * _SIDE + 2}" width="{wide * _SIDE - 4}" height="{high * _SIDE - 4}"'
    return f'<rect {box} fill="none" stroke="#1d1d1b" stroke-width="2" stroke-dasharray="6 4"/>'


def _ghosts(recording: Recording, stage: int, step: int) -> list[str]:
    if not method_data(recording.methods[0])["guesses"]:
        return []
    pathways = [_place(recording, int(s)) for s in recording.stages[0][stage].before.pathways[step]]
    parts, K = [], len(pathways)
    for k, (row, column) in enumerate(pathways):
        spread, turn = (0.11 * _SIDE if K > 1 else 0.0), 2 * pi * k / K - pi / 2
        x, y = (column + 0.5) * _SIDE + spread * cos(turn), (row + 0.5) * _SIDE + spread * sin(turn)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.25 * _SIDE:.1f}" fill="#e07b00" fill-opacity=".3" '
            f'stroke="#a34a00" stroke-opacity=".75"/>'
        )
    count = Counter(pathways)
    if len(count) > 1:
        parts += [_text(str(n), c * _SIDE + 9, r * _SIDE + 42, 12, "#a34a00") for (r, c), n in count.items()]
    return parts


def _truth(recording: Recording, stage: int, step: int) -> list[str]:
    mdp, kept = recording.problem.mdp, recording.stages[0][stage]
    row, column = _place(recording, int(mdp.shows[kept.before.state[step]]))
    x, y = (column + 0.5) * _SIDE, (row + 0.5) * _SIDE
    parts = []
    sign = signs_of(mdp.action_names, mdp.n_actions)[int(kept.action[step])] if step < kept.steps else ""
    if sign in WAYS and WAYS[sign] != (0, 0):
        down, across = WAYS[sign]
        length = hypot(down, across)
        dx, dy = across / length, down / length
        ex, ey = x + dx * 38, y + dy * 38
        path = (
            f"M{x:.0f} {y:.0f}L{ex:.1f} {ey:.1f}M{ex - 9 * dx - 7 * dy:.1f} {ey - 9 * dy + 7 * dx:.1f}"
            f"L{ex:.1f} {ey:.1f}L{ex - 9 * dx + 7 * dy:.1f} {ey - 9 * dy - 7 * dx:.1f}"
        )
        for width, ink in ((7, "#fff"), (4, "#141414")):
            parts.append(
                f'<path d="{path}" fill="none" stroke="{ink}" stroke-width="{width}" stroke-linecap="round" '
                f'stroke-linejoin="round"/>'
            )
    parts.append(f'<circle cx="{x}" cy="{y}" r="9" fill="#fff"/><circle cx="{x}" cy="{y}" r="7" fill="#141414"/>')
    return parts


def _cards(recording: Recording, stage: int, step: int, left: int) -> list[str]:
    kept, space = recording.stages[0][stage], recording.problem.space
    labels = drawing_of(recording.problem.mdp).labels
    parts, wide = [_text("What it sees", left, 14, 13, "", "soft", "start")], min(96, (_WIDE - 8) // space.d)
    size = max(7, min(12, int(1.6 * (wide - 8) / max(1, *map(len, space.names)))))
    for j, (name, value) in enumerate(zip(space.names, kept.before.seen[step].tolist(), strict=True)):
        x = left + j * wide
        word = "?" if value < 0 else labels[name][value] if name in labels else str(value)
        look = "back" if value < 0 else "empty"
        parts += [
            _text(name, x, 38, size, "", "soft", "start"),
            f'<rect x="{x}" y="46" width="{wide - 8}" height="44" rx="7" class="line {look}"/>',
            _text(word, x + wide / 2 - 4, 75, 20 if len(word) < 4 else 14, "", "on" if value < 0 else "ink"),
        ]
    return parts


def _bars(recording: Recording, stage: int, step: int, left: int) -> list[str]:
    mdp, kept = recording.problem.mdp, recording.stages[0][stage]
    if step >= kept.steps:
        return []
    parts = [_text("What it does", left, 126, 13, "", "soft", "start")]
    signs = signs_of(mdp.action_names, mdp.n_actions)
    for a in range(min(mdp.n_actions, 12)):
        y, p = 150 + 24 * a, float(kept.probability[step, a])
        sign = f"{signs[a]} " if signs[a] in WAYS else ""
        parts += [
            _text(f"{sign}{mdp.action_names[a]}", left, y, 13, "", "ink" if p > 0 else "soft", "start"),
            f'<rect x="{left + 104}" y="{y - 10}" width="140" height="11" rx="3" class="empty"/>',
        ]
        if p > 0:
            parts += [
                f'<rect x="{left + 104}" y="{y - 10}" width="{140 * p:.1f}" height="11" rx="3" fill="#e07b00"/>',
                _text(f"{100 * p:.0f} %", left + 292, y, 13, "", "ink", "end"),
            ]
        if a == int(kept.action[step]):
            parts.append(
                f'<rect x="{left - 6}" y="{y - 17}" width="{_WIDE}" height="24" rx="5" fill="none" class="edge"/>'
            )
    return parts


def _text(word: str, x: float, y: float, size: int, fill: str, kind: str = "", anchor: str = "middle") -> str:
    look = f'fill="{fill}"' if fill else f'class="{kind}"'
    weight = ' font-weight="600"' if fill or kind in {"ink", "on"} else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" {look}{weight}>{escape(word)}</text>'
