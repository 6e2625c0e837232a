"""A study file: what is wrong is said in sentences, what is right expands to runs named after what they are."""

from __future__ import annotations

import itertools
import json
import math
import random
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import Settings
from lacuna.missingness import MECHANISMS
from lacuna.run.problems import Problem
from lacuna.run.run import Run
from lacuna.study.runner import execute, problem_of
from lacuna.study.runs import RunSpec
from lacuna.study.spec import Study, StudyError
from lacuna.worlds.registry import WORLDS, make_world

GOOD = """\
name = "good"
steps = 1000
trials = 3
first_trial = 2
missingness = ["mcar:0.2", "mcolor:0.2,0.4,0.6", "mfog:0.5,0.0"]
curve_points = 4
curve_times = [10, 500]

[[worlds]]
name = "lake"
wind = 0.2
stay = true

[grid]
alpha = [0.1, 1.0]
gamma = 1.0

[[methods]]
name = "last-observed"

[[methods]]
name = "mi-synthetic"
K = [1, 5]
vote = "majority"
"""


def change(old: str, new: str) -> str:
    """The good study with one thing altered."""
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def with_world(text: str) -> str:
    """The good study in another world, with one mechanism that suits any."""
    head, _, rest = GOOD.partition("[[worlds]]")
    head = head.replace(', "mcolor:0.2,0.4,0.6", "mfog:0.5,0.0"', "")
    return f"{head}[[worlds]]\n{text}\n\n[grid]{rest.partition('[grid]')[2]}"


NUMBER = "it must be a number between 0 and 1"
LONG = "9" * 400
"""A whole number that is too large for a float."""

