"""Export a trial: the decisions, a codebook, the log, and tables for analysis tools."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from lacuna.files import read_regular, write_whole
from lacuna.spreadsheets import as_csv
from lacuna.trial.log.chained_log import Entry, read_log, write_log
from lacuna.trial.log.codebook import FILES, codebook, codebook_text
from lacuna.trial.log.decision_table import table_of
from lacuna.trial.log.decisions import History
from lacuna.trial.log.events import file_of
from lacuna.trial.log.exchange import obp_arrays, wcls_table
from lacuna.validation import shown

_MOST_OF_CODEBOOK = 1 << 26
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%.3fZ"


def export(
    entries: Iterable[Entry], folder: str | os.PathLike[str], *, wcls: bool = False, obp: bool = False,
    treatment: str | None = None,
) -> list[Path]:  # fmt: skip
    """Export a trial to a folder, and return the files written; `codebook.json` describes them.

    Only the log is needed. Participants appear by their pseudonyms only. The folder must be new, empty, or hold an
    earlier export of the same trial. That export is replaced, and its other files are removed, so that all files show
    the same moment.

    Parameters
    ----------
    entries
        The log from event 0 on; the chain is verified on the way.
    folder
        The folder to write to.
    wcls
        Whether to write the columns for weighted and centred least squares.
    obp
        Whether to write the arrays of the Open Bandit Pipeline.
    treatment
        The action that counts as treatment for `wcls`; a trial of two actions needs none.
    """
    log = list(entries)
    file = file_of(log)
    if treatment is not None and not wcls:
        raise ValueError(f"treatment is {shown(treatment)}, but only the export for wcls has a treatment")
    history = History(log, file)
    table = table_of(history)
    content = {"decisions.parquet": _parquet(table), "decisions.csv": as_csv(table, time_format=_TIME_FORMAT)}
    if wcls:
        weighted = wcls_table(table, file, treatment)
        content |= {"wcls.parquet": _parquet(weighted), "wcls.csv": as_csv(weighted, time_format=_TIME_FORMAT)}
    if obp:
        content["obp.npz"] = _npz(obp_arrays(table, file))
    begin = log[0].chain.hex()
    names = {"codebook.json", "codebook.md", "log.jsonl", *content}
    book = codebook(history, table, begin, names, treatment)
    # The codebook comes first: it identifies the trial of the folder, even if the export is interrupted.
    content = {"codebook.json": _json(book), "codebook.md": codebook_text(book).encode()} | content
    where = Path(folder)
    _check_folder(where, begin)
    where.mkdir(parents=True, exist_ok=True)
    for name, one in content.items():
        write_whole(where / name, one)
    write_log(where / "log.jsonl", log)
    for name in FILES:
        if name not in names:
            (where / name).unlink(missing_ok=True)
    return [where / name for name in FILES if name in names]


def _check_folder(folder: Path, begin: str) -> None:
    """Refuse a folder that holds anything but an export of this trial."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; name a new one for the export")
    found = [path for path in sorted(folder.iterdir()) if not _is_unfinished(path)]
    for path in found:
        if path.name not in FILES or path.is_symlink() or not path.is_file():
            raise ValueError(f"{folder} holds {shown(path.name)}, which is no file of an export; name a new folder")
    if found and _begin_of(found) != begin:
        raise ValueError(f"{folder} holds the export of another trial; name a new folder")


def _is_unfinished(path: Path) -> bool:
    """Whether a file is left over from an interrupted export."""
    return path.suffix == ".part" and any(path.name.startswith(f".{name}.") for name in FILES)


def _begin_of(found: list[Path]) -> str | None:
    """The trial of the codebook in a folder, or of the log if nothing else is there; None if it cannot be read."""
    try:
        if [path.name for path in found] == ["log.jsonl"]:
            return next(read_log(found[0])).chain.hex()
        book = json.loads(read_regular(found[0].parent / "codebook.json", _MOST_OF_CODEBOOK))
    except (OSError, ValueError, RecursionError):
        return None
    begin = book.get("begin") if isinstance(book, dict) else None
    return begin if isinstance(begin, str) else None


def _parquet(table: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()


def _npz(arrays: dict[str, Any]) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _json(book: dict[str, Any]) -> bytes:
    return (json.dumps(book, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()
