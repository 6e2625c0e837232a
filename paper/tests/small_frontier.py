"""The studies of the frontier with one small problem each."""

from __future__ import annotations

from pathlib import Path

from lacuna_paper.frontier.studies import FIXED


def write_small_frontier(folder: Path) -> None:
    """Write the studies of the frontier, each of one small problem."""
    for name in FIXED:
        world = "loop" if name == "relay" else "corridor"
        gamma = 0.95 if world == "loop" else 1.0
        methods = "" if name == "relay" else '{name = "qmdp"}, {name = "qmdp-rewards"}, '
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\nsteps = 100\ntrials = 9\nfirst_trial = 5000\nmissingness = ["mcar:0.3"]\n'
            f'worlds = [{{name = "{world}"}}]\ngrid = {{gamma = {gamma}}}\n'
            f'methods = [{{name = "mi-planned"}}, {{name = "last-observed"}}, {methods}{{name = "optimum"}}]\n'
        )
    (folder / "tuning.toml").write_text(
        'name = "tuning"\nsteps = 100\ntrials = 4\nfirst_trial = 6000\nmissingness = ["mcar:0.3"]\n'
        'worlds = [{name = "corridor"}]\ngrid = {gamma = [0.5, 1.0]}\n'
        'methods = [{name = "mi-planned"}, {name = "last-observed"}]\n'
    )
