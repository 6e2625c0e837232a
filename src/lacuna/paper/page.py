"""The page of the paper: a headline, every claim with its verdict, every figure, and how it was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from lacuna.files import write_whole
from lacuna.paper.beyond import beyond_section, in_short
from lacuna.paper.charts import BEYOND, FIGURES, FigureOfPaper, reward_against_theta
from lacuna.paper.claims import CLAIMS, Finding
from lacuna.paper.claims_table import Way, claims_table, in_words, ways_of
from lacuna.paper.comparison import Standings
from lacuna.paper.evidence import DRAWS, READINGS, SELECTIONS, Draw, Shown
from lacuna.paper.headline import headline
from lacuna.paper.points import Source
from lacuna.paper.world_chart import worlds
from lacuna.quantities import counted, duration
from lacuna.report.files import FORMATS, spec_of, write_files
from lacuna.report.page import Figure, Page, Section, Switch, details, facts, paragraphs, when
from lacuna.report.page import table as sortable
from lacuna.report.styles import DARK, name_of

_PAPER = "Missing Data Multiple Imputation for Tabular Q-Learning in Online RL"
_THEORY = ("theory/index.html", "theory.html", "../theory/index.html")
_FACTS = {
    "lacuna": "lacuna", "python": "Python", "machine": "Machine", "workers": "Runs at a time", "finished": "Finished",
}  # fmt: skip


def write_paper_page(
    folder: Path, table: pl.DataFrame, findings: Sequence[Finding], standings: Standings, about: Mapping[str, Any],
    draws: Sequence[Draw] = DRAWS,
) -> Path:  # fmt: skip
    """Write ``index.html`` and the figures as files into a folder; give the path of the page.

    Parameters
    ----------
    folder
        Where to write; ``claims.json`` and ``results.parquet`` are expected beside the page, which links to them.
    table
        A row per run, with curves.
    findings
        What `lacuna.paper.claims.judge` said, for each reading and selection to be shown.
    standings
        Where our default stands, by the way of choosing settings.
    about
        What was done, as plain data. Of these keys, those that are there are shown: ``command``, ``lacuna``,
        ``python``, ``machine``, ``workers``, ``finished``, ``seconds``, ``core_seconds``, ``steps``,
        ``tuning_trials``, ``fresh_trials``, ``studies`` (a list of ``{"name", "runs"}``).
    draws
        The trials on which settings were chosen and confirmed.
    """
    ways = _ways(findings)
    sources = {in_words((reading, selection)): Source(table, reading, selection, draws) for reading, selection in ways}
    figures = _figures(folder, sources)
    _picture(folder, list(sources.values()))
    page = Page(
        "The paper, reproduced",
        _lead(),
        [
            Section("result", "In short", headline(sources, findings, about, table) + in_short(standings, ways)),
            Section("claims", "Claims", _claims(findings, figures)),
            Section("figures", "Figures", _all_figures(figures, findings)),
            Section("beyond", "Beyond", beyond_section(standings, ways, _beyond(folder, sources))),
            Section("run", "The run", _run(folder, table, sources, about)),
        ],
        [Switch("Reading", _options(sources, 0)), Switch("Settings chosen", _options(sources, 1))],
        DARK,
        Markup("Made by lacuna{}. This page needs no network.").format(f" {about.get('lacuna', '')}".rstrip()),
    )
    path = folder / "index.html"
    write_whole(path, page.html().encode())
    return path


def _ways(findings: Sequence[Finding]) -> list[Any]:
    """The ways that were judged; those of the page's first options are there even if nothing was."""
    return [way for way in _all_ways() if way in ways_of(findings)] or [_all_ways()[0]]


def _all_ways() -> list[Way]:
    return [(reading, selection) for reading in READINGS for selection in SELECTIONS]


def _options(sources: Iterable[tuple[str, ...]], place: int) -> list[str]:
    return list(dict.fromkeys(options[place] for options in sources))


def _lead() -> Markup:
    return paragraphs(
        Markup(
            "<em>{}</em> (Chasalow, Wu and Murphy) asks how an agent should learn while parts of what it sees go "
            "missing, and answers: guess several times. Here its study is run again, its figures drawn from the new "
            "runs, and each of its claims put to a test that could have failed."
        ).format(_PAPER)
    )


# --- claims and figures -------------------------------------------------------------------------------------------


def _claims(findings: Sequence[Finding], figures: Sequence[Figure]) -> Markup:
    intro = paragraphs(
        "What would decide each claim was fixed in the code beforehand, with its reason. A claim holds if every part "
        "of it does: the whole 95 % interval of the effect, over trials paired by their random numbers, has to lie "
        "where the claim puts it. Held out, the interval is over the means of independent draws of tuning and fresh "
        "trials. The effect shown is that of the part that decides. Open a row for its definition and all its parts; "
        "click on a column to sort.",
    )
    return intro + claims_table(findings, {figure.id: figure.title for figure in figures})


def _figures(folder: Path, sources: Mapping[tuple[str, ...], Source]) -> list[Figure]:
    world = spec_of(worlds())
    write_files(world, folder / "figures", "worlds")
    caption = (
        "Lake World, dry and flooded: 8 × 8 cells, from the start S to the goal G. The agent sees row, column and "
        "colour; red and orange warn of water here or to the right. The flood comes and goes; the bridge is never "
        "under water. In the fog more goes missing under MFOG. The paper's figure 2."
    )
    figures = [Figure("worlds", "The world", caption, {(): world}, {(): _links("worlds")})]
    drawn = [_drawn(figure, folder, sources) for figure in FIGURES]
    return figures + [figure for figure in drawn if figure.variants]


