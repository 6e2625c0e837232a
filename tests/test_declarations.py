"""A world or a mechanism is declared once, in one file, and known everywhere: in the package and from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import lacuna
from lacuna.missingness import MECHANISMS, Mechanism, mcar, parse
from lacuna.missingness.rates import Where
from lacuna.missingness.texts import MechanismKind, mechanism
from lacuna.run.problems import Problem
from lacuna.worlds.lake import Lake
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import WORLDS, World, make_world, world
from lacuna.worlds.toys import corridor

PACKAGE = Path(lacuna.__file__).parent

ISLAND = """
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import world
from lacuna.worlds.toys import field


@world("island", "lacuna/Island-v0", "a field with the sea around it")
def island(size: int = 3) -> TabularMDP:
    return field(size, size)
"""

DUSK = """
from lacuna.missingness import Mechanism, mcar
from lacuna.missingness.texts import mechanism
from lacuna.missingness.rates import Where


@mechanism("dusk", "dusk:FIRST[,LAST]", "rates that rise from the first component to the last")
def dusk(where: Where, first: float, last: float = 1.0, *, bright: bool = False) -> Mechanism:
    return mcar(where, (first / 2 if bright else first, last))
"""


def python(code: str, path: Path) -> str:
    """What some code prints, with a folder in front of everything that is installed."""
    environment = os.environ | {"PYTHONPATH": f"{path}:{PACKAGE.parent}", "NUMBA_DISABLE_JIT": "1"}
    words = [sys.executable, "-c", code]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=path).stdout


def test_a_world_in_one_more_file_is_known_everywhere(tmp_path: Path) -> None:
    copy = tmp_path / "lacuna"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "worlds" / "island.py").write_text(ISLAND)
    code = """
import gymnasium, lacuna
from lacuna.worlds.registry import WORLDS, find_world, parse_world
assert lacuna.__file__.startswith({folder!r}), lacuna.__file__
print(len(WORLDS), WORLDS["island"].about)
name, parameters = parse_world("island,size=4")
print(lacuna.make_world(name, **parameters), gymnasium.make("lacuna/Island-v0", size=2).reset(seed=0)[0])
try:
    find_world("ireland")
except ValueError as error:
    print(error)
"""
    listed, made, refused = python(code.format(folder=str(copy)), tmp_path).splitlines()
    assert listed == f"{len(WORLDS) + 1} a field with the sea around it"
    assert made == "TabularMDP('field', 16 states, 4 actions, shows row 4 x column 4) [0 0]"
    assert refused.startswith("no world is called 'ireland' (did you mean 'island'?); there are ")


def test_a_mechanism_in_a_module_of_ones_own_is_known_everywhere(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DUSK)
    code = """
import mine, lacuna
from lacuna.missingness import MECHANISMS, parse
print(len(MECHANISMS), MECHANISMS["dusk"].written, MECHANISMS["dusk"].about)
print(parse("dusk:0.1", 2).name, parse("dusk:0.1,0.5", 2).name)
for text in ("dusky:0.1", "dusk", "dusk:0.1,0.2,0.3", "dusk:x"):
    try:
        parse(text, 2)
    except ValueError as error:
        print(error)
