"""The saved state of an agent, and how a blank agent is filled from an untrusted file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from lacuna.agent import learned as tables
from lacuna.agent import savefile
from lacuna.agent.binning import Binning
from lacuna.agent.memory import NO_STATE, History
from lacuna.agent.methods import NO_GUESS, Impute
from lacuna.agent.models import history
from lacuna.agent.savefile import Arrays
from lacuna.agent.settings import LATER, Settings
from lacuna.kernels.codes import pack
from lacuna.kernels.counts import MAX_COUNT
from lacuna.kernels.space import MISSING, Space
from lacuna.kernels.streams import MAX_POSITION, MAX_SEED, Stream, StreamName
from lacuna.validation import one_of, shown, whole_number

if TYPE_CHECKING:
    from lacuna.agent.agent import Agent

Phase = Literal["new", "ready", "acted"]
"""The phase of an agent: before `begin`, before `act`, before `learn`."""

_PHASES = get_args(Phase)
_HEADER = ("sizes", "names", "n_actions", "settings", "seed", "positions", "steps", "phase", "action")

# Only agents whose components are bins have it.
_OPTIONAL = ("binning",)

_PLACE = ("S", "previous", "held")


def describe(agent: Agent) -> tuple[dict[str, Any], Arrays]:
    """The complete state of an agent as plain data and arrays."""
    header = {
        "sizes": list(agent.space.sizes),
        "names": list(agent.space.names),
        "n_actions": agent.n_actions,
        "settings": agent.settings.for_file(),
        "seed": agent.imputation.seed,
        "positions": {"imputation": agent.imputation.position, "exploration": agent.exploration.position},
        "steps": agent.steps,
        "phase": agent._phase,
        "action": agent._action,
    }
    if agent.binning is not None:
        header["binning"] = agent.binning.as_dict()
    memory = agent.memory
    place = {name: getattr(memory, name) for name in _PLACE}
    # As states, without the offsets of separate Q tables.
    place["S"] = np.where(memory.S == NO_STATE, NO_STATE, memory.S - memory.first)
    arrays = agent.tables.to_arrays() | place
    if agent.tables.history is not None:
        arrays |= dict(zip(history.ARRAYS, agent.tables.history, strict=True))
    return header, arrays


def array_names(settings: Settings) -> tuple[str, ...]:
    """The names of the arrays of an agent with these settings."""
    return (*tables.array_names(settings), *_PLACE, *(history.ARRAYS if settings.lag > 0 else ()))


def identity(header: dict[str, Any]) -> tuple[Space, int, Settings, int]:
    """The arguments of a blank agent: its space, number of actions, settings and seed."""
    bins = [name for name in _OPTIONAL if isinstance(header, dict) and name in header]
    savefile.fields("the agent", header, (*_HEADER, *bins))
    for name in ("sizes", "names"):
        if not isinstance(header[name], list):
            raise TypeError(f"{name} is {shown(header[name])}; it must be a list")
    sizes = tuple(whole_number("a size", size, 1) for size in header["sizes"])
    given = header["settings"]
    settings = savefile.fields("settings", LATER | given if isinstance(given, dict) else given, Settings().as_dict())
    n_actions = whole_number("n_actions", header["n_actions"], 1)
    seed = whole_number("the seed", header["seed"], 0, MAX_SEED)
    return Space(sizes, tuple(header["names"])), n_actions, Settings(**settings), seed


def binning(header: dict[str, Any]) -> Binning | None:
    """The edges of an agent whose components are bins."""
    return Binning.from_dict(header["binning"]) if "binning" in header else None


def streams(seed: int, positions: Any, *names: StreamName) -> list[Stream]:
    """The streams of these names at the positions in a file."""
    savefile.fields("positions", positions, names)
    return [
        Stream(seed, name, whole_number(f"the position of {name}", positions[name], 0, MAX_POSITION)) for name in names
    ]


def restore(agent: Agent, header: dict[str, Any], arrays: Arrays) -> None:
    """Fill a blank agent from an untrusted file that `describe` wrote."""
    agent.imputation, agent.exploration = streams(header["seed"], header["positions"], "imputation", "exploration")
    agent.steps = whole_number("steps", header["steps"], 0, MAX_COUNT)
    one_of("the phase", header["phase"], _PHASES)
    agent._phase = header["phase"]
    acted = agent._phase == "acted"
    agent._action = whole_number("the last action", header["action"], 0 if acted else -1, agent.n_actions - 1)
    agent.tables.from_arrays(arrays, agent.steps, agent.steps)
    _fill_pathways(agent, arrays)
    if agent.tables.history is not None:
        _fill_history(agent, agent.tables.history, arrays)


def _fill_history(agent: Agent, kept: History, arrays: Arrays) -> None:
    guesses = agent.method.impute not in NO_GUESS
    n_states = agent.memory.Q.shape[0] // agent.settings.tables
    limits = history.Limits(NO_STATE, n_states, agent.space.sizes, agent.n_actions)
    history.fill_history(kept, arrays, limits)
    rows = [(int(kept.at[history.NOW]) - ago) % len(kept.S) for ago in range(int(kept.at[history.KEPT]) + 1)]
    if agent._phase != "new" and guesses and (kept.S[rows] == NO_STATE).any():
        raise ValueError("the states that it remembers have no pathways")
    if agent._phase != "new" and not (np.array_equal(kept.S[rows[0]], agent.memory.S - agent.memory.first)):
        raise ValueError("the last state that it remembers is not the one it is in")


def _fill_pathways(agent: Agent, arrays: Arrays) -> None:
    memory, d = agent.memory, agent.space.d
    begun = agent._phase != "new" or agent.steps > 0
    guesses = agent.method.impute not in NO_GUESS
    first = 0 if begun and agent.method.impute != Impute.NOTHING else NO_STATE
    states = savefile.take(arrays, "S", "int64", memory.S.shape, first, memory.Q.shape[0] // agent.settings.tables - 1)
    memory.S[:] = np.where(states == NO_STATE, NO_STATE, states + memory.first)
    last = np.array(agent.space.sizes) - 1
    memory.previous[:] = savefile.take(arrays, "previous", "int64", (d,), MISSING, last)
    memory.held[:] = savefile.take(arrays, "held", "int64", (d,), 0 if guesses and begun else MISSING, last)
    if guesses:
        memory.C[:] = [pack(int(s), agent.space.layout) if s != NO_STATE else NO_STATE for s in states]
