"""A contextual bandit with a context C that is always seen and a state S that may be hidden, compiled.

It serves two ends: the mean estimators of the appendix at a fixed context (actions then follow a fixed table, so
nothing is adaptive), and the regret of the three action rules in the four scenarios.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import kernel
from lacuna.theory.chance import Floats, generator, paths_at_once

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
    guesses: int
    table: Floats
    on_guess: bool


class Tables(NamedTuple):
    """What was learned, for each path: sums and counts of rewards, by where they were credited."""

    seen_sum: Floats
    seen_n: Floats
    lost_sum: Floats
    lost_n: Floats
    fill_sum: Floats
    fill_n: Floats
    fill_squares: Floats
    states: Floats


@kernel
def place(u: float, cumulative: Floats) -> int:
    """The first place whose cumulative share exceeds u."""
    i = 0
    while i < cumulative.shape[0] - 1 and u >= cumulative[i]:
        i += 1
    return i


@kernel
def guess_state(u: float, path: int, c: int, a: int, r: float, world: World, rule: Rule, tables: Tables) -> int:
    """Draw a guess of a hidden state."""
    S = world.states.shape[1]
    total = 0.0
    for s in range(S):
        total += guess_weight(s, path, c, a, r, world, rule, tables)
    if total == 0.0:
        return int(u * S)
    left, s = u * total, 0
    while s < S - 1:
        left -= guess_weight(s, path, c, a, r, world, rule, tables)
        if left < 0.0:
            break
        s += 1
    return s


@kernel
def guess_weight(s: int, path: int, c: int, a: int, r: float, world: World, rule: Rule, tables: Tables) -> float:
    """How likely a guess is, up to a factor."""
    if rule.guesses == SEEN_SHARES:
        return float(tables.states[path, c, s])
    share = world.states[c, s] - (world.states[c, s - 1] if s > 0 else 0.0)
    if rule.guesses == GIVEN_REWARD:
        z = (r - world.means[c, s, a]) / world.spreads[c, s, a]
        share *= exp(-0.5 * z * z) / world.spreads[c, s, a]
    return float(share)


@kernel
def value(path: int, c: int, s: int, a: int, hidden: bool, kind: int, tables: Tables) -> float:
    """The mean a rule looks at; an action never tried there comes first."""
    if hidden and kind == MISSING_AS_STATE:
        total, n = tables.lost_sum[path, c, a], tables.lost_n[path, c, a]
    else:
        total, n = tables.seen_sum[path, c, s, a], tables.seen_n[path, c, s, a]
        if kind == IMPUTED_MEANS:
            total += tables.fill_sum[path, c, s, a]
            n += tables.fill_n[path, c, s, a]
    return float(total / n) if n > 0.0 else np.inf


@kernel
def best_action(u: float, path: int, c: int, s: int, hidden: bool, kind: int, A: int, tables: Tables) -> int:
    """The action with the largest mean; u decides among equals."""
    best, ties = value(path, c, s, 0, hidden, kind, tables), 1
    for a in range(1, A):
        v = value(path, c, s, a, hidden, kind, tables)
        if v > best:
            best, ties = v, 1
        elif v == best:
            ties += 1
    skip = int(u * ties)
    for a in range(A):
        if value(path, c, s, a, hidden, kind, tables) == best:
            if skip == 0:
                return a
            skip -= 1
    return A - 1


@kernel
def credit(
    path: int, c: int, s: int, a: int, r: float, hidden: bool, K: int, guesses: NDArray[np.int64], tables: Tables
) -> None:  # fmt: skip
    """Add a reward to the means: to those of its state, or to those of the guesses and to those of `?`."""
    if not hidden:
        tables.seen_sum[path, c, s, a] += r
        tables.seen_n[path, c, s, a] += 1.0
        tables.states[path, c, s] += 1.0
        return
    tables.lost_sum[path, c, a] += r
    tables.lost_n[path, c, a] += 1.0
    for s_guess in range(tables.states.shape[2]):
        votes = 0.0
        for k in range(K):
            if guesses[k] == s_guess:
                votes += 1.0 / K
        tables.fill_sum[path, c, s_guess, a] += r * votes
        tables.fill_n[path, c, s_guess, a] += votes
        tables.fill_squares[path, c, s_guess, a] += votes * votes


@kernel
def follow_bandit(
    numbers: Floats, noise: Floats, world: World, rule: Rule, guesses: NDArray[np.int64], tables: Tables, losses: Floats
) -> None:
    """Follow one path per row of `noise`; `losses` adds up by (path, half, hidden) what the greedy choices lose."""
    steps, S, A = noise.shape[1], world.means.shape[1], world.means.shape[2]
    for path in range(noise.shape[0]):
        for t in range(steps):
            first = t * (_PER_STEP + rule.K)
            c = place(numbers[path, first], world.contexts)
            s = place(numbers[path, first + 1], world.states[c])
            hidden = numbers[path, first + 2] < world.hidden[c, s]
            coin, choice = numbers[path, first + 3], numbers[path, first + 4]
            if hidden and rule.guesses != GIVEN_REWARD:
                for k in range(rule.K):
                    u = numbers[path, first + _PER_STEP + k]
                    guesses[k] = guess_state(u, path, c, 0, 0.0, world, rule, tables)
            row = guesses[0] if hidden else s
            if rule.kind == FIXED:
                a = place(choice, rule.table[c, S if hidden and not rule.on_guess else row])
            else:
                a = best_action(choice, path, c, row, hidden, rule.kind, A, tables)
                losses[path, 2 * t // steps, 1 if hidden else 0] += world.loss[c, S if hidden else s, a]
                if coin < rule.epsilon:
                    a = int(coin / rule.epsilon * A)
            r = world.means[c, s, a] + world.spreads[c, s, a] * noise[path, t]
            if hidden and rule.guesses == GIVEN_REWARD:
                for k in range(rule.K):
                    u = numbers[path, first + _PER_STEP + k]
                    guesses[k] = guess_state(u, path, c, a, r, world, rule, tables)
            credit(path, c, s, a, r, hidden, rule.K, guesses, tables)


@dataclass(frozen=True)
class Outcome:
    """Tables and losses of all paths."""

    tables: Tables
    losses: Floats

    @property
    def regret(self) -> Floats:
        """Total loss of each path's greedy choices."""
        return np.asarray(self.losses.sum(axis=(1, 2)))


