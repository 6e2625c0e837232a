"""The page of the paper: a headline, every claim with its verdict, every figure, and how it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from lacuna.report import (
    DARK,
    FORMATS,
    Figure,
    Page,
    Section,
    Switch,
    Text,
    bar,
    counted,
    details,
    duration,
    facts,
    in_dark,
    joined,
    numbers,
    paragraphs,
    spec_of,
    table,
    when,
    write_files,
    write_whole,
)
from lacuna.study import Draw
from lacuna_paper.charts import BEYOND, FIGURES, FigureOfPaper, optimum, reward_against_theta, short_horizons
from lacuna_paper.claims import CLAIMS
from lacuna_paper.comparison import Comparisons
from lacuna_paper.diagrams import drawings
from lacuna_paper.evidence import BASELINES, DRAWS, MI_SYNTHETIC, READINGS, REWARD, SELECTIONS, Evidence, Shown
from lacuna_paper.frontier.deep_learners import deep_section
from lacuna_paper.frontier.section import frontier_sections
from lacuna_paper.horizons import Cell, judge_cells
from lacuna_paper.points import Wanted, by_rate
from lacuna_paper.tables import (
    beyond_section,
    claims_table,
    counted_verdicts,
    horizons_section,
    in_short,
    in_words,
    outcome,
    ways_of,
)
from lacuna_paper.verdicts import Basis, Finding, FullStudy, most_wrong_by_chance

Shows = Mapping[tuple[str, ...], Evidence]
"""What the page shows, by the options of its switches."""

_PAPER = "Missing Data Multiple Imputation for Tabular Q-Learning in Online RL"
_YEAR, _ARXIV = 2025, "2510.10709"
_THEORY = ("theory/index.html", "theory.html", "../theory/index.html")
_FACTS = {
    "lacuna": "lacuna", "python": "Python", "machine": "Machine", "workers": "Runs at a time", "finished": "Finished",
}  # fmt: skip


def write_page(
    folder: Path, runs: pl.DataFrame, findings: Sequence[Finding], comparisons: Comparisons, about: Mapping[str, Any],
    draws: Sequence[Draw] = DRAWS, horizons: Sequence[Cell] = (),
) -> Path:  # fmt: skip
    """Write ``index.html`` and the figures as files into a folder; give the path of the page.

    Parameters
    ----------
    folder
        Where to write; ``claims.json``, ``horizons.json`` and ``results.parquet`` are expected beside the page, which
        links to them.
    runs
        A row per run, with curves.
    findings
        What `lacuna_paper.claims.judge` said, for each reading and selection to be shown.
    comparisons
        Ours without planning against the paper's methods, by the way of choosing settings.
    about
        What was done, as plain data. Of these keys, those that are there are shown: ``command``, ``lacuna``,
        ``python``, ``machine``, ``workers``, ``finished``, ``seconds``, ``core_seconds``, ``steps``,
        ``tuning_trials``, ``fresh_trials``, ``studies`` (a list of ``{"name", "runs"}``).
    draws
        The trials on which settings were chosen and confirmed.
    horizons
        What was run at short horizons.
    """
    judged = ways_of(findings) or [(READINGS[0], SELECTIONS[0])]
    ways = [(reading, selection) for reading in READINGS for selection in SELECTIONS if (reading, selection) in judged]
    shows = {in_words(way): Evidence.of(runs, *way, draws) for way in ways}
    figures = _figures(folder, shows)
    _write_headline_figure(folder, list(shows.values()), horizons)
    beyond = _drawn(BEYOND, folder, shows)
    page = Page(
        "The paper, reproduced",
        _lead(),
        [
            Section("result", "In short", headline(shows, findings, about, runs) + in_short(comparisons, ways)),
            Section("claims", "Claims", _claims(findings, figures)),
            Section("figures", "Figures", _all_figures(figures, findings)),
            Section(
                "beyond",
                "Beyond",
                beyond_section(comparisons, ways, beyond.html() if beyond.variants else Markup("")),
            ),
            Section("horizons", "Short horizons", _horizons(folder, horizons, about), "Horizons"),
            *frontier_sections(folder),
            deep_section(),
            Section("run", "The run", _run(folder, runs, shows, about)),
        ],
        [Switch("Reading", _options(shows, 0)), Switch("Settings chosen", _options(shows, 1))],
        DARK,
        Markup("Made by lacuna{}. This page needs no network.").format(f" {about.get('lacuna', '')}".rstrip()),
    )
    path = folder / "index.html"
    write_whole(path, page.html().encode())
    return path


def _options(shows: Shows, place: int) -> list[str]:
    return list(dict.fromkeys(options[place] for options in shows))


def _lead() -> Markup:
    return paragraphs(
        Markup(
            "<em>{}</em> (Chasalow, Wu and Murphy, {}, "
            '<a href="https://arxiv.org/abs/{}">arXiv:{}</a>) asks how an agent should learn while parts of what it '
            "sees go missing, and answers: guess several times. Here its study is run again, its figures drawn from "
            "the new runs, and each of its claims put to a test that could have failed."
        ).format(_PAPER, _YEAR, _ARXIV, _ARXIV)
    )


# --- the headline: what came out, in plain words, a bar and two numbers ----------------------------------------------


def headline(shows: Shows, findings: Sequence[Finding], about: Mapping[str, Any], runs: pl.DataFrame) -> Markup:
    """Make the headline, once for each reading and way of choosing settings; the page's switches decide which shows."""
    blocks = []
    for options, seen in shows.items():
        here = [finding for finding in findings if in_words(finding.way) == options]
        verdicts = Counter[str](finding.verdict for finding in here)
        ours, best = _where_the_paper_looks_closest(seen)
        text = " ".join([*_on_rewards(ours, best), _on_claims(verdicts, seen.basis), *_by_chance(seen, here)])
        two = numbers(_two_numbers(ours, about, runs))
        whole = Markup('<div {}><p class="short">{}</p>{}{}</div>')
        blocks.append(whole.format(when(*options), text, _bars(here, FullStudy.read()) if here else "", two))
    return Markup("\n").join(blocks) + _reading_hints(shows) + _what_more(about)


