"""The `lacuna` command. Heavy imports happen inside the commands that need them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuna import __version__
from lacuna.agent.methods import METHODS
from lacuna.cli.installed_commands import OpenGroup
from lacuna.cli.options import (
    HideFirstOption,
    MethodOption,
    MissingnessOption,
    WorldOption,
    chosen_method,
    command_with_settings,
    page_to_write,
)
from lacuna.cli.replay_command import replay
from lacuna.cli.study_commands import app as study_app
from lacuna.cli.study_commands import tell_of_damage
from lacuna.cli.trial_commands import app as trial_app
from lacuna.terminal import exit_code, progress
from lacuna.validation import printable, whole_number

if TYPE_CHECKING:
    from lacuna.agent.own_method import AnyMethod
    from lacuna.run.problems import AnyProblem

app = typer.Typer(
    cls=OpenGroup,
    help="Online reinforcement learning when parts of the state go missing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(study_app, name="study")
app.add_typer(trial_app, name="trial")
app.command()(replay)


def main() -> None:
    """Run the command; a wrong value is reported in one sentence with exit code 2, never as a traceback."""
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


Results = Annotated[Path, typer.Argument(help="A folder of results.", show_default=False)]


@study_app.command("report")
def study_report(
    folder: Results,
    out: Annotated[
        Path | None, typer.Option(help="The page to write, an HTML file.", show_default="FOLDER/report.html")
    ] = None,
    study: Annotated[str | None, typer.Option(help="Only the runs of the study with this name.")] = None,
) -> None:
    """Write one page about the runs in a folder: rewards, curves, paired differences, scores over tasks, a table."""
    from lacuna.report.study_files import report_store
    from lacuna.study.store import Store

    store = Store.existing(folder)
    page = page_to_write(folder / "report.html" if out is None else out)
    missing = report_store(store, page, study)
    tell_of_damage(store)
    for sentence in missing:
        typer.echo(f"lacuna: {sentence}", err=True)
    typer.echo(f"Open {page.resolve()}")
    if store.damaged:
        typer.echo("lacuna: runs are missing; run their study again", err=True)
        raise typer.Exit(1)


@study_app.command("compare")
def study_compare(
    first: Results,
    second: Results,
    out: Annotated[Path | None, typer.Option(help="Write a page too, an HTML file.")] = None,
) -> None:
    """Compare two folders of results: which runs are equal to the bit, and how means differ, paired by trial."""
    from rich.console import Console
    from rich.table import Table

    from lacuna.study.outcomes import left_out, of_latest_source
    from lacuna.study.store import Store
    from lacuna.study.store_comparison import HEADS, compare_stores

    page = None if out is None else page_to_write(out)
    names = (str(first), str(second))
    stores = [Store.existing(name) for name in names]
    stored = [store.table() for store in stores]
    latest = [of_latest_source(runs, store.studies()) for runs, store in zip(stored, stores, strict=True)]
    found = compare_stores(*latest)
    for store in stores:
        tell_of_damage(store)
        for sentence in store.left_alone():
            typer.echo(printable(f"lacuna: {sentence}"), err=True)
    for sentence in found.sentences(names):
        typer.echo(sentence)
    for name, every, runs in zip(names, stored, latest, strict=True):
        for sentence in left_out(every.height - runs.height):
            typer.echo(f"lacuna: {name}: {sentence}", err=True)
    table = Table(*HEADS, title=f"{found.measure.name}, paired by trial", title_justify="left")
    for one in found.compared():
        mean, low, high, n = one.apart
        bounds = "" if low is None or high is None else f" [{low:.4g}, {high:.4g}]"
        means = (f"{one.first:.4g}", f"{one.second:.4g}", f"{mean:.4g}{bounds}")
        table.add_row(one.place, one.missingness, one.method, *means, str(n), one.finding)
    if table.row_count:
        Console(width=None if sys.stdout.isatty() else 150).print(table)
    else:
        typer.echo("no method has a trial of the same task in both")
    if page is not None:
        from lacuna.report.study_files import write_comparison

        write_comparison(found, names, page)
        typer.echo(f"Open {page.resolve()}")


@app.command()
@command_with_settings
def run(
    given: dict[str, Any],
    world: WorldOption = "lake",
    missingness: MissingnessOption = "mcar:0.4",
    method: MethodOption = None,
    steps: Annotated[int, typer.Option(help="Steps of each trial.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Seed of the first trial; trial i uses seed + i.")] = 0,
    trials: Annotated[int, typer.Option(help="How many trials.")] = 5,
    hide_first: HideFirstOption = False,
    driver: Annotated[str, typer.Option(help="compiled, or stepwise: the plain Python loop.")] = "compiled",
    workers: Annotated[int | None, typer.Option(help="Trials at a time.", show_default="one per core")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per trial, in a list.")] = False,
) -> None:
    """Run one method in one world and show its figures."""
    from lacuna.cli.run_table import curve_times
    from lacuna.run.problems import find_problem
    from lacuna.run.repetitions import MOST_TRIALS, SeedlessTrial, run_seeds

    settings = chosen_method(method, given)
    whole_number("trials", trials, 1, MOST_TRIALS)
    problem = find_problem(world, missingness, first_observed=not hide_first)
    with progress(f"{settings.method} in {world}, {missingness}", "steps") as show:
        show(total=trials * steps)
        # Only a terminal shows a curve.
        times = () if as_json or not sys.stdout.isatty() else curve_times(steps)
        rows = run_seeds(
            SeedlessTrial(problem, settings, steps, driver, times), range(seed, seed + trials), workers,
            lambda n: show(advance=n),
        )  # fmt: skip
    if as_json:
        what = {"world": world, "missingness": problem.missingness, **settings.as_dict()}
        typer.echo(json.dumps([what | row for row in rows], indent=1))
    else:
        _show_trials(problem, settings, rows)


def _show_trials(problem: AnyProblem, settings: AnyMethod, rows: list[dict[str, Any]]) -> None:
    """Figures as a table; on a terminal also a learning curve, and the yardsticks."""
    from rich.console import Console

    from lacuna.cli.run_table import Reached, beside_table, figures_table, heading, on_learning, reached

    console = Console(width=None if sys.stdout.isatty() else 110)
    typer.echo(heading(problem, settings, rows))
    console.print(figures_table(problem, rows, console.width))
    undone = sum(row["mean_total_reward"] is None for row in rows)
    if undone:
        typer.echo(f"{undone} of {len(rows)} trials completed no episode; the figures per episode leave them out.")
    if sys.stdout.isatty():
        typer.echo(on_learning(rows))
        with progress("what could be reached", "yardsticks"):
            found = list(reached(problem, settings, [row["seed"] for row in rows]))
        known = [one for one in found if isinstance(one, Reached)]
        if known:
            console.print(beside_table(settings, rows, known))
        for sentence in (one for one in found if isinstance(one, str)):
            typer.echo(sentence)


@app.command()
def methods() -> None:
    """List the methods, and the yardsticks for them: what each acts on and learns from."""
    from rich.console import Console
    from rich.table import Table

    from lacuna.agent.methods import YARDSTICKS

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
        given = ", ".join(_with_default(parameter, default) for parameter, default in world.parameters.items())
        typer.echo(f"  {name:14} {world.about}" + (f"\n{'':17}parameters: {given}" if given else ""))
    typer.echo("\nMissingness (--missingness):")
    for kind in MECHANISMS.values():
        typer.echo(f"  {kind.written}\n      {kind.about}")


def _with_default(parameter: str, default: Any) -> str:
    """A parameter of a world as `--world` takes it; without its default if that is long or none."""
    text = json.dumps(default) if isinstance(default, bool | int | float | tuple) else ""
    return f"{parameter}={text}" if 0 < len(text) <= 30 else parameter


@app.command()
def bench(
    repeats: Annotated[int, typer.Option(help="Runs of each kind; the best one counts.")] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure nanoseconds per step, by method, K and missingness, on one core and on all, next to C++."""
    from lacuna.cli.bench import measure, show

    whole_number("repeats", repeats, 1, 1000)

    def tell(what: str) -> None:
        if sys.stderr.isatty():
            typer.echo(f"\r\x1b[2K{what}", err=True, nl=False)

    result = measure(repeats, tell)
    tell("")
    typer.echo(json.dumps(result, indent=1) if as_json else show(result))


if __name__ == "__main__":
    main()
