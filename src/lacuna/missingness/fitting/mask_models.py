"""Models of masks that lacuna can simulate, each fitted to a log, with its likelihood and the text that makes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lacuna.missingness.constructors import MAX_BURST_COMPONENTS
from lacuna.missingness.empirical import MAX_PATTERNS
from lacuna.missingness.fitting.chain import ChainFit, fit_chain
from lacuna.missingness.fitting.estimates import log_likelihood
from lacuna.missingness.fitting.mask_log import Column, Flags, Floats, MaskLog

KINDS = ("rates", "whole", "by", "after", "patterns", "bursts", "bursts-each")


@dataclass(frozen=True)
class Model:
    """A model of the masks, fitted.

    Parameters
    ----------
    kind
        ``"rates"`` (a constant rate for each component), ``"whole"`` (all or nothing), ``"by"`` (rates by a component
        while it is seen), ``"after"`` (rates by the action), ``"patterns"`` (shares of patterns), ``"bursts"`` (one
        hidden on/off chain) or ``"bursts-each"`` (a chain for each component).
    driver
        The component that the rates go by, for ``"by"``.
    parameters
        Number of free parameters.
    log_likelihood, bic
        How well it fits: the log-likelihood of the masks, and Bayes' information criterion, of which less is better.
    """

    kind: str
    driver: str | None
    parameters: int
    log_likelihood: float
    bic: float


def models(log: MaskLog, chains: dict[str, tuple[ChainFit, ...]]) -> tuple[Model, ...]:
    """Every model that can be fitted, the one with the least BIC first."""
    found = [
        Model(kind, driver, k, value, k * float(np.log(log.n)) - 2 * value)
        for kind, driver, k, value in _fitted(log, chains)
    ]
    # Of equals, the simplest: a model that gains nothing comes after the one it extends.
    return tuple(sorted(found, key=lambda one: (one.bic, one.parameters, KINDS.index(one.kind))))


def fit_chains(log: MaskLog) -> dict[str, tuple[ChainFit, ...]]:
    """The hidden chains: one for the whole vector, and one for each component if there are few enough."""
    lost = log.hidden.any(axis=0)
    if not lost.any() or (log.hidden.all(axis=0) == lost).all():
        return {}
    chains: dict[str, tuple[ChainFit, ...]] = {"bursts": (fit_chain(log.hidden, log.begins),)}
    if 1 < log.d <= MAX_BURST_COMPONENTS:
        chains["bursts-each"] = tuple(fit_chain(log.hidden[:, [j]], log.begins) for j in range(log.d))
    return chains


def _fitted(log: MaskLog, chains: dict[str, tuple[ChainFit, ...]]) -> Iterator[tuple[str, str | None, int, float]]:
    n, d = log.hidden.shape
    yield "rates", None, d, sum(_likelihood(log.hidden[:, [j]]) for j in range(d))
    lost = log.hidden.any(axis=1)
    if d > 1 and (log.hidden.all(axis=1) == lost).all():
        yield "whole", None, 1, log_likelihood(float(lost.sum()), n)
    for i, column in enumerate(log.columns):
        if d > 1 and len(column.labels) > 1:
            others = np.delete(log.hidden, i, axis=1)
            groups = [others[column.values == v] for v in range(-1, len(column.labels))]
            used = [group for group in groups if len(group)]
            value = _likelihood(log.hidden[:, [i]]) + sum(_likelihood(group) for group in used)
            yield "by", column.name, 1 + (d - 1) * len(used), value
    if log.action is not None:
        groups = [log.hidden[log.action.values == a] for a in range(-1, len(log.action.labels))]
        used = [group for group in groups if len(group)]
        yield "after", None, d * len(used), sum(_likelihood(group) for group in used)
    counts = np.unique(log.hidden, axis=0, return_counts=True)[1]
    if d > 1 and counts.size <= MAX_PATTERNS:
        yield "patterns", None, counts.size - 1, float((counts * np.log(counts / n)).sum())
    for kind, fits in chains.items():
        yield kind, None, sum(fit.values.size for fit in fits), sum(fit.log_likelihood for fit in fits)


def _likelihood(hidden: Flags) -> float:
    """Log-likelihood of constant rates."""
    return sum(log_likelihood(float(hits), len(hidden)) for hits in hidden.sum(axis=0))


# --- texts -----------------------------------------------------------------------------------------------------------


def numbers_of(column: Column, size: int, names: tuple[str, ...] = ()) -> list[int]:
    """Which value of the space each label is: the number itself, a name, or else its place in the order of labels."""
    labels = column.labels
    if names and all(str(label) in names for label in labels):
        return [names.index(str(label)) for label in labels]
    whole = all(isinstance(label, int) for label in labels)
    numbers = [int(label) for label in labels] if whole else list(range(len(labels)))
    if numbers[0] < 0 or numbers[-1] >= size:
        wrong = labels[0] if numbers[0] < 0 else labels[-1]
        raise ValueError(f"{column.name} has the value {wrong} in the log; it has {size} values, 0 to {size - 1}")
    return numbers


def conditional_rates(hidden: Flags, column: Column) -> tuple[list[Floats | None], Floats]:
    """Rates at each value of a column, None without rows; and where it is missing, or of all rows if it never is."""
    groups = [hidden[column.values == v] for v in range(len(column.labels))]
    missing = hidden[column.values < 0]
    rates = [group.mean(axis=0) if len(group) else None for group in groups]
    return rates, (missing if len(missing) else hidden).mean(axis=0)


def pattern_counts(hidden: Flags) -> dict[str, int]:
    """How often each pattern came, the most frequent first; a digit per component, 1 for hidden."""
    found, counts = np.unique(hidden, axis=0, return_counts=True)
    named = {"".join("1" if lost else "0" for lost in row): int(n) for row, n in zip(found, counts, strict=True)}
    return dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))


def exact_shares(counts: dict[str, int]) -> dict[str, float]:
    """Shares that add up to exactly 1, from running sums."""
    ends = np.cumsum([0, *counts.values()]) / sum(counts.values())
    return {pattern: float(b - a) for pattern, (a, b) in zip(counts, pairwise(ends), strict=True)}


def burst_arguments(kind: str, fits: tuple[ChainFit, ...], order: Any) -> tuple[Any, ...]:
    """Arguments of `bursts` from fitted chains, components in the order given."""
    if kind == "bursts":
        values = fits[0].values
        d = (values.size - 2) // 2
        return float(values[0]), float(values[1]), tuple(values[2 : 2 + d][order]), tuple(values[2 + d :][order])
    each = np.stack([fit.values for fit in fits])[order]
    return tuple(tuple(each[:, k].tolist()) for k in range(4))
