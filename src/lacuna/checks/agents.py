"""The contract of an agent: pure probabilities, one seed one path, no leak, no growing memory, clear errors."""

from __future__ import annotations

import math
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lacuna.checks.chance import FALSE_ALARM, CheckFailedError
from lacuna.kernels.space import Space
from lacuna.learning.agent import Agent
from lacuna.learning.settings import Settings

_STEPS = 200
_STRETCH, _STRETCHES = 1500, 8
_SPARE_BYTES = 4


class AgentLike(Protocol):
    """What an agent must be able to do; `save(path)` and `load(path)` are checked if they are there."""

    def begin(self, observation: Any) -> None:
        """Start an episode."""

    def act(self) -> int:
        """Choose an action."""

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Take in what the action led to."""

    def probabilities(self) -> NDArray[np.float64]:
        """Probability of each action."""


class _Event(NamedTuple):
    """What follows an action: the true values, which of them are hidden, the reward, and whether it was the end."""

    values: NDArray[np.int64]
    mask: NDArray[np.int64]
    reward: float
    ended: bool

    def shown(self, lies: NDArray[np.int64] | None = None) -> dict[str, Any]:
        values = self.values if lies is None else np.where(self.mask == 1, lies, self.values)
        return {"values": values.copy(), "mask": self.mask.copy()}


Make = Callable[[int], AgentLike]
Decisions = list[tuple[int, list[float]]]


def check_agent(what: Settings | Make, space: Space | None = None, n_actions: int = 3, *, seed: int = 0) -> None:
    """Check settings, or an agent of your own.

    Parameters
    ----------
    what
        Settings for `lacuna.Agent`, or a function that makes an agent (anything with ``begin``, ``act``, ``learn`` and
        ``probabilities``) from a seed.
    space, n_actions
        What the agent sees and can do.
    seed
        Seed of everything that is drawn; the same seed, the same answer.

    Examples
    --------
    >>> check_agent(Settings("mi-conservative", K=3, vote="majority", epsilon=0.1))
    """
    space = Space((3, 2)) if space is None else space
    make = _maker(what, space, n_actions) if isinstance(what, Settings) else what
    story = list(_story(space, seed, _STEPS))
    path = _follow(make(seed), story, n_actions)
    if _follow(make(seed), story, n_actions) != path:
        raise CheckFailedError(f"two agents with seed {seed} went two ways; something draws numbers outside its seed")
    _check_asking(make, story, path, seed)
    _check_neighbours(make, story, path, seed)
    _check_inputs(make, story, path, seed)
    _check_no_leak(make, story, path, space, seed)
    _check_errors(make, story, path, space, seed)
    _check_saving(make, story, n_actions, seed)
    _check_memory(make, space, seed)


def _maker(settings: Settings, space: Space, n_actions: int) -> Make:
    return lambda seed: Agent(space, n_actions, settings, seed=seed)


def _story(space: Space, seed: int, steps: int) -> Iterator[_Event]:
    """What an agent meets: the first event, and each that follows an end, is the start of an episode."""
    rng = np.random.default_rng(seed)
    for t in range(steps):
        rate = (0.0, 0.5, 1.0)[t % 3]
        mask = (rng.random(space.d) < rate).astype(np.int64)
        yield _Event(rng.integers(space.sizes), mask, float(rng.normal()), bool(rng.random() < 0.05))


def _steps(agent: AgentLike, story: list[_Event]) -> Iterator[tuple[_Event, int]]:
    """Let an agent live through a story; stops after every action."""
    begins = True
    for event in story:
        if begins:
            agent.begin(event.shown())
            begins = False
            continue
        yield event, agent.act()
        agent.learn(event.reward, event.shown(), event.ended)
        begins = event.ended


def _actions(agent: AgentLike, story: list[_Event]) -> list[int]:
    return [int(action) for _, action in _steps(agent, story)]


def _follow(agent: AgentLike, story: list[_Event], n_actions: int) -> Decisions:
    """Actions taken and their probabilities, after checking that they belong together."""
    path: Decisions = []
    watch = _Watch(agent, n_actions)
    for _, action in _steps(watch, story):
        p = watch.said
        if isinstance(action, bool) or not isinstance(action, int | np.integer) or not 0 <= action < n_actions:
            raise CheckFailedError(f"act() gave {action!r}; an action is a whole number between 0 and {n_actions - 1}")
        if not p[action] > 0:
            raise CheckFailedError(f"action {action} was taken although its probability was {p[action]}: {p.tolist()}")
        if not np.array_equal(agent.probabilities(), p):
            raise CheckFailedError("act() changed the probabilities of the decision just made; they must be kept")
        path.append((int(action), p.tolist()))
    return path


class _Watch:
    """An agent that is asked for its probabilities before it acts."""

    def __init__(self, agent: AgentLike, n_actions: int) -> None:
        self.agent, self.n_actions = agent, n_actions
        self.begin, self.learn, self.probabilities = agent.begin, agent.learn, agent.probabilities
        self.said = np.zeros(n_actions)

    def act(self) -> int:
        self.said = p = np.array(self.agent.probabilities(), dtype=np.float64)
        if p.shape != (self.n_actions,) or not (p >= 0).all() or abs(p.sum() - 1) > 1e-9:
            raise CheckFailedError(
                f"probabilities() gave {p.tolist()}; it must be {self.n_actions} numbers, 0 or larger, that add up to 1"
            )
        return self.agent.act()


def _check_asking(make: Make, story: list[_Event], path: Decisions, seed: int) -> None:
    if _actions(make(seed), story) != [action for action, _ in path]:
        raise CheckFailedError("asking for probabilities() changed what followed; it must not draw or change anything")


def _check_neighbours(make: Make, story: list[_Event], path: Decisions, seed: int) -> None:
    one, two = make(seed), make(seed + 1)
    walk = _steps(two, [event._replace(reward=-event.reward) for event in story])
    actions = []
    for _, action in _steps(one, story):
        actions.append(int(action))
        next(walk, None)
    if actions != [action for action, _ in path]:
        raise CheckFailedError(
            "an agent went another way because a second one was at work; they share something, e.g. a class attribute"
        )
    by_chance = math.prod(sum(x * x for x in p) for _, p in path)
    if by_chance < FALSE_ALARM and _actions(make(seed + 1), story) == actions:
        raise CheckFailedError(f"seeds {seed} and {seed + 1} gave the same actions throughout; is the seed used?")


def _check_inputs(make: Make, story: list[_Event], path: Decisions, seed: int) -> None:
    class Careless:
        """Hands over its own arrays, looks whether they were changed, and then writes over them."""

        def __init__(self, agent: AgentLike) -> None:
            self.act, self.probabilities, self.agent = agent.act, agent.probabilities, agent

        def begin(self, observation: Any) -> None:
            self.lend(observation, lambda: self.agent.begin(observation))

        def learn(self, reward: float, observation: Any, terminated: bool) -> None:
            self.lend(observation, lambda: self.agent.learn(reward, observation, terminated))

        def lend(self, observation: Any, call: Callable[[], None]) -> None:
            before = {name: part.copy() for name, part in observation.items()}
            call()
            if set(observation) != set(before) or any((observation[name] != before[name]).any() for name in before):
                raise CheckFailedError(f"the agent changed the observation it was given, {before}, to {observation}")
            observation["values"][:] = 0
            observation["mask"][:] = 0

    if _actions(Careless(make(seed)), story) != [action for action, _ in path]:
        raise CheckFailedError("the agent went another way when its caller reused an array; it must keep copies")


def _check_no_leak(make: Make, story: list[_Event], path: Decisions, space: Space, seed: int) -> None:
    rng = np.random.default_rng(seed + 1)
    lies = [event._replace(values=event.shown(rng.integers(space.sizes))["values"]) for event in story]
    if _actions(make(seed), lies) != [action for action, _ in path]:
        raise CheckFailedError(
            "the agent went another way because a hidden value differed; it reads what its mask hides"
        )


def _check_errors(make: Make, story: list[_Event], path: Decisions, space: Space, seed: int) -> None:
    """Calls that must be refused, in a new agent and then in one at work, which must go on as if nothing had been."""
    agent = make(seed)
    _refused("act() before begin()", agent.act)
    _refused("probabilities() before begin()", agent.probabilities)
    fine, long = story[0].shown(), [0] * (space.d + 1)
    outside = [space.sizes[0] + 1, *[0] * (space.d - 1)]
    actions = []
    for t, (event, action) in enumerate(_steps(agent, story)):
        actions.append(int(action))
        if t % 50 == 0:
            _refused("act() before learn()", agent.act)
            for reward in (math.nan, math.inf, None):
                _refused(f"a reward of {reward}", agent.learn, reward, fine, False)  # noqa: FBT003
            for odd in (long, outside, "?", ["x"] * space.d):
                _refused(f"the observation {odd}", agent.learn, event.reward, odd, False)  # noqa: FBT003
    if actions != [action for action, _ in path]:
        raise CheckFailedError(
            "the agent went another way after a call that it refused; a refused call changes nothing"
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


def _check_saving(make: Make, story: list[_Event], n_actions: int, seed: int) -> None:
    """An agent that is saved, read back and exchanged at some moment of every kind goes on as it would have."""
    agent: Any = make(seed)
    if not (hasattr(agent, "save") and hasattr(agent, "load")):
        return
    half = next(t for t in range(len(story) // 2, len(story)) if story[t].ended or t == len(story) - 1)
    left, right = story[: half + 1], story[half + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent"
        _actions(agent, left)
        agent.save(file)
        if _follow(agent.load(file), right, n_actions) != _follow(agent, right, n_actions):
            raise CheckFailedError(
                "a saved agent went another way than the one it was saved from; save() forgets something"
            )
        agent.begin(story[0].shown())
        agent.act()
        agent.save(file)
        loaded = agent.load(file)
        for one in (agent, loaded):
            one.learn(1.0, story[0].shown(), terminated=False)
        if not np.array_equal(agent.probabilities(), loaded.probabilities()):
            raise CheckFailedError(
                "an agent saved between act() and learn() went another way; save() forgets the action"
            )


def _check_memory(make: Make, space: Space, seed: int) -> None:
    """The same few observations over and over: sooner or later there is nothing new to remember."""
    agent = make(seed)
    few = [
        event._replace(ended=False, mask=np.eye(space.d, dtype=np.int64)[-1] * (t % 2))
        for t, event in enumerate(_story(space, seed, 6))
    ]
    used = []
    tracemalloc.start()
    try:
        for _ in range(_STRETCHES):
            for _, _ in _steps(agent, few * (_STRETCH // len(few))):
                pass
            used.append(tracemalloc.get_traced_memory()[0])
            if len(used) > 1 and used[-1] - used[-2] <= _SPARE_BYTES * _STRETCH:
                return
    finally:
        tracemalloc.stop()
    raise CheckFailedError(
        f"{_STRETCH} steps in which nothing new was seen took {used[-1] - used[-2]} more bytes, after {_STRETCHES - 1} "
        "times as many; memory must not grow with the stream"
    )
