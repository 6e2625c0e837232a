"""A page of one HTML file: text, sortable tables and interactive charts, complete without a network.

Everything the page needs is inside it: style, code and data. How to make one:

1. Build pieces of HTML with `Markup` and the functions here: `numbers`, `details`, `Figure.html`; and tables with
   `lacuna.report.html_tables`. Plain strings are escaped wherever they enter, so text from elsewhere is safe.
2. Put them into `Section`s, and these into a `Page`.
3. Write ``page.html()`` to a file.

A chart is a Vega-Lite specification as plain data: a chart, a layer, or a concatenation of these. The page sets widths
to what there is room for, and lays a concatenation out in as many columns as fit. These keys of the specification's
``usermeta`` tell it more, all optional:

``columns``
    How many panels side by side at most (all of them unless given).
``square``
    True if panels are as high as wide.
``left``
    Pixels for the labels left of a panel (40 unless given; an axis with a title needs about 58).
``series``
    What the chart shows, as a list of ``{"name", "colour", "dash", "shape"}``: becomes a legend. If the chart has a
    parameter ``hidden``, a list of names, and filters by it, its series can be switched off there.
``heading``
    The title of the figure while this variant is shown.

A chart may also have the parameters ``intervals``, ``trials`` and ``closer``, true or false, and ``lowest``, where an
axis begins, with a second value for it in ``usermeta`` as ``close_up``: these become buttons. What readers choose holds
for all charts, and stands in the address of the page, so a link to it shows the same.

The rows of a chart's datasets ``points`` and ``trials`` can be downloaded as CSV, and a chart without files as SVG.

Screen readers are given the title, the caption and the specification's ``description``: say there what is to be seen.

A chart may come in several variants, one for each combination of the page's `Switch`es; `ANY` stands for all options of
one. Whatever carries the attribute `when` gives is shown only under that combination.

Examples
--------
>>> spec = {"mark": "point", "data": {"values": [{"x": 1}]}, "encoding": {"x": {"field": "x", "type": "quantitative"}}}
>>> figure = Figure("dots", "Dots & more", Markup("One <em>dot</em>."), {(): spec})
>>> page = Page("A title", "What it is about.", [Section("one", "First", figure.html())])
>>> "Dots &amp; more" in page.html()
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

import vl_convert
from markupsafe import Markup

from lacuna.display import script_json
from lacuna.report.html_tables import Text, joined

Spec = dict[str, Any]

ANY = "*"
"""Stands for every option of a switch."""

_SEPARATOR = "\n"
"""Between the options of a variant; page.js knows it too. A name may hold any other sign."""

_BUTTONS = 4
"""A switch with more options is a list to choose from."""

_SKELETON = Markup("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<script>{theme}</script>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1>{title}</h1>
<div class="lead">{lead}</div>
</header>
<nav aria-label="Sections"><div class="bar">
<ul>{links}</ul>
<button type="button" id="theme" aria-label="Light or dark"></button>
</div></nav>
<main id="main" tabindex="-1">
{switches}
{sections}
</main>
<footer>{footer}</footer>
<noscript><p class="note">The charts need JavaScript; the tables do without.</p></noscript>
<script type="application/json" id="settings">{settings}</script>
<script type="module">{library}</script>
<script type="module">{script}</script>
</body>
</html>
""")

# Inline code and style only; nothing may be fetched, whatever a chart asks for.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)


# Before anything is drawn, or a page chosen to be dark would flash.
_THEME = Markup("""try {
  const chosen = localStorage.getItem("lacuna-theme");
  if (["light", "dark"].includes(chosen)) document.documentElement.dataset.theme = chosen;
} catch { /* pages may keep nothing here */ }""")


@dataclass(frozen=True)
class Switch:
    """A choice for the whole page: its name, and its options in order, the first one on at the start."""

    name: str
    options: Sequence[str]


@dataclass(frozen=True)
class Section:
    """A part of the page that the navigation leads to, there under its title or a `short` name."""

    id: str
    title: str
    body: Markup
    short: str = ""


