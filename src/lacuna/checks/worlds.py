"""The contract of a world: arrays, ends, restarts, frequencies, and its Gymnasium environment."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from lacuna.checks.chance import MOVES, CheckFailedError, Integers, improbable, sample_of
from lacuna.kernels.compiled import kernel
from lacuna.kernels.streams import Stream, Uniforms
from lacuna.mdp.dynamics import move
from lacuna.mdp.environment import TabularEnv
from lacuna.mdp.tabular import Dynamics, TabularMDP

_STEPS = 300


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
    rows = sample_of(n_rows)
    n = max(1000, MOVES // rows.size)
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
