import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lacuna.kernels.space import Space
from lacuna.kernels.streams import Stream, Uniforms
from lacuna.worlds.mdp.dynamics import move, pick, start_state
from lacuna.worlds.mdp.tabular import Outcome, TabularMDP, _cumulative

Table = dict[int, dict[int, list[Outcome]]]

TWO: Table = {
    0: {0: [(0.25, 0, -1.0, False), (0.75, 1, 2.0, True)], 1: [(1.0, 0, 0.0, False)]},
    1: {0: [(1.0, 1, 0.0, True)], 1: [(0.5, 0, 1.0, False), (0.5, 1, 1.0, False)]},
}


def build(table: Table = TWO, **changes: Any) -> TabularMDP:
    arguments: dict[str, Any] = {"space": Space((2,)), "shows": [0, 1], "n_actions": 2, "starts": [{0: 1.0}]}
    return TabularMDP.build(table, **{**arguments, **changes})


def arrays(**changes: Any) -> dict[str, Any]:
    """The fields of the world `TWO` as fresh arrays, some of them changed."""
    world = build()
    names = (
        "space", "n_actions", "ptr", "next_state", "probability", "reward", "ends", "shows", "starts", "restart", "bad",
    )  # fmt: skip
    fields = {name: getattr(world, name) for name in names}
    fields = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in fields.items()}
    return {**fields, **changes}


def put(name: str, place: int, value: Any) -> dict[str, Any]:
    fields = arrays()
    fields[name][place] = value
    return fields


def given_numbers(*values: float) -> Uniforms:
    return Uniforms(np.array(values), np.zeros(1, dtype=np.int64))


def test_outcomes_are_merged_sorted_and_kept_apart_by_reward_and_end() -> None:
    row = [(0.2, 1, 1.0, False), (0.1, 0, 1.0, False), (0.3, 1, 1.0, False), (0.2, 1, 2.0, False), (0.2, 1, 1.0, True)]
    world = build({0: {0: row, 1: [(1.0, 0, 0.0, False), (0.0, 1, 9.0, True)]}, 1: TWO[1]})
    assert world.outcomes(0, 0) == [
        (0.5, 1, 1.0, False), (0.2, 1, 1.0, True), (0.2, 1, 2.0, False), (0.1, 0, 1.0, False),
    ]  # fmt: skip
    assert world.outcomes(0, 1) == [(1.0, 0, 0.0, False)], "what cannot happen is left out"


def test_a_function_and_a_table_build_the_same_world() -> None:
    by_table, by_function = build(), TabularMDP.build(
        lambda s, a: TWO[s][a], space=Space((2,)), shows=[0, 1], n_actions=2, starts=[{0: 1.0}]
    )  # fmt: skip
    for what in ("ptr", "next_state", "probability", "reward", "ends"):
        assert np.array_equal(getattr(by_table, what), getattr(by_function, what))
    assert by_table.action_names == ("0", "1")
    assert (by_table.terminates, by_table.max_steps, by_table.name) == (True, 0, "world")
    assert by_table.restart.tolist() == [0, 0]
    assert by_table.bad.tolist() == [False, False]


