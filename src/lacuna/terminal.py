"""Commands on a terminal: progress, Ctrl-C, closed streams, narrow encodings, errors in one sentence."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any

import typer

from lacuna.validation import extras_named, printable

REFUSED, STOPPED = 2, 130
"""Exit codes: of a command that could not do what was asked, and of one that Ctrl-C ended."""

# What typer raises for words that make no sense; its module for it differs between versions.
_UsageError: Any = typer.BadParameter.__mro__[1]


class _Stopped(BaseException):
    """Ctrl-C, under a name that no library on the way catches."""


class _UnheardError(Exception):
    """Nobody reads what is printed."""


def exit_code(command: Callable[[], int | None]) -> int:
    """Run a command and return its exit code; every error is reported in one sentence, never as a traceback."""
    _mend_streams()
    try:
        with _stoppable(), extras_named():
            return _run(command)
    except _Stopped:
        _say("stopped; a study keeps what it has done, and the same command goes on")
        return STOPPED
    except _UsageError as error:
        message = " ".join(error.format_message().split()).rstrip(".")
        # A command that needs a word after it has shown its help, and there is nothing to add.
        if message:
            _say(f"{message}; see {error.ctx.command_path} --help" if error.ctx else message)
    except _UnheardError:
        _say("standard output is closed, so there is nowhere to print to")
    except MemoryError:
        _say("there is not enough memory for this")
    except (ValueError, TypeError, OSError, ArithmeticError) as error:
        _say(str(error))
    _drop_what_cannot_be_printed()
    return REFUSED


def _run(command: Callable[[], int | None]) -> int:
    stdout = sys.stdout
    if stdout is None:
        raise _UnheardError
    try:
        code = command()
        stdout.flush()
    except BrokenPipeError as error:
        raise _UnheardError from error
    except SystemExit as stop:
        # This is how typer and rich answer a broken pipe.
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        sys.stdout = stdout
        raise _UnheardError from stop
    return code or 0


def _say(sentence: str) -> None:
    # What a file is called must not steer the terminal.
    plain = "\n".join(map(printable, sentence.split("\n")))
    with suppress(OSError):
        typer.echo(f"lacuna: {plain}", err=True)


def shell_word(text: object) -> str:
    r"""Write a text, such as the name of a file, as one word of a shell, in signs that every encoding has.

    Examples
    --------
    >>> print(shell_word("my results"), shell_word(b"caf\xe9".decode(errors="surrogateescape")))
    'my results' $'caf\351'
    """
    word = str(text)
    if word.isprintable():
        return shlex.quote(word)
    signs = (
        sign if sign.isprintable() and sign not in "\\'" else "".join(f"\\{byte:03o}" for byte in os.fsencode(sign))
        for sign in word
    )
    return f"$'{''.join(signs)}'"


def _mend_streams() -> None:
    """Let no file that is opened take the place of a closed stream, and print what an encoding lacks as ``?``."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    for stream, errors in ((sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)


def _drop_what_cannot_be_printed() -> None:
    """Empty the buffer of standard output; Python would complain of it at the very end."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let Ctrl-C end what runs inside, wherever it is: also within imports and calls that swallow exceptions."""
    heard = False

    def stop(*_: object) -> None:
        nonlocal heard
        heard = True
        raise _Stopped

    def not_raised(told: sys.UnraisableHookArgs) -> None:
        if isinstance(told.exc_value, _Stopped):
            # Again in a moment: raised here, it would be lost here.
            signal.setitimer(signal.ITIMER_REAL, 0.05)
        else:
            hook(told)

    handler, alarm, hook = signal.signal(signal.SIGINT, stop), signal.signal(signal.SIGALRM, stop), sys.unraisablehook
    sys.unraisablehook = not_raised
    try:
        yield
    except Exception as error:
        # A module that is written in C may say that an import failed, whatever the reason was.
        if heard:
            raise _Stopped from error
        raise
    finally:
        # From here on a second Ctrl-C ends the process at once.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL if heard else handler)
        signal.signal(signal.SIGALRM, alarm)
        sys.unraisablehook = hook


@contextmanager
def progress(what: str, unit: str) -> Iterator[Callable[..., None]]:
    """Show how far something is: a bar on a terminal, nothing elsewhere.

    Gives a function that takes any of ``total``, ``completed``, ``advance`` (numbers of units) and ``note`` (a text).

    Examples
    --------
    >>> with progress("sums", "rows") as show:
    ...     show(total=3)
    ...     for row in range(3):
    ...         show(advance=1)
    """
    if not sys.stderr.isatty():
        yield lambda **_: None
        return
    from rich.console import Console  # noqa: PLC0415  only needed on a terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, note="")
        yield lambda **state: bar.update(task, **state)
