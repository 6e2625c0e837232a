"""References: texts such as ``package.module:name`` that name an object outside lacuna, and their import.

Nothing is imported but what a reference names (and what that imports itself). A module is looked for where Python looks
for it, and then in the current folder. While results are only looked at (`lacuna.trust`), nothing is imported at all.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import isclass
from itertools import chain, count
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any, NamedTuple

from lacuna.own_modules import serve
from lacuna.parameters import returned
from lacuna.trust import check_trusted
from lacuna.validation import nearest, shown

WORLD_GROUP, MECHANISM_GROUP, METHOD_GROUP = "lacuna.worlds", "lacuna.mechanisms", "lacuna.methods"
"""Groups of entry points in which installed packages give names to their worlds, mechanisms and methods."""

Sources = tuple[tuple[str, str], ...]
"""References, each with the digest of the source files that it comes from; and Gymnasium ids, of their registration."""

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_REFERENCE = re.compile(rf"(?:{_NAME}|[^:]*\.py):{_NAME}")
_HERE = "here"
_PROCESS_ONLY = re.compile(rf"{_HERE}(?:_\w+)?:")


class _Kept(NamedTuple):
    value: Any
    digest: str


_kept: dict[str, _Kept] = {}
_imported: dict[str, str] = {}
"""Digest of the source of each package or file when this process first imported it for a reference."""
_files: dict[str, ModuleType] = {}
_handed_over: set[str] = set()
_used: Counter[str] = Counter()
_lock = RLock()


def is_reference(text: str) -> bool:
    """Whether a text has the form of a reference: ``package.module:name`` or ``path/to/file.py:name``.

    Examples
    --------
    >>> is_reference("mine.worlds:maze"), is_reference("./maze.py:Maze.small"), is_reference("mcar:0.2")
    (True, True, False)
    """
    return _REFERENCE.fullmatch(text) is not None


def resolve(group: str, name: str) -> str | None:
    """Return the reference that a name stands for: itself, or that of an entry point; None if it is neither.

    Looking for an entry point reads what installed packages say of themselves, and imports none of them.
    """
    if is_reference(name):
        check_trusted(name, "code to import")
        return name
    found = {f"{point.module}:{point.attr}" for point in entry_points(group=group, name=name)}
    if len(found) > 1:
        raise ValueError(
            f"{name!r} is an entry point of several packages: {', '.join(sorted(found))}; name one of these"
        )
    if found:
        check_trusted(name, "code to import")
    return found.pop() if found else None


def entry_point_names(group: str) -> list[str]:
    """Return the names that installed packages declare in a group."""
    return sorted(entry_points(group=group).names)


def load(reference: str, digest: str | None = None) -> Any:
    """Import what a reference names.

    Parameters
    ----------
    reference
        The text.
    digest
        The source that is wanted; another one is refused.

    Examples
    --------
    >>> load("math:tau") > 6
    True
    >>> load("math:tao")
    Traceback (most recent call last):
    ValueError: 'math:tao': the module math has no name 'tao' (did you mean 'tau'?)
    """
    check_trusted(reference, "code to import")
    if reference in _kept:
        return _kept[reference].value
    if not isinstance(reference, str) or not is_reference(reference):
        raise ValueError(f"{shown(reference)} is no reference; write package.module:name or path/to/file.py:name")
    place, _, name = reference.rpartition(":")
    with _lock, _in_one_sentence(reference):
        module = _import(place, reference, digest)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{reference!r}: the module {place} has no name {name!r}{nearest(part, dir(found))}")
        found = getattr(found, part)
    return found


def check_makes(
    reference: str, found: Any, what: str, fits: Callable[[type], bool], names: Collection[str], advice: str
) -> None:
    """Refuse to call what a reference names, unless it is a class that fits, or a function that says it makes one.

    A study file may name any callable of any installed package; only these were written to be called by lacuna. What
    this process registered or handed over itself is not checked.

    Parameters
    ----------
    reference, found
        The reference, and what it names.
    what
        What it must make.
    fits
        Whether a class is what it must make.
    names
        Names of such classes: modules may import them for type checkers only.
    advice
        What a class needs to fit.
    """
    if reference in _kept or reference in _handed_over:
        return
    if isclass(found):
        if not fits(found):
            raise TypeError(f"{reference!r} is not called: it is a class that does not make {what}; {advice}")
        return
    if not any(fits(one) if isclass(one) else one in names for one in returned(found)):
        word = reference.rpartition(":")[2].rpartition(".")[2]
        lines = " or ".join(f"def {word}(…) -> {name}:" for name in names)
        raise TypeError(
            f"{reference!r} is not called: it does not say that it makes {what}; if it does, write its return type: "
            f"{lines}"
        )


def hand_over(reference: str) -> None:
    """Note that the caller of lacuna gave the object of a reference itself, so that it may be called."""
    _handed_over.add(reference)


def source_digest(reference: str) -> str:
    """Return the SHA-256 of all Python files of the package that a reference comes from, or of its one file.

    Packages are found without importing them. It is empty for what comes with lacuna, whose results carry a version.
    """
    if reference in _kept:
        return _kept[reference].digest
    with _in_one_sentence(reference):
        return _digest(reference)


def sources_of(references: Iterable[str]) -> Sources:
    """Return the references that lie outside lacuna, sorted, each with the digest of its source."""
    found = ((reference, source_digest(reference)) for reference in sorted(set(references)))
    return tuple((reference, digest) for reference, digest in found if digest)


def check_sources(sources: Sources) -> None:
    """Import some references, and refuse any whose source is not the one wanted; a Gymnasium id is none."""
    for reference, digest in sources:
        if is_reference(reference):
            load(reference, digest)


@contextmanager
def kept(value: Any, name: str, digest: str = "") -> Iterator[str]:
    """Register an object of this process under a reference, until the end of a block."""
    word = re.sub(r"\W+", "_", name).strip("_") or "object"
    with _lock:
        # Without a digest a reference is used once: what was made under it may still be remembered.
        _used[word] += not digest
        reference = f"{_HERE}:{word}" if digest or _used[word] == 1 else f"{_HERE}_{_used[word]}:{word}"
        if _kept.get(reference, _Kept(value, digest)).digest != digest:
            reference = f"{_HERE}_{digest[:12] or 'object'}:{word}"
        _kept[reference] = _Kept(value, digest)
    try:
        yield reference
    finally:
        _kept.pop(reference, None)


def is_kept(reference: str) -> bool:
    """Whether a reference is to an object of this process without a digest, so that no store can know it again."""
    return reference in _kept and not _kept[reference].digest


def plain_names(references: Iterable[str]) -> dict[str, str]:
    """Return a name for each object that exists only in this process: its own name, numbered if several share it.

    Examples
    --------
    >>> plain_names(["mine:Agent", "here:Agent", "here_2:Agent"])
    {'here:Agent': 'Agent', 'here_2:Agent': 'Agent_2'}
    """
    all_of_them = dict.fromkeys(references)
    taken = {name for name in all_of_them if not _PROCESS_ONLY.match(name)}
    found = {}
    for reference in all_of_them:
        if _PROCESS_ONLY.match(reference):
            word = reference.partition(":")[2]
            numbered = (f"{word}_{i}" for i in count(2))
            found[reference] = next(name for name in chain([word], numbered) if name not in taken)
            taken.add(found[reference])
    return found


def reference_to(value: Any) -> str | None:
    """Return the reference under which a function or class can be imported again; None if there is none."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    reference = f"{module}:{name}"
    if module in (None, "__main__") or not is_reference(reference) or not _leads_to(reference, value):
        return None
    try:
        source_digest(reference)
    except ValueError:
        return None
    return reference


