"""A saved file is whole, or refused with one sentence; a failed write leaves the old one; nothing is ever pickled."""

from __future__ import annotations

import os
import pickle
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from edits import TAIL
from lacuna.agent import savefile
from lacuna.agent.agent import Agent
from lacuna.agent.memory import ANYWHERE
from lacuna.agent.methods import METHODS
from lacuna.agent.savefile import SaveFileError
from lacuna.agent.settings import Settings
from lacuna.kernels import cache
from lacuna.kernels.counts import add
from lacuna.missingness import mcar, none
from lacuna.run.run import Run
from problems import digest, lake, mechanisms
from saved import experienced, refused, resealed, whole_body

# --- round trips ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["new", "ready", "acted", "ended"])
@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_agent_goes_on_as_the_saved_one(method: str, moment: str, tmp_path: Path) -> None:
    agent = experienced(method, steps=0 if moment == "new" else 80)
    if moment == "new":
        agent = Agent(agent.space, 3, agent.settings, seed=5)
    if moment in ("acted", "ended"):
        agent.act()
    if moment == "ended":
        agent.learn(1.0, [None, 0, 0], terminated=True)
    agent.save(tmp_path / "a")
    loaded = Agent.load(tmp_path / "a")
    assert loaded.pathways == agent.pathways
    assert loaded.to_parts()[0] == agent.to_parts()[0]
    for one in (agent, loaded):
        if moment in ("new", "ended"):
            one.begin([1, None, None])
    actions: list[list[int]] = [[], []]
    for one, taken in zip((agent, loaded), actions, strict=True):
        rng = np.random.default_rng(3)
        for t in range(60):
            taken.append(one._action if t == 0 and moment == "acted" else one.act())
            taken.append(int(one.probabilities().argmax()))
            one.learn(float(rng.normal()), [None, int(rng.integers(2)), None], terminated=False)
    assert actions[0] == actions[1]
    one.save(tmp_path / "b")
    agent.save(tmp_path / "c")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


def test_big_counts_and_odd_values_survive(tmp_path: Path) -> None:
    agent = experienced()
    add(0, 5, 2**52, ANYWHERE, agent.model.table)
    agent.memory.Q[0] = [-0.0, 5e-324, -1e100]
    agent.save(tmp_path / "a")
    loaded = Agent.load(tmp_path / "a")
    assert dict(loaded.counts) == dict(agent.counts)
    assert loaded.Q.tobytes() == agent.Q.tobytes()
    assert np.signbit(loaded.Q[0, 0])


@pytest.mark.parametrize("name", ["mcar:0.4", "bursts:0.1,0.3", "latent"])
def test_a_loaded_run_goes_on_as_the_saved_one(name: str, tmp_path: Path) -> None:
    mdp = lake("episodic")
    run = Run(mdp, mechanisms(mdp)[name], Settings(K=3, gamma=0.9), seed=2, first_observed=False)
    for steps in (0, 70, 500):
        run.advance(steps, times=(10, 70))
        run.save(tmp_path / "run")
        loaded = Run.load(tmp_path / "run", mdp, mechanisms(mdp)[name])
        assert [row.tolist() for row in loaded.curve] == [row.tolist() for row in run.curve]
        assert loaded.seconds == run.seconds
        assert digest(loaded, loaded.record(200)) == digest(run, run.record(200))


def test_a_run_is_only_resumed_in_its_own_problem(tmp_path: Path) -> None:
    mdp = lake("episodic")
    Run(mdp, mcar(mdp.space, 0.4), Settings()).save(tmp_path / "run")
    for other in (lake("continuing"), mdp):
        mechanism = mcar(mdp.space, 0.41 if other is mdp else 0.4)
        with pytest.raises(SaveFileError, match="saved with another world or mechanism than lake"):
            Run.load(tmp_path / "run", other, mechanism)


# --- files that are not what they should be --------------------------------------------------------------------------


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    body = whole_body()
    lines = [i for i, byte in enumerate(body) if byte == 10][:2]
    places = {0, 1, 6, lines[0], lines[0] + 1, lines[1], lines[1] + 1, lines[1] + 9, len(body) - TAIL, len(body) - 1}
    for place in sorted(places | set(range(0, len(body), 97))):
        (tmp_path / "cut").write_bytes(body[:place])
        assert any(words in refused(tmp_path / "cut") for words in ("cut off after", "not a file saved by lacuna"))


