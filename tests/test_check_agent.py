"""The contract of agents: ours keep it whatever the settings, and each way to break it is found and named."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS
from lacuna.agent.settings import UPDATES, VOTES, Settings
from lacuna.checks import CheckFailedError, check_agent
from lacuna.kernels.space import Space

A = 3


def cases() -> list[Settings]:
    """Every method by itself, and with whatever it takes besides: votes and updates are the same kernels for all."""
    found = [Settings(method.name, gamma=0.9) for method in METHODS.values()]
    for i, name in enumerate(method.name for method in METHODS.values() if method.votes):
        vote, update = VOTES[i % len(VOTES)], UPDATES[i % len(UPDATES)]
        found.append(Settings(name, 3, 0.5, 0.9, 0.05, vote, update, p_shuffle=0.2))
        found.append(Settings(name, 3, 0.5, 0.9, 0.05, p_shuffle=0.2, q_table="own", optimism=0.1, evidence="all"))
    single = [method.name for method in METHODS.values() if method.steps_in_q and not method.votes]
    found += [Settings(name, gamma=0.9, optimism=0.1) for name in single]
    found += [Settings("mi-planned", 3, gamma=0.9, epsilon=0.05, kappa=0.3, budget=budget) for budget in (0, 3)]
    return [*found, Settings("mi-planned", 3, gamma=0.9, epsilon=0.05, evidence="all")]


@pytest.mark.parametrize("case", cases(), ids=str)
def test_every_method_keeps_the_contract(case: Settings) -> None:
    check_agent(case)


def test_every_method_vote_and_update_was_checked() -> None:
    assert {case.method for case in cases()} == set(METHODS)
    assert {case.vote for case in cases() if case.K != 1} == set(VOTES)
    assert {case.update for case in cases()} == set(UPDATES)


def test_other_spaces_and_seeds_may_be_given() -> None:
    check_agent(Settings("mi-synthetic", K=2, epsilon=0.1), Space((8, 8, 3)), 9, seed=3)
    check_agent(Settings("last-observed"), Space((4,)), 1)


class Plain:
    """An agent of one's own: "missing" is a value, the table is a dictionary, one action in ten is uniform."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.Q: dict[Any, NDArray[np.float64]] = defaultdict(lambda: np.zeros(A))
        self.state: Any = None
        self.action: int | None = None

    def read(self, observation: Any) -> tuple[int, ...]:
        if not isinstance(observation, dict):
            raise ValueError(f"an observation is a mapping, not {observation!r}")
        both = zip(observation["values"].tolist(), observation["mask"].tolist(), strict=True)
        return tuple(-1 if hidden else value for value, hidden in both)

    def begin(self, observation: Any) -> None:
        self.state, self.action = self.read(observation), None

    def probabilities(self) -> NDArray[np.float64]:
        if self.state is None:
            raise RuntimeError("probabilities() comes after begin()")
        best = self.Q[self.state] == self.Q[self.state].max()
        return np.array(0.9 * best / best.sum() + 0.1 / A)

    def act(self) -> int:
        if self.state is None or self.action is not None:
            raise RuntimeError("act() comes after begin() or learn()")
        self.action = int(self.rng.choice(A, p=self.probabilities()))
        return self.action

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        if self.action is None:
            raise RuntimeError("learn() comes after act()")
        if reward is None or not math.isfinite(reward):
            raise ValueError(f"the reward is {reward}; it must be finite")
        state = self.read(observation)
        target = reward + (0.0 if terminated else 0.9 * self.Q[state].max())
        self.Q[self.state][self.action] += 0.5 * (target - self.Q[self.state][self.action])
        self.state, self.action = None if terminated else state, None


def test_an_agent_of_ones_own_keeps_the_contract() -> None:
    check_agent(Plain)


class Curious(Plain):
    def probabilities(self) -> NDArray[np.float64]:
        self.rng.random()
        return super().probabilities()


class Greedy(Plain):
    def probabilities(self) -> NDArray[np.float64]:
        return super().probabilities() * 0.9


class Reckless(Plain):
    def probabilities(self) -> NDArray[np.float64]:
        p = super().probabilities()
        return np.array((p == p.max()) / (p == p.max()).sum())

    def act(self) -> int:
        super().act()
        self.action = int(self.rng.integers(A))
        return self.action


class Wandering(Plain):
    def act(self) -> int:
        return super().act() + A


class Fickle(Plain):
    def act(self) -> int:
        action = super().act()
        self.Q[self.state][action] += 1.0
        return action


class Unseeded(Plain):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rng = np.random.default_rng()


class Deaf(Plain):
    def __init__(self, seed: int) -> None:
        super().__init__(seed * 0)