def told(error: BaseException) -> str:
    """Say what went wrong in code that is not ours, and where, in a line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'it does not say why'}{where}"


def _digest(reference: str) -> str:
    place = reference.rpartition(":")[0]
    top = place if place.endswith(".py") else place.partition(".")[0]
    if top == "lacuna":
        return ""
    whole = hashlib.sha256()
    for name, path in _source_files(top):
        content = path.read_bytes()
        whole.update(f"{name}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()


def _is_ours(file: str) -> bool:
    ours_or_pythons = (Path(__file__).parent, Path(importlib.__file__).parent)
    return any(Path(file).is_relative_to(folder) for folder in ours_or_pythons) or file.startswith("<frozen")


def _leads_to(reference: str, value: Any) -> bool:
    place, _, name = reference.rpartition(":")
    found: Any = sys.modules.get(place)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


@contextmanager
def _in_one_sentence(reference: str) -> Iterator[None]:
    try:
        yield
    except _RefusedError as error:
        raise ValueError(f"{reference!r}: {error}") from error.__cause__
    except (Exception, SystemExit) as error:
        raise ValueError(f"{reference!r} cannot be imported: {told(error)}") from error


class _RefusedError(Exception):
    """A sentence about a reference."""


def _import(place: str, reference: str, wanted: str | None) -> ModuleType:
    top = str(Path(place).resolve()) if place.endswith(".py") else place.partition(".")[0]
    now = _digest(reference) if wanted is not None or _has_files(top) else ""
    if wanted is not None and now != wanted:
        raise _RefusedError(
            f"its source here has the digest {now[:12]}, and the run was planned with {wanted[:12]}; "
            f"install the same on every machine"
        )
    if _imported.setdefault(top, now) != now:
        raise _RefusedError("its source was edited after this process had imported it; start the process anew")
    try:
        return _from_file(top) if place.endswith(".py") else _from_package(place)
    except BaseException:
        _imported.pop(top, None)
        raise


def _has_files(top: str) -> bool:
    return top.endswith(".py") or (top != "lacuna" and top not in sys.builtin_module_names)


def _from_package(place: str) -> ModuleType:
    serve(place.partition(".")[0])
    try:
        return import_module(place)
    except ModuleNotFoundError as error:
        if error.name and f"{place}.".startswith(f"{error.name}."):
            raise _RefusedError(_no_module(error.name)) from error
        raise


def _from_file(path: str) -> ModuleType:
    if path in _files:
        return _files[path]
    name = f"_lacuna_{hashlib.sha256(path.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        raise _RefusedError(
            f"{Path(path).name} names itself while it is being imported; put what it runs under "
            "if __name__ == '__main__':"
        )
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _RefusedError(f"{path} is no Python file")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    _files[path] = module
    return module


def _no_module(name: str) -> str:
    return f"no module is called {name!r}; it must be installed, or lie in the current folder"


def _source_files(top: str) -> list[tuple[str, Path]]:
    """The Python files of a package, a module or a file, with the names they have in it."""
    if top.endswith(".py"):
        if not Path(top).is_file():
            raise _RefusedError(f"there is no file {top}")
        return [("", Path(top))]
    serve(top)
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise _RefusedError(_no_module(top))
    if spec.submodule_search_locations is None:
        if spec.origin is None or not Path(spec.origin).is_file():
            raise _RefusedError(f"{top} has no source file that could be read")
        return [("", Path(spec.origin))]
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    found = [(path.relative_to(folder).as_posix(), path) for folder in folders for path in folder.rglob("*.py")]
    return sorted(one for one in found if not any(part.startswith(".") for part in one[0].split("/")))
