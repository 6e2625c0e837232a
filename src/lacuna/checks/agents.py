"""The contract of an agent: pure probabilities, one seed one path, no leak, no growing memory, clear errors."""

from __future__ import annotations

import math
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.own_method import AgentLike
from lacuna.agent.settings import Settings
from lacuna.checks.chance import FALSE_ALARM, CheckFailedError, Integers
from lacuna.kernels.space import Space

_STEPS = 200
_STRETCH, _STRETCHES = 1500, 8
_SPARE_BYTES = 4


Make = Callable[[int], AgentLike]


def check_agent(what: Settings | Make, space: Space | None = None, n_actions: int = 3, *, seed: int = 0) -> None:
    """Check that an agent keeps its contract, on made-up observations of which parts are hidden.

    1. Two agents with the same seed take the same actions; with another seed, other actions.
    2. ``probabilities()`` gives a distribution, the action taken has a probability above 0, and asking changes nothing.
    3. An agent is not changed by another one at work, nor by a caller that reuses its arrays.
    4. A hidden value has no influence.
    5. A wrong call or value is refused with a sentence, and changes nothing.
    6. Memory does not grow while nothing new is seen.
    7. If it has ``save(path)`` and ``load(path)``: a loaded agent continues as the saved one would have.

    Parameters
    ----------
    what
        Settings for `lacuna.Agent`, or a function that makes an agent from a seed. An agent is any object with
        ``begin(observation)``, ``act()``, ``learn(reward, observation, terminated)`` and ``probabilities()``. An
        observation is ``{"values": …, "mask": …}``: two arrays with an entry per component, mask 1 = hidden.
    space, n_actions
        What the agent sees and can do; by default two components of 3 and 2 values, and 3 actions.
    seed
        Seed of all random draws.

    Raises
    ------
    CheckFailedError
        If the contract does not hold; the message names the likely cause.

    Examples
    --------
    >>> check_agent(Settings("mi-conservative", K=3, vote="majority", epsilon=0.1))
    """
    space = Space((3, 2)) if space is None else space
    make = _maker(what, space, n_actions) if isinstance(what, Settings) else what
    steps = list(_made_up(space, seed, _STEPS))
    decisions = _decisions(make(seed), steps, n_actions)
    if _decisions(make(seed), steps, n_actions) != decisions:
        raise CheckFailedError(f"two agents with seed {seed} differ; something draws numbers outside its seed")
    check = _Check(make, space, n_actions, seed, steps, decisions)
    check.asking_changes_nothing()
    check.agents_are_independent()
    check.inputs_are_copied()
    check.hidden_values_do_not_matter()
    check.errors_are_sentences()
    check.saving_keeps_everything()
    check.memory_is_bounded()


def _maker(settings: Settings, space: Space, n_actions: int) -> Make:
    return lambda seed: Agent(space, n_actions, settings, seed=seed)


class _Step(NamedTuple):
    """The result of an action: true values, which of them are hidden, reward, and whether the episode ended."""

    values: Integers
    mask: Integers
    reward: float
    ended: bool

    @property
    def observation(self) -> dict[str, Integers]:
        return {"values": self.values.copy(), "mask": self.mask.copy()}


def _made_up(space: Space, seed: int, n: int) -> Iterator[_Step]:
    """Random steps; the first one, and each that follows an end, starts an episode."""
    rng = np.random.default_rng(seed)
    for t in range(n):
        rate = (0.0, 0.5, 1.0)[t % 3]
        mask = (rng.random(space.d) < rate).astype(np.int64)
        yield _Step(rng.integers(space.sizes), mask, float(rng.normal()), bool(rng.random() < 0.05))


def _interact(
    agent: AgentLike, steps: list[_Step], before_acting: Callable[[], None] = lambda: None
) -> Iterator[tuple[_Step, int]]:
    """Let an agent go through the steps; stops after every action."""
    begins = True
    for step in steps:
        if begins:
            agent.begin(step.observation)
            begins = False
            continue
        before_acting()
        yield step, agent.act()
        agent.learn(step.reward, step.observation, step.ended)
        begins = step.ended