_Point = Mapping[str, Any] | None


def _where_the_paper_looks_closest(seen: Evidence) -> tuple[_Point, _Point]:
    """What multiple imputation and the best baseline earn at the rate nearest to 0.4; None if they were not run."""
    points = by_rate(seen, Wanted.plain(MI_SYNTHETIC, *BASELINES))
    if points.is_empty():
        return None, None
    at = points.filter(measure=REWARD)
    at = at.filter((pl.col("x") - 0.4).abs() == (at["x"] - 0.4).abs().min()).sort("mean", descending=True)
    ours, others = (at.filter((pl.col("series") == str(MI_SYNTHETIC)) == mine) for mine in (True, False))
    if ours.is_empty() or others.is_empty():
        return None, None
    return ours.row(0, named=True), others.row(0, named=True)


def _on_rewards(ours: _Point, best: _Point) -> Iterator[str]:
    if ours is not None and best is not None:
        name, earned = best["series"], best["mean"]
        yield (
            f"With {100 * ours['x']:g} % of all values hidden, multiple imputation, ten guesses at a time, earns "
            f"{ours['mean']:.1f} per episode. The best baseline, {name[0].lower()}{name[1:]}, earns {earned:.1f}; "
            f"whoever sees everything can earn {optimum():.1f}."
        )


def _on_claims(verdicts: Mapping[str, int], basis: Basis) -> str:
    held, failed, left = (verdicts[word] for word in ("supported", "not supported", "undecided"))
    return (
        f"Of the paper's {len(CLAIMS)} claims {held} {'holds' if held == 1 else 'hold'}, {failed} "
        f"{'does' if failed == 1 else 'do'} not, {left} {'stays' if left == 1 else 'stay'} undecided on "
        f"{basis.in_words}."
    )


def _by_chance(seen: Evidence, findings: Sequence[Finding]) -> Iterator[str]:
    """How many of these verdicts may be wrong by chance."""
    if seen.held_out:
        decided = sum(finding.verdict != "undecided" for finding in findings)
        wrong = most_wrong_by_chance(findings)
        yield (
            f"Of the {decided} verdicts at most {wrong:.1f} are expected to be wrong by chance, if no method gets "
            "stuck so rarely that no trial shows it."
        )


