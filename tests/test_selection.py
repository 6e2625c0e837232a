"""Which settings are chosen, what is said of them, and how far the published way flatters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import integrate, stats

from lacuna.agent.settings import Settings
from lacuna.run.measures import episode_means
from lacuna.run.problems import Problem
from lacuna.run.run import Run
from lacuna.study.runner import execute
from lacuna.study.selection import (
    COLUMNS,
    FIGURES,
    HYPER_PARAMETERS,
    MEASURES,
    MEASURES_WITH_OPEN,
    Columns,
    choose,
    chosen_runs,
    with_open_episode,
)
from lacuna.study.spec import Study
from lacuna.study.statistics import mean_interval
from lacuna.study.store import SCHEMA

PLAIN: dict[str, Any] = {
    "world": "lake", "parameters": "", "missingness": "mcar:0.4", "first_observed": True, "steps": 1_000,
    "method": "last-observed", "K": None, "p_shuffle": 0.0, "vote": "sampled", "update": "sequential",
    "kappa": None, "smoothing": None, "parents": 0.0, "optimism": 0.0, "budget": None, "look": 0.0,
    "cycles": None, "q_table": "shared", "assumed": None, "evidence": "usual", "lag": 0,
    "alpha": 0.1, "gamma": 1.0, "epsilon": 0.0, "trial": 0,
    "episodes": 10, "mean_total_reward": 50.0, "mean_bad_steps": 1.0, "mean_path_length": 20.0,
    "open_reward": 0.0, "open_bad_steps": 0, "open_steps": 0,
    "cut_episodes": 0, "cut_reward": 0.0, "cut_bad_steps": 0, "cut_steps": 0,
}  # fmt: skip
NO_EPISODE: dict[str, Any] = {
    "episodes": 0, "mean_total_reward": None, "mean_bad_steps": None, "mean_path_length": None,
    "open_reward": -1_000.0, "open_bad_steps": 0, "open_steps": 1_000,
}  # fmt: skip


def runs(rewards: list[float | None], **changes: Any) -> list[dict[str, Any]]:
    """One run per reward; None for a run that completed no episode."""
    return [
        PLAIN | {"trial": i, "mean_total_reward": reward} | (NO_EPISODE if reward is None else {}) | changes
        for i, reward in enumerate(rewards)
    ]


def frame(*groups: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([row for group in groups for row in group], infer_schema_length=None)


def chosen(choice: pl.DataFrame) -> tuple[Any, ...]:
    assert choice.height == 1
    return choice.select(HYPER_PARAMETERS).row(0)


def reported(
    table: pl.DataFrame, choice: pl.DataFrame, trials: Iterable[int], measure: str = MEASURES[0]
) -> pl.DataFrame:
    """The choice with the mean and the interval of a measure over some trials."""
    runs = chosen_runs(table, choice, trials).group_by(COLUMNS.setting).agg(pl.col(measure))
    found = choice.join(runs, on=COLUMNS.setting, nulls_equal=True, maintain_order="left")
    intervals = [mean_interval(values)._asdict() for values in found[measure]]
    return found.hstack(pl.DataFrame(intervals))


# The open episode


def test_the_open_episode_is_counted_as_the_run_itself_counts_it() -> None:
    problem = Problem.named("lake", "mcar:0.8")
    seen = set()
    for seed, steps in ((0, 3), (1, 500), (2, 5_000)):
        run = Run(problem.mdp, problem.mechanism, Settings("last-observed"), seed=seed)
        run.advance(steps)
        figures = run.figures()
        row = with_open_episode(pl.DataFrame([{k: figures[k] for k in PLAIN if k in figures}])).row(0, named=True)
        expected = episode_means(run.snapshot()[:-1], count_open=True)
        assert {k: row[f"{k}_with_open"] for k in expected} == pytest.approx(expected)
        seen.add((figures["episodes"] > 0, figures["open_steps"] > 0))
    assert {(False, True), (True, True)} <= seen


@given(
    st.lists(st.tuples(st.integers(-100, 100), st.integers(0, 9), st.integers(1, 99)), max_size=6),
    st.tuples(st.integers(-100, 100), st.integers(0, 9), st.integers(0, 99)),
)
def test_counting_the_open_episode_is_averaging_one_episode_more(
    episodes: list[tuple[int, int, int]], last: tuple[int, int, int]
) -> None:
    row: dict[str, Any] = dict.fromkeys(FIGURES, 0) | {"episodes": len(episodes)}
    row |= dict(zip(MEASURES, np.mean(episodes, axis=0).tolist() if episodes else [None] * 3, strict=True))
    row |= dict(zip(("open_reward", "open_bad_steps", "open_steps"), last if last[2] else (0, 0, 0), strict=True))
    every = [*episodes, last] if last[2] else episodes
    found = with_open_episode(pl.DataFrame([row])).select(MEASURES_WITH_OPEN).row(0)
    assert found == (pytest.approx(np.mean(every, axis=0)) if every else (None, None, None))


def test_figures_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="mean_total_reward must be null where no episode was completed"):
        with_open_episode(frame(runs([None, 3.0], mean_total_reward=80.0)))
    with pytest.raises(ValueError, match="mean_path_length must be null where no episode was completed"):
        with_open_episode(frame(runs([3.0], mean_path_length=None)))


# What is chosen


def test_the_best_mean_reward_is_chosen() -> None:
    table = frame(
        runs([70.0, 74.0, 72.0], alpha=0.1, mean_bad_steps=9.0),
        runs([90.0, 60.0, 63.0], alpha=1.0, mean_bad_steps=0.0),
    )
    best = choose(table, range(3))
    assert chosen(best) == (0.1, 1.0, 0.0, 0.0)
    assert best.select("settings", "settings_left_out", "selection_mean", "without_episode", "missing").row(0) == (
        2, 0, 72.0, 0, [],
    )  # fmt: skip
    assert chosen_runs(table, best, range(3))["mean_bad_steps"].to_list() == [9.0] * 3
    assert chosen(choose(table, range(3), "mean_bad_steps"))[0] == 0.1


def test_every_problem_and_every_method_as_shown_gets_its_own_choice() -> None:
    others: list[dict[str, Any]] = [
        {},
        {"world": "taxi"},
        {"parameters": "wind=0.2"},
        {"parameters": "continuing=True"},
        {"missingness": "mcar:0.8"},
        {"steps": 500},
        {"first_observed": False},
        {"method": "mi-synthetic", "K": 1},
        {"method": "mi-synthetic", "K": 10},
        {"method": "mi-synthetic", "K": 10, "p_shuffle": 0.1},
        {"method": "mi-synthetic", "K": 10, "vote": "majority"},
        {"method": "mi-synthetic", "K": 10, "update": "simultaneous"},
        {"method": "mi-available", "K": 10, "kappa": 2.0},
        {"method": "mi-available", "K": 10, "smoothing": 0.1},
        {"method": "mi-available", "K": 10, "parents": 0.3},
        {"method": "mi-synthetic", "K": 10, "q_table": "own"},
        {"method": "mi-chained", "K": 10, "cycles": 1},
        {"method": "assumed-value", "assumed": 0.2},
        {"method": "mi-available", "K": 10, "evidence": "outcomes"},
    ]
    groups = []
    for i, other in enumerate(others):
        for alpha, gamma, epsilon, optimism in ((0.1, 1.0, 0.0, 0.0), (1.0, 0.5, 0.05, 0.2)):
            reward = float(i) if (optimism > 0) == bool(i % 2) else -1.0
            tried = {"alpha": alpha, "gamma": gamma, "epsilon": epsilon, "optimism": optimism}
            groups.append(runs([reward] * 2, **tried, **other))
    best = choose(frame(*groups), [0, 1])
    assert best.height == len(others) == 19
    assert sorted(best["selection_mean"]) == [float(i) for i in range(19)]
    assert all((row["optimism"] > 0) == bool(row["selection_mean"] % 2) for row in best.iter_rows(named=True))


def test_which_columns_make_a_problem_and_which_are_chosen_can_be_said() -> None:
    table = frame(runs([1.0, 2.0]), runs([3.0, 4.0], parameters="stay=True"), runs([9.0, 9.0], parameters="wind=0.5"))
    assert choose(table, [0, 1]).height == 3
    columns = Columns(problem=("world", "missingness", "first_observed", "steps"), tuned=("alpha", "parameters"))
    best = choose(table, [0, 1], columns=columns)
    assert best.select("alpha", "parameters", "settings").rows() == [(0.1, "wind=0.5", 3)]
    assert chosen_runs(table, best, [0, 1], columns)["mean_total_reward"].to_list() == [9.0, 9.0]


def test_a_real_study_is_read_as_it_is_stored() -> None:
    study = Study.parse("""
        name = "small"
        steps = 400
        trials = 4
        missingness = ["mcar:0.2"]
        worlds = [{name = "lake"}, {name = "lake", stay = true}, {name = "lake", continuing = true}]
        methods = [{name = "last-observed"}, {name = "mi-synthetic", K = [1, 5]}]
        grid = {alpha = [0.1, 1.0], gamma = [0.5, 0.9]}
    """)
    table = pl.DataFrame([execute(run) for run in study.runs()], schema=SCHEMA)
    best = choose(table, [0, 1], MEASURES_WITH_OPEN[0])
    assert best.height == 3 * 3
    assert best["settings"].unique().to_list() == [4]
    assert best["missing"].list.len().sum() == 0
    choice = best.row(0, named=True)
    rows = table.filter(pl.col("trial") > 1, *(pl.col(name).eq_missing(choice[name]) for name in COLUMNS.setting))
    assert rows.height == 2
    assert reported(table, best, [2, 3], MEASURES_WITH_OPEN[0])["estimate"][0] == pytest.approx(
        np.mean([
            (r["open_reward"] + r["episodes"] * (r["mean_total_reward"] or 0)) / (r["episodes"] + (r["open_steps"] > 0))
            for r in rows.iter_rows(named=True)
        ])
    )  # fmt: skip


def test_a_setting_with_a_run_that_completed_no_episode_ranks_last_whatever_its_mean() -> None:
    table = frame(runs([99.0, 99.0, None], alpha=1.0), runs([-500.0, -500.0, -600.0], alpha=0.1))
    assert chosen(choose(table, range(3)))[0] == 0.1
    assert chosen(choose(table, range(3), MEASURES_WITH_OPEN[0]))[0] == 0.1


def test_a_long_open_episode_with_good_reward_does_not_make_up_for_completing_none() -> None:
    generous = runs([None, None], alpha=1.0, open_reward=5_000.0)
    assert chosen(choose(frame(generous, runs([10.0, 10.0])), [0, 1], MEASURES_WITH_OPEN[0]))[0] == 0.1


def test_where_every_setting_has_such_a_run_the_mean_is_null_and_the_number_of_them_is_told() -> None:
    table = frame(runs([99.0, None, None], alpha=0.1), runs([50.0, 60.0, None], alpha=1.0))
    best = choose(table, range(3))
    assert chosen(best)[0] == 1.0
    assert best.select("without_episode", "selection_mean").row(0) == (1, None)
    assert choose(frame(runs([None, None])), [0, 1])["without_episode"].to_list() == [2]


def test_ties_go_to_the_smaller_alpha_gamma_epsilon_and_optimism() -> None:
    settings = [(a, g, e, o) for a in (0.1, 1.0) for g in (0.0, 0.5) for e in (0.0, 0.05) for o in (0.0, 0.2)]
    groups = [
        runs([0.1, 0.2, 0.7], **dict(zip(HYPER_PARAMETERS, setting, strict=True))) for setting in reversed(settings)
    ]
    while groups:
        assert chosen(choose(frame(*groups), range(3))) == settings[0]
        settings.pop(0)
        groups.pop()


def test_the_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    groups = [
        runs(rng.normal(size=5).tolist(), alpha=alpha, method=method)
        for alpha in (0.1, 0.5, 1.0)
        for method in ("last-observed", "missing-as-state")
    ]
    table = frame(*groups)
    best = choose(table, [0, 1])
    for seed in range(5):
        shuffled = table.sample(fraction=1.0, shuffle=True, seed=seed)
        assert_frame_equal(choose(shuffled, [0, 1]), best, check_exact=True)
        assert_frame_equal(chosen_runs(shuffled, best, [2, 3]), chosen_runs(table, best, [2, 3]), check_exact=True)


def test_a_setting_that_lacks_a_trial_cannot_win_by_a_lucky_one() -> None:
    table = frame(runs([50.0, 52.0, 51.0]), runs([99.0], alpha=1.0))
    best = choose(table, range(3))
    assert chosen(best)[0] == 0.1
    assert best.select("settings", "settings_left_out", "missing").row(0) == (2, 1, [])
    short = choose(table, range(4))
    assert chosen(short)[0] == 0.1
    assert short["missing"].to_list() == [[3]]


def test_only_the_given_trials_count() -> None:
    table = frame(runs([1.0, 1.0, 90.0], alpha=0.1), runs([2.0, 2.0, 0.0], alpha=1.0))
    assert chosen(choose(table, range(3)))[0] == 0.1
    best = choose(table, [0, 1])
    assert chosen(best)[0] == 1.0
    assert best["selection_mean"].item() == 2.0


# What is reported


def test_tuning_trials_choose_and_fresh_trials_report() -> None:
    table = frame(runs([70.0, 70.0, 10.0, 20.0, 30.0], alpha=0.1), runs([60.0, 60.0, 99.0, 99.0, 99.0], alpha=1.0))
    best = choose(table, [0, 1])
    assert chosen(best)[0] == 0.1
    assert best["selection_mean"].item() == 70.0
    fresh = chosen_runs(table, best, [2, 3, 4])
    assert fresh.select("trial", "mean_total_reward").rows() == [(2, 10.0), (3, 20.0), (4, 30.0)]
    assert chosen_runs(table, best, [7]).height == 0


def test_a_stuck_run_looks_good_as_published_and_bad_with_its_open_episode() -> None:
    lucky = {"episodes": 5, "open_steps": 900, "open_reward": -900.0}
    table = frame(runs([95.0] * 4, alpha=1.0, **lucky), runs([60.0] * 4, alpha=0.1))
    assert chosen(choose(table, [0, 1]))[0] == 1.0
    assert chosen(choose(table, [0, 1], MEASURES_WITH_OPEN[0]))[0] == 0.1
    alone = table.filter(pl.col("alpha") == 1.0)
    fresh = chosen_runs(alone, choose(alone, [0, 1]), [2, 3])
    assert fresh[MEASURES_WITH_OPEN[0]].to_list() == pytest.approx([(5 * 95 - 900) / 6] * 2)


def test_the_runs_of_the_chosen_settings_come_out_paired_by_trial() -> None:
    shown: list[dict[str, Any]] = [{"method": "mi-synthetic", "K": 5}, {"method": "last-observed"}]
    table = frame(*(runs([a, a, 5.0, 6.0, 7.0], alpha=a, **method) for a in (0.1, 1.0) for method in shown))
    choice = choose(table, [0, 1])
    assert choice["alpha"].to_list() == [1.0, 1.0]
    fresh = chosen_runs(table, choice, [2, 3, 4])
    assert fresh.height == 6
    by_method = fresh.partition_by("method", as_dict=True)
    assert all(part["trial"].to_list() == [2, 3, 4] for part in by_method.values())


# Tables that cannot be used


def test_nan_missing_columns_and_contradicting_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="mean_total_reward is NaN in some run; an undefined figure must be null"):
        choose(frame(runs([1.0, math.nan])), [0])
    with pytest.raises(ValueError, match="the table of runs has no column episodes, open_steps"):
        choose(frame(runs([1.0])).drop("episodes", "open_steps"), [0])
    with pytest.raises(ValueError, match="the table of runs has no column speed"):
        choose(frame(runs([1.0])), [0], "speed")
    with pytest.raises(ValueError, match="two runs differ in their figures but not in what they are"):
        choose(frame(runs([1.0]), runs([2.0])), [0])
    with pytest.raises(ValueError, match="trials is empty"):
        choose(frame(runs([1.0])), [])


def test_a_run_noted_twice_counts_once() -> None:
    table = frame(runs([1.0, 2.0]))
    twice = pl.concat([table, table])
    assert_frame_equal(choose(twice, [0, 1]), choose(table, [0, 1]))
    assert chosen_runs(twice, choose(table, [0, 1]), [0, 1]).height == 2


def test_an_empty_table_gives_an_empty_table() -> None:
    table = frame(runs([1.0])).clear()
    assert choose(table, [0]).height == 0
    assert choose(table, [0]).columns == choose(frame(runs([1.0])), [0]).columns


# How far the published way flatters


def many_studies(studies: int, means: np.ndarray[Any, np.dtype[np.float64]], sd: float, seed: int) -> pl.DataFrame:
    """Independent studies of 24 settings with 5 tuning and 5 fresh trials, told apart by the name of a missingness."""
    rng = np.random.default_rng(seed)
    reward = means[:, None] + rng.normal(0.0, sd, size=(studies, means.size, 10))
    study, setting, trial = (index.ravel() for index in np.indices(reward.shape))
    varied = {"missingness", "alpha", "trial", "mean_total_reward"}
    return pl.DataFrame(
        {"missingness": study, "alpha": setting / 100, "trial": trial, "mean_total_reward": reward.ravel()}
    ).with_columns(
        pl.col("missingness").cast(pl.String), *(pl.lit(v).alias(k) for k, v in PLAIN.items() if k not in varied)
    )  # fmt: skip


def expected_maximum(n: int) -> float:
    """Of n standard normal numbers: the integral of x times its density."""
    return float(integrate.quad(lambda x: x * n * stats.norm.pdf(x) * stats.norm.cdf(x) ** (n - 1), -9, 9)[0])


def test_with_24_equal_settings_the_published_way_flatters_by_the_expected_maximum_and_held_out_by_nothing() -> None:
    studies, sd = 500, 10.0
    table = many_studies(studies, np.full(24, 60.0), sd, seed=1)
    choice = choose(table, range(5))
    published, held_out = (reported(table, choice, trials) for trials in (range(5), range(5, 10)))
    # The best of 24 means of 5 trials each: 1.95 standard errors, here 8.7 points, for nothing.
    optimism = expected_maximum(24) * sd / math.sqrt(5)
    assert optimism == pytest.approx(8.71, abs=0.01)
    error = sd / math.sqrt(5 * studies)
    assert published["estimate"].mean() == pytest.approx(60.0 + optimism, abs=4 * error)
    assert held_out["estimate"].mean() == pytest.approx(60.0, abs=4 * error)

    def holds(found: pl.DataFrame) -> float:
        return float(found.select(pl.lit(60.0).is_between("low", "high").mean()).item())

    off = 4 * math.sqrt(0.95 * 0.05 / studies)
    assert holds(held_out) == pytest.approx(0.95, abs=off)
    assert holds(published) < 0.75


def test_with_unequal_settings_held_out_reports_the_true_mean_of_what_it_chose() -> None:
    studies, sd = 500, 10.0
    means = np.linspace(50.0, 70.0, 24)
    table = many_studies(studies, means, sd, seed=2)
    choice = choose(table, range(5))
    published, held_out = (reported(table, choice, trials) for trials in (range(5), range(5, 10)))

    def bias(found: pl.DataFrame) -> float:
        truth = means[(found["alpha"] * 100).round().cast(pl.Int64).to_numpy()]
        return float((found["estimate"].to_numpy() - truth).mean())

    error = sd / math.sqrt(5 * studies)
    assert abs(bias(held_out)) < 4 * error
    assert bias(published) > 15 * error