env = lacuna.MissingObservation(lacuna.TabularEnv(lacuna.make_world("field")), "dusk:0.0,1.0")
env.reset(seed=0)
print(env.step(0)[-1]["mask"])
"""
    listed, made, misspelt, *refused, mask = python(code, tmp_path).splitlines()
    assert listed == f"{len(MECHANISMS) + 1} dusk:FIRST[,LAST] rates that rise from the first component to the last"
    assert made == "mcar:0.1,1.0 mcar:0.1,0.5"
    assert misspelt.startswith("no mechanism is called 'dusky' (did you mean 'dusk'?); there are none, mcar")
    write = "Write dusk:FIRST[,LAST]: rates that rise from the first component to the last"
    assert refused == [
        f"'dusk' is not a mechanism: it has 0 values. {write}",
        f"'dusk:0.1,0.2,0.3' is not a mechanism: it has 3 values. {write}",
        f"'dusk:x' is not a mechanism: 'x' is not a number. {write}",
    ]
    assert mask == "[0 1]"


def test_a_mechanism_in_one_more_file_is_found_too(tmp_path: Path) -> None:
    copy = tmp_path / "lacuna"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "missingness" / "dusk.py").write_text(DUSK)
    assert (
        python("from lacuna.missingness import parse; print(parse('dusk:0.5', 2).name)", tmp_path) == "mcar:0.5,1.0\n"
    )


def test_a_name_may_be_declared_again_where_it_was_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "ours", MechanismKind("ours", "ours", "", mcar))
    monkeypatch.setitem(WORLDS, "ours", World("ours", "ours/Ours-v0", "", corridor))

    def make_mechanism(where: int, theta: float) -> Mechanism:
        return mcar(where, theta)

    def make_world() -> TabularMDP:
        return corridor()

    with pytest.raises(ValueError, match=r"the mechanism 'ours' is declared by lacuna\.missingness\.constructors"):
        mechanism("ours", "ours:THETA", "mine")(make_mechanism)
    with pytest.raises(ValueError, match=r"the world 'ours' is declared by lacuna\.worlds\.toys already"):
        world("ours", "other/Other-v0", "mine")(make_world)
    with pytest.raises(ValueError, match=r"cannot be called 'lacuna/Corridor-v0': Gymnasium knows another"):
        world("other", "lacuna/Corridor-v0", "mine")(make_world)
    assert mechanism("ours", "ours:THETA", "as before")(mcar) is mcar
    assert MECHANISMS["ours"].about == "as before"
    assert "ours/Ours-v0" not in gymnasium.registry


# --- declarations that cannot be ------------------------------------------------------------------------------------


def untyped(size=3):  # type: ignore[no-untyped-def]
    return corridor(size)


def required(size: int) -> TabularMDP:
    return corridor(size)


def open_ended(**sizes: int) -> TabularMDP:
    return corridor(sizes["length"])


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untyped, "the world 'odd' cannot be declared: its parameter size has no type"),
        (required, "the world 'odd' cannot be declared: its parameter size has no default"),
        (open_ended, r"the world 'odd' cannot be declared: \*sizes stands for any number of parameters; name each"),
    ],
)
def test_a_world_that_cannot_be_made_from_a_text_is_refused_when_it_is_declared(build: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        world("odd", "mine/Odd-v0", "odd")(build)
    assert "odd" not in WORLDS
    assert "mine/Odd-v0" not in gymnasium.registry


def test_an_environment_of_that_name_is_not_replaced() -> None:
    with pytest.raises(ValueError, match="cannot be called 'CartPole-v1': Gymnasium knows another environment"):
        world("cart", "CartPole-v1", "a cart")(corridor)
    assert "cart" not in WORLDS


class Tunnel:
    """A class that is no dataclass."""

    def __init__(self, length: int = 4) -> None:
        self.length = length

    def mdp(self) -> TabularMDP:
        return corridor(self.length)


def test_a_plain_class_makes_a_world_and_what_makes_none_is_refused() -> None:
    world("tunnel", "mine/Tunnel-v1", "a tunnel")(Tunnel)
    assert make_world("tunnel", length=7).n_states == 7
    world("five", "mine/Five-v0", "no world")(lambda: 5)
    with pytest.raises(TypeError, match="the world 'five' made 5; it must make a TabularMDP"):
        make_world("five")


def without_type(where, theta):  # type: ignore[no-untyped-def]
    return mcar(where, theta)


@pytest.mark.parametrize(
    ("name", "build", "sentence"),
    [
        ("odd", without_type, "the mechanism 'odd' cannot be declared: its parameter where has no type"),
        ("odd:2", mcar, "it needs a name without : or comma"),
        ("odd", lambda: None, "it needs a name without : or comma, and a first parameter"),
    ],
)
def test_a_mechanism_that_no_text_could_make_is_refused_when_it_is_declared(
    name: str, build: Any, sentence: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        mechanism(name, "odd:X", "odd")(build)
    assert name not in MECHANISMS


def test_a_list_beside_other_numbers_is_written_with_slashes(monkeypatch: pytest.MonkeyPatch) -> None:
    def several(where: Where, theta: float, rates: list[float]) -> Mechanism:
        return mcar(where, [theta, *rates])

    monkeypatch.setitem(MECHANISMS, "several", MechanismKind("several", "several:THETA,RATES", "", several))
    assert parse("several:0.1,0.2/0.3", 3).name == "mcar:0.1,0.2,0.3"
    assert parse("several:0.1,0.2", 2).name == "mcar:0.1,0.2"
    for text in ("several:0.1", "several:0.1,0.2,0.3", "several:0.1/0.2,0.3", "several:0.1,0.2/"):
        with pytest.raises(ValueError, match=r"is not a mechanism: .*Write several:THETA,RATES"):
            parse(text, 3)


@pytest.mark.parametrize("rewards", [(-1, -10, 99.5), [-1, -10, 99.5], (-1.0, -10.0, 99.5)])
def test_whole_numbers_and_others_make_the_same_world(rewards: Any) -> None:
    wanted = Lake(rewards=(-1.0, -10.0, 99.5)).mdp()
    assert np.array_equal(make_world("lake", rewards=rewards).reward, wanted.reward)
    assert np.array_equal(Lake(rewards=tuple(rewards)).mdp().reward, wanted.reward)
    assert 99.5 in wanted.reward


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lake,wind=0.2\nstay=true", r"wind of the world 'lake' is '0.2\\nstay=true'; it must be a number"),
        ("lake,wind=0.2 # calm", "wind of the world 'lake' is '0.2 # calm'; it must be a number"),
        ("lake,wind=" + "1" * 5000, "wind of the world 'lake' is '1111"),
        ("lake,name=foo", "the world 'lake' has no parameter 'name'"),
        ("lake,self=1", "the world 'lake' has no parameter 'self'"),
    ],
)
def test_nothing_in_the_text_of_a_world_is_dropped(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Problem.named(text, "none")


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"wind is given twice, in .lake,wind=0\.1. and as a parameter"):
        Problem.named("lake,wind=0.1", "none", {"wind": 0.2})
