"""Every method in every world: cells, ranks, verdicts against the default, tuning on other trials, and the files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import DEFAULT, UNPLANNED, Settings
from lacuna.study.engines import Local
from lacuna.study.runner import run_studies
from lacuna.study.selection import Draw, with_open_episode
from lacuna.study.spec import Study
from lacuna.study.store import Store
from lacuna_paper.evidence import MODELS
from lacuna_paper.frontier import studies
from lacuna_paper.frontier.cells import (
    DEFAULT_NAME,
    KNOWING,
    PER_EPISODE,
    PER_STEP,
    Cell,
    as_data,
    cells_of,
    judge,
    rank,
    with_series,
)  # fmt: skip
from lacuna_paper.frontier.section import FILE, frontier_section, frontier_sections
from lacuna_paper.frontier.tuning import choices, confirming_studies, draws_of, tuned_cells
from lacuna_paper.reproduce import FOLDER, Request
from small_frontier import write_small_frontier

FRONTIER = FOLDER / "frontier"


def study(name: str, **more: Any) -> Study:
    data: dict[str, Any] = {
        "name": name, "steps": 300, "trials": 4, "first_trial": 5000, "missingness": ["mcar:0.2", "mcar:0.6"],
        "worlds": [{"name": "corridor"}], "grid": {"gamma": [1.0]},
        "methods": [{"name": "last-observed"}, {"name": "mi-synthetic", "K": [10, 2]}, {"name": "mi-planned"},
                    {"name": "optimum"}],
    }  # fmt: skip
    return Study.from_data(data | more, name)


ENDING = study("ending")
ENDLESS = study("endless", worlds=[{"name": "loop"}], grid={"gamma": [0.95]}, missingness=["mcar:0.4"], trials=3)
TUNING = study(
    "tuning", steps=200, trials=4, first_trial=6000, missingness=["mcar:0.0", "mcar:0.6"], worlds=[{"name": "lake"}],
    grid={"gamma": [0.0, 1.0], "alpha": [0.1, 1.0]}, methods=[{"name": "last-observed"}, {"name": "missing-as-state"}],
)  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return made(Store(tmp_path_factory.mktemp("store")), [ENDING, ENDLESS, TUNING])


def made(store: Store, wanted: Sequence[Study]) -> pl.DataFrame:
    progress = run_studies(wanted, store, Local(1))
    assert progress.done == progress.total
    return store.table()


# --- cells ---------------------------------------------------------------------------------------------------------


def test_a_cell_has_the_figures_of_its_runs_in_the_order_of_the_study(table: pl.DataFrame) -> None:
    cells = cells_of([ENDLESS, ENDING], table)
    assert [(one.group, one.world, one.missingness, one.measure, len(one.trials)) for one in cells] == [
        ("endless", "loop", "mcar:0.4", PER_STEP, 3),
        ("ending", "corridor", "mcar:0.2", PER_EPISODE, 4), ("ending", "corridor", "mcar:0.6", PER_EPISODE, 4),
    ]  # fmt: skip
    series = ["last-observed", "mi-synthetic", "mi-synthetic, K = 2", "mi-planned", "optimum"]
    assert list(cells[1].values) == series
    assert "optimum" not in cells[1].methods
    for cell in cells:
        for trial, value in zip(cell.trials, cell.values["last-observed"], strict=True):
            run = table.filter(world=cell.world, missingness=cell.missingness, trial=trial, method="last-observed")
            row = run.row(0, named=True)
            if cell.measure == PER_STEP:
                assert value == row["reward_per_step"]
                continue
            total = row["mean_total_reward"] * row["episodes"] + row["open_reward"] + row["cut_reward"]
            assert value == pytest.approx(total / (row["episodes"] + (row["open_steps"] > 0) + row["cut_episodes"]))


def test_a_trial_that_some_series_lacks_is_left_out_and_other_runs_are_left_aside(table: pl.DataFrame) -> None:
    lacking = table.filter(~((pl.col("trial") == 5001) & (pl.col("method") == "optimum") & (pl.col("world") == "loop")))
    (cell,) = cells_of([ENDLESS], lacking)
    assert cell.trials == (5000, 5002)
    assert cells_of([ENDLESS], table.filter(world="corridor")) == []
    whole = cells_of([ENDLESS], table)[0].values["mi-planned"]
    assert cell.values["mi-planned"].tolist() == whole[[0, 2]].tolist()


def test_the_discount_is_no_part_of_a_series(table: pl.DataFrame) -> None:
    both = with_series(table.filter(pl.col("method").is_in(["last-observed", "mi-planned"]), pl.col("trial") < 6000))
    assert both["gamma"].n_unique() == 2
    assert set(both["series"]) == {"last-observed", "mi-planned"}


# --- ranks and verdicts --------------------------------------------------------------------------------------------


def cell(missingness: str, **values: Any) -> Cell:
    named = {name.replace("_", "-"): np.array(found, dtype=np.float64) for name, found in values.items()}
    n = len(next(iter(named.values())))
    return Cell("group", "lake", "", missingness, 100, PER_EPISODE, tuple(range(n)), named)


def test_ranks_are_averaged_over_cells_within_trials() -> None:
    cells = [
        cell("mcar:0.2", mi_planned=[3, 3, 1], last_observed=[2, 2, 2], random_action=[1, 2, 3], optimum=[9, 9, 9]),
        cell("mcar:0.6", mi_planned=[3, 3, 3], last_observed=[1, 1, 1], random_action=[2, 2, 2], optimum=[9, 9, 9]),
    ]
    found = {one.series: one.mean for one in rank(cells, judge(cells))}
    # Trial by trial, over the two cells: 1 and 1; 1 and 1; 3 and 1.
    assert found["mi-planned"].estimate == pytest.approx(np.mean([1, 1, 2]))
    assert found["last-observed"].estimate == pytest.approx(np.mean([2.5, 2.75, 2.5]))
    reach = stats.t.ppf(0.975, 2) * np.std([2.5, 2.75, 2.5], ddof=1) / np.sqrt(3)
    assert found["last-observed"].high == pytest.approx(np.mean([2.5, 2.75, 2.5]) + reach)
    assert "optimum" not in found
    assert [one.series for one in rank(cells, {})] == ["mi-planned", "random-action", "last-observed"]
    fewer = [cells[0], cells[1]._replace(values={name: cells[1].values[name] for name in ("mi-planned", "optimum")})]
    assert [one.series for one in rank(fewer, {})] == ["mi-planned"]
    assert rank([], {}) == []
    assert rank([cells[0], cells[1]._replace(trials=(7, 8, 9))], {}) == []


def test_verdicts_against_the_default_are_corrected_over_all_cells_and_methods() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(size=12)
    far, near = base + 5 + rng.normal(size=12), base + 0.9 + rng.normal(size=12)
    cells = [cell("mcar:0.2", mi_planned=base, last_observed=far, random_action=near, optimum=base + 9),
             cell("mcar:0.6", mi_planned=base, last_observed=2 * base - far, random_action=base)]  # fmt: skip
    judged = judge(cells)
    assert list(judged) == [(0, "last-observed"), (0, "random-action"), (1, "last-observed"), (1, "random-action")]
    for (i, name), found in judged.items():
        mine, default = cells[i].values[name], cells[i].values[DEFAULT_NAME]
        assert found.ahead.estimate == pytest.approx((mine - default).mean())
        assert found.p == pytest.approx(1.0 if (mine == default).all() else stats.ttest_rel(mine, default).pvalue)
    # The third smallest of four counts twice.
    alone = judged[0, "random-action"]
    assert alone.p_holm == pytest.approx(2 * alone.p)
    assert [found.standing for found in judged.values()][::2] == ["ahead", "behind"]
    assert judged[1, "random-action"].standing == "level"
    counts = {one.series: one.counts for one in rank(cells, judged)}
    assert counts["last-observed"] == {"ahead": 1, "level": 0, "behind": 1}
    assert counts[DEFAULT_NAME] == {"ahead": 0, "level": 0, "behind": 0}
    assert judge([cell("mcar:0.2", last_observed=[1.0, 2.0])]) == {}


def test_the_data_say_what_the_cells_say(table: pl.DataFrame) -> None:
    cells = cells_of([ENDING, ENDLESS], table)
    data = json.loads(json.dumps(as_data(cells)))
    assert data["tests"] == 9
    assert [one["missingness"] for one in data["cells"]] == ["mcar:0.2", "mcar:0.6", "mcar:0.4"]
    for one, told in zip(cells, data["cells"], strict=True):
        assert told["means"]["optimum"][0] == pytest.approx(one.values["optimum"].mean(), rel=1e-5)
        below = one.values["optimum"] - one.values["last-observed"]
        assert told["below"]["optimum"]["last-observed"][0] == pytest.approx(below.mean(), rel=1e-5, abs=1e-9)
        assert list(told["below"]) == ["optimum"]
        assert DEFAULT_NAME not in told["against_default"]
    assert as_data([]) == {"tests": 0, "ranking": [], "cells": []}


# --- tuning --------------------------------------------------------------------------------------------------------


def test_settings_are_chosen_on_tuning_trials_and_reported_on_fresh_ones(table: pl.DataFrame, tmp_path: Path) -> None:
    draws = draws_of(TUNING, 2, 3)
    assert draws == [Draw((6000, 6001), (7000, 7001, 7002)), Draw((6002, 6003), (7003, 7004, 7005))]
    chosen = choices(TUNING, table, draws)
    assert chosen.height == 2 * 2 * 2
    runs = with_open_episode(table.filter(pl.col("trial") >= 6000))
    for row in chosen.iter_rows(named=True):
        mine = runs.filter(
            pl.col("trial").is_in(draws[row["draw"]].tuning), method=row["method"], missingness=row["missingness"]
        )
        means = mine.group_by("alpha", "gamma").agg(pl.col("mean_total_reward_with_open").mean().alias("mean"),
                                                     (pl.col("episodes") == 0).sum().alias("stuck"))  # fmt: skip
        best = means.filter(stuck=means["stuck"].min())["mean"].max()
        mine = means.filter(alpha=row["alpha"], gamma=row["gamma"], stuck=means["stuck"].min())
        assert row["selection_mean"] == pytest.approx(best) == mine["mean"].item()
    # The case shows what it is to show: draws do not choose alike.
    assert chosen.filter(draw=0).drop("draw", "selection_mean").rows() != (
        chosen.filter(draw=1).drop("draw", "selection_mean").rows()
    )
    confirming = confirming_studies(TUNING, chosen, draws)
    assert len(confirming) == 4
    for one, group in zip(confirming, chosen.partition_by("draw", "missingness", maintain_order=True), strict=True):
        run = {run.settings.method: run.settings for run in one.runs() if isinstance(run.settings, Settings)}
        for row in group.iter_rows(named=True):
            assert run.pop(row["method"]) == Settings(row["method"], alpha=row["alpha"], gamma=row["gamma"])
        assert {*run} == {*KNOWING}
        assert {run.trial for run in one.runs()} == {*draws[group["draw"][0]].fresh}
    assert {run.trial for one in confirming for run in one.runs()} == set(range(7000, 7006))
    fresh = made(Store(tmp_path), confirming)
    cells = tuned_cells(TUNING, chosen, confirming, pl.concat([table, fresh]), draws)
    assert [(one.missingness, one.trials) for one in cells] == [("mcar:0.0", (0, 1)), ("mcar:0.6", (0, 1))]
    assert set(cells[0].values) == {"last-observed", "missing-as-state", *KNOWING}
    counted = with_open_episode(fresh).filter(method="last-observed", missingness="mcar:0.6")
    for i, draw in enumerate(draws):
        mean = counted.filter(pl.col("trial").is_in(draw.fresh))["mean_total_reward_with_open"].mean()
        assert cells[1].values["last-observed"][i] == pytest.approx(mean)


def test_too_few_tuning_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="4 tuning trials are too few for 5 draws"):
        draws_of(TUNING, 5, 1)


def test_fresh_trials_are_none_that_tuned() -> None:
    with pytest.raises(ValueError, match="there are 1001 tuning trials; at most 1000"):
        draws_of(study("tuning", trials=1001), 2, 1)
    (most,) = draws_of(study("tuning", trials=1000), 1, 1)
    assert not {*most.tuning} & {*most.fresh}


def test_what_was_tuned_with_a_hidden_first_state_is_confirmed_with_one(table: pl.DataFrame) -> None:
    draws = draws_of(TUNING, 2, 1)
    hidden = Study.from_data(TUNING.spec.model_dump(exclude_defaults=True) | {"first_observed": False}, "tuning")
    chosen = choices(TUNING, table, draws)
    for tuning in (TUNING, hidden):
        told = {run.first_observed for one in confirming_studies(tuning, chosen, draws) for run in one.runs()}
        assert told == {tuning.spec.first_observed}


# --- the study files -----------------------------------------------------------------------------------------------


@cache
def whole() -> tuple[list[Study], Study]:
    return studies.fixed_studies(FRONTIER), studies.tuning_study(FRONTIER)


def test_the_files_have_every_method_at_fixed_settings_the_same_everywhere() -> None:
    fixed, tuning = whole()
    assert sorted(path.stem for path in FRONTIER.glob("*.toml")) == sorted((*studies.FIXED, studies.TUNING))
    for one in fixed:
        plain = [settings for settings in one.settings if isinstance(settings, Settings)]
        plain = [settings for settings in plain if (settings.q_table, settings.evidence) == ("shared", "usual")]
        # Besides: one with tables of its own, and two with evidence that is not the usual one.
        assert len(plain) == len(one.settings) - 3
        found = {settings.method: settings for settings in plain}
        assert set(METHODS) <= set(found)
        gamma = 1.0 if one.spec.name in ("Lake World", "Lake World, wind and flood", "Worlds of Gymnasium") else 0.95
        at: dict[str, list[float]] = {}
        for settings in plain:
            assert (settings.alpha, settings.gamma) == (0.1, gamma)
            at.setdefault(settings.method, []).append(settings.epsilon)
        papers = ("random-action", "last-fully-observed", "last-observed", "missing-as-state", *MODELS)
        assert at == {name: [0.0, 0.05] if name in papers else [0.0] for name in at}
        assert found[DEFAULT.method] == Settings(**DEFAULT.as_dict() | {"gamma": gamma})
        assert found[UNPLANNED.method] == Settings(**UNPLANNED.as_dict() | {"gamma": gamma})
        assert one.spec.first_trial == 5000
    assert {settings.method for settings in tuning.settings if isinstance(settings, Settings)} == set(METHODS)
    assert len(fixed[0].problems) == 20
    assert len(tuning.problems) == 18
    assert {name for *_, name in tuning.problems} < {name for *_, name in fixed[0].problems}


def test_the_sweep_crosses_wind_and_flood() -> None:
    sweep = whole()[0][1]
    found = {
        tuple(dict(parameters).get(name, 0.1) for name in ("wind", "flood")) for _, parameters, _ in sweep.problems
    }
    assert found == {(wind, flood) for wind in (0.0, 0.1, 0.2, 0.3) for flood in (0.0, 0.1, 0.2, 0.3)}


def test_the_frontier_is_asked_for() -> None:
    assert Request(full=True, frontier=True).command(Path("out")) == "lacuna paper --full --frontier --out out"
    assert not Request().frontier


# --- the file and the section --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A small frontier, from its files to its data."""
    folder = tmp_path_factory.mktemp("frontier")
    write_small_frontier(folder)
    store = Store(tmp_path_factory.mktemp("store"))
    told: list[str] = []

    def make(what: str, wanted: Sequence[Study]) -> None:
        told.append(what)
        made(store, wanted)

    found = studies.gather(make, store.table, folder, "reduced")
    assert len(told) == 3
    return found


