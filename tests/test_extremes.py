"""Every option of every command with values from the far ends: it works, or says in one sentence why not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from commands import Call, caller
from lacuna.cli import main as cli
from lacuna.missingness import MECHANISMS
from live_trials import write_file
from studies import write_study

STUDY = """
name = "one"
steps = 5
trials = 1
missingness = ["mcar:0.2"]
worlds = [{name = "corridor"}]
methods = [{name = "last-observed"}]
"""

NUMBERS = [
    "", "0", "-0", "-1", "inf", "-inf", "nan", "1e400", "-1e400", "1e-400", "0x10", "1_0", "٣", "1e3", "1.5", "9" * 30,
    "-" + "9" * 30, "9" * 5000, "0" * 5000,
]  # fmt: skip
WORDS = [
    " ",
    "é",
    "日本",
    "\0",
    "a\tb\r",
    "\x1b[31m",
    "\udc80",
    "%s%n{0}",
    "..",
    "/dev/null",
    "no/such/file",
    "x" * 5000,
]
VALUES = NUMBERS + WORDS

BASE = {
    "run": ("--steps", "20", "--trials", "1"), "methods": (), "worlds": (), "bench": (), "theory": ("--out", "out"),
    "paper": ("--out", "out"), "study plan": ("study.toml",), "study run": ("study.toml", "--out", "out"),
    "replay": (
        "--out", "r.html", "--overwrite", "--world", "corridor", "--method", "last-observed",
        "--at", "0", "--steps", "3",
    ),
    "explain": ("--out", "e.html"),
    "study status": ("store",), "study export": ("store", "to.csv"), "study report": ("store",),
    "study compare": ("store", "store"),
    "trial init": ("new.toml",), "trial enrol": ("walk.toml", "ada"),
    "trial decide": ("walk.toml", "maria", "0", "--context", "{}"),
    "trial fallbacks": ("walk.toml", "maria", "0", "3"), "trial outcome": ("walk.toml", "maria", "0", "0.5"),
    "trial given": ("walk.toml", "maria", "3", "prompt", "--context", "{}"),
    "trial end": ("walk.toml", "maria", "withdrawn"),
    "trial update": ("walk.toml",), "trial status": ("walk.db",), "trial replay": ("walk.db",),
    "trial upgrade": ("walk.db",), "trial export": ("walk.db", "exported"), "trial key": ("walk.db", "walk.key"),
    "trial redact": ("walk.db", "1", "--reason", "asked for"),
}  # fmt: skip


def parameters(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every parameter of every command."""
    for name, below in getattr(command, "commands", {}).items():
        yield from parameters(below, f"{path} {name}".strip())
    if not hasattr(command, "commands"):
        for parameter in command.params:
            yield path, parameter


PARAMETERS = list(parameters(typer.main.get_command(cli.app)))
OPTIONS = [
    (path, option.opts[0]) for path, option in PARAMETERS if option.param_type_name == "option" and not option.is_flag
]


def test_every_command_is_swept() -> None:
    assert {path for path, _ in PARAMETERS} | {"methods", "worlds"} == set(BASE)
    assert len(OPTIONS) > 35


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command, beside a study and a store of it, with what takes long left out."""

    def left_out(*_: object, **__: object) -> None:
        raise ValueError("this is left out here")

    monkeypatch.setattr("lacuna_paper.reproduce.gather", left_out)
    monkeypatch.setattr("lacuna_paper.theory.command.examine", left_out)
    monkeypatch.setattr("lacuna.cli.bench.measure", left_out)
    monkeypatch.setattr("lacuna_paper.story.page.story_page", left_out)
    monkeypatch.setattr("lacuna.study.engines._PATIENCE", 0.05)
    call = caller(capsys, monkeypatch)
    assert call("study", "run", write_study(tmp_path, STUDY), "--out", "store").code == 0
    write_file(tmp_path, "new")
    write_file(tmp_path)
    for path, words in (("trial init", ("walk.toml",)), ("trial enrol", ("walk.toml", "maria"))):
        assert call(*path.split(), *words).code == 0
    assert call("trial", "decide", *BASE["trial decide"]).code == 0
    return call


def works_or_says_why_not(call: Call, *words: str) -> int:
    code, _, err = call(*words)
    assert code in (0, 2), (words, code, err)
    # A study file may have many faults, and gets a sentence for each; an empty one is such a file.
    sentences = err.splitlines() if "/dev/null: " in err else [err.removesuffix("\n")]
    said = err.startswith("lacuna: ") and err.endswith("\n") and all(line.isprintable() for line in sentences)
    assert said if code else err == "", (words, err)
    return code


@pytest.mark.parametrize(("path", "option"), OPTIONS)
def test_an_option_takes_any_value_or_refuses_it_in_a_sentence(path: str, option: str, call: Call) -> None:
    codes = [works_or_says_why_not(call, *path.split(), *BASE[path], option, value) for value in VALUES]
    assert 2 in codes


@pytest.mark.parametrize(("path", "words"), [(path, words) for path, words in BASE.items() if words])
def test_an_argument_takes_any_value_or_is_refused_in_a_sentence(path: str, words: tuple[str, ...], call: Call) -> None:
    for i in range(len(words)):
        for value in VALUES:
            works_or_says_why_not(call, *path.split(), *words[:i], value, *words[i + 1 :])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_mechanism_takes_any_number_or_refuses_it_in_a_sentence(mechanism: str, call: Call) -> None:
    for value in VALUES:
        for text in (f"{mechanism}:{value}", f"{mechanism}:{value},{value},{value}", f"{mechanism}:" + "0.1," * 3000):
            works_or_says_why_not(call, "run", *BASE["run"], "--missingness", text)


@pytest.mark.parametrize(
    "engine", [("dask", "--scheduler"), ("slurm", "--tasks"), ("slurm", "--minutes"), ("slurm", "--memory")]
)
def test_an_engine_that_is_not_there_leaves_nothing_behind(engine: tuple[str, str], tmp_path: Path, call: Call) -> None:
    name, option = engine
    threads = sys._current_frames().keys()
    before = sorted(tmp_path.iterdir())
    for value in [*VALUES, "nonsense", "tcp://", "tcp://127.0.0.1:1", "foo://bar", "tcp://[::]:9", "inproc://x", "7"]:
        words = ("study", "run", "study.toml", "--out", "new", "--engine", name, option, value)
        assert works_or_says_why_not(call, *words) == 2
        assert sorted(tmp_path.iterdir()) == before
    assert sys._current_frames().keys() <= threads


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("theory", "--out", "out", "--effort", "inf"), "effort is inf; it must be between 0.01 and 10"),
        (("theory", "--out", "out", "--seed", "-1"), "seed is -1; it must be a whole number, 0 or larger"),
        (("run", "--trials", "9" * 20), f"trials is {'9' * 20}; it must be a whole number between 1 and 100000"),
        (("run", "--workers", "9" * 20), f"workers is {'9' * 20}; it must be a whole number between 1 and 1024"),
        (("bench", "--repeats", "9" * 20), f"repeats is {'9' * 20}; it must be a whole number between 1 and 1000"),
    ],
)
def test_what_would_never_end_is_refused_at_once(words: tuple[str, ...], sentence: str, call: Call) -> None:
    assert call(*words) == (2, "", f"lacuna: {sentence}\n")
    assert not Path("out").exists()
