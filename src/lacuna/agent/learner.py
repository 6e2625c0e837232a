"""The verbs of the algorithm as kernels: begin an episode, act, learn. Both drivers call exactly these.

Learning is five steps, in this order. *foresee*: each pathway draws its next state, from the model as it was before
this step; *improve*: update Q; *teach*: update the model; *plan*: improve Q by what the model says; *settle*: move the
pathways to their next states. A method that does not plan has no `planner`, and one that needs no memory of arrivals no
`evidence`: the compiler drops what belongs to them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import ANYWHERE, IMPATIENCE, NO_STATE, Evidence, Experience, Learner, Memory, PlanTable
from lacuna.agent.methods import ASSUMED, Impute, Teach
from lacuna.agent.models.carry import (
    guess_uniformly,
    hold_assumed_state,
    hold_assumed_values,
    hold_last_complete,
    hold_last_values,
    token_row,
)
from lacuna.agent.models.chained import draw_chained, hides_several, most_chained
from lacuna.agent.models.component_counts import bundle, catch_up, count_components, is_waiting, most_adds, seek_parents
from lacuna.agent.models.evidence import count_pattern, credit_arrivals, has_room_for_patterns, weigh_pathways
from lacuna.agent.models.factored_model import count_values, most_counts
from lacuna.agent.models.filtering import filter_pathways
from lacuna.agent.models.history import remember
from lacuna.agent.models.imputation import draw_successors
from lacuna.agent.models.looking import fill_unknown, pairs_before
from lacuna.agent.models.planning import count_agreed, credit, plan_ahead
from lacuna.agent.qlearning import update_apart, update_together
from lacuna.agent.settings import Q_TABLES, Rules
from lacuna.agent.voting import (
    SAMPLED,
    action_probabilities,
    keep_least_regrets,
    mix_with_uniform,
    normalise,
    sample_action,
    sample_best,
    vote_probabilities,
)
from lacuna.kernels.codes import Observed, code_of, copy_into, decode, index_of, is_complete, unpack, value_in
from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.counts import add, has_room
from lacuna.kernels.space import Layout
from lacuna.kernels.streams import Uniforms, draw

_NOTHING, _LAST_COMPLETE, _LAST_VALUES, _TOKEN, _DRAWS, _CHAIN, *_ = (int(kind) for kind in Impute)
_ASSUMED_STATE, _ASSUMED_VALUES = int(Impute.ASSUMED_STATE), int(Impute.ASSUMED_VALUES)
_NO_MODEL, _EVERY_PATHWAY, _COMPLETE_PAIRS, _AVAILABLE_PAIRS, _AGREED_PAIRS, *_ = (int(kind) for kind in Teach)
_OWN_PATHWAY = int(Teach.OWN_PATHWAY)
_OWN = Q_TABLES.index("own")


@kernel
def begin(observation: NDArray[np.int64], rules: Rules, layout: Layout, memory: Memory, uniforms: Uniforms) -> None:
    """Start an episode: drop the pathways and the values carried forward, and guess hidden components uniformly."""
    observed = decode(observation, layout)
    copy_into(memory.previous, observation)
    if rules.impute == _NOTHING:
        memory.S[0] = index_of(observation, layout) if observed.complete else NO_STATE
    elif rules.impute == _TOKEN:
        memory.S[0] = token_row(observation, layout)
    elif rules.impute in ASSUMED:
        hold_first(observed, rules, memory)
        memory.S[0], memory.C[0] = index_of(memory.held, layout), code_of(memory.held, layout)
    else:
        for k in range(rules.K):
            memory.C[k] = observed.seen if observed.complete else guess_uniformly(observed, layout, draw(uniforms))
            memory.S[k] = memory.first[k] + unpack(memory.C[k], layout)
        for j in range(observation.shape[0]):
            memory.held[j] = value_in(memory.C[0], j, layout)


@kernel
def act(rules: Rules, memory: Memory, planner: PlanTable | None, uniforms: Uniforms) -> int:
    """Sample an action from exactly `probabilities`, with one random number, and one before it if it may explore."""
    Q, S = memory.Q, memory.S
    uniform = explores(rules, planner, uniforms)
    u = draw(uniforms)
    if uniform or S[0] == NO_STATE:
        return int(u * Q.shape[1])
    if rules.vote == SAMPLED:
        # A pathway at random, then one of its maximisers: no need to ask the others.
        x = u * rules.K
        k = int(x)
        if rules.optimism > 0 and memory.finished[S[k]] < Q.shape[1]:
            add_optimism(k, rules, memory)
            return sample_best(memory.optimistic, k, x - k)
        return sample_best(Q, S[k], x - k)
    if planner is not None and rules.look > 0:
        x = memory.optimistic[0]
        fill_unknown(rules, planner, x)
        keep_least_regrets(Q, S, x, memory.p)
        normalise(memory.p)
        return sample_action(memory.p, u)
    if rules.optimism > 0:
        for k in range(rules.K):
            add_optimism(k, rules, memory)
        Q, S = memory.optimistic, memory.own_row
    vote_probabilities(Q, S, rules.vote, memory.p)
    return sample_action(memory.p, u)


def may_explore(rules: Rules) -> bool:
    """Whether a number is drawn for exploration: always for a planner, because it may become impatient."""
    return rules.epsilon > 0 or rules.teach == _AGREED_PAIRS


@inner
def explores(rules: Rules, planner: PlanTable | None, uniforms: Uniforms) -> bool:
    """Decide whether to explore; draws a number only if the learner may explore."""
    if planner is not None:
        return bool(draw(uniforms) < exploration(rules, planner))
    return bool(rules.epsilon > 0 and draw(uniforms) < rules.epsilon)


@inner
def exploration(rules: Rules, planner: PlanTable | None) -> float:
    """Probability of a uniform action: ε, or more if a planner is impatient."""
    if planner is not None:
        return float(max(rules.epsilon, planner.levels[IMPATIENCE]))
    return rules.epsilon


@inner
def add_optimism(k: int, rules: Rules, memory: Memory) -> None:
    """Fill row `k` of ``optimistic``: the values in the state of pathway `k`, plus a bonus for untried actions.

    optimistic(k, a) = Q(S_k, a) + optimism · highest reward · (share of the pathways of its table that have not tried a
    there)
    """
    s, sharing = memory.S[k], sharers(rules)
    extra = rules.optimism * memory.highest_reward[0] / sharing
    for a in range(memory.Q.shape[1]):
        memory.optimistic[k, a] = memory.Q[s, a] + extra * (sharing - memory.tried[s, a])


@inner
def sharers(rules: Rules) -> int:
    """How many pathways share one Q table."""
    return 1 if rules.q_table == _OWN else rules.K


@kernel
def probabilities(rules: Rules, memory: Memory, planner: PlanTable | None, p: NDArray[np.float64]) -> None:
    """Probability of each action that `act` may choose."""
    if planner is not None and rules.look > 0:
        fill_unknown(rules, planner, memory.p)
        keep_least_regrets(memory.Q, memory.S, memory.p, p)
        memory.p[:] = 0.0
        mix_with_uniform(exploration(rules, planner), p, memory.p)
    elif rules.optimism == 0 or memory.S[0] == NO_STATE:
        action_probabilities(memory.Q, memory.S, rules.vote, exploration(rules, planner), p, memory.p)
    else:
        for k in range(rules.K):
            add_optimism(k, rules, memory)
        action_probabilities(memory.optimistic, memory.own_row, rules.vote, rules.epsilon, p, memory.p)


@kernel
def learn(
    action: int, reward: float, terminated: bool, observation: NDArray[np.int64], learner: Learner, uniforms: Uniforms
) -> None:
    """Learn from one step."""
    observed, from_complete = decode(observation, learner.layout), is_complete(learner.memory.previous)
    pairs = pairs_before(learner, learner.planner)
    experience = Experience(action, reward, terminated, from_complete, observed, pairs)
    foresee(experience, learner, learner.planner, uniforms)
    improve(experience, learner.rules, learner.memory, learner.planner, learner.evidence)
    teach(experience, learner, learner.planner)
    plan(experience, learner, learner.planner)
    settle(experience, learner.rules, learner.memory)
    remember(experience, learner.memory, learner.history)


@inner
def foresee(experience: Experience, learner: Learner, planner: PlanTable | None, uniforms: Uniforms) -> None:
    """Fill ``S_next`` and ``C_next`` with each pathway's next state, drawn from the model before this step."""
    rules, memory, components = learner.rules, learner.memory, learner.components
    action, observed = experience.action, experience.observed
    if planner is not None:
        filter_pathways(experience, learner, planner, uniforms)
        return
    both_complete = experience.from_complete and observed.complete
    if rules.teach == _AVAILABLE_PAIRS and not both_complete and is_waiting(components):
        catch_up(memory.Q.shape[1], rules.parents, learner.layout, learner.counts, components)
    impute(action, observed, learner, uniforms)
    weigh_pathways(experience, learner, learner.evidence, uniforms)
    if rules.p_shuffle > 0 and draw(uniforms) < rules.p_shuffle:
        shuffle(memory.S_next, memory.C_next, memory.first, uniforms)


