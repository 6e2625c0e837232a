"""Anything may be given as settings, sizes, lengths, seeds and texts: it runs, or the message has the value."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS
from lacuna.agent.settings import (
    EVIDENCE,
    MAX_BUDGET,
    MAX_CYCLES,
    MAX_PATHWAYS,
    MAX_WEIGHT,
    Q_TABLES,
    UPDATES,
    VOTES,
    Settings,
)
from lacuna.kernels.counts import MAX_COUNT
from lacuna.kernels.space import MAX_STATES, Space
from lacuna.missingness import MECHANISMS, Mechanism, by_true_state, parse
from lacuna.run.problems import Problem
from lacuna.run.repetitions import run_trial, run_trials
from lacuna.run.run import DRIVERS, Run
from lacuna.worlds.lake import Lake
from lacuna.worlds.mdp.tabular import TabularMDP
from sentences import one_sentence

SPACE = Space((3, 2), ("room", "door"))
ODD: list[Any] = [None, True, "1", "", math.nan, math.inf, -math.inf, -1, 0, 0.5, 1, 1.5, 2, 10**30, [1], (), np.nan]


# --- settings and spaces ---------------------------------------------------------------------------------------------


def is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def faults(given_settings: dict[str, Any]) -> list[str]:
    """Which settings are wrong, judged from the documentation alone."""
    kw: dict[str, Any] = {
        "method": "mi-synthetic",
        "K": None,
        "vote": "sampled",
        "update": "sequential",
        "p_shuffle": 0.0,
        "kappa": None,
        "smoothing": None,
        "optimism": 0.0,
        "budget": None,
        "cycles": None,
        "q_table": "shared",
        "assumed": None,
        "evidence": "usual",
        "look": 0.0,
    }
    kw |= {"alpha": 0.1, "gamma": 1.0, "epsilon": 0.0} | given_settings
    wrong = [name for name in ("alpha", "gamma", "epsilon", "p_shuffle", "look") if not is_share(kw[name])]
    wrong += ["alpha"] if kw["alpha"] == 0 else []
    if kw["method"] not in list(METHODS):
        return [*wrong, "method"]
    choices = (("vote", VOTES), ("update", UPDATES), ("q_table", Q_TABLES), ("evidence", EVIDENCE))
    wrong += [name for name, known in choices if kw[name] not in known]
    planned, several = kw["method"] == "mi-planned", kw["method"].startswith("mi-")
    usual: dict[str, Any] = {} if several else {"K": None, "evidence": "usual"}
    usual |= {} if several and not planned else {
        "vote": "sampled", "update": "sequential", "p_shuffle": 0.0, "q_table": "shared",
    }  # fmt: skip
    usual |= {} if kw["method"] == "mi-chained" else {"cycles": None}
    usual |= {"alpha": 0.1, "optimism": 0.0} if planned else {"budget": None, "look": 0.0}
    wrong += [name for name, value in usual.items() if kw[name] != value]
    for name, least, most in (("K", 1, MAX_PATHWAYS), ("budget", 0, MAX_BUDGET), ("cycles", 1, MAX_CYCLES)):
        whole = isinstance(kw[name], int) and not isinstance(kw[name], bool)
        wrong += [] if name in usual or kw[name] is None or (whole and least <= kw[name] <= most) else [name]
    available = ("mi-available", "mi-masked")
    owners = {"kappa": (*available, "mi-planned"), "smoothing": available, "optimism": tuple(METHODS)}
    for name, methods in owners.items():
        value = kw[name]
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_WEIGHT
        fine = (value is None and name != "optimism") or (kw["method"] in methods and number)
        wrong += [] if fine else [name]
    assumes = kw["method"] in ("assumed-value", "carry-default")
    wrong += [] if kw["assumed"] is None or (assumes and is_share(kw["assumed"])) else ["assumed"]
    wrong += ["kappa"] if planned and kw["kappa"] == 0 else []
    return wrong


shares = st.one_of(st.floats(0, 1), st.floats(), st.sampled_from(ODD))
any_settings: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "method": st.one_of(st.sampled_from(list(METHODS)), st.sampled_from(ODD), st.text(max_size=5)),
        "K": st.one_of(st.integers(-2, 20), st.sampled_from([*ODD, MAX_PATHWAYS + 1])),
        "alpha": shares, "gamma": shares, "epsilon": shares, "p_shuffle": shares, "look": shares,
        "kappa": st.one_of(st.none(), st.floats(0, 10), shares), "smoothing": st.one_of(st.none(), shares),
        "optimism": st.one_of(st.floats(0, 10), shares),
        "budget": st.one_of(st.none(), st.integers(-2, 20), st.sampled_from([*ODD, MAX_BUDGET + 1])),
        "vote": st.sampled_from([*VOTES, "most", None, 3]),
        "update": st.sampled_from([*UPDATES, "never", None, []]),
        "cycles": st.one_of(st.none(), st.integers(-1, 4), st.sampled_from([*ODD, MAX_CYCLES + 1])),
        "q_table": st.sampled_from([*Q_TABLES, "none", None, 1]), "assumed": st.one_of(st.none(), shares),
        "evidence": st.sampled_from([*EVIDENCE, "rewards", None, 2]),
    },
)  # fmt: skip


@given(any_settings)
@effort(max_examples=400)
def test_settings_are_taken_or_refused_with_the_value(kw: dict[str, Any]) -> None:
    wrong = faults(kw)
    if not wrong:
        agent = Agent(SPACE, 2, Settings(**kw))
        agent.begin([0, None])
        for observation in ([None, 1], [2, 1], [None, None]):
            agent.act()
            agent.learn(1.0, observation, terminated=False)
        assert agent.probabilities().sum() == pytest.approx(1.0)
        return
    with pytest.raises(ValueError, match=" ") as caught:
        Settings(**kw)
    message = one_sentence(caught.value)
    assert any(repr(kw.get(name, 0.0)) in message or str(kw.get(name, 0.0)) in message for name in wrong)
    assert any(word in message for word in ("between", "one of", "above", "there are", "There are", "belongs to"))


def test_numbers_of_numpy_are_numbers() -> None:
    case = Settings("mi-synthetic", np.int64(3), np.float32(0.5), np.float64(1), np.int8(0))  # type: ignore[arg-type]
    assert case == Settings("mi-synthetic", 3, 0.5, 1.0, 0.0)
    assert [type(value) for value in (case.K, case.alpha, case.epsilon)] == [int, float, float]


def test_settings_are_frozen_and_a_near_miss_is_named() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().K = 3  # type: ignore[misc]
    with pytest.raises(
        ValueError, match=r"'mi-sinthetic' \(did you mean 'mi-synthetic'\?\); there are random-action, "
    ):
        Settings("mi-sinthetic")
    with pytest.raises(ValueError, match="no method is called 'zzz'; there are random-action, "):
        Settings("zzz")


@given(st.lists(st.integers(-2, 2**21), max_size=4))
@effort(max_examples=100)
def test_spaces_are_taken_or_refused_with_the_size(sizes: list[int]) -> None:
    if sizes and min(sizes) >= 1 and math.prod(sizes) <= MAX_STATES:
        space = Space(tuple(sizes))
        assert space.decode(space.n_states - 1) == tuple(size - 1 for size in sizes)
        return
    with pytest.raises(ValueError, match=r"none|size|states") as caught:
        Space(tuple(sizes))
    message = one_sentence(caught.value)
    assert not sizes or any(str(size) in message for size in sizes)


# --- trials and texts ------------------------------------------------------------------------------------------------


@cache
def problem() -> Problem:
    return Problem.named("corridor", "mcar:0.3")


@given(
    steps=st.one_of(st.integers(-2, 40), st.sampled_from([*ODD, MAX_COUNT + 1])),
    seed=st.one_of(st.integers(-2, 2**80), st.sampled_from(ODD)),
    times=st.lists(st.one_of(st.integers(-1, 45), st.sampled_from([1.5, None, "2", True])), max_size=3),
    driver=st.sampled_from([*DRIVERS, "fast", None]),
    first=st.sampled_from([True, False, None, "yes", 1]),
)
@effort(max_examples=200)
def test_trials_run_or_are_refused_with_the_value(steps: Any, seed: Any, times: Any, driver: Any, first: Any) -> None:
    def whole(value: Any, low: int, high: int) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    wrong = [] if whole(steps, 1, MAX_COUNT) else [steps]
    wrong += [seed] if not whole(seed, 0, 2**200) else []
    wrong += [] if wrong and wrong[0] is steps else [t for t in times if not whole(t, 1, steps)]
    wrong += [driver] if driver not in DRIVERS else []
    wrong += [first] if not isinstance(first, bool) else []
    arguments = {"steps": steps, "seed": seed, "times": times, "driver": driver}
    if wrong or steps > 100:
        arguments["steps"] = steps if wrong else 0
        with pytest.raises(ValueError, match=" ") as caught:
            run_trial(replace(problem(), first_observed=first), Settings(K=2), **arguments)
        message = one_sentence(caught.value)
        assert any(repr(value) in message for value in [*wrong, 0])
        return
    figures = run_trial(replace(problem(), first_observed=first), Settings(K=2), **arguments)
    assert figures["steps"] == steps
    assert [row[0] for row in figures.get("curve", [])] == sorted(set(times))


@pytest.mark.parametrize("sizes", [3, "32", None, (3.0,), (True, 2), ("a",), (math.nan,), (None,), (2, 0)])
def test_sizes_that_are_no_numbers_are_refused(sizes: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"sizes is|component \d has size") as caught:
        Space(sizes)
    assert any(
        repr(size) in one_sentence(caught.value) for size in (sizes, *(sizes if isinstance(sizes, tuple | str) else ()))
    )


def test_sizes_may_come_from_numpy() -> None:
    for sizes in (np.array([3, 2]), [3, 2], (np.int64(3), np.uint8(2))):
        assert Space(sizes) == Space((3, 2))  # type: ignore[arg-type]
        Agent(Space(sizes), 2).begin([2, 1])  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", [-1, 1.5, "5", None, True, 2**60])
def test_runs_refuse_lengths_and_times_that_are_none(odd: Any) -> None:
    run = Run(lake(), parse("mcar:0.3", lake()), Settings(K=2))
    for refused in (lambda: run.advance(odd), lambda: run.record(odd), lambda: run.advance(5, times=[odd])):
        with pytest.raises(ValueError, match="it must be a whole number between 0 and") as caught:
            refused()
        assert repr(odd) in one_sentence(caught.value)
        assert run.steps == 0
    with pytest.raises(ValueError, match="first_observed is 'no'; it must be True or False"):
        Run(lake(), parse("mcar:0.3", lake()), Settings(), first_observed="no")  # type: ignore[arg-type]


def test_a_time_at_the_end_is_noted_once() -> None:
    run = Run(lake(), parse("mcar:0.3", lake()), Settings(K=2))
    run.advance(10, times=[5, 10, 10])
    run.advance(10, times=[5, 10, 20])
    assert [row[0] for row in run.curve] == [5.0, 10.0, 20.0]


def world(n_states: int, reward: float = 0.0) -> TabularMDP:
    return TabularMDP.build(
        lambda s, _: [(1.0, (s + 1) % n_states, reward, False)], space=Space((2,)),
        shows=[s % 2 for s in range(n_states)], n_actions=2, starts=[{0: 1.0}], terminates=False,
    )  # fmt: skip


def test_a_mechanism_of_another_world_is_refused() -> None:
    small, large = world(2), world(5000)
    with pytest.raises(ValueError, match="has rates for true states or actions of another world than world"):
        Run(large, by_true_state(small, np.full((2, 1), 0.5)), Settings())
    with pytest.raises(ValueError, match="true states or actions of another world"):
        Run(small, parse("after:0=0.5", Space((2,)), n_actions=7), Settings())
    with pytest.raises(ValueError, match=r"world pays 1e\+200; a reward must lie between"):
        Run(world(2, 1e200), parse("none", small), Settings())


def test_trials_need_a_problem_and_settings() -> None:
    with pytest.raises(TypeError, match="problem is 'lake'; it must be a Problem"):
        run_trial("lake", Settings(), steps=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="settings is None; it must be Settings"):
        run_trial(problem(), None, steps=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="workers is 0; it must be a whole number between 1 and 1024"):
        run_trials(problem(), Settings(), steps=1, seeds=[0], workers=0)


numbers = st.one_of(st.floats(-0.5, 1.5).map(str), st.sampled_from(["", "x", "nan", "inf", "1e400", "٠.٤", "0=0.5"]))
texts = st.one_of(
    st.text(max_size=8),
    st.builds(
        lambda k, ns: f"{k}:{','.join(ns)}", st.sampled_from([*MECHANISMS, "mcra"]), st.lists(numbers, max_size=4)
    ),
    st.sampled_from(list(MECHANISMS)),
)


@given(texts)
@effort(max_examples=300)
def test_mechanisms_are_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        mechanism = parse(text, lake())
    except ValueError as error:
        one_sentence(error)
        return
    assert isinstance(mechanism, Mechanism)
    assert ((mechanism.rates >= 0) & (mechanism.rates <= 1)).all()
    run = Run(lake(), mechanism, Settings("last-observed"))
    run.advance(5)
    assert run.steps == 5


@cache
def lake() -> TabularMDP:
    return Lake(stay=True).mdp()
