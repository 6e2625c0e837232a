"""A store of a trial through every accident: killed, full, damaged, foreign, written by two, and made to forget."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from lacuna.trial.log import sqlite_file
from lacuna.trial.log.chained_log import START, Entry, Head, LogError, make_entry, verify
from lacuna.trial.log.log_store import Store, StoreBusyError, StoreConflictError, StoreError, sqlite_path
from lacuna.trial.log.sqlite import SqliteStore
from sentences import one_sentence
from trial_events import bodies, body, events, keys, pseudonym


def grow(store: Store, n: int) -> list[Entry]:
    """Append the next n events, all at once."""
    entries = events(n, store.head)
    store.append(bodies(entries), keys(entries))
    return entries


def stored(path: Path) -> list[Entry]:
    """What a reader finds, verified."""
    with SqliteStore.open(path, write=False) as store:
        return list(verify(store.read(), head=store.head))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "walk.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.create(path, "walk") as store:
        yield store


def refused(kind: type[StoreError], act: Callable[[], object], why: str) -> None:
    with pytest.raises(kind, match=why) as error:
        act()
    assert type(error.value) is kind
    one_sentence(error.value)


def test_events_come_back_and_are_found_by_their_key(path: Path, store: SqliteStore) -> None:
    assert (store.trial, store.head, list(store.read())) == ("walk", START, [])
    whole = grow(store, 1)
    for n in (1, 5, 64, 600):
        whole += grow(store, n)
        assert store.head == whole[-1].head
    assert list(verify(store.read(), head=store.head)) == whole == events(671)
    assert list(store.read(400)) == whole[400:]
    assert store.entry(17) == whole[17]
    assert store.find(pseudonym(3), 2) == 17
    assert store.find(pseudonym(3), 2**62) is store.find("nobody", 0) is None
    refused(StoreError, lambda: store.entry(671), "holds no event 671")
    refused(StoreError, lambda: store.find("nobody", 2**70), "too large")
    store.close()
    store.close()
    refused(StoreError, lambda: grow(store, 1), "closed")
    with SqliteStore.open(path) as again:
        assert again.trial == "walk"
        whole += grow(again, 3)
    assert stored(path) == whole


def test_what_does_not_continue_the_log_is_not_appended(store: SqliteStore) -> None:
    whole = grow(store, 5)
    for bad in (events(1), events(8)[6:], [*events(6)[5:], *events(6)[5:]]):
        with pytest.raises(LogError, match=r"event [56]: its body has the number [056]"):
            store.append(bodies(bad))
    assert list(store.read()) == whole


def test_a_file_holds_several_trials_and_each_is_made_once(path: Path, store: SqliteStore) -> None:
    # A trial without an event is not there yet: a maker that was killed can begin again.
    store.close()
    refused(StoreError, lambda: SqliteStore.open(path), "holds no trial: it holds none")
    with SqliteStore.create(path, "walk") as again:
        grow(again, 3)
    refused(StoreError, lambda: SqliteStore.create(path, "walk"), "holds the trial 'walk' already")
    with SqliteStore.create(path, "swim") as other:
        grow(other, 2)
        other.put_snapshot(1, b"swim")
    refused(StoreError, lambda: SqliteStore.open(path), "several trials, so name one: it holds 'swim', 'walk'")
    refused(StoreError, lambda: SqliteStore.open(path, "run"), "holds no trial 'run': it holds 'swim', 'walk'")
    for trial, found in (("walk", (2, [])), ("swim", (1, [1]))):
        with SqliteStore.open(path, trial, write=False) as reader:
            assert (reader.head.seq, reader.snapshots()) == found
    with pytest.raises(ValueError, match="the name of the trial is ''"):
        SqliteStore.create(path, "")


def test_a_trial_never_meets_the_events_of_its_neighbours_in_the_file(path: Path) -> None:
    logs = {}
    for name, n in (("first", 7), ("second", 5), ("third", 6)):
        with SqliteStore.create(path, name) as store:
            logs[name] = grow(store, n)
    with SqliteStore.open(path, "second") as store:
        assert list(store.read(-3)) == list(store.read()) == logs["second"]
        assert store.head == logs["second"][-1].head
        for seq in (-1, 5, sqlite_file.SEQS - 1, sqlite_file.SEQS, 1 - sqlite_file.SEQS):
            refused(StoreError, partial(store.entry, seq), f"holds no event {seq} of the trial 'second'")
            refused(StoreError, partial(store.redact, [seq]), f"holds no event {seq} of the trial 'second'")
        assert store.find(*keys(logs["first"])[-1][:2]) is None
        logs["second"] += grow(store, 400)
    for name, entries in logs.items():
        with SqliteStore.open(path, name, write=False) as reader:
            assert list(verify(reader.read(), head=reader.head)) == entries


def test_a_decision_is_stored_once_and_the_group_with_it_not_at_all(path: Path, store: SqliteStore) -> None:
    whole = grow(store, 20)
    more = events(5, store.head)
    there = [*keys(more[:4]), (pseudonym(3), 2, 24)]
    refused(StoreConflictError, lambda: store.append(bodies(more), there), "at t 2 already, as event 17")
    twice = [("abcd", 1, 24), ("abcd", 1, 24)]
    refused(StoreConflictError, lambda: store.append(bodies(more), twice), "the same decision twice")
    assert list(store.read()) == whole
    assert store.find(*keys(more)[0][:2]) is None
    assert grow(store, 5) == more


def test_a_second_writer_is_refused_and_readers_are_not(path: Path, store: SqliteStore, tmp_path: Path) -> None:
    grow(store, 5)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    for name in (path, link):
        refused(StoreBusyError, partial(SqliteStore.open, name), "one writer at a time")
        refused(StoreBusyError, partial(SqliteStore.create, name, "swim"), "one writer at a time")
    with SqliteStore.open(link, write=False) as reader:
        assert reader.head.seq == 4
        grow(store, 5)
        assert reader.head == store.head
        assert len(list(reader.read())) == 10
        for act in (lambda: grow(reader, 1), lambda: reader.put_snapshot(0, b""), lambda: reader.redact([1])):
            refused(StoreError, act, "open for reading only")
    # A reader in the same process must not cost the writer its locks on the file: the last to close a file removes its
    # -wal file, and another program would take itself for the last.
    other = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM event').fetchone(); c.close()"
    )
    subprocess.run([sys.executable, "-c", other, path], check=True)
    assert path.with_name("walk.db-wal").exists()
    grow(store, 5)
    assert len(stored(path)) == 15
    store.close()
    with SqliteStore.open(path) as again:
        assert again.head.seq == 14


def test_without_the_lock_the_second_writer_changes_nothing_and_is_told(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lacuna.trial.log.sqlite_file.fcntl.flock", lambda *_: None)
    whole = grow(store, 5)
    with SqliteStore.open(path) as second:
        mine, other = events(2, store.head), [make_entry(store.head, body(5, action=7))]
        second.append(bodies(other), [("ffff", 0, 5)])
        for _ in range(2):
            refused(StoreConflictError, lambda: store.append(bodies(mine), keys(mine)), "does not end with event 4")
        second.append(bodies(events(1, second.head)))
        assert list(verify(second.read())) == [*whole, *other, *events(1, other[0].head)]
        assert store.find(*keys(mine)[0][:2]) is None


RIVAL = """
import sys, trial_events
from lacuna.trial.log import sqlite_file
from lacuna.trial.log.sqlite import SqliteStore
from lacuna.trial.log.log_store import StoreConflictError
sqlite_file.fcntl.flock = lambda *_: None
done = 0
while done < 40:
    with SqliteStore.open(sys.argv[1]) as store:
        try:
            while done < 40:
                seq = store.head.seq + 1
                store.append([trial_events.body(seq, rival=sys.argv[2], n=done)], [(sys.argv[2], done, seq)])
                done += 1
        except StoreConflictError:
            pass
