"""Edits of logs by someone who can compute hashes: bodies changed, left out, doubled, forged, and chained anew."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from edits import BROKEN, STRANGE, WHOLE, WORDS, number_near, places
from lacuna.agent.savefile import SaveFileError
from lacuna.trial.audits.redaction import redact
from lacuna.trial.audits.replays import audit
from lacuna.trial.engine.recovery import secret_path
from lacuna.trial.engine.replay import RedactedError, ReplayError
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.chained_log import START, Entry, LogError, check, encode, link
from lacuna.trial.log.decision_table import decision_table
from lacuna.trial.log.events import file_of
from lacuna.trial.log.export import export
from lacuna.trial.log.keys import Secret
from lacuna.trial.log.log_store import StoreError
from lacuna.trial.log.sqlite import SqliteStore
from lacuna.trial.log.sqlite_file import SEQS
from lacuna.trial.log.summary import summary, summary_text
from live_trials import FILE, log_of, play
from trial_cases import ticking

REFUSALS = (LogError, ReplayError, RedactedError, SaveFileError, StoreError)
"""What an edited log may raise; anything else is a raw error."""

OTHER_KEY = re.compile("with another draws key than this one|is not the secret of the trial")

Bodies = list[dict[str, Any] | None]

WAYS = {
    "plain": {},
    "each": {"max_gap": 'max_gap = 3\nupdate = "each"\nhorizon = 7', "range": "range = [0.0, 1.0]\ndefault = 0.25"},
    "planned": {"K": 'K = 3\nmethod = "mi-planned"\ngamma = 0.9'},
    "strict": {"max_gap": 'max_gap = 1\nunknown = "fallback"\non_invalid = "fallback"', "range": "max_open = 2"},
}
"""Trial files: which lines differ."""


@dataclass(frozen=True)
class Example:
    """A store, and the key that replays its log."""

    store: Path
    bodies: Bodies

    @property
    def key(self) -> Path:
        return self.store.with_suffix(".key")


def examples(folder: Path) -> list[Example]:
    """Stores of several kinds, one of them with an erased participant, one that learned from an earlier trial."""
    stores = [_made(folder, name, changes) for name, changes in WAYS.items()]
    erased = _made(folder, "erased", {})
    redact(erased, participant="person 1", reason="asked for it")
    with Trial.open(erased, clock=ticking()) as trial:
        trial.enrol("person 1")
        play(trial, people=3, points=2, first=9)
    warm = _made(folder, "warm", {}, log_of(stores[0], folder / "plain.jsonl"))
    found = []
    for store in (*stores, erased, warm):
        with SqliteStore.open(store, write=False) as opened:
            found.append(Example(store, [check(entry) for entry in opened.read()]))
        Secret.read(secret_path(store)).draws_key.write(found[-1].key)
    return found


def _made(folder: Path, name: str, changes: dict[str, str], source: Path | None = None) -> Path:
    text = FILE.replace('name = "walk"', f'name = "{name}"')
    for key, line in changes.items():
        text = "\n".join(line if old.startswith(f"{key} = ") else old for old in text.splitlines())
    path = folder / f"{name}.toml"
    path.write_text(text)
    with Trial.create(path, seed=len(name), clock=ticking(), source=source) as trial:
        play(trial, people=3, points=4)
        trial.given("person 0", 4, {"mood": 2}, "prompt", prob=[0.5, 0.5])
        trial.decide("person 0", 4, {"mood": 2})
        trial.decide("person 1", 1, {"mood": "none"})
        trial.update("first")
        play(trial, people=3, points=3, first=5, seed=1)
        trial.outcome("person 0", 4, 0.25, delivered=True)
        trial.outcome("person 0", 4, 0.75)
        if trial.state.people[trial.secret.pseudonym("person 2")].ended is None:
            trial.end("person 2", "withdrawn")
        trial.update()
    return folder / f"{name}.db"


# --- edits -----------------------------------------------------------------------------------------------------------


def edited(bodies: Bodies, rng: Random) -> list[Entry]:
    """A log after one, two or three edits, with numbers and a chain that fit."""
    found: Bodies = json.loads(json.dumps(bodies))
    renumbered = False
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        # An edit before may have taken away what this one would change.
        with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            edit = rng.choices([edit for edit, _ in EDITS], [share for _, share in EDITS])[0]
            edit(found, rng)
            renumbered |= edit in (move, forge)
    if renumbered:
        for seq, body in enumerate(found):
            if body is not None:
                body["seq"] = seq
    return chained(found)


def chained(bodies: Bodies) -> list[Entry]:
    """A log as someone writes it who checks nothing; what JSON cannot say is left as an erased body."""
    chain, found = START.chain, []
    for seq, body in enumerate(bodies):
        try:
            content = None if body is None else encode(body)
        except ValueError:
            content = None
        digest = sha256(content or b"").digest()
        chain = link(chain, digest)
        found.append(Entry(seq, content, digest, chain))
    return found


def _one(bodies: Bodies, rng: Random) -> dict[str, Any]:
    """An event, each kind as likely."""
    kinds = sorted({body["kind"] for body in bodies if body is not None})
    kind = rng.choice(kinds)
    return rng.choice([body for body in bodies if body is not None and body["kind"] == kind])


def change(bodies: Bodies, rng: Random) -> None:
    container, key = rng.choice(places(_one(bodies, rng)))
    old = container[key]
    if isinstance(old, int | float) and not isinstance(old, bool) and rng.random() < 0.5:
        container[key] = rng.choice((number_near(old, rng), str(old), bool(old), float(old), [old]))
    else:
        container[key] = rng.choice((*WHOLE, *BROKEN, *WORDS, *STRANGE))


def change_keys(bodies: Bodies, rng: Random) -> None:
    body = _one(bodies, rng)
    if rng.random() < 0.7:
        del body[rng.choice(list(body))]
    else:
        body[rng.choice(WORDS)] = rng.choice(STRANGE)


def borrow(bodies: Bodies, rng: Random) -> None:
    """A value that is fine in another event."""
    body, other = _one(bodies, rng), _one(bodies, rng)
    key = rng.choice(sorted(body.keys() & other.keys()))
    body[key] = other[key]


def erase(bodies: Bodies, rng: Random) -> None:
    bodies[rng.randrange(len(bodies))] = None


def move(bodies: Bodies, rng: Random) -> None:
    """Leave an event out, double it, or swap two."""
    i, j = rng.randrange(len(bodies)), rng.randrange(len(bodies))
    way = rng.randrange(3)
    if way == 0:
        del bodies[i]
    elif way == 1:
        bodies.insert(j, json.loads(json.dumps(bodies[i])))
    else:
        bodies[i], bodies[j] = bodies[j], bodies[i]


def forge(bodies: Bodies, rng: Random) -> None:
    """An event that nobody wrote, anywhere."""
    known, digest = _one(bodies, rng), rng.choice(("0" * 64, "f" * 64, "", None))
    seq = rng.choice((len(bodies), len(bodies), rng.randrange(len(bodies))))
    begin = bodies[0] or {}
    where = {"p": known.get("p", "0" * 32), "t": known.get("t", rng.choice(WHOLE))}
    forged: tuple[dict[str, Any], ...] = (
        {"kind": "redact", "of": [rng.choice(WHOLE), rng.choice(WHOLE)], "reason": "x", "sources": [], "state": digest},
        {"kind": "redact", "of": [rng.randrange(1, seq + 3)], "reason": "x", "sources": [], "state": None},
        {"kind": "upgrade", "provenance": begin.get("provenance"), "reason": "x", "state": digest},
        {"kind": "upgrade", "provenance": {"kernels": "other"}, "reason": None, "state": digest},
        {"kind": "snapshot", "of": rng.choice((seq - 1, *WHOLE)), "digest": digest},
        {"kind": "note", "text": "asked again", "request": "0" * 16} | where,
        {"kind": "outcome", "reward": rng.choice((1.0, *BROKEN, True, "1")), "delivered": None, "app_at": None,
         "used": rng.random() < 0.5, "revision": 1} | where,
        {"kind": "close", "why": "wait", "default": rng.choice((None, 0.25, 7.0))} | where,
        {"kind": "end", "p": where["p"], "how": "terminated", "last": rng.choice(WHOLE)},
        {"kind": "update", "key": None, "version": rng.choice((3, 4, 2**53)), "taught": 0, "credited": 0, "pools": {}},
        {"kind": "rebuild", "pools": {}},
        {"kind": rng.choice(WORDS)},
    )  # fmt: skip
    bodies.insert(seq, {"seq": seq, "at": rng.choice((known["at"], "2026", "9999-12-31T23:59:59.999Z"))} |
                  rng.choice(forged))  # fmt: skip


EDITS = ((change, 10), (change_keys, 3), (borrow, 3), (erase, 1), (move, 3), (forge, 6))


# --- what must hold --------------------------------------------------------------------------------------------------


def try_log(example: Example, entries: list[Entry], folder: Path) -> str:
    """Take a log through status, export, replay and audit, as a file and as a store; gives the first refusal.

    An `AssertionError` says what is impossible; anything but a refusal is passed on.
    """
    log, store = folder / "log.jsonl", folder / "it.db"
    shutil.rmtree(folder / "out", ignore_errors=True)
    log.write_bytes(b"".join(map(_line, entries)))
    _write_store(example, entries, store)
    refused = dict[str, str]()
    attempts: dict[str, Callable[[], object]] = {
        "status": lambda: _status(entries), "export": lambda: export(entries, folder / "out", wcls=True, obp=True),
        "audit of the log": lambda: audit(log, example.key), "audit of the store": lambda: audit(store, example.key),
        "opening": lambda: Trial.open(store).close(),
    }  # fmt: skip
    for name, attempt in attempts.items():
        try:
            attempt()
        except REFUSALS as error:
            refused[name] = _sentence(error)
        except ValueError as error:
            if OTHER_KEY.search(str(error)) is None:
                raise
            refused[name] = _sentence(error)
    if refused.keys() & {"status", "export"}:
        assert refused.keys() >= {"status", "export"}, f"only one of status and export is refused: {refused}"
        assert refused.keys() >= {"audit of the log", "audit of the store"}, f"an audit accepts it: {refused}"
    return next(iter(refused.values()), "")


def _sentence(error: Exception) -> str:
    """The message; it may show what was edited, and the versions in a log name Numba."""
    assert str(error)
    assert "\n" not in str(error)
    return str(error)


def _line(entry: Entry) -> bytes:
    hashes = f',"body_hash":"{entry.body_hash.hex()}","chain":"{entry.chain.hex()}","seq":{entry.seq}}}\n'
    return b'{"body":' + (entry.body or b"null") + hashes.encode()


def _status(entries: list[Entry]) -> None:
    """A status, and a table of which every value is possible."""
    file = file_of(entries)
    found = summary(entries, file)
    json.dumps(found, allow_nan=False)
    assert summary_text(found)
    low, high = file.reward.range or (-1e100, 1e100)
    for row in decision_table(entries, file).iter_rows(named=True):
        prob = [row[f"prob_{action}"] for action in file.actions]
        assert None in prob or all(0 <= p <= 1 for p in prob), f"probabilities are {prob}"
        assert row["reward"] is None or low <= row["reward"] <= high, f"a reward is {row['reward']}"
        assert row["t"] >= 0


def _write_store(example: Example, entries: list[Entry], path: Path) -> None:
    """The store of the example with other events."""
    for end in ("-wal", "-shm", ".lock", ".secret"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    shutil.copy(example.store, path)
    shutil.copy(secret_path(example.store), secret_path(path))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("DELETE FROM event")
        connection.executemany(
            "INSERT INTO event (id, body, body_hash, chain) VALUES (?, ?, ?, ?)",
            [(SEQS + seq, *hashed) for seq, *hashed in entries],
        )
    connection.close()
