"""The command as people use it: tables, JSON, lists, errors in one sentence, and nothing heavy before it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import lacuna
from lacuna.agent.methods import METHODS
from lacuna.agent.settings import settings_of
from lacuna.cli import main as cli
from lacuna.missingness import MECHANISMS
from lacuna.worlds.registry import WORLDS

COMMANDS = ("run", "methods", "worlds", "bench")
KEYS = {
    "mean_total_reward", "mean_bad_steps", "mean_path_length", "episodes", "reward_per_step", "idle_share", "seed",
    "seconds",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "150")


def call(*words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """Exit code, output and error output of ``lacuna words…``, through the real entry point."""
    monkeypatch.setattr(sys, "argv", ["lacuna", *words])
    code: Any = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return int(code or 0), out, err


class Command:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *words: str) -> tuple[int, str, str]:
        return call(*words, capsys=self.capsys, monkeypatch=self.monkeypatch)

    def rows(self, *words: str) -> list[dict[str, Any]]:
        code, out, err = self(*words, "--json")
        assert (code, err) == (0, "")
        found: list[dict[str, Any]] = json.loads(out)
        return found


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


PAPERS = ("run", "--method", "mi-synthetic")
RUN = ("run", "--steps", "600", "--trials", "3", "--gamma", "0.9", "--epsilon", "0.1")


def test_json_holds_an_object_per_trial(command: Command) -> None:
    rows = command.rows(*RUN, "--seed", "7", "--world", "lake,stay=true")
    assert [row["seed"] for row in rows] == [7, 8, 9]
    for row in rows:
        assert row.keys() >= KEYS
        assert row["steps"] == 600
        assert row["seconds"] > 0
        assert sum(row["hidden_shares"]) == pytest.approx(1.0)
        assert 0 < row["idle_share"] < 1


def test_trials_do_not_depend_on_how_many_run_at_a_time(command: Command) -> None:
    one, two, again = (without_seconds(command.rows(*RUN, "--workers", n)) for n in ("1", "2", "2"))
    assert one == two == again
    # A trial is its seed: the second of these is the first of those.
    later = without_seconds(
        command.rows(*RUN[:-6], "--trials", "1", "--gamma", "0.9", "--epsilon", "0.1", "--seed", "1")
    )
    assert later == one[1:2]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reading", [(), ("--world", "lake,continuing=true", "--hide-first")])
def test_both_drivers_give_the_same_figures(method: str, reading: tuple[str, ...], command: Command) -> None:
    words = (*RUN, "--method", method, "--missingness", "mfog:0.5,0.1", *reading)
    stepwise, compiled = (
        without_seconds(command.rows(*words, "--driver", driver)) for driver in ("stepwise", "compiled")
    )
    assert stepwise == compiled


OF_ANY = (("--gamma", "0.5"), ("--epsilon", "0"), ("--lag", "2"))
OF_VOTING = (
    ("--K", "3"), ("--alpha", "0.5"), ("--vote", "average"), ("--update", "simultaneous"), ("--p-shuffle", "0.5"),
    ("--optimism", "0.2"), ("--q-table", "own"), ("--evidence", "outcomes"),
)  # fmt: skip
OWN = {
    "mi-planned": (("--K", "3"), ("--kappa", "5"), ("--budget", "1"), ("--evidence", "observed"), ("--look", "1")),
    "mi-available": (*OF_VOTING, ("--kappa", "5"), ("--smoothing", "3"), ("--parents", "0.3")),
    "mi-chained": (*OF_VOTING, ("--cycles", "2")),
    "assumed-value": (("--alpha", "0.5"), ("--optimism", "0.2"), ("--assumed", "0.1")),
}  # fmt: skip


@pytest.mark.parametrize("method", OWN)
def test_every_setting_matters(method: str, command: Command) -> None:
    assert {word[2:].replace("-", "_") for word, _ in (*OF_ANY, *OWN[method])} == {*settings_of(METHODS[method])}
    run = (*RUN, "--method", method, "--missingness", "late:1,mcar:0.4")
    base = without_seconds(command.rows(*run))
    options = [*OF_ANY, *OWN[method]]
    found = [json.dumps(without_seconds(command.rows(*run, *option))) for option in options]
    assert len({json.dumps(base), *found}) == len(options) + 1


def test_every_option_matters(command: Command) -> None:
    base = without_seconds(command.rows(*RUN))
    options = [
        ("--method", "mi-conservative"), ("--method", "mi-available"), ("--steps", "601"),
        ("--seed", "5"), ("--trials", "2"), ("--hide-first",), ("--missingness", "mcar:0.5"), ("--world", "field"),
        *(("--world", f"lake,{given}") for given in ("stay=true", "continuing=true", "wind=0.3", "flood=0.4")),
    ]  # fmt: skip
    found = [json.dumps(without_seconds(command.rows(*RUN, *option))) for option in options]
    assert len({json.dumps(base), *found}) == len(options) + 1


def test_another_map_can_be_given(command: Command, tmp_path: Path) -> None:
    (tmp_path / "map.txt").write_text("S..\n.W.\n..G\n")
    rows = command.rows(*RUN, "--world", f"lake,map=@{tmp_path / 'map.txt'}")
    assert rows[0]["mean_path_length"] < 15


def test_a_table_otherwise(command: Command) -> None:
    code, out, err = command(*RUN)
    assert (code, err) == (0, "")
    title = out.splitlines()[0]
    settings = "K = 10, gamma = 0.9, epsilon = 0.1, kappa = 1.0, budget = 20"
    assert f"mi-planned ({settings}) in lake, mcar:0.4 (MCAR); trials: 3 of 600 steps" in title
    for label in ("total reward per episode", "path length", "hidden components guessed right", "seconds", "3 of 3"):
        assert label in out


def test_a_run_that_never_arrives_says_so(command: Command) -> None:
    code, out, _ = command("run", "--steps", "3", "--trials", "2")
    assert code == 0
    assert "2 of 2 trials completed no episode; the figures per episode leave them out." in out
    assert command.rows("run", "--steps", "3", "--trials", "2")[0]["mean_total_reward"] is None


def test_the_lists_name_everything(command: Command) -> None:
    code, out, _ = command("methods")
    assert code == 0
    assert all(name in out for name in METHODS)
    code, out, _ = command("worlds")
    assert code == 0
    assert all(name in out for name in (*WORLDS, *MECHANISMS))


@pytest.mark.parametrize("words", [(), *((command,) for command in COMMANDS)])
def test_help_is_everywhere(words: tuple[str, ...], command: Command) -> None:
    for flag in ("--help", "-h"):
        code, out, _ = command(*words, flag)
        assert code == 0
        assert "Usage" in out
    if not words:
        assert all(name in out for name in COMMANDS)


def test_version(command: Command) -> None:
    assert command("--version") == (0, f"lacuna {lacuna.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "--method", "mi-sinthetic"), "no method is called 'mi-sinthetic' (did you mean 'mi-synthetic'?)"),
        (("run", "--method", "last-observed", "--K", "5"), "K is 5, but last-observed has no such setting"),
        (("run", "--K", "0"), "K is 0; it must be a whole number between 1 and"),
        ((*PAPERS, "--alpha", "0"), "alpha is 0.0; nothing would be learned"),
        ((*PAPERS, "--alpha", "nan"), "alpha is nan; it must be a number between 0 and 1"),
        (("run", "--alpha", "0.2"), "alpha is 0.2, but mi-planned has no such setting; alpha belongs to random-action"),
        (("run", "--method", "mi-planned", "--alpha", "0.2"), "alpha is 0.2, but mi-planned has no such setting"),
        (("run", "--budget", "-1"), "budget is -1; it must be a whole number between 0 and 1000000000"),
        ((*PAPERS, "--budget", "5"), "budget is 5, but mi-synthetic has no such setting; budget belongs to mi-planned"),
        (("run", "--method", "mi-planned", "--kappa", "0"), "kappa is 0.0; mi-planned could not say where"),
        (("run", "--kappa", "-1"), "kappa is -1.0; it must be a number between 0 and"),
        (("run", "--gamma", "1.5"), "gamma is 1.5; it must be a number between 0 and 1"),
        (("run", "--epsilon", "-1"), "epsilon is -1.0"),
        ((*PAPERS, "--vote", "loudest"), "vote is 'loudest'; it must be one of sampled, majority, softmax, average"),
        ((*PAPERS, "--update", "never"), "update is 'never'; it must be one of"),
        ((*PAPERS, "--p-shuffle", "2"), "p_shuffle is 2.0; it must be a number"),
        (("run", "--steps", "0"), "steps is 0; it must be a whole number between 1 and"),
        (("run", "--steps", "1" + "0" * 30), "steps is 1000000000000000000000000000000; it must be"),
        (("run", "--seed", "-1"), "seed is -1; it must be a whole number, 0 or larger"),
        (("run", "--trials", "0"), "trials is 0; it must be a whole number between 1 and 100000"),
        (("run", "--workers", "0"), "workers is 0; it must be a whole number between 1 and 1024"),
        (("run", "--driver", "fast"), "driver is 'fast'; it must be one of compiled, stepwise"),
        (("run", "--world", "lack"), "no world is called 'lack' (did you mean 'lake'?)"),
        (("run", "--world", "corridor,stay=true"), "the world 'corridor' has no parameter 'stay'"),
        (("run", "--missingness", "mcra:0.4"), "no mechanism is called 'mcra' (did you mean 'mcar'?)"),
        (("run", "--missingness", "mcar:4"), "theta of mcar is 4.0; it must be a number between 0 and 1"),
        (
            ("run", "--missingness", "mfog:0.5,0", "--world", "field"),
            "mfog needs a region called 'fog'; field has none",
        ),
        (("run", "--world", "lake,wind=2"), "wind is 2.0; it must be a number between 0 and 1"),
        (("run", "--world", "lake,wind=high"), "wind of the world 'lake' is 'high'; it must be a number"),
        (
            ("run", "--world", "lake,wind"),
            "'wind' in the world 'lake,wind' is no parameter; write NAME,PARAMETER=VALUE",
        ),
        (("run", "--world", "lake,wind=0.1,wind=0.2"), "the world 'lake,wind=0.1,wind=0.2' says wind twice"),
        (("run", "--world", "lake,map=@nowhere.txt"), "nowhere.txt"),
        (("bench", "--repeats", "0"), "repeats is 0; it must be a whole number between 1 and 1000"),
    ],
)
def test_a_wrong_value_gives_one_sentence_and_exit_code_2(
    words: tuple[str, ...], sentence: str, command: Command
) -> None:
    code, out, err = command(*words)
    assert code == 2
    assert out == ""
    assert err.startswith("lacuna: ")
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("run", "--K"), ("run", "--no-such"), ("fly",), ("run", "extra")])
def test_words_that_make_no_sense_exit_with_2(words: tuple[str, ...], command: Command) -> None:
    code, out, err = command(*words)
    assert code == 2
    assert words[-1] in err
    assert "Traceback" not in out + err


def test_a_number_that_is_none_names_its_option(command: Command) -> None:
    code, _, err = command("run", "--K", "many")
    assert code == 2
    assert "'--K'" in err
    assert "Traceback" not in err


def test_the_installed_command_works() -> None:
    program = Path(sys.executable).with_name("lacuna")
    words = [*RUN, "--trials", "1", "--json"]
    done = subprocess.run([program, *words], check=True, capture_output=True, text=True)
    assert len(json.loads(done.stdout)) == 1
    wrong = subprocess.run([program, "run", "--steps", "0"], check=False, capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("lacuna: steps is 0; it must be")
    assert "Traceback" not in wrong.stderr


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    program = "import sys, lacuna.cli.main; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert {"lacuna", "typer"} <= set(done.stdout.split())
    assert not {"numba", "scipy", "polars", "llvmlite"} & set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(("cpp_source", "path", "why"), [
    ("no/loop.cpp", None, "its source is not installed; a clone of the repository has benchmarks/loop.cpp"),
    (None, "no/programs", "no g++ was found"),
])  # fmt: skip
def test_bench_says_why_it_leaves_cpp_out(
    cpp_source: str | None, path: str | None, why: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = import_module("lacuna.cli.bench")
    monkeypatch.setattr(bench, "STEPS", 20)
    if cpp_source is not None:
        monkeypatch.setattr(bench, "CPP_SOURCE", Path(cpp_source))
    if path is not None:
        monkeypatch.setenv("PATH", path)
    code, out, _ = command("bench", "--repeats", "1")
    assert (code, out.splitlines()[-1]) == (0, f"C++: left out, because {why}")


@pytest.mark.slow
def test_bench_measures_every_method(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import_module("lacuna.cli.bench")
    monkeypatch.setattr(sys.modules["lacuna.cli.bench"], "STEPS", 400)
    code, out, _ = command("bench", "--repeats", "1", "--json")
    assert code == 0
    found = json.loads(out)
    assert {row["method"] for row in found["one_core"]} == {*METHODS, "mi-available, best"}
    for row in found["one_core"]:
        assert row["ns_per_step"] > 0
        assert (row["cpp_ns_per_step"] is None) == (row["ratio_to_cpp"] is None)
    assert found["all_cores"]["speed_up"] > 0
    assert found["all_cores"]["cores"] == os.cpu_count()
    assert [row["states"] for row in found["by_size"]] == sorted(row["states"] for row in found["by_size"])
