"""Dask for real: a scheduler and workers as processes of their own, one of them killed in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from lacuna.study.engines import Dask
from lacuna.study.runner import in_shard
from lacuna.study.spec import Study
from lacuna.study.store import Store
from studies import STUDY, command, exported, finish, run, write_study

pytestmark = pytest.mark.slow


@contextmanager
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def start(words: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen([sys.executable, "-m", *words], stdout=out, stderr=out, cwd=log.parent)


def wait_for(path: Path) -> str:
    for _ in range(600):
        if path.exists() and path.stat().st_size:
            return str(json.loads(path.read_text())["address"])
        time.sleep(0.05)
    raise TimeoutError(path)


def test_a_dask_cluster_that_loses_a_worker_gives_the_same_bytes(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    finish("run", study, "--out", tmp_path / "local")
    about = tmp_path / "scheduler.json"
    with processes() as started:
        scheduler = ["distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(about)]
        started.append(start(scheduler, tmp_path / "scheduler.log"))
        address = wait_for(about)
        for i in range(2):
            worker = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            started.append(start(worker, tmp_path / f"worker{i}.log"))
        words = command("run", study, "--out", tmp_path / "dask", "--engine", "dask", "--scheduler", address)
        client = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not list(tmp_path.glob("dask/parts/*.parquet")):
            time.sleep(0.05)
            assert client.poll() is None, client.communicate()
        os.kill(started[1].pid, signal.SIGKILL)
        said, complaint = client.communicate(timeout=120)
    assert client.returncode == 0, complaint + said
    assert exported(tmp_path / "dask") == exported(tmp_path / "local")


def test_a_scheduler_that_dies_ends_the_study_with_a_sentence_and_keeps_what_is_stored(tmp_path: Path) -> None:
    # Long enough that it cannot be done before the scheduler dies.
    study, store = write_study(tmp_path, STUDY.replace("steps = 250", "steps = 20_000")), tmp_path / "dask"
    about = tmp_path / "scheduler.json"
    with processes() as started:
        scheduler = ["distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(about)]
        started.append(start(scheduler, tmp_path / "scheduler.log"))
        address = wait_for(about)
        worker = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        started.append(start(worker, tmp_path / "worker.log"))
        words = command("run", study, "--out", store, "--engine", "dask", "--scheduler", address)
        client = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not list(store.glob("parts/*.parquet")):
            time.sleep(0.05)
            assert client.poll() is None, client.communicate()
        os.kill(started[0].pid, signal.SIGKILL)
        said, complaint = client.communicate()
    assert (client.returncode, said) == (1, "")
    gone = f"the Dask scheduler at {address} is gone; what came back before is stored, and the same command goes on"
    assert complaint == f"lacuna: {gone}\n"
    assert not list((store / "running").iterdir())
    opened = Store.existing(store)
    assert 0 < len(opened.done(afresh=True)) < len(Study.read(study))
    assert opened.damaged == []


def test_no_scheduler_is_told_in_a_sentence(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    without = run("run", study, "--out", tmp_path / "a", "--engine", "dask")
    assert (without.returncode, "--scheduler" in without.stderr) == (2, True)
    unknown = run("run", study, "--out", tmp_path / "a", "--engine", "cloud")
    assert (unknown.returncode, "'cloud'" in unknown.stderr) == (2, True)


@pytest.mark.parametrize("shard", ["0/3", "4/3", "1", "a/b", "1/0", "-1/3"])
def test_a_wrong_shard_is_refused(tmp_path: Path, shard: str) -> None:
    refused = run("run", write_study(tmp_path), "--out", tmp_path / "a", "--shard", shard)
    assert refused.returncode == 2
    assert repr(shard) in refused.stderr


def test_every_run_is_in_exactly_one_shard() -> None:
    runs = list(Study.parse(STUDY).runs())
    sizes = [sum(in_shard(run, (i, 7)) for run in runs) for i in range(1, 8)]
    assert sum(sizes) == len(runs)
    assert min(sizes) > len(runs) / 7 * 0.7


def test_a_scheduler_is_asked_for_where_a_loop_is_running_as_in_a_notebook() -> None:
    async def in_a_notebook() -> None:
        with pytest.raises(ValueError, match="no Dask scheduler answers at 'nonsense'"), Dask.connected("nonsense"):
            pass

    # In a thread of its own: the browser of other tests has a running loop in this one.
    with ThreadPoolExecutor(1) as notebook:
        notebook.submit(lambda: asyncio.run(in_a_notebook())).result()
