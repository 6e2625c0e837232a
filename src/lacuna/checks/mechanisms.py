"""The contract of a mechanism: arrays and claim, random numbers used, rates, and no leak of hidden values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from lacuna.checks.chance import DRAWS, CheckFailedError, Integers, improbable, sample_of
from lacuna.kernels.compiled import kernel
from lacuna.kernels.streams import Stream, Uniforms
from lacuna.missingness.mechanism import Hiding, Mechanism, RateBy, hide
from lacuna.validation import of_kind
from lacuna.wrappers.cover import Encoding
from lacuna.wrappers.missing import MissingObservation


def check_mechanism(mechanism: Mechanism, seed: int = 0) -> None:
    """Check that a mechanism keeps its contract.

    1. Its arrays are those of a `Mechanism`, and the label it claims, if any, is that of its rates.
    2. Every mask uses ``n_draws`` random numbers, so that paired runs stay aligned.
    3. Masks and modes are drawn as often as the rates and the chain say (exact binomial tails).
    4. In both encodings of `MissingObservation`, states that look alike under a mask give the same observation.

    Parameters
    ----------
    mechanism
        The mechanism.
    seed
        Seed of all random draws.

    Raises
    ------
    CheckFailedError
        If the contract does not hold; the message names the likely cause.

    Examples
    --------
    >>> from lacuna.missingness import mcar
    >>> check_mechanism(mcar(3, 0.4))
    """
    of_kind("mechanism", mechanism, Mechanism, "a Mechanism, e.g. lacuna.missingness.mcar(3, 0.4)")
    try:
        replace(mechanism)
    except ValueError as error:
        raise CheckFailedError(f"the arrays of {mechanism.name} are not a mechanism: {error}") from error
    _check_rates(mechanism, seed)
    encodings: tuple[Encoding, ...] = ("token", "dict")
    for encoding in encodings:
        _check_no_leak(mechanism, encoding, seed)


def _check_rates(mechanism: Mechanism, seed: int) -> None:
    """Draw masks of many rows after every action; compare numbers used, moves of the chain, and rates."""
    n_modes, n_entries, n_rows, d = mechanism.rates.shape
    rows = sample_of(n_rows)
    n = max(200, DRAWS // (rows.size * n_entries * d))
    stream = Stream(seed, "missingness")
    visits = np.zeros((n_entries, rows.size, n_modes, 2), dtype=np.int64)
    hits = np.zeros((n_entries, rows.size, n_modes, 2, d), dtype=np.int64)
    moves = np.zeros((n_modes, n_modes), dtype=np.int64)
    mode = np.zeros(1, dtype=np.int64)
    mask = np.zeros(d, dtype=np.bool_)
    for a, k in np.ndindex(n_entries, rows.size):
        before = stream.position
        # A mask that asks for too many numbers must not read beyond the block.
        numbers = stream.need(n * (d + 1))
        action = a if a < n_entries - 1 else -1
        tally = _Tally(mode, mask, moves, visits[a, k], hits[a, k])
        _tally_masks(int(rows[k]), action, n, mechanism.hiding, numbers, tally)
        if stream.position - before != n * mechanism.n_draws:
            raise CheckFailedError(
                f"{n} masks of {mechanism.name} used {stream.position - before} numbers; n_draws says "
                f"{mechanism.n_draws} each, so paired runs would drift apart"
            )
    _compare_chain(mechanism, moves)
    _compare_rates(mechanism, rows, visits, hits)


class _Tally(NamedTuple):
    """The mode and mask of this moment, and what was counted."""

    mode: Integers
    mask: NDArray[np.bool_]
    moves: Integers
    """``[mode, next mode]``."""
    visits: Integers
    """``[mode, driver hidden]``."""
    hits: Integers
    """``[mode, driver hidden, component]``: how often it was hidden."""


@kernel
def _tally_masks(row: int, action: int, n: int, how: Hiding, uniforms: Uniforms, tally: _Tally) -> None:
    for _ in range(n):
        before = tally.mode[0]
        hide(row, row, action, tally.mode, how, uniforms, tally.mask)
        now = tally.mode[0]
        tally.moves[before, now] += 1
        lost = 1 if how.driver >= 0 and tally.mask[how.driver] else 0
        tally.visits[now, lost] += 1
        for j in range(tally.mask.shape[0]):
            tally.hits[now, lost, j] += tally.mask[j]


def _compare_chain(mechanism: Mechanism, moves: Integers) -> None:
    chain = np.ones((1, 1)) if mechanism.chain is None else mechanism.chain
    totals = np.broadcast_to(moves.sum(axis=1, keepdims=True), moves.shape)
    worst = improbable(moves.ravel(), totals.ravel(), chain.ravel())
    if worst >= 0:
        z, to = np.unravel_index(worst, moves.shape)
        raise CheckFailedError(
            f"the chain of {mechanism.name} went from mode {z} to {to} {moves[z, to]} times in {totals[z, to]}, "
            f"although it says probability {chain[z, to]:.6g}; were its arrays changed after the first use?"
        )


def _compare_rates(mechanism: Mechanism, rows: Integers, visits: Integers, hits: Integers) -> None:
    when_hidden = mechanism.rates if mechanism.fallback is None else mechanism.fallback
    expected = np.stack([mechanism.rates, when_hidden])[:, :, :, rows].transpose(2, 3, 1, 0, 4).copy()
    totals = np.broadcast_to(visits[..., None], hits.shape).copy()
    if mechanism.driver >= 0:
        # The driver's own rate is compared over all masks, whether it was hidden or not.
        own = (..., mechanism.driver)
        hits[own], totals[own] = (counts.sum(axis=-1, keepdims=True) for counts in (hits[own], visits))
        expected[own] = expected[..., :1, mechanism.driver]
    worst = improbable(hits.ravel(), totals.ravel(), expected.ravel())
    if worst >= 0:
        place = tuple(int(i) for i in np.unravel_index(worst, hits.shape))
        a, k, z, _, j = place
        raise CheckFailedError(
            f"{mechanism.name} hid {mechanism.space.names[j]} {hits[place]} times in {totals[place]} (mode {z}, action "
            f"entry {a}, row {rows[k]}), although its rate is {expected[place]:.6g}; "
            "were its arrays changed after the first use?"
        )


class _Probe(gymnasium.Env[Any, Any]):
    """An environment that shows given states."""

    def __init__(self, mechanism: Mechanism) -> None:
        sizes = mechanism.space.sizes
        self.observation_space = gymnasium.spaces.MultiDiscrete(np.array(sizes))
        self.action_space = gymnasium.spaces.Discrete(mechanism.n_actions or 1)
        self.values = np.zeros(len(sizes), dtype=np.int64)
        self.true_state = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        return self.values, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        del action
        return self.values, 0.0, False, False, {}


def _check_no_leak(mechanism: Mechanism, encoding: Encoding, seed: int) -> None:
    probe = _Probe(mechanism)
    env = MissingObservation(probe, mechanism, encoding=encoding)
    sizes = mechanism.space.sizes
    shows = mechanism.shows if mechanism.shows is not None else sample_of(mechanism.space.n_states)
    rows = np.arange(shows.size) if mechanism.by == RateBy.TRUE else shows
    values = np.stack(np.unravel_index(shows, sizes), axis=1).astype(np.int64)
    for k, other, s in _pairs(env, probe, rows, values, seed):
        one, two = (_observe(env, probe, int(rows[i]), values[i], s) for i in (k, other))
        mask = one[1]["mask"]
        if (mask == two[1]["mask"]).all() and repr(one) != repr(two):
            raise CheckFailedError(
                f"{mechanism.name} ({encoding}) shows {one[0]} for {values[k]} but {two[0]} for {values[other]}, "
                f"although the mask {mask} hides where they differ"
            )


def _pairs(
    env: MissingObservation, probe: _Probe, rows: Integers, values: Integers, seed: int
) -> Iterator[tuple[int, int, int]]:
    """Two states that look the same under the mask that a seed gives to the first."""
    picks = np.random.default_rng(seed).integers(rows.size, size=50)
    for t, k in enumerate(picks.tolist()):
        mask = _observe(env, probe, int(rows[k]), values[k], seed + t)[1]["mask"] == 1
        alike = np.flatnonzero((values[:, ~mask] == values[k, ~mask]).all(axis=1))
        yield k, int(alike[(t + 1) % alike.size]), seed + t


def _observe(
    env: MissingObservation, probe: _Probe, row: int, values: Integers, seed: int
) -> tuple[Any, dict[str, Any]]:
    probe.values, probe.true_state = values, row
    env.reset(seed=seed)
    observation, *_, info = env.step(0)
    return observation, info
