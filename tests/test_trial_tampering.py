"""A log that was changed is found out: by its chain, or, if someone chained it anew, by computing it again."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lacuna.trial.engine.replay import ReplayError, replay
from lacuna.trial.log.chained_log import START, Entry, LogError, check, checked, make_entry, read_log, write_log
from lacuna.trial.log.keys import DrawsKey
from lacuna.trial.log.log_store import Store
from sentences import one_sentence
from test_trial_order import CASES, lived
from trial_cases import bodies, state_bytes

Edit = Callable[[dict[str, Any]], object]


@cache
def log() -> tuple[tuple[Entry, ...], DrawsKey]:
    """The log of a trial with late, lost and corrected rewards, gaps, closings and ends."""
    trial = lived(CASES[0], np.random.default_rng(0), 12)
    return tuple(trial.store.read()), trial.secret.draws_key


def flipped(content: bytes, i: int, bits: int) -> bytes:
    return content[:i] + bytes([content[i] ^ bits]) + content[i + 1 :]


def test_every_byte_of_two_hundred_events_that_is_flipped_is_found_by_its_number() -> None:
    entries, _ = log()
    assert len(entries) > 201
    head, tried = START, 0
    for entry in entries[:201]:
        for field in ("body", "body_hash", "chain"):
            content: bytes = getattr(entry, field)
            for i in range(len(content)):
                change: Any = {field: flipped(content, i, 1 << (i % 8))}
                edited = entry._replace(**change)
                with pytest.raises(LogError, match=rf"^event {entry.seq}\b") as told:
                    list(checked([edited], head))
                assert told.value.seq == entry.seq
                tried += 1
        head = entry.head
    assert tried > 60_000


def test_every_byte_of_an_exported_log_that_is_flipped_is_found_by_its_line(tmp_path: Path) -> None:
    entries, _ = log()
    path = tmp_path / "log.jsonl"
    write_log(path, entries[:30])
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1  # the trial file is in the first line
    rng = np.random.default_rng(1)
    for i in (*range(first, first + 1500), *rng.integers(first, len(whole), 1500)):
        path.write_bytes(flipped(whole, int(i), 1 << int(rng.integers(8))))
        line = whole[:i].count(b"\n")
        with pytest.raises(LogError) as told:
            list(read_log(path))
        assert told.value.seq == line
        assert f"line {line + 1}" in one_sentence(told.value)


def chained(contents: list[dict[str, Any]]) -> list[Entry]:
    """What someone writes who can compute hashes."""
    head, found = START, []
    for body in contents:
        found.append(make_entry(head, body))
        head = found[-1].head
    return found


def first(kind: str, **wanted: Any) -> int:
    """Number of the first event of a kind, late enough that something was learned."""
    for seq, body in enumerate(map(check, log()[0])):
        if seq > 80 and body and body["kind"] == kind and all(body.get(key) == value for key, value in wanted.items()):
            return seq
    raise AssertionError(f"there is no {kind} with {wanted}")


def found_out(seq: int, edit: Edit) -> tuple[int, str]:
    """The number of the event at which a replay stops, and its sentence."""
    entries, key = log()
    contents = [check(entry) or {} for entry in entries]
    edit(contents[seq])
    with pytest.raises((ReplayError, LogError)) as told:
        replay(chained(contents), key)
    assert isinstance(told.value, ReplayError | LogError)
    assert told.value.seq is not None
    return told.value.seq, one_sentence(told.value)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("decision", "prob", [0.5, 0.25, 0.25]), ("decision", "u", 0.123), ("decision", "action", None),
        ("decision", "coded", [0, 0, 0]), ("decision", "basis", "0" * 16), ("decision", "version", 99),
        ("decision", "policy", "given"), ("decision", "gap", 7), ("decision", "pool", "other"),
        ("decision", "randomised", 1), ("decision", "reason", "past"), ("given", "basis", "0" * 16),
        ("outcome", "used", None), ("outcome", "revision", 77), ("close", "default", 0.75), ("end", "last", 0),
        ("update", "version", 99), ("update", "taught", 0), ("update", "credited", 0), ("update", "pools", {}),
        ("enrol", "pool", "other"),
    ],
)  # fmt: skip
def test_what_was_computed_cannot_be_changed_even_with_new_hashes(kind: str, field: str, value: Any) -> None:
    wanted = {"randomised": True, "policy": "learned"} if kind == "decision" else {}
    seq = first(kind, **wanted) if kind != "enrol" else 1

    def edit(body: dict[str, Any]) -> None:
        if field == "action":
            body[field] = (body[field] + 1) % 3
        else:
            body[field] = not body[field] if field == "used" else value

    at, sentence = found_out(seq, edit)
    assert at == seq
    assert re.match(rf"event {seq}\b.*: {field}", sentence), sentence


def test_a_context_that_was_changed_is_found_at_its_event() -> None:
    seq = first("decision", randomised=True, policy="learned", coded=[0, 0, 1])
    at, sentence = found_out(seq, lambda body: body["context"].update(mood=3))
    assert at == seq
    assert "coded[2] is 1 in the log and 3 here" in sentence


def test_a_reward_that_was_changed_is_found_when_it_is_learned_from() -> None:
    contents = [check(entry) or {} for entry in log()[0]]
    updates = [seq for seq, body in enumerate(contents) if body["kind"] == "update"]
    credited = 0
    for seq, body in enumerate(contents):
        if body["kind"] != "outcome" or not body["used"] or not 20 < seq < updates[-2]:
            continue
        later = [
            o for o in contents[seq + 1 :] if o["kind"] == "outcome" and (o["p"], o["t"]) == (body["p"], body["t"])
        ]
        closed = [o for o in contents[seq + 1 :] if o["kind"] == "close" and (o["p"], o["t"]) == (body["p"], body["t"])]
        if later or closed:
            continue  # replaced, or never learned from
        at, sentence = found_out(seq, lambda body: body.update(reward=body["reward"] + 0.125))
        assert "pools" in sentence or "basis" in sentence or "prob" in sentence
        assert seq < at <= updates[-1]
        credited += 1
        if credited == 12:
            return
    raise AssertionError("there were too few rewards")


@pytest.mark.parametrize("kind", ["decision", "outcome", "close", "update", "given"])
def test_an_event_that_was_taken_out_is_found(kind: str) -> None:
    entries, key = log()
    seq = first(kind)
    contents = [check(entry) or {} for entry in entries]
    if kind == "outcome":
        seq = next(s for s, body in enumerate(contents) if s > 80 and body["kind"] == "outcome" and body["used"])
    del contents[seq]
    for i, body in enumerate(contents):
        body["seq"] = i
    with pytest.raises((ReplayError, LogError)) as told:
        replay(chained(contents), key)
    assert isinstance(told.value, ReplayError | LogError)
    assert (told.value.seq or 0) >= seq


def test_fields_that_no_event_has_and_those_that_lack_are_named() -> None:
    seq = first("decision", randomised=True, policy="learned")
    assert "'more'" in found_out(seq, lambda body: body.update(more=1))[1]
    assert "'u'" in found_out(seq, lambda body: body.pop("u"))[1]
    assert "'t'" in found_out(seq, lambda body: body.pop("t"))[1]
    assert "kind" in found_out(seq, lambda body: body.update(kind="decisions"))[1]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_replay_gives_the_state_of_the_trial(case: Any) -> None:
    trial = lived(case, np.random.default_rng(3), 4)
    store: Store = trial.store
    state, head = replay(store.read(), trial.secret.draws_key)
    assert state_bytes(state) == state_bytes(trial.state)
    assert head == trial.head
    assert len(bodies(store)) == head.seq + 1
