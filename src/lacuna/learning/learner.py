"""The three verbs of the algorithm as kernels: begin an episode, act, learn. Both drivers call exactly these."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import Sight, code_of, copy_into, glance, index_of, is_complete, unpack
from lacuna.kernels.compiled import kernel
from lacuna.kernels.counts import CountTable, add
from lacuna.kernels.space import MISSING, Layout, Space
from lacuna.kernels.streams import Uniforms, draw
from lacuna.learning.carry import guess_uniformly, hold_last_complete, hold_last_values, token_row
from lacuna.learning.component_counts import Parts, bundle, catch_up, count_parts, is_waiting, seek_parents
from lacuna.learning.imputation import draw_successors
from lacuna.learning.methods import Impute, Rules, Settings, Teach, find_method
from lacuna.learning.qlearning import update_apart, update_together
from lacuna.learning.voting import (
    NO_STATE,
    SAMPLED,
    action_probabilities,
    sample_action,
    sample_best,
    vote_probabilities,
)

_NOTHING, _LAST_COMPLETE, _LAST_VALUES, _TOKEN, _DRAWS = (int(kind) for kind in Impute)
_ANYWHERE = np.uint64(0)
_NO_MODEL, _EVERY_PATHWAY, _COMPLETE_PAIRS, _AVAILABLE_PAIRS = (int(kind) for kind in Teach)


class Memory(NamedTuple):
    """All that a learner remembers, besides the transition counts.

    `S` are the K pathways as rows of `Q` and `C` the same as codes. With optimism, `tried` counts the pathways that
    took each action in each state, up to K, `finished` the actions of each state that K took (both are empty
    without), and `top` holds the highest reward so far, 0 at least. `S_next` and all after it are scratch.
    """

    Q: NDArray[np.float64]
    S: NDArray[np.int64]
    C: NDArray[np.int64]
    previous: NDArray[np.int64]
    held: NDArray[np.int64]
    tried: NDArray[np.float64]
    finished: NDArray[np.int64]
    top: NDArray[np.float64]
    S_next: NDArray[np.int64]
    C_next: NDArray[np.int64]
    entries: NDArray[np.uint64]
    firsts: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    errors: NDArray[np.float64]
    p: NDArray[np.float64]
    worth: NDArray[np.float64]
    own_row: NDArray[np.int64]


def blank_memory(space: Space, n_actions: int, settings: Settings) -> Memory:
    """Give the memory of a learner that has seen nothing yet."""
    K, n_rows = settings.pathways, count_rows(space, settings)
    S, C, S_next, C_next = (np.full(K, NO_STATE, dtype=np.int64) for _ in range(4))
    entries, firsts, ends = (np.zeros(K, dtype=np.uint64) for _ in range(3))
    previous, held = (np.full(space.d, MISSING, dtype=np.int64) for _ in range(2))
    # Zeros from the operating system take no memory until touched, so tables cost what was visited.
    n_tried = n_rows if settings.optimism > 0 else 0
    tried, finished = np.zeros((n_tried, n_actions)), np.zeros(n_tried, dtype=np.int64)
    return Memory(
        np.zeros((n_rows, n_actions)), S, C, previous, held, tried, finished, np.zeros(1),
        S_next, C_next, entries, firsts, ends, np.zeros(K), np.zeros(n_actions), np.zeros((K, n_actions)),
        np.arange(K, dtype=np.int64),
    )  # fmt: skip


def count_rows(space: Space, settings: Settings) -> int:
    """How many rows Q has: states, or states of the space in which "missing" is one more value."""
    token = find_method(settings.method).impute == Impute.TOKEN
    return prod(size + 1 for size in space.sizes) if token else space.n_states


def memory_bytes(space: Space, n_actions: int, settings: Settings) -> int:
    """Memory that `blank_memory` may take, if every state is visited."""
    K, n_rows = settings.pathways, count_rows(space, settings)
    tables = n_rows * (n_actions + (n_actions + 1 if settings.optimism > 0 else 0))
    return 8 * (tables + 9 * K + 2 * space.d + 1 + n_actions + K * n_actions)


def count_finished(entries: NDArray[np.int64], tried: NDArray[np.int64], K: int, memory: Memory) -> None:
    """Fill ``finished``, all zeros, from those entries of ``tried`` that are not 0."""
    np.add.at(memory.finished, entries[tried == K] // memory.tried.shape[1], 1)


@kernel
def begin(observation: NDArray[np.int64], rules: Rules, layout: Layout, memory: Memory, uniforms: Uniforms) -> None:
    """Start an episode: forget the pathways and what was carried forward, guess the hidden part uniformly."""
    copy_into(memory.previous, observation)
    complete = is_complete(observation)
    if rules.impute == _NOTHING:
        memory.S[0] = index_of(observation, layout) if complete else NO_STATE
    elif rules.impute == _TOKEN:
        memory.S[0] = token_row(observation, layout)
    else:
        sight = glance(observation, layout)
        for k in range(rules.K):
            memory.C[k] = sight.seen if complete else guess_uniformly(observation, sight, layout, draw(uniforms))
            memory.S[k] = unpack(memory.C[k], layout)
        for j in range(observation.shape[0]):
            memory.held[j] = (memory.C[0] & layout.masks[j]) >> layout.shifts[j]


@kernel
def act(rules: Rules, memory: Memory, uniforms: Uniforms) -> int:
    """Sample an action by exactly `probabilities`, with one number, and a coin before it if ε > 0."""
    Q, S = memory.Q, memory.S
    explores = rules.epsilon > 0 and draw(uniforms) < rules.epsilon
    u = draw(uniforms)
    if explores or S[0] == NO_STATE:
        return int(u * Q.shape[1])
    if rules.vote == SAMPLED:
        # A pathway at random, then one of its maximisers: no need to ask the others.
        x = u * rules.K
        k = int(x)
        if rules.optimism > 0 and memory.finished[S[k]] < Q.shape[1]:
            add_optimism(k, rules, memory)
            return sample_best(memory.worth, k, x - k)
        return sample_best(Q, S[k], x - k)
    if rules.optimism > 0:
        for k in range(rules.K):
            add_optimism(k, rules, memory)
        Q, S = memory.worth, memory.own_row
    vote_probabilities(Q, S, rules.vote, memory.p)
    return sample_action(memory.p, u)


@kernel
def add_optimism(k: int, rules: Rules, memory: Memory) -> None:
    """Fill row `k` of ``worth``: the values in the state of pathway `k`, what was not yet tried counted as better."""
    s = memory.S[k]
    extra = rules.optimism * memory.top[0] / rules.K
    for a in range(memory.Q.shape[1]):
        memory.worth[k, a] = memory.Q[s, a] + extra * (rules.K - memory.tried[s, a])


@kernel
def probabilities(rules: Rules, memory: Memory, p: NDArray[np.float64]) -> None:
    """Probability of each action that `act` may choose."""
    if rules.optimism == 0 or memory.S[0] == NO_STATE:
        action_probabilities(memory.Q, memory.S, rules.vote, rules.epsilon, p, memory.p)
    else:
        for k in range(rules.K):
            add_optimism(k, rules, memory)
        action_probabilities(memory.worth, memory.own_row, rules.vote, rules.epsilon, p, memory.p)


@kernel
def impute(
    action: int, observation: NDArray[np.int64], sight: Sight, rules: Rules, layout: Layout, memory: Memory,
    counts: CountTable, parts: Parts, uniforms: Uniforms,
) -> None:  # fmt: skip
    """Fill ``S_next`` and ``C_next`` with what each pathway takes the new state to be."""
    S_next, C_next = memory.S_next, memory.C_next
    if rules.impute == _NOTHING:
        S_next[0] = index_of(observation, layout) if sight.complete else NO_STATE
    elif rules.impute == _TOKEN:
        S_next[0] = token_row(observation, layout)
    elif rules.impute == _DRAWS:
        if sight.complete:
            row = unpack(sight.seen, layout)
            for k in range(rules.K):
                S_next[k], C_next[k], memory.entries[k] = row, sight.seen, _ANYWHERE
            return
        draw_successors(
            memory.S, memory.C, action, observation, sight, memory.Q.shape[1], rules.kappa, rules.smoothing,
            rules.parents, layout, counts, parts, uniforms,
            S_next, C_next, memory.entries, memory.firsts, memory.ends,
        )  # fmt: skip
    else:
        if rules.impute == _LAST_COMPLETE:
            hold_last_complete(observation, memory.held)
        else:
            hold_last_values(observation, memory.held)
        S_next[0] = index_of(memory.held, layout)
        C_next[0] = code_of(memory.held, layout)


@kernel
def shuffle(S: NDArray[np.int64], C: NDArray[np.int64], uniforms: Uniforms) -> None:
    """Permute the pathways' next states, every order equally likely."""
    for k in range(S.shape[0] - 1, 0, -1):
        i = int(draw(uniforms) * (k + 1))
        S[k], S[i] = S[i], S[k]
        C[k], C[i] = C[i], C[k]


