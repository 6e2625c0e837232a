"""Ours against the others: the right runs are compared, the best is the best, shares are of the right gap."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import paper_runs
from lacuna.agent.methods import YARDSTICKS
from lacuna.agent.settings import UNPLANNED
from lacuna.study.runner import execute
from lacuna.study.selection import with_open_episode
from lacuna.study.spec import Study
from lacuna.study.store import SCHEMA
from lacuna_paper.comparison import KNOWING, OURS, PAPERS, REACHABLE, Comparison, against_tuned, against_untuned
from lacuna_paper.evidence import Evidence, Shown
from lacuna_paper.reproduce import beyond_studies
from lacuna_paper.verdicts import Basis

REWARD = "mean_total_reward_with_open"
V2 = Shown("last-observed")
MI = Shown("mi-synthetic", 10, 0.1)
FOUR = Basis("episodic", "as-published", 4)


def test_the_paper_has_sixteen_methods_and_ours_is_none_of_them() -> None:
    assert len(set(PAPERS)) == 16
    assert OURS not in PAPERS
    assert set(KNOWING) == set(YARDSTICKS) - {"planned-observed"}


def test_a_comparison_is_what_its_numbers_say() -> None:
    values = {
        V2: np.array([60.0, 62.0, 64.0]),
        MI: np.array([70.0, 74.0, 72.0]),
        OURS: np.array([75.0, 79.0, 80.0]),
        KNOWING["qmdp"]: np.array([80.0, 81.0, 79.0]),
        KNOWING["qmdp-rewards"]: np.array([82.0, 84.0, 83.0]),
        KNOWING["optimum"]: np.array([90.0, 91.0, 92.0]),
    }
    found = Comparison.of("lake", "mcar:0.8", FOUR, values)
    assert found is not None
    assert found.best == MI
    assert (found.theirs.estimate, found.ours.estimate, found.ahead.estimate) == (72.0, 78.0, 6.0)
    # Ours minus theirs is 5, 5, 8: the standard error is 1, and t at two degrees of freedom 4.303.
    assert found.ahead.low == pytest.approx(6 - 4.303, abs=1e-3)
    assert found.share is not None
    assert found.share.estimate == pytest.approx(6 / 11)
    means = {name: mean.estimate for name, mean in found.yardsticks.items()}
    assert means == {"qmdp": 80.0, "qmdp-rewards": 83.0, "optimum": 91.0}
    data = found.as_dict()
    assert data["best"] == {"method": "mi-synthetic", "K": 10, "p_shuffle": 0.1}
    assert data["ahead"]["n"] == 3


def test_without_a_way_to_go_there_is_no_share() -> None:
    values = {V2: np.array([60.0, 62.0, 64.0]), OURS: np.array([61.0, 60.0, 66.0])}
    plain = Comparison.of("lake", "mcar:0.8", FOUR, values)
    assert plain is not None
    assert plain.share is None
    # The gap is counted to who sees what an agent sees: not to one who ignores rewards, nor to one who knows all.
    others = {KNOWING[name]: np.array([80.0, 84.0, 82.5]) for name in KNOWING if name != "qmdp-rewards"}
    without = Comparison.of("lake", "mcar:0.8", FOUR, values | others)
    assert without is not None
    assert without.share is None
    level = Comparison.of("lake", "mcar:0.8", FOUR, values | {KNOWING[REACHABLE]: np.array([63.0, 61.0, 62.0])})
    assert level is not None
    assert level.share is None
    above = Comparison.of("lake", "mcar:0.8", FOUR, values | {KNOWING[REACHABLE]: np.array([50.0, 51.0, 52.5])})
    assert above is not None
    assert above.share is None
    assert Comparison.of("lake", "mcar:0.8", FOUR, {V2: values[V2]}) is None
    assert Comparison.of("lake", "mcar:0.8", FOUR, {OURS: values[OURS]}) is None


@pytest.mark.parametrize("fresh", [False, True])
def test_tuned_methods_are_compared_on_the_trials_of_their_selection(fresh: bool) -> None:
    table = paper_runs.table()
    trials = paper_runs.FRESH if fresh else paper_runs.TUNING
    seen = Evidence.of(
        table, "episodic", "held-out" if fresh else "as-published", paper_runs.DRAWS
    )  # fmt: skip
    found = against_tuned(seen)
    # Only these had more than one setting to choose from.
    assert [one.missingness for one in found] == ["mcar:0.2", "mcar:0.4", "mcar:0.8"]
    runs = with_open_episode(
        table.filter(pl.col("trial").is_in(trials), ~pl.col("parameters").str.contains("continuing"))
    )
    for one in found:
        here = runs.filter(missingness=one.missingness)
        for name, mean in {"mi-available": one.ours, **one.yardsticks}.items():
            assert mean.estimate == pytest.approx(np.mean(here.filter(method=name)[REWARD].to_list())), name
            assert mean.n == len(trials)
        assert set(one.yardsticks) == set(KNOWING)
        single = here.filter(pl.col("K").is_null(), ~pl.col("method").is_in(list(YARDSTICKS)))
        bests = [np.mean(group[REWARD].to_list()) for _, group in single.group_by("method")]
        assert one.theirs.estimate >= max(bests)


def test_untuned_methods_are_compared_at_their_defaults() -> None:
    data = beyond_studies(range(3))[-1].spec.model_dump(exclude_defaults=True)
    data |= {"steps": 200, "missingness": ["mcar:0.2", "bursts:0.1,0.3"], "worlds": [{"name": "cliff-walking"}]}
    rows = [execute(run) for run in Study.from_data(data).runs()]
    others = {"grid": {"alpha": 1.0, "gamma": 1.0, "epsilon": 0.0}, "methods": [{"name": "mi-available"}]}
    rows += [execute(run) for run in Study.from_data(data | others).runs()]
    table = pl.DataFrame(rows, schema=SCHEMA)
    problems = [("cliff-walking", "bursts:0.1,0.3"), ("cliff-walking", "mcar:0.2"), ("taxi", "mcar:0.2")]
    found = against_untuned(table, range(3), problems)
    assert [(one.world, one.missingness) for one in found] == problems[:2]
    counted = with_open_episode(table).filter(missingness="mcar:0.2", alpha=0.1)
    assert set(found[1].yardsticks) == set(KNOWING)
    assert found[1].ours.estimate == pytest.approx(np.mean(counted.filter(method="mi-available")[REWARD].to_list()))
    assert against_untuned(table, range(4), problems) == []
    longer = pl.concat([table, table.with_columns(steps=pl.lit(300, pl.Int64))])
    with pytest.raises(ValueError, match="runs of different lengths"):
        against_untuned(longer, range(3), problems)


def test_another_variant_of_ours_changes_nothing() -> None:
    table = paper_runs.table()
    variants = table.filter(method="mi-available").with_columns(parents=pl.lit(0.0), mean_total_reward=pl.lit(0.0))
    both = pl.concat([table, variants])
    found, again = (
        against_tuned(Evidence.of(runs, "episodic", "as-published", paper_runs.DRAWS)) for runs in (table, both)
    )
    assert found == again
    assert found


def test_the_studies_hold_the_default() -> None:
    for study in beyond_studies(range(3)):
        assert UNPLANNED in study.settings
