"""What of an agent goes into a file, and how a blank agent is filled from one, whatever the file says."""

from __future__ import annotations

from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import pack
from lacuna.kernels.counts import MAX_COUNT, Counts
from lacuna.kernels.space import MISSING, Space
from lacuna.kernels.streams import MAX_POSITION, MAX_SEED, Stream, StreamName
from lacuna.learning import savefile
from lacuna.learning.component_counts import LEAST_WEIGHT, MOST_WEIGHT, Kin, choose_parent
from lacuna.learning.learner import Memory, count_finished
from lacuna.learning.methods import Impute, Method, Rules, Settings, Teach
from lacuna.learning.qlearning import MAX_REWARD
from lacuna.learning.savefile import Arrays
from lacuna.learning.voting import NO_STATE

Phase = Literal["new", "ready", "acted"]
"""Where an agent stands: before `begin`, before `act`, before `learn`."""

_PHASES = get_args(Phase)
_HEADER = ("sizes", "names", "n_actions", "settings", "seed", "positions", "steps", "phase", "action")

ARRAYS = (
    "q_entries", "q_values", "S", "previous", "held", "top", "tried_entries", "tried", "part_weight", "part_due",
    "keys", "lengths", "codes", "units", "part_keys", "part_lengths", "part_codes", "part_units",
)  # fmt: skip
"""The names of the arrays that `describe` gives."""


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
    savefile.fields("the agent", header, _HEADER)
    for name in ("sizes", "names"):
        if not isinstance(header[name], list):
            raise TypeError(f"{name} is {savefile.shown(header[name])}; it must be a list")
    sizes = tuple(savefile.whole("a size", size, 1) for size in header["sizes"])
    settings = savefile.fields("settings", header["settings"], Settings().as_dict())
    n_actions = savefile.whole("n_actions", header["n_actions"], 1)
    seed = savefile.whole("the seed", header["seed"], 0, MAX_SEED)
    return Space(sizes, tuple(header["names"])), n_actions, Settings(**settings), seed


def streams(seed: int, positions: Any, *names: StreamName) -> list[Stream]:
    """The streams of these names where a file says that they stand."""
    savefile.fields("positions", positions, names)
    return [
        Stream(seed, name, savefile.whole(f"the position of {name}", positions[name], 0, MAX_POSITION))
        for name in names
    ]


def restore(agent: Learner, header: dict[str, Any], arrays: Arrays) -> None:
    """Fill the blank agent that `identity` gave with what `describe` wrote.

    Every number that a kernel takes for a place or a bound is checked, and every value that could make others not
    finite: whoever edits a file can seal it anew.
    """
    agent.imputation, agent.exploration = streams(header["seed"], header["positions"], "imputation", "exploration")
    agent.steps = savefile.whole("steps", header["steps"], 0, MAX_COUNT)
    if header["phase"] not in _PHASES:
        raise ValueError(f"the phase is {savefile.shown(header['phase'])}; it must be one of {', '.join(_PHASES)}")
    agent._phase = header["phase"]
    acted = agent._phase == "acted"
    agent._action = savefile.whole("the last action", header["action"], 0 if acted else -1, agent.n_actions - 1)
    _fill_values(agent, arrays)
    _fill_pathways(agent, arrays)
    rows, part_rows = _count_rows(arrays, ""), _count_rows(arrays, "part_")
    if (agent.method.teach == Teach.NOTHING and rows["keys"].size) or (
        agent.method.teach != Teach.AVAILABLE_PAIRS and part_rows["keys"].size
    ):
        raise ValueError(f"it holds counts that {agent.method.name} does not keep")
    agent.model.from_arrays(rows)
    agent.parts.from_arrays(part_rows)
    _check_parts(agent, part_rows)
    _fill_kin(agent.kin, arrays)


