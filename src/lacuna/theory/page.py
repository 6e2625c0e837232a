"""The page of the appendix: verdicts, formulas, proofs, simulations and charts in one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

import numpy as np
from markupsafe import Markup

from lacuna.report.files import spec_of, write_files
from lacuna.report.page import Cell, Figure, Page, Section, Spec, Text, details, numbers, paragraphs, table
from lacuna.report.styles import DARK
from lacuna.theory.appendix import PARTS
from lacuna.theory.curves import Curves
from lacuna.theory.figures import draw
from lacuna.theory.notation import to_html, to_mathml
from lacuna.theory.statement import MEANINGS, STANDARD_ERRORS, Comparison, Formula, Judgement, Outcome, Verdict

_LEAD = (
    "The appendix of the paper argues for fractional updates and for imputing at all. Here every statement of it is "
    "put to the test: what it says, under which assumptions, the formula, a simulation under exactly those "
    "assumptions, one in which an assumption is broken on purpose, and a verdict that follows from the numbers."
)
_CLASSES: dict[Verdict, str] = {
    "holds": "supported", "holds, made exact": "supported", "answered": "supported",
    "refuted as printed, corrected": "not-supported", "fails": "not-supported", "undecided": "undecided",
}  # fmt: skip
_SIGNS: dict[Outcome, tuple[str, str]] = {
    "agrees": ("✓", "supported"), "disagrees": ("✗", "not-supported"), "undecided": ("?", "undecided"),
}  # fmt: skip
_TOLERANCE = f"± {STANDARD_ERRORS:g} s.e."
_FIGURES_OF = {
    "imputing": ("variances", "decay"),
    "means": ("adaptive-bias", "plateau", "trade-off"),
    "acting": ("rules", "regret", "u-shape", "early"),
    "updates": ("updates",),
}
_SHORT = {"imputing": "Transitions", "means": "Rewards", "acting": "Acting", "updates": "Q update"}
_INTRODUCTIONS = {
    "imputing": "How well is a transition probability learned if tuples with a hidden next state are filled in and "
    "counted? It depends on who fills them in: an oracle helps, an estimate costs a little, and a model that learns "
    "from its own imputations slows down without bound once half of the tuples are incomplete.",
    "means": "In one context of a contextual bandit, what do the mean rewards estimate that a learner keeps? The "
    "formulas of the appendix hold, if actions do not learn. Learners, which is what they are for, bias them.",
    "acting": "Three ways to act on a state that may be hidden, and four kinds of missingness. In the end, treating "
    "missing as a state loses nothing that could be had; imputing is faster where it is right.",
    "updates": "The paper gives each of K pathways a share α/K of an update, one after the other, and takes the K of "
    "them for one update at rate α. They are one update at a smaller rate.",
}

_STYLE = Markup("""<style>
.statement { border-top: 1px solid var(--line); padding-block: 1.4rem .6rem; }
.statement h3 { margin-bottom: .1rem; }
.statement:target h3 { text-decoration: underline; text-decoration-color: var(--link); text-underline-offset: .25em; }
.statement > .quiet { margin-bottom: .6rem; font-family: var(--sans); }
.statement details { margin-bottom: .35rem; }
.formula { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); align-items: center; background: var(--sunken);
  border-radius: 8px; padding: .5rem 1rem; margin: 0 0 .6rem; max-width: 54rem; }
.formula > .quiet { font-family: var(--sans); }
.formula .scroll { margin: 0; padding-block: .2rem; }
.formula math { font-size: 1.12em; margin: 0; text-align: left; display: inline-block; }
.statement + figure.chart { margin-top: 2rem; border-top: 1px solid var(--line); padding-top: 2rem; }
@media (max-width: 44rem) { .formula { grid-template-columns: 1fr; } }
</style>""")


def write_page(judgements: Sequence[Judgement], curves: Sequence[Curves], folder: Path) -> Path:
    """Write ``index.html`` and the figures as files; give the path of the page."""
    specs = {one.id: spec_of(draw(one)) for one in curves}
    figures = {}
    for one in curves:
        files = write_files(specs[one.id], folder / "figures", one.id)
        links = {kind.upper(): f"figures/{path.name}" for kind, path in files.items()}
        figures[one.id] = Figure(one.id, one.title, _prose(one.caption), {(): _for_a_page(specs[one.id])}, {(): links})
    path = folder / "index.html"
    paper = "../index.html" if (folder.parent / "index.html").exists() else ""
    path.write_text(page_of(judgements, figures, paper).html(), encoding="utf-8")
    return path


def _for_a_page(spec: Spec) -> Spec:
    """Without the looks for paper: a page brings its own, light and dark."""
    return {name: value for name, value in spec.items() if name != "config"}


def page_of(judgements: Sequence[Judgement], figures: Mapping[str, Figure], paper: str = "") -> Page:
    """The page, from judgements and drawn figures, with a link to the paper's page if its address is given."""
    by_id = {judgement.statement.id: judgement for judgement in judgements}
    sections = [Section("verdicts", "Verdicts", _verdicts(judgements))]
    for part, (title, statements) in PARTS.items():
        blocks = [paragraphs(_INTRODUCTIONS[part])]
        blocks += [_statement(by_id[statement.id]) for statement in statements if statement.id in by_id]
        blocks += [figures[name].html() for name in _FIGURES_OF[part] if name in figures]
        sections.append(Section(part, title, Markup("\n").join(blocks), _SHORT[part]))
    sections.append(Section("method", "How verdicts are reached", _method(), "Method"))
    footer = Markup(
        'The same as data: <a href="theory.json">theory.json</a>. Made by <code>lacuna theory</code>.{}'
    ).format(Markup(' <a href="{}">The paper\'s page</a>.').format(paper) if paper else "")
    lead = paragraphs(_LEAD, _summary(judgements))
    return Page("The appendix, checked", lead, sections, dark=DARK, footer=footer)


