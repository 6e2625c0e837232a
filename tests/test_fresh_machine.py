"""A machine on which nothing is installed: what `make` installs itself, and what is said where it cannot.

Continuous integration runs where everything is installed or can be. Here the package manager, the interpreter and sudo
only write down how they are called. So the promise to a reader with an empty machine, a user without root or no network
is kept, without three machines.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]

# Each writes down how it was called. The interpreter has no ensurepip until a package of that name was installed.
APT_GET = """#!/bin/sh
echo "apt-get $* ($DEBIAN_FRONTEND)" >>"$LOG"
[ "$1" != update ] || exit 0
[ -z "$APT_FAILS" ] || exit 100
for package do :; done
: >"$INSTALLED/$package"
"""
SUDO = """#!/bin/sh
echo "sudo" >>"$LOG"
[ "$1" != -n ] || shift
exec "$@"
"""
PYTHON3 = """#!/bin/sh
case "$*" in
  *ensurepip*) [ -e "$INSTALLED/python3.11-venv" ] ;;
  *print*) echo python3.11-venv ;;
  "-m playwright "*) echo "python $*" >>"$LOG"; [ -z "$DRIVER_FAILS" ] ;;
  *version*) ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo "venv" >>"$LOG" ;;
  *) echo "python $1 $2 $3" >>"$LOG" ;;
