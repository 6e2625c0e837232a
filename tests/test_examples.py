"""Every example runs, says what it should, and a trial that was stopped leaves the log of one that was not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
    assert len(lines) == 4 + 10
    assert all(method in words for method in ("random-action", "missing-as-state", "mi-conservative, K = 10"))
    assert all(line.count(" ± ") == 4 for line in lines[4:])


def test_own_environment_names_the_labels() -> None:
    words = run("own_environment.py")
    assert "mcar:0.5 is MCAR" in words
    assert "cold-sensor is NMAR" in words
    assert words.count("reward per step") == 3 * 5


def test_a_stopped_trial_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    run("trial.py", "--folder", str(tmp_path / "whole"), "--decisions", "20")
    run("trial.py", "--folder", str(tmp_path / "parts"), "--decisions", "7")
    log = tmp_path / "parts" / "log.csv"
    # As if it had been stopped after writing a row and before saving the agent.
    log.write_text(log.read_text() + "7,0,,1,0.5,0.5,prompt,1.0\n")
    assert "7 decisions were made before" in run("trial.py", "--folder", str(tmp_path / "parts"), "--decisions", "20")
    rows = log.read_text().splitlines()
    assert len(rows) == 1 + 20
    assert log.read_bytes() == (tmp_path / "whole" / "log.csv").read_bytes()
    for row in rows[1:]:
        nothing, prompt = (float(p) for p in row.split(",")[4:6])
        assert abs(nothing + prompt - 1) < 1e-12
        assert min(nothing, prompt) >= 0.1 - 1e-12
