"""A part of a store in which one value is impossible is set aside with a reason; names and notes are bounded too."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from io import BytesIO
from math import inf, nan
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Call, caller, is_one_sentence
from lacuna.report.study_files import missing_runs
from lacuna.study.engines import Local
from lacuna.study.outcomes import runs_of
from lacuna.study.parts import no_runs
from lacuna.study.runner import run_study
from lacuna.study.spec import Study, StudyError
from lacuna.study.store import Store, export
from lacuna.terminal import shell_word

FEW = """
name = "few"
steps = 200
trials = 3
curve_points = 2
missingness = ["mcar:0.2", "none"]
worlds = [{name = "corridor"}, {name = "corridor", length = 4}]
methods = [{name = "last-observed"}, {name = "mi-synthetic", K = [1, 3], alpha = [0.1, 1]}]
"""
FOLDER = b"caf\xe9".decode(errors="surrogateescape")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    return caller(capsys, monkeypatch)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the study in two parts."""
    folder, study = tmp_path_factory.mktemp("clean"), Study.parse(FEW)
    run_study(study, Store(folder / "made"), Local(1))
    runs, store = Store.existing(folder / "made").table(), Store(folder / "store")
    store.add_study(study)
    for part in (runs.head(30), runs.tail(30)):
        buffer = BytesIO()
        part.write_parquet(buffer)
        store.write_part(buffer.getvalue(), part["id"])
    return store.path


@pytest.fixture
def store(clean: Path, tmp_path: Path) -> Path:
    shutil.copytree(clean, tmp_path / "store")
    return tmp_path / "store"


def edit(store: Path, column: str, change: Callable[[Any], Any]) -> tuple[int, Path]:
    """Change a value in the second row of a part, whose name fits its content; how many runs it had, and the part."""
    part = max((store / "parts").iterdir())
    table = pl.read_parquet(part)
    values = table[column].to_list()
    values[1] = change(values[1])
    buffer = BytesIO()
    table.with_columns(pl.Series(column, values, table.schema[column])).write_parquet(buffer)
    part.unlink()
    edited = part.with_name(f"{hashlib.sha256(buffer.getvalue()).hexdigest()[:24]}.parquet")
    edited.write_bytes(buffer.getvalue())
    return table.height, edited


STRANGE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a reward that is none": ("reward_per_step", lambda _: nan),
    "an infinite mean": ("mean_path_length", lambda _: inf),
    "a mean without an episode": ("episodes", lambda _: 0),
    "no mean beside episodes": ("mean_total_reward", lambda _: None),
    "a share above one": ("idle_share", lambda _: 1.5),
    "no world": ("world", lambda _: None),
    "no steps": ("steps", lambda _: None),
    "a negative count": ("cut_steps", lambda _: -1),
    "a curve of another length": ("curve_reward", lambda values: values[:1]),
    "no curve": ("curve_total", lambda _: None),
    "a curve with a gap": ("curve_episodes", lambda values: [None, *values[1:]]),
    "a curve that goes back": ("curve_step", lambda values: values[::-1]),
    "a curve beyond the end": ("curve_step", lambda values: [values[0], 201]),
    "a share that is none": ("hidden_shares", lambda values: [nan, *values[1:]]),
    "an unknown method": ("method", lambda _: "mi-syntetic"),
    "an unknown label": ("label", lambda _: "XAR"),
    "an unknown vote": ("vote", lambda _: "loud"),
    "a setting that is none": ("gamma", lambda _: nan),
    "a setting out of its range": ("alpha", lambda _: 7.0),
    "no value of a setting": ("epsilon", lambda _: None),
    "a name that steers the terminal": ("missingness", lambda _: "mcar:0.2\x1b[31m"),
    "a name that is too long": ("world", lambda _: "w" * 100_001),
}  # fmt: skip


@pytest.mark.parametrize("fault", STRANGE)
def test_a_part_with_an_impossible_value_is_set_aside_and_the_rest_is_shown(
    fault: str, store: Path, call: Call, tmp_path: Path
) -> None:
    column, change = STRANGE[fault]
    whole = len(Study.parse(FEW))
    lost, part = edit(store, column, change)
    told = call("study", "export", store, tmp_path / "rest.csv")
    assert told.code == 1
    # An episode that is missing shows in the columns that would have been without it.
    names = {"episodes": "mean_total_reward", "curve_step": "curve_step"}
    assert f"damaged{os.sep}{part.name}: " in told.err
    assert names.get(column, column) in told.err
    assert "row 2" in told.err
    assert not any(not sign.isprintable() for line in told.err.splitlines() for sign in line)
    assert (store / "damaged" / part.name).exists()
    assert pl.read_csv(tmp_path / "rest.csv").height == whole - lost > 0
    assert f"{whole - lost} of {whole} runs" in call("study", "status", store).out


