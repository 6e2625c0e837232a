"""Problems: a world or an environment, and the mechanism that hides parts of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium import Env, spaces

from lacuna.kernels.space import Space
from lacuna.missingness import Mechanism, parse
from lacuna.parameters import parse_call, write_call
from lacuna.run.run import check_problem
from lacuna.validation import shown
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.mdp.tabular_env import TabularEnv
from lacuna.worlds.registry import World, find_world
from lacuna.wrappers import MissingObservation

AnyEnv = Env[Any, Any]


@dataclass(frozen=True)
class Problem:
    """A world, the mechanism that hides parts of it, and the text that names the world.

    Parameters
    ----------
    world
        The text that names the world.
    mdp, mechanism
        The world, and what hides parts of it.
    first_observed
        Whether the first state of every episode is fully observed.
    """

    world: str
    mdp: TabularMDP
    mechanism: Mechanism
    first_observed: bool = True

    @property
    def missingness(self) -> str:
        """The mechanism in words."""
        return self.mechanism.name

    @property
    def space(self) -> Space:
        """The space of complete states."""
        return self.mdp.space

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return self.mdp.n_actions

    def environment(self) -> MissingObservation:
        """Return the problem as a new environment, whose random path for a seed is that of a compiled run."""
        return MissingObservation(TabularEnv(self.mdp), self.mechanism, first_observed=self.first_observed)

    @classmethod
    def named(
        cls, world: str, missingness: str, parameters: Mapping[str, Any] | None = None, *, first_observed: bool = True
    ) -> Problem:
        """Make a problem from the texts that the command line takes, and from more parameters of the world if given.

        Examples
        --------
        >>> Problem.named("lake,stay=true", "mfog:0.5,0").mechanism.label
        'NMAR'
        """
        found = find_problem(world, missingness, parameters, first_observed=first_observed)
        if isinstance(found, EnvProblem):
            raise TypeError(f"{world!r} is a Gymnasium environment, and a world given as arrays is needed here")
        return found


@dataclass(frozen=True)
class EnvProblem:
    """A Gymnasium environment, the mechanism that hides parts of its observations, and the text that names it.

    Parameters
    ----------
    world
        The text that names the environment.
    make
        Makes a new environment, with a `Discrete` or `MultiDiscrete` observation and `Discrete` actions.
    mechanism
        What hides parts of it.
    space, n_actions
        The space of complete observations, and the number of actions.
    first_observed
        Whether the first observation of every episode is complete.
    """

    world: str
    make: Callable[[], AnyEnv]
    mechanism: Mechanism
    space: Space
    n_actions: int
    first_observed: bool = True

    @property
    def missingness(self) -> str:
        """The mechanism in words."""
        return self.mechanism.name

    def environment(self) -> MissingObservation:
        """Make a new environment that hides parts of its observations."""
        return MissingObservation(self.make(), self.mechanism, first_observed=self.first_observed)

    @classmethod
    def of(cls, world: str, make: Callable[[], AnyEnv], missingness: str, *, first_observed: bool = True) -> EnvProblem:
        """Make an environment once to see what it is; one that agents cannot act in is refused."""
        env = make()
        try:
            if any(isinstance(layer, MissingObservation) for layer in _layers(env)):
                raise TypeError(f"{world!r} hides parts of its observations already; the missingness is named apart")
            actions = env.action_space
            if not isinstance(actions, spaces.Discrete):
                raise TypeError(f"the actions of {world!r} are {shown(actions)}; an agent chooses from Discrete ones")
            try:
                wrapped = MissingObservation(env, missingness, first_observed=first_observed)
                space = wrapped.space
            except TypeError as error:
                # Where an environment is named there is nothing to wrap.
                named = parse_call(world)[0] in gymnasium.registry and len(env.observation_space.shape or ()) == 1
                advice = f", or give bins with its name: {world + ',bins=8'!r}" if named else ""
                raise TypeError(f"{world!r} cannot be used: {error}{advice}") from error
            return cls(world, make, wrapped.mechanism, space, int(actions.n), first_observed)
        finally:
            env.close()


AnyProblem = Problem | EnvProblem


def find_problem(
    world: str, missingness: str, parameters: Mapping[str, Any] | None = None, *, first_observed: bool = True
) -> AnyProblem:
    """Make a problem of a world or of an environment, from the texts that name them.

    Examples
    --------
    >>> find_problem("FrozenLake-v1,is_slippery=false", "mcar:0.2").space.sizes
    (16,)
    """
    name, said = parse_call(world, "world")
    for twice in said.keys() & (parameters or {}).keys():
        raise ValueError(f"{twice} is given twice, in {world!r} and as a parameter")
    declared, given = find_world(name), {**said, **(parameters or {})}
    return problem_in(declared, declared.open(**given), missingness, given, first_observed=first_observed)


def problem_in(
    world: World, made: TabularMDP | AnyEnv, missingness: str, parameters: Mapping[str, Any], *,
    first_observed: bool = True,
) -> AnyProblem:  # fmt: skip
    """Make a problem in a world that was made already, with these parameters."""
    name = write_call(world.name, parameters)
    if isinstance(made, TabularMDP):
        mechanism = parse(missingness, made)
        check_problem(made, mechanism)
        return Problem(name, made, mechanism, first_observed)
    made.close()

    def make() -> AnyEnv:
        again = world.open(**parameters)
        if not isinstance(again, Env):
            raise TypeError(f"{name!r} made an environment once, and then {shown(again)}")
        return again

    return EnvProblem.of(name, make, missingness, first_observed=first_observed)


def _layers(env: AnyEnv) -> list[AnyEnv]:
    layers = [env]
    while hasattr(layers[-1], "env"):
        layers.append(layers[-1].env)
    return layers
