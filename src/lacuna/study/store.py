"""The results of studies in a folder: Parquet files, each named after its content. The folder is authoritative.

A file is written under another name, then renamed, so it is complete or absent. Its name is a digest of its bytes, so
damage is detected. Damaged files, and files with values that no run could have left, are set aside. Runs have names
derived from their content: a run that is stored twice counts once.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, suppress
from io import BytesIO
from itertools import chain, count
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lacuna import display
from lacuna.agent.settings import SETTINGS
from lacuna.files import write_whole
from lacuna.spreadsheets import as_csv
from lacuna.study import heartbeats
from lacuna.study.parts import COLUMNS, PartError, no_runs, read_part
from lacuna.study.spec import Study, StudyError
from lacuna.trust import ForeignError
from lacuna.validation import printable
from lacuna.version import __version__

FORMAT = 2
_MARK = "lacuna-store.json"
_STALE = 3600.0

SCHEMA: dict[str, Any] = {name: column.kind for name, column in COLUMNS.items()}
"""The columns of a store and their types.

Columns
-------
id
    Name of the run: a digest of everything that fixes its figures.
results
    Version of the results; it is raised when the same run would give other figures.
world
    Name of the world.
parameters
    Parameters of the world that differ from their defaults, sorted by name, e.g. ``continuing=True, stay=True``.
missingness
    The mechanism as text.
label
    Label of the mechanism: MCAR, MAR or NMAR.
method
    The method or yardstick.
first_observed
    Whether the first state of every episode is fully observed.
source
    Parts of your own: each reference with the first digits of the digest of its source; empty for most runs.
trial
    Number of the trial, which is its seed.
curve_step
    Steps at which the curve was noted.
curve_episodes
    Episodes completed up to each of these steps.
curve_reward
    Total reward of these episodes.
curve_bad
    Bad steps of these episodes.
curve_path
    Steps of these episodes.
curve_idle
    Idle actions up to each of these steps.
curve_total
    Total reward of all steps up to each of these.
host
    Machine that computed the run; left out of an export, as is ``seconds``.
lacuna
    Version that computed the run; left out of an export.
