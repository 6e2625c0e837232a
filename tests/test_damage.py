"""Stores damaged, deleted from, or filled with what is no result: nothing is said to be there that is not."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Call, caller, is_one_sentence
from lacuna.quantities import counted
from lacuna.study import heartbeats
from lacuna.study.engines import Local
from lacuna.study.runner import Outcome, run_study
from lacuna.study.runs import RunSpec
from lacuna.study.spec import Study
from lacuna.study.store import SCHEMA, Store
from lacuna.version import RESULTS_VERSION
from studies import STUDY, command, run, write_study

FEW = """
name = "few"
steps = 20
trials = 8
missingness = ["mcar:0.2"]
worlds = [{name = "corridor"}]
methods = [{name = "last-observed"}, {name = "missing-as-state"}]
"""
N = 16


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    return caller(capsys, monkeypatch)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the study, a store of it in two files, and its export."""
    folder = tmp_path_factory.mktemp("clean")
    study = Study.read(write_study(folder, FEW))
    for shard in ((1, 2), (2, 2)):
        run_study(study, Store(folder / "store"), Local(1), shard=shard)
    shutil.copytree(folder / "store", folder / "whole")
    return folder


@pytest.fixture
def store(clean: Path, tmp_path: Path) -> Path:
    """A finished store of its own."""
    shutil.copytree(clean / "store", tmp_path / "store")
    return tmp_path / "store"


def exported(call: Call, store: Path) -> bytes:
    to = store.with_suffix(".csv")
    call("study", "export", store, to)
    return to.read_bytes()


def parts(store: Path) -> list[Path]:
    return sorted((store / "parts").glob("*.parquet"))


def flip(part: Path) -> None:
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)


def become_a_folder(part: Path) -> None:
    part.unlink()
    part.mkdir()


