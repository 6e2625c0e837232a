"""One thread at a time: another one is refused with a sentence, harms nothing, and may have its turn afterwards."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from lacuna.agent.agent import Agent
from lacuna.agent.settings import Settings
from lacuna.kernels.space import Space
from lacuna.missingness import mcar
from lacuna.run import loop
from lacuna.run import run as running
from lacuna.run.run import Run
from lacuna.worlds.toys import corridor
from sentences import one_sentence

SPACE = Space((3, 2))
WORLD = corridor(length=5, slip=0.1)
MECHANISM = mcar(WORLD.space, 0.3)


class Slow(Sequence[int]):
    """An observation that is not read to its end before it may be."""

    def __init__(self) -> None:
        self.reached, self.go_on = Event(), Event()

    def __len__(self) -> int:
        return 2

    def __getitem__(self, j: Any) -> Any:
        self.reached.set()
        assert self.go_on.wait(60)
        return (1, 1)[j]


@contextmanager
def inside(reached: Event, go_on: Event, call: Callable[[], Any]) -> Iterator[Future[Any]]:
    """While another thread is in the middle of a call."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call)
        try:
            assert reached.wait(60)
            yield future
        finally:
            go_on.set()
        future.result(60)


def agent(seed: int = 1) -> Agent:
    made = Agent(SPACE, 3, Settings("mi-available", epsilon=0.2), seed=seed)
    made.begin([0, 0])
    return made


def refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(RuntimeError, match=words) as caught:
        call()
    one_sentence(caught.value)


def body(one: Agent, folder: Path) -> bytes:
    one.save(folder / "agent", overwrite=True)
    return (folder / "agent").read_bytes()


VERBS: dict[str, Callable[[Agent], Any]] = {
    "begin": lambda one: one.begin([0, 0]),
    "act": lambda one: one.act(),
    "learn": lambda one: one.learn(1.0, [0, 0], terminated=False),
    "probabilities": lambda one: one.probabilities(),
    "save": lambda one: one.save("agent"),
    "counts": lambda one: one.counts,
    "component_counts": lambda one: one.component_counts,
}


@pytest.mark.parametrize("busy", ["begin", "learn"])
def test_a_second_thread_is_refused_and_changes_nothing(busy: str, tmp_path: Path) -> None:
    used, alone, seen = agent(), agent(), Slow()
    if busy == "learn":
        used.act(), alone.act()
    call = (lambda: used.learn(2.0, seen, terminated=False)) if busy == "learn" else lambda: used.begin(seen)
    with inside(seen.reached, seen.go_on, call):
        for name, verb in VERBS.items():
            refused(partial(verb, used), rf"^{name}\(\) was called while another thread uses this agent; one thread")
    assert not (tmp_path / "agent").exists()
    if busy == "learn":
        alone.learn(2.0, [1, 1], terminated=False)
    else:
        alone.begin([1, 1])
    assert body(used, tmp_path) == body(alone, tmp_path)


def test_threads_that_take_turns_are_one(tmp_path: Path) -> None:
    used, alone = agent(), agent()
    rng = np.random.default_rng(2)
    steps = [(float(rng.normal()), [int(rng.integers(3)), None]) for _ in range(50)]

    def step(one: Agent, t: int) -> None:
        one.act()
        one.learn(*steps[t], terminated=False)

    for t in range(50):
        step(alone, t)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(step, used, t).result()
    assert body(used, tmp_path) == body(alone, tmp_path)


def test_a_call_that_fails_leaves_the_agent_free() -> None:
    used = agent()
    with pytest.raises(ValueError, match="component x0 is 'a'"):
        used.begin(["a", 0])  # type: ignore[list-item]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(used.act).result() in range(3)


def test_a_copy_is_free_while_the_original_is_busy() -> None:
    used, seen = agent(), Slow()
    with inside(seen.reached, seen.go_on, lambda: used.begin(seen)):
        assert copy.deepcopy(used).act() in range(3)


@pytest.mark.parametrize("settings", [Settings("mi-synthetic", K=3, gamma=0.9), Settings("fully-observed", gamma=0.9)])
def test_a_run_is_one_threads_too(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def make() -> Run:
        return Run(WORLD, MECHANISM, settings, seed=3)

    used, alone = make(), make()
    alone.advance(700)
    reached, go_on = Event(), Event()
    steps = loop.run_steps

    def slow(*arguments: Any) -> Any:
        reached.set()
        assert go_on.wait(60)
        return steps(*arguments)

    monkeypatch.setattr(running, "run_steps", slow)
    with inside(reached, go_on, lambda: used.advance(700)):
        refused(lambda: used.advance(1), r"advance\(\) was called while another thread uses this")
        refused(lambda: used.record(1), r"record\(\) was called while another thread uses this run")
        refused(lambda: used.save(tmp_path / "run"), r"save\(\) was called while another thread uses this run")
        if isinstance(used.player, Agent):
            refused(used.agent.act, r"act\(\) was called while another thread uses this agent")
    assert used.figures() == alone.figures()
    assert not list(tmp_path.iterdir())


def test_what_reports_progress_may_look_and_save(tmp_path: Path) -> None:
    run = Run(WORLD, MECHANISM, Settings("mi-synthetic", K=3, gamma=0.9), seed=3)
    run.advance(50_000, progress=lambda _: run.save(tmp_path / "run"))
    run.save(tmp_path / "again")
    assert Run.load(tmp_path / "run", WORLD, MECHANISM).steps == run.steps == 50_000
