"""The progress of a study on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lacuna.study.runner import Progress
from lacuna.terminal import progress


@contextmanager
def shown_on_terminal(name: str) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of a study on a terminal, nothing elsewhere.

    Examples
    --------
    >>> from lacuna import Local, Store, Study
    >>> from lacuna.study import run_studies
    >>> study = Study.from_data({
    ...     "name": "short", "steps": 50, "trials": 2, "missingness": ["mcar:0.2"],
    ...     "worlds": [{"name": "corridor"}], "methods": [{"name": "last-observed"}],
    ... })
    >>> with shown_on_terminal("short") as watch:
    ...     run_studies([study], Store("results"), Local(1), watch=watch).done
    2
    """
    with progress(name, "runs") as show:

        def watch(now: Progress) -> None:
            failed = f", {now.failed} failed" if now.failed else ""
            note = f"{now.steps_per_second / 1e6:.2f} M steps/s{failed}"
            show(total=now.total, completed=now.done, note=note)

        yield watch
