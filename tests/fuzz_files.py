"""Edit saved files and logs of trials at random, seal them anew and load them: refused with a sentence, or sound.

    python tests/fuzz_files.py --edits 20000

Sound is a state whose probabilities are a distribution, and which takes 1,000 steps inside its arrays and can be saved
and loaded again. Every seventh edit is one of a log, which is chained anew and goes through status, export, replay,
audit and recovery (`log_edits`); every nineteenth damages a compiled kernel, which must be compiled anew. Kernels run
with bounds checking, in a child process. If the child dies, or an edit takes it a minute, that edit is to blame;
``--only`` repeats it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

import log_edits
from damaged_kernels import damage_and_use
from edits import edited
from lacuna.agent.agent import Agent
from lacuna.agent.memory import AGREEMENT, IMPATIENCE, QUEUED, VISITED
from lacuna.agent.methods import METHODS
from lacuna.agent.models.planner import Planner
from lacuna.agent.savefile import OtherKernelsWarning, SaveFileError
from lacuna.agent.settings import DEFAULT, UNPLANNED, Settings
from lacuna.kernels.space import Space
from lacuna.kernels.streams import Uniforms, draw
from lacuna.missingness import Mechanism, parse
from lacuna.run.run import Run
from lacuna.trial.log.chained_log import LogError
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.toys import corridor
from problems import follower, lake, mechanisms
from sentences import one_sentence

OUTCOMES = ("refused", "loaded and ran", "crash", "raw error", "illegal state")
STEPS = 1000
LOGS, KERNELS = 7, 19  # every so manyth edit is one of a log, or of a compiled kernel
PATIENCE = 60.0
MEMORY = 6 << 30

# Above this, a counter may pass its limit within the steps that are tried here.
ALMOST_FULL = 2**52


class IllegalStateError(Exception):
    """A file was accepted that leads to something impossible."""


# --- what is edited --------------------------------------------------------------------------------------------------


def every_settings() -> list[Settings]:
    several = [
        Settings("mi-synthetic", 4, 0.3, 0.9, 0.1, "majority", "simultaneous", 0.3),
        Settings("mi-conservative", 3, 0.3, 0.9, 0.0, "softmax", "exact-rate", 0.0, optimism=0.2),
        Settings("mi-available", 4, 0.3, 0.9, 0.1, "average", parents=0.5, optimism=0.1),
        Settings("mi-available", 2, 0.3, 0.9, 0.1, smoothing=0.0, kappa=2.0),
        Settings("missing-as-state", optimism=0.3),
        Settings("mi-chained", 2, 0.3, 0.9, 0.1, "average", cycles=1, q_table="own"),
        Settings("mi-separate", 3, 0.3, 0.9, 0.1, "majority", p_shuffle=0.3, q_table="own", optimism=0.2),
        Settings("carry-default", assumed=1.0, optimism=0.1),
        Settings("mi-planned", 4, gamma=0.9, epsilon=0.1, kappa=0.3, budget=7),
        Settings("mi-planned", 1, gamma=0.9, budget=0),
        Settings("mi-planned", 3, gamma=0.9, budget=3, evidence="all"),
        Settings("mi-planned", 3, gamma=0.9, budget=3, evidence="observed"),
        Settings("mi-masked", 3, 0.3, 0.9, 0.1),
        Settings("mi-synthetic", 3, 0.3, 0.9, 0.1, evidence="all"),
        Settings("mi-planned", 3, gamma=0.9, budget=3, look=0.5),
        DEFAULT,
        UNPLANNED,
    ]
    each = [Settings(m.name, alpha=0.3 if m.steps_in_q else 0.1, gamma=0.9, epsilon=0.1) for m in METHODS.values()]
    return [*each, *several]


class Event(NamedTuple):
    """What a step may bring; `before` is what is seen if an episode has to begin with it."""

    before: list[int | None]
    reward: float
    after: list[int | None]
    ends: bool


@lru_cache(64)
def story(sizes: tuple[int, ...], steps: int, seed: int) -> list[Event]:
    """Random events in a space."""
    rng = np.random.default_rng(seed)
    values = rng.integers(sizes, size=(2 * steps, len(sizes))).tolist()
    hidden = (rng.random((2 * steps, len(sizes))) < 0.4).tolist()
    seen = [[None if lost else v for v, lost in zip(*row, strict=True)] for row in zip(values, hidden, strict=True)]
    chance = zip(rng.normal(size=steps).tolist(), (rng.random(steps) < 0.05).tolist(), strict=True)
    return [Event(seen[2 * t], reward, seen[2 * t + 1], ends) for t, (reward, ends) in enumerate(chance)]


def live(agent: Agent, steps: int, seed: int) -> None:
    """Let an agent, whatever it waits for, see, act and learn at random."""
    for event in story(agent.space.sizes, steps, seed):
        if agent.action is None:
            if not agent.ready:
                agent.begin(event.before)
            agent.act()
        agent.learn(event.reward, event.after, terminated=event.ends)


def agents() -> Iterator[Agent]:
    """Every method in every phase; a small space, a large one, and one of a single component."""
    for i, settings in enumerate(every_settings()):
        for moment in ("new", "ready", "acted", "ended"):
            space = (Space((3, 2, 4)), Space((40, 30, 20)), Space((5,)), Space((3, 1, 4)))[i % 4 if i % 3 else 0]
            agent = Agent(space, 3, settings, seed=5)
            if moment != "new":
                live(agent, 120, seed=i)
                agent.begin([0] * space.d)
            if moment in ("acted", "ended"):
                agent.act()
            if moment == "ended":
                agent.learn(1.0, [None] * space.d, terminated=True)
            yield agent


Case = tuple[TabularMDP, Mechanism]


def runs() -> Iterator[tuple[Run, Case]]:
    """Every method, in worlds that end, go on, or are cut off, under mechanisms of every kind."""
    episodic, continuing, short = lake("episodic"), lake("continuing"), corridor(length=5, slip=0.2)
    cases: list[Case] = [
        (episodic, mechanisms(episodic)["bursts-each:0.2,0.4"]),
        (continuing, mechanisms(continuing)["latent"]),
        (episodic, mechanisms(episodic)["driver"]),
        (continuing, mechanisms(continuing)["bursts:0.1,0.3"]),
        (short, parse("whole:0.3", short)),
        (follower(), parse("mcar:0.3", follower())),
        (episodic, mechanisms(episodic)["after:right=0.8,else=0.2"]),
    ]
    for i, settings in enumerate(every_settings()):
        for j, steps in enumerate((0, 1, 300, 1500)):
            case = cases[(i + 2 * j) % len(cases)]
            run = Run(*case, settings, seed=3, first_observed=bool(i % 2))
            run.advance(steps, times=(10, 100, 250))
            yield run, case


# --- what must hold --------------------------------------------------------------------------------------------------


def try_log(example: log_edits.Example, rng: Random, folder: Path) -> None:
    try:
        refused = log_edits.try_log(example, log_edits.edited(example.bodies, rng), folder)
    except AssertionError as error:
        raise IllegalStateError(str(error)) from error
    if refused:
        raise LogError(refused)


def try_damaged_kernel(rng: Random, folder: Path) -> None:
    must(not (wrong := damage_and_use(rng, folder)), wrong)


def must(condition: object, words: str) -> None:
    if not condition:
        raise IllegalStateError(words)


def look_at_planner(planner: Planner) -> None:
    """See whether what a planner holds is possible."""
    table, at = planner.table, planner.table.at
    for name in ("tried", "taken", "arrived", "ahead", "outcomes", "told", "priority", "levels"):
        must(np.isfinite(getattr(table, name)).all(), f"{name} is not finite")
    must(np.isfinite(planner.model.search.weight).all(), "a ratio is not finite")
    must(not table.tally.any() and not table.model.sums.any(), "scratch was not cleared")
    queue, visited = table.queue[: at[QUEUED]], table.visited[: at[VISITED]]
    must(set(np.flatnonzero(table.left)) == set(visited.tolist()) >= set(queue.tolist()), "a state was not visited")
    must(np.array_equal(table.place[queue], np.arange(1, queue.size + 1)), "the queue does not know its places")
    must(0 <= table.levels[IMPATIENCE] <= 1 and 0 <= table.levels[AGREEMENT] <= 1, "a share is none")


def look_at(agent: Agent) -> None:
    """Ask an agent for all that it shows, and see whether it is possible."""
    must(np.isfinite(agent.Q).all(), "Q is not finite")
    must(
        np.isfinite(agent.memory.highest_reward).all() and np.isfinite(agent.components.search.weight).all(),
        "a weight is not finite",
    )
    if agent.planner is not None:
        look_at_planner(agent.planner)
    must(all(count > 0 for count in agent.counts.values()), "a count is not above 0")
    must(all(count > 0 for count in agent.component_counts.values()), "a component count is not above 0")
    must(
        len(agent.pathways) <= agent.settings.pathways and agent.parent_of is not None and repr(agent),
        "it shows nothing",
    )
    if agent.ready or agent.action is not None:
        p = agent.probabilities()
        must(p.shape == (agent.n_actions,) and (p >= 0).all() and abs(p.sum() - 1) < 1e-12, f"probabilities are {p}")


def try_agent(path: Path) -> None:
    agent = Agent.load(path)
    look_at(agent)
    for quarter in range(4):
        live(agent, STEPS // 4, seed=quarter)
        look_at(agent)
    if agent.steps < ALMOST_FULL and max(agent.imputation.position, agent.exploration.position) < 2**79:
        agent.save(path)
        Agent.load(path)


def try_run(path: Path, case: Case) -> None:
    run = Run.load(path, *case)
    look_at(run.agent)
    run.figures()
    run.advance(STEPS, times=[run.steps + 10, run.steps + STEPS] if run.steps < ALMOST_FULL else ())
    look_at(run.agent)
    must(np.isfinite(run.tally.sums).all() and np.isfinite(run.curve).all(), "a sum is not finite")
    run.figures()
    if run.steps < ALMOST_FULL and max(run.world.position, run.missingness.position) < 2**79:
        run.save(path)
        Run.load(path, *case)


def check_bounds() -> None:
    """Let every kernel that is called from Python leave its arrays: it must say so, or nothing is checked here."""
    agent = Agent(Space((3, 2)), 2, Settings(epsilon=0.1))
    case = corridor(length=5, slip=0.2)
    run = Run(case, parse("mcar:0.3", case), Settings("mi-synthetic"))
    run.advance(10)
    run.place[1] = 10**6

    def ask_nowhere(verb: Callable[[], object]) -> None:
        agent.begin([0, 0])
        agent.memory.S[:] = 10**6
        verb()

    def learn_nowhere() -> None:
        agent.begin([0, 0])
        agent.act()
        agent.memory.S[:] = 10**6
        agent.learn(0.0, [None, None], terminated=False)

    canaries: list[Callable[[], object]] = [
        lambda: draw(Uniforms(np.zeros(3), np.array([3]))),
        lambda: ask_nowhere(agent.act),
        lambda: ask_nowhere(agent.probabilities),
        learn_nowhere,
        lambda: run.advance(10),
    ]
    for i, canary in enumerate(canaries):
        try:
            canary()
        except IndexError:
            continue
        raise SystemExit(f"canary {i} read outside its array and nobody noticed: bounds are not checked")


# --- the child -------------------------------------------------------------------------------------------------------


def outcome(attempt: Callable[[], None]) -> tuple[str, str]:
    try:
        attempt()
    except LogError as error:
        return "refused", str(error)
    except SaveFileError as error:
        try:
            return "refused", one_sentence(error)
        except AssertionError:
            return "raw error", f"no sentence: {error}"
    except IllegalStateError as error:
        return "illegal state", str(error)
    except Exception as error:  # noqa: BLE001  any other error is what is looked for
        return "raw error", repr(error)
    return "loaded and ran", ""


def try_edits(seed: int, first: int, end: int) -> None:
    """Try the edits of these numbers, and tell of each before and after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", OtherKernelsWarning)
    check_bounds()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        saved = list(examples(path))
        for body, attempt in saved:
            path.write_bytes(body)
            attempt()
        logs = log_edits.examples(Path(folder))
        for example in logs:
            log_edits.try_log(example, log_edits.chained(example.bodies), Path(folder))
        for i in range(first, end):
            print(json.dumps([i]), flush=True)
            # In time of the processor, so that a busy machine is no reason to die.
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            rng = Random(f"{seed} {i}")
            if i % LOGS == 0:
                attempt = partial(try_log, rng.choice(logs), rng, Path(folder))
            elif i % KERNELS == 0:
                attempt = partial(try_damaged_kernel, rng, Path(folder))
            else:
                body, attempt = rng.choice(saved[i % 2 :: 2])
                path.write_bytes(edited(body, rng))
            print(json.dumps([i, *outcome(attempt)]), flush=True)