@given(st.data())
@effort(max_examples=200)
def test_any_changed_byte_is_noticed(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(whole_body()) - 1))
    new = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole_body()[place]))
    path = Path("changed")
    path.write_bytes(whole_body()[:place] + bytes([new]) + whole_body()[place + 1 :])
    refused(path.absolute())


def test_bytes_more_or_less_are_noticed(tmp_path: Path) -> None:
    body = whole_body()
    for changed in (body + b"\n", body + b"x", b"\n" + body, body + body, body[:200] + body[201:], body[::-1]):
        (tmp_path / "x").write_bytes(changed)
        refused(tmp_path / "x")


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"lacuna agent 2", "was saved in format 2; this version reads format 8 only"),
        (b"lacuna agent 0", "was saved in format 0"),
        (b"lacuna agent " + b"9" * 6000, "was saved in format 9999"),
        (b"lacuna run 3", "holds a saved run, not a saved agent"),
        (b"lacuna agent one", "is not a file saved by lacuna"),
        (b"lacuna", "is not a file saved by lacuna"),
        (b"\x89PNG", "is not a file saved by lacuna"),
    ],
)
def test_another_first_line_is_explained(first: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(resealed(first + whole_body()[whole_body().index(b"\n") :]))
    assert words in refused(tmp_path / "x")


def test_what_is_no_file_is_explained(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(tmp_path / "missing")
    with pytest.raises(SaveFileError, match=r"'a\\x00b' cannot be read: embedded null byte"):
        Agent.load("a\0b")
    (tmp_path / "folder").mkdir()
    assert "cannot be read: Is a directory" in refused(tmp_path / "folder")
    for foreign in (
        b"",
        b"\n\n\n",
        pickle.dumps({"Q": [1, 2]}),
        b"PK\x03\x04",
        "lacuna agent ²\n".encode(),
        b"\xff" * 99,
    ):
        (tmp_path / "x").write_bytes(foreign)
        assert "is not a file saved by lacuna" in refused(tmp_path / "x")


def test_nothing_in_the_package_unpickles() -> None:
    """But the cache of compiled kernels: Numba's results are pickles, and `test_cache` shows whose files are read."""
    for path in set(Path(savefile.__file__).parents[1].rglob("*.py")) - {Path(cache.__file__)}:
        text = path.read_text()
        assert not re.search(r"import pickle|pickle\.(load|dump)|allow_pickle", text), path
        assert "allow_pickle=True" not in text, path


# --- writing -------------------------------------------------------------------------------------------------------


def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path: Path) -> None:
    agent = experienced()
    agent.save(tmp_path / "a")
    old = (tmp_path / "a").read_bytes()
    limit = len(old) // 2
    program = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from lacuna.agent.agent import Agent\n"
        "agent = Agent.load(sys.argv[1]); agent.act(); agent.learn(1.0, [0, 0, 0], False)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {resource.RLIM_INFINITY}))\n"
        "try:\n    agent.save(sys.argv[1])\n"
        "except OSError as error:\n    print(error.strerror)\n"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout == "File too large\n"
    assert (tmp_path / "a").read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_reaches_the_disk_before_it_takes_its_name_and_its_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_disk(file: int) -> None:
        order.append("on disk")
        fsync(file)

    def note_name(part: Path, path: Path) -> None:
        order.append("renamed")
        replace(part, path)

    monkeypatch.setattr(os, "fsync", note_disk)
    monkeypatch.setattr(Path, "replace", note_name)
    experienced().save(tmp_path / "a")
    assert order == ["on disk", "renamed", "on disk"]
    assert Agent.load(tmp_path / "a").steps == 60


def test_a_write_that_cannot_begin_changes_nothing(tmp_path: Path) -> None:
    agent = experienced()
    with pytest.raises(FileNotFoundError):
        agent.save(tmp_path / "no such folder" / "a")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        agent.save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_stepwise_run_says_that_it_cannot_be_saved(tmp_path: Path) -> None:
    mdp = lake("episodic")
    run = Run(mdp, none(mdp.space), Settings(K=2), driver="stepwise")
    with pytest.raises(ValueError, match="a stepwise run cannot be saved"):
        run.save(tmp_path / "a")
    assert not list(tmp_path.iterdir())
