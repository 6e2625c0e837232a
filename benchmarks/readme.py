"""The numbers of the README: measured, kept as plain data, and printed as its table.

``python benchmarks/readme.py run out/readme docs/results/readme.json`` runs what the store in the folder lacks of the
studies in ``benchmarks/readme/``, and writes the figures.
``python benchmarks/readme.py table docs/results/readme.json`` prints the table.

The paper's methods and QMDP over 50,000 steps come from ``docs/results/claims.json``, a file of the full study.
Ours are run on its fresh trials. That they are the same is checked: ours without planning are in both.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import t as student_t

from lacuna.agent.settings import DEFAULT, UNPLANNED
from lacuna.quantities import number_text
from lacuna.study.engines import Local
from lacuna.study.runner import run_studies
from lacuna.study.selection import HYPER_PARAMETERS, Columns, choose, chosen_runs, with_open_episode
from lacuna.study.spec import Study
from lacuna.study.store import Store
from lacuna_paper.comparison import REACHABLE
from lacuna_paper.evidence import DRAWS

ROOT = Path(__file__).parents[1]
STUDIES = Path(__file__).with_name("readme")
FULL = ROOT / "docs" / "results" / "claims.json"
OURS = {"without": UNPLANNED.method, "default": DEFAULT.method, "reachable": REACHABLE}
GIVEN = ("K", "p_shuffle", "alpha", "gamma", "epsilon")
PER_EPISODE, PER_STEP = "mean_total_reward_with_open", "reward_per_step"
TUNED = Columns(problem=("world", "missingness", "first_observed", "steps"), tuned=(*HYPER_PARAMETERS, "parameters"))
"""Whether staying is allowed is tuned like a setting."""

ELSEWHERE = ("machine", "relay", "mobile-health")
"""Worlds that had no part in choosing a constant."""

Figures = dict[str, Any]


def study(name: str) -> Study:
    """One of the studies."""
    return Study.read(STUDIES / f"{name}.toml")


def runs_of(table: pl.DataFrame, *studies: Study) -> pl.DataFrame:
    """The runs of some studies, with the open episode counted."""
    ids = [run.id for one in studies for run in one.runs()]
    return with_open_episode(table.filter(pl.col("id").is_in(ids))).sort("trial")


def figure(values: Sequence[float] | NDArray[np.float64]) -> Figures:
    """A mean and its standard error."""
    each = np.asarray(values, dtype=np.float64)
    return {"mean": float(each.mean()), "standard_error": float(each.std(ddof=1) / len(each) ** 0.5), "n": len(each)}


def by_draw(runs: pl.DataFrame, measure: str) -> NDArray[np.float64]:
    """The mean of each draw over its fresh trials."""
    return np.array([runs.filter(pl.col("trial").is_in(draw.fresh))[measure].mean() for draw in DRAWS])


def long_runs(runs: pl.DataFrame) -> Iterator[Figures]:
    """Lake World over 50,000 steps: ours from the runs, the paper's from the full study on the same trials."""
    full = {one["missingness"]: one for one in json.loads(FULL.read_text())["comparisons"]["held-out"]}
    for name in runs["missingness"].unique(maintain_order=True):
        mine, theirs = runs.filter(missingness=name), full[name]
        drawn = {key: figure(by_draw(mine.filter(method=OURS[key]), PER_EPISODE)) for key in ("without", "default")}
        here, there = drawn["without"]["mean"], theirs["ours"]["estimate"]
        if abs(here - there) > 1e-9:
            raise ValueError(f"without planning, under {name}, earns {here} in the runs, but {there} in {FULL}")
        yield {
            "missingness": name, "best": theirs["best"], "theirs": of_interval(theirs["theirs"]),
            **drawn, "reachable": of_interval(theirs["yardsticks"][REACHABLE]),
        }  # fmt: skip


def of_interval(interval: Mapping[str, float]) -> Figures:
    """A mean and its standard error, from its 95 % interval by Student's t."""
    half = (interval["high"] - interval["low"]) / 2
    error = half / float(student_t.ppf(0.975, interval["n"] - 1))
    return {"mean": interval["estimate"], "standard_error": error, "n": interval["n"]}


def short_runs(ours: pl.DataFrame, papers: pl.DataFrame) -> Iterator[Figures]:
    """Lake World over 2,000 steps: the paper's tuned as in the full study, by reward per step."""
    for name in ours["missingness"].unique(maintain_order=True):
        mine, theirs = ours.filter(missingness=name), papers.filter(missingness=name)
        shown = tuned_by_draw(theirs)
        best = max(shown, key=lambda method: float(shown[method].mean()))
        yield {
            "missingness": name, "best": dict(zip(("method", "K", "p_shuffle"), best, strict=True)),
            "theirs": figure(shown[best]),
            **{key: figure(by_draw(mine.filter(method=method), PER_STEP)) for key, method in OURS.items()},
        }  # fmt: skip


