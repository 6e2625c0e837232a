"""The compiled loop: an agent or a yardstick in a world, step after step, by the kernels that the `Agent` calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna import display
from lacuna.agent.late import correct
from lacuna.agent.learner import act, begin, fits, learn
from lacuna.agent.memory import Learner
from lacuna.agent.models.history import begin_history
from lacuna.kernels.codes import copy_into
from lacuna.kernels.compiled import inner, kernel
from lacuna.missingness.lateness import Lateness
from lacuna.quantities import counted
from lacuna.run.knowledge import Knowledge
from lacuna.run.measures import Notes, Tally, note, score
from lacuna.run.scene import FRESH, Numbers, Scene, Step, enter, go, has_numbers
from lacuna.run.yardstick import act_knowing, begin_knowing, learn_knowing


class Trace(NamedTuple):
    """A full record of steps, or arrays of length 0 for none.

    For every step: the true state left, the action, the reward, the true state entered, what was seen of it, the
    pathways after learning, and whether the episode ended or was cut off.
    """

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    arrival: NDArray[np.int64]
    seen: NDArray[np.int64]
    pathways: NDArray[np.int64]
    ended: NDArray[np.int64]
    truncated: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Trace({counted(len(self.state), 'step')}, {self.seen.shape[1]} components)"

    def _repr_html_(self) -> str:
        seen = [" ".join("?" if value < 0 else str(value) for value in row) for row in self.seen[:8].tolist()]
        columns = (self.state, self.action, self.reward, self.arrival, self.ended, self.truncated)
        rows = zip(*(column[:8].tolist() for column in columns), seen, strict=True)
        left = max(0, len(self.state) - 8)
        head = ["state", "action", "reward", "arrival", "ended", "cut off", "seen (? is hidden)"]
        about = [("hidden", f"{float((self.seen < 0).mean()):.1%}" if self.seen.size else None), ("more steps", left)]
        return display.card(repr(self), display.table(head, rows), display.facts(about))


class Record(NamedTuple):
    """The record of a run: counts, a curve, and a trace."""

    tally: Tally
    notes: Notes
    trace: Trace


@kernel
def run_steps(
    n: int, scene: Scene, learner: Learner, knowledge: Knowledge | None, numbers: Numbers, record: Record
) -> int:
    """Run up to `n` steps; returns how many were done before numbers or room for counts ran low.

    Without `knowledge` the learner is an agent's. The compiler drops the branches that are not taken.
    """
    for t in range(n):
        if not (has_numbers(numbers) and fits(learner, learner.planner)):
            return t
        if scene.place[FRESH]:
            start(-1, scene, learner, knowledge, numbers)
        if knowledge is None:
            action = act(learner.rules, learner.memory, learner.planner, numbers.exploration)
        else:
            action = act_knowing(learner, knowledge, numbers)
        step = go(action, scene, numbers)
        if knowledge is None:
            correct_late(scene.late, learner, numbers)
            learn(action, step.reward, step.terminated, scene.observation, learner, numbers.imputation)
        else:
            learn_knowing(action, step, scene, learner, knowledge, learner.planner, numbers)
        score(action, step, scene.observation, scene.world, learner, record.tally)
        note(record.tally, record.notes)
        if t < record.trace.state.shape[0]:
            keep(t, action, step, scene, learner, record.trace)
        if step.stopped:
            start(step.arrival, scene, learner, knowledge, numbers)
    return n


@inner
def start(before: int, scene: Scene, learner: Learner, knowledge: Knowledge | None, numbers: Numbers) -> None:
    """Start an episode after one that stopped in true state `before`; -1 in a fresh world."""
    state = enter(0 if before < 0 else scene.world.restart[before], scene, numbers)
    if knowledge is None:
        begin(scene.observation, learner.rules, learner.layout, learner.memory, numbers.imputation)
        begin_history(learner.memory, learner.history)
    else:
        begin_knowing(before < 0, state, scene, learner, knowledge, learner.planner, numbers)


@inner
def correct_late(late: Lateness | None, learner: Learner, numbers: Numbers) -> None:
    """Pass late values to the learner, before it learns from the step."""
    if late is not None:
        correct(late.delay - 1, late.arrived, learner, numbers.imputation)


@inner
def keep(t: int, action: int, step: Step, scene: Scene, learner: Learner, trace: Trace) -> None:
    """Write one step into a trace."""
    trace.state[t] = step.state
    trace.action[t] = action
    trace.reward[t] = step.reward
    trace.arrival[t] = step.arrival
    copy_into(trace.seen[t], scene.observation)
    for k in range(learner.rules.K):
        trace.pathways[t, k] = learner.memory.S[k] - learner.memory.first[k]
    trace.ended[t] = step.ended
    trace.truncated[t] = step.stopped and not step.terminated