@inner
def impute(action: int, observed: Observed, learner: Learner, uniforms: Uniforms) -> None:
    """Fill ``S_next`` and ``C_next`` by the method's imputation rule."""
    rules, layout, memory = learner.rules, learner.layout, learner.memory
    S_next, C_next = memory.S_next, memory.C_next
    if rules.impute == _NOTHING:
        S_next[0] = index_of(observed.values, layout) if observed.complete else NO_STATE
    elif rules.impute == _TOKEN:
        S_next[0] = token_row(observed.values, layout)
    elif rules.impute in (_DRAWS, _CHAIN):
        if observed.complete:
            row = unpack(observed.seen, layout)
            for k in range(rules.K):
                S_next[k], C_next[k], memory.entries[k] = memory.first[k] + row, observed.seen, ANYWHERE
        elif rules.impute == _CHAIN and hides_several(observed):
            draw_chained(action, observed, learner, uniforms)
        else:
            draw_successors(action, observed, learner, uniforms)
    else:
        hold(rules.impute, observed, memory)
        S_next[0] = index_of(memory.held, layout)
        C_next[0] = code_of(memory.held, layout)


@inner
def hold_first(observed: Observed, rules: Rules, memory: Memory) -> None:
    """Fill ``held`` with the first state of an episode, for a method that assumes values."""
    copy_into(memory.held, memory.assumed)
    hold(rules.impute, observed, memory)


