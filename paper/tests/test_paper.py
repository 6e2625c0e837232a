"""The paper's studies are what they should be, and `lacuna paper` goes from nothing to its files, stopped or not."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lacuna.cli import main as cli
from lacuna.study.runner import Progress
from lacuna.study.selection import Draw
from lacuna.study.spec import Study
from lacuna.study.store import Store
from lacuna_paper import reproduce
from lacuna_paper.claims import CLAIMS
from lacuna_paper.comparison import Comparisons
from lacuna_paper.evidence import DRAWS, READINGS, SELECTIONS, Evidence, Reading
from lacuna_paper.frontier import studies as frontier
from lacuna_paper.frontier.studies import Form
from lacuna_paper.frontier.tuning import draws_of
from lacuna_paper.horizons import Cell
from lacuna_paper.reproduce import (
    BEYOND,
    FOLDER,
    NAMES,
    Gathered,
    Request,
    RunsFailedError,
    beyond_studies,
    gather,
    horizon_studies,
    paper_studies,
    write_up,
)
from lacuna_paper.verdicts import Finding
from small_frontier import write_small_frontier

WHOLE = """
name = "the whole study, as one"
steps = 50_000
trials = 5
curve_points = 100
missingness = [
    "mcar:0.0", "mcar:0.05", "mcar:0.1", "mcar:0.2", "mcar:0.3", "mcar:0.4",
    "mcar:0.5", "mcar:0.6", "mcar:0.7", "mcar:0.8", "mcar:0.9", "mcar:0.95",
    "mcolor-xy:0.1,0.2,0.3", "mcolor:0.1,0.2,0.3", "mcolor-xy:0.2,0.4,0.6", "mcolor:0.2,0.4,0.6",
    "mfog:0.5,0.0", "mfog:0.25,0.1",
]
worlds = [{name = "lake"}, {name = "lake", stay = true}]
grid = {alpha = [0.1, 1.0], gamma = [0.0, 0.5, 1.0], epsilon = [0.0, 0.05]}
methods = [
    {name = "random-action"}, {name = "last-fully-observed"}, {name = "last-observed"}, {name = "missing-as-state"},
    {name = "mi-synthetic", K = [1, 5, 10], p_shuffle = [0.0, 0.1]},
    {name = "mi-conservative", K = [1, 5, 10], p_shuffle = [0.0, 0.1]},
]
"""
FEW = (Draw((0, 1, 2, 3, 4), (1000, 1001)), Draw((5, 6, 7, 8, 9), (1002, 1003)))
PUBLISHED = FEW[0].tuning
PAPERS = {
    "random-action", "last-fully-observed", "last-observed", "missing-as-state", "mi-synthetic", "mi-conservative",
}  # fmt: skip


def names(studies: Sequence[Study]) -> list[str]:
    return [run.id for study in studies for run in study.runs()]


# --- the studies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reading", ["episodic", "continuing"])
def test_the_full_studies_together_are_the_34560_runs_of_the_paper_each_once(reading: Reading) -> None:
    change = "" if reading == "episodic" else ", continuing = true"
    whole = Study.parse(WHOLE.replace('{name = "lake"', '{name = "lake"' + change))
    found = names(paper_studies("full", reading))
    assert len(found) == len(set(found)) == 34_560
    assert set(found) == set(names([whole]))


@pytest.mark.parametrize("reading", ["episodic", "continuing"])
def test_the_reduced_studies_are_a_part_of_the_full_ones_with_all_methods_and_trials(reading: Reading) -> None:
    reduced = paper_studies("reduced", reading)
    found = names(reduced)
    assert len(found) == len(set(found))
    for part, full in zip(reduced, paper_studies("full", reading), strict=True):
        assert part.spec.name == full.spec.name
        assert set(names([part])) < set(names([full]))
        assert part.spec.trials == len(PUBLISHED) == 5
    assert {settings.method for study in reduced for settings in study.settings} == PAPERS


def test_there_is_no_study_that_nobody_runs() -> None:
    assert sorted(path.stem for path in (FOLDER / "full").iterdir()) == sorted(NAMES)
    assert sorted(path.stem for path in (FOLDER / "reduced").iterdir()) == sorted([*NAMES, "horizons"])
    assert len(list((FOLDER / "horizons").iterdir())) == len(horizon_studies())
    assert sorted(path.stem for path in FOLDER.iterdir() if path.is_file()) == sorted(BEYOND)
    folders = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
    assert folders == ["frontier", "full", "horizons", "reduced"]


def test_what_goes_beyond_the_paper_adds_no_run_of_its_methods_to_its_settings() -> None:
    # Or claims would meet kinds of missingness under which only a part of the methods was run.
    reduced = set(names(paper_studies("reduced")))
    for study in beyond_studies(PUBLISHED):
        for run in study.runs():
            papers = run.world == "lake" and run.settings.method in PAPERS
            assert not papers or run.missingness.startswith("bursts") or run.id in reduced
    # Those of short horizons are on trials that no claim looks at.
    looked_at = {trial for draw in DRAWS for trials in draw for trial in trials}
    tuning = frontier.tuning_study(FOLDER / "frontier")
    assert not looked_at & {trial for draw in draws_of(tuning, *frontier.DRAWS["full"]) for trial in draw.fresh}
    everywhere = (*frontier.fixed_studies(FOLDER / "frontier"), tuning)
    for study in (*horizon_studies(), *horizon_studies("reduced"), *everywhere):
        assert not looked_at & {run.trial for run in study.runs()}

    link = Path(__file__).parents[2] / "studies"
    assert link.resolve() == FOLDER


# --- tiny studies, run whole ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reduced studies with hardly any steps and fewer settings; the full ones have a few more of these."""
    folder = tmp_path_factory.mktemp("tiny")
    grids: dict[Form, str] = {
        "reduced": "[grid]\nalpha = 0.1\nepsilon = [0.0, 0.05]\n",
        "full": "[grid]\nalpha = [0.1, 1.0]\nepsilon = [0.0, 0.05]\n",
    }
    for form, grid in grids.items():
        (folder / form).mkdir()
        for name in NAMES:
            text = (FOLDER / "reduced" / f"{name}.toml").read_text()
            text = text.replace("50_000", "60").replace("curve_points = 100", "curve_points = 3")
            text = text.replace('"mcar:0.2", ', "").replace('"mcar:0.6", ', "")
            text = re.sub(r"\[grid\]\n(.+\n)+", grid, text)
            (folder / form / f"{name}.toml").write_text(text)
    for name in BEYOND:
        text = (FOLDER / f"{name}.toml").read_text()
        text = text.replace("50_000", "60").replace("curve_points = 100", "curve_points = 3")
        text = text.replace('["mcar:0.2", "mcar:0.6"', '["mcar:0.4", "mcar:0.8"')
        (folder / f"{name}.toml").write_text(text)
    (folder / "horizons").mkdir()
    places = dict.fromkeys(("reduced/horizons", "horizons/lake"), "reduced/horizons")
    places |= {"horizons/worlds": "horizons/worlds"}
    for to, name in places.items():
        text = (FOLDER / f"{name}.toml").read_text()
        text = re.sub(r"steps = .+", "steps = 60", re.sub(r"curve_times = .+", "curve_times = [20, 60]", text))
        text = re.sub(r"trials = .+", "trials = 2", text, count=1)
        (folder / f"{to}.toml").write_text(text)
    (folder / "frontier").mkdir()
    write_small_frontier(folder / "frontier")
    return folder