"""


def test_two_writers_without_a_lock_lose_nothing(path: Path, store: SqliteStore) -> None:
    grow(store, 1)
    store.close()
    rivals = [subprocess.Popen([sys.executable, "-c", RIVAL, path, name], env=environment()) for name in "ab"]
    assert [rival.wait(120) for rival in rivals] == [0, 0]
    assert len(stored(path)) == 81
    with SqliteStore.open(path) as again:
        for name in "ab":
            numbers = [again.find(name, n) for n in range(40)]
            assert numbers == sorted(numbers, key=lambda seq: seq or 0)
            for n, seq in enumerate(numbers):
                assert seq is not None
                assert f'"n":{n},'.encode() in (again.entry(seq).body or b"")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}


# Prints the end of the log whenever an append has returned.
WRITER = """
import sys, trial_events
from lacuna.trial.log.sqlite import SqliteStore
store = SqliteStore.open(sys.argv[1])
print(store.head.seq, store.head.chain.hex(), flush=True)
n = 0
while True:
    n = n % 7 + 1
    entries = trial_events.events(n, store.head)
    store.append(trial_events.bodies(entries), trial_events.keys(entries))
    print(store.head.seq, store.head.chain.hex(), flush=True)
    if n == 5:
        store.put_snapshot(store.head.seq, bytes(20000))
