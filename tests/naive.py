"""Slow, obvious twins of what lacuna does fast, written from the specification alone. Imports nothing of lacuna."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from naive_evidence import NaiveEvidence, resampled

State = tuple[int | None, ...]
Path = State | None
Outcomes = dict[tuple[int, int, bool, float, bool], float]

N_ROWS, N_COLUMNS = 8, 8
START = (7, 0)
GOAL = (6, 7)
ACTIONS = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (0, 0)]


def is_water(row: int, column: int, flooded: bool) -> bool:
    if row == 6:
        return False
    if flooded:
        return 2 <= column <= 5 and 2 <= row <= 7
    return 3 <= column <= 4 and 3 <= row <= 7


def colour(row: int, column: int, flooded: bool) -> int:
    right = column if column == 7 else column + 1
    wet = [is_water(row, column, flooded), is_water(row, right, flooded)]
    if wet == [True, True]:
        return 2
    if True in wet:
        return 1
    return 0


def reward(row: int, column: int, flooded: bool) -> float:
    if (row, column) == GOAL:
        return 100.0
    if is_water(row, column, flooded):
        return -10.0
    return -1.0


def clip(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def lake_outcomes(row: int, column: int, flooded: bool, action: int, wind: float, flood: float) -> Outcomes:
    """All that may follow an action: {(row, column, flooded, reward, ends): probability}."""
    if (row, column) == GOAL:
        row, column = START
    table: Outcomes = {}
    for flips, p_flood in [(True, flood), (False, 1 - flood)]:
        now_flooded = (not flooded) if flips else flooded
        for row_gust, p_row in [(0, 1 - wind), (-1, wind / 2), (1, wind / 2)]:
            for column_gust, p_column in [(0, 1 - wind), (-1, wind / 2), (1, wind / 2)]:
                to_row = clip(row + ACTIONS[action][0], 0, N_ROWS - 1)
                to_column = clip(column + ACTIONS[action][1], 0, N_COLUMNS - 1)
                to_row = clip(to_row + row_gust, 0, N_ROWS - 1)
                to_column = clip(to_column + column_gust, 0, N_COLUMNS - 1)
                to_row = clip(to_row, row - 1, row + 1)
                to_column = clip(to_column, column - 1, column + 1)
                pays = reward(to_row, to_column, now_flooded)
                key = (to_row, to_column, now_flooded, pays, (to_row, to_column) == GOAL)
                table[key] = table.get(key, 0.0) + p_flood * p_row * p_column
    return {key: p for key, p in table.items() if p > 0}


SAMPLE = -1
"""In the place of a second component: none, in the sample by which parents are judged."""


def one_more(row: dict[Any, int], item: Any, times: int = 1) -> dict[Any, int]:
    """Count an item; the more frequent ones stand first, and newcomers behind their equals."""
    n = times + row.get(item, 0)
    others = [(other, m) for other, m in row.items() if other != item]
    ahead = [(other, m) for other, m in others if m >= n]
    return dict([*ahead, (item, n), *others[len(ahead) :]])


def filled(observation: State, others: State) -> State:
    """What was seen, and the others where nothing was."""
    return tuple(other if value is None else value for value, other in zip(observation, others, strict=True))


def pick(counted: list[tuple[Any, int]], u: float, size: int) -> Any:
    """A value in proportion to its count, in the order given; if nothing was counted, any of `size` values."""
    total = sum(n for _, n in counted)
    rank = int(u * (total or size))
    for value, n in counted if total else [(value, 1) for value in range(size)]:
        rank -= n
        if rank < 0:
            return value
    raise AssertionError("u must be below 1")


class NaiveLearner:
    """Every method of SPEC §4 with dictionaries and loops.

    States are tuples of component values, `None` for missing. Random numbers come from two iterators, used as the
    product does: one per guessed pathway, a coin and K - 1 numbers for a shuffle, one per action, before it a coin if
    it may explore.
    """

    def __init__(
        self, sizes: Sequence[int], n_actions: int, *, method: str, K: int = 1, alpha: float, gamma: float,
        epsilon: float = 0.0, vote: str = "sampled", update: str = "sequential", p_shuffle: float = 0.0,
        kappa: float = 0.0, smoothing: float = 0.0, parents: float = 0.0,
        optimism: float = 0.0, cycles: int = 0, q_table: str = "shared", assumed: float = 0.0,
        evidence: str = "observed", imputation: Iterable[float], exploration: Iterable[float],
    ) -> None:  # fmt: skip
        self.sizes, self.actions = tuple(sizes), range(n_actions)
        self.method, self.K, self.alpha, self.gamma, self.epsilon = method, K, alpha, gamma, epsilon
        self.vote, self.update, self.p_shuffle = vote, update, p_shuffle
        self.kappa, self.smoothing, self.backoff, self.optimism = kappa, smoothing, parents, optimism
        # Values of component j after value u and an action, given that component p had value w; p is j for j alone,
        # `SAMPLE` for j alone in the sample that pairs are counted in.
        self.parts: dict[tuple[int, int, int, int, int], dict[int, int]] = defaultdict(dict)
        self.likelier: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
        self.hidden, self.judged = ([0] * len(sizes) for _ in range(2))
        # In a large world, components are counted from the start.
        self.small = n_actions * sum(size**2 for size in sizes) <= 2000
        self.rewards: list[float] = []
        self.evidence = NaiveEvidence(K, evidence)
        self.imputation, self.exploration = iter(imputation), iter(exploration)
        self.cycles, self.own = cycles, q_table == "own"
        self.assumed = tuple(math.floor(assumed * (size - 1) + 0.5) for size in sizes)
        # For each pathway its Q table, what was tried, and its model: the same object where they share it.
        self.Q: dict[tuple[Path, int], float] = defaultdict(float)
        self.tried: dict[tuple[Path, int], int] = defaultdict(int)
        self.counts: dict[tuple[Path, int], dict[State, int]] = defaultdict(dict)
        self.Qs, self.trieds, self.models = [self.Q] * K, [self.tried] * K, [self.counts] * K
        if self.own:
            self.Qs, self.trieds = [defaultdict(float) for _ in range(K)], [defaultdict(int) for _ in range(K)]
        if method == "mi-separate":
            self.models = [defaultdict(dict) for _ in range(K)]
        self.paths: list[Path] = []
        self.previous: State = ()
        self.held: State = ()

    def agreeing(self, observation: State) -> list[State]:
        """All complete states that agree, the first hidden component changing fastest."""
        hidden = [j for j, value in enumerate(observation) if value is None]
        states = []
        for choice in product(*(range(self.sizes[j]) for j in reversed(hidden))):
            state = list(observation)
            for j, value in zip(reversed(hidden), choice, strict=True):
                state[j] = value
            states.append(tuple(state))
        return states

    def guess(self, observation: State) -> State:
        if None not in observation:
            return tuple(observation)
        states = self.agreeing(observation)
        return states[int(next(self.imputation) * len(states))]

    def begin(self, observation: State) -> None:
        self.previous = observation
        if self.method == "random-action":
            self.paths = [observation if None not in observation else None]
        elif self.method == "missing-as-state":
            self.paths = [observation]
        elif self.method in ("zero-context", "assumed-value", "carry-default"):
            self.held = self.assumed
            self.paths = self.impute(0, observation)
        else:
            self.paths = [self.guess(observation) for _ in range(self.K)]
            self.held = self.paths[0] or ()

    def worth(self, k: int, action: int) -> float:
        """The value to a pathway, and optimism for what was not yet tried, in units of the highest reward so far."""
        state, sharing = self.paths[k], 1 if self.own else self.K
        if self.optimism == 0 or not self.rewards:
            return self.Qs[k][state, action]
        extra = self.optimism * max(0.0, *self.rewards) / sharing
        return self.Qs[k][state, action] + extra * max(0, sharing - self.trieds[k][state, action])

    def best_actions(self, k: int) -> list[int]:
        values = [self.worth(k, a) for a in self.actions]
        return [a for a in self.actions if values[a] == max(values)]

    def votes(self) -> list[float]:
        votes = [0.0 for _ in self.actions]
        for k in range(self.K):
            best = self.best_actions(k)
            for a in best:
                votes[a] += 1 / len(best)
        return votes

    def probabilities(self) -> list[float]:
        n = len(self.actions)
        if self.paths == [None]:
            p = [1 / n] * n
        elif self.vote == "sampled":
            p = [v / len(self.paths) for v in self.votes()]
        elif self.vote == "majority":
            votes = self.votes()
            best = [a for a in self.actions if votes[a] > max(votes) - 1e-9]
            p = [1 / len(best) if a in best else 0.0 for a in self.actions]
        elif self.vote == "softmax":
            weights = [math.exp(v) if v > 0 else 0.0 for v in self.votes()]
            p = [weight / sum(weights) for weight in weights]
        else:
            means = [sum(self.worth(k, a) for k in range(self.K)) / self.K for a in self.actions]
            best = [a for a in self.actions if means[a] > max(means) - 1e-12 * (1 + abs(max(means)))]
            p = [1 / len(best) if a in best else 0.0 for a in self.actions]
        return [(1 - self.epsilon) * x + self.epsilon / n for x in p]

    def act(self) -> int:
        """Only for the paper's vote: a pathway at random, then one of its best actions at random."""
        explores = self.epsilon > 0 and next(self.exploration) < self.epsilon
        u = next(self.exploration)
        if explores or self.paths == [None]:
            return int(u * len(self.actions))
        k = int(u * len(self.paths))
        best = self.best_actions(k)
        return best[int((u * len(self.paths) - k) * len(best))]

    def impute(self, action: int, observation: State) -> list[Path]:
        if self.method == "random-action":
            return [observation if None not in observation else None]
        if self.method == "missing-as-state":
            return [observation]
        if self.method == "last-fully-observed":
            if None not in observation:
                self.held = observation
            return [self.held]
        if self.method == "last-observed":
            self.held = filled(observation, self.held)
            return [self.held]
        if self.method == "zero-context":
            return [(0,) * len(self.sizes) if None in observation else observation]
        if self.method == "assumed-value":
            return [filled(observation, self.assumed)]
        if self.method == "carry-default":
            # What was assumed at the beginning of the episode stays until something is seen.
            self.held = filled(observation, self.held)
            return [self.held]
        if None not in observation:
            return [observation] * self.K
        if self.method == "mi-chained" and observation.count(None) > 1:
            return [self.chained(self.counts[path, action], observation) for path in self.paths]
        drawn: list[Path] = []
        for model, path in zip(self.models, self.paths, strict=True):
            row = model[path, action]
            fits = set(self.agreeing(observation))
            agreeing = {s: n for s, n in row.items() if s in fits}
            J = sum(agreeing.values())
            f = self.likelihood(path, action, observation)
            if J == 0 and (self.kappa == 0 or f == 0):
                drawn.append(self.guess(observation))
                continue
            # On a line of length J + κ: the joint counts, then what they get back of κ, then the components.
            x = next(self.imputation) * (J + self.kappa)
            if x < J:
                rank = int(x)
            else:
                back = J * (1 - f) / (J + self.kappa * f)
                place = (x - J) / self.kappa
                if place >= back:
                    drawn.append(self.draw_parts(path, action, observation, (place - back) / (1 - back)))
                    continue
                rank = int(place / back * J)
            for s, n in agreeing.items():
                rank -= n
                if rank < 0:
                    drawn.append(s)
                    break
        return drawn

    def chained(self, row: dict[State, int], observation: State) -> State:
        """Each hidden component from its marginal in a row of counts, then, in cycles, given all the others."""
        hidden = [j for j, value in enumerate(observation) if value is None]
        state: list[Any] = list(observation)
        # What the first one starts from is never looked at.
        for j in hidden[1:]:
            u = next(self.imputation)
            state[j] = pick([(s[j], n) for s, n in row.items()], u, self.sizes[j])
        for j in hidden * self.cycles:
            u = next(self.imputation)
            given = [(v, row.get((*state[:j], v, *state[j + 1 :]), 0)) for v in range(self.sizes[j])]
            state[j] = pick(given, u, self.sizes[j])
        return tuple(state)

    def parent(self, j: int) -> int | None:
        """The component that made what j did the likeliest, if that is e^10 times likelier than without one."""
        others = [p for p in range(len(self.sizes)) if p != j]
        best = max(others, key=lambda p: self.likelier[j, p], default=j)
        return best if self.backoff > 0 and self.likelier[j, best] > math.exp(10.0) and best != j else None

    def alone(self, j: int, u: int, action: int, v: int, *, judging: bool = False) -> float:
        row = self.parts[j, SAMPLE if judging else j, u, u, action]
        weight = sum(row.values()) + self.smoothing * self.sizes[j]
        return (row.get(v, 0) + self.smoothing) / weight if weight > 0 else 1 / self.sizes[j]

    def likelihood(self, path: Any, action: int, observation: State) -> float:
        f = 1.0
        for j, (u, v) in enumerate(zip(path, observation, strict=True)):
            if v is not None:
                P, p = self.alone(j, u, action, v), self.parent(j)
                if p is not None:
                    row = self.parts[j, p, u, path[p], action]
                    P = (row.get(v, 0) + self.backoff * P) / (sum(row.values()) + self.backoff)
                f *= P
        return f

    def draw_parts(self, path: Any, action: int, observation: State, place: float) -> State:
        """Each hidden component by its counts with its parent, then its own, then what smoothing adds."""
        state: list[Any] = list(observation)
        for j, (u, v) in enumerate(zip(path, observation, strict=True)):
            if v is not None:
                continue
            p = self.parent(j)
            stages = [(self.parts[j, j, u, u, action], self.smoothing * self.sizes[j])]
            if p is not None:
                stages.insert(0, (self.parts[j, p, u, path[p], action], self.backoff))
            for row, more in stages:
                x = place * (sum(row.values()) + more)
                for value, n in row.items():
                    if x < n:
                        state[j], place = value, x / n
                        break
                    x -= n
                else:
                    place = x / more if more > 0 else place
                if state[j] is not None:
                    break
            if state[j] is None:
                state[j] = min(int(place * self.sizes[j]), self.sizes[j] - 1)
                place = place * self.sizes[j] - state[j]
        return tuple(state)

    def count_parts(self, action: int, observation: State, times: int) -> None:
        """Count the components that were seen before and after."""
        for j, (u, v) in enumerate(zip(self.previous, observation, strict=True)):
            if u is not None and v is not None and times > 0:
                self.parts[j, j, u, u, action] = one_more(self.parts[j, j, u, u, action], v, times)

    def seek_parents(self, action: int, observation: State) -> None:
        """Judge by a value that is seen if, of its component, four were hidden for each that was judged by before."""
        for j, (u, v) in enumerate(zip(self.previous, observation, strict=True)):
            others = {p: w for p, w in enumerate(self.previous) if p != j and w is not None}
            if u is None or v is None or not others or self.hidden[j] < 4 * (self.judged[j] + 1):
                self.hidden[j] += v is None
                continue
            self.judged[j] += 1
            P = self.alone(j, u, action, v, judging=True)
            self.parts[j, SAMPLE, u, u, action] = one_more(self.parts[j, SAMPLE, u, u, action], v)
            for p, w in others.items():
                row = self.parts[j, p, u, w, action]
                likelier = row.get(v, 0) / P if P > 0 else 0.0
                self.likelier[j, p] *= (likelier + self.backoff) / (sum(row.values()) + self.backoff)
                self.parts[j, p, u, w, action] = one_more(row, v)

    def passed_on(self, n: int) -> int:
        """How many of n equal transitions count for the components: with parents, a power of two."""
        return 2 ** int(math.log2(n)) if self.backoff > 0 and n > 0 else n

    @property
    def waiting(self) -> bool:
        """Whether components were not counted yet."""
        return self.small and not any(self.parts.values())

    def catch_up(self) -> None:
        """Count the components of all transitions so far, in the order of states, actions and successors."""
        transitions = [(s, a, s_next, n) for (s, a), row in self.counts.items() for s_next, n in row.items()]
        now = self.previous
        for s, action, s_next, n in sorted(transitions, key=lambda transition: transition[:2]):
            self.previous = s or ()
            self.count_parts(action, s_next, self.passed_on(n))
        self.previous = now

    def count(self, s: State, action: int, s_next: State, k: int = 0) -> None:
        """Count a transition in the model of a pathway."""
        self.models[k][s, action] = one_more(self.models[k][s, action], s_next)

    def weigh(self, following: list[Any], outcome: tuple[float, bool], observation: State) -> list[Any]:
        """Resample the pathways by evidence, if it tells them apart."""
        if None in observation and None not in following:
            weights = self.evidence.weights(outcome, observation, following)
            if len(set(weights)) > 1:
                pairs: Any = list(zip(self.paths, following, strict=True))
                pairs = resampled(pairs, weights, next(self.imputation))
                self.paths, following = (list(side) for side in zip(*pairs, strict=True))
        return following

    def foretell(self, action: int) -> State:
        """A next state of one pathway by the model alone."""
        k, u = self.evidence.next_place()
        row, nothing = self.models[k][self.paths[k], action], (None,) * len(self.sizes)
        kappa = 0.0 if self.waiting else self.kappa
        n = sum(row.values())
        x = u * (n + kappa)
        if x >= n and kappa > 0:
            return self.draw_parts(self.paths[k], action, nothing, (x - n) / kappa)
        if x >= n:
            states = self.agreeing(nothing)
            return states[int(u * len(states))]
        rank = int(x)
        for s, times in row.items():
            rank -= times
            if rank < 0:
                return s
        raise AssertionError("the rank is below the sum")

    def error(self, k: int, path: State, action: int, reward: float, terminated: bool, following: State) -> float:
        Q = self.Qs[k]
        bootstrap = 0.0 if terminated else self.gamma * max(Q[following, a] for a in self.actions)
        return reward + bootstrap - Q[path, action]

    def foresee(self, action: int, observation: State, outcome: tuple[float, bool]) -> list[Path]:
        """The next states: imputed, weighed by evidence, then shuffled."""
        complete = None not in observation and None not in self.previous
        available = self.method in ("mi-available", "mi-masked")
        if available and not complete and self.waiting:
            self.catch_up()
        following = self.weigh(self.impute(action, observation), outcome, observation)
        if self.K > 1 and self.p_shuffle > 0 and next(self.imputation) < self.p_shuffle:
            for k in range(self.K - 1, 0, -1):
                i = int(next(self.imputation) * (k + 1))
                following[k], following[i] = following[i], following[k]
        return following

    def learn(self, action: int, reward: float, observation: State, terminated: bool) -> None:
        complete = None not in observation and None not in self.previous
        available = self.method in ("mi-available", "mi-masked")
        following = self.foresee(action, observation, (reward, terminated))
        sharing = 1 if self.own else self.K
        rate = 1 - (1 - self.alpha) ** (1 / sharing) if self.update == "exact-rate" else self.alpha / sharing
        both = zip(range(self.K), self.paths, following, strict=True)
        pairs = [(k, s, s_next) for k, s, s_next in both if s is not None and s_next is not None]
        self.rewards.append(reward)
        for k, s, _ in pairs:
            self.trieds[k][s, action] += 1
        if self.update == "simultaneous":
            errors = [self.error(k, s, action, reward, terminated, s_next) for k, s, s_next in pairs]
            for (k, s, _), error in zip(pairs, errors, strict=True):
                self.Qs[k][s, action] += rate * error
        else:
            for k, s, s_next in pairs:
                self.Qs[k][s, action] += rate * self.error(k, s, action, reward, terminated, s_next)
        self.evidence.credit((reward, terminated), [s_next for _, _, s_next in pairs])
        if self.evidence.uses_patterns:
            self.evidence.count(observation, self.foretell(action))
        if self.method in ("mi-synthetic", "mi-chained", "mi-separate"):
            # In units of 1/K, so that everything stays a whole number.
            for k, s, s_next in pairs:
                self.count(s, action, s_next, k)
        elif (available or self.method == "mi-conservative") and complete:
            self.count(self.previous, action, observation)
        if available and not (complete and self.waiting):
            n = self.counts[self.previous, action][observation] if complete else 1
            self.count_parts(action, observation, self.passed_on(n) - self.passed_on(n - 1))
            if self.backoff > 0:
                self.seek_parents(action, observation)
        self.paths = following
        self.previous = observation
