"""Edges that cut real numbers into bins: plain data, fixed before anything is learned, saved with the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacuna.agent.components import Env
from lacuna.kernels.space import Space
from lacuna.validation import shown, whole_number

MAX_BINS = 10_000
"""Bins that a component may have."""

Counts = int | Sequence[int]
"""Number of bins: one for all components, or one for each."""


@dataclass(frozen=True, init=False)
class Binning:
    """Where each component of a real observation is cut. An edge belongs to the bin above it.

    The first and the last bin of a component are open: they take in everything below the first and above the last
    edge. Two binnings are equal if their edges and names are.

    Parameters
    ----------
    edges
        For each component its edges in increasing order: n edges make n + 1 bins.
    names
        A name per component; ``x0, x1, …`` if not given.

    Examples
    --------
    >>> binning = Binning([[-0.5, 0.5], [0.0]], ("position", "speed"))
    >>> binning.cut([0.5, -3.0]), binning.space.sizes
    (array([2, 0]), (3, 2))
    >>> Binning.uniform([4, 2], low=[0, -1], high=[1, 1]).edges
    ((0.25, 0.5, 0.75), (0.0,))
    >>> Binning.quantiles(2, [[0.0], [1.0], [10.0]]).edges
    ((1.0,),)
    """

    edges: tuple[tuple[float, ...], ...]
    names: tuple[str, ...] = ()

    def __init__(self, edges: Sequence[Sequence[float]], names: Sequence[str] = ()) -> None:
        for what, given in (("edges", edges), ("names", names)):
            if not isinstance(given, list | tuple | np.ndarray):
                raise TypeError(f"{what} is {shown(given)}; it must be a list with an entry per component")
        rows = tuple(_increasing(f"edges[{j}]", row) for j, row in enumerate(edges))
        space = Space(tuple(len(row) + 1 for row in rows), tuple(names))
        object.__setattr__(self, "edges", rows)
        object.__setattr__(self, "names", space.names)

    @classmethod
    def uniform(cls, n: Counts, low: ArrayLike, high: ArrayLike, names: Sequence[str] = ()) -> Binning:
        """Bins of equal width between two bounds, which are numbers, or lists of a number per component."""
        lows, highs = (np.atleast_1d(np.asarray(bound, dtype=np.float64)).ravel() for bound in (low, high))
        d = max(lows.size, highs.size, 1 if isinstance(n, int | np.integer) else len(n))
        if not {lows.size, highs.size} <= {1, d}:
            raise ValueError(f"low has {lows.size} numbers and high has {highs.size}; there are {d} components")
        pairs = np.broadcast_to(np.stack(np.broadcast_arrays(lows, highs), axis=1), (d, 2))
        for j, (a, b) in enumerate(pairs.tolist()):
            if not (np.isfinite([a, b]).all() and a < b and np.isfinite(b - a)):
                raise ValueError(f"component {j} lies between {a} and {b}; uniform bins need finite bounds, low < high")
        counts = _counts(n, d)
        return cls([np.linspace(a, b, k + 1)[1:-1].tolist() for (a, b), k in zip(pairs, counts, strict=True)], names)

    @classmethod
    def quantiles(cls, n: Counts, sample: ArrayLike, names: Sequence[str] = ()) -> Binning:
        """Bins that hold equal shares of a sample, which is an array ``[row, component]`` with NaN where missing.

        Where many values are equal there are fewer bins.
        """
        rows = np.asarray(sample, dtype=np.float64)
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(f"the sample has shape {rows.shape}; it must be [row, component] and not empty")
        edges = []
        for j, k in enumerate(_counts(n, rows.shape[1])):
            column = rows[np.isfinite(rows[:, j]), j]
            if not column.size or column.min() == column.max():
                raise ValueError(f"component {j} of the sample has fewer than two different values; give its edges")
            found = np.unique(np.quantile(column, np.arange(1, k) / k))
            # An edge at the smallest value would leave the first bin empty.
            edges.append(found[found > column.min()].tolist())
        return cls(edges, names)

    @classmethod
    def sampled(cls, env: Env, n: Counts, *, steps: int = 10_000, seed: int = 0, names: Sequence[str] = ()) -> Binning:
        """Bins that hold equal shares of what a random policy sees in an environment with a `Box` observation.

        Hidden values (`MissingObservation`) are left out. The environment is reset and played; the same seed gives the
        same bins.
        """
        return cls.quantiles(n, _visited(env, whole_number("steps", steps, 1), seed), names)

    @property
    def d(self) -> int:
        """Number of components."""
        return len(self.edges)

    @cached_property
    def space(self) -> Space:
        """The space of bins, for an `Agent`."""
        return Space(tuple(len(row) + 1 for row in self.edges), self.names)

    @cached_property
    def _arrays(self) -> list[NDArray[np.float64]]:
        return [np.array(row, dtype=np.float64) for row in self.edges]

    def cut(self, values: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return the bin of each component, counted from 0; one past the last where the mask is 1 (missing).

        A hidden value is not looked at.
        """
        given = np.asarray(values, dtype=np.float64).ravel()
        hidden = np.zeros(given.size, dtype=np.bool_) if mask is None else np.asarray(mask).ravel() == 1
        if given.size != self.d or hidden.size != self.d:
            raise ValueError(
                f"there are {given.size} values and {hidden.size} entries of the mask; bins are for {self.d}"
            )
        found = np.array(self.space.sizes, dtype=np.int64)
        for j in np.flatnonzero(~hidden):
            if np.isnan(given[j]):
                raise ValueError(f"component {self.names[j]} is NaN; a missing value is told by the mask")
            found[j] = np.searchsorted(self._arrays[j], given[j], side="right")
        return found

    def as_dict(self) -> dict[str, Any]:
        """The binning as plain data, fit for JSON."""
        return {"edges": [list(row) for row in self.edges], "names": list(self.names)}

    @classmethod
    def from_dict(cls, data: Any) -> Binning:
        """Read what `as_dict` gave, from a file that is not trusted."""
        if not isinstance(data, Mapping) or set(data) != {"edges", "names"}:
            raise ValueError(f"a binning is {shown(data)}; it must hold edges and names")
        return cls(data["edges"], data["names"])


