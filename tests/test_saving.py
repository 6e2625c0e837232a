"""Saving: whole after any kill, one writer at a time, and nobody replaces what they do not know."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edits import File
from lacuna.agent import savefile
from lacuna.agent.agent import FORM, Agent
from lacuna.agent.savefile import KnownFiles, OtherKernelsWarning, SaveFileError
from lacuna.agent.settings import Settings
from lacuna.files import write_whole
from lacuna.missingness import none
from lacuna.run.run import Run
from lacuna.version import RESULTS_VERSION, __version__
from problems import lake
from saved import experienced, refused, whole_body
from sentences import one_sentence

TESTS = Path(__file__).parent


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def step(agent: Agent) -> None:
    agent.act()
    agent.learn(1.0, [0, 1, 2], terminated=False)


def in_a_process(program: str, *words: object) -> Any:
    """What a program of its own prints, as JSON; it may fork, as no thread runs in it."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(TESTS)!r})\n{program}", *map(str, words)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    return json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)


# --- kills -----------------------------------------------------------------------------------------------------------

KILLS = """
import json, os, random, resource, signal, time
from pathlib import Path
from lacuna.agent import savefile
from lacuna.agent.agent import FORM, Agent
from saved import experienced

path, moment, kills = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
chance = random.Random(moment)
agent = experienced()
agent.save(path)
size = path.stat().st_size

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def then_die(call):
    return lambda *words: (call(*words), die())

def prepare():
    if moment == "before writing":
        savefile._seal = die
    elif moment == "half written":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    elif moment == "before the sync":
        os.fsync = die
    elif moment == "before the renaming":
        Path.replace = die
    elif moment == "after the renaming":
        Path.replace = then_die(Path.replace)

leftovers = 0
for _ in range(kills):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        agent = Agent.load(path)
        prepare()
        while True:
            agent.act(); agent.learn(1.0, [0, 1, 2], False)
            os.write(theirs, b"!")
            agent.save(path)
    os.close(theirs)
    if moment == "any time":
        os.read(ours, 1)
        time.sleep(chance.uniform(0, 0.004))
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ours)
    again = Agent.load(path)
    leftovers += len(os.listdir(path.parent)) - 1
    again.save(path)
    assert os.listdir(path.parent) == [path.name], os.listdir(path.parent)
print(json.dumps(leftovers))
"""


@pytest.mark.parametrize(
    ("moment", "leaves"),
    [
        ("before writing", True),
        ("half written", True),
        ("before the sync", True),
        ("before the renaming", True),
        ("after the renaming", False),
        ("any time", None),
    ],
)
def test_a_killed_save_leaves_a_whole_file_and_the_next_one_tidies_up(
    moment: str, leaves: bool | None, tmp_path: Path
) -> None:
    kills = 40 if leaves is None else 5
    leftovers = in_a_process(KILLS, tmp_path / "agent", moment, kills)
    if leaves is not None:
        assert leftovers == (kills if leaves else 0)
    assert names_in(tmp_path) == ["agent"]


# --- two writers -----------------------------------------------------------------------------------------------------

RACE = """
import json, os
from pathlib import Path
from lacuna.agent.agent import FORM, Agent
from lacuna.agent.savefile import SaveFileError
from saved import experienced

path, rounds, writers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
found = []
for n in range(rounds):
    if n % 2 == 0:
        # Every other time there is no file yet, and each has made an agent of its own.
        path.unlink(missing_ok=True)
    gate, opens = os.pipe()
    children = []
    for writer in range(writers):
        told, tells = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(opens)
            agent = Agent.load(path) if n % 2 else experienced(steps=3)
            for _ in range(writer + 1):
                agent.act(); agent.learn(1.0, [0, 1, 2], False)
            os.write(tells, b"!")
            os.read(gate, 1)  # until the gate is closed for all
            try:
                agent.save(path)
            except SaveFileError:
                os._exit(1)
            os._exit(0)
        os.close(tells)
        children.append((child, told))
    for _, told in children:
        os.read(told, 1)
        os.close(told)
    before = Agent.load(path).steps if n % 2 else 3
    os.close(opens)
    os.close(gate)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, _ in children]
    found.append([codes, Agent.load(path).steps - before])
assert os.listdir(path.parent) == [path.name]
print(json.dumps(found))
"""


def test_of_those_who_save_one_file_at_once_exactly_one_succeeds(tmp_path: Path) -> None:
    rounds, writers = 20, 5
    found = in_a_process(RACE, tmp_path / "agent", rounds, writers)
    assert len(found) == rounds
    for codes, steps in found:
        assert sorted(codes) == [0] + [1] * (writers - 1)
        assert codes.index(0) == steps - 1


def agent_and_load(path: Path) -> tuple[Agent, Callable[[], Agent], Callable[[Agent], None]]:
    return experienced(), lambda: Agent.load(path), step


def run_and_load(path: Path) -> tuple[Run, Callable[[], Run], Callable[[Run], None]]:
    mdp = lake("episodic")
    return Run(mdp, none(mdp), Settings(K=2)), lambda: Run.load(path, mdp, none(mdp)), lambda run: run.advance(7)


