"""Short horizons: what is said of them is what the runs say, cell by cell, and no more is called clear than is."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from markupsafe import Markup
from scipy import stats

from lacuna.agent.settings import DEFAULT, UNPLANNED
from lacuna.report.chart_files import spec_of
from lacuna.study.runner import execute
from lacuna.study.selection import with_open_episode
from lacuna.study.spec import Study
from lacuna.study.store import SCHEMA
from lacuna_paper.charts import HORIZONS_DRAWN, short_horizons
from lacuna_paper.comparison import REACHABLE
from lacuna_paper.horizons import (
    BEST,
    HORIZONS,
    JUDGED,
    PLANNED,
    WITHOUT,
    Cell,
    as_data,
    cells_of,
    counts,
    gap_closed,
    judge_cells,
    judged_apart,
)
from lacuna_paper.reproduce import horizon_studies
from lacuna_paper.tables import horizons_section, outcome

NO_FIGURE = Markup("")
KINDS = ("mcar:0.2", "mcar:0.6", "bursts:0.1,0.3")


@cache
def runs() -> pl.DataFrame:
    """The reduced study with fewer trials and steps, and a world of Gymnasium beside it."""
    data = horizon_studies("reduced")[0].spec.model_dump(exclude_defaults=True)
    data |= {"steps": 2000, "trials": 3, "curve_times": [200, 500, 1000, 2000], "missingness": list(KINDS)}
    other = data | {"worlds": [{"name": "cliff-walking"}], "missingness": ["mcar:0.2"]}
    rows = [execute(run) for one in (data, other) for run in Study.from_data(one).runs()]
    return pl.DataFrame(rows, schema=SCHEMA)


def cell(ahead: dict[int, list[float]], name: str = "mcar:0.2", world: str = "lake") -> Cell:
    """Planning ahead of not planning by so much in each trial; the best possible is 5 a step."""
    n = len(next(iter(ahead.values())))
    rates = {
        PLANNED: {h: 1 + np.array(by) for h, by in ahead.items()},
        WITHOUT: {h: np.ones(n) for h in ahead},
        REACHABLE: {h: np.full(n, 4.0) for h in ahead},
        BEST: {h: np.full(n, 5.0) for h in ahead},
    }
    last = max(ahead)
    per_episode = {method: 10 * at[last] for method, at in rates.items()}
    return Cell(world, name, last, tuple(range(n)), rates, per_episode, dict.fromkeys(rates, 0))


# --- the studies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["full", "reduced"])
def test_the_studies_have_the_two_that_are_compared_what_could_be_reached_and_trials_of_their_own(form: Any) -> None:
    for study in horizon_studies(form):
        assert {DEFAULT, UNPLANNED} < set(study.settings)
        assert {REACHABLE, BEST} < {settings.method for settings in study.settings}
        assert len({settings.method for settings in study.settings}) == len(study.settings)
        assert set(study.curve) <= set(HORIZONS)
        assert study.curve[-1] == study.spec.steps
        assert study.spec.first_trial == 3000
    drawn = {(world, name) for world, names in HORIZONS_DRAWN.items() for name in names}
    problems = {(world, name) for study in horizon_studies(form) for world, _, name in study.problems}
    assert drawn <= problems if form == "full" else problems <= drawn


# --- from runs to cells --------------------------------------------------------------------------------------------


def test_a_cell_holds_what_its_runs_earned_trial_by_trial() -> None:
    table = runs()
    cells = cells_of(table.sample(fraction=1.0, shuffle=True, seed=1))
    assert [(one.world, one.missingness) for one in cells] == [
        ("lake", "mcar:0.2"), ("lake", "mcar:0.6"), ("lake", "bursts:0.1,0.3"), ("cliff-walking", "mcar:0.2"),
    ]  # fmt: skip
    for one in cells:
        assert one.methods == (PLANNED, WITHOUT, "last-observed", "mi-synthetic", REACHABLE, BEST)
        assert one.horizons == (200, 500, 1000, 2000)
        assert one.trials == (3000, 3001, 3002)
        for method in one.methods:
            mine = table.filter(world=one.world, missingness=one.missingness, method=method).sort("trial")
            for i, row in enumerate(mine.iter_rows(named=True)):
                for step, total in zip(row["curve_step"], row["curve_total"], strict=True):
                    assert one.per_step[method][step][i] == total / step
                assert one.per_step[method][2000][i] == pytest.approx(row["reward_per_step"])
            counted = with_open_episode(mine)["mean_total_reward_with_open"].to_list()
            assert one.per_episode[method].tolist() == counted
            assert one.without_episode[method] == (mine["episodes"] == 0).sum()
    assert sum(sum(one.without_episode.values()) for one in cells) < 6 * 3 * 4


def test_a_trial_that_some_method_lacks_is_left_out_so_that_all_are_paired() -> None:
    lacking = runs().filter(~((pl.col("trial") == 3001) & (pl.col("method") == BEST) & (pl.col("world") == "lake")))
    found = {(one.world, one.missingness): one for one in cells_of(lacking)}
    assert found["lake", "mcar:0.2"].trials == (3000, 3002)
    assert found["cliff-walking", "mcar:0.2"].trials == (3000, 3001, 3002)
    whole = {(one.world, one.missingness): one for one in cells_of(runs())}["lake", "mcar:0.2"]
    assert found["lake", "mcar:0.2"].per_step[PLANNED][500].tolist() == whole.per_step[PLANNED][500][[0, 2]].tolist()
    none = pl.col("trial") == pl.when(pl.col("method") == BEST).then(3000).otherwise(3001)
    assert cells_of(runs().filter(none)) == []


def test_runs_that_cannot_be_compared_are_refused() -> None:
    longer = pl.concat([runs(), runs().with_columns(steps=pl.lit(3000, pl.Int64))])
    with pytest.raises(ValueError, match="runs of different lengths"):
        cells_of(longer)
    other = runs().filter(method=WITHOUT).with_columns(smoothing=pl.lit(0.5))
    with pytest.raises(ValueError, match="a method at two settings"):
        cells_of(pl.concat([runs(), other]))
    assert cells_of(pl.DataFrame(schema=SCHEMA)) == []


# --- verdicts ------------------------------------------------------------------------------------------------------


def test_verdicts_are_corrected_over_all_cells_and_horizons() -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(size=(4, 8))
    cells = [
        cell({2000: list(5 + noise[0]), 10_000: list(0.9 + noise[1] - noise[1].mean())}),
        cell({2000: list(-5 + noise[2]), 10_000: list(noise[3] - noise[3].mean())}, "mcar:0.6"),
    ]
    verdicts = judge_cells(cells)
    assert list(verdicts) == [
        ("lake", "mcar:0.2", 2000), ("lake", "mcar:0.2", 10_000),
        ("lake", "mcar:0.6", 2000), ("lake", "mcar:0.6", 10_000),
    ]  # fmt: skip
    for (_, missingness, horizon), found in verdicts.items():
        one = next(one for one in cells if one.missingness == missingness)
        test = stats.ttest_rel(one.per_step[PLANNED][horizon], one.per_step[WITHOUT][horizon])
        assert found.p == pytest.approx(test.pvalue)
        assert found.p_holm >= found.p
    # By itself the second would be clear; as the third of four it counts twice.
    second = verdicts["lake", "mcar:0.2", 10_000]
    assert second.p_holm == pytest.approx(2 * second.p)
    assert [found.outcome for found in verdicts.values()] == [
        "clearly ahead", "clearly ahead" if second.p_holm <= 0.05 else "level", "clearly behind", "level",
    ]  # fmt: skip
    scores = counts(verdicts)
    assert scores[2000] == {"clearly ahead": 1, "level": 0, "clearly behind": 1}
    assert sum(scores[10_000].values()) == 2


def test_correction_takes_back_what_one_test_alone_would_call_clear() -> None:
    # t = 3 with 4 degrees of freedom: p = 0.04.
    values = 3 * np.sqrt(1 / 5) + np.array([-1.0, -1.0, 0.0, 1.0, 1.0])
    alone = judge_cells([cell({2000: list(values)})])
    assert [found.outcome for found in alone.values()] == ["clearly ahead"]
    two = judge_cells([cell({2000: list(values)}), cell({2000: list(-values)}, "mcar:0.6")])
    assert [found.outcome for found in two.values()] == ["level", "level"]
    horizons = judge_cells([cell({2000: list(values), 10_000: list(-values)})])
    assert [found.outcome for found in horizons.values()] == ["level", "level"]
    assert [found.outcome for found in judged_apart(horizons).values()] == ["clearly ahead", "clearly behind"]
    assert judged_apart(alone) == alone


def test_only_the_horizons_that_are_judged_are_and_without_the_two_there_is_no_verdict() -> None:
    one = cell({200: [1.0, 2.0, 1.5], 2000: [1.0, 2.0, 1.5], 50_000: [1.0, 2.0, 1.5]})
    assert [horizon for *_, horizon in judge_cells([one])] == [2000, 50_000]
    assert set(JUDGED) <= set(HORIZONS)
    alone = one._replace(per_step={PLANNED: one.per_step[PLANNED]}, per_episode={PLANNED: one.per_episode[PLANNED]})
    assert judge_cells([alone]) == {}
    assert gap_closed(alone) is None


def test_the_share_of_the_gap_is_that_of_the_way_to_what_could_be_reached() -> None:
    found = gap_closed(cell({2000: [1.5, 1.0, 2.0]}))
    assert found is not None
    assert found.estimate == pytest.approx(0.5)
    assert found.low is not None
    one = cell({2000: [1.5, 1.0, 2.0]})
    level = one._replace(per_episode=dict(one.per_episode) | {REACHABLE: one.per_episode[WITHOUT]})
    assert gap_closed(level) is None


# --- as data, as a chart, in words ---------------------------------------------------------------------------------


def test_the_data_say_what_the_cells_say() -> None:
    cells = cells_of(runs())
    data = json.loads(json.dumps(as_data(cells)))
    assert (data["planned"], data["unplanned"], data["steps"], data["tests"]) == ("mi-planned", "mi-available", 2000, 4)
    assert sum(data["counts"]["2000"].values()) == 4
    for one, told in zip(cells, data["cells"], strict=True):
        assert (told["world"], told["missingness"], told["trials"]) == (one.world, one.missingness, 3)
        for at in told["horizons"]:
            h = at["horizon"]
            assert ("ahead" in at) == (h == 2000)
            planned, best, reachable = (one.per_step[name][h] for name in (PLANNED, BEST, REACHABLE))
            assert at["reward_per_step"][PLANNED]["mean"] == pytest.approx(planned.mean())
            error = planned.std(ddof=1) / np.sqrt(3)
            assert at["reward_per_step"][PLANNED]["standard_error"] == pytest.approx(error)
            assert at["regret_to_best"][PLANNED]["mean"] == pytest.approx((best - planned).mean())
            assert at["regret_to_reachable"][PLANNED]["mean"] == pytest.approx((reachable - planned).mean())
            assert BEST not in at["regret_to_best"]
        assert set(told["reward_per_episode"]) == set(one.methods)
    assert as_data([])["cells"] == []


def test_the_chart_shows_regret_on_a_logarithmic_axis() -> None:
    cells = cells_of(runs())
    spec: Any = spec_of(short_horizons(cells))
    assert [panel["title"]["text"] for panel in spec["concat"]] == [
        "lake, mcar:0.2", "lake, mcar:0.6", "lake, bursts:0.1,0.3", "cliff-walking, mcar:0.2",
    ]  # fmt: skip
    x = spec["concat"][0]["layer"][0]["encoding"]["x"]
    assert (x["scale"]["type"], x["scale"]["domain"]) == ("log", [200, 2000])
    assert x["axis"]["values"] == [200, 500, 1000, 2000]
    rows = [row for row in spec["datasets"]["points"] if row["panel"] == "lake, mcar:0.6" and row["x"] == 500]
    names = {"mi-planned": "MI K=10, planned (ours)", "mi-available": "MI K=10, available cases (ours)"}
    assert len(rows) == 5
    for method, title in names.items():
        (row,) = (row for row in rows if row["series"] == title)
        regret = cells[1].per_step[BEST][500] - cells[1].per_step[method][500]
        assert row["mean"] == pytest.approx(regret.mean(), rel=1e-3)
        reach = stats.t.ppf(0.975, 2) * regret.std(ddof=1) / np.sqrt(3)
        # Both are rounded to four digits.
        assert row["high"] - row["low"] == pytest.approx(2 * reach, abs=0.011)
    assert short_horizons([]) is None
    assert short_horizons([cell({200: [1.0, 2.0]}, "whole:0.5")]) is None


def test_the_title_and_the_text_count_what_is_ahead_and_name_what_is_behind() -> None:
    many = np.linspace(4, 6, 8)
    cells = [
        cell({2000: list(many), 10_000: list(many)}),
        cell({2000: list(-many), 10_000: list(many - 5)}, "mcar:0.6", "taxi"),
    ]
    verdicts = judge_cells(cells)
    assert outcome(verdicts) == (
        "Planning after 2,000 steps is clearly ahead in 1 of 2 problems, clearly behind in 1; "
        "after 10,000 steps is clearly ahead in 1 of 2 problems, clearly behind in none"
    )
    text = horizons_section(cells, verdicts, NO_FIGURE, reduced=True)
    assert "Behind: taxi mcar:0.6 after 2,000." in text
    assert "corrected by Holm's method for all 4 differences of the table" in text
    assert "<code>--full</code> runs more trials" in text
    assert "--full" not in horizons_section(cells, verdicts, NO_FIGURE, reduced=False)
    assert "No episode was completed" not in text
    stuck = [cells[0]._replace(without_episode={PLANNED: 2, WITHOUT: 0, BEST: 1}), cells[1]]
    told = horizons_section(stuck, verdicts, NO_FIGURE, reduced=False)
    assert "No episode was completed by mi-planned in 2 of 8 trials of lake mcar:0.2." in told
    assert "Behind" not in horizons_section(cells[:1], judge_cells(cells[:1]), NO_FIGURE, reduced=False)
    values = 3 * np.sqrt(1 / 5) + np.array([-1.0, -1.0, 0.0, 1.0, 1.0])
    either = [cell({2000: list(-values), 10_000: list(values - values.mean())})]
    told = horizons_section(either, judge_cells(either), NO_FIGURE, reduced=False)
    assert "Corrected for each horizon by itself, lake mcar:0.2 after 2,000 would be clearly behind. The gap" in told
    assert outcome({}) == "Regret at short horizons"
    assert "not run" in horizons_section([], {}, NO_FIGURE, reduced=True)
