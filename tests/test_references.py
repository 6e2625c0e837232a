"""References: what they import and when, how a source is told from another, and sentences for what cannot be."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna.missingness import parse
from lacuna.parameters import frozen, parse_call, write_call
from lacuna.references import check_sources, is_reference, load, resolve, source_digest, sources_of
from lacuna.worlds.registry import find_world, make_world
from own_parts import write_parts
from sentences import one_sentence


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, which is the current one; what was imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


VALUES = st.recursive(
    st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), VALUES, max_size=4))
def test_what_is_written_is_read_again(parameters: dict[str, Any]) -> None:
    name, found = parse_call(write_call("mine.worlds:maze", parameters))
    assert name == "mine.worlds:maze"
    assert found == parameters
    # Not 1 for true, nor 1 for 1.0.
    assert repr(frozen(found)) == repr(frozen(parameters))


def test_only_texts_with_a_name_after_the_colon_are_references() -> None:
    yes = ("mine:maze", "mine.worlds:maze", "worlds.py:maze", "../a b/worlds.py:Maze.small", "/x/y.py:z")
    no = ("lake", "mcar:0.2", "mcolor:0.2,0.4", "after:1=0.5", "mine:FrozenLake-v1", "mine.worlds:", ":maze", "a:b:c")
    assert [is_reference(text) for text in yes + no] == [True] * len(yes) + [False] * len(no)


def test_a_module_in_the_current_folder_and_a_file_are_found(here: Path) -> None:
    parts = write_parts(here)
    file = f"{parts.replace('.', '/')}.py"
    assert make_world(f"{parts}:maze", size=6).n_states == make_world(f"./{file}:maze", size=6).n_states == 6
    assert make_world(f"{parts}:small").n_states == 3
    assert parse(f"{parts}:by_mood,rate=0.5", 2).name == f"{parts}:by_mood,rate=0.5"
    assert parse(f"{parts}:by_mood,rate=0.3", 2).name == f"{parts}:by_mood"
    assert parse(f"{parts}:steady", 1).rates.tolist() == [[[[0.25]]]]
    assert find_world(f"{parts}:Walk").open(pay=3).unwrapped.pay == 3.0  # type: ignore[union-attr]


def test_the_digest_is_that_of_all_python_files_of_the_package_and_of_nothing_else(here: Path) -> None:
    parts = write_parts(here)
    package = here / parts.partition(".")[0]
    before = source_digest(f"{parts}:maze")
    assert parts not in sys.modules
    assert before == source_digest(f"{parts}:by_mood") == source_digest(f"{package.name}:anything")
    (package / "notes.txt").write_text("of no importance")
    assert source_digest(f"{parts}:maze") == before
    (package / "deep").mkdir()
    (package / "deep" / "other.py").write_text("x = 1")
    added = source_digest(f"{parts}:maze")
    (package / "deep" / "other.py").write_text("x = 2")
    assert len({before, added, source_digest(f"{parts}:maze")}) == 3
    (package / "deep" / "other.py").rename(package / "deep" / "another.py")
    assert len({before, added, source_digest(f"{parts}:maze")}) == 3
    # What comes with lacuna carries a version of its results instead.
    maze = f"{parts}:maze"
    assert sources_of(["lacuna.worlds.toys:corridor", maze]) == ((maze, source_digest(maze)),)


def test_a_source_that_is_not_the_one_wanted_is_refused(here: Path) -> None:
    parts = write_parts(here)
    sources = sources_of([f"{parts}:maze"])
    wrong = tuple((reference, "0" * 64) for reference, _ in sources)
    with pytest.raises(ValueError, match="planned with 000000000000; install the same on every machine") as told:
        check_sources(wrong)
    assert one_sentence(told.value)
    assert parts not in sys.modules
    check_sources(sources)
    assert parts in sys.modules
    # Edited: this process still has the old code, and says so instead of running it under the new name.
    file = here / f"{parts.replace('.', '/')}.py"
    file.write_text(file.read_text() + "\n# edited\n")
    with pytest.raises(ValueError, match="edited after this process had imported it; start the process anew"):
        load(f"{parts}:maze")


BAD = {
    "no_such_module:x": "no module is called 'no_such_module'; it must be installed, or lie in the current folder",
    "lacuna.nothing:x": "no module is called 'lacuna.nothing'",
    "nowhere.py:x": "there is no file nowhere.py",
    "PARTS:mase": "has no name 'mase' (did you mean 'maze'?)",
    "FAILS:x": "cannot be imported: ZeroDivisionError: division by zero (parts.py, line 1)",
    "NEEDS:x": "cannot be imported: ModuleNotFoundError: No module named 'not_there'",
    "QUITS:x": "cannot be imported: SystemExit: 3",
    "SYNTAX:x": "cannot be imported: SyntaxError:",
    "no reference": "write package.module:name or path/to/file.py:name",
}


@pytest.mark.parametrize("reference", BAD)
def test_what_cannot_be_imported_is_told_in_a_sentence_and_leaves_nothing(here: Path, reference: str) -> None:
    texts = {"FAILS": "1 / 0", "NEEDS": "import not_there", "QUITS": "raise SystemExit(3)", "SYNTAX": "def f(:"}
    word, colon, name = reference.partition(":")
    if word in {"PARTS", *texts}:
        word = write_parts(here, texts[word]) if word in texts else write_parts(here)
    before = set(sys.modules)
    with pytest.raises(ValueError, match=re.escape(BAD[reference])) as told:
        load(f"{word}{colon}{name}")
    assert one_sentence(told.value)
    assert "__init__.py" not in str(told.value)
    left = {one for one in set(sys.modules) - before if one.endswith(".parts") or one.startswith("_lacuna_")}
    assert left == ({word} if name == "mase" else set())


def test_a_script_that_names_itself_while_it_is_imported_is_refused(here: Path) -> None:
    (here / "script.py").write_text("from lacuna.references import load\nwith open('ran', 'a') as ran:\n"
                                    "    ran.write('.')\nload('script.py:x')\n")  # fmt: skip
    with pytest.raises(ValueError, match=r"script\.py names itself while it is being imported") as told:
        load("script.py:x")
    assert one_sentence(told.value)
    assert (here / "ran").read_text() == "."


def test_a_module_that_failed_can_be_mended(here: Path) -> None:
    parts = write_parts(here, "1 / 0")
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        load(f"{parts}:x")
    (here / f"{parts.replace('.', '/')}.py").write_text("x = 5")
    assert load(f"{parts}:x") == 5


def distribution(folder: Path, parts: str, *lines: str) -> None:
    """What an installed package says of itself."""
    about = folder / f"{parts.partition('.')[0]}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {parts.partition('.')[0]}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join(lines))


def test_an_entry_point_stands_for_its_reference_and_no_other_is_imported(here: Path) -> None:
    parts, fails = write_parts(here), write_parts(here, "1 / 0")
    sys.path.append(str(here))
    distribution(
        here, parts, "[lacuna.worlds]", f"my-maze = {parts}:maze", f"broken = {fails}:maze",
        "[lacuna.mechanisms]", f"mood = {parts}:by_mood",
    )  # fmt: skip
    assert resolve("lacuna.worlds", "my-maze") == f"{parts}:maze"
    assert {parts, fails} & set(sys.modules) == set()
    assert find_world("my-maze").name == f"{parts}:maze"
    assert make_world("my-maze", size=7).n_states == 7
    assert parse("mood,rate=0.5", 3).name == f"{parts}:by_mood,rate=0.5"
    assert fails not in sys.modules
    with pytest.raises(ValueError, match="did you mean 'my-maze'"):
        find_world("my-mase")
    # Our own names come first.
    other = write_parts(here)
    distribution(here, other, "[lacuna.worlds]", f"lake = {other}:maze", f"my-maze = {other}:maze")
    assert find_world("lake").source == ""
    with pytest.raises(ValueError, match=r"is an entry point of several packages: .* name one of these"):
        find_world("my-maze")


WRONG_KINDS = {
    "PARTS:PARTS": "no name",
    "PARTS:np": "it must be a TabularMDP, or a function that makes a world",
    "PARTS:by_mood": "it does not say that it makes a world; if it does, write its return type: def by_mood(…) -> ",
    "PARTS:maze,size=x": "size of the world 'PARTS:maze' is 'x'; it must be a whole number",
    "PARTS:maze,length=3": "has no parameter 'length'; there are size, slip",
    "PARTS:maze,size=0": "the world 'PARTS:maze' could not be made:",
    "PARTS:small,size=3": "has no parameter 'size'; it has none",
    "FrozenLake-v9": "Gymnasium has no environment 'FrozenLake-v9'",
    "nothing_there:FrozenLake-v1": "Gymnasium has no environment 'nothing_there:FrozenLake-v1'",
    "FrozenLake-v1,size=3": "the world 'FrozenLake-v1' could not be made: TypeError",
}


@pytest.mark.parametrize("text", WRONG_KINDS)
def test_a_world_of_the_wrong_kind_is_told_in_a_sentence(here: Path, text: str) -> None:
    parts = write_parts(here)
    name, given = parse_call(text.replace("PARTS:", f"{parts}:", 1))
    with pytest.raises((TypeError, ValueError)) as told:
        find_world(name).open(**given)
    assert WRONG_KINDS[text].replace("PARTS:", f"{parts}:") in str(told.value)
    assert one_sentence(told.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("PARTS:maze", "it does not say that it makes a mechanism; if it does, write its return type: def maze(…) -> "),
        ("PARTS:np", "it must be a Mechanism, or a function that makes one"),
        ("PARTS:by_mood,rate=2.5", "could not be made: ValueError: theta of mcar is 2.5"),
        ("PARTS:by_mood,pace=1", "has no parameter 'pace'"),
        ("PARTS:by_mood,where=1", "has no parameter 'where'"),
        ("PARTS:steady,rate=1", "has no parameter 'rate'; it has none"),
    ],
)
def test_a_mechanism_of_the_wrong_kind_is_told_in_a_sentence(here: Path, text: str, part: str) -> None:
    parts = write_parts(here)
    with pytest.raises((TypeError, ValueError)) as told:
        parse(text.replace("PARTS", parts), 2)
    assert part in str(told.value)
    assert one_sentence(told.value)
