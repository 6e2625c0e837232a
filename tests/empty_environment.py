"""Build the wheel and the sdist, install each into an empty environment, and use it there: ``make wheel``.

The plain package must run the command and an agent, and name the extra for what it leaves out. It says how many
megabytes were installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "out" / "dist"

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


def main() -> None:
    """Build, install, use."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        tools = environment(Path(folder) / "tools")
        run([tools, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", "build"])
        run([tools, "-m", "build", "--outdir", DIST, ROOT])
    wheel, sdist = (next(DIST.glob(f"*{kind}")) for kind in (".whl", ".tar.gz"))
    for package, extra in ((wheel, ""), (sdist, ""), (wheel, "[study]")):
        with tempfile.TemporaryDirectory() as folder:
            use(package, extra, Path(folder))


def use(package: Path, extra: str, folder: Path) -> None:
    """Install a package into an environment of its own and try it."""
    python = environment(folder / "env")
    before = megabytes(folder / "env")
    run([python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", f"lacuna{extra} @ {package.as_uri()}"])
    sys.stdout.write(f"{package.name}{extra}: {megabytes(folder / 'env') - before:.0f} MB installed\n")
    lacuna = python.parent / "lacuna"
    run([python, "-c", AGENT], folder)
    run([lacuna, "run", "--steps", "200", "--trials", "1"], folder)
    (folder / "study.toml").write_text(
        'name = "s"\nsteps = 50\ntrials = 1\nmissingness = ["mcar:0.2"]\n'
        'worlds = [{name = "corridor"}]\nmethods = [{name = "last-observed"}]\n'
    )
    words = [str(lacuna), "study", "run", "study.toml", "--out", "results"]
    done = subprocess.run(words, cwd=folder, env=plain(), capture_output=True, text=True, check=False)
    if extra:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 2, done
        assert done.stderr.strip().endswith("comes with an extra: pip install 'lacuna[study]'"), done.stderr
        assert "Traceback" not in done.stderr
        assert not (folder / "results").exists()


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