def _actions(agent: AgentLike, steps: list[_Step]) -> list[int]:
    return [int(action) for _, action in _interact(agent, steps)]


Decisions = list[tuple[int, list[float]]]


def _decisions(agent: AgentLike, steps: list[_Step], n_actions: int) -> Decisions:
    """Actions taken and their probabilities, after checking that they belong together."""
    found: Decisions = []
    said: list[NDArray[np.float64]] = []
    for _, action in _interact(agent, steps, lambda: said.append(_distribution(agent, n_actions))):
        p = said[-1]
        if isinstance(action, bool) or not isinstance(action, int | np.integer) or not 0 <= action < n_actions:
            raise CheckFailedError(f"act() gave {action!r}; an action is a whole number between 0 and {n_actions - 1}")
        if not p[action] > 0:
            raise CheckFailedError(f"action {action} was taken although its probability was {p[action]}: {p.tolist()}")
        if not np.array_equal(agent.probabilities(), p):
            raise CheckFailedError("act() changed the probabilities of the decision just made; they must be kept")
        found.append((int(action), p.tolist()))
    return found


def _distribution(agent: AgentLike, n_actions: int) -> NDArray[np.float64]:
    p = np.array(agent.probabilities(), dtype=np.float64)
    if p.shape != (n_actions,) or not (p >= 0).all() or abs(p.sum() - 1) > 1e-9:
        raise CheckFailedError(
            f"probabilities() gave {p.tolist()}; it must be {n_actions} numbers, 0 or larger, that add up to 1"
        )
    return p


class _Reusing:
    """An agent whose caller reuses its arrays: checks that they are unchanged, then overwrites them."""

    def __init__(self, agent: AgentLike) -> None:
        self.act, self.probabilities, self.agent = agent.act, agent.probabilities, agent

    def begin(self, observation: Any) -> None:
        self.hand_over(observation, lambda: self.agent.begin(observation))

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        self.hand_over(observation, lambda: self.agent.learn(reward, observation, terminated))

    @staticmethod
    def hand_over(observation: Any, call: Callable[[], None]) -> None:
        before = {name: array.copy() for name, array in observation.items()}
        call()
        if set(observation) != set(before) or any((observation[name] != before[name]).any() for name in before):
            raise CheckFailedError(f"the agent changed the observation it was given, {before}, to {observation}")
        observation["values"][:] = 0
        observation["mask"][:] = 0


