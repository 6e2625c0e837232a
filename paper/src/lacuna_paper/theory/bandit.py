"""A contextual bandit with a context C that is always seen and a state S that may be hidden, compiled.

It serves two ends: the mean estimators of the appendix at a fixed context (actions then follow a fixed table, so
nothing is adaptive), and the regret of the three action rules in the four scenarios.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacuna.kernels import kernel
from lacuna_paper.theory.measuring import Floats, blocks, generator

OBSERVED_MEANS, MISSING_AS_STATE, IMPUTED_MEANS, FIXED = range(4)
"""The action rules: the three of the appendix in the order of its equations, and a fixed table."""

RULE_NAMES = ("observed means, acting on a guess", "missing as a state", "imputed means, acting on a guess")

TRUE_SHARES, SEEN_SHARES, GIVEN_REWARD = range(3)
"""What guesses are drawn from: p(s | c), the shares observed so far, or p(s | c, a, r), which sees the reward."""

_PER_STEP = 5  # uniform numbers besides the K guesses: context, state, mask, coin, choice


class World(NamedTuple):
    """A bandit as arrays over (context, state, action); shares are cumulative, rewards are normal.

    `loss` has one more state, hidden: what an action loses, on average, against the best one given what is seen.
    """

    contexts: Floats
    states: Floats
    hidden: Floats
    means: Floats
    spreads: Floats
    loss: Floats


class Rule(NamedTuple):
    """How to act and what to guess with.

    `table` holds cumulative action shares by (context, state or hidden); with `on_guess`, a hidden state acts
    as its guess.
    """

    kind: int
    epsilon: float
    K: int
    guess_from: int
    table: Floats
    on_guess: bool


class Tables(NamedTuple):
    """What was learned, for each path: sums and numbers of rewards by (context, state, action).

    `sums` and `n` have one more state, hidden. `fill_sums` and `fill_n` are by guessed state, a guess counting 1/K;
    `fill_squares` adds up the squares of what the guesses of a step count.
    """

    sums: Floats
    n: Floats
    fill_sums: Floats
    fill_n: Floats
    fill_squares: Floats


@kernel
def place(u: float, cumulative: Floats) -> int:
    """The first place whose cumulative share exceeds u."""
    i = 0
    while i < cumulative.shape[0] - 1 and u >= cumulative[i]:
        i += 1
    return i


@kernel
def guess_weight(s: int, c: int, a: int, r: float, world: World, rule: Rule, tables: Tables) -> float:
    """How likely a guess is, up to a constant factor."""
    if rule.guess_from == SEEN_SHARES:
        seen = 0.0
        for n in tables.n[c, s]:
            seen += n
        return seen
    share = world.states[c, s] - (world.states[c, s - 1] if s > 0 else 0.0)
    if rule.guess_from == GIVEN_REWARD:
        z = (r - world.means[c, s, a]) / world.spreads[c, s, a]
        share *= exp(-0.5 * z * z) / world.spreads[c, s, a]
    return float(share)


@kernel
def guess_state(u: float, c: int, a: int, r: float, world: World, rule: Rule, tables: Tables) -> int:
    """Draw a guess of a hidden state."""
    S = world.states.shape[1]
    total = 0.0
    for s in range(S):
        total += guess_weight(s, c, a, r, world, rule, tables)
    if total == 0.0:
        return int(u * S)
    left, s = u * total, 0
    while s < S - 1:
        left -= guess_weight(s, c, a, r, world, rule, tables)
        if left < 0.0:
            break
        s += 1
    return s


@kernel
def value(c: int, s: int, a: int, kind: int, tables: Tables) -> float:
    """The mean a rule looks at; an action never tried there comes first."""
    total, n = tables.sums[c, s, a], tables.n[c, s, a]
    if kind == IMPUTED_MEANS:
        total += tables.fill_sums[c, s, a]
        n += tables.fill_n[c, s, a]
    return float(total / n) if n > 0.0 else np.inf


@kernel
def best_action(u: float, c: int, s: int, kind: int, tables: Tables) -> int:
    """The action with the largest mean; u decides among equals."""
    A: int = tables.n.shape[2]
    best, ties = value(c, s, 0, kind, tables), 1
    for a in range(1, A):
        v = value(c, s, a, kind, tables)
        if v > best:
            best, ties = v, 1
        elif v == best:
            ties += 1
    skip = int(u * ties)
    for a in range(A):
        if value(c, s, a, kind, tables) == best:
            if skip == 0:
                return a
            skip -= 1
    return A - 1


@kernel
def credit_guesses(c: int, guesses: NDArray[np.int64], a: int, r: float, tables: Tables) -> None:
    """Add a reward to the means of the guessed states."""
    K = guesses.shape[0]
    for s in range(tables.fill_n.shape[1]):
        votes = 0.0
        for k in range(K):
            if guesses[k] == s:
                votes += 1.0 / K
        tables.fill_sums[c, s, a] += r * votes
        tables.fill_n[c, s, a] += votes
        tables.fill_squares[c, s, a] += votes * votes


@kernel
def follow_path(
    numbers: Floats, noise: Floats, world: World, rule: Rule, guesses: NDArray[np.int64], tables: Tables
) -> float:
    """Follow one path, whose tables these are, and give what its greedy choices lose."""
    S, A = world.means.shape[1], world.means.shape[2]
    lost = 0.0
    for t in range(noise.shape[0]):
        first = t * (_PER_STEP + rule.K)
        c = place(numbers[first], world.contexts)
        s = place(numbers[first + 1], world.states[c])
        hidden = numbers[first + 2] < world.hidden[c, s]
        shown = S if hidden else s
        coin, choice = numbers[first + 3], numbers[first + 4]
        if hidden and rule.guess_from != GIVEN_REWARD:
            for k in range(rule.K):
                guesses[k] = guess_state(numbers[first + _PER_STEP + k], c, 0, 0.0, world, rule, tables)
        if rule.kind == FIXED:
            a = place(choice, rule.table[c, guesses[0] if hidden and rule.on_guess else shown])
        else:
            acted_on = guesses[0] if hidden and rule.kind != MISSING_AS_STATE else shown
            a = best_action(choice, c, acted_on, rule.kind, tables)
            lost += world.loss[c, shown, a]
            if coin < rule.epsilon:
                a = int(coin / rule.epsilon * A)
        r = world.means[c, s, a] + world.spreads[c, s, a] * noise[t]
        if hidden and rule.guess_from == GIVEN_REWARD:
            for k in range(rule.K):
                guesses[k] = guess_state(numbers[first + _PER_STEP + k], c, a, r, world, rule, tables)
        tables.sums[c, shown, a] += r
        tables.n[c, shown, a] += 1.0
        if hidden:
            credit_guesses(c, guesses, a, r, tables)
    return lost


@kernel
def follow_bandit(
    numbers: Floats, noise: Floats, world: World, rule: Rule, guesses: NDArray[np.int64], tables: Tables, losses: Floats
) -> None:
    """Follow one path per row of `noise`."""
    for i in range(noise.shape[0]):
        sums, n, fill_sums, fill_n, fill_squares = tables
        own = Tables(sums[i], n[i], fill_sums[i], fill_n[i], fill_squares[i])
        losses[i] = follow_path(numbers[i], noise[i], world, rule, guesses, own)


def make_world(
    contexts: ArrayLike, states: ArrayLike, hidden: ArrayLike, means: ArrayLike, spreads: ArrayLike = 1.0
) -> World:
    """Build a world from shares p(c), p(s | c), rates of hiding, mean rewards and their spreads, broadcast as needed.

    Examples
    --------
    >>> world = make_world([1.0], [[0.7, 0.3]], 0.5, [[[1.0, 0.0], [0.0, 0.5]]])
    >>> world.loss[0].round(2).tolist()
    [[0.0, 1.0], [0.5, 0.0], [0.0, 0.55]]
    """
    mu = np.asarray(means, dtype=float)
    C, S = mu.shape[:2]
    p_s = np.broadcast_to(np.asarray(states, dtype=float), (C, S))
    rate = np.broadcast_to(np.asarray(hidden, dtype=float), (C, S)).copy()
    weights = p_s * rate
    # Where nothing is ever hidden the row is never used; any weights do.
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, p_s)
    unseen = np.einsum("cs,csa->ca", weights / weights.sum(axis=1, keepdims=True), mu)
    shown = np.concatenate([mu, unseen[:, None, :]], axis=1)
    return World(
        np.cumsum(np.asarray(contexts, dtype=float)), np.cumsum(p_s, axis=1), rate, mu,
        np.broadcast_to(np.asarray(spreads, dtype=float), mu.shape).copy(), shown.max(axis=2, keepdims=True) - shown,
    )  # fmt: skip


def make_rule(
    kind: int, world: World, *, epsilon: float = 0.0, K: int = 1, guess_from: int = SEEN_SHARES,
    table: ArrayLike | None = None, on_guess: bool = False,
) -> Rule:  # fmt: skip
    """Build a rule; without a table, a fixed one acts uniformly."""
    C, S, A = world.means.shape
    shares = np.full(A, 1 / A) if table is None else np.asarray(table, dtype=float)
    return Rule(kind, epsilon, K, guess_from, np.cumsum(np.broadcast_to(shares, (C, S + 1, A)), axis=2), on_guess)


def run_bandit(
    world: World, rule: Rule, steps: int, paths: int, seed: int, *names: str | float
) -> tuple[Tables, Floats]:
    """Follow many independent paths; give their tables, and the total loss of each path's greedy choices.

    Examples
    --------
    >>> world = make_world([1.0], [[1.0]], 0.0, [[[1.0, 0.0]]], spreads=0.1)
    >>> _, losses = run_bandit(world, make_rule(OBSERVED_MEANS, world), steps=50, paths=10, seed=0)
    >>> losses.tolist()  # each action is tried once, then the better one is known
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    C, S, A = world.means.shape
    tables = Tables(*np.zeros((2, paths, C, S + 1, A)), *np.zeros((3, paths, C, S, A)))
    losses = np.zeros(paths)
    guesses = np.zeros(rule.K, dtype=np.int64)
    for some, numbers, noise in blocks(generator(seed, *names), paths, steps * (_PER_STEP + rule.K), steps):
        own = Tables(*(table[some] for table in tables))
        follow_bandit(numbers, noise, world, rule, guesses, own, losses[some])
    return tables, losses
