"""The claims as a table: verdicts at a glance, and behind each row what was compared and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from lacuna.paper.claims import CLAIMS, Claim, Comparison, Finding
from lacuna.report.page import Cell, Row, Text, details, facts, paragraphs, table

_SIGNS = {"supported": "✓", "not supported": "✗", "undecided": "?"}
_ORDER = tuple(_SIGNS)

Way = tuple[str, str]
"""A reading of an episode's end, and a way of choosing settings."""


def ways_of(findings: Sequence[Finding]) -> list[Way]:
    """List the readings and selections that were judged, in their order."""
    return list(dict.fromkeys(finding.way for finding in findings))


def in_words(way: Sequence[str]) -> tuple[str, ...]:
    """Give the options of the page's switches for a way."""
    return tuple(word.replace("-", " ") for word in way)


def claims_table(findings: Sequence[Finding], titles: dict[str, str]) -> Markup:
    """Make the table; `titles` are those of the figures, by name."""
    ways = ways_of(findings)
    found = {(finding.claim, *finding.way): finding for finding in findings}
    rows = [
        _row(claim, [found[claim.id, *way] for way in ways if (claim.id, *way) in found], titles)
        for claim in CLAIMS
        if any((claim.id, *way) in found for way in ways)
    ]
    heads = ["Claim", "Where", *(Markup("{}, <br>{}").format(*in_words(way)) for way in ways)]
    return Markup('<div class="cards claims">{}</div>').format(table(heads, rows))


def verdict(word: str) -> Markup:
    """Mark a verdict by its sign, its word and its colour."""
    return Markup('<span class="verdict {}">{} {}</span>').format(word.replace(" ", "-"), _SIGNS[word], word)


def interval(found: Finding | Comparison) -> str:
    """Write an effect with its interval.

    Examples
    --------
    >>> interval(Comparison("a minus b", 2.5, 1.0, 4.0, "reward per episode", "above 0", "supported"))
    '2.5 [1, 4]'
    """
    if found.effect is None:
        return "–"
    bounds = "" if found.low is None or found.high is None else f" [{_short(found.low)}, {_short(found.high)}]"
    return _short(found.effect) + bounds


def _short(value: float) -> str:
    return f"{value:.3g}".replace("-", "−") if abs(value) < 1000 else f"{value:,.0f}".replace("-", "−")


def _row(claim: Claim, findings: Sequence[Finding], titles: dict[str, str]) -> Row:
    cells = [_verdict_cell(finding) for finding in findings]
    sections = ", ".join(part.split()[0] for part in claim.section.split(", "))
    where = Markup('{}, <a href="#figure-{}">figure</a>').format(sections, claim.figure)
    return Row(
        [Markup("{}").format(claim.text), where, *cells],
        more=_definition(claim, titles) + Markup("\n").join(_findings(findings)),
        id=f"claim-{claim.id}",
    )


def _verdict_cell(finding: Finding) -> Cell:
    text = Markup('{}<br><span class="quiet">{}</span>').format(verdict(finding.verdict), interval(finding))
    return Cell(text, f"{_ORDER.index(finding.verdict)} {finding.verdict}")


def _definition(claim: Claim, titles: dict[str, str]) -> Markup:
    link = Markup('<a href="#figure-{}">{}</a>').format(claim.figure, titles.get(claim.figure, claim.figure))
    return facts(
        [("In the paper", claim.section), ("Compared", claim.compared), ("Decided by", claim.threshold),
         ("Chart", link), ("Name", Markup("<code>{}</code>").format(claim.id))]
    )  # fmt: skip


def _findings(findings: Sequence[Finding]) -> Iterator[Markup]:
    for finding in findings:
        words = ", ".join(in_words(finding.way)).capitalize()
        yield Markup("<h4>{}: {}, {}</h4>").format(words, verdict(finding.verdict), finding.basis.told)
        if finding.note:
            yield paragraphs(finding.note)
        rows: list[Sequence[Text | Cell]] = [
            [part.label, Cell(interval(part), part.effect), part.unit, part.wanted, verdict(part.verdict)]
            for part in finding.parts
        ]
        parts = table(["Comparison", "Effect, 95 % interval", "Unit", "Wanted", "Verdict"], rows)
        yield details(f"All {len(rows)} comparisons", parts) if len(rows) > 1 else parts