"""


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_30_kills(path: Path, store: SqliteStore) -> None:
    grow(store, 1)
    store.close()
    chance = random.Random(3)
    for _ in range(30):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], env=environment(), stdout=subprocess.PIPE)
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        time.sleep(chance.uniform(0, 0.05))
        writer.kill()
        lines += writer.stdout.read().splitlines()
        writer.wait()
        writer.stdout.close()
        # The last line may be cut where the writer was killed.
        told = [line.split() for line in lines if len(line.split()) == 2 and len(line.split()[1]) == 64]
        heads = [Head(int(seq), bytes.fromhex(chain.decode())) for seq, chain in told]
        whole = stored(path)
        assert {head.seq: whole[head.seq].chain for head in heads} == dict(heads)
        with SqliteStore.open(path) as again:
            assert again.head == whole[-1].head
            assert [again.find(p, t) for p, t, _ in keys(whole)] == [one.seq for one in whole[1:]]
            assert all(seq <= again.head.seq for seq in again.snapshots())
    assert len(whole) > 200


@pytest.mark.slow
def test_a_maker_that_is_killed_leaves_a_whole_store_or_none(path: Path) -> None:
    program = "import sys; from lacuna.trial.log.sqlite import SqliteStore; print(flush=True); "
    program += "SqliteStore.create(sys.argv[1], 'walk')"
    chance = random.Random(5)
    for _ in range(10):
        maker = subprocess.Popen([sys.executable, "-c", program, path], env=environment(), stdout=subprocess.PIPE)
        assert maker.stdout is not None
        maker.stdout.readline()
        time.sleep(chance.uniform(0, 0.004))
        maker.kill()
        maker.communicate()
        with SqliteStore.create(path, "walk") as store:
            assert store.head == START
        path.unlink()


def test_a_full_disk_is_told_and_leaves_nothing_half_written(path: Path, store: SqliteStore) -> None:
    whole = grow(store, 30)
    # The system refuses files beyond this size, as a full disk refuses any.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name("walk.db-wal").stat().st_size + 20_000, hard))
    try:
        refused(StoreError, lambda: [grow(store, 3) for _ in range(100)], "cannot be written")
        refused(StoreError, lambda: store.put_snapshot(0, bytes(100_000)), "cannot be written")
        whole += events(store.head.seq - 29, whole[-1].head)
        assert store.head == whole[-1].head
        assert list(verify(store.read())) == whole
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    whole += grow(store, 3)
    store.close()
    assert stored(path) == whole


def test_a_database_that_may_not_grow_is_told(path: Path, store: SqliteStore) -> None:
    whole = grow(store, 30)
    store._connection.execute("PRAGMA max_page_count = 20")
    refused(StoreError, lambda: [grow(store, 10) for _ in range(100)], "database or disk is full")
    store._connection.execute("PRAGMA max_page_count = 1000000")
    whole += events(store.head.seq - 29, whole[-1].head)
    assert [*whole, *grow(store, 1)] == list(verify(store.read()))


def test_a_database_that_another_program_holds_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "_PATIENCE", 0.05)
    with SqliteStore.create(path, "walk") as store, closing(sqlite3.connect(path, isolation_level=None)) as shell:
        whole = grow(store, 3)
        shell.execute("BEGIN IMMEDIATE")
        refused(StoreError, lambda: grow(store, 1), "database is locked")
        shell.execute("ROLLBACK")
        assert list(store.read()) == whole
        grow(store, 1)


def test_a_file_that_is_removed_or_replaced_is_not_written_to(path: Path, store: SqliteStore) -> None:
    grow(store, 3)
    moved = path.rename(path.with_name("moved.db"))
    refused(StoreError, lambda: grow(store, 1), "removed or replaced")
    shutil.copy(moved, path)
    refused(StoreError, lambda: grow(store, 1), "removed or replaced")
    store.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir()}


def test_foreign_files_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "plain.db")) as other:
        other.execute("CREATE TABLE event (trial, seq, body)")
    with closing(sqlite3.connect(tmp_path / "wal.db")) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE a (b)")
        # As after a crash: SQLite would write what is in the second file into the first.
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"wal.db{end}", tmp_path / f"crashed.db{end}")
    for name, version in (("older.db", 1), ("newer.db", 9), ("tables.db", sqlite_file.FORMAT)):
        with closing(sqlite3.connect(tmp_path / name)) as other:
            other.execute(f"PRAGMA application_id = {0x6C616375}")
            other.execute(f"PRAGMA user_version = {version}")
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("a,b\n1,2\n" * 1000, encoding="utf-8")
    (tmp_path / "short.db").write_bytes(b"SQLite format 3\0" + bytes(30))
    reasons = {
        "plain.db": "not a store of lacuna", "wal.db": "not a store of lacuna", "crashed.db": "not a store of lacuna",
        "older.db": "is a store of format 1; this version reads format 2 only", "newer.db": "store of format 9",
        "empty.db": "not a store of lacuna", "text.db": "file is not a database", "short.db": "cannot be opened",
        ".": "not a file",
    }  # fmt: skip
    before = contents(tmp_path)
    for name, reason in reasons.items():
        for write in (True, False):
            refused(StoreError, partial(SqliteStore.open, tmp_path / name, write=write), reason)
        refused(StoreError, partial(SqliteStore.create, tmp_path / name, "walk"), reason)
    assert contents(tmp_path) == before
    refused(StoreError, lambda: SqliteStore.open(tmp_path / "none.db"), "there is no such file")
    refused(StoreError, lambda: SqliteStore.create(tmp_path / "none" / "a.db", "walk"), "No such file or directory")
    assert contents(tmp_path) == before
    refused(StoreError, lambda: SqliteStore.open(tmp_path / "tables.db", write=False), "its tables are not those")
    assert contents(tmp_path) == before


def test_a_store_with_other_tables_or_a_trigger_is_refused(path: Path, store: SqliteStore) -> None:
    grow(store, 3)
    store.close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TRIGGER late AFTER INSERT ON event BEGIN DELETE FROM snapshot; END")
    refused(StoreError, lambda: SqliteStore.open(path), "its tables are not those of a store of lacuna")
    # The lock was given back.
    refused(StoreError, lambda: SqliteStore.open(path), "its tables are not those of a store of lacuna")


def test_what_is_left_of_a_removed_store_is_not_taken_into_a_new_one(path: Path, store: SqliteStore) -> None:
    grow(store, 3)
    shutil.copy(path.with_name("walk.db-wal"), path.with_name("kept"))
    store.close()
    path.unlink()
    path.with_name("kept").rename(path.with_name("walk.db-wal"))
    refused(StoreError, lambda: SqliteStore.create(path, "walk"), "left of a file that was removed")
    assert not path.exists()


def test_a_damaged_database_is_told_and_left_as_it_is(path: Path, store: SqliteStore) -> None:
    whole = grow(store, 300)
    store.close()
    content, chance = path.read_bytes(), random.Random(6)
    found = 0
    for n in range(60):
        damaged = bytearray(content)
        if n % 2:
            damaged = damaged[: chance.randrange(len(content))]
        else:
            i = chance.randrange(len(content) - 64)
            damaged[i : i + 64] = chance.randbytes(64)
        path.write_bytes(damaged)
        try:
            with SqliteStore.open(path) as again:
                entries = list(verify(again.read(), head=whole[-1].head))
                assert entries == whole
                grown = [again.find(p, t) for p, t, _ in keys(whole)]
                found += grown != [one.seq for one in whole[1:]]
        except (StoreError, LogError) as error:
            one_sentence(error)
            found += 1
        assert path.read_bytes() == damaged
    assert found > 50


def test_an_edited_event_is_found_by_name(path: Path, store: SqliteStore) -> None:
    grow(store, 30)
    store.close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE event SET body = CAST(replace(body, '0.75', '0.85') AS BLOB) WHERE seq = 17")
    with pytest.raises(LogError, match=f"participant {pseudonym(3)[:4]}…, t 2.: its body does not match its hash"):
        stored(path)


def test_the_last_snapshots_are_kept_and_a_damaged_one_is_passed_over(path: Path, store: SqliteStore) -> None:
    grow(store, 100)
    assert store.get_snapshot() is None
    for seq in (5, 10, 20, 40):
        store.put_snapshot(seq, b"state %d" % seq)
    assert store.snapshots() == [10, 20, 40]
    store.put_snapshot(50, b"state 50", keep=None)
    store.put_snapshot(50, b"state 50 again", keep=None)
    assert store.snapshots() == [10, 20, 40, 50]
    assert store.get_snapshot() == (50, b"state 50 again")
    assert store.get_snapshot(49) == (40, b"state 40")
    assert store.get_snapshot(10) == (10, b"state 10")
    assert store.get_snapshot(9) is None
    for bad in (-1, 100):
        with pytest.raises(ValueError, match="the log goes from event 0 to event 99"):
            store.put_snapshot(bad, b"")
    store.close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE snapshot SET content = x'00' WHERE seq = 50")
        other.execute("UPDATE snapshot SET content = 'text' WHERE seq = 40")
    with SqliteStore.open(path, write=False) as reader:
        assert reader.get_snapshot() == (20, b"state 20")


def test_a_source_is_kept_under_its_digest(path: Path, store: SqliteStore) -> None:
    digest = store.put_source(b"an earlier log")
    assert digest == sha256(b"an earlier log").hexdigest() == store.put_source(b"an earlier log")
    assert store.source(digest) == b"an earlier log"
    refused(StoreError, lambda: store.source("0" * 64), "holds no source")
    store._connection.execute("UPDATE source SET content = x'00'")
    refused(StoreError, lambda: store.source(digest), "does not match its hash")


def test_redaction_erases_the_bytes_from_every_file(path: Path, store: SqliteStore, tmp_path: Path) -> None:
    def secret(seq: int) -> bytes:
        return b"very private thing %d" % sha256(b"%d" % seq).digest()[0] + b"of %d." % seq

    # Some builds of SQLite overwrite whatever they delete; others leave it.
    store._connection.execute("PRAGMA secure_delete = OFF")
    whole = []
    for seq in range(400):
        # Larger bodies move to pages of their own.
        entry = make_entry(store.head, body(seq, extra=secret(seq).decode() * (300 if seq % 20 == 3 else 1)))
        store.append(bodies([entry]))
        whole.append(entry)

    def there() -> set[int]:
        # Another process looks: to close the file here would drop the locks that SQLite has on it.
        bytes_of = [
            subprocess.run(["/bin/cat", one], stdout=subprocess.PIPE, check=True).stdout for one in tmp_path.iterdir()
        ]
        return {seq for seq in range(400) if any(secret(seq) in content for content in bytes_of)}

    assert there() == set(range(400))
    gone = {3, 17, 18, 19, 43, 399}
    for _ in range(2):
        store.redact(gone)
        assert there() == set(range(400)) - gone
    redacted = [one._replace(body=None) if one.seq in gone else one for one in whole]
    assert list(verify(store.read(), head=whole[-1].head)) == redacted
    refused(StoreError, lambda: store.redact([20, 400]), "holds no event 400")
    assert store.entry(20) == whole[20]
    grow(store, 1)
    store.close()
    assert there() == set(range(400)) - gone


def test_a_reader_that_keeps_erased_bytes_alive_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "_PATIENCE", 0.05)
    with SqliteStore.create(path, "walk") as store, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        grow(store, 5)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM event").fetchone()
        refused(StoreError, lambda: store.redact([3]), "is being read, so erased bodies remain")
        reader.execute("COMMIT")
        store.redact([3])
        assert store.entry(3).body is None


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://staff:geheim@host/db", "begins with 'postgresql:'"),
        ("mysql://staff:geheim@host/db", "begins with 'mysql:'"),
        ("walk.db", "has no colon"),
        ("", "has no colon"),
        ("sqlite:", "the path of a file"),
        ("sqlite::memory:", "the path of a file"),
        ("sqlite:folder/", "the path of a file"),
        ("sqlite:a\0b", "the path of a file"),
        ("sqlite:///walk.db", "without //"),
    ],
)
def test_addresses_that_name_no_store_are_refused_and_show_no_password(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        sqlite_path(url, "/srv")
    assert "geheim" not in one_sentence(error.value)


def test_odd_names_of_files_are_taken_as_they_are(tmp_path: Path) -> None:
    for name in ("a b?c#d%41&mode=memory.db", "ü.db", "a:b.db"):
        path = sqlite_path(f"sqlite:{name}", tmp_path)
        with SqliteStore.create(path, "walk") as store:
            grow(store, 2)
        assert (tmp_path / name).exists()
        assert len(stored(path)) == 2
        assert (path.stat().st_mode & 0o777) == 0o600
