"""The secret of a trial: what comes from it, its file, and that nothing shows it."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lacuna.trial.log.keys import DrawsKey, IdentifiersKey, Secret, key_words, words
from sentences import one_sentence

SECRET = Secret.from_seed("test")


def test_a_secret_is_random_and_32_bytes_long() -> None:
    made = {Secret.create().value for _ in range(20)}
    assert len(made) == 20
    assert {len(value) for value in made} == {32}


def test_a_seed_always_gives_the_same_secret_and_another_one_another() -> None:
    assert Secret.from_seed(1) == Secret.from_seed("1")
    assert Secret.from_seed(1) != Secret.from_seed(2)
    assert Secret.from_seed(1).value == hashlib.sha256(b"lacuna secret from the seed 1").digest()


def test_the_keys_come_from_the_secret_by_hmac() -> None:
    def derived(label: bytes) -> bytes:
        return hmac.new(SECRET.value, label, hashlib.sha256).digest()

    assert SECRET.draws_key == DrawsKey(derived(b"lacuna draws"))
    assert SECRET.identifiers_key == IdentifiersKey(derived(b"lacuna identifiers"))
    assert SECRET.fingerprint == hashlib.sha256(SECRET.value).hexdigest()
    assert SECRET.draws_key.fingerprint == hashlib.sha256(derived(b"lacuna draws")).hexdigest()


@given(st.text(st.characters(categories=["L", "N", "P", "S"], max_codepoint=0x2FF), min_size=1, max_size=200))
@example("x" * 200)
@example("é" * 200)
@example("李 雷")
@example("ada@example.org")
def test_a_pseudonym_is_half_an_hmac_of_the_identifier(identifier: str) -> None:
    expected = hmac.new(SECRET.identifiers_key.value, identifier.encode(), hashlib.sha256).hexdigest()[:32]
    assert SECRET.pseudonym(identifier) == SECRET.identifiers_key.pseudonym(identifier) == expected


@pytest.mark.parametrize(
    "same", ["Jos\u00e9", "Jose\u0301", " Jos\u00e9", "Jos\u00e9\n", "\tJose\u0301\u00a0", "\u3000Jos\u00e9\u2003"]
)
def test_identifiers_that_look_the_same_are_the_same(same: str) -> None:
    assert SECRET.pseudonym(same) == SECRET.pseudonym("José")


def test_case_and_blanks_inside_count() -> None:
    assert len({SECRET.pseudonym(one) for one in ("maria", "Maria", "MARIA", "ma ria", "ma  ria")}) == 5


@pytest.mark.parametrize(
    ("identifier", "sentence"),
    [
        ("", "an identifier has 0 characters; it must be a text of 1 to 200 characters"),
        ("x" * 201, "an identifier has 201 characters; it must be a text of 1 to 200 characters"),
        (5, "an identifier has the type int; it must be a text of 1 to 200 characters"),
        (b"maria", "an identifier has the type bytes; it must be a text of 1 to 200 characters"),
        (None, "an identifier has the type NoneType; it must be a text of 1 to 200 characters"),
        (" \t\n", "an identifier has 0 characters; it must be a text of 1 to 200 characters"),
        ("x" * 10**6, "an identifier has 1000000 characters; it must be a text of 1 to 200 characters"),
        *(
            (
                f"ab{c}d",
                f"character 2 of an identifier is U+{ord(c):04X}; it must be one that can be seen: no control "
                "or zero-width sign",
            )
            for c in "\0\x1f\x7f\x85\u200b\u200d\u200e\u202e\u2060\ufeff\u00ad\u034f\u3164\ufe0f"
        ),
        ("ab\ud800", "character 2 of an identifier is half of a surrogate pair; it must be valid Unicode"),
    ],
)
def test_what_is_no_identifier_is_refused_without_being_repeated(identifier: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="identifier") as caught:
        SECRET.pseudonym(identifier)
    assert one_sentence(caught.value) == sentence
    assert caught.value.__cause__ is None


@given(st.binary(min_size=16, max_size=16))
@example(b"\xff" * 16)
def test_words_are_little_endian(content: bytes) -> None:
    expected = struct.unpack("<QQ", content)
    assert words(content.hex()).tolist() == list(expected)
    assert key_words(DrawsKey(content + b"\x07" * 16)).tolist() == list(expected)


def test_words_are_what_kernels_take() -> None:
    for found in (words("00" * 16), key_words(SECRET.draws_key)):
        assert found.dtype == np.uint64
        assert found.shape == (2,)
        assert found.dtype.isnative
        assert found.flags.writeable


@pytest.mark.parametrize(
    "pseudonym", ["", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "00 " * 11, "0" * 32 + "\n", 5, None]
)
def test_what_is_no_pseudonym_is_refused(pseudonym: str) -> None:
    with pytest.raises(ValueError, match="it must be 32 hexadecimal digits, in small letters") as caught:
        words(pseudonym)
    assert one_sentence(caught.value).startswith("the pseudonym is ")


@pytest.mark.parametrize("kind", [Secret, DrawsKey, IdentifiersKey])
def test_a_key_is_read_as_it_was_written_and_only_its_owner_can(
    kind: type[Secret | DrawsKey | IdentifiersKey], tmp_path: Path
) -> None:
    path, key = tmp_path / "key", kind(bytes(range(32)))
    before = os.umask(0)
    try:
        key.write(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert kind.read(path) == key
    lines = path.read_text().splitlines()
    assert lines == [f"lacuna {kind.what}, format 1", bytes(range(32)).hex()]


def test_a_umask_that_closes_everything_leaves_the_owner_his_file(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        SECRET.write(tmp_path / "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_secret_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    SECRET.write(path)
    with pytest.raises(FileExistsError) as caught:
        Secret.create().write(path)
    assert one_sentence(caught.value) == f"{path} is there already; a secret of a trial is never overwritten"
    assert Secret.read(path) == SECRET


def test_a_secret_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        SECRET.write(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_could_not_be_written_whole_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        SECRET.write(tmp_path / "secret")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_secret_that_others_can_reach_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    SECRET.write(path)
    path.chmod(mode)
    with pytest.raises(ValueError, match="chmod 600") as caught:
        Secret.read(path)
    expected = f"{path} is open to other users (mode {mode:04o}); close it with: chmod 600 {path}"
    assert one_sentence(caught.value) == expected


def test_a_published_draws_key_can_be_open_to_all(tmp_path: Path) -> None:
    path = tmp_path / "draws"
    SECRET.draws_key.write(path)
    path.chmod(0o644)
    assert DrawsKey.read(path) == SECRET.draws_key


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"00" * 32,
        b"lacuna secret of a trial, format 1\n",
        b"lacuna secret of a trial, format 1\n" + b"00" * 31,
        b"lacuna secret of a trial, format 1\n" + b"00" * 33,
        b"lacuna secret of a trial, format 2\n" + b"00" * 32,
        b"lacuna secret of a trial, format 1\n" + b"zz" * 32,
        b"\xff\xfe",
    ],
)
def test_what_is_no_secret_is_refused_without_being_repeated(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ValueError, match="is no secret of a trial") as caught:
        Secret.read(path)
    assert one_sentence(caught.value) == (
        f"{path} is no secret of a trial; it must have the line 'lacuna secret of a trial, format 1', "
        "then a line of 64 hexadecimal digits"
    )


def test_one_kind_of_key_is_not_taken_for_another(tmp_path: Path) -> None:
    SECRET.write(tmp_path / "secret")
    with pytest.raises(ValueError, match="is no draws key of a trial") as caught:
        DrawsKey.read(tmp_path / "secret")
    assert SECRET.value.hex() not in one_sentence(caught.value)


@pytest.mark.parametrize("kind", [Secret, DrawsKey])
def test_a_file_that_is_not_there_is_named(kind: type[Secret | DrawsKey], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: ") as caught:
        kind.read(tmp_path / "nowhere")
    assert str(tmp_path / "nowhere") in one_sentence(caught.value)


@pytest.mark.parametrize("value", [b"", b"0" * 31, b"0" * 33, "0" * 32])
def test_a_key_has_32_bytes(value: bytes) -> None:
    with pytest.raises(ValueError, match="a secret of a trial must be 32 bytes") as caught:
        Secret(value)
    one_sentence(caught.value)


def test_no_text_of_a_key_shows_its_bytes() -> None:
    keys: list[Secret | DrawsKey | IdentifiersKey] = [SECRET, SECRET.draws_key, SECRET.identifiers_key]
    for key in keys:
        # , SECRET.identifiers_key):
        for text in (repr(key), str(key), f"{key}", repr([key])):
            assert key.fingerprint[:16] in text
            assert key.value.hex()[:8] not in text
            assert repr(key.value)[2:10] not in text
