"""A run goes on in another process as if nothing had happened, whatever moment it was killed at."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lacuna.agent import savefile
from lacuna.agent.methods import METHODS
from lacuna.agent.settings import Settings
from lacuna.run.run import FORM, Run
from problems import READINGS, digest, lake, mechanisms, settings

TESTS = Path(__file__).parent
MECHANISM = "bursts-each:0.2,0.4"
FIRST, SECOND = 700, 900
CHUNK, CHUNKS, KILLS = 250, 300, 4

RESUME_ALL = """
import json, sys
from lacuna.run.run import Run
from problems import READINGS, digest, lake, mechanisms
found = {}
for reading in READINGS:
    mdp = lake(reading)
    for name in json.loads(sys.argv[2]):
        run = Run.load(f"{sys.argv[1]}/{reading}-{name}", mdp, mechanisms(mdp)[sys.argv[3]])
        found[f"{reading}-{name}"] = digest(run, run.record(int(sys.argv[4])))
print(json.dumps(found))
"""

SAVE_EVERY_CHUNK = """
import sys
from pathlib import Path
from lacuna.agent.settings import Settings
from lacuna.run.run import Run
from problems import lake, mechanisms
path, method, chunk, total = Path(sys.argv[1]), sys.argv[2], int(sys.argv[4]), int(sys.argv[5])
mdp = lake("episodic")
mechanism = mechanisms(mdp)[sys.argv[3]]
run = Run.load(path, mdp, mechanism) if path.exists() else Run(mdp, mechanism, Settings(method, gamma=0.9), seed=4)
while run.steps < total:
    run.advance(chunk)
    run.save(path)
    print("saved", flush=True)
print("done", flush=True)
"""


def python(program: str, *words: object) -> list[str]:
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(TESTS)!r})\n{program}", *map(str, words)]


def test_every_method_goes_on_in_a_new_process(tmp_path: Path) -> None:
    cases = {f"case{i}": case for i, case in enumerate(settings())}
    assert {case.method for case in cases.values()} == set(METHODS)
    whole = {}
    for reading in READINGS:
        mdp = lake(reading)
        for name, case in cases.items():
            first, both = (Run(mdp, mechanisms(mdp)[MECHANISM], case, seed=6) for _ in range(2))
            first.advance(FIRST)
            first.save(tmp_path / f"{reading}-{name}")
            both.advance(FIRST)
            whole[f"{reading}-{name}"] = digest(both, both.record(SECOND))
    assert len(set(whole.values())) == len(whole)
    done = subprocess.run(
        python(RESUME_ALL, tmp_path, json.dumps(list(cases)), MECHANISM, SECOND), check=True, capture_output=True
    )
    assert json.loads(done.stdout) == whole


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mi-synthetic", "last-observed"])
def test_a_killed_run_ends_as_one_that_was_left_alone(method: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    chance = random.Random(f"killed {method}")
    command = python(SAVE_EVERY_CHUNK, path, method, MECHANISM, CHUNK, CHUNK * CHUNKS)
    steps_seen = [0]
    kills = 0
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "saved\n"
            if kills < KILLS:
                time.sleep(chance.uniform(0.0, 0.06))
                child.send_signal(signal.SIGKILL)
            rest = child.stdout.read()
        # Whatever the moment: the file is whole, stands at the end of a chunk, and never goes back.
        header, _ = savefile.KnownFiles(FORM).read(path, "warn")
        assert header["agent"]["steps"] % CHUNK == 0
        assert header["agent"]["steps"] > steps_seen[-1]
        steps_seen.append(header["agent"]["steps"])
        if rest.endswith("done\n"):
            break
        assert child.returncode == -signal.SIGKILL
        kills += 1
    assert kills == KILLS, "it was over before it was killed often enough"
    mdp = lake("episodic")
    mechanism = mechanisms(mdp)[MECHANISM]
    alone = Run(mdp, mechanism, Settings(method, gamma=0.9), seed=4)
    alone.advance(CHUNK * CHUNKS)
    resumed = Run.load(path, mdp, mechanism)
    assert resumed.steps == alone.steps == CHUNK * CHUNKS
    assert digest(resumed, resumed.record(50)) == digest(alone, alone.record(50))


@pytest.mark.slow
def test_no_half_file_is_ever_seen(tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = python(SAVE_EVERY_CHUNK, path, "mi-conservative", MECHANISM, 50, 50 * 60)
    reads = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "saved\n"
        while child.poll() is None:
            if path.exists():
                header, _ = savefile.KnownFiles(FORM).read(path, "warn")
                reads.add(header["agent"]["steps"])
    assert child.returncode == 0
    assert len(reads) > 5
    assert all(steps % 50 == 0 for steps in reads)
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
