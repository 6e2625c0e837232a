"""One seed, and named and independent streams of uniform numbers whose position can be saved and restored.

A kernel never owns randomness: it reads numbers from a block that NumPy filled beforehand, at a cursor. So it is a
deterministic function of its arrays, and runs the same compiled or not. The random state of a run is a seed and four
stream positions.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import kernel

StreamName = Literal["world", "missingness", "imputation", "exploration", "noise"]
STREAM_NAMES: tuple[StreamName, ...] = get_args(StreamName)

MAX_SEED = 2**128
"""Room for any number that NumPy or `secrets` give for a seed, and short enough to be written into a file."""

MAX_POSITION = 2**80
"""More numbers than any run uses; a stream begins again after 2**128."""

_BLOCK = 1024


class Uniforms(NamedTuple):
    """Numbers in [0, 1) waiting to be used: ``block[cursor[0]]`` is the next one."""

    block: NDArray[np.float64]
    cursor: NDArray[np.int64]


@kernel
def draw(uniforms: Uniforms) -> float:
    """Take the next number; the caller has made sure that there is one."""
    u: float = uniforms.block[uniforms.cursor[0]]
    uniforms.cursor[0] += 1
    return u


@kernel
def draw_many(n: int, uniforms: Uniforms) -> int:
    """Take the next `n` numbers at once; returns where in the block they begin."""
    first: int = uniforms.cursor[0]
    uniforms.cursor[0] += n
    return first


class Stream:
    """A named stream of uniform numbers, a function of its seed and of how many were used.

    Parameters
    ----------
    seed
        A whole number from 0 to 2**128; the same for all streams of a run.
    name
        ``"world"``, ``"missingness"``, ``"imputation"``, ``"exploration"`` or ``"noise"``: each name gives an
        independent stream, so what one part of a run consumes never moves another part.
    position
        How many numbers were used before.

    Examples
    --------
    >>> stream = Stream(7, "world")
    >>> first, second = stream.next(), stream.next()
    >>> stream.position
    2
    >>> Stream(7, "world", position=1).next() == second
    True
    """

    __slots__ = ("_generator", "_start", "name", "seed", "uniforms")

    def __init__(self, seed: int, name: StreamName, position: int = 0) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"seed is {seed!r}; it must be a whole number, 0 or larger")
        if seed > MAX_SEED:
            raise ValueError(f"seed has {int(seed).bit_length()} bits; it must be a whole number between 0 and 2**128")
        if name not in STREAM_NAMES:
            raise ValueError(f"no stream is called {name!r}; there are {', '.join(STREAM_NAMES)}")
        if position < 0:
            raise ValueError(f"position is {position}; it must be 0 or larger")
        self.seed = int(seed)
        self.name: StreamName = name
        key = np.random.SeedSequence(self.seed, spawn_key=(STREAM_NAMES.index(name),))
        # PCG64 spends exactly one step of its state per double, so a position is reached by one jump.
        self._generator = np.random.Generator(np.random.PCG64(key).advance(position))
        self._start = position
        self.uniforms = Uniforms(np.empty(0), np.zeros(1, dtype=np.int64))

    @property
    def position(self) -> int:
        """How many numbers were used so far."""
        return self._start + int(self.uniforms.cursor[0])

    @property
    def ready(self) -> int:
        """How many numbers are waiting in the block."""
        return int(self.uniforms.block.shape[0] - self.uniforms.cursor[0])

    def need(self, n: int) -> Uniforms:
        """Make sure that at least `n` numbers are waiting, and return them."""
        return self.uniforms if self.ready >= n else self.fill(max(n, _BLOCK))

    def fill(self, n: int) -> Uniforms:
        """Make sure that `n` numbers or more are waiting, replacing those used, and return them."""
        block, cursor = self.uniforms
        used, left = int(cursor[0]), self.ready
        # A block is used again and again: fresh memory would cost as much as filling it.
        fresh = block if block.shape[0] >= n else np.empty(n)
        fresh[:left] = block[used:].copy()
        self._generator.random(out=fresh[left:])
        self._start += used
        cursor[0] = 0
        self.uniforms = Uniforms(fresh, cursor)
        return self.uniforms

    def next(self) -> float:
        """Take one number."""
        return float(draw(self.need(1)))

    def __repr__(self) -> str:
        return f"Stream(seed={self.seed}, name={self.name!r}, position={self.position})"
