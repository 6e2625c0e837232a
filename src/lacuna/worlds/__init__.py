"""The worlds that come with lacuna. A file here that declares one (`registry.world`) is found automatically."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _found in iter_modules(__path__, f"{__name__}."):
    import_module(_found.name)