BROKEN: dict[str, tuple[str, tuple[str, ...]]] = {
    # --- not TOML: the message names the line
    "an open quote": (change('"good"', '"good'), ("not valid TOML", "line 1")),
    "an open bracket": (change("[10, 500]", "[10, 500"), ("not valid TOML", "line 9")),
    "no value": (change("steps = 1000", "steps ="), ("not valid TOML", "line 2")),
    "no equals sign": (change("steps = 1000", "steps 1000"), ("not valid TOML", "line 2")),
    "a bare word": (change("stay = true", "stay = yes"), ("not valid TOML", "line 12")),
    "Python's True": (change("stay = true", "stay = True"), ("not valid TOML", "line 12")),
    "a comma for a point": (change("wind = 0.2", "wind = 0,2"), ("not valid TOML", "line 11")),
    "a leading zero": (change("trials = 3", "trials = 03"), ("not valid TOML", "line 3")),
    "a key twice": (change("trials = 3", "steps = 3"), ("not valid TOML", "line 3")),
    "a table twice": (GOOD + "\n[grid]\nK = 2\n", ("not valid TOML", "grid", "line 26")),
    "a date that is none": (change("steps = 1000", "steps = 2020-13-45"), ("not valid TOML", "line 2")),
    "a number of thousands of digits": (change("steps = 1000", f"steps = {'9' * 5000}"), ("not valid TOML", "digits")),
    "brackets without end": (change("[10, 500]", "[" * 5000), ("not valid TOML",)),
    "a forbidden character": (change('"good"', '"go\x00od"'), ("not valid TOML", "line 1")),
    # --- keys
    "nothing at all": (
        "",
        tuple(f"{key} is missing" for key in ("name", "steps", "trials", "missingness", "worlds", "methods")),
    ),
    "no name": (change('name = "good"\n', ""), ("name is missing; it is needed",)),
    "no steps": (change("steps = 1000\n", ""), ("steps is missing; it is needed",)),
    "a world without a name": (change('name = "lake"\n', ""), ("worlds[0].name is missing; it is needed",)),
    "a method without a name": (change('name = "last-observed"\n', ""), ("methods[0].name is missing",)),
    "a misspelt key": (
        change("trials = 3", "trails = 3"),
        ("trails is not a key", "did you mean 'trials'?", "there are name, steps, trials"),
    ),
    "a misspelt key of the grid": (
        change("gamma = 1.0", "gama = 1.0"),
        ("grid.gama is not a key", "did you mean 'gamma'?", "K, alpha, gamma"),
    ),
    "a misspelt key of a method": (
        change("K = [1, 5]", "k_pathways = 5"),
        ("methods[1].k_pathways is not a key", "K, alpha, gamma"),
    ),
    "a key in the wrong place": (
        change("gamma = 1.0", "steps = 10"),
        ("grid.steps is not a key", "K, alpha, gamma"),
    ),
    "a key that breaks the line": (
        change("trials = 3", 'trials = 3\n"a\\nb" = 1'),
        (r"'a\nb' is not a key; there are",),
    ),
    "a key like nothing else": (change("trials = 3", "zzz = 3\ntrials = 3"), ("zzz is not a key; there are name",)),
    # --- wrong types
    "a name that is a number": (change('"good"', "5"), ("name is 5; it must be a text in quotes",)),
    "steps as text": (change("steps = 1000", 'steps = "1000"'), ("steps is '1000'; it must be a whole number",)),
    "steps with a fraction": (change("steps = 1000", "steps = 10.5"), ("steps is 10.5; it must be a whole number",)),
    "steps as a float": (change("steps = 1000", "steps = 1e3"), ("steps is 1000.0; it must be a whole number",)),
    "steps as a truth value": (change("steps = 1000", "steps = true"), ("steps is True; it must be a whole number",)),
    "steps as nan": (change("steps = 1000", "steps = nan"), ("steps is nan; it must be a whole number",)),
    "steps as a list": (change("steps = 1000", "steps = [1000]"), ("steps is [1000]; it must be a whole number",)),
    "steps as a table": (change("steps = 1000", "steps = {n = 1}"), ("steps is {'n': 1}; it must be a whole number",)),
    "steps as a date": (
        change("steps = 1000", "steps = 2020-01-02"),
        ("steps is datetime.date(2020, 1, 2)", "it must be a whole number"),
    ),
    "trials as a truth value": (
        change("trials = 3", "trials = false"),
        ("trials is False; it must be a whole number",),
    ),
    "missingness that is no list": (
        change('["mcar:0.2", "mcolor:0.2,0.4,0.6", "mfog:0.5,0.0"]', '"mcar:0.2"'),
        ("missingness is 'mcar:0.2'; it must be a list",),
    ),
    "missingness that is a number": (change('"mcar:0.2"', "0.2"), ("missingness[0] is 0.2; it must be a text",)),
    "worlds as one table": (
        change("[[worlds]]", "[worlds]"),
        ("worlds is {'name': 'lake'", "it must be a list: [[worlds]], or worlds = [{name = "),
    ),
    "worlds as texts": (
        'worlds = ["lake"]\n' + GOOD.replace("[[worlds]]", "[x]"),
        ("worlds[0] is 'lake'; it must be a table of keys and values",),
    ),
    "methods as one table": (
        GOOD[: GOOD.index("[[methods]]")] + '[methods]\nname = "mi-synthetic"\n',
        ("methods is {'name': 'mi-synthetic'}; it must be a list: [[methods]]",),
    ),
    "a grid that is a list": (change("[grid]", "[[grid]]"), ("grid is [{", "it must be a table of keys and values")),
    "alpha as text": (change("[0.1, 1.0]", '"0.1"'), ("grid.alpha is '0.1'; it must be a number",)),
    "alpha as a truth value": (change("[0.1, 1.0]", "[0.1, true]"), ("grid.alpha[1] is True; it must be a number",)),
    "alpha in a nested list": (change("[0.1, 1.0]", "[[0.1]]"), ("grid.alpha is [0.1]; it must be a number",)),
    "alpha as a table": (
        change("[0.1, 1.0]", "{from = 0, to = 1}"),
        ("grid.alpha is {'from': 0, 'to': 1}", "it must be a number"),
    ),
    "K with a fraction": (change("[1, 5]", "[1, 2.5]"), ("methods[1].K[1] is 2.5; it must be a whole number",)),
    "K as a date": (change("[1, 5]", "2020-01-02T03:04:05Z"), ("methods[1].K is datetime", "a whole number")),
    "a vote that is a number": (
        change('"majority"', "3"),
        ("methods[1].vote is 3; it must be one of sampled, majority",),
    ),
    "curve times as text": (change("[10, 500]", '["10"]'), ("curve_times[0] is '10'; it must be a whole number",)),
    "first_observed as text": (
        change("steps = 1000", 'steps = 1000\nfirst_observed = "no"'),
        ("first_observed is 'no'; it must be true or false",),
    ),
    # --- out of range
    "an empty name": (change('"good"', '""'), ("name is ''; it must be made of letters",)),
    "a name of two lines": (change('"good"', r'"good\nbad"'), (r"name is 'good\nbad'; it must be made of letters",)),
    "a name that is a path": (change('"good"', '"../x"'), ("name is '../x'; it must be made of letters, digits",)),
    "a name without end": (change('"good"', f'"{"x" * 101}"'), ("name is 'xxx", "it must be shorter: at most 100")),
    "no step": (change("steps = 1000", "steps = 0"), ("steps is 0; it must be 1 or larger",)),
    "steps below 0": (change("steps = 1000", "steps = -5"), ("steps is -5; it must be 1 or larger",)),
    "too many steps": (
        change("steps = 1000", "steps = 1" + "0" * 30),
        ("steps is 1000000000000000000000000000000", "it must be at most 9007199254740992"),
    ),
    "steps longer than Python writes": (
        change("steps = 1000", f"steps = 0x1{'0' * 9000}"),
        ("steps is a number of thousands of digits; it must be at most",),
    ),
    "no trial": (change("trials = 3", "trials = 0"), ("trials is 0; it must be 1 or larger",)),
    "trials below 0": (change("trials = 3", "trials = -1"), ("trials is -1; it must be 1 or larger",)),
    "too many trials": (
        change("trials = 3", "trials = 100000000000000000000"),
        ("trials is 100000000000000000000; ", "it must be at most 10000000"),
    ),
    "too many runs": (
        change("trials = 3", "trials = 9999999"),
        ("there would be 179999982 runs", "at most 10000000", "first_trial"),
    ),
    "a first trial below 0": (change("first_trial = 2", "first_trial = -2"), ("first_trial is -2; it must be 0 or",)),
    "no mechanism": (
        change('["mcar:0.2", "mcolor:0.2,0.4,0.6", "mfog:0.5,0.0"]', "[]"),
        ("missingness is []; it must be a list of at least one value",),
    ),
    "no world": (
        "worlds = []\n" + GOOD.replace("[[worlds]]", "[x]"),
        ("worlds is []; it must be a list of at least one value", "x is not a key"),
    ),
    "no method": ("methods = []\n" + GOOD[: GOOD.index("[[methods]]")], ("methods is []; it must be a list of at",)),
    "an empty list of the grid": (change("[0.1, 1.0]", "[]"), ("grid.alpha is []; it must be a list of at least one",)),
    "an empty list of a method": (change("[1, 5]", "[]"), ("methods[1].K is []; it must be a list of at least one",)),
    "alpha 0": (change("[0.1, 1.0]", "0"), ("methods[0] (last-observed): alpha is 0.0; nothing would be learned",)),
    "alpha above 1": (change("[0.1, 1.0]", "1.5"), (f"grid.alpha is 1.5; {NUMBER}",)),
    "gamma below 0": (change("gamma = 1.0", "gamma = -0.1"), (f"gamma is -0.1; {NUMBER}",)),
    "gamma nan": (change("gamma = 1.0", "gamma = nan"), (f"gamma is nan; {NUMBER}",)),
    "epsilon infinite": (change("gamma = 1.0", "epsilon = inf"), (f"epsilon is inf; {NUMBER}",)),
    "p_shuffle above 1": (change('vote = "majority"', "p_shuffle = 7"), (f"methods[1].p_shuffle is 7; {NUMBER}",)),
    "alpha too large for a float": (change("[0.1, 1.0]", LONG), ("grid.alpha is 9999", "it must be a number")),
    "K 0": (change("[1, 5]", "[0, 5]"), ("methods[1].K[0] is 0; it must be a whole number between 1",)),
    "K too large": (change("[1, 5]", LONG), ("methods[1].K is 999", "between 1 and 10000")),
    "too many settings": (
        change("gamma = 1.0", f"gamma = {[i / 999 for i in range(999)]}\nepsilon = {[i / 999 for i in range(999)]}"),
        ("methods[0] (last-observed) has 1996002 settings", "at most 100000"),
    ),
    "a curve time before the run": (
        change("[10, 500]", "[0, 500]"),
        ("curve_times[0] is 0; it must be a step between 1 and 1000",),
    ),
    "a curve time after the run": (change("[10, 500]", "[10, 1001]"), ("curve_times[1] is 1001; it must be a step",)),
    "more curve points than steps": (
        change("steps = 1000", "steps = 3"),
        ("curve_points is 4; there cannot be more than steps, 3",),
    ),
    "curve points below 0": (change("curve_points = 4", "curve_points = -4"), ("curve_points is -4; it must be 0 or",)),
    "too many curve points": (
        change("curve_points = 4", "curve_points = 99999"),
        ("curve_points is 99999; it must be at most 10000",),
    ),
    # --- words that nobody knows
    "a misspelt world": (
        change('"lake"', '"lack"'),
        ("worlds[0]", "no world is called 'lack' (did you mean 'lake'?)", "there are lake, lookout, machine"),
    ),
    "a misspelt method": (
        change('"mi-synthetic"', '"mi-sinthetic"'),
        ("methods[1].name is 'mi-sinthetic'", "did you mean 'mi-synthetic'?", "one of random"),
    ),
    "a misspelt mechanism": (
        change("mcar:0.2", "mcra:0.2"),
        ("missingness[0] is 'mcra:0.2' in worlds[0]", "did you mean 'mcar'?", "there are none, mcar"),
    ),
    "a misspelt vote": (
        change('"majority"', '"majorty"'),
        (
            "methods[1].vote is 'majorty' (did you mean 'majority'?)",
            "it must be one of sampled, majority, softmax, average",
        ),
    ),
    "a misspelt update": (
        change('vote = "majority"', 'update = "never"'),
        ("update is 'never'; it must be one of sequential, simultaneous, exact-rate",),
    ),
    "a misspelt parameter": (
        change("wind = 0.2", "wnid = 0.2"),
        ("worlds[0]", "the world 'lake' has no parameter 'wnid' (did you mean 'wind'?); there are map, fog"),
    ),
    "K for a baseline": (
        change('name = "last-observed"', 'name = "last-observed"\nK = 5'),
        ("methods[0] (last-observed): K is 5, but last-observed has no such setting",),
    ),
    "a vote for a baseline": (
        change('name = "last-observed"', 'name = "last-observed"\nvote = "average"'),
        ("methods[0] (last-observed): vote is average, but last-observed has no such setting",),
    ),
    # --- missingness that does not fit
    "a rate above 1": (
        change("mcar:0.2", "mcar:2"),
        ("missingness[0] is 'mcar:2' in worlds[0]", "theta of mcar is 2.0", "it must be a number between 0 and 1"),
    ),
    "a rate that is nan": (
        change("mcar:0.2", "mcar:nan"),
        ("theta of mcar is nan; it must be a number",),
    ),
    "a rate that is a word": (change("mcar:0.2", "mcar:often"), ("'often' is not a number. Write mcar:THETA",)),
    "too few rates": (
        change("mfog:0.5,0.0", "mfog:0.5"),
        ("missingness[2] is 'mfog:0.5' in worlds[0]", "it has 1 value", "Write mfog:INSIDE,OUTSIDE"),
    ),
    "fog where there is none": (
        change("wind = 0.2\nstay = true", "").replace('"lake"', '"field"'),
        ("missingness[2] is 'mfog:0.5,0.0' in worlds[0]", "field has none", "needs a component called 'colour'"),
    ),
    "an action that nobody can take": (
        change("mcar:0.2", "after:fly=0.5"),
        ("no action is called 'fly'; there are up",),
    ),
    # --- parameters of worlds
    "wind as text": (change("wind = 0.2", 'wind = "0.2"'), ("wind of the world 'lake' is '0.2'; it must be a number",)),
    "wind as a truth value": (
        change("wind = 0.2", "wind = true"),
        ("wind of the world 'lake' is True; it must be a number",),
    ),
    "wind above 1": (change("wind = 0.2", "wind = 1.2"), ("wind is 1.2; it must be a number between 0 and 1",)),
    "wind infinite": (change("wind = 0.2", "wind = inf"), ("wind is inf; it must be a number between 0 and 1",)),
    "wind too large for a float": (change("wind = 0.2", f"wind = {LONG}"), ("wind of the world 'lake' is 9999",)),
    "wind as a table": (
        change("wind = 0.2", "wind = {rows = 0.2}"),
        ("wind of the world 'lake' is {'rows': 0.2}; it must be a number",),
    ),
    "stay as a number": (
        change("stay = true", "stay = 1"),
        ("stay of the world 'lake' is 1; it must be true or false",),
    ),
    "fog of three numbers": (
        change("stay = true", "fog = [1, 2, 3]"),
        ("fog of the world 'lake' is (1, 2, 3); it must be a text or a list of 4 values, each a whole",),
    ),
    "rewards of two numbers": (
        change("stay = true", "rewards = [1, 2]"),
        ("rewards of the world 'lake' is (1, 2); it must be a list of 3 values, each a number",),
    ),
    "rewards that are texts": (
        change("stay = true", "rewards = ['a', 'b', 'c']"),
        ("rewards of the world 'lake' is ('a', 'b', 'c')", "a list of 3 values, each a number"),
    ),
    "a reward that is nan": (change("stay = true", "rewards = [-1, nan, 100]"), ("the reward for water is nan",)),
    "too many steps an episode": (
        change("stay = true", f"max_steps = {LONG}"),
        ("max_steps of the world 'lake' is 999", "it must be at most"),
    ),
    "a map without a goal": (change("stay = true", r'map = "S.\n.."'), ("worlds[0]", "goal 'G'")),
    "a map with an unknown sign": (change("stay = true", r'map = "S?\n.G"'), ("worlds[0]", "'?'", "row 0, column 1")),
    "a map with uneven rows": (change("stay = true", r'map = "S..\n.G"'), ("worlds[0]", "row 1")),
    "a corridor of one cell": (with_world('name = "corridor"\nlength = 1'), ("length is 1; it must be",)),
    "a corridor too long": (
        with_world('name = "corridor"\nlength = 99999999999'),
        ("length is 99999999999; it must be", "between 2 and 1000000"),
    ),
    "a field too large": (
        with_world('name = "field"\nn_rows = 99999\nn_columns = 99999'),
        ("the number of cells is 9999800001; it must be",),
    ),
    "a bandit with uneven rows": (
        with_world('name = "bandit"\npays = [[0, 1], [0]]'),
        ("pays is ((0.0, 1.0), (0.0,)); it must be 4 rows",),
    ),
    "a frozen lake of one cell": (
        with_world('name = "frozen-lake"\ndesc = ["S"]'),
        ("desc has rows of 1 cells; they must have at least 2",),
    ),
    "a frozen lake as one text": (
        with_world('name = "frozen-lake"\ndesc = "SG"'),
        ("desc of the world 'frozen-lake' is 'SG'; it must be a list of values",),
    ),
}


