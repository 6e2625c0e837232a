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


def test_every_result_is_a_run_of_the_comparison_and_is_there_once() -> None:
    assert collect.merged(RUNS, []) == RUNS
    for run in RUNS:
        steps, cart = run["steps"], run["world"] == "cartpole"
        assert cart == (sum(run["rewards"]) == steps)
        assert len(run["rewards"]) == len(run["episodes"]) == len(run["seconds"])


def test_a_mean_leaves_no_seed_out() -> None:
    assert (collect.spread([]), collect.spread([80.0, None]), collect.spread([None])) == ("", "–", "–")
    assert collect.spread([80.0], ".1f") == "80.0"
    # Student's t with one degree of freedom: 12.706 standard errors, of 1.
    assert collect.spread([79.0, 81.0], ".1f") == "80.0 [67.3, 92.7]"


def test_the_curves_have_a_gap_where_a_seed_finished_no_episode() -> None:
    run = {name: RUNS[0][name] for name in collect.Cell._fields} | {"key": "", "rewards": [-50, -900, 30]}
    run |= {"episodes": [1, 1, 0], "seconds": [1, 2, 3]}
    found = collect.points([run], run["steps"])
    assert [point["reward"] for point in found] == [-50, -200, None]
