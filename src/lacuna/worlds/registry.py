"""Worlds by name: a decorator declares one, and lists, environments, studies and the command follow from that."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, isclass, signature
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium

from lacuna.parameters import frozen, parameters_of, parse_call, returned, typed, unusual
from lacuna.references import (
    WORLD_GROUP,
    Sources,
    check_makes,
    entry_point_names,
    load,
    reference_to,
    resolve,
    sources_of,
    told,
)
from lacuna.trust import check_trusted
from lacuna.validation import nearest, of_kind, parameter_types, shown
from lacuna.worlds.mdp.tabular import TabularMDP

if TYPE_CHECKING:
    from lacuna.worlds.mdp.tabular_env import TabularEnv

Env = gymnasium.Env

_GYMNASIUM_ID = re.compile(r"(?:[\w.]+:)?(?:[\w-]+/)?[\w.-]+-v\d+")


@dataclass(frozen=True)
class World:
    """A declared world: its name, its Gymnasium id, a line about it, and what makes it.

    Its parameters are those of `build`, with their types and defaults. What `build` gives is a `TabularMDP`, or has a
    method ``mdp()`` that does.
    """

    name: str
    env_id: str
    about: str
    build: Callable[..., Any]
    source: str = ""
    """The reference to what makes it, if it does not come with lacuna; it may then be a Gymnasium environment too."""
    registered: str = ""
    """What a Gymnasium id was registered with, which need not stand in the source."""

    @property
    def sources(self) -> Sources:
        """The sources that results depend on: those of the reference, and the registration."""
        digest = hashlib.sha256(self.registered.encode()).hexdigest()
        return (((self.env_id, digest),) if self.registered else ()) + sources_of([self.source] if self.source else [])

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters and their defaults."""
        return {name: found.default for name, found in parameters_of(self.build).items()}

    def typed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters as the types that the world declares, so that 1 and 1.0 are the same number.

        Examples
        --------
        >>> WORLDS["lake"].typed({"wind": 0, "stay": True})
        {'wind': 0.0, 'stay': True}
        """
        return typed(f"the world {self.name!r}", self.build, given)

    def unusual(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that differ from their default."""
        return unusual(self.build, self.typed(given))

    def open(self, /, **given: Any) -> TabularMDP | Env:
        """Make the world or environment; a parameter that it does not have, or of the wrong type, is refused."""
        parameters = self.typed(given)
        try:
            built = self.build(**parameters)
            made = built.mdp() if hasattr(type(built), "mdp") and not isinstance(built, Env) else built
        except Exception as error:
            if not self.source:
                raise
            raise ValueError(f"the world {self.name!r} could not be made: {told(error)}") from error
        if isinstance(made, TabularMDP) or (self.source and isinstance(made, Env)):
            return made
        kinds = "a TabularMDP, or a Gymnasium environment" if self.source else "a TabularMDP"
        raise TypeError(f"the world {self.name!r} made {shown(built)}; it must make {kinds}")

    def make(self, /, **given: Any) -> TabularMDP:
        """Make the world as arrays, as `open` does; an environment, which has none, is refused."""
        made = self.open(**given)
        if isinstance(made, TabularMDP):
            return made
        made.close()
        raise TypeError(
            f"the world {self.name!r} is a Gymnasium environment, and arrays (a TabularMDP) are needed here"
        )


WORLDS: dict[str, World] = {}
"""Every declared world by its name."""

Builder = TypeVar("Builder", bound=Callable[..., Any])


def world(name: str, env_id: str, about: str) -> Callable[[Builder], Builder]:
    """Declare a world: the function or class it decorates makes one, and Gymnasium knows it from then on.

    Parameters
    ----------
    name
        What `make_world`, study files and the command call it.
    env_id
        What Gymnasium calls it.
    about
        What it is, in a line.

    Examples
    --------
    All parameters of what makes the world have a type and a default:

    >>> from lacuna.worlds.toys import corridor
    >>> @world("tunnel", "mine/Tunnel-v0", "a long corridor")
    ... def tunnel(length: int = 50) -> TabularMDP:
    ...     return corridor(length, slip=0.0)
    >>> make_world("tunnel", length=20).n_states, gymnasium.make("mine/Tunnel-v0").observation_space
    (20, Discrete(50))
    >>> del WORLDS["tunnel"], gymnasium.registry["mine/Tunnel-v0"]
    """

    def declare(build: Builder) -> Builder:
        what, known = f"the world {name!r}", WORLDS.get(name)
        parameter_types(what, build)
        for parameter in signature(build).parameters.values():
            if parameter.default is Parameter.empty:
                raise TypeError(f"{what} cannot be declared: its parameter {parameter.name} has no default")
        # A module that is loaded again declares its worlds again.
        again = known is not None and (known.env_id, known.build.__module__) == (env_id, build.__module__)
        if known is not None and not again:
            raise ValueError(f"{what} is declared by {known.build.__module__} already")
        if env_id in gymnasium.registry and not again:
            raise ValueError(f"{what} cannot be called {env_id!r}: Gymnasium knows another environment of that name")
        if not again:
            gymnasium.register(id=env_id, entry_point=f"{__name__}:world_env", kwargs={"world": name})
        WORLDS[name] = World(name, env_id, about, build)
        return build

    return declare


