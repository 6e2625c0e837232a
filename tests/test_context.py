"""A context: what an app says, read as an observation, whatever it is."""

from __future__ import annotations

import enum
import json
import math
from collections import UserDict, defaultdict
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lacuna.kernels.space import MAX_STATES, MISSING
from lacuna.trial.file.context import Bins, Categories, ContextSchema, Reading
from sentences import one_sentence

SCHEMA = ContextSchema(
    [
        Categories("time of day", ("morning", "noon", "evening")),
        Bins("steps", (500, 2000), (0, 100_000)),
        Categories("mood", (1, 2, 3, 4, 5)),
        Categories("at home", (False, True)),
    ]
)
FULL = {"time of day": "evening", "steps": 1203, "mood": 5, "at home": True}


def read(**given: Any) -> Reading:
    """A reading of the usual context with some values altered."""
    return SCHEMA.read(FULL | given)


def test_the_space_has_the_components_in_their_order() -> None:
    assert SCHEMA.space.names == SCHEMA.names == ("time of day", "steps", "mood", "at home")
    assert SCHEMA.space.sizes == (3, 3, 5, 2)


def test_a_full_context_is_read() -> None:
    coded, raw, invalid = SCHEMA.read(dict(reversed(FULL.items())))
    assert coded.tolist() == [2, 1, 4, 1]
    assert coded.dtype == np.int64
    assert json.dumps(raw) == '{"time of day": "evening", "steps": 1203.0, "mood": 5, "at home": true}'
    assert invalid == ()


@pytest.mark.parametrize("context", [None, {}, dict.fromkeys(FULL), {"mood": None}, UserDict(), defaultdict(int)])
def test_what_is_not_said_is_missing_and_not_invalid(context: Any) -> None:
    coded, raw, invalid = SCHEMA.read(context)
    assert coded.tolist() == [MISSING] * 4
    assert raw == dict.fromkeys(FULL)
    assert list(raw) == list(FULL)
    assert invalid == ()


@pytest.mark.parametrize(
    ("x", "bin_of_x"), [(0, 0), (-0.0, 0), (499.999, 0), (500, 1), (1999.9, 1), (2000, 2), (100_000, 2), (100_000.0, 2)]
)
def test_a_bin_is_the_number_of_edges_at_most_x(x: float, bin_of_x: int) -> None:
    coded, raw, invalid = read(steps=x)
    assert (coded[1], invalid) == (bin_of_x, ())
    assert repr(raw["steps"]) == repr(float(abs(x)))


INVALID_STEPS = [
    -1, 100_000.5, math.inf, -math.inf, math.nan, 10**400, -(10**400), True, False, "1203", "", [1203], {"x": 1}, b"1",
    Decimal(1203), Fraction(1203), 1203j, date(2026, 1, 1), np.array(1203.0), np.timedelta64(600), np.bool_(1),
    np.datetime64("2020-01-01", "ns"), np.longdouble("inf"), object(),
]  # fmt: skip


@pytest.mark.parametrize("value", INVALID_STEPS, ids=lambda value: f"{type(value).__name__}")
def test_what_is_no_number_in_the_range_is_missing_and_named(value: Any) -> None:
    coded, raw, invalid = read(steps=value)
    assert coded.tolist() == [2, MISSING, 4, 1]
    assert invalid == ("steps",)
    json.dumps(raw, allow_nan=False)


INVALID_MOODS = [0, 6, 1.5, "5", True, False, math.nan, math.inf, 10**400, [5], (5,), {}, set(), np.bool_(1)]


@pytest.mark.parametrize("value", INVALID_MOODS, ids=str)
def test_what_is_no_category_is_missing_and_named(value: Any) -> None:
    coded, _, invalid = read(mood=value)
    assert coded.tolist() == [2, 1, MISSING, 1]
    assert invalid == ("mood",)


