"""Random numbers without a state: each is a function of a key, a person, a time and a purpose.

Philox4x64-10 (Salmon et al. 2011) turns a counter of four words and a key of two into four words. The counter is

    (block, 4 t + purpose, person_0, person_1)        block = 1, 2, …

so the numbers of one decision do not depend on those of any other, and no order of arrival can move them. They are
those of ``np.random.Generator(np.random.Philox(counter=[0, 4 * t + purpose, *person], key=key))``, bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import kernel

IMPUTATION, CHOICE, FALLBACK = 0, 1, 2
"""What numbers are for. There is room for one more purpose, 3."""

_ROUNDS = 10
_FACTOR_0, _FACTOR_1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)

_HALF, _LOW_HALF, _EXTRA_BITS = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(11)

Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@kernel
def add_words(a: np.uint64, b: np.uint64) -> np.uint64:
    """The sum of two words modulo 2**64."""
    # a + b, in halves: outside the compiler NumPy warns of a sum that does not fit.
    low = (a & _LOW_HALF) + (b & _LOW_HALF)
    high = (a >> _HALF) + (b >> _HALF) + (low >> _HALF)
    return (high << _HALF) | (low & _LOW_HALF)


@kernel
def multiply_words(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The product of two words, as its high and its low word."""
    # No sum below exceeds a word: (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1.
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW_HALF, b >> _HALF, b & _LOW_HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (low & _LOW_HALF)


@kernel
def scramble(counter: Words, key_0: np.uint64, key_1: np.uint64) -> Words:
    """The four words that belong to a counter."""
    c_0, c_1, c_2, c_3 = counter
    for _ in range(_ROUNDS):
        high_0, low_0 = multiply_words(_FACTOR_0, c_0)
        high_1, low_1 = multiply_words(_FACTOR_1, c_2)
        c_0, c_1, c_2, c_3 = high_1 ^ c_1 ^ key_0, low_1, high_0 ^ c_3 ^ key_1, low_0
        key_0, key_1 = add_words(key_0, _WEYL_0), add_words(key_1, _WEYL_1)
    return c_0, c_1, c_2, c_3


@kernel
def fill_numbers(
    key: NDArray[np.uint64], person: NDArray[np.uint64], t: int, purpose: int, block: NDArray[np.float64]
) -> None:
    """Fill `block` with the first numbers in [0, 1) of this person, time and purpose.

    `key` and `person` have two words each; `t` is at least 0 and below 2**61.

    Examples
    --------
    >>> key, person, block = np.array([1, 2], np.uint64), np.array([3, 4], np.uint64), np.empty(5)
    >>> fill_numbers(key, person, 17, CHOICE, block)
    >>> numpys = np.random.Philox(counter=[0, 4 * 17 + CHOICE, 3, 4], key=[1, 2])
    >>> bool((block == np.random.Generator(numpys).random(5)).all())
    True
    """
    moment = np.uint64(4 * t + purpose)
    n = block.shape[0]
    for first in range(0, n, 4):
        words = scramble((np.uint64(first // 4 + 1), moment, person[0], person[1]), key[0], key[1])
        for j in range(min(4, n - first)):
            block[first + j] = float(words[j] >> _EXTRA_BITS) * 2.0**-53
