"""A trial that learns from the log of an earlier one before it begins."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lacuna.trial.audits.replays import audit
from lacuna.trial.engine.recovery import secret_path
from lacuna.trial.engine.snapshot import to_bytes
from lacuna.trial.engine.sources import read_source
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.chained_log import check, make_entry, read_log, write_log
from lacuna.trial.log.sqlite import SqliteStore
from live_trials import bodies, log_of, made, play, write_file
from sentences import one_sentence


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The log of an earlier trial."""
    return log_of(made(tmp_path / "old"), tmp_path / "old.jsonl")


def of_kind(found: list[dict[str, Any] | None], *kinds: str) -> list[dict[str, Any]]:
    return [body for body in found if body is not None and body["kind"] in kinds]


def edited(log: Path, path: Path, change: Any) -> Path:
    """A log with other bodies and a chain that fits them; `change` gives the new body, or None to leave it out."""
    entries: list[Any] = []
    for entry in read_log(log):
        body = change(check(entry))
        if body is not None:
            before = entries[-1].head if entries else None
            head = entries[-1].head if before else type(entry.head)(-1, bytes(32))
            entries.append(make_entry(head, body | {"seq": head.seq + 1}))
    write_log(path, entries)
    return path


def test_decisions_become_given_events_of_ghosts(old: Path, tmp_path: Path) -> None:
    with Trial.create(write_file(tmp_path / "new"), source=old):
        pass
    store = tmp_path / "new" / "walk.db"
    before = [body for entry in read_log(old) if (body := check(entry))]
    after = bodies(store)
    asked, told = of_kind([*before], "decision", "given"), of_kind(after, "given")
    assert len(asked) > 30
    for key in ("p", "t", "context", "action", "prob", "coded", "gap"):
        assert [body[key] for body in told] == [body[key] for body in asked], key
    assert {body["p"] for body in of_kind(after, "enrol") if body["ghost"]} == {body["p"] for body in asked}
    last = {(body["p"], body["t"]): body["reward"] for body in of_kind([*before], "outcome")}
    assert {(body["p"], body["t"]): body["reward"] for body in of_kind(after, "outcome")} == last
    assert all(body["used"] for body in of_kind(after, "outcome"))
    (source,), (update,) = of_kind(after, "source"), of_kind(after, "update")
    assert source["digest"] == hashlib.sha256(old.read_bytes()).hexdigest()
    assert (source["name"], source["mapping"], source["seq"]) == ("old.jsonl", None, 1)
    assert update["taught"] > 20
    assert update["credited"] > 20
    with SqliteStore.open(store, write=False) as opened:
        assert opened.source(source["digest"]) == old.read_bytes()
        assert all(opened.find(body["p"], body["t"]) == body["seq"] for body in told)


def test_what_was_learned_is_there_and_replays_and_recovers(old: Path, tmp_path: Path) -> None:
    with Trial.create(write_file(tmp_path / "new"), source=old, seed=7) as trial:
        assert trial.state.enrolled == 0
        assert trial.state.updates == 1
        assert any(pool.credited for pool in trial.state.pools.values())
        play(trial, seed=3)
        state = to_bytes(trial.state, trial.head.seq)
    store = tmp_path / "new" / "walk.db"
    found = audit(store, from_snapshots=True)
    assert (found.first, found.why) == (0, None)
    assert found.snapshots > 0
    with Trial.open(store) as trial:
        assert to_bytes(trial.state, trial.head.seq) == state


def test_it_learns_what_a_trial_learns_to_which_the_same_was_given(old: Path, tmp_path: Path) -> None:
    with Trial.create(write_file(tmp_path / "new"), source=old, seed=7) as trial:
        (pool,) = trial.state.pools.values()
        learned = pool.digest
        ghosts = list(trial.state.people)
        people = {p: trial.state.people[p].last_t for p in ghosts}
    # The same by the front door, under pseudonyms that are the ghosts': draws depend on them.
    told = bodies(tmp_path / "new" / "walk.db")
    with Trial.create(write_file(tmp_path / "other"), seed=7) as trial:
        trial.secret.__dict__["identifiers_key"] = type("Same", (), {"pseudonym": staticmethod(lambda name: name)})()
        for body in of_kind(told, "enrol", "given", "outcome", "end"):
            if body["kind"] == "enrol":
                trial.enrol(body["p"])
            elif body["kind"] == "given":
                action = trial.file.actions[body["action"]]
                trial.given(body["p"], body["t"], body["context"], action, prob=body["prob"])
            elif body["kind"] == "outcome":
                trial.outcome(body["p"], body["t"], body["reward"])
            else:
                trial.end(body["p"], body["how"])
        trial.update()
        assert {p: trial.state.people[p].last_t for p in ghosts} == people
        (pool,) = trial.state.pools.values()
        assert pool.digest == learned