@pytest.fixture(autouse=True)
def _page_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page takes long; its own tests write it."""

    def write_page(
        folder: Path, table: pl.DataFrame, findings: Sequence[Finding], comparisons: Comparisons, about: dict[str, Any],
        draws: Sequence[Draw], horizons: Sequence[Cell],
    ) -> Path:  # fmt: skip
        path = folder / "index.html"
        path.write_text(
            f"{table.height} {len(findings)} {len(draws)} {sorted(comparisons)} {len(horizons)} {about['command']}"
        )
        return path

    monkeypatch.setattr(reproduce, "write_page", write_page)


def run(tiny: Path, out: str, request: Request = Request(), **options: Any) -> Gathered:  # noqa: B008  frozen
    return gather(Path(out), request, workers=2, folder=tiny, draws=FEW, **options)


def test_all_files_are_written(tiny: Path) -> None:
    gathered = run(tiny, "out")
    findings, files = write_up(gathered)
    assert [path.name for path in files] == ["results.parquet", "claims.json", "horizons.json", "index.html"]
    short = horizon_studies("reduced", tiny)
    asked = set(names([*paper_studies("reduced", folder=tiny), *beyond_studies(PUBLISHED, tiny), *short]))
    results = pl.read_parquet("out/results.parquet")
    assert set(results["id"]) == asked
    assert results.filter(world="lake")["curve_step"].list.len().max() == 3
    claims = json.loads(Path("out/claims.json").read_text())
    assert [finding["claim"] for finding in claims["findings"]] == [claim.id for claim in CLAIMS]
    assert {finding["reading"] for finding in claims["findings"]} == {"episodic"}
    assert [finding.as_dict()["claim"] for finding in findings] == [finding["claim"] for finding in claims["findings"]]
    assert set(claims["comparisons"]) == {"as-published", "untuned"}
    assert len(claims["comparisons"]["untuned"]) == 12
    horizons = json.loads(Path("out/horizons.json").read_text())
    assert (horizons["form"], horizons["steps"]) == ("reduced", 60)
    assert [cell["missingness"] for cell in horizons["cells"]] == [
        "mcar:0.2", "mcar:0.6", "mcolor:0.2,0.4,0.6", "bursts:0.1,0.3",
    ]  # fmt: skip
    assert {cell["trials"] for cell in horizons["cells"]} == {2}
    about = claims["about"]
    assert about["command"] == "lacuna paper --out out"
    assert (about["runs"], about["steps"], about["total_steps"]) == (len(asked), 60, 60 * len(asked))
    assert about["runs_made_now"] == len(asked)
    assert (about["tuning_trials"], about["fresh_trials"]) == ([0, 1, 2, 3, 4], [])
    assert {"lacuna", "python", "machine", "finished", "seconds", "core_seconds", "studies"} < set(about)


@pytest.mark.slow
def test_every_method_in_every_world_is_run_if_asked_for_and_changes_no_verdict(tiny: Path) -> None:
    findings, _ = write_up(run(tiny, "without"))
    gathered = run(tiny, "out", Request(frontier=True))
    again, files = write_up(gathered)
    assert [one.as_dict() for one in again] == [one.as_dict() for one in findings]
    assert [path.name for path in files][-2:] == ["frontier.json", "index.html"]
    told = json.loads(Path("out/frontier.json").read_text())
    assert [cell["group"] for cell in told["fixed"]["cells"]] == list(frontier.FIXED)
    assert told == json.loads(json.dumps(gathered.frontier))
    assert gathered.about["command"] == "lacuna paper --frontier --out out"


def test_more_can_be_added_later_and_nothing_is_run_twice(tiny: Path) -> None:
    first = run(tiny, "out")
    assert run(tiny, "out").about["runs_made_now"] == 0
    full = run(tiny, "out", Request(full=True))
    assert full.about["runs_made_now"] == full.about["runs"] - first.about["runs"] > 0
    assert run(tiny, "out", Request(full=True)).about["runs_made_now"] == 0
    # What the larger one left in the store does not change what the smaller one finds.
    again = run(tiny, "out")
    assert again.table.drop("seconds").equals(first.table.drop("seconds"))


@pytest.mark.slow
def test_both_readings_and_held_out_trials(tiny: Path) -> None:
    gathered = run(tiny, "out", Request(continuing=True, honest=True))
    findings, _ = write_up(gathered)
    ways = [finding.way for finding in findings[:: len(CLAIMS)]]
    assert ways == [
        ("episodic", "as-published"),
        ("episodic", "held-out"),
        ("continuing", "as-published"),
        ("continuing", "held-out"),
    ]
    assert len(findings) == 4 * len(CLAIMS)
    assert (gathered.about["fresh_trials"], gathered.about["draws"]) == ([1000, 1001, 1002, 1003], 2)
    # Everything a held-out verdict looks at was run: no part lacks anything.
    for finding in findings:
        for part in finding.parts:
            assert "was not run" not in part.note, part
            assert "lacks trials" not in part.note, part
    fresh = gathered.table.filter(pl.col("trial") >= 1000)
    for reading in READINGS:
        seen = Evidence.of(gathered.table, reading, "held-out", FEW)
        of_reading = pl.col("parameters").str.contains("continuing=True") == (reading == "continuing")
        assert fresh.filter(of_reading).height >= seen.choice.height * 2
    assert "--continuing --honest" in gathered.about["command"]
    # Whoever wants to repeat a row finds the settings of every method, in every draw, under every missingness.
    choices = json.loads(Path("out/claims.json").read_text())["choices"]
    rows = pl.DataFrame(choices["rows"], schema=choices["columns"], orient="row")
    for reading in READINGS:
        for selection, n_draws in zip(SELECTIONS, (1, 2), strict=True):
            here = rows.filter(reading=reading, selection=selection)
            seen = Evidence.of(gathered.table, reading, selection, FEW)
            assert here["draw"].n_unique() == n_draws
            wanted = seen.choice.select(here.drop("reading", "selection", "among").columns)
            assert (
                here.filter(among="all").select(wanted.columns).sort(wanted.columns).equals(wanted.sort(wanted.columns))
            )
            assert here.filter(pl.col("among") == "stay=True, epsilon=0.0").height == 2 * n_draws
    assert run(tiny, "out", Request(continuing=True, honest=True)).about["runs_made_now"] == 0


class Stopped(BaseException):
    pass


def test_what_was_stopped_goes_on_and_ends_the_same(tiny: Path) -> None:
    seen: list[int] = []

    def stop_half_way(_: str, progress: Progress) -> None:
        seen.append(progress.done)
        if progress.done > progress.total / 2:
            raise Stopped

    with pytest.raises(Stopped):
        run(tiny, "out", watch=stop_half_way)
    kept = len(Store("out/store").done())
    assert kept > 0
    rest = run(tiny, "out")
    assert rest.about["runs_made_now"] == rest.about["runs"] - kept > 0
    write_up(rest)
    write_up(run(tiny, "whole"))
    assert Path("out/results.parquet").read_bytes() == Path("whole/results.parquet").read_bytes()


def test_progress_counts_over_all_studies(tiny: Path) -> None:
    told: list[tuple[str, int, int]] = []
    run(tiny, "out", watch=lambda what, progress: told.append((what, progress.done, progress.total)))
    wanted = {
        "reduced study, episodic": len(names(paper_studies("reduced", folder=tiny))),
        "ours and the yardsticks, trials from 0": len(set(names(beyond_studies(PUBLISHED, tiny)))),
        "short horizons": len(names(horizon_studies("reduced", tiny))),
    }
    assert list(dict.fromkeys(what for what, _, _ in told)) == list(wanted)
    for what, total in wanted.items():
        done = [n for name, n, _ in told if name == what]
        assert {n for name, _, n in told if name == what} == {total}
        assert done == sorted(done)
        assert done[-1] == total


def test_runs_that_fail_are_told_and_nothing_is_written(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ArithmeticError("no luck")

    monkeypatch.setattr("lacuna.study.runner.run_trial", fail)
    with pytest.raises(
        RunsFailedError, match=r"([\d,]+) of \1 runs failed; the same command tries them again(\n.*no luck.*){5}$"
    ):
        run(tiny, "out")
    assert not Path("out/claims.json").exists()


# --- the command ---------------------------------------------------------------------------------------------------


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["lacuna", "paper", *words])
    code: Any = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return int(code or 0), out, err


def test_the_command_ends_with_verdicts_and_what_to_open(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reproduce, "gather", partial(gather, folder=tiny, draws=FEW))
    code, out, err = call(monkeypatch, capsys, "--out", "out", "--continuing")
    assert code == 0
    assert "reduced study, continuing: " in err
    assert all(claim.id in out for claim in CLAIMS)
    assert "episodic, as-published" in out
    assert "continuing, as-published" in out
    assert out.splitlines()[-1] == f"Open {Path('out/index.html').resolve()}"
    assert Path("out/index.html").read_text().endswith("lacuna paper --continuing --out out")


def test_wrong_words_give_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    Path("other").mkdir()
    Path("other/store").mkdir()
    Path("other/store/notes.txt").write_text("mine")
    for words, sentence in (
        (("--out", "out", "--workers", "0"), "workers is 0; it must be a whole number between 1 and 1024"),
        (("--out", "file"), "out is file, which is not a folder"),
        (("--out", "other"), "other/store holds other things than results of lacuna; name a new or empty folder"),
    ):
        code, out, err = call(monkeypatch, capsys, *words)
        assert (code, out, err) == (2, "", f"lacuna: {sentence}\n")


def test_defaults_are_those_of_the_paper() -> None:
    assert [draw.tuning for draw in DRAWS] == [tuple(range(first, first + 5)) for first in range(0, 40, 5)]
    fresh = [trial for draw in DRAWS for trial in draw.fresh]
    assert fresh == list(range(1000, 1160))
    assert Request().readings == ("episodic",)
    assert Request(full=True, continuing=True, honest=True).command(Path("x")) == (
        "lacuna paper --full --continuing --honest --out x"
    )
