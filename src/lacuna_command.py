"""The first lines of the `lacuna` command, which answer Ctrl-C while the package itself is being imported."""

from __future__ import annotations

import os
import signal
from contextlib import suppress


def _stop(*_: object) -> None:
    # Nothing was begun that could be put in order; and an exception does not always survive an import.
    with suppress(OSError):
        os.write(2, b"lacuna: stopped\n")
    os._exit(130)


def main() -> None:
    """Import the command and run it."""
    signal.signal(signal.SIGINT, _stop)
    from lacuna.cli.main import main as run  # noqa: PLC0415  the handler comes first

    run()