@inner
def hold(impute: int, observed: Observed, memory: Memory) -> None:
    """Fill ``held`` with the completed state, for a method without a model."""
    if impute == _LAST_COMPLETE:
        hold_last_complete(observed, memory.held)
    elif impute == _ASSUMED_STATE:
        hold_assumed_state(observed, memory.assumed, memory.held)
    elif impute == _ASSUMED_VALUES:
        hold_assumed_values(observed, memory.assumed, memory.held)
    else:
        hold_last_values(observed, memory.held)


@kernel
def shuffle(S: NDArray[np.int64], C: NDArray[np.int64], first: NDArray[np.int64], uniforms: Uniforms) -> None:
    """Permute the pathways' next states, every order equally likely; each stays with its table, from `first` on."""
    for k in range(S.shape[0] - 1, 0, -1):
        i = int(draw(uniforms) * (k + 1))
        S[k], S[i] = S[i] - first[i] + first[k], S[k] - first[k] + first[i]
        C[k], C[i] = C[i], C[k]


@inner
def improve(
    experience: Experience, rules: Rules, memory: Memory, planner: PlanTable | None, evidence: Evidence | None
) -> None:
    """Update Q by each pathway's transition from ``S`` to ``S_next``; a planner only takes in the reward."""
    credit_arrivals(experience, memory, evidence)
    if planner is not None:
        credit(experience, memory, planner)
        return
    S, S_next, from_complete = memory.S, memory.S_next, experience.from_complete
    action, reward = experience.action, experience.reward
    discount = 0.0 if experience.terminated else rules.gamma
    if rules.optimism > 0 and reward > memory.highest_reward[0]:
        memory.highest_reward[0] = reward
    together = sharers(rules) == rules.K and from_complete
    if rules.K == 1 or (together and experience.observed.complete):
        if S[0] != NO_STATE and S_next[0] != NO_STATE:
            if rules.optimism > 0:
                count_try(S[0], action, rules.K, rules, memory)
            update_together(action, reward, discount, rules, memory)
    else:
        if rules.optimism > 0:
            if together:
                count_try(S[0], action, rules.K, rules, memory)
            else:
                for k in range(rules.K):
                    count_try(S[k], action, 1, rules, memory)
        update_apart(action, reward, discount, rules, memory)


