"""Mechanisms from data: what made a log is found again in it, tests keep their level, and bad frames get a sentence."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray

import lacuna
from lacuna import FittedMissingness, Run, Settings, Space, Study, check_mechanism, from_masks, make_world
from lacuna.missingness import MECHANISMS, parse
from lacuna.missingness.empirical import by_seen
from lacuna.missingness.fitting import chain
from lacuna.missingness.fitting.fit_tables import driver_tests
from lacuna.missingness.fitting.mask_log import read_log
from lacuna.run.loop import Trace

LAKE = make_world("lake")
NAMES = LAKE.space.names
STEPS = 12_000
FAR = 4.5
"""Standard errors that an estimate may be away: at most one in 100,000 of a normal one is."""

MADE = {
    "rates": "mcar:0.1,0.3,0.5",
    "whole": "whole:0.3",
    "by": "by:colour=0.2,0=0.1/0.2,1=0.5,2=0.8/0.7,else=0.4",
    "after": "after:0=0.6/0.1/0.3,1=0.4,else=0.1",
    "patterns": "patterns:000=0.4,011=0.3,101=0.2,111=0.1",
    "bursts": "bursts:0.05,0.2,0.9/0.8/0.7,0.1/0.2/0.05",
    "bursts-each": "bursts-each:0.05/0.1/0.2,0.3/0.2/0.1,0.9,0.1",
}
"""For every kind of model, a mechanism that it represents."""


@cache
def trace_of(text: str, steps: int = STEPS, seed: int = 5) -> Trace:
    return Run(LAKE, parse(text, LAKE), Settings("random-action"), seed=seed).record(steps)


@cache
def fit_of(text: str) -> FittedMissingness:
    trace = trace_of(text)
    columns: dict[str, Any] = dict(zip(NAMES, np.ma.masked_less(trace.seen, 0).T, strict=True))
    return from_masks(columns, action=trace.action)


def close(found: float, se: float, wanted: float) -> bool:
    return bool(abs(found - wanted) <= FAR * se)


# --- what made a log is found again ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MADE)
def test_what_made_the_log_is_the_best_model_and_can_be_used_at_once(kind: str) -> None:
    fit = fit_of(MADE[kind])
    assert fit.best.kind == kind
    made = fit.mechanism(LAKE)
    truth = parse(MADE[kind], LAKE)
    assert made.label == truth.label
    again = parse(made.name, LAKE)
    assert again.name == made.name
    assert np.array_equal(again.rates, made.rates)
    assert np.array_equal(again.hiding.chain, made.hiding.chain)
    check_mechanism(made)


def test_rates_are_recovered() -> None:
    for row, wanted in zip(fit_of(MADE["rates"]).rates, (0.1, 0.3, 0.5), strict=True):
        assert close(row.rate, row.se, wanted)
        assert 0.002 < row.se < 0.01
    (row, *_) = fit_of(MADE["whole"]).rates
    assert close(row.rate, row.se, 0.3)


def test_rates_by_a_component_are_recovered_where_it_is_seen_and_where_it_is_not() -> None:
    wanted = {(0, "row"): 0.1, (0, "column"): 0.2, (1, "row"): 0.5, (1, "column"): 0.5, (2, "row"): 0.8,
              (2, "column"): 0.7, (None, "row"): 0.4, (None, "column"): 0.4}  # fmt: skip
    found = {(row.value, row.component): row for row in fit_of(MADE["by"]).by if row.driver == "colour"}
    assert found.keys() == wanted.keys()
    assert all(close(row.rate, row.se, wanted[key]) for key, row in found.items())
    made, truth = fit_of(MADE["by"]).mechanism(LAKE, "by", driver="colour"), parse(MADE["by"], LAKE)
    assert np.abs(made.rates - truth.rates).max() < 0.05


def test_rates_after_actions_are_recovered() -> None:
    wanted = {0: (0.6, 0.1, 0.3), 1: (0.4, 0.4, 0.4)}
    found = [row for row in fit_of(MADE["after"]).by if row.driver == "action"]
    assert len(found) == 3 * LAKE.n_actions
    for row in found:
        assert close(row.rate, row.se, wanted.get(row.value, (0.1, 0.1, 0.1))[NAMES.index(row.component)]), row


def test_patterns_are_recovered() -> None:
    wanted = {"000": 0.4, "011": 0.3, "101": 0.2, "111": 0.1}
    found = {row.pattern: row for row in fit_of(MADE["patterns"]).patterns}
    assert found.keys() == wanted.keys()
    assert all(close(row.share, row.se, wanted[key]) for key, row in found.items())
    assert found["111"].hidden == "row, column, colour"
    assert found["000"].if_independent == pytest.approx(
        np.prod([1 - row.rate for row in fit_of(MADE["patterns"]).rates])
    )


@pytest.mark.parametrize(
    ("text", "kind", "wanted"),
    [
        (MADE["bursts"], "bursts", [0.05, 0.2, 0.9, 0.8, 0.7, 0.1, 0.2, 0.05]),
        ("bursts:0.1,0.3", "bursts", [0.1, 0.3, 1, 1, 1, 0, 0, 0]),
        (MADE["bursts-each"], "bursts-each", [.05, .3, .9, .1, .1, .2, .9, .1, .2, .1, .9, .1]),
        ("bursts-each:0.1,0.3", "bursts-each", [0.1, 0.3, 1, 0] * 3),
    ],
)  # fmt: skip
def test_bursts_are_recovered(text: str, kind: str, wanted: list[float]) -> None:
    found = [row for row in fit_of(text).bursts if row.kind == kind]
    assert [row.parameter for row in found[:2]] == ["enter", "leave"]
    far = [(row, value) for row, value in zip(found, wanted, strict=True) if not close(row.value, row.se, value)]
    assert far == []


def test_persistence_is_that_of_the_chain() -> None:
    for row in fit_of("bursts:0.1,0.3").persistence:
        assert close(row.after_missing, row.se_after_missing, 0.7)
        assert close(row.after_seen, row.se_after_seen, 0.1)
        assert row.p is not None
        assert row.p < 1e-6
    assert min(row.p or 0.0 for row in fit_of(MADE["rates"]).persistence) > 0.001


def test_rates_by_the_colour_are_those_of_the_paper_although_it_is_hidden_by_itself() -> None:
    # NMAR: what the colour does to others while it is seen is right; what it does to itself cannot be known.
    found = [row for row in fit_of("mcolor:0.2,0.4,0.6").by if row.driver == "colour" and row.value is not None]
    assert all(close(row.rate, row.se, (0.2, 0.4, 0.6)[row.value]) for row in found)


def test_the_gradient_is_that_of_the_likelihood_of_every_path_of_modes() -> None:
    rng = np.random.default_rng(0)
    hidden, begins = rng.random((9, 2)) < 0.4, np.isin(np.arange(9), (0, 4))
    found, which = np.unique(hidden, axis=0, return_inverse=True)
    masks = chain._Masks(found, which.ravel(), begins)

    def by_hand(x: NDArray[np.float64]) -> float:
        p = 1 / (1 + np.exp(-x))
        move, rest = np.array([[1 - p[0], p[0]], [p[1], 1 - p[1]]]), np.array([p[1], p[0]]) / (p[0] + p[1])
        total = 0.0
        for path in np.ndindex(*(2,) * 9):
            weight = 1.0
            for t, z in enumerate(path):
                weight *= rest[z] if begins[t] else move[path[t - 1], z]
                rates = p[2:4] if z else p[4:6]
                weight *= np.where(hidden[t], rates, 1 - rates).prod()
            total += weight
        return float(np.log(total))

    x = rng.normal(size=6)
    value, gradient = chain._gradient(x, masks)
    assert value == pytest.approx(by_hand(x), abs=1e-10)
    steps = 1e-5 * np.eye(6)
    assert gradient == pytest.approx([(by_hand(x + h) - by_hand(x - h)) / 2e-5 for h in steps], abs=1e-6)


# --- the test against MCAR ------------------------------------------------------------------------------------------


def pair_values(text: str, repeats: int, n: int) -> list[float]:
    """p-values of all pairs, over logs of an agent that acts on what it sees."""
    run = Run(LAKE, parse(text, LAKE), Settings("random-action"), seed=11)
    # The chains as they are, so that only the test is tested.
    values = parse(text, LAKE)
    fits: dict[str, tuple[chain.ChainFit, ...]] = {}
    if text.startswith("bursts:"):
        inside, outside = values.rates[1, 0, 0], values.rates[0, 0, 0]
        assert values.chain is not None
        known = np.concatenate([[values.chain[0, 1], values.chain[1, 0]], inside, outside])
        fits = {"bursts": (chain.ChainFit(known, known, 0.0),)}
    found = []
    for _ in range(repeats):
        trace = run.record(n)
        log = read_log(trace.seen, action=trace.action)
        found += [test.p for test in driver_tests(log, fits) if test.p is not None]
    return found


@pytest.mark.parametrize("text", ["mcar:0.2,0.3,0.6", "patterns:000=0.5,011=0.2,101=0.2,111=0.1", "bursts-each:0.1,0.2",
                                  "bursts:0.05,0.2,0.9,0.2"])  # fmt: skip
def test_the_test_keeps_its_level_also_where_masks_last_and_the_agent_acts_on_them(text: str) -> None:
    found = np.array(pair_values(text, 100, 1500))
    assert found.size > 500
    for level in (0.05, 0.2):
        share = float((found < level).mean())
        # Pairs of one log are not independent: the standard error is that of the logs.
        assert abs(share - level) < 4.5 * np.sqrt(level * (1 - level) / 100 / 2), (level, share)


@pytest.mark.parametrize(
    ("text", "driver"),
    [("mcolor-xy:0.1,0.3,0.5", "colour"), (MADE["by"], "colour"), (MADE["after"], "action"), ("mfog:0.6,0.1", "row")],
)
def test_what_is_not_mcar_is_found_and_its_driver_named(text: str, driver: str) -> None:
    fit = fit_of(text)
    assert fit.p_mcar is not None
    assert fit.p_mcar < 1e-3
    tests = {(test.driver, test.component): test.p or 0.0 for test in fit.tests}
    assert min(p for (by, _), p in tests.items() if by == driver) < 1e-3
    assert fit.verdict.startswith("Not MCAR")


def test_what_is_mcar_is_not_accused_and_what_cannot_be_tested_is_said() -> None:
    for kind in ("rates", "patterns", "bursts", "bursts-each"):
        assert (fit_of(MADE[kind]).p_mcar or 0.0) > 0.01, kind
    alone = from_masks({"x": [1, None] * 30})
    assert alone.p_mcar is None
    assert alone.verdict.startswith("Nothing can be tested")
    assert "NMAR" in alone.cannot_know


# --- frames ----------------------------------------------------------------------------------------------------------


def small(n: int = 60) -> dict[str, list[Any]]:
    return {
        "who": ["a", "b"] * (n // 2), "t": list(range(n))[::-1], "did": ["left", "right", "left"] * (n // 3),
        "mood": ["low", None, "high", "low"] * (n // 4), "sleep": [1, 2, None] * (n // 3),
    }  # fmt: skip


def key(frame: Any, *, masked: bool = False, **given: Any) -> Any:
    """What is read of a log, as plain data."""
    log = read_log(frame, masked=masked, **given)
    columns = (*log.columns, *(() if log.action is None else (log.action,)))
    told = [(column.name, column.values.tolist(), column.labels) for column in columns]
    return told, log.hidden.tolist(), log.begins.tolist(), log.blocks.tolist()


def test_every_form_of_a_log_gives_the_same() -> None:
    data = small()
    options: dict[str, Any] = {"sequence": "who", "order": "t", "action": "did"}
    wanted = key(data, **options)
    assert wanted[0][0][2] == ("high", "low")
    assert wanted[2].count(True) == 2
    assert key(pl.DataFrame(data), **options) == wanted
    assert key(pl.LazyFrame(data), **options) == wanted
    assert key(pd.DataFrame(data), **options) == wanted
    assert key(pd.DataFrame(data).astype({"sleep": "Int64", "mood": "category"}), **options) == wanted
    beside = {name: data[name] for name in ("mood", "sleep")}
    given: dict[str, Any] = {"sequence": data["who"], "order": np.array(data["t"]), "action": pl.Series(data["did"])}
    assert key(beside, **given) == wanted
    in_order = pl.DataFrame(data).sort("who", "t")
    assert key(in_order.drop("t"), sequence="who", action="did") == wanted
    assert key(in_order, components=["mood", "sleep"], sequence=["who"], action="did") == wanted


def test_arrays_and_masks() -> None:
    seen = trace_of(MADE["rates"], 500).seen
    floats = np.where(seen < 0, np.nan, seen)
    assert key(floats) == key(seen)
    for kind in (np.float32, np.float16, Decimal):
        rows = {f"x{j}": [kind(value) for value in column] for j, column in enumerate(floats.T.tolist())}
        assert key(rows)[1] == key(seen)[1]
        assert kind is Decimal or key(rows) == key(seen)
    bare = key(pd.DataFrame(np.isnan(floats).astype(int), columns=list(NAMES)), masked=True)
    assert bare[1] == key(seen)[1]
    fit = from_masks(np.isnan(floats), masked=True)
    assert fit.by == ()
    assert fit.tests == ()


def test_the_first_row_of_every_sequence_can_be_left_out() -> None:
    data = {"who": np.repeat(np.arange(20), 5), "x": [0, None, None, None, None] * 20}
    assert from_masks(data, sequence="who").rates[0].rate == 0.8
    assert from_masks(data, sequence="who", first_observed=True).rates[0].rate == 1.0


def test_real_numbers_can_go_missing_but_drive_nothing() -> None:
    fit = from_masks({"x": [0.5, None, 1.25] * 20, "y": [0, 1, None] * 20})
    assert {test.driver for test in fit.tests} == {"y"}


@pytest.mark.parametrize(
    ("frame", "options", "sentence"),
    [
        ({"x": [1, None]}, {}, "the log has 2 rows; at least 30 are needed"),
        ({"x": [1]}, {}, "the log has 1 row; at least 30 are needed"),
        ({"x": ["a"], "y": [0]}, {"sequence": "x"}, "the log has 1 row; at least 30 are needed"),
        ({}, {}, "the log has no columns"),
        (
            small(),
            {"sequence": "whom"},
            r"sequence is 'whom' \(did you mean 'who'\?\); the columns are who, t, did, mood",
        ),
        (small(), {"components": ["mod"]}, r"components names 'mod' \(did you mean 'mood'\?\)"),
        (small(), {"components": ["t"], "order": "t"}, "components names 't', which is named already"),
        ({"x": [1] * 40}, {"order": "x"}, "the frame has no column left for a component; it has x"),
        (small(), {"masked": True}, "column who of the masks has 'a'; a mask is 1 for missing and 0 for seen"),
        (
            {"x": pd.array([0, 1] * 20 + [None], dtype="Int64")},
            {"masked": True},
            "column x of the masks has <NA>; a mask is 1 for missing and 0 for seen",
        ),
        ({"x": [1] * 40, "y": [1] * 41}, {}, "the columns of the log have different lengths: 40, 41"),
        (small(), {"sequence": "mood"}, "the column of sequences has missing values"),
        (small(), {"order": "mood"}, "the column of the order has missing values"),
        (small(), {"order": [np.nan, *range(59)]}, "the column of the order has missing values; every row needs one"),
        (small(), {"order": ["a", *range(59)]}, "the column of the order has values that cannot be compared"),
        (small(), {"order": ["t", "u"]}, "order is 'u'; the columns are who, t, did, mood, sleep"),
        (small(), {"order": [1, 2]}, "a column of 2 values was given for 60 rows"),
        ({"x": [1] * 40, "a": [0.5] * 40}, {"action": "a"}, "the actions must be whole numbers or names"),
        (5, {}, "a log is a frame of polars or pandas, a mapping of columns, or an array"),
        ("text", {}, "a log is a frame of polars or pandas"),
        (np.zeros(40), {}, r"not 'ndarray' of shape \(40,\)"),
    ],
)
def test_a_bad_frame_is_refused_with_a_sentence(frame: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        from_masks(frame, **options)


@pytest.mark.parametrize(
    ("where", "options", "sentence"),
    [
        (LAKE, {"kind": "rate"}, r"kind is 'rate' \(did you mean 'rates'\?\); it must be one of rates, whole, by"),
        (LAKE, {"kind": "whole"}, "whole was not fitted: some rows lose only a part"),
        (LAKE, {"driver": "depth"}, "no driver is called 'depth'; there are"),
        (LAKE, {"kind": "rates", "driver": "row"}, "no driver is called 'row': rates has none"),
        (Space((8, 8)), {}, "the log has 3 components, row, column, colour; the space has 2"),
        (Space((8, 8, 3), ("a", "b", "c")), {}, "the log has the components row, column, colour, the space a, b, c"),
        (Space((8, 8, 2), NAMES), {"driver": "colour"}, "colour has the value 2 in the log; it has 2 values, 0 to 1"),
        (LAKE.space, {"kind": "after"}, "rates by action need a world, or n_actions"),
    ],
)
def test_a_mechanism_that_cannot_be_made_is_refused(where: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fit_of(MADE["by"]).mechanism(where, **options)


def test_components_are_matched_by_name_and_else_by_order() -> None:
    fit = fit_of(MADE["rates"])
    turned = Space((3, 8, 8), NAMES[::-1])
    rates = fit.mechanism(LAKE, "rates").rates[0, 0, 0]
    assert fit.mechanism(turned, "rates").rates[0, 0, 0].tolist() == rates[::-1].tolist()
    assert fit.mechanism(3, "rates").rates[0, 0, 0].tolist() == rates.tolist()
    by = fit_of(MADE["by"])
    assert by.mechanism(turned, "by", driver="colour").driver == 0
    shares = fit_of(MADE["patterns"])
    flipped = {
        p.partition("=")[0][::-1] for p in shares.mechanism(turned, "patterns").name.partition(":")[2].split(",")
    }
    assert flipped == {"000", "011", "101", "111"}


def test_names_of_actions_and_of_values() -> None:
    data = {"mood": ["high", "low"] * 50, "sleep": [1, None, None, 0] * 25, "did": ["right", "up"] * 50}
    fit = from_masks(data, action="did")
    space = Space((2, 2), ("mood", "sleep"))
    assert fit.mechanism(space, "by", driver="mood").name == by_seen(
        space, "mood", 0.0, {0: 0.5, 1: 0.5}, 0.5).name  # fmt: skip
    assert fit.mechanism(space, "after", n_actions=2).name == "after:0=0.0/0.5,1=0.0/0.5,else=0.0/0.5"


def test_a_fitted_mechanism_goes_into_a_study() -> None:
    texts = [fit_of(text).mechanism(LAKE).name for text in MADE.values()]
    study = Study.from_data({
        "name": "fitted", "steps": 100, "trials": 1, "missingness": texts, "worlds": [{"name": "lake"}],
        "methods": [{"name": "last-observed"}],
    })  # fmt: skip
    assert [missingness for _, _, missingness in study.problems] == texts


@given(rates=st.lists(st.floats(0, 1), min_size=2, max_size=4), seed=st.integers(0, 2**20))
@effort(max_examples=6, deadline=None)
def test_every_model_of_any_log_is_a_mechanism_that_its_text_makes_again(rates: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen = np.where(rng.random((60, len(rates))) < rates, -1, rng.integers(0, 3, (60, len(rates))))
    fit = from_masks(seen, action=rng.integers(0, 2, 60))
    space = Space((3,) * len(rates))
    for model in fit.models:
        made = fit.mechanism(space, model.kind, driver=model.driver, n_actions=2)
        assert made.name.partition(":")[0] in MECHANISMS
        assert np.array_equal(parse(made.name, space, 2).rates, made.rates)
    assert str(fit)
    assert "<script" not in fit._repr_html_()
    for table in ("rates", "by", "patterns", "persistence", "bursts", "tests", "models"):
        assert fit.frame(table).height == len(getattr(fit, table))


def test_the_door_is_public() -> None:
    assert lacuna.from_masks is from_masks


def test_the_verdict_says_what_the_best_model_leaves_out() -> None:
    random = np.random.default_rng(0)
    driver, value = random.integers(0, 3, 3000), random.integers(0, 2, 3000).astype(float)
    burst = np.repeat(random.random(300) < 0.5, 10)
    value[burst & (random.random(3000) < np.where(driver == 0, 0.15, 0.35))] = np.nan
    fit = from_masks({"driver": driver, "value": value})
    assert fit.best.kind == "bursts"
    assert "The best model, bursts, leaves that out; mechanism(…, 'by') has it." in fit.verdict
    assert fit.mechanism(Space((3, 2), ("driver", "value")), "by").label == "MAR"
    assert fit.frame("bursts").schema["value"] == pl.Float64
    assert fit.frame("by").schema["value"] == pl.String
    assert "leaves that out" not in fit_of(MADE["by"]).verdict
