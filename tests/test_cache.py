"""Where compiled kernels are kept, whom that trusts, and what is said while they are compiled."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import shutil
import stat
import subprocess
import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import walk_packages
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import lacuna
from lacuna.kernels import cache
from lacuna.kernels.codes import index_of
from lacuna.kernels.meaning import meaning, remember_source
from lacuna.kernels.space import Space

PACKAGE = Path(cache.__file__).parents[1]
SAID = "compiling the kernels: half a minute, once"

# Two kernels of one file, so that something is compiled twice.
TINY = """
from lacuna.kernels.compiled import kernel

@kernel
def twice(x):
    return 2 * x

@kernel
def thrice(x):
    return 3 * x
"""
USE = """
import json, sys
from tiny import thrice, twice
answer = twice(21), thrice(7)
sys.stderr.write("done\\n")
stats = [one.stats for one in (twice, thrice)]
print(json.dumps({"answer": answer, "read": sum(sum(s.cache_hits.values()) for s in stats), "in": stats[0].cache_path}))
"""


def as_a_plain_user(command: list[str]) -> list[str]:
    """The command without root's power to write where permissions forbid it."""
    return ["setpriv", "--bounding-set=-dac_override", *command] if os.geteuid() == 0 else command


class Machine:
    """The places of a machine of its own: a copy of the package, a home, a temporary and a named folder."""

    def __init__(self, folder: Path) -> None:
        self.code, self.home, self.tmp, self.named = (folder / name for name in ("code", "home", "tmp", "named"))
        shutil.copytree(PACKAGE, self.code / "lacuna", ignore=shutil.ignore_patterns("__pycache__"))
        (self.code / "tiny.py").write_text(TINY)
        for place in (self.home, self.tmp, self.named):
            place.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(self.code), "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(self.home), "TMPDIR": str(self.tmp),
        }  # fmt: skip

    @property
    def nowhere_else(self) -> str:
        """Code before other code: keeps Python from looking for a temporary folder elsewhere if ours is read-only."""
        return f"import tempfile; tempfile.tempdir = {str(self.tmp)!r}\n"

    def make_read_only(self, *places: Path) -> None:
        for place in places:
            for path in (place, *place.rglob("*")):
                path.chmod(path.stat().st_mode & ~0o222)

    def python(self, code: str, **environment: str) -> Any:
        command = as_a_plain_user([sys.executable, "-W", "error", "-c", code])
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=self.environment | environment)
        assert done.returncode == 0, done.stderr
        assert done.stderr in {"", "done\n"}
        return json.loads(done.stdout)

    def use(self, **environment: str) -> Any:
        """Call two kernels in a process of its own."""
        used = self.python(USE, **environment)
        assert used["answer"] == [42, 21]
        return used


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_nothing_of_the_package_or_the_home_need_be_writable(machine: Machine) -> None:
    machine.make_read_only(machine.code, machine.home)
    for place in (machine.code, machine.home):
        with_a_file = f"import json; open({str(place / 'new')!r}, 'w')"
        with pytest.raises(AssertionError, match="PermissionError"):
            machine.python(with_a_file)
    first, second = machine.use(), machine.use()
    assert (first["read"], second["read"]) == (0, 2)
    private = machine.tmp / f"lacuna-{os.geteuid()}"
    assert Path(second["in"]).parent == private
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


@pytest.mark.parametrize("of", ["named", "home"])
def test_a_filled_folder_serves_where_it_is_read_only(of: str, machine: Machine) -> None:
    named = {"LACUNA_CACHE_DIR": str(machine.named)} if of == "named" else {}
    machine.use(**named)
    filled = machine.named if of == "named" else machine.home
    machine.make_read_only(machine.code, machine.home, machine.named)
    before = files(filled)
    assert machine.use(**named)["read"] == 2
    assert files(filled) == before != set()
    assert not [name for name in files(machine.tmp) if "kernels" in name]


def test_what_a_read_only_folder_lacks_is_kept_in_the_next(machine: Machine) -> None:
    named = {"LACUNA_CACHE_DIR": str(machine.named)}
    machine.python("import json; from tiny import twice; print(twice(1))", **named)
    machine.make_read_only(machine.named)
    assert [machine.use(**named)["read"] for _ in range(2)] == [1, 2]


def test_where_nothing_can_be_written_kernels_are_compiled_at_every_start(machine: Machine) -> None:
    machine.make_read_only(machine.code, machine.home, machine.tmp, machine.named)
    for named in ({}, {"LACUNA_CACHE_DIR": str(machine.named)}):
        for _ in range(2):
            assert machine.python(machine.nowhere_else + USE, **named)["read"] == 0


