"""`Agent`: the learner as an object to deploy. Three methods act and learn; the others inspect, save and load."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lacuna import display
from lacuna.agent import checkpoint, learner, picture, savefile
from lacuna.agent.binning import Binning
from lacuna.agent.checkpoint import Phase
from lacuna.agent.env_space import actions_of, binning_of, space_of
from lacuna.agent.late import correct
from lacuna.agent.learned import Tables
from lacuna.agent.memory import Learner, PlanTable
from lacuna.agent.methods import METHODS, NO_GUESS
from lacuna.agent.models.history import begin_history, check_late
from lacuna.agent.observation import Observation, read_observation
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.settings import DEFAULT, Settings
from lacuna.kernels.exclusive import Entry, exclusive
from lacuna.kernels.memory_limit import ask_for
from lacuna.kernels.space import MISSING, Space
from lacuna.kernels.streams import Stream
from lacuna.validation import whole_number

if TYPE_CHECKING:
    import gymnasium

FORM = savefile.Form(
    "agent", (begin_history, correct, learner.act, learner.begin, learner.learn, learner.probabilities)
)
"""A saved agent, and the kernels that it calls."""


class Agent:
    """A learner that copes with hidden components, one step at a time.

    Parameters
    ----------
    space
        The factored space of complete states.
    n_actions
        Number of actions.
    settings
        The method and its hyper-parameters; `DEFAULT` if not given.
    seed
        Seed of all random draws. Agents with equal seeds and equal inputs make equal decisions.
    max_memory
        Most memory that its tables may take, in bytes or as a text (``"8GB"``). Default: the environment variable
        ``LACUNA_MAX_MEMORY``, or 2 GB if it is not set. Counts grow later, with the transitions seen.
    binning
        The edges at which real numbers were cut to make the components, if they were; saved with the agent.

    Attributes
    ----------
    steps
        Number of steps learned from so far: the calls of `learn`.

    Examples
    --------
    >>> agent = Agent(Space((3, 2)), n_actions=2, settings=Settings("mi-synthetic", K=4), seed=1)
    >>> agent.begin([0, 1])
    >>> agent.probabilities()
    array([0.5, 0.5])
    >>> action = agent.act()
    >>> agent.learn(reward=1.0, observation=[2, None], terminated=False)
    >>> sorted({state for state in agent.pathways}) in ([(2, 0)], [(2, 1)], [(2, 0), (2, 1)])
    True
    """

    def __init__(
        self, space: Space, n_actions: int, settings: Settings | None = None, *, seed: int = 0,
        max_memory: float | str | None = None, binning: Binning | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(space, Space):
            raise TypeError(f"space is {space!r}; it must be a Space, e.g. Space((8, 8, 3))")
        if not isinstance(settings, Settings | None):
            raise TypeError(f"settings is {settings!r}; it must be Settings, e.g. Settings('mi-synthetic', K=5)")
        if binning is not None and binning.space.sizes != space.sizes:
            raise ValueError(f"binning has {binning.space.sizes} bins; the components of the space have {space.sizes}")
        self.space, self.binning = space, binning
        self.n_actions = whole_number("n_actions", n_actions, 1)
        self.settings = settings if settings is not None else DEFAULT
        if self.settings.method not in METHODS:
            raise ValueError(
                f"{self.settings.method} is a yardstick: it knows what no agent can know; take it in a trial or a study"
            )
        # A compiled run prepares random numbers for a step and for two starts of episodes.
        n_draws = 3 * learner.draws_per_step(self.settings.rules, space.d)
        ask_for(8 * n_draws, f"the random numbers for a step of {self.settings.method}", max_memory)
        self.tables = Tables(space, self.n_actions, self.settings, max_memory=max_memory)
        self.method, self.rules = self.tables.method, self.tables.rules
        self.model, self.components = self.tables.model, self.tables.components
        self.planner, self.memory = self.tables.planner, self.tables.memory
        self.entry = Entry()
        self.imputation = Stream(seed, "imputation")
        self.exploration = Stream(seed, "exploration")
        self.steps = 0
        self._phase: Phase = "new"
        self._action = -1
        self._files = savefile.KnownFiles(FORM)

    @classmethod
    def for_env(
        cls, env: gymnasium.Env[Any, Any], settings: Settings | None = None, *, seed: int = 0,
        max_memory: float | str | None = None,
    ) -> Agent:  # fmt: skip
        """Make an agent for an environment, wrapped or not: with its components, its actions and its bins.

        Observations must have components with finitely many values, and actions must be `Discrete`; otherwise the error
        says what to do.

        Examples
        --------
        >>> import gymnasium, lacuna
        >>> env = lacuna.MissingObservation(gymnasium.make("Blackjack-v1"), "mcar:0.3")
        >>> agent = Agent.for_env(env, seed=1)
        >>> agent.space.sizes, agent.n_actions
        ((32, 11, 2), 2)
        >>> Agent.for_env(gymnasium.make("CartPole-v1"))
        Traceback (most recent call last):
        TypeError: the observation is a Box of 4 real numbers, and an Agent needs components with finitely many values;
        wrap it in lacuna.BinnedObservation
        """
        n_actions, space, binning = actions_of(env), space_of(env), binning_of(env)
        return cls(space, n_actions, settings, seed=seed, max_memory=max_memory, binning=binning)

    @exclusive
    def begin(self, observation: Observation) -> None:
        """Start an episode with its first observation."""
        seen = read_observation(observation, self.space)
        uniforms = self.imputation.need(learner.draws_per_step(self.rules, self.space.d))
        learner.begin(seen, self.rules, self.space.layout, self.memory, uniforms)
        begin_history(self.memory, self.tables.history)
        self._phase = "ready"

    @exclusive
    def act(self) -> int:
        """Choose the next action."""
        if self._phase != "ready":
            wanted = "begin(observation)" if self._phase == "new" else "learn(reward, observation, terminated)"
            raise RuntimeError(f"act() was called before {wanted}")
        self._action = int(learner.act(self.rules, self.memory, self.plan_table, self.exploration.need(2)))
        self._phase = "acted"
        return self._action

    @exclusive
    def learn(
        self, reward: float, observation: Observation, terminated: bool, *, action: int | None = None
    ) -> None:  # fmt: skip
        """Learn from the outcome of the last action.

        A reward that is missing or not finite is refused. After `terminated`, or when an episode is truncated, call
        `begin` with the first observation of the next one.

        `action` is for an action chosen elsewhere: by another learner, or by a person who did not follow `act`. It
        replaces the agent's own action, and `act` need not have been called.
        """
        if self._phase != "acted" and (action is None or self._phase == "new"):
            raise RuntimeError(f"learn() was called before {'act()' if action is None else 'begin(observation)'}")
        taken = self._action if action is None else whole_number("the action", action, 0, self.n_actions - 1)
        if isinstance(reward, bool) or not isinstance(reward, int | float | np.floating | np.integer):
            raise ValueError(f"the reward is {reward!r}; it must be a number: missing rewards cannot be learned from")
        # Not as a float: a Python integer may be too large for one.
        if not -MAX_REWARD <= (reward if isinstance(reward, int) else float(reward)) <= MAX_REWARD:
            raise ValueError(f"the reward is {reward}; it must be finite, between {-MAX_REWARD:g} and {MAX_REWARD:g}")
        if not isinstance(terminated, bool | np.bool_):
            raise ValueError(f"terminated is {terminated!r}; it must be True or False")
        seen = read_observation(observation, self.space)
        self.make_room()
        uniforms = self.imputation.need(learner.draws_per_step(self.rules, self.space.d))
        learner.learn(taken, float(reward), bool(terminated), seen, self.learner, uniforms)
        self.steps += 1
        self._phase = "new" if terminated else "ready"

    @exclusive
    def correct(self, observation: Observation, *, steps_ago: int = 0) -> None:
        """Take in late values of the state `steps_ago` steps ago; ``None`` for components still unknown.

        The pathways are redrawn from that state on. `steps_ago` is at most the setting ``lag``; 0 is the state in which
        the next action is chosen, or the last one was chosen if it has not been learned from yet. Values from before
        the episode are ignored. Values that were already observed must not change.

        Examples
        --------
        >>> agent = Agent(Space((3, 2)), n_actions=2, settings=Settings("mi-synthetic", K=4, lag=1), seed=1)
        >>> agent.begin([0, 1])
        >>> action = agent.act()
        >>> agent.learn(reward=1.0, observation=[2, None], terminated=False)
        >>> agent.correct([None, 1])
        >>> agent.pathways
        ((2, 1), (2, 1), (2, 1), (2, 1))
        """
        if self._phase == "new":
            raise RuntimeError("correct() was called before begin(observation)")
        if self.tables.history is None:
            raise ValueError("this agent keeps no earlier states: its setting lag is 0; late values need one above 0")
        steps_ago = whole_number("steps_ago", steps_ago, 0, self.rules.lag)
        values = read_observation(observation, self.space)
        check_late(values, steps_ago, self.tables.history)
        self.make_room()
        correct(steps_ago, values, self.learner, self.imputation.need(learner.draws_per_step(self.rules, self.space.d)))

    def take_late(self, info: Mapping[str, Any]) -> None:
        """Take in the late values in the info of a `MissingObservation`, before learning from the step."""
        if "late" in info and self.rules.lag > 0 and info["steps_ago"] <= self.rules.lag:
            self.correct([None if value < 0 else int(value) for value in info["late"]], steps_ago=info["steps_ago"])

    def make_room(self) -> None:
        """Make sure that what one step may teach fits into the counts."""
        self.tables.make_room()

    @property
    def learner(self) -> Learner:
        """The agent as kernels see it."""
        return self.tables.learner

    @property
    def plan_table(self) -> PlanTable | None:
        """The planner as kernels see it, if there is one."""
        return self.tables.plan_table

    def took_steps(self, n: int) -> None:
        """Record that a compiled loop took `n` steps on this agent's arrays and stopped before the next action."""
        self.steps += n
        self._phase = "ready"

    @property
    def ready(self) -> bool:
        """Whether `act` may be called."""
        return self._phase == "ready"

    @exclusive
    def probabilities(self) -> NDArray[np.float64]:
        """Exact probability of each action in the current state: vote, ties and exploration included.

        Calling it changes nothing and draws no random number. Before and after `act` the result is the same.
        """
        if self._phase == "new":
            raise RuntimeError("probabilities() was called before begin(observation)")
        p = np.empty(self.n_actions)
        learner.probabilities(self.rules, self.memory, self.plan_table, p)
        return p

    @property
    def Q(self) -> NDArray[np.float64]:  # noqa: N802  the paper's symbol
        """The table of values, read-only: one row per state.

        For missing-as-state, states include the value "missing". If each pathway has a table of its own, this is
        their mean.
        """
        tables = self.settings.tables
        if tables == 1:
            return _read_only(self.memory.Q)
        return _read_only(self.memory.Q.reshape(tables, -1, self.n_actions).mean(axis=0))

    @property
    @exclusive
    def counts(self) -> Mapping[tuple[int, int, int], float]:
        """The transition counts ``(state, action, next state) -> count`` as they are now, read-only.

        If each pathway has a model of its own, this is their mean.
        """
        found: dict[tuple[int, int, int], float] = {}
        for transition, n in self.model:
            found[transition] = found.get(transition, 0.0) + n
        return MappingProxyType(found)

    @property
    @exclusive
    def component_counts(self) -> Mapping[tuple[str, int, int, int], float]:
        """The counts ``(component, value, action, next value) -> count`` as they are now, read-only.

        They include complete transitions that have not been added to the component counts yet.
        """
        if self.planner is not None:
            return MappingProxyType(self.planner.model.of_components())
        found = self.components.of_components()
        if self.method.counts_components:
            for (s, action, s_next), n in self.model:
                waiting = self.components.waiting(int(n))
                if waiting:
                    for name, u, v in zip(self.space.names, *map(self.space.decode, (s, s_next)), strict=True):
                        found[name, u, action, v] += waiting
        return MappingProxyType(dict(found))

    @property
    def parent_of(self) -> Mapping[str, str | None]:
        """The parent of each component, found so far; None where no other component clearly improves prediction."""
        return (self.planner.model if self.planner is not None else self.components).parent_of()

    @property
    def pathways(self) -> tuple[tuple[int | None, ...], ...]:
        """The current state in each pathway; ``None`` where a component stays missing."""
        if self._phase == "new" and self.steps == 0:
            return ()
        if self.method.impute in NO_GUESS:
            return (tuple(None if value == MISSING else int(value) for value in self.memory.previous),)
        return tuple(self.space.decode(int(s)) for s in self.memory.S - self.memory.first)

    @property
    def action(self) -> int | None:
        """The last action chosen, while its outcome is awaited; None if there is none."""
        return self._action if self._phase == "acted" else None

    @property
    def decisions(self) -> int:
        """Number of actions chosen so far, including those without a later `learn`.

        It is also the index of the next decision. Indices begin with 0, and continue across episodes and in an agent
        that was saved and loaded.
        """
        # An action takes one random number, and one more before it if the agent may explore.
        return self.exploration.position // (2 if learner.may_explore(self.rules) else 1)

    @property
    def seed(self) -> int:
        """The seed of the agent's two streams, imputation and exploration."""
        return self.imputation.seed

    def __repr__(self) -> str:
        K = f", K={self.settings.K}" if self.method.multiple else ""
        return f"Agent({self.method.name!r}{K}, {self.steps} steps, seed={self.seed})"

    def _repr_html_(self) -> str:
        chosen = [(name, value) for name, value in self.settings.as_dict().items() if name in self.settings.unusual()]
        about = [("steps", self.steps), ("decisions", self.decisions), ("seed", self.seed)]
        names = " × ".join(f"{name} {n}" for name, n in zip(self.space.names, self.space.sizes, strict=True))
        policy = picture.policy_html(self.space, self.Q, picture.signs_of((), self.n_actions))
        return display.card(
            f"Agent: {self.method.name}", display.facts(about), display.facts(chosen),
            display.facts([("states", names), ("actions", self.n_actions)]), policy,
        )  # fmt: skip

    @exclusive
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the complete state to a file, whole or not at all.

        A file that this agent was loaded from or saved to is replaced, unless another process has saved it since. Any
        other file is replaced only with `overwrite`.
        """
        self._files.write(path, *self.to_parts(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, other_kernels: savefile.OtherKernels = "warn") -> Agent:
        """Load an agent; it continues exactly where it was saved.

        If other kernels saved it, later results may differ in their bits. That gives a warning; with
        ``other_kernels="refuse"``, an error.
        """
        files = savefile.KnownFiles(FORM)
        header, arrays = files.read(path, other_kernels)
        with savefile.refusing(path, "does not describe an agent"):
            space, n_actions, settings, seed = checkpoint.identity(header)
            savefile.fields("the file", arrays, checkpoint.array_names(settings))
            agent = cls(space, n_actions, settings, seed=seed, binning=checkpoint.binning(header))
            checkpoint.restore(agent, header, arrays)
        agent._files = files
        return agent

    def to_parts(self) -> tuple[dict[str, Any], savefile.Arrays]:
        """The complete state as plain data and arrays."""
        return checkpoint.describe(self)


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    view = array.view()
    view.setflags(write=False)
    return view