def _fill_values(agent: Learner, arrays: Arrays) -> None:
    memory, K = agent.memory, agent.rules.K
    # A value moves by at most one reward an update, and a step has K of them.
    most = MAX_REWARD * K * (agent.steps + 1)
    entries = _entries(arrays, "q_entries", memory.Q.size)
    memory.Q.reshape(-1)[entries] = savefile.take(arrays, "q_values", "float64", entries.shape, -most, most)
    entries = _entries(arrays, "tried_entries", memory.tried.size)
    tried = savefile.take(arrays, "tried", "int64", entries.shape, 1, K)
    memory.tried.reshape(-1)[entries] = tried
    count_finished(entries, tried, K, memory)
    memory.top[:] = savefile.take(arrays, "top", "float64", (1,), 0, MAX_REWARD)


def _entries(arrays: Arrays, name: str, size: int) -> NDArray[np.int64]:
    """Places in a table of this size, each at most once."""
    entries = savefile.take(arrays, name, "int64", (None,), 0, size - 1)
    if (entries[1:] <= entries[:-1]).any():
        raise ValueError(f"{name} is not in order, or names a place twice")
    return entries


def _fill_pathways(agent: Learner, arrays: Arrays) -> None:
    memory, d = agent.memory, agent.space.d
    begun = agent._phase != "new" or agent.steps > 0
    guesses = agent.method.impute not in (Impute.TOKEN, Impute.NOTHING)
    first = 0 if begun and agent.method.impute != Impute.NOTHING else NO_STATE
    memory.S[:] = savefile.take(arrays, "S", "int64", memory.S.shape, first, memory.Q.shape[0] - 1)
    last = np.array(agent.space.sizes) - 1
    memory.previous[:] = savefile.take(arrays, "previous", "int64", (d,), MISSING, last)
    memory.held[:] = savefile.take(arrays, "held", "int64", (d,), 0 if guesses and begun else MISSING, last)
    if guesses:
        memory.C[:] = [pack(int(s), agent.space.layout) if s != NO_STATE else NO_STATE for s in memory.S]


def _count_rows(arrays: Arrays, prefix: str) -> dict[str, NDArray[np.int64]]:
    names = ("keys", "lengths", "codes", "units")
    return {name: savefile.take(arrays, prefix + name, "int64", (None,)) for name in names}


def _check_parts(agent: Learner, rows: dict[str, NDArray[np.int64]]) -> None:
    """Refuse component counts of values that do not exist, or that disagree with each other."""
    layout, kin, A, d = agent.space.layout, agent.kin, agent.n_actions, agent.space.d
    row, action = np.divmod(np.repeat(rows["keys"], rows["lengths"]), A)
    codes, units = rows["codes"], rows["units"]
    # Rows of single components come first, then those of `Kin`: of each component with each, in order.
    judged = row >= sum(agent.space.sizes)
    j, p = np.divmod(np.searchsorted(kin.base.ravel(), row, side="right") - 1, d)
    j = np.where(judged, j, np.searchsorted(layout.offsets, row, side="right") - 1)
    if (codes >= layout.sizes[j]).any():
        raise ValueError("the component counts name a value outside its component")
    j, p, row, action, codes, units = (array[judged] for array in (j, p, row, action, codes, units))
    value = (row - kin.base[j, p]) // np.where(p == j, 1, layout.sizes[p])
    alone = (kin.base[j, j] + value) * A + action
    # What happened to j on its own happened as often or less often with each p.
    cells, cell = np.unique(np.stack([alone, codes]), axis=1, return_inverse=True)
    times = np.zeros((cells.shape[1], d), dtype=np.int64)
    np.add.at(times, (cell.reshape(-1), p), units)
    most = np.zeros(cells.shape[1], dtype=np.int64)
    most[cell.reshape(-1)[p == j]] = units[p == j]
    if (times > most[:, None]).any():
        raise ValueError("the component counts name a pair of values more often than one of them")


def _fill_kin(kin: Kin, arrays: Arrays) -> None:
    kin.weight[:] = savefile.take(arrays, "part_weight", "float64", kin.weight.shape, LEAST_WEIGHT, MOST_WEIGHT)
    kin.due[:] = savefile.take(arrays, "part_due", "int64", kin.due.shape, 0, MAX_COUNT)
    for j in range(kin.parent.shape[0]):
        choose_parent(j, kin)
