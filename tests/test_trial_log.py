"""The log of a trial: canonical bytes, a chain that finds every edit by name, and files of it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna.trial.log import chained_log as log
from lacuna.trial.log.chained_log import (
    DEEPEST,
    MOST_BYTES,
    START,
    Entry,
    Head,
    LogError,
    canonical,
    check,
    checked,
    describe,
    link,
    make_entry,
    parse,
    read_log,
    verify,
    write_log,
)
from sentences import one_sentence
from trial_events import body, events, pseudonym

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(PLAIN, lambda one: st.lists(one, max_size=4) | st.dictionaries(TEXT, one, max_size=4))


@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_what_is_written_is_read_back_and_has_one_form(content: dict[str, Any]) -> None:
    written = canonical(content)
    assert parse(written) == content
    assert canonical(parse(written)) == written
    assert canonical(dict(reversed(content.items()))) == written
    assert json.loads(written) == content
    assert b"\n" not in written


def test_the_bytes_are_those_of_the_definition() -> None:
    found = canonical({"z": [1, 1.0, 1e-7, 1e22, -0.0, 0.1], "ä": "Größe\n\u2028☃", "a": {"c": None, "b": False}})
    wanted = '{"a":{"b":false,"c":null},"z":[1,1.0,1e-07,1e+22,-0.0,0.1],"ä":"Größe\\n\u2028☃"}'
    assert found == wanted.encode()


def nested(depth: int) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for _ in range(depth - 1):
        content = {"a": content}
    return content


def test_what_json_cannot_hold_is_not_written() -> None:
    round_and_round: dict[str, Any] = {}
    round_and_round["again"] = round_and_round
    bad: list[Any] = [
        {"x": float("nan")}, {"x": float("inf")}, {"x": -float("inf")}, {"x": b"bytes"}, {"x": {1, 2}}, {1: "x"},
        {"x": [{True: 1}]}, {"x": "\ud800"}, {"x": 10**5000}, round_and_round, nested(DEEPEST + 1), [], None,
        {"x": "a" * MOST_BYTES},
    ]  # fmt: skip
    for content in bad:
        with pytest.raises(ValueError, match="the body") as error:
            canonical(content)
        one_sentence(error.value)
    assert parse(canonical(nested(DEEPEST))) == nested(DEEPEST)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"a":1,"a":1}', "the key 'a' twice"),
        (b'{"a":{"b":1,"b":2}}', "the key 'b' twice"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":Infinity}', "Infinity"),
        (b'{"a":-Infinity}', "-Infinity"),
        (b'{"a":1e999}', "cannot be written"),
        (b'{"b":1,"a":1}', "not canonical"),
        (b'{"a": 1}', "not canonical"),
        (b'{"a":1}\n', "not canonical"),
        (b'{"a":1.00}', "not canonical"),
        (b'{"a":1E5}', "not canonical"),
        (b'{"a":-0}', "not canonical"),
        (b'{"a":"\\u00e4"}', "not canonical"),
        (b'{"a":"\\ud800"}', "cannot be written"),
        (b'{"a":"\xff"}', "not JSON"),
        (b'\xef\xbb\xbf{"a":1}', "not JSON"),
        (b'{"a":1', "not JSON"),
        (b"", "not JSON"),
        (b"[1]", "must be an object"),
        (b"null", "must be an object"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested"),
        (b'{"a":' + b"[" * DEEPEST + b"]" * DEEPEST + b"}", "nested"),
        (b'{"a":' + b"1" * 5000 + b"}", "not JSON"),
        (b'{"a":"' + b"1" * MOST_BYTES + b'"}', "bytes"),
    ],
    ids=range(24),
)
def test_what_is_not_canonical_is_not_read(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match="the body") as error:
        parse(content)
    assert why in one_sentence(error.value)


def test_the_chain_is_the_one_of_the_definition() -> None:
    chain = bytes(32)
    for n, entry in enumerate(events(20)):
        assert entry.body == canonical(body(n))
        assert entry.body_hash == hashlib.sha256(entry.body).digest()
        chain = hashlib.sha256(chain + entry.body_hash).digest()
        assert (entry.seq, entry.chain) == (n, chain) == entry.head
        assert check(entry) == body(n)


def wrong(entries: list[Entry], after: Head = START, head: Head | None = None) -> LogError:
    with pytest.raises(LogError) as error:
        list(verify(entries, after, head))
    one_sentence(error.value)
    return error.value


def test_whatever_is_wrong_is_named() -> None:
    whole = events(60)
    assert list(verify(whole)) == whole
    assert list(verify(whole[20:], whole[19].head, whole[40].head)) == whole[20:]
    assert [content for _, content in checked(whole)] == [body(n) for n in range(60)]
    name = f"event 17 (participant {pseudonym(3)[:4]}…, t 2)"

    def edited(**changes: Any) -> LogError:
        return wrong([*whole[:17], whole[17]._replace(**changes), *whole[18:]])

    other = make_entry(whole[16].head, body(17, action=0))
    for error, message in [
        (edited(body=other.body), f"{name}: its body does not match its hash"),
        (edited(body="text"), "event 17: its body does not match its hash"),
        (edited(body=other.body, body_hash=other.body_hash), f"{name}: the chain is broken before it"),
        (edited(chain=bytes(32)), f"{name}: the chain is broken before it"),
        (edited(chain=b"short"), "event 17: its hash or its chain is not 32 bytes long"),
        (edited(body_hash=None), "event 17: its hash or its chain is not 32 bytes long"),
        (wrong([*whole[:17], *whole[18:]]), "event 17 is missing: event 18 comes in its place"),
        (wrong([*whole[:17], *whole[16:]]), "event 17 is missing: event 16 comes in its place"),
        (wrong(whole[17:]), "event 0 is missing: event 17 comes in its place"),
        (wrong(whole[17:], Head(16, bytes(32))), f"{name}: the chain is broken before it"),
        (wrong(whole[:17], head=whole[20].head), "event 17 is missing: the log ends before it, not with event 20"),
        (wrong(whole, head=Head(17, bytes(32))), f"{name}: the chain there is not the one that was noted"),
    ]:
        assert (str(error), error.seq) == (message, int(message.split()[1].rstrip(":")))
    # All that follows was made anew: only who noted the head knows.
    anew = [*whole[:17], other, *events(42, other.head)]
    assert list(verify(anew)) == anew
    assert wrong(anew, head=whole[-1].head).seq == 59


def forged(content: bytes, seq: int = 0, head: Head = START) -> Entry:
    digest = hashlib.sha256(content).digest()
    return Entry(seq, content, digest, link(head.chain, digest))


def test_a_body_with_a_right_hash_must_still_be_one_of_ours() -> None:
    for content, message in [
        (b"[]", "event 0: the body is []; it must be an object"),
        (b'{"at":"x","kind":"begin","seq": 0}', "event 0: the body is not canonical JSON, with sorted keys, "),
        (b'{"at":"x","kind":"begin","seq":1}', "event 0: its body has the number 1"),
        (b'{"at":"x","kind":"begin","seq":false}', "event 0: its body has the number False"),
        (b'{"at":"x","kind":"begin"}', "event 0: its body has the number None"),
        (b'{"at":"x","p":"9f3c52","seq":0,"t":4}', "event 0 (participant 9f3c…, t 4): its body says no 'kind'"),
        (b'{"kind":"begin","seq":0}', "event 0: its body says no 'at'"),
    ]:
        assert str(wrong([forged(content)])).startswith(message)
    with pytest.raises(LogError, match="event 1: its body has the number 2"):
        make_entry(events(1)[0].head, body(2))
    assert describe(forged(b'{"p":"<b>","t":1' + b"0" * 30 + b"}")) == "event 0"


def test_redacted_events_verify_by_their_hash() -> None:
    whole = events(40)
    redacted = [one._replace(body=None) if one.seq % 3 == 1 else one for one in whole]
    assert list(verify(redacted, head=whole[-1].head)) == redacted
    assert check(redacted[1]) is None
    redacted[4] = redacted[4]._replace(body_hash=bytes(32))
    assert wrong(redacted).seq == 4


def flips(content: bytes, chance: random.Random) -> Iterator[bytes]:
    """The content with every byte changed in turn."""
    for i in range(len(content)):
        changed = bytearray(content)
        changed[i] ^= chance.randrange(1, 256)
        yield bytes(changed)


def test_every_byte_of_200_events_flipped_is_found_by_name() -> None:
    whole, chance, n = events(200), random.Random(1), 0
    after = START
    for entry in whole:
        for field in ("body", "body_hash", "chain"):
            for changed in flips(getattr(entry, field), chance):
                edited: dict[str, Any] = {field: changed}
                error = wrong([entry._replace(**edited)], after)
                assert error.seq == entry.seq
                assert str(error).startswith(f"event {entry.seq}")
                n += 1
        after = entry.head
    assert n > 100_000


def test_every_byte_of_a_file_of_200_events_flipped_is_found_by_line_and_name(tmp_path: Path) -> None:
    whole, chance = events(200), random.Random(2)
    whole[50] = whole[50]._replace(body=None)
    path = tmp_path / "log.jsonl"
    write_log(path, whole)
    assert list(read_log(path, whole[-1].head)) == whole
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 200
    # Line by line, as a reader comes to it; where the end of the line is hit, the next one follows.
    after = START
    for n, (line, following) in enumerate(zip(lines, [*lines[1:], b""], strict=True)):
        for changed in flips(line, chance):
            with pytest.raises(LogError) as error:
                list(verify(log._entries(io.BytesIO(changed + following), n), after))
            assert error.value.seq == n
        after = whole[n].head
    content = path.read_bytes()
    starts = [sum(map(len, lines[:n])) for n in range(200)]
    for _ in range(200):
        i = chance.randrange(len(content))
        path.write_bytes(content[:i] + bytes([content[i] ^ chance.randrange(1, 256)]) + content[i + 1 :])
        with pytest.raises(LogError) as error:
            list(read_log(path))
        n = sum(start <= i for start in starts) - 1
        assert error.value.seq == n
        assert one_sentence(error.value).startswith(f"{path}, line {n + 1}: event {n}")


def test_a_line_is_plain_json_with_the_bytes_of_the_body(tmp_path: Path) -> None:
    whole = events(3)
    whole[1] = whole[1]._replace(body=None)
    write_log(tmp_path / "log.jsonl", iter(whole))
    first, second, third = map(json.loads, (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines())
    assert (second["body"], second["body_hash"]) == (None, whole[1].body_hash.hex())
    assert third == {"body": body(2), "body_hash": whole[2].body_hash.hex(), "chain": whole[2].chain.hex(), "seq": 2}
    assert first["body"]["kind"] == "begin"


def test_a_cut_file_is_told_wherever_it_is_cut(tmp_path: Path) -> None:
    whole, path = events(4), tmp_path / "log.jsonl"
    write_log(path, whole)
    content = path.read_bytes()
    for size in reversed(range(len(content))):
        os.truncate(path, size)
        with pytest.raises(LogError) as error:
            list(read_log(path, whole[-1].head))
        assert error.value.seq == content[:size].count(b"\n")
        one_sentence(error.value)


def test_foreign_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    for content in (b"", b"\n", b"PK\x03\x04", b'{"body":1}\n', b"a,b\n1,2\n", bytes(1000), b"x" * (MOST_BYTES + 1000)):
        path.write_bytes(content)
        with pytest.raises(LogError) as error:
            list(read_log(path))
        assert one_sentence(error.value).startswith(f"{path}, line 1: event 0")
    for missing in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(LogError, match="cannot be read") as error:
            list(read_log(missing))
        assert error.value.seq is None


def test_a_log_that_does_not_verify_is_not_written_and_the_old_file_stays(tmp_path: Path) -> None:
    whole, path = events(20), tmp_path / "log.jsonl"
    write_log(path, whole[:10])
    with pytest.raises(LogError, match="event 12 is missing"):
        write_log(path, [*whole[:12], *whole[13:]])
    assert list(read_log(path)) == whole[:10]
    assert [one.name for one in tmp_path.iterdir()] == ["log.jsonl"]
