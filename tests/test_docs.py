"""The documentation is complete and current: every page has a place, every public name a page, every file a line."""

from __future__ import annotations

import inspect
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import lacuna
from lacuna.agent.methods import METHODS, YARDSTICKS
from lacuna.agent.settings import SETTINGS, UPDATES, VOTES
from lacuna.missingness import MECHANISMS, parse
from lacuna.run.problems import Problem
from lacuna.run.repetitions import run_trial
from lacuna.worlds.registry import WORLDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "lacuna"

sys.path.insert(0, str(ROOT / "reference"))
generate: Any = import_module("generate")
interfaces: Any = import_module("interfaces")

WRITTEN = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.parent.name != "reference")
GENERATED = sorted(name for name in generate.pages() if name.startswith("reference/"))
PAGES = sorted([*WRITTEN, *GENERATED])


def page(name: str) -> str:
    text: str = generate.pages()[name] if name in GENERATED else (DOCS / name).read_text(encoding="utf-8")
    return text


def is_there(path: Path) -> bool:
    """Whether a link leads to a file, or to a page that is made when the site is built."""
    path = Path(os.path.normpath(path))
    return path.exists() or os.path.relpath(path, DOCS) in GENERATED


def first_cells(text: str) -> list[str]:
    """What stands in backticks at the beginning of the rows of tables."""
    return re.findall(r"^\| \[?`([^`]+)`", text, re.MULTILINE)


# --- pages -----------------------------------------------------------------------------------------------------------


def linked(nav: list[dict[str, Any]]) -> Iterator[str]:
    for entry in nav:
        for target in entry.values():
            if isinstance(target, str):
                yield target
            else:
                yield from linked(target)


def test_every_page_has_one_place_in_the_navigation() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    assert [title for entry in nav for title in entry] == ["Home", "Tutorial", "How-to", "Reference", "Explanations"]
    assert sorted(linked(nav)) == PAGES
    assert len(PAGES) > 35


def test_the_readme_is_one_and_a_half_screens_and_its_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert text.index("make paper") < text.index("make test") < text.index("##")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert len(links) > 10
    assert [link for link in links if not is_there(ROOT / link)] == []


@pytest.mark.parametrize("name", PAGES)
def test_links_between_pages_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", re.sub(r"```.*?```", "", page(name), flags=re.DOTALL))
    assert [link for link in links if not is_there((DOCS / name).parent / link)] == []


# --- reference -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(generate.pages()) - set(GENERATED)))
def test_what_is_generated_and_kept_is_current(name: str) -> None:
    assert page(name) == generate.pages()[name], "run: python reference/generate.py"


def test_every_public_name_has_a_page_and_a_docstring() -> None:
    described = generate.entries()
    rooms = [f"lacuna.{path.parent.name}" for path in SOURCE.glob("*/__init__.py")]
    for module in ("lacuna", *rooms):
        assert [name for name in interfaces.public_names(module) if name not in described] == []
    assert len(rooms) == 11
    assert len(described) > 90
    for entry in described.values():
        assert interfaces.doc_of(entry.module, entry.name), entry
        assert f"## `{entry.heading}`\n" in page(f"reference/{entry.page}.md")


