"""What a statement is, and how a verdict follows from what was measured.

A simulation knows nothing of formulas: it gives measurements, each with the case it belongs to and a standard error. A
formula knows nothing of simulations: it maps a case to a number. Only `judge` brings them together, so a wrong formula
is caught by the very comparison that lets the right one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Literal

Case = Mapping[str, float]
Relation = Literal["=", "<", ">"]
Outcome = Literal["agrees", "disagrees", "undecided"]
Verdict = Literal["holds", "holds, made exact", "refuted as printed, corrected", "answered", "fails", "undecided"]

MEANINGS: dict[Verdict, str] = {
    "holds": "the printed formula agrees with every measurement",
    "holds, made exact": "the print gives a direction, and it is right; we give the number",
    "refuted as printed, corrected": "the printed formula disagrees; the right one agrees with every measurement",
    "answered": "the print leaves it open; our answer agrees with every measurement",
    "fails": "no formula agrees with every measurement",
    "undecided": "the simulation is too coarse to tell",
}

STANDARD_ERRORS = 4.0
"""How many standard errors a measurement may lie from its formula: chance does that once in 16,000 comparisons."""

COARSEST = 0.1
"""A comparison whose tolerance exceeds this share of the predicted value cannot confirm an equation."""


@dataclass(frozen=True)
class Formula:
    """A formula to read and to compute.

    Parameters
    ----------
    text
        In the notation of `lacuna.theory.notation`.
    value
        Its value in a case.
    relation
        Whether the measured quantity is claimed to equal the value, or to lie below or above it.
    """

    text: str
    value: Callable[[Case], float]
    relation: Relation = "="


@dataclass(frozen=True)
class Measurement:
    """A number from a simulation.

    Parameters
    ----------
    what
        The quantity and its case, in words.
    case
        The parameters that formulas need.
    value, error
        The measured number and its standard error; where nothing is random, a bound on rounding or on a remainder.
    scale
        What a tolerance is compared with when the predicted value is near zero; 0 compares with the prediction alone.
    """

    what: str
    case: Case
    value: float
    error: float
    scale: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """What a simulation gives: measurements under the assumptions, and with one of them broken on purpose."""

    kept: tuple[Measurement, ...]
    broken: tuple[Measurement, ...]


@dataclass(frozen=True)
class Statement:
    """One statement of the appendix.

    Parameters
    ----------
    id, title, place
        A short name, a title, and where the statement stands in the paper.
    claim
        What it says, in our words.
    assumptions
        What it assumes.
    printed
        The formula in print; None where the print gives none.
    right
        The right formula, where the print errs or leaves a number open; one of the two is always there.
    proof
        Paragraphs.
    broken
        Which assumption is broken on purpose, and what happens.
    simulate
        Given an effort (1 is what the page shows; less is faster and coarser) and a seed, the evidence.
    quoted
        The paper's own words, to the letter; all other texts are ours and quote nothing.
    """

    id: str
    title: str
    place: str
    claim: str
    assumptions: tuple[str, ...]
    printed: Formula | None
    right: Formula | None
    proof: tuple[str, ...]
    broken: str
    simulate: Callable[[float, int], Evidence]
    quoted: str = ""

    @property
    def valid(self) -> Formula:
        """The formula that should hold: the right one where it differs from the print."""
        formula = self.right or self.printed
        if formula is None:
            raise ValueError(f"the statement {self.id!r} has no formula at all")
        return formula


@dataclass(frozen=True)
class Comparison:
    """A formula's value next to a measured one."""

    measurement: Measurement
    relation: Relation
    predicted: float
    tolerance: float
    outcome: Outcome


@dataclass(frozen=True)
class Judgement:
    """A statement with its verdict and the comparisons it follows from."""

    statement: Statement
    verdict: Verdict
    printed: tuple[Comparison, ...]
    right: tuple[Comparison, ...]
    broken: tuple[Comparison, ...]

    @property
    def breaks(self) -> bool:
        """Whether breaking the assumption was noticed in every measurement made for it."""
        return bool(self.broken) and all(comparison.outcome == "disagrees" for comparison in self.broken)


def compare(formula: Formula, measurement: Measurement) -> Comparison:
    """Hold a formula against a measurement.

    Examples
    --------
    >>> half = Formula("1/2", lambda case: 0.5)
    >>> compare(half, Measurement("a coin", {}, 0.51, 0.01)).outcome
    'agrees'
    >>> compare(half, Measurement("a loaded coin", {}, 0.61, 0.01)).outcome
    'disagrees'
    >>> compare(half, Measurement("two throws", {}, 1.0, 0.35)).outcome
    'undecided'
    """
    predicted = formula.value(measurement.case)
    tolerance = STANDARD_ERRORS * measurement.error
    outcome = _outcome(formula.relation, measurement.value - predicted, tolerance)
    if (
        formula.relation == "="
        and outcome == "agrees"
        and tolerance > COARSEST * max(abs(predicted), measurement.scale)
    ):
        outcome = "undecided"
    return Comparison(measurement, formula.relation, predicted, tolerance, outcome)


def _outcome(relation: Relation, gap: float, tolerance: float) -> Outcome:
    if isnan(gap) or isnan(tolerance) or not isfinite(tolerance):
        return "undecided"
    if relation == "=":
        return "agrees" if abs(gap) <= tolerance else "disagrees"
    signed = gap if relation == ">" else -gap
    if abs(signed) <= tolerance:
        return "undecided"
    return "agrees" if signed > 0 else "disagrees"


def judge(statement: Statement, evidence: Evidence) -> Judgement:
    """Give the verdict that follows from the evidence.

    Examples
    --------
    >>> coin = Statement(
    ...     "coin", "A coin", "", "Heads come up a third of the time.", (), Formula("1/3", lambda case: 1 / 3),
    ...     Formula("1/2", lambda case: 1 / 2), (), "", lambda effort, seed: Evidence((), ()),
    ... )
    >>> judge(coin, Evidence((Measurement("10,000 throws", {}, 0.503, 0.005),), ())).verdict
    'refuted as printed, corrected'
    """
    printed = tuple(compare(statement.printed, one) for one in evidence.kept) if statement.printed else ()
    right = tuple(compare(statement.right, one) for one in evidence.kept) if statement.right else ()
    broken = tuple(compare(statement.valid, one) for one in evidence.broken)
    return Judgement(statement, _verdict(_all(printed), _all(right)), printed, right, broken)


def _all(comparisons: tuple[Comparison, ...]) -> Outcome | None:
    """One outcome for all: one that disagrees decides, then one that is undecided; None without comparisons."""
    outcomes = {comparison.outcome for comparison in comparisons}
    if not outcomes:
        return None
    if "disagrees" in outcomes:
        return "disagrees"
    return "undecided" if "undecided" in outcomes else "agrees"


def _verdict(printed: Outcome | None, right: Outcome | None) -> Verdict:
    decisive = right or printed
    if decisive is None or "undecided" in (printed, right):
        return "undecided"
    if decisive == "disagrees":
        return "fails"
    if right is None:
        return "holds"
    if printed is None:
        return "answered"
    return "holds, made exact" if printed == "agrees" else "refuted as printed, corrected"
