"""A world or a mechanism is declared once, in one file, and known everywhere: in the package and from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

import lacuna
from lacuna.mdp.tabular import TabularMDP
from lacuna.missingness import MECHANISMS, Mechanism, mcar
from lacuna.missingness.registry import MechanismKind, mechanism
from lacuna.worlds.registry import WORLDS, World, world
from lacuna.worlds.toys import corridor

PACKAGE = Path(lacuna.__file__).parent

ISLAND = """
from lacuna.mdp.tabular import TabularMDP
from lacuna.worlds.registry import world
from lacuna.worlds.toys import field


@world("island", "lacuna/Island-v0", "a field with the sea around it")
def island(size: int = 3) -> TabularMDP:
    return field(size, size)
"""

DUSK = """
from lacuna.missingness import Mechanism, mcar
from lacuna.missingness.registry import mechanism
from lacuna.missingness.tables import Where


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

    with pytest.raises(ValueError, match=r"mechanism called 'ours' is declared by lacuna\.missingness\.constructors"):
        mechanism("ours", "ours:THETA", "mine")(make_mechanism)
    for name, env_id in (("ours", "other/Other-v0"), ("other", "ours/Ours-v0")):
        with pytest.raises(ValueError, match=r"is declared by lacuna\.worlds\.toys already"):
            world(name, env_id, "mine")(make_world)
    assert mechanism("ours", "ours:THETA", "as before")(mcar) is mcar
    assert MECHANISMS["ours"].about == "as before"
    assert "ours/Ours-v0" not in gymnasium.registry
