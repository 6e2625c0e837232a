"""Recordings of runs: at every step the true state, the observation, pathways, votes, action and reward.

A *moment* is the true state, what is seen of it and the K pathways. There is one before every action. The moment in
which an episode ends is stored separately, because no action follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.memory import NO_STATE
from lacuna.agent.methods import YARDSTICKS, Impute
from lacuna.agent.settings import Settings
from lacuna.kernels.counts import MAX_COUNT
from lacuna.run.problems import Problem
from lacuna.run.run import Run, fingerprint
from lacuna.validation import whole_number
from lacuna.version import RESULTS_VERSION, __version__

MOST_STEPS = 1_000_000
"""Most steps of one recording, which is kept in memory."""

_MOST_ARROWS = 20_000
_STATE = 1  # place of the true state in `Run.place`

Progress = Callable[[int], None]


class Moments(NamedTuple):
    """Moments, an entry for each: the true state, what is seen of it (-1 hidden), the pathways as states."""

    state: NDArray[np.int64]
    seen: NDArray[np.int64]
    pathways: NDArray[np.int64]


class Stage(NamedTuple):
    """Some steps of one agent, from step `at` of its run on.

    - `before`: a moment before every step, and one after the last.
    - `votes[t, k, a]`: whether action a is among the best for pathway k.
    - `probability`: the result of `Agent.probabilities`.
    - `stopped`: the steps that ended an episode; `stops`: the moments after them.
    - `best`: the best actions in each complete state when the stage began.
    - `changes`: rows (step, state) where these changed; `changed`: the new best actions.
    """

    at: int
    before: Moments
    votes: NDArray[np.bool_]
    probability: NDArray[np.float64]
    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    ended: NDArray[np.int64]
    truncated: NDArray[np.int64]
    stopped: NDArray[np.int64]
    stops: Moments
    best: NDArray[np.bool_]
    changes: NDArray[np.int64]
    changed: NDArray[np.bool_]

    @property
    def steps(self) -> int:
        """How many steps were recorded."""
        return int(self.action.shape[0])


@dataclass(frozen=True)
class Recording:
    """Methods in the same world, with the same random streams of world and masks, at the same stages of learning.

    Parameters
    ----------
    problem
        The world and the mechanism.
    seed
        The seed of all streams.
    methods
        The methods, each with its settings.
    stages
        For each method, its stages.
    """

    problem: Problem
    seed: int
    methods: tuple[Settings, ...]
    stages: tuple[tuple[Stage, ...], ...]

    @property
    def header(self) -> dict[str, Any]:
        """What is needed to record it again, as plain data."""
        problem, first = self.problem, self.stages[0]
        return {
            "lacuna": __version__,
            "results": RESULTS_VERSION,
            "world": problem.world,
            "missingness": problem.missingness,
            "label": problem.mechanism.label,
            "first_observed": problem.first_observed,
            "problem": fingerprint(problem.mdp, problem.mechanism),
            "seed": self.seed,
            "at": [stage.at for stage in first],
            "steps": first[0].steps,
            "methods": [settings.as_dict() for settings in self.methods],
        }


def record(
    problem: Problem, methods: Sequence[Settings], *, at: Sequence[int], steps: int, seed: int = 0,
    progress: Progress | None = None,
) -> Recording:  # fmt: skip
    """Record methods in a world, each for `steps` steps from every step in `at` on.

    Examples
    --------
    >>> found = record(Problem.named("corridor", "mcar:0.4"), [Settings("mi-synthetic", K=3)], at=[0, 50], steps=10)
    >>> [stage.at for stage in found.stages[0]], found.stages[0][0].before.pathways.shape
    ([0, 50], (11, 3))
    """
    whole_number("steps", steps, 1, MOST_STEPS)
    starts = sorted({whole_number("a step of at", t, 0, MAX_COUNT - steps) for t in at})
    if not starts:
        raise ValueError("at names no step; give at least one, e.g. 0")
    for settings in methods:
        if settings.method in YARDSTICKS:
            raise ValueError(f"{settings.method} is a yardstick; it has no agent to watch")
    found = []
    for settings in methods:
        run = Run(problem.mdp, problem.mechanism, settings, seed=seed, first_observed=problem.first_observed)
        stages = []
        for t in starts:
            if t < run.steps:
                # Stages overlap, so the later one needs a run of its own.
                run = Run(problem.mdp, problem.mechanism, settings, seed=seed, first_observed=problem.first_observed)
            run.advance(t - run.steps, progress=progress)
            stages.append(_Recorder(problem, run).record(steps))
            if progress is not None:
                progress(steps)
        found.append(tuple(stages))
    return Recording(problem, seed, tuple(methods), tuple(found))


class _Recorder:
    """Records an agent before every step of its run."""

    def __init__(self, problem: Problem, run: Run) -> None:
        self.problem, self.run = problem, run
        self.rows = _complete_rows(run.agent)

    def record(self, steps: int) -> Stage:
        run, at = self.run, self.run.steps
        moments, decided, done, stops, stopped = [], [], [], [], []
        best = first = _best(run.agent.Q[self.rows]) if self.rows.size else np.zeros((0, run.mdp.n_actions), np.bool_)
        changes, changed = [], []
        for t in range(steps):
            agent, moment = self._moment()
            moments.append(moment)
            decided.append(_decision(agent))
            trace = run.record(1)
            done.append([int(trace.action[0]), float(trace.reward[0]), int(trace.ended[0]), int(trace.truncated[0])])
            arrived = Moments(int(trace.arrival[0]), trace.seen[0], trace.pathways[0])  # type: ignore[arg-type]
            if trace.truncated[0] or (trace.ended[0] and run.mdp.terminates):
                stops.append(arrived)
                stopped.append(t)
            if self.rows.size:
                now = _best(run.agent.Q[self.rows])
                for s in np.flatnonzero((now != best).any(axis=1)):
                    changes.append((t + 1, int(s)))
                    changed.append(now[s])
                best = now
        moments.append(self._moment()[1])
        A, K, d = run.mdp.n_actions, run.agent.rules.K, run.mdp.space.d
        action, reward, ended, truncated = zip(*done, strict=True)
        return Stage(
            at, _stacked(moments, d, K), np.array([votes for votes, _ in decided]), np.array([p for _, p in decided]),
            np.array(action), np.array(reward), np.array(ended), np.array(truncated), np.array(stopped, dtype=np.int64),
            _stacked(stops, d, K), first, np.array(changes, dtype=np.int64).reshape(-1, 2),
            np.array(changed, dtype=np.bool_).reshape(-1, A),
        )  # fmt: skip

    def _moment(self) -> tuple[Agent, Moments]:
        """The agent before a step, and the moment it is in."""
        run = self.run
        if run.steps:
            agent, state = run.agent, int(run.place[_STATE])
        else:
            # A compiled run resets its world within its first step, so a stepwise twin gives the moment before it.
            env = self.problem.environment()
            agent = Agent(run.mdp.space, run.mdp.n_actions, run.agent.settings, seed=run.agent.seed)
            agent.begin(env.reset(seed=run.agent.seed)[0])
            state = env.unwrapped.true_state  # type: ignore[attr-defined]
        return agent, Moments(state, agent.memory.previous.copy(), agent.memory.S - agent.memory.first)  # type: ignore[arg-type]


def _decision(agent: Agent) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which actions are best for each pathway, and the probabilities of the actions."""
    p, memory = agent.probabilities(), agent.memory
    if memory.S[0] == NO_STATE:
        return np.zeros((agent.rules.K, agent.n_actions), dtype=np.bool_), p
    # `probabilities` has just filled in the values with optimism.
    return _best(memory.optimistic if agent.rules.optimism > 0 else memory.Q[memory.S]), p


def _best(Q: NDArray[np.float64]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = Q.max(axis=1, keepdims=True) == Q
    return found


def _complete_rows(agent: Agent) -> NDArray[np.int64]:
    """The row of Q of every complete state; empty if there are too many states to draw."""
    space = agent.space
    if space.n_states > _MOST_ARROWS:
        return np.zeros(0, dtype=np.int64)
    if agent.method.impute != Impute.TOKEN:
        return np.arange(space.n_states)
    # Every component has one more value, its last, for "missing".
    values = np.unravel_index(np.arange(space.n_states), space.sizes)
    return np.ravel_multi_index(values, tuple(size + 1 for size in space.sizes))


def _stacked(moments: Sequence[Moments], d: int, K: int) -> Moments:
    return Moments(
        np.array([moment.state for moment in moments], dtype=np.int64),
        np.array([moment.seen for moment in moments], dtype=np.int64).reshape(-1, d),
        np.array([moment.pathways for moment in moments], dtype=np.int64).reshape(-1, K),
    )
