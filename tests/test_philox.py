"""Counter-based random numbers: NumPy's Philox, bit for bit, from nothing but key, person, time and purpose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray

from lacuna.kernels.philox import CHOICE, FALLBACK, IMPUTATION, add_words, fill_numbers, multiply_words, scramble

words = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1]))
pairs = st.tuples(words, words)


def numbers(key: tuple[int, int], person: tuple[int, int], t: int, purpose: int, n: int) -> NDArray[np.float64]:
    block = np.full(n, np.nan)
    fill_numbers(np.array(key, dtype=np.uint64), np.array(person, dtype=np.uint64), t, purpose, block)
    return block


def numpys(key: tuple[int, int], person: tuple[int, int], t: int, purpose: int, n: int) -> NDArray[np.float64]:
    counter, seed = np.array([0, 4 * t + purpose, *person], dtype=np.uint64), np.array(key, dtype=np.uint64)
    return np.random.Generator(np.random.Philox(counter=counter, key=seed)).random(n)


@given(pairs, pairs, st.integers(0, 2**61 - 1), st.integers(0, 3), st.integers(0, 19))
@effort(max_examples=400)
def test_the_numbers_are_those_of_numpy(
    key: tuple[int, int], person: tuple[int, int], t: int, purpose: int, n: int
) -> None:
    assert numbers(key, person, t, purpose, n).tobytes() == numpys(key, person, t, purpose, n).tobytes()


def test_a_known_answer_of_the_published_generator() -> None:
    ones = np.uint64(2**64 - 1)
    published = ["87b092c3013fe90b", "438c3c67be8d0224", "9cc7d7c69cd777b6", "a09caebf594f0ba0"]
    assert [f"{int(word):016x}" for word in scramble((ones, ones, ones, ones), ones, ones)] == published


def test_a_shorter_block_is_the_beginning_of_a_longer_one() -> None:
    whole = numbers((1, 2), (3, 4), 5, CHOICE, 17)
    for n in range(17):
        assert numbers((1, 2), (3, 4), 5, CHOICE, n).tobytes() == whole[:n].tobytes()


def test_every_argument_gives_other_numbers() -> None:
    cases = {((1, 2), (3, 4), t, purpose) for t in range(5) for purpose in (IMPUTATION, CHOICE, FALLBACK)}
    cases |= {((2, 1), (3, 4), 0, 0), ((1, 2), (4, 3), 0, 0), ((1, 2), (3, 5), 0, 0), ((1, 3), (3, 4), 0, 0)}
    found = [tuple(numbers(*case, 4)) for case in cases]
    assert len(set(found)) == len(cases) == 19


@given(words, words)
def test_words_are_added_and_multiplied_exactly(a: int, b: int) -> None:
    high, low = multiply_words(np.uint64(a), np.uint64(b))
    assert (int(high) << 64) + int(low) == a * b
    assert int(add_words(np.uint64(a), np.uint64(b))) == (a + b) % 2**64


def some_numbers() -> list[str]:
    """Numbers of many keys, persons and times, as texts."""
    rng = np.random.default_rng(4)
    found = []
    for n in range(60):
        key, person = rng.integers(0, 2**64, (2, 2), dtype=np.uint64)
        block = np.empty(n % 9)
        fill_numbers(key, person, int(rng.integers(0, 2**40)), n % 4, block)
        found += [x.hex() for x in block.tolist()]
    return found


def test_equal_without_the_compiler_and_without_a_warning() -> None:
    program = "import json; from test_philox import some_numbers; print(json.dumps(some_numbers()))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=Path(__file__).parent,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == some_numbers()
