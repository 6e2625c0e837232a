"""`lacuna trial` as people and scripts use it: real files, JSON answers, sentences, exit codes."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import Answer, Call, caller, is_one_sentence
from lacuna.trial.engine.trial import Trial
from live_trials import bodies, kinds, log_of, made, play, write_file
from test_trial_upgrade import version

COMMANDS = (
    "init", "enrol", "decide", "fallbacks", "outcome", "given", "end", "update", "status", "replay", "upgrade",
    "export", "redact", "key",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "150")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    lacuna = caller(capsys, monkeypatch)
    return lambda *words: lacuna("trial", *words)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_file(tmp_path)


@pytest.fixture
def begun(call: Call, file: Path) -> Path:
    """The trial file of a trial with one participant."""
    assert call("init", file, "--seed", 1).code == 0
    assert call("enrol", file, "maria").code == 0
    return file


def answer(found: Answer) -> dict[str, Any]:
    """The JSON object that a command printed."""
    assert (found.code, found.err) == (0, "")
    assert found.out.count("\n") == 1
    value: dict[str, Any] = json.loads(found.out)
    return value


def refused(found: Answer, said: str) -> None:
    assert found.code == 2, found
    assert is_one_sentence(found.err), found.err
    assert said in found.err
    assert found.out == ""


def test_every_command_has_help_with_an_example(call: Call) -> None:
    shown = call("--help").out
    assert "history of the shell" in " ".join(shown.replace("│", " ").split())
    for command in COMMANDS:
        assert f" {command} " in shown
        found = call(command, "--help")
        assert found.code == 0
        assert f"Example: lacuna trial {command} " in found.out


def test_a_trial_from_the_command_line_is_the_one_from_python(call: Call, begun: Path, tmp_path: Path) -> None:
    context = {"mood": 2, "steps": None}
    first = answer(call("decide", begun, "maria", 0, "--context", json.dumps(context)))
    assert answer(call("outcome", begun, "maria", 0, 0.5, "--delivered", "yes")) == {
        "used": True, "revision": 1, "repeated": False,
    }  # fmt: skip
    second = answer(call("decide", begun, "maria", 1, "--context", "{}", "--not-available"))
    assert (second["action"], second["prob"], second["randomised"]) == (
        "nothing", {"nothing": 1.0, "prompt": 0.0}, False,
    )  # fmt: skip
    assert answer(call("update", begun, "--key", "monday")) == {"version": 1, "taught": 1, "credited": 1}
    assert answer(call("update", begun, "--key", "monday"))["version"] == 1
    with Trial.create(write_file(tmp_path / "other"), seed=1) as trial:
        trial.enrol("maria")
        mine = trial.decide("maria", 0, context)
        assert (first["action"], first["prob"], first["seq"]) == (mine.action, dict(mine.prob), mine.seq)
        fallbacks = trial.fallbacks("maria", 2, 5)
    shown = call("fallbacks", begun, "maria", 2, 5)
    assert shown.out.splitlines() == [f"{t} {action}" for t, action in enumerate(fallbacks, start=2)]
    action = fallbacks[0]
    given = answer(call("given", begun, "maria", 2, action, "--context", '{"mood": 3}', "--fallback"))
    assert (given["policy"], given["action"]) == ("given", action)
    last = call("end", begun, "maria", "terminated")
    assert (last.code, last.out) == (0, "the participant is terminated\n")
    assert call("end", begun, "maria", "terminated").out == "the participant is terminated, as before\n"
    assert call("replay", begun).code == 0


def test_a_repeated_request_gets_the_same_answer(call: Call, begun: Path) -> None:
    words = ("decide", begun, "maria", 0, "--context", '{"mood": 1}')
    first, again = answer(call(*words)), answer(call(*words))
    assert again == first | {"repeated": True}
    other = answer(call("decide", begun, "maria", 0, "--context", '{"mood": 2}'))
    assert other == first | {"repeated": True, "differs": True}
    assert call("enrol", begun, "maria").out.endswith(", as before\n")


def test_the_store_can_be_named_instead_of_the_file(call: Call, begun: Path) -> None:
    store = begun.with_suffix(".db")
    answer(call("decide", store, "maria", 0, "--context", "null", "--allowed", "driving"))
    found = answer(call("decide", f"sqlite:{store}", "maria", 1, "--context", "{}", "--allowed", "prompt"))
    assert found["action"] == "prompt"
    two = ("--allowed", "prompt", "--allowed", "nothing")
    assert answer(call("decide", store, "maria", 2, "--context", "{}", *two))["randomised"]


def test_an_identifier_and_a_context_come_from_files(call: Call, begun: Path, tmp_path: Path) -> None:
    (tmp_path / "who.txt").write_text("maria\n")
    (tmp_path / "context.json").write_text('{"mood": 3}')
    at = ("decide", begun, f"@{tmp_path / 'who.txt'}", 0, "--context", f"@{tmp_path / 'context.json'}")
    assert answer(call(*at))["policy"] == "learned"
    assert bodies(begun.with_suffix(".db"))[-1]["context"]["mood"] == 3  # type: ignore[index]
    assert call("enrol", begun, "@@maria").code == 0
    with Trial.open(begun) as trial:
        assert trial.secret.pseudonym("@maria") in trial.state.people
    refused(call("enrol", begun, "@nowhere.txt"), "nowhere.txt cannot be read: No such file")


def test_no_identifier_is_in_the_store_or_repeated_in_a_refusal(call: Call, begun: Path, tmp_path: Path) -> None:
    call("decide", begun, "maria", 0, "--context", "{}")
    found = call("decide", begun, "maria", -1, "--context", "{}")
    assert "maria" not in found.err
    assert not any(b"maria" in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("decide", "maria", "0"), "--context is missing; give it, or requests as lines of JSON with --stdin"),
        (("decide",), "PARTICIPANT is missing"),
        (("decide", "maria", "0", "--context", "{"), "the context is not JSON"),
        (("decide", "maria", "0", "--context", "[" * 100_000), "the context is n"),
        (("decide", "maria", "0", "--context", "[]"), "the context is []; it must be a table"),
        (("decide", "maria", "x", "--context", "{}"), "Invalid value for 't'"),
        (("decide", "maria", "-3", "--context", "{}"), "lacuna: "),
        (("decide", "maria", "0", "--context", "{}", "--allowed", "drivin"), "'drivin'"),
        (("decide", "maria", "--stdin"), "PARTICIPANT was given, but with --stdin"),
        (("decide", "--stdin", "--not-available"), "--not-available was given, but with --stdin"),
        (("enrol", "joe", "--group", ""), "the group is ''"),
        (("outcome", "maria", "0", "0.5"), "there is no decision at t 0 of this participant"),
        (("outcome", "joe", "0", "0.5"), "this participant is not enrolled"),
        (("outcome", "maria", "0", "much"), "the reward is 'much'; it must be a number, or none"),
        (("outcome", "maria", "0", "-0.5"), "the reward is -0.5; it must be a number between 0 and 1"),
        (("outcome", "maria", "0", "--deliverd", "yes"), "lacuna: "),
        (("outcome", "maria", "0", "nan"), "the reward is nan"),
        (("outcome", "maria", "0", "1", "--delivered", "maybe"), "delivered is 'maybe'"),
        (("given", "maria", "0", "promt", "--context", "{}"), "the action is 'promt' (did you mean 'prompt'?)"),
        (("given", "maria", "0", "prompt", "--context", "{}", "--prob", "[1]"), "prob is [1]"),
        (("end", "maria", "bored"), "how is 'bored'"),
        (("end", "joe", "withdrawn"), "this participant is not enrolled"),
        (("update", "--key", ""), "key is ''"),
        (("fallbacks", "maria", "0", "401"), "n is 401; it must be a whole number between 1 and 400"),
        (("redact", "--reason", "x"), "nothing is named that should be erased"),
        (("redact", "1"), "the reason is ''"),
        (("redact", "0", "--reason", "x"), "event 0 begins the trial"),
        (("upgrade", "--accept"), "the reason is None"),
        (("export", "out", "--log", "--wcls"), "--log writes the log only"),
        (("init",), "holds the trial 'walk' already"),
    ],
)
def test_a_wrong_word_is_one_sentence_and_changes_nothing(
    call: Call, begun: Path, words: tuple[str, ...], said: str
) -> None:
    store = begun.with_suffix(".db")
    before = bodies(store)
    refused(call(words[0], begun, *words[1:]), said)
    assert bodies(store) == before
    assert call("replay", begun).code == 0


@pytest.mark.parametrize("command", [name for name in COMMANDS[1:] if name != "status"])
def test_a_trial_that_is_not_there_is_one_sentence(call: Call, tmp_path: Path, command: str) -> None:
    words = {
        "enrol": ("a",), "decide": ("a", 0, "--context", "{}"), "fallbacks": ("a", 0, 1), "outcome": ("a", 0, 1),
        "given": ("a", 0, "x", "--context", "{}"), "end": ("a", "withdrawn"), "export": (tmp_path / "out", "--log"),
        "redact": (1, "--reason", "x"), "key": (tmp_path / "key",),
    }  # fmt: skip
    found = call(command, tmp_path / "none.db", *words.get(command, ()))
    assert found.code == 2
    assert is_one_sentence(found.err)
    assert "none.db" in found.err
    assert list(tmp_path.iterdir()) == []


def test_a_busy_trial_says_so_and_can_still_be_looked_at(call: Call, begun: Path, tmp_path: Path) -> None:
    with Trial.open(begun):
        refused(call("decide", begun, "maria", 0, "--context", "{}"), "")
        assert call("replay", begun).code == 0
        assert call("export", begun, tmp_path / "out", "--log").code == 0
        assert call("key", begun, tmp_path / "key").code == 0


def run(*words: object, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "lacuna.cli.main", "trial", *map(str, words)]
    return subprocess.run(command, input=given, capture_output=True, check=False, env=os.environ | {"NO_COLOR": "1"})


def test_an_app_can_pipe_requests_through_one_process(begun: Path) -> None:
    lines = [
        {"participant": "maria", "t": 0, "context": {"mood": 1}},
        {"participant": "maria", "t": 0, "context": {"mood": 1}},
        {"participant": "maria", "t": 1, "context": {}, "previous": {"t": 0, "reward": 1.0}, "extra": {"note": "é"}},
        {"participant": "stranger", "t": 0, "context": {}},
        {"participant": "maria", "t": "soon", "context": {}},
        {"participant": "maria", "t": 2},
        {"participant": "maria", "t": 2, "context": {}, "contxt": {}},
        [1],
        {"participant": "maria", "t": 2, "context": None, "available": False, "allowed": ["nothing"]},
    ]
    text = "\n".join([*map(json.dumps, lines), "{", "", "[" * 90_000, "x" * 70_000, "x" * 140_000])
    done = run("decide", begun, "--stdin", given=text.encode())
    assert (done.returncode, done.stderr) == (0, b"")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 13
    assert found[1] == found[0] | {"repeated": True}
    assert [one.get("policy") for one in found] == [
        "learned", "learned", "learned", "fallback", None, None, None, None, "learned", *[None] * 4,
    ]  # fmt: skip
    said = [one["error"] for one in found if "error" in one]
    assert said[0] == "t is 'soon'; it must be a whole number between 0 and 9007199254740992"
    assert "lacks 'context'" in said[1]
    assert "(did you mean 'context'?)" in said[2]
    assert "is no JSON object" in said[3]
    assert "is not JSON" in said[4]
    assert said[6:] == ["a request has more than 65536 bytes"] * 2
    assert "maria" not in " ".join(said)
    assert kinds(begun.with_suffix(".db"))[2:] == ["decision", "note", "outcome", "decision", "fallback", "decision"]
    assert run("replay", begun).returncode == 0


def test_an_answer_comes_before_the_next_request(begun: Path) -> None:
    command = [sys.executable, "-m", "lacuna.cli.main", "trial", "decide", str(begun), "--stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for t in range(3):
            process.stdin.write(json.dumps({"participant": "maria", "t": t, "context": {}}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["seq"] == t + 2
        process.stdin.close()
        assert process.wait() == 0


def test_init_learns_from_an_earlier_log(call: Call, tmp_path: Path) -> None:
    log = log_of(made(tmp_path / "old"), tmp_path / "old.jsonl")
    new = write_file(tmp_path / "new")
    found = call("init", new, "--from", log)
    assert (found.code, found.err) == (0, "")
    assert "learned from 4" in found.out
    assert f"back up {tmp_path / 'new' / 'walk.db.secret'}" in found.out
    assert kinds(tmp_path / "new" / "walk.db").count("given") > 30
    refused(call("init", write_file(tmp_path / "third"), "--mapping", log), "it belongs to --from LOG")
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"actions": {"prompt": "nothing"}}')
    assert call("init", write_file(tmp_path / "fourth"), "--from", log, "--mapping", mapping).code == 0
    refused(call("init", write_file(tmp_path / "fifth"), "--from", new), "this is not a line of a log of lacuna")
    assert not (tmp_path / "fifth" / "walk.db").exists()


def test_a_log_replays_with_the_draws_key_alone(call: Call, tmp_path: Path) -> None:
    store = made(tmp_path / "trial")
    out, key = tmp_path / "out", tmp_path / "draws.key"
    assert call("export", store, out, "--log").out == f"{len(bodies(store))} events exported to {out}\n"
    assert (out / "log.jsonl").read_bytes() == log_of(store, tmp_path / "same.jsonl").read_bytes()
    assert call("key", store, key).code == 0
    assert key.stat().st_mode & 0o777 == 0o600
    refused(call("key", store, key), "is there already; a draws key of a trial is never overwritten")
    found = call("replay", out / "log.jsonl", "--draws-key", key)
    assert found.code == 0
    assert found.out.startswith(f"equal: {len(bodies(store))} events computed again; the log ends with event ")
    assert call("replay", store, "--from-snapshots").out.count("also from 1 snapshot") == 1
    (store.parent / "walk.db.secret").rename(tmp_path / "away")
    refused(call("replay", store), "walk.db.secret cannot be read")
    assert call("replay", store, "--draws-key", key).code == 0


def test_replay_tells_what_differs_from_what_cannot_be_read(call: Call, tmp_path: Path) -> None:
    store = made(tmp_path / "trial")
    log, key = log_of(store, tmp_path / "log.jsonl"), tmp_path / "draws.key"
    call("key", store, key)
    refused(call("replay", log), "it needs the draws key of the trial")
    refused(call("replay", log, "--draws-key", key, "--from-snapshots"), "which has no snapshots")
    refused(call("replay", log, "--draws-key", tmp_path / "none"), "none cannot be read")
    refused(call("replay", key, "--draws-key", key), "is neither the store of a trial nor an exported log")
    other = made(tmp_path / "other", seed=2)
    call("key", other, tmp_path / "other.key")
    refused(call("replay", log, "--draws-key", tmp_path / "other.key"), "was made with another draws key than this one")
    refused(call("replay", store, "--draws-key", tmp_path / "other.key"), "was made with another draws key")
    log.write_bytes(log.read_bytes().replace(b'"reward":1.0', b'"reward":0.0', 1))
    found = call("replay", log, "--draws-key", key)
    assert found.code == 1
    assert is_one_sentence(found.err)
    assert "does not match its hash" in found.err


def test_a_store_that_was_rewritten_with_a_new_chain_is_found(call: Call, tmp_path: Path) -> None:
    """The chain holds, as whoever rewrites a log can do; what was computed does not."""
    from lacuna.trial.log.chained_log import START, check, make_entry
    from lacuna.trial.log.sqlite import SqliteStore

    store = made(tmp_path)
    with SqliteStore.open(store, write=False) as opened:
        found = [check(entry) for entry in opened.read()]
    victim = next(body for body in found if body is not None and body["kind"] == "decision" and body["seq"] > 20)
    victim["prob"] = victim["prob"][::-1] if victim["prob"][0] != victim["prob"][1] else [0.25, 0.75]
    head = START
    with sqlite3.connect(store) as connection:
        for body in found:
            assert body is not None
            entry = make_entry(head, body)
            head = entry.head
            connection.execute(
                "UPDATE event SET body = ?, body_hash = ?, chain = ? WHERE seq = ?",
                (entry.body, entry.body_hash, entry.chain, entry.seq),
            )
    connection.close()
    told = call("replay", store)
    assert told.code == 1
    assert is_one_sentence(told.err)
    assert f"event {victim['seq']} (participant {victim['p'][:4]}…, t {victim['t']}): prob[0] is" in told.err


def test_upgrade_and_redact_say_what_they_did(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path)
    assert call("upgrade", store).out == "nothing to do: this version has run the trial last\n"
    n = len(bodies(store))
    with version(monkeypatch, "newer"):
        refused(call("update", store), "so it is read-only; lacuna trial upgrade replays it and lets it go on")
        assert call("upgrade", store).out.startswith(f"equal: {n - 1} events computed again; the trial goes on")
        assert call("update", store).code == 0
    with version(monkeypatch, "newest", shift=0.25):
        refused(call("upgrade", store), "--accept with a --reason carries the state over")
        found = call("upgrade", store, "--accept", "--reason", "a mended bug")
        assert "the first difference was: event " in found.out
        (tmp_path / "who").write_text("person 1")
        erased = call("redact", store, "--participant", f"@{tmp_path / 'who'}", "--reason", "a request")
        assert erased.out.endswith(" events erased\n")
        again = call("redact", store, "--participant", "person 1", "--reason", "a request")
        assert again.out == "0 events erased; it was done before\n"
        assert "were erased; the log ends with" in call("replay", store).out
        with Trial.open(store) as trial:
            play(trial, first=12, seed=3)
        assert call("replay", store, "--from-snapshots").code == 0


def test_an_export_does_not_replace_the_log_of_another_trial(call: Call, tmp_path: Path) -> None:
    one, two = made(tmp_path / "one"), made(tmp_path / "two", seed=2)
    assert call("export", one, tmp_path / "out", "--log").code == 0
    assert call("export", one, tmp_path / "out", "--log").code == 0
    refused(call("export", two, tmp_path / "out", "--log"), "is the log of another trial; name another folder")
    refused(call("export", two, tmp_path / "out"), "holds the export of another trial; name a new folder")
    assert call("export", one, tmp_path / "out").code == 0


def test_status_and_export_look_at_a_trial_that_runs(call: Call, begun: Path, tmp_path: Path) -> None:
    answer(call("decide", begun, "maria", 0, "--context", '{"mood": 2}'))
    answer(call("outcome", begun, "maria", 0, 0.5))
    with Trial.open(begun) as trial:
        shown = call("status", begun)
        assert (shown.code, shown.err) == (0, "")
        assert trial.head.chain.hex() in shown.out
        found = call("export", begun, tmp_path / "out", "--wcls", "--obp")
    assert (found.code, found.out) == (0, f"{trial.head.seq + 1} events exported to {tmp_path / 'out'}\n")
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {
        "decisions.parquet", "decisions.csv", "codebook.json", "codebook.md", "log.jsonl", "wcls.csv", "wcls.parquet",
        "obp.npz",
    }  # fmt: skip
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    refused(call("export", begun, tmp_path / "other"), "mine.txt")
    refused(call("status", tmp_path / "none.db"), "is not there")


def test_nothing_heavy_is_imported_for_help() -> None:
    code = (
        "import sys, lacuna.cli.trial_commands; "
        "print([name for name in ('lacuna.trial.engine.trial', 'sqlite3', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