def test_the_last_reward_counts_and_fall_backs_do_not(tmp_path: Path) -> None:
    with Trial.create(write_file(tmp_path / "old"), seed=1) as trial:
        trial.decide("nobody", 0, {})
        trial.enrol("maria")
        for t in range(3):
            trial.decide("maria", t, {"mood": 1})
        trial.outcome("maria", 0, 0.5)
        trial.outcome("maria", 0, 1.0)
        trial.outcome("maria", 1, None, delivered=False)
        trial.end("maria", "terminated")
    log = log_of(tmp_path / "old" / "walk.db", tmp_path / "old.jsonl")
    source = read_source(log, trial.file)
    assert (source.people, source.decisions, source.rewards) == (1, 3, 1)
    assert Counter(event["kind"] for event in source.events) == {
        "enrol": 1, "given": 3, "outcome": 2, "close": 2, "end": 1,
    }  # fmt: skip
    assert [event["reward"] for event in source.events if event["kind"] == "outcome"] == [1.0, None]
    assert source.events[-1]["how"] == "terminated"
    assert source.about == "learned from 3 decisions of 1 earlier participant, 1 with a reward"


def test_where_the_earlier_trial_ended_by_its_horizon_the_ghost_is_terminated(tmp_path: Path) -> None:
    store = made(tmp_path / "old", max_gap="horizon = 4")
    source = read_source(
        log_of(store, tmp_path / "old.jsonl"), Trial.create(write_file(tmp_path), store="memory:").file
    )
    ends = {event["p"]: event["how"] for event in source.events if event["kind"] == "end"}
    last = {event["p"]: event["t"] for event in source.events if event["kind"] == "given"}
    assert set(ends) == set(last)
    assert all((ends[p] == "terminated") == (t >= 3) for p, t in last.items())


def test_decisions_beyond_the_new_horizon_are_left_out_and_counted(old: Path, tmp_path: Path) -> None:
    file = write_file(tmp_path / "new", max_gap="horizon = 4")
    with Trial.create(file, source=old) as trial:
        assert max(person.last_t for person in trial.state.people.values()) < 12
    source = read_source(old, trial.file)
    assert source.late > 0
    assert f"{source.late} decisions are beyond its horizon" in source.about
    audit(tmp_path / "new" / "walk.db")


MAPPING = {"components": {"mood": "feeling"}, "actions": {"prompt": "message"}}


def renamed(folder: Path) -> Path:
    """A trial file with other names, one category less and one component more."""
    text = write_file(folder).read_text()
    text = text.replace("mood = { values = [1, 2, 3] }", "feeling = { values = [2, 3] }\nhome = { values = [true] }")
    text = text.replace("steps = { edges", "walked = { edges").replace('"prompt"]', '"message", "call"]')
    (folder / "walk.toml").write_text(text)
    return folder / "walk.toml"


@pytest.mark.parametrize("form", ["json", "toml"])
def test_a_mapping_says_what_things_are_called_now(old: Path, tmp_path: Path, form: str) -> None:
    mapping = tmp_path / f"mapping.{form}"
    text = json.dumps(MAPPING) if form == "json" else '[components]\nmood = "feeling"\n[actions]\nprompt = "message"\n'
    mapping.write_text(text)
    new = Trial.create(renamed(tmp_path / "new"), store="memory:").file
    source = read_source(old, new, mapping)
    before = of_kind([check(entry) for entry in read_log(old)], "decision")
    given = [event for event in source.events if event["kind"] == "given"]
    for was, now in zip(before, given, strict=True):
        assert now["context"] == {"feeling": was["context"]["mood"], "home": None, "walked": None}
        assert now["invalid"] == (["feeling"] if was["context"]["mood"] == 1 else [])
        assert now["prob"] == [*was["prob"], 0.0]
        assert now["action"] == was["action"]
    ones = sum(was["context"]["mood"] == 1 for was in before)
    assert source.unread == ones > 0
    assert source.dropped == ["steps"]
    assert source.about.endswith(
        f"; the new trial does not have 'steps'; {ones} values are not valid in the new trial, so missing"
    )
    with Trial.create(tmp_path / "new" / "walk.toml", source=source):
        pass
    audit(tmp_path / "new" / "walk.db")
    assert of_kind(bodies(tmp_path / "new" / "walk.db"), "source")[0]["mapping"] == MAPPING