esac
"""


class Fresh:
    """A machine with a shell, make, an interpreter and a package manager, all of which write down what they do."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.clone, installed = (folder / name for name in ("bin", "clone", "installed"))
        for place in (self.bin, self.clone, installed):
            place.mkdir(parents=True)
        for tool in ("make", "sh", "env", "mkdir", "cp", "touch"):
            found = shutil.which(tool)
            assert found, f"this test needs {tool}"
            (self.bin / tool).symlink_to(found)
        self.user_is(0)
        self.has("python3", PYTHON3)
        self.has("apt-get", APT_GET)
        (self.clone / "paper").mkdir()
        for path in ("Makefile", ".ci", "pyproject.toml", "paper/pyproject.toml", "constraints.txt"):
            copy = shutil.copytree if (ROOT / path).is_dir() else shutil.copy
            copy(ROOT / path, self.clone / path)
        self.log = folder / "log"
        self.log.touch()
        self.environment = {"PATH": str(self.bin), "LOG": str(self.log), "INSTALLED": str(installed)}

    def has(self, command: str, text: str = "#!/bin/sh\n") -> None:
        (self.bin / command).write_text(text)
        (self.bin / command).chmod(0o755)

    def user_is(self, number: int) -> None:
        self.has("id", f"#!/bin/sh\necho {number}\n")

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.clone, env=self.environment | environment, check=False, capture_output=True, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def done(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    return Fresh(tmp_path / "fresh")


INSTALL = "apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends {} (noninteractive)"
GET_BROWSER = ["apt-get update ()", INSTALL.format("chromium libatomic1")]
GET_VENV = ["apt-get update ()", INSTALL.format("python3.11-venv")]
TRY_DRIVER = "python -m playwright --version"
RUN_TESTS = "python -m pytest -q"


def test_make_slow_does_all_the_set_up(fresh: Fresh) -> None:
    made = fresh.run("make", "slow")
    assert made.returncode == 0, made.stderr
    assert fresh.done() == [*GET_VENV, "venv", "python -m pip install", *GET_BROWSER, RUN_TESTS]


def test_what_is_there_is_not_installed(fresh: Fresh) -> None:
    fresh.has("chromium")
    assert fresh.run("make", "slow").returncode == 0
    fresh.log.write_text("")
    assert fresh.run("make", "slow").returncode == 0
    assert fresh.done() == [TRY_DRIVER, RUN_TESTS]


def test_a_browser_that_does_not_start_gets_the_library_it_lacks(fresh: Fresh) -> None:
    fresh.has("chromium")
    assert fresh.run("make", "slow", DRIVER_FAILS="yes").returncode == 0
    assert fresh.done()[-3:] == ["apt-get update ()", INSTALL.format("libatomic1"), RUN_TESTS]


def test_another_user_than_root_installs_with_sudo(fresh: Fresh) -> None:
    fresh.user_is(1000)
    fresh.has("sudo", SUDO)
    assert fresh.run(".ci/install", "chromium", "libatomic1").returncode == 0
    assert [line for line in fresh.done() if line != "sudo"] == GET_BROWSER
    assert fresh.done().count("sudo") == 2


def cannot_find_apt(fresh: Fresh) -> str:
    (fresh.bin / "apt-get").unlink()
    return "there is no apt-get here to do it with"


def cannot_be_root(fresh: Fresh) -> str:
    fresh.user_is(1000)
    return "that needs root, and there is no sudo here"


def cannot_reach_a_mirror(fresh: Fresh) -> str:
    fresh.environment["APT_FAILS"] = "yes"
    return "apt-get could not do it"


@pytest.mark.parametrize("cannot", [cannot_find_apt, cannot_be_root, cannot_reach_a_mirror])
def test_where_nothing_can_be_installed_one_sentence_says_what_to_do(
    cannot: Callable[[Fresh], str], fresh: Fresh
) -> None:
    why = cannot(fresh)
    refused = fresh.run(".ci/install", "make", "chromium", "g++")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == f"Install chromium g++ with your package manager: {why}."
    made = fresh.run("make", "slow")
    assert made.returncode != 0
    assert f"Install python3.11-venv with your package manager: {why}." in made.stderr


def test_without_a_browser_the_tests_run_all_the_same(fresh: Fresh) -> None:
    assert fresh.run("make", "slow").returncode == 0
    fresh.log.write_text("")
    why = cannot_find_apt(fresh)
    made = fresh.run("make", "slow")
    assert made.returncode == 0
    assert made.stderr == f"Install chromium libatomic1 with your package manager: {why}.\n"
    assert fresh.done() == [RUN_TESTS]


def pytest_here(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | environment
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)


OPEN_A_PAGE = ("paper/tests/test_page.py", "-k", "link or numbers")


def test_without_a_browser_the_summary_says_once_what_to_install(tmp_path: Path) -> None:
    ran = pytest_here(*OPEN_A_PAGE, PATH=str(tmp_path))
    assert ran.returncode == 0, ran.stdout
    *_, said, counted = ran.stdout.splitlines()
    assert ran.stdout.count("apt-get install chromium libatomic1") == 1
    n = re.match(r"(\d+) skipped", counted)
    assert n
    assert int(n[1]) > 1
    assert said.startswith(f"{n[1]} tests skipped: they open a page, and there is no browser here that starts")


def test_without_a_browser_continuous_integration_fails(tmp_path: Path) -> None:
    ran = pytest_here(*OPEN_A_PAGE, PATH=str(tmp_path), CI="true")
    assert ran.returncode == 1
    assert "skipped" not in ran.stdout.splitlines()[-1]


def test_there_is_one_browser_for_all_tests() -> None:
    files = [*ROOT.glob("tests/test_*.py"), *ROOT.glob("paper/tests/test_*.py")]
    tests = [str(path) for path in files if "browser: Browser" in path.read_text()]
    assert len(tests) >= 2
    planned = pytest_here("--setup-plan", *tests).stdout
    assert re.findall(r"SETUP +(.) browser\b", planned) == ["S"]


def test_every_pinned_package_runs_on_the_oldest_python_that_lacuna_takes() -> None:
    # pip refuses a pin that asks for a later bugfix release than the one a distribution ships.
    pins = [line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    installed = {canonicalize_name(found.name): found for found in distributions()}
    here = [installed[name] for pin in pins if (name := canonicalize_name(pin)) in installed]
    wanted = {found.name: str(found.metadata.json.get("requires_python", "")) for found in here}
    assert len(wanted) > 40
    assert {name: rule for name, rule in wanted.items() if not SpecifierSet(rule).contains("3.11.0")} == {}
