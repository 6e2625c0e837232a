"""Every example runs, says what it should, and a trial that was stopped leaves the log of one that was not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    assert len(lines) == 4 + 12
    assert all(method in words for method in ("random-action", "missing-as-state", "mi-conservative, K = 10"))
    assert all(line.count(" ± ") == 4 for line in lines[4:])


def test_own_environment_names_the_labels() -> None:
    words = run("own_environment.py")
    assert "mcar:0.5 is MCAR" in words
    assert "cold-sensor is NMAR" in words
    assert words.count("reward per step") == 3 * 5


# --- the trial -------------------------------------------------------------------------------------------------------


def trial(folder: Path, decisions: int, *words: str) -> str:
    return run("trial.py", "--folder", str(folder), "--decisions", str(decisions), *words)


def refused(program: list[str]) -> str:
    done = subprocess.run([sys.executable, "-W", "error", *program], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial of 120 decisions that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    assert trial(folder, 120).startswith("0 decisions were made before\n120 decisions in")
    return folder


def test_the_log_of_a_trial_has_a_row_and_a_distribution_for_every_decision(whole: Path) -> None:
    rows = (whole / "log.csv").read_text().splitlines()[1:]
    assert [int(row.split(",")[0]) for row in rows] == list(range(120))
    for row in rows:
        nothing, prompt = (float(p) for p in row.split(",")[4:6])
        assert nothing + prompt == 1
        assert min(nothing, prompt) >= 0.1


def test_a_trial_killed_at_any_moment_only_ever_adds_to_its_log(whole: Path, tmp_path: Path) -> None:
    log = tmp_path / "trial" / "log.csv"
    program = [sys.executable, str(EXAMPLES / "trial.py"), "--folder", str(log.parent), "--decisions", "120"]
    before = b""
    for wanted in (1, 11, 40, 41, 90):
        with subprocess.Popen(program, stdout=subprocess.DEVNULL) as child:
            while child.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < 1 + wanted):
                pass
            child.kill()
        after = log.read_bytes()
        assert after.startswith(before)
        before = after
    trial(log.parent, 120)
    assert (log.read_bytes()).startswith(before)
    assert log.read_bytes() == (whole / "log.csv").read_bytes()
    assert (log.parent / "agent.lacuna").read_bytes() == (whole / "agent.lacuna").read_bytes()


def test_a_row_torn_anywhere_is_completed(whole: Path, tmp_path: Path) -> None:
    trial(tmp_path, 7)
    lines = (whole / "log.csv").read_bytes().splitlines(keepends=True)
    assert (tmp_path / "log.csv").read_bytes() == b"".join(lines[:8])
    # Cut within the next row, after it, and some rows further: the agent of seven decisions makes them again.
    ahead = b"".join(lines[8:11])
    for end in (1, len(lines[8]) - 1, len(lines[8]), len(lines[8]) + 3, len(ahead)):
        folder = tmp_path / str(end)
        folder.mkdir()
        (folder / "agent.lacuna").write_bytes((tmp_path / "agent.lacuna").read_bytes())
        (folder / "log.csv").write_bytes(b"".join(lines[:8]) + ahead[:end])
        trial(folder, 120)
        assert content(folder) == content(whole)


def test_an_agent_that_was_lost_is_made_again_from_the_log(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes((whole / "log.csv").read_bytes())
    assert trial(tmp_path, 120).startswith("120 decisions were made before")
    assert content(tmp_path) == content(whole)


def test_another_trial_is_refused_and_nothing_is_changed(whole: Path, tmp_path: Path) -> None:
    before, source = content(whole), (EXAMPLES / "trial.py").read_text()
    changes = {
        "seed": ("default=7", "default=8", "its seed is 7, not 8; nothing was changed"),
        "actions": ('"prompt")', '"prompt", "call")', "its number of actions is 2, not 3; nothing was changed"),
        "settings": ("gamma=0.5", "gamma=0.6", "its settings is Settings"),
        "context": ("(3, 3, 2)", "(3, 3, 3)", "its context is Space"),
    }
    for name, (old, new, words) in changes.items():
        other = tmp_path / f"{name}.py"
        assert source.count(old) == 1
        other.write_text(source.replace(old, new))
        assert words in refused([str(other), "--folder", str(whole), "--decisions", "130"])
    # Without its agent, the log says so itself, for what shows in it.
    folder = tmp_path / "log only"
    folder.mkdir()
    (folder / "log.csv").write_bytes(before["log.csv"])
    for name in ("seed", "actions"):
        words = refused([str(tmp_path / f"{name}.py"), "--folder", str(folder), "--decisions", "130"])
        assert "is of another trial: it is" in words
        assert content(folder) == {"log.csv": before["log.csv"]}
    assert "its seed is 7, not 9" in refused([str(EXAMPLES / "trial.py"), "--folder", str(whole), "--seed", "9"])
    assert content(whole) == before


def test_a_log_that_lost_rows_or_has_others_is_refused_and_kept(whole: Path, tmp_path: Path) -> None:
    for name, body in content(whole).items():
        (tmp_path / name).write_bytes(body)
    log = tmp_path / "log.csv"
    lines = log.read_bytes().splitlines(keepends=True)
    for broken, words in (
        (b"".join(lines[:-1]), "has 119 decisions but the agent made 120; restore the log"),
        (b"", "has 0 decisions but the agent made 120; restore the log"),
        (b"".join(lines) + b"120,0,,,x\n", "line 122: the reward is 'x'; it must be a number"),
        (b"".join([b"other\n", *lines[1:]]), "line 1, is of another trial"),
        (b"".join(lines) + b"120,0,,1,0.5,0.5,prompt,1.0\n", "line 122, is of another trial"),
        (b"".join(lines) + b"121,", "line 122, is of another trial"),
    ):
        log.write_bytes(broken)
        assert words in refused([str(EXAMPLES / "trial.py"), "--folder", str(tmp_path), "--decisions", "130"])
        assert log.read_bytes() == broken
