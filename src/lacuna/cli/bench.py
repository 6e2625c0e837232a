"""Nanoseconds per step of the compiled loop; comparisons are interleaved, and the best of several counts."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import UNPLANNED, Settings
from lacuna.missingness import mcar
from lacuna.run.run import Run
from lacuna.version import __version__
from lacuna.worlds.lake import Lake
from lacuna.worlds.mdp.tabular import TabularMDP

STEPS = 50_000
CPP_SOURCE = Path(__file__).parents[3] / "benchmarks" / "loop.cpp"
"""The loop in C++, which a clone of the repository has and an installed package has not."""
CPP_METHODS = {"last-observed": 0, "mi-synthetic": 1, "mi-conservative": 2}

Progress = Callable[[str], None]


def measure(repeats: int = 7, progress: Progress = lambda _: None) -> dict[str, Any]:
    """Time every method on one core, next to the C++ loop; then all cores; then larger worlds.

    Parameters
    ----------
    repeats
        Runs of each kind; the best one counts.
    progress
        Is told what is measured next.

    Returns
    -------
    dict
        Nanoseconds per step and bytes of the counts, as plain data; `show` gives it as text.
    """
    lake = Lake().mdp()
    with tempfile.TemporaryDirectory() as folder:
        left_out = _without_cpp()
        cpp = None if left_out else CppLoop(Path(folder), lake)
        steps = [_one_core(lake, *what, repeats, cpp, progress) for what in _settings_to_time()]
    return {
        "lacuna": __version__,
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "steps_per_run": STEPS,
        "compiler": cpp.version if cpp else None,
        "left_out": left_out,
        "one_core": steps,
        "all_cores": _all_cores(lake, repeats, progress),
        "by_size": [_by_size(n, repeats, progress) for n in (8, 64, 577)],
    }


def _settings_to_time() -> list[tuple[str, Settings, float]]:
    named = [
        (method.name, Settings(method.name, K))
        for method in METHODS.values()
        for K in ((1, 5, 10) if method.multiple else (None,))
    ]
    return [
        (name, settings, theta)
        for name, settings in [*named, ("mi-available, best", UNPLANNED)]
        for theta in (0.0, 0.4, 0.8)
    ]


def _one_core(
    mdp: TabularMDP, name: str, settings: Settings, theta: float, repeats: int, cpp: CppLoop | None, progress: Progress
) -> dict[str, Any]:
    progress(f"{name}, K = {settings.pathways}, theta = {theta}")
    run = _timed_run(mdp, settings, theta)
    best, best_cpp = np.inf, np.inf
    with_cpp = cpp is not None and settings.method in CPP_METHODS
    for turn in range(2 * repeats):
        run = _timed_run(mdp, settings, theta, turn)
        best = min(best, run.seconds / STEPS * 1e9)
        # Twice for each time of the other program: right after it the same steps may take half as long again.
        if turn % 2 and cpp is not None and with_cpp:
            best_cpp = min(best_cpp, cpp.nanoseconds(settings, theta))
    row: dict[str, Any] = {"method": name, "K": settings.pathways, "theta": theta, "ns_per_step": best}
    row["count_bytes"] = run.agent.model.nbytes
    row["transitions"] = len(run.agent.model)
    row["cpp_ns_per_step"] = best_cpp if with_cpp else None
    row["ratio_to_cpp"] = best / best_cpp if with_cpp else None
    return row


def _timed_run(mdp: TabularMDP, settings: Settings, theta: float, turn: int = 0) -> Run:
    # Where the tables happen to lie in memory changes the time of a step, by up to a half: move them with every turn.
    spacers = [np.zeros(size) for size in (8 + 31 * turn, 8 + 57 * turn)]
    run = Run(mdp, mcar(mdp.space, theta), settings, seed=0)
    run.advance(STEPS)
    del spacers
    return run


def _all_cores(mdp: TabularMDP, repeats: int, progress: Progress) -> dict[str, Any]:
    """How much faster all cores are than one, the two measured in turns."""
    cores = os.cpu_count() or 1
    progress(f"one core and {cores} in turns")
    settings = Settings("mi-synthetic")

    def many(workers: int) -> float:
        jobs = 8 * workers
        before = time.perf_counter()
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda _: _timed_run(mdp, settings, 0.4), range(jobs)))
        return (time.perf_counter() - before) / (jobs * STEPS) * 1e9

    one, every = np.inf, np.inf
    for _ in range(repeats):
        one, every = min(one, many(1)), min(every, many(cores))
    return {"cores": cores, "ns_per_step_one": one, "ns_per_step_all": every, "speed_up": one / every}


def _by_size(n: int, repeats: int, progress: Progress) -> dict[str, Any]:
    """Cost of a step and memory of the counts in a lake of n x n cells."""
    progress(f"a lake of {n} x {n} cells")
    mdp = Lake(map=_big_map(n)).mdp()
    best = np.inf
    for turn in range(repeats):
        run = _timed_run(mdp, Settings("mi-synthetic"), 0.4, turn)
        best = min(best, run.seconds / STEPS * 1e9)
    counts = run.agent.model
    return {"states": mdp.space.n_states, "ns_per_step": best, "transitions": len(counts), "count_bytes": counts.nbytes}


def _big_map(n: int) -> str:
    """The paper's lake in a corner of an n x n field."""
    corner = [".." + line for line in ("....", "....", "wwww", "wWWw", "wWWw", "wWWw")]
    rows = ["." * n] * (n - 8) + [(line + "." * n)[:n] for line in corner]
    rows += [("......." + "G" + "." * n)[:n], ("S.wWWw" + "." * n)[:n]]
    return "\n".join(rows)


