"""The command in real processes: closed streams, poor terminals, Ctrl-C at any moment of the start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import is_one_sentence
from lacuna.quantities import duration

RUN = ("run", "--steps", "20", "--trials", "1")
START = "import sys; from lacuna_command import main; main()"
CLOSED = "lacuna: standard output is closed, so there is nowhere to print to\n"


def process(*words: str, redirect: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command by a shell, which may close its streams."""
    line = ["sh", "-c", f'exec "$0" "$@" {redirect}', sys.executable, "-c", START, *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=os.environ | environment)


@pytest.mark.parametrize("words", [RUN, ("methods",), ("worlds",), ("--help",), ("run", "--help"), ("--version",)])
def test_a_closed_output_is_told_before_anything_is_computed(words: tuple[str, ...]) -> None:
    done = process(*words, redirect=">&-")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", CLOSED)


@pytest.mark.parametrize("words", [RUN, ("methods",), ("worlds",), ("--help",), ("--version",)])
def test_an_output_that_nobody_reads_is_told_in_a_sentence(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        line = [sys.executable, "-c", START, *words]
        done = subprocess.run(line, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, CLOSED)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [RUN, ("methods",), ("worlds",)])
def test_a_full_output_is_told_in_a_sentence(words: tuple[str, ...]) -> None:
    done = process(*words, redirect=">/dev/full")
    assert (done.returncode, done.stdout) == (2, "")
    assert is_one_sentence(done.stderr)
    assert "No space left" in done.stderr


@pytest.mark.parametrize("redirect", ["2>&-", "2>&- <&-", "<&-"])
def test_without_the_other_streams_everything_is_printed(redirect: str) -> None:
    done = process(*RUN, "--json", redirect=redirect)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)) == 1
    wrong = process("run", "--steps", "0", redirect=redirect)
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_a_file_does_not_take_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    program = "import os, sys; from lacuna.terminal import exit_code; "
    program += "sys.exit(exit_code(lambda: int(os.open('file', os.O_CREAT | os.O_WRONLY) < 3)))"
    line = ["sh", "-c", 'exec "$0" "$@" 2>&- <&-', sys.executable, "-c", program]
    assert subprocess.run(line, check=False, cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp437", "utf-8"])
def test_a_poor_terminal_shows_the_whole_table(encoding: str) -> None:
    for words, labels in ((RUN, ("over the last fifth", "guessed right")), (("worlds",), ("mcar",))):
        done = subprocess.run(
            [sys.executable, "-c", START, *words], capture_output=True, check=False,
            env=os.environ | {"PYTHONIOENCODING": encoding},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        # Typer takes a terminal of ASCII for one that is set up wrongly, and writes UTF-8 to it.
        shown = done.stdout.decode(encoding, "replace")
        assert all(label in shown for label in labels)


def test_the_c_locale_shows_the_whole_table() -> None:
    done = process(*RUN, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "? over the last fifth" in done.stdout


@pytest.mark.parametrize(
    "before",
    [("run", "--world"), ("run", "--missingness"), ("study", "plan"), ("study", "status"), ()],
)
def test_no_sentence_is_broken_in_a_narrow_terminal(before: tuple[str, ...]) -> None:
    long = "no-such-" + "word" * 40
    done = process(*before, long, COLUMNS="40", TERMINAL_WIDTH="40", FORCE_COLOR="1")
    assert done.returncode == 2
    assert is_one_sentence(done.stderr)
    assert long in done.stderr


# Sends itself Ctrl-C when one module is looked for, or lists all that are.
HOOK = """
import os, signal, sys
at, sys.argv = sys.argv[1], ["lacuna", *sys.argv[2:]]

class Finder:
    def find_spec(name, path=None, target=None):
        if at == "list":
            os.write(2, f"{name}\\n".encode())
        elif name == at:
            os.kill(os.getpid(), signal.SIGINT)

import lacuna_command
sys.meta_path.insert(0, Finder)
lacuna_command.main()
"""


def hooked(at: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", HOOK, at, *RUN]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_an_interrupt_during_any_import_is_a_line_and_exit_code_130() -> None:
    # Tables of characters are imported while the result is being printed, so then there is something on the screen.
    listed = dict.fromkeys(hooked("list").stderr.split())
    found = [name for name in listed if not name.startswith("rich._unicode_data")]
    wanted = ["lacuna", "numpy", "gymnasium", "typer", "lacuna.cli.main", "numba", "llvmlite", "rich.table"]
    assert len(found) > 300
    assert set(wanted) <= set(found)
    # Some more of them, from the first to the last.
    for name in (*wanted, *found[:: len(found) // 8]):
        done = hooked(name)
        assert (done.returncode, done.stdout) == (130, ""), (name, done)
        assert is_one_sentence(done.stderr), (name, done.stderr)
        assert done.stderr.startswith("lacuna: stopped"), name


def test_an_interrupt_that_a_library_swallows_is_heard_all_the_same() -> None:
    program = """
import os, signal, sys
from lacuna.terminal import exit_code
class Swallows:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
def turned_into_another_error():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException as error:
        raise ImportError("it failed") from None
def in_a_finaliser():
    Swallows()
    signal.pause()
sys.exit(exit_code({"error": turned_into_another_error, "finaliser": in_a_finaliser}[sys.argv[1]]))
"""
    for way in ("error", "finaliser"):
        line = [sys.executable, "-c", program, way]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 130, done
        assert is_one_sentence(done.stderr)


def test_a_number_and_its_noun_agree() -> None:
    times = [duration(seconds / 100) for seconds in range(300_000)]
    for text in times:
        number, noun = text.split()
        assert (number == "1") == (not noun.endswith("s")), text