@dataclass(frozen=True)
class _Check:
    """The contract, one method for each line of it."""

    make: Make
    space: Space
    n_actions: int
    seed: int
    steps: list[_Step]
    decisions: Decisions
    """Of an agent that nothing interferes with; all others are compared with it."""

    def expect(self, actions: list[int], cause: str) -> None:
        """Compare the actions with those of an undisturbed agent."""
        if actions != [action for action, _ in self.decisions]:
            raise CheckFailedError(cause)

    def asking_changes_nothing(self) -> None:
        actions = _actions(self.make(self.seed), self.steps)
        self.expect(actions, "asking for probabilities() changed what followed; it must not draw or change anything")

    def agents_are_independent(self) -> None:
        one, two = self.make(self.seed), self.make(self.seed + 1)
        other = _interact(two, [step._replace(reward=-step.reward) for step in self.steps])
        actions = []
        for _, action in _interact(one, self.steps):
            actions.append(int(action))
            next(other, None)
        self.expect(actions, "an agent acted differently beside a second one; they share something, e.g. an attribute")
        by_chance = math.prod(sum(x * x for x in p) for _, p in self.decisions)
        if by_chance < FALSE_ALARM and _actions(self.make(self.seed + 1), self.steps) == actions:
            seeds = f"seeds {self.seed} and {self.seed + 1}"
            raise CheckFailedError(f"{seeds} gave the same actions throughout; is the seed used?")

    def inputs_are_copied(self) -> None:
        actions = _actions(_Reusing(self.make(self.seed)), self.steps)
        self.expect(actions, "the agent acted differently when its caller reused an array; it must keep copies")

    def hidden_values_do_not_matter(self) -> None:
        rng = np.random.default_rng(self.seed + 1)
        others = [
            step._replace(values=np.where(step.mask == 1, rng.integers(self.space.sizes), step.values))
            for step in self.steps
        ]
        actions = _actions(self.make(self.seed), others)
        self.expect(actions, "the agent acted differently when a hidden value differed; it reads what its mask hides")

    def errors_are_sentences(self) -> None:
        """Make calls that must be refused, to a new agent and to a running one, which must continue unchanged."""
        agent = self.make(self.seed)
        _refused("act() before begin()", agent.act)
        _refused("probabilities() before begin()", agent.probabilities)
        d, fine = self.space.d, self.steps[0].observation
        wrong = ([0] * (d + 1), [self.space.sizes[0] + 1, *[0] * (d - 1)], "?", ["x"] * d)
        actions = []
        for t, (step, action) in enumerate(_interact(agent, self.steps)):
            actions.append(int(action))
            if t % 50 == 0:
                _refused("act() before learn()", agent.act)
                for reward in (math.nan, math.inf, None):
                    _refused(f"a reward of {reward}", agent.learn, reward, fine, False)  # noqa: FBT003
                for observation in wrong:
                    _refused(f"the observation {observation}", agent.learn, step.reward, observation, False)  # noqa: FBT003
        self.expect(actions, "the agent acted differently after a call that it refused; a refused call changes nothing")

    def saving_keeps_everything(self) -> None:
        """Save and load an agent between two episodes, and between act and learn: it must continue unchanged."""
        agent: Any = self.make(self.seed)
        if not (hasattr(agent, "save") and hasattr(agent, "load")):
            return
        steps = self.steps
        half = next(t for t in range(len(steps) // 2, len(steps)) if steps[t].ended or t == len(steps) - 1)
        rest = steps[half + 1 :]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "agent"
            _actions(agent, steps[: half + 1])
            agent.save(file)
            if _decisions(agent.load(file), rest, self.n_actions) != _decisions(agent, rest, self.n_actions):
                raise CheckFailedError("a loaded agent acted differently from the saved one; save() forgets something")
            agent.begin(steps[0].observation)
            agent.act()
            agent.save(file)
            loaded = agent.load(file)
            for one in (agent, loaded):
                one.learn(1.0, steps[0].observation, terminated=False)
            if not np.array_equal(agent.probabilities(), loaded.probabilities()):
                raise CheckFailedError("an agent loaded before learn() learned differently; save() forgets the action")

    def memory_is_bounded(self) -> None:
        """Repeat the same few observations: eventually there is nothing new to store."""
        agent = self.make(self.seed)
        few = [
            step._replace(ended=False, mask=np.eye(self.space.d, dtype=np.int64)[-1] * (t % 2))
            for t, step in enumerate(_made_up(self.space, self.seed, 6))
        ]
        used = []
        tracemalloc.start()
        try:
            for _ in range(_STRETCHES):
                for _, _ in _interact(agent, few * (_STRETCH // len(few))):
                    pass
                used.append(tracemalloc.get_traced_memory()[0])
                if len(used) > 1 and used[-1] - used[-2] <= _SPARE_BYTES * _STRETCH:
                    return
        finally:
            tracemalloc.stop()
        raise CheckFailedError(
            f"{_STRETCH} steps in which nothing new was seen took {used[-1] - used[-2]} more bytes, after "
            f"{_STRETCHES - 1} times as many; memory must not grow with the stream"
        )


def _refused(what: str, call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except (ValueError, TypeError, RuntimeError) as error:
        if not str(error).strip() or "\n" in str(error):
            raise CheckFailedError(f"{what} was refused with {str(error)!r}; it must be a sentence") from error
    except Exception as error:
        raise CheckFailedError(f"{what} ended in {error!r}; refuse it with a ValueError that says why") from error
    else:
        raise CheckFailedError(f"{what} was accepted; refuse it with a ValueError or RuntimeError that says why")