def _drawn(figure: FigureOfPaper, folder: Path, sources: Mapping[tuple[str, ...], Source]) -> Figure:
    """Draw a figure for each reading and way of choosing settings that has something to show, and write its files."""
    charts = {options: figure.draw(source) for options, source in sources.items()}
    specs = {options: spec_of(chart) for options, chart in charts.items() if chart is not None}
    links = {}
    for i, (options, spec) in enumerate(specs.items()):
        name = figure.id if i == 0 else "-".join([figure.id, *options]).replace(" ", "-")
        write_files(spec, folder / "figures", name)
        links[options] = _links(name)
    return Figure(figure.id, figure.title, figure.caption, specs, links)


def _beyond(folder: Path, sources: Mapping[tuple[str, ...], Source]) -> Markup:
    figure = _drawn(BEYOND, folder, sources)
    return figure.html() if figure.variants else Markup("")


def _picture(folder: Path, sources: Sequence[Source]) -> None:
    """Write the headline figure by itself, for use elsewhere: on fresh trials if there are any."""
    source = next((source for source in sources if source.selection == "held-out"), sources[0])
    chart = reward_against_theta(source)
    if chart is not None:
        write_files(spec_of(chart), folder / "figures", "headline")


def _links(name: str) -> dict[str, str]:
    return {kind.upper(): f"figures/{name}.{kind}" for kind in FORMATS}


def _all_figures(figures: Sequence[Figure], findings: Sequence[Finding]) -> Markup:
    intro = paragraphs(
        "Lines are means over trials, bands 95 % intervals (Student's t), each method at its best hyper-parameters. "
        "Point at a chart, or tap on it, for its values; click on a method to switch it off, in all charts. Steps in "
        "water and path length have logarithmic axes, as in the paper. The axis of rewards ends at −100: methods that "
        "fail fall far below. The dotted line is the optimum of one who sees everything.",
    )
    judged = {finding.claim for finding in findings}
    parts = []
    for figure in figures:
        here = [claim.id for claim in CLAIMS if claim.figure == figure.id and claim.id in judged]
        links = Markup(", ").join(Markup('<a href="#claim-{0}">{0}</a>').format(name) for name in here)
        parts.append(figure.html(Markup("<p>Claims read here: {}.</p>").format(links) if here else ""))
    return intro + Markup("\n").join(parts)


# --- what was run -------------------------------------------------------------------------------------------------


def _run(
    folder: Path, runs: pl.DataFrame, sources: Mapping[tuple[str, ...], Source], about: Mapping[str, Any]
) -> Markup:
    parts = []
    if "command" in about:
        parts.append(paragraphs("Everything here comes from one command:"))
        parts.append(Markup("<pre>{}</pre>").format(about["command"]))
    parts.append(
        facts([(title, str(about[key])) for key, title in _FACTS.items() if key in about] + _amounts(runs, about))
    )
    parts.append(_beside(folder))
    if about.get("studies"):
        rows = [[study["name"], study["runs"]] for study in about["studies"]]
        parts.append(details(f"The {len(rows)} studies", sortable(["Study", "Runs"], rows)))
    for options, source in sources.items():
        chosen = Markup("<div {}>{}</div>").format(
            when(*options), details("The settings that were chosen", _settings(source))
        )
        parts.append(chosen)
    return Markup("\n").join(parts)


def _amounts(runs: pl.DataFrame, about: Mapping[str, Any]) -> list[tuple[str, str]]:
    lengths = ", ".join(f"{n:,}" for n in runs["steps"].unique().sort())
    items = [("Runs", f"{runs.height:,} of {lengths} steps: {int(runs['steps'].sum()):,} steps")]
    for key, title in (("tuning_trials", "Trials"), ("fresh_trials", "Fresh trials")):
        if about.get(key):
            items.append((title, f"seeds {about[key][0]} to {about[key][-1]}"))
    if "seconds" in about:
        made = about.get("runs_made_now")
        items.append(
            ("Time", duration(about["seconds"]) + ("" if made is None else f", for {counted(made, 'run')} made now"))
        )
    if "core_seconds" in about:
        items.append(("Time of all runs", f"{duration(about['core_seconds'])} of one core"))
    return items


def _beside(folder: Path) -> Markup:
    links = [
        Markup('<a href="claims.json">claims.json</a>: every verdict with its parts'),
        Markup('<a href="results.parquet">results.parquet</a>: every run, a row each'),
        Markup('<a href="figures/">figures/</a>: the figures as SVG, PDF and PNG'),
    ]
    for address in _THEORY:
        if (folder / address).exists():
            links.append(Markup('<a href="{}">The theory</a>: the paper\'s appendix, put to the test').format(address))
            break
    return Markup("<p>Beside this page:</p><ul>{}</ul>").format(
        Markup("\n").join(Markup("<li>{}</li>").format(link) for link in links)
    )


def _settings(source: Source) -> Markup:
    columns = ["Missingness", "Method", "α", "γ", "ε", "Stay", "Tried", "Draws"]
    keys = ("missingness", "method", "K", "p_shuffle", "alpha", "gamma", "epsilon", "stay", "settings")
    counted = source.evidence.choice.group_by(keys, maintain_order=True).len("draws").sort(keys, nulls_last=False)
    rows = []
    for row in counted.iter_rows(named=True):
        shown = Shown(row["method"], row["K"], row["p_shuffle"])
        stay = "allowed" if row["stay"] else "no"
        rows.append(
            [
                row["missingness"],
                name_of(shown),
                row["alpha"],
                row["gamma"],
                row["epsilon"],
                stay,
                row["settings"],
                row["draws"],
            ]
        )
    return sortable(columns, rows)