def _summary(judgements: Sequence[Judgement]) -> str:
    """How it came out, in one sentence."""
    counts = Counter(judgement.verdict for judgement in judgements)
    right, mended = counts["holds"] + counts["holds, made exact"], counts["refuted as printed, corrected"]
    text = f"Of {len(judgements)} statements, {right} hold as printed, {mended} are refuted as printed and corrected "
    text += f"here, and {counts['answered']} answer what the print leaves open."
    rest = counts["fails"] + counts["undecided"]
    return text + (f" {rest} remain undecided or fail." if rest else "")


def _verdicts(judgements: Sequence[Judgement]) -> Markup:
    counts = Counter(judgement.verdict for judgement in judgements)
    items = [
        (str(counts[verdict]), f"{verdict}: {meaning}") for verdict, meaning in MEANINGS.items() if counts[verdict]
    ]
    rows = [
        (
            Markup('<a href="#{}">{}</a>').format(judgement.statement.id, _prose(judgement.statement.title)),
            Cell(judgement.statement.place, f"{number:02}"),
            _verdict(judgement.verdict),
            _prose(_told(judgement)),
        )
        for number, judgement in enumerate(judgements)
    ]
    listed = table(["statement", "in the paper", "verdict", "told by"], rows)
    return Markup('{}{}<div class="cards">{}</div>').format(_STYLE, numbers(items), listed)


def _told(judgement: Judgement) -> str:
    """The comparison that decides, in a few words."""
    refuting = [one for one in judgement.printed if one.outcome == "disagrees"]
    if refuting:
        one = max(refuting, key=_misfit)
        return f"{one.measurement.what}: {_plain(one.measurement.value)}, in print {_plain(one.predicted)}"
    if judgement.right:
        one = judgement.right[0]
        return f"{one.measurement.what}: {_plain(one.measurement.value)}, by the formula {_plain(one.predicted)}"
    one = judgement.printed[0]
    words = {"=": "in print", "<": "in print below", ">": "in print above"}[one.relation]
    return f"{one.measurement.what}: {_plain(one.measurement.value)}, {words} {_plain(one.predicted)}"


def _misfit(comparison: Comparison) -> float:
    """How far print and measurement are apart; a finite gap tells more than an infinite one."""
    gap = abs(comparison.measurement.value - comparison.predicted)
    return gap if isfinite(gap) else 0.0


def _verdict(verdict: Verdict) -> Cell:
    place = str(list(MEANINGS).index(verdict))
    return Cell(Markup('<span class="verdict {}">{}</span>').format(_CLASSES[verdict], verdict), place)


def _statement(judgement: Judgement) -> Markup:
    statement = judgement.statement
    printed, right = _formula("In print", statement.printed), _formula("Right", statement.right)
    if statement.printed is None:
        printed, right = Markup(""), _formula("Our answer", statement.right)
    elif statement.right and statement.printed.relation != "=":
        right = _formula("Made exact", statement.right)
    return Markup("""
<article class="statement" id="{id}">
<h3>{title}</h3>
<p class="quiet">{place} · <span class="verdict {kind}">{verdict}</span></p>
<p>{claim}</p>
{quoted}{printed}{right}
{assumptions}{proof}{kept}{broken}
</article>
""").format(
        id=statement.id, title=_prose(statement.title), place=statement.place, verdict=judgement.verdict,
        kind=_CLASSES[judgement.verdict], claim=_prose(statement.claim), quoted=_quoted(statement.quoted),
        printed=printed, right=right,
        assumptions=details("Assumptions", _list(statement.assumptions)),
        proof=details("Proof", paragraphs(*(_prose(text) for text in statement.proof))),
        kept=details(
            _count("Simulation under the assumptions", judgement.right or judgement.printed), _comparisons(judgement)
        ),
        broken=details(
            Markup("An assumption broken on purpose: {}").format(_count_broken(judgement)),
            Markup("{}{}").format(paragraphs(_prose(statement.broken)), _broken(judgement)),
        ),
    )  # fmt: skip


