"""What a step of `mi-planned` costs, as worlds grow; and its backup, next to C++ and to NumPy.

``python benchmarks/planning_time.py`` takes a few minutes and prints Markdown. Times are those of the processor on one
core, the best of several runs. The backup is measured on what a run of Lake World has learned: our own works T̂ out from
the counts each time; the others are given T̂, as sparse rows (C++, and the same loop compiled by Numba) or as a dense
matrix (NumPy, the sweep of a plain value iteration). All must give the same Q.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna import Problem, Settings
from lacuna.agent.agent import Agent
from lacuna.agent.learned import table_bytes
from lacuna.agent.memory import OPTIMISTIC, VISITED, Learner, PlanTable
from lacuna.agent.models.looking import MOST_GAMMA
from lacuna.agent.models.planning import _LEAST_PRODUCT, backed_up, doubt_about
from lacuna.agent.models.successors import expand
from lacuna.cli.bench import _big_map
from lacuna.kernels.codes import pack, unpack
from lacuna.kernels.compiled import kernel
from lacuna.missingness import mcar
from lacuna.run.run import Run
from lacuna.worlds.lake import Lake
from lacuna.worlds.mdp.tabular import TabularMDP

STEPS, TURNS, THETA = 20_000, 5, 0.4
SIDES, COMPONENTS = (8, 18, 58, 183), range(2, 9)


class Rows(NamedTuple):
    """What is needed to back up rows: where each begins, its next states with T̂, what was taken, and its doubt."""

    ptr: NDArray[np.int64]
    next: NDArray[np.int64]
    T: NDArray[np.float64]
    taken: NDArray[np.float64]
    doubt: NDArray[np.float64]


@kernel
def sweep(learner: Learner, planner: PlanTable, Q: NDArray[np.float64]) -> None:
    """Back up every action of every visited state, without moving anything."""
    A = learner.memory.Q.shape[1]
    for i in range(planner.at[VISITED] * A):
        Q[i] = backed_up(planner.visited[i // A], i % A, learner, planner)


@kernel
def write_rows(learner: Learner, planner: PlanTable, rows: Rows) -> None:
    """Write T̂ of the same rows, in the order in which a backup goes through it."""
    A, counts, layout, model = learner.memory.Q.shape[1], learner.counts, learner.layout, planner.model
    e = 0
    for i in range(planner.at[VISITED] * A):
        s, a = planner.visited[i // A], i % A
        code, head = pack(s, layout), counts.head[s * A + a]
        n, kappa = counts.total[head], learner.rules.kappa
        product, each = kappa / (n + kappa), 1.0 / (n + kappa)
        if product < _LEAST_PRODUCT:
            each = 1.0 / n
        else:
            for x in range(expand(code, a, model, layout)):
                rows.next[e], rows.T[e] = model.successor[x], product * model.weight[x]
                e += 1
        for entry in range(counts.start[head], counts.start[head] + counts.length[head]):
            rows.next[e], rows.T[e] = unpack(counts.code[entry], layout), each * counts.n[entry]
            e += 1
        rows.ptr[i + 1] = e
        rows.doubt[i] = doubt_about(s, a, code, layout, planner)
        for c in range(3):
            rows.taken[i, c] = planner.taken[s, a, c]


@kernel
def back_up_rows(
    rows: Rows, ahead: NDArray[np.float64], optimistic: float, gamma: float, Q: NDArray[np.float64]
) -> None:
    """Back up rows whose T̂ is given."""
    for i in range(rows.doubt.shape[0]):
        V, on, k, r, t = 0.0, 0.0, 0.0, rows.taken[i, 0], rows.taken[i, 2]
        for e in range(np.uint64(rows.ptr[i]), np.uint64(rows.ptr[i + 1])):
            x, T = rows.next[e], rows.T[e]
            goes = T * (1.0 - ahead[x, 3])
            on += goes
            V += goes * ahead[x, 0]
            k += T * ahead[x, 1]
            r += T * ahead[x, 2]
            t += T * ahead[x, 3]
        weight = rows.taken[i, 1] + k
        Q[i] = optimistic
        if rows.doubt[i] < 1.0 and weight > 0.0:
            q = r / weight
            if on > 0:
                q += gamma * (1.0 - t / weight) * (V / on)
            Q[i] = (1.0 - rows.doubt[i]) * q + rows.doubt[i] * max(optimistic, q)


def dense_sweep(
    T: NDArray[np.float64], rows: Rows, ahead: NDArray[np.float64], optimistic: float, gamma: float
) -> NDArray[np.float64]:
    """The same by matrix products."""
    on = 1.0 - ahead[:, 3]
    k, r, t = (T @ ahead[:, c] + rows.taken[:, own] for c, own in ((1, 1), (2, 0), (3, 2)))
    with np.errstate(invalid="ignore", divide="ignore"):
        q = r / k + np.nan_to_num(gamma * (1.0 - t / k) * (T @ (on * ahead[:, 0])) / (T @ on))
    Q = (1.0 - rows.doubt) * q + rows.doubt * np.maximum(optimistic, q)
    return np.where((rows.doubt == 1.0) | (k == 0.0), optimistic, Q)


def best_seconds(what: Callable[[], object], turns: int) -> float:
    """Processor time of the best of several turns."""
    best = np.inf
    for _ in range(turns):
        before = time.process_time()
        what()
        best = min(best, time.process_time() - before)
    return float(best)


def trained(mdp: TabularMDP, gamma: float, seed: int = 0) -> tuple[Agent, float]:
    """An agent after a run, and the processor time of a step in µs."""
    run = Run(mdp, mcar(mdp.space, THETA), Settings("mi-planned", gamma=gamma), seed=seed)
    run.advance(1)
    seconds = best_seconds(lambda: run.advance(STEPS), 1)
    return run.agent, 1e6 * seconds / STEPS


def show_size(name: str, mdp: TabularMDP, gamma: float) -> None:
    found = [trained(mdp, gamma) for _ in range(TURNS)]
    agent, best = found[0][0], min(us for _, us in found)
    assert agent.planner is not None
    visited = int(agent.planner.table.at[VISITED])
    counts = agent.model.nbytes + agent.planner.model.counts.nbytes + agent.planner.leads.nbytes
    # A row of every table for each visited state; what is not visited takes no memory.
    tables = sum(array[:1].nbytes for array in agent.planner.table if isinstance(array, np.ndarray)) + 8 * mdp.n_actions
    most = table_bytes(mdp.space, mdp.n_actions, agent.settings)
    size = f"{(counts + visited * tables) / 2**20:.1f} | {most / 2**20:.1f}"
    print(f"| {name} | {mdp.space.n_states:,} | {visited:,} | {best:.1f} | {size} |", flush=True)


def rows_of(agent: Agent) -> Rows:
    """T̂ of all actions of visited states, as flat arrays."""
    assert agent.planner is not None
    planner = agent.planner.table
    n = int(planner.at[VISITED]) * agent.n_actions
    room = n * (64 + int(agent.model.table.used[2]))
    whole, parts = np.zeros(n + 1, dtype=np.int64), np.zeros((n, 3))
    rows = Rows(whole, np.zeros(room, dtype=np.int64), np.zeros(room), parts, np.zeros(n))
    write_rows(agent.learner, planner, rows)
    used = int(rows.ptr[-1])
    return rows._replace(next=rows.next[:used].copy(), T=rows.T[:used].copy())


def cpp_backup(
    rows: Rows, ahead: NDArray[np.float64], optimistic: float, gamma: float, turns: int
) -> tuple[NDArray[np.float64], float] | None:
    """Q by the C++ program, and its ns per backup; None without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = Path(__file__).with_name("backup.cpp")
        flags = ["-O3", "-march=native", "-std=c++17"]
        subprocess.run([compiler, *flags, str(source), "-o", str(folder / "backup")], check=True)
        head = np.array([rows.doubt.size, ahead.shape[0], rows.T.size], dtype=np.int64)
        levels = np.array([optimistic, gamma])
        arrays = (head, rows.ptr, rows.next, levels, rows.T, ahead, rows.taken, rows.doubt)
        (folder / "rows").write_bytes(b"".join(array.tobytes() for array in arrays))
        words = [str(folder / "backup"), str(folder / "rows"), str(folder / "Q"), str(turns)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return np.fromfile(folder / "Q"), float(done.stdout)


def show_backup(turns: int = 200) -> None:
    agent, _ = trained(Problem.named("lake", f"mcar:{THETA}").mdp, 1.0)
    assert agent.planner is not None
    planner, rows = agent.planner.table, rows_of(agent)
    optimistic, gamma = float(planner.levels[OPTIMISTIC]), min(agent.rules.gamma, MOST_GAMMA)
    # States that were never left have the value O.
    ahead = planner.ahead.copy()
    ahead[~planner.left, 0] = optimistic
    n, S = rows.doubt.size, ahead.shape[0]
    T = np.zeros((n, S))
    np.add.at(T, (np.repeat(np.arange(n), np.diff(rows.ptr)), rows.next), rows.T)
    ours, flat, dense = np.zeros(n), np.zeros(n), dense_sweep(T, rows, ahead, optimistic, gamma)
    learner = agent.learner
    print(f"\n{n:,} rows of Lake World after {STEPS:,} steps, {rows.T.size / n:.1f} next states each:\n")
    print("| backup | ns |\n|---|---|")
    ways: dict[str, Callable[[], object]] = {
        "`mi-planned`: T̂ worked out from the counts": lambda: sweep(learner, planner, ours),
        "T̂ given as sparse rows, Numba": lambda: back_up_rows(rows, ahead, optimistic, gamma, flat),
        "T̂ given as a dense matrix, NumPy": lambda: dense_sweep(T, rows, ahead, optimistic, gamma),
    }
    for name, what in ways.items():
        what()
        print(f"| {name} | {1e9 * best_seconds(what, turns) / n:.0f} |", flush=True)
    cpp = cpp_backup(rows, ahead, optimistic, gamma, turns)
    if cpp is not None:
        print(f"| T̂ given as sparse rows, C++ | {cpp[1]:.0f} |")
        assert np.allclose(cpp[0], ours, rtol=0, atol=1e-9)
    assert np.allclose(flat, ours, rtol=0, atol=1e-9)
    assert np.allclose(dense, ours, rtol=0, atol=1e-9)


def main() -> None:
    print("| world | states | visited | µs per step | MB in use | MB of tables at most |\n|---|---|---|---|---|---|")
    for side in SIDES:
        show_size(f"lake {side} × {side}", Lake(map=_big_map(side)).mdp(), 1.0)
    for components in COMPONENTS:
        world = f"random,components={components},size=4,factored=true"
        show_size(f"random, {components} components of 4", Problem.named(world, "mcar:0").mdp, 0.9)
    show_backup()


if __name__ == "__main__":
    main()
