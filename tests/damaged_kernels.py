"""A compiled kernel in a cache is damaged at random, and asked for again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from random import Random
from unittest.mock import patch

from lacuna.kernels import cache
from lacuna.kernels.compiled import kernel


def twice(x: int) -> int:
    return 2 * x


def cut(content: bytes, rng: Random) -> bytes:
    return content[: rng.randrange(len(content))]


def garble(content: bytes, rng: Random) -> bytes:
    first, length = rng.randrange(len(content)), rng.choice((1, 1, 4, 64, 1000))
    return content[:first] + rng.randbytes(length) + content[first + length :]


def double(content: bytes, rng: Random) -> bytes:
    first = rng.randrange(len(content))
    return content[:first] + content[first // 2 :]


def other(content: bytes, rng: Random) -> bytes:
    return rng.choice((b"", b"\0" * len(content), b"\x80\x05N.", rng.randbytes(len(content)), content[::-1]))


DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (cut, garble, double, other)


def damage_and_use(rng: Random, folder: Path) -> str:
    """What is wrong with what came of it; empty if nothing is."""
    with patch.object(cache, "cache_folders", lambda: (folder,)), redirect_stderr(StringIO()) as said:
        kernel(twice)(21)
        path = next(path for path in (folder / "kernels").iterdir() if path.suffix != ".damaged")
        content = path.read_bytes()
        damaged = rng.choice(DAMAGES)(content, rng)
        path.write_bytes(damaged)
        fresh = kernel(twice)
        answer = fresh(21)
    lines = said.getvalue().splitlines()
    if answer != 42:
        return f"2 * 21 is {answer}"
    if damaged != content and (len(lines) != 1 or "is damaged: it is set aside as" not in lines[0]):
        return f"{len(lines)} lines were said: {lines[:3]}"
    return ""
