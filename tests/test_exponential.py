"""`exact_exp` against 50 digits over its whole range: near the true value, monotone, the same without the compiler."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from lacuna.kernels.exponential import exact_exp, power_of_two

LARGEST, SMALLEST = 709.782712893384, -745.1332191019411
"""The last arguments whose exponential is a finite float, and one above 0."""

HALF_LN2 = math.log(2) / 2


def units_off(x: float) -> float:
    """How far `exact_exp` is from the true value, in units in the last place of that."""
    with localcontext(prec=50):
        true = Decimal(x).exp()
        return float(abs(Decimal(exact_exp(x)) - true) / Decimal(math.ulp(float(true))))


everywhere = st.one_of(
    st.floats(SMALLEST, LARGEST), st.floats(-1.0, 1.0), st.floats(-745.0, -708.0), st.floats(-1e-300, 1e-300),
    # Where the power of two changes: odd multiples of ln(2) / 2, and next to them.
    st.builds(lambda n, e: (2 * n + 1) * HALF_LN2 * (1 + e), st.integers(-1074, 1022), st.floats(-1e-15, 1e-15)),
)  # fmt: skip


@given(everywhere)
@example(LARGEST)
@example(SMALLEST)
@example(-708.3964185322641)
@effort(max_examples=3000)
def test_it_is_at_most_one_unit_in_the_last_place_off(x: float) -> None:
    if SMALLEST <= x <= LARGEST:
        assert units_off(x) <= 1.0


def test_it_is_nearly_always_the_nearest_float() -> None:
    rng = np.random.default_rng(1)
    normal = [*rng.uniform(-708.0, LARGEST, 4000).tolist(), *rng.uniform(-1.0, 1.0, 4000).tolist()]
    # Half a unit, and a few roundings of terms below 2^-7.
    assert max(map(units_off, normal)) < 0.5 + 1 / 8


def test_special_values() -> None:
    assert [exact_exp(x).hex() for x in (0.0, -0.0, 1.0)] == [(1.0).hex(), (1.0).hex(), math.e.hex()]
    assert exact_exp(LARGEST) == pytest.approx(1.797693134862273e308, rel=1e-15)
    assert exact_exp(math.nextafter(LARGEST, math.inf)) == exact_exp(1e300) == exact_exp(math.inf) == math.inf
    assert exact_exp(SMALLEST) == 5e-324
    assert exact_exp(math.nextafter(SMALLEST, -math.inf)) == exact_exp(-1e300) == exact_exp(-math.inf) == 0.0
    assert math.isnan(exact_exp(math.nan))


def test_powers_of_two_are_exact() -> None:
    for k in range(-1022, 1024):
        assert power_of_two(k) == math.ldexp(1.0, k)


def test_it_never_decreases() -> None:
    grid = np.linspace(-746, 710, 50_000).tolist()
    values = [exact_exp(x) for x in grid]
    assert values == sorted(values)
    # Neighbouring floats, around where the power of two changes and elsewhere.
    for start in (-744.0, -10.0, -HALF_LN2, -1e-8, 0.0, HALF_LN2, 3 * HALF_LN2, 1.0, 700.0):
        x, before = start, 0.0
        for _ in range(2000):
            now = exact_exp(x)
            assert now >= before
            x, before = math.nextafter(x, math.inf), now


def some_values() -> list[str]:
    """Values over the whole range and beyond it, given as numbers of NumPy, as texts."""
    rng = np.random.default_rng(2)
    found = [*rng.uniform(-750, 715, 3000), *rng.uniform(-1, 1, 1000), np.float64(1e308), np.float64(-1e308)]
    return [float(exact_exp(x)).hex() for x in found]


def test_equal_without_the_compiler_and_without_a_warning() -> None:
    program = "import json; from test_exponential import some_values; print(json.dumps(some_values()))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=Path(__file__).parent,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == some_values()
