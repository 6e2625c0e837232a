"""Gymnasium's toy-text tables (FrozenLake, CliffWalking, Taxi) as a `TabularMDP` with meaningful components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv

from lacuna.kernels.space import Space
from lacuna.validation import whole_number
from lacuna.worlds.mdp.drawing import Cell, Drawing, Ground, Scene
from lacuna.worlds.mdp.tabular import Outcome, TabularMDP
from lacuna.worlds.registry import world

Table = dict[int, dict[int, list[Outcome]]]

_ICE = {
    "F": Ground("ice", "#e4eef5", "#2a323b"), "S": Ground("start", "#cfd9e0", "#3a424b"),
    "H": Ground("hole", "#5b6570", "#0e1013", "○"), "G": Ground("goal", "#2f6b4f", "#3d8a66"),
}  # fmt: skip
_CLIFF = {
    ".": Ground("ground"), "C": Ground("cliff", "#6b6257", "#0f1114", "×"), "S": Ground("start", "#ddd5c2", "#3a3f48"),
    "G": Ground("goal", "#2f6b4f", "#3d8a66"),
}  # fmt: skip
_MAX_CELLS = 100_000
_STREET, _STAND = Ground("street"), Ground("stand", "#ddd5c2", "#3a3f48")
_STANDS = ("R", "G", "Y", "B")


def from_toy_text(env: gymnasium.Env[Any, Any] | str, **kwargs: Any) -> TabularMDP:
    """Turn an environment that carries its table as ``P`` into a `TabularMDP`.

    FrozenLake, CliffWalking and Taxi get their components; any other environment with ``P`` and
    ``initial_state_distrib`` shows one component, `state`. Steps are cut off where Gymnasium does (``max_steps``).

    Parameters
    ----------
    env
        An environment, or the id of one.
    kwargs
        Arguments of `gymnasium.make`, with an id only.

    Examples
    --------
    >>> world = from_toy_text("FrozenLake-v1", is_slippery=False)
    >>> world.space.names, world.max_steps
    (('row', 'column'), 100)
    """
    if isinstance(env, str):
        env = gymnasium.make(env, **kwargs)
    elif kwargs:
        raise ValueError(f"{', '.join(kwargs)} can be given with an id only; this environment is made already")
    toy: Any = env.unwrapped
    if not (hasattr(toy, "P") and hasattr(toy, "initial_state_distrib")):
        raise ValueError(f"{type(toy).__name__} has no table P with initial_state_distrib; use TabularMDP.build")
    max_steps = (env.spec.max_episode_steps or 0) if env.spec is not None else 0
    if isinstance(toy, FrozenLakeEnv):
        return _frozen_lake(toy, max_steps)
    if isinstance(toy, CliffWalkingEnv):
        return _cliff_walking(toy, max_steps)
    if isinstance(toy, TaxiEnv):
        return _taxi(toy, max_steps)
    return _build(toy, max_steps, space=Space((len(toy.P),), ("state",)), name=type(toy).__name__)


@world("frozen-lake", "lacuna/FrozenLake-v0", "Gymnasium's FrozenLake as (row, column); holes are bad")
def frozen_lake_mdp(
    map_name: str = "4x4",
    desc: Sequence[str] | None = None,
    is_slippery: bool = True,
    success_rate: float | None = None,
    reward_schedule: tuple[float, float, float] | None = None,
) -> TabularMDP:
    """Gymnasium's FrozenLake as ``(row, column)``; falling into a hole is a bad step.

    Parameters
    ----------
    map_name
        ``4x4`` or ``8x8``.
    desc
        A map of your own, a text per row: ``S`` start, ``F`` frozen, ``H`` hole, ``G`` goal.
    is_slippery
        Whether a step may go sideways.
    success_rate, reward_schedule
        As in Gymnasium, which has them from version 1.2 on.

    Examples
    --------
    >>> frozen_lake_mdp("8x8").space.sizes
    (8, 8)
    """
    if map_name not in ("4x4", "8x8"):
        raise ValueError(f"map_name is {map_name!r}; there are 4x4 and 8x8, or give a map as desc")
    if desc is not None:
        _check_desc(desc)
    env_id = "FrozenLake8x8-v1" if map_name == "8x8" else "FrozenLake-v1"
    given = {"desc": desc, "success_rate": success_rate, "reward_schedule": reward_schedule}
    given = {what: value for what, value in given.items() if value is not None}
    return from_toy_text(env_id, is_slippery=is_slippery, **given)


@world("cliff-walking", "lacuna/CliffWalking-v0", "Gymnasium's CliffWalking as (row, column); falling off is bad")
def cliff_walking_mdp(is_slippery: bool = False) -> TabularMDP:
    """Gymnasium's CliffWalking as ``(row, column)``; falling off the cliff is a bad step.

    The original puts a fallen walker straight back to the start, so no state says that it fell. Here the start has
    a twin that shows the same and behaves the same, entered by falling only: true state 48, the one flagged as bad.

    Parameters
    ----------
    is_slippery
        Whether a step may go sideways.

    Examples
    --------
    >>> world = cliff_walking_mdp()
    >>> world.outcomes(36, world.action_names.index("right"))
    [(1.0, 48, -100.0, False)]
    """
    return from_toy_text("CliffWalking-v1", is_slippery=is_slippery)


@world("taxi", "lacuna/Taxi-v0", "Gymnasium's Taxi as (taxi row, taxi column, passenger, destination)")
def taxi_mdp(
    is_rainy: bool = False, rainy_probability: float | None = None, fickle_passenger: bool = False
) -> TabularMDP:
    """Gymnasium's Taxi as ``(taxi row, taxi column, passenger, destination)``; no step counts as bad.

    Parameters
    ----------
    is_rainy
        Whether a step may go sideways; needs Gymnasium 1.2 or later.
    rainy_probability
        Probability that a step goes where it should when it rains; needs Gymnasium 1.3 or later.
    fickle_passenger
        Must be false: a passenger who changes destination is not in Gymnasium's table.

    Examples
    --------
    >>> taxi_mdp().space.sizes
    (5, 5, 5, 4)
    """
    if fickle_passenger:
        raise ValueError(_FICKLE)
    given: dict[str, Any] = {"is_rainy": True} if is_rainy else {}
    if rainy_probability is not None:
        given["rainy_probability"] = rainy_probability
    return from_toy_text("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3", **given)


_FICKLE = "fickle_passenger is True; a passenger who changes destination is not in the table P, so it must be False"


def _frozen_lake(toy: FrozenLakeEnv, max_steps: int) -> TabularMDP:
    return _build(
        toy, max_steps, space=Space((toy.nrow, toy.ncol), ("row", "column")), name="frozen-lake",
        bad=(np.asarray(toy.desc) == b"H").ravel(), action_names=("left", "down", "right", "up"),
        drawing=_grid(["".join(sign.decode() for sign in line) for line in np.asarray(toy.desc)], _ICE),
    )  # fmt: skip


def _cliff_walking(toy: CliffWalkingEnv, max_steps: int) -> TabularMDP:
    start = int(toy.start_state_index)
    twin = len(toy.P)
    table: Table = {
        s: {a: [(p, twin if r == -100 else t, r, end) for p, t, r, end in toy.P[s][a]] for a in toy.P[s]} for s in toy.P
    }
    table[twin] = table[start]
    bad = np.zeros(twin + 1, dtype=np.bool_)
    bad[twin] = True
    return _build(
        toy, max_steps, table=table, shows=[*range(twin), start], space=Space(toy.shape, ("row", "column")),
        name="cliff-walking", bad=bad, action_names=("up", "right", "down", "left"),
        drawing=_grid([*["." * toy.shape[1]] * (toy.shape[0] - 1), f"S{'C' * (toy.shape[1] - 2)}G"], _CLIFF),
    )  # fmt: skip


def _taxi(toy: TaxiEnv, max_steps: int) -> TabularMDP:
    if getattr(toy, "fickle_passenger", False):
        raise ValueError(_FICKLE)
    return _build(
        toy, max_steps, space=Space((5, 5, 5, 4), ("taxi row", "taxi column", "passenger", "destination")),
        name="taxi", action_names=("south", "north", "east", "west", "pick up", "drop off"),
        drawing=_streets(toy),
    )  # fmt: skip


def _grid(rows: Sequence[str], grounds: dict[str, Ground]) -> Drawing:
    """A map of one scene, on which start and goal are marked."""
    marks = {(i, j): sign for i, line in enumerate(rows) for j, sign in enumerate(line) if sign in "SG"}
    return Drawing("row", "column", grounds, [Scene(rows, marks=marks)])


def _streets(toy: TaxiEnv) -> Drawing:
    """The map of Taxi: a scene for every passenger and destination, walls as in Gymnasium's text."""
    stands: list[Cell] = [(int(row), int(column)) for row, column in toy.locs]
    lines = [[sign.decode() for sign in line] for line in toy.desc[1:-1]]
    n_rows, n_columns = 5, 5
    rows = ["".join("s" if (i, j) in stands else "." for j in range(n_columns)) for i in range(n_rows)]
    walls = [((i, j), (i, j + 1)) for i in range(n_rows) for j in range(n_columns - 1) if lines[i][2 * j + 2] == "|"]
    scenes = []
    for passenger in range(5):
        for destination in range(4):
            marks = dict(zip(stands, _STANDS, strict=True))
            marks[stands[destination]] += "⚑"
            if passenger < 4:
                marks[stands[passenger]] += "☺"
            where = f"passenger {'in the taxi' if passenger == 4 else f'at {_STANDS[passenger]}'}"
            scenes.append(Scene(rows, f"{where}, to {_STANDS[destination]}", marks))
    return Drawing(
        "taxi row", "taxi column", {".": _STREET, "s": _STAND}, scenes, np.arange(500) % 20, walls,
        {"passenger": (*_STANDS, "in taxi"), "destination": _STANDS},
    )  # fmt: skip


