"""What `lacuna run` shows: intervals everywhere, and on a terminal how learning went and what could be reached."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats

from commands import Call, caller
from lacuna import Problem, Settings, run_trial
from lacuna.cli import run_table
from lacuna.cli.run_table import Reached, curve_times, interval, on_learning, reached, sparkline, t_quantile
from lacuna.run.problems import find_problem
from lacuna.run.repetitions import SeedlessTrial, run_seeds, run_trials
from lacuna.study.statistics import mean_interval

CORRIDOR = Problem.named("corridor,length=4,slip=0.0", "mcar:0.2")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    return caller(capsys, monkeypatch)


def test_the_quantile_is_that_of_student() -> None:
    for n in (*range(1, 40), 99, 100, 999, 1000):
        assert t_quantile(n) == pytest.approx(stats.t.ppf(0.975, n), rel=1e-9)
    assert t_quantile(5000) == pytest.approx(stats.t.ppf(0.975, 5000), rel=1e-3)


def test_the_interval_is_that_of_a_study() -> None:
    values = np.random.default_rng(2).normal(5, 3, size=7).tolist()
    found = mean_interval(values)
    assert interval(values) == f"[{found.low:.4g}, {found.high:.4g}]"
    assert interval([1.0]) == ""


def test_a_sparkline_keeps_the_order_of_its_numbers() -> None:
    values = np.random.default_rng(3).normal(size=30).tolist()
    line = sparkline(values)
    assert len(line) == 30
    assert [line[i] for i in np.argsort(values)] == sorted(line)
    assert {line[int(np.argmin(values))], line[int(np.argmax(values))]} == {"▁", "█"}


def test_learning_is_the_reward_per_step_of_each_part() -> None:
    rows = run_seeds(SeedlessTrial(CORRIDOR, Settings("last-observed"), 480, times=curve_times(480)), range(3))
    assert len(curve_times(480)) == 24
    words = on_learning(rows)
    first = np.mean(
        [run_trial(CORRIDOR, Settings("last-observed"), steps=20, seed=i)["reward_per_step"] for i in range(3)]
    )
    assert f"reward per step, {first:.3g} at first" in words
    assert len(words.split()[1]) == 24
    plain = run_trials(CORRIDOR, Settings("last-observed"), steps=480, seeds=range(3))
    for row, other in zip(rows, plain, strict=True):
        assert {k: v for k, v in row.items() if k not in ("curve", "seconds")} == {
            k: v for k, v in other.items() if k != "seconds"
        }


def test_yardsticks_are_those_of_a_trial_and_nothing_beats_the_optimum() -> None:
    best, qmdp = reached(CORRIDOR, Settings("last-observed"), range(7))
    assert isinstance(best, Reached)
    assert isinstance(qmdp, Reached)
    assert best.values == pytest.approx([-3.0] * len(best.values))
    assert 1 <= len(qmdp.values) <= 5
    assert np.mean(qmdp.values) <= -3.0


def test_where_a_yardstick_is_not_known_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    (told,) = reached(find_problem("FrozenLake-v1", "mcar:0.2"), Settings("last-observed"), [0])
    assert told == "What could be reached is unknown: this environment does not give its transition probabilities."
    monkeypatch.setattr(run_table, "MOST_STATES", 3)
    (told,) = reached(CORRIDOR, Settings("last-observed"), [0])
    assert "not computed here: the world has 4 states" in str(told)
    endless = Problem.named("lake,continuing=true", "mcar:0.2")
    monkeypatch.setattr(run_table, "MOST_STATES", 1000)
    told_of = list(reached(endless, Settings("last-observed"), [0]))
    assert len(told_of) == 2
    assert all(isinstance(one, str) and "is not known: " in one for one in told_of)


WORDS = ("run", "--world", "corridor", "--method", "last-observed", "--steps", "300", "--trials", "3")


def test_what_is_piped_has_intervals_and_nothing_that_takes_time(call: Call) -> None:
    answer = call(*WORDS)
    assert answer.code == 0
    assert "95 % interval" in answer.out
    assert "standard error" in answer.out
    assert "learning" not in answer.out
    assert "Optimum" not in answer.out


def test_a_terminal_shows_learning_and_what_could_be_reached(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True, raising=False)
    answer = call(*WORDS)
    assert answer.code == 0
    assert "learning: " in answer.out
    assert "Optimum" in answer.out
    assert "QMDP" in answer.out
    rows: list[dict[str, Any]] = json.loads(call(*WORDS, "--json").out)
    assert "curve" not in rows[0]


def test_equal_values_have_no_interval() -> None:
    assert interval([2.0, 2.0, 2.0]) == interval([2.0]) == ""
