"""Values that arrive late correct the pathways.

A value of the state m steps ago becomes part of what was observed then. From there on the pathways are drawn again,
step by step, by the model as it is now, from what they were m + 1 steps ago and with all that has been observed since:
as if the value had been observed in time. What was learned from those steps stays as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import copy_into, decode, index_of, is_complete, pack, unpack, value_in
from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.streams import Uniforms
from lacuna.learning.learner import foresee, hold_first
from lacuna.methods.memory import NO_STATE, Experience, History, Learner, Memory
from lacuna.methods.table import Impute
from lacuna.models.carry import token_row
from lacuna.models.history import KEPT, begin_history, row_of

_NOTHING, _TOKEN = int(Impute.NOTHING), int(Impute.TOKEN)
_ASSUMED_STATE, _ASSUMED_VALUES, _LAST_OR_ASSUMED = map(
    int, (Impute.ASSUMED_STATE, Impute.ASSUMED_VALUES, Impute.LAST_OR_ASSUMED)
)

_ENDED = False
"""No step that is remembered ended an episode: the next one forgets it."""


@kernel
def correct(steps_ago: int, late: NDArray[np.int64], learner: Learner, uniforms: Uniforms) -> None:
    """Take in values (-1 for none) of the state so many steps ago; older ones than are kept say nothing."""
    put_back(steps_ago, late, learner, learner.history, uniforms)


@kernel
def begin_late(memory: Memory, history: History | None) -> None:
    """Keep the first state of an episode, and forget all before."""
    begin_history(memory, history)


@inner
def put_back(
    steps_ago: int, late: NDArray[np.int64], learner: Learner, history: History | None, uniforms: Uniforms
) -> None:
    """Put late values where they belong and, if they are news, draw the pathways again from there on."""
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
    """Complete an observation by late values; gives whether any of them was missing."""
    news = False
    for j in range(seen.shape[0]):
        if late[j] >= 0 and seen[j] < 0:
            seen[j] = late[j]
            news = True
    return news


@inner
def guess_start(row: int, learner: Learner, history: History) -> None:
    """Put what is known of the first state of an episode into the guesses of it."""
    rules, layout, S = learner.rules, learner.layout, history.S[row]
    observed = decode(history.seen[row], layout)
    if rules.impute == _NOTHING:
        S[0] = unpack(observed.seen, layout) if observed.complete else NO_STATE
    elif rules.impute == _TOKEN:
        S[0] = token_row(observed.values, layout)
    elif rules.impute in (_ASSUMED_STATE, _ASSUMED_VALUES, _LAST_OR_ASSUMED):
        hold_first(observed, rules, learner.memory)
        S[0] = index_of(learner.memory.held, layout)
    else:
        for k in range(S.shape[0]):
            S[k] = unpack(pack(S[k], layout) & ~observed.bits | observed.seen, layout)


@inner
def redraw(steps_ago: int, learner: Learner, history: History, uniforms: Uniforms) -> None:
    """Draw the pathways of one state again, from those before it."""
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
    """Put the learner where it stood after a step."""
    memory, layout = learner.memory, learner.layout
    for k in range(memory.S.shape[0]):
        memory.S[k] = memory.first[k] + history.S[row, k]
    copy_into(memory.previous, history.seen[row])
    if learner.rules.impute not in (_NOTHING, _TOKEN):
        for k in range(memory.S.shape[0]):
            memory.C[k] = pack(history.S[row, k], layout)
        for j in range(memory.held.shape[0]):
            memory.held[j] = value_in(memory.C[0], j, layout)
