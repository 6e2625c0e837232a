"""The page of the story."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files

from lacuna import __version__
from lacuna.report import player_element, player_page, recording_json, still_picture
from lacuna_paper.story.results import SERIES, chart, results
from lacuna_paper.story.scenes import RATES, USUAL_RATE, Scene, name_of, scenes, vote

_LEAD = (
    "Parts of what an agent sees go missing: a sensor drops out, a question is skipped, a position is lost. It must "
    "act now, and learn now. The method shown here keeps several guesses at once and lets them vote. Everything below "
    "was recorded from the real agent."
)


def story_page() -> str:
    """Return the whole page; the same bytes each time."""
    told, found = scenes(), results()
    body = [
        '<header class="top"><h1>Ten guesses in the fog</h1>'
        f'<p class="lead">{_LEAD}</p><button type="button" class="theme" aria-label="Light or dark"></button></header>',
        '<main class="story">',
        *(_section(number, scene) for number, scene in enumerate(told, start=1)),
        _study(len(told) + 1),
        f"<footer><p>Made by <code>lacuna explain</code>, lacuna {__version__}. <code>lacuna replay</code> makes "
        "such a page of any run; <code>lacuna replay --check</code> repeats every run above from its header, bit for "
        "bit.</p>"
        "</footer>",
        "</main>",
    ]
    data = {name: recording_json(kept) for scene in told for name, kept in scene.recordings.items()}
    return player_page(
        "lacuna, explained: ten guesses in the fog", "\n".join(body), data | {"study": found},
        style=[_part("story.css")], script=[_part("story.js")],
    )  # fmt: skip


def picture() -> str:
    """Return one moment of the story as SVG, for documents."""
    scene = vote()
    return still_picture(next(iter(scene.recordings.values())), *scene.start, dark=True) + "\n"


def _section(number: int, scene: Scene) -> str:
    names = list(scene.recordings)
    first = name_of(USUAL_RATE) if name_of(USUAL_RATE) in names else names[0]
    chooser = _chooser("Lost:") if len(names) > 1 else ""
    player = player_element(first, scene.recordings[first], start=scene.start, options=f"data-simple {scene.options}")
    return (
        f'<section id="scene-{scene.id}" class="scene"><div class="words"><p class="count">{number}</p>'
        f"<h2>{escape(scene.title)}</h2>{scene.text}{chooser}</div>\n{player}</section>"
    )


def _chooser(label: str) -> str:
    """Buttons for the rate of loss. All choosers on the page are synchronised."""
    options = "".join(
        f'<label><input type="radio" name="theta-%s" value="{rate}"{" checked" if rate == USUAL_RATE else ""}>'
        f"<span>{100 * rate:g} %</span></label>"
        for rate in RATES
    )
    named = options.replace("%s", label.strip(":").lower().replace(" ", "-"))
    return f'<fieldset class="thetas"><legend>{escape(label)}</legend>{named}</fieldset>'


def _study(number: int) -> str:
    found = results()
    text = (
        f"<p>Three of the agents above, in {found['trials']} trials of {found['steps']:,} steps at each θ, none of "
        "them tuned. QMDP knows the true model of the world, which no learner does. A method close to it lost "
        "little.</p>"
    )
    at = found["theta"].index(USUAL_RATE)
    values = "".join(
        f'<li data-method="{name}"><b>{found["mean"][name][at]:.1f}</b> {escape(title)}</li>'
        for name, title in SERIES.items()
    )
    return (
        f'<section id="scene-chart" class="scene"><div class="words"><p class="count">{number}</p>'
        f"<h2>What it costs to lose</h2>{text}{_chooser('Your share:')}</div>\n"
        f'<figure class="chart">{chart(found, USUAL_RATE)}<figcaption><p>Reward per episode at '
        f'<output id="theta-told">{100 * USUAL_RATE:g} %</output> lost:</p><ul id="theta-values">{values}</ul>'
        "</figcaption></figure></section>"
    )


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def written(found: object) -> str:
    """Return data as the text of a file."""
    return json.dumps(found, indent=1) + "\n"
