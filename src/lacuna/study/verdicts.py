"""From one number per trial to a verdict: what is wanted of an effect, its interval, and how several are put together.

Intervals are Student's t at `LEVEL`. A claim that asks for several things at once is

- supported if the interval of each lies wholly where it is wanted: an intersection-union test, which needs no
  correction, as every part has to pass;
- not supported if the interval of any lies wholly elsewhere, at a level corrected for the number of parts
  (Bonferroni), as one of many may do so by chance;
- undecided otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lacuna.study.statistics import mean_interval

Verdict = Literal["supported", "not supported", "undecided"]

LEVEL = 0.95


@dataclass(frozen=True)
class Sample:
    """One number per trial, in the order of trials; not a number where something is missing, with words for what."""

    values: NDArray[np.float64]
    gaps: tuple[str, ...] = ()

    def __add__(self, other: Sample) -> Sample:
        return Sample(self.values + other.values, _united(self, other))

    def __sub__(self, other: Sample) -> Sample:
        return Sample(self.values - other.values, _united(self, other))

    def __truediv__(self, other: Sample) -> Sample:
        with np.errstate(divide="ignore", invalid="ignore"):
            return Sample(self.values / other.values, _united(self, other))


def average(samples: Sequence[Sample]) -> Sample:
    """Average several samples within each trial."""
    return Sample(np.mean([sample.values for sample in samples], axis=0), _united(*samples))


def _united(*samples: Sample) -> tuple[str, ...]:
    return tuple(dict.fromkeys(gap for sample in samples for gap in sample.gaps))


@dataclass(frozen=True)
class Region:
    """Where an effect must lie.

    Examples
    --------
    >>> print(Region(0), "|", Region(high=0.9), "|", Region(-5, 5), "|", Region(0, 10))
    above 0 | below 0.9 | within ±5 | between 0 and 10
    """

    low: float = -inf
    high: float = inf

    def __str__(self) -> str:
        if self.high == inf:
            return f"above {self.low:g}"
        if self.low == -inf:
            return f"below {self.high:g}"
        return f"within ±{self.high:g}" if self.low == -self.high else f"between {self.low:g} and {self.high:g}"

    def judge(self, low: float, high: float) -> Verdict:
        """Say whether an interval lies wholly inside, wholly outside, or across the border."""
        if self.low < low and high < self.high:
            return "supported"
        return "not supported" if high <= self.low or low >= self.high else "undecided"

    def clearance(self, effect: float) -> float:
        """Distance from the border; negative outside."""
        return min(effect - self.low, self.high - effect)


@dataclass(frozen=True)
class Comparison:
    """One thing that was compared: the effect, its interval at `LEVEL`, and what was wanted of it."""

    label: str
    effect: float | None
    low: float | None
    high: float | None
    unit: str
    wanted: str
    verdict: Verdict
    note: str = ""
    margin: float = field(default=-inf, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {name: value for name, value in vars(self).items() if name != "margin"}


class Asked(Protocol):
    """Something that gives a comparison at any level of confidence."""

    def answer(self, level: float) -> Comparison:
        """Compare, with an interval at the given level."""
        ...


@dataclass(frozen=True)
class Ask:
    """Whether the mean of a sample lies where it is wanted."""

    label: str
    sample: Sample
    wanted: Region
    unit: str

    def answer(self, level: float) -> Comparison:
        """Compare; undecided where something is missing, or where the trials say nothing about their spread."""
        blank = Comparison(self.label, None, None, None, self.unit, str(self.wanted), "undecided")
        if self.sample.gaps:
            return replace(blank, note="; ".join(self.sample.gaps))
        if not np.isfinite(self.sample.values).all():
            return replace(blank, note="not defined in every trial")
        effect, low, high, _ = mean_interval(self.sample.values, level, kind="t")
        if low is None or high is None:
            return replace(blank, effect=effect, note="a single trial gives no interval")
        # Figures that are the same in every trial may differ by rounding, which is no spread either.
        if high - low <= 1e-9 * max(1.0, abs(effect)):
            return replace(
                blank, effect=effect, low=low, high=high, note="the same in every trial, so of unknown spread"
            )
        return replace(
            blank, effect=effect, low=low, high=high, verdict=self.wanted.judge(low, high),
            margin=self.wanted.clearance(effect) / (high - low),
        )  # fmt: skip


@dataclass(frozen=True)
class OneOf:
    """Whether at least one of several holds; the one that holds best is shown, its interval wide enough for that."""

    label: str
    asked: Sequence[Ask]

    def answer(self, level: float) -> Comparison:
        """Supported if one holds at a level corrected for their number; not supported if all fail."""
        strict = [ask.answer(1 - (1 - level) / len(self.asked)) for ask in self.asked]
        best = max(strict, key=lambda found: found.margin)
        verdict: Verdict = "undecided"
        if any(found.verdict == "supported" for found in strict):
            verdict = "supported"
        elif all(ask.answer(level).verdict == "not supported" for ask in self.asked):
            verdict = "not supported"
        return replace(best, label=f"{self.label}: {best.label}", verdict=verdict)


@dataclass(frozen=True)
class Finding:
    """What came of a claim: the verdict, and the part of it that decided.

    `effect`, `low`, `high` and `unit` are of the deciding part: the one closest to failing, or farthest on the wrong
    side, measured in widths of its interval. They are None if nothing could be compared.
    """

    claim: str
    reading: str
    selection: str
    verdict: Verdict
    effect: float | None
    low: float | None
    high: float | None
    unit: str
    trials: int
    parts: tuple[Comparison, ...]
    note: str

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return vars(self) | {"parts": [part.as_dict() for part in self.parts]}


def decide(claim: str, reading: str, selection: str, trials: int, asked: Sequence[Asked]) -> Finding:
    """Put the parts of a claim together, all of which have to hold.

    Examples
    --------
    >>> better = Ask("new minus old", Sample(np.array([4.0, 5.0, 6.0])), Region(0), "reward per episode")
    >>> decide("new-is-better", "episodic", "as-published", 3, [better]).verdict
    'supported'
    """
    parts = tuple(ask.answer(LEVEL) for ask in asked)
    refuted = [ask.answer(1 - (1 - LEVEL) / len(asked)).verdict == "not supported" for ask in asked]
    verdict: Verdict = "undecided"
    if any(refuted):
        verdict = "not supported"
    elif all(part.verdict == "supported" for part in parts):
        verdict = "supported"
    seen = [part for part in parts if part.effect is not None]
    shown = min(seen, key=lambda part: part.margin, default=parts[0])
    return Finding(
        claim, reading, selection, verdict, shown.effect, shown.low, shown.high, shown.unit, trials, parts,
        _note(verdict, shown, parts, sum(refuted)),
    )  # fmt: skip


def _note(verdict: Verdict, shown: Comparison, parts: Sequence[Comparison], refuted: int) -> str:
    """Say which part is shown, and why the verdict is no better."""
    here = "" if len(parts) == 1 else f"{shown.label}, wanted {shown.wanted}. "
    if verdict == "supported":
        return f"{here}All {len(parts)} comparisons hold." if here else ""
    if verdict == "not supported":
        return f"{here}{refuted} of {len(parts)} comparisons fail." if here else ""
    gaps = list(dict.fromkeys(part.note for part in parts if part.note))
    if gaps:
        more = f", and {len(gaps) - 3} more" if len(gaps) > 3 else ""
        return f"{here}Not all could be compared: {'; '.join(gaps[:3])}{more}."
    held = sum(part.verdict == "supported" for part in parts)
    return f"{here}{held} of {len(parts)} comparisons hold; no other fails beyond doubt." if here else ""
