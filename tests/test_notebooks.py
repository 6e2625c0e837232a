"""The notebooks run from the first cell to the last, as programs in an empty folder, with warnings as errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
MADE = {
    "own_environment": {"coach.html", "coach.lacuna"},
    "own_study": {"lakes", "lakes.html", "lakes.toml"},
    "own_method": set[str](),
}


SHOWN = """
import ast
def run(source):
    cell = ast.parse(source)
    last = cell.body.pop() if isinstance(cell.body[-1], ast.Expr) else None
    exec(compile(cell, "cell", "exec"), globals())
    if last is not None:
        shown = eval(compile(ast.Expression(last.value), "cell", "eval"), globals())
        html = getattr(shown, "_repr_html_", None)
        assert html is None or "<" in html()
        print(repr(shown))
"""


def program(notebook: Path) -> str:
    """The cells of a notebook, each run as a notebook would: what stands last is shown."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return SHOWN + "".join(f"run({source!r})\n" for source in sources)


@pytest.mark.parametrize("name", MADE)
def test_a_notebook_runs_and_shows_no_bare_object(name: str, tmp_path: Path) -> None:
    script = tmp_path / "cells.py"
    script.write_text(program(EXAMPLES / f"{name}.ipynb"), encoding="utf-8")
    where = tmp_path / "work"
    where.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=where, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert " object at 0x" not in done.stdout
    assert {path.name for path in where.iterdir()} == MADE[name]


def test_all_notebooks_are_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == {*MADE, "trial_analysis"}
