"""The contract of a world: arrays, ends, restarts, frequencies, and its Gymnasium environment."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.utils.env_checker import check_env
from scipy.sparse import csr_array

from lacuna.checks.chance import DRAWS, CheckFailedError, Integers, improbable, sample_of
from lacuna.kernels.compiled import kernel
from lacuna.kernels.streams import Stream, Uniforms
from lacuna.validation import of_kind
from lacuna.worlds.mdp.dynamics import move
from lacuna.worlds.mdp.solve import reached, start_flags
from lacuna.worlds.mdp.tabular import Dynamics, TabularMDP
from lacuna.worlds.mdp.tabular_env import TabularEnv

_STEPS = 300


def check_world(mdp: TabularMDP, seed: int = 0) -> None:
    """Check that a world keeps its contract.

    1. Its arrays are those of a `TabularMDP`.
    2. An end is reachable from every reachable state, unless the world truncates episodes or is continuing.
    3. Outcomes are drawn as often as the table says (exact binomial tails).
    4. Gymnasium's own checker accepts its environment without a warning.
    5. The same seed gives the same path; every episode starts where `starts` and `restart` say.
    6. The environment shows what `shows` says, and its info does not reveal the true state.

    Parameters
    ----------
    mdp
        The world.
    seed
        Seed of all random draws.

    Raises
    ------
    CheckFailedError
        If the contract does not hold; the message names the likely cause.

    Examples
    --------
    >>> from lacuna.worlds.toys import corridor
    >>> check_world(corridor())
    """
    of_kind("mdp", mdp, TabularMDP, "a TabularMDP; lacuna.make_world makes one from a name")
    try:
        replace(mdp)
    except ValueError as error:
        raise CheckFailedError(f"the arrays of {mdp.name} are not a world: {error}") from error
    _check_ends(mdp)
    _check_moves(mdp, seed)
    _check_gymnasium(mdp)
    path, again = (_path(mdp, seed) for _ in range(2))
    if path != again:
        raise CheckFailedError(f"{mdp.name} took two paths from seed {seed}; something draws outside its stream")
    _check_restarts(mdp, path)


def _check_ends(mdp: TabularMDP) -> None:
    """Check that an end is reachable from every reachable state; otherwise an episode may never stop."""
    if not mdp.terminates or mdp.max_steps:
        return
    n, goes_on = mdp.n_states, ~mdp.ends
    origin = np.repeat(np.arange(n * mdp.n_actions) // mdp.n_actions, np.diff(mdp.ptr))
    leads = (mdp.probability[goes_on], (origin[goes_on], mdp.next_state[goes_on]))
    P: csr_array[Any] = csr_array(leads, shape=(n, n))
    ends = np.zeros(n, dtype=np.bool_)
    ends[origin[mdp.ends]] = True
    stuck = np.flatnonzero(reached(P, start_flags(mdp)) & ~reached(csr_array(P.T), ends))
    if stuck.size:
        raise CheckFailedError(
            f"no end can be reached from state {stuck[0]} of {mdp.name} ({stuck.size} such states); "
            "mark an arrival with `ends`, or give the world `max_steps` or `terminates=False`"
        )


def _check_moves(mdp: TabularMDP, seed: int) -> None:
    n_rows = mdp.n_states * mdp.n_actions
    rows = sample_of(n_rows)
    n = max(1000, DRAWS // rows.size)
    stream = Stream(seed, "world")
    counts = np.zeros(mdp.next_state.size, dtype=np.int64)
    for row in rows.tolist():
        _tally_moves(row // mdp.n_actions, row % mdp.n_actions, n, mdp.dynamics, stream.need(n), counts)
    drawn = np.isin(np.repeat(np.arange(n_rows), np.diff(mdp.ptr)), rows)
    worst = improbable(counts[drawn], np.full(int(drawn.sum()), n), mdp.probability[drawn])
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