class Communal(Plain):
    table: ClassVar[dict[Any, NDArray[np.float64]]] = defaultdict(lambda: np.zeros(A))
    living: ClassVar[int] = 0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        type(self).living += 1

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        # Each agent starts afresh if it is alone; the values leak to whoever else is there.
        if self.Q is not self.table:
            self.table.clear()
            type(self).table = self.Q = self.table
        super().learn(reward, observation, terminated)


class Meddling(Plain):
    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        super().learn(reward, observation, terminated)
        if isinstance(observation, dict):
            observation["values"][observation["mask"] == 1] = 0


class Borrowing(Plain):
    def begin(self, observation: Any) -> None:
        super().begin(observation)
        self.borrowed = observation

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        if self.action is not None and isinstance(observation, dict):
            self.state = self.read(self.borrowed)
        super().learn(reward, observation, terminated)
        self.borrowed = observation


class Peeking(Plain):
    def read(self, observation: Any) -> tuple[int, ...]:
        super().read(observation)
        return tuple(observation["values"].tolist())


class Hoarding(Plain):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.log: list[Any] = []

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        super().learn(reward, observation, terminated)
        self.log.append((reward, terminated))


class Trusting(Plain):
    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        super().learn(0.0 if reward is None or not math.isfinite(reward) else reward, observation, terminated)


class Hasty(Plain):
    def act(self) -> int:
        self.action = None
        return super().act()


class Cryptic(Plain):
    def read(self, observation: Any) -> tuple[int, ...]:
        if not isinstance(observation, dict):
            raise KeyError(0)
        return super().read(observation)


class Wordless(Plain):
    def read(self, observation: Any) -> tuple[int, ...]:
        if not isinstance(observation, dict):
            raise ValueError
        return super().read(observation)


class Rattled(Plain):
    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        try:
            super().learn(reward, observation, terminated)
        except ValueError:
            self.rng.random()
            raise


class Keeping(Plain):
    """Can be saved: into a drawer by the name of the file."""

    drawer: ClassVar[dict[str, Any]] = {}

    def save(self, path: Path) -> None:
        kept = copy.copy(self)
        kept.rng, kept.Q = copy.deepcopy(self.rng), defaultdict(lambda: np.zeros(A))
        kept.Q.update({state: row.copy() for state, row in self.Q.items()})
        self.drawer[str(path)] = kept

    @classmethod
    def load(cls, path: Path) -> Any:
        return cls.drawer[str(path)]


class Forgetful(Keeping):
    def save(self, path: Path) -> None:
        super().save(path)
        self.drawer[str(path)].rng = np.random.default_rng(0)


class Absent(Keeping):
    def save(self, path: Path) -> None:
        super().save(path)
        if self.action is not None:
            self.drawer[str(path)].action = (self.action + 1) % A


def test_an_agent_that_can_be_saved_keeps_the_contract() -> None:
    check_agent(Keeping)


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (Curious, "asking for probabilities\\(\\) changed what followed"),
        (Greedy, "that add up to 1"),
        (Reckless, "was taken although its probability was 0.0"),
        (Wandering, "an action is a whole number between 0 and 2"),
        (Fickle, "act\\(\\) changed the probabilities of the decision just made"),
        (Unseeded, "two agents with seed 0 differ"),
        (Deaf, "seeds 0 and 1 gave the same actions throughout; is the seed used"),
        (Communal, "they share something"),
        (Meddling, "the agent changed the observation it was given"),
        (Borrowing, "it must keep copies"),
        (Peeking, "it reads what its mask hides"),
        (Hoarding, "memory must not grow with the stream"),
        (Trusting, "a reward of nan was accepted"),
        (Hasty, "act\\(\\) before learn\\(\\) was accepted"),
        (Cryptic, "ended in KeyError\\(0\\); refuse it with a ValueError that says why"),
        (Wordless, "was refused with ''; it must be a sentence"),
        (Rattled, "a refused call changes nothing"),
        (Forgetful, "save\\(\\) forgets something"),
        (Absent, "save\\(\\) forgets the action"),
    ],
)
def test_a_broken_agent_is_found_and_the_cause_named(broken: type[Plain], sentence: str) -> None:
    with pytest.raises(CheckFailedError, match=sentence):
        check_agent(broken)


def test_ours_without_its_stream_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Agent.to_parts

    def forgets(self: Agent) -> Any:
        header, arrays = whole(self)
        return header | {"positions": {"imputation": 0, "exploration": 0}}, arrays

    monkeypatch.setattr(Agent, "to_parts", forgets)
    with pytest.raises(CheckFailedError, match=r"save\(\) forgets something"):
        check_agent(Settings("last-observed", epsilon=0.5))
