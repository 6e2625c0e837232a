"""The files of a trial in the hands of others: removed while it runs, or none that can be read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from lacuna.cli.pipe import answers
from lacuna.cli.trial_log_commands import MOST_OF_ARGUMENT, text_of
from lacuna.trial.audits.replays import audit
from lacuna.trial.engine.sources import read_mapping, read_source
from lacuna.trial.engine.trial import Trial
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import verify
from lacuna.trial.log.keys import DrawsKey
from lacuna.trial.log.log_store import StoreError
from lacuna.trial.log.sqlite import SqliteStore
from live_trials import kinds, write_file
from sentences import one_sentence
from trial_events import body

HARM: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: path.unlink(),
    "renamed": lambda path: path.rename(path.with_name("away")),
    "replaced": lambda path: (path.rename(path.with_name("away")), path.write_bytes(b"")),
}


def stored(path: Path, n: int) -> SqliteStore:
    store = SqliteStore.create(path, "walk")
    for seq in range(n):
        store.append([body(seq)])
    return store


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_a_file_that_was_removed_under_a_writer_is_noticed_at_the_next_append(
    harm: str, end: str, tmp_path: Path
) -> None:
    store = stored(tmp_path / "walk.db", 5)
    HARM[harm](tmp_path / f"walk.db{end}")
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"walk\.db{end} was removed or replaced while it was open: ") as told:
            store.append([body(5)])
        assert ("is safe, so open it again" in one_sentence(told.value)) == (end == "-wal")
    assert store.head.seq == 4
    store.close()


@pytest.mark.parametrize("part", [0, 0.5, 0.999])
@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_file_that_was_cut_under_a_writer_is_noticed_at_the_next_append(
    end: str, part: float, tmp_path: Path
) -> None:
    store, path = stored(tmp_path / "walk.db", 5), tmp_path / f"walk.db{end}"
    os.truncate(path, int(part * path.stat().st_size))
    for _ in range(2):
        with pytest.raises(
            StoreError, match=rf"walk\.db{end} was cut while it was open: what is written would be lost$"
        ):
            store.append([body(5)])
    assert store.head.seq == 4


def test_a_store_that_was_rewritten_to_erase_events_goes_on(tmp_path: Path) -> None:
    store = stored(tmp_path / "walk.db", 300)
    before = path_sizes(tmp_path)
    store.redact(range(1, 300))
    assert path_sizes(tmp_path) < before
    store.append([body(300)])
    store.close()


def path_sizes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


WRITER = """
import os, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from lacuna.trial.log.sqlite import SqliteStore
from lacuna.trial.log.log_store import StoreError
from trial_events import body
store = SqliteStore.create({path!r}, "walk")
for seq in range(1000):
    try:
        store.append([body(seq)])
    except StoreError:
        os.kill(os.getpid(), 9)
    print(seq, flush=True)
    sys.stdin.readline()
"""


def test_every_event_that_was_acknowledged_outlives_its_wal_and_its_process(tmp_path: Path) -> None:
    path = tmp_path / "walk.db"
    program = WRITER.format(tests=str(Path(__file__).parent), path=str(path))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        acknowledged = -1
        for line in child.stdout:
            acknowledged = int(line)
            if acknowledged == 20:
                (tmp_path / "walk.db-wal").unlink()
            child.stdin.write("\n")
            child.stdin.flush()
    assert (child.returncode, acknowledged) == (-signal.SIGKILL, 20)
    with SqliteStore.open(path) as store:
        assert [entry.seq for entry in verify(store.read())][: acknowledged + 1] == list(range(21))


def test_a_trial_whose_wal_was_removed_answers_no_more_and_goes_on_when_opened_again(tmp_path: Path) -> None:
    trial = Trial.create(write_file(tmp_path), seed=1)
    trial.enrol("maria")
    first = trial.decide("maria", 0, {"mood": 2})
    (tmp_path / "walk.db-wal").unlink()
    with pytest.raises(StoreError, match="was removed or replaced"):
        trial.decide("maria", 1, {"mood": 3})
    trial.close()
    assert kinds(tmp_path / "walk.db") == ["begin", "enrol", "decision"]
    with Trial.open(tmp_path / "walk.db") as again:
        assert again.decide("maria", 0, {"mood": 2}).prob == first.prob
        assert again.decide("maria", 1, {"mood": 3}).seq == 4
    audit(tmp_path / "walk.db")


def new_file(folder: Path) -> TrialFile:
    return TrialFile.read(write_file(folder / "new"))


READ: dict[str, Callable[[Path, Path], object]] = {
    "a trial file": lambda path, _: TrialFile.read(path),
    "a draws key": lambda path, _: DrawsKey.read(path),
    "a log to replay": audit,
    "a log to learn from": lambda path, folder: read_source(path, new_file(folder)),
    "a mapping": lambda path, _: read_mapping(path),
}


@pytest.mark.parametrize("what", READ)
def test_a_pipe_and_a_device_are_refused_and_not_waited_for(what: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (tmp_path / "pipe", "it is not a regular file"), (Path("/dev/zero"), "it is not a regular file"),
        (tmp_path, "Is a directory"), (tmp_path / "none", "No such file"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=why) as told:
            READ[what](path, tmp_path)
        assert str(path) in one_sentence(told.value)


@pytest.mark.parametrize("what", READ)
def test_a_file_of_any_size_is_refused_by_its_size(what: str, tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate((1 << 36) + 1)
    with pytest.raises(ValueError, match=r"it has 68,719,476,737 bytes, and may have [0-9,]+$") as told:
        READ[what](path, tmp_path)
    one_sentence(told.value)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"participant": "a", "participant": "b", "t": 0, "context": {}}', "participant"),
        (b'{"participant": "a", "t": 0, "t": 0, "context": {}}', "t"),
        (b'{"participant": "a", "t": 0, "context": {"mood": 1, "mood": 2}}', "mood"),
        (b'{"participant": "a", "t": 0, "context": {}, "extra": {"a": [{"b": 1, "b": 1}]}}', "b"),
    ],
)
def test_a_key_that_is_twice_in_a_request_is_refused(line: bytes, key: str, tmp_path: Path) -> None:
    with Trial.create(write_file(tmp_path), seed=1) as trial:
        trial.enrol("a")
        head = trial.head
        assert list(answers(trial, BytesIO(line))) == [json.dumps({"error": f"the request has the key {key!r} twice"})]
        assert trial.head == head


def test_a_key_that_is_twice_in_a_mapping_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"actions": {"a": "b", "a": "c"}}')
    with pytest.raises(ValueError, match=r"m\.json cannot be read as a mapping: it has the key 'a' twice"):
        read_mapping(tmp_path / "m.json")


@pytest.mark.parametrize("where", ["pipe", "/dev/zero", "large"])
def test_an_argument_from_a_file_is_refused_if_it_is_no_small_file(where: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"a" * (MOST_OF_ARGUMENT + 1))
    with pytest.raises(ValueError, match=r"it is not a regular file|it has 65,537 bytes, and may have 65,536"):
        text_of(f"@{tmp_path / where}")
    (tmp_path / "small").write_bytes("\ufeffmaría \r\n".encode())
    assert text_of(f"@{tmp_path / 'small'}") == "maría"
