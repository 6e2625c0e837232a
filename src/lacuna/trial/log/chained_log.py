"""The log of a trial: events in canonical JSON, each bound to all before it by a chain of SHA-256.

``body_hash`` = SHA-256(body) and ``chain_n`` = SHA-256(chain_(n-1) ‖ body_hash_n), 32 zero bytes before event 0. The
chain is over hashes, so a body can be redacted and the rest still verifies. Write the last ``chain`` down elsewhere to
prove later that nothing before it was rewritten. An exported log is a file of JSON lines, one for each event:
``{"body":…,"body_hash":"…","chain":"…","seq":n}`` with the exact bytes of the body, or ``null`` if redacted.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from lacuna.files import open_regular, write_whole
from lacuna.validation import read_json, shown

MOST_BYTES = 1 << 24
"""The largest body, in bytes."""
MOST_IN_LOG = 1 << 36
"""The largest exported log, in bytes."""
DEEPEST = 16
"""How deep the lists and objects of a body may be nested, the body itself included."""

_HASH = 32
_NESTED = (dict, list, tuple)
_TEXT = frozenset({str})
_PLAIN = frozenset({str, int, float, bool, type(None)})
_LINE = re.compile(
    rb'\{"body":(.*),"body_hash":"([0-9a-f]{64})","chain":"([0-9a-f]{64})","seq":(0|[1-9][0-9]{0,17})\}\n', re.DOTALL
)
_LONGEST_LINE = MOST_BYTES + 256
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


class LogError(ValueError):
    """The log is damaged or edited, or the file is no log.

    Attributes
    ----------
    seq : int or None
        Number of the event at which the error was found; None if the file cannot be read at all.
    """

    def __init__(self, message: str, seq: int | None = None) -> None:
        super().__init__(message)
        self.seq = seq


class Head(NamedTuple):
    """The end of a log: the number of its last event, and the chain up to it."""

    seq: int
    chain: bytes


START = Head(-1, bytes(_HASH))
"""The end of an empty log."""


class Entry(NamedTuple):
    """An event as it is stored.

    Attributes
    ----------
    seq : int
        Its number; `begin` is 0.
    body : bytes or None
        Canonical JSON; None if it was redacted.
    body_hash : bytes
        SHA-256 of the body.
    chain : bytes
        SHA-256 of the previous chain and `body_hash`.
    """

    seq: int
    body: bytes | None
    body_hash: bytes
    chain: bytes

    @property
    def head(self) -> Head:
        """The end of a log that ends with this event."""
        return Head(self.seq, self.chain)


def canonical(body: dict[str, Any]) -> bytes:
    """Write a body as canonical JSON: UTF-8, sorted keys, no spaces, shortest floats, no NaN.

    Examples
    --------
    >>> canonical({"t": 17, "prob": [0.75, 0.25], "mood": None, "at home": True})
    b'{"at home":true,"mood":null,"prob":[0.75,0.25],"t":17}'
    >>> canonical({"u": float("nan")})
    Traceback (most recent call last):
    ValueError: the body cannot be written as JSON: Out of range float values are not JSON compliant
    """
    if not isinstance(body, dict):
        raise ValueError(f"the body is {shown(body)}; it must be an object")
    _check_nesting(body)
    return _within_limits(encode(body), body)


def _within_limits(content: bytes, body: dict[str, Any]) -> bytes:
    """Refuse a body that is too long or nested too deep to be read back."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"the body has {len(content)} bytes; it may have {MOST_BYTES}")
    # A body with at most `DEEPEST` brackets cannot be nested deeper than that.
    if content.count(b"[") + content.count(b"{") > DEEPEST:
        _check_nesting(body)
    return content


def parse(body: bytes) -> dict[str, Any]:
    """Read a body back if these bytes are what `canonical` would write, or raise an error.

    Examples
    --------
    >>> parse(b'{"kind":"note","t":17}')
    {'kind': 'note', 't': 17}
    >>> parse(b'{"t":17,"t":18}')
    Traceback (most recent call last):
    ValueError: the body has the key 't' twice
    """
    content = _decode(body)
    if encode(content) != body:
        # The first decoder keeps only one of two equal keys; the strict one names them.
        read_json("the body", body)
        raise ValueError("the body is not canonical JSON, with sorted keys, no spaces and shortest floats")
    return content


def _decode(body: bytes) -> dict[str, Any]:
    """Read a body, canonical or not."""
    if len(body) > MOST_BYTES:
        raise ValueError(f"the body has {len(body)} bytes; it may have {MOST_BYTES}")
    try:
        content = _DECODER.decode(body.decode())
    except RecursionError:
        raise ValueError(f"the body is nested more than {DEEPEST} deep") from None
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"the body is {shown(content)}; it must be an object")
    _within_limits(body, content)
    return content


