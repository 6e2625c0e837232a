"""The headline of the paper's page: what came out, in plain words and three numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from lacuna.paper.charts import optimum
from lacuna.paper.claims import CLAIMS, Finding
from lacuna.paper.claims_table import in_words
from lacuna.paper.evidence import BASELINES, DRAWS, MI_SYNTHETIC
from lacuna.paper.points import REWARD, Source, Wanted, by_rate
from lacuna.paper.verdicts import Basis, most_wrong_by_chance
from lacuna.quantities import duration
from lacuna.report.page import Text, numbers, paragraphs, when
from lacuna.report.styles import name_of


def headline(
    sources: Mapping[tuple[str, ...], Source], findings: Sequence[Finding], about: Mapping[str, Any],
    table: pl.DataFrame,
) -> Markup:  # fmt: skip
    """Make the headline, once for each reading and way of choosing settings; the page's switches decide which shows."""
    blocks = []
    for options, source in sources.items():
        here = [finding for finding in findings if in_words(finding.way) == options]
        told = _Told.of(source, Counter(finding.verdict for finding in here))
        chance = _by_chance(here) if source.selection == "held-out" else ""
        text = Markup('<p class="short">{}{}</p>').format(told.sentences(), chance)
        text += numbers(told.numbers(about, table))
        blocks.append(Markup("<div {}>{}</div>").format(when(*options), text))
    return Markup("\n").join(blocks) + _reading_hints(sources) + _what_more(about)


@dataclass(frozen=True)
class _Told:
    """What a headline tells: what multiple imputation earns where the paper looks closest, and how the claims fared."""

    verdicts: Mapping[str, int]
    basis: Basis
    rate: float = math.nan
    ours: Mapping[str, Any] | None = None
    best: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, source: Source, verdicts: Mapping[str, int]) -> _Told:
        """Read it from the runs; what was not run is left out."""
        basis = source.evidence.basis
        points = by_rate(source, Wanted.plain(MI_SYNTHETIC, *BASELINES))
        if points.is_empty():
            return cls(verdicts, basis)
        at = points.filter(pl.col("measure") == REWARD)
        at = at.filter((pl.col("x") - 0.4).abs() == (at["x"] - 0.4).abs().min()).sort("mean", descending=True)
        ours, others = (at.filter((pl.col("series") == name_of(MI_SYNTHETIC)) == mine) for mine in (True, False))
        if ours.is_empty() or others.is_empty():
            return cls(verdicts, basis)
        return cls(verdicts, basis, ours["x"].item(), ours.row(0, named=True), others.row(0, named=True))

    def sentences(self) -> str:
        """Say it in plain words."""
        held, failed, left = (self.verdicts[word] for word in ("supported", "not supported", "undecided"))
        claims = (
            f"Of the paper's {len(CLAIMS)} claims {held} {'holds' if held == 1 else 'hold'}, {failed} "
            f"{'does' if failed == 1 else 'do'} not, {left} {'stays' if left == 1 else 'stay'} undecided on "
            f"{self.basis.told}."
        )
        if self.ours is None or self.best is None:
            return claims
        name, best = self.best["series"], self.best["mean"]
        return (
            f"With {100 * self.rate:g} % of all values hidden, multiple imputation, ten guesses at a time, earns "
            f"{self.ours['mean']:.1f} per episode. The best baseline, {name[0].lower()}{name[1:]}, earns {best:.1f}; "
            f"whoever sees everything can earn {optimum():.1f}. {claims}"
        )

    def numbers(self, about: Mapping[str, Any], table: pl.DataFrame) -> Iterator[tuple[Text, Text]]:
        """Give the three numbers that matter, each with what it is."""
        if self.ours is not None:
            low, high = self.ours["low"], self.ours["high"]
            reach = "" if low is None else f", 95 % interval {low:.1f} to {high:.1f}"
            yield f"{self.ours['mean']:.1f}", f"reward per episode of {self.ours['series']}, θ = {self.rate:g}{reach}"
        yield Markup("{} <small>of {}</small>").format(self.verdicts["supported"], len(CLAIMS)), "claims hold"
        took = f", {duration(about['seconds'])}" if about.get("runs_made_now") == table.height else ""
        yield _large(int(table["steps"].sum())), f"steps in {table.height:,} runs{took}"


def _by_chance(findings: Sequence[Finding]) -> str:
    """How many of these verdicts may be wrong by chance."""
    decided = sum(finding.verdict != "undecided" for finding in findings)
    return (
        f" Of the {decided} verdicts at most {most_wrong_by_chance(findings):.1f} are expected to be wrong by chance."
    )


def _what_more(about: Mapping[str, Any]) -> Markup:
    """What a longer command would add, if there is one."""
    more = []
    if about.get("form") == "reduced":
        more.append(Markup("this is the reduced form of the study, and <code>--full</code> runs all of it"))
    if "held-out" not in about.get("selections", ["held-out"]):
        text = Markup("five trials leave much undecided, and <code>--honest</code> adds {}")
        fresh = sum(len(draw.fresh) for draw in DRAWS)
        more.append(text.format(Basis("", "held-out", fresh, len(DRAWS)).told))
    if not more:
        return Markup("")
    whole = Markup('<p class="note">More can be known: {}. What was run is not run again.</p>')
    return whole.format(Markup("; ").join(more))


def _reading_hints(sources: Mapping[tuple[str, ...], Source]) -> Markup:
    hints = {
        "episodic": "reaching the goal ends the episode, as the text of the paper says",
        "continuing": "nothing ends and arrivals are only counted, as behind the published figures",
        "as published": "each method at the best of its hyper-parameters, found on the very trials shown",
        "held out": "chosen on five trials, shown on fresh ones, in several independent draws; intervals are over the "
        "draws, so they cover the choice too",
    }
    used = dict.fromkeys(option for options in sources for option in options)
    text = Markup("; ").join(Markup("<strong>{}</strong>: {}").format(word, hints[word]) for word in used)
    return paragraphs(Markup('<span class="quiet">{}.</span>').format(text))


def _large(count: int) -> Markup:
    for size, word in ((10**9, "billion"), (10**6, "million")):
        if count >= size:
            return Markup("{} <small>{}</small>").format(f"{count / size:.3g}", word)
    return Markup("{}").format(f"{count:,}")
