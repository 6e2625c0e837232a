"""Which lacuna this is, and which results it gives."""

from __future__ import annotations

__version__ = "0.1.0"

RESULTS_VERSION = 5
"""Raised when the same run would give other figures. It is part of a run's name, so old results are never mixed in."""