def complaint(text: str) -> list[str]:
    """The sentences about a study."""
    with pytest.raises(StudyError) as caught:
        Study.parse(text, "a.toml")
    return str(caught.value).splitlines()


def test_there_are_many_broken_studies_and_the_good_one_is_good() -> None:
    assert len(BROKEN) >= 100
    assert len({text for text, _ in BROKEN.values()}) == len(BROKEN)
    assert len(Study.parse(GOOD)) == 3 * (2 + 4) * 3


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_study_gives_sentences_that_say_where_what_and_what_was_expected(what: str, tmp_path: Path) -> None:
    text, parts = BROKEN[what]
    lines = complaint(text)
    for line in lines:
        assert line.startswith("a.toml")
        assert len(line) < 700
        assert "Input" not in line
        assert "valid integer" not in line
    for part in parts:
        assert any(part in line for line in lines), (part, lines)
    path = tmp_path / "a.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        Study.read(path)
    assert str(caught.value).splitlines() == [line.replace("a.toml", str(path), 1) for line in lines]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    text = change("steps = 1000", "steps = 0").replace("trials = 3", "trails = 3").replace("[1, 5]", '"five"')
    assert len(complaint(text)) == 4
    text = change("mcar:0.2", "mcra:0.2").replace("[0.1, 1.0]", "7").replace("[10, 500]", "[0, 9999]")
    found = complaint(text)
    for part in ("mcra", "grid.alpha is 7;", "is 0;", "is 9999;"):
        assert any(part in line for line in found), part
    assert len(found) == len(set(found)) == 4


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes('name = "müde"'.encode("latin-1"))
    for path, part in (
        (latin, "codec can't decode"),
        (tmp_path / "nowhere.toml", "No such file"),
        (tmp_path, "Is a directory"),
        (tmp_path / ("x" * 300), "name too long"),
        ("a\x00b", "null"),
    ):
        with pytest.raises(StudyError) as caught:
            Study.read(path)
        message = str(caught.value)
        assert message.startswith(f"{path} cannot be read: ")
        assert part in message
        assert "\n" not in message


