"""The slow, obvious twin of the yardsticks' belief, written from the specification alone. Imports nothing of lacuna."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

State = tuple[int | None, ...]


class NaiveBelief:
    """The probability of every true state, given all that an agent is told: Bayes' rule with dictionaries.

    Beliefs are over pairs: the mode of what hides, and the true state.

    outcomes(state, action)
        All that may follow: (probability, next state, reward, whether the episode then terminates).
    starts(state)
        Where an episode may start after one that stopped in `state`, None if there was none, with probabilities.
    sees(mode, state, action, observation)
        For each mode that may come next, the probability that it does and that just this is then seen of `state`.
    """

    def __init__(
        self, outcomes: Callable[[Any, int], Iterable[tuple[float, Any, float, bool]]],
        starts: Callable[[Any], Mapping[Any, float]],
        sees: Callable[[int, Any, int | None, State], Mapping[int, float]], *, uses_rewards: bool,
    ) -> None:  # fmt: skip
        self.outcomes, self.starts, self.sees, self.uses_rewards = outcomes, starts, sees, uses_rewards
        self.weights: dict[tuple[int, Any], float] = {(0, None): 1.0}

    def begin(self, observation: State) -> None:
        ahead: dict[tuple[int, Any], float] = defaultdict(float)
        for (mode, state), weight in self.weights.items():
            for first, p in self.starts(state).items():
                ahead[mode, first] += weight * p
        self.condition(ahead, None, observation)

    def learn(self, action: int, reward: float, observation: State, terminated: bool) -> None:
        ahead: dict[tuple[int, Any], float] = defaultdict(float)
        for (mode, state), weight in self.weights.items():
            for p, following, paid, terminates in self.outcomes(state, action):
                if terminates == terminated and (paid == reward or not self.uses_rewards):
                    ahead[mode, following] += weight * p
        self.condition(ahead, action, observation)

    def condition(self, ahead: Mapping[tuple[int, Any], float], action: int | None, observation: State) -> None:
        joint: dict[tuple[int, Any], float] = defaultdict(float)
        for (mode, state), weight in ahead.items():
            for mode_now, p in self.sees(mode, state, action, observation).items():
                joint[mode_now, state] += weight * p
        total = sum(joint.values())
        self.weights = {pair: p / total for pair, p in joint.items() if p > 0}
