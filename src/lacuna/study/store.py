"""The results of studies in a folder: whole Parquet files, each named after its content. The folder is the truth.

A file is written under another name, then renamed, so it is whole or not there. Its name is a digest of its bytes, so
damage is noticed, and damaged files are set aside. Runs carry names derived from their content: a run that is stored
twice counts once, whoever computed it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import socket
import time
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from lacuna.savefile import write_whole
from lacuna.study.spec import Study
from lacuna.version import RESULTS, __version__

FORMAT = 1
_MARK = "lacuna-store.json"
_STALE = 3600.0

SCHEMA: dict[str, Any] = {
    "id": pl.String, "results": pl.Int64,
    "world": pl.String, "parameters": pl.String, "stay": pl.Boolean, "continuing": pl.Boolean,
    "missingness": pl.String, "label": pl.String, "method": pl.String, "K": pl.Int64, "alpha": pl.Float64,
    "gamma": pl.Float64, "epsilon": pl.Float64, "vote": pl.String, "update": pl.String, "p_shuffle": pl.Float64,
    "kappa": pl.Float64, "smoothing": pl.Float64, "parents": pl.Float64, "optimism": pl.Float64,
    "first_observed": pl.Boolean, "steps": pl.Int64, "trial": pl.Int64,
    "mean_total_reward": pl.Float64, "mean_water_steps": pl.Float64, "mean_path_length": pl.Float64,
    "episodes": pl.Int64, "reward_per_step": pl.Float64, "reward_per_step_early": pl.Float64,
    "reward_per_step_late": pl.Float64, "stay_share": pl.Float64, "hidden_shares": pl.List(pl.Float64),
    "open_steps": pl.Int64, "open_reward": pl.Float64, "open_water_steps": pl.Int64,
    "cut_episodes": pl.Int64, "cut_steps": pl.Int64, "cut_reward": pl.Float64, "cut_water_steps": pl.Int64,
    "guessed_right": pl.Float64,
    "weight_on_truth": pl.Float64, "calibration_error": pl.Float64,
    "curve_step": pl.List(pl.Int64), "curve_episodes": pl.List(pl.Float64), "curve_reward": pl.List(pl.Float64),
    "curve_water": pl.List(pl.Float64), "curve_path": pl.List(pl.Float64), "curve_stay": pl.List(pl.Float64),
    "seconds": pl.Float64, "host": pl.String, "lacuna": pl.String,
}  # fmt: skip
"""One row per run. The curves are running sums over completed episodes, and how often the agent stayed, by step."""

UNREPEATABLE = ("seconds", "host", "lacuna")
"""Columns that tell of the machine, not of the run; an export leaves them out."""

SORTED_BY = ("world", "parameters", "missingness", "method", "K", "p_shuffle", "kappa", "smoothing", "parents", "vote",
             "update", "stay", "alpha", "gamma", "epsilon", "optimism", "first_observed", "steps", "trial",
             "id")  # fmt: skip


class StoreError(ValueError):
    """A folder that cannot be used as a store; nothing in it was changed."""


class Store:
    """A folder of results.

    Parameters
    ----------
    path
        The folder; made if it is not there. One that holds other things, or was made by a newer version, is refused.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._done: set[str] = set()
        self._known: set[str] = set()
        self.damaged: list[Path] = []
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
            made = int(json.loads(mark.read_bytes())["format"])
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{mark} is damaged; restore it from another store or remove it by hand") from error
        if made > FORMAT:
            raise StoreError(f"{self.path} was made by a newer lacuna (format {made}; this one reads up to {FORMAT})")
        for folder in ("parts", "studies", "running", "damaged"):
            (self.path / folder).mkdir(exist_ok=True)
        for left in self.path.rglob(".*.part"):
            # What a process killed in the middle of writing left behind; a live one needs seconds at most.
            with suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > _STALE:
                    left.unlink()

    @classmethod
    def existing(cls, path: str | Path) -> Store:
        """Open a store that must be there already."""
        if not (Path(path) / _MARK).exists():
            raise StoreError(f"{path} is not a store of results: it has no {_MARK}")
        return cls(path)

    def add_study(self, study: Study) -> None:
        """Note which study is run into the store, and by what."""
        note = {
            "study": study.spec.model_dump(exclude_defaults=True),
            "runs": len(study),
            "lacuna": __version__,
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "first_started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        path = self.path / "studies" / f"{study.id}.json"
        if not path.exists():
            write_whole(path, json.dumps(note, indent=1).encode())

    def studies(self) -> list[Study]:
        """The studies that were run into the store, as far as this version can read them."""
        found = []
        for path in sorted((self.path / "studies").glob("*.json")):
            with suppress(ValueError, KeyError, TypeError):
                found.append(Study.from_data(json.loads(path.read_bytes())["study"], path.name))
        return found

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Store finished runs: one new file, whole or not at all."""
        if not rows:
            return
        buffer = BytesIO()
        columns = {name: [row[name] for row in rows] for name in SCHEMA}
        pl.DataFrame(columns, schema=SCHEMA).write_parquet(buffer, compression="zstd")
        self.write_part(buffer.getvalue(), [row["id"] for row in rows])

    def write_part(self, content: bytes, ids: Iterable[str]) -> None:
        """Store a Parquet file that is at hand."""
        name = f"{hashlib.sha256(content).hexdigest()[:24]}.parquet"
        write_whole(self.path / "parts" / name, content)
        self._known.add(name)
        self._done.update(ids)

    def done(self) -> AbstractSet[str]:
        """Names of all runs in the store, those of other processes included; only new files are read."""
        for path in self._parts():
            if path.name not in self._known:
                table = self._read(path, ["id"])
                if table is not None:
                    self._known.add(path.name)
                    self._done.update(table["id"])
        return self._done

    def table(self) -> pl.DataFrame:
        """All runs of the current kind of results, each once, in an order that depends on nothing but the runs."""
        tables = [table for path in self._parts() if (table := self._read(path, None)) is not None]
        runs = pl.concat([pl.DataFrame(schema=SCHEMA), *tables], how="diagonal")
        return runs.filter(results=RESULTS).unique("id", keep="any").sort(SORTED_BY, nulls_last=False)

    def _parts(self) -> Iterator[Path]:
        return iter(sorted((self.path / "parts").glob("*.parquet")))

    def _read(self, path: Path, columns: list[str] | None) -> pl.DataFrame | None:
        """A file's content, or None if it is damaged: then it is set aside, and its runs count as not done."""
        try:
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest()[:24] == path.stem:
                return pl.read_parquet(BytesIO(content), columns=columns)
            aside = self.path / "damaged" / path.name
            path.replace(aside)
        except FileNotFoundError:
            # Another process set it aside first.
            return None
        self.damaged.append(aside)
        return None

    def report_running(self, note: dict[str, Any]) -> None:
        """Tell `status` on any machine how this process is doing."""
        write_whole(self._heartbeat(), json.dumps(note | {"time": time.time()}).encode())

    def stop_running(self) -> None:
        """Take this process off the list."""
        self._heartbeat().unlink(missing_ok=True)

    def _heartbeat(self) -> Path:
        return self.path / "running" / f"{socket.gethostname()}-{os.getpid()}.json"

    def running(self, *, within: float = 30.0) -> list[dict[str, Any]]:
        """What processes that were alive in the last `within` seconds said of themselves."""
        notes = []
        for path in sorted((self.path / "running").glob("*.json")):
            try:
                note = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue
            if time.time() - note["time"] <= within:
                notes.append(note | {"process": path.stem})
        return notes


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
