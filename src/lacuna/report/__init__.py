"""Charts as functions of a table of results, and pages of one file that need no network."""

from __future__ import annotations

from importlib.util import find_spec

from lacuna.validation import MissingExtraError

if not all(find_spec(module) for module in ("altair", "vl_convert", "markupsafe")):
    raise MissingExtraError("charts and pages need an extra: pip install 'lacuna[report]'")