"""

UNREPEATABLE = ("seconds", "host", "lacuna")
"""Columns that describe the machine, not the run; an export leaves them out."""

SORTED_BY = (
    "world", "parameters", "missingness", "method", *sorted(SETTINGS, key=lambda name: SETTINGS[name].tuned),
    "first_observed", "source", "steps", "trial", "id",
)  # fmt: skip
"""Columns that define a method come before tuned ones."""


# What is raised for notes that are no JSON, or hold something else than a study.
_NO_NOTE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


class StoreError(ValueError):
    """The folder cannot be used as a store; nothing in it was changed."""


class SetAside(NamedTuple):
    """A damaged file: where it lies now, and what is wrong with it."""

    path: Path
    why: str

    def __str__(self) -> str:
        return printable(f"{self.path}: {self.why}")


class _Mark(BaseModel):
    """The file that marks a folder as a store."""

    model_config = ConfigDict(strict=True, frozen=True)

    format: int = Field(ge=1, le=10**6)


class Store:
    """A folder of results.

    Parameters
    ----------
    path
        The folder; created if it does not exist. A folder with other content, or in another format, is refused.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._files: dict[str, list[str]] = {}
        self._done: set[str] = set()
        self._touched = -1
        self.damaged: list[SetAside] = []
        self.unread: dict[Path, str] = {}
        """Files that were left alone; with the reason, if one holds a study."""
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path} is not a folder")
        self.path.mkdir(parents=True, exist_ok=True)
        mark = self.path / _MARK
        if not mark.exists():
            # Another process may be making the same store just now: its unfinished mark is nothing foreign.
            if any(not path.name.startswith(f".{_MARK}") and path.name != _MARK for path in self.path.iterdir()):
                raise StoreError(f"{self.path} holds other things than results of lacuna; name a new or empty folder")
            write_whole(mark, json.dumps({"format": FORMAT, "lacuna": __version__}).encode())
        try:
            made = _Mark.model_validate_json(heartbeats.read_plain(mark)).format
        except (OSError, ValidationError) as error:
            raise StoreError(f"{mark} is damaged; restore it from another store or remove it by hand") from error
        if made != FORMAT:
            age = "a newer" if made > FORMAT else "an older"
            raise StoreError(f"{self.path} was made by {age} lacuna (format {made}; this one reads format {FORMAT})")
        for folder in ("parts", "studies", "running", "damaged"):
            try:
                (self.path / folder).mkdir(exist_ok=True)
            except FileExistsError as error:
                raise StoreError(f"{self.path / folder} is not a folder, and a store needs one") from error
        self._tidy()

    def _tidy(self) -> None:
        """Remove files that were left unfinished by killed processes; a live one needs seconds at most."""
        for left in self.path.rglob(".*.part"):
            with suppress(FileNotFoundError):
                if left.is_file() and time.time() - left.stat().st_mtime > _STALE:
                    left.unlink()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def _repr_html_(self) -> str:
        rows = [(study.spec.name, len(study), len(study.spec.methods)) for study in self.studies()]
        about = display.facts([("runs done", len(self.done())), ("damaged files", len(self.damaged) or None)])
        return display.card(repr(self), about, display.table(["study", "runs", "methods"], rows))

    @classmethod
    def existing(cls, path: str | Path) -> Store:
        """Open an existing store."""
        if not (Path(path) / _MARK).exists():
            raise StoreError(f"{path} is not a store of results: it has no {_MARK}")
        return cls(path)

    def add_study(self, study: Study) -> None:
        """Record the study that is run into the store, with versions and machine."""
        note = {
            **study.to_note(),
            "runs": len(study),
            "lacuna": __version__,
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "first_started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        path = self.path / "studies" / f"{study.id}.json"
        if self._noted(path) != study:
            write_whole(path, json.dumps(note, indent=1).encode())

    @staticmethod
    def _noted(path: Path) -> Study | None:
        """The study as it was last recorded: it stands for something else when a source was edited."""
        with suppress(*_NO_NOTE):
            note = json.loads(heartbeats.read_plain(path))
            return Study.from_note(note, path.name) if "expanded" in note else None
        return None

    def studies(self) -> list[Study]:
        """The studies that were run into the store, in order of time, as far as this version can read them."""
        found = []
        for path in sorted((self.path / "studies").glob("*.json")):
            try:
                note = json.loads(heartbeats.read_plain(path))
                found.append((str(note.get("first_started", "")), Study.from_note(note, path.name)))
            except _NO_NOTE as error:
                said = str(error).removeprefix(f"{path.name}: ") if isinstance(error, StudyError | ForeignError) else ""
                self.unread[path] = said.partition("\n")[0]
        return [study for _, study in sorted(found, key=itemgetter(0))]

    def left_alone(self) -> list[str]:
        """Say which files could not be read."""
        return [
            f"left alone, as it cannot be read: {path}{f' ({reason})' if reason else ''}"
            for path, reason in self.unread.items()
        ]

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Store finished runs: one new file, whole or not at all."""
        if not rows:
            return
        buffer = BytesIO()
        as_table(rows).write_parquet(buffer, compression="zstd")
        self.write_part(buffer.getvalue(), [row["id"] for row in rows])

    def write_part(self, content: bytes, ids: Iterable[str]) -> None:
        """Store the content of a Parquet file."""
        name = f"{hashlib.sha256(content).hexdigest()[:24]}.parquet"
        write_whole(self.path / "parts" / name, content)
        self._files[name] = list(ids)
        self._done.update(self._files[name])

    def done(self, *, afresh: bool = False) -> AbstractSet[str]:
        """Names of all runs in the store, including those of other processes.

        Only new files are read, and runs whose file is gone do not count. `afresh` reads every file again, to detect
        new damage.
        """
        # A folder that was not touched since holds the same files; listing thousands takes longer than a short run.
        touched = (self.path / "parts").stat().st_mtime_ns
        if touched == self._touched and not afresh:
            return self._done
        self._touched = touched
        there = {path.name: path for path in self._parts()}
        if afresh:
            self._files = {}
        if afresh or not self._files.keys() <= there.keys():
            self._files = {name: ids for name, ids in self._files.items() if name in there}
            self._done = {run for ids in self._files.values() for run in ids}
        for name in sorted(there.keys() - self._files.keys()):
            table = self._read(there[name])
            if table is not None:
                self._files[name] = table["id"].to_list()
                self._done.update(self._files[name])
        return self._done

    def table(self, *, without: Iterable[str] = ()) -> pl.DataFrame:
        """All runs of the current results version, each once, in an order that depends only on the runs.

        Columns named in `without`, such as long curves, take no memory.
        """
        nothing = no_runs().drop(without)
        tables = [table.drop(without) for path in self._parts() if (table := self._read(path)) is not None]
        runs = pl.concat([nothing, *tables])
        return runs.unique("id", keep="any").sort(SORTED_BY, nulls_last=False)

    def _parts(self) -> list[Path]:
        return sorted((self.path / "parts").glob("*.parquet"))

    def _read(self, path: Path) -> pl.DataFrame | None:
        """The runs in a file; None if it is damaged: then it is set aside, and its runs count as not done."""
        try:
            content = heartbeats.read_plain(path)
            if hashlib.sha256(content).hexdigest()[:24] != path.stem:
                raise PartError("its name is not the digest of its content")
            return read_part(content)
        except FileNotFoundError:
            # Another process set it aside first, or it is a folder or leads nowhere.
            self._set_aside(path, "it is no regular file")
        except PartError as error:
            self._set_aside(path, str(error))
        return None

    def _set_aside(self, path: Path, why: str) -> None:
        """Move a path, if it is there, to the damaged files, under a free name."""
        names = chain([path.name], (f"{path.name}.{i}" for i in count(2)))
        aside = next(free for name in names if not os.path.lexists(free := self.path / "damaged" / name))
        with suppress(FileNotFoundError):
            path.replace(aside)
            self.damaged.append(SetAside(aside, why))

    def reporting(self) -> AbstractContextManager[Callable[[dict[str, Any]], None]]:
        """Report the progress of this process to `at_work`, on any machine."""
        return heartbeats.reporting(self.path / "running")

    def at_work(self) -> dict[str, heartbeats.Heartbeat]:
        """The processes that fill the store, with their reports."""
        found = heartbeats.at_work(self.path / "running")
        self.unread |= dict.fromkeys(found.unread, "")
        return found.processes


def as_table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Convert the rows of runs to a table with the columns of a store."""
    columns = {name: [row[name] for row in rows] for name in SCHEMA}
    for name, values in columns.items():
        # polars takes arrays as they are, but not beside a null.
        if any(value is None for value in values):
            columns[name] = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    return pl.DataFrame(columns, schema=SCHEMA)


def export(table: pl.DataFrame, path: Path) -> None:
    """Write one sorted CSV or Parquet file, by the ending of its name, without the columns that tell of machines.

    Examples
    --------
    >>> export(pl.DataFrame(schema=SCHEMA), Path("runs.csv"))
    >>> Path("runs.csv").read_text().split(",")[:2]
    ['id', 'results']
    """
    table = table.drop(UNREPEATABLE)
    if path.suffix == ".parquet":
        buffer = BytesIO()
        table.write_parquet(buffer, compression="zstd")
        write_whole(path, buffer.getvalue())
    elif path.suffix == ".csv":
        write_whole(path, as_csv(table))
    else:
        raise StoreError(f"{path} must end in .csv or .parquet")
