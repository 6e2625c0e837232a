"""A log that someone rewrote with a chain that fits: no reader takes an event that this trial cannot have written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lacuna.trial.audits.redaction import redact
from lacuna.trial.audits.replays import audit
from lacuna.trial.engine.replay import ReplayError, replay
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.chained_log import LogError
from lacuna.trial.log.events import Form, Reader, file_of
from lacuna.trial.log.export import export
from lacuna.trial.log.keys import Secret
from lacuna.trial.log.log_store import StoreError
from lacuna.trial.log.summary import summary
from live_trials import write_file
from log_edits import Bodies, Example, chained, edited, examples, try_log
from sentences import one_sentence

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    return examples(tmp_path_factory.mktemp("logs"))


def changed(example: Example, kind: str, edit: Edit) -> tuple[int, Bodies]:
    """The log with another last event of a kind, and the number of that event."""
    bodies = [None if body is None else dict(body) for body in example.bodies]
    seq = max(body["seq"] for body in bodies if body is not None and body["kind"] == kind)
    body = bodies[seq]
    assert body is not None
    edit(body)
    return seq, bodies


def refusals(example: Example, bodies: Bodies, folder: Path) -> list[str]:
    """What status, export and replay say."""
    entries = chained(bodies)
    key = Secret.from_seed(len(example.store.stem)).draws_key
    found = []
    for attempt in (
        lambda: summary(entries, file_of(entries)),
        lambda: export(entries, folder / "out"),
        lambda: replay(entries, key),
    ):
        with pytest.raises((LogError, ReplayError)) as told:
            attempt()
        found.append(one_sentence(told.value))
    return found


@pytest.mark.parametrize(
    ("kind", "field", "value", "wanted"),
    [
        ("decision", "gap", 2**63, "it must be a whole number between 0 and 3"),
        ("decision", "gap", True, "it must be a whole number between 0 and 3"),
        ("decision", "t", 2**63, "it must be a whole number between 0 and"),
        ("decision", "t", 5.0, "it must be a whole number between 0 and"),
        ("decision", "action", 2, "it must be a whole number between 0 and 1"),
        ("decision", "prob", [0.5], "it must be a list of 2 probabilities"),
        ("decision", "prob", [2.0, -1.0], "it must be a list of 2 probabilities"),
        ("decision", "context", {"mood": 3}, "it must be a table of 'mood', 'steps'"),
        ("decision", "context", {"mood": 10**400, "steps": None}, "it must be a table of 'mood', 'steps'"),
        ("decision", "at", "2026", "it must be a time like"),
        ("decision", "at", "2026-02-30T00:00:00.000Z", "it must be a time like"),
        ("decision", "p", "maria", "it must be 32 hexadecimal digits"),
        ("decision", "kind", "decide", "which this version does not know"),
        ("outcome", "reward", "1", "it must be a number between 0 and 1"),
        ("outcome", "reward", True, "it must be a number between 0 and 1"),
        ("outcome", "reward", 1, "it must be a number between 0 and 1"),
        ("outcome", "reward", 7.0, "it must be a number between 0 and 1"),
        ("outcome", "delivered", 1, "it must be true or false"),
        ("close", "why", "because", "it must be one of wait, max_open, gap"),
        ("enrol", "ghost", 0, "it must be true or false"),
        ("update", "key", "\n", "it must be a text of 1 to 64 printable characters"),
        ("note", "request", None, "it must be 16 hexadecimal digits"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_or_out_of_range_is_refused_by_status_export_and_replay(
    kind: str, field: str, value: Any, wanted: str, logs: list[Example], tmp_path: Path
) -> None:
    example = next(one for one in logs if one.store.stem == ("strict" if kind == "close" else "plain"))
    seq, bodies = changed(example, kind, lambda body: body.update({field: value}))
    for said in refusals(example, bodies, tmp_path):
        assert said.startswith(f"event {seq}")
        assert field in said
        assert wanted in said
    assert not (tmp_path / "out").exists()


def appended(example: Example, **event: Any) -> Bodies:
    seq = len(example.bodies)
    return [*example.bodies, {"seq": seq, "at": "2026-11-16T20:00:00.000Z", **event}]


FORGED: dict[str, dict[str, Any]] = {
    "event 99, which is not before it": {
        "kind": "redact", "of": [5, 99], "reason": "x", "sources": [], "state": "0" * 64},
    "of is [0]; it must be": {"kind": "redact", "of": [0], "reason": "x", "sources": [], "state": "0" * 64},
    "state is None; it must be": {"kind": "redact", "of": [5], "reason": "x", "sources": [], "state": None},
    "of is [7, 5]": {"kind": "redact", "of": [7, 5], "reason": "x", "sources": [], "state": "0" * 64},
    "a table of versions": {"kind": "upgrade", "provenance": {}, "reason": None, "state": None},
    "it must be the event before it": {"kind": "snapshot", "of": 3, "digest": "0" * 64},
    "at event 1 only": {"kind": "source", "digest": "0" * 64, "name": "a", "mapping": None},
    "there is no decision at t 77": {
        "kind": "note", "p": "0" * 32, "t": 77, "text": "asked again", "request": "0" * 16},
}  # fmt: skip


@pytest.mark.parametrize("said", FORGED)
def test_an_event_without_effect_that_was_appended_is_refused_too(
    said: str, logs: list[Example], tmp_path: Path
) -> None:
    refused = try_log(logs[0], chained(appended(logs[0], **FORGED[said])), tmp_path)
    assert refused.startswith(f"event {len(logs[0].bodies)}")
    assert said in refused


def test_an_upgrade_must_lead_to_other_kernels_than_those_before_it(logs: list[Example], tmp_path: Path) -> None:
    begin = logs[0].bodies[0]
    assert begin is not None
    event = {"kind": "upgrade", "provenance": begin["provenance"], "reason": None, "state": None}
    assert "so nothing was upgraded" in try_log(logs[0], chained(appended(logs[0], **event)), tmp_path)
    other = event | {"provenance": begin["provenance"] | {"kernels": "other"}, "state": "0" * 64}
    assert "gives no reason" in try_log(logs[0], chained(appended(logs[0], **other)), tmp_path)


def test_only_what_is_about_a_participant_can_have_been_erased(logs: list[Example], tmp_path: Path) -> None:
    seq = next(body["seq"] for body in logs[0].bodies if body is not None and body["kind"] == "update")
    event = {"kind": "redact", "of": [seq], "reason": "x", "sources": [], "state": "0" * 64}
    refused = try_log(logs[0], chained(appended(logs[0], **event)), tmp_path)
    assert f"names event {seq}, which holds nothing of a participant" in refused


def test_a_body_that_no_redaction_names_is_found_by_the_audit(logs: list[Example], tmp_path: Path) -> None:
    example = next(one for one in logs if one.store.stem == "erased")
    bodies = list(example.bodies)
    seq = next(body["seq"] for body in bodies if body is not None and body["kind"] == "decision")
    assert audit(example.store, example.key).why is not None
    bodies[seq] = None
    try_log(example, chained(bodies), tmp_path)
    with pytest.raises(LogError, match=f"event {seq}: its body was erased, and no event of the kind redact names it"):
        audit(tmp_path / "it.db", example.key)


def test_a_forged_redaction_does_not_make_the_next_one_erase_more(logs: list[Example], tmp_path: Path) -> None:
    event = {"kind": "redact", "of": [1, 98], "reason": "x", "sources": [], "state": "0" * 64}
    try_log(logs[0], chained(appended(logs[0], **event)), tmp_path)
    before = (tmp_path / "it.db").read_bytes()
    with pytest.raises(LogError, match="event 98, which is not before it"):
        redact(tmp_path / "it.db", participant="person 1", reason="asked for it")
    assert (tmp_path / "it.db").read_bytes() == before


def test_a_decision_key_that_leads_to_another_event_is_refused(tmp_path: Path) -> None:
    with Trial.create(write_file(tmp_path), seed=1) as trial:
        trial.enrol("maria")
        trial.decide("maria", 0, {"mood": 2})
        trial.outcome("maria", 0, 1.0)
    connection = sqlite3.connect(tmp_path / "walk.db")
    connection.execute("UPDATE decision_key SET seq = 3")
    connection.commit()
    connection.close()
    with Trial.open(tmp_path / "walk.db") as trial, pytest.raises(LogError, match=r"event 3 .* is not the decision of"):
        trial.decide("maria", 0, {"mood": 2})


def test_a_clock_of_another_form_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with Trial.create(write_file(tmp_path), seed=1) as trial:
        head = trial.head
        trial.writer.clock = lambda: "2026-11-16 18:00"
        with pytest.raises(ValueError, match="the time is '2026-11-16 18:00'; it must be like"):
            trial.enrol("maria")
        assert trial.head == head


def test_true_logs_of_every_kind_pass(logs: list[Example]) -> None:
    kinds = set[str]()
    for example in logs:
        entries = chained(example.bodies)
        reader = Reader(file_of(entries))
        kinds |= {body["kind"] for _, body in reader.read(entries) if body is not None}
        assert not reader.erased
    assert kinds == set(Form(file_of(chained(logs[0].bodies))).kinds) - {"upgrade"}


@pytest.mark.parametrize("seed", range(6))
def test_edited_logs_are_refused_in_a_sentence_or_sound(seed: int, logs: list[Example], tmp_path: Path) -> None:
    """`make fuzz` tries thousands."""
    rng = Random(seed)
    ends = [bool(try_log(one, edited(one.bodies, rng), tmp_path)) for one in (logs * 2)]
    assert len(ends) == 12


def test_a_store_whose_log_names_a_state_that_is_not_there_is_refused(logs: list[Example], tmp_path: Path) -> None:
    event = {"kind": "redact", "of": [1, 2], "reason": "x", "sources": [], "state": "0" * 64}
    try_log(logs[0], chained(appended(logs[0], **event)), tmp_path)
    for attempt in (lambda: audit(tmp_path / "it.db", logs[0].key), lambda: Trial.open(tmp_path / "it.db")):
        with pytest.raises(StoreError, match="holds no source"):
            attempt()