def choices(runs: pl.DataFrame) -> list[pl.DataFrame]:
    """The settings that each draw chooses on its tuning trials."""
    return [choose(runs, draw.tuning, PER_STEP, TUNED) for draw in DRAWS]


def confirming(tuning: Study, chosen: Sequence[pl.DataFrame]) -> list[Study]:
    """The studies that run what each draw chose on its fresh trials."""
    studies = []
    for draw, choice in zip(DRAWS, chosen, strict=True):
        for (missingness, stay), rows in choice.group_by("missingness", "parameters", maintain_order=True):
            methods = [
                {"name": row["method"]} | {key: row[key] for key in GIVEN if row[key] is not None}
                for row in rows.iter_rows(named=True)
            ]
            name = f"{str(missingness).replace(':', ' ')}{' stay' if stay else ''} from {draw.fresh[0]}"
            data = {
                "name": name, "steps": tuning.spec.steps,
                "first_trial": draw.fresh[0], "trials": len(draw.fresh), "missingness": [missingness],
                "worlds": [{"name": "lake"} | ({"stay": True} if stay else {})], "methods": methods,
            }  # fmt: skip
            studies.append(Study.from_data(data, name))
    return studies


def tuned_by_draw(runs: pl.DataFrame) -> dict[tuple[Any, ...], NDArray[np.float64]]:
    """What each method earns in each draw on fresh trials, at the setting that its tuning trials chose."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for draw, choice in zip(DRAWS, choices(runs), strict=True):
        chosen = chosen_runs(runs, choice, draw.fresh, TUNED)
        for keys, group in chosen.group_by("method", "K", "p_shuffle", maintain_order=True):
            if sorted(group["trial"]) != sorted(draw.fresh):
                raise ValueError(f"{keys} lacks fresh trials")
            found.setdefault(keys, []).append(float(group[PER_STEP].to_numpy().mean()))
    return {keys: np.array(values) for keys, values in found.items()}


def elsewhere(runs: pl.DataFrame) -> Iterator[Figures]:
    """Another world, at fixed settings: the best of the paper's methods is picked on the trials shown."""
    for (world, missingness), group in runs.group_by("world", "missingness", maintain_order=True):
        papers = group.filter(~pl.col("method").is_in(list(OURS.values())))
        means = papers.group_by("method", "epsilon", maintain_order=True).agg(pl.col(PER_STEP).mean())
        method, epsilon, _ = means.sort(PER_STEP, descending=True).row(0)
        theirs = papers.filter(method=method, epsilon=epsilon)[PER_STEP].to_numpy()
        kept = {key: group.filter(method=name)[PER_STEP].to_numpy() for key, name in OURS.items()}
        yield {
            "world": world, "missingness": missingness, "best": {"method": method, "epsilon": epsilon},
            "theirs": figure(theirs), **{key: figure(values) for key, values in kept.items() if len(values)},
        }  # fmt: skip


def run(folder: Path, target: Path) -> None:
    """Run all studies, and write the figures."""
    store = Store(folder)

    def made(*wanted: Study) -> pl.DataFrame:
        done = run_studies(wanted, store, Local(os.cpu_count() or 1))
        if done.done < done.total:
            raise RuntimeError(f"{done.done} of {done.total} runs were made; the same command goes on")
        return runs_of(store.table(), *wanted)

    tuning = study("short-tuning")
    chosen = confirming(tuning, choices(made(tuning)))
    data = {
        "command": "python benchmarks/readme.py run out/readme docs/results/readme.json",
        "long": list(long_runs(made(study("lake")))),
        "short": list(short_runs(made(study("short")), made(tuning, *chosen))),
        "elsewhere": [found for name in ELSEWHERE for found in elsewhere(made(study(name)))],
    }
    target.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def shown(found: Figures | None, digits: int) -> str:
    """A mean with its standard error in brackets."""
    if found is None:
        return "–"
    error = f"{found['standard_error']:.{digits}f}"
    return f"{number_text(found['mean'], f'.{digits}f')} ({error.removeprefix('0')})"


def table(data: Mapping[str, Any]) -> str:
    """The table of the README."""
    columns = ("theirs", "without", "default", "reachable")
    heads = ["missing", "best of the paper's methods", "ours, without planning", "our default", "QMDP"]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for part, digits in (("long", 1), ("short", 2), ("elsewhere", 3)):
        for one in data[part]:
            cells = [place(part, one), *(shown(one.get(key), digits) for key in columns)]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def place(part: str, one: Figures) -> str:
    """What the first cell of a row says."""
    if one["missingness"].startswith("self-report"):
        return f"`{one['world']}`, answers rare, per step"
    rate = 100 * float(one["missingness"].rpartition(":")[2].rpartition(",")[2])
    if part == "elsewhere":
        return f"`{one['world']}`, {rate:.0f} %, per step"
    return f"Lake World, {rate:.0f} %" + (", first 2,000 steps, per step" if part == "short" else "")


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    first, *second = map(Path, paths)
    if what == "run":
        run(first, second[0])
    else:
        print(table(json.loads(first.read_text())))
