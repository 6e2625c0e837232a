"""Late values correct the pathways.

A late value of the state m steps ago is added to the observation of that step. The pathways are then redrawn from where
they were m + 1 steps ago, step by step, with the current model and everything observed since. What was already learned
from those steps stays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.learner import foresee, hold_first
from lacuna.agent.memory import NO_STATE, Experience, History, Learner
from lacuna.agent.methods import ASSUMED, NO_GUESS, Impute
from lacuna.agent.models.carry import token_row
from lacuna.agent.models.history import KEPT, row_of
from lacuna.kernels.codes import copy_into, decode, index_of, is_complete, pack, unpack, value_in
from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.streams import Uniforms

_NOTHING, _TOKEN = int(Impute.NOTHING), int(Impute.TOKEN)

_ENDED = False
"""No step in the history ended an episode: a new episode drops the history."""


@kernel
def correct(steps_ago: int, late: NDArray[np.int64], learner: Learner, uniforms: Uniforms) -> None:
    """Correct the pathways by values (-1 for none) of the state `steps_ago` steps ago; ignore those too old."""
    put_back(steps_ago, late, learner, learner.history, uniforms)


@inner
def put_back(
    steps_ago: int, late: NDArray[np.int64], learner: Learner, history: History | None, uniforms: Uniforms
) -> None:
    """Add late values to their observation and, if any was missing there, redraw the pathways from that step on."""
    if history is None:
        return
    if steps_ago > min(learner.rules.lag, history.at[KEPT]):
        return
    if not fill_in(late, history.seen[row_of(steps_ago, history)]):
        return
    first = steps_ago
    if steps_ago == history.at[KEPT]:
        guess_start(row_of(steps_ago, history), learner, history)
        first -= 1
    for m in range(first, -1, -1):
        redraw(m, learner, history, uniforms)
    stand_at(row_of(0, history), learner, history)


@inner
def fill_in(late: NDArray[np.int64], seen: NDArray[np.int64]) -> bool:
    """Fill late values into an observation; returns whether any was missing until now."""
    news = False
    for j in range(seen.shape[0]):
        if late[j] >= 0 and seen[j] < 0:
            seen[j] = late[j]
            news = True
    return news


@inner
def guess_start(row: int, learner: Learner, history: History) -> None:
    """Put the observed values of an episode's first state into its guesses."""
    rules, layout, S = learner.rules, learner.layout, history.S[row]
    observed = decode(history.seen[row], layout)
    if rules.impute == _NOTHING:
        S[0] = unpack(observed.seen, layout) if observed.complete else NO_STATE
    elif rules.impute == _TOKEN:
        S[0] = token_row(observed.values, layout)
    elif rules.impute in ASSUMED:
        hold_first(observed, rules, learner.memory)
        S[0] = index_of(learner.memory.held, layout)
    else:
        for k in range(S.shape[0]):
            S[k] = unpack(pack(S[k], layout) & ~observed.bits | observed.seen, layout)


@inner
def redraw(steps_ago: int, learner: Learner, history: History, uniforms: Uniforms) -> None:
    """Redraw the pathways of one state from those of the state before it."""
    row, before = row_of(steps_ago, history), row_of(steps_ago + 1, history)
    stand_at(before, learner, history)
    experience = Experience(
        history.action[row], history.reward[row], _ENDED, is_complete(history.seen[before]),
        decode(history.seen[row], learner.layout), 0,
    )  # fmt: skip
    foresee(experience, learner, learner.planner, uniforms)
    for k in range(learner.rules.K):
        history.S[row, k] = learner.memory.S_next[k] - learner.memory.first[k]


@inner
def stand_at(row: int, learner: Learner, history: History) -> None:
    """Set pathways and observation to those after an earlier step."""
    memory, layout = learner.memory, learner.layout
    for k in range(memory.S.shape[0]):
        memory.S[k] = memory.first[k] + history.S[row, k]
    copy_into(memory.previous, history.seen[row])
    if learner.rules.impute not in NO_GUESS:
        for k in range(memory.S.shape[0]):
            memory.C[k] = pack(history.S[row, k], layout)
        for j in range(memory.held.shape[0]):
            memory.held[j] = value_in(memory.C[0], j, layout)
