"""The page of a replay: one HTML file with style, player and recordings inside, complete without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from lacuna.display import script_json
from lacuna.report.encoding import recording_data
from lacuna.report.recording import Recording
from lacuna.report.scenery import method_data, world_data
from lacuna.report.still import still_picture

SCRIPTS = ("data.js", "scene.js", "panel.js", "timeline.js", "player.js")
"""The scripts of the player; each uses only those before it."""

_WORDS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven", 8: "Eight", 9: "Nine", 10: "Ten"}

# Inline code and style only; nothing may be fetched.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)

# This runs before anything is drawn; otherwise a dark page would flash white.
_THEME = """try {
  const chosen = localStorage.getItem("lacuna-theme");
  if (["light", "dark"].includes(chosen)) document.documentElement.dataset.theme = chosen;
} catch { /* storage may be blocked */ }
document.documentElement.classList.add("scripted");"""

_SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<script>{theme}</script>
<style>
{style}</style>
</head>
<body>
{body}
{data}
<script>
{script}</script>
</body>
</html>
"""


def recording_json(recording: Recording) -> dict[str, Any]:
    """Return a recording as the player reads it.

    Examples
    --------
    >>> from lacuna import Problem, Settings
    >>> from lacuna.report import record
    >>> found = record(Problem.named("corridor", "mcar:0.4"), [Settings("mi-synthetic", K=3)], at=[0], steps=10)
    >>> list(recording_json(found))
    ['header', 'world', 'methods', 'tracks']
    """
    return {
        "header": recording.header,
        "world": world_data(recording.problem),
        "methods": [method_data(settings) for settings in recording.methods],
        "tracks": recording_data(recording),
    }


def player_page(
    title: str, body: str, data: Mapping[str, Any], *, style: Sequence[str] = (), script: Sequence[str] = ()
) -> str:
    """Return a whole page.

    Parameters
    ----------
    title
        Plain text.
    body
        HTML. `player_element` makes the element of a player.
    data
        Plain data by name: recordings from `recording_json`, and data of other scripts.
    style, script
        Additional CSS and JavaScript, appended to those of the player.

    Examples
    --------
    >>> page = player_page("Two words", "<p>Two words.</p>", {"words": ["two", "words"]})
    >>> '<script type="application/json" id="words">["two","words"]</script>' in page
    True
    """
    kept = (f'<script type="application/json" id="{name}">{script_json(item)}</script>' for name, item in data.items())
    return _SHELL.format(
        policy=_POLICY, title=escape(title), theme=_THEME, style="".join([part("player.css"), *style]), body=body,
        data="\n".join(kept), script="".join(["'use strict';\n", *map(part, SCRIPTS), *script]),
    )  # fmt: skip


def player_element(name: str, recording: Recording, *, start: tuple[int, int] | None = None, options: str = "") -> str:
    """Return the element of a player of the recording `name`, with a picture for readers without scripts.

    `start` is a stage and a step in it; `options` are further HTML attributes.

    Examples
    --------
    >>> from lacuna import Problem, Settings
    >>> from lacuna.report import record
    >>> found = record(Problem.named("corridor", "mcar:0.4"), [Settings("mi-synthetic", K=3)], at=[0], steps=10)
    >>> player_element("walk", found, start=(0, 2)).partition(">")[0]
    '<div class="replay" data-recording="walk" data-stage="0" data-step="2" '
    """
    stage, step = start or opening_step(recording)
    return (
        f'<div class="replay" data-recording="{name}" data-stage="{stage}" data-step="{step}" {options}>'
        f"{still_picture(recording, stage, step)}</div>"
    )


def replay_page(recording: Recording) -> str:
    """Return the page of one recording."""
    problem = recording.problem
    title = f"{problem.world}, {problem.missingness}"
    body = (
        f'<header class="top"><h1>{escape(_headline(recording))}</h1>'
        f"<p>{escape(_lead(recording))}</p>"
        '<button type="button" class="theme" aria-label="Light or dark"></button></header>\n'
        f"<main>{player_element('recording', recording, options='data-address')}\n{_about(recording)}</main>"
    )
    return player_page(f"Replay: {title}", body, {"recording": recording_json(recording)})


def opening_step(recording: Recording) -> tuple[int, int]:
    """Return the stage and the step that the page opens at: in the last stage, the step with most distinct guesses.

    It lies in the first half, so that there is much to play from there.
    """
    stage = len(recording.stages[0]) - 1
    pathways = recording.stages[0][stage].before.pathways[:-1]
    distinct = [len(set(row)) for row in pathways[: max(1, len(pathways) // 2)].tolist()]
    return stage, max(range(len(distinct)), key=lambda t: (distinct[t], -t))


def part(name: str) -> str:
    """Return a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _headline(recording: Recording) -> str:
    many = max(settings.pathways for settings in recording.methods)
    return f"{_WORDS.get(many, many)} guesses of where it is" if many > 1 else "What it sees, and what it believes"


def _lead(recording: Recording) -> str:
    problem, header = recording.problem, recording.header
    names = " against ".join(settings.method for settings in recording.methods)
    return f"{names} in {problem.world}, {problem.missingness} ({header['label']}), seed {recording.seed}"


def _about(recording: Recording) -> str:
    header = recording.header
    words = [
        f"Recorded from the agent by lacuna {header['lacuna']} (results version {header['results']}). This page only "
        "plays the recording.",
        "The header below reproduces the run, bit for bit: lacuna replay --check FILE.",
    ]
    text = escape(json.dumps(header, indent=1, ensure_ascii=False))
    return (
        f'<details class="about"><summary>What this is, and how to repeat it</summary><p>{escape(" ".join(words))}</p>'
        f"<pre>{text}</pre></details>"
    )