@dataclass(frozen=True)
class Page:
    """The whole page.

    Parameters
    ----------
    title, lead
        What it is, and what it says, in plain words.
    sections
        In their order.
    switches
        Choices for the whole page; those with a single option are not shown.
    dark
        The colour that stands for a colour of the charts on a dark page, both as ``#rrggbb``.
    footer
        The last line.
    """

    title: str
    lead: Text
    sections: Sequence[Section]
    switches: Sequence[Switch] = ()
    dark: Mapping[str, str] = field(default_factory=dict)
    footer: Text = ""

    def html(self) -> str:
        """The page as text; write it in UTF-8."""
        settings = {"dark": dict(self.dark), "switches": [switch.name for switch in self.switches]}
        return str(
            _SKELETON.format(
                policy=_POLICY,
                title=self.title,
                theme=_THEME,
                style=_part("page.css"),
                lead=self.lead,
                links=joined(_link(section) for section in self.sections),
                switches=_switches(self.switches),
                sections=joined(_section(section) for section in self.sections),
                footer=self.footer,
                settings=as_json(settings),
                library=_library(),
                script=joined(map(_part, ("page.js", "tooltip.js", "downloads.js", "address.js"))),
            )
        )


@dataclass(frozen=True)
class Figure:
    """A chart with its title, its caption, and links to its files.

    Parameters
    ----------
    id
        A word; the figure's place is ``#figure-ID``.
    title, caption
        The caption may be `Markup`.
    variants
        Specifications by the options of the page's switches, in the order of the switches, or `ANY`; under ``()`` for
        what does not depend on switches.
    files
        Links for each variant: what a link says, and where it leads.
    kicker
        What the figure is about, above a title that says what it shows.
    """

    id: str
    title: str
    caption: Text
    variants: Mapping[tuple[str, ...], Spec]
    files: Mapping[tuple[str, ...], Mapping[str, str]] = field(default_factory=dict)
    kicker: str = ""

    def html(self, more: Text = "") -> Markup:
        """The figure as HTML, `more` below its caption; the chart is drawn when it is about to be seen."""
        data = {_SEPARATOR.join(options): _compact(spec) for options, spec in self.variants.items()}
        return Markup("""
<figure class="chart" id="figure-{id}" aria-labelledby="title-{id}">
{kicker}<h3 id="title-{id}">{title}</h3>
<div class="legend" role="group" aria-label="Shown in the charts"></div>
<p class="note" hidden></p>
<div role="img" aria-labelledby="title-{id}" aria-describedby="caption-{id} finding-{id}">
<div class="drawing" aria-hidden="true"></div></div>
<p class="finding" id="finding-{id}">{finding}</p>
<figcaption><p><span id="caption-{id}">{caption}</span> {files} <span class="downloads"></span></p>{more}</figcaption>
<script type="application/json">{data}</script>
</figure>
""").format(
            id=self.id,
            kicker=Markup('<p class="kicker">{}</p>\n').format(self.kicker) if self.kicker else "",
            title=self.title,
            finding=next(iter(self.variants.values()), {}).get("description", ""),
            caption=self.caption,
            files=joined(_files(options, links) for options, links in self.files.items()),
            more=more,
            data=as_json(data),
        )


def details(summary: Text, body: Text) -> Markup:
    """Make a line that opens to show more.

    Examples
    --------
    >>> print(details("More", "a < b"))
    <details><summary>More</summary><div>a &lt; b</div></details>
    """
    return Markup("<details><summary>{}</summary><div>{}</div></details>").format(summary, body)


def numbers(items: Iterable[tuple[Text, Text]]) -> Markup:
    """Make a row of large numbers, each with what it says.

    Examples
    --------
    >>> print(numbers([("20", "trials")]))
    <dl class="numbers"><div><dt>trials</dt><dd>20</dd></div></dl>
    """
    return Markup('<dl class="numbers">{}</dl>').format(
        joined(Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(says, number) for number, says in items)
    )