def test_a_file_with_a_byte_order_mark_and_windows_line_ends_is_read(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert Study.read(path) == Study.parse(GOOD)


@pytest.mark.parametrize("data", [5, "text", None, [], [GOOD]])
def test_data_that_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(StudyError, match=r"the study is .*; it must be a table of keys and values"):
        Study.from_data(data)


COMMAND_LINES = (
    "an open quote", "nothing at all", "a misspelt key", "steps as a date", "a misspelt mechanism", "K for a baseline",
    "a map with uneven rows", "steps longer than Python writes",
)  # fmt: skip


def test_the_command_gives_the_sentences_and_exit_code_2(tmp_path: Path) -> None:
    program = (
        "import sys; from lacuna.cli.main import main; sys.argv = ['lacuna', 'study', 'plan', sys.argv[1]]; main()"
    )
    paths = [tmp_path, tmp_path / "nowhere.toml"]
    for what in COMMAND_LINES:
        paths.append(tmp_path / f"{what}.toml")
        paths[-1].write_text(BROKEN[what][0], encoding="utf-8")
    for path in paths:
        words = [sys.executable, "-c", program, str(path)]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"lacuna: {path}")
        assert "Traceback" not in done.stderr
        for part in BROKEN[path.stem][1] if path.stem in BROKEN else ():
            assert part in done.stderr


