"""Computed titles of charts. They state only differences that the trials establish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from lacuna.quantities import number_text
from lacuna.study.outcomes import Outcomes
from lacuna.study.statistics import LEVEL, Values, holm, paired_difference, paired_p_value
from lacuna.study.summaries import Scores, leaders

_MOST = 3


def on_leaders(best: Mapping[str, str | None]) -> str:
    """Say who is clearly best, in how many tasks; `best` is what `leaders` gave.

    Examples
    --------
    >>> on_leaders({"mcar:0.2": "mine", "mcar:0.4": "mine", "mcar:0.6": None})
    'mine is clearly best in 2 of 3 tasks; in the other no method is'
    >>> on_leaders({"mcar:0.2": None, "mcar:0.4": None})
    'no method is clearly best in any of 2 tasks'
    """
    counts = Counter(name for name in best.values() if name is not None).most_common()
    n, left = len(best), sum(name is None for name in best.values())
    if not counts:
        return "no method is clearly best" + (f" in any of {n} tasks" if n > 1 else "")
    if n == 1:
        return f"{counts[0][0]} is clearly best"
    first, *others = counts
    parts = [f"{first[0]} is clearly best in {first[1]} of {n} tasks"]
    parts += [f"{name} in {k}" for name, k in others]
    return ", ".join(parts) + (f"; in the other{f' {left}' if left > 1 else ''} no method is" if left else "")


def on_rewards(values: pl.DataFrame, outcomes: Outcomes, measure: str) -> str:
    """Say which method earns most over whole runs."""
    names = outcomes.methods
    if len(names) < 2:
        return f"{measure[0].upper()}{measure[1:]}" + (f" of {names[0]}" if names else "")
    return _sentence(on_leaders(leaders(values, names)))


def on_curves(trials: pl.DataFrame, outcomes: Outcomes) -> str:
    """Say who leads a tenth into the run, and who at its end; `trials` is what `trial_curves` gave."""
    names = outcomes.methods
    if len(names) < 2:
        return "Learning curves"
    early, late = (on_leaders(leaders(_at(trials, share), names)) for share in (0.1, 1.0))
    if early == late:
        return f"A tenth into the run as at its end, {late}"
    return f"A tenth into the run, {early}; at the end, {late}"


def on_differences(found: pl.DataFrame, against: str, methods: Sequence[str]) -> str:
    """Say who is clearly ahead of a method, and who behind; `found` is what `differences` gave."""
    n = found["task"].n_unique()
    counts = {}
    for name in methods:
        clear = found.filter(pl.col("clear"), series=name)["mean"]
        counts[name] = (int((clear > 0).sum()), int((clear < 0).sum()))
    told = sorted((name for name in counts if any(counts[name])), key=lambda name: (-counts[name][0], counts[name][1]))
    of = f" of {n} tasks" if n > 1 else ""
    if not told:
        return f"No clear difference from {against}" + (f" in any{of}" if of else "")
    if not of:
        parts = [f"{name} is clearly {'ahead of' if counts[name][0] else 'behind'} {against}" for name in told]
    else:
        parts = [_score(name, *counts[name], of) for name in told]
    more = f"; and {len(parts) - _MOST} more" if len(parts) > _MOST else ""
    shown = "; ".join(parts[:_MOST]) + more
    return shown if not of else f"Against {against}, clearly: {shown}"


def on_scores(scores: Scores, outcomes: Outcomes) -> str:
    """Say whose interquartile mean is clearly highest."""
    best, n = scores.leader(outcomes.methods), len(scores.tasks)
    if best is None:
        return f"Over {n} tasks, no method's interquartile mean is clearly highest"
    found = {row["series"]: row["mean"] for row in scores.interquartile_means().iter_rows(named=True)}
    rest = {name: found[name] for name in outcomes.methods if name != best and name in found}
    second = max(rest, key=lambda name: rest[name])
    return (
        f"Over {n} tasks {best} scores clearly highest: {number_text(found[best], '.2f')}, then {second}, "
        f"{number_text(rest[second], '.2f')}"
    )


def on_profile(scores: Scores, outcomes: Outcomes, level: float = 0.75) -> str:
    """Say who reaches a score most often, if clearly more often than the next."""
    shares = {name: scores.reached(name, level) for name in outcomes.methods if name in scores.of}
    ranked = sorted(shares, key=lambda name: -shares[name].mean())
    if len(ranked) > 1:
        first, second = ranked[:2]
        found = paired_difference(shares[first], shares[second])
        if found.low is not None and found.low > 0:
            a, b = (f"{100 * shares[name].mean():.0f} %" for name in (first, second))
            return f"{first} reaches a score of {level:g} most often: in {a} of runs, {second} in {b}"
        return f"No clear difference between the best in how often they reach a score of {level:g}"
    return "How often each score is reached"


class Lead(NamedTuple):
    """In how many of some cases one series is clearly ahead of every other, and clearly behind at least one."""

    ahead: int
    behind: int
    cases: int

    @property
    def open(self) -> int:
        """In how many it is neither."""
        return self.cases - self.ahead - self.behind


def count_leads(cases: Sequence[tuple[Values, Sequence[Values]]]) -> Lead:
    """Compare one series with others, trial by trial, in several cases.

    To be ahead of every other, the largest p value counts; to be behind at least one, the smallest, times their number.
    Cases are corrected by Holm's method.

    Examples
    --------
    >>> mine, theirs, other = [5.0, 6.0, 7.0], [1.0, 2.1, 3.2], [9.0, 1.0, 4.0]
    >>> count_leads([(mine, [theirs])]), count_leads([(theirs, [mine])]), count_leads([(mine, [theirs, other])]).open
    (Lead(ahead=1, behind=0, cases=1), Lead(ahead=0, behind=1, cases=1), 1)
    """
    p_values, ahead = [], []
    for one, others in cases:
        p = [paired_p_value(one, other) for other in others]
        more = [np.mean(one) > np.mean(other) for other in others]
        first = max((p[i] if more[i] else 1.0) for i in range(len(others)))
        last = len(others) * min((1.0 if more[i] else p[i]) for i in range(len(others)))
        p_values.append(min(first, last, 1.0))
        ahead.append(first <= last)
    clear = [p <= 1 - LEVEL for p in holm(p_values)] if p_values else []
    won = sum(is_clear and is_ahead for is_clear, is_ahead in zip(clear, ahead, strict=True))
    return Lead(won, sum(clear) - won, len(cases))


def on_lead(who: str, whom: str, found: Lead, where: str) -> str:
    """Say how often a series is clearly ahead of all of some others, and how often clearly behind one of them.

    Examples
    --------
    >>> on_lead("mine", "every baseline", Lead(2, 0, 9), "rates")
    'mine is clearly ahead of every baseline at 2 of 9 rates, and nowhere clearly behind'
    >>> on_lead("mine", "every baseline", Lead(0, 1, 9), "rates")
    'mine is clearly ahead of every baseline at none of 9 rates, and clearly behind one at 1'
    """
    behind = f"clearly behind one at {found.behind}" if found.behind else "nowhere clearly behind"
    return f"{who} is clearly ahead of {whom} at {found.ahead or 'none'} of {found.cases} {where}, and {behind}"


def _at(trials: pl.DataFrame, share: float) -> pl.DataFrame:
    """The values of curves at about a share of the run, where all series have one."""
    parts = []
    for found in trials.partition_by("task", maintain_order=True):
        everyone = found.group_by("x").agg(n=pl.struct("series", "trial").n_unique()).sort("x")
        common = everyone.filter(pl.col("n") == everyone["n"].max())["x"]
        wanted = share * found["x"].max()  # type: ignore[operator]
        parts.append(found.filter(pl.col("x") == min(common, key=lambda x: abs(x - wanted))))
    return pl.concat(parts) if parts else trials


def _score(name: str, ahead: int, behind: int, of: str) -> str:
    words = [f"ahead in {ahead}{of}"] * (ahead > 0) + [f"behind in {behind}{'' if ahead else of}"] * (behind > 0)
    return f"{name} {', '.join(words)}"


def _sentence(text: str) -> str:
    return text if text[:2] != "no" else f"No{text[2:]}"
