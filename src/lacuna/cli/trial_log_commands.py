"""The `lacuna trial` commands about the whole log. Heavy imports happen inside the commands that need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lacuna.files import read_text
from lacuna.quantities import counted
from lacuna.terminal import progress

if TYPE_CHECKING:
    from lacuna.trial.audits.upgrade import Watch
    from lacuna.trial.log.chained_log import Entry

MOST_OF_ARGUMENT = 65_536
"""Most bytes of a file that stands for an argument, as `@FILE`."""

StoreFile = Annotated[str, typer.Argument(help="The store of the trial, or its trial file.", show_default=False)]
Reason = Annotated[str | None, typer.Option(help="Why, in one line; it is logged.")]


def status(store: StoreFile) -> None:
    """Show the state of a trial; works while it runs.

    Example: lacuna trial status walk.db
    """
    from lacuna.trial.log.events import file_of
    from lacuna.trial.log.summary import summary, summary_text

    entries = _entries(store)
    typer.echo(summary_text(summary(entries, file_of(entries))))


def replay(
    store: Annotated[str, typer.Argument(help="The store, the trial file or an exported log.", show_default=False)],
    draws_key: Annotated[Path | None, typer.Option(help="The draws key, which a log needs: lacuna trial key.")] = None,
    from_snapshots: Annotated[
        bool, typer.Option("--from-snapshots", help="Also replay from every snapshot in the store.")
    ] = False,
) -> None:
    """Replay a trial: exit code 0 if everything is equal, 1 if something differs, 2 if the log cannot be read.

    Example: lacuna trial replay walk.db; lacuna trial replay log.jsonl --draws-key walk.key
    """
    from lacuna.trial.audits.replays import audit
    from lacuna.trial.engine.replay import ReplayError
    from lacuna.trial.log.chained_log import LogError

    try:
        with _watch("replay") as watch:
            found = audit(store, draws_key, from_snapshots=from_snapshots, watch=watch)
    except (ReplayError, LogError) as error:
        if error.seq is None:
            raise
        typer.echo(f"lacuna: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo(str(found))


def upgrade(
    store: StoreFile,
    accept: Annotated[
        bool, typer.Option("--accept", help="Continue although this version computes something else; needs --reason.")
    ] = False,
    reason: Reason = None,
) -> None:
    """Continue a trial of another version with this one.

    Example: lacuna trial upgrade walk.db
    """
    from lacuna.trial.audits.upgrade import upgrade as upgraded

    with _watch("upgrade") as watch:
        found = upgraded(store, accept=accept, reason=reason, watch=watch)
    if found.seq is None:
        typer.echo("nothing to do: this version has run the trial last")
    elif found.difference is None:
        typer.echo(f"equal: {counted(found.replayed, 'event')} computed again; the trial goes on with this version")
    else:
        typer.echo(f"the state was carried over at event {found.seq}; the first difference was: {found.difference}")


def export(
    store: StoreFile,
    folder: Annotated[Path, typer.Argument(help="The folder to write to.", show_default=False)],
    wcls: Annotated[bool, typer.Option("--wcls", help="Also a table for weighted and centred least squares.")] = False,
    obp: Annotated[bool, typer.Option("--obp", help="Also arrays for the Open Bandit Pipeline.")] = False,
    treatment: Annotated[str | None, typer.Option(help="For --wcls: the action that counts as treatment.")] = None,
    log: Annotated[bool, typer.Option("--log", help="Only log.jsonl, which replay and init --from read.")] = False,
) -> None:
    """Write the decisions, a codebook and the log to a folder; works while the trial runs.

    Example: lacuna trial export walk.db out --wcls
    """
    if log and (wcls or obp or treatment is not None):
        raise ValueError("--log writes the log only, so it goes with neither --wcls nor --obp")
    entries = _entries(store)
    if log:
        _write_log(folder, entries)
    else:
        from lacuna.trial.log.export import export as write

        write(entries, folder, wcls=wcls, obp=obp, treatment=treatment)
    typer.echo(f"{counted(len(entries), 'event')} exported to {folder}")


def _write_log(folder: Path, entries: list[Entry]) -> None:
    """Write the log, and replace one of the same trial only."""
    from lacuna.trial.log.chained_log import read_log, write_log

    path = folder / "log.jsonl"
    if path.exists() and next(read_log(path)).chain != entries[0].chain:
        raise ValueError(f"{path} is the log of another trial; name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    write_log(path, entries)


def redact(
    store: StoreFile,
    events: Annotated[list[int] | None, typer.Argument(help="Numbers of events.", show_default=False)] = None,
    participant: Annotated[
        str | None, typer.Option(help="Every event of this participant; @file reads the identifier from a file.")
    ] = None,
    pseudonym: Annotated[str | None, typer.Option(help="The same by the pseudonym.")] = None,
    reason: Reason = None,
) -> None:
    """Erase a participant from the log; what was learned stays.

    Pseudonyms and coded values remain in the state of the trial, raw contexts do not. Exported files and backups are
    not changed.

    Example: lacuna trial redact walk.db --participant @maria.txt --reason "request of 3 May"
    """
    from lacuna.trial.audits.redaction import redact as erase

    who = None if participant is None else text_of(participant)
    found = erase(store, events or (), participant=who, pseudonym=pseudonym, reason=reason or "")
    also = f", and {counted(found.sources, 'copy')} of earlier logs" if found.sources else ""
    typer.echo(f"{counted(len(found.seqs), 'event')} erased{also}" + ("" if found.seqs else "; it was done before"))


def key(
    store: StoreFile,
    out: Annotated[Path, typer.Argument(help="The file to write, which must not be there.", show_default=False)],
) -> None:
    """Write the draws key for auditors; it does not reveal who a participant is.

    It predicts every draw, so hand it over only after the trial.

    Example: lacuna trial key walk.db walk.key
    """
    from lacuna.trial.engine.recovery import open_store, read_secret

    opened, path, _ = open_store(store, write=False)
    try:
        read_secret(path, opened).draws_key.write(out)
    finally:
        opened.close()
    typer.echo(f"the draws key is in {out}")


def text_of(value: str) -> str:
    """The value of an argument: the text itself, or after an @ the content of a file."""
    if not value.startswith("@") or value.startswith("@@"):
        return value.removeprefix("@")
    return read_text(value[1:], MOST_OF_ARGUMENT).strip()


def _entries(store: str) -> list[Entry]:
    """All events of a store, verified; it needs no lock."""
    from lacuna.trial.engine.recovery import open_store
    from lacuna.trial.log.chained_log import verify

    opened, _, _ = open_store(store, write=False)
    try:
        return list(verify(opened.read(), head=opened.head))
    finally:
        opened.close()


@contextmanager
def _watch(what: str) -> Iterator[Watch]:
    """Show progress on a terminal, nothing elsewhere."""
    with progress(what, "events") as show:
        yield lambda total, done: show(total=total, completed=done)