def test_the_installed_command_plans_a_study_and_refuses_a_broken_one(tmp_path: Path) -> None:
    lacuna = Path(sys.executable).with_name("lacuna")
    path = tmp_path / "study.toml"
    path.write_text(GOOD)
    done = subprocess.run([lacuna, "study", "plan", path], check=True, capture_output=True, text=True)
    assert "good: 3 problems x 6 settings x 3 trials = 54 runs of 1,000 steps, 54,000 steps in all" in done.stdout
    path.write_text(change("trials = 3", "trials = 0"))
    done = subprocess.run([lacuna, "study", "plan", path], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"lacuna: {path}: trials is 0; it must be 1 or larger\n"


# --- studies broken at random --------------------------------------------------------------------------------------

ODD = (
    "0", "-1", "1", "1.5", "-0.0", "nan", "-inf", "true", "[]", "[[]]", "{}", '""', '"x"', "'mcar'", "2020-01-02",
    "12:30:00", "[1, 'a']", "{name = 1}", "1e400", "99999999999999999999", "0xffffffffffffffffff", '"\\u0000"', "\\",
    '"mcar:1e400"', '"after:0=1,0=0"', '"bursts:0,0"', "[nan]", '["lake"]', "'''", "#", "[", "=", ".", "[[", "]",
)  # fmt: skip


def mutations() -> dict[str, Callable[[random.Random, str], str]]:
    """Ways to spoil a text."""

    def cut(rng: random.Random, text: str) -> str:
        i = rng.randrange(len(text) + 1)
        return text[:i] + text[i + rng.randrange(1, 12) :]

    def repeat(rng: random.Random, text: str) -> str:
        i = rng.randrange(len(text) + 1)
        return text[:i] + text[i : i + rng.randrange(1, 12)] + text[i:]

    def put(rng: random.Random, text: str) -> str:
        i = rng.randrange(len(text) + 1)
        return text[:i] + rng.choice("\"'[]{}=.,#-+_\n\t\\ 0159aeKλ\x7f\ufeff") + text[i + rng.randrange(2) :]

    def line(rng: random.Random, text: str) -> str:
        lines = text.split("\n")
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        how = rng.randrange(3)
        if how == 0:
            lines.insert(j, lines[i])
        elif how == 1:
            lines[i], lines[j] = lines[j], lines[i]
        else:
            del lines[i]
        return "\n".join(lines)

    def value(rng: random.Random, text: str) -> str:
        lines = text.split("\n")
        with_values = [i for i, line in enumerate(lines) if " = " in line]
        if with_values:
            i = rng.choice(with_values)
            lines[i] = f"{lines[i].partition(' = ')[0]} = {rng.choice(ODD)}"
        return "\n".join(lines)

    def key(rng: random.Random, text: str) -> str:
        lines = text.split("\n")
        with_values = [i for i, line in enumerate(lines) if " = " in line]
        if with_values:
            i, j = rng.choice(with_values), rng.choice(with_values)
            lines[i] = f"{lines[j].partition(' = ')[0]} = {lines[i].partition(' = ')[2]}"
        return "\n".join(lines)

    return {"cut": cut, "repeat": repeat, "put": put, "line": line, "value": value, "key": key}


def tried(make: Callable[[], Study]) -> Study | list[str]:
    """The study, or what is said to be wrong with it; any other error is a failure."""
    try:
        return make()
    except StudyError as error:
        lines = str(error).splitlines()
    assert lines
    assert all(line.startswith("study") and len(line) > 20 for line in lines)
    return lines


@settings(max_examples=400)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(sorted(mutations())), min_size=1, max_size=4))
@example(0, ["value"])
def test_a_study_broken_at_random_parses_or_gives_sentences(seed: int, names: list[str]) -> None:
    text = GOOD
    rng = random.Random(seed)
    for name in names:
        text = mutations()[name](rng, text)
    found = tried(lambda: Study.parse(text))
    if isinstance(found, Study):
        assert len({run.id for run in itertools.islice(found.runs(), 200)}) == min(200, len(found))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["lake", "mcar:0.2"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(st.sampled_from(["", "grid", "worlds", "methods"]), st.data())
def test_a_value_of_any_kind_in_any_place_parses_or_gives_sentences(table: str, data: st.DataObject) -> None:
    study = tomllib.loads(GOOD)
    place = study[table] if table else study
    place = place[0] if isinstance(place, list) else place
    place[data.draw(st.sampled_from(sorted(place)) | st.text(max_size=5))] = data.draw(JSON)
    tried(lambda: Study.from_data(study))


# --- expansion -----------------------------------------------------------------------------------------------------

PAPER = (Path(__file__).parents[1] / "studies" / "full" / "stay.toml").read_text()


def test_the_largest_of_the_papers_studies_expands_to_as_many_names_as_runs() -> None:
    study = Study.parse(PAPER)
    assert (len(study.problems), len(study.settings), len(study)) == (18, 16 * 12, 17_280)
    assert len({run.id for run in study.runs()}) == 17_280
    assert {run.trial for run in study.runs()} == set(range(5))
    assert {run.settings.method for run in study.runs()} == {
        "random-action", "last-fully-observed", "last-observed", "missing-as-state", "mi-synthetic", "mi-conservative",
    }  # fmt: skip


def test_a_method_has_its_own_choices_before_those_of_the_grid() -> None:
    found = Study.parse(change("K = [1, 5]", "K = [1, 5]\nalpha = 0.3")).settings
    assert [(s.method, s.K, s.alpha) for s in found if isinstance(s, Settings)] == [
        ("last-observed", None, 0.1), ("last-observed", None, 1.0),
        ("mi-synthetic", 1, 0.3), ("mi-synthetic", 5, 0.3),
    ]  # fmt: skip
    # What belongs to MI methods only is not pressed on others by the grid.
    found = Study.parse(change("gamma = 1.0", "K = 3\nvote = 'average'")).settings
    assert {(s.method, s.K, s.vote) for s in found if isinstance(s, Settings)} == {
        ("last-observed", None, "sampled"), ("mi-synthetic", 1, "majority"), ("mi-synthetic", 5, "majority"),
    }  # fmt: skip


def test_what_is_named_twice_is_run_once() -> None:
    plain = Study.parse(GOOD)
    for twice in (
        change('"mcar:0.2", ', '"mcar:0.2", "mcar:.20", "mcar:0.2,0.2,0.2", '),
        change("[1, 5]", "[1, 5, 1]"),
        change("[0.1, 1.0]", "[0.1, 1, 1.0]"),
        change("[10, 500]", "[500, 10, 500]"),
        GOOD + '[[methods]]\nname = "mi-synthetic"\nK = 5\nvote = "majority"\n',
        GOOD + '[[worlds]]\nname = "lake"\nstay = true\nwind = 0.2\nflood = 0.1\n',
    ):
        study = Study.parse(twice)
        assert len(study) == len(plain) == len(list(study.runs()))
        assert [run.id for run in study.runs()] == [run.id for run in plain.runs()]


def test_the_curve_has_its_points_evenly_and_ends_with_the_run() -> None:
    assert Study.parse(GOOD).curve == (10, 250, 500, 750, 1000)
    assert Study.parse(change("curve_points = 4\ncurve_times = [10, 500]\n", "")).curve == ()
    assert all(run.curve == (10, 250, 500, 750, 1000) for run in Study.parse(GOOD).runs())


@pytest.mark.parametrize("world", WORLDS)
def test_every_world_and_every_mechanism_it_takes_can_be_studied(world: str) -> None:
    rates = {"none": "none", "mcar": "mcar:0.3", "whole": "whole:0.25", "bursts": "bursts:0.1,0.5",
             "bursts-each": "bursts-each:0.1,0.5,0.9,0.01", "after": "after:1=0.123456789012345,else=0.2",
             "mcolor": "mcolor:0.1,0.2,0.3", "mcolor-xy": "mcolor-xy:0.1,0.2,0.3", "mfog": "mfog:0.5,0.1",
             "self-report": "self-report:0.1/0.3/0.6/0.9,0.2", "late": "late:2/0.5,mcar:0.3"}  # fmt: skip
    space = make_world(world).space
    rates["by"] = f"by:{space.names[0]}=0.1,0=0.3,else=0.2"
    rates["patterns"] = f"patterns:{'0' * space.d}=0.75,{'1' * space.d}=0.25"
    assert set(rates) == set(MECHANISMS)
    only_in = {"mcolor": "lake", "mcolor-xy": "lake", "mfog": "lake", "self-report": "mobile-health"}
    fits = [text for name, text in rates.items() if only_in.get(name, world) == world]
    if space.d == 1:  # nothing is left to hide by what is seen
        fits.remove(rates["by"])
    text = change('["mcar:0.2", "mcolor:0.2,0.4,0.6", "mfog:0.5,0.0"]', json.dumps(fits))
    study = Study.parse(text.replace('name = "lake"\nwind = 0.2\nstay = true', f'name = "{world}"'))
    assert len(study.problems) == len(fits)
    for name, parameters, missingness in study.problems:
        # The name in a run makes the same mechanism again.
        problem = problem_of(name, parameters, missingness, first_observed=True)
        assert problem.missingness == missingness
        assert missingness.partition(":")[0] in rates


# --- names ---------------------------------------------------------------------------------------------------------


def ids(text: str) -> set[str]:
    return {run.id for run in Study.parse(text).runs()}


def test_a_run_has_the_same_name_in_any_study_and_any_order() -> None:
    plain = ids(GOOD)
    assert plain == {"".join(name) for name in plain}
    assert all(len(name) == 24 and int(name, 16) >= 0 for name in plain)
    turned = change('"mcar:0.2", "mcolor:0.2,0.4,0.6"', '"mcolor:0.2,0.4,0.6", "mcar:0.2"').replace("[1, 5]", "[5, 1]")
    head, _, methods = turned.partition("[[methods]]")
    first, _, second = methods.partition("[[methods]]")
    assert ids(f"{head}[[methods]]{second}\n[[methods]]{first}".replace("[0.1, 1.0]", "[1.0, 0.1]")) == plain
    assert ids(change('"good"', '"another name"')) == plain


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("trials = 3", "trials = 4"),
        ("trials = 3\nfirst_trial = 2\n", "trials = 5\nfirst_trial = 1\n"),
        ("[1, 5]", "[1, 5, 7]"),
        ("[0.1, 1.0]", "[0.1, 0.7, 1.0]"),
        ("gamma = 1.0", "gamma = [0.9, 1.0]"),
        ("gamma = 1.0", "gamma = 1.0\nepsilon = [0, 0.1]"),
        ('vote = "majority"', 'vote = ["majority", "average"]'),
        ('vote = "majority"', 'vote = "majority"\nupdate = ["sequential", "simultaneous"]'),
        ('vote = "majority"', 'vote = "majority"\np_shuffle = [0, 1]'),
        ('["mcar:0.2"', '["none", "mcar:0.2"'),
        ("[[worlds]]", '[[worlds]]\nname = "lake"\n\n[[worlds]]'),
        ("[[worlds]]", '[[worlds]]\nname = "lake"\nmap = "S.w\\n..G"\n\n[[worlds]]'),
        ('[[methods]]\nname = "last-observed"', '[[methods]]\nname = "missing-as-state"\n\n[[methods]]\n'
         'name = "last-observed"'),
    ],
)  # fmt: skip
def test_adding_something_renames_nothing(old: str, new: str) -> None:
    before, after = ids(GOOD), ids(change(old, new))
    assert before < after