def make_world(contexts: object, states: object, hidden: object, means: object, spreads: object = 1.0) -> World:
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


def make_rule(kind: int, world: World, *, epsilon: float = 0.0, K: int = 1, guesses: int = SEEN_SHARES,
              table: object = None, on_guess: bool = False) -> Rule:  # fmt: skip
    """Build a rule; without a table, a fixed one acts uniformly."""
    C, S, A = world.means.shape
    shares = np.full(A, 1 / A) if table is None else np.asarray(table, dtype=float)
    return Rule(kind, epsilon, K, guesses, np.cumsum(np.broadcast_to(shares, (C, S + 1, A)), axis=2), on_guess)


def new_tables(paths: int, world: World) -> Tables:
    """Empty tables."""
    C, S, A = world.means.shape
    by_state, by_context = (paths, C, S, A), (paths, C, A)
    zeros = (by_state, by_state, by_context, by_context, by_state, by_state, by_state, (paths, C, S))
    return Tables(*(np.zeros(shape) for shape in zeros))


def run_bandit(world: World, rule: Rule, steps: int, paths: int, seed: int, *names: str | float) -> Outcome:
    """Follow many independent paths.

    Examples
    --------
    >>> world = make_world([1.0], [[1.0]], 0.0, [[[1.0, 0.0]]], spreads=0.1)
    >>> outcome = run_bandit(world, make_rule(OBSERVED_MEANS, world), steps=50, paths=10, seed=0)
    >>> outcome.regret.tolist()  # each action is tried once, then the better one is known
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    rng = generator(seed, *names)
    used = steps * (_PER_STEP + rule.K)
    at_once = paths_at_once(used, paths)
    numbers, noise = np.empty((at_once, used)), np.empty((at_once, steps))
    tables, losses = new_tables(paths, world), np.zeros((paths, 2, 2))
    guesses = np.zeros(rule.K, dtype=np.int64)
    for first in range(0, paths, at_once):
        last = min(first + at_once, paths)
        rng.random(out=numbers)
        rng.standard_normal(out=noise)
        some = Tables(*(table[first:last] for table in tables))
        follow_bandit(numbers[: last - first], noise[: last - first], world, rule, guesses, some, losses[first:last])
    return Outcome(tables, losses)
