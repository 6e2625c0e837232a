"""Edits of saved files: of the header, of the arrays, of the bytes; all sealed anew, so that only reading can tell."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import EVIDENCE, Q_TABLES, UPDATES, VOTES

TAIL = len("sha256 ") + 64 + 1

WHOLE = (0, 1, -1, 2, 3, 7, 64, 1000, 2**31, 2**32, 2**52, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
BROKEN = (0.0, -0.0, 0.5, 1.0, 2.5, 5e-324, 1e-300, 1e100, 1e103, 1.7e308, -1.7e308, np.nan, np.inf, -np.inf)
WORDS = (
    *METHODS, *VOTES, *UPDATES, *Q_TABLES, *EVIDENCE,
    "new", "ready", "acted", "qmdp", "", "1", "\n", "\ud800", "x" * 5000,
)  # fmt: skip
STRANGE: tuple[Any, ...] = (
    None, True, False, [], {}, [0], [[]], {"a": 1}, 10**400, -(10**400), 2**63, 2**64, 2**128, 2**130
)  # fmt: skip


@dataclass
class File:
    """A saved file taken apart."""

    first: bytes
    described: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, body: bytes) -> File:
        first, line, raw = body[:-TAIL].split(b"\n", 2)
        described = json.loads(line)
        arrays, offset = {}, 0
        for name, (dtype, shape) in described["arrays"].items():
            array = np.frombuffer(raw, dtype, int(np.prod(shape)), offset).reshape(shape).copy()
            arrays[name], offset = array, offset + array.nbytes
        return cls(first, described, arrays)

    @property
    def header(self) -> Any:
        return self.described["header"]

    @property
    def agent(self) -> Any:
        """The part of the header that is the agent's."""
        return self.header.get("agent", self.header)

    def body(self) -> bytes:
        """The file put together again, its index made from the arrays."""
        index = {name: [str(array.dtype), list(array.shape)] for name, array in self.arrays.items()}
        line = json.dumps(self.described | {"arrays": index}).encode()
        raw = b"".join(array.tobytes() for array in self.arrays.values())
        return sealed(b"\n".join([self.first, line, raw]))


def sealed(content: bytes) -> bytes:
    """A file with the checksum that its content has."""
    return content + b"sha256 " + hashlib.sha256(content).hexdigest().encode() + b"\n"


def edited(body: bytes, rng: Random) -> bytes:
    """A file after one, two or three edits."""
    file = File.of(body)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        # An edit before may have taken away what this one would change.
        with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            rng.choices([edit for edit, _ in EDITS], [share for _, share in EDITS])[0](file, rng)
    body = file.body()
    for edit, share in ((edit_index, 0.05), (edit_bytes, 0.05)):
        if rng.random() < share:
            body = edit(body, rng)
    return body


def number_near(value: Any, rng: Random) -> Any:
    """Another number, often not far from the one that was there."""
    if isinstance(value, float):
        return rng.choice((*BROKEN, value / 2, value * 2, -value, value + 1, np.floor(value).item()))
    return rng.choice((*WHOLE, value - 1, value + 1, value * 2, -value))


# --- the header ------------------------------------------------------------------------------------------------------


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a tree of JSON."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *places(value[key]))]


def change_header(file: File, rng: Random) -> None:
    tree = rng.choice((file.described["header"], file.described["header"], file.described))
    container, key = rng.choice(places(tree))
    old = container[key]
    near = isinstance(old, int | float) and rng.random() < 0.6
    container[key] = number_near(old, rng) if near else rng.choice((*WHOLE, *BROKEN, *WORDS, *STRANGE))


def change_settings(file: File, rng: Random) -> None:
    settings = file.agent["settings"]
    name = rng.choice(list(settings))
    choices: dict[str, tuple[Any, ...]] = {
        "method": tuple(METHODS),
        "vote": VOTES,
        "update": UPDATES,
        "evidence": EVIDENCE,
        "K": (None, 1, 2, 3, 10, 10_000),
        "budget": (None, 0, 1, 7, 1000),
        "cycles": (None, 1, 2, 100),
        "q_table": Q_TABLES,
    }
    settings[name] = rng.choice(choices.get(name, (None, 0.0, 1.0, 5e-324, 1e-300, 0.3, 1e9)))


def change_keys(file: File, rng: Random) -> None:
    containers = [file.described, file.header, *(c for c, _ in places(file.header) if isinstance(c, dict))]
    container = rng.choice(containers)
    if container and rng.random() < 0.7:
        del container[rng.choice(list(container))]
    else:
        container[rng.choice(WORDS)] = rng.choice(STRANGE)


def change_moment(file: File, rng: Random) -> None:
    file.agent["phase"] = rng.choice(("new", "ready", "acted"))
    file.agent["action"] = rng.choice((-1, 0, 1, 2))
    if "place" in file.arrays:
        file.arrays["place"][:1] = rng.choice((0, 1))


def change_steps(file: File, rng: Random) -> None:
    """As many steps as someone likes, in all places that tell of them."""
    steps = rng.choice((0, 1, 2**20, 2**52, 2**53 - 1, 2**53))
    file.agent["steps"] = steps
    if "plan_at" in file.arrays:
        file.arrays["plan_at"][:2] = steps
    if file.arrays.get("tally_sums", np.zeros(0)).size == 13:
        file.arrays["tally_sums"][:] = 0
        file.arrays["tally_sums"][[0, 8]] = steps
        for name in ("tally_actions", "tally_hidden", "tally_guesses", "tally_agreement"):
            file.arrays[name][...] = 0
        file.arrays["tally_actions"][:1] = file.arrays["tally_hidden"][:1] = steps
        file.arrays["curve"] = file.arrays["curve"][:0]


