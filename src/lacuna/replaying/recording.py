"""What is recorded of a run: at every step what was true, seen, guessed, voted for and done; by the agent itself.

A *moment* is a place to stand: the true state, what is seen of it and the K pathways. From the moments of the steps the
agent acts; the moment in which an episode stops is kept apart, since nobody acts from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.counts import MAX_COUNT
from lacuna.learning.agent import Agent
from lacuna.methods.memory import NO_STATE
from lacuna.methods.settings import Settings
from lacuna.methods.table import YARDSTICKS, Impute
from lacuna.running.problems import Problem
from lacuna.running.run import Run, fingerprint
from lacuna.validation import whole_number
from lacuna.version import RESULTS_VERSION, __version__

MOST_STEPS = 1_000_000
"""Steps of one recording: all of it is kept in memory."""

_MOST_ARROWS = 20_000
_STATE = 1  # where `Run.place` has the true state

Progress = Callable[[int], None]


class Moments(NamedTuple):
    """Places to stand, an entry for each: the true state, what is seen of it (-1 hidden), the pathways as states."""

    state: NDArray[np.int64]
    seen: NDArray[np.int64]
    pathways: NDArray[np.int64]


class Stage(NamedTuple):
    """Some steps of one agent, from step `at` of its run on.

    `before` has a moment for every step and one more, after the last. `stops` has the moments in which an episode
    stopped, and `stopped` says after which steps. ``votes[t, k, a]`` says whether
    action a is among the best for pathway k, `probability` what `Agent.probabilities` said, `best` which actions were
    best in each complete state when the stage began, and `changes` how that changed: rows (step, state), with the new
    best actions in `changed`.
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
    """Methods in the same world, on the same streams of the world and the masks, at the same stages of learning.

    Parameters
    ----------
    problem
        The world, and what hides parts of it.
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
        """What it takes to record it again, as plain data."""
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
            raise ValueError(f"{settings.method} is a yardstick; it has no agent that could be watched")
    found = []
    for settings in methods:
        run = Run(problem.mdp, problem.mechanism, settings, seed=seed, first_observed=problem.first_observed)
        stages = []
        for t in starts:
            if t < run.steps:
                # Stages that overlap: the later one needs a run of its own.
                run = Run(problem.mdp, problem.mechanism, settings, seed=seed, first_observed=problem.first_observed)
            run.advance(t - run.steps, progress=progress)
            stages.append(_Recorder(problem, run).record(steps))
            if progress is not None:
                progress(steps)
        found.append(tuple(stages))
    return Recording(problem, seed, tuple(methods), tuple(found))


class _Recorder:
    """Looks at an agent before every step that its run takes."""

    def __init__(self, problem: Problem, run: Run) -> None:
        self.problem, self.run = problem, run
        self.rows = _complete_rows(run.agent)

    def record(self, steps: int) -> Stage:
        run, at = self.run, self.run.steps
        standing, decided, done, stops, stopped = [], [], [], [], []
        best = first = _best(run.agent.Q[self.rows]) if self.rows.size else np.zeros((0, run.mdp.n_actions), np.bool_)
        changes, changed = [], []
        for t in range(steps):
            agent, moment = self._stand()
            standing.append(moment)
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
        standing.append(self._stand()[1])
        A, K, d = run.mdp.n_actions, run.agent.rules.K, run.mdp.space.d
        action, reward, ended, truncated = zip(*done, strict=True)
        return Stage(
            at, _stacked(standing, d, K), np.array([votes for votes, _ in decided]), np.array([p for _, p in decided]),
            np.array(action), np.array(reward), np.array(ended), np.array(truncated), np.array(stopped, dtype=np.int64),
            _stacked(stops, d, K), first, np.array(changes, dtype=np.int64).reshape(-1, 2),
            np.array(changed, dtype=np.bool_).reshape(-1, A),
        )  # fmt: skip

    def _stand(self) -> tuple[Agent, Moments]:
        """The agent before a step, and where it stands."""
        run = self.run
        if run.steps:
            agent, state = run.agent, int(run.place[_STATE])
        else:
            # A compiled run enters its world within its first step. The same agent, step by step, enters it here.
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
    # Probabilities have just filled in what optimism adds.
    return _best(memory.optimistic if agent.rules.optimism > 0 else memory.Q[memory.S]), p


def _best(Q: NDArray[np.float64]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = Q.max(axis=1, keepdims=True) == Q
    return found


def _complete_rows(agent: Agent) -> NDArray[np.int64]:
    """The row of Q of every complete state; none if there are too many to draw."""
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