def test_status_says_why_a_part_was_set_aside(store: Path, call: Call) -> None:
    lost, part = edit(store, "idle_share", lambda _: nan)
    answer = call("study", "status", store)
    assert answer.code == 0
    assert f"{store}: {len(Study.parse(FEW)) - lost} runs" in answer.out
    assert f"damaged and set aside: {store / 'damaged' / part.name}: idle_share is nan in row 2" in answer.out


STUDIES = [
    FEW,
    FEW.replace("trials = 3", "trials = 2"),
    FEW.replace("trials = 3", "trials = 2\nfirst_trial = 1"),
    FEW.replace("curve_points = 2", ""),
    FEW.replace("steps = 200", "steps = 199"),
    FEW.replace("K = [1, 3]", "K = 3"),
    FEW.replace('"none"', '"mcar:0.3"'),
    FEW.replace("length = 4", "length = 5"),
    FEW.replace("trials = 3", "trials = 3\nfirst_observed = false"),
    FEW.replace("trials = 3", "trials = 3\ngrid = {gamma = 0.5}"),
]


@pytest.mark.parametrize("text", STUDIES)
def test_the_runs_of_a_study_are_found_by_what_they_are_as_by_their_names(text: str, clean: Path) -> None:
    study, runs = Study.parse(text), Store.existing(clean).table()
    names = {run.id for run in study.runs()}
    assert set(runs_of(study, runs)["id"]) == names & set(runs["id"])


def test_a_note_of_ten_million_runs_is_counted_without_running_through_them(
    store: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = json.loads(next((store / "studies").iterdir()).read_bytes())
    note["study"] |= {"trials": 500_000, "name": "huge"}
    (store / "studies" / "huge.json").write_text(json.dumps(note))

    def endless(_: Study) -> None:
        raise AssertionError("the runs of a study were gone through")

    monkeypatch.setattr(Study, "runs", endless)
    answer = call("study", "status", store)
    assert "huge: 60 of 10,000,000 runs (0%)" in answer.out
    [told] = missing_runs([study for study in Store(store).studies() if study.spec.name == "huge"], no_runs())
    assert told.startswith("huge lacks 10,000,000 of 10,000,000 runs: ")
    assert "(trials 0 to 499999)" in told


@pytest.mark.parametrize("text", ["bursts:0.1\x1b,0.2", "mine.py\n:hide", "mine.py:hide,word=\u200bx"])
def test_a_study_whose_names_could_not_be_shown_is_refused(text: str) -> None:
    with pytest.raises(StudyError):
        Study.parse(FEW.replace('"none"', json.dumps(text)))


def test_a_text_that_a_spreadsheet_would_run_is_written_as_text(clean: Path, tmp_path: Path) -> None:
    table = Store.existing(clean).table().head(5)
    worlds = ["=1+1", "+cmd", "-2", "@sum", "corridor"]
    export(table.with_columns(world=pl.Series(worlds)), tmp_path / "runs.csv")
    found = pl.read_csv(tmp_path / "runs.csv")
    assert found["world"].to_list() == ["'=1+1", "'+cmd", "'-2", "'@sum", "corridor"]
    assert found["reward_per_step"].to_list() == table["reward_per_step"].to_list()
    assert found["curve_total"].to_list() == [";".join(map(str, values)) for values in table["curve_total"].to_list()]


def test_a_folder_whose_name_is_not_utf_8_serves_every_command(clean: Path, tmp_path: Path, call: Call) -> None:
    here = tmp_path / FOLDER
    try:
        here.mkdir()
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    shutil.copytree(clean, here / "store")
    (here / "few.toml").write_text(FEW)
    for words in (
        ("run", here / "few.toml", "--out", here / "store"),
        ("status", here / "store"),
        ("export", here / "store", here / "runs.csv"),
        ("report", here / "store"),
        ("compare", here / "store", here / "store", "--out", here / "both.html"),
    ):
        answer = call("study", *words)
        assert (answer.code, answer.err) == (0, "")
    assert shell_word(here / "store").encode() in (here / "store" / "report.html").read_bytes().replace(b"&#39;", b"'")
    assert "caf\\udce9/store" in (here / "both.html").read_text(encoding="utf-8")
    refused = call("study", "status", here)
    assert refused.code == 2
    assert is_one_sentence(refused.err)


def test_a_shell_reads_the_word_back(tmp_path: Path) -> None:
    for name in ("plain", "two words", "it's", f"{FOLDER} it's\\", "a\nb"):
        words = ["bash", "-c", f"printf %s {shell_word(name)}"]
        said = subprocess.run(words, capture_output=True, check=True, cwd=tmp_path)
        assert said.stdout == os.fsencode(name)