def examples(path: Path) -> Iterator[tuple[bytes, Callable[[], None]]]:
    """Whole files, of an agent and of a run in turn, and how to try what is at `path` instead."""
    for agent, (run, case) in zip(agents(), runs(), strict=True):
        agent.save(path, overwrite=True)
        yield path.read_bytes(), partial(try_agent, path)
        run.save(path, overwrite=True)
        yield path.read_bytes(), partial(try_run, path, case)


# --- the parent ------------------------------------------------------------------------------------------------------


def fuzz(edits: int, seed: int, first: int = 0) -> tuple[Counter[str], list[str]]:
    """How the edits ended, and a line for each that ended badly."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    found: Counter[str] = Counter()
    bad = []
    end = first + edits
    while first < end:
        command = [sys.executable, __file__, "--child", str(first), str(end), "--seed", str(seed)]
        at = first - 1
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
            assert child.stdout is not None
            for at, *result in map(json.loads, child.stdout):
                if result:
                    found[result[0]] += 1
                    first = at + 1
                    if first % 1000 == 0:
                        print(f"{first} of {end} edited files", file=sys.stderr)
                    if result[0] not in OUTCOMES[:2]:
                        bad.append(f"edit {at}: {': '.join(result)}")
        if first < end:
            if at < first:
                raise SystemExit(f"the child ended with {child.returncode} before the first edit")
            found["crash"] += 1
            bad.append(f"edit {at}: crash, the child ended with {child.returncode}")
            first = at + 1
    return found, bad


def main() -> None:
    parser = argparse.ArgumentParser(description="Edit saved files at random, and load them.")
    parser.add_argument("--edits", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="repeat the edit of this number")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        try_edits(options.seed, *options.child)
        return
    if options.only is not None:
        found, bad = fuzz(1, options.seed, options.only)
    else:
        found, bad = fuzz(options.edits, options.seed)
    print("\n".join(bad))
    print(f"{sum(found.values())} edited files: " + ", ".join(f"{found[name]} {name}" for name in OUTCOMES))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
