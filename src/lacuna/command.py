"""The `lacuna` command. Heavy imports happen inside the commands that need them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuna import __version__
from lacuna.audit.command import app as trial_app
from lacuna.methods.settings import DEFAULT, SETTINGS, Setting
from lacuna.methods.table import METHODS
from lacuna.paper.command import paper
from lacuna.study.command import app as study_app
from lacuna.study.command import checked_workers
from lacuna.terminal import exit_code, progress
from lacuna.validation import whole_number

if TYPE_CHECKING:
    from lacuna.learning.own_method import AnyMethod
    from lacuna.running.problems import AnyProblem

app = typer.Typer(
    help="Online reinforcement learning when parts of the state go missing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(study_app, name="study")
app.add_typer(trial_app, name="trial")
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


Command = Callable[..., None]


def with_settings(command: Command) -> Command:
    """Give a command an option for every declared setting; it gets those that were used as `given`."""
    own = [option for option in signature(command, eval_str=True).parameters.values() if option.name != "given"]
    declared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=_option(name, setting))
        for name, setting in SETTINGS.items()
    ]

    @wraps(command)
    def called(**options: Any) -> None:
        chosen = {name: options.pop(name) for name in SETTINGS}
        command(given={name: value for name, value in chosen.items() if value is not None}, **options)

    options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in own]
    split = next(i for i, option in enumerate(options) if option.name == "method") + 1
    options[split:split] = declared
    called.__dict__ |= {"__signature__": Signature(options)}
    called.__annotations__ = {option.name: option.annotation for option in options}
    return called


def _option(name: str, setting: Setting) -> Any:
    choices = f": {', '.join(setting.choices)}" if setting.choices else ""
    usual = setting.default if setting.usual is None else setting.usual
    own = getattr(DEFAULT, name) if setting.belongs_to(METHODS[DEFAULT.method]) else usual
    shown = str(usual) if own == usual else f"{own}, or {usual} with --method"
    owners = [method.name for method in METHODS.values() if setting.belongs_to(method)]
    whose = f" Only for {', '.join(owners)}." if len(owners) < len(METHODS) else ""
    about = f"{setting.about[0].upper()}{setting.about[1:]}{choices}.{whose}"
    return Annotated[setting.kind | None, typer.Option(f"--{name.replace('_', '-')}", help=about, show_default=shown)]


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
    page = _page_to_write(folder / "report.html" if out is None else out)
    missing = report_store(store, page, study)
    for path in store.damaged:
        typer.echo(f"a damaged file was set aside as {path}", err=True)
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

    from lacuna.study.store import Store
    from lacuna.study.store_comparison import HEADS, compare_stores

    page = None if out is None else _page_to_write(out)
    names = (str(first), str(second))
    stores = [Store.existing(name) for name in names]
    found = compare_stores(*(store.table() for store in stores))
    for path in (path for store in stores for path in store.damaged):
        typer.echo(f"a damaged file was set aside as {path}", err=True)
    for sentence in found.sentences(names):
        typer.echo(sentence)
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


def _page_to_write(path: Path) -> Path:
    if path.suffix not in {".html", ".htm"}:
        raise ValueError(f"out is {path}; its name must end in .html")
    if not path.parent.is_dir():
        raise ValueError(f"out is {path}, but there is no folder {path.parent}")
    return path


@app.command()
@with_settings
def run(
    given: dict[str, Any],
    world: Annotated[
        str,
        typer.Option(
            help="A world, e.g. lake,wind=0.2,stay=true (`lacuna worlds` lists them); a Gymnasium id, e.g. "
            "FrozenLake-v1; or a reference to your own, e.g. mine.worlds:maze,size=5."
        ),
    ] = "lake",
    missingness: Annotated[
        str,
        typer.Option(
            help="A mechanism, e.g. mcar:0.4 (`lacuna worlds` lists them), or a reference to your own, e.g. "
            "mine.mechanisms:by_mood,rate=0.3."
        ),
    ] = "mcar:0.4",
    method: Annotated[
        str | None,
        typer.Option(
            help="A method (`lacuna methods` lists them), or a reference to your own, e.g. mine.agents:Mine,rate=0.5.",
            show_default="the library's default",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of each trial.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Seed of the first trial; trial i uses seed + i.")] = 0,
    trials: Annotated[int, typer.Option(help="How many trials.")] = 5,
    hide_first: Annotated[
        bool, typer.Option("--hide-first", help="Hide parts of the first state of an episode too.")
    ] = False,
    driver: Annotated[str, typer.Option(help="compiled, or stepwise: the plain Python loop.")] = "compiled",
    workers: Annotated[int | None, typer.Option(help="Trials at a time.", show_default="one per core")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per trial, in a list.")] = False,
) -> None:
    """Run one method in one world and show how it does."""
    from lacuna.running.problems import find_problem
    from lacuna.running.trials import MOST_TRIALS, run_trials

    settings = _chosen(method, given)
    whole_number("trials", trials, 1, MOST_TRIALS)
    problem = find_problem(world, missingness, first_observed=not hide_first)
    with progress(f"{settings.method} in {world}, {missingness}", "steps") as show:
        show(total=trials * steps)
        rows = run_trials(
            problem, settings, steps=steps, seeds=range(seed, seed + trials), workers=workers, driver=driver,
            progress=lambda n: show(advance=n),
        )  # fmt: skip
    if as_json:
        what = {"world": world, "missingness": problem.missingness, **settings.as_dict()}
        typer.echo(json.dumps([what | row for row in rows], indent=1))
    else:
        _show_trials(problem, settings, rows)


def _chosen(method: str | None, given: dict[str, Any]) -> AnyMethod:
    from lacuna.learning.own_method import OwnMethod, find_method

    # The default is a setting as a whole; a method that is named starts from nothing of it.
    chosen = DEFAULT if method is None else find_method(method)
    if not isinstance(chosen, OwnMethod):
        return replace(chosen, **given)
    for name, value in given.items():
        written = f"{name.replace('_', '-')} is {value!r}, but {method} is a method of your own"
        raise ValueError(f"{written}; write its parameters after its name: {chosen.use},PARAMETER=VALUE,…")
    return chosen


_FIGURES = {
    "mean_total_reward": "total reward per episode",
    "mean_bad_steps": "bad steps per episode",
    "mean_path_length": "path length",
    "episodes": "episodes completed",
    "open_steps": "steps in the open episode",
    "reward_per_step": "reward per step",
    "reward_per_step_early": "… over the first {early:,} steps",
    "reward_per_step_late": "… over the last fifth",
    "idle_share": "share of idle actions",
    "guessed_right": "hidden components guessed right",
    "weight_on_truth": "pathways on the true state",
    "calibration_error": "calibration error of pathway shares",
    "seconds": "seconds",
}


def _show_trials(problem: AnyProblem, settings: AnyMethod, rows: list[dict[str, Any]]) -> None:
    """Mean and standard error over trials, as a table."""
    from rich.console import Console
    from rich.table import Table

    from lacuna.running.measures import standard_error
    from lacuna.running.problems import Problem
    from lacuna.running.trials import EARLY

    chosen = ", ".join(f"{name} = {value}" for name, value in settings.unusual().items())
    title = (
        f"{settings.method}{f' ({chosen})' if chosen else ''} in {problem.world}, {problem.missingness} "
        f"({problem.mechanism.label}); trials: {len(rows)} of {rows[0]['steps']:,} steps"
    )
    typer.echo(title)
    table = Table()
    for column in ("", "mean", "standard error", "trials"):
        table.add_column(column, justify="left" if not column else "right")
    unused = {"idle_share"} if isinstance(problem, Problem) and problem.mdp.idle is None else set()
    for key, label in _FIGURES.items():
        values = [row[key] for row in rows if row[key] is not None and key not in unused]
        if values:
            error = standard_error(values)
            spread = "" if error is None else f"{error:.3g}"
            table.add_row(
                label.format(early=min(EARLY, rows[0]["steps"])),
                f"{fmean(values):.5g}",
                spread,
                f"{len(values)} of {len(rows)}",
            )
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    undone = sum(row["mean_total_reward"] is None for row in rows)
    if undone:
        typer.echo(f"{undone} of {len(rows)} trials completed no episode; the figures per episode leave them out.")


@app.command()
def methods() -> None:
    """List the methods, and the yardsticks for them: what each acts on and learns from."""
    from rich.console import Console
    from rich.table import Table

    from lacuna.methods.table import YARDSTICKS

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
    from lacuna.bench import measure, show

    whole_number("repeats", repeats, 1, 1000)

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
    """Check the paper's appendix: every statement with its formula, a simulation and a status, on one page."""
    from lacuna.theory.command import run_theory

    workers = checked_workers(workers)
    run_theory(out, workers=workers, effort=effort, seed=seed)


if __name__ == "__main__":
    main()
