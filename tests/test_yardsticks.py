"""The yardsticks: exact where theory says what must come out, honest about what they know, and run like methods."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS, YARDSTICKS
from lacuna.agent.settings import Settings
from lacuna.kernels.space import Space
from lacuna.missingness import parse
from lacuna.run.problems import Problem
from lacuna.run.repetitions import run_trial, run_trials
from lacuna.run.run import Run
from lacuna.run.yardstick import Yardstick
from lacuna.study.engines import Local
from lacuna.study.runner import run_study
from lacuna.study.spec import Study, StudyError
from lacuna.study.store import Store
from lacuna.worlds.lake import Lake
from lacuna.worlds.mdp.solve import solve
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import make_world
from lacuna.worlds.toys import corridor
from problems import READINGS, lake, mechanisms

KINDS = tuple(mechanisms(lake("episodic")))


def rewards(method: str, theta: float, trials: int, steps: int) -> tuple[float, float]:
    """Mean total reward and its standard error, over trials."""
    rows = run_trials(
        Problem.named("lake", f"mcar:{theta}"), Settings(method), steps=steps, seeds=range(trials), workers=2
    )
    found = np.array([row["mean_total_reward"] for row in rows])
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(trials))


def same_but_for(left: dict[str, Any], right: dict[str, Any], *others: str) -> bool:
    return {k: v for k, v in left.items() if k not in others} == {k: v for k, v in right.items() if k not in others}


# --- figures that were found independently -----------------------------------------------------------------------


@pytest.mark.parametrize(("theta", "expected"), [(0.4, 86.6), (0.8, 83.5), (0.95, 79.4)])
def test_imputing_with_the_true_model(theta: float, expected: float) -> None:
    mean, error = rewards("mi-true-model", theta, trials=12, steps=50_000)
    # The expected figures have errors of their own, of about the same size.
    assert abs(mean - expected) < 4 * np.hypot(error, 0.5)


@pytest.mark.parametrize(("theta", "expected"), [(0.2, 90.7), (0.4, 90.3)])
def test_qmdp(theta: float, expected: float) -> None:
    mean, error = rewards("qmdp", theta, trials=8, steps=20_000)
    assert abs(mean - expected) < 4 * np.hypot(error, 0.05)


@pytest.mark.parametrize(("theta", "expected"), [(0.8, 89.5), (0.95, 88.9)])
def test_qmdp_that_counts_rewards(theta: float, expected: float) -> None:
    mean, error = rewards("qmdp-rewards", theta, trials=8, steps=20_000)
    assert abs(mean - expected) < 4 * np.hypot(error, 0.06)


def test_more_is_hidden_less_is_reached() -> None:
    means = [rewards("qmdp", theta, trials=4, steps=20_000)[0] for theta in (0.0, 0.4, 0.8, 0.95)]
    assert means == sorted(means, reverse=True)
    # Exact beliefs reach at least what approximate ones were seen to reach.
    assert means[2] > 87.7
    assert means[3] > 84.3


def long_run_value(mdp: TabularMDP) -> float:
    """Mean optimal value over the starts of episodes, in the long run."""
    best = solve(mdp, 1.0)
    go_on, stop = np.zeros((mdp.n_states, mdp.n_states)), np.zeros((mdp.n_states, len(mdp.starts)))
    for s in range(mdp.n_states):
        for p, after, _, ends in mdp.outcomes(s, int(best.policy[s])):
            if ends:
                stop[s, mdp.restart[after]] += p
            else:
                go_on[s, after] += p
    next_way = np.linalg.solve(np.eye(mdp.n_states) - go_on, stop)
    ways = np.array([sum(p * next_way[s] for s, p in start.items()) for start in mdp.starts])
    share = np.linalg.matrix_power(ways, 1000)[0]
    return float(sum(share[g] * p * best.values[s] for g, start in enumerate(mdp.starts) for s, p in start.items()))


def test_the_optimum_earns_what_solve_says() -> None:
    expected = long_run_value(Lake().mdp())
    assert expected == pytest.approx(90.988, abs=5e-4)
    mean, error = rewards("optimum", 0.6, trials=10, steps=30_000)
    assert abs(mean - expected) < 4 * error


# --- laws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missingness", ["mcar:0", "mcar:0.7", "whole:0.5"])
@pytest.mark.parametrize("reading", READINGS)
def test_fully_observed_is_plain_q_learning(reading: str, missingness: str) -> None:
    mdp = lake(reading)
    settings: dict[str, Any] = {"alpha": 0.3, "gamma": 0.9, "epsilon": 0.1, "optimism": 0.05}
    plain = Run(mdp, parse("mcar:0", mdp), Settings("last-observed", **settings), seed=5)
    knowing = Run(mdp, parse(missingness, mdp), Settings("fully-observed", **settings), seed=5)
    for run in (plain, knowing):
        run.advance(5000)
    assert knowing.player.learner.memory.Q.tobytes() == plain.agent.Q.tobytes()
    assert np.array_equal(knowing.tally.sums, plain.tally.sums)
    assert same_but_for(
        knowing.figures(), plain.figures(), "hidden_shares", "guessed_right", "weight_on_truth", "calibration_error"
    )


@pytest.mark.parametrize("missingness", ["none", "mcar:0.7", "bursts:0.1,0.3"])
@pytest.mark.parametrize("reading", READINGS)
def test_planning_with_all_observed_is_planning_with_one_pathway_where_nothing_is_hidden(
    reading: str, missingness: str
) -> None:
    mdp = lake(reading)
    settings: dict[str, Any] = {"gamma": 0.95, "epsilon": 0.05, "kappa": 0.5, "budget": 7}
    plain = Run(mdp, parse("none", mdp), Settings("mi-planned", K=1, **settings), seed=5)
    knowing = Run(mdp, parse(missingness, mdp), Settings("planned-observed", **settings), seed=5, first_observed=False)
    traces = [run.record(3000) for run in (plain, knowing)]
    for name in ("state", "action", "reward", "arrival", "pathways", "ended", "truncated"):
        assert np.array_equal(*(getattr(trace, name) for trace in traces)), name
    assert knowing.player.learner.memory.Q.tobytes() == plain.agent.Q.tobytes()
    assert np.array_equal(knowing.tally.sums, plain.tally.sums)
    assert knowing.figures()["guessed_right"] is None
    assert (knowing.figures()["hidden_shares"][0] == 1.0) == (missingness == "none")


def test_a_planner_that_sees_everything_learns_in_a_world_of_many_states() -> None:
    # Its counts grow: more room is made between the chunks of a run.
    found = run_trial(Problem.named("taxi", "mcar:0.6"), Settings("planned-observed"), steps=20_000)
    assert found["episodes"] > 500


def test_the_true_model_changes_nothing_where_all_is_seen() -> None:
    mdp = corridor(length=6, slip=0.3)
    nothing = parse("none", mdp)
    cases: tuple[dict[str, Any], ...] = (
        {"K": 4, "epsilon": 0.1, "gamma": 0.9}, {"K": 1, "update": "exact-rate"}, {"vote": "majority", "optimism": 0.1},
    )  # fmt: skip
    for settings in cases:
        plain = Run(mdp, nothing, Settings("mi-conservative", **settings), seed=2)
        knowing = Run(mdp, nothing, Settings("mi-true-model", **settings), seed=2)
        for run in (plain, knowing):
            run.advance(3000)
        assert knowing.player.learner.memory.Q.tobytes() == plain.agent.Q.tobytes()
        assert np.array_equal(knowing.tally.sums, plain.tally.sums)


@pytest.mark.parametrize("world", ["corridor", "cliff-walking"])
def test_qmdp_is_the_optimum_where_all_is_seen(world: str) -> None:
    problem = Problem.named(world, "none")
    best, belief = (run_trial(problem, Settings(name, gamma=0.95), steps=4000) for name in ("optimum", "qmdp"))
    assert best["episodes"] > 100
    assert belief["mean_total_reward"] == best["mean_total_reward"]


def test_of_equal_actions_qmdp_takes_the_one_that_ends_whatever_lies_elsewhere() -> None:
    # From 0 to 1 and back for nothing, or from 1 to the end for 10; nobody comes to 2, where everything is large.
    def outcomes(s: int, a: int) -> list[tuple[float, int, float, bool]]:
        if s == 2:
            return [(1e-9, 2, -1e9, True), (1 - 1e-9, 2, 0.0, False)]
        return [(1.0, 1, 0.0, False)] if s == 0 else [(1.0, 0, 0.0, False)] if a == 0 else [(1.0, 0, 10.0, True)]

    mdp = TabularMDP.build(outcomes, space=Space((3,)), shows=[0, 1, 2], n_actions=2, starts=[{0: 1.0}])
    for method in ("optimum", "qmdp", "qmdp-rewards"):
        run = Run(mdp, parse("none", mdp), Settings(method, gamma=1.0))
        run.advance(100)
        assert run.figures()["episodes"] == 50, method


def test_an_unseen_flood_costs_qmdp_little() -> None:
    # Colours tell of the flood before it matters, so almost nothing is lost; more than everything cannot be known.
    mean, error = rewards("qmdp", 0.0, trials=8, steps=20_000)
    assert 90.988 - 0.2 < mean < 90.988 + 4 * error


def test_masks_and_world_are_those_of_the_methods() -> None:
    problem = Problem.named("lake", "mcar:0.4")
    shares = {
        name: run_trial(problem, Settings(name), steps=2000, seed=3)["hidden_shares"]
        for name in ("last-observed", *YARDSTICKS)
    }
    assert len({tuple(share) for share in shares.values()}) == 1
    others = run_trial(problem, Settings("optimum"), steps=2000, seed=4)["hidden_shares"]
    assert others != shares["optimum"]


@pytest.mark.parametrize("method", YARDSTICKS)
def test_chunks_do_not_matter(method: str) -> None:
    mdp = lake("episodic")
    whole, parts = (Run(mdp, mechanisms(mdp)["bursts-each:0.2,0.4"], Settings(method)) for _ in range(2))
    whole.advance(3000, times=(1, 1500))
    for steps in (1, 999, 2, 1998):
        parts.advance(steps, times=(1, 1500))
    assert all(np.array_equal(a, b) for a, b in zip(parts.tally, whole.tally, strict=True))
    assert np.array_equal(parts.curve, whole.curve)
    assert [stream.position for stream in parts.streams] == [stream.position for stream in whole.streams]


def digests() -> dict[str, str]:
    """What every yardstick leaves in every kind of problem, to the bit."""
    found = {}
    for reading in READINGS:
        mdp = lake(reading)
        for name, mechanism in mechanisms(mdp).items():
            for method in YARDSTICKS.values():
                more: dict[str, Any] = {"p_shuffle": 0.3, "K": 3, "epsilon": 0.1} if method.multiple else {}
                settings = Settings(method.name, gamma=0.9, **more)
                run = Run(mdp, mechanism, settings, seed=8, first_observed=name != "whole:0.3")
                run.advance(60)
                assert isinstance(run.player, Yardstick)
                knowledge = run.player.knowledge
                parts = [*run.tally, run.player.learner.memory.Q, knowledge.belief, knowledge.here]
                data = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
                found[f"{reading} {name} {method.name}"] = hashlib.sha256(data).hexdigest()
    return found


def test_equal_without_the_compiler() -> None:
    compiled = digests()
    assert len(compiled) == len(READINGS) * len(KINDS) * len(YARDSTICKS)
    program = "import json; from test_yardsticks import digests; print(json.dumps(digests()))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parent, env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == compiled


# --- wrong uses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["optimum", "qmdp", "qmdp-rewards"])
def test_what_they_cannot_have(method: str) -> None:
    settings: list[dict[str, Any]] = [{"alpha": 0.5}, {"epsilon": 0.1}, {"K": 3}, {"vote": "majority"}]
    for setting in settings:
        with pytest.raises(ValueError, match=f"but {method} has no such setting"):
            Settings(method, **setting)
    continuing = Problem.named("lake", "mcar:0.4", {"continuing": True})
    with pytest.raises(ValueError, match=r"no bound in a continuing task .* take gamma below 1"):
        run_trial(continuing, Settings(method), steps=10)
    assert run_trial(continuing, Settings(method, gamma=0.9), steps=500)["episodes"] > 0


@pytest.mark.parametrize("method", YARDSTICKS)
def test_no_agent_is_a_yardstick(method: str) -> None:
    with pytest.raises(ValueError, match=f"but {method} has no such setting"):
        Settings(method, smoothing=0.5)
    with pytest.raises(ValueError, match=f"{method} is a yardstick: it knows what no agent can know"):
        Agent(Space((3,)), 2, Settings(method))
    with pytest.raises(ValueError, match="and is compiled only"):
        run_trial(Problem.named("corridor", "mcar:0.4"), Settings(method), steps=10, driver="stepwise")


def test_other_wrong_uses() -> None:
    mdp = corridor(length=4, slip=0.1)
    run = Run(mdp, parse("none", mdp), Settings("optimum"))
    with pytest.raises(AttributeError, match="optimum is a yardstick, so its run has no agent"):
        _ = run.agent
    with pytest.raises(ValueError, match="optimum is a yardstick, whose run cannot be saved"):
        run.save("run")
    with pytest.raises(ValueError, match=r"did you mean 'optimum'.*yardsticks: optimum, qmdp"):
        Settings("optimun")
    assert not set(METHODS) & set(YARDSTICKS)


def test_qmdp_needs_a_value_for_every_action() -> None:
    # Action 1 leads to a state that nothing ends in: with gamma = 1 it has no value.
    trap = TabularMDP.build(
        lambda s, a: [(1.0, 1, 0.0, False)] if s == 1 or a == 1 else [(1.0, 0, 1.0, True)],
        space=Space((2,)), shows=[0, 1], n_actions=2, starts=[{0: 1.0}], name="trap",
    )  # fmt: skip
    nothing = parse("none", trap)
    for method in ("qmdp", "qmdp-rewards"):
        with pytest.raises(ValueError, match=f"of trap may lead to where nothing is sure to end, so {method} has no"):
            Run(trap, nothing, Settings(method))
    for settings in (Settings("qmdp", gamma=0.9), Settings("qmdp-rewards", gamma=0.9), Settings("optimum")):
        run = Run(trap, nothing, settings)
        run.advance(20)
        assert run.figures()["episodes"] == 20


# --- in a study --------------------------------------------------------------------------------------------------

STUDY = """
name = "yardsticks"
steps = 600
trials = 3
missingness = ["mcar:0.4", "mfog:0.5,0.0", "bursts:0.1,0.3"]
curve_points = 4
worlds = [{name = "lake"}]
methods = [{name = "optimum"}, {name = "qmdp"}, {name = "qmdp-rewards"}, {name = "mi-true-model"},
           {name = "fully-observed"}, {name = "planned-observed"}, {name = "mi-synthetic"}]

