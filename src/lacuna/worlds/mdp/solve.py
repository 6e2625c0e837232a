"""Exact answers from a world's arrays: the optimal values, and the value of any policy.

With r(s, a) the expected reward and P(s' | s, a) the probability of arriving in s' and going on (an end leads nowhere):

    q*(s, a) = r(s, a) + γ ∑_s' P(s' | s, a) v*(s')        v*(s) = max_a q*(s, a)
    v_π      = r_π + γ P_π v_π                             solved as a sparse linear system, or iterated if it is large
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import splu

from lacuna.validation import number, of_kind
from lacuna.worlds.mdp.tabular import TabularMDP, first_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SWEEPS = 5_000
_LARGE = 20_000
"""States beyond which factors of a linear system may fill the memory; with a discount its solution is iterated."""
_ROUNDS = 1_000
_STRICT = 1e-12


class Solution(NamedTuple):
    """The optimum of a world over its *true* states.

    With ``gamma = 1`` only policies that are sure to end are compared. Where there is none, `values` and `q` are NaN
    and `policy` is 0; such states are never entered from where episodes start.
    """

    values: Floats
    """Optimal value of deciding in each true state, shape ``[n]``."""
    q: Floats
    """Optimal value of each action in each true state, shape ``[n, A]``."""
    policy: NDArray[np.int64]
    """An optimal action in each true state, shape ``[n]``: of equals the lowest-numbered, with ``gamma = 1`` of those
    that can end soonest."""
    start_value: float
    """Expected value at the start of a fresh world (``mdp.starts[0]``)."""


class _Model(NamedTuple):
    """A world as expectations: row ``s*A + a`` stands for action `a` in state `s`."""

    gamma: float
    n: int
    A: int
    P: csr_array[Any]
    """Probability of being in each state *and going on*: what leads out of the episode is left out."""
    r: Floats
    can_end: Flags


def solve(mdp: TabularMDP, gamma: float) -> Solution:
    """Optimal values, exact to rounding: value iteration to get near, policy iteration to arrive.

    Parameters
    ----------
    mdp
        The world. Truncation (``max_steps``) is not part of the answer.
    gamma
        Discount, 0 to 1. With 1 the world has to be episodic (``mdp.terminates``).

    Examples
    --------
    >>> from lacuna.worlds.toys import corridor
    >>> solve(corridor(length=4, slip=0.5), gamma=1.0).values.round(9).tolist()
    [-6.0, -4.0, -2.0, -1.0]
    """
    model = _model(mdp, gamma)
    inside = np.ones(model.n, dtype=np.bool_)
    policy = np.zeros(model.n, dtype=np.int64)
    if gamma == 1.0:
        inside, policy = _surely_ending(model)
        _check_starts(mdp, inside)
    allowed = _allowed(model, inside)
    guess = _greedy(_iterate(model, allowed), policy, model)[0]
    if gamma < 1.0 or _never_ends(model, guess, inside) is None:
        policy = guess
    values = _improve(model, policy, inside, allowed)
    q = _q(model, values, allowed)
    best = q.max(axis=1)
    slack = _STRICT * _scale(q)
    equals = (q >= best[:, None] - slack) & inside[:, None]
    # Without discount an action that puts off the end for ever may look as good as one that brings it nearer.
    policy = _attracted(model, equals.ravel())[1] if gamma == 1.0 else equals.argmax(axis=1)
    values = np.where(inside, values, np.nan)
    q = np.where(np.isfinite(q) & inside[:, None], q, np.nan)
    start_value = sum(p * float(values[s]) for s, p in mdp.starts[0].items() if p > 0)
    return Solution(values, q, policy, start_value)


def evaluate(mdp: TabularMDP, policy: NDArray[Any], gamma: float) -> Floats:
    """Value of following `policy` from each true state, by one sparse linear solve.

    Parameters
    ----------
    mdp
        The world.
    policy
        An action per true state (whole numbers, shape ``[n]``) or a distribution over actions (shape ``[n, A]``).
    gamma
        Discount, 0 to 1. With 1 the world has to be episodic and the policy sure to end wherever episodes lead; states
        off those paths from which it may never end get NaN.

    Examples
    --------
    >>> from lacuna.worlds.toys import corridor
    >>> world = corridor(length=3, slip=0.5)
    >>> evaluate(world, np.array([1, 1, 1]), gamma=1.0).round(9).tolist()
    [-4.0, -2.0, -1.0]
    """
    model = _model(mdp, gamma)
    choice = _choice(np.asarray(policy), model)
    inside = np.ones(model.n, dtype=np.bool_)
    if gamma == 1.0:
        inside = _proper(model, choice)
        if (s := first_of(reached(_under(model, choice), start_flags(mdp)) & ~inside)) is not None:
            raise ValueError(
                f"with gamma = 1 the policy must end for sure, but episodes reach state {s} "
                f"({mdp.describe(s)}), from where it may go on for ever"
            )
    return np.where(inside, _value(model, choice, inside), np.nan)


def expected_steps(mdp: TabularMDP, policy: NDArray[Any]) -> Floats:
    """Return the expected number of steps to the end of an episode: after each action, then following `policy`.

    Shape ``[n, A]``; NaN where the policy may go on for ever.

    Examples
    --------
    >>> from lacuna.worlds.toys import corridor
    >>> expected_steps(corridor(length=3, slip=0.5), np.array([1, 1, 1])).round(9).tolist()
    [[5.0, 4.0], [4.0, 2.0], [2.0, 1.0]]
    """
    model = _model(mdp, 1.0)
    model = model._replace(r=np.ones_like(model.r))
    choice = _choice(np.asarray(policy), model)
    inside = _proper(model, choice)
    values = _value(model, choice, inside)
    steps = _q(model, values, _allowed(model, inside))
    return np.where(np.isfinite(steps), steps, np.nan)


def _model(mdp: TabularMDP, gamma: float) -> _Model:
    of_kind("mdp", mdp, TabularMDP, "a TabularMDP; lacuna.make_world makes one from a name")
    gamma = number("gamma", gamma, 0, 1)
    if gamma == 1.0 and not mdp.terminates:
        raise ValueError(f"{mdp.name} is a continuing task: with gamma = 1 its values have no bound; take less than 1")
    n, A = mdp.n_states, mdp.n_actions
    out = mdp.ends if mdp.terminates else np.zeros_like(mdp.ends)
    ptr = np.concatenate([[0], np.cumsum(~out)])[mdp.ptr]
    P: csr_array[Any] = csr_array((mdp.probability[~out], mdp.next_state[~out], ptr), shape=(n * A, n))
    rows = np.repeat(np.arange(n * A), np.diff(mdp.ptr))
    r = np.bincount(rows, weights=mdp.probability * mdp.reward, minlength=n * A).astype(np.float64)
    can_end = np.bincount(rows, weights=out, minlength=n * A) > 0
    return _Model(gamma, n, A, P, r, can_end)


def _choice(policy: NDArray[Any], model: _Model) -> csr_array[Any]:
    """A policy as a matrix ``[n, n*A]`` that picks (or mixes) the rows of the model."""
    n, A = model.n, model.A
    if policy.shape == (n,) and np.issubdtype(policy.dtype, np.integer):
        if (s := first_of((policy < 0) | (policy >= A))) is not None:
            raise ValueError(f"the policy takes action {policy[s]} in state {s}; there are 0 to {A - 1}")
        return _deterministic(policy, model)
    if policy.shape != (n, A):
        raise ValueError(
            f"the policy has shape {policy.shape} and type {policy.dtype}; it needs a whole number for each of "
            f"{n} states, or probabilities of shape ({n}, {A})"
        )
    weights = policy.astype(np.float64)
    s = first_of(~(weights >= 0).all(axis=1) | ~(np.abs(weights.sum(axis=1) - 1.0) <= 1e-9))
    if s is not None:
        raise ValueError(f"the policy's probabilities in state {s} are {weights[s].tolist()}; they must add up to 1")
    ptr = np.arange(0, n * A + 1, A)
    choice: csr_array[Any] = csr_array((weights.ravel(), np.arange(n * A), ptr), shape=(n, n * A))
    choice.eliminate_zeros()
    return choice


def _deterministic(policy: NDArray[Any], model: _Model) -> csr_array[Any]:
    n, A = model.n, model.A
    return csr_array((np.ones(n), np.arange(n) * A + policy, np.arange(n + 1)), shape=(n, n * A))


def _under(model: _Model, choice: csr_array[Any]) -> csr_array[Any]:
    """Transition matrix ``[n, n]`` under a policy."""
    return csr_array(choice @ model.P)


def _value(model: _Model, choice: csr_array[Any], inside: Flags) -> Floats:
    """Solve ``v = r + gamma P v`` on the states `inside`; 0 elsewhere."""
    keep = np.flatnonzero(inside)
    values = np.zeros(model.n)
    P = _under(model, choice)[keep][:, keep]
    r = (choice @ model.r)[keep]
    if keep.shape[0] > _LARGE and model.gamma < 1.0:
        values[keep] = _contract(r, model.gamma, P)
        return values
    system = csc_array(eye_array(keep.shape[0]) - model.gamma * P)
    factors = splu(system)
    v = factors.solve(r)
    # One refinement takes the error of the factors down to that of the arithmetic.
    values[keep] = v + factors.solve(r - system @ v)
    return values


def _contract(r: Floats, gamma: float, P: csr_array[Any]) -> Floats:
    """Iterate ``v <- r + gamma P v``, which brings v nearer by the factor gamma, until nothing moves but rounding."""
    values, change = np.zeros_like(r), np.inf
    for _ in range(_SWEEPS):
        new = r + gamma * (P @ values)
        moved = float(np.abs(new - values).max(initial=0.0))
        values = new
        if moved * gamma <= _STRICT * (1 - gamma) * _scale(values) or not moved < change:
            break
        change = moved
    return values


def _q(model: _Model, values: Floats, allowed: Flags) -> Floats:
    q = model.r + model.gamma * (model.P @ values)
    return np.where(allowed, q, -np.inf).reshape(model.n, model.A)


def _scale(q: Floats) -> float:
    finite = q[np.isfinite(q)]
    return 1.0 + float(np.abs(finite).max(initial=0.0))


def _iterate(model: _Model, allowed: Flags) -> Floats:
    """Value iteration, only to get near: a bounded number of sweeps, so that nothing loops for ever."""
    values = np.zeros(model.n)
    q = _q(model, values, allowed)
    for _ in range(_SWEEPS):
        new = np.maximum(q.max(axis=1), np.where(allowed.reshape(q.shape).any(axis=1), -np.inf, 0.0))
        change = float(np.abs(new - values).max())
        values = new
        q = _q(model, values, allowed)
        if change <= 1e-10 * _scale(q):
            break
    return q


def _greedy(q: Floats, policy: NDArray[np.int64], model: _Model) -> tuple[NDArray[np.int64], bool]:
    """The best actions; the old one is kept unless another is better by more than rounding."""
    old = q[np.arange(model.n), policy]
    best = q.max(axis=1)
    better = best > old + _STRICT * _scale(q)
    return np.where(better, q.argmax(axis=1), policy), bool(better.any())


def _improve(model: _Model, policy: NDArray[np.int64], inside: Flags, allowed: Flags) -> Floats:
    """Policy iteration from a policy that is sure to end.

    Only strict improvements are taken, which keeps it sure to end unless some loop pays more than nothing.
    """
    values = _value(model, _deterministic(policy, model), inside)
    for _ in range(_ROUNDS):
        policy, changed = _greedy(_q(model, values, allowed), policy, model)
        if not changed:
            return values
        if model.gamma == 1.0 and (s := _never_ends(model, policy, inside)) is not None:
            raise ValueError(
                f"with gamma = 1 the best total reward has no bound: a loop through state {s} pays for ever; "
                f"take gamma below 1"
            )
        new = _value(model, _deterministic(policy, model), inside)
        gain = float((new - values).max())
        values = np.maximum(new, values)
        if gain <= _STRICT * _scale(values):
            return values
    raise RuntimeError(f"policy iteration did not settle within {_ROUNDS} rounds at gamma = {model.gamma}")


def _surely_ending(model: _Model) -> tuple[Flags, NDArray[np.int64]]:
    """The states from which some policy is sure to end, and such a policy."""
    inside = np.ones(model.n, dtype=np.bool_)
    while True:
        reach, policy = _attracted(model, _allowed(model, inside))
        if (reach == inside).all():
            return inside, policy
        inside = reach


def _allowed(model: _Model, inside: Flags) -> Flags:
    """The actions of states `inside` (all, flat) that cannot leave them except by ending."""
    leaves: Flags = model.P @ (~inside).astype(np.float64) > 0
    return np.repeat(inside, model.A) & ~leaves


def _attracted(model: _Model, allowed: Flags) -> tuple[Flags, NDArray[np.int64]]:
    """The states that can reach an end by allowed actions, and an action that brings each one nearer."""
    reach = np.zeros(model.n, dtype=np.bool_)
    policy = np.zeros(model.n, dtype=np.int64)
    while True:
        nearer = allowed & (model.can_end | (model.P @ reach.astype(np.float64) > 0))
        by_state = nearer.reshape(model.n, model.A)
        new = by_state.any(axis=1) & ~reach
        if not new.any():
            return reach, policy
        policy[new] = by_state[new].argmax(axis=1)
        reach |= new


def _proper(model: _Model, choice: csr_array[Any]) -> Flags:
    """The states from which a policy is sure to end: those that cannot come to where it cannot end any more."""
    P = _under(model, choice)
    can_end = choice @ model.can_end.astype(np.float64) > 0
    back = csr_array(P.T)
    hopeless = ~reached(back, can_end)
    return ~reached(back, hopeless)


def _never_ends(model: _Model, policy: NDArray[np.int64], inside: Flags) -> int | None:
    """A state `inside` from which the policy may never end, if there is one."""
    return first_of(inside & ~_proper(model, _deterministic(policy, model)))


def reached(P: csr_array[Any], origin: Flags) -> Flags:
    """Mark all states that the transitions `P` lead to from `origin`, which is included."""
    found = origin.copy()
    arrivals = csr_array(P.T)
    while True:
        new = (arrivals @ found.astype(np.float64) > 0) & ~found
        if not new.any():
            return found
        found |= new


def start_flags(mdp: TabularMDP) -> Flags:
    """Mark the states in which an episode can start."""
    flags = np.zeros(mdp.n_states, dtype=np.bool_)
    for start in mdp.starts:
        for s, p in start.items():
            flags[s] |= p > 0
    return flags


def _check_starts(mdp: TabularMDP, inside: Flags) -> None:
    if (s := first_of(start_flags(mdp) & ~inside)) is not None:
        raise ValueError(
            f"with gamma = 1 episodes must be able to end, but from start state {s} ({mdp.describe(s)}) no policy is "
            f"sure to; take gamma below 1"
        )
