"""Contracts that you can run on your own worlds and mechanisms; a failure names the likely cause."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray
from scipy.stats import binom

from lacuna.compiled import kernel
from lacuna.mdp import Dynamics, TabularMDP, move
from lacuna.missingness.mechanism import Hiding, Mechanism, RateBy, hide
from lacuna.missingness.wrapper import Encoding, MissingObservation
from lacuna.streams import Stream, Uniforms
from lacuna.worlds.gym import TabularEnv

FALSE_ALARM = 1e-6
"""Probability that a check of frequencies, all its comparisons together, fails although nothing is wrong."""

_MOVES = 2_000_000
_MAX_ROWS = 1000
_STEPS = 300

Integers = NDArray[np.int64]


class CheckFailedError(AssertionError):
    """A contract does not hold; the message names the likely cause."""


def check_world(mdp: TabularMDP, seed: int = 0) -> None:
    """Check a world: arrays, ends, restarts, frequencies, and its Gymnasium environment.

    Parameters
    ----------
    mdp
        The world.
    seed
        Seed of everything that is drawn; the same seed, the same answer.

    Examples
    --------
    >>> from lacuna.worlds.toys import corridor
    >>> check_world(corridor())
    """
    try:
        replace(mdp)
    except ValueError as error:
        raise CheckFailedError(f"the arrays of {mdp.name} are not a world: {error}") from error
    _check_ends(mdp)
    _check_moves(mdp, seed)
    _check_gymnasium(mdp)
    path, again = (_path(mdp, seed) for _ in range(2))
    if path != again:
        raise CheckFailedError(f"{mdp.name} went two ways from seed {seed}; something draws numbers outside its stream")
    _check_restarts(mdp, path)


def check_mechanism(mechanism: Mechanism, seed: int = 0) -> None:
    """Check a mechanism: arrays and claim, numbers used, rates, and that nothing hidden shows.

    Parameters
    ----------
    mechanism
        The mechanism.
    seed
        Seed of everything that is drawn; the same seed, the same answer.

    Examples
    --------
    >>> from lacuna.missingness import mcar
    >>> check_mechanism(mcar(3, 0.4))
    """
    try:
        replace(mechanism)
    except ValueError as error:
        raise CheckFailedError(f"the arrays of {mechanism.name} are not a mechanism: {error}") from error
    _check_rates(mechanism, seed)
    encodings: tuple[Encoding, ...] = ("token", "dict")
    for encoding in encodings:
        _check_no_leak(mechanism, encoding, seed)


# --- worlds ------------------------------------------------------------------------------------------------------


def _check_ends(mdp: TabularMDP) -> None:
    """An end must be reachable from wherever one can get, or an episode may never stop."""
    if not mdp.terminates or mdp.max_steps:
        return
    origin = np.repeat(np.arange(mdp.n_states * mdp.n_actions) // mdp.n_actions, np.diff(mdp.ptr))
    goes_on = ~mdp.ends
    starts = np.zeros(mdp.n_states, dtype=np.bool_)
    starts[[s for start in mdp.starts for s in start]] = True
    ends = np.zeros(mdp.n_states, dtype=np.bool_)
    ends[origin[mdp.ends]] = True
    reachable = _spread(starts, origin[goes_on], mdp.next_state[goes_on])
    finishes = _spread(ends, mdp.next_state[goes_on], origin[goes_on])
    stuck = np.flatnonzero(reachable & ~finishes)
    if stuck.size:
        raise CheckFailedError(
            f"no end can be reached from state {stuck[0]} of {mdp.name} ({stuck.size} such states); "
            "mark an arrival with `ends`, or give the world `max_steps` or `terminates=False`"
        )


def _spread(marked: NDArray[np.bool_], origin: Integers, target: Integers) -> NDArray[np.bool_]:
    """All states that the marked ones lead to along the edges."""
    while True:
        more = marked.copy()
        more[target[marked[origin]]] = True
        if (more == marked).all():
            return marked
        marked = more


def _check_moves(mdp: TabularMDP, seed: int) -> None:
    n_rows = mdp.n_states * mdp.n_actions
    rows = _sample(n_rows)
    n = max(1000, _MOVES // rows.size)
    stream = Stream(seed, "world")
    counts = np.zeros(mdp.next_state.size, dtype=np.int64)
    for row in rows.tolist():
        _tally_moves(row // mdp.n_actions, row % mdp.n_actions, n, mdp.dynamics, stream.need(n), counts)
    drawn = np.isin(np.repeat(np.arange(n_rows), np.diff(mdp.ptr)), rows)
    worst = _improbable(counts[drawn], np.full(int(drawn.sum()), n), mdp.probability[drawn])
    if worst >= 0:
        entry = int(np.flatnonzero(drawn)[worst])
        s, a = divmod(int(np.searchsorted(mdp.ptr, entry, side="right")) - 1, mdp.n_actions)
        raise CheckFailedError(
            f"state {s}, action {a} of {mdp.name} went to state {mdp.next_state[entry]} {counts[entry]} times in {n}, "
            f"although its table says probability {mdp.probability[entry]:.6g}; the running sums do not fit the table"
        )


@kernel
def _tally_moves(state: int, action: int, n: int, world: Dynamics, uniforms: Uniforms, counts: Integers) -> None:
    for _ in range(n):
        counts[move(state, action, world, uniforms)] += 1


def _check_gymnasium(mdp: TabularMDP) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(TabularEnv(mdp), skip_render_check=True)
        except Exception as error:
            raise CheckFailedError(f"Gymnasium's checker refuses {mdp.name}: {error}") from error
    if caught:
        raise CheckFailedError(f"Gymnasium's checker warns about {mdp.name}: {caught[0].message}")


Moment = tuple[int, list[int], float, bool, bool, dict[str, Any]]


def _path(mdp: TabularMDP, seed: int) -> list[Moment]:
    """True state, observation, reward, whether it stopped and why, info: over some steps and episodes."""
    env = TabularEnv(mdp)
    actions = np.random.default_rng(seed).integers(mdp.n_actions, size=_STEPS)
    path: list[Moment] = []
    over = True
    for t, action in enumerate(actions):
        if over:
            shown, info = env.reset(seed=seed if t == 0 else None)
            path.append((env.true_state, np.ravel(shown).tolist(), 0.0, False, True, info))
        shown, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        path.append((env.true_state, np.ravel(shown).tolist(), reward, over, False, info))
    return path


def _check_restarts(mdp: TabularMDP, path: list[Moment]) -> None:
    way = 0
    for state, shown, _, over, first, info in path:
        if first and state not in mdp.starts[way]:
            raise CheckFailedError(
                f"{mdp.name} started in state {state}, which is not among those of start {way}: "
                f"{sorted(mdp.starts[way])}; `restart` and `starts` do not belong together"
            )
        if shown != list(mdp.space.decode(int(mdp.shows[state]))):
            raise CheckFailedError(f"{mdp.name} showed {shown} in state {state}; `shows` says {mdp.shows[state]}")
        if set(info) - {"episode_ended"}:
            raise CheckFailedError(f"the info of {mdp.name} holds {sorted(info)}, which may tell the true state")
        if over:
            way = int(mdp.restart[state])


# --- mechanisms --------------------------------------------------------------------------------------------------


def _check_rates(mechanism: Mechanism, seed: int) -> None:
    """Draw masks of many rows after every action; compare numbers used, moves of the chain, and rates."""
    n_modes, n_entries, n_rows, d = mechanism.rates.shape
    rows = _sample(n_rows)
    n = max(200, _MOVES // (rows.size * n_entries * d))
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
        row, how = int(rows[k]), mechanism.hiding
        _tally_masks(row, action, n, mode, how, numbers, mask, moves, visits[a, k], hits[a, k])
        if stream.position - before != n * mechanism.n_draws:
            raise CheckFailedError(
                f"{n} masks of {mechanism.name} used {stream.position - before} numbers; n_draws says "
                f"{mechanism.n_draws} each, so paired runs would drift apart"
            )
    _compare_chain(mechanism, moves)
    _compare_rates(mechanism, rows, visits, hits)


@kernel
def _tally_masks(
    row: int, action: int, n: int, mode: Integers, how: Hiding, uniforms: Uniforms, mask: NDArray[np.bool_],
    moves: Integers, visits: Integers, hits: Integers,
) -> None:  # fmt: skip
    """Count masks by mode and by whether the driver was hidden."""
    for _ in range(n):
        before = mode[0]
        hide(row, row, action, mode, how, uniforms, mask)
        moves[before, mode[0]] += 1
        lost = 1 if how.driver >= 0 and mask[how.driver] else 0
        visits[mode[0], lost] += 1
        for j in range(mask.shape[0]):
            hits[mode[0], lost, j] += mask[j]


def _compare_chain(mechanism: Mechanism, moves: Integers) -> None:
    chain = np.ones((1, 1)) if mechanism.chain is None else mechanism.chain
    totals = np.broadcast_to(moves.sum(axis=1, keepdims=True), moves.shape)
    worst = _improbable(moves.ravel(), totals.ravel(), chain.ravel())
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
        # The driver's own rate is judged over all masks, whether it was hidden or not.
        own = (..., mechanism.driver)
        hits[own], totals[own] = (part.sum(axis=-1, keepdims=True) for part in (hits[own], visits))
        expected[own] = expected[..., :1, mechanism.driver]
    worst = _improbable(hits.ravel(), totals.ravel(), expected.ravel())
    if worst >= 0:
        place = tuple(int(i) for i in np.unravel_index(worst, hits.shape))
        a, k, z, _, j = place
        raise CheckFailedError(
            f"{mechanism.name} hid {mechanism.space.names[j]} {hits[place]} times in {totals[place]} (mode {z}, action "
            f"entry {a}, row {rows[k]}), although its rate is {expected[place]:.6g}; "
            "were its arrays changed after the first use?"
        )


class _Probe(gymnasium.Env[Any, Any]):
    """An environment that shows what it is told to."""

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
    shows = mechanism.shows if mechanism.shows is not None else _sample(mechanism.space.n_states)
    rows = np.arange(shows.size) if mechanism.by == RateBy.TRUE else shows
    values = np.stack(np.unravel_index(shows, sizes), axis=1).astype(np.int64)
    for k, other, s in _pairs(env, probe, rows, values, seed):
        (one, info), (two, same) = (_look(env, probe, int(rows[i]), values[i], s) for i in (k, other))
        if (info["mask"] == same["mask"]).all() and repr((one, info)) != repr((two, same)):
            raise CheckFailedError(
                f"{mechanism.name} ({encoding}) shows {one} for {values[k]} but {two} for {values[other]}, "
                f"although the mask {info['mask']} hides where they differ"
            )


def _pairs(
    env: MissingObservation, probe: _Probe, rows: Integers, values: Integers, seed: int
) -> Iterator[tuple[int, int, int]]:
    """Two states that look the same under the mask that a seed gives to the first."""
    picks = np.random.default_rng(seed).integers(rows.size, size=50)
    for t, k in enumerate(picks.tolist()):
        mask = _look(env, probe, int(rows[k]), values[k], seed + t)[1]["mask"] == 1
        alike = np.flatnonzero((values[:, ~mask] == values[k, ~mask]).all(axis=1))
        yield k, int(alike[(t + 1) % alike.size]), seed + t


def _look(env: MissingObservation, probe: _Probe, row: int, values: Integers, seed: int) -> tuple[Any, dict[str, Any]]:
    probe.values, probe.true_state = values, row
    env.reset(seed=seed)
    observation, *_, info = env.step(0)
    return observation, info


# --- frequencies -------------------------------------------------------------------------------------------------


def _sample(n: int) -> Integers:
    """All of 0 … n-1, or as many as can be checked, evenly spread."""
    return np.arange(n) if n <= _MAX_ROWS else np.linspace(0, n - 1, _MAX_ROWS).astype(np.int64)


def _improbable(counts: Integers, totals: Integers, probability: NDArray[np.float64]) -> int:
    """Position of a count that cannot be chance, by the exact binomial tails and Bonferroni; -1 if there is none."""
    tails = np.minimum(binom.cdf(counts, totals, probability), binom.sf(counts - 1, totals, probability))
    worst = int(np.argmin(tails))
    return worst if tails[worst] < FALSE_ALARM / (2 * tails.size) else -1