@pytest.mark.parametrize("value", [1, 0, 1.0, "true", np.int64(1), None.__class__])
def test_one_is_not_true(value: Any) -> None:
    coded, _, invalid = read(**{"at home": value})
    assert (coded[3], invalid) == (MISSING, ("at home",))


class Answer(enum.IntEnum):
    FOUR = 4


@pytest.mark.parametrize(
    "value", [4, 4.0, np.int8(4), np.uint64(4), np.float16(4), np.float64(4), np.longdouble(4), Answer.FOUR]
)
def test_equal_numbers_are_one_category_and_the_log_has_it_as_declared(value: Any) -> None:
    coded, raw, invalid = read(mood=value)
    assert (coded[2], invalid) == (3, ())
    assert raw["mood"] == 4
    assert type(raw["mood"]) is int


def test_scalars_of_numpy_become_values_of_python() -> None:
    given = {"time of day": np.str_("noon"), "steps": np.float32(7), "mood": np.int64(1), "at home": np.bool_(0)}
    coded, raw, invalid = SCHEMA.read(given)
    assert (coded.tolist(), invalid) == ([1, 0, 0, 0], ())
    assert [type(value) for value in raw.values()] == [str, float, int, bool]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("x" * 64, "x" * 64), ("x" * 65, None), ("é\n", "é\n"), ("\ud800", None), (-5, -5), (1e9, 1e9), (True, True),
        (10**64 - 1, 10**64 - 1), (10**64, None), (-(10**64), None), (math.nan, None), (math.inf, None), ([1], None),
        ({}, None), (b"x", None), (np.float64(1e9), 1e9), (np.str_("x"), "x"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_kept_if_it_is_short_and_fit_for_json(value: Any, kept: Any) -> None:
    _, raw, invalid = read(steps=value)
    assert invalid == ("steps",)
    assert raw["steps"] == kept
    assert type(raw["steps"]) is type(kept)


def test_components_that_are_none_are_named_after_the_others_and_not_kept() -> None:
    given = {"weather": "fine", 5: 1, "a\ud800": 2, "b" * 70: 3, "mood": 9, "": 1, None: 0}
    coded, raw, invalid = SCHEMA.read(given)
    assert coded.tolist() == [MISSING] * 4
    assert raw == dict.fromkeys(FULL) | {"mood": 9}
    assert invalid == ("mood", "", "a key of the type NoneType", "a key of the type int", "a?", "b" * 64, "weather")


@pytest.mark.parametrize("context", [[], [("mood", 1)], "mood", 5, True, object(), {"mood"}])
def test_what_is_no_table_is_refused(context: Any) -> None:
    with pytest.raises(ValueError, match="it must be a table of components and values, or None") as caught:
        SCHEMA.read(context)
    assert one_sentence(caught.value).startswith("the context is ")


class Hostile:
    """A value all of whose methods raise."""

    def _fail(self, *_: object) -> Any:
        raise KeyError("hostile")

    __eq__ = __repr__ = __str__ = __float__ = __int__ = __index__ = __len__ = __bool__ = __lt__ = __le__ = _fail
    __hash__ = object.__hash__

    __class__ = property(_fail)


class HostileText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise KeyError("hostile")

    __repr__ = __len__ = __str__  # type: ignore[assignment]


class HostileNumber(float):
    def __float__(self) -> float:
        raise KeyError("hostile")

    __le__ = __ge__ = __repr__ = __float__  # type: ignore[assignment]


class HostileInteger(np.int64):
    def item(self, *_: Any) -> Any:
        raise KeyError("hostile")


scalars = (
    st.none() | st.booleans() | st.integers() | st.integers(-6, 6) | st.floats() | st.floats(-10, 200_000)
    | st.text(max_size=80) | st.text(st.characters(categories=["Cs"]), max_size=3)
    | st.sampled_from(["morning", "noon", "evening", "10"])
    | st.integers(0, 5000).flatmap(lambda digits: st.just(10**digits))
)  # fmt: skip
jsons = st.recursive(scalars, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3))
odd = st.sampled_from(
    [
        b"", 1j, set(), object(), type, Decimal(1), np.array([1, 2]),
        np.float32(1), np.bool_(1), np.int8(1), np.str_("noon"), np.timedelta64(1, "s"), np.complex64(1),
        np.longdouble("1e4000") if np.finfo(np.longdouble).max > 1e308 else np.longdouble(1), np.void(b"12"), ...,
    ]
)  # fmt: skip
names = st.sampled_from(list(FULL))
contexts = st.dictionaries(names | st.text(max_size=70), jsons | odd, max_size=6)
odd_keys = st.dictionaries(names | st.integers() | st.floats() | st.binary() | st.tuples(st.text()), odd, max_size=4)