def _bars(findings: Sequence[Finding], full: FullStudy) -> Markup:
    """Draw how many claims hold, fail and are undecided: by the findings of one way, and by the full study."""
    reading, selection = findings[0].way
    rows = [bar(counted_verdicts(finding.verdict for finding in findings), f"This run, {findings[0].basis.in_words}")]
    for way in dict.fromkeys([(reading, selection), (reading, "held-out")]):
        found = [word for claim in CLAIMS if (word := full.of(claim.id, way)) is not None]
        rows.append(bar(counted_verdicts(found), f"The full study, {full.trials[way[1]]}"))
    differ = sum(full.of(finding.claim, finding.way) not in (None, finding.verdict) for finding in findings)
    told = Markup(
        '<span class="quiet">Claims that ✓ hold, ✗ do not, ? are undecided. The full study (<code>{}</code>) was run '
        "before; lacuna-paper has its verdicts. {} of {} verdicts of this run differ from those of the full study on "
        '{}: <a href="#claims">flagged below</a>.</span>'
    ).format(full.command, differ or "None", len(findings), full.trials[selection])
    return joined([*rows, paragraphs(told)])


def _two_numbers(ours: _Point, about: Mapping[str, Any], runs: pl.DataFrame) -> Iterator[tuple[Text, Text]]:
    """The two numbers that matter, each with what it is."""
    if ours is not None:
        reach = "" if ours["low"] is None else f", 95 % interval {ours['low']:.1f} to {ours['high']:.1f}"
        yield f"{ours['mean']:.1f}", f"reward per episode of {ours['series']}, θ = {ours['x']:g}{reach}"
    took = f", {duration(about['seconds'])}" if about.get("runs_made_now") == runs.height else ""
    yield _large(int(runs["steps"].sum())), f"steps in {runs.height:,} runs{took}"


def _what_more(about: Mapping[str, Any]) -> Markup:
    """What a longer command would add, if there is one."""
    more = []
    if about.get("form") == "reduced":
        more.append(Markup("this is the reduced form of the study, and <code>--full</code> runs all of it"))
    if "held-out" not in about.get("selections", ["held-out"]):
        text = Markup("five trials leave much undecided, and <code>--honest</code> adds {}")
        fresh = sum(len(draw.fresh) for draw in DRAWS)
        more.append(text.format(Basis("", "held-out", fresh, len(DRAWS)).in_words))
    if not more:
        return Markup("")
    whole = Markup('<p class="note">More can be known: {}. What was run is not run again.</p>')
    return whole.format(Markup("; ").join(more))


def _reading_hints(shows: Shows) -> Markup:
    hints = {
        "episodic": "reaching the goal ends the episode, as the text of the paper says",
        "continuing": "nothing ends and arrivals are only counted; the paper does not say which its figures show",
        "as published": "each method at the best of its hyper-parameters, found on the very trials shown",
        "held out": "chosen on five trials, shown on fresh ones, in several independent draws; intervals are over the "
        "draws, so they cover the choice too",
    }
    used = dict.fromkeys(option for options in shows for option in options)
    text = Markup("; ").join(Markup("<strong>{}</strong>: {}").format(word, hints[word]) for word in used)
    return paragraphs(Markup('<span class="quiet">{}.</span>').format(text))


def _large(count: int) -> Markup:
    for size, word in ((10**9, "billion"), (10**6, "million")):
        if count >= size:
            return Markup("{} <small>{}</small>").format(f"{count / size:.3g}", word)
    return Markup("{}").format(f"{count:,}")


# --- claims and figures -------------------------------------------------------------------------------------------


def _claims(findings: Sequence[Finding], figures: Sequence[Figure]) -> Markup:
    intro = paragraphs(
        "What would decide each claim was fixed in the code beforehand, with its reason. A claim holds if every part "
        "of it does: the whole 95 % interval of the effect, over trials paired by their random numbers, has to lie "
        "where the claim puts it. Held out, the interval is over the means of independent draws of tuning and fresh "
        "trials. The effect shown is that of the part that decides: a dot with its interval, shaded where it has to "
        "lie. Beside it is the verdict of the full study, with a flag where it differs. Open a row for its definition "
        "and all its parts; click on a column to sort.",
    )
    return intro + claims_table(findings, {figure.id: figure.kicker for figure in figures}, FullStudy.read())


def _figures(folder: Path, shows: Shows) -> list[Figure]:
    figures = []
    for name, subject, caption, draw in drawings():
        spec = spec_of(draw())
        write_files(spec, folder / "figures", name)
        title = spec["usermeta"]["heading"]
        figures.append(Figure(name, title, caption, {(): spec}, {(): _links(name)}, subject))
    drawn = [_drawn(figure, folder, shows) for figure in FIGURES]
    return figures + [figure for figure in drawn if figure.variants]