def run_of(**changes: Any) -> RunSpec:
    run = RunSpec("lake", (("stay", True), ("wind", 0.2)), "mcar:0.2", Settings("mi-synthetic", K=5), 1000, 3, (10,))
    return replace(run, **changes)


def test_runs_that_differ_in_anything_have_different_names() -> None:
    base = run_of()
    others = [
        run_of(world="corridor"), run_of(parameters=()), run_of(parameters=(("wind", 0.2),)),
        run_of(parameters=(("stay", True), ("wind", math.nextafter(0.2, 1)))),
        run_of(parameters=(("rewards", (1.0, 2.0, 3.0)), ("stay", True), ("wind", 0.2))),
        run_of(parameters=(("rewards", (1.0, 23.0)), ("stay", True), ("wind", 0.2))),
        run_of(missingness="mcar:0.20000000000000004"), run_of(missingness="whole:0.2"), run_of(steps=1001),
        run_of(trial=4), run_of(curve=()), run_of(curve=(10, 20)), run_of(curve=(1020,)), run_of(first_observed=False),
        *(run_of(settings=replace(base.settings, **change)) for change in (
            {"method": "mi-conservative"}, {"K": 6}, {"alpha": 0.2}, {"alpha": math.nextafter(0.1, 1)},
            {"gamma": 0.1}, {"epsilon": 0.1}, {"vote": "average"}, {"update": "simultaneous"}, {"p_shuffle": 0.1},
        )),
        *(run_of(settings=Settings(name)) for name in METHODS),
    ]  # fmt: skip
    assert len({run.id for run in [base, *others]}) == 1 + len(others)
    assert run_of().id == base.id


