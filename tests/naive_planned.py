"""A slow, obvious twin of mi-planned, written from the mathematics in its documentation. Imports nothing of lacuna."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from naive import State, one_more
from naive_evidence import NaiveEvidence

RHO, RHO_2, FLOOR, M = 0.1, 1.0, 0.001, 0.3
MOST_SUCCESSORS, MOST_OUTCOMES = 64, 8
Row = dict[int, int]


def units_in(row: dict[Any, int]) -> int:
    return sum(row.values())


class Heap:
    """States by how far their values moved: the largest on top, every one at least as large as the two below it."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self.priority: dict[State, float] = {}

    def __len__(self) -> int:
        return len(self.states)

    def push(self, state: State, moved: float) -> None:
        if state not in self.states:
            self.states.append(state)
            self.priority[state] = moved
        self.priority[state] = max(self.priority[state], moved)
        i = self.states.index(state)
        while i > 0 and self.priority[self.states[(i - 1) // 2]] < self.priority[self.states[i]]:
            self.swap(i, (i - 1) // 2)
            i = (i - 1) // 2

    def pop(self) -> State:
        self.swap(0, len(self.states) - 1)
        state, i = self.states.pop(), 0
        while below := [c for c in (2 * i + 1, 2 * i + 2) if c < len(self.states)]:
            larger = max(below, key=lambda c: self.priority[self.states[c]])
            if self.priority[self.states[larger]] <= self.priority[self.states[i]]:
                break
            self.swap(i, larger)
            i = larger
        return state

    def swap(self, i: int, k: int) -> None:
        self.states[i], self.states[k] = self.states[k], self.states[i]


class NaivePlanner:
    """mi-planned with dictionaries and loops.

    States are tuples of component values, `None` for missing. Random numbers come from two iterators, used as the
    product does: one per pathway that is drawn and one to resample them all; a coin and one number per action.
    Component counts are whole units of 1/K².
    """

    def __init__(
        self, sizes: Sequence[int], n_actions: int, *, K: int, gamma: float, epsilon: float, kappa: float, budget: int,
        evidence: str = "outcomes", look: float = 0.0, imputation: Iterable[float], exploration: Iterable[float],
    ) -> None:  # fmt: skip
        self.evidence = NaiveEvidence(K, evidence)
        self.sizes, self.actions, self.components = tuple(sizes), range(n_actions), range(len(sizes))
        self.K, self.gamma, self.epsilon, self.kappa, self.budget = K, gamma, epsilon, kappa, budget
        self.look, self.unit = look, K * K
        self.imputation, self.exploration = iter(imputation), iter(exploration)
        self.paths: list[State] = []
        self.previous: State = ()
        # The model: joint counts, and for each component its values given a parent, an action, itself, and nothing.
        self.joint: dict[tuple[State, int], dict[State, int]] = defaultdict(dict)
        self.given_parent: dict[tuple[int, int, int, int, int], Row] = defaultdict(dict)
        self.given_action: dict[tuple[int, int, int], Row] = defaultdict(dict)
        self.given_value: dict[tuple[int, int], Row] = defaultdict(dict)
        self.seen: dict[int, Row] = defaultdict(dict)
        self.likelier: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
        # What was paid: sums of (reward, weight, endings).
        self.taken: dict[tuple[State, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self.arrived: dict[State, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self.tried: dict[tuple[State, int], float] = defaultdict(float)
        self.outcomes: dict[tuple[float, bool], int] = {}
        self.told: dict[tuple[State, tuple[float, bool]], float] = defaultdict(float)
        # The plan.
        self.Q: dict[tuple[State, int], float] = defaultdict(float)
        self.value: dict[State, float] = {}
        self.visited: list[State] = []
        self.leads: dict[State, list[tuple[State, int]]] = defaultdict(list)
        self.queue = Heap()
        self.looked_at: State | None = None
        self.looked_up = 0
        self.cursor = 0
        self.rewards: list[float] = []
        self.ends: list[bool] = []
        # Disagreement before and after steps that began with some, by action; how many others, and after them.
        self.unsure = [[0.0, 0.0] for _ in self.actions]
        self.sure = [0.0, 0.0]
        self.agreement, self.optimistic, self.peak, self.rising, self.impatience = 1.0, 0.0, 0.0, 0.0, 0.0

    # --- acting -----------------------------------------------------------------------------------------------------

    def begin(self, observation: State) -> None:
        self.previous = observation
        if None not in observation:
            self.paths = [observation] * self.K
            return
        # The first hidden component changes fastest.
        hidden = [j for j in self.components if observation[j] is None]
        choices = list(product(*(range(self.sizes[j]) for j in reversed(hidden))))
        self.paths = []
        for _ in range(self.K):
            state = list(observation)
            choice = choices[int(next(self.imputation) * len(choices))]
            for j, value in zip(reversed(hidden), choice, strict=True):
                state[j] = value
            self.paths.append(tuple(state))

    def disagreement(self, paths: list[State]) -> float:
        """The probability that two pathways drawn at random, with return, differ."""
        return sum(one != other for one, other in product(paths, paths)) / self.K**2

    def best_actions(self) -> list[int]:
        """Those of the least cost until one knows where one is; of the best average value if one is best anywhere."""
        if self.look == 0:
            return self.best_on_average()
        lacks = [
            [max(self.Q[path, b] for b in self.actions) - self.Q[path, a] for path in self.paths] for a in self.actions
        ]
        if any(sum(lack) == 0 for lack in lacks):
            return self.best_on_average()
        costs, slack = [], []
        for a in self.actions:
            before, after = self.unsure[a]
            lasts = max(min(after / (1 + before), 1.0) - self.sure[1] / (1 + self.sure[0]), 0.0)
            rest = 1 - self.look * min(self.gamma, 0.99) * lasts
            size = sum(max(abs(self.Q[path, b]) for b in (a, self.best_in(path))) * 2 for path in self.paths)
            costs.append(sum(lacks[a]) / rest)
            slack.append((self.K + 2) * 2.0**-52 * size / rest)
        best = min(self.actions, key=lambda a: costs[a])
        return [a for a in self.actions if costs[a] <= costs[best] + slack[best] + slack[a]]

    def best_in(self, path: State) -> int:
        return max(self.actions, key=lambda a: self.Q[path, a])

    def best_on_average(self) -> list[int]:
        """Those of the best average value; sums of K numbers tie if they differ by no more than rounding."""
        sums = [sum(self.Q[path, a] for path in self.paths) for a in self.actions]
        slack = [(self.K - 1) * 2.0**-52 * sum(abs(self.Q[path, a]) for path in self.paths) for a in self.actions]
        best = max(self.actions, key=lambda a: sums[a])
        return [a for a in self.actions if sums[a] >= sums[best] - slack[best] - slack[a]]

    @property
    def uniform(self) -> float:
        return max(self.epsilon, self.impatience)

    def probabilities(self) -> list[float]:
        best = self.best_actions()
        n = len(self.actions)
        return [(1 - self.uniform) * (a in best) / len(best) + self.uniform / n for a in self.actions]

    def act(self) -> int:
        explores = next(self.exploration) < self.uniform
        u = next(self.exploration)
        best = self.best_actions()
        return int(u * len(self.actions)) if explores else best[int(u * len(best))]

    # --- the model --------------------------------------------------------------------------------------------------

    def parent(self, j: int) -> int | None:
        others = [p for p in self.components if p != j]
        best = max(others, key=lambda p: self.likelier[j, p], default=None)
        return best if best is not None and self.likelier[j, best] > math.exp(10.0) else None

    def chain(self, j: int, state: State, action: int, p: int | None) -> Iterator[tuple[dict[int, int], float]]:
        """The levels of the backoff from the first to the last: counts, and the weight of the level after them."""
        u = state[j] or 0
        if p is not None:
            yield self.given_parent[j, p, u, state[p] or 0, action], M * self.unit
        yield self.given_action[j, u, action], RHO * self.unit
        yield self.given_value[j, u], RHO_2 * self.unit
        yield self.seen[j], FLOOR * self.unit * self.sizes[j]

    def probability(self, j: int, state: State, action: int, v: int, p: int | None) -> float:
        """P_j(v | s, a), from the last level of the backoff to the first."""
        P = None
        for row, more in reversed(list(self.chain(j, state, action, p))):
            added = FLOOR * self.unit if P is None else more * P
            P = (row.get(v, 0) + added) / (units_in(row) + more)
        assert P is not None
        return P

    def draw_value(self, j: int, state: State, action: int, place: float) -> tuple[int, float]:
        """A value at this place of [0, 1) by P_j, and the place inside its interval."""
        for row, more in self.chain(j, state, action, self.parent(j)):
            x = place * (units_in(row) + more)
            for v, n in row.items():
                if x < n:
                    return v, x / n
                x -= n
            place = min(x / more, 1 - 2.0**-53)
        v = min(int(place * self.sizes[j]), self.sizes[j] - 1)
        return v, min(place * self.sizes[j] - v, 1 - 2.0**-53)

    def values_listed(self, j: int, state: State, action: int) -> dict[int, float]:
        """The values that matter, by the shares of P_j that are large enough, scaled to 1."""
        listed: dict[int, float] = {}
        factor, share, p = 1.0, 1.0, self.parent(j)
        for i, (row, more) in enumerate(self.chain(j, state, action, p)):
            total = units_in(row) + more
            # The same number; in the product's order of operations, so that what ties there ties here.
            factor = factor * share / total if i < 2 and p is not None else factor * (share / total)
            for v, n in list(row.items())[:MOST_SUCCESSORS]:
                if factor * n > 0.02 / self.sizes[j] and (v in listed or len(listed) < MOST_SUCCESSORS):
                    listed[v] = listed.get(v, 0.0) + factor * n
            share = more
        total = sum(listed.values())
        return {v: P / total for v, P in listed.items()}

    def successors(self, state: State, action: int) -> dict[State, float]:
        """The product of the components' lists, of 64 states at most."""
        lists = [self.values_listed(j, state, action) for j in self.components]
        while math.prod(map(len, lists)) > MOST_SUCCESSORS:
            longest = max(self.components, key=lambda j: len(lists[j]))
            values = list(lists[longest].items())
            least = min(range(len(values)), key=lambda i: values[i][1])
            rest = 1.0 - values[least][1]
            values[least] = values[-1]
            lists[longest] = {v: P / rest for v, P in values[:-1]}
        found: dict[State, float] = {}
        # The first component changes fastest.
        for choice in product(*(listed.items() for listed in reversed(lists))):
            found[tuple(v for v, _ in reversed(choice))] = math.prod(P for _, P in reversed(choice))
        return found

    # --- learning ---------------------------------------------------------------------------------------------------

    def learn(self, action: int, reward: float, observation: State, terminated: bool) -> None:
        before = self.disagreement(self.paths)
        following = self.filter(action, (reward, terminated), observation)
        after = 0.0 if terminated else self.disagreement(following)
        sums = self.sure if before == 0 else self.unsure[action]
        sums[0] += before or 1.0
        sums[1] += after
        self.credit(action, reward, following, terminated)
        if self.evidence.uses_patterns:
            self.evidence.count(observation, self.foretell(action))
        self.count_components(action, observation)
        self.count_joint(action, following)
        self.plan(action)
        self.paths, self.previous = following, observation

    def filter(self, action: int, outcome: tuple[float, bool], observation: State) -> list[State]:
        """Draw the next states, then resample; gives the next states, and leaves the states before in `paths`."""
        together, complete = len(set(self.paths)) == 1, None not in observation
        if complete and together:
            return [observation] * self.K
        following, weights = [], []
        for path in self.paths:
            row = self.joint[path, action]
            agreeing = {s: n for s, n in row.items() if self.agrees(s, observation)}
            J, n, f = units_in(agreeing), units_in(row), 1.0
            for j, value in enumerate(observation):
                if value is not None:
                    f *= self.probability(j, path, action, value, self.parent(j))
            weights.append((J + self.kappa * f) / (n + self.kappa))
            following.append(observation if complete else self.draw(path, action, observation, agreeing, f))
        if outcome in self.outcomes:
            frequency = self.outcomes[outcome] / len(self.rewards)
            for k, state in enumerate(following):
                weights[k] *= (self.told[state, outcome] + frequency) / (self.arrived[state][1] + 1.0)
        if self.evidence.patterns_tell(observation):
            pattern = tuple(value is None for value in observation)
            weights = [w * self.evidence.pattern_chance(pattern, s) for w, s in zip(weights, following, strict=True)]
        elif together and outcome not in self.outcomes:
            return following
        return self.resample(weights, following)

    def foretell(self, action: int) -> State:
        """A next state of one pathway by the model alone."""
        k, u = self.evidence.next_place()
        row, drawn = self.joint[self.paths[k], action], []
        x = u * (units_in(row) + self.kappa)
        rank = int(x)
        for state, n in row.items():
            rank -= n
            if rank < 0:
                return state
        place = min((x - units_in(row)) / self.kappa, 1 - 2.0**-53)
        for j in self.components:
            value, place = self.draw_value(j, self.paths[k], action, place)
            drawn.append(value)
        return tuple(drawn)

    def agrees(self, state: State, observation: State) -> bool:
        return all(o is None or s == o for s, o in zip(state, observation, strict=True))

    def draw(self, path: State, action: int, observation: State, agreeing: dict[State, int], f: float) -> State:
        J = units_in(agreeing)
        x = next(self.imputation) * (J + self.kappa * f)
        if x < J:
            rank = int(x)
            for state, n in agreeing.items():
                rank -= n
                if rank < 0:
                    return state
        place = min((x - J) / (self.kappa * f), 1 - 2.0**-53)
        drawn = list(observation)
        for j in self.components:
            if observation[j] is None:
                drawn[j], place = self.draw_value(j, path, action, place)
        return tuple(drawn)

    def resample(self, weights: list[float], following: list[State]) -> list[State]:
        u, total = next(self.imputation), sum(weights)
        ends = [sum(w / total * self.K for w in weights[: k + 1]) for k in range(self.K)]
        ends[-1] = float(self.K)
        owners = [min(k for k in range(self.K) if i + u < ends[k]) for i in range(self.K)]
        pairs = list(zip(self.paths, following, strict=True))
        # Those that go on stay where they are; copies take the first places that are free.
        free = [k for k in range(self.K) if k not in owners]
        copies = [owner for i, owner in enumerate(owners) if i > 0 and owners[i - 1] == owner]
        for place, owner in zip(free, copies, strict=True):
            pairs[place] = pairs[owner]
        self.paths = [before for before, _ in pairs]
        return [after for _, after in pairs]

    def credit(self, action: int, reward: float, following: list[State], terminated: bool) -> None:
        outcome = (reward, terminated)
        self.rewards.append(reward)
        self.ends.append(terminated)
        if self.evidence.uses_outcomes and (outcome in self.outcomes or len(self.outcomes) < MOST_OUTCOMES):
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        for before, after in zip(self.paths, following, strict=True):
            for sums in (self.taken[before, action], self.arrived[after]):
                for i, more in enumerate((reward, 1.0, float(terminated))):
                    sums[i] += more / self.K
            if outcome in self.outcomes:
                self.told[after, outcome] += 1.0 / self.K
        for before in dict.fromkeys(self.paths):
            if before not in self.value:
                self.visited.append(before)
                self.value[before] = self.optimistic
                self.Q.update({(before, a): self.optimistic for a in self.actions})
            share = self.paths.count(before) / self.K
            self.tried[before, action] += share * share

    def count_components(self, action: int, observation: State) -> None:
        for j, v in enumerate(observation):
            if v is None:
                continue
            u = self.previous[j]
            if u is not None:
                self.judge_parents(j, action, v)
                befores = {u: self.unit}
            else:
                held = [path[j] for path in self.paths]
                befores = {value: held.count(value) ** 2 for value in held if value is not None}
            for before, units in befores.items():
                self.given_action[j, before, action] = one_more(self.given_action[j, before, action], v, units)
                self.given_value[j, before] = one_more(self.given_value[j, before], v, units)
            self.seen[j] = one_more(self.seen[j], v, self.unit)

    def judge_parents(self, j: int, action: int, v: int) -> None:
        """Predict what was seen with each candidate and without; then count it with each."""
        P, u = self.probability(j, self.previous, action, v, None), self.previous[j]
        assert u is not None
        for p, w in enumerate(self.previous):
            if p != j and w is not None:
                row = self.given_parent[j, p, u, w, action]
                ratio = (row.get(v, 0) / P + M * self.unit) / (units_in(row) + M * self.unit)
                self.likelier[j, p] = max(self.likelier[j, p] * ratio, math.exp(-50.0))
                self.given_parent[j, p, u, w, action] = one_more(row, v, self.unit)

    def count_joint(self, action: int, following: list[State]) -> None:
        before, after = self.paths[0], following[0]
        if set(self.paths) == {before} and set(following) == {after}:
            if after not in self.joint[before, action]:
                self.leads[after].append((before, action))
            self.joint[before, action] = one_more(self.joint[before, action], after)
        agreement = sum(following.count(state) for state in following) / self.K**2
        # As if there had been a step of full agreement before the first one.
        self.agreement += (agreement - self.agreement) / min(len(self.rewards) + 1, 1000)

    # --- planning ---------------------------------------------------------------------------------------------------

    def plan(self, action: int) -> None:
        highest = max(0.0, *self.rewards) if self.rewards else 0.0
        self.optimistic = (0.1 + 0.9 * self.agreement * self.agreement) * max(highest, self.peak)
        self.impatience = self.how_impatient()
        for state in dict.fromkeys(self.paths):
            self.back_up(state, action)
        urgent, left = self.budget // 2, self.budget
        while True:
            row = self.next_urgent() if urgent > 0 else None
            if row is not None:
                urgent -= 1
            elif left > 0:
                row = self.next_in_the_round()
            else:
                break
            left -= 1
            self.back_up(*row)

    def next_urgent(self) -> tuple[State, int] | None:
        """The next row that leads to the state being looked at, or to the one whose value moved the most."""
        while self.looked_at is not None or len(self.queue):
            if self.looked_at is None:
                self.looked_at, self.looked_up = self.queue.pop(), 0
            rows = self.leads[self.looked_at]
            if self.looked_up < len(rows):
                self.looked_up += 1
                return rows[self.looked_up - 1]
            self.looked_at = None
        return None

    def next_in_the_round(self) -> tuple[State, int]:
        if self.cursor >= len(self.visited) * len(self.actions):
            self.cursor, self.peak, self.rising = 0, self.rising, 0.0
        place, a = divmod(self.cursor, len(self.actions))
        self.rising = max(self.rising, self.value[self.visited[place]])
        self.cursor += 1
        return self.visited[place], a

    def how_impatient(self) -> float:
        if True not in self.ends:
            t = len(self.ends) + 1.0
            hopeless = min(t / 1e5, 10.0 / math.sqrt(t)) if max(self.rewards, default=0.0) <= 0 else 0.0
            return min(0.1, max(1.0 / math.sqrt(t), hopeless))
        wait = list(reversed(self.ends)).index(True)
        return 0.1 if wait > 3 * (len(self.ends) - wait) / sum(self.ends) else 0.0

    def back_up(self, state: State, action: int) -> None:
        self.Q[state, action] = self.worth(state, action)
        value = max(self.Q[state, a] for a in self.actions)
        moved, self.value[state] = abs(value - self.value[state]), value
        if moved > 1e-5 * max(map(abs, self.rewards)):
            self.queue.push(state, moved)

    def transitions(self, state: State, action: int) -> Iterator[tuple[State, float]]:
        """T: the product, unless its share is small, and the joint counts."""
        row = self.joint[state, action]
        n = units_in(row)
        share, each = self.kappa / (n + self.kappa), 1.0 / (n + self.kappa)
        if share < 0.003:
            each = 1.0 / n
        else:
            for x, P in self.successors(state, action).items():
                yield x, share * P
        for x, m in row.items():
            yield x, each * m

    def worth(self, state: State, action: int) -> float:
        r, weight, t = self.taken[state, action]
        V = goes_on = 0.0
        k = 0.0
        for x, T in self.transitions(state, action):
            reward, arrivals, endings = self.arrived[x]
            pays, ends = (reward / arrivals, endings / arrivals) if arrivals > 0 else (0.0, 0.0)
            V += T * (1.0 - ends) * self.value.get(x, self.optimistic)
            goes_on += T * (1.0 - ends)
            k += T * (arrivals > 0)
            r += T * pays
            t += T * ends
        doubt = self.doubt(state, action)
        if doubt == 1.0 or weight + k == 0.0:
            return self.optimistic
        q = r / (weight + k)
        if goes_on > 0:
            q += min(self.gamma, 0.99) * (1.0 - t / (weight + k)) * (V / goes_on)
        return (1.0 - doubt) * q + doubt * max(self.optimistic, q)

    def doubt(self, state: State, action: int) -> float:
        tried = self.tried[state, action]
        known = min(units_in(self.given_action[j, state[j] or 0, action]) for j in self.components) / self.unit
        return max(min(max(1.0 - tried, 0.0), 1.0 / (known + 1.0)), 0.1 / (1.0 + tried))
