"""Runs of every method and single decisions, for comparing two versions: ``pytest benchmarks --benchmark-autosave``."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import Settings
from lacuna.missingness import parse
from lacuna.run.run import Run
from lacuna.worlds.lake import Lake

STEPS = 20_000


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("missingness", ["none", "mcar:0.4", "mfog:0.5,0"])
def test_a_run(benchmark: BenchmarkFixture, method: str, missingness: str) -> None:
    mdp = Lake().mdp()
    mechanism = parse(missingness, mdp)

    def go() -> Run:
        run = Run(mdp, mechanism, Settings(method), seed=1)
        run.advance(STEPS)
        return run

    assert benchmark(go).steps == STEPS


def test_one_decision_of_an_agent(benchmark: BenchmarkFixture) -> None:
    """Act and learn through the public verbs, as a trial does."""
    run = Run(Lake().mdp(), parse("mcar:0.4", Lake().mdp()), Settings(), seed=1)
    run.advance(STEPS)
    agent = run.agent
    seen = iter(np.random.default_rng(0).integers(0, (9, 9, 4), size=(200_000, 3)).tolist())

    def decide() -> None:
        agent.act()
        agent.learn(-1.0, next(seen), terminated=False)

    benchmark(decide)
