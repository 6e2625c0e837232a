import re
from dataclasses import FrozenInstanceError
from itertools import product
from typing import Any

import numpy as np
import pytest

import naive
from lacuna.worlds.lake import MOVES, PAPER_MAP, Lake, Rewards
from lacuna.worlds.lake_picture import LAKE_PALETTE, LakePainter, draw_lake
from lacuna.worlds.mdp.painter import Hidden
from lacuna.worlds.mdp.tabular import TabularMDP

TINY = "S.wG"


def as_dictionary(lake: Lake, state: int, action: int) -> naive.Outcomes:
    outcomes = lake.mdp().outcomes(state, action)
    table = {(*lake.place(t), r, end): p for p, t, r, end in outcomes}
    assert len(table) == len(outcomes), "equal outcomes are merged"
    return table


def every_cell() -> list[tuple[int, int, bool]]:
    return list(product(range(8), range(8), (False, True)))


@pytest.mark.parametrize("continuing", [False, True])
@pytest.mark.parametrize(("wind", "flood"), [(0.1, 0.1), (0.0, 0.0), (0.35, 0.02), (1.0, 1.0), (0.0, 0.5)])
def test_the_table_is_that_of_the_naive_enumeration(wind: float, flood: float, continuing: bool) -> None:
    lake = Lake(wind=wind, flood=flood, stay=True, continuing=continuing)
    seen = 0
    for row, column, flooded in every_cell():
        for action in range(9):
            ours = as_dictionary(lake, lake.state(row, column, flooded=flooded), action)
            truth = naive.lake_outcomes(row, column, flooded, action, wind, flood)
            assert ours.keys() == truth.keys(), (row, column, flooded, action)
            for key, p in truth.items():
                assert abs(ours[key] - p) <= 1e-12, (row, column, flooded, action, key)
            seen += 1
    assert seen == 128 * 9
    assert lake.mdp().terminates is not continuing


def test_the_two_readings_differ_in_the_flag_only() -> None:
    one, other = Lake().mdp(), Lake(continuing=True).mdp()
    for what in ("ptr", "next_state", "probability", "reward", "ends", "shows", "restart", "bad"):
        assert np.array_equal(getattr(one, what), getattr(other, what)), what
    assert one.starts == other.starts
    assert (one.terminates, other.terminates) == (True, False)


def test_without_stay_the_first_eight_actions_are_unchanged() -> None:
    moving, staying = Lake().mdp(), Lake(stay=True).mdp()
    assert moving.action_names == tuple(MOVES)[:8]
    assert staying.action_names == tuple(MOVES)
    assert list(MOVES.values()) == naive.ACTIONS
    assert all(moving.outcomes(s, a) == staying.outcomes(s, a) for s in range(128) for a in range(8))


def test_outcomes_come_likeliest_first_then_by_next_state_as_build_would_order_them() -> None:
    lake = Lake(stay=True)
    world = lake.mdp()
    rebuilt = TabularMDP.build(
        world.outcomes, space=world.space, shows=world.shows, n_actions=9, starts=world.starts, restart=world.restart
    )
    for what in ("ptr", "next_state", "probability", "reward", "ends"):
        assert np.array_equal(getattr(world, what), getattr(rebuilt, what)), what


def test_what_is_shown_and_what_is_bad() -> None:
    lake = Lake()
    world = lake.mdp()
    assert world.space.names == ("row", "column", "colour")
    for row, column, flooded in every_cell():
        s = lake.state(row, column, flooded=flooded)
        assert s == (row * 8 + column) * 2 + flooded
        assert lake.place(s) == (row, column, flooded)
        assert world.space.decode(int(world.shows[s])) == (row, column, naive.colour(row, column, flooded))
        assert bool(world.bad[s]) is naive.is_water(row, column, flooded)
        assert bool(world.regions["fog"][s]) is (row <= 2 and column >= 5)
        assert world.restart[s] == (0 if flooded else 1)
    assert world.starts == ({113: 1.0}, {112: 1.0})


def test_the_last_column_is_its_own_right_neighbour() -> None:
    colour = Lake(map="S.W\nGww").ground.colour
    assert colour[0].tolist() == [[0, 1, 2], [0, 0, 0]]
    assert colour[1].tolist() == [[0, 1, 2], [1, 2, 2]]


