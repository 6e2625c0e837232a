"""Build wheels and sdists, install them into empty environments, and use them there: ``make wheel``.

The plain library runs the command, an agent and a trial, and names what is to be installed for what it leaves out: an
extra, or the package of the paper. It says how many megabytes were installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
DIST = ROOT / "out" / "dist"
SOURCES = {"lacuna": ROOT, "lacuna_paper": ROOT / "paper"}

AGENT = """
import sys, time
began = time.perf_counter()
import lacuna
took = time.perf_counter() - began
heavy = {"polars", "scipy", "pydantic", "typer", "rich", "pandas"} & set(sys.modules)
assert not heavy, heavy
agent = lacuna.Agent(lacuna.Space((3, 2)), n_actions=2)
agent.begin([0, 1])
agent.act()
agent.learn(1.0, [2, None], False)
agent.save("agent.lacuna")
assert lacuna.Agent.load("agent.lacuna").steps == 1
heavy = {"polars", "typer", "rich", "pandas"} & set(sys.modules)
assert not heavy, heavy
print(f"import lacuna: {took:.2f} s")
"""


DECISION = ("decide", "walk.toml", "maria", "0", "--context", '{"mood": 2}')
STUDY = """
name = "s"
steps = 50
trials = 2
missingness = ["mcar:0.2"]
worlds = [{name = "corridor"}]
methods = [{name = "last-observed"}]
"""
TRIAL = """
[trial]
name = "walk"
actions = ["nothing", "prompt"]
absent = "nothing"
[allocation]
rule = { softmax = { temperature = 0.5 } }
bounds = [0.1, 0.9]
[reward]
range = [0.0, 1.0]
[context]
mood = { values = [1, 2, 3] }
"""


def main() -> None:
    """Build, install, use."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        tools = environment(Path(folder) / "tools")
        run([tools, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", "build"])
        for source in SOURCES.values():
            run([tools, "-m", "build", "--outdir", DIST, source])
    wheel, sdist = (next(DIST.glob(f"lacuna-*{kind}")) for kind in (".whl", ".tar.gz"))
    papers = [next(DIST.glob(f"lacuna_paper-*{kind}")) for kind in (".whl", ".tar.gz")]
    check_contents(wheel, papers[0])
    for package, extra in ((wheel, ""), (sdist, ""), (wheel, "[study]"), (wheel, "[report]")):
        with tempfile.TemporaryDirectory() as folder:
            use(package, extra, Path(folder))
    for paper in papers:
        with tempfile.TemporaryDirectory() as folder:
            reproduce(wheel, paper, Path(folder))


def check_contents(wheel: Path, paper: Path) -> None:
    """Check that the library holds nothing of the paper, and no data; and that the paper holds its own."""
    names = ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"lacuna", "lacuna_command.py"}, names
    kinds = {Path(name).suffix for name in names if name.startswith("lacuna/")}
    assert kinds == {".py", ".js", ".css", ".typed"}, kinds
    rooms = {part for name in names for part in Path(name).parts}
    assert not rooms & {"lacuna_paper", "paper", "theory", "frontier", "story", "studies"}, rooms
    kept = {Path(name).suffix for name in ZipFile(paper).namelist() if name.startswith("lacuna_paper/")}
    assert kept > {".py", ".json", ".toml", ".css", ".js"}, kept


def use(package: Path, extra: str, folder: Path) -> None:
    """Install the library into an environment of its own and try it."""
    python = environment(folder / "env")
    before = megabytes(folder / "env")
    install(python, f"lacuna{extra} @ {package.as_uri()}")
    sys.stdout.write(f"{package.name}{extra}: {megabytes(folder / 'env') - before:.0f} MB installed\n")
    lacuna = python.parent / "lacuna"
    run([python, "-c", AGENT], folder)
    run([lacuna, "run", "--steps", "200", "--trials", "1"], folder)
    (folder / "walk.toml").write_text(TRIAL)
    for words in (("init", "walk.toml"), ("enrol", "walk.toml", "maria"), DECISION):
        run([lacuna, "trial", *words], folder)
    status: list[str | Path] = [lacuna, "trial", "status", "walk.db"]
    (folder / "study.toml").write_text(STUDY)
    study: list[str | Path] = [lacuna, "study", "run", "study.toml", "--out", "results"]
    report: list[str | Path] = [lacuna, "study", "report", "results"]
    if not extra:
        for refusing in (study, status):
            refused(refusing, folder, "comes with an extra: pip install 'lacuna[study]'")
        assert not (folder / "results").exists()
    else:
        run(study, folder)
        run(status, folder)
    if extra == "[study]":
        refused(report, folder, "need an extra: pip install 'lacuna[report]'")
    elif extra == "[report]":
        run(report, folder)
        assert (folder / "results" / "report.html").stat().st_size > 100_000
    for command in ("paper", "theory", "explain"):
        refused([lacuna, command, "--out", "out"], folder, "comes with another package: pip install lacuna-paper")
        assert not (folder / "out").exists()


def reproduce(library: Path, paper: Path, folder: Path) -> None:
    """Install the paper beside the library and try its commands."""
    python = environment(folder / "env")
    install(python, f"lacuna @ {library.as_uri()}", f"lacuna-paper @ {paper.as_uri()}")
    lacuna = python.parent / "lacuna"
    run([lacuna, "explain", "--out", "explained.html"], folder)
    assert (folder / "explained.html").read_bytes() == (ROOT / "docs" / "explained.html").read_bytes()
    run([lacuna, "theory", "--out", "theory", "--effort", "0.01"], folder)
    if paper.suffix == ".whl":
        run([lacuna, "paper", "--out", "paper"], folder)


def install(python: Path, *packages: str) -> None:
    """Install packages into an environment, in their tested versions."""
    run([python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", *packages])


def refused(words: list[str | Path], folder: Path, why: str) -> None:
    """Run a command that must end with one sentence."""
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=folder, env=plain(), capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert done.stderr.endswith(f"{why}\n"), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def environment(path: Path) -> Path:
    """Make an empty environment and give its interpreter."""
    run([sys.executable, "-m", "venv", path])
    return path / "bin" / "python"


def plain() -> dict[str, str]:
    """The variables of this process without those that would let it find other packages."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}


def run(words: list[str | Path], cwd: Path | None = None) -> None:
    """Run a command that must succeed, from a folder without our sources."""
    subprocess.run([str(word) for word in words], cwd=cwd or tempfile.gettempdir(), env=plain(), check=True)


def megabytes(folder: Path) -> float:
    """Size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


if __name__ == "__main__":
    main()
