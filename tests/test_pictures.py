"""The wrapper's picture shows what is hidden: the components of this moment and the fog, as text and as pixels."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numpy.typing import NDArray

from lacuna.missingness import Mechanism, by_state, by_true_state
from lacuna.worlds.lake import Lake
from lacuna.worlds.lake_picture import LakePainter
from lacuna.worlds.mdp.painter import NOTHING_HIDDEN, Hidden
from lacuna.worlds.mdp.tabular_env import PlainPainter, TabularEnv
from lacuna.worlds.registry import WORLDS, make_world, world_env
from lacuna.wrappers import MissingObservation

LAKE = Lake()
CELL = 16
PAINTER = LakePainter(LAKE, cell=CELL)
NAMES = ("row", "column", "colour")
EVERY = [frozenset(chosen) for n in range(4) for chosen in combinations(NAMES, n)]
FOG = LAKE.mdp().regions["fog"]


def differs(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.asarray((one != other).any(axis=2))


# --- painters --------------------------------------------------------------------------------------------------------


@given(world=st.sampled_from(sorted(WORLDS)), data=st.data())
@effort(max_examples=60)
def test_in_plain_text_exactly_what_is_hidden_is_a_question_mark(world: str, data: st.DataObject) -> None:
    mdp = make_world(world)
    state = data.draw(st.integers(0, mdp.n_states - 1))
    hidden = data.draw(st.frozensets(st.sampled_from(mdp.space.names)))
    parts = PlainPainter(mdp).text(state, Hidden(hidden)).split(", ")
    values = mdp.space.decode(int(mdp.shows[state]))
    for part, name, value in zip(parts, mdp.space.names, values, strict=True):
        assert part == f"{name} {'?' if name in hidden else value}"


@pytest.mark.parametrize("hidden", EVERY, ids=lambda hidden: "-".join(sorted(hidden)) or "nothing")
def test_the_text_of_a_lake_marks_what_is_hidden_and_keeps_its_map(hidden: frozenset[str]) -> None:
    state = LAKE.state(6, 1, flooded=True)
    heading, *lines = PAINTER.text(state, Hidden(hidden)).splitlines()
    shown = {"row": "row 6", "column": "column 1", "colour": "green"}
    words = [f"{name} ?" if name in hidden else shown[name] for name in NAMES]
    assert heading == f"flooded; {', '.join(words)}"
    assert lines == PAINTER.text(state).splitlines()[1:]
    in_fog = PAINTER.text(state, Hidden(hidden, fog=True)).splitlines()[1:]
    assert [[sign == "?" for sign in line] for line in in_fog] == LAKE.fogged.tolist()


@pytest.mark.parametrize("fog", [False, True])
@given(state=st.integers(0, 127))
@effort(max_examples=30)
def test_in_a_picture_every_hidden_component_has_its_own_place(fog: bool, state: int) -> None:
    row, column, _ = LAKE.place(state)
    clear = PAINTER.picture(state, Hidden(fog=fog))
    places = {name: np.zeros(clear.shape[:2], dtype=np.bool_) for name in NAMES}
    places["row"][:, column * CELL : (column + 1) * CELL] = True
    places["column"][row * CELL : (row + 1) * CELL] = True
    places["colour"] = places["row"] & places["column"]
    pictures = {hidden: PAINTER.picture(state, Hidden(hidden, fog=fog)) for hidden in EVERY}
    assert len({picture.tobytes() for picture in pictures.values()}) == len(EVERY)
    for hidden, picture in pictures.items():
        marked = np.zeros(clear.shape[:2], dtype=np.bool_)
        for name in hidden:
            marked |= places[name]
        changed = differs(picture, clear)
        assert not changed[~marked].any()
        for name in hidden:
            assert changed[places[name]].any()


@pytest.mark.parametrize("flooded", [False, True])
def test_the_fog_is_a_white_haze_and_nothing_else_changes(flooded: bool) -> None:
    state = LAKE.state(7, 0, flooded=flooded)
    clear, foggy = PAINTER.picture(state), PAINTER.picture(state, Hidden(fog=True))
    cells = np.repeat(np.repeat(LAKE.fogged, CELL, axis=0), CELL, axis=1)
    assert not differs(clear, foggy)[~cells].any()
    assert (foggy >= clear).all()
    corner = CELL * 3 // 4
    before, after = (picture[corner::CELL, corner::CELL][LAKE.fogged] for picture in (clear, foggy))
    assert (after.min(axis=1) > before.min(axis=1)).all()


# --- the wrapper -----------------------------------------------------------------------------------------------------

MDP = LAKE.mdp()
FOGGY: dict[str, tuple[str | Mechanism, bool]] = {
    "mcar": ("mcar:0.5", False),
    "colours": ("mcolor:0.2,0.4,0.6", False),
    "fog": ("mfog:0.8,0.1", True),
    "thin inside": ("mfog:0.1,0.8", True),
    "no difference": ("mfog:0.5,0.5", False),
    "under another name": (by_state(MDP, _rates := np.where(LAKE.fogged, 0.9, 0.2).repeat(3), name="mist"), True),
    "by true state": (by_true_state(MDP, np.where(FOG, 0.9, 0.2)), True),
    "not only fog": (by_state(MDP, np.where(np.arange(192) == 0, 0.0, _rates)), False),
}


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
@pytest.mark.parametrize("case", FOGGY)
def test_the_wrapper_draws_what_it_hides(case: str, mode: str) -> None:
    mechanism, fog = FOGGY[case]
    bare = TabularEnv(MDP, mode, PAINTER)
    env = MissingObservation(bare, mechanism)
    draw: Any = PAINTER.text if mode == "ansi" else PAINTER.picture
    _, info = env.reset(seed=3)
    masks = set()
    for action in np.random.default_rng(5).integers(8, size=60):
        hidden = frozenset(name for name, lost in zip(NAMES, info["mask"], strict=True) if lost)
        masks.add(hidden)
        assert np.array_equal(env.render(), draw(bare.true_state, Hidden(hidden, fog)))
        assert np.array_equal(bare.render(), draw(bare.true_state)), "alone it shows nothing hidden"
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            _, info = env.reset()
    assert len(masks) > 3


def test_made_by_name_and_wrapped_again_it_is_drawn_all_the_same() -> None:
    env = gymnasium.wrappers.OrderEnforcing(
        MissingObservation(gymnasium.make("lacuna/Taxi-v0", render_mode="ansi"), "mcar:1.0")
    )
    env.reset(seed=0)
    env.step(0)
    assert env.render() == "taxi row ?, taxi column ?, passenger ?, destination ?"


def test_what_is_not_ours_or_not_drawn_stays_as_it_is() -> None:
    own = gymnasium.make("FrozenLake-v1", render_mode="ansi")
    env = MissingObservation(own, "mcar:1.0")
    env.reset(seed=0)
    assert env.render() == own.render()
    silent = MissingObservation(world_env("lake"), "mcar:1.0")
    silent.reset(seed=0)
    assert silent.render() is None
    # Other components than those of the world: which of its own are hidden cannot be told.
    flat = gymnasium.wrappers.TransformObservation(
        world_env("lake", render_mode="ansi"), lambda seen: int(np.asarray(seen)[0]), gymnasium.spaces.Discrete(8)
    )
    other = MissingObservation(flat, "mcar:1.0")
    other.reset(seed=0)
    other.step(0)
    assert "?" not in other.render()


def test_a_picture_that_fails_leaves_nothing_hidden() -> None:
    bare = TabularEnv(MDP, "ansi", PAINTER)
    env = MissingObservation(bare, "mcar:1.0")
    with pytest.raises(RuntimeError, match="render was called before the first reset"):
        env.render()
    assert bare.hidden == NOTHING_HIDDEN
