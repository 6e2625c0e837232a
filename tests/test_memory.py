"""Memory is asked for before it is taken: the amount is known from sizes, too much is refused, and none is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from lacuna.agent import savefile
from lacuna.agent.agent import FORM, Agent
from lacuna.agent.learned import table_bytes
from lacuna.agent.memory import memory_bytes
from lacuna.agent.methods import METHODS
from lacuna.agent.models.component_counts import ComponentCounts
from lacuna.agent.savefile import SaveFileError
from lacuna.agent.settings import DEFAULT, EVIDENCE, UNPLANNED, Settings
from lacuna.kernels.memory_limit import memory_limit
from lacuna.kernels.space import Space
from lacuna.missingness import mcar
from lacuna.run.run import Run
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.toys import corridor
from saved import experienced
from sentences import one_sentence

sizes = st.lists(st.integers(1, 5), min_size=1, max_size=6).map(tuple)


def arrays_of(*groups: Any) -> Iterator[Any]:
    for group in groups:
        yield from (part for part in group if isinstance(part, np.ndarray))


# --- the amount ------------------------------------------------------------------------------------------------------


@given(
    sizes=sizes,
    n_actions=st.integers(1, 6),
    method=st.sampled_from(list(METHODS)),
    K=st.integers(1, 20),
    optimism=st.sampled_from([0.0, 0.2]),
    parents=st.sampled_from([0.0, 0.3]),
    evidence=st.sampled_from(EVIDENCE),
)
@effort(max_examples=300)
def test_an_agent_takes_what_was_worked_out_from_sizes(
    sizes: tuple[int, ...], n_actions: int, method: str, K: int, optimism: float, parents: float, evidence: str
) -> None:
    rest: dict[str, Any] = {"K": K} if METHODS[method].multiple else {}
    rest |= {"parents": parents} if METHODS[method].counts_components else {}
    rest |= {"evidence": evidence} if METHODS[method].weighs else {}
    rest |= {"optimism": optimism} if METHODS[method].steps_in_q else {}
    agent = Agent(Space(sizes), n_actions, Settings(method, **rest))
    tables: list[Any] = [agent.memory, agent.model.table, agent.components.counts.table, agent.components.search]
    if agent.planner is not None:
        model = agent.planner.table.model
        tables += [agent.planner.table, agent.planner.table.leads, model, model.counts, model.search]
    if agent.tables.evidence is not None:
        tables += [agent.tables.evidence, agent.tables.evidence.patterns]
    taken = sum(array.nbytes for array in arrays_of(*tables))
    assert table_bytes(agent.space, n_actions, agent.settings) == taken
    assert memory_bytes(agent.space, n_actions, agent.settings) == sum(a.nbytes for a in arrays_of(agent.memory))


@given(sizes=sizes, parents=st.booleans())
@effort(max_examples=100)
def test_pairs_of_components_stand_one_after_the_other(sizes: tuple[int, ...], parents: bool) -> None:
    components = ComponentCounts(Space(sizes), 1, parents=parents)
    first, place = components.search.first, sum(sizes)
    for j, p in np.ndindex(first.shape):
        assert first[j, p] == place
        place += sizes[j] * (sizes[p] if p != j else 1)
    assert components.counts.space.n_states == place


# --- too much --------------------------------------------------------------------------------------------------------


@contextmanager
def at_most(n_bytes: int) -> Iterator[None]:
    """What happens inside takes no more memory than this at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= n_bytes
    finally:
        tracemalloc.stop()


def showing_much() -> TabularMDP:
    """A world of one state that shows one of very many."""
    return TabularMDP.build(
        lambda _s, _a: [(1.0, 0, 0.0, False)], space=Space((50,) * 5), shows=[0], n_actions=1, starts=[{0: 1.0}],
        terminates=False,
    )  # fmt: skip


