"""Slow, obvious twin of the allocation of probabilities, written from its description. Imports nothing of lacuna."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor

WHOLE = 2**32
Rows = list[list[Fraction]]


def mean(rows: Rows) -> list[Fraction]:
    return [sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)]


def exponential(x: Fraction) -> Fraction:
    """e**x to 50 digits."""
    with localcontext(prec=50):
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


def normalised(weights: list[Fraction]) -> list[Fraction]:
    return [w / sum(weights) for w in weights] if sum(weights) else [Fraction(1, len(weights))] * len(weights)


def votes(rows: Rows, vote: str, epsilon: Fraction) -> list[Fraction]:
    """Probabilities when every row votes for its best entries."""
    n = len(rows[0])
    cast = [sum((Fraction(row[i] == max(row), row.count(max(row))) for row in rows), Fraction(0)) for i in range(n)]
    weights = cast
    if vote == "majority":
        weights = [Fraction(x == max(cast)) for x in cast]
    elif vote == "softmax":
        weights = [exponential(x) if x else Fraction(0) for x in cast]
    elif vote == "average":
        weights = [Fraction(x == max(mean(rows))) for x in mean(rows)]
    return [(1 - epsilon) * p + epsilon / n for p in normalised(weights)]


def softmax(rows: Rows, temperature: Fraction) -> list[Fraction]:
    """Mean of the softmax of each row."""
    return mean([normalised([exponential((x - max(row)) / temperature) for x in row]) for row in rows])


def logistic(rows: Rows, b: Fraction, log_c: Fraction, lo: Fraction, hi: Fraction) -> list[Fraction]:
    """Mean of the logistic function of each row's difference, between the bounds of action 1."""
    second = [lo + (hi - lo) / (1 + exponential(log_c - b * (row[1] - row[0]))) for row in rows]
    return mean([[1 - p, p] for p in second])


def nearest(p: Fraction) -> int:
    return floor(p * WHOLE + Fraction(1, 2))


def projected(wanted: Sequence[int], least: Sequence[int], most: Sequence[int]) -> list[int]:
    """The wanted units, all moved by the largest shift that fits; what is left, to the first actions with room."""
    actions = range(len(wanted))

    def moved(shift: int) -> list[int]:
        return [min(max(wanted[a] + shift, least[a]), most[a]) for a in actions]

    # The sum is linear between the shifts at which an action meets a bound.
    corners = sorted({least[a] - wanted[a] for a in actions} | {most[a] - wanted[a] for a in actions})
    shift = max(corner for corner in corners if sum(moved(corner)) <= WHOLE)
    slope = sum(moved(shift + 1)) - sum(moved(shift))
    if slope:
        shift += (WHOLE - sum(moved(shift))) // slope
    units = moved(shift)
    for a in sorted(actions, key=lambda a: (units[a] == 0, a)):
        if sum(units) < WHOLE and units[a] < most[a]:
            units[a] += 1
    return units
