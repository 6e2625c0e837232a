"""A slow, obvious twin of evidence, written from the mathematics in its documentation. Imports nothing of lacuna."""

import math
from collections import defaultdict

State = tuple[int | None, ...]
Outcome = tuple[float, bool]
Pattern = tuple[bool, ...]


def pattern_of(observation: State) -> Pattern:
    return tuple(value is None for value in observation)


class NaiveEvidence:
    """What came with arrivals: outcomes where the pathways took them to be, patterns where the model foretold them."""

    def __init__(self, K: int, sources: str) -> None:
        self.K = K
        self.uses_outcomes, self.uses_patterns = sources in ("outcomes", "all"), sources in ("patterns", "all")
        self.steps = 0
        self.outcomes: dict[Outcome, int] = {}
        self.told: dict[tuple[State, Outcome], float] = defaultdict(float)
        self.arrived: dict[State, float] = defaultdict(float)
        self.seen: list[Pattern] = []
        self.foretold: dict[State, list[Pattern]] = defaultdict(list)
        self.odds = 1.0

    def outcome_chances(self, outcome: Outcome, states: list[State]) -> list[float]:
        if outcome not in self.outcomes:
            return [1.0] * len(states)
        frequency = self.outcomes[outcome] / self.steps
        return [(self.told[s, outcome] + frequency) / (self.arrived[s] + 1.0) for s in states]

    def pattern_chance(self, pattern: Pattern, state: State) -> float:
        frequency = self.seen.count(pattern) / len(self.seen)
        there = self.foretold[state]
        return (there.count(pattern) + 10.0 * frequency) / (len(there) + 10.0)

    def patterns_tell(self, observation: State) -> bool:
        """Whether this pattern is evidence: known, of an incomplete state, and states were clearly worth knowing."""
        pattern = pattern_of(observation)
        return self.uses_patterns and any(pattern) and pattern in self.seen and self.odds > math.exp(10.0)

    def weights(self, outcome: Outcome, observation: State, states: list[State]) -> list[float]:
        weights = self.outcome_chances(outcome, states)
        if self.patterns_tell(observation):
            pattern = pattern_of(observation)
            weights = [w * self.pattern_chance(pattern, s) for w, s in zip(weights, states, strict=True)]
        return weights

    def credit(self, outcome: Outcome, states: list[State]) -> None:
        if not self.uses_outcomes:
            return
        self.steps += 1
        if outcome in self.outcomes or len(self.outcomes) < 8:
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        for s in states:
            self.arrived[s] += 1.0 / self.K
            if outcome in self.outcomes:
                self.told[s, outcome] += 1.0 / self.K

    def next_place(self) -> tuple[int, float]:
        """Which pathway foretells the next state, and the place in [0, 1) at which it draws."""
        t = len(self.seen)
        return t % self.K, (t % 987 * 610 % 987 + 0.5) / 987

    def count(self, observation: State, state: State) -> None:
        pattern = pattern_of(observation)
        if pattern in self.seen:
            frequency = self.seen.count(pattern) / len(self.seen)
            self.odds *= self.pattern_chance(pattern, state) / frequency
            self.odds = min(max(self.odds, 2.0**-20), 2.0**100)
        self.foretold[state].append(pattern)
        self.seen.append(pattern)


def resampled(pairs: list[tuple[State, State]], weights: list[float], u: float) -> list[tuple[State, State]]:
    """Systematic resampling: those that go on stay where they are; copies take the first places that are free."""
    K, total = len(pairs), sum(weights)
    if total == 0:
        return pairs
    ends = [sum(w / total * K for w in weights[: k + 1]) for k in range(K)]
    ends[-1] = float(K)
    owners = [min(k for k in range(K) if i + u < ends[k]) for i in range(K)]
    free = [k for k in range(K) if k not in owners]
    copies = [owner for i, owner in enumerate(owners) if i > 0 and owners[i - 1] == owner]
    found = list(pairs)
    for place, owner in zip(free, copies, strict=True):
        found[place] = pairs[owner]
    return found