def find_world(name: str) -> World:
    """Return the world called `name`, or raise an error that lists the choices.

    A name is that of a world of lacuna, a Gymnasium id (``FrozenLake-v1``), a reference (``mine.worlds:maze``,
    ``maze.py:maze``) or an entry point of an installed package in the group ``lacuna.worlds``. Only what is named is
    imported, and only what says that it makes a world is called: a class of worlds or environments, or a function whose
    return type names one.

    Besides its own parameters a Gymnasium id takes ``bins``, one number or one for each component. It cuts real
    numbers, such as those of ``CartPole-v1``, at quantiles of what a random policy sees.
    """
    of_kind("the world", name, str, "a text, e.g. 'lake'")
    if name in WORLDS:
        return WORLDS[name]
    if name in gymnasium.registry or _GYMNASIUM_ID.fullmatch(name):
        return _environment(name)
    reference = resolve(WORLD_GROUP, name)
    if reference is None:
        choices = [*WORLDS, *entry_point_names(WORLD_GROUP)]
        raise ValueError(f"no world is called {name!r}{nearest(name, choices)}; there are {', '.join(choices)}")
    found = load(reference)
    if isinstance(found, Env):
        raise TypeError(f"{reference!r} is an environment already; name what makes one, since every run needs its own")
    if not callable(found) and not isinstance(found, TabularMDP):
        raise TypeError(f"{reference!r} is {shown(found)}; it must be a TabularMDP, or a function that makes a world")
    if not isinstance(found, TabularMDP):
        check_makes(
            reference, found, "a world", _makes_worlds, ("TabularMDP", "Env"),
            "a class of worlds has a method def mdp(self) -> TabularMDP:, or is a gymnasium.Env",
        )  # fmt: skip
    return World(reference, "", "", (lambda: found) if isinstance(found, TabularMDP) else found, reference)


def _makes_worlds(kind: type) -> bool:
    """Whether the objects of a class are worlds or environments, or have a method ``mdp()`` that makes a world."""
    made = returned(getattr(kind, "mdp", None))
    return issubclass(kind, TabularMDP | Env) or any(
        issubclass(one, TabularMDP) if isclass(one) else one == "TabularMDP" for one in made
    )


def _environment(env_id: str) -> World:
    """Return what makes an environment that Gymnasium knows; ``module:ID`` imports the module first."""
    check_trusted(env_id, "code to import")
    try:
        spec = gymnasium.spec(env_id)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"Gymnasium has no environment {env_id!r}: {' '.join(str(error).split())}") from error
    made_by = spec.entry_point
    source = made_by if isinstance(made_by, str) else reference_to(made_by)
    what = repr((sorted(spec.kwargs.items()), spec.max_episode_steps, spec.additional_wrappers))
    # An object without a text of its own stands there with its address, another one in every process.
    registered = re.sub(r" at 0x[0-9a-f]+", "", what)
    if source is None:
        raise ValueError(f"{env_id!r} was registered with {shown(made_by)}, which no other process could import")

    def build(**parameters: Any) -> Any:
        bins = parameters.pop("bins", None)
        env = gymnasium.make(env_id, disable_env_checker=True, **parameters)
        if bins is None:
            return env
        # By its name, as a world of one's own: worlds know no wrapper.
        return load("lacuna.wrappers.binned:cut_by_sampling")(env, env_id, bins, frozen(parameters), registered)

    return World(env_id, env_id, "", build, source, registered)


def make_world(name: str, /, **parameters: Any) -> TabularMDP:
    """Make a world from its name and parameters.

    Examples
    --------
    >>> make_world("corridor", length=3).n_states
    3
    >>> make_world("lack")
    Traceback (most recent call last):
    ValueError: no world is called 'lack' (did you mean 'lake'?); there are lake, lookout, machine, mobile-health,
    random, relay, frozen-lake, cliff-walking, taxi, corridor, field, bandit, loop
    """
    return find_world(name).make(**parameters)


def parse_world(text: str) -> tuple[str, dict[str, Any]]:
    """Read a world as the command line names it: ``NAME[,PARAMETER=VALUE,…]``.

    Values are written as in TOML, texts without quotes if they are plain; ``@FILE`` stands for the text of a file. A
    comma inside brackets or quotes belongs to its value.

    Examples
    --------
    >>> parse_world("lake,wind=0.2,stay=true,rewards=[-1.0, -20.0, 100.0]")
    ('lake', {'wind': 0.2, 'stay': True, 'rewards': (-1.0, -20.0, 100.0)})
    """
    return parse_call(text, "world")


def world_env(world: str, render_mode: str | None = None, **parameters: Any) -> TabularEnv:
    """Make the environment of a world by its name: the entry point of the worlds' ids in Gymnasium.

    Examples
    --------
    >>> world_env("taxi").observation_space
    MultiDiscrete([5 5 5 4])
    """
    from lacuna.worlds.mdp.tabular_env import TabularEnv  # noqa: PLC0415  brings the compiler, which a list of names does not need

    return TabularEnv(make_world(world, **parameters), render_mode)