def _quoted(words: str) -> Markup:
    return Markup("<p>In the paper's words: <q>{}</q></p>\n").format(words) if words else Markup("")


def _formula(name: str, formula: Formula | None) -> Markup:
    if formula is None:
        return Markup("")
    drawn = Markup(to_mathml(formula.text))  # noqa: S704  our own notation, escaped there
    return Markup('<div class="formula"><span class="quiet">{}</span><div class="scroll">{}</div></div>').format(
        name, drawn
    )


def _prose(text: str) -> Markup:
    return Markup(to_html(text))  # noqa: S704  our own texts, escaped there


def _list(texts: Sequence[str]) -> Markup:
    return Markup("<ul>{}</ul>").format(Markup("").join(Markup("<li>{}</li>").format(_prose(text)) for text in texts))


def _count(what: str, comparisons: Sequence[Comparison]) -> str:
    agreeing = sum(one.outcome == "agrees" for one in comparisons)
    return f"{what}: {agreeing} of {len(comparisons)} measurements agree"


def _count_broken(judgement: Judgement) -> str:
    noticed = sum(one.outcome == "disagrees" for one in judgement.broken)
    return f"noticed in {noticed} of {len(judgement.broken)} measurements"


def _comparisons(judgement: Judgement) -> Markup:
    """Measured numbers next to the printed and to the right formula."""
    columns = ["measured quantity", "measured", _TOLERANCE]
    columns += ["in print"] if judgement.printed else []
    columns += ["right"] if judgement.right else []
    rows = []
    for i, one in enumerate(judgement.right or judgement.printed):
        beside = [side[i] for side in (judgement.printed, judgement.right) if side]
        rows.append([*_measured(one), *(_outcome(other) for other in beside)])
    return Markup('<div class="cards">{}</div>').format(table(columns, rows))


def _broken(judgement: Judgement) -> Markup:
    rows = [[*_measured(one), _outcome(one)] for one in judgement.broken]
    columns = ["measured quantity", "measured", _TOLERANCE, "by the formula"]
    return Markup('<div class="cards">{}</div>').format(table(columns, rows))


def _measured(comparison: Comparison) -> list[Text | Cell]:
    one = comparison.measurement
    return [
        _prose(one.what),
        Cell(_plain(one.value), one.value),
        Cell(_plain(comparison.tolerance, digits=2), comparison.tolerance),
    ]


def _outcome(comparison: Comparison) -> Cell:
    """The value of a formula, with a sign that says whether it fits."""
    sign, kind = _SIGNS[comparison.outcome]
    sides = {"=": "", "<": "< ", ">": "> "}
    text = Markup('{} <span class="verdict {}" title="{}">{}</span>').format(
        sides[comparison.relation] + _plain(comparison.predicted), kind, comparison.outcome, sign
    )
    return Cell(text, comparison.predicted if isfinite(comparison.predicted) else 1e300)


def _plain(value: float, digits: int = 4) -> str:
    if not isfinite(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) < 1e-9:
        return "0"
    # As many digits as the value has before the point, at least.
    return np.format_float_positional(value, precision=digits, fractional=False, trim="-").replace("-", "−")


def _method() -> Markup:
    return paragraphs(
        f"A simulation knows no formula: it gives measurements, each with its case and its standard error. A formula "
        f"knows no simulation: it gives a number for a case. An equation agrees if the measurement lies within "
        f"{STANDARD_ERRORS:g} standard errors of it, which chance exceeds once in 16,000 comparisons, and if that is "
        f"less than a tenth of the value; otherwise the simulation is too coarse and the verdict is undecided. "
        "An inequality agrees if the measurement is on the right side by as much.",
        "Where nothing is random, as in updates of Q, the tolerance is what rounding may do. Where a limit is compared "
        "with a finite time, it contains what the exact recursion says is still missing.",
        "A statement holds if every measurement agrees. Where a formula of the print disagrees and a corrected one "
        "agrees with every measurement, it is refuted as printed, and corrected. The same comparisons catch formulas "
        "that are wrong on purpose; this is one of the tests of the package.",
    )
