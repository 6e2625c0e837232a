"""What a kernel means: a digest of its code, blind to files, docstrings, comments and annotations.

    meaning(kernel) = SHA-256 of its syntax tree and of the meaning of every name that it reads from its module:
        another kernel     → its meaning
        a NamedTuple       → its name and fields
        a constant         → its type and value
        anything else      → its name

So a kernel keeps its meaning when a file is moved, a module renamed or a docstring edited, and loses it with any edit
that could change a bit.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import linecache
from collections.abc import Callable, Iterable
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

# Fields of a syntax tree that compute nothing.
_SILENT = frozenset({"decorator_list", "returns", "annotation", "type_comment", "type_params", "ctx"})

# Numba reads such a value when it compiles, so it is part of the code.
_CONSTANT = (bool, int, float, complex, str, bytes, type(None), np.generic)


class Meaning(NamedTuple):
    """What a kernel means, and the NamedTuples that it or a kernel it calls reads, by `spelled_fields`."""

    digest: str
    tuples: dict[str, type[Any]]


_sources: dict[Callable[..., object], list[str]] = {}
"""The lines of the file of each kernel, as they were when it was made: the file may be edited later."""


def remember_source(function: Callable[..., object]) -> None:
    """Keep the source of a function that becomes a kernel."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    _sources[function] = linecache.getlines(file, function.__globals__)


def meaning(kernel: Callable[..., object]) -> Meaning:
    """Return what a kernel means, compiled or not.

    Examples
    --------
    >>> from lacuna.kernels.codes import pack, unpack
    >>> meaning(pack).digest == meaning(pack).digest, meaning(pack).digest == meaning(unpack).digest
    (True, False)
    """
    return _meaning(getattr(kernel, "py_func", kernel))


def digest_of(kernels: Iterable[Callable[..., object]]) -> str:
    """Return one digest of several kernels: of everything that they compute with."""
    digests = sorted(meaning(kernel).digest for kernel in kernels)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16]


def spelled_fields(found: type[Any]) -> str:
    """Return the name and fields of a NamedTuple, by which it is known wherever it is defined."""
    return f"{found.__name__}({', '.join(found._fields)})"


@cache
def _meaning(function: FunctionType) -> Meaning:
    code, names = _spelled(function)
    tuples: dict[str, type[Any]] = {}
    read = [f"{name} = {_read(name, value, function, tuples)}" for name, value in sorted(names.items())]
    return Meaning(hashlib.sha256("\n".join([code, *read]).encode()).hexdigest(), tuples)


def _spelled(function: FunctionType) -> tuple[str, dict[str, Any]]:
    """The syntax tree as text, and the value of each name that comes from the module."""
    code = function.__code__
    definition = _definitions(tuple(_sources.get(function, ()))).get((code.co_firstlineno, function.__name__))
    module = function.__globals__ | _enclosed(function)
    names: dict[str, Any] = {}
    if definition is None:  # typed at a prompt that keeps no source
        constants = [one for one in code.co_consts if one != function.__doc__]
        definition = Spelled(
            f"{code.co_code.hex()} {constants} {code.co_names}", frozenset((n,) for n in code.co_names)
        )
    for parts in definition.names:
        if parts[0] not in code.co_varnames:
            _look_up(parts, module, names)
    return definition.text, names


def _look_up(parts: tuple[str, ...], module: dict[str, Any], names: dict[str, Any]) -> None:
    """Add the value of a dotted name, as far as it leads through modules; a builtin is not there."""
    value, n = module.get(parts[0], builtins), 1
    while isinstance(value, ModuleType) and value is not builtins and n < len(parts):
        value, n = getattr(value, parts[n]), n + 1
    if not isinstance(value, ModuleType):
        names[".".join(parts[:n])] = value


def _enclosed(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells}


def _read(name: str, value: Any, reader: FunctionType, tuples: dict[str, type[Any]]) -> str:
    """What a kernel reads under a name, as text; NamedTuples are added to `tuples`."""
    if hasattr(value, "py_func") or value in _kernels_of(value):
        held = meaning(value)
        tuples |= held.tuples
        return held.digest
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        tuples[spelled_fields(value)] = value
        return spelled_fields(value)
    if isinstance(value, tuple):
        kind = type(value)
        of = _read(name, kind, reader, tuples) if hasattr(kind, "_fields") else kind.__name__
        return f"{of}: {', '.join(_read(name, one, reader, tuples) for one in value)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, _CONSTANT):
        return f"{type(value).__name__} {value!r}"
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    raise TypeError(f"{reader.__name__} reads {name}, a {type(value).__name__}; a kernel reads constants and kernels")


def _kernels_of(value: Any) -> Iterable[Any]:
    """With the compiler off, a kernel is a plain function."""
    return _sources if isinstance(value, FunctionType) else ()


class Spelled(NamedTuple):
    """A function as text, and the dotted names in it."""

    text: str
    names: frozenset[tuple[str, ...]]


@cache
def _definitions(lines: tuple[str, ...]) -> dict[tuple[int, str], Spelled]:
    """The functions of a source file, by their first line and name. The trees are not kept: there are many nodes."""
    tree = ast.parse("".join(lines))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {
        (min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.name): _spell(node) for node in found
    }


def _spell(definition: ast.FunctionDef) -> Spelled:
    names: set[tuple[str, ...]] = set()

    def spell(node: object) -> str:
        if isinstance(node, list):
            return f"[{', '.join(spell(one) for one in node if not _is_remark(one))}]"
        if not isinstance(node, ast.AST):
            return repr(node)
        names.add(_dotted(node))
        fields = ((name, value) for name, value in ast.iter_fields(node) if name not in _SILENT)
        said = (f"{name}={spell(value)}" for name, value in fields if value not in (None, []))
        return f"{type(node).__name__}({', '.join(said)})"

    return Spelled(spell(definition), frozenset(names - {()}))


def _dotted(node: ast.AST) -> tuple[str, ...]:
    """The parts of a dotted name; empty for anything else."""
    if isinstance(node, ast.Name):
        return (node.id,)
    parts = _dotted(node.value) if isinstance(node, ast.Attribute) else ()
    return (*parts, node.attr) if parts and isinstance(node, ast.Attribute) else ()


def _is_remark(node: object) -> bool:
    """Whether a statement is a docstring, or another text that computes nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
