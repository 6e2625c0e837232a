"""The four scenarios of the appendix as bandits, and the regret of the three action rules against the share hidden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lacuna.theory.bandit import (
    IMPUTED_MEANS,
    MISSING_AS_STATE,
    OBSERVED_MEANS,
    World,
    make_rule,
    make_world,
    run_bandit,
)
from lacuna.theory.chance import Floats, error_of_mean

SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
RULES = (OBSERVED_MEANS, MISSING_AS_STATE, IMPUTED_MEANS)
STEPS, EPSILON, K = 500, 0.05, 5

_C = _S = _A = 3


def _matching_rewards() -> Floats:
    """In context c and state s, action (c + s) mod 3 pays 1 on average, the others 0."""
    c, s, a = np.ogrid[:_C, :_S, :_A]
    return np.where((c + s) % _A == a, 1.0, 0.0)


def _even() -> Floats:
    return np.full(_C, 1 / _C)


def predictive(share: float, sure: float = 0.95) -> World:
    """MAR; the context tells the state with probability `sure`."""
    states = np.full((_C, _S), (1 - sure) / (_S - 1))
    np.fill_diagonal(states, sure)
    return make_world(_even(), states, share, _matching_rewards())


def unpredictive(share: float) -> World:
    """MAR; the state does not depend on the context."""
    return make_world(_even(), [0.5, 0.3, 0.2], share, _matching_rewards())


def signal(share: float) -> World:
    """NMAR; the third state is always hidden and nothing else is, so being hidden says all."""
    states = np.array([0.6 * (1 - share), 0.4 * (1 - share), share])
    return make_world(_even(), states, [0.0, 0.0, 1.0], _matching_rewards())


def _skewed(share: float, means: Floats) -> World:
    """Two states, equally likely; the second is hidden four times as often as the first, or whenever it occurs."""
    second = min(1.0, 1.6 * share)
    return make_world(_even(), [0.5, 0.5], [2 * share - second, second], means)


def skewed_alike(share: float) -> World:
    """General NMAR; the two states pay differently, but rank the actions alike."""
    base = np.array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    return _skewed(share, np.stack([np.roll(base, c, axis=1) for c in range(_C)]))


def skewed_opposed(share: float) -> World:
    """General NMAR; the two states want different actions."""
    base = np.array([[1.0, 0.0, 0.4], [0.0, 1.0, 0.4]])
    return _skewed(share, np.stack([np.roll(base, c, axis=1) for c in range(_C)]))


SCENARIOS: dict[str, tuple[str, Callable[[float], World]]] = {
    "predictive": ("1. predictive, MAR", predictive),
    "unpredictive": ("2. not predictive, MAR", unpredictive),
    "signal": ("3. missing is a signal, NMAR", signal),
    "alike": ("4a. NMAR, actions ranked alike", skewed_alike),
    "opposed": ("4b. NMAR, actions ranked apart", skewed_opposed),
}


@dataclass(frozen=True)
class Regret:
    """What greedy choices lose over a run against the best choice given what is seen, by (share, rule).

    `seen` and `lost` split the mean into decisions with the state seen and hidden; `late` is the second half of a run;
    `unknown`, by share, is what even the best choice loses on top by not knowing a hidden state.
    """

    shares: tuple[float, ...]
    mean: Floats
    error: Floats
    seen: Floats
    lost: Floats
    late: Floats
    unknown: Floats

    def arch(self, kind: int, *, knowing: bool = False) -> tuple[float, float]:
        """Regret at half hidden above the larger regret of the two ends, 2 % and 98 %, with its standard error.

        With `knowing`, regret is against a choice that knows every hidden state.
        """
        total = self.mean[:, kind] + (self.unknown if knowing else 0)
        middle = self.shares.index(0.5)
        end = max((self.shares.index(0.02), self.shares.index(0.98)), key=lambda i: float(total[i]))
        return float(total[middle] - total[end]), float(np.hypot(self.error[middle, kind], self.error[end, kind]))

    def advantage(self, share: float) -> tuple[float, float]:
        """How much less imputed means lose than missing as a state, with its standard error."""
        i = self.shares.index(share)
        gap = self.mean[i, MISSING_AS_STATE] - self.mean[i, IMPUTED_MEANS]
        return float(gap), float(np.hypot(self.error[i, MISSING_AS_STATE], self.error[i, IMPUTED_MEANS]))


def price_of_not_knowing(world: World) -> float:
    """What a step loses on average if hidden states are unknown, against knowing them, both with the best choice.

    Examples
    --------
    >>> round(price_of_not_knowing(unpredictive(0.5)), 3)  # half of the time, 0.5 instead of 1
    0.25
    """
    p_c, p_s = np.diff(world.contexts, prepend=0), np.diff(world.states, axis=1, prepend=0)
    joint = p_c[:, None] * p_s * world.hidden
    known = (joint * world.means.max(axis=2)).sum()
    blind = np.einsum("cs,csa->ca", joint, world.means).max(axis=1).sum()
    return float(known - blind)


def regret(
    scenario: str, paths: int, seed: int, shares: tuple[float, ...] = SHARES, kinds: tuple[int, ...] = RULES
) -> Regret:
    """Regret in a scenario by the share of states hidden; of rules that are not asked for, NaN."""
    shape = (len(shares), len(RULES))
    mean, error, seen, lost, late = (np.full(shape, np.nan) for _ in range(5))
    unknown = np.array([STEPS * price_of_not_knowing(SCENARIOS[scenario][1](share)) for share in shares])
    for i, share in enumerate(shares):
        world = SCENARIOS[scenario][1](share)
        for kind in kinds:
            rule = make_rule(kind, world, epsilon=EPSILON, K=K)
            outcome = run_bandit(world, rule, STEPS, paths, seed, "scenario", scenario, share, kind)
            mean[i, kind], error[i, kind] = outcome.regret.mean(), error_of_mean(outcome.regret)
            seen[i, kind], lost[i, kind] = outcome.losses.sum(axis=1).mean(axis=0)
            late[i, kind] = outcome.losses[:, 1].sum(axis=1).mean()
    return Regret(shares, mean, error, seen, lost, late, unknown)