@pytest.mark.parametrize("pair", [agent_and_load, run_and_load])
def test_what_someone_else_saved_since_is_not_replaced(pair: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "file"
    first, load, go_on = pair(path)
    first.save(path)
    second, third = load(), load()
    for one in (first, second, third):
        go_on(one)
    second.save(path)
    kept = path.read_bytes()
    # The third would write the very same bytes, and yet two decisions were made.
    for late in (first, third, third):
        with pytest.raises(SaveFileError, match=r"was saved by someone else since this \w+ was loaded from it or"):
            late.save(path)
        assert path.read_bytes() == kept
    go_on(second)
    second.save(path)
    third.save(tmp_path / "elsewhere")
    third.save(path, overwrite=True)
    go_on(third)
    third.save(path)
    assert load().steps == third.steps
    assert names_in(tmp_path) == ["elsewhere", "file"]


def test_a_file_that_an_agent_does_not_know_is_not_replaced(tmp_path: Path) -> None:
    mdp = lake("episodic")
    run = Run(mdp, none(mdp), Settings(K=2))
    run.save(tmp_path / "run")
    experienced().save(tmp_path / "agent")
    (tmp_path / "table").write_text("a,b\n1,2\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path in before:
        with pytest.raises(SaveFileError) as caught:
            experienced(steps=3).save(path)
        assert f"{path} is there already, and this agent was neither loaded from it nor" in one_sentence(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    for path in before:
        experienced(steps=3).save(path, overwrite=True)
        assert Agent.load(path).steps == 3


def test_an_empty_file_and_one_that_was_removed_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    agent = experienced()
    agent.save(tmp_path / "a")
    (tmp_path / "a").unlink()
    agent.save(tmp_path / "a")
    assert Agent.load(tmp_path / "a").steps == 60


def test_a_file_is_known_by_any_of_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    agent = experienced()
    agent.save(folder / "a")
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "a").symlink_to(folder / "a")
    monkeypatch.chdir(folder)
    for name in ("a", "./a", tmp_path / "link" / "a", tmp_path / "a", tmp_path / "a", "a"):
        step(agent)
        agent.save(name)
    assert Agent.load("a").steps == 66
    assert (tmp_path / "a").is_symlink()
    assert names_in(tmp_path) == ["a", "folder", "link"]


@pytest.mark.parametrize("renamed", [False, True])
def test_a_save_that_was_interrupted_can_be_repeated(
    renamed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = experienced()
    agent.save(tmp_path / "a")
    step(agent)
    replace = Path.replace

    def interrupted(part: Path, path: Path) -> None:
        if renamed:
            replace(part, path)
        raise KeyboardInterrupt

    for _ in range(3):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", interrupted)
            with pytest.raises(KeyboardInterrupt):
                agent.save(tmp_path / "a")
        assert Agent.load(tmp_path / "a").steps == agent.steps - (not renamed)
        assert names_in(tmp_path) == ["a"]
    step(agent)
    agent.save(tmp_path / "a")
    assert Agent.load(tmp_path / "a").steps == 62


def test_an_agent_that_saves_under_ever_new_names_does_not_grow(tmp_path: Path) -> None:
    files = KnownFiles(FORM)
    for n in range(200):
        files.write(tmp_path / str(n), {}, {}, overwrite=False)
    assert len(files._seals) == 64
    files.write(tmp_path / "199", {"more": 1}, {}, overwrite=False)
    with pytest.raises(SaveFileError, match="is there already"):
        files.write(tmp_path / "0", {"more": 1}, {}, overwrite=False)


# --- file systems ----------------------------------------------------------------------------------------------------


def test_without_locks_files_are_still_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    write_whole(tmp_path / "a", b"long ago")
    write_whole(tmp_path / "a", b"now")
    assert (tmp_path / "a").read_bytes() == b"now"
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "a", b"never", (tmp_path / "missing").unlink)
    assert names_in(tmp_path) == ["a"]


@pytest.mark.parametrize(("code", "bad"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_folder_that_cannot_be_synced_is_no_error_unless_the_disk_is(
    code: int, bad: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def sync(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(file)

    monkeypatch.setattr(os, "fsync", sync)
    agent = experienced()
    for _ in range(2):
        if bad:
            with pytest.raises(OSError, match="Input/output error"):
                agent.save(tmp_path / "a")
        else:
            agent.save(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == whole_body()
    assert names_in(tmp_path) == ["a"]


# --- other kernels ---------------------------------------------------------------------------------------------------


def test_a_file_names_what_saved_it() -> None:
    saved_by = File.of(whole_body()).described["saved_by"]
    assert saved_by == {"lacuna": __version__, "results": RESULTS_VERSION, "kernels": FORM.digest}


@pytest.mark.parametrize("pair", [agent_and_load, run_and_load])
def test_a_file_of_other_kernels_is_loaded_with_a_warning_or_refused(
    pair: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, mdp = tmp_path / "file", lake("episodic")
    kind = pair(path)[0]
    kind.save(path)

    def load(**options: Any) -> Any:
        return Agent.load(path, **options) if isinstance(kind, Agent) else Run.load(path, mdp, none(mdp), **options)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load()
        load(other_kernels="refuse")
    for name, value in (("digest_of", lambda _: "0123456789abcdef"), ("RESULTS_VERSION", RESULTS_VERSION + 1)):
        with monkeypatch.context() as patched:
            patched.setattr(savefile, name, value)
            with pytest.warns(
                OtherKernelsWarning, match="was saved by other kernels .* may differ in its bits"
            ) as seen:
                again = load()
            assert [warning.filename for warning in seen] == [__file__]
            assert again.steps == kind.steps
            assert "may differ in its bits" in refused(path, lambda _: load(other_kernels="refuse"))
    with pytest.raises(ValueError, match="other_kernels is 'ask'; it must be one of warn, refuse"):
        load(other_kernels="ask")