def test_kernels_are_kept_in_the_first_folder_that_can_be_written_to(machine: Machine) -> None:
    places = {"named": machine.named, "user's": machine.home / ".cache", "temporary": machine.tmp}
    places["user's"].mkdir()
    found = machine.python(f"""
import json, itertools, os
from lacuna.kernels.cache import cache_folders
found = []
for writable in itertools.product([True, False], repeat=3):
    for place, yes in zip({list(map(str, places.values()))!r}, writable):
        os.chmod(place, 0o755 if yes else 0o555)
    os.environ["LACUNA_CACHE_DIR"] = {str(machine.named)!r}
    cache_folders.cache_clear()
    found.append([str(folder) for folder in cache_folders() if os.access(folder, os.W_OK)])
    for place in {[str(places["user's"] / "lacuna"), str(machine.tmp / f"lacuna-{os.geteuid()}")]!r}:
        os.path.isdir(place) and os.access(os.path.dirname(place), os.W_OK) and os.rmdir(place)
print(json.dumps(found))
""")
    own = [machine.named, places["user's"] / "lacuna", machine.tmp / f"lacuna-{os.geteuid()}"]
    for writable, kept in zip(product([True, False], repeat=3), found, strict=True):
        first = next((str(folder) for folder, yes in zip(own, writable, strict=True) if yes), None)
        assert kept == ([first] if first else [])


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"LACUNA_CACHE_DIR": "named"}, "named"),
        ({"NUMBA_CACHE_DIR": "named"}, "named"),
        ({"LACUNA_CACHE_DIR": "named", "NUMBA_CACHE_DIR": "other"}, "named"),
        ({"LACUNA_CACHE_DIR": "named", "XDG_CACHE_HOME": "other"}, "named"),
        ({"XDG_CACHE_HOME": "other"}, "other/lacuna"),
        ({}, "home/.cache/lacuna"),
    ],
)
def test_the_environment_names_the_folder(
    variables: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LACUNA_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    assert next(cache._candidates()) == tmp_path / expected


def of_somebody_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)


def test_a_folder_that_others_can_write_to_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lacuna"
    assert cache._is_private(folder)
    for mode in (0o770, 0o707):
        folder.chmod(mode)
        assert not cache._is_private(folder)
    folder.chmod(0o700)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file").touch()
    assert not cache._is_private(tmp_path / "link")
    assert not cache._is_private(tmp_path / "file")
    assert cache._is_private(folder)
    of_somebody_else(folder, monkeypatch)
    assert not cache._is_private(folder)


def test_a_changed_file_is_compiled_anew(machine: Machine) -> None:
    machine.use()
    tiny = machine.code / "tiny.py"
    then = tiny.stat()
    tiny.write_text(TINY.replace("2 * x", "8 * x"))
    os.utime(tiny, (then.st_atime, then.st_mtime))
    assert machine.python(USE)["answer"] == [168, 21]


def test_kernels_that_nobody_read_for_long_are_removed_when_new_ones_are_saved(machine: Machine) -> None:
    kept = machine.named / "kernels"
    old, young, other = kept / "old", kept / "young", machine.named / "thesis"
    kept.mkdir()
    for file in (old, young, other):
        file.touch()
    for file in (old, other):
        os.utime(file, (0, 0))
    named = {"LACUNA_CACHE_DIR": str(machine.named)}
    machine.use(**named)
    assert other.exists()
    assert young.exists()
    assert not old.exists()
    mine = [file for file in kept.iterdir() if file != young]
    for file in mine:
        os.utime(file, (0, 0))
    assert machine.use(**named)["read"] == 2
    assert all(file.stat().st_mtime > 0 for file in mine), "what was read is not old"


def edited(machine: Machine, before: str, after: str, *, read: int, answer: tuple[int, int] = (42, 21)) -> None:
    """After an edit, so many of the two kernels are read from the cache, and they compute this."""
    tiny = machine.code / "tiny.py"
    source = tiny.read_text()
    assert before in source
    tiny.write_text(source.replace(before, after))
    used = machine.python(USE)
    assert (used["answer"], used["read"]) == (list(answer), read)


def test_an_edit_compiles_what_it_changes_and_nothing_else(machine: Machine) -> None:
    machine.use()
    edited(
        machine, "@kernel\ndef twice(x):", '"""Moved."""\n\n@kernel\ndef twice(x: int) -> int:\n    """Two."""', read=2
    )
    edited(machine, '"""Two."""', '"""Two of them."""  # as a comment says', read=2)
    edited(machine, "2 * x", "(2 * x)", read=2)
    edited(machine, "2 * x", "8 * x", read=1, answer=(168, 21))
    (machine.code / "factors.py").write_text("FACTOR = 5\nUNREAD = 1\n")
    edited(machine, "(8 * x)", "FACTOR * x\n\nfrom factors import FACTOR", read=1, answer=(105, 21))
    (machine.code / "factors.py").write_text("FACTOR = 5\nUNREAD = 2\n")
    assert machine.python(USE)["read"] == 2
    (machine.code / "factors.py").write_text("FACTOR = 6\nUNREAD = 2\n")
    assert machine.python(USE) | {"in": ""} == {"answer": [126, 21], "read": 1, "in": ""}


