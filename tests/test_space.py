import math
import re
import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna.kernels.codes import decode, pack, unpack
from lacuna.kernels.space import MISSING, Space

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=5).map(tuple)


@st.composite
def a_space_and_a_state(draw: st.DrawFn) -> tuple[Space, int]:
    space = Space(draw(SIZES))
    return space, draw(st.integers(0, space.n_states - 1))


@st.composite
def a_space_and_an_observation(draw: st.DrawFn) -> tuple[Space, list[int]]:
    space = Space(draw(SIZES))
    return space, [draw(st.integers(MISSING, size - 1)) for size in space.sizes]


@given(a_space_and_a_state())
def test_decoding_undoes_encoding(case: tuple[Space, int]) -> None:
    space, s = case
    values = space.decode(s)
    assert space.encode(values) == s
    assert values == tuple(int(v) for v in np.unravel_index(s, space.sizes))


@given(a_space_and_a_state())
def test_unpacking_undoes_packing(case: tuple[Space, int]) -> None:
    space, s = case
    assert unpack(pack(s, space.layout), space.layout) == s


@given(SIZES)
def test_the_layout_is_that_of_its_definition(sizes: tuple[int, ...]) -> None:
    layout, d = Space(sizes).layout, len(sizes)
    bits = [int(mask).bit_count() for mask in layout.masks]
    assert all(2**width >= size > 2 ** (width - 1) or size == 1 for width, size in zip(bits, sizes, strict=True))
    assert layout.sizes.tolist() == list(sizes)
    assert layout.strides.tolist() == [math.prod(sizes[j + 1 :]) for j in range(d)]
    assert layout.shifts.tolist() == [sum(bits[j + 1 :]) for j in range(d)]
    assert layout.offsets.tolist() == [sum(sizes[:j]) for j in range(d)]


def test_a_space_of_very_many_components_takes_little() -> None:
    tracemalloc.start()
    try:
        space = Space((2, 1) * 5 + (1,) * 100_000 + (2,))
        assert space.layout.strides[0] == 2**5
        assert unpack(pack(space.n_states - 1, space.layout), space.layout) == space.n_states - 1 == 2**6 - 1
        assert tracemalloc.get_traced_memory()[1] < 50 * 10**6
    finally:
        tracemalloc.stop()


def test_codes_differ_and_hold_each_component_in_its_own_bits() -> None:
    space = Space((3, 1, 5, 2))
    layout = space.layout
    codes = [pack(s, layout) for s in range(space.n_states)]
    assert len(set(codes)) == space.n_states
    assert sum(int(mask) for mask in layout.masks) == int(np.bitwise_or.reduce(layout.masks)), "bits do not overlap"
    for s, code in enumerate(codes):
        values = [(code & int(m)) >> int(shift) for m, shift in zip(layout.masks, layout.shifts, strict=True)]
        assert tuple(values) == space.decode(s)


@given(a_space_and_an_observation())
def test_agreeing_states_are_those_that_match_what_was_seen(case: tuple[Space, list[int]]) -> None:
    space, observation = case
    truth = [
        space.encode(values)
        for values in product(*(range(n) for n in space.sizes))
        if all(o in (MISSING, v) for o, v in zip(observation, values, strict=True))
    ]
    observed = decode(np.array(observation), space.layout)
    assert [s for s in range(space.n_states) if pack(s, space.layout) & observed.bits == observed.seen] == truth
    assert (observed.n_agreeing, observed.complete) == (len(truth), MISSING not in observation)


def test_names_and_positions_of_components() -> None:
    space = Space((8, 8, 3), ("row", "column", "colour"))
    assert (space.d, space.n_states) == (3, 192)
    assert [space.component(which) for which in ("row", "colour", 1)] == [0, 2, 1]
    assert Space((2, 2)).names == ("x0", "x1")
    assert Space((2,)) == Space((2,), ("x0",))


SPACE = Space((8, 3), ("row", "colour"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Space(()), "a space needs at least one component, got none"),
        (lambda: Space((3, 0)), "component 1 has size 0; sizes must be at least 1"),
        (
            lambda: Space((2**21, 2**20)),
            f"component 1 with {2**20} values makes more than {2**40} states, too many for",
        ),
        (lambda: Space((1000,) * 100_000), "component 4 with 1000 values makes more than"),
        (
            lambda: Space((10**5000,)),
            f"component 0 with its values makes more than {2**40} states, too many for a table",
        ),
        (lambda: Space((2, 2), ("a",)), "1 names ('a',) for 2 components"),
        (lambda: Space((2, 2), ("a", "a")), "component names must differ, got ('a', 'a')"),
        (lambda: SPACE.component("depth"), "no component is called 'depth'; there are row, colour"),
        (lambda: SPACE.component(2), "component 2 does not exist; there are 0 to 1"),
        (lambda: SPACE.component(-1), "component -1 does not exist; there are 0 to 1"),
        (lambda: SPACE.encode((1,)), "1 values (1,) for 2 components ('row', 'colour')"),
        (lambda: SPACE.encode((8, 0)), "component row is 8; it must be between 0 and 7"),
        (lambda: SPACE.encode((0, -1)), "component colour is -1; it must be between 0 and 2"),
        (lambda: SPACE.decode(24), "state 24 does not exist; there are 0 to 23"),
        (lambda: SPACE.decode(-1), "state -1 does not exist; there are 0 to 23"),
    ],
)
def test_wrong_values_are_refused_with_a_sentence(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("sizes", [(2,) * 40, (3,) * 25, (5,) * 17, (2**40,)])
def test_the_largest_spaces_still_fit_into_a_code(sizes: tuple[int, ...]) -> None:
    space = Space(sizes)
    last = space.n_states - 1
    assert unpack(pack(last, space.layout), space.layout) == last
    assert space.encode(space.decode(last)) == last
