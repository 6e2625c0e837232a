"""A yardstick: a reference that methods are compared with. It knows what no agent can.

Three of the six also learn Q, with the same kernels as an agent. One of them plans: it is a planner of one pathway from
which nothing is hidden.
"""

from __future__ import annotations

from lacuna.agent.learner import act, begin, improve, learn, shuffle
from lacuna.agent.memory import Experience, Learner, PlanTable, blank_memory, memory_bytes
from lacuna.agent.methods import Knows, method_named
from lacuna.agent.models.component_counts import ComponentCounts
from lacuna.agent.models.planner import Planner
from lacuna.agent.settings import Settings
from lacuna.kernels.codes import copy_into, decode, is_complete
from lacuna.kernels.compiled import inner
from lacuna.kernels.counts import Counts, count_bytes
from lacuna.kernels.exclusive import Entry
from lacuna.kernels.memory_limit import ask_for
from lacuna.kernels.space import Space
from lacuna.kernels.streams import Stream, draw
from lacuna.missingness.mechanism import Mechanism
from lacuna.run.belief import best_on_average, expect_move, expect_start, take_evidence
from lacuna.run.knowledge import Knowledge, belief_shape, knowledge_of
from lacuna.run.pathways import draw_next, draw_start
from lacuna.run.scene import Numbers, Scene, Step
from lacuna.worlds.mdp.tabular import TabularMDP

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
        self.settings = settings
        self.method = method_named(settings.method)
        self.rules = settings.rules
        space, n_actions, plans = mdp.space, mdp.n_actions, self.method.plans
        ask_for(
            _bytes(mdp, mechanism, settings),
            f"the tables of {settings.method} for {space.n_states} states and {n_actions} actions",
        )
        self.knowledge = knowledge_of(mdp, mechanism, settings)
        # What it does not count has the smallest table there is.
        nothing = (Space((1,)), 1)
        self.model = Counts(space, n_actions) if plans else Counts(*nothing)
        self.planner = Planner(space, n_actions, self.rules.K) if plans else None
        self._blank = Learner(
            self.rules, space.layout, blank_memory(space, n_actions, settings),
            self.model.table, ComponentCounts(*nothing, parents=False).table, None, None, None,
        )  # fmt: skip
        self.entry = Entry()
        self.imputation = Stream(seed, "imputation")
        self.exploration = Stream(seed, "exploration")
        self.steps = 0

    def __repr__(self) -> str:
        return f"Yardstick({self.method.name!r}, {self.steps} steps, seed={self.imputation.seed})"

    @property
    def learner(self) -> Learner:
        """All of it as kernels see it."""
        if self.planner is None:
            return self._blank
        return self._blank._replace(counts=self.model.table, planner=self.planner.table)

    def make_room(self) -> None:
        """Make sure that what one step may teach fits into the counts, if it counts anything."""
        if self.planner is not None:
            self.model.need(self.rules.K)
            self.planner.make_room()

    def took_steps(self, n: int) -> None:
        """Note that a compiled loop took `n` steps."""
        self.steps += n


def _bytes(mdp: TabularMDP, mechanism: Mechanism, settings: Settings) -> int:
    """Memory that the tables may take, if every state is visited."""
    modes, states = belief_shape(mdp, mechanism, settings)
    found = memory_bytes(mdp.space, mdp.n_actions, settings) + 16 * modes * states
    if method_named(settings.method).plans:
        found += count_bytes(mdp.space.n_states, mdp.n_actions) + Planner.nbytes(
            mdp.space, mdp.n_actions, settings.pathways
        )
    return found


@inner
def begin_knowing(
    fresh: bool, state: int, scene: Scene, learner: Learner, knowledge: Knowledge, planner: PlanTable | None,
    numbers: Numbers,
) -> None:  # fmt: skip
    """Start an episode in true `state`, of which the scene shows a part; `fresh` if it is the first one."""
    world, memory = scene.world, learner.memory
    if planner is not None:
        begin(world.shown[state], learner.rules, learner.layout, memory, numbers.imputation)
        memory.C[0] = world.codes[state]
        return
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


@inner
def act_knowing(learner: Learner, knowledge: Knowledge, numbers: Numbers) -> int:
    """Choose an action."""
    if knowledge.knows == _STATE:
        return int(knowledge.policy[knowledge.here[0]])
    if knowledge.knows == _BELIEF:
        return best_on_average(knowledge, learner.memory.p)
    return act(learner.rules, learner.memory, learner.planner, numbers.exploration)


@inner
def learn_knowing(
    action: int, step: Step, scene: Scene, learner: Learner, knowledge: Knowledge, planner: PlanTable | None,
    numbers: Numbers,
) -> None:  # fmt: skip
    """Take in what an action led to: move belief or pathways on, and update Q as the methods do."""
    world, rules, memory = scene.world, learner.rules, learner.memory
    if planner is not None:
        learn(action, step.reward, step.terminated, world.shown[step.arrival], learner, numbers.imputation)
        return
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
            shuffle(memory.S_next, knowledge.here_next, memory.first, numbers.imputation)
    if knowledge.knows != _STATE:
        for k in range(rules.K):
            memory.S_next[k] = memory.first[k] + world.shows[knowledge.here_next[k]]
        experience = Experience(action, step.reward, step.terminated, is_complete(memory.previous), observed, 0)
        improve(experience, rules, memory, None, None)
    move_pathways(scene, learner, knowledge)


@inner
def move_pathways(scene: Scene, learner: Learner, knowledge: Knowledge) -> None:
    """Move the pathways on to the true states drawn for them."""
    world, memory = scene.world, learner.memory
    for k in range(learner.rules.K):
        s = knowledge.here_next[k]
        knowledge.here[k], memory.S[k], memory.C[k] = s, memory.first[k] + world.shows[s], world.codes[s]
    copy_into(memory.previous, scene.observation)