@inner
def count_try(s: int, a: int, pathways: int, rules: Rules, memory: Memory) -> None:
    """Count pathways that took an action, up to those that share the table."""
    sharing = sharers(rules)
    if memory.finished[s] < memory.Q.shape[1] and memory.tried[s, a] < sharing:
        memory.tried[s, a] = min(memory.tried[s, a] + pathways, sharing)
        if memory.tried[s, a] == sharing:
            memory.finished[s] += 1


@inner
def teach(experience: Experience, learner: Learner, planner: PlanTable | None) -> None:
    """Count the transition: of every pathway, of complete states, or of each component seen before and after."""
    rules, memory, counts, components = learner.rules, learner.memory, learner.counts, learner.components
    S, C_next, A = memory.S, memory.C_next, memory.Q.shape[1]
    action, observed = experience.action, experience.observed
    count_pattern(experience, learner, planner, learner.evidence)
    if planner is not None:
        count_values(action, observed, memory, planner.model, learner.layout)
        count_agreed(experience, learner, planner)
        return
    if rules.teach == _NO_MODEL:
        return
    both_complete = experience.from_complete and observed.complete
    if rules.teach in (_EVERY_PATHWAY, _OWN_PATHWAY):
        if both_complete and rules.teach == _EVERY_PATHWAY:
            add(S[0] * A + action, C_next[0], rules.K, ANYWHERE, counts)
        else:
            for k in range(rules.K):
                add((S[k] + memory.to_counts[k]) * A + action, C_next[k], 1, memory.entries[k], counts)
        return
    units = 1
    if both_complete:
        n, _ = add(S[0] * A + action, C_next[0], 1, ANYWHERE, counts)
        if rules.parents > 0:
            units = bundle(n + 1)
    if rules.teach == _AVAILABLE_PAIRS and not (both_complete and is_waiting(components)):
        if units > 0:
            count_components(action, observed, units, learner)
        if rules.parents > 0:
            seek_parents(action, observed, learner)


@inner
def plan(experience: Experience, learner: Learner, planner: PlanTable | None) -> None:
    """Improve Q on the model, without a step in the world."""
    if planner is not None:
        plan_ahead(experience.action, learner, planner)


@inner
def settle(experience: Experience, rules: Rules, memory: Memory) -> None:
    """Move the pathways to their next states."""
    for k in range(rules.K):
        memory.S[k], memory.C[k] = memory.S_next[k], memory.C_next[k]
    copy_into(memory.previous, experience.observed.values)


@inner
def fits(learner: Learner, planner: PlanTable | None) -> bool:
    """Whether the counts have room for one more step."""
    components = learner.components
    d, K = learner.layout.sizes.shape[0], learner.rules.K
    if planner is not None:
        more = has_room(most_counts(d, K), planner.model.counts) and has_room(1, planner.leads)
    else:
        more = has_room(most_adds(d, components), components.counts)
    return more and has_room(K, learner.counts) and has_room_for_patterns(learner.evidence)


def draws_per_pathway(rules: Rules, d: int) -> int:
    """The most random numbers that one pathway needs to draw its next state, of `d` components."""
    return most_chained(rules.cycles, d) if rules.impute == _CHAIN else 1


def draws_per_step(rules: Rules, d: int) -> int:
    """The most imputation numbers that one `begin` can use, or one `learn` with late values before it."""
    resamples = rules.evidence > 0 or rules.teach == _AGREED_PAIRS
    # A shuffle takes a coin and K - 1 numbers, resampling one.
    once = rules.K * draws_per_pathway(rules, d) + (1 + rules.K if rules.p_shuffle > 0 else 0) + (1 if resamples else 0)
    # Late values draw up to lag + 1 states again.
    return once * (1 if rules.lag == 0 else rules.lag + 2)