# --- the arrays ------------------------------------------------------------------------------------------------------


def change_entry(file: File, rng: Random) -> None:
    array = file.arrays[rng.choice([name for name, array in file.arrays.items() if array.size] or list(file.arrays))]
    if array.size:
        flat = array.reshape(-1)
        for _ in range(rng.choice((1, 1, 1, 5))):
            i = rng.randrange(flat.size)
            new = number_near(flat[i].item(), rng)
            flat[i] = new if array.dtype == np.float64 else np.int64(min(max(int(new), -(2**63)), 2**63 - 1))


def fill_array(file: File, rng: Random) -> None:
    array = file.arrays[rng.choice(list(file.arrays))]
    array[...] = rng.choice(BROKEN) if array.dtype == np.float64 else rng.choice(WHOLE)


def scatter_array(file: File, rng: Random) -> None:
    """Numbers that are fine by themselves, and extreme together."""
    array = file.arrays[rng.choice(("q_values", "q_values", *file.arrays))]
    least, most = (-1.7e308, 1.7e308) if array.dtype == np.float64 else (0, 3)
    array[...] = np.reshape([rng.choice((least, most, array.dtype.type(1))) for _ in range(array.size)], array.shape)


def resize_array(file: File, rng: Random) -> None:
    name = rng.choice(list(file.arrays))
    array = file.arrays[name]
    ways: tuple[Callable[[], NDArray[Any]], ...] = (
        lambda: array[:-1], lambda: array[:0], lambda: np.concatenate([array, array]), lambda: array.reshape(-1),
        lambda: array[..., None], lambda: array.T, lambda: np.repeat(array, 2, axis=0), lambda: array[::-1],
        lambda: array.astype(np.float64 if array.dtype == np.int64 else np.int64),
        lambda: np.concatenate([array, array[:1]]), lambda: np.zeros((0, 3), array.dtype), lambda: array[..., 0],
    )  # fmt: skip
    with np.errstate(all="ignore"):
        file.arrays[name] = np.ascontiguousarray(rng.choice(ways)())


def swap_arrays(file: File, rng: Random) -> None:
    one, other = rng.choice(list(file.arrays)), rng.choice(list(file.arrays))
    file.arrays[one], file.arrays[other] = file.arrays[other], file.arrays[one].copy()


def change_names(file: File, rng: Random) -> None:
    name = rng.choice(list(file.arrays))
    array = file.arrays[name]
    if rng.random() < 0.5 and len(file.arrays) > 1:
        del file.arrays[name]
    if rng.random() < 0.7:
        file.arrays[rng.choice(("", "S", "extra", "keys", "tally_sums"))] = array


def change_counts(file: File, rng: Random) -> None:
    """Rows that fit together and yet were never counted."""
    prefix = rng.choice(("", "component_", "factored_", "leads_"))
    names = [f"{prefix}{name}" for name in ("keys", "lengths", "codes", "units")]
    if not all(name in file.arrays and file.arrays[name].size for name in names):
        return
    keys, _, codes, units = (file.arrays[name] for name in names)
    way = rng.randrange(5)
    if way == 0:
        file.arrays[names[0]] = np.sort(keys + rng.choice((-1, 1, 5, 50)))
    elif way == 1:
        # Rows whose lengths add up to 2**64, that is to none, as soon as the sum wraps.
        file.arrays |= dict(zip(names, (np.arange(2048), np.full(2048, 2**53), codes[:0], units[:0]), strict=True))
    elif way == 2:
        units *= rng.choice((2, 2**20, 2**40, 2**50))
    elif way == 3:
        codes[:] = codes[::-1].copy()
    else:
        units[:] = rng.choice((1, 2**52 // max(units.size, 1), 2**53, 2**62))


EDITS: tuple[tuple[Callable[[File, Random], None], int], ...] = (
    (change_header, 6), (change_settings, 2), (change_keys, 2), (change_moment, 2), (change_steps, 2),
    (change_entry, 10), (fill_array, 3), (scatter_array, 2), (resize_array, 3), (swap_arrays, 2), (change_names, 2),
    (change_counts, 3),
)  # fmt: skip


# --- the bytes -------------------------------------------------------------------------------------------------------


def edit_bytes(body: bytes, rng: Random) -> bytes:
    content = bytearray(body[:-TAIL])
    for _ in range(rng.choice((1, 1, 3, 30))):
        content[rng.randrange(len(content))] = rng.randrange(256)
    if rng.random() < 0.2:
        content = content[: rng.randrange(len(content))]
    return sealed(bytes(content))


def edit_index(body: bytes, rng: Random) -> bytes:
    """Types and shapes that are not those of the arrays."""
    first, line, raw = body[:-TAIL].split(b"\n", 2)
    described = json.loads(line)
    index = described.get("arrays")
    if index:
        entry = index[rng.choice(list(index))]
        entry[0] = rng.choice((entry[0], "int64", "float64", "object", "<i4", "S8", "", None, []))
        shapes: list[Any] = [entry[1][::-1], [*entry[1], 1], [0], [], [-1], [2**62, 4], [0, 2**62], [1] * 80, 3, None]
        entry[1] = rng.choice([entry[1], *shapes])
    return sealed(b"\n".join([first, json.dumps(described).encode(), raw]))