def _increasing(what: str, row: Any) -> tuple[float, ...]:
    if not isinstance(row, list | tuple | np.ndarray) or len(row) >= MAX_BINS:
        raise TypeError(f"{what} is {shown(row)}; it must be a list of fewer than {MAX_BINS} numbers")
    for edge in row:
        if isinstance(edge, bool | np.bool_) or not isinstance(edge, int | float | np.integer | np.floating):
            raise TypeError(f"{what} holds {shown(edge)}; an edge is a number")
    # A whole number of Python may be too large for a float.
    edges = tuple(float(edge) + 0.0 if abs(edge) < 1e300 else np.inf for edge in row)
    if not np.isfinite(edges).all() or any(a >= b for a, b in pairwise(edges)):
        raise ValueError(f"{what} is {shown(list(row))}; edges must be finite and increasing")
    return edges


def _counts(n: Counts, d: int) -> list[int]:
    """Number of bins of each of `d` components."""
    counts = [n] * d if isinstance(n, int | np.integer) else list(n)
    if len(counts) != d:
        raise ValueError(f"n has {len(counts)} numbers of bins; there are {d} components")
    return [whole_number(f"the number of bins of component {j}", k, 1, MAX_BINS) for j, k in enumerate(counts)]


def _visited(env: Env, steps: int, seed: int) -> NDArray[np.float64]:
    """What a random policy sees, a row for each observation; NaN where it is hidden."""
    policy = deepcopy(env.action_space)
    policy.seed(seed)
    observation, _ = env.reset(seed=seed)
    rows = [_row(observation)]
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(policy.sample())
        rows.append(_row(observation))
        if terminated or truncated:
            observation, _ = env.reset()
            rows.append(_row(observation))
    return np.array(rows)


def _row(observation: Any) -> NDArray[np.float64]:
    if not isinstance(observation, Mapping):
        return np.asarray(observation, dtype=np.float64).ravel()
    values = np.array(observation["values"], dtype=np.float64).ravel()
    values[np.ravel(observation["mask"]) == 1] = np.nan
    return values