[grid]
alpha = [0.1, 1.0]
epsilon = [0, 0.05]
gamma = [0.5, 1]
K = [2, 5]
"""


def test_a_study_with_yardsticks_runs_and_resumes(tmp_path: Path) -> None:
    study = Study.parse(STUDY)
    # What only learners have is not pressed on the three that do not learn.
    assert len(study.settings) == 2 + 2 + 2 + 16 + 8 + 4 + 16
    store = Store(tmp_path / "store")
    half = run_study(study, store, Local(2), shard=(1, 2))
    assert (half.failures, 0 < half.total < len(study)) == ([], True)
    whole = run_study(study, store, Local(2))
    assert (whole.failures, whole.done) == ([], len(study))
    again = run_study(study, store, Local(2))
    assert again.steps == 0
    table = store.table()
    assert set(table["method"]) == {*YARDSTICKS, "mi-synthetic"}
    row = table.row(by_predicate=pl.col("id") == next(iter(study.runs())).id, named=True)
    figures = run_trial(
        Problem.named("lake", "mcar:0.4"), Settings("optimum", gamma=0.5), steps=600, seed=0, times=study.curve
    )
    assert row["mean_total_reward"] == figures["mean_total_reward"]
    assert row["curve_step"] == [150, 300, 450, 600]


def test_a_study_that_cannot_be_is_refused_whole() -> None:
    with pytest.raises(StudyError, match=r"methods\[0\] \(optimum\): optimum needs optimal values"):
        Study.parse(STUDY.replace('{name = "lake"}', '{name = "lake", continuing = true}'))
    with pytest.raises(
        StudyError, match=r"or a yardstick: optimum, qmdp, qmdp-rewards, mi-true-model, fully-observed, "
    ):
        Study.parse(STUDY.replace('"qmdp"', '"pomdp"'))
    assert make_world("lake", continuing=True).terminates is False
