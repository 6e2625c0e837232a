"""The `lacuna replay` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lacuna.cli.options import (
    HideFirstOption,
    MethodOption,
    MissingnessOption,
    WorldOption,
    chosen_method,
    command_with_settings,
    page_to_write,
)

_WORLD, _HIDING = "lake", "mcar:0.4"


@command_with_settings
def replay(
    given: dict[str, Any],
    world: WorldOption = _WORLD,
    missingness: MissingnessOption = _HIDING,
    method: MethodOption = None,
    against: Annotated[
        list[str] | None, typer.Option(help="Another method beside it, e.g. last-observed; may be given several times.")
    ] = None,
    at: Annotated[str, typer.Option(help="The steps of learning from which to record.")] = "0,1000,5000,20000,50000",
    steps: Annotated[int, typer.Option(help="How many steps to record at each stage.")] = 300,
    seed: Annotated[int, typer.Option(help="Seed of the world, the masks and the agents.")] = 0,
    hide_first: HideFirstOption = False,
    out: Annotated[Path | None, typer.Option(help="The page to write, an HTML file.", show_default=False)] = None,
    max_size: Annotated[str, typer.Option(help="The largest size of the page.")] = "5MB",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    check: Annotated[
        Path | None,
        typer.Option(
            help="Instead, run this page again from its header and compare every bit. If it was recorded in a world of "
            "your own, name it with --world; a page cannot choose what is imported."
        ),
    ] = None,
) -> None:
    """Record a method in a world, and write a page to watch it."""
    if check is not None:
        from lacuna.report.verifying import check_page

        # The defaults are lacuna's own, which a page may name itself.
        mine = [None if said == usual else said for said, usual in ((world, _WORLD), (missingness, _HIDING))]
        typer.echo(check_page(check, *mine))
        return
    from lacuna.report.replay import bytes_of
    from lacuna.report.replay import replay as record

    if out is None:
        raise ValueError("out is missing; name the page to write, e.g. --out replay.html")
    page_to_write(out)
    if out.exists() and not overwrite:
        raise ValueError(f"{out} exists already; choose another name, or say --overwrite")
    bytes_of(max_size)
    methods: list[Any] = [chosen_method(method, given), *(against or [])]
    found = record(world, missingness, methods, at=stages_of(at), steps=steps, seed=seed, first_observed=not hide_first)
    size = found.save(out, max_size=max_size, overwrite=overwrite)
    typer.echo(f"Open {out.resolve()} ({size / 1000:,.0f} kB)")


def stages_of(text: str) -> list[int]:
    """Read steps from the text of the option.

    Examples
    --------
    >>> stages_of("0, 1000,5000")
    [0, 1000, 5000]
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"at is {text!r}; write steps with commas between them, e.g. 0,1000,5000") from None
