"""The steps of `learn`, taken separately because rewards and next contexts arrive late.

`Agent` takes the five steps at once. A trial takes *foresee* when the next context arrives, and stores the pathways
with the decision. *Improve*, *teach* and *plan* follow when the decision is due, with the stored pathways.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.learner import begin, fits, foresee, improve, plan, settle, teach
from lacuna.agent.memory import IMPATIENCE, NO_STATE, Experience, Learner, Memory, PlanTable
from lacuna.agent.methods import NO_GUESS, Impute
from lacuna.agent.models.looking import pairs_before, unknown_after
from lacuna.agent.settings import Rules
from lacuna.agent.voting import sample_action
from lacuna.kernels.codes import copy_into, decode, is_complete, pack
from lacuna.kernels.compiled import called, inner, kernel
from lacuna.kernels.philox import CHOICE, IMPUTATION, fill_numbers
from lacuna.kernels.streams import Uniforms
from lacuna.trial.engine.allocation import Allocation, allocate
from lacuna.trial.engine.units import fill_probabilities

_NOTHING = int(Impute.NOTHING)

NO_ROOM = -1
"""Returned by `move_on` instead of an action if there is no room for the counts of a decision."""


class Steps(NamedTuple):
    """The transitions of all decisions as kernels see them, a row per decision.

    `S` and `S_next` are the pathways before and after, as states, `previous` and `seen` the contexts. `reward` is NaN
    until it is known. `pairs` is that of `Experience`.
    """

    S: NDArray[np.int32]
    S_next: NDArray[np.int32]
    previous: NDArray[np.int32]
    seen: NDArray[np.int32]
    action: NDArray[np.int32]
    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    pairs: NDArray[np.int32]


class Standing(NamedTuple):
    """The current state of every participant: pathways as states and codes, last context, values carried forward."""

    S: NDArray[np.int64]
    C: NDArray[np.int64]
    previous: NDArray[np.int64]
    held: NDArray[np.int64]


class Moment(NamedTuple):
    """A decision point: what fixes its random numbers, and what to learn before the choice.

    `key` and `person` are those of `fill_numbers`. `place` is the participant's row in `Standing`; `row` that of its
    last decision, -1 if an episode begins. From that decision the trial now learns the reward (`to_credit`), the
    transition (`to_teach`), or both.
    """

    key: NDArray[np.uint64]
    person: NDArray[np.uint64]
    t: int
    place: int
    row: int
    to_credit: bool
    to_teach: bool


class Desk(NamedTuple):
    """Scratch arrays for one decision: its random numbers, its probabilities, and the values that it read.

    `read` holds the values that were read, ``n_read[0]`` of them.
    """

    imputation: Uniforms
    choice: NDArray[np.float64]
    units: NDArray[np.int64]
    p: NDArray[np.float64]
    read: NDArray[np.float64]
    n_read: NDArray[np.int64]


@kernel
def move_on(
    moment: Moment, observation: NDArray[np.int64], allocation: Allocation, allowed: NDArray[np.int64],
    trial: tuple[Steps, Standing, Desk], learner: Learner,
) -> int:  # fmt: skip
    """Take in a context, learn from the last decision if it is due, and choose an action.

    Returns the action, or `NO_ROOM` if the counts must grow first: then the caller still has to call `learn_row` and
    `choose`. Overwrites the learner's own pathways.
    """
    steps, standing, desk = trial
    own = standing_at(moment.place, standing, learner)
    fill_numbers(moment.key, moment.person, moment.t, IMPUTATION, desk.imputation.block)
    desk.imputation.cursor[0] = 0
    if moment.row < 0:
        begin(observation, own.rules, own.layout, own.memory, desk.imputation)
    else:
        arrive(moment.row, observation, steps, own, desk.imputation)
        if moment.to_teach and not fits(learner, learner.planner):
            return NO_ROOM
        if moment.to_credit or moment.to_teach:
            learn_row(moment.row, moment.to_credit, moment.to_teach, steps, learner)
    return choose(moment, allocation, allowed, trial, learner)


@kernel
def choose(
    moment: Moment, allocation: Allocation, allowed: NDArray[np.int64], trial: tuple[Steps, Standing, Desk],
    learner: Learner,
) -> int:  # fmt: skip
    """Choose one of the allowed actions for a participant; the desk then holds every value that the choice used."""
    _, standing, desk = trial
    own = standing_at(moment.place, standing, learner)
    allocate(allocation, own.rules, own.memory, own.planner, allowed, desk.units)
    fill_probabilities(desk.units, desk.p)
    note_values(own.rules, own.memory, own.planner, desk)
    if allowed.shape[0] == 1:
        return int(allowed[0])
    fill_numbers(moment.key, moment.person, moment.t, CHOICE, desk.choice)
    return sample_action(desk.p, desk.choice[0])


@inner
def standing_at(place: int, standing: Standing, learner: Learner) -> Learner:
    """The same learner, with the pathways of a participant."""
    own = learner.memory
    S, C, previous, held = standing.S[place], standing.C[place], standing.previous[place], standing.held[place]
    memory = Memory(
        own.Q, S, C, previous, held, own.tried, own.finished, own.highest_reward, own.S_next, own.C_next, own.entries,
        own.firsts, own.ends, own.errors, own.p, own.optimistic, own.own_row, own.of_code, own.of_value, own.first,
        own.to_counts, own.assumed,
    )  # fmt: skip
    return Learner(
        learner.rules,
        learner.layout,
        memory,
        learner.counts,
        learner.components,
        learner.planner,
        learner.evidence,
        learner.history,
    )


@inner
def note_values(rules: Rules, memory: Memory, planner: PlanTable | None, desk: Desk) -> None:
    """Copy all values that a decision reads: pathways, their Q and `tried`, the highest reward, what a planner adds."""
    K, A = memory.S.shape[0], memory.Q.shape[1]
    n = 0
    for k in range(K):
        desk.read[n] = memory.S[k]
        n += 1
    if memory.S[0] != NO_STATE:
        for k in range(K):
            for a in range(A):
                desk.read[n] = memory.Q[memory.S[k], a]
                n += 1
        if memory.tried.size > 0:
            for k in range(K):
                for a in range(A):
                    desk.read[n] = memory.tried[memory.S[k], a]
                    n += 1
    desk.read[n] = memory.highest_reward[0]
    n += 1
    if planner is not None:
        desk.read[n] = planner.levels[IMPATIENCE]
        n += 1
        if rules.look > 0:
            for a in range(A):
                desk.read[n] = unknown_after(a, rules, planner)
                n += 1
    desk.n_read[0] = n


@inner
def arrive(row: int, observation: NDArray[np.int64], steps: Steps, learner: Learner, uniforms: Uniforms) -> None:
    """Take in the context after the decision in `row`: impute, store the pathways with the decision, and move on."""
    memory = learner.memory
    experience = Experience(
        steps.action[row], steps.reward[row], steps.terminated[row], is_complete(memory.previous),
        decode(observation, learner.layout), pairs_before(learner, learner.planner),
    )  # fmt: skip
    foresee(experience, learner, learner.planner, uniforms)
    if experience.terminated and learner.rules.impute == _NOTHING:
        # No state follows the last decision, and none is needed to take in its reward.
        memory.S_next[0] = memory.S[0]
    for k in range(memory.S.shape[0]):
        steps.S[row, k], steps.S_next[row, k] = memory.S[k] - memory.first[k], memory.S_next[k] - memory.first[k]
    copy_into(steps.previous[row], memory.previous)
    copy_into(steps.seen[row], observation)
    steps.pairs[row] = experience.pairs
    settle(experience, learner.rules, memory)


@called
def learn_row(row: int, to_credit: bool, to_teach: bool, steps: Steps, learner: Learner) -> None:
    """Learn from one decision in the order in which an agent does: its reward, its transition, or both.

    There must be room for its counts. Overwrites the learner's own pathways.
    """
    experience = stand_at(row, steps, learner)
    if to_credit:
        improve(experience, learner.rules, learner.memory, learner.planner, learner.evidence)
    if to_teach:
        teach(experience, learner, learner.planner)
    if to_credit:
        plan(experience, learner, learner.planner)


@kernel
def teach_rows(rows: NDArray[np.int64], first: int, steps: Steps, learner: Learner) -> int:
    """Count the transitions of the decisions in these rows, from number `first` on, while there is room for counts.

    Returns the number of the first that was not counted. Overwrites the learner's own pathways.
    """
    for n in range(first, rows.shape[0]):
        if not fits(learner, learner.planner):
            return n
        teach(stand_at(rows[n], steps, learner), learner, learner.planner)
    return int(rows.shape[0])


@kernel
def credit_rows(rows: NDArray[np.int64], steps: Steps, learner: Learner) -> None:
    """Take in the rewards of the decisions in these rows. Overwrites the learner's own pathways."""
    for n in range(rows.shape[0]):
        improve(stand_at(rows[n], steps, learner), learner.rules, learner.memory, learner.planner, learner.evidence)


