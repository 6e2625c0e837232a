"""The figures of a run, worked out again from its record by other means, and from tallies made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import Settings
from lacuna.kernels.space import Space
from lacuna.missingness import mcar, none
from lacuna.run.loop import Trace
from lacuna.run.measures import SUMS, blank_tally, calibration_error, episode_means, figures, standard_error
from lacuna.run.problems import Problem
from lacuna.run.repetitions import EARLY_STEPS, run_trial
from lacuna.run.run import DRIVERS, Run
from lacuna.worlds.mdp.tabular import TabularMDP
from problems import READINGS, lake, mechanisms

GUESS = [name for name in METHODS if name not in ("random-action", "missing-as-state")]


def episodes_of(mdp: TabularMDP, trace: Trace) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """The steps of every completed episode, of every one that was cut off, and of the open one."""
    completed, cut, steps = [], [], []
    for t in range(trace.action.size):
        steps.append(t)
        if trace.ended[t]:
            completed.append(steps)
            steps = []
        elif trace.truncated[t]:
            cut.append(steps)
            steps = []
    return completed, cut, steps


def expected_figures(mdp: TabularMDP, trace: Trace, method: str) -> dict[str, Any]:
    completed, cut, open_steps = episodes_of(mdp, trace)
    lost = [step for steps in cut for step in steps]
    water = mdp.bad[trace.arrival]
    n = trace.action.size

    def mean(values: list[float]) -> float | None:
        return float(np.mean(values)) if values else None

    hidden = (trace.seen < 0).sum(axis=1)
    stay = mdp.action_names.index("stay")
    return {
        "episodes": len(completed),
        "steps": n,
        "mean_total_reward": mean([float(trace.reward[steps].sum()) for steps in completed]),
        "mean_bad_steps": mean([float(water[steps].sum()) for steps in completed]),
        "mean_path_length": mean([float(len(steps)) for steps in completed]),
        "reward_per_step": float(trace.reward.mean()),
        "idle_share": float((trace.action == stay).mean()),
        "hidden_shares": [float((hidden == h).mean()) for h in range(mdp.space.d + 1)],
        "open_steps": len(open_steps),
        "open_reward": float(trace.reward[open_steps].sum()),
        "open_bad_steps": int(water[open_steps].sum()),
        "cut_episodes": len(cut),
        "cut_steps": len(lost),
        "cut_reward": float(trace.reward[lost].sum()),
        "cut_bad_steps": int(water[lost].sum()),
    } | (expected_guesses(mdp, trace) if method in GUESS else dict.fromkeys(GUESSES))


GUESSES = ("guessed_right", "weight_on_truth", "calibration_error")


def expected_guesses(mdp: TabularMDP, trace: Trace) -> dict[str, float]:
    components, states = [], []
    shares: dict[int, list[bool]] = {}
    for seen, pathways, arrival in zip(trace.seen, trace.pathways.tolist(), trace.arrival, strict=True):
        truth = mdp.space.decode(int(mdp.shows[arrival]))
        if (seen >= 0).all():
            continue
        guesses = [mdp.space.decode(state) for state in pathways]
        components += [guess[j] == truth[j] for guess in guesses for j in np.flatnonzero(seen < 0)]
        states += [guess == truth for guess in guesses]
        for guess in guesses:
            shares.setdefault(guesses.count(guess), []).append(guess == truth)
    K = trace.pathways.shape[1]
    gaps = [abs(np.mean(right) - size / K) * len(right) for size, right in shares.items()]
    return {
        "guessed_right": float(np.mean(components)),
        "weight_on_truth": float(np.mean(states)),
        "calibration_error": float(sum(gaps) / len(states)),
    }


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("method", METHODS)
def test_figures_are_those_of_the_record(method: str, reading: str) -> None:
    mdp = lake(reading)
    for name in ("mcar:0.4", "mfog:0.5,0.1", "whole:0.3"):
        run = Run(mdp, mechanisms(mdp)[name], Settings(method, gamma=0.9, epsilon=0.3), seed=3)
        trace = run.record(3000)
        found, expected = run.figures(), expected_figures(mdp, trace, method)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert found[key] == pytest.approx(value, abs=1e-9), key
        assert expected["episodes"] > 1


def test_every_kind_of_episode_was_there() -> None:
    mdp = lake("episodic")
    trace = Run(mdp, mcar(mdp.space, 0.4), Settings(gamma=0.9, epsilon=0.1), seed=3).record(3000)
    completed, cut, open_steps = episodes_of(mdp, trace)
    assert len(completed) > 5
    assert len(cut) > 5
    assert open_steps


def test_an_episode_that_was_cut_off_is_not_a_completed_one() -> None:
    # Never an end, cut off after every third step; the last two steps are in the open one.
    mdp = TabularMDP.build(
        lambda s, _: [(1.0, 1 - s, float(s), False)], space=Space((2,)), shows=range(2), n_actions=1,
        starts=[{0: 1.0}], max_steps=3, bad=np.array([False, True]),
    )  # fmt: skip
    for driver in DRIVERS:
        run = Run(mdp, none(mdp.space), Settings("last-observed"), driver=driver)
        run.advance(11)
        assert run.figures()["episodes"] == 0
        assert run.figures()["mean_path_length"] is None
        assert [run.figures()[key] for key in ("open_steps", "open_reward", "open_bad_steps")] == [2, 1.0, 1]
        assert run.figures()["reward_per_step"] == 4 / 11
        cut = ("cut_episodes", "cut_steps", "cut_reward", "cut_bad_steps")
        assert [run.figures()[key] for key in cut] == [3, 9, 3.0, 6]
        assert episode_means(run.tally.sums, count_open=True)["mean_path_length"] == 11 / 4


def sums(**values: float) -> Any:
    return np.array([values.get(name, 0.0) for name in SUMS])


def test_means_per_episode_with_and_without_the_open_one() -> None:
    stuck = sums(steps=5000, episodes=2, episode_reward=170.0, episode_bad=1, episode_steps=40, open_reward=-4960.0,
                 open_bad=300, open_steps=4960)  # fmt: skip
    lucky = {"mean_total_reward": 85.0, "mean_bad_steps": 0.5, "mean_path_length": 20.0}
    honest = {"mean_total_reward": -4790 / 3, "mean_bad_steps": 301 / 3, "mean_path_length": 5000 / 3}
    assert episode_means(stuck) == lucky
    assert episode_means(stuck, count_open=True) == pytest.approx(honest)
    # An episode that has not begun is not counted.
    closed = sums(steps=40, episodes=2, episode_reward=170.0, episode_bad=1, episode_steps=40)
    assert episode_means(closed, count_open=True) == lucky
    nothing = dict.fromkeys(lucky)
    assert episode_means(sums()) == episode_means(sums(), count_open=True) == nothing
    assert episode_means(sums(open_steps=9, open_reward=-9)) == nothing
    assert episode_means(sums(open_steps=9, open_reward=-9), count_open=True) == {
        "mean_total_reward": -9.0,
        "mean_bad_steps": 0.0,
        "mean_path_length": 9.0,
    }


def test_figures_of_a_tally_made_by_hand() -> None:
    tally = blank_tally(n_actions=3, d=2, K=4)
    tally.sums[:] = sums(steps=10, reward=-5.0, episodes=1, episode_reward=95.0, episode_bad=2, episode_steps=6,
                         open_reward=-100.0, open_bad=4, open_steps=4)  # fmt: skip
    tally.actions[:] = [1, 7, 2]
    tally.hidden[:] = [5, 4, 1]
    tally.guesses[:] = [24, 18, 20, 11]
    found = figures(tally, Settings(K=4).rules, 2)
    assert found["idle_share"] == 0.2
    assert found["hidden_shares"] == [0.5, 0.4, 0.1]
    assert found["guessed_right"] == 0.75
    assert found["weight_on_truth"] == 0.55
    assert found["mean_total_reward"] == 95.0
    assert (found["open_steps"], found["open_reward"], found["open_bad_steps"]) == (4, -100.0, 4)
    assert figures(tally, Settings(K=4).rules, -1)["idle_share"] == 0.0


def test_figures_of_nothing_are_not_numbers() -> None:
    found = figures(blank_tally(3, 2, 4), Settings(K=4).rules, 2)
    undefined = [key for key, value in found.items() if value is None]
    assert set(undefined) == {
        "mean_total_reward", "mean_bad_steps", "mean_path_length", "reward_per_step", "idle_share", *GUESSES
    }  # fmt: skip


def test_calibration_is_zero_where_shares_are_as_often_right_as_they_say() -> None:
    # Rows: by how many of 4 pathways agree on a state; columns: pathways, and how many of them are right.
    assert calibration_error(np.array([[0, 0], [8, 2], [8, 4], [12, 9], [4, 4]])) == 0.0
    assert calibration_error(np.array([[0, 0], [8, 0], [0, 0], [0, 0], [8, 8]])) == 0.125
    assert calibration_error(np.array([[0, 0], [0, 0], [0, 0], [0, 0], [8, 0]])) == 1.0
    assert calibration_error(np.zeros((5, 2), dtype=np.int64)) is None


@pytest.mark.parametrize("driver", DRIVERS)
def test_curves_are_the_sums_at_their_times(driver: str) -> None:
    mdp = lake("episodic")
    times = (1, 7, 500, 1999)
    run = Run(mdp, mcar(mdp.space, 0.2), Settings(K=2), seed=1, driver=driver)
    run.advance(1200, times=times)
    run.advance(800, times=times)
    again = Run(mdp, mcar(mdp.space, 0.2), Settings(K=2), seed=1)
    trace = again.record(2000)
    assert len(run.curve) == len(times)
    for t, noted in zip(times, run.curve, strict=True):
        columns: list[Any] = [column[:t] for column in trace]
        part = Trace(*columns)
        completed, cut, open_steps = episodes_of(mdp, part)
        lost = [step for steps in cut for step in steps]
        done = [step for steps in completed for step in steps]
        water = mdp.bad[part.arrival]
        expected = [t, part.reward.sum(), len(completed), part.reward[done].sum(), water[done].sum(), len(done),
                    part.reward[open_steps].sum(), water[open_steps].sum(), len(open_steps),
                    len(cut), part.reward[lost].sum(), water[lost].sum(), len(lost),
                    (part.action == mdp.action_names.index("stay")).sum()]  # fmt: skip
        assert noted.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("steps", [1, 2, 4, 5, 9, 1000, 12_000])
def test_early_and_late_rewards_are_those_of_the_record(steps: int) -> None:
    problem = Problem.named("lake", "mcar:0.4", {"stay": True})
    found = run_trial(problem, Settings("last-observed"), steps=steps, seed=2, times=(1, steps))
    trace = Run(problem.mdp, problem.mechanism, Settings("last-observed"), seed=2).record(steps)
    late = max(1, steps // 5)
    assert found["reward_per_step_early"] == pytest.approx(trace.reward[:EARLY_STEPS].mean())
    assert found["reward_per_step_late"] == pytest.approx(trace.reward[steps - late :].mean())
    assert found["reward_per_step"] == pytest.approx(trace.reward.mean())
    assert found["curve"][0, :2].tolist() == [1.0, trace.reward[0]]
    assert found["curve"][-1, :2].tolist() == pytest.approx([steps, trace.reward.sum()])
    assert (found["seed"], found["seconds"] > 0) == (2, True)


def test_means_and_errors() -> None:
    assert standard_error([3.0]) is None
    assert standard_error([1.0, 2.0, 6.0]) == pytest.approx(np.sqrt(7 / 3))


def test_a_run_that_is_saved_while_it_goes_on_has_its_curve_so_far(tmp_path: Path) -> None:
    mdp = lake("episodic")
    run = Run(mdp, mechanisms(mdp)["mcar:0.4"], Settings(), seed=2)

    def save(_: int) -> None:
        run.save(tmp_path / "run")

    run.advance(20_000, times=(100, 200, 19_000), progress=save)
    run.advance(1)
    assert [row[0] for row in run.curve] == [100, 200, 19_000]
    loaded = Run.load(tmp_path / "run", mdp, mechanisms(mdp)["mcar:0.4"])
    assert np.array_equal(loaded.curve, run.curve)
