"""Which processes are working on a store: each writes its progress to a file of its own, as a sign of life."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lacuna.files import write_whole
from lacuna.study.spec import Name

_SILENCE = 30.0
"""Seconds without a report after which a process on another machine counts as dead."""

_Count = Annotated[int, Field(ge=0, le=10**15)]


class Heartbeat(BaseModel):
    """The progress of a process, the time of the report, and which process it is."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)

    study: Name
    done: _Count
    total: _Count
    failed: _Count
    steps_per_second: Annotated[float, Field(ge=0, le=1e15)]
    time: float
    place: str
    pid: Annotated[int, Field(ge=1)]
    began: str


@dataclass(frozen=True)
class AtWork:
    """The live processes by name; the files of dead ones; and unreadable files."""

    processes: dict[str, Heartbeat] = field(default_factory=dict)
    left: list[Path] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)


def at_work(folder: Path) -> AtWork:
    """Say which processes are alive: on this machine by process number, elsewhere by the age of their last report."""
    found = AtWork()
    for path in sorted(folder.glob("*.json")):
        try:
            beat = Heartbeat.model_validate_json(read_plain(path))
        except (OSError, ValidationError):
            # A process that ended just now took its file with it.
            if os.path.lexists(path):
                found.unread.append(path)
            continue
        if _alive(beat):
            found.processes[path.stem if path.stem.isprintable() else ascii(path.stem)] = beat
        else:
            found.left.append(path)
    return found


def _alive(beat: Heartbeat) -> bool:
    if beat.place == place():
        return process_start(beat.pid) == beat.began
    return abs(time.time() - beat.time) <= _SILENCE


@contextmanager
def reporting(folder: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Report the progress of this process to `at_work`, on any machine; its file is removed at the end."""
    path = folder / f"{socket.gethostname()}-{os.getpid()}.json"
    _tidy(folder)
    mine = {"place": place(), "pid": os.getpid(), "began": process_start(os.getpid())}

    def report(how_far: dict[str, Any]) -> None:
        beat = Heartbeat.model_validate(how_far | mine | {"time": time.time()})
        write_whole(path, beat.model_dump_json().encode())

    try:
        yield report
    finally:
        path.unlink(missing_ok=True)


def _tidy(folder: Path) -> None:
    """Remove the files of killed processes after an hour."""
    for path in at_work(folder).left:
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > 3600:
                path.unlink()


def read_plain(path: Path) -> bytes:
    """Read a regular file; refuse a folder or a pipe."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return path.read_bytes()


def place() -> str:
    """Name the space of process IDs: the machine, and the container."""
    numbers = ""
    with suppress(OSError):
        numbers = os.readlink("/proc/self/ns/pid")
    return f"{socket.gethostname()} {numbers}"


def process_start(pid: int) -> str | None:
    """Return the start time of a process on this machine, as the system writes it; None if it has ended.

    Process IDs are reused, so a process is identified by its ID and its start.
    """
    if Path("/proc/self/stat").exists():
        try:
            told = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return None
        # The name of the program, in parentheses, may hold anything.
        fields = told.rpartition(b")")[2].decode().split()
        return None if fields[0] in "ZX" else fields[19]
    words = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    state, _, began = subprocess.run(words, capture_output=True, text=True, check=False).stdout.partition(" ")  # noqa: S603
    return None if not state or state.startswith("Z") else began.strip()