def test_what_a_public_function_takes_is_public() -> None:
    described = generate.entries()
    ours = {
        name for path in SOURCE.rglob("*.py") for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
    }
    for name in interfaces.public_names("lacuna"):
        value = getattr(lacuna, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            given = [str(one.annotation) for one in inspect.signature(value).parameters.values()]
            needed = {word for text in given for word in re.findall(r"\w+", text)} & ours
            assert needed - set(described) - {"StudySpec", "TrialTable"} == set(), name


def test_every_declaration_stands_in_its_table() -> None:
    assert first_cells(page("reference/settings.md")) == list(SETTINGS)
    assert first_cells(page("reference/methods.md")) == [*METHODS, *YARDSTICKS]
    assert first_cells(page("reference/mechanisms.md")) == list(MECHANISMS)
    worlds = page("reference/worlds.md")
    assert first_cells(worlds)[: len(WORLDS)] == list(WORLDS)
    assert re.findall(r"^## (.*)$", worlds, re.MULTILINE) == list(WORLDS)


def test_types_are_written_as_in_the_code_and_lists_as_lists() -> None:
    assert [name for name, text in generate.pages().items() if "ForwardRef" in text or "PosixPath" in text] == []
    body = "show\n    Either:\n\n    - one, on\n      two lines\n    - another\n\n    More.\nbins\n    The\n    edges."
    found = {"show": "Either:\n    - one, on two lines\n    - another\n\n    More.", "bins": "The edges."}
    assert interfaces.items(body) == found


def test_the_page_of_the_command_says_what_may_be_left_out_and_what_is_on() -> None:
    text = page("reference/command.md")
    assert "lacuna trial decide FILE [PARTICIPANT] [T] [OPTIONS]" in text
    assert "| `--available`, `--not-available` | Whether the participant can be treated now. | on |" in text


def test_the_figures_of_a_run_are_those_that_its_docstring_names() -> None:
    figures = run_trial(Problem.named("corridor", "mcar:0.2"), lacuna.Settings("last-observed"), steps=50, times=[10])
    assert set(generate.definitions("lacuna.run.repetitions", "run_trial", "Figures")) == set(figures)


# --- explanations ----------------------------------------------------------------------------------------------------


def test_the_idea_explains_every_method_vote_and_update() -> None:
    named = first_cells(page("explanation/idea.md"))
    assert [name for name in (*METHODS, *VOTES, *UPDATES) if name not in named] == []


def test_the_labels_of_the_examples_are_those_of_their_rates() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|[^|]*\| (\w+) \|", page("explanation/missingness.md"), re.MULTILINE)
    lake, person = lacuna.make_world("lake"), lacuna.make_world("mobile-health")
    assert [text.partition(":")[0] for text, _ in rows] == [*MECHANISMS]
    where = {text: person if text.startswith("self-report") else lake for text, _ in rows}
    assert {text: parse(text, where[text]).label for text, _ in rows} == dict(rows)


def test_every_yardstick_is_explained() -> None:
    assert set(YARDSTICKS) <= set(first_cells(page("explanation/yardsticks.md")))


# --- architecture ----------------------------------------------------------------------------------------------------


def test_the_architecture_has_a_line_for_every_room_in_the_order_of_the_import_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    ranks = {name.strip(): rank for rank, layer in enumerate(layers) for name in layer.split("|")}
    rooms = re.findall(r"^\| `(\w+)` \| \S", page("architecture.md"), re.MULTILINE)
    assert set(rooms) == {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert [ranks[room] for room in rooms] == sorted(ranks[room] for room in rooms)


def test_every_path_that_a_page_names_exists() -> None:
    named = re.compile(r"`((?:src/lacuna|lacuna|tests|benchmarks|examples|studies|reference|paper)/[\w/.-]+)`")
    for name in WRITTEN:
        for path in named.findall(page(name)):
            there = SOURCE / path.removeprefix("lacuna/") if path.startswith("lacuna/") else ROOT / path
            assert there.exists(), (name, path)


# --- what the documentation says of the paper ------------------------------------------------------------------------

ARXIV = "2510.10709"


@pytest.mark.parametrize("place", ["README.md", "docs/index.md", "docs/how-to/reproduce.md", "CITATION.cff"])
def test_the_paper_is_cited_with_its_year_and_where_to_read_it(place: str) -> None:
    text = (ROOT / place).read_text(encoding="utf-8")
    assert "2025" in text
    assert f"https://arxiv.org/abs/{ARXIV}" in text
    assert f"arXiv:{ARXIV}" in text


def test_the_citation_file_has_the_keys_of_its_format() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    reference = text[text.index("references:") :]
    assert re.findall(r"^  - type: (\w+)$", reference, re.MULTILINE) == ["article"]
    assert re.findall(r"^    (year|month): (\d+)$", reference, re.MULTILINE) == [("year", "2025"), ("month", "10")]
    assert re.findall(r'^      - type: (\w+)\n        value: "(.+)"$', reference, re.MULTILINE) == [
        ("other", f"arXiv:{ARXIV}")
    ]


def test_no_page_says_which_reading_the_figures_of_the_paper_show() -> None:
    # Neither the text of the paper nor its captions tell, and there is no code to look at.
    kinds = ((DOCS, "*.md"), (SOURCE, "*.py"), (ROOT / "paper" / "src", "*.py"), (ROOT / "paper" / "src", "*.toml"))
    files = [ROOT / "README.md", *(path for folder, kind in kinds for path in folder.rglob(kind))]
    claims = ("what the paper's figures show", "as the authors ran", "behind the published", "figures come from this")
    claimed = re.compile("|".join(claims))
    told = {path.name for path in files if claimed.search(" ".join(path.read_text(encoding="utf-8").split()))}
    assert told == set()
    assert "does not say which of the two its figures show" in page("explanation/lake-world.md")


def test_a_study_that_shares_trials_with_the_choice_of_constants_does_not_deny_it() -> None:
    def trials(path: Path) -> tuple[set[str], set[int]]:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        first = data.get("first_trial", 0)
        return {world["name"] for world in data["worlds"]}, set(range(first, first + data["trials"]))

    chose = [trials(ROOT / "benchmarks" / "choosing" / f"{name}.toml") for name in ("parents", "smoothing")]
    shared = []
    for path in sorted((ROOT / "studies").resolve().rglob("*.toml")):
        worlds, numbers = trials(path)
        if any(worlds & others and numbers & used for others, used in chose):
            shared.append(path.name)
            assert "no part in choosing" not in " ".join(path.read_text(encoding="utf-8").replace("#", " ").split())
    assert "lake.toml" in shared
