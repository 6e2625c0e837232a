"""One algorithm, driven twice: compiled = step by step = both without the compiler, to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import UPDATES, VOTES
from lacuna.run.run import DRIVERS, Run
from problems import CROSSED, READERS, READINGS, all_digests, lake, mechanisms, settings

STEPS = 150


@pytest.fixture(scope="module")
def compiled() -> dict[str, str]:
    return all_digests("compiled", STEPS)


def test_every_rule_and_every_mask_is_crossed_and_no_two_runs_are_alike(compiled: dict[str, str]) -> None:
    cases = list(settings())
    assert {case.method for case in cases} == set(METHODS)
    for method in METHODS.values():
        ours = [case for case in cases if case.method == method.name]
        voted = {case.vote for case in ours if case.K != 1}
        assert not method.votes or voted == set(VOTES)
        assert method.name not in CROSSED or {(c.vote, c.update) for c in ours} == set(product(VOTES, UPDATES))
        assert {case.optimism > 0 for case in ours} == {False, not method.plans}
        assert not method.votes or {case.q_table for case in ours} == {"shared", "own"}
        assert not method.plans or {case.look > 0 for case in ours} == {False, True}
    assert {case.evidence for case in cases} == {"usual", "observed", "outcomes", "patterns", "all"}
    # Equal digests mean something: masks that differ, and settings that differ, lead to runs that differ.
    for reading, case in product(READINGS, READERS):
        masked = {compiled[f"{reading} {name} {case}"] for name in mechanisms(lake(reading))}
        assert len(masked) == len(mechanisms(lake(reading)))
    assert len({compiled[f"episodic mcar:0.4 {case}"] for case in cases}) == len(cases)


def test_compiled_equals_step_by_step(compiled: dict[str, str]) -> None:
    assert all_digests("stepwise", STEPS) == compiled


@pytest.mark.parametrize("driver", DRIVERS)
def test_equal_without_the_compiler(driver: str, compiled: dict[str, str]) -> None:
    program = f"import json; from problems import all_digests; print(json.dumps(all_digests({driver!r}, {STEPS})))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parent, env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == compiled


def test_chunks_do_not_matter() -> None:
    mdp = lake("episodic")
    mechanism = mechanisms(mdp)["mcar:0.4"]
    for case in settings():
        whole, parts = (Run(mdp, mechanism, case, seed=3) for _ in range(2))
        whole.advance(3000)
        for steps in (1, 0, 999, 2, 1998):
            parts.advance(steps)
        assert parts.agent.Q.tobytes() == whole.agent.Q.tobytes()
        assert all(np.array_equal(a, b) for a, b in zip(parts.tally, whole.tally, strict=True))