def _without_cpp() -> str | None:
    """Say why there is no C++ loop to compare with, if there is none."""
    if not CPP_SOURCE.is_file():
        return "left out, because its source is not installed; a clone of the repository has benchmarks/loop.cpp"
    return None if shutil.which("g++") else "left out, because no g++ was found"


class CppLoop:
    """The C++ loop, compiled on the spot with ``g++ -O3 -march=native``."""

    def __init__(self, folder: Path, mdp: TabularMDP) -> None:
        self.program, self.world = folder / "loop", folder / "world.bin"
        compiler, flags = str(shutil.which("g++")), ["-O3", "-march=native", "-std=c++17"]
        subprocess.run([compiler, *flags, str(CPP_SOURCE), "-o", str(self.program)], check=True)  # noqa: S603
        version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True)  # noqa: S603
        self.version = f"{version.stdout.splitlines()[0]} {' '.join(flags)}"
        self.world.write_bytes(_world_bytes(mdp))

    def nanoseconds(self, settings: Settings, theta: float) -> float:
        """Time of a step in one run of the same length."""
        method = str(CPP_METHODS[settings.method])
        words = [self.world, method, settings.pathways, theta, STEPS, 0, 1]
        done = subprocess.run([self.program, *map(str, words)], check=True, capture_output=True, text=True)  # noqa: S603
        return float(done.stdout.split()[0])


def _world_bytes(mdp: TabularMDP) -> bytes:
    world = mdp.dynamics
    starts = [next(iter(start)) for start in mdp.starts]
    head = [mdp.n_states, mdp.n_actions, mdp.next_state.shape[0], mdp.space.d, *starts]
    integers = [head, world.ptr, world.next_state, world.ends, mdp.space.sizes, world.shown, world.bad, world.restart]
    body = b"".join(np.ascontiguousarray(array, dtype=np.int64).tobytes() for array in integers)
    return body + world.cumulative.tobytes() + world.reward.tobytes()


def show(result: dict[str, Any]) -> str:
    """The measurements as text."""
    lines = [f"lacuna {result['lacuna']}, {result['machine']['cores']} cores; nanoseconds per step, one core"]
    lines += [f"{'method':21}{'K':>4}{'theta':>7}{'lacuna':>9}{'C++':>9}{'ratio':>8}{'counts':>10}"]
    for row in result["one_core"]:
        cpp = f"{row['cpp_ns_per_step']:9.0f}{row['ratio_to_cpp']:8.2f}" if row["ratio_to_cpp"] else f"{'':17}"
        size = f"{row['count_bytes'] / 1024:7.0f} kB" if row["transitions"] else ""
        lines += [f"{row['method']:21}{row['K']:4}{row['theta']:7}{row['ns_per_step']:9.0f}{cpp}{size}"]
    all_cores = result["all_cores"]
    lines += [
        f"mi-synthetic, K = 10, theta = 0.4 on {all_cores['cores']} cores: {all_cores['ns_per_step_all']:.0f} ns, "
        f"{all_cores['speed_up']:.2f} times as fast as one core in turns with it"
    ]
    lines += ["by size of the world (mi-synthetic, K = 10, theta = 0.4):"]
    for row in result["by_size"]:
        memory = f"{row['transitions']:,} transitions in {row['count_bytes'] / 1024:.0f} kB"
        lines += [f"{row['states']:12,} states {row['ns_per_step']:7.0f} ns   {memory}"]
    lines += [f"C++: {result['compiler'] or result['left_out']}"]
    return "\n".join(lines)