@kernel
def improve(
    action: int, reward: float, terminated: bool, from_complete: bool, to_complete: bool, rules: Rules, memory: Memory
) -> None:
    """Update Q by what each pathway took the step to be: from ``S`` to ``S_next``, which coincide if complete."""
    Q, S, S_next = memory.Q, memory.S, memory.S_next
    discount = 0.0 if terminated else rules.gamma
    if rules.optimism > 0 and reward > memory.top[0]:
        memory.top[0] = reward
    if rules.K == 1 or (from_complete and to_complete):
        if S[0] != NO_STATE and S_next[0] != NO_STATE:
            if rules.optimism > 0:
                count_try(S[0], action, rules.K, rules, memory)
            update_together(
                Q, S[0], action, reward, discount, S_next[0], rules.update, rules.K, rules.rate, rules.full_rate
            )
    else:
        if rules.optimism > 0:
            if from_complete:
                count_try(S[0], action, rules.K, rules, memory)
            else:
                for k in range(rules.K):
                    count_try(S[k], action, 1, rules, memory)
        update_apart(Q, S, action, reward, discount, S_next, rules.update, rules.rate, memory.errors)


@kernel
def count_try(s: int, a: int, pathways: int, rules: Rules, memory: Memory) -> None:
    """Count pathways that took an action, up to K."""
    if memory.finished[s] < memory.Q.shape[1] and memory.tried[s, a] < rules.K:
        memory.tried[s, a] = min(memory.tried[s, a] + pathways, rules.K)
        if memory.tried[s, a] == rules.K:
            memory.finished[s] += 1


