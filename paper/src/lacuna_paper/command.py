"""The commands `lacuna paper`, `lacuna theory` and `lacuna explain`. Heavy imports happen inside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lacuna.study import Progress
    from lacuna_paper.reproduce import Watch
    from lacuna_paper.verdicts import Finding


def paper(
    out: Annotated[Path, typer.Option(help="The folder to write to; stored runs are not repeated.")],
    full: Annotated[bool, typer.Option("--full", help="All 34,560 runs, instead of a part of them.")] = False,
    continuing: Annotated[
        bool,
        typer.Option("--continuing", help="Also the reading in which no episode ends."),
    ] = False,
    honest: Annotated[
        bool,
        typer.Option(
            "--honest",
            help="Also choose settings on 8 draws of five trials each, and report each choice on 20 fresh trials.",
        ),
    ] = False,
    frontier: Annotated[
        bool, typer.Option("--frontier", help="Also every method in every world; with --full about an hour more.")
    ] = False,
    workers: Annotated[int | None, typer.Option(help="Runs at a time.", show_default="one per core")] = None,
) -> None:
    """Reproduce the paper: run its studies, judge its claims, draw its figures, write one page. Stop it at any time."""
    from lacuna.run import threads
    from lacuna_paper.reproduce import Request, RunsFailedError, gather, write_up

    workers = threads(workers)
    if out.exists() and not out.is_dir():
        raise ValueError(f"out is {out}, which is not a folder")
    try:
        with _watching() as watch:
            gathered = gather(out, Request(full, continuing, honest, frontier), workers=workers, watch=watch)
    except RunsFailedError as error:
        typer.echo(f"lacuna: {error}", err=True)
        raise typer.Exit(1) from error
    about = gathered.about
    made = f"{about['runs_made_now']:,} of them now" if about["runs_made_now"] else "all of them before"
    runs = f"{about['runs']:,} runs of up to {about['steps']:,} steps"
    typer.echo(f"{runs}, {made}; {about['seconds']:.0f} seconds", err=True)
    typer.echo("judging the claims, drawing the figures …", err=True)
    findings, files = write_up(gathered)
    typer.echo(summary(findings))
    typer.echo()
    for path in files[:-1]:
        typer.echo(f"Wrote {path}")
    typer.echo(f"Open {files[-1].resolve()}")


def theory(
    out: Annotated[
        Path, typer.Option(help="The folder to write the page, its data and its figures to.", show_default=False)
    ],
    workers: Annotated[int | None, typer.Option(help="Statements at a time.", show_default="one per core")] = None,
    effort: Annotated[float, typer.Option(help="Size of the simulations; below 1 is faster and coarser.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulations.")] = 0,
) -> None:
    """Check the paper's appendix: every statement with its formula, a simulation and a status, on one page."""
    from lacuna.run import threads
    from lacuna_paper.theory.command import run_theory

    workers = threads(workers)
    run_theory(out, workers=workers, effort=effort, seed=seed)


def explain(
    out: Annotated[Path, typer.Option(help="The page to write or replace, an HTML file.", show_default=False)],
) -> None:
    """Write the idea as a story of eight scenes on one page, with recordings of real runs."""
    from lacuna.cli import page_to_write
    from lacuna.report import write_whole
    from lacuna_paper.story.page import story_page

    page_to_write(out)
    content = story_page().encode()
    write_whole(out, content)
    typer.echo(f"Open {out.resolve()} ({len(content) / 1000:,.0f} kB)")


def summary(findings: Sequence[Finding]) -> str:
    """The verdicts as a table: a line for each claim, a column for each reading and way of choosing settings."""
    ways = list(dict.fromkeys(finding.way for finding in findings))
    names = list(dict.fromkeys(finding.claim for finding in findings))
    verdicts = {(finding.claim, *finding.way): finding.verdict for finding in findings}
    heads = [f"{reading}, {selection}" for reading, selection in ways]
    wide = max(map(len, names), default=0)
    widths = [max(len(head), len("not supported")) for head in heads]

    def line(first: str, cells: Sequence[str]) -> str:
        padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"{first:{wide}}  {padded}".rstrip()

    lines = [line("", heads), *(line(name, [verdicts[name, *way] for way in ways]) for name in names)]
    for head, way in zip(heads, ways, strict=True):
        counts = Counter(verdicts[name, *way] for name in names)
        lines.append(f"{head}: {', '.join(f'{n} {verdict}' for verdict, n in sorted(counts.items()))}")
    return "\n".join(lines)


@contextmanager
def _watching() -> Iterator[Watch]:
    """Announce the start; on a terminal, show the progress."""
    from lacuna.study import shown_on_terminal

    with ExitStack() as shown:
        show: dict[str, Callable[[Progress], None]] = {}

        def watch(what: str, progress: Progress) -> None:
            if what not in show:
                shown.close()
                show.clear()
                typer.echo(f"{what}: {progress.total:,} runs, {progress.total - progress.done:,} to make", err=True)
                show[what] = shown.enter_context(shown_on_terminal(what))
            show[what](progress)

        yield watch
