import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna.kernels.streams import STREAM_NAMES, Stream, StreamName, draw


def numbers(stream: Stream, n: int) -> list[float]:
    return [stream.next() for _ in range(n)]


@given(seed=st.integers(0, 2**128), name=st.sampled_from(STREAM_NAMES))
def test_a_stream_is_a_function_of_seed_and_name(seed: int, name: StreamName) -> None:
    assert numbers(Stream(seed, name), 20) == numbers(Stream(seed, name), 20)


def test_the_four_streams_of_a_seed_and_those_of_two_seeds_share_no_number() -> None:
    assert STREAM_NAMES == ("world", "missingness", "imputation", "exploration", "noise")
    drawn = {(seed, name): set(numbers(Stream(seed, name), 1000)) for seed in (0, 1) for name in STREAM_NAMES}
    assert all(len(values) == 1000 for values in drawn.values())
    assert all(one.isdisjoint(other) for one, other in combinations(drawn.values(), 2))


def test_the_numbers_are_those_of_numpys_spawned_generator() -> None:
    key = np.random.SeedSequence(7, spawn_key=(STREAM_NAMES.index("imputation"),))
    assert numbers(Stream(7, "imputation"), 50) == np.random.Generator(np.random.PCG64(key)).random(50).tolist()


@given(position=st.integers(0, 20_000), more=st.integers(0, 50))
def test_a_position_can_be_saved_and_restored(position: int, more: int) -> None:
    stream = Stream(3, "world")
    stream.need(position)
    stream.uniforms.cursor[0] += position
    assert stream.position == position
    later = Stream(3, "world", position=position)
    assert later.position == position
    assert numbers(stream, more) == numbers(later, more)
    assert stream.position == later.position == position + more


@given(needs=st.lists(st.tuples(st.integers(0, 3000), st.floats(0, 1)), max_size=12))
def test_how_the_blocks_are_filled_changes_no_number(needs: list[tuple[int, float]]) -> None:
    stream, plain = Stream(5, "exploration"), Stream(5, "exploration")
    reference = plain.need(40_000).block
    used = 0
    for n, share in needs:
        uniforms = stream.need(n)
        assert stream.ready >= n
        for _ in range(int(n * share) // 10):
            assert draw(uniforms) == reference[used]
            used += 1
        assert stream.position == used


def test_numbers_are_uniform_on_0_to_1() -> None:
    values = Stream(11, "missingness").need(100_000).block[:100_000]
    n = values.shape[0]
    assert values.min() >= 0.0
    assert values.max() < 1.0
    assert abs(values.mean() - 0.5) < 4 * np.sqrt(1 / 12 / n)
    counts = np.histogram(values, bins=20, range=(0, 1))[0]
    assert (np.abs(counts - n / 20) < 4.5 * np.sqrt(n * 0.05 * 0.95)).all()


def test_a_stream_says_where_it_is() -> None:
    stream = Stream(4, "world")
    stream.next()
    assert repr(stream) == "Stream(seed=4, name='world', position=1)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, "world"), "seed is -1; it must be a whole number, 0 or larger"),
        ((1.5, "world"), "seed is 1.5; it must be a whole number, 0 or larger"),
        ((True, "world"), "seed is True; it must be a whole number, 0 or larger"),
        ((None, "world"), "seed is None; it must be a whole number, 0 or larger"),
        ((0, "wrld"), "no stream is called 'wrld'; there are world, missingness, imputation, exploration"),
        ((0, "world", -1), "position is -1; it must be 0 or larger"),
    ],
)
def test_wrong_values_are_refused_with_a_sentence(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Stream(*arguments)
