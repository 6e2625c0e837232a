"""One algorithm, driven twice: compiled = step by step = both without the compiler, to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lacuna.run.run import DRIVERS, Run
from problems import READINGS, all_digests, lake, mechanisms, settings

STEPS = 150


@pytest.fixture(scope="module")
def compiled() -> dict[str, str]:
    return all_digests("compiled", STEPS)


def test_the_matrix_is_complete(compiled: dict[str, str]) -> None:
    # 7 single-state methods, 3 MI methods x (4 votes x 3 updates + 1), 3 others x (4 votes + 1), 4 that plan, 13 with
    # optimism, 6 with own tables, 8 with unusual evidence; 13 mechanisms, 2 readings; and 4 votes and a planner
    # where a parent is found.
    assert len(compiled) == (7 + 3 * 13 + 3 * 5 + 4 + 13 + 6 + 8) * 13 * len(READINGS) + 5
    # Runs differ from each other, so equal digests mean something.
    some = [digest for case, digest in compiled.items() if case.startswith("episodic mcar:0.4")]
    assert len(some) == len(set(some)) == 7 + 3 * 13 + 3 * 5 + 4 + 13 + 6 + 8


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
