"""From a table of runs to what a report says: series, choices, intervals, findings, and two stores compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import study_rows
from lacuna.report.findings import on_differences, on_leaders, on_scores
from lacuna.study.outcomes import MOST_SHOWN, PER_EPISODE, PER_STEP, Outcomes
from lacuna.study.statistics import mean_interval, paired_difference, tasks_interquartile_mean
from lacuna.study.store_comparison import compare_stores
from lacuna.study.summaries import Scores, curves, differences, leaders, means, paired, trial_curves, with_intervals

RATES = tuple({"missingness": name} for name in ("mcar:0.6", "none", "mcar:0.05", "mcar:0.2"))


def test_rates_become_numbers_and_sort_as_such() -> None:
    found = Outcomes.of(study_rows.study({"mine.agents:Mine": 3.0}, RATES))
    assert found.tasks == ["none", "mcar:0.05", "mcar:0.2", "mcar:0.6"]
    rates = dict(found.runs.select("missingness", "rate").iter_rows())
    assert rates == {"none": 0.0, "mcar:0.05": 0.05, "mcar:0.2": 0.2, "mcar:0.6": 0.6}


@pytest.mark.parametrize("other", ["bursts:0.1,0.3", "fog:0.2", "mine.masks:fog"])
def test_mechanisms_that_differ_in_more_than_a_rate_are_categories(other: str) -> None:
    found = Outcomes.of(study_rows.study({"a": 3.0}, ({"missingness": "mcar:0.2"}, {"missingness": other})))
    assert found.runs["rate"].null_count() == found.runs.height


def test_places_are_named_by_what_differs() -> None:
    tasks: tuple[dict[str, Any], ...] = ({}, {"parameters": "stay=True"}, {"steps": 2000}, {"first_observed": False})
    found = Outcomes.of(study_rows.study({"a": 3.0}, tasks))
    assert set(found.places) == {
        "a world, first state seen, 1,000 steps", "a world (stay=True), first state seen, 1,000 steps",
        "a world, first state seen, 2,000 steps", "a world, first state hidden too, 1,000 steps",
    }  # fmt: skip
    assert all(task.endswith(", mcar:0.2") for task in found.tasks)


def test_series_are_named_by_the_settings_that_differ() -> None:
    rows = [study_rows.row("m", 1.0, 0, K=K, alpha=0.1) for K in (1, 10)] + [study_rows.row("other", 1.0, 0, alpha=0.5)]
    found = Outcomes.of(study_rows.table(rows))
    assert [one.name for one in found.series] == ["m, K = 1", "m, K = 10", "other"]


def test_yardsticks_come_last_and_are_no_methods() -> None:
    found = Outcomes.of(study_rows.study({"optimum": 9.0, "qmdp": 8.0, "zeta": 1.0}))
    assert [(one.name, one.yardstick, one.best) for one in found.series] == [
        ("zeta", False, False), ("qmdp", True, False), ("optimum", True, True),
    ]  # fmt: skip
    assert found.methods == ["zeta"]


def grid(trials: int) -> pl.DataFrame:
    """Alpha 0.1 is best on the first half of trials, 0.2 on the others."""
    alphas = [i / 10 for i in range(1, MOST_SHOWN + 2)]
    half = max(1, trials // 2)
    best = {trial: 0.1 if trial < half else 0.2 for trial in range(trials)}
    return study_rows.table(
        study_rows.row("m", 5.0 if alpha == best[trial] else 1.0, trial, alpha=alpha)
        for alpha in alphas
        for trial in range(trials)
    )


def test_of_a_large_grid_the_best_is_chosen_on_some_trials_and_shown_on_others() -> None:
    found = Outcomes.of(grid(6))
    assert found.tuning == (0, 1, 2)
    assert set(found.runs["trial"]) == {3, 4, 5}
    assert set(found.runs["alpha"]) == {0.1}
    assert means(found, PER_EPISODE)["mean"].to_list() == [1.0]
    assert "on trials 0 to 2, and shown on trials 3 to 5" in found.how_chosen()
    assert found.chosen is not None
    assert found.chosen["settings"].to_list() == [MOST_SHOWN + 1]


def test_with_a_single_trial_the_choice_is_said_to_flatter() -> None:
    found = Outcomes.of(grid(1))
    assert means(found, PER_EPISODE)["mean"].to_list() == [5.0]
    assert "flatters" in found.how_chosen()


def test_of_a_run_noted_twice_the_one_with_the_curve_counts() -> None:
    empty: dict[str, Any] = {name: [] for name in study_rows.row("m", 1.0, 0) if name.startswith("curve_")}
    runs = study_rows.table([study_rows.row("m", 1.0, 0, id="0" * 24) | empty, study_rows.row("m", 1.0, 0)])
    found = Outcomes.of(runs)
    assert found.runs.height == 1
    assert found.runs["curve_step"].list.len().to_list() == [3]


def test_rewards_per_step_come_first_if_some_run_completed_no_episode() -> None:
    stuck: dict[str, Any] = {"episodes": 0, "mean_total_reward": None, "mean_bad_steps": None, "mean_path_length": None}
    stuck |= {"open_steps": 1000, "open_reward": -7.0}
    runs = study_rows.table([study_rows.row("m", 1.0, 0), study_rows.row("m", 1.0, 1, **stuck)])
    found = Outcomes.of(runs)
    assert found.measures == (PER_STEP, PER_EPISODE)
    assert sorted(found.values(PER_EPISODE)["value"]) == [-7.0, 1.0]


def test_means_and_differences_are_those_of_the_statistics() -> None:
    found = Outcomes.of(study_rows.study({"a": 3.0, "b": 2.0}, RATES))
    for at in means(found, PER_EPISODE).iter_rows(named=True):
        here = found.runs.filter(task=at["task"], series=at["series"])["mean_total_reward"].to_list()
        assert (at["mean"], at["low"], at["high"]) == pytest.approx(tuple(mean_interval(here)[:3]))
    for at in differences(found, PER_EPISODE, "b").iter_rows(named=True):
        a, b = (found.runs.filter(task=at["task"], series=name)["mean_total_reward"].to_list() for name in "ab")
        assert (at["mean"], at["low"], at["high"]) == pytest.approx(tuple(paired_difference(a, b)[:3]))
        assert at["series"] == "a"


def test_equal_values_are_of_unknown_spread() -> None:
    at = means(Outcomes.of(study_rows.study({"a": 0.1}, spread=0.0, trials=7)), PER_EPISODE).row(0, named=True)
    assert (at["low"], at["high"]) == (None, None)
    assert at["mean"] == pytest.approx(0.1)
    assert at["note"] == "the same in all 7 trials, so of unknown spread"


def test_means_have_the_intervals_of_the_statistics() -> None:
    rng = np.random.default_rng(2)
    groups = {"calm": rng.normal(size=9), "equal": np.full(9, 0.1), "nearly": 1e6 + 1e-9 * rng.normal(size=9)}
    table = pl.DataFrame([(name, x) for name, of in groups.items() for x in of], ["name", "value"], orient="row")
    for name, *found in with_intervals(table, ["name"]).iter_rows():
        assert found == pytest.approx(list(mean_interval(groups[name])))


def test_a_trial_that_got_stuck_is_named_with_the_median() -> None:
    rows = [study_rows.row(name, far if trial == 3 else trial + bonus, trial)
            for name, bonus, far in (("a", 1.5, -5000.0), ("b", 0.0, 3.0)) for trial in range(8)]  # fmt: skip
    runs = study_rows.table(rows)
    at = means(Outcomes.of(runs), PER_EPISODE).sort("series")
    assert at["note"].to_list() == ["1 of 8 trials lies far below the others; the median is 4.5", ""]
    found = paired(Outcomes.of(runs).values(PER_EPISODE), [("a", "b")]).row(0, named=True)
    assert found["note"] == "1 of 8 trials lies far below the others; the median is 1.5"
    assert not found["clear"]


def test_a_curve_ends_with_the_reward_per_step_of_the_run() -> None:
    found = Outcomes.of(study_rows.study({"a": 3.0, "b": 2.0}))
    last = curves(trial_curves(found, PER_STEP)).filter(x=study_rows.STEPS).sort("series")
    whole = means(found, PER_STEP).sort("series")
    assert last["mean"].to_list() == pytest.approx(whole["mean"].to_list())
    assert last["low"].to_list() == pytest.approx(whole["low"].to_list())


def test_only_trials_in_common_are_paired() -> None:
    rows = [study_rows.row("a", float(trial), trial) for trial in (0, 1, 2)]
    rows += [study_rows.row("b", trial - 1.0, trial) for trial in (1, 2, 3)]
    values = Outcomes.of(study_rows.table(rows)).values(PER_EPISODE)
    found = paired(values, [("a", "b"), ("a", "nobody")]).row(0, named=True)
    assert (found["n"], found["mean"], found["low"], found["high"]) == (2, 1.0, None, None)
    # Two equal differences are no evidence: both have one sign by chance as often as not.
    assert (found["p"], found["clear"]) == (0.5, False)
    assert found["note"] == "the same in all 2 trials, so of unknown spread"


def test_a_method_is_called_best_seldom_if_none_is() -> None:
    """By chance alone in at most 5 % of studies; tolerance: four standard errors."""
    rng, n, wrong = np.random.default_rng(5), 400, 0
    for _ in range(n):
        values = pl.DataFrame(
            [(task, series, trial, rng.normal()) for task in "xyz" for series in "abcd" for trial in range(6)],
            {"task": pl.String, "series": pl.String, "trial": pl.Int64, "value": pl.Float64}, orient="row",
        )  # fmt: skip
        wrong += any(leaders(values, list("abcd")).values())
    assert wrong / n <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / n)


def test_who_is_far_ahead_is_called_best_and_who_is_not_is_not() -> None:
    found = Outcomes.of(study_rows.study({"a": 30.0, "b": 2.0, "optimum": 50.0}, RATES))
    best = leaders(found.values(PER_EPISODE), found.methods)
    assert set(best.values()) == {"a"}
    assert on_leaders(best) == "a is clearly best in 4 of 4 tasks"
    level = Outcomes.of(study_rows.study({"a": 2.0, "b": 2.0}, RATES))
    assert set(leaders(level.values(PER_EPISODE), level.methods).values()) == {None}
    told = on_differences(differences(level, PER_EPISODE, "b"), "b", level.methods)
    assert told == "No clear difference from b in any of 4 tasks"


def test_scores_go_from_the_lowest_method_to_the_optimum() -> None:
    found = Outcomes.of(study_rows.study({"a": 30.0, "b": 20.0, "optimum": 40.0}, RATES))
    scores = Scores(found, PER_EPISODE)
    assert scores.to_best
    averages = {name: scores.of[name].mean(axis=0) for name in scores.of}
    assert averages["b"] == pytest.approx(np.zeros(4), abs=1e-12)
    assert averages["optimum"] == pytest.approx(np.ones(4))
    assert scores.leader(found.methods) == "a"
    assert on_scores(scores, found).startswith("Over 4 tasks a scores clearly highest: 0.5")
    without = Scores(Outcomes.of(study_rows.study({"a": 30.0, "b": 20.0}, RATES)), PER_EPISODE)
    assert not without.to_best
    assert without.of["a"].mean(axis=0) == pytest.approx(np.ones(4))


def test_a_profile_falls_and_is_the_share_of_runs() -> None:
    scores = Scores(Outcomes.of(study_rows.study({"a": 22.0, "b": 20.0, "c": 21.0}, RATES)), PER_EPISODE)
    found = scores.profile()
    for name, of in scores.of.items():
        here = found.filter(series=name)
        assert here["mean"].to_list() == sorted(here["mean"], reverse=True)
        assert here.filter(x=0.5)["mean"].item() == pytest.approx((of >= 0.5).mean())


def test_tasks_that_not_all_methods_have_are_left_out_of_scores() -> None:
    runs = study_rows.study({"a": 30.0, "b": 20.0}, RATES)
    gone = runs.filter(~((pl.col("missingness") == "none") & (pl.col("method") == "b")))
    scores = Scores(Outcomes.of(gone), PER_EPISODE)
    assert "none" not in scores.tasks
    assert (len(scores.tasks), scores.left_out) == (3, 1)


def test_the_interquartile_mean_over_tasks_holds_the_truth_as_often_as_it_says() -> None:
    """Normal scores around fixed tasks; tolerance: four standard errors, and a little for a trimmed mean of few."""
    rng, n = np.random.default_rng(2), 400
    tasks = np.array([0.0, 0.2, 0.5, 0.7, 1.0, 1.0])
    truth = stats.trim_mean((tasks + rng.normal(size=(200_000, 6)) * 0.3).ravel(), 0.25)
    held = 0
    for _ in range(n):
        found = tasks_interquartile_mean(tasks + rng.normal(size=(10, 6)) * 0.3)
        assert found.low is not None
        assert found.high is not None
        held += int(found.low <= truth <= found.high)
    assert abs(held / n - 0.95) <= 4 * np.sqrt(0.95 * 0.05 / n) + 0.01


def test_an_empty_table_gives_a_sentence() -> None:
    with pytest.raises(ValueError, match="has no runs"):
        Outcomes.of(study_rows.table([]))


# --- two stores ---------------------------------------------------------------------------------------------------


def test_a_store_equals_itself() -> None:
    runs = study_rows.study({"a": 3.0, "b": 2.0}, RATES)
    found = compare_stores(runs, runs.with_columns(seconds=pl.lit(9.0), host=pl.lit("elsewhere")))
    assert (found.equal, found.differing.height) == (runs.height, 0)
    assert {one.finding for one in found.compared()} == {"equal"}


@pytest.mark.parametrize(
    ("column", "value"),
    [("reward_per_step", -0.0), ("curve_total", [1.0, 2.0]), ("mean_total_reward", None), ("episodes", 11)],
)
def test_a_run_that_differs_in_a_bit_is_named_with_its_column(column: str, value: object) -> None:
    runs = study_rows.table(study_rows.row("a", 0.0, trial) for trial in range(3))
    other = study_rows.table(
        study_rows.row("a", 0.0, trial) | ({column: value, "episodes": 0} if value is None and trial == 1 else
                                          {column: value} if trial == 1 else {})
        for trial in range(3)
    )  # fmt: skip
    if value is None:
        other = other.with_columns(
            mean_bad_steps=pl.when(pl.col("episodes") > 0).then("mean_bad_steps"),
            mean_path_length=pl.when(pl.col("episodes") > 0).then("mean_path_length"),
        )
    found = compare_stores(runs, other)
    assert (found.equal, found.differing.height) == (2, 1)
    assert column in found.differing["columns"].item().split(", ")
    assert column in " ".join(found.sentences(("one", "two")))


def test_what_is_in_one_store_only_is_told() -> None:
    runs = study_rows.study({"a": 3.0, "b": 2.0}, trials=4)
    found = compare_stores(runs.filter(pl.col("trial") < 3), runs.filter(pl.col("method") == "a"))
    assert found.sentences(("one", "two")) == [
        "in both: 3 runs, 3 of them equal to the bit", "only in one: 3 runs (b; trials 0 to 2)",
        "only in two: 1 run (a; trial 3)",
    ]  # fmt: skip


def test_a_method_at_one_setting_in_each_store_is_paired_though_it_changed() -> None:
    first = study_rows.table(study_rows.row("m", 1.0 + trial, trial, alpha=0.1) for trial in range(4))
    second = study_rows.table(study_rows.row("m", 3.0 + trial, trial, alpha=0.5) for trial in range(4))
    (one,) = compare_stores(first, second).compared()
    assert one.method == "m, alpha = 0.1 → m, alpha = 0.5"
    assert (one.first, one.second, one.apart.estimate, one.apart.n) == (2.5, 4.5, 2.0, 4)
    assert one.finding == "no clear difference; the same in all 4 trials, so of unknown spread"
    (fewer,) = compare_stores(first.filter(pl.col("trial") > 0), second).compared()
    assert (fewer.first, fewer.second, fewer.apart.n) == (3.0, 5.0, 3)


def test_of_several_settings_only_equal_ones_are_paired() -> None:
    first = study_rows.table(study_rows.row("m", a, t, alpha=a) for a in (0.1, 0.5) for t in range(3))
    second = study_rows.table(study_rows.row("m", 2 * a, t, alpha=a) for a in (0.5, 0.9) for t in range(3))
    (one,) = compare_stores(first, second).compared()
    assert (one.method, one.apart.estimate) == ("m, alpha = 0.5", 0.5)
