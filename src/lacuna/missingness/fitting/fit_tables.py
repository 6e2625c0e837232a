"""The tables of a fit: rates, rates by observed values, patterns, persistence, bursts and tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lacuna.missingness.fitting.chain import ChainFit, predicted
from lacuna.missingness.fitting.estimates import independence, share_of
from lacuna.missingness.fitting.mask_log import Column, Flags, Floats, MaskLog
from lacuna.missingness.fitting.mask_models import pattern_counts


class Rate(NamedTuple):
    """How often a component is missing."""

    component: str
    rate: float
    se: float
    missing: int


class RateGiven(NamedTuple):
    """How often a component is missing given a value of another, or of the action; None stands for missing."""

    driver: str
    value: Any
    component: str
    rate: float
    se: float
    rows: int


class PatternShare(NamedTuple):
    """How often a pattern comes (1: hidden), and how often it would if components went missing independently."""

    pattern: str
    hidden: str
    share: float
    se: float
    if_independent: float
    rows: int


class Persistence(NamedTuple):
    """How often a component is missing after a row in which it was missing, and after one in which it was seen.

    `p` is the p-value of no difference between the two; None if it cannot be tested.
    """

    component: str
    after_missing: float
    se_after_missing: float
    after_seen: float
    se_after_seen: float
    p: float | None


class BurstParameter(NamedTuple):
    """A parameter of a hidden on/off chain; the standard error is NaN if the masks do not identify it."""

    kind: str
    component: str
    parameter: str
    value: float
    se: float


class DriverTest(NamedTuple):
    """Whether a component goes missing more often at some values of a driver; p is None if that cannot be tested."""

    component: str
    driver: str
    statistic: float | None
    df: tuple[int, int] | None
    p: float | None


def _everywhere(log: MaskLog) -> Flags:
    return np.ones(log.n, dtype=np.bool_)


def _drivers(log: MaskLog) -> Iterator[Column]:
    """Components with several values, then the action."""
    every = (*log.columns, *(() if log.action is None else (log.action,)))
    yield from (column for column in every if len(column.labels) > 1)


def rate_rows(log: MaskLog) -> Iterator[Rate]:
    """How often each component is missing."""
    for j, name in enumerate(log.names):
        found = share_of(log.hidden[:, j], _everywhere(log), log.blocks)
        if found is not None:
            yield Rate(name, found.share, found.se, int(log.hidden[:, j].sum()))


def rates_given(log: MaskLog) -> Iterator[RateGiven]:
    """How often each component is missing at each value of every driver, and when the driver is missing itself."""
    for column in _drivers(log):
        for j, name in enumerate(log.names):
            if name == column.name and column is not log.action:
                continue
            for v, label in enumerate((*column.labels, None)):
                among = column.values == (v if label is not None else -1)
                found = share_of(log.hidden[:, j], among, log.blocks)
                if found is not None:
                    yield RateGiven(column.name, label, name, *found)


def pattern_rows(log: MaskLog) -> Iterator[PatternShare]:
    """How often each pattern comes."""
    rates = log.hidden.mean(axis=0)
    for pattern in pattern_counts(log.hidden):
        lost = np.array([digit == "1" for digit in pattern])
        found = share_of((log.hidden == lost).all(axis=1), _everywhere(log), log.blocks)
        if found is not None:
            names = ", ".join(name for name, gone in zip(log.names, lost, strict=True) if gone) or "nothing"
            independent = float(np.where(lost, rates, 1 - rates).prod())
            yield PatternShare(pattern, names, found.share, found.se, independent, found.rows)


def persistence_rows(log: MaskLog) -> Iterator[Persistence]:
    """How often each component is missing again, for components that are missing in some rows only."""
    follows = ~log.begins
    for j, name in enumerate(log.names):
        now, before = log.hidden[:, j], np.roll(log.hidden[:, j], 1)
        again, anew = (share_of(now, follows & was, log.blocks) for was in (before, ~before))
        none = np.zeros((int(follows.sum()), 0))
        test = independence(now[follows], before[follows].astype(np.int64), none, log.blocks[follows])
        if again is not None and anew is not None:
            yield Persistence(name, again.share, again.se, anew.share, anew.se, None if test is None else test.p)


def burst_rows(log: MaskLog, chains: dict[str, tuple[ChainFit, ...]]) -> Iterator[BurstParameter]:
    """The parameters of the hidden chains."""
    for kind, fits in chains.items():
        for j, fit in enumerate(fits):
            names = log.names if kind == "bursts" else (log.names[j],)
            whose = ["all" if kind == "bursts" else names[0]] * 2 + [*names, *names]
            what = ["enter", "leave", *["inside"] * len(names), *["outside"] * len(names)]
            for component, parameter, value, se in zip(whose, what, fit.values, fit.se, strict=True):
                yield BurstParameter(kind, component, parameter, float(value), float(se))


def driver_tests(log: MaskLog, chains: dict[str, tuple[ChainFit, ...]]) -> Iterator[DriverTest]:
    """Every component against every driver."""
    before = np.roll(log.hidden, 1, axis=0) & ~log.begins[:, None]
    recent = np.column_stack([before, log.begins])
    together = [(fit.values, predicted(fit.values, log.hidden, log.begins)) for fit in chains.get("bursts", ())]
    alone = [
        (fit.values, predicted(fit.values, log.hidden[:, [j]], log.begins))
        for j, fit in enumerate(chains.get("bursts-each", ()))
    ]
    for column in _drivers(log):
        driver = None if column is log.action else log.names.index(column.name)
        among = column.values >= 0
        for j, name in enumerate(log.names):
            if j == driver:
                continue
            expected = [_expected(values, on, j, driver) for values, on in together]
            expected += [_expected(values, on, 0, None) for values, on in alone[j : j + 1]]
            given = np.column_stack([recent, *expected])[among]
            test = independence(log.hidden[among, j], column.values[among], given, log.blocks[among])
            yield DriverTest(name, column.name, *((None, None, None) if test is None else test))


def _expected(values: Floats, on: Floats, j: int, seen: int | None) -> Floats:
    """Probability that component j is hidden given the masks before, and given that another one is seen now."""
    d = (values.size - 2) // 2
    inside, outside = values[2 : 2 + d], values[2 + d :]
    burst, none = on, 1 - on
    if seen is not None:
        burst, none = burst * (1 - inside[seen]), none * (1 - outside[seen])
    total = np.maximum(burst + none, 1e-300)
    expected: Floats = (burst * inside[j] + none * outside[j]) / total
    return expected
