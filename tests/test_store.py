"""A store of results through every accident: killed, stopped, damaged, full, foreign, newer, shared."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from io import BytesIO
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

from lacuna.study import runner
from lacuna.study.engines import Local
from lacuna.study.runner import Outcome, run_study
from lacuna.study.runs import RunSpec
from lacuna.study.spec import Study
from lacuna.study.store import SCHEMA, Store, StoreError, export
from studies import RUNS, STUDY, command, exported, finish, run, write_study

SMALL = STUDY.replace("trials = 20", "trials = 1")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a study that ran through exports."""
    folder = tmp_path_factory.mktemp("whole")
    finish("run", write_study(folder), "--out", folder / "store", "--workers", "1")
    return exported(folder / "store")


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A finished store of the small study, and the study."""
    study = write_study(tmp_path, SMALL)
    finish("run", study, "--out", tmp_path / "store")
    return study, tmp_path / "store"


@pytest.mark.slow
def test_the_export_is_complete_and_sorted(whole: bytes) -> None:
    table = pl.read_csv(whole)
    assert table.height == table["id"].n_unique() == RUNS == len(Study.parse(STUDY)) > 2000
    assert not {"seconds", "host", "lacuna"} & set(table.columns)
    keys = ["world", "parameters", "missingness", "method"]
    assert table.select(keys).rows() == sorted(table.select(keys).rows(), key=lambda row: [x or "" for x in row])


@pytest.mark.slow
def test_killed_ten_times_and_resumed_gives_the_same_bytes(tmp_path: Path, whole: bytes) -> None:
    study, store = write_study(tmp_path), tmp_path / "store"
    chance = random.Random(4)
    for _ in range(10):
        before = len(list(store.glob("parts/*.parquet")))
        process = subprocess.Popen(command("run", study, "--out", store), stderr=subprocess.PIPE, text=True)
        while len(list(store.glob("parts/*.parquet"))) == before:
            time.sleep(0.005)
            assert process.poll() is None, process.communicate()
        time.sleep(chance.uniform(0, 0.2))
        assert process.poll() is None, "it was done before it could be killed"
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finish("run", study, "--out", store)
    assert exported(store) == whole


def test_one_worker_or_two_and_shards_give_the_same_bytes(small: tuple[Path, Path], tmp_path: Path) -> None:
    study, store = small
    for workers in ("1", "2"):
        finish("run", study, "--out", tmp_path / workers, "--workers", workers)
        assert exported(tmp_path / workers) == exported(store)
    for shard in ("1/3", "2/3", "3/3"):
        finish("run", study, "--out", tmp_path / "shards", "--shard", shard)
    assert exported(tmp_path / "shards") == exported(store)


@pytest.mark.slow
def test_two_processes_on_one_store_at_once(tmp_path: Path, whole: bytes) -> None:
    words = command("run", write_study(tmp_path), "--out", tmp_path / "store", "--workers", "1")
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        _, complaint = process.communicate()
        assert process.returncode == 0, complaint
    assert exported(tmp_path / "store") == whole


def test_an_interrupt_stops_with_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    # Long enough that it cannot be done before the interrupt comes.
    study, store = write_study(tmp_path, SMALL.replace("steps = 250", "steps = 20_000")), tmp_path / "store"
    process = subprocess.Popen(command("run", study, "--out", store), stderr=subprocess.PIPE, text=True)
    while not list(store.glob("parts/*.parquet")):
        time.sleep(0.02)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate()
    assert process.returncode == 130
    assert "stopped" in complaint
    assert "Traceback" not in complaint
    kept = Store.existing(store).table()
    assert 0 < kept.height < len(Study.read(study))
    finish("run", study, "--out", store)
    whole = Store.existing(store).table()
    assert whole.height == len(Study.read(study))
    assert whole.join(kept, on=["id", "seconds"], how="semi").height == kept.height


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_file_is_set_aside_and_its_runs_computed_again(small: tuple[Path, Path], damage: str) -> None:
    study, store = small
    before = exported(store)
    part = next((store / "parts").glob("*.parquet"))
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes({"flip": bytes(content), "cut": bytes(content[:-9]), "empty": b""}[damage])
    again = run("run", study, "--out", store)
    assert again.returncode == 0
    assert "damaged file was set aside" in again.stderr
    assert (store / "damaged" / part.name).exists()
    assert exported(store) == before


def test_a_full_disk_is_told_and_keeps_what_was_finished(tmp_path: Path) -> None:
    study, store = write_study(tmp_path, SMALL), tmp_path / "store"
    # The kernel refuses files beyond this size, as a full disk refuses any.
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += f"resource.setrlimit(resource.RLIMIT_FSIZE, (4000, {resource.RLIM_INFINITY})); "
    words = command("run", study, "--out", store)
    program = limit + f"import sys; sys.argv = ['lacuna'] + {words[3:]!r}; from lacuna.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((store / "parts").iterdir())
    finish("run", study, "--out", store)
    assert len(Store.existing(store).done()) == len(Study.parse(SMALL))


class Counting:
    """An engine that notes which runs it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def outcomes(self, portions: Iterator[list[RunSpec]]) -> Generator[Outcome]:
        for portion in portions:
            self.given += [run.id for run in portion]
            yield from Local(1).outcomes(iter([portion]))


