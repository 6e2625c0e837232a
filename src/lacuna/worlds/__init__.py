"""The worlds that come with lacuna. A file here that declares one (`registry.world`) is found automatically."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from lacuna.worlds.lake import COLOURS
from lacuna.worlds.lake_picture import LAKE_PALETTE, Letter, Rectangle, draw_lake

__all__ = ["COLOURS", "LAKE_PALETTE", "Letter", "Rectangle", "draw_lake"]

for _found in iter_modules(__path__, f"{__name__}."):
    import_module(_found.name)
