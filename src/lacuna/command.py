"""The `lacuna` command. Heavy imports happen inside the commands that need them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuna import __version__
from lacuna.paper.command import paper
from lacuna.study.command import app as study_app
from lacuna.study.command import checked, checked_workers
from lacuna.terminal import exit_code

if TYPE_CHECKING:
    from lacuna.learning.methods import Settings
    from lacuna.running.trials import Problem

app = typer.Typer(
    help="Online reinforcement learning when parts of the state go missing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(study_app, name="study")
app.command()(paper)


def main() -> None:
    """Run the command; a wrong value gives one sentence and exit code 2, never a traceback."""
    sys.exit(exit_code(lambda: app(prog_name="lacuna", standalone_mode=False)))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lacuna {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = (
        False
    ),
) -> None:
    """Online reinforcement learning when parts of the state go missing."""


@app.command()
def run(
    world: Annotated[str, typer.Option(help="A world; `lacuna worlds` lists them.")] = "lake",
    missingness: Annotated[str, typer.Option(help="What hides it, e.g. mcar:0.4; `lacuna worlds` lists them.")] = (
        "mcar:0.4"
    ),
    method: Annotated[
        str | None,
        typer.Option(help="A method; `lacuna methods` lists them.", show_default="the library's default"),
    ] = None,
    K: Annotated[int | None, typer.Option("--K", help="Pathways, for MI methods.", show_default="10")] = None,
    alpha: Annotated[float, typer.Option(help="Step size, above 0 and up to 1.")] = 0.1,
    gamma: Annotated[float, typer.Option(help="Discount, 0 to 1.")] = 1.0,
    epsilon: Annotated[float, typer.Option(help="Share of uniform actions, 0 to 1.")] = 0.0,
    vote: Annotated[str, typer.Option(help="sampled, majority, softmax or average.")] = "sampled",
    update: Annotated[str, typer.Option(help="sequential, simultaneous or exact-rate.")] = "sequential",
    p_shuffle: Annotated[float, typer.Option(help="Probability of mixing the pathways in a step.")] = 0.0,
    kappa: Annotated[float | None, typer.Option(help="Weight of the component counts, mi-available only.")] = None,
    smoothing: Annotated[float | None, typer.Option(help="Added to component counts, mi-available only.")] = None,
    parents: Annotated[
        float | None,
        typer.Option(
            help="Let a component depend on one other: weight of what is known without it; 0 is off.",
            show_default="0 for a method named",
        ),
    ] = None,
    optimism: Annotated[
        float | None,
        typer.Option(
            help="For actions not yet tried: a multiple of the highest reward so far; 0 is off.",
            show_default="0 for a method named",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of each trial.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Seed of the first trial; trial i uses seed + i.")] = 0,
    trials: Annotated[int, typer.Option(help="How many trials.")] = 5,
    stay: Annotated[bool, typer.Option("--stay", help="Lake World: allow staying in place.")] = False,
    continuing: Annotated[bool, typer.Option("--continuing", help="Lake World: the goal does not end anything.")] = (
        False
    ),
    wind: Annotated[float | None, typer.Option(help="Lake World: probability of wind.")] = None,
    flood: Annotated[float | None, typer.Option(help="Lake World: probability that the flood changes.")] = None,
    map_file: Annotated[Path | None, typer.Option("--map", help="Lake World: a text file with another map.")] = None,
    hide_first: Annotated[bool, typer.Option("--hide-first", help="The first state may be incomplete too.")] = False,
    driver: Annotated[str, typer.Option(help="compiled, or stepwise: the plain Python loop.")] = "compiled",
    workers: Annotated[int | None, typer.Option(help="Trials at a time.", show_default="one per core")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per trial, in a list.")] = False,
) -> None:
    """Run one method in one world and show how it does."""
    from lacuna.learning.methods import DEFAULT, Settings
    from lacuna.running.trials import MOST_TRIALS, Problem, run_trials

    # The default is a setting as a whole; a method that is named starts from nothing of it.
    given: dict[str, Any] = {
        "K": K, "alpha": alpha, "gamma": gamma, "epsilon": epsilon, "vote": vote, "update": update,
        "p_shuffle": p_shuffle, "kappa": kappa, "smoothing": smoothing, "parents": parents, "optimism": optimism,
    }  # fmt: skip
    usual = DEFAULT if method is None else Settings(method)
    settings = replace(usual, **{name: value for name, value in given.items() if value is not None})
    parameters: dict[str, Any] = {"stay": stay or None, "continuing": continuing or None, "wind": wind, "flood": flood}
    parameters["map"] = map_file.read_text() if map_file else None
    parameters = {name: value for name, value in parameters.items() if value is not None}
    checked("trials", trials, MOST_TRIALS)
    problem = Problem.named(world, missingness, parameters)
    with _progress(trials * steps, f"{settings.method} in {world}, {missingness}") as advance:
        rows = run_trials(
            problem, settings, steps=steps, seeds=range(seed, seed + trials), first_observed=not hide_first,
            driver=driver, workers=workers, progress=advance,
        )  # fmt: skip
    given = {name: value for name, value in parameters.items() if name != "map"}
    if as_json:
        what = {"world": world, **given, "missingness": problem.missingness, **settings.as_dict()}
        typer.echo(json.dumps([what | row for row in rows], indent=1))
    else:
        named = ", ".join(f"{name} = {value}" for name, value in given.items())
        _show_trials(problem, f"{world} ({named})" if named else world, settings, rows)


@contextmanager
def _progress(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, silence elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("steps"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.advance(task, n)


_FIGURES = {
    "mean_total_reward": "total reward per episode",
    "mean_bad_steps": "bad steps per episode",
    "mean_path_length": "path length",
    "episodes": "episodes completed",
    "open_steps": "steps in the open episode",
    "reward_per_step": "reward per step",
    "reward_per_step_early": "… over the first 10,000 steps",
    "reward_per_step_late": "… over the last fifth",
    "idle_share": "share of idle actions",
    "guessed_right": "hidden components guessed right",
    "weight_on_truth": "pathways on the true state",
    "calibration_error": "calibration error of pathway shares",
    "seconds": "seconds",
}


def _show_trials(problem: Problem, world: str, settings: Settings, rows: list[dict[str, Any]]) -> None:
    """Mean and standard error over trials, as a table."""
    from rich.console import Console
    from rich.table import Table

    from lacuna.running.measures import mean_and_error

    chosen = ", ".join(f"{name} = {value}" for name, value in settings.unusual().items())
    title = (
        f"{settings.method}{f' ({chosen})' if chosen else ''} in {world}, {problem.missingness} "
        f"({problem.mechanism.label}); trials: {len(rows)} of {rows[0]['steps']:,} steps"
    )
    typer.echo(title)
    table = Table()
    for column in ("", "mean", "standard error", "trials"):
        table.add_column(column, justify="left" if not column else "right")
    for key, label in _FIGURES.items():
        values = [row[key] for row in rows if row[key] is not None]
        if values:
            mean, error = mean_and_error(values)
            spread = "" if error is None else f"{error:.3g}"
            table.add_row(label, f"{mean:.5g}", spread, f"{len(values)} of {len(rows)}")
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    undone = sum(row["mean_total_reward"] is None for row in rows)
    if undone:
        typer.echo(f"{undone} of {len(rows)} trials completed no episode; the figures per episode leave them out.")


@app.command()
def methods() -> None:
    """List the methods, and the yardsticks for them: what each acts on and learns from."""
    from rich.console import Console
    from rich.table import Table

    from lacuna.learning.methods import METHODS, YARDSTICKS

    titles = {
        "Methods (single imputation is an MI method with --K 1)": METHODS,
        "Yardsticks: they know what no agent can know": YARDSTICKS,
    }
    for title, rows in titles.items():
        table = Table(title=title, title_justify="left")
        for column in ("--method", "acts on", "learns Q from", "learns the model from"):
            table.add_column(column)
        for method in rows.values():
            table.add_row(method.name, method.acts_on, method.learns_q_from, method.learns_t_from)
        Console(width=None if sys.stdout.isatty() else 130).print(table)


@app.command()
def worlds() -> None:
    """List the worlds and the missingness mechanisms."""
    from lacuna.missingness import MECHANISMS
    from lacuna.worlds.registry import WORLDS

    typer.echo("Worlds (--world):")
    for name, world in WORLDS.items():
        typer.echo(f"  {name:14} {world.about}")
    typer.echo("\nMissingness (--missingness):")
    for about in MECHANISMS.values():
        spelling, _, meaning = about.partition(": ")
        typer.echo(f"  {spelling}\n      {meaning}")


@app.command()
def bench(
    repeats: Annotated[int, typer.Option(help="Runs of each kind; the best one counts.")] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure nanoseconds per step, by method, K and missingness, on one core and on all, next to C++."""
    from lacuna.bench import measure, show

    checked("repeats", repeats, 1000)

    def tell(what: str) -> None:
        if sys.stderr.isatty():
            typer.echo(f"\r\x1b[2K{what}", err=True, nl=False)

    result = measure(repeats, tell)
    tell("")
    typer.echo(json.dumps(result, indent=1) if as_json else show(result))


@app.command()
def theory(
    out: Annotated[
        Path, typer.Option(help="The folder to write the page, its data and its figures to.", show_default=False)
    ],
    workers: Annotated[int | None, typer.Option(help="Statements at a time.", show_default="one per core")] = None,
    effort: Annotated[float, typer.Option(help="Size of the simulations; below 1 is faster and coarser.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulations.")] = 0,
) -> None:
    """Check the paper's appendix: every statement with its formula, a simulation and a verdict, on one page."""
    from lacuna.theory.command import run_theory

    workers = checked_workers(workers)
    run_theory(out, workers=workers, effort=effort, seed=seed)


if __name__ == "__main__":
    main()
