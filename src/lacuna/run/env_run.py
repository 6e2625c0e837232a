"""Any agent in any environment, measured step by step from outside the agent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.methods import YARDSTICKS
from lacuna.agent.own_method import AnyMethod, as_observation, make_agent
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.kernels.counts import MAX_COUNT
from lacuna.references import told
from lacuna.run.measures import blank_notes, blank_tally, count, figures, note, sums_now
from lacuna.run.problems import AnyProblem
from lacuna.run.scene import Step
from lacuna.validation import number, shown, whole_number
from lacuna.worlds.mdp.tabular_env import TabularEnv

_CHUNK = 1000


class EnvRun:
    """An agent of any method in a problem, measured step by step through what it shows and does.

    The world and the masks draw from the same streams as in a compiled `Run` with the same seed. Figures that need
    lacuna's own agents or worlds are None: the guesses, and in an environment the bad steps and the idle actions.

    Parameters
    ----------
    problem
        A world or an environment, and what hides parts of it.
    method
        A method with its settings, lacuna's or your own.
    seed
        Fixes the world, the masks and the agent.
    """

    def __init__(self, problem: AnyProblem, method: AnyMethod, *, seed: int = 0) -> None:
        if method.method in YARDSTICKS:
            raise ValueError(
                f"{method.method} is a yardstick, which needs a world given as arrays; here {problem.world} is run as "
                "an environment"
            )
        self.method = method.method
        self.seed = whole_number("seed", seed, 0)
        self.agent = make_agent(method, problem.space, problem.n_actions, seed=self.seed)
        self.env = problem.environment()
        world = self.env.unwrapped
        # Behind a wrapper that changes what is shown, the world's own flags still say what happened.
        self._world = world if isinstance(world, TabularEnv) else None
        self._first_action = int(getattr(self.env.action_space, "start", 0))
        self._n_actions = problem.n_actions
        self.tally = blank_tally(problem.n_actions, problem.space.d, 1)
        self.curve: list[NDArray[np.float64]] = []
        self.seconds = 0.0
        self._fresh = True

    @property
    def _idle(self) -> int:
        idle = None if self._world is None else self._world.mdp.idle
        return -1 if idle is None else idle

    @property
    def steps(self) -> int:
        """How many steps were run."""
        return int(self.tally.sums[0])

    def advance(self, steps: int, *, times: Iterable[int] = (), progress: Callable[[int], None] | None = None) -> None:
        """Run `steps` more; note the running sums at the given `times` (steps since the very start)."""
        end = self.steps + whole_number("steps", steps, 0, MAX_COUNT)
        notes = blank_notes(sorted({t for t in times if self.steps < t <= end}), self._idle)
        while self.steps < end:
            before, chunk = time.perf_counter(), min(end - self.steps, _CHUNK)
            for _ in range(chunk):
                self._step()
                note(self.tally, notes)
            self.seconds += time.perf_counter() - before
            if progress is not None:
                progress(chunk)
        self.curve += list(notes.rows)

    def _step(self) -> None:
        env, agent, world = self.env, self.agent, self._world
        if self._fresh:
            with self._telling("reset() of the environment"):
                observation, _ = env.reset(seed=self.seed if self.steps == 0 else None)
            self._begin(observation)
        with self._telling("act()"):
            action = agent.act()
        if isinstance(action, bool) or not isinstance(action, int | np.integer) or not 0 <= action < self._n_actions:
            last = self._n_actions - 1
            raise ValueError(f"act() of {self.method} gave {shown(action)}; it must be a whole number from 0 to {last}")
        state = 0 if world is None else world.true_state
        with self._telling("step() of the environment"):
            observation, reward, terminated, truncated, info = env.step(int(action) + self._first_action)
        paid = number("the reward of a step", _as_float(reward), -MAX_REWARD, MAX_REWARD)
        seen = env.components(observation)
        if isinstance(agent, Agent):
            agent.take_late(info)
        with self._telling("learn()"):
            agent.learn(paid, as_observation(seen), bool(terminated))
        ended = bool(terminated) if world is None else world.episode_ended
        arrival = 0 if world is None else world.true_state
        bad = world is not None and bool(world.mdp.dynamics.bad[arrival])
        self._fresh = bool(terminated or truncated)
        count(int(action), Step(state, arrival, paid, ended, bool(terminated), self._fresh), bad, seen, self.tally)

    def _begin(self, observation: Any) -> None:
        with self._telling("begin()"):
            self.agent.begin(as_observation(self.env.components(observation)))
        self._fresh = False

    @contextmanager
    def _telling(self, verb: str) -> Iterator[None]:
        """Turn an exception in the user's code into one sentence that says where it happened."""
        try:
            yield
        except Exception as error:
            raise ValueError(f"{verb} failed in step {self.steps + 1} of {self.method}: {told(error)}") from error

    def snapshot(self) -> NDArray[np.float64]:
        """The running sums now, then how often the idle action was taken."""
        return sums_now(self.tally, self._idle)

    def figures(self) -> dict[str, Any]:
        """The figures of the run so far."""
        found = figures(self.tally, None, self._idle)
        unknown = ("mean_bad_steps", "open_bad_steps", "cut_bad_steps", "idle_share") if self._world is None else ()
        return found | dict.fromkeys(unknown)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def _as_float(reward: Any) -> Any:
    """What environments give as a reward, e.g. an array of one number, as a float; anything else as it is."""
    try:
        return float(reward)
    except (TypeError, ValueError):
        return reward
