"""The steps of `learn` for decisions that are kept until their reward and their next context are there.

`Agent` takes the five steps at once. A trial takes *foresee* when the next context arrives, and keeps the pathways with
the decision. *Improve*, *teach* and *plan* follow when the decision is due, with the pathways as they were kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import copy_into, decode, is_complete, pack
from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.streams import Uniforms
from lacuna.learning.learner import fits, foresee, improve, plan, settle, teach
from lacuna.methods.memory import Experience, Learner
from lacuna.methods.table import Impute

_NOTHING, _TOKEN = int(Impute.NOTHING), int(Impute.TOKEN)


class Steps(NamedTuple):
    """What decisions led to, as kernels see it: a row for each.

    `S` and `S_next` are the pathways before and after, `previous` and `seen` the contexts. `reward` is not a number as
    long as it is not known.
    """

    S: NDArray[np.int32]
    S_next: NDArray[np.int32]
    previous: NDArray[np.int32]
    seen: NDArray[np.int32]
    action: NDArray[np.int32]
    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]


@kernel
def arrive(row: int, observation: NDArray[np.int64], steps: Steps, learner: Learner, uniforms: Uniforms) -> None:
    """Let a context arrive after the decision in `row`: impute, keep the pathways with the decision, and move on."""
    memory = learner.memory
    experience = Experience(
        steps.action[row], steps.reward[row], steps.terminated[row], is_complete(memory.previous),
        decode(observation, learner.layout),
    )  # fmt: skip
    foresee(experience, learner, learner.planner, uniforms)
    if experience.terminated and learner.rules.impute == _NOTHING:
        # No state follows the last decision, and none is needed to take in its reward.
        memory.S_next[0] = memory.S[0]
    copy_into(steps.S[row], memory.S)
    copy_into(steps.S_next[row], memory.S_next)
    copy_into(steps.previous[row], memory.previous)
    copy_into(steps.seen[row], observation)
    settle(experience, learner.rules, memory)


@kernel
def learn_row(row: int, to_credit: bool, to_teach: bool, steps: Steps, learner: Learner) -> None:
    """Learn from one decision in the order in which an agent does: its reward, its transition, or both.

    There must be room for its counts. Whatever stands in the learner's place is lost.
    """
    experience = stand_at(row, steps, learner)
    if to_credit:
        improve(experience, learner.rules, learner.memory, learner.planner)
    if to_teach:
        teach(experience, learner, learner.planner)
    if to_credit:
        plan(experience, learner, learner.planner)


@kernel
def teach_rows(rows: NDArray[np.int64], first: int, steps: Steps, learner: Learner) -> int:
    """Count the transitions of the decisions in these rows, from number `first` on, while there is room for counts.

    Gives the number of the first that was not counted. Whatever stands in the learner's place is lost.
    """
    for n in range(first, rows.shape[0]):
        if not fits(learner, learner.planner):
            return n
        teach(stand_at(rows[n], steps, learner), learner, learner.planner)
    return int(rows.shape[0])


@kernel
def credit_rows(rows: NDArray[np.int64], steps: Steps, learner: Learner) -> None:
    """Take in the rewards of the decisions in these rows. Whatever stands in the learner's place is lost."""
    for n in range(rows.shape[0]):
        improve(stand_at(rows[n], steps, learner), learner.rules, learner.memory, learner.planner)


@kernel
def plan_rows(rows: NDArray[np.int64], steps: Steps, learner: Learner) -> None:
    """Improve Q by what the model says, once for each of these rows. Whatever stands in the learner's place is lost."""
    for n in range(rows.shape[0]):
        plan(stand_at(rows[n], steps, learner), learner, learner.planner)


@inner
def stand_at(row: int, steps: Steps, learner: Learner) -> Experience:
    """Put the learner where it stood when the context after a decision had arrived; gives what it experienced."""
    memory, layout = learner.memory, learner.layout
    copy_into(memory.S, steps.S[row])
    copy_into(memory.S_next, steps.S_next[row])
    copy_into(memory.previous, steps.previous[row])
    copy_into(memory.held, steps.seen[row])
    if learner.rules.impute not in (_NOTHING, _TOKEN):
        for k in range(memory.S.shape[0]):
            memory.C[k], memory.C_next[k] = pack(memory.S[k], layout), pack(memory.S_next[k], layout)
    return Experience(
        steps.action[row], steps.reward[row], steps.terminated[row], is_complete(memory.previous),
        # What is carried forward is not needed here: its array takes the context, in the type that kernels know.
        decode(memory.held, layout),
    )  # fmt: skip