def test_a_map_of_one_row_and_rewards_of_ones_own() -> None:
    lake = Lake(map=TINY, wind=0.0, flood=1.0, rewards=(-2.0, -3.0, 7.0), max_steps=9)
    world = lake.mdp()
    right, up = world.action_names.index("right"), world.action_names.index("up")
    assert lake.rewards == Rewards(-2.0, -3.0, 7.0)
    assert world.max_steps == 9
    assert world.outcomes(lake.state(0, 1, flooded=False), right) == [(1.0, 5, -3.0, False)]
    assert world.outcomes(lake.state(0, 1, flooded=True), right) == [(1.0, 4, -2.0, False)]
    assert world.outcomes(lake.state(0, 2, flooded=True), right) == [(1.0, 6, 7.0, True)]
    assert world.outcomes(lake.state(0, 1, flooded=True), up) == [(1.0, 2, -2.0, False)]


def test_the_step_after_the_goal_is_taken_from_the_start() -> None:
    world = Lake().mdp()
    goal, start = Lake().state(6, 7, flooded=True), Lake().state(7, 0, flooded=True)
    assert all(world.outcomes(goal, a) == world.outcomes(start, a) for a in range(8))


def test_fog_as_text_and_as_a_box() -> None:
    by_text = Lake(map=TINY, fog="..#.")
    assert by_text.fogged.tolist() == [[False, False, True, False]]
    assert Lake(map=TINY, fog=(0, 0, 2, 2)).fogged.tolist() == by_text.fogged.tolist()
    assert Lake(map=TINY).fogged.tolist() == [[False, True, True, True]]
    assert by_text.mdp().regions["fog"].tolist() == [False] * 4 + [True] * 2 + [False] * 2


