"""The page of the appendix: statements with their status, formulas, proofs, simulations and charts in one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path

import numpy as np
from markupsafe import Markup

from lacuna.report import (
    DARK,
    Cell,
    Figure,
    Page,
    Section,
    Text,
    details,
    numbers,
    paragraphs,
    spec_of,
    table,
    write_files,
    write_whole,
)
from lacuna_paper.theory.figures import Curves, draw
from lacuna_paper.theory.notation import to_html, to_mathml
from lacuna_paper.theory.statement import (
    MEANINGS,
    STANDARD_ERRORS,
    WORDS,
    Agreement,
    Check,
    Conclusion,
    Status,
    unwrapped,
)

_LEAD = (
    "The appendix of the paper argues for fractional updates and for imputing at all. Here every statement of it is "
    "put to the test: what it says, under which assumptions, the formula, a simulation under exactly those "
    "assumptions, one in which an assumption is broken on purpose, and a status that follows from the numbers."
)
# The badges of the style sheet.
_GOOD, _BAD, _OPEN = "verdict supported", "verdict not-supported", "verdict undecided"
_BADGES: dict[Status, str] = {
    "holds": _GOOD, "holds, made exact": _GOOD, "answered": _GOOD,
    "refuted as printed, corrected": _BAD, "fails": _BAD, "undecided": _OPEN,
}  # fmt: skip
_SIGNS: dict[Agreement, tuple[str, str]] = {
    "agrees": ("✓", _GOOD), "disagrees": ("✗", _BAD), "undecided": ("?", _OPEN),
}  # fmt: skip
_MEASURED = ["measured quantity", "measured", f"± {STANDARD_ERRORS:g} s.e."]
_SIDES = {"=": "", "<": "< ", ">": "> "}

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


def write_page(conclusions: Sequence[Conclusion], curves: Iterable[Curves], folder: Path) -> Path:
    """Write ``index.html`` and the figures as files; give the path of the page."""
    texts = {texts["id"]: texts for part in WORDS["parts"] for texts in part["figures"]}
    figures = {}
    for one in curves:
        spec = spec_of(draw(one))
        files = write_files(spec, folder / "figures", one.id)
        links = {kind.upper(): f"figures/{path.name}" for kind, path in files.items()}
        # A page brings its own looks, light and dark.
        bare = {name: value for name, value in spec.items() if name != "config"}
        title, caption = texts[one.id]["title"], _prose(unwrapped(texts[one.id]["caption"]))
        figures[one.id] = Figure(one.id, title, caption, {(): bare}, {(): links})
    path = folder / "index.html"
    paper = "../index.html" if (folder.parent / "index.html").exists() else ""
    write_whole(path, page_of(conclusions, figures, paper).html().encode())
    return path


def page_of(conclusions: Sequence[Conclusion], figures: Mapping[str, Figure], paper: str = "") -> Page:
    """Make the page from conclusions and drawn figures, with a link to the paper's page if its address is given."""
    by_id = {conclusion.statement.id: conclusion for conclusion in conclusions}
    sections = [Section("statements", "Statements", _overview(conclusions))]
    for part in WORDS["parts"]:
        blocks = [paragraphs(unwrapped(part["introduction"]))]
        blocks += [_statement(by_id[texts["id"]]) for texts in part["statements"] if texts["id"] in by_id]
        blocks += [figures[texts["id"]].html() for texts in part["figures"] if texts["id"] in figures]
        sections.append(Section(part["id"], part["title"], Markup("\n").join(blocks), part["short"]))
    sections.append(Section("method", "How a status is reached", _method(), "Method"))
    footer = Markup('The same as data: <a href="theory.json">theory.json</a>. Made by <code>lacuna theory</code>.')
    if paper:
        footer += Markup(' <a href="{}">The paper\'s page</a>.').format(paper)
    return Page("The appendix, checked", paragraphs(_LEAD, _summary(conclusions)), sections, dark=DARK, footer=footer)


def _summary(conclusions: Sequence[Conclusion]) -> str:
    """How it came out, in one sentence."""
    counts = Counter(conclusion.status for conclusion in conclusions)
    right, mended = counts["holds"] + counts["holds, made exact"], counts["refuted as printed, corrected"]
    text = f"Of {len(conclusions)} statements, {right} hold as printed, {mended} are refuted as printed and corrected "
    text += f"here, and {counts['answered']} answer what the print leaves open."
    rest = counts["fails"] + counts["undecided"]
    return text + (f" {rest} remain undecided or fail." if rest else "")


def _overview(conclusions: Sequence[Conclusion]) -> Markup:
    counts = Counter(conclusion.status for conclusion in conclusions)
    items = [(str(counts[status]), f"{status}: {meaning}") for status, meaning in MEANINGS.items() if counts[status]]
    rows = [
        (
            Markup('<a href="#{}">{}</a>').format(one.statement.id, _prose(one.statement.title)),
            Cell(one.statement.place, f"{number:02}"),
            Cell(_badge(one.status), str(list(MEANINGS).index(one.status))),
            _prose(_told(one)),
        )
        for number, one in enumerate(conclusions)
    ]
    listed = table(["statement", "in the paper", "status", "told by"], rows)
    return Markup('{}{}<div class="cards">{}</div>').format(_STYLE, numbers(items), listed)


