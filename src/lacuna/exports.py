"""What a package exports, imported when it is first used."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from lacuna.validation import extras_named


def exported(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    A package says once what it exports: ``from module import name as name``. Below ``if TYPE_CHECKING`` only type
    checkers read such a line; this function reads it from the source, and the module is imported when the name is
    first used.

    Examples
    --------
    >>> import lacuna.kernels
    >>> names, get, _ = exported("lacuna.kernels")
    >>> names, get("kernel").__module__
    (['kernel'], 'lacuna.kernels.compiled')
    >>> get("kernal")
    Traceback (most recent call last):
    AttributeError: module 'lacuna.kernels' has no attribute 'kernal'
    """
    module = sys.modules[package]
    # The compiler of kernels reads sources too, so they are always there.
    home_of = dict(_passed_on(inspect.getsource(module)))

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with extras_named():
            return getattr(import_module(home_of[name]), name)

    return sorted(home_of), get, lambda: sorted({*vars(module), *home_of})


def _passed_on(source: str) -> Iterator[tuple[str, str]]:
    """The names that a source imports to pass them on, each with the module that defines it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((one.name, node.module) for one in node.names if one.name == one.asname)
