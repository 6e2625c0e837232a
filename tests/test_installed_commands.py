"""Commands that installed packages bring: found by name, imported when asked for, refused in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import is_one_sentence

GREETING = """
import sys
import typer
from typing import Annotated

sys.stderr.write("imported\\n")

def greet(name: Annotated[str, typer.Option(help="Whom.")] = "you") -> None:
    "Greet someone."
    if name == "nobody":
        raise ValueError("name is nobody; greet somebody")
    print(f"hello {name}")

several = typer.Typer(help="Two commands.")

@several.command()
def one() -> None:
    "The first."
    print("one")

@several.command()
def two() -> None:
    print("two")

number = 3

def odd(what: int | str) -> None:
    "No option has this type."
"""


def install(folder: Path, package: str, source: str, **commands: str) -> None:
    """Put a package into a folder as pip would: its code, and what it says of itself."""
    (folder / f"{package}.py").write_text(source)
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {reference}" for name, reference in commands.items()]
    (about / "entry_points.txt").write_text("\n".join(["[lacuna.commands]", *lines]))


def lacuna(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Call the command with the packages in a folder, and lacuna, and nothing else of this repository."""
    ours = str(Path(__file__).parents[1] / "src")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((ours, str(folder))), "COLUMNS": "120"}
    start = [sys.executable, "-c", "from lacuna_command import main; main()"]
    return subprocess.run([*start, *words], env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    install(
        tmp_path, "greeting", GREETING, greet="greeting:greet", several="greeting:several", number="greeting:number",
        absent="greeting:absent", odd="greeting:odd", run="greeting:greet",
    )  # fmt: skip
    install(tmp_path, "broken", "import no_such_module\n", broken="broken:command")
    return tmp_path


def test_a_function_is_a_command_with_its_options(here: Path) -> None:
    assert lacuna(here, "greet", "--name", "Ada").stdout == "hello Ada\n"
    refused = lacuna(here, "greet", "--name", "nobody")
    assert (refused.returncode, refused.stderr) == (2, "imported\nlacuna: name is nobody; greet somebody\n")
    assert "Whom." in lacuna(here, "greet", "--help").stdout
    assert "see lacuna greet --help" in lacuna(here, "greet", "--nmae", "Ada").stderr


def test_an_app_of_typer_is_a_group_of_commands(here: Path) -> None:
    assert lacuna(here, "several", "two").stdout == "two\n"
    assert "The first." in lacuna(here, "several", "--help").stdout


def test_a_package_is_imported_when_its_command_or_help_is_asked_for_and_not_otherwise(here: Path) -> None:
    own = lacuna(here, "methods")
    assert (own.returncode, own.stderr) == (0, "")
    shown = lacuna(here, "--help")
    assert (shown.returncode, shown.stderr) == (0, "imported\n")
    told = " ".join(shown.stdout.replace("│", " ").split())
    assert "greet Greet someone." in told
    assert "several Two commands." in told
    assert "broken The command broken does not work: 'broken:command' cannot be imported" in told


def test_a_package_cannot_replace_a_command_of_lacuna(here: Path) -> None:
    assert "Run one method in one world" in lacuna(here, "run", "--help").stdout


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("broken", "the command broken does not work: 'broken:command' cannot be imported: ModuleNotFoundError"),
        ("absent", "the command absent does not work: 'greeting:absent': the module greeting has no name 'absent'"),
        ("number", "the command number does not work: 'greeting:number' is int; it must be a function or a"),
        ("odd", "the command odd does not work: 'greeting:odd' is no command: AssertionError"),
    ],
)
def test_a_command_that_does_not_work_says_why_in_a_sentence(name: str, sentence: str, here: Path) -> None:
    done = lacuna(here, name, "--any", "words")
    said = done.stderr.removeprefix("imported\n")
    assert (done.returncode, is_one_sentence(said)) == (2, True), done
    assert said.startswith(f"lacuna: {sentence}")


def test_two_packages_with_one_command_are_both_refused(here: Path) -> None:
    install(here, "other", "def greet() -> None: ...\n", greet="other:greet")
    done = lacuna(here, "greet")
    sentence = "several packages bring a command greet: greeting:greet, other:greet; keep one of them"
    assert (done.returncode, done.stderr) == (2, f"lacuna: {sentence}\n")


@pytest.mark.parametrize(
    ("name", "words"), [("paper", ("--out", "out")), ("theory", ("--workers", "-1", "x")), ("explain", ())]
)
def test_without_its_package_a_command_of_the_paper_says_what_to_install(
    name: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    # Of two packages with one name the first counts, so this one hides what is installed here.
    install(tmp_path, "lacuna_paper", "")
    done = lacuna(tmp_path, name, *words)
    sentence = f"lacuna: the command {name} comes with another package: pip install lacuna-paper\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)
    assert not Path("out").exists()


def test_a_word_that_is_no_command_is_answered_with_one_that_is_like_it(here: Path) -> None:
    assert "Did you mean 'greet'?" in lacuna(here, "geet").stderr
    assert "No such command 'greeting:greet'" in lacuna(here, "greeting:greet").stderr
