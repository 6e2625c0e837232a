"""The progress of a study on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lacuna.study.runner import Progress
from lacuna.terminal import progress


@contextmanager
def shown_on_terminal(name: str) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of a study on a terminal, nothing elsewhere."""
    with progress(name, "runs") as show:

        def watch(now: Progress) -> None:
            failed = f", {now.failed} failed" if now.failed else ""
            note = f"{now.steps_per_second / 1e6:.2f} M steps/s{failed}"
            show(total=now.total, completed=now.done, note=note)

        yield watch
