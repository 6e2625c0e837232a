"""Modules in a folder of the user's: found for references, and for what these import from beside them; for nobody else.

The folder is not put into `sys.path`: there it would serve every library that tries whether an optional package is
installed, and a ``cffi.py`` beside a study would be imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import invalidate_caches
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, ModuleType

_MACHINERY = {"importlib", "_frozen_importlib", "_frozen_importlib_external"}


class _OwnModules:
    """A finder of modules: asked by Python after all others."""

    def __init__(self) -> None:
        self.named: dict[str, str] = {}
        """The folder in which each module that a reference named is looked for."""
        self.found: dict[str, str] = {}
        """The folder in which a module was found."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module that was named, or that a module found here imports from beside it."""
        folder = self.named.get(name) or self.found.get(_importer())
        if path is not None or folder is None:
            return None
        spec = PathFinder.find_spec(name, [folder])
        if spec is not None:
            self.found[name] = folder
        return spec


_finder = _OwnModules()


def serve(name: str) -> None:
    """Let Python find a module in the current folder, if it is nowhere else."""
    _finder.named[name] = str(Path.cwd())
    if _finder not in sys.meta_path:
        # Last, so that no file that happens to lie there takes the place of an installed module.
        sys.meta_path.append(_finder)
    invalidate_caches()


def _importer() -> str:
    """The package or module whose code asks for an import: Python does not tell finders."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        top = str(frame.f_globals.get("__name__")).partition(".")[0]
        if top not in _MACHINERY:
            return top
        frame = frame.f_back
    return ""
