"""Slow, obvious twins of what lacuna does fast, written from the specification alone. Imports nothing of lacuna."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

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
        optimism: float = 0.0, imputation: Iterable[float], exploration: Iterable[float],
    ) -> None:  # fmt: skip
        self.sizes, self.actions = tuple(sizes), range(n_actions)
        self.method, self.K, self.alpha, self.gamma, self.epsilon = method, K, alpha, gamma, epsilon
        self.vote, self.update, self.p_shuffle = vote, update, p_shuffle
        self.kappa, self.smoothing, self.backoff, self.optimism = kappa, smoothing, parents, optimism
        # Values of component j after value u and an action, given that component p had value w; p is j for j alone,
        # `SAMPLE` for j alone in the sample that pairs are counted in.
        self.parts: dict[tuple[int, int, int, int, int], dict[int, int]] = defaultdict(dict)
        self.likelier: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
        self.tried: dict[tuple[Path, int], int] = defaultdict(int)
        self.hidden, self.judged = ([0] * len(sizes) for _ in range(2))
        # In a large world, components are counted from the start.
        self.small = n_actions * sum(size**2 for size in sizes) <= 2000
        self.rewards: list[float] = []
        self.imputation, self.exploration = iter(imputation), iter(exploration)
        self.Q: dict[tuple[Path, int], float] = defaultdict(float)
        self.counts: dict[tuple[Path, int], dict[State, int]] = defaultdict(dict)
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
        else:
            self.paths = [self.guess(observation) for _ in range(self.K)]
            self.held = self.paths[0] or ()

    def worth(self, state: Path, action: int) -> float:
        """The value, and optimism for what was not yet tried, in units of the highest reward so far."""
        if self.optimism == 0 or not self.rewards:
            return self.Q[state, action]
        extra = self.optimism * max(0.0, *self.rewards) / self.K
        return self.Q[state, action] + extra * max(0, self.K - self.tried[state, action])

    def best_actions(self, state: Path) -> list[int]:
        values = [self.worth(state, a) for a in self.actions]
        return [a for a in self.actions if values[a] == max(values)]

    def votes(self) -> list[float]:
        votes = [0.0 for _ in self.actions]
        for path in self.paths:
            best = self.best_actions(path)
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
            means = [sum(self.worth(path, a) for path in self.paths) / len(self.paths) for a in self.actions]
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
        best = self.best_actions(self.paths[k])
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
            self.held = tuple(h if o is None else o for o, h in zip(observation, self.held, strict=True))
            return [self.held]
        if None not in observation:
            return [observation] * self.K
        drawn: list[Path] = []
        for path in self.paths:
            row = self.counts[path, action]
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

    def count(self, s: State, action: int, s_next: State) -> None:
        """Count a transition."""
        self.counts[s, action] = one_more(self.counts[s, action], s_next)

    def error(self, path: State, action: int, reward: float, terminated: bool, following: State) -> float:
        bootstrap = 0.0 if terminated else self.gamma * max(self.Q[following, a] for a in self.actions)
        return reward + bootstrap - self.Q[path, action]

    def learn(self, action: int, reward: float, observation: State, terminated: bool) -> None:
        complete = None not in observation and None not in self.previous
        if self.method == "mi-available" and not complete and self.waiting:
            self.catch_up()
        following = self.impute(action, observation)
        if self.K > 1 and self.p_shuffle > 0 and next(self.imputation) < self.p_shuffle:
            for k in range(self.K - 1, 0, -1):
                i = int(next(self.imputation) * (k + 1))
                following[k], following[i] = following[i], following[k]
        rate = 1 - (1 - self.alpha) ** (1 / self.K) if self.update == "exact-rate" else self.alpha / self.K
        both = zip(self.paths, following, strict=True)
        pairs = [(s, s_next) for s, s_next in both if s is not None and s_next is not None]
        self.rewards.append(reward)
        for s, _ in pairs:
            self.tried[s, action] += 1
        if self.update == "simultaneous":
            errors = [self.error(s, action, reward, terminated, s_next) for s, s_next in pairs]
            for (s, _), error in zip(pairs, errors, strict=True):
                self.Q[s, action] += rate * error
        else:
            for s, s_next in pairs:
                self.Q[s, action] += rate * self.error(s, action, reward, terminated, s_next)
        if self.method == "mi-synthetic":
            # In units of 1/K, so that everything stays a whole number.
            for s, s_next in pairs:
                self.count(s, action, s_next)
        elif self.method in ("mi-conservative", "mi-available") and complete:
            self.count(self.previous, action, observation)
        if self.method == "mi-available" and not (complete and self.waiting):
            n = self.counts[self.previous, action][observation] if complete else 1
            self.count_parts(action, observation, self.passed_on(n) - self.passed_on(n - 1))
            if self.backoff > 0:
                self.seek_parents(action, observation)
        self.paths = following
        self.previous = observation
