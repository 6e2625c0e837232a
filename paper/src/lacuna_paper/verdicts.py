"""From one number per trial to a verdict: what is wanted of an effect, its interval, and how several are put together.

Intervals are Student's t at `LEVEL`. A claim that asks for several things at once is

- supported if the interval of each lies wholly where it is wanted: an intersection-union test, which needs no
  correction, as every part has to pass;
- not supported if the interval of any lies wholly elsewhere, at a level corrected for the number of parts
  (Bonferroni), as one of many may do so by chance;
- undecided otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from math import inf
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lacuna.report import number_text
from lacuna.study import LEVEL, ROUNDING, mean_interval

Verdict = Literal["supported", "not supported", "undecided"]


@dataclass(frozen=True)
class Sample:
    """One number per trial, in the order of trials: NaN where something is missing, and `gaps` says what."""

    values: NDArray[np.float64]
    gaps: tuple[str, ...] = ()

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
    >>> print(Region(0), "|", Region(high=0.9), "|", Region(-5, 5), "|", Region(-1, 10))
    above 0 | below 0.9 | within ±5 | between −1 and 10
    """

    low: float = -inf
    high: float = inf

    def __str__(self) -> str:
        low, high = number_text(self.low, "g"), number_text(self.high, "g")
        if self.high == inf:
            return f"above {low}"
        if self.low == -inf:
            return f"below {high}"
        return f"within ±{high}" if self.low == -self.high else f"between {low} and {high}"

    def judge(self, low: float, high: float) -> Verdict:
        """Say whether an interval lies wholly inside, wholly outside, or across the border."""
        if self.low < low and high < self.high:
            return "supported"
        return "not supported" if high <= self.low or low >= self.high else "undecided"

    def clearance(self, effect: float) -> float:
        """Distance from the border; negative outside."""
        return min(effect - self.low, self.high - effect)


