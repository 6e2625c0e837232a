"""A study of more than two thousand short runs, and the real command that runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUNS = 2 * 3 * (8 + 8 + 16 + 8) * 20

STUDY = """
name = "many"
steps = 250
trials = 20
missingness = ["mcar:0.2", "mcolor:0.2,0.4,0.6", "mfog:0.5,0.0"]
curve_points = 3

[[worlds]]
name = "lake"

[[worlds]]
name = "lake"
stay = true
continuing = true

[grid]
alpha = [0.1, 1]
gamma = [0.5, 1]
epsilon = [0, 0.05]

[[methods]]
name = "last-observed"

[[methods]]
name = "missing-as-state"

[[methods]]
name = "mi-synthetic"
K = [1, 4]

[[methods]]
name = "mi-conservative"
K = 3
"""


def write_study(folder: Path, text: str = STUDY) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "lacuna.cli.main", "study", *map(str, words)]


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, check=False)


def finish(*words: str | Path) -> None:
    done = run(*words)
    assert done.returncode == 0, done.stderr + done.stdout


def exported(store: Path) -> bytes:
    to = store.with_suffix(".csv")
    finish("export", store, to)
    return to.read_bytes()