def test_names_stay_as_they_were_published() -> None:
    """Results on disk are found by these names: a change here makes every old result unknown."""
    assert run_of().id == "df1e10be04fd85927f6bba5e"
    assert RunSpec("lake", (), "none", Settings("last-observed"), 10, 0).id == "35df14397b2a29e211cec16a"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stay = true", "stay = true\nflood = 0.1\ncontinuing = false\nmax_steps = 0\nrewards = [-1, -10.0, 100]"),
        ("wind = 0.2\nstay = true", "stay = true\nwind = 2e-1"),
        ("gamma = 1.0", "gamma = 1"),
        ("gamma = 1.0", "gamma = [1]\nepsilon = -0.0"),
        ("gamma = 1.0", "gamma = 1.0\nepsilon = 0"),
        ("[0.1, 1.0]", "[0.1, 1]"),
        ('vote = "majority"', 'vote = ["majority"]\nupdate = "sequential"\np_shuffle = 0'),
        ('"mcar:0.2"', '" mcar:0.20"'),
        ("mfog:0.5,0.0", "mfog: .5, 0"),
        ("steps = 1000", "steps = 1_000\nfirst_observed = true"),
        ("[10, 500]", "[10]"),
        ('name = "lake"\n', 'name = "lake"\nflood = 0.1\n'),
    ],
)
def test_a_default_that_is_spelled_out_or_a_number_written_otherwise_renames_nothing(old: str, new: str) -> None:
    assert ids(change(old, new)) == ids(GOOD)