@dataclass(frozen=True)
class Answer:
    """What came of one comparison: the effect, its interval, and what was wanted of it."""

    label: str
    effect: float | None
    low: float | None
    high: float | None
    unit: str
    wanted: str
    verdict: Verdict
    note: str = ""
    margin: float = field(default=-inf, repr=False)
    region: Region = field(default=Region(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {name: value for name, value in vars(self).items() if name not in ("margin", "region")}


class Asked(Protocol):
    """A question that can be answered at any level of confidence."""

    def answer(self, level: float) -> Answer:
        """Compare, with an interval at the given level."""
        ...


@dataclass(frozen=True)
class Ask:
    """Whether the mean of a sample lies where it is wanted."""

    label: str
    sample: Sample
    wanted: Region
    unit: str

    def answer(self, level: float) -> Answer:
        """Compare; undecided where something is missing, or where the trials say nothing about their spread."""
        blank = Answer(self.label, None, None, None, self.unit, str(self.wanted), "undecided", region=self.wanted)
        if self.sample.gaps:
            return replace(blank, note="; ".join(self.sample.gaps))
        if not np.isfinite(self.sample.values).all():
            return replace(blank, note="not defined in every trial")
        effect, low, high, n = mean_interval(self.sample.values, level)
        clearance = self.wanted.clearance(effect)
        # Differences of figures that are the same in every trial may be of no more than rounding, which is no spread.
        if low is None or high is None or high - low <= ROUNDING * max(1.0, abs(effect)):
            alone = "a single trial gives no interval"
            note = alone if n == 1 else "the same in every trial, so of unknown spread"
            return replace(blank, effect=effect, note=note, margin=inf if clearance > 0 and n > 1 else -inf)
        return replace(
            blank, effect=effect, low=low, high=high, verdict=self.wanted.judge(low, high),
            margin=clearance / (high - low),
        )  # fmt: skip


@dataclass(frozen=True)
class OneOf:
    """Whether at least one of several holds; the one that holds best is shown, its interval wide enough for that."""

    label: str
    asked: Sequence[Ask]

    def answer(self, level: float) -> Answer:
        """Supported if one holds at a level corrected for their number; not supported if all fail."""
        strict = [ask.answer(1 - (1 - level) / len(self.asked)) for ask in self.asked]
        best = max(strict, key=lambda found: found.margin)
        verdict: Verdict = "undecided"
        if any(found.verdict == "supported" for found in strict):
            verdict = "supported"
        elif all(ask.answer(level).verdict == "not supported" for ask in self.asked):
            verdict = "not supported"
        return replace(best, label=f"{self.label}: {best.label}", verdict=verdict)


class Basis(NamedTuple):
    """What findings rest on: which runs, how settings were chosen, on how many trials they report, in how many draws.

    Intervals are over trials if there is one draw, and over the means of the draws if there are several.
    """

    reading: str
    selection: str
    trials: int
    draws: int = 1

    @property
    def in_words(self) -> str:
        """The trials in words.

        Examples
        --------
        >>> Basis("episodic", "as-published", 5).in_words, Basis("episodic", "held-out", 160, 8).in_words
        ('5 trials', '160 fresh trials in 8 draws')
        """
        fresh = "fresh " if self.selection == "held-out" else ""
        return f"{self.trials} {fresh}trials" + (f" in {self.draws} draws" if self.draws > 1 else "")


@dataclass(frozen=True)
class Finding:
    """What came of a claim: the verdict, and the part of it that decided.

    `effect`, `low`, `high` and `unit` are of the deciding part. If the claim is not supported, it is the refuted part
    farthest on the wrong side; if it is undecided, the part closest to failing among those that do not hold; if it is
    supported, the part closest to failing. Distances are measured in widths of the interval. All are None if nothing
    could be compared.
    """

    claim: str
    basis: Basis
    verdict: Verdict
    effect: float | None
    low: float | None
    high: float | None
    unit: str
    parts: tuple[Answer, ...]
    note: str
    deciding: Answer

    @property
    def way(self) -> tuple[str, str]:
        """The reading of an episode's end, and the way of choosing settings."""
        return self.basis.reading, self.basis.selection

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        plain = {name: value for name, value in vars(self).items() if name not in ("basis", "parts", "deciding")}
        return plain | self.basis._asdict() | {"parts": [part.as_dict() for part in self.parts]}


def decide(claim: str, basis: Basis, asked: Sequence[Asked]) -> Finding:
    """Put the parts of a claim together, all of which have to hold.

    Examples
    --------
    >>> better = Ask("new minus old", Sample(np.array([4.0, 5.0, 6.0])), Region(0), "reward per episode")
    >>> decide("new-is-better", Basis("episodic", "as-published", 3), [better]).verdict
    'supported'
    """
    parts = tuple(ask.answer(LEVEL) for ask in asked)
    corrected = 1 - (1 - LEVEL) / len(asked)
    refuted = [part for part, ask in zip(parts, asked, strict=True) if ask.answer(corrected).verdict == "not supported"]
    left = [part for part in parts if part.verdict != "supported"]
    verdict: Verdict = "not supported" if refuted else "undecided" if left else "supported"
    # A part that could not be compared has nothing to show; then the best that there is to show stands in.
    groups = ([part for part in group if part.effect is not None] for group in (refuted or left, parts))
    shown = min(next(filter(None, groups), parts[:1]), key=lambda part: part.margin)
    return Finding(
        claim, basis, verdict, shown.effect, shown.low, shown.high, shown.unit, parts,
        _note(verdict, shown, parts, len(refuted)), shown,
    )  # fmt: skip


class FullStudy(NamedTuple):
    """The verdicts of the full study that comes with this version of lacuna: 34,560 runs for each reading, and more."""

    command: str
    finished: str
    trials: dict[str, str]
    """What the verdicts rest on, by the way of choosing settings."""
    verdicts: dict[str, dict[str, Verdict]]
    """By claim, then by way, written as ``reading selection``."""

    @classmethod
    def read(cls) -> FullStudy:
        """Read the file that lies beside this module.

        Examples
        --------
        >>> FullStudy.read().of("mcar-mi-robust", ("episodic", "held-out"))
        'undecided'
        """
        return cls(**json.loads(files(__package__).joinpath("full_study.json").read_text(encoding="utf-8")))

    def of(self, claim: str, way: tuple[str, str]) -> Verdict | None:
        """Return its verdict on a claim; None if it has none."""
        return self.verdicts.get(claim, {}).get(" ".join(way))


def in_brief(results: dict[str, Any]) -> dict[str, Any]:
    """Cut what ``claims.json`` says of a full study down to its verdicts: the content of ``full_study.json``."""
    verdicts: dict[str, dict[str, str]] = {}
    trials: dict[str, str] = {}
    for found in results["findings"]:
        way = f"{found['reading']} {found['selection']}"
        verdicts.setdefault(found["claim"], {})[way] = found["verdict"]
        trials[found["selection"]] = Basis("", found["selection"], found["trials"], found["draws"]).in_words
    about = {name: results["about"][name] for name in ("command", "finished")}
    return about | {"trials": trials, "verdicts": verdicts}


def most_wrong_by_chance(findings: Sequence[Finding]) -> float:
    """Bound the number of verdicts that are expected to be wrong by chance.

    A claim that is false passes for true with a probability of at most (1 - `LEVEL`)/2, when the part that makes it
    false lies on the border of its region; a claim that is true is refuted with a probability of at most 1 - `LEVEL`,
    over all its parts. Undecided is never wrong. The bound holds where intervals cover what they say: held out, not as
    published, where settings are chosen on the trials that are reported; and not where a method gets stuck so rarely
    that no trial shows it, see `unseen_share`.

    Examples
    --------
    >>> better = Ask("new minus old", Sample(np.array([4.0, 5.0, 6.0])), Region(0), "reward per episode")
    >>> finding = decide("new-is-better", Basis("episodic", "held-out", 60, 3), [better])
    >>> round(most_wrong_by_chance([finding] * 20), 9)
    0.5
    """
    wrong = {"supported": (1 - LEVEL) / 2, "not supported": 1 - LEVEL, "undecided": 0.0}
    return sum(wrong[finding.verdict] for finding in findings)


def _note(verdict: Verdict, shown: Answer, parts: Sequence[Answer], refuted: int) -> str:
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
