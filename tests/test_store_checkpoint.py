"""A writer that is killed while SQLite moves changes into the file leaves a store that opens again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lacuna.trial.log.chained_log import verify
from lacuna.trial.log.log_store import StoreError
from lacuna.trial.log.sqlite import SqliteStore
from trial_events import bodies, events, keys


def half_moved(tmp_path: Path) -> tuple[Path, int]:
    """A store whose first page says that the file is longer than it is: the other pages are in the -wal file only."""
    path, copy = tmp_path / "walk.db", tmp_path / "copy" / "walk.db"
    copy.parent.mkdir()
    with SqliteStore.create(path, "walk") as store:
        for _ in range(60):
            more = events(5, store.head)
            store.append(bodies(more), keys(more))
        n = store.head.seq + 1
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
    log, whole = Path(f"{copy}-wal").read_bytes(), bytearray(copy.read_bytes())
    size = int.from_bytes(log[8:12])
    first = [
        log[at + 24 : at + 24 + size] for at in range(32, len(log) - size, 24 + size) if log[at : at + 4] == b"\0\0\0\1"
    ]
    whole[:size] = first[-1]
    assert int.from_bytes(whole[28:32]) > len(whole) // size
    copy.write_bytes(whole)
    return copy, n


@pytest.mark.parametrize("write", [True, False])
def test_a_store_that_was_left_half_way_is_opened_with_all_that_was_stored(tmp_path: Path, *, write: bool) -> None:
    path, n = half_moved(tmp_path)
    with SqliteStore.open(path, write=write) as store:
        assert sum(1 for _ in verify(store.read(), head=store.head)) == n


def test_without_its_log_it_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path, _ = half_moved(tmp_path)
    Path(f"{path}-wal").unlink()
    with pytest.raises(StoreError, match=r"walk\.db cannot be opened: .*malformed"):
        SqliteStore.open(path)
