"""Looking at results imports nothing but lacuna, and reads nothing but the results, whatever their files say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import lacuna
from commands import Call, caller
from lacuna import Store, Study
from lacuna.report.replay import replay
from lacuna.report.verifying import check_page, recordings_in
from lacuna.study.engines import Local
from lacuna.study.runner import run_study
from own_parts import study_of, write_parts

HARMLESS = """
name = "harmless"
steps = 60
trials = 2
missingness = ["mcar:.2", "late:2,mcar:0.1"]
worlds = [{name = "corridor", length = 7}]
methods = [{name = "last-observed"}, {name = "mi-synthetic", K = 2}]
curve_points = 2
"""

EVIL = """
from pathlib import Path
Path("ran").write_text("imported")
import gymnasium
gymnasium.register(id="Evil-v0", entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv")
def W(*args: object, **more: object) -> "lacuna.TabularMDP":
    Path("ran").write_text("called")
"""

SHELL = {"use": "subprocess:getoutput", "cmd": "touch ran"}

FORGED: dict[str, dict[str, Any]] = {
    "a world that is a file": {"worlds": [{"use": "down/evil.py:W"}]},
    "a world that is a module": {"worlds": [{"use": "evil_module:W"}]},
    "a world that is any callable": {"worlds": [SHELL]},
    "a world by its plain name": {"worlds": [{"name": "evil-entry"}]},
    "a world of lacuna's that makes environments": {
        "worlds": [{"use": "lacuna.worlds.toy_text:from_toy_text", "env": "evil_module:Evil-v0"}]
    },
    "an id that imports a module": {"worlds": [{"env": "evil_module:Evil-v0"}]},
    "an id that this process knows": {"worlds": [{"env": "Known-v0"}]},
    "a mechanism that is a file": {"missingness": [{"use": "down/evil.py:W"}]},
    "a mechanism as text": {"missingness": ["evil_module:W,rate=0.5"]},
    "a mechanism by its plain name": {"missingness": ["evil-entry,rate=0.5"]},
    "a mechanism in another": {"missingness": ["late:2,evil_module:W"]},
    "a mechanism in another in another": {"missingness": ["late:2,late:1,down/evil.py:W"]},
    "a parameter that is a file": {"missingness": ["nobody,rate=@pipe"]},
    "a method that is a file": {"methods": [{"use": "down/evil.py:W"}]},
    "a method that is any callable": {"methods": [{"name": "subprocess:getoutput", "cmd": ["touch ran"]}]},
    "a method by its plain name": {"methods": [{"name": "evil-entry"}]},
    "a later world of several": {"worlds": [{"name": "corridor"}, {"use": "down/evil.py:W"}]},
}


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harmless") / "store"
    run_study(Study.parse(HARMLESS), Store(folder), Local(1))
    return folder


@pytest.fixture
def here(harmless: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with code that leaves a mark when it runs, and a store."""
    import os

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "down").mkdir()
    for file in ("down/evil.py", "evil_module.py"):
        (tmp_path / file).write_text(EVIL)
    about = tmp_path / "evil-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    groups = ("lacuna.worlds", "lacuna.mechanisms", "lacuna.methods")
    (about / "entry_points.txt").write_text("\n".join(f"[{group}]\nevil-entry = evil_module:W" for group in groups))
    # Nobody writes into it: reading it would wait for ever.
    os.mkfifo(tmp_path / "pipe")
    shutil.copytree(harmless, tmp_path / "store")
    gymnasium.register(id="Known-v0", entry_point="evil_module:W")
    yield tmp_path
    del gymnasium.registry["Known-v0"]
    assert "evil_module" not in sys.modules


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    return caller(capsys, monkeypatch)