def _build(
    toy: Any,
    max_steps: int,
    *,
    space: Space,
    table: Table | None = None,
    shows: Sequence[int] | None = None,
    **rest: Any,
) -> TabularMDP:
    starts = {s: float(p) for s, p in enumerate(toy.initial_state_distrib) if p > 0}
    return TabularMDP.build(
        toy.P if table is None else table,
        space=space,
        shows=range(space.n_states) if shows is None else shows,
        n_actions=int(toy.action_space.n),
        starts=[starts],
        max_steps=max_steps,
        **rest,
    )


def _check_desc(desc: Sequence[str]) -> None:
    """Refuse, naming row and column, what Gymnasium would take for a map and stumble over, or fill the memory with."""
    whole_number("the number of cells of desc", sum(map(len, desc)), 0, _MAX_CELLS)
    for row, line in enumerate(desc):
        for column, sign in enumerate(line):
            if sign not in "SFHG":
                raise ValueError(f"desc, row {row}, column {column}: {sign!r} is unknown; there are S, F, H and G")
        if len(line) != len(desc[0]):
            raise ValueError(f"desc, row {row}: the row has {len(line)} cells, the first has {len(desc[0])}")
    if desc and len(desc[0]) < 2:
        raise ValueError(f"desc has rows of {len(desc[0])} cells; they must have at least 2")
    if not any("S" in line for line in desc):
        raise ValueError(f"desc has no start 'S' in {len(desc)} rows; it needs at least one")