@kernel
def plan_rows(rows: NDArray[np.int64], steps: Steps, learner: Learner) -> None:
    """Plan once for each of these rows. Overwrites the learner's own pathways."""
    for n in range(rows.shape[0]):
        plan(stand_at(rows[n], steps, learner), learner, learner.planner)


@inner
def stand_at(row: int, steps: Steps, learner: Learner) -> Experience:
    """Restore the pathways as they were when the context after a decision arrived; returns the experience."""
    memory, layout = learner.memory, learner.layout
    for k in range(memory.S.shape[0]):
        memory.S[k], memory.S_next[k] = memory.first[k] + steps.S[row, k], memory.first[k] + steps.S_next[row, k]
    copy_into(memory.previous, steps.previous[row])
    copy_into(memory.held, steps.seen[row])
    if learner.rules.impute not in NO_GUESS:
        for k in range(memory.S.shape[0]):
            first = memory.first[k]
            memory.C[k], memory.C_next[k] = pack(memory.S[k] - first, layout), pack(memory.S_next[k] - first, layout)
    return Experience(
        steps.action[row], steps.reward[row], steps.terminated[row], is_complete(memory.previous),
        # `held` is not needed here, so its array holds the context, as the int64 that kernels take.
        decode(memory.held, layout), steps.pairs[row],
    )  # fmt: skip