def test_the_file_holds_the_data_a_line_for_each_cell(data: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / FILE
    studies.write(data, path)
    text = path.read_text()
    assert json.loads(text) == json.loads(json.dumps(data))
    assert len(data["fixed"]["cells"]) == 6
    assert sum('"against_default"' in line for line in text.splitlines()) == 7
    assert data["form"] == "reduced"
    assert {one["n"] for one in data["fixed"]["cells"]} == {2}
    assert [one["n"] for one in data["tuned"]["cells"]] == [2]
    assert len(data["choices"]["rows"]) == 2 * 2


def test_the_section_shows_ranks_and_what_is_earned(data: dict[str, Any], tmp_path: Path) -> None:
    assert frontier_sections(tmp_path) == []
    studies.write(data, tmp_path / FILE)
    (section,) = frontier_sections(tmp_path)
    text = str(section.body)
    assert text == str(frontier_section(json.loads((tmp_path / FILE).read_text())))
    assert "6 problems, 2 trials each" in text
    assert "corrected by Holm&#39;s method for all 6 comparisons" in text or "for all 6 comparisons" in text
    assert "MI, planned (ours)" in text
    assert "<code>--full</code> runs more trials" in text
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(ValueError, match=r"frontier.json is damaged .*run with --frontier to make it again"):
        frontier_sections(tmp_path)


def test_marks_say_who_is_ahead_and_behind() -> None:
    values = np.arange(8.0)
    cells = [
        cell("mcar:0.2", mi_planned=values, last_observed=values + 1, random_action=values - 1, optimum=values + 2)
    ]
    found = as_data(cells)
    shown = {"form": "full", "default": DEFAULT_NAME, "yardsticks": list(KNOWING), "fixed": found,
             "tuned": {"draws": 2, "fresh": 3} | found}  # fmt: skip
    text = str(frontier_section(shown))
    assert "Clearly ahead of the default, of 1 problems: last-observed in 1." in text
    assert (text.count("▲"), text.count("▼")) == (3, 3)
    assert "--full" not in text
    none = as_data([cell("mcar:0.2", mi_planned=values, random_action=values - 1)])
    text = str(frontier_section(shown | {"fixed": none}))
    assert "No method is clearly ahead of the default in any of 1 problems." in text
