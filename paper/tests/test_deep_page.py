"""The page on deep learners says what its results say."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from lacuna_paper.frontier import deep_learners as deep

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "deep"))
sys.path.insert(0, str(ROOT / "reference"))
collect: Any = import_module("collect")
generate: Any = import_module("generate")

RUNS = json.loads((ROOT / "docs" / "results" / "deep.json").read_text())["runs"]


def test_the_tables_are_those_of_the_results() -> None:
    assert f"{collect.BEGIN}\n\n{collect.tables(RUNS)}\n\n{collect.END}" in collect.PAGE.read_text()


def test_the_page_says_how_much_is_missing() -> None:
    def state(runs: list[Any]) -> str:
        return str(collect.state(list(collect.grouped(runs))))

    assert collect.tables([]).startswith("0 of 208 reported runs are made; 0 of 52 rows have all 4 seeds.")
    everything = [cell._asdict() | {"key": cell.key} for cell in collect.cells()]
    assert state(everything) == (
        "208 of 208 reported runs are made; 52 of 52 rows have all 4 seeds. "
        "Settings were chosen on seed 0, which is left out."
    )
    assert state(everything[:-1]).startswith("207 of 208 reported runs are made; 51 of 52")


def test_a_seed_on_which_settings_were_chosen_is_in_no_table_row_or_curve() -> None:
    fresh = [run for run in RUNS if run["seed"] != 0]
    assert len(fresh) == 208
    assert collect.tables(RUNS) == collect.tables(fresh)
    assert deep.extract(RUNS) == deep.extract(fresh)
    assert {len(row[part]) for row in deep.kept_rows() for part in deep.PARTS} == {4}


def test_the_page_and_the_section_say_which_views_the_settings_favour() -> None:
    section, page = deep.deep_section().body, collect.PAGE.read_text()
    assert "PPO with “our imputer” and RecurrentPPO with “missing shown”, which favours these views" in section
    assert "PPO's settings favour our imputer" in page
    for text in (section, page):
        assert "RecurrentPPO does not work in Lake World" in text


def test_the_page_counts_the_runs_that_get_stuck() -> None:
    stuck = [
        not any(run["episodes"][-5:])
        for run in RUNS
        if (run["learner"], run["world"]) == ("recurrent-ppo", "lake") and run["seed"] not in deep.CHOSEN_ON
    ]
    assert f"In {sum(stuck)} of {len(stuck)} runs it gets stuck" in collect.PAGE.read_text()


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


def run_of(world: str, windows: dict[str, Any], seed: int = 1) -> Any:
    cell = collect.Cell(world, 0.2, "ppo", "plain", 50_000, seed)
    return cell._asdict() | {"key": cell.key, "seconds": [1, 2, 3]} | windows


def test_curves_have_points_where_every_seed_finished_an_episode() -> None:
    runs = [
        run_of("lake", {"rewards": [-50, -900, 30], "episodes": [1, 1, 0], "returns": [-50, -900, 0]}),
        run_of("lake", {"rewards": [-30, -700, 60], "episodes": [1, 2, 1], "returns": [-30, -700, 60]}, seed=2),
    ]
    [row] = deep.extract(runs)
    assert row["curve"]["steps"] == [2000, 4000]
    assert row["curve"]["mean"] == [-40, -625]
    assert row["curve"]["seconds"] == [1, 2]
    assert row["seconds"] == 3
    assert row["all steps"] == [-460, pytest.approx(-670 / 4)]


def test_by_the_clock_a_curve_shows_what_was_finished_by_then() -> None:
    run = run_of("lake", {"rewards": [1, 2, 3], "episodes": [1, 1, 1], "returns": [1, 2, 3]})
    rows = deep.extract([run | {"seconds": [1.05, 2.5, 2.6]}])
    points = deep.chart(rows, "seconds").datasets["points"]
    assert [(point["x"], point["mean"]) for point in points] == [
        (1.12, 1), (1.26, 1), (1.41, 1), (1.58, 1), (1.78, 1), (2.0, 1), (2.24, 1), (2.51, 2), (2.82, 3),
    ]  # fmt: skip


def test_an_episode_that_goes_on_counts_in_lake_world_and_not_in_cartpole() -> None:
    windows = {"rewards": [40, 60, 60], "episodes": [2, 1, 1], "returns": [30, 50, 70]}
    assert deep.per_episode(run_of("lake", windows), 0, 3) == 160 / 4
    assert deep.per_episode(run_of("cartpole", windows), 0, 3) == 150 / 4


def test_differences_are_paired_by_seed() -> None:
    def runs(*totals: float) -> list[dict[str, Any]]:
        windows = [{"rewards": [x], "episodes": [1], "returns": [x]} for x in totals]
        return [run_of("cartpole", parts, seed) for seed, parts in enumerate(windows, start=1)]

    assert collect.paired(runs(101, 203), runs(100, 200), "all steps", ".1f") == "+2.0 [−10.7, +14.7]"
    # A seed that only one has is left out.
    assert collect.paired(runs(101, 203), runs(100), "all steps", ".1f") == "+1.0"


def test_the_rows_that_come_with_lacuna_are_those_of_the_results() -> None:
    kept = ROOT / "paper" / "src" / "lacuna_paper" / "frontier" / "deep_learners.json"
    assert kept.read_text() == generate.deep_learners(), "run: python reference/generate.py"
    assert len(deep.kept_rows()) == 52


@pytest.mark.parametrize("part", ["first fifth", "last fifth", "all steps"])
def test_the_standing_of_our_default_is_that_of_paired_t_tests_corrected_by_holm(part: str) -> None:
    def values(cell: Any, seeds: list[Any]) -> list[float] | None:
        assert [run["seed"] for run in seeds] == [1, 2, 3, 4], cell
        found = [value for run in seeds if (value := deep.parts(run)[part]) is not None]
        return found if len(found) == len(seeds) else None

    found = {cell[:5]: values(cell, seeds) for cell, seeds in collect.grouped(RUNS) if cell.steps == collect.STEPS}
    pairs = [
        (found[(*cell[:2], "lacuna", "agent", collect.STEPS)], theirs)
        for cell, theirs in found.items()
        if cell[2] != "lacuna"
    ]
    tests = sorted(
        (stats.ttest_rel(ours, theirs).pvalue, sum(ours) > sum(theirs)) for ours, theirs in pairs if ours and theirs
    )
    clear = []
    for i, (p, ahead) in enumerate(tests):
        if p * (len(tests) - i) > 0.05:
            break
        clear.append(ahead)
    assert deep.standing(deep.kept_rows(), part) == (
        sum(clear), len(clear) - sum(clear), len(tests), len(pairs) - len(tests)
    )  # fmt: skip


def test_the_section_says_what_was_found_and_has_both_charts() -> None:
    section = deep.deep_section().body
    assert deep.finding(deep.kept_rows()) in section
    assert "24 of 36" in deep.finding(deep.kept_rows())
    assert 'id="figure-deep-steps"' in section
    assert 'id="figure-deep-seconds"' in section
    assert section.count("<tbody") >= 52
