"""Units of 2**-32 shared out within bounds, against a naive twin."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import settings as effort
from hypothesis import strategies as st

import naive_allocation as naive
from lacuna.trial.engine.units import UNITS, nearest_units, share_out


@st.composite
def wishes(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Wanted units that add up to about 2**32, and bounds that can be met."""
    A = draw(st.integers(2, 12))
    weights = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 7, 10**6]), min_size=A, max_size=A))
    wanted = [nearest_units(w / max(sum(weights), 1)) for w in weights]
    edges = st.one_of(st.integers(0, UNITS), st.sampled_from([0, 0, 0, UNITS, UNITS // A, UNITS // A + 1, *wanted]))
    pairs = [sorted(draw(st.tuples(edges, edges))) for _ in range(A)]
    least, most = [low for low, _ in pairs], [high for _, high in pairs]
    if draw(st.booleans()):
        least = [low // A for low in least]
        most = [min(UNITS, high + UNITS // A + 1) for high in most]
    assume(sum(least) <= UNITS <= sum(most))
    return wanted, least, most


@given(wishes())
@effort(max_examples=1500)
def test_units_are_the_twins(wish: tuple[list[int], list[int], list[int]]) -> None:
    wanted, least, most = (np.array(part, dtype=np.int64) for part in wish)
    units = np.zeros(wanted.shape[0], dtype=np.int64)
    share_out(wanted, least, most, np.arange(wanted.shape[0]), units)
    assert units.sum() == UNITS
    assert ((least <= units) & (units <= most)).all()
    assert units.tolist() == naive.projected(*wish)


def test_what_is_wanted_and_fits_is_given() -> None:
    third = nearest_units(1 / 3)
    for wanted, given_units in (
        ([UNITS // 2, UNITS // 2], [UNITS // 2, UNITS // 2]),
        ([UNITS, 0, 0], [UNITS, 0, 0]),
        # 3 · round(2^32 / 3) is one short: the first action that is possible at all gets it.
        ([0, third, third, third], [0, third + 1, third, third]),
        ([third, 0, third, third], [third + 1, 0, third, third]),
    ):
        n = len(wanted)
        units = np.zeros(n, dtype=np.int64)
        share_out(np.array(wanted), np.zeros(n, dtype=np.int64), np.full(n, UNITS), np.arange(n), units)
        assert units.tolist() == given_units


def test_an_impossible_action_gets_a_unit_only_if_no_other_has_room() -> None:
    units = np.zeros(3, dtype=np.int64)
    half = UNITS // 2
    share_out(np.array([0, half, half]), np.zeros(3, np.int64), np.array([9, half, half - 1]), np.arange(3), units)
    assert units.tolist() == [1, half, half - 1]


@given(st.floats(0, 1))
def test_units_are_rounded_to_the_nearest(p: float) -> None:
    assert nearest_units(p) == naive.nearest(Fraction(p))


def test_a_number_just_below_half_a_unit_is_rounded_down() -> None:
    # Adding 0.5 to it would be rounded up to 1.
    assert nearest_units(np.nextafter(0.5, 0) * 2.0**-32) == 0
    assert nearest_units(0.5 * 2.0**-32) == 1
    assert nearest_units(1.0) == UNITS
