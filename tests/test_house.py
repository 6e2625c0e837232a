"""The house in numbers: what keeps files, functions and folders small enough to read, and rooms apart."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lacuna.agent.settings import SETTINGS, Rules, Settings

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lacuna"
FILES = sorted(path for folder in (ROOT / "src", ROOT / "paper" / "src") for path in folder.rglob("*.py"))
# Their default, or an example in their text, has to be some world.
NAME_ONE = {"compare.py", "replay.py"}
LIBRARY = ("kernels", "agent", "run", "study", "report")


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("command" in ast.unparse(found) or "callback" in ast.unparse(found) for found in function.decorator_list)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    found = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    found += [one.arg for one in (given.vararg, given.kwarg) if one is not None]
    return [name for name in found if name not in {"self", "cls"}]


def test_no_function_takes_more_than_seven_parameters() -> None:
    counts = {name: len(parameters(function)) for name, function in functions() if not is_command(function)}
    assert len(counts) > 500
    assert {name: n for name, n in counts.items() if n > 7} == {}


def test_no_folder_is_deep_or_a_drawer() -> None:
    assert len(FILES) > 80
    assert max(len(path.relative_to(SOURCE).parts) for path in SOURCE.rglob("*.py")) <= 3
    parts = {part for path in FILES for part in path.relative_to(ROOT).with_suffix("").parts}
    assert parts & {"utils", "util", "helpers", "helper", "common", "core", "misc"} == set()


def outside_examples(path: Path) -> str:
    """The text of a file without the examples in its docstrings."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.strip().startswith((">>>", "...")))


@pytest.mark.parametrize("room", LIBRARY)
def test_the_library_knows_no_world_by_name_and_nothing_of_what_is_claimed(room: str) -> None:
    files = [path for path in (SOURCE / room).rglob("*") if path.suffix in {".py", ".js", ".css"}]
    assert len(files) > 3
    named = re.compile(r"\b(lake|water|claims?)\b", re.IGNORECASE)
    found = {path.name: named.findall(outside_examples(path)) for path in files}
    assert {name: words for name, words in found.items() if words and name not in NAME_ONE} == {}


def test_what_kernels_see_of_the_settings_is_what_is_declared() -> None:
    derived = {"impute", "teach", "rate", "full_rate"}
    assert set(Rules._fields) - derived == set(SETTINGS) - {"alpha"}
    assert list(inspect.signature(Settings).parameters) == ["method", *SETTINGS]