def _check_nesting(value: dict[Any, Any] | list[Any] | tuple[Any, ...], depth: int = 1) -> None:
    """Refuse deep nesting, and keys that are not text: JSON would turn them into text."""
    if depth > DEEPEST:
        raise ValueError(f"the body is nested more than {DEEPEST} deep")
    values: Iterable[Any] = value
    if isinstance(value, dict):
        if not _TEXT.issuperset(map(type, value)):
            for key in value:
                if not isinstance(key, str):
                    raise ValueError(f"the body has the key {shown(key)}; a key must be text")
        values = value.values()
    for one in values:
        # The cheap test first: most values are plain.
        if type(one) not in _PLAIN and isinstance(one, _NESTED):
            _check_nesting(one, depth + 1)


def encode(body: dict[str, Any]) -> bytes:
    """Write a body as `canonical` does, without its checks of keys and nesting."""
    try:
        return _ENCODER.encode(body).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"the body cannot be written as JSON: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def link(previous_chain: bytes, body_hash: bytes) -> bytes:
    """Return the chain after an event: SHA-256(previous ‖ body_hash)."""
    return sha256(previous_chain + body_hash).digest()


def make_entry(head: Head, body: dict[str, Any]) -> Entry:
    """Return the event that continues a log; the body must hold its number, kind and time, and its keys be text.

    Examples
    --------
    >>> begin = make_entry(START, {"seq": 0, "kind": "begin", "at": "2026-11-16T18:00:02.113Z"})
    >>> begin.seq, begin.body, begin.chain.hex()[:8]
    (0, b'{"at":"2026-11-16T18:00:02.113Z","kind":"begin","seq":0}', '7a2f87d6')
    """
    content = _within_limits(encode(body), body)
    digest = sha256(content).digest()
    if wrong := _wrong_name(body, head.seq + 1):
        raise LogError(f"event {head.seq + 1}: {wrong}", head.seq + 1)
    return Entry(head.seq + 1, content, digest, link(head.chain, digest))


def seal(head: Head, bodies: Iterable[dict[str, Any]]) -> list[Entry]:
    """Return the events that continue a log; each body must hold its number, kind and time."""
    entries = []
    for body in bodies:
        entries.append(make_entry(head, body))
        head = entries[-1].head
    return entries


def check(entry: Entry) -> dict[str, Any] | None:
    """Check an event against its hash and number, and return its parsed body; None if it was redacted."""
    return _checked_body(entry, parse)


def check_all_but_form(entry: Entry) -> dict[str, Any] | None:
    """As `check`, but the body need not be canonical JSON: for callers that compare its bytes."""
    return _checked_body(entry, _decode)


def _checked_body(entry: Entry, read: Callable[[bytes], dict[str, Any]]) -> dict[str, Any] | None:
    seq, body, body_hash, chain = entry
    if not all(isinstance(value, bytes) and len(value) == _HASH for value in (body_hash, chain)):
        raise LogError(f"event {seq}: its hash or its chain is not {_HASH} bytes long", seq)
    if body is None:
        return None
    if not isinstance(body, bytes) or sha256(body).digest() != body_hash:
        raise LogError(f"{describe(entry)}: its body does not match its hash", seq)
    try:
        content = read(body)
    except ValueError as error:
        raise LogError(f"event {seq}: {error}", seq) from None
    if wrong := _wrong_name(content, seq):
        raise LogError(f"{describe(entry, content)}: {wrong}", seq)
    return content


def _wrong_name(content: dict[str, Any], seq: int) -> str | None:
    own = content.get("seq")
    if type(own) is not int or own != seq:
        return f"its body has the number {shown(own)}"
    for key in ("kind", "at"):
        if not isinstance(content.get(key), str):
            return f"its body says no {key!r}"
    return None


def describe(entry: Entry, content: dict[str, Any] | None = None) -> str:
    """Name an event as messages do, e.g. ``event 1042 (participant 9f3c…, t 17)``."""
    if content is None and isinstance(entry.body, bytes):
        try:
            content = json.loads(entry.body.decode(errors="replace"))
        except (ValueError, RecursionError):
            content = None
    known = content if isinstance(content, dict) else {}
    p, t = known.get("p"), known.get("t")
    parts = [f"participant {p[:4]}…"] if isinstance(p, str) and p[:4].isalnum() else []
    parts += [f"t {t}"] if type(t) is int and abs(t) < 1 << 63 else []
    return f"event {entry.seq}" + (f" ({', '.join(parts)})" if parts else "")