def _badge(status: Status) -> Markup:
    return Markup('<span class="{}">{}</span>').format(_BADGES[status], status)


def _told(conclusion: Conclusion) -> str:
    """The check that decides, in a few words."""
    refuting = [check for check in conclusion.printed if check.agreement == "disagrees"]
    if refuting:
        check, words = max(refuting, key=_misfit), "in print"
    elif conclusion.right:
        check, words = conclusion.right[0], "by the formula"
    else:
        check = conclusion.printed[0]
        words = {"=": "in print", "<": "in print below", ">": "in print above"}[check.relation]
    measured = check.measurement
    return f"{measured.what}: {_plain(measured.value)}, {words} {_plain(check.predicted)}"


def _misfit(check: Check) -> float:
    """How far print and measurement are apart; a finite gap tells more than an infinite one."""
    gap = abs(check.measurement.value - check.predicted)
    return gap if isfinite(gap) else 0.0


def _statement(conclusion: Conclusion) -> Markup:
    statement = conclusion.statement
    agreeing = sum(check.agreement == "agrees" for check in conclusion.valid)
    noticed = sum(check.agreement == "disagrees" for check in conclusion.broken)
    return Markup("""
<article class="statement" id="{id}">
<h3>{title}</h3>
<p class="quiet">{place} · {badge}</p>
<p>{claim}</p>
{quoted}{formulas}
{assumptions}{proof}{kept}{broken}
</article>
""").format(
        id=statement.id,
        title=_prose(statement.title),
        place=statement.place,
        badge=_badge(conclusion.status),
        claim=_prose(statement.claim),
        quoted=Markup("<p>In the paper's words: <q>{}</q></p>\n").format(statement.quoted) if statement.quoted else "",
        formulas=_formulas(conclusion),
        assumptions=details("Assumptions", _list(statement.assumptions)),
        proof=details("Proof", paragraphs(*(_prose(text) for text in statement.proof))),
        kept=details(
            f"Simulation under the assumptions: {agreeing} of {len(conclusion.valid)} measurements agree",
            _checks({"in print": conclusion.printed, "right": conclusion.right}),
        ),
        broken=details(
            f"An assumption broken on purpose: noticed in {noticed} of {len(conclusion.broken)} measurements",
            paragraphs(_prose(statement.broken)) + _checks({"by the formula": conclusion.broken}),
        ),
    )


def _formulas(conclusion: Conclusion) -> Markup:
    """The printed formula and the right one, each under a name that says what it is."""
    printed, right = conclusion.statement.printed, conclusion.statement.right
    name = "Our answer" if printed is None else "Right" if printed.relation == "=" else "Made exact"
    lines = [
        Markup('<div class="formula"><span class="quiet">{}</span><div class="scroll">{}</div></div>').format(
            said, Markup(to_mathml(formula.text))  # noqa: S704  our own notation, escaped there
        )
        for said, formula in (("In print", printed), (name, right)) if formula
    ]  # fmt: skip
    return Markup("").join(lines)


def _prose(text: str) -> Markup:
    return Markup(to_html(text))  # noqa: S704  our own texts, escaped there


def _list(texts: Sequence[str]) -> Markup:
    return Markup("<ul>{}</ul>").format(Markup("").join(Markup("<li>{}</li>").format(_prose(text)) for text in texts))


def _checks(columns: Mapping[str, Sequence[Check]]) -> Markup:
    """Measured numbers next to those of formulas; each column holds the checks of one formula, or none."""
    filled = {name: checks for name, checks in columns.items() if checks}
    rows: list[list[Text | Cell]] = []
    for beside in zip(*filled.values(), strict=True):
        measured, tolerance = beside[0].measurement, beside[0].tolerance
        cells = [Cell(_plain(measured.value), measured.value), Cell(_plain(tolerance, digits=2), tolerance)]
        rows.append([_prose(measured.what), *cells, *(_predicted(check) for check in beside)])
    return Markup('<div class="cards">{}</div>').format(table([*_MEASURED, *filled], rows))


def _predicted(check: Check) -> Cell:
    """The value of a formula, with a sign that says whether it fits."""
    sign, badge = _SIGNS[check.agreement]
    text = Markup('{} <span class="{}" title="{}">{}</span>').format(
        _SIDES[check.relation] + _plain(check.predicted), badge, check.agreement, sign
    )
    return Cell(text, check.predicted if isfinite(check.predicted) else 1e300)


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
        f"{STANDARD_ERRORS:g} standard errors of it, which chance exceeds once in 16,000 checks, and if that is "
        f"less than a tenth of the value; otherwise the simulation is too coarse and the status is undecided. "
        "An inequality agrees if the measurement is on the right side by as much.",
        "Where nothing is random, as in updates of Q, the tolerance is what rounding may do. Where a limit is compared "
        "with a finite time, it contains what the exact recursion says is still missing.",
        "A statement holds if every measurement agrees. Where a formula of the print disagrees and a corrected one "
        "agrees with every measurement, it is refuted as printed, and corrected. The same checks catch formulas "
        "that are wrong on purpose; this is one of the tests of the package.",
    )
