"""What a statement is, and how its status follows from what was measured.

A simulation knows nothing of formulas: it gives measurements, each with the case it belongs to and a standard error. A
formula knows nothing of simulations: it maps a case to a number. Only `conclude` brings them together, so a wrong
formula is caught by the very check that lets the right one pass.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from math import isfinite, isnan
from typing import Any, Literal

Case = Mapping[str, float]
Relation = Literal["=", "<", ">"]
Agreement = Literal["agrees", "disagrees", "undecided"]
Status = Literal["holds", "holds, made exact", "refuted as printed, corrected", "answered", "fails", "undecided"]

MEANINGS: dict[Status, str] = {
    "holds": "the printed formula agrees with every measurement",
    "holds, made exact": "the print gives a direction, and it is right; we give the number",
    "refuted as printed, corrected": "the printed formula disagrees; the right one agrees with every measurement",
    "answered": "the print leaves it open; our answer agrees with every measurement",
    "fails": "no formula agrees with every measurement",
    "undecided": "the simulation is too coarse to tell",
}

STANDARD_ERRORS = 4.0
"""How many standard errors a measurement may lie from its formula: chance does that once in 16,000 checks."""

COARSEST = 0.1
"""A check whose tolerance exceeds this share of the predicted value cannot confirm an equation."""


@dataclass(frozen=True)
class Formula:
    """A formula to read and to compute.

    Parameters
    ----------
    text
        In the notation of `lacuna_paper.theory.notation`.
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
    broken
        Whether an assumption was broken on purpose; the formula should then disagree.
    """

    what: str
    case: Case
    value: float
    error: float
    scale: float = 0.0
    broken: bool = False


Simulation = Callable[[float, int], Iterable[Measurement]]
"""Given an effort (1 is what the page shows; less is faster and coarser) and a seed, the measurements."""


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
    proof
        Paragraphs.
    broken
        Which assumption is broken on purpose, and what happens.
    quoted
        The paper's own words, to the letter; all other texts are ours and quote nothing.
    simulate
        What measures it.
    printed
        The formula in print; None where the print gives none.
    right
        The right formula, where the print errs or leaves a number open; one of the two is always there.
    """

    id: str
    title: str
    place: str
    claim: str
    assumptions: tuple[str, ...]
    proof: tuple[str, ...]
    broken: str
    quoted: str
    simulate: Simulation
    printed: Formula | None = None
    right: Formula | None = None

    @property
    def valid(self) -> Formula:
        """The formula that should hold: the right one where it differs from the print."""
        formula = self.right or self.printed
        if formula is None:
            raise ValueError(f"the statement {self.id!r} has no formula at all")
        return formula


WORDS: dict[str, Any] = tomllib.loads(files(__package__).joinpath("appendix.toml").read_text(encoding="utf-8"))
"""All texts of the page."""

DECLARED: dict[str, Statement] = {}
"""Every declared statement by its name."""


def statement(
    name: str, *, printed: Formula | None = None, right: Formula | None = None
) -> Callable[[Simulation], Statement]:
    """Declare what a simulation measures as the statement of this name; its texts are in ``appendix.toml``."""
    [texts] = (texts for part in WORDS["parts"] for texts in part["statements"] if texts["id"] == name)
    assumptions = WORDS["settings"].get(texts.get("setting"), []) + texts.get("assumptions", [])

    def declare(simulate: Simulation) -> Statement:
        DECLARED[name] = Statement(
            id=name,
            title=texts["title"],
            place=texts["place"],
            claim=unwrapped(texts["claim"]),
            assumptions=tuple(unwrapped(text) for text in assumptions),
            proof=tuple(unwrapped(text) for text in texts["proof"].split("\n\n")),
            broken=unwrapped(texts["broken"]),
            quoted=texts.get("quoted", ""),
            simulate=simulate,
            printed=printed,
            right=right,
        )
        return DECLARED[name]

    return declare


def unwrapped(text: str) -> str:
    """Return a text of several lines as one."""
    return " ".join(text.split())


@dataclass(frozen=True)
class Check:
    """A formula's value next to a measured one."""

    measurement: Measurement
    relation: Relation
    predicted: float
    tolerance: float
    agreement: Agreement


@dataclass(frozen=True)
class Conclusion:
    """A statement with its status and the checks it follows from."""

    statement: Statement
    status: Status
    printed: tuple[Check, ...]
    right: tuple[Check, ...]
    broken: tuple[Check, ...]

    @property
    def valid(self) -> tuple[Check, ...]:
        """The checks of the formula that should hold, under the assumptions."""
        return self.right or self.printed

    @property
    def noticed(self) -> bool:
        """Whether breaking the assumption was noticed in every measurement made for it."""
        return bool(self.broken) and all(check.agreement == "disagrees" for check in self.broken)


def check_formula(formula: Formula, measurement: Measurement) -> Check:
    """Hold a formula against a measurement.

    Examples
    --------
    >>> half = Formula("1/2", lambda case: 0.5)
    >>> check_formula(half, Measurement("a coin", {}, 0.51, 0.01)).agreement
    'agrees'
    >>> check_formula(half, Measurement("a loaded coin", {}, 0.61, 0.01)).agreement
    'disagrees'
    >>> check_formula(half, Measurement("two tosses", {}, 1.0, 0.35)).agreement
    'undecided'
    """
    predicted = formula.value(measurement.case)
    tolerance = STANDARD_ERRORS * measurement.error
    agreement = _agreement(formula.relation, measurement.value - predicted, tolerance)
    coarse = tolerance > COARSEST * max(abs(predicted), measurement.scale)
    if formula.relation == "=" and agreement == "agrees" and coarse:
        agreement = "undecided"
    return Check(measurement, formula.relation, predicted, tolerance, agreement)


def _agreement(relation: Relation, gap: float, tolerance: float) -> Agreement:
    if isnan(gap) or not isfinite(tolerance):
        return "undecided"
    if relation == "=":
        return "agrees" if abs(gap) <= tolerance else "disagrees"
    if abs(gap) <= tolerance:
        return "undecided"
    return "agrees" if (gap > 0) == (relation == ">") else "disagrees"


def conclude(statement: Statement, measurements: Iterable[Measurement]) -> Conclusion:
    """Return the status that follows from what was measured.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from lacuna_paper.theory.on_updates import fractional_rate
    >>> third, half = Formula("1/3", lambda case: 1 / 3), Formula("1/2", lambda case: 1 / 2)
    >>> heads = replace(fractional_rate, title="The share of heads", printed=third, right=half)
    >>> conclude(heads, [Measurement("10,000 tosses", {}, 0.503, 0.005)]).status
    'refuted as printed, corrected'
    """
    measured = tuple(measurements)
    kept = [one for one in measured if not one.broken]
    printed = tuple(check_formula(statement.printed, one) for one in kept) if statement.printed else ()
    right = tuple(check_formula(statement.right, one) for one in kept) if statement.right else ()
    broken = tuple(check_formula(statement.valid, one) for one in measured if one.broken)
    return Conclusion(statement, _status(_overall(printed), _overall(right)), printed, right, broken)


def _overall(checks: Iterable[Check]) -> Agreement | None:
    """One agreement for all: one that disagrees decides, then one that is undecided; None without checks."""
    found = {check.agreement for check in checks}
    decisive: tuple[Agreement, ...] = ("disagrees", "undecided", "agrees")
    return next((agreement for agreement in decisive if agreement in found), None)


def _status(printed: Agreement | None, right: Agreement | None) -> Status:
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
