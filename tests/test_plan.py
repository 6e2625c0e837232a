"""How long a study will take: no kernel's compilation is part of the estimate."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lacuna.agent.methods import METHODS, YARDSTICKS
from lacuna.cli import study_commands as command
from lacuna.kernels.compiled import kernel
from lacuna.study.runs import RunSpec
from lacuna.study.spec import Study
from studies import write_study

STUDY = """
name = "kinds"
steps = 100
trials = 3
missingness = ["mcar:0.2"]
worlds = [{{name = "corridor"}}]
methods = [{}]
"""


def study_of(*methods: str) -> str:
    return STUDY.format(", ".join(f'{{name = "{name}", gamma = 0.9}}' for name in methods))


def _next(x: int) -> int:
    return x + 1


def test_whatever_has_to_be_compiled_the_estimate_is_that_of_compiled_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    ready = set()

    def execute(run: RunSpec) -> None:
        """Take a second, and a thousand more if the kernel of the method has to be compiled."""
        nonlocal clock
        clock += 1
        if run.settings.method not in ready:
            ready.add(run.settings.method)
            clock += 1000
            kernel(_next)(1)

    monkeypatch.setattr("lacuna.study.runner.execute", execute)
    monkeypatch.setattr("time.perf_counter", lambda: clock)
    study = Study.parse(study_of(*METHODS, *YARDSTICKS))
    assert command.seconds_a_run(study, frozenset(), budget=1e6) == (1.0, len(study))
    assert len(ready) == len(METHODS) + len(YARDSTICKS) > 8


CHILD = """
import json, sys
from numba.core.caching import NullCache
from numba.core.event import install_recorder
from lacuna.cli import study_commands as command
from lacuna.study.spec import Study
from lacuna.run.loop import run_steps

run_steps._cache = NullCache()
timed, noted = command._timed, []

def note(run):
    with install_recorder("numba:compile") as compiler:
        took, told = timed(run)
    compiled = {event.data["dispatcher"].__name__ for _, event in compiler.buffer}
    noted.append([took, told, sorted(compiled)])
    return took, told

command._timed = note
seconds, tried = command.seconds_a_run(Study.read(sys.argv[1]), frozenset())
print(json.dumps([seconds, tried, noted]))
"""


@pytest.mark.slow
def test_a_cache_that_lacks_the_kernel_of_a_yardstick_does_not_change_the_estimate(tmp_path: Path) -> None:
    path = write_study(tmp_path, study_of("last-observed", "optimum"))
    done = subprocess.run([sys.executable, "-c", CHILD, str(path)], check=True, capture_output=True, text=True)
    seconds, tried, noted = json.loads(done.stdout)
    assert any("run_steps" in compiled for _, _, compiled in noted)
    assert all(told for _, told, compiled in noted if compiled)
    counted = [took for took, told, _ in noted if not told]
    assert len(counted) == tried == 6
    assert seconds == pytest.approx(sum(counted) / tried, rel=1e-12)
