"""Every example runs, says what it should, and a trial that was stopped leaves the log of one that was not."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lacuna.trial.engine.replay import replay
from lacuna.trial.log.chained_log import Entry, check, read_log, write_log
from lacuna.trial.log.decision_table import decision_table
from lacuna.trial.log.events import file_of
from lacuna.trial.log.keys import DrawsKey, Secret
from lacuna.trial.log.log_store import StoreError
from lacuna.trial.log.sqlite import SqliteStore

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *words: str) -> str:
    program = [sys.executable, "-W", "error", str(EXAMPLES / name), *words]
    done = subprocess.run(program, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == [
        "compare_methods.py",
        "own_environment.py",
        "trial.py",
    ]


def test_methods_are_compared_in_a_table() -> None:
    words = run("compare_methods.py", "--steps", "3000", "--trials", "2")
    lines = words.splitlines()
    assert len(lines) == 4 + 14 + 7
    assert all(method in words for method in ("random-action", "missing-as-state", "mi-conservative, K = 10"))
    assert all(line.count(" ± ") == 4 for line in lines[4:])


def test_own_environment_names_the_labels() -> None:
    words = run("own_environment.py")
    assert "mcar:0.5 is MCAR" in words
    assert "cold-sensor is NMAR" in words
    assert words.count("reward per step") == 3 * 5


# --- the trial -------------------------------------------------------------------------------------------------------

WORDS = ("--people", "3", "--days", "12", "--seed", "7")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    words = run("trial.py", "--folder", str(folder), *WORDS)
    assert "the chain of the log ends with" in words
    return folder


def log_of(folder: Path) -> list[Entry]:
    with SqliteStore.open(folder / "walk.db", write=False) as store:
        return list(store.read())


def test_a_trial_has_a_row_and_a_distribution_for_every_decision(whole: Path) -> None:
    entries = log_of(whole)
    table = decision_table(entries, file_of(entries))
    assert table.height == 3 * 12 * 2
    assert (table["prob_nothing"] + table["prob_prompt"] == 1).all()
    assert table["prob_prompt"].is_between(0.1, 0.9).all()
    assert 0.15 < table.select(pl.mean("missing_steps", "missing_mood", "missing_at home")).mean_horizontal()[0] < 0.35
    assert table.filter(pl.col("policy") == "learned").height == 3 * (12 * 2 - 14)
    assert 0 < table["reward_learned"].null_count() < 15


@pytest.mark.slow
def test_a_trial_killed_at_any_moment_tells_what_one_that_was_not_does(whole: Path, tmp_path: Path) -> None:
    program = [sys.executable, str(EXAMPLES / "trial.py"), "--folder", str(tmp_path), *WORDS]
    for wanted in (1, 20, 60, 61, 150):
        with subprocess.Popen(program, stdout=subprocess.DEVNULL) as child:
            while child.poll() is None and not ((tmp_path / "walk.db").exists() and events_in(tmp_path) >= wanted):
                time.sleep(0.01)
            child.kill()
    run("trial.py", "--folder", str(tmp_path), *WORDS)
    assert told_by(tmp_path) == told_by(whole)


def told_by(folder: Path) -> list[dict[str, Any]]:
    """What happened. A kill may come between an update and its snapshot, which then is missing in the log."""
    bodies = [check(entry) or {} for entry in log_of(folder)]
    return [body | {"seq": None} for body in bodies if body["kind"] not in ("begin", "snapshot")]


def events_in(folder: Path) -> int:
    try:
        return len(log_of(folder))
    except StoreError:  # it is being made
        return 0


def test_an_auditor_needs_the_log_and_the_draws_key_only(whole: Path, tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl", log_of(whole))
    Secret.from_seed(7).draws_key.write(tmp_path / "draws.key")
    _, head = replay(read_log(tmp_path / "log.jsonl"), DrawsKey.read(tmp_path / "draws.key"))
    assert head == log_of(whole)[-1].head