def poison(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note in every module of lacuna what is imported for a reference."""
    loaded: list[str] = []

    def load(reference: str, digest: str | None = None) -> Any:
        loaded.append(reference)
        raise AssertionError(reference)

    real = lacuna.references.load
    for module in [one for name, one in list(sys.modules.items()) if name.partition(".")[0] == "lacuna"]:
        if getattr(module, "load", None) is real:
            monkeypatch.setattr(module, "load", load)
    return loaded


def note_of(store: Path) -> dict[str, Any]:
    (path,) = (store / "studies").glob("*.json")
    note: dict[str, Any] = json.loads(path.read_text())
    return note


def looked_at(call: Call, here: Path) -> str:
    """What every command and every picture says that only looks."""
    said = ""
    for words in (
        ("study", "status", "store"), ("study", "report", "store", "--out", "page.html"),
        ("study", "report", "store", "--study", "harmless", "--out", "page.html"),
        ("study", "compare", "store", "store", "--out", "compared.html"), ("study", "export", "store", "runs.csv"),
        ("worlds",), ("methods",),
    ):  # fmt: skip
        answer = call(*words)
        assert answer.code == 0, answer
        assert "Traceback" not in answer.err
        said += answer.out + answer.err
    store = Store(here / "store")
    said += store._repr_html_() + repr(store)
    return said + "".join(repr(study) + study._repr_html_() for study in store.studies())


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("form", ["older", "newer"])
def test_no_note_of_a_study_makes_a_command_that_looks_import_anything(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch, forged: str, form: str
) -> None:
    note = note_of(here / "store")
    note["study"] |= FORGED[forged] | {"name": "forged"}
    if form == "older":
        del note["expanded"]
    (here / "store" / "studies" / "forged.json").write_text(json.dumps(note))
    with monkeypatch.context() as patched:
        loaded = poison(patched)
        said = looked_at(call, here)
    assert (loaded, (here / "ran").exists()) == ([], False)
    assert "harmless: 8 of 8 runs" in said
    assert ("left alone, as it cannot be read: store/studies/forged.json (" in said) == (form == "older")


EXPANDED: list[dict[str, Any]] = [
    {"problems": [["down/evil.py:W", {"size": 3}, "evil_module:W"]]},
    {"problems": [["evil_module:Evil-v0", {}, "late:2,down/evil.py:W"]]},
    {"settings": [{"use": "subprocess:getoutput", "parameters": {"cmd": "touch ran"}}]},
    {"sources": {"corridor": {"down/evil.py:W": "0" * 64, "evil_module:W": "0" * 64}}},
]
DAMAGED: list[Any] = [
    {"problems": []}, {"settings": []}, {"problems": [["corridor", {}]]}, {"problems": [[3, {}, "none"]]},
    {"problems": [["corridor", {"length": {"a": 1}}, "none"]]}, {"problems": "corridor"},
    {"settings": [{"use": 3, "parameters": {}}]}, {"settings": [{"use": "no reference", "parameters": {}}]},
    {"settings": [{"method": "nobody's"}]}, {"settings": [{"method": "last-observed", "mood": 1}]},
    {"settings": [{"use": "a:b"}]}, {"sources": {"corridor": 3}}, {"sources": None}, {"more": 1},
]  # fmt: skip


@pytest.mark.parametrize("change", EXPANDED, ids=repr)
def test_what_a_note_says_its_study_stands_for_is_shown_and_not_looked_up(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    note = note_of(here / "store")
    note["study"]["name"], note["expanded"] = "forged", note["expanded"] | change
    (here / "store" / "studies" / "forged.json").write_text(json.dumps(note))
    with monkeypatch.context() as patched:
        loaded = poison(patched)
        said = looked_at(call, here)
    assert (loaded, (here / "ran").exists()) == ([], False)
    assert "  forged: " in said
    assert "left alone" not in said


@pytest.mark.parametrize("change", [*DAMAGED, None, 3, []], ids=repr)
def test_a_note_whose_expansion_is_damaged_is_left_alone_and_named(here: Path, call: Call, change: Any) -> None:
    note = note_of(here / "store")
    note["study"]["name"] = "forged"
    note["expanded"] = note["expanded"] | change if isinstance(change, dict) else change
    path = here / "store" / "studies" / "forged.json"
    path.write_text(json.dumps(note))
    before = path.read_bytes()
    assert "left alone, as it cannot be read: store/studies/forged.json" in looked_at(call, here)
    assert path.read_bytes() == before


UNPRINTABLE: list[dict[str, Any]] = [
    {"problems": [["la\ud800ke", {}, "none"]]}, {"problems": [["lake", {}, "mcar:0.2\x1b[31m"]]},
    {"problems": [["lake", {"wi\ud800nd": 1}, "none"]]}, {"problems": [["x" * 100_001, {}, "none"]]},
    {"settings": [{"use": "\ud800.py:W", "parameters": {}}]},
    {"settings": [{"use": "a:b", "parameters": {"c": "\ud800"}}]},
    {"sources": {"corridor": {"a:b\n": "0" * 64}}}, {"sources": {"corridor": {"a:b": "\ud800"}}},
]  # fmt: skip


@pytest.mark.parametrize("change", UNPRINTABLE, ids=lambda change: ascii(change)[:60])
def test_a_note_with_a_name_that_no_table_can_hold_is_left_alone_with_the_reason(
    here: Path, call: Call, change: dict[str, Any]
) -> None:
    note = note_of(here / "store")
    note["study"]["name"], note["expanded"] = "forged", note["expanded"] | change
    (here / "store" / "studies" / "forged.json").write_text(json.dumps(note))
    said = looked_at(call, here)
    assert "left alone, as it cannot be read: store/studies/forged.json (" in said
    assert "is no name; a name has at most 100000 characters, all printable" in said
    assert "  harmless: " in said


def test_an_older_note_of_lacunas_own_parts_is_shown_whole_and_its_study_goes_on(here: Path, call: Call) -> None:
    (path,) = (here / "store" / "studies").glob("*.json")
    note = note_of(here / "store")
    expanded = note.pop("expanded")
    path.write_text(json.dumps(note))
    older, newer = Study.from_note(note, "note"), Study.from_note(note | {"expanded": expanded}, "note")
    assert older == newer == Study.parse(HARMLESS)
    assert [run.id for run in older.runs()] == [run.id for run in newer.runs()]
    assert "harmless: 8 of 8 runs" in looked_at(call, here)
    (here / "study.toml").write_text(HARMLESS)
    runs = (here / "runs.csv").read_bytes()
    assert "store holds 8 of 8 runs" in call("study", "run", "study.toml", "--out", "store").out
    assert note_of(here / "store")["expanded"] == expanded
    call("study", "export", "store", "runs.csv")
    assert (here / "runs.csv").read_bytes() == runs


def test_every_note_is_read_again_as_the_study_it_was(here: Path) -> None:
    for text in (HARMLESS, study_of(write_parts(here))):
        study = Study.parse(text)
        again = Study.from_note(json.loads(json.dumps(study.to_note())), "note")
        assert again == study
        assert [run.id for run in again.runs()] == [run.id for run in study.runs()]


# --- pages of replays ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"world": "down/evil.py:W"}, {"world": "subprocess:getoutput,cmd=touch ran"}, {"world": "evil_module:W"},
        {"world": "evil_module:Evil-v0"}, {"world": "evil-entry"}, {"world": "corridor,length=@pipe"},
        {"missingness": "down/evil.py:W"}, {"missingness": "late:1,evil_module:W"}, {"missingness": "nobody,x=@pipe"},
    ],
    ids=repr,
)  # fmt: skip
def test_a_page_does_not_choose_what_its_check_imports(here: Path, call: Call, change: dict[str, str]) -> None:
    replay("corridor", "mcar:0.4", "last-observed", at=[0], steps=5).save(here / "page.html")
    data: Any = dict(recordings_in(here / "page.html")["recording"])
    data["header"] = data["header"] | change
    text = f'<script type="application/json" id="recording">{json.dumps(data, separators=(",", ":"))}</script>'
    (here / "forged.html").write_text(text)
    answer = call("replay", "--check", "forged.html")
    assert (answer.code, answer.err.count("\n"), (here / "ran").exists()) == (2, 1, False)
    assert "is refused while results are only looked at" in answer.err


def test_a_page_of_ones_own_parts_is_checked_once_these_are_named(here: Path, call: Call) -> None:
    parts = write_parts(here)
    world, hiding = f"{parts}:maze,size=5", f"{parts}:by_mood,rate=0.5"
    replay(world, hiding, "last-observed", at=[0], steps=5).save(here / "page.html")
    refused = call("replay", "--check", "page.html")
    assert f"if it is yours, name it: --world or --missingness '{world}'" in refused.err
    half = call("replay", "--check", "page.html", "--world", world)
    assert f"--missingness '{hiding}'" in half.err
    checked = call("replay", "--check", "page.html", "--world", world, "--missingness", hiding)
    assert checked.out == "page.html: 1 recording, 5 steps, equal to the bit when run again\n"
    assert check_page("page.html", world, hiding) == checked.out.strip()
    other = call("replay", "--check", "page.html", "--world", "corridor", "--missingness", hiding)
    assert "is not the problem that was recorded" in other.err


# --- study files -----------------------------------------------------------------------------------------------------

CALLED: list[tuple[str, Any, str]] = [
    ("worlds", {"use": "shutil:rmtree", "path": "precious"}, "def rmtree(…) -> TabularMDP: or def rmtree(…) -> Env:"),
    ("worlds", SHELL, "does not say that it makes a world"),
    ("worlds", {"use": "subprocess:Popen", "args": "touch ran", "shell": True}, "a class that does not make a world"),
    ("worlds", {"use": "builtins:eval"}, "does not say that it makes a world"),
    ("worlds", {"use": "PARTS:unsaid"}, "def unsaid(…) -> TabularMDP:"),
    ("worlds", {"use": "PARTS:other"}, "does not say that it makes a world"),
    ("missingness", {"use": "shutil:rmtree", "onerror": "x"}, "def rmtree(…) -> Mechanism:"),
    ("missingness", {"use": "subprocess:Popen"}, "a class that does not make a mechanism"),
    ("missingness", "late:1,subprocess:getoutput", "does not say that it makes a mechanism"),
    ("methods", {"use": "shutil:rmtree", "onerror": "x"}, "def rmtree(…) -> AgentLike: or def rmtree(…) -> Agent:"),
    ("methods", {"use": "subprocess:Popen"}, "a class that does not make an agent"),
    ("methods", {"use": "subprocess:call"}, "does not say that it makes an agent"),
]

OURS = """
from __future__ import annotations
from pathlib import Path
from typing import TYPE_CHECKING
import gymnasium as gym
import lacuna
from lacuna import Agent, Space, make_world
if TYPE_CHECKING:
    from lacuna import TabularMDP
    from lacuna.missingness import Mechanism

def unsaid(): Path("ran").write_text("called")
def other() -> Path: Path("ran").write_text("called")
def later() -> TabularMDP: return make_world("corridor")
def whole() -> "lacuna.TabularMDP": return make_world("corridor")
def maybe() -> TabularMDP | None: return make_world("corridor")
def env(size: int = 3) -> gym.Env[int, int]: return gym.make("FrozenLake-v1")
AnyEnv = gym.Env[int, int]
def alias() -> AnyEnv: return gym.make("FrozenLake-v1")
class Maze:
    def mdp(self) -> TabularMDP: return make_world("corridor")
    @classmethod
    def small(cls) -> Maze: return cls()
def hides(where) -> Mechanism:
    from lacuna.missingness import mcar
    return mcar(where, 0.1)
def acts(space, n_actions, *, seed) -> Agent: return Agent(space, n_actions, seed=seed)
class Acts(Agent): pass
"""


def text_of(**keys: Any) -> str:
    from lacuna.report.study_files import as_toml

    usual = {"worlds": [{"name": "corridor"}], "missingness": ["none"], "methods": [{"name": "last-observed"}]}
    return as_toml({"name": "one", "steps": 5, "trials": 1} | usual | keys)


@pytest.mark.parametrize(("key", "part", "sentence"), CALLED, ids=repr)
def test_a_study_file_calls_nothing_but_what_says_that_it_makes_such_a_thing(
    here: Path, key: str, part: Any, sentence: str
) -> None:
    parts = write_parts(here, OURS)
    (here / "precious").mkdir()
    if isinstance(part, dict):
        part = part | {"use": part["use"].replace("PARTS", parts)}
    with pytest.raises(lacuna.study.spec.StudyError) as told:
        Study.parse(text_of(**{key: [part]}))
    assert sentence in str(told.value)
    assert (here / "precious").is_dir()
    assert not (here / "ran").exists()


@pytest.mark.parametrize(
    ("key", "name"),
    [("worlds", name) for name in ("later", "whole", "maybe", "env", "alias", "Maze", "Maze.small")]
    + [("missingness", "hides"), ("methods", "acts"), ("methods", "Acts")],
)
def test_whatever_says_what_it_makes_is_called_however_it_says_it(here: Path, key: str, name: str) -> None:
    parts = write_parts(here, OURS)
    assert len(Study.parse(text_of(**{key: [{"use": f"{parts}:{name}"}]}))) == 1


def test_a_function_that_is_handed_over_need_not_say_what_it_makes(here: Path) -> None:
    from importlib import import_module

    parts = write_parts(here, "from lacuna import make_world\ndef unsaid(): return make_world('corridor')")
    with pytest.raises(TypeError, match="does not say that it makes a world"):
        lacuna.make_world(f"{parts}:unsaid")
    found = lacuna.compare(import_module(parts).unsaid, "none", "last-observed", steps=20, seeds=2, store=here / "kept")
    assert found.study.problems[0][0] == f"{parts}:unsaid"


# --- the folder ------------------------------------------------------------------------------------------------------


def test_the_folder_serves_what_is_named_and_what_that_imports_and_no_optional_import_of_others(tmp_path: Path) -> None:
    (tmp_path / "cffi.py").write_text("open('ran', 'w').close()")
    (tmp_path / "nobody_has_this.py").write_text("x = 1")
    (tmp_path / "beside.py").write_text("import beside_that\nlater = lambda: __import__('beside_later').x")
    (tmp_path / "beside_that.py").write_text("from importlib import import_module\nimport_module('beside_too')")
    (tmp_path / "beside_too.py").write_text("x = 1")
    (tmp_path / "beside_later.py").write_text("x = 2")
    (tmp_path / "mine.py").write_text(
        "import beside\nfrom lacuna import TabularMDP, make_world\n"
        "def maze() -> TabularMDP:\n    assert beside.later() == 2\n    return make_world('corridor')\n"
    )
    script = """
import importlib.util, sys
import lacuna
print(lacuna.make_world("mine:maze").n_states, importlib.util.find_spec("nobody_has_this"))
import numba
from lacuna import Problem, Settings, run_trials
run_trials(Problem.named("mine:maze", "none"), Settings("last-observed"), steps=5, seeds=[0])
for name in ("nobody_has_this", "cffi"):
    try:
        module = __import__(name)
    except ImportError:
        continue
    assert "site-packages" in module.__file__, module.__file__
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "5 None\n"
    assert not (tmp_path / "ran").exists()