CALLS = """
from typing import NamedTuple
from lacuna.kernels.compiled import inner, kernel

class Pair(NamedTuple):
    first: int
    second: int

@inner
def swapped(pair):
    return Pair(pair.second, pair.first)

@kernel
def first_of_swapped(pair):
    return swapped(pair).first
"""
USE_CALLS = """
import json
from pairs import Pair, first_of_swapped
print(json.dumps([first_of_swapped(Pair(1, 2)), sum(first_of_swapped.stats.cache_hits.values())]))
"""


def test_a_module_may_be_renamed_and_what_a_kernel_calls_or_takes_may_not_change(machine: Machine) -> None:
    def found(source: str, name: str = "pairs") -> list[int]:
        (machine.code / f"{name}.py").write_text(source)
        answer: list[int] = machine.python(USE_CALLS.replace("pairs", name))
        (machine.code / f"{name}.py").unlink()
        return answer

    assert found(CALLS) == [2, 0]
    assert found(CALLS, "twins") == [2, 1]
    assert found(CALLS.replace("pair.second, pair.first", "pair.second + 1, pair.first")) == [3, 0]
    assert found(CALLS.replace("    first: int\n    second: int", "    second: int\n    first: int")) == [2, 0]
    assert found(CALLS) == [2, 1]


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes({
        "emptied": b"", "cut": content[:middle], "one byte": content[:10], "longer": content + b"x",
        "garbled": bytes(reversed(content)),
        "a bit": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "a text": b"[Errno 5] Input/output error",
    }[how])  # fmt: skip


@pytest.mark.parametrize("how", ["emptied", "cut", "one byte", "longer", "garbled", "a bit", "a text"])
def test_a_damaged_file_is_set_aside_with_one_line_and_compiled_anew(how: str, machine: Machine) -> None:
    kept = Path(machine.use()["in"])
    path = next(kept.glob("twice-*"))
    whole = path.read_bytes()
    damage(path, how)
    command = [sys.executable, "-W", "error", "-c", USE]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=machine.environment)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        f"the compiled kernel {path} is damaged: it is set aside as {path.name}.damaged, and compiled anew", "done",
    ]  # fmt: skip
    assert json.loads(done.stdout) | {"in": ""} == {"answer": [42, 21], "read": 1, "in": ""}
    assert path.with_name(f"{path.name}.damaged").exists()
    assert len(path.read_bytes()) == pytest.approx(len(whole), rel=0.1)
    assert machine.use()["read"] == 2


def test_a_file_under_another_name_is_not_taken_for_its_kernel(machine: Machine) -> None:
    kept = Path(machine.use()["in"])
    twice, thrice = (next(kept.glob(f"{name}-*")) for name in ("twice", "thrice"))
    shutil.copyfile(thrice, twice)
    done = subprocess.run(
        [sys.executable, "-c", USE], check=True, capture_output=True, text=True, env=machine.environment
    )
    assert json.loads(done.stdout)["answer"] == [42, 21]


def test_a_file_that_another_user_could_have_written_is_never_unpickled(machine: Machine) -> None:
    kept = Path(machine.use()["in"])
    path = next(kept.glob("twice-*"))

    def poison(*, mode: int = 0o644, owner: int | None = None) -> None:
        """What would run if it was unpickled, under a seal that fits."""
        body = b"cposix\nsystem\n(S'touch poisoned'\ntR."
        path.unlink()
        path.write_bytes(hashlib.sha256(path.name.encode() + body).digest() + body)
        path.chmod(mode)
        if owner is not None:
            os.chown(path, owner, -1)

    poison()
    subprocess.run([sys.executable, "-c", USE], check=True, capture_output=True, env=machine.environment)
    assert Path("poisoned").exists(), "the poison works: one's own files are believed"
    Path("poisoned").unlink()
    somebody = {} if os.geteuid() else {"owner": 65534}
    for how in ({"mode": 0o664}, {"mode": 0o646}, somebody):
        poison(**how)
        machine.use()
        assert not Path("poisoned").exists()
    elsewhere = machine.home / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    machine.use()
    assert not Path("poisoned").exists()