def _drawn(figure: FigureOfPaper, folder: Path, shows: Shows) -> Figure:
    """Draw a figure for each reading and way of choosing settings that has something to show, and write its files."""
    charts = {options: figure.draw(seen) for options, seen in shows.items()}
    specs = {options: spec_of(chart) for options, chart in charts.items() if chart is not None}
    for options, spec in specs.items():
        spec["usermeta"] |= {"heading": figure.told(shows[options])}
    links = {}
    for i, (options, spec) in enumerate(specs.items()):
        name = figure.id if i == 0 else "-".join([figure.id, *options]).replace(" ", "-")
        write_files(spec, folder / "figures", name)
        links[options] = _links(name)
    title = next((spec["usermeta"]["heading"] for spec in specs.values()), figure.title)
    return Figure(figure.id, title, figure.caption, specs, links, figure.title)


def _write_headline_figure(folder: Path, shows: Sequence[Evidence], cells: Sequence[Cell]) -> None:
    """Write the headline figure by itself, light and dark, for use elsewhere: on fresh trials if there are any."""
    chart = reward_against_theta(next((seen for seen in shows if seen.held_out), shows[0]), cells)
    if chart is not None:
        spec = spec_of(chart)
        write_files(spec, folder / "figures", "headline")
        write_files(in_dark(spec), folder / "figures", "headline-dark")


def _horizons(folder: Path, cells: Sequence[Cell], about: Mapping[str, Any]) -> Markup:
    """Make the section of short horizons; its chart has what was found as its title."""
    chart, verdicts = short_horizons(cells), judge_cells(cells)
    figure = Markup("")
    if chart is not None:
        spec = spec_of(chart)
        write_files(spec, folder / "figures", "horizons")
        caption = (
            "Regret per step up to each horizon: by how much the best policy, which sees everything, earns more, on "
            "average over all steps so far. The dotted line is that policy. The yardstick, dashed, knows the model and "
            "the mechanism."
        )
        subject, links = "Regret at short horizons", _links("horizons")
        figure = Figure("horizons", outcome(verdicts), caption, {(): spec}, {(): links}, subject).html()
    return horizons_section(cells, verdicts, figure, reduced=about.get("form") == "reduced")


def _links(name: str) -> dict[str, str]:
    return {kind.upper(): f"figures/{name}.{kind}" for kind in FORMATS}


def _all_figures(figures: Sequence[Figure], findings: Sequence[Finding]) -> Markup:
    intro = paragraphs(
        "Thick lines are means over trials, each method at its best hyper-parameters. Thin lines are single trials "
        "where there are five of them; bands, there on request, are 95 % intervals (Student's t). "
        "Point at a chart, or tap on it, for its values; click on a method to switch it off, in all charts. Steps in "
        "water and path length have logarithmic axes, as in the paper. The axis of rewards ends at −100: methods that "
        "fail fall far below, and arrows say how far. The dotted line is the optimum with everything observed.",
    )
    judged = {finding.claim for finding in findings}
    parts = []
    for figure in figures:
        here = [claim.id for claim in CLAIMS if claim.figure == figure.id and claim.id in judged]
        links = Markup(", ").join(Markup('<a href="#claim-{0}">{0}</a>').format(name) for name in here)
        parts.append(figure.html(Markup("<p>Claims read here: {}.</p>").format(links) if here else ""))
    return intro + Markup("\n").join(parts)


# --- what was run -------------------------------------------------------------------------------------------------


def _run(folder: Path, runs: pl.DataFrame, shows: Shows, about: Mapping[str, Any]) -> Markup:
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
        parts.append(details(f"The {len(rows)} studies", table(["Study", "Runs"], rows)))
    for options, seen in shows.items():
        chosen = details("The settings that were chosen", _settings(seen))
        parts.append(Markup("<div {}>{}</div>").format(when(*options), chosen))
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
        Markup('<a href="horizons.json">horizons.json</a>: every figure of short horizons'),
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


def _settings(seen: Evidence) -> Markup:
    names = ["Missingness", "Method", "α", "γ", "ε", "Stay", "Tried", "Draws"]
    keys = ("missingness", *Shown._fields, "alpha", "gamma", "epsilon", "stay", "settings")
    times = seen.choice.group_by(keys, maintain_order=True).len("draws").sort(keys, nulls_last=False)
    rows = []
    for row in times.iter_rows(named=True):
        shown = Shown(*(row[name] for name in Shown._fields))
        chosen = [row["alpha"], row["gamma"], row["epsilon"], "allowed" if row["stay"] else "no"]
        rows.append([row["missingness"], str(shown), *chosen, row["settings"], row["draws"]])
    return table(names, rows)