def test_a_store_of_another_study_is_added_to_and_nothing_is_computed_twice(small: tuple[Path, Path]) -> None:
    _, path = small
    store = Store.existing(path)
    before = set(store.done())
    wider = Study.parse(SMALL.replace('"mcar:0.2"', '"mcar:0.2", "mcar:0.3"'))
    engine = Counting()
    progress = run_study(wider, store, engine)
    assert progress.done == progress.total == len(wider)
    assert not before & set(engine.given)
    assert len(engine.given) == len(wider) - len(before)
    assert {study.spec.model_dump_json() for study in store.studies()} == {
        Study.parse(SMALL).spec.model_dump_json(), wider.spec.model_dump_json(),
    }  # fmt: skip
    again = Counting()
    run_study(wider, Store.existing(path), again)
    assert again.given == []


def test_a_run_stored_twice_counts_once(small: tuple[Path, Path]) -> None:
    _, path = small
    store = Store.existing(path)
    before = store.table()
    rows = before.head(5).with_columns(seconds=pl.lit(9.0)).rows(named=True)
    store.write(rows)
    assert store.table().drop("seconds").equals(before.drop("seconds"))


def test_a_run_that_fails_is_told_and_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.parse(SMALL)
    bad = next(study.runs()).id
    real = runner.execute

    def execute(run: RunSpec) -> dict[str, object]:
        if run.id == bad:
            raise ArithmeticError("no such luck")
        return real(run)

    monkeypatch.setattr("lacuna.study.runner.execute", execute)
    store = Store(tmp_path / "store")
    progress = run_study(study, store, Local(2))
    assert (progress.failed, progress.done) == (1, len(study) - 1)
    assert "no such luck" in progress.failures[0]
    assert bad not in store.done()


def test_newer_foreign_and_broken_folders_are_refused_and_left_alone(tmp_path: Path) -> None:
    newer, foreign, broken, file = (tmp_path / name for name in ("newer", "foreign", "broken", "file"))
    for folder in (newer, foreign, broken):
        folder.mkdir()
    (newer / "lacuna-store.json").write_text(json.dumps({"format": 99}))
    (foreign / "holiday.txt").write_text("beach")
    (broken / "lacuna-store.json").write_text("{")
    file.write_text("")
    for path, why in (
        (newer, "newer lacuna"),
        (foreign, "holds other things"),
        (broken, "damaged"),
        (file, "not a folder"),
    ):
        before = sorted(p.name for p in path.iterdir()) if path.is_dir() else []
        with pytest.raises(StoreError, match=why):
            Store(path)
        assert (sorted(p.name for p in path.iterdir()) if path.is_dir() else []) == before
    with pytest.raises(StoreError, match="is not a store"):
        Store.existing(foreign)
    refused = run("run", write_study(tmp_path, SMALL), "--out", foreign)
    assert refused.returncode == 2
    assert "holds other things" in refused.stderr


def test_status_tells_how_far_studies_are_and_who_is_at_work(small: tuple[Path, Path]) -> None:
    _, path = small
    store = Store.existing(path)
    with store.reporting() as report:
        report({"study": "many", "done": 3, "total": 7, "failed": 1, "steps_per_second": 2.5e6})
        told = run("status", path).stdout
    assert "many: 240 of 240 runs (100%)" in told
    assert "3 of 7 runs, 2.50 million steps a second, 1 failed" in told
    assert "million" not in run("status", path).stdout


def test_the_export_is_read_by_polars_pandas_and_duckdb(small: tuple[Path, Path], tmp_path: Path) -> None:
    table = Store.existing(small[1]).table()
    for ending in ("csv", "parquet"):
        path = tmp_path / f"results.{ending}"
        export(table, path)
        mean = table["reward_per_step"].mean()
        assert getattr(pl, f"read_{ending}")(path)["reward_per_step"].mean() == pytest.approx(mean)
        assert getattr(pd, f"read_{ending}")(path)["reward_per_step"].mean() == pytest.approx(mean)
        reader = "read_csv" if ending == "csv" else "read_parquet"
        asked = duckdb.execute(f"select avg(reward_per_step), count(*) from {reader}(?)", [str(path)])  # noqa: S608
        assert asked.fetchall() == [(pytest.approx(mean), table.height)]


def test_every_column_is_filled_as_the_schema_says(small: tuple[Path, Path]) -> None:
    table = Store.existing(small[1]).table()
    assert dict(table.schema) == {
        name: kind if isinstance(kind, pl.DataType) else kind() for name, kind in SCHEMA.items()
    }
    always = [name for name in SCHEMA if name not in {
        "K", "mean_total_reward", "mean_bad_steps", "mean_path_length", "guessed_right", "weight_on_truth",
        "calibration_error", "kappa", "smoothing", "budget", "cycles", "assumed",
    }]  # fmt: skip
    assert table.select(pl.col(always).null_count()).row(0) == (0,) * len(always)
    assert table["curve_step"].list.len().unique().to_list() == [3]
    assert (table["curve_episodes"].list.last() == table["episodes"]).all()


def test_an_export_with_an_unknown_ending_is_refused(small: tuple[Path, Path], tmp_path: Path) -> None:
    refused = run("export", small[1], tmp_path / "results.xls")
    assert refused.returncode == 2
    assert ".csv or .parquet" in refused.stderr


def test_runs_made_before_a_setting_was_declared_have_its_default(small: tuple[Path, Path]) -> None:
    _, store = small
    whole = Store.existing(store).table()
    for path in (store / "parts").iterdir():
        older = pl.read_parquet(path).drop("optimism", "kappa")
        path.unlink()
        Store.existing(store).write_part(_parquet(older), older["id"])
    found = Store.existing(store)
    assert found.done(afresh=True) == set(whole["id"])
    assert found.damaged == []
    wanted = whole.with_columns(optimism=pl.lit(0.0), kappa=pl.lit(None, pl.Float64))
    assert found.table().sort("id").equals(wanted.sort("id"))


def _parquet(table: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()
