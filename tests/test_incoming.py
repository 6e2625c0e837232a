"""What enters a wrapper is checked in one place: numbers, inside their bounds, and an info that is a dict."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from numpy.typing import NDArray

from lacuna import (
    BinnedObservation,
    DelayedObservation,
    FactoredObservation,
    MissingObservation,
    NoisyObservation,
    VectorMissingObservation,
)

LOW, HIGH = np.array([-1.0, -1.0]), np.array([1.0, 0.7])


def f32(values: Any) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


BOX = spaces.Box(LOW.astype(np.float32), HIGH.astype(np.float32))
START = [0.0, 0.5]


class Show(gym.Env[Any, Any]):
    """Shows what it is given, one thing after the other."""

    def __init__(self, space: spaces.Space[Any], *rows: Any, info: Any = None) -> None:
        self.observation_space, self.action_space = space, spaces.Discrete(2)
        self.rows, self.info, self.t = rows, {} if info is None else info[0], 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.t = 0
        return self.rows[0], self.info

    def step(self, action: Any) -> Any:
        del action
        self.t = min(self.t + 1, len(self.rows) - 1)
        return self.rows[self.t], 0.0, False, False, self.info


Wrap = Callable[..., Any]

REAL: dict[str, Wrap] = {
    "BinnedObservation": lambda env, **options: BinnedObservation(env, 4, **options),
    "DelayedObservation": lambda env, **options: DelayedObservation(env, 1, **options),
    "MissingObservation": lambda env, **options: MissingObservation(env, "mcar:0.5", **options),
    "NoisyObservation": lambda env, **options: NoisyObservation(env, 0.5, scale=0.1, **options),
    "VectorMissingObservation": lambda env, **options: VectorMissingObservation(
        SyncVectorEnv([lambda: env, lambda: env]), "mcar:0.5", **options
    ),
}
SINGLE = [name for name in REAL if not name.startswith("Vector")]
DISCRETE: dict[str, Wrap] = {
    "DelayedObservation": lambda env: DelayedObservation(env, 1),
    "FactoredObservation": FactoredObservation,
    "MissingObservation": lambda env: MissingObservation(env, "mcar:0.5"),
    "NoisyObservation": lambda env: NoisyObservation(env, 0.5),
}


def play(env: Any, n: int = 1) -> list[Any]:
    """Reset, and take n steps."""
    seen = [env.reset(seed=0)[0]]
    action = np.zeros(env.num_envs, dtype=np.int64) if hasattr(env, "num_envs") else 0
    return [*seen, *(env.step(action)[0] for _ in range(n))]


@pytest.mark.parametrize("outside", ["warn", "error"])
@pytest.mark.parametrize("name", REAL)
def test_a_value_that_is_not_a_number_is_an_error_with_its_place_and_bounds(name: str, outside: str) -> None:
    env = REAL[name](Show(BOX, f32(START), f32([0.0, np.nan])), outside=outside)
    sentence = rf"showed x1 = nan to {name}.*, outside its space: between -1\.0 and 0\.69.*told by a mask"
    with pytest.raises(ValueError, match=sentence):
        play(env)


@pytest.mark.parametrize("name", REAL)
def test_a_real_number_outside_its_bounds_is_said_once_for_each_component(name: str) -> None:
    rows = [START, [2.0, 0.5], [3.0, 0.5], [3.0, -2.0], [-np.inf, -2.0]]
    env = REAL[name](Show(BOX, *f32(rows)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        play(env, len(rows))
    texts = [str(one.message) for one in said]
    assert [one.filename for one in said] == [__file__] * 2
    assert [text.split(";")[0] for text in texts] == [
        f"the environment showed x0 = 2.0 to {name}, outside its space: between -1.0 and 1.0",
        f"the environment showed x1 = -2.0 to {name}, outside its space: between -1.0 and {BOX.high[1].item()}",
    ]
    assert all("outside='error'" in text for text in texts)


@pytest.mark.parametrize("name", REAL)
def test_a_real_number_outside_its_bounds_is_an_error_on_request(name: str) -> None:
    env = REAL[name](Show(BOX, f32(START), f32([2.0, 0.5])), outside="error")
    with pytest.raises(ValueError, match=rf"x0 = 2\.0 to {name}, outside its space: between -1\.0 and 1\.0$"):
        play(env)


def test_a_value_outside_its_bounds_is_passed_on_as_it_is() -> None:
    env = MissingObservation(Show(BOX, f32([2.0, 0.5])), "mcar:0.0")
    with pytest.warns(UserWarning, match="x0 = 2"):
        shown, _ = env.reset(seed=0)
    assert shown["values"].tolist() == [2.0, 0.5]


@pytest.mark.parametrize("name", REAL)
def test_a_bound_counts_with_the_digits_that_the_space_gives_it(name: str) -> None:
    # 0.7 lies above the nearest number of 32 bits, which is the bound.
    assert np.float64(0.7) > BOX.high[1]
    play(REAL[name](Show(BOX, np.array([1.0, 0.7])), outside="error"))


@pytest.mark.parametrize("name", sorted({*REAL} - {"BinnedObservation"}))
def test_infinite_bounds_hold_infinite_numbers(name: str) -> None:
    space = spaces.Box(-np.inf, np.inf, (2,))
    play(REAL[name](Show(space, f32([np.inf, -np.inf])), outside="error"))


@pytest.mark.parametrize("value", [0.5, 300, -1, np.inf, np.nan])
def test_a_number_that_the_type_of_the_space_cannot_hold_is_an_error(value: float) -> None:
    env = MissingObservation(Show(spaces.Box(0, 200, (2,), np.uint8), np.array([3, value])), "mcar:0.0")
    with pytest.raises(ValueError, match=r"x1 = .* whole numbers between 0 and 200"):
        env.reset(seed=0)


@pytest.mark.parametrize("name", SINGLE)
def test_a_real_number_too_large_for_the_type_of_the_space_is_an_error_not_infinity(name: str) -> None:
    env = REAL[name](Show(BOX, f32(START), np.array([0.0, -1e300])))
    with pytest.raises(
        ValueError, match=rf"showed x1 = -1e\+300 to {name}.*, outside its space: between -1\.0 and 0\.69"
    ):
        play(env)


def test_a_whole_number_that_the_type_holds_may_leave_its_bounds() -> None:
    env = MissingObservation(Show(spaces.Box(0, 200, (2,), np.uint8), np.array([3, 201])), "mcar:0.0")
    with pytest.warns(UserWarning, match="x1 = 201"):
        assert env.reset(seed=0)[0]["values"].tolist() == [3, 201]


@pytest.mark.parametrize("outside", [0, None, "ignore", "Warn"])
@pytest.mark.parametrize("name", REAL)
def test_there_are_two_ways_with_a_value_outside(name: str, outside: Any) -> None:
    with pytest.raises(ValueError, match=r"outside is .*; it must be one of warn, error"):
        REAL[name](Show(BOX, f32(START)), outside=outside)


@pytest.mark.parametrize("info", [None, 3, [("a", 1)]])
@pytest.mark.parametrize("name", SINGLE)
def test_an_info_that_is_no_dict_is_an_error(name: str, info: Any) -> None:
    env = REAL[name](Show(BOX, f32(START), info=[info]))
    with pytest.raises(TypeError, match=r"the info of the environment is .*; it must be a dict"):
        env.reset(seed=0)


def test_an_info_of_discrete_parts_that_is_no_dict_is_an_error() -> None:
    env = FactoredObservation(Show(spaces.Discrete(3), 1, info=[None]))
    with pytest.raises(TypeError, match="the info of the environment is None"):
        env.reset(seed=0)


WRONG = {
    "an array of objects": (np.array([1, None], dtype=object), "an array of numbers, not of object"),
    "numbers as objects": (np.array([1, 2], dtype=object), "an array of numbers, not of object"),
    "a text": ("ab", "an array of numbers, not of <U2"),
    "complex numbers": (np.array([1j, 0]), "not of complex128"),
    "nothing": (None, "not of object"),
    "a ragged list": ([[1, 2], [3]], "it must be an array of numbers"),
    "too many": (np.zeros(3), r"the shape of its space is \(2,\), not \(3,\)"),
    "too few": (np.zeros(1), r"the shape of its space is \(2,\), not \(1,\)"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", SINGLE)
def test_what_is_no_array_of_numbers_is_an_error(name: str, what: str) -> None:
    shown, sentence = WRONG[what]
    with pytest.raises((TypeError, ValueError), match=rf"the environment showed .* to {name}.*{sentence}"):
        REAL[name](Show(BOX, shown)).reset(seed=0)


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", DISCRETE)
def test_what_is_no_array_of_numbers_is_an_error_for_discrete_components(name: str, what: str) -> None:
    shown, sentence = WRONG[what]
    with pytest.raises((TypeError, ValueError), match=rf"the environment showed .* to {name}.*{sentence}"):
        DISCRETE[name](Show(spaces.MultiDiscrete([3, 3]), shown)).reset(seed=0)


@pytest.mark.parametrize("value", [3, -1, 1.5, np.nan, np.inf])
@pytest.mark.parametrize("name", DISCRETE)
def test_a_discrete_value_outside_its_space_is_an_error_in_every_wrapper(name: str, value: float) -> None:
    env = DISCRETE[name](Show(spaces.MultiDiscrete([5, 3]), np.array([1, value])))
    with pytest.raises(ValueError, match=rf"showed x1 = .* to {name}, outside its space: whole numbers between 0 and"):
        env.reset(seed=0)


@pytest.mark.parametrize("shown", [{"door": 1}, {"door": 1, "light": {}}, (1, 0), None])
def test_a_part_that_is_not_there_is_named(shown: Any) -> None:
    space = spaces.Dict({"door": spaces.Discrete(2), "light": spaces.Dict({"on": spaces.MultiBinary(2)})})
    with pytest.raises(ValueError, match=r"without the part (door|light\.on)"):
        FactoredObservation(Show(space, shown)).reset(seed=0)


def test_a_component_of_a_part_is_called_by_its_name() -> None:
    space = spaces.Dict({"door": spaces.Discrete(2), "light": spaces.Discrete(3, start=1)})
    env = FactoredObservation(Show(space, {"door": 1, "light": 4}))
    with pytest.raises(ValueError, match=r"light = 4 to FactoredObservation, outside .* whole numbers between 1 and 3"):
        env.reset(seed=0)


def test_a_hidden_value_is_not_looked_at() -> None:
    space = spaces.Dict({"values": BOX, "mask": spaces.MultiBinary(2)})
    hidden = {"values": f32([np.nan, 0.5]), "mask": np.array([1, 0])}
    env = BinnedObservation(Show(space, hidden), 4)
    assert env.reset(seed=0)[0].tolist() == [4, 3]


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        ({"values": f32(START), "mask": np.array([1])}, "the mask shown to BinnedObservation has 1 entries"),
        (f32(START), "a dict of values and a mask"),
    ],
)
def test_values_come_with_a_mask_of_their_size(shown: Any, sentence: str) -> None:
    space = spaces.Dict({"values": BOX, "mask": spaces.MultiBinary(2)})
    with pytest.raises((TypeError, ValueError), match=sentence):
        BinnedObservation(Show(space, shown), 4).reset(seed=0)