class Terminal:
    """A command whose stderr is a terminal, and what it says there."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            as_a_plain_user(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
            env=environment | {"TERM": "xterm"},
        )  # fmt: skip
        os.close(theirs)

    def read_until(self, text: str | None) -> str:
        """What was said until `text` came, or until the end."""
        said = ""
        while text is None or text not in said:
            try:
                said += os.read(self.ours, 1024).decode()
            except OSError:  # Linux says so that nobody is at the other end
                break
        return said

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


def said_on_a_terminal(machine: Machine, code: str = USE, **environment: str) -> list[str]:
    terminal = Terminal([sys.executable, "-c", code], machine.environment | environment)
    said = terminal.read_until(None)
    assert terminal.process.wait() == 0, said
    terminal.close()
    return said.splitlines()


def test_compiling_is_said_once_on_a_terminal_and_not_when_it_was_done_before(machine: Machine) -> None:
    assert said_on_a_terminal(machine) == [SAID, "done"]
    assert said_on_a_terminal(machine) == ["done"]


def test_where_nothing_is_kept_that_is_said(machine: Machine) -> None:
    machine.make_read_only(machine.code, machine.home, machine.tmp)
    said = said_on_a_terminal(machine, machine.nowhere_else + USE)
    how_often = "at every start, unless LACUNA_CACHE_DIR names a folder to keep them in"
    assert said == [SAID.replace("once", how_often), "done"]


def test_compiling_is_said_in_a_notebook(machine: Machine) -> None:
    in_a_notebook = """
import io, json, sys
class OutStream(io.StringIO): ...
OutStream.__module__ = "ipykernel.iostream"
sys.stderr = OutStream()
from tiny import twice
twice(1)
print(json.dumps(sys.stderr.getvalue()))
"""
    assert machine.python(in_a_notebook) == f"{SAID}\n"


@pytest.mark.parametrize("stderr", ["None", "open('/dev/null', 'w').close() or sys.__stdin__"])
def test_nobody_to_tell_is_no_error(stderr: str, machine: Machine) -> None:
    code = f"import json, sys; sys.stderr = {stderr}; from tiny import twice; print(twice(4))"
    assert machine.python(code) == 8


STUDY = """
name = "short"
steps = 10
trials = 1
missingness = ["mcar:0.2"]
worlds = [{name = "corridor"}]
methods = [{name = "last-observed"}]
"""
FIRST_USES = {
    "Agent": """
from lacuna import Agent, Space
agent = Agent(Space((2, 2)), 2)
agent.begin((0, 0))
agent.act()""",
    "play": """
import gymnasium
from lacuna import Agent, Lake, play
play(gymnasium.make("lacuna/Lake-v0"), Agent(Lake().mdp().space, 8), 5)""",
    "Run": """
from lacuna import Lake, Run, Settings
from lacuna.missingness import mcar
world = Lake().mdp()
Run(world, mcar(world, 0.4), Settings("mi-synthetic", K=5)).advance(5)""",
}
FIRST_COMMANDS = {
    "run": ["run", "--steps", "10", "--trials", "1"],
    "paper": ["paper", "--out", "paper"],
    "theory": ["theory", "--out", "theory"],
    "study": ["study", "run", "study.toml", "--out", "store"],
    "bench": ["bench"],
}


@pytest.mark.parametrize("use", [*FIRST_USES, *FIRST_COMMANDS])
def test_the_first_use_says_at_once_that_it_compiles(use: str, machine: Machine) -> None:
    Path("study.toml").write_text(STUDY)
    how = ["-c", FIRST_USES[use]] if use in FIRST_USES else ["-m", "lacuna.cli.main", *FIRST_COMMANDS[use]]
    terminal = Terminal([sys.executable, *how], machine.environment)
    said = terminal.read_until(SAID)
    still_at_it = terminal.process.poll() is None
    terminal.close()
    assert SAID in said
    assert still_at_it


def test_a_kernel_that_only_kernels_call_refuses_python() -> None:
    with pytest.raises(
        TypeError, match=r"^index_of is called by kernels only; make it a @kernel to call it from Python$"
    ):
        index_of(np.zeros(2, dtype=np.int64), Space((2, 2)).layout)


def test_every_kernel_has_a_meaning_of_its_own_that_no_module_name_enters() -> None:
    kernels = {}
    for found in walk_packages(lacuna.__path__, "lacuna."):
        module = import_module(found.name)
        for name, value in vars(module).items():
            if isinstance(value, CPUDispatcher) and value.py_func.__module__ == found.name:
                kernels[f"{found.name}.{name}"] = value
    assert len(kernels) > 200
    digests = {name: meaning(kernel).digest for name, kernel in kernels.items()}
    assert len(set(digests.values())) == len(kernels)
    # With another module around them, functions of the same code mean the same.
    for kernel in kernels.values():
        function = kernel.py_func
        elsewhere = FunctionType(function.__code__, function.__globals__ | {"__name__": "elsewhere"})
        remember_source(elsewhere)
        assert meaning(elsewhere) == meaning(kernel)
