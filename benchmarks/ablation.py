"""What each part of `mi-planned` is worth: the reward with the part edited out, against the whole method's.

``python benchmarks/ablation.py`` prints a table for each length of trial: in the first row the reward of the whole
method, below it by how much the reward changes without a part, on the same seeds, with standard errors; bold beyond two
of them. Each part runs in a copy of the source from which it was edited out. That compiles for half a minute, and 20
trials run for a minute and a half. What is done is kept in ``--folder``.

``--endless`` adds worlds whose episodes never end, ``--only`` takes some of the parts, ``--first-seed`` other trials.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lacuna
from lacuna.agent.settings import Settings
from lacuna.run.measures import SUMS, episode_means
from lacuna.run.problems import Problem
from lacuna.run.repetitions import run_trial, threads

TIMES = (2_000, 10_000, 50_000)
FIRST_SEED = 5000
WHOLE = "the whole method"
STEPS, REWARD = SUMS.index("steps"), SUMS.index("reward")

CELLS = (
    *(("lake", f"mcar:{theta}", 1.0) for theta in (0.0, 0.2, 0.6, 0.8, 0.95)),
    ("taxi", "mcar:0.2", 1.0),
    ("taxi", "mcar:0.6", 1.0),
    ("frozen-lake", "mcar:0.2", 1.0),
    ("cliff-walking", "mcar:0.6", 1.0),
    ("random", "mcar:0.3", 0.9),
    ("random,components=4,factored=true", "mcar:0.3", 0.9),
)

ENDLESS = (
    ("random,seed=1", "mcar:0.2", 0.9),
    ("random,components=8,size=4,actions=4,factored=true,seed=1", "mcar:0.2", 0.9),
    ("lake,continuing=true", "mcar:0.2", 0.9),
    ("lake,continuing=true", "mcar:0.6", 0.9),
)

Cells = tuple[tuple[str, str, float], ...]
Edit = tuple[str, str, str]
"""A module of ``lacuna.agent.models``, a text in it, and what to put there instead."""

PARTS: dict[str, tuple[Edit, ...]] = {
    WHOLE: (),
    "joint counts where pathways agree": (
        ("planning", "    if agreed:\n", "    if experience.from_complete and experience.observed.complete:\n"),
    ),
    "counts after guesses": (
        ("factored_model", " count_guesses(j, action, value, memory, model, layout)\n", " pass\n"),
    ),
    "resampling": (("filtering", "    if total == 0.0:\n", "    if total >= 0.0:\n"),),
    "outcomes as evidence": (("filtering", "    c = outcome_of(experience, planner)\n", "    c = -1\n"),),
    "known components": (("planning", "known = fewest / planner.model.unit", "known = 0.0"),),
    "lasting doubt": (("planning", "_LASTING_DOUBT = 0.1", "_LASTING_DOUBT = 0.0"),),
    "impatience": (("planning", "_PATIENCE, _IMPATIENCE = 3, 0.1", "_PATIENCE, _IMPATIENCE = 3, 0.0"),),
    "less optimism where pathways disagree": (("planning", "(0.1 + 0.9 * c * c)", "1.0"),),
    "highest value in O": (("planning", "max(levels[HIGHEST], levels[PEAK])", "levels[HIGHEST]"),),
    "parents": (("factored_model", "exp(10.0), exp(-50.0)", 'float("inf"), exp(-50.0)'),),
    # Infinitely smoothed towards the level below.
    "the level C_j(u, v)": (
        ("factored_model", "RHO, RHO_2, FLOOR, M = 0.1, 1.0,", "RHO, RHO_2, FLOOR, M = 0.1, 1e12,"),
    ),
    "endings by arrival": (("planning", "on = T * (1.0 - ahead[x, 3])", "on = T"),),
    "priorities": (("planning", "            queue_up(s, moved,", "            queue_up(s, -float(at[CREDITED]),"),),
    "γ' at most .99 (.9999 instead)": (("looking", "MOST_GAMMA = 0.99", "MOST_GAMMA = 0.9999"),),
}
"""What to edit to take each part out."""


def copy_without(part: str, folder: Path) -> None:
    """Copy the source of lacuna into a folder, without a part."""
    shutil.copytree(Path(lacuna.__file__).parent, folder / "lacuna", dirs_exist_ok=True)
    for module, old, new in PARTS[part]:
        path = folder / "lacuna" / "agent" / "models" / f"{module}.py"
        source = path.read_text()
        if old not in source:
            raise SystemExit(f"{module}.py has no {old!r}; say anew how to take out: {part}")
        path.write_text(source.replace(old, new))


def measure(trials: int, first_seed: int, cells: Cells) -> list[list[list[list[float]]]]:
    """The running sums of each cell and trial at each time."""
    found = []
    for world, missingness, gamma in cells:
        problem, settings = Problem.named(world, missingness), Settings("mi-planned", gamma=gamma)
        run_trial(problem, settings, steps=1)

        def sums(seed: int, problem: Problem = problem, settings: Settings = settings) -> list[list[float]]:
            figures = run_trial(problem, settings, steps=TIMES[-1], seed=seed, times=TIMES)
            return [row[: len(SUMS)].tolist() for row in figures["curve"]]

        with ThreadPoolExecutor(threads(None)) as pool:
            found.append(list(pool.map(sums, range(first_seed, first_seed + trials))))
    return found


def measure_without(part: str, options: argparse.Namespace) -> NDArray[np.float64]:
    """The same without a part, in a process of its own, unless it is already in the folder."""
    name, folder = f"{list(PARTS).index(part):02d}", options.folder
    asked = ["--trials", str(options.trials), "--first-seed", str(options.first_seed)]
    asked += ["--endless"] if options.endless else []
    result = folder / f"{name}{''.join(asked)}.json"
    if not result.exists():
        source = folder / f"source-{name}"
        copy_without(part, source)
        environment = os.environ | {"PYTHONPATH": str(source), "LACUNA_CACHE_DIR": str(folder / f"kernels-{name}")}
        command = [sys.executable, __file__, "--child", *asked]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        result.write_text(done.stdout)
    return np.array(json.loads(result.read_text()))


def per_step(sums: NDArray[np.float64], t: int) -> NDArray[np.float64]:
    """Reward per step by cell and trial, at a time."""
    return np.asarray(sums[:, :, t, REWARD] / sums[:, :, t, STEPS])


def per_episode(sums: NDArray[np.float64], t: int) -> NDArray[np.float64]:
    """Reward per episode by cell and trial, the open one counted; not a number where episodes never end."""
    means = [[episode_means(row, count_open=True)["mean_total_reward"] for row in cell[:, t]] for cell in sums]
    episodes = sums[:, :, t, SUMS.index("episodes")].sum(axis=1, keepdims=True)
    return np.where(episodes > 0, np.array(means, dtype=np.float64), np.nan)


def table(title: str, cells: Cells, whole: NDArray[np.float64], without: dict[str, NDArray[np.float64]]) -> list[str]:
    """A Markdown table of differences in one figure."""
    marks = {"factored": " f.", "continuing": " c.", "seed": " s."}
    names = [
        f"{world.split(',')[0]}{''.join(mark for word, mark in marks.items() if word in world)} {miss.split(':')[1]}"
        for world, miss, _ in cells
    ]
    lines = ["", title, "", f"| without | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    lines.append(f"| {WHOLE} | {' | '.join('–' if np.isnan(x) else f'{x:.3g}' for x in whole.mean(axis=1))} |")
    for part, values in without.items():
        change = values - whole
        mean, error = change.mean(axis=1), change.std(axis=1, ddof=1) / sqrt(change.shape[1])
        shown = [
            "–" if np.isnan(m) else f"**{m:+.2g} ± {e:.1g}**" if abs(m) > 2 * e else f"{m:+.2g} ± {e:.1g}"
            for m, e in zip(mean, error, strict=True)
        ]
        lines.append(f"| {part} | {' | '.join(shown)} |")
    return lines


def show(found: dict[str, NDArray[np.float64]], options: argparse.Namespace, cells: Cells) -> str:
    """All tables."""
    whole, rest = found[WHOLE], {part: sums for part, sums in found.items() if part != WHOLE}
    lines = [
        f"{options.trials} trials, seeds from {options.first_seed}; f.: factored, c.: continuing, s.: another seed."
    ]
    for t, steps in enumerate(TIMES):
        figures = {part: per_step(sums, t) for part, sums in rest.items()}
        lines += table(f"Reward per step, over {steps:,} steps:", cells, per_step(whole, t), figures)
    figures = {part: per_episode(sums, -1) for part, sums in rest.items()}
    title = f"Reward per episode, over {TIMES[-1]:,} steps, the open episode counted:"
    return "\n".join(lines + table(title, cells, per_episode(whole, -1), figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path("out/ablation"), help="keeps what is done")
    parser.add_argument("--save", type=Path, help="write the tables here too, after every part")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts, and the whole method"
    )
    parser.add_argument("--endless", action="store_true", help="also worlds whose episodes never end")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cells: Cells = CELLS + (ENDLESS if options.endless else ())
    if options.child:
        print(json.dumps(measure(options.trials, options.first_seed, cells)))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, NDArray[np.float64]] = {}
    for part in dict.fromkeys((WHOLE, *options.only)):
        found[part] = measure_without(part, options)
        if options.save is not None:
            options.save.write_text(show(found, options, cells) + "\n")
    print(show(found, options, cells))


if __name__ == "__main__":
    main()