@given(contexts | odd_keys)
@example({"steps": 10**5000, "mood": -(10**5000)})
@example({"steps": 10**4299})
def test_no_content_is_too_much_and_what_is_kept_reads_the_same_again(context: dict[Any, Any]) -> None:
    coded, raw, invalid = SCHEMA.read(context)
    assert list(raw) == list(FULL)
    for code, size, name in zip(coded.tolist(), SCHEMA.space.sizes, FULL, strict=True):
        assert MISSING <= code < size
        assert not (name in invalid and code != MISSING)
        assert (code == MISSING) == (raw[name] is None or name in invalid)
    assert all(len(name) <= 64 for name in invalid)
    assert len(set(invalid)) == len(invalid)
    text = json.dumps([raw, invalid], allow_nan=False, ensure_ascii=False)
    text.encode()
    again = SCHEMA.read(json.loads(text)[0])
    assert again.coded.tolist() == coded.tolist()
    assert again.raw == raw
    assert [type(value) for value in again.raw.values()] == [type(value) for value in raw.values()]


def test_no_code_of_a_value_runs() -> None:
    # Hypothesis itself would run it.
    given = {"steps": HostileNumber(7.0), "mood": HostileInteger(3), "at home": Hostile(), Hostile(): Hostile()}
    coded, raw, invalid = SCHEMA.read(given | {HostileText("time of day"): HostileText("noon")})
    assert coded.tolist() == [1, 0, 2, MISSING]
    assert raw == {"time of day": "noon", "steps": 7.0, "mood": 3, "at home": None}
    assert [type(value) for value in raw.values()] == [str, float, int, type(None)]
    assert invalid == ("at home", "a key of the type Hostile")


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8, unique=True), st.floats(-1e7, 1e7))
@example([0.0], -0.0)
def test_bins_agree_with_counting_edges(edges: list[float], x: float) -> None:
    bins = Bins("x", tuple(sorted(edges)), (-1e7, 1e7))
    assert bins.read(x) == (sum(edge <= x for edge in edges), x)
    assert len(bins.described()["bins"]) == bins.size == len(edges) + 1


def test_a_codebook_has_values_and_bins_as_text() -> None:
    assert SCHEMA.described() == [
        {"name": "time of day", "type": "categories", "values": ["morning", "noon", "evening"]},
        {
            "name": "steps",
            "type": "number",
            "range": [0.0, 100_000.0],
            "bins": ["0 ≤ x < 500", "500 ≤ x < 2000", "2000 ≤ x ≤ 100000"],
        },
        {"name": "mood", "type": "categories", "values": [1, 2, 3, 4, 5]},
        {"name": "at home", "type": "categories", "values": [False, True]},
    ]
    json.dumps(SCHEMA.described(), allow_nan=False)


def test_categories_may_be_of_several_types_and_true_is_not_1() -> None:
    mixed = Categories("x", (1, True, "1", 0.5, False, 0, ""))
    assert [mixed.read(value) for value in (1.0, True, "1", 0.5, False, -0.0, "")] == [
        (0, 1), (1, True), (2, "1"), (3, 0.5), (4, False), (5, 0), (6, ""),
    ]  # fmt: skip
    assert [type(value) for value in Categories("x", (1.0, 1e300, 0.5)).values] == [int, float, float]


