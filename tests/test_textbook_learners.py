"""The textbook learners of benchmarks/model_based.py, beside which planning is measured, are fair opponents."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from lacuna.run.problems import Problem

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
textbook: Any = import_module("model_based")
draw_chances: Any = textbook.draw_chances


@njit(nogil=True)
def draws(counts: Any, each: float, times: int) -> Any:
    np.random.seed(1)  # noqa: NPY002  compiled code has NumPy's old generator only
    found = np.empty((times, counts.shape[0]))
    for chances in found:
        draw_chances(counts, each, chances)
    return found


def test_next_states_are_drawn_from_the_posterior() -> None:
    """Means and variances are those of Dirichlet(counts + each), also of states that were never seen."""
    times = 20_000
    for counts, each in (([3.0, 0.0, 1.0, 0.0, 0.0], 0.25), ([0.0, 0.0, 0.0], 1 / 3), ([2.0, 5.0], 0.5)):
        chances = draws(np.array(counts), each, times)
        total = sum(counts) + each * len(counts)
        mean = (np.array(counts) + each) / total
        variance = mean * (1 - mean) / (1 + total)
        assert (np.abs(chances.sum(axis=1) - 1) <= 1e-4 + 1e-12).all()
        # What is dropped may take 1e-4 from a mean, and at most twice that from a variance.
        assert (np.abs(chances.mean(axis=0) - mean) < 5 * np.sqrt(variance / times) + 1e-4).all()
        spread = (chances - mean) ** 2
        assert (np.abs(spread.mean(axis=0) - variance) < 5 * spread.std(axis=0) / np.sqrt(times) + 2e-4).all()


def test_no_seed_that_chooses_a_setting_is_reported() -> None:
    assert max(textbook.CHOOSING_SEEDS) < textbook.FIRST_SEED


def test_psrl_has_a_setting_with_which_it_does_not_explore_for_ever() -> None:
    """With rewards as uncertain as the largest, and 100 steps by each drawn world, it earns −4 in CliffWalking."""
    problem, psrl = Problem.named("cliff-walking", "none"), textbook.TEXTBOOK["PSRL"]

    def earned(setting: Any) -> float:
        return float(textbook.textbook(problem, psrl.kind, setting, range(5800, 5802))[:, -1].mean())

    assert max(earned(setting) for setting in psrl.settings if setting.longest == 10) > -1.5
