"""Files: written completely or not at all, one writer at a time, durably; read only if they are files, up to a size."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from threading import get_ident
from typing import BinaryIO

# What file systems without locks, or that cannot sync a folder, say.
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}
_NO_SYNC = {errno.EINVAL, errno.EACCES}


def write_whole(path: Path, content: bytes | Iterable[bytes], check: Callable[[], None] | None = None) -> None:
    """Write a file under another name, then rename it: it is complete or absent, even after a power cut.

    Content that is too large for memory comes in parts. `check` is called, and may raise, when nobody else can replace
    the file before this does.

    Examples
    --------
    >>> write_whole(Path("page.html"), b"<p>Whole.</p>")
    >>> Path("page.html").read_bytes()
    b'<p>Whole.</p>'
    """
    if path.is_dir() or not path.parent.is_dir():
        why = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise FileNotFoundError(f"{path} cannot be written: {why}")
    with _unfinished(path) as (part, file):
        try:
            if check is not None:
                check()
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            if _is_at(part, file):
                part.unlink()
            raise
        sync_folder(path.parent)


def open_regular(path: str | os.PathLike[str], most: int) -> BinaryIO:
    """Open a file for reading; a folder, a pipe or a device is refused, and so is a file of more than `most` bytes.

    Examples
    --------
    >>> open_regular("/dev/zero", 1000)
    Traceback (most recent call last):
    ValueError: /dev/zero cannot be read: it is not a regular file
    """
    name = os.fspath(path)
    try:
        # A pipe is not waited for.
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise ValueError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    found, why = os.fstat(handle), ""
    if not stat.S_ISREG(found.st_mode):
        why = os.strerror(errno.EISDIR) if stat.S_ISDIR(found.st_mode) else "it is not a regular file"
    elif found.st_size > most:
        why = f"it has {found.st_size:,} bytes, and may have {most:,}"
    if why:
        os.close(handle)
        raise ValueError(f"{name} cannot be read: {why}")
    return os.fdopen(handle, "rb")


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """Read a whole file that `open_regular` opens."""
    with open_regular(path, most) as file:
        # One that grows meanwhile is cut.
        return file.read(most)


def read_text(path: str | os.PathLike[str], most: int) -> str:
    """Read a whole file as text; some editors put a mark before the first character."""
    with TextIOWrapper(open_regular(path, most), "utf-8-sig") as file:
        try:
            return file.read(most)
        except UnicodeDecodeError as error:
            raise ValueError(f"{os.fspath(path)} cannot be read: {error}") from error


def create_private(path: Path, content: bytes) -> None:
    """Write a file that was not there before and that only its owner can read; it survives a power cut.

    A file that is there already is never overwritten: `FileExistsError`.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            # A umask can take rights away from the owner too.
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()
        raise
    sync_folder(path.parent)


@contextmanager
def _unfinished(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """An empty file beside `path` that one writer has at a time; what a killed one left is taken over."""
    part = path.with_name(f".{path.name}.part")
    while True:
        with _open_part(part) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                part.unlink(missing_ok=True)
                break
            try:
                # While this one waited, another may have finished: then the file it opened has its real name by now.
                if _is_at(part, file):
                    file.truncate(0)
                    yield part, file
                    return
            finally:
                # Closing is not enough if a child process was forked meanwhile: it has the lock as well.
                fcntl.flock(file, fcntl.LOCK_UN)
    # A file system without locks: take a name that nobody else has.
    part = path.with_name(f".{path.name}.{socket.gethostname()}-{os.getpid()}-{get_ident()}.part")
    with _open_part(part) as file:
        file.truncate(0)
        yield part, file


def _open_part(part: Path) -> BinaryIO:
    """Open a file for writing without emptying it: another process may be at it."""
    return os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b")


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Whether an open file has this name."""
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def sync_folder(folder: Path) -> None:
    """Let a renaming in a folder reach the disk."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