def test_probabilities_of_actions_that_became_one_add_up(old: Path, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"actions": {"prompt": "nothing"}}')
    source = read_source(old, Trial.create(write_file(tmp_path), store="memory:").file, mapping)
    given = [event for event in source.events if event["kind"] == "given"]
    assert {tuple(event["prob"]) for event in given} == {(1.0, 0.0)}
    assert {event["action"] for event in given} == {0}


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ('{"components": {"moood": "feeling"}}', "names the component 'moood' (did you mean 'mood'?); the earlier"),
        ('{"components": {"mood": "felling"}}', "names the component 'felling' (did you mean 'feeling'?); the new"),
        ('{"components": {"mood": "feeling", "steps": "feeling"}, "actions": {"prompt": "call"}}', "would both be"),
        ('{"components": {"mood": "feeling"}}', "the action 'prompt' of the earlier trial is none of the new one"),
        ('{"values": {}}', "holds 'values'; a mapping has the tables components and actions"),
        ('{"actions": ["prompt"]}', "it must be a table of old and new names"),
        ('["actions"]', "a mapping has the tables"),
        ("{", "cannot be read as a mapping"),
    ],
)
def test_a_wrong_mapping_is_refused_in_a_sentence(old: Path, tmp_path: Path, mapping: str, said: str) -> None:
    path = tmp_path / "mapping.json"
    path.write_text(mapping)
    new = Trial.create(renamed(tmp_path / "new"), store="memory:").file
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        read_source(old, new, path)
    one_sentence(error.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mood": "mood = { values = [1, 2, 3, 4] }"}, "the component 'mood' is {\"values\": [1, 2, 3]} in the trial"),
        ({"steps": "steps = { edges = [600], range = [0, 10000] }"}, "the component 'steps'"),
        ({"mood": ""}, "the component 'mood' is"),
        ({"actions": 'actions = ["nothing", "prompt", "call"]'}, "the list of actions is"),
        ({"max_gap": 'pool = "each"'}, "would teach nobody"),
        ({"max_gap": 'pool = "group"'}, "had no group"),
    ],
)
def test_a_trial_of_another_kind_is_refused_and_nothing_is_made(
    old: Path, tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    file = write_file(tmp_path / "new", **changes)
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        Trial.create(file, source=old)
    one_sentence(error.value)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["walk.toml"]


def test_a_trial_with_the_same_secret_is_refused(old: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has the same secret as this one"):
        Trial.create(write_file(tmp_path / "new"), source=old, seed=1)
    assert not (tmp_path / "new" / "walk.db").exists()


def test_an_edited_or_damaged_log_is_refused_with_its_line(old: Path, tmp_path: Path) -> None:
    file = write_file(tmp_path / "new")
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(old.read_bytes().replace(b'"reward":1.0', b'"reward":0.0', 1))
    with pytest.raises(ValueError, match=r"bad.jsonl, line \d+: event \d+ .* does not match its hash"):
        Trial.create(file, source=bad)
    with pytest.raises(ValueError, match=r"missing\.jsonl cannot be read: No such file"):
        Trial.create(file, source=tmp_path / "missing.jsonl")
    bad.write_text("hello\n")
    with pytest.raises(ValueError, match="this is not a line of a log of lacuna"):
        Trial.create(file, source=bad)
    wrong: dict[str, Any] = {"action": 7, "t": -1, "p": "maria", "context": 3, "prob": [0.5]}
    for key, value in wrong.items():
        edited(old, bad, lambda body, k=key, v=value: body | {k: v} if body["kind"] == "decision" else body)
        with pytest.raises(ValueError, match=r"bad.jsonl, line \d+: event \d+.* cannot be learned from: ") as error:
            Trial.create(file, source=bad)
        one_sentence(error.value)
    edited(old, bad, lambda body: None if body["kind"] == "begin" else body)
    with pytest.raises(ValueError, match="line 1: it is not the beginning of a trial"):
        Trial.create(file, source=bad)
    assert not (tmp_path / "new" / "walk.db").exists()


def test_erased_events_of_the_earlier_log_are_left_out_and_counted(old: Path, tmp_path: Path) -> None:
    entries = list(read_log(old))
    chosen = [entry.seq for entry in entries if b'"kind":"decision"' in (entry.body or b"")][3:6]
    write_log(old, [entry._replace(body=None) if entry.seq in chosen else entry for entry in entries])
    source = read_source(old, Trial.create(write_file(tmp_path), store="memory:").file)
    assert source.erased == 3
    assert "3 events are erased from the log, so left out" in source.about
    with Trial.create(write_file(tmp_path / "new"), source=source):
        pass
    audit(tmp_path / "new" / "walk.db")


def test_a_beginning_that_cannot_be_stored_leaves_no_secret(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("the disk is full")

    file = write_file(tmp_path / "new")
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "append", full)
        with pytest.raises(OSError, match="full"):
            Trial.create(file, source=old)
    assert not secret_path(tmp_path / "new" / "walk.db").exists()
    with Trial.create(file, source=old) as trial:
        assert trial.state.updates == 1