def test_a_parameter_has_one_name_however_its_numbers_are_written() -> None:
    plain = change("wind = 0.2", "wind = 0\nrewards = [-1, -5, 100]\nfog = [0, 1, 2, 3]")
    fancy = change("wind = 0.2", "wind = -0.0\nrewards = [-1.0, -5e0, 100.0]\nfog = [0, 1, 2, 3]")
    assert ids(plain) == ids(fancy) != ids(GOOD)


def test_lists_and_tuples_are_the_same() -> None:
    data = tomllib.loads(change("wind = 0.2", "rewards = [-1.0, -5.0, 100.0]"))
    tuples = json.loads(json.dumps(data))
    tuples["worlds"][0]["rewards"] = (-1.0, -5.0, 100.0)
    for run, other in zip(Study.from_data(data).runs(), Study.from_data(tuples).runs(), strict=True):
        assert run == other
        assert run.id == other.id
        assert isinstance(hash(run), int)


@pytest.mark.parametrize("text", [GOOD, PAPER, change("wind = 0.2", "rewards = [1, 2, 3.5]\nfog = [0, 1, 2, 3]")])
def test_a_run_survives_a_trip_through_json(text: str) -> None:
    for run in itertools.islice(Study.parse(text).runs(), 0, None, 97):
        again = RunSpec.from_json(json.loads(json.dumps(run.to_json())))
        assert again == run
        assert again.id == run.id
        assert repr(again) == repr(run)


@pytest.mark.parametrize("text", [GOOD, PAPER, change("stay = true", 'map = "S.w\\n..G"\nrewards = [1, 2, 3]')])
def test_a_study_survives_a_trip_through_its_note_in_a_store(text: str) -> None:
    study = Study.parse(text)
    note = study.spec.model_dump(exclude_defaults=True)
    assert Study.from_data(note) == study
    again = Study.from_data(json.loads(json.dumps(note)))
    assert again == study
    assert again.id == study.id
    assert Study.parse(text + "\n").id == study.id
    assert Study.parse(text.replace("trials = ", "trials = 1")).id != study.id


# --- paired trials -------------------------------------------------------------------------------------------------


EVERY = """
name = "paired"
steps = 400
trials = 3
missingness = ["mcar:0.4", "bursts:0.2,0.5"]
worlds = [{name = "bandit"}]
methods = [
  {name = "random-action"}, {name = "last-fully-observed"}, {name = "last-observed"}, {name = "missing-as-state"},
  {name = "mi-synthetic", K = [1, 5]}, {name = "mi-conservative", vote = ["sampled", "average"], p_shuffle = [0, 1]},
]
grid = {epsilon = [0, 0.5, 1], alpha = [0.1, 1]}
"""


def test_a_trial_number_means_the_same_world_and_mask_streams_for_every_method() -> None:
    # In the bandit no action changes what comes next, so the same streams show the same contexts and the same gaps.
    shown: dict[tuple[str, int], set[bytes]] = {}
    contexts: dict[int, set[bytes]] = {}
    actions: set[bytes] = set()
    for run in Study.parse(EVERY).runs():
        problem = problem_of(run.world, run.parameters, run.missingness, first_observed=True)
        assert isinstance(problem, Problem)
        assert isinstance(run.settings, Settings)
        trace = Run(problem.mdp, problem.mechanism, run.settings, seed=run.trial).record(run.steps)
        shown.setdefault((run.missingness, run.trial), set()).add(trace.seen.tobytes())
        contexts.setdefault(run.trial, set()).add(trace.state.tobytes())
        actions.add(trace.action.tobytes())
    assert {len(found) for found in shown.values()} == {1}
    assert len(set.union(*shown.values())) == 2 * 3
    # The world is the same whatever hides it, and the methods did not do the same in it.
    assert {len(found) for found in contexts.values()} == {1}
    assert len(set.union(*contexts.values())) == 3
    assert len(actions) > 50


def test_the_figures_of_a_run_depend_on_nothing_but_the_run() -> None:
    runs = list(Study.parse(GOOD).runs())[::7]
    first = [execute(run) | {"seconds": 0} for run in runs]
    again = [execute(RunSpec.from_json(run.to_json())) | {"seconds": 0} for run in runs[::-1]]
    assert repr(first) == repr(again[::-1])
    assert len({row["reward_per_step"] for row in first}) > 1
