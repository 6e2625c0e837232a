"""The `lacuna explain` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lacuna.files import write_whole


def explain(
    out: Annotated[Path, typer.Option(help="The page to write or replace, an HTML file.", show_default=False)],
) -> None:
    """Write the idea as a story of eight scenes on one page, with recordings of real runs."""
    if out.suffix not in {".html", ".htm"}:
        raise ValueError(f"out is {out}; its name must end in .html")
    if not out.parent.is_dir():
        raise ValueError(f"out is {out}, but there is no folder {out.parent}")
    from lacuna_paper.story.page import story_page

    content = story_page().encode()
    write_whole(out, content)
    typer.echo(f"Open {out.resolve()} ({len(content) / 1000:,.0f} kB)")