PLENTY: dict[str, tuple[Callable[[], Any], str]] = {
    "one large component": (
        lambda: Agent(Space((10**9,)), 1, UNPLANNED), "for 1000000000 states of 1 components .* up to 36 GB",
    ),
    "many states": (lambda: Agent(Space((50,) * 5), 1, UNPLANNED), "take up to 8.75 GB, and the limit is 2 GB"),
    "a large component to plan in": (lambda: Agent(Space((10**9,)), 1), "for 1000000000 states .* up to 229 GB"),
    "many states to plan in": (
        lambda: Agent(Space((50,) * 5), 1), "of mi-planned for 312500000 states .* 65.3 GB, and the limit is 2 GB",
    ),
    "many components": (lambda: Agent(Space((1,) * 100_000), 1), "1 states of 100000 components .* up to 200 GB"),
    "missing as a state": (
        lambda: Agent(Space((1,) * 100_000), 1, Settings("missing-as-state")), "take up to more than 1000 TB",
    ),
    "many actions": (lambda: Agent(Space((2,)), 10**10), "for 2 states .* and 10000000000 actions"),
    "many numbers drawn in a step": (
        lambda: Agent(Space((3, 3, 3)), 2, Settings("mi-chained", K=10_000, cycles=100, lag=1000)),
        "the random numbers for a step of mi-chained do not fit into memory: they take up to 72.6 GB, and the limit is",
    ),
    "a run": (lambda: Run(showing_much(), mcar(Space((50,) * 5), 0.1), DEFAULT), "for 312500000 states"),
    "a yardstick": (
        lambda: Run(showing_much(), mcar(Space((50,) * 5), 0.1), Settings("fully-observed")),
        "the tables of fully-observed for 312500000 states .* up to 2.5 GB",
    ),
    "a record": (
        lambda: Run(corridor(), mcar(Space((5,)), 0.1), Settings("last-observed")).record(10**9),
        "records of 1000000000 steps .* up to 64 GB",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PLENTY)
def test_too_much_is_refused_before_it_is_taken(case: str) -> None:
    make, words = PLENTY[case]
    with at_most(60 * 10**6), pytest.raises(ValueError, match=words) as caught:
        make()
    message = one_sentence(caught.value)
    assert "do not fit into memory" in message
    assert message.endswith("raise it with max_memory or the variable LACUNA_MAX_MEMORY")


def test_a_small_file_cannot_ask_for_much(tmp_path: Path) -> None:
    header, arrays = Agent(Space((2,)), 1, Settings("last-observed")).to_parts()
    savefile.KnownFiles(FORM).write(tmp_path / "agent", header | {"sizes": [10**9]}, arrays, overwrite=False)
    assert (tmp_path / "agent").stat().st_size < 3000
    with at_most(10**6), pytest.raises(SaveFileError, match="do not fit into memory: they take up to 16 GB"):
        Agent.load(tmp_path / "agent")


# --- the limit -------------------------------------------------------------------------------------------------------


def test_the_limit_is_raised_by_variable_or_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space((50, 50, 50))
    monkeypatch.setenv("LACUNA_MAX_MEMORY", "1MB")
    with pytest.raises(ValueError, match="and the limit is 1 MB"):
        Agent(space, 1)
    for enough in ("100MB", "0.1 GiB", 10**8, 1e8):
        Agent(space, 1, max_memory=enough)
    monkeypatch.setenv("LACUNA_MAX_MEMORY", " 100 MB ")
    Agent(space, 1)
    with pytest.raises(ValueError, match="and the limit is 5 kB"):
        Agent(space, 1, max_memory=5000)


@pytest.mark.parametrize("odd", ["", "lots", "-1GB", "0", "1XB", "1e9", "nan", "9" * 5000, "٨GB"])
def test_a_limit_that_is_none_is_refused(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="max_memory is"):
        memory_limit(odd)
    monkeypatch.setenv("LACUNA_MAX_MEMORY", odd)
    with pytest.raises(ValueError, match="LACUNA_MAX_MEMORY is") as caught:
        Agent(Space((2,)), 1)
    assert "it must be a number of bytes, 1 or more, or a text such as 8GB" in one_sentence(caught.value)


@pytest.mark.parametrize("odd", [0, -1, True, 0.5, float("inf"), float("nan"), [1]])
def test_a_limit_in_bytes_is_a_whole_number(odd: Any) -> None:
    with pytest.raises(ValueError, match="max_memory is"):
        memory_limit(odd)


# --- what is touched -------------------------------------------------------------------------------------------------

LARGE = """
import resource, sys
from lacuna.agent.agent import Agent
from lacuna.agent.learned import table_bytes
from lacuna.kernels.space import Space
from lacuna.agent import settings as declared
settings = getattr(declared, sys.argv[1])
small = Agent(Space((5,)), 1, settings); small.begin([0]); small.act(); small.learn(1.0, [1], False)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
n = int(sys.argv[2])
agent = Agent(Space((n,)), 1, settings)
agent.begin([0])
for t in range(4):
    agent.act()
    agent.learn(1.0, [t * n // 4], False)
taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(table_bytes(agent.space, 1, agent.settings), taken * (1 if sys.platform == "darwin" else 1024))
"""


@pytest.mark.parametrize(
    ("settings", "states", "least", "most"),
    [("UNPLANNED", 20_000_000, 700 * 10**6, 60 * 10**6), ("DEFAULT", 5_000_000, 1000 * 10**6, 160 * 10**6)],
)
def test_memory_is_taken_for_what_was_visited_only(settings: str, states: int, least: int, most: int) -> None:
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    words = [sys.executable, "-c", LARGE, settings, str(states)]
    done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    reserved, taken = map(int, done.stdout.split())
    assert reserved > least
    # Four states in five tables, in pages of up to 2 MB; a planner has eighteen.
    assert taken < most


def test_what_was_finished_is_that_of_the_table_of_tries(tmp_path: Path) -> None:
    agent = experienced("mi-available", steps=30, optimism=0.2)
    agent.save(tmp_path / "agent")
    for one in (agent, Agent.load(tmp_path / "agent")):
        assert one.memory.finished.tolist() == (one.memory.tried == one.rules.K).sum(axis=1).tolist()
    assert agent.memory.finished.any()
    assert not agent.memory.finished.all()
