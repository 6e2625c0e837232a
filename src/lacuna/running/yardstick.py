"""A yardstick: a reference that methods are compared with. It knows what no agent can.

Two of the five also learn Q, with the same kernels as an agent.
"""

from __future__ import annotations

from lacuna.kernels.codes import copy_into, decode, is_complete
from lacuna.kernels.compiled import kernel
from lacuna.kernels.counts import Counts
from lacuna.kernels.exclusive import Entry
from lacuna.kernels.memory_limit import ask_for
from lacuna.kernels.space import Space
from lacuna.kernels.streams import Stream, draw
from lacuna.learning.learner import act, improve, shuffle
from lacuna.mdp.tabular import TabularMDP
from lacuna.methods.memory import Experience, Learner, blank_memory, memory_bytes
from lacuna.methods.settings import Settings
from lacuna.methods.table import Knows, find_method
from lacuna.missingness.mechanism import Mechanism
from lacuna.models.component_counts import ComponentCounts
from lacuna.running.belief import best_on_average, expect_move, expect_start, take_evidence
from lacuna.running.knowledge import Knowledge, belief_shape, knowledge_of
from lacuna.running.pathways import draw_next, draw_start
from lacuna.running.scene import Numbers, Scene, Step

_EVERYTHING_SHOWN, _TRANSITIONS, _STATE, _BELIEF = map(
    int, (Knows.EVERYTHING_SHOWN, Knows.TRANSITIONS, Knows.STATE, Knows.BELIEF)
)


class Yardstick:
    """One of `YARDSTICKS` as a player: a `Run` drives it like an `Agent`.

    Parameters
    ----------
    mdp, mechanism
        The world, and what hides it; it knows both.
    settings
        Which yardstick, with its settings.
    seed
        Of its random streams.
    """

    def __init__(self, mdp: TabularMDP, mechanism: Mechanism, settings: Settings, seed: int) -> None:
        modes, states = belief_shape(mdp, mechanism, settings)
        ask_for(
            memory_bytes(mdp.space, mdp.n_actions, settings) + 16 * modes * states,
            f"the tables of {settings.method} for {mdp.space.n_states} states and {mdp.n_actions} actions",
        )
        self.settings = settings
        self.method = find_method(settings.method)
        self.rules = settings.rules
        self.knowledge = knowledge_of(mdp, mechanism, settings)
        # It counts nothing: whatever a learner has, it has the smallest.
        nothing = Space((1,))
        self.learner = Learner(
            self.rules, mdp.space.layout, blank_memory(mdp.space, mdp.n_actions, settings),
            Counts(nothing, 1).table, ComponentCounts(nothing, 1, parents=False).table, None,
        )  # fmt: skip
        self.entry = Entry()
        self.imputation = Stream(seed, "imputation")
        self.exploration = Stream(seed, "exploration")
        self.steps = 0

    def make_room(self) -> None:
        """Nothing to do: it counts nothing."""

    def took_steps(self, n: int) -> None:
        """Note that a compiled loop took `n` steps."""
        self.steps += n


@kernel
def begin_knowing(
    fresh: bool, state: int, scene: Scene, learner: Learner, knowledge: Knowledge, numbers: Numbers
) -> None:
    """Start an episode in true `state`, of which the scene shows a part; `fresh` if it is the first one."""
    world, memory = scene.world, learner.memory
    copy_into(memory.previous, scene.observation)
    if knowledge.knows == _BELIEF:
        expect_start(fresh, world, knowledge)
        take_evidence(-1, not scene.first_observed, scene, learner.layout, knowledge)
        return
    knowledge.here_next[0] = state
    if knowledge.knows == _TRANSITIONS:
        observed = decode(scene.observation, learner.layout)
        for k in range(learner.rules.K):
            u = draw(numbers.imputation)
            knowledge.here_next[k] = draw_start(knowledge.here[k], world, knowledge, observed, u)
    move_pathways(scene, learner, knowledge)


@kernel
def act_knowing(learner: Learner, knowledge: Knowledge, numbers: Numbers) -> int:
    """Choose an action."""
    if knowledge.knows == _STATE:
        return int(knowledge.policy[knowledge.here[0]])
    if knowledge.knows == _BELIEF:
        return best_on_average(knowledge, learner.memory.p)
    return act(learner.rules, learner.memory, learner.planner, numbers.exploration)


@kernel
def learn_knowing(
    action: int, step: Step, scene: Scene, learner: Learner, knowledge: Knowledge, numbers: Numbers
) -> None:
    """Take in what an action led to: move belief or pathways on, and update Q as the methods do."""
    world, rules, memory = scene.world, learner.rules, learner.memory
    if knowledge.knows == _BELIEF:
        expect_move(action, step, world, knowledge)
        masked = True
        take_evidence(action, masked, scene, learner.layout, knowledge)
        return
    observed = decode(scene.observation, learner.layout)
    knowledge.here_next[0] = step.arrival
    if knowledge.knows == _TRANSITIONS:
        for k in range(rules.K):
            u = draw(numbers.imputation)
            knowledge.here_next[k] = draw_next(knowledge.here[k], action, world, knowledge, observed, u)
        if rules.p_shuffle > 0 and draw(numbers.imputation) < rules.p_shuffle:
            # The rows of Q follow from the true states, below.
            shuffle(knowledge.here_next, memory.S_next, numbers.imputation)
    if knowledge.knows != _STATE:
        for k in range(rules.K):
            memory.S_next[k] = world.shows[knowledge.here_next[k]]
        experience = Experience(action, step.reward, step.terminated, is_complete(memory.previous), observed)
        improve(experience, rules, memory, None)
    move_pathways(scene, learner, knowledge)


@kernel
def move_pathways(scene: Scene, learner: Learner, knowledge: Knowledge) -> None:
    """Move the pathways on to the true states drawn for them."""
    world, memory = scene.world, learner.memory
    for k in range(learner.rules.K):
        s = knowledge.here_next[k]
        knowledge.here[k], memory.S[k], memory.C[k] = s, world.shows[s], world.codes[s]
    copy_into(memory.previous, scene.observation)
