"""Worlds, mechanisms, environments and agents of one's own in studies: paired, named after their source, resumable."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import polars as pl
import pytest

from lacuna import Agent, MissingObservation, OwnMethod, Problem, Settings, Space, Store, Study, play
from lacuna.agent.methods import METHODS
from lacuna.references import kept
from lacuna.run.problems import EnvProblem, find_problem
from lacuna.run.repetitions import run_trial, run_trials
from lacuna.study.outcomes import of_latest_source
from lacuna.study.runs import RunSpec
from lacuna.study.selection import with_open_episode
from lacuna.study.spec import StudyError
from own_parts import study_of, write_parts
from sentences import one_sentence
from studies import command, exported
from test_engines import processes, start, wait_for

GUESSES = ("guessed_right", "weight_on_truth", "calibration_error")


def plain(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures that any agent has, without the time; the curve as lists."""
    left = {key: value for key, value in figures.items() if key not in {*GUESSES, "seconds"}}
    return left | {"curve": left["curve"].tolist()}


PROBLEMS = [
    Problem.named("lake,stay=true", "mfog:0.5,0.1"),
    Problem.named("lake,continuing=true", "bursts:0.1,0.3", first_observed=False),
    Problem.named("frozen-lake", "whole:0.3"),
    Problem.named("bandit", "after:0=0.5,else=0.1"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: f"{problem.world} {problem.missingness}")
def test_our_agent_given_as_a_foreign_one_has_the_figures_of_the_compiled_run(method: str, problem: Problem) -> None:
    settings = Settings(method, gamma=0.9, epsilon=0.1)

    def foreign(space: Space, n_actions: int, *, seed: int) -> Agent:
        return Agent(space, n_actions, settings, seed=seed)

    with kept(foreign, "foreign") as reference:
        walked = run_trial(problem, OwnMethod.named(reference), steps=700, seed=5, times=(1, 100, 333))
    flown = run_trial(problem, settings, steps=700, seed=5, times=(1, 100, 333))
    assert plain(walked) == plain(flown)
    assert all(walked[key] is None for key in GUESSES)
    assert list(walked) == list(flown)


@pytest.mark.parametrize("method", ["last-observed", "mi-planned"])
def test_a_world_as_a_gymnasium_environment_has_the_figures_of_the_compiled_run(method: str) -> None:
    # FrozenLake's own id has a time limit of 100 steps, which the world has too.
    inside = find_problem("lacuna/Corridor-v0", "mcar:0.4", {"length": 6}, first_observed=False)
    world = Problem.named("corridor,length=6", "mcar:0.4", first_observed=False)
    assert isinstance(inside, EnvProblem)
    settings = Settings(method)
    found, wanted = (run_trial(one, settings, steps=500, seed=2, times=(77,)) for one in (inside, world))
    assert plain(found) == plain(wanted)


def test_an_environment_pays_what_the_plain_loop_gets_and_what_it_cannot_tell_is_null() -> None:
    problem = find_problem("FrozenLake-v1,is_slippery=true", "mcar:0.3")
    row = run_trial(problem, Settings("mi-planned", K=3), steps=600, seed=4, times=(200, 600))
    env = MissingObservation(gymnasium.make("FrozenLake-v1", is_slippery=True), "mcar:0.3")
    agent = Agent(env.space, 4, Settings("mi-planned", K=3), seed=4)
    total = play(env, agent, 600, seed=4)
    assert total > 0
    assert row["reward_per_step"] * 600 == pytest.approx(total)
    assert row["curve"][-1][1] == total
    assert {key for key, value in row.items() if value is None} == {
        *GUESSES, "mean_bad_steps", "open_bad_steps", "cut_bad_steps", "idle_share",
    }  # fmt: skip


def test_episodes_that_a_time_limit_cuts_off_count_as_cut() -> None:
    problem = find_problem("FrozenLake-v1,max_episode_steps=3", "none")
    row = run_trial(problem, Settings("last-observed"), steps=300)
    # Nobody reaches a hole or the goal of this map in three steps but by a hole.
    assert row["cut_episodes"] > 0
    assert row["episodes"] * row["mean_path_length"] + row["cut_steps"] + row["open_steps"] == 300


def test_actions_that_begin_elsewhere_than_at_0_are_counted_from_0() -> None:
    class Shifted(gymnasium.Env[Any, Any]):
        observation_space: Any = gymnasium.spaces.Discrete(2, start=5)
        action_space: Any = gymnasium.spaces.Discrete(2, start=3)

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            return 5, {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            assert action in (3, 4)
            return 5 + (action == 4), float(action == 4), False, False, {}

    with kept(Shifted, "shifted") as reference:
        problem = find_problem(reference, "mcar:0.2")
        row = run_trial(problem, Settings("last-observed", gamma=0.5, epsilon=0.2), steps=300)
    assert row["reward_per_step"] > 0.7


# --- names -----------------------------------------------------------------------------------------------------------


def test_names_of_runs_without_references_are_what_they_were() -> None:
    assert RunSpec("lake", (), "none", Settings("last-observed"), 10, 0).id == "35df14397b2a29e211cec16a"
    study = Study.parse("""
name = "a"
steps = 100
trials = 1
missingness = ["mcar:.2"]
worlds = [{name = "corridor", length = 7}]
methods = [{name = "mi-synthetic", K = 3, alpha = 0.5}]
curve_points = 2
first_observed = false
""")
    assert [run.id for run in study.runs()] == ["7b33095423e2f5a9bf563ac6"]
    assert study.sources == {}
    assert study.id == "6ee2fde9a54eddbc"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_a_run_bears_the_sources_of_what_it_uses_and_of_nothing_else(here: Path) -> None:
    parts = write_parts(here)
    study = Study.parse(study_of(parts))
    assert len(study) == 4 * 2 * 3 * 3
    frozen_lake = "gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv"
    for run in study.runs():
        used = {f"{parts}:{name}" for name in ("maze", "Walk", "by_mood", "Mine")
                if any(name in text for text in (run.world, run.missingness, run.settings.method))}  # fmt: skip
        used |= {frozen_lake, "FrozenLake-v1"} if run.world == "FrozenLake-v1" else set()
        assert {reference for reference, _ in run.sources} == used
        assert RunSpec.from_json(json.loads(json.dumps(run.to_json()))) == run
    assert {run.settings.method for run in study.runs()} == {
        "last-observed", f"{parts}:Mine", f"{parts}:Mine,explore=0.5",
    }  # fmt: skip
    again = Study.from_note(json.loads(json.dumps(study.to_note())), "note")
    assert [run.id for run in again.runs()] == [run.id for run in study.runs()]


def test_two_ways_of_writing_the_same_run_give_one_name(here: Path) -> None:
    parts = write_parts(here)
    text = study_of(parts)
    same = (
        text.replace("use = ", "name = ")
        .replace(f'{{name = "{parts}:by_mood", rate = 0.5}}', f'"{parts}:by_mood,rate=.5"')
        .replace("pay = 2", "pay = 2.0")
    )
    assert same != text
    assert {run.id for run in Study.parse(same).runs()} == {run.id for run in Study.parse(text).runs()}


# --- the command -----------------------------------------------------------------------------------------------------


def run(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, check=False, cwd=folder)


def finish(folder: Path, *words: str | Path) -> None:
    done = run(folder, *words)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.slow
def test_a_study_with_all_four_is_killed_and_resumed_and_an_edited_module_makes_runs_new(tmp_path: Path) -> None:
    parts = write_parts(tmp_path)
    study, file = tmp_path / "study.toml", tmp_path / f"{parts.replace('.', '/')}.py"
    study.write_text(study_of(parts, steps=1000, trials=2))
    finish(tmp_path, "run", study, "--out", "whole")
    going = subprocess.Popen(command("run", study, "--out", "killed"), cwd=tmp_path, stderr=subprocess.PIPE)
    while not list(tmp_path.glob("killed/parts/*.parquet")):
        time.sleep(0.02)
        assert going.poll() is None, going.communicate()
    os.kill(going.pid, signal.SIGKILL)
    going.communicate()
    assert 0 < len(Store.existing(tmp_path / "killed").done()) < 48
    finish(tmp_path, "run", study, "--out", "killed")
    assert exported(tmp_path / "killed") == exported(tmp_path / "whole")
    table = Store.existing(tmp_path / "whole").table()
    assert table.height == 48
    assert with_open_episode(table)["mean_total_reward_with_open"].null_count() == 0

    # Nothing is left to do; edited, what uses the module is new, and the rest is not.
    before = Store.existing(tmp_path / "whole").studies()
    assert "holds 48 of 48 runs" in run(tmp_path, "run", study, "--out", "whole").stdout
    file.write_text(file.read_text().replace("self.pay * float", "-self.pay * float"))
    finish(tmp_path, "run", study, "--out", "whole")
    edited = Store.existing(tmp_path / "whole").table()
    # Without the module: two worlds x one mechanism x one method x two trials.
    assert edited.height == 48 + 48 - 4
    ours = pl.col("source").str.contains(parts, literal=True)
    assert table.filter(~ours).equals(edited.filter(~ours))
    walks = edited.filter(world=f"{parts}:Walk")
    assert (walks["reward_per_step"] > 0).sum() == (walks["reward_per_step"] < 0).sum() == 12
    assert "own: 48 of 48 runs" in run(tmp_path, "status", "whole").stdout

    # What is told of the runs is told of the code as it is now.
    after = Store.existing(tmp_path / "whole").studies()
    latest = of_latest_source(edited, after)
    assert latest.height == 48
    assert (latest.filter(world=f"{parts}:Walk")["reward_per_step"] < 0).all()
    assert of_latest_source(edited, [*before, *after]).equals(latest)
    assert of_latest_source(edited, [*after, *before]).equals(table)
    halfway = edited.filter((pl.col("trial") == 0) | ~pl.col("id").is_in(latest.filter(ours)["id"].to_list()))
    assert of_latest_source(halfway, [*before, *after]).equals(latest.filter(~ours | (pl.col("trial") == 0)))
    for words in (("report", "whole"), ("compare", "whole", "killed")):
        told = run(tmp_path, *words)
        assert told.returncode == 0
        assert "left out: 44 runs of own code as it was before an edit" in told.stderr

    # A folder of results is not the user's word: looking at it imports nothing.
    file.write_text("raise SystemExit('imported')")
    looked = run(tmp_path, "status", "whole")
    assert (looked.returncode, looked.stderr) == (0, "")
    assert "own: 48 of 48 runs" in looked.stdout


@pytest.mark.slow
def test_on_dask_workers_import_the_module_themselves_and_refuse_another_source(tmp_path: Path) -> None:
    parts = write_parts(tmp_path)
    study, about = tmp_path / "study.toml", tmp_path / "scheduler.json"
    study.write_text(study_of(parts))
    finish(tmp_path, "run", study, "--out", "local")
    with processes() as started:
        scheduler = ["distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(about)]
        started.append(start(scheduler, tmp_path / "scheduler.log"))
        address = wait_for(about)
        worker = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        started.append(start(worker, tmp_path / "worker.log"))
        finish(tmp_path, "run", study, "--out", "dask", "--engine", "dask", "--scheduler", address)
        assert exported(tmp_path / "dask") == exported(tmp_path / "local")
        file = tmp_path / f"{parts.replace('.', '/')}.py"
        file.write_text(file.read_text() + "\n# edited\n")
        refused = run(tmp_path, "run", study, "--out", "dask", "--engine", "dask", "--scheduler", address)
    assert refused.returncode == 1
    assert "its source was edited after this process had imported it; start the process anew" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_lacuna_run_takes_all_of_them(tmp_path: Path) -> None:
    parts = write_parts(tmp_path)
    words = [sys.executable, "-m", "lacuna.cli.main", "run", "--steps", "200", "--trials", "2", "--json"]
    own = [
        "--world",
        f"{parts}:Walk,pay=3",
        "--missingness",
        f"{parts}:by_mood",
        "--method",
        f"{parts}:Mine,explore=.5",
    ]
    done = subprocess.run([*words, *own], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["method"] for row in rows] == [f"{parts}:Mine,explore=0.5"] * 2
    assert all(0 < row["reward_per_step"] < 3 for row in rows)
    refused = subprocess.run(
        [*words, *own, "--alpha", "0.5"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert refused.returncode == 2
    assert "write its parameters after its name" in refused.stderr


# --- what cannot be --------------------------------------------------------------------------------------------------

AGENT = """
class Agent:
    def __init__(self, space, n_actions, *, seed, mood: str = "fine"):
        if mood == "bad":
            raise KeyError("mood")
        self.mood = mood
    def begin(self, observation): pass
    def act(self): return {"fine": 0, "high": 9, "text": "left"}.get(self.mood, 1.5)
    def learn(self, reward, observation, terminated):
        if self.mood == "fine":
            raise RuntimeError("cannot\\nlearn")
half = type("Half", (), {"__init__": lambda self, space, n, *, seed: None, "begin": len})
number = 3
import gymnasium
def box() -> gymnasium.Env: return gymnasium.make("CartPole-v1")
def hiding() -> gymnasium.Env:
    from lacuna import MissingObservation
    return MissingObservation(gymnasium.make("FrozenLake-v1"), "mcar:0.5")
def torque() -> gymnasium.Env: return gymnasium.make("Pendulum-v1")
def text() -> gymnasium.Env:
    made = gymnasium.make("FrozenLake-v1"); made.observation_space = gymnasium.spaces.Text(3); return made
env = gymnasium.make("FrozenLake-v1")
"""

REFUSED = [
    ('methods = [{use = "PARTS:half"}]', "a class of agents has begin(), act(), learn()"),
    ('methods = [{use = "PARTS:number"}]', "it must be a class or function that makes an agent"),
    ('methods = [{use = "PARTS:Agent", mood = "bad"}]', "made no agent: KeyError: 'mood' (parts.py, line 5)"),
    ('methods = [{use = "PARTS:Agent", seed = 3}]', "has no parameter 'seed'"),
    ('methods = [{use = "PARTS:Agent", mood = [1]}]', "mood of the method 'PARTS:Agent' is 1; it must be a text"),
    ('methods = [{use = "PARTS:Agnt"}]', "did you mean 'Agent'?"),
    ('methods = [{use = "nowhere"}]', "methods[0].name is 'nowhere'; it must be one of"),
    ('methods = [{use = 3}]', "methods[0].name is 3; it must be a text in quotes"),
    ('methods = [{moods = 3}]', "methods[0].name is missing; it is needed"),
    ('worlds = [{use = "PARTS:box"}]', "the observation is a Box of real numbers"),
    ('worlds = [{use = "PARTS:text"}]', "the observation space is Text"),
    ('worlds = [{use = "PARTS:torque"}]', "an agent chooses from Discrete ones"),
    ('worlds = [{use = "PARTS:hiding"}]', "hides parts of its observations already"),
    ('worlds = [{use = "PARTS:env"}]', "is an environment already; name what makes one"),
    ('worlds = [{use = "PARTS:number"}]', "it must be a TabularMDP, or a function that makes a world"),
    ('worlds = [{env = "FrozenLake-v1", size = 3}]', "could not be made: TypeError"),
    ('worlds = [{env = "FrozenLake-v1"}]\nmethods = [{name = "qmdp"}]', "a yardstick needs a world given as arrays"),
    ('missingness = [{use = "PARTS:number"}]', "it must be a Mechanism, or a function that makes one"),
    ('missingness = [{use = "PARTS:by_mood", rate = {a = 1}}]', "it must be a text in quotes"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "part"), REFUSED, ids=[lines for lines, _ in REFUSED])
def test_a_study_with_parts_that_cannot_be_is_refused_with_sentences(here: Path, lines: str, part: str) -> None:
    parts = write_parts(here, AGENT)
    keys = {
        "worlds": 'worlds = [{name = "corridor"}]',
        "missingness": 'missingness = ["mcar:0.2"]',
        "methods": 'methods = [{name = "last-observed"}]',
    }
    keys |= {line.partition(" ")[0]: line for line in lines.replace("PARTS", parts).splitlines()}
    with pytest.raises(StudyError) as told:
        Study.parse("\n".join(['name = "a"\nsteps = 10\ntrials = 1', *keys.values()]))
    assert part.replace("PARTS", parts) in str(told.value)
    assert all(len(line) < 700 for line in str(told.value).splitlines())


@pytest.mark.parametrize(
    ("mood", "part"),
    [
        ("fine", "learn() failed in step 1 of {}: RuntimeError: cannot learn (parts.py, line 11)"),
        ("high", "act() of {} gave 9; it must be a whole number from 0 to 1"),
        ("text", "act() of {} gave 'left'; it must be a whole number from 0 to 1"),
        ("odd", "act() of {} gave 1.5; it must be a whole number from 0 to 1"),
    ],
)
def test_an_agent_that_fails_is_told_in_a_sentence_with_the_place(here: Path, mood: str, part: str) -> None:
    parts = write_parts(here, AGENT)
    method = OwnMethod.named(f"{parts}:Agent", {"mood": mood})
    with pytest.raises(ValueError, match=r"act|learn") as told:
        run_trials(Problem.named("corridor", "mcar:0.2"), method, steps=50, seeds=range(2))
    assert part.format(method.method) in one_sentence(told.value)


def test_a_refused_study_leaves_nothing_behind(tmp_path: Path) -> None:
    parts = write_parts(tmp_path)
    (tmp_path / "study.toml").write_text(study_of(parts).replace("explore", "explor"))
    refused = run(tmp_path, "run", "study.toml", "--out", "results")
    assert refused.returncode == 2
    assert "has no parameter 'explor' (did you mean 'explore'?)" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "results").exists()
