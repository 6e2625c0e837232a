"""The secret of a trial, and the keys and pseudonyms derived from it.

HMAC-SHA-256 derives the draws key and the identifiers key from the secret. Anyone with the secret can predict every
allocation. Anyone with only the draws key can recompute every draw, but cannot link a pseudonym to a person.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lacuna.files import create_private, read_regular
from lacuna.validation import shown

_BYTES = 32
_MOST_BYTES = 4096
_MOST_CHARACTERS = 200
_BLANKS = "\t\n\r" + "".join(chr(c) for c in (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000))
# Letters and marks without a width, which Python counts among the printable characters.
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


@dataclass(frozen=True, repr=False)
class _Key:
    """32 secret bytes, which no message and no `repr` shows."""

    value: bytes
    what: ClassVar[str] = "key"

    def __post_init__(self) -> None:
        if not isinstance(self.value, bytes) or len(self.value) != _BYTES:
            raise ValueError(f"a {self.what} must be {_BYTES} bytes")

    def __repr__(self) -> str:
        return f"<{self.what}, fingerprint {self.fingerprint[:16]}…>"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the bytes, in hexadecimal: it identifies the key without revealing it."""
        return hashlib.sha256(self.value).hexdigest()

    def _derived(self, label: bytes) -> bytes:
        return hmac.digest(self.value, label, hashlib.sha256)

    @classmethod
    def _first_line(cls) -> str:
        return f"lacuna {cls.what}, format 1"

    def write(self, path: str | Path) -> None:
        """Write the key to a new file that only its owner can read; an existing file is never overwritten."""
        try:
            create_private(Path(path), f"{self._first_line()}\n{self.value.hex()}\n".encode())
        except FileExistsError as error:
            raise FileExistsError(f"{path} is there already; a {self.what} is never overwritten") from error

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read the key from the file that `write` made, or raise an error."""
        content = read_regular(path, _MOST_BYTES)
        # The message does not repeat the content: it may be another secret.
        found = re.fullmatch(rb"%s\r?\n([0-9a-f]{64})\s*" % re.escape(cls._first_line().encode()), content)
        if found is None:
            raise ValueError(
                f"{path} is no {cls.what}; it must have the line {cls._first_line()!r}, "
                "then a line of 64 hexadecimal digits"
            )
        return cls(bytes.fromhex(found[1].decode()))


class DrawsKey(_Key):
    """The key of the draws: with it and the log, an auditor can recompute every draw.

    Examples
    --------
    >>> key = Secret.from_seed(1).draws_key
    >>> key
    <draws key of a trial, fingerprint 22f1950bf95c8fa9…>
    >>> key_words(key)
    array([ 9809271375926733873, 12786472655899818099], dtype=uint64)
    """

    what = "draws key of a trial"


class IdentifiersKey(_Key):
    """The key that turns identifiers into pseudonyms."""

    what = "identifiers key of a trial"

    def pseudonym(self, identifier: str) -> str:
        """Return the pseudonym of a participant: 32 hexadecimal digits.

        Identifiers that look the same are the same: composed or not ("é"), and with or without blanks around. Case
        counts: "Maria" is not "maria".
        """
        return self._derived(_normal(identifier).encode())[:16].hex()


def _normal(identifier: object) -> str:
    """An identifier composed (NFC) and trimmed; an error does not repeat it, because messages end up in logs."""
    wanted = f"it must be a text of 1 to {_MOST_CHARACTERS} characters"
    if not isinstance(identifier, str):
        raise ValueError(f"an identifier has the type {type(identifier).__name__}; {wanted}")
    # Composing makes a text shorter by a small factor only, and a very long one is not worth it.
    short = len(identifier) <= 10 * _MOST_CHARACTERS
    found = unicodedata.normalize("NFC", identifier).strip(_BLANKS) if short else identifier
    if not 1 <= len(found) <= _MOST_CHARACTERS:
        raise ValueError(f"an identifier has {len(found)} characters; {wanted}")
    for i, c in enumerate(found):
        if 0xD800 <= ord(c) <= 0xDFFF:
            raise ValueError(f"character {i} of an identifier is half of a surrogate pair; it must be valid Unicode")
        if not c.isprintable() or _UNSEEN.match(c):
            what = f"character {i} of an identifier is U+{ord(c):04X}"
            raise ValueError(f"{what}; it must be one that can be seen: no control or zero-width sign")
    return found


class Secret(_Key):
    """The secret of a trial: 32 random bytes, in a file that must be backed up.

    Without it no new request can be matched to a participant.

    Examples
    --------
    >>> secret = Secret.from_seed(1)
    >>> secret
    <secret of a trial, fingerprint b797730c2f2e7d27…>
    >>> secret.pseudonym("maria@example.org")
    '6d3b6b3c35c89864d29cef402bc1b91f'
    """

    what = "secret of a trial"

    @classmethod
    def create(cls) -> Secret:
        """Make a new secret from the randomness of the operating system."""
        return cls(secrets.token_bytes(_BYTES))

    @classmethod
    def from_seed(cls, seed: int | str) -> Secret:
        """Derive a secret from a seed, for tests and simulations: it is as easy to guess as the seed."""
        return cls(hashlib.sha256(f"lacuna secret from the seed {seed}".encode()).digest())

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read the secret from its file, which nobody but its owner may be able to read."""
        try:
            mode = Path(path).stat().st_mode & 0o777
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        if mode & 0o077:
            raise ValueError(f"{path} is open to other users (mode {mode:04o}); close it with: chmod 600 {path}")
        return super().read(path)

    @cached_property
    def draws_key(self) -> DrawsKey:
        """The key of the draws, which may be published after the trial."""
        return DrawsKey(self._derived(b"lacuna draws"))

    @cached_property
    def identifiers_key(self) -> IdentifiersKey:
        """The key of the identifiers, which may never be published."""
        return IdentifiersKey(self._derived(b"lacuna identifiers"))

    def pseudonym(self, identifier: str) -> str:
        """Return the pseudonym of a participant: 32 hexadecimal digits."""
        return self.identifiers_key.pseudonym(identifier)


def words(pseudonym: str) -> NDArray[np.uint64]:
    """Convert a pseudonym to the two counter words of its draws, little-endian.

    Examples
    --------
    >>> words("01000000000000000200000000000000")
    array([1, 2], dtype=uint64)
    """
    if not isinstance(pseudonym, str) or re.fullmatch(r"[0-9a-f]{32}", pseudonym) is None:
        raise ValueError(f"the pseudonym is {shown(pseudonym)}; it must be 32 hexadecimal digits, in small letters")
    return _two_words(bytes.fromhex(pseudonym))


def key_words(key: DrawsKey) -> NDArray[np.uint64]:
    """Convert the first 16 bytes of the draws key to the two key words of Philox, little-endian."""
    return _two_words(key.value[:16])


def _two_words(content: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(content, dtype="<u8").astype(np.uint64)
