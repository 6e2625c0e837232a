"""The notebook runs on an export, and its estimates are those of another way to compute them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from lacuna.trial.engine.trial import Trial
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.export import export
from trial_runs import THREE, Runner, clock, trial_file

NOTEBOOK = Path(__file__).parents[1] / "examples" / "trial_analysis.ipynb"
EFFECT = 0.75
Floats = NDArray[np.float64]


def run(folder: Path, script: Path) -> str:
    """Run the cells of the notebook as a program."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    script.write_text("\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
    program = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(
        program, check=False, capture_output=True, text=True, env=os.environ | {"LACUNA_EXPORT": str(folder)}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(words: str, label: str) -> tuple[float, float]:
    """An estimate and its standard error, as printed."""
    found = re.search(rf"^{label}: (\S+) \(standard error ([0-9.]+)", words, re.MULTILINE)
    assert found, words
    return float(found[1]), float(found[2])


def known_effect() -> Trial:
    """A trial with an effect that does not depend on the context, which matters for outcome and probability."""
    trial = Trial.create(
        TrialFile.parse("""
[trial]
name = "known"
actions = ["nothing", "prompt"]
absent = "nothing"
[settings]
method = "mi-synthetic"
K = 3
[allocation]
bounds = [0.2, 0.8]
[context]
place = { values = ["home", "work"] }
mood = { values = [1, 2, 3] }
"""), store="memory:", seed=4, clock=clock(),
    )  # fmt: skip
    random = np.random.default_rng(4)
    for i in range(30):
        who, own = f"person {i}", random.normal(0, 0.3)
        trial.enrol(who)
        for t in range(25):
            place, mood = int(random.integers(2)), int(random.integers(3))
            context = {"place": ("home", "work")[place], "mood": None if random.random() < 0.3 else mood + 1}
            action = trial.decide(who, t, context, available=bool(random.random() < 0.9)).action
            if random.random() < 0.85:
                reward = 2 * place + own + EFFECT * (action == "prompt") + random.normal(0, 0.5)
                trial.outcome(who, t, float(reward))
        trial.update()
    return trial


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pl.DataFrame]:
    """What the notebook prints for a trial with a known effect, and its rows."""
    where = tmp_path_factory.mktemp("known")
    export(known_effect().store.read(), where / "export", wcls=True, obp=True)
    return run(where / "export", where / "cells.py"), pl.read_parquet(where / "export" / "wcls.parquet")


def least_squares(y: Floats, X: Floats, weight: Floats, who: list[str]) -> tuple[float, float]:
    """The last coefficient of a weighted regression, and its standard error by participant: another way to compute."""
    root = np.sqrt(weight)
    fit = np.linalg.lstsq(X * root[:, None], y * root, rcond=None)[0]
    inverse = np.linalg.inv((X * root[:, None]).T @ (X * root[:, None]))
    names = np.array(who)
    total = np.zeros_like(inverse)
    for name in sorted(set(who)):
        mine = np.flatnonzero(names == name)
        Z, e = X[mine], (y - X @ fit)[mine]
        D = np.diag(weight[mine])
        corrected = np.linalg.solve(np.eye(mine.size) - Z @ inverse @ Z.T @ D, e)
        part = (Z.T @ D @ corrected)[:, None]
        total += part @ part.T
    return float(fit[-1]), float(np.sqrt((inverse @ total @ inverse)[-1, -1]))


def test_the_estimates_are_those_of_another_way_and_near_the_truth(made: tuple[str, pl.DataFrame]) -> None:
    words, table = made
    rows = [row for row in table.iter_rows(named=True) if row["randomised"] and not row["outcome_missing"]]
    y, a, p = (np.array([float(row[name]) for row in rows]) for name in ("outcome", "treatment", "prob"))
    who, q = [row["id"] for row in rows], a.mean()
    assert len({round(float(one), 6) for one in p}) > 3
    weight = np.where(a > 0, q / p, (1 - q) / (1 - p))
    one = np.ones_like(y)
    place = np.array([float(row["coded_place"] == 1) for row in rows])
    moods = [np.array([float(row["coded_mood"] == code) for row in rows]) for code in range(3)]
    for label, X in (
        ("wcls, no controls", np.stack([one, a - q], axis=1)),
        ("wcls, with controls", np.stack([one, place, *moods, a - q], axis=1)),
    ):
        effect, error = least_squares(y, X, weight, who)
        assert numbers(words, label) == pytest.approx((effect, error), abs=2e-6)
        assert abs(effect - EFFECT) < 4 * error
    treated = sum(v / w for v, w, on in zip(y, p, a, strict=True) if on) / sum(
        1 / w for w, on in zip(p, a, strict=True) if on
    )
    others = [(v, 1 / (1 - w)) for v, w, on in zip(y, p, a, strict=True) if not on]
    difference = treated - sum(v * w for v, w in others) / sum(w for _, w in others)
    found, error = numbers(words, "weighted difference")
    assert found == pytest.approx(difference, abs=2e-6)
    assert abs(found - EFFECT) < 4 * error
    # Controls explain what the place does, so the estimate with them is sharper.
    assert numbers(words, "wcls, with controls")[1] < numbers(words, "wcls, no controls")[1] < 0.2
    assert f"mean reward of always treating: {treated:.6f}" in words
    assert f"mean reward as it was: {y.mean():.6f}" in words


def test_it_counts_what_is_there(made: tuple[str, pl.DataFrame]) -> None:
    words, table = made
    assert f"trial known: {table.height} decision points of 30 participants" in words
    assert "treatment: prompt" in words
    assert "mood" in words


@pytest.mark.parametrize(
    ("given", "treatment"), [({}, None), ({"actions": THREE}, "call"), ({"on_invalid": "fallback"}, None)]
)
def test_it_runs_on_a_trial_in_which_everything_happens(
    given: dict[str, Any], treatment: str | None, tmp_path: Path
) -> None:
    runner = Runner(trial_file(**given), 2).run()
    # Drawn, but with three actions not between treatment and others: it cannot be weighted.
    runner.trial.decide("person 2", 30, None, allowed=["nothing", "prompt"])
    runner.trial.outcome("person 2", 30, 1.0)
    export(runner.trial.store.read(), tmp_path / "export", wcls=True, obp=True, treatment=treatment)
    words = run(tmp_path / "export", tmp_path / "cells.py")
    assert "nan" not in words
    assert numbers(words, "wcls, with controls")[1] > 0


def test_it_runs_on_a_trial_without_decisions(tmp_path: Path) -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1)
    export(trial.store.read(), tmp_path / "export", wcls=True)
    words = run(tmp_path / "export", tmp_path / "cells.py")
    assert "wcls: there are no outcomes of both kinds yet" in words


def test_the_notebook_is_one() -> None:
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids) > 10
    for cell in book["cells"]:
        wanted = {"cell_type", "id", "metadata", "source"}
        assert set(cell) == (wanted | {"execution_count", "outputs"} if cell["cell_type"] == "code" else wanted)
        assert cell.get("outputs", []) == []
