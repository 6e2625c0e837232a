"""The problems and settings that equality tests cross with each other, and a digest of everything a run leaves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import UPDATES, VOTES, Settings
from lacuna.kernels.space import Space
from lacuna.kernels.streams import Stream
from lacuna.missingness import Mechanism, by_component, by_true_state, parse
from lacuna.run.loop import Trace
from lacuna.run.run import Run
from lacuna.worlds.lake import Lake
from lacuna.worlds.mdp.tabular import TabularMDP

READINGS = ("episodic", "continuing")


def lake(reading: str) -> TabularMDP:
    return Lake(stay=True, continuing=reading == "continuing", max_steps=60 if reading == "episodic" else 0).mdp()


def follower() -> TabularMDP:
    """A world in which one component repeats what another was: the other is its parent. The third is noise."""
    space = Space((2, 2, 3), ("signal", "echo", "noise"))

    def outcomes(s: int, a: int) -> list[tuple[float, int, float, bool]]:
        signal, _, _ = space.decode(s)
        ahead = product((0, 1), range(3))
        # The reward says nothing of the signal, or actions would foretell the echo as well.
        return [(1 / 6, space.encode((new, signal, noise)), float(a == noise), False) for new, noise in ahead]

    return TabularMDP.build(
        outcomes, space=space, shows=range(12), n_actions=2, starts=[{0: 1.0}], terminates=False, name="follower"
    )


def mechanisms(mdp: TabularMDP) -> dict[str, Mechanism]:
    """One of every kind."""
    flooded = np.where(np.arange(mdp.n_states) % 2 == 1, 0.6, 0.1)[:, None] * np.ones(3)
    texts = ("none", "mcar:0.4", "mcolor:0.2,0.4,0.6", "mcolor-xy:0.1,0.2,0.3", "mfog:0.5,0.1", "whole:0.3",
             "bursts:0.1,0.3", "bursts-each:0.2,0.4", "after:right=0.8,else=0.2",
             "by:colour=0.2,0=0.1,1=0.5/0.3,2=0.9,else=0.4", "patterns:000=0.5,011=0.3,111=0.2")  # fmt: skip
    named = {text: parse(text, mdp) for text in texts}
    seen = by_component(mdp.space, "colour", (0.1, 0.5, 0.9), when_hidden=0.3)
    return named | {"latent": by_true_state(mdp, flooded), "driver": seen}


class Numbers:
    """The numbers of a stream, one by one, and how many were taken."""

    def __init__(self, seed: int, name: str) -> None:
        self._stream = Stream(seed, name)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[float]:
        while True:
            yield self._stream.next()

    @property
    def used(self) -> int:
        return self._stream.position


def with_none(values: NDArray[np.int64]) -> tuple[int | None, ...]:
    """An observation as twins take it."""
    return tuple(None if value < 0 else int(value) for value in values)


CROSSED = ("mi-synthetic", "mi-conservative", "mi-available")


def settings() -> Iterator[Settings]:
    """Every method, and where pathways vote every vote and every update rule; no two that must be equal."""
    for method in METHODS.values():
        if method.plans:
            # Few rows a step: the cases are run without the compiler as well.
            yield Settings(method.name, 4, gamma=0.9, epsilon=0.1, budget=5)
            yield Settings(method.name, 1, kappa=0.2, budget=2)
            yield Settings(method.name, 3, budget=0)
            yield Settings(method.name, 5, gamma=0.9, budget=2, look=0.8)
            continue
        if not method.multiple:
            # With a first state that is seen, a value carried forward is never one that was assumed.
            alpha, assumed = (0.4, 0.9) if method.assumes else (0.3, None)
            yield Settings(method.name, alpha=alpha, gamma=0.9, epsilon=0.1, assumed=assumed)
            continue
        cycles = 2 if method.chains else None
        for i, vote in enumerate(VOTES):
            # Not all pairs for every method: votes and updates are the same kernels for all.
            for update in UPDATES if method.name in CROSSED else UPDATES[i % 3 : i % 3 + 1]:
                yield Settings(method.name, 4, 0.3, 0.9, 0.1, vote, update, 0.2, cycles=cycles)
        # A separate model of one pathway is the model of all.
        yield Settings(method.name, 2 if method.separate else 1, 0.5, 1.0, cycles=cycles)
    for method in METHODS.values():
        if method.plans:
            continue
        vote = VOTES[len(method.name) % len(VOTES)] if method.multiple else "sampled"
        K, parents = 4 if method.multiple else None, 0.5 if method.counts_components else 0.0
        alpha = 0.4 if method.assumes else 0.3
        yield Settings(method.name, K, alpha, 0.9, 0.1, vote, parents=parents, optimism=0.2)
    for i, method in enumerate(method for method in METHODS.values() if method.votes):
        optimism = 0.2 * (i % 2)
        yield Settings(method.name, 3, 0.3, 0.9, 0.1, VOTES[i % 4], p_shuffle=0.2, q_table="own", optimism=optimism)

    yield from EVIDENCE


EVIDENCE = [
    Settings("mi-available", 4, 0.3, 0.9, 0.1, "average", p_shuffle=0.2, parents=0.5, evidence="all"),
    Settings("mi-synthetic", 4, 0.3, 0.9, 0.1, evidence="outcomes"),
    Settings("mi-conservative", 4, 0.3, 0.9, 0.1, evidence="patterns"),
    Settings("mi-masked", 4, 0.3, 0.9, 0.1, evidence="observed"),
    Settings("mi-separate", 4, 0.3, 0.9, 0.1, q_table="own", evidence="all"),
    Settings("mi-chained", 4, 0.3, 0.9, 0.1, evidence="patterns"),
    Settings("mi-planned", 4, gamma=0.9, epsilon=0.1, budget=2, evidence="all"),
    Settings("mi-planned", 4, gamma=0.9, epsilon=0.1, budget=2, evidence="observed"),
]
"""Evidence that is not the usual one."""

READERS = (
    Settings("last-observed", None, 0.3, 0.9, 0.1),
    Settings("missing-as-state", None, 0.3, 0.9, 0.1),
    Settings("mi-chained", 4, 0.3, 0.9, 0.1, cycles=2),
    EVIDENCE[0],
    Settings("mi-planned", 5, gamma=0.9, budget=2, look=0.8),
)
"""What reads an observation, each in another way: carry forward, take as a value, draw, weigh patterns, look."""


LEARNERS = tuple(dict.fromkeys((*settings(), *READERS)))


def masks_for(case: Settings, reading: str) -> tuple[str, ...]:
    """The mechanisms that a learner is crossed with.

    A mask and a learner meet only in the observation. So every learner meets states of which a part is hidden, and
    states that are hidden whole; and each kind of reader meets every mask.
    """
    if case in READERS:
        return tuple(mechanisms(lake(reading)))
    return ("mcar:0.4", "whole:0.3") if reading == "episodic" else ("mcar:0.4",)


def digest(run: Run, trace: Trace) -> str:
    """Actions, pathways, Q, counts, tallies and stream positions, to the bit."""
    positions = [s.position for s in (run.world, run.missingness, run.agent.imputation, run.agent.exploration)]
    total = hashlib.sha256(repr(positions).encode())
    parts = [*trace, run.agent.memory.Q, *run.agent.model.to_arrays().values(),
             *run.agent.components.counts.to_arrays().values(), *run.tally]  # fmt: skip
    parts += [getattr(run.agent.memory, name) for name in ("S", "held", "previous", "tried", "highest_reward")]
    parts += [run.agent.components.search.weight, run.agent.components.search.parent, run.agent.components.search.due]
    if run.agent.planner is not None:
        parts += [*run.agent.planner.to_arrays().values(), run.agent.planner.model.search.parent]
    if run.agent.tables.arrivals is not None:
        parts += run.agent.tables.arrivals.to_arrays().values()
    for part in parts:
        total.update(np.ascontiguousarray(part).tobytes())
    return total.hexdigest()


def all_digests(driver: str, steps: int) -> dict[str, str]:
    """A digest for every problem and setting that are crossed, and where a parent is found."""
    found = {}
    worlds = {reading: lake(reading) for reading in READINGS}
    masks = {reading: mechanisms(mdp) for reading, mdp in worlds.items()}
    for reading, case in product(READINGS, LEARNERS):
        for name in masks_for(case, reading):
            mechanism, first_observed = masks[reading][name], name != "whole:0.3"
            run = Run(worlds[reading], mechanism, case, seed=13, driver=driver, first_observed=first_observed)
            found[f"{reading} {name} {case}"] = digest(run, run.record(steps))
    mdp = follower()
    for vote in VOTES:
        case = Settings("mi-available", 3, 0.3, 0.9, 0.2, vote, parents=0.5)
        run = Run(mdp, parse("mcar:0.3", mdp), case, seed=13, driver=driver)
        found[f"follower {vote}"] = digest(run, run.record(1000))
        assert run.agent.parent_of["echo"] == "signal"
    run = Run(mdp, parse("mcar:0.3", mdp), Settings("mi-planned", 3, gamma=0.9, budget=2), seed=13, driver=driver)
    found["follower planned"] = digest(run, run.record(1000))
    assert run.agent.parent_of["echo"] == "signal"
    return found