ACCIDENTS: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "flipped": flip,
    "emptied": lambda part: part.write_bytes(b""),
    "set aside": lambda part: part.rename(part.parents[1] / "damaged" / part.name),
    "renamed": lambda part: part.rename(part.with_name("0" * 24 + ".parquet")),
    "a folder": become_a_folder,
    "all gone": lambda part: shutil.rmtree(part.parent),
}  # fmt: skip


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_what_is_lost_while_a_study_runs_is_missing_at_its_end(
    accident: str, clean: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, store = write_study(tmp_path, FEW), tmp_path / "store"
    whole = exported(call, clean / "whole")
    assert call("study", "run", study, "--out", store, "--shard", "1/2").code == 0
    outcomes = Local.outcomes

    def struck(self: Local, portions: Iterator[list[RunSpec]]) -> Generator[Outcome]:
        yield from outcomes(self, portions)
        ACCIDENTS[accident](parts(store)[0])
        if accident == "all gone":
            (store / "parts").mkdir()

    with monkeypatch.context() as patched:
        patched.setattr(Local, "outcomes", struck)
        lossy = call("study", "run", study, "--out", store)
    lost = N - len(Store.existing(store).done())
    assert 0 < lost < N
    assert lossy.code == 1
    assert f"{store} holds {N - lost} of {N} runs" in lossy.out
    last = lossy.err.splitlines()[-1]
    assert last == f"lacuna: {counted(lost, 'run')} missing from {store}; the same command makes what is missing"
    again = call("study", "run", study, "--out", store)
    assert (again.code, f"{store} holds {N} of {N} runs" in again.out) == (0, True)
    assert exported(call, store) == whole


def named(content: bytes) -> str:
    return f"{hashlib.sha256(content).hexdigest()[:24]}.parquet"


def parquet(table: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def strange_tables(good: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Tables that are nearly results: a column missing, of another type, or without values."""
    for column, kind in good.schema.items():
        # Settings that came later may be missing: such a file is old, not damaged.
        if column not in ("kappa", "smoothing", "parents", "optimism", "budget", "cycles", "q_table",
                          "assumed", "evidence", "look", "lag"):  # fmt: skip
            yield good.drop(column)
        yield good.with_columns(pl.lit("x").alias(column) if kind != pl.String else pl.lit(1).alias(column))
        yield good.with_columns(pl.Series(column, [[[1]]] * good.height))
    yield good.with_columns(id=pl.lit(None, pl.String))
    yield good.with_columns(results=pl.lit(None, pl.Int64))
    yield good.with_columns(results=pl.lit(RESULTS_VERSION + 1, pl.Int64))
    yield good.with_columns(id=pl.lit(""))
    yield good.with_columns(more=pl.lit(1))
    yield good.head(0)
    yield pl.DataFrame({"id": [1, 2]})
    yield pl.DataFrame({"a": [1.5]})
    yield pl.DataFrame({"id": ["a"], "results": [RESULTS_VERSION]})


NUMBERS = ["1e999", "-1e999", "NaN", "null", "{}", "[]", '"x"', "true", "-1", "1" + "0" * 4000, "1" + "0" * 5000, "0.5"]
TEXTS = ["", "{", "{}", "[]", "null", "7", "\0", '{"a": ' * 2000, "[" * 100_000, "\ufeff{}", *NUMBERS]


def strange_notes(good: dict[str, Any]) -> Iterator[bytes]:
    """JSON that is nearly what it should be, and texts that are nothing of the kind."""
    for text in TEXTS:
        yield text.encode()
    yield b"\xff\xfe{}"
    for key in good:
        yield json.dumps({k: v for k, v in good.items() if k != key}).encode()
        for number in (*NUMBERS, '"\\ud800\\n\\u001b[31m"'):
            yield json.dumps(good | {key: "HERE"}).replace('"HERE"', number).encode()


def put(path: Path, content: bytes, chance: random.Random) -> None:
    """Put a file there; or something else under its name."""
    kind = chance.randrange(12)
    if kind == 0:
        path.mkdir()
        (path / "inside").write_bytes(content)
    elif kind == 1:
        path.symlink_to("nowhere")
    elif kind == 2:
        path.symlink_to(path)
    elif kind == 3:
        path.symlink_to(path.parent)
    elif kind == 4:
        os.mkfifo(path)
    else:
        path.write_bytes(content)


def test_whatever_lies_in_a_store_the_study_ends_whole_and_its_export_is_the_same(
    clean: Path, tmp_path: Path, call: Call
) -> None:
    chance = random.Random(12)
    study = write_study(tmp_path, FEW)
    whole = exported(call, clean / "whole")
    good = Store.existing(clean / "whole").table()
    beat = {
        "study": "few", "done": 1, "total": 2, "failed": 0, "steps_per_second": 1.0, "time": time.time(),
        "place": heartbeats.place(), "pid": os.getpid(), "began": heartbeats.process_start(os.getpid()),
    }  # fmt: skip
    note = json.loads(next((clean / "whole" / "studies").iterdir()).read_bytes())
    real = parquet(good)
    tables = [*map(parquet, strange_tables(good)), b"", b"PAR1", b"PAR1PAR1", os.urandom(200)]
    tables += [real[: chance.randrange(len(real))] for _ in range(20)]
    signs, notes = list(strange_notes(beat)), list(strange_notes(note))
    notes += [b'{"study": ' + content + b"}" for content in strange_notes(note["study"])]
    assert (len(tables), len(signs), len(notes)) > (150, 130, 200)
    while tables or signs or notes:
        store = tmp_path / f"store{len(tables)}-{len(signs)}-{len(notes)}"
        shutil.copytree(clean / "whole", store)
        for part in parts(store):
            if chance.random() < 0.5:
                part.unlink()
        for _ in range(12):
            if tables:
                content = tables.pop()
                put(store / "parts" / named(content), content, chance)
            for folder, contents in (("running", signs), ("studies", notes)):
                if contents:
                    name = chance.choice(["é", "\udc80", "a b", "x\n"]) + str(len(contents))
                    put(store / folder / f"{name}.json", contents.pop(), chance)
        # In any order: each has to cope with what it finds.
        asked = [("status", store), ("plan", study, "--out", store), ("export", store, tmp_path / "some.csv")]
        for words in chance.sample(asked, 2):
            answer = call("study", *words)
            assert answer.code in (0, 1), answer
            assert "Traceback" not in answer.err
        answer = call("study", "run", study, "--out", store)
        assert (answer.code, f"{store} holds {N} of {N} runs" in answer.out) == (0, True), answer
        assert exported(call, store) == whole
        assert not parts(store) or all(part.is_file() for part in parts(store))
        answer = call("study", "status", store)
        assert answer.code == 0
        assert f"{store}: {N} runs" in answer.out
        shutil.rmtree(store)


@pytest.mark.parametrize("text", [*TEXTS, *(f'{{"format": {number}}}' for number in NUMBERS)])
def test_a_mark_that_says_nothing_is_refused(text: str, store: Path, call: Call) -> None:
    (store / "lacuna-store.json").write_text(text)
    before = sorted(store.rglob("*"))
    for words in (
        ("status", store),
        ("export", store, "to.csv"),
        ("run", write_study(store.parent, FEW), "--out", store),
    ):
        answer = call("study", *words)
        assert answer.code == 2
        assert is_one_sentence(answer.err)
        assert "lacuna-store.json" in answer.err
    assert sorted(store.rglob("*")) == before


@pytest.mark.parametrize("name", ["parts", "studies", "running", "damaged", "lacuna-store.json"])
@pytest.mark.parametrize("kind", ["file", "folder", "loop", "pipe"])
def test_a_store_whose_parts_are_of_another_kind_is_refused_in_a_sentence(
    name: str, kind: str, store: Path, call: Call
) -> None:
    path = store / name
    if path.is_dir():
        if kind == "folder":
            return
        shutil.rmtree(path)
    else:
        if kind == "file":
            return
        path.unlink()
    if kind == "file":
        path.write_text("")
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        os.mkfifo(path)
    for words in (("status", store), ("run", write_study(store.parent, FEW), "--out", store)):
        answer = call("study", *words)
        assert answer.code == 2
        assert is_one_sentence(answer.err)
        assert str(store) in answer.err


def test_a_file_of_an_earlier_version_is_neither_damaged_nor_counted(store: Path) -> None:
    table = Store.existing(store).table()
    earlier = [
        table.with_columns(results=pl.lit(RESULTS_VERSION - 1, pl.Int64)),
        table.with_columns(results=pl.lit(RESULTS_VERSION - 1, pl.Int64)).drop("steps", "alpha"),
    ]
    shutil.rmtree(store / "parts")
    (store / "parts").mkdir()
    for old in earlier:
        content = parquet(old)
        (store / "parts" / named(content)).write_bytes(content)
    opened = Store.existing(store)
    assert (opened.done(), opened.table().height, opened.damaged) == (set(), 0, [])
    assert dict(opened.table().schema) == dict(pl.DataFrame(schema=SCHEMA).schema)


def listed(store: Path) -> list[str]:
    return [line for line in run("status", store).stdout.splitlines() if "running:" in line]


@pytest.mark.slow
def test_status_does_not_call_a_killed_process_running(tmp_path: Path) -> None:
    # Long enough that it cannot be done before it is killed.
    study = write_study(tmp_path, STUDY.replace("steps = 250", "steps = 20_000"))
    store = tmp_path / "store"
    process = subprocess.Popen(command("run", study, "--out", store, "--workers", "1"))
    while not list(store.glob("running/*.json")):
        time.sleep(0.02)
        assert process.poll() is None
    alive = listed(store)
    process.send_signal(signal.SIGKILL)
    while heartbeats.process_start(process.pid) is not None:
        time.sleep(0.01)
    # It is a zombie as long as nobody waited for it, and gone afterwards.
    zombie = listed(store)
    process.wait()
    gone = listed(store)
    assert len(alive) == 1
    assert str(process.pid) in alive[0]
    assert (zombie, gone) == ([], [])
    assert len(list(store.glob("running/*.json"))) == 1


def beat_of(store: Path, **change: Any) -> Path:
    """The sign of life of this process, with something changed."""
    opened = Store.existing(store)
    with opened.reporting() as report:
        report({"study": "few", "done": 1, "total": 2, "failed": 0, "steps_per_second": 1.0})
        [path] = (store / "running").iterdir()
        content = json.loads(path.read_bytes())
    assert opened.at_work() == {}
    path.write_text(json.dumps(content | change))
    return path


@pytest.mark.parametrize(
    ("change", "alive"),
    [
        ({}, True),
        ({"time": 0.0}, True),
        ({"began": "1"}, False),
        ({"pid": 2**22 + 1}, False),
        ({"place": "elsewhere"}, True),
        ({"place": "elsewhere", "began": "1", "pid": 1}, True),
        ({"place": "elsewhere", "time": time.time() - 3600}, False),
        ({"place": "elsewhere", "time": time.time() + 3600}, False),
    ],
)
def test_a_process_here_is_its_number_and_start_and_one_elsewhere_its_last_sign(
    change: dict[str, Any], alive: bool, store: Path
) -> None:
    beat_of(store, **change)
    assert bool(Store.existing(store).at_work()) == alive


def test_signs_of_killed_processes_are_removed_after_an_hour(store: Path) -> None:
    path = beat_of(store, began="1").rename(store / "running" / "other-1.json")
    with Store.existing(store).reporting():
        assert path.exists()
    os.utime(path, (0, 0))
    with Store.existing(store).reporting():
        assert not path.exists()


def test_a_disk_that_fills_up_leaves_nobody_listed(
    store: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    write = Store.write

    def full(self: Store, rows: list[dict[str, Any]]) -> None:
        seen.append(list(self.at_work()))
        if seen[-1]:
            raise OSError(28, "No space left on device")
        write(self, rows)

    monkeypatch.setattr(Store, "write", full)
    monkeypatch.setattr("lacuna.study.runner._SAVE_LATEST", 0.0)
    wider = write_study(tmp_path, FEW.replace("trials = 8", "trials = 300"))
    answer = call("study", "run", wider, "--out", store)
    assert (answer.code, answer.err) == (2, "lacuna: [Errno 28] No space left on device\n")
    assert seen[-1]
    assert not list((store / "running").iterdir())
