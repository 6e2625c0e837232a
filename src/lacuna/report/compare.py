"""`compare`: methods side by side in one world or environment, on common random numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl

from lacuna.agent.own_method import OwnMethod
from lacuna.agent.settings import Settings
from lacuna.missingness import Mechanism
from lacuna.parameters import parse_call
from lacuna.quantities import counted
from lacuna.references import hand_over, is_kept, kept, reference_to
from lacuna.report.comparison import Comparison
from lacuna.run.repetitions import threads
from lacuna.study.engines import Local
from lacuna.study.runner import run_study
from lacuna.study.selection import with_open_episode
from lacuna.study.spec import Study
from lacuna.study.store import Store, as_table
from lacuna.terminal import progress
from lacuna.validation import shown, whole_number
from lacuna.worlds.mdp.tabular import TabularMDP

CURVE_POINTS = 50
"""Number of evenly spaced points of the curves of a comparison."""

_MOST_SEEDS = 100_000

WorldLike = str | TabularMDP | Callable[..., Any]
"""A text that names a world or environment, a world, or a function or class that makes one."""

MechanismLike = str | Mechanism | Callable[..., Any]
"""A text that names a mechanism, a mechanism, or a function that makes one from a space or world."""

MethodLike = str | Settings | OwnMethod | Callable[..., Any]
"""A text that names a method, a method with its settings, or a function or class that makes agents."""


def compare(
    world: WorldLike, missingness: MechanismLike | Sequence[MechanismLike], methods: MethodLike | Sequence[MethodLike],
    steps: int, seeds: int | Sequence[int] = 10, *, store: Store | str | Path | None = None, workers: int | None = None,
) -> Comparison:  # fmt: skip
    """Run methods in one world or environment, and compare them seed by seed.

    Every method gets the same world and the same masks for the same seed, so differences are taken seed by seed.

    Parameters
    ----------
    world
        A world's name (``"lake,stay=true"``), a Gymnasium id (``"FrozenLake-v1"``), a reference
        (``"mine.worlds:maze"``), a `TabularMDP`, or a function or class that makes a world or an environment.
    missingness
        One mechanism or several: texts (``"mcar:0.2"``), `Mechanism` objects, or functions from a space or world.
    methods
        One method or several: names (``"mi-synthetic,K=5"``), `Settings`, references to methods of your own, or
        functions and classes ``make(space, n_actions, *, seed)`` that give an `AgentLike`. The others are compared with
        the first.
    steps
        Length of every run.
    seeds
        The number of seeds, from 0 on; or consecutive seeds, e.g. ``range(10, 20)``.
    store
        A folder in which to store the runs, as studies do. Stored runs are not repeated. Runs of objects that only this
        process knows, e.g. a lambda, cannot be stored.
    workers
        Number of parallel runs; one per core if not given.

    Examples
    --------
    >>> found = compare("corridor", "mcar:0.3", ["last-observed", "mi-planned"], steps=300, seeds=4)
    >>> found.names
    ('last-observed', 'mi-planned')
    >>> found.paired("mi-planned", "last-observed")["difference"][0] > 0
    True
    """
    first, n = _seeds(seeds)
    with ExitStack() as objects:
        length: Any = steps.item() if isinstance(steps, np.generic) else steps
        study = Study.from_data(
            {
                "name": "comparison",
                "steps": length,
                "trials": n,
                "first_trial": first,
                "worlds": [_world(world, objects)],
                "missingness": [_hiding(one, objects) for one in _listed(missingness)],
                "methods": [_method(one, objects) for one in _listed(methods)],
                "curve_points": min(CURVE_POINTS, length) if isinstance(length, int) and length > 0 else 0,
            },
            "comparison",
        )
        runs = _in_memory(study, threads(workers)) if store is None else _in_store(study, store, threads(workers))
    return Comparison(study, with_open_episode(runs))


def _seeds(seeds: Any) -> tuple[int, int]:
    """The first seed, and the number of consecutive seeds."""
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        return 0, whole_number("seeds", seeds, 1, _MOST_SEEDS)
    found = [whole_number("a seed", seed, 0, 2**31) for seed in seeds]
    if not found or found != list(range(found[0], found[0] + len(found))):
        raise ValueError(f"seeds is {shown(seeds)}; it must be a number, or seeds in a row, e.g. range(10, 20)")
    return found[0], len(found)


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | Mapping) else [given]


def _world(world: WorldLike, objects: ExitStack) -> dict[str, Any]:
    if isinstance(world, str):
        name, parameters = parse_call(world, "world")
        return {"name": name, **parameters}
    if isinstance(world, gymnasium.Env):
        raise TypeError(f"world is {shown(world)}; give a function that makes one, since every run needs its own")
    if isinstance(world, TabularMDP):
        return {"name": objects.enter_context(kept(world, world.name, _digest_of(world)))}
    return {"name": _reference("world", world, objects)}


def _hiding(hiding: MechanismLike, objects: ExitStack) -> str:
    if isinstance(hiding, str):
        return hiding
    if isinstance(hiding, Mechanism):
        late = (hiding.delay, hiding.arrives) if hiding.delay else ()
        return objects.enter_context(kept(hiding, hiding.name, _digest(hiding.space.sizes, *hiding.hiding, *late)))
    return _reference("missingness", hiding, objects)


def _method(method: MethodLike, objects: ExitStack) -> dict[str, Any]:
    given: Mapping[str, Any] = {}
    if isinstance(method, str):
        name, given = parse_call(method, "method")
    elif isinstance(method, Settings):
        name, given = method.method, method.unusual()
    elif isinstance(method, OwnMethod):
        name, given = method.use, dict(method.parameters)
    else:
        name = _reference("a method", method, objects)
    return {"name": name} | {key: [value] for key, value in given.items()}


def _reference(what: str, value: Any, objects: ExitStack) -> str:
    """The reference to a function or class; one that cannot be imported gets a reference for this comparison."""
    if not callable(value):
        raise TypeError(f"{what} is {shown(value)}; it must be a name, or a function or class that makes it")
    name = getattr(value, "__name__", type(value).__name__)
    reference = reference_to(value)
    if reference is None:
        return objects.enter_context(kept(value, name))
    hand_over(reference)
    return reference


def _digest_of(world: TabularMDP) -> str:
    # Mechanisms go by regions, and by the names of components and actions.
    regions = [item for name in sorted(world.regions) for item in (name, world.regions[name])]
    names = world.space.names, world.action_names, world.idle
    return _digest(world.space.sizes, *world.dynamics, *names, *regions)


def _digest(*items: Any) -> str:
    digest = hashlib.sha256()
    for item in items:
        digest.update(item.tobytes() if isinstance(item, np.ndarray) else repr(item).encode())
    return digest.hexdigest()


def _in_memory(study: Study, workers: int) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    with progress(study.spec.name, "runs") as show:
        show(total=len(study))
        for outcome in Local(workers).outcomes([run] for run in study.runs()):
            if outcome.failures:
                raise ValueError(f"a run failed: {outcome.failures[0]}")
            rows += outcome.rows
            show(completed=len(rows))
    return as_table(rows)


def _in_store(study: Study, store: Store | str | Path, workers: int) -> pl.DataFrame:
    names = {name for world, _, missingness in study.problems for name in (world, missingness)}
    names |= {method.use for method in study.settings if isinstance(method, OwnMethod)}
    for name in sorted(names):
        if is_kept(name):
            raise ValueError(
                f"{name} is known to this process only, so no store can keep its runs; put it into a module that can "
                f"be imported, or leave out store"
            )
    store = store if isinstance(store, Store) else Store(store)
    with progress(study.spec.name, "runs") as show:
        done = run_study(study, store, Local(workers), watch=lambda now: show(total=now.total, completed=now.done))
    if done.done < done.total:
        raise ValueError(f"{counted(done.total - done.done, 'run')} failed: {' '.join(done.failures[:1])}")
    return store.table().filter(pl.col("id").is_in([run.id for run in study.runs()]))
