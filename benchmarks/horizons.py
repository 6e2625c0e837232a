"""What planning adds at short horizons, as the Markdown tables of docs/evidence/default.md.

``python benchmarks/horizons.py FOLDER`` reads a store of the studies in ``studies/horizons/``. With a second path it
also writes all figures as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from lacuna.quantities import number_text
from lacuna.study.spec import Study
from lacuna.study.store import Store
from lacuna_paper.horizons import JUDGED, OUTCOMES, as_data, cells_of
from lacuna_paper.reproduce import FOLDER

Data = Mapping[str, Any]
SHORT = {"cliff-walking": "CliffWalking", "taxi": "Taxi", "frozen-lake": "FrozenLake", "lake": "Lake World"}


def read(folder: Path) -> pl.DataFrame:
    """The runs of the studies that a store holds; says if some are missing."""
    studies = [Study.read(path) for path in sorted((FOLDER / "horizons").glob("*.toml"))]
    wanted = {run.id for study in studies for run in study.runs()}
    table = Store.existing(folder).table()
    found = table.filter(pl.col("id").is_in(list(wanted)))
    if found.height < len(wanted):
        print(f"Only {found.height:,} of {len(wanted):,} runs are there.\n")
    return found


def number(value: float, digits: int = 3) -> str:
    return number_text(value, f".{digits}f")


def with_error(found: Data, digits: int = 3) -> str:
    error = found["standard_error"]
    return number(found["mean"], digits) + ("" if error is None else f" ± {error:.{digits}f}")


def interval(found: Data, digits: int = 3) -> str:
    bounds = "" if found["low"] is None else f" [{number(found['low'], digits)}, {number(found['high'], digits)}]"
    return number(found["estimate"], digits) + bounds


def place(cell: Data) -> str:
    return f"{SHORT[cell['world']]}, `{cell['missingness']}`"


def table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A table of Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * len(heads), *rows]) + "\n"


def at(cell: Data, horizon: int) -> Data | None:
    return next((found for found in cell["horizons"] if found["horizon"] == horizon), None)


def judged_rows(data: Data, horizon: int) -> Iterator[Sequence[str]]:
    for cell in data["cells"]:
        found = at(cell, horizon)
        if found is None or "ahead" not in found:
            continue
        rewards, ahead = found["reward_per_step"], found["ahead"]
        # Rewards of FrozenLake are small.
        digits = 3 if abs(rewards[data["best"]]["mean"]) > 0.1 else 5
        means = [with_error(rewards[data[which]], digits) for which in ("planned", "unplanned")]
        yield [place(cell), *means, interval(ahead, digits), f"{ahead['p_holm']:.2g}", ahead["outcome"]]


def count_rows(data: Data) -> Iterator[Sequence[str]]:
    for horizon, found in data["counts"].items():
        apart = data["counts_apart"][horizon]
        yield [f"{int(horizon):,}", *(str(by[outcome]) for by in (found, apart) for outcome in OUTCOMES)]


def stuck_rows(data: Data) -> Iterator[Sequence[str]]:
    for cell in data["cells"]:
        for method, n in cell["trials_without_episode"].items():
            if n:
                yield [place(cell), f"`{method}`", f"{n} of {cell['trials']}"]


def regret_rows(data: Data, against: str, methods: Sequence[str]) -> Iterator[Sequence[str]]:
    for cell in data["cells"]:
        for method in methods:
            regrets = [found[against].get(method) for found in cell["horizons"]]
            if all(regrets):
                yield [place(cell), f"`{method}`", *(number(regret["mean"]) for regret in regrets)]


def episode_rows(data: Data, methods: Sequence[str]) -> Iterator[Sequence[str]]:
    for cell in data["cells"]:
        gap, rewards = cell["gap_closed"], cell["reward_per_episode"]
        share = "–"
        if gap is not None:
            bounds = "" if gap["low"] is None else f" [{100 * gap['low']:.0f}, {100 * gap['high']:.0f}]"
            share = f"{100 * gap['estimate']:.0f}{bounds} %".replace("-", "−")
        yield [place(cell), *(with_error(rewards[name], 2) if name in rewards else "–" for name in methods), share]


def report(data: Data) -> Iterator[str]:
    """All tables, each below a heading."""
    methods = list(dict.fromkeys(name for cell in data["cells"] for name in cell["reward_per_episode"]))
    horizons = [f"{found['horizon']:,}" for found in data["cells"][0]["horizons"]]
    trials = sorted({cell["trials"] for cell in data["cells"]})
    yield (
        f"{len(data['cells'])} cells, {' to '.join(map(str, dict.fromkeys((trials[0], trials[-1]))))} trials each, "
        f"{data['steps']:,} steps. Verdicts are corrected by Holm's method over {data['tests']} differences.\n"
    )
    yield "## Verdicts\n"
    yield table(["steps", *OUTCOMES, *(f"{word}, each horizon by itself" for word in OUTCOMES)], count_rows(data))
    yield "## Trials that completed no episode\n"
    yield table(["problem", "method", "trials"], stuck_rows(data))
    for horizon in JUDGED:
        yield f"## Reward per step over the first {horizon:,} steps, ± standard error\n"
        heads = ["problem", "planned", "unplanned", "difference, 95 % interval", "p, corrected", "verdict"]
        yield table(heads, judged_rows(data, horizon))
    yield f"## Reward per episode over {data['steps']:,} steps, ± standard error; share of the gap to QMDP closed\n"
    yield table(["problem", *(f"`{name}`" for name in methods), "gap closed"], episode_rows(data, methods))
    for key, words in (("regret_to_best", "the best possible"), ("regret_to_reachable", "QMDP with the true model")):
        yield f"## Regret per step against {words}, by steps\n"
        yield table(["problem", "method", *horizons], regret_rows(data, key, methods))


def main(folder: Path, *out: Path) -> None:
    data = as_data(cells_of(read(folder)))
    print("\n".join(report(data)))
    for path in out:
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