def test_the_arrays_are_frozen() -> None:
    world = build(regions={"far": np.array([False, True])})
    for array in (world.ptr, world.next_state, world.probability, world.reward, world.ends, world.shows, world.restart,
                  world.bad, world.regions["far"]):  # fmt: skip
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (arrays(n_actions=0), "n_actions is 0; it must be a whole number between 1 and"),
        (arrays(max_steps=-3), "max_steps is -3; it must be a whole number between 0 and"),
        (arrays(action_names=("one",)), "1 action names for 2 actions"),
        (arrays(ptr=np.array([0, 2])), "ptr must rise from 0 over 5 entries (states x actions + 1)"),
        (put("ptr", 0, 1), "ptr must rise from 0 over 5 entries"),
        (put("ptr", 1, 4), "ptr must rise from 0 over 5 entries"),
        (arrays(reward=np.zeros(3)), "reward has shape (3,); ptr says 6 outcomes"),
        (arrays(next_state=np.zeros(7, dtype=int)), "next_state has shape (7,); ptr says 6 outcomes"),
        (arrays(probability=np.zeros(0)), "probability has shape (0,); ptr says 6 outcomes"),
        (arrays(ends=np.zeros((6, 1), dtype=bool)), "ends has shape (6, 1); ptr says 6 outcomes"),
        (put("next_state", 2, 2), "an outcome of state 0, action 1 leads to state 2, which does not exist"),
        (put("next_state", 5, -1), "an outcome of state 1, action 1 leads to state -1, which does not exist"),
        (put("reward", 3, np.nan), "an outcome of state 1, action 0 pays nan; rewards must be finite numbers"),
        (put("probability", 0, -0.25), "an outcome of state 0, action 0 has probability -0.25, not between 0 and 1"),
        (put("probability", 4, 1.5), "an outcome of state 1, action 1 has probability 1.5, not between 0 and 1"),
        (put("probability", 0, np.nan), "an outcome of state 0, action 0 has probability nan, not between 0 and 1"),
        (put("probability", 4, 0.4), "the probabilities of state 1, action 1 add up to 0.9, not 1"),
        (put("shows", 1, 2), "state 1 shows 2; the space has states 0 to 1"),
        (put("shows", 0, -1), "state 0 shows -1; the space has states 0 to 1"),
        (arrays(restart=np.zeros(1, dtype=int)), "restart has shape (1,); it needs an entry for each of 2 states"),
        (arrays(bad=np.zeros(3, dtype=bool)), "bad has shape (3,); it needs an entry for each of 2 states"),
        (arrays(regions={"fog": np.zeros(3, dtype=bool)}), "fog has shape (3,); it needs an entry"),
        (put("restart", 1, 1), "restart names a start outside 0 to 0"),
        (arrays(starts=({},)), "the probabilities of start 0 must be positive and add up to 1, got {}"),
        (arrays(starts=({0: 1.0}, {0: 0.5, 1: 0.4})), "the probabilities of start 1 must be positive and add up to 1"),
        (arrays(starts=({0: 1.5, 1: -0.5},)), "the probabilities of start 0 must be positive and add up to 1"),
        (arrays(starts=({2: 1.0},)), "start 0 names a state outside 0 to 1: [2]"),
    ],
)
def test_wrong_arrays_are_refused_with_a_sentence(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        TabularMDP(**fields)


def test_a_world_without_a_way_to_start_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a world needs at least one way to start|restart names a start outside"):
        TabularMDP(**arrays(starts=()))


def test_an_action_without_outcomes_is_refused() -> None:
    with pytest.raises(ValueError, match="the probabilities of state 0, action 1 add up to 0, not 1"):
        build({0: {0: TWO[0][0], 1: []}, 1: TWO[1]})
    with pytest.raises(ValueError, match="the probabilities of state 1, action 1 add up to 0, not 1"):
        build({0: TWO[0], 1: {0: TWO[1][0], 1: []}})


@settings(max_examples=60)
@given(lengths=st.lists(st.one_of(st.integers(0, 6), st.integers(60, 70)), max_size=12), seed=st.integers(0, 999))
def test_running_sums_are_those_of_each_row_and_end_at_exactly_1(lengths: list[int], seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = [generator.dirichlet(np.ones(n)) if n else np.zeros(0) for n in lengths]
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    probability: NDArray[np.float64] = np.concatenate([np.zeros(0), *rows])
    total = _cumulative(ptr, probability)
    for k, row in enumerate(rows):
        ours = total[ptr[k] : ptr[k + 1]]
        assert ours[:-1].tolist() == np.cumsum(row)[:-1].tolist()
        assert ours[-1:].tolist() == [1.0] * min(len(row), 1)


def test_a_pick_falls_into_its_interval() -> None:
    cumulative = np.array([0.5, 1.0, 0.25, 0.75, 1.0])
    assert [pick(0, cumulative, u) for u in (0.0, 0.4999, 0.5, 0.9999)] == [0, 0, 1, 1]
    assert [pick(2, cumulative, u) for u in (0.0, 0.25, 0.7499, 0.75, np.nextafter(1, 0))] == [2, 3, 3, 4, 4]


def test_moves_and_starts_take_one_number_each() -> None:
    world = build(starts=[{0: 0.5, 1: 0.5}, {1: 1.0}]).dynamics
    uniforms = given_numbers(0.6, 0.1, 0.74, 0.76)
    assert start_state(0, world, uniforms) == 1
    assert start_state(1, world, uniforms) == 1
    entries = [move(0, 0, world, uniforms) for _ in range(2)]
    assert uniforms.cursor[0] == 4
    assert [world.reward[e] for e in entries] == [2.0, -1.0]
    assert [bool(world.ends[e]) for e in entries] == [True, False]


def test_moves_have_the_frequencies_of_the_table() -> None:
    world = build()
    n = 20_000
    uniforms = Stream(1, "world").need(n)
    arrived = sum(int(world.next_state[move(0, 0, world.dynamics, uniforms)]) for _ in range(n))
    assert abs(arrived / n - 0.75) < 4 * np.sqrt(0.75 * 0.25 / n)


def test_what_kernels_see_of_a_world() -> None:
    world = build(space=Space((2, 3)), shows=[4, 1], max_steps=5, terminates=False)
    seen = world.dynamics
    assert seen.shown.tolist() == [[1, 1], [0, 1]]
    assert (seen.n_actions, seen.terminates, seen.max_steps) == (2, False, 5)
    assert seen.start_ptr.tolist() == [0, 1]
    assert world.n_states == 2
