"""The results of studies in a folder: Parquet files, each named after its content. The folder is authoritative.

A file is written under another name, then renamed, so it is complete or absent. Its name is a digest of its bytes, so
damage is detected, and damaged files are set aside. Runs have names derived from their content: a run that is stored
twice counts once.
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
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lacuna import display
from lacuna.files import write_whole
from lacuna.methods.settings import SETTINGS
from lacuna.study import heartbeats
from lacuna.study.spec import Study, StudyError
from lacuna.trust import ForeignError
from lacuna.version import RESULTS_VERSION, __version__

FORMAT = 2
_MARK = "lacuna-store.json"
_STALE = 3600.0

_KINDS = {int: pl.Int64, float: pl.Float64, str: pl.String}

SCHEMA: dict[str, Any] = {
    "id": pl.String, "results": pl.Int64,
    "world": pl.String, "parameters": pl.String,
    "missingness": pl.String, "label": pl.String, "method": pl.String,
    **{name: _KINDS[setting.kind] for name, setting in SETTINGS.items()},
    "first_observed": pl.Boolean, "source": pl.String, "steps": pl.Int64, "trial": pl.Int64,
    "mean_total_reward": pl.Float64, "mean_bad_steps": pl.Float64, "mean_path_length": pl.Float64,
    "episodes": pl.Int64, "reward_per_step": pl.Float64, "reward_per_step_early": pl.Float64,
    "reward_per_step_late": pl.Float64, "idle_share": pl.Float64, "hidden_shares": pl.List(pl.Float64),
    "open_steps": pl.Int64, "open_reward": pl.Float64, "open_bad_steps": pl.Int64,
    "cut_episodes": pl.Int64, "cut_steps": pl.Int64, "cut_reward": pl.Float64, "cut_bad_steps": pl.Int64,
    "guessed_right": pl.Float64,
    "weight_on_truth": pl.Float64, "calibration_error": pl.Float64,
    "curve_step": pl.List(pl.Int64), "curve_episodes": pl.List(pl.Float64), "curve_reward": pl.List(pl.Float64),
    "curve_bad": pl.List(pl.Float64), "curve_path": pl.List(pl.Float64), "curve_idle": pl.List(pl.Float64),
    "curve_total": pl.List(pl.Float64),
    "seconds": pl.Float64, "host": pl.String, "lacuna": pl.String,
}  # fmt: skip
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

_USUAL: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items()} | {"source": ""}
"""The values of a run in columns that were added after its file was written."""

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
        self.damaged: list[Path] = []
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

        Only new files are read, and runs whose file is gone do not count. `afresh` reads every file again, completely,
        to detect new damage.
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
            table = self._read(there[name], whole=afresh)
            if table is not None:
                self._files[name] = table["id"].to_list()
                self._done.update(self._files[name])
        return self._done

    def table(self) -> pl.DataFrame:
        """All runs of the current results version, each once, in an order that depends only on the runs."""
        tables = [table for path in self._parts() if (table := self._read(path)) is not None]
        runs = pl.concat([pl.DataFrame(schema=SCHEMA), *tables], how="diagonal")
        return runs.unique("id", keep="any").sort(SORTED_BY, nulls_last=False)

    def _parts(self) -> list[Path]:
        return sorted((self.path / "parts").glob("*.parquet"))

    def _read(self, path: Path, *, whole: bool = True) -> pl.DataFrame | None:
        """The runs in a file; None if it is damaged: then it is set aside, and its runs count as not done."""
        try:
            content = heartbeats.read_plain(path)
        except FileNotFoundError:
            # Another process set it aside first, or it is a folder or leads nowhere.
            table = None
        else:
            named = hashlib.sha256(content).hexdigest()[:24] == path.stem
            table = runs_in(content, whole=whole) if named else None
        if table is None and os.path.lexists(path):
            self._set_aside(path)
        return table

    def _set_aside(self, path: Path) -> None:
        """Move a path to the damaged files, under a free name."""
        names = chain([path.name], (f"{path.name}.{i}" for i in count(2)))
        aside = next(free for name in names if not os.path.lexists(free := self.path / "damaged" / name))
        with suppress(FileNotFoundError):
            path.replace(aside)
            self.damaged.append(aside)

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


# What polars raises for files that are not Parquet, truncated or inconsistent.
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)


def runs_in(content: bytes, *, whole: bool = True) -> pl.DataFrame | None:
    """Read the runs of the current results version from a Parquet file: complete, or only their names.

    None if the file is not Parquet, or has other columns than `SCHEMA`.
    """
    try:
        kinds = pl.read_parquet_schema(BytesIO(content))
        names = pl.read_parquet(BytesIO(content), columns=["id", "results"])
        if names.schema != {"id": pl.String, "results": pl.Int64} or names["results"].has_nulls():
            return None
        if not names["id"].str.contains(r"^[0-9a-f]{24}$").fill_null(value=False).all():
            return None
        if RESULTS_VERSION not in names["results"]:
            return pl.DataFrame(schema=SCHEMA)
        # A column may have been declared since: the runs in the file have its default.
        since = [name for name in _USUAL if name not in kinds]
        if any(kinds.get(name) != kind for name, kind in SCHEMA.items() if name not in since):
            return None
        mine = names
        if whole:
            there = pl.read_parquet(BytesIO(content), columns=[name for name in SCHEMA if name not in since])
            defaults = [pl.lit(_USUAL[name], SCHEMA[name]).alias(name) for name in since]
            mine = there.with_columns(defaults).select(*SCHEMA)
        return mine.filter(results=RESULTS_VERSION)
    except _UNREADABLE:
        return None


def export(table: pl.DataFrame, path: Path) -> None:
    """Write one sorted CSV or Parquet file, by the ending of its name, without the columns that tell of machines."""
    table = table.drop(UNREPEATABLE)
    buffer = BytesIO()
    if path.suffix == ".parquet":
        table.write_parquet(buffer, compression="zstd")
    elif path.suffix == ".csv":
        lists = [name for name, kind in table.schema.items() if kind.is_nested()]
        flat = [pl.col(name).cast(pl.List(pl.String)).list.join(";").alias(name) for name in lists]
        table.with_columns(flat).write_csv(buffer)
    else:
        raise StoreError(f"{path} must end in .csv or .parquet")
    write_whole(path, buffer.getvalue())
