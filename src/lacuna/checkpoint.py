"""What of an agent goes into a file, and how a blank agent is filled from one."""

from __future__ import annotations

from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from lacuna import savefile
from lacuna.counts import MAX_COUNT, Counts
from lacuna.imputation.available import Kin, choose_parent, weights_possible
from lacuna.learner import Memory, count_untried
from lacuna.methods import Impute, Method, Rules, Settings, Teach
from lacuna.qlearning import MAX_REWARD
from lacuna.savefile import Arrays
from lacuna.space import MISSING, Space, pack
from lacuna.streams import Stream
from lacuna.voting import NO_STATE

Phase = Literal["new", "ready", "acted"]
"""Where an agent stands: before `begin`, before `act`, before `learn`."""


class Learner(Protocol):
    """What an agent consists of."""

    space: Space
    n_actions: int
    settings: Settings
    method: Method
    rules: Rules
    memory: Memory
    model: Counts
    kin: Kin
    parts: Counts
    imputation: Stream
    exploration: Stream
    steps: int
    _phase: Phase
    _action: int


def describe(agent: Learner) -> tuple[dict[str, Any], Arrays]:
    """The complete state of an agent as plain data and arrays."""
    header = {
        "sizes": list(agent.space.sizes),
        "names": list(agent.space.names),
        "n_actions": agent.n_actions,
        "settings": agent.settings.as_dict(),
        "seed": agent.imputation.seed,
        "positions": {"imputation": agent.imputation.position, "exploration": agent.exploration.position},
        "steps": agent.steps,
        "phase": agent._phase,
        "action": agent._action,
    }
    # By bits, not by value: a negative zero is kept too.
    flat = agent.memory.Q.reshape(-1)
    entries = np.flatnonzero(flat.view(np.int64))
    arrays: Arrays = {"q_entries": entries, "q_values": flat[entries]}
    arrays |= {name: getattr(agent.memory, name) for name in ("S", "previous", "held", "top")}
    tried = agent.memory.tried.reshape(-1)
    arrays["tried_entries"] = np.flatnonzero(tried)
    arrays["tried"] = tried[arrays["tried_entries"]].astype(np.int64)
    arrays |= {"part_weight": agent.kin.weight, "part_due": agent.kin.due}
    parts = {f"part_{name}": array for name, array in agent.parts.to_arrays().items()}
    return header, arrays | agent.model.to_arrays() | parts


def identity(header: dict[str, Any]) -> tuple[Space, int, Settings, int]:
    """What a blank agent is made from: its space, its number of actions, its settings and its seed."""
    sizes = [savefile.whole("a size", size, 1) for size in header["sizes"]]
    space = Space(tuple(sizes), tuple(map(str, header["names"])))
    if set(header["settings"]) != set(Settings().as_dict()):
        raise ValueError(f"the settings are {sorted(header['settings'])}, not {sorted(Settings().as_dict())}")
    return space, header["n_actions"], Settings(**header["settings"]), header["seed"]


def restore(agent: Learner, header: dict[str, Any], arrays: Arrays) -> None:
    """Fill the blank agent that `identity` gave with what `describe` wrote."""
    for name in ("imputation", "exploration"):
        position = savefile.whole(f"the position of {name}", header["positions"][name], 0)
        setattr(agent, name, Stream(header["seed"], name, position))
    agent.steps = savefile.whole("steps", header["steps"], 0, MAX_COUNT)
    if header["phase"] not in get_args(Phase):
        raise ValueError(f"the phase is {header['phase']!r}; it must be one of {', '.join(get_args(Phase))}")
    agent._phase = header["phase"]
    acted = agent._phase == "acted"
    agent._action = savefile.whole("the last action", header["action"], 0 if acted else -1, agent.n_actions - 1)
    _fill_memory(agent, arrays)
    if agent.method.teach != Teach.NOTHING:
        agent.model.from_arrays(_count_rows(arrays, ""))
    if agent.method.teach == Teach.AVAILABLE_PAIRS:
        _fill_parts(agent, arrays)


def _fill_memory(agent: Learner, arrays: Arrays) -> None:
    """Fill the blank memory from a file, refusing what kernels could not work with."""
    memory, begun = agent.memory, agent._phase != "new"
    n_rows, d = memory.Q.shape[0], agent.space.d
    entries = savefile.take(arrays, "q_entries", "int64", (None,), 0, memory.Q.size - 1)
    values = savefile.take(arrays, "q_values", "float64", entries.shape)
    if not np.isfinite(values).all():
        raise ValueError("a value of Q is not finite")
    memory.Q.reshape(-1)[entries] = values
    _fill_tried(agent, arrays)
    guesses = agent.method.impute not in (Impute.TOKEN, Impute.NOTHING)
    stateless = not begun or agent.method.impute == Impute.NOTHING
    first = NO_STATE if stateless else 0
    memory.S[:] = savefile.take(arrays, "S", "int64", memory.S.shape, first, n_rows - 1)
    last = np.array(agent.space.sizes) - 1
    memory.previous[:] = savefile.take(arrays, "previous", "int64", (d,), MISSING, last)
    memory.held[:] = savefile.take(arrays, "held", "int64", (d,), 0 if guesses and begun else MISSING, last)
    if guesses:
        memory.C[:] = [pack(int(s), agent.space.layout) if s != NO_STATE else NO_STATE for s in memory.S]


def _fill_tried(agent: Learner, arrays: Arrays) -> None:
    memory = agent.memory
    entries = savefile.take(arrays, "tried_entries", "int64", (None,), 0, memory.tried.size - 1)
    memory.tried.reshape(-1)[entries] = savefile.take(arrays, "tried", "int64", entries.shape, 1, agent.rules.K)
    memory.untried[:] = count_untried(memory.tried, agent.rules.K)
    top = savefile.take(arrays, "top", "float64", (1,))
    if not 0 <= top[0] <= MAX_REWARD:
        raise ValueError(f"the highest reward is said to be {top[0]}")
    memory.top[:] = top


def _fill_parts(agent: Learner, arrays: Arrays) -> None:
    rows, layout, kin = _count_rows(arrays, "part_"), agent.space.layout, agent.kin
    agent.parts.from_arrays(rows)
    places = np.repeat(rows["keys"] // agent.n_actions, rows["lengths"])
    # Rows of single components first, then those of `Kin`, in the order of the component they foretell.
    pairs = np.searchsorted(kin.base[:, :1].ravel(), places, side="right") - 1
    singles = np.searchsorted(layout.offsets, places, side="right") - 1
    component = np.where(places < sum(agent.space.sizes), singles, pairs)
    if (rows["codes"] >= layout.sizes[component]).any():
        raise ValueError("the component counts name a value outside its component")
    weight = savefile.take(arrays, "part_weight", "float64", kin.weight.shape)
    if not weights_possible(weight):
        raise ValueError("a weight of a parent is none that could have come about")
    kin.weight[:] = weight
    kin.due[:] = savefile.take(arrays, "part_due", "int64", kin.due.shape, 0, MAX_COUNT)
    for j in range(kin.parent.shape[0]):
        choose_parent(j, kin)


def _count_rows(arrays: Arrays, prefix: str) -> dict[str, NDArray[np.int64]]:
    """The rows of counts in a file, refused if they could not have been counted."""
    rows = {
        name: savefile.take(arrays, prefix + name, "int64", (None,)) for name in ("keys", "lengths", "codes", "units")
    }
    if max(rows["lengths"].max(initial=0), rows["units"].sum(dtype=np.float64)) > MAX_COUNT:
        raise ValueError(f"the counts add up to more than {MAX_COUNT}")
    return rows