@kernel
def learn(
    action: int, reward: float, observation: NDArray[np.int64], terminated: bool, rules: Rules, layout: Layout,
    memory: Memory, counts: CountTable, parts: Parts, uniforms: Uniforms,
) -> None:  # fmt: skip
    """One step: impute with the model as it was, update Q, teach the model, move the pathways on."""
    S, C, S_next, C_next = memory.S, memory.C, memory.S_next, memory.C_next
    sight = glance(observation, layout)
    from_complete = is_complete(memory.previous)
    both_complete = sight.complete and from_complete
    A = memory.Q.shape[1]
    if rules.teach == _AVAILABLE_PAIRS and not both_complete and is_waiting(parts):
        catch_up(A, rules.parents, layout, counts, parts)

    impute(action, observation, sight, rules, layout, memory, counts, parts, uniforms)
    if rules.p_shuffle > 0 and draw(uniforms) < rules.p_shuffle:
        shuffle(S_next, C_next, uniforms)

    improve(action, reward, terminated, from_complete, sight.complete, rules, memory)

    if rules.teach == _EVERY_PATHWAY:
        if both_complete:
            add(S[0] * A + action, C_next[0], rules.K, _ANYWHERE, counts)
        else:
            for k in range(rules.K):
                add(S[k] * A + action, C_next[k], 1, memory.entries[k], counts)
    elif rules.teach != _NO_MODEL:
        units = 1
        if both_complete:
            n, _ = add(S[0] * A + action, C_next[0], 1, _ANYWHERE, counts)
            if rules.parents > 0:
                units = bundle(n + 1)
        if rules.teach == _AVAILABLE_PAIRS and not (both_complete and is_waiting(parts)):
            if units > 0:
                count_parts(memory.previous, action, observation, units, A, layout, parts)
            if rules.parents > 0:
                seek_parents(memory.previous, action, observation, A, rules.smoothing, rules.parents, layout, parts)

    for k in range(rules.K):
        S[k], C[k] = S_next[k], C_next[k]
    copy_into(memory.previous, observation)


def draws_per_step(rules: Rules) -> int:
    """The most numbers of the imputation stream that one begin or one learn can use."""
    return rules.K + (1 + rules.K if rules.p_shuffle > 0 else 0)
