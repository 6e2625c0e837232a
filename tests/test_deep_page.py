"""The page on deep learners says what its results say."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks" / "deep"))
collect: Any = import_module("collect")

RUNS = json.loads((ROOT / "docs" / "results" / "deep.json").read_text())["runs"]


def test_the_tables_are_those_of_the_results() -> None:
    assert f"{collect.BEGIN}\n\n{collect.tables(RUNS)}\n\n{collect.END}" in collect.PAGE.read_text()


def test_the_page_says_how_much_is_missing() -> None:
    assert collect.tables([]).startswith("0 of 260 runs are made; 0 of 52 rows have all 5 seeds.")
    everything = [cell._asdict() | {"key": cell.key} for cell in collect.cells()]
    assert (
        collect.state(list(collect.grouped(everything))) == "260 of 260 runs are made; 52 of 52 rows have all 5 seeds."
    )
    assert collect.state(list(collect.grouped(everything[1:]))).startswith("259 of 260 runs are made; 51 of 52")


def test_every_result_is_a_run_of_the_comparison_and_is_there_once() -> None:
    assert collect.merged(RUNS, []) == RUNS
    for run in RUNS:
        steps, cart = run["steps"], run["world"] == "cartpole"
        assert cart == (sum(run["rewards"]) == steps)
        assert {len(run[name]) for name in ("rewards", "episodes", "returns", "seconds")} == {steps // 2000}


def test_the_long_runs_begin_as_the_short_ones() -> None:
    """The page says so; it is what makes one curve of both."""
    short = {run["key"]: run for run in RUNS}
    for run in RUNS:
        if run["steps"] == collect.LONG:
            cell = collect.Cell(*(run[name] for name in collect.Cell._fields))
            begun = short[cell._replace(steps=collect.STEPS).key]
            for name in ("rewards", "episodes", "returns"):
                assert run[name][:25] == begun[name]


def test_a_mean_leaves_no_seed_out() -> None:
    assert (collect.spread([]), collect.spread([80.0, None]), collect.spread([None])) == ("", "–", "–")
    assert collect.spread([80.0], ".1f") == "80.0"
    # Student's t with one degree of freedom: 12.706 standard errors, of 1.
    assert collect.spread([79.0, 81.0], ".1f") == "80.0 [67.3, 92.7]"


def run_of(world: str, windows: dict[str, Any], seed: int = 0) -> Any:
    cell = collect.Cell(world, 0.2, "ppo", "plain", 50_000, seed)
    return cell._asdict() | {"key": cell.key, "seconds": [1, 2, 3]} | windows


def test_the_curves_have_a_gap_where_a_seed_finished_no_episode() -> None:
    run = run_of("lake", {"rewards": [-50, -900, 30], "episodes": [1, 1, 0], "returns": [-50, -900, 0]})
    found = collect.points([run])
    assert [point["reward"] for point in found] == [-50, -200, None]
    assert [point["seconds"] for point in found] == [1, 2, 3]


def test_an_episode_that_goes_on_counts_in_lake_world_and_not_in_cartpole() -> None:
    windows = {"rewards": [40, 60, 60], "episodes": [2, 1, 1], "returns": [30, 50, 70]}
    assert collect.per_episode(run_of("lake", windows), 0, 3) == 160 / 4
    assert collect.per_episode(run_of("cartpole", windows), 0, 3) == 150 / 4


def test_differences_are_paired_by_seed() -> None:
    def runs(*totals: float) -> list[dict[str, Any]]:
        windows = [{"rewards": [x], "episodes": [1], "returns": [x]} for x in totals]
        return [run_of("cartpole", parts, seed) for seed, parts in enumerate(windows)]

    assert collect.paired(runs(101, 203), runs(100, 200), "all steps", ".1f") == "+2.0 [−10.7, +14.7]"
    # A seed that only one has is left out.
    assert collect.paired(runs(101, 203), runs(100), "all steps", ".1f") == "+1.0"