def facts(items: Iterable[tuple[Text, Text]]) -> Markup:
    """Make a list of names with what they stand for.

    Examples
    --------
    >>> print(facts([("Seeds", "20")]))
    <dl class="facts"><dt>Seeds</dt><dd>20</dd></dl>
    """
    return Markup('<dl class="facts">{}</dl>').format(
        joined(Markup("<dt>{}</dt><dd>{}</dd>").format(name, value) for name, value in items)
    )


def paragraphs(*texts: Text) -> Markup:
    """Make paragraphs.

    Examples
    --------
    >>> print(paragraphs("One thought.", "Another."))
    <p>One thought.</p>
    <p>Another.</p>
    """
    return joined(Markup("<p>{}</p>").format(text) for text in texts)


def when(*options: str) -> Markup:
    """Return the attribute of an element that is shown only under these options of the switches, in their order.

    Examples
    --------
    >>> print(when("held-out"))
    data-when="held-out"
    """
    return Markup('data-when="{}"').format(_SEPARATOR.join(options))


def as_json(data: Any) -> Markup:
    """Return data as JSON for a script element; nothing in it can end the element."""
    return Markup(script_json(data))  # noqa: S704  holds no "<"


def _files(options: tuple[str, ...], links: Mapping[str, str]) -> Markup:
    parts = (Markup('<a href="{}" download>{}</a>').format(address, name) for name, address in links.items())
    return Markup('<span class="files" {}>{}</span>').format(when(*options) if options else "", joined(parts))


def _link(section: Section) -> Markup:
    return Markup('<li><a href="#{}">{}</a></li>').format(section.id, section.short or section.title)


def _section(section: Section) -> Markup:
    return Markup(
        '<section id="{id}" aria-labelledby="of-{id}"><h2 id="of-{id}">{title}</h2>\n{body}</section>'
    ).format(id=section.id, title=section.title, body=section.body)


def _switches(switches: Sequence[Switch]) -> Markup:
    groups = joined(_switch(switch) for switch in switches)
    hidden = Markup("") if any(len(switch.options) > 1 for switch in switches) else Markup(" hidden")
    return Markup('<form class="switches"{}>{}</form>').format(hidden, groups) if switches else Markup("")


def _switch(switch: Switch) -> Markup:
    name = switch.name.replace(" ", "-")
    if len(switch.options) > _BUTTONS:
        choices = joined(Markup("<option>{}</option>").format(option) for option in switch.options)
        return Markup('<label data-switch="{}">{} <select name="{}">{}</select></label>').format(
            name, switch.name, name, choices
        )
    options = joined(
        Markup('<label><input type="radio" name="{}" value="{}"{}><span>{}</span></label>').format(
            name, option, Markup(" checked") if option == switch.options[0] else "", option
        )
        for option in switch.options
    )
    hidden = Markup(" hidden") if len(switch.options) < 2 else ""
    return Markup('<fieldset data-switch="{}"{}><legend>{}</legend>{}</fieldset>').format(
        name, hidden, switch.name, options
    )


def _compact(spec: Spec) -> Spec:
    """The specification with its rows as columns, repeated values by their number in a list: a fraction of the size."""
    rest = {name: value for name, value in spec.items() if name not in {"datasets", "$schema"}}
    return rest | {"datasets": {name: _columns(rows) for name, rows in spec.get("datasets", {}).items()}}


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        levels = list(dict.fromkeys(values))
        # Few values stand over and over again: each once, and which one it is, or for how many rows in turn.
        if all(isinstance(value, str) for value in values) or 8 * len(levels) < len(values):
            place = {level: i for i, level in enumerate(levels)}
            runs = [[place[level], len(list(same))] for level, same in groupby(values)]
            short = {"runs": runs} if 3 * len(runs) < len(values) else {"of": [place[value] for value in values]}
            columns[name] = {"levels": levels} | short
        else:
            columns[name] = values
    return columns


def _part(name: str) -> Markup:
    return Markup(files(__package__).joinpath(name).read_text(encoding="utf-8"))  # noqa: S704  our own files


@cache
def _library() -> Markup:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return Markup(code.replace("</script", "<\\/script").replace("<!--", "<\\!--"))  # noqa: S704