VALUE = "it must be a text of at most 64 printable characters, true, false or a finite number, whole numbers up to 2^53"
RANGE = "it must be two finite numbers, the smaller one first"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((), "x has no values; it must have at least one"),
        ((1, 2, 1.0), "x has the value 1 twice; values must differ"),
        (("a", "b", "a"), "x has the value 'a' twice; values must differ"),
        ((math.nan,), f"x has the value nan; {VALUE}"),
        ((math.inf,), f"x has the value inf; {VALUE}"),
        ((2**53 + 1,), f"x has the value 9007199254740993; {VALUE}"),
        (("y" * 65,), f"x has the value '{'y' * 65}'; {VALUE}"),
        (("a\nb",), f"x has the value 'a\\nb'; {VALUE}"),
        ((None,), f"x has the value None; {VALUE}"),
        (([1],), f"x has the value [1]; {VALUE}"),
    ],
)
def test_values_that_cannot_be_are_refused(values: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match="x has ") as caught:
        Categories("x", values)
    assert one_sentence(caught.value) == sentence


@pytest.mark.parametrize(
    ("edges", "limits", "sentence"),
    [
        ((), (0, 1), "x: edges is []; it must be at least one number, all finite"),
        ((math.nan,), (0, 1), "x: edges is [nan]; it must be at least one number, all finite"),
        ((10**400,), (0, 1), "x: edges is [1000"),
        ((True,), (0, 2), "x: edges is [True]; it must be at least one number, all finite"),
        ((0.5, 0.5), (0, 1), "x: edges is [0.5, 0.5]; it must ascend"),
        ((0.5, 0.2), (0, 1), "x: edges is [0.5, 0.2]; it must ascend"),
        ((0.5,), (1, 0), f"x: range is [1, 0]; {RANGE}"),
        ((0.5,), (0, 0), f"x: range is [0, 0]; {RANGE}"),
        ((0.5,), (0,), f"x: range is [0]; {RANGE}"),
        ((0.5,), (0, math.inf), f"x: range is [0, inf]; {RANGE}"),
        (
            (0,),
            (0, 1),
            "x: edges is [0]; edges must lie above 0 and at most at 1, or a bin of range [0, 1] would be empty",
        ),
        (
            (0.5, 1.5),
            (0, 1),
            "x: edges is [0.5, 1.5]; edges must lie above 0 and at most at 1, or a bin of range [0, 1]",
        ),
    ],
)
def test_bins_that_cannot_be_are_refused(edges: Any, limits: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match="x: ") as caught:
        Bins("x", edges, limits)
    assert one_sentence(caught.value).startswith(sentence)


@pytest.mark.parametrize("name", ["", "x" * 65, "a\tb", 5])
def test_a_name_that_cannot_be_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="it must be a text of 1 to 64 printable characters") as caught:
        Categories(name, (1, 2))
    assert one_sentence(caught.value).startswith("a component's name is ")
    with pytest.raises(ValueError, match="it must be a text of 1 to 64 printable characters"):
        Bins(name, (0.5,), (0, 1))


def test_there_is_at_least_one_component_names_differ_and_states_can_be_counted() -> None:
    with pytest.raises(ValueError, match="at least one component, got none"):
        ContextSchema([])
    with pytest.raises(ValueError, match="component names must differ"):
        ContextSchema([Categories("x", (1, 2)), Categories("x", (1, 2))])
    with pytest.raises(ValueError, match=f"makes more than {MAX_STATES} states"):
        ContextSchema([Categories(f"x{j}", (1, 2)) for j in range(41)])
    assert ContextSchema([Categories("x", (1,))]).space.sizes == (1,)