def checked(
    entries: Iterable[Entry], after: Head = START, head: Head | None = None,
    look: Callable[[Entry], dict[str, Any] | None] = check,
) -> Iterator[tuple[Entry, dict[str, Any] | None]]:  # fmt: skip
    """Yield every event with its parsed body, in order; raise an error at the first that is wrong.

    Parameters
    ----------
    entries : Iterable of Entry
        The events that follow `after`.
    after : Head
        The end of the log before them; by default they start at event 0.
    head : Head, optional
        An earlier end of the log. The log must reach it, and have this chain there.
    look : Callable
        The check of each event: `check`, or `check_all_but_form`.

    Yields
    ------
    tuple
        The event, and its parsed body; None if it was redacted. Whether the log holds a `redact` event for it is not
        checked.
    """
    seq, chain = after
    for entry in entries:
        seq += 1
        if entry.seq != seq:
            raise LogError(f"event {seq} is missing: event {shown(entry.seq)} comes in its place", seq)
        content = look(entry)
        if link(chain, entry.body_hash) != entry.chain:
            raise LogError(f"{describe(entry, content)}: the chain is broken before it", seq)
        chain = entry.chain
        if head is not None and seq == head.seq and chain != head.chain:
            raise LogError(f"{describe(entry, content)}: the chain there is not the one that was noted", seq)
        yield entry, content
    if head is not None and seq < head.seq:
        raise LogError(f"event {seq + 1} is missing: the log ends before it, not with event {head.seq}", seq + 1)


def verify(entries: Iterable[Entry], after: Head = START, head: Head | None = None) -> Iterator[Entry]:
    """Yield the same events as long as the chain holds, as `checked` does.

    Examples
    --------
    >>> begin = make_entry(START, {"seq": 0, "kind": "begin", "at": "2026-11-16T18:00:02.113Z"})
    >>> note = make_entry(begin.head, {"seq": 1, "kind": "note", "at": "2026-11-16T18:00:02.115Z"})
    >>> [entry.seq for entry in verify([begin, note])]
    [0, 1]
    >>> list(verify([begin._replace(body=b"{}"), note]))
    Traceback (most recent call last):
    lacuna.trial.log.chained_log.LogError: event 0: its body does not match its hash
    """
    for entry, _ in checked(entries, after, head):
        yield entry


def write_log(path: str | os.PathLike[str], entries: Iterable[Entry]) -> None:
    """Write a log from event 0 on as JSON lines, whole or not at all; every event is verified on the way."""
    write_whole(Path(path), map(_line, verify(entries)))


def _line(entry: Entry) -> bytes:
    body = b"null" if entry.body is None else entry.body
    hashes = f',"body_hash":"{entry.body_hash.hex()}","chain":"{entry.chain.hex()}","seq":{entry.seq}}}\n'
    return b'{"body":' + body + hashes.encode()


def read_log(path: str | os.PathLike[str], head: Head | None = None) -> Iterator[Entry]:
    """Read and verify a log that `write_log` wrote; raise an error at the first wrong line.

    A file cut after a whole line is a valid shorter log: only `head` reveals that events are missing.

    Parameters
    ----------
    path : path
        The file.
    head : Head, optional
        An earlier end of the log. The log must reach it, and have this chain there.
    """
    with open_log(path) as file:
        try:
            yield from read_lines(file, path, head)
        except OSError as error:
            raise LogError(f"{path} cannot be read: {error.strerror}") from error


def open_log(path: str | os.PathLike[str], most: int = MOST_IN_LOG) -> BinaryIO:
    """Open an exported log of at most so many bytes."""
    try:
        return open_regular(path, most)
    except ValueError as error:
        raise LogError(str(error)) from error


def read_lines(file: BinaryIO, path: str | os.PathLike[str], head: Head | None = None) -> Iterator[Entry]:
    """Read a log as `read_log` does, from an open file or from bytes in memory; messages call it `path`."""
    try:
        yield from verify(_entries(file), head=head)
    except LogError as error:
        line = "" if error.seq is None else f", line {error.seq + 1}"
        raise LogError(f"{path}{line}: {error}", error.seq) from None


def _entries(file: BinaryIO, seq: int = 0) -> Iterator[Entry]:
    """Read lines, the first of which should be event `seq`."""
    first = seq
    while line := file.readline(_LONGEST_LINE):
        if not line.endswith(b"\n"):
            why = "ends in the middle of it" if len(line) < _LONGEST_LINE else f"has more than {MOST_BYTES} bytes in it"
            raise LogError(f"event {seq}: the file {why}", seq)
        found = _LINE.fullmatch(line)
        if found is None:
            raise LogError(f"event {seq}: this is not a line of a log of lacuna", seq)
        body, body_hash, chain, number = found.groups()
        text = None if body == b"null" else body
        yield Entry(int(number), text, bytes.fromhex(body_hash.decode()), bytes.fromhex(chain.decode()))
        seq += 1
    if seq == first:
        raise LogError(f"event {seq} is missing: the file is empty", seq)