def test_a_lake_is_frozen_hashable_and_builds_its_table_once() -> None:
    lake = Lake()
    assert lake == Lake()
    assert hash(lake) == hash(Lake(map=PAPER_MAP))
    assert lake.mdp() is lake.mdp()
    with pytest.raises(FrozenInstanceError):
        lake.wind = 0.5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"map": "S.\nx.\n.G"}, "map, row 1, column 0: 'x' is unknown; there are '.' land, 'W' water"),
        ({"map": "S..\n..\n..G"}, "map, row 1, column 2: the row has 2 cells where 3 are needed"),
        ({"map": "S..\n....\n..G"}, "map, row 1, column 3: the row has 4 cells where 3 are needed"),
        ({"map": "S..\n\n..G"}, "map, row 1, column 0: the row has 0 cells where 3 are needed"),
        ({"map": "...\n..G"}, "the map needs exactly one start 'S' and has 0: none"),
        ({"map": "S..\n..."}, "the map needs exactly one goal 'G' and has 0: none"),
        ({"map": "S..\n.SG"}, "exactly one start 'S' and has 2: row 0, column 0; row 1, column 1"),
        ({"map": "SG.\n..G"}, "exactly one goal 'G' and has 2: row 0, column 1; row 1, column 2"),
        ({"map": " \n "}, "the map is empty"),
        ({"map": TINY, "fog": "..?."}, "fog map, row 0, column 2: '?' is unknown; there are '.' clear, '#' fog"),
        ({"map": TINY, "fog": "..#"}, "fog map, row 0, column 3: the row has 3 cells where 4 are needed"),
        ({"map": TINY, "fog": "....\n...."}, "fog map, row 1: it has 2 rows, the map has 1"),
        ({"fog": (0, 8, 5, 7)}, "fog is rows 0 to 8, columns 5 to 7; the map has rows 0 to 7 and columns 0 to 7"),
        ({"fog": (2, 1, 5, 7)}, "fog is rows 2 to 1"),
        ({"fog": (0, 1)}, "fog is (0, 1); it must be (first row, last row, first column, last column)"),
        ({"wind": 1.5}, "wind is 1.5; it must be a number between 0 and 1"),
        ({"flood": -0.1}, "flood is -0.1; it must be a number between 0 and 1"),
        ({"flood": float("nan")}, "flood is nan; it must be a number between 0 and 1"),
        ({"rewards": (1.0, 2.0)}, "rewards are (1.0, 2.0); there must be 3: land, water, goal"),
        ({"rewards": (-1.0, float("inf"), 1.0)}, "the reward for water is inf; it must be a finite number"),
        ({"max_steps": -1}, "max_steps is -1; it must be a whole number between 0 and"),
    ],
)
def test_wrong_parameters_are_refused_with_a_sentence(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Lake(**parameters)


def test_places_outside_the_map_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no row 8, column 0; the map has rows 0 to 7 and columns 0 to 7"):
        Lake().state(8, 0, flooded=True)
    with pytest.raises(ValueError, match="state 128 does not exist; there are 0 to 127"):
        Lake().place(128)


@pytest.mark.parametrize("fog", [False, True])
@pytest.mark.parametrize("flooded", [False, True])
def test_the_four_panels_of_figure_2(flooded: bool, fog: bool) -> None:
    lake = Lake()
    picture = LakePainter(lake).picture(lake.state(6, 1, flooded=flooded), Hidden(fog=fog))
    assert picture.shape == (384, 384, 3)
    assert picture.dtype == np.uint8
    colours = {name: list(bytes.fromhex(value[1:])) for name, value in LAKE_PALETTE.items()}
    for row, column in product(range(8), range(8)):
        home = (row, column) in (naive.START, naive.GOAL)
        fill = colours["home" if home else ("green", "orange", "red")[naive.colour(row, column, flooded)]]
        if fog and row <= 2 and column >= 5:
            fill = np.rint(0.62 * 255 + 0.38 * np.array(fill)).tolist()
        # Beside the letters, the agent and the shore.
        assert picture[row * 48 + 40, column * 48 + 40].tolist() == fill, (row, column)
        left_edge = picture[row * 48 + 24, column * 48 + 2].tolist()
        on_shore = naive.is_water(row, column, flooded) and not naive.is_water(row, column - 1, flooded)
        assert (left_edge == colours["water"]) is on_shore, (row, column)
        assert (left_edge == colours["ink"]) is home, (row, column)


def test_every_cell_has_the_letter_of_its_colour() -> None:
    for flooded in (False, True):
        drawn = draw_lake(Lake(), flooded=flooded).letters[::-1]
        letters = {(int(one.row), int(one.column)): one.text for one in drawn}
        for row, column in product(range(8), range(8)):
            assert letters[row, column] == "gor"[naive.colour(row, column, flooded)]
    dark = LakePainter(Lake(), cell=24).picture(0)[2:10, 39:46] < 40
    assert dark.all(axis=2).any(), "written in a picture, if there is room"


def test_the_agent_is_a_dark_disc_in_its_cell_only() -> None:
    lake = Lake()
    painter = LakePainter(lake, cell=20)
    picture, other = (painter.picture(lake.state(1, column, flooded=True)) for column in (2, 4))
    changed = (picture != other).any(axis=2)
    assert picture[30, 50].tolist() == other[30, 90].tolist() == [44, 44, 52]
    for left in (40, 80):
        assert changed[20:40, left : left + 20].any()
        changed[20:40, left : left + 20] = False
    assert not changed.any()


def test_text_shows_the_map_in_force() -> None:
    lake = Lake(map=TINY)
    assert LakePainter(lake).text(lake.state(0, 1, flooded=True)) == "flooded; row 0, column 1, orange\nS@~G"
    assert LakePainter(lake).text(lake.state(0, 1, flooded=False)) == "dry; row 0, column 1, green\nS@.G"
    with pytest.raises(ValueError, match="cell is 3 pixels; it must be at least 8"):
        LakePainter(lake, cell=3)


def test_a_large_map_keeps_every_row_a_distribution() -> None:
    rows = ["." * 60 for _ in range(40)]
    rows[0], rows[39] = "." * 59 + "G", "S" + "w" * 30 + "W" * 29
    lake = Lake(map="\n".join(rows), stay=True)
    world = lake.mdp()
    assert world.n_states == 2 * 40 * 60
    ends = world.dynamics.cumulative[world.ptr[1:] - 1]
    assert (ends == 1.0).all()
    s = lake.state(20, 30, flooded=False)
    small = Lake(stay=True)
    inner = small.state(1, 3, flooded=False)
    for a in range(9):
        assert [o[0] for o in world.outcomes(s, a)] == [o[0] for o in small.mdp().outcomes(inner, a)]
